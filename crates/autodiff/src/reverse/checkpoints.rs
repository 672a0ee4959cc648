//! Recomputation of loop states from a bounded number of checkpoints, instead of keeping all of them.
//!
//! Source: Griewank and Walther, *Algorithm 799: revolve* (2000), whose schedule is proved to take the fewest steps;
//! here the schedule is computed at run time, so that one program serves loops of any length.
//!
//! | paper | here |
//! | --- | --- |
//! | s, snapshots | the length of `stack`, which is fixed |
//! | the snapshots in use | `stack[0..=top]`, states at the steps `places[0..=top]`, which ascend |
//! | β(s, t) = C(s + t, s), the longest chain for s snapshots where no step is run more than t times again | `reach` |
//!
//! The reverse sweep of step i needs its state. It is recomputed by advancing from the last checkpoint; while
//! checkpoints are free, one is stored on the way ([`next_distance`] steps on). A checkpoint at step i is free after
//! step i.
//!
//! Holds: with c checkpoints, c states are in memory at once, and one or two that are being computed; a loop of n <= c
//! steps is run once more, one of n <= C(c + t, c) at most t times more. States are recomputed by the same operations
//! in the same order: derivatives are the same bit for bit.

use super::Reverse;
use crate::emit::{At, Emitter};
use chainrule_ir::{Block, Expr, Size, StateLoop, Type, VarId, WhileLoop};
use chainrule_ops::Op;

/// Recomputation of a state.
pub(super) struct Advance<'b> {
    /// Variable bound in `body`, unless the body is empty.
    pub index: Option<VarId>,
    pub state: VarId,
    pub body: &'b Block,
    /// Whether the next state is the first component of the body's result.
    pub is_general: bool,
}

/// Checkpoints, as variables in scope.
#[derive(Clone, Copy)]
pub(super) struct Stack {
    /// States, one per checkpoint.
    states: VarId,
    /// Step before which each state was taken.
    places: VarId,
    /// Index of the last one in use.
    top: VarId,
}

impl Stack {
    /// Returns a stack with one checkpoint in use: the state before step 0. The others are initialised to the same
    /// state.
    pub fn new(out: &mut Emitter, n_checkpoints: u32, init: VarId) -> Self {
        let size = Size::constant(i64::from(n_checkpoints));
        let states = out.build(size.clone(), &mut |_, _| init);
        let places = out.build(size, &mut |out, _| out.builder.int(0));
        let top = out.builder.int(0);
        Self { states, places, top }
    }

    pub fn parts(self) -> [VarId; 3] {
        [self.states, self.places, self.top]
    }

    pub fn from_parts(out: &mut Emitter, tuple: VarId, first: usize) -> Self {
        let [states, places, top] = [0, 1, 2].map(|k| out.component(tuple, first + k));
        Self { states, places, top }
    }

    /// Returns the step of the last checkpoint.
    fn place(self, out: &mut Emitter) -> VarId {
        out.get(self.places, At { index: self.top, proved: false })
    }

    /// Removes the last checkpoint unless it precedes step `i` or is the first.
    pub fn popped(self, out: &mut Emitter, i: VarId) -> Self {
        let (place, zero) = (self.place(out), out.builder.int(0));
        let (is_here, is_other) = (out.builder.op(Op::Eq, &[place, i]), out.builder.op(Op::Lt, &[zero, self.top]));
        let condition = out.builder.op(Op::And, &[is_here, is_other]);
        out.open();
        let one = out.builder.int(1);
        let below = out.builder.op(Op::Sub, &[self.top, one]);
        let then = out.close(below);
        out.open();
        let otherwise = out.close(self.top);
        let top = out.builder.compute(Expr::If { condition, then, otherwise });
        Self { top, ..self }
    }
}

fn minus(out: &mut Emitter, a: VarId, b: VarId) -> VarId {
    out.builder.op(Op::Sub, &[a, b])
}

fn plus_one(out: &mut Emitter, a: VarId) -> VarId {
    let one = out.builder.int(1);
    out.builder.op(Op::Add, &[a, one])
}

/// Returns whether a size in `block` depends on `var`.
fn is_in_sizes(out: &Emitter, block: &Block, var: VarId) -> bool {
    let uses = |size: &Size| size.vars().contains(&var);
    let mut open = vec![block];
    while let Some(block) = open.pop() {
        for stmt in &block.stmts {
            let count = match &stmt.expr {
                Expr::Build { size, .. } => Some(size),
                Expr::Fold(StateLoop { count, .. }) | Expr::Sum { count, .. } | Expr::Loop(StateLoop { count, .. }) => {
                    Some(count)
                }
                Expr::While(WhileLoop { limit, .. }) => Some(limit),
                _ => None,
            };
            if count.is_some_and(&uses) || out.ty(stmt.var).sizes().iter().any(&uses) {
                return true;
            }
            open.extend(stmt.expr.blocks());
        }
    }
    false
}

