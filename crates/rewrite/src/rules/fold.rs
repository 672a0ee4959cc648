//! Rules for `ifold` (figure 7e and 7g).

use super::get::kept_cost;
use super::mask::is_zero;
use super::solve::{in_range, solve};
use super::sum::is_short;
use super::tuple::{flatten, flattened, nested};
use super::writes::{self, Plan, Target};
use super::{On, Rule, SEPARATE};
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Block, Expr, Size, StateLoop, Type, VarId};
use chainrule_ops::{Op, Semantics};
use rustc_hash::FxHashSet;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "fold-of-none",
        law: "ifold f z 0 = z; ifold (fun s i -> s) z n = z",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Fold,
        apply: none,
    },
    Rule {
        name: "fold-once",
        law: "ifold (fun s i -> if i == e then f s i else s) z n = if 0 <= e < n then f z e else z",
        when: "e does not depend on i or s",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Fold,
        apply: once,
    },
    Rule {
        name: "unroll-fold",
        law: "ifold f z 2 = f (f z 0) 1",
        when: "the count is a small literal, and f is short; a larger literal where i is an exponent in f",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Fold,
        apply: unroll,
    },
    Rule {
        name: "fold-to-sum",
        law: "ifold (fun s i -> s + f i) z n = z + sum n f",
        when: "f does not depend on s; strictly: z is 0.0",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Fold,
        apply: to_sum,
    },
    Rule {
        name: "fold-of-writes",
        law: "ifold (fun s i -> build n (fun a -> if a == i then f z i else s[a])) z k = build n (fun a -> if 0 <= a < k then f z a else z[a]); at i + c, c - i, in any dimension",
        when: "f reads elements of s that no earlier step has written; before other passes",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Fold,
        apply: of_writes,
    },
    Rule {
        name: "fold-of-terms",
        law: "ifold (fun s i -> build n (fun a -> if c then s[a] + f i a else s[a])) z k = z + sum k (fun i -> build n (fun a -> [c] f i a))",
        when: "c and f do not depend on s; before other passes",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Fold,
        apply: of_terms,
    },
    Rule {
        name: "split-fold",
        law: "ifold (fun (s, t) i -> (s + f t i, g t i)) ... = (z, ...) with the fields that are sums, or never change, apart; and groups of fields that leave a loop around; and fields as in fold-of-writes and fold-of-terms",
        when: "no other field depends on them, and f depends on none, a group on itself; strictly: z of a sum is 0.0",
        holds_under: Semantics::Strict,
        split: true,
        on: On::Fold,
        apply: split,
    },
    Rule {
        name: "flat-fold",
        law: "ifold f ((x, y), z) n = ((x', y'), z') where (x', y', z') = ifold f' (x, y, z) n",
        when: "the state is a tuple with tuples in it; then each field by itself can be dead, or a sum",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Fold,
        apply: flat,
    },
];

pub(super) struct Parts<'e> {
    pub(super) count: &'e Size,
    pub(super) index: VarId,
    pub(super) state: VarId,
    init: VarId,
    pub(super) body: &'e Block,
}

fn parts(expr: &Expr) -> Option<Parts<'_>> {
    match expr {
        Expr::Fold(StateLoop { count, index, state, init, body }) => {
            Some(Parts { count, index: *index, state: *state, init: *init, body })
        }
        _ => None,
    }
}

impl Parts<'_> {
    fn at(&self, state: VarId, index: VarId) -> Env<'static> {
        Env::copying(&[(self.state, state), (self.index, index)])
    }
}

fn none(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let fold = parts(expr)?;
    let none = rb.ranges.not_negative(&fold.count.neg());
    (none || fold.body.result == fold.state).then_some(fold.init)
}

fn once(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let fold = parts(expr)?;
    let Some(Expr::If { condition, otherwise, .. }) = rb.bound_in(fold.body, fold.body.result) else { return None };
    if otherwise.result != fold.state {
        return None;
    }
    let found = solve(rb, fold.body, &[fold.index, fold.state], fold.index, *condition)?;
    let inside = in_range(rb, &found, fold.count);
    Some(rb.if_(
        inside,
        ty,
        |rb| {
            let at = rb.int(found.clone());
            rb.inline(fold.body, fold.body.result, &mut fold.at(fold.init, at))
        },
        |_| fold.init,
    ))
}

