//! Batches: many points, checked once and divided among threads.
//!
//! In: strided arguments and results of many points. Out: a [`Batch`], whose arguments fit at every point, and a
//! [`Share`] of it for each thread.
//!
//! Threads write results of one array at the same time. That is sound because only [`Batch::new`] makes parts, after
//! [`Layout::check_batch`] has checked that each element of each point has an address of its own inside the array, and
//! because a [`Part`] checks at each access that it touches elements of its own points only.

#![allow(unsafe_code, reason = "several threads write one array")]

use crate::{Elements, Layout, RunError, Sizes, Slice, SliceMut, Strided, StridedMut, threads};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Arguments and results of many points, checked against each other and the program.
#[derive(Debug)]
pub struct Batch<'a> {
    sizes: &'a Sizes,
    n_points: usize,
    inputs: &'a [Strided<'a>],
    /// Outputs of all points.
    outputs: Vec<Part<'a>>,
}

/// Points of a batch that one thread computes.
#[derive(Debug)]
pub struct Share<'a> {
    /// Sizes, the same for each point.
    pub sizes: &'a Sizes,
    /// Points of this share.
    pub points: Range<usize>,
    /// Arguments of all points.
    pub inputs: &'a [Strided<'a>],
    /// Results of the points of this share.
    pub outputs: Vec<Part<'a>>,
}

/// An output of some points: like [`StridedMut`], but only these points can be accessed.
#[derive(Debug)]
pub struct Part<'a> {
    data: Pointer,
    points: Range<usize>,
    /// Number of elements of each point.
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

// SAFETY: a part stands for a mutable borrow of the numbers of its points, and numbers may be sent and shared. The
// module's documentation says why no two parts share an address.
unsafe impl Send for Part<'_> {}
// SAFETY: as above; shared elements are only read.
unsafe impl Sync for Part<'_> {}

impl<'a> Batch<'a> {
    /// Checks the arguments and results of `n_points` points and returns them as a batch.
    ///
    /// # Errors
    /// Those of [`Layout::check_batch`]; sizes of another program.
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

    /// Returns the sizes of each point.
    #[must_use]
    pub fn sizes(&self) -> &'a Sizes {
        self.sizes
    }

    /// Calls `run` at the same time with one share of `points` for each of `workers`. Every share but the last is a
    /// whole number of blocks of `block` points.
    ///
    /// # Errors
    /// The error of the first share that fails; an empty list of workers.
    ///
    /// # Panics
    /// Panics if `run` does.
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
            _ if !threads::are_available() => {
                workers.iter_mut().enumerate().try_for_each(|(t, worker)| run(&mut share(t), worker))
            }
            _ => {
                let mut results: Vec<Result<(), RunError>> = workers.iter().map(|_| Ok(())).collect();
                // In place: the caller starts at once, instead of waking one more thread and waiting for it.
                rayon::in_place_scope(|scope| {
                    let mut all = workers.iter_mut().zip(&mut results).enumerate();
                    let own = all.next();
                    for (t, (worker, result)) in all {
                        let (mut share, run) = (share(t), &run);
                        scope.spawn(move |_| *result = run(&mut share, worker));
                    }
                    if let Some((t, (worker, result))) = own {
                        *result = run(&mut share(t), worker);
                    }
                });
                results.into_iter().collect()
            }
        }
    }

    /// Returns the share of these points.
    ///
    /// # Safety
    /// The points exist, and no two shares that live at the same time have a point in common.
    unsafe fn share(&self, points: Range<usize>) -> Share<'_> {
        let part = |all: &Part<'_>| Part { points: points.clone(), borrowed: PhantomData, ..*all };
        let outputs = self.outputs.iter().map(part).collect();
        Share { sizes: self.sizes, points, inputs: self.inputs, outputs }
    }
}

impl Share<'_> {
    /// Calls `run` for one point after the other, with arguments and results copied to and from memory of one point.
    ///
    /// # Errors
    /// The first error of `run`, with its point.
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

