//! Lower bounds of what all eliminations together cost: exact on clusters of intermediates, each cluster
//! as if the vertices outside of it came at the best time for every one of its own.
//!
//! For a cluster C, `table[D]` is the least cost of eliminating C \ D in any order once D is eliminated,
//! when each vertex costs the bound of `cuts.rs` for what of C is eliminated and what is kept by then.
//! In a real order every vertex of C costs at least that, so the table of a cluster bounds what its vertices cost, and
//! the sum over disjoint clusters bounds the whole: additive pattern databases (Felner, Korf and Hanan,
//! "Additive pattern database heuristics", 2004). What D was eliminated with outside of C does not
//! matter: more eliminated vertices only lengthen the lists that cuts are found in.

use super::cuts;
use super::state::{Set, State};

/// Disjoint clusters of all intermediates of a state, with their tables.
pub(super) struct Clusters {
    clusters: Vec<Cluster>,
}

struct Cluster {
    members: Vec<usize>,
    /// By the members that are eliminated, as bits.
    table: Vec<u64>,
}

impl Clusters {
    /// Clusters of at most `size` vertices, grown along edges. O(2^size) cuts for each cluster.
    pub(super) fn new(state: &State, rest: &Set, size: usize) -> Self {
        let mut free = rest.clone();
        let mut clusters = Vec::new();
        while let Some(first) = free.first() {
            let mut members = vec![first];
            free.remove(first);
            while members.len() < size {
                let links = |v: usize| {
                    let joined = |u: &&usize| state.behind[**u].all.contains(v) || state.behind[v].all.contains(**u);
                    members.iter().filter(joined).count()
                };
                // The one with most edges to the cluster, the lowest of them.
                let Some(next) = free.iter().max_by_key(|v| (links(*v), usize::MAX - v)) else { break };
                if links(next) == 0 {
                    break;
                }
                members.push(next);
                free.remove(next);
            }
            clusters.push(Cluster::new(state, members));
        }
        Self { clusters }
    }

    /// A lower bound of the cost of eliminating `rest`, when what else there was is eliminated or has no
    /// edge to it.
    pub(super) fn bound(&self, rest: &Set) -> u64 {
        self.clusters.iter().map(|cluster| cluster.table[cluster.eliminated(rest)]).sum()
    }
}

impl Cluster {
    fn new(state: &State, members: Vec<usize>) -> Self {
        let full = (1_usize << members.len()) - 1;
        let mut table = vec![0; full + 1];
        for eliminated in (0..full).rev() {
            let mut now = state.clone();
            let mut kept = Set::empty(state.n_vertices());
            for (bit, v) in members.iter().enumerate() {
                if eliminated >> bit & 1 == 1 { now.eliminate(*v) } else { kept.insert(*v) }
            }
            let mut best = u64::MAX;
            for (bit, v) in members.iter().enumerate() {
                if eliminated >> bit & 1 == 0 {
                    let others = table[eliminated | 1 << bit];
                    // A cut is only looked for where it may matter.
                    if others < best {
                        kept.remove(*v);
                        best = best.min(others + cuts::bound(&now, *v, &kept));
                        kept.insert(*v);
                    }
                }
            }
            table[eliminated] = best;
        }
        Self { members, table }
    }

    fn eliminated(&self, rest: &Set) -> usize {
        self.members.iter().enumerate().filter(|(_, v)| !rest.contains(**v)).map(|(bit, _)| 1 << bit).sum()
    }
}
