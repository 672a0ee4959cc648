//! Serialisation of compiled functions: bitwise equal results, and damaged bytes are rejected.
#![allow(clippy::unwrap_used)] // helpers of tests

// Each test uses a part of it.
#[allow(dead_code)]
#[path = "../random/support.rs"]
mod support;

use arbitrary::Unstructured;
use chainrule::{
    Backend, CompileOptions, Compiled, Function, Module, Type, UserFunction, Value, is_saved, matrix, var, vars,
};
use chainrule_ir::generate::Options;
use chainrule_kernel::bytes::{Content, frame, open, seal};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::Cell;
use support::{Case, limited, program, run, same};

fn alike(a: &chainrule::Result<Vec<Value<f64>>>, b: &chainrule::Result<Vec<Value<f64>>>, messages: bool) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Err(a), Err(b)) => !messages || a.to_string() == b.to_string(),
        _ => false,
    }
}

/// Saves, loads and runs; returns whether there was a value.
fn comes_back(function: &Function, args: &[Value<f64>]) -> Result<bool, String> {
    let compiled = match function.compile() {
        Ok(compiled) => compiled,
        Err(e) if limited(&e) => return Ok(false),
        Err(e) => return Err(format!("does not compile: {e}")),
    };
    let expected = compiled.call(args);
    let (bare, full) = (compiled.to_bytes().unwrap(), compiled.to_bytes_with_sources().unwrap());
    for (bytes, with_sources) in [(&bare, false), (&full, true)] {
        let loaded = Compiled::from_bytes(bytes).map_err(|e| format!("is not loaded: {e}"))?;
        let found = loaded.call(args);
        if !alike(&expected, &found, with_sources) {
            return Err(format!("was {expected:?}, is {found:?}"));
        }
        if loaded.to_bytes().unwrap() != bare {
            return Err("is another function".into());
        }
        if with_sources && (loaded.to_bytes_with_sources().unwrap() != full || loaded.listing() != compiled.listing()) {
            return Err("has other messages".into());
        }
    }
    Ok(expected.is_ok())
}

#[test]
fn random_programs_and_their_jacobians_come_back() {
    run(41, 300, 180, 1200, |bytes| {
        let Some(p): Option<Case> = program(bytes, Options::default())? else { return Ok(false) };
        let ran = comes_back(&p.f, &p.args).map_err(|e| p.fails(e))?;
        if let Ok(jacobian) = p.f.jacobian().function() {
            comes_back(&jacobian, &p.args).map_err(|e| p.fails(format!("its Jacobian {e}")))?;
        }
        Ok(ran)
    });
}

#[test]
fn expressions_come_back_with_their_batches() {
    let (x, m) = (vars("x", 3), matrix("m", 2, 3));
    let f = Function::new("f", (&x, &m), &(m.row(0).dot(&x).exp() * m.row(1).dot(&x).sin())).unwrap();
    for function in [f.clone(), f.gradient().function().unwrap(), f.hessian().sparse().function().unwrap()] {
        let compiled = function.compile().unwrap();
        let loaded = Compiled::from_bytes(&compiled.to_bytes().unwrap()).unwrap();
        assert_eq!(loaded.signature().params, compiled.signature().params);
        assert_eq!(loaded.signature().results, compiled.signature().results);
        let point = |p: f64| -> (Vec<f64>, Vec<f64>) {
            ((0..3).map(|i| f64::from(i) / 7.0 + p).collect(), (0..6).map(|i| f64::from(i) / 11.0 - p).collect())
        };
        let (a, b) = point(0.5);
        let expected = compiled.eval(&[&a, &b]).unwrap();
        assert_eq!(loaded.eval(&[&a, &b]).unwrap(), expected);
        let points: Vec<_> = (0..21).map(|p| point(f64::from(p) / 64.0)).collect();
        let a: Vec<f64> = points.iter().flat_map(|p| p.0.clone()).collect();
        let b: Vec<f64> = points.iter().flat_map(|p| p.1.clone()).collect();
        let batch = |f: &Compiled| -> Vec<Vec<u64>> {
            let mut results: Vec<Vec<f64>> = expected.iter().map(|y| vec![0.0; 21 * y.len()]).collect();
            let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
            let mut workspace = f.workspace(&[&[3], &[2, 3]]).unwrap();
            f.eval_batch(21, &[&a, &b], &mut slices, &mut workspace).unwrap();
            results.iter().map(|y| y.iter().map(|x| x.to_bits()).collect()).collect()
        };
        assert_eq!(batch(&loaded), batch(&compiled));
    }
}

