//! Folds that select one number: `max`, `min`, or a choice between the state and a term that does not depend on it.
//!
//! ```text
//! s = ifold (fun s i -> max s t(i)) s0 n
//! ```
//!
//! In: a fold on a number, each step of which keeps the state or replaces it by its term. Out: one fold on the pair of
//! the state and the *winner*, the last step that replaced the state, -1 if none did. The result is the term of the
//! winner, so the reverse sweep of the loop is that of
//!
//! ```text
//! s = if 0 <= winner then t(winner) else s0
//! ```
//!
//! No state is kept, and one step is swept instead of all. The winner is found where the state is computed, not by
//! comparing the result with terms that are computed again, which may be rounded differently.
//!
//! Holds: states and result have the bits of the original. Ties and comparisons with NaN are decided as there, because
//! the condition is that of the step.

use super::Reverse;
use crate::chain::{self, Application};
use crate::cotangent::Cotangent;
use crate::emit::Scalar;
use chainrule_ir::{Block, Expr, Size, StateLoop, Stmt, Type, VarId};
use chainrule_ops::Op;
use std::collections::BTreeSet;

/// Minimum number of steps, if it is known. Fewer steps are unrolled, which a winner known at run time prevents.
const MIN_STEPS: i64 = 32;

/// Condition of a step that decides between state and term.
#[derive(Clone, Copy)]
enum Test {
    /// The first is less than the second.
    Less(VarId, VarId),
    /// The truth value of the body.
    Given(VarId),
}

/// Step that keeps the state or replaces it.
struct Selection<'b> {
    test: Test,
    /// Outcome of the test if the term replaces the state.
    replaces: bool,
    /// Statements of the body before the selection.
    before: &'b [Stmt],
    /// The state, and the results of those statements that depend on it.
    dependent: BTreeSet<VarId>,
    /// Rest of the term, computed only if it replaces the state.
    arm: Block,
}

impl<'b> Selection<'b> {
    /// Returns the selection of a step, if it is one.
    fn of(steps: &'b StateLoop) -> Option<Self> {
        let StateLoop { count, state, body, .. } = steps;
        if count.as_constant().is_some_and(|n| n < MIN_STEPS) {
            return None;
        }
        let (last, before) = body.stmts.split_last().filter(|(last, _)| last.var == body.result)?;
        let mut dependent = BTreeSet::from([*state]);
        for stmt in before {
            if depends(stmt, &dependent) {
                dependent.insert(stmt.var);
            }
        }
        let known = |result: VarId| Block { stmts: Vec::new(), result };
        let (test, [then, otherwise]) = match &last.expr {
            // The values of these operators: the second argument if it is greater, or less, than the first.
            Expr::Op(Op::Max, args) => (Test::Less(args[0], args[1]), [known(args[1]), known(args[0])]),
            Expr::Op(Op::Min, args) => (Test::Less(args[1], args[0]), [known(args[1]), known(args[0])]),
            Expr::Op(Op::Select, args) => (Test::Given(args[0]), [known(args[1]), known(args[2])]),
            Expr::If { condition, then, otherwise } => (Test::Given(*condition), [then.clone(), otherwise.clone()]),
            _ => return None,
        };
        let is_state = |side: &Block| side.stmts.is_empty() && side.result == *state;
        let (arm, replaces) = match [is_state(&then), is_state(&otherwise)] {
            [false, true] => (then, true),
            [true, false] => (otherwise, false),
            _ => return None,
        };
        let is_free = !dependent.contains(&arm.result) && !arm.stmts.iter().any(|stmt| depends(stmt, &dependent));
        is_free.then_some(Self { test, replaces, before, dependent, arm })
    }

    /// Returns the computation of the term; `is_size` states whether a variable may stand in the size of a type.
    fn term(&self, is_size: impl Fn(VarId) -> bool) -> Block {
        let is_free = |stmt: &&Stmt| !self.dependent.contains(&stmt.var);
        let mut needed = BTreeSet::from([self.arm.result]);
        let mut stmts = Vec::new();
        for stmt in self.before.iter().filter(is_free).chain(&self.arm.stmts).rev() {
            if needed.contains(&stmt.var) || is_size(stmt.var) {
                stmt.expr.for_each_use(&mut |var| {
                    needed.insert(var);
                });
                stmts.push(stmt.clone());
            }
        }
        stmts.reverse();
        Block { stmts, result: self.arm.result }
    }
}

