//! Loops cut for lanes: the same values, bit for bit where no sum is reordered, with the lanes of each block run backwards.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::Unstructured;
use chainrule_ir::generate::{Options, arguments_up_to, function};
use chainrule_kernel::{vectorise, verify};
use std::cell::Cell;

use support::reference::{compare_within, lower};

/// How many functions were compared, and how many loops were cut in them.
fn many(cases: u32, seed: u64, options: Options, reorder: bool) -> (usize, usize) {
    let (compared, cut) = (Cell::new(0), Cell::new(0));
    // What is added in place is added in another order already.
    let close = if reorder || options.linear { 1e-9 } else { 0.0 };
    support::random(cases, seed, 0..3000, |bytes| {
        let mut u = Unstructured::new(bytes);
        let function = function(&mut u, options).unwrap();
        let Ok(mut kernel) = lower(&function) else { return };
        let loops = vectorise(&mut kernel, reorder);
        assert_eq!(verify(&kernel), Ok(()), "{kernel}");
        for longest in [40, 9, 20] {
            let args = arguments_up_to(&mut u, &function, longest).unwrap();
            if compare_within(&function, &kernel, &args, close) {
                compared.set(compared.get() + 1);
                cut.set(cut.get() + loops);
            }
        }
    });
    (compared.get(), cut.get())
}

fn options(smooth: bool, linear: bool) -> Options {
    Options { depth: 4, fuel: 80, smooth, linear, derivatives: false, transposed: false }
}

#[test]
fn independent_loops_keep_their_values() {
    let (compared, cut) = many(1500, 31, options(false, false), false);
    assert!(compared > 2000 && cut > 300, "{cut} loops in {compared} comparisons");
}

#[test]
fn sums_keep_their_values_but_for_their_order() {
    let (compared, cut) = many(1500, 32, options(true, true), true);
    assert!(compared > 2000 && cut > 1000, "{cut} loops in {compared} comparisons");
}
