//! Edge elimination: correct for any history, the metagraph of the paper, and counts of the literature.
#![allow(clippy::unwrap_used)]

#[path = "../../accumulate/tests/support/mod.rs"]
mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::edge::{self, Direction, EdgeElimination, Step};
use chainrule_accumulate::edge_greedy::{self, Options, Score, Ways};
use chainrule_accumulate::greedy::Ties;
use chainrule_accumulate::{Budget, Counting, Label::Var, LinearGraph, VertexId, check, vertex};
use chainrule_base::Id;
use chainrule_search::metagraph::{Metagraph, Restriction};
use chainrule_search::{annealing, edge_annealing, edge_exact};
use proptest::prelude::*;
use support::graphs::load;

fn all_options() -> impl Iterator<Item = Options> {
    let ways = [Ways::Front, Ways::Back, Ways::Mixed];
    let scores = [Score::Markowitz, Score::FillIn, Score::Vertex];
    let ties = [Ties::Lowest, Ties::Highest, Ties::Forward, Ties::Backward, Ties::Seeded(3)];
    let countings = [Counting::Plain, Counting::UnitFree, Counting::Folded];
    ways.into_iter().flat_map(move |ways| {
        scores.into_iter().flat_map(move |score| {
            ties.into_iter().flat_map(move |ties| countings.map(|counting| Options { ways, score, ties, counting }))
        })
    })
}

proptest! {
    #![proptest_config(support::config(300, 5))]

    #[test]
    fn greedy_histories_compute_the_sum_over_paths(bytes in proptest::collection::vec(any::<u8>(), 0..120), ask in any::<u64>()) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        for linear in support::whole_and_part(linear, ask) {
            for (idx, options) in all_options().enumerate() {
                // Each graph gets some of the options; every option occurs often.
                if !(idx as u64).wrapping_add(ask).is_multiple_of(7) {
                    continue;
                }
                let program = edge_greedy::run(&linear, &Budget::default(), &options).program.unwrap();
                prop_assert!(check::program(&linear, &program, 7).agrees(), "{options:?} on {linear:?}");
                let history = edge_greedy::history(&linear, &Budget::default(), &options).unwrap();
                prop_assert_eq!(program, edge::run(&linear, &Budget::default(), &history).program.unwrap());
            }
        }
    }

    /// Random steps, many of them impossible.
    #[test]
    fn any_history_computes_the_sum_over_paths(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        steps in proptest::collection::vec((0_usize..14, 0_usize..14, 0_u8..3), 0..60),
        ask in any::<u64>(),
    ) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        let some = support::some_pairs(&linear, ask);
        let history: Vec<Step> = steps
            .iter()
            .map(|&(i, j, kind)| match kind {
                0 => Step::Edge(VertexId::new(i.min(j)), VertexId::new(i.max(j)), Direction::Front),
                1 => Step::Edge(VertexId::new(i.min(j)), VertexId::new(i.max(j)), Direction::Back),
                _ => Step::Vertex(VertexId::new(i)),
            })
            .collect();
        for linear in [linear.clone(), linear.ask_only(&some).unwrap()] {
            let mut elimination = EdgeElimination::new(&linear);
            let mut expected = 0;
            for &step in &history {
                if let Step::Edge(i, j, direction) = step {
                    let can = elimination.can_eliminate(i, j, direction);
                    let cost = elimination.cost(i, j, direction, Counting::Plain);
                    prop_assert_eq!(elimination.step(step), can);
                    expected += if can { cost } else { 0 };
                } else {
                    elimination.step(step);
                }
            }
            let program = edge::run(&linear, &Budget::default(), &history).program.unwrap();
            prop_assert!(check::program(&linear, &program, 7).agrees(), "{history:?} on {linear:?}");
            if linear.pairs().is_none() {
                prop_assert!(expected <= program.count(Counting::Plain).mul);
            }
        }
    }

    /// Vertex elimination is the elimination of all out-edges, or of all in-edges.
    #[test]
    fn vertices_are_sequences_of_edges(bytes in proptest::collection::vec(any::<u8>(), 0..120), turn in any::<usize>()) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        let mut order: Vec<VertexId> = linear.intermediates().collect();
        let n = order.len().max(1);
        order.rotate_left(turn % n);
        let vertices = vertex::run(&linear, &Budget::default(), &order).program.unwrap();
        let history: Vec<Step> = order.iter().map(|v| Step::Vertex(*v)).collect();
        let front = edge::run(&linear, &Budget::default(), &history).program.unwrap();
        let mut elimination = EdgeElimination::new(&linear);
        for &v in &order {
            for i in elimination.predecessors(v).collect::<Vec<_>>() {
                elimination.eliminate(i, v, Direction::Back);
            }
        }
        let back = elimination.finish();
        for counting in [Counting::Plain, Counting::UnitFree, Counting::Folded] {
            prop_assert_eq!(front.count(counting), vertices.count(counting));
            prop_assert_eq!(back.count(counting), vertices.count(counting));
        }
        prop_assert!(check::program(&linear, &back, 7).agrees());
    }

    /// Every restriction costs at least as much as none, and the shortest path is a history of its cost.
    #[test]
    fn shortest_paths_are_programs(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let linear = support::merged(&support::linear(&mut Unstructured::new(&bytes)).unwrap());
        prop_assume!(linear.n_edges() <= 10);
        let budget = Budget { evaluations: 3000, ..Budget::default() };
        let Some(edges) = Metagraph::new(&linear, &budget, Restriction::Edges) else { return Ok(()) };
        let (history, cost) = edges.shortest_path();
        let program = edge::run(&linear, &budget, &history).program.unwrap();
        prop_assert_eq!(program.count(Counting::Plain).mul, cost);
        prop_assert!(check::program(&linear, &program, 7).agrees());
        prop_assert_eq!(edge_exact::least(&linear, &Budget::default(), cost), Some(cost));
        prop_assert_eq!(edge_exact::least(&linear, &Budget::default(), cost + 3), Some(cost));
        for stages in 0..3 {
            let some = Budget { evaluations: stages, ..budget };
            prop_assert!(edge_exact::least(&linear, &some, u64::MAX).unwrap() <= cost);
        }
        for restriction in [Restriction::Front, Restriction::Back, Restriction::Vertices] {
            let restricted = Metagraph::new(&linear, &budget, restriction).unwrap();
            prop_assert!(restricted.stages.len() <= edges.stages.len());
            prop_assert!(restricted.cost() >= cost, "{restriction:?} on {linear:?}");
        }
        for options in all_options() {
            let greedy = edge_greedy::run(&linear, &budget, &options).program.unwrap();
            prop_assert!(greedy.count(Counting::Plain).mul >= cost);
        }
    }
}

