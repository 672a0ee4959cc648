//! Expansion of every derivative in a program into ordinary code, inner ones first: [`Expr::Jvp`] by forward mode,
//! source to source, in this module; [`Expr::Vjp`] by reverse mode (module `reverse`).
//!
//! Source: Shaikhha, Fitzgibbon, Vytiniotis, Peyton Jones and Koch, *Efficient differentiable
//! programming in a functional array-processing language* (2018), section 3.2, figure 6.
//!
//! | figure 6 | here |
//! | --- | --- |
//! | D⟦e⟧ | `Dual`: value and tangent |
//! | V⟦e⟧, T⟦e⟧ (D-NumV, D-NumT) | `Dual::Pair { value, tangent }` |
//! | x⃗ (D-Var) | `Forward::duals[x]` |
//! | D-Abs, D-App | functions are inlined before; [`Expr::Jvp`] is D⟦fun⟧ applied (`Forward::jvp`) |
//! | D-Let | a statement (`Forward::stmt`) |
//! | D-If | `Forward::branches`; the condition's value alone is looked at |
//! | D-Build | `Forward::build` |
//! | D-IFold | `Forward::fold`; ours besides: `Forward::while_loop`, `Forward::sum` |
//! | D-Get, D-Length | `dual::get`; lengths are sizes, which stay |
//! | D-Pair | `Dual::Tuple` |
//! | D-Fst, D-Snd | `dual::component` |
//! | D-Neg, D-Add, D-Mul, and so on | `chain::tangent`, from the operator table |
//!
//! Difference from the paper: variables that do not depend on the parameters are inactive and stay unchanged (module
//! `activity`), while the paper pairs them with zeros; so a constant exponent is recognised as one.
//!
//! In: a function. Out: a function with the same parameters and result without [`Expr::Jvp`]. Holds: the value part is
//! computed once, with the operations of the original in their order, and no loop is duplicated. A variable whose value
//! occurs in the result keeps its name.
//!
//! **Nested derivatives.** The inner derivative is expanded first; it is then ordinary code, in which the variables of
//! the outer function, tangents included, are ordinary variables. Each expansion has its own tangent *variables*, and a
//! variable from outside a body is inactive in it, so the perturbations of two derivatives cannot be confused (section
//! 3.3).

use crate::activity::{Activities, Activity};
use crate::bounds::Bounds;
use crate::chain::{self, Application};
use crate::custom::{self, Direction};
use crate::dual::{self, Dual, Half};
use crate::emit::{At, Emitter, Scalar};
use crate::lift::Temporaries;
use crate::reverse::{self, MadeAgain, Pullback};
use crate::slopes::Slopes;
use crate::tidy::{self, Tidier};
use crate::useful::Useful;
use chainrule_base::{Diagnostic, Diagnostics, Id, Name, Span};
use chainrule_ir::{
    Block, Builder, Custom, Expr, Function, Operands, Renaming, Rule, RuleBlock, Size, StateLoop, Stmt, Type, VarId,
    WhileLoop,
};
use chainrule_ops::{Factor, Op};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Expands every derivative in `function`. Linear in its size for each level of nesting.
///
/// # Errors
/// Only by a bug: every function that the verifier accepts can be expanded.
pub fn expand(function: &Function) -> Result<Function, Diagnostics> {
    expand_with(function, None)
}

/// Does the same, but reverse mode keeps at most `checkpoints` states of each loop in memory (at least one) instead of
/// all, and recomputes the others.
///
/// # Errors
/// The errors of [`expand`].
pub fn expand_with(function: &Function, checkpoints: Option<u32>) -> Result<Function, Diagnostics> {
    expand_told(function, checkpoints).map(|(expanded, _)| expanded)
}

/// Does the same as [`expand_with`], and returns the loops that got checkpoints although none were requested.
///
/// # Errors
/// The errors of [`expand`].
pub fn expand_told(function: &Function, checkpoints: Option<u32>) -> Result<(Function, Vec<MadeAgain>), Diagnostics> {
    let (mut expanded, made_again) = derivatives_told(function, checkpoints)?;
    custom::lower(&mut expanded);
    tidy::function(&mut expanded);
    Ok((expanded, made_again))
}

