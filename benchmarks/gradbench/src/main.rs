//! Chainrule as a tool of GradBench: reads one JSON object a line from standard input and answers each with one JSON
//! object a line on standard output, which has no other output, until the input ends.
//!
//! | file | owns |
//! | --- | --- |
//! | `session` | messages and their answers; defined modules; runs and timings |
//! | `task` | a function of a module: its program, its derivative, its arguments and its output |
//! | `input`, `output` | JSON to arguments, with messages; results to JSON |
//! | `modules` | the list of tasks: the small ones, `det`, and those of ADBench |
//!
//! A line that cannot be read is reported on standard error and skipped; the exit code is then 1.

mod input;
mod modules;
mod output;
mod session;
mod task;

use clap::Parser;
use session::Session;
use std::io::{BufRead, Write};
use std::process::ExitCode;

/// Chainrule as a tool of GradBench: messages on standard input, answers on standard output, one JSON object a line.
///
/// Modules: hello, llsq, lse, ode, det, kmeans, gmm, ba, lstm.
#[derive(Parser)]
#[command(name = "chainrule-gradbench", version)]
#[command(after_help = "Example, with the answers behind <:
  $ chainrule-gradbench
  {\"id\": 0, \"kind\": \"start\", \"eval\": \"hello\"}
  < {\"id\":0,\"tool\":\"chainrule\"}
  {\"id\": 1, \"kind\": \"define\", \"module\": \"hello\"}
  < {\"id\":1,\"success\":true,\"timings\":[{\"name\":\"compile\",\"nanoseconds\":1024000}]}
  {\"id\": 2, \"kind\": \"evaluate\", \"module\": \"hello\", \"function\": \"double\", \"input\": 3}
  < {\"id\":2,\"success\":true,\"output\":6.0,\"timings\":[{\"name\":\"evaluate\",\"nanoseconds\":120}]}

With GradBench: gradbench run --eval \"gradbench eval llsq\" --tool chainrule-gradbench")]
struct Options {}

fn main() -> ExitCode {
    Options::parse();
    match serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // The reader of the answers is gone.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to standard error, if that is open.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", chainrule::report::printable(text));
}

/// Answers all messages; returns whether each could be read.
fn serve(mut input: impl BufRead, mut output: impl Write) -> std::io::Result<bool> {
    let mut session = Session::default();
    let (mut all_read, mut number, mut line) = (true, 0, Vec::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(all_read);
        }
        number += 1;
        let message = line.trim_ascii();
        if message.is_empty() {
            continue;
        }
        let answer = match chainrule::guard::guard(|| Ok(session.answer(message))) {
            Ok(answer) => answer,
            Err(bug) => Err(bug.to_string()),
        };
        match answer {
            Ok(answer) => {
                writeln!(output, "{answer}")?;
                output.flush()?;
            }
            Err(message) => {
                tell(&format!("error: line {number}: {message}"));
                all_read = false;
            }
        }
    }
}
