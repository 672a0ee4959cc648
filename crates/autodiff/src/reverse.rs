//! Reverse mode, source to source: expansion of an [`Expr::Vjp`] into ordinary code.
//!
//! Source: the future work of Shaikhha, Fitzgibbon, Vytiniotis and Peyton Jones, *Efficient differentiable programming
//! in a functional array-processing language* (2018), section 7. Scopes are recomputed instead of taped, as in Schenck,
//! Rønning, Henriksen and Oancea, *AD for an array language with nested parallelism* (2022), section 4; in place of
//! their accumulation by effects, this module sums one-hot arrays.
//!
//! Notation: `x_adj` is the cotangent of `x`. A block is first computed (`Reverse::primal`), then its statements are
//! visited from the last to the first (`Reverse::sweep`), and each propagates the cotangent of its variable to its
//! operands:
//!
//! | statement | cotangents |
//! | --- | --- |
//! | `y = op(x, ..)` | `x_adj += y_adj * partial` from the operator table (module `chain`) |
//! | `y = a[i]` | `a_adj += oneHot i y_adj` |
//! | `a = build n (fun i -> e)` | for each variable `v` around: `v_adj += sum n (fun i -> v_adj of e for a_adj[i])` |
//! | `y = sum n (fun i -> e)` | the same for `y_adj` instead of `a_adj[i]` |
//! | `y = if c then e else f` | `v_adj += if c then v_adj of e else v_adj of f` |
//! | `s = ifold (fun s i -> e) s0 n` | a reverse loop over the kept states, whose state is the cotangent of `s` |
//! | `s = ifold (fun s i -> max s e) s0 n` | those of `s = if c then e else s0`, for one step (module `winner`) |
//! | `s = while ..` | as a fold of as many steps as the loop has taken |
//! | `y = f x` for an `f` with a rule | `x_adj += rule x y y_adj` (module `custom`) |
//! | `y = (a, b)`, `y = p.k`, `y = a + b`, `y = oneHot i x` | by components, copies, elements |
//!
//! States of loops are kept, together with the expensive values of their bodies (module `tape`); or recomputed from a
//! number of checkpoints (module `checkpoints`), on request, or if the number of steps is unknown at entry (module
//! `keeping`). Of an array in which each step changes a few elements, only these are kept (module `overwritten`).
//!
//! In the scope of a loop's body in the reverse sweep, the rest of the body is recomputed: work is at most `d + 1`
//! times the function's for statements in `d` loops, and memory is that of one iteration plus the kept states of folds.
//! A structurally zero cotangent is never emitted.
//!
//! Holds: the value part is computed as in the original, in its order. The order of the terms of a cotangent is fixed
//! but unspecified: sums of cotangents may be reassociated.

mod checkpoints;
mod keeping;
mod overwritten;
mod tape;
mod winner;

pub(crate) use keeping::Keeping;
pub use keeping::{CHECKPOINTS, MadeAgain, Reason};

use crate::activity::{Activities, Activity};
use crate::chain::{self, Application};
use crate::cotangent::{self, Cotangent};
use crate::custom::{self, Direction};
use crate::emit::{At, Emitter, Scalar};
use crate::slopes::Slopes;
use chainrule_ir::{Block, Custom, Expr, Renaming, Size, StateLoop, Stmt, Type, VarId, WhileLoop};
use chainrule_ops::Op;
use checkpoints::{Advance, Stack};
use overwritten::Changes;
use std::collections::{BTreeMap, BTreeSet};
use tape::Tape;

/// Fields of an [`Expr::Vjp`]. `body` contains no derivatives.
pub(crate) struct Pullback<'a> {
    pub params: &'a [VarId],
    pub body: &'a Block,
    pub at: &'a [VarId],
    pub cotangent: VarId,
}

