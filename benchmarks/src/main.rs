//! Chainrule's benchmarks. Counts before times: what the derivatives of the benchmark problems cost.

mod counts;
mod problems;
mod scale;
mod targets;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Benchmarks of Chainrule: definitions, engines, records.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  chainrule-bench counts\n  chainrule-bench counts --problem sh20,ba --detail --verify\n  chainrule-bench scale"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Operation counts of the benchmark problems beside D*, the best peers and the goals.
    Counts(counts::Options),
    /// Growth of time and memory with the size of a graph, to a million nodes.
    Scale(scale::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Counts(options) => counts::run(&options),
        Command::Scale(options) => scale::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
