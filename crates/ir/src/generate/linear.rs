//! Constructs of reverse mode: cotangents, sums of arrays, one-hot arrays, zeros, loops with elements and terms.

use super::Generator;
use crate::{Expr, StateLoop, Type, VarId};
use arbitrary::Result;

impl Generator<'_, '_> {
    // The value and the cotangents of a function, of a `Double` first.
    pub(super) fn transposed(&mut self, depth: u32) -> Result<VarId> {
        let mut types = vec![Type::Double];
        let (more, result) = (self.ty(1)?, self.ty(1)?);
        types.extend(more.has_double().then_some(more));
        let at = types.iter().map(|t| self.expr(t, depth)).collect::<Result<Vec<_>>>()?;
        let (result, tangent) = match result.tangent() {
            Some(tangent) => (result, tangent),
            None => (Type::Double, Type::Double),
        };
        let cotangent = self.leaf(&tangent)?;
        let params: Vec<VarId> = types.into_iter().map(|t| self.b.fresh(t)).collect();
        let body = self.block(&result, depth, &params, None)?;
        Ok(self.b.compute(Expr::Vjp { params, body, at, cotangent }))
    }

    // A sum of arrays or tuples, a one-hot array, a zero: of the linear type `ty`.
    pub(super) fn linear(&mut self, ty: &Type, depth: u32) -> Result<VarId> {
        match (self.u.int_in_range(0..=5)?, ty) {
            (0, _) => Ok(self.b.zero(ty.clone())),
            (1 | 2, Type::Array(size, element)) => {
                let value = self.expr(element, depth - 1)?;
                if let Some(n) = size.as_constant() {
                    if n <= 0 {
                        return Ok(self.b.zero(ty.clone()));
                    }
                    let index = self.u.int_in_range(0..=n - 1)?;
                    let index = self.b.int(index);
                    let proved = self.u.arbitrary()?;
                    return Ok(self.b.emit(Expr::OneHot { index, value, proved }, ty.clone()));
                }
                let one_hot = |index| Expr::OneHot { index, value, proved: false };
                self.if_filled(size, |g, index| Ok(g.b.emit(one_hot(index), ty.clone())), |g| Ok(g.b.zero(ty.clone())))
            }
            (3 | 4, _) => {
                let (count, index) = (self.count()?, self.b.fresh(Type::Int));
                let body = self.block(ty, depth - 1, &[], Some(index))?;
                Ok(self.b.compute(Expr::Sum { count, index, body }))
            }
            _ => {
                let (a, b) = (self.expr(ty, depth - 1)?, self.expr(ty, depth - 1)?);
                Ok(self.b.plus(a, b))
            }
        }
    }

    // A part of type `ty` of a loop: its state, its array, or its sum.
    pub(super) fn loop_(&mut self, ty: &Type, depth: u32) -> Result<VarId> {
        let (count, index) = (self.size()?, self.b.fresh(Type::Int));
        let mut element = self.ty(1)?;
        let several = if self.options.linear { self.ty(1)? } else { Type::Double };
        let mut term = [Type::Double, Type::tuple(Vec::new()), several][self.u.int_in_range(0..=2)?].clone();
        let mut state = self.ty(1)?;
        let (count, wanted) = match ty {
            Type::Array(size, inner) if self.u.arbitrary()? => {
                element = (**inner).clone();
                (size.clone(), 1)
            }
            _ if ty.is_linear() && (self.options.linear || *ty == Type::Double) && self.u.arbitrary()? => {
                term = ty.clone();
                (count, 2)
            }
            _ => {
                state = ty.clone();
                (count, 0)
            }
        };
        if !term.is_linear() {
            term = Type::Double;
        }
        let init = self.expr(&state, depth - 1)?;
        let state_var = self.b.fresh(state.clone());
        let triple = Type::tuple(vec![state, element, term]);
        let body = self.block(&triple, depth - 1, &[state_var], Some(index))?;
        let whole = self.b.compute(Expr::Loop(StateLoop { count, index, state: state_var, init, body }));
        Ok(self.b.component(whole, wanted))
    }
}
