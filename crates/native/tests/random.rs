//! Random kernels against the interpreter, bit for bit, at every level of the machine; batches against single points.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::Unstructured;
use chainrule_backend_tests::generate::{deep_function, inputs, inputs_up_to, lower, random};
use chainrule_backend_tests::native::{Compared, compare, compare_one, programs, reference, run, run_batch};
use chainrule_backend_tests::{Array, Data, around, int, ints, reals};
use chainrule_base::{Arena, Name, Poly};
use chainrule_cases::covers;
use chainrule_graph::Semantics;
use chainrule_graph::generate::{Numbers, Options as GraphOptions, Recipe, chain, layered};
use chainrule_interpret as interpret;
use chainrule_ir::generate::{comparisons, records, windows};
use chainrule_ir::{Function, Value};
use chainrule_kernel::{
    Buffer, Class, Instr, Kernel, Place, Port, Reg, SizeParam, SizeSource, Stmt, hoist, lower_function, streamline,
    vectorise,
};
use chainrule_native::{Level, Workspace};
use chainrule_ops::{Op, ROWS, Type};
use chainrule_runtime::{Backend, Slice, SliceMut};
use std::cell::Cell;

/// A whole block of eight lanes, or two of four, and a remainder.
const POINTS: usize = 9;

/// Checks random straight-line code of at most `steps` operations, with regular and with special numbers.
fn graphs(cases: u32, seed: u64, steps: usize) {
    graphs_of(cases, seed, &GraphOptions::new(steps));
}

fn graphs_of(cases: u32, seed: u64, options: &GraphOptions) {
    let in_lanes = Cell::new(0);
    for (seed, numbers, in_domain) in [(seed, Numbers::Tame, true), (seed + 1, Numbers::Special, false)] {
        random(cases, seed, 40 * options.max_steps, |u| {
            let options = GraphOptions { numbers, in_domain, max_roots: 6, ..options.clone() };
            let Ok(mut recipe) = Recipe::random(u, &options) else { return Ok(()) };
            if u.ratio(1, 2).unwrap_or(true) {
                // With only the last values as roots, many steps would be dead.
                recipe.roots = recipe.unused();
            }
            let (graph, roots) = recipe.raw(Semantics::Strict);
            let compared = compare(&lower(&graph, &roots), &around(&[reals(&recipe.point)], 13))?;
            in_lanes.set(in_lanes.get() + compared.in_lanes);
            Ok(())
        });
    }
    // Three batches of each kernel: straight-line code always runs in lanes.
    let levels = Level::ALL.into_iter().filter(|level| level.missing().is_empty()).count();
    assert_eq!(in_lanes.get(), 6 * chainrule_cases::cases(cases) as usize * levels);
}

#[test]
fn graphs_have_the_value_that_the_interpreter_gives_them() {
    graphs(1000, 1, 80);
    // Far more values than registers.
    graphs(60, 11, 800);
}

/// Far more truth values than mask registers.
#[test]
fn comparisons_have_the_value_that_the_interpreter_gives_them() {
    let mut options = GraphOptions::new(200);
    for (op, weight) in &mut options.operators {
        let of_truths = op.row().result == Type::Bool || op.row().args.contains(&Type::Bool);
        *weight = if of_truths { 20 } else { *weight };
    }
    graphs_of(150, 13, &options);
}

#[test]
fn functions_have_the_value_that_the_interpreter_gives_them() {
    functions(4000, 3);
}

/// Tens of thousands of random kernels, at all levels, in lanes and one by one: `cargo test --release -p
/// chainrule-native --test random -- --ignored --nocapture`, minutes. `CHAINRULE_RANDOM_SEED` selects others,
/// `CHAINRULE_RANDOM_CASES` multiplies their number.
#[test]
#[ignore = "minutes"]
fn tens_of_thousands_of_kernels_have_the_value_that_the_interpreter_gives_them() {
    let told = |name: &str, otherwise: u64| std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(otherwise);
    let seed = told("CHAINRULE_RANDOM_SEED", 1000);
    graphs(10_000, seed, 80);
    println!("straight lines of at most 80 operations: done");
    graphs(1000, seed + 2, 1000);
    println!("of at most 1000: done");
    graphs(50, seed + 4, 10_000);
    println!("of at most 10000: done");
    functions(60_000, seed + 6);
}

