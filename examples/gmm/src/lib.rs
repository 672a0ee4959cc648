//! The Gaussian mixture objective of ADBench in F~ ([`SOURCE`]), on ADBench's files.

use chainrule::{Compiled, Error, Module, Value};
use std::path::Path;

/// The F~ program.
pub const SOURCE: &str = include_str!("../gmm.ft");

/// Arguments of the objective in the format of ADBench's files.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Mixture weights before the softmax, k of them.
    pub alphas: Vec<f64>,
    /// Means, k of d numbers.
    pub means: Vec<Vec<f64>>,
    /// Inverse covariance factors, k of d(d+1)/2 numbers: log-diagonal, then strict lower part by columns.
    pub icf: Vec<Vec<f64>>,
    /// Points, n of d numbers.
    pub points: Vec<Vec<f64>>,
    /// The Wishart prior's gamma.
    pub gamma: f64,
    /// The Wishart prior's m.
    pub m: i64,
}

/// Returns the problem in the file `path`.
///
/// # Errors
/// Fails if the file cannot be read, or is not an ADBench file.
pub fn read(path: &Path) -> Result<Problem, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let mut words = text.split_whitespace();
    let mut next = || words.next().ok_or_else(|| format!("{} ends too early", path.display()));
    let (d, k, n): (usize, usize, usize) = (next()?.parse()?, next()?.parse()?, next()?.parse()?);
    let mut numbers = |count: usize| -> Result<Vec<f64>, Box<dyn std::error::Error>> {
        (0..count).map(|_| Ok(next()?.parse()?)).collect()
    };
    let alphas = numbers(k)?;
    let means = (0..k).map(|_| numbers(d)).collect::<Result<_, _>>()?;
    let icf = (0..k).map(|_| numbers(d * (d + 1) / 2)).collect::<Result<_, _>>()?;
    let points = (0..n).map(|_| numbers(d)).collect::<Result<_, _>>()?;
    let gamma = next()?.parse()?;
    let m = next()?.parse()?;
    Ok(Problem { alphas, means, icf, points, gamma, m })
}

/// Compiles the objective and its gradient by alphas, means and icf, in one call.
///
/// # Errors
/// Never: the program is valid.
pub fn compile() -> Result<Compiled, Error> {
    let gmm = Module::from_text("gmm.ft", SOURCE)?.function("gmm")?;
    gmm.gradient().by(&["alphas", "means", "icf"]).with_value().compile()
}

/// Returns the value and the gradient, in ADBench's order: alphas, means, icf.
///
/// # Errors
/// Fails if the problem's shapes do not fit.
pub fn evaluate(compiled: &Compiled, problem: &Problem) -> Result<(f64, Vec<f64>), Error> {
    let args = [
        Value::from(problem.alphas.clone()),
        Value::from(problem.means.clone()),
        Value::from(problem.icf.clone()),
        Value::from(problem.points.clone()),
        Value::from(problem.gamma),
        Value::from(problem.m),
    ];
    let results = compiled.call(&args)?;
    // The record { value, gradient } has its doubles in this order.
    let doubles: Vec<f64> = results[0].reals().into_iter().copied().collect();
    Ok((doubles[0], doubles[1..].to_vec()))
}
