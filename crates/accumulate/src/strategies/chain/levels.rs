//! Depth levels, and the Jacobian as a product of local Jacobians in the best order of multiplication (the notes,
//! section 4; Griewank and Naumann, Accumulating Jacobians as chained sparse matrix products, 2003).
//!
//! | the notes | here |
//! | --- | --- |
//! | L(v): longest path from a root; roots are at level 0, terminals at the last (definition 3.4) | [`Levels`] |
//! | cross-level edge, segmented by copies of its tail or its head (figure 3.1 (b), (c)) | [`Segment`] |
//! | local Jacobian between two levels | `Matrix` |
//! | A(B(CD)) | [`bracketing`] |
//!
//! In: a graph with simple chains and blocks replaced. Out: labels of the derivatives.
//!
//! The sparsity pattern of a product of local Jacobians does not depend on the order of multiplication. The cost of the
//! last product of a range therefore only depends on the range and its split; dynamic programming over ranges finds the
//! cheapest order. Copies are 1 and cost nothing.

use super::web::Web;
use crate::program::is_unit;
use crate::{Budget, Builder, LabelId, StopReason, VertexId};
use chainrule_base::Id;
use std::collections::BTreeMap;

/// Vertex whose copies fill the levels that an edge crosses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// The start vertex: the label is in the last segment.
    Tail,
    /// The end vertex: the label is in the first segment.
    Head,
}

/// End from which levels are counted; a vertex is placed as near to that end as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// From the sources, as in definition 3.4.
    Sources,
    /// From the sinks.
    Sinks,
}

/// Cost of a product of two local Jacobians.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Rows times inner dimension times columns.
    Dense,
    /// Products of nonzero entries, without those with a copy.
    Sparse,
    /// As sparse, also without products by labels 1 and -1.
    Free,
}

/// Options of accumulation by levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// End from which levels are counted.
    pub side: Side,
    /// Segmentation of edges that cross levels.
    pub segment: Segment,
    /// Cost of a product.
    pub cost: Cost,
}

/// Maximum number of levels; time grows with its third power.
pub const MAX_LEVELS: usize = 200;

/// Level of each vertex.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Levels {
    /// Level, by vertex.
    pub of: Vec<usize>,
    /// Level of the sinks.
    pub depth: usize,
}

impl Levels {
    /// Returns the levels of a web. Linear.
    pub(super) fn new(web: &Web<'_>, side: Side) -> Self {
        let mut of = vec![0; web.linear.n_vertices()];
        let edges: Vec<_> = web.edges().map(|(u, v, _)| (u.index(), v.index())).collect();
        // Ascending by source forwards, descending backwards: the neighbours that determine a level are complete.
        match side {
            Side::Sources => edges.iter().for_each(|&(u, v)| of[v] = of[v].max(of[u] + 1)),
            Side::Sinks => edges.iter().rev().for_each(|&(u, v)| of[u] = of[u].max(of[v] + 1)),
        }
        let depth = edges.iter().map(|&(u, v)| of[u].max(of[v])).max().unwrap_or(0);
        if side == Side::Sinks {
            of.iter_mut().for_each(|level| *level = depth - *level);
        }
        for source in web.linear.sources() {
            of[source.index()] = 0;
        }
        for sink in web.linear.sinks() {
            of[sink.index()] = depth;
        }
        Self { of, depth }
    }
}

/// A label, or 1.
type Entry = Option<LabelId>;

/// A sparse matrix by rows; rows and columns are vertices, or copies of vertices.
#[derive(Clone, Debug, Default)]
struct Matrix {
    rows: BTreeMap<VertexId, BTreeMap<VertexId, Entry>>,
}

