//! Elaboration of expressions.

use super::values::{Env, Fun, Value};
use super::{Elaborator, MAX_CALLS, MAX_DEPTH, MAX_PARTS, MAX_VARIABLES, Stop};
use crate::check::builtin::{self, Builtin};
use crate::check::core::{Core, CoreFun, CoreKind, CorePattern, DefId, LocalRef};
use crate::check::table::TyId;
use crate::{Block, Expr, Type, VarId};
use chainrule_base::{Diagnostic, Span};
use chainrule_ops::{Op, Type as Kind};
use chainrule_syntax::tree::Infix;
use std::rc::Rc;

/// Maximum number of branches of one `if`.
const MAX_ARMS: usize = 200;

/// Names of variables that a pattern binds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    OfPattern,
    /// Those that the variables have.
    Kept,
}

impl<'p> Elaborator<'p> {
    /// Evaluates `core`.
    pub(super) fn eval(&mut self, core: &'p Core, env: Env) -> Result<Value<'p>, Stop> {
        if self.context.depth >= MAX_DEPTH {
            return self.too_deep(core.span);
        }
        self.context.depth += 1;
        let outer = self.b.set_span(Some(core.span));
        let value = self.eval_kind(core, env);
        self.b.set_span(outer);
        self.context.depth -= 1;
        value
    }

    /// Evaluates `core`, which is data.
    pub(super) fn data(&mut self, core: &'p Core, env: Env) -> Result<VarId, Stop> {
        let value = self.eval(core, env)?;
        self.as_data(&value, core.span)
    }

    pub(super) fn as_data(&mut self, value: &Value<'p>, span: Span) -> Result<VarId, Stop> {
        match value {
            Value::Data(var) => Ok(*var),
            Value::Fun(_) | Value::Generalised(..) | Value::Unbound => self.bug(span, "a function instead of data"),
        }
    }

    fn too_deep<T>(&mut self, span: Span) -> Result<T, Stop> {
        let name = self.context.calls.iter().rev().find_map(|(name, _)| name.clone());
        let of = name.map_or(String::new(), |n| format!(" of `{n}`"));
        let message = Diagnostic::limitation(format!("calls{of} nest too deep"))
            .with_reason(format!("at most {MAX_CALLS} calls are inlined inside each other"))
            .with_help("loop with `ifold` instead");
        self.stop(span, "here", message)
    }

    fn eval_kind(&mut self, core: &'p Core, env: Env) -> Result<Value<'p>, Stop> {
        let span = core.span;
        Ok(Value::Data(match &core.kind {
            CoreKind::Literal(n) => {
                if self.is_int(core.ty, env.types) {
                    self.b.int(*n)
                } else {
                    #[allow(clippy::cast_precision_loss)] // a number literal is the nearest double
                    self.b.real(*n as f64)
                }
            }
            CoreKind::Real(x) => self.b.real(*x),
            CoreKind::Bool(b) => self.constant_bool(*b),
            CoreKind::Local(place, inst) => return self.local(*place, inst, env, span),
            CoreKind::Global(def, inst) => return self.global(*def, inst, env),
            CoreKind::Builtin(builtin) => return Ok(Value::Fun(Rc::new(Fun::Builtin(*builtin, Vec::new())))),
            CoreKind::Apply(function, args) => return self.apply(function, args, env, span),
            CoreKind::Fun(fun) => {
                return Ok(Value::Fun(Rc::new(Fun::Closure { fun, env, applied: Vec::new() })));
            }
            CoreKind::Let(bindings, body) => {
                for binding in bindings {
                    let value = match &binding.quantified {
                        Some(vars) if !vars.is_empty() => Value::Generalised(&binding.value, vars, env),
                        _ => self.eval(&binding.value, env)?,
                    };
                    if let (Some(annotation), Value::Data(var)) = (&binding.annotation, &value) {
                        self.check_annotation(annotation, *var, env, binding.value.span)?;
                    }
                    self.bind(&binding.pattern, value, env.frame, Names::OfPattern)?;
                }
                return self.eval(body, env);
            }
            CoreKind::If(arms, otherwise) => self.conditional(arms, otherwise, env)?,
            CoreKind::Infix(first, rest) => self.infix(first, rest, env)?,
            CoreKind::Neg(e) => {
                let arg = self.data(e, env)?;
                self.op(Op::Neg, &[arg])
            }
            CoreKind::Index(array, indices) => {
                let mut at = self.data(array, env)?;
                for index in indices {
                    let index_span = index.span;
                    let index = self.data(index, env)?;
                    at = self.get(at, index, index_span)?;
                }
                at
            }
            CoreKind::Tuple(parts, names) => {
                let fields = parts.iter().map(|p| self.data(p, env)).collect::<Result<Vec<_>, _>>()?;
                self.spend_parts(&fields, span)?;
                self.tuple(fields, names.clone())
            }
            CoreKind::Component(tuple, index) => {
                let tuple = self.data(tuple, env)?;
                self.component(tuple, *index)
            }
            CoreKind::Field(record, name) => {
                let record = self.data(record, env)?;
                let index = match self.b.ty(record) {
                    Type::Tuple(_, Some(names)) => names.iter().position(|n| n == name),
                    _ => None,
                };
                let Some(index) = index else { return self.bug(span, "a record without the field") };
                self.component(record, index)
            }
            CoreKind::Array(elements) => self.array(elements, env)?,
            CoreKind::Annotated(e, sizes) => {
                let value = self.eval(e, env)?;
                if let Value::Data(var) = &value {
                    self.check_annotation(sizes, *var, env, e.span)?;
                }
                return Ok(value);
            }
            CoreKind::Deriv(body, place) => self.deriv(body, *place, env, span)?,
            CoreKind::Forward(function, at) => self.forward(function, at, env, span)?,
            CoreKind::Error => return self.bug(span, "an expression with errors"),
        }))
    }

    // Names.

    /// Returns the frame that owns `place`, starting at `frame`.
    pub(super) fn owner(&self, place: LocalRef, mut frame: usize) -> usize {
        while let Some(f) = self.frames.get(frame)
            && f.level > place.level
        {
            frame = f.parent;
        }
        frame
    }

    fn local(&mut self, place: LocalRef, inst: &[TyId], env: Env, span: Span) -> Result<Value<'p>, Stop> {
        let owner = self.owner(place, env.frame);
        let value = self.frames.get(owner).and_then(|f| f.values.get(place.slot as usize)).cloned();
        match value {
            Some(Value::Generalised(core, vars, at)) => {
                let types = self.type_frame(vars, inst, env, Some(at.types));
                self.eval(core, Env { frame: at.frame, types })
            }
            Some(Value::Unbound) | None => self.bug(span, "a local that is not bound"),
            Some(value) => Ok(value),
        }
    }

    pub(super) fn global(&mut self, def: DefId, inst: &[TyId], env: Env) -> Result<Value<'p>, Stop> {
        let program = self.program;
        let definition = &program.defs[def];
        let is_function = crate::check::pending::is_function(self.table, definition.scheme.ty);
        let types = self.type_frame(&definition.scheme.vars, inst, env, None);
        let frame = self.frame(usize::MAX, 0, definition.n_slots);
        let env = Env { frame, types };
        if is_function {
            return self.eval(&definition.core, env);
        }
        // Data is computed once, outside all functions.
        let key: Vec<TyId> = definition.scheme.vars.iter().map(|v| self.concrete(*v, types)).collect();
        if let Some(var) = self.constants.get(&(def, key.clone())) {
            return Ok(Value::Data(*var));
        }
        let (loops, conditional) =
            (std::mem::take(&mut self.context.loops), std::mem::take(&mut self.context.conditional));
        self.b.push_block();
        let var = self.data(&definition.core, env)?;
        let block = self.b.pop_block(var);
        self.b.name(var, &definition.name);
        self.prelude.extend(block.stmts);
        (self.context.loops, self.context.conditional) = (loops, conditional);
        self.constants.insert((def, key), var);
        Ok(Value::Data(var))
    }

