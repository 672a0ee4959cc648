//! The cost model: a polynomial in sizes, and a number that orders programs.
//!
//! An operator costs its weight in the operator table, an element that is read or written 1, an iteration of a loop 1;
//! a branch costs its costlier side. [`symbolic`] returns the polynomial, in which a loop index is replaced by its
//! count. In the number ([`function`]), unknown sizes are large ([`LARGE`]), and so are indices; of `n - i`, half of
//! `n` counts.
//!
//! | construct | cost |
//! | --- | --- |
//! | literal, size, tuple, component | 0 |
//! | operator | its weight; in a whole program 0 for sums, comparisons and logic of integers |
//! | `get` of a number, conversion | 1; of a tuple as many as it has numbers, but at least 1 |
//! | `get` of a row | 0 |
//! | `build n f` | n * (f + 1 + words of an element); if it changes one element of an array, in its memory: 8 + f |
//! | `sum n f` | n * (f + 1 + words of a term that is not made in place) + words of the sum |
//! | `ifold`, `while` | steps * (body + 1) |
//! | `if` | 1 + the costlier branch |
//! | `loop` | count * (body + 1) + words of the sum, which is accumulated in place |
//! | `zero`, one-hot array | 0, 1: made in place; 8 in the body of a sum, where a number is accumulated in place |
//! | sum of two arrays | their words; in the body of a sum, the cost of accumulating each |
//! | a derivative | 3 times its body |

use crate::fusion;
use chainrule_ir::{Block, Expr, Function, Rows, Size, StateLoop, Type, VarId, WhileLoop};
use chainrule_ops::Op;
use std::collections::BTreeSet;

/// Assumed value of an unknown size.
pub const LARGE: f64 = 1000.0;

/// Assumed number of iterations of a `while`.
const WHILE_STEPS: f64 = 100.0;

/// Cost of a number accumulated in place: it is read, added and written, while other numbers of a loop run eight at a
/// time.
const ADDED: f64 = 8.0;

/// Cost of a number of a row of a scattered sum: it is accumulated in place, and its neighbours lie in other rows. With
/// twice [`ADDED`] or less, gradients of attention prefer scatters to products of matrices.
const SCATTERED: f64 = 4.0 * ADDED;

/// Unit of costs.
trait Amount: Sized {
    /// Cost of rows of a product of matrices, relative to their loops.
    const PRODUCTS: f64 = 1.0;
    /// Whether sums, comparisons and logic of integers cost their weight, and not nothing.
    const COUNTS_INDICES: bool = true;

    fn number(number: f64) -> Self;
    fn size(size: &Size) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    /// Returns the amount outside the loop over `count` with this index.
    fn outside(self, index: VarId, count: &Size) -> Self;
}

/// A number that orders programs, or parts of them.
///
/// If it is of a whole program, indices cost nothing: loops are split where they change a comparison, and sums are part
/// of addresses. In parts they count, so that what a comparison removes is found. If it is tiled, products of matrices
/// cost [`TILED`].
struct Number<const IS_WHOLE: bool, const IS_TILED: bool>(f64);

/// Cost of a product of matrices, relative to its loops: they are tiled. Large ones take a fifth of the time of dots.
const TILED: f64 = 0.5;

/// Number of a part of a program.
type Plain = Number<false, false>;

impl<const IS_WHOLE: bool, const IS_TILED: bool> Amount for Number<IS_WHOLE, IS_TILED> {
    const PRODUCTS: f64 = if IS_TILED { TILED } else { 1.0 };
    const COUNTS_INDICES: bool = !IS_WHOLE;

    fn number(number: f64) -> Self {
        Self(number)
    }

    fn size(size: &Size) -> Self {
        // The mean of `n - i` in a loop over `n` is half of `n`.
        let term = |(monomial, c): (&[VarId], i64)| {
            let c = c as f64;
            let c = if c < 0.0 && !monomial.is_empty() { c / 2.0 } else { c };
            monomial.iter().fold(c, |product, _| product * LARGE)
        };
        Self(size.terms().map(term).sum::<f64>().max(0.0))
    }

    fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    fn times(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }

