//! `chainrule fmt`.

use crate::{Outcome, explain, print};
use clap::Args;
use std::path::PathBuf;

/// Format files in place. Comments stay where they are.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  chainrule fmt model.ft\n  chainrule fmt --check *.ft\n  chainrule fmt --stdout model.ft | less"
)]
pub struct Options {
    /// The files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; fail when a file is not formatted.
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Print instead of writing.
    #[arg(long)]
    stdout: bool,
}

/// Formats all files, also after one is wrong.
pub fn run(options: &Options) -> Outcome {
    let mut wrong = Vec::new();
    for file in &options.files {
        let name = file.display().to_string();
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                wrong.push(crate::data::unreadable(file, &error));
                continue;
            }
        };
        match chainrule::format_source(&name, &text) {
            Err(error) => wrong.push(explain(&error)),
            Ok(formatted) if options.stdout => print(&formatted)?,
            Ok(formatted) if formatted == text => {}
            Ok(_) if options.check => {
                wrong.push(format!("error: {name} is not formatted\n  help: run chainrule fmt {name}"));
            }
            Ok(formatted) => {
                if let Err(error) = std::fs::write(file, formatted) {
                    wrong.push(crate::data::unwritable(file, &error));
                }
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n\n")) }
}
