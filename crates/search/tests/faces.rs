//! Face elimination: correct on random graphs, and the counts of the papers.
#![allow(clippy::unwrap_used)]

#[path = "../../accumulate/tests/support/mod.rs"]
mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::face::{self, Absorbed, Free, Kinds, LineGraph, Options, Order, Rules};
use chainrule_accumulate::markowitz::Ties;
use chainrule_accumulate::{Budget, Counting, Label, LinearGraph, StopReason, check, oracle};
use chainrule_graph::generate::layered;
use chainrule_graph::{NodeId, Semantics};
use chainrule_search::face_exact as exact;
use proptest::prelude::*;

fn all_options() -> Vec<Options> {
    let mut all = Vec::new();
    for order in [Order::Markowitz, Order::Reduction, Order::Distance] {
        for ties in [Ties::Lowest, Ties::Highest] {
            for rules in [Rules::Naumann, Rules::Extended] {
                for free in [Free::Alike, Free::OnTies] {
                    for absorbed in [Absorbed::Alike, Absorbed::First] {
                        all.push(Options { order, ties, rules, free, absorbed });
                    }
                }
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(support::config(1500, 31))]

    #[test]
    fn every_order_agrees_with_the_sum_over_paths(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        ask in any::<u64>(),
    ) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        let budget = Budget::default();
        for linear in support::whole_and_part(linear, ask) {
            let pattern = oracle::run(&linear, &budget).program.unwrap().pattern();
            for options in all_options() {
                let program = face::greedy::run(&linear, &budget, &options).program.unwrap();
                prop_assert!(check::program(&linear, &program, 7).agrees(), "{options:?} on {linear:?}");
                prop_assert!(check::program(&linear, &program.tidied(), 7).agrees(), "{options:?} on {linear:?}");
                prop_assert_eq!(program.pattern(), pattern.clone());
            }
        }
    }
}

/// Returns the lion: two inputs, `v2` from both, `v3` from `v2`; the first output depends on both, all others on `v3`.
fn lion(n_outputs: usize) -> LinearGraph {
    let mut edges = vec![(0, 2), (1, 2), (2, 3), (2, 4)];
    edges.extend((0..n_outputs).map(|k| (3, 4 + k)));
    let edges: Vec<_> = edges.into_iter().map(|(s, t)| (s, t, Label::Var)).collect();
    LinearGraph::from_edges(2, 2, n_outputs, &edges).unwrap()
}

#[test]
fn the_lions_optima_are_found() {
    // Naumann 1999, figure 5: by vertices 12 and 14, by edges and faces 11 and 13.
    for (n_outputs, by_vertices, by_faces) in [(4, 12, 11), (5, 14, 13)] {
        let linear = lion(n_outputs);
        let vertices = chainrule_accumulate::markowitz::run(&linear, &Budget::default(), Ties::Lowest).program.unwrap();
        assert_eq!(vertices.count(Counting::Plain).mul, by_vertices);
        let program = face::run(&linear, &Budget::default()).program.unwrap();
        assert!(check::program(&linear, &program, 5).agrees());
        let counts = program.count(Counting::Plain);
        assert_eq!((counts.mul, counts.add), (by_faces, 1), "lion with {n_outputs} outputs");
    }
}

#[test]
fn counts_on_the_literatures_graphs() {
    let table = [
        ("lit_lion4", 11),
        ("lit_guenterD_lion5", 13),
        ("lit_guenterC_reconstructed", 8),
        ("lit_bat_reconstructed", 24),
        ("RobotArm_6DOF", 221),
        ("HumanHeartDipole", 148),
        ("PropaneCombustion", 88),
    ];
    for (name, mul) in table {
        let Some(linear) = support::graphs::load(name) else { continue };
        let program = face::run(&linear, &Budget::default()).program.unwrap();
        assert!(check::program(&linear, &program, 5).agrees(), "{name}");
        assert!(program.count(Counting::Plain).mul <= mul, "{name}: {:?}", program.count(Counting::Plain));
    }
}

#[test]
fn large_graphs_are_right_and_repeat() {
    let (mut g, roots) = layered(Semantics::Algebraic, 3000, 6, 6, 5);
    let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
    let linear = LinearGraph::new(&mut g, &roots, &inputs).unwrap();
    let some: Vec<(usize, usize)> = (0..6).map(|r| (r, (2 * r + 1) % 6)).collect();
    for linear in [linear.clone(), linear.ask_only(&some).unwrap()] {
        for rules in [Rules::Naumann, Rules::Extended] {
            let options = Options { rules, ties: Ties::Highest, ..Options::default() };
            let program = face::greedy::run(&linear, &Budget::default(), &options).program.unwrap();
            assert!(check::program(&linear, &program, 9).agrees());
            assert_eq!(face::greedy::run(&linear, &Budget::default(), &options).program.unwrap(), program);
        }
    }
}

#[test]
fn budgets_end_the_elimination() {
    let (mut g, roots) = layered(Semantics::Algebraic, 3000, 6, 6, 5);
    let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
    let linear = LinearGraph::new(&mut g, &roots, &inputs).unwrap();
    let few = Budget { products: 3000, ..Budget::default() };
    assert_eq!(face::run(&linear, &few).stop, StopReason::ProductBudget);
    let lazy = Budget { scores: 100, ..Budget::default() };
    assert_eq!(face::greedy::run(&linear, &lazy, &Options::default()).stop, StopReason::ScoreBudget);
}

/// Returns the fewest eliminations, by trying every order.
fn by_all_orders(graph: &LineGraph<'_, Kinds>) -> u64 {
    let faces: Vec<_> = graph.faces().collect();
    let after = faces.into_iter().map(|(i, j)| {
        let mut graph = graph.clone();
        graph.eliminate(i, j);
        1 + by_all_orders(&graph)
    });
    after.min().unwrap_or(0)
}

proptest! {
    #![proptest_config(support::config(400, 32))]

    #[test]
    fn exact_search_finds_what_trying_every_order_finds(
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ask in any::<u64>(),
    ) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        for linear in support::whole_and_part(linear, ask) {
            for rules in [Rules::Naumann, Rules::Extended] {
                let graph = LineGraph::new(&linear, Kinds, rules);
                let options = exact::Options { rules, ..exact::Options::default() };
                if graph.n_faces() > 6 {
                    continue;
                }
                let found = exact::search(&linear, &Budget::default(), &options).unwrap();
                prop_assert_eq!(found.stop, StopReason::Done);
                prop_assert!(found.is_optimal());
                prop_assert!(check::program(&linear, &found.program, 3).agrees());
                if graph.linear().pairs().is_none() {
                    prop_assert_eq!(found.multiplications, by_all_orders(&graph));
                } else {
                    prop_assert!(found.multiplications <= by_all_orders(&graph));
                }
            }
        }
    }
}

