//! Derivatives of array programs, by forward or reverse mode on the array IR.

use super::{Derivation, Derived, What};
use crate::function::ArrayBody;
use crate::{Error, Function, Result};
use chainrule_autodiff::{Mode, Part, Request, by_rows_where, derive_told};
use chainrule_base::{Diagnostic, Diagnostics, Name};

/// What array programs have no derivative of yet, but straight-line code has.
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

/// Which way `strategy` makes derivatives of array programs.
fn mode(strategy: &str) -> Option<Mode> {
    match strategy {
        "auto" => Some(Mode::Auto),
        "forward" => Some(Mode::Forward),
        "reverse" => Some(Mode::Reverse),
        _ => None,
    }
}

impl Derivation {
    pub(super) fn derive_array(&self, body: &ArrayBody) -> Result<Derived> {
        if let Some(wanted) = needs_straight_line_code(self) {
            let function = self.function.unrolled(&[]).map_err(|error| {
                let name = self.function.name();
                let title = format!("{wanted} is made for straight-line code only, and `{name}` keeps its loops");
                let limitation = Diagnostic::limitation(title);
                match error {
                    Error::Request { message: why, help } => {
                        Error::lone(limitation.with_reason(why).with_help(format!("to unroll the loops, {help}")))
                    }
                    // Why it cannot be unrolled stands below, with its place.
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
        let request = Request { parts: parts.collect(), by, mode, checkpoints: self.checkpoints };
        let (function, made_again) =
            derive_told(&body.function, &request).map_err(|d| Error::program(d, &body.sources))?;
        let derived = Function::from_derived(function, body, made_again);
        Ok(Derived { by_rows_where: by_rows_where(&body.function, &request), ..Derived::itself(&derived) })
    }
}
