//! Functions with their own derivative: `withDerivative`, `constant`.
//!
//! The function and its rules are inlined like any other; inside its rules, the function itself is a value that can
//! only be applied ([`Expr::Again`]).

use super::values::{Fun, Value};
use super::{Elaborator, Stop};
use crate::{Block, Custom, Expr, Rule, RuleBlock, Type, VarId};
use chainrule_base::{Diagnostic, Span};
use std::rc::Rc;

impl<'p> Elaborator<'p> {
    /// Makes `constant x`: `x`, with a derivative of zero.
    pub(super) fn constant(&mut self, x: VarId, span: Span) -> VarId {
        let ty = self.b.ty(x).clone();
        if !ty.has_double() {
            return x;
        }
        let param = self.b.fresh(ty);
        let body = Block { stmts: Vec::new(), result: param };
        let promised = self.program.is_library(span);
        self.b.compute(Expr::Custom(Box::new(Custom { at: x, param, body, rule: None, promised })))
    }

    /// Makes `withDerivative f forward reverse x`.
    pub(super) fn with_derivative(
        &mut self,
        f: &Value<'p>,
        [forward, reverse]: [&Value<'p>; 2],
        x: VarId,
        span: Span,
    ) -> Result<VarId, Stop> {
        let ty = self.b.ty(x).clone();
        if !ty.has_double() {
            return self.call_data(f, &[x], span);
        }
        let outer = self.b.vars.len();
        let param = self.b.fresh(ty.clone());
        self.b.push_block();
        let value = self.call_data(f, &[param], span)?;
        let value = self.real(value);
        let body = self.b.pop_block(value);
        let value = self.b.ty(value).clone();
        self.must_not_escape(&value, outer, span)?;
        if !value.has_double() {
            let message = Diagnostic::error("a function without a derivative is given one")
                .with_reason("no `Double` occurs in its result")
                .with_help("apply the function by itself");
            return self.stop(span, "here", message);
        }
        let me = self.b.fresh(value.clone());
        let again = Value::Fun(Rc::new(Fun::Again { me, at: ty.clone() }));
        let forward = self.rule(forward, &again, [&ty, &value, &ty], (&value, "the derivative"), span)?;
        let reverse = self.rule(reverse, &again, [&ty, &value, &value], (&ty, "the cotangent"), span)?;
        let rule = Some(Rule { me, forward, reverse });
        let promised = self.program.is_library(span);
        Ok(self.b.compute(Expr::Custom(Box::new(Custom { at: x, param, body, rule, promised }))))
    }

    fn rule(
        &mut self,
        rule: &Value<'p>,
        again: &Value<'p>,
        params: [&Type; 3],
        (wanted, what): (&Type, &'static str),
        span: Span,
    ) -> Result<RuleBlock, Stop> {
        let params = params.map(|ty| self.b.fresh(ty.clone()));
        self.b.push_block();
        let args = [again.clone()].into_iter().chain(params.map(Value::Data)).collect();
        let result = self.call(rule.clone(), args, span)?;
        let result = self.as_data(&result, span)?;
        let result = self.fit(result, wanted, (what, "what the rule has to give"), span)?;
        Ok(RuleBlock { params, body: self.b.pop_block(result) })
    }
}