#[test]
fn the_optima_of_the_literature_are_proved() {
    let graphs = [
        (Some(lion(4)), 11),
        (Some(lion(5)), 13),
        (support::graphs::load("lit_lion4"), 11),
        (support::graphs::load("lit_guenterD_lion5"), 13),
        (support::graphs::load("lit_guenterC_reconstructed"), 8),
    ];
    for (linear, optimum) in graphs {
        let Some(linear) = linear else { continue };
        for rules in [Rules::Naumann, Rules::Extended] {
            let options = exact::Options { rules, ..exact::Options::default() };
            let found = exact::search(&linear, &Budget::default(), &options).unwrap();
            assert_eq!((found.multiplications, found.stop), (optimum, StopReason::Done));
            assert!(found.is_optimal() && check::program(&linear, &found.program, 3).agrees());
        }
    }
}

/// Takes minutes without optimisation, hence ignored by default.
#[test]
#[ignore = "takes minutes"]
fn the_bats_optimum_is_proved() {
    let Some(linear) = support::graphs::load("lit_bat_reconstructed") else { return };
    for rules in [Rules::Naumann, Rules::Extended] {
        let options = exact::Options { rules, ..exact::Options::default() };
        let found = exact::search(&linear, &Budget::default(), &options).unwrap();
        assert_eq!((found.multiplications, found.stop), (22, StopReason::Done));
        assert!(found.is_optimal() && check::program(&linear, &found.program, 3).agrees());
    }
}

#[test]
fn the_search_ends_by_its_budget_with_a_program() {
    let Some(linear) = support::graphs::load("lit_bat_reconstructed") else { return };
    let options = exact::Options { states: 500, ..exact::Options::default() };
    let found = exact::search(&linear, &Budget::default(), &options).unwrap();
    assert_eq!(found.stop, StopReason::EvaluationBudget);
    assert!((20..=22).contains(&found.lower_bound) && found.multiplications <= 24);
    assert!(!found.is_optimal() && check::program(&linear, &found.program, 3).agrees());
}