/// Returns whether a statement uses one of these variables.
fn depends(stmt: &Stmt, on: &BTreeSet<VarId>) -> bool {
    let mut any = false;
    stmt.expr.for_each_use(&mut |var| any |= on.contains(&var));
    any
}

impl Reverse<'_> {
    /// Emits a fold that selects a number, with its winner. Does nothing if it is another loop.
    pub(super) fn select(&mut self, stmt: &Stmt) -> bool {
        let Expr::Fold(steps) = &stmt.expr else { return false };
        if *self.out.ty(steps.state) != Type::Double {
            return false;
        }
        let Some(selection) = Selection::of(steps) else { return false };
        let count = self.size(&steps.count);
        let none = self.out.builder.int(-1);
        let init = self.copies.get(steps.init);
        let init = self.out.builder.tuple(&[init, none]);
        let pair = self.out.builder.fresh(self.out.ty(init).clone());
        let i = self.out.builder.fresh(Type::Int);
        self.naturals.insert(i);
        self.copies.insert(steps.index, i);
        self.out.open();
        let (state, winner) = (self.out.component(pair, 0), self.out.component(pair, 1));
        self.copies.insert(steps.state, state);
        let before = Block { stmts: selection.before.to_vec(), result: steps.state };
        self.out.builder.inline(&before, &mut self.copies);
        let condition = match selection.test {
            Test::Less(a, b) => {
                let args = [self.copies.get(a), self.copies.get(b)];
                self.out.builder.op(Op::Lt, &args)
            }
            Test::Given(condition) => self.copies.get(condition),
        };
        self.out.open();
        let term = self.out.builder.inline(&selection.arm, &mut self.copies);
        let replaced = self.out.builder.tuple(&[term, i]);
        let replaced = self.out.close(replaced);
        self.out.open();
        let kept = self.out.builder.tuple(&[state, winner]);
        let kept = self.out.close(kept);
        let (then, otherwise) = if selection.replaces { (replaced, kept) } else { (kept, replaced) };
        let next = self.out.builder.compute(Expr::If { condition, then, otherwise });
        let body = self.out.close(next);
        self.out.set_span(stmt.span);
        let fold = Expr::Fold(StateLoop { count, index: i, state: pair, init, body });
        let last = self.out.builder.compute(fold);
        let (value, winner) = (self.out.component(last, 0), self.out.component(last, 1));
        self.copies.insert(stmt.var, value);
        self.winners.insert(stmt.var, winner);
        true
    }

    /// Propagates through the fold that is bound to `var`, with this winner.
    pub(super) fn selected(&mut self, var: VarId, steps: &StateLoop, winner: VarId, adj: Scalar) {
        let Some(selection) = Selection::of(steps) else { return };
        let term = selection.term(|var| *self.out.ty(var) == Type::Int);
        let zero = self.out.builder.int(0);
        let is_step = self.out.builder.op(Op::Le, &[zero, winner]);
        let mut i = winner;
        if term.stmts.iter().any(|stmt| !stmt.expr.blocks().is_empty()) {
            // Redundant; it bounds the memory of loops whose sizes depend on the index.
            let count = self.size(&steps.count);
            let last = self.out.builder.size(count.sub(&Size::constant(1)));
            i = self.out.builder.compute(Expr::op(Op::Min, &[i, last]));
            i = self.out.builder.compute(Expr::op(Op::Max, &[i, zero]));
            self.naturals.insert(i);
        }
        self.copies.insert(steps.index, i);
        // No branch for a number, and none that has both a number and an array, which would be made before it is added.
        let init = self.copies.get(steps.init);
        let application = Application { op: Op::Select, args: &[is_step, init, init], value: init };
        let parts = chain::cotangents(self.out, application, &[false, false, true], (adj, self.slopes.get(var)));
        if let Some(part) = parts.into_iter().flatten().next() {
            self.add(steps.init, Cotangent::Double(part));
        }
        // The index stands for nothing that has a cotangent.
        let nothing = Block { stmts: Vec::new(), result: steps.index };
        self.branches(is_step, &term, &nothing, &Cotangent::Double(adj));
    }
}
