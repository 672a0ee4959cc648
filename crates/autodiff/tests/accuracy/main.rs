//! Accuracy of the library: the error of values, first and second derivatives of every function in doubles, against the
//! derived program in 115 digits, in units of rounding times the condition number.
//!
//! The condition number is estimated by perturbing all arguments by a tiny relative amount, with random signs: the
//! largest change of an array's elements is the error caused by rounding of the arguments alone. A result with an error
//! of 1 is as good as one from arguments that were rounded once.
//!
//! `cargo test -p chainrule-autodiff --test accuracy -- --ignored --nocapture` prints the table of the records.

// A failing test stops.
#![allow(clippy::unwrap_used)]

mod functions;
mod points;

use chainrule_autodiff::expand;
use chainrule_base::Sources;
use chainrule_ir::{Function, Program, Value, evaluate};
use chainrule_ops::{Big, F64, Precise};
use functions::{Condition, FUNCTIONS, Row};
use points::{KINDS, Numbers, argument};
use std::collections::BTreeMap;

/// Largest allowed error, in units of rounding times the condition number.
const BOUND: f64 = 100.0;

/// Half the distance from 1 to the next double.
const ROUNDING: f64 = f64::EPSILON / 2.0;

/// Arguments are perturbed by the relative amount `ROUNDING` times two to this power: small enough for a derivative.
const SHRINK: i32 = -60;

/// Number of perturbations of the arguments.
const MOVES: usize = 6;

/// Value and derivatives: the name, the parameters in addition to the point (directions `d`, cotangents `w`), and the
/// expression.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("value", "", "g x"),
    ("forward", "d", "jvp g x d"),
    ("reverse", "w", "vjp g x w"),
    ("forward, reverse", "wd", "jvp (fun x -> vjp g x w) x d"),
    ("reverse, forward", "dw", "vjp (fun x -> jvp g x d) x w"),
];

fn program(row: &Row, (_, more, expression): (&str, &str, &str)) -> Function {
    let mut params = format!("(x : {})", row.at);
    for name in more.chars() {
        params += &format!(" ({name} : {})", if name == 'd' { row.at } else { row.value });
    }
    let text =
        format!("let g = fun ({} : {}) -> {}\nlet f = fun {params} -> {expression}", row.pattern, row.at, row.text);
    let mut sources = Sources::new();
    let root = sources.add("main.ft", &*text);
    let loaded = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    let function = loaded.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}\n{text}"));
    expand(&function).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Returns the doubles of each array of a result: errors are relative to the largest of them.
fn groups<S: Clone>(value: &Value<S>) -> Vec<Vec<S>> {
    match value {
        Value::Tuple(parts) => parts.iter().flat_map(groups).collect(),
        other => vec![other.reals().into_iter().cloned().collect()],
    }
}

/// Returns `value`, perturbed by `by` of itself, with random signs; by `by` of the largest of their column if
/// `columns`.
fn moved(value: &Value<Big>, by: f64, columns: bool, numbers: &mut Numbers) -> Value<Big> {
    let digits = Precise::new();
    let size = |x: &Big| digits.as_f64(x).abs();
    match value {
        Value::Tuple(parts) => Value::Tuple(parts.iter().map(|part| moved(part, by, columns, numbers)).collect()),
        Value::Array(rows) if columns => {
            let all: Vec<Vec<&Big>> = rows.iter().map(Value::reals).collect();
            let width = all.first().map_or(0, Vec::len);
            let top: Vec<f64> = (0..width).map(|j| all.iter().map(|row| size(row[j])).fold(0.0, f64::max)).collect();
            let mut place = 0..;
            value.map(&mut |x| {
                let amount = by * numbers.next() * 2.0 * top[place.next().unwrap_or(0) % width];
                digits.add(x, &digits.from_f64(amount))
            })
        }
        _ => value.map(&mut |x| {
            let by = if numbers.next() < 0.0 { -by } else { by };
            digits.add(x, &digits.mul(x, &digits.from_f64(by)))
        }),
    }
}

