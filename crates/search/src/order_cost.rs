//! Costs of vertex orders without a program, on bit sets of neighbours: a word operation handles 64 of them. Searches
//! evaluate a hundred thousand orders a second.
//!
//! In: a linearised graph, a counting rule, an order. Out: the multiplications and additions of each vertex.
//!
//! The remaining graph only depends on the set of eliminated vertices, not on their order. An edge i -> k exists if a
//! path from i to k leads through that set (or is an edge of the graph). Its label is 1 or -1 if there is exactly one
//! such path and all its labels are; it depends on the point if a label on one of the paths does. So a change of the
//! order between two positions changes no cost elsewhere, and stages stored along the order are valid for all orders
//! with the same prefix.

use crate::bit_rows::{Row, absorb, bits, insert, mask, products, restrict, single, size, weight, weights};
use chainrule_accumulate::reachability::Reachability;
use chainrule_accumulate::{Counting, Label, LinearGraph, VertexId};
use chainrule_base::Id;

/// Objective of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Objective {
    /// Multiplications, as in the literature.
    Multiplications,
    /// Multiplications and additions, as generated code takes.
    Operations,
}

/// Evaluator of orders. Vertices are numbered from 0, the first intermediate.
pub(crate) trait OrderCost {
    /// Sets the current order.
    fn start(&mut self, order: &[u32]);
    /// Moves to the stage in which the first `place` vertices of the order are eliminated.
    fn seek(&mut self, order: &[u32], place: usize);
    /// Eliminates these vertices in sequence and stores the cost of each. Returns their sum; `None` as soon as it
    /// exceeds `limit`.
    fn eliminate(&mut self, vertices: &[u32], costs: &mut Vec<u64>, limit: u64) -> Option<u64>;
    /// Replaces the current order by one that differs in positions `first..end`.
    fn accept(&mut self, order: &[u32], first: usize, end: usize);
    /// Returns the number of word operations so far.
    fn work(&self) -> u64;
}

/// Maximum number of columns of bit sets: intermediates and sources, or intermediates and sinks.
const MAX_COLUMNS: usize = 64 * 32;

/// Returns an evaluator for a graph; `None` for graphs that are too large. `sizes` are those of a vector graph.
pub(crate) fn order_cost(
    linear: &LinearGraph,
    sizes: Option<&[u64]>,
    counting: Counting,
    objective: Objective,
) -> Option<Box<dyn OrderCost>> {
    let n_columns = linear.intermediates().len() + linear.sources().len().max(linear.sinks().len());
    if n_columns > MAX_COLUMNS {
        return None;
    }
    let n_words = n_columns.div_ceil(64);
    Some(match counting {
        Counting::Plain => with_flags::<1>(n_words, linear, sizes, objective),
        Counting::UnitFree => with_flags::<2>(n_words, linear, sizes, objective),
        Counting::Folded => with_flags::<3>(n_words, linear, sizes, objective),
    })
}

fn with_flags<const F: usize>(
    n_words: usize,
    linear: &LinearGraph,
    sizes: Option<&[u64]>,
    objective: Objective,
) -> Box<dyn OrderCost> {
    match n_words {
        0..=2 => Box::new(Stages::<2, F>::new(linear, sizes, objective)),
        3 => Box::new(Stages::<3, F>::new(linear, sizes, objective)),
        4..=8 => Box::new(Stages::<8, F>::new(linear, sizes, objective)),
        _ => Box::new(Stages::<32, F>::new(linear, sizes, objective)),
    }
}

/// The remaining graph. Columns are intermediates, then sources (before) or sinks (behind).
#[derive(Clone)]
struct Stage<const W: usize, const F: usize> {
    /// Rows of intermediates, then of sinks.
    before: Vec<Row<W, F>>,
    /// Rows of intermediates.
    behind: Vec<Row<W, F>>,
}

/// Distance of stored stages, in positions.
const STRIDE: usize = 8;

struct Stages<const W: usize, const F: usize> {
    n_intermediates: usize,
    objective: Objective,
    /// Sizes of the vertices, by column; empty if all are 1.
    sizes_before: Vec<u64>,
    sizes_behind: Vec<u64>,
    /// For each intermediate, then for each sink, the columns that an edge may come from; empty if all may.
    mask_before: Vec<[u64; W]>,
    /// For each intermediate, the columns that an edge may lead to; empty if all may.
    mask_behind: Vec<[u64; W]>,
    now: Stage<W, F>,
    /// Stage c is the one in which the first `c * STRIDE` vertices of the order are eliminated.
    stored: Vec<Stage<W, F>>,
    work: u64,
}

