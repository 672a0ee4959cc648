//! Floats: C and Rust agree bit for bit if operations are exact, and both are as close to doubles as their operations
//! allow.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::c::{self, FLAGS, Files, compiler};
use chainrule_backend_tests::case::named;
use chainrule_backend_tests::exact::replace;
use chainrule_backend_tests::generate::{array_functions, functions, graphs, lower};
use chainrule_backend_tests::rust::has_clippy;
use chainrule_backend_tests::{Case, Data, Outcome, exact, interpret, is_inexact, reals};
use chainrule_base::Arena;
use chainrule_cases::covers;
use chainrule_graph::Semantics;
use chainrule_graph::generate::{self, Numbers};
use chainrule_kernel::{Instr, Reg, Stmt};
use chainrule_ops::{F64, Op, partial};
use chainrule_rust::{Library, Options, Precision};
use std::cell::Cell;
use support::run_rust;

fn run_c(cc: &str, cases: &[Case]) -> Vec<Outcome> {
    let options = chainrule_c::Options { precision: Precision::Single, ..chainrule_c::Options::default() };
    let source = chainrule_c::emit_many("kernels", &named(cases).iter().collect::<Vec<_>>(), &options).unwrap();
    for text in [&source.header, &source.source] {
        assert!(!text.contains("double"), "{text}");
    }
    let (name, functions) = (source.name.as_str(), source.functions.as_slice());
    c::run(
        cc,
        &FLAGS,
        cases,
        &Files { name, functions, header: &source.header, source: &source.source, number: "float" },
    )
}

fn single(library: Library) -> Options {
    Options { precision: Precision::Single, library, ..Options::default() }
}

/// All forms of statements, and all correctly rounded operators.
#[test]
fn c_and_rust_agree_bit_for_bit_where_operations_are_exact() {
    let Some(cc) = compiler().filter(|_| has_clippy()) else { return };
    let mut cases = graphs(40, 1, Numbers::Special, 60, exact);
    cases.extend(functions(60, 3, false, exact));
    cases.extend(array_functions(30, 9, exact));
    let (in_c, in_rust) = (run_c(cc, &cases), run_rust(&cases, &single(Library::Std)));
    for ((case, c), rust) in cases.iter().zip(&in_c).zip(&in_rust) {
        assert_eq!(c, rust, "{}", case.kernel);
    }
    let numbers = in_c.iter().flatten().flatten().filter(|data| matches!(data, Data::Real(x) if !x.is_empty())).count();
    covers!(numbers > 80, "{numbers}");
}

/// Returns a first-order bound of the difference of each result in floats from that in doubles. An operation propagates
/// the errors of its arguments by its partial derivatives, and adds its own times its value: `ROUNDING` if it is
/// correctly rounded, `FUNCTION` if it is a library function.
fn bounds(case: &Case) -> Vec<f64> {
    /// Half the distance between floats.
    const ROUNDING: f64 = 1.0 / (1u64 << 24) as f64;
    /// Maximum error of functions: 4 units in the last place.
    const FUNCTION: f64 = 8.0 * ROUNDING;
    const SMALLEST: f64 = 1.5e-45;
    let Data::Real(x) = &case.inputs[0].data else { panic!() };
    let mut values: Arena<Reg, (f64, f64)> = Arena::filled(case.kernel.regs.len(), (0.0, 0.0));
    let mut results = Vec::new();
    let [Stmt::Straight(code)] = case.kernel.body.as_slice() else { panic!("a straight line") };
    for instr in code {
        match instr {
            Instr::Const { dst, value } => values[*dst] = (*value, value.abs() * ROUNDING),
            Instr::Load { dst, at, .. } => {
                let value = x[at.as_constant().unwrap() as usize];
                values[*dst] = (value, value.abs() * ROUNDING);
            }
            Instr::Op { dst, op, args } => {
                let args: Vec<(f64, f64)> = args[..op.arity()].iter().map(|r| values[*r]).collect();
                let point: Vec<f64> = args.iter().map(|a| a.0).collect();
                let value = op.value(&point);
                let mut error = value.abs() * if is_inexact(*op) { FUNCTION } else { ROUNDING } + SMALLEST;
                for (idx, arg) in args.iter().enumerate() {
                    error += partial(&mut F64, *op, idx, &point, &value).abs() * arg.1;
                }
                values[*dst] = (value, error);
            }
            Instr::Store { at, value, .. } => results.push((at.as_constant(), values[*value].1)),
            _ => panic!("{instr:?}"),
        }
    }
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, error)| error).collect()
}

/// Returns straight-line code of smooth functions that are defined everywhere and do not grow.
fn smooth(n: usize, seed: u64) -> Case {
    const FUNCTIONS: [Op; 7] = [Op::Sin, Op::Tanh, Op::Atan, Op::Asinh, Op::Erf, Op::Cos, Op::Sin];
    let (graph, roots) = generate::layered(Semantics::Strict, n, 5, 10, seed);
    let k = Cell::new(0);
    let kernel = replace(&lower(&graph, &roots), |op| {
        let next = || {
            k.set(k.get() + 1);
            FUNCTIONS[k.get() % FUNCTIONS.len()]
        };
        (op.arity() == 1 && is_inexact(op)).then(next)
    });
    Case { kernel, inputs: vec![reals(&[0.1, -0.2, 0.3, 0.4, 1.0])] }
}

#[test]
fn floats_are_as_near_to_doubles_as_their_operations_allow() {
    /// Higher orders are smaller than the first one as long as errors are small.
    const SECOND_ORDER: f64 = 2.0;
    let Some(cc) = compiler().filter(|_| has_clippy()) else { return };
    let cases: Vec<Case> = (0..20).map(|seed| smooth(150, seed)).collect();
    let found = [run_c(cc, &cases), run_rust(&cases, &single(Library::Std)), run_rust(&cases, &single(Library::Libm))];
    let (mut compared, mut worst) = (0, 0.0f64);
    for (i, case) in cases.iter().enumerate() {
        let bounds = bounds(case);
        let Ok(doubles) = interpret(case).unwrap() else { panic!() };
        for found in &found {
            let ([Data::Real(doubles)], Ok([Data::Real(floats)])) = (doubles.as_slice(), found[i].as_deref()) else {
                panic!()
            };
            for ((double, float), bound) in doubles.iter().zip(floats).zip(&bounds) {
                if *bound > 1e-3 * double.abs().max(1.0) {
                    continue;
                }
                assert!((double - float).abs() <= SECOND_ORDER * bound, "{double} {float} {bound:e}");
                worst = worst.max((double - float).abs() / bound);
                compared += 1;
            }
        }
    }
    println!("{compared} results, at worst {worst:.3} of the bound");
    covers!(compared > 150, "{compared}");
}
