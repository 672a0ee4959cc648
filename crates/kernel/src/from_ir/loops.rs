//! Lowering of statements with blocks: build, fold, sum, loop, while, if.

use super::Lowering;
use super::in_place::{self, Update};
use super::layout::{self, Leaf, LeafType, Scalar, Value, View, leaves};
use super::offers::{Offer, Offers, Places, Target};
use crate::kernel::{Carried, Choice, Class, Instr, Order, Reg, Stmt};
use chainrule_base::{Poly, Span};
use chainrule_ir::{Block, Expr, Size, StateLoop, Type, VarId, WhileLoop};
use chainrule_ops::Op;

/// State of a loop: for each leaf its memory and the memory of the next state, or its carried register.
struct State {
    current: Places,
    /// Memory of the next state; the same as the current one for leaves updated in place.
    next: Places,
    carried: Vec<Option<Carried>>,
    updates: Vec<Option<Update>>,
}

impl State {
    fn carried(self) -> Vec<Carried> {
        self.carried.into_iter().flatten().collect()
    }
}

/// Accumulator of a sum.
enum Sum {
    /// Added to in place.
    Array(View),
    /// Kept in a register.
    Scalar { init: Reg, var: Reg },
}

impl Sum {
    /// Returns the offer to the producers of its terms.
    fn offer(&self) -> Option<Offer> {
        match self {
            Self::Array(view) => Some(Offer::add(view.clone())),
            Self::Scalar { .. } => None,
        }
    }
}

/// Returns the leaf of a scalar in `reg`.
fn scalar_leaf(ty: &LeafType, reg: Reg) -> Leaf {
    if ty.scalar == Scalar::Int { Leaf::Int(Poly::var(reg)) } else { Leaf::Reg(reg) }
}

