//! Points of a batch: between the caller's strides and the tiles of the code, where an element's lanes lie
//! beside each other.

use chainrule_kernel::Class;
use chainrule_runtime::{Layout, Sizes, Slice, SliceMut, Strided, StridedMut};
use std::marker::PhantomData;

/// Points `first..first + n` into the lanes of `tile`; lanes beyond them hold the last point, so that nothing
/// unusual is computed there. `shape` is first, n, stride of points, stride of elements.
pub(crate) fn pack<const W: usize>(tile: &mut [f64], data: &[f64], shape: (usize, usize, usize, usize)) {
    let (first, n, point, element) = shape;
    if n == 0 {
        return;
    }
    for (e, lanes) in tile.as_chunks_mut::<W>().0.iter_mut().enumerate() {
        let start = first * point + e * element;
        if point == 1 && n == W {
            lanes.copy_from_slice(&data[start..start + W]);
        } else {
            for (l, to) in lanes.iter_mut().enumerate() {
                *to = data[start + l.min(n - 1) * point];
            }
        }
    }
}

/// An output of many points that several threads write, each to points of its own.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    data: Pointer,
    len: usize,
    point: usize,
    element: usize,
    borrowed: PhantomData<&'a mut f64>,
}

#[derive(Clone, Copy)]
enum Pointer {
    Real(*mut f64),
    Int(*mut i64),
}

// SAFETY: it stands for a mutable borrow of numbers. That two threads write one place is excluded by
// [`Shared::new`]'s callers: the layout was checked to put no two elements of any points at one place, and
// each thread has points of its own.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    pub(crate) fn new(output: &'a mut StridedMut<'_>) -> Self {
        let (point, element) = (output.point, output.element);
        let (data, len) = match &mut output.data {
            SliceMut::Real(data) => (Pointer::Real(data.as_mut_ptr()), data.len()),
            SliceMut::Int(data) => (Pointer::Int(data.as_mut_ptr()), data.len()),
        };
        Self { data, len, point, element, borrowed: PhantomData }
    }

    /// The lanes of `tile` to points `first..first + n`.
    ///
    /// # Safety
    /// No other thread writes these points.
    pub(crate) unsafe fn unpack<const W: usize>(&self, tile: &[f64], first: usize, n: usize) {
        let Pointer::Real(data) = self.data else { return };
        let chunks = tile.as_chunks::<W>().0;
        if chunks.is_empty() || n == 0 {
            return;
        }
        let last = (first + n - 1) * self.point + (chunks.len() - 1) * self.element;
        assert!(last < self.len, "an output as long as its strides ask for");
        for (e, lanes) in chunks.iter().enumerate() {
            let start = first * self.point + e * self.element;
            if self.point == 1 && n == W {
                // SAFETY: `start + W - 1 <= last`, which is inside; the points are this thread's.
                unsafe { data.add(start).cast::<[f64; W]>().write(*lanes) };
            } else {
                for (l, from) in lanes.iter().take(n).enumerate() {
                    // SAFETY: as above.
                    unsafe { data.add(start + l * self.point).write(*from) };
                }
            }
        }
    }

    /// The elements of one point.
    ///
    /// # Safety
    /// No other thread writes this point.
    unsafe fn scatter(&self, from: &Column, p: usize) {
        let n = match from {
            Column::Real(from) => from.len(),
            Column::Int(from) => from.len(),
        };
        if n == 0 {
            return;
        }
        let start = p * self.point;
        assert!(start + (n - 1) * self.element < self.len, "an output as long as its strides ask for");
        match (from, self.data) {
            (Column::Real(from), Pointer::Real(data)) => {
                // SAFETY: inside, as was just seen; the point is this thread's.
                from.iter().enumerate().for_each(|(e, x)| unsafe { data.add(start + e * self.element).write(*x) });
            }
            (Column::Int(from), Pointer::Int(data)) => {
                // SAFETY: as above.
                from.iter().enumerate().for_each(|(e, x)| unsafe { data.add(start + e * self.element).write(*x) });
            }
            // The classes were checked.
            _ => {}
        }
    }
}

enum Column {
    Real(Vec<f64>),
    Int(Vec<i64>),
}

impl Column {
    fn new(class: Class, len: usize) -> Self {
        match class {
            Class::Real => Self::Real(vec![0.0; len]),
            Class::Int => Self::Int(vec![0; len]),
        }
    }
}

/// Arguments of one point at a time, in memory of their own.
pub(crate) struct OnePoint {
    inputs: Vec<Column>,
    outputs: Vec<Column>,
}

impl OnePoint {
    pub(crate) fn new(layout: &Layout, sizes: &Sizes) -> Self {
        let kernel = layout.kernel();
        let inputs = kernel.inputs.iter().enumerate();
        let outputs = kernel.outputs.iter().enumerate();
        Self {
            inputs: inputs.map(|(i, p)| Column::new(kernel.buffers[p.buffer].class, sizes.input_len(i))).collect(),
            outputs: outputs.map(|(i, p)| Column::new(kernel.buffers[p.buffer].class, sizes.output_len(i))).collect(),
        }
    }

    pub(crate) fn read(&mut self, inputs: &[Strided<'_>], p: usize) {
        for (column, input) in self.inputs.iter_mut().zip(inputs) {
            let start = p * input.point;
            match (column, input.data) {
                (Column::Real(to), Slice::Real(data)) => gather(to, data, start, input.element),
                (Column::Int(to), Slice::Int(data)) => gather(to, data, start, input.element),
                // The classes were checked.
                _ => {}
            }
        }
    }

    pub(crate) fn slices(&mut self) -> (Vec<Slice<'_>>, Vec<SliceMut<'_>>) {
        let inputs = self.inputs.iter().map(|c| match c {
            Column::Real(x) => Slice::Real(x),
            Column::Int(x) => Slice::Int(x),
        });
        let outputs = self.outputs.iter_mut().map(|c| match c {
            Column::Real(x) => SliceMut::Real(x),
            Column::Int(x) => SliceMut::Int(x),
        });
        (inputs.collect(), outputs.collect())
    }

    /// # Safety
    /// No other thread writes this point.
    pub(crate) unsafe fn write(&self, outputs: &[Shared<'_>], p: usize) {
        for (column, output) in self.outputs.iter().zip(outputs) {
            // SAFETY: the caller's promise.
            unsafe { output.scatter(column, p) };
        }
    }
}

fn gather<T: Copy>(to: &mut [T], data: &[T], start: usize, element: usize) {
    for (e, to) in to.iter_mut().enumerate() {
        *to = data[start + e * element];
    }
}