    fn larger(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    fn outside(self, _: VarId, _: &Size) -> Self {
        self
    }
}

impl Amount for Size {
    fn number(number: f64) -> Self {
        Self::constant(number as i64)
    }

    fn size(size: &Size) -> Self {
        size.clone()
    }

    fn plus(self, other: Self) -> Self {
        self.add(&other)
    }

    fn times(self, other: Self) -> Self {
        self.mul(&other)
    }

    fn larger(self, other: Self) -> Self {
        if estimate(&self) >= estimate(&other) { self } else { other }
    }

    fn outside(self, index: VarId, count: &Size) -> Self {
        if self.vars().contains(&index) {
            self.substitute(|v| if v == index { count.clone() } else { Self::var(v) })
        } else {
            self
        }
    }
}

/// Returns `size` as a number, with [`LARGE`] for unknown variables, and half of that for those that are subtracted;
/// not negative.
pub(crate) fn estimate(size: &Size) -> f64 {
    Plain::size(size).0
}

fn words<A: Amount>(ty: &Type) -> A {
    match ty {
        Type::Double | Type::Int | Type::Bool => A::number(1.0),
        Type::Array(size, element) => A::size(size).times(words(element)),
        Type::Tuple(fields, _) => fields.iter().fold(A::number(0.0), |sum, field| sum.plus(words(field))),
    }
}

/// Returns the number of numbers in a value of type `ty`.
pub(crate) fn words_of(ty: &Type) -> f64 {
    words::<Plain>(ty).0
}

/// As [`words_of`], as a polynomial.
pub(crate) fn size_of_words(ty: &Type) -> Size {
    words(ty)
}

/// Returns the cost of one evaluation of `function`.
#[must_use]
pub fn function(function: &Function) -> f64 {
    let ty = |var| function.ty(var);
    within::<Number<true, false>>(&function.body, &ty, Place::Once).0
}

/// As [`function`], with products of matrices as half of their loops, because they are tiled. Not for programs whose
/// products are not yet sums of products: what rules would remove counts half, too.
pub(crate) fn tiled(function: &Function) -> f64 {
    let ty = |var| function.ty(var);
    within::<Number<true, true>>(&function.body, &ty, Place::Once).0
}

/// Returns the cost of one evaluation of `function`: a polynomial in its sizes, and in integers that it computes.
#[must_use]
pub fn symbolic(function: &Function) -> Size {
    let ty = |var| function.ty(var);
    within(&function.body, &ty, Place::Separate)
}

/// Returns the cost of one evaluation of `block`; `ty` returns the types of variables.
pub(crate) fn block<'a>(block: &Block, ty: &impl Fn(VarId) -> &'a Type) -> f64 {
    within::<Plain>(block, ty, Place::Separate).0
}

/// Returns the cost of one evaluation of `expr`.
pub(crate) fn expr<'a>(expr: &Expr, ty: &impl Fn(VarId) -> &'a Type) -> f64 {
    alone::<Plain>(expr, ty, Place::Separate).0
}

/// Returns the number of scalar operators in one evaluation of `function`, with the costlier side of branches: a
/// polynomial in its sizes.
#[must_use]
pub fn operations(function: &Function) -> Size {
    fn of(block: &Block) -> Size {
        block.stmts.iter().fold(Size::zero(), |sum, stmt| sum.add(&alone(&stmt.expr)))
    }
    fn alone(expr: &Expr) -> Size {
        match expr {
            Expr::Op(..) => Size::constant(1),
            Expr::Build { size: count, index, body }
            | Expr::Sum { count, index, body }
            | Expr::Fold(StateLoop { count, index, body, .. })
            | Expr::Loop(StateLoop { count, index, body, .. }) => count.mul(&of(body)).outside(*index, count),
            Expr::While(WhileLoop { condition, body, .. }) => of(condition).add(&of(body)).scale(WHILE_STEPS as i64),
            Expr::If { then, otherwise, .. } => of(then).larger(of(otherwise)),
            _ => expr.blocks().into_iter().fold(Size::zero(), |sum, block| sum.add(&of(block))),
        }
    }
    of(&function.body)
}

