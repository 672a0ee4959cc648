//! Random programs through the whole pipeline, verified after every pass and compared by the reference
//! evaluator. The seeds are fixed, and failures shrink.

use arbitrary::Unstructured;
use chainrule_autodiff::{Mode, Part, Request, derive, expand};
use chainrule_ir::generate::{self, Case, Options as Programs};
use chainrule_ir::{Builder, Function, Renaming, Type, Value, VarId, print};
use chainrule_rewrite::{Options, check, engine};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

type Cases<'a> = &'a dyn Fn(&mut Unstructured<'_>) -> arbitrary::Result<Option<(Function, Vec<Value<f64>>)>>;

/// Optimises `cases` random programs; at least `useful` must have a value to compare. Returns how often each rule
/// was applied.
fn run(seed: u64, cases: u32, useful: u32, options: &Options, make: Cases<'_>) -> BTreeMap<&'static str, u64> {
    let config = ProptestConfig {
        cases,
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
    assert!(told.get() >= useful, "only {} of {cases} programs told anything", told.get());
    applied.into_inner()
}

fn strict() -> Options {
    Options { strict: true, ..Options::default() }
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

fn ones(b: &mut Builder, ty: &Type) -> VarId {
    match ty {
        Type::Array(size, element) => b.build(size.clone(), |b, _| ones(b, element)),
        Type::Tuple(fields, names) => {
            let parts: Vec<VarId> = fields.iter().map(|field| ones(b, field)).collect();
            match names {
                Some(names) => b.record(names.clone(), &parts),
                None => b.tuple(&parts),
            }
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
fn a_program_is_the_same_whatever_is_left_out() {
    for (k, (name, _)) in engine::names().into_iter().enumerate() {
        let options = Options { disabled: vec![name.to_owned()], ..strict() };
        run(1000 + k as u64, 8, 1, &options, &reverse);
    }
}

#[test]
fn derivatives_of_smooth_programs_are_the_same() {
    run(6, 400, 180, &Options::default(), &gradient);
    run(7, 300, 150, &strict(), &gradient);
    run(8, 400, 180, &Options::default(), &reverse);
    run(9, 300, 150, &strict(), &reverse);
}
