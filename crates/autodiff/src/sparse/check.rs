//! Comparison of sparse derivatives with dense ones, for tests and fuzz targets.
//!
//! Both are evaluated by the reference evaluator. The dense one is computed by forward mode, one column at a time.

use super::{Sparsity, ints};
use crate::{Mode, Part, Request, forward};
use chainrule_base::Name;
use chainrule_ir::{Function, Type, Value, evaluate, verify};
use chainrule_ops::F64;
use std::collections::BTreeMap;

/// Statistics of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Rows times columns.
    pub places: usize,
    /// Entries of the pattern.
    pub entries: usize,
    /// Doubles of the values program that share a position with another one.
    pub repeated: usize,
}

/// Compares the sparse derivative `part` (Jacobian or Hessian) with the dense one, to `tolerance` relative to the
/// largest element of the dense one; outside of the pattern the dense one must be exactly zero. Returns `None` if the
/// function has no derivative at `args`.
///
/// # Errors
/// Returns a description of the difference.
pub fn compare(
    function: &Function,
    args: &[Value<f64>],
    part: Part,
    by: &[Name],
    mode: Mode,
    tolerance: f64,
) -> Result<Option<Seen>, String> {
    let request = Request { parts: vec![part], by: by.to_vec(), mode: Mode::Forward, checkpoints: None };
    let Ok(dense) = crate::derive(function, &request) else { return Ok(None) };
    let (Ok(dense), Ok(value)) = (evaluate(&dense, &mut F64, args), evaluate(function, &mut F64, args)) else {
        return Ok(None);
    };
    let sparsity = match part {
        Part::Hessian => super::hessian(function, by, mode),
        _ => super::jacobian(function, by, mode),
    };
    let sparsity = sparsity.map_err(|e| format!("no sparse derivative: {e:?}"))?;
    let (entries, seen) = entries(&sparsity, args)?;
    let params: Vec<usize> = (0..function.params.len())
        .filter(|k| {
            let param = function.params[*k];
            let is_named = |name: &Name| function.vars[param].name.as_ref() == Some(name);
            function.ty(param).has_double() && (by.is_empty() || by.iter().any(is_named))
        })
        .collect();
    let mut columns = Vec::new();
    let mut start = 0;
    for k in &params {
        let numbers = numbers(function.ty(function.params[*k]), &args[*k]);
        let n = numbers.len();
        columns.push(numbers.into_iter().map(|number| start + number).collect::<Vec<usize>>());
        start += n;
    }
    let blocks = |value: &Value<f64>| -> Vec<Value<f64>> {
        match value {
            Value::Tuple(parts) if params.len() > 1 => parts.clone(),
            one => vec![one.clone()],
        }
    };
    let mut expected = BTreeMap::new();
    let mut largest: f64 = 1.0;
    let mut take = |value: &Value<f64>, rows: &[usize], columns: &[usize]| {
        for (k, x) in value.reals().into_iter().enumerate() {
            if !columns.is_empty() {
                expected.insert((rows[k / columns.len()], columns[k % columns.len()]), *x);
            }
            if x.is_finite() {
                largest = largest.max(x.abs());
            }
        }
    };
    if part == Part::Hessian {
        for (rows, value) in columns.iter().zip(blocks(&dense)) {
            for (columns, value) in columns.iter().zip(blocks(&value)) {
                take(&value, rows, columns);
            }
        }
    } else {
        let rows = numbers(function.result_type(), &value);
        for (columns, value) in columns.iter().zip(blocks(&dense)) {
            take(&value, &rows, columns);
        }
    }
    for (place, found) in &entries {
        let wanted = expected.get(place).ok_or_else(|| format!("the place {place:?} lies outside"))?;
        if !(found == wanted || (found - wanted).abs() <= tolerance * largest || found.is_nan() && wanted.is_nan()) {
            return Err(format!("at {place:?}: {found} is not {wanted}"));
        }
    }
    for (place, wanted) in &expected {
        if !entries.contains_key(place) && *wanted != 0.0 {
            return Err(format!("the pattern lacks {place:?}, where the derivative is {wanted}"));
        }
    }
    Ok(Some(Seen { places: expected.len(), ..seen }))
}

