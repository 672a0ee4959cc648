//! Leaves whose tangents are used: the result of a body depends on them.
//!
//! A leaf of an array or a state that nothing reads needs no tangent. Nested derivatives have many of them: congruent
//! leaves are all read in one place (module `canonical`).
//!
//! In: a block, and its activities. Out: activities without the leaves that are not used. Holds: a used leaf depends on
//! parameters through used leaves only; parameters and the results of functions with a rule keep all leaves.

use crate::activity::{Activities, Activity};
use crate::chain;
use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, StateLoop, Type, Var, VarId, WhileLoop};

/// Used leaves of the variables of a function, for one differentiated block at a time.
#[derive(Default)]
pub(crate) struct Useful {
    of: Vec<Activity>,
}

impl Useful {
    /// Takes the activity of leaves of which the result of `body` makes no use. Linear in the body.
    pub(crate) fn restrict(&mut self, activities: &mut Activities, vars: &Arena<VarId, Var>, body: &Block) {
        self.of.resize(vars.len(), Activity::Inactive);
        let mut sweep = Sweep { vars, of: &mut self.of };
        sweep.reset(body);
        sweep.use_(body.result, &Activity::full(&vars[body.result].ty));
        sweep.block(body);
        sweep.restrict(activities, body);
    }
}

struct Sweep<'a> {
    vars: &'a Arena<VarId, Var>,
    of: &'a mut [Activity],
}

impl Sweep<'_> {
    /// Adds the leaves `by` to the used ones of `var`; returns whether there is a new one.
    fn use_(&mut self, var: VarId, by: &Activity) -> bool {
        self.of[var.index()].join(by)
    }

    // Recursive on the nesting of blocks, as is every function here.
    fn reset(&mut self, block: &Block) {
        for stmt in &block.stmts {
            for var in [stmt.var].into_iter().chain(stmt.expr.binders()) {
                self.of[var.index()] = Activity::Inactive;
            }
            stmt.expr.blocks().into_iter().for_each(|inner| self.reset(inner));
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in block.stmts.iter().rev() {
            let used = self.of[stmt.var.index()].clone();
            if used != Activity::Inactive {
                self.stmt(stmt.var, &stmt.expr, &used);
            }
        }
    }

    /// Visits the statement `var = expr`, of whose result the leaves `used` are used.
    fn stmt(&mut self, var: VarId, expr: &Expr, used: &Activity) {
        match expr {
            Expr::Op(op, args) => {
                for (k, arg) in args.iter().enumerate() {
                    if self.vars[*arg].ty == Type::Double && chain::depends(*op, k) {
                        self.use_(*arg, used);
                    }
                }
            }
            Expr::Build { body, .. } => {
                self.use_(body.result, &used.element());
                self.block(body);
            }
            Expr::Sum { body, .. } => {
                self.use_(body.result, used);
                self.block(body);
            }
            Expr::Fold(StateLoop { state, init, body, .. }) | Expr::While(WhileLoop { state, init, body, .. }) => {
                self.use_(*state, used);
                let state = self.steps((*state, *init), body, |state| state);
                self.use_(var, &state);
            }
            Expr::Loop(StateLoop { state, init, body, .. }) => {
                self.use_(*state, &used.component(0));
                let (element, term) = (used.component(1).element(), used.component(2));
                let state = self
                    .steps((*state, *init), body, |state| Activity::tuple(vec![state, element.clone(), term.clone()]));
                self.use_(var, &Activity::tuple(vec![state, Activity::Inactive, Activity::Inactive]));
            }
            Expr::OneHot { value, .. } => {
                self.use_(*value, &used.element());
            }
            Expr::Plus(a, b) => {
                self.use_(*a, used);
                self.use_(*b, used);
            }
            Expr::If { then, otherwise, .. } => {
                for block in [then, otherwise] {
                    self.use_(block.result, used);
                    self.block(block);
                }
            }
            Expr::Get { array, .. } => {
                self.use_(*array, &Activity::array(used.clone()));
            }
            Expr::Array(elements) => {
                for element in elements {
                    self.use_(*element, &used.element());
                }
            }
            Expr::Tuple(fields) => {
                for (k, field) in fields.iter().enumerate() {
                    self.use_(*field, &used.component(k));
                }
            }
            Expr::Component(tuple, k) => {
                if let Type::Tuple(fields, _) = &self.vars[*tuple].ty {
                    let mut parts = vec![Activity::Inactive; fields.len()];
                    if let Some(part) = parts.get_mut(*k) {
                        part.clone_from(used);
                    }
                    self.use_(*tuple, &Activity::tuple(parts));
                }
            }
            Expr::Custom(custom) => {
                self.use_(custom.at, &Activity::full(&self.vars[custom.at].ty));
                self.use_(var, &Activity::full(&self.vars[var].ty));
            }
            Expr::Real(_)
            | Expr::Bool(_)
            | Expr::Size(_)
            | Expr::ToReal(_)
            | Expr::ToInt(_)
            | Expr::Zero
            | Expr::Jvp { .. }
            | Expr::Vjp { .. }
            | Expr::Again { .. } => {}
        }
    }

    /// Visits the body of a loop until no new leaf of its state is used; returns the used ones, which its result has as
    /// well. `result` is what is used of the body's result, for these leaves of the state. Each pass but the last finds
    /// a leaf.
    fn steps(
        &mut self,
        (state, init): (VarId, VarId),
        body: &Block,
        result: impl Fn(Activity) -> Activity,
    ) -> Activity {
        loop {
            let used = self.of[state.index()].clone();
            self.use_(body.result, &result(used.clone()));
            self.block(body);
            if self.of[state.index()] == used {
                self.use_(init, &used);
                return used;
            }
        }
    }

    fn restrict(&self, activities: &mut Activities, block: &Block) {
        for stmt in &block.stmts {
            activities.restrict(stmt.var, &self.of[stmt.var.index()]);
            // The blocks of a function with a rule have no active variables.
            if !matches!(stmt.expr, Expr::Custom(_)) {
                stmt.expr.binders().iter().for_each(|var| activities.restrict(*var, &self.of[var.index()]));
                stmt.expr.blocks().into_iter().for_each(|inner| self.restrict(activities, inner));
            }
        }
    }
}
