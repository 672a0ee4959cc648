//! Simulated annealing: its costs are those of programs, it finds the best orders of small graphs, and it reaches the
//! best known counts of the literature's graphs.
#![allow(clippy::unwrap_used)]

#[path = "../../accumulate/tests/support/mod.rs"]
mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::edge;
use chainrule_accumulate::{Budget, Counting, LinearGraph, StopReason, VertexId, check, vertex};
use chainrule_search::annealing::{self, Options};
use chainrule_search::metagraph::{Metagraph, Restriction};
use chainrule_search::{Objective, edge_annealing};
use proptest::prelude::*;
use std::time::Instant;
use support::graphs::load;

const COUNTINGS: [Counting; 3] = [Counting::Plain, Counting::UnitFree, Counting::Folded];

fn budget(evaluations: u64) -> Budget {
    Budget { evaluations, ..Budget::default() }
}

/// Returns the cost of the program of an order, without sums of parallel edges.
fn program_cost(linear: &LinearGraph, order: &[VertexId], counting: Counting, objective: Objective) -> u64 {
    let program = vertex::run(linear, &Budget::default(), order).program.unwrap();
    let counts = program.count(counting);
    match objective {
        Objective::Multiplications => counts.mul,
        Objective::Operations => counts.mul + counts.add,
    }
}

proptest! {
    #![proptest_config(support::config(400, 3))]

    #[test]
    fn costs_are_those_of_programs(bytes in proptest::collection::vec(any::<u8>(), 0..120), ask in any::<u64>()) {
        let linear = support::merged(&support::linear(&mut Unstructured::new(&bytes)).unwrap());
        for linear in support::whole_and_part(linear, ask) {
            let mut order: Vec<VertexId> = linear.intermediates().collect();
            let n = order.len();
            if n > 0 {
                order.rotate_left((ask % n as u64) as usize);
                order.swap(0, n / 2);
            }
            for counting in COUNTINGS {
                for objective in [Objective::Multiplications, Objective::Operations] {
                    let cost = annealing::cost(&linear, &order, counting, objective).unwrap();
                    let expected = program_cost(&linear, &order, counting, objective);
                    prop_assert_eq!(cost, expected, "{:?} {:?} {:?} of {:?}", counting, objective, order, linear);
                }
            }
        }
    }
}

/// Visits all orders, by Heap's algorithm.
fn for_each_order(order: &mut Vec<VertexId>, n: usize, visit: &mut impl FnMut(&[VertexId])) {
    if n <= 1 {
        visit(order);
        return;
    }
    for i in 0..n {
        for_each_order(order, n - 1, visit);
        order.swap(if n.is_multiple_of(2) { i } else { 0 }, n - 1);
    }
}

proptest! {
    #![proptest_config(support::config(40, 4))]

    #[test]
    fn small_graphs_are_solved(bytes in proptest::collection::vec(any::<u8>(), 60..120), ask in any::<u64>()) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        prop_assume!(linear.intermediates().len() <= 6);
        for linear in support::whole_and_part(linear, ask) {
            for counting in COUNTINGS {
                let options = Options { counting, objective: Objective::Operations, seed: ask };
                let mut best = u64::MAX;
                let mut order: Vec<VertexId> = linear.intermediates().collect();
                let n = order.len();
                for_each_order(&mut order, n, &mut |order| {
                    best = best.min(annealing::cost(&linear, order, counting, Objective::Operations).unwrap());
                });
                let search = annealing::order(&linear, &Budget::default(), &options);
                prop_assert_eq!(search.cost, Some(best));
                prop_assert_eq!(search.stop, StopReason::Done);
                let program = annealing::run(&linear, &Budget::default(), &options).program.unwrap();
                prop_assert!(check::program(&linear, &program, 7).agrees());
            }
        }
    }
}

/// The best known counts: plain, by another program in 50 s, and unit-free.
#[test]
fn the_best_known_counts_are_reached() {
    let table = [
        ("RoeFlux_1d", 295, 216),
        ("RobotArm_6DOF", 221, 157),
        ("HumanHeartDipole", 148, 48),
        ("PropaneCombustion", 88, 24),
        ("g", 409, 302),
        ("BlackScholes_Jacobian", 297, 250),
        ("RoeFlux_3d", 606, 447),
    ];
    for (name, plain, unit_free) in table {
        let Some(linear) = load(name) else { continue };
        for (counting, known) in [(Counting::Plain, plain), (Counting::UnitFree, unit_free)] {
            let start = Instant::now();
            let options = Options { counting, ..Options::plain(1) };
            let n_evaluations = match (counting, name) {
                (Counting::Plain, "RoeFlux_3d" | "BlackScholes_Jacobian") => 100_000,
                (Counting::Plain, _) => 50_000,
                _ => 20_000,
            };
            let search = annealing::order(&linear, &budget(n_evaluations), &options);
            let seconds = start.elapsed().as_secs_f64();
            println!("{name} {counting:?}: {} (known: {known}) in {seconds:.2} s", search.cost.unwrap());
            assert!(search.cost.unwrap() <= known, "{name} {counting:?}");
            let program = vertex::run(&linear, &Budget::default(), &search.order).program.unwrap();
            assert_eq!(Some(program.count(counting).mul), search.cost);
            assert!(check::program(&linear, &program, 1).agrees());
        }
    }
}

