//! Random kernels against the interpreter: results bit for bit, failures with equal messages; batches against single
//! points.

#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_backend_tests::case::results;
use chainrule_backend_tests::filetests::{check, shared};
use chainrule_backend_tests::generate::{array_function, deep_case, function, graph, lower, random};
use chainrule_backend_tests::kernels::{integer_case, integer_operator, integer_operators, integer_points, operators};
use chainrule_backend_tests::{Case, Data, at_once, reals};
use chainrule_cases::covers;
use chainrule_cranelift::{Options, Program, Workspace};
use chainrule_graph::Semantics;
use chainrule_graph::generate::{Numbers, Options as GraphOptions, chain, layered};
use chainrule_kernel::{Kernel, contract};
use chainrule_runtime::{Backend, RunError, Slice, SliceMut, Strided, StridedMut};
use std::cell::Cell;

/// Returns the program, or prints why there is none on this machine.
fn compile(kernel: &Kernel) -> Option<Program> {
    match Program::new(kernel, &Options::default()) {
        Ok(program) => Some(program),
        Err(why) if why.title.starts_with("Cranelift makes no code") || why.title.starts_with("this system denies") => {
            println!("skipped: {why}");
            None
        }
        Err(why) => panic!("{why}\n{kernel}"),
    }
}

fn run(program: &Program, case: &Case) -> Result<Vec<Data>, RunError> {
    let slices = case.slices();
    let sizes = program.bind_inputs(&case.shapes(), &slices)?;
    let outputs = case.kernel.outputs.iter().enumerate();
    let mut found: Vec<Data> = outputs.map(|(i, port)| Data::new(case.class(port), sizes.output_len(i))).collect();
    let mut into: Vec<SliceMut<'_>> = found.iter_mut().map(Data::slice_mut).collect();
    program.run(&sizes, &slices, &mut into, &mut Workspace::new(program, &sizes))?;
    Ok(found)
}

/// Runs three points as one batch of structures; returns the results of each.
fn run_batch(program: &Program, points: &[Case; 3]) -> Result<[Vec<Data>; 3], RunError> {
    let sizes = program.bind_inputs(&points[0].shapes(), &points[0].slices())?;
    let mut joined: Vec<Data> = points[0].inputs.iter().map(|a| a.data.clone()).collect();
    for point in &points[1..] {
        joined.iter_mut().zip(&point.inputs).for_each(|(all, one)| all.append(&one.data));
    }
    let strided = |data: &Data| (data.bits().len() / 3, 1);
    let inputs: Vec<Strided<'_>> = (joined.iter())
        .map(|data| Strided { data: data.slice(), point: strided(data).0, element: strided(data).1 })
        .collect();
    let outputs = points[0].kernel.outputs.iter().enumerate();
    let mut found: Vec<Data> =
        outputs.map(|(i, port)| Data::new(points[0].class(port), 3 * sizes.output_len(i))).collect();
    let mut into: Vec<StridedMut<'_>> = (found.iter_mut().enumerate())
        .map(|(i, data)| StridedMut { data: data.slice_mut(), point: sizes.output_len(i), element: 1 })
        .collect();
    program.run_batch(&sizes, 3, &inputs, &mut into, &mut [Workspace::new(program, &sizes)])?;
    Ok([0, 1, 2].map(|p| {
        let part = |(i, data): (usize, &Data)| data.part(p * sizes.output_len(i), sizes.output_len(i));
        found.iter().enumerate().map(part).collect()
    }))
}

/// Compares a kernel, with and without fused products, with the interpreter; returns whether it failed as intended.
fn compare(case: &Case) -> bool {
    let mut fused = case.clone();
    contract(&mut fused.kernel);
    let mut failed = false;
    for case in [case, &fused] {
        let Some(program) = compile(&case.kernel) else { return false };
        let words = |outcome: Result<Vec<Data>, RunError>| outcome.map_err(|e| format!("{e} {e:?}"));
        let points = [0, 1, 2].map(|p| case.moved(p));
        let expected = points.each_ref().map(|point| words(results(point)));
        let found = points.each_ref().map(|point| words(run(&program, point)));
        assert_eq!(found, expected, "{}\n{:?}", case.kernel, case.inputs);
        failed |= found[0].is_err();
        match run_batch(&program, &points) {
            Ok(batch) => assert_eq!(batch.map(Ok), expected, "{}", case.kernel),
            Err(RunError::Failure { point: Some(p), .. }) => {
                assert!(expected[p].is_err() && expected[..p].iter().all(Result::is_ok), "{}", case.kernel);
            }
            // Arguments that do not fit, whatever the point.
            Err(other) => assert_eq!(Err(format!("{other} {other:?}")), expected[0], "{}", case.kernel),
        }
    }
    failed
}

/// Kernels as text with their outcomes.
#[test]
fn kernels_have_their_outcomes() {
    check(&shared(), |case| {
        let Some(program) = compile(&case.kernel) else { return Ok(results(case)) };
        compare(case);
        Ok(run(&program, case))
    });
}

