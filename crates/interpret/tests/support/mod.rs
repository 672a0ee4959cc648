//! Calling programs with owned arrays, one point or many.
#![allow(dead_code)]

use chainrule_interpret::{Program, RunError, Sizes, Slice, SliceMut, Strided, StridedMut, Workspace};
use chainrule_ir::{Size, Type, Value};
use chainrule_kernel::{Class, Kernel};

/// Elements of one class.
#[derive(Clone, Debug)]
pub enum Data {
    Real(Vec<f64>),
    Int(Vec<i64>),
}

/// Bit for bit; every NaN is as good as another (its sign and payload depend on how an operation is compiled).
impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &f64, b: &f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (Self::Int(a), Self::Int(b)) => a == b,
            _ => false,
        }
    }
}

impl Data {
    fn new(class: Class, len: usize) -> Self {
        match class {
            Class::Real => Self::Real(vec![f64::NAN; len]),
            Class::Int => Self::Int(vec![i64::MIN; len]),
        }
    }

    pub fn slice(&self) -> Slice<'_> {
        match self {
            Self::Real(data) => Slice::Real(data),
            Self::Int(data) => Slice::Int(data),
        }
    }

    pub fn slice_mut(&mut self) -> SliceMut<'_> {
        match self {
            Self::Real(data) => SliceMut::Real(data),
            Self::Int(data) => SliceMut::Int(data),
        }
    }

    fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => a.extend(b),
            (Self::Int(a), Self::Int(b)) => a.extend(b),
            _ => panic!("arrays of two classes"),
        }
    }
}

/// An argument or a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    pub shape: Vec<usize>,
    pub data: Data,
}

pub fn reals(data: &[f64]) -> Array {
    Array { shape: vec![data.len()], data: Data::Real(data.to_vec()) }
}

pub fn ints(data: &[i64]) -> Array {
    Array { shape: vec![data.len()], data: Data::Int(data.to_vec()) }
}

pub fn real(x: f64) -> Array {
    Array { shape: vec![], data: Data::Real(vec![x]) }
}

pub fn int(x: i64) -> Array {
    Array { shape: vec![], data: Data::Int(vec![x]) }
}

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

/// How a batch lies in memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Order {
    Structures,
    Arrays,
}

/// Runs all points as one batch; each point's results, and whether it ran in lanes.
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
            if order == Order::Arrays { transpose(&all, n) } else { all }
        })
        .collect();
    let stride = |len: usize| if order == Order::Arrays { (1, n) } else { (len, 1) };
    let inputs: Vec<Strided<'_>> = joined
        .iter()
        .map(|data| {
            let len = match data {
                Data::Real(d) => d.len() / n,
                Data::Int(d) => d.len() / n,
            };
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
    program.run_batch(&sizes, n, &inputs, &mut into, &mut workspace.poisoned())?;
    let split = |p: usize| {
        let part = |a: &Array| {
            let data = match order {
                Order::Arrays => transpose(&a.data, a.shape.iter().product()),
                Order::Structures => a.data.clone(),
            };
            let len: usize = a.shape.iter().product();
            let data = match data {
                Data::Real(d) => Data::Real(d[p * len..(p + 1) * len].to_vec()),
                Data::Int(d) => Data::Int(d[p * len..(p + 1) * len].to_vec()),
            };
            Array { shape: a.shape.clone(), data }
        };
        results.iter().map(part).collect()
    };
    Ok(((0..n).map(split).collect(), lanes && program.runs_in_lanes(&sizes)))
}

/// `rows` rows of equal length become columns.
fn transpose(data: &Data, rows: usize) -> Data {
    fn go<T: Copy>(data: &[T], rows: usize) -> Vec<T> {
        let columns = data.len().checked_div(rows).unwrap_or(0);
        (0..data.len()).map(|k| data[(k % rows) * columns + k / rows]).collect()
    }
    match data {
        Data::Real(d) => Data::Real(go(d, rows)),
        Data::Int(d) => Data::Int(go(d, rows)),
    }
}

/// The leaves of a value of type `ty`, in the order of a kernel's ports.
pub fn flatten(ty: &Type, value: &Value<f64>, size: &dyn Fn(&Size) -> usize) -> Vec<Array> {
    match (ty, value) {
        (Type::Double, Value::Real(x)) => vec![real(*x)],
        (Type::Int, Value::Int(i)) => vec![int(*i)],
        (Type::Bool, Value::Bool(b)) => vec![int(i64::from(*b))],
        (Type::Tuple(fields, _), Value::Tuple(items)) => {
            fields.iter().zip(items).flat_map(|(ty, value)| flatten(ty, value, size)).collect()
        }
        (Type::Array(n, element), Value::Array(items)) => {
            assert_eq!(size(n), items.len(), "an array has the size of its type");
            let mut leaves = empty(element, size);
            leaves.iter_mut().for_each(|leaf| leaf.shape.insert(0, items.len()));
            for item in items {
                for (leaf, part) in leaves.iter_mut().zip(flatten(element, item, size)) {
                    leaf.data.append(&part.data);
                }
            }
            leaves
        }
        _ => panic!("{value:?} is not of type {ty:?}"),
    }
}

fn empty(ty: &Type, size: &dyn Fn(&Size) -> usize) -> Vec<Array> {
    match ty {
        Type::Double => vec![Array { shape: vec![], data: Data::Real(vec![]) }],
        Type::Int | Type::Bool => vec![Array { shape: vec![], data: Data::Int(vec![]) }],
        Type::Tuple(fields, _) => fields.iter().flat_map(|ty| empty(ty, size)).collect(),
        Type::Array(n, element) => {
            let mut leaves = empty(element, size);
            leaves.iter_mut().for_each(|leaf| leaf.shape.insert(0, size(n)));
            leaves
        }
    }
}
