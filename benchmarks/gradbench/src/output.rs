//! Results as JSON, which has no infinities and nothing that is not a number.

use crate::task::Failure;
use chainrule::Prepared;
use serde_json::Value as Json;

/// A number.
pub fn number(x: f64) -> Result<Json, Failure> {
    let json = serde_json::Number::from_f64(x).map(Json::Number);
    json.ok_or_else(|| format!("the output has a number that JSON cannot say: {x}").into())
}

/// Numbers in a row.
pub fn row(xs: &[f64]) -> Result<Json, Failure> {
    xs.iter().map(|x| number(*x)).collect::<Result<Vec<_>, _>>().map(Json::Array)
}

/// Rows of `n` numbers, `rows` of them.
pub fn matrix(xs: &[f64], rows: usize, n: usize) -> Result<Json, Failure> {
    (0..rows).map(|i| row(&xs[i * n..(i + 1) * n])).collect::<Result<Vec<_>, _>>().map(Json::Array)
}

/// The first result, which is a number.
pub fn scalar(prepared: &Prepared<'_>) -> Result<Json, Failure> {
    prepared.result(0).first().map_or_else(|| Err("there is no output".to_owned().into()), |x| number(*x))
}

/// The first result, which is a row of numbers.
pub fn vector(prepared: &Prepared<'_>) -> Result<Json, Failure> {
    row(prepared.result(0))
}
