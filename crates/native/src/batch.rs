//! Points of a batch: between the caller's strides and the tiles of the code, where an element's lanes lie
//! beside each other.

use chainrule_kernel::Class;
use chainrule_runtime::{Layout, Sizes, Slice, SliceMut, Strided, StridedMut};

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

/// The other way.
pub(crate) fn unpack<const W: usize>(tile: &[f64], data: &mut [f64], shape: (usize, usize, usize, usize)) {
    let (first, n, point, element) = shape;
    for (e, lanes) in tile.as_chunks::<W>().0.iter().enumerate() {
        let start = first * point + e * element;
        if point == 1 && n == W {
            data[start..start + W].copy_from_slice(lanes);
        } else {
            for (l, from) in lanes.iter().take(n).enumerate() {
                data[start + l * point] = *from;
            }
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

    pub(crate) fn write(&self, outputs: &mut [StridedMut<'_>], p: usize) {
        for (column, output) in self.outputs.iter().zip(outputs) {
            let start = p * output.point;
            match (column, &mut output.data) {
                (Column::Real(from), SliceMut::Real(data)) => scatter(from, data, start, output.element),
                (Column::Int(from), SliceMut::Int(data)) => scatter(from, data, start, output.element),
                _ => {}
            }
        }
    }
}

fn gather<T: Copy>(to: &mut [T], data: &[T], start: usize, element: usize) {
    for (e, to) in to.iter_mut().enumerate() {
        *to = data[start + e * element];
    }
}

fn scatter<T: Copy>(from: &[T], data: &mut [T], start: usize, element: usize) {
    for (e, from) in from.iter().enumerate() {
        data[start + e * element] = *from;
    }
}