/// Returns the number of numbers that one evaluation of `function` stores in arrays: elements of builds, sums of
/// arrays, array literals. A row made in place of an element of a build counts once; the larger side of a branch
/// counts.
#[must_use]
pub fn stored(function: &Function) -> Size {
    let ty = |var| function.ty(var);
    stored_in(&function.body, None, &ty)
}

// `made` is the variable made in place of the value around the block, with all parts of a tuple.
fn stored_in<'a>(block: &Block, made: Option<VarId>, ty: &impl Fn(VarId) -> &'a Type) -> Size {
    let in_place: Vec<VarId> = match made.and_then(|made| block.bound(made)) {
        Some(Expr::Tuple(fields)) => fields.clone(),
        _ => made.into_iter().collect(),
    };
    let mut sum = Size::zero();
    for stmt in &block.stmts {
        let itself = if in_place.contains(&stmt.var) { Size::zero() } else { kept(stmt.var, &stmt.expr, ty) };
        let inside = match &stmt.expr {
            Expr::Build { size: count, index, body }
            | Expr::Sum { count, index, body }
            | Expr::Loop(StateLoop { count, index, body, .. }) => {
                count.mul(&stored_in(body, Some(body.result), ty)).outside(*index, count)
            }
            Expr::Fold(StateLoop { count, index, body, .. }) => {
                count.mul(&stored_in(body, None, ty)).outside(*index, count)
            }
            Expr::While(WhileLoop { condition, body, .. }) => {
                stored_in(condition, None, ty).add(&stored_in(body, None, ty)).scale(WHILE_STEPS as i64)
            }
            Expr::If { then, otherwise, .. } => stored_in(then, None, ty).larger(stored_in(otherwise, None, ty)),
            other => other.blocks().into_iter().fold(Size::zero(), |sum, block| sum.add(&stored_in(block, None, ty))),
        };
        sum = sum.add(&itself).add(&inside);
    }
    sum
}

// Numbers of the array made by `expr` itself.
fn kept<'a>(var: VarId, expr: &Expr, ty: &impl Fn(VarId) -> &'a Type) -> Size {
    let arrays = |ty: &Type| match ty {
        Type::Array(..) => words(ty),
        Type::Tuple(fields, _) => {
            let arrays = fields.iter().filter(|field| matches!(field, Type::Array(..)));
            arrays.fold(Size::zero(), |sum, field| sum.add(&words(field)))
        }
        _ => Size::zero(),
    };
    match (expr, ty(var)) {
        (Expr::Build { .. } | Expr::Sum { .. } | Expr::Array(_) | Expr::Plus(..), ty) => arrays(ty),
        // The state is in place.
        (Expr::Loop(_), Type::Tuple(parts, _)) => {
            parts.iter().skip(1).fold(Size::zero(), |sum, part| sum.add(&arrays(part)))
        }
        _ => Size::zero(),
    }
}

/// Returns the number of loops in `function`.
#[must_use]
pub fn loops(function: &Function) -> usize {
    fn of(block: &Block) -> usize {
        let one = |expr: &Expr| match expr {
            Expr::Build { .. } | Expr::Sum { .. } | Expr::Fold(_) | Expr::Loop(_) | Expr::While(_) => 1,
            _ => 0,
        };
        block.stmts.iter().map(|stmt| one(&stmt.expr) + stmt.expr.blocks().into_iter().map(of).sum::<usize>()).sum()
    }
    of(&function.body)
}

/// Place of code whose cost is estimated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In no loop.
    Once,
    /// In the body of a sum: sums in it are accumulated in place.
    Summed,
    Separate,
}

fn within<'a, A: Amount>(block: &Block, ty: &impl Fn(VarId) -> &'a Type, place: Place) -> A {
    let sparse = sparse_arrays(block, ty);
    block.stmts.iter().fold(A::number(0.0), |sum, stmt| {
        let one = match &stmt.expr {
            Expr::Plus(a, b) if place != Place::Summed && (sparse.contains(a) || sparse.contains(b)) => {
                A::number(ADDED)
            }
            expr => alone(expr, ty, place),
        };
        sum.plus(one)
    })
}