/// Returns the error of `f` at `args` in units of rounding times its condition number, the worst of its results; only
/// of those that are finite, and for which rounding of the arguments leaves a correct digit if the function has poles.
fn error(ctx: &mut Precise, f: &Function, args: &[Value<f64>], condition: Condition, numbers: &mut Numbers) -> f64 {
    let found = groups(&evaluate(f, &mut F64, args).unwrap());
    let exact: Vec<Value<Big>> = args.iter().map(|arg| arg.map(&mut |x| ctx.from_f64(*x))).collect();
    let mut results = |args: &[Value<Big>]| groups(&evaluate(f, ctx, args).unwrap());
    let expected = results(&exact);
    let mut changes: Vec<Vec<Vec<Big>>> = Vec::new();
    for _ in 0..MOVES {
        let by = f64::from(SHRINK).exp2() * ROUNDING;
        let moved: Vec<Value<Big>> =
            exact.iter().map(|arg| moved(arg, by, condition == Condition::Columns, numbers)).collect();
        changes.push(results(&moved));
    }
    let mut worst: f64 = 0.0;
    for (group, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let largest = |values: &[Big]| -> f64 {
            let differences = values.iter().zip(expected).map(|(a, b)| ctx.as_f64(&ctx.sub(a, b)).abs());
            differences.fold(0.0, |top, x| if x.is_nan() { x } else { x.max(top) })
        };
        let size = expected.iter().map(|x| ctx.as_f64(x).abs()).fold(0.0, f64::max);
        if !size.is_finite() || expected.iter().any(Big::is_nan) {
            continue;
        }
        let moved = changes.iter().map(|change| largest(&change[group])).fold(0.0, f64::max);
        let by_rounding = moved * f64::from(-SHRINK).exp2();
        if condition != Condition::Everywhere && by_rounding > 0.01 * size {
            continue;
        }
        let found: Vec<Big> = found.iter().map(|x| ctx.from_f64(*x)).collect();
        let allowed = (by_rounding + ROUNDING * size).max(f64::MIN_POSITIVE);
        let error = largest(&found) / allowed;
        worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
    }
    worst
}

/// Returns the worst error of each program of `row`, by kind of argument.
fn measure(
    ctx: &mut Precise,
    row: &Row,
    kinds: &[&'static str],
    points: usize,
) -> BTreeMap<(usize, &'static str), f64> {
    let mut worst = BTreeMap::new();
    let programs = PROGRAMS.map(|one| program(row, one));
    for kind in kinds {
        for seed in 0..points {
            let numbers = &mut Numbers(seed as u64 * 977 + row.name.len() as u64);
            let Some(x) = argument(row, kind, numbers) else { continue };
            let value = evaluate(&programs[0], &mut F64, std::slice::from_ref(&x)).unwrap();
            let (d, w) = (numbers.like(&x), numbers.like(&value));
            for (idx, (f, (_, more, _))) in programs.iter().zip(PROGRAMS).enumerate() {
                let more = more.chars().map(|name| if name == 'd' { d.clone() } else { w.clone() });
                let args: Vec<Value<f64>> = [x.clone()].into_iter().chain(more).collect();
                let error = error(ctx, f, &args, row.condition, numbers);
                let entry = worst.entry((idx, *kind)).or_insert(0.0_f64);
                *entry = entry.max(error);
            }
        }
    }
    worst
}

/// Fails if an error of one of `found` is above the bound.
fn check(row: &Row, found: &BTreeMap<(usize, &'static str), f64>) {
    for ((program, kind), error) in found {
        assert!(*error <= BOUND, "{}, {}, at {kind} arguments: {error:.2e}", row.name, PROGRAMS[*program].0);
    }
}

#[test]
fn errors_are_within_the_bound() {
    let ctx = &mut Precise::new();
    for row in FUNCTIONS {
        let found = measure(ctx, row, &["graded", "nearly singular", "rank 1", "columns scaled"], 1);
        assert!(!found.is_empty(), "{}", row.name);
        check(row, &found);
    }
}

#[test]
#[ignore = "minutes: the table of the records"]
fn table() {
    let ctx = &mut Precise::new();
    println!("error in units of rounding times the condition number; the kind of argument with the largest error");
    println!(
        "{:24} {:>9} {:>9} {:>9} {:>18} {:>18}",
        "function", "value", "forward", "reverse", PROGRAMS[3].0, PROGRAMS[4].0
    );
    for row in FUNCTIONS {
        let found = measure(ctx, row, &KINDS, 6);
        let mut line = format!("{:24}", row.name);
        let mut worst = (0.0, "");
        for idx in 0..PROGRAMS.len() {
            let all = found.iter().filter(|((program, _), _)| *program == idx);
            let (kind, error) = all.fold(("", 0.0), |top, ((_, kind), e)| if *e > top.1 { (*kind, *e) } else { top });
            line += &format!(" {:>width$}", format!("{error:.2e}"), width = if idx < 3 { 9 } else { 18 });
            if error > worst.0 {
                worst = (error, kind);
            }
        }
        println!("{line}  {}", worst.1);
        check(row, &found);
    }
}
