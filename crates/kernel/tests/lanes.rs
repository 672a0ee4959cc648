//! Vectorised kernels compute the same values, bit for bit unless sums are reordered, with the lanes of each block run
//! backwards.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::Unstructured;
use chainrule_cases::covers;
use chainrule_ir::Value;
use chainrule_ir::generate::{Options, arguments_up_to, function};
use chainrule_kernel::{streamline, vectorise, verify};
use chainrule_ops::Semantics;
use std::cell::Cell;

use support::program;
use support::reference::{compare_within, lower, lower_with, tolerance};

/// Compares random functions; returns the number compared, of loops cut, and of functions with jammed blocks.
fn many(cases: u32, seed: u64, options: Options, semantics: Semantics) -> (usize, usize, usize) {
    let (compared, cut, jammed) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let close = tolerance(semantics);
    support::random(cases, seed, 0..3000, |bytes| {
        let mut u = Unstructured::new(bytes);
        let function = function(&mut u, options).unwrap();
        let Ok(mut kernel) = lower_with(&function, semantics) else { return };
        let loops = vectorise(&mut kernel, semantics);
        assert_eq!(verify(&kernel), Ok(()), "{kernel}");
        // The index of the first lane of four blocks.
        let is_jammed = kernel.to_string().contains("32*r");
        for longest in [70, 40, 9, 20] {
            let args = arguments_up_to(&mut u, &function, longest).unwrap();
            if compare_within(&function, &kernel, &args, close) {
                compared.set(compared.get() + 1);
                cut.set(cut.get() + loops);
                jammed.set(jammed.get() + usize::from(is_jammed));
            }
        }
    });
    (compared.get(), cut.get(), jammed.get())
}

fn options(smooth: bool, linear: bool) -> Options {
    Options { depth: 4, fuel: 80, smooth, linear, derivatives: false, transposed: false }
}

#[test]
fn independent_loops_keep_their_values() {
    let (compared, cut, jammed) = many(1500, 31, options(false, false), Semantics::Strict);
    covers!(
        compared > 2000 && cut > 300 && jammed > 10,
        "{cut} loops in {compared} comparisons, {jammed} of several blocks"
    );
}

#[test]
fn loops_that_add_keep_their_order_where_they_have_to() {
    let (compared, cut, _) = many(1500, 34, options(true, true), Semantics::Strict);
    covers!(compared > 1200 && cut > 200, "{cut} loops in {compared} comparisons");
}

#[test]
fn sums_keep_their_values_but_for_their_order() {
    let (compared, cut, jammed) = many(2200, 32, options(true, true), Semantics::Algebraic);
    covers!(
        compared > 2000 && cut > 1000 && jammed > 10,
        "{cut} loops in {compared} comparisons, {jammed} of several blocks"
    );
}

fn matrix(rows: usize, columns: usize, from: i32) -> Value<f64> {
    let number = |i: usize, j: usize| f64::from((from + (i * 7 + j * 3) as i32) % 11) / 4.0;
    let row = |i: usize| Value::Array((0..columns).map(|j| Value::Real(number(i, j))).collect());
    Value::Array((0..rows).map(row).collect())
}

/// How deep in loops `what` stands.
fn depth(kernel: &str, what: &str) -> usize {
    let indents = kernel.lines().filter(|line| line.contains(what)).map(|line| line.len() - line.trim_start().len());
    indents.max().unwrap_or(0) / 2
}

#[test]
fn rows_that_are_read_again_and_again_are_copied() {
    // With each of the second rows, and once.
    let least = "vectorMin (build k (fun j -> sum d (fun e -> abs (x[i][e] - y[j][e]))))";
    let once = "sum d (fun e -> x[i][e] * y[0][e]) + sum k (fun j -> y[j][0])";
    for (value, loops) in [(least, 3), (once, 3)] {
        let text = format!("let f = fun (x : [n][d]Double) (y : [k][d]Double) -> build n (fun i -> {value})");
        let function = program(&text).elaborate("f").unwrap();
        let mut kernel = lower(&function).unwrap();
        streamline(&mut kernel);
        vectorise(&mut kernel, Semantics::Strict);
        assert_eq!(verify(&kernel), Ok(()), "{kernel}");
        let text = kernel.to_string();
        // The block, its lanes, and the elements.
        assert_eq!(depth(&text, "load b0["), loops, "{text}");
        for (n, d, k) in [(2, 3, 2), (1, 1, 1), (8, 2, 3), (9, 5, 1), (23, 4, 6), (3, 9, 2)] {
            let args = [matrix(n, d, 0), matrix(k, d, 5)];
            assert!(compare_within(&function, &kernel, &args, 0.0), "{n} {d} {k}\n{text}");
        }
    }
}