/// Entries of a matrix, by row and column.
pub type Entries = BTreeMap<(usize, usize), f64>;

/// Computes the entries of a sparse derivative at `args`.
///
/// # Errors
/// Returns a description of the fault.
pub fn entries(sparsity: &Sparsity, args: &[Value<f64>]) -> Result<(Entries, Seen), String> {
    for program in [&sparsity.pattern, &sparsity.values] {
        verify(program).map_err(|e| format!("{e:?}\n{}", chainrule_ir::print(program)))?;
    }
    let run = |program: &Function| {
        evaluate(program, &mut F64, args).map_err(|e| format!("{e}\n{}", chainrule_ir::print(program)))
    };
    let expanded = forward::expand(&sparsity.values).map_err(|e| e.to_string())?;
    let (pattern, values) = (run(&sparsity.pattern)?, run(&expanded)?);
    let places = sparsity.places(&ints(&pattern)).map_err(|e| format!("{e:?}"))?;
    let ty = sparsity.values.result_type();
    let mut in_order = vec![0.0; places.at.len()];
    let numbers = numbers(ty, &values);
    let has_values = !sparsity.terms.is_empty();
    if has_values && numbers.len() != places.at.len() {
        return Err(format!("{} doubles for {} places", numbers.len(), places.at.len()));
    }
    if has_values {
        for (number, x) in numbers.into_iter().zip(values.reals()) {
            in_order[number] = *x;
        }
    }
    let blocks = sparsity.blocks(&ints(&pattern)).map_err(|e| format!("{e:?}"))?;
    let in_blocks = blocks.iter().flat_map(|block| {
        let inside = move |i: usize, j: usize| (block.start + i * block.stride + j, (block.row + i, block.column + j));
        (0..block.n_rows).flat_map(move |i| (0..block.n_columns).map(move |j| inside(i, j)))
    });
    let in_blocks: BTreeMap<usize, (usize, usize)> = in_blocks.collect();
    if !in_blocks.into_iter().eq(places.at.iter().enumerate().filter_map(|(k, at)| Some((k, (*at)?)))) {
        return Err("the blocks are not the places".to_owned());
    }
    let mut entries = BTreeMap::new();
    let mut seen = Seen::default();
    for (place, x) in places.at.iter().zip(in_order) {
        let Some(place) = place else {
            if x != 0.0 {
                return Err(format!("{x} has no place"));
            }
            continue;
        };
        if place.0 >= places.n_rows || place.1 >= places.n_columns {
            return Err(format!("the place {place:?} lies outside"));
        }
        seen.repeated += usize::from(entries.contains_key(place));
        *entries.entry(*place).or_insert(0.0) += x;
    }
    seen.entries = entries.len();
    Ok((entries, seen))
}

/// Returns, for each double of `value`, in the order of [`Value::reals`], its number in the order of leaves.
#[must_use]
pub fn numbers(ty: &Type, value: &Value<f64>) -> Vec<usize> {
    // Recursive on the nesting of types only. `leaf` is the leaf of the next double.
    fn go(ty: &Type, value: &Value<f64>, leaf: &mut usize, found: &mut Vec<usize>) {
        match (ty, value) {
            (Type::Double, _) => {
                found.push(*leaf);
                *leaf += 1;
            }
            (Type::Array(_, element), Value::Array(parts)) => {
                let start = *leaf;
                for part in parts {
                    *leaf = start;
                    go(element, part, leaf, found);
                }
                *leaf = start + super::double_leaves(element).len();
            }
            (Type::Tuple(fields, _), Value::Tuple(parts)) => {
                fields.iter().zip(parts).for_each(|(field, part)| go(field, part, leaf, found));
            }
            _ => {}
        }
    }
    let mut leaves = Vec::new();
    go(ty, value, &mut 0, &mut leaves);
    let n = super::double_leaves(ty).len();
    let mut next = vec![0; n];
    for leaf in &leaves {
        next[*leaf] += 1;
    }
    let mut start = 0;
    for count in &mut next {
        (*count, start) = (start, start + *count);
    }
    let mut number = |leaf: usize| {
        next[leaf] += 1;
        next[leaf] - 1
    };
    leaves.into_iter().map(&mut number).collect()
}