/// Copies the elements of point `p`; the classes are checked before.
fn gather(to: &mut Elements, all: &Strided<'_>, p: usize) {
    let at = |e: usize| p * all.point + e * all.element;
    match (to, all.data) {
        (Elements::Real(to), Slice::Real(data)) => to.iter_mut().enumerate().for_each(|(e, x)| *x = data[at(e)]),
        (Elements::Int(to), Slice::Int(data)) => to.iter_mut().enumerate().for_each(|(e, x)| *x = data[at(e)]),
        _ => {}
    }
}

impl Part<'_> {
    /// Returns the stride from one point to the next.
    #[must_use]
    pub fn point(&self) -> usize {
        self.point
    }

    /// Returns the stride from one element to the next.
    #[must_use]
    pub fn element(&self) -> usize {
        self.element
    }

    /// Returns the address of the doubles of all points if points `first..first + n` belong to this part and have `len`
    /// elements each; these may be written.
    #[inline]
    pub fn doubles(&mut self, first: usize, n: usize, len: usize) -> Option<*mut f64> {
        let Pointer::Real(data) = self.data else { return None };
        self.place((first, n), (0, len)).map(|_| data)
    }

    /// Reads element `at` of the points from `first` on, one for each element of `to`.
    #[inline]
    pub fn read_doubles(&self, first: usize, at: usize, to: &mut [f64]) -> Option<()> {
        let Pointer::Real(data) = self.data else { return None };
        let start = self.place((first, to.len()), (at, 1))?;
        // SAFETY: the elements belong to this part, by the check above.
        unsafe { read(data.add(start), self.point, to) };
        Some(())
    }

    /// Reads element `at` of the points from `first` on, as [`Self::read_doubles`] does for doubles.
    #[inline]
    pub fn read_integers(&self, first: usize, at: usize, to: &mut [i64]) -> Option<()> {
        let Pointer::Int(data) = self.data else { return None };
        let start = self.place((first, to.len()), (at, 1))?;
        // SAFETY: as above.
        unsafe { read(data.add(start), self.point, to) };
        Some(())
    }

    /// Writes element `at` of the points from `first` on.
    #[inline]
    pub fn write_doubles(&mut self, first: usize, at: usize, from: &[f64]) -> Option<()> {
        let Pointer::Real(data) = self.data else { return None };
        let start = self.place((first, from.len()), (at, 1))?;
        // SAFETY: the elements belong to this part, by the check above, and the part is borrowed mutably.
        unsafe { write(data.add(start), self.point, from) };
        Some(())
    }

    /// Writes element `at` of the points from `first` on, as [`Self::write_doubles`] does for doubles.
    #[inline]
    pub fn write_integers(&mut self, first: usize, at: usize, from: &[i64]) -> Option<()> {
        let Pointer::Int(data) = self.data else { return None };
        let start = self.place((first, from.len()), (at, 1))?;
        // SAFETY: as above.
        unsafe { write(data.add(start), self.point, from) };
        Some(())
    }

    /// Writes all elements of a point. Does nothing if the class or the number of elements differs, which `new`
    /// excludes.
    fn write_point(&mut self, p: usize, from: &Elements) {
        let Some(start) = self.place((p, 1), (0, from.slice().len())) else { return };
        // SAFETY: the elements belong to this part, by the check above, and the part is borrowed mutably.
        unsafe {
            match (from, self.data) {
                (Elements::Real(from), Pointer::Real(data)) => write(data.add(start), self.element, from),
                (Elements::Int(from), Pointer::Int(data)) => write(data.add(start), self.element, from),
                _ => {}
            }
        }
    }

    /// Returns the offset of the first of these elements (first, count) of these points (first, count), if there are
    /// any and all belong to this part.
    #[inline]
    fn place(&self, (first, n): (usize, usize), (at, n_at): (usize, usize)) -> Option<usize> {
        let points = self.points.start <= first && first < self.points.end && n <= self.points.end - first;
        let elements = at < self.len && n_at <= self.len - at;
        // Neither product overflows: `check_batch` computes larger ones with a check.
        (points && elements).then(|| first * self.point + at * self.element)
    }
}

/// Reads elements at distance `stride`, one for each element of `to`.
///
/// # Safety
/// All these elements from `data` on are valid for reads, and no other thread writes them.
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

/// Writes elements at distance `stride`, one for each element of `from`.
///
/// # Safety
/// All these elements from `data` on are valid for writes, and no other thread accesses them.
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
