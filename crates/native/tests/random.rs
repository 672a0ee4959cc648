//! Random kernels against the interpreter, bit for bit, at every level that the machine has; batches against
//! single points.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::Unstructured;
use chainrule_backend_tests::generate::{lower, random};
use chainrule_backend_tests::{Array, Data, flatten, int, ints, reals};
use chainrule_base::{Arena, Name, Poly};
use chainrule_graph::Semantics;
use chainrule_graph::generate::{Numbers, Options as GraphOptions, Recipe, chain, layered};
use chainrule_interpret as interpret;
use chainrule_ir::generate::{comparisons, records};
use chainrule_ir::{Function, Value, bind_sizes};
use chainrule_kernel::{
    Buffer, Class, Instr, Kernel, Place, Port, Reg, SizeParam, SizeSource, Stmt, contract, hoist, lower_function,
    streamline, vectorise,
};
use chainrule_native::{Level, Options, Program, Workspace};
use chainrule_ops::Op;
use chainrule_runtime::{Elements, RunError, Slice, SliceMut, Strided, StridedMut};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::cell::Cell;
use std::sync::Arc;

/// The program at each level that this machine has.
fn programs(kernel: &Kernel) -> Vec<Program> {
    let kernel = Arc::new(kernel.clone());
    let here = Level::ALL.into_iter().filter(|level| level.missing().is_empty());
    let program = |level| Program::new(kernel.clone(), &Options { level: Some(level), ..Options::default() });
    here.map(|level| program(level).expect("a kernel that can be compiled")).collect()
}

fn zeros(kernel: &Kernel, lens: impl Fn(usize) -> usize) -> Vec<Data> {
    let class = |b| kernel.buffers[b].class;
    let zero = |(i, port): (usize, &chainrule_kernel::Port)| Data::new(class(port.buffer), lens(i));
    kernel.outputs.iter().enumerate().map(zero).collect()
}

fn run(kernel: &Kernel, program: &Program, inputs: &[Array]) -> Result<Vec<Data>, RunError> {
    let shapes: Vec<&[usize]> = inputs.iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = inputs.iter().map(|a| a.data.slice()).collect();
    let sizes = program.bind_inputs(&shapes, &slices)?;
    let mut results = zeros(kernel, |i| sizes.output_len(i));
    let mut into: Vec<SliceMut<'_>> = results.iter_mut().map(Data::slice_mut).collect();
    program.run(&sizes, &slices, &mut into, &mut Workspace::new(program, &sizes))?;
    Ok(results)
}

/// The same in memory of its own, twice, and where all is of doubles by slices of them; nothing where sizes do not fit.
fn run_bound(kernel: &Kernel, program: &Program, inputs: &[Array]) -> Option<Result<Vec<Data>, RunError>> {
    let shapes: Vec<&[usize]> = inputs.iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = inputs.iter().map(|a| a.data.slice()).collect();
    let sizes = program.bind_inputs(&shapes, &slices).ok()?;
    let elements = inputs.iter().map(|a| a.data.elements()).collect();
    let mut bound = program.bound(sizes.clone(), elements, Workspace::new(program, &sizes)).ok()?;
    let run = bound.run().and_then(|()| bound.run());
    let results: Vec<Data> = bound.outputs().iter().map(|y| Data::of(y.slice())).collect();
    let reals = |slice: &Slice<'_>| matches!(slice, Slice::Real(_));
    if slices.iter().all(reals) && bound.outputs().iter().all(|y| reals(&y.slice())) {
        let reals: Vec<&[f64]> = bound.inputs().iter().map(Elements::reals).collect();
        let mut outputs: Vec<Vec<f64>> = bound.outputs().iter().map(|y| vec![0.5; y.reals().len()]).collect();
        let mut into: Vec<&mut [f64]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let by_slices = program.run_reals(&sizes, &reals, &mut into, &mut Workspace::new(program, &sizes));
        assert_eq!(by_slices.map_err(|e| e.to_string()), run.clone().map_err(|e| e.to_string()), "{kernel}");
        if run.is_ok() {
            assert_eq!(results, outputs.into_iter().map(Data::Real).collect::<Vec<_>>(), "{kernel}");
        }
    }
    Some(run.map(|()| results))
}

