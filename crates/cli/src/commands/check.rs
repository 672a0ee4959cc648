//! `chainrule check`.

use crate::request::load;
use crate::{Outcome, explain, print};
use chainrule::report::count;
use clap::Args;
use std::path::PathBuf;

/// Check syntax, types and sizes of files; print the type of each definition
#[derive(Args)]
#[command(after_help = "Examples:\n  chainrule check model.ft\n  chainrule check --quiet *.ft")]
pub struct Options {
    /// Files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print errors only
    #[arg(long, short)]
    quiet: bool,
}

/// Maximum number of definitions of a file whose errors are reported. The definitions after them are not elaborated: a
/// definition that is too large costs seconds, and so does each that calls it.
const MAX_WRONG: usize = 10;

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
        let (mut n_wrong, mut n_left) = (0, 0);
        for definition in module.definitions() {
            // Sizes are found when a function is elaborated for its own parameters.
            if definition.is_first_order {
                if n_wrong == MAX_WRONG {
                    n_left += 1;
                } else if let Err(error) = module.function(&definition.name) {
                    wrong.push(explain(&error));
                    n_wrong += 1;
                }
            }
            if !options.quiet {
                print(&format!("{} : {}\n", definition.name, definition.ty))?;
            }
        }
        if n_left > 0 {
            let n = count(n_left, "definition");
            let what = format!("error: {n} of {} were not checked after {MAX_WRONG} errors", file.display());
            wrong.push(format!("{what}\n  help: mend these errors, and check again"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n\n")) }
}
