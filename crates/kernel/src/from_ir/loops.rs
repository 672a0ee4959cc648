//! Statements with blocks: build, fold, sum, while, if.

use super::Lowering;
use super::blocks::Offers;
use super::layout::{Leaf, LeafType, Scalar, Value, View, leaves};
use crate::kernel::{Carried, Choice, Class, Instr, Reg, Stmt};
use chainrule_base::{Poly, Span};
use chainrule_ir::{Block, Size, VarId};
use chainrule_ops::Op;

/// The state of a loop: for each leaf its place and the place of the next, or its carried register.
struct State {
    current: Offers,
    next: Offers,
    carried: Vec<Option<Carried>>,
}

impl State {
    fn carried(self) -> Vec<Carried> {
        self.carried.into_iter().flatten().collect()
    }
}

/// A scalar in `reg`.
fn scalar_leaf(ty: &LeafType, reg: Reg) -> Leaf {
    if ty.scalar == Scalar::Int { Leaf::Int(Poly::var(reg)) } else { Leaf::Reg(reg) }
}

impl Lowering<'_> {
    fn bind_index(&mut self, index: VarId, count: &Poly<Reg>) -> Reg {
        let reg = self.b.index(count);
        self.values[index] = Some(vec![Leaf::Int(Poly::var(reg))]);
        reg
    }

    pub(super) fn build(&mut self, var: VarId, size: &Size, index: VarId, body: &Block, span: Option<Span>) -> Value {
        let count = self.size(size);
        let places = self.places(var, span);
        let index = self.bind_index(index, &count);
        self.b.open_code();
        let rows: Vec<View> = places.iter().flatten().map(|place| place.row(&Poly::var(index))).collect();
        let element = self.open_block(body, rows.iter().cloned().map(Some).collect());
        for (leaf, row) in element.iter().zip(&rows) {
            self.b.settle(leaf, row);
        }
        self.b.close_frame();
        let body = self.b.close_code();
        self.b.stmt(Stmt::For { index, count, carried: Vec::new(), body });
        places.into_iter().flatten().map(Leaf::Array).collect()
    }

    pub(super) fn sum(&mut self, count: &Size, index: VarId, body: &Block) -> Value {
        let count = self.size(count);
        let init = self.b.reg(Class::Real);
        self.b.instr(Instr::Const { dst: init, value: 0.0 });
        let var = self.b.reg(Class::Real);
        let index = self.bind_index(index, &count);
        self.b.open_code();
        self.open_block(body, Vec::new());
        let term = self.scalar(body.result);
        let next = self.b.reg(Class::Real);
        self.b.instr(Instr::Op { dst: next, op: Op::Add, args: [var, term, var] });
        self.b.close_frame();
        let body = self.b.close_code();
        self.b.stmt(Stmt::For { index, count, carried: vec![Carried { var, init, next }], body });
        vec![Leaf::Reg(var)]
    }

    #[allow(clippy::too_many_arguments)] // The parts of one expression.
    pub(super) fn fold(
        &mut self,
        var: VarId,
        count: &Size,
        index: VarId,
        state: VarId,
        init: VarId,
        body: &Block,
        span: Option<Span>,
    ) -> Value {
        let count = self.size(count);
        let (mut loop_state, value) = self.open_state(var, state, init, span);
        let index = self.bind_index(index, &count);
        self.b.open_code();
        self.step(&mut loop_state, body);
        let body = self.b.close_code();
        self.b.stmt(Stmt::For { index, count, carried: loop_state.carried(), body });
        value
    }

    #[allow(clippy::too_many_arguments)] // The parts of one expression.
    pub(super) fn repeat(
        &mut self,
        var: VarId,
        limit: &Size,
        state: VarId,
        init: VarId,
        condition: &Block,
        body: &Block,
        span: Option<Span>,
    ) -> Value {
        let limit = self.size(limit);
        let (mut loop_state, value) = self.open_state(var, state, init, span);
        self.b.open_code();
        self.open_block(condition, Vec::new());
        let holds = self.scalar(condition.result);
        self.b.close_frame();
        let condition = self.b.close_code();
        self.b.open_code();
        self.step(&mut loop_state, body);
        let body = self.b.close_code();
        let failure = self.b.failure("a `while` does not end within its limit of steps".to_owned(), span);
        self.b.stmt(Stmt::While { limit, carried: loop_state.carried(), condition, holds, body, failure });
        value
    }

    /// Makes the state of a loop from its initial value, and binds `state` to it. The second result is
    /// the value of `state` in the loop, and of the loop itself after it.
    fn open_state(&mut self, var: VarId, state: VarId, init: VarId, span: Option<Span>) -> (State, Value) {
        let types = leaves(self.function.ty(state));
        let current = self.places(var, span);
        let next = self.places(state, span);
        let mut carried = Vec::new();
        let mut value = Value::new();
        let initial = self.value(init);
        for ((ty, place), leaf) in types.iter().zip(&current).zip(&initial) {
            if let Some(place) = place {
                self.b.settle(leaf, place);
                value.push(Leaf::Array(place.clone()));
                carried.push(None);
            } else {
                let init = self.b.scalar(leaf);
                let var = self.b.reg(ty.scalar.class());
                value.push(scalar_leaf(ty, var));
                carried.push(Some(Carried { var, init, next: var }));
            }
        }
        self.values[state] = Some(value.clone());
        (State { current, next, carried }, value)
    }

    /// One iteration: lowers `body`, and makes its value the current state.
    fn step(&mut self, state: &mut State, body: &Block) {
        let value = self.open_block(body, state.next.clone());
        for (carried, leaf) in state.carried.iter_mut().zip(&value) {
            if let Some(carried) = carried {
                carried.next = self.b.scalar(leaf);
            }
        }
        // First everything that reads the current state, then everything that overwrites it.
        let of_current = |view: &View| state.current.iter().flatten().any(|current| current.buffer == view.buffer);
        let mut moves: Vec<(View, &View)> = Vec::new();
        for ((leaf, current), next) in value.iter().zip(&state.current).zip(&state.next) {
            let (Leaf::Array(view), Some(current), Some(next)) = (leaf, current, next) else { continue };
            if view == current {
                continue;
            }
            if of_current(view) {
                self.b.settle(leaf, next);
                moves.push((next.clone(), current));
            } else {
                moves.push((view.clone(), current));
            }
        }
        for (from, to) in moves {
            self.b.settle(&Leaf::Array(from), to);
        }
        self.b.close_frame();
    }

    pub(super) fn branch(
        &mut self,
        var: VarId,
        condition: VarId,
        then: &Block,
        otherwise: &Block,
        span: Option<Span>,
    ) -> Value {
        let condition = self.scalar(condition);
        let types = leaves(self.function.ty(var));
        let places = self.places(var, span);
        let (then, then_regs) = self.one_branch(then, &places);
        let (otherwise, otherwise_regs) = self.one_branch(otherwise, &places);
        let mut choices = Vec::new();
        let mut value = Value::new();
        let mut regs = then_regs.into_iter().zip(otherwise_regs);
        for (ty, place) in types.iter().zip(places) {
            match (place, regs.next()) {
                (Some(place), _) => value.push(Leaf::Array(place)),
                (None, Some((Some(then), Some(otherwise)))) => {
                    let var = self.b.reg(ty.scalar.class());
                    choices.push(Choice { var, then, otherwise });
                    value.push(scalar_leaf(ty, var));
                }
                (None, _) => self.b.bug("a branch has another type than the whole"),
            }
        }
        self.b.stmt(Stmt::If { condition, then, otherwise, choices });
        value
    }

    /// The code of a branch that leaves its arrays at `places`, and the registers of its scalars.
    fn one_branch(&mut self, block: &Block, places: &Offers) -> (Vec<Stmt>, Vec<Option<Reg>>) {
        self.b.open_code();
        let value = self.open_block(block, places.clone());
        let mut regs = Vec::new();
        for (leaf, place) in value.iter().zip(places) {
            regs.push(match place {
                Some(place) => {
                    self.b.settle(leaf, place);
                    None
                }
                None => Some(self.b.scalar(leaf)),
            });
        }
        self.b.close_frame();
        (self.b.close_code(), regs)
    }
}
