//! Masks: `if c then x else 0` and `select c x 0`, written `[c] x`. Factors of a mask move inside, where a sum over an
//! index that `c` compares finds it (`rules/sum.rs`): so the one-hot arrays of derivatives vanish.
//!
//! `0 * x` is not 0 for infinite `x`, so products are algebraic.
//!
//! No sum over an index finds a condition that compares numbers of an enclosing loop. Such a mask stays outside, or
//! moves there, as a factor of all iterations: the derivative of a rectified matrix product is then a matrix product,
//! not a loop of selections. The other factor must be finite where the condition does not hold.
//!
//! A factor that moves inside a mask is copied with all its statements, so a chain of products and sums is not masked
//! as a whole: beyond [`MAX_COPIED`] statements they stay outside, and [`condition_of_result`] looks through them to
//! find whether a loop's value vanishes.

use super::op::doubles;
use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Block, Expr, Type, VarId};
use chainrule_ops::{Op, Semantics, Slope};
use rustc_hash::FxHashMap;
use std::rc::Rc;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "mask-product",
        law: "[c] x * y = [c] (x * y), strong products likewise; [c] x / y = [c] (x / y); -[c] x = [c] (-x)",
        when: "x has no more than 64 statements; it is no mask-factor",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Op(&[Op::Mul, Op::MaskedMul, Op::StrongMul, Op::Div, Op::Neg]),
        apply: product,
    },
    Rule {
        name: "mask-factor",
        law: "select c (x * y) 0 = (select c x 0) * y",
        when: "c compares numbers; c and x are known outside of the loop, y is not, and has no poles",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Op(&[Op::Select]),
        apply: factor,
    },
    Rule {
        name: "mask-sum",
        law: "[c] x + [c] y = [c] (x + y); [c] x - [c] y = [c] (x - y)",
        when: "x and y have no more than 64 statements each",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::Add, Op::Sub]),
        apply: sum,
    },
];

/// Maximum number of statements of a mask that is copied into its user.
pub(super) const MAX_COPIED: usize = 64;

/// Maximum number of factors of a selected value.
const MAX_FACTORS: usize = 16;

/// A mask.
pub(super) struct Mask {
    pub(super) condition: VarId,
    def: Rc<Expr>,
    /// For a selection: the block of the selected value.
    selected: Block,
}

impl Mask {
    fn is_small(&self) -> bool {
        self.then().stmts.len() <= MAX_COPIED
    }

    /// Returns the block of its value.
    pub(super) fn then(&self) -> &Block {
        match &*self.def {
            Expr::If { then, .. } => then,
            _ => &self.selected,
        }
    }
}

/// Returns `var`, a variable in scope, as a mask.
pub(super) fn as_mask(rb: &Rebuild<'_>, var: VarId) -> Option<Mask> {
    let def = rb.def(var)?;
    let condition = condition_of(rb, &def)?;
    let result = if let Expr::Op(_, args) = &*def { args[1] } else { var };
    Some(Mask { condition, def, selected: Block { stmts: Vec::new(), result } })
}

/// Returns the condition of the mask `var`, a variable in scope or of the closed block `body`.
pub(super) fn condition_in(rb: &Rebuild<'_>, body: &Block, var: VarId) -> Option<VarId> {
    match rb.bound_in(body, var) {
        Some(expr) => condition_of(rb, expr),
        None => condition_of(rb, &*rb.def(var)?),
    }
}

