//! The algebraic optimiser: the same values from fewer operations.
//!
//! In: a graph and roots. Out: roots with the same values in the same graph, which grows. Only in
//! [`Semantics::Algebraic`]: all rewrites here reassociate.
//!
//! | module | owns |
//! | --- | --- |
//! | `cube` | products of literals with powers |
//! | `network` | every value as a leaf, an opaque operation, or a sum of cubes |
//! | `collect` | conversion of a graph to a network: free association; the conditions of distribution |
//! | `divisors` | common parts of cubes and pairs of cubes |
//! | `extract` | greedy extraction by saving; the weight of the result; local search from there |
//! | [`check`] | both sides compared, exactly and in doubles |
//! | `signs` | the direction of each sum, such that few negations survive |
//! | `emit` | conversion of a network to a graph: signs, reciprocals, powers |
//! | `window` | parts of a graph that are optimised separately |
//! | `ahead` | speculative execution of the steps after a local search |
//!
//! The terms are those of algebraic factorisation in logic synthesis (Brayton, Rudell, Sangiovanni-Vincentelli, Wang,
//! "MIS: a multiple-level logic optimization system", 1987), whose sums of products over the Boolean ring become sums
//! of products over the reals.
//!
//! A round collects the graph into a network, extracts common parts, and converts it back to a graph. Rounds differ in
//! the shared nodes that they collect; local search then collapses single divisors and extracts others. A graph is
//! built only from a network that weighs less than the current graph, and kept only if it does, too, so the total never
//! rises.

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

use crate::Semantics;
use crate::evaluate::counts;
use crate::graph::{Graph, Node, NodeId};
use ahead::Watch;
use chainrule_base::Id;
use chainrule_ops::{Counts, Op};
use collect::{Choice, Collected, Policy, collect};
use emit::emit;
use extract::{Extraction, Preference};
use signs::choose_signs;
use smallvec::SmallVec;
use std::sync::Arc;
use window::{Account, Look, Order, Part, Sizes, remade, sweep};

/// Search effort.
#[derive(Clone, Copy, Debug)]
pub struct Optimise {
    /// Maximum number of nodes visited in total: each round visits all, local search some. The first round always runs.
    pub budget: u64,
    /// Number of nodes of a window: smaller graphs are searched as a whole, larger ones in windows.
    pub window: usize,
    /// Seed of random choices.
    pub seed: u64,
}

impl Optimise {
    /// About a fifth of a second.
    pub const DEFAULT_BUDGET: u64 = 250_000;
    /// Large enough for related nodes, small enough for many trials.
    pub const DEFAULT_WINDOW: usize = 400;
}

impl Default for Optimise {
    fn default() -> Self {
        Self { budget: Self::DEFAULT_BUDGET, window: Self::DEFAULT_WINDOW, seed: 0 }
    }
}

/// Reason for the end of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// No further trial reduces the weight.
    Settled,
    /// The budget is spent.
    Budget,
    /// The graph must not be changed: its semantics is strict, or it contains unexpanded derivatives.
    NotAllowed,
}

/// Statistics.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Operations before.
    pub before: Counts,
    /// Operations after; they weigh no more.
    pub after: Counts,
    /// Number of rounds, including those that were not kept.
    pub rounds: usize,
    /// Remaining budget.
    pub left: u64,
    /// Reason for the end of the search.
    pub stop: StopReason,
}

/// Roots after optimisation.
#[derive(Clone, Debug)]
pub struct Optimised {
    /// Roots with the same values, one for one.
    pub roots: Vec<NodeId>,
    /// Statistics.
    pub report: Report,
}

/// Returns the values of `roots` from operations of lower or equal weight.
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
    let found = Found::new(graph, roots, options, Steps::Ahead, None);
    found.put_into(graph, roots)
}

/// Does the same for the roots of `start`. Searches from one start share the rounds that do not depend on the seed; the
/// results are as without sharing.
pub fn optimise_from(graph: &mut Graph, start: &mut Start, options: &Optimise) -> Optimised {
    let found = start.search(graph, options, Steps::Ahead);
    found.put_into(graph, &start.roots)
}

