//! Decomposition and reassembly of values, and parsing of texts.

use chainrule::{Sources, Type, Value};
use chainrule_ir as ir;

/// Returns whether a message, with or without its source text, reports a limitation of Chainrule.
pub fn limited(error: &impl std::fmt::Display) -> bool {
    let said = error.to_string();
    said.contains("Limitation:") || said.contains("limitation:")
}

/// Returns the IR of a text.
pub fn reread(text: &str, name: &str) -> Result<ir::Function, String> {
    let mut sources = Sources::new();
    let file = sources.add("<printed>", text);
    let program = ir::Program::load(&mut sources, file, |path: &str, _: &str| Err(format!("there is no {path}")));
    program.and_then(|program| program.elaborate(name)).map_err(|d| format!("{d}\n{text}"))
}

/// Returns all doubles of `values`.
pub fn doubles<T: Clone>(values: &[Value<T>]) -> Vec<T> {
    values.iter().flat_map(Value::reals).cloned().collect()
}

/// Returns `values` with their doubles replaced in order.
pub fn with_doubles<T>(values: &[Value<f64>], doubles: &[T]) -> Vec<Value<T>>
where
    T: Clone,
{
    let mut next = doubles.iter();
    values.iter().map(|v| v.map(&mut |_| next.next().expect("as many numbers as places").clone())).collect()
}

/// Compares bit for bit; all NaNs are equal.
pub fn same(a: &Value<f64>, b: &Value<f64>) -> bool {
    let bits = |v: &Value<f64>| v.map(&mut |x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() });
    bits(a) == bits(b)
}

/// Returns the doubles of a value of type `ty`, one list per scalar field: arrays of tuples as tuples of arrays.
pub fn columns<T: Clone>(ty: &Type, value: &Value<T>) -> Vec<Vec<T>> {
    match (ty, value) {
        (Type::Array(_, element), Value::Array(parts)) => {
            let mut all = vec![Vec::new(); n_fields(element)];
            for part in parts {
                for (all, more) in all.iter_mut().zip(columns(element, part)) {
                    all.extend(more);
                }
            }
            all
        }
        (Type::Tuple(fields, _), Value::Tuple(parts)) => {
            fields.iter().zip(parts).flat_map(|(ty, part)| columns(ty, part)).collect()
        }
        _ => vec![value.reals().into_iter().cloned().collect()],
    }
}

fn n_fields(ty: &Type) -> usize {
    match ty {
        Type::Array(_, element) => n_fields(element),
        Type::Tuple(fields, _) => fields.iter().map(n_fields).sum(),
        _ => 1,
    }
}

/// Returns, for each double in the order of `columns`, its position in the order of `doubles`.
pub fn places(types: &[Type], values: &[Value<f64>]) -> Vec<usize> {
    let mut k = 0;
    let mut count = |_: &f64| {
        k += 1;
        k - 1
    };
    let numbered: Vec<Value<usize>> = values.iter().map(|v| v.map(&mut count)).collect();
    types.iter().zip(&numbered).flat_map(|(ty, v)| columns(ty, v)).flatten().collect()
}

/// Counts the doubles in each part of `value` for which a derivative of an array program has a field.
pub fn fields(ty: &Type, value: &Value<f64>, counts: &mut Vec<usize>) {
    match (ty, value) {
        (Type::Tuple(types, _), Value::Tuple(parts)) => {
            types.iter().zip(parts).for_each(|(ty, part)| fields(ty, part, counts));
        }
        _ if ty.has_double() => counts.push(value.reals().len()),
        _ => {}
    }
}

/// Returns numbers in the order of an array program's Jacobian as rows of results and columns of arguments.
pub fn matrix<T: Clone>(flat: &[T], rows: usize, counts: &[usize]) -> Option<Vec<Vec<T>>> {
    if flat.len() != rows * counts.iter().sum::<usize>() {
        return None;
    }
    let mut matrix = vec![Vec::new(); rows];
    let mut rest = flat;
    for count in counts {
        for row in &mut matrix {
            let (here, after) = rest.split_at(*count);
            row.extend_from_slice(here);
            rest = after;
        }
    }
    Some(matrix)
}
