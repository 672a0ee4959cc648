//! Exact vertex elimination: an order of fewest multiplications, with the proof, or the gap that is left.
//!
//! In: a linearised graph, how multiplications count, an order to be beaten. Out: the best order found,
//! what it costs, and what every order costs at least ([`Optimum`]). The first that ends the search:
//! safe eliminations (`reduce.rs`), bounds by vertex cuts (`cuts.rs`) and clusters (`clusters.rs`) that
//! meet the order to be beaten, or branch and bound over sets (`search.rs`). Which vertices are eliminated decides the
//! graph (`state.rs`), whatever their order: on sets of up to the cluster size this is dynamic
//! programming over subsets.

mod clusters;
mod cuts;
mod reduce;
mod search;
mod state;

use crate::{Budget, Counting, LinearGraph, Outcome, StopReason, VertexId, vertex};
use chainrule_base::Id;
use clusters::Clusters;
use search::{Link, Search};
use state::{Set, State};

/// How many intermediates may be left after safe eliminations for a search; for more there are bounds only.
pub const MAX_VERTICES: usize = 512;

/// How many sets of vertices are looked at where nothing else is said: tens of seconds on the hardest graphs.
pub const SETS: u64 = 100_000;

/// How to search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How multiplications count.
    pub counting: Counting,
    /// How many vertices a cluster has at most: bounds are better, and cost twice as much, for each more.
    pub cluster: usize,
}

impl Options {
    /// The default for [`Options::cluster`]: about a second for every 40 intermediates.
    pub const CLUSTER: usize = 12;

    /// Counted like this, with clusters of the default size.
    #[must_use]
    pub fn new(counting: Counting) -> Self {
        Self { counting, cluster: Self::CLUSTER }
    }
}

/// What is known of the best order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Optimum {
    /// The best order known.
    pub order: Vec<VertexId>,
    /// How many multiplications it takes.
    pub cost: u64,
    /// How many every order takes at least.
    pub bound: u64,
    /// How many intermediates were left after safe eliminations.
    pub hard: usize,
    /// How many sets were looked at.
    pub evaluations: u64,
}

impl Optimum {
    /// Whether no order takes fewer multiplications.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.cost == self.bound
    }
}

/// The best order, starting from one to be beaten; intermediates that it leaves out follow in ascending
/// order. [`Budget::evaluations`] bounds the search: when it is used up, the order to be beaten stands.
/// Exponential in the number of intermediates at worst.
///
/// ```
/// use chainrule_accumulate::{Budget, Counting, Label, LinearGraph, exact};
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
    let mut rest = Set::empty(linear.n_vertices());
    linear.intermediates().for_each(|v| rest.insert(v.index()));
    let reduces = options.counting == Counting::Plain;
    let (mut first, mut spent) = (Vec::new(), 0);
    while reduces && let Some(v) = reduce::safe(&state, &rest) {
        spent += state.cost(v);
        state.eliminate(v);
        rest.remove(v);
        first.push(v);
    }
    let hard = usize::try_from(rest.len()).unwrap_or(usize::MAX);
    let nothing = Set::empty(linear.n_vertices());
    let simple: u64 = rest.iter().map(|v| cuts::bound(&state, v, &nothing)).sum();
    let mut optimum = Optimum { order, cost, bound: spent + simple, hard, evaluations: 0 };
    // Where safe eliminations leave nothing, their order may be better than the one to be beaten.
    if optimum.is_proved() || hard > MAX_VERTICES {
        return optimum;
    }
    let clusters = Clusters::new(&state, &rest, options.cluster.clamp(1, 24));
    let mut search = Search::new(&clusters, reduces, budget.evaluations);
    let (least, found) = search.solve(&state, &rest, cost.saturating_sub(spent));
    optimum.evaluations = search.evaluations;
    optimum.bound = optimum.bound.max(spent + least).min(cost);
    if let Some(found) = found {
        let mut at: Option<&Link> = found.as_deref();
        while let Some(link) = at {
            first.push(link.first);
            at = link.others.as_deref();
        }
        optimum.order = first.into_iter().map(VertexId::new).collect();
        optimum.cost = spent + least;
        optimum.bound = optimum.cost;
    }
    optimum
}

/// All intermediates, those of `order` first, and what they cost.
fn completed(linear: &LinearGraph, counting: Counting, order: &[VertexId]) -> (Vec<VertexId>, u64) {
    let mut state = State::new(linear, counting);
    let mut gone = Set::empty(linear.n_vertices());
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

/// Elimination in the best order of [`vertex_order`], every product counted; from the best of the cheap orders. When the
/// budget is used up the best order found stands.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget) -> Outcome {
    let best = vertex_order(linear, budget, &Options::new(Counting::Plain), &[]);
    let outcome = vertex::run(linear, budget, &best.order);
    if best.is_proved() { outcome } else { Outcome { stop: StopReason::EvaluationBudget, ..outcome } }
}
