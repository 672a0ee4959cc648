//! Random functions whose loops make the next state of a matrix in several steps, each of which changes rows of the
//! previous one at, above or below an index, or passes it on, and reads rows nearby: the form of elimination. In
//! [`long_sums`] the next state is a sum that contains the last of them.

use crate::{Block, Builder, Expr, Function, Size, StateLoop, Type, Value, VarId};
use arbitrary::{Result, Unstructured};
use chainrule_ops::Op;

struct Generator<'a, 'u> {
    b: Builder,
    u: &'a mut Unstructured<'u>,
    /// Number of rows and columns.
    n: Size,
    /// The loop index, one more than it, and 0 or 1 in turn.
    k: Size,
    lag: VarId,
    /// Matrices so far, the latest last.
    made: Vec<VarId>,
    /// An index specific to this element of a matrix.
    own: Option<VarId>,
}

/// Returns such a function, with arguments.
///
/// # Errors
/// Fails if `u` runs out.
pub fn case(u: &mut Unstructured<'_>) -> Result<(Function, Vec<Value<f64>>)> {
    made(u, Next::Elements)
}

/// Returns a function whose next state is a sum of up to 42 matrices, with arguments.
///
/// # Errors
/// Fails if `u` runs out.
pub fn long_sums(u: &mut Unstructured<'_>) -> Result<(Function, Vec<Value<f64>>)> {
    made(u, Next::Sum)
}

/// Form of the next state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Elements,
    Sum,
}

fn made(u: &mut Unstructured<'_>, next: Next) -> Result<(Function, Vec<Value<f64>>)> {
    let mut b = Builder::new("steps");
    let inner = Size::var(b.size_param("m"));
    let n = inner.add(&Size::constant(2));
    let matrix = Type::array(n.clone(), Type::array(n.clone(), Type::Double));
    let (v, a) = (b.param("v", Type::array(inner.clone(), Type::Double)), b.param("a", matrix));
    let index = b.fresh(Type::Int);
    let with_rows = u.arbitrary()?;
    let state = b.fresh(b.ty(a).clone());
    b.push_block();
    let (two, at) = (b.int(2), b.size(Size::var(index)));
    let lag = b.compute(Expr::op(Op::Mod, &[at, two]));
    let k = Size::var(index).add(&Size::constant(1));
    let mut g = Generator { b, u, n: n.clone(), k, lag, made: vec![state], own: None };
    let weight = g.b.get_proved(v, index);
    // The first term of a sum, made before the state is read.
    let first = match next {
        Next::Sum => Some(g.all(weight)?),
        Next::Elements => None,
    };
    for _ in 0..g.u.int_in_range(1..=4)? {
        let step = g.step(weight, 2)?;
        g.made.push(step);
    }
    let next = if g.u.ratio(3, 4)? { g.made.last().copied().unwrap_or(state) } else { g.old()? };
    let row = g.row_nearby()?;
    let next = first.map_or(Ok(next), |first| g.long_sum(first, next, weight))?;
    let mut b = g.b;
    let result = if with_rows {
        let (element, none) = (b.tuple(&[row]), b.tuple(&[]));
        let all = b.tuple(&[next, element, none]);
        let body = b.pop_block(all);
        b.compute(Expr::Loop(StateLoop { count: inner.clone(), index, state, init: a, body }))
    } else {
        let body = b.pop_block(next);
        b.compute(Expr::Fold(StateLoop { count: inner.clone(), index, state, init: a, body }))
    };
    let result = if with_rows {
        let (last, rows) = (b.component(result, 0), b.component(result, 1));
        let rows = b.build(inner, |b, i| {
            let row = b.get_proved(rows, i);
            b.component(row, 0)
        });
        b.tuple(&[last, rows])
    } else {
        result
    };
    let function = b.finish(result);
    let m = u.int_in_range(0..=4)?;
    let numbers = |n: i32, seed: f64| -> Vec<f64> { (0..n).map(|i| (seed + 0.7 * f64::from(i)).sin()).collect() };
    let rows = (0..m + 2).map(|i| numbers(m + 2, f64::from(i)).into()).collect();
    Ok((function, vec![numbers(m, 0.3).into(), Value::Array(rows)]))
}

impl Generator<'_, '_> {
    fn block(&mut self, make: impl FnOnce(&mut Self) -> Result<VarId>) -> Result<Block> {
        let n = self.made.len();
        self.b.push_block();
        let result = make(self)?;
        self.made.truncate(n);
        Ok(self.b.pop_block(result))
    }

    fn array(&mut self, make: impl FnOnce(&mut Self, VarId) -> Result<VarId>) -> Result<VarId> {
        let index = self.b.fresh(Type::Int);
        let body = self.block(|g| make(g, index))?;
        Ok(self.b.compute(Expr::Build { size: self.n.clone(), index, body }))
    }

    /// Returns a matrix, mostly the latest.
    fn old(&mut self) -> Result<VarId> {
        let back = if self.u.ratio(2, 3)? { 0 } else { self.u.int_in_range(0..=self.made.len() - 1)? };
        Ok(self.made[self.made.len() - 1 - back])
    }

