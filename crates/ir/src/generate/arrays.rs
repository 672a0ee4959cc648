//! Random functions that move arrays: loop states that are permuted, passed on, replaced by rows of one another; arrays
//! in branches, in arrays, in tuples. All sizes are `n`, so any array fits anywhere. [`updates`] makes loop states that
//! differ from the previous ones in an element or a row, at indices inside and outside the array, or element by
//! element, with reads of the old state before, in and after that.

use crate::{Block, Builder, Expr, Function, Size, StateLoop, Type, Value, VarId, WhileLoop};
use arbitrary::{Result, Unstructured};
use chainrule_ops::Op;

/// Kind of a value.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Number,
    Vector,
    Matrix,
}

const KINDS: [Kind; 3] = [Kind::Number, Kind::Vector, Kind::Matrix];

/// Constructs that make arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrays {
    Built,
    /// Also arrays with a changed element, and loops with elements.
    Updated,
}

struct Generator<'a, 'u> {
    b: Builder,
    u: &'a mut Unstructured<'u>,
    n: Size,
    /// Variables in scope.
    scope: Vec<(Kind, VarId)>,
    /// Indices below n in scope.
    indices: Vec<VarId>,
    fuel: u32,
    arrays: Arrays,
}

/// Returns a function with its arguments. Sizes are a parameter of 0 to 3, or the constant 2.
pub fn case(u: &mut Unstructured<'_>, fuel: u32) -> Result<(Function, Vec<Value<f64>>)> {
    function(u, fuel, Arrays::Built)
}

/// As [`case`], with loops that update their states.
pub fn updates(u: &mut Unstructured<'_>, fuel: u32) -> Result<(Function, Vec<Value<f64>>)> {
    function(u, fuel, Arrays::Updated)
}

