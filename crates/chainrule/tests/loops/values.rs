//! Arguments and results of programs in tests.

use chainrule::Value;

/// Returns an array of these extents.
pub fn array(extents: &[usize], seed: &mut usize) -> Value<f64> {
    match extents {
        [] => {
            *seed += 1;
            Value::Real((*seed * 7919 % 1013) as f64 / 1013.0 - 0.3)
        }
        [n, rest @ ..] => Value::Array((0..*n).map(|_| array(rest, seed)).collect()),
    }
}

/// Returns all numbers of a value, in order.
pub fn numbers(value: &Value<f64>) -> Vec<f64> {
    match value {
        Value::Array(parts) | Value::Tuple(parts) => parts.iter().flat_map(numbers).collect(),
        Value::Real(x) => vec![*x],
        other => panic!("{other:?}"),
    }
}
