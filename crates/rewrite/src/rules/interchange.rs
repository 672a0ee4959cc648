//! Loop interchange: a fold for each of several directions becomes one fold of loops over the directions, so that
//! everything common to all directions is computed once.

use super::{On, Rule};
use crate::cost;
use crate::dependence::{Dependence, Sources};
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Block, Expr, Size, StateLoop, Stmt, Type, VarId};
use chainrule_ops::Semantics;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "fold-of-builds",
    law: "build k (fun d -> ifold (fun (y, t) i -> (f y i, g d y t i)) (z, u d) n) = build k (fun d -> (y, ts[d])) \
          where (y, ts) = ifold (fun (y, ts) i -> (f y i, build k (fun d -> g d y ts[d] i))) (z, build k u) n",
    when: "for scalars y and t in arrays and tuples; f is dear, and cannot fail where k = 0, nor by t and d; \
           t is not much more than the result, or k is small; what else g needs of d is no more than that or t",
    holds_under: Semantics::Strict,
    split: true,
    on: On::Build,
    apply: fold_of_builds,
}];

/// Minimum cost of the common part of an iteration, for each number of a single direction.
const MIN_SHARED: f64 = 8.0;

/// Maximum ratio of a direction's state to its part of the result, in numbers, ...
const TIMES_RESULT: i64 = 4;
/// ... unless there are at most so many directions.
const FEW: i64 = 64;

/// Maximum number of folds of a build that are tried.
const MAX_FOLDS: usize = 16;

/// Maximum number of scalars of a state.
const MAX_LEAVES: usize = 60;

/// Source of the direction; the sources before it are scalars of the state.
const DIRECTION: u64 = 1 << 63;

/// A scalar in a type: its path in tuples, and the type of the array of all its values.
struct Leaf {
    path: Vec<usize>,
    ty: Type,
}

fn leaves(ty: &Type) -> Vec<Leaf> {
    let mut found = Vec::new();
    ty.for_each_leaf(&mut |leaf| {
        let array = |element, size: &&Size| Type::array((*size).clone(), element);
        let ty = leaf.extents.iter().rev().fold(leaf.scalar.clone(), array);
        found.push(Leaf { path: leaf.path.iter().map(|field| field.index).collect(), ty });
    });
    found
}

/// Writes the array of the scalar at `path` in `value`, of type `ty`.
fn scalars_at(rb: &mut Rebuild<'_>, value: VarId, ty: &Type, path: &[usize]) -> VarId {
    match (ty, path.split_first()) {
        (_, None) => value,
        (Type::Tuple(fields, _), Some((k, rest))) => {
            let field = rb.compute(Expr::Component(value, *k));
            scalars_at(rb, field, &fields[*k], rest)
        }
        (Type::Array(size, element), _) => rb.build(size.clone(), |rb, i| {
            let row = rb.get(value, i);
            scalars_at(rb, row, element, path)
        }),
        _ => value,
    }
}

/// Writes the value of type `ty` whose scalars are the arrays `parts`: the inverse of [`scalars_at`].
fn together(rb: &mut Rebuild<'_>, ty: &Type, parts: &mut impl Iterator<Item = VarId>) -> Option<VarId> {
    match ty {
        Type::Double | Type::Int | Type::Bool => parts.next(),
        Type::Tuple(fields, _) => {
            let fields = fields.iter().map(|field| together(rb, field, parts)).collect::<Option<Vec<_>>>()?;
            Some(rb.tuple(fields, ty))
        }
        Type::Array(size, element) => match &leaves(ty)[..] {
            [leaf] if leaf.path.is_empty() => parts.next(),
            all => {
                let arrays: Vec<VarId> = parts.take(all.len()).collect();
                let mut found = None;
                let whole = rb.build(size.clone(), |rb, i| {
                    let rows: Vec<VarId> = arrays.iter().map(|array| rb.get(*array, i)).collect();
                    found = together(rb, element, &mut rows.into_iter());
                    found.unwrap_or(i)
                });
                found.map(|_| whole)
            }
        },
    }
}

/// As [`together`], for arrays that stay separate.
fn zipped(rb: &mut Rebuild<'_>, ty: &Type, parts: &[VarId]) -> VarId {
    let before = std::mem::replace(&mut rb.mode.zipping, true);
    let whole = together(rb, ty, &mut parts.iter().copied());
    rb.mode.zipping = before;
    whole.unwrap_or(parts[0])
}

