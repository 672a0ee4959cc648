//! Every strategy computes the sums over all paths.
#![allow(clippy::unwrap_used)]

mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::markowitz::Ties;
use chainrule_accumulate::{
    Budget, Counting, LinearGraph, Outcome, Program, check, forward, markowitz, oracle, reverse, vertex,
};
use proptest::prelude::*;

/// Returns the programs of the strategies, and of vertex elimination in an odd order.
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
        let mut patterns = Vec::new();
        for linear in support::whole_and_part(linear, ask) {
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

#[test]
fn the_checker_rejects_wrong_programs() {
    use chainrule_accumulate::{Builder, Label, VertexId};
    use chainrule_base::Id;
    let v = Label::Var;
    // Two paths: a chain through 1, and an edge parallel to it.
    let linear = LinearGraph::from_edges(1, 1, 1, &[(0, 1, v), (1, 2, v), (0, 2, v)]).unwrap();
    let edges: Vec<_> = linear.edges().map(|(e, _)| e).collect();
    let program = |paths: &[&[usize]]| {
        let mut builder = Builder::new(&linear);
        for path in paths {
            let factors: Vec<_> = path.iter().map(|i| builder.edge(edges[*i])).collect();
            builder.add(&factors);
        }
        let label = builder.close();
        builder.finish(&linear, &[(VertexId::new(2), VertexId::new(0), label)])
    };
    // Edges ascend by target: 0 -> 1, then 1 -> 2 and 0 -> 2 as given.
    assert!(check::program(&linear, &program(&[&[0, 1], &[2]]), 3).agrees());
    for wrong in [&[&[0, 1][..]][..], &[&[0, 1], &[2], &[2]], &[&[0, 2], &[1]], &[&[0, 1, 2]]] {
        assert!(!check::program(&linear, &program(wrong), 3).agrees(), "{wrong:?}");
    }
    let nothing = Builder::new(&linear).finish(&linear, &[]);
    assert!(!check::program(&linear, &nothing, 3).agrees());
}

#[test]
fn shared_steps_are_made_once() {
    use chainrule_accumulate::Label::{MinusOne, One, Var};
    // Two outputs by labels 1 and -1 of one vertex: one product, and a negation for the second.
    let linear = LinearGraph::from_edges(1, 2, 2, &[(0, 1, Var), (1, 2, Var), (2, 3, One), (2, 4, MinusOne)]).unwrap();
    let program = reverse::run(&linear, &Budget::default()).program.unwrap();
    assert_eq!(program.count(Counting::Plain).mul, 4);
    let tidied = program.tidied().count(Counting::Folded);
    assert_eq!((tidied.mul, tidied.add, tidied.neg), (1, 0, 1));
}