/// Does the same for each of two starts, as if in sequence, but in parallel.
pub fn optimise_both(graph: &mut Graph, starts: [&mut Start; 2], options: &Optimise) -> [Optimised; 2] {
    // The search reads only the nodes below its roots, and its results are added to the graph in order.
    let reader = &*graph;
    let [first, second] = starts;
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| second.search(reader, options, Steps::InTurn));
        let one = first.search(reader, options, Steps::InTurn);
        (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    [one.put_into(graph, &first.roots), other.put_into(graph, &second.roots)]
}

/// Roots from which several searches start.
pub struct Start {
    /// The roots.
    pub roots: Vec<NodeId>,
    /// State after the rounds that do not depend on the seed, once a search has run them.
    rounds: Option<Box<First>>,
}

impl Start {
    /// Returns the start from these roots.
    #[must_use]
    pub fn new(roots: &[NodeId]) -> Self {
        Self { roots: roots.to_vec(), rounds: None }
    }

    /// Runs a search.
    fn search(&mut self, graph: &Graph, options: &Optimise, steps: Steps) -> Found {
        Found::new(graph, &self.roots, options, steps, Some(&mut self.rounds))
    }
}

/// First rounds that a search shares with others, if it does.
type FirstRounds<'a> = Option<&'a mut Option<Box<First>>>;

/// State of a search after its first rounds on the whole.
struct First {
    part: Part,
    weights: (u64, u64),
    rounds: usize,
    /// Budget spent.
    spent: u64,
    in_vain: InVain,
    most_nodes: u64,
}

/// Result of a search: roots in a separate graph, if a search ran.
struct Found {
    before: Counts,
    part: Option<(Graph, Vec<NodeId>)>,
    rounds: usize,
    left: u64,
    stop: StopReason,
}

/// Order of the steps after a local search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// Another thread computes them ahead.
    Ahead,
    /// This thread computes them after the search.
    InTurn,
}

impl Found {
    /// Runs a search; its first rounds are taken from `first`, or put there.
    fn new(graph: &Graph, roots: &[NodeId], options: &Optimise, steps: Steps, first: FirstRounds<'_>) -> Self {
        let before = counts(graph, roots);
        let unresolved = graph.reachable(roots).iter().any(|id| matches!(graph.node(id), Node::Derivative(_)));
        if graph.semantics() == Semantics::Strict || unresolved {
            return Self { before, part: None, rounds: 0, left: options.budget, stop: StopReason::NotAllowed };
        }
        let (extracted, extracted_roots) = graph.extract(roots);
        let exact = vec![true; graph.inputs().len()];
        let mut search = Search::new(Part { graph: extracted, roots: extracted_roots, exact }, options);
        search.looks_ahead = steps == Steps::Ahead;
        let stop = search.run(first);
        let Part { graph, roots, .. } = search.part;
        Self { before, part: Some((graph, roots)), rounds: search.rounds, left: search.budget, stop }
    }

    /// Adds the found roots to the graph if they weigh less.
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

/// Progress of the sweeps over windows.
#[derive(Clone, Copy)]
struct Turns {
    /// Number of sweeps.
    sweeps: usize,
    /// Number of turns without a saving since the last saving.
    since: usize,
    /// Weight of the part at the start of the current turn.
    weight: u64,
}

struct Search {
    part: Part,
    weight: u64,
    /// Weight without negations: the limit for a network.
    bare: u64,
    rounds: usize,
    budget: u64,
    window: usize,
    seed: u64,
    /// Whether the first round runs regardless of the budget.
    whole: bool,
    /// Reused extraction.
    extraction: Box<Extraction>,
    /// Rounds that saved nothing on the current part, and would not now.
    in_vain: InVain,
    turns: Turns,
    /// Maximum number of nodes that the part has had.
    most_nodes: u64,
    /// Whether another thread may run the steps after a local search.
    looks_ahead: bool,
    /// In a successor: its shared state,
    watch: Option<Arc<Watch>>,
    /// and whether it has paid for local search.
    has_settled: bool,
}

/// Rounds that saved nothing on a part.
#[derive(Clone, Default)]
struct InVain {
    /// Policies; canonical as long as nothing else was known.
    policies: Vec<(Policy, Preference)>,
    /// Fingerprints of networks: different policies often collect the same network.
    networks: Vec<(u64, Preference)>,
    /// Whether no choice of sums matters without and with shared products.
    any_sums: [bool; 2],
}

impl InVain {
    /// Returns the policy with the same network that chooses no sums, if there is one.
    fn canonical(&self, policy: Policy) -> Policy {
        if self.any_sums[usize::from(policy.shared_products)] { Policy { shared_sums: None, ..policy } } else { policy }
    }

