//! Safe eliminations: they belong to some optimal order and may be done first.
//!
//! P(v) and S(v) are the current predecessors and successors. A label is *paid* unless it is 1 or -1 and such products
//! are free. A label i -> k stays paid, and so does every label of a path that begins or ends with it, because a path
//! is free only if all its labels are. A vertex v is *at its bound* if the paid labels into v times those out of v
//! equal the lower bound of `cuts.rs` for v at any time. v may come first if v is at its bound and no other vertex ever
//! costs more because v is eliminated. Each rule below proves that for predecessors; successors follow by symmetry. If
//! every product counts, all labels are paid, and the conditions on labels hold trivially.
//!
//! 1. *No fill-in.* Each edge that the elimination of v makes already exists with a paid label. A path through v to w
//!    by way of a -> v -> b then has a twin through a -> b. So without v the predecessors of w are those with v, minus
//!    v, and those whose label is now a sum were already paid: none costs more.
//! 2. *One source.* P(v) is a single source p. P(v) stays {p}, so any w with v among its predecessors gets p in place
//!    of v once v is eliminated. That is one for one, unless w paid for neither and now pays. This cannot happen if all
//!    labels out of v are paid, because w pays for v then; nor if p -> v is free and all other labels out of p are
//!    paid, because w then pays for p as it did for v, or already paid for p. The mirror image: S(v) is a single sink.
//! 3. *A link.* P(v) = {p} and S(p) = {v}, and either p -> v is free, or all labels into p and out of v are paid.
//!    Whichever of the two comes first, costs and edges of all others are the same, because only v among the vertices
//!    behind is adjacent to p, and only p among those before is adjacent to v: the remaining one has the predecessors
//!    of p and the successors of v, with the same labels if the link is free, with paid ones if not. The first of them
//!    costs nothing if the link is free. Otherwise it costs the lesser of |P(p)| and |S(v)| at its time, at least the
//!    lesser of their bounds; p may come now if |P(p)| is at its bound and this is at most the bound of |S(v)|, and the
//!    mirror image.
//!
//! Vertices with one predecessor or one successor *in general* are not eliminated: it is not proved that some optimal
//! order begins with them, and their order matters.

use super::cuts;
use super::state::{Side, State};
use fixedbitset::FixedBitSet;

/// Returns a vertex of `rest` that may be eliminated now without losing all optimal orders.
pub(super) fn safe(state: &State, rest: &FixedBitSet) -> Option<usize> {
    rest.ones().find_map(|v| rule(state, v))
}

fn rule(state: &State, v: usize) -> Option<usize> {
    let (before, behind) = (&state.before[v], &state.behind[v]);
    let p = only(before);
    let one_source =
        p.filter(|p| *p < state.n_sources).is_some_and(|p| may_replace(v, before, behind, &state.behind[p]));
    let s = only(behind);
    let one_sink =
        s.filter(|s| *s >= state.first_sink).is_some_and(|s| may_replace(v, behind, before, &state.before[s]));
    if (one_source || one_sink || state.fills_nothing(v)) && state.cost(v) == cuts::bound(state, v) {
        return Some(v);
    }
    let p = p.filter(|p| state.is_intermediate(*p) && only(&state.behind[*p]).is_some())?;
    if !before.unit.is_clear() {
        return Some(v);
    }
    let into_p = &state.before[p];
    if !into_p.unit.is_clear() || !behind.unit.is_clear() {
        return None;
    }
    // The cuts of p towards sinks and of v towards sources are 1, so the bounds equal the cuts on the other sides.
    let (bound_into_p, bound_out_of_v) = (cuts::bound(state, p), cuts::bound(state, v));
    if into_p.all.count_ones(..) as u64 == bound_into_p && bound_into_p <= bound_out_of_v {
        return Some(p);
    }
    (behind.all.count_ones(..) as u64 == bound_out_of_v && bound_out_of_v <= bound_into_p).then_some(v)
}

/// Returns the only neighbour on a side.
fn only(side: &Side) -> Option<usize> {
    let mut ones = side.all.ones();
    ones.next().filter(|_| ones.next().is_none())
}

/// Returns whether rule 2 holds: no vertex beyond pays more for the single source or sink next to v than for v.
/// `beyond` is the other side of v, `from_end` the side of the source or sink towards v.
fn may_replace(v: usize, towards_end: &Side, beyond: &Side, from_end: &Side) -> bool {
    beyond.unit.is_clear() || (!towards_end.unit.is_clear() && from_end.unit.ones().all(|other| other == v))
}
