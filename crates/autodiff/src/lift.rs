//! Inactive arrays that forward mode makes as dual numbers from the start.
//!
//! Where an inactive array meets an active one, in a sum or in a branch, it is paired with zeros, by a loop over all elements.
//! Reverse mode adds up arrays that are zero but for one element; a loop over them that hides this in every iteration makes
//! linear programs quadratic. Such an array is therefore raised to the activity that it is paired to: a one-hot array of
//! pairs is one-hot still, a branch between two such arrays a branch.
//!
//! In: analysed activities, and the body they are of. Out: raised activities.
//!
//! Holds: only temporaries inside of loops are raised whose one use is to meet what is active. Nothing else sees them, so
//! activities stay closed under the flow of values.

use crate::activity::{Activities, Activity};
use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, Var, VarId};

/// The temporaries of a body.
struct Lift<'a> {
    activities: &'a mut Activities,
    /// By variable, its uses, up to two.
    uses: Vec<u8>,
    /// By variable, whether it is bound to what is made of one-hot arrays and stays so as dual numbers.
    is_made: Vec<bool>,
}

/// Raises the activities of temporaries in the loops of `body`.
pub(crate) fn lift(activities: &mut Activities, vars: &Arena<VarId, Var>, body: &Block) {
    let mut lift = Lift { activities, uses: vec![0; vars.len()], is_made: vec![false; vars.len()] };
    lift.count(vars, body);
    lift.block(body, false);
}

impl Lift<'_> {
    // Recursive on the nesting of blocks, as is all here.
    fn count(&mut self, vars: &Arena<VarId, Var>, block: &Block) {
        for stmt in &block.stmts {
            let is_made = match &stmt.expr {
                Expr::OneHot { .. } | Expr::Plus(..) | Expr::If { .. } | Expr::Sum { .. } => {
                    vars[stmt.var].ty.is_linear()
                }
                Expr::Tuple(_) => true,
                _ => false,
            };
            self.is_made[stmt.var.index()] = is_made;
            stmt.expr.operands().into_iter().for_each(|operand| self.used(operand));
            stmt.expr.blocks().into_iter().for_each(|inner| self.count(vars, inner));
        }
        self.used(block.result);
    }

    fn used(&mut self, var: VarId) {
        let uses = &mut self.uses[var.index()];
        *uses = uses.saturating_add(1);
    }

    fn block(&mut self, block: &Block, in_loop: bool) {
        for stmt in block.stmts.iter().rev() {
            let activity = self.activities.get(stmt.var).clone();
            let mut meets: Vec<(VarId, Activity)> = Vec::new();
            let mut is_loop = true;
            match &stmt.expr {
                Expr::Plus(a, b) => meets.extend([(*a, activity.clone()), (*b, activity)]),
                Expr::OneHot { value, .. } => meets.push((*value, activity.element())),
                Expr::Tuple(fields) => {
                    meets.extend(fields.iter().enumerate().map(|(k, field)| (*field, activity.component(k))));
                }
                Expr::If { then, otherwise, .. } => {
                    is_loop = false;
                    meets.extend([(then.result, activity.clone()), (otherwise.result, activity)]);
                }
                _ => {}
            }
            if in_loop {
                self.raise_all(&meets);
            }
            match &stmt.expr {
                Expr::Sum { body, .. } => self.raise_all(&[(body.result, self.activities.get(stmt.var).clone())]),
                Expr::Build { body, .. } => {
                    self.raise_all(&[(body.result, self.activities.get(stmt.var).element())]);
                }
                Expr::Fold { state, body, .. } | Expr::While { state, body, .. } => {
                    self.raise_all(&[(body.result, self.activities.get(*state).clone())]);
                }
                Expr::Loop { state, body, .. } => {
                    let (state, whole) = (self.activities.get(*state).clone(), self.activities.get(stmt.var));
                    let triple = vec![state, whole.component(1).element(), whole.component(2)];
                    self.raise_all(&[(body.result, Activity::tuple(triple))]);
                }
                _ => {}
            }
            for inner in stmt.expr.blocks() {
                self.block(inner, in_loop || is_loop);
            }
        }
    }

    fn raise_all(&mut self, meets: &[(VarId, Activity)]) {
        for (var, activity) in meets {
            if self.uses[var.index()] == 1 && self.is_made[var.index()] {
                self.activities.raise(*var, activity);
            }
        }
    }
}
