//! Infinite tangents and cotangents: selects the products of the chain rule in which a zero must mask an infinity.
//!
//! In: a body and its activities. Out: for each of its variables the worst [`Slope`] of an operator on the path from a
//! parameter to it, by which its tangent is multiplied, or from it to the result, by which its cotangent is; and for
//! cotangents whether an operator on that path saturates.
//!
//! Holds: slopes are upper bounds of the operators', closed under the flow of values. Loop-carried values have the
//! worst slope in the loop, so that one pass suffices. A tangent that has overflowed is zero after an operator that
//! saturates; one that is infinite at a border is masked by every zero behind it.
//!
//! The poles of a number that a masked product multiplies by zero are hidden, as in the derivative of `x * sqrt x` at
//! 0: its cotangent is zero, and masks their slopes.

use crate::activity::{Activities, Activity};
use crate::emit::{Emitter, Scalar};
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, StateLoop, VarId, WhileLoop};
use chainrule_ops::{Factor, Op, Slope};
use rustc_hash::FxHashMap;

/// Effect of the operators on the way.
#[derive(Clone, Copy, PartialEq, Default)]
struct Found {
    /// The worst slope.
    slope: Slope,
    /// Whether one saturates.
    saturates: bool,
    /// Whether one is a product that hides poles.
    hides_poles: bool,
}

/// Slopes of all variables of a function, for one differentiated body at a time.
#[derive(Default)]
pub(crate) struct Slopes {
    of: Vec<Found>,
}

/// Pass over a body.
struct Pass<'a> {
    out: &'a Emitter,
    activities: &'a Activities,
    of: &'a mut [Found],
    /// Known values of variables of the body.
    literals: FxHashMap<VarId, f64>,
}

impl Slopes {
    /// Returns the tangent, or the cotangent, of `var` as a factor.
    pub(crate) fn get(&self, var: VarId) -> Factor {
        let Found { slope, saturates, hides_poles } = self.of.get(var.index()).copied().unwrap_or_default();
        Factor { hides_poles, ..Factor::direction(slope, saturates) }
    }

    /// Finds the slopes of the tangents of `body`.
    pub(crate) fn of_tangents(&mut self, out: &Emitter, activities: &Activities, params: &[VarId], body: &Block) {
        let mut pass = self.pass(out, activities, params, body);
        if pass.worst(body).slope > Slope::Pole {
            pass.forward(body);
        }
    }

    /// Finds the slopes of the cotangents of `body`.
    pub(crate) fn of_cotangents(&mut self, out: &Emitter, activities: &Activities, params: &[VarId], body: &Block) {
        let mut pass = self.pass(out, activities, params, body);
        if pass.worst(body).slope > Slope::Pole {
            pass.backward(body);
        }
    }

    /// Clears the results of an earlier differentiation.
    fn pass<'a>(
        &'a mut self,
        out: &'a Emitter,
        activities: &'a Activities,
        params: &[VarId],
        body: &Block,
    ) -> Pass<'a> {
        self.of.resize(out.builder.vars.len(), Found::default());
        params.iter().for_each(|param| self.of[param.index()] = Found::default());
        let mut literals = FxHashMap::default();
        let mut blocks = vec![body];
        while let Some(block) = blocks.pop() {
            for stmt in &block.stmts {
                if let Expr::Real(c) = stmt.expr {
                    literals.insert(stmt.var, c);
                }
                for var in [stmt.var].into_iter().chain(stmt.expr.binders()) {
                    self.of[var.index()] = Found::default();
                }
                blocks.extend(stmt.expr.blocks());
            }
        }
        Pass { out, activities, of: &mut self.of, literals }
    }
}

