//! What makes a vertex the next one to be eliminated: the heuristics of the field as scores, the lowest
//! of which is taken.
//!
//! | in the field (Naumann 1999; Albrecht, Gottschling, Naumann 2003) | here |
//! | --- | --- |
//! | lowest Markowitz degree, \|P(j)\| \|S(j)\| | [`Score::Markowitz`] |
//! | lowest relative Markowitz degree: less what v(j) takes when it is the last | [`Score::RelativeMarkowitz`] |
//! | lowest fill-in | [`Score::FillIn`] |
//! | lowest Markowitz degree with minimal damage | [`Score::Damage`] |
//! | overall Markowitz degree (section 3), its maximal reduction | [`Score::OverallReduction`] |
//! | total path length L (section 2.3), its maximal reduction | [`Score::PathLength`] |
//! | forward, reverse | [`Score::Forward`], [`Score::Reverse`] |
//!
//! In: an elimination at some stage. Out: scores, and which of them a step changes ([`Scope`]).
//! Wherever a degree is meant, multiplications count as the option [`Counting`] says.

use crate::vertex::{Degree, Elimination, product_label, sum_label};
use crate::{Counting, Label, LinearGraph, VertexId};
use chainrule_base::Id;
use std::cmp::Ordering;

/// Which vertex is next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Score {
    /// The lowest number: forward elimination.
    Forward,
    /// The highest number: reverse elimination.
    Reverse,
    /// The fewest multiplications.
    Markowitz,
    /// The fewest multiplications, less those that the vertex takes when all others are gone: the sources
    /// that it depends on times the sinks that depend on it.
    RelativeMarkowitz,
    /// The fewest new edges; of those, the fewest multiplications.
    FillIn,
    /// The fewest multiplications plus what the neighbours take more (less) afterwards.
    Damage,
    /// The largest fall of the overall Markowitz degree, the sum over all intermediates.
    OverallReduction,
    /// The largest fall of the total length of all paths from sources to sinks. Path counts are rounded
    /// to doubles.
    PathLength,
}

/// Whose scores a step may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// Nobody's.
    None,
    /// The neighbours of the eliminated vertex.
    Neighbours,
    /// The neighbours, and what lies between two of them.
    Between,
    /// The neighbours, and those of intermediate neighbours.
    Second,
    /// Everybody's.
    All,
}

impl Score {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Forward,
        Self::Reverse,
        Self::Markowitz,
        Self::RelativeMarkowitz,
        Self::FillIn,
        Self::Damage,
        Self::OverallReduction,
        Self::PathLength,
    ];

    pub(crate) fn scope(self) -> Scope {
        match self {
            Self::Forward | Self::Reverse => Scope::None,
            Self::Markowitz | Self::RelativeMarkowitz => Scope::Neighbours,
            // A vertex u with edges i -> u -> k has one pair to fill in less when i -> k is made.
            Self::FillIn => Scope::Between,
            // The same, and the labels around i and k, on whose number and kind the damage depends. Where
            // both i and k are ends of the graph neither degree is of interest.
            Self::Damage | Self::OverallReduction => Scope::Second,
            Self::PathLength => Scope::All,
        }
    }
}

impl Score {
    /// The work before the first step, in edges looked at: for [`Self::RelativeMarkowitz`] which ends each vertex reaches, for
    /// 64 of them at a time.
    pub(crate) fn preparation(self, linear: &LinearGraph) -> u64 {
        if self != Self::RelativeMarkowitz {
            return 0;
        }
        let passes = linear.sources().count().div_ceil(64) + linear.sinks().count().div_ceil(64);
        (passes as u64).saturating_mul((linear.n_edges() + linear.n_vertices()) as u64)
    }
}

/// A value of a score; lower is better. Doubles hold all counts below 2^53 exactly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value(f64, f64);

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.total_cmp(&other.1))
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

/// Evaluates one score during one elimination.
pub(crate) struct Evaluator {
    score: Score,
    counting: Counting,
    /// For [`Score::RelativeMarkowitz`], by vertex: what it takes as the last one.
    last: Vec<u64>,
    paths: Paths,
}

impl Evaluator {
    pub(crate) fn new(score: Score, counting: Counting, elimination: &Elimination<'_>) -> Self {
        let last = if score == Score::RelativeMarkowitz { last_degrees(elimination) } else { Vec::new() };
        let mut evaluator = Self { score, counting, last, paths: Paths::default() };
        evaluator.after_step(elimination);
        evaluator
    }

    /// Brings up to date what all scores share.
    pub(crate) fn after_step(&mut self, elimination: &Elimination<'_>) {
        if self.score == Score::PathLength {
            self.paths = Paths::of(elimination);
        }
    }