impl<const W: usize, const F: usize> Stages<W, F> {
    fn new(linear: &LinearGraph, sizes: Option<&[u64]>, objective: Objective) -> Self {
        let (n_sources, n_sinks) = (linear.sources().len(), linear.sinks().len());
        let n_intermediates = linear.intermediates().len();
        let reachability = Reachability::new(linear);
        // Columns and rows of the two sides: intermediates first, then sources or sinks.
        let number = |v: VertexId| match v.index() {
            v if v < n_sources => n_intermediates + v,
            v => v - n_sources,
        };
        let mut now =
            Stage { before: vec![[[0; W]; F]; n_intermediates + n_sinks], behind: vec![[[0; W]; F]; n_intermediates] };
        for (_, edge) in linear.edges() {
            if reachability.as_ref().is_some_and(|reachability| !reachability.serves(edge.source, edge.target)) {
                continue;
            }
            let (i, k) = (number(edge.source), number(edge.target));
            let paid = !matches!(edge.label, Label::One | Label::MinusOne);
            let var = edge.label == Label::Var;
            insert(&mut now.before[k], i, paid, var);
            if i < n_intermediates {
                insert(&mut now.behind[i], k, paid, var);
            }
        }
        let behind_all: Vec<VertexId> = linear.intermediates().chain(linear.sinks()).collect();
        let before_all: Vec<VertexId> = linear.intermediates().chain(linear.sources()).collect();
        let (mut mask_before, mut mask_behind) = (Vec::new(), Vec::new());
        if let Some(reachability) = &reachability {
            mask_before = behind_all.iter().map(|k| mask(&before_all, |i| reachability.serves(i, *k))).collect();
            mask_behind = linear.intermediates().map(|i| mask(&behind_all, |k| reachability.serves(i, k))).collect();
        }
        let sizes_of = |columns: &[VertexId]| {
            sizes.map_or(Vec::new(), |sizes| columns.iter().map(|v| sizes[v.index()]).collect::<Vec<u64>>())
        };
        Self {
            n_intermediates,
            objective,
            sizes_before: sizes_of(&before_all),
            sizes_behind: sizes_of(&behind_all),
            mask_before,
            mask_behind,
            stored: vec![now.clone(); n_intermediates.div_ceil(STRIDE)],
            now,
            work: 0,
        }
    }

    /// Eliminates one vertex and returns its cost.
    fn step(&mut self, v: usize) -> u64 {
        let (before, behind) = (self.now.before[v], self.now.behind[v]);
        let touched = 1 + bits(behind[0]).count() + bits(before[0]).count();
        self.work += (touched * 4 * W * F) as u64;
        let masked = !self.mask_before.is_empty();
        let operations = self.objective == Objective::Operations;
        // Each entry of a matrix product takes this many multiplications, and one addition less.
        let size = match self.objective {
            Objective::Multiplications => size(&self.sizes_behind, v),
            Objective::Operations => 2 * size(&self.sizes_behind, v) - 1,
        };
        let mut cost = 0;
        if !masked {
            cost = size * products(&weights(&before, &self.sizes_before), &weights(&behind, &self.sizes_behind));
        }
        // Edges into sinks matter only for additions, and if not all of them are made.
        let n_rows = if masked || operations { self.now.before.len() } else { self.n_intermediates };
        for k in bits(behind[0]).take_while(|k| *k < n_rows) {
            let mut new = before;
            let size_k = crate::bit_rows::size(&self.sizes_behind, k);
            if masked {
                restrict(&mut new, &self.mask_before[k]);
                cost += size * products(&weights(&new, &self.sizes_before), &single(&behind, k, size_k));
            }
            let shared = absorb(&mut self.now.before[k], v, &new, &behind, k);
            if operations {
                cost += size_k * weight(&shared, &self.sizes_before);
            }
        }
        for i in bits(before[0]).take_while(|i| *i < self.n_intermediates) {
            let mut new = behind;
            if masked {
                restrict(&mut new, &self.mask_behind[i]);
            }
            absorb(&mut self.now.behind[i], v, &new, &before, i);
        }
        cost
    }

    /// Returns the work of copying a stage: several words are copied in the time of an operation.
    fn copied(&self) -> u64 {
        ((self.now.before.len() + self.now.behind.len()) * W * F / 4) as u64
    }

    fn store(&mut self, order: &[u32], first: usize, end: usize) {
        let mut place = first / STRIDE * STRIDE;
        self.seek(order, place);
        while place + STRIDE < end.min(order.len()) {
            for v in &order[place..place + STRIDE] {
                self.step(*v as usize);
            }
            place += STRIDE;
            self.stored[place / STRIDE].clone_from(&self.now);
            self.work += self.copied();
        }
    }
}

impl<const W: usize, const F: usize> OrderCost for Stages<W, F> {
    fn start(&mut self, order: &[u32]) {
        self.store(order, 0, order.len());
    }

    fn seek(&mut self, order: &[u32], place: usize) {
        let Some(stage) = self.stored.get(place / STRIDE) else { return };
        self.now.clone_from(stage);
        self.work += self.copied();
        for v in &order[place / STRIDE * STRIDE..place] {
            self.step(*v as usize);
        }
    }

    fn eliminate(&mut self, vertices: &[u32], costs: &mut Vec<u64>, limit: u64) -> Option<u64> {
        costs.clear();
        let mut sum = 0;
        for v in vertices {
            let cost = self.step(*v as usize);
            costs.push(cost);
            sum += cost;
            if sum > limit {
                return None;
            }
        }
        Some(sum)
    }

    fn accept(&mut self, order: &[u32], first: usize, end: usize) {
        self.store(order, first, end);
    }

    fn work(&self) -> u64 {
        self.work
    }
}
