//! Arguments, results and memory of repeated evaluations; conversion of values to columns and back.

use crate::engine::BoundEngine;
use crate::{Compiled, Error, Result};
use chainrule_base::Name;
use chainrule_ir::{Size, Type, Value};
use chainrule_kernel::SizeSource;
use chainrule_runtime::{Elements, Sizes, Slice};
use chainrule_scalarise::leaves::{Leaf, class_of, leaves};

/// Evaluation of a [`Compiled`] at fixed extents and integers; created by [`Compiled::prepare`]. Doubles may change
/// between runs. Checks run only once: running native code on one thread allocates nothing.
///
/// Arguments and results are numbered as in [`crate::Function::inputs`] and [`crate::Function::outputs`]: one for each
/// array or scalar in them.
#[derive(Debug)]
pub struct Prepared<'f> {
    compiled: &'f Compiled,
    engine: BoundEngine<'f>,
}

impl<'f> Prepared<'f> {
    pub(crate) fn new(compiled: &'f Compiled, inputs: Vec<Elements>, sizes: Sizes) -> Result<Self> {
        let memory = compiled.memory(&sizes);
        let engine = compiled.engine().bound(sizes, inputs, memory).map_err(|e| compiled.failed(e))?;
        Ok(Self { compiled, engine })
    }

    /// Computes the results.
    ///
    /// # Errors
    /// Fails if the program fails.
    #[inline]
    pub fn run(&mut self) -> Result<()> {
        match self.engine.run() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.compiled.failed(error)),
        }
    }

    /// Returns the doubles of argument `i`, row-major; empty for integers and for arguments that do not exist.
    pub fn argument_mut(&mut self, i: usize) -> &mut [f64] {
        if i < self.engine.inputs().len() { self.engine.input_mut(i) } else { &mut [] }
    }

    /// Returns the doubles of result `i` of the last run, row-major; empty for integers and for results that do not
    /// exist.
    #[must_use]
    pub fn result(&self, i: usize) -> &[f64] {
        self.engine.outputs().get(i).map_or(&[], Elements::reals)
    }

    /// Returns the integers of result `i` of the last run, row-major; empty for doubles and for results that do not
    /// exist.
    #[must_use]
    pub fn integers(&self, i: usize) -> &[i64] {
        match self.engine.outputs().get(i) {
            Some(Elements::Int(x)) => x,
            _ => &[],
        }
    }

    /// Returns the arguments for emitted code, one per leaf.
    #[must_use]
    pub fn arguments(&self) -> Vec<Slice<'_>> {
        self.engine.inputs().iter().map(Elements::slice).collect()
    }

    /// Returns the extents of the arguments, in the order of emitted code.
    #[must_use]
    pub fn extents(&self) -> Vec<i64> {
        let (kernel, ..) = self.compiled.parts();
        let sizes = kernel.sizes.iter().zip(self.engine.sizes().values());
        let is_extent = |source: &SizeSource| matches!(source, SizeSource::Extent { .. });
        sizes.filter(|(size, _)| is_extent(&size.source)).map(|(_, value)| *value).collect()
    }

    pub(crate) fn sizes(&self) -> &Sizes {
        self.engine.sizes()
    }

    /// Returns the number of numbers in the workspace, without the padding between arrays to cache lines: at most seven
    /// per array.
    #[must_use]
    pub fn workspace_len(&self) -> usize {
        self.engine.sizes().n_planned()
    }

    /// Returns the results of the last run: one value for each result of the signature.
    #[must_use]
    pub fn results(&self) -> Vec<Value<f64>> {
        let (sizes, outputs) = (self.engine.sizes(), self.engine.outputs());
        let shapes: Vec<&[usize]> = (0..outputs.len()).map(|i| sizes.output_shape(i)).collect();
        let mut leaf = 0;
        let results = &self.compiled.signature().results;
        results.iter().map(|(_, ty)| gather(ty, outputs, &shapes, &mut leaf, 0, 0)).collect()
    }
}

/// Arguments, decomposed into leaves.
pub(crate) struct Flat {
    /// Extents of each leaf.
    pub(crate) extents: Vec<Vec<usize>>,
    /// Elements of each leaf, row-major.
    pub(crate) columns: Vec<Elements>,
}

impl Flat {
    /// Decomposes arguments; `unseen` is the extent of an array without elements in the value.
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
                flat.columns.push(Elements::zeros(class_of(&leaf.scalar), 0));
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
                    (Elements::Real(column), Value::Real(x)) => column.push(*x),
                    (Elements::Int(column), Value::Int(x)) => column.push(*x),
                    (Elements::Int(column), Value::Bool(x)) => column.push(i64::from(*x)),
                    (Elements::Real(_), _) => return misfit("a number"),
                    (Elements::Int(_), _) => return misfit("an integer"),
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
    columns: &[Elements],
    shapes: &[&[usize]],
    leaf: &mut usize,
    depth: usize,
    position: usize,
) -> Value<f64> {
    match ty {
        Type::Double | Type::Int | Type::Bool => {
            *leaf += 1;
            match (&columns[*leaf - 1], ty) {
                (Elements::Real(x), _) => Value::Real(x[position]),
                (Elements::Int(x), Type::Bool) => Value::Bool(x[position] != 0),
                (Elements::Int(x), _) => Value::Int(x[position]),
            }
        }
        Type::Array(_, element) => {
            // An array of empty arrays does not determine their extent.
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
