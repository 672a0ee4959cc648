//! Chains and blocks: correct on random graphs, and the expressions of the notes.
#![allow(clippy::unwrap_used)]

mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::chain::relations::{self, Relations};
use chainrule_accumulate::chain::{self, Direction, RESTS, Rest, expression, factorise};
use chainrule_accumulate::{
    Budget, Builder, Counting, Label, LabelId, LinearGraph, Program, StopReason, check, oracle,
};
use chainrule_base::Id;
use chainrule_graph::generate::layered;
use chainrule_graph::{NodeId, Semantics};
use proptest::prelude::*;

proptest! {
    #![proptest_config(support::config(1500, 41))]

    #[test]
    fn every_way_agrees_with_the_sum_over_paths(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        ask in any::<u64>(),
    ) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        let budget = Budget::default();
        for linear in support::whole_and_part(linear, ask) {
            let pattern = oracle::run(&linear, &budget).program.unwrap().pattern();
            let mut programs: Vec<(String, Program)> = Vec::new();
            for &rest in RESTS {
                programs.push((format!("{rest:?}"), chain::run_with(&linear, &budget, rest).program.unwrap()));
            }
            for direction in [Direction::Forward, Direction::Backward] {
                let outcome = factorise::run(&linear, &budget, direction);
                programs.push((format!("{direction:?}"), outcome.program.unwrap()));
            }
            for (name, program) in programs {
                prop_assert!(check::program(&linear, &program, 7).agrees(), "{name} on {linear:?}");
                prop_assert_eq!(program.pattern(), pattern.clone(), "{} on {:?}", name, &linear);
            }
        }
    }
}

/// Returns a graph given as (name of the edge, source, target), with the name of each of its labels.
fn named(
    sizes: (usize, usize, usize),
    edges: &[(usize, usize, usize)],
) -> (LinearGraph, impl Fn(LabelId) -> String + use<>) {
    let given: Vec<_> = edges.iter().map(|(_, s, t)| (*s, *t, Label::Var)).collect();
    let linear = LinearGraph::from_edges(sizes.0, sizes.1, sizes.2, &given).unwrap();
    let names: Vec<String> = linear
        .edges()
        .map(|(_, edge)| {
            let ends = (edge.source.index(), edge.target.index());
            format!("e{}", edges.iter().find(|(_, s, t)| (*s, *t) == ends).unwrap().0)
        })
        .collect();
    (linear, move |label: LabelId| names[label.index()].clone())
}

/// Returns figure 4.1 (b): v1, ..., v9 are 0, ..., 8.
fn complex_block() -> (LinearGraph, impl Fn(LabelId) -> String) {
    let edges = [
        (1, 0, 1),
        (2, 0, 2),
        (3, 1, 3),
        (4, 1, 4),
        (5, 2, 4),
        (6, 2, 5),
        (7, 3, 6),
        (8, 4, 6),
        (9, 4, 7),
        (10, 5, 7),
        (11, 6, 8),
        (12, 7, 8),
    ];
    named((1, 7, 1), &edges)
}

#[test]
fn factorisations_of_the_complex_block() {
    let (linear, name) = complex_block();
    let backward = factorise::run(&linear, &Budget::default(), Direction::Backward).program.unwrap();
    let root = backward.result(0, 0).unwrap();
    let written =
        |program: &Program, label, references: &[LabelId]| expression::of(program, label, references, &name).unwrap();
    // Expression 4.3, up to the order of terms.
    assert_eq!(written(&backward, root, &[]), "e1(e3e7e11+e4(e8e11+e9e12))+e2(e5(e8e11+e9e12)+e6e10e12)");
    // Expression 4.5, with its reference.
    let shared = expression::shared(&backward);
    assert_eq!(written(&backward, root, &shared), "e1(e3e7e11+e4s1)+e2(e5s1+e6e10e12)");
    assert_eq!(shared.len(), 1);
    assert_eq!(written(&backward, shared[0], &shared), "e8e11+e9e12");
    // Expression 4.4.
    let forward = factorise::run(&linear, &Budget::default(), Direction::Forward).program.unwrap();
    let root = forward.result(0, 0).unwrap();
    assert_eq!(written(&forward, root, &[]), "(e1e3e7+(e1e4+e2e5)e8)e11+((e1e4+e2e5)e9+e2e6e10)e12");
    for program in [&backward, &forward] {
        assert!(check::program(&linear, program, 3).agrees());
        let counts = program.count(Counting::Plain);
        assert_eq!((counts.mul, counts.add), (10, 4));
    }
}

