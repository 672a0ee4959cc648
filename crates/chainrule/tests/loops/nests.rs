//! Gradients of programs that are matrix products in some form: shared values, distributed loops, and equality with
//! sequential kernels, at sizes around those of tiles and blocks.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::values::{array, numbers};
use chainrule::{Backend, CompileOptions, Function, Module, Value};

const PROGRAMS: &str = "
let layer = fun (w : [h][k]Double) (b : [h]Double) (x : [n][k]Double) ->
  sum n (fun i -> sum h (fun o -> tanh (b[o] + sum k (fun j -> w[o][j] * x[i][j]))))

let factors = fun (w : [n][k]Double) (h : [m][k]Double) (a : [n][m]Double) ->
  sum n (fun i -> sum m (fun j -> let e = sum k (fun l -> w[i][l] * h[j][l]) - a[i][j] in e * e))

let distances = fun (x : [n][k]Double) (y : [m][k]Double) ->
  sum n (fun i -> sum m (fun j -> sqrt (1.0 + sum k (fun l -> let e = x[i][l] - y[j][l] in e * e))))

let batch = fun (a : [b][n][k]Double) (c : [b][k][m]Double) ->
  sum b (fun s -> sum n (fun i -> sum m (fun j -> let p = sum k (fun l -> a[s][i][l] * c[s][l][j]) in p * p)))

let covariance = fun (x : [n][k]Double) ->
  let mean = build k (fun j -> sum n (fun i -> x[i][j]) / real n)
  sum k (fun a -> sum k (fun b ->
    let c = sum n (fun i -> (x[i][a] - mean[a]) * (x[i][b] - mean[b])) / real n in c * c))

let gram = fun (x : [n][k]Double) ->
  sum n (fun i -> sum n (fun j -> let g = sum k (fun l -> x[i][l] * x[j][l]) in g * g))

let attention = fun (q : [n][k]Double) (key : [m][k]Double) (v : [m][h]Double) ->
  let s = build n (fun i -> build m (fun j -> exp (0.1 * sum k (fun l -> q[i][l] * key[j][l]))))
  sum n (fun i ->
    let z = sum m (fun j -> s[i][j])
    sum h (fun l -> let o = sum m (fun j -> s[i][j] * v[j][l]) / z in o * o))

let convolution = fun (x : [n + 4][m + 4]Double) (w : [5][5]Double) (y : [n][m]Double) ->
  sum n (fun i -> sum m (fun j ->
    let r = sum 5 (fun a -> sum 5 (fun b -> w[a][b] * x[i + a][j + b])) - y[i][j] in r * r))

let inner = fun (x : [n][m]Double) (w : [3][2]Double) ->
  sum (n - 2) (fun i -> sum (m - 1) (fun j ->
    let r = sum 3 (fun a -> sum 2 (fun b -> w[a][b] * x[i + a][j + b])) in r * r))

let smoothing = fun (x : [n + k]Double) (w : [k]Double) (y : [n]Double) ->
  sum n (fun i -> let s = sum k (fun a -> w[a] * x[i + a]) in sin (s - y[i]))

let regression = fun (x : [n]Double) (a : [k]Double) ->
  sum (n - k) (fun t -> let e = x[t + k] - sum k (fun s -> a[s] * x[t + k - 1 - s]) in e * e)

let poisson = fun (b : [k]Double) (x : [n][k]Double) (y : [n]Double) ->
  sum n (fun i -> let e = sum k (fun j -> x[i][j] * b[j]) in exp e - y[i] * e)

let network = fun (w : [h][k]Double) (b : [h]Double) (v : [m][h]Double) (x : [n][k]Double) ->
  sum n (fun i ->
    let a = build h (fun o -> tanh (b[o] + sum k (fun j -> w[o][j] * x[i][j])))
    let e = build m (fun o -> sum h (fun j -> v[o][j] * a[j]))
    logSumExp e - e[0])

let window = fun (w : [h][k]Double) (x : [l][l]Double) ->
  sum (l - h + 1) (fun i -> sum (l - k + 1) (fun j ->
    let e = sum h (fun a -> sum k (fun b -> w[a][b] * x[i + a][j + b])) in tanh e))

let channels = fun (x : [n + k][m]Double) (w : [h][k]Double) (y : [n][m]Double) ->
  sum n (fun i -> sum m (fun j -> sum h (fun c ->
    let s = sum k (fun a -> w[c][a] * x[i + a][j]) in y[i][j] * s * s)))
";

