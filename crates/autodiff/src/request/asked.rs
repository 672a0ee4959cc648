//! Construction of the function for a [`Request`](crate::Request): `Jvp`s along one-hot directions (algorithm 1 of the
//! paper) and `Vjp`s against one-hot cotangents.
//!
//! Forward mode computes one column at a time, so a Jacobian is transposed at the end.

use crate::dual::{self, Half};
use crate::emit::Emitter;
use crate::request::{COTANGENT, Mode, Part, direction_name, param_name};
use chainrule_base::Name;
use chainrule_ir::rows::{self, Way};
use chainrule_ir::{Block, Builder, Expr, Function, Renaming, Size, Type, VarId};
use chainrule_ops::Op;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Variables of a differentiation.
pub(crate) enum By {
    /// Parameter, or nested component of one, that is not a tuple itself.
    Leaf(Leaf),
    /// Several variables, with the names of the fields.
    Fields(Vec<Self>, Option<Arc<[Name]>>),
}

pub(crate) struct Leaf {
    pub(crate) param: VarId,
    /// Indices of components, outermost first.
    pub(crate) path: Vec<usize>,
    pub(crate) ty: Type,
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

/// Step into a value.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Index(VarId),
    Field(usize),
}

/// Inputs of the computation of requested parts.
struct Wanted<'a> {
    function: &'a Function,
    parts: &'a [Part],
    params: &'a [VarId],
    by: &'a By,
    along: &'a [VarId],
    cotangent: Option<VarId>,
    leading: &'a [usize],
}

pub(crate) struct Asked {
    pub(crate) out: Emitter,
    mode: Mode,
    /// Type of the function's result.
    result: Type,
    /// Variables over which sizes may be compared: sizes and parameters.
    entry: BTreeSet<VarId>,
}

impl Asked {
    pub(crate) fn new(function: &Function, mode: Mode) -> Self {
        let out = Emitter::new(Builder::rewriting(function));
        let entry = function.sizes.iter().chain(&function.params).copied().collect();
        Self { out, mode, result: function.result_type().clone(), entry }
    }

    /// Returns the function that computes `parts` by `params`; the derivatives in it are not expanded. `leading` is the
    /// result of [`crate::sparse::leading`], for the diagonal of a Hessian.
    pub(crate) fn derived(
        mut self,
        function: &Function,
        parts: &[Part],
        params: &[VarId],
        leading: &[usize],
    ) -> Function {
        let result = self.parts(function, parts, params, leading);
        self.out.finish(result)
    }

    fn parts(&mut self, function: &Function, parts: &[Part], params: &[VarId], leading: &[usize]) -> VarId {
        let mut along: Vec<VarId> = Vec::new();
        if parts.iter().any(|part| part.wants_direction()) {
            for param in params {
                let name = direction_name(function, *param);
                along.push(self.out.builder.param(&name, function.ty(*param).clone()));
            }
        }
        let cotangent = match self.result.tangent() {
            Some(ty) if parts.contains(&Part::Vjp) => Some(self.out.builder.param(COTANGENT, ty)),
            _ => None,
        };
        let by = match params {
            [param] => By::new(*param, &mut Vec::new(), function.ty(*param)),
            _ => By::Fields(
                params.iter().map(|param| By::new(*param, &mut Vec::new(), function.ty(*param))).collect(),
                Some(params.iter().map(|param| param_name(function, *param)).collect()),
            ),
        };
        let result = self.result.clone();
        let all = Wanted { function, parts, params, by: &by, along: &along, cotangent, leading };
        // The other parts of a non-scalar result do not depend on the mode.
        if parts.contains(&Part::Jacobian) {
            self.by_the_cheaper(params, &result, &mut |asked, by_rows| asked.computed(&all, by_rows))
        } else {
            let by_rows = self.way(params, &result) == Way::Rows;
            self.computed(&all, by_rows)
        }
    }

