//! Congruent loop-carried values: fields of a state with equal initial values and equal steps, so that one suffices.
//! Reverse mode recomputes the states of a loop; merged with the loop that computes the value, they are congruent.

use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Block, Expr, Size, StateLoop, Type, VarId};
use chainrule_ops::Semantics;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "fold-twins",
        law: "ifold (fun (s, t) i -> (f s i, f t i)) (z, z) n = (u, u) where u = ifold f z n",
        when: "the steps are the same expression, each field taken for its twin",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Fold,
        apply: fold,
    },
    Rule {
        name: "loop-twins",
        law: "the same for the general loop",
        when: "as fold-twins",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Loop,
        apply: general,
    },
];

struct Parts<'e> {
    count: &'e Size,
    index: VarId,
    state: VarId,
    init: VarId,
    body: &'e Block,
    /// Type of the state, a tuple, and of its fields.
    ty: &'e Type,
    fields: &'e [Type],
    /// Next values of the fields.
    next: &'e [VarId],
}

impl Parts<'_> {
    /// Returns the first congruent field of each field, possibly itself; `None` if no field has another one.
    fn twins(&self, rb: &mut Rebuild<'_>) -> Option<Vec<usize>> {
        let n = self.fields.len();
        let inits: Vec<VarId> = (0..n).map(|k| rb.compute(Expr::Component(self.init, k))).collect();
        let first = |alike: &dyn Fn(usize, usize) -> bool| -> Vec<usize> {
            (0..n).map(|k| (0..k).find(|j| alike(*j, k)).unwrap_or(k)).collect()
        };
        let mut twins = first(&|j, k| inits[j] == inits[k] && self.fields[j] == self.fields[k]);
        // The coarsest partition that the step preserves, by refinement.
        while twins.iter().enumerate().any(|(k, twin)| k != *twin) {
            let steps = rb.trial(self.count, self.ty, |rb, state, i| {
                let full = self.full(rb, state, &twins, &|twin| twin);
                let mut env = Env::copying(&[(self.state, full), (self.index, i)]);
                self.next.iter().map(|next| rb.inline(self.body, *next, &mut env)).collect()
            });
            let finer = first(&|j, k| twins[j] == twins[k] && steps[j] == steps[k]);
            if finer == twins {
                return Some(twins);
            }
            twins = finer;
        }
        None
    }

    /// Writes the state from `narrow`, where field k is its congruent field, which is at `place(twin)`.
    fn full(&self, rb: &mut Rebuild<'_>, narrow: VarId, twins: &[usize], place: &dyn Fn(usize) -> usize) -> VarId {
        let parts = twins.iter().map(|twin| rb.compute(Expr::Component(narrow, place(*twin)))).collect();
        rb.tuple(parts, self.ty)
    }
}

fn parts<'e>(rb: &Rebuild<'_>, expr: &'e Expr, ty: &'e Type, next: VarId) -> Option<Parts<'e>> {
    let (Expr::Fold(StateLoop { count, index, state, init, body })
    | Expr::Loop(StateLoop { count, index, state, init, body })) = expr
    else {
        return None;
    };
    let Type::Tuple(fields, _) = ty else { return None };
    let Some(Expr::Tuple(next)) = rb.bound_in(body, next) else { return None };
    let enough = fields.len() > 1 && rb.settings.common && !walk::uses_whole(body, *state);
    enough.then_some(Parts { count, index: *index, state: *state, init: *init, body, ty, fields, next })
}

/// Returns the remaining fields, and the position of each among them.
fn kept(twins: &[usize]) -> (Vec<usize>, impl Fn(usize) -> usize + use<>) {
    let kept: Vec<usize> = (0..twins.len()).filter(|k| twins[*k] == *k).collect();
    let places = kept.clone();
    (kept, move |twin| places.iter().position(|k| *k == twin).unwrap_or(0))
}

fn fold(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Fold(StateLoop { body, .. }) = expr else { return None };
    let fold = parts(rb, expr, ty, body.result)?;
    let twins = fold.twins(rb)?;
    let (kept, place) = kept(&twins);
    let init = kept.iter().map(|k| rb.compute(Expr::Component(fold.init, *k))).collect();
    let init = rb.compute(Expr::Tuple(init));
    let found = rb.fold(fold.count.clone(), init, |rb, narrow, i| {
        let full = fold.full(rb, narrow, &twins, &place);
        let mut env = Env::copying(&[(fold.state, full), (fold.index, i)]);
        let next = kept.iter().map(|k| rb.inline(fold.body, fold.next[*k], &mut env)).collect();
        rb.compute(Expr::Tuple(next))
    });
    Some(fold.full(rb, found, &twins, &place))
}

fn general(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Expr::Loop(StateLoop { body, .. }), Type::Tuple(types, _)) = (expr, ty) else { return None };
    let triple = rb.def(body.result);
    let Some(Expr::Tuple(made)) = triple.as_deref().or(rb.bound_in(body, body.result)) else { return None };
    let &[next, element, term] = made.as_slice() else { return None };
    let parts = parts(rb, expr, &types[0], next)?;
    let twins = parts.twins(rb)?;
    let (kept, place) = kept(&twins);
    let init = kept.iter().map(|k| rb.compute(Expr::Component(parts.init, *k))).collect();
    let init = rb.compute(Expr::Tuple(init));
    let found = rb.general(parts.count.clone(), init, |rb, narrow, i| {
        let full = parts.full(rb, narrow, &twins, &place);
        let mut env = Env::copying(&[(parts.state, full), (parts.index, i)]);
        let next = kept.iter().map(|k| rb.inline(body, parts.next[*k], &mut env)).collect();
        let next = rb.compute(Expr::Tuple(next));
        let (element, term) = (rb.inline(body, element, &mut env), rb.inline(body, term, &mut env));
        rb.compute(Expr::Tuple(vec![next, element, term]))
    });
    let last = rb.compute(Expr::Component(found, 0));
    let last = parts.full(rb, last, &twins, &place);
    let (array, sum) = (rb.compute(Expr::Component(found, 1)), rb.compute(Expr::Component(found, 2)));
    Some(rb.tuple(vec![last, array, sum], ty))
}
