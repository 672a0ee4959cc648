//! Matrix library as machine code: equal to the interpreter on the derived program, in both modes; memory in proportion
//! to the matrices. (Expected values are tested where derivatives are computed.)

// A failing test stops.
#![allow(clippy::unwrap_used)]

use chainrule::{Backend, CompileOptions, Derivation, Function, Module, Rewrite, Unroll, Value};
use chainrule_cases::Xorshift;

/// Returns the function `f` of `text`.
fn function(text: &str) -> Function {
    let module = Module::from_text("f.ft", text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    module.function("f").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Returns a positive definite matrix of n rows, far from diagonal.
fn matrix(n: usize) -> Value<f64> {
    let at = |i: usize, j: usize| ((i * 7 + j * 7 + i * j * 3) % 11) as f64 / 11.0 + if i == j { 8.0 } else { 0.0 };
    Value::from((0..n).map(|i| (0..n).map(|j| at(i, j)).collect::<Vec<f64>>()).collect::<Vec<_>>())
}

fn vector(n: usize) -> Value<f64> {
    Value::from((0..n).map(|i| ((i * 5) % 7) as f64 - 2.5).collect::<Vec<f64>>())
}

fn near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0_f64, |scale, x| scale.max(x.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-10 * scale, "{what}: {found:?} instead of {expected:?}");
    }
}

/// Scalar functions of a square matrix and a vector.
const SCALARS: [(&str, &str); 8] = [
    ("solve", "vectorNorm2 (solve a b)"),
    ("inverse", "matrixNorm2 (inverse a)"),
    ("determinants", "logdet a + det (matrixSMul a 0.1) * b[0]"),
    ("cholesky", "vectorNorm2 (solveCholesky (cholesky a) b) + matrixSum (cholesky a)"),
    ("lu", "let (l, u, p) = lu a in matrixNorm2 l + vectorDot (solveUpper u b) b + b[p[0]]"),
    ("qr", "let (q, r) = qr a in vectorDot (solveUpper r b) b + vectorSum (matrixVectorMul q b)"),
    ("columns", "matrixNorm2 (solveMatrix a (solveLowerMatrix a [b, b][0:])) "),
    ("rest", "logSumExp b + matrixSum (kronecker a [b]) + vectorNorm2 (convolve b (cumsum (softmax b)))"),
];

#[test]
fn machine_code_agrees_with_the_interpreter() {
    for (name, body) in SCALARS {
        let body = body.replace("[b, b][0:]", "(matrixTranspose [b, b])");
        let text = format!("let f = fun (a : [n][n]Double) (b : [n]Double) -> {body}");
        let f = function(&text);
        let reverse = f.gradient().with_value().strategy("reverse").function().unwrap();
        let forward = f.gradient().with_value().strategy("forward").function().unwrap();
        let along = f.hvp().by(&["b"]).function().unwrap();
        for n in [1, 2, 5] {
            let args = [matrix(n), vector(n)];
            let run = |f: &Function, options: &CompileOptions, args: &[Value<f64>]| -> Vec<f64> {
                let values = f.compile_with(options).unwrap().call(args).unwrap_or_else(|e| panic!("{name}: {e}"));
                values.iter().flat_map(|value| value.reals().into_iter().copied().collect::<Vec<_>>()).collect()
            };
            let plain =
                CompileOptions { backend: Backend::Interpreter, rewrite: Rewrite::Off, ..CompileOptions::default() };
            let slow = |f: &Function, args: &[Value<f64>]| run(f, &plain, args);
            let fast = |f: &Function, args: &[Value<f64>]| run(f, &CompileOptions::default(), args);
            let expected = slow(&reverse, &args);
            near(&slow(&forward, &args), &expected, &format!("{name}: forward"));
            near(&fast(&f, &args), &slow(&f, &args), &format!("{name}: value"));
            near(&fast(&reverse, &args), &expected, &format!("{name}: reverse, native"));
            near(&fast(&forward, &args), &expected, &format!("{name}: forward, native"));
            let more = [matrix(n), vector(n), vector(n)];
            near(&fast(&along, &more), &slow(&along, &more), &format!("{name}: second"));
            // As text, rules included, and parsed again; tuples of one have no text.
            if name != "rest" {
                let again = function(&f.listing());
                near(&fast(&again, &args), &fast(&f, &args), &format!("{name}: as text"));
                let again = again.gradient().with_value().function().unwrap();
                near(&fast(&again, &args), &expected, &format!("{name}: as text, derived"));
            }
        }
    }
}

