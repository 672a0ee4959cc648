//! Random functions that read the fields of records, in sequence or at integer indices, some of which are indirect:
//! strided and gathered records, with several adjacent fields, for lanes.

use crate::{Builder, Function, Size, Type, Value, VarId};
use arbitrary::{Result, Unstructured};
use chainrule_ops::Op;

/// Returns a function of records in order, of records by index, and of the indices, with arguments: up to `longest` of
/// the first. Sometimes an index is out of range.
///
/// # Errors
/// Fails if `u` runs out.
pub fn case(u: &mut Unstructured<'_>, longest: i64) -> Result<(Function, Vec<Value<f64>>)> {
    let (width, far_width, n_numbers) = (u.int_in_range(1..=7)?, u.int_in_range(1..=9)?, u.int_in_range(1..=3)?);
    let (n, m) = (u.int_in_range(0..=longest)?, u.int_in_range(1..=5)?);
    let mut b = Builder::new("records");
    let [count, many] = ["n", "m"].map(|name| Size::var(b.size_param(name)));
    let rows =
        |extent: &Size, width: i64, of: Type| Type::array(extent.clone(), Type::array(Size::constant(width), of));
    let near = b.param("near", rows(&count, width, Type::Double));
    let far = b.param("far", rows(&many, far_width, Type::Double));
    let numbers = b.param("numbers", rows(&count, n_numbers, Type::Int));
    let renamed = b.param("renamed", Type::array(many.clone(), Type::Int));
    let n_results = u.int_in_range(1..=4)?;
    let mut failed = None;
    let results = b.build(count.clone(), |b, i| {
        let mut fields = |b: &mut Builder| -> Result<VarId> {
            // Of the same record in order, or in reverse; or of one by index.
            let (record, width) = match u.int_in_range(0..=5)? {
                0 | 1 => (b.get(near, i), width),
                2 => {
                    let (n, one) = (b.size(count.clone()), b.int(1));
                    let last = b.op(Op::Sub, &[n, one]);
                    let back = b.op(Op::Sub, &[last, i]);
                    (b.get(near, back), width)
                }
                _ => {
                    let named = b.get(numbers, i);
                    let k = b.int(u.int_in_range(0..=n_numbers - 1)?);
                    let mut number = b.get(named, k);
                    if u.ratio(1, 4)? {
                        number = b.get(renamed, number);
                    }
                    (b.get(far, number), far_width)
                }
            };
            let first = u.int_in_range(0..=width - 1)?;
            let mut sum = b.real(1.0);
            for _ in 0..u.int_in_range(1..=6)? {
                let field = (first + u.int_in_range(0..=3)?).min(width - 1);
                let field = b.int(field);
                let value = b.get(record, field);
                let op = *u.choose(&[Op::Add, Op::Mul, Op::Sub])?;
                sum = b.op(op, &[sum, value]);
            }
            Ok(sum)
        };
        let mut terms: Vec<VarId> = Vec::new();
        for _ in 0..n_results {
            let mut term = b.real(0.5);
            for _ in 0..2 {
                match fields(b) {
                    Ok(more) => term = b.op(Op::Mul, &[term, more]),
                    Err(why) => failed = Some(why),
                }
            }
            // Uses the operands of another result again.
            if let Some(before) = terms.last() {
                term = b.op(Op::Add, &[term, *before]);
            }
            terms.push(term);
        }
        if n_results == 1 { terms[0] } else { b.array(&terms) }
    });
    if let Some(why) = failed {
        return Err(why);
    }
    let mut next = super::numbers(u.arbitrary()?);
    let none = if u.ratio(1, 12)? { Some((next(n.max(1)), *u.choose(&[-1, m, i64::MAX, i64::MIN])?)) } else { None };
    let mut records = |extent: i64, width: i64, number: bool| {
        let mut value = |i: i64| match none.filter(|(at, _)| number && *at == i) {
            Some((_, outside)) => Value::Int(outside),
            None if number => Value::Int(next(m)),
            None => Value::Real((next(257) - 128) as f64 / 64.0),
        };
        Value::Array((0..extent).map(|i| Value::Array((0..width).map(|_| value(i)).collect())).collect())
    };
    let mut args = vec![records(n, width, false), records(m, far_width, false), records(n, n_numbers, true)];
    args.push(Value::Array((0..m).map(|i| Value::Int(m - 1 - i)).collect()));
    Ok((b.finish(results), args))
}
