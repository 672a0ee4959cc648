//! Sums of arrays that are linear in a few numbers of each iteration: the numbers are summed, and the array is made
//! once.
//!
//! So the cotangent of a mean, `sum n (fun p -> transpose q (c p))`, becomes `transpose q (sum n c)`.
//!
//! A term is followed from its result through sums, builds, one-hot arrays and products with invariants, down to a
//! number in fewer loops ([`Looker`]). The path from the number to the term is written again, outside ([`Made`]).

use super::get::needed;
use super::mask::is_zero;
use super::number::is_number;
use super::sum::{Parts, parts};
use super::{On, Rule};
use crate::rebuild::{Env, Rebuild, Slice};
use chainrule_ir::{Block, Expr, Size, Type, VarId};
use chainrule_ops::{Op, Semantics};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "sum-of-linear",
    law: "sum n (fun i -> build m (fun j -> f i * x j)) = build m (fun j -> sum n f * x j); for nests of loops, and fields",
    when: "nothing but f depends on i, which stands in fewer loops than the product; n >= 1, or x is made of numbers",
    holds_under: Semantics::Algebraic,
    split: false,
    on: On::Sum,
    apply: linear,
}];

/// Maximum number of visited variables of a term.
const MAX_LOOKED_AT: usize = 64;

/// Construction of an array from the sum of a number.
enum Made {
    /// The sum of the number, in its loops.
    Number,
    /// An invariant of all iterations.
    Outside(VarId),
    Zero(Type),
    Op(Op, Vec<Made>),
    Plus(Box<[Made; 2]>),
    Get(Box<Made>, Size),
    /// Index, value, number of elements.
    OneHot(Size, Box<Made>, Size),
    Sum(VarId, Size, Box<Made>),
    Build(VarId, Size, Box<Made>),
}

/// A loop of a term.
#[derive(Clone)]
struct Loop<'b> {
    index: VarId,
    count: &'b Size,
    body: &'b Block,
}

/// The number that a term is linear in, with its loops.
#[derive(Clone)]
struct Number<'b> {
    var: VarId,
    loops: Vec<Loop<'b>>,
}

fn linear(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let mut arrays = Vec::new();
    array_fields(ty, &mut Vec::new(), &mut arrays);
    arrays.into_iter().find_map(|path| {
        let left = MAX_LOOKED_AT;
        let mut looker = Looker { rb, sum: &sum, runs: sum.runs(rb), loops: Vec::new(), number: None, left };
        let made = looker.linear(sum.body.result, &path, 0)?;
        let number = looker.number?;
        Some(summed(rb, &sum, &path, &number, &made))
    })
}

