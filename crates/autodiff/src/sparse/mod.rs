//! Sparse Jacobians and Hessians of array programs, their pattern from the index structure.
//!
//! In: a function. Out: a [`Sparsity`]: a *pattern program*, which computes from sizes and integers which blocks of the
//! arguments each part of the result reads, and a *values program*, which computes the derivatives by those blocks, and
//! nothing else. Both take the arguments of the function. `docs/decisions/0016` tells the idea.
//!
//! | here | is |
//! | --- | --- |
//! | term (`terms`) | a part of the result under loops: rows of a Jacobian, a summand of a separable sum |
//! | gather (`gather`) | a read of a block of an argument in a term, at indices of integers and counters |
//! | budget (`budget`) | what following chains of arrays may cost before a result is differentiated densely |
//! | degree (`degree`) | whether one number of doubles grows faster than another |
//! | indices (`indices`) | what of a term can be computed from integers alone, and the pattern program |
//! | places (`places`) | the row and the column of each double of the values program |
//! | [`dependence`] | the pattern where the indices do not tell it, by following numbers |
//! | [`interaction`] | the same for Hessians, by following the function itself |
//! | [`check`] | whether a sparse derivative is the dense one |
//! | `values` | both programs |
//!
//! Rows and columns are numbered as the doubles of results and arguments lie in memory: leaf after leaf (a leaf is an
//! array of doubles, arrays of tuples being tuples of arrays), each row-major. Columns are those of the parameters that
//! are differentiated by, in the order asked for.
//!
//! Holds: the pattern contains each place where the derivative is other than zero by structure; doubles whose places
//! are the same are to be added. The pattern depends on no double.

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

/// Values of at most so many doubles are dense: blocks of rows and of columns.
pub(crate) const BLOCK: i64 = 64;

/// A sparse derivative: two programs, and what their results stand for.
#[derive(Clone, PartialEq, Debug)]
pub struct Sparsity {
    /// From the function's arguments to integers: first the extents that places are computed with, then an array for each
    /// gather that has an index: `[counters of the term] [counters of inner loops] [indices]`. A gather in a branch that is not taken has
    /// indices far below zero.
    pub pattern: Function,
    /// From the function's arguments to doubles, those of each term in turn. The derivatives in it are asked for, each of one
    /// term's block at one place, and not worked out.
    pub values: Function,
    pub(crate) terms: Vec<TermShape>,
    /// Leaves of what rows and columns stand for; their extents are numbers of sizes.
    pub(crate) rows: Vec<LeafShape>,
    pub(crate) columns: Vec<LeafShape>,
    pub(crate) n_sizes: usize,
    /// What the index structure does not tell, in words.
    notes: Vec<String>,
}

/// An array of doubles: the numbers of the sizes that are its extents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeafShape {
    pub(crate) name: String,
    pub(crate) extents: Vec<usize>,
}

/// What the doubles of a term stand for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TermShape {
    /// The extents of its loops.
    pub(crate) loops: Vec<usize>,
    /// Its leaves: which row leaf, and the extents below the loops. None in a Hessian.
    pub(crate) rows: Vec<(usize, Vec<usize>)>,
    pub(crate) gathers: Vec<GatherShape>,
    pub(crate) form: Form,
}

/// How the doubles of a term lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// For each double of a row one array of the doubles of all gathers.
    Together,
    /// For each gather a Jacobian.
    Apart,
    /// For each gather, which has the columns, and each gather again, which has the rows, a block of the Hessian.
    Hessian,
}

/// A block of columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GatherShape {
    /// Extents of the inner loops whose counters its indices depend on.
    pub(crate) dims: Vec<usize>,
    /// How many indices it has.
    pub(crate) n_indices: usize,
    /// Where its indices are among the pattern program's results; none where there is no index.
    pub(crate) output: Option<usize>,
    /// Whether it is read whenever the term is computed and its indices are not negative.
    pub(crate) certain: bool,
    /// Which column leaves it has doubles of, and the extents of the block there.
    pub(crate) leaves: Vec<(usize, Vec<usize>)>,
}

impl Sparsity {
    /// What the index structure does not tell: arguments that are used as a whole, and why. Their blocks are dense.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The sparse Jacobian of `function` by the parameters `by`, by all that have a `Double` where none is named.
///
/// # Errors
/// As [`derive`](crate::derive) for a Jacobian; a limitation where the extents of the result depend on doubles.
pub fn jacobian(function: &Function, by: &[Name], mode: Mode) -> Result<Sparsity, Diagnostics> {
    let by = request::check(function, &[Part::Jacobian], by)?;
    values::sparsity(&prepared(function)?, &by, mode, Part::Jacobian)
}

/// The sparse Hessian of the scalar `function` by the parameters `by`, by all that have a `Double` where none is named:
/// all of it, not a triangle.
///
/// # Errors
/// As [`derive`](crate::derive) for a Hessian; a limitation where the extents of its terms depend on doubles.
pub fn hessian(function: &Function, by: &[Name], mode: Mode) -> Result<Sparsity, Diagnostics> {
    let by = request::check(function, &[Part::Hessian], by)?;
    values::sparsity(&prepared(function)?, &by, mode, Part::Hessian)
}

/// For each array of doubles in the parameters `by`, in their order, by how many leading indices inputs do not meet: where
/// two differ in one of these, the second derivative of the scalar `function` by both is zero by structure. None of any array
/// where the index structure tells nothing.
pub(crate) fn leading(function: &Function, by: &[VarId]) -> Vec<usize> {
    let sparsity = prepared(function).and_then(|f| values::sparsity(&f, by, Mode::Auto, Part::Hessian));
    let Ok(sparsity) = sparsity else { return Vec::new() };
    let mut leading: Vec<usize> = sparsity.columns.iter().map(|leaf| leaf.extents.len()).collect();
    for term in &sparsity.terms {
        let mut seen = BTreeSet::new();
        for gather in &term.gathers {
            for (leaf, block) in &gather.leaves {
                // Two reads in a term may be at any two places, and so may one in a loop in it.
                let alone = seen.insert(*leaf) && gather.dims.is_empty();
                let above = sparsity.columns[*leaf].extents.len().saturating_sub(block.len());
                leading[*leaf] = leading[*leaf].min(if alone { above } else { 0 });
            }
        }
    }
    leading
}

/// `function` with the derivatives in it worked out.
fn prepared(function: &Function) -> Result<Function, Diagnostics> {
    let mut prepared = forward::derivatives(function, None)?;
    tidy::function(&mut prepared);
    Ok(prepared)
}

/// Whether `ty` has a known number of doubles, and few.
pub(crate) fn is_small(ty: &Type) -> bool {
    crate::asked::doubles(ty).as_constant().is_some_and(|n| n <= BLOCK)
}

/// The leaves of doubles of `ty`: the fields that lead there, and the extents.
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

/// Sizes that places are computed with, each once.
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

/// A step from an argument to a block of it.
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
