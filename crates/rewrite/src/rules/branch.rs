//! Rules for `if` (figure 7f). The engine (`rebuild`) knows that `if true then x else y` is `x`, and that the condition
//! is true in `x`. Branches are lazy: statements are not moved out of them. One-hot arrays are an exception, because
//! the position of the element costs nothing: they leave branches, in which no sum would find them, and the number
//! stays.

use super::one_hot::{is_long, is_sought};
use super::tuple::{flatten, flattened, nested};
use super::{On, Rule};
use crate::fusion;
use crate::key::Key;
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Block, Expr, Size, Stmt, Type, VarId};
use chainrule_ops::{Op, Semantics};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "if-same",
        law: "if c then x else x = x",
        when: "an index that only one branch proves to be in range is checked",
        holds_under: Semantics::Strict,
        split: false,
        on: On::If,
        apply: same,
    },
    Rule {
        name: "if-not",
        law: "if not c then x else y = if c then y else x",
        when: "the other way round is no mask",
        holds_under: Semantics::Strict,
        split: false,
        on: On::If,
        apply: swapped,
    },
    Rule {
        name: "if-truth",
        law: "if c then true else false = c; if c then x else false = c && x; if c then true else x = c || x",
        when: "x is known outside of the branch",
        holds_under: Semantics::Strict,
        split: false,
        on: On::If,
        apply: truth,
    },
    Rule {
        name: "if-select",
        law: "if c then x else y = select c x y",
        when: "x and y are doubles known outside of the branches",
        holds_under: Semantics::Strict,
        split: false,
        on: On::If,
        apply: selected,
    },
    Rule {
        name: "if-twice",
        law: "if c then x else (if d then x else y) = if c || d then x else y; with the branches of either swapped",
        when: "x or y contains a loop; d compares what is known outside of the branches",
        holds_under: Semantics::Strict,
        split: false,
        on: On::If,
        apply: twice,
    },
    Rule {
        name: "if-product",
        law: "if c then x else y = select c x y",
        when: "x is an element of a product of matrices, which is tiled without the branch; c compares its indices and holds for half of them; x cannot fail where c does not hold; in no other branch; before differentiation",
        holds_under: Semantics::Strict,
        split: false,
        on: On::If,
        apply: product,
    },
    Rule {
        name: "flat-if",
        law: "if c then ((x, y), z) else ((u, v), w) = ((a, b), d) where (a, b, d) = if c then (x, y, z) else (u, v, w)",
        when: "the value is a tuple with tuples in it; then each field by itself can be dead",
        holds_under: Semantics::Strict,
        split: false,
        on: On::If,
        apply: flat,
    },
    Rule {
        name: "if-one-hot",
        law: "if c then oneHot i x else oneHot i y = oneHot i (if c then x else y); 0 is oneHot i 0; for fields of tuples, too",
        when: "i is in range outside of the branches; it is no mask that sums look for (one-hot-mask); no long row is added where nothing was",
        holds_under: Semantics::Strict,
        split: false,
        on: On::If,
        apply: one_hot,
    },
    Rule {
        name: "if-one-hots",
        law: "if c then a + oneHot i x else b = (if c then a else b) + oneHot i (if c then x else 0); for fields of tuples, too",
        when: "as if-one-hot",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::If,
        apply: one_hots,
    },
];

fn flat(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    let leaves = flattened(ty)?;
    let branch = |rb: &mut Rebuild<'_>, block: &Block| {
        let value = rb.inline(block, block.result, &mut Env::copying(&[]));
        flatten(rb, value, &leaves)
    };
    let flat = rb.if_(*condition, &leaves, |rb| branch(rb, then), |rb| branch(rb, otherwise));
    Some(nested(rb, flat, ty, &mut 0))
}

fn selected(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    let known = *ty == Type::Double && then.stmts.is_empty() && otherwise.stmts.is_empty();
    known.then(|| rb.op(Op::Select, &[*condition, then.result, otherwise.result]))
}

fn same(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { then, otherwise, .. } = expr else { return None };
    let key: Key = rb.keys.block(&rb.vars, then, ty).into();
    let other = rb.keys.block(&rb.vars, otherwise, ty);
    let block = if *other == *key {
        // A condition may have proved an index to be in range.
        with_proofs(then, then.proofs() == otherwise.proofs())
    } else if other.len() == key.len() && rb.keys.have_same_value(&rb.vars, [then, otherwise]) {
        with_proofs(then, are_proved([then, otherwise]))
    } else {
        return None;
    };
    Some(rb.inline(&block, block.result, &mut Env::copying(&[])))
}

/// Returns whether all indices of the blocks are proved to be in range.
fn are_proved(blocks: [&Block; 2]) -> bool {
    blocks.into_iter().flat_map(Block::proofs).all(|proved| proved)
}