    /// Computes the parts, in the requested order.
    fn computed(&mut self, all: &Wanted<'_>, by_rows: bool) -> VarId {
        let Wanted { function, parts, params, by, along, cotangent, leading } = *all;
        let (body, result) = (&function.body, self.result.clone());
        let scalar = result == Type::Double;
        let slopes = parts.iter().any(|part| matches!(part, Part::Gradient | Part::Jacobian));
        // The value is computed together with a derivative: a directional derivative; the full derivative by one
        // scalar; or a derivative against a cotangent, which for a scalar result is the gradient.
        let slope = slopes && !by_rows && matches!(by, By::Leaf(leaf) if leaf.ty == Type::Double);
        let dual = if parts.contains(&Part::Jvp) {
            Some(self.jvp(body, params, params, along))
        } else if slope {
            let one = self.out.real(1.0);
            Some(self.jvp(body, params, params, &[one]))
        } else {
            None
        };
        let slope = slope && !parts.contains(&Part::Jvp);
        let gradient = (slopes && scalar && by_rows).then(|| {
            let one = self.out.real(1.0);
            self.vjp(body, params, params, one)
        });
        let pulled = cotangent.map(|cotangent| self.vjp(body, params, params, cotangent));
        let results: Vec<VarId> = parts
            .iter()
            .map(|part| match (part, dual, gradient.or(pulled)) {
                (Part::Value, Some(dual), _) => dual::half(&mut self.out, dual, &result, Half::Value),
                (Part::Value, None, Some(whole)) => self.out.component(whole, 0),
                (Part::Value, None, None) => self.inline(body, &mut Renaming::new()),
                (Part::Jvp, Some(dual), _) => dual::half(&mut self.out, dual, &result, Half::Tangent),
                (Part::Jvp, None, _) => self.inline(body, &mut Renaming::new()),
                (Part::Vjp, _, _) => match pulled {
                    Some(whole) => self.cotangents(function, params, whole),
                    None => self.inline(body, &mut Renaming::new()),
                },
                (Part::Gradient | Part::Jacobian, _, _) if gradient.is_some() => match gradient {
                    Some(whole) => self.cotangents(function, params, whole),
                    None => self.inline(body, &mut Renaming::new()),
                },
                (Part::Gradient | Part::Jacobian, Some(dual), _) if slope => {
                    dual::half(&mut self.out, dual, &result, Half::Tangent)
                }
                (Part::Gradient | Part::Jacobian, _, _) if by_rows => self.rows(function, params, by, &result),
                (Part::Gradient | Part::Jacobian, _, _) => self.jacobian(body, &result, by),
                (Part::Hessian, _, _) => self.hessian(body, by, by, by_rows),
                (Part::HessianDiagonal, _, _) => self.diagonal(body, by, by_rows, leading),
                (Part::Hvp, _, _) if by_rows => {
                    let slope = self.detached(|asked| {
                        let one = asked.out.real(1.0);
                        let whole = asked.vjp(body, params, params, one);
                        asked.cotangents(function, params, whole)
                    });
                    let ty = self.out.ty(slope.result).clone();
                    let dual = self.jvp(&slope, params, params, along);
                    dual::half(&mut self.out, dual, &ty, Half::Tangent)
                }
                (Part::Hvp, _, _) => {
                    let slope = self.detached(|asked| {
                        let dual = asked.jvp(body, params, params, along);
                        asked.out.component(dual, 1)
                    });
                    self.jacobian(&slope, &Type::Double, by)
                }
            })
            .collect();
        match results.as_slice() {
            [one] => *one,
            _ => self.out.builder.record(parts.iter().map(|part| Name::new(part.name())).collect(), &results),
        }
    }

    /// Selects the mode for derivatives of a result of type `result` by `params`.
    pub(crate) fn way(&self, params: &[VarId], result: &Type) -> Way {
        let inputs = params.iter().fold(Size::zero(), |sum, param| sum.add(&doubles(self.out.ty(*param))));
        match self.mode {
            Mode::Forward => Way::Columns,
            Mode::Reverse => Way::Rows,
            Mode::Auto => match rows::cheaper(&inputs, &doubles(result)) {
                Way::RowsWhereLess(a, b) if !self.at_entry(&a) || !self.at_entry(&b) => Way::Columns,
                way => way,
            },
        }
    }

    fn at_entry(&self, size: &Size) -> bool {
        size.vars().iter().all(|var| self.entry.contains(var))
    }

    /// Calls `made` by rows or by columns, whichever is cheaper; emits both under a condition if that depends on sizes.
    pub(crate) fn by_the_cheaper(
        &mut self,
        params: &[VarId],
        result: &Type,
        made: &mut dyn FnMut(&mut Self, bool) -> VarId,
    ) -> VarId {
        let sides = match self.way(params, result) {
            Way::Columns => return made(self, false),
            Way::Rows => return made(self, true),
            Way::RowsWhereLess(less, more) => [less, more].map(|size| self.out.builder.size(size)),
        };
        let condition = self.out.builder.op(Op::Lt, &sides);
        let then = self.detached(|asked| made(asked, true));
        let otherwise = self.detached(|asked| made(asked, false));
        self.out.builder.compute(Expr::If { condition, then, otherwise })
    }

    /// Returns the value of `body` and the cotangents of `params` at `at`.
    pub(crate) fn vjp(&mut self, body: &Block, params: &[VarId], at: &[VarId], cotangent: VarId) -> VarId {
        let inner: Vec<VarId> =
            params.iter().map(|param| self.out.fresh_like(self.out.ty(*param).clone(), *param, "")).collect();
        let mut renaming: Renaming = params.iter().copied().zip(inner.iter().copied()).collect();
        let block = self.detached(|asked| asked.inline(body, &mut renaming));
        self.out.builder.compute(Expr::Vjp { params: inner, body: block, at: at.to_vec(), cotangent })
    }

