//! Type annotations: types for inference, and sizes for elaboration.
//!
//! A name in a size is, in this order: a parameter of the same function, a local in scope, a constant of the program;
//! otherwise a size variable that the annotated function introduces, and that its body may use as an `Int`.

use super::core::{CoreSize, CoreSizeKind, CoreType, LocalRef};
use super::infer::Checker;
use super::pending::Scheme;
use super::table::{Class, Node, TyId};
use super::{builtin, messages};
use chainrule_base::{Diagnostic, Name, Span};
use chainrule_syntax::tree::{Infix, Param, Pattern, Size, SizeKind, Type, TypeKind};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A name of a type.
#[derive(Clone)]
pub(super) struct Alias {
    pub(super) ty: TyId,
    pub(super) sizes: CoreType,
}

/// Names of built-in types.
const TYPE_NAMES: &[&str] =
    &["Double", "Int", "Index", "Card", "Bool", "Vector", "Matrix", "DoubleD", "VectorD", "MatrixD"];

impl Checker {
    /// Returns the written type, and its sizes.
    pub(super) fn annotation(&mut self, ty: &Type) -> (TyId, CoreType) {
        match &ty.kind {
            TypeKind::Name(name) => self.type_name(name, ty.span),
            TypeKind::Array { size, element } => {
                let size = size.as_ref().and_then(|size| self.size(size));
                let (element, sizes) = self.element(element);
                (self.table.array(element), CoreType::Array(size, Arc::new(sizes)))
            }
            TypeKind::Tuple(parts) => {
                let (types, sizes): (_, Vec<_>) = parts.iter().map(|part| self.element(part)).unzip();
                (self.table.tuple(types, None), CoreType::Tuple(sizes.into()))
            }
            TypeKind::Record(fields) => {
                for (k, (ident, _)) in fields.iter().enumerate() {
                    if let Some((first, _)) = fields[..k].iter().find(|(other, _)| other.name == ident.name) {
                        self.diagnostics.push(messages::field_twice(&ident.name, ident.span, first.span));
                    }
                }
                let (types, sizes): (Vec<_>, Vec<_>) = fields.iter().map(|(_, part)| self.element(part)).unzip();
                let names = fields.iter().map(|(ident, _)| ident.name.clone()).collect();
                (self.table.tuple(types, Some(names)), CoreType::Tuple(sizes.into()))
            }
            TypeKind::Function(param, result) => {
                // Sizes inside function types add nothing that elaboration does not check anyway.
                let (param, result) = (self.annotation_without_sizes(param), self.annotation_without_sizes(result));
                (self.table.fun(param, result), CoreType::Other)
            }
            TypeKind::Error => (self.table.error, CoreType::Other),
        }
    }