/// `cholesky` and its derivatives work on panels of 32 rows: sizes below, at and across their borders.
#[test]
fn panels_of_symmetric_matrices_are_factored_and_differentiated() {
    let text = "
let half = fun (a : [n][n]Double) -> let l = cholesky a in sum n (fun i -> log l[i][i])
let f = fun (a : [n][n]Double) ->
  let a = matrixAdd a (matrixSMul (matrixEye n) (real n))
  let twice = matrixAdd a (matrixTranspose a)
  let l = cholesky a
  let g = gradient half a
  let left = matrixSub (matrixSMul (matrixMul l (matrixTranspose l)) 2) twice
  let inverse = matrixSub (matrixMul g twice) (matrixEye n)
  let along = jvp half a (matrixOnes n n) - matrixSum g
  [matrixNorm left, matrixNorm inverse, along, matrixNorm (matrixSub l (lowerTriangle l))]
";
    let f = function(text).compile().unwrap();
    for n in [1, 31, 32, 33, 63, 64, 65, 97, 130] {
        let errors = f.call(&[matrix(n)]).unwrap();
        let errors: Vec<f64> = errors.iter().flat_map(Value::reals).copied().collect();
        assert_eq!(errors.len(), 4);
        assert!(errors.iter().all(|e| e.abs() <= 1e-11 * n as f64), "{n}: {errors:?}");
    }
}

#[test]
fn a_gradient_needs_memory_for_some_matrices() {
    for (name, body) in SCALARS.into_iter().filter(|(name, _)| !["columns", "rest"].contains(name)) {
        let text = format!("let f = fun (a : [n][n]Double) (b : [n]Double) -> {body}");
        let gradient = function(&text).gradient().with_value().compile().unwrap();
        let matrices = |n: usize| {
            let prepared = gradient.prepare(&[matrix(n), vector(n)]).unwrap();
            prepared.workspace_len() as f64 / (n * n) as f64
        };
        let (few, many) = (matrices(20), matrices(80));
        assert!(many < 1.5 * few && many < 80.0, "{name}: {few} matrices, then {many}");
    }
}

#[test]
fn functions_with_stated_derivatives_keep_their_loops() {
    // The library's rules are exact derivatives of the definitions: unrolling does not change results.
    let f = function("let f = fun (v : [n]Double) -> logSumExp v");
    let straight = f.unrolled(&[("n", 3)]).unwrap().gradient().compile().unwrap();
    let loops = f.gradient().compile().unwrap();
    let at: &[f64] = &[1.0, 3.0, 2.0];
    near(&straight.eval(&[at]).unwrap()[0], &loops.eval(&[at]).unwrap()[0], "logSumExp");
    // A program's rules need not be.
    let f = function("let f = fun (v : [n]Double) -> sum n (fun i -> v[i] * constant v[i])");
    let why = f.unrolled(&[("n", 3)]).unwrap_err().to_string();
    assert!(why.contains("the loops of `f` cannot be unrolled"), "{why}");
}

#[test]
fn pivots_are_unrolled() {
    let bodies = [
        ("solve a b", 4),
        ("matrixVectorMul (inverse a) b", 3),
        ("[logdet a, b[0]]", 3),
        ("[det a, b[0]]", 2),
        ("let (l, u, p) = lu a in build 2 (fun i -> b[p[i]] * l[1][i] + u[i][1] + real p[i])", 3),
    ];
    // Each of these orders of rows makes other pivots.
    let orders: [[usize; 4]; 6] = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 0, 1, 3], [1, 2, 0, 3], [2, 1, 0, 3], [3, 2, 1, 0]];
    for (body, most) in bodies {
        for n in 2..=most {
            let f = function(&format!("let f = fun (a : [{n}][{n}]Double) (b : [{n}]Double) -> {body}"));
            for what in [Function::value as fn(&Function) -> Derivation, Function::jacobian] {
                let [straight, loops] = [Unroll::Always, Unroll::Never].map(|unroll| {
                    let derived = what(&f.clone().unroll(unroll)).function().unwrap();
                    assert_eq!(derived.keeps_loops(), unroll == Unroll::Never);
                    derived.compile().unwrap()
                });
                for order in orders.iter().map(|order| order.iter().copied().filter(|i| *i < n).collect::<Vec<_>>()) {
                    let at = |i: usize, j: usize| {
                        let large = if order[i] == j { 4.0 + i as f64 } else { 0.0 };
                        // A zero where the first pivot is sought, and rows of equal size.
                        large + if i + j == 1 { 0.0 } else { ((i * 7 + j * 5) % 4) as f64 / 4.0 }
                    };
                    let a = (0..n).map(|i| (0..n).map(|j| at(i, j)).collect::<Vec<f64>>()).collect::<Vec<_>>();
                    let args = [Value::from(a), vector(n)];
                    let [found, expected] = [&straight, &loops].map(|f| -> Vec<f64> {
                        let values = f.call(&args).unwrap();
                        values.iter().flat_map(|value| value.reals().into_iter().copied().collect::<Vec<_>>()).collect()
                    });
                    near(&found, &expected, &format!("{body}, {order:?}"));
                }
            }
        }
    }
    // By itself the compiler unrolls small systems.
    for (n, unrolls) in [(3, true), (6, false)] {
        let f = function(&format!("let f = fun (a : [{n}][{n}]Double) (b : [{n}]Double) -> solve a b"));
        assert_eq!(f.value().function().unwrap().keeps_loops(), !unrolls, "{n}: {:?}", f.unrolling());
    }
}

