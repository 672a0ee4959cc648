//! Sparse Jacobians and Hessians of array programs, with the pattern from the index structure.
//!
//! In: a function. Out: a [`Sparsity`]: a *pattern program*, which computes from sizes and integers the blocks of the
//! arguments that each part of the result reads, and a *values program*, which computes the derivatives by those blocks
//! only. Both take the arguments of the function. `docs/decisions/0016` explains the approach.
//!
//! | here | is |
//! | --- | --- |
//! | term (`terms`) | a part of the result under loops: rows of a Jacobian, a summand of a separable sum |
//! | gather (`gather`) | a read of a block of an argument in a term, at indices of integers and counters |
//! | budget (`budget`) | limit for inlining chains of arrays before a result is differentiated densely |
//! | degree (`degree`) | whether one number of doubles grows faster than another |
//! | indices (`indices`) | the part of a term that can be computed from integers alone, and the pattern program |
//! | places (`places`) | the row and the column of each double of the values program |
//! | [`dependence`] | the pattern if the indices do not determine it, by tracing numbers |
//! | [`interaction`] | the same for Hessians, by tracing the function itself |
//! | [`check`] | whether a sparse derivative is the dense one |
//! | `values` | both programs |
//!
//! Rows and columns are numbered in the memory order of the doubles of results and arguments: leaf after leaf (a leaf
//! is an array of doubles; arrays of tuples are tuples of arrays), each row-major. Columns are those of the
//! differentiation parameters, in the requested order.
//!
//! Holds: the pattern contains each position at which the derivative is not structurally zero; doubles with equal
//! positions are to be added. The pattern depends on no double.

mod budget;
pub mod check;
mod degree;
pub mod dependence;
mod gather;
mod indices;
pub mod interaction;
mod places;
mod terms;
mod values;

pub use places::{DenseBlock, Places, ints};

use crate::request::{self, Part};
use crate::{Mode, forward, tidy};
use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_ir::{Function, Size, Type, VarId};
use std::collections::BTreeSet;

/// Maximum number of doubles of a dense value: blocks of rows and of columns.
pub(crate) const BLOCK: i64 = 64;

/// Sparse derivative: two programs, and the meaning of their results.
#[derive(Clone, PartialEq, Debug)]
pub struct Sparsity {
    /// From the function's arguments to integers: first the extents with which positions are computed, then an array
    /// for each gather that has an index: `[counters of the term] [counters of inner loops] [indices]`. All indices are
    /// in range, or all are -2^40: in a branch that is not taken, or out of range under a condition on doubles. The
    /// program fails if an index that the function reads is out of range.
    pub pattern: Function,
    /// From the function's arguments to doubles, those of each term in turn. Its derivatives, each of one term's block
    /// at one place, are not expanded.
    pub values: Function,
    pub(crate) terms: Vec<TermShape>,
    /// Leaves of rows and columns; their extents are numbers of sizes.
    pub(crate) rows: Vec<LeafShape>,
    pub(crate) columns: Vec<LeafShape>,
    pub(crate) n_sizes: usize,
    /// Messages about structure that the indices do not determine.
    notes: Vec<String>,
}

/// Array of doubles: the numbers of the sizes that are its extents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeafShape {
    pub(crate) extents: Vec<usize>,
}

/// Meaning of the doubles of a term.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TermShape {
    /// Extents of its loops.
    pub(crate) loops: Vec<usize>,
    /// Leaves: the row leaf, and the extents below the loops. Empty in a Hessian.
    pub(crate) rows: Vec<(usize, Vec<usize>)>,
    pub(crate) gathers: Vec<GatherShape>,
    pub(crate) form: Form,
}

/// Layout of the doubles of a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// For each double of a row, one array of the doubles of all gathers.
    Together,
    /// For each gather, a Jacobian.
    Apart,
    /// For each pair of a gather (columns) and a gather (rows), a block of the Hessian.
    Hessian,
}

/// Block of columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GatherShape {
    /// Extents of the inner loops on whose counters its indices depend.
    pub(crate) dims: Vec<usize>,
    /// Number of indices.
    pub(crate) n_indices: usize,
    /// Position of its indices among the pattern program's results; `None` without an index.
    pub(crate) output: Option<usize>,
    /// Column leaves of its doubles, and the extents of the block there.
    pub(crate) leaves: Vec<(usize, Vec<usize>)>,
}

