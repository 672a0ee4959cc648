//! Signature of the elaborated function: its parameters, their sizes, its requirements.

use super::values::{Env, Fun, Value};
use super::{Elaborator, Stop};
use crate::check::core::{CoreFun, CorePattern, CoreSize, CoreSizeKind, CoreType, DefId, LocalRef};
use crate::check::messages::{show, undetermined};
use crate::check::pending::{Defaults, Pending};
use crate::check::table::{Node, TyId};
use crate::{Size, Type, VarId};
use chainrule_base::{Diagnostic, Name, Span};
use chainrule_syntax::tree::Infix;
use rustc_hash::FxHashMap;

impl<'p> Elaborator<'p> {
    /// Elaborates `def`; returns the result of the body.
    pub(super) fn entry(&mut self, def: DefId) -> Result<VarId, Stop> {
        let program = self.program;
        let definition = &program.defs[def];
        let (inst, ty) = self.settle(def)?;
        let mut params = Vec::new();
        let mut rest = ty;
        while let Node::Fun(param, result) = *self.table.node(rest) {
            params.push(param);
            rest = result;
        }
        if let Some(k) = params.iter().position(|p| matches!(self.table.node(*p), Node::Fun(..))) {
            let shown = show(self.table, params[k]);
            let message = Diagnostic::error(format!("`{}` takes a function", definition.name))
                .with_reason(format!("argument {} is `{shown}`; only data can be passed from outside", k + 1))
                .with_help("define a function that calls it with the function that you mean");
            return self.stop(definition.span, "defined here", message);
        }
        let types = self.type_frame(&definition.scheme.vars, &inst, Env { frame: 0, types: usize::MAX }, None);
        let frame = self.frame(usize::MAX, 0, definition.n_slots);
        let mut value = self.eval(&definition.core, Env { frame, types })?;
        let mut done = 0;
        while done < params.len() {
            let (fun, env, n) = match &value {
                Value::Fun(f) => match &**f {
                    Fun::Closure { fun, env, applied } => {
                        (Some((*fun, applied.len())), *env, fun.params.len() - applied.len())
                    }
                    Fun::Builtin(..) | Fun::Again { .. } => (None, Env { frame, types }, params.len() - done),
                },
                _ => return self.bug(definition.span, "data with parameters"),
            };
            let Some(tys) = params.get(done..done + n) else {
                return self.bug(definition.span, "a function with more parameters than its type");
            };
            let vars = self.declare(tys, fun, env, done)?;
            let args = vars.into_iter().map(Value::Data).collect();
            value = self.call(value, args, definition.span)?;
            done += n;
        }
        self.as_data(&value, definition.span)
    }

    /// Returns the types at which `def` is elaborated: open types become `Double`.
    fn settle(&mut self, def: DefId) -> Result<(Box<[TyId]>, TyId), Stop> {
        let definition = &self.program.defs[def];
        let too_large = || Diagnostic::limitation(format!("the type of `{}` is too large", definition.name));
        let Ok((inst, ty, constraints)) = definition.scheme.instantiate(self.table) else {
            return self.stop(definition.span, "defined here", too_large());
        };
        let mut pending = Pending::default();
        let mut failures = Vec::new();
        for asked in constraints {
            failures.extend(pending.add(self.table, asked));
        }
        failures.extend(pending.assume(self.table, 0, Defaults::All));
        let waiting: Vec<_> = pending.since(0).map(|(_, asked)| (asked.by.clone(), asked.span)).collect();
        if let Some((by, span)) = waiting.first()
            && failures.is_empty()
            && pending.since(0).any(|(_, a)| {
                use crate::check::constraint::Constraint;
                matches!(a.constraint, Constraint::Component { .. } | Constraint::Field { .. })
            })
        {
            self.diagnostics.push(undetermined(by, *span));
            return Err(Stop);
        }
        let double = self.table.double;
        for var in inst.iter() {
            let Some(vars) = self.table.vars_of(*var) else {
                return self.stop(definition.span, "defined here", too_large());
            };
            for var in vars {
                let _ = self.table.unify(var, double);
                failures.extend(pending.wake(self.table));
            }
        }
        for (asked, failure) in failures {
            let message = crate::check::messages::failure(self.table, &asked, &failure);
            self.diagnostics.push(message);
        }
        if self.diagnostics.has_errors() { Err(Stop) } else { Ok((inst, ty)) }
    }

