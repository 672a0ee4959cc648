//! Derivatives of array programs, by forward or reverse mode on the array IR.

use super::select::{Chosen, choose, is_part};
use super::{Derivation, Derived, What};
use crate::function::{ArrayBody, Body};
use crate::passes::{DIFFERENTIATE, REGIONS};
use crate::straight::{First, Times};
use crate::{Error, Function, Result, Unroll};
use chainrule_accumulate::{GraphPasses, Optimise};
use chainrule_autodiff::orders::derive_orders;
use chainrule_autodiff::{
    Mode, Part, Request, by_rows_where, check_request, derive_told, parts, without_products_of_roots,
};
use chainrule_base::{Diagnostic, Diagnostics, Name, timing};
use chainrule_graph::Semantics;
use chainrule_ir::{self as ir, Type};
use chainrule_rewrite::hoisted;
use chainrule_scalarise::leaves::leaves;
use chainrule_scalarise::pays::MAX_ELEMENTS;
use chainrule_scalarise::regions::accumulate_by;
use std::borrow::Cow;

/// Returns the mode of derivatives of array programs for `strategy`.
fn mode(strategy: &str) -> Option<Mode> {
    match strategy {
        "auto" => Some(Mode::Auto),
        "forward" => Some(Mode::Forward),
        "reverse" => Some(Mode::Reverse),
        _ => None,
    }
}

/// Returns the number of doubles in values of these types, and the number of their leaves.
fn n_doubles<'t>(types: impl IntoIterator<Item = &'t Type>) -> (f64, f64) {
    let leaves = types.into_iter().flat_map(|ty| leaves(ty, ""));
    leaves.fold((0.0, 0.0), |(n, n_leaves), leaf| (n + leaf.n_elements(), n_leaves + 1.0))
}

/// Minimum mean number of elements of a derivative by one leaf that loops are kept for: without arrays, an array
/// program writes the elements one by one too.
const MIN_ELEMENTS_OF_LEAVES: f64 = 8.0;

/// Program whose derivative is the requested one.
pub(crate) struct Shifted<'f> {
    /// The program, with a shift of each part of an argument as a further argument.
    pub(crate) function: Cow<'f, ir::Function>,
    /// Arguments to differentiate by.
    pub(crate) by: Vec<Name>,
    /// Number of shifts, which follow the arguments of the program.
    pub(crate) n_shifts: usize,
}

impl Shifted<'_> {
    /// Returns a derivative at shifts of zero.
    fn at_zero(&self, derived: ir::Function) -> ir::Function {
        match self.n_shifts {
            0 => derived,
            n => parts::at_zero(&derived, self.function.params.len() - n, n),
        }
    }
}

/// Maximum order of derivatives. Those of array programs grow exponentially with it.
const MAX_ORDER: usize = 30;

