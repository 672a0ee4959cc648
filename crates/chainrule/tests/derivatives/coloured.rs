//! Sparse derivatives by a few directions: known patterns, and random programs against derivatives by blocks, which are
//! tested separately against dense ones.
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::Unstructured;
use chainrule::{Coloured, Function, Module, Name, PreparedColoured, Type, Value};
use chainrule_autodiff::{Mode, sparse};
use chainrule_ir::generate::{self, gathers};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::Cell;
use std::collections::BTreeMap;

type Entries = BTreeMap<(usize, usize), f64>;

fn entries(at: &PreparedColoured<'_>) -> Entries {
    at.pattern().coo().iter().copied().zip(at.values().iter().copied()).collect()
}

fn function(text: &str) -> Function {
    Module::from_text("f.ft", text).unwrap().function("f").unwrap()
}

const HEAT: &str = "let f = fun (u : [n]Double) (steps : Card) ->
  ifold (fun u k -> build n (fun i -> u[i] * u[max 0 (i - 1)] + sin u[min (n - 1) (i + 1)])) u steps";

#[test]
fn steps_in_time_make_a_band() {
    let n = 30;
    let u: Vec<f64> = (0..n).map(|i| f64::from(i as u32 % 7) * 0.3).collect();
    let f = function(HEAT);
    // The indices do not determine the pattern: the columns are dense.
    assert_ne!(f.sparse_jacobian(&["u"]).unwrap().notes(), [""; 0]);
    let coloured = f.coloured_jacobian(&["u"]).unwrap();
    for steps in 0..4 {
        let args = [u.clone().into(), Value::Int(steps)];
        let mut at = coloured.prepare(&args).unwrap();
        let width = 2 * steps as usize + 1;
        assert_eq!(at.n_colours(), width);
        assert!(at.pattern().coo().iter().all(|(r, c)| r.abs_diff(*c) <= steps as usize));
        at.run().unwrap();
        let dense = f.sparse_jacobian(&["u"]).unwrap();
        let mut dense = dense.prepare(&args).unwrap();
        dense.run().unwrap();
        let found = entries(&at);
        for (place, x) in dense.pattern().coo().iter().zip(dense.values()) {
            let y = found.get(place).copied().unwrap_or(0.0);
            assert!((x - y).abs() <= 1e-13 * x.abs().max(1.0), "{place:?}: {y} is not {x}");
        }
        // Other doubles, the same pattern.
        at.argument_mut(0).fill(1.0);
        at.run().unwrap();
        assert!(steps == 0 || entries(&at) != found);
    }
}

#[test]
fn a_hessian_of_steps_in_time_makes_a_band() {
    let text = format!(
        "let g = {}\nlet f = fun (u : [n]Double) (steps : Card) -> let v = g u steps in sum n (fun i -> v[i] * v[i])",
        HEAT.strip_prefix("let f = ").unwrap()
    );
    let f = function(&text);
    let coloured = f.coloured_hessian(&["u"]).unwrap();
    let n = 20;
    let u: Vec<f64> = (0..n).map(|i| f64::from(i as u32 % 5) * 0.2).collect();
    let args = [u.into(), Value::Int(1)];
    let mut at = coloured.prepare(&args).unwrap();
    // Terms over three neighbours each.
    assert_eq!(at.n_colours(), 5);
    at.run().unwrap();
    let found = entries(&at);
    assert!(found.iter().all(|((r, c), x)| (x - found[&(*c, *r)]).abs() < 1e-13), "symmetric");
    let dense = f.sparse_hessian(&["u"]).unwrap();
    let mut dense = dense.prepare(&args).unwrap();
    dense.run().unwrap();
    for (place, x) in dense.pattern().coo().iter().zip(dense.values()) {
        let y = found.get(place).copied().unwrap_or(0.0);
        assert!((x - y).abs() <= 1e-12 * x.abs().max(1.0), "{place:?}: {y} is not {x}");
    }
}

#[test]
fn untraceable_dependences_are_refused() {
    let fails = |text: &str, args: &[Value<f64>]| {
        let coloured = function(text).coloured_jacobian(&[]).unwrap();
        coloured.prepare(args).unwrap_err().to_string()
    };
    let branch = "let f = fun (x : [n]Double) -> build n (fun i -> if x[i] > 0 then x[0] else x[i])";
    let error = fails(branch, &[vec![1.0, 2.0].into()]);
    assert!(error.contains("cannot be decided for symbolic numbers"), "{error}");
    // Also for another argument: the pattern depends on no double.
    let other = "let f = fun (x : [n]Double) (y : Double) -> build n (fun i -> if y > 0 then x[0] else x[i])";
    let error = fails(other, &[vec![1.0, 2.0].into(), Value::Real(1.0)]);
    assert!(error.contains("cannot be decided for symbolic numbers"), "{error}");
    let stated = "let f = fun (x : [n]Double) -> build n (fun i -> constant x[i])";
    let error = fails(stated, &[vec![1.0, 2.0].into()]);
    assert!(error.contains("states a derivative of its own"), "{error}");
    let mixed = "let f = fun (x : [n](Double, Int)) -> build n (fun i -> x[i].0)";
    let error = function(mixed).coloured_jacobian(&[]).unwrap_err().to_string();
    assert!(error.contains("holds integers besides doubles"), "{error}");
    let x = chainrule::vars("x", 2);
    let straight = Function::new("g", &x, &x.norm()).unwrap();
    assert!(straight.coloured_jacobian(&[]).unwrap_err().to_string().contains("straight-line"));
}

