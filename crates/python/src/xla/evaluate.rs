//! Evaluation on XLA's arrays: conversion of dtypes, axes of points, workspaces.

use super::{Array, dtype};
use crate::call::MAX_KEPT_BYTES;
use crate::function::all_leaves;
use chainrule::{BatchOptions, Slice, SliceMut, Strided, StridedMut};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

/// A function with a workspace of its latest call.
pub(super) struct Program {
    compiled: Arc<chainrule::Compiled>,
    /// Rank of each argument, and of each result.
    ranks: (Vec<usize>, Vec<usize>),
    spare: Mutex<Option<(Vec<i64>, chainrule::Workspace)>>,
}

/// Numbers of an argument or a result: XLA's memory where its elements are of 64 bits, otherwise a copy.
enum Numbers<'a> {
    Reals(&'a [f64]),
    Ints(&'a [i64]),
    CopiedReals(Vec<f64>),
    CopiedInts(Vec<i64>),
}

impl Numbers<'_> {
    fn slice(&self) -> Slice<'_> {
        match self {
            Self::Reals(x) => Slice::Real(x),
            Self::CopiedReals(x) => Slice::Real(x),
            Self::Ints(x) => Slice::Int(x),
            Self::CopiedInts(x) => Slice::Int(x),
        }
    }
}

/// Returns the elements of an array; `None` for a null pointer, misalignment, or no elements.
fn elements<'a, T>(array: &Array<'a>) -> &'a [T] {
    let data = array.data.cast::<T>();
    if data.is_null() || array.len() == 0 || !data.is_aligned() {
        return &[];
    }
    // SAFETY: XLA's buffer has as many elements as its extents say, of the dtype that the caller has matched.
    unsafe { std::slice::from_raw_parts(data, array.len()) }
}

fn elements_mut<'a, T>(array: &Array<'a>) -> &'a mut [T] {
    let data = array.data.cast::<T>();
    if data.is_null() || array.len() == 0 || !data.is_aligned() {
        return &mut [];
    }
    // SAFETY: as above; results of XLA share no memory with each other or with arguments.
    unsafe { std::slice::from_raw_parts_mut(data, array.len()) }
}

fn numbers<'a>(array: &Array<'a>) -> Result<Numbers<'a>, String> {
    Ok(match array.dtype {
        dtype::F64 => Numbers::Reals(elements(array)),
        dtype::S64 => Numbers::Ints(elements(array)),
        dtype::F32 => Numbers::CopiedReals(elements::<f32>(array).iter().map(|x| f64::from(*x)).collect()),
        dtype::S32 => Numbers::CopiedInts(elements::<i32>(array).iter().map(|x| i64::from(*x)).collect()),
        dtype::PRED => Numbers::CopiedInts(elements::<u8>(array).iter().map(|x| i64::from(*x != 0)).collect()),
        other => return Err(unsupported(other)),
    })
}

fn unsupported(dtype: c_int) -> String {
    format!("arrays of XLA's type {dtype} are not supported: convert them to float64, float32, int64, int32 or bool")
}

/// Repeats the arrays of `own` axes of points along the axes of all points.
fn repeated<T: Copy>(values: &[T], own: &[i64], points: &[i64], n_each: usize) -> Vec<T> {
    let mut strides = vec![0; own.len()];
    let mut stride = n_each;
    for (k, extent) in own.iter().enumerate().rev() {
        strides[k] = if *extent == 1 { 0 } else { stride };
        stride *= usize::try_from(*extent).unwrap_or(0);
    }
    let n: usize = points.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).product();
    let mut made = Vec::with_capacity(n * n_each);
    for point in 0..n {
        let (mut rest, mut start) = (point, 0);
        for (extent, stride) in points.iter().zip(&strides).rev() {
            let extent = usize::try_from(*extent).unwrap_or(1);
            start += rest % extent * stride;
            rest /= extent;
        }
        made.extend_from_slice(values.get(start..start + n_each).unwrap_or(&[]));
    }
    made
}

fn spread(data: Numbers<'_>, own: &[i64], points: &[i64], n_each: usize) -> Numbers<'static> {
    match data.slice() {
        Slice::Real(x) => Numbers::CopiedReals(repeated(x, own, points, n_each)),
        Slice::Int(x) => Numbers::CopiedInts(repeated(x, own, points, n_each)),
    }
}

/// Returns the numbers of one point.
fn at_point(data: Slice<'_>, point: usize, n: usize) -> Slice<'_> {
    let range = point * n..(point + 1) * n;
    match data {
        Slice::Real(x) => Slice::Real(x.get(range).unwrap_or(&[])),
        Slice::Int(x) => Slice::Int(x.get(range).unwrap_or(&[])),
    }
}

/// Arguments of all points: data, stride of points (0 for data that all points share) and extents of one point.
#[derive(Clone, Copy)]
struct Points<'a> {
    inputs: &'a [Slice<'a>],
    strides: &'a [usize],
    extents: &'a [&'a [usize]],
}