// Arrays of `block` that are added in place, element by element.
fn sparse_arrays<'a>(block: &Block, ty: &impl Fn(VarId) -> &'a Type) -> BTreeSet<VarId> {
    let mut sparse = BTreeSet::new();
    for stmt in &block.stmts {
        if matches!(ty(stmt.var), Type::Array(..)) && is_sparse(&stmt.expr, &sparse) {
            sparse.insert(stmt.var);
        }
    }
    sparse
}

// Whether the expression is an array that is added in place, element by element; `sparse` has those around it.
fn is_sparse(expr: &Expr, sparse: &BTreeSet<VarId>) -> bool {
    let ends = |block: &Block| match block.bound(block.result) {
        Some(expr) => is_sparse(expr, sparse),
        None => sparse.contains(&block.result),
    };
    match expr {
        Expr::OneHot { .. } | Expr::Zero => true,
        Expr::If { then, otherwise, .. } => ends(then) && ends(otherwise),
        _ => false,
    }
}

fn alone<'a, A: Amount>(expr: &Expr, ty: &impl Fn(VarId) -> &'a Type, place: Place) -> A {
    let of = |body: &Block| within::<A>(body, ty, Place::Separate);
    let of_sum = |body: &Block| within::<A>(body, ty, Place::Summed);
    let started = |ty: &Type| if place == Place::Summed { A::number(0.0) } else { words(ty) };
    let one = || A::number(1.0);
    let none = || A::number(0.0);
    match expr {
        // A zero costs nothing if it is accumulated in place.
        Expr::Real(_) | Expr::Bool(_) | Expr::Size(_) | Expr::Tuple(_) | Expr::Component(..) | Expr::Zero => none(),
        // An array in it is made in place.
        Expr::OneHot { value, .. } if *ty(*value) == Type::Double => {
            A::number(if place == Place::Summed { ADDED } else { 1.0 })
        }
        Expr::OneHot { .. } => none(),
        // In a sum each side is accumulated in place (`added`).
        Expr::Plus(a, _) => started(ty(*a)),
        Expr::Op(Op::Add | Op::Sub | Op::Eq | Op::Lt | Op::Le | Op::And | Op::Or | Op::Not, args)
            if !A::COUNTS_INDICES && *ty(args[0]) != Type::Double =>
        {
            none()
        }
        Expr::Op(op, _) => A::number(f64::from(op.row().weight)),
        Expr::ToReal(_) | Expr::ToInt(_) => one(),
        Expr::Get { array, .. } => match ty(*array) {
            Type::Array(_, element) => A::number(f64::from(loaded(element))),
            _ => one(),
        },
        Expr::Array(elements) => A::number(elements.len() as f64),
        // Made in the memory of the array.
        Expr::Build { .. } if let Some(change) = expr.changed_element() => of(change.block).plus(A::number(ADDED)),
        Expr::Build { size, index, body } => {
            let is_changed = || {
                let sparse = sparse_arrays(body, ty);
                expr.changed_array(Rows::Named, &|var| sparse.contains(&var)).is_some()
            };
            // A row that is only passed on costs a copy, but not if it is made or changed in place.
            let stored = if made_in(body) {
                one()
            } else if place == Place::Summed && matches!(body.bound(body.result), Some(Expr::OneHot { .. })) {
                A::number(SCATTERED)
            } else if is_changed() {
                none()
            } else {
                words(ty(body.result))
            };
            let all = A::size(size).times(of(body).plus(one()).plus(stored)).outside(*index, size);
            let is_tiled = place != Place::Once && fusion::is_row_of_product(expr);
            if is_tiled { A::number(A::PRODUCTS).times(all) } else { all }
        }
        Expr::Sum { count, index, body } => {
            let step = of_sum(body).plus(one()).plus(added(body, body.result, ty));
            A::size(count).times(step).outside(*index, count).plus(started(ty(body.result)))
        }
        Expr::Fold(StateLoop { count, index, body, .. }) => {
            A::size(count).times(of(body).plus(one())).outside(*index, count)
        }
        Expr::Loop(StateLoop { count, index, body, .. }) => {
            let term = match ty(body.result) {
                Type::Tuple(parts, _) => parts.last().map_or(none(), started),
                _ => none(),
            };
            A::size(count).times(of_sum(body).plus(one())).outside(*index, count).plus(term)
        }
        Expr::While(WhileLoop { condition, body, .. }) => {
            A::number(WHILE_STEPS).times(of(condition).plus(of(body)).plus(one()))
        }
        Expr::If { then, otherwise, .. } => {
            one().plus(within::<A>(then, ty, place).larger(within(otherwise, ty, place)))
        }
        Expr::Jvp { body, .. } | Expr::Vjp { body, .. } => A::number(3.0).times(of(body)),
        Expr::Custom(custom) => of(&custom.body),
        Expr::Again { .. } => one(),
    }
}