/// Returns `block`, with its indices proved to be in range only if they are still `proved`.
fn with_proofs(block: &Block, proved: bool) -> Block {
    let mut block = block.clone();
    if !proved {
        block.forget_proofs();
    }
    block
}

/// Returns whether computing `var` of the closed block `block` compares numbers, and nothing else.
fn is_comparison(rb: &Rebuild<'_>, block: &Block, var: VarId) -> bool {
    let cannot_fail = |expr: &Expr| match expr {
        Expr::Op(op, _) => Op::row(*op).result == chainrule_ops::Type::Bool,
        Expr::Size(_) | Expr::Real(_) | Expr::Bool(_) => true,
        _ => false,
    };
    rb.slice(block, &[var]).stmts(block).all(|stmt| cannot_fail(&stmt.expr))
}

fn has_loop(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| !stmt.expr.binders().is_empty() || stmt.expr.blocks().into_iter().any(has_loop))
}

fn twice(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    for (outer, nest, in_then) in [(then, otherwise, false), (otherwise, then, true)] {
        let Some(Expr::If { condition: inner, then: x, otherwise: y }) = rb.bound_in(nest, nest.result) else {
            continue;
        };
        if ![outer, x, y].into_iter().any(has_loop) || !is_comparison(rb, nest, *inner) {
            continue;
        }
        let whole = |branch: &Block| Block {
            stmts: nest.stmts.iter().filter(|stmt| stmt.var != nest.result).chain(&branch.stmts).cloned().collect(),
            result: branch.result,
        };
        // Where `inner` is `holds`, the value is that of `outer`.
        let Some((same, holds)) = [(x, true), (y, false)]
            .into_iter()
            .map(|(branch, holds)| (whole(branch), holds))
            .find(|(branch, _)| rb.keys.have_same_value(&rb.vars, [outer, branch]))
        else {
            continue;
        };
        let outer = with_proofs(outer, are_proved([outer, &same]));
        let inner = rb.inline(nest, *inner, &mut Env::copying(&[]));
        let parts = [(*condition, !in_then), (inner, holds)]
            .map(|(part, holds)| if holds { part } else { rb.op(Op::Not, &[part]) });
        let either = rb.op(Op::Or, &parts);
        return Some(rb.if_(
            either,
            ty,
            |rb| rb.inline(&outer, outer.result, &mut Env::copying(&[])),
            // The engine knows `inner` there.
            |rb| rb.inline(nest, nest.result, &mut Env::copying(&[])),
        ));
    }
    None
}

/// Minimum number of loops around an element of a matrix.
const MATRIX_LOOPS: usize = 2;

fn product(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    if !rb.settings.separate || *ty != Type::Double || rb.loops_in_branch() < MATRIX_LOOPS {
        return None;
    }
    for (branch, other, holds) in [(then, otherwise, true), (otherwise, then, false)] {
        let cannot_fail = |stmt: &Stmt| !rb.may_fail_outside(&stmt.expr, rb.ty(stmt.var));
        let may_leave =
            |rb: &Rebuild<'_>| fusion::is_product(branch) && !has_loop(other) && holds_for_half(rb, *condition, holds);
        if may_leave(rb) && branch.stmts.iter().chain(&other.stmts).all(cannot_fail) {
            let [x, y] = [then, otherwise].map(|block| rb.inline(block, block.result, &mut Env::copying(&[])));
            return Some(rb.op(Op::Select, &[*condition, x, y]));
        }
    }
    None
}

/// Returns whether `condition`, in scope, is `holds` for at least about half of the indices in it: an inequality of two
/// indices, the opposite of an equation, or one of several of these.
fn holds_for_half(rb: &Rebuild<'_>, condition: VarId, holds: bool) -> bool {
    let Some(Expr::Op(op, args)) = rb.def(condition).as_deref().cloned() else { return false };
    let n_indices = || match args[..] {
        [x, y] if *rb.ty(x) == Type::Int => {
            let vars = rb.size_of(x).sub(&rb.size_of(y)).vars();
            if vars.iter().all(|v| rb.is_index(*v)) { vars.len() } else { 0 }
        }
        _ => 0,
    };
    match op {
        Op::Not => holds_for_half(rb, args[0], !holds),
        Op::Lt | Op::Le => n_indices() == 2,
        Op::Eq => !holds && n_indices() > 0,
        Op::Or if holds => args.iter().any(|arg| holds_for_half(rb, *arg, true)),
        Op::And if !holds => args.iter().any(|arg| holds_for_half(rb, *arg, false)),
        _ => false,
    }
}

