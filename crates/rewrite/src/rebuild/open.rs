//! Blocks that are being written.

use super::Rebuild;
use chainrule_base::{Id, Span};
use chainrule_ir::{Block, Expr, Size, Stmt, VarId};
use hashbrown::HashTable;
use std::rc::Rc;

/// What a block is to what stands around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The body of the function.
    Top,
    /// The body of a loop, which certainly runs or may not.
    Loop { runs: bool },
    /// A branch, the body of a `while`: it may not run, and what is in it is not wanted outside.
    Lazy,
    /// The body of a derivative.
    Opaque,
}

/// One that was begun and has not ended.
pub(super) struct Open {
    pub(super) kind: Kind,
    /// Of a loop: its index and its count.
    pub(super) counted: Option<(VarId, Size)>,
    /// What is bound in it, in order; `defs` has the expressions.
    pub(super) stmts: Vec<(VarId, Option<Span>)>,
    /// The variables by the hash of the key of what they are bound to.
    pub(super) table: HashTable<(u64, VarId)>,
}

impl Open {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, counted: None, stmts: Vec::new(), table: HashTable::new() }
    }

    pub(super) fn is_loop(&self) -> bool {
        matches!(self.kind, Kind::Loop { .. })
    }
}

/// The memory of blocks with more statements is not used again: emptying a large table takes longer than making a small one.
const MAX_SPARE: usize = 256;

impl Rebuild<'_> {
    /// A block begins.
    pub(super) fn enter(&mut self, kind: Kind) {
        let open = match self.closed.pop() {
            Some(memory) => Open { kind, counted: None, ..memory },
            None => Open::new(kind),
        };
        self.open.push(open);
    }

    /// The block that was begun last ends with this value.
    pub(super) fn leave(&mut self, result: VarId) -> Block {
        let Some(mut open) = self.open.pop() else { return Block { stmts: Vec::new(), result } };
        let mut stmts = Vec::with_capacity(open.stmts.len());
        for &(var, span) in &open.stmts {
            let def = &mut self.defs[var.index()];
            def.at = stmts.len() as u32;
            let Some(mut expr) = def.expr.take() else { continue };
            if let Some(room) = Rc::get_mut(&mut expr) {
                stmts.push(Stmt { var, expr: std::mem::replace(room, Expr::Zero), span });
                self.spare.push(expr);
            } else {
                stmts.push(Stmt { var, expr: Expr::clone(&expr), span });
            }
        }
        if open.table.capacity() <= MAX_SPARE {
            open.stmts.clear();
            open.table.clear();
            self.closed.push(open);
        }
        Block { stmts, result }
    }
}
