//! Greedy vertex orders: correct on random graphs, and counts on the literature's graphs.
#![allow(clippy::unwrap_used)]

mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::greedy::{self, Options, Ties};
use chainrule_accumulate::{Budget, Counting, Score, StopReason, check, forward, reverse};
use proptest::prelude::*;
use std::time::Instant;
use support::graphs::load;

const COUNTINGS: [Counting; 3] = [Counting::Plain, Counting::UnitFree, Counting::Folded];
const TIES: [Ties; 5] = [Ties::Lowest, Ties::Highest, Ties::Forward, Ties::Backward, Ties::Seeded(5)];

fn all_options() -> impl Iterator<Item = Options> {
    let scores = Score::ALL.into_iter().flat_map(|score| TIES.map(|ties| (score, ties)));
    scores.flat_map(|(score, ties)| {
        COUNTINGS.into_iter().flat_map(move |counting| {
            [false, true].map(|degree_one_first| Options { score, ties, counting, degree_one_first })
        })
    })
}

proptest! {
    #![proptest_config(support::config(300, 2))]

    #[test]
    fn all_orders_compute_the_sum_over_paths(bytes in proptest::collection::vec(any::<u8>(), 0..120), ask in any::<u64>()) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        for linear in support::whole_and_part(linear, ask) {
            for (idx, options) in all_options().enumerate() {
                // Each graph gets some of the options; every option occurs often.
                if !(idx as u64).wrapping_add(ask).is_multiple_of(7) {
                    continue;
                }
                let program = greedy::run(&linear, &Budget::default(), &options).program.unwrap();
                prop_assert!(check::program(&linear, &program, 7).agrees(), "{options:?} on {linear:?}");
                let order = greedy::order(&linear, &Budget::default(), &options).unwrap();
                let again = chainrule_accumulate::vertex::run(&linear, &Budget::default(), &order).program.unwrap();
                prop_assert_eq!(program, again);
            }
        }
    }

    /// A vertex with one neighbour on a side comes first, whatever its score.
    #[test]
    fn degree_one_first(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        for score in Score::ALL {
            let options = Options { degree_one_first: true, ..Options::new(score) };
            let mut elimination = chainrule_accumulate::vertex::Elimination::new(&linear);
            for v in greedy::order(&linear, &Budget::default(), &options).unwrap() {
                let one = |v| {
                    let (before, behind) = elimination.degrees(v);
                    before.min(behind) <= 1
                };
                let left = linear.intermediates().filter(|u| elimination.can_eliminate(*u));
                prop_assert!(one(v) || !left.into_iter().any(one), "{score:?} took {v} of {linear:?}");
                elimination.eliminate(v);
            }
        }
    }
}

#[test]
fn forward_and_reverse_orders_cost_as_much_as_the_modes() {
    for name in ["RoeFlux_1d", "RobotArm_6DOF", "HumanHeartDipole", "PropaneCombustion", "g", "RoeFlux_3d"] {
        let Some(linear) = load(name) else { continue };
        let budget = Budget::default();
        for (score, mode) in
            [(Score::Forward, forward::run(&linear, &budget)), (Score::Reverse, reverse::run(&linear, &budget))]
        {
            let order = greedy::run(&linear, &budget, &Options::new(score)).program.unwrap();
            for counting in [Counting::Plain, Counting::UnitFree] {
                let mode = mode.program.as_ref().unwrap().count(counting).mul;
                assert_eq!(order.count(counting).mul, mode, "{name} {score:?} {counting:?}");
            }
        }
    }
}

/// Best plain and unit-free counts of greedy orders over all tie-breaking rules, degree one first or not; counts by
/// score are printed.
#[test]
fn costs_of_greedy_orders() {
    let table = [
        ("RoeFlux_1d", [313, 226]),
        ("RobotArm_6DOF", [221, 157]),
        ("HumanHeartDipole", [148, 48]),
        ("PropaneCombustion", [88, 24]),
        ("g", [429, 309]),
        ("BlackScholes_Jacobian", [307, 250]),
        ("RoeFlux_3d", [637, 447]),
    ];
    for (name, expected) in table {
        let Some(linear) = load(name) else { continue };
        let mut best = [u64::MAX; 2];
        for score in Score::ALL {
            let start = Instant::now();
            let mut best_of_score = [u64::MAX; 2];
            for options in all_options().filter(|o| o.score == score) {
                let program = greedy::run(&linear, &Budget::default(), &options).program.unwrap();
                for (best, counting) in best_of_score.iter_mut().zip([Counting::Plain, Counting::UnitFree]) {
                    *best = program.count(counting).mul.min(*best);
                }
            }
            println!("{name} {score:?}: {best_of_score:?} in {:.3} s", start.elapsed().as_secs_f64());
            for (best, found) in best.iter_mut().zip(best_of_score) {
                *best = found.min(*best);
            }
        }
        assert_eq!(best, expected, "{name}");
    }
}

#[test]
fn a_budget_stops_what_is_dear() {
    let Some(linear) = load("g") else { return };
    let budget = Budget { scores: 100, ..Budget::default() };
    let outcome = greedy::run(&linear, &budget, &Options::new(Score::Damage));
    assert_eq!((outcome.stop, outcome.program.is_none()), (StopReason::ScoreBudget, true));
    assert_eq!(greedy::run(&linear, &budget, &Options::new(Score::Markowitz)).stop, StopReason::Done);
}

/// A long chain with shortcuts: local scores are linear in it, up to logarithms; the score of all paths is stopped by
/// its budget.
#[test]
fn long_chains_take_moderate_work() {
    use chainrule_accumulate::{Label::Var, LinearGraph};
    let n = 5_000_usize;
    let edges: Vec<_> = (0..=n).flat_map(|i| [(i, i + 1, Var), (i.saturating_sub(2), i + 1, Var)]).collect();
    let linear = LinearGraph::from_edges(1, n, 1, &edges).unwrap();
    let budget = Budget { scores: 1_000_000, ..Budget::default() };
    for score in Score::ALL {
        let outcome = greedy::run(&linear, &budget, &Options { degree_one_first: true, ..Options::new(score) });
        if score == Score::PathLength {
            assert_eq!(outcome.stop, StopReason::ScoreBudget);
        } else {
            let program = outcome.program.unwrap();
            assert!(check::program(&linear, &program, 7).agrees(), "{score:?}");
            assert!(program.count(Counting::Plain).mul < 4 * n as u64, "{score:?}");
        }
    }
}
