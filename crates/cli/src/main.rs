//! The `chainrule` command.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | success |
//! | 1 | error in the program, the data or the request; or a test failed |
//! | 2 | error in the command line |
//!
//! Results go to standard output, everything else to standard error.

mod arguments;
mod commands;
mod data;
mod pipeline;
mod progress;
mod request;

use chainrule::report::{Style, printable};
use clap::{Parser, Subcommand};
use commands::{check, compile, derive, eliminate, emit, fmt, passes, run, test};
use std::io::IsTerminal;
use std::process::ExitCode;

/// A compiler for derivatives: runs functions in F~, a small array language, and their gradients, Jacobians and
/// Hessians, or writes them as C or Rust.
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
  chainrule passes model.ft --what gradient --after vectorise

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
    Passes(passes::Options),
}

/// Result of a command: nothing, or a message for the user.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    // A panic is a bug of Chainrule, and is reported as one.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = chainrule::guard::guard_on_own_stack(|| Ok(run_command(&Cli::parse().command)));
    match outcome.unwrap_or_else(|bug| Err(explain(&bug))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            tell(&message);
            ExitCode::FAILURE
        }
    }
}

fn run_command(command: &Command) -> Outcome {
    match command {
        Command::Check(options) => check::run(options),
        Command::Fmt(options) => fmt::run(options),
        Command::Run(options) => run::run(options),
        Command::Derive(options) => derive::run(options),
        Command::Compile(options) => compile::run(options),
        Command::Eliminate(options) => eliminate::run(options),
        Command::Emit(options) => emit::run(options),
        Command::Test(options) => test::run(options),
        Command::Passes(options) => passes::run(options),
    }
}

/// Returns the message of a library error for the user, with colours if the terminal supports them.
fn explain(error: &chainrule::Error) -> String {
    use std::error::Error as _;
    match error {
        chainrule::Error::Program { .. } => error.render(match std::io::stderr().is_terminal() {
            true => Style::Colored,
            false => Style::Plain,
        }),
        chainrule::Error::Io { path, source } => data::unreadable(std::path::Path::new(path), source),
        bug @ chainrule::Error::Bug(_) => printable(&bug.to_string()),
        other => {
            let mut text = format!("error: {other}");
            let mut source = other.source();
            while let Some(cause) = source {
                text.push_str(&format!(": {cause}"));
                source = cause.source();
            }
            printable(&text)
        }
    }
}

/// Writes a line to standard error, if that is open. Control characters are escaped; on a terminal, colours are kept.
fn tell(text: &str) {
    use std::io::Write;
    let text = if std::io::stderr().is_terminal() { colored(text) } else { printable(text) };
    // A failure here cannot be reported.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Returns `text` with control characters escaped, except colour sequences.
fn colored(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut shown = printable(parts.next().unwrap_or_default());
    for part in parts {
        match part.split_once('m') {
            Some((color, rest)) if color.bytes().all(|b| b.is_ascii_digit() || b == b';') => {
                shown.push_str(&format!("\u{1b}[{color}m{}", printable(rest)));
            }
            _ => shown.push_str(&printable(&format!("\u{1b}[{part}"))),
        }
    }
    shown
}

/// Writes to standard output; a closed reader is not an error.
fn print(text: &str) -> Outcome {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("error: cannot write: {error}")),
        _ => Ok(()),
    }
}
