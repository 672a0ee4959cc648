//! NumPy's format.

use super::Numbers;
use chainrule::{Type, Value};
use npyz::{NpyFile, Order, WriterBuilder};
use std::path::Path;

/// The numbers in the file `path`; `f8`, `f4`, `i8`, `i4` and the like.
pub fn read(path: &Path) -> Result<Numbers, String> {
    let wrong = |e: std::io::Error| format!("error: cannot read {} as NPY: {e}", path.display());
    let bytes = std::fs::read(path).map_err(|e| format!("error: cannot read {}: {e}", path.display()))?;
    let open = || NpyFile::new(&bytes[..]).map_err(wrong);
    let file = open()?;
    let extents: Vec<usize> = file.shape().iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
    if file.order() == Order::Fortran && extents.len() > 1 {
        return Err(format!(
            "error: {} is in column-major order\n  help: save it with numpy.ascontiguousarray",
            path.display()
        ));
    }
    let elements = if let Ok(data) = open()?.data::<f64>() {
        data.collect::<Result<Vec<f64>, _>>().map_err(wrong)?
    } else if let Ok(data) = open()?.data::<f32>() {
        data.map(|x| x.map(f64::from)).collect::<Result<_, _>>().map_err(wrong)?
    } else if let Ok(data) = open()?.data::<i64>() {
        data.map(|x| x.map(|x| x as f64)).collect::<Result<_, _>>().map_err(wrong)?
    } else if let Ok(data) = open()?.data::<i32>() {
        data.map(|x| x.map(f64::from)).collect::<Result<_, _>>().map_err(wrong)?
    } else {
        return Err(format!(
            "error: {} holds {}, not numbers that can be read\n  help: save it as float64 or int64",
            path.display(),
            file.dtype().descr()
        ));
    };
    if elements.len() != extents.iter().product::<usize>() {
        return Err(format!("error: {} ends before its data does", path.display()));
    }
    Ok(Numbers { extents, elements })
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
        return Err(format!("error: NPY holds arrays of numbers; `{name}` has other parts\n  help: use --format json"));
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
