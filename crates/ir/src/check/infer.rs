//! Hindley-Milner inference: from the syntax tree to the core language.
//!
//! Types have no sizes in this stage; elaboration handles sizes. Top-level `let`s and local `let`s of functions and
//! whole numbers are generalised, by levels. Arithmetic on unknown numbers becomes a [`Constraint`].
//!
//! Errors do not stop inference: a faulty expression gets the type `Node::Error`, which unifies with all types.

use super::builtin::{self, Builtin, Form};
use super::constraint::{Asked, Constraint, Failure};
use super::core::{Core, CoreBinding, CoreFun, CoreKind, CoreParam, CorePattern, DefId, LocalRef};
use super::locals::Locals;
use super::messages::{Clash, Excess};
use super::pending::{Defaults, Pending, Scheme};
use super::table::{Class, Literal, Mismatch, Node, Table, TyId};
use super::{Definition, messages};
use chainrule_base::{Arena, Diagnostic, Diagnostics, Name, Span};
use chainrule_syntax::tree::{Binding, Expr, ExprKind, Infix, Param, Pattern};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of unknown names for which a similar one is searched among all names in scope.
const MAX_SUGGESTIONS: usize = 100;

/// Reason for an expected type: a second span of the message.
pub(crate) struct Why {
    pub(crate) label: String,
    pub(crate) span: Option<Span>,
}

/// Constraints on variables that generalisation leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// Decided by defaults: no use can determine them.
    Decided,
    /// They wait for later uses.
    Wait,
}

impl Why {
    pub(super) fn new(label: impl Into<String>, span: impl Into<Option<Span>>) -> Self {
        Self { label: label.into(), span: span.into() }
    }
}

/// State of inference.
pub(super) struct Checker {
    pub(super) table: Table,
    pub(super) defs: Arena<DefId, Definition>,
    pub(super) diagnostics: Diagnostics,
    /// Names visible in the current file.
    pub(super) globals: FxHashMap<Name, DefId>,
    /// Names that the current file defines later.
    pub(super) later: FxHashMap<Name, Span>,
    /// Current definition, for messages about recursion.
    pub(super) current: Option<(Name, Span)>,
    pub(super) aliases: FxHashMap<Name, super::annotation::Alias>,
    /// Whether the current file is the library's: no warnings.
    pub(super) library: bool,
    /// Number of unknown names so far.
    n_unknown: usize,
    /// Whether names are missing because an import failed: then unknown names are not reported.
    pub(super) incomplete: bool,
    /// Number of messages suppressed for that reason.
    pub(super) silenced: usize,
    pub(super) pending: Pending,
    pub(super) locals: Locals,
}

impl Checker {
    pub(super) fn new() -> Self {
        Self {
            table: Table::default(),
            defs: Arena::new(),
            diagnostics: Diagnostics::new(),
            globals: FxHashMap::default(),
            later: FxHashMap::default(),
            current: None,
            aliases: FxHashMap::default(),
            library: false,
            n_unknown: 0,
            incomplete: false,
            silenced: 0,
            pending: Pending::default(),
            locals: Locals::default(),
        }
    }

    /// Infers the value of a definition and generalises its type.
    pub(super) fn definition(&mut self, binding: &Binding) -> (Core, Scheme, u32) {
        self.locals = Locals { functions: vec![0], ..Locals::default() };
        self.table.level = 1;
        let mark = self.pending.mark();
        let value = self.binding_value(binding, None).0;
        self.table.level = 0;
        let failures = self.pending.settle_accumulators(&mut self.table, mark);
        self.report(failures);
        let scheme = self.generalise(value.ty, mark, Others::Decided, binding.pattern.span());
        (value, scheme, self.locals.functions.pop().unwrap_or(0))
    }

