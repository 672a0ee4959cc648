//! Nonlinear regression on NIST's Statistical Reference Datasets: models in F~, residuals and Jacobian
//! from Chainrule, parameters by Levenberg-Marquardt.

pub mod dataset;
pub mod levenberg_marquardt;

use chainrule::{Compiled, Error, Module, Value};
use dataset::Dataset;

/// The models: name of the data set, F~ program.
pub const MODELS: [(&str, &str); 8] = [
    ("ENSO", include_str!("../models/ENSO.ft")),
    ("Gauss1", include_str!("../models/Gauss1.ft")),
    ("Hahn1", include_str!("../models/Hahn1.ft")),
    ("Lanczos1", include_str!("../models/Lanczos1.ft")),
    ("MGH09", include_str!("../models/MGH09.ft")),
    ("Misra1a", include_str!("../models/Misra1a.ft")),
    ("Rat43", include_str!("../models/Rat43.ft")),
    ("Thurber", include_str!("../models/Thurber.ft")),
];

/// Compiles residuals and their Jacobian by the parameters, in one call.
///
/// # Errors
/// Never, for the programs of [`MODELS`].
pub fn compile(name: &str, source: &str) -> Result<Compiled, Error> {
    let residuals = Module::from_text(&format!("{name}.ft"), source)?.function("residuals")?;
    residuals.jacobian().by(&["b"]).with_value().compile()
}

/// Returns residuals, and their Jacobian by rows, at the parameters `b`.
///
/// # Errors
/// Fails if the number of parameters is not the model's.
pub fn evaluate(compiled: &Compiled, data: &Dataset, b: &[f64]) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let args = [Value::from(b.to_vec()), Value::from(data.x.clone()), Value::from(data.y.clone())];
    let doubles: Vec<f64> = compiled.call(&args)?[0].reals().into_iter().copied().collect();
    let (residuals, jacobian) = doubles.split_at(data.y.len());
    Ok((residuals.to_vec(), jacobian.to_vec()))
}
