//! Every strategy computes the sums over all paths.
#![allow(clippy::unwrap_used)]

mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::markowitz::Ties;
use chainrule_accumulate::{
    Budget, Counting, LinearGraph, Outcome, Program, check, forward, markowitz, oracle, reverse, vertex,
};
use proptest::prelude::*;

/// The strategies, and vertex elimination in an odd order.
fn programs(linear: &LinearGraph) -> Vec<(&'static str, Program)> {
    let budget = Budget::default();
    let odd: Vec<_> = linear.intermediates().step_by(2).chain(linear.sinks()).chain(linear.sources()).collect();
    let outcomes: Vec<(&str, Outcome)> = vec![
        ("oracle", oracle::run(linear, &budget)),
        ("forward", forward::run(linear, &budget)),
        ("reverse", reverse::run(linear, &budget)),
        ("vertex", vertex::run(linear, &budget, &odd)),
        ("markowitz", markowitz::run(linear, &budget, Ties::Lowest)),
        ("markowitz-highest", markowitz::run(linear, &budget, Ties::Highest)),
    ];
    outcomes.into_iter().map(|(name, outcome)| (name, outcome.program.unwrap())).collect()
}

proptest! {
    #![proptest_config(support::config(2000, 1))]

    #[test]
    fn agree_with_the_sum_over_paths(bytes in proptest::collection::vec(any::<u8>(), 0..120), ask in any::<u64>()) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        let (n_rows, n_columns) = (linear.rows().len(), linear.columns().len());
        let some: Vec<(usize, usize)> = (0..n_rows)
            .flat_map(|r| (0..n_columns).map(move |c| (r, c)))
            .filter(|(r, c)| ask >> (3 * r + c) & 1 == 1)
            .collect();
        let mut patterns = Vec::new();
        for linear in [linear.clone(), linear.ask_only(&some).unwrap()] {
            for (name, program) in programs(&linear) {
                prop_assert!(check::program(&linear, &program, 7).agrees(), "{name} on {linear:?}");
                let tidied = program.tidied();
                prop_assert!(check::program(&linear, &tidied, 7).agrees(), "{name}, tidied, on {linear:?}");
                prop_assert_eq!(program.pattern(), tidied.pattern());
                patterns.push((linear.pairs().is_some(), program.pattern()));
                let (plain, free) = (program.count(Counting::Plain), program.count(Counting::UnitFree));
                prop_assert!(free.mul <= plain.mul && tidied.count(Counting::Folded).mul <= free.mul);
            }
        }
        patterns.dedup();
        prop_assert!(patterns.len() <= 2, "strategies differ in what is zero: {:?}", patterns);
    }
}