    /// Returns the cotangents in `whole`, a result of [`Self::vjp`]: bare for one parameter, a record for several.
    fn cotangents(&mut self, function: &Function, params: &[VarId], whole: VarId) -> VarId {
        let parts: Vec<VarId> = (1..=params.len()).map(|k| self.out.component(whole, k)).collect();
        match parts.as_slice() {
            [one] => *one,
            _ => self.out.builder.record(params.iter().map(|param| param_name(function, *param)).collect(), &parts),
        }
    }

    /// Computes the Jacobian by `params`, which are `by`, of a result of type `ty`, one row at a time.
    fn rows(&mut self, function: &Function, params: &[VarId], by: &By, ty: &Type) -> VarId {
        let Some(outer) = ty.tangent() else { return self.inline(&function.body, &mut Renaming::new()) };
        let rows = self.shaped(&outer, &mut Vec::new(), &mut |asked, steps| {
            let cotangent = asked.hot(&outer, steps);
            let whole = asked.vjp(&function.body, params, params, cotangent);
            asked.cotangents(function, params, whole)
        });
        self.fieldwise(rows, &outer, by, &mut Vec::new())
    }

    /// Splits rows (shaped as `outer`, each double shaped as `by`) by fields: the result is shaped as `by`, and each
    /// leaf as `outer` with each double replaced by the leaf.
    fn fieldwise(&mut self, rows: VarId, outer: &Type, by: &By, fields: &mut Vec<Step>) -> VarId {
        match by {
            By::Leaf(_) if fields.is_empty() => rows,
            By::Leaf(_) => self.shaped(outer, &mut Vec::new(), &mut |asked, steps| {
                let row = asked.at(rows, steps);
                asked.at(row, fields)
            }),
            By::Fields(parts, names) => {
                let mut found = Vec::with_capacity(parts.len());
                for (k, part) in parts.iter().enumerate() {
                    fields.push(Step::Field(k));
                    found.push(self.fieldwise(rows, outer, part, fields));
                    fields.pop();
                }
                match names {
                    Some(names) => self.out.builder.record(names.clone(), &found),
                    None => self.out.builder.tuple(&found),
                }
            }
        }
    }

    /// Emits a value of the linear type `ty` that is 1 at `steps` and 0 elsewhere.
    pub(crate) fn hot(&mut self, ty: &Type, steps: &[Step]) -> VarId {
        match (ty, steps) {
            (Type::Array(_, element), [Step::Index(index), rest @ ..]) => {
                let value = self.hot(element, rest);
                self.out.builder.emit(Expr::OneHot { index: *index, value, proved: true }, ty.clone())
            }
            (Type::Tuple(fields, _), [Step::Field(place), rest @ ..]) => {
                let part = |asked: &mut Self, k: usize, field: &Type| {
                    if k == *place { asked.hot(field, rest) } else { asked.out.builder.zero(field.clone()) }
                };
                let parts = fields.iter().enumerate().map(|(k, field)| part(self, k, field)).collect();
                self.out.tuple(parts, ty.clone())
            }
            _ => self.out.real(1.0),
        }
    }

    /// Emits the access to the part of `value` at `steps`.
    pub(crate) fn at(&mut self, value: VarId, steps: &[Step]) -> VarId {
        steps.iter().fold(value, |value, step| match step {
            Step::Index(index) => self.out.element(value, *index),
            Step::Field(k) => self.out.component(value, *k),
        })
    }

    /// Computes the gradient of `body`, of type `Double`, by `leaf`, in reverse mode. The rest of the parameter is
    /// constant.
    fn slope(&mut self, body: &Block, leaf: &Leaf) -> VarId {
        let at = leaf.path.iter().fold(leaf.param, |tuple, k| self.out.component(tuple, *k));
        let inner = self.out.fresh_like(leaf.ty.clone(), at, "");
        let block = self.detached(|asked| {
            let param = asked.replaced(leaf.param, &leaf.path, inner);
            asked.inline(body, &mut Renaming::from_iter([(leaf.param, param)]))
        });
        let cotangent = self.out.real(1.0);
        let whole = self.out.builder.compute(Expr::Vjp { params: vec![inner], body: block, at: vec![at], cotangent });
        self.out.component(whole, 1)
    }

    fn inline(&mut self, body: &Block, renaming: &mut Renaming) -> VarId {
        self.out.builder.inline(body, renaming)
    }

    /// Builds a block outside of the function, for inlining.
    pub(crate) fn detached(&mut self, body: impl FnOnce(&mut Self) -> VarId) -> Block {
        self.out.open();
        let result = body(self);
        self.out.close(result)
    }

