//! Random functions whose loops compare their indices: with numbers, sizes, other indices, integers that are data; in
//! nests, under other conditions, in carried values. Elements are read at indices that are in range, at some that are
//! clamped, and at some that may not be in range.

use crate::{Block, Builder, Expr, Function, Size, StateLoop, Type, Value, VarId};
use arbitrary::{Result, Unstructured};
use chainrule_ops::Op;

struct Generator<'a, 'u> {
    b: Builder,
    u: &'a mut Unstructured<'u>,
    n: Size,
    vector: VarId,
    /// Integers in scope: loop indices, data.
    integers: Vec<VarId>,
    reals: Vec<VarId>,
    fuel: u32,
}

/// Returns a function of a vector and two integers, with arguments: `n` up to `longest`.
///
/// # Errors
/// Fails if `u` runs out.
pub fn case(u: &mut Unstructured<'_>, fuel: u32, longest: i64) -> Result<(Function, Vec<Value<f64>>)> {
    let mut b = Builder::new("comparisons");
    let n = Size::var(b.size_param("n"));
    let vector = b.param("x", Type::array(n.clone(), Type::Double));
    let integers = vec![b.param("s", Type::Int), b.param("t", Type::Int)];
    let mut g = Generator { b, u, n, vector, integers, reals: Vec::new(), fuel };
    let first = g.b.real(0.5);
    g.reals.push(first);
    let results = (0..g.u.int_in_range(1..=2)?).map(|_| g.array(3)).collect::<Result<Vec<_>>>()?;
    let result = g.b.tuple(&results);
    let extent = g.u.int_in_range(0..=longest)?;
    let mut data = || {
        // Also at the ends of the range, near which arithmetic overflows.
        let ends = [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX];
        if g.u.ratio(1, 10)? { g.u.choose(&ends).copied() } else { g.u.int_in_range(-2..=longest + 1) }
    };
    let (s, t) = (data()?, data()?);
    let x: Vec<f64> = (0..extent).map(|i| (1.0 + i as f64).sin()).collect();
    Ok((g.b.finish(result), vec![x.into(), Value::Int(s), Value::Int(t)]))
}

impl Generator<'_, '_> {
    fn block(&mut self, make: impl FnOnce(&mut Self) -> Result<VarId>) -> Result<Block> {
        let (integers, reals) = (self.integers.len(), self.reals.len());
        self.b.push_block();
        let result = make(self)?;
        self.integers.truncate(integers);
        self.reals.truncate(reals);
        Ok(self.b.pop_block(result))
    }

    fn extent(&mut self) -> Result<Size> {
        Ok(match self.u.int_in_range(0..=5)? {
            0 => Size::constant(self.u.int_in_range(0..=9)?),
            1 => self.n.add(&Size::constant(self.u.int_in_range(0..=2)?)),
            _ => self.n.clone(),
        })
    }

    /// Returns an array of numbers, or of arrays.
    fn array(&mut self, depth: u32) -> Result<VarId> {
        let size = self.extent()?;
        let index = self.b.fresh(Type::Int);
        let nests = depth > 1 && self.u.ratio(1, 3)?;
        let body = self.block(|g| {
            g.integers.push(index);
            if nests { g.array(depth - 1) } else { g.number(depth) }
        })?;
        Ok(self.b.compute(Expr::Build { size, index, body }))
    }

    fn number(&mut self, depth: u32) -> Result<VarId> {
        if depth == 0 || self.fuel == 0 || self.u.is_empty() {
            return Ok(*self.u.choose(&self.reals)?);
        }
        self.fuel -= 1;
        let var = match self.u.int_in_range(0..=9)? {
            0..=3 => {
                let condition = self.condition(2)?;
                let then = self.block(|g| g.number(depth - 1))?;
                let otherwise = self.block(|g| g.number(depth - 1))?;
                self.b.compute(Expr::If { condition, then, otherwise })
            }
            4 => {
                let (a, b) = (self.number(depth - 1)?, self.number(depth - 1)?);
                let op = *self.u.choose(&[Op::Add, Op::Mul, Op::Sub])?;
                self.b.op(op, &[a, b])
            }
            5 => {
                let (count, index) = (self.extent()?, self.b.fresh(Type::Int));
                let body = self.block(|g| {
                    g.integers.push(index);
                    g.number(depth - 1)
                })?;
                self.b.compute(Expr::Sum { count, index, body })
            }
            6 => self.fold(depth)?,
            7 => {
                let i = self.integer(2)?;
                self.b.to_real(i)
            }
            _ => {
                let index = self.index()?;
                self.b.get(self.vector, index)
            }
        };
        self.reals.push(var);
        Ok(var)
    }

    /// Returns a carried number, of a fold that also carries an integer.
    fn fold(&mut self, depth: u32) -> Result<VarId> {
        let init = [self.number(depth - 1)?, self.integer(1)?];
        let init = self.b.tuple(&init);
        let state = self.b.fresh(self.b.ty(init).clone());
        let (count, index) = (self.extent()?, self.b.fresh(Type::Int));
        let body = self.block(|g| {
            g.integers.push(index);
            let (x, k) = (g.b.component(state, 0), g.b.component(state, 1));
            g.reals.push(x);
            g.integers.push(k);
            let x = g.number(depth - 1)?;
            let condition = g.condition(1)?;
            let then = g.block(|g| g.integer(1))?;
            let k = g.b.compute(Expr::If { condition, then, otherwise: Block { stmts: Vec::new(), result: k } });
            Ok(g.b.tuple(&[x, k]))
        })?;
        let whole = self.b.compute(Expr::Fold(StateLoop { count, index, state, init, body }));
        Ok(self.b.component(whole, 0))
    }

    /// Returns an index for a read.
    fn index(&mut self) -> Result<VarId> {
        let i = self.integer(2)?;
        if self.u.ratio(1, 8)? {
            return Ok(i);
        }
        let n = self.b.size(self.n.clone());
        Ok(self.b.op(Op::Mod, &[i, n]))
    }

    fn integer(&mut self, depth: u32) -> Result<VarId> {
        let pick = self.u.int_in_range(0..=7)?;
        Ok(match pick {
            0 => self.b.int(self.u.int_in_range(-2..=4)?),
            1 => self.b.size(self.n.clone()),
            2..=4 if depth > 0 => {
                let (a, b) = (self.integer(depth - 1)?, self.integer(depth - 1)?);
                self.b.op(if pick == 2 { Op::Sub } else { Op::Add }, &[a, b])
            }
            _ => {
                // Mostly the innermost ones.
                let last = self.integers.len() - 1;
                self.integers[last - self.u.int_in_range(0..=last.min(3))?]
            }
        })
    }

    fn condition(&mut self, depth: u32) -> Result<VarId> {
        if depth > 0 && self.u.ratio(1, 4)? {
            let (a, b) = (self.condition(depth - 1)?, self.condition(depth - 1)?);
            return Ok(match self.u.int_in_range(0..=2)? {
                0 => self.b.op(Op::And, &[a, b]),
                1 => self.b.op(Op::Or, &[a, b]),
                _ => self.b.op(Op::Not, &[a]),
            });
        }
        let (a, b) = (self.integer(1)?, self.integer(1)?);
        let op = *self.u.choose(&[Op::Lt, Op::Le, Op::Eq])?;
        Ok(self.b.op(op, &[a, b]))
    }
}