/// Emits the tuple of the value of the body at `params = at` and of the cotangents of `params` into the open block;
/// returns its variable. `activities` and `slopes` are those of the body.
pub(crate) fn vjp(out: &mut Emitter, activities: &Activities, slopes: &Slopes, pullback: &Pullback<'_>) -> VarId {
    let Pullback { params, body, at, cotangent } = *pullback;
    out.keeping.bounds.learn(&out.builder.vars, body);
    let naturals = out.builder.sizes().iter().copied().collect();
    let copies = params.iter().copied().zip(at.iter().copied()).collect();
    let mut reverse = Reverse {
        out,
        activities,
        slopes,
        copies,
        scopes: Vec::new(),
        local: Vec::new(),
        kept: BTreeMap::new(),
        naturals,
        numbers: BTreeSet::new(),
        tapes: BTreeMap::new(),
        winners: BTreeMap::new(),
    };
    reverse.primal(body);
    let ty = reverse.ty(body.result);
    let seed = Cotangent::of_var(reverse.out, cotangent, &ty);
    let found = reverse.swept(body, |_| seed);
    let mut parts = vec![reverse.copies.get(body.result)];
    for param in params {
        let ty = reverse.ty(*param);
        parts.push(Cotangent::pack(reverse.out, found.get(param), &ty));
    }
    reverse.out.builder.tuple(&parts)
}

/// Cotangents by variable of the body.
type Found = BTreeMap<VarId, Cotangent>;

/// Parts of `Found` that leave a block as a list of variables: each variable with the form of its cotangent.
type Forms = Vec<(VarId, Cotangent)>;

struct Reverse<'a> {
    out: &'a mut Emitter,
    activities: &'a Activities,
    slopes: &'a Slopes,
    /// Names of the body's variables in the copy in scope.
    copies: Renaming,
    /// Cotangents found so far, for each block in the reverse sweep.
    scopes: Vec<Found>,
    /// Variables bound in each block in the reverse sweep, the state of a loop included.
    local: Vec<BTreeSet<VarId>>,
    /// Access to the states of each active loop in the copy in scope.
    kept: BTreeMap<VarId, Kept>,
    /// Integers that are never negative.
    naturals: BTreeSet<VarId>,
    /// Numbers of the body that are known in the copy in scope without a statement that computes them there.
    numbers: BTreeSet<VarId>,
    /// Tapes of builds and sums of the body, each with the array of its rows.
    tapes: BTreeMap<VarId, (Tape, VarId)>,
    /// Step of each fold in scope that decides its result, -1 for none, in the copy in scope.
    winners: BTreeMap<VarId, VarId>,
}

/// Steps of a loop that was run.
#[derive(Clone)]
struct Kept {
    states: States,
    /// Number of steps.
    count: Size,
    /// Tape of each step, and the array of its rows.
    tape: Option<(Tape, VarId)>,
}

/// Source of the state before a step.
#[derive(Clone)]
enum States {
    /// Array of all states.
    Kept(VarId),
    /// The last state, and the array of what each step has overwritten.
    Overwritten { last: VarId, rows: VarId, changes: Changes },
    /// Recomputed from this initial state, with so many checkpoints.
    Again { init: VarId, checkpoints: u32 },
}

/// Head of a loop whose states are saved.
struct Head<'b> {
    count: &'b Size,
    index: VarId,
    state: VarId,
    init: VarId,
}

/// Loop with a state, for the reverse sweep.
struct Steps<'b> {
    var: VarId,
    /// Variable bound in `body`, unless the body is empty.
    index: Option<VarId>,
    state: VarId,
    init: VarId,
    body: &'b Block,
    /// Whether the result of `body` is a tuple of state, element and term.
    is_general: bool,
}