/// The edges of figure 5.2 (a) without those of the vertices before v2 and v3, nor e18 to e20. Sources are 0 to
/// 4 for v0, v-1, ..., v-4; 5 to 13 are v1 to v9, 14 is v14; sinks 15 to 18 are v10 to v13.
const LOWER: [(usize, usize, usize); 16] = [
    (3, 6, 8),
    (4, 6, 9),
    (5, 7, 9),
    (6, 7, 10),
    (7, 8, 11),
    (8, 9, 11),
    (9, 9, 12),
    (10, 10, 12),
    (11, 11, 13),
    (12, 12, 13),
    (13, 13, 15),
    (14, 13, 16),
    (15, 11, 17),
    (16, 12, 18),
    (18, 2, 6),
    (19, 3, 7),
];

/// Returns figure 5.2 (a).
fn figure_5_2() -> LinearGraph {
    let upper = [(0, 0, 5), (17, 1, 5), (20, 2, 5), (1, 5, 6), (2, 5, 7), (21, 4, 14), (22, 14, 18)];
    let edges: Vec<_> = LOWER.iter().chain(&upper).copied().collect();
    named((5, 10, 4), &edges).0
}

/// Returns figure 5.2 (e) with its simple chains expanded: the paths through e18 and e19. Sources 0 and 1 are v-2 and
/// v-3, sinks 10 to 13 are v10 to v13.
fn page_e() -> (LinearGraph, impl Fn(LabelId) -> String) {
    let place = |v: usize| match v {
        2 | 3 => v - 2,
        v if v < 14 => v - 4,
        v => v - 5,
    };
    let edges: Vec<_> = LOWER.iter().map(|(e, s, t)| (*e, place(*s), place(*t))).collect();
    named((2, 8, 4), &edges)
}

#[test]
fn the_strategy_for_several_roots_and_terminals() {
    // For figure 5.2 (a), and for its page (e) alone; the notes' expressions 5.1 to 5.13 for the latter take 26.
    for (linear, notes) in [(figure_5_2(), None), (page_e().0, Some(26))] {
        let program = chain::run_with(&linear, &Budget::default(), Rest::Pages).program.unwrap();
        assert!(check::program(&linear, &program, 3).agrees());
        let mul = program.tidied().count(Counting::Plain).mul;
        assert!(notes.is_none_or(|notes| mul <= notes), "{mul}");
    }
}

/// Returns expressions 5.1 to 5.13 as a program; rows are v10 to v13, columns v-2 and v-3.
fn expressions_of_the_notes(linear: &LinearGraph, name: impl Fn(LabelId) -> String) -> Program {
    let mut builder = Builder::new(linear);
    let edges: Vec<LabelId> = linear.edges().map(|(e, _)| builder.edge(e)).collect();
    let e = |number: usize| *edges.iter().find(|label| name(**label) == format!("e{number}")).unwrap();
    let mut step = |products: &[&[LabelId]]| {
        for product in products {
            builder.add(product);
        }
        builder.close()
    };
    let s1 = step(&[&[e(3), e(7)]]);
    let s2 = step(&[&[e(6), e(10)]]);
    let s4 = step(&[&[e(8), e(11)], &[e(9), e(12)]]);
    let inner5 = step(&[&[s1, e(11)], &[e(4), s4]]);
    let s5 = step(&[&[e(18), inner5]]);
    let inner6 = step(&[&[s2, e(12)], &[e(5), s4]]);
    let s6 = step(&[&[e(19), inner6]]);
    let block = step(&[&[s1], &[e(4), e(8)]]);
    let v2_v12 = step(&[&[e(18), block, e(15)]]);
    let v2_v13 = step(&[&[e(18), e(4), e(9), e(16)]]);
    let v2_v10 = step(&[&[s5, e(13)]]);
    let v2_v11 = step(&[&[s5, e(14)]]);
    let block = step(&[&[e(5), e(9)], &[s2]]);
    let v3_v13 = step(&[&[e(19), block, e(16)]]);
    let v3_v12 = step(&[&[e(19), e(5), e(8), e(15)]]);
    let v3_v10 = step(&[&[s6, e(13)]]);
    let v3_v11 = step(&[&[s6, e(14)]]);
    let (sources, sinks): (Vec<_>, Vec<_>) = (linear.sources().collect(), linear.sinks().collect());
    let ends = [
        (sinks[2], sources[0], v2_v12),
        (sinks[3], sources[0], v2_v13),
        (sinks[0], sources[0], v2_v10),
        (sinks[1], sources[0], v2_v11),
        (sinks[3], sources[1], v3_v13),
        (sinks[2], sources[1], v3_v12),
        (sinks[0], sources[1], v3_v10),
        (sinks[1], sources[1], v3_v11),
    ];
    builder.finish(linear, &ends)
}

