//! Forms that are applied like functions but are none: `deriv e x`, `forward f (a, a_tan)`; and the names of a tuple
//! pattern at top level.

use super::builtin::Form;
use super::constraint::Constraint;
use super::core::{Core, CoreKind, DefId};
use super::infer::{Checker, Others, Why};
use super::messages;
use super::pending::Scheme;
use super::table::{Class, TyId};
use chainrule_base::Span;
use chainrule_syntax::tree::{Expr, ExprKind};
use rustc_hash::FxHashSet;

impl Checker {
    pub(super) fn deriv(&mut self, args: &[&Expr], span: Span) -> Core {
        let [body, by] = args else {
            self.diagnostics.push(messages::form_arguments("deriv", Form::Deriv, args.len(), span));
            return self.error(span);
        };
        let start = self.locals.mentions.len();
        let body = self.infer(body, None);
        let mentioned = start..self.locals.mentions.len();
        let variable = match &by.kind {
            ExprKind::Name(name) => self.local(name).map(|id| (name.clone(), id)),
            _ => None,
        };
        let Some((name, id)) = variable else {
            self.diagnostics.push(messages::no_variable(by.span));
            return self.error(span);
        };
        self.locals.all[id].used = true;
        self.locals.mentions.push(id);
        if !self.locals.all[id].scheme.vars.is_empty() {
            self.diagnostics.push(messages::no_variable(by.span));
            return self.error(span);
        }
        if !self.library {
            self.warn_constants(mentioned, id, span);
        }
        let (place, x) = (self.locals.all[id].place, self.locals.all[id].scheme.ty);
        let result = self.table.var(Class::Data);
        self.ask(Constraint::Deriv { by: x, of: body.ty, result }, span, &name);
        Core { kind: CoreKind::Deriv(Box::new(body), place), ty: result, span }
    }

    /// Warns about free variables of `e` in `deriv e x` that were computed from `x`: they are constants (algorithm 1).
    fn warn_constants(&mut self, mentioned: std::ops::Range<usize>, x: usize, span: Span) {
        let mut seen = FxHashSet::default();
        let mut stack: Vec<usize> = self.locals.mentions[mentioned].to_vec();
        let mut suspects = Vec::new();
        while let Some(id) = stack.pop() {
            if id == x || !seen.insert(id) {
                continue;
            }
            if self.locals.all[id].is_function {
                // Functions are part of the expression: they see the differentiated `x`.
                stack.extend(&self.locals.mentions[self.locals.all[id].mentions.clone()]);
            } else {
                suspects.push(id);
            }
        }
        suspects.sort_unstable();
        for suspect in suspects {
            let mut seen = FxHashSet::default();
            let mut stack = vec![suspect];
            let mut found = false;
            while let Some(id) = stack.pop() {
                if seen.insert(id) {
                    found |= id == x;
                    stack.extend(&self.locals.mentions[self.locals.all[id].mentions.clone()]);
                }
            }
            if found {
                let (name, at) = (self.locals.all[suspect].name.clone(), self.locals.all[suspect].span);
                let message = messages::constant_in_deriv(&name, at, &self.locals.all[x].name, span);
                self.diagnostics.push(message);
            }
        }
    }

    pub(super) fn forward(&mut self, args: &[&Expr], span: Span) -> Core {
        let [function, at @ ..] = args else {
            self.diagnostics.push(messages::form_arguments("forward", Form::Forward, args.len(), span));
            return self.error(span);
        };
        if at.is_empty() {
            self.diagnostics.push(messages::form_arguments("forward", Form::Forward, args.len(), span));
            return self.error(span);
        }
        let mut params = Vec::with_capacity(at.len());
        let mut values = Vec::with_capacity(at.len());
        for arg in at {
            let param = self.table.var(Class::Data);
            let pair = self.table.tuple(vec![param, param], None);
            let value = self.infer(arg, Some(pair));
            let why = "`forward` takes pairs of a value and its tangent, of one type";
            self.expect(&value, pair, &Why::new(why, span.start_point()));
            self.ask(Constraint::Real { ty: param }, arg.span, "forward");
            params.push(param);
            values.push(value);
        }
        let result = self.table.var(Class::Data);
        let fun = self.table.funs(&params, result);
        let function = self.infer(function, Some(fun));
        self.expect(&function, fun, &Why::new("`forward` applies its function to the values", span.start_point()));
        let dual = self.table.var(Class::Data);
        self.ask(Constraint::Dual { of: result, dual }, function.span, "forward");
        Core { kind: CoreKind::Forward(Box::new(function), values), ty: dual, span }
    }
}

impl Checker {
    /// Returns the value of one name of `let (a, (b, c)) = e` at top level: a component of `def`, which is `e`. The
    /// path has components with the number of components of their tuples.
    pub(super) fn component_of(&mut self, def: DefId, path: &[(usize, usize)], span: Span) -> (Core, Scheme) {
        self.table.level = 1;
        let mark = self.pending.mark();
        let scheme = self.defs[def].scheme.clone();
        let name = self.defs[def].name.clone();
        let Some((inst, ty)) = self.instantiate(&scheme, &name, span) else {
            self.table.level = 0;
            return (self.error(span), Scheme::mono(self.table.error));
        };
        let mut core = Core { kind: CoreKind::Global(def, inst), ty, span };
        for (index, n) in path {
            let fields: Vec<TyId> = (0..*n).map(|_| self.table.var(Class::Data)).collect();
            let tuple = self.table.tuple(fields.clone(), None);
            self.expect(&core, tuple, &Why::new(format!("the pattern takes a tuple of {n}"), span));
            core = Core { ty: fields[*index], kind: CoreKind::Component(Box::new(core), *index), span };
        }
        self.table.level = 0;
        let scheme = self.generalise(core.ty, mark, Others::Decided, span);
        (core, scheme)
    }
}
