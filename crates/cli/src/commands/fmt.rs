//! `chainrule fmt`.

use crate::{Outcome, data, explain, print};
use clap::Args;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Format files in place, or standard input to standard output; comments stay where they are
#[derive(Args)]
#[command(
    after_help = "Examples:\n  chainrule fmt model.ft\n  chainrule fmt --check *.ft\n  chainrule fmt --stdout model.ft | less\n  chainrule fmt - <model.ft"
)]
pub struct Options {
    /// Files; `-`, or none: standard input, formatted to standard output
    files: Vec<PathBuf>,
    /// Change nothing; fail if a file is not formatted
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Print instead of writing
    #[arg(long)]
    stdout: bool,
}

/// Formats all files, also after an error in one.
pub fn run(options: &Options) -> Outcome {
    let mut wrong = Vec::new();
    if options.files.is_empty() && std::io::stdin().is_terminal() {
        return Err("error: nothing to format\n  help: name files, or pipe a text into chainrule fmt".into());
    }
    let standard_input = [PathBuf::from("-")];
    let files = if options.files.is_empty() { &standard_input[..] } else { &options.files };
    for file in files {
        let from_input = file.as_os_str() == "-";
        let name = if from_input { "<stdin>".to_string() } else { file.display().to_string() };
        let text = match data::read_source(file) {
            Ok(text) => text,
            Err(message) => {
                wrong.push(message);
                continue;
            }
        };
        match chainrule::format_source(&name, &text) {
            Err(error) => wrong.push(explain(&error)),
            Ok(formatted) if options.stdout || (from_input && !options.check) => print(&formatted)?,
            Ok(formatted) if formatted == text => {}
            Ok(_) if options.check => {
                let file = if from_input { "-" } else { &name };
                wrong.push(format!("error: {name} is not formatted\n  help: run chainrule fmt {file}"));
            }
            Ok(formatted) => {
                wrong.extend(data::write_file(file, formatted.as_bytes()).err());
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n\n")) }
}
