//! What the optimiser did, for `--explain`.

use chainrule_base::Span;
use std::fmt;

/// Why the rounds ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum StopReason {
    /// Nothing was left to do.
    #[default]
    Settled,
    /// The budget is spent.
    Budget,
    /// The largest number of rounds was made.
    Rounds,
    /// Rounds saved too little for what they took.
    Little,
    /// What came out costs more than what went in, which stays.
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

/// What a program takes, by the optimiser's cost model: polynomials in its sizes, as the text says them (`4*n*n + 3*n`).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Measure {
    /// The cost ([`crate::cost::symbolic`]): what orders programs.
    pub cost: String,
    /// Scalar operators ([`crate::cost::operations`]).
    pub operations: String,
    /// Numbers stored in arrays that it makes ([`crate::cost::stored`]).
    pub stored: String,
    /// How many loops there are.
    pub loops: usize,
}

/// How often a rule or a step of the engine was applied for statements of one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The rule or step.
    pub name: &'static str,
    /// The place, where there is one.
    pub span: Option<Span>,
    /// How often.
    pub times: u64,
}

/// One run of a pass.
#[derive(Clone, PartialEq, Debug)]
pub struct PassReport {
    /// The pass.
    pub name: &'static str,
    /// How many rules and steps of the engine were applied.
    pub applied: u64,
    /// The cost before.
    pub before: f64,
    /// The cost after.
    pub after: f64,
    /// What the function takes before and after, where that was asked for ([`crate::engine::explain`]).
    pub measures: Option<(Measure, Measure)>,
}

/// What was applied, and what it saved.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Report {
    /// By rule or step of the engine, in the order of the table: how often. Those that were not applied are
    /// left out.
    pub applied: Vec<(&'static str, u64)>,
    /// The same by place in the text, where that was asked for ([`crate::engine::explain`]).
    pub places: Vec<Applied>,
    /// In order.
    pub passes: Vec<PassReport>,
    /// The cost before ([`crate::cost`]).
    pub before: f64,
    /// The cost after.
    pub after: f64,
    /// Both costs as polynomials in the sizes of the function, as the text says them: `4*n*n + 3*n`.
    pub symbolic: (String, String),
    /// Why it ended.
    pub stop: StopReason,
    /// What it took: how many statements all passes wrote, and how many uses of variables they looked at to do so.
    pub work: u64,
}

impl Report {
    /// How often the rule or step `name` was applied.
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
