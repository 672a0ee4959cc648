//! Lower bounds of what a set of intermediates costs: exact on clusters of them, each cluster as if the
//! vertices outside of it came at the best time for every one of its own.
//!
//! For a cluster C, `table[X]` bounds what the vertices of X, a part of C, cost when the rest of C is never
//! eliminated and nothing is known of vertices outside of C. The last vertex v of X costs at least its
//! vertex cut (`cuts.rs`) in the graph where X \ {v} is eliminated and C \ X is kept; what comes before it
//! costs at least `table[X \ {v}]`, because v is kept until then: table[X] is the least sum over all v. The
//! sum over disjoint clusters bounds the whole: additive pattern databases (Felner, Korf and Hanan,
//! "Additive pattern database heuristics", 2004).

use super::masks::{BEFORE, BEHIND, Graph, Mask};

/// Disjoint clusters of all intermediates, with their tables.
pub(super) struct Patterns<const W: usize> {
    clusters: Vec<Cluster<W>>,
}

struct Cluster<const W: usize> {
    members: Vec<usize>,
    set: Mask<W>,
    table: Vec<u32>,
}

impl<const W: usize> Patterns<W> {
    /// Clusters of at most `size` vertices, grown along edges. O(size 2^size) cuts for each.
    pub(super) fn new(graph: &Graph<W>, size: usize) -> Self {
        let mut free = graph.inner;
        let mut clusters = Vec::new();
        while let Some(first) = free.first() {
            let mut members = vec![first];
            let mut set = Mask::EMPTY.with(first);
            free = free.without(first);
            while members.len() < size {
                let links = |v: usize| graph.sides[BEFORE][v].all.or(graph.sides[BEHIND][v].all).and(set).len();
                // The one with most edges to the cluster, the lowest of them.
                let Some(next) = free.iter().max_by_key(|v| (links(*v), usize::MAX - v)) else { break };
                if links(next) == 0 {
                    break;
                }
                members.push(next);
                set.insert(next);
                free = free.without(next);
            }
            members.sort_unstable();
            let mut cluster = Cluster { table: vec![u32::MAX; 1 << members.len()], members, set };
            cluster.table[0] = 0;
            cluster.fill(graph, cluster.members.len(), 0);
            clusters.push(cluster);
        }
        Self { clusters }
    }

    /// A lower bound of what `set` costs when nothing else is eliminated before its last vertex; `least` bounds
    /// single vertices.
    pub(super) fn bound(&self, set: Mask<W>, mut least: impl FnMut(usize) -> u64) -> u64 {
        let bound = |cluster: &Cluster<W>| {
            let part = set.and(cluster.set);
            if part.is_empty() {
                return 0;
            }
            let single: u64 = part.iter().map(&mut least).sum();
            single.max(u64::from(cluster.table[cluster.index(part)]))
        };
        self.clusters.iter().map(bound).sum()
    }
}

impl<const W: usize> Cluster<W> {
    fn index(&self, part: Mask<W>) -> usize {
        self.members.iter().enumerate().filter(|(_, v)| part.contains(**v)).map(|(bit, _)| 1 << bit).sum()
    }

    /// Goes on from all sets of which the members from `bit` on are decided, ascending; recursive in the size
    /// of the cluster.
    fn fill(&mut self, graph: &Graph<W>, bit: usize, eliminated: usize) {
        let Some(bit) = bit.checked_sub(1) else {
            let kept = self.members.iter().enumerate().filter(|(bit, _)| eliminated >> bit & 1 == 0);
            let kept: Vec<(usize, usize)> = kept.map(|(bit, v)| (bit, *v)).collect();
            let free = graph.inner.minus(self.set);
            for (bit, v) in kept {
                let others = self.table[eliminated];
                let entry = &mut self.table[eliminated | 1 << bit];
                // A cut is only looked for where it may matter.
                if others < *entry {
                    let cost = u32::try_from(graph.bound(v, free)).unwrap_or(u32::MAX);
                    *entry = (*entry).min(others.saturating_add(cost));
                }
            }
            return;
        };
        self.fill(graph, bit, eliminated);
        let mut now = graph.clone();
        now.eliminate(self.members[bit]);
        self.fill(&now, bit, eliminated | 1 << bit);
    }
}
