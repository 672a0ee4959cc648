//! Native code in all its modes, against the interpreter, bit for bit.
//!
//! One point by slices, in owned memory, and on threads; batches of structures and of arrays, on one thread and on two;
//! at every level that the machine has. Arguments, results and memory are allocations of exactly their size, and
//! results are filled with unexpected values before each run.

use crate::data::{Array, Data};
use chainrule_interpret as interpret;
use chainrule_kernel::{Kernel, Port, contract};
use chainrule_native::{Level, Options, Program, Workspace};
use chainrule_runtime::{Backend, Elements, RunError, Slice, SliceMut, Strided, StridedMut};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::sync::Arc;

/// Returns the program at each level that this machine has.
///
/// # Panics
/// Panics if the kernel cannot be compiled.
#[must_use]
pub fn programs(kernel: &Kernel) -> Vec<Program> {
    programs_with(kernel, Options::default())
}

/// As [`programs`], with straight-line code cut into chunks of at most `piece_len` instructions.
///
/// # Panics
/// As [`programs`].
#[must_use]
pub fn programs_in_pieces(kernel: &Kernel, piece_len: usize) -> Vec<Program> {
    programs_with(kernel, Options { piece_len: Some(piece_len), ..Options::default() })
}

fn programs_with(kernel: &Kernel, options: Options) -> Vec<Program> {
    let kernel = Arc::new(kernel.clone());
    let here = Level::ALL.into_iter().filter(|level| level.missing().is_empty());
    let program = |level| Program::new(kernel.clone(), &Options { level: Some(level), ..options });
    here.map(|level| program(level).expect("a kernel that can be compiled")).collect()
}

/// Returns unwritten results.
fn unwritten(kernel: &Kernel, len: impl Fn(usize) -> usize) -> Vec<Data> {
    let result = |(i, port): (usize, &Port)| Data::new(kernel.buffers[port.buffer].class, len(i));
    kernel.outputs.iter().enumerate().map(result).collect()
}

/// Runs one point by slices.
///
/// # Errors
/// Arguments that do not fit, or a failure.
pub fn run(kernel: &Kernel, program: &Program, inputs: &[Array]) -> Result<Vec<Data>, RunError> {
    let shapes: Vec<&[usize]> = inputs.iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = inputs.iter().map(|a| a.data.slice()).collect();
    let sizes = program.bind_inputs(&shapes, &slices)?;
    let mut results = unwritten(kernel, |i| sizes.output_len(i));
    let mut into: Vec<SliceMut<'_>> = results.iter_mut().map(Data::slice_mut).collect();
    program.run(&sizes, &slices, &mut into, &mut Workspace::new(program, &sizes))?;
    Ok(results)
}

/// As [`run`], in owned memory, twice, and if all data are doubles by slices of them; `None` if sizes do not fit.
///
/// # Panics
/// Panics if slices have other results.
#[must_use]
pub fn run_bound(kernel: &Kernel, program: &Program, inputs: &[Array]) -> Option<Result<Vec<Data>, RunError>> {
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
        assert_eq!(by_slices, run, "{kernel}");
        if run.is_ok() {
            assert_eq!(results, outputs.into_iter().map(Data::Real).collect::<Vec<_>>(), "{kernel}");
        }
    }
    Some(run.map(|()| results))
}

/// Returns the results on so many threads, by slices and in owned memory, and the number of threads used, however small
/// the work is.
///
/// # Panics
/// Panics if the two modes have different results, or there is no code for threads.
pub fn run_on_threads(
    kernel: &Kernel,
    program: &Program,
    inputs: &[Array],
    threads: usize,
) -> (Result<Vec<Data>, RunError>, usize) {
    let shapes: Vec<&[usize]> = inputs.iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = inputs.iter().map(|a| a.data.slice()).collect();
    let sizes = match program.bind_inputs(&shapes, &slices) {
        Ok(sizes) => sizes,
        Err(error) => return (Err(error), 1),
    };
    let mut workspace = Workspace::for_threads_from(program, &sizes, threads, 1.0);
    assert_eq!(program.threads_refused(), None);
    let used = workspace.threads();
    let mut results = unwritten(kernel, |i| sizes.output_len(i));
    let mut into: Vec<SliceMut<'_>> = results.iter_mut().map(Data::slice_mut).collect();
    let run = program.run(&sizes, &slices, &mut into, &mut workspace);
    let mut bound = program.bound(sizes, inputs.iter().map(|a| a.data.elements()).collect(), workspace).unwrap();
    assert_eq!(bound.run(), run, "{kernel}");
    let found: Vec<Data> = bound.outputs().iter().map(|y| Data::of(y.slice())).collect();
    assert!(run.is_err() || found == results, "{found:?} in memory of its own, {results:?} in slices: {kernel}");
    (run.map(|()| results), used)
}

