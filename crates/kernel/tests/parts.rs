//! Kernels with parallel loops compute the same values, bit for bit unless sums are reordered, with the chunks run
//! backwards; and the pieces of such kernels are valid.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::Unstructured;
use chainrule_cases::covers;
use chainrule_ir::generate::{Options, arguments_up_to, function};
use chainrule_kernel::parts::split;
use chainrule_kernel::{check_layout, contract, parallelise, vectorise, verify};
use chainrule_ops::Semantics;
use std::cell::Cell;

use support::reference::{compare_within, lower_with, tolerance};

/// Compares random functions; returns the number compared, and of loops cut.
fn many(cases: u32, seed: u64, options: Options, semantics: Semantics) -> (usize, usize) {
    let (compared, cut) = (Cell::new(0), Cell::new(0));
    let close = tolerance(semantics);
    support::random(cases, seed, 0..3000, |bytes| {
        let mut u = Unstructured::new(bytes);
        let function = function(&mut u, options).unwrap();
        let Ok(mut kernel) = lower_with(&function, semantics) else { return };
        let loops = parallelise(&mut kernel, semantics);
        if loops == 0 {
            return;
        }
        assert_eq!(verify(&kernel), Ok(()), "{kernel}");
        if u.arbitrary().unwrap_or(true) {
            vectorise(&mut kernel, semantics);
            assert_eq!(verify(&kernel), Ok(()), "{kernel}");
            if semantics == Semantics::Algebraic {
                contract(&mut kernel);
            }
        }
        let pieces = split(&kernel).unwrap();
        for piece in &pieces.pieces {
            assert_eq!(verify(&piece.kernel), Ok(()), "{}\nof {kernel}", piece.kernel);
        }
        for longest in [40, 9, 20] {
            let args = arguments_up_to(&mut u, &function, longest).unwrap();
            if compare_within(&function, &kernel, &args, close) {
                compared.set(compared.get() + 1);
                cut.set(cut.get() + loops);
            }
        }
        let sizes = vec![11; kernel.sizes.len()];
        assert_eq!(check_layout(&kernel, &sizes), Ok(()), "{kernel}");
    });
    (compared.get(), cut.get())
}

fn options(smooth: bool, linear: bool) -> Options {
    Options { depth: 4, fuel: 80, smooth, linear, derivatives: false, transposed: false }
}

#[test]
fn independent_loops_keep_their_values() {
    let (compared, cut) = many(1500, 41, options(false, false), Semantics::Strict);
    covers!(compared > 300 && cut > 300, "{cut} loops in {compared} comparisons");
}

#[test]
fn loops_that_add_keep_their_order_where_they_have_to() {
    let (compared, cut) = many(1500, 44, options(true, true), Semantics::Strict);
    covers!(compared > 200 && cut > 200, "{cut} loops in {compared} comparisons");
}

#[test]
fn sums_keep_their_values_but_for_their_order() {
    let (compared, cut) = many(1500, 42, options(true, true), Semantics::Algebraic);
    covers!(compared > 600 && cut > 700, "{cut} loops in {compared} comparisons");
}
