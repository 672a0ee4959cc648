//! Arguments, results and memory of one evaluation, to be run again and again; values taken apart into columns and
//! put together again.

use crate::engine::Memory;
use crate::leaves::{Leaf, leaves};
use crate::{Compiled, Error, Result};
use chainrule_base::Name;
use chainrule_ir::{Size, Type, Value};
use chainrule_kernel::SizeSource;
use chainrule_runtime::{Doubles, Sizes, Slice, SliceMut};

/// An evaluation of a [`Compiled`] at extents and integers that are fixed; made by [`Compiled::prepare`]. Doubles may
/// change between runs. Running allocates nothing but the list of arguments.
///
/// Arguments and results are numbered as [`crate::Function::inputs`] and [`crate::Function::outputs`] list them: one
/// for each array or scalar in them.
#[derive(Debug)]
pub struct Prepared<'f> {
    compiled: &'f Compiled,
    inputs: Vec<Column>,
    outputs: Vec<Column>,
    sizes: Sizes,
    memory: Memory,
}

impl<'f> Prepared<'f> {
    pub(crate) fn new(compiled: &'f Compiled, inputs: Vec<Column>, sizes: Sizes) -> Self {
        let scalars = compiled.signature().results.iter().flat_map(|(name, ty)| leaves(ty, name));
        let zeros = |(i, leaf): (usize, Leaf)| Column::zeros(&leaf.scalar, sizes.output_len(i));
        let outputs = scalars.enumerate().map(zeros).collect();
        let memory = compiled.memory(&sizes);
        Self { compiled, inputs, outputs, sizes, memory }
    }

    /// Computes the results.
    ///
    /// # Errors
    /// When the program fails.
    pub fn run(&mut self) -> Result<()> {
        let inputs: Vec<Slice<'_>> = self.inputs.iter().map(Column::slice).collect();
        let mut outputs: Vec<SliceMut<'_>> = self.outputs.iter_mut().map(Column::slice_mut).collect();
        let run = self.compiled.engine().run(&self.sizes, &inputs, &mut outputs, &mut self.memory);
        run.map_err(|e| self.compiled.failed(e))
    }

    /// The doubles of argument `i`, row-major; none where it is of integers or is not there.
    pub fn argument_mut(&mut self, i: usize) -> &mut [f64] {
        match self.inputs.get_mut(i) {
            Some(Column::Real(x)) => x,
            _ => &mut [],
        }
    }

    /// The doubles of result `i` of the last run, row-major; none where it is of integers or is not there.
    #[must_use]
    pub fn result(&self, i: usize) -> &[f64] {
        match self.outputs.get(i) {
            Some(Column::Real(x)) => x,
            _ => &[],
        }
    }

    /// The integers of result `i` of the last run, row-major; none where it is of doubles or is not there.
    #[must_use]
    pub fn integers(&self, i: usize) -> &[i64] {
        match self.outputs.get(i) {
            Some(Column::Int(x)) => x,
            _ => &[],
        }
    }

    /// The arguments as emitted code takes them, one a leaf.
    #[must_use]
    pub fn arguments(&self) -> Vec<Slice<'_>> {
        self.inputs.iter().map(Column::slice).collect()
    }

    /// The extents that the arguments have, in the order in which emitted code takes them.
    #[must_use]
    pub fn extents(&self) -> Vec<i64> {
        let (kernel, ..) = self.compiled.parts();
        let sizes = kernel.sizes.iter().zip(self.sizes.values());
        let is_extent = |source: SizeSource| matches!(source, SizeSource::Extent { .. });
        sizes.filter(|(size, _)| is_extent(size.source)).map(|(_, value)| *value).collect()
    }

    /// How many numbers the workspace has, but for what fills lines of a cache between arrays: at most seven an array.
    #[must_use]
    pub fn workspace_len(&self) -> usize {
        self.sizes.n_planned()
    }

    /// The results of the last run: one value for each result of the signature.
    #[must_use]
    pub fn results(&self) -> Vec<Value<f64>> {
        let shapes: Vec<&[usize]> = (0..self.outputs.len()).map(|i| self.sizes.output_shape(i)).collect();
        let mut leaf = 0;
        let results = &self.compiled.signature().results;
        results.iter().map(|(_, ty)| gather(ty, &self.outputs, &shapes, &mut leaf, 0, 0)).collect()
    }
}

/// The elements of a leaf.
#[derive(Debug)]
pub(crate) enum Column {
    Real(Doubles),
    Int(Vec<i64>),
}

impl Column {
    pub(crate) fn zeros(scalar: &Type, n: usize) -> Self {
        if *scalar == Type::Double { Self::Real(Doubles::zeros(n)) } else { Self::Int(vec![0; n]) }
    }

    pub(crate) fn slice(&self) -> Slice<'_> {
        match self {
            Self::Real(x) => Slice::Real(x),
            Self::Int(x) => Slice::Int(x),
        }
    }

    pub(crate) fn slice_mut(&mut self) -> SliceMut<'_> {
        match self {
            Self::Real(x) => SliceMut::Real(x),
            Self::Int(x) => SliceMut::Int(x),
        }
    }
}

