//! Results as JSON, which has neither infinities nor NaN.

use crate::task::Failure;
use chainrule::Prepared;
use serde_json::Value as Json;

/// Returns a number.
pub fn number(x: f64) -> Result<Json, Failure> {
    let json = serde_json::Number::from_f64(x).map(Json::Number);
    json.ok_or_else(|| format!("the output has a number that JSON cannot say: {x}").into())
}

/// Returns numbers in a list.
pub fn row(xs: &[f64]) -> Result<Json, Failure> {
    xs.iter().map(|x| number(*x)).collect::<Result<Vec<_>, _>>().map(Json::Array)
}

/// Returns `rows` lists of `n` numbers.
pub fn matrix(xs: &[f64], rows: usize, n: usize) -> Result<Json, Failure> {
    (0..rows).map(|i| row(&xs[i * n..(i + 1) * n])).collect::<Result<Vec<_>, _>>().map(Json::Array)
}

/// Returns the first result, which is a number.
pub fn scalar(prepared: &Prepared<'_>) -> Result<Json, Failure> {
    prepared.result(0).first().map_or_else(|| Err("there is no output".to_owned().into()), |x| number(*x))
}

/// Returns the first result, which is a list of numbers.
pub fn vector(prepared: &Prepared<'_>) -> Result<Json, Failure> {
    row(prepared.result(0))
}