#[test]
fn users_functions_are_given_again() {
    let slope = UserFunction::new("slope", 1, |x| 2.0 * x[0]);
    let square = UserFunction::new("square", 1, |x| x[0] * x[0]).with_partial_functions(vec![slope.clone()]);
    let x = var("x");
    let f = Function::new("f", &x, &(square.call(&[&x]) * 3.0)).unwrap();
    let compiled = f.value().and(&f.gradient()).compile().unwrap();
    let bytes = compiled.to_bytes().unwrap();
    let loaded = Compiled::from_bytes_with(&bytes, &[&square], &CompileOptions::default()).unwrap();
    assert_eq!(loaded.eval(&[&[5.0]]).unwrap(), compiled.eval(&[&[5.0]]).unwrap());
    assert_eq!(loaded.to_bytes().unwrap(), bytes);
    let refused = |functions: &[&UserFunction]| {
        Compiled::from_bytes_with(&bytes, functions, &CompileOptions::default()).unwrap_err()
    };
    assert_eq!(
        refused(&[]).to_string(),
        "error: the file needs `square` of 1 argument, `slope` of 1 argument: a file holds the names of its users' \
         functions, not what computes them\n  help: give those when you load it"
    );
    assert!(refused(&[&slope]).to_string().contains("the file needs `square` of 1 argument: "));
    let other = UserFunction::new("slope", 1, |x| 3.0 * x[0]);
    assert_eq!(
        refused(&[&square, &other]).to_string(),
        "two functions called `slope` are given\n  help: give the one that the saved function calls"
    );
}

const ROW: &str = "// A row of a matrix.\nlet row = fun (m : [k][n]Double) (i : Int) -> m[i]\n";

#[test]
fn failures_name_their_place_and_show_it_where_the_source_was_saved() {
    let compiled = Module::from_text("rows.ft", ROW).unwrap().function("row").unwrap().compile().unwrap();
    let args = [Value::Array(vec![Value::from(vec![1.0, 2.0])]), Value::Int(1)];
    let bare = Compiled::from_bytes(&compiled.to_bytes().unwrap()).unwrap();
    assert_eq!(
        bare.call(&args).unwrap_err().to_string(),
        "`m` has fewer than i + 1 rows (at rows.ft:2:49): -i + k - 1 must not be negative, but it is -1: k = 1, the \
         extent of dimension 1 of `m`; i = 1, the value of `i`"
    );
    let full = Compiled::from_bytes(&compiled.to_bytes_with_sources().unwrap()).unwrap();
    assert_eq!(full.call(&args).unwrap_err().to_string(), compiled.call(&args).unwrap_err().to_string());
    assert!(full.call(&args).unwrap_err().to_string().contains("let row = fun"));
    assert!(!compiled.to_bytes().unwrap().windows(3).any(|w| w == b"fun"), "no source unless asked for");
}

/// Returns a few saved functions: loops, records, integers, straight-line code, users' functions.
fn samples() -> Vec<Vec<u8>> {
    let programs = [
        "let f = fun (x : [n]Double) (k : Int) -> sum n (fun i -> x[i] ** k)\n",
        "let f = fun (p : [n]{pos : [3]Double, on : Bool}) (q : Double) ->\n  \
         build n (fun i -> if p[i].on then (p[i].pos[1] * q, i) else (q, 0))\n",
        "let f = fun (x : Double) -> while (fun y -> y < 100) (fun y -> y * 2 + x) x 50\n",
        ROW,
    ];
    let mut samples = Vec::new();
    for text in programs {
        let module = Module::from_text("f.ft", text).unwrap();
        let name = module.definitions().last().unwrap().name.clone();
        let compiled = module.function(&name).unwrap().compile().unwrap();
        samples.extend([compiled.to_bytes().unwrap(), compiled.to_bytes_with_sources().unwrap()]);
    }
    let x = vars("x", 3);
    let f = Function::new("f", &x, &(x.norm() * x[0].sin())).unwrap();
    samples.push(f.gradient().compile().unwrap().to_bytes().unwrap());
    let table = table();
    let f = Function::new("g", &x, &table.call(&[&x[0]])).unwrap();
    samples.push(f.compile().unwrap().to_bytes().unwrap());
    samples
}

