//! Loops made plain: the same values, bit for bit.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::Unstructured;
use chainrule_ir::Value;
use chainrule_ir::generate::{Options, arguments_up_to, arrays, comparisons, function};
use chainrule_kernel::{Kernel, hoist, streamline, vectorise, verify};
use std::cell::Cell;

use support::reference::{compare_within, lower};

fn many(cases: u32, seed: u64, check: impl Fn(&mut Unstructured<'_>)) {
    support::random(cases, seed, 0..3000, |bytes| check(&mut Unstructured::new(bytes)));
}

fn plain(kernel: &mut Kernel) {
    streamline(kernel);
    assert_eq!(verify(kernel), Ok(()), "{kernel}");
}

#[test]
fn functions_keep_their_values() {
    let (compared, changed) = (Cell::new(0), Cell::new(0));
    for (seed, linear) in [(41, false), (42, true)] {
        many(1200, seed, |u| {
            let options = Options { depth: 4, fuel: 80, smooth: linear, linear, derivatives: false, transposed: false };
            let function = function(u, options).unwrap();
            let Ok(mut kernel) = lower(&function) else { return };
            let before = kernel.to_string();
            plain(&mut kernel);
            let after = kernel.to_string();
            changed.set(changed.get() + usize::from(after != before));
            let mut at_once = kernel.clone();
            vectorise(&mut at_once, linear);
            for kernel in [&mut kernel, &mut at_once] {
                hoist(kernel);
                assert_eq!(verify(kernel), Ok(()), "{kernel}");
            }
            for longest in [3, 9, 20] {
                let args = arguments_up_to(u, &function, longest).unwrap();
                let close = if linear { 1e-9 } else { 0.0 };
                compare_within(&function, &at_once, &args, close);
                compared.set(compared.get() + usize::from(compare_within(&function, &kernel, &args, close)));
            }
        });
    }
    let (compared, changed) = (compared.get(), changed.get());
    assert!(compared > 3000 && changed > 1000, "{changed} functions changed, {compared} comparisons");
}

#[test]
fn functions_that_move_arrays_about_keep_their_values() {
    let changed = Cell::new(0);
    many(1500, 43, |u| {
        let Ok((function, args)): arbitrary::Result<(_, Vec<Value<f64>>)> = arrays::case(u, 60) else { return };
        let Ok(mut kernel) = lower(&function) else { return };
        let before = kernel.to_string();
        plain(&mut kernel);
        hoist(&mut kernel);
        changed.set(changed.get() + usize::from(kernel.to_string() != before));
        assert!(compare_within(&function, &kernel, &args, 0.0));
    });
    assert!(changed.get() > 500, "{} functions changed", changed.get());
}

#[test]
fn loops_that_compare_their_indices_keep_their_values() {
    let (pieces, branches) = (Cell::new(0), Cell::new(0));
    many(3000, 44, |u| {
        let Ok((function, args)) = comparisons::case(u, 24, 12) else { return };
        let mut kernel = lower(&function).unwrap();
        let before = kernel.to_string();
        plain(&mut kernel);
        let after = kernel.to_string();
        let count = |what: &str| after.matches(what).count() as i64 - before.matches(what).count() as i64;
        pieces.set(pieces.get() + usize::from(count("for ") > 0));
        branches.set(branches.get() + usize::from(count("if ") < 0));
        assert!(compare_within(&function, &kernel, &args, 0.0));
        let mut at_once = kernel.clone();
        vectorise(&mut at_once, false);
        hoist(&mut at_once);
        assert_eq!(verify(&at_once), Ok(()), "{at_once}");
        assert!(compare_within(&function, &at_once, &args, 0.0));
    });
    let (pieces, branches) = (pieces.get(), branches.get());
    assert!(pieces > 500 && branches > 500, "{pieces} functions in pieces, {branches} with fewer branches");
}
