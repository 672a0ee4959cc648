//! Whole programs: figure 4 of the dF~ paper, and derivatives, from the text or from random functions to
//! kernels, against the reference evaluator bit for bit.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::Unstructured;
use chainrule_autodiff::expand;
use chainrule_base::Kind;
use chainrule_cases::covers;
use chainrule_ir::generate::{Options, arguments, case};
use chainrule_ir::{Function, Value};
use chainrule_kernel::lower_function;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::Cell;
use support::program;
use support::reference::{compare, lower};

const FIGURE_4: &str = include_str!("../../syntax/tests/figure4.ft");

/// Lowers `function` and compares at random arguments; returns how often they fitted.
fn check(function: &Function, seed: u64) -> usize {
    let function = expand(function).unwrap();
    let kernel = lower(&function).unwrap_or_else(|errors| panic!("{}: {errors}", function.name));
    let bytes: Vec<u8> = (0..4000u64).map(|i| (i.wrapping_mul(seed * 2 + 6_364_136_223) >> 7) as u8).collect();
    let mut u = Unstructured::new(&bytes);
    (0..8).filter(|_| compare(&function, &kernel, &arguments(&mut u, &function).unwrap())).count()
}

#[test]
fn figure_4_and_the_library_keep_their_values() {
    let program = program(FIGURE_4);
    let mut fitted = Vec::new();
    for (idx, def) in program.definitions().enumerate() {
        if let Ok(function) = program.elaborate(&def.name) {
            fitted.push((def.name.to_string(), check(&function, idx as u64)));
        }
    }
    assert!(fitted.len() > 20, "{fitted:?}");
    assert!(fitted.iter().filter(|(_, n)| *n > 0).count() * 10 > fitted.len() * 8, "{fitted:?}");
}

#[test]
fn a_mixture_and_its_gradient_keep_their_values() {
    // The shape of the Gaussian mixture objective: records of arrays, exponentials of sums, a maximum.
    let program = program(
        "let logsumexp = fun x ->
  let m = ifold (fun s i -> max s x[i]) x[0] (length x)
  m + log (vectorSum (vectorMap x (fun a -> exp (a - m))))
let mixture = fun (alphas : [k]Double) (means : [k][d]Double) (x : [n][d]Double) ->
  vectorSum (build (length x) (fun i ->
    logsumexp (build (length alphas) (fun j ->
      alphas[j] - 0.5 * vectorNorm2 (vectorSub x[i] means[j])))))
let slope = fun (alphas : [k]Double) (means : [k][d]Double) (x : [n][d]Double) ->
  grad (fun a -> mixture a means x) alphas
",
    );
    for name in ["mixture", "slope"] {
        let function = expand(&program.elaborate(name).unwrap()).unwrap();
        let kernel = lower(&function).unwrap();
        let row = |i: usize| (0..2).map(|j| ((i * 2 + j) as f64).sin()).collect::<Vec<f64>>();
        let rows = |n: usize| Value::from((0..n).map(row).collect::<Vec<_>>());
        assert!(compare(&function, &kernel, &[row(7).into(), rows(2), rows(5)]), "{name}");
        assert!(kernel.workspace_ints.is_zero());
    }
}

#[test]
fn expanded_derivatives_of_random_functions_keep_their_values() {
    let compared = Cell::new(0);
    let config = ProptestConfig {
        cases: chainrule_cases::cases(300),
        rng_seed: RngSeed::Fixed(21),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&prop::collection::vec(any::<u8>(), 0..4000), |bytes| {
            let case = case(&mut Unstructured::new(&bytes), Options { fuel: 80, ..Options::default() }).unwrap();
            let function = expand(&case.function).unwrap();
            match lower_function(&function) {
                Ok(kernel) => compared.set(compared.get() + usize::from(compare(&function, &kernel, &case.args))),
                Err(errors) => assert!(errors.iter().all(|error| error.kind == Kind::Limitation), "{errors}"),
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    covers!(compared.get() > 250, "only {} of 300 functions could be compared", compared.get());
}

#[test]
fn a_derivative_that_is_not_expanded_is_a_bug() {
    let function = program("let f = fun (x : Double) -> diff (fun y -> y * y) x").elaborate("f").unwrap();
    insta::assert_snapshot!(lower_function(&function).unwrap_err(), @r"bug in Chainrule: a function cannot be lowered: a derivative in it was not worked out");
    assert!(expand(&function).is_ok_and(|expanded| lower_function(&expanded).is_ok()));
}
