//! Random functions with parallel loops, on threads: the interpreter's results bit for bit, and its failures with equal
//! messages, for any number of threads.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_backend_tests::generate::{deep_function, inputs_up_to, random};
use chainrule_backend_tests::native::{Compared, compare_on_threads, programs, reference, run_on_threads};
use chainrule_backend_tests::{Array, Data};
use chainrule_cases::covers;
use chainrule_interpret as interpret;
use chainrule_ir::Type;
use chainrule_kernel::{contract, lower_function, parallelise, vectorise};
use chainrule_ops::{Op, Semantics};
use proptest::prelude::*;
use std::cell::Cell;

/// Checks functions with parallel sums, or only independent loops, at sizes with several chunks, at all levels.
fn many(cases: u32, seed: u64, semantics: Semantics) -> Compared {
    let all = Cell::new(Compared::default());
    random(cases, seed, 3000, |u| {
        let Some(function) = deep_function(u) else { return Ok(()) };
        let Ok(plain) = lower_function(&function) else { return Ok(()) };
        let mut kernel = plain.clone();
        if parallelise(&mut kernel, semantics) == 0 {
            return Ok(());
        }
        if semantics == Semantics::Algebraic {
            vectorise(&mut kernel, Semantics::Algebraic);
            contract(&mut kernel);
        }
        for longest in [40, 140, 17] {
            let Some(inputs) = inputs_up_to(u, &function, longest) else { continue };
            if semantics == Semantics::Strict {
                let [plain, cut] =
                    [&plain, &kernel].map(|k| reference(k, &interpret::Program::new(k).unwrap(), &inputs));
                prop_assert_eq!(plain, cut, "cut and not cut: {}", kernel);
            }
            let mut sum = all.get();
            sum += compare_on_threads(&kernel, &inputs, &[1, 2, 3, 8])?;
            all.set(sum);
        }
        Ok(())
    });
    println!("{:?}", all.get());
    all.get()
}

#[test]
fn independent_loops_have_the_same_results_on_any_number_of_threads() {
    let all = many(2000, 51, Semantics::Strict);
    covers!(all.on_threads > 1000, "{all:?}");
}

#[test]
fn sums_have_the_same_results_on_any_number_of_threads() {
    let all = many(2000, 52, Semantics::Algebraic);
    covers!(all.on_threads > 2000, "{all:?}");
}

/// `x[picks[i]]` for each `i`, and their sum, with some indices out of range: the first one is reported.
#[test]
fn the_first_failure_is_reported_on_any_number_of_threads() {
    let mut b = chainrule_ir::Builder::new("gather");
    let (n, m) = (b.size_param("n"), b.size_param("m"));
    let (n, m) = (chainrule_ir::Size::var(n), chainrule_ir::Size::var(m));
    let picks = b.param("picks", Type::array(n.clone(), Type::Int));
    let x = b.param("x", Type::array(m, Type::Double));
    let all = b.build(n.clone(), |b, i| {
        let pick = b.get_proved(picks, i);
        b.get(x, pick)
    });
    let sum = b.sum(n, |b, i| {
        let element = b.get_proved(all, i);
        b.op(Op::Mul, &[element, element])
    });
    let both = b.tuple(&[all, sum]);
    let mut kernel = lower_function(&b.finish(both)).unwrap();
    assert_eq!(parallelise(&mut kernel, Semantics::Algebraic), 2, "{kernel}");
    vectorise(&mut kernel, Semantics::Algebraic);
    let interpreter = interpret::Program::new(&kernel).unwrap();
    let programs = programs(&kernel);
    let x = chainrule_backend_tests::reals(&[1.5, 2.5, 3.5]);
    // Positions and values of wrong elements.
    for wrong in [&[][..], &[(5, 7), (70, 8), (99, -1)], &[(99, 3)], &[(40, -2), (41, 9), (80, 5)]] {
        let mut picks: Vec<i64> = (0..100).map(|i| i % 3).collect();
        wrong.iter().for_each(|(at, pick)| picks[*at] = *pick);
        let picks = Array { shape: vec![100], data: Data::Int(picks) };
        let inputs = [picks, x.clone()];
        let expected = reference(&kernel, &interpreter, &inputs);
        match (&expected, wrong) {
            (Ok(_), []) => {}
            (Err(error), [(_, pick), ..]) => {
                let message = error.to_string();
                assert!(message.contains(&format!("{pick}")), "{message}");
            }
            _ => panic!("{expected:?}"),
        }
        for threads in [1, 2, 3, 8, 40] {
            for program in programs.iter().cycle().take(20) {
                let (found, used) = run_on_threads(&kernel, program, &inputs, threads);
                assert_eq!(found, expected);
                assert_eq!(used, threads.min(16));
            }
        }
    }
}

/// Thousands of functions: `cargo test --release -p chainrule-native --test threads -- --ignored --nocapture`.
#[test]
#[ignore = "minutes"]
fn thousands_have_the_same_results_on_any_number_of_threads() {
    many(20_000, 1051, Semantics::Strict);
    many(20_000, 1052, Semantics::Algebraic);
}
