//! Random functions of the array IR, lowered, against the reference evaluator, bit for bit; and their
//! memory plans at random sizes.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::{Result, Unstructured};
use chainrule_base::{Diagnostics, Kind};
use chainrule_ir::generate::{Case, Options, arguments, case};
use chainrule_ir::{Function, Size, Value, bind_sizes, evaluate};
use chainrule_kernel::{Kernel, counts, lower_function, verify};
use chainrule_ops::F64;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::Cell;
use support::{Array, arrays, flatten, run};

fn lower(function: &Function) -> std::result::Result<Kernel, Diagnostics> {
    let kernel = lower_function(function)?;
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    assert_eq!(lower_function(function)?.to_string(), kernel.to_string(), "lowering is deterministic");
    Ok(kernel)
}

/// Whether the arguments fit and were compared.
fn compare(function: &Function, kernel: &Kernel, args: &[Value<f64>]) -> bool {
    let Ok(sizes) = bind_sizes(function, args) else { return false };
    let size = |size: &Size| sizes.eval(size).unwrap();
    let inputs: Vec<Array> =
        function.params.iter().zip(args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size)).collect();
    let expected = evaluate(function, &mut F64, args);
    let found = run(kernel, &inputs);
    match expected {
        Ok(value) => {
            let expected = flatten(function.result_type(), &value, &size);
            let found = found.unwrap_or_else(|error| panic!("{error}\n{function:?}\n{kernel}"));
            assert_eq!(found, expected, "{function:?}\n{kernel}");
        }
        // What the result does not need may fail in one and not be computed in the other.
        Err(_) => assert!(!found.is_err_and(|error| error.starts_with("bug")), "{kernel}"),
    }
    true
}

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
    Options { depth, fuel, derivatives: false, ..Options::default() }
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
