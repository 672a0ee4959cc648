//! Values taken apart and put together, texts read.

use chainrule::{Sources, Type, Value};
use chainrule_ir as ir;

/// Whether a message, with the text that it is about or without, is about something that Chainrule cannot do.
pub fn limited(error: &impl std::fmt::Display) -> bool {
    let said = error.to_string();
    said.contains("Limitation:") || said.contains("limitation:")
}

/// The IR that a text means.
pub fn reread(text: &str, name: &str) -> Result<ir::Function, String> {
    let mut sources = Sources::new();
    let file = sources.add("<printed>", text);
    let program = ir::Program::load(&mut sources, file, |path: &str, _: &str| Err(format!("there is no {path}")));
    program.and_then(|program| program.elaborate(name)).map_err(|d| format!("{d}\n{text}"))
}

/// All doubles of `values`.
pub fn doubles<T: Clone>(values: &[Value<T>]) -> Vec<T> {
    values.iter().flat_map(Value::reals).cloned().collect()
}

/// `values` with their doubles replaced in order.
pub fn with_doubles<T>(values: &[Value<f64>], doubles: &[T]) -> Vec<Value<T>>
where
    T: Clone,
{
    let mut next = doubles.iter();
    values.iter().map(|v| v.map(&mut |_| next.next().expect("as many numbers as places").clone())).collect()
}

/// Bit for bit; every NaN is as good as another.
pub fn same(a: &Value<f64>, b: &Value<f64>) -> bool {
    let bits = |v: &Value<f64>| v.map(&mut |x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() });
    bits(a) == bits(b)
}

/// The doubles of a value of type `ty`, one list a scalar field: arrays of tuples as tuples of arrays.
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

/// For each double in the order of `columns`, its place in the order of `doubles`.
pub fn places(types: &[Type], values: &[Value<f64>]) -> Vec<usize> {
    let mut k = 0;
    let mut count = |_: &f64| {
        k += 1;
        k - 1
    };
    let numbered: Vec<Value<usize>> = values.iter().map(|v| v.map(&mut count)).collect();
    types.iter().zip(&numbered).flat_map(|(ty, v)| columns(ty, v)).flatten().collect()
}

/// How many doubles there are in each part of `value` that a derivative of an array program has a field for.
pub fn fields(ty: &Type, value: &Value<f64>, counts: &mut Vec<usize>) {
    match (ty, value) {
        (Type::Tuple(types, _), Value::Tuple(parts)) => {
            types.iter().zip(parts).for_each(|(ty, part)| fields(ty, part, counts));
        }
        _ if ty.has_double() => counts.push(value.reals().len()),
        _ => {}
    }
}

/// Numbers in the order of an array program's Jacobian as rows of results and columns of arguments.
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