impl Reverse<'_> {
    /// Recomputes the state before step `i` of a loop of at most `limit` steps; returns it with the checkpoints at that
    /// point.
    pub(super) fn state_again(
        &mut self,
        advance: &Advance<'_>,
        stack: Stack,
        i: VarId,
        limit: &Size,
    ) -> (VarId, Stack) {
        let parts = stack.parts();
        let Type::Array(size, _) = self.out.ty(parts[0]).clone() else { return (parts[0], stack) };
        // Stores more checkpoints on the way, while steps remain and a checkpoint is free.
        let init = self.out.builder.tuple(&parts);
        let state = self.out.builder.fresh(self.out.ty(init).clone());
        self.out.open();
        let here = Stack::from_parts(self.out, state, 0);
        let place = here.place(self.out);
        let last = self.out.builder.size(size.sub(&Size::constant(1)));
        let is_before = self.out.builder.op(Op::Lt, &[place, i]);
        let is_free = self.out.builder.op(Op::Lt, &[here.top, last]);
        let holds = self.out.builder.op(Op::And, &[is_before, is_free]);
        let condition = self.out.close(holds);
        self.out.open();
        let here = Stack::from_parts(self.out, state, 0);
        let place = here.place(self.out);
        let way = minus(self.out, i, place);
        let n_checkpoints = self.out.builder.size(size.clone());
        let snapshots = minus(self.out, n_checkpoints, here.top);
        let far = next_distance(self.out, snapshots, way, limit);
        let before = self.out.get(here.states, At { index: here.top, proved: false });
        let there = self.advanced(advance, before, (place, far), limit);
        let above = plus_one(self.out, here.top);
        let new_place = self.out.builder.op(Op::Add, &[place, far]);
        let states = self.out.with_element(here.states, &[Some(above)], there);
        let places = self.out.with_element(here.places, &[Some(above)], new_place);
        let next = self.out.builder.tuple(&[states, places, above]);
        let body = self.out.close(next);
        let pushed = Expr::While(WhileLoop { limit: size, state, init, condition, body });
        let pushed = self.out.builder.compute(pushed);
        let stack = Stack::from_parts(self.out, pushed, 0);
        // Runs the remaining steps.
        let place = stack.place(self.out);
        let way = minus(self.out, i, place);
        let before = self.out.get(stack.states, At { index: stack.top, proved: false });
        (self.advanced(advance, before, (place, way), limit), stack)
    }

    /// Advances the state `from`, which precedes step `place`, by `steps` steps, in a loop of `limit` steps.
    fn advanced(&mut self, advance: &Advance<'_>, from: VarId, (place, steps): (VarId, VarId), limit: &Size) -> VarId {
        let mut copies = self.copies.clone();
        let ty = self.out.ty(from).clone();
        let (k, state) = (self.out.builder.fresh(Type::Int), self.out.fresh_like(ty, advance.state, ""));
        self.out.open();
        if let Some(index) = advance.index {
            let mut step = self.out.builder.op(Op::Add, &[place, k]);
            if is_in_sizes(self.out, advance.body, index) {
                // Redundant; it bounds the memory that the body needs.
                let (zero, last) = (self.out.builder.int(0), self.out.builder.size(limit.sub(&Size::constant(1))));
                step = self.out.builder.compute(Expr::op(Op::Min, &[step, last]));
                step = self.out.builder.compute(Expr::op(Op::Max, &[step, zero]));
            }
            copies.insert(index, step);
        }
        copies.insert(advance.state, state);
        let mut next = self.out.builder.inline(advance.body, &mut copies);
        if advance.is_general {
            next = self.out.component(next, 0);
        }
        let body = self.out.close(next);
        let count = self.out.builder.size_of(steps);
        self.out.builder.compute(Expr::Fold(StateLoop { count, index: k, state, init: from, body }))
    }
}

/// Returns the distance to the next checkpoint for `way` + 1 remaining steps, at least 2, with s `snapshots`, including
/// the last checkpoint: for the smallest t for which β(s, t) is at least that number, the smaller of β(s, t - 1) and
/// the distance that leaves β(s - 1, t - 1) steps behind it (section 2: any distance from β(s, t - 2) on that leaves no
/// fewer is equally good).
fn next_distance(out: &mut Emitter, snapshots: VarId, way: VarId, limit: &Size) -> VarId {
    let quotient = |out: &mut Emitter, a: VarId, b: VarId| out.builder.compute(Expr::op(Op::Quot, &[a, b]));
    // β(s, t) = β(s, t - 1) (s + t) / t.
    let further = |out: &mut Emitter, reach: VarId, t: VarId| {
        let sum = out.builder.op(Op::Add, &[snapshots, t]);
        let product = out.builder.op(Op::Mul, &[reach, sum]);
        quotient(out, product, t)
    };
    let one = out.builder.int(1);
    let init = out.builder.tuple(&[one, one]);
    let state = out.builder.fresh(out.ty(init).clone());
    out.open();
    let (reach, t) = (out.component(state, 0), out.component(state, 1));
    let next = further(out, reach, t);
    let is_too_short = out.builder.op(Op::Le, &[next, way]);
    let condition = out.close(is_too_short);
    out.open();
    let (reach, t) = (out.component(state, 0), out.component(state, 1));
    let next = further(out, reach, t);
    let later = plus_one(out, t);
    let next = out.builder.tuple(&[next, later]);
    let body = out.close(next);
    let last = out.builder.compute(Expr::While(WhileLoop { limit: limit.clone(), state, init, condition, body }));
    let (reach, t) = (out.component(last, 0), out.component(last, 1));
    // β(s - 1, t - 1) = β(s, t - 1) s / (s + t - 1).
    let product = out.builder.op(Op::Mul, &[reach, snapshots]);
    let sum = out.builder.op(Op::Add, &[snapshots, t]);
    let divisor = minus(out, sum, one);
    let behind = quotient(out, product, divisor);
    let length = plus_one(out, way);
    let before = minus(out, length, behind);
    out.builder.compute(Expr::op(Op::Min, &[reach, before]))
}
