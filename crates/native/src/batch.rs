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
    let mut done = 0;
    if element == 1 && n == W {
        let len = tile.len() / W;
        // A batch of structures: squares of four points and four elements are turned.
        done = len - len % 4;
        // SAFETY: a program is made for a level that the processor has, and all levels have AVX.
        unsafe { turn_in::<W>(tile, data, first * point, point, done) };
    }
    for (e, lanes) in tile.as_chunks_mut::<W>().0.iter_mut().enumerate().skip(done) {
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

/// The first `done` elements of `W` points, from `data[start]` on, into the lanes of `tile`, in squares.
#[target_feature(enable = "avx")]
fn turn_in<const W: usize>(tile: &mut [f64], data: &[f64], start: usize, point: usize, done: usize) {
    for lane in (0..W).step_by(4) {
        for e in (0..done).step_by(4) {
            let rows = std::array::from_fn(|l| {
                let at = start + (lane + l) * point + e;
                data[at..at + 4].try_into().unwrap_or([0.0; 4])
            });
            for (i, column) in transposed(rows).into_iter().enumerate() {
                let at = (e + i) * W + lane;
                tile[at..at + 4].copy_from_slice(&column);
            }
        }
    }
}

/// The other way.
///
/// # Safety
/// All elements that are written are inside of what `data` points to, and nobody else writes them.
#[target_feature(enable = "avx")]
unsafe fn turn_out<const W: usize>(tile: &[f64], data: *mut f64, start: usize, point: usize, done: usize) {
    for lane in (0..W).step_by(4) {
        for e in (0..done).step_by(4) {
            let rows = std::array::from_fn(|i| {
                let at = (e + i) * W + lane;
                tile[at..at + 4].try_into().unwrap_or([0.0; 4])
            });
            for (l, column) in transposed(rows).into_iter().enumerate() {
                let at = start + (lane + l) * point + e;
                // SAFETY: the caller's promise.
                unsafe { data.add(at).cast::<[f64; 4]>().write_unaligned(column) };
            }
        }
    }
}

/// Rows become columns.
#[target_feature(enable = "avx")]
#[inline]
fn transposed(rows: [[f64; 4]; 4]) -> [[f64; 4]; 4] {
    use std::arch::x86_64::{__m256d, _mm256_permute2f128_pd, _mm256_unpackhi_pd, _mm256_unpacklo_pd};
    // SAFETY: four doubles are four doubles.
    let [a, b, c, d] = rows.map(|row| unsafe { std::mem::transmute::<[f64; 4], __m256d>(row) });
    let (low, high) =
        ((_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d)), (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d)));
    let columns = [
        _mm256_permute2f128_pd::<0x20>(low.0, low.1),
        _mm256_permute2f128_pd::<0x20>(high.0, high.1),
        _mm256_permute2f128_pd::<0x31>(low.0, low.1),
        _mm256_permute2f128_pd::<0x31>(high.0, high.1),
    ];
    // SAFETY: as above.
    columns.map(|column| unsafe { std::mem::transmute::<__m256d, [f64; 4]>(column) })
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
        let mut done = 0;
        if self.element == 1 && n == W {
            done = chunks.len() - chunks.len() % 4;
            // SAFETY: all are at most `last`, which is inside; the points are this thread's. All levels have AVX.
            unsafe { turn_out::<W>(tile, data, first * self.point, self.point, done) };
        }
        for (e, lanes) in chunks.iter().enumerate().skip(done) {
            let start = first * self.point + e * self.element;
            if self.point == 1 && n == W {
                // SAFETY: `start + W - 1 <= last`, which is inside; the points are this thread's.
                unsafe { data.add(start).cast::<[f64; W]>().write_unaligned(*lanes) };
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
