//! Random kernels: emitted, checked by clippy, compiled in one program, run, and compared with the interpreter.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::case::assert_same;
use chainrule_backend_tests::generate::{array_functions, deep_functions, functions, graphs};
use chainrule_backend_tests::rust::has_clippy;
use chainrule_backend_tests::{Case, exact, exact_at_once, exact_plain, fused};
use chainrule_cases::covers;
use chainrule_graph::generate::Numbers;
use chainrule_kernel::Kernel;
use chainrule_rust::{Fma, Library, Options};
use support::run_rust;

#[test]
fn exact_kernels_compute_what_the_interpreter_computes_bit_for_bit() {
    if !has_clippy() {
        return;
    }
    let mut cases = graphs(60, 1, Numbers::Tame, 60, exact);
    cases.extend(graphs(60, 2, Numbers::Special, 60, exact));
    cases.extend(graphs(40, 8, Numbers::Tame, 60, fused));
    cases.extend(functions(150, 3, false, exact));
    cases.extend(array_functions(70, 9, exact));
    let with_workspace = cases.iter().filter(|case| case.uses_workspace()).count();
    println!("{} kernels, {with_workspace} with workspace", cases.len());
    covers!(cases.len() > 250 && with_workspace > 50, "{} {with_workspace}", cases.len());
    assert_same(&cases, &run_rust(&cases, &Options::default()));
}

/// Canonicalised loops, as in all text emitted from functions, and vectorised loops.
#[test]
fn scalar_and_lane_loops_have_the_bits_of_the_interpreter() {
    if !has_clippy() {
        return;
    }
    let mut cases = functions(75, 31, false, exact_plain);
    cases.extend(array_functions(40, 32, exact_plain));
    cases.extend(deep_functions(40, 33, exact_plain));
    let n_plain = cases.len();
    cases.extend(functions(130, 34, false, exact_at_once).into_iter().filter(Case::has_lanes));
    cases.extend(deep_functions(260, 36, exact_at_once).into_iter().filter(Case::has_lanes));
    let n_in_lanes = cases.len() - n_plain;
    println!("{n_plain} plain functions, {n_in_lanes} with loops at once");
    covers!(n_plain > 100 && n_in_lanes > 30, "{n_plain} {n_in_lanes}");
    assert_same(&cases, &run_rust(&cases, &Options::default()));
}

#[test]
fn cuts_change_nothing() {
    if !has_clippy() {
        return;
    }
    let mut cases = functions(40, 4, false, exact);
    cases.extend(array_functions(30, 14, exact));
    cases.extend(graphs(20, 5, Numbers::Tame, 60, exact));
    for chunk in [1, 15] {
        assert_same(&cases, &run_rust(&cases, &Options { chunk, ..Options::default() }));
    }
}

/// With the interpreter's functions, all operators have its values.
#[test]
fn with_our_own_functions_kernels_have_the_bits_of_the_interpreter() {
    if !has_clippy() {
        return;
    }
    let mut cases = graphs(60, 6, Numbers::Special, 60, Kernel::clone);
    cases.extend(functions(80, 7, false, Kernel::clone));
    for fma in [Fma::Standard, Fma::Exact] {
        assert_same(&cases, &run_rust(&cases, &Options { library: Library::Own(fma), ..Options::default() }));
    }
}