    /// Makes parameters of the types `tys`; `fun` has their names and annotations.
    fn declare(
        &mut self,
        tys: &[TyId],
        fun: Option<(&'p CoreFun, usize)>,
        env: Env,
        first: usize,
    ) -> Result<Vec<VarId>, Stop> {
        let written = |k: usize| fun.and_then(|(fun, skip)| fun.params.get(skip + k));
        let mut entry = Entry { sizes: FxHashMap::default(), own: fun.map_or(&[], |(fun, _)| &fun.sizes), env };
        let mut vars = Vec::with_capacity(tys.len());
        // Names and `Int` parameters first: sizes refer to them.
        for (k, ty) in tys.iter().enumerate() {
            let pattern = written(k).map(|p| &p.pattern);
            let name = match pattern {
                Some(CorePattern::Local(_, name, span)) => {
                    self.b.set_span(Some(*span));
                    name.clone()
                }
                _ => Name::new(&format!("x{}", first + k + 1)),
            };
            let var = self.b.fresh_named(Type::Int, &name);
            self.b.push_param(var);
            if matches!(self.table.node(*ty), Node::Int) {
                self.at_entry.ints.insert(var);
                if let Some(CorePattern::Local(place, ..)) = pattern {
                    entry.sizes.insert(*place, Size::var(var));
                }
            }
            vars.push(var);
        }
        for (place, name, span) in entry.own {
            // Made now, so that they are in the order of the text; bound by the first whole dimension.
            if fun.is_some_and(|(fun, skip)| {
                fun.params.iter().skip(skip).filter_map(|p| p.annotation.as_ref()).any(|a| is_whole(a, *place))
            }) {
                self.b.set_span(Some(*span));
                let var = self.size_param(name);
                entry.sizes.insert(*place, Size::var(var));
            }
        }
        for (k, (var, ty)) in vars.iter().zip(tys).enumerate() {
            let annotation = written(k).and_then(|p| p.annotation.as_ref());
            let name = self.b.vars[*var].name.clone().unwrap_or_else(|| Name::new("x"));
            let ty = self.param_type(*ty, annotation, (&name, &name, 0), &entry)?;
            self.b.vars[*var].ty = ty;
        }
        Ok(vars)
    }

    fn size_param(&mut self, name: &str) -> VarId {
        let var = self.b.size_param(name);
        self.at_entry.natural.insert(var);
        self.at_entry.ints.insert(var);
        var
    }

    /// Returns the type of a parameter. `name` is the prefix of its sizes' names, `owner` the parameter itself, `dim`
    /// the current dimension of the array, from 0.
    fn param_type(
        &mut self,
        ty: TyId,
        annotation: Option<&CoreType>,
        (name, owner, dim): (&Name, &Name, usize),
        entry: &Entry<'_>,
    ) -> Result<Type, Stop> {
        match self.table.node(ty).clone() {
            Node::Double => Ok(Type::Double),
            Node::Int => Ok(Type::Int),
            Node::Bool => Ok(Type::Bool),
            Node::Array(element) => {
                let (written, inner) = match annotation {
                    Some(CoreType::Array(size, inner)) => (size.as_ref(), Some(&**inner)),
                    _ => (None, None),
                };
                let rank = dim + self.rank(ty);
                let size = match written {
                    Some(written) => self.entry_size(written, entry)?,
                    None => {
                        let suffix = match (rank, dim) {
                            (1, _) => "len".to_owned(),
                            (2, 0) => "rows".to_owned(),
                            (2, _) => "cols".to_owned(),
                            _ => format!("dim{}", dim + 1),
                        };
                        Size::var(self.size_param(&format!("{name}_{suffix}")))
                    }
                };
                let word = match (rank, dim) {
                    (1, _) => "elements",
                    (2, 0) => "rows",
                    (2, _) => "columns",
                    _ => "elements in one dimension",
                };
                if let Some(var) = size.as_var() {
                    let shown = name.replacen('_', ".", usize::from(name != owner));
                    self.descriptions.sizes.entry(var).or_insert((shown, word));
                }
                self.learn(size.clone());
                let element = self.param_type(element, inner, (name, owner, dim + 1), entry)?;
                Ok(Type::array(size, element))
            }
            Node::Tuple(fields, names) => {
                let mut types = Vec::with_capacity(fields.len());
                for (k, field) in fields.iter().enumerate() {
                    let inner = match annotation {
                        Some(CoreType::Tuple(parts)) => parts.get(k),
                        _ => None,
                    };
                    let part = match names.as_ref().and_then(|n| n.get(k)) {
                        Some(field) => Name::from(format!("{name}_{field}")),
                        None => Name::from(format!("{name}_{k}")),
                    };
                    types.push(self.param_type(*field, inner, (&part, owner, 0), entry)?);
                }
                Ok(Type::Tuple(types, names))
            }
            Node::Var(_) | Node::Fun(..) | Node::Error | Node::Link(_) => {
                self.bug(self.program.defs.as_slice()[0].span, "a parameter without a type")
            }
        }
    }

    fn rank(&self, mut ty: TyId) -> usize {
        let mut rank = 0;
        while let Node::Array(element) = self.table.node(ty) {
            rank += 1;
            ty = *element;
        }
        rank
    }

    fn entry_size(&mut self, size: &CoreSize, entry: &Entry<'_>) -> Result<Size, Stop> {
        match &size.kind {
            CoreSizeKind::Local(place, name) => match entry.sizes.get(place) {
                Some(size) => Ok(size.clone()),
                None if entry.own.iter().any(|(own, ..)| own == place) => {
                    let message = Diagnostic::error(format!("the size `{name}` cannot be read off the arguments"))
                        .with_reason(format!("`{name}` is nowhere the whole size of a parameter"))
                        .with_help(format!("add a parameter: `({name} : Card)`"));
                    self.stop(size.span, "it occurs here", message)
                }
                None => self.written_size(size, entry.env),
            },
            CoreSizeKind::Infix(infix, a, b) => {
                let (a, b) = (self.entry_size(a, entry)?, self.entry_size(b, entry)?);
                match infix {
                    Infix::Add => Ok(a.add(&b)),
                    Infix::Sub => Ok(a.sub(&b)),
                    Infix::Mul => Ok(a.mul(&b)),
                    _ => self.bug(size.span, "a size with an operator that sizes do not have"),
                }
            }
            CoreSizeKind::Number(n) if *n < 0 => {
                self.stop(size.span, "here", Diagnostic::error("a size is not negative"))
            }
            CoreSizeKind::Number(_) | CoreSizeKind::Global(..) => self.written_size(size, entry.env),
        }
    }
}

/// Sizes in the annotations of a function's parameters.
struct Entry<'a> {
    sizes: FxHashMap<LocalRef, Size>,
    /// Size variables that the function introduces.
    own: &'a [(LocalRef, Name, Span)],
    env: Env,
}

/// Returns whether `place` is a whole dimension somewhere in `annotation`.
fn is_whole(annotation: &CoreType, place: LocalRef) -> bool {
    match annotation {
        CoreType::Other => false,
        CoreType::Array(size, inner) => {
            matches!(size, Some(CoreSize { kind: CoreSizeKind::Local(p, _), .. }) if *p == place)
                || is_whole(inner, place)
        }
        CoreType::Tuple(parts) => parts.iter().any(|p| is_whole(p, place)),
    }
}
