//! Values and derivatives of ADBench's problems on its files.
//!
//! `cargo run --release -p chainrule-example-adbench -- ba ba1_n49_m7776_p31843.txt`

use chainrule::{Compiled, Value};
use chainrule_example_adbench::{ReadError, ba, hand, lstm};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

fn norm(reals: &[&f64]) -> f64 {
    reals.iter().map(|x| **x * **x).sum::<f64>().sqrt()
}

fn timed(what: &str, compiled: &Compiled, args: &[Value<f64>]) -> Result<Vec<Value<f64>>, ReadError> {
    let mut prepared = compiled.prepare(args)?;
    prepared.run()?;
    let start = Instant::now();
    prepared.run()?;
    println!("  {what} in {:.1?}", start.elapsed());
    Ok(prepared.results())
}

fn show(problem: &str, path: &Path) -> Result<(), ReadError> {
    match problem {
        "ba" => {
            let problem = ba::read(path)?;
            let (residuals, jacobian) = (ba::compile("ba")?, ba::sparse_jacobian()?);
            let args = problem.args();
            println!("{}: {} observations", path.display(), problem.observations.len());
            let value = timed("residuals", &residuals, &args)?;
            println!("  their norm is {:.12}", norm(&value[0].reals()));
            let start = Instant::now();
            let mut jacobian = jacobian.prepare(&args)?;
            println!("  pattern of the Jacobian in {:.1?}", start.elapsed());
            jacobian.run()?;
            let start = Instant::now();
            jacobian.run()?;
            println!("  sparse Jacobian in {:.1?}", start.elapsed());
            let values: Vec<&f64> = jacobian.values().iter().collect();
            println!("  {} numbers of norm {:.12}", values.len(), norm(&values));
        }
        "hand" => {
            let problem = hand::read(path)?;
            let (residuals, jacobian) = hand::compile(problem.coordinates.is_some())?;
            let args = problem.args();
            println!("{}: {} points", path.display(), problem.seen.len());
            let value = timed("residuals", &residuals, &args)?;
            println!("  their norm is {:.12}", norm(&value[0].reals()));
            let value = timed("Jacobian", &jacobian, &args)?;
            let reals = value[0].reals();
            println!("  {} numbers of norm {:.12}", reals.len(), norm(&reals));
        }
        "lstm" => {
            let problem = lstm::read(path)?;
            println!("{}: {} characters", path.display(), problem.text.len());
            let both = timed("loss and gradient", &lstm::compile()?, &problem.args())?;
            let reals = both[0].reals();
            println!(
                "  loss {:.12}, gradient of {} numbers, norm {:.12}",
                reals[0],
                reals.len() - 1,
                norm(&reals[1..])
            );
        }
        other => return Err(format!("`{other}` is no problem; there are ba, hand and lstm").into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [problem, path] = args.as_slice() else {
        eprintln!("usage: chainrule-example-adbench ba|hand|lstm FILE");
        return ExitCode::FAILURE;
    };
    match show(problem, Path::new(path)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
