//! Table of all strategies: those of the compiler, and annealing.

use crate::{annealing, edge_annealing};
use chainrule_accumulate as accumulate;
use chainrule_accumulate::strategy::{Method, Strategy};
use chainrule_base::Diagnostic;

/// Strategies that search.
const SEARCHES: [Strategy; 2] = [
    Strategy {
        name: "annealing",
        description: "vertex elimination in the best order that simulated annealing finds",
        method: Method::One(|linear, budget| annealing::run(linear, budget, &annealing::Options::default())),
    },
    Strategy {
        name: "edge-annealing",
        description: "edge elimination along the best history that simulated annealing finds",
        method: Method::One(|linear, budget| edge_annealing::run(linear, budget, &annealing::Options::default())),
    },
];

const N_FAST: usize = accumulate::STRATEGIES.len();
const N_SEARCHES: usize = SEARCHES.len();

const ALL: [Strategy; N_FAST + N_SEARCHES] = {
    let mut all = [accumulate::STRATEGIES[N_FAST - 1]; N_FAST + N_SEARCHES];
    let mut idx = 0;
    while idx < all.len() - 1 {
        all[idx] = if idx < N_FAST - 1 { accumulate::STRATEGIES[idx] } else { SEARCHES[idx + 1 - N_FAST] };
        idx += 1;
    }
    all
};

/// All strategies: those of the compiler in their order, with the searches before the last one, the oracle.
pub static STRATEGIES: &[Strategy] = &ALL;

/// Returns the strategy of this name.
///
/// # Errors
/// Fails if there is no such strategy.
pub fn strategy(name: &str) -> Result<&'static Strategy, Diagnostic> {
    Strategy::find(STRATEGIES, name)
}