    /// Infers the value of a binding and checks its annotation.
    fn binding_value(&mut self, binding: &Binding, _hint: Option<TyId>) -> (Core, Option<super::core::CoreType>) {
        let annotated = binding.ty.as_ref().map(|ty| (self.annotation(ty), ty.span));
        let hint = annotated.as_ref().map(|((ty, _), _)| *ty);
        let mut value = self.infer(&binding.value, hint);
        if let (CoreKind::Fun(fun), Pattern::Name(ident)) = (&mut value.kind, &binding.pattern) {
            fun.name = Some(ident.name.clone());
        }
        let Some(((ty, sizes), span)) = annotated else { return (value, None) };
        self.expect(&value, ty, &Why::new("the annotation says so", span));
        value.ty = ty;
        (value, sizes.has_size().then_some(sizes))
    }

    /// Generalises over the variables of `ty` inside the current level, with the constraints on them from `mark` on.
    pub(super) fn generalise(&mut self, ty: TyId, mark: usize, others: Others, span: Span) -> Scheme {
        let level = self.table.level;
        let Some(vars) = self.table.vars_of(ty) else {
            self.diagnostics.push(messages::type_too_large(span, &Name::new("this definition")));
            return Scheme::mono(self.table.error);
        };
        let mut quantified: Vec<TyId> = Vec::new();
        let mut seen: FxHashSet<TyId> = FxHashSet::default();
        let inside =
            |table: &Table, var: TyId| table.as_var(var).is_some_and(|v| v.level > level && v.level != u32::MAX);
        for var in vars {
            if inside(&self.table, var) && seen.insert(var) {
                quantified.push(var);
            }
        }
        // Constraints by variable, then from the type's variables outward.
        let waiting: Vec<(usize, Vec<TyId>)> = self
            .pending
            .since(mark)
            .map(|(k, asked)| {
                let vars = asked.constraint.types().into_iter().filter_map(|t| self.table.vars_of(t)).flatten();
                (k, vars.collect())
            })
            .collect();
        let mut about: FxHashMap<TyId, Vec<usize>> = FxHashMap::default();
        for (at, (_, vars)) in waiting.iter().enumerate() {
            for var in vars {
                about.entry(*var).or_default().push(at);
            }
        }
        let mut next = 0;
        let mut taken: Vec<usize> = Vec::new();
        let mut is_taken = vec![false; waiting.len()];
        while let Some(var) = quantified.get(next).copied() {
            next += 1;
            for at in about.get(&var).into_iter().flatten() {
                if std::mem::replace(&mut is_taken[*at], true) {
                    continue;
                }
                taken.push(*at);
                for other in &waiting[*at].1 {
                    if inside(&self.table, *other) && seen.insert(*other) {
                        quantified.push(*other);
                    }
                }
            }
        }
        taken.sort_unstable();
        let constraints = taken.into_iter().filter_map(|at| self.pending.take(waiting[at].0)).collect();
        if others == Others::Decided {
            // The rest cannot be determined by a use.
            let failures = self.pending.assume(&mut self.table, mark, Defaults::All);
            self.report(failures);
            let left: Vec<usize> = self.pending.since(mark).map(|(k, _)| k).collect();
            for k in left {
                if let Some(asked) = self.pending.take(k) {
                    self.undetermined(&asked);
                }
            }
        }
        for var in &quantified {
            if let Some(variable) = self.table.as_var_mut(*var) {
                variable.level = u32::MAX;
                variable.watchers = Vec::new();
            }
        }
        Scheme { vars: quantified.into(), constraints, ty }
    }

    fn undetermined(&mut self, asked: &Asked) {
        if let Constraint::Component { .. } | Constraint::Field { .. } | Constraint::Deriv { .. } = asked.constraint {
            self.diagnostics.push(messages::undetermined(&asked.by, asked.span));
        }
    }

    /// Reports constraints that cannot hold.
    pub(super) fn report(&mut self, failures: Vec<(Asked, Failure)>) {
        for (asked, failure) in failures {
            let message = messages::failure(&self.table, &asked, &failure);
            self.diagnostics.push(message);
        }
    }

    pub(super) fn ask(&mut self, constraint: Constraint, span: Span, by: &str) {
        let failures = self.pending.add(&mut self.table, Asked { constraint, span, by: Name::new(by) });
        self.report(failures);
    }