fn unroll(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let fold = parts(expr)?;
    let count = fold.count.as_constant()?;
    if !is_short(count, fold.index, fold.body) {
        return None;
    }
    let mut state = fold.init;
    for i in 0..count {
        let i = rb.int(Size::constant(i));
        state = rb.inline(fold.body, fold.body.result, &mut fold.at(state, i));
    }
    Some(state)
}

fn flat(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let fold = parts(expr)?;
    let leaves = flattened(ty)?;
    let init = flatten(rb, fold.init, &leaves);
    let last = rb.fold(fold.count.clone(), init, |rb, state, i| {
        let state = nested(rb, state, ty, &mut 0);
        let next = rb.inline(fold.body, fold.body.result, &mut fold.at(state, i));
        flatten(rb, next, &leaves)
    });
    Some(nested(rb, last, ty, &mut 0))
}

/// Returns the term that `next` adds to `state`, if it is a sum of both and the term does not depend on `whole`.
fn term(rb: &Rebuild<'_>, fold: &Parts<'_>, state: VarId, next: VarId) -> Option<VarId> {
    let (x, y) = match rb.bound_in(fold.body, next)? {
        Expr::Op(Op::Add, args) if *rb.ty(next) == Type::Double => (args[0], args[1]),
        Expr::Plus(a, b) => (*a, *b),
        _ => return None,
    };
    let term = match (x == state, y == state) {
        (true, false) => y,
        (false, true) => x,
        _ => return None,
    };
    (!rb.slice_mentions(fold.body, &[term], fold.state)).then_some(term)
}

// From 0.0 a fold that adds is a sum by definition; from other values it adds in another order.
fn may_sum(rb: &Rebuild<'_>, init: VarId) -> bool {
    rb.settings.semantics == Semantics::Algebraic || is_zero(rb, init)
}

fn sum_from(rb: &mut Rebuild<'_>, fold: &Parts<'_>, init: VarId, term: VarId) -> VarId {
    let sum = rb.sum(fold.count.clone(), |rb, i| rb.inline(fold.body, term, &mut Env::copying(&[(fold.index, i)])));
    // From 0.0 the sum is the fold, and a sum is never -0.0: adding would change nothing.
    if is_zero(rb, init) { sum } else { rb.plus(init, sum) }
}

fn to_sum(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let fold = parts(expr)?;
    if !ty.is_linear() || !may_sum(rb, fold.init) {
        return None;
    }
    let term = term(rb, &fold, fold.state, fold.body.result)?;
    Some(sum_from(rb, &fold, fold.init, term))
}

fn of_writes(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let fold = parts(expr).filter(|_| rb.settings.separate)?;
    let target = Target { fold: &fold, own: &[fold.state], next: fold.body.result };
    let plan = writes::separate(rb, target)?;
    Some(plan.write(rb, fold.init, &|_, array| array))
}

fn of_terms(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let fold = parts(expr).filter(|_| rb.settings.separate)?;
    let target = Target { fold: &fold, own: &[fold.state], next: fold.body.result };
    if !writes::adds(rb, target) {
        return None;
    }
    let sum = rb.sum(fold.count.clone(), |rb, i| {
        let zero = rb.zero(ty);
        rb.inline(fold.body, fold.body.result, &mut fold.at(zero, i))
    });
    Some(rb.plus(fold.init, sum))
}

/// Kind of a field of the state.
enum Field<'e> {
    /// Constant.
    Same,
    /// A sum of terms that depend on no state.
    Sum(VarId),
    /// An array of which each step writes separate elements.
    Separate(Plan<'e>),
    /// An array to which each step adds terms that depend on no state.
    Added,
    /// Anything.
    Other,
}

impl Field<'_> {
    fn is_other(&self) -> bool {
        matches!(self, Self::Other)
    }
}

