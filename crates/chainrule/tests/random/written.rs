//! Realistic programs, compiled and differentiated in every way: values bit for bit if no bit may change, derivatives
//! against forward mode in the reference evaluator.

use crate::case::Case;
use crate::compare::{batches, failures, first_derivatives, products, second_derivatives, sparse_derivatives, values};
use crate::strategies;
use crate::support::run;
use arbitrary::Unstructured;
use chainrule_ir::generate::written::{Options, program};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn case(bytes: &[u8], options: Options) -> Result<Option<Case>, String> {
    program(&mut Unstructured::new(bytes), options).map_or(Ok(None), Case::new)
}

/// Runs `what` on the program that `bytes` describe; a panic is reported with the program.
fn ask(bytes: &[u8], options: Options, what: impl Fn(&Case) -> Result<bool, String>) -> Result<bool, String> {
    let Some(case) = case(bytes, options)? else { return Ok(false) };
    catch_unwind(AssertUnwindSafe(|| what(&case))).unwrap_or_else(|_| Err(case.fails("a panic")))
}

#[test]
fn values_are_those_of_the_evaluator() {
    run(61, 80, 60, 700, |bytes| ask(bytes, Options::default(), values));
}

/// Several groups of blocks of lanes, and a remainder.
const LONG: Options =
    Options { longest: 150, work: 4, scalar: false, smooth: false, indices: true, orders: 1, fuel: 60, empty: false };

#[test]
fn values_of_long_arrays_are_those_of_the_evaluator() {
    run(68, 40, 30, 700, |bytes| ask(bytes, LONG, values));
}

#[test]
fn products_of_long_arrays_are_those_of_the_evaluator_in_both_modes() {
    run(69, 20, 12, 600, |bytes| ask(bytes, Options { longest: 90, ..LONG }, products));
}

#[test]
fn derivatives_are_those_in_forward_mode() {
    run(62, 30, 20, 600, |bytes| {
        let options = Options { longest: 11, fuel: 60, orders: 1, ..Options::default() };
        ask(bytes, options, first_derivatives)
    });
}

/// Covers programs with nested derivatives.
#[test]
fn derivatives_of_programs_with_second_ones_are_those_in_forward_mode() {
    run(70, 15, 10, 500, |bytes| {
        let options = Options { longest: 6, fuel: 50, orders: 2, ..Options::default() };
        ask(bytes, options, first_derivatives)
    });
}

#[test]
fn second_derivatives_are_those_in_forward_mode() {
    run(63, 15, 10, 500, |bytes| {
        let options = Options { longest: 6, fuel: 40, orders: 1, scalar: true, smooth: true, ..Options::default() };
        ask(bytes, options, second_derivatives)
    });
}

#[test]
fn sparse_derivatives_are_dense_ones_without_their_zeros() {
    for scalar in [false, true] {
        run(if scalar { 67 } else { 66 }, 30, 10, 500, |bytes| {
            let options = Options { longest: 9, fuel: 40, orders: 1, scalar, smooth: scalar, ..Options::default() };
            ask(bytes, options, sparse_derivatives)
        });
    }
}

/// Loops that do not run around reads, remainders and checks.
#[test]
fn nothing_is_read_next_to_empty_arrays() {
    for scalar in [false, true] {
        run(if scalar { 72 } else { 71 }, 40, 20, 500, |bytes| {
            let options = Options { longest: 4, fuel: 40, orders: 1, scalar, empty: true, ..Options::default() };
            ask(bytes, options, failures)
        });
    }
}

#[test]
fn batches_and_saved_functions_are_the_same() {
    run(64, 40, 25, 500, |bytes| {
        let options = Options { fuel: 60, orders: 1, indices: false, ..Options::default() };
        ask(bytes, options, batches)
    });
}

#[test]
fn every_strategy_gives_the_derivatives_of_unrolled_code() {
    run(65, 40, 4, 400, |bytes| {
        let options = Options { longest: 4, fuel: 40, orders: 1, indices: false, ..Options::default() };
        ask(bytes, options, |case| strategies::compare(case).map_err(|e| case.fails(e)))
    });
}