/// All points as one batch of structures, or of arrays.
fn run_batch(
    kernel: &Kernel,
    program: &Program,
    points: &[Vec<Array>],
    arrays: bool,
    threads: usize,
) -> Result<(Vec<Vec<Data>>, usize), RunError> {
    let shapes: Vec<&[usize]> = points[0].iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = points[0].iter().map(|a| a.data.slice()).collect();
    let sizes = program.bind_inputs(&shapes, &slices)?;
    let n = points.len();
    let stride = |len: usize| if arrays { (1, n) } else { (len, 1) };
    let place = |p: usize, e: usize, len: usize| p * stride(len).0 + e * stride(len).1;
    let joined: Vec<Data> = (0..kernel.inputs.len())
        .map(|i| match &points[0][i].data {
            Data::Real(d) => {
                let len = d.len();
                let mut all = vec![0.0; n * len];
                for (p, point) in points.iter().enumerate() {
                    let Data::Real(d) = &point[i].data else { unreachable!() };
                    d.iter().enumerate().for_each(|(e, x)| all[place(p, e, len)] = *x);
                }
                Data::Real(all)
            }
            Data::Int(d) => {
                let len = d.len();
                let mut all = vec![0; n * len];
                for (p, point) in points.iter().enumerate() {
                    let Data::Int(d) = &point[i].data else { unreachable!() };
                    d.iter().enumerate().for_each(|(e, x)| all[place(p, e, len)] = *x);
                }
                Data::Int(all)
            }
        })
        .collect();
    let len = |data: &Data| match data {
        Data::Real(d) => d.len() / n,
        Data::Int(d) => d.len() / n,
    };
    let inputs: Vec<Strided<'_>> = joined
        .iter()
        .map(|data| Strided { data: data.slice(), point: stride(len(data)).0, element: stride(len(data)).1 })
        .collect();
    let mut results = zeros(kernel, |i| n * sizes.output_len(i));
    let mut into: Vec<StridedMut<'_>> = results
        .iter_mut()
        .enumerate()
        .map(|(i, data)| {
            let (point, element) = stride(sizes.output_len(i));
            StridedMut { data: data.slice_mut(), point, element }
        })
        .collect();
    let lanes = program.lanes_for(&sizes);
    let mut workspaces: Vec<Workspace> = (0..threads).map(|_| Workspace::for_batch(program, &sizes)).collect();
    program.run_batch(&sizes, n, &inputs, &mut into, &mut workspaces)?;
    let split = |p: usize| {
        let part = |data: &Data| {
            let len = len(data);
            match data {
                Data::Real(d) => Data::Real((0..len).map(|e| d[place(p, e, len)]).collect()),
                Data::Int(d) => Data::Int((0..len).map(|e| d[place(p, e, len)]).collect()),
            }
        };
        results.iter().map(part).collect()
    };
    Ok(((0..n).map(split).collect(), lanes))
}

/// What the interpreter says.
fn reference(kernel: &Kernel, program: &interpret::Program, inputs: &[Array]) -> Result<Vec<Data>, String> {
    let shapes: Vec<&[usize]> = inputs.iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = inputs.iter().map(|a| a.data.slice()).collect();
    let sizes = program.bind_inputs(&shapes, &slices).map_err(|e| e.to_string())?;
    let mut results = zeros(kernel, |i| sizes.output_len(i));
    let mut into: Vec<SliceMut<'_>> = results.iter_mut().map(Data::slice_mut).collect();
    let mut workspace = interpret::Workspace::new(program, &sizes).poisoned();
    program.run(&sizes, &slices, &mut into, &mut workspace).map_err(|e| e.to_string())?;
    Ok(results)
}