/// Returns a matrix of `n` rows with entries between -1/2 and 1/2, the first one 0, and ones on the diagonal of further
/// rows up to `all`; its rows and columns are in pseudorandom orders, which are returned as well.
fn beside_the_identity(n: usize, all: usize) -> (Vec<Vec<f64>>, Vec<usize>, Vec<usize>) {
    let mut random = Xorshift::new(17);
    let [rows, columns] = [(); 2].map(|()| {
        let mut order: Vec<usize> = (0..all).collect();
        (1..all).rev().for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
        order
    });
    let small: Vec<Vec<f64>> = (0..n).map(|_| (0..n).map(|_| random.between(-0.5, 0.5)).collect()).collect();
    let at = |i: usize, j: usize| match (i < n && j < n, i == j) {
        (true, _) if i + j == 0 => 0.0,
        (true, _) => small[i][j],
        (false, is_diagonal) => f64::from(u8::from(is_diagonal)),
    };
    let matrix = rows.iter().map(|i| columns.iter().map(|j| at(*i, *j)).collect()).collect();
    (matrix, rows, columns)
}

#[test]
fn matrices_factored_by_panels_have_the_solutions_of_small_ones() {
    let f = function(
        "let f = fun (a : [n][n]Double) (b : [n]Double) ->
          let (l, u, p) = lu a
          let rest = matrixNorm (matrixSub (matrixMul l u) (build n (fun i -> a[p[i]])))
          (solve a b, logdet a, det a, rest, vectorSum (build n (fun i -> real p[i])))",
    );
    let compiled = f.compile().unwrap();
    let run = |a: &[Vec<f64>], b: &[f64]| {
        let results = compiled.call(&[a.to_vec().into(), b.to_vec().into()]).unwrap();
        results.iter().flat_map(|value| value.reals().into_iter().copied().collect::<Vec<_>>()).collect::<Vec<f64>>()
    };
    let (n, all) = (200, 300);
    let b: Vec<f64> = (0..all).map(|i| if i < n { (i % 7) as f64 - 2.5 } else { 0.0 }).collect();
    let (large, rows, columns) = beside_the_identity(n, all);
    let place = |order: &[usize], i: usize| order.iter().position(|at| *at == i).unwrap();
    let small: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| large[place(&rows, i)][place(&columns, j)]).collect()).collect();
    let moved: Vec<f64> = rows.iter().map(|i| b[*i]).collect();
    let (expected, found) = (run(&small, &b[..n]), run(&large, &moved));
    let solution: Vec<f64> = (0..n).map(|j| found[place(&columns, j)]).collect();
    near(&solution, &expected[..n], "solution");
    let (expected, found) = (&expected[n..], &found[all..]);
    near(&found[..1], &expected[..1], "logdet");
    assert!((found[1].abs() / expected[1].abs() - 1.0).abs() < 1e-10, "{} and {}", found[1], expected[1]);
    assert!(found[2] < 1e-11 && expected[2] < 1e-11, "{found:?}");
    assert_eq!(found[3], (all * (all - 1) / 2) as f64, "a permutation");
    // Equal rows, and a column of zeros: the factors are finite, and their product is the matrix.
    let mut singular = large;
    singular[270] = singular[13].clone();
    singular.iter_mut().for_each(|row| row[40] = 0.0);
    let found = run(&singular, &moved);
    assert!(found[all + 2] < 1e-11, "{}", found[all + 2]);
    assert_eq!(found[all + 1], 0.0, "the determinant");
}

#[test]
fn gradients_of_large_systems_solve_the_transposed_system() {
    let f = function("let f = fun (a : [n][n]Double) (b : [n]Double) -> vectorSum (solve a b)");
    let gradient = f.gradient().by(&["b"]).compile().unwrap();
    let (a, ..) = beside_the_identity(256, 257);
    let b = vec![1.0; 257];
    let found = gradient.call(&[a.clone().into(), b.into()]).unwrap();
    let y: Vec<f64> = found[0].reals().into_iter().copied().collect();
    let products: Vec<f64> = (0..257).map(|j| (0..257).map(|i| a[i][j] * y[i]).sum()).collect();
    near(&products, &[1.0; 257], "transposed product");
}
