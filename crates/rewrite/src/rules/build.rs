//! Rules for `build`.

use super::get::{is_cheap, kept_cost, needed};
use super::mask::{condition_in, condition_of_result, is_zero, mask};
use super::solve::solve;
use super::{On, Rule};
use crate::cost;
use crate::rebuild::{Env, Rebuild, Slice};
use chainrule_ir::{Block, Expr, Size, Type, VarId};
use chainrule_ops::Semantics;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "same-array",
        law: "build n (fun i -> a[i]) = a",
        when: "a has n elements",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Build,
        apply: same,
    },
    Rule {
        name: "same-literal",
        law: "[a[0], a[1]] = a",
        when: "a has no other elements, and they are arrays",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Array,
        apply: same_elements,
    },
    Rule {
        name: "build-zero",
        law: "build n (fun i -> 0) = 0",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Build,
        apply: zero,
    },
    Rule {
        name: "build-one",
        law: "build 1 f = [f 0]",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Build,
        apply: one,
    },
    Rule {
        name: "build-in-mask",
        law: "build n (fun i -> [c] f i) = [c] (build n f)",
        when: "c does not depend on i",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Build,
        apply: into_mask,
    },
    Rule {
        name: "build-one-hot",
        law: "build n (fun i -> [i == e] f i) = oneHot e (f e)",
        when: "e does not depend on i and is in range",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Build,
        apply: one_hot,
    },
    Rule {
        name: "split-build",
        law: "build n (fun i -> (f i, g i)) = zip (build n f) (build n g)",
        when: "f and g share no more than a few calls",
        holds_under: Semantics::Strict,
        split: true,
        on: On::Build,
        apply: split,
    },
];

/// Maximum shared cost of an element's fields that are computed in separate loops. It admits the few calls of a dual
/// number, whose values several directions share once they are split. Loops that share costly work are merged at the
/// end.
const SHARED: f64 = 30.0;

fn same(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Build { index, body, .. } = expr else { return None };
    let Some(Expr::Get { array, index: at, .. }) = rb.bound_in(body, body.result) else { return None };
    // An array of that type has n elements: any index of the loop is in range.
    let fits = at == index && rb.ty(*array) == ty && rb.bound_in(body, *array).is_none();
    fits.then_some(*array)
}

fn same_elements(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Expr::Array(elements), Type::Array(_, element)) = (expr, ty) else { return None };
    if !matches!(**element, Type::Array(..)) {
        return None;
    }
    let mut places = (0..).zip(elements).map(|(place, element)| match rb.def(*element).as_deref() {
        Some(Expr::Get { array, index, .. }) if rb.size_of(*index).as_constant() == Some(place) => Some(*array),
        _ => None,
    });
    let array = places.next()??;
    (places.all(|other| other == Some(array)) && rb.ty(array) == ty).then_some(array)
}

fn zero(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Build { body, .. } = expr else { return None };
    (ty.is_linear() && is_zero(rb, body.result)).then(|| rb.zero(ty))
}

fn one(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Build { size, index, body } = expr else { return None };
    if size.as_constant() != Some(1) {
        return None;
    }
    let zero = rb.int(Size::zero());
    let element = rb.inline(body, body.result, &mut Env::copying(&[(*index, zero)]));
    Some(rb.emit(Expr::Array(vec![element]), ty.clone()))
}

fn into_mask(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Build { size, index, body } = expr else { return None };
    let condition = condition_in(rb, body, body.result)?;
    if !ty.is_linear() || condition == *index || rb.bound_in(body, condition).is_some() {
        return None;
    }
    // The condition is known inside, so the mask is its content.
    Some(mask(rb, condition, ty, |rb| {
        rb.build(size.clone(), |rb, i| rb.inline(body, body.result, &mut Env::copying(&[(*index, i)])))
    }))
}

fn one_hot(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Build { size, index, body } = expr else { return None };
    if !ty.is_linear() {
        return None;
    }
    let condition = condition_of_result(rb, body)?;
    let hot = solve(rb, body, &[*index], *index, condition)?;
    if !rb.ranges.in_range(&hot, size) {
        return None;
    }
    let hot = rb.int(hot);
    let value = rb.inline(body, body.result, &mut Env::copying(&[(*index, hot)]));
    Some(rb.emit(Expr::OneHot { index: hot, value, proved: true }, ty.clone()))
}

/// A build, or a build of builds and so on, of tuples.
pub(super) struct Nest<'e> {
    levels: Vec<(&'e Size, VarId, &'e Block)>,
    fields: &'e [VarId],
    element: &'e Type,
}

pub(super) fn nest<'e>(rb: &Rebuild<'_>, expr: &'e Expr, ty: &'e Type) -> Option<Nest<'e>> {
    let (mut levels, mut build, mut ty) = (Vec::new(), expr, ty);
    while let (Expr::Build { size, index, body }, Type::Array(_, element)) = (build, ty) {
        levels.push((size, *index, body));
        (build, ty) = (rb.bound_in(body, body.result)?, element);
    }
    match build {
        Expr::Tuple(fields) => Some(Nest { levels, fields, element: ty }),
        _ => None,
    }
}

