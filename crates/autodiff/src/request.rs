//! Requests for derivatives: a function that computes the derivatives that a user or a program needs.
//!
//! In: a function, and a [`Request`]: parts and parameters. Out: a function with the same parameters (and the
//! directions, for products) that computes the parts in one call; the derivatives in it are not expanded. A single part
//! is the bare result; several parts form a record whose fields have the parts' names.
//!
//! Shapes, for a parameter `p` and the result `r`:
//!
//! | part | is |
//! | --- | --- |
//! | `value` | `r` |
//! | `gradient` | for a scalar `r`: as `p`, without integers and truth values |
//! | `jacobian` | output by input: as `r`, each double in it replaced by a gradient: `j[o][i]` = ∂r\[o\]/∂p\[i\] |
//! | `jvp` | as `r`: the derivative along the direction |
//! | `hessian` | the Jacobian of the gradient: `h[i][j]` = ∂²r/∂p\[i\]∂p\[j\] |
//! | `hessian_diagonal` | as `p`: `d[i]` = ∂²r/∂p\[i\]² |
//! | `hvp` | as `p`: the Hessian times the direction |
//! | `vjp` | as `p`: the cotangent of `p` for the cotangent of `r` |
//!
//! With several parameters, a gradient, Jacobian, diagonal or `hvp` is a record with a field for each, and a Hessian a
//! record of such records: `h.x.y[i][j]` = ∂²r/∂x\[i\]∂y\[j\]. A parameter that is a tuple or record is treated like
//! several parameters. The direction by `x` is a further parameter of its type, `x_tan`.
//!
//! The cotangent of the result is a further parameter, `result_adj`: as `r`, without integers and truth values.
//!
//! Forward mode computes one column of a Jacobian at a time, reverse mode one row; [`Mode`] selects one. A gradient by
//! reverse mode costs a few times the function, a Hessian the same for each input, `hvp` once. The diagonal of a
//! Hessian costs as many `hvp`s as there are doubles in one of its blocks if the index structure shows that it is block
//! diagonal (one for a sum of terms of one number each), else one for each input.

pub(crate) mod asked;
pub(crate) mod diagonal;
pub mod orders;

use crate::asked::Asked;
use crate::reverse::MadeAgain;
use crate::{forward, sparse};
use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_ir::rows::Way;
use chainrule_ir::value::named;
use chainrule_ir::{Function, Size, Type, VarId, named_type};

/// Quantity to compute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// Value of the function.
    Value,
    /// Gradient of a scalar function.
    Gradient,
    /// Jacobian.
    Jacobian,
    /// Derivative along a direction.
    Jvp,
    /// Matrix of second derivatives of a scalar function.
    Hessian,
    /// Second derivatives of a scalar function by each input twice.
    HessianDiagonal,
    /// Hessian times a direction.
    Hvp,
    /// Derivative against a cotangent.
    Vjp,
}

/// Mode of differentiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// The cheaper mode: reverse mode if there are more than twice as many inputs as results, forward mode otherwise.
    /// If the choice for a Jacobian depends on sizes, both are generated, and the sizes of a call select one; see
    /// [`rows`](chainrule_ir::rows).
    #[default]
    Auto,
    /// Forward mode. A `vjp` uses reverse mode nevertheless.
    Forward,
    /// Reverse mode. A `jvp` uses forward mode nevertheless.
    Reverse,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 8] = [
        Self::Value,
        Self::Gradient,
        Self::Jacobian,
        Self::Jvp,
        Self::Hessian,
        Self::HessianDiagonal,
        Self::Hvp,
        Self::Vjp,
    ];

    /// Returns its name: the field of the result.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Gradient => "gradient",
            Self::Jacobian => "jacobian",
            Self::Jvp => "jvp",
            Self::Hessian => "hessian",
            Self::HessianDiagonal => "hessian_diagonal",
            Self::Hvp => "hvp",
            Self::Vjp => "vjp",
        }
    }

    /// Returns the part with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    fn wants_scalar(self) -> bool {
        matches!(self, Self::Gradient | Self::Hessian | Self::HessianDiagonal | Self::Hvp)
    }

    pub(crate) fn wants_direction(self) -> bool {
        matches!(self, Self::Jvp | Self::Hvp)
    }
}

/// Name of the parameter for the cotangent of the result.
pub(crate) const COTANGENT: &str = "result_adj";