/// Runs all points as one batch of structures, or of arrays, on so many threads; also returns the number of points that
/// ran in lanes.
///
/// # Errors
/// Arguments that do not fit, or the failure of the first point that fails.
///
/// # Panics
/// Panics if points differ in their shapes.
pub fn run_batch(
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
    let joined: Vec<Data> = (0..kernel.inputs.len())
        .map(|i| {
            let mut all = points[0][i].data.clone();
            points[1..].iter().for_each(|point| all.append(&point[i].data));
            if arrays { all.transposed(n) } else { all }
        })
        .collect();
    let stride = |len: usize| if arrays { (1, n) } else { (len, 1) };
    let strided = |data: &Data| stride(data.len() / n);
    let inputs: Vec<Strided<'_>> = joined
        .iter()
        .map(|data| Strided { data: data.slice(), point: strided(data).0, element: strided(data).1 })
        .collect();
    let mut results = unwritten(kernel, |i| n * sizes.output_len(i));
    let mut into: Vec<StridedMut<'_>> = results
        .iter_mut()
        .map(|data| {
            let (point, element) = strided(data);
            StridedMut { data: data.slice_mut(), point, element }
        })
        .collect();
    let lanes = program.lanes_for(&sizes);
    let mut workspaces: Vec<Workspace> = (0..threads).map(|_| Workspace::for_batch(program, &sizes)).collect();
    program.run_batch(&sizes, n, &inputs, &mut into, &mut workspaces)?;
    let by_points = |data: &Data| if arrays { data.transposed(data.len() / n) } else { data.clone() };
    let results: Vec<Data> = results.iter().map(by_points).collect();
    let split = |p: usize| results.iter().map(|data| data.part(p * (data.len() / n), data.len() / n)).collect();
    Ok(((0..n).map(split).collect(), lanes))
}

/// Returns the interpreter's results, computed in poisoned memory.
///
/// # Errors
/// Arguments that do not fit, or a failure.
pub fn reference(kernel: &Kernel, program: &interpret::Program, inputs: &[Array]) -> Result<Vec<Data>, RunError> {
    let shapes: Vec<&[usize]> = inputs.iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = inputs.iter().map(|a| a.data.slice()).collect();
    let sizes = program.bind_inputs(&shapes, &slices)?;
    let mut results = unwritten(kernel, |i| sizes.output_len(i));
    let mut into: Vec<SliceMut<'_>> = results.iter_mut().map(Data::slice_mut).collect();
    program.run(&sizes, &slices, &mut into, &mut interpret::Workspace::new(program, &sizes).poisoned())?;
    Ok(results)
}

/// Counts of comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Compared {
    /// Points with a value, of the unchanged kernel.
    pub ran: usize,
    /// Points that failed as intended.
    pub failed: usize,
    /// Batches that ran in lanes, at each level, of the unchanged kernel.
    pub in_lanes: usize,
    /// Runs on more than one thread.
    pub on_threads: usize,
}

impl std::ops::AddAssign for Compared {
    fn add_assign(&mut self, other: Self) {
        self.ran += other.ran;
        self.failed += other.failed;
        self.in_lanes += other.in_lanes;
        self.on_threads += other.on_threads;
    }
}

/// Compares a kernel, with and without fused products, at all levels; see [`compare_one`].
///
/// # Errors
/// A difference.
///
/// # Panics
/// As [`compare_one`].
pub fn compare(kernel: &Kernel, points: &[Vec<Array>]) -> Result<Compared, TestCaseError> {
    let mut fused = kernel.clone();
    if contract(&mut fused) > 0 {
        prop_assert_eq!(chainrule_kernel::verify(&fused), Ok(()));
        compare_one(&fused, points)?;
    }
    compare_one(kernel, points)
}

/// Compares one kernel at all levels on points that share sizes: one by one, by slices and in owned memory, and as
/// batches.
///
/// # Errors
/// A difference.
///
/// # Panics
/// Panics if the kernel cannot be compiled, or owned memory has other results than slices.
pub fn compare_one(kernel: &Kernel, points: &[Vec<Array>]) -> Result<Compared, TestCaseError> {
    compare_programs(kernel, &programs(kernel), points)
}