#[test]
fn graphs_have_the_bits_of_the_interpreter() {
    for (seed, numbers, in_domain) in [(1, Numbers::Tame, true), (2, Numbers::Special, false)] {
        random(60, seed, 2000, |u| {
            let options = GraphOptions { numbers, in_domain, max_roots: 6, ..GraphOptions::new(60) };
            if let Some(case) = graph(u, &options, Kernel::clone) {
                assert!(!compare(&case), "a straight line cannot fail");
            }
            Ok(())
        });
    }
}

#[test]
fn functions_compute_and_fail_as_the_interpreter_does() {
    let (ran, failed) = (Cell::new(0), Cell::new(0));
    let count = |case: Case| {
        let count = if compare(&case) { &failed } else { &ran };
        count.set(count.get() + 1);
    };
    random(250, 3, 3000, |u| {
        function(u, false, Kernel::clone).map(count);
        Ok(())
    });
    random(60, 9, 1500, |u| {
        array_function(u, Kernel::clone).map(count);
        Ok(())
    });
    println!("{} ran, {} failed as they mean to", ran.get(), failed.get());
    covers!(ran.get() > 150, "{}", ran.get());
}

/// Canonicalised and vectorised loops, as they are compiled, also at sizes with whole blocks of lanes.
#[test]
fn loops_at_once_compute_and_fail_as_the_interpreter_does() {
    let (ran, failed, in_lanes) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let count = |case: Case| {
        in_lanes.set(in_lanes.get() + usize::from(case.has_lanes()));
        let count = if compare(&case) { &failed } else { &ran };
        count.set(count.get() + 1);
    };
    random(100, 31, 3000, |u| {
        function(u, false, at_once).map(count);
        Ok(())
    });
    random(300, 32, 3000, |u| {
        deep_case(u, at_once).filter(Case::has_lanes).map(count);
        Ok(())
    });
    random(40, 33, 1500, |u| {
        array_function(u, at_once).map(count);
        Ok(())
    });
    println!("{} ran, {} failed as they mean to, {} with loops at once", ran.get(), failed.get(), in_lanes.get());
    covers!(ran.get() > 150 && in_lanes.get() > 40, "{} ran, {} with loops at once", ran.get(), in_lanes.get());
}

#[test]
fn operators_have_the_values_of_their_rows() {
    for operator in operators(400) {
        compare(&operator.case);
    }
}

#[test]
fn integer_operators_fail_exactly_where_their_rows_do() {
    for op in integer_operators() {
        let Some(program) = compile(&integer_operator(op)) else { return };
        for point in integer_points(op) {
            let case = integer_case(op, &point);
            assert_eq!(run(&program, &case), results(&case), "{} {point:?}", op.name());
        }
    }
}

#[test]
fn more_values_than_registers_and_ten_thousand_operations() {
    let (graph, roots) = layered(Semantics::Strict, 3_000, 40, 100, 1);
    let x: Vec<f64> = (0..40).map(|i| 0.1 * i as f64 - 0.4).collect();
    compare(&Case { kernel: lower(&graph, &roots), inputs: vec![reals(&x)] });
    let (graph, top) = chain(Semantics::Strict, 10_000);
    compare(&Case { kernel: lower(&graph, &[top]), inputs: vec![reals(&[0.7])] });
}

#[test]
fn what_does_not_fit_writes_nothing() {
    let (graph, top) = chain(Semantics::Strict, 10);
    let kernel = lower(&graph, &[top]);
    let Some(program) = compile(&kernel) else { return };
    let sizes = program.bind(&[&[1]], &[]).unwrap();
    let mut workspace = Workspace::new(&program, &sizes);
    let mut y = [7.0; 2];
    assert!(program.run(&sizes, &[Slice::Real(&[0.5])], &mut [SliceMut::Real(&mut y)], &mut workspace).is_err());
    assert!(program.run(&sizes, &[], &mut [SliceMut::Real(&mut y[..1])], &mut workspace).is_err());
    let other = Program::new(&kernel, &Options::default()).unwrap();
    let run = |program: &Program, y: &mut [f64], workspace: &mut Workspace| {
        program.run(&sizes, &[Slice::Real(&[0.5])], &mut [SliceMut::Real(y)], workspace)
    };
    assert!(run(&other, &mut y[..1], &mut workspace).is_err(), "sizes of another program");
    assert_eq!(y, [7.0; 2]);
    run(&program, &mut y[..1], &mut workspace).unwrap();
    assert!(y[0] != 7.0 && y[1] == 7.0);
    let denied = Program::new(&kernel, &Options { deny_executable: true, ..Options::default() }).unwrap_err();
    assert_eq!(denied.title, "this system denies executable memory");
}

#[test]
fn what_is_too_large_is_refused_at_once() {
    let (graph, top) = chain(Semantics::Strict, 300_000);
    let why = Program::new(&lower(&graph, &[top]), &Options::default()).unwrap_err();
    assert_eq!(why.title, "the kernel is too large for Cranelift");
}