// Recursive on the nesting of blocks.
impl Pass<'_> {
    fn is_active(&self, var: VarId) -> bool {
        *self.activities.get(var) != Activity::Inactive
    }

    fn raise(&mut self, var: VarId, by: Found) {
        let found = &mut self.of[var.index()];
        *found = join(*found, by);
    }

    fn partial(&self, op: Op, args: &[VarId], idx: usize) -> Factor {
        Factor::partial(op, idx, |k| match self.out.scalar(args[k]) {
            Scalar::Const(c) => Some(c),
            Scalar::Var(var) => self.literals.get(&var).copied(),
        })
    }

    /// Returns the effect of an operator on the tangent, or the cotangent, of argument `idx`.
    fn op(&self, op: Op, args: &[VarId], idx: usize) -> Found {
        let Factor { slope, saturates, hides_poles, .. } = self.partial(op, args, idx);
        Found { slope, saturates, hides_poles }
    }

    /// Returns the worst of the active operators of `block`.
    fn worst(&self, block: &Block) -> Found {
        let mut worst = Found::default();
        for stmt in &block.stmts {
            if let Expr::Op(op, args) = &stmt.expr
                && self.is_active(stmt.var)
            {
                worst = (0..args.len()).map(|idx| self.op(*op, args, idx)).fold(worst, join);
            }
            worst = stmt.expr.blocks().into_iter().map(|inner| self.worst(inner)).fold(worst, join);
        }
        worst
    }

    fn forward(&mut self, block: &Block) {
        for stmt in &block.stmts {
            let operands = stmt.expr.operands();
            let mut found = self.of_all(&operands);
            match &stmt.expr {
                Expr::Op(op, args) if self.is_active(stmt.var) => {
                    let through = |(idx, arg): (usize, &VarId)| {
                        let own = self.op(*op, args, idx).slope;
                        let tangent = Factor::direction(self.of[arg.index()].slope, false);
                        tangent_of(own.max(tangent.slope_behind(self.partial(*op, args, idx))))
                    };
                    found = args.iter().enumerate().map(through).fold(Found::default(), join);
                }
                Expr::Fold(StateLoop { state, body, .. })
                | Expr::While(WhileLoop { state, body, .. })
                | Expr::Loop(StateLoop { state, body, .. }) => {
                    found = join(found, join(self.worst(body), self.captured(body)));
                    self.raise(*state, found);
                }
                _ => {}
            }
            for inner in stmt.expr.blocks() {
                self.forward(inner);
                found = join(found, self.of[inner.result.index()]);
            }
            if self.is_active(stmt.var) {
                self.raise(stmt.var, tangent_of(found.slope));
            }
        }
    }

    fn of_all(&self, vars: &[VarId]) -> Found {
        vars.iter().map(|var| self.of[var.index()]).fold(Found::default(), join)
    }

    /// Returns the worst slope of the variables that a block uses.
    fn captured(&self, block: &Block) -> Found {
        let mut worst = self.of[block.result.index()];
        for stmt in &block.stmts {
            worst = join(worst, self.of_all(&stmt.expr.operands()));
            worst = stmt.expr.blocks().into_iter().map(|inner| self.captured(inner)).fold(worst, join);
        }
        worst
    }

    fn backward(&mut self, block: &Block) {
        for stmt in block.stmts.iter().rev() {
            if !self.is_active(stmt.var) && stmt.expr.blocks().is_empty() {
                continue;
            }
            let mut found = self.of[stmt.var.index()];
            match &stmt.expr {
                Expr::Op(op, args) => {
                    for (idx, arg) in args.iter().enumerate() {
                        let through = join(found, self.op(*op, args, idx));
                        self.raise(*arg, through);
                    }
                    continue;
                }
                Expr::Fold(StateLoop { state, body, .. })
                | Expr::While(WhileLoop { state, body, .. })
                | Expr::Loop(StateLoop { state, body, .. }) => {
                    found = join(found, self.worst(body));
                    self.raise(*state, found);
                }
                _ => {}
            }
            for inner in stmt.expr.blocks() {
                self.raise(inner.result, found);
                self.backward(inner);
            }
            for operand in stmt.expr.operands() {
                self.raise(operand, found);
            }
        }
    }
}

/// Returns the effect on a tangent, which no operator before it makes zero.
fn tangent_of(slope: Slope) -> Found {
    Found { slope, ..Found::default() }
}

fn join(a: Found, b: Found) -> Found {
    Found {
        slope: a.slope.max(b.slope),
        saturates: a.saturates || b.saturates,
        hides_poles: a.hides_poles || b.hides_poles,
    }
}