/// Accumulates by local Jacobians; returns the labels as (sink, source, label).
///
/// # Errors
/// [`StopReason::ScoreBudget`] if there are more levels than [`MAX_LEVELS`], or visiting the local Jacobians of all
/// ranges of levels takes more than the budget.
pub(super) fn accumulate(
    web: &Web<'_>,
    builder: &mut Builder,
    budget: &Budget,
    options: Options,
) -> Result<Vec<(VertexId, VertexId, LabelId)>, StopReason> {
    let levels = Levels::new(web, options.side);
    if levels.depth > MAX_LEVELS {
        return Err(StopReason::ScoreBudget);
    }
    if levels.depth == 0 {
        return Ok(Vec::new());
    }
    let factors = local_jacobians(web, &levels, options.segment);
    let splits = best_splits(web, builder, &factors, options.cost, budget.scores)?;
    // Ranges to be multiplied, after the ranges that they consist of.
    let mut order = Vec::new();
    let mut open = vec![(0, factors.len())];
    while let Some((i, j)) = open.pop() {
        if j - i > 1 {
            order.push((i, j));
            open.push((i, splits[&(i, j)]));
            open.push((splits[&(i, j)], j));
        }
    }
    let mut made: BTreeMap<(usize, usize), Matrix> =
        factors.into_iter().enumerate().map(|(i, matrix)| ((i, i + 1), matrix)).collect();
    for &(i, j) in order.iter().rev() {
        let k = splits[&(i, j)];
        if let (Some(first), Some(second)) = (made.remove(&(i, k)), made.remove(&(k, j))) {
            made.insert((i, j), multiply(web, builder, &first, &second));
        }
    }
    let jacobian = made.pop_first().map(|(_, matrix)| matrix).unwrap_or_default();
    let mut ends = Vec::new();
    for (source, row) in &jacobian.rows {
        for (sink, entry) in row {
            ends.extend(entry.map(|label| (*sink, *source, label)));
        }
    }
    Ok(ends)
}

/// Returns the matrices between consecutive levels, with segmented cross-level edges.
fn local_jacobians(web: &Web<'_>, levels: &Levels, segment: Segment) -> Vec<Matrix> {
    let mut factors = vec![Matrix::default(); levels.depth];
    for (u, v, label) in web.edges() {
        let (low, high) = (levels.of[u.index()], levels.of[v.index()]);
        let labelled = match segment {
            Segment::Tail => high - 1,
            Segment::Head => low,
        };
        for (level, factor) in factors.iter_mut().enumerate().take(high).skip(low) {
            let row = if level <= labelled { u } else { v };
            let column = if level < labelled { u } else { v };
            let entry = (level == labelled).then_some(label);
            factor.rows.entry(row).or_default().insert(column, entry);
        }
    }
    factors
}

/// Kind of an entry, known without computing it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Known {
    /// A copy.
    Copy,
    /// A label that is 1 or -1.
    Unit,
    /// Any other label.
    Other,
}

/// Sparsity pattern of a local Jacobian, with the number of entries that cost something in each row and column.
#[derive(Clone, Debug, Default)]
struct Shape {
    rows: BTreeMap<VertexId, BTreeMap<VertexId, Known>>,
    in_row: BTreeMap<VertexId, u64>,
    in_column: BTreeMap<VertexId, u64>,
}

impl Shape {
    fn of(rows: BTreeMap<VertexId, BTreeMap<VertexId, Known>>, cost: Cost) -> Self {
        let mut shape = Self::default();
        for (u, row) in &rows {
            for (v, known) in row {
                let paid = u64::from(
                    cost == Cost::Dense || *known > if cost == Cost::Free { Known::Unit } else { Known::Copy },
                );
                *shape.in_row.entry(*u).or_default() += paid;
                *shape.in_column.entry(*v).or_default() += paid;
            }
        }
        Self { rows, ..shape }
    }

    /// Returns the shape of a product, and the number of visited entries.
    fn times(&self, web: &Web<'_>, second: &Self, cost: Cost) -> (Self, u64) {
        let mut rows: BTreeMap<VertexId, BTreeMap<VertexId, Known>> = BTreeMap::new();
        let mut work = 0;
        for (u, row) in &self.rows {
            for (m, left) in row {
                for (v, right) in second.rows.get(m).into_iter().flatten() {
                    work += 1;
                    if web.serves(*u, *v) {
                        let product = (*left).max(*right);
                        // A sum is not known to be 1, whatever its terms are.
                        rows.entry(*u).or_default().entry(*v).and_modify(|k| *k = Known::Other).or_insert(product);
                    }
                }
            }
        }
        (Self::of(rows, cost), work)
    }

