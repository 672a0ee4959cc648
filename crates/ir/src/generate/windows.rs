//! Random functions whose loops read a vector at their index and at an offset: by data, by an array of integers, by a
//! carried value or a count of an inner loop, forwards and backwards, from the vector and from results of previous
//! rounds.

use crate::{Block, Builder, Expr, Function, Size, StateLoop, Type, Value, VarId};
use arbitrary::{Result, Unstructured};
use chainrule_ops::Op;

/// Maximum offset of a read on both sides of a loop's index.
const MARGIN: i64 = 24;

struct Generator<'a, 'u> {
    b: Builder,
    u: &'a mut Unstructured<'u>,
    n: Size,
    weights: VarId,
    /// Length of vectors of `n` elements with a margin on both sides.
    wide: Size,
    vectors: Vec<VarId>,
    offsets: VarId,
    /// Integers that are equal for all elements.
    shifts: Vec<VarId>,
    n_offsets: Size,
    outside: bool,
    fuel: u32,
}

/// Returns a function of two vectors, of an array of integers and of two more integers, with arguments: results of up
/// to `longest` elements. If it may go `outside`, integers are sometimes so large that an index is out of range, or
/// overflows.
///
/// # Errors
/// Fails if `u` runs out.
pub fn case(u: &mut Unstructured<'_>, longest: i64, outside: bool) -> Result<(Function, Vec<Value<f64>>)> {
    let mut b = Builder::new("windows");
    let [wide, n, k] = ["m", "n", "k"].map(|name| Size::var(b.size_param(name)));
    let vector = b.param("x", Type::array(wide.clone(), Type::Double));
    let weights = b.param("w", Type::array(n.clone(), Type::Double));
    let offsets = b.param("offsets", Type::array(k.clone(), Type::Int));
    let shifts = vec![b.param("s", Type::Int), b.param("t", Type::Int)];
    let (extent, n_offsets) = (u.int_in_range(0..=longest)?, u.int_in_range(0..=4)?);
    let mut shift = || {
        let far = [MARGIN + 1, -MARGIN - longest - 1, i64::MAX, i64::MIN];
        if outside && u.ratio(1, 3)? { u.choose(&far).copied() } else { u.int_in_range(-3..=3) }
    };
    let (s, t) = (shift()?, shift()?);
    let told = (0..n_offsets).map(|_| Ok(Value::Int(shift()?))).collect::<Result<Vec<_>>>()?;
    let mut g =
        Generator { b, u, n, wide, weights, vectors: vec![vector], offsets, shifts, n_offsets: k, outside, fuel: 12 };
    let result = if g.u.ratio(1, 3)? { g.rounds()? } else { g.element_wise()? };
    let numbers = |n: i64| (0..n).map(|i| (1.0 + i as f64).sin()).collect::<Vec<_>>();
    let (x, w) = (numbers(extent + 2 * MARGIN), numbers(extent));
    Ok((g.b.finish(result), vec![x.into(), w.into(), Value::Array(told), Value::Int(s), Value::Int(t)]))
}

impl Generator<'_, '_> {
    fn block(&mut self, make: impl FnOnce(&mut Self) -> Result<VarId>) -> Result<Block> {
        let n_shifts = self.shifts.len();
        self.b.push_block();
        let result = make(self)?;
        self.shifts.truncate(n_shifts);
        Ok(self.b.pop_block(result))
    }

    /// Returns a vector of `n` elements.
    fn element_wise(&mut self) -> Result<VarId> {
        let index = self.b.fresh(Type::Int);
        let body = self.block(|g| g.number(index, 3))?;
        Ok(self.b.compute(Expr::Build { size: self.n.clone(), index, body }))
    }

    /// Returns a vector that is recomputed from itself several times.
    fn rounds(&mut self) -> Result<VarId> {
        let init = self.vectors[0];
        let state = self.b.fresh(self.b.ty(init).clone());
        let (count, index) = (Size::constant(self.u.int_in_range(0..=3)?), self.b.fresh(Type::Int));
        let body = self.block(|g| {
            g.vectors.push(state);
            g.shifts.push(index);
            // The margin then only has zeros.
            let inside = g.element_wise()?;
            let (at, n, wide) = (g.b.fresh(Type::Int), g.n.clone(), g.wide.clone());
            g.vectors.pop();
            let element = g.block(|g| {
                let margin = g.b.int(MARGIN);
                let place = g.b.op(Op::Sub, &[at, margin]);
                let (zero, end) = (g.b.int(0), g.b.size(n));
                let conditions = [g.b.op(Op::Le, &[zero, place]), g.b.op(Op::Lt, &[place, end])];
                let condition = g.b.op(Op::And, &conditions);
                let then = g.block(|g| Ok(g.b.get(inside, place)))?;
                let otherwise = g.block(|g| Ok(g.b.real(0.0)))?;
                Ok(g.b.compute(Expr::If { condition, then, otherwise }))
            })?;
            Ok(g.b.compute(Expr::Build { size: wide, index: at, body: element }))
        })?;
        Ok(self.b.compute(Expr::Fold(StateLoop { count, index, state, init, body })))
    }

