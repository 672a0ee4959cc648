//! Costs of edge histories without a program: the counterpart of `order_cost.rs` for edges.
//!
//! In: a linearised graph, a counting rule, a history (`edge.rs`). Out: the cost of each step.
//!
//! Unlike for vertices, the remaining graph depends on the order of the steps. But two histories that reach the same
//! graph with the same labels cost the same from there on, so a changed history is evaluated until it reaches a stage
//! of the old one ([`EdgeCost::is_stored`]).

use crate::bit_rows::{Row, absorb, bits, contains, insert, mask, products, restrict, single, weight, weights};
use crate::order_cost::Objective;
use chainrule_accumulate::edge::{Direction, Step};
use chainrule_accumulate::reachability::Reachability;
use chainrule_accumulate::{Counting, Label, LinearGraph, VertexId};
use chainrule_base::Id;
use smallvec::SmallVec;

/// Distance of stored stages, in steps.
pub(crate) const STRIDE: usize = 8;

/// Evaluator of histories.
pub(crate) trait EdgeCost {
    /// Moves to the stage after the first `place` steps.
    fn seek(&mut self, history: &[Step], place: usize);
    /// Performs a step and returns its cost; `None` if it is impossible.
    fn step(&mut self, step: Step) -> Option<u64>;
    /// Returns whether the current stage equals the one stored after `place` steps, a multiple of [`STRIDE`].
    fn is_stored(&self, place: usize) -> bool;
    /// Replaces the stored history by one that differs from position `first` on.
    fn accept(&mut self, history: &[Step], first: usize);
    /// Stores the predecessors or successors of a vertex into `neighbours`.
    fn neighbours(&self, v: VertexId, side: Direction, neighbours: &mut Vec<VertexId>);
}

/// Maximum number of vertices for bit sets.
const MAX_VERTICES: usize = 64 * 8;

/// Returns an evaluator for a graph; `None` for graphs that are too large.
pub(crate) fn edge_cost(linear: &LinearGraph, counting: Counting, objective: Objective) -> Option<Box<dyn EdgeCost>> {
    if linear.n_vertices() > MAX_VERTICES {
        return None;
    }
    Some(match counting {
        Counting::Plain => with_flags::<1>(linear, objective),
        Counting::UnitFree => with_flags::<2>(linear, objective),
        Counting::Folded => with_flags::<3>(linear, objective),
    })
}

fn with_flags<const F: usize>(linear: &LinearGraph, objective: Objective) -> Box<dyn EdgeCost> {
    match linear.n_vertices().div_ceil(64) {
        0..=2 => Box::new(Stages::<2, F>::new(linear, objective)),
        3 => Box::new(Stages::<3, F>::new(linear, objective)),
        _ => Box::new(Stages::<8, F>::new(linear, objective)),
    }
}

/// The remaining graph: two sides for each vertex. Columns are vertices.
#[derive(Clone, PartialEq)]
struct Stage<const W: usize, const F: usize> {
    before: Vec<Row<W, F>>,
    behind: Vec<Row<W, F>>,
}

struct Stages<const W: usize, const F: usize> {
    linear: LinearGraph,
    objective: Objective,
    /// For each vertex, the columns that in-edges may come from and out-edges may lead to; empty if all may.
    mask_before: Vec<[u64; W]>,
    mask_behind: Vec<[u64; W]>,
    now: Stage<W, F>,
    /// Stage c is the one after the first `c * STRIDE` steps. Stages beyond the end of the history are stale.
    stored: Vec<Stage<W, F>>,
}

impl<const W: usize, const F: usize> Stages<W, F> {
    fn new(linear: &LinearGraph, objective: Objective) -> Self {
        let n = linear.n_vertices();
        let reachability = Reachability::new(linear);
        let mut now = Stage { before: vec![[[0; W]; F]; n], behind: vec![[[0; W]; F]; n] };
        for (_, edge) in linear.edges() {
            if reachability.as_ref().is_some_and(|reachability| !reachability.serves(edge.source, edge.target)) {
                continue;
            }
            let paid = !matches!(edge.label, Label::One | Label::MinusOne);
            let var = edge.label == Label::Var;
            insert(&mut now.before[edge.target.index()], edge.source.index(), paid, var);
            insert(&mut now.behind[edge.source.index()], edge.target.index(), paid, var);
        }
        let all: Vec<VertexId> = (0..n).map(VertexId::new).collect();
        let (mut mask_before, mut mask_behind) = (Vec::new(), Vec::new());
        if let Some(reachability) = &reachability {
            mask_before = all.iter().map(|k| mask(&all, |i| reachability.serves(i, *k))).collect();
            mask_behind = all.iter().map(|i| mask(&all, |k| reachability.serves(*i, k))).collect();
        }
        let stored = vec![now.clone()];
        Self { linear: linear.clone(), objective, mask_before, mask_behind, now, stored }
    }

    fn is_end(&self, v: usize) -> bool {
        let v = VertexId::new(v);
        self.linear.is_source(v) || self.linear.is_sink(v)
    }

