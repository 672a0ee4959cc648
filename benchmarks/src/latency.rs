//! `latency`: the time from start to end of a command.

use crate::measure::median;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Options of the benchmark.
#[derive(Args)]
pub struct Options {
    /// Number of runs of each command.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// The program `chainrule` (default: the one next to this program).
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Commands as typed in the root of the repository.
const COMMANDS: &[(&str, &str)] = &[
    ("help", "--help"),
    ("rosenbrock", "derive examples/rosenbrock.ft --by x --what gradient --size n=4"),
    ("sh20", "derive examples/spherical_harmonics/harmonics.ft --by v --what jacobian --size n=21 --arg v=[0.6,0,0.8]"),
    ("gmm", "derive examples/gmm/gmm.ft --what gradient"),
    ("ba", "derive examples/adbench/programs/ba.ft --function ba --what jacobian --sparse"),
    ("lstm", "emit c examples/adbench/programs/lstm.ft --what gradient"),
];

/// Prints the table.
///
/// # Errors
/// Fails if the program does not exist, or a command fails.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let beside = || Ok::<_, std::io::Error>(std::env::current_exe()?.with_file_name("chainrule"));
    let program = options.program.clone().map_or_else(beside, Ok)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    println!("{:<12} {:>9} {:>9}  chainrule ...", "command", "median ms", "least ms");
    for (name, line) in COMMANDS {
        let once = || {
            let mut command = Command::new(&program);
            command.args(line.split(' ')).current_dir(&root).stdout(Stdio::null()).stderr(Stdio::piped());
            let start = Instant::now();
            let output = command.output().map_err(|e| {
                format!("{}: {e}\n  help: build it: cargo build --release -p chainrule-cli", program.display())
            })?;
            let taken = start.elapsed().as_secs_f64() * 1e3;
            if output.status.success() { Ok(taken) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
        };
        // The first run finds the files in no cache.
        once()?;
        let samples = (0..options.rounds.max(1)).map(|_| once()).collect::<Result<Vec<f64>, String>>()?;
        let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{name:<12} {:>9.1} {least:>9.1}  {line}", median(&samples));
    }
    Ok(())
}