fn split(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let fold = parts(expr)?;
    let Type::Tuple(types, _) = ty else { return None };
    let Some(Expr::Tuple(next)) = rb.bound_in(fold.body, fold.body.result) else { return None };
    // The variables that extract field k from the state; several only before common subexpressions are shared.
    let mut taken: Vec<Vec<VarId>> = vec![Vec::new(); next.len()];
    for stmt in &fold.body.stmts {
        if let Expr::Component(state, k) = stmt.expr
            && state == fold.state
        {
            taken[k].push(stmt.var);
        }
    }
    let inits: Vec<VarId> = (0..next.len()).map(|k| rb.compute(Expr::Component(fold.init, k))).collect();
    let fields = kinds(rb, &fold, next, &taken, &inits);
    if walk::uses_whole(fold.body, fold.state) {
        return None;
    }
    let others: Vec<usize> = (0..fields.len()).filter(|k| fields[*k].is_other()).collect();
    let groups = apart(rb, &fold, next, &inits, independent(rb, &fold, next, &taken, &others));
    if others.len() == fields.len() && groups.len() <= 1 {
        return None;
    }
    let pack = |rb: &mut Rebuild<'_>, parts: Vec<VarId>| {
        if let [one] = parts[..] { one } else { rb.compute(Expr::Tuple(parts)) }
    };
    // Replaces the fields of `group`, which are in `narrow`, in `parts`.
    let with = |rb: &mut Rebuild<'_>, group: &[usize], narrow: VarId, parts: &mut [VarId]| {
        for (at, k) in group.iter().enumerate() {
            parts[*k] = if group.len() == 1 { narrow } else { rb.compute(Expr::Component(narrow, at)) };
        }
    };
    let folds: Vec<VarId> = (groups.iter())
        .map(|group| {
            let init = pack(rb, group.iter().map(|k| inits[*k]).collect());
            rb.fold(fold.count.clone(), init, |rb, narrow, i| {
                let mut full = inits.clone();
                with(rb, group, narrow, &mut full);
                let full = rb.tuple(full, &Type::tuple(types.clone()));
                let mut env = fold.at(full, i);
                let next = group.iter().map(|k| rb.inline(fold.body, next[*k], &mut env)).collect();
                pack(rb, next)
            })
        })
        .collect();
    let mut parts = inits.clone();
    for (k, field) in fields.iter().enumerate() {
        match field {
            // A term may read constant fields.
            Field::Sum(term) => parts[k] = sum_from(rb, &fold, inits[k], *term),
            Field::Separate(plan) => {
                rb.count(SEPARATE);
                let whole = |rb: &mut Rebuild<'_>, array: VarId| {
                    let mut full = inits.clone();
                    full[k] = array;
                    rb.tuple(full, ty)
                };
                parts[k] = plan.write(rb, inits[k], &whole);
            }
            Field::Added => {
                rb.count(SEPARATE);
                let sum = rb.sum(fold.count.clone(), |rb, i| {
                    let mut full = inits.clone();
                    full[k] = rb.zero(&types[k]);
                    let full = rb.tuple(full, ty);
                    rb.inline(fold.body, next[k], &mut fold.at(full, i))
                });
                parts[k] = rb.plus(inits[k], sum);
            }
            Field::Same | Field::Other => {}
        }
    }
    for (group, narrow) in groups.iter().zip(folds) {
        with(rb, group, narrow, &mut parts);
    }
    Some(rb.tuple(parts, ty))
}

/// Returns the kinds of all fields, which are `next` after a step; field `k` is held by the variables `taken[k]` before
/// it, and starts with `inits[k]`.
fn kinds<'e>(
    rb: &mut Rebuild<'_>,
    fold: &'e Parts<'e>,
    next: &[VarId],
    taken: &'e [Vec<VarId>],
    inits: &[VarId],
) -> Vec<Field<'e>> {
    let is_same = |k: usize| taken[k].contains(&next[k]);
    let mut fields: Vec<Field<'_>> = Vec::new();
    for k in 0..next.len() {
        let term = taken[k].iter().find_map(|state| term(rb, fold, *state, next[k])).filter(|_| may_sum(rb, inits[k]));
        fields.push(match term {
            _ if is_same(k) => Field::Same,
            Some(term) => Field::Sum(term),
            None => {
                let others = (0..next.len()).filter(|j| *j != k && !is_same(*j)).flat_map(|j| &taken[j]);
                by_elements(rb, fold, (&taken[k], next[k]), &others.copied().collect::<Vec<_>>())
            }
        });
    }
    // A sum that another field reads must be available in every iteration.
    let rest: Vec<VarId> = (0..next.len()).filter(|k| fields[*k].is_other()).map(|k| next[k]).collect();
    let mut looked_at: FxHashSet<VarId> = rest.iter().copied().collect();
    for stmt in rb.slice(fold.body, &rest).stmts(fold.body) {
        walk::mentioned(&stmt.expr, &mut |var| {
            looked_at.insert(var);
        });
    }
    for (k, field) in fields.iter_mut().enumerate() {
        let is_apart = !matches!(field, Field::Same | Field::Other);
        if is_apart && taken[k].iter().any(|state| looked_at.contains(state)) {
            *field = Field::Other;
        }
    }
    fields
}