/// Compares one kernel, and the same with products fused, at all levels; see [`compare_one`].
fn compare(kernel: &Kernel, points: &[Vec<Array>]) -> Result<usize, TestCaseError> {
    let mut fused = kernel.clone();
    if contract(&mut fused) > 0 {
        prop_assert_eq!(chainrule_kernel::verify(&fused), Ok(()));
        compare_one(&fused, points)?;
    }
    compare_one(kernel, points)
}

/// Compares one kernel at all levels on points that share sizes; how many batches ran in lanes.
fn compare_one(kernel: &Kernel, points: &[Vec<Array>]) -> Result<usize, TestCaseError> {
    let interpreter = interpret::Program::new(kernel).unwrap();
    let expected: Vec<_> = points.iter().map(|point| reference(kernel, &interpreter, point)).collect();
    let mut in_lanes = 0;
    for program in programs(kernel) {
        for (point, expected) in points.iter().zip(&expected) {
            let found = run(kernel, &program, point).map_err(|e| e.to_string());
            prop_assert_eq!(&found, expected, "{} {}", program.level().name(), kernel);
            if let Some(found) = run_bound(kernel, &program, point) {
                prop_assert_eq!(
                    &found.map_err(|e| e.to_string()),
                    expected,
                    "bound {} {}",
                    program.level().name(),
                    kernel
                );
            }
        }
        let Ok(expected) = expected.iter().cloned().collect::<Result<Vec<_>, _>>() else { continue };
        for (arrays, threads) in [(false, 1), (true, 1), (true, 2)] {
            let (found, lanes) = run_batch(kernel, &program, points, arrays, threads).unwrap();
            prop_assert_eq!(&found, &expected, "batch {} {}", program.level().name(), kernel);
            prop_assert_eq!(program.lanes_refused(), None);
            in_lanes += usize::from(lanes > 1);
        }
    }
    Ok(in_lanes)
}

/// Points near `point`, enough for a whole block of lanes and a tail.
fn around(point: &[f64], n: usize) -> Vec<Vec<Array>> {
    let shifted = |p: usize| point.iter().map(|x| x + p as f64 / 64.0).collect::<Vec<f64>>();
    (0..n).map(|p| vec![reals(&shifted(p))]).collect()
}

/// Random straight lines of at most `steps` operations, so many of tame numbers and so many of special ones.
fn graphs(cases: u32, seed: u64, steps: usize) {
    let in_lanes = Cell::new(0);
    for (seed, numbers, in_domain) in [(seed, Numbers::Tame, true), (seed + 1, Numbers::Special, false)] {
        random(cases, seed, 40 * steps, |u| {
            let options = GraphOptions { numbers, in_domain, max_roots: 6, ..GraphOptions::new(steps) };
            let Ok(recipe) = Recipe::random(u, &options) else { return Ok(()) };
            let (graph, roots) = recipe.raw(Semantics::Strict);
            in_lanes.set(in_lanes.get() + compare(&lower(&graph, &roots), &around(&recipe.point, 13))?);
            Ok(())
        });
    }
    // Three batches of each kernel: a straight line always runs in lanes.
    let levels = Level::ALL.into_iter().filter(|level| level.missing().is_empty()).count();
    assert_eq!(in_lanes.get(), 6 * cases as usize * levels);
}

#[test]
fn graphs_have_the_value_that_the_interpreter_gives_them() {
    graphs(1000, 1, 80);
    // Far more values than registers.
    graphs(60, 11, 800);
}

#[test]
fn functions_have_the_value_that_the_interpreter_gives_them() {
    functions(4000, 3);
}

