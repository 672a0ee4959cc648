//! Values in the notation of the guide: JSON, with types from the program.

// A failing test stops.
#![allow(clippy::unwrap_used)]

use chainrule::{Type, Value};

/// Value without a type.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// Number, `true`, `NaN`: one word.
    Word(String),
    /// `[a, b]`
    List(Vec<Json>),
    /// `{a: 1, b: 2}`
    Record(Vec<(String, Json)>),
}

/// Parses the values in `text`, separated by commas.
pub fn parse_list(text: &str) -> Vec<Json> {
    let mut rest = text.trim();
    let mut items = Vec::new();
    while !rest.is_empty() {
        let (item, after) = parse(rest);
        items.push(item);
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    items
}

/// Parses the value at the start of `text`; returns it with the rest.
fn parse(text: &str) -> (Json, &str) {
    let close = match text.chars().next().unwrap() {
        '[' => ']',
        '{' => '}',
        _ => {
            let end = text.find([',', ']', '}']).unwrap_or(text.len());
            return (Json::Word(text[..end].trim().to_string()), &text[end..]);
        }
    };
    let mut rest = text[1..].trim_start();
    let (mut items, mut fields) = (Vec::new(), Vec::new());
    while !rest.starts_with(close) {
        if close == '}' {
            let (name, after) = rest.split_once(':').unwrap();
            let (value, after) = parse(after.trim_start());
            fields.push((name.trim().to_string(), value));
            rest = after;
        } else {
            let (value, after) = parse(rest);
            items.push(value);
            rest = after;
        }
        rest = rest.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    (if close == '}' { Json::Record(fields) } else { Json::List(items) }, &rest[1..])
}

/// Converts `json` to a value of type `ty`.
pub fn typed(ty: &Type, json: &Json) -> Value<f64> {
    match (ty, json) {
        (Type::Double, Json::Word(word)) => Value::Real(word.parse().unwrap_or_else(|_| panic!("{word}"))),
        (Type::Int, Json::Word(word)) => Value::Int(word.parse().unwrap_or_else(|_| panic!("{word}"))),
        (Type::Bool, Json::Word(word)) => Value::Bool(word.parse().unwrap_or_else(|_| panic!("{word}"))),
        (Type::Array(_, element), Json::List(items)) => {
            Value::Array(items.iter().map(|item| typed(element, item)).collect())
        }
        (Type::Tuple(types, None), Json::List(items)) if types.len() == items.len() => {
            Value::Tuple(types.iter().zip(items).map(|(ty, item)| typed(ty, item)).collect())
        }
        (Type::Tuple(types, Some(names)), Json::Record(fields)) if types.len() == fields.len() => {
            let field = |(ty, name): (&Type, &chainrule::Name)| {
                let found = fields.iter().find(|(field, _)| **field == **name);
                typed(ty, &found.unwrap_or_else(|| panic!("no field {name}")).1)
            };
            Value::Tuple(types.iter().zip(names.iter()).map(field).collect())
        }
        _ => panic!("{json:?} is no value of type {ty:?}"),
    }
}

/// Returns whether values are equal, numbers up to 1e-12 relative.
pub fn close(a: &Value<f64>, b: &Value<f64>) -> bool {
    match (a, b) {
        (Value::Real(a), Value::Real(b)) => {
            a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(a, b))
        }
        (a, b) => a == b,
    }
}

/// Prints a value in the notation of the guide.
pub fn show(ty: &Type, value: &Value<f64>) -> String {
    match (ty, value) {
        (_, Value::Real(x)) => x.to_string(),
        (_, Value::Int(i)) => i.to_string(),
        (_, Value::Bool(b)) => b.to_string(),
        (Type::Array(_, element), Value::Array(items)) => {
            format!("[{}]", items.iter().map(|item| show(element, item)).collect::<Vec<_>>().join(", "))
        }
        (Type::Tuple(types, None), Value::Tuple(items)) => {
            format!("[{}]", types.iter().zip(items).map(|(t, v)| show(t, v)).collect::<Vec<_>>().join(", "))
        }
        (Type::Tuple(types, Some(names)), Value::Tuple(items)) => {
            let fields = names.iter().zip(types).zip(items).map(|((n, t), v)| format!("{n}: {}", show(t, v)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        _ => panic!("{value:?} is no value of type {ty:?}"),
    }
}
