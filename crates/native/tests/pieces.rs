//! Straight-line code in chunks against the interpreter, bit for bit: values that one chunk computes and another one
//! reads.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::Unstructured;
use chainrule_backend_tests::by_hand::ByHand;
use chainrule_backend_tests::generate::{lower, random, sprinkle_zeros};
use chainrule_backend_tests::native::{compare_programs, programs, programs_in_pieces, run};
use chainrule_backend_tests::{around, reals};
use chainrule_base::Poly;
use chainrule_cases::covers;
use chainrule_graph::Semantics;
use chainrule_graph::generate::{Numbers, Options as GraphOptions, Recipe, layered};
use chainrule_kernel::{BufferId, Class, Instr, Kernel, Reg, Stmt, contract, verify};
use chainrule_native::{Options, Program};
use chainrule_ops::Op;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// A whole block of eight lanes, or two of four, and a remainder.
const POINTS: usize = 9;

/// Returns the instructions of straight-line code.
fn line(kernel: &mut Kernel) -> &mut Vec<Instr> {
    match kernel.body.as_mut_slice() {
        [Stmt::Straight(instrs)] => instrs,
        _ => panic!("no straight line"),
    }
}

/// Reloads some results from where they were stored, and stores to some of these again: a load must not be delayed
/// beyond that.
fn read_again(u: &mut Unstructured<'_>, kernel: &mut Kernel) {
    let mut regs = std::mem::take(&mut kernel.regs);
    let mut again: HashMap<Reg, Reg> = HashMap::new();
    let mut places: Vec<(BufferId, Poly<Reg>)> = Vec::new();
    let mut code: Vec<Instr> = Vec::new();
    for mut instr in std::mem::take(line(kernel)) {
        let rename = |r: &mut Reg| *r = again.get(r).copied().unwrap_or(*r);
        match &mut instr {
            Instr::Op { args, .. } | Instr::MulAdd { args, .. } => args.iter_mut().for_each(rename),
            Instr::Store { value, .. } => rename(value),
            _ => {}
        }
        code.push(instr.clone());
        let Instr::Store { buffer, at, value } = instr else { continue };
        if u.ratio(1, 2).unwrap_or(false) {
            let dst = regs.push(Class::Real);
            code.push(Instr::Load { dst, buffer, at: at.clone() });
            again.insert(value, dst);
        }
        places.push((buffer, at));
        if u.ratio(1, 4).unwrap_or(false) {
            let (buffer, at) = places[u.choose_index(places.len()).unwrap_or(0)].clone();
            code.push(Instr::Store { buffer, at, value });
        }
    }
    kernel.regs = regs;
    *line(kernel) = code;
    assert_eq!(verify(kernel), Ok(()));
}

/// Checks random straight-line code of at most `steps` operations on numbers, in chunks of at most `longest`
/// instructions.
fn lines(cases: u32, seed: u64, steps: usize, longest: usize) {
    let n_cut = Cell::new(0);
    for (seed, numbers, in_domain) in [(seed, Numbers::Tame, true), (seed + 1, Numbers::Special, false)] {
        let options = GraphOptions { numbers, in_domain, max_roots: 12, ..GraphOptions::new(steps) }.of_numbers();
        random(cases, seed, 40 * steps, |u| {
            let Ok(recipe) = Recipe::random(u, &options) else { return Ok(()) };
            let (mut graph, mut roots) = recipe.raw(Semantics::Strict);
            sprinkle_zeros(u, &mut graph, &mut roots);
            let mut kernel = lower(&graph, &roots);
            if u.ratio(1, 2).unwrap_or(false) {
                contract(&mut kernel);
            }
            read_again(u, &mut kernel);
            let programs = programs_in_pieces(&kernel, u.int_in_range(1..=longest).unwrap_or(1));
            compare_programs(&kernel, &programs, &around(&[reals(&recipe.point)], POINTS))?;
            n_cut.set(n_cut.get() + programs.iter().map(|program| program.n_pieces() - 1).sum::<usize>());
            Ok(())
        });
    }
    covers!(n_cut.get() > 4 * cases as usize, "lines were cut {} times", n_cut.get());
}

#[test]
fn random_lines_in_pieces_have_the_value_that_the_interpreter_gives_them() {
    lines(400, 51, 60, 12);
    // More values than registers, and than near slots.
    lines(40, 53, 1000, 200);
}

/// Thousands of random kernels: `cargo test --release -p chainrule-native --test pieces -- --ignored`, a minute.
#[test]
#[ignore = "a minute"]
fn thousands_of_lines_in_pieces() {
    lines(10_000, 1051, 60, 12);
    lines(1000, 1053, 1000, 200);
}

#[test]
fn long_lines_are_cut_and_any_number_of_threads_writes_the_same_code() {
    for (n, is_cut) in [(10_000, false), (80_000, true)] {
        let (graph, roots) = layered(Semantics::Strict, n, 30, 500, 7);
        let kernel = Arc::new(lower(&graph, &roots));
        let program = |writers| Program::new(kernel.clone(), &Options { writers, ..Options::default() }).unwrap();
        let first = program(None);
        assert_eq!(first.n_pieces() > 1, is_cut);
        for n in [1, 2, 3] {
            assert_eq!(program(Some(n)).code(), first.code());
        }
    }
}

#[test]
fn an_element_outside_of_its_buffer_is_told_in_pieces_too() {
    let mut k = ByHand::new("outside");
    let (x, y) = (k.input(Class::Real, &Poly::constant(2)), k.output(&Poly::constant(1)));
    let (a, b) = (k.real(), k.real());
    k.code.push(Instr::Load { dst: a, buffer: x, at: Poly::constant(0) });
    k.code.push(Instr::Load { dst: b, buffer: x, at: Poly::constant(2) });
    let sum = k.op(Op::Add, a, b);
    k.code.push(Instr::Store { buffer: y, at: Poly::constant(0), value: sum });
    let body = vec![k.straight()];
    let kernel = k.with_body(body);
    let inputs = [reals(&[1.0, 2.0])];
    for (whole, cut) in programs(&kernel).iter().zip(&programs_in_pieces(&kernel, 1)) {
        let failure = run(&kernel, whole, &inputs).unwrap_err();
        assert_eq!(run(&kernel, cut, &inputs).unwrap_err(), failure);
        assert_eq!(cut.n_pieces(), 1);
    }
}