fn swapped(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    let def = rb.def(*condition)?;
    let Expr::Op(Op::Not, args) = &*def else { return None };
    if super::mask::is_zero(rb, otherwise.result) {
        return None;
    }
    let condition = *args.first()?;
    Some(rb.if_(
        condition,
        ty,
        |rb| rb.inline(otherwise, otherwise.result, &mut Env::copying(&[])),
        |rb| rb.inline(then, then.result, &mut Env::copying(&[])),
    ))
}

fn truth(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    if *ty != Type::Bool {
        return None;
    }
    let outside = |block: &chainrule_ir::Block| block.stmts.is_empty();
    match (rb.truth(then.result), rb.truth(otherwise.result)) {
        (Some(true), Some(false)) => Some(*condition),
        (Some(false), Some(true)) => Some(rb.op(Op::Not, &[*condition])),
        (None, Some(false)) if outside(then) => Some(rb.op(Op::And, &[*condition, then.result])),
        (Some(true), None) if outside(otherwise) => Some(rb.op(Op::Or, &[*condition, otherwise.result])),
        _ => None,
    }
}

/// Maximum number of terms of an array.
const MAX_TERMS: usize = 16;

/// Terms of an array of a branch.
#[derive(Default)]
struct Terms {
    /// One-hot arrays whose index is in range outside: the index, and the element.
    hot: Vec<(Size, VarId)>,
    rest: Vec<VarId>,
}

impl Terms {
    /// Returns the terms of `array`, a variable of the closed block `branch`, of this length.
    fn of(rb: &Rebuild<'_>, branch: &Block, array: VarId, length: &Size) -> Self {
        let (mut found, mut todo) = (Self::default(), vec![array]);
        while let Some(next) = todo.pop() {
            let outside = rb.def(next);
            let room = todo.len() + found.hot.len() + found.rest.len() < MAX_TERMS;
            match rb.bound_in(branch, next).or(outside.as_deref()) {
                Some(Expr::Zero) => {}
                Some(Expr::Plus(a, b)) if room => todo.extend([*b, *a]),
                Some(Expr::OneHot { index, value, proved: true }) => {
                    let index = rb.size_of(*index);
                    if rb.is_outside(&index, branch, &[]) && rb.ranges.in_range(&index, length) {
                        found.hot.push((index, *value));
                    } else {
                        found.rest.push(next);
                    }
                }
                _ => found.rest.push(next),
            }
        }
        found
    }

    fn is_none(&self) -> bool {
        self.hot.is_empty() && self.rest.is_empty()
    }

    /// Returns whether a one-hot array of `branch` adds a row, one that is itself no one-hot array, where `other` adds
    /// nothing.
    fn adds_row(&self, rb: &Rebuild<'_>, branch: &Block, other: &Self) -> bool {
        let is_row = |value: VarId| !matches!(rb.bound_in(branch, value), Some(Expr::OneHot { .. }));
        self.hot.iter().any(|(index, value)| is_row(*value) && other.at(index).is_empty())
    }

    /// Returns the elements at `index`.
    fn at(&self, index: &Size) -> Vec<VarId> {
        self.hot.iter().filter(|(at, _)| at == index).map(|(_, value)| *value).collect()
    }
}

/// Returns the fields of the result of the closed block `branch`: the result itself, if it is no tuple.
fn fields_of(rb: &Rebuild<'_>, branch: &Block, ty: &Type) -> Option<Vec<VarId>> {
    let outside = rb.def(branch.result);
    match (ty, rb.bound_in(branch, branch.result).or(outside.as_deref())) {
        (Type::Tuple(..), Some(Expr::Tuple(fields))) => Some(fields.clone()),
        (Type::Tuple(..), _) => None,
        _ => Some(vec![branch.result]),
    }
}

/// Writes the sum of `terms` of the closed block `branch`, which have type `ty`; zero if there are none.
fn sum_of(rb: &mut Rebuild<'_>, branch: &Block, terms: &[VarId], ty: &Type) -> VarId {
    let mut env = Env::copying(&[]);
    let terms: Vec<VarId> = terms.iter().map(|term| rb.inline(branch, *term, &mut env)).collect();
    let sum = terms.into_iter().reduce(|a, b| rb.plus(a, b));
    sum.unwrap_or_else(|| rb.zero(ty))
}

fn one_hot(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    // Both branches only have one index, so nothing is added that was not.
    without_one_hots(rb, expr, ty, |[then, otherwise]| {
        let mut indices = then.hot.iter().chain(&otherwise.hot).map(|(index, _)| index);
        let first = indices.next();
        let is_one = then.hot.len() <= 1 && otherwise.hot.len() <= 1 && indices.all(|index| Some(index) == first);
        is_one && then.rest.is_empty() && otherwise.rest.is_empty()
    })
}

