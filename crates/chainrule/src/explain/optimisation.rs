//! Report of the optimiser of array programs on a function that keeps its loops, printed by `chainrule derive
//! --explain`.
//!
//! | line of the report | meaning |
//! | --- | --- |
//! | a pass | its name, the number of rules it applied, the cost of the program after it ([`Measure`]) |
//! | a loop | one with checkpoints in reverse mode although none were requested, and why |
//! | a rule | its name, its equation, the number of applications, and the source lines |
//!
//! It is created by optimising once more with a record; compilation without a report keeps none.

use crate::function::{ArrayBody, Body};
use crate::{Error, Function, Result, Rewrite};
use chainrule_autodiff::CHECKPOINTS;
use chainrule_base::{FileId, Sources};
use chainrule_rewrite::{Measure, StopReason, engine};
use chainrule_scalarise::regions::Accumulated;
use std::collections::BTreeMap;
use std::fmt;

/// Run of a pass of the optimiser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptimiserPass {
    /// Name, which [`Rewrite::Without`] takes.
    pub name: &'static str,
    /// Number of rules and steps that it applied.
    pub applied: u64,
    /// Cost of the program after it.
    pub after: Measure,
}

/// Source line for which a rule was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleLine {
    /// File; functions of the library are in separate files.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Text of the line.
    pub text: String,
    /// Number of applications.
    pub times: u64,
}

/// Applied rule, or step of the optimiser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppliedRule {
    /// Name, which [`Rewrite::Without`] takes.
    pub name: &'static str,
    /// Equation, or effect of the step.
    pub law: &'static str,
    /// Number of applications, in all passes together.
    pub times: u64,
    /// Source lines, by file, then by line. Applications without a source location are only in `times`.
    pub lines: Vec<RuleLine>,
}

/// Loop with checkpoints in reverse mode although none were requested, since not all its states can be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointedLoop {
    /// File, line, and text of the line; for a loop with a source location.
    pub at: Option<(String, usize, String)>,
    /// Reason why not all are kept.
    pub reason: String,
}

/// Report of the optimiser of array programs on a function. Printed, it is a table of passes and one of rules.
///
/// ```
/// use chainrule::Module;
/// let text = "let f = fun (v : [n]Double) -> vectorSum (build n (fun i -> v[i] * v[i]))";
/// let account = Module::from_text("f.ft", text)?.function("f")?.optimisation()?.expect("it has a loop");
/// // The array of squares has vanished into the sum.
/// assert_eq!((account.before.loops, account.after.loops), (2, 1));
/// assert_eq!((account.before.stored.as_str(), account.after.stored.as_str()), ("n", "0"));
/// assert!(account.rules.iter().any(|rule| rule.name == "fuse" && rule.times == 1));
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Optimisation {
    /// Name of the function.
    pub function: String,
    /// Cost of the function as written, with its derivatives expanded.
    pub before: Measure,
    /// Cost after optimisation.
    pub after: Measure,
    /// Passes, in order.
    pub passes: Vec<OptimiserPass>,
    /// Applied rules and steps, in the order of the optimiser's table.
    pub rules: Vec<AppliedRule>,
    /// Reason for the end of optimisation.
    pub stop: StopReason,
    /// Scalar regions whose derivatives were accumulated before.
    pub regions: Vec<Accumulated>,
    /// Report of the other branch, for a function that is an `if` by its sizes, whose branches are optimised
    /// separately.
    pub otherwise: Option<Box<Self>>,
    /// Loops that have checkpoints although none were requested.
    pub checkpointed: Vec<CheckpointedLoop>,
}

impl Function {
    /// Returns the report of the optimiser for the compiled function; `None` for straight-line code. Takes the time of
    /// optimising.
    ///
    /// # Errors
    /// Fails if derivatives in it cannot be expanded.
    pub fn optimisation(&self) -> Result<Option<Optimisation>> {
        let Body::Array(body) = &self.decided()?.body else { return Ok(None) };
        let (accumulated, regions) = Rewrite::All.accumulate(&body.function, body.semantics);
        let (expanded, made_again) =
            chainrule_autodiff::expand_told(&accumulated, None).map_err(|d| Error::program(d, &body.sources))?;
        let checkpointed = body.made_again.iter().chain(&made_again).map(|made_again| CheckpointedLoop {
            at: made_again.span.map(|span| {
                let RuleLine { file, line, text, .. } =
                    rule_line(&body.sources, (span.file, body.sources.line_column(span).0), 1);
                (file, line, text)
            }),
            reason: made_again.reason.to_string(),
        });
        let checkpointed = checkpointed.collect();
        let name = self.name().to_string();
        let Some([then, otherwise]) = engine::branches(&expanded) else {
            return Ok(Some(Optimisation { checkpointed, ..account(name, &expanded, regions, body) }));
        };
        let otherwise = Some(Box::new(account(name.clone(), &otherwise, Vec::new(), body)));
        Ok(Some(Optimisation { otherwise, checkpointed, ..account(name, &then, regions, body) }))
    }
}

