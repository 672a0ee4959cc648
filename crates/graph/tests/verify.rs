//! The verifier accepts graphs of all kinds, after construction, numbering and factoring. Broken graphs cannot be made
//! from outside: unit tests break them.
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::Unstructured;
use chainrule_graph::generate::{Numbers, Options, Recipe};
use chainrule_graph::optimise::{Optimise, optimise};
use chainrule_graph::{Numbering, Semantics, number, verify};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: chainrule_cases::cases(1000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_graphs_are_valid_after_each_pass(bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
        let options = Options { numbers: Numbers::Special, in_domain: false, ..Options::new(60) };
        let Ok(recipe) = Recipe::random(&mut Unstructured::new(&bytes), &options) else { return Ok(()) };
        for semantics in [Semantics::Strict, Semantics::Algebraic] {
            let (raw, roots) = recipe.raw(semantics);
            prop_assert_eq!(verify(&raw, &roots), Ok(()), "raw, {}", raw.listing(&roots));
            let (mut graph, roots) = recipe.simplified(semantics);
            prop_assert_eq!(verify(&graph, &roots), Ok(()), "simplified, {}", graph.listing(&roots));
            if semantics == Semantics::Strict {
                continue;
            }
            let numbered = number(&mut graph, &roots, &Numbering::default()).roots;
            prop_assert_eq!(verify(&graph, &numbered), Ok(()), "numbered, {}", graph.listing(&numbered));
            let factored = optimise(&mut graph, &numbered, &Optimise { budget: 2000, ..Optimise::default() }).roots;
            prop_assert_eq!(verify(&graph, &factored), Ok(()), "factored, {}", graph.listing(&factored));
            let (extracted, roots) = graph.extract(&factored);
            prop_assert_eq!(verify(&extracted, &roots), Ok(()), "extracted, {}", extracted.listing(&roots));
        }
    }
}
