//! Invariant factors of the terms of sums.
//!
//! They are found in the terms, and in the elements of arrays that the terms read: where each row of an operand is
//! multiplied by a number, as the residuals of a least-squares problem by 2, the number is multiplied to the product
//! instead, whose operand is then the array without it.

use super::get::MAX_DIMENSIONS;
use super::number::is_number;
use super::op::doubles;
use super::sum::{Parts, of_numbers};
use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Block, Expr, Type, VarId};
use chainrule_ops::{Op, Semantics};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "sum-of-factor",
        law: "sum n (fun i -> x * f i) = x * sum n f; sum (f i / x) = sum f / x; sum (-f i) = -(sum f); \
          sum n (fun i -> (build m (fun j -> x * a[j]))[i] * f i) = x * sum n (fun i -> a[i] * f i), for nested builds",
        when: "x does not depend on i; n >= 1, or x is a factor that is a number wherever the program is",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Sum,
        apply: factor,
    },
    Rule {
        name: "sum-of-multiples",
        law: "sum n (fun i -> (build n (fun j -> x * f j))[i]) = x * sum n f",
        when: "sum n f is computed anyway; as sum-of-factor for x",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Sum,
        apply: multiples,
    },
];

/// Maximum number of visited factors of a term.
const MAX_FACTORS: usize = 16;

/// Element of an array from outside of its loops: the array and the variables of the indices, outermost first.
struct Read {
    array: VarId,
    indices: Vec<VarId>,
}

/// A product, with its sign.
#[derive(Default)]
struct Factors {
    /// Invariant factors ...
    outside: Vec<VarId>,
    /// ... and divisors.
    divisors: Vec<VarId>,
    negative: bool,
    /// Other factors.
    inside: Vec<VarId>,
    /// Further ones, from the elements of arrays whose factors are among the invariant ones.
    reads: Vec<Read>,
}

impl Factors {
    /// Returns whether nothing can be taken out.
    fn has_none(&self) -> bool {
        self.outside.is_empty() && self.divisors.is_empty() && !self.negative
    }

    /// Takes the factors of `element`, whose only other one is the element `read`.
    fn absorb(&mut self, element: Factors, read: Read) {
        self.outside.extend(element.outside);
        self.divisors.extend(element.divisors);
        self.negative ^= element.negative;
        self.reads.push(read);
    }
}

/// Loops, outermost first, of which the last computes a product.
struct Loops<'b> {
    indices: Vec<VarId>,
    bodies: Vec<&'b Block>,
    /// Whether there certainly is an iteration, so that invariants that may be infinite leave the sum.
    runs: bool,
}