    fn clear(&mut self) {
        self.policies.clear();
        self.networks.clear();
        self.any_sums = [false; 2];
    }
}

/// Number of random rounds without a saving before the search in a window ends.
const PATIENCE: usize = 8;

/// Number of turns of local search without a saving before it ends.
const LOCAL_PATIENCE: usize = 1;

/// Number of complete turns without a saving before the search ends.
const SETTLED: usize = 2;

/// Minimum number of nodes above which rounds run in windows instead of on the whole graph.
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
            in_vain: InVain::default(),
            turns: Turns { sweeps: 0, since: 0, weight },
            most_nodes,
            looks_ahead: false,
            watch: None,
            has_settled: false,
        }
    }

    /// Runs rounds and local search on the whole, then rounds on windows of it, until neither saves. The first rounds
    /// are taken from `first`, or put there.
    fn run(&mut self, mut first: FirstRounds<'_>) -> StopReason {
        loop {
            self.turns.weight = self.weight;
            if let Some(stop) = self.on_the_whole(first.take()).or_else(|| self.in_windows()) {
                return stop;
            }
        }
    }

    /// As [`Self::rounds_of_choice`], for the first rounds of a search.
    fn first_rounds(&mut self, first: &mut Option<Box<First>>) -> bool {
        match first {
            // No round was denied for lack of budget.
            Some(first) if self.budget >= first.spent + first.most_nodes => {
                let First { part: Part { graph, roots, exact }, weights, rounds, spent, in_vain, most_nodes } =
                    &**first;
                self.part = Part { graph: graph.clone(), roots: roots.clone(), exact: exact.clone() };
                (self.weight, self.bare) = *weights;
                (self.rounds, self.most_nodes) = (*rounds, *most_nodes);
                self.budget -= spent;
                self.in_vain = in_vain.clone();
                true
            }
            _ => {
                let budget = self.budget;
                let is_complete = self.rounds_of_choice();
                let Part { graph, roots, exact } = &self.part;
                if is_complete && first.is_none() {
                    *first = Some(Box::new(First {
                        part: Part { graph: graph.clone(), roots: roots.clone(), exact: exact.clone() },
                        weights: (self.weight, self.bare),
                        rounds: self.rounds,
                        spent: budget - self.budget,
                        in_vain: self.in_vain.clone(),
                        most_nodes: self.most_nodes,
                    }));
                }
                is_complete
            }
        }
    }

    /// Runs the first half of a turn; returns the reason to stop, if any.
    fn on_the_whole(&mut self, first: FirstRounds<'_>) -> Option<StopReason> {
        if self.part.graph.len() > WHOLE {
            if self.turns.sweeps == 0 {
                self.sweep(Order::DepthFirst, Sizes { first: WHOLE, rest: WHOLE }, |search| {
                    _ = search.round(PRODUCTS, Preference::Oldest);
                });
            }
            return None;
        }
        let is_complete = match first {
            Some(first) => self.first_rounds(first),
            None => self.rounds_of_choice(),
        };
        if is_complete { self.local_rounds() } else { Some(StopReason::Budget) }
    }

    /// Runs the second half of a turn.
    fn in_windows(&mut self) -> Option<StopReason> {
        const ORDERS: [Order; 3] = [Order::DepthFirst, Order::Levels, Order::Heights];
        self.settle();
        if self.part.graph.len() <= self.window {
            if !self.rounds_at_random() {
                return Some(StopReason::Budget);
            }
        } else {
            let sizes = Sizes { first: self.window * (1 + self.turns.sweeps % 5) / 5, rest: self.window };
            self.sweep(ORDERS[self.turns.sweeps % 3], sizes, |search| {
                search.whole = false;
                if search.rounds_of_choice() {
                    search.rounds_at_random();
                }
            });
        }
        if self.budget == 0 {
            return Some(StopReason::Budget);
        }
        self.turns.sweeps += 1;
        self.turns.since = if self.weight < self.turns.weight { 0 } else { self.turns.since + 1 };
        (self.turns.since == SETTLED).then_some(StopReason::Settled)
    }

    /// Runs rounds with each policy on the whole while they save; returns false when the budget is spent.
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

    /// Runs rounds in which randomly chosen sums are distributed; returns false when the budget is spent.
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

    /// Runs local search while it saves; returns the reason to stop, if any.
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

    /// Returns whether local search finds an improvement, which is kept. Its successor is cancelled as soon as an
    /// improvement is likely.
    fn search_locally(&mut self, successor: Option<&Watch>) -> bool {
        let seed = self.rounds as u64 + self.seed;
        let Part { graph, roots, exact } = &self.part;
        let policy = if seed.is_multiple_of(2) { PLAIN } else { PRODUCTS };
        let preference = if seed % 4 < 2 { Preference::Oldest } else { Preference::Newest };
        self.extraction.run(collect(graph, roots, exact, policy).network, preference);
        // The start of local search may weigh more than the current graph.
        let excess = successor.map(|_| self.extraction.weight(graph).saturating_sub(self.bare));
        let (mut extraction, mut budget) = (std::mem::take(&mut self.extraction), self.budget);
        extraction.search(seed << 32 | self.rounds as u64, LOCAL_PATIENCE, &mut budget, |left, saved| {
            successor.filter(|_| excess.is_some_and(|excess| saved > excess)).inspect(|watch| watch.give_up());
            !self.is_in_vain(left)
        });
        (self.extraction, self.budget) = (extraction, budget);
        self.keep_if_better()
    }

    /// Optimises each window separately.
    fn sweep(&mut self, order: Order, sizes: Sizes, rounds_of: impl Fn(&mut Search) + Sync) {
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
        let (graph, roots) = sweep(part, order, sizes, &mut account, extraction, look);
        let weight = counts(&graph, &roots).weight;
        if weight < self.weight {
            let weights = weights(&graph, &roots);
            self.keep(&graph, &roots, weights);
        }
    }

    /// Runs one round; returns whether it was kept, `None` if the budget does not allow it.
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
        // It counts as a round that was run: the progress of a search does not depend on this memoisation.
        let policy = self.in_vain.canonical(policy);
        if self.in_vain.policies.contains(&(policy, preference)) {
            debug_assert!(!self.saves(policy, preference), "{policy:?} and {preference:?} saved nothing before");
            return Some(false);
        }
        let Part { graph, roots, exact } = &self.part;
        let Collected { network, sums_matter } = collect(graph, roots, exact, policy);
        self.in_vain.any_sums[usize::from(policy.shared_products)] |= !sums_matter;
        let fingerprint = (network.fingerprint(), preference);
        if self.in_vain.networks.contains(&fingerprint) {
            debug_assert!(!self.saves(policy, preference), "the network of {policy:?} saved nothing before");
            return Some(false);
        }
        self.extraction.run(network, preference);
        let is_better = self.keep_if_better();
        if !is_better {
            self.in_vain.policies.push((self.in_vain.canonical(policy), preference));
            self.in_vain.networks.push(fingerprint);
        }
        Some(is_better)
    }

    /// Returns whether a round finds an improvement, which is kept.
    fn saves(&mut self, policy: Policy, preference: Preference) -> bool {
        let Part { graph, roots, exact } = &self.part;
        self.extraction.run(collect(graph, roots, exact, policy).network, preference);
        self.keep_if_better()
    }

    /// Converts the extraction to a graph, if that weighs less.
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

/// Returns the weight of the roots with and without negations.
fn weights(graph: &Graph, roots: &[NodeId]) -> (u64, u64) {
    let counts = counts(graph, roots);
    (counts.weight, counts.weight - counts.neg * u64::from(Op::Neg.row().weight))
}

/// Copies the nodes of `roots` without simplification from `other`, which has the same inputs and functions, to
/// `graph`.
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