fn function(u: &mut Unstructured<'_>, fuel: u32, arrays: Arrays) -> Result<(Function, Vec<Value<f64>>)> {
    let mut b = Builder::new("arrays");
    let fixed = u.ratio(1, 3)?;
    let extent = if fixed { 2 } else { u.int_in_range(0..=3)? };
    let n = if fixed { Size::constant(2) } else { Size::var(b.size_param("n")) };
    let vector = Type::array(n.clone(), Type::Double);
    let matrix = Type::array(n.clone(), vector.clone());
    let params = [("x", Kind::Number, Type::Double), ("v", Kind::Vector, vector), ("m", Kind::Matrix, matrix)];
    let scope = params.map(|(name, kind, ty)| (kind, b.param(name, ty))).to_vec();
    let mut g = Generator { b, u, n, scope, indices: vec![], fuel, arrays };
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
        // Late ones are loop states and values of this block.
        Ok(fit[fit.len() - 1 - self.u.int_in_range(0..=(fit.len() - 1).min(4))?])
    }

    /// Returns the block that `make` fills; restores the scope.
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
        let var = match self.u.int_in_range(
            0..=match self.arrays {
                Arrays::Built => 9,
                Arrays::Updated => 14,
            },
        )? {
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
            10..=12 if kind != Kind::Number => self.update(kind, depth)?,
            13 => self.fold(kind, depth)?,
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

    /// Returns an index, inside the arrays or not.
    fn place(&mut self) -> Result<VarId> {
        if let (false, true) = (self.indices.is_empty(), self.u.ratio(3, 4)?) {
            let index = *self.u.choose(&self.indices)?;
            return Ok(match self.u.int_in_range(0..=4)? {
                0 => {
                    let size = Size::var(index).sub(&Size::constant(1));
                    self.b.size(size)
                }
                1 => {
                    let size = self.n.sub(&Size::var(index)).sub(&Size::constant(1));
                    self.b.size(size)
                }
                2 => {
                    // Data, so that nothing is known about it.
                    let two = self.b.int(2);
                    self.b.compute(Expr::op(Op::Mod, &[index, two]))
                }
                _ => index,
            });
        }
        let constant = self.u.int_in_range(-1..=2)?;
        Ok(self.b.int(constant))
    }

    /// Returns any value, or one that depends on another element of an array with elements.
    fn beside(&mut self, array: VarId, kind: Kind, depth: u32) -> Result<VarId> {
        if self.u.arbitrary()? {
            return self.make(kind, depth - 1);
        }
        let (at, zero, last) = (self.place()?, self.b.int(0), self.b.size(self.n.sub(&Size::constant(1))));
        let below = self.b.compute(Expr::op(Op::Min, &[at, last]));
        let inside = self.b.compute(Expr::op(Op::Max, &[below, zero]));
        let other = self.b.get(array, inside);
        if kind != Kind::Number {
            return Ok(other);
        }
        let mine = self.make(kind, depth - 1)?;
        Ok(self.b.op(Op::Sub, &[other, mine]))
    }

    /// Returns an array in scope with other elements at one index, or all changed one by one, or those on one side.
    fn update(&mut self, kind: Kind, depth: u32) -> Result<VarId> {
        let old = self.old(kind)?;
        let at = self.place()?;
        let element = if kind == Kind::Matrix { Kind::Vector } else { Kind::Number };
        let how = self.u.int_in_range(0..=7)?;
        let index = self.b.fresh(Type::Int);
        let body = self.block(|g| {
            g.indices.push(index);
            let before = g.b.get_proved(old, index);
            g.scope.push((element, before));
            if how == 5 {
                return g.beside(old, element, depth);
            }
            let op = if how < 4 { Op::Eq } else { *g.u.choose(&[Op::Lt, Op::Le])? };
            let sides = if g.u.arbitrary()? { [index, at] } else { [at, index] };
            let condition = g.b.op(op, &sides);
            let changed =
                g.block(
                    |g| if kind == Kind::Matrix { g.update(element, depth) } else { g.beside(old, element, depth) },
                )?;
            let stays = g.block(|g| if how == 3 { g.beside(old, element, depth) } else { Ok(before) })?;
            let (then, otherwise) = if how > 5 { (stays, changed) } else { (changed, stays) };
            Ok(g.b.compute(Expr::If { condition, then, otherwise }))
        })?;
        Ok(self.b.compute(Expr::Build { size: self.n.clone(), index, body }))
    }

    /// Returns a row of a matrix, or an element of a vector; a sum if there is no index.
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

    /// Returns a fold or a while over a few values, one of which is used.
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
        let with_elements = self.arrays == Arrays::Updated && over_n && self.u.arbitrary()?;
        let row = if with_elements && self.u.arbitrary()? { Kind::Number } else { Kind::Vector };
        let body = self.block(|g| {
            for (idx, kind) in kinds.iter().enumerate() {
                let part = g.b.component(state, idx);
                g.scope.push((*kind, part));
            }
            if over_n {
                g.indices.push(index);
            }
            let arrays: Vec<Kind> = kinds.iter().copied().filter(|kind| *kind != Kind::Number).collect();
            if g.arrays == Arrays::Updated && !arrays.is_empty() {
                // In sequence, each made from the previous ones.
                for _ in 0..g.u.int_in_range(0..=3)? {
                    let kind = *g.u.choose(&arrays)?;
                    let step = if g.u.ratio(1, 4)? { g.branch(kind, depth)? } else { g.update(kind, depth)? };
                    g.scope.push((kind, step));
                }
            }
            let mut next = kinds.iter().map(|kind| g.make(*kind, depth - 1)).collect::<Result<Vec<_>>>()?;
            if !counted {
                let (step, one) = (g.b.component(state, kinds.len()), g.b.int(1));
                next.push(g.b.op(Op::Add, &[step, one]));
            }
            let next = g.b.tuple(&next);
            if !with_elements {
                return Ok(next);
            }
            let element = if g.u.arbitrary()? { state } else { g.make(Kind::Number, depth - 1)? };
            let (more, none) = (g.make(row, depth - 1)?, g.b.tuple(&[]));
            let element = g.b.tuple(&[element, more]);
            Ok(g.b.tuple(&[next, element, none]))
        })?;
        let steps = Size::constant(steps);
        let whole = if with_elements {
            let whole = self.b.compute(Expr::Loop(StateLoop { count: self.n.clone(), index, state, init, body }));
            let (last, rows) = (self.b.component(whole, 0), self.b.component(whole, 1));
            let all = self.b.build(self.n.clone(), |b, i| {
                let row = b.get_proved(rows, i);
                b.component(row, 1)
            });
            self.scope.push((if row == Kind::Number { Kind::Vector } else { Kind::Matrix }, all));
            last
        } else if counted {
            let count = if over_n { self.n.clone() } else { steps };
            self.b.compute(Expr::Fold(StateLoop { count, index, state, init, body }))
        } else {
            let condition = self.block(|g| {
                let (step, end) = (g.b.component(state, kinds.len()), g.b.size(steps));
                Ok(g.b.op(Op::Lt, &[step, end]))
            })?;
            let limit = Size::constant(5);
            self.b.compute(Expr::While(WhileLoop { limit, state, init, condition, body }))
        };
        Ok(self.b.component(whole, 0))
    }
}