#[test]
fn expressions_5_1_to_5_13_and_their_relations() {
    let (linear, name) = page_e();
    let program = expressions_of_the_notes(&linear, &name);
    assert!(check::program(&linear, &program, 3).agrees());
    assert_eq!(program.count(Counting::Plain).mul, 26);
    let written = |row, column| expression::of(&program, program.result(row, column).unwrap(), &[], &name).unwrap();
    assert_eq!(written(2, 0), "e18(e3e7+e4e8)e15");
    assert_eq!(written(3, 0), "e18e4e9e16");
    assert_eq!(written(0, 0), "e18(e3e7e11+e4(e8e11+e9e12))e13");
    assert_eq!(written(1, 0), "e18(e3e7e11+e4(e8e11+e9e12))e14");
    assert_eq!(written(3, 1), "e19(e5e9+e6e10)e16");
    assert_eq!(written(2, 1), "e19e5e8e15");
    assert_eq!(written(0, 1), "e19(e6e10e12+e5(e8e11+e9e12))e13");
    assert_eq!(written(1, 1), "e19(e6e10e12+e5(e8e11+e9e12))e14");

    let relations = relations::of(&program).unwrap();
    let labels: Vec<LabelId> = linear.edges().map(|(e, _)| LabelId::new(e.index())).collect();
    let e = |number: usize| *labels.iter().find(|label| name(**label) == format!("e{number}")).unwrap();
    // e4 and e8: direct in 5.6, indirect in 5.4.
    assert!(relations.direct.contains(&(e(4), e(8))) && relations.behind.contains(&(e(4), e(8), e(11))));
    let dependencies = relations.dependencies();
    assert!(dependencies[&(e(4), e(8))].contains(&(e(8), e(11))));
    // e18 and e4: direct in 5.7, indirect in 5.6 and 5.8.
    assert!(dependencies[&(e(18), e(4))].contains(&(e(4), e(8))));
    // e8 e11 and e9 e12 come first: eliminating them breaks no parentheses.
    assert!(!dependencies.contains_key(&(e(8), e(11))) && !dependencies.contains_key(&(e(9), e(12))));
    // Proposition 1: an order of elimination exists.
    let order = relations.order().unwrap();
    let place = |face: (LabelId, LabelId)| order.iter().position(|other| *other == face).unwrap();
    assert!(place((e(8), e(11))) < place((e(4), e(8))) && place((e(4), e(8))) < place((e(18), e(4))));
    assert_eq!(relations.cycle(), None);
}

#[test]
fn circular_dependencies_are_found() {
    // The notes' example before proposition 1, in which all faces also have direct relations.
    let s = |number: usize| LabelId::new(number);
    let behind = [(1, 2, 3), (2, 3, 4), (8, 7, 1), (7, 1, 2)];
    let before = [(5, 3, 4), (6, 5, 3), (7, 6, 5), (8, 7, 6)];
    let mut relations = Relations::default();
    for (s1, s2, s3) in behind {
        relations.behind.insert((s(s1), s(s2), s(s3)));
        relations.direct.insert((s(s1), s(s2)));
    }
    for (s3, s1, s2) in before {
        relations.before.insert((s(s3), s(s1), s(s2)));
        relations.direct.insert((s(s1), s(s2)));
    }
    let cycle = relations.cycle().unwrap();
    assert_eq!(cycle.len(), 8);
    let dependencies = relations.dependencies();
    for (at, face) in cycle.iter().enumerate() {
        assert!(dependencies[face].contains(&cycle[(at + 1) % cycle.len()]));
    }
    // Without one direct relation, the cycle is open.
    relations.direct.remove(&(s(7), s(6)));
    assert_eq!(relations.cycle(), None);
}