/// Returns the gradient of a program by these arguments, or by all.
fn gradient(name: &str, by: &[&str]) -> Function {
    let function = Module::from_text("nests.ft", PROGRAMS).unwrap().function(name).unwrap();
    let gradient = function.gradient().with_value();
    if by.is_empty() { gradient.function().unwrap() } else { gradient.by(by).function().unwrap() }
}

#[test]
fn transposed_loops_share_computations() {
    let sequential = CompileOptions { sequential: true, ..CompileOptions::default() };
    for (name, what, often) in [
        // Once for the value and all its derivatives.
        ("layer", "= tanh ", 1),
        ("attention", "= exp ", 1),
        // The product, the square, and the update of each factor.
        ("factors", "mul_add", 4),
        ("covariance", "mul_add", 4),
    ] {
        let kernel = gradient(name, &[]).compile_with(&sequential).unwrap().listing();
        assert_eq!(kernel.matches(what).count(), often, "{name}\n{kernel}");
    }
}

#[test]
fn gradients_are_those_of_loops_in_order() {
    let in_order = CompileOptions { sequential: true, backend: Backend::Interpreter, ..CompileOptions::default() };
    let mut distributed = Vec::new();
    for (name, by, shapes) in [
        ("layer", [].as_slice(), ["hk", "h", "nk"].as_slice()),
        ("factors", &[], &["nk", "mk", "nm"]),
        ("distances", &[], &["nk", "mk"]),
        ("batch", &[], &["bnk", "bkm"]),
        ("covariance", &[], &["nk"]),
        ("gram", &[], &["nk"]),
        ("attention", &[], &["nk", "mk", "mh"]),
        ("convolution", &[], &["NM", "55", "nm"]),
        ("convolution", &["x"], &["NM", "55", "nm"]),
        ("convolution", &["w"], &["NM", "55", "nm"]),
        ("inner", &[], &["LM", "32"]),
        ("smoothing", &[], &["l", "k", "n"]),
        ("smoothing", &["x"], &["l", "k", "n"]),
        ("regression", &[], &["l", "k"]),
        ("regression", &["a"], &["l", "k"]),
        ("poisson", &[], &["k", "nk", "n"]),
        ("poisson", &["b"], &["k", "nk", "n"]),
        ("channels", &[], &["lm", "hk", "nm"]),
        ("channels", &["x"], &["lm", "hk", "nm"]),
        ("network", &[], &["hk", "h", "mh", "nk"]),
        ("network", &["w"], &["hk", "h", "mh", "nk"]),
        ("network", &["w", "b", "v"], &["hk", "h", "mh", "nk"]),
        ("window", &[], &["hk", "qq"]),
        ("window", &["w"], &["hk", "qq"]),
    ] {
        let function = gradient(name, by);
        let (expected, found) = (function.compile_with(&in_order).unwrap(), function.compile().unwrap());
        // The length of a tile.
        if ["= int 32\n", "= int 256\n"].iter().any(|stretch| found.listing().contains(stretch)) {
            distributed.push((name, by));
        }
        for (n, m, k, h) in [(1, 1, 1, 1), (3, 35, 2, 5), (33, 9, 5, 2), (40, 41, 17, 8), (70, 3, 34, 1)] {
            let extent = |letter: char| match letter {
                'n' => n,
                'm' => m,
                'k' => k,
                'h' => h,
                'b' => 3,
                'l' => n + k,
                'q' => m + h.max(k),
                'L' => n + 1,
                '2' => 2,
                '3' => 3,
                'N' => n + 4,
                'M' => m + 4,
                _ => 5,
            };
            let mut seed = 0;
            let args: Vec<Value<f64>> =
                shapes.iter().map(|s| array(&s.chars().map(extent).collect::<Vec<_>>(), &mut seed)).collect();
            let [expected, found] = [&expected, &found]
                .map(|program| program.call(&args).unwrap().iter().flat_map(numbers).collect::<Vec<f64>>());
            let largest = expected.iter().fold(1e-3, |most: f64, x| most.max(x.abs()));
            assert_eq!(expected.len(), found.len());
            for (x, y) in expected.iter().zip(&found) {
                assert!((x - y).abs() <= 1e-12 * largest, "{name} at {n}, {m}, {k}, {h}: {x} and {y}");
            }
        }
    }
    let expected = [
        ("layer", &[] as &[&str]),
        ("factors", &[]),
        ("batch", &[]),
        ("covariance", &[]),
        ("gram", &[]),
        ("attention", &[]),
        ("convolution", &[]),
        ("convolution", &["x"]),
        ("convolution", &["w"]),
        ("inner", &[]),
        ("smoothing", &[]),
        ("smoothing", &["x"]),
        ("regression", &[]),
        ("network", &[]),
        ("network", &["w"]),
        ("network", &["w", "b", "v"]),
        ("window", &[]),
        ("window", &["w"]),
    ];
    // A loop of `channels` has its own elements in all of them.
    assert_eq!(distributed, expected);
}