/// Figures 8 to 10: 14 stages; 7 by forward elimination, 8 by backward, 4 by vertices, 3 by none of these.
#[test]
fn the_metagraph_of_the_papers_example() {
    // x(-1), x(0); v(1), v(2); v(3).
    let edges = [(0, 3, Var), (1, 2, Var), (2, 3, Var), (2, 4, Var), (3, 4, Var)];
    let linear = LinearGraph::from_edges(2, 2, 1, &edges).unwrap();
    let budget = Budget::default();
    let stages = |restriction| {
        let mut stages = Metagraph::new(&linear, &budget, restriction).unwrap().stages;
        stages.sort_unstable();
        stages
    };
    let all = stages(Restriction::Edges);
    let [front, back, vertices] = [Restriction::Front, Restriction::Back, Restriction::Vertices].map(stages);
    assert_eq!((all.len(), front.len(), back.len(), vertices.len()), (14, 7, 8, 4));
    assert!([&front, &back, &vertices].iter().all(|some| some.iter().all(|stage| all.contains(stage))));
    let none = all.iter().filter(|s| !front.contains(s) && !back.contains(s) && !vertices.contains(s)).count();
    assert_eq!(none, 3);
    // Stages 0, 3, 7 and 13 are common to forward and backward elimination, and reached by vertex elimination.
    let both: Vec<_> = front.iter().filter(|stage| back.contains(stage)).collect();
    assert_eq!(both, vertices.iter().collect::<Vec<_>>());
    // The Jacobian: an edge from each input.
    let jacobian = [(0, 4), (1, 4)].map(|(i, k)| (VertexId::new(i), VertexId::new(k)));
    let all = Metagraph::new(&linear, &budget, Restriction::Edges).unwrap();
    let last: Vec<_> = all.stages.iter().zip(&all.transitions).filter(|(_, ways)| ways.is_empty()).collect();
    assert_eq!(last.len(), 1);
    assert_eq!(last[0].0, &jacobian);
}

