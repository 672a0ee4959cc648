//! The algebraic optimiser: the same values from fewer operations.
//!
//! In: a graph and roots. Out: roots of the same values in the same graph, which grows. Only in
//! [`Semantics::Algebraic`]: everything here moves brackets.
//!
//! | module | owns |
//! | --- | --- |
//! | `cube` | products of literals with powers |
//! | `network` | every value as a leaf, an opaque operation, or a sum of cubes |
//! | `collect` | a graph as a network: association is free; what may be multiplied out |
//! | `divisors` | what cubes and pairs of cubes have in common |
//! | `extract` | greedy extraction, the largest saving first; what that weighs; local search from there |
//! | [`check`] | both sides compared, exactly and in doubles |
//! | `signs` | the direction of each sum, such that few negations survive |
//! | `emit` | a network as a graph: signs, reciprocals, powers |
//! | `window` | parts of a graph that are optimised by themselves |
//! | `ahead` | local search and what comes after it, at once |
//!
//! The words are those of algebraic factorisation in logic synthesis (Brayton, Rudell,
//! Sangiovanni-Vincentelli, Wang, "MIS: a multiple-level logic optimization system", 1987), whose sums of
//! products over the Boolean ring become sums of products over the reals.
//!
//! A round collects the graph into a network, extracts what is common, and makes a graph of it again.
//! Rounds differ in what they collect across shared nodes; local search then puts single divisors back and extracts
//! others. A graph is made only of a network that weighs less than what there is, and kept only if it does, too, so
//! the total never rises.

mod ahead;
pub mod check;
mod collect;
mod cube;
mod divisors;
mod emit;
mod extract;
mod network;
mod signs;
mod window;

use crate::evaluate::counts;
use crate::graph::{Graph, Node, NodeId, Semantics};
use ahead::Watch;
use chainrule_base::Id;
use chainrule_ops::{Counts, Op};
use collect::{Choice, Policy, collect};
use emit::emit;
use extract::{Extraction, Preference};
use signs::choose_signs;
use smallvec::SmallVec;
use std::sync::Arc;
use window::{Account, Look, Order, Part, remade, sweep};

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Optimise {
    /// How many nodes may be looked at altogether: each round looks at all, local search at some. There is a first
    /// round in any case.
    pub budget: u64,
    /// How many nodes a window has: smaller graphs are searched as a whole, larger ones in windows.
    pub window: usize,
    /// What chance starts from: other seeds may find other ways.
    pub seed: u64,
}

impl Optimise {
    /// A fifth of a second's work.
    pub const DEFAULT_BUDGET: u64 = 250_000;
    /// Large enough for what belongs together, small enough for many tries.
    pub const DEFAULT_WINDOW: usize = 400;
}

impl Default for Optimise {
    fn default() -> Self {
        Self { budget: Self::DEFAULT_BUDGET, window: Self::DEFAULT_WINDOW, seed: 0 }
    }
}

/// Why no more was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// Nothing tried saves any more.
    Settled,
    /// The budget is spent.
    Budget,
    /// The graph may not be changed: its semantics is strict, or it has derivatives still to be made.
    NotAllowed,
}

/// What was done.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The operations before.
    pub before: Counts,
    /// The operations after; they weigh no more.
    pub after: Counts,
    /// How many rounds there were, those included that were not kept.
    pub rounds: usize,
    /// What is left of the budget.
    pub left: u64,
    /// Why there were no more.
    pub stop: StopReason,
}

/// Roots after optimisation.
#[derive(Clone, Debug)]
pub struct Optimised {
    /// Roots of the same values, one for one.
    pub roots: Vec<NodeId>,
    /// What was done.
    pub report: Report,
}

/// The values of `roots` from fewer operations: never from operations that weigh more.
///
/// Values change by rounding only. About linear in the nodes below the roots for each round.
///
/// ```
/// use chainrule_graph::optimise::{Optimise, optimise};
/// use chainrule_graph::{Graph, Semantics};
/// let mut g = Graph::new(Semantics::Algebraic);
/// let (a, b, c) = (g.input("a"), g.input("b"), g.input("c"));
/// let (ab, ac) = (g.mul(a, b), g.mul(a, c));
/// let sum = g.add(ab, ac);
/// let optimised = optimise(&mut g, &[sum], &Optimise::default());
/// assert_eq!(g.f64_at(&[2.0, 3.0, 4.0], &optimised.roots).unwrap(), [14.0]);
/// assert_eq!((optimised.report.before.arithmetic(), optimised.report.after.arithmetic()), (3, 2));
/// ```
pub fn optimise(graph: &mut Graph, roots: &[NodeId], options: &Optimise) -> Optimised {
    let found = Found::new(graph, roots, options, true);
    found.put_into(graph, roots)
}

