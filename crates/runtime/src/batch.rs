//! The points of a batch, checked once and shared out to threads.
//!
//! In: strided arguments and results of many points. Out: a [`Batch`], in which all fits, whichever of its points run, and
//! a [`Share`] of it for each thread.
//!
//! Threads write results of one array at the same time. That is sound because places are only given away by [`Batch::new`],
//! after [`Layout::check_batch`] has seen that each element of each point has a place of its own inside of the array, and
//! because a [`Part`] touches the elements of its own points only, which it looks at each time.

#![allow(unsafe_code, reason = "several threads write one array")]

use crate::{Elements, Layout, RunError, Sizes, Slice, SliceMut, Strided, StridedMut};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Arguments and results of many points, which fit each other and the program.
#[derive(Debug)]
pub struct Batch<'a> {
    sizes: &'a Sizes,
    n_points: usize,
    inputs: &'a [Strided<'a>],
    /// Of all points.
    outputs: Vec<Part<'a>>,
}

/// Some points of a batch: what one thread computes.
#[derive(Debug)]
pub struct Share<'a> {
    /// The sizes of each point.
    pub sizes: &'a Sizes,
    /// Its points.
    pub points: Range<usize>,
    /// The arguments of all points.
    pub inputs: &'a [Strided<'a>],
    /// The results of its points.
    pub outputs: Vec<Part<'a>>,
}

/// An output of some points: as [`StridedMut`], but no other point can be touched.
#[derive(Debug)]
pub struct Part<'a> {
    data: Pointer,
    points: Range<usize>,
    /// How many elements each point has.
    len: usize,
    point: usize,
    element: usize,
    borrowed: PhantomData<&'a mut f64>,
}

#[derive(Clone, Copy, Debug)]
enum Pointer {
    Real(*mut f64),
    Int(*mut i64),
}

// SAFETY: it stands for a mutable borrow of the numbers of its points, and numbers may be sent and shared. That no two parts have
// a place in common is said at the top.
unsafe impl Send for Part<'_> {}
// SAFETY: as above; what is shared is only read.
unsafe impl Sync for Part<'_> {}

impl<'a> Batch<'a> {
    /// The batch of these points, checked.
    ///
    /// # Errors
    /// As [`Layout::check_batch`]; sizes of another program.
    pub fn new(
        layout: &Arc<Layout>,
        sizes: &'a Sizes,
        n_points: usize,
        inputs: &'a [Strided<'a>],
        outputs: &'a mut [StridedMut<'_>],
    ) -> Result<Self, RunError> {
        layout.check_made_here(sizes)?;
        layout.check_batch(sizes, n_points, inputs, outputs)?;
        let part = |(i, output): (usize, &'a mut StridedMut<'_>)| Part {
            points: 0..n_points,
            len: sizes.output_len(i),
            point: output.point,
            element: output.element,
            data: match &mut output.data {
                SliceMut::Real(data) => Pointer::Real(data.as_mut_ptr()),
                SliceMut::Int(data) => Pointer::Int(data.as_mut_ptr()),
            },
            borrowed: PhantomData,
        };
        Ok(Self { sizes, n_points, inputs, outputs: outputs.iter_mut().enumerate().map(part).collect() })
    }

    /// The sizes of each point.
    #[must_use]
    pub fn sizes(&self) -> &'a Sizes {
        self.sizes
    }

    /// Calls `run` with shares of `points`, one for each of `workers`, at the same time; a share is whole blocks of `block`
    /// points, but for the last.
    ///
    /// # Errors
    /// That of the first share that fails; no worker.
    ///
    /// # Panics
    /// When `run` does.
    pub fn share_out<W: Send>(
        &mut self,
        points: Range<usize>,
        block: usize,
        workers: &mut [W],
        run: impl Fn(&mut Share<'_>, &mut W) -> Result<(), RunError> + Sync,
    ) -> Result<(), RunError> {
        let end = points.end.min(self.n_points);
        let points = points.start.min(end)..end;
        let size = points.len().div_ceil(workers.len().max(1)).next_multiple_of(block.max(1));
        let share = |t: usize| {
            let from = |t: usize| points.start.saturating_add(t.saturating_mul(size)).min(points.end);
            // SAFETY: the ranges have no point in common, and the batch is borrowed alone as long as there are shares.
            unsafe { self.share(from(t)..from(t + 1)) }
        };
        match workers {
            [] => Err(RunError::argument("a batch needs a workspace for each thread, and there is none")),
            [worker] => run(&mut share(0), worker),
            _ => {
                let mut results: Vec<Result<(), RunError>> = workers.iter().map(|_| Ok(())).collect();
                rayon::scope(|scope| {
                    for (t, (worker, result)) in workers.iter_mut().zip(&mut results).enumerate() {
                        let (mut share, run) = (share(t), &run);
                        scope.spawn(move |_| *result = run(&mut share, worker));
                    }
                });
                results.into_iter().collect()
            }
        }
    }

    /// The share of these points.
    ///
    /// # Safety
    /// There are such points, and no two shares that are there at the same time have one in common.
    unsafe fn share(&self, points: Range<usize>) -> Share<'_> {
        let part = |all: &Part<'_>| Part { points: points.clone(), borrowed: PhantomData, ..*all };
        let outputs = self.outputs.iter().map(part).collect();
        Share { sizes: self.sizes, points, inputs: self.inputs, outputs }
    }
}

