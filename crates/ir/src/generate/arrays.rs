//! Random functions that move arrays about: states of loops that are permuted, passed on, replaced by
//! rows of one another; arrays in branches, in arrays, in tuples. All sizes are `n`, so anything fits
//! anywhere.

use crate::{Block, Builder, Expr, Function, Size, Type, Value, VarId};
use arbitrary::{Result, Unstructured};
use chainrule_ops::Op;

/// What can be made.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Number,
    Vector,
    Matrix,
}

const KINDS: [Kind; 3] = [Kind::Number, Kind::Vector, Kind::Matrix];

struct Generator<'a, 'u> {
    b: Builder,
    u: &'a mut Unstructured<'u>,
    n: Size,
    /// What is in scope.
    scope: Vec<(Kind, VarId)>,
    /// Indices below n in scope.
    indices: Vec<VarId>,
    fuel: u32,
}

/// A function with its arguments. Sizes are a parameter of 0 to 3, or the constant 2.
pub fn case(u: &mut Unstructured<'_>, fuel: u32) -> Result<(Function, Vec<Value<f64>>)> {
    let mut b = Builder::new("arrays");
    let fixed = u.ratio(1, 3)?;
    let extent = if fixed { 2 } else { u.int_in_range(0..=3)? };
    let n = if fixed { Size::constant(2) } else { Size::var(b.size_param("n")) };
    let vector = Type::array(n.clone(), Type::Double);
    let matrix = Type::array(n.clone(), vector.clone());
    let params = [("x", Kind::Number, Type::Double), ("v", Kind::Vector, vector), ("m", Kind::Matrix, matrix)];
    let scope = params.map(|(name, kind, ty)| (kind, b.param(name, ty))).to_vec();
    let mut g = Generator { b, u, n, scope, indices: vec![], fuel };
    let results = (0..g.u.int_in_range(1..=3)?).map(|_| g.any(4).map(|(_, var)| var)).collect::<Result<Vec<_>>>()?;
    let result = g.b.tuple(&results);
    let function = g.b.finish(result);
    let row = |seed: f64| Value::from((0..extent).map(|i| (seed + f64::from(i)).sin()).collect::<Vec<f64>>());
    let args = vec![Value::Real(0.5), row(1.0), Value::Array((0..extent).map(|i| row(f64::from(i) * 0.3)).collect())];
    Ok((function, args))
}

impl Generator<'_, '_> {
    fn any(&mut self, depth: u32) -> Result<(Kind, VarId)> {
        let kind = *self.u.choose(&KINDS)?;
        Ok((kind, self.make(kind, depth)?))
    }

    fn old(&mut self, kind: Kind) -> Result<VarId> {
        let fit: Vec<VarId> = self.scope.iter().filter(|(k, _)| *k == kind).map(|(_, var)| *var).collect();
        // Late ones are states of loops and values of this block.
        Ok(fit[fit.len() - 1 - self.u.int_in_range(0..=(fit.len() - 1).min(4))?])
    }

    /// The block that `make` fills, with what is in scope restored after it.
    fn block(&mut self, make: impl FnOnce(&mut Self) -> Result<VarId>) -> Result<Block> {
        let (scope, indices) = (self.scope.len(), self.indices.len());
        self.b.push_block();
        let result = make(self)?;
        self.scope.truncate(scope);
        self.indices.truncate(indices);
        Ok(self.b.pop_block(result))
    }

    fn make(&mut self, kind: Kind, depth: u32) -> Result<VarId> {
        if depth == 0 || self.fuel == 0 || self.u.is_empty() {
            return self.old(kind);
        }
        self.fuel -= 1;
        let var = match self.u.int_in_range(0..=9)? {
            0 | 1 => return self.old(kind),
            2 | 3 => self.fold(kind, depth)?,
            4 => self.branch(kind, depth)?,
            5 => {
                let (a, other) = (self.make(kind, depth - 1)?, self.any(depth - 1)?.1);
                let (pair, first) = if self.u.arbitrary()? { ([a, other], 0) } else { ([other, a], 1) };
                let tuple = self.b.tuple(&pair);
                self.b.component(tuple, first)
            }
            6 => self.row(kind, depth)?,
            _ => self.new_value(kind, depth)?,
        };
        self.scope.push((kind, var));
        Ok(var)
    }

