//! Values from and to files: JSON, NPY, CSV and plain numbers; tables for people.

mod json;
mod npy;
mod table;
mod text;

pub use json::{from_json, read_object};

use chainrule::{Type, Value};
use clap::ValueEnum;
use std::path::Path;

/// How results are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object, a field for each result; NaN and infinities are strings.
    Json,
    /// NumPy's format; one result that is an array of numbers.
    Npy,
    /// Columns for people.
    Table,
}

/// Numbers with extents: what files without types hold.
pub struct Numbers {
    /// Outermost first.
    pub extents: Vec<usize>,
    /// Row-major.
    pub elements: Vec<f64>,
}

/// The value of an argument as it stands on the command line: JSON, or `@` and a file.
pub fn read_argument(name: &str, ty: &Type, text: &str) -> Result<Value<f64>, String> {
    let Some(path) = text.strip_prefix('@') else {
        return json::parse(name, ty, text);
    };
    let path = Path::new(path);
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let unreadable = |e: std::io::Error| format!("error: cannot read {}: {e}", path.display());
    match extension.as_str() {
        "json" => json::parse(name, ty, &std::fs::read_to_string(path).map_err(unreadable)?),
        "npy" => from_numbers(name, ty, &npy::read(path)?),
        _ => {
            let text = std::fs::read_to_string(path).map_err(unreadable)?;
            let wanted = depth(ty);
            from_numbers(name, ty, &text::read(&text, &path.display().to_string(), extension == "csv", wanted)?)
        }
    }
}

fn depth(ty: &Type) -> usize {
    match ty {
        Type::Array(_, element) => 1 + depth(element),
        _ => 0,
    }
}

/// Numbers as a value of type `ty`: an array of numbers, or one number.
fn from_numbers(name: &str, ty: &Type, numbers: &Numbers) -> Result<Value<f64>, String> {
    if depth(ty) != numbers.extents.len() {
        return Err(format!(
            "error: the argument `{name}` has {} dimensions, the file has {}",
            depth(ty),
            numbers.extents.len()
        ));
    }
    place(name, ty, numbers, 0, 0)
}

fn place(name: &str, ty: &Type, numbers: &Numbers, dim: usize, position: usize) -> Result<Value<f64>, String> {
    match ty {
        Type::Array(_, element) => {
            let n = numbers.extents[dim];
            (0..n)
                .map(|i| place(name, element, numbers, dim + 1, position * n + i))
                .collect::<Result<_, _>>()
                .map(Value::Array)
        }
        Type::Double => Ok(Value::Real(numbers.elements[position])),
        Type::Int => {
            let x = numbers.elements[position];
            if x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0 {
                Ok(Value::Int(x as i64))
            } else {
                Err(format!("error: {x} in the argument `{name}` is not an integer"))
            }
        }
        Type::Bool | Type::Tuple(..) => {
            Err(format!("error: the argument `{name}` is not an array of numbers\n  help: give it as JSON"))
        }
    }
}

/// A value of type `ty`, to show how one is written.
pub fn example(ty: &Type) -> String {
    match ty {
        Type::Double => "1.5".into(),
        Type::Int => "3".into(),
        Type::Bool => "true".into(),
        Type::Array(_, element) => match **element {
            Type::Double | Type::Int => "'[1, 2]'".into(),
            _ => "@file.json".into(),
        },
        Type::Tuple(..) => "@file.json".into(),
    }
}

/// All results in a format.
pub fn write(results: &[(&str, &Type, &Value<f64>)], format: Format) -> Result<Vec<u8>, String> {
    match format {
        Format::Json => Ok(json::write(results).into_bytes()),
        Format::Table => Ok(table::write(results).into_bytes()),
        Format::Npy => match results {
            [(name, ty, value)] => npy::write(name, ty, value),
            _ => Err(format!(
                "error: NPY holds one array; there are {} results\n  help: use --format json",
                results.len()
            )),
        },
    }
}