/// As [`compare_one`], in chunks of at most `piece_len` instructions if the kernel is straight-line code; returns
/// whether it is.
///
/// # Errors
/// A difference.
///
/// # Panics
/// As [`compare_one`].
pub fn compare_in_pieces(kernel: &Kernel, piece_len: usize, points: &[Vec<Array>]) -> Result<bool, TestCaseError> {
    let programs = programs_in_pieces(kernel, piece_len);
    let is_cut = programs.iter().any(|program| program.n_pieces() > 1);
    if is_cut {
        compare_programs(kernel, &programs, points)?;
    }
    Ok(is_cut)
}

/// As [`compare_one`], for these programs of a kernel.
///
/// # Errors
/// A difference from the interpreter.
///
/// # Panics
/// Panics if owned memory has other results than slices.
pub fn compare_programs(
    kernel: &Kernel,
    programs: &[Program],
    points: &[Vec<Array>],
) -> Result<Compared, TestCaseError> {
    let interpreter = interpret::Program::new(kernel).unwrap();
    let expected: Vec<_> = points.iter().map(|point| reference(kernel, &interpreter, point)).collect();
    let first_failure = expected.iter().enumerate().find_map(|(p, result)| Some((p, result.as_ref().err()?)));
    let ran = expected.iter().filter(|result| result.is_ok()).count();
    let mut compared = Compared { ran, failed: points.len() - ran, ..Compared::default() };
    for program in programs {
        let level = program.level().name();
        for (point, expected) in points.iter().zip(&expected) {
            same(kernel, level, &run(kernel, program, point), expected)?;
            if let Some(found) = run_bound(kernel, program, point) {
                same(kernel, &format!("{level}, bound"), &found, expected)?;
            }
        }
        for (arrays, threads) in [(false, 1), (true, 1), (true, 2)] {
            match (run_batch(kernel, program, points, arrays, threads), first_failure) {
                (Ok((found, lanes)), None) => {
                    for (p, (found, expected)) in found.into_iter().zip(&expected).enumerate() {
                        same(kernel, &format!("{level}, point {p} of a batch"), &Ok(found), expected)?;
                    }
                    compared.in_lanes += usize::from(lanes > 1);
                }
                (found, failure) => {
                    let found = found.map(|(points, _)| points.concat());
                    let expected = failure.map_or(Ok(Vec::new()), |(p, error)| Err(error.clone().at_point(p)));
                    same(kernel, &format!("{level}, batch"), &found, &expected)?;
                }
            }
            prop_assert_eq!(program.lanes_refused(), None);
        }
    }
    Ok(compared)
}

/// Returns an error if a mode does not have the expected results. For large kernels, only their beginning is printed.
fn same(
    kernel: &Kernel,
    way: &str,
    found: &Result<Vec<Data>, RunError>,
    expected: &Result<Vec<Data>, RunError>,
) -> Result<(), TestCaseError> {
    const MOST: usize = 20_000;
    if found == expected {
        return Ok(());
    }
    let difference = match (found, expected) {
        (Ok(found), Ok(expected)) => {
            let first = |(i, (a, b)): (usize, (&Data, &Data))| {
                let e = (0..a.len().min(b.len())).find(|e| a.part(*e, 1) != b.part(*e, 1))?;
                Some(format!("element {e} of result {i} is {:?}, but {:?} expected", a.part(e, 1), b.part(e, 1)))
            };
            found.iter().zip(expected).enumerate().find_map(first).unwrap_or_else(|| "lengths differ".to_owned())
        }
        _ => {
            format!("{:?}, but {:?} expected", found.as_ref().map(|_| "results"), expected.as_ref().map(|_| "results"))
        }
    };
    let text: String = kernel.to_string().chars().take(MOST).collect();
    Err(TestCaseError::fail(format!("{way}: {difference}\n{text}")))
}

/// Compares one kernel at all levels on so many threads.
///
/// # Errors
/// A difference.
///
/// # Panics
/// As [`run_on_threads`].
pub fn compare_on_threads(kernel: &Kernel, inputs: &[Array], threads: &[usize]) -> Result<Compared, TestCaseError> {
    let expected = reference(kernel, &interpret::Program::new(kernel).unwrap(), inputs);
    let mut compared =
        Compared { ran: usize::from(expected.is_ok()), failed: usize::from(expected.is_err()), ..Compared::default() };
    for program in programs(kernel) {
        for threads in threads {
            let (found, used) = run_on_threads(kernel, &program, inputs, *threads);
            compared.on_threads += usize::from(used > 1);
            same(kernel, &format!("{}, {threads} threads", program.level().name()), &found, &expected)?;
        }
    }
    Ok(compared)
}
