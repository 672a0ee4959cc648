//! Random functions with loops cut into parts, on threads: the interpreter's results bit for bit, its failures in the same
//! words, whatever the number of threads.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_backend_tests::generate::random;
use chainrule_backend_tests::{Array, Data, flatten};
use chainrule_interpret as interpret;
use chainrule_ir::{Type, bind_sizes};
use chainrule_kernel::{Kernel, contract, lower_function, parallelise, vectorise};
use chainrule_native::{Options, Program, Workspace};
use chainrule_ops::Op;
use chainrule_runtime::{RunError, Sizes, Slice, SliceMut};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::cell::Cell;
use std::sync::Arc;

fn outputs(kernel: &Kernel, sizes: &Sizes) -> Vec<Data> {
    let zero =
        |(i, port): (usize, &chainrule_kernel::Port)| Data::new(kernel.buffers[port.buffer].class, sizes.output_len(i));
    kernel.outputs.iter().enumerate().map(zero).collect()
}

/// The sizes, or what the run says of the arguments or of itself.
fn run<P>(
    kernel: &Kernel,
    inputs: &[Array],
    bind: impl FnOnce(&[&[usize]], &[Slice<'_>]) -> Result<(Sizes, P), RunError>,
    run: impl FnOnce(P, &Sizes, &[Slice<'_>], &mut [SliceMut<'_>]) -> Result<(), RunError>,
) -> Result<Vec<Data>, String> {
    let shapes: Vec<&[usize]> = inputs.iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = inputs.iter().map(|a| a.data.slice()).collect();
    let (sizes, workspace) = bind(&shapes, &slices).map_err(|e| e.to_string())?;
    let mut results = outputs(kernel, &sizes);
    let mut into: Vec<SliceMut<'_>> = results.iter_mut().map(Data::slice_mut).collect();
    run(workspace, &sizes, &slices, &mut into).map_err(|e| e.to_string())?;
    Ok(results)
}

fn reference(kernel: &Kernel, inputs: &[Array]) -> Result<Vec<Data>, String> {
    let program = interpret::Program::new(kernel).unwrap();
    let bind = |shapes: &[&[usize]], slices: &[Slice<'_>]| {
        let sizes = program.bind_inputs(shapes, slices)?;
        let workspace = interpret::Workspace::new(&program, &sizes).poisoned();
        Ok((sizes, workspace))
    };
    run(kernel, inputs, bind, |mut workspace, sizes, slices, into| program.run(sizes, slices, into, &mut workspace))
}

/// The results on so many threads, and on how many it ran.
fn on_threads(
    kernel: &Kernel,
    program: &Program,
    inputs: &[Array],
    threads: usize,
) -> (Result<Vec<Data>, String>, usize) {
    let used = Cell::new(1);
    let bind = |shapes: &[&[usize]], slices: &[Slice<'_>]| {
        let sizes = program.bind_inputs(shapes, slices)?;
        // However little there is to do.
        let workspace = Workspace::for_threads_from(program, &sizes, threads, 1.0);
        used.set(workspace.threads());
        Ok((sizes, workspace))
    };
    let twice = |mut workspace: Workspace, sizes: &Sizes, slices: &[Slice<'_>], into: &mut [SliceMut<'_>]| {
        program.run(sizes, slices, into, &mut workspace)?;
        // The other time in memory of its own.
        let elements = inputs.iter().map(|a| a.data.elements()).collect();
        let mut bound = program.bound(sizes.clone(), elements, workspace)?;
        bound.run()?;
        let found: Vec<Data> = bound.outputs().iter().map(|y| Data::of(y.slice())).collect();
        let by_slices: Vec<Data> = into.iter().map(|y| Data::of(y.as_slice())).collect();
        assert_eq!(found, by_slices, "{kernel}");
        Ok(())
    };
    let found = run(kernel, inputs, bind, twice);
    assert_eq!(program.threads_refused(), None);
    (found, used.get())
}

/// Cut functions with sums in parts, or only independent loops, at sizes with several parts; how many ran on threads, and how
/// many failed there as they mean to.
fn many(cases: u32, seed: u64, reorder: bool) -> (usize, usize) {
    let (ran, failed) = (Cell::new(0), Cell::new(0));
    random(cases, seed, 3000, |u| {
        let options = chainrule_ir::generate::Options {
            depth: 4,
            fuel: 80,
            smooth: u.ratio(1, 2).unwrap_or(true),
            derivatives: false,
            transposed: false,
            ..Default::default()
        };
        let Ok(function) = chainrule_ir::generate::function(u, options) else { return Ok(()) };
        let Ok(plain) = lower_function(&function) else { return Ok(()) };
        let mut kernel = plain.clone();
        if parallelise(&mut kernel, reorder) == 0 {
            return Ok(());
        }
        if reorder {
            vectorise(&mut kernel, true);
            contract(&mut kernel);
        }
        let program = Program::new(Arc::new(kernel.clone()), &Options::default()).unwrap();
        for longest in [40, 140, 17] {
            let Ok(args) = chainrule_ir::generate::arguments_up_to(u, &function, longest) else { return Ok(()) };
            let Ok(sizes) = bind_sizes(&function, &args) else { continue };
            let size = |s: &chainrule_ir::Size| usize::try_from(sizes.eval(s).unwrap()).unwrap();
            let inputs: Vec<Array> =
                function.params.iter().zip(&args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size)).collect();
            let expected = reference(&kernel, &inputs);
            if !reorder {
                prop_assert_eq!(&reference(&plain, &inputs), &expected, "cut and not cut: {}", kernel);
            }
            for threads in [1, 2, 3, 8] {
                let (found, used) = on_threads(&kernel, &program, &inputs, threads);
                prop_assert_eq!(&found, &expected, "{} threads: {}", threads, kernel);
                if used > 1 {
                    let count = if expected.is_ok() { &ran } else { &failed };
                    count.set(count.get() + 1);
                }
            }
        }
        Ok::<(), TestCaseError>(())
    });
    println!("{} ran on threads, {} failed as they mean to", ran.get(), failed.get());
    (ran.get(), failed.get())
}

#[test]
fn independent_loops_have_the_same_results_on_any_number_of_threads() {
    let (ran, failed) = many(2000, 51, false);
    assert!(ran > 1000, "{ran} ran, {failed} failed");
}

#[test]
fn sums_have_the_same_results_on_any_number_of_threads() {
    let (ran, failed) = many(2000, 52, true);
    assert!(ran > 2000, "{ran} ran, {failed} failed");
}

/// `x[picks[i]]` for each `i`, and their sum, where some are out of range: the first one is told.
#[test]
fn the_first_failure_is_told_on_any_number_of_threads() {
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
    assert_eq!(parallelise(&mut kernel, true), 2, "{kernel}");
    vectorise(&mut kernel, true);
    let program = Program::new(Arc::new(kernel.clone()), &Options::default()).unwrap();
    let x = chainrule_backend_tests::reals(&[1.5, 2.5, 3.5]);
    // Where an element is wrong, and how.
    for wrong in [&[][..], &[(5, 7), (70, 8), (99, -1)], &[(99, 3)], &[(40, -2), (41, 9), (80, 5)]] {
        let mut picks: Vec<i64> = (0..100).map(|i| i % 3).collect();
        wrong.iter().for_each(|(at, pick)| picks[*at] = *pick);
        let picks = Array { shape: vec![100], data: Data::Int(picks) };
        let inputs = [picks, x.clone()];
        let expected = reference(&kernel, &inputs);
        match (&expected, wrong) {
            (Ok(_), []) => {}
            (Err(message), [(_, pick), ..]) => assert!(message.contains(&format!("{pick}")), "{message}"),
            _ => panic!("{expected:?}"),
        }
        for threads in [1, 2, 3, 8, 40] {
            for _ in 0..20 {
                let (found, used) = on_threads(&kernel, &program, &inputs, threads);
                assert_eq!(found, expected);
                assert_eq!(used, threads.min(16));
            }
        }
    }
}

/// Thousands of them: `cargo test --release -p chainrule-native --test threads -- --ignored --nocapture`.
#[test]
#[ignore = "minutes"]
fn thousands_have_the_same_results_on_any_number_of_threads() {
    many(20_000, 1051, false);
    many(20_000, 1052, true);
}
