//! Eliminations that belong to some optimal order and may be done at once, every product counted.
//!
//! Write P(v) and S(v) for predecessors and successors now, and say that v is *at its bound* when
//! |P(v)| |S(v)| is what `cuts.rs` proves that v costs at least, whenever it comes. To show that v may
//! come first it is enough that v is at its bound and that no other vertex ever costs more because v is gone.
//! In each rule below that holds for predecessors; for successors by symmetry.
//!
//! 1. *No fill-in.* Each edge that the elimination of v makes is there already. A path through v to w by
//!    way of a -> v -> b then has a twin through a -> b, so without v the predecessors of w are those
//!    that it has with v, less v: none costs more.
//! 2. *One source.* P(v) is one source p. P(v) stays {p} for ever, so w, wherever it has v among its
//!    predecessors, has p instead once v is gone: one for one. The mirror: S(v) is one sink.
//! 3. *A link.* P(v) = {p} and S(p) = {v}. Whichever of the two goes first, costs and edges of all others
//!    are the same, because p is seen by nothing behind it but v, and v by nothing before it but p: the
//!    one that is left has the predecessors of p and the successors of v. So the first of them costs the
//!    lesser of |P(p)| and |S(v)| at its time, at least the lesser of their bounds; p may go now if
//!    |P(p)| is at its bound and this is at most the bound of |S(v)|, and the mirror.
//!
//! Vertices with one predecessor or one successor *in general* are not taken: whether some optimal order
//! begins with them is not proved, and which of them goes first does matter.

use super::cuts;
use super::state::State;
use fixedbitset::FixedBitSet;

/// A vertex of `rest` that may be eliminated now without losing all optimal orders. Only where every product counts.
pub(super) fn safe(state: &State, rest: &FixedBitSet) -> Option<usize> {
    rest.ones().find_map(|v| rule(state, v))
}

fn rule(state: &State, v: usize) -> Option<usize> {
    let (before, behind) = (&state.before[v].all, &state.behind[v].all);
    let (n_before, n_behind) = (before.count_ones(..) as u64, behind.count_ones(..) as u64);
    let one_source = n_before == 1 && before.ones().all(|p| p < state.n_sources);
    let one_sink = n_behind == 1 && behind.ones().all(|s| s >= state.first_sink);
    if (one_source || one_sink || !state.fills_in(v)) && state.cost(v) == cuts::bound(state, v) {
        return Some(v);
    }
    if n_before != 1 {
        return None;
    }
    let p = before.ones().next().filter(|p| state.is_intermediate(*p) && state.behind[*p].all.count_ones(..) == 1)?;
    // The cuts of p towards sinks and of v towards sources are 1: what is left of the bounds are the others.
    let (into_p, out_of_v) = (cuts::bound(state, p), cuts::bound(state, v));
    if state.before[p].all.count_ones(..) as u64 == into_p && into_p <= out_of_v {
        return Some(p);
    }
    (n_behind == out_of_v && out_of_v <= into_p).then_some(v)
}
