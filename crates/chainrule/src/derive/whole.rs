//! Types of the derivatives of straight-line code that was unrolled from a program: those of the program with loops.
//!
//! In: the request, and its leaves in the order of accumulation, rows outside. Out: the type of the one result, and its
//! leaves in its order. [`chainrule_autodiff::request`] lists the types.

use super::select::Chosen;
use super::{Derivation, What};
use crate::function::{Port, ScalarBody};
use crate::interface::array_of;
use chainrule_autodiff::Part;
use chainrule_base::Name;
use chainrule_ir::Type;
use chainrule_scalarise::leaves::leaves;

/// Arguments and results of a program whose derivatives have the types of a program with loops; see
/// [`chainrule_autodiff::request`].
pub(super) struct Whole {
    /// Differentiation arguments.
    pub(super) by: Vec<(Name, Type)>,
    /// Differentiated results.
    pub(super) of: Vec<(Name, Type)>,
}

impl Derivation {
    /// Returns the arguments and results, or parts of them, that are requested of a program; `None` if each port is an
    /// argument or a result.
    pub(super) fn whole(&self, body: &ScalarBody, by: &[Chosen]) -> Option<Whole> {
        let program = body.program.as_ref()?;
        let by = by.iter().map(|chosen| (chosen.part.name.clone(), chosen.ty.clone())).collect();
        Some(Whole { by, of: program.results.clone() })
    }
}

/// Returns one entry as it is, several as a record.
pub(crate) fn record(entries: &[(Name, Type)]) -> Type {
    match entries {
        [(_, ty)] => ty.clone(),
        several => Type::Tuple(
            several.iter().map(|(_, ty)| ty.clone()).collect(),
            Some(several.iter().map(|(name, _)| name.clone()).collect()),
        ),
    }
}

/// Returns `ty` with `by` for each double in it.
fn with_doubles(ty: &Type, by: &Type) -> Type {
    match ty {
        Type::Double => by.clone(),
        Type::Int | Type::Bool => ty.clone(),
        Type::Array(size, element) => Type::array(size.clone(), with_doubles(element, by)),
        Type::Tuple(fields, names) => {
            Type::Tuple(fields.iter().map(|field| with_doubles(field, by)).collect(), names.clone())
        }
    }
}

/// Type of a matrix of derivatives, with the row leaf and the column leaf of each of its leaves.
type Matrix = (Type, Vec<(usize, usize)>);

/// Type of derivatives of some order, with the leaf of the result and the leaf of each differentiation of each of its
/// leaves.
type Tensor = (Type, Vec<Vec<usize>>);

/// Applies `one` to each nested component of `ty` that is not a tuple, with the number of leaves before it; returns the
/// results in the tuples of `ty`.
fn by_components(ty: &Type, first: usize, one: &impl Fn(&Type, usize) -> Matrix) -> Matrix {
    let Type::Tuple(fields, names) = ty else { return one(ty, first) };
    let (mut types, mut blocks, mut first) = (Vec::new(), Vec::new(), first);
    for field in fields {
        let (ty, more) = by_components(field, first, one);
        types.push(ty);
        blocks.extend(more);
        first += leaves(field, "").len();
    }
    (Type::Tuple(types, names.clone()), blocks)
}

/// Returns the Jacobian of a value of type `of`, whose first leaf is `row`, by one of type `by`.
fn jacobian_of(of: &Type, row: usize, by: &Type) -> Matrix {
    let rows = row..row + leaves(of, "").len();
    by_components(by, 0, &|component, column| {
        let columns = column..column + leaves(component, "").len();
        let blocks = rows.clone().flat_map(|row| columns.clone().map(move |column| (row, column)));
        (with_doubles(of, component), blocks.collect())
    })
}

impl Whole {
    /// Returns the type of the Jacobian.
    pub(super) fn jacobian(&self) -> Matrix {
        jacobian_of(&record(&self.of), 0, &record(&self.by))
    }

    /// Returns the derivatives of order `order`: the Jacobian, taken so many times.
    pub(super) fn order(&self, order: usize) -> Tensor {
        let (of, by) = (record(&self.of), record(&self.by));
        let rows = leaves(&of, "").len();
        (0..order).fold((of, (0..rows).map(|row| vec![row]).collect()), |(ty, paths), _| {
            let (ty, blocks) = jacobian_of(&ty, 0, &by);
            let extended = |(row, column): (usize, usize)| [&*paths[row], &[column]].concat();
            (ty, blocks.into_iter().map(extended).collect())
        })
    }

    /// Returns the single result for all of `what`, with `outputs` as its leaves: they get their names and their order.
    pub(super) fn results(&self, what: &[What], outputs: &mut Vec<Port>) -> Vec<(Name, Type)> {
        let (by, of) = (record(&self.by), record(&self.of));
        let n_columns = leaves(&by, "").len();
        let mut made = std::mem::take(outputs).into_iter();
        let with_blocks = |(ty, blocks): Matrix| (ty, Some(blocks));
        let mut parts = Vec::new();
        for what in what {
            let (ty, blocks) = match what {
                // Its leaves are in their order already.
                What::Order(order) => (self.order(*order).0, None),
                What::Part(Part::Value | Part::Jvp) => (of.clone(), None),
                What::Part(Part::Vjp | Part::Hvp | Part::HessianDiagonal) => (by.clone(), None),
                What::Part(Part::Jacobian | Part::Gradient) => with_blocks(self.jacobian()),
                What::Part(Part::Hessian) => {
                    with_blocks(by_components(&by, 0, &|rows, first| jacobian_of(rows, first, &by)))
                }
            };
            if made.as_slice().first().is_some_and(|port| port.pattern.is_some()) {
                outputs.extend(made.next());
                parts.push((
                    Name::from(what.suffix()),
                    outputs.last().map_or(Type::Double, |port| array_of(&port.shape)),
                ));
                continue;
            }
            let ports: Vec<Port> = made.by_ref().take(leaves(&ty, "").len()).collect();
            match blocks {
                None => outputs.extend(ports),
                Some(blocks) => {
                    let port = |(row, column): (usize, usize)| ports.get(row * n_columns + column).cloned();
                    outputs.extend(blocks.into_iter().filter_map(port));
                }
            }
            parts.push((Name::from(what.suffix()), ty));
        }
        let result = (Name::new("result"), record(&parts));
        for (port, leaf) in outputs.iter_mut().zip(leaves(&result.1, &result.0)) {
            port.name = leaf.name;
        }
        vec![result]
    }
}