    /// Adds the label from `i` to `j` times all labels into `i` to the edges into `j`.
    fn front(&mut self, i: usize, j: usize) -> Option<u64> {
        if self.is_end(i) || !contains(&self.now.behind[i][0], j) {
            return None;
        }
        let (mut new, side) = (self.now.before[i], self.now.behind[i]);
        if let Some(mask) = self.mask_before.get(j) {
            restrict(&mut new, mask);
        }
        let mut cost = products(&weights(&new, &[]), &single(&side, j, 1));
        let shared = absorb(&mut self.now.before[j], i, &new, &side, j);
        if self.objective == Objective::Operations {
            cost += weight(&shared, &[]);
        }
        let row = self.now.before[j];
        for l in bits(new[0]) {
            copy(&mut self.now.behind[l], j, &row, l);
        }
        clear(&mut self.now.behind[i], j);
        self.clear_from(i, j);
        Some(cost)
    }

    /// Adds the label from `i` to `j` times all labels out of `j` to the edges out of `i`.
    fn back(&mut self, i: usize, j: usize) -> Option<u64> {
        if self.is_end(j) || !contains(&self.now.before[j][0], i) {
            return None;
        }
        let (mut new, side) = (self.now.behind[j], self.now.before[j]);
        if let Some(mask) = self.mask_behind.get(i) {
            restrict(&mut new, mask);
        }
        let mut cost = products(&weights(&new, &[]), &single(&side, i, 1));
        let shared = absorb(&mut self.now.behind[i], j, &new, &side, i);
        if self.objective == Objective::Operations {
            cost += weight(&shared, &[]);
        }
        let row = self.now.behind[i];
        for k in bits(new[0]) {
            copy(&mut self.now.before[k], i, &row, k);
        }
        clear(&mut self.now.before[j], i);
        self.clear_from(i, j);
        Some(cost)
    }

    /// Removes vertices and edges that lie on no path once the edge from `i` to `j` is removed.
    fn clear_from(&mut self, i: usize, j: usize) {
        let empty = [[0; W]; F];
        let mut gone: SmallVec<[(usize, usize); 8]> = SmallVec::from_slice(&[(i, j)]);
        while let Some((i, j)) = gone.pop() {
            if self.now.behind[i] == empty && !self.is_end(i) {
                let before = std::mem::replace(&mut self.now.before[i], empty);
                for l in bits(before[0]) {
                    clear(&mut self.now.behind[l], i);
                    gone.push((l, i));
                }
            }
            if self.now.before[j] == empty && !self.is_end(j) {
                let behind = std::mem::replace(&mut self.now.behind[j], empty);
                for k in bits(behind[0]) {
                    clear(&mut self.now.before[k], j);
                    gone.push((j, k));
                }
            }
        }
    }

    fn vertex(&mut self, v: usize) -> Option<u64> {
        if self.is_end(v) || self.now.behind[v] == [[0; W]; F] {
            return None;
        }
        let mut cost = 0;
        for k in bits(self.now.behind[v][0]) {
            cost += self.front(v, k).unwrap_or(0);
        }
        Some(cost)
    }
}

impl<const W: usize, const F: usize> EdgeCost for Stages<W, F> {
    fn seek(&mut self, history: &[Step], place: usize) {
        self.now.clone_from(&self.stored[place / STRIDE]);
        for step in &history[place / STRIDE * STRIDE..place] {
            self.step(*step);
        }
    }

    fn step(&mut self, step: Step) -> Option<u64> {
        match step {
            Step::Edge(i, j, Direction::Front) => self.front(i.index(), j.index()),
            Step::Edge(i, j, Direction::Back) => self.back(i.index(), j.index()),
            Step::Vertex(v) => self.vertex(v.index()),
        }
    }

    fn is_stored(&self, place: usize) -> bool {
        self.stored[place / STRIDE] == self.now
    }

    fn accept(&mut self, history: &[Step], first: usize) {
        let mut place = first / STRIDE * STRIDE;
        self.seek(history, place);
        self.stored.truncate(place / STRIDE + 1);
        while place + STRIDE <= history.len() {
            for step in &history[place..place + STRIDE] {
                self.step(*step);
            }
            place += STRIDE;
            self.stored.push(self.now.clone());
        }
    }

    fn neighbours(&self, v: VertexId, side: Direction, neighbours: &mut Vec<VertexId>) {
        let row = match side {
            Direction::Back => self.now.before[v.index()],
            Direction::Front => self.now.behind[v.index()],
        };
        neighbours.clear();
        neighbours.extend(bits(row[0]).map(VertexId::new));
    }
}

/// Copies column `from` of another row into column `to` of a row.
fn copy<const W: usize, const F: usize>(row: &mut Row<W, F>, to: usize, other: &Row<W, F>, from: usize) {
    for (flag, other) in row.iter_mut().zip(other) {
        let bit = 1 << (to % 64);
        if contains(other, from) {
            flag[to / 64] |= bit;
        } else {
            flag[to / 64] &= !bit;
        }
    }
}

fn clear<const W: usize, const F: usize>(row: &mut Row<W, F>, column: usize) {
    for flag in row {
        flag[column / 64] &= !(1 << (column % 64));
    }
}