proptest! {
    #![proptest_config(support::config(60, 8))]

    /// Histories are correct, cost the number that the search returns, and are shortest paths through small metagraphs.
    #[test]
    fn edge_histories_of_small_graphs(bytes in proptest::collection::vec(any::<u8>(), 0..90), ask in any::<u64>()) {
        let linear = support::merged(&support::linear(&mut Unstructured::new(&bytes)).unwrap());
        let some = support::some_pairs(&linear, ask);
        let budget = budget(6000);
        if linear.n_edges() <= 9 {
            let search = edge_annealing::history(&linear, &budget, &Options::plain(ask));
            if let Some(metagraph) = Metagraph::new(&linear, &budget, Restriction::Edges) {
                prop_assert_eq!(search.cost, Some(metagraph.cost()), "{:?}", linear);
            }
        }
        for linear in [linear.clone(), linear.ask_only(&some).unwrap()] {
            for counting in COUNTINGS {
                for objective in [Objective::Multiplications, Objective::Operations] {
                    let options = Options { counting, objective, seed: ask };
                    let search = edge_annealing::history(&linear, &budget, &options);
                    let program = edge::run(&linear, &budget, &search.history).program.unwrap();
                    prop_assert!(check::program(&linear, &program, 7).agrees());
                    let counts = program.count(counting);
                    let adds = if objective == Objective::Operations { counts.add } else { 0 };
                    prop_assert_eq!(search.cost, Some(counts.mul + adds), "{:?} on {:?}", options, linear);
                    prop_assert!(search.cost <= search.start_cost);
                }
            }
        }
    }
}

/// Edge histories reach the literature's optima, and soon beat the best vertex order of one of its graphs.
#[test]
fn edges_go_below_vertices() {
    let table = [
        ("lit_lion4", 11, 2000),
        ("lit_guenterD_lion5", 13, 2000),
        ("lit_guenterC_reconstructed", 8, 2000),
        ("lit_bat_reconstructed", 23, 2000),
        ("g", 408, 60_000),
        ("BlackScholes_Jacobian", 297, 60_000),
    ];
    for (name, known, n_evaluations) in table {
        let Some(linear) = load(name) else { continue };
        let start = Instant::now();
        let search = edge_annealing::history(&linear, &budget(n_evaluations), &Options::plain(1));
        let seconds = start.elapsed().as_secs_f64();
        println!("{name}: {} (known: {known}) in {seconds:.2} s", search.cost.unwrap());
        assert!(search.cost.unwrap() <= known, "{name}");
        let program = edge::run(&linear, &Budget::default(), &search.history).program.unwrap();
        assert_eq!(Some(program.count(Counting::Plain).mul), search.cost);
        assert!(check::program(&linear, &program, 1).agrees());
        let again = edge_annealing::history(&linear, &budget(n_evaluations), &Options::plain(1));
        assert_eq!(again.history, search.history);
    }
}

#[test]
fn the_same_seed_finds_the_same_order() {
    let Some(linear) = load("g") else { return };
    let orders = [1, 1, 2].map(|seed| annealing::order(&linear, &budget(3000), &Options::plain(seed)));
    assert_eq!((&orders[0].order, orders[0].cost), (&orders[1].order, orders[1].cost));
    assert_ne!(orders[0].order, orders[2].order);
    assert_eq!(orders[0].stop, StopReason::EvaluationBudget);
}

/// Too many vertices for bit sets of moderate length: a greedy order, immediately.
#[test]
fn large_graphs_take_a_greedy_order() {
    use chainrule_accumulate::Label::Var;
    let n = 3000_usize;
    let edges: Vec<_> = (0..=n).flat_map(|i| [(i, i + 1, Var), (i.saturating_sub(1), i + 1, Var)]).collect();
    let linear = LinearGraph::from_edges(1, n, 1, &edges).unwrap();
    let search = annealing::order(&linear, &Budget::default(), &Options::plain(1));
    assert_eq!((search.cost, search.order.len(), search.n_evaluations), (None, n, 0));
    let outcome = annealing::run(&linear, &Budget::default(), &Options::plain(1));
    assert!(check::program(&linear, &outcome.program.unwrap(), 1).agrees());
}
