//! Searches on graphs that are too hard stop when their work is used up, and report it.

use chainrule_accumulate::{Budget, Counting, Label, LinearGraph, StopReason};
use chainrule_search::{annealing, exact};

/// Returns a graph in which about every other pair of vertices has an edge, by a rule without pattern.
fn dense(n: usize) -> LinearGraph {
    let mut edges = Vec::new();
    for k in 2..n + 4 {
        for i in 0..k.min(n + 2) {
            if (i * 7 + k * 13 + i * k) % 5 < 3 && !(i < 2 && k >= n + 2) {
                edges.push((i, k, Label::Var));
            }
        }
    }
    LinearGraph::from_edges(2, n, 2, &edges).unwrap_or_else(|e| panic!("{e:?}"))
}

fn budget(work: u64) -> Budget {
    Budget { work, ..Budget::default() }
}

#[test]
fn annealing_stops_by_its_work() {
    let graph = dense(80);
    let options = annealing::Options::plain(1);
    let few = annealing::order(&graph, &budget(2_000_000), &options);
    let more = annealing::order(&graph, &budget(20_000_000), &options);
    assert_eq!((few.stop, more.stop), (StopReason::WorkBudget, StopReason::WorkBudget));
    assert!(few.n_evaluations < more.n_evaluations && more.n_evaluations < Budget::EVALUATIONS);
    assert!(few.cost.is_some() && more.cost <= more.start_cost);
    // Work is counted, not timed: the result is reproducible.
    let again = annealing::order(&graph, &budget(2_000_000), &options);
    assert_eq!((few.order, few.n_evaluations), (again.order, again.n_evaluations));
    // Even no work at all gives an order.
    let none = annealing::order(&graph, &budget(0), &options);
    assert_eq!((none.order.len(), none.n_evaluations), (graph.intermediates().len(), 0));
}

#[test]
fn exact_searches_stop_by_their_work() {
    let graph = dense(60);
    let options = exact::Options::new(Counting::Plain);
    let search = |work| exact::vertex_order(&graph, &budget(work), &options, &[]);
    let (few, more) = (search(1_000_000), search(30_000_000));
    assert_eq!((few.stop, more.stop), (StopReason::WorkBudget, StopReason::WorkBudget));
    // Bounds are valid and improve with work; the order to be beaten stays.
    assert!(0 < few.bound && few.bound <= more.bound && more.bound <= more.cost, "{few:?} {more:?}");
    assert!(few.evaluations < exact::SETS);
    assert_eq!(search(1_000_000), few);
    // A solved problem is done, whatever work is left.
    let small = dense(6);
    let solved = exact::vertex_order(&small, &Budget::default(), &options, &[]);
    assert_eq!((solved.stop, solved.is_proved()), (StopReason::Done, true));
}
