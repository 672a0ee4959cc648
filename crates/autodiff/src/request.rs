//! Derivatives asked for from outside: a function that computes what a person or a program wants.
//!
//! In: a function, and a [`Request`]: which parts, by which parameters. Out: a function of the same
//! parameters (and the directions, for products) that computes the parts in one call, without
//! [`Expr::Jvp`]. One part stands bare; several make a record whose fields have the parts' names.
//!
//! Shapes, where `p` is a parameter and `r` the result:
//!
//! | part | is |
//! | --- | --- |
//! | `value` | `r` |
//! | `gradient` | for a scalar `r`: as `p`, its integers and truth values left out |
//! | `jacobian` | output by input: as `r`, each double in it replaced by a gradient: `j[o][i]` = ∂r\[o\]/∂p\[i\] |
//! | `jvp` | as `r`: the derivative along the direction |
//! | `hessian` | the Jacobian of the gradient: `h[i][j]` = ∂²r/∂p\[i\]∂p\[j\] |
//! | `hvp` | as `p`: the Hessian times the direction |
//!
//! With several parameters, a gradient, Jacobian or `hvp` is a record with a field for each, and a Hessian a
//! record of such records: `h.x.y[i][j]` = ∂²r/∂x\[i\]∂y\[j\]. A parameter that is a tuple or record is taken
//! for several in the same way. The direction by `x` is a further parameter of its type, `x_tan`.
//!
//! Built from `Jvp` along one-hot directions (algorithm 1 of the paper, see [`crate::forward`]), then
//! expanded. Forward mode makes a column at a time, so a Jacobian is transposed at the end; the Jacobian of
//! `n` inputs costs about `n` functions with tangents, the Hessian `n²`.

use crate::dual::{self, Half};
use crate::emit::Emitter;
use crate::forward;
use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_ir::{Block, Builder, Expr, Function, Renaming, Type, VarId, named_type};
use chainrule_ops::Op;
use std::sync::Arc;

/// One thing to compute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// The function's value.
    Value,
    /// The gradient of a scalar function.
    Gradient,
    /// The Jacobian.
    Jacobian,
    /// The derivative along a direction.
    Jvp,
    /// The matrix of second derivatives of a scalar function.
    Hessian,
    /// The Hessian times a direction.
    Hvp,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 6] = [Self::Value, Self::Gradient, Self::Jacobian, Self::Jvp, Self::Hessian, Self::Hvp];

    /// Its name: the field of the result.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Gradient => "gradient",
            Self::Jacobian => "jacobian",
            Self::Jvp => "jvp",
            Self::Hessian => "hessian",
            Self::Hvp => "hvp",
        }
    }

    /// The part of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    fn wants_scalar(self) -> bool {
        matches!(self, Self::Gradient | Self::Hessian | Self::Hvp)
    }

    fn wants_direction(self) -> bool {
        matches!(self, Self::Jvp | Self::Hvp)
    }
}

/// What to compute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The parts, in the order of the result's fields. A part named twice counts once.
    pub parts: Vec<Part>,
    /// The parameters to differentiate by, in the order of the fields; none for all that have a `Double`.
    pub by: Vec<Name>,
}

/// The function that computes `request` of `function`, called `<name>_<part>_<part>...`.
///
/// # Errors
/// A parameter that is not there, is named twice, or has no `Double`; a result that is not a scalar where a
/// gradient, a Hessian or `hvp` is asked for, or has no `Double` at all; nothing asked for; a parameter
/// that has the name of a direction.
pub fn derive(function: &Function, request: &Request) -> Result<Function, Diagnostics> {
    let mut parts: Vec<Part> = Vec::new();
    for part in &request.parts {
        if !parts.contains(part) {
            parts.push(*part);
        }
    }
    let by = check(function, &parts, &request.by)?;
    let mut asked = Asked { out: Emitter::new(Builder::rewriting(function)), result: function.result_type().clone() };
    let result = asked.parts(function, &parts, &by);
    let mut derived = asked.out.finish(result);
    let suffix: String = parts.iter().map(|part| format!("_{}", part.name())).collect();
    derived.name = Name::from(format!("{}{suffix}", function.name));
    forward::expand(&derived)
}

