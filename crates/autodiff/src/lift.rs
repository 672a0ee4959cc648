//! Inactive arrays that forward mode builds as dual numbers.
//!
//! At a join of an inactive array with an active one, in a sum or in a branch, the inactive array is paired with zeros,
//! by a loop over all elements. Reverse mode adds up arrays that are zero except for one element; a loop over them in
//! every iteration makes linear programs quadratic. Such an array is therefore raised to the activity of the join: a
//! one-hot array of pairs is still one-hot, and a branch between two such arrays is still a branch.
//!
//! In: activities, and the analysed body. Out: raised activities.
//!
//! Holds: only temporaries inside of loops are raised whose single use is such a join. They have no other use, so
//! activities stay closed under the flow of values.

use crate::activity::{Activities, Activity};
use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, StateLoop, Var, VarId, WhileLoop};

/// Variables of a function; everything is 0 and false between two bodies.
#[derive(Default)]
pub(crate) struct Temporaries {
    /// Number of uses of each variable, up to two.
    uses: Vec<u8>,
    /// Whether each variable is built from one-hot arrays and stays one-hot as dual numbers.
    is_made: Vec<bool>,
}

impl Temporaries {
    /// Raises the activities of temporaries in the loops of `body`. Linear in the body.
    pub(crate) fn lift(&mut self, activities: &mut Activities, vars: &Arena<VarId, Var>, body: &Block) {
        self.uses.resize(vars.len(), 0);
        self.is_made.resize(vars.len(), false);
        let mut lift = Lift { activities, uses: &mut self.uses, is_made: &mut self.is_made };
        lift.count(vars, body);
        lift.block(body, 0);
        body.for_each_use(&mut |var| {
            self.uses[var.index()] = 0;
            self.is_made[var.index()] = false;
        });
    }
}

struct Lift<'a> {
    activities: &'a mut Activities,
    uses: &'a mut [u8],
    is_made: &'a mut [bool],
}

impl Lift<'_> {
    // Recursive on the nesting of blocks, as is every function here.
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

    /// Raises the activities in `block`, which is inside of `n_loops` loops.
    fn block(&mut self, block: &Block, n_loops: usize) {
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
            if n_loops > 0 {
                self.raise_all(&meets);
            }
            match &stmt.expr {
                Expr::Sum { body, .. } => self.raise_all(&[(body.result, self.activities.get(stmt.var).clone())]),
                Expr::Build { body, .. } => {
                    self.raise_all(&[(body.result, self.activities.get(stmt.var).element())]);
                }
                Expr::Fold(StateLoop { state, body, .. }) | Expr::While(WhileLoop { state, body, .. }) => {
                    self.raise_all(&[(body.result, self.activities.get(*state).clone())]);
                }
                Expr::Loop(StateLoop { state, body, .. }) => {
                    let (state, whole) = (self.activities.get(*state).clone(), self.activities.get(stmt.var));
                    let triple = vec![state, whole.component(1).element(), whole.component(2)];
                    self.raise_all(&[(body.result, Activity::tuple(triple))]);
                }
                _ => {}
            }
            for inner in stmt.expr.blocks() {
                self.block(inner, n_loops + usize::from(is_loop));
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