impl Share<'_> {
    /// Calls `run` with the arguments and the results of one point after the other, in memory of one point.
    ///
    /// # Errors
    /// The first of `run`, with its point.
    pub fn one_by_one(
        &mut self,
        mut run: impl FnMut(&[Slice<'_>], &mut [SliceMut<'_>]) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let (mut inputs, mut outputs) = (self.sizes.zero_inputs(), self.sizes.zero_outputs());
        for p in self.points.clone() {
            inputs.iter_mut().zip(self.inputs).for_each(|(to, all)| gather(to, all, p));
            let ins: Vec<Slice<'_>> = inputs.iter().map(Elements::slice).collect();
            let mut outs: Vec<SliceMut<'_>> = outputs.iter_mut().map(Elements::slice_mut).collect();
            run(&ins, &mut outs).map_err(|e| e.at_point(p))?;
            drop(outs);
            for (part, from) in self.outputs.iter_mut().zip(&outputs) {
                part.write_point(p, from);
            }
        }
        Ok(())
    }
}

/// The elements of point `p`; the classes were checked.
fn gather(to: &mut Elements, all: &Strided<'_>, p: usize) {
    let at = |e: usize| p * all.point + e * all.element;
    match (to, all.data) {
        (Elements::Real(to), Slice::Real(data)) => to.iter_mut().enumerate().for_each(|(e, x)| *x = data[at(e)]),
        (Elements::Int(to), Slice::Int(data)) => to.iter_mut().enumerate().for_each(|(e, x)| *x = data[at(e)]),
        _ => {}
    }
}

impl Part<'_> {
    /// From one point to the next.
    #[must_use]
    pub fn point(&self) -> usize {
        self.point
    }

    /// From one element to the next.
    #[must_use]
    pub fn element(&self) -> usize {
        self.element
    }

    /// Where the doubles of all points lie, by the strides; none unless points `first..first + n` are this part's, each with
    /// `len` elements: then those may be written.
    #[inline]
    pub fn doubles(&mut self, first: usize, n: usize, len: usize) -> Option<*mut f64> {
        let Pointer::Real(data) = self.data else { return None };
        self.place((first, n), (0, len)).map(|_| data)
    }

    /// Element `at` of points `first..`, one for each place of `to`.
    #[inline]
    pub fn read_doubles(&self, first: usize, at: usize, to: &mut [f64]) -> Option<()> {
        let Pointer::Real(data) = self.data else { return None };
        let start = self.place((first, to.len()), (at, 1))?;
        // SAFETY: they are this part's, as was just seen.
        unsafe { read(data.add(start), self.point, to) };
        Some(())
    }

    /// The same for integers.
    #[inline]
    pub fn read_integers(&self, first: usize, at: usize, to: &mut [i64]) -> Option<()> {
        let Pointer::Int(data) = self.data else { return None };
        let start = self.place((first, to.len()), (at, 1))?;
        // SAFETY: as above.
        unsafe { read(data.add(start), self.point, to) };
        Some(())
    }

    /// Writes element `at` of points `first..`.
    #[inline]
    pub fn write_doubles(&mut self, first: usize, at: usize, from: &[f64]) -> Option<()> {
        let Pointer::Real(data) = self.data else { return None };
        let start = self.place((first, from.len()), (at, 1))?;
        // SAFETY: they are this part's, as was just seen, and it is borrowed alone.
        unsafe { write(data.add(start), self.point, from) };
        Some(())
    }

    /// The same for integers.
    #[inline]
    pub fn write_integers(&mut self, first: usize, at: usize, from: &[i64]) -> Option<()> {
        let Pointer::Int(data) = self.data else { return None };
        let start = self.place((first, from.len()), (at, 1))?;
        // SAFETY: as above.
        unsafe { write(data.add(start), self.point, from) };
        Some(())
    }

    /// All elements of a point; nothing where the class is another, or there are more of them, which was checked.
    fn write_point(&mut self, p: usize, from: &Elements) {
        let Some(start) = self.place((p, 1), (0, from.slice().len())) else { return };
        // SAFETY: they are this part's, as was just seen, and it is borrowed alone.
        unsafe {
            match (from, self.data) {
                (Elements::Real(from), Pointer::Real(data)) => write(data.add(start), self.element, from),
                (Elements::Int(from), Pointer::Int(data)) => write(data.add(start), self.element, from),
                _ => {}
            }
        }
    }

    /// Where these points (the first, and how many) have these elements (the first, and how many), if they are this part's and
    /// there are any.
    #[inline]
    fn place(&self, (first, n): (usize, usize), (at, n_at): (usize, usize)) -> Option<usize> {
        let points = self.points.start <= first && first < self.points.end && n <= self.points.end - first;
        let elements = at < self.len && n_at <= self.len - at;
        // Neither product is too large: `check_batch` has computed larger ones.
        (points && elements).then(|| first * self.point + at * self.element)
    }
}

/// # Safety
/// All places from `data` on, `stride` apart, one for each of `to`, are there, and nobody writes them.
#[inline]
unsafe fn read<T: Copy>(data: *const T, stride: usize, to: &mut [T]) {
    // SAFETY: the caller's promise.
    unsafe {
        if stride == 1 {
            return to.copy_from_slice(std::slice::from_raw_parts(data, to.len()));
        }
        to.iter_mut().enumerate().for_each(|(i, to)| *to = data.add(i * stride).read());
    }
}

/// # Safety
/// All places from `data` on, `stride` apart, one for each of `from`, are there, and nobody else looks at them.
#[inline]
unsafe fn write<T: Copy>(data: *mut T, stride: usize, from: &[T]) {
    // SAFETY: the caller's promise.
    unsafe {
        if stride == 1 {
            return std::slice::from_raw_parts_mut(data, from.len()).copy_from_slice(from);
        }
        from.iter().enumerate().for_each(|(i, from)| data.add(i * stride).write(*from));
    }
}