/// Tens of thousands of random kernels, at all levels, in lanes and one by one:
/// `cargo test --release -p chainrule-native --test random -- --ignored --nocapture`, minutes. Others with another
/// `CHAINRULE_RANDOM_SEED`, and `CHAINRULE_RANDOM_CASES` times as many.
#[test]
#[ignore = "minutes"]
fn tens_of_thousands_of_kernels_have_the_value_that_the_interpreter_gives_them() {
    let told = |name: &str, otherwise: u64| std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(otherwise);
    let (seed, times) = (told("CHAINRULE_RANDOM_SEED", 1000), told("CHAINRULE_RANDOM_CASES", 1) as u32);
    graphs(10_000 * times, seed, 80);
    println!("straight lines of at most 80 operations: done");
    graphs(1000 * times, seed + 2, 1000);
    println!("of at most 1000: done");
    graphs(50 * times, seed + 4, 10_000);
    println!("of at most 10000: done");
    functions(60_000 * times, seed + 6);
}

/// Random functions of the array IR, with all its forms of loops.
fn functions(cases: u32, seed: u64) {
    let (ran, failed, in_lanes) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let options = chainrule_ir::generate::Options { derivatives: false, transposed: false, ..Default::default() };
    random(cases, seed, 3000, |u| {
        let Ok(case) = chainrule_ir::generate::case(u, options) else { return Ok(()) };
        let function = &case.function;
        // A size that depends on data is a limitation of the lowering.
        let Ok(kernel) = lower_function(function) else { return Ok(()) };
        let Ok(sizes) = bind_sizes(function, &case.args) else { return Ok(()) };
        let size = |s: &chainrule_ir::Size| usize::try_from(sizes.eval(s).unwrap()).unwrap();
        let leaves = |args: &[Value<f64>]| -> Vec<Array> {
            function.params.iter().zip(args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size)).collect()
        };
        // Other points: the same integers and sizes, other reals.
        let points: Vec<Vec<Array>> = (0..11)
            .map(|p| {
                let moved = |arg: &Value<f64>| arg.map(&mut |x| x + p as f64 / 128.0);
                leaves(&case.args.iter().map(moved).collect::<Vec<_>>())
            })
            .collect();
        in_lanes.set(in_lanes.get() + compare(&kernel, &points)?);
        let mut plain = kernel.clone();
        streamline(&mut plain);
        hoist(&mut plain);
        compare(&plain, &points)?;
        let interpreter = interpret::Program::new(&kernel).unwrap();
        let count = if reference(&kernel, &interpreter, &points[0]).is_ok() { &ran } else { &failed };
        count.set(count.get() + 1);
        Ok(())
    });
    println!("{} ran, {} failed as they mean to, {} batches in lanes", ran.get(), failed.get(), in_lanes.get());
    assert!(ran.get() > cases / 3, "{} ran", ran.get());
    assert!(in_lanes.get() > cases as usize / 15, "{} in lanes", in_lanes.get());
}

/// Random functions with loops cut for lanes, at sizes where there are whole blocks and rests.
#[test]
fn loops_that_run_at_once_have_the_value_that_the_interpreter_gives_them() {
    at_once(1500, 21);
}

/// Tens of thousands of them: as
/// [`tens_of_thousands_of_kernels_have_the_value_that_the_interpreter_gives_them`].
#[test]
#[ignore = "minutes"]
fn tens_of_thousands_of_loops_that_run_at_once() {
    at_once(40_000, 1021);
}