/// Returns a condition that must hold unless the result of the closed block `body` is zero: the result is a mask, or
/// made of masks that are too large to be moved. Linear in the block.
pub(super) fn condition_of_result(rb: &Rebuild<'_>, body: &Block) -> Option<VarId> {
    let is_made = |expr: &Expr| {
        matches!(expr, Expr::Op(Op::Mul | Op::MaskedMul | Op::StrongMul | Op::Div | Op::Neg | Op::Add | Op::Sub, _))
    };
    if rb.settings.semantics == Semantics::Strict || !rb.bound_in(body, body.result).is_some_and(is_made) {
        return condition_in(rb, body, body.result);
    }
    let mut conditions: FxHashMap<VarId, VarId> = FxHashMap::default();
    for stmt in &body.stmts {
        let of = |var: &VarId| conditions.get(var).copied();
        let found = match &stmt.expr {
            Expr::Op(Op::Mul | Op::MaskedMul | Op::StrongMul, args) => of(&args[0]).or_else(|| of(&args[1])),
            Expr::Op(Op::Div | Op::Neg, args) => of(&args[0]),
            Expr::Op(Op::Add | Op::Sub, args) => of(&args[0]).filter(|condition| of(&args[1]) == Some(*condition)),
            expr => condition_of(rb, expr),
        };
        conditions.extend(found.map(|condition| (stmt.var, condition)));
    }
    conditions.get(&body.result).copied()
}

fn condition_of(rb: &Rebuild<'_>, expr: &Expr) -> Option<VarId> {
    match expr {
        Expr::If { condition, otherwise, .. } if is_zero(rb, otherwise.result) => Some(*condition),
        Expr::Op(Op::Select, args) if is_zero(rb, args[2]) => Some(args[0]),
        _ => None,
    }
}

/// Returns whether `var` is structurally zero; in strict mode, not negative zero.
pub(super) fn is_zero(rb: &Rebuild<'_>, var: VarId) -> bool {
    match rb.real_of(var) {
        Some(value) => value == 0.0 && (value.is_sign_positive() || rb.settings.semantics == Semantics::Algebraic),
        None => match rb.def(var).as_deref() {
            Some(Expr::Zero) => true,
            Some(Expr::Tuple(parts)) => !parts.is_empty() && parts.iter().all(|part| is_zero(rb, *part)),
            _ => false,
        },
    }
}

/// Writes `[condition] then`, of type `ty`.
pub(super) fn mask(
    rb: &mut Rebuild<'_>,
    condition: VarId,
    ty: &Type,
    then: impl FnOnce(&mut Rebuild<'_>) -> VarId,
) -> VarId {
    rb.if_(condition, ty, then, |rb| rb.zero(ty))
}

/// A value that is zero unless a condition is `holds`: a mask, or one with the branches exchanged.
pub(super) struct Guard<'e> {
    pub(super) condition: VarId,
    pub(super) holds: bool,
    /// Block of the value.
    pub(super) block: &'e Block,
}

impl<'e> Guard<'e> {
    /// Returns the result of the closed block `body` as a guarded value.
    pub(super) fn of_result(rb: &Rebuild<'_>, body: &'e Block) -> Option<Self> {
        let Expr::If { condition, then, otherwise } = rb.bound_in(body, body.result)? else { return None };
        let (holds, block) = match (is_zero(rb, otherwise.result), is_zero(rb, then.result)) {
            (true, false) => (true, then),
            (false, true) => (false, otherwise),
            _ => return None,
        };
        Some(Self { condition: *condition, holds, block })
    }
}

