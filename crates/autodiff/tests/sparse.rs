//! Sparse derivatives against dense ones, on random programs and on some with a shape of their own. The seeds are
//! fixed, and failures shrink.

use arbitrary::Unstructured;
use chainrule_autodiff::sparse::check::{Seen, compare};
use chainrule_autodiff::{Mode, Part};
use chainrule_ir::generate::gathers;
use chainrule_ir::{Function, Value};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::RefCell;

type Case = (Function, Vec<Value<f64>>);

/// Compares on `cases` random programs; what was seen in all.
fn run(
    seed: u64,
    cases: u32,
    part: Part,
    mode: Mode,
    make: impl Fn(&mut Unstructured<'_>) -> arbitrary::Result<Case>,
) -> Seen {
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    };
    let seen = RefCell::new(Seen::default());
    let bytes = proptest::collection::vec(any::<u8>(), 50..500);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let Ok((function, args)) = make(&mut Unstructured::new(&bytes)) else { return Ok(()) };
        if let Err(wrong) = chainrule_ir::verify(&function) {
            return Err(TestCaseError::fail(format!("{wrong:?}\n{}", chainrule_ir::print(&function))));
        }
        match compare(&function, &args, part, &[], mode, 1e-11) {
            Ok(None) => Ok(()),
            Ok(Some(more)) => {
                let mut seen = seen.borrow_mut();
                seen.places += more.places;
                seen.entries += more.entries;
                seen.repeated += more.repeated;
                Ok(())
            }
            Err(what) => Err(TestCaseError::fail(format!("{what}\n{}\n{args:?}", chainrule_ir::print(&function)))),
        }
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    seen.into_inner()
}

#[test]
fn jacobians_of_random_programs_are_the_dense_ones() {
    for (seed, mode) in [(1, Mode::Auto), (2, Mode::Forward), (3, Mode::Reverse)] {
        let seen = run(seed, 300, Part::Jacobian, mode, gathers::rows);
        assert!(seen.entries > 1000 && seen.entries * 2 < seen.places && seen.repeated > 100, "{seen:?}");
    }
}

#[test]
fn hessians_of_random_sums_are_the_dense_ones() {
    for (seed, mode) in [(11, Mode::Auto), (12, Mode::Forward)] {
        let seen = run(seed, 80, Part::Hessian, mode, gathers::scalar);
        assert!(seen.entries > 1000 && seen.entries * 2 < seen.places && seen.repeated > 100, "{seen:?}");
    }
}