/// Does the same as [`expand`], but keeps the rules of functions that state their own derivative, for a later
/// derivative.
pub(crate) fn derivatives(function: &Function, checkpoints: Option<u32>) -> Result<Function, Diagnostics> {
    derivatives_told(function, checkpoints).map(|(expanded, _)| expanded)
}

fn derivatives_told(function: &Function, checkpoints: Option<u32>) -> Result<(Function, Vec<MadeAgain>), Diagnostics> {
    let mut out = Emitter::new(Builder::rewriting(function));
    out.keeping.asked = checkpoints;
    out.keeping.bounds = Bounds::of(function);
    let mut forward = Forward {
        out,
        duals: Vec::new(),
        activities: Activities::default(),
        useful: Useful::default(),
        temporaries: Temporaries::default(),
        slopes: Slopes::default(),
        size_of: BTreeMap::new(),
        zeros: FxHashSet::default(),
        tidier: Tidier::default(),
        diagnostics: Diagnostics::new(),
    };
    for stmt in function.body.stmts.clone() {
        forward.stmt(stmt);
    }
    let result = forward.plain(function.body.result);
    let Forward { mut out, diagnostics, .. } = forward;
    let made_again = std::mem::take(&mut out.keeping.made_again);
    diagnostics.into_result((out.finish(result), made_again))
}

/// Maximum number of statements in a body that contains derivatives of derivatives. Each reverse mode through a loop
/// computes the loop again, so that such bodies may grow exponentially with the order.
const MAX_NESTED: usize = 60_000;

/// Returns the number of derivatives in `block` that contain one another.
// Recursive on the nesting of blocks.
fn order(block: &Block) -> usize {
    let of = |stmt: &Stmt| {
        let inner = stmt.expr.blocks().into_iter().map(order).max().unwrap_or(0);
        inner + usize::from(matches!(stmt.expr, Expr::Jvp { .. } | Expr::Vjp { .. }))
    };
    block.stmts.iter().map(of).max().unwrap_or(0)
}

/// Returns the number of statements in `block`.
// Recursive on the nesting of blocks.
fn n_stmts(block: &Block) -> usize {
    block.stmts.iter().map(|stmt| 1 + stmt.expr.blocks().into_iter().map(n_stmts).sum::<usize>()).sum()
}

/// Returns a limitation if `body`, a derivative of the order, is too long.
pub(crate) fn check_length(order: usize, body: &Block) -> Result<(), Diagnostics> {
    if n_stmts(body) > MAX_NESTED { Err(too_long(order, None).into()) } else { Ok(()) }
}

fn too_long(order: usize, span: Option<Span>) -> Diagnostic {
    let message = Diagnostic::limitation("a derivative of derivatives is too long")
        .with_reason(format!("the derivative of order {order} has more than {MAX_NESTED} operations"))
        .with_help("take fewer derivatives of derivatives, or replace inner gradients by `jvp` or `derivative`");
    match span {
        Some(span) => message.with_label(span, "to be differentiated here"),
        None => message,
    }
}

struct Forward {
    out: Emitter,
    /// Dual number of each variable that has one; the others are inactive and represent themselves.
    duals: Vec<Option<Dual>>,
    /// Activities of the body under differentiation; while code is only copied, every variable is inactive.
    activities: Activities,
    useful: Useful,
    temporaries: Temporaries,
    /// Slopes of its tangents, or its cotangents.
    slopes: Slopes,
    /// Replaced integers, with their values as sizes.
    size_of: BTreeMap<VarId, Size>,
    /// Structurally zero variables.
    zeros: FxHashSet<VarId>,
    tidier: Tidier,
    diagnostics: Diagnostics,
}