/// Checks random functions of the array IR, with all its forms of loops.
fn functions(cases: u32, seed: u64) {
    let all = Cell::new(Compared::default());
    let options = chainrule_ir::generate::Options { derivatives: false, transposed: false, ..Default::default() };
    random(cases, seed, 3000, |u| {
        let Ok(case) = chainrule_ir::generate::case(u, options) else { return Ok(()) };
        // A size that depends on data is a limitation of the lowering.
        let Ok(kernel) = lower_function(&case.function) else { return Ok(()) };
        let Some(inputs) = inputs(&case.function, &case.args) else { return Ok(()) };
        let points = around(&inputs, 11);
        add(&all, compare(&kernel, &points)?);
        let mut plain = kernel.clone();
        streamline(&mut plain);
        hoist(&mut plain);
        compare(&plain, &points)?;
        Ok(())
    });
    let all = all.get();
    println!("{all:?}");
    covers!(all.ran > 11 * cases as usize / 3, "{all:?}");
    covers!(all.in_lanes > cases as usize / 15, "{all:?}");
}

fn add(all: &Cell<Compared>, some: Compared) {
    let mut sum = all.get();
    sum += some;
    all.set(sum);
}

/// Random functions with vectorised loops, at sizes with whole blocks and remainders.
#[test]
fn loops_that_run_at_once_have_the_value_that_the_interpreter_gives_them() {
    at_once(1600, 21);
}

/// Tens of thousands of kernels: as [`tens_of_thousands_of_kernels_have_the_value_that_the_interpreter_gives_them`].
#[test]
#[ignore = "minutes"]
fn tens_of_thousands_of_loops_that_run_at_once() {
    at_once(40_000, 1021);
}

fn at_once(cases: u32, seed: u64) {
    let (all, cut) = (Cell::new(Compared::default()), Cell::new(0));
    random(cases, seed, 3000, |u| {
        let Some(function) = deep_function(u) else { return Ok(()) };
        let Ok(mut kernel) = lower_function(&function) else { return Ok(()) };
        let is_plain = u.ratio(1, 2).unwrap_or(true);
        if is_plain {
            streamline(&mut kernel);
        }
        let loops = vectorise(&mut kernel, Semantics::Algebraic);
        if loops == 0 {
            return Ok(());
        }
        if is_plain {
            hoist(&mut kernel);
        }
        for longest in [40, 17, 9] {
            let Some(inputs) = inputs_up_to(u, &function, longest) else { continue };
            add(&all, compare(&kernel, &around(&inputs, POINTS))?);
            cut.set(cut.get() + loops);
        }
        Ok(())
    });
    let all = all.get();
    println!("{all:?}, {} loops cut", cut.get());
    // Loops of few iterations, as many random ones are, have no lanes.
    covers!(all.ran > POINTS * cases as usize * 3 / 10, "{all:?}");
}

/// Canonicalises and vectorises loops, as compilation does; returns the number of vectorised ones.
fn cut_plain(kernel: &mut Kernel) -> usize {
    streamline(kernel);
    let loops = vectorise(kernel, Semantics::Algebraic);
    hoist(kernel);
    loops
}

