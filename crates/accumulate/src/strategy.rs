//! The strategies as data: names, which are the command line's, and what they do; and the one way to
//! run them, with the checker behind.
//!
//! In: a linearised graph. Out: a tidied program that the checker accepted, and a [`Report`] of what
//! was tried. A strategy whose program the checker rejects has a bug: the next one is taken, and the
//! report says so.

use crate::check::{self, Verdict};
use crate::edge_greedy::{self, Ways};
use crate::markowitz::{self, Ties};
use crate::{Budget, Counting, LinearGraph, Outcome, Program, Score, StopReason};
use crate::{annealing, dstar, face, forward, greedy, oracle, reverse};
use chainrule_base::Diagnostic;
use chainrule_ops::Counts;
use std::fmt;

/// A way to accumulate.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// What the command line calls it.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// What it does.
    pub method: Method,
}

/// One algorithm: a linearised graph and a budget in, a program or the reason why not out.
pub type Algorithm = fn(&LinearGraph, &Budget) -> Outcome;

/// What a strategy does.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// One algorithm.
    One(Algorithm),
    /// The cheapest program of several strategies, by name; the first of them on ties.
    Cheapest(&'static [&'static str]),
}

/// All strategies.
pub static STRATEGIES: &[Strategy] = &[
    Strategy {
        name: "auto",
        description: "the cheapest of reverse, forward and both Markowitz orders",
        method: Method::Cheapest(&["reverse", "markowitz", "markowitz-highest", "forward"]),
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
        name: "dstar",
        description: "D*: the derivative graph factored by dominance, common subproducts shared",
        method: Method::One(dstar::run),
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
        name: "annealing",
        description: "vertex elimination in the best order that simulated annealing finds",
        method: Method::One(|linear, budget| annealing::run(linear, budget, &annealing::Options::default())),
    },
    Strategy {
        name: "oracle",
        description: "the sum over all paths, for small graphs",
        method: Method::One(oracle::run),
    },
];

/// The order that a score gives where arithmetic on constants is free, as in the code that is made.
const fn degree_one_first(score: Score) -> greedy::Options {
    greedy::Options { score, ties: Ties::Lowest, counting: Counting::Folded, degree_one_first: true }
}

/// The history by edge Markowitz degrees where arithmetic on constants is free.
const fn edges(ways: Ways) -> edge_greedy::Options {
    edge_greedy::Options { ways, score: edge_greedy::Score::Markowitz, ties: Ties::Lowest, counting: Counting::Folded }
}

/// What takes over when a strategy's program is rejected.
const FALLBACKS: &[&str] = &["reverse", "forward", "oracle"];

/// The seed of the checker.
const SEED: u64 = 0x00c4_a112_011e;

