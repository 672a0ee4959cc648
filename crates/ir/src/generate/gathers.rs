//! Random functions whose results are loops over reads at computed indices, with arguments: the form of sparse
//! derivatives.
//!
//! Nested builds; reads of several arrays by integer arrays with repetitions, at neighbours, under branches on integers
//! and on doubles; sums over neighbours inside other functions; intermediate arrays that are read again; arrays of
//! tuples. Sizes are 0 to 4. Functions are smooth, and every index that is read is in range.

use crate::{Builder, Expr, Function, Size, StateLoop, Type, Value, VarId};
use arbitrary::{Result, Unstructured};
use chainrule_ops::Op;

/// Returns a function whose result is an array, or a tuple of arrays and doubles, with arguments.
///
/// # Errors
/// Fails if `u` runs out.
pub fn rows(u: &mut Unstructured<'_>) -> Result<(Function, Vec<Value<f64>>)> {
    let mut g = Generator::new(u)?;
    let mut parts = Vec::new();
    for _ in 0..g.u.int_in_range(1..=2)? {
        parts.push(g.part()?);
    }
    let result = if parts.len() == 1 { parts[0] } else { g.b.tuple(&parts) };
    g.finish(result)
}

/// Returns a scalar function that is a sum of sums, with arguments.
///
/// # Errors
/// Fails if `u` runs out.
pub fn scalar(u: &mut Unstructured<'_>) -> Result<(Function, Vec<Value<f64>>)> {
    let mut g = Generator::new(u)?;
    g.fuel = 12;
    let mut total = g.sum(0)?;
    for _ in 0..g.u.int_in_range(0..=2)? {
        let more = if g.u.ratio(1, 5)? { g.scalar(1)? } else { g.sum(0)? };
        total = match g.u.int_in_range(0..=5)? {
            0 => g.b.op(Op::Sub, &[total, more]),
            1 => {
                let half = g.b.real(0.5);
                let scaled = g.b.op(Op::Mul, &[half, more]);
                g.b.op(Op::Add, &[scaled, total])
            }
            2 => {
                let three = g.b.real(3.0);
                let scaled = g.b.op(Op::Div, &[more, three]);
                let negative = g.b.op(Op::Neg, &[scaled]);
                g.b.op(Op::Add, &[total, negative])
            }
            3 => g.b.op(Op::Mul, &[total, more]),
            _ => g.b.op(Op::Add, &[total, more]),
        };
    }
    g.finish(total)
}

/// Range of a loop.
#[derive(Clone, Copy, PartialEq)]
enum Range {
    P,
    Q,
    N,
}

struct Generator<'a, 'u> {
    b: Builder,
    u: &'a mut Unstructured<'u>,
    /// Extents: [`Range::P`], [`Range::Q`], [`Range::N`].
    extents: [i64; 3],
    sizes: [VarId; 3],
    /// Counters in scope, with their ranges.
    counters: Vec<(VarId, Range)>,
    /// Doubles in scope.
    scalars: Vec<VarId>,
    /// Intermediate arrays of doubles over `p`.
    arrays: Vec<VarId>,
    x: VarId,
    pairs: VarId,
    w: VarId,
    theta: VarId,
    into_n: VarId,
    neighbours: VarId,
    fuel: u32,
    /// Seed of the arguments.
    seed: u16,
}

impl<'a, 'u> Generator<'a, 'u> {
    /// Returns the generator with `x : [n]Double`, `pairs : [n](Double, [2]Double)`, `w : [p]Double`, `theta :
    /// [2]Double`, `into_n : [p]Int`, `neighbours : [p][q]Int`.
    fn new(u: &'a mut Unstructured<'u>) -> Result<Self> {
        let seed = u.arbitrary()?;
        let extents = [u.int_in_range(0..=4)?, u.int_in_range(0..=3)?, u.int_in_range(1..=4)?];
        let mut b = Builder::new("gathers");
        let sizes = ["p", "q", "n"].map(|name| b.size_param(name));
        let [p, q, n] = sizes.map(Size::var);
        let x = b.param("x", Type::array(n.clone(), Type::Double));
        let pair = Type::tuple(vec![Type::Double, Type::array(Size::constant(2), Type::Double), Type::Int]);
        let pairs = b.param("pairs", Type::array(n, pair));
        let w = b.param("w", Type::array(p.clone(), Type::Double));
        let theta = b.param("theta", Type::array(Size::constant(2), Type::Double));
        let into_n = b.param("into_n", Type::array(p.clone(), Type::Int));
        let neighbours = b.param("neighbours", Type::array(p, Type::array(q, Type::Int)));
        let fuel = 25;
        Ok(Self {
            b,
            u,
            extents,
            sizes,
            counters: Vec::new(),
            scalars: Vec::new(),
            arrays: Vec::new(),
            x,
            pairs,
            w,
            theta,
            into_n,
            neighbours,
            fuel,
            seed,
        })
    }