fn at_once(cases: u32, seed: u64) {
    let (ran, cut) = (Cell::new(0), Cell::new(0));
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
        let Ok(mut kernel) = lower_function(&function) else { return Ok(()) };
        let is_plain = u.ratio(1, 2).unwrap_or(true);
        if is_plain {
            streamline(&mut kernel);
        }
        let loops = vectorise(&mut kernel, true);
        if loops == 0 {
            return Ok(());
        }
        if is_plain {
            hoist(&mut kernel);
        }
        for longest in [40, 17, 9] {
            let Ok(args) = chainrule_ir::generate::arguments_up_to(u, &function, longest) else { return Ok(()) };
            let Ok(sizes) = bind_sizes(&function, &args) else { continue };
            let size = |s: &chainrule_ir::Size| usize::try_from(sizes.eval(s).unwrap()).unwrap();
            let leaves =
                function.params.iter().zip(&args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size)).collect();
            let points = [leaves];
            compare(&kernel, &points)?;
            let interpreter = interpret::Program::new(&kernel).unwrap();
            if reference(&kernel, &interpreter, &points[0]).is_ok() {
                ran.set(ran.get() + 1);
                cut.set(cut.get() + loops);
            }
        }
        Ok(())
    });
    println!("{} ran, with {} loops cut", ran.get(), cut.get());
    assert!(ran.get() > cases / 3, "{} ran", ran.get());
}

/// Runs functions as they are and with their loops in lanes; how many had a value, and how many loops were cut.
fn as_they_are_and_in_lanes(
    cases: u32,
    seed: u64,
    case: impl Fn(&mut Unstructured<'_>) -> arbitrary::Result<(Function, Vec<Value<f64>>)>,
) -> (usize, usize) {
    let (ran, cut) = (Cell::new(0), Cell::new(0));
    random(cases, seed, 3000, |u| {
        let Ok((function, args)) = case(u) else { return Ok(()) };
        let Ok(mut kernel) = lower_function(&function) else { return Ok(()) };
        let Ok(sizes) = bind_sizes(&function, &args) else { return Ok(()) };
        let size = |s: &chainrule_ir::Size| usize::try_from(sizes.eval(s).unwrap()).unwrap();
        let leaves: Vec<Array> =
            function.params.iter().zip(&args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size)).collect();
        let points = [leaves];
        compare(&kernel, &points)?;
        streamline(&mut kernel);
        cut.set(cut.get() + vectorise(&mut kernel, true));
        hoist(&mut kernel);
        compare(&kernel, &points)?;
        let interpreter = interpret::Program::new(&kernel).unwrap();
        ran.set(ran.get() + usize::from(reference(&kernel, &interpreter, &points[0]).is_ok()));
        Ok(())
    });
    println!("{} ran, with {} loops cut", ran.get(), cut.get());
    (ran.get(), cut.get())
}

#[test]
fn loops_that_compare_their_indices_have_the_value_that_the_interpreter_gives_them() {
    let (ran, cut) = as_they_are_and_in_lanes(1500, 22, |u| comparisons::case(u, 24, 20));
    assert!(ran > 1000 && cut > 500, "{ran} ran, {cut} loops were cut");
}

#[test]
fn fields_of_records_have_the_value_that_the_interpreter_gives_them() {
    let (ran, cut) = as_they_are_and_in_lanes(1500, 23, |u| records::case(u, 28));
    assert!(ran > 1000 && cut > 1000, "{ran} ran, {cut} loops were cut");
}

/// Tens of thousands of them: as
/// [`tens_of_thousands_of_kernels_have_the_value_that_the_interpreter_gives_them`].
#[test]
#[ignore = "minutes"]
fn tens_of_thousands_of_fields_of_records() {
    let (ran, cut) = as_they_are_and_in_lanes(30_000, 1023, |u| records::case(u, 28));
    assert!(ran > 20_000 && cut > 20_000, "{ran} ran, {cut} loops were cut");
}

#[test]
fn more_values_than_registers_and_a_hundred_thousand_operations() {
    for (n, n_inputs, width, seed) in [(3_000, 40, 100, 1), (20_000, 5, 10, 2), (100_000, 30, 1000, 3)] {
        let (graph, roots) = layered(Semantics::Strict, n, n_inputs, width, seed);
        let x: Vec<f64> = (0..n_inputs).map(|i| 0.1 * i as f64 - 0.4).collect();
        compare(&lower(&graph, &roots), &around(&x, 9)).unwrap();
    }
    let (graph, top) = chain(Semantics::Strict, 100_000);
    compare(&lower(&graph, &[top]), &around(&[0.7], 9)).unwrap();
}

