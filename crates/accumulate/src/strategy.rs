//! Table of strategies, named as on the command line, and the one function that runs and checks them.
//!
//! In: a linearised graph. Out: a cleaned-up program that the checker accepted, and a [`Report`] of the attempts
//! (`report.rs`). A strategy whose program is rejected has a bug: the next strategy is used, and the report says so.

use crate::edge_greedy::{self, Ways};
use crate::markowitz::{self, Ties};
use crate::{Budget, Counting, LinearGraph, Outcome, Program, Score};
use crate::{chain, dstar, face, forward, greedy, oracle, portfolio, reverse};
use chainrule_base::Diagnostic;

pub use crate::report::{Attempt, Report};

/// A strategy of accumulation.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub description: &'static str,
    /// Algorithm or combination of algorithms.
    pub method: Method,
}

/// An algorithm. It takes a linearised graph and a budget, and returns a program or the reason for its absence.
pub type Algorithm = fn(&LinearGraph, &Budget) -> Outcome;

/// Algorithm or combination of algorithms behind a strategy.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// A single algorithm.
    One(Algorithm),
    /// The cheapest program of several algorithms (`portfolio.rs`).
    Portfolio,
}

/// Strategies of the compiler; `chainrule-search` adds searches.
pub static STRATEGIES: &[Strategy] = &[
    Strategy {
        name: "auto",
        description: "the cheapest of forward, reverse and the greedy orders, and of D* and others within a budget",
        method: Method::Portfolio,
    },
    Strategy {
        name: "forward",
        description: "forward mode, a sweep for each column",
        method: Method::One(forward::run),
    },
    Strategy { name: "reverse", description: "reverse mode, a sweep for each row", method: Method::One(reverse::run) },
    Strategy {
        name: "markowitz",
        description: "vertex elimination by lowest Markowitz degree, lowest number on ties",
        method: Method::One(|linear, budget| markowitz::run(linear, budget, Ties::Lowest)),
    },
    Strategy {
        name: "markowitz-highest",
        description: "vertex elimination by lowest Markowitz degree, highest number on ties",
        method: Method::One(|linear, budget| markowitz::run(linear, budget, Ties::Highest)),
    },
    Strategy {
        name: "reverse-order",
        description: "vertices of degree one first, then from the outputs",
        method: Method::One(|linear, budget| greedy::run(linear, budget, &degree_one_first(Score::Reverse))),
    },
    Strategy {
        name: "relative-markowitz",
        description: "vertices of degree one first, then by lowest relative Markowitz degree",
        method: Method::One(|linear, budget| greedy::run(linear, budget, &degree_one_first(Score::RelativeMarkowitz))),
    },
    Strategy {
        name: "fill-in",
        description: "vertices of degree one first, then by lowest fill-in",
        method: Method::One(|linear, budget| greedy::run(linear, budget, &degree_one_first(Score::FillIn))),
    },
    Strategy {
        name: "damage",
        description: "vertices of degree one first, then by lowest Markowitz degree plus damage",
        method: Method::One(|linear, budget| greedy::run(linear, budget, &degree_one_first(Score::Damage))),
    },
    Strategy {
        name: "reduction",
        description: "vertices of degree one first, then by largest fall of the overall Markowitz degree",
        method: Method::One(|linear, budget| greedy::run(linear, budget, &degree_one_first(Score::OverallReduction))),
    },
    Strategy {
        name: "path-length",
        description: "vertices of degree one first, then by largest fall of the total path length",
        method: Method::One(|linear, budget| greedy::run(linear, budget, &degree_one_first(Score::PathLength))),
    },
    Strategy {
        name: "face",
        description: "face elimination on the line graph, the cheapest of several greedy orders",
        method: Method::One(face::run),
    },
    Strategy {
        name: "chains",
        description: "simple chains and blocks first, the rest by vertices or by local Jacobians between levels",
        method: Method::One(chain::run),
    },
    Strategy {
        name: "dstar",
        description: "D*: the derivative graph factored by dominance, common subproducts shared",
        method: Method::One(dstar::run),
    },
    Strategy {
        name: "dstar-highest",
        description: "D*, of equally frequent factor subgraphs the one nearest to the roots first",
        method: Method::One(|linear, budget| dstar::run_with(linear, budget, &dstar::HIGHEST)),
    },
    Strategy {
        name: "edge-front",
        description: "edge elimination forward by lowest Markowitz degree",
        method: Method::One(|linear, budget| edge_greedy::run(linear, budget, &edges(Ways::Front))),
    },
    Strategy {
        name: "edge-back",
        description: "edge elimination backward by lowest Markowitz degree",
        method: Method::One(|linear, budget| edge_greedy::run(linear, budget, &edges(Ways::Back))),
    },
    Strategy {
        name: "edge-mixed",
        description: "edge elimination either way by lowest Markowitz degree",
        method: Method::One(|linear, budget| edge_greedy::run(linear, budget, &edges(Ways::Mixed))),
    },
    Strategy {
        name: "oracle",
        description: "the sum over all paths, for small graphs",
        method: Method::One(oracle::run),
    },
];