    pub(super) fn unify(&mut self, a: TyId, b: TyId) -> Result<(), Mismatch> {
        let result = self.table.unify(a, b);
        let failures = self.pending.wake(&mut self.table);
        self.report(failures);
        result
    }

    /// Requires `value` to be of type `expected`, and reports `why` otherwise.
    pub(super) fn expect(&mut self, value: &Core, expected: TyId, why: &Why) {
        if let Err(mismatch) = self.unify(expected, value.ty) {
            let origin = self.origin(value);
            let clash = Clash { span: value.span, actual: value.ty, expected, mismatch };
            let message = messages::mismatch(&self.table, clash, why, origin.as_ref());
            self.diagnostics.push(message);
        }
    }

    /// Returns the binding of the name `value`.
    fn origin(&self, value: &Core) -> Option<(Name, Span)> {
        match &value.kind {
            CoreKind::Local(place, _) => {
                let local = self.locals.all.iter().rev().find(|l| l.place == *place)?;
                Some((local.name.clone(), local.span))
            }
            CoreKind::Global(def, _) => {
                let def = &self.defs[*def];
                (!def.library).then(|| (def.name.clone(), def.span))
            }
            _ => None,
        }
    }

    /// Requires `ty` to be data, not a function.
    fn data(&mut self, value: &Core, where_: &str) {
        if self.table.restrict(value.ty, Class::Data).is_err() {
            self.diagnostics.push(messages::function_in_data(value.span, where_));
        }
    }

    pub(super) fn error(&self, span: Span) -> Core {
        Core { kind: CoreKind::Error, ty: self.table.error, span }
    }

    // Scopes.

    /// Adds a local to the current function.
    pub(super) fn bind(&mut self, name: &Name, scheme: Scheme, span: Span) -> LocalRef {
        self.locals.bind(name, scheme, span)
    }

    /// Removes the `let`s bound since [`Locals::bound`] had `mark` elements; warns about unused ones.
    fn leave_lets(&mut self, mark: usize) {
        for (name, id) in self.locals.unbind(mark) {
            let local = &self.locals.all[id];
            if !local.used && !self.library && !name.starts_with('_') {
                self.diagnostics.push(messages::unused(&name, local.span));
            }
        }
    }

    fn pattern(&mut self, pattern: &Pattern, ty: TyId) -> CorePattern {
        match pattern {
            Pattern::Name(ident) => {
                let place = self.bind(&ident.name, Scheme::mono(ty), ident.span);
                CorePattern::Local(place, ident.name.clone(), ident.span)
            }
            Pattern::Wildcard(_) => CorePattern::Wildcard,
            Pattern::Tuple(parts, span) => {
                let fields: Vec<TyId> = parts.iter().map(|_| self.table.var(Class::Data)).collect();
                let tuple = self.table.tuple(fields.clone(), None);
                if let Err(mismatch) = self.unify(tuple, ty) {
                    let why = Why::new(format!("this pattern takes a tuple of {}", parts.len()), *span);
                    let clash = Clash { span: *span, actual: ty, expected: tuple, mismatch };
                    let message = messages::mismatch(&self.table, clash, &why, None);
                    self.diagnostics.push(message);
                }
                CorePattern::Tuple(parts.iter().zip(fields).map(|(p, f)| self.pattern(p, f)).collect())
            }
        }
    }

    // Expressions.