#[test]
fn local_jacobians_choose_their_order() {
    // Figure 4.1 (a): (AB)(CD) takes 5 multiplications; with A(BC)D it would be 12.
    let edges = [(1, 0, 1), (2, 0, 2), (3, 1, 3), (4, 2, 3), (5, 3, 4), (6, 3, 5), (7, 4, 6), (8, 5, 6)];
    let (linear, _) = named((1, 5, 1), &edges);
    for &rest in RESTS {
        let program = chain::run_with(&linear, &Budget::default(), rest).program.unwrap();
        assert_eq!(program.count(Counting::Plain).mul, 5, "{rest:?}");
    }
    // Figure 4.1 (b), expression 4.6: from either end 10 multiplications.
    let (linear, _) = complex_block();
    for &rest in RESTS {
        let program = chain::run_with(&linear, &Budget::default(), rest).program.unwrap();
        assert!(check::program(&linear, &program, 3).agrees());
        assert!(program.tidied().count(Counting::Plain).mul <= 10, "{rest:?}");
    }
}

#[test]
fn large_graphs_are_right_and_repeat() {
    let (mut g, roots) = layered(Semantics::Algebraic, 400, 6, 6, 5);
    let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
    let linear = LinearGraph::new(&mut g, &roots, &inputs).unwrap();
    let some: Vec<(usize, usize)> = (0..6).map(|r| (r, (2 * r + 1) % 6)).collect();
    for linear in [linear.clone(), linear.ask_only(&some).unwrap()] {
        for &rest in RESTS {
            let outcome = chain::run_with(&linear, &Budget::default(), rest);
            assert_eq!(outcome.stop, StopReason::Done, "{rest:?}");
            let program = outcome.program.unwrap();
            assert!(check::program(&linear, &program, 9).agrees(), "{rest:?}");
            assert_eq!(chain::run_with(&linear, &Budget::default(), rest).program.unwrap(), program);
        }
    }
}

#[test]
fn budgets_end_every_way() {
    let (mut g, roots) = layered(Semantics::Algebraic, 400, 6, 6, 5);
    let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
    let linear = LinearGraph::new(&mut g, &roots, &inputs).unwrap();
    let by_levels: Vec<Rest> = RESTS.iter().copied().filter(|rest| matches!(rest, Rest::Levels(_))).collect();
    for rest in by_levels {
        let lazy = Budget { scores: 100, ..Budget::default() };
        assert_eq!(chain::run_with(&linear, &lazy, rest).stop, StopReason::ScoreBudget, "{rest:?}");
    }
    let few = Budget { products: 100, ..Budget::default() };
    for &rest in RESTS {
        assert_eq!(chain::run_with(&linear, &few, rest).stop, StopReason::ProductBudget, "{rest:?}");
    }
    assert_eq!(chain::run(&linear, &few).stop, StopReason::ProductBudget);
}

#[test]
fn counts_on_the_literatures_graphs() {
    // Multiplications with free products by 1 and -1; the best known vertex order of RoeFlux_1d takes 216.
    for (name, mul) in
        [("RobotArm_6DOF", 157), ("HumanHeartDipole", 48), ("PropaneCombustion", 24), ("RoeFlux_1d", 193)]
    {
        let Some(linear) = support::graphs::load(name) else { continue };
        let muls = RESTS.iter().map(|rest| {
            let program = chain::run_with(&linear, &Budget::default(), *rest).program.unwrap().tidied();
            assert!(check::program(&linear, &program, 3).agrees(), "{name} {rest:?}");
            program.count(Counting::UnitFree).mul
        });
        assert!(muls.min().unwrap() <= mul, "{name}");
        // The cheapest program by weight is taken, including additions and constants.
        let program = chain::run(&linear, &Budget::default()).program.unwrap().tidied();
        let by_vertices = chain::run_with(&linear, &Budget::default(), Rest::Vertices).program.unwrap().tidied();
        assert!(program.count(Counting::Folded).weight <= by_vertices.count(Counting::Folded).weight);
    }
}
