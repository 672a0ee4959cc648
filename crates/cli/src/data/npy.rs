//! NumPy's format.

use super::{Elements, Numbers};
use chainrule::{Type, Value};
use npyz::{NpyFile, Order, WriterBuilder};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum extent of an array without elements.
const MOST_EMPTY: usize = 1 << 20;

/// Maximum length of a header in bytes, NumPy's own.
const MOST_HEADER: usize = 10_000;

/// Maximum number of opening brackets in a header. A record, a shape and a number type have two.
const MOST_BRACKETS: usize = 16;

/// Maximum length of the prefix of a header, in bytes.
const PREFIX: usize = 12;

/// Reads the numbers in the file `path`; `f8`, `f4`, `i8`, `i4` and similar.
pub fn read(path: &Path) -> Result<Numbers, String> {
    let name = super::shown(path);
    let too_short = || format!("error: {name} ends before its data does\n  help: save it again, with numpy.save");
    let wrong = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => too_short(),
        _ => format!("error: {name} is not an NPY file: {e}\n  help: write it with numpy.save"),
    };
    // Reads the start, which is longer than any header.
    let mut input = File::open(path).map_err(|e| super::unreadable(path, &e))?;
    let mut bytes = Vec::new();
    let start = input.by_ref().take((MOST_HEADER + PREFIX) as u64).read_to_end(&mut bytes);
    start.map_err(|e| super::unreadable(path, &e))?;
    let impossible = |why: &str| format!("error: {name} is not an NPY file: {why}\n  help: write it with numpy.save");
    check_header(&bytes).map_err(|why| impossible(&why))?;
    if has_impossible_shape(&bytes) {
        return Err(too_short());
    }
    let file = NpyFile::new(&bytes[..]).map_err(wrong)?;
    let extents: Vec<usize> = file.shape().iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
    if file.order() == Order::Fortran && extents.len() > 1 {
        return Err(format!("error: {name} is in column-major order\n  help: save it with numpy.ascontiguousarray"));
    }
    let Some(len) = extents.iter().try_fold(1_usize, |len, n| len.checked_mul(*n)) else { return Err(too_short()) };
    // A shape can exceed the size of the file only if it is empty.
    if len == 0 && extents.iter().any(|n| *n > MOST_EMPTY) {
        let shape: String = extents.iter().map(|n| format!("[{n}]")).collect();
        return Err(format!("error: {name} holds nothing in a shape of {shape}\n  help: give it a shape for its data"));
    }
    let dtype = file.dtype().descr();
    // Reads the elements of the shape, and one more byte to detect a longer file.
    let rest = input.take((len as u64).saturating_mul(8).saturating_add(1)).read_to_end(&mut bytes);
    rest.map_err(|e| super::unreadable(path, &e))?;
    let reals = elements(&bytes, |x: f64| x).or_else(|| elements(&bytes, |x: f32| f64::from(x)));
    let integers = || elements(&bytes, |x: i64| x).or_else(|| elements(&bytes, |x: i32| i64::from(x)));
    let read = match reals {
        Some(read) => Some(read.map(|(numbers, left)| (Elements::Reals(numbers), left))),
        None => integers().map(|read| read.map(|(numbers, left)| (Elements::Ints(numbers), left))),
    };
    let Some(read) = read else {
        return Err(format!(
            "error: {name} holds {dtype}, not numbers that can be read\n  help: save it as float64 or int64: \
             numpy.save(file, array.astype(float))"
        ));
    };
    let (elements, left) = read.map_err(wrong)?;
    let found = match &elements {
        Elements::Reals(x) => x.len(),
        Elements::Ints(x) => x.len(),
    };
    if found != len {
        return Err(too_short());
    }
    if left > 0 {
        return Err(format!("error: {name} goes on after its data\n  help: save one array a file, with numpy.save"));
    }
    Ok(Numbers { extents, elements })
}

/// Rejects headers for which the reader would take unbounded memory or time.
fn check_header(bytes: &[u8]) -> Result<(), String> {
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err("it does not begin as one".to_owned());
    }
    let (start, length) = match (bytes.get(6), bytes.get(8..12)) {
        (Some(1), Some(length)) => (10, usize::from(u16::from_le_bytes([length[0], length[1]]))),
        (Some(_), Some(length)) => (PREFIX, u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize),
        _ => return Err("it ends within its header".to_owned()),
    };
    if length > MOST_HEADER {
        return Err(format!("its header has {length} bytes, more than {MOST_HEADER}"));
    }
    let brackets = bytes.iter().skip(start).take(length).filter(|byte| b"([{".contains(byte)).count();
    if brackets > MOST_BRACKETS {
        return Err(format!("its header has {brackets} opening brackets, more than {MOST_BRACKETS}"));
    }
    Ok(())
}

/// Returns whether the number of elements of the shape overflows 64 bits. The reader of headers multiplies unchecked.
fn has_impossible_shape(bytes: &[u8]) -> bool {
    let header = String::from_utf8_lossy(&bytes[..bytes.len().min(1 << 16)]);
    let Some((_, after)) = header.split_once("shape") else { return false };
    let shape = after.split(')').next().unwrap_or_default();
    let mut extents = shape.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let most = |word: &str| word.parse::<usize>().ok();
    extents.try_fold(1_usize, |len, word| len.checked_mul(most(word)?.max(1))).is_none()
}

/// Reads the elements of a file of `T`s; returns them with the number of remaining bytes; `None` for another element
/// type.
fn elements<T: npyz::Deserialize, U>(
    bytes: &[u8],
    convert: impl Fn(T) -> U,
) -> Option<std::io::Result<(Vec<U>, usize)>> {
    let mut rest = bytes;
    let data = NpyFile::new(&mut rest).ok()?.data::<T>().ok()?;
    let numbers = data.map(|x| x.map(&convert)).collect::<std::io::Result<Vec<U>>>();
    Some(numbers.map(|numbers| (numbers, rest.len())))
}

/// Returns the file content for `value`, an array of numbers or one number.
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
