//! Programs in F~ and their derivatives as compiled C and Rust, bit for bit equal to the interpreter: before and after
//! the optimiser.

use crate::support::program;
use arbitrary::Unstructured;
use chainrule::Value;
use chainrule_autodiff::{Mode, Part, Request, derive, expand};
use chainrule_backend_tests::c::{FLAGS, SANITIZED, compiler, sanitizing_compiler};
use chainrule_backend_tests::case::assert_same;
use chainrule_backend_tests::{Case, exact, exact_at_once, exact_plain, flatten, interpret};
use chainrule_ir::generate::{self, written};
use chainrule_ir::{Function, bind_sizes};
use chainrule_kernel::{Kernel, lower_function};
use chainrule_rewrite::{Options, optimise};
use chainrule_runtime::RunError;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

// Compiles and runs kernels, as in the tests of the backends.
#[path = "../../../c/tests/support/mod.rs"]
mod c;
#[path = "../../../rust/tests/support/mod.rs"]
mod rust;

/// Returns the case of `function`, if it can be lowered and the interpreter accepts the arguments; its kernel
/// transformed by `changed`.
fn case(function: &Function, args: &[Value<f64>], changed: fn(&Kernel) -> Kernel) -> Option<Case> {
    let kernel = changed(&lower_function(function).ok()?);
    let sizes = bind_sizes(function, args).ok()?;
    let size = |s: &chainrule_ir::Size| usize::try_from(sizes.eval(s).unwrap_or(0)).unwrap_or(0);
    let inputs = function.params.iter().zip(args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size));
    let case = Case { kernel, inputs: inputs.collect() };
    match interpret(&case) {
        Ok(_) => Some(case),
        Err(RunError::Argument { .. }) => None,
        Err(bug) => panic!("{bug}\n{}", case.kernel),
    }
}

/// Returns the program and its Jacobian, with derivatives expanded.
fn functions(function: &Function) -> Vec<Function> {
    let mut functions = vec![function.clone()];
    if function.result_type().has_double() {
        let request =
            Request { parts: vec![Part::Value, Part::Jacobian], by: vec![], mode: Mode::Auto, checkpoints: None };
        functions.extend(derive(function, &request));
    }
    functions.iter().filter_map(|f| expand(f).ok()).collect()
}

/// Returns random byte strings.
fn bytes(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let config = ProptestConfig { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Default::default() };
    let mut runner = TestRunner::new(config);
    let bytes = proptest::collection::vec(any::<u8>(), 100..1200);
    (0..count).map(|_| bytes.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn c_computes_what_the_interpreter_computes_bit_for_bit() {
    let Some(cc) = compiler() else { return };
    let mut all = Vec::new();
    for (k, bytes) in bytes(31, 30).iter().enumerate() {
        let options = if k % 2 == 0 { generate::Options::smooth() } else { generate::Options::default() };
        if let Some(p) = program(bytes, options).unwrap() {
            all.extend(functions(&p.ir).iter().filter_map(|f| case(f, &p.args, exact)));
        }
    }
    assert_same(&all, &c::run_c(cc, &FLAGS, &all, &chainrule_c::Options::default()));
    assert!(all.len() > 30, "{}", all.len());
}

#[test]
fn optimised_programs_compute_the_same_in_c_and_in_rust() {
    let options = written::Options { longest: 40, orders: 1, fuel: 60, work: 4, ..written::Options::default() };
    let mut all = Vec::new();
    for bytes in bytes(32, 14) {
        let Ok(written) = written::program(&mut Unstructured::new(&bytes), options) else { continue };
        let function = crate::values::reread(&written.text, "f").unwrap();
        for function in functions(&function) {
            let (optimised, _) = optimise(&function, &Options::default());
            all.extend(case(&optimised, &written.args, exact));
        }
    }
    assert!(all.len() > 15, "{}", all.len());
    assert_same(&all, &rust::run_rust(&all, &chainrule_rust::Options::default()));
    if let Some(cc) = compiler() {
        assert_same(&all, &c::run_c(cc, &FLAGS, &all, &chainrule_c::Options::default()));
    }
}

/// With empty arrays, so that guards around loops that do not run are tested.
#[test]
fn optimised_programs_in_c_touch_no_other_memory() {
    let Some(cc) = sanitizing_compiler() else { return };
    let mut all = Vec::new();
    for (k, bytes) in bytes(33, 30).iter().enumerate() {
        let scalar = k % 2 == 0;
        let options =
            written::Options { longest: 3, orders: 1, fuel: 40, work: 4, scalar, empty: true, ..Default::default() };
        let Ok(written) = written::program(&mut Unstructured::new(bytes), options) else { continue };
        let Ok(function) = crate::values::reread(&written.text, "f") else { continue };
        let mut both = functions(&function);
        if let Ok(sparse) = chainrule_autodiff::sparse::jacobian(&function, &[], Mode::Auto) {
            both.push(sparse.pattern);
            both.extend(expand(&sparse.values));
        }
        for function in both {
            let (optimised, _) = optimise(&function, &Options::default());
            let changed = if k % 3 == 0 { exact_at_once } else { exact_plain };
            all.extend(case(&optimised, &written.args, changed));
        }
    }
    assert!(all.len() > 30, "{}", all.len());
    assert_same(&all, &c::run_c(cc, &SANITIZED, &all, &chainrule_c::Options::default()));
}
