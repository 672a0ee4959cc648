//! Report of the optimiser, for `--explain`.

use chainrule_base::Span;
use std::fmt;

/// Reason why the rounds ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum StopReason {
    /// Nothing was left to do.
    #[default]
    Settled,
    /// The budget is spent.
    Budget,
    /// The maximum number of rounds was made.
    Rounds,
    /// Rounds saved too little for their work.
    Little,
    /// The result costs more than the input, which is kept.
    NotCheaper,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Settled => "nothing left to do",
            Self::Budget => "the budget is spent",
            Self::Rounds => "the largest number of rounds",
            Self::Little => "the last rounds saved little",
            Self::NotCheaper => "not cheaper: the function stays as it was",
        })
    }
}

/// Costs of a program by the cost model: polynomials in its sizes, as text (`4*n*n + 3*n`).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Measure {
    /// Cost that orders programs ([`crate::cost::symbolic`]).
    pub cost: String,
    /// Scalar operators ([`crate::cost::operations`]).
    pub operations: String,
    /// Numbers stored in arrays ([`crate::cost::stored`]).
    pub stored: String,
    /// Number of loops.
    pub loops: usize,
}

/// Number of applications of a rule or a step for statements of one source span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// Rule or step.
    pub name: &'static str,
    /// Source span, if any.
    pub span: Option<Span>,
    /// Number of applications.
    pub times: u64,
}

/// A run of a pass.
#[derive(Clone, PartialEq, Debug)]
pub struct PassReport {
    /// Name of the pass.
    pub name: &'static str,
    /// Number of applications of rules and steps.
    pub applied: u64,
    /// Cost before.
    pub before: f64,
    /// Cost after.
    pub after: f64,
    /// Costs of the function before and after, if requested ([`crate::engine::explain`]).
    pub measures: Option<(Measure, Measure)>,
}

/// Applications and savings.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Report {
    /// Number of applications by rule or step, in the order of the table, without zeros.
    pub applied: Vec<(&'static str, u64)>,
    /// Applications by source span, if requested ([`crate::engine::explain`]).
    pub places: Vec<Applied>,
    /// Runs of passes in order.
    pub passes: Vec<PassReport>,
    /// Cost before ([`crate::cost`]).
    pub before: f64,
    /// Cost after.
    pub after: f64,
    /// Both costs as polynomials in the sizes of the function, as text: `4*n*n + 3*n`.
    pub symbolic: (String, String),
    /// Reason why the rounds ended.
    pub stop: StopReason,
    /// Work: number of statements written by all passes, and of uses of variables visited.
    pub work: u64,
}

impl Report {
    /// Returns the number of applications of the rule or step `name`.
    #[must_use]
    pub fn times(&self, name: &str) -> u64 {
        self.applied.iter().find(|(rule, _)| *rule == name).map_or(0, |(_, times)| *times)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "cost {} -> {} ({})", self.symbolic.0, self.symbolic.1, self.stop)?;
        for pass in self.passes.iter().filter(|pass| pass.applied > 0) {
            writeln!(f, "  {:<10} {:>6} applied, cost {} -> {}", pass.name, pass.applied, pass.before, pass.after)?;
        }
        for (name, times) in &self.applied {
            writeln!(f, "  {times:>6} {name}")?;
        }
        Ok(())
    }
}