impl Strategy {
    /// The strategy of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<&'static Self, Diagnostic> {
        STRATEGIES.iter().find(|s| s.name == name).ok_or_else(|| {
            let names: Vec<&str> = STRATEGIES.iter().map(|s| s.name).collect();
            Diagnostic::error(format!("there is no strategy `{name}`"))
                .with_help(format!("choose one of {}", names.join(", ")))
        })
    }

    /// Runs the strategy; of several programs the one of least weight is taken, arithmetic on constants
    /// being free.
    ///
    /// # Errors
    /// A limitation when the budget is too small for every way that was tried; a bug when the checker
    /// rejects every program.
    pub fn run(&self, linear: &LinearGraph, budget: &Budget) -> Result<(Program, Report), Diagnostic> {
        self.run_by(linear, budget, |program| program.count(Counting::Folded).weight)
    }

    /// Runs the strategy; of several programs the one of least `cost` is taken.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_by(
        &self,
        linear: &LinearGraph,
        budget: &Budget,
        mut cost: impl FnMut(&Program) -> u64,
    ) -> Result<(Program, Report), Diagnostic> {
        let mut report = Report { attempts: Vec::new(), chosen: 0 };
        let mut programs: Vec<(usize, Program)> = Vec::new();
        let methods: Vec<(&'static str, Algorithm)> = match self.method {
            Method::One(run) => vec![(self.name, run)],
            Method::Cheapest(names) => algorithms(names).collect(),
        };
        for (name, run) in methods {
            // A program with many times the products of the best one is not going to be cheaper.
            let best = programs.iter().map(|(_, p)| p.n_products()).min();
            let products = best.map_or(budget.products, |n| budget.products.min(4 * n + 1000));
            let outcome = run(linear, &Budget { products, ..*budget });
            programs.extend(report.record(name, outcome).map(|p| (report.attempts.len() - 1, p)));
        }
        if programs.len() > 1 {
            programs.sort_by_cached_key(|(idx, program)| (cost(program), *idx));
        }
        for (idx, program) in programs {
            if report.accepts(idx, linear, &program) {
                return Ok((program, report));
            }
        }
        if report.attempts.iter().all(|a| !a.has_program) {
            return Err(report.over_budget());
        }
        for (name, run) in algorithms(FALLBACKS) {
            if report.attempts.iter().any(|a| a.name == name) {
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

/// The single algorithms of these names, in their order.
fn algorithms(names: &'static [&'static str]) -> impl Iterator<Item = (&'static str, Algorithm)> {
    names.iter().filter_map(|name| match STRATEGIES.iter().find(|s| s.name == *name)?.method {
        Method::One(run) => Some((*name, run)),
        Method::Cheapest(_) => None,
    })
}

/// One strategy that was tried.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its name.
    pub name: &'static str,
    /// Why it stopped.
    pub stop: StopReason,
    /// Whether it made a program.
    pub has_program: bool,
    /// What its program costs with every product counted, before tidying.
    pub plain: Counts,
    /// What the tidied program costs where arithmetic on constants is free.
    pub folded: Counts,
    /// What the checker said; `None` when the program was too dear to be looked at.
    pub verdict: Option<Verdict>,
}

/// What was tried, and what was taken.
#[derive(Clone, Debug)]
pub struct Report {
    /// All attempts, in order.
    pub attempts: Vec<Attempt>,
    /// The index of the attempt whose program was taken.
    pub chosen: usize,
}

impl Report {
    /// The attempt whose program was taken.
    #[must_use]
    pub fn chosen(&self) -> &Attempt {
        &self.attempts[self.chosen]
    }

    /// The attempts whose programs the checker did not accept: bugs of Chainrule.
    pub fn rejected(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|a| a.verdict.as_ref().is_some_and(|v| !v.agrees()))
    }

    /// Notes an attempt; its program, tidied.
    fn record(&mut self, name: &'static str, outcome: Outcome) -> Option<Program> {
        let mut attempt = Attempt {
            name,
            stop: outcome.stop,
            has_program: outcome.program.is_some(),
            plain: Counts::default(),
            folded: Counts::default(),
            verdict: None,
        };
        let program = outcome.program.map(|program| {
            attempt.plain = program.count(Counting::Plain);
            let tidied = program.tidied();
            attempt.folded = tidied.count(Counting::Folded);
            tidied
        });
        self.attempts.push(attempt);
        program
    }

    fn accepts(&mut self, idx: usize, linear: &LinearGraph, program: &Program) -> bool {
        let verdict = check::program(linear, program, SEED);
        let agrees = verdict.agrees();
        self.attempts[idx].verdict = Some(verdict);
        self.chosen = idx;
        agrees
    }

    fn over_budget(&self) -> Diagnostic {
        let names: Vec<&str> = self.attempts.iter().map(|a| a.name).collect();
        let stopped_by = |stop| self.attempts.iter().any(|a| a.stop == stop);
        Diagnostic::limitation(format!("the derivative is too large for the strategy {}", names.join(", ")))
            .with_reason(
                if stopped_by(StopReason::PathBudget) {
                    "there are more paths than the budget allows"
                } else if stopped_by(StopReason::ScoreBudget) {
                    "finding the order takes more than the budget allows"
                } else {
                    "the program would have more products than the budget allows"
                }
                .to_owned(),
            )
            .with_help("ask for fewer rows or columns, choose another strategy, or raise the budget")
    }
}

/// A line for each attempt, the chosen one marked.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, attempt) in self.attempts.iter().enumerate() {
            let mark = if idx == self.chosen { '*' } else { ' ' };
            write!(f, "{mark} {:<18}", attempt.name)?;
            match attempt.stop {
                StopReason::Done => write!(f, "{} (plain: {})", attempt.folded, attempt.plain)?,
                StopReason::PathBudget => f.write_str("stopped: too many paths")?,
                StopReason::ProductBudget => f.write_str("stopped: too many products")?,
                StopReason::EvaluationBudget if attempt.has_program => {
                    write!(f, "{} (plain: {}), the budget used up", attempt.folded, attempt.plain)?;
                }
                StopReason::EvaluationBudget => f.write_str("stopped: too many candidates")?,
                StopReason::ScoreBudget => f.write_str("stopped: scores too dear")?,
            }
            match &attempt.verdict {
                Some(Verdict::Differs(m)) => write!(f, "; REJECTED in row {}", m.row)?,
                Some(Verdict::Unknown { reason }) => write!(f, "; REJECTED: {reason}")?,
                Some(Verdict::Agrees { .. }) | None => {}
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