    fn finish(self, result: VarId) -> Result<(Function, Vec<Value<f64>>)> {
        let [p, q, n] = self.extents;
        // Not from `u`, which may have run out: then all reads would be of one element.
        let mut next = super::numbers(self.seed);
        let mut reals =
            |n: i64| -> Vec<Value<f64>> { (0..n).map(|_| Value::Real((next(257) - 128) as f64 / 64.0)).collect() };
        let (x, w, theta) = (reals(n), reals(p), reals(2));
        let pairs: Vec<[Vec<Value<f64>>; 2]> = (0..n).map(|_| [reals(1), reals(2)]).collect();
        let mut ints = |m: i64| -> Vec<Value<f64>> { (0..m).map(|_| Value::Int(next(n))).collect() };
        let pair = |[mut one, two]: [Vec<Value<f64>>; 2]| {
            one.push(Value::Array(two));
            one.extend(ints(1));
            Value::Tuple(one)
        };
        let pairs = pairs.into_iter().map(pair).collect();
        let into_n = ints(p);
        let neighbours = (0..p).map(|_| Value::Array(ints(q))).collect();
        let args = [x, pairs, w, theta, into_n, neighbours].map(Value::Array);
        Ok((self.b.finish(result), args.into()))
    }

    fn extent(&self, range: Range) -> Size {
        Size::var(self.sizes[range as usize])
    }

    /// Returns a block with a counter.
    fn looped(&mut self, range: Range, body: impl FnOnce(&mut Self) -> Result<VarId>) -> Result<(VarId, crate::Block)> {
        let index = self.b.fresh(Type::Int);
        let scope = self.scalars.len();
        self.counters.push((index, range));
        self.b.push_block();
        let result = body(self)?;
        let block = self.b.pop_block(result);
        self.counters.pop();
        self.scalars.truncate(scope);
        Ok((index, block))
    }

    fn range(&mut self) -> Result<Range> {
        self.u.choose(&[Range::P, Range::P, Range::P, Range::Q, Range::N]).copied()
    }

    /// Returns an array, or a double: a part of a result.
    fn part(&mut self) -> Result<VarId> {
        if self.u.ratio(1, 3)? {
            // An array that rows read.
            let (index, body) = self.looped(Range::P, |g| g.scalar(2))?;
            let array = self.b.compute(Expr::Build { size: self.extent(Range::P), index, body });
            self.arrays.push(array);
        }
        if self.u.ratio(1, 8)? {
            return if self.u.arbitrary()? { Ok(self.x) } else { Ok(self.pairs) };
        }
        let range = self.range()?;
        let kind = self.u.int_in_range(0..=5)?;
        let (index, body) = self.looped(range, |g| match kind {
            0 => {
                let inner = g.range()?;
                let (index, body) = g.looped(inner, |g| g.scalar(2))?;
                Ok(g.b.compute(Expr::Build { size: g.extent(inner), index, body }))
            }
            1 => {
                let fields = [g.scalar(2)?, g.scalar(2)?];
                Ok(g.b.tuple(&fields))
            }
            2 => {
                let fields = [g.scalar(3)?, g.scalar(2)?, g.scalar(1)?];
                Ok(g.b.array(&fields))
            }
            _ => g.scalar(3),
        })?;
        Ok(self.b.compute(Expr::Build { size: self.extent(range), index, body }))
    }

    /// Returns a double, by at most `depth` more nested operations.
    fn scalar(&mut self, depth: u32) -> Result<VarId> {
        if depth == 0 || self.fuel == 0 {
            return self.read();
        }
        self.fuel -= 1;
        let value = match self.u.int_in_range(0..=9)? {
            0 | 1 => {
                let (a, b) = (self.scalar(depth - 1)?, self.scalar(depth - 1)?);
                self.b.op(Op::Mul, &[a, b])
            }
            2 => {
                let (a, b) = (self.scalar(depth - 1)?, self.scalar(depth - 1)?);
                self.b.op(Op::Sub, &[a, b])
            }
            3 | 4 => {
                let op = *self.u.choose(&[Op::Sin, Op::Tanh, Op::Neg])?;
                let a = self.scalar(depth - 1)?;
                self.b.op(op, &[a])
            }
            5 => self.sum(depth - 1)?,
            6 => {
                let range = self.range()?;
                let init = self.read()?;
                let state = self.b.fresh(Type::Double);
                let (index, body) = self.looped(range, |g| {
                    g.scalars.push(state);
                    let step = g.scalar(depth - 1)?;
                    let both = g.b.op(Op::Add, &[state, step]);
                    Ok(g.b.op(Op::Sin, &[both]))
                })?;
                self.b.compute(Expr::Fold(StateLoop { count: self.extent(range), index, state, init, body }))
            }
            7 | 8 => self.branch(depth - 1)?,
            _ => self.read()?,
        };
        self.scalars.push(value);
        Ok(value)
    }