/// Runs functions as they are and with vectorised loops; returns counts of comparisons, and the number of vectorised
/// loops.
fn as_they_are_and_in_lanes(
    cases: u32,
    seed: u64,
    case: impl Fn(&mut Unstructured<'_>) -> arbitrary::Result<(Function, Vec<Value<f64>>)>,
) -> (Compared, usize) {
    let (all, cut) = (Cell::new(Compared::default()), Cell::new(0));
    random(cases, seed, 3000, |u| {
        let Ok((function, args)) = case(u) else { return Ok(()) };
        let Ok(mut kernel) = lower_function(&function) else { return Ok(()) };
        let Some(inputs) = inputs(&function, &args) else { return Ok(()) };
        let points = around(&inputs, POINTS);
        compare(&kernel, &points)?;
        cut.set(cut.get() + cut_plain(&mut kernel));
        add(&all, compare(&kernel, &points)?);
        Ok(())
    });
    println!("{:?}, {} loops cut", all.get(), cut.get());
    (all.get(), cut.get())
}

#[test]
fn loops_that_compare_their_indices_have_the_value_that_the_interpreter_gives_them() {
    let (all, cut) = as_they_are_and_in_lanes(1500, 22, |u| comparisons::case(u, 24, 20));
    covers!(all.ran > 1000 * POINTS && cut > 500, "{all:?}, {cut} loops were cut");
}

#[test]
fn fields_of_records_have_the_value_that_the_interpreter_gives_them() {
    let (all, cut) = as_they_are_and_in_lanes(1500, 23, |u| records::case(u, 28));
    covers!(all.ran > 1000 * POINTS && cut > 1000, "{all:?}, {cut} loops were cut");
}

/// Tens of thousands of kernels: as [`tens_of_thousands_of_kernels_have_the_value_that_the_interpreter_gives_them`].
#[test]
#[ignore = "minutes"]
fn tens_of_thousands_of_fields_of_records() {
    let (all, cut) = as_they_are_and_in_lanes(30_000, 1023, |u| records::case(u, 28));
    covers!(all.ran > 20_000 * POINTS && cut > 20_000, "{all:?}, {cut} loops were cut");
}

#[test]
fn windows_have_the_value_that_the_interpreter_gives_them() {
    let (all, cut) = as_they_are_and_in_lanes(1500, 24, |u| windows::case(u, 28, false));
    covers!(all.ran > 1000 * POINTS && cut > 1000, "{all:?}, {cut} loops were cut");
}

/// If several checks fail, lanes may report another one.
#[test]
fn windows_that_reach_outside_fail_where_the_interpreter_fails() {
    let (failed, ran) = (Cell::new(0), Cell::new(0));
    random(1500, 25, 3000, |u| {
        let Ok((function, args)) = windows::case(u, 28, true) else { return Ok(()) };
        let Ok(mut kernel) = lower_function(&function) else { return Ok(()) };
        let Some(point) = inputs(&function, &args) else { return Ok(()) };
        cut_plain(&mut kernel);
        let expected = reference(&kernel, &interpret::Program::new(&kernel).unwrap(), &point);
        let count = if expected.is_ok() { &ran } else { &failed };
        count.set(count.get() + 1);
        for program in programs(&kernel) {
            let found = run(&kernel, &program, &point);
            assert!(
                found == expected || (found.is_err() && expected.is_err()),
                "{found:?}, not {expected:?}: {kernel}"
            );
        }
        Ok(())
    });
    covers!(failed.get() > 200 && ran.get() > 200, "{failed:?} failed, {ran:?} ran");
}

/// Tens of thousands of kernels: as [`tens_of_thousands_of_kernels_have_the_value_that_the_interpreter_gives_them`].
#[test]
#[ignore = "minutes"]
fn tens_of_thousands_of_windows() {
    let (all, cut) = as_they_are_and_in_lanes(30_000, 1024, |u| windows::case(u, 28, false));
    covers!(all.ran > 20_000 * POINTS && cut > 20_000, "{all:?}, {cut} loops were cut");
}

#[test]
fn more_values_than_registers_and_a_hundred_thousand_operations() {
    for (n, n_inputs, width, seed) in [(3_000, 40, 100, 1), (20_000, 5, 10, 2), (100_000, 30, 1000, 3)] {
        let (graph, roots) = layered(Semantics::Strict, n, n_inputs, width, seed);
        let x: Vec<f64> = (0..n_inputs).map(|i| 0.1 * i as f64 - 0.4).collect();
        compare(&lower(&graph, &roots), &around(&[reals(&x)], 9)).unwrap();
    }
    let (graph, top) = chain(Semantics::Strict, 100_000);
    compare(&lower(&graph, &[top]), &around(&[reals(&[0.7])], 9)).unwrap();
}

/// Checks straight-line code of at least `n` live operations, of all operators: regular and special numbers, arguments
/// among the thousand previous values and from anywhere.
fn all_operators(n: usize, seed: u64) {
    for (numbers, reach) in [Numbers::Tame, Numbers::Special].into_iter().flat_map(|n| [(n, 1000), (n, usize::MAX)]) {
        let in_domain = numbers == Numbers::Tame;
        // One step in eight is a constant, and some occur twice.
        let options = GraphOptions { numbers, in_domain, reach, n_inputs: 30, ..GraphOptions::new(n + n / 4) };
        let recipe = Recipe::whole(&options, seed).unwrap();
        let (graph, roots) = recipe.raw(Semantics::Strict);
        let kernel = lower(&graph, &roots);
        let found: Vec<Op> = (kernel.body.iter())
            .flat_map(|stmt| if let Stmt::Straight(instrs) = stmt { &instrs[..] } else { &[] })
            .filter_map(|instr| if let Instr::Op { op, .. } = instr { Some(*op) } else { None })
            .collect();
        assert!(found.len() >= n, "{} operations", found.len());
        assert!(ROWS.iter().all(|row| row.steps.is_some() || found.contains(&row.op)), "not all operators");
        // So close that most results stay numbers after any number of steps.
        let near = |p: usize| reals(&recipe.point.iter().map(|x| x + p as f64 / 2f64.powi(40)).collect::<Vec<_>>());
        let points: Vec<Vec<Array>> = (0..POINTS).map(|p| vec![near(p)]).collect();
        if in_domain {
            let interpreter = interpret::Program::new(&kernel).unwrap();
            for (p, point) in points.iter().enumerate() {
                let results = reference(&kernel, &interpreter, point).unwrap();
                let Data::Real(y) = &results[0] else { panic!("results are doubles") };
                let finite = y.iter().filter(|y| y.is_finite()).count();
                assert!(finite >= if p == 0 { y.len() } else { y.len() / 4 }, "{finite} of {} at {p}", y.len());
            }
        }
        compare(&kernel, &points).unwrap();
    }
}

#[test]
fn a_hundred_thousand_operations_of_all_operators() {
    all_operators(100_000, 31);
}

/// Dozens of kernels, and a million: as
/// [`tens_of_thousands_of_kernels_have_the_value_that_the_interpreter_gives_them`].
#[test]
#[ignore = "minutes"]
fn dozens_of_a_hundred_thousand_operations_and_one_of_a_million() {
    (1000..1025).for_each(|seed| all_operators(100_000, seed));
    all_operators(1_000_000, 1025);
}

/// Zeros among other results, which native code combines into wide stores: nothing else is zero, and nothing outside
/// the output is written.
#[test]
fn zeros_are_where_they_belong() {
    const GUARD: usize = 16;
    let mut mask = 0x9e37_79b9_7f4a_7c15_u64;
    for n in (1..70).chain([127, 128, 129, 200]) {
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

/// Returns a kernel that copies `w` elements of `x`, from `where[1]` on, to `y`, from `where[0]` on; the others are
/// those of `z`.
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
        zeros: vec![],
        body: vec![
            Stmt::Copy { to: (y, Poly::zero()), from: (z, Poly::zero()), len: len(k), is_move: false },
            Stmt::Straight(vec![first(places, 0), first(places, 1)]),
            Stmt::Copy { to: (y, len(to)), from: (x, len(from)), len: len(w), is_move: false },
        ],
        regs: regs.into(),
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
                // Just long enough for one, or almost, and longer for the other.
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
    covers!(inside > 300 && outside > 300, "{inside} inside, {outside} outside");
}