impl Forward {
    fn stmt(&mut self, Stmt { var, expr, span }: Stmt) {
        self.out.set_span(span);
        let active = *self.activities.get(var) != Activity::Inactive;
        match expr {
            Expr::Jvp { params, body, at, along } => self.jvp(var, &params, body, &at, &along),
            Expr::Vjp { params, body, at, cotangent } => self.vjp(var, &params, body, &at, cotangent),
            Expr::Get { array, index, proved } if self.has_dual(array) => {
                let (array, index) = (self.dual(array), self.plain(index));
                let element = dual::get(&mut self.out, &array, At { index, proved });
                self.bind(var, element);
            }
            Expr::Component(tuple, k) if self.has_dual(tuple) => {
                let tuple = self.dual(tuple);
                let part = dual::component(&mut self.out, &tuple, k);
                self.bind(var, part);
            }
            expr if !active => self.inactive(var, expr),
            Expr::Op(op, args) => self.op(var, op, &args),
            Expr::Tuple(fields) => {
                let parts = fields.iter().map(|field| self.dual(*field)).collect();
                self.bind(var, Dual::Tuple(parts));
            }
            Expr::Array(elements) => {
                let activity = self.activities.get(var).element();
                let elements = elements.iter().map(|element| self.pack(*element, &activity)).collect();
                self.bind_packed(var, Expr::Array(elements), span);
            }
            Expr::Build { size, index, body } => self.build(var, &size, index, body),
            Expr::Fold(steps) => self.fold(var, steps),
            Expr::Sum { count, index, body } => self.sum(var, &count, index, body),
            Expr::Loop(steps) => self.loop_(var, steps),
            Expr::OneHot { index, value, proved } => {
                let (index, element) = (self.plain(index), self.activities.get(var).element());
                let value = self.pack(value, &element);
                self.bind_packed(var, Expr::OneHot { index, value, proved }, span);
            }
            Expr::Plus(a, b) => {
                let activity = self.activities.get(var).clone();
                let (a, b) = (self.pack(a, &activity), self.pack(b, &activity));
                self.bind_packed(var, Expr::Plus(a, b), span);
            }
            Expr::While(steps) => self.while_loop(var, steps),
            Expr::If { condition, then, otherwise } => self.branches(var, condition, then, otherwise),
            Expr::Custom(custom) => self.custom(var, *custom),
            // These are active only if their operand is, which the cases above handle.
            expr => self.inactive(var, expr),
        }
    }

    /// Differentiates a function with its own rule: the value stays a call, and the rule computes the tangent.
    fn custom(&mut self, var: VarId, custom: Custom) {
        let span = self.out.span();
        let (dual, ty) = (self.dual(custom.at), self.ty(custom.at));
        let at = dual::split(&mut self.out, &dual, &ty, Half::Value);
        let along = dual::split(&mut self.out, &dual, &ty, Half::Tangent);
        let (args, builder) = ([at, var, along], &mut self.out.builder);
        let Some(rule) = custom::rule(builder, &custom, Direction::Forward, args, &mut Renaming::new()) else { return };
        // The point may be a variable that has a tangent itself: here only its value is used.
        let of_point = self.duals.get_mut(at.index()).and_then(Option::take);
        // Emits the value first; replacements in its blocks and in the rule are as elsewhere.
        self.inactive(var, Expr::Custom(Box::new(Custom { at, ..custom })));
        for stmt in rule.stmts {
            self.stmt(stmt);
        }
        let tangent = self.plain(rule.result);
        if of_point.is_some() {
            self.duals[at.index()] = of_point;
        }
        self.out.set_span(span);
        let dual = dual::zip(&self.out, var, tangent);
        self.bind(var, dual);
    }

    /// Reports an error if a function with a rule captures an active variable, for which the rule has no derivative.
    fn check_captured(&mut self, block: &Block) {
        let captured = custom::captured(block, &|var| *self.activities.get(var) != Activity::Inactive);
        for (var, span) in captured {
            self.diagnostics.push(custom::captures(&self.out.builder.vars, var, span));
        }
    }

