//! Random programs through the whole pipeline, verified after every pass and compared by the reference
//! evaluator. The seeds are fixed, and failures shrink.

mod support;

use arbitrary::Unstructured;
use chainrule_autodiff::{Mode, Part, Request, derive, expand};
use chainrule_base::Name;
use chainrule_cases::covers;
use chainrule_ir::generate::{self, Case, Options as Programs};
use chainrule_ir::{Builder, Function, Renaming, Size, Type, Value, VarId, print, verify};
use chainrule_ops::{Op, Semantics};
use chainrule_rewrite::{Options, check, engine};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

type Cases<'a> = &'a dyn Fn(&mut Unstructured<'_>) -> arbitrary::Result<Option<(Function, Vec<Value<f64>>)>>;

/// Optimises `cases` random programs; at least `useful` must have a value to compare. Returns how often each rule
/// was applied.
fn run(seed: u64, cases: u32, useful: u32, options: &Options, make: Cases<'_>) -> BTreeMap<&'static str, u64> {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 5_000,
        ..ProptestConfig::default()
    };
    let told = Cell::new(0);
    let applied = RefCell::new(BTreeMap::new());
    let bytes = proptest::collection::vec(any::<u8>(), 200..1200);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let Ok(Some((function, args))) = make(&mut Unstructured::new(&bytes)) else { return Ok(()) };
        match check::optimised(&function, &args, options) {
            Ok((_, report, compared)) => {
                told.set(told.get() + u32::from(compared));
                for (rule, times) in report.applied {
                    *applied.borrow_mut().entry(rule).or_insert(0) += times;
                }
                Ok(())
            }
            Err(what) => Err(TestCaseError::fail(format!("{what}\n{}\n{args:?}", print(&function)))),
        }
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    covers!(told.get() >= useful, "only {} of {cases} programs told anything", told.get());
    applied.into_inner()
}

fn strict() -> Options {
    Options { semantics: Semantics::Strict, ..Options::default() }
}

fn program(u: &mut Unstructured<'_>, options: Programs) -> arbitrary::Result<Option<(Function, Vec<Value<f64>>)>> {
    let Case { function, args } = generate::case(u, options)?;
    Ok(Some((function, args)))
}

fn gradient(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<(Function, Vec<Value<f64>>)>> {
    let Case { function, args } = generate::case(u, Programs { derivatives: false, ..Programs::smooth() })?;
    let request = Request { parts: vec![Part::Jacobian], by: vec![], mode: Mode::Forward, checkpoints: None };
    Ok(derive(&function, &request).ok().map(|derived| (derived, args)))
}

/// Reverse mode: all cotangents of a function of `Double`s, arrays and tuples.
fn reverse(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<(Function, Vec<Value<f64>>)>> {
    let options = Programs { derivatives: false, transposed: false, ..Programs::smooth() };
    let Case { function: f, args } = generate::case(u, options)?;
    let params: Vec<VarId> = f.params.iter().copied().filter(|p| f.ty(*p).has_double()).collect();
    let Some(tangent) = f.result_type().tangent().filter(|_| !params.is_empty()) else { return Ok(None) };
    let mut b = Builder::rewriting(&f);
    let cotangent = ones(&mut b, &tangent);
    let all = b.vjp(&params, cotangent, |b, inner| {
        let mut renaming: Renaming = params.iter().copied().zip(inner.iter().copied()).collect();
        b.inline(&f.body, &mut renaming)
    });
    Ok(expand(&b.finish(all)).ok().map(|derived| (derived, args)))
}

/// Loops of one count in one block that share loads: arrays of integers, truth values and numbers of which only
/// elements are read, sums, folds, and arrays in the result.
fn side_by_side(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<(Function, Vec<Value<f64>>)>> {
    const COUNT: usize = 5;
    let mut lines = Vec::new();
    let mut integers = vec!["k".to_owned()];
    let mut truths: Vec<String> = Vec::new();
    let mut reals = vec!["x".to_owned(), "y".to_owned()];
    let mut results = vec!["x[0]".to_owned()];
    for n in 0..u.int_in_range(3..=8)? {
        let (integer, real, other) =
            (u.choose(&integers)?.clone(), u.choose(&reals)?.clone(), u.choose(&reals)?.clone());
        let constant = u.int_in_range(2..=COUNT)?;
        let term = match (u.int_in_range(0..=3)?, truths.last()) {
            (0, _) => format!("{real}[i] * sin {other}[i]"),
            (1, Some(truth)) => format!("(if {truth}[i] then {real}[i] else {other}[i] * 2.0)"),
            (2, _) => format!("{real}[mod {integer}[i] {constant}]"),
            _ => format!("{real}[i] * {other}[mod {integer}[i] 2]"),
        };
        let name = format!("v{n}");
        let value = match u.int_in_range(0..=6)? {
            0 | 1 => {
                integers.push(name.clone());
                format!("build m (fun i -> mod {integer}[i] {constant})")
            }
            2 => {
                truths.push(name.clone());
                format!("build m (fun i -> mod {integer}[i] {constant} == 1)")
            }
            3 => {
                reals.push(name.clone());
                format!("build m (fun i -> {term})")
            }
            4 => {
                results.push(name.clone());
                format!("sum m (fun i -> {term})")
            }
            5 => {
                results.push(name.clone());
                format!("ifold (fun s i -> s * 0.5 + {term}) 0.0 m")
            }
            _ => {
                results.push(name.clone());
                format!("build m (fun i -> build 2 (fun j -> {term}))")
            }
        };
        lines.push(format!("  let {name} = {value}\n"));
    }
    // An array in the result has other uses than its elements.
    if u.ratio(1, 3)? {
        results.push(u.choose(&integers)?.clone());
    }
    let (body, results) = (lines.concat(), results.join(", "));
    let f = support::function(&format!(
        "let f = fun (k : [m]Int) (x : [m]Double) (y : [m]Double) ->\n{body}  ({results}, y[1])\n"
    ));
    let numbers = |u: &mut Unstructured<'_>| -> arbitrary::Result<Value<f64>> {
        let all: Vec<f64> =
            (0..COUNT).map(|_| Ok(f64::from(u.int_in_range(-8..=8)?) / 4.0)).collect::<arbitrary::Result<_>>()?;
        Ok(all.into())
    };
    let k: Vec<i64> = (0..COUNT).map(|_| u.int_in_range(0..=9)).collect::<arbitrary::Result<_>>()?;
    let args = vec![k.into(), numbers(u)?, numbers(u)?];
    Ok(Some((f, args)))
}

/// Number of directions in [`directions`].
const DIRECTIONS: i64 = 9;

/// Returns the columns of a function's values in several directions, each of which changes some of its arguments.
fn directions(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<(Function, Vec<Value<f64>>)>> {
    let (f, args) = if u.ratio(1, 3)? {
        generate::arrays::case(u, 40)?
    } else {
        let Case { function, args } = generate::case(u, Programs::default())?;
        (function, args)
    };
    let mut element = f.result_type();
    while let Type::Array(_, inner) = element {
        element = inner;
    }
    let is_array = *element == Type::Double && f.result_type() != element;
    if f.params.is_empty() || !f.result_type().has_double() {
        return Ok(None);
    }
    let moved: Vec<(VarId, u8)> =
        f.params.iter().map(|param| Ok((*param, u.arbitrary()?))).collect::<arbitrary::Result<_>>()?;
    let mut b = Builder::rewriting(&f);
    let rows = b.build(Size::constant(DIRECTIONS), |b, d| {
        let at = |b: &mut Builder, i: Option<VarId>| {
            let mut renaming = Renaming::new();
            for (param, how) in &moved {
                let ty = b.ty(*param).clone();
                if ty.is_linear() && how % 4 > 0 {
                    let new = moved_by(b, *param, &ty, d, *how);
                    renaming.insert(*param, new);
                } else if ty == Type::Int && how % 4 == 3 {
                    let two = b.int(2);
                    let odd = b.op(Op::Mod, &[d, two]);
                    let new = b.op(Op::Add, &[*param, odd]);
                    renaming.insert(*param, new);
                } else if let (Type::Double, Some(i)) = (ty, i) {
                    let i = b.to_real(i);
                    let new = b.op(Op::Add, &[*param, i]);
                    renaming.insert(*param, new);
                }
            }
            b.inline(&f.body, &mut renaming)
        };
        if is_array {
            at(b, None)
        } else {
            b.build(Size::constant(3), |b, i| {
                let value = at(b, Some(i));
                let ty = b.ty(value).clone();
                number_in(b, value, &ty)
            })
        }
    });
    let Type::Array(_, found) = b.ty(rows).clone() else { return Ok(None) };
    let columns = columns(&mut b, rows, &found, &mut Vec::new());
    let g = b.finish(columns);
    Ok(verify(&g).is_ok().then_some((g, args)))
}

/// Returns `value` with a term that depends on the direction added to its numbers: to a single one in one direction, or
/// to all in each.
fn moved_by(b: &mut Builder, value: VarId, ty: &Type, d: VarId, how: u8) -> VarId {
    match ty {
        Type::Array(size, element) => b.build(size.clone(), |b, i| {
            let row = b.get_proved(value, i);
            let d = if how % 4 == 2 { b.op(Op::Sub, &[d, i]) } else { d };
            moved_by(b, row, element, d, how)
        }),
        Type::Tuple(fields, names) => {
            let parts: Vec<VarId> = (fields.iter().enumerate())
                .map(|(k, field)| {
                    let part = b.component(value, k);
                    moved_by(b, part, field, d, how)
                })
                .collect();
            record(b, names.as_ref(), &parts)
        }
        _ => {
            let more = if how % 4 == 3 {
                let (d, tenth) = (b.to_real(d), b.real(0.1));
                b.op(Op::Mul, &[d, tenth])
            } else {
                let (at, half, zero) = (b.int(i64::from(how / 64)), b.real(0.5), b.real(0.0));
                let hit = b.op(Op::Eq, &[d, at]);
                b.op(Op::Select, &[hit, half, zero])
            };
            b.op(Op::Add, &[value, more])
        }
    }
}

/// Writes a number computed from the numbers in `value`.
fn number_in(b: &mut Builder, value: VarId, ty: &Type) -> VarId {
    match ty {
        Type::Array(size, element) => b.sum(size.clone(), |b, i| {
            let row = b.get_proved(value, i);
            number_in(b, row, element)
        }),
        Type::Tuple(fields, _) => {
            let mut sum = b.real(0.0);
            for (k, field) in fields.iter().enumerate().filter(|(_, field)| field.has_double()) {
                let part = b.component(value, k);
                let number = number_in(b, part, field);
                sum = b.op(Op::Add, &[sum, number]);
            }
            sum
        }
        Type::Double => value,
        Type::Int | Type::Bool => b.real(1.0),
    }
}

fn columns(b: &mut Builder, rows: VarId, ty: &Type, path: &mut Vec<VarId>) -> VarId {
    match ty {
        Type::Array(size, element) => b.build(size.clone(), |b, i| {
            path.push(i);
            let all = columns(b, rows, element, path);
            path.pop();
            all
        }),
        _ => b.build(Size::constant(DIRECTIONS), |b, d| {
            let row = b.get_proved(rows, d);
            path.iter().fold(row, |row, i| b.get_proved(row, *i))
        }),
    }
}

fn record(b: &mut Builder, names: Option<&Arc<[Name]>>, parts: &[VarId]) -> VarId {
    match names {
        Some(names) => b.record(names.clone(), parts),
        None => b.tuple(parts),
    }
}

fn ones(b: &mut Builder, ty: &Type) -> VarId {
    match ty {
        Type::Array(size, element) => b.build(size.clone(), |b, _| ones(b, element)),
        Type::Tuple(fields, names) => {
            let parts: Vec<VarId> = fields.iter().map(|field| ones(b, field)).collect();
            record(b, names.as_ref(), &parts)
        }
        _ => b.real(1.0),
    }
}

#[test]
fn any_program_is_the_same_bit_for_bit() {
    run(1, 800, 600, &strict(), &|u| program(u, Programs::default()));
    run(2, 200, 120, &strict(), &|u| program(u, Programs { depth: 5, fuel: 200, ..Programs::default() }));
}

#[test]
fn programs_on_arrays_are_the_same_bit_for_bit() {
    run(3, 500, 420, &strict(), &|u| generate::arrays::case(u, 40).map(Some));
}

#[test]
fn any_program_is_the_same_in_real_numbers() {
    run(4, 800, 400, &Options::default(), &|u| program(u, Programs::default()));
    run(5, 400, 300, &Options::default(), &|u| generate::arrays::case(u, 40).map(Some));
}

#[test]
fn a_program_is_the_same_wherever_the_budget_ends() {
    for budget in [0, 1, 10, 60] {
        let options = Options { budget, per_statement: 0, ..strict() };
        run(100 + budget, 60, 40, &options, &|u| program(u, Programs::default()));
        run(200 + budget, 60, 20, &options, &reverse);
    }
}

#[test]
fn a_program_is_the_same_without_any_single_rule() {
    for (k, (name, _)) in engine::names().into_iter().enumerate() {
        let options = Options { disabled: vec![name.to_owned()], ..strict() };
        run(1000 + k as u64, 8, 1, &options, &reverse);
    }
}

#[test]
fn columns_of_several_directions_are_the_same_bit_for_bit() {
    let applied = run(10, 900, 250, &strict(), &directions);
    covers!(applied.get("turn").is_some_and(|times| *times > 60), "{applied:?}");
    run(11, 300, 60, &Options::default(), &directions);
}

#[test]
fn loops_side_by_side_are_the_same() {
    run(12, 600, 500, &strict(), &side_by_side);
    run(13, 600, 500, &Options::default(), &side_by_side);
}

#[test]
fn derivatives_of_smooth_programs_are_the_same() {
    run(6, 400, 180, &Options::default(), &gradient);
    run(7, 300, 150, &strict(), &gradient);
    run(8, 400, 180, &Options::default(), &reverse);
    run(9, 300, 150, &strict(), &reverse);
}
