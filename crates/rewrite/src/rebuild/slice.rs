//! Slices: the statements of a closed block that some variables need.
//!
//! Variables know their position in their block, so a slice costs time in its own size, not in that of the block: a
//! loop over a thousand fields is split in a thousand slices.

use super::Rebuild;
use crate::walk;
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Stmt, VarId};
use smallvec::{SmallVec, smallvec};

/// Statements of a block.
pub(crate) struct Slice {
    /// A bit for each statement.
    words: SmallVec<[u64; 4]>,
}

impl Slice {
    fn none(block: &Block) -> Self {
        Self { words: smallvec![0; block.stmts.len().div_ceil(64)] }
    }

    fn insert(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    /// Returns the last statement of the slice before statement `end`.
    fn last_before(&self, end: usize) -> Option<usize> {
        let whole = end / 64;
        let part = self.words.get(whole).map_or(0, |word| word & ((1 << (end % 64)) - 1));
        let (at, word) = if part != 0 {
            (whole, part)
        } else {
            (0..whole).rev().map(|at| (at, self.words[at])).find(|w| w.1 != 0)?
        };
        Some(at * 64 + word.ilog2() as usize)
    }

    /// Returns the statements of the slice in `block`, the block that it was made from, in order.
    pub(crate) fn stmts<'b>(&self, block: &'b Block) -> impl Iterator<Item = &'b Stmt> + use<'_, 'b> {
        self.words.iter().enumerate().flat_map(move |(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(&block.stmts[at * 64 + bit])
            })
        })
    }
}

impl Rebuild<'_> {
    /// Returns the position of `var` in the closed block `block`, if it is bound there.
    fn position(&self, block: &Block, var: VarId) -> Option<usize> {
        let at = self.defs.get(var.index())?.at as usize;
        block.stmts.get(at).is_some_and(|stmt| stmt.var == var).then_some(at)
    }

    /// Returns the expression to which the closed block `block` binds `var`, if any.
    pub(crate) fn bound_in<'b>(&self, block: &'b Block, var: VarId) -> Option<&'b Expr> {
        self.position(block, var).map(|at| &block.stmts[at].expr)
    }

    /// Returns the slice of the closed block `block` for the variables `wanted`.
    pub(crate) fn slice(&self, block: &Block, wanted: &[VarId]) -> Slice {
        let mut slice = Slice::none(block);
        for at in wanted.iter().filter_map(|var| self.position(block, *var)) {
            slice.insert(at);
        }
        // Operands precede their users.
        let mut end = block.stmts.len();
        while let Some(at) = slice.last_before(end) {
            walk::mentioned(&block.stmts[at].expr, &mut |var| {
                self.worked(1);
                if let Some(at) = self.position(block, var) {
                    slice.insert(at);
                }
            });
            end = at;
        }
        slice
    }

    /// Returns whether the slice of `block` for `wanted` mentions `var`.
    pub(crate) fn slice_mentions(&self, block: &Block, wanted: &[VarId], var: VarId) -> bool {
        if wanted.contains(&var) {
            return true;
        }
        let mut found = false;
        for stmt in self.slice(block, wanted).stmts(block) {
            walk::mentioned(&stmt.expr, &mut |v| found |= v == var);
        }
        found
    }
}
