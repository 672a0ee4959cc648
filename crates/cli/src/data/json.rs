//! JSON.

use super::duplicates::duplicate_key;
use chainrule::report::printable;
use chainrule::{Type, Value};
use serde_json::Value as Json;
use std::path::Path;

/// Parses the value of type `ty` in `text`, which is from `file` or the command line.
pub fn parse(name: &str, ty: &Type, text: &str, file: Option<&str>) -> Result<Value<f64>, String> {
    let json: Json = serde_json::from_str(text).map_err(|e| {
        let (what, help) = match file {
            Some(file) => (file.to_string(), format!("write {}, such as {}", super::describe(ty), super::example(ty))),
            None => (
                format!("the value of `{name}`"),
                format!("write {name}='{}', or {name}=@FILE for what is in a file", super::example(ty)),
            ),
        };
        format!("error: {what} is not JSON: {}\n  help: {}", explain(&e), remedy(text, &e).unwrap_or(help))
    })?;
    check_keys(text, &file.map_or_else(|| format!("the value of `{name}`"), str::to_owned))?;
    from_json(name, ty, &json)
}

/// Rejects objects in `text`, which is JSON, with duplicate keys.
pub fn check_keys(text: &str, what: &str) -> Result<(), String> {
    duplicate_key(text).map_or(Ok(()), |(key, line)| {
        let key = printable(&key);
        Err(format!("error: {what} has `{key}` twice in one object, in line {line}\n  help: give it once"))
    })
}

/// Returns the parser's reason without jargon.
fn explain(error: &serde_json::Error) -> String {
    let place = format!("line {} column {}", error.line(), error.column());
    if error.is_eof() {
        return format!("it ends too early, at {place}");
    }
    error.to_string().replace("recursion limit exceeded", "nested too deeply")
}

/// Suggests a replacement for numbers that JSON does not have.
fn remedy(text: &str, error: &serde_json::Error) -> Option<String> {
    if error.to_string().contains("out of range") {
        return Some("numbers reach to 1.8e308; more is \"Infinity\", with quotes".into());
    }
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '"').map(str::to_ascii_lowercase);
    words
        .any(|word| matches!(word.as_str(), "nan" | "inf" | "infinity"))
        .then(|| "write \"NaN\", \"Infinity\" and \"-Infinity\" with quotes".into())
}

/// Reads the object in the file `path`.
pub fn read_object(path: &Path) -> Result<serde_json::Map<String, Json>, String> {
    let text = super::files::read_data(path)?;
    match serde_json::from_str(&text) {
        Ok(Json::Object(object)) => check_keys(&text, &super::shown(path)).map(|()| object),
        Ok(_) => {
            Err(format!("error: {} is not a JSON object\n  help: write {{\"x\": ..., \"y\": ...}}", super::shown(path)))
        }
        Err(e) => {
            let help = remedy(&text, &e).unwrap_or_else(|| "write {\"x\": ..., \"y\": ...}".into());
            Err(format!("error: {} is not JSON: {}\n  help: {help}", super::shown(path), explain(&e)))
        }
    }
}

/// Converts `json` to a value of type `ty`. Recursive on the nesting of types, which the program bounds.
pub fn from_json(path: &str, ty: &Type, json: &Json) -> Result<Value<f64>, String> {
    let misfit = |wanted: &str| {
        let (kind, example) = (kind(json), super::example(ty));
        Err(format!(
            "error: `{path}` is {kind}, not {wanted}\n  help: write {}, such as {example}",
            super::describe(ty)
        ))
    };
    match ty {
        Type::Double => match json {
            Json::Number(number) => Ok(Value::Real(number.as_f64().unwrap_or(f64::NAN))),
            Json::String(word) => match word.to_ascii_lowercase().as_str() {
                "nan" => Ok(Value::Real(f64::NAN)),
                "inf" | "infinity" => Ok(Value::Real(f64::INFINITY)),
                "-inf" | "-infinity" => Ok(Value::Real(f64::NEG_INFINITY)),
                _ => misfit("a number"),
            },
            _ => misfit("a number"),
        },
        Type::Int => json.as_i64().map_or_else(|| misfit("an integer of 64 bits"), |i| Ok(Value::Int(i))),
        Type::Bool => json.as_bool().map_or_else(|| misfit("true or false"), |b| Ok(Value::Bool(b))),
        Type::Array(_, element) => {
            let Json::Array(items) = json else { return misfit("an array") };
            let item = |(i, item)| from_json(&format!("{path}[{i}]"), element, item);
            items.iter().enumerate().map(item).collect::<Result<_, _>>().map(Value::Array)
        }
        Type::Tuple(fields, names) => match (json, names) {
            (Json::Object(object), Some(names)) => {
                if let Some(key) = object.keys().find(|key| !names.iter().any(|n| **n == ***key)) {
                    let key = printable(key);
                    return Err(format!("error: `{path}` has no field `{key}`\n  help: it is {}", super::describe(ty)));
                }
                let field = |(ty, name): (&Type, &chainrule::Name)| match object.get(name.as_str()) {
                    Some(json) => from_json(&format!("{path}.{name}"), ty, json),
                    None => Err(format!(
                        "error: `{path}` lacks the field `{name}`\n  help: write {}, such as {}",
                        super::describe(ty),
                        super::example(ty)
                    )),
                };
                fields.iter().zip(names.iter()).map(field).collect::<Result<_, _>>().map(Value::Tuple)
            }
            (Json::Array(items), _) if items.len() == fields.len() => {
                let item = |(i, (ty, item)): (usize, (&Type, &Json))| from_json(&format!("{path}.{i}"), ty, item);
                fields.iter().zip(items).enumerate().map(item).collect::<Result<_, _>>().map(Value::Tuple)
            }
            (_, Some(_)) => misfit("an object"),
            (_, None) => misfit(&format!("an array of {}", fields.len())),
        },
    }
}

fn kind(json: &Json) -> String {
    match json {
        Json::Null => "null".into(),
        Json::Bool(_) => "a truth value".into(),
        Json::Number(n) => format!("the number {n}"),
        Json::String(s) => format!("the text {s:?}"),
        Json::Array(items) => format!("an array of {}", items.len()),
        Json::Object(_) => "an object".into(),
    }
}

/// Writes one object; a single result is written bare.
pub fn write(results: &[(&str, &Type, &Value<f64>)]) -> String {
    let json = match results {
        [(_, ty, value)] => to_json(ty, value),
        _ => Json::Object(results.iter().map(|(name, ty, value)| ((*name).to_string(), to_json(ty, value))).collect()),
    };
    format!("{json}\n")
}

fn to_json(ty: &Type, value: &Value<f64>) -> Json {
    match (ty, value) {
        (_, Value::Real(x)) => {
            serde_json::Number::from_f64(*x).map_or_else(|| Json::String(x.to_string()), Json::Number)
        }
        (_, Value::Int(i)) => Json::from(*i),
        (_, Value::Bool(b)) => Json::from(*b),
        (Type::Array(_, element), Value::Array(items)) => items.iter().map(|item| to_json(element, item)).collect(),
        (Type::Tuple(fields, Some(names)), Value::Tuple(items)) => {
            let entry = |((name, ty), item): ((&chainrule::Name, &Type), _)| (name.to_string(), to_json(ty, item));
            Json::Object(names.iter().zip(fields).zip(items).map(entry).collect())
        }
        (Type::Tuple(fields, None), Value::Tuple(items)) => {
            fields.iter().zip(items).map(|(ty, item)| to_json(ty, item)).collect()
        }
        _ => Json::Null,
    }
}