impl Sparsity {
    /// Returns messages about structure that the indices do not determine: arguments that are used as a whole, and why.
    /// Their blocks are dense.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Returns the sparse Jacobian of `function` by the parameters `by`, or by all that contain a `Double` if `by` is
/// empty.
///
/// # Errors
/// The errors of [`derive`](crate::derive) for a Jacobian; a limitation if the extents of the result depend on doubles.
pub fn jacobian(function: &Function, by: &[Name], mode: Mode) -> Result<Sparsity, Diagnostics> {
    let by = request::check(function, &[Part::Jacobian], by)?;
    values::sparsity(&prepared(function)?, &by, mode, Part::Jacobian)
}

/// Returns the sparse Hessian of the scalar `function` by the parameters `by`, or by all that contain a `Double` if
/// `by` is empty: both triangles.
///
/// # Errors
/// The errors of [`derive`](crate::derive) for a Hessian; a limitation if the extents of its terms depend on doubles.
pub fn hessian(function: &Function, by: &[Name], mode: Mode) -> Result<Sparsity, Diagnostics> {
    let by = request::check(function, &[Part::Hessian], by)?;
    values::sparsity(&prepared(function)?, &by, mode, Part::Hessian)
}

/// Returns, for each array of doubles in the parameters `by`, in their order, the number of leading indices that
/// separate inputs: if two inputs differ in one of these, the second derivative of the scalar `function` by both is
/// structurally zero. The list is empty if the index structure does not determine it.
pub(crate) fn leading(function: &Function, by: &[VarId]) -> Vec<usize> {
    let sparsity = prepared(function).and_then(|f| values::sparsity(&f, by, Mode::Auto, Part::Hessian));
    let Ok(sparsity) = sparsity else { return Vec::new() };
    let mut leading: Vec<usize> = sparsity.columns.iter().map(|leaf| leaf.extents.len()).collect();
    for term in &sparsity.terms {
        let mut seen = BTreeSet::new();
        for gather in &term.gathers {
            for (leaf, block) in &gather.leaves {
                // Two reads in a term may be at any two positions, and so may one in a loop in it.
                let alone = seen.insert(*leaf) && gather.dims.is_empty();
                let above = sparsity.columns[*leaf].extents.len().saturating_sub(block.len());
                leading[*leaf] = leading[*leaf].min(if alone { above } else { 0 });
            }
        }
    }
    leading
}

/// Expands the derivatives in `function`.
fn prepared(function: &Function) -> Result<Function, Diagnostics> {
    let mut prepared = forward::derivatives(function, None)?;
    tidy::function(&mut prepared);
    Ok(prepared)
}

/// Returns whether `ty` has a known and small number of doubles.
pub(crate) fn is_small(ty: &Type) -> bool {
    crate::asked::doubles(ty).as_constant().is_some_and(|n| n <= BLOCK)
}

/// Returns the leaves of doubles of `ty`: the path of fields, and the extents.
pub(crate) fn double_leaves(ty: &Type) -> Vec<(Vec<usize>, Vec<Size>)> {
    // Recursive on the nesting of types only.
    fn go(ty: &Type, fields: &mut Vec<usize>, extents: &mut Vec<Size>, found: &mut Vec<(Vec<usize>, Vec<Size>)>) {
        match ty {
            Type::Double => found.push((fields.clone(), extents.clone())),
            Type::Int | Type::Bool => {}
            Type::Array(size, element) => {
                extents.push(size.clone());
                go(element, fields, extents, found);
                extents.pop();
            }
            Type::Tuple(parts, _) => {
                for (k, part) in parts.iter().enumerate() {
                    fields.push(k);
                    go(part, fields, extents, found);
                    fields.pop();
                }
            }
        }
    }
    let mut found = Vec::new();
    go(ty, &mut Vec::new(), &mut Vec::new(), &mut found);
    found
}

/// Sizes with which positions are computed, without duplicates.
#[derive(Default)]
pub(crate) struct SizeTable {
    pub(crate) sizes: Vec<Size>,
}

impl SizeTable {
    pub(crate) fn number(&mut self, size: &Size) -> usize {
        if let Some(known) = self.sizes.iter().position(|known| known == size) {
            return known;
        }
        self.sizes.push(size.clone());
        self.sizes.len() - 1
    }

    pub(crate) fn numbers(&mut self, sizes: &[Size]) -> Vec<usize> {
        sizes.iter().map(|size| self.number(size)).collect()
    }
}

/// Step from an argument to a block of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Index(VarId),
    Field(usize),
}

pub(crate) fn limited(function: &Function, reason: impl Into<String>) -> Diagnostics {
    Diagnostic::limitation(format!("`{}` has no sparse derivative", function.name))
        .with_reason(reason)
        .with_help("ask for the dense one")
        .into()
}
