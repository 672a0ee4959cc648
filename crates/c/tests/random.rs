//! Random kernels: emitted, compiled in one program, run, and compared with the interpreter.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::c::{FLAGS, SANITIZED, compiler, sanitizing_compiler};
use chainrule_backend_tests::case::assert_same;
use chainrule_backend_tests::generate::{array_functions, deep_functions, functions, graphs};
use chainrule_backend_tests::{Case, Data, exact, exact_at_once, exact_plain, fused, interpret};
use chainrule_c::Options;
use chainrule_cases::covers;
use chainrule_graph::generate::Numbers;
use chainrule_kernel::Kernel;
use support::run_c;

#[test]
fn graphs_have_the_bits_of_the_interpreter() {
    let Some(cc) = compiler() else { return };
    let mut cases = graphs(150, 1, Numbers::Tame, 60, exact);
    cases.extend(graphs(150, 2, Numbers::Special, 60, exact));
    cases.extend(graphs(60, 8, Numbers::Tame, 60, fused));
    covers!(cases.len() > 200, "{}", cases.len());
    assert_same(&cases, &run_c(cc, &FLAGS, &cases, &Options::default()));
}

#[test]
fn functions_compute_what_the_interpreter_computes_bit_for_bit() {
    let Some(cc) = compiler() else { return };
    let mut cases = functions(400, 3, false, exact);
    cases.extend(array_functions(200, 9, exact));
    cases.extend(functions(50, 18, false, fused));
    let with_workspace = cases.iter().filter(|case| case.uses_workspace()).count();
    println!("{} functions, {with_workspace} with workspace", cases.len());
    covers!(cases.len() > 500 && with_workspace > 100, "{} {with_workspace}", cases.len());
    assert_same(&cases, &run_c(cc, &FLAGS, &cases, &Options::default()));
}

/// Canonicalised loops, as in all text emitted from functions, and vectorised loops.
#[test]
fn scalar_and_lane_loops_have_the_bits_of_the_interpreter() {
    let Some(cc) = compiler() else { return };
    let mut cases = functions(150, 31, false, exact_plain);
    cases.extend(array_functions(75, 32, exact_plain));
    cases.extend(deep_functions(75, 33, exact_plain));
    let n_plain = cases.len();
    cases.extend(functions(240, 34, false, exact_at_once).into_iter().filter(Case::has_lanes));
    cases.extend(deep_functions(480, 36, exact_at_once).into_iter().filter(Case::has_lanes));
    let n_in_lanes = cases.len() - n_plain;
    println!("{n_plain} plain functions, {n_in_lanes} with loops at once");
    covers!(n_plain > 200 && n_in_lanes > 60, "{n_plain} {n_in_lanes}");
    assert_same(&cases, &run_c(cc, &FLAGS, &cases, &Options::default()));
}

#[test]
fn cuts_change_nothing() {
    let Some(cc) = compiler() else { return };
    let mut cases = functions(75, 4, false, exact);
    cases.extend(functions(25, 37, false, exact_plain));
    cases.extend(array_functions(50, 14, exact));
    cases.extend(graphs(25, 5, Numbers::Tame, 60, exact));
    for chunk in [1, 2, 7, 25] {
        assert_same(&cases, &run_c(cc, &FLAGS, &cases, &Options { chunk, ..Options::default() }));
    }
}

#[test]
fn nothing_undefined_happens() {
    let Some(cc) = sanitizing_compiler() else { return };
    let mut cases = functions(100, 6, false, exact);
    cases.extend(functions(50, 38, false, exact_plain));
    cases.extend(deep_functions(30, 39, exact_plain));
    cases.extend(array_functions(70, 16, exact));
    cases.extend(array_functions(30, 40, exact_plain));
    cases.extend(graphs(30, 7, Numbers::Special, 60, exact));
    assert_same(&cases, &run_c(cc, &SANITIZED, &cases, &Options { chunk: 20, ..Options::default() }));
}

/// The last digits of `math.h`'s functions may differ from those of the interpreter. Smooth functions with values near
/// 1 amplify such differences little: they stay below `TOLERANCE`.
#[test]
fn smooth_functions_with_functions_of_math_h_agree_closely() {
    const TOLERANCE: f64 = 1e-9;
    let Some(cc) = compiler() else { return };
    let cases = functions(300, 8, true, Kernel::clone);
    let found = run_c(cc, &FLAGS, &cases, &Options::default());
    let mut compared = 0;
    for (case, found) in cases.iter().zip(found) {
        // Both fail where integers overflow.
        let (expected, found) = match (interpret(case).unwrap(), found) {
            (Ok(expected), Ok(found)) => (expected, found),
            (expected, found) => {
                assert!(expected.is_err() && found.is_err(), "{expected:?} and {found:?}\n{}", case.kernel);
                continue;
            }
        };
        for (expected, found) in expected.iter().zip(&found) {
            let (Data::Real(expected), Data::Real(found)) = (expected, found) else {
                assert_eq!(expected, found);
                continue;
            };
            for (a, b) in expected.iter().zip(found) {
                let close = (a - b).abs() <= TOLERANCE * (1.0 + a.abs());
                assert!(close || a == b || (a.is_nan() && b.is_nan()), "{a} and {b}\n{}", case.kernel);
                compared += 1;
            }
        }
    }
    covers!(compared > 300, "{compared}");
}