/// Returns the kind of a field that is `next` after a step, and whose array before it is `own`; `others` hold fields
/// that change.
fn by_elements<'e>(
    rb: &mut Rebuild<'_>,
    fold: &'e Parts<'e>,
    (own, next): (&'e [VarId], VarId),
    others: &[VarId],
) -> Field<'e> {
    let reads_others = |rb: &Rebuild<'_>| {
        let mut found = false;
        for stmt in rb.slice(fold.body, &[next]).stmts(fold.body) {
            walk::mentioned(&stmt.expr, &mut |var| found |= others.contains(&var));
        }
        found
    };
    if !rb.settings.separate || others.contains(&next) || reads_others(rb) {
        return Field::Other;
    }
    let target = Target { fold, own, next };
    if let Some(plan) = writes::separate(rb, target) {
        return Field::Separate(plan);
    }
    if rb.settings.semantics == Semantics::Algebraic && writes::adds(rb, target) { Field::Added } else { Field::Other }
}

/// Maximum number of fields of a state that are grouped.
const MAX_GROUPED: usize = 64;

/// Returns the fields `others` in independent groups; as one group if there is no enclosing loop, or if they are too
/// many.
fn independent(
    rb: &Rebuild<'_>,
    fold: &Parts<'_>,
    next: &[VarId],
    taken: &[Vec<VarId>],
    others: &[usize],
) -> Vec<Vec<usize>> {
    if others.is_empty() {
        return Vec::new();
    }
    if others.len() > MAX_GROUPED || rb.loops_around() == 0 {
        return vec![others.to_vec()];
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for k in others {
        // The fields that this one reads; all fields of a group with one of them.
        let mut looked_at: FxHashSet<VarId> = FxHashSet::default();
        looked_at.insert(next[*k]);
        for stmt in rb.slice(fold.body, &[next[*k]]).stmts(fold.body) {
            walk::mentioned(&stmt.expr, &mut |var| {
                looked_at.insert(var);
            });
        }
        let looks_at = |j: &usize| taken[*j].iter().any(|state| looked_at.contains(state));
        let mut own: Vec<usize> = others.iter().copied().filter(looks_at).collect();
        own.push(*k);
        groups.retain_mut(|group| {
            let apart = group.iter().all(|j| !own.contains(j));
            if !apart {
                own.append(group);
            }
            apart
        });
        own.sort_unstable();
        own.dedup();
        groups.push(own);
    }
    groups
}

/// Returns the `groups` of fields that leave an enclosing loop, unlike the others, separately, and the others together:
/// leaving must save more than recomputing their shared part.
fn apart(
    rb: &Rebuild<'_>,
    fold: &Parts<'_>,
    next: &[VarId],
    inits: &[VarId],
    groups: Vec<Vec<usize>>,
) -> Vec<Vec<usize>> {
    if groups.len() <= 1 {
        return groups;
    }
    let slice = |fields: &[usize]| {
        let wanted: Vec<VarId> = fields.iter().map(|k| next[*k]).collect();
        rb.slice(fold.body, &wanted)
    };
    let cost = |fields: &[usize]| kept_cost(rb, fold.body, &slice(fields));
    let leaves = |fields: &[usize]| {
        let inits: Vec<VarId> = fields.iter().map(|k| inits[*k]).collect();
        rb.steps_left(fold.count, fold.body, &slice(fields), &inits)
    };
    let all: Vec<usize> = groups.concat();
    let (together, total) = (leaves(&all), cost(&all));
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    for group in groups {
        let times = leaves(&group) / together;
        let saved = |group: &[usize]| {
            let others: Vec<usize> = all.iter().copied().filter(|k| !group.contains(k)).collect();
            times * (total - cost(&others))
        };
        if times > 1.0 && saved(&group) > cost(&group) + 1.0 {
            found.push(group);
        } else {
            rest.extend(group);
        }
    }
    if !rest.is_empty() {
        rest.sort_unstable();
        found.push(rest);
    }
    found
}