impl<'b> Loops<'b> {
    fn bound(&self, rb: &Rebuild<'_>, var: VarId) -> Option<&'b Expr> {
        self.bodies.iter().rev().find_map(|body| rb.bound_in(body, var))
    }

    fn is_constant(&self, rb: &Rebuild<'_>, var: VarId) -> bool {
        !self.indices.contains(&var) && self.bound(rb, var).is_none()
    }

    fn result(&self) -> Option<VarId> {
        self.bodies.last().map(|body| body.result)
    }

    /// Returns the factors of `product`, without those of elements of arrays.
    fn factors(&self, rb: &Rebuild<'_>, product: VarId) -> Factors {
        let mut found = Factors::default();
        let mut todo = vec![product];
        while let Some(next) = todo.pop() {
            let def = self.bound(rb, next);
            let room = todo.len() + found.inside.len() + found.outside.len() < MAX_FACTORS;
            match def.and_then(|def| doubles(def, &Type::Double)) {
                _ if self.is_constant(rb, next) && (self.runs || is_number(rb, next)) => found.outside.push(next),
                Some((Op::Neg, &[x])) => {
                    found.negative = !found.negative;
                    todo.push(x);
                }
                Some((Op::Mul, &[x, y])) if room => todo.extend([y, x]),
                Some((Op::Div, &[x, y])) if room && self.runs && self.is_constant(rb, y) => {
                    found.divisors.push(y);
                    todo.push(x);
                }
                _ => found.inside.push(next),
            }
        }
        found
    }

    /// Follows the proved reads of `element` down to an array from outside, or to an array that is not read.
    fn read(&self, rb: &Rebuild<'_>, element: VarId) -> Read {
        let (mut array, mut indices) = (element, Vec::new());
        while indices.len() < MAX_DIMENSIONS
            && let Some(&Expr::Get { array: from, index, proved: true }) = self.bound(rb, array)
        {
            indices.push(index);
            array = from;
        }
        indices.reverse();
        Read { array, indices }
    }
}

fn factor(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = of_numbers(expr, ty)?;
    let loops = Loops { indices: vec![sum.index], bodies: vec![sum.body], runs: sum.runs(rb) };
    let mut found = loops.factors(rb, sum.body.result);
    for var in std::mem::take(&mut found.inside) {
        match scaled(rb, &loops, var) {
            Some((element, read)) => found.absorb(element, read),
            None => found.inside.push(var),
        }
    }
    let has_terms = !found.inside.is_empty() || !found.reads.is_empty();
    (has_terms && !found.has_none()).then(|| written(rb, &sum, &found))
}

/// Returns the factors of `element`, if it is one of an array whose elements are products of invariants and an element
/// of another array at the same place.
fn scaled(rb: &Rebuild<'_>, loops: &Loops<'_>, element: VarId) -> Option<(Factors, Read)> {
    let Read { mut array, mut indices } = loops.read(rb, element);
    if indices.is_empty() || !loops.is_constant(rb, array) {
        return None;
    }
    // A row that is read outside.
    let mut def = rb.def(array)?;
    while indices.len() < MAX_DIMENSIONS
        && let Expr::Get { array: from, index, proved: true } = *def
    {
        indices.insert(0, index);
        array = from;
        def = rb.def(array)?;
    }
    let mut builds = Loops { indices: Vec::new(), bodies: Vec::new(), runs: loops.runs };
    let mut build: &Expr = &def;
    for depth in 0..indices.len() {
        let Expr::Build { index, body, .. } = build else { return None };
        builds.indices.push(*index);
        builds.bodies.push(body);
        if depth + 1 < indices.len() {
            build = rb.bound_in(body, body.result)?;
        }
    }
    let found = builds.factors(rb, builds.result()?);
    let &[other] = &*found.inside else { return None };
    let from = builds.read(rb, other);
    let is_same_place = from.indices == builds.indices && builds.is_constant(rb, from.array);
    (is_same_place && !found.has_none()).then_some((found, Read { array: from.array, indices }))
}

/// The elements of softmax have the sum 1: that of their numerators is their divisor.
fn multiples(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = of_numbers(expr, ty)?;
    let loops = Loops { indices: vec![sum.index], bodies: vec![sum.body], runs: sum.runs(rb) };
    let Read { array, indices } = loops.read(rb, sum.body.result);
    if indices != [sum.index] || !loops.is_constant(rb, array) {
        return None;
    }
    let def = rb.def(array)?;
    let Expr::Build { index, body, .. } = &*def else { return None };
    let build = Loops { indices: vec![*index], bodies: vec![body], runs: loops.runs };
    let found = build.factors(rb, body.result);
    if found.has_none() || found.inside.is_empty() {
        return None;
    }
    let new = rb.vars.next_id();
    let rest = rb.sum(sum.count.clone(), |rb, i| {
        let mut env = Env::copying(&[(*index, i)]);
        let factors: Vec<VarId> = found.inside.iter().map(|var| rb.inline(body, *var, &mut env)).collect();
        product(rb, &factors)
    });
    (rest < new).then(|| multiplied(rb, rest, &found))
}

/// Writes `sum` with its invariant factors outside.
fn written(rb: &mut Rebuild<'_>, sum: &Parts<'_>, found: &Factors) -> VarId {
    let result = rb.sum(sum.count.clone(), |rb, i| {
        let mut env = sum.at(i);
        let mut factors: Vec<VarId> = found.inside.iter().map(|var| rb.inline(sum.body, *var, &mut env)).collect();
        for Read { array, indices } in &found.reads {
            let element = indices.iter().fold(*array, |array, index| {
                let index = rb.inline(sum.body, *index, &mut env);
                rb.get(array, index)
            });
            factors.push(element);
        }
        product(rb, &factors)
    });
    multiplied(rb, result, found)
}

/// Writes `sum` times the invariant factors of its terms.
fn multiplied(rb: &mut Rebuild<'_>, mut sum: VarId, found: &Factors) -> VarId {
    if !found.outside.is_empty() {
        let outside = product(rb, &found.outside);
        sum = rb.op(Op::Mul, &[outside, sum]);
    }
    for divisor in &found.divisors {
        sum = rb.op(Op::Div, &[sum, *divisor]);
    }
    if found.negative { rb.op(Op::Neg, &[sum]) } else { sum }
}

/// Writes the product of `factors`, of which there is one at least.
fn product(rb: &mut Rebuild<'_>, factors: &[VarId]) -> VarId {
    factors[1..].iter().fold(factors[0], |product, factor| rb.op(Op::Mul, &[product, *factor]))
}