// Number of numbers that reading an element loads; for a tuple, an address at least. A row is a view; only its
// elements are loaded.
fn loaded(element: &Type) -> u32 {
    match element {
        Type::Array(..) => 0,
        Type::Tuple(fields, _) => fields.iter().map(loaded).sum::<u32>().max(1),
        _ => 1,
    }
}

// Cost of adding the result of `block` to a sum: a sparse result is added where it is not zero, the result of a loop
// while it is made.
fn added<'a, A: Amount>(block: &Block, var: VarId, ty: &impl Fn(VarId) -> &'a Type) -> A {
    match block.bound(var) {
        Some(Expr::Tuple(fields)) => {
            fields.iter().fold(A::number(0.0), |sum, field| sum.plus(added(block, *field, ty)))
        }
        Some(
            Expr::OneHot { .. }
            | Expr::Build { .. }
            | Expr::Sum { .. }
            | Expr::Loop(_)
            | Expr::Zero
            | Expr::Component(..),
        ) => A::number(0.0),
        Some(Expr::Plus(a, b)) => added::<A>(block, *a, ty).plus(added(block, *b, ty)),
        // A side of a branch that makes nothing is usually a zero.
        Some(Expr::If { then, otherwise, .. }) if *ty(var) != Type::Double => {
            let made = |block: &Block| match block.bound(block.result) {
                Some(_) => added(block, block.result, ty),
                None => A::number(0.0),
            };
            made(then).larger(made(otherwise)).plus(A::number(1.0))
        }
        _ => words(ty(var)),
    }
}

// Whether the result of `block` is an array made by one of its statements.
fn made_in(block: &Block) -> bool {
    block.bound(block.result).is_some_and(|expr| matches!(expr, Expr::Build { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_ir::Builder;

    #[test]
    fn a_triangle_of_products_costs_a_square() {
        let mut b = Builder::new("f");
        let n = b.size_param("n");
        let n = b.size_of(n);
        let v = b.param("v", Type::array(n.clone(), Type::Double));
        let result = b.build(n.clone(), |b, i| {
            let count = b.size_of(i);
            b.sum(count, |b, j| {
                let x = b.get_proved(v, j);
                b.op(Op::Mul, &[x, x])
            })
        });
        let f = b.finish(result);
        // n * (n * (load + product + step + addition) + the sum's zero + step + store)
        assert_eq!(symbolic(&f), n.mul(&n).scale(4).add(&n.scale(3)));
        assert_eq!(function(&f), 4.0 * LARGE * LARGE + 3.0 * LARGE);
        assert_eq!((operations(&f), stored(&f), loops(&f)), (n.mul(&n), n, 2));
    }

    #[test]
    fn arrays_made_in_place_are_stored_once() {
        let mut b = Builder::new("f");
        let n = b.size_param("n");
        let n = b.size_of(n);
        let v = b.param("v", Type::array(n.clone(), Type::Double));
        // A matrix, and the sum of its rows.
        let matrix = b.build(n.clone(), |b, i| {
            b.build(n.clone(), |b, j| {
                let (x, y) = (b.get_proved(v, i), b.get_proved(v, j));
                b.op(Op::Mul, &[x, y])
            })
        });
        let rows = b.sum(n.clone(), |b, i| b.get_proved(matrix, i));
        let f = b.finish(rows);
        assert_eq!((stored(&f), loops(&f)), (n.mul(&n).add(&n), 3));
    }
}
