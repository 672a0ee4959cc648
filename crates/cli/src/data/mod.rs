//! Values from and to files: JSON, NPY, CSV and plain numbers; tables for users.

mod duplicates;
mod files;
mod json;
mod npy;
mod table;
mod text;

pub use files::{Program, read_program, read_source, shown, write as write_file};
pub use json::{check_keys, from_json, read_object};

use chainrule::report::count;
use chainrule::{Type, Value};
use clap::ValueEnum;
use std::io::ErrorKind;
use std::path::Path;
use text::{Class, Separation};

/// Format of results.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object, a field for each result; NaN and infinities are strings
    Json,
    /// NumPy's format, for one result that is an array of numbers
    Npy,
    /// Aligned columns, for reading
    Table,
}

/// Numbers with extents: the content of files without types.
pub struct Numbers {
    /// Outermost first.
    pub extents: Vec<usize>,
    /// Row-major.
    pub elements: Elements,
}

/// Numbers of a file.
pub enum Elements {
    /// Doubles.
    Reals(Vec<f64>),
    /// Integers.
    Ints(Vec<i64>),
}

/// Parses the value of an argument from the command line: JSON, or `@` and a file.
pub fn read_argument(name: &str, ty: &Type, text: &str) -> Result<Value<f64>, String> {
    let Some(path) = text.strip_prefix('@') else {
        return json::parse(name, ty, text, None);
    };
    let path = Path::new(path);
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let read = || files::read_data(path);
    let file = shown(path);
    match extension.as_str() {
        "json" => json::parse(name, ty, &read()?, Some(&file)),
        "npy" => from_numbers(name, ty, &npy::read(path)?),
        _ => {
            only_numbers(name, ty)?;
            let separation = if extension == "csv" { Separation::Csv } else { Separation::Plain };
            from_numbers(name, ty, &text::read(&read()?, &file, separation, depth(ty), class(ty))?)
        }
    }
}

/// Explains why `path` cannot be read, with a remedy.
pub fn unreadable(path: &Path, error: &std::io::Error) -> String {
    let path = shown(path);
    match error.kind() {
        ErrorKind::NotFound => {
            format!("error: there is no file {path}\n  help: paths start at the folder in which the command runs")
        }
        ErrorKind::IsADirectory => format!("error: {path} is a folder\n  help: name a file in it"),
        ErrorKind::InvalidData => {
            format!("error: {path} is not text: it has bytes that are not UTF-8\n  help: save it as UTF-8")
        }
        ErrorKind::PermissionDenied => format!("error: {path} may not be read\n  help: ask for permission to read it"),
        _ => format!("error: cannot read {path}: {error}"),
    }
}

/// Explains why `path` cannot be written, with a remedy.
pub fn unwritable(path: &Path, error: &std::io::Error) -> String {
    let path = shown(path);
    match error.kind() {
        ErrorKind::NotFound => {
            format!("error: cannot write {path}: its folder does not exist\n  help: make the folder first")
        }
        ErrorKind::IsADirectory => format!("error: cannot write {path}: it is a folder\n  help: name a file in it"),
        ErrorKind::PermissionDenied => {
            format!("error: {path} may not be written\n  help: choose another place, or ask for permission")
        }
        _ => format!("error: cannot write {path}: {error}"),
    }
}

/// Fails for types whose values cannot be in files of numbers.
fn only_numbers(name: &str, ty: &Type) -> Result<(), String> {
    let mut element = ty;
    while let Type::Array(_, inner) = element {
        element = inner;
    }
    match element {
        Type::Double | Type::Int => Ok(()),
        _ => Err(format!(
            "error: the argument `{name}` is {}, which a file of numbers does not hold\n  help: give it as JSON, such as {}",
            describe(ty),
            example(ty)
        )),
    }
}

/// Returns the class of the numbers in an argument.
fn class(ty: &Type) -> Class {
    match ty {
        Type::Array(_, element) => class(element),
        Type::Int => Class::Int,
        _ => Class::Real,
    }
}

fn depth(ty: &Type) -> usize {
    match ty {
        Type::Array(_, element) => 1 + depth(element),
        _ => 0,
    }
}

