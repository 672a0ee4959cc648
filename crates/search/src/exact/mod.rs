//! Exact vertex elimination: an order of fewest multiplications with a proof, or the remaining gap.
//!
//! In: a linearised graph, a counting rule, an order to be beaten. Out: the best order found, its cost, and a lower
//! bound of every order ([`Optimum`]). The search ends with the first of these that succeeds: safe eliminations
//! (`reduce.rs`); bounds by vertex cuts (`cuts.rs`) and clusters (`patterns.rs`) that equal the order to be beaten;
//! branch and bound over the last vertex (`last.rs`). The set of eliminated vertices determines the graph (`state.rs`,
//! and `masks.rs` for the search), whatever their order.

mod cuts;
mod last;
mod masks;
mod patterns;
mod reduce;
mod state;

use chainrule_accumulate::{Budget, Counting, LinearGraph, StopReason, VertexId};
use chainrule_base::Id;
use fixedbitset::FixedBitSet;
use last::Search;
use masks::Graph;
use patterns::Patterns;
use state::State;

/// Maximum number of intermediates after safe eliminations for a search; larger graphs only get bounds.
pub const MAX_VERTICES: usize = 512;

/// Default number of sets of vertices to be searched: tens of seconds on the hardest graphs if [`Budget::work`] permits
/// it.
pub const SETS: u64 = 200_000;

/// Options of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Counting rule.
    pub counting: Counting,
    /// Maximum number of vertices of a cluster. Each more improves the bounds and doubles their cost.
    pub cluster: usize,
}

impl Options {
    /// The default for [`Options::cluster`]: about a second for every 40 intermediates.
    pub const CLUSTER: usize = 16;

    /// Returns options with this counting rule and clusters of the default size.
    #[must_use]
    pub fn new(counting: Counting) -> Self {
        Self { counting, cluster: Self::CLUSTER }
    }
}

/// Result of the search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Optimum {
    /// Best order known.
    pub order: Vec<VertexId>,
    /// Multiplications of the order.
    pub cost: u64,
    /// Lower bound of the multiplications of every order.
    pub bound: u64,
    /// Number of intermediates after safe eliminations.
    pub hard: usize,
    /// Number of sets searched.
    pub evaluations: u64,
    /// Reason why the search stopped; [`StopReason::Done`] if the order is proved, or if there are too many
    /// intermediates for a search.
    pub stop: StopReason,
}

impl Optimum {
    /// Returns whether no order takes fewer multiplications.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.cost == self.bound
    }
}

/// Returns the best order, starting from one to be beaten, whose missing intermediates follow in ascending order.
/// [`Budget::evaluations`] and [`Budget::work`] bound the search; if they are used up, the order to be beaten stays.
/// Exponential in the number of intermediates at worst.
///
/// ```
/// use chainrule_accumulate::{Budget, Counting, Label, LinearGraph};
/// use chainrule_search::exact;
/// // The lion: two intermediates in a row, the second with four results behind it.
/// let edges = [(0, 2), (1, 2), (2, 3), (2, 4), (3, 4), (3, 5), (3, 6), (3, 7)];
/// let edges = edges.map(|(i, k)| (i, k, Label::Var));
/// let lion = LinearGraph::from_edges(2, 2, 4, &edges)?;
/// let best = exact::vertex_order(&lion, &Budget::default(), &exact::Options::new(Counting::Plain), &[]);
/// assert_eq!((best.cost, best.is_proved()), (12, true));
/// # Ok::<(), chainrule_base::Diagnostic>(())
/// ```
#[must_use]
pub fn vertex_order(linear: &LinearGraph, budget: &Budget, options: &Options, beat: &[VertexId]) -> Optimum {
    let (order, cost) = completed(linear, options.counting, beat);
    let mut state = State::new(linear, options.counting);
    let mut rest = FixedBitSet::with_capacity(linear.n_vertices());
    linear.intermediates().for_each(|v| rest.insert(v.index()));
    let (mut first, mut spent) = (Vec::new(), 0);
    while let Some(v) = reduce::safe(&state, &rest) {
        spent += state.cost(v);
        state.eliminate(v);
        rest.remove(v);
        first.push(v);
    }
    let hard = rest.count_ones(..);
    let simple: u64 = rest.ones().map(|v| cuts::bound(&state, v)).sum();
    let mut optimum = Optimum { order, cost, bound: spent + simple, hard, evaluations: 0, stop: StopReason::Done };
    // The order to be beaten without the safe eliminations; behind them it may be better.
    let given: Vec<usize> = optimum.order.iter().map(|v| v.index()).filter(|v| rest.contains(*v)).collect();
    let n_left = hard + (0..linear.n_vertices()).filter(|v| !state.is_intermediate(*v)).count();
    let search = Searched { state: &state, given: &given, options, budget };
    let (least, found) = match n_left {
        _ if hard > MAX_VERTICES => return optimum,
        0..=64 => search.run::<1>(&mut optimum),
        65..=128 => search.run::<2>(&mut optimum),
        129..=256 => search.run::<4>(&mut optimum),
        257..=512 => search.run::<8>(&mut optimum),
        _ => return optimum,
    };
    optimum.bound = optimum.bound.max(spent + least);
    first.extend(found);
    let (order, cost) = completed(linear, options.counting, &first.into_iter().map(VertexId::new).collect::<Vec<_>>());
    if cost < optimum.cost {
        (optimum.order, optimum.cost) = (order, cost);
    }
    optimum.bound = optimum.bound.min(optimum.cost);
    optimum
}

/// Input of the search.
struct Searched<'a> {
    /// State after safe eliminations.
    state: &'a State,
    /// Remaining vertices, in the order to be beaten.
    given: &'a [usize],
    options: &'a Options,
    budget: &'a Budget,
}

impl Searched<'_> {
    /// Returns a lower bound of the remaining cost, and an order: of this cost if the search ended, otherwise the one
    /// to be beaten.
    fn run<const W: usize>(&self, optimum: &mut Optimum) -> (u64, Vec<usize>) {
        let (graph, names) = Graph::<W>::new(self.state, self.given);
        let given: Vec<usize> = self.given.iter().filter_map(|v| names.binary_search(v).ok()).collect();
        // Half of the work is for clusters, which determine how many sets are searched.
        let patterns = Patterns::new(&graph, self.options.cluster.clamp(1, 24), self.budget.work / 2);
        let mut search = Search::new(&graph, patterns, &given, self.budget.evaluations, self.budget.work);
        let (least, order) = search.run();
        optimum.evaluations = search.evaluations;
        optimum.stop = match order {
            Some(_) => StopReason::Done,
            None if search.is_over() => StopReason::WorkBudget,
            None => StopReason::EvaluationBudget,
        };
        let order = order.map(|order| order.into_iter().map(|v| names[v]).collect());
        (least, order.unwrap_or_else(|| self.given.to_vec()))
    }
}

/// Returns all intermediates, those of `order` first, and their cost.
fn completed(linear: &LinearGraph, counting: Counting, order: &[VertexId]) -> (Vec<VertexId>, u64) {
    let mut state = State::new(linear, counting);
    let mut gone = FixedBitSet::with_capacity(linear.n_vertices());
    let (mut all, mut cost) = (Vec::new(), 0);
    for v in order.iter().copied().chain(linear.intermediates()) {
        if v.index() < linear.n_vertices() && state.is_intermediate(v.index()) && !gone.contains(v.index()) {
            gone.insert(v.index());
            cost += state.cost(v.index());
            state.eliminate(v.index());
            all.push(v);
        }
    }
    (all, cost)
}
