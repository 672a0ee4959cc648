//! Chainrule's benchmarks. Counts come before times: the cost of the derivatives of the benchmark problems.

mod accuracy;
mod arrays;
mod auto;
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
mod rival;
mod roofline;
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
    /// Operation counts of the benchmark problems, compared with D*, the best peers and the goals.
    Counts(counts::Options),
    /// Multiplications and additions of every accumulation method on the graphs of a folder.
    Elimination(elimination::Options),
    /// A chain and a random graph to a million nodes, through every stage.
    Scale(scale::Options),
    /// Growth of time and memory of derivations with the problem.
    Growth(growth::Options),
    /// Time of commands of `chainrule`, which must be built first: `cargo build --release -p chainrule-cli`.
    Latency(latency::Options),
    /// Array programs: objectives and derivatives, compared with C++ by hand.
    Arrays(arrays::Options),
    /// Small functions of fixed size: automatic unrolling compared with unrolling always and never.
    Auto(auto::Options),
    /// Array programs, compared with the bounds of memory and arithmetic, NumPy and JAX.
    Roofline(roofline::Options),
    /// Straight-line code: native code compared with the interpreter, C compilers, and, if built with `--features
    /// cranelift`, Cranelift.
    Straightline(straightline::Options),
    /// Batches of points on one thread and on several, compared with a C compiler's vectors and JAX.
    Batch(batch::Options),
    /// Errors in ulp and ns per value of the elementary functions, compared with the system's and the libm crate's.
    Mathfun(mathfun::Options),
    /// Errors in ulp of values, first and second partial derivatives of all operators in compiled code.
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
        Command::Auto(options) => auto::run(&options),
        Command::Roofline(options) => roofline::run(&options),
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