/// The same for each of two lists of roots, as if one came after the other, but at once.
pub fn optimise_both(graph: &mut Graph, roots: [&[NodeId]; 2], options: &Optimise) -> [Optimised; 2] {
    // The search sees nothing but what is below its roots, and what it finds is put into the graph in order.
    let reader = &*graph;
    let [first, second] = roots;
    let found = std::thread::scope(|scope| {
        let other = scope.spawn(|| Found::new(reader, second, options, false));
        let one = Found::new(reader, first, options, false);
        [one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))]
    });
    let [one, other] = found;
    [one.put_into(graph, first), other.put_into(graph, second)]
}

/// What a search has found: roots in a graph of their own, where anything was looked for.
struct Found {
    before: Counts,
    part: Option<(Graph, Vec<NodeId>)>,
    rounds: usize,
    left: u64,
    stop: StopReason,
}

impl Found {
    /// `looks_ahead` says whether there is another thread for what comes after a local search.
    fn new(graph: &Graph, roots: &[NodeId], options: &Optimise, looks_ahead: bool) -> Self {
        let before = counts(graph, roots);
        let unresolved = graph.reachable(roots).iter().any(|id| matches!(graph.node(id), Node::Derivative(_)));
        if graph.semantics() == Semantics::Strict || unresolved {
            return Self { before, part: None, rounds: 0, left: options.budget, stop: StopReason::NotAllowed };
        }
        let (extracted, extracted_roots) = graph.extract(roots);
        let exact = vec![true; graph.inputs().len()];
        let mut search = Search::new(Part { graph: extracted, roots: extracted_roots, exact }, options);
        search.looks_ahead = looks_ahead;
        let stop = search.run();
        let Part { graph, roots, .. } = search.part;
        Self { before, part: Some((graph, roots)), rounds: search.rounds, left: search.budget, stop }
    }

    /// The roots that it is for, as they were found, where that weighs less.
    fn put_into(self, graph: &mut Graph, roots: &[NodeId]) -> Optimised {
        let Self { before, part, rounds, left, stop } = self;
        let (mut best, mut after) = (roots.to_vec(), before);
        if let Some((part, part_roots)) = part {
            let found = transplant(graph, &part, &part_roots);
            let counts = counts(graph, &found);
            if counts.weight < before.weight {
                (best, after) = (found, counts);
            }
        }
        Optimised { roots: best, report: Report { before, after, rounds, left, stop } }
    }
}

struct Search {
    part: Part,
    weight: u64,
    /// The weight without negations: what a network must weigh less than.
    bare: u64,
    rounds: usize,
    budget: u64,
    window: usize,
    seed: u64,
    /// Whether there is a first round whatever the budget.
    whole: bool,
    /// What rounds are made with.
    extraction: Box<Extraction>,
    /// The rounds that saved nothing on the part as it is now: they would not now.
    in_vain: Vec<(Policy, Preference)>,
    /// How often windows were gone through,
    sweeps: usize,
    /// how many turns have saved nothing since one did,
    since: usize,
    /// and what the part weighed when this turn began.
    turn_weight: u64,
    /// The most nodes that the part has had.
    most_nodes: u64,
    /// Whether another thread may do what comes after a local search.
    looks_ahead: bool,
    /// In a search that does: what it is told,
    watch: Option<Arc<Watch>>,
    /// and whether it has paid for local search.
    has_settled: bool,
}

/// Rounds with a random choice without a saving, before the search in a window ends.
const PATIENCE: usize = 8;

/// Turns of local search without a saving, before it ends.
const LOCAL_PATIENCE: usize = 1;

/// How often all is tried without a saving.
const SETTLED: usize = 2;

/// Larger graphs have rounds in windows of so many nodes instead of rounds on the whole.
const WHOLE: usize = 30_000;
const PLAIN: Policy = Policy { shared_products: false, shared_sums: None };
const PRODUCTS: Policy = Policy { shared_products: true, shared_sums: None };

impl Search {
    fn new(part: Part, options: &Optimise) -> Self {
        let Optimise { budget, seed, .. } = *options;
        let window = options.window.max(2);
        let (weight, bare) = weights(&part.graph, &part.roots);
        let most_nodes = part.graph.len() as u64;
        Self {
            part,
            weight,
            bare,
            rounds: 0,
            budget,
            window,
            seed,
            whole: true,
            extraction: Box::default(),
            in_vain: Vec::new(),
            sweeps: 0,
            since: 0,
            turn_weight: weight,
            most_nodes,
            looks_ahead: false,
            watch: None,
            has_settled: false,
        }
    }

