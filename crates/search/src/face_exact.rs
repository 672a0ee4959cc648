//! Exact search over face eliminations, for small graphs.
//!
//! Best-first search (Hart, Nilsson, Raphael 1968): the state with the fewest eliminations so far plus the lower bound
//! of the remaining ones (`bound.rs`) is expanded next. Isomorphic states are one state (`canonical.rs`), so twins are
//! tried once. States that cannot lead to fewer multiplications than the best known program are dropped. If none is
//! left, that program is proved to be optimal among all face eliminations under the chosen rules.
//!
//! Multiplications are counted plainly, whatever the labels; every reduction is proved.
//!
//! In: a linearised graph. Out: the best program found, the best lower bound, and whether they are equal.

mod bound;
mod canonical;

use chainrule_accumulate::face::{Absorbed, Kinds, LineGraph, LineId, Order, Recorder, Rules, greedy};
use chainrule_accumulate::greedy::Ties;
use chainrule_accumulate::{Budget, Counting, LinearGraph, Program, StopReason};
use chainrule_base::Id;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Options of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Rules after an elimination.
    pub rules: Rules,
    /// Maximum number of states.
    pub states: u64,
}

impl Options {
    /// The default for [`Options::states`]: a few seconds, and enough to prove 22 for the bat.
    pub const STATES: u64 = 300_000;
}

impl Default for Options {
    fn default() -> Self {
        Self { rules: Rules::default(), states: Self::STATES }
    }
}

/// Result of the search.
#[derive(Clone, Debug)]
pub struct Found {
    /// Best program.
    pub program: Program,
    /// Multiplications of the program.
    pub multiplications: u64,
    /// Lower bound of the multiplications of every face elimination under the rules.
    pub lower_bound: u64,
    /// Number of states.
    pub states: u64,
    /// [`StopReason::Done`] if the search was complete: the program is optimal.
    pub stop: StopReason,
}

impl Found {
    /// Returns whether no face elimination under the rules takes fewer multiplications.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        self.lower_bound >= self.multiplications
    }
}

/// Maximum number of faces of a graph to be searched; larger graphs get the best greedy program.
pub const FACES: usize = 600;

/// Searches. Memory and time are linear in the number of states, and in the size of the line graph for each state.
///
/// # Errors
/// The budget that every greedy order exceeds.
pub fn search(linear: &LinearGraph, budget: &Budget, options: &Options) -> Result<Found, StopReason> {
    Ok(improve(linear, best_greedy(linear, budget, options.rules)?, options))
}

/// Searches for a program that is better than `program`.
#[must_use]
pub fn improve(linear: &LinearGraph, program: Program, options: &Options) -> Found {
    let multiplications = program.count(Counting::Plain).mul;
    let mut found = Found { program, multiplications, lower_bound: 0, states: 0, stop: StopReason::EvaluationBudget };
    let start = LineGraph::new(linear, Kinds, options.rules);
    if start.n_faces() > FACES {
        return found;
    }
    let mut search = Search::new(start, found.multiplications);
    let (stop, path) = search.run(options.states);
    found.stop = stop;
    found.states = search.states.len() as u64;
    if let Some(path) = path {
        let mut graph = LineGraph::new(linear, Recorder::new(linear), options.rules);
        for (i, j) in path {
            graph.eliminate(i, j);
        }
        let (labels, ends) = graph.finish();
        found.program = labels.into_builder().finish(linear, &ends);
        found.multiplications = found.program.count(Counting::Plain).mul;
    }
    found.lower_bound = search.lower_bound.min(found.multiplications);
    found
}

/// Returns the greedy program of fewest multiplications.
fn best_greedy(linear: &LinearGraph, budget: &Budget, rules: Rules) -> Result<Program, StopReason> {
    let mut best: Option<(u64, Program)> = None;
    let mut stop = StopReason::EvaluationBudget;
    for order in [Order::Markowitz, Order::Reduction, Order::Distance] {
        for absorbed in [Absorbed::Alike, Absorbed::First] {
            for ties in [Ties::Highest, Ties::Lowest] {
                let options = greedy::Options { order, ties, rules, absorbed, ..greedy::Options::default() };
                let outcome = greedy::run(linear, budget, &options);
                let Some(program) = outcome.program else {
                    stop = outcome.stop;
                    continue;
                };
                let mul = program.count(Counting::Plain).mul;
                if best.as_ref().is_none_or(|(least, _)| mul < *least) {
                    best = Some((mul, program));
                }
            }
        }
    }
    best.map(|(_, program)| program).ok_or(stop)
}