    fn annotation_without_sizes(&mut self, ty: &Type) -> TyId {
        match &ty.kind {
            TypeKind::Array { element, .. } => {
                let element = self.annotation_without_sizes(element);
                self.table.array(element)
            }
            TypeKind::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.annotation_without_sizes(part)).collect();
                self.table.tuple(parts, None)
            }
            TypeKind::Function(param, result) => {
                let (param, result) = (self.annotation_without_sizes(param), self.annotation_without_sizes(result));
                self.table.fun(param, result)
            }
            _ => self.annotation(ty).0,
        }
    }

    fn element(&mut self, ty: &Type) -> (TyId, CoreType) {
        let (id, sizes) = self.annotation(ty);
        if self.table.restrict(id, Class::Data).is_err() {
            self.diagnostics.push(messages::function_in_data(ty.span, "an array, tuple or record"));
            return (self.table.error, CoreType::Other);
        }
        (id, sizes)
    }

    fn type_name(&mut self, name: &Name, span: Span) -> (TyId, CoreType) {
        if let Some(alias) = self.aliases.get(name) {
            return (alias.ty, alias.sizes.clone());
        }
        let (double, int) = (self.table.double, self.table.int);
        let any_size = |sizes: CoreType| CoreType::Array(None, Arc::new(sizes));
        match &**name {
            "Double" => (double, CoreType::Other),
            "Int" | "Index" | "Card" => (int, CoreType::Other),
            "Bool" => (self.table.bool, CoreType::Other),
            // To be inferred.
            "_" => (self.table.var(Class::Any), CoreType::Other),
            "Vector" => (self.table.array(double), any_size(CoreType::Other)),
            "Matrix" => {
                let row = self.table.array(double);
                (self.table.array(row), any_size(any_size(CoreType::Other)))
            }
            "DoubleD" | "VectorD" | "MatrixD" => {
                let rank = usize::from(&**name != "DoubleD") + usize::from(&**name == "MatrixD");
                let sizes = (0..rank).fold(CoreType::Other, |sizes, _| any_size(sizes));
                (builtin::dual_of_rank(&mut self.table, rank), sizes)
            }
            _ => {
                let mut known: Vec<&str> =
                    self.aliases.keys().map(|n| &**n).chain(TYPE_NAMES.iter().copied()).collect();
                known.sort_unstable();
                let message = messages::unknown_type(name, span, &known);
                self.say_unknown(message);
                (self.table.error, CoreType::Other)
            }
        }
    }

    /// Returns a written size; `None` once its error is reported.
    fn size(&mut self, size: &Size) -> Option<CoreSize> {
        let kind = match &size.kind {
            SizeKind::Number(n) => CoreSizeKind::Number(*n),
            SizeKind::Name(name) => self.size_name(name, size.span)?,
            SizeKind::Infix(infix, a, b) => {
                CoreSizeKind::Infix(*infix, Box::new(self.size(a)?), Box::new(self.size(b)?))
            }
        };
        Some(CoreSize { kind, span: size.span })
    }

    fn size_name(&mut self, name: &Name, span: Span) -> Option<CoreSizeKind> {
        let int = self.table.int;
        if let Some(id) = self.locals.find(name) {
            let local = &mut self.locals.all[id];
            local.used = true;
            let (place, ty, at) = (local.place, local.scheme.ty, local.span);
            if !local.scheme.vars.is_empty() || self.unify(ty, int).is_err() {
                let found = messages::show(&self.table, ty);
                self.diagnostics.push(
                    Diagnostic::error(format!("`{name}` is no size"))
                        .with_label(span, "used as a size here")
                        .with_label(at, format!("it is `{found}`"))
                        .with_reason("a size is an `Int`"),
                );
                return None;
            }
            return Some(CoreSizeKind::Local(place, name.clone()));
        }
        if let Some(def) = self.size_constant(name) {
            let scheme = self.defs[def].scheme.clone();
            let Ok((inst, ty, _)) = scheme.instantiate(&mut self.table) else { return None };
            return if self.unify(ty, int).is_ok() {
                Some(CoreSizeKind::Global(def, inst))
            } else {
                let at = self.defs[def].span;
                self.diagnostics.push(
                    Diagnostic::error(format!("`{name}` is no size"))
                        .with_label(span, "used as a size here")
                        .with_label(at, "it is no `Int`")
                        .with_reason("a size is an `Int`"),
                );
                None
            };
        }
        self.diagnostics.push(
            Diagnostic::error(format!("unknown size `{name}`"))
                .with_label(span, "nothing of that name is in scope")
                .with_reason("only the annotations of a function's parameters and result bring in size variables")
                .with_help("leave the size out: `[]Double`"),
        );
        None
    }

    /// Returns the definition that `name` in a size refers to: a constant of the program, not of the library.
    fn size_constant(&self, name: &Name) -> Option<super::core::DefId> {
        let def = *self.globals.get(name)?;
        let definition = &self.defs[def];
        let is_function = matches!(self.table.node(definition.scheme.ty), Node::Fun(..));
        (definition.ok && !definition.library && !is_function).then_some(def)
    }

    /// Brings the size variables of a function's annotations into scope, as locals of type `Int`.
    pub(super) fn declare_sizes(&mut self, params: &[Param], result: Option<&Type>) -> Vec<(LocalRef, Name, Span)> {
        let mut own = FxHashSet::default();
        for param in params {
            names_of(&param.pattern, &mut own);
        }
        let mut written = Vec::new();
        for ty in params.iter().filter_map(|p| p.ty.as_ref()).chain(result) {
            size_names(ty, &mut written);
        }
        let mut declared = Vec::new();
        for (name, span) in written {
            let known = self.locals.find(&name).is_some() || self.size_constant(&name).is_some();
            if known || own.contains(&name) {
                continue;
            }
            let int = self.table.int;
            let place = self.bind(&name, Scheme::mono(int), span);
            declared.push((place, name, span));
        }
        declared
    }

    /// Defines a name of a type.
    pub(super) fn alias(&mut self, name: &Name, ty: &Type) {
        let mut written = Vec::new();
        size_names(ty, &mut written);
        for (size, span) in written {
            if self.size_constant(&size).is_none() {
                self.diagnostics.push(
                    Diagnostic::error(format!("a type name cannot have the size variable `{size}`"))
                        .with_label(span, "a size variable belongs to a function")
                        .with_help(format!("leave it out, `[]`, or define a constant: `let {size} = 3`")),
                );
                self.aliases.insert(name.clone(), Alias { ty: self.table.error, sizes: CoreType::Other });
                return;
            }
        }
        if let Some(span) = hole(ty) {
            self.diagnostics.push(
                Diagnostic::error("a type name cannot leave a type open")
                    .with_label(span, "this is found anew wherever an annotation stands")
                    .with_help("write the type, such as `Double`"),
            );
            self.aliases.insert(name.clone(), Alias { ty: self.table.error, sizes: CoreType::Other });
            return;
        }
        let (id, sizes) = self.annotation(ty);
        if self.table.vars_of(id).is_none() {
            self.diagnostics.push(messages::type_too_large(ty.span, name));
            self.aliases.insert(name.clone(), Alias { ty: self.table.error, sizes: CoreType::Other });
            return;
        }
        self.aliases.insert(name.clone(), Alias { ty: id, sizes });
    }
}