/// Returns the report for `function`, whose derivatives are expanded.
fn account(
    name: String,
    function: &chainrule_ir::Function,
    regions: Vec<Accumulated>,
    body: &ArrayBody,
) -> Optimisation {
    let sources = &body.sources;
    let (optimised, report) = engine::explain(function, &Rewrite::All.options(body.semantics));
    let laws: BTreeMap<&str, &str> = engine::names().into_iter().collect();
    let rules = (report.applied.iter())
        .map(|(name, times)| {
            let mut lines: BTreeMap<(FileId, usize), u64> = BTreeMap::new();
            for place in report.places.iter().filter(|place| place.name == *name) {
                if let Some(span) = place.span {
                    let (line, _) = sources.line_column(span);
                    *lines.entry((span.file, line)).or_insert(0) += place.times;
                }
            }
            let lines = lines.into_iter().map(|(at, times)| rule_line(sources, at, times)).collect();
            AppliedRule { name, law: laws.get(name).copied().unwrap_or_default(), times: *times, lines }
        })
        .collect();
    let passes = (report.passes.into_iter())
        .filter_map(|pass| Some(OptimiserPass { name: pass.name, applied: pass.applied, after: pass.measures?.1 }))
        .collect();
    let (before, after) = (engine::measure(function), engine::measure(&optimised));
    Optimisation {
        function: name,
        before,
        after,
        passes,
        rules,
        stop: report.stop,
        regions,
        otherwise: None,
        checkpointed: Vec::new(),
    }
}

fn rule_line(sources: &Sources, (file, line): (FileId, usize), times: u64) -> RuleLine {
    let text = sources.line(file, line).trim().to_owned();
    RuleLine { file: sources.file(file).name.clone(), line, text, times }
}

impl fmt::Display for Optimisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table(f, if self.otherwise.is_some() { " where its `if` holds" } else { "" })?;
        match &self.otherwise {
            Some(otherwise) => otherwise.table(f, " where its `if` does not hold"),
            None => Ok(()),
        }
    }
}

impl Optimisation {
    fn table(&self, f: &mut fmt::Formatter<'_>, branch: &str) -> fmt::Result {
        writeln!(f, "the optimiser on `{}`{branch}: {}", self.function, self.stop)?;
        let row = |name: &str, applied: String, measure: &Measure| {
            let Measure { operations, stored, loops, cost } = measure.clone();
            [name.to_owned(), applied, loops.to_string(), operations, stored, cost]
        };
        let head = ["pass", "applied", "loops", "operations", "numbers stored", "cost"].map(str::to_owned);
        let mut rows = vec![head, row("as written", String::new(), &self.before)];
        // A pass without applications has changed nothing.
        for pass in self.passes.iter().filter(|pass| pass.applied > 0) {
            rows.push(row(pass.name, pass.applied.to_string(), &pass.after));
        }
        rows.push(row("optimised", String::new(), &self.after));
        let widths: [usize; 6] =
            std::array::from_fn(|k| rows.iter().map(|row| row[k].chars().count()).max().unwrap_or(0));
        for [name, applied, loops, rest @ ..] in &rows {
            let mut text = format!("  {name:<0$} {applied:>1$} {loops:>2$}", widths[0], widths[1], widths[2]);
            for (cell, width) in rest.iter().zip(&widths[3..]) {
                text.push_str(&format!("  {cell:<width$}"));
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        for region in &self.regions {
            write!(f, "{region}")?;
        }
        if !self.checkpointed.is_empty() {
            writeln!(
                f,
                "loops that reverse mode gave {CHECKPOINTS} checkpoints, for not all their states can be kept:"
            )?;
        }
        for CheckpointedLoop { at, reason } in &self.checkpointed {
            writeln!(f, "  {reason}")?;
            if let Some((file, line, text)) = at {
                writeln!(f, "  | {file}:{line} {text}")?;
            }
        }
        writeln!(f, "rules that were applied, and for which lines:")?;
        let names = self.rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
        for rule in &self.rules {
            writeln!(f, "  {:<names$} {:>6}  {}", rule.name, rule.times, rule.law)?;
            for line in &rule.lines {
                writeln!(f, "  {:<names$} {:>6}  | {}:{} {}", "", line.times, line.file, line.line, line.text)?;
            }
        }
        Ok(())
    }
}