    /// Rounds and local search on the whole, then rounds on windows of it, until neither saves.
    fn run(&mut self) -> StopReason {
        loop {
            self.turn_weight = self.weight;
            if let Some(stop) = self.on_the_whole().or_else(|| self.in_windows()) {
                return stop;
            }
        }
    }

    /// The first half of a turn; why there is no more to do, if so.
    fn on_the_whole(&mut self) -> Option<StopReason> {
        if self.part.graph.len() > WHOLE {
            if self.sweeps == 0 {
                self.sweep(Order::DepthFirst, (WHOLE, WHOLE), |search| {
                    _ = search.round(PRODUCTS, Preference::Oldest);
                });
            }
            return None;
        }
        if !self.rounds_of_choice() {
            return Some(StopReason::Budget);
        }
        self.local_rounds()
    }

    /// The other half.
    fn in_windows(&mut self) -> Option<StopReason> {
        const ORDERS: [Order; 3] = [Order::DepthFirst, Order::Levels, Order::Heights];
        self.settle();
        if self.part.graph.len() <= self.window {
            if !self.rounds_at_random() {
                return Some(StopReason::Budget);
            }
        } else {
            let sizes = (self.window * (1 + self.sweeps % 5) / 5, self.window);
            self.sweep(ORDERS[self.sweeps % 3], sizes, |search| {
                search.whole = false;
                if search.rounds_of_choice() {
                    search.rounds_at_random();
                }
            });
        }
        if self.budget == 0 {
            return Some(StopReason::Budget);
        }
        self.sweeps += 1;
        self.since = if self.weight < self.turn_weight { 0 } else { self.since + 1 };
        (self.since == SETTLED).then_some(StopReason::Settled)
    }

    /// Rounds with each policy on the whole while they save; false when the budget is spent.
    fn rounds_of_choice(&mut self) -> bool {
        let mut improved = true;
        while improved {
            improved = false;
            for (policy, preference) in [
                (PLAIN, Preference::Oldest),
                (PRODUCTS, Preference::Oldest),
                (PRODUCTS, Preference::Newest),
                (PLAIN, Preference::Newest),
            ] {
                match self.round(policy, preference) {
                    Some(better) => improved |= better,
                    None => return false,
                }
            }
        }
        true
    }

    /// Rounds in which sums chosen at random are multiplied out; false when the budget is spent.
    fn rounds_at_random(&mut self) -> bool {
        let (mut since, mut seed) = (0, 64 * self.seed);
        while since < PATIENCE {
            seed += 1;
            let choice = Choice { seed, one_in: 1 + seed % 7, max_cubes: 2 + (seed % 3) as usize };
            let policy = Policy { shared_products: !seed.is_multiple_of(4), shared_sums: Some(choice) };
            let preference = if seed.is_multiple_of(2) { Preference::Oldest } else { Preference::Newest };
            match self.round(policy, preference) {
                Some(true) => since = 0,
                Some(false) => since += 1,
                None => return false,
            }
        }
        true
    }

    /// Local search while it saves; why there is no more to do, if so.
    fn local_rounds(&mut self) -> Option<StopReason> {
        loop {
            self.settle();
            let n = self.part.graph.len() as u64;
            if self.budget < n {
                self.budget = 0;
                return Some(StopReason::Budget);
            }
            self.budget -= n;
            self.rounds += 1;
            let (saves, stop) = match self.successor() {
                Some(successor) => self.search_beside(successor),
                None => (self.search_locally(None), None),
            };
            if !saves {
                return stop;
            }
            if !self.rounds_of_choice() {
                return Some(StopReason::Budget);
            }
        }
    }

    /// Whether local search finds something better, which is kept. As soon as it seems to, its successor is given up.
    fn search_locally(&mut self, successor: Option<&Watch>) -> bool {
        let seed = self.rounds as u64 + self.seed;
        let Part { graph, roots, exact } = &self.part;
        let policy = if seed.is_multiple_of(2) { PLAIN } else { PRODUCTS };
        let preference = if seed % 4 < 2 { Preference::Oldest } else { Preference::Newest };
        self.extraction.run(collect(graph, roots, exact, policy), preference);
        // What local search starts from may weigh more than what there is.
        let excess = successor.map(|_| self.extraction.weight(graph).saturating_sub(self.bare));
        let (mut extraction, mut budget) = (std::mem::take(&mut self.extraction), self.budget);
        extraction.search(seed << 32 | self.rounds as u64, LOCAL_PATIENCE, &mut budget, |left, saved| {
            successor.filter(|_| excess.is_some_and(|excess| saved > excess)).inspect(|watch| watch.give_up());
            !self.is_in_vain(left)
        });
        (self.extraction, self.budget) = (extraction, budget);
        self.keep_if_better()
    }

