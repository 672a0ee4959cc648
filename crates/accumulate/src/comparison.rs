//! Programs compared as the code that they become, improved and together with the function: what it shares with the
//! derivative is free.
//!
//! In: programs for one linearised graph, those that look best first. Out: what each weighs, and nodes for the one that is taken.
//!
//! A program and the one after it are improved at once, each in a graph of its own. Whether the second one need be improved
//! is decided when the first one is known, as if it had waited: what comes out does not depend on threads.

use crate::{LinearGraph, Optimise, Program};
use chainrule_base::{Diagnostic, Id};
use chainrule_graph::{Graph, NodeId, counts};

/// Functions of fewer nodes are looked at one after the other: a thread would take longer to begin.
const FEWEST_AT_ONCE: usize = 300;

/// Whether derivatives of these roots may be made in copies of the graph, at once. Origins follow what is made in one graph,
/// users' functions are registered in one.
pub(crate) fn may_be_at_once(graph: &Graph, roots: &[NodeId]) -> bool {
    !graph.tracks_origins() && graph.external_functions().len() == 0 && graph.reachable(roots).len() >= FEWEST_AT_ONCE
}

/// What a program becomes; different programs may become the same.
struct Made {
    /// Its nodes as they are,
    plain: Vec<NodeId>,
    /// and improved, in this graph,
    better: Vec<NodeId>,
    /// or in this one, which began as a copy of it when that had so many nodes.
    elsewhere: Option<(Graph, usize)>,
    /// The function and the improved nodes.
    weight: u64,
}

pub(crate) struct Comparison<'a> {
    linear: &'a LinearGraph,
    roots: &'a [NodeId],
    optimise: Optimise,
    at_once: bool,
    least: u64,
    known: Vec<Made>,
    /// Made already, but not asked for yet.
    ahead: Option<Made>,
}

impl<'a> Comparison<'a> {
    /// Nothing yet, for the programs of `linear`, which is of these roots.
    pub(crate) fn new(graph: &Graph, linear: &'a LinearGraph, roots: &'a [NodeId], optimise: Optimise) -> Self {
        let at_once = may_be_at_once(graph, roots);
        Self { linear, roots, optimise, at_once, least: u64::MAX, known: Vec::new(), ahead: None }
    }

    /// What each of the programs costs.
    pub(crate) fn costs(&mut self, graph: &mut Graph, programs: &[&Program]) -> Vec<u64> {
        let nodes: Vec<Option<Vec<NodeId>>> =
            programs.iter().map(|program| program.replay(self.linear, graph).ok()).collect();
        let cost = |i: usize| match &nodes[i] {
            Some(plain) => self.cost(graph, plain, nodes[i + 1..].iter().flatten()),
            None => u64::MAX,
        };
        (0..nodes.len()).map(cost).collect()
    }

    fn cost<'n>(
        &mut self,
        graph: &mut Graph,
        plain: &[NodeId],
        mut later: impl Iterator<Item = &'n Vec<NodeId>>,
    ) -> u64 {
        if let Some(made) = self.known.iter().find(|made| made.plain == plain) {
            return made.weight;
        }
        let weight = counts(graph, &self.with_roots(plain)).weight;
        // Improving is dear, and does not make up for much.
        if weight / 3 > self.least / 2 {
            return weight;
        }
        let made = match self.ahead.take() {
            Some(made) if made.plain == plain => made,
            _ => {
                let is_new =
                    |nodes: &&Vec<NodeId>| *nodes != plain && self.known.iter().all(|made| made.plain != **nodes);
                let next = later.find(is_new).filter(|_| self.at_once);
                self.made(graph, plain, next)
            }
        };
        let weight = made.weight;
        self.least = self.least.min(weight);
        self.known.push(made);
        weight
    }

    /// What these nodes become; what `next` become is kept.
    fn made(&mut self, graph: &mut Graph, plain: &[NodeId], next: Option<&Vec<NodeId>>) -> Made {
        let make = |graph: &mut Graph, plain: &[NodeId]| {
            let (better, weight) = self.optimise.quickly(graph, &self.with_roots(plain));
            Made { plain: plain.to_vec(), better: better[self.roots.len()..].to_vec(), elsewhere: None, weight }
        };
        let Some(next) = next else { return make(graph, plain) };
        let (first, mut other) = (graph.len(), graph.clone());
        let (made, ahead) = std::thread::scope(|scope| {
            let ahead = scope.spawn(|| {
                let made = make(&mut other, next);
                Made { elsewhere: Some((other, first)), ..made }
            });
            let made = make(graph, plain);
            (made, ahead.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        self.ahead = Some(ahead);
        made
    }

    fn with_roots(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        [self.roots, nodes].concat()
    }

    /// The nodes of a program, improved where it was compared and that is better, and whether it was compared.
    ///
    /// # Errors
    /// As [`Program::replay`].
    pub(crate) fn nodes(self, graph: &mut Graph, program: &Program) -> Result<(Vec<NodeId>, bool), Diagnostic> {
        let plain = program.replay(self.linear, graph)?;
        let Some(made) = self.known.into_iter().find(|made| made.plain == plain) else { return Ok((plain, false)) };
        let better = match made.elsewhere {
            Some((other, first)) => graph.adopt(&other, NodeId::new(first), &made.better),
            None => made.better,
        };
        let is_better = counts(graph, &better).weight < counts(graph, &plain).weight;
        Ok((if is_better { better } else { plain }, true))
    }
}