/// Truth values that wait while others are made: those that have no mask register wait in vectors, which are few, too.
#[test]
fn more_truth_values_than_mask_registers() {
    random(600, 21, 2000, |u| {
        let mut graph = chainrule_graph::Graph::new(Semantics::Strict);
        let point: Vec<f64> = (0..8).map(|i| f64::from(i * 5 % 8) - 3.5).collect();
        let mut reals: Vec<_> = (0..8).map(|i| graph.input(format!("x{i}"))).collect();
        let mut truths = vec![graph.raw(Op::Lt, &[reals[0], reals[1]])];
        for _ in 0..u.int_in_range(10..=70)? {
            let (a, b, t, s) = (*u.choose(&reals)?, *u.choose(&reals)?, *u.choose(&truths)?, *u.choose(&truths)?);
            match u.int_in_range(0..=9)? {
                0 => reals.push(graph.raw(Op::Max, &[a, b])),
                1 => reals.push(graph.raw(Op::Sub, &[a, b])),
                2 => reals.push(graph.raw(Op::Select, &[t, a, b])),
                3 => truths.push(graph.raw(Op::And, &[t, s])),
                4 => truths.push(graph.raw(Op::Or, &[t, s])),
                5 => truths.push(graph.raw(Op::Not, &[t])),
                6 => truths.push(graph.raw(Op::Eq, &[a, b])),
                7 => truths.push(graph.raw(Op::Le, &[a, b])),
                _ => truths.push(graph.raw(Op::Lt, &[a, b])),
            }
        }
        let (one, zero) = (graph.constant(1.0), graph.constant(0.0));
        let mut roots: Vec<_> = truths.iter().map(|t| graph.raw(Op::Select, &[*t, one, zero])).collect();
        roots.push(reals[reals.len() - 1]);
        compare(&lower(&graph, &roots), &around(&point, 13))?;
        Ok(())
    });
}

/// Zeros among other results, which native code stores several at once: nothing else is zero, nothing outside of
/// the output is touched.
#[test]
fn zeros_are_where_they_belong() {
    const GUARD: usize = 16;
    let mut mask = 0x9e37_79b9_7f4a_7c15_u64;
    for n in 1..70 {
        mask = mask.rotate_left(7).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mut graph = chainrule_graph::Graph::new(Semantics::Strict);
        let (x, zero, negative) = (graph.input("x"), graph.constant(0.0), graph.constant(-0.0));
        let mut last = x;
        let mut roots = Vec::new();
        for i in 0..n {
            roots.push(match (mask >> (i % 61)) & 7 {
                0..=3 => zero,
                4 => negative,
                _ => {
                    last = graph.raw(Op::Sub, &[x, last]);
                    last
                }
            });
        }
        let kernel = lower(&graph, &roots);
        let expected = graph.f64_at(&[1.5], &roots).unwrap();
        for program in programs(&kernel) {
            let sizes = program.bind(&[&[1]], &[]).unwrap();
            let mut y = vec![7.0; n + 2 * GUARD];
            let mut workspace = Workspace::new(&program, &sizes);
            let into = &mut [SliceMut::Real(&mut y[GUARD..GUARD + n])];
            program.run(&sizes, &[Slice::Real(&[1.5])], into, &mut workspace).unwrap();
            assert!(y[..GUARD].iter().chain(&y[GUARD + n..]).all(|y| *y == 7.0), "outside of {n}");
            assert_eq!(Data::Real(y[GUARD..GUARD + n].to_vec()), Data::Real(expected.clone()));
        }
    }
}

