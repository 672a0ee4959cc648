//! Lower bounds of the cost of a set of intermediates: exact on clusters, assuming that vertices outside a cluster are
//! eliminated at the best time for each of its vertices.
//!
//! For a cluster C, `table[X]` bounds the cost of the vertices of X, a subset of C, if the rest of C is never
//! eliminated and nothing is known of vertices outside C. The last vertex v of X costs at least its vertex cut
//! (`cuts.rs`) in the graph where X \ {v} is eliminated and C \ X remains. The vertices before it cost at least
//! `table[X \ {v}]`, because v remains until then. So `table[X]` is the least sum over all v. The sum over disjoint
//! clusters bounds the whole: additive pattern databases (Felner, Korf and Hanan, "Additive pattern database
//! heuristics", 2004).

use super::masks::{BEFORE, BEHIND, Graph, Mask};

/// Several partitions of all intermediates into disjoint clusters; each bounds some sets better than others.
pub(super) struct Patterns<const W: usize> {
    partitions: Vec<Vec<Cluster<W>>>,
}

struct Cluster<const W: usize> {
    members: Vec<usize>,
    set: Mask<W>,
    table: Vec<u32>,
}

/// Start of the first cluster of each partition, as a fraction of all intermediates in their order.
const STARTS: [(usize, usize); 4] = [(0, 1), (1, 1), (1, 2), (1, 4)];

impl<const W: usize> Patterns<W> {
    /// Returns clusters of at most `size` vertices, grown along edges. O(size 2^size) cuts for each. If that exceeds
    /// `work`, clusters are smaller and partitions are fewer.
    pub(super) fn new(graph: &Graph<W>, size: usize, work: u64) -> Self {
        let end = graph.work.get().saturating_add(work);
        let all: Vec<usize> = graph.inner.iter().collect();
        let (mut sets, mut partitions): (Vec<Vec<Mask<W>>>, Vec<_>) = (Vec::new(), Vec::new());
        let mut size = size.max(1);
        for (part, of) in STARTS {
            let Some(start) = all.get((all.len().saturating_sub(1)) * part / of) else { continue };
            let clusters = grown(graph, size, *start);
            if sets.contains(&clusters) {
                continue;
            }
            // Each attempt gets a share of the remaining work; one with clusters of half the size takes far less.
            let share = |end: u64| graph.work.get() + end.saturating_sub(graph.work.get()) / 2;
            let mut made = Cluster::all(graph, &clusters, share(end));
            sets.push(clusters);
            while made.is_none() && partitions.is_empty() && size > 1 {
                size /= 2;
                made = Cluster::all(graph, &grown(graph, size, *start), share(end));
            }
            let Some(made) = made else { break };
            partitions.push(made);
        }
        Self { partitions }
    }

    /// Returns a lower bound of the cost of `set` if nothing else is eliminated before its last vertex; `least` bounds
    /// single vertices.
    pub(super) fn bound(&self, set: Mask<W>, least: impl Fn(usize) -> u64) -> u64 {
        let bound = |cluster: &Cluster<W>| {
            let part = set.and(cluster.set);
            if part.is_empty() {
                return 0;
            }
            let single: u64 = part.iter().map(&least).sum();
            single.max(u64::from(cluster.table[cluster.index(part)]))
        };
        self.partitions.iter().map(|clusters| clusters.iter().map(bound).sum()).max().unwrap_or(0)
    }
}

/// Returns disjoint clusters of all intermediates, the first from `start`, each from a neighbour of the previous ones.
fn grown<const W: usize>(graph: &Graph<W>, size: usize, start: usize) -> Vec<Mask<W>> {
    let mut free = graph.inner;
    let mut clusters = Vec::new();
    let near = |v: usize| graph.sides[BEFORE][v].all.or(graph.sides[BEHIND][v].all);
    let mut next = Some(start);
    while let Some(first) = next {
        let mut set = Mask::EMPTY;
        let mut candidate = Some(first);
        while let Some(v) = candidate {
            set.insert(v);
            free = free.without(v);
            // The vertex with most edges to the cluster, then fewest free neighbours, then the lowest number.
            let links = |v: usize| near(v).and(set).len();
            let open = |v: usize| near(v).and(free).len();
            candidate = free
                .iter()
                .max_by_key(|v| (links(*v), u64::MAX - open(*v), usize::MAX - v))
                .filter(|v| links(*v) > 0 && set.len() < size as u64);
        }
        let taken = graph.inner.minus(free);
        next = free.iter().max_by_key(|v| (near(*v).and(taken).len(), usize::MAX - v));
        clusters.push(set);
    }
    clusters
}

impl<const W: usize> Cluster<W> {
    /// Returns the clusters of a partition; `None` if the graph's work exceeds `end`.
    fn all(graph: &Graph<W>, sets: &[Mask<W>], end: u64) -> Option<Vec<Self>> {
        sets.iter().map(|set| Self::new(graph, *set, end)).collect()
    }

    fn new(graph: &Graph<W>, set: Mask<W>, end: u64) -> Option<Self> {
        let members: Vec<usize> = set.iter().collect();
        let mut cluster = Self { table: vec![u32::MAX; 1 << members.len()], members, set };
        cluster.table[0] = 0;
        cluster.fill(graph, cluster.members.len(), 0, end);
        (graph.work.get() <= end).then_some(cluster)
    }

    fn index(&self, part: Mask<W>) -> usize {
        self.members.iter().enumerate().filter(|(_, v)| part.contains(**v)).map(|(bit, _)| 1 << bit).sum()
    }

    /// Fills the table for all subsets whose members from `bit` on are decided, ascending. Recursive in the size of the
    /// cluster.
    fn fill(&mut self, graph: &Graph<W>, bit: usize, eliminated: usize, end: u64) {
        if graph.work.get() > end {
            return;
        }
        let Some(bit) = bit.checked_sub(1) else {
            let kept = self.members.iter().enumerate().filter(|(bit, _)| eliminated >> bit & 1 == 0);
            let kept: Vec<(usize, usize)> = kept.map(|(bit, v)| (bit, *v)).collect();
            let free = graph.inner.minus(self.set);
            for (bit, v) in kept {
                let others = self.table[eliminated];
                let entry = &mut self.table[eliminated | 1 << bit];
                // A cut is only computed if it may matter.
                if others < *entry {
                    let cost = u32::try_from(graph.bound(v, free)).unwrap_or(u32::MAX);
                    *entry = (*entry).min(others.saturating_add(cost));
                }
            }
            return;
        };
        self.fill(graph, bit, eliminated, end);
        let mut now = graph.clone();
        let copied = now.sides[BEFORE].len() * 2 * W;
        now.work.set(now.work.get() + copied as u64);
        now.eliminate(self.members[bit]);
        self.fill(&now, bit, eliminated | 1 << bit, end);
    }
}
