//! Evaluation on several threads: the same bits for any number of them and on every backend, and nearly those without
//! the option.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{Backend, CompileOptions, Compiled, Function, Level, Module, Value};

const TEXT: &str = "let f = fun (a : [n][m]Double) (x : [m]Double) ->
  let y = build n (fun i -> sum m (fun j -> sin a[i][j] * x[j]))
  sum n (fun i -> y[i] * y[i] * log (2 + i))

let at = fun (x : [n]Double) (picks : [m]Index) -> build m (fun i -> sum n (fun j -> x[picks[i]] * sin x[j]))

let layers = fun (a : [m][n]Double) (x : [n]Double) ->
  let y = build n (fun i -> tanh (sum n (fun j -> sin (x[i] * x[j]))))
  build m (fun i -> sin (sum n (fun j -> a[i][j] * y[j])))

let branches = fun (x : [n]Double) (k : Int) ->
  let s = sum n (fun i -> sum n (fun j -> sin (x[i] + x[j])))
  let (y, t) =
    if s > 0 then
      let v = build n (fun i -> sum n (fun j -> exp (x[i] * x[j])))
      (v, vectorSum v)
    else if k > 2 then
      (build n (fun i -> sum n (fun j -> cos (x[i] - x[j]))), s)
    else
      (x, 0.5 * s)
  build n (fun i -> sum n (fun j -> y[i] * tanh (t * y[j])))

let guarded = fun (x : [n]Double) (k : Int) ->
  if k > 0 then
    let step = div 300 k
    build n (fun i -> sum n (fun j -> if mod i step == 0 then sin (x[i] * x[j]) else x[j]))
  else
    x";

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

/// Returns the number of loops of a listing that run in parts, by the depth of branches around them.
fn depths(listing: &str) -> Vec<usize> {
    let mut found = vec![0; 5];
    let mut open: Vec<usize> = Vec::new();
    for line in listing.lines() {
        let indent = line.len() - line.trim_start().len();
        open.retain(|branch| *branch < indent);
        if line.ends_with("in parts") {
            found[open.len()] += 1;
        }
        if line.trim_start().starts_with("if ") || line.trim_start().starts_with("else") {
            open.push(indent);
        }
    }
    found
}

#[test]
fn loops_in_branches_run_on_threads() {
    let layers = function("layers").jacobian().by(&["x"]).function().unwrap();
    let wide = |m: usize, n: usize| {
        let rows: Vec<Value<f64>> = numbers(n * m).chunks(n).map(|row| row.to_vec().into()).collect();
        vec![Value::Array(rows), numbers(n).into()]
    };
    // Forward or reverse mode, by the sizes.
    let by_sizes = (layers, [2, 1], vec![wide(300, 60), wide(60, 300), wide(3, 2)]);
    let moved = |by: f64| Value::from(numbers(300).iter().map(|x| 0.3 * x + by).collect::<Vec<_>>());
    let points = [(0.4, 0), (-0.4, 3), (-0.4, 1)].map(|(by, k)| vec![moved(by), Value::Int(k)]);
    // By computed data, nested.
    let by_data = (function("branches"), [2, 2], points.to_vec());
    // A value recomputed in a piece fails if its branch is not taken, if it is computed outside of the branch.
    let guarded = [0, 7].map(|k| vec![moved(0.2), Value::Int(k)]);
    let by_size = (function("guarded"), [1, 1], guarded.to_vec());
    for (function, least, points) in [by_sizes, by_data, by_size] {
        let one = compiled(&function, Backend::Auto, 1);
        let found = depths(&one.listing());
        let deepest = found.iter().rposition(|n| *n > 0).unwrap();
        assert!(deepest >= least[1] && found[1..].iter().sum::<usize>() >= least[0], "{found:?}: {}", one.listing());
        assert!(found[0] >= 1 || least[1] < 2, "{found:?}");
        for args in &points {
            let expected = one.call(args).unwrap();
            assert_eq!(compiled(&function, Backend::Interpreter, 2).call(args).unwrap(), expected);
            for threads in [2, 3, 8] {
                let many = compiled(&function, Backend::Auto, threads);
                let mut prepared = many.prepare(args).unwrap();
                for _ in 0..2 {
                    prepared.run().unwrap();
                    assert_eq!(prepared.results(), expected, "{threads} threads");
                }
            }
        }
    }
}

/// Checks that loops without reordered sums keep their bits.
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

/// Checks that a saved function with parts runs on threads after loading.
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

/// A loop inside of one in lanes has its own address, and the last lane's position is tested: also with vectors that
/// take two rounds.
#[test]
fn products_whose_last_lanes_are_tested_run_with_all_vectors() {
    const TEXT: &str = "let f = fun (y : [m]Double) (w : [m]Double) (a : Double) ->
      let g = gradient (fun (u : [m][4]Double) -> u[argmin y][1]) (build m (fun i -> build 4 (fun j -> w[i])))
      matrixTranspose (matrixMul g (matrixAdd (build 4 (fun i -> build m (fun j -> a))) (build 4 (fun i -> build m (fun j -> w[j])))))";
    let f = Module::from_text("f.ft", TEXT).unwrap().function("f").unwrap();
    let interpreter = compiled(&f, Backend::Interpreter, 2);
    for level in [Level::Avx2, Level::Avx512] {
        let (threads, level, backend) = (Some(2), Some(level), Backend::Native);
        let native = match f.compile_with(&CompileOptions { threads, level, backend, ..CompileOptions::default() }) {
            Ok(native) => native,
            Err(why) => {
                let why = why.to_string();
                // Another machine, or one that allows no executable memory.
                assert!(why.contains("cannot run") || why.contains("imitation"), "{level:?}: {why}");
                continue;
            }
        };
        for n in [1, 7, 8, 40, 150] {
            let args = [numbers(n).into(), numbers(n).into(), Value::Real(0.25)];
            assert_eq!(native.call(&args).unwrap(), interpreter.call(&args).unwrap(), "{level:?} {n}");
        }
    }
}