impl Reverse<'_> {
    /// Returns the type of a variable of the body, in the copy.
    fn ty(&self, var: VarId) -> Type {
        self.out.builder.rename_type(self.out.ty(var), &self.copies)
    }

    fn size(&self, size: &Size) -> Size {
        self.out.builder.rename_size(size, &self.copies)
    }

    /// Emits the statements of `block` into the open block.
    fn primal(&mut self, block: &Block) {
        for stmt in &block.stmts {
            if self.numbers.contains(&stmt.var) {
                continue;
            }
            self.out.set_span(stmt.span);
            let active = *self.activities.get(stmt.var) != Activity::Inactive;
            match &stmt.expr {
                _ if self.tapes.contains_key(&stmt.var) => self.again(stmt),
                Expr::Fold(_) if active && self.select(stmt) => {}
                Expr::Fold(_) | Expr::Loop(_) | Expr::While(_) if active && self.forget(stmt) => {}
                Expr::Fold(StateLoop { count, index, state, init, body }) if active => {
                    let tape = self.tape(body, self.out.ty(*state));
                    let head = Head { count, index: *index, state: *state, init: *init };
                    self.keep(stmt, &head, tape, |this, tape| {
                        let (next, row) = this.taping(body, tape);
                        let nothing = this.out.builder.tuple(&[]);
                        ([next, nothing, nothing], row)
                    });
                }
                Expr::Loop(_) | Expr::While(_) if active => self.keep_other(stmt),
                _ => self.alone(stmt),
            }
        }
    }

    /// Emits a loop whose states are recomputed from checkpoints. Does nothing if they are to be kept.
    fn forget(&mut self, stmt: &Stmt) -> bool {
        let Some(checkpoints) = self.checkpoints(stmt) else { return false };
        let (count, init) = match &stmt.expr {
            Expr::Fold(StateLoop { count, init, .. }) | Expr::Loop(StateLoop { count, init, .. }) => (count, *init),
            Expr::While(WhileLoop { limit, init, .. }) => (limit, *init),
            _ => return false,
        };
        let init = self.copies.get(init);
        let count = match &stmt.expr {
            Expr::While(steps) => {
                let (last, count) = self.run_while(steps);
                self.copies.insert(stmt.var, last);
                count
            }
            _ => {
                let count = self.size(count);
                let alone = Block { stmts: vec![stmt.clone()], result: stmt.var };
                self.out.builder.inline(&alone, &mut self.copies);
                self.natural(count)
            }
        };
        self.kept.insert(stmt.var, Kept { states: States::Again { init, checkpoints }, count, tape: None });
        true
    }

    /// Emits a loop, and keeps the state before each step and the values of `tape`. `body` emits an iteration and
    /// returns the next state, the element and the term, and the row of the tape.
    fn keep(
        &mut self,
        stmt: &Stmt,
        head: &Head<'_>,
        tape: Tape,
        body: impl FnOnce(&mut Self, &Tape) -> ([VarId; 3], VarId),
    ) -> VarId {
        let Head { count, index, state, init } = *head;
        let changes = match &stmt.expr {
            Expr::Fold(StateLoop { body, .. }) => self.changes(Some(index), state, body, body.result),
            Expr::Loop(StateLoop { body, .. }) => self.changes_of_general(index, state, body),
            _ => None,
        };
        let mut count = self.size(count);
        if !matches!(stmt.expr, Expr::Loop(_)) {
            count = self.natural(count);
        }
        let init = self.copies.get(init);
        let index_copy = self.out.builder.fresh(Type::Int);
        self.naturals.insert(index_copy);
        let ty = self.ty(state);
        let state_copy = self.out.fresh_like(ty, state, "");
        self.copies.insert(index, index_copy);
        self.copies.insert(state, state_copy);
        self.out.open();
        // What a step overwrites is read before it is.
        let before = changes.as_ref().map_or(state_copy, |changes| self.overwritten(changes, state_copy));
        let ([next, element, term], row) = body(self, &tape);
        let parts = [before, element, row];
        let element = self.out.builder.tuple(if tape.is_empty() { &parts[..2] } else { &parts });
        let triple = self.out.builder.tuple(&[next, element, term]);
        let body = self.out.close(triple);
        self.out.set_span(stmt.span);
        let whole = self.out.builder.compute(Expr::Loop(StateLoop {
            count: count.clone(),
            index: index_copy,
            state: state_copy,
            init,
            body,
        }));
        let last = self.out.component(whole, 0);
        if !matches!(stmt.expr, Expr::Loop(_)) {
            self.copies.insert(stmt.var, last);
        }
        let rows = self.out.component(whole, 1);
        let states = self.out.build(count.clone(), &mut |out, i| {
            let row = out.element(rows, i);
            out.component(row, 0)
        });
        let tape = (!tape.is_empty()).then(|| {
            let kept = self.out.build(count.clone(), &mut |out, i| {
                let row = out.element(rows, i);
                out.component(row, 2)
            });
            (tape, kept)
        });
        let states = match changes {
            Some(changes) => States::Overwritten { last, rows: states, changes },
            None => States::Kept(states),
        };
        self.kept.insert(stmt.var, Kept { states, count, tape });
        whole
    }

    fn keep_other(&mut self, stmt: &Stmt) {
        match &stmt.expr {
            Expr::Loop(StateLoop { count, index, state, init, body }) => {
                let tape = self.tape(body, self.out.ty(*state));
                let head = Head { count, index: *index, state: *state, init: *init };
                let whole = self.keep(stmt, &head, tape, |this, tape| {
                    let (triple, row) = this.taping(body, tape);
                    ([0, 1, 2].map(|k| this.out.component(triple, k)), row)
                });
                let [last, rows, sum] = [0, 1, 2].map(|k| self.out.component(whole, k));
                let elements = self.out.build(self.out.builder.length(rows), &mut |out, i| {
                    let row = out.element(rows, i);
                    out.component(row, 1)
                });
                let copy = self.out.builder.tuple(&[last, elements, sum]);
                self.copies.insert(stmt.var, copy);
            }
            Expr::While(steps) => {
                let WhileLoop { state, init, body, .. } = steps;
                let (_, count) = self.run_while(steps);
                let index = self.out.builder.fresh(Type::Int);
                let tape = self.tape(body, self.out.ty(*state));
                let head = Head { count: &count, index, state: *state, init: *init };
                self.keep(stmt, &head, tape, |this, tape| {
                    let (next, row) = this.taping(body, tape);
                    let nothing = this.out.builder.tuple(&[]);
                    ([next, nothing, nothing], row)
                });
            }
            _ => {}
        }
    }

    /// Emits a `while`; returns its last state and its number of steps.
    fn run_while(&mut self, steps: &WhileLoop) -> (VarId, Size) {
        let WhileLoop { limit, state, init, condition, body } = steps;
        let (limit, state) = (self.size(limit), *state);
        let zero = self.out.builder.int(0);
        let init = self.copies.get(*init);
        let init = self.out.builder.tuple(&[init, zero]);
        let pair = self.out.builder.fresh(self.out.ty(init).clone());
        self.out.open();
        let part = self.out.component(pair, 0);
        self.copies.insert(state, part);
        let holds = self.out.builder.inline(condition, &mut self.copies);
        let condition = self.out.close(holds);
        self.out.open();
        let (part, steps) = (self.out.component(pair, 0), self.out.component(pair, 1));
        self.copies.insert(state, part);
        let next = self.out.builder.inline(body, &mut self.copies);
        let one = self.out.builder.int(1);
        let steps = self.out.builder.op(Op::Add, &[steps, one]);
        let next = self.out.builder.tuple(&[next, steps]);
        let body = self.out.close(next);
        let last = Expr::While(WhileLoop { limit: limit.clone(), state: pair, init, condition, body });
        let last = self.out.builder.compute(last);
        let (last, steps) = (self.out.component(last, 0), self.out.component(last, 1));
        // The number of steps is at most the limit, which bounds the memory of the states.
        let limit = self.out.builder.size(limit);
        let steps = self.out.builder.compute(Expr::op(Op::Min, &[steps, limit]));
        (last, self.natural(Size::var(steps)))
    }

    /// Emits `size`, or 0 if it may be negative.
    fn natural(&mut self, size: Size) -> Size {
        if size.terms().all(|(vars, c)| c >= 0 && vars.iter().all(|var| self.naturals.contains(var))) {
            return size;
        }
        let (size, zero) = (self.out.builder.size(size), self.out.builder.int(0));
        let max = self.out.builder.compute(Expr::op(Op::Max, &[size, zero]));
        self.naturals.insert(max);
        Size::var(max)
    }

    /// Runs the reverse sweep of `block`, which has been computed in the open block, with `seed` as the cotangent of
    /// its result. Returns the cotangents of the variables bound outside.
    fn swept(&mut self, block: &Block, seed: impl FnOnce(&mut Self) -> Cotangent) -> Found {
        self.swept_with(block, None, seed)
    }

    /// As [`Self::swept`], for the body of a loop with a state.
    fn swept_with(&mut self, block: &Block, state: Option<VarId>, seed: impl FnOnce(&mut Self) -> Cotangent) -> Found {
        self.scopes.push(Found::new());
        self.local.push(block.stmts.iter().map(|stmt| stmt.var).chain(state).collect());
        let seed = seed(self);
        self.add(block.result, seed);
        for stmt in block.stmts.iter().rev() {
            if let Some(adj) = self.scopes.last_mut().and_then(|found| found.remove(&stmt.var)) {
                self.out.set_span(stmt.span);
                self.transpose(stmt, adj);
            }
        }
        self.local.pop();
        self.scopes.pop().unwrap_or_default()
    }

    /// Emits `var_adj += adj`.
    fn add(&mut self, var: VarId, adj: Cotangent) {
        let Some(adj) = adj.restricted(self.activities.get(var)) else { return };
        let Some(found) = self.scopes.last_mut() else { return };
        let sum = match found.remove(&var) {
            Some(before) => before.plus(self.out, adj),
            None => adj,
        };
        found.insert(var, sum);
    }

    fn transpose(&mut self, stmt: &Stmt, adj: Cotangent) {
        match (&stmt.expr, adj) {
            (Expr::Op(op, args), Cotangent::Double(adj)) => self.op(stmt.var, *op, args, adj),
            (Expr::Tuple(fields), Cotangent::Tuple(parts)) => {
                for (field, part) in fields.iter().zip(parts) {
                    if let Some(part) = part {
                        self.add(*field, part);
                    }
                }
            }
            (Expr::Component(tuple, k), adj) => {
                if let Type::Tuple(fields, _) = self.out.ty(*tuple) {
                    let mut parts = vec![None; fields.len()];
                    parts[*k] = Some(adj);
                    self.add(*tuple, Cotangent::Tuple(parts));
                }
            }
            (Expr::Get { array, index, proved }, adj) => {
                let ty = self.ty(stmt.var);
                let value = Cotangent::pack(self.out, Some(&adj), &ty);
                let index = self.copies.get(*index);
                if let Some(whole) = self.ty(*array).tangent() {
                    let hot = self.out.builder.emit(Expr::OneHot { index, value, proved: *proved }, whole);
                    self.add(*array, Cotangent::Array(hot));
                }
            }
            (Expr::OneHot { index, value, proved }, Cotangent::Array(adj)) => {
                let index = self.copies.get(*index);
                let element = self.out.get(adj, At { index, proved: *proved });
                let ty = self.ty(*value);
                let element = Cotangent::of_var(self.out, element, &ty);
                self.add(*value, element);
            }
            (Expr::Array(elements), Cotangent::Array(adj)) => {
                for (k, element) in (0..).zip(elements) {
                    let index = self.out.builder.int(k);
                    let part = self.out.element(adj, index);
                    let ty = self.ty(*element);
                    let part = Cotangent::of_var(self.out, part, &ty);
                    self.add(*element, part);
                }
            }
            (Expr::Plus(a, b), adj) => {
                self.add(*a, adj.clone());
                self.add(*b, adj);
            }
            (Expr::Build { size, index, body }, Cotangent::Array(adj)) => {
                self.terms(stmt.var, size, *index, body, |this, i| {
                    let element = this.out.element(adj, i);
                    let ty = this.ty(body.result);
                    Cotangent::of_var(this.out, element, &ty)
                });
            }
            (Expr::Sum { count, index, body }, adj) => self.terms(stmt.var, count, *index, body, |_, _| adj),
            (Expr::If { condition, then, otherwise }, adj) => {
                let condition = self.copies.get(*condition);
                self.branches(condition, then, otherwise, &adj);
            }
            (Expr::Fold(steps), Cotangent::Double(adj)) if self.winners.contains_key(&stmt.var) => {
                self.selected(stmt.var, steps, self.winners[&stmt.var], adj);
            }
            (Expr::Fold(StateLoop { index, state, init, body, .. }), adj) => {
                let (var, index, is_general) = (stmt.var, Some(*index), false);
                let steps = Steps { var, index, state: *state, init: *init, body, is_general };
                self.steps(&steps, Some(adj), |_, _, next| next);
            }
            (Expr::While(WhileLoop { state, init, body, .. }), adj) => {
                let (var, index, is_general) = (stmt.var, None, false);
                let steps = Steps { var, index, state: *state, init: *init, body, is_general };
                self.steps(&steps, Some(adj), |_, _, next| next);
            }
            (Expr::Loop(StateLoop { index, state, init, body, .. }), Cotangent::Tuple(parts)) => {
                let [last, elements, sum] = <[_; 3]>::try_from(parts).unwrap_or_default();
                let (var, index, is_general) = (stmt.var, Some(*index), true);
                let steps = Steps { var, index, state: *state, init: *init, body, is_general };
                self.steps(&steps, last, |this, i, next| {
                    let element = match (elements, this.out.ty(body.result)) {
                        (Some(Cotangent::Array(adj)), Type::Tuple(types, _)) => {
                            let ty = this.out.builder.rename_type(&types[1], &this.copies);
                            let element = this.out.element(adj, i);
                            Some(Cotangent::of_var(this.out, element, &ty))
                        }
                        _ => None,
                    };
                    Cotangent::Tuple(vec![Some(next), element, sum])
                });
            }
            (Expr::Custom(custom), adj) => self.custom(stmt.var, custom, &adj),
            // The other expressions have no active operand.
            _ => {}
        }
    }

    fn op(&mut self, var: VarId, op: Op, args: &[VarId], adj: Scalar) {
        let active: Vec<bool> = args.iter().map(|arg| *self.activities.get(*arg) == Activity::Active).collect();
        let copies: Vec<VarId> = args.iter().map(|arg| self.copies.get(*arg)).collect();
        let value = self.copies.get(var);
        let adj = (adj, self.slopes.get(var));
        let application = Application { op, args: &copies, value };
        for (arg, part) in args.iter().zip(chain::cotangents(self.out, application, &active, adj)) {
            if let Some(part) = part {
                self.add(*arg, Cotangent::Double(part));
            }
        }
    }

    /// Propagates through a function with its own rule.
    fn custom(&mut self, var: VarId, custom: &Custom, adj: &Cotangent) {
        let (at, value, ty) = (self.copies.get(custom.at), self.copies.get(var), self.ty(var));
        let packed = Cotangent::pack(self.out, Some(adj), &ty);
        let cotangent = cotangent::widened(self.out, packed, value, &ty);
        let (args, builder) = ([at, value, cotangent], &mut self.out.builder);
        let Some(rule) = custom::rule(builder, custom, Direction::Reverse, args, &mut self.copies.clone()) else {
            return;
        };
        rule.stmts.into_iter().for_each(|stmt| builder.push(stmt));
        let found = rule.result;
        let ty = self.ty(custom.at);
        let found = cotangent::narrowed(self.out, found, &ty);
        self.add(custom.at, found);
    }

    /// Propagates through a build or a sum: the cotangents of outer variables are sums over its iterations.
    fn terms(
        &mut self,
        var: VarId,
        count: &Size,
        index: VarId,
        body: &Block,
        seed: impl FnOnce(&mut Self, VarId) -> Cotangent,
    ) {
        let span = self.out.span();
        let count = self.size(count);
        let i = self.out.builder.fresh(Type::Int);
        self.naturals.insert(i);
        self.copies.insert(index, i);
        self.out.open();
        let tape = self.enter_iteration(var, i);
        self.primal(body);
        let found = self.swept(body, |this| seed(this, i));
        tape.iter().for_each(|tape| self.leave_tape(tape));
        let (forms, term) = self.leaving(&found);
        let body = self.out.close(term);
        self.out.set_span(span);
        if !forms.is_empty() {
            let sum = self.out.builder.compute(Expr::Sum { count, index: i, body });
            self.arrived(&forms, sum);
        }
    }

    /// Returns all of `found` as one variable, with its form.
    fn leaving(&mut self, found: &Found) -> (Forms, VarId) {
        let forms: Forms = found.iter().map(|(var, adj)| (*var, adj.clone())).collect();
        let term = self.flat(&forms, found);
        (forms, term)
    }

    /// Returns the leaves of `forms` in `found` as one variable: the leaf if there is one, or a tuple.
    fn flat(&mut self, forms: &Forms, found: &Found) -> VarId {
        let mut leaves = Vec::new();
        for (var, form) in forms {
            let ty = self.ty(*var);
            Cotangent::flatten(self.out, found.get(var), form, &ty, &mut leaves);
        }
        match leaves.as_slice() {
            [leaf] => *leaf,
            _ => self.out.builder.tuple(&leaves),
        }
    }

    /// Adds the cotangents in `whole`, which a block has returned, to those of the enclosing block.
    fn arrived(&mut self, forms: &Forms, whole: VarId) {
        for (var, adj) in self.unflat(forms, whole) {
            self.add(var, adj);
        }
    }

    /// Inverse of [`Self::flat`].
    fn unflat(&mut self, forms: &Forms, whole: VarId) -> Forms {
        let n: usize = forms.iter().map(|(_, form)| form.n_leaves()).sum();
        let leaves: Vec<VarId> =
            if n == 1 { vec![whole] } else { (0..n).map(|k| self.out.component(whole, k)).collect() };
        let mut leaves = leaves.into_iter();
        forms.iter().map(|(var, form)| (*var, form.filled(self.out, &mut leaves))).collect()
    }

    /// Propagates through a branch; `condition` is a variable of the copy.
    fn branches(&mut self, condition: VarId, then: &Block, otherwise: &Block, adj: &Cotangent) {
        let span = self.out.span();
        let sides = [then, otherwise].map(|block| {
            self.out.open();
            self.primal(block);
            let found = self.swept(block, |_| adj.clone());
            // The form of the result is known after both sides.
            (self.out.close(condition), found)
        });
        let mut joined = sides[0].1.clone();
        for (var, adj) in &sides[1].1 {
            let form = joined.get(var).map_or_else(|| adj.clone(), |form| form.joined(adj));
            joined.insert(*var, form);
        }
        let forms: Forms = joined.into_iter().collect();
        if forms.is_empty() {
            return;
        }
        let [then, otherwise] = sides.map(|(block, found)| {
            self.out.open();
            for stmt in block.stmts {
                self.out.builder.push(stmt);
            }
            let result = self.flat(&forms, &found);
            self.out.close(result)
        });
        self.out.set_span(span);
        let whole = self.out.builder.compute(Expr::If { condition, then, otherwise });
        self.arrived(&forms, whole);
    }

    /// Propagates through a loop with a state, from the last step to the first. `seed` computes the cotangent of the
    /// body's result from that of the next state, in step `i`.
    fn steps(
        &mut self,
        steps: &Steps<'_>,
        last: Option<Cotangent>,
        seed: impl FnOnce(&mut Self, VarId, Cotangent) -> Cotangent,
    ) {
        let span = self.out.span();
        let state_ty = self.ty(steps.state);
        let activity = self.activities.get(steps.state).clone();
        let Some(kept) = self.kept.get(&steps.var).cloned() else { return };
        // If the state has no cotangent, the iterations are independent.
        let form = Cotangent::form(&state_ty, &activity).unwrap_or(Cotangent::Tuple(Vec::new()));
        let state_forms: Forms = vec![(steps.state, form)];
        let last = self.flat(&state_forms, &last.into_iter().map(|adj| (steps.state, adj)).collect());
        let whole_init = self.sweep_from(&kept.states, last);
        let whole_state = self.out.fresh_like(self.out.ty(whole_init).clone(), steps.state, "_adj");
        let back = self.out.builder.fresh(Type::Int);
        self.naturals.insert(back);
        self.out.open();
        let i = self.out.builder.size(kept.count.sub(&Size::var(back)).sub(&Size::constant(1)));
        if let Some(index) = steps.index {
            self.copies.insert(index, i);
        }
        let (state_adj, state, stack) = self.before_step(steps, &kept, whole_state, i);
        self.copies.insert(steps.state, state);
        if let Some((tape, rows)) = &kept.tape {
            let row = self.out.element(*rows, i);
            self.enter_tape(tape, row);
        }
        self.primal(steps.body);
        let mut found = self.swept_with(steps.body, Some(steps.state), |this| {
            let next = this.unflat(&state_forms, state_adj).pop();
            let next = next.map_or(Cotangent::Tuple(Vec::new()), |(_, adj)| adj);
            seed(this, i, next)
        });
        kept.tape.iter().for_each(|(tape, _)| self.leave_tape(tape));
        let state_found: Found = found.remove_entry(&steps.state).into_iter().collect();
        let mut next = self.flat(&state_forms, &state_found);
        if let Some(stack) = stack {
            let [states, places, top] = stack.popped(self.out, i).parts();
            next = self.out.builder.tuple(&[next, states, places, top]);
        } else if let States::Overwritten { .. } = kept.states {
            next = self.out.builder.tuple(&[next, self.copies.get(steps.state)]);
        }
        let (forms, term) = self.leaving(&found);
        let element = self.out.builder.tuple(&[]);
        let triple = self.out.builder.tuple(&[next, element, term]);
        let body = self.out.close(triple);
        self.out.set_span(span);
        let count = kept.count;
        let expr = Expr::Loop(StateLoop { count, index: back, state: whole_state, init: whole_init, body });
        let whole = self.out.builder.compute(expr);
        let (mut first, sum) = (self.out.component(whole, 0), self.out.component(whole, 2));
        match kept.states {
            States::Kept(_) => {}
            States::Overwritten { .. } => {
                // The same state again: code after this reads it where the sweep has left it.
                let again = self.out.component(first, 1);
                if self.local.last().is_some_and(|local| local.contains(&steps.init)) {
                    self.copies.insert(steps.init, again);
                }
                first = self.out.component(first, 0);
            }
            States::Again { .. } => first = self.out.component(first, 0),
        }
        if let Some((_, adj)) = self.unflat(&state_forms, first).pop() {
            self.add(steps.init, adj);
        }
        self.arrived(&forms, sum);
    }

    /// Returns the state from which the sweep of a loop begins: `cotangent`, that of the last state, with the means to
    /// restore earlier states.
    fn sweep_from(&mut self, states: &States, cotangent: VarId) -> VarId {
        match *states {
            States::Kept(_) => cotangent,
            States::Overwritten { last, .. } => self.out.builder.tuple(&[cotangent, last]),
            States::Again { init, checkpoints } => {
                let [states, places, top] = Stack::new(self.out, checkpoints, init).parts();
                self.out.builder.tuple(&[cotangent, states, places, top])
            }
        }
    }

    /// Returns, from the sweep's state `whole` after step `i` of the loop, the cotangent of the loop's state, the state
    /// before the step, and the checkpoints that remain, if there are some.
    fn before_step(&mut self, steps: &Steps<'_>, kept: &Kept, whole: VarId, i: VarId) -> (VarId, VarId, Option<Stack>) {
        match &kept.states {
            States::Kept(states) => (whole, self.out.element(*states, i), None),
            States::Overwritten { rows, changes, .. } => {
                let cotangent = self.out.component(whole, 0);
                let after = self.out.component(whole, 1);
                let row = self.out.element(*rows, i);
                (cotangent, self.put_back(changes, after, row), None)
            }
            States::Again { .. } => {
                let cotangent = self.out.component(whole, 0);
                let before = Stack::from_parts(self.out, whole, 1);
                let Steps { index, state, body, is_general, .. } = *steps;
                let advance = Advance { index, state, body, is_general };
                let (state, after) = self.state_again(&advance, before, i, &kept.count);
                (cotangent, state, Some(after))
            }
        }
    }
}