fn names_of(pattern: &Pattern, names: &mut FxHashSet<Name>) {
    match pattern {
        Pattern::Name(ident) => {
            names.insert(ident.name.clone());
        }
        Pattern::Wildcard(_) => {}
        Pattern::Tuple(parts, _) => parts.iter().for_each(|p| names_of(p, names)),
    }
}

/// The names in the sizes of `ty`, outside of function types.
fn size_names(ty: &Type, names: &mut Vec<(Name, Span)>) {
    match &ty.kind {
        TypeKind::Array { size, element } => {
            if let Some(size) = size {
                names_in_size(size, names);
            }
            size_names(element, names);
        }
        TypeKind::Tuple(parts) => parts.iter().for_each(|p| size_names(p, names)),
        TypeKind::Record(fields) => fields.iter().for_each(|(_, p)| size_names(p, names)),
        TypeKind::Name(_) | TypeKind::Function(..) | TypeKind::Error => {}
    }
}

/// Returns the first `_` in `ty`.
fn hole(ty: &Type) -> Option<Span> {
    match &ty.kind {
        TypeKind::Name(name) => (**name == *"_").then_some(ty.span),
        TypeKind::Array { element, .. } => hole(element),
        TypeKind::Tuple(parts) => parts.iter().find_map(hole),
        TypeKind::Record(fields) => fields.iter().find_map(|(_, part)| hole(part)),
        TypeKind::Function(param, result) => hole(param).or_else(|| hole(result)),
        TypeKind::Error => None,
    }
}

fn names_in_size(size: &Size, names: &mut Vec<(Name, Span)>) {
    match &size.kind {
        SizeKind::Number(_) => {}
        SizeKind::Name(name) => names.push((name.clone(), size.span)),
        SizeKind::Infix(Infix::Add | Infix::Sub | Infix::Mul, a, b) => {
            names_in_size(a, names);
            names_in_size(b, names);
        }
        SizeKind::Infix(..) => {}
    }
}