/// A state, with its first path of least cost.
struct State {
    parent: usize,
    face: (LineId, LineId),
    done: u64,
    /// Whether another state with the same key takes fewer eliminations.
    stale: bool,
}

struct Search<'a> {
    start: LineGraph<'a, Kinds>,
    all_pairs: bool,
    states: Vec<State>,
    /// State of each key. Only looked up, never iterated.
    known: FxHashMap<Box<[u16]>, usize>,
    /// By least total, then most eliminations, then age.
    open: BinaryHeap<Reverse<(u64, Reverse<u64>, usize)>>,
    /// Upper bound: states with at least this total are dropped.
    upper: u64,
    lower_bound: u64,
}

impl<'a> Search<'a> {
    fn new(mut start: LineGraph<'a, Kinds>, upper: u64) -> Self {
        start.forget_touched();
        let all_pairs = start.linear().pairs().is_none();
        let total = bound::lower(&start, all_pairs);
        let root = State { parent: 0, face: (LineId::new(0), LineId::new(0)), done: 0, stale: false };
        let mut search = Self {
            start,
            all_pairs,
            states: vec![root],
            known: FxHashMap::default(),
            open: BinaryHeap::new(),
            upper,
            lower_bound: total,
        };
        if total < upper {
            search.open.push(Reverse((total, Reverse(0), 0)));
        }
        search
    }

    /// Runs until no improvement is possible or the budget is used up. Returns the stop reason, and the faces of a
    /// better order if one was found.
    fn run(&mut self, budget: u64) -> (StopReason, Option<Vec<(LineId, LineId)>>) {
        while let Some(Reverse((total, Reverse(done), at))) = self.open.pop() {
            if self.states[at].stale {
                continue;
            }
            self.lower_bound = self.lower_bound.max(total);
            let graph = self.replay(at);
            if graph.n_faces() == 0 {
                return (StopReason::Done, Some(self.path(at)));
            }
            if self.states.len() as u64 >= budget {
                return (StopReason::EvaluationBudget, None);
            }
            self.expand(&graph, at, done, total);
        }
        self.lower_bound = self.upper;
        (StopReason::Done, None)
    }

    fn expand(&mut self, graph: &LineGraph<'a, Kinds>, at: usize, done: u64, total: u64) {
        for (i, j) in graph.faces() {
            let mut child = graph.clone();
            child.eliminate(i, j);
            let done = done + 1;
            // A bound of the state also bounds all its successors.
            let total = total.max(done + bound::lower(&child, self.all_pairs));
            if total >= self.upper {
                continue;
            }
            let state = self.states.len();
            match self.known.entry(canonical::key(&child, !self.all_pairs)) {
                std::collections::hash_map::Entry::Occupied(mut known) => {
                    let old = &mut self.states[*known.get()];
                    if old.done <= done {
                        continue;
                    }
                    old.stale = true;
                    known.insert(state);
                }
                std::collections::hash_map::Entry::Vacant(unknown) => {
                    unknown.insert(state);
                }
            }
            self.states.push(State { parent: at, face: (i, j), done, stale: false });
            self.open.push(Reverse((total, Reverse(done), state)));
        }
    }

    /// Returns the faces that lead to a state.
    fn path(&self, mut at: usize) -> Vec<(LineId, LineId)> {
        let mut path = Vec::new();
        while at != 0 {
            path.push(self.states[at].face);
            at = self.states[at].parent;
        }
        path.reverse();
        path
    }

    fn replay(&self, at: usize) -> LineGraph<'a, Kinds> {
        let mut graph = self.start.clone();
        for (i, j) in self.path(at) {
            graph.eliminate(i, j);
        }
        graph.forget_touched();
        graph
    }
}
