//! Refines a problem.
//!
//! `cargo run --release -p chainrule-example-bundle_adjustment -- libmv_problem_02.bin [picture.svg]`; without a file,
//! a small synthetic problem.

use chainrule_example_bundle_adjustment::{Problem, Refined, libmv, picture, refine};
use std::process::ExitCode;
use std::time::Instant;

fn run(args: &[String]) -> Result<(), libmv::ReadError> {
    let problem = match args.first() {
        None => Problem::synthetic()?,
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|e| format!("cannot read {path}: {e}"))?;
            libmv::parse(&bytes).map_err(|e| format!("{path}: {e}"))?
        }
    };
    let (n, m, p) = (problem.n_cameras(), problem.n_points(), problem.observations.len());
    println!("{n} cameras, {m} points, {p} observations");
    let at_start = refine(&problem)?;
    show("as it is", &at_start);
    // Checks that the solution is found again from further away.
    let start = Instant::now();
    let refined = refine(&problem.shaken(0.01, 0.1))?;
    let time = start.elapsed();
    show("shaken", &refined);
    println!("{} steps in {time:.2?}", refined.iterations.len() - 1);
    if let Some(path) = args.get(1) {
        let svg = picture::draw(&refined.before, &refined.after);
        chainrule::files::replace(path, svg.as_bytes()).map_err(|e| format!("cannot write {path}: {e}"))?;
    }
    Ok(())
}

fn show(what: &str, refined: &Refined) {
    if let [first, .., last] = refined.iterations.as_slice() {
        println!("{what}: {:.6} picture elements, gradient {:.0e}", first.error, first.gradient);
        println!("  refined: {:.6}, gradient {:.0e}", last.error, last.gradient);
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
