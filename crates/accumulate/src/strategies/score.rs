//! Heuristics of vertex elimination as scores; the vertex of the lowest score is eliminated next.
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
//! In: an elimination at some stage. Out: scores, and the vertices whose scores a step changes ([`Scope`]). Degrees
//! count multiplications as the option [`Counting`] says.

use crate::vertex::{Degree, Elimination, product_label, sum_label};
use crate::{Counting, Label, LinearGraph, VertexId};
use chainrule_base::Id;
use std::cmp::Ordering;

/// Score that selects the next vertex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Score {
    /// Lowest number: forward elimination.
    Forward,
    /// Highest number: reverse elimination.
    Reverse,
    /// Fewest multiplications.
    Markowitz,
    /// Fewest multiplications, minus those that the vertex takes if eliminated last: the number of sources that it
    /// depends on times the number of sinks that depend on it.
    RelativeMarkowitz,
    /// Least fill-in; among equals, fewest multiplications.
    FillIn,
    /// Fewest multiplications, plus the increase of the neighbours' costs.
    Damage,
    /// Largest decrease of the overall Markowitz degree, the sum over all intermediates.
    OverallReduction,
    /// Largest decrease of the total length of all paths from sources to sinks. Path counts are rounded to doubles.
    PathLength,
}

/// Vertices whose scores a step may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// No vertex.
    None,
    /// Neighbours of the eliminated vertex.
    Neighbours,
    /// Neighbours, and vertices between two of them.
    Between,
    /// Neighbours, and neighbours of intermediate neighbours.
    Second,
    /// All vertices.
    All,
}

impl Score {
    /// All scores.
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
            // A vertex u with edges i -> u -> k has one fill-in pair less once i -> k exists.
            Self::FillIn => Scope::Between,
            // As above, and the labels around i and k, whose number and kind determine the damage. If both i and k are
            // sources or sinks, neither degree matters.
            Self::Damage | Self::OverallReduction => Scope::Second,
            Self::PathLength => Scope::All,
        }
    }
}

impl Score {
    /// Returns the work before the first step, in edges visited. [`Self::RelativeMarkowitz`] computes the sources and
    /// sinks that each vertex reaches, 64 at a time.
    pub(crate) fn preparation(self, linear: &LinearGraph) -> u64 {
        if self != Self::RelativeMarkowitz {
            return 0;
        }
        let passes = linear.sources().count().div_ceil(64) + linear.sinks().count().div_ceil(64);
        (passes as u64).saturating_mul((linear.n_edges() + linear.n_vertices()) as u64)
    }
}

/// Value of a score; lower is better. Doubles represent all counts below 2^53 exactly.
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

/// Evaluator of one score during one elimination.
pub(crate) struct Evaluator {
    score: Score,
    counting: Counting,
    /// Cost of each vertex if eliminated last, for [`Score::RelativeMarkowitz`].
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

    /// Updates the data shared by all scores.
    pub(crate) fn after_step(&mut self, elimination: &Elimination<'_>) {
        if self.score == Score::PathLength {
            self.paths = Paths::of(elimination);
        }
    }

    /// Returns the score of a remaining intermediate. At most linear in its Markowitz degree.
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

    /// Returns the increase of the neighbours' costs if `v` is eliminated.
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

/// Returns vertices on one side with the labels of their edges.
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

/// Updates a degree for a product that is added to an edge or makes a new one.
fn replace(degree: &mut Degree, old: Option<Label>, product: Label, size: u64) {
    if let Some(old) = old {
        *degree -= Degree::of(old, size);
        *degree += Degree::of(sum_label(old, product), size);
    } else {
        *degree += Degree::of(product, size);
    }
}

/// Returns the number of new label entries if `v` is eliminated.
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

/// Returns, for each vertex, the number of sources that it depends on times the number of sinks that depend on it, with
/// sizes; 0 for sources and sinks. O(edges times sources and sinks / 64).
fn last_degrees(elimination: &Elimination<'_>) -> Vec<u64> {
    let linear = elimination.linear();
    let n = linear.n_vertices();
    let mut above = vec![0; n];
    let mut below = vec![0; n];
    // 64 sources or sinks at a time, so that memory stays linear.
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

/// Numbers and total lengths of paths (section 2.3), for each vertex; 0 for eliminated vertices.
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
    /// Counts the paths. Linear in the graph.
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

    /// Returns the decrease of the total path length if `v` is eliminated: paths that become a new edge lose one edge,
    /// paths that coalesce with others vanish.
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

/// Returns vertices whose scores may have changed after an elimination between `before` and `behind`, possibly with
/// repetitions.
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
            // A vertex between is a successor of one of `before` and a predecessor of one of `behind`: walk the smaller
            // side.
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