impl Lowering<'_> {
    fn bind_index(&mut self, index: VarId, count: &Poly<Reg>, span: Option<Span>) -> Reg {
        self.b.origin = span;
        let reg = self.b.index(count);
        self.values[index] = Some(vec![Leaf::Int(Poly::var(reg))]);
        reg
    }

    pub(super) fn build(&mut self, var: VarId, size: &Size, index: VarId, body: &Block, span: Option<Span>) -> Value {
        let count = self.size(size);
        let targets = self.targets(var, span);
        if let Some((condition, at)) = self.only_element(var, &targets) {
            let before = self.known.insert(condition, true);
            self.one_element(index, at, &count, body, &targets, span);
            match before {
                Some(before) => self.known.insert(condition, before),
                None => self.known.remove(&condition),
            };
        } else {
            self.b.origin = span;
            let reg = self.b.index(&count);
            self.b.open_loop(reg);
            self.element(index, &Poly::var(reg), body, &targets);
            let body = self.b.close_code();
            self.b.stmt(Stmt::For { index: reg, count, carried: Vec::new(), order: Order::InOrder, body });
        }
        targets.iter().filter_map(Target::leaf).collect()
    }

    /// Emits the code of the only element that a build of `count` elements changes, if there is such an element.
    fn one_element(
        &mut self,
        index: VarId,
        at: Poly<Reg>,
        count: &Poly<Reg>,
        body: &Block,
        targets: &[Target],
        span: Option<Span>,
    ) {
        if self.b.is_surely_inside(&at, count) {
            self.element(index, &at, body, targets);
            return;
        }
        let failure = self.b.failure("an index lies outside of an array".to_owned(), span);
        let condition = self.b.is_inside(&at, count, failure);
        self.b.open_code();
        // The index is in range; the check states it for proofs about addresses.
        let at = self.b.checked(at, count.clone(), failure);
        self.element(index, &at, body, targets);
        let then = self.b.close_code();
        self.b.stmt(Stmt::If { condition, then, otherwise: Vec::new(), choices: Vec::new() });
    }

    /// Emits the code of element `at` of a build.
    fn element(&mut self, index: VarId, at: &Poly<Reg>, body: &Block, targets: &[Target]) {
        self.values[index] = Some(vec![Leaf::Int(at.clone())]);
        let rows: Vec<Target> = targets.iter().map(|target| target.row(at)).collect();
        let element = self.open_block(body, rows.iter().map(Target::offer).collect());
        for (leaf, row) in element.iter().zip(&rows) {
            self.b.bring(leaf, row);
        }
        self.b.close_frame();
    }

    pub(super) fn sum(&mut self, var: VarId, count: &Size, index: VarId, body: &Block, span: Option<Span>) -> Value {
        let count = self.size(count);
        let targets = self.targets(var, span);
        let sums = self.open_sums(&targets);
        let index = self.bind_index(index, &count, span);
        self.b.open_loop(index);
        let term = self.open_block(body, sums.iter().map(Sum::offer).collect());
        let carried = self.add_terms(&sums, &term);
        self.b.close_frame();
        let body = self.b.close_code();
        self.b.stmt(Stmt::For { index, count, carried, order: Order::InOrder, body });
        self.close_sums(&sums, &targets)
    }

    /// Initialises the accumulators with zeros.
    fn open_sums(&mut self, targets: &[Target]) -> Vec<Sum> {
        let mut sums = Vec::with_capacity(targets.len());
        for target in targets {
            sums.push(match target {
                Target::Add(view) if !view.dims.is_empty() => Sum::Array(view.clone()),
                Target::Write(view) => {
                    self.b.fill(view);
                    Sum::Array(view.clone())
                }
                // Accumulated in a register, whatever its destination.
                Target::Add(_) | Target::Scalar => {
                    Sum::Scalar { init: self.b.constant(0.0), var: self.b.reg(Class::Real) }
                }
            });
        }
        sums
    }

    /// Adds the terms of one iteration; returns the accumulators in registers as carried values.
    fn add_terms(&mut self, sums: &[Sum], term: &[Leaf]) -> Vec<Carried> {
        let mut carried = Vec::new();
        for (sum, leaf) in sums.iter().zip(term) {
            match sum {
                Sum::Array(view) => self.b.deliver(leaf, view),
                Sum::Scalar { init, var } => {
                    let term = self.b.scalar(leaf);
                    let next = self.b.reg(Class::Real);
                    self.b.instr(Instr::Op { dst: next, op: Op::Add, args: [*var, term, *var] });
                    carried.push(Carried { var: *var, init: *init, next });
                }
            }
        }
        carried
    }

    /// Returns the sums after the loop.
    fn close_sums(&mut self, sums: &[Sum], targets: &[Target]) -> Value {
        let mut value = Value::new();
        for (sum, target) in sums.iter().zip(targets) {
            value.push(match (sum, target) {
                (Sum::Scalar { var, .. }, Target::Add(view)) => {
                    self.b.deliver(&Leaf::Reg(*var), view);
                    Leaf::Delivered
                }
                (Sum::Scalar { var, .. }, _) => Leaf::Reg(*var),
                (Sum::Array(_), Target::Add(_)) => Leaf::Delivered,
                (Sum::Array(view), _) => Leaf::Array(view.clone()),
            });
        }
        value
    }

    pub(super) fn general(&mut self, var: VarId, steps: &StateLoop, span: Option<Span>) -> Value {
        let StateLoop { count, index, state, init, body } = steps;
        let (index, state, init) = (*index, *state, *init);
        let count = self.size(count);
        let n_state = leaves(self.function.ty(state)).len();
        let n_terms = match self.function.ty(var) {
            Type::Tuple(parts, _) => parts.get(2).map_or(0, |term| leaves(term).len()),
            _ => 0,
        };
        self.take_over(var, n_state, init);
        let mut targets = self.targets(var, span);
        let mut elements = targets.split_off(n_state.min(targets.len()));
        let terms = elements.split_off(elements.len().saturating_sub(n_terms));
        let mut wanted = vec![true; n_state];
        wanted.extend(elements.iter().map(|target| matches!(target, Target::Write(_))));
        let updates = in_place::updates(self.function, &self.live, state, body, &wanted);
        let (mut loop_state, mut value) = self.open_state(&targets, state, init, updates, span);
        let sums = self.open_sums(&terms);
        let index = self.bind_index(index, &count, span);
        self.b.open_loop(index);
        let rows: Vec<Target> = elements.iter().map(|target| target.row(&Poly::var(index))).collect();
        let more = rows.iter().map(Target::offer).chain(sums.iter().map(Sum::offer)).collect();
        let mut carried = Vec::new();
        self.step(&mut loop_state, body, more, |this, rest| {
            for (leaf, row) in rest.iter().zip(&rows) {
                this.b.bring(leaf, row);
            }
            carried = this.add_terms(&sums, rest.get(rows.len()..).unwrap_or_default());
        });
        let body = self.b.close_code();
        let carried = loop_state.carried().into_iter().chain(carried).collect();
        self.b.stmt(Stmt::For { index, count, carried, order: Order::InOrder, body });
        value.extend(elements.iter().filter_map(Target::leaf));
        value.extend(self.close_sums(&sums, &terms));
        value
    }

    pub(super) fn fold(&mut self, var: VarId, steps: &StateLoop, span: Option<Span>) -> Value {
        let StateLoop { count, index, state, init, body } = steps;
        let (index, state, init) = (*index, *state, *init);
        let count = self.size(count);
        self.take_over(var, self.function.ty(state).n_leaves(), init);
        let current = self.state_targets(var, span);
        let updates = self.updates(state, body);
        let (mut loop_state, value) = self.open_state(&current, state, init, updates, span);
        let index = self.bind_index(index, &count, span);
        self.b.open_loop(index);
        self.step(&mut loop_state, body, Offers::new(), |_, _| {});
        let body = self.b.close_code();
        self.b.stmt(Stmt::For { index, count, carried: loop_state.carried(), order: Order::InOrder, body });
        value
    }

    pub(super) fn while_loop(&mut self, var: VarId, steps: &WhileLoop, span: Option<Span>) -> Value {
        let WhileLoop { limit, state, init, condition, body } = steps;
        let (state, init) = (*state, *init);
        let mut limit = self.size(limit);
        if limit.as_constant().is_none() {
            limit = Poly::var(self.b.int(&limit));
        }
        self.take_over(var, self.function.ty(state).n_leaves(), init);
        let current = self.state_targets(var, span);
        let updates = self.updates(state, body);
        let (mut loop_state, value) = self.open_state(&current, state, init, updates, span);
        self.b.open_code();
        self.open_block(condition, Vec::new());
        let holds = self.scalar(condition.result);
        self.b.close_frame();
        let condition = self.b.close_code();
        self.b.open_code();
        self.step(&mut loop_state, body, Offers::new(), |_, _| {});
        let body = self.b.close_code();
        let failure = self.b.failure("a `while` does not end within its limit of steps".to_owned(), span);
        self.b.stmt(Stmt::While { limit, carried: loop_state.carried(), condition, holds, body, failure });
        value
    }

    /// Offers the loop `var` the memory of its initial arrays, for leaves without another destination and initial
    /// arrays without another use.
    fn take_over(&mut self, var: VarId, n_state: usize, init: VarId) {
        let mut offers = self.take_offers(var);
        for (leaf, offer) in offers.iter_mut().take(n_state).enumerate() {
            if offer.is_none()
                && let Some(view) = self.own_array(init, leaf)
            {
                self.b.zeros.remove(&view.buffer);
                *offer = Some(Offer::Write(view));
            }
        }
        self.offers[var] = Some(offers);
    }

    /// Returns the array of leaf `leaf` of `var`, if it was made in this block, in memory of its own, for its only use.
    fn own_array(&self, var: VarId, leaf: usize) -> Option<View> {
        let (mut maker, mut of) = (var, leaf);
        loop {
            if !self.live.used_once(maker) {
                return None;
            }
            match self.defs[maker]? {
                Expr::Tuple(args) => (maker, of) = layout::argument(self.function, args, of)?,
                // An alias inside their blocks is out of scope here.
                Expr::Build { .. }
                | Expr::Sum { .. }
                | Expr::Fold(_)
                | Expr::While(_)
                | Expr::If { .. }
                | Expr::Zero
                | Expr::OneHot { .. } => break,
                _ => return None,
            }
        }
        match self.values[var].as_ref()?.get(leaf)? {
            Leaf::Array(view) if self.b.is_own(view) => Some(view.clone()),
            _ => None,
        }
    }

    /// Returns the targets for the state of a loop whose value is its last state.
    fn state_targets(&mut self, var: VarId, span: Option<Span>) -> Vec<Target> {
        self.places(var, span).into_iter().map(|place| place.map_or(Target::Scalar, Target::Write)).collect()
    }

    /// Returns the in-place updates of the state of a loop without elements.
    fn updates(&self, state: VarId, body: &Block) -> Vec<Option<Update>> {
        let wanted = vec![true; self.function.ty(state).n_leaves()];
        in_place::updates(self.function, &self.live, state, body, &wanted)
    }

    /// Initialises the state of a loop and binds `state` to it: in `targets`, or in memory of its own for leaves that
    /// are added in the end. The second result is the value of `state` in the loop and after it.
    fn open_state(
        &mut self,
        targets: &[Target],
        state: VarId,
        init: VarId,
        updates: Vec<Option<Update>>,
        span: Option<Span>,
    ) -> (State, Value) {
        let types = leaves(self.function.ty(state));
        let mut current = Places::new();
        for (ty, target) in types.iter().zip(targets) {
            current.push(match target {
                _ if ty.dims.is_empty() => None,
                Target::Write(view) => Some(view.clone()),
                Target::Add(_) | Target::Scalar => {
                    let dims = ty.dims.iter().map(|size| self.size(size)).collect();
                    Some(self.b.array(ty.scalar.class(), dims, self.span(state, span)))
                }
            });
        }
        let mut next = Places::new();
        for ((ty, place), update) in types.iter().zip(&current).zip(&updates) {
            next.push(match (place, update) {
                (None, _) => None,
                (place, Some(_)) => place.clone(),
                (Some(place), None) => {
                    Some(self.b.array(ty.scalar.class(), place.dims.clone(), self.span(state, span)))
                }
            });
        }
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
        (State { current, next, carried, updates }, value)
    }

    /// Lowers one iteration. The value of `body` is the next state, followed by values with the offers `more`, which
    /// `rest` consumes while the current state still exists. Then the next state becomes the current one.
    fn step(&mut self, state: &mut State, body: &Block, more: Offers, rest: impl FnOnce(&mut Self, &[Leaf])) {
        let next = state.next.iter().map(|place| place.clone().map(Offer::Write));
        let offers: Offers = next.chain(more).collect();
        for (place, update) in state.current.iter().zip(&state.updates) {
            if let (Some(place), Some(update)) = (place, update) {
                self.plan_update(update, place, &offers);
            }
        }
        let value = self.open_block(body, offers);
        rest(self, value.get(state.current.len()..).unwrap_or_default());
        for (carried, leaf) in state.carried.iter_mut().zip(&value) {
            if let Some(carried) = carried {
                carried.next = self.b.scalar(leaf);
            }
        }
        // Read all of the current state before overwriting it.
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
        moves.retain(|(from, to)| from != *to);
        for (at, (from, to)) in moves.iter().enumerate() {
            // The next iteration writes all of its next state before it reads any of it.
            let is_next = !of_current(from) && state.next.iter().flatten().any(|next| next == from);
            let is_last = !moves[at + 1..].iter().any(|(other, _)| other.buffer == from.buffer);
            if is_next && is_last {
                self.b.shift(from, to);
            } else {
                self.b.settle(&Leaf::Array(from.clone()), to);
            }
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
        let targets = self.targets(var, span);
        if let Some(holds) = self.known.get(&condition) {
            return self.known_branch(if *holds { then } else { otherwise }, &targets);
        }
        let condition = self.scalar(condition);
        let types = leaves(self.function.ty(var));
        let (then, then_regs) = self.one_branch(then, &targets);
        let (otherwise, otherwise_regs) = self.one_branch(otherwise, &targets);
        let mut choices = Vec::new();
        let mut value = Value::new();
        let mut regs = then_regs.into_iter().zip(otherwise_regs);
        for (ty, target) in types.iter().zip(targets) {
            match (target.leaf(), regs.next()) {
                (Some(leaf), _) => value.push(leaf),
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

    /// Lowers a branch that is always taken.
    fn known_branch(&mut self, block: &Block, targets: &[Target]) -> Value {
        let value = self.open_block(block, targets.iter().map(Target::offer).collect());
        let mut found = Value::new();
        for (leaf, target) in value.into_iter().zip(targets) {
            self.b.bring(&leaf, target);
            found.push(target.leaf().unwrap_or(leaf));
        }
        self.b.close_frame();
        found
    }

    /// Returns the code of a branch that writes its arrays to `targets`, and the registers of its scalars.
    fn one_branch(&mut self, block: &Block, targets: &[Target]) -> (Vec<Stmt>, Vec<Option<Reg>>) {
        self.b.open_code();
        let value = self.open_block(block, targets.iter().map(Target::offer).collect());
        let mut regs = Vec::new();
        for (leaf, target) in value.iter().zip(targets) {
            self.b.bring(leaf, target);
            regs.push(matches!(target, Target::Scalar).then(|| self.b.scalar(leaf)));
        }
        self.b.close_frame();
        (self.b.close_code(), regs)
    }
}