fn table() -> UserFunction {
    UserFunction::new("table", 1, |x| x[0].floor())
}

#[test]
fn every_truncation_and_every_changed_byte_is_refused() {
    for sample in samples() {
        assert!(is_saved(&sample));
        for len in 0..sample.len() {
            assert!(Compiled::from_bytes(&sample[..len]).is_err(), "{len} of {} bytes", sample.len());
        }
        let mut changed = sample.clone();
        for at in 0..sample.len() {
            for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                changed[at] = sample[at] ^ flip;
                assert!(Compiled::from_bytes(&changed).is_err(), "byte {at} of {}", sample.len());
            }
            changed[at] = sample[at];
        }
    }
}

/// Returns a value of type `ty`.
fn example(ty: &Type) -> Value<f64> {
    match ty {
        Type::Double => Value::Real(1.5),
        Type::Int => Value::Int(2),
        Type::Bool => Value::Bool(true),
        Type::Array(size, element) => {
            let n = size.as_constant().filter(|n| (0..=8).contains(n)).unwrap_or(2);
            Value::Array((0..n).map(|_| example(element)).collect())
        }
        Type::Tuple(fields, _) => Value::Tuple(fields.iter().map(example).collect()),
    }
}

/// Tests arbitrary content with a correct checksum, on both backends.
fn is_refused_or_runs(payload: &[u8]) -> bool {
    let sealed = seal(Content::Function, payload);
    for backend in [Backend::Interpreter, Backend::default()] {
        let load = |bytes: &[u8]| {
            Compiled::from_bytes_with(bytes, &[&table()], &CompileOptions { backend, ..Default::default() })
        };
        let Ok(loaded) = load(&sealed) else { return false };
        assert!(load(&loaded.to_bytes_with_sources().unwrap()).is_ok());
        let listing = loaded.listing();
        // Loops may take any time.
        if !["for ", "while "].iter().any(|loops| listing.contains(loops)) {
            let args: Vec<Value<f64>> = loaded.signature().params.iter().map(|(_, ty)| example(ty)).collect();
            let _ = loaded.call(&args);
            let _ = loaded.eval(&[&[1.0, 2.0, 3.0]]);
        }
    }
    true
}

#[test]
fn content_that_nobody_wrote_is_refused_or_a_function() {
    let samples = samples();
    let payloads: Vec<&[u8]> = samples.iter().map(|bytes| open(Content::Function, bytes).unwrap()).collect();
    let loaded = Cell::new(0);
    let config = |cases| ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(43),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let changes = (0..payloads.len(), proptest::collection::vec((any::<u16>(), any::<u8>(), 0..5u8), 1..4));
    TestRunner::new(config(8_000))
        .run(&changes, |(sample, changes)| {
            let mut payload = payloads[sample].to_vec();
            for (at, byte, how) in changes {
                if payload.is_empty() {
                    break;
                }
                let at = usize::from(at) % payload.len();
                match how {
                    0 => payload[at] = byte,
                    1 => payload[at] = payload[at].wrapping_add(byte % 5).wrapping_sub(2),
                    2 => payload.insert(at, byte),
                    3 => drop(payload.remove(at)),
                    _ => payload[at] ^= 1 << (byte % 8),
                }
            }
            loaded.set(loaded.get() + u32::from(is_refused_or_runs(&payload)));
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
    println!("{} of 8000 changed functions are functions", loaded.get());
    assert!(loaded.get() > 200, "{}", loaded.get());
    TestRunner::new(config(5_000))
        .run(&proptest::collection::vec(any::<u8>(), 0..200), |bytes| {
            let mut u = Unstructured::new(&bytes);
            is_refused_or_runs(u.bytes(u.len()).unwrap());
            prop_assert!(Compiled::from_bytes(&bytes).is_err());
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(frame::HEADER, 32);
}