/// Converts numbers to a value of type `ty`: an array of numbers, or one number.
fn from_numbers(name: &str, ty: &Type, numbers: &Numbers) -> Result<Value<f64>, String> {
    only_numbers(name, ty)?;
    if depth(ty) != numbers.extents.len() {
        return Err(format!(
            "error: the argument `{name}` is {}, of {}; the file holds an array of {}\n  help: give the array another \
             shape, or the argument another type",
            describe(ty),
            count(depth(ty), "dimension"),
            count(numbers.extents.len(), "dimension")
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
        Type::Double => match &numbers.elements {
            Elements::Reals(elements) => Ok(Value::Real(elements[position])),
            Elements::Ints(elements) => {
                let i = elements[position];
                let x = i as f64;
                // 2^63 is a double, but not an integer of 64 bits.
                if x as i128 == i128::from(i) {
                    return Ok(Value::Real(x));
                }
                Err(format!(
                    "error: the integer {i} in the argument `{name}` is no double\n  help: doubles hold integers up to 2^53; \
                     save the file as float64, if it is to be rounded"
                ))
            }
        },
        Type::Int => match &numbers.elements {
            Elements::Ints(elements) => Ok(Value::Int(elements[position])),
            Elements::Reals(elements) => {
                let x = elements[position];
                if x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0 {
                    return Ok(Value::Int(x as i64));
                }
                // Prints 1e300 as users write it, so that they can find it.
                let x = if x.abs() >= 1e16 { format!("{x:e}") } else { x.to_string() };
                Err(format!(
                    "error: {x} in the argument `{name}` is not an integer\n  help: doubles hold integers up to 2^53; save \
                     the file as int64"
                ))
            }
        },
        Type::Bool | Type::Tuple(..) => {
            Err(format!("error: the argument `{name}` is not an array of numbers\n  help: give it as JSON"))
        }
    }
}

/// Maximum length of an example value in a message, in bytes.
const MAX_EXAMPLE: usize = 160;

/// Returns a value of type `ty` in JSON as an example; `...` replaces long parts.
pub fn example(ty: &Type) -> String {
    let mut text = String::new();
    write_example(ty, &mut text);
    text
}

/// Maximum number of elements of a value that [`made_up`] makes.
const MAX_MADE_UP: usize = 1 << 22;

/// Returns numbers between 0.75 and 1.25 of type `ty`; `None` for integers, unknown extents and large arrays.
pub fn made_up(ty: &Type) -> Option<Value<f64>> {
    /// Recursive on the nesting of types.
    fn make(ty: &Type, k: &mut usize) -> Option<Value<f64>> {
        match ty {
            Type::Double => {
                *k += 1;
                (*k <= MAX_MADE_UP).then(|| Value::Real(0.75 + 0.5 * (*k as f64 * 0.618_033_988_749_895).fract()))
            }
            Type::Array(size, element) => {
                (0..size.as_constant()?).map(|_| make(element, k)).collect::<Option<_>>().map(Value::Array)
            }
            Type::Tuple(fields, _) => {
                fields.iter().map(|field| make(field, k)).collect::<Option<_>>().map(Value::Tuple)
            }
            Type::Int | Type::Bool => None,
        }
    }
    make(ty, &mut 0)
}

/// Recursive on the nesting of types; parts beyond the limit are not visited.
fn write_example(ty: &Type, text: &mut String) {
    if text.len() > MAX_EXAMPLE {
        text.push_str("...");
        return;
    }
    match ty {
        Type::Double => text.push_str("1.5"),
        Type::Int => text.push('3'),
        Type::Bool => text.push_str("true"),
        Type::Array(_, element) => match **element {
            Type::Double | Type::Int => text.push_str("[1, 2]"),
            _ => write_examples("[]", [(None, &**element), (None, element)].into_iter(), text),
        },
        Type::Tuple(fields, None) => write_examples("[]", fields.iter().map(|field| (None, field)), text),
        Type::Tuple(fields, Some(names)) => write_examples("{}", names.iter().map(Some).zip(fields), text),
    }
}

fn write_examples<'a>(
    brackets: &str,
    parts: impl Iterator<Item = (Option<&'a chainrule::Name>, &'a Type)>,
    text: &mut String,
) {
    let (open, close) = brackets.split_at(1);
    text.push_str(open);
    for (k, (name, ty)) in parts.enumerate() {
        if k > 0 {
            text.push_str(", ");
        }
        if text.len() > MAX_EXAMPLE {
            text.push_str("...");
            break;
        }
        if let Some(name) = name {
            text.push_str(&format!("\"{name}\": "));
        }
        write_example(ty, text);
    }
    text.push_str(close);
}

/// Describes the type `ty`: `an array of numbers`.
pub fn describe(ty: &Type) -> String {
    let elements = |ty: &Type| match ty {
        Type::Double => "numbers".into(),
        Type::Int => "integers".into(),
        Type::Bool => "truth values".into(),
        Type::Array(..) => describe(ty).replacen("an array", "arrays", 1),
        Type::Tuple(_, None) => "tuples".into(),
        Type::Tuple(_, Some(_)) => "records".into(),
    };
    match ty {
        Type::Double => "a number".into(),
        Type::Int => "an integer".into(),
        Type::Bool => "true or false".into(),
        Type::Array(_, element) => format!("an array of {}", elements(element)),
        Type::Tuple(fields, None) => format!("a tuple of {}", fields.len()),
        Type::Tuple(_, Some(names)) => {
            format!("a record of {}", names.iter().map(chainrule::Name::as_str).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns all results in a format.
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