    /// Returns `body` with the inner derivatives expanded and cleaned up, and whether there were any.
    fn derived(&mut self, body: Block) -> (Block, bool) {
        let (order, span) = (order(&body), self.out.span());
        let mut body = self.block(body);
        match order {
            0 => self.tidier.block(&self.out.builder.vars, &mut body),
            _ => self.tidier.shared(&mut self.out.builder.vars, &mut body),
        }
        if order >= 2 && n_stmts(&body) > MAX_NESTED {
            // Goes on with something short.
            body.stmts = vec![Stmt { var: body.result, expr: Expr::Zero, span }];
            if !self.diagnostics.has_errors() {
                self.diagnostics.push(too_long(order, span));
            }
        }
        (body, order > 0)
    }

    /// Emits D⟦fun params -> body⟧ applied to `(at, along)`.
    fn jvp(&mut self, var: VarId, params: &[VarId], body: Block, at: &[VarId], along: &[VarId]) {
        let span = self.out.span();
        // Expands inner derivatives first, and removes dead code so that it is not differentiated.
        let (body, is_nested) = self.derived(body);
        self.activities.analyse(&self.out.builder.vars, params, &body);
        self.check_captured(&body);
        if is_nested {
            self.useful.restrict(&mut self.activities, &self.out.builder.vars, &body);
        }
        self.temporaries.lift(&mut self.activities, &self.out.builder.vars, &body);
        self.slopes.of_tangents(&self.out, &self.activities, params, &body);
        self.out.set_span(span);
        for ((param, at), along) in params.iter().zip(at).zip(along) {
            let (at, along) = (self.plain(*at), self.plain(*along));
            let dual = dual::zip(&self.out, at, along);
            self.bind(*param, dual);
        }
        for stmt in body.stmts {
            self.stmt(stmt);
        }
        self.out.set_span(span);
        let full = Activity::full(self.out.ty(body.result));
        let result = self.pack(body.result, &full);
        self.bind(var, Dual::Plain(result));
    }

    /// Applies reverse mode after the inner derivatives are expanded.
    fn vjp(&mut self, var: VarId, params: &[VarId], body: Block, at: &[VarId], cotangent: VarId) {
        let span = self.out.span();
        let (body, _) = self.derived(body);
        self.activities.analyse(&self.out.builder.vars, params, &body);
        self.check_captured(&body);
        self.out.set_span(span);
        let (at, cotangent) = (self.plains(at), self.plain(cotangent));
        self.slopes.of_cotangents(&self.out, &self.activities, params, &body);
        let pullback = Pullback { params, body: &body, at: &at, cotangent };
        let parts = reverse::vjp(&mut self.out, &self.activities, &self.slopes, &pullback);
        self.bind(var, Dual::Plain(parts));
    }

    /// Emits the value unchanged and the tangent by the chain rule.
    fn op(&mut self, var: VarId, op: Op, args: &[VarId]) {
        let tangents: Vec<Option<Scalar>> = args.iter().map(|arg| self.tangent(*arg)).collect();
        let factors: Vec<Factor> = args.iter().map(|arg| self.slopes.get(*arg)).collect();
        let args: Operands = args.iter().map(|arg| self.plain(*arg)).collect();
        self.out.bind(var, Expr::Op(op, args.clone()));
        let tangent = chain::tangent(&mut self.out, Application { op, args: &args, value: var }, &tangents, &factors);
        self.bind(var, Dual::Pair { value: var, tangent });
    }

    fn build(&mut self, var: VarId, size: &Size, index: VarId, body: Block) {
        let span = self.out.span();
        let activity = self.activities.get(var).element();
        let size = self.size(size);
        let body = self.packed_block(body, &activity);
        self.bind_packed(var, Expr::Build { size, index, body }, span);
    }