    /// Returns the dual number of `body`, differentiated by `params`, at `at` along `along`.
    fn jvp(&mut self, body: &Block, params: &[VarId], at: &[VarId], along: &[VarId]) -> VarId {
        let inner: Vec<VarId> =
            params.iter().map(|param| self.out.fresh_like(self.out.ty(*param).clone(), *param, "")).collect();
        let mut renaming: Renaming = params.iter().copied().zip(inner.iter().copied()).collect();
        let block = self.detached(|asked| asked.inline(body, &mut renaming));
        self.out.builder.compute(Expr::Jvp { params: inner, body: block, at: at.to_vec(), along: along.to_vec() })
    }

    /// Returns the tangent of `body`, of type `ty`, by `leaf` along `along`. The rest of the parameter is constant.
    pub(crate) fn tangent(&mut self, body: &Block, ty: &Type, leaf: &Leaf, along: VarId) -> VarId {
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

    /// Returns `tuple` with the component at `path` replaced by `by`.
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

    /// Computes the Jacobian of `body`, of type `ty`.
    pub(crate) fn jacobian(&mut self, body: &Block, ty: &Type, by: &By) -> VarId {
        self.fields(by, &mut |asked, leaf| {
            let columns = asked.columns(body, ty, leaf, &leaf.ty, &mut Vec::new());
            let (Some(outer), Some(inner)) = (ty.tangent(), leaf.ty.tangent()) else { return columns };
            if outer == Type::Double || inner == Type::Double {
                return columns;
            }
            asked.transposed(columns, &outer, &inner, &mut Vec::new())
        })
    }

    /// Computes the Hessian of `body`, of type `Double`: the Jacobian by `by` of the gradient by `rows`.
    pub(crate) fn hessian(&mut self, body: &Block, rows: &By, by: &By, by_rows: bool) -> VarId {
        self.fields(rows, &mut |asked, row| {
            let gradient = asked.gradient(body, row, by_rows);
            let ty = row.ty.tangent().unwrap_or(Type::Double);
            asked.jacobian(&gradient, &ty, by)
        })
    }

    /// Returns the gradient of `body`, of type `Double`, by `leaf`, as a block outside of the function.
    pub(crate) fn gradient(&mut self, body: &Block, leaf: &Leaf, by_rows: bool) -> Block {
        self.detached(|asked| match by_rows {
            true => asked.slope(body, leaf),
            false => asked.columns(body, &Type::Double, leaf, &leaf.ty, &mut Vec::new()),
        })
    }

    /// Applies `one` to each leaf of `by`.
    pub(crate) fn fields(&mut self, by: &By, one: &mut dyn FnMut(&mut Self, &Leaf) -> VarId) -> VarId {
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

    /// Computes, for each double of `leaf`, which has type `rest` below `steps`, the tangent of `body` along it.
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

    /// Emits a `ty` that is 1 at `steps`, if `so_far` holds, and 0 elsewhere.
    pub(crate) fn one_hot(&mut self, ty: &Type, steps: &[Step], so_far: Option<VarId>) -> VarId {
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

    pub(crate) fn zero(&mut self, ty: &Type) -> VarId {
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

    /// Transposes columns (shaped as `inner`, each double as `outer`) to rows (shaped as `outer`, each double as
    /// `inner`).
    fn transposed(&mut self, columns: VarId, outer: &Type, inner: &Type, row: &mut Vec<Step>) -> VarId {
        self.shaped(outer, row, &mut |asked, row| {
            asked.shaped(inner, &mut Vec::new(), &mut |asked, column| {
                let steps: Vec<Step> = column.iter().chain(row.iter()).copied().collect();
                asked.at(columns, &steps)
            })
        })
    }

    /// Builds a value like `ty`; `leaf` returns each double from the steps to it.
    pub(crate) fn shaped(
        &mut self,
        ty: &Type,
        steps: &mut Vec<Step>,
        leaf: &mut dyn FnMut(&mut Self, &[Step]) -> VarId,
    ) -> VarId {
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

    pub(crate) fn array(&mut self, size: &Size, element: &mut dyn FnMut(&mut Self, VarId) -> VarId) -> VarId {
        let index = self.out.builder.fresh(Type::Int);
        let body = self.detached(|asked| element(asked, index));
        self.out.builder.compute(Expr::Build { size: size.clone(), index, body })
    }
}

/// Returns the number of doubles in a value of type `ty`.
pub(crate) fn doubles(ty: &Type) -> Size {
    match ty {
        Type::Double => Size::constant(1),
        Type::Int | Type::Bool => Size::zero(),
        Type::Array(size, element) => size.mul(&doubles(element)),
        Type::Tuple(fields, _) => fields.iter().fold(Size::zero(), |sum, field| sum.add(&doubles(field))),
    }
}
