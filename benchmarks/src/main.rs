//! Chainrule's benchmarks. Counts before times: what the derivatives of the benchmark problems cost.

mod accuracy;
mod arrays;
mod batch;
mod counts;
mod elimination;
mod elimination_targets;
mod growth;
mod latency;
mod mathfun;
mod measure;
mod memory;
mod problems;
mod random;
mod rival;
mod scale;
mod straightline;
mod targets;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Benchmarks of Chainrule: definitions, engines, records.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  chainrule-bench counts\n  chainrule-bench counts --problem sh20,ba --detail --verify\n  chainrule-bench scale\n  chainrule-bench elimination graphs\n  chainrule-bench growth --family layered --edges 100000"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Operation counts of the benchmark problems beside D*, the best peers and the goals.
    Counts(counts::Options),
    /// Multiplications and additions of every accumulation method on the graphs of a folder.
    Elimination(elimination::Options),
    /// A chain and a random graph to a million nodes, through every stage.
    Scale(scale::Options),
    /// How the time and memory of derivations grow with the problem.
    Growth(growth::Options),
    /// How long a person waits for commands of `chainrule`, which is built before: `cargo build --release -p chainrule-cli`.
    Latency(latency::Options),
    /// Array programs: objectives and derivatives beside C++ by hand.
    Arrays(arrays::Options),
    /// Straight-line code: native beside the interpreter, beside C compilers, and beside Cranelift where this is built with
    /// `--features cranelift`.
    Straightline(straightline::Options),
    /// Many points at once, on one thread and on several, beside a C compiler's vectors and JAX.
    Batch(batch::Options),
    /// Errors in ulp and ns per value of the elementary functions, beside the system's and the libm crate's.
    Mathfun(mathfun::Options),
    /// Errors in ulp of values, first and second partial derivatives of all operators, as compiled code computes them.
    Accuracy(accuracy::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Accuracy(options) => accuracy::run(&options),
        Command::Counts(options) => counts::run(&options),
        Command::Elimination(options) => elimination::run(&options),
        Command::Scale(options) => scale::run(&options),
        Command::Growth(options) => growth::run(&options),
        Command::Latency(options) => latency::run(&options),
        Command::Arrays(options) => arrays::run(&options),
        Command::Straightline(options) => straightline::run(&options),
        Command::Batch(options) => batch::run(&options),
        Command::Mathfun(options) => mathfun::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
