//! Budgets of the strategies, and why a strategy stopped.

use crate::{Counting, Program};

/// How much a strategy may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// How many paths the oracle may walk.
    pub paths: u64,
    /// How many products a program may have; for the oracle, factors.
    pub products: u64,
    /// How much the scores of a greedy order may take that are more than a look-up, in pairs of
    /// neighbours looked at.
    pub scores: u64,
    /// How many candidates a search may try.
    pub evaluations: u64,
    /// How much effort the portfolio may spend on methods that are not always tried, in microseconds as
    /// estimated from the number of edges.
    pub effort: u64,
    /// How much a search may do in all, in operations on 64-bit words; about [`Budget::WORK_PER_SECOND`] take a second.
    pub work: u64,
}

impl Budget {
    /// The default for [`Budget::paths`].
    pub const PATHS: u64 = 1_000_000;
    /// The default for [`Budget::products`]: a few GB of memory while it is tidied.
    pub const PRODUCTS: u64 = 20_000_000;
    /// The default for [`Budget::scores`]: a second or two.
    pub const SCORES: u64 = 20_000_000;
    /// The default for [`Budget::evaluations`]: a fifth of a second on graphs of a hundred vertices.
    pub const EVALUATIONS: u64 = 100_000;
    /// The default for [`Budget::effort`]: about a second on the largest graphs that it is spent on.
    pub const EFFORT: u64 = 1_000_000;
    /// Assumed operations of searches in a second. Budgets are counted in work, so that results do not depend on the machine.
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

/// Why a strategy stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// It was done.
    Done,
    /// There are more paths than [`Budget::paths`].
    PathBudget,
    /// The program would have more products than [`Budget::products`].
    ProductBudget,
    /// [`Budget::scores`] are used up.
    ScoreBudget,
    /// The derivative graphs of all pairs have more edges together than D* takes on
    /// ([`crate::dstar::Options::memberships`]), or factoring them takes far more than is usual.
    SeparationBudget,
    /// [`Budget::evaluations`] are used up. A search has a program nevertheless, the best one found.
    EvaluationBudget,
    /// [`Budget::work`] is used up. A search has a program nevertheless, the best one found.
    WorkBudget,
}

/// What a strategy returns.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The program; always there when [`Outcome::stop`] is [`StopReason::Done`].
    pub program: Option<Program>,
    /// Why the strategy stopped.
    pub stop: StopReason,
}

impl Outcome {
    /// A strategy that was done.
    #[must_use]
    pub fn done(program: Program) -> Self {
        Self { program: Some(program), stop: StopReason::Done }
    }

    /// A strategy that stopped without a program.
    #[must_use]
    pub fn stopped(stop: StopReason) -> Self {
        Self { program: None, stop }
    }

    /// The outcome of lowest weight where arithmetic on constants is free, tidied for the comparison; the first
    /// of them on ties. Without any program, the last outcome.
    #[must_use]
    pub(crate) fn cheapest(outcomes: impl IntoIterator<Item = Self>) -> Self {
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

    /// The same program, found by a search that stopped for this reason.
    #[must_use]
    pub(crate) fn found_by(self, search: StopReason) -> Self {
        match self.stop {
            StopReason::Done => Self { stop: search, ..self },
            _ => self,
        }
    }
}