fn is_of_doubles(ty: &Type) -> bool {
    match ty {
        Type::Double => true,
        Type::Int | Type::Bool => false,
        Type::Array(_, element) => is_of_doubles(element),
        Type::Tuple(fields, _) => !fields.is_empty() && fields.iter().all(is_of_doubles),
    }
}

/// Tests random programs; returns how many were compared, and how many of them have fewer colours than columns.
fn random(
    cases: u32,
    seed: u64,
    make: impl Fn(&mut Unstructured<'_>) -> Option<(chainrule_ir::Function, Vec<Value<f64>>)>,
    hessian: bool,
) -> (usize, usize) {
    let (compared, saved) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    };
    let bytes = proptest::collection::vec(any::<u8>(), 50..800);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let Some((function, args)) = make(&mut Unstructured::new(&bytes)) else { return Ok(()) };
        let text = chainrule_ir::print(&function);
        let wrong = |what: String| TestCaseError::fail(format!("{what}\n{text}\n{args:?}"));
        let derive = if hessian { sparse::hessian } else { sparse::jacobian };
        let is_of_doubles = |p: &&chainrule_ir::VarId| is_of_doubles(function.ty(**p));
        let by: Vec<Name> =
            function.params.iter().filter(is_of_doubles).filter_map(|p| function.vars[*p].name.clone()).collect();
        if by.is_empty() {
            return Ok(());
        }
        let Ok(expected) = derive(&function, &by, Mode::Forward) else { return Ok(()) };
        let by: Vec<&str> = by.iter().map(Name::as_str).collect();
        let Ok((expected, _)) = sparse::check::entries(&expected, &args) else { return Ok(()) };
        let program = Module::from_text("random.ft", &text).and_then(|module| module.function(&function.name));
        // Text is checked by rules that generated programs may violate.
        let Ok(program) = program else { return Ok(()) };
        let coloured: Result<Coloured, _> =
            if hessian { program.coloured_hessian(&by) } else { program.coloured_jacobian(&by) };
        let coloured = coloured.map_err(|e| wrong(e.to_string()))?;
        let mut at = match coloured.prepare(&args) {
            Ok(at) => at,
            Err(error) if error.to_string().contains("cannot be decided") => return Ok(()),
            Err(error) => return Err(wrong(error.to_string())),
        };
        at.run().map_err(|e| wrong(e.to_string()))?;
        let found = entries(&at);
        let largest = expected.values().fold(1.0f64, |m, x| m.max(x.abs()));
        for (place, x) in &expected {
            let y = found.get(place).copied().unwrap_or(0.0);
            if x.is_finite() && (x - y).abs() > 1e-9 * largest {
                return Err(wrong(format!("at {place:?}: {y} is not {x}")));
            }
        }
        for (place, y) in found.iter().filter(|(place, _)| !expected.contains_key(place)) {
            if *y != 0.0 && y.is_finite() {
                return Err(wrong(format!("at {place:?}: {y} is not zero")));
            }
        }
        compared.set(compared.get() + 1);
        saved.set(saved.get() + usize::from(at.n_colours() < at.pattern().shape().1));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    println!("{} compared, {} with fewer colours than columns", compared.get(), saved.get());
    (compared.get(), saved.get())
}

#[test]
fn jacobians_of_random_gathers() {
    let (compared, saved) = random(200, 71, |u| gathers::rows(u).ok(), false);
    assert!(compared > 40 && saved > 10, "{compared} compared, {saved} saved");
}

#[test]
fn hessians_of_random_gathers() {
    let (compared, saved) = random(150, 72, |u| gathers::scalar(u).ok(), true);
    assert!(compared > 20 && saved > 5, "{compared} compared, {saved} saved");
}

#[test]
fn jacobians_of_random_programs() {
    let options = generate::Options {
        depth: 4,
        fuel: 60,
        smooth: true,
        derivatives: false,
        transposed: false,
        ..Default::default()
    };
    let make = |u: &mut Unstructured<'_>| {
        let function = generate::function(u, options).ok()?;
        let args = generate::arguments_up_to(u, &function, 6).ok()?;
        Some((function, args))
    };
    let (compared, saved) = random(400, 73, make, false);
    assert!(compared > 40 && saved > 5, "{compared} compared, {saved} saved");
}
