//! Budgets of strategies, and the reasons why a strategy stops.

use crate::{Counting, Program};

/// Limits of a strategy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Maximum number of paths that the oracle walks.
    pub paths: u64,
    /// Maximum number of products of a program; of factors for the oracle.
    pub products: u64,
    /// Maximum work of scores that are more than a look-up, in pairs of neighbours visited.
    pub scores: u64,
    /// Maximum number of candidates of a search.
    pub evaluations: u64,
    /// Maximum effort of the portfolio on optional methods, in microseconds estimated from the number of edges.
    pub effort: u64,
    /// Maximum work of a search, in operations on 64-bit words; about [`Budget::WORK_PER_SECOND`] take a second.
    pub work: u64,
}

impl Budget {
    /// The default for [`Budget::paths`].
    pub const PATHS: u64 = 1_000_000;
    /// The default for [`Budget::products`]: a few GB of memory during clean-up.
    pub const PRODUCTS: u64 = 20_000_000;
    /// The default for [`Budget::scores`]: a second or two.
    pub const SCORES: u64 = 20_000_000;
    /// The default for [`Budget::evaluations`]: 0.2 seconds on graphs of a hundred vertices.
    pub const EVALUATIONS: u64 = 100_000;
    /// The default for [`Budget::effort`]: about a second on the largest graphs with optional methods.
    pub const EFFORT: u64 = 1_000_000;
    /// Assumed operations of searches in a second. Budgets count work, so that results do not depend on the machine.
    pub const WORK_PER_SECOND: u64 = 400_000_000;
    /// The default for [`Budget::work`]: ten seconds.
    pub const WORK: u64 = 10 * Self::WORK_PER_SECOND;
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            paths: Self::PATHS,
            products: Self::PRODUCTS,
            scores: Self::SCORES,
            evaluations: Self::EVALUATIONS,
            effort: Self::EFFORT,
            work: Self::WORK,
        }
    }
}

/// Reason why a strategy stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// The strategy is complete.
    Done,
    /// There are more paths than [`Budget::paths`].
    PathBudget,
    /// The program would have more products than [`Budget::products`].
    ProductBudget,
    /// [`Budget::scores`] is used up.
    ScoreBudget,
    /// The derivative graphs of all pairs have more edges in total than D* accepts
    /// ([`crate::dstar::Options::memberships`]), or factoring them takes far more than usual.
    SeparationBudget,
    /// [`Budget::evaluations`] is used up. The search still returns the best program found.
    EvaluationBudget,
    /// [`Budget::work`] is used up. The search still returns the best program found.
    WorkBudget,
}

/// Result of a strategy.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Program; present if [`Outcome::stop`] is [`StopReason::Done`].
    pub program: Option<Program>,
    /// Reason why the strategy stopped.
    pub stop: StopReason,
}

impl Outcome {
    /// Returns the outcome of a complete strategy.
    #[must_use]
    pub fn done(program: Program) -> Self {
        Self { program: Some(program), stop: StopReason::Done }
    }

    /// Returns the outcome of a strategy that stopped without a program.
    #[must_use]
    pub fn stopped(stop: StopReason) -> Self {
        Self { program: None, stop }
    }

    /// Returns the outcome of least weight with free arithmetic on constants, cleaned up for the comparison; the first
    /// one on ties. Without any program, returns the last outcome.
    #[must_use]
    pub fn cheapest(outcomes: impl IntoIterator<Item = Self>) -> Self {
        let mut best: Option<(u64, Program)> = None;
        let mut stop = StopReason::ProductBudget;
        for outcome in outcomes {
            let Some(program) = outcome.program else {
                stop = outcome.stop;
                continue;
            };
            let weight = program.tidied().count(Counting::Folded).weight;
            if best.as_ref().is_none_or(|(least, _)| weight < *least) {
                best = Some((weight, program));
            }
        }
        best.map_or_else(|| Self::stopped(stop), |(_, program)| Self::done(program))
    }

    /// Returns the outcome with the stop reason of the search that found it.
    #[must_use]
    pub fn found_by(self, search: StopReason) -> Self {
        match self.stop {
            StopReason::Done => Self { stop: search, ..self },
            _ => self,
        }
    }
}