    /// Binds the names of `pattern` to `value` or its components.
    pub(super) fn bind(
        &mut self,
        pattern: &'p CorePattern,
        value: Value<'p>,
        frame: usize,
        names: Names,
    ) -> Result<(), Stop> {
        match pattern {
            CorePattern::Wildcard => {}
            CorePattern::Local(place, name, _) => {
                if names == Names::OfPattern
                    && let Value::Data(var) = &value
                {
                    self.b.name(*var, name);
                }
                let owner = self.owner(*place, frame);
                if let Some(slot) = self.frames.get_mut(owner).and_then(|f| f.values.get_mut(place.slot as usize)) {
                    *slot = value;
                }
            }
            CorePattern::Tuple(parts) => {
                let Value::Data(tuple) = value else { return Err(Stop) };
                for (k, part) in parts.iter().enumerate() {
                    let component = self.component(tuple, k);
                    self.bind(part, Value::Data(component), frame, names)?;
                }
            }
        }
        Ok(())
    }

    // Application.

    fn apply(&mut self, function: &'p Core, args: &'p [Core], env: Env, span: Span) -> Result<Value<'p>, Stop> {
        // The length of an element is in the type: no element needs to be read for it.
        if let (CoreKind::Builtin(Builtin::Length), [Core { kind: CoreKind::Index(array, indices), .. }]) =
            (&function.kind, args)
        {
            let array = self.data(array, env)?;
            let mut ty = self.b.ty(array).clone();
            for index in indices {
                let _ = self.data(index, env)?;
                ty = match ty {
                    Type::Array(_, element) => *element,
                    other => other,
                };
            }
            return match ty {
                Type::Array(size, _) => Ok(Value::Data(self.b.size(size))),
                _ => self.bug(span, "the length of something that is no array"),
            };
        }
        let function = self.eval(function, env)?;
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(self.eval(arg, env)?);
        }
        self.call(function, values, span)
    }

    /// Applies `function` to `args`.
    pub(super) fn call(
        &mut self,
        mut function: Value<'p>,
        mut args: Vec<Value<'p>>,
        span: Span,
    ) -> Result<Value<'p>, Stop> {
        while !args.is_empty() {
            let Value::Fun(fun) = &function else { return self.bug(span, "an application of data") };
            let (have, need) = match &**fun {
                Fun::Closure { fun, applied, .. } => (applied.as_slice(), fun.params.len()),
                Fun::Builtin(builtin, applied) => (applied.as_slice(), builtin.arity()),
                Fun::Again { .. } => (&[][..], 1),
            };
            let mut all = have.to_vec();
            let rest = args.split_off(args.len().min(need.saturating_sub(all.len())));
            all.append(&mut args);
            args = rest;
            function = match &**fun {
                Fun::Closure { fun, env, .. } if all.len() < need => {
                    Value::Fun(Rc::new(Fun::Closure { fun, env: *env, applied: all }))
                }
                Fun::Builtin(builtin, _) if all.len() < need => Value::Fun(Rc::new(Fun::Builtin(*builtin, all))),
                Fun::Closure { fun, env, .. } => {
                    let (fun, env) = (*fun, *env);
                    self.inline(fun, env, all, span)?
                }
                Fun::Builtin(builtin, _) => {
                    let builtin = *builtin;
                    let outer = self.b.set_span(Some(span));
                    let var = self.builtin(builtin, &all, span)?;
                    self.b.set_span(outer);
                    Value::Data(var)
                }
                Fun::Again { me, at } => {
                    let (me, wanted) = (*me, at.clone());
                    let Some(arg) = all.first() else { return self.bug(span, "an application to nothing") };
                    let arg = self.as_data(arg, span)?;
                    let at = self.fit(arg, &wanted, ("the argument", "what the rule is for"), span)?;
                    Value::Data(self.b.compute(Expr::Again { me, at }))
                }
            };
        }
        Ok(function)
    }

    /// As [`Self::call`], for a function whose result is data.
    pub(super) fn call_data(&mut self, function: &Value<'p>, args: &[VarId], span: Span) -> Result<VarId, Stop> {
        let args = args.iter().map(|v| Value::Data(*v)).collect();
        let value = self.call(function.clone(), args, span)?;
        self.as_data(&value, span)
    }

    fn inline(&mut self, fun: &'p CoreFun, env: Env, args: Vec<Value<'p>>, span: Span) -> Result<Value<'p>, Stop> {
        if self.context.calls.len() >= MAX_CALLS {
            return self.too_deep(span);
        }
        // Calls whose results are functions add no variable.
        let has_many_calls = self.frames.len() > MAX_VARIABLES;
        if has_many_calls || self.b.vars.len() > MAX_VARIABLES {
            let name = fun.name.clone().or_else(|| self.context.calls.iter().rev().find_map(|(name, _)| name.clone()));
            let of = name.map_or(String::new(), |n| format!(" while `{n}` was inlined"));
            let reason = if has_many_calls {
                format!("all calls are inlined, at most {MAX_VARIABLES}")
            } else {
                format!("all calls are inlined, into at most {MAX_VARIABLES} operations")
            };
            let message = Diagnostic::limitation(format!("the program became too large{of}"))
                .with_reason(reason)
                .with_help("loop with `ifold` or `build` instead of calling again and again");
            return self.stop(span, "this call is one of many", message);
        }
        self.context.calls.push((fun.name.clone(), span));
        let level = self.frames.get(env.frame).map_or(0, |f| f.level + 1);
        let frame = self.frame(env.frame, level, fun.n_slots);
        let inner = Env { frame, types: env.types };
        let vars: Vec<Option<VarId>> =
            args.iter().map(|v| if let Value::Data(var) = v { Some(*var) } else { None }).collect();
        for (param, value) in fun.params.iter().zip(args) {
            self.bind(&param.pattern, value, frame, Names::Kept)?;
        }
        self.check_params(fun, &vars, inner)?;
        let result = self.eval(&fun.body, inner)?;
        if let (Some(sizes), Value::Data(var)) = (&fun.result, &result) {
            self.check_annotation(sizes, *var, inner, fun.body.span)?;
        }
        self.context.calls.pop();
        Ok(result)
    }

    // Data.

    pub(super) fn constant_bool(&mut self, value: bool) -> VarId {
        let var = self.b.bool(value);
        self.decided.insert(var, value);
        var
    }

    /// Subtracts the parts of a tuple of `fields` from the budget of all tuples.
    fn spend_parts(&mut self, fields: &[VarId], span: Span) -> Result<(), Stop> {
        let mut open: Vec<&Type> = fields.iter().map(|field| self.b.ty(*field)).collect();
        let mut n_parts = self.n_parts;
        while let Some(ty) = open.pop() {
            n_parts += 1;
            if n_parts > MAX_PARTS {
                let message = Diagnostic::limitation("the tuples of the program have too many components")
                    .with_reason(format!("with those inside of others, all together may have {MAX_PARTS}"))
                    .with_help("keep what repeats in an array: its type has one part, however long it is");
                return self.stop(span, "reached here", message);
            }
            match ty {
                Type::Array(_, element) => open.push(element),
                Type::Tuple(fields, _) => open.extend(fields),
                Type::Double | Type::Int | Type::Bool => {}
            }
        }
        self.n_parts = n_parts;
        Ok(())
    }

    pub(super) fn tuple(&mut self, fields: Vec<VarId>, names: Option<std::sync::Arc<[chainrule_base::Name]>>) -> VarId {
        let var = match names {
            Some(names) => self.b.record(names, &fields),
            None => self.b.tuple(&fields),
        };
        self.tuples.insert(var, fields);
        var
    }

    /// Returns a component; for a tuple made by elaboration, its operand.
    pub(super) fn component(&mut self, tuple: VarId, index: usize) -> VarId {
        match self.tuples.get(&tuple).and_then(|fields| fields.get(index)) {
            Some(field) => *field,
            None => self.b.component(tuple, index),
        }
    }

    fn array(&mut self, elements: &'p [Core], env: Env) -> Result<VarId, Stop> {
        let mut vars: Vec<VarId> = Vec::with_capacity(elements.len());
        for element in elements {
            let var = self.data(element, env)?;
            vars.push(match vars.first() {
                Some(first) => {
                    let wanted = self.b.ty(*first).clone();
                    self.fit(var, &wanted, ("this element", "the first element"), element.span)?
                }
                None => var,
            });
        }
        Ok(self.b.array(&vars))
    }

    /// Converts a number to a `Double`.
    pub(super) fn real(&mut self, var: VarId) -> VarId {
        if *self.b.ty(var) == Type::Int { self.b.to_real(var) } else { var }
    }

    /// Makes an operator of the table: `Int`s stay `Int`s if it has an integer value for them.
    pub(super) fn op(&mut self, op: Op, args: &[VarId]) -> VarId {
        let row = op.row();
        let is_int = |this: &Self, var: VarId| *this.b.ty(var) == Type::Int;
        let numbers = args.iter().zip(row.args).filter(|(_, kind)| **kind == Kind::Num);
        let all_int = row.int.is_some() && numbers.clone().all(|(var, _)| is_int(self, *var));
        if all_int {
            if row.result == Kind::Bool
                && let [a, b] = args
                && let Some(difference) = self.b.size_of(*a).sub(&self.b.size_of(*b)).as_constant()
                && let Some(value) = row.int.and_then(|int| int(&[difference, 0]))
                && difference.unsigned_abs() < 1 << 40
            {
                return self.constant_bool(value != 0);
            }
            return self.b.op(op, args);
        }
        let args: Vec<VarId> =
            args.iter().zip(row.args).map(|(v, k)| if *k == Kind::Num { self.real(*v) } else { *v }).collect();
        self.b.op(op, &args)
    }

    /// Makes an infix operator of two computed operands.
    pub(super) fn infix_op(&mut self, infix: Infix, a: VarId, b: VarId) -> VarId {
        let op = builtin::infix_op(infix);
        match infix {
            Infix::Gt | Infix::Ge => self.op(op, &[b, a]),
            Infix::Ne => {
                let equal = self.op(op, &[a, b]);
                match self.decided.get(&equal) {
                    Some(value) => {
                        let value = !*value;
                        self.constant_bool(value)
                    }
                    None => self.op(Op::Not, &[equal]),
                }
            }
            _ => self.op(op, &[a, b]),
        }
    }

    fn infix(&mut self, first: &'p Core, rest: &'p [(Infix, Span, Core)], env: Env) -> Result<VarId, Stop> {
        let mut left = self.data(first, env)?;
        for (infix, _, right) in rest {
            left = match infix {
                Infix::And | Infix::Or => self.lazily(*infix, left, right, env)?,
                _ => {
                    let right = self.data(right, env)?;
                    self.infix_op(*infix, left, right)
                }
            };
        }
        Ok(left)
    }

    /// Makes `left && right` and `left || right`: the right side is only computed if needed, unless computing it is
    /// harmless.
    fn lazily(&mut self, infix: Infix, left: VarId, right: &'p Core, env: Env) -> Result<VarId, Stop> {
        let and = infix == Infix::And;
        match self.decided.get(&left) {
            Some(value) if *value == and => return self.data(right, env),
            Some(_) => return Ok(left),
            None => {}
        }
        let block = self.branch(|this| this.data(right, env))?;
        if block.stmts.iter().all(|stmt| is_harmless(&stmt.expr)) {
            for stmt in block.stmts {
                self.b.push(stmt);
            }
            let op = if and { Op::And } else { Op::Or };
            return Ok(self.b.op(op, &[left, block.result]));
        }
        let other = self.branch(|this| Ok(this.constant_bool(!and)))?;
        let (then, otherwise) = if and { (block, other) } else { (other, block) };
        Ok(self.b.compute(Expr::If { condition: left, then, otherwise }))
    }

    /// Makes a block that may not run.
    pub(super) fn branch(&mut self, body: impl FnOnce(&mut Self) -> Result<VarId, Stop>) -> Result<Block, Stop> {
        self.context.conditional += 1;
        self.b.push_block();
        let result = body(self)?;
        self.context.conditional -= 1;
        Ok(self.b.pop_block(result))
    }

    fn conditional(&mut self, arms: &'p [(Core, Core)], otherwise: &'p Core, env: Env) -> Result<VarId, Stop> {
        if arms.len() > MAX_ARMS {
            let message = Diagnostic::limitation(format!("an `if` has more than {MAX_ARMS} branches"))
                .with_help("put the values into an array, and index it");
            return self.stop(otherwise.span, "this is the last", message);
        }
        let Some(((condition, then), rest)) = arms.split_first() else { return self.data(otherwise, env) };
        let condition = self.data(condition, env)?;
        match self.decided.get(&condition) {
            Some(true) => return self.data(then, env),
            Some(false) => return self.conditional(rest, otherwise, env),
            None => {}
        }
        let outer = self.b.vars.len();
        let then_block = self.branch(|this| this.data(then, env))?;
        let wanted = self.b.ty(then_block.result).clone();
        self.must_not_escape(&wanted, outer, then.span)?;
        let other_span = rest.first().map_or(otherwise.span, |(_, branch)| branch.span);
        let otherwise = self.branch(|this| {
            let var = this.conditional(rest, otherwise, env)?;
            this.fit(var, &wanted, ("this branch", "the first branch"), other_span)
        })?;
        Ok(self.b.compute(Expr::If { condition, then: then_block, otherwise }))
    }
}

/// Returns whether an operation neither fails nor is costly: it may be computed when it is not needed.
fn is_harmless(expr: &Expr) -> bool {
    match expr {
        Expr::Real(_)
        | Expr::Bool(_)
        | Expr::Size(_)
        | Expr::ToReal(_)
        | Expr::ToInt(_)
        | Expr::Tuple(_)
        | Expr::Component(..) => true,
        Expr::Get { proved, .. } => *proved,
        Expr::Op(op, _) => op.row().result == Kind::Bool,
        _ => false,
    }
}
