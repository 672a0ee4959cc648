//! Exact vertex elimination against all orders of small graphs, and on the literature's graphs.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../../accumulate/tests/support/mod.rs"]
mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::{Budget, Counting, LinearGraph, VertexId, vertex};
use chainrule_base::Id;
use chainrule_search::exact::{Optimum, Options, vertex_order};
use chainrule_search::{Objective, annealing};
use proptest::prelude::*;
use support::{config, graphs, linear};

fn multiplications(linear: &LinearGraph, order: &[VertexId], counting: Counting) -> u64 {
    vertex::run(linear, &Budget::default(), order).program.unwrap().count(counting).mul
}

/// Returns the fewest multiplications over all orders.
fn by_all_orders(linear: &LinearGraph, counting: Counting) -> u64 {
    let mut order: Vec<VertexId> = linear.intermediates().collect();
    let mut least = u64::MAX;
    permute(&mut order, 0, &mut |order| least = least.min(multiplications(linear, order, counting)));
    least
}

fn permute(order: &mut [VertexId], fixed: usize, visit: &mut impl FnMut(&[VertexId])) {
    if fixed == order.len() {
        return visit(order);
    }
    for other in fixed..order.len() {
        order.swap(fixed, other);
        permute(order, fixed + 1, visit);
        order.swap(fixed, other);
    }
}

fn search(linear: &LinearGraph, counting: Counting, cluster: usize, beat: &[VertexId]) -> Optimum {
    vertex_order(linear, &Budget::default(), &Options { counting, cluster }, beat)
}

proptest! {
    #![proptest_config(config(400, 20))]

    #[test]
    fn no_order_is_better(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let linear = linear(&mut Unstructured::new(&bytes)).unwrap();
        prop_assume!(linear.intermediates().len() <= 6);
        for counting in [Counting::Plain, Counting::UnitFree] {
            let least = by_all_orders(&linear, counting);
            // Clusters of one vertex are only the cuts; clusters of eight are the whole graph.
            for cluster in [1, 3, 8] {
                let best = search(&linear, counting, cluster, &[]);
                prop_assert!(best.is_proved());
                prop_assert_eq!(best.cost, least);
                prop_assert_eq!(multiplications(&linear, &best.order, counting), least);
                prop_assert_eq!(best.order.len(), linear.intermediates().len());
            }
        }
    }

    /// With too many orders to try them all, bounds of different kinds lead to the same number.
    #[test]
    fn bounds_of_all_kinds_agree(bytes in prop::collection::vec(any::<u8>(), 100..300)) {
        let linear = linear(&mut Unstructured::new(&bytes)).unwrap();
        for counting in [Counting::Plain, Counting::UnitFree] {
            let options = annealing::Options { counting, objective: Objective::Multiplications, seed: 1 };
            let annealed = annealing::order(&linear, &Budget { evaluations: 300, ..Budget::default() }, &options).order;
            let costs = [(1, &[][..]), (2, &annealed), (4, &[]), (8, &annealed)].map(|(cluster, beat)| {
                let best = search(&linear, counting, cluster, beat);
                (best.cost, best.is_proved())
            });
            prop_assert!(costs.iter().all(|c| *c == costs[0] && c.1), "{costs:?}");
            prop_assert!(costs[0].0 <= multiplications(&linear, &annealed, counting));
        }
    }

    #[test]
    fn bounds_hold_for_any_budget(bytes in prop::collection::vec(any::<u8>(), 0..200), evaluations in 0_u64..6) {
        let linear = linear(&mut Unstructured::new(&bytes)).unwrap();
        prop_assume!(linear.intermediates().len() <= 6);
        let budget = Budget { evaluations, work: u64::MAX, ..Budget::default() };
        for counting in [Counting::Plain, Counting::UnitFree] {
            let best = vertex_order(&linear, &budget, &Options { counting, cluster: 1 }, &[]);
            let least = by_all_orders(&linear, counting);
            prop_assert!(best.bound <= least && least <= best.cost);
            prop_assert_eq!(multiplications(&linear, &best.order, counting), best.cost);
        }
    }
}