    fn fold(&mut self, var: VarId, steps: StateLoop) {
        let StateLoop { count, index, state, init, body } = steps;
        let span = self.out.span();
        let activity = self.activities.get(state).clone();
        let count = self.size(&count);
        let init = self.pack(init, &activity);
        let state_dual = self.dual_state(state, &activity);
        let body = self.step(state, state_dual, body, &activity);
        self.bind_packed(var, Expr::Fold(StateLoop { count, index, state: state_dual, init, body }), span);
    }

    /// Emits the sum of the dual numbers of the terms: values and tangents are added side by side.
    fn sum(&mut self, var: VarId, count: &Size, index: VarId, body: Block) {
        let span = self.out.span();
        let activity = self.activities.get(var).clone();
        let count = self.size(count);
        let body = self.packed_block(body, &activity);
        self.bind_packed(var, Expr::Sum { count, index, body }, span);
    }

    fn loop_(&mut self, var: VarId, steps: StateLoop) {
        let StateLoop { count, index, state, init, body } = steps;
        let span = self.out.span();
        let activity = self.activities.get(state).clone();
        let whole = self.activities.get(var).clone();
        let triple = Activity::tuple(vec![activity.clone(), whole.component(1).element(), whole.component(2)]);
        let count = self.size(&count);
        let init = self.pack(init, &activity);
        let state_dual = self.dual_state(state, &activity);
        let body = self.step(state, state_dual, body, &triple);
        self.bind_packed(var, Expr::Loop(StateLoop { count, index, state: state_dual, init, body }), span);
    }

    fn while_loop(&mut self, var: VarId, steps: WhileLoop) {
        let WhileLoop { limit, state, init, condition, body } = steps;
        let span = self.out.span();
        let activity = self.activities.get(state).clone();
        let limit = self.size(&limit);
        let init = self.pack(init, &activity);
        let state_dual = self.dual_state(state, &activity);
        // The state is bound in both blocks, and unpacked in each.
        let condition = self.step(state, state_dual, condition, &Activity::Inactive);
        let body = self.step(state, state_dual, body, &activity);
        self.bind_packed(var, Expr::While(WhileLoop { limit, state: state_dual, init, condition, body }), span);
    }

    /// Emits a block of a loop whose state is `state_dual`; its result is packed to activity `to`.
    fn step(&mut self, state: VarId, state_dual: VarId, block: Block, to: &Activity) -> Block {
        self.out.open();
        let activity = self.activities.get(state).clone();
        let dual = dual::unpack(&mut self.out, state_dual, &activity);
        self.bind(state, dual);
        self.rest_of_block(block, to)
    }

    fn branches(&mut self, var: VarId, condition: VarId, then: Block, otherwise: Block) {
        let span = self.out.span();
        let activity = self.activities.get(var).clone();
        let condition = self.plain(condition);
        let then = self.packed_block(then, &activity);
        let otherwise = self.packed_block(otherwise, &activity);
        self.bind_packed(var, Expr::If { condition, then, otherwise }, span);
    }