/// Copies `w` elements of `x`, from `where[1]` on, to `y`, from `where[0]` on; the others are those of `z`.
fn copy_of_a_row() -> Kernel {
    let (mut regs, mut buffers) = (Arena::new(), Arena::new());
    let [n, k, w, to, from] = [(); 5].map(|()| regs.push(Class::Int));
    let len = |r| Poly::var(r);
    let two = Poly::constant(2);
    let mut buffer = |class, len: &Poly<Reg>, place| buffers.push(Buffer { class, len: len.clone(), place });
    let x = buffer(Class::Real, &len(n), Place::Input(0));
    let z = buffer(Class::Real, &len(k), Place::Input(1));
    let places = buffer(Class::Int, &two, Place::Input(2));
    let width = buffer(Class::Int, &Poly::constant(1), Place::Input(3));
    let y = buffer(Class::Real, &len(k), Place::Output(0));
    let port = |name, shape, buffer| Port { name: Name::new(name), shape, buffer };
    let size = |name, reg, source| SizeParam { name: Name::new(name), reg, source };
    let first = |buffer, at| Instr::Load { dst: if at == 0 { to } else { from }, buffer, at: Poly::constant(at) };
    Kernel {
        name: Name::new("rows"),
        sizes: vec![
            size("n", n, SizeSource::Extent { input: 0, dim: 0 }),
            size("k", k, SizeSource::Extent { input: 1, dim: 0 }),
            size("w", w, SizeSource::Value { input: 3 }),
        ],
        inputs: vec![
            port("x", vec![len(n)], x),
            port("z", vec![len(k)], z),
            port("places", vec![two], places),
            port("w", vec![], width),
        ],
        outputs: vec![port("y", vec![len(k)], y)],
        requires: vec![],
        workspace_reals: Poly::zero(),
        workspace_ints: Poly::zero(),
        externals: vec![],
        failures: vec![],
        body: vec![
            Stmt::Copy { to: (y, Poly::zero()), from: (z, Poly::zero()), len: len(k) },
            Stmt::Straight(vec![first(places, 0), first(places, 1)]),
            Stmt::Copy { to: (y, len(to)), from: (x, len(from)), len: len(w) },
        ],
        regs,
        buffers,
    }
}

#[test]
fn rows_are_copied_to_where_they_fit_and_nowhere_else() {
    let kernel = copy_of_a_row();
    let interpreter = interpret::Program::new(&kernel).unwrap();
    let numbers = |n: i64, first: f64| reals(&(0..n).map(|i| first + i as f64).collect::<Vec<_>>());
    let far = [i64::MIN, i64::MAX, i64::MAX / 8 - 3, -1];
    let (mut inside, mut outside) = (0, 0);
    for w in (-1..40).chain(far) {
        for (to, from) in [(0, 0), (3, 5), (5, 0), (0, far[0]), (far[1], 1), (far[2], 1), (1, far[2]), (far[3], 0)] {
            for more in [0, 1, -1] {
                // As long as it must be for the one, or not quite, and longer for the other.
                let len = |first: i64, more: i64| first.saturating_add(w).saturating_add(more).clamp(0, 60);
                for lens in [(len(from, more), len(to, 2)), (len(from, 2), len(to, more))] {
                    let point = |p: i64| {
                        let (x, z) = (numbers(lens.0, 100.0 * p as f64), numbers(lens.1, -1000.0));
                        vec![x, z, ints(&[to, from]), int(w)]
                    };
                    let points: Vec<Vec<Array>> = (0..13).map(point).collect();
                    if reference(&kernel, &interpreter, &points[0]).is_ok() {
                        compare_one(&kernel, &points).unwrap();
                        inside += 1;
                        continue;
                    }
                    outside += 1;
                    for program in programs(&kernel) {
                        assert!(run(&kernel, &program, &points[0]).is_err(), "{w} from {from} to {to}");
                        assert!(run_batch(&kernel, &program, &points, true, 1).is_err(), "{w} from {from} to {to}");
                    }
                }
            }
        }
    }
    assert!(inside > 300 && outside > 300, "{inside} inside, {outside} outside");
}
