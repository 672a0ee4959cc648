//! `chainrule derive`.

use crate::request::{Derivative, Which};
use crate::{Outcome, explain, print, progress};
use chainrule::{Derived, Function};
use clap::{Args, ValueEnum};

/// Derive, and print operation counts and the program.
#[derive(Args)]
#[command(after_help = "With --size the loops are unrolled, and operations are counted one by one.

Examples:
  chainrule derive model.ft --what gradient --by x --size n=4
  chainrule derive model.ft --what hessian --size n=4 --strategy markowitz --show counts
  chainrule derive model.ft --what jacobian              (keeps the loops)
  chainrule derive model.ft --what gradient --size n=3 --show dot | dot -Tsvg > graph.svg")]
pub struct Options {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    derivative: Derivative,
    /// What to print besides the counts.
    #[arg(long, value_enum, default_value = "program")]
    show: Show,
    /// Tell how large the derivative graph is, which strategies were tried and what each costs, what
    /// the optimiser merged, and where the operations are, by result and by source line.
    #[arg(long)]
    explain: bool,
}

/// What to print.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Show {
    /// Nothing but the counts.
    Counts,
    /// The program, one operation a line.
    Program,
    /// The kernel: what backends run.
    Kernel,
    /// The graph in Graphviz's language.
    Dot,
}

/// Derives and prints.
pub fn run(options: &Options) -> Outcome {
    let function = options.which.load()?;
    let derived = progress::during("deriving", || options.derivative.explain(&function))?;
    let mut text = String::new();
    if options.show != Show::Dot {
        if let (Some(before), Some(after)) = (function.counts(), derived.function.counts()) {
            text.push_str(&format!("// {}: {before}\n// {}: {after}\n", function.name(), derived.function.name()));
        }
        if options.explain {
            text.extend(explanation(&function, &derived).lines().map(|line| format!("// {line}\n")));
        }
    }
    match options.show {
        Show::Counts if text.is_empty() => {
            return Err(
                "error: operations are counted in straight-line code only\n  help: give sizes, as in --size n=4".into(),
            );
        }
        Show::Counts => {}
        Show::Program => text.push_str(&derived.function.listing()),
        Show::Kernel => text.push_str(&derived.function.compile().map_err(|e| explain(&e))?.listing()),
        Show::Dot => {
            let Some(dot) = derived.function.dot() else {
                return Err("error: only straight-line code has a graph\n  help: give sizes, as in --size n=4".into());
            };
            text.push_str(&dot);
        }
    }
    print(&text)
}

/// How the derivative was made, and where its operations are.
fn explanation(function: &Function, derived: &Derived) -> String {
    let mut text: String = derived.reports.iter().map(ToString::to_string).collect();
    text.extend(derived.improvement.map(|improvement| format!("{improvement}\n")));
    let results = derived.function.operations_by_result();
    if !results.is_empty() {
        text.push_str("operations by result, and of these what no other result needs:\n");
        for result in results {
            text.push_str(&format!("  {:<18} {}; alone {}\n", result.name, result.all, result.alone));
        }
    }
    let lines = function.operations_by_line();
    if !lines.is_empty() {
        text.push_str(&format!("operations of `{}` by source line, as it is written:\n", function.name()));
        for line in lines {
            let place = format!("{}:{}", line.file, line.line);
            text.push_str(&format!("  {place:<18} {} | {}\n", line.counts, line.text));
        }
    }
    text
}