/// Returns options of the order by `score` with free arithmetic on constants, as in generated code.
const fn degree_one_first(score: Score) -> greedy::Options {
    greedy::Options { score, ties: Ties::Lowest, counting: Counting::Folded, degree_one_first: true }
}

/// Returns options of the history by edge Markowitz degrees with free arithmetic on constants.
const fn edges(ways: Ways) -> edge_greedy::Options {
    edge_greedy::Options { ways, score: edge_greedy::Score::Markowitz, ties: Ties::Lowest, counting: Counting::Folded }
}

/// Algorithms used if the program of a strategy is rejected.
const FALLBACKS: &[(&str, Algorithm)] =
    &[("reverse", reverse::run), ("forward", forward::run), ("oracle", oracle::run)];

impl Strategy {
    /// Returns the strategy `name` of a table.
    ///
    /// # Errors
    /// Fails if there is no such strategy.
    pub fn find(table: &'static [Self], name: &str) -> Result<&'static Self, Diagnostic> {
        table.iter().find(|s| s.name == name).ok_or_else(|| {
            let names: Vec<&str> = table.iter().map(|s| s.name).collect();
            Diagnostic::error(format!("there is no strategy `{name}`"))
                .with_help(format!("choose one of {}", names.join(", ")))
        })
    }

    /// Runs the strategy. Of several programs, the one of least weight is taken, with free arithmetic on constants.
    ///
    /// # Errors
    /// A limitation if the budget is too small for every algorithm tried; a bug if the checker rejects every program.
    pub fn run(&self, linear: &LinearGraph, budget: &Budget) -> Result<(Program, Report), Diagnostic> {
        self.run_by(linear, budget, |program| program.count(Counting::Folded).weight)
    }

    /// Runs the strategy. Of several programs, the one of least `cost` is taken.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_by(
        &self,
        linear: &LinearGraph,
        budget: &Budget,
        cost: impl FnMut(&Program) -> u64,
    ) -> Result<(Program, Report), Diagnostic> {
        let mut report = Report::new(linear);
        let programs = match self.method {
            Method::One(run) => report.record(self.name, run(linear, budget)).map(|p| (0, p)).into_iter().collect(),
            Method::Portfolio => portfolio::programs(linear, budget, &mut report, cost),
        };
        for (idx, program) in programs {
            if report.accepts(idx, linear, &program) {
                return Ok((program, report));
            }
        }
        if report.attempts.iter().all(|a| !a.has_program) {
            return Err(report.over_budget());
        }
        for (name, run) in FALLBACKS {
            if report.attempts.iter().any(|a| a.name == *name) {
                continue;
            }
            if let Some(program) = report.record(name, run(linear, budget))
                && report.accepts(report.attempts.len() - 1, linear, &program)
            {
                return Ok((program, report));
            }
        }
        Err(Diagnostic::bug("no strategy's program is accepted by the checker").with_reason(report.to_string()))
    }
}
