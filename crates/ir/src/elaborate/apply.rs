//! Built-in functions, fully applied.

use super::values::Value;
use super::{Elaborator, Stop};
use crate::check::builtin::Builtin;
use crate::range::Loop;
use crate::{Block, Expr, Size, StateLoop, Type, VarId, WhileLoop};
use chainrule_base::Span;

impl<'p> Elaborator<'p> {
    pub(super) fn builtin(&mut self, builtin: Builtin, args: &[Value<'p>], span: Span) -> Result<VarId, Stop> {
        let data = |this: &mut Self, k: usize| match args.get(k) {
            Some(value) => this.as_data(value, span),
            None => this.bug(span, "an argument that is missing"),
        };
        let function = |this: &mut Self, k: usize| match args.get(k) {
            Some(value @ Value::Fun(_)) => Ok(value.clone()),
            _ => this.bug(span, "data instead of a function"),
        };
        match builtin {
            Builtin::Op(op) => {
                let vars = (0..args.len()).map(|k| data(self, k)).collect::<Result<Vec<_>, _>>()?;
                Ok(self.op(op, &vars))
            }
            Builtin::Infix(infix) => {
                let (a, b) = (data(self, 0)?, data(self, 1)?);
                Ok(self.infix_op(infix, a, b))
            }
            Builtin::Build => {
                let (n, f) = (data(self, 0)?, function(self, 1)?);
                let size = self.b.size_of(n);
                self.natural_size(&size, span);
                self.build(size, span, |this, index| this.call_data(&f, &[index], span))
            }
            Builtin::Sum => {
                let (n, f) = (data(self, 0)?, function(self, 1)?);
                let count = self.b.size_of(n);
                let index = self.b.fresh(Type::Int);
                let body = self.loop_block(index, &count, |this| {
                    let term = this.call_data(&f, &[index], span)?;
                    Ok(this.real(term))
                })?;
                Ok(self.b.compute(Expr::Sum { count, index, body }))
            }
            Builtin::Fold => {
                let (f, init, n) = (function(self, 0)?, data(self, 1)?, data(self, 2)?);
                self.fold(&f, init, n, span)
            }
            Builtin::Scan => {
                let (f, init, n) = (function(self, 0)?, data(self, 1)?, data(self, 2)?);
                self.scan(&f, init, n, span)
            }
            Builtin::While => {
                let (condition, step) = (function(self, 0)?, function(self, 1)?);
                let (init, limit) = (data(self, 2)?, data(self, 3)?);
                let limit = self.b.size_of(limit);
                let ty = self.b.ty(init).clone();
                let state = self.b.fresh(ty.clone());
                let condition = self.branch(|this| this.call_data(&condition, &[state], span))?;
                let body = self.branch(|this| {
                    let next = this.call_data(&step, &[state], span)?;
                    this.fit(next, &ty, ("the state after a step", "the state before it"), span)
                })?;
                Ok(self.b.compute(Expr::While(WhileLoop { limit, state, init, condition, body })))
            }
            Builtin::Get => {
                let (array, index) = (data(self, 0)?, data(self, 1)?);
                self.get(array, index, span)
            }
            Builtin::Length => {
                let array = data(self, 0)?;
                let size = self.b.length(array);
                Ok(self.b.size(size))
            }
            Builtin::Pair => {
                let (a, b) = (data(self, 0)?, data(self, 1)?);
                Ok(self.tuple(vec![a, b], None))
            }
            Builtin::Fst | Builtin::Snd => {
                let pair = data(self, 0)?;
                Ok(self.component(pair, usize::from(builtin == Builtin::Snd)))
            }
            Builtin::Real => {
                let n = data(self, 0)?;
                Ok(self.real(n))
            }
            Builtin::Truncate => {
                let x = data(self, 0)?;
                let x = self.real(x);
                Ok(self.b.to_int(x))
            }
            Builtin::Diff | Builtin::Vdiff | Builtin::Mdiff => {
                let (f, x) = (function(self, 0)?, data(self, 1)?);
                let one = self.b.real(1.0);
                let x = self.real(x);
                Ok(self.derivative(&f, x, one, span)?.0)
            }
            Builtin::Grad | Builtin::Mgrad | Builtin::Jacob => {
                let (f, x) = (function(self, 0)?, data(self, 1)?);
                self.duals(&f, x, span)
            }
            Builtin::Derivative => {
                let (f, x) = (function(self, 0)?, data(self, 1)?);
                let one = self.b.real(1.0);
                self.tangent_along(&f, x, one, span)
            }
            Builtin::Gradient => {
                let (f, x) = (function(self, 0)?, data(self, 1)?);
                self.gradient(&f, x, span)
            }
            Builtin::Jacobian => {
                let (f, x) = (function(self, 0)?, data(self, 1)?);
                self.jacobian(&f, x, span)
            }
            Builtin::Jvp | Builtin::Hvp => {
                let (f, x, along) = (function(self, 0)?, data(self, 1)?, data(self, 2)?);
                let ty = self.b.ty(x).clone();
                let along = self.fit(along, &ty, ("the direction", "the point"), span)?;
                if builtin == Builtin::Jvp {
                    self.tangent_along(&f, x, along, span)
                } else {
                    self.gradient_along(&f, x, along, span)
                }
            }
            Builtin::Vjp => {
                let (f, x, cotangent) = (function(self, 0)?, data(self, 1)?, data(self, 2)?);
                self.pulled_back(&f, x, cotangent, span)
            }
            Builtin::Hessian => {
                let (f, x) = (function(self, 0)?, data(self, 1)?);
                self.hessian(&f, x, span)
            }
            Builtin::HessianDiagonal => {
                let (f, x) = (function(self, 0)?, data(self, 1)?);
                self.hessian_diagonal(&f, x, span)
            }
            Builtin::Constant => {
                let x = data(self, 0)?;
                Ok(self.constant(x, span))
            }
            Builtin::WithDerivative => {
                let (f, forward, reverse) = (function(self, 0)?, function(self, 1)?, function(self, 2)?);
                let x = data(self, 3)?;
                self.with_derivative(&f, [&forward, &reverse], x, span)
            }
        }
    }

    /// Makes a block inside a loop.
    pub(super) fn loop_block(
        &mut self,
        index: VarId,
        count: &Size,
        body: impl FnOnce(&mut Self) -> Result<VarId, Stop>,
    ) -> Result<Block, Stop> {
        self.context.loops.push(Loop { index, count: count.clone() });
        self.b.push_block();
        let result = body(self)?;
        self.context.loops.pop();
        Ok(self.b.pop_block(result))
    }

    /// Makes `build size (fun index -> body)`; the size is known not to be negative.
    pub(super) fn build(
        &mut self,
        size: Size,
        span: Span,
        body: impl FnOnce(&mut Self, VarId) -> Result<VarId, Stop>,
    ) -> Result<VarId, Stop> {
        let outer = self.b.vars.len();
        let index = self.b.fresh(Type::Int);
        let body = self.loop_block(index, &size, |this| body(this, index))?;
        let element = self.b.ty(body.result).clone();
        self.must_not_escape(&element, outer, span)?;
        Ok(self.b.compute(Expr::Build { size, index, body }))
    }

    /// Makes `scan f init n`: the last state, and the array of the elements made by the iterations.
    fn scan(&mut self, f: &Value<'p>, init: VarId, n: VarId, span: Span) -> Result<VarId, Stop> {
        let count = self.b.size_of(n);
        self.natural_size(&count, span);
        let ty = self.b.ty(init).clone();
        let outer = self.b.vars.len();
        let state = self.b.fresh(ty.clone());
        let index = self.b.fresh(Type::Int);
        let body = self.loop_block(index, &count, |this| {
            let step = this.call_data(f, &[state, index], span)?;
            let (next, element) = (this.component(step, 0), this.component(step, 1));
            let next = this.fit(next, &ty, ("the state after a step", "the state before it"), span)?;
            let element_ty = this.b.ty(element).clone();
            this.must_not_escape(&element_ty, outer, span)?;
            let nothing = this.tuple(Vec::new(), None);
            Ok(this.tuple(vec![next, element, nothing], None))
        })?;
        let whole = self.b.compute(Expr::Loop(StateLoop { count, index, state, init, body }));
        let (last, elements) = (self.component(whole, 0), self.component(whole, 1));
        Ok(self.tuple(vec![last, elements], None))
    }

    fn fold(&mut self, f: &Value<'p>, init: VarId, n: VarId, span: Span) -> Result<VarId, Stop> {
        let count = self.b.size_of(n);
        let ty = self.b.ty(init).clone();
        let state = self.b.fresh(ty.clone());
        let index = self.b.fresh(Type::Int);
        let body = self.loop_block(index, &count, |this| {
            let next = this.call_data(f, &[state, index], span)?;
            this.fit(next, &ty, ("the state after a step", "the state before it"), span)
        })?;
        Ok(self.b.compute(Expr::Fold(StateLoop { count, index, state, init, body })))
    }
}