    /// The score of an intermediate that is there. Linear in its Markowitz degree at most.
    pub(crate) fn value(&self, elimination: &Elimination<'_>, v: VertexId) -> Value {
        let cost = || elimination.cost(v, self.counting) as f64;
        match self.score {
            Score::Forward => Value(v.index() as f64, 0.0),
            Score::Reverse => Value(-(v.index() as f64), 0.0),
            Score::Markowitz => Value(cost(), 0.0),
            Score::RelativeMarkowitz => Value(cost() - self.last[v.index()] as f64, 0.0),
            Score::FillIn => Value(fill_in(elimination, v) as f64, cost()),
            Score::Damage => Value(cost() + self.damage(elimination, v), 0.0),
            Score::OverallReduction => Value(self.damage(elimination, v) - cost(), 0.0),
            Score::PathLength => Value(-self.paths.reduction(elimination, v), 0.0),
        }
    }

    /// By how much the elimination of `v` raises the costs of its neighbours.
    fn damage(&self, elimination: &Elimination<'_>, v: VertexId) -> f64 {
        let before: Vec<(VertexId, Label)> = labelled(elimination, elimination.predecessors(v), |i| (i, v));
        let behind: Vec<(VertexId, Label)> = labelled(elimination, elimination.successors(v), |k| (v, k));
        let size = elimination.size(v);
        let mut damage = 0.0;
        let mut add = |u: VertexId, degrees: (Degree, Degree), after: Degree| {
            let (changing, other) = degrees;
            let cost = |degree: Degree| (elimination.size(u) * degree.products(other, self.counting)) as f64;
            damage += cost(after) - cost(changing);
        };
        for &(i, in_label) in before.iter().filter(|(i, _)| elimination.can_eliminate(*i)) {
            let degree = elimination.out_degree(i);
            let mut after = degree - Degree::of(in_label, size);
            for &(k, out_label) in behind.iter().filter(|(k, _)| elimination.serves(i, *k)) {
                replace(&mut after, elimination.label(i, k), product_label(in_label, out_label), elimination.size(k));
            }
            add(i, (degree, elimination.in_degree(i)), after);
        }
        for &(k, out_label) in behind.iter().filter(|(k, _)| elimination.can_eliminate(*k)) {
            let degree = elimination.in_degree(k);
            let mut after = degree - Degree::of(out_label, size);
            for &(i, in_label) in before.iter().filter(|(i, _)| elimination.serves(*i, k)) {
                replace(&mut after, elimination.label(i, k), product_label(in_label, out_label), elimination.size(i));
            }
            add(k, (degree, elimination.out_degree(k)), after);
        }
        damage
    }
}

/// Vertices on one side with the labels of their edges.
fn labelled(
    elimination: &Elimination<'_>,
    side: impl Iterator<Item = VertexId>,
    ends: impl Fn(VertexId) -> (VertexId, VertexId),
) -> Vec<(VertexId, Label)> {
    side.filter_map(|u| {
        let (i, k) = ends(u);
        elimination.label(i, k).map(|label| (u, label))
    })
    .collect()
}

/// A degree after a product is added to an edge, or made one.
fn replace(degree: &mut Degree, old: Option<Label>, product: Label, size: u64) {
    if let Some(old) = old {
        *degree -= Degree::of(old, size);
        *degree += Degree::of(sum_label(old, product), size);
    } else {
        *degree += Degree::of(product, size);
    }
}

/// How many entries of labels the elimination of `v` makes anew.
fn fill_in(elimination: &Elimination<'_>, v: VertexId) -> u64 {
    let behind: Vec<VertexId> = elimination.successors(v).collect();
    let mut fill_in = 0;
    for i in elimination.predecessors(v) {
        for &k in &behind {
            if elimination.label(i, k).is_none() && elimination.serves(i, k) {
                fill_in += elimination.size(i) * elimination.size(k);
            }
        }
    }
    fill_in
}

/// By vertex, the sources that it depends on times the sinks that depend on it, with sizes; 0 for ends.
/// O(edges times sources and sinks / 64).
fn last_degrees(elimination: &Elimination<'_>) -> Vec<u64> {
    let linear = elimination.linear();
    let n = linear.n_vertices();
    let mut above = vec![0; n];
    let mut below = vec![0; n];
    // 64 ends at a time, so that memory stays linear.
    for ends in linear.sources().collect::<Vec<_>>().chunks(64) {
        let mut marks = end_marks(n, ends);
        for (_, edge) in linear.edges() {
            marks[edge.target.index()] |= marks[edge.source.index()];
        }
        count_marks(elimination, &marks, ends, &mut above);
    }
    for ends in linear.sinks().collect::<Vec<_>>().chunks(64) {
        let mut marks = end_marks(n, ends);
        for (_, edge) in linear.edges().rev() {
            marks[edge.source.index()] |= marks[edge.target.index()];
        }
        count_marks(elimination, &marks, ends, &mut below);
    }
    above.iter().zip(&below).enumerate().map(|(v, (a, b))| a * b * elimination.size(VertexId::new(v))).collect()
}