/// Request for derivatives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// Parts, in the order of the result's fields. A part named twice counts once.
    pub parts: Vec<Part>,
    /// Differentiation parameters, in the order of the fields; empty for all that contain a `Double`.
    pub by: Vec<Name>,
    /// Mode of differentiation.
    pub mode: Mode,
    /// Maximum number of states of a loop that reverse mode keeps in memory, at least one; the others are recomputed.
    /// With `None`, all are kept, except of loops whose number of steps is unknown at entry ([`MadeAgain`]).
    pub checkpoints: Option<u32>,
}

/// Returns the function that computes `request` of `function`, with the name `<name>_<part>_<part>...`.
///
/// # Errors
/// Fails for a parameter that does not exist, is named twice, or has no `Double`; a result that is not a scalar for a
/// gradient, a Hessian or `hvp`, or has no `Double` at all; an empty request; a parameter with the name of a direction.
pub fn derive(function: &Function, request: &Request) -> Result<Function, Diagnostics> {
    derive_told(function, request).map(|(derived, _)| derived)
}

/// Does the same as [`derive()`], and returns the loops that got checkpoints although none were requested.
///
/// # Errors
/// The errors of [`derive()`].
pub fn derive_told(function: &Function, request: &Request) -> Result<(Function, Vec<MadeAgain>), Diagnostics> {
    let mut parts: Vec<Part> = Vec::new();
    for part in &request.parts {
        if !parts.contains(part) {
            parts.push(*part);
        }
    }
    let by = check(function, &parts, &request.by)?;
    let leading = if parts.contains(&Part::HessianDiagonal) { sparse::leading(function, &by) } else { Vec::new() };
    let mut derived = Asked::new(function, request.mode).derived(function, &parts, &by, &leading);
    let suffix: String = parts.iter().map(|part| format!("_{}", part.name())).collect();
    derived.name = Name::from(format!("{}{suffix}", function.name));
    forward::expand_told(&derived, request.checkpoints)
}

/// Returns the condition under which the Jacobian in `request` of `function` is computed by rows, as text for users
/// (`2*m < n`), if the derived function contains both ways and sizes decide.
#[must_use]
pub fn by_rows_where(function: &Function, request: &Request) -> Option<String> {
    let by = check(function, &request.parts, &request.by).ok()?;
    let way = Asked::new(function, request.mode).way(&by, function.result_type());
    let Way::RowsWhereLess(less, more) = way else { return None };
    let name = |size: &Size| named(size, &function.vars);
    request.parts.contains(&Part::Jacobian).then(|| format!("{} < {}", name(&less), name(&more)))
}

/// Checks that the parameters of `request` exist in `function`, and that the parts match its result: all errors of
/// [`derive()`], at negligible cost.
///
/// # Errors
/// As [`derive()`].
pub fn check_request(function: &Function, request: &Request) -> Result<(), Diagnostics> {
    check(function, &request.parts, &request.by).map(|_| ())
}

/// Returns the differentiation parameters.
pub(crate) fn check(function: &Function, parts: &[Part], by: &[Name]) -> Result<Vec<VarId>, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let name = &function.name;
    if parts.is_empty() {
        diagnostics.push(
            Diagnostic::error(format!("nothing is asked for of `{name}`"))
                .with_help("ask for value, gradient, jacobian, jvp, vjp, hessian, hessian_diagonal or hvp"),
        );
    }
    let found = parameters(function, by, &mut diagnostics);
    if parts.iter().any(|part| *part != Part::Value) {
        if by.is_empty() && found.is_empty() {
            diagnostics.push(
                Diagnostic::error(format!("`{name}` has nothing to differentiate by"))
                    .with_reason("no Double occurs in its parameters"),
            );
        }
        check_result(function, parts, &mut diagnostics);
    }
    if parts.contains(&Part::Vjp) {
        check_cotangent(function, &mut diagnostics);
    }
    if parts.iter().any(|part| part.wants_direction()) {
        check_directions(function, &found, &mut diagnostics);
    }
    diagnostics.into_result(found)
}

