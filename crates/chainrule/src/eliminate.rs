//! Accumulation on linearised graphs that come without a scalar graph, such as those of the literature:
//! what `chainrule eliminate` and the benchmarks run.
//!
//! In: a graph ([`crate::accumulate::exchange`]), a strategy by name or a search. Out: the program as the
//! strategy made it, not tidied, so that it is counted as the literature counts; the checker has accepted it.

use chainrule_accumulate::dstar::{self, Units};
use chainrule_accumulate::strategy::Method;
use chainrule_accumulate::{
    Budget, Counting, LinearGraph, Objective, Program, StopReason, Strategy, VertexId, annealing, check, exact,
};
use chainrule_base::Diagnostic;

/// What a strategy made.
#[derive(Clone, Debug)]
pub struct Elimination {
    /// The strategy whose program it is: `auto` takes that of another one.
    pub strategy: &'static str,
    /// The program; `None` where the budget was too small.
    pub program: Option<Program>,
    /// Why the strategy stopped.
    pub stop: StopReason,
}

/// The seed of the checker and of annealing.
const SEED: u64 = 1;

/// Runs a strategy. A portfolio takes the program of fewest multiplications in this counting. D* leaves factors of 1
/// out of its products but where every product counts: there they count as with the other methods.
///
/// # Errors
/// A bug, when the checker rejects the program; as [`Strategy::run`] for portfolios.
///
/// ```
/// use chainrule::accumulate::{Budget, Counting, Strategy, exchange};
/// let text = r#"{"n_inputs": 1, "n_intermediates": 1, "n_outputs": 1, "edges": [[0, 1], [1, 2]]}"#;
/// let (graph, reverse) = (exchange::from_json(text)?.graph, Strategy::named("reverse")?);
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

/// The best in this counting of what a portfolio tries.
fn best_of(
    portfolio: &Strategy,
    graph: &LinearGraph,
    budget: &Budget,
    counting: Counting,
) -> Result<Elimination, Diagnostic> {
    let (_, report) = portfolio.run_by(graph, budget, |program| program.count(counting).mul)?;
    let mut best = run(Strategy::named(report.chosen().name)?, graph, budget, counting)?;
    let least = |made: &Elimination| made.program.as_ref().map_or(u64::MAX, |program| program.count(counting).mul);
    for attempt in report.attempts.iter().filter(|attempt| attempt.has_program) {
        let made = run(Strategy::named(attempt.name)?, graph, budget, counting)?;
        if least(&made) < least(&best) {
            best = made;
        }
    }
    Ok(best)
}

/// Asks the checker whether this is a program for the derivatives of this graph.
///
/// # Errors
/// A bug, when it is not.
pub fn accept(name: &str, graph: &LinearGraph, program: &Program) -> Result<(), Diagnostic> {
    match check::program(graph, program, SEED) {
        verdict if verdict.agrees() => Ok(()),
        verdict => {
            Err(Diagnostic::bug(format!("the program of `{name}` is wrong")).with_reason(format!("{verdict:?}")))
        }
    }
}

/// The best order that greedy orders and annealing find, and why the search stopped.
#[must_use]
pub fn annealed(graph: &LinearGraph, budget: &Budget, counting: Counting) -> (Vec<VertexId>, StopReason) {
    let options = annealing::Options { objective: Objective::Multiplications, counting, seed: SEED };
    let search = annealing::order(graph, budget, &options);
    (search.order, search.stop)
}

/// The vertex order of fewest multiplications, or what is known of it; starts from the annealed order.
/// `sets` bounds how many sets of vertices the search looks at.
#[must_use]
pub fn fewest(graph: &LinearGraph, budget: &Budget, sets: u64, options: &exact::Options) -> exact::Optimum {
    let (order, _) = annealed(graph, budget, options.counting);
    exact::vertex_order(graph, &Budget { evaluations: sets, ..*budget }, options, &order)
}