/// Figure 5: 15 and 14 multiplications by vertices, 13 by edges. The other graphs are also from the literature.
#[test]
fn edges_are_better_than_vertices() {
    let edges: Vec<_> = [(0, 2), (1, 2), (2, 3), (2, 4), (3, 4), (3, 5), (3, 6), (3, 7), (3, 8)]
        .iter()
        .map(|(i, k)| (*i, *k, Var))
        .collect();
    let figure_5 = LinearGraph::from_edges(2, 2, 5, &edges).unwrap();
    let table = [
        ("figure 5", Some(figure_5), [14, 13]),
        ("lit_lion4", load("lit_lion4"), [12, 11]),
        ("lit_guenterD_lion5", load("lit_guenterD_lion5"), [14, 13]),
        ("lit_guenterC_reconstructed", load("lit_guenterC_reconstructed"), [8, 8]),
    ];
    for (name, linear, expected) in table {
        let Some(linear) = linear else { continue };
        assert_eq!(optima(&linear), expected, "{name}");
    }
}

/// Returns the fewest multiplications by vertices and by edges.
fn optima(linear: &LinearGraph) -> [u64; 2] {
    let budget = Budget { evaluations: 2_000_000, ..Budget::default() };
    let cost = |restriction| Metagraph::new(linear, &budget, restriction).unwrap().cost();
    [Restriction::Vertices, Restriction::Edges].map(cost)
}

#[test]
fn edges_are_better_than_vertices_on_the_bat() {
    let Some(bat) = load("lit_bat_reconstructed") else { return };
    let vertices = Metagraph::new(&bat, &Budget::default(), Restriction::Vertices).unwrap().cost();
    let options = annealing::Options::plain(1);
    let edges = edge_annealing::history(&bat, &Budget::default(), &options).cost;
    let budget = Budget { evaluations: 2_000_000, ..Budget::default() };
    assert_eq!((vertices, edges, edge_exact::least(&bat, &budget, 23)), (24, Some(23), Some(23)));
}

/// Best plain and unit-free counts of greedy histories; counts by directions and score are printed.
#[test]
fn what_greedy_histories_reach() {
    let table = [
        ("RoeFlux_1d", [305, 229]),
        ("RobotArm_6DOF", [221, 157]),
        ("HumanHeartDipole", [148, 48]),
        ("PropaneCombustion", [88, 24]),
        ("g", [441, 316]),
        ("BlackScholes_Jacobian", [326, 269]),
        ("RoeFlux_3d", [639, 479]),
    ];
    for (name, expected) in table {
        let Some(linear) = load(name) else { continue };
        let mut best = [u64::MAX; 2];
        for ways in [Ways::Front, Ways::Back, Ways::Mixed] {
            for score in [Score::Markowitz, Score::FillIn, Score::Vertex] {
                let start = std::time::Instant::now();
                let mut found = [u64::MAX; 2];
                for options in all_options().filter(|o| o.ways == ways && o.score == score) {
                    let program = edge_greedy::run(&linear, &Budget::default(), &options).program.unwrap();
                    for (found, counting) in found.iter_mut().zip([Counting::Plain, Counting::UnitFree]) {
                        *found = program.count(counting).mul.min(*found);
                    }
                }
                println!("{name} {ways:?} {score:?}: {found:?} in {:.3} s", start.elapsed().as_secs_f64());
                for (best, found) in best.iter_mut().zip(found) {
                    *best = found.min(*best);
                }
            }
        }
        assert_eq!(best, expected, "{name}");
    }
}