    fn products(&self, second: &Self, cost: Cost) -> u64 {
        if cost == Cost::Dense {
            return self.rows.len() as u64 * second.rows.len() as u64 * second.in_column.len() as u64;
        }
        let common = self.in_column.iter().filter_map(|(m, n)| Some(n * second.in_row.get(m)?));
        common.sum()
    }
}

/// Returns the best split of each range of factors.
fn best_splits(
    web: &Web<'_>,
    builder: &Builder,
    factors: &[Matrix],
    cost: Cost,
    budget: u64,
) -> Result<BTreeMap<(usize, usize), usize>, StopReason> {
    let known = |entry: &Entry| match entry {
        None => Known::Copy,
        Some(label) if is_unit(builder.kind(*label)) => Known::Unit,
        Some(_) => Known::Other,
    };
    let shapes: Vec<Shape> = factors
        .iter()
        .map(|factor| {
            let row = |row: &BTreeMap<VertexId, Entry>| row.iter().map(|(v, entry)| (*v, known(entry))).collect();
            Shape::of(factor.rows.iter().map(|(u, r)| (*u, row(r))).collect(), cost)
        })
        .collect();
    let mut ranges: BTreeMap<(usize, usize), Shape> = BTreeMap::new();
    let mut work = 0;
    for (i, first) in shapes.iter().enumerate() {
        ranges.insert((i, i + 1), first.clone());
        for (j, next) in shapes.iter().enumerate().skip(i + 1) {
            let (range, looked_at) = ranges[&(i, j)].times(web, next, cost);
            work += looked_at;
            // An entry of a local Jacobian takes more memory than a score.
            if work > budget / 4 {
                return Err(StopReason::ScoreBudget);
            }
            ranges.insert((i, j + 1), range);
        }
    }
    let splits = bracketing(shapes.len(), |i, k, j| ranges[&(i, k)].products(&ranges[&(k, j)], cost)).1;
    Ok(splits)
}

/// Returns the cost of the cheapest bracketing of a product of `n` matrices, and the split of each range (i, j) of more
/// than one matrix. `cost(i, k, j)` is the cost of multiplying the products of the ranges (i, k) and (k, j). The first
/// split wins on ties. O(n^3).
///
/// ```
/// use chainrule_accumulate::chain::bracketing;
/// // 10 x 100, 100 x 5, 5 x 50: (AB)C takes 7,500 multiplications, A(BC) 75,000.
/// let sizes = [10, 100, 5, 50];
/// let (cost, splits) = bracketing(3, |i, k, j| sizes[i] * sizes[k] * sizes[j]);
/// assert_eq!((cost, splits[&(0, 3)]), (7_500, 2));
/// ```
pub fn bracketing(
    n: usize,
    mut cost: impl FnMut(usize, usize, usize) -> u64,
) -> (u64, BTreeMap<(usize, usize), usize>) {
    let mut best: BTreeMap<(usize, usize), u64> = (0..n).map(|i| ((i, i + 1), 0)).collect();
    let mut splits = BTreeMap::new();
    for length in 2..=n {
        for i in 0..=n - length {
            let j = i + length;
            let candidates = (i + 1..j).map(|k| (best[&(i, k)] + best[&(k, j)] + cost(i, k, j), k));
            if let Some((least, k)) = candidates.min() {
                best.insert((i, j), least);
                splits.insert((i, j), k);
            }
        }
    }
    (best.get(&(0, n)).copied().unwrap_or(0), splits)
}

fn multiply(web: &Web<'_>, builder: &mut Builder, first: &Matrix, second: &Matrix) -> Matrix {
    let mut product = Matrix::default();
    for (u, row) in &first.rows {
        let mut terms: BTreeMap<VertexId, Vec<(Entry, Entry)>> = BTreeMap::new();
        for (m, left) in row {
            for (v, right) in second.rows.get(m).into_iter().flatten() {
                if web.serves(*u, *v) {
                    terms.entry(*v).or_default().push((*left, *right));
                }
            }
        }
        for (v, terms) in terms {
            let entry = if terms == [(None, None)] {
                None
            } else {
                for term in terms {
                    let factors: Vec<LabelId> = [term.0, term.1].into_iter().flatten().collect();
                    builder.add(&factors);
                }
                Some(builder.close())
            };
            product.rows.entry(*u).or_default().insert(v, entry);
        }
    }
    product
}