/// Finds the arrays of a tuple, or of nested tuples.
fn array_fields(ty: &Type, path: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    match ty {
        Type::Array(..) => found.push(path.clone()),
        Type::Tuple(fields, _) => {
            for (k, field) in fields.iter().enumerate() {
                path.push(k);
                array_fields(field, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Returns the type of the part `path` of a value of type `ty`, or of its elements.
fn part(ty: &Type, path: &[usize]) -> Type {
    match (ty, path) {
        (Type::Tuple(fields, _), [k, rest @ ..]) => part(&fields[*k], rest),
        (Type::Array(size, element), [_, ..]) => Type::Array(size.clone(), Box::new(part(element, path))),
        _ => ty.clone(),
    }
}

/// Walk along a term.
struct Looker<'l, 'b, 'a> {
    rb: &'l Rebuild<'a>,
    sum: &'b Parts<'b>,
    /// Whether there certainly is an iteration.
    runs: bool,
    /// Open loops, outermost first.
    loops: Vec<Loop<'b>>,
    number: Option<Number<'b>>,
    left: usize,
}

impl<'b> Looker<'_, 'b, '_> {
    /// Returns the expression of `var`, and its number of loops; `None` for variables from outside.
    fn bound(&self, var: VarId) -> Option<(usize, &'b Expr)> {
        let body = |depth: usize| if depth == 0 { self.sum.body } else { self.loops[depth - 1].body };
        (0..=self.loops.len()).rev().find_map(|depth| Some((depth, self.rb.bound_in(body(depth), var)?)))
    }

    /// Returns whether `size` is invariant; it may depend on loops of the term.
    fn is_known(&self, size: &Size) -> bool {
        size.vars()
            .iter()
            .all(|v| self.loops.iter().any(|l| l.index == *v) || (*v != self.sum.index && self.bound(*v).is_none()))
    }

    /// Returns `index`, if it is invariant and in range of `array` whether there are iterations or not.
    fn index(&self, index: VarId, array: &Type) -> Option<Size> {
        let Type::Array(size, _) = array else { return None };
        let counts: Vec<VarId> = self.loops.iter().filter_map(|l| l.count.as_var()).collect();
        let index = self.rb.size_of(index);
        (self.is_known(&index) && self.rb.ranges.in_range_where(&index, size, &counts)).then_some(index)
    }

    /// Returns how the part `path` of `var` is made of a number in fewer than `widest` loops, the number of loops
    /// around its use. Recursive on the bounded number of visited variables.
    fn linear(&mut self, var: VarId, path: &[usize], widest: usize) -> Option<Made> {
        self.left = self.left.checked_sub(1)?;
        let Some((depth, expr)) = self.bound(var) else {
            return is_zero(self.rb, var).then(|| Made::Zero(part(self.rb.ty(var), path)));
        };
        // Its definition only sees the loops around it.
        let inner = self.loops.split_off(depth);
        let before = self.number.clone();
        let mut made = self.made_of(var, expr, path, widest);
        let is_it = self.number.as_ref().is_some_and(|found| found.var == var);
        let may_be_it = *self.rb.ty(var) == Type::Double && (depth < widest || is_it);
        if may_be_it && (made.is_none() || self.number.as_ref().is_none_or(|found| found.loops.len() > depth)) {
            self.number = before;
            made = self.found(var);
        }
        self.loops.extend(inner);
        made
    }

    /// Takes `var` in all open loops as the number; fails if there is another one, or the loops are not those of an
    /// array.
    fn found(&mut self, var: VarId) -> Option<Made> {
        if let Some(number) = &self.number {
            return (number.var == var).then_some(Made::Number);
        }
        let is_index = |v: &VarId| self.loops.iter().any(|l| l.index == *v);
        let is_dimension = |count: &Size| {
            self.is_known(count) && !count.vars().iter().any(is_index) && self.rb.ranges.not_negative(count)
        };
        self.loops.iter().all(|l| is_dimension(l.count)).then(|| {
            self.number = Some(Number { var, loops: self.loops.clone() });
            Made::Number
        })
    }

    fn made_of(&mut self, var: VarId, expr: &'b Expr, path: &[usize], widest: usize) -> Option<Made> {
        let rb = self.rb;
        Some(match expr {
            Expr::Tuple(fields) => {
                let (k, rest) = path.split_first()?;
                self.linear(fields[*k], rest, widest)?
            }
            Expr::Component(tuple, k) => self.linear(*tuple, &[&[*k], path].concat(), widest)?,
            Expr::Sum { count, index, body } | Expr::Build { size: count, index, body } => {
                let is_sum = matches!(expr, Expr::Sum { .. });
                if !self.is_known(count) || !(is_sum || rb.ranges.not_negative(count)) {
                    return None;
                }
                self.loops.push(Loop { index: *index, count, body });
                let made = self.linear(body.result, path, widest.max(self.loops.len()));
                self.loops.pop();
                let (index, count, made) = (*index, count.clone(), Box::new(made?));
                if is_sum { Made::Sum(index, count, made) } else { Made::Build(index, count, made) }
            }
            Expr::OneHot { index, value, .. } => {
                let Type::Array(size, _) = rb.ty(var) else { return None };
                let index = self.index(*index, rb.ty(var))?;
                Made::OneHot(index, Box::new(self.linear(*value, path, widest)?), size.clone())
            }
            Expr::Get { array, index, .. } => {
                let index = self.index(*index, rb.ty(*array))?;
                Made::Get(Box::new(self.linear(*array, path, widest)?), index)
            }
            Expr::Plus(a, b) => Made::Plus(Box::new([self.linear(*a, path, widest)?, self.linear(*b, path, widest)?])),
            Expr::Op(op @ (Op::Neg | Op::Add | Op::Sub), args) if *rb.ty(var) == Type::Double => {
                let args: Option<_> = args.iter().map(|arg| self.linear(*arg, path, widest)).collect();
                Made::Op(*op, args?)
            }
            Expr::Op(op @ (Op::Mul | Op::MaskedMul | Op::Div), args) if *rb.ty(var) == Type::Double => {
                match self.free(args[1]) {
                    Some(_) if *op == Op::Div && !self.runs => return None,
                    Some(x) => Made::Op(*op, vec![self.linear(args[0], path, widest)?, x]),
                    None if *op == Op::Mul => {
                        let x = self.free(args[0])?;
                        Made::Op(*op, vec![x, self.linear(args[1], path, widest)?])
                    }
                    None => return None,
                }
            }
            _ => return None,
        })
    }

    /// Returns `var` if it is invariant: a variable from outside, its elements, and expressions of these without loops.
    fn free(&mut self, var: VarId) -> Option<Made> {
        self.left = self.left.checked_sub(1)?;
        let rb = self.rb;
        match self.bound(var) {
            None => (self.runs || is_number(rb, var)).then_some(Made::Outside(var)),
            Some((_, Expr::Get { array, index, .. })) => {
                let index = self.index(*index, rb.ty(*array))?;
                Some(Made::Get(Box::new(self.free(*array)?), index))
            }
            Some((_, Expr::Op(op, args)))
                if *rb.ty(var) == Type::Double
                    && matches!(op, Op::Neg | Op::Add | Op::Sub | Op::Mul)
                    && args.iter().all(|arg| *rb.ty(*arg) == Type::Double) =>
            {
                let args: Option<_> = args.iter().map(|arg| self.free(*arg)).collect();
                Some(Made::Op(*op, args?))
            }
            _ => None,
        }
    }
}

/// Writes the sum with the numbers in place of the part `path` of its terms, and that part made of their sums.
fn summed(rb: &mut Rebuild<'_>, sum: &Parts<'_>, path: &[usize], number: &Number<'_>, made: &Made) -> VarId {
    let mut bodies = vec![sum.body];
    bodies.extend(number.loops.iter().map(|l| l.body));
    let kept = needed(rb, &bodies, number.var);
    let sums = rb.sum(sum.count.clone(), |rb, i| {
        let mut env = sum.at(i);
        let whole = (!path.is_empty()).then(|| rb.inline(sum.body, sum.body.result, &mut env));
        let numbers = numbers(rb, &bodies, &kept, number, &mut env);
        whole.map_or(numbers, |whole| with_part(rb, whole, path, numbers))
    });
    let sum = path.iter().fold(sums, |tuple, k| rb.compute(Expr::Component(tuple, *k)));
    let array = made.write(rb, sum, number, &mut Env::copying(&[]));
    if path.is_empty() { array } else { with_part(rb, sums, path, array) }
}

/// Writes the array of the number in all iterations of its loops, or the number if there are none.
fn numbers(
    rb: &mut Rebuild<'_>,
    bodies: &[&Block],
    kept: &[Slice],
    number: &Number<'_>,
    env: &mut Env<'static>,
) -> VarId {
    rb.inline_kept(bodies[0], &kept[0], env);
    let depth = number.loops.len() + 1 - bodies.len();
    let Some(inner) = number.loops.get(depth) else { return env.get(number.var) };
    let count = rb.rename_size(inner.count, env);
    rb.build(count, |rb, i| {
        env.insert(inner.index, i);
        numbers(rb, &bodies[1..], &kept[1..], number, env)
    })
}

/// Writes the tuple `whole` with `new` for its part `path`.
fn with_part(rb: &mut Rebuild<'_>, whole: VarId, path: &[usize], new: VarId) -> VarId {
    let (Some((at, rest)), Type::Tuple(types, names)) = (path.split_first(), rb.ty(whole).clone()) else { return new };
    let mut fields = Vec::with_capacity(types.len());
    for k in 0..types.len() {
        // The replaced part is not read.
        if k == *at && rest.is_empty() {
            fields.push(new);
            continue;
        }
        let field = rb.compute(Expr::Component(whole, k));
        fields.push(if k == *at { with_part(rb, field, rest, new) } else { field });
    }
    let types = fields.iter().map(|field| rb.ty(*field).clone()).collect();
    rb.tuple(fields, &Type::Tuple(types, names))
}

impl Made {
    /// Writes the construction for the sums of `number`.
    fn write(&self, rb: &mut Rebuild<'_>, sums: VarId, number: &Number<'_>, env: &mut Env<'static>) -> VarId {
        match self {
            Self::Number => {
                let at = number.loops.iter().map(|l| env.get(l.index));
                at.fold(sums, |array, index| rb.get(array, index))
            }
            Self::Outside(var) => *var,
            Self::Zero(ty) => {
                let ty = rb.rename_type(ty, env);
                rb.zero(&ty)
            }
            Self::Op(op, args) => {
                let args: Vec<VarId> = args.iter().map(|arg| arg.write(rb, sums, number, env)).collect();
                rb.op(*op, &args)
            }
            Self::Plus(terms) => {
                let [a, b] = terms.each_ref().map(|term| term.write(rb, sums, number, env));
                rb.plus(a, b)
            }
            Self::Get(array, index) => {
                let array = array.write(rb, sums, number, env);
                let index = rb.rename_size(index, env);
                let index = rb.int(index);
                rb.get(array, index)
            }
            Self::OneHot(index, value, size) => {
                let value = value.write(rb, sums, number, env);
                let index = rb.rename_size(index, env);
                let index = rb.int(index);
                let ty = Type::Array(rb.rename_size(size, env), Box::new(rb.ty(value).clone()));
                rb.emit(Expr::OneHot { index, value, proved: true }, ty)
            }
            Self::Sum(index, count, term) => {
                let count = rb.rename_size(count, env);
                rb.sum(count, |rb, i| {
                    env.insert(*index, i);
                    term.write(rb, sums, number, env)
                })
            }
            Self::Build(index, count, element) => {
                let count = rb.rename_size(count, env);
                rb.build(count, |rb, i| {
                    env.insert(*index, i);
                    element.write(rb, sums, number, env)
                })
            }
        }
    }
}