    /// Emits an inactive expression on the values of its operands; its blocks may use active variables.
    fn inactive(&mut self, var: VarId, expr: Expr) {
        let span = self.out.span();
        let expr = match expr {
            Expr::Real(_) | Expr::Bool(_) | Expr::Zero | Expr::Jvp { .. } | Expr::Vjp { .. } => expr,
            Expr::Size(size) => Expr::Size(self.size(&size)),
            Expr::Op(op, args) => Expr::Op(op, args.iter().map(|v| self.plain(*v)).collect()),
            Expr::ToReal(arg) => Expr::ToReal(self.plain(arg)),
            Expr::ToInt(arg) => Expr::ToInt(self.plain(arg)),
            Expr::Build { size, index, body } => Expr::Build { size: self.size(&size), index, body: self.block(body) },
            Expr::Fold(StateLoop { count, index, state, init, body }) => {
                let (count, init) = (self.size(&count), self.plain(init));
                self.keep(state);
                Expr::Fold(StateLoop { count, index, state, init, body: self.block(body) })
            }
            Expr::Sum { count, index, body } => Expr::Sum { count: self.size(&count), index, body: self.block(body) },
            Expr::Loop(StateLoop { count, index, state, init, body }) => {
                let (count, init) = (self.size(&count), self.plain(init));
                self.keep(state);
                Expr::Loop(StateLoop { count, index, state, init, body: self.block(body) })
            }
            Expr::OneHot { index, value, proved } => {
                Expr::OneHot { index: self.plain(index), value: self.plain(value), proved }
            }
            Expr::Plus(a, b) => Expr::Plus(self.plain(a), self.plain(b)),
            Expr::While(WhileLoop { limit, state, init, condition, body }) => {
                let (limit, init) = (self.size(&limit), self.plain(init));
                self.keep(state);
                Expr::While(WhileLoop { limit, state, init, condition: self.block(condition), body: self.block(body) })
            }
            Expr::If { condition, then, otherwise } => {
                Expr::If { condition: self.plain(condition), then: self.block(then), otherwise: self.block(otherwise) }
            }
            Expr::Get { array, index, proved } => {
                Expr::Get { array: self.plain(array), index: self.plain(index), proved }
            }
            Expr::Array(elements) => Expr::Array(self.plains(&elements)),
            Expr::Tuple(fields) => Expr::Tuple(self.plains(&fields)),
            Expr::Component(tuple, k) => Expr::Component(self.plain(tuple), k),
            Expr::Custom(custom) => self.still(*custom),
            Expr::Again { me, at } => Expr::Again { me, at: self.plain(at) },
        };
        self.out.set_span(span);
        self.keep(var);
        if matches!(expr, Expr::Zero) {
            self.zeros.insert(var);
        }
        self.out.bind(var, expr);
    }

    /// Returns a function with its own rule, not differentiated: at the value of its point.
    fn still(&mut self, custom: Custom) -> Expr {
        let (dual, ty) = (self.dual(custom.at), self.ty(custom.at));
        let at = dual::split(&mut self.out, &dual, &ty, Half::Value);
        self.keep(custom.param);
        let body = self.block(custom.body);
        let rule = custom.rule.map(|rule| {
            self.keep(rule.me);
            let [forward, reverse] = [rule.forward, rule.reverse].map(|RuleBlock { params, body }| {
                params.iter().for_each(|param| self.keep(*param));
                RuleBlock { params, body: self.block(body) }
            });
            Rule { me: rule.me, forward, reverse }
        });
        Expr::Custom(Box::new(Custom { at, body, rule, ..custom }))
    }

    /// Emits a block with a plain result.
    fn block(&mut self, block: Block) -> Block {
        self.packed_block(block, &Activity::Inactive)
    }

    /// Emits a block whose result is packed to activity `to`.
    fn packed_block(&mut self, block: Block, to: &Activity) -> Block {
        self.out.open();
        self.rest_of_block(block, to)
    }

    /// Emits `block` into the open block, and closes it.
    fn rest_of_block(&mut self, block: Block, to: &Activity) -> Block {
        let span = self.out.span();
        for stmt in block.stmts {
            self.stmt(stmt);
        }
        self.out.set_span(span);
        let result = self.pack(block.result, to);
        self.out.close(result)
    }

    /// Returns the variable for the dual number of a loop's state.
    fn dual_state(&mut self, state: VarId, activity: &Activity) -> VarId {
        let ty = activity.dual_type(&self.ty(state));
        self.out.fresh_like(ty, state, "_dual")
    }

    /// Binds `var` to `expr`, packed to the activity of `var`.
    fn bind_packed(&mut self, var: VarId, expr: Expr, span: Option<Span>) {
        self.out.set_span(span);
        let activity = self.activities.get(var).clone();
        let ty = activity.dual_type(&self.ty(var));
        let packed = self.out.fresh_like(ty, var, "_dual");
        self.out.bind(packed, expr);
        let dual = dual::unpack(&mut self.out, packed, &activity);
        self.bind(var, dual);
    }