    fn number(&mut self, i: VarId, depth: u32) -> Result<VarId> {
        if depth == 0 || self.fuel == 0 || self.u.is_empty() {
            return self.read(i);
        }
        self.fuel -= 1;
        Ok(match self.u.int_in_range(0..=5)? {
            0 | 1 => {
                let (x, y) = (self.number(i, depth - 1)?, self.number(i, depth - 1)?);
                let op = *self.u.choose(&[Op::Add, Op::Sub, Op::Mul])?;
                self.b.op(op, &[x, y])
            }
            2 => {
                let (count, index) = (self.n_offsets.clone(), self.b.fresh(Type::Int));
                let body = self.block(|g| {
                    let offset = g.b.get(g.offsets, index);
                    g.shifts.extend([index, offset]);
                    g.number(i, depth - 1)
                })?;
                self.b.compute(Expr::Sum { count, index, body })
            }
            3 | 4 => self.fold(i, depth)?,
            _ => self.b.get(self.weights, i),
        })
    }

    /// Returns a carried number, of a fold that also carries an integer.
    fn fold(&mut self, i: VarId, depth: u32) -> Result<VarId> {
        let init = [self.b.real(0.25), self.shift(0)?];
        let init = self.b.tuple(&init);
        let state = self.b.fresh(self.b.ty(init).clone());
        let (count, index) = (self.n_offsets.clone(), self.b.fresh(Type::Int));
        let body = self.block(|g| {
            let (x, k) = (g.b.component(state, 0), g.b.component(state, 1));
            g.shifts.extend([index, k]);
            let y = g.number(i, depth - 1)?;
            let x = g.b.op(Op::Add, &[x, y]);
            // Sometimes a different one for each element.
            let by = if g.u.ratio(1, 8)? { i } else { g.shift(0)? };
            let op = *g.u.choose(&[Op::Add, Op::Sub])?;
            let k = g.b.op(op, &[k, by]);
            Ok(g.b.tuple(&[x, k]))
        })?;
        let whole = self.b.compute(Expr::Fold(StateLoop { count, index, state, init, body }));
        Ok(self.b.component(whole, 0))
    }

    fn shift(&mut self, depth: u32) -> Result<VarId> {
        Ok(match self.u.int_in_range(0..=5)? {
            0 => self.b.int(self.u.int_in_range(-2..=2)?),
            1 if depth > 0 => {
                let (a, b) = (self.shift(depth - 1)?, self.shift(depth - 1)?);
                let op = *self.u.choose(&[Op::Add, Op::Sub])?;
                self.b.op(op, &[a, b])
            }
            _ => {
                // Mostly the innermost ones.
                let last = self.shifts.len() - 1;
                self.shifts[last - self.u.int_in_range(0..=last.min(3))?]
            }
        })
    }

    /// Returns the element of a vector at the index `i` in its middle, or mirrored, plus an offset.
    fn read(&mut self, i: VarId) -> Result<VarId> {
        let vector = *self.u.choose(&self.vectors)?;
        let mut by = self.shift(1)?;
        if !self.outside {
            let [least, most] = [-MARGIN, MARGIN].map(|end| self.b.int(end));
            let above = self.b.op(Op::Max, &[least, by]);
            by = self.b.op(Op::Min, &[most, above]);
        }
        let (op, from) = if self.u.ratio(1, 4)? {
            (Op::Sub, self.n.add(&Size::constant(MARGIN - 1)))
        } else {
            (Op::Add, Size::constant(MARGIN))
        };
        let from = self.b.size(from);
        let place = self.b.op(op, &[from, i]);
        let place = self.b.op(Op::Add, &[place, by]);
        Ok(self.b.get(vector, place))
    }
}
