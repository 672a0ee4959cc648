//! Array expansion: storing values that an outer loop recomputes.
//!
//! In `build n (fun i -> sum m (fun j -> e j * f i j))` each `e j` is computed n times. Hoisting cannot move it out of
//! the loop over `j`. So `build m (fun j -> e j)` is made, which hoisting moves out of the loop over `i`, and its
//! elements are used instead: several tangents share one primal this way.
//!
//! Applied to numbers that cost more than storing and loading them ([`MIN_COST`]), that depend on the indices of inner
//! loops but not on that of some outer loop, whose computation cannot fail outside it, and that are needed in every
//! branch.

use super::{Env, Expr, Kind, Rebuild, Shared, Size, Stmt, Type, VarId, bit, walk};
use chainrule_base::Id;
use rustc_hash::FxHashSet;

/// Minimum cost; cheaper values are recomputed.
const MIN_COST: f64 = 8.0;
/// Maximum number of dimensions of the array.
const MAX_DIMENSIONS: usize = 3;

impl Rebuild<'_> {
    /// Returns the element of an array that replaces `expr`, if that pays.
    pub(super) fn expand(&mut self, expr: &Expr, ty: &Type) -> Option<VarId> {
        if *ty != Type::Double || self.expr_cost(expr) < MIN_COST {
            return None;
        }
        let top = self.open.len() - 1;
        let super::Uses { indices, states, .. } = self.uses(expr);
        // The innermost sequence of blocks that are loops; a branch among them would decide whether the value is
        // computed.
        let lowest = (1..=top).rev().take_while(|level| self.open[*level].is_loop()).last()?;
        let missing = (lowest..=top).find(|level| (indices | states) & bit(*level) == 0)?;
        let levels: Vec<usize> = (missing + 1..=top).filter(|level| indices & bit(*level) != 0).collect();
        let lives_in_states = (missing..=top).any(|level| states & bit(level) != 0);
        if levels.is_empty() || levels.len() > MAX_DIMENSIONS || top >= super::MAX_LEVEL || lives_in_states {
            return None;
        }
        self.keep(missing, &levels, expr, ty)
    }

    /// Returns the element of an array that replaces `expr` in the innermost loops, so that other loops can use it too.
    pub(super) fn share(&mut self, expr: &Expr, ty: &Type, shared: Shared) -> Option<VarId> {
        let top = self.open.len() - 1;
        let outermost = (top + 1).checked_sub(shared.depth)?;
        let super::Uses { indices, states, .. } = self.uses(expr);
        let mut levels: Vec<usize> = (outermost..=top).filter(|level| indices & bit(*level) != 0).collect();
        if shared.is_turned {
            levels.reverse();
        }
        let lives_in_states = (outermost..=top).any(|level| states & bit(level) != 0);
        if *ty != Type::Double || top >= super::MAX_LEVEL || lives_in_states || indices & bit(top) == 0 {
            return None;
        }
        self.keep(outermost, &levels, expr, ty)
    }

    /// Returns the element, at the indices of the loops `levels`, of an array made outside the loop `outside`.
    fn keep(&mut self, outside: usize, levels: &[usize], expr: &Expr, ty: &Type) -> Option<VarId> {
        let missing = outside;
        let loops = self.open[..missing].iter().filter(|open| open.is_loop()).count();
        let counted: Vec<(VarId, Size)> =
            levels.iter().map(|level| self.open[*level].counted.clone()).collect::<Option<_>>()?;
        // Arrays are not ragged, and their sizes are not negative.
        let fits = |count: &Size| {
            let outside = |v: &VarId| self.defs[v.index()].level < missing;
            count.vars().iter().all(outside) && self.ranges.not_negative_outside(count, loops, &[])
        };
        if !counted.iter().all(|(_, count)| fits(count)) {
            return None;
        }
        let slice = self.open_slice(expr, missing)?;
        let mut more: Vec<VarId> = counted.iter().filter_map(|(_, count)| count.as_var()).collect();
        let mut may_fail = |expr: &Expr, ty: &Type| self.may_fail(expr, ty, loops, &mut more);
        if slice.iter().any(|stmt| may_fail(&stmt.expr, self.ty(stmt.var))) || may_fail(expr, ty) {
            return None;
        }
        self.mode.expanding = true;
        let array = self.array(&counted, &slice, expr, ty, &mut Env::copying(&[]));
        self.mode.expanding = false;
        // It has left the loop; otherwise it would be recomputed itself.
        if self.defs[array.index()].level >= missing {
            return None;
        }
        let mut element = array;
        for (index, _) in &counted {
            element = self.compute(Expr::Get { array: element, index: *index, proved: true });
        }
        Some(element)
    }

    /// Returns the statements of the open blocks from `lowest` on that `expr` needs, in order; `None` if one of the
    /// blocks is no loop.
    fn open_slice(&self, expr: &Expr, lowest: usize) -> Option<Vec<Stmt>> {
        let mut wanted: FxHashSet<VarId> = FxHashSet::default();
        walk::mentioned(expr, &mut |v| {
            wanted.insert(v);
        });
        let (mut slice, mut more) = (Vec::new(), Vec::new());
        for open in self.open[lowest..].iter().rev() {
            if !matches!(open.kind, Kind::Loop { .. }) {
                return None;
            }
            for (var, span) in open.stmts.iter().rev() {
                if !wanted.contains(var) {
                    continue;
                }
                let expr = self.def(*var)?;
                more.clear();
                walk::mentioned(&expr, &mut |v| more.push(v));
                wanted.extend(&more);
                slice.push(Stmt { var: *var, expr: (*expr).clone(), span: *span });
            }
        }
        slice.reverse();
        Some(slice)
    }

    // Recursive on the number of loops.
    fn array(
        &mut self,
        counted: &[(VarId, Size)],
        slice: &[Stmt],
        expr: &Expr,
        ty: &Type,
        env: &mut Env<'static>,
    ) -> VarId {
        let Some(((index, count), rest)) = counted.split_first() else {
            for stmt in slice {
                let new = self.stmt(stmt, env);
                env.insert(stmt.var, new);
            }
            return self.write(expr, ty.clone(), (None, None), env);
        };
        self.build(count.clone(), |rb, i| {
            env.insert(*index, i);
            rb.array(rest, slice, expr, ty, env)
        })
    }
}