    /// Each window by itself.
    fn sweep(&mut self, order: Order, sizes: (usize, usize), rounds_of: impl Fn(&mut Search) + Sync) {
        let n_threads = match &self.watch {
            Some(watch) if !watch.is_waited_for() => 1,
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let Self { part, rounds, budget, window, seed, extraction, watch, .. } = self;
        let (window, seed) = (*window, *seed);
        let look = |part, budget, extraction: &mut Box<Extraction>| {
            let mut search = Search::new(part, &Optimise { budget, window, seed });
            let before = search.weight;
            (search.watch, search.has_settled) = (watch.clone(), true);
            std::mem::swap(extraction, &mut search.extraction);
            rounds_of(&mut search);
            std::mem::swap(extraction, &mut search.extraction);
            let better = (search.weight < before).then_some((search.part.graph, search.part.roots));
            Look { better, rounds: search.rounds, spent: budget - search.budget }
        };
        let mut account = Account { rounds, budget, n_threads };
        let (graph, roots) = sweep(&part.graph, &part.roots, order, sizes, &mut account, extraction, look);
        let weight = counts(&graph, &roots).weight;
        if weight < self.weight {
            let weights = weights(&graph, &roots);
            self.keep(&graph, &roots, weights);
        }
    }

    /// One round; whether it was kept, `None` when the budget does not allow it.
    fn round(&mut self, policy: Policy, preference: Preference) -> Option<bool> {
        self.settle();
        let n = self.part.graph.len() as u64;
        let first = self.whole && self.rounds == 0;
        if self.budget < n && !first || self.is_in_vain(self.budget) {
            self.budget = 0;
            return None;
        }
        self.budget = self.budget.saturating_sub(n);
        self.rounds += 1;
        // It counts as one that was made: how far a search comes does not depend on what it remembers.
        if self.in_vain.contains(&(policy, preference)) {
            debug_assert!(!self.saves(policy, preference), "{policy:?} and {preference:?} saved nothing before");
            return Some(false);
        }
        let is_better = self.saves(policy, preference);
        if !is_better {
            self.in_vain.push((policy, preference));
        }
        Some(is_better)
    }

    /// Whether a round finds something better, which is kept.
    fn saves(&mut self, policy: Policy, preference: Preference) -> bool {
        let Part { graph, roots, exact } = &self.part;
        self.extraction.run(collect(graph, roots, exact, policy), preference);
        self.keep_if_better()
    }

    /// Makes a graph of what was extracted, if that weighs less.
    fn keep_if_better(&mut self) -> bool {
        let Part { graph, .. } = &self.part;
        if self.extraction.weight(graph) >= self.bare {
            return false;
        }
        let mut network = self.extraction.finish();
        choose_signs(&mut network);
        let Some((graph, roots)) = emit(&network, graph) else { return false };
        let (weight, bare) = weights(&graph, &roots);
        if weight >= self.weight {
            return false;
        }
        self.keep(&graph, &roots, (weight, bare));
        true
    }

    fn keep(&mut self, graph: &Graph, roots: &[NodeId], weights: (u64, u64)) {
        (self.part.graph, self.part.roots) = graph.extract(roots);
        (self.weight, self.bare) = weights;
        self.most_nodes = self.most_nodes.max(self.part.graph.len() as u64);
        self.in_vain.clear();
    }
}

/// What the roots weigh, and what they weigh without negations.
fn weights(graph: &Graph, roots: &[NodeId]) -> (u64, u64) {
    let counts = counts(graph, roots);
    (counts.weight, counts.weight - counts.neg * u64::from(Op::Neg.row().weight))
}

/// The nodes of `roots` in `graph` exactly as they stand in `other`, which has the same inputs and functions.
fn transplant(graph: &mut Graph, other: &Graph, roots: &[NodeId]) -> Vec<NodeId> {
    let mut copies: Vec<Option<NodeId>> = vec![None; other.len()];
    for id in other.reachable(roots).iter() {
        let args: SmallVec<[NodeId; 4]> = other.args(id).iter().filter_map(|a| copies[a.index()]).collect();
        copies[id.index()] = Some(match other.node(id) {
            Node::Input(input) => graph.inputs()[input.index()].1,
            _ => remade(other, graph, id, &args),
        });
    }
    roots.iter().filter_map(|r| copies[r.index()]).collect()
}