/// Arguments taken apart into leaves.
pub(crate) struct Flat {
    /// Of each leaf.
    pub(crate) extents: Vec<Vec<usize>>,
    /// The elements of each leaf, row-major.
    pub(crate) columns: Vec<Column>,
}

impl Flat {
    /// `unseen` is the extent of an array of which there is none.
    pub(crate) fn new(
        params: &[(Name, Type)],
        args: &[Value<f64>],
        unseen: impl Fn(&Size) -> Option<i64>,
    ) -> Result<Self> {
        if params.len() != args.len() {
            let names: Vec<&str> = params.iter().map(|(name, _)| name.as_str()).collect();
            return Err(Error::request(
                format!("there are {} arguments, not {}", params.len(), args.len()),
                format!("they are {}", names.join(", ")),
            ));
        }
        let mut flat = Self { extents: Vec::new(), columns: Vec::new() };
        for ((name, ty), arg) in params.iter().zip(args) {
            let fields: Vec<Leaf> = leaves(ty, name);
            let first = flat.columns.len();
            for leaf in &fields {
                flat.extents.push(Vec::new());
                flat.columns.push(Column::zeros(&leaf.scalar, 0));
            }
            let mut at = first;
            flat.scatter(ty, arg, &mut at, 0, name)?;
            for (leaf, extents) in fields.iter().zip(&mut flat.extents[first..]) {
                while extents.len() < leaf.extents.len() {
                    let extent = unseen(&leaf.extents[extents.len()]).unwrap_or(0);
                    extents.push(usize::try_from(extent).unwrap_or(0));
                }
            }
        }
        Ok(flat)
    }

    // Recursive on the nesting of types only.
    fn scatter(&mut self, ty: &Type, value: &Value<f64>, leaf: &mut usize, depth: usize, name: &str) -> Result<()> {
        let misfit = |wanted: &str| {
            Err(Error::request(
                format!("a part of the argument `{name}` is not {wanted}"),
                "give it the argument's type",
            ))
        };
        match (ty, value) {
            (Type::Double | Type::Int | Type::Bool, _) => {
                match (&mut self.columns[*leaf], value) {
                    (Column::Real(column), Value::Real(x)) => column.push(*x),
                    (Column::Int(column), Value::Int(x)) => column.push(*x),
                    (Column::Int(column), Value::Bool(x)) => column.push(i64::from(*x)),
                    (Column::Real(_), _) => return misfit("a number"),
                    (Column::Int(_), _) => return misfit("an integer"),
                }
                *leaf += 1;
                Ok(())
            }
            (Type::Array(_, element), Value::Array(parts)) => {
                let (start, width) = (*leaf, leaves(element, "").len());
                for extents in &mut self.extents[start..start + width] {
                    if extents.len() <= depth {
                        extents.push(parts.len());
                    } else if extents[depth] != parts.len() {
                        return Err(Error::request(
                            format!(
                                "rows of the argument `{name}` have {} and {} elements",
                                extents[depth],
                                parts.len()
                            ),
                            "arrays are rectangular: give all rows one length",
                        ));
                    }
                }
                for part in parts {
                    *leaf = start;
                    self.scatter(element, part, leaf, depth + 1, name)?;
                }
                *leaf = start + width;
                Ok(())
            }
            (Type::Tuple(fields, _), Value::Tuple(parts)) if fields.len() == parts.len() => {
                fields.iter().zip(parts).try_for_each(|(field, part)| self.scatter(field, part, leaf, depth, name))
            }
            (Type::Array(..), _) => misfit("an array"),
            (Type::Tuple(fields, _), _) => misfit(&format!("a tuple of {}", fields.len())),
        }
    }
}

fn gather(
    ty: &Type,
    columns: &[Column],
    shapes: &[&[usize]],
    leaf: &mut usize,
    depth: usize,
    position: usize,
) -> Value<f64> {
    match ty {
        Type::Double | Type::Int | Type::Bool => {
            *leaf += 1;
            match (&columns[*leaf - 1], ty) {
                (Column::Real(x), _) => Value::Real(x[position]),
                (Column::Int(x), Type::Bool) => Value::Bool(x[position] != 0),
                (Column::Int(x), _) => Value::Int(x[position]),
            }
        }
        Type::Array(_, element) => {
            // Of nothing there may be any number, and nobody has counted it.
            let n = shapes.get(*leaf).and_then(|shape| shape.get(depth)).copied().unwrap_or(0);
            let start = *leaf;
            let part = |leaf: &mut usize, i: usize| {
                *leaf = start;
                gather(element, columns, shapes, leaf, depth + 1, position * n + i)
            };
            let parts = (0..n).map(|i| part(leaf, i)).collect();
            *leaf = start + leaves(element, "").len();
            Value::Array(parts)
        }
        Type::Tuple(fields, _) => {
            Value::Tuple(fields.iter().map(|f| gather(f, columns, shapes, leaf, depth, position)).collect())
        }
    }
}
