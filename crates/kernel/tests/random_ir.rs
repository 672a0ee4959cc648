//! Random functions of the array IR, lowered, against the reference evaluator, bit for bit; and their
//! memory plans at random sizes.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::{Result, Unstructured};
use chainrule_base::Kind;
use chainrule_ir::generate::{Case, Options, arguments, arrays, case};
use chainrule_kernel::counts;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::Cell;

use support::reference::{compare, lower};

fn random(bytes: &[u8], options: Options, compared: &Cell<usize>) -> Result<()> {
    let mut u = Unstructured::new(bytes);
    let Case { function, args } = case(&mut u, options)?;
    let kernel = match lower(&function) {
        Ok(kernel) => kernel,
        Err(errors) => {
            assert!(errors.iter().all(|error| error.kind == Kind::Limitation), "{errors}\n{function:?}");
            return Ok(());
        }
    };
    compared.set(compared.get() + usize::from(compare(&function, &kernel, &args)));
    for _ in 0..2 {
        let args = arguments(&mut u, &function)?;
        compare(&function, &kernel, &args);
    }
    let zeros = vec![0; kernel.sizes.len()];
    assert!(counts(&kernel, &zeros).weight <= counts(&kernel, &vec![2; kernel.sizes.len()]).weight);
    Ok(())
}

fn many(cases: u32, seed: u64, bytes: usize, options: Options) -> usize {
    let compared = Cell::new(0);
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest::test_runner::TestRunner::new(config)
        .run(&prop::collection::vec(any::<u8>(), 0..bytes), |bytes| {
            random(&bytes, options, &compared).unwrap();
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    compared.get()
}

fn options(depth: u32, fuel: u32) -> Options {
    Options { depth, fuel, derivatives: false, transposed: false, ..Options::default() }
}

#[test]
fn random_functions_keep_their_values() {
    let compared = many(600, 11, 3000, options(3, 60));
    assert!(compared > 500, "only {compared} of 600 functions could be compared");
}

#[test]
fn deep_functions_keep_their_values() {
    let compared = many(150, 12, 12_000, options(6, 250));
    assert!(compared > 100, "only {compared} of 150 functions could be compared");
}

#[test]
fn functions_that_move_arrays_about_keep_their_values() {
    let buffers = Cell::new(0);
    let config = ProptestConfig {
        cases: 1500,
        rng_seed: RngSeed::Fixed(13),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest::test_runner::TestRunner::new(config)
        .run(&prop::collection::vec(any::<u8>(), 0..2000), |bytes| {
            let (function, args) = arrays::case(&mut Unstructured::new(&bytes), 60).unwrap();
            chainrule_ir::verify(&function).unwrap();
            let kernel = lower(&function).unwrap_or_else(|errors| panic!("{errors}\n{function:?}"));
            assert!(compare(&function, &kernel, &args));
            buffers.set(buffers.get() + kernel.buffers.len() - kernel.inputs.len() - kernel.outputs.len());
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(buffers.get() > 5000, "only {} buffers in the workspace", buffers.get());
}
