//! NumPy's format.

mod header;

use super::{Elements, Numbers};
use chainrule::{Type, Value};
use header::{Element, Kind};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum extent of an array without elements.
const MOST_EMPTY: usize = 1 << 20;

/// Length of the start of a file that states the length of its header, in bytes.
const PREFIX: usize = 12;

/// Reads the numbers in the file `path`: floats of 4 and 8 bytes, integers.
pub fn read(path: &Path) -> Result<Numbers, String> {
    let name = super::shown(path);
    let too_short = || format!("error: {name} ends before its data does\n  help: save it again, with numpy.save");
    let wrong = |why: String| format!("error: {name} is not an NPY file: {why}\n  help: write it with numpy.save");
    let unreadable = |e: std::io::Error| super::unreadable(path, &e);
    let mut input = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    input.by_ref().take(PREFIX as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    let (length, begin) = header::span(&bytes).map_err(wrong)?;
    let rest = (begin + length).saturating_sub(bytes.len());
    input.by_ref().take(rest as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    let Some(text) = bytes.get(begin..begin + length) else { return Err(too_short()) };
    let header = header::read(text).map_err(wrong)?;
    let element = header.element.map_err(|found| {
        format!(
            "error: {name} holds {found}, not numbers that can be read\n  help: save it as float64 or int64: \
             numpy.save(file, array.astype(float))"
        )
    })?;
    let extents = header.extents;
    if header.is_column_major && extents.len() > 1 {
        return Err(format!("error: {name} is in column-major order\n  help: save it with numpy.ascontiguousarray"));
    }
    // A shape can exceed the size of the file only if it is empty.
    if extents.contains(&0) && extents.iter().any(|n| *n > MOST_EMPTY) {
        let shape: String = extents.iter().map(|n| format!("[{n}]")).collect();
        return Err(format!("error: {name} holds nothing in a shape of {shape}\n  help: give it a shape for its data"));
    }
    let n_bytes = extents.iter().try_fold(element.size, |len, n| len.checked_mul(*n)).ok_or_else(too_short)?;
    // Reads the elements of the shape, and one more byte to detect a longer file.
    let mut data = bytes.split_off((begin + length).min(bytes.len()));
    let rest = (n_bytes as u64).saturating_add(1).saturating_sub(data.len() as u64);
    input.take(rest).read_to_end(&mut data).map_err(unreadable)?;
    match data.len().cmp(&n_bytes) {
        std::cmp::Ordering::Less => Err(too_short()),
        std::cmp::Ordering::Equal => Ok(Numbers { extents, elements: elements(&data, element) }),
        std::cmp::Ordering::Greater => {
            Err(format!("error: {name} goes on after its data\n  help: save one array a file, with numpy.save"))
        }
    }
}

fn elements(data: &[u8], Element { kind, size, is_big_endian }: Element) -> Elements {
    let words = data.chunks_exact(size).map(|bytes| {
        let add = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
        if is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    });
    let unused = 64 - 8 * size;
    match kind {
        Kind::Real if size == 4 => Elements::Reals(words.map(|word| f64::from(f32::from_bits(word as u32))).collect()),
        Kind::Real => Elements::Reals(words.map(f64::from_bits).collect()),
        Kind::Signed => Elements::Ints(words.map(|word| (word << unused).cast_signed() >> unused).collect()),
        Kind::Unsigned => Elements::Ints(words.map(u64::cast_signed).collect()),
    }
}

/// Returns the file content for `value`, an array of numbers or one number.
pub fn write(name: &str, ty: &Type, value: &Value<f64>) -> Result<Vec<u8>, String> {
    let mut extents = Vec::new();
    let mut inner = (ty, value);
    while let (Type::Array(_, element), Value::Array(items)) = inner {
        extents.push(items.len());
        match items.first() {
            Some(first) => inner = (element, first),
            None => break,
        }
    }
    let mut element = ty;
    while let Type::Array(_, inner) = element {
        element = inner;
    }
    let descr = if *element == Type::Int { "<i8" } else { "<f8" };
    let mut bytes = header::write(descr, &extents);
    if !flatten(value, &mut bytes) {
        return Err(format!(
            "error: NPY holds one array of numbers; `{name}` is {}\n  help: use --format json",
            super::describe(ty)
        ));
    }
    Ok(bytes)
}

fn flatten(value: &Value<f64>, bytes: &mut Vec<u8>) -> bool {
    match value {
        Value::Real(x) => bytes.extend(x.to_le_bytes()),
        Value::Int(i) => bytes.extend(i.to_le_bytes()),
        Value::Array(items) => return items.iter().all(|item| flatten(item, bytes)),
        Value::Bool(_) | Value::Tuple(_) => return false,
    }
    true
}