/// Returns the parameters named in `by`; all that have a tangent if none is named.
fn parameters(function: &Function, by: &[Name], diagnostics: &mut Diagnostics) -> Vec<VarId> {
    let name = &function.name;
    let real = |param: VarId| function.ty(param).has_double();
    if by.is_empty() {
        return function.params.iter().copied().filter(|param| real(*param)).collect();
    }
    let mut found = Vec::new();
    for wanted in by {
        match function.params.iter().find(|param| function.vars[**param].name.as_ref() == Some(wanted)) {
            None => diagnostics.push(
                Diagnostic::error(format!("`{name}` has no parameter `{wanted}`"))
                    .with_help(format!("its parameters are {}", list(function, |_| true))),
            ),
            Some(param) if !real(*param) => diagnostics.push(
                labelled(
                    function,
                    *param,
                    Diagnostic::error(format!("`{name}` cannot be differentiated by `{wanted}`")),
                )
                .with_reason(format!("it is of type {}, in which no Double occurs", type_text(function, *param)))
                .with_help(format!("parameters to differentiate by are {}", list(function, real))),
            ),
            Some(param) if found.contains(param) => {
                diagnostics.push(Diagnostic::error(format!("the parameter `{wanted}` is named twice")));
            }
            Some(param) => found.push(*param),
        }
    }
    found
}

/// Checks that the result has the derivatives `parts`.
fn check_result(function: &Function, parts: &[Part], diagnostics: &mut Diagnostics) {
    let (name, result) = (&function.name, function.result_type());
    let result_text = || type_text(function, function.body.result);
    if !result.has_double() {
        diagnostics.push(
            Diagnostic::error(format!("the result of `{name}` cannot be differentiated"))
                .with_reason(format!("it is of type {}, in which no Double occurs", result_text())),
        );
        return;
    }
    for part in parts.iter().filter(|part| part.wants_scalar() && *result != Type::Double) {
        let help = match part {
            Part::Gradient => "ask for the jacobian, or make the result a scalar",
            _ => "differentiate one component of the result, or make the result a scalar",
        };
        diagnostics.push(
            Diagnostic::error(format!("`{name}` has no {}", part.name()))
                .with_reason(format!("that is for a result of type Double, and this one is of type {}", result_text()))
                .with_help(help),
        );
    }
}

/// Checks the name and the size of the cotangent of the result, a parameter of the derivative.
fn check_cotangent(function: &Function, diagnostics: &mut Diagnostics) {
    let name = &function.name;
    if function.params.iter().any(|param| function.vars[*param].name.as_deref() == Some(COTANGENT)) {
        diagnostics.push(
            Diagnostic::error(format!("`{name}` has a parameter `{COTANGENT}` already"))
                .with_reason("that is the name of the cotangent of the result")
                .with_help(format!("give the parameter `{COTANGENT}` another name")),
        );
    }
    let known = |var: &VarId| function.sizes.contains(var) || function.params.contains(var);
    if function.result_type().sizes().iter().flat_map(chainrule_ir::Size::vars).any(|var| !known(&var)) {
        diagnostics.push(
            Diagnostic::limitation(format!("`{name}` has no vjp"))
                .with_reason("the size of its result is computed while it runs, and so is that of a cotangent"),
        );
    }
}

/// Checks the names of the directions by `params`, which are parameters of the derivative.
fn check_directions(function: &Function, params: &[VarId], diagnostics: &mut Diagnostics) {
    let name = &function.name;
    for param in params {
        let taken = direction_name(function, *param);
        if function.params.iter().any(|other| function.vars[*other].name.as_ref() == Some(&taken)) {
            diagnostics.push(
                Diagnostic::error(format!("`{name}` has a parameter `{taken}` already"))
                    .with_reason(format!("that is the name of the direction by `{}`", param_name(function, *param)))
                    .with_help(format!("give the parameter `{taken}` another name")),
            );
        }
    }
}

fn labelled(function: &Function, var: VarId, diagnostic: Diagnostic) -> Diagnostic {
    match function.vars[var].span {
        Some(span) => diagnostic.with_label(span, type_text(function, var)),
        None => diagnostic,
    }
}

fn type_text(function: &Function, var: VarId) -> String {
    named_type(function.ty(var), &function.vars)
}

pub(crate) fn param_name(function: &Function, param: VarId) -> Name {
    function.vars[param].name.clone().unwrap_or_else(|| Name::from(param.to_string()))
}

pub(crate) fn direction_name(function: &Function, param: VarId) -> Name {
    Name::from(format!("{}_tan", param_name(function, param)))
}

fn list(function: &Function, which: impl Fn(VarId) -> bool) -> String {
    let names: Vec<String> = (function.params.iter().filter(|param| which(**param)))
        .map(|param| format!("`{}`", param_name(function, *param)))
        .collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
