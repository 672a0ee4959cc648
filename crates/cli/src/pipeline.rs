//! Observation of the compiler's passes: the options `--stop-after` and `--time-passes`.

use crate::{Outcome, explain, print, tell};
use chainrule::{CompileOptions, Function, Pass, time_passes};
use clap::Args;

/// Observation of passes.
#[derive(Args)]
pub struct Pipeline {
    /// Stop after the first run of this pass, and print the program that it leaves (`chainrule passes --list`)
    #[arg(long, value_name = "PASS")]
    pub stop_after: Option<String>,
    /// Print the time, the share and the number of runs of each pass to standard error
    #[arg(long)]
    pub time_passes: bool,
}

impl Pipeline {
    /// Runs a command with its passes timed, if requested.
    pub fn watch(&self, command: impl FnOnce() -> Outcome) -> Outcome {
        if let Some(pass) = &self.stop_after {
            // Reported before programs are read.
            Pass::by_name(pass).map_err(|e| explain(&e))?;
        }
        if !self.time_passes {
            return command();
        }
        let (outcome, times) = time_passes(command);
        tell(times.to_string().trim_end());
        outcome
    }

    /// Prints the programs after the pass of `--stop-after`; returns `None` without that option. Of several functions,
    /// those are printed in which the pass runs.
    pub fn stop(&self, functions: &[&Function], options: &CompileOptions) -> Option<Outcome> {
        let pass = self.stop_after.as_deref()?;
        let listings = functions.iter().map(|function| (function.name(), function.stop_after(pass, options)));
        let (printed, refused): (Vec<_>, Vec<_>) = listings.partition(|(_, listing)| listing.is_ok());
        if let (true, Some((_, Err(error)))) = (printed.is_empty(), refused.first()) {
            return Some(Err(explain(error)));
        }
        let mut text = String::new();
        for (name, listing) in &printed {
            if functions.len() > 1 {
                text.push_str(&format!("== {name} ==\n"));
            }
            text.push_str(listing.as_deref().unwrap_or_default().trim_end());
            text.push('\n');
        }
        Some(print(&text))
    }
}