    /// Sets the dual number of `var` from here on.
    fn bind(&mut self, var: VarId, mut dual: Dual) {
        if let Dual::Plain(value) | Dual::Pair { value, .. } = dual {
            if let Some(name) = self.out.builder.vars[var].name.clone() {
                self.out.builder.name(value, &name);
            }
            if value != var && *self.out.ty(value) == Type::Int {
                let size = self.out.builder.size_of(value);
                self.size_of.insert(var, size);
            }
        }
        if let Dual::Pair { tangent: Scalar::Var(tangent), .. } = dual
            && let Some(name) = &self.out.builder.vars[var].name
        {
            let name = Name::from(format!("{name}_tan"));
            self.out.builder.name(tangent, &name);
        }
        // Separate values and tangents are zipped once, not at each use.
        if matches!(dual, Dual::Zip { .. }) && self.activities.used_whole(var) {
            let ty = self.ty(var);
            let full = Activity::full(&ty);
            dual = Dual::Packed(dual::pack(&mut self.out, &dual, &ty, &full), full);
        }
        if self.duals.len() <= var.index() {
            self.duals.resize(var.index() + 1, None);
        }
        self.duals[var.index()] = Some(dual);
    }

    /// Binds `var` in the generated code as in the original.
    fn keep(&mut self, var: VarId) {
        if let Some(dual) = self.duals.get_mut(var.index()) {
            *dual = None;
        }
        if !self.size_of.is_empty() {
            let ty = self.ty(var);
            let value = self.out.builder.vars[var].value.as_ref().map(|size| self.size(size));
            self.out.builder.vars[var].ty = ty;
            self.out.builder.vars[var].value = value;
        }
    }

    fn dual(&self, var: VarId) -> Dual {
        match self.duals.get(var.index()) {
            Some(Some(dual)) => dual.clone(),
            _ => Dual::Plain(var),
        }
    }

    fn has_dual(&self, var: VarId) -> bool {
        !matches!(self.duals.get(var.index()), None | Some(None | Some(Dual::Plain(_))))
    }

    /// Returns the value of `var`.
    fn plain(&mut self, var: VarId) -> VarId {
        match self.duals.get(var.index()) {
            None | Some(None) => var,
            Some(Some(Dual::Plain(value) | Dual::Pair { value, .. })) => *value,
            Some(Some(dual)) => {
                let (dual, ty) = (dual.clone(), self.ty(var));
                dual::split(&mut self.out, &dual, &ty, Half::Value)
            }
        }
    }

    fn plains(&mut self, vars: &[VarId]) -> Vec<VarId> {
        vars.iter().map(|var| self.plain(*var)).collect()
    }

    /// Returns the tangent of a scalar; `None` if it is structurally zero.
    fn tangent(&self, var: VarId) -> Option<Scalar> {
        match self.duals.get(var.index()) {
            Some(Some(Dual::Pair { tangent, .. })) => Some(*tangent),
            _ => None,
        }
    }

    fn pack(&mut self, var: VarId, to: &Activity) -> VarId {
        let (dual, ty) = (self.dual(var), self.ty(var));
        let dual_ty = to.dual_type(&ty);
        // Pairs of zeros are structurally zero too.
        if let Dual::Plain(value) = dual
            && self.zeros.contains(&value)
            && dual_ty.is_linear()
        {
            return if dual_ty == ty { value } else { self.out.builder.zero(dual_ty) };
        }
        dual::pack(&mut self.out, &dual, &ty, to)
    }

    fn ty(&self, var: VarId) -> Type {
        let ty = self.out.ty(var);
        if self.size_of.is_empty() { ty.clone() } else { ty.map_sizes(&mut |size| self.size(size)) }
    }

    fn size(&self, size: &Size) -> Size {
        if self.size_of.is_empty() {
            return size.clone();
        }
        size.substitute(|var| self.size_of.get(&var).cloned().unwrap_or_else(|| Size::var(var)))
    }
}
