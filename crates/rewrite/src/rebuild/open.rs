//! Blocks under construction.

use super::Rebuild;
use chainrule_base::{Id, Span};
use chainrule_ir::{Block, Expr, Size, Stmt, VarId};
use hashbrown::HashTable;
use std::rc::Rc;

/// Relation of a block to its surroundings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The body of the function.
    Top,
    /// The body of a loop; `runs` if it certainly runs.
    Loop { runs: bool },
    /// A branch, or the body of a `while`: it may not run, and its statements are not needed outside.
    Lazy,
    /// The body of a derivative.
    Opaque,
}

/// An open block.
pub(super) struct Open {
    pub(super) kind: Kind,
    /// Index and count of a loop.
    pub(super) counted: Option<(VarId, Size)>,
    /// Its bindings in order; `defs` has the expressions.
    pub(super) stmts: Vec<(VarId, Option<Span>)>,
    /// Variables by the hash of the key of their expression.
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

/// Maximum number of statements of a block whose memory is reused: clearing a large table takes longer than making a
/// small one.
const MAX_SPARE: usize = 256;

impl Rebuild<'_> {
    /// Opens a block.
    pub(super) fn enter(&mut self, kind: Kind) {
        let open = match self.memory.closed.pop() {
            Some(memory) => Open { kind, counted: None, ..memory },
            None => Open::new(kind),
        };
        self.open.push(open);
    }

    /// Closes the block opened last with this result.
    pub(super) fn leave(&mut self, result: VarId) -> Block {
        let Some(mut open) = self.open.pop() else { return Block { stmts: Vec::new(), result } };
        let mut stmts = Vec::with_capacity(open.stmts.len());
        for &(var, span) in &open.stmts {
            let def = &mut self.defs[var.index()];
            def.at = stmts.len() as u32;
            let Some(mut expr) = def.expr.take() else { continue };
            if let Some(room) = Rc::get_mut(&mut expr) {
                stmts.push(Stmt { var, expr: std::mem::replace(room, Expr::Zero), span });
                self.memory.spare.push(expr);
            } else {
                stmts.push(Stmt { var, expr: Expr::clone(&expr), span });
            }
        }
        if open.table.capacity() <= MAX_SPARE {
            open.stmts.clear();
            open.table.clear();
            self.memory.closed.push(open);
        }
        Block { stmts, result }
    }
}
