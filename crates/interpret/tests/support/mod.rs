//! Calls of programs with owned arrays, one point or many.
#![allow(dead_code)]

use chainrule_interpret::{Program, RunError, Sizes, Slice, SliceMut, Strided, StridedMut, Workspace};
use chainrule_kernel::Kernel;
use chainrule_runtime::Backend;

use chainrule_backend_tests::{Array, Data};

pub fn bind(program: &Program, inputs: &[Array]) -> Result<Sizes, RunError> {
    let shapes: Vec<&[usize]> = inputs.iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = inputs.iter().map(|a| a.data.slice()).collect();
    program.bind_inputs(&shapes, &slices)
}

fn outputs(kernel: &Kernel, sizes: &Sizes, n_points: usize) -> Vec<Array> {
    kernel
        .outputs
        .iter()
        .enumerate()
        .map(|(i, port)| {
            let data = Data::new(kernel.buffers[port.buffer].class, n_points * sizes.output_len(i));
            Array { shape: sizes.output_shape(i).to_vec(), data }
        })
        .collect()
}

/// Runs one point in poisoned memory.
pub fn run(kernel: &Kernel, program: &Program, inputs: &[Array]) -> Result<Vec<Array>, RunError> {
    let sizes = bind(program, inputs)?;
    let mut results = outputs(kernel, &sizes, 1);
    let slices: Vec<Slice<'_>> = inputs.iter().map(|a| a.data.slice()).collect();
    let mut into: Vec<SliceMut<'_>> = results.iter_mut().map(|a| a.data.slice_mut()).collect();
    program.run(&sizes, &slices, &mut into, &mut Workspace::new(program, &sizes).poisoned())?;
    Ok(results)
}

/// Memory layout of a batch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Order {
    Structures,
    Arrays,
}

/// Runs all points as one batch; returns each point's results, and whether it ran in lanes.
pub fn run_batch(
    kernel: &Kernel,
    program: &Program,
    points: &[Vec<Array>],
    order: Order,
    lanes: bool,
) -> Result<(Vec<Vec<Array>>, bool), RunError> {
    let sizes = bind(program, &points[0])?;
    let n = points.len();
    let joined: Vec<Data> = (0..kernel.inputs.len())
        .map(|i| {
            let parts: Vec<&Data> = points.iter().map(|p| &p[i].data).collect();
            let mut all = parts[0].clone();
            parts[1..].iter().for_each(|part| all.append(part));
            if order == Order::Arrays { all.transposed(n) } else { all }
        })
        .collect();
    let stride = |len: usize| if order == Order::Arrays { (1, n) } else { (len, 1) };
    let inputs: Vec<Strided<'_>> = joined
        .iter()
        .map(|data| {
            let len = data.len() / n;
            let (point, element) = stride(len);
            Strided { data: data.slice(), point, element }
        })
        .collect();
    let mut results = outputs(kernel, &sizes, n);
    let mut into: Vec<StridedMut<'_>> = results
        .iter_mut()
        .enumerate()
        .map(|(i, a)| {
            let (point, element) = stride(sizes.output_len(i));
            StridedMut { data: a.data.slice_mut(), point, element }
        })
        .collect();
    let workspace = if lanes { Workspace::for_batch(program, &sizes) } else { Workspace::new(program, &sizes) };
    program.run_batch(&sizes, n, &inputs, &mut into, &mut [workspace.poisoned()])?;
    let split = |p: usize| {
        let part = |a: &Array| {
            let data = match order {
                Order::Arrays => a.data.transposed(a.shape.iter().product()),
                Order::Structures => a.data.clone(),
            };
            let len: usize = a.shape.iter().product();
            let data = data.part(p * len, len);
            Array { shape: a.shape.clone(), data }
        };
        results.iter().map(part).collect()
    };
    Ok(((0..n).map(split).collect(), lanes && program.runs_in_lanes(&sizes)))
}