fn end_marks(n: usize, ends: &[VertexId]) -> Vec<u64> {
    let mut marks = vec![0; n];
    for (bit, end) in ends.iter().enumerate() {
        marks[end.index()] = 1 << bit;
    }
    marks
}

fn count_marks(elimination: &Elimination<'_>, marks: &[u64], ends: &[VertexId], counts: &mut [u64]) {
    for (count, mark) in counts.iter_mut().zip(marks) {
        let mut mark = *mark;
        while mark != 0 {
            *count += elimination.size(ends[mark.trailing_zeros() as usize]);
            mark &= mark - 1;
        }
    }
}

/// Numbers and total lengths of paths (section 2.3), by vertex; 0 for vertices that are gone.
#[derive(Default)]
struct Paths {
    /// n^b: paths from a source; l^b: their edges.
    n_above: Vec<f64>,
    length_above: Vec<f64>,
    /// n^f: paths to a sink; l^f: their edges.
    n_below: Vec<f64>,
    length_below: Vec<f64>,
}

impl Paths {
    /// Linear in the graph.
    fn of(elimination: &Elimination<'_>) -> Self {
        let linear = elimination.linear();
        let n = linear.n_vertices();
        let (mut n_above, mut length_above) = (vec![0.0; n], vec![0.0; n]);
        for v in (0..n).map(VertexId::new) {
            if linear.is_source(v) {
                n_above[v.index()] = 1.0;
            }
            for i in elimination.predecessors(v) {
                n_above[v.index()] += n_above[i.index()];
                length_above[v.index()] += length_above[i.index()] + n_above[i.index()];
            }
        }
        let (mut n_below, mut length_below) = (vec![0.0; n], vec![0.0; n]);
        for v in (0..n).rev().map(VertexId::new) {
            if linear.is_sink(v) {
                n_below[v.index()] = 1.0;
            }
            for k in elimination.successors(v) {
                n_below[v.index()] += n_below[k.index()];
                length_below[v.index()] += length_below[k.index()] + n_below[k.index()];
            }
        }
        Self { n_above, length_above, n_below, length_below }
    }

    /// By how much the elimination of `v` shortens all paths together: those that become a new edge lose
    /// one edge, those that coalesce with others are gone.
    fn reduction(&self, elimination: &Elimination<'_>, v: VertexId) -> f64 {
        let behind: Vec<VertexId> = elimination.successors(v).collect();
        let mut reduction = 0.0;
        for i in elimination.predecessors(v) {
            let (n_i, length_i) = (self.n_above[i.index()], self.length_above[i.index()]);
            for &k in &behind {
                let (n_k, length_k) = (self.n_below[k.index()], self.length_below[k.index()]);
                reduction += if elimination.label(i, k).is_some() {
                    length_i * n_k + n_i * length_k + 2.0 * n_i * n_k
                } else {
                    n_i * n_k
                };
            }
        }
        reduction
    }
}

/// Vertices whose scores may have changed after an elimination between `before` and `behind`, each once
/// or more often.
pub(crate) fn changed(
    scope: Scope,
    elimination: &Elimination<'_>,
    linear: &LinearGraph,
    before: &[VertexId],
    behind: &[VertexId],
) -> Vec<VertexId> {
    let neighbours = || before.iter().chain(behind).copied();
    match scope {
        Scope::None => Vec::new(),
        Scope::Neighbours => neighbours().collect(),
        Scope::Between => {
            // What lies between is behind one of `before` and before one of `behind`: the smaller side.
            let n_out: usize = before.iter().map(|i| elimination.degrees(*i).1).sum();
            let n_in: usize = behind.iter().map(|k| elimination.degrees(*k).0).sum();
            let mut vertices: Vec<VertexId> = neighbours().collect();
            if n_out <= n_in {
                vertices.extend(before.iter().flat_map(|i| elimination.successors(*i)));
            } else {
                vertices.extend(behind.iter().flat_map(|k| elimination.predecessors(*k)));
            }
            once(vertices)
        }
        Scope::Second => {
            let mut vertices: Vec<VertexId> = neighbours().collect();
            for u in neighbours().filter(|u| elimination.can_eliminate(*u)) {
                vertices.extend(elimination.predecessors(u));
                vertices.extend(elimination.successors(u));
            }
            once(vertices)
        }
        Scope::All => linear.intermediates().collect(),
    }
}

fn once(mut vertices: Vec<VertexId>) -> Vec<VertexId> {
    vertices.sort_unstable();
    vertices.dedup();
    vertices
}