fn one_hots(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    without_one_hots(rb, expr, ty, |_| true)
}

/// Writes `if condition then .. else ..` for values of the types `types`: a single one, or the fields of a tuple.
fn both(
    rb: &mut Rebuild<'_>,
    condition: VarId,
    types: &[Type],
    side: impl Fn(&mut Rebuild<'_>, usize) -> Vec<VarId>,
) -> Vec<VarId> {
    match types {
        [] => Vec::new(),
        [ty] => vec![rb.if_(condition, ty, |rb| side(rb, 0)[0], |rb| side(rb, 1)[0])],
        _ => {
            let ty = Type::tuple(types.to_vec());
            let branch = |rb: &mut Rebuild<'_>, which: usize| {
                let fields = side(rb, which);
                rb.tuple(fields, &ty)
            };
            let tuple = rb.if_(condition, &ty, |rb| branch(rb, 0), |rb| branch(rb, 1));
            (0..types.len()).map(|field| rb.compute(Expr::Component(tuple, field))).collect()
        }
    }
}

/// Writes the branches without the one-hot arrays of the fields that `may_leave`, and these outside.
fn without_one_hots(
    rb: &mut Rebuild<'_>,
    expr: &Expr,
    ty: &Type,
    may_leave: impl Fn(&[Terms; 2]) -> bool,
) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    let branches = [then, otherwise];
    let types = if let Type::Tuple(types, _) = ty { &types[..] } else { std::slice::from_ref(ty) };
    let [first, second] = branches.map(|branch| fields_of(rb, branch, ty));
    let fields: Vec<[VarId; 2]> = first?.into_iter().zip(second?).map(<[VarId; 2]>::from).collect();
    // Masks that sums match stay whole (`one-hot-mask`).
    let is_sought = is_sought(rb, *condition);
    let leaving: Vec<Option<[Terms; 2]>> = (fields.iter().zip(types))
        .map(|(field, ty)| {
            let Type::Array(length, element) = ty else { return None };
            let terms = [0, 1].map(|side| Terms::of(rb, branches[side], field[side], length));
            // A long row that only one branch adds would be made and added in both.
            if is_long(element) && (0..2).any(|side| terms[side].adds_row(rb, branches[side], &terms[1 - side])) {
                return None;
            }
            let is_mask = terms[1].is_none();
            let is_hot = terms.iter().any(|terms| !terms.hot.is_empty());
            (is_hot && !(is_mask && is_sought) && may_leave(&terms)).then_some(terms)
        })
        .collect();
    if leaving.iter().all(Option::is_none) {
        return None;
    }
    // Parts that stay in the branches, in order: a whole field, or the rest of its sum.
    let stays = |field: usize| match &leaving[field] {
        Some(terms) => terms.iter().any(|terms| !terms.rest.is_empty()),
        None => true,
    };
    let staying: Vec<usize> = (0..fields.len()).filter(|field| stays(*field)).collect();
    let kept: Vec<Type> = staying.iter().map(|field| types[*field].clone()).collect();
    let kept = both(rb, *condition, &kept, |rb, side| {
        let copy = |rb: &mut Rebuild<'_>, field: usize| {
            let itself = std::slice::from_ref(&fields[field][side]);
            let terms = leaving[field].as_ref().map_or(itself, |terms| &terms[side].rest);
            sum_of(rb, branches[side], terms, &types[field])
        };
        staying.iter().map(|field| copy(rb, *field)).collect()
    });
    let whole: Vec<VarId> = (0..fields.len())
        .map(|field| {
            let place = staying.iter().position(|kept| *kept == field);
            let kept = place.map(|place| kept[place]);
            let (Some(terms), Type::Array(_, element)) = (&leaving[field], &types[field]) else {
                return kept.unwrap_or_else(|| rb.zero(&types[field]));
            };
            let mut indices: Vec<&Size> = Vec::new();
            for (index, _) in terms.iter().flat_map(|terms| &terms.hot) {
                if !indices.contains(&index) {
                    indices.push(index);
                }
            }
            let mut sum = kept;
            for index in indices {
                let side =
                    |rb: &mut Rebuild<'_>, side: usize| sum_of(rb, branches[side], &terms[side].at(index), element);
                let value = rb.if_(*condition, element, |rb| side(rb, 0), |rb| side(rb, 1));
                let index = rb.int(index.clone());
                let hot = rb.emit(Expr::OneHot { index, value, proved: true }, types[field].clone());
                sum = Some(sum.map_or(hot, |sum| rb.plus(sum, hot)));
            }
            sum.unwrap_or_else(|| rb.zero(&types[field]))
        })
        .collect();
    match ty {
        Type::Tuple(..) => Some(rb.tuple(whole, ty)),
        _ => whole.first().copied(),
    }
}
