//! Programs in F~ and their derivatives as compiled C and Rust, bit for bit equal to the interpreter: before and after
//! the optimiser.

use crate::support::program;
use arbitrary::Unstructured;
use chainrule::Value;
use chainrule_autodiff::{Mode, Part, Request, derive, expand};
use chainrule_backend_tests::c::{FLAGS, SANITIZED, compiler, sanitizing_compiler};
use chainrule_backend_tests::case::assert_same;
use chainrule_backend_tests::{Case, Data, exact, exact_at_once, exact_plain, flatten, interpret};
use chainrule_ir::generate::{self, written};
use chainrule_ir::{Function, Type, bind_sizes};
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
fn c_has_the_bits_of_the_interpreter() {
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

/// Functions that read at index arrays, certainly or under conditions.
const GATHERS: [&str; 6] = [
    "let f = fun (at : [m]Int) (x : [n]Double) -> build m (fun i -> sin x[at[i]])",
    "let f = fun (at : [m]Int) (x : [n]Double) -> build m (fun i -> if x[0] > 0 then sin x[at[i]] else x[at[i] - 1])",
    "let f = fun (at : [m]Int) (x : [n][2]Double) -> build m (fun i -> x[at[i]][at[m - 1 - i]] ** 2)",
    "let f = fun (at : [m]Int) (x : [n](Double, [k]Double)) -> sum m (fun i -> x[at[i]].0 * sum 2 (fun j -> x[j].1[at[i]]))",
    "let f = fun (at : [m]Int) (x : [n]Double) -> build m (fun i -> if at[i] > 1 then x[at[i]] else sum at[i] (fun j -> x[at[j]]))",
    "let f = fun (at : [m]Int) (x : [n]Double) -> let y = build m (fun i -> x[at[i]] ** 2) in build m (fun i -> y[at[i]] * x[i])",
];

/// Indices that a caller of emitted code may pass.
const HOSTILE: [&[i64]; 10] = [
    &[],
    &[0],
    &[1, 0],
    &[2, 1, 0],
    &[0, 3, 1],
    &[-1],
    &[0, i64::MIN],
    &[i64::MAX, 0],
    &[-(1 << 40), 0],
    &[1 << 61, 1, 0],
];

/// Indices of absent reads.
const ABSENT: i64 = -(1 << 40);

#[test]
fn patterns_in_c_have_no_index_out_of_range() {
    let Some(cc) = sanitizing_compiler() else { return };
    let mut all = Vec::new();
    let (mut n_failed, mut n_absent, mut n_in_range) = (0, 0, 0);
    for text in GATHERS {
        let function = crate::values::reread(text, "f").unwrap();
        let sparse = chainrule_autodiff::sparse::jacobian(&function, &[], Mode::Auto).unwrap();
        let real = |k: usize| Value::Real(k as f64 - 0.5);
        let row = || Value::Array(vec![real(0), real(1)]);
        let Type::Array(_, element) = function.ty(function.params[1]) else { panic!("`x` is an array") };
        let element = |k: usize| match **element {
            Type::Tuple(..) => Value::Tuple(vec![real(k), row()]),
            Type::Array(..) => row(),
            _ => real(k),
        };
        for at in HOSTILE {
            let at = Value::Array(at.iter().map(|k| Value::Int(*k)).collect());
            let args = [at, Value::Array((0..3).map(element).collect())];
            let (optimised, _) = optimise(&sparse.pattern, &Options::default());
            let Some(case) = case(&optimised, &args, exact_plain) else { continue };
            match interpret(&case).unwrap() {
                Ok(results) => {
                    for result in &results[1..] {
                        let Data::Int(indices) = result else { panic!("a pattern has integers") };
                        for index in indices {
                            assert!((0..3).contains(index) || *index == ABSENT, "{index} in {text} at {args:?}");
                            *(if *index == ABSENT { &mut n_absent } else { &mut n_in_range }) += 1;
                        }
                    }
                }
                Err(_) => n_failed += 1,
            }
            all.push(case);
        }
    }
    assert!(n_failed >= 20 && n_absent >= 10 && n_in_range >= 40, "{n_failed} {n_absent} {n_in_range}");
    assert_same(&all, &c::run_c(cc, &SANITIZED, &all, &chainrule_c::Options::default()));
}