impl Derivation {
    /// Returns why loops are kept for this request, regardless of the decision on the function: they have checkpoints,
    /// or straight-line code would write too many elements one by one.
    pub(super) fn why_loops_are_kept(&self) -> Option<&'static str> {
        let Body::Array(body) = &self.function.body else { return None };
        if body.unroll != Unroll::Auto || self.sparse {
            return None;
        }
        if self.checkpoints.is_some() {
            return Some("they have checkpoints");
        }
        let signature = self.function.signature();
        let columns = || {
            let chosen = choose(&signature.params, self.by.as_deref(), self.function.name(), "argument");
            chosen.map_or((0.0, 0.0), |chosen| n_doubles(chosen.iter().map(|chosen| &chosen.ty)))
        };
        let elements = |what: &What| {
            let rows = match what {
                What::Part(Part::Jacobian) => n_doubles(signature.results.iter().map(|(_, ty)| ty)),
                What::Part(Part::Hessian) => columns(),
                _ => return 0.0,
            };
            let (n, n_leaves) = (rows.0 * columns().0, rows.1 * columns().1);
            if n < MIN_ELEMENTS_OF_LEAVES * n_leaves { 0.0 } else { n }
        };
        (self.what.iter().map(elements).sum::<f64>() > MAX_ELEMENTS as f64)
            .then_some("the derivative has too many elements to write each by itself")
    }

    /// Returns whether loops of the request may take less time than straight-line code. Hessians and higher derivatives
    /// in loops compute the zeros of their blocks too.
    fn may_have_fast_loops(&self) -> bool {
        let is_first = |what: &What| {
            matches!(
                what,
                What::Part(Part::Value | Part::Jacobian | Part::Gradient | Part::Jvp | Part::Vjp | Part::Hvp)
            )
        };
        self.what.iter().all(is_first)
            && self.strategy == "auto"
            && !self.sparse
            && self.optimise != Optimise::Off
            && self.graph_passes == GraphPasses::default()
    }

    /// Returns the form to differentiate for this request.
    pub(super) fn form(&self) -> Result<&Function> {
        let function = &self.function;
        // The decision on the function itself was made for its value.
        if !self.differentiates() {
            return function.decided();
        }
        let straight = function.to_differentiate()?;
        let is_loops = self.may_have_fast_loops() && function.form_of_first_derivatives() == First::Loops;
        Ok(if is_loops { function } else { straight })
    }

    /// Returns the same request with its loops, if they take clearly less time than `straight`, by the estimated times
    /// of both kernels.
    pub(super) fn with_faster_loops(&self, straight: &Function) -> Option<Derived> {
        let Body::Array(body) = &self.function.body else { return None };
        let is_compared = self.differentiates()
            && self.may_have_fast_loops()
            && self.function.form_of_first_derivatives() == First::Faster;
        if !is_compared {
            return None;
        }
        // Straight-line code works without loops, whatever is the reason why these cannot be derived.
        let derived = self.derive_array(body).ok()?;
        let faster = Times::of(&derived.function, straight)?.fast_loops()?;
        Some(Derived { function: derived.function.with_fast_loops(straight.clone(), faster), ..derived })
    }

    /// Returns the program to differentiate: `program` itself, or with shifts if parts of arguments are requested.
    pub(crate) fn shifted<'f>(&self, program: &'f ir::Function) -> Result<Shifted<'f>> {
        let names = self.by.as_deref().unwrap_or_default();
        let as_is = || names.iter().map(|name| Name::new(name)).collect();
        if !names.iter().any(|name| is_part(name)) {
            return Ok(Shifted { function: Cow::Borrowed(program), by: as_is(), n_shifts: 0 });
        }
        let (params, name) = (&self.function.signature().params, self.function.name());
        let chosen = choose(params, Some(names), name, "argument")?;
        let mut shifts = Vec::new();
        for Chosen { part, ty } in chosen.iter().filter(|chosen| !chosen.part.steps.is_empty()) {
            if !ty.has_double() {
                return Err(Error::request(
                    format!("`{name}` cannot be differentiated by `{}`", part.text),
                    "it contains no Double: choose another part",
                ));
            }
            if params.iter().any(|(param, _)| *param == part.name) {
                return Err(Error::request(
                    format!("`{name}` has an argument `{}` already", part.name),
                    format!("that is the name of `{}` in results: give the argument another name", part.text),
                ));
            }
            shifts.push(part.clone());
        }
        let by = chosen.iter().map(|chosen| chosen.part.name.clone()).collect();
        let function = Cow::Owned(parts::with_shifts(program, &shifts));
        Ok(Shifted { function, by, n_shifts: shifts.len() })
    }

    /// Returns the request as array programs take it, without derivatives of any order.
    fn request(&self, by: &[Name]) -> Request {
        let parts = self.what.iter().filter_map(|what| what.part()).collect();
        let mode = mode(&self.strategy).unwrap_or_default();
        Request { parts, by: by.to_vec(), mode, checkpoints: self.checkpoints }
    }

    /// Returns a Jacobian or a gradient as a request on array programs; `None` for other requests.
    pub(crate) fn first_derivative(&self, by: &[Name]) -> Option<Request> {
        matches!(self.what.as_slice(), [What::Part(Part::Jacobian | Part::Gradient)]).then(|| self.request(by))
    }

    /// Returns errors of the request that the program's types determine: the same for kept and unrolled loops, and
    /// before anything is derived.
    pub(crate) fn check(&self) -> Result<()> {
        chainrule_search::strategy(&self.strategy).map_err(Error::lone)?;
        if let Some(order) = self.what.iter().filter_map(|what| what.order()).find(|order| *order > MAX_ORDER) {
            let title = format!("derivatives of order {order} of `{}` are too long", self.function.name());
            let limitation = Diagnostic::limitation(title).with_reason(format!("the highest order is {MAX_ORDER}"));
            return Err(Error::lone(limitation.with_help("request a lower order")));
        }
        let Body::Array(body) = &self.function.body else { return Ok(()) };
        let shifted = self.shifted(&body.function)?;
        let mut request = self.request(&shifted.by);
        if self.what.iter().any(|what| matches!(what, What::Order(_))) && !request.parts.contains(&Part::Jacobian) {
            request.parts.push(Part::Jacobian);
        }
        check_request(&shifted.function, &request).map_err(|d| Error::program(d, &body.sources))
    }

    /// Derives a sparse result of a function that keeps its loops: of its straight-line code, if it can be unrolled.
    fn derive_sparse(&self, body: &ArrayBody) -> Result<Derived> {
        let unrolled = match body.unroll {
            Unroll::Never => Err(Error::request("they are not to be unrolled", "leave out `--unroll never`")),
            Unroll::Auto | Unroll::Always => self.function.unrolled(&[]),
        };
        let function = unrolled.map_err(|error| {
            let title = format!(
                "`{}` keeps its loops, so that its sparse derivative is no single function",
                self.function.name()
            );
            let limitation = Diagnostic::limitation(title);
            match error {
                Error::Request { message: why, help: _ } => Error::lone(
                    limitation.with_reason(why).with_help("compile it with `matrix`, which finds the pattern first"),
                ),
                // The reason why it cannot be unrolled follows, with its location.
                Error::Program { diagnostics: why, sources } => {
                    let mut all = Diagnostics::from(limitation.with_reason("they cannot be unrolled"));
                    all.extend(why);
                    Error::program(all, &sources)
                }
                other => other,
            }
        })?;
        let derived = Self { function, ..self.clone() }.explain()?;
        Ok(Derived { form: Some("loops are unrolled: the sparse derivative is one function".into()), ..derived })
    }

    pub(super) fn derive_array(&self, body: &ArrayBody) -> Result<Derived> {
        if self.sparse {
            return self.derive_sparse(body);
        }
        if !self.differentiates() && self.by.is_none() && self.checkpoints.is_none() {
            return Ok(Derived::itself(&self.function.renamed(&self.derived_name())));
        }
        let strategy = chainrule_search::strategy(&self.strategy).map_err(Error::lone)?;
        let accumulated = match (mode(&self.strategy), body.semantics) {
            (None, Semantics::Algebraic) => {
                Cow::Owned(timing::time(REGIONS, || accumulate_by(body.function.clone(), strategy)))
            }
            _ => Cow::Borrowed(&body.function),
        };
        let without_roots = match body.semantics {
            Semantics::Algebraic => without_products_of_roots(&accumulated),
            Semantics::Strict => Cow::Borrowed(&*accumulated),
        };
        let differentiated = match body.semantics {
            Semantics::Algebraic => hoisted(&without_roots),
            Semantics::Strict => Cow::Borrowed(&*without_roots),
        };
        let shifted = self.shifted(&differentiated)?;
        let request = self.request(&shifted.by);
        let orders: Vec<Option<usize>> = self.what.iter().map(|what| what.order()).collect();
        let made = timing::time(DIFFERENTIATE, || match orders.iter().any(Option::is_some) {
            false => derive_told(&shifted.function, &request),
            true => derive_orders(&shifted.function, &request, &orders),
        });
        let (function, made_again) = made.map_err(|d| Error::program(d, &body.sources))?;
        let derived = Function::from_derived(shifted.at_zero(function), body, made_again);
        let derived = if self.checkpoints.is_some() { derived.unroll(Unroll::Never) } else { derived };
        Ok(Derived { by_rows_where: by_rows_where(&shifted.function, &request), ..Derived::itself(&derived) })
    }
}