/// A fold in a build.
struct Nest<'e> {
    /// Number of directions, and the index.
    size: &'e Size,
    direction: VarId,
    body: &'e Block,
    /// Position of the fold in `body`.
    at: usize,
    count: &'e Size,
    index: VarId,
    state: VarId,
    init: VarId,
    step: &'e Block,
    ty: Type,
    leaves: Vec<Leaf>,
}

fn fold_of_builds(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Expr::Build { size, index: direction, body }, Type::Array(_, element)) = (expr, ty) else { return None };
    let folds = (0..body.stmts.len()).filter(|at| matches!(body.stmts[*at].expr, Expr::Fold(_)));
    folds.take(MAX_FOLDS).find_map(|at| {
        let Expr::Fold(StateLoop { count, index, state, init, body: step }) = &body.stmts[at].expr else { return None };
        let (direction, index, state, init, ty) = (*direction, *index, *state, *init, rb.ty(*state).clone());
        let leaves = leaves(&ty);
        let nest = Nest { size, direction, body, at, count, index, state, init, step, ty, leaves };
        let plan = nest.plan(rb, element)?;
        Some(nest.turned(rb, &plan))
    })
}

/// Scalars of a state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scalars {
    /// Those that all directions share.
    Shared,
    Unshared,
}

/// Common part of all directions.
struct Plan {
    /// Whether each scalar of the state is shared.
    shared: Vec<bool>,
    /// Variables of the build's body that the iteration uses, and whether each depends on the direction.
    around: Vec<(VarId, bool)>,
    /// Body of the build before the fold, with arbitrary values in place of those that depend on the direction.
    calm: Block,
    /// Iteration with arbitrary values in place of those that depend on the direction or on unshared parts of the
    /// state.
    step: Block,
}

/// Returns `block` with arbitrary values in place of those that depend on one of `sources` as a whole.
fn calmed(rb: &Rebuild<'_>, found: &Dependence<'_>, block: &Block, sources: u64) -> Block {
    let mut calm = block.clone();
    for stmt in &mut calm.stmts {
        let anything = match rb.ty(stmt.var) {
            Type::Double => Some(Expr::Real(0.0)),
            Type::Int => Some(Expr::Size(Size::zero())),
            Type::Bool => Some(Expr::Bool(false)),
            ty => ty.is_linear().then_some(Expr::Zero),
        };
        match anything.filter(|_| found.get(stmt.var).all_have(sources)) {
            Some(anything) => stmt.expr = anything,
            None => {
                for inner in stmt.expr.blocks_mut() {
                    *inner = calmed(rb, found, inner, sources);
                }
            }
        }
    }
    calm
}

