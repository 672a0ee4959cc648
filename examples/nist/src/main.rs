//! Certified parameters of NIST's nonlinear regressions, found from both starting points.

use chainrule_example_nist::{MODELS, compile, dataset, evaluate, levenberg_marquardt::minimise};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Returns the number of digits that agree: -log10 of the relative error, at most 11 as certified.
fn digits(found: &[f64], certified: &[f64]) -> f64 {
    let error = found.iter().zip(certified).map(|(f, c)| ((f - c) / c).abs()).fold(0.0, f64::max);
    (-error.log10()).min(11.0)
}

fn show(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:<10} {:>5} {:>12} {:>8} {:>22} {:>22}",
        "model", "start", "evaluations", "digits", "sum of squares", "certified"
    );
    for (name, source) in MODELS {
        let data = dataset::read(&folder.join(format!("{name}.dat")))?;
        let compiled = compile(name, source)?;
        for (i, start) in data.starts.iter().enumerate() {
            let solution = minimise(start, |b| evaluate(&compiled, &data, b))?;
            println!(
                "{name:<10} {:>5} {:>12} {:>8.1} {:>22.10e} {:>22.10e}",
                i + 1,
                solution.evaluations,
                digits(&solution.parameters, &data.certified),
                solution.sum_of_squares,
                data.sum_of_squares
            );
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/nist");
    let folder = std::env::args_os().nth(1).map_or(here, PathBuf::from);
    if let Err(error) = show(&folder) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