/// Writes `value`, of type `ty`, where `condition` is `holds`, and zero elsewhere.
pub(super) fn write_guarded(
    rb: &mut Rebuild<'_>,
    condition: VarId,
    holds: bool,
    ty: &Type,
    value: impl FnOnce(&mut Rebuild<'_>) -> VarId,
) -> VarId {
    if holds { mask(rb, condition, ty, value) } else { rb.if_(condition, ty, |rb| rb.zero(ty), value) }
}

/// Returns whether `condition`, in scope, compares doubles.
fn is_of_numbers(rb: &Rebuild<'_>, condition: VarId) -> bool {
    matches!(rb.def(condition).as_deref(), Some(Expr::Op(_, args)) if *rb.ty(args[0]) == Type::Double)
}

/// Returns whether `var`, in scope, is finite for finite arguments of the function, unless a product or a sum
/// overflows: made of elements of parameters by operators without poles. `false` if that takes many steps to find.
fn is_finite(rb: &Rebuild<'_>, var: VarId) -> bool {
    let (mut open, mut loops): (Vec<VarId>, Vec<Rc<Expr>>) = (vec![var], Vec::new());
    for _ in 0..MAX_COPIED {
        let Some(var) = open.pop() else { return true };
        let inner = || loops.iter().find_map(|array| rb.bound_in(body(array)?, var).cloned().map(Rc::new));
        let Some(def) = rb.def(var).or_else(inner) else {
            if rb.is_state(var) {
                return false;
            }
            continue;
        };
        match &*def {
            Expr::Real(value) if value.is_finite() => {}
            Expr::Op(op, args) if matches!(op.row().slope, Slope::Finite | Slope::Border) => open.extend(args),
            Expr::Get { array, .. } | Expr::Component(array, _) => open.push(*array),
            Expr::Tuple(fields) => open.extend(fields),
            Expr::Build { body, .. } | Expr::Sum { body, .. } if body.stmts.len() <= MAX_COPIED => {
                open.push(body.result);
                loops.push(def);
            }
            _ => return false,
        }
    }
    false
}

/// Returns the body of a build or a sum.
fn body(array: &Expr) -> Option<&Block> {
    match array {
        Expr::Build { body, .. } | Expr::Sum { body, .. } => Some(body),
        _ => None,
    }
}

fn factor(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Op(Op::Select, args) = expr else { return None };
    let &[condition, value, otherwise] = args.as_slice() else { return None };
    let is_outside = |rb: &Rebuild<'_>, var: VarId| rb.loops_since(var) > 0 || rb.real_of(var).is_some();
    if *ty != Type::Double || !is_zero(rb, otherwise) || !is_outside(rb, condition) || !is_of_numbers(rb, condition) {
        return None;
    }
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    let mut open = vec![value];
    while let Some(next) = open.pop() {
        let room = outside.len() + inside.len() + open.len() < MAX_FACTORS;
        match rb.def(next).as_deref() {
            _ if is_outside(rb, next) => outside.push(next),
            Some(Expr::Op(Op::Mul, args)) if room => open.extend(args.iter().rev()),
            _ if is_finite(rb, next) => inside.push(next),
            _ => return None,
        }
    }
    let product =
        |rb: &mut Rebuild<'_>, factors: Vec<VarId>| factors.into_iter().reduce(|x, y| rb.op(Op::Mul, &[x, y]));
    let inside = product(rb, inside)?;
    let outside = product(rb, outside).unwrap_or_else(|| rb.real(1.0));
    let masked = rb.op(Op::Select, &[condition, outside, otherwise]);
    Some(rb.op(Op::Mul, &[masked, inside]))
}

fn copy(rb: &mut Rebuild<'_>, block: &Block) -> VarId {
    rb.inline(block, block.result, &mut Env::copying(&[]))
}

fn product(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op, args) = doubles(expr, ty)?;
    let candidates = match op {
        Op::Mul | Op::MaskedMul | Op::StrongMul => 2,
        Op::Div | Op::Neg => 1,
        _ => return None,
    };
    let moves = |at: usize| {
        let is_factor = |mask: &Mask| {
            op == Op::Mul
                && rb.loops_since(args[at]) > 0
                && is_of_numbers(rb, mask.condition)
                && is_finite(rb, args[1 - at])
        };
        as_mask(rb, args[at]).filter(|mask| mask.is_small() && !is_factor(mask))
    };
    let (at, found) = (0..candidates).find_map(|at| Some((at, moves(at)?)))?;
    Some(mask(rb, found.condition, ty, |rb| {
        let mut args = args.to_vec();
        args[at] = copy(rb, found.then());
        rb.op(op, &args)
    }))
}

fn sum(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op @ (Op::Add | Op::Sub), &[x, y]) = doubles(expr, ty)? else { return None };
    let (x, y) = (as_mask(rb, x)?, as_mask(rb, y)?);
    if x.condition != y.condition || !x.is_small() || !y.is_small() {
        return None;
    }
    Some(mask(rb, x.condition, ty, |rb| {
        let (x, y) = (copy(rb, x.then()), copy(rb, y.then()));
        rb.op(op, &[x, y])
    }))
}
