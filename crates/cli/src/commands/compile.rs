//! `chainrule compile`.

use crate::pipeline::Pipeline;
use crate::request::{Arithmetic, Derivative, Which};
use crate::{Outcome, data, explain, progress, tell};
use chainrule::{Checks, CompileOptions};
use clap::Args;
use std::path::PathBuf;

/// Compile a function, or derivatives of it, and save it for chainrule run or for loading in Rust, on this machine
/// or another
#[derive(Args)]
#[command(after_help = "The file holds no machine code: that is made where the file is loaded, in microseconds.

Examples:
  chainrule compile model.ft --what gradient --out gradient.chainrule
  chainrule compile model.ft --what value --what gradient --size n=8 --out model.chainrule
  chainrule run gradient.chainrule --arg x='[1, 2, 3]'")]
pub struct Options {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    derivative: Derivative,
    #[command(flatten)]
    arithmetic: Arithmetic,
    #[command(flatten)]
    pipeline: Pipeline,
    /// Output file
    #[arg(long, short, required_unless_present = "stop_after")]
    out: Option<PathBuf>,
    /// Omit index checks that memory safety does not need: an index out of range is an error, or reads another element
    /// of its array. `chainrule run --promise-in-range` omits the others
    #[arg(long)]
    no_checks: bool,
    /// Save the source as well, so that failures show the line
    #[arg(long)]
    sources: bool,
}

/// Compiles and saves.
pub fn run(options: &Options) -> Outcome {
    options.pipeline.watch(|| compile(options))
}

fn compile(options: &Options) -> Outcome {
    let function = options.which.load()?;
    if options.derivative.sparse_loops(&function)?.is_some() {
        return Err(
            "error: a sparse derivative of a function that keeps its loops is two programs, which no file holds\n  \
                    help: run it with chainrule run, emit it, or unroll the loops with --size"
                .into(),
        );
    }
    let settings = CompileOptions {
        checkpoints: options.derivative.checkpoints,
        checks: if options.no_checks { Checks::Memory } else { Checks::All },
        ..options.arithmetic.settings()
    };
    let derived = progress::during("deriving", || options.derivative.derive(&function))?;
    if let Some(outcome) = options.pipeline.stop(&[&derived], &settings) {
        return outcome;
    }
    let Some(out) = &options.out else { return Ok(()) };
    let compiled = progress::during("compiling", || derived.compile_with(&settings)).map_err(|e| explain(&e))?;
    let bytes = if options.sources { compiled.to_bytes_with_sources() } else { compiled.to_bytes() };
    let bytes = bytes.map_err(|e| explain(&e))?;
    data::write_file(out, &bytes)?;
    tell(&format!("wrote {}", out.display()));
    Ok(())
}