    fn new_value(&mut self, kind: Kind, depth: u32) -> Result<VarId> {
        if kind == Kind::Number {
            let (a, c) = (self.make(kind, depth - 1)?, self.make(kind, depth - 1)?);
            return Ok(if self.u.arbitrary()? { self.b.op(Op::Mul, &[a, c]) } else { self.b.op(Op::Sub, &[c, a]) });
        }
        let element = if kind == Kind::Matrix { Kind::Vector } else { Kind::Number };
        if let (Some(extent), true) = (self.n.as_constant(), self.u.arbitrary()?) {
            let parts = (0..extent).map(|_| self.make(element, depth - 1)).collect::<Result<Vec<_>>>()?;
            return Ok(self.b.array(&parts));
        }
        let index = self.b.fresh(Type::Int);
        let body = self.block(|g| {
            g.indices.push(index);
            g.make(element, depth - 1)
        })?;
        Ok(self.b.compute(Expr::Build { size: self.n.clone(), index, body }))
    }

    /// A row of a matrix, or an element of a vector; a sum where no index is at hand.
    fn row(&mut self, kind: Kind, depth: u32) -> Result<VarId> {
        let from = match kind {
            Kind::Number => Kind::Vector,
            Kind::Vector => Kind::Matrix,
            Kind::Matrix => return self.new_value(kind, depth),
        };
        if self.indices.is_empty() {
            if kind == Kind::Vector {
                return self.new_value(kind, depth);
            }
            let index = self.b.fresh(Type::Int);
            let body = self.block(|g| {
                g.indices.push(index);
                g.make(kind, depth - 1)
            })?;
            return Ok(self.b.compute(Expr::Sum { count: self.n.clone(), index, body }));
        }
        let array = self.make(from, depth - 1)?;
        let index = *self.u.choose(&self.indices)?;
        Ok(if self.u.arbitrary()? { self.b.get(array, index) } else { self.b.get_proved(array, index) })
    }

    fn branch(&mut self, kind: Kind, depth: u32) -> Result<VarId> {
        let (a, c) = (self.make(Kind::Number, depth - 1)?, self.make(Kind::Number, depth - 1)?);
        let condition = self.b.op(Op::Lt, &[a, c]);
        let then = self.block(|g| g.make(kind, depth - 1))?;
        let otherwise = self.block(|g| g.make(kind, depth - 1))?;
        Ok(self.b.compute(Expr::If { condition, then, otherwise }))
    }

    /// A fold or a while over a few values, one of which is wanted.
    fn fold(&mut self, kind: Kind, depth: u32) -> Result<VarId> {
        let mut kinds = vec![kind];
        for _ in 0..self.u.int_in_range(0..=2)? {
            kinds.push(*self.u.choose(&KINDS)?);
        }
        let mut init = kinds.iter().map(|kind| self.make(*kind, depth - 1)).collect::<Result<Vec<_>>>()?;
        let counted = self.u.ratio(2, 3)?;
        if !counted {
            init.push(self.b.int(0));
        }
        let init = self.b.tuple(&init);
        let state = self.b.fresh(self.b.ty(init).clone());
        let index = self.b.fresh(Type::Int);
        let steps = self.u.int_in_range(0..=3)?;
        let over_n = counted && self.u.arbitrary()?;
        let body = self.block(|g| {
            for (idx, kind) in kinds.iter().enumerate() {
                let part = g.b.component(state, idx);
                g.scope.push((*kind, part));
            }
            if over_n {
                g.indices.push(index);
            }
            let mut next = kinds.iter().map(|kind| g.make(*kind, depth - 1)).collect::<Result<Vec<_>>>()?;
            if !counted {
                let (step, one) = (g.b.component(state, kinds.len()), g.b.int(1));
                next.push(g.b.op(Op::Add, &[step, one]));
            }
            Ok(g.b.tuple(&next))
        })?;
        let steps = Size::constant(steps);
        let whole = if counted {
            let count = if over_n { self.n.clone() } else { steps };
            self.b.compute(Expr::Fold { count, index, state, init, body })
        } else {
            let condition = self.block(|g| {
                let (step, end) = (g.b.component(state, kinds.len()), g.b.size(steps));
                Ok(g.b.op(Op::Lt, &[step, end]))
            })?;
            let limit = Size::constant(5);
            self.b.compute(Expr::While { limit, state, init, condition, body })
        };
        Ok(self.b.component(whole, 0))
    }
}
