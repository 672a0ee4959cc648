//! Accumulation on linearised graphs without a scalar graph, such as those of the literature: the implementation of
//! `chainrule eliminate` and the benchmarks.
//!
//! In: a graph ([`crate::search::exchange`]), a strategy by name or a search. Out: the program of the strategy,
//! without cleanup, so that counts follow the literature; the checker has accepted it.

use chainrule_accumulate::dstar::{self, Units};
use chainrule_accumulate::strategy::Method;
use chainrule_accumulate::{Budget, Counting, LinearGraph, Program, StopReason, Strategy, VertexId, check};
use chainrule_base::Diagnostic;
use chainrule_search::{Objective, annealing, exact, strategy as named};

/// Result of a strategy.
#[derive(Clone, Debug)]
pub struct Elimination {
    /// Strategy of the program: `auto` selects that of another one.
    pub strategy: &'static str,
    /// Program; `None` if the budget was too small.
    pub program: Option<Program>,
    /// Reason why the strategy stopped.
    pub stop: StopReason,
}

/// Seed of the checker and of annealing.
const SEED: u64 = 1;

/// Runs a strategy. A portfolio selects the program of fewest multiplications in this counting. D* omits factors of 1
/// from its products unless every product counts: then they count as with the other methods.
///
/// # Errors
/// Fails if the checker rejects the program, which is a bug; or with the errors of [`Strategy::run`] for portfolios.
///
/// ```
/// use chainrule::accumulate::{Budget, Counting};
/// use chainrule::search::exchange;
/// let text = r#"{"n_inputs": 1, "n_intermediates": 1, "n_outputs": 1, "edges": [[0, 1], [1, 2]]}"#;
/// let (graph, reverse) = (exchange::from_json(text)?.graph, chainrule::strategy("reverse")?);
/// let made = chainrule::eliminate::run(reverse, &graph, &Budget::default(), Counting::Plain)?;
/// assert_eq!(made.program.map(|program| program.count(Counting::Plain).mul), Some(1));
/// # Ok::<(), chainrule::Diagnostic>(())
/// ```
pub fn run(
    strategy: &'static Strategy,
    graph: &LinearGraph,
    budget: &Budget,
    counting: Counting,
) -> Result<Elimination, Diagnostic> {
    let algorithm = match strategy.method {
        Method::One(algorithm) => algorithm,
        Method::Portfolio => return best_of(strategy, graph, budget, counting),
    };
    let kept = |options| dstar::run_with(graph, budget, &dstar::Options { units: Units::Kept, ..options });
    let outcome = match strategy.name {
        "dstar" if counting == Counting::Plain => kept(dstar::Options::default()),
        "dstar-highest" if counting == Counting::Plain => kept(dstar::HIGHEST),
        _ => algorithm(graph, budget),
    };
    if let Some(program) = &outcome.program {
        accept(strategy.name, graph, program)?;
    }
    Ok(Elimination { strategy: strategy.name, program: outcome.program, stop: outcome.stop })
}

/// Returns the best result of a portfolio in this counting.
fn best_of(
    portfolio: &Strategy,
    graph: &LinearGraph,
    budget: &Budget,
    counting: Counting,
) -> Result<Elimination, Diagnostic> {
    let (_, report) = portfolio.run_by(graph, budget, |program| program.count(counting).mul)?;
    let mut best = run(named(report.chosen().name)?, graph, budget, counting)?;
    let least = |made: &Elimination| made.program.as_ref().map_or(u64::MAX, |program| program.count(counting).mul);
    for attempt in report.attempts.iter().filter(|attempt| attempt.has_program) {
        let made = run(named(attempt.name)?, graph, budget, counting)?;
        if least(&made) < least(&best) {
            best = made;
        }
    }
    Ok(best)
}

/// Checks that this is a program for the derivatives of this graph.
///
/// # Errors
/// Fails if it is not, which is a bug.
pub fn accept(name: &str, graph: &LinearGraph, program: &Program) -> Result<(), Diagnostic> {
    match check::program(graph, program, SEED) {
        verdict if verdict.agrees() => Ok(()),
        verdict => {
            Err(Diagnostic::bug(format!("the program of `{name}` is wrong")).with_reason(format!("{verdict:?}")))
        }
    }
}

/// Returns the best order of greedy orders and annealing, and why the search stopped.
#[must_use]
pub fn annealed(graph: &LinearGraph, budget: &Budget, counting: Counting) -> (Vec<VertexId>, StopReason) {
    let options = annealing::Options { objective: Objective::Multiplications, counting, seed: SEED };
    let search = annealing::order(graph, budget, &options);
    (search.order, search.stop)
}

/// Returns the vertex order of fewest multiplications, or its known bounds; starts from the annealed order. `sets`
/// bounds the number of sets of vertices that the search visits.
#[must_use]
pub fn fewest(graph: &LinearGraph, budget: &Budget, sets: u64, options: &exact::Options) -> exact::Optimum {
    let (order, _) = annealed(graph, budget, options.counting);
    exact::vertex_order(graph, &Budget { evaluations: sets, ..*budget }, options, &order)
}
