//! Branches on data, in loops and in batches: both sides and a selection, with the same bits.

use chainrule::{Backend, CompileOptions, Function, Level, Module, Value};

const TEXT: &str = "
let softplus = fun (x : [n]Double) -> build n (fun i -> if x[i] > 20 then x[i] else log1p (exp x[i]))
let robust = fun (x : [n]Double) -> sum n (fun i -> if abs x[i] < 1 then cos x[i] * x[i] else sqrt (abs x[i]) * sin x[i])
let nested = fun (x : [n]Double) (y : [n]Double) ->
  build n (fun i ->
    if x[i] > 0 then (if y[i] > 0 || x[i] > 2 then exp (x[i]) * y[i] else tanh y[i]) else sin x[i] / y[i])
let guarded = fun (x : [n]Double) (k : Card) ->
  build n (fun i -> if x[i] > 0 && i + k < n then exp x[i + k] else cos x[i])
let shorter = fun (x : [n]Double) (y : [m]Double) ->
  build n (fun i -> if x[i] > 0 && i < m then exp (exp y[i]) else cos x[i])
let picked = fun (x : [n]Double) (at : [1]Int) ->
  let k = at[0] in build n (fun i -> if x[i] > 0 then exp (exp x[k]) else cos x[i])
let checked = fun (x : [n]Double) (at : [n]Int) ->
  build n (fun i -> if x[i] > 0 then exp (x[at[i]]) else cos x[i])
let kink = fun (x : Double) (y : Double) -> if x * y > 0.25 then exp x * sin y else log1p (x * x) - tanh y
";

/// Numbers on both sides of all branches, and special ones.
fn numbers(n: usize, from: usize) -> Vec<f64> {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 25.0, 1.0];
    let number =
        |i: usize| if i % 5 == 4 { special[i / 5 % special.len()] } else { 3.0 * (i as f64 * 1.7 + 0.3).sin() };
    (from..from + n).map(number).collect()
}

fn function(name: &str) -> Function {
    Module::from_text("branches.ft", TEXT).unwrap().function(name).unwrap()
}

/// Returns native code at every level that this machine supports, and the interpreter.
fn engines() -> Vec<CompileOptions> {
    let options = |backend, level| CompileOptions { backend, level, ..CompileOptions::default() };
    let native = [Level::Avx2, Level::Avx512].map(|level| options(Backend::Native, Some(level)));
    let usable = native.into_iter().filter(|native| function("kink").compile_with(native).is_ok());
    usable.chain([options(Backend::Interpreter, None)]).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    // All NaNs are equal.
    values.iter().map(|x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }).collect()
}

#[test]
fn loops_with_branches_run_at_once_with_the_bits_of_the_interpreter() {
    for (name, n_arrays) in [("softplus", 1), ("robust", 1), ("nested", 2)] {
        let f = function(name);
        assert!(f.compile().unwrap().listing().contains("at once"), "{name}: {}", f.compile().unwrap().listing());
        for n in 0..=20 {
            let args: Vec<_> = (0..n_arrays).map(|k| numbers(n, 7 * k).into()).collect();
            let run = |options: &CompileOptions| {
                let compiled = f.compile_with(options).unwrap();
                let mut prepared = compiled.prepare(&args).unwrap();
                prepared.run().unwrap();
                bits(prepared.result(0))
            };
            let found: Vec<_> = engines().iter().map(run).collect();
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{name} {n}: {found:?}");
            // In sequence, only a sum is evaluated in another order.
            let expected = run(&CompileOptions { sequential: true, ..CompileOptions::default() });
            for (found, expected) in found[0].iter().zip(&expected) {
                let (a, b) = (f64::from_bits(*found), f64::from_bits(*expected));
                let is_near = name == "robust" && ((a - b).abs() <= 1e-13 * b.abs() || (a.is_nan() && b.is_nan()));
                assert!(found == expected || is_near, "{name} {n}: {a} {b}");
            }
        }
    }
}

/// Checks that a read that a branch guards against an index out of range stays guarded.
#[test]
fn guarded_reads_happen_in_their_branch_only() {
    for options in engines() {
        for n in 1..=20_usize {
            let x: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { -0.5 } else { 0.5 + i as f64 / 40.0 }).collect();
            for k in [0, 1, n as i64 - 1, i64::from(i32::MAX)] {
                let compiled = function("guarded").compile_with(&options).unwrap();
                let found = compiled.call(&[x.clone().into(), Value::Int(k)]).unwrap();
                let at = |i: usize| usize::try_from(k).unwrap() + i;
                let value = |i: usize| if x[i] > 0.0 && at(i) < n { x[at(i)].exp() } else { x[i].cos() };
                let expected: Vec<f64> = (0..n).map(value).collect();
                let Value::Array(found) = &found[0] else { panic!("{found:?}") };
                for (found, expected) in found.iter().zip(expected) {
                    let Value::Real(found) = found else { panic!("{found:?}") };
                    assert!((found - expected).abs() <= 1e-14 * expected.abs(), "{k} {found} {expected}");
                }
            }
            // An index out of range in an element that is never read.
            let negative = vec![-0.5; n];
            let picked = function("picked").compile_with(&options).unwrap();
            let at = || Value::Array(vec![Value::Int(n as i64 + 3)]);
            picked.call(&[negative.into(), at()]).unwrap();
            assert!(picked.call(&[vec![0.5; n].into(), at()]).is_err());
            let shorter = function("shorter").compile_with(&options).unwrap();
            for m in 0..=n + 1 {
                let found = shorter.call(&[vec![0.5; n].into(), vec![0.25; m].into()]).unwrap();
                let value = |i: usize| if i < m { 0.25_f64.exp().exp() } else { 0.5_f64.cos() };
                let Value::Array(found) = &found[0] else { panic!("{found:?}") };
                for (i, found) in found.iter().enumerate() {
                    let Value::Real(found) = found else { panic!("{found:?}") };
                    assert!((found - value(i)).abs() <= 1e-14 * value(i), "{n} {m} {i}: {found}");
                }
            }
            let at = (0..n).map(|i| Value::Int(if i % 3 == 0 { -7 } else { 0 })).collect();
            let compiled = function("checked").compile_with(&options).unwrap();
            compiled.call(&[x.into(), Value::Array(at)]).unwrap();
        }
    }
}

#[test]
fn batches_with_branches_have_the_bits_of_single_points() {
    let f = function("kink");
    for options in engines() {
        let compiled = f.compile_with(&options).unwrap();
        for n in [1, 7, 8, 9, 40] {
            let (x, y) = (numbers(n, 0), numbers(n, 11));
            let mut found = vec![0.0; n];
            let mut workspace = compiled.workspace(&[&[], &[]]).unwrap();
            compiled.eval_batch(n, &[&x, &y], &mut [&mut found], &mut workspace).unwrap();
            let one: Vec<f64> = (0..n).map(|i| compiled.eval(&[&[x[i]], &[y[i]]]).unwrap()[0][0]).collect();
            assert_eq!(bits(&found), bits(&one));
        }
    }
}