impl Nest<'_> {
    fn is_outside(&self, rb: &Rebuild<'_>, size: &Size) -> bool {
        rb.is_outside(size, self.body, &[self.direction])
    }

    /// Returns the plan of the interchange, if it is made.
    fn plan(&self, rb: &Rebuild<'_>, element: &Type) -> Option<Plan> {
        let n = self.leaves.len();
        let sized = |ty: &Type| ty.sizes().iter().all(|size| self.is_outside(rb, size));
        if !(2..=MAX_LEAVES).contains(&n) || !rb.settings.hoist || !self.is_outside(rb, self.count) || !sized(&self.ty)
        {
            return None;
        }
        let before = &self.body.stmts[..self.at];
        let mut found = Dependence::new(&rb.vars);
        found.insert(self.direction, Sources::All(DIRECTION));
        before.iter().try_for_each(|stmt| found.stmt(stmt))?;
        let start = found.get(self.init);
        found.insert(self.state, Sources::each(&self.ty, &mut 0));
        let next = found.block(self.step)?;
        let shared = self.shared(&start, &next);
        let is_shared = |leaf: &usize| shared >> leaf & 1 == 1;
        let words = |sum: Size, ty: &Type| sum.add(&cost::size_of_words(ty));
        let own = (0..n).filter(|k| !is_shared(k)).map(|k| &self.leaves[k].ty).fold(Size::zero(), words);
        let room = cost::size_of_words(element).scale(TIMES_RESULT).add(&Size::constant(FEW));
        let is_room_for = |numbers: &Size| rb.ranges.not_negative(&room.sub(numbers));
        let pays = found.cost_without(self.step, !shared) >= MIN_SHARED * cost::estimate(&own);
        let few = self.size.as_constant().is_some_and(|k| k <= FEW);
        if shared == 0 || own.is_zero() || !pays || !(few || is_room_for(&own)) {
            return None;
        }
        // Variables of the body that the iteration, and the initial state, need.
        let mut mentioned: Vec<VarId> = Vec::new();
        walk::mentioned(&self.body.stmts[self.at].expr, &mut |var| {
            if !mentioned.contains(&var) && rb.bound_in(self.body, var).is_some() {
                mentioned.push(var);
            }
        });
        if mentioned.iter().any(|var| !sized(rb.ty(*var))) {
            return None;
        }
        // Values needed by the iteration for one direction are computed for all of them.
        let made = mentioned.iter().filter(|var| found.get(**var).any() != 0 && self.is_in_step(rb, **var));
        let made = made.map(|var| rb.ty(*var)).fold(Size::zero(), words);
        if !is_room_for(&made) && !rb.ranges.not_negative(&own.sub(&made)) {
            return None;
        }
        let mut before = self.body.clone();
        before.stmts.truncate(self.at);
        let calm = calmed(rb, &found, &before, DIRECTION);
        let step = calmed(rb, &found, self.step, !shared);
        let kept = rb.slice(&calm, &mentioned);
        // Computed with another direction, and with any state of one: that must not add a failure.
        let fails_by = |stmt: &Stmt| found.decides_failure(stmt, !shared);
        if step.stmts.iter().any(fails_by) || kept.stmts(&calm).any(fails_by) {
            return None;
        }
        // Nor if there is no direction.
        let runs = rb.ranges.not_negative(&self.size.sub(&Size::constant(1)));
        let fails = |stmt: &Stmt| rb.may_fail_outside(&stmt.expr, rb.ty(stmt.var));
        if !runs && (fails(&self.body.stmts[self.at]) || kept.stmts(&calm).any(fails)) {
            return None;
        }
        let around = mentioned.into_iter().map(|var| (var, found.get(var).any() != 0)).collect();
        Some(Plan { shared: (0..n).map(|k| is_shared(&k)).collect(), around, calm, step })
    }

    /// Returns the scalars of the state that are equal for all directions, as bits: the largest set whose initial
    /// values do not depend on the direction, and whose next values only depend on the set. `start` and `next` are
    /// their sources.
    fn shared(&self, start: &Sources, next: &Sources) -> u64 {
        let of = |sources: &Sources, k: usize| sources.at(&self.leaves[k].path).any();
        let all = 0..self.leaves.len();
        let mut shared: u64 = all.clone().filter(|k| of(start, *k) == 0).map(|k| 1 << k).sum();
        loop {
            let kept =
                all.clone().filter(|k| shared >> k & 1 == 1 && of(next, *k) & !shared == 0).map(|k| 1 << k).sum();
            if kept == shared {
                return shared;
            }
            shared = kept;
        }
    }

    fn is_in_step(&self, rb: &Rebuild<'_>, var: VarId) -> bool {
        rb.slice_mentions(self.step, &[self.step.result], var)
    }

    /// Writes the state with the scalars `shared`, and `own` for the others, in order.
    fn state(&self, rb: &mut Rebuild<'_>, plan: &Plan, shared: &[VarId], own: &[VarId]) -> VarId {
        let (mut shared, mut own) = (shared.iter(), own.iter());
        let parts = plan.shared.iter().filter_map(|is_shared| if *is_shared { shared.next() } else { own.next() });
        let parts: Vec<VarId> = parts.copied().collect();
        zipped(rb, &self.ty, &parts)
    }

    /// Returns the scalars of `state` of this kind.
    fn parts(&self, rb: &mut Rebuild<'_>, plan: &Plan, state: VarId, kind: Scalars) -> Vec<VarId> {
        let wanted = self.leaves.iter().zip(&plan.shared);
        let wanted = wanted.filter(|(_, is_shared)| **is_shared == (kind == Scalars::Shared));
        wanted.map(|(leaf, _)| scalars_at(rb, state, &self.ty, &leaf.path)).collect()
    }

    /// Writes, for each unshared scalar, the array of its values in `state` for each direction.
    fn for_each(
        &self,
        rb: &mut Rebuild<'_>,
        plan: &Plan,
        state: impl FnOnce(&mut Rebuild<'_>, VarId) -> VarId,
    ) -> Vec<VarId> {
        let mut n = 0;
        let rows = rb.build(self.size.clone(), |rb, d| {
            let state = state(rb, d);
            let parts = self.parts(rb, plan, state, Scalars::Unshared);
            n = parts.len();
            if let [one] = parts[..] { one } else { rb.compute(Expr::Tuple(parts)) }
        });
        if n == 1 {
            return vec![rows];
        }
        let column = |rb: &mut Rebuild<'_>, k: usize| {
            rb.build(self.size.clone(), |rb, d| {
                let row = rb.get(rows, d);
                rb.compute(Expr::Component(row, k))
            })
        };
        (0..n).map(|k| column(rb, k)).collect()
    }

    /// Writes the build with the fold around the loop over directions.
    fn turned(&self, rb: &mut Rebuild<'_>, plan: &Plan) -> VarId {
        let zero = rb.int(Size::zero());
        let mut env = Env::copying(&[(self.direction, zero)]);
        let wanted: Vec<VarId> = plan.around.iter().map(|(var, _)| *var).collect();
        let kept = rb.slice(&plan.calm, &wanted);
        rb.inline_kept(&plan.calm, &kept, &mut env);
        let alike: Vec<VarId> = wanted.iter().map(|var| env.get(*var)).collect();
        let start = env.get(self.init);
        let mut first = self.parts(rb, plan, start, Scalars::Shared);
        let n_shared = first.len();
        let inline = |rb: &mut Rebuild<'_>, d: VarId, wanted: VarId| {
            rb.inline(self.body, wanted, &mut Env::copying(&[(self.direction, d)]))
        };
        first.extend(self.for_each(rb, plan, |rb, d| inline(rb, d, self.init)));
        // Variables used by the iteration, for each direction.
        let each: Vec<VarId> = (plan.around.iter().zip(&alike))
            .map(|((var, depends), alike)| {
                let is_made = *depends && self.is_in_step(rb, *var);
                if is_made { rb.build(self.size.clone(), |rb, d| inline(rb, d, *var)) } else { *alike }
            })
            .collect();
        let first = rb.compute(Expr::Tuple(first));
        let components = |rb: &mut Rebuild<'_>, whole: VarId, n: usize| -> Vec<VarId> {
            (0..n).map(|k| rb.compute(Expr::Component(whole, k))).collect()
        };
        let n_parts = self.leaves.len();
        let last = rb.fold(self.count.clone(), first, |rb, now, i| {
            let now = components(rb, now, n_parts);
            let (shared, own) = now.split_at(n_shared);
            let step = |rb: &mut Rebuild<'_>, step: &Block, d: VarId, state: VarId, around: &[VarId]| {
                let mut env = Env::copying(&[(self.direction, d), (self.state, state), (self.index, i)]);
                wanted.iter().zip(around).for_each(|(var, is)| env.insert(*var, *is));
                rb.inline(step, step.result, &mut env)
            };
            let anything: Vec<VarId> = (self.leaves.iter().zip(&plan.shared))
                .filter(|(_, is_shared)| !**is_shared)
                .map(|(leaf, _)| rb.any_value(&leaf.ty))
                .collect();
            let state = self.state(rb, plan, shared, &anything);
            let next = step(rb, &plan.step, zero, state, &alike);
            let mut parts = self.parts(rb, plan, next, Scalars::Shared);
            parts.extend(self.for_each(rb, plan, |rb, d| {
                let rows: Vec<VarId> = own.iter().map(|all| rb.get(*all, d)).collect();
                let state = self.state(rb, plan, shared, &rows);
                let around: Vec<VarId> = (each.iter().zip(&alike))
                    .map(|(each, alike)| if each == alike { *alike } else { rb.get(*each, d) })
                    .collect();
                step(rb, self.step, d, state, &around)
            }));
            rb.compute(Expr::Tuple(parts))
        });
        let last = components(rb, last, n_parts);
        let (shared, own) = last.split_at(n_shared);
        let states = rb.build(self.size.clone(), |rb, d| {
            let rows: Vec<VarId> = own.iter().map(|all| rb.get(*all, d)).collect();
            self.state(rb, plan, shared, &rows)
        });
        let mut rest = self.body.clone();
        rest.stmts[self.at].expr = Expr::Get { array: states, index: self.direction, proved: true };
        rb.build(self.size.clone(), |rb, d| rb.inline(&rest, rest.result, &mut Env::copying(&[(self.direction, d)])))
    }
}
