//! Hoisting of loop-invariant reads out of derivatives in a loop body.
//!
//! In: the statements of a block. Out: the same, with statements inside of derivatives (and of loops of known length
//! around these) that depend on nothing bound there hoisted before them, without duplicates. So a derivative of a
//! function that reads `camera[cameras[i]]` itself becomes one of a function of numbers, which can be unrolled.
//!
//! Holds: a hoisted statement was executed unconditionally before: statements in loops that may be empty, and in
//! branches, stay.

use super::{asks, for_each_mention, rename};
use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Size, StateLoop, Stmt, Type, Var, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of earlier statements with which a hoisted one is compared.
const MAX_COMPARED: usize = 256;

/// Returns `block` with these statements hoisted, and with repeated reads and computations bound once; unchanged if it
/// contains no unexpanded derivative.
pub(super) fn lift(vars: &Arena<VarId, Var>, block: Block) -> Block {
    if !block.stmts.iter().any(|stmt| asks(&stmt.expr)) {
        return block;
    }
    let mut lift = Lift { vars, out: Vec::new(), same: FxHashMap::default(), canonical: FxHashMap::default() };
    for mut stmt in block.stmts {
        if asks(&stmt.expr) {
            let mut inner = FxHashSet::default();
            lift.expr(&mut stmt.expr, &mut inner);
        }
        rename(&mut stmt.expr, &lift.same);
        lift.push(stmt);
    }
    let result = lift.same.get(&block.result).copied().unwrap_or(block.result);
    Block { stmts: lift.out, result }
}

struct Lift<'a> {
    vars: &'a Arena<VarId, Var>,
    out: Vec<Stmt>,
    /// Variables that are equal to an earlier one.
    same: FxHashMap<VarId, VarId>,
    /// The same for integers. They may occur in sizes and stay, but are identified in comparisons.
    canonical: FxHashMap<VarId, VarId>,
}

impl Lift<'_> {
    /// Hoists statements that depend on nothing of `inner` out of the blocks of `expr`.
    // Recursive on the nesting of blocks.
    fn expr(&mut self, expr: &mut Expr, inner: &mut FxHashSet<VarId>) {
        let runs = match &*expr {
            Expr::Jvp { .. } | Expr::Vjp { .. } => true,
            Expr::Build { size: n, .. }
            | Expr::Sum { count: n, .. }
            | Expr::Fold(StateLoop { count: n, .. })
            | Expr::Loop(StateLoop { count: n, .. }) => n.as_constant().is_some_and(|n| n > 0),
            _ => false,
        };
        if !runs {
            return;
        }
        inner.extend(expr.binders());
        for block in expr.blocks_mut() {
            let mut kept = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts) {
                self.expr(&mut stmt.expr, inner);
                rename(&mut stmt.expr, &self.same);
                let mut depends = false;
                for_each_mention(self.vars, &stmt, &mut |var| depends |= inner.contains(&var));
                if depends {
                    inner.insert(stmt.var);
                    kept.push(stmt);
                } else {
                    self.push(stmt);
                }
            }
            block.stmts = kept;
            block.result = self.same.get(&block.result).copied().unwrap_or(block.result);
        }
    }

    fn push(&mut self, stmt: Stmt) {
        let is_plain = |stmt: &Stmt| stmt.expr.blocks().is_empty();
        let compared = |stmt: &Stmt| {
            let mut expr = stmt.expr.clone();
            expr.map_operands(&|var| self.canonical.get(&var).copied().unwrap_or(var), &Size::clone);
            expr
        };
        if is_plain(&stmt) {
            let (expr, ty) = (compared(&stmt), &self.vars[stmt.var].ty);
            let known = self.out.iter().rev().take(MAX_COMPARED);
            let known = known
                .filter(|other| is_plain(other) && self.vars[other.var].ty == *ty)
                .find(|other| compared(other) == expr);
            match known.map(|other| other.var) {
                Some(known) if *ty == Type::Int => {
                    let known = self.canonical.get(&known).copied().unwrap_or(known);
                    self.canonical.insert(stmt.var, known);
                }
                Some(known) => {
                    self.same.insert(stmt.var, known);
                    return;
                }
                None => {}
            }
        }
        self.out.push(stmt);
    }
}
