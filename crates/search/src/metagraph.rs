//! The metagraph: all graphs that edge elimination can reach, with the cost of each transition. Its shortest path is
//! the minimum number of multiplications of edge elimination.
//!
//! | Naumann 1999, section 3 | here |
//! | --- | --- |
//! | stages w(k), the vertices of M | [`Metagraph::stages`] |
//! | edges of M with their Markowitz degrees | [`Metagraph::transitions`] |
//! | restrictions F, B, V (section 3.1) | [`Restriction`] |
//! | Cost{J}, Cost_F{J}, Cost_B{J}, Cost_V{J} | [`Metagraph::cost`] |
//!
//! In: a small linearised graph. Out: the metagraph, of exponential size, bounded by [`Budget::evaluations`] stages. A
//! stage is a set of edges: all multiplications count, whatever the labels, and all pairs of a row and a column are
//! requested.

use chainrule_accumulate::edge::{Direction, Step};
use chainrule_accumulate::{Budget, LinearGraph, VertexId};
use chainrule_base::Id;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Permitted eliminations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restriction {
    /// Edges, in both directions.
    Edges,
    /// F: edges, forward only.
    Front,
    /// B: edges, backward only.
    Back,
    /// V: vertices.
    Vertices,
}

/// An intermediate graph: its edges, ascending.
pub type Stage = Vec<(VertexId, VertexId)>;

/// A transition from one stage to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// Index of the target stage.
    pub to: usize,
    /// Elimination step.
    pub step: Step,
    /// Number of multiplications.
    pub cost: u64,
}

/// The metagraph.
#[derive(Clone, Debug)]
pub struct Metagraph {
    /// Stages in the order of discovery; the given graph is the first.
    pub stages: Vec<Stage>,
    /// Outgoing transitions of each stage. Several steps may lead to the same stage.
    pub transitions: Vec<Vec<Transition>>,
}

impl Metagraph {
    /// Returns all reachable stages; `None` if there are more than [`Budget::evaluations`]. Parallel edges are merged.
    ///
    /// ```
    /// use chainrule_search::metagraph::{Metagraph, Restriction};
    /// use chainrule_accumulate::{Budget, Label::Var, LinearGraph};
    /// let chain = LinearGraph::from_edges(1, 2, 1, &[(0, 1, Var), (1, 2, Var), (2, 3, Var)])?;
    /// let vertices = Metagraph::new(&chain, &Budget::default(), Restriction::Vertices).map(|m| m.stages.len());
    /// assert_eq!(vertices, Some(4));
    /// # Ok::<(), chainrule_base::Diagnostic>(())
    /// ```
    #[must_use]
    pub fn new(linear: &LinearGraph, budget: &Budget, restriction: Restriction) -> Option<Self> {
        let mut start: Stage = linear.edges().map(|(_, edge)| (edge.source, edge.target)).collect();
        start.sort_unstable();
        start.dedup();
        let mut numbers: FxHashMap<Stage, usize> = FxHashMap::default();
        numbers.insert(start.clone(), 0);
        let mut metagraph = Self { stages: vec![start], transitions: Vec::new() };
        while let Some(stage) = metagraph.stages.get(metagraph.transitions.len()).cloned() {
            let mut transitions = Vec::new();
            for step in steps(linear, &stage, restriction) {
                let (next, cost) = eliminate(linear, &stage, step);
                let n = numbers.len();
                let to = *numbers.entry(next).or_insert_with_key(|next| {
                    metagraph.stages.push(next.clone());
                    n
                });
                transitions.push(Transition { to, step, cost });
            }
            metagraph.transitions.push(transitions);
            if metagraph.stages.len() as u64 > budget.evaluations {
                return None;
            }
        }
        Some(metagraph)
    }