/// The best known vertex orders are proved.
#[test]
fn graphs_of_the_literature() {
    let known = [
        ("lit_lion4", 12),
        ("lit_guenterD_lion5", 14),
        ("lit_guenterC_reconstructed", 8),
        ("lit_bat_reconstructed", 24),
        ("PropaneCombustion", 88),
        ("HumanHeartDipole", 148),
        ("RobotArm_6DOF", 221),
    ];
    for (name, expected) in known {
        let Some(linear) = graphs::load(name) else { return };
        let best = search(&linear, Counting::Plain, 12, &[]);
        assert_eq!((best.cost, best.is_proved()), (expected, true), "{name}");
        assert_eq!(multiplications(&linear, &best.order, Counting::Plain), expected, "{name}");
    }
}

/// With free products by 1 and -1: proved by safe eliminations and bounds alone, from the annealed order.
#[test]
fn graphs_of_the_literature_with_free_products() {
    for (name, expected) in [("PropaneCombustion", 24), ("HumanHeartDipole", 48)] {
        let Some(linear) = graphs::load(name) else { return };
        let counting = Counting::UnitFree;
        let options = annealing::Options { counting, objective: Objective::Multiplications, seed: 1 };
        let annealed = annealing::order(&linear, &Budget::default(), &options).order;
        let best = search(&linear, counting, 12, &annealed);
        assert_eq!((best.cost, best.is_proved(), best.evaluations), (expected, true, 0), "{name}");
    }
}

#[test]
fn a_graph_too_large_for_a_search_has_a_bound() {
    // Two fully connected rows of intermediates: no elimination is safe.
    let n = 300;
    let v = chainrule_accumulate::Label::Var;
    let mut edges = Vec::new();
    for i in 0..n {
        edges.extend([(i % 2, 2 + i, v), ((i + 1) % 2, 2 + i, v)]);
        edges.extend((0..3).map(|k| (2 + i, 2 + n + (i + k) % n, v)));
        edges.extend([(2 + n + i, 2 + 2 * n + i % 2, v), (2 + n + i, 2 + 2 * n + (i + 1) % 2, v)]);
    }
    let linear = LinearGraph::from_edges(2, 2 * n, 2, &edges).unwrap();
    let ascending: Vec<VertexId> = linear.intermediates().collect();
    let best = search(&linear, Counting::Plain, 8, &ascending);
    assert!(best.bound <= best.cost && best.evaluations == 0, "{best:?}");
    assert_eq!(best.cost, multiplications(&linear, &ascending, Counting::Plain));
    assert_eq!(best.order.iter().map(|v| v.index()).max(), Some(2 * n + 1));
}

/// The annealed orders of these graphs are optimal; the larger one takes 2,100,000 sets. `cargo test --release -p
/// chainrule-search --test exact -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes in release mode"]
fn annealed_orders_that_are_proved() {
    for (name, least, cluster) in [("RoeFlux_1d", 295, 18), ("BlackScholes_Jacobian", 297, 20)] {
        let Some(linear) = graphs::load(name) else { return };
        let annealed = annealing::order(&linear, &Budget::default(), &annealing::Options::plain(1)).order;
        let best = search_longer(&linear, cluster, 3_000_000, &annealed);
        assert_eq!((best.cost, best.is_proved()), (least, true), "{name}");
    }
}

fn search_longer(linear: &LinearGraph, cluster: usize, evaluations: u64, beat: &[VertexId]) -> Optimum {
    let start = std::time::Instant::now();
    let budget = Budget { evaluations, work: u64::MAX, ..Budget::default() };
    let best = vertex_order(linear, &budget, &Options { counting: Counting::Plain, cluster }, beat);
    println!(
        "cluster {cluster}: {} to {}, {} hard, {} sets, {:.1?}",
        best.bound,
        best.cost,
        best.hard,
        best.evaluations,
        start.elapsed()
    );
    best
}

/// Prints the remaining gaps of the other graphs.
#[test]
#[ignore = "takes minutes"]
fn open_graphs() {
    for (name, known) in [("g", 409), ("RoeFlux_3d", 606)] {
        let Some(linear) = graphs::load(name) else { return };
        let annealed = annealing::order(&linear, &Budget::default(), &annealing::Options::plain(1)).order;
        for (cluster, evaluations) in [(12, 1000), (16, 100_000)] {
            println!("{name}, known {known}");
            let best = search_longer(&linear, cluster, evaluations, &annealed);
            assert!(best.bound <= known && best.cost <= known, "{name}: {best:?}");
        }
    }
}
