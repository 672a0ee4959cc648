//! The torques of real robots and their Jacobian, checked against Newton-Euler.
//!
//! `cargo run --release -p chainrule-example-manipulator -- panda.urdf ur5.urdf`

use chainrule::Function;
use chainrule_example_manipulator::{newton_euler, torque_function, urdf};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const GRAVITY: [f64; 3] = [0.0, 0.0, -9.81];

fn show(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let links = urdf::load(path)?;
    let n = links.len();
    let f: Function = torque_function(&links, GRAVITY)?;
    let jacobian = f.jacobian().function()?;
    println!("{}: {n} joints", path.display());
    println!("  torques            {}", f.counts().unwrap_or_default());
    println!("  {n} x {:<2} Jacobian    {}", 3 * n, jacobian.counts().unwrap_or_default());

    let point = |k: f64| -> Vec<f64> { (0..n).map(|i| (k + 0.7 * i as f64).sin()).collect() };
    let (q, qd, qdd) = (point(0.1), point(1.3), point(2.9));
    let tau = f.compile()?.eval(&[&q, &qd, &qdd])?.remove(0);
    let check = newton_euler::torques(&links, &q, &qd, &qdd, GRAVITY);
    let scale = check.iter().fold(0.0_f64, |m, t| m.max(t.abs()));
    let error = tau.iter().zip(&check).map(|(a, b)| (a - b).abs() / scale).fold(0.0, f64::max);
    println!("  largest difference from Newton-Euler, relative: {error:.1e}");
    Ok(())
}

fn main() -> ExitCode {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        let robots = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/robots");
        paths = ["panda.urdf", "ur5.urdf"].map(|file| robots.join(file)).to_vec();
    }
    for path in &paths {
        if let Err(error) = show(path) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