    fn sum(&mut self, depth: u32) -> Result<VarId> {
        let range = self.range()?;
        let (index, body) = self.looped(range, |g| g.scalar(depth.max(1) + 1))?;
        // Sometimes one term fewer: a count that may be negative.
        let mut count = self.extent(range);
        if self.u.ratio(1, 4)? {
            count = count.sub(&Size::constant(1));
        }
        Ok(self.b.compute(Expr::Sum { count, index, body }))
    }

    fn branch(&mut self, depth: u32) -> Result<VarId> {
        let scope = self.scalars.len();
        let of_p = self.counters.iter().rev().find(|(_, range)| *range == Range::P).copied();
        let (condition, next) = match of_p {
            // The next element, if there is one.
            Some((counter, _)) if self.u.arbitrary()? => {
                let one = self.b.int(1);
                let next = self.b.op(Op::Add, &[counter, one]);
                (self.b.op(Op::Lt, &[next, self.sizes[0]]), Some(next))
            }
            Some((counter, _)) if self.u.arbitrary()? => {
                let one = self.b.int(1);
                (self.b.op(Op::Lt, &[counter, one]), None)
            }
            _ => {
                let (value, zero) = (self.read()?, self.b.real(0.1));
                (self.b.op(Op::Lt, &[value, zero]), None)
            }
        };
        self.b.push_block();
        let taken = match next {
            Some(next) => {
                let read = match self.u.int_in_range(0..=1)? {
                    0 => self.b.get(self.w, next),
                    _ => {
                        let at = self.b.get(self.into_n, next);
                        self.b.get(self.x, at)
                    }
                };
                let other = self.scalar(depth)?;
                self.b.op(Op::Mul, &[read, other])
            }
            None => self.scalar(depth)?,
        };
        let then = self.b.pop_block(taken);
        self.scalars.truncate(scope);
        self.b.push_block();
        let taken = self.scalar(depth)?;
        let otherwise = self.b.pop_block(taken);
        self.scalars.truncate(scope);
        Ok(self.b.compute(Expr::If { condition, then, otherwise }))
    }

    /// Returns a double that is read from an argument or an intermediate array.
    fn read(&mut self) -> Result<VarId> {
        let of =
            |g: &Self, range: Range| g.counters.iter().rev().find(|(_, r)| *r == range).map(|(counter, _)| *counter);
        let (of_p, of_q, of_n) = (of(self, Range::P), of(self, Range::Q), of(self, Range::N));
        // An index into an array of n elements.
        let mut at = of_n;
        if let (Some(p), true) = (of_p, at.is_none() || self.u.arbitrary()?) {
            at = Some(match of_q {
                Some(q) if self.u.arbitrary()? => {
                    let row = self.b.get_proved(self.neighbours, p);
                    self.b.get_proved(row, q)
                }
                // An integer among doubles.
                _ if self.u.ratio(1, 4)? => {
                    let at = self.b.get_proved(self.into_n, p);
                    let pair = self.b.get_proved(self.pairs, at);
                    self.b.component(pair, 2)
                }
                _ if self.u.ratio(1, 10)? => self.b.get(self.into_n, p),
                // In range because the loop over `p` runs.
                _ if self.u.ratio(1, 4)? => {
                    let end = self.end_of_p()?;
                    self.b.get_proved(self.into_n, end)
                }
                _ => self.b.get_proved(self.into_n, p),
            });
        }
        Ok(match (self.u.int_in_range(0..=8)?, at, of_p) {
            (0 | 1, Some(at), _) => self.b.get(self.x, at),
            (2, Some(at), _) => {
                let pair = self.b.get(self.pairs, at);
                self.b.component(pair, 0)
            }
            (3, Some(at), _) => {
                let pair = self.b.get(self.pairs, at);
                let both = self.b.component(pair, 1);
                let k = self.b.int(1);
                self.b.get_proved(both, k)
            }
            (4 | 5, _, Some(_)) if self.u.ratio(1, 6)? => {
                let end = self.end_of_p()?;
                self.b.get_proved(self.w, end)
            }
            (4 | 5, _, Some(p)) => match self.arrays.last() {
                Some(array) if self.u.arbitrary()? => self.b.get_proved(*array, p),
                _ => self.b.get_proved(self.w, p),
            },
            (6, ..) => {
                let k = self.u.int_in_range(0..=1)?;
                let k = self.b.int(k);
                self.b.get_proved(self.theta, k)
            }
            (7, ..) if !self.scalars.is_empty() => *self.u.choose(&self.scalars)?,
            _ => {
                let value = f64::from(self.u.int_in_range(-8..=8)?) / 4.0;
                self.b.real(value)
            }
        })
    }

    /// Returns the first or the last index below `p`; it only exists in a loop over `p`.
    fn end_of_p(&mut self) -> Result<VarId> {
        let last = self.extent(Range::P).sub(&Size::constant(1));
        Ok(if self.u.arbitrary()? { self.b.int(0) } else { self.b.size(last) })
    }
}