impl Nest<'_> {
    fn kept(&self, rb: &Rebuild<'_>, wanted: VarId) -> Vec<Slice> {
        let bodies: Vec<&Block> = self.levels.iter().map(|(_, _, body)| *body).collect();
        needed(rb, &bodies, wanted)
    }

    /// Returns the cost of an element of `wanted`, and of the whole array without storing it.
    fn cost(&self, rb: &Rebuild<'_>, wanted: VarId) -> (f64, f64) {
        let (mut element, mut all) = (0.0, 0.0);
        for ((size, _, body), kept) in self.levels.iter().zip(self.kept(rb, wanted)).rev() {
            let here = kept_cost(rb, body, &kept);
            element += here;
            all = cost::estimate(size) * (here + all);
        }
        (element, all)
    }

    /// Writes the array of `wanted`, from level `at` on.
    fn array(&self, rb: &mut Rebuild<'_>, wanted: VarId, kept: &[Slice], at: usize, env: &mut Env<'static>) -> VarId {
        let Some((size, index, body)) = self.levels.get(at) else { return env.get(wanted) };
        let size = rb.rename_size(size, env);
        rb.build(size, |rb, i| {
            env.insert(*index, i);
            rb.inline_kept(body, &kept[at], env);
            self.array(rb, wanted, kept, at + 1, env)
        })
    }

    /// Returns the fields, if the sizes of the arrays, whose type is `ty`, are known outside of `around`.
    pub(super) fn fields_outside(&self, around: &Block, ty: &Type) -> Option<&[VarId]> {
        let mut ty = ty;
        for (level, _, _) in &self.levels {
            let Type::Array(size, element) = ty else { return None };
            if size != *level || size.vars().iter().any(|var| around.stmts.iter().any(|stmt| stmt.var == *var)) {
                return None;
            }
            ty = element;
        }
        Some(self.fields)
    }

    /// Writes the array of `wanted`, an element made in the block `around`, with the statements of it that are needed.
    pub(super) fn array_in(
        &self,
        rb: &mut Rebuild<'_>,
        around: &Block,
        wanted: VarId,
        env: &mut Env<'static>,
    ) -> VarId {
        let bodies: Vec<&Block> = std::iter::once(around).chain(self.levels.iter().map(|(_, _, body)| *body)).collect();
        let kept = needed(rb, &bodies, wanted);
        rb.inline_kept(around, &kept[0], env);
        self.array(rb, wanted, &kept[1..], 0, env)
    }

    /// Writes the array of tuples of the elements of `arrays`.
    pub(super) fn zipped(&self, rb: &mut Rebuild<'_>, arrays: &[VarId]) -> VarId {
        rb.mode.zipping = true;
        let zip = self.zip(rb, arrays, 0, &mut Env::copying(&[]));
        rb.mode.zipping = false;
        zip
    }

    /// Writes the array of tuples of the elements of `arrays`, from level `at` on.
    fn zip(&self, rb: &mut Rebuild<'_>, arrays: &[VarId], at: usize, env: &mut Env<'static>) -> VarId {
        let Some((size, index, _)) = self.levels.get(at) else { return rb.tuple(arrays.to_vec(), self.element) };
        let size = rb.rename_size(size, env);
        rb.build(size, |rb, i| {
            env.insert(*index, i);
            let rows: Vec<VarId> =
                (arrays.iter()).map(|array| rb.compute(Expr::Get { array: *array, index: i, proved: true })).collect();
            self.zip(rb, &rows, at + 1, env)
        })
    }
}

fn split(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    if rb.mode.zipping {
        return None;
    }
    let nest = nest(rb, expr, ty)?;
    let costs: Vec<(f64, f64)> = nest.fields.iter().map(|field| nest.cost(rb, *field)).collect();
    // A cheap field is computed at its uses: it needs no array.
    let (_, _, last) = nest.levels.last()?;
    if nest.fields.iter().zip(&costs).all(|(field, (element, _))| is_cheap(rb, *element, &[last], *field)) {
        return None;
    }
    let (apart, together) = (costs.iter().map(|(_, all)| all).sum::<f64>(), nest.cost(rb, last.result).1);
    let elements: f64 = nest.levels.iter().map(|(size, _, _)| cost::estimate(size)).product();
    if apart - together > SHARED * elements {
        return None;
    }
    let arrays: Vec<VarId> = (nest.fields.iter())
        .map(|field| {
            let kept = nest.kept(rb, *field);
            nest.array(rb, *field, &kept, 0, &mut Env::copying(&[]))
        })
        .collect();
    Some(nest.zipped(rb, &arrays))
}
