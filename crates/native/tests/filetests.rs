//! Kernels as text, in machine code: the outcomes in the files, at every level and in every mode. Straight-line code
//! also runs in chunks of every length, parallel loops on several threads.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_backend_tests::filetests::{Found, check, shared};
use chainrule_backend_tests::native::{
    compare, compare_on_threads, compare_programs, programs, programs_in_pieces, reference, run,
};
use chainrule_backend_tests::{Case, around};
use chainrule_interpret as interpret;
use chainrule_kernel::{Class, Event, Instr, Kernel, Order, Stmt, events};
use std::path::Path;

/// A whole block of eight lanes, or two of four, and a remainder.
const POINTS: usize = 9;

/// Returns the number of instructions of straight-line code on doubles, which can be cut into chunks, and how many of
/// them are leading constants.
fn straight_line(kernel: &Kernel) -> Option<(usize, usize)> {
    let [Stmt::Straight(code)] = kernel.body.as_slice() else { return None };
    let is_double = |instr: &Instr| match instr {
        Instr::Const { .. } | Instr::Op { .. } | Instr::MulAdd { .. } => true,
        Instr::Load { buffer, .. } | Instr::Store { buffer, .. } => kernel.buffers[*buffer].class == Class::Real,
        _ => false,
    };
    if !code.iter().all(is_double) {
        return None;
    }
    let n_constants = code.iter().take_while(|instr| matches!(instr, Instr::Const { .. })).count();
    Some((code.len(), n_constants))
}

/// Returns the outcome of a case in machine code, after comparing all modes with the interpreter.
fn outcome(case: &Case) -> Found {
    let Case { kernel, inputs } = case;
    let points = around(inputs, POINTS);
    compare(kernel, &points).map_err(|fault| fault.to_string())?;
    if let Some((n, n_constants)) = straight_line(kernel) {
        for chunk in 1..=n {
            let programs = programs_in_pieces(kernel, chunk);
            // Leading constants belong to the first chunk, however long it is.
            let expected = (n - n_constants).div_ceil(chunk);
            if programs.iter().any(|program| program.n_pieces() != expected) {
                return Err(format!("chunks of {chunk} instructions are not {expected}"));
            }
            compare_programs(kernel, &programs, &points).map_err(|fault| format!("in chunks of {chunk}: {fault}"))?;
        }
    }
    if events(&kernel.body).iter().any(|event| matches!(event, Event::For { order: Order::Parts, .. })) {
        compare_on_threads(kernel, inputs, &[1, 2, 3]).map_err(|fault| fault.to_string())?;
    }
    match programs(kernel).first() {
        Some(program) => Ok(run(kernel, program, inputs)),
        // No level of native code runs here.
        None => Ok(reference(kernel, &interpret::Program::new(kernel).unwrap(), inputs)),
    }
}

#[test]
fn kernels_of_all_backends_have_their_outcomes() {
    check(&shared(), outcome);
}

#[test]
fn kernels_for_machine_code_have_their_outcomes() {
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests"), outcome);
}
