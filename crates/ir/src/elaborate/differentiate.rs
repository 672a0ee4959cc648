//! Derivatives (sections 3.1 and 3.3 and algorithm 1 of the dF~ paper).
//!
//! Every derivative becomes `Jvp`, the dual numbers of a function at a point along a direction. The direction is 1 for
//! a scalar, and one-hot for an array, one direction for each element. Gradients of scalars by arrays, and `vjp`,
//! become `Vjp`, which reverse mode expands. Variables of blocks around a `Jvp` are constants in it, which separates
//! nested derivatives.

use super::values::{Env, Value};
use super::{Elaborator, Stop};
use crate::check::core::{Core, LocalRef};
use crate::rows::{self, Way};
use crate::{Expr, Size, Type, VarId};
use chainrule_base::Span;
use chainrule_ops::Op;

/// A step of a path into a value, to one of its doubles.
#[derive(Clone, Copy)]
enum Step {
    /// The element at this index.
    Element(VarId),
    /// This component.
    Component(usize),
}

/// Makes the value for the double at a path.
type Leaf<'a, 'p> = dyn FnMut(&mut Elaborator<'p>, &[Step]) -> Result<VarId, Stop> + 'a;

impl<'p> Elaborator<'p> {
    /// Makes the `Jvp` of `body` at `at` along `along`, with the type of the value itself.
    fn dual(
        &mut self,
        at: &[VarId],
        along: &[VarId],
        span: Span,
        body: impl FnOnce(&mut Self, &[VarId]) -> Result<VarId, Stop>,
    ) -> Result<(VarId, Type), Stop> {
        let outer = self.b.vars.len();
        let params: Vec<VarId> = at
            .iter()
            .map(|v| {
                let ty = self.b.ty(*v).clone();
                self.b.fresh(ty)
            })
            .collect();
        self.b.push_block();
        let result = body(self, &params)?;
        let body = self.b.pop_block(result);
        let primal = self.b.ty(result).clone();
        self.must_not_escape(&primal, outer, span)?;
        let dual = self.b.compute(Expr::Jvp { params, body, at: at.to_vec(), along: along.to_vec() });
        Ok((dual, primal))
    }

    /// Makes the dual number of `f` at `x` along `along`, with the type of the value itself.
    pub(super) fn derivative(
        &mut self,
        f: &Value<'p>,
        x: VarId,
        along: VarId,
        span: Span,
    ) -> Result<(VarId, Type), Stop> {
        self.dual(&[x], &[along], span, |this, params| {
            let value = this.call_data(f, params, span)?;
            // A differentiated `Double` must not be an `Int`, which would have no tangent.
            Ok(this.real(value))
        })
    }

    /// Makes the derivative of `f` at `x` along `along`.
    pub(super) fn tangent_along(&mut self, f: &Value<'p>, x: VarId, along: VarId, span: Span) -> Result<VarId, Stop> {
        let (dual, primal) = self.derivative(f, x, along, span)?;
        self.tangent(dual, &primal, span)
    }

    /// Makes the tangent of a dual number over `primal`; `Int`s and `Bool`s stay.
    fn tangent(&mut self, dual: VarId, primal: &Type, span: Span) -> Result<VarId, Stop> {
        match primal {
            Type::Double => Ok(self.component(dual, 1)),
            Type::Int | Type::Bool => Ok(dual),
            Type::Array(size, element) => self.build(size.clone(), span, |this, i| {
                let item = this.b.get_proved(dual, i);
                this.tangent(item, element, span)
            }),
            Type::Tuple(fields, names) => {
                let mut parts = Vec::with_capacity(fields.len());
                for (k, field) in fields.iter().enumerate() {
                    let part = self.component(dual, k);
                    parts.push(self.tangent(part, field, span)?);
                }
                Ok(self.tuple(parts, names.clone()))
            }
        }
    }

    /// Makes a value of the shape of `ty` with the result of `leaf` for each double.
    fn for_each_double(
        &mut self,
        ty: &Type,
        path: &mut Vec<Step>,
        span: Span,
        leaf: &mut Leaf<'_, 'p>,
    ) -> Result<VarId, Stop> {
        match ty {
            Type::Double => leaf(self, path),
            Type::Int | Type::Bool => self.bug(span, "a derivative by something that is no number"),
            Type::Array(size, element) => self.build(size.clone(), span, |this, i| {
                path.push(Step::Element(i));
                let item = this.for_each_double(element, path, span, leaf);
                path.pop();
                item
            }),
            Type::Tuple(fields, names) => {
                let mut parts = Vec::with_capacity(fields.len());
                for (k, field) in fields.iter().enumerate() {
                    path.push(Step::Component(k));
                    parts.push(self.for_each_double(field, path, span, leaf)?);
                    path.pop();
                }
                Ok(self.tuple(parts, names.clone()))
            }
        }
    }

    /// Makes the value of type `ty` that is 1 at `path` and 0 elsewhere; 0 everywhere without a path.
    fn one_hot(&mut self, ty: &Type, path: Option<&[Step]>, span: Span) -> Result<VarId, Stop> {
        match (ty, path) {
            (Type::Double, hot) => Ok(self.b.real(if hot.is_some() { 1.0 } else { 0.0 })),
            (Type::Int, _) => Ok(self.b.int(0)),
            (Type::Bool, _) => Ok(self.constant_bool(false)),
            (Type::Array(size, element), Some([Step::Element(i), rest @ ..])) => {
                let i = *i;
                self.build(size.clone(), span, |this, j| {
                    let condition = this.b.op(Op::Eq, &[i, j]);
                    let then = this.branch(|this| this.one_hot(element, Some(rest), span))?;
                    let otherwise = this.branch(|this| this.one_hot(element, None, span))?;
                    Ok(this.b.compute(Expr::If { condition, then, otherwise }))
                })
            }
            (Type::Array(size, element), _) => {
                self.build(size.clone(), span, |this, _| this.one_hot(element, None, span))
            }
            (Type::Tuple(fields, names), _) => {
                let mut parts = Vec::with_capacity(fields.len());
                for (k, field) in fields.iter().enumerate() {
                    let inside = match path {
                        Some([Step::Component(c), rest @ ..]) if *c == k => Some(rest),
                        _ => None,
                    };
                    parts.push(self.one_hot(field, inside, span)?);
                }
                Ok(self.tuple(parts, names.clone()))
            }
        }
    }

    /// Makes the dual numbers of `f` at `x` along each one-hot direction (figure 5): `grad`, `jacob`, `mgrad`.
    pub(super) fn duals(&mut self, f: &Value<'p>, x: VarId, span: Span) -> Result<VarId, Stop> {
        let ty = self.b.ty(x).clone();
        self.for_each_double(&ty, &mut Vec::new(), span, &mut |this, path| {
            let along = this.one_hot(&ty, Some(path), span)?;
            Ok(this.derivative(f, x, along, span)?.0)
        })
    }

    /// Makes the derivatives of the scalar `f` at `x` by each double of `x`: for a scalar by forward mode, otherwise by
    /// reverse mode.
    pub(super) fn gradient(&mut self, f: &Value<'p>, x: VarId, span: Span) -> Result<VarId, Stop> {
        let one = self.b.real(1.0);
        if *self.b.ty(x) == Type::Double {
            self.tangent_along(f, x, one, span)
        } else {
            self.pulled_back(f, x, one, span)
        }
    }

    /// Makes the cotangent of `x` for that of `f x`; both only contain `Double`s.
    pub(super) fn pulled_back(&mut self, f: &Value<'p>, x: VarId, cotangent: VarId, span: Span) -> Result<VarId, Stop> {
        let outer = self.b.vars.len();
        let ty = self.b.ty(x).clone();
        let param = self.b.fresh(ty);
        self.b.push_block();
        let result = self.call_data(f, &[param], span)?;
        let result = self.real(result);
        let body = self.b.pop_block(result);
        let primal = self.b.ty(result).clone();
        self.must_not_escape(&primal, outer, span)?;
        let cotangent = self.fit(cotangent, &primal, ("the cotangent", "the result"), span)?;
        let whole = self.b.compute(Expr::Vjp { params: vec![param], body, at: vec![x], cotangent });
        Ok(self.component(whole, 1))
    }

    /// Makes the derivative along `along` of the gradient of `f`.
    pub(super) fn gradient_along(&mut self, f: &Value<'p>, x: VarId, along: VarId, span: Span) -> Result<VarId, Stop> {
        let (dual, primal) = self.dual(&[x], &[along], span, |this, params| this.gradient(f, params[0], span))?;
        self.tangent(dual, &primal, span)
    }

    /// Makes the Hessian: row `i` has the derivatives of element `i` of the gradient.
    pub(super) fn hessian(&mut self, f: &Value<'p>, x: VarId, span: Span) -> Result<VarId, Stop> {
        let ty = self.b.ty(x).clone();
        self.for_each_double(&ty, &mut Vec::new(), span, &mut |this, path| {
            let along = this.one_hot(&ty, Some(path), span)?;
            this.gradient_along(f, x, along, span)
        })
    }

    /// Makes the second derivative of `f` by each double of `x` alone.
    pub(super) fn hessian_diagonal(&mut self, f: &Value<'p>, x: VarId, span: Span) -> Result<VarId, Stop> {
        let ty = self.b.ty(x).clone();
        self.for_each_double(&ty, &mut Vec::new(), span, &mut |this, path| {
            let along = this.one_hot(&ty, Some(path), span)?;
            let row = this.gradient_along(f, x, along, span)?;
            Ok(path.iter().fold(row, |part, step| match step {
                Step::Element(i) => this.b.get_proved(part, *i),
                Step::Component(k) => this.component(part, *k),
            }))
        })
    }

    /// Makes the Jacobian: row `i` has the derivatives of output `i`. Uses the cheaper mode, or both under a condition
    /// if that depends on sizes.
    pub(super) fn jacobian(&mut self, f: &Value<'p>, x: VarId, span: Span) -> Result<VarId, Stop> {
        let Type::Array(inputs, _) = self.b.ty(x).clone() else {
            return self.bug(span, "a Jacobian by something that is no array");
        };
        // The value determines the size of the result; unused parts are removed later.
        let value = self.call_data(f, &[x], span)?;
        let Type::Array(outputs, element) = self.b.ty(value).clone() else {
            return self.bug(span, "a Jacobian of something that is no array");
        };
        let way = if *element == Type::Double { rows::cheaper(&inputs, &outputs) } else { Way::Columns };
        match way {
            Way::Columns => self.jacobian_by_columns(f, x, span),
            Way::Rows => self.jacobian_by_rows(f, x, outputs, span),
            Way::RowsWhereLess(less, more) => {
                let sides = [less, more].map(|size| self.b.size(size));
                let condition = self.b.op(Op::Lt, &sides);
                let then = self.branch(|this| this.jacobian_by_rows(f, x, outputs, span))?;
                let otherwise = self.branch(|this| this.jacobian_by_columns(f, x, span))?;
                Ok(self.b.compute(Expr::If { condition, then, otherwise }))
            }
        }
    }

    /// Makes one function evaluation for each input, then transposes.
    fn jacobian_by_columns(&mut self, f: &Value<'p>, x: VarId, span: Span) -> Result<VarId, Stop> {
        let ty = self.b.ty(x).clone();
        let columns = self.for_each_double(&ty, &mut Vec::new(), span, &mut |this, path| {
            let along = this.one_hot(&ty, Some(path), span)?;
            this.tangent_along(f, x, along, span)
        })?;
        let Type::Array(inputs, row) = self.b.ty(columns).clone() else {
            return self.bug(span, "a Jacobian by something that is no array");
        };
        let Type::Array(outputs, _) = *row else { return self.bug(span, "a Jacobian of something that is no array") };
        self.build(outputs, span, |this, o| {
            this.build(inputs, span, |this, i| {
                let column = this.b.get_proved(columns, i);
                Ok(this.b.get_proved(column, o))
            })
        })
    }

    /// Makes the Jacobian by reverse mode for each output.
    fn jacobian_by_rows(&mut self, f: &Value<'p>, x: VarId, outputs: Size, span: Span) -> Result<VarId, Stop> {
        let ty = Type::array(outputs.clone(), Type::Double);
        self.build(outputs, span, |this, o| {
            let one = this.b.real(1.0);
            let cotangent = this.b.emit(Expr::OneHot { index: o, value: one, proved: true }, ty);
            this.pulled_back(f, x, cotangent, span)
        })
    }

    /// Makes `deriv e x` (algorithm 1): `e` with `x` differentiated and every other variable constant.
    pub(super) fn deriv(&mut self, body: &'p Core, place: LocalRef, env: Env, span: Span) -> Result<VarId, Stop> {
        let owner = self.owner(place, env.frame);
        let slot = place.slot as usize;
        let x = match self.frames.get(owner).and_then(|f| f.values.get(slot)) {
            Some(Value::Data(x)) => *x,
            _ => return self.bug(span, "a derivative by something that is no data"),
        };
        let ty = self.b.ty(x).clone();
        self.for_each_double(&ty, &mut Vec::new(), span, &mut |this, path| {
            let along = this.one_hot(&ty, Some(path), span)?;
            let (dual, _) = this.dual(&[x], &[along], span, |this, params| {
                this.frames[owner].values[slot] = Value::Data(params[0]);
                let value = this.data(body, env);
                this.frames[owner].values[slot] = Value::Data(x);
                Ok(this.real(value?))
            })?;
            Ok(dual)
        })
    }

    /// Makes `forward f (a, a_tan) (b, b_tan)`: the dual number itself.
    pub(super) fn forward(
        &mut self,
        function: &'p Core,
        args: &'p [Core],
        env: Env,
        span: Span,
    ) -> Result<VarId, Stop> {
        let f = self.eval(function, env)?;
        let (mut at, mut along) = (Vec::with_capacity(args.len()), Vec::with_capacity(args.len()));
        for arg in args {
            let pair = self.data(arg, env)?;
            let (value, tangent) = (self.component(pair, 0), self.component(pair, 1));
            let ty = self.b.ty(value).clone();
            at.push(value);
            along.push(self.fit(tangent, &ty, ("the tangent", "its value"), arg.span)?);
        }
        Ok(self.dual(&at, &along, span, |this, params| this.call_data(&f, params, span))?.0)
    }
}
