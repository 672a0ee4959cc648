//! Tables for users.

use chainrule::{Type, Value};

/// Writes each result under its name: a number, a row for a vector, rows for a matrix; records field by field.
pub fn write(results: &[(&str, &Type, &Value<f64>)]) -> String {
    let mut text = String::new();
    for (name, ty, value) in results {
        entry(&mut text, name, ty, value);
    }
    text
}

// Recursive on the nesting of types only.
fn entry(text: &mut String, name: &str, ty: &Type, value: &Value<f64>) {
    match (ty, value) {
        (Type::Tuple(fields, names), Value::Tuple(items)) => {
            for (i, (ty, item)) in fields.iter().zip(items).enumerate() {
                let field = names.as_ref().map_or_else(|| i.to_string(), |names| names[i].to_string());
                entry(text, &format!("{name}.{field}"), ty, item);
            }
        }
        (Type::Array(_, element), Value::Array(items)) if matches!(**element, Type::Array(..) | Type::Tuple(..)) => {
            if items.iter().all(|item| matches!(item, Value::Array(row) if row.iter().all(is_scalar))) {
                text.push_str(&format!("{name}\n"));
                for item in items {
                    if let Value::Array(row) = item {
                        text.push_str(&format!("  {}\n", row.iter().map(cell).collect::<Vec<_>>().join(" ")));
                    }
                }
            } else {
                for (i, item) in items.iter().enumerate() {
                    entry(text, &format!("{name}[{i}]"), element, item);
                }
            }
        }
        (_, Value::Array(items)) => {
            text.push_str(&format!("{name}\n  {}\n", items.iter().map(cell).collect::<Vec<_>>().join(" ")));
        }
        (_, value) => text.push_str(&format!("{name}\n  {}\n", cell(value))),
    }
}

fn is_scalar(value: &Value<f64>) -> bool {
    !matches!(value, Value::Array(_) | Value::Tuple(_))
}

fn cell(value: &Value<f64>) -> String {
    match value {
        Value::Real(x) => {
            let plain = format!("{x:.9}");
            let text = if *x == 0.0 || (1e-4..1e7).contains(&x.abs()) { plain } else { format!("{x:.9e}") };
            format!("{text:>17}")
        }
        Value::Int(i) => format!("{i:>17}"),
        Value::Bool(b) => format!("{b:>17}"),
        Value::Array(_) | Value::Tuple(_) => format!("{:>17}", "..."),
    }
}
