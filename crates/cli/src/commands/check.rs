//! `chainrule check`.

use crate::request::load;
use crate::{Outcome, explain, print};
use clap::Args;
use std::path::PathBuf;

/// Check files: syntax, types, sizes. Prints the type of each definition.
#[derive(Args)]
#[command(after_help = "Examples:\n  chainrule check model.ft\n  chainrule check --quiet *.ft")]
pub struct Options {
    /// The files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print nothing when all is well.
    #[arg(long, short)]
    quiet: bool,
}

/// Checks all files, also after an error in one.
pub fn run(options: &Options) -> Outcome {
    let mut wrong = Vec::new();
    for file in &options.files {
        let module = match load(file) {
            Ok(module) => module,
            Err(message) => {
                wrong.push(message);
                continue;
            }
        };
        for definition in module.definitions() {
            // Sizes are found when a function is elaborated for its own parameters.
            if definition.is_first_order
                && let Err(error) = module.function(&definition.name)
            {
                wrong.push(explain(&error));
            }
            if !options.quiet {
                print(&format!("{} : {}\n", definition.name, definition.ty))?;
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n\n")) }
}
