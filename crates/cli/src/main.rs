//! The `chainrule` command.
//!
//! | exit code | means |
//! | --- | --- |
//! | 0 | done |
//! | 1 | the program, the data or the request is wrong; or a test failed |
//! | 2 | the command line is wrong |
//!
//! Results go to standard output, everything else to standard error.

mod arguments;
mod commands;
mod data;
mod panics;
mod progress;
mod request;

use clap::{Parser, Subcommand};
use commands::{check, compile, derive, eliminate, emit, fmt, run, test};
use std::io::IsTerminal;
use std::process::ExitCode;

/// A compiler for derivatives: functions in F~, their gradients, Jacobians and Hessians, as running code
/// or as C.
#[derive(Parser)]
#[command(name = "chainrule", version, arg_required_else_help = true)]
#[command(after_help = "Examples:
  chainrule check model.ft
  chainrule run model.ft --arg x='[1, 2, 3]' --what gradient
  chainrule derive model.ft --what jacobian --by x --size n=10
  chainrule emit c model.ft --what gradient --out model_gradient
  chainrule compile model.ft --what gradient --out gradient.chainrule
  chainrule test model.ft --size n=5
  chainrule eliminate graph.json --method all

Each command has examples of its own: chainrule run --help")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Options),
    Fmt(fmt::Options),
    Run(run::Options),
    Derive(derive::Options),
    Compile(compile::Options),
    Eliminate(eliminate::Options),
    Emit(emit::Options),
    Test(test::Options),
}

/// What a command ends with: nothing, or what to tell the person.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let outcome = panics::caught(|| match command {
        Command::Check(options) => check::run(&options),
        Command::Fmt(options) => fmt::run(&options),
        Command::Run(options) => run::run(&options),
        Command::Derive(options) => derive::run(&options),
        Command::Compile(options) => compile::run(&options),
        Command::Eliminate(options) => eliminate::run(&options),
        Command::Emit(options) => emit::run(&options),
        Command::Test(options) => test::run(&options),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            tell(&message);
            ExitCode::FAILURE
        }
    }
}

/// What the library's error says to a person: with colours where they can be seen.
fn explain(error: &chainrule::Error) -> String {
    use std::error::Error as _;
    match error {
        chainrule::Error::Program { .. } => error.render(std::io::stderr().is_terminal()),
        chainrule::Error::Io { path, source } => data::unreadable(std::path::Path::new(path), source),
        other => {
            let mut text = format!("error: {other}");
            let mut source = other.source();
            while let Some(cause) = source {
                text.push_str(&format!(": {cause}"));
                source = cause.source();
            }
            text
        }
    }
}

/// Writes a line to standard error, where somebody listens.
fn tell(text: &str) {
    use std::io::Write;
    // Nothing is left to tell it to when this fails.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes to standard output; a reader that has gone away is no error.
fn print(text: &str) -> Outcome {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("error: cannot write: {error}")),
        _ => Ok(()),
    }
}