/// Short rows have a lane each, long ones eight lanes, in the value and in its gradient.
#[test]
fn nests_over_rows_are_written_for_short_and_for_long_rows() {
    let value = Module::from_text("nests.ft", PROGRAMS).unwrap().function("poisson").unwrap();
    let alone = value.gradient().by(&["b"]).function().unwrap();
    for function in [value, alone, gradient("poisson", &["b"])] {
        let kernel = function.compile().unwrap().listing();
        assert!(kernel.contains("= int 64\n"), "{kernel}");
    }
}

/// Checks that a nest of additions whose inner loop does not run reads no elements.
#[test]
fn a_nest_whose_inner_loop_does_not_run_reads_nothing() {
    let text = "let f = fun (v : [n]Double) (at : [k]Int) ->
      sum k (fun i -> sum n (fun j -> v[n - 1] * v[j] * v[at[i]]))";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    let hvp = f.hvp().function().unwrap();
    for backend in [Backend::Native, Backend::Interpreter] {
        let hvp = hvp.compile_with(&CompileOptions { backend, ..CompileOptions::default() }).unwrap();
        let at = |n_at: usize| Value::Array(vec![Value::Int(0); n_at]);
        for n_at in [0, 1, 3, 40] {
            let found = hvp.call(&[Value::Array(vec![]), at(n_at), Value::Array(vec![])]).unwrap();
            assert_eq!(found, [Value::Array(vec![])], "{n_at}");
            // v ** 3 for each index.
            let found = hvp.call(&[vec![2.0].into(), at(n_at), vec![0.5].into()]).unwrap();
            assert_eq!(found, [vec![6.0 * n_at as f64].into()], "{n_at}");
        }
    }
}

/// A matrix with its transpose, beyond the second cache and within: it is read by rows, or a few columns at a time.
#[test]
fn sums_over_the_rows_of_large_matrices_are_those_of_plain_loops() {
    let text = "
let both = fun (a : [n][m]Double) (x : [m]Double) (y : [n]Double) ->
  let t = build n (fun i -> sum m (fun j -> a[i][j] * x[j]) - y[i])
  (t, build m (fun j -> 0.5 * sum n (fun i -> t[i] * a[i][j]) + x[j]), build m (fun j -> sum n (fun i -> y[i] * a[i][j])))
let loss = fun (a : [n][m]Double) (x : [m]Double) (y : [n]Double) ->
  sum n (fun i -> tanh (sum m (fun j -> a[i][j] * x[j]) - y[i]))
";
    let module = Module::from_text("large.ft", text).unwrap();
    let both = module.function("both").unwrap().compile().unwrap();
    let loss = module.function("loss").unwrap().gradient().by(&["x"]).function().unwrap().compile().unwrap();
    assert!(both.listing().contains("= int 65535\n"), "{}", both.listing());
    for (n, m) in [(301, 243), (2, 70_000), (1100, 64), (1200, 61), (37, 90)] {
        let mut seed = 0;
        let args = [array(&[n, m], &mut seed), array(&[m], &mut seed), array(&[n], &mut seed)];
        let [a, x, y] = [0, 1, 2].map(|k| numbers(&args[k]));
        let row = |i: usize| &a[m * i..m * (i + 1)];
        let products: Vec<f64> =
            (0..n).map(|i| row(i).iter().zip(&x).map(|(a, x)| a * x).sum::<f64>() - y[i]).collect();
        let by_rows =
            |weights: &[f64]| -> Vec<f64> { (0..m).map(|j| (0..n).map(|i| weights[i] * row(i)[j]).sum()).collect() };
        let mut expected = products.clone();
        expected.extend(by_rows(&products).iter().zip(&x).map(|(s, x)| 0.5 * s + x));
        expected.extend(by_rows(&y));
        let slopes: Vec<f64> = products.iter().map(|t| 1.0 - t.tanh() * t.tanh()).collect();
        for (expected, f) in [(expected, &both), (by_rows(&slopes), &loss)] {
            let found: Vec<f64> = f.call(&args).unwrap().iter().flat_map(numbers).collect();
            assert_eq!(expected.len(), found.len());
            let largest = expected.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
            for (x, y) in expected.iter().zip(&found) {
                assert!((x - y).abs() <= 1e-12 * largest, "{n}, {m}: {x} and {y}");
            }
        }
    }
}
