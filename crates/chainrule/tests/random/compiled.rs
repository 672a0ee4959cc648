//! Programs in F~ and their Jacobians as C, compiled in one program, bit for bit with the interpreter.

use crate::support::{Program, program};
use chainrule::Value;
use chainrule_autodiff::{Mode, Part, Request, derive, expand};
use chainrule_backend_tests::c::{FLAGS, compiler};
use chainrule_backend_tests::{Case, exact, flatten, interpret};
use chainrule_c::Options;
use chainrule_ir::generate;
use chainrule_ir::{Function, bind_sizes};
use chainrule_kernel::lower_function;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

// Compiling kernels and running them, as the tests of the C backend do.
#[path = "../../../c/tests/support/mod.rs"]
mod c;

/// The case of `function`, if it can be lowered and the interpreter takes the arguments.
fn case(function: &Function, args: &[Value<f64>]) -> Option<Case> {
    let kernel = exact(&lower_function(&expand(function).ok()?).ok()?);
    let sizes = bind_sizes(function, args).ok()?;
    let size = |s: &chainrule_ir::Size| usize::try_from(sizes.eval(s).unwrap_or(0)).unwrap_or(0);
    let inputs = function.params.iter().zip(args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size));
    let case = Case { kernel, inputs: inputs.collect() };
    interpret(&case).is_ok().then_some(case)
}

/// The program and its Jacobian.
fn cases(p: &Program) -> Vec<Case> {
    let mut functions = vec![p.ir.clone()];
    if p.ir.result_type().has_double() {
        functions.extend(derive(
            &p.ir,
            &Request { parts: vec![Part::Value, Part::Jacobian], by: vec![], mode: Mode::Auto, checkpoints: None },
        ));
    }
    functions.iter().filter_map(|f| case(f, &p.args)).collect()
}

#[test]
fn c_computes_what_the_interpreter_computes_bit_for_bit() {
    let Some(cc) = compiler() else { return };
    let config = ProptestConfig { rng_seed: RngSeed::Fixed(31), failure_persistence: None, ..Default::default() };
    let mut runner = TestRunner::new(config);
    let bytes = proptest::collection::vec(any::<u8>(), 100..1200);
    let mut all = Vec::new();
    for k in 0..30 {
        let bytes = bytes.new_tree(&mut runner).unwrap().current();
        let options = if k % 2 == 0 { generate::Options::smooth() } else { generate::Options::default() };
        if let Some(p) = program(&bytes, options).unwrap() {
            all.extend(cases(&p));
        }
    }
    let found = c::run_c(cc, &FLAGS, &all, &Options::default());
    for (case, found) in all.iter().zip(&found) {
        assert_eq!(found, &interpret(case).unwrap(), "{}\n{:?}", case.kernel, case.inputs);
    }
    println!("{} functions in C", all.len());
    assert!(all.len() > 30, "{}", all.len());
}
