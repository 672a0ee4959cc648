//! Derivatives of array programs, by forward or reverse mode on the array IR.

use super::{Derivation, Derived, What};
use crate::function::{ArrayBody, Body};
use crate::leaves::{Leaf, leaves};
use crate::unroll::pays::MAX_ELEMENTS;
use crate::{Error, Function, Result, Unroll};
use chainrule_autodiff::{Mode, Part, Request, by_rows_where, check_request, derive_told, without_squared_roots};
use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_graph::Semantics;
use chainrule_ir::Type;
use std::borrow::Cow;

/// Returns the part of a request that array programs do not support yet, but straight-line code does.
fn needs_straight_line_code(request: &Derivation) -> Option<&'static str> {
    if request.what.iter().any(|what| matches!(what, What::Order(_))) {
        return Some("a derivative of any order");
    }
    if request.sparse {
        return Some("a sparse result");
    }
    if request.of.is_some() {
        return Some("a choice of results");
    }
    if request.by.iter().flatten().any(|name| name.contains('[')) {
        return Some("a derivative by single elements");
    }
    mode(&request.strategy).is_none().then_some("a strategy of accumulation")
}

/// Returns the mode of derivatives of array programs for `strategy`.
fn mode(strategy: &str) -> Option<Mode> {
    match strategy {
        "auto" => Some(Mode::Auto),
        "forward" => Some(Mode::Forward),
        "reverse" => Some(Mode::Reverse),
        _ => None,
    }
}

/// Returns the number of doubles of the entries that `names` select; an element counts 1, judged by its brackets.
fn n_doubles(entries: &[(Name, Type)], names: Option<&[String]>) -> f64 {
    let of = |ty: &Type| leaves(ty, "").iter().map(Leaf::n_elements).sum::<f64>();
    match names {
        None => entries.iter().map(|(_, ty)| of(ty)).sum(),
        Some(names) => {
            let one = |name: &String| entries.iter().find(|(known, _)| **known == **name).map_or(1.0, |(_, ty)| of(ty));
            names.iter().map(one).sum()
        }
    }
}

impl Derivation {
    /// Returns whether loops are kept for this request, regardless of the decision on the function: they have
    /// checkpoints, or straight-line code would write too many elements one by one.
    pub(super) fn keeps_loops(&self) -> bool {
        let Body::Array(body) = &self.function.body else { return false };
        if body.unroll != Unroll::Auto || needs_straight_line_code(self).is_some() {
            return false;
        }
        let signature = self.function.signature();
        let columns = || n_doubles(&signature.params, self.by.as_deref());
        let elements = |what: &What| match what {
            What::Jacobian => n_doubles(&signature.results, None) * columns(),
            What::Hessian => columns() * columns(),
            _ => 0.0,
        };
        self.checkpoints.is_some() || self.what.iter().map(elements).sum::<f64>() > MAX_ELEMENTS as f64
    }

    /// Returns the request as array programs take it.
    fn request(&self) -> Request {
        let parts = self.what.iter().filter_map(|what| match what {
            What::Value => Some(Part::Value),
            What::Jacobian => Some(Part::Jacobian),
            What::Gradient => Some(Part::Gradient),
            What::Hessian => Some(Part::Hessian),
            What::HessianDiagonal => Some(Part::HessianDiagonal),
            What::Jvp => Some(Part::Jvp),
            What::Hvp => Some(Part::Hvp),
            What::Vjp => Some(Part::Vjp),
            What::Order(_) => None,
        });
        let by = self.by.iter().flatten().map(|name| Name::new(name)).collect();
        let mode = mode(&self.strategy).unwrap_or_default();
        Request { parts: parts.collect(), by, mode, checkpoints: self.checkpoints }
    }

    /// Returns whether this request needs straight-line code.
    pub(crate) fn needs_straight_line_code(&self) -> bool {
        needs_straight_line_code(self).is_some()
    }

    /// Returns a Jacobian or a gradient as a request on array programs; `None` for other requests.
    pub(crate) fn first_derivative(&self) -> Option<Request> {
        matches!(self.what.as_slice(), [What::Jacobian | What::Gradient]).then(|| self.request())
    }

    /// Returns errors of the request that the program's types determine: the same for kept and unrolled loops, and
    /// before anything is derived. Elements and leaves of arguments, and selections of results, are looked up in
    /// straight-line code.
    pub(super) fn check(&self) -> Result<()> {
        let Body::Array(body) = &self.function.body else { return Ok(()) };
        let names_parts = self.by.iter().flatten().any(|name| name.contains(['[', '.']));
        if names_parts || self.of.is_some() || self.what.iter().any(|what| matches!(what, What::Order(_))) {
            return Ok(());
        }
        check_request(&body.function, &self.request()).map_err(|d| Error::program(d, &body.sources))
    }

    pub(super) fn derive_array(&self, body: &ArrayBody) -> Result<Derived> {
        if let Some(wanted) = needs_straight_line_code(self) {
            let unrolled = match body.unroll {
                Unroll::Never => {
                    Err(Error::request("they are not to be unrolled", "allow it: leave out `--unroll never`"))
                }
                Unroll::Auto | Unroll::Always => self.function.unrolled(&[]),
            };
            let function = unrolled.map_err(|error| {
                let name = self.function.name();
                let title = format!("{wanted} is made for straight-line code only, and `{name}` keeps its loops");
                let limitation = Diagnostic::limitation(title);
                match error {
                    Error::Request { message: why, help } => {
                        Error::lone(limitation.with_reason(why).with_help(format!("to unroll the loops, {help}")))
                    }
                    // The reason why it cannot be unrolled follows, with its location.
                    Error::Program { diagnostics: why, sources } => {
                        let mut all = Diagnostics::from(limitation.with_reason("they cannot be unrolled"));
                        all.extend(why);
                        Error::program(all, &sources)
                    }
                    other => other,
                }
            })?;
            return Self { function, ..self.clone() }.explain();
        }
        let request = self.request();
        let differentiated = match body.semantics {
            Semantics::Algebraic => without_squared_roots(&body.function),
            Semantics::Strict => Cow::Borrowed(&body.function),
        };
        let (function, made_again) =
            derive_told(&differentiated, &request).map_err(|d| Error::program(d, &body.sources))?;
        let derived = Function::from_derived(function, body, made_again);
        let derived = if self.checkpoints.is_some() { derived.unroll(Unroll::Never) } else { derived };
        Ok(Derived { by_rows_where: by_rows_where(&body.function, &request), ..Derived::itself(&derived) })
    }
}
