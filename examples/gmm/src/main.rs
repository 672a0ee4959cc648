//! Value and gradient of the Gaussian mixture objective on ADBench's files.
//!
//! `cargo run --release -p chainrule-example-gmm -- gmm_d2_K5.txt`

use chainrule_example_gmm::{compile, evaluate, read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

fn show(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let problem = read(path)?;
    let start = Instant::now();
    let compiled = compile()?;
    let compile_time = start.elapsed();
    let start = Instant::now();
    let (value, gradient) = evaluate(&compiled, &problem)?;
    let time = start.elapsed();
    let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    println!("{}", path.display());
    println!(
        "  {} points in {} dimensions, {} Gaussians",
        problem.points.len(),
        problem.means[0].len(),
        problem.means.len()
    );
    println!("  objective {value:.12}, norm of the gradient ({} numbers) {norm:.12}", gradient.len());
    println!("  compiled in {compile_time:.1?}, value and gradient in {time:.1?}");
    Ok(())
}

fn main() -> ExitCode {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/gmm");
        paths = ["test.txt", "gmm_d2_K5.txt"].map(|file| data.join(file)).to_vec();
    }
    for path in &paths {
        if let Err(error) = show(path) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
