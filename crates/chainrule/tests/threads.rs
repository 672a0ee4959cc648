//! One evaluation on threads: the same bits for any number of them and on every backend, and nearly those without the option.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{Backend, CompileOptions, Compiled, Function, Module, Value};

const TEXT: &str = "let f = fun (a : [n][m]Double) (x : [m]Double) ->
  let y = build n (fun i -> sum m (fun j -> sin a[i][j] * x[j]))
  sum n (fun i -> y[i] * y[i] * log (2 + i))

let at = fun (x : [n]Double) (picks : [m]Index) -> build m (fun i -> sum n (fun j -> x[picks[i]] * sin x[j]))";

fn function(name: &str) -> Function {
    Module::from_text("f.ft", TEXT).unwrap().function(name).unwrap()
}

fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.37).sin() * 1.7).collect()
}

fn compiled(function: &Function, backend: Backend, threads: usize) -> Compiled {
    let options = CompileOptions { threads: Some(threads), backend, ..CompileOptions::default() };
    let compiled = function.compile_with(&options).unwrap();
    assert!(compiled.listing().contains("in parts"), "{}", compiled.listing());
    compiled
}

#[test]
fn any_number_of_threads_has_the_same_bits() {
    let (n, m) = (700, 40);
    let rows: Vec<Value<f64>> = numbers(n * m).chunks(m).map(|row| row.to_vec().into()).collect();
    let args = [Value::Array(rows), numbers(m).into()];
    let f = function("f");
    for function in [f.gradient().by(&["x"]).function().unwrap(), f.gradient().by(&["a"]).function().unwrap(), f] {
        let one = compiled(&function, Backend::Auto, 1).call(&args).unwrap();
        for threads in [2, 3, 8, 0] {
            let many = compiled(&function, Backend::Auto, threads);
            let mut prepared = many.prepare(&args).unwrap();
            for _ in 0..3 {
                prepared.run().unwrap();
                assert_eq!(prepared.results(), one);
            }
        }
        assert_eq!(compiled(&function, Backend::Interpreter, 2).call(&args).unwrap(), one);
        let plain = function.compile().unwrap().call(&args).unwrap();
        let flat = |values: &[Value<f64>]| {
            let mut numbers = Vec::new();
            values.iter().for_each(|v| drop(v.map(&mut |x| numbers.push(*x))));
            numbers
        };
        for (found, expected) in flat(&one).iter().zip(flat(&plain)) {
            assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{found} {expected}");
        }
    }
}

/// Without sums that change their order nothing changes.
#[test]
fn independent_loops_have_the_bits_that_they_have_without_the_option() {
    let picks: Vec<Value<f64>> = (0..200).map(|i| Value::Int(i * 7 % 60)).collect();
    let args = [numbers(60).into(), Value::Array(picks)];
    let f = function("at");
    let sequential = CompileOptions { sequential: true, ..CompileOptions::default() };
    let plain = f.compile_with(&sequential).unwrap().call(&args).unwrap();
    let both = CompileOptions { threads: Some(2), ..sequential };
    assert_eq!(f.compile_with(&both).unwrap().call(&args).unwrap(), plain);
}

#[test]
fn the_first_index_out_of_range_is_told() {
    let f = function("at");
    let fails = |compiled: &Compiled| {
        let picks = |i| if [50, 120, 199].contains(&i) { 1000 + i } else { i % 60 };
        let picks: Vec<Value<f64>> = (0..200).map(|i| Value::Int(picks(i))).collect();
        compiled.call(&[numbers(60).into(), Value::Array(picks)]).unwrap_err().to_string()
    };
    let plain = fails(&f.compile().unwrap());
    assert!(plain.contains("1050"), "{plain}");
    for threads in [1, 2, 3, 8] {
        assert_eq!(fails(&compiled(&f, Backend::Auto, threads)), plain);
    }
}

/// A saved function that was cut runs on threads where it is loaded so.
#[test]
fn a_saved_function_keeps_its_parts() {
    let (n, m) = (700, 40);
    let rows: Vec<Value<f64>> = numbers(n * m).chunks(m).map(|row| row.to_vec().into()).collect();
    let args = [Value::Array(rows), numbers(m).into()];
    let one = compiled(&function("f"), Backend::Auto, 1);
    let bytes = one.to_bytes().unwrap();
    let options = CompileOptions { threads: Some(2), ..CompileOptions::default() };
    let loaded = Compiled::from_bytes_with(&bytes, &[], &options).unwrap();
    assert_eq!(loaded.listing(), one.listing());
    assert_eq!(loaded.call(&args).unwrap(), one.call(&args).unwrap());
}