    /// Returns the loop index or an adjacent one, which are in range; the first of each pair.
    fn place(&mut self) -> Result<VarId> {
        if let Some(own) = self.own
            && self.u.arbitrary()?
        {
            return Ok(self.b.size(Size::var(own).add(&Size::constant(self.u.int_in_range(0..=1)?))));
        }
        let size = match self.u.int_in_range(0..=3)? {
            0 => self.k.sub(&Size::constant(1)),
            1 => self.k.add(&Size::constant(1)),
            2 => self.k.sub(&Size::var(self.lag)),
            _ => self.k.clone(),
        };
        Ok(self.b.size(size))
    }

    fn row_nearby(&mut self) -> Result<VarId> {
        let (array, at) = (self.old()?, self.place()?);
        Ok(self.b.get(array, at))
    }

    /// Returns a matrix of equal elements.
    fn all(&mut self, element: VarId) -> Result<VarId> {
        self.array(|g, _| g.array(|_, _| Ok(element)))
    }

    /// Returns the sum of two matrices and of many others.
    fn long_sum(&mut self, first: VarId, second: VarId, element: VarId) -> Result<VarId> {
        let mut sum = self.b.plus(first, second);
        for _ in 0..self.u.int_in_range(0..=40)? {
            let other = self.all(element)?;
            sum = self.b.plus(sum, other);
        }
        Ok(sum)
    }

    /// Returns a matrix made from the previous ones.
    fn step(&mut self, weight: VarId, depth: u32) -> Result<VarId> {
        match self.u.int_in_range(0..=5)? {
            0 if depth > 0 => {
                let one = self.b.int(self.u.int_in_range(0..=1)?);
                let condition = if self.u.arbitrary()? {
                    self.b.op(Op::Eq, &[self.lag, one])
                } else {
                    let zero = self.b.real(0.0);
                    self.b.op(Op::Lt, &[zero, weight])
                };
                let then = self.block(|g| g.step(weight, depth - 1))?;
                let otherwise = self.block(|g| if g.u.arbitrary()? { g.step(weight, depth - 1) } else { g.old() })?;
                Ok(self.b.compute(Expr::If { condition, then, otherwise }))
            }
            1 => {
                // Two rows are swapped.
                let old = self.old()?;
                let (a, b) = (self.place()?, self.place()?);
                let rows = [self.b.get(old, a), self.b.get(old, b)];
                self.array(|g, i| {
                    let condition = g.b.op(Op::Eq, &[i, a]);
                    let then = g.block(|_| Ok(rows[1]))?;
                    let otherwise = g.block(|g| {
                        let condition = g.b.op(Op::Eq, &[i, b]);
                        let (then, otherwise) = (g.block(|_| Ok(rows[0]))?, g.block(|g| Ok(g.b.get_proved(old, i)))?);
                        Ok(g.b.compute(Expr::If { condition, then, otherwise }))
                    })?;
                    Ok(g.b.compute(Expr::If { condition, then, otherwise }))
                })
            }
            _ => self.some_rows(weight),
        }
    }

    /// Returns a matrix in which rows at or on one side of an index are changed; the rest mostly stays.
    fn some_rows(&mut self, weight: VarId) -> Result<VarId> {
        let (old, at) = (self.old()?, self.place()?);
        let outside = if self.u.arbitrary()? { Some(self.row_nearby()?) } else { None };
        let op = *self.u.choose(&[Op::Eq, Op::Eq, Op::Lt, Op::Le])?;
        let (swapped, negated, same) = (self.u.arbitrary()?, self.u.arbitrary()?, self.u.ratio(4, 5)?);
        let (with_own, backwards) = (self.u.ratio(1, 4)?, self.u.ratio(1, 3)?);
        self.array(|g, i| {
            let mut at = at;
            if with_own {
                let two = g.b.int(2);
                let own = g.b.compute(Expr::op(Op::Mod, &[i, two]));
                g.own = Some(own);
                at = g.place()?;
            }
            let condition = g.b.op(op, &if swapped { [at, i] } else { [i, at] });
            let changed = g.block(|g| {
                let mine = g.b.get_proved(old, i);
                let other = match outside {
                    Some(row) if g.u.arbitrary()? => row,
                    _ => g.row_nearby()?,
                };
                let factor = g.place()?;
                let factor = g.b.get(if g.u.arbitrary()? { mine } else { other }, factor);
                g.array(|g, j| {
                    let back = g.n.sub(&Size::var(j)).sub(&Size::constant(1));
                    let there = if backwards { g.b.size(back) } else { j };
                    let (a, b) = (g.b.get_proved(mine, j), g.b.get_proved(other, there));
                    let part = g.b.op(Op::Mul, &[factor, b]);
                    let part = g.b.op(Op::Mul, &[part, weight]);
                    Ok(g.b.op(Op::Sub, &[a, part]))
                })
            })?;
            let stays = g.block(|g| if same { Ok(g.b.get_proved(old, i)) } else { g.row_nearby() })?;
            g.own = None;
            let (then, otherwise) = if negated && op != Op::Eq { (stays, changed) } else { (changed, stays) };
            Ok(g.b.compute(Expr::If { condition, then, otherwise }))
        })
    }
}