/// The parameters to differentiate by.
fn check(function: &Function, parts: &[Part], by: &[Name]) -> Result<Vec<VarId>, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let name = &function.name;
    if parts.is_empty() {
        diagnostics.push(
            Diagnostic::error(format!("nothing is asked for of `{name}`"))
                .with_help("ask for value, gradient, jacobian, jvp, hessian or hvp"),
        );
    }
    let mut found = Vec::new();
    let real = |param: VarId| function.ty(param).has_double();
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
    if by.is_empty() {
        found.extend(function.params.iter().copied().filter(|param| real(*param)));
    }
    let differentiates = parts.iter().any(|part| *part != Part::Value);
    if differentiates && by.is_empty() && found.is_empty() {
        diagnostics.push(
            Diagnostic::error(format!("`{name}` has nothing to differentiate by"))
                .with_reason("no Double occurs in its parameters"),
        );
    }
    let result = function.result_type();
    if differentiates && !result.has_double() {
        diagnostics.push(Diagnostic::error(format!("the result of `{name}` cannot be differentiated")).with_reason(
            format!("it is of type {}, in which no Double occurs", type_text(function, function.body.result)),
        ));
    } else if *result != Type::Double {
        for part in parts.iter().filter(|part| part.wants_scalar()) {
            let help = match part {
                Part::Gradient => "ask for the jacobian, or make the result a scalar",
                _ => "differentiate one component of the result, or make the result a scalar",
            };
            diagnostics.push(
                Diagnostic::error(format!("`{name}` has no {}", part.name()))
                    .with_reason(format!(
                        "that is for a result of type Double, and this one is of type {}",
                        type_text(function, function.body.result)
                    ))
                    .with_help(help),
            );
        }
    }
    if parts.iter().any(|part| part.wants_direction()) {
        for param in &found {
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
    diagnostics.into_result(found)
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

fn param_name(function: &Function, param: VarId) -> Name {
    function.vars[param].name.clone().unwrap_or_else(|| Name::from(param.to_string()))
}

fn direction_name(function: &Function, param: VarId) -> Name {
    Name::from(format!("{}_tan", param_name(function, param)))
}

fn list(function: &Function, which: impl Fn(VarId) -> bool) -> String {
    let names: Vec<String> = (function.params.iter().filter(|param| which(**param)))
        .map(|param| format!("`{}`", param_name(function, *param)))
        .collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What is differentiated by.
enum By {
    /// A parameter, or a component of components of one, that is no tuple itself.
    Leaf(Leaf),
    /// Several, and the names of the fields.
    Fields(Vec<Self>, Option<Arc<[Name]>>),
}

struct Leaf {
    param: VarId,
    /// Components, outermost first.
    path: Vec<usize>,
    ty: Type,
}

impl By {
    fn new(param: VarId, path: &mut Vec<usize>, ty: &Type) -> Self {
        let Type::Tuple(fields, names) = ty else {
            return Self::Leaf(Leaf { param, path: path.clone(), ty: ty.clone() });
        };
        let mut inner = Vec::new();
        let mut kept: Vec<Name> = Vec::new();
        for (k, field) in fields.iter().enumerate() {
            if field.has_double() {
                path.push(k);
                inner.push(Self::new(param, path, field));
                path.pop();
                kept.extend(names.as_ref().and_then(|names| names.get(k).cloned()));
            }
        }
        Self::Fields(inner, names.as_ref().map(|_| kept.into()))
    }
}

/// A step into a value.
#[derive(Clone, Copy)]
enum Step {
    Index(VarId),
    Field(usize),
}

struct Asked {
    out: Emitter,
    /// The type of the function's result.
    result: Type,
}

impl Asked {
    fn parts(&mut self, function: &Function, parts: &[Part], params: &[VarId]) -> VarId {
        let mut along: Vec<VarId> = Vec::new();
        if parts.iter().any(|part| part.wants_direction()) {
            for param in params {
                let name = direction_name(function, *param);
                along.push(self.out.builder.param(&name, function.ty(*param).clone()));
            }
        }
        let by = match params {
            [param] => By::new(*param, &mut Vec::new(), function.ty(*param)),
            _ => By::Fields(
                params.iter().map(|param| By::new(*param, &mut Vec::new(), function.ty(*param))).collect(),
                Some(params.iter().map(|param| param_name(function, *param)).collect()),
            ),
        };
        let (body, result) = (&function.body, self.result.clone());
        // The value comes with the derivative along a direction; by one scalar, that is all of the derivative.
        let slope = !parts.contains(&Part::Jvp)
            && parts.iter().any(|part| matches!(part, Part::Gradient | Part::Jacobian))
            && matches!(&by, By::Leaf(leaf) if leaf.ty == Type::Double);
        let dual = if slope {
            let one = self.out.real(1.0);
            Some(self.jvp(body, params, params, &[one]))
        } else {
            parts.contains(&Part::Jvp).then(|| self.jvp(body, params, params, &along))
        };
        let results: Vec<VarId> = parts
            .iter()
            .map(|part| match (part, dual) {
                (Part::Value, Some(dual)) => dual::half(&mut self.out, dual, &result, Half::Value),
                (Part::Jvp, Some(dual)) => dual::half(&mut self.out, dual, &result, Half::Tangent),
                (Part::Value | Part::Jvp, None) => self.inline(body, &mut Renaming::new()),
                (Part::Gradient | Part::Jacobian, Some(dual)) if slope => {
                    dual::half(&mut self.out, dual, &result, Half::Tangent)
                }
                (Part::Gradient | Part::Jacobian, _) => self.jacobian(body, &result, &by),
                (Part::Hessian, _) => self.hessian(body, &by, &by),
                (Part::Hvp, _) => {
                    let slope = self.detached(|asked| {
                        let dual = asked.jvp(body, params, params, &along);
                        asked.out.component(dual, 1)
                    });
                    self.jacobian(&slope, &Type::Double, &by)
                }
            })
            .collect();
        match results.as_slice() {
            [one] => *one,
            _ => self.out.builder.record(parts.iter().map(|part| Name::new(part.name())).collect(), &results),
        }
    }

    fn inline(&mut self, body: &Block, renaming: &mut Renaming) -> VarId {
        self.out.builder.inline(body, renaming)
    }

    /// A block that is not placed anywhere, to be inlined.
    fn detached(&mut self, body: impl FnOnce(&mut Self) -> VarId) -> Block {
        self.out.open();
        let result = body(self);
        self.out.close(result)
    }

    /// The dual number of `body`, differentiated by `params`, at `at` along `along`.
    fn jvp(&mut self, body: &Block, params: &[VarId], at: &[VarId], along: &[VarId]) -> VarId {
        let inner: Vec<VarId> =
            params.iter().map(|param| self.out.fresh_like(self.out.ty(*param).clone(), *param, "")).collect();
        let mut renaming: Renaming = params.iter().copied().zip(inner.iter().copied()).collect();
        let block = self.detached(|asked| asked.inline(body, &mut renaming));
        self.out.builder.compute(Expr::Jvp { params: inner, body: block, at: at.to_vec(), along: along.to_vec() })
    }

    /// The tangent of `body`, of type `ty`, by `leaf` along `along`. The rest of the parameter is held.
    fn tangent(&mut self, body: &Block, ty: &Type, leaf: &Leaf, along: VarId) -> VarId {
        let at = leaf.path.iter().fold(leaf.param, |tuple, k| self.out.component(tuple, *k));
        let inner = self.out.fresh_like(leaf.ty.clone(), at, "");
        let block = self.detached(|asked| {
            let param = asked.replaced(leaf.param, &leaf.path, inner);
            asked.inline(body, &mut Renaming::from_iter([(leaf.param, param)]))
        });
        let jvp = Expr::Jvp { params: vec![inner], body: block, at: vec![at], along: vec![along] };
        let dual = self.out.builder.compute(jvp);
        dual::half(&mut self.out, dual, ty, Half::Tangent)
    }

    /// `tuple` with the component at `path` replaced by `by`.
    fn replaced(&mut self, tuple: VarId, path: &[usize], by: VarId) -> VarId {
        let Some((place, rest)) = path.split_first() else { return by };
        let ty = self.out.ty(tuple).clone();
        let n_fields = if let Type::Tuple(fields, _) = &ty { fields.len() } else { 0 };
        let mut parts = Vec::with_capacity(n_fields);
        for k in 0..n_fields {
            let part = self.out.component(tuple, k);
            parts.push(if k == *place { self.replaced(part, rest, by) } else { part });
        }
        self.out.tuple(parts, ty)
    }

    /// The Jacobian of `body`, of type `ty`.
    fn jacobian(&mut self, body: &Block, ty: &Type, by: &By) -> VarId {
        self.fields(by, &mut |asked, leaf| {
            let columns = asked.columns(body, ty, leaf, &leaf.ty, &mut Vec::new());
            let (Some(outer), Some(inner)) = (ty.tangent(), leaf.ty.tangent()) else { return columns };
            if outer == Type::Double || inner == Type::Double {
                return columns;
            }
            asked.transposed(columns, &outer, &inner, &mut Vec::new())
        })
    }

    /// The Hessian of `body`, of type `Double`: the Jacobian by `by` of the gradient by `rows`.
    fn hessian(&mut self, body: &Block, rows: &By, by: &By) -> VarId {
        self.fields(rows, &mut |asked, row| {
            let gradient = asked.detached(|asked| asked.columns(body, &Type::Double, row, &row.ty, &mut Vec::new()));
            let ty = row.ty.tangent().unwrap_or(Type::Double);
            asked.jacobian(&gradient, &ty, by)
        })
    }

    /// `one` for each leaf of `by`.
    fn fields(&mut self, by: &By, one: &mut dyn FnMut(&mut Self, &Leaf) -> VarId) -> VarId {
        let (fields, names) = match by {
            By::Leaf(leaf) => return one(self, leaf),
            By::Fields(fields, names) => (fields, names),
        };
        let parts: Vec<VarId> = fields.iter().map(|field| self.fields(field, one)).collect();
        match names {
            Some(names) => self.out.builder.record(names.clone(), &parts),
            None => self.out.builder.tuple(&parts),
        }
    }

    /// For each double of `leaf`, which is of type `rest` below `steps`, the tangent of `body` along it.
    fn columns(&mut self, body: &Block, ty: &Type, leaf: &Leaf, rest: &Type, steps: &mut Vec<Step>) -> VarId {
        match rest {
            Type::Array(size, element) => {
                let index = self.out.builder.fresh(Type::Int);
                let block = self.detached(|asked| {
                    steps.push(Step::Index(index));
                    let column = asked.columns(body, ty, leaf, element, steps);
                    steps.pop();
                    column
                });
                self.out.builder.compute(Expr::Build { size: size.clone(), index, body: block })
            }
            Type::Tuple(fields, names) => {
                let (mut parts, mut kept): (Vec<VarId>, Vec<Name>) = Default::default();
                for (k, field) in fields.iter().enumerate().filter(|(_, field)| field.has_double()) {
                    steps.push(Step::Field(k));
                    parts.push(self.columns(body, ty, leaf, field, steps));
                    steps.pop();
                    kept.extend(names.as_ref().and_then(|names| names.get(k).cloned()));
                }
                match names {
                    Some(_) => self.out.builder.record(kept.into(), &parts),
                    None => self.out.builder.tuple(&parts),
                }
            }
            Type::Double | Type::Int | Type::Bool => {
                let along = self.one_hot(&leaf.ty, steps, None);
                self.tangent(body, ty, leaf, along)
            }
        }
    }

    /// A `ty` that is 1 at `steps`, where `so_far` holds, and 0 elsewhere.
    fn one_hot(&mut self, ty: &Type, steps: &[Step], so_far: Option<VarId>) -> VarId {
        match (ty, steps) {
            (Type::Array(size, element), [Step::Index(i), rest @ ..]) => self.array(size, &mut |asked, j| {
                let here = asked.out.builder.op(Op::Eq, &[j, *i]);
                let here = match so_far {
                    Some(so_far) => asked.out.builder.op(Op::And, &[so_far, here]),
                    None => here,
                };
                asked.one_hot(element, rest, Some(here))
            }),
            (Type::Tuple(fields, _), [Step::Field(place), rest @ ..]) => {
                let parts = (fields.iter().enumerate())
                    .map(|(k, field)| if k == *place { self.one_hot(field, rest, so_far) } else { self.zero(field) })
                    .collect();
                self.out.tuple(parts, ty.clone())
            }
            _ => {
                let one = self.out.real(1.0);
                match so_far {
                    Some(here) => {
                        let zero = self.out.real(0.0);
                        self.out.builder.op(Op::Select, &[here, one, zero])
                    }
                    None => one,
                }
            }
        }
    }

    fn zero(&mut self, ty: &Type) -> VarId {
        match ty {
            Type::Double => self.out.real(0.0),
            Type::Int => self.out.builder.int(0),
            Type::Bool => self.out.builder.bool(false),
            Type::Array(size, element) => self.array(size, &mut |asked, _| asked.zero(element)),
            Type::Tuple(fields, _) => {
                let parts = fields.iter().map(|field| self.zero(field)).collect();
                self.out.tuple(parts, ty.clone())
            }
        }
    }

    /// Columns (as `inner`, each double as `outer`) as rows (as `outer`, each double as `inner`).
    fn transposed(&mut self, columns: VarId, outer: &Type, inner: &Type, row: &mut Vec<Step>) -> VarId {
        self.shaped(outer, row, &mut |asked, row| {
            asked.shaped(inner, &mut Vec::new(), &mut |asked, column| {
                column.iter().chain(row.iter()).fold(columns, |value, step| match step {
                    Step::Index(index) => asked.out.get(value, *index, true),
                    Step::Field(k) => asked.out.component(value, *k),
                })
            })
        })
    }

    /// A value like `ty`, each double replaced by what `leaf` makes of the steps to it.
    fn shaped(&mut self, ty: &Type, steps: &mut Vec<Step>, leaf: &mut dyn FnMut(&mut Self, &[Step]) -> VarId) -> VarId {
        match ty {
            Type::Array(size, element) => self.array(size, &mut |asked, index| {
                steps.push(Step::Index(index));
                let part = asked.shaped(element, steps, leaf);
                steps.pop();
                part
            }),
            Type::Tuple(fields, names) => {
                let mut parts = Vec::with_capacity(fields.len());
                for (k, field) in fields.iter().enumerate() {
                    steps.push(Step::Field(k));
                    parts.push(self.shaped(field, steps, leaf));
                    steps.pop();
                }
                match names {
                    Some(names) => self.out.builder.record(names.clone(), &parts),
                    None => self.out.builder.tuple(&parts),
                }
            }
            Type::Double | Type::Int | Type::Bool => leaf(self, steps),
        }
    }

    fn array(&mut self, size: &chainrule_ir::Size, element: &mut dyn FnMut(&mut Self, VarId) -> VarId) -> VarId {
        let index = self.out.builder.fresh(Type::Int);
        let body = self.detached(|asked| element(asked, index));
        self.out.builder.compute(Expr::Build { size: size.clone(), index, body })
    }
}
