//! Depth levels, and the Jacobian as a product of local Jacobians in the best order of multiplication
//! (the notes, section 4; Griewank and Naumann, Accumulating Jacobians as chained sparse matrix
//! products, 2003).
//!
//! | the notes | here |
//! | --- | --- |
//! | L(v): length of the longest path from a root; roots are at level 0, terminals at the last (definition 3.4) | [`Levels`] |
//! | cross-level edge, segmented by copies of its tail or its head (figure 3.1 (b), (c)) | [`Segment`] |
//! | local Jacobian between two levels | `Matrix` |
//! | A(B(CD)) | [`bracketing`] |
//!
//! In: a graph whose simple chains and blocks are replaced. Out: labels of the derivatives.
//!
//! The entries of a product of local Jacobians are where they are whatever the order in which it is
//! multiplied, so the cost of the last product of a range depends on the range and on where it is split
//! alone; dynamic programming over ranges finds the cheapest order. Copies are 1 and cost nothing.

use super::web::Web;
use crate::{Builder, LabelId, StopReason, VertexId};
use chainrule_base::Id;
use std::collections::BTreeMap;

/// Whose copies fill the levels that an edge crosses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Those of the vertex where it starts: its label stands in the last segment.
    Tail,
    /// Those of the vertex where it ends: its label stands in the first segment.
    Head,
}

/// What a product of two local Jacobians costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Rows times inner dimension times columns.
    Dense,
    /// The products of entries that are not zero, those with a 1 not counted.
    Sparse,
}

/// The most levels that are tried: time grows with their third power.
pub const MAX_LEVELS: usize = 150;

/// The level of each vertex.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Levels {
    /// By vertex.
    pub of: Vec<usize>,
    /// The level of the sinks.
    pub depth: usize,
}

impl Levels {
    /// The levels in a web. Linear.
    pub(super) fn new(web: &Web<'_>) -> Self {
        let mut of = vec![0; web.linear.n_vertices()];
        let mut depth = 0;
        for (u, v, _) in web.edges() {
            // Ascending by source: the level of u is complete.
            of[v.index()] = of[v.index()].max(of[u.index()] + 1);
            depth = depth.max(of[v.index()]);
        }
        for sink in web.linear.sinks() {
            of[sink.index()] = depth;
        }
        Self { of, depth }
    }
}

/// A label, or 1.
type Entry = Option<LabelId>;

/// A sparse matrix by rows; rows and columns are vertices, or copies of such.
#[derive(Clone, Debug, Default)]
struct Matrix {
    rows: BTreeMap<VertexId, BTreeMap<VertexId, Entry>>,
}

/// Accumulates by local Jacobians: the labels as (sink, source, label).
///
/// # Errors
/// [`StopReason::EvaluationBudget`] when there are more levels than [`MAX_LEVELS`].
pub(super) fn accumulate(
    web: &Web<'_>,
    builder: &mut Builder,
    segment: Segment,
    cost: Cost,
) -> Result<Vec<(VertexId, VertexId, LabelId)>, StopReason> {
    let levels = Levels::new(web);
    if levels.depth > MAX_LEVELS {
        return Err(StopReason::EvaluationBudget);
    }
    if levels.depth == 0 {
        return Ok(Vec::new());
    }
    let factors = local_jacobians(web, &levels, segment);
    let splits = best_splits(web, &factors, cost);
    // Ranges that are to be multiplied, after those that they are made of.
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

/// The matrices between consecutive levels, cross-level edges segmented.
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

/// How many products of labels there are, and where the product is not zero.
fn pattern_of_product(web: &Web<'_>, first: &Matrix, second: &Matrix) -> (Matrix, u64) {
    let mut product = Matrix::default();
    let mut n_products = 0;
    for (u, row) in &first.rows {
        for (m, left) in row {
            for (v, right) in second.rows.get(m).into_iter().flatten() {
                if !web.serves(*u, *v) {
                    continue;
                }
                n_products += u64::from(left.is_some() && right.is_some());
                let entry = product.rows.entry(*u).or_default().entry(*v).or_insert(None);
                *entry = entry.or(*left).or(*right);
            }
        }
    }
    (product, n_products)
}

/// For each range of factors where to split it.
fn best_splits(web: &Web<'_>, factors: &[Matrix], cost: Cost) -> BTreeMap<(usize, usize), usize> {
    let n = factors.len();
    let mut patterns: BTreeMap<(usize, usize), Matrix> = BTreeMap::new();
    for (i, factor) in factors.iter().enumerate() {
        patterns.insert((i, i + 1), factor.clone());
        let mut range = factor.clone();
        for (j, next) in factors.iter().enumerate().skip(i + 1) {
            range = pattern_of_product(web, &range, next).0;
            patterns.insert((i, j + 1), range.clone());
        }
    }
    bracketing(n, |i, k, j| match cost {
        Cost::Sparse => pattern_of_product(web, &patterns[&(i, k)], &patterns[&(k, j)]).1,
        Cost::Dense => {
            let width = |from: usize, to: usize| {
                let columns: std::collections::BTreeSet<_> =
                    patterns[&(from, to)].rows.values().flat_map(BTreeMap::keys).collect();
                columns.len() as u64
            };
            patterns[&(i, k)].rows.len() as u64 * width(i, k) * width(k, j)
        }
    })
    .1
}

/// The cheapest bracketing of a product of `n` matrices, and for each range (i, j) of more than one matrix
/// where it is split; `cost(i, k, j)` is that of multiplying the products of the ranges (i, k) and (k, j).
/// The first split on ties. O(n^3).
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