    /// Returns the minimum number of multiplications for the Jacobian.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.shortest_path().1
    }

    /// Returns a history of fewest multiplications, and their number. O(transitions log transitions), Dijkstra.
    #[must_use]
    pub fn shortest_path(&self) -> (Vec<Step>, u64) {
        let mut reached: Vec<Option<(u64, usize, Step)>> = vec![None; self.stages.len()];
        let mut done = vec![false; self.stages.len()];
        let mut queue = BinaryHeap::from([Reverse((0, 0))]);
        while let Some(Reverse((cost, stage))) = queue.pop() {
            if std::mem::replace(&mut done[stage], true) {
                continue;
            }
            if self.transitions[stage].is_empty() {
                return (self.history(&reached, stage), cost);
            }
            for transition in &self.transitions[stage] {
                let through = cost + transition.cost;
                let entry = &mut reached[transition.to];
                if !done[transition.to] && entry.is_none_or(|(known, ..)| through < known) {
                    *entry = Some((through, stage, transition.step));
                    queue.push(Reverse((through, transition.to)));
                }
            }
        }
        (Vec::new(), 0)
    }

    /// Returns the steps that lead to a stage.
    fn history(&self, reached: &[Option<(u64, usize, Step)>], mut stage: usize) -> Vec<Step> {
        let mut history = Vec::new();
        while stage != 0
            && let Some((_, from, step)) = reached[stage]
        {
            history.push(step);
            stage = from;
        }
        history.reverse();
        history
    }
}

/// Returns the possible steps at a stage.
fn steps(linear: &LinearGraph, stage: &Stage, restriction: Restriction) -> Vec<Step> {
    let front = stage.iter().filter(|(i, _)| !linear.is_source(*i)).map(|(i, j)| Step::Edge(*i, *j, Direction::Front));
    let back = stage.iter().filter(|(_, j)| !linear.is_sink(*j)).map(|(i, j)| Step::Edge(*i, *j, Direction::Back));
    match restriction {
        Restriction::Edges => front.chain(back).collect(),
        Restriction::Front => front.collect(),
        Restriction::Back => back.collect(),
        Restriction::Vertices => {
            let left = |v: &VertexId| stage.iter().any(|(i, _)| i == v);
            linear.intermediates().filter(left).map(Step::Vertex).collect()
        }
    }
}

/// Returns the stage after a step, and the multiplications of the step.
fn eliminate(linear: &LinearGraph, stage: &Stage, step: Step) -> (Stage, u64) {
    let before = |v: VertexId| stage.iter().filter(move |(_, k)| *k == v).map(|(i, _)| *i);
    let behind = |v: VertexId| stage.iter().filter(move |(i, _)| *i == v).map(|(_, k)| *k);
    let mut next = stage.clone();
    let n_before = next.len();
    match step {
        Step::Edge(i, j, Direction::Front) => next.extend(before(i).map(|l| (l, j))),
        Step::Edge(i, j, Direction::Back) => next.extend(behind(j).map(|k| (i, k))),
        Step::Vertex(v) => next.extend(before(v).flat_map(|i| behind(v).map(move |k| (i, k)))),
    }
    let cost = (next.len() - n_before) as u64;
    match step {
        Step::Edge(i, j, _) => next.retain(|edge| *edge != (i, j)),
        Step::Vertex(v) => next.retain(|(i, k)| *i != v && *k != v),
    }
    next.sort_unstable();
    next.dedup();
    retain_paths(linear, &mut next);
    (next, cost)
}

/// Removes edges that lie on no path from a source to a sink.
fn retain_paths(linear: &LinearGraph, stage: &mut Stage) {
    let mut above: Vec<bool> = vec![false; linear.n_vertices()];
    let mut below = above.clone();
    linear.sources().for_each(|v| above[v.index()] = true);
    linear.sinks().for_each(|v| below[v.index()] = true);
    // Edges ascend by source, so the predecessors of an edge are known at its turn; conversely for the successors.
    for (i, k) in stage.iter() {
        above[k.index()] |= above[i.index()];
    }
    for (i, k) in stage.iter().rev() {
        below[i.index()] |= below[k.index()];
    }
    stage.retain(|(i, k)| above[i.index()] && below[k.index()]);
}