impl Program {
    pub(super) fn new(compiled: Arc<chainrule::Compiled>) -> Self {
        let ranks = |leaves: Vec<(String, &str, usize)>| leaves.iter().map(|leaf| leaf.2).collect();
        let signature = compiled.signature();
        let ranks = (ranks(all_leaves(&signature.params)), ranks(all_leaves(&signature.results)));
        Self { compiled, ranks, spare: Mutex::default() }
    }

    /// Evaluates at the arrays `args` and writes `results`.
    pub(super) fn run(&self, args: &[Array<'_>], results: &[Array<'_>]) -> Result<(), String> {
        let (arg_ranks, result_ranks) = &self.ranks;
        if args.len() != arg_ranks.len() || results.len() != result_ranks.len() {
            return Err(format!("{} arguments and {} results do not match the program", args.len(), results.len()));
        }
        let n_axes = results.first().map_or(0, |first| first.extents.len().saturating_sub(result_ranks[0]));
        let points = results.first().and_then(|first| first.extents.get(..n_axes)).unwrap_or(&[]);
        let n_points: usize = points.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).product();
        if n_points == 0 {
            return Ok(());
        }
        let mut data = Vec::with_capacity(args.len());
        let mut strides = Vec::with_capacity(args.len());
        let mut extents: Vec<Vec<usize>> = Vec::with_capacity(args.len());
        for (array, rank) in args.iter().zip(arg_ranks) {
            if array.extents.len() != n_axes + rank {
                return Err(format!("an argument of rank {} does not match the program", array.extents.len()));
            }
            let (own, rest) = array.extents.split_at(n_axes);
            let rest: Vec<usize> = rest.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
            let n_each = rest.iter().product();
            let numbers = numbers(array)?;
            let is_shared = own.iter().all(|extent| *extent == 1);
            strides.push(if is_shared { 0 } else { n_each });
            data.push(if is_shared || own == points { numbers } else { spread(numbers, own, points, n_each) });
            extents.push(rest);
        }
        let mut copies: Vec<Copied> = Vec::new();
        let mut outputs: Vec<SliceMut<'_>> = Vec::with_capacity(results.len());
        for array in results {
            copies.push(Copied::new(array)?);
        }
        for (array, copy) in results.iter().zip(&mut copies) {
            outputs.push(match copy {
                Copied::Reals => SliceMut::Real(elements_mut(array)),
                Copied::Ints => SliceMut::Int(elements_mut(array)),
                Copied::FromReals(x) => SliceMut::Real(x),
                Copied::FromInts(x) => SliceMut::Int(x),
            });
        }
        let slices: Vec<Slice<'_>> = data.iter().map(Numbers::slice).collect();
        let extents: Vec<&[usize]> = extents.iter().map(Vec::as_slice).collect();
        let shapes: Vec<&[i64]> = results.iter().map(|array| array.extents.get(n_axes..).unwrap_or(&[])).collect();
        let points = Points { inputs: &slices, strides: &strides, extents: &extents };
        self.evaluate(n_points, points, &mut outputs, &shapes)?;
        drop(outputs);
        results.iter().zip(&copies).for_each(|(array, copy)| copy.write(array));
        Ok(())
    }

    /// Evaluates all points: at once, or one after the other if integers that determine sizes differ.
    fn evaluate(
        &self,
        n_points: usize,
        points: Points<'_>,
        outputs: &mut [SliceMut<'_>],
        shapes: &[&[i64]],
    ) -> Result<(), String> {
        let Points { inputs, strides, extents } = points;
        let point = |k: usize| -> Vec<Slice<'_>> {
            let each = inputs.iter().zip(strides).zip(extents);
            each.map(|((data, stride), extents)| {
                at_point(*data, if *stride == 0 { 0 } else { k }, extents.iter().product())
            })
            .collect()
        };
        let deciding = self.compiled.size_arguments();
        let sizes = |k: usize| deciding.iter().map(|input| point(k).get(*input).copied()).collect::<Vec<_>>();
        let varies = deciding.iter().any(|input| strides.get(*input).is_some_and(|stride| *stride != 0));
        if varies && (1..n_points).any(|k| sizes(k) != sizes(0)) {
            for k in 0..n_points {
                let mut parts: Vec<SliceMut<'_>> = outputs.iter_mut().map(|output| part(output, k, n_points)).collect();
                let one = Points { inputs: &point(k), strides: &vec![0; strides.len()], extents };
                self.at_once(1, &point(k), one, &mut parts, shapes)?;
            }
            return Ok(());
        }
        self.at_once(n_points, &point(0), points, outputs, shapes)
    }

    fn at_once(
        &self,
        n_points: usize,
        first: &[Slice<'_>],
        Points { inputs, strides, extents }: Points<'_>,
        outputs: &mut [SliceMut<'_>],
        shapes: &[&[i64]],
    ) -> Result<(), String> {
        let mut workspace = self.workspace(extents, first)?;
        for (k, shape) in shapes.iter().enumerate() {
            let made = workspace.1.output_shape(k);
            if !made.iter().map(|extent| i64::try_from(*extent).unwrap_or(-1)).eq(shape.iter().copied()) {
                return Err(format!(
                    "result {k} has the shape {made:?} at these integers, not {shape:?}: make arguments that determine \
                     sizes static"
                ));
            }
        }
        let done = if n_points == 1 {
            self.compiled.run_into(first, outputs, &mut workspace.1)
        } else {
            let strided = inputs.iter().zip(strides);
            let inputs: Vec<Strided<'_>> =
                strided.map(|(data, stride)| Strided { data: *data, point: *stride, element: 1 }).collect();
            let mut results = Vec::with_capacity(outputs.len());
            for (k, output) in outputs.iter_mut().enumerate() {
                let point = workspace.1.output_shape(k).iter().product();
                results.push(StridedMut { data: part(output, 0, 1), point, element: 1 });
            }
            let options = BatchOptions::default();
            self.compiled.eval_batch_with(n_points, &inputs, &mut results, &mut workspace.1, &options)
        };
        done.map_err(|error| error.to_string())?;
        if workspace.1.n_bytes() <= MAX_KEPT_BYTES {
            *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(workspace);
        }
        Ok(())
    }

    /// Returns a workspace for these extents and integers: that of the latest call if it fits.
    fn workspace(
        &self,
        extents: &[&[usize]],
        inputs: &[Slice<'_>],
    ) -> Result<(Vec<i64>, chainrule::Workspace), String> {
        let mut key: Vec<i64> =
            extents.iter().flat_map(|extents| extents.iter()).map(|n| i64::try_from(*n).unwrap_or(-1)).collect();
        for input in self.compiled.size_arguments() {
            if let Some(Slice::Int(x)) = inputs.get(input) {
                key.extend_from_slice(x);
            }
        }
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(spare) = spare.filter(|(made_for, _)| *made_for == key) {
            return Ok(spare);
        }
        let made = self.compiled.workspace_for(extents, inputs).map_err(|error| error.to_string())?;
        Ok((key, made))
    }
}

/// Returns the part of an output for point `k` of `n`.
fn part<'a>(output: &'a mut SliceMut<'_>, k: usize, n: usize) -> SliceMut<'a> {
    match output {
        SliceMut::Real(x) => {
            let len = x.len() / n;
            SliceMut::Real(x.get_mut(k * len..(k + 1) * len).unwrap_or(&mut []))
        }
        SliceMut::Int(x) => {
            let len = x.len() / n;
            SliceMut::Int(x.get_mut(k * len..(k + 1) * len).unwrap_or(&mut []))
        }
    }
}

/// Results that are written in place, or converted afterwards.
enum Copied {
    Reals,
    Ints,
    FromReals(Vec<f64>),
    FromInts(Vec<i64>),
}

impl Copied {
    fn new(array: &Array<'_>) -> Result<Self, String> {
        Ok(match array.dtype {
            dtype::F64 => Self::Reals,
            dtype::S64 => Self::Ints,
            dtype::F32 => Self::FromReals(vec![0.0; array.len()]),
            dtype::S32 | dtype::PRED => Self::FromInts(vec![0; array.len()]),
            other => return Err(unsupported(other)),
        })
    }

    /// Converts the results to the dtype of the array. Integers of 32 bits wrap around, as JAX's do.
    #[allow(clippy::cast_possible_truncation)]
    fn write(&self, array: &Array<'_>) {
        match (self, array.dtype) {
            (Self::FromReals(x), _) => elements_mut::<f32>(array).iter_mut().zip(x).for_each(|(y, x)| *y = *x as f32),
            (Self::FromInts(x), dtype::PRED) => {
                elements_mut::<u8>(array).iter_mut().zip(x).for_each(|(y, x)| *y = u8::from(*x != 0));
            }
            (Self::FromInts(x), _) => elements_mut::<i32>(array).iter_mut().zip(x).for_each(|(y, x)| *y = *x as i32),
            _ => {}
        }
    }
}