    /// Infers `expr`; `hint` is the expected type, if any. The hint determines types of parameters early; the caller
    /// checks the type.
    pub(super) fn infer(&mut self, expr: &Expr, hint: Option<TyId>) -> Core {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Integer(n) => {
                let ty = self.table.var_of(Class::Num, Literal::Pure);
                Core { kind: CoreKind::Literal(*n), ty, span }
            }
            ExprKind::Real(x) => Core { kind: CoreKind::Real(*x), ty: self.table.double, span },
            ExprKind::Bool(b) => Core { kind: CoreKind::Bool(*b), ty: self.table.bool, span },
            ExprKind::Name(name) => self.name(name, span),
            ExprKind::Operator(infix) => self.builtin(Builtin::Infix(*infix), span),
            ExprKind::Apply { .. } => self.apply(expr),
            ExprKind::Fun { params, result, body } => self.fun(params, result.as_ref(), body, span, hint),
            ExprKind::Let { bindings, body } => self.lets(bindings, body, span, hint),
            ExprKind::If { arms, otherwise } => self.conditional(arms, otherwise, span, hint),
            ExprKind::Infix { first, rest } => self.infix(first, rest, span),
            ExprKind::Neg(e) => self.neg(e, span),
            ExprKind::Index { array, indices } => self.index(array, indices, span),
            ExprKind::Tuple(parts) => self.tuple(parts.iter(), None, span, hint),
            ExprKind::Record(fields) => self.record(fields, span, hint),
            ExprKind::Component { tuple, index } => self.component(tuple, *index, span),
            ExprKind::Field { record, field } => {
                let record = self.infer(record, None);
                let result = self.table.var(Class::Data);
                let constraint = Constraint::Field { record: record.ty, field: field.name.clone(), result };
                self.ask(constraint, field.span, &field.name);
                Core { kind: CoreKind::Field(Box::new(record), field.name.clone()), ty: result, span }
            }
            ExprKind::Array(elements) => self.array(elements, span, hint),
            ExprKind::Annotated { expr, ty } => {
                let (annotated, sizes) = self.annotation(ty);
                let value = self.infer(expr, Some(annotated));
                self.expect(&value, annotated, &Why::new("the annotation says so", ty.span));
                Core { kind: CoreKind::Annotated(Box::new(value), sizes), ty: annotated, span }
            }
            ExprKind::Error => self.error(span),
        }
    }

    fn component(&mut self, tuple: &Expr, index: usize, span: Span) -> Core {
        let tuple = self.infer(tuple, None);
        let result = self.table.var(Class::Data);
        self.ask(Constraint::Component { tuple: tuple.ty, index, result }, span, &format!(".{index}"));
        Core { kind: CoreKind::Component(Box::new(tuple), index), ty: result, span }
    }

    fn neg(&mut self, e: &Expr, span: Span) -> Core {
        let value = self.infer(e, None);
        if let CoreKind::Literal(n) = value.kind
            && let Some(m) = n.checked_neg()
        {
            return Core { kind: CoreKind::Literal(m), ty: value.ty, span };
        }
        if let CoreKind::Real(x) = value.kind {
            return Core { kind: CoreKind::Real(-x), ty: value.ty, span };
        }
        let number = self.table.var(Class::Num);
        self.expect(&value, number, &Why::new("`-` takes a number", span));
        Core { ty: value.ty, kind: CoreKind::Neg(Box::new(value)), span }
    }

    pub(super) fn local(&self, name: &Name) -> Option<usize> {
        self.locals.find(name)
    }

    /// Returns whether `name` is the built-in function.
    fn is_own(&self, name: &Name) -> bool {
        self.local(name).is_none() && !self.globals.contains_key(name)
    }

    fn name(&mut self, name: &Name, span: Span) -> Core {
        if let Some(id) = self.local(name) {
            self.locals.mentions.push(id);
            let local = &mut self.locals.all[id];
            local.used = true;
            let (place, scheme) = (local.place, local.scheme.clone());
            return match self.instantiate(&scheme, name, span) {
                Some((inst, ty)) => Core { kind: CoreKind::Local(place, inst), ty, span },
                None => self.error(span),
            };
        }
        if let Some(def) = self.globals.get(name).copied() {
            let definition = &self.defs[def];
            if !definition.ok {
                return self.error(span);
            }
            let scheme = definition.scheme.clone();
            return match self.instantiate(&scheme, name, span) {
                Some((inst, ty)) => Core { kind: CoreKind::Global(def, inst), ty, span },
                None => self.error(span),
            };
        }
        if let Some(builtin) = Builtin::by_name(name) {
            return self.builtin(builtin, span);
        }
        if let Some(c) = builtin::constant(name) {
            return Core { kind: CoreKind::Real(c), ty: self.table.double, span };
        }
        if let Some(form) = Form::by_name(name) {
            self.diagnostics.push(messages::form_alone(name, form, span));
            return self.error(span);
        }
        let message = self.unknown(name, span);
        self.say_unknown(message);
        self.error(span)
    }

    /// Reports an unknown name, unless it may follow from a failed import.
    pub(super) fn say_unknown(&mut self, message: Diagnostic) {
        if self.incomplete {
            self.silenced += 1;
        } else {
            self.diagnostics.push(message);
        }
    }

    fn unknown(&mut self, name: &Name, span: Span) -> Diagnostic {
        if let Some((current, at)) = &self.current
            && current == name
        {
            return messages::recursion(name, span, *at);
        }
        if let Some(at) = self.later.get(name) {
            return messages::used_before(name, span, *at);
        }
        self.n_unknown += 1;
        if self.n_unknown > MAX_SUGGESTIONS {
            return messages::unknown_name(name, span, &[]);
        }
        // Sorted, so that the suggestion is deterministic.
        let mut known: Vec<&str> = builtin::names().collect();
        known.extend(self.locals.bound.iter().map(|(n, _)| &**n));
        known.extend(self.globals.keys().map(|n| &**n));
        known.extend(crate::library::names().iter().flatten());
        known.sort_unstable();
        messages::unknown_name(name, span, &known)
    }

    pub(super) fn instantiate(&mut self, scheme: &Scheme, name: &Name, span: Span) -> Option<(Box<[TyId]>, TyId)> {
        match scheme.instantiate(&mut self.table) {
            Ok((inst, ty, constraints)) => {
                for asked in constraints {
                    // A failure is reported at the use, not inside the definition.
                    let asked = Asked { span, by: asked.by, constraint: asked.constraint };
                    let failures = self.pending.add(&mut self.table, asked);
                    self.report(failures);
                }
                Some((inst, ty))
            }
            Err(_) => {
                self.diagnostics.push(messages::type_too_large(span, name));
                None
            }
        }
    }

    fn builtin(&mut self, builtin: Builtin, span: Span) -> Core {
        let (ty, constraint) = builtin::type_of(&mut self.table, builtin);
        if let Some(constraint) = constraint {
            self.ask(constraint, span, builtin.name());
        }
        Core { kind: CoreKind::Builtin(builtin), ty, span }
    }

    fn apply(&mut self, expr: &Expr) -> Core {
        // `(f x) y` is `f x y`.
        let (mut head, mut groups) = (expr, Vec::new());
        while let ExprKind::Apply { function, args } = &head.kind {
            groups.push(args);
            head = function;
        }
        let args: Vec<&Expr> = groups.into_iter().rev().flatten().collect();
        if let ExprKind::Name(name) = &head.kind
            && self.is_own(name)
            && let Some(form) = Form::by_name(name)
        {
            return match form {
                Form::Deriv => self.deriv(&args, expr.span),
                Form::Forward => self.forward(&args, expr.span),
            };
        }
        let function = match &head.kind {
            ExprKind::Name(name) => self.name(name, head.span),
            _ => self.infer(head, None),
        };
        let callee = messages::callee(&head.kind);
        let mut params = Vec::with_capacity(args.len());
        let mut ty = function.ty;
        for k in 0..args.len() {
            match self.table.node(ty).clone() {
                Node::Fun(param, result) => {
                    params.push(param);
                    ty = result;
                }
                Node::Var(v) if v.class == Class::Any => {
                    let (param, result) = (self.table.var(Class::Any), self.table.var(Class::Any));
                    let fun = self.table.fun(param, result);
                    if let Err(mismatch) = self.unify(ty, fun) {
                        let why = Why::new("it is applied here", head.span);
                        let clash = Clash { span: head.span, actual: ty, expected: fun, mismatch };
                        let message = messages::mismatch(&self.table, clash, &why, None);
                        self.diagnostics.push(message);
                    }
                    params.push(param);
                    ty = result;
                }
                Node::Error => {
                    params.push(ty);
                }
                _ => {
                    self.excess(&function, head, &args, k);
                    return self.error(expr.span);
                }
            }
        }
        // Functions last: their parameters' types are known by then.
        let mut done: Vec<Option<Core>> = args.iter().map(|_| None).collect();
        for functions in [false, true] {
            for (k, arg) in args.iter().enumerate() {
                if matches!(arg.kind, ExprKind::Fun { .. }) != functions {
                    continue;
                }
                let value = self.infer(arg, Some(params[k]));
                let label = messages::argument_label(&callee, k, args.len());
                self.expect(&value, params[k], &Why::new(label, head.span));
                done[k] = Some(value);
            }
        }
        let args = done.into_iter().flatten().collect();
        Core { kind: CoreKind::Apply(Box::new(function), args), ty, span: expr.span }
    }

    /// Reports that `function`, the value of `head`, gets `args`, of which it takes only the first `n_params`.
    fn excess(&mut self, function: &Core, head: &Expr, args: &[&Expr], n_params: usize) {
        let (at, callee) = (self.origin(function), messages::callee(&head.kind));
        let extra = args[n_params];
        let call = Excess {
            callee: &callee,
            head: head.span,
            ty: function.ty,
            n_params,
            n_args: args.len(),
            extra: extra.span,
        };
        let mut message = messages::too_many_arguments(&self.table, &call, at);
        if let (0, ExprKind::Name(name)) = (n_params, &extra.kind)
            && matches!(&**name, "div" | "mod")
        {
            message = message.with_help(format!("`{name}` stands before its arguments: `{name} a b`"));
        }
        self.diagnostics.push(message);
        for arg in args {
            let _ = self.infer(arg, None);
        }
    }

    fn fun(
        &mut self,
        params: &[Param],
        result: Option<&chainrule_syntax::tree::Type>,
        body: &Expr,
        span: Span,
        hint: Option<TyId>,
    ) -> Core {
        let mark = self.locals.bound.len();
        self.locals.functions.push(0);
        let sizes = self.declare_sizes(params, result);
        let mut types = Vec::with_capacity(params.len());
        let mut bound = Vec::with_capacity(params.len());
        let mut rest = hint;
        for param in params {
            let expected = rest.and_then(|ty| match self.table.node(ty) {
                Node::Fun(p, r) => Some((*p, *r)),
                _ => None,
            });
            rest = expected.map(|(_, r)| r);
            let ty = expected.map_or_else(|| self.table.var(Class::Any), |(p, _)| p);
            // A bound value is no number literal any more, even if it starts as one.
            if let Some(variable) = self.table.as_var_mut(ty) {
                variable.literal = match variable.literal {
                    Literal::Pure => Literal::Mixed,
                    Literal::Open => Literal::No,
                    other => other,
                };
            }
            types.push(ty);
            bound.push(self.pattern(&param.pattern, ty));
        }
        let mut core_params = Vec::with_capacity(params.len());
        for ((param, pattern), ty) in params.iter().zip(bound).zip(&types) {
            let mut annotation = None;
            if let Some(written) = &param.ty {
                let (annotated, sizes) = self.annotation(written);
                if let Err(mismatch) = self.unify(*ty, annotated) {
                    let why = Why::new("what surrounds the function asks for that", span);
                    let clash = Clash { span: written.span, actual: annotated, expected: *ty, mismatch };
                    let message = messages::mismatch(&self.table, clash, &why, None);
                    self.diagnostics.push(message);
                }
                annotation = Some(sizes);
            }
            core_params.push(CoreParam { pattern, annotation, span: param.pattern.span() });
        }
        let result = result.map(|ty| (self.annotation(ty), ty.span));
        let hint = result.as_ref().map(|((ty, _), _)| *ty).or(rest);
        let body = self.infer(body, hint);
        let mut result_sizes = None;
        if let Some(((ty, sizes), at)) = result {
            self.expect(&body, ty, &Why::new("the annotation of the result says so", at));
            result_sizes = sizes.has_size().then_some(sizes);
        }
        self.locals.unbind(mark);
        let n_slots = self.locals.functions.pop().unwrap_or(0);
        let ty = self.table.funs(&types, body.ty);
        let fun = CoreFun { name: None, params: core_params, sizes, result: result_sizes, body, n_slots };
        Core { kind: CoreKind::Fun(Box::new(fun)), ty, span }
    }

    fn lets(&mut self, bindings: &[Binding], body: &Expr, span: Span, hint: Option<TyId>) -> Core {
        let mark = self.locals.bound.len();
        let mut core = Vec::with_capacity(bindings.len());
        for binding in bindings {
            let polymorphic = matches!(binding.pattern, Pattern::Name(_))
                && matches!(binding.value.kind, ExprKind::Fun { .. } | ExprKind::Integer(_));
            let waiting = self.pending.mark();
            let start = self.locals.mentions.len();
            if polymorphic {
                self.table.level += 1;
            }
            let (value, annotation) = self.binding_value(binding, None);
            let mentions = start..self.locals.mentions.len();
            let is_function = matches!(value.kind, CoreKind::Fun(_));
            let mut quantified = None;
            let first = self.locals.all.len();
            let pattern = match &binding.pattern {
                Pattern::Name(ident) if polymorphic => {
                    self.table.level -= 1;
                    let failures = self.pending.settle_accumulators(&mut self.table, waiting);
                    self.report(failures);
                    let scheme = self.generalise(value.ty, waiting, Others::Wait, ident.span);
                    quantified = Some(scheme.vars.clone());
                    let place = self.bind(&ident.name, scheme, ident.span);
                    CorePattern::Local(place, ident.name.clone(), ident.span)
                }
                pattern => self.pattern(pattern, value.ty),
            };
            for local in &mut self.locals.all[first..] {
                local.mentions = mentions.clone();
                local.is_function = is_function;
            }
            core.push(CoreBinding { pattern, annotation, value, quantified });
        }
        let body = self.infer(body, hint);
        self.leave_lets(mark);
        Core { ty: body.ty, kind: CoreKind::Let(core, Box::new(body)), span }
    }

    fn conditional(&mut self, arms: &[(Expr, Expr)], otherwise: &Expr, span: Span, hint: Option<TyId>) -> Core {
        let mut core: Vec<(Core, Core)> = Vec::with_capacity(arms.len());
        for (condition, branch) in arms {
            let condition = self.infer(condition, None);
            let bool = self.table.bool;
            self.expect(&condition, bool, &Why::new("`if` asks for a condition", span.start_point()));
            let branch = self.infer(branch, hint);
            self.data(&branch, "the result of an `if`");
            if let Some((_, first)) = core.first() {
                let (ty, at) = (first.ty, first.span);
                self.expect(&branch, ty, &Why::new("the first branch is of that type", at));
            }
            core.push((condition, branch));
        }
        let otherwise = self.infer(otherwise, hint);
        self.data(&otherwise, "the result of an `if`");
        let Some((ty, at)) = core.first().map(|(_, first)| (first.ty, first.span)) else { return otherwise };
        self.expect(&otherwise, ty, &Why::new("the first branch is of that type", at));
        Core { kind: CoreKind::If(core, Box::new(otherwise)), ty, span }
    }

    fn infix(&mut self, first: &Expr, rest: &[(Infix, Span, Expr)], span: Span) -> Core {
        let first = self.infer(first, None);
        let mut ty = first.ty;
        let mut left_span = first.span;
        let mut core: Vec<(Infix, Span, Core)> = Vec::with_capacity(rest.len());
        for (infix, at, right) in rest {
            let right = self.infer(right, None);
            let (args, result, constraint) = builtin::op_type(&mut self.table, builtin::infix_op(*infix));
            let kind =
                if args.first().is_some_and(|a| self.table.is(*a, self.table.bool)) { "Bools" } else { "numbers" };
            let label = format!("`{}` takes {kind}", builtin::symbol(*infix));
            let left = if core.is_empty() { first.kind.clone_leaf() } else { CoreKind::Error };
            let left = Core { kind: left, ty, span: left_span };
            if let [a, b] = args.as_slice() {
                self.expect(&left, *a, &Why::new(label.clone(), *at));
                self.expect(&right, *b, &Why::new(label, *at));
            }
            if let Some(constraint) = constraint {
                self.ask(constraint, *at, builtin::symbol(*infix));
            }
            ty = result;
            left_span = left_span.to(right.span);
            core.push((*infix, *at, right));
        }
        Core { kind: CoreKind::Infix(Box::new(first), core), ty, span }
    }

    fn index(&mut self, array: &Expr, indices: &[Expr], span: Span) -> Core {
        let array = self.infer(array, None);
        let mut ty = array.ty;
        let mut core = Vec::with_capacity(indices.len());
        for index in indices {
            let element = self.table.var(Class::Data);
            let expected = self.table.array(element);
            let at = Core { kind: array.kind.clone_leaf(), ty, span: array.span };
            self.expect(&at, expected, &Why::new("it is indexed here", index.span));
            let index = self.infer(index, None);
            let int = self.table.int;
            self.expect(&index, int, &Why::new("an index is a whole number", None));
            core.push(index);
            ty = element;
        }
        Core { kind: CoreKind::Index(Box::new(array), core), ty, span }
    }

    fn tuple<'e>(
        &mut self,
        parts: impl Iterator<Item = &'e Expr>,
        names: Option<std::sync::Arc<[Name]>>,
        span: Span,
        hint: Option<TyId>,
    ) -> Core {
        let hints = hint.and_then(|ty| match self.table.node(ty) {
            Node::Tuple(fields, _) => Some(fields.clone()),
            _ => None,
        });
        let mut core = Vec::new();
        for (k, part) in parts.enumerate() {
            let hint = hints.as_ref().and_then(|h| h.get(k)).copied();
            let value = self.infer(part, hint);
            self.data(&value, "a tuple or record");
            core.push(value);
        }
        let ty = self.table.tuple(core.iter().map(|c| c.ty).collect(), names.clone());
        Core { kind: CoreKind::Tuple(core, names), ty, span }
    }

    fn record(&mut self, fields: &[(chainrule_syntax::tree::Ident, Expr)], span: Span, hint: Option<TyId>) -> Core {
        for (k, (ident, _)) in fields.iter().enumerate() {
            if let Some((first, _)) = fields[..k].iter().find(|(other, _)| other.name == ident.name) {
                self.diagnostics.push(messages::field_twice(&ident.name, ident.span, first.span));
            }
        }
        let names: std::sync::Arc<[Name]> = fields.iter().map(|(ident, _)| ident.name.clone()).collect();
        self.tuple(fields.iter().map(|(_, e)| e), Some(names), span, hint)
    }

    fn array(&mut self, elements: &[Expr], span: Span, hint: Option<TyId>) -> Core {
        let hint = hint.and_then(|ty| match self.table.node(ty) {
            Node::Array(element) => Some(*element),
            _ => None,
        });
        let mut core: Vec<Core> = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.infer(element, hint);
            self.data(&value, "an array");
            if let Some(first) = core.first() {
                let (ty, at) = (first.ty, first.span);
                self.expect(&value, ty, &Why::new("the first element is of that type", at));
            }
            core.push(value);
        }
        let element = core.first().map_or(self.table.error, |c| c.ty);
        let ty = self.table.array(element);
        Core { kind: CoreKind::Array(core), ty, span }
    }
}

impl CoreKind {
    /// Returns a copy for messages: only the name.
    fn clone_leaf(&self) -> Self {
        match self {
            Self::Local(place, _) => Self::Local(*place, Box::default()),
            Self::Global(def, _) => Self::Global(*def, Box::default()),
            _ => Self::Error,
        }
    }
}
