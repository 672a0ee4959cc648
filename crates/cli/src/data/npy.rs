//! NumPy's format.

use super::Numbers;
use chainrule::{Type, Value};
use npyz::{NpyFile, Order, WriterBuilder};
use std::path::Path;

/// How many rows of nothing there may be.
const MOST_EMPTY: usize = 1 << 20;

/// The numbers in the file `path`; `f8`, `f4`, `i8`, `i4` and the like.
pub fn read(path: &Path) -> Result<Numbers, String> {
    let name = path.display();
    let too_short = || format!("error: {name} ends before its data does\n  help: save it again, with numpy.save");
    let wrong = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => too_short(),
        _ => format!("error: {name} is not an NPY file: {e}\n  help: write it with numpy.save"),
    };
    let bytes = std::fs::read(path).map_err(|e| super::unreadable(path, &e))?;
    if has_impossible_shape(&bytes) {
        return Err(too_short());
    }
    let file = NpyFile::new(&bytes[..]).map_err(wrong)?;
    let extents: Vec<usize> = file.shape().iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
    if file.order() == Order::Fortran && extents.len() > 1 {
        return Err(format!(
            "error: {} is in column-major order\n  help: save it with numpy.ascontiguousarray",
            path.display()
        ));
    }
    let Some(len) = extents.iter().try_fold(1_usize, |len, n| len.checked_mul(*n)) else { return Err(too_short()) };
    // A shape says more than a file holds only where nothing is in it.
    if len == 0 && extents.iter().any(|n| *n > MOST_EMPTY) {
        let shape: String = extents.iter().map(|n| format!("[{n}]")).collect();
        return Err(format!("error: {name} holds nothing in a shape of {shape}\n  help: give it a shape for its data"));
    }
    let read = elements(&bytes, |x: f64| x)
        .or_else(|| elements(&bytes, |x: f32| f64::from(x)))
        .or_else(|| elements(&bytes, |x: i64| x as f64))
        .or_else(|| elements(&bytes, |x: i32| f64::from(x)));
    let Some(read) = read else {
        return Err(format!(
            "error: {name} holds {}, not numbers that can be read\n  help: save it as float64 or int64: \
             numpy.save(file, array.astype(float))",
            file.dtype().descr()
        ));
    };
    let (elements, left) = read.map_err(wrong)?;
    if elements.len() != len {
        return Err(too_short());
    }
    if left > 0 {
        return Err(format!("error: {name} goes on after its data\n  help: save one array a file, with numpy.save"));
    }
    Ok(Numbers { extents, elements })
}

/// Whether the shape has more elements than 64 bits count. The reader of headers multiplies unchecked.
fn has_impossible_shape(bytes: &[u8]) -> bool {
    let header = String::from_utf8_lossy(&bytes[..bytes.len().min(1 << 16)]);
    let Some((_, after)) = header.split_once("shape") else { return false };
    let shape = after.split(')').next().unwrap_or_default();
    let mut extents = shape.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let most = |word: &str| word.parse::<usize>().ok();
    extents.try_fold(1_usize, |len, word| len.checked_mul(most(word)?.max(1))).is_none()
}

/// The elements of a file that holds `T`s, and how many bytes are left after them; `None` when it holds
/// something else.
fn elements<T: npyz::Deserialize>(
    bytes: &[u8],
    convert: impl Fn(T) -> f64,
) -> Option<std::io::Result<(Vec<f64>, usize)>> {
    let mut rest = bytes;
    let data = NpyFile::new(&mut rest).ok()?.data::<T>().ok()?;
    let numbers = data.map(|x| x.map(&convert)).collect::<std::io::Result<Vec<f64>>>();
    Some(numbers.map(|numbers| (numbers, rest.len())))
}

/// The file that holds `value`, an array of numbers or one number.
pub fn write(name: &str, ty: &Type, value: &Value<f64>) -> Result<Vec<u8>, String> {
    let mut extents = Vec::new();
    let mut inner = (ty, value);
    while let (Type::Array(_, element), Value::Array(items)) = inner {
        extents.push(items.len() as u64);
        match items.first() {
            Some(first) => inner = (element, first),
            None => break,
        }
    }
    let mut numbers = Vec::new();
    if !flatten(value, &mut numbers) {
        return Err(format!(
            "error: NPY holds one array of numbers; `{name}` is {}\n  help: use --format json",
            super::describe(ty)
        ));
    }
    let failed = |e: std::io::Error| format!("error: cannot write NPY: {e}");
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::new().default_dtype().shape(&extents);
    let mut writer = options.writer(&mut bytes).begin_nd().map_err(failed)?;
    writer.extend(numbers).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

fn flatten(value: &Value<f64>, numbers: &mut Vec<f64>) -> bool {
    match value {
        Value::Real(x) => numbers.push(*x),
        Value::Int(i) => numbers.push(*i as f64),
        Value::Array(items) => return items.iter().all(|item| flatten(item, numbers)),
        Value::Bool(_) | Value::Tuple(_) => return false,
    }
    true
}
