//! Report of a derivation: strategies tried, cost and verdict of each program, and the one chosen.

use crate::check::{self, Verdict};
use crate::{Counting, LinearGraph, Outcome, Program, StopReason};
use chainrule_base::Diagnostic;
use chainrule_ops::Counts;
use std::fmt;

/// The seed of the checker.
const SEED: u64 = 0x00c4_a112_011e;

/// Result of one strategy.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Name of the strategy.
    pub name: &'static str,
    /// Reason why the strategy stopped.
    pub stop: StopReason,
    /// Whether the strategy made a program.
    pub has_program: bool,
    /// Cost of the program with every product counted, before clean-up.
    pub plain: Counts,
    /// Cost of the cleaned-up program with free arithmetic on constants.
    pub folded: Counts,
    /// Cost as generated code, if programs were compared by it.
    pub cost: Option<u64>,
    /// Verdict of the checker; `None` if the program was too expensive to be considered.
    pub verdict: Option<Verdict>,
}

impl Attempt {
    /// Returns the attempt with this outcome, and its cleaned-up program.
    pub(crate) fn new(name: &'static str, outcome: Outcome) -> (Self, Option<Program>) {
        let mut attempt = Self {
            name,
            stop: outcome.stop,
            has_program: outcome.program.is_some(),
            plain: Counts::default(),
            folded: Counts::default(),
            cost: None,
            verdict: None,
        };
        let program = outcome.program.map(|program| {
            attempt.plain = program.count(Counting::Plain);
            let tidied = program.tidied();
            attempt.folded = tidied.count(Counting::Folded);
            tidied
        });
        (attempt, program)
    }
}

/// Attempts, and the one chosen.
#[derive(Clone, Debug)]
pub struct Report {
    /// All attempts, in order.
    pub attempts: Vec<Attempt>,
    /// Index of the attempt whose program was chosen.
    pub chosen: usize,
    /// Numbers of vertices and edges of the linearised graph.
    pub size: (usize, usize),
    /// Listings of the steps, if requested by [`crate::derive::Options::lists_steps`].
    pub steps: Option<Steps>,
}

/// Listings of the steps of an accumulation.
#[derive(Clone, Debug)]
pub struct Steps {
    /// Linearised graph.
    pub linearised: String,
    /// Accumulation program that was chosen.
    pub program: String,
}

impl Report {
    pub(crate) fn new(linear: &LinearGraph) -> Self {
        Self { attempts: Vec::new(), chosen: 0, size: (linear.n_vertices(), linear.n_edges()), steps: None }
    }

    /// Returns the attempt whose program was chosen.
    #[must_use]
    pub fn chosen(&self) -> &Attempt {
        &self.attempts[self.chosen]
    }

    /// Returns the attempts whose programs were rejected by the checker: bugs of Chainrule.
    pub fn rejected(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|a| a.verdict.as_ref().is_some_and(|v| !v.agrees()))
    }

    /// Records an attempt and returns its cleaned-up program.
    pub(crate) fn record(&mut self, name: &'static str, outcome: Outcome) -> Option<Program> {
        let (attempt, program) = Attempt::new(name, outcome);
        self.attempts.push(attempt);
        program
    }

    pub(crate) fn accepts(&mut self, idx: usize, linear: &LinearGraph, program: &Program) -> bool {
        let verdict = check::program(linear, program, SEED);
        let agrees = verdict.agrees();
        self.attempts[idx].verdict = Some(verdict);
        self.chosen = idx;
        agrees
    }

    pub(crate) fn over_budget(&self) -> Diagnostic {
        let names: Vec<&str> = self.attempts.iter().map(|a| a.name).collect();
        let stopped_by = |stop| self.attempts.iter().any(|a| a.stop == stop);
        Diagnostic::limitation(format!("the derivative is too large for the strategy {}", names.join(", ")))
            .with_reason(
                if stopped_by(StopReason::PathBudget) {
                    "there are more paths than the budget allows"
                } else if stopped_by(StopReason::ScoreBudget) {
                    "finding the order takes more than the budget allows"
                } else if stopped_by(StopReason::SeparationBudget) {
                    "the derivative graphs of all pairs together are too large"
                } else {
                    "the program would have more products than the budget allows"
                }
                .to_owned(),
            )
            .with_help("ask for fewer rows or columns, choose another strategy, or raise the budget")
    }
}

/// Prints the size of the graph, and a line for each attempt with the chosen one marked.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "derivative graph: {} vertices, {} edges", self.size.0, self.size.1)?;
        for (idx, attempt) in self.attempts.iter().enumerate() {
            let mark = if idx == self.chosen { '*' } else { ' ' };
            write!(f, "{mark} {:<19}", attempt.name)?;
            match attempt.stop {
                StopReason::Done => write!(f, "{} (plain: {})", attempt.folded, attempt.plain)?,
                StopReason::PathBudget => f.write_str("stopped: too many paths")?,
                StopReason::ProductBudget => f.write_str("stopped: too many products")?,
                StopReason::EvaluationBudget | StopReason::WorkBudget if attempt.has_program => {
                    write!(f, "{} (plain: {}), the budget used up", attempt.folded, attempt.plain)?;
                }
                StopReason::EvaluationBudget => f.write_str("stopped: too many candidates")?,
                StopReason::WorkBudget => f.write_str("stopped: too much work")?,
                StopReason::SeparationBudget => f.write_str("stopped: derivative graphs too large")?,
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
