//! Matrix library: values against naive Rust, derivatives by the library's rules against those of the definitions as
//! differentiated by the evaluator (which ignores the rules of the library), against central differences, and in both
//! modes, nested in any order. All except the values are in extended precision.

// A failing test stops.
#![allow(clippy::unwrap_used, clippy::cloned_ref_to_slice_refs)]

use chainrule_autodiff::{check, expand};
use chainrule_base::Sources;
use chainrule_ir::difference::{with_cotangent, with_direction};
use chainrule_ir::{Function, Program, Type, Value, evaluate};
use chainrule_ops::{Big, F64, Precise};

type Matrix = Vec<Vec<f64>>;

fn load(text: &str) -> Program {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")))
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Returns the function `f`, the last definition of `text`.
fn function(text: &str) -> Function {
    let function = load(text).elaborate("f").unwrap_or_else(|e| panic!("{e}\n{text}"));
    chainrule_ir::verify(&function).unwrap_or_else(|found| panic!("{found:?}"));
    function
}

/// Returns the value of `f` by compiled code, which equals the evaluator's.
fn value(text: &str, args: &[Value<f64>]) -> Value<f64> {
    let function = function(text);
    let expected = evaluate(&function, &mut F64, args).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let expanded = expand(&function).unwrap_or_else(|e| panic!("{e}"));
    chainrule_ir::verify(&expanded).unwrap_or_else(|found| panic!("{found:?}"));
    let found = evaluate(&expanded, &mut F64, args).unwrap();
    let bits = |value: &Value<f64>| value.reals().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&found), bits(&expected), "{text}");
    found
}

fn matrix(value: &Value<f64>) -> Matrix {
    let Value::Array(rows) = value else { panic!("{value:?}") };
    rows.iter().map(|row| row.reals().into_iter().copied().collect()).collect()
}

fn vector(value: &Value<f64>) -> Vec<f64> {
    value.reals().into_iter().copied().collect()
}

fn parts(value: Value<f64>) -> Vec<Value<f64>> {
    match value {
        Value::Tuple(parts) => parts,
        other => panic!("{other:?}"),
    }
}

/// Pseudorandom numbers between -1 and 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Twenty bits: exact in all subsequent arithmetic.
        #[allow(clippy::cast_precision_loss)]
        let x = (self.0 >> 44) as f64 / f64::from(1u32 << 19);
        x - 1.0
    }

    fn vector(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.next()).collect()
    }

    fn matrix(&mut self, r: usize, c: usize) -> Matrix {
        (0..r).map(|_| self.vector(c)).collect()
    }

    /// Returns a well-conditioned matrix that always needs pivoting.
    fn regular(&mut self, n: usize) -> Matrix {
        let mut a = self.matrix(n, n);
        for (i, row) in a.iter_mut().enumerate() {
            row[(i * 2 + 1) % n.max(1) % n] += 0.5;
            row[n - 1 - i] += 3.0;
        }
        a
    }

    fn positive(&mut self, n: usize) -> Matrix {
        let b = self.matrix(n, n);
        let mut a = mul(&b, &transpose(&b));
        for (i, row) in a.iter_mut().enumerate() {
            row[i] += 1.0;
        }
        a
    }

    fn lower(&mut self, n: usize) -> Matrix {
        let mut a = self.matrix(n, n);
        for (i, row) in a.iter_mut().enumerate() {
            row[i] = 1.5 + row[i].abs();
        }
        a
    }

    /// Doubles in the shape of a value.
    fn like(&mut self, value: &Value<f64>) -> Value<f64> {
        value.map(&mut |_| self.next())
    }
}

fn transpose(a: &Matrix) -> Matrix {
    (0..a.first().map_or(0, Vec::len)).map(|j| a.iter().map(|row| row[j]).collect()).collect()
}

fn mul(a: &Matrix, b: &Matrix) -> Matrix {
    let t = transpose(b);
    a.iter().map(|row| t.iter().map(|column| row.iter().zip(column).map(|(x, y)| x * y).sum()).collect()).collect()
}

fn apply(a: &Matrix, x: &[f64]) -> Vec<f64> {
    a.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
}

/// Gaussian elimination with complete pivoting, by columns: returns the solution, and the determinant.
fn gauss(a: &Matrix, b: &[f64]) -> (Vec<f64>, f64) {
    let n = a.len();
    let mut w: Matrix = a.iter().zip(b).map(|(row, b)| row.iter().copied().chain([*b]).collect()).collect();
    let (mut det, mut column_of): (f64, Vec<usize>) = (1.0, (0..n).collect());
    for k in 0..n {
        let places = (k..n).flat_map(|i| (k..n).map(move |j| (i, j)));
        let (i, j) = places.max_by(|x, y| w[x.0][x.1].abs().total_cmp(&w[y.0][y.1].abs())).unwrap();
        if i != k {
            w.swap(i, k);
            det = -det;
        }
        if j != k {
            w.iter_mut().for_each(|row| row.swap(j, k));
            column_of.swap(j, k);
            det = -det;
        }
        det *= w[k][k];
        let pivot = w[k].clone();
        for row in w.iter_mut().skip(k + 1) {
            let f = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= f * p);
        }
    }
    let mut x = vec![0.0; n];
    let mut y = vec![0.0; n];
    for k in (0..n).rev() {
        y[k] = (w[k][n] - (k + 1..n).map(|j| w[k][j] * y[j]).sum::<f64>()) / w[k][k];
        x[column_of[k]] = y[k];
    }
    (x, det)
}

fn near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0_f64, |scale, x| scale.max(x.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-12 * scale, "{what}: {found:?} instead of {expected:?}");
    }
}

fn nears(found: &Matrix, expected: &Matrix, what: &str) {
    near(&found.concat(), &expected.concat(), what);
}

const SIZES: [usize; 5] = [1, 2, 3, 5, 8];

#[test]
fn systems_are_solved() {
    for (seed, n) in (0..).zip(SIZES) {
        let mut numbers = Numbers(seed);
        let (a, b) = (numbers.regular(n), numbers.vector(n));
        let (x, det) = gauss(&a, &b);
        let args = [a.clone().into(), b.clone().into()];
        near(&vector(&value("let f = fun (a : [n][n]Double) (b : [n]Double) -> solve a b", &args)), &x, "solve");
        let found = value("let f = fun (a : [n][n]Double) -> (det a, logdet a, inverse a)", &args[..1]);
        let found = parts(found);
        near(&vector(&found[0]), &[det], "det");
        near(&vector(&found[1]), &[det.abs().ln()], "logdet");
        let eye: Matrix = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
        nears(&mul(&matrix(&found[2]), &a), &eye, "inverse");
        let several = numbers.matrix(n, 3);
        let text = "let f = fun (a : [n][n]Double) (b : [n][m]Double) -> solveMatrix a b";
        let found = value(text, &[a.clone().into(), several.clone().into()]);
        nears(&mul(&a, &matrix(&found)), &several, "solveMatrix");
    }
}

#[test]
fn triangular_systems_are_solved() {
    for (seed, n) in (10..).zip(SIZES) {
        let mut numbers = Numbers(seed);
        // Full matrices, of which only a triangle is used.
        let (l, b) = (numbers.lower(n), numbers.vector(n));
        let masked = |keep: &dyn Fn(usize, usize) -> bool, unit: bool| -> Matrix {
            let at = |i: usize, j: usize| match (i == j, keep(i, j)) {
                (true, _) if unit => 1.0,
                (_, true) => l[i][j],
                _ => 0.0,
            };
            (0..n).map(|i| (0..n).map(|j| at(i, j)).collect()).collect()
        };
        let (lower, upper) = (|i: usize, j: usize| j <= i, |i: usize, j: usize| j >= i);
        for (name, m) in [
            ("solveLower", masked(&lower, false)),
            ("solveLowerTransposed", transpose(&masked(&lower, false))),
            ("solveUpper", masked(&upper, false)),
            ("solveUpperTransposed", transpose(&masked(&upper, false))),
            ("solveUnitLower", masked(&lower, true)),
            ("solveUnitLowerTransposed", transpose(&masked(&lower, true))),
            ("solveUnitUpper", masked(&upper, true)),
        ] {
            let text = format!("let f = fun (l : [n][n]Double) (b : [n]Double) -> {name} l b");
            let found = value(&text, &[l.clone().into(), b.clone().into()]);
            near(&apply(&m, &vector(&found)), &b, name);
        }
        let several = numbers.matrix(n, 2);
        for (name, m) in [
            ("solveLowerMatrix", masked(&lower, false)),
            ("solveUpperMatrix", masked(&upper, false)),
            ("solveUnitLowerMatrix", masked(&lower, true)),
            ("solveUnitUpperMatrix", masked(&upper, true)),
        ] {
            let text = format!("let f = fun (l : [n][n]Double) (b : [n][m]Double) -> {name} l b");
            let found = value(&text, &[l.clone().into(), several.clone().into()]);
            nears(&mul(&m, &matrix(&found)), &several, name);
        }
    }
}

#[test]
fn factors_multiply_to_the_matrix() {
    for (seed, n) in (20..).zip(SIZES) {
        let mut numbers = Numbers(seed);
        let a = numbers.regular(n);
        let found = parts(value("let f = fun (a : [n][n]Double) -> lu a", &[a.clone().into()]));
        let (l, u) = (matrix(&found[0]), matrix(&found[1]));
        let Value::Array(p) = &found[2] else { panic!("{found:?}") };
        let rows: Matrix =
            p.iter().map(|i| if let Value::Int(i) = i { a[*i as usize].clone() } else { vec![] }).collect();
        nears(&mul(&l, &u), &rows, "lu");
        for i in 0..n {
            assert_eq!(l[i][i], 1.0);
            for j in 0..n {
                assert!(l[i][j].abs() <= 1.0, "partial pivoting: {l:?}");
                assert!(if i < j { l[i][j] == 0.0 } else { i == j || u[i][j] == 0.0 }, "triangles: {l:?} {u:?}");
            }
        }
        let s = numbers.positive(n);
        let l = matrix(&value("let f = fun (a : [n][n]Double) -> cholesky a", &[s.clone().into()]));
        nears(&mul(&l, &transpose(&l)), &s, "cholesky");
        let b = numbers.vector(n);
        let text = "let f = fun (a : [n][n]Double) (b : [n]Double) -> solveCholesky (cholesky a) b";
        near(&apply(&s, &vector(&value(text, &[s.clone().into(), b.clone().into()]))), &b, "solveCholesky");
        for m in [n, n + 1, n + 3] {
            let a = numbers.matrix(m, n);
            let found = parts(value("let f = fun (a : [m][n]Double) -> qr a", &[a.clone().into()]));
            let (q, r) = (matrix(&found[0]), matrix(&found[1]));
            nears(&mul(&q, &r), &a, "qr");
            let eye: Matrix = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
            nears(&mul(&transpose(&q), &q), &eye, "q");
            assert!((0..n).all(|i| r[i][i] >= 0.0 && r[i][..i].iter().all(|x| *x == 0.0)), "{r:?}");
            let b = numbers.vector(m);
            let text = "let f = fun (a : [m][n]Double) (b : [m]Double) -> leastSquares a b";
            let x = vector(&value(text, &[a.clone().into(), b.clone().into()]));
            let normal = gauss(&mul(&transpose(&a), &a), &apply(&transpose(&a), &b)).0;
            let scale = normal.iter().fold(1.0_f64, |s, x| s.max(x.abs()));
            assert!(x.iter().zip(&normal).all(|(x, y)| (x - y).abs() < 1e-8 * scale), "{x:?} {normal:?}");
        }
    }
}

/// Returns the sum of the doubles of the result, each with its own weight: the function under differentiation.
fn weights(ty: &Type, value: &Value<f64>, numbers: &mut Numbers) -> Option<Value<f64>> {
    match (ty, value) {
        _ if !ty.has_double() => None,
        (Type::Array(_, element), Value::Array(items)) => {
            Some(Value::Array(items.iter().filter_map(|item| weights(element, item, numbers)).collect()))
        }
        (Type::Tuple(fields, _), Value::Tuple(items)) => {
            Some(Value::Tuple(fields.iter().zip(items).filter_map(|(ty, item)| weights(ty, item, numbers)).collect()))
        }
        _ => Some(Value::Real(numbers.next())),
    }
}

fn directions(function: &Function, args: &[Value<f64>], numbers: &mut Numbers) -> Vec<Value<f64>> {
    let real = function.params.iter().zip(args).filter(|(param, _)| function.ty(**param).has_double());
    real.map(|(_, arg)| numbers.like(arg)).collect()
}

fn with(args: &[Value<f64>], more: Vec<Value<f64>>) -> Vec<Value<f64>> {
    args.iter().cloned().chain(more).collect()
}

/// Checks all properties of the derivatives of `f`, the last definition of `text`, at `args`.
fn derivatives(precise: &mut Precise, text: &str, args: &[Value<f64>], seed: u64) {
    let numbers = &mut Numbers(seed);
    let f = function(text);
    let value = evaluate(&f, &mut F64, args).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let told = |what: &str, outcome: Result<Option<Function>, String>| {
        outcome
            .unwrap_or_else(|why| panic!("{what}: {why}\n{text}\n{args:?}"))
            .unwrap_or_else(|| panic!("{what}\n{text}"))
    };
    let forward = (with_direction(&f), with(args, directions(&f, args, numbers)));
    let cotangent = weights(f.result_type(), &value, numbers).unwrap();
    let reverse = (with_cotangent(&f).unwrap(), with(args, vec![cotangent]));
    // By rules, and by differentiating the definition.
    let expanded = told("forward", check::reverse_expansion(precise, &forward.0, &forward.1));
    told("reverse", check::reverse_expansion(precise, &reverse.0, &reverse.1));
    // Against central differences of the value.
    let big = |precise: &mut Precise, values: &[Value<f64>]| -> Vec<Value<Big>> {
        values.iter().map(|value| value.map(&mut |x| precise.from_f64(*x))).collect()
    };
    let point = big(precise, args);
    let moved = big(precise, &forward.1);
    let duals = evaluate(&expanded, precise, &moved).unwrap();
    let tangents: Vec<Big> = duals.reals().into_iter().skip(1).step_by(2).cloned().collect();
    let mut along = moved[args.len()..].iter();
    let along: Vec<Value<Big>> = (f.params.iter().zip(&point))
        .map(|(param, at)| if f.ty(*param).has_double() { along.next().unwrap().clone() } else { at.clone() })
        .collect();
    let told = check::central_differences(precise, &f, &point, &along, &tangents);
    assert!(told.unwrap_or_else(|why| panic!("differences: {why}\n{text}\n{args:?}")).is_some(), "{text}");
    // Second derivatives: each mode of each.
    for (first, args) in [forward, reverse] {
        let value = evaluate(&first, &mut F64, &args).unwrap();
        let twice = with(&args, directions(&first, &args, numbers));
        let outcome = check::reverse_expansion(precise, &with_direction(&first), &twice);
        assert!(outcome.unwrap_or_else(|why| panic!("forward over: {why}\n{text}")).is_some());
        let twice = with(&args, vec![weights(first.result_type(), &value, numbers).unwrap()]);
        let outcome = check::reverse_expansion(precise, &with_cotangent(&first).unwrap(), &twice);
        assert!(outcome.unwrap_or_else(|why| panic!("reverse over: {why}\n{text}")).is_some());
    }
}

#[test]
fn derivatives_of_what_is_solved() {
    let precise = &mut Precise::new();
    for (seed, n) in [(30, 1), (31, 2), (32, 3)] {
        let mut numbers = Numbers(seed);
        let (a, b, several) = (numbers.regular(n), numbers.vector(n), numbers.matrix(n, 2));
        let l = numbers.lower(n);
        let (a, b, several, l): (Value<f64>, Value<f64>, Value<f64>, Value<f64>) =
            (a.into(), b.into(), several.into(), l.into());
        let both = [a.clone(), b.clone()];
        derivatives(precise, "let f = fun (a : [n][n]Double) (b : [n]Double) -> solve a b", &both, seed);
        for name in ["det", "logdet", "inverse", "lu"] {
            derivatives(precise, &format!("let f = fun (a : [n][n]Double) -> {name} a"), &[a.clone()], seed);
        }
        let matrices = ["solveLowerMatrix", "solveUpperMatrix", "solveUnitLowerMatrix", "solveUnitUpperMatrix"]
            .map(|name| (name, &l));
        for (name, m) in matrices.into_iter().chain([("solveMatrix", &a)]) {
            let text = format!("let f = fun (a : [n][n]Double) (b : [n][m]Double) -> {name} a b");
            derivatives(precise, &text, &[m.clone(), several.clone()], seed);
        }
        for name in ["solveLower", "solveLowerTransposed", "solveUpper", "solveUpperTransposed", "solveUnitLower"]
            .into_iter()
            .chain(["solveUnitLowerTransposed", "solveUnitUpper"])
        {
            let text = format!("let f = fun (a : [n][n]Double) (b : [n]Double) -> {name} a b");
            derivatives(precise, &text, &[l.clone(), b.clone()], seed);
        }
    }
}

#[test]
fn derivatives_of_factors() {
    let precise = &mut Precise::new();
    for (seed, n) in [(40, 1), (41, 2), (42, 3)] {
        let mut numbers = Numbers(seed);
        let (a, b) = (numbers.positive(n), numbers.vector(n));
        derivatives(precise, "let f = fun (a : [n][n]Double) -> cholesky a", &[a.clone().into()], seed);
        let text = "
            let f = fun (a : [n][n]Double) (b : [n]Double) ->
              let l = cholesky a
              -0.5 * vectorNorm2 (solveLower l b) - vectorSum (vectorMap (matrixDiag l) log)";
        derivatives(precise, text, &[a.into(), b.into()], seed);
        let tall = numbers.matrix(n + 1, n);
        derivatives(precise, "let f = fun (a : [m][n]Double) -> qr a", &[tall.clone().into()], seed);
        let square = numbers.regular(n);
        derivatives(precise, "let f = fun (a : [m][n]Double) -> qr a", &[square.into()], seed);
        let text = "let f = fun (a : [m][n]Double) (b : [m]Double) -> leastSquares a b";
        derivatives(precise, text, &[tall.into(), numbers.vector(n + 1).into()], seed);
    }
}

#[test]
fn derivatives_of_the_rest() {
    let precise = &mut Precise::new();
    let mut numbers = Numbers(50);
    let (v, w): (Value<f64>, Value<f64>) = (numbers.vector(4).into(), numbers.vector(3).into());
    for name in ["logSumExp", "softmax", "logSoftmax", "cumsum", "cumprod", "vectorNorm1", "vectorNormInf"]
        .into_iter()
        .chain(["vectorNorm", "vectorVariance"])
    {
        derivatives(precise, &format!("let f = fun (v : [n]Double) -> {name} v"), &[v.clone()], 51);
    }
    derivatives(precise, "let f = fun (v : [n]Double) -> vectorNormP v 3", &[v.clone()], 52);
    for name in ["convolve", "convolveValid", "correlate", "outer"] {
        let text = format!("let f = fun (v : [n]Double) (w : [m]Double) -> {name} v w");
        derivatives(precise, &text, &[v.clone(), w.clone()], 53);
    }
    let (a, b): (Value<f64>, Value<f64>) = (numbers.matrix(3, 4).into(), numbers.matrix(2, 3).into());
    for name in ["kronecker", "matrixConvolve", "matrixCorrelate"] {
        let text = format!("let f = fun (a : [r][c]Double) (b : [s][d]Double) -> {name} a b");
        derivatives(precise, &text, &[a.clone(), b.clone()], 54);
    }
    for name in ["matrixNorm", "matrixNorm1", "matrixNormInf", "flatten", "lowerTriangle", "upperTriangle"] {
        derivatives(precise, &format!("let f = fun (a : [r][c]Double) -> {name} a"), &[a.clone()], 55);
    }
    let square: Value<f64> = numbers.matrix(3, 3).into();
    derivatives(precise, "let f = fun (a : [n][n]Double) -> matrixPower a 3", &[square], 56);
    derivatives(precise, "let f = fun (v : [n]Double) -> vectorMap v (fun x -> clip x (-0.5) 0.5)", &[v], 57);
}

#[test]
fn matrices_without_rows() {
    let none: Value<f64> = Value::Array(Vec::new());
    let both = [none.clone(), none.clone()];
    let text =
        "let f = fun (a : [n][n]Double) (b : [n]Double) -> (solve a b, det a, logdet a, inverse a, cholesky a, lu a)";
    let found = parts(value(text, &both));
    assert_eq!(found[..5], [none.clone(), 1.0.into(), 0.0.into(), none.clone(), none.clone()]);
    assert_eq!(found[5], Value::Tuple(vec![none.clone(), none.clone(), none.clone()]));
    let text = "let f = fun (a : [n][n]Double) -> (gradient logdet a, gradient det a, hessian (fun v -> sum 0 (fun i -> v[i])) (flatten a))";
    assert_eq!(parts(value(text, &both[..1])), [none.clone(), none.clone(), none.clone()]);
    let text =
        "let f = fun (v : [n]Double) -> (cumsum v, cumprod v, vectorNorm1 v, vectorNormInf v, kronecker [v] [v])";
    let found = parts(value(text, &both[..1]));
    assert_eq!(found[..4], [none.clone(), none.clone(), 0.0.into(), 0.0.into()]);
    let text = "let f = fun (v : [n]Double) -> correlate [1.0, 2.0] v";
    assert_eq!(value(text, &both[..1]), vec![0.0, 0.0, 0.0].into());
    // Columns without rows.
    let text = "let f = fun (m : Card) -> qr (matrixZeros m 0)";
    assert_eq!(value(text, &[Value::Int(2)]), Value::Tuple(vec![Value::Array(vec![none.clone(), none.clone()]), none]));
}

#[test]
fn matrices_without_an_inverse() {
    let a: Value<f64> = vec![vec![1.0, 2.0], vec![2.0, 4.0]].into();
    let text = "let f = fun (a : [n][n]Double) -> (det a, logdet a, solve a (vectorOnes n), inverse a)";
    let found = parts(value(text, &[a.clone()]));
    assert_eq!(found[..2], [0.0.into(), f64::NEG_INFINITY.into()]);
    assert!(vector(&found[2]).iter().chain(&vector(&found[3])).all(|x| !x.is_finite()), "{found:?}");
    let text = "let f = fun (a : [n][n]Double) -> gradient logdet a";
    let found = evaluate(&expand(&function(text)).unwrap(), &mut F64, &[a.clone()]).unwrap();
    assert!(vector(&found).iter().all(|x| !x.is_finite()), "{found:?}");
    // No pivot in the first column at all.
    let b: Value<f64> = vec![vec![0.0, 2.0], vec![0.0, 4.0]].into();
    assert_eq!(value("let f = fun (a : [n][n]Double) -> det a", &[b]), 0.0.into());
    // NaN is propagated.
    let c: Value<f64> = vec![vec![1.0, f64::NAN], vec![2.0, 1.0]].into();
    let text = "let f = fun (a : [n][n]Double) -> (det a, solve a [1.0, 1.0])";
    let text = text.replace("[n][n]", "[2][2]");
    assert!(vector(&value(&text, &[c.clone()])).iter().all(|x| x.is_nan()));
    // Positive semidefinite, indefinite.
    let factor = |a: Value<f64>| matrix(&value("let f = fun (a : [n][n]Double) -> cholesky a", &[a]));
    assert_eq!(factor(vec![vec![4.0, 2.0], vec![2.0, 1.0]].into()), [[2.0, 0.0], [1.0, 0.0]]);
    let found = factor(vec![vec![1.0, 2.0], vec![2.0, 1.0]].into());
    assert!(found[0] == [1.0, 0.0] && found[1][0] == 2.0 && found[1][1].is_nan(), "{found:?}");
    assert!(factor(c)[1][1].is_nan());
    // Dependent columns.
    let found = parts(value("let f = fun (a : [m][n]Double) -> qr a", &[a]));
    assert!(matrix(&found[1])[1][1].abs() < 1e-15, "{found:?}");
    let zero: Value<f64> = vec![vec![0.0], vec![0.0]].into();
    let found = parts(value("let f = fun (a : [m][n]Double) -> qr a", &[zero]));
    assert_eq!((matrix(&found[0]), matrix(&found[1])), (vec![vec![1.0], vec![0.0]], vec![vec![0.0]]));
}

/// Returns the value of `f` as expanded: at these points the definition's own steps have no derivative, but the rule
/// has.
fn by_rule(text: &str, args: &[Value<f64>]) -> Vec<f64> {
    vector(&evaluate(&expand(&function(text)).unwrap(), &mut F64, args).unwrap())
}

#[test]
fn determinants_have_a_gradient_everywhere() {
    let cofactors = |a: &Matrix| -> Vec<f64> {
        let n = a.len();
        let minor = |r: usize, c: usize| -> f64 {
            let rows = a.iter().enumerate().filter(|(i, _)| *i != r).map(|(_, row)| row);
            let m: Matrix =
                rows.map(|row| row.iter().enumerate().filter(|(j, _)| *j != c).map(|(_, x)| *x).collect()).collect();
            match m.as_slice() {
                [] => 1.0,
                [x] => x[0],
                [x, y] => x[0] * y[1] - x[1] * y[0],
                _ => panic!("at most three rows"),
            }
        };
        (0..n * n).map(|k| if (k / n + k % n).is_multiple_of(2) { 1.0 } else { -1.0 } * minor(k / n, k % n)).collect()
    };
    let gradient = "let f = fun (a : [n][n]Double) -> gradient det a";
    let hessian =
        |n: usize| format!("let f = fun (v : [{}]Double) -> hessian (fun v -> det (reshape {n} {n} v)) v", n * n);
    let ranks: [&[&[f64]]; 11] = [
        &[&[3.0]],
        &[&[0.0]],
        &[&[1.0, 2.0], &[2.0, 4.0]],
        &[&[0.0, 1.0], &[0.0, 0.0]],
        &[&[0.0, 0.0], &[0.0, 0.0]],
        &[&[1.0, 2.0, 4.0], &[2.0, 4.0, 8.0], &[0.0, 0.0, 3.0]],
        &[&[0.0, 2.0, 4.0], &[0.0, 4.0, 0.0], &[0.0, 1.0, 2.0]],
        &[&[1.0, 2.0, 4.0], &[2.0, 4.0, 8.0], &[0.5, 1.0, 2.0]],
        &[&[0.0, 0.0, 0.0], &[0.0, 0.0, 0.0], &[0.0, 0.0, 0.0]],
        &[&[0.1, 0.2], &[0.3, 0.6]],
        &[&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], &[7.0, 8.0, 9.0]],
    ];
    for rows in ranks {
        let a: Matrix = rows.iter().map(|row| row.to_vec()).collect();
        let n = a.len();
        near(&by_rule(gradient, &[a.clone().into()]), &cofactors(&a), "gradient");
        // The cofactors have degree at most 2, so that differences are exact.
        let found = by_rule(&hessian(n), &[a.concat().into()]);
        for k in 0..n * n {
            let moved = |by: f64| {
                let mut a = a.clone();
                a[k / n][k % n] += by;
                cofactors(&a)
            };
            let differences: Vec<f64> = moved(1.0).iter().zip(moved(-1.0)).map(|(x, y)| (x - y) / 2.0).collect();
            let row = &found[k * n * n..(k + 1) * n * n];
            near(row, &differences, "hessian");
        }
    }
}

/// Returns the minor of `a` without these rows and columns, in integers.
fn minor(a: &[Vec<i64>], rows: &[usize], columns: &[usize]) -> i64 {
    fn expanded(a: &[Vec<i64>]) -> i64 {
        let Some((first, rest)) = a.split_first() else { return 1 };
        let without = |j: usize| -> Vec<Vec<i64>> {
            rest.iter().map(|row| row.iter().enumerate().filter(|(k, _)| *k != j).map(|(_, x)| *x).collect()).collect()
        };
        let sign = |j: usize| if j.is_multiple_of(2) { 1 } else { -1 };
        first.iter().enumerate().map(|(j, x)| if *x == 0 { 0 } else { sign(j) * x * expanded(&without(j)) }).sum()
    }
    let kept = |all: usize, out: &[usize]| (0..all).filter(|i| !out.contains(i)).collect::<Vec<_>>();
    let (r, c) = (kept(a.len(), rows), kept(a.len(), columns));
    expanded(&r.iter().map(|i| c.iter().map(|j| a[*i][*j]).collect()).collect::<Vec<_>>())
}

#[test]
fn determinants_of_whole_numbers_and_of_any_rank() {
    let value_of = "let f = fun (a : [n][n]Double) -> det a";
    let gradient = "let f = fun (a : [n][n]Double) -> gradient det a";
    let second = "let f = fun (a : [n][n]Double) (d : [n][n]Double) -> hvp det a d";
    let functions = [value_of, gradient, second].map(|text| expand(&function(text)).unwrap());
    let numbers = &mut Numbers(60);
    for n in 1..=6 {
        for rank in 0..=n {
            let mut whole = |r: usize, c: usize| -> Vec<Vec<i64>> {
                #[allow(clippy::cast_possible_truncation)]
                let next = |x: f64| (x * 4.0).round() as i64;
                (0..r).map(|_| (0..c).map(|_| next(numbers.next())).collect()).collect()
            };
            let (left, right) = (whole(n, rank), whole(rank, n));
            let a: Vec<Vec<i64>> = if rank == n {
                whole(n, n)
            } else {
                (0..n).map(|i| (0..n).map(|j| (0..rank).map(|k| left[i][k] * right[k][j]).sum()).collect()).collect()
            };
            let d = whole(n, n);
            let double = |m: &[Vec<i64>]| -> Value<f64> {
                #[allow(clippy::cast_precision_loss)]
                let rows: Matrix = m.iter().map(|row| row.iter().map(|x| *x as f64).collect()).collect();
                rows.into()
            };
            let sign = |i: usize, j: usize| if (i + j).is_multiple_of(2) { 1 } else { -1 };
            let mut first = Vec::new();
            let mut along = Vec::new();
            for (i, j) in (0..n * n).map(|k| (k / n, k % n)) {
                first.push(sign(i, j) * minor(&a, &[i], &[j]));
                let others = (0..n * n).map(|k| (k / n, k % n)).filter(|(k, l)| *k != i && *l != j);
                along.push(
                    others
                        .map(|(k, l)| {
                            let sign = sign(i + k + usize::from(k > i), j + l + usize::from(l > j));
                            sign * d[k][l] * minor(&a, &[i, k], &[j, l])
                        })
                        .sum(),
                );
            }
            let expected = [vec![minor(&a, &[], &[])], first, along];
            let args = [double(&a), double(&d)];
            for (f, expected) in functions.iter().zip(&expected) {
                let found = vector(&evaluate(f, &mut F64, &args[..f.params.len()]).unwrap());
                #[allow(clippy::cast_precision_loss)]
                let expected: Vec<f64> = expected.iter().map(|x| *x as f64).collect();
                if n <= 4 {
                    assert_eq!(found, expected, "{a:?}");
                } else {
                    // Relative to products of as many elements.
                    let size = 20.0_f64.powi(i32::try_from(n).unwrap() - 2);
                    let near = found.iter().zip(&expected).all(|(x, y)| (x - y).abs() <= 1e-13 * size.max(y.abs()));
                    assert!(near, "{a:?}: {found:?} instead of {expected:?}");
                }
            }
        }
    }
}

#[test]
fn determinants_overflow_at_their_end_only() {
    let diagonal = |d: &[f64]| -> Value<f64> {
        let rows: Matrix =
            (0..d.len()).map(|i| (0..d.len()).map(|j| if i == j { d[i] } else { 0.0 }).collect()).collect();
        rows.into()
    };
    let text = "let f = fun (a : [n][n]Double) -> (det a, matrixDiag (gradient det a), matrixDiag (hvp det a a))";
    let close = |x: f64, y: f64| x == y || (x - y).abs() <= 1e-14 * y.abs();
    for d in [
        [1e200, 1e-200, 1e200, 1e-200],
        [1e300, 1e300, 1e-300, 1e-300],
        [1e-300, 1e-300, 1e300, 1e300],
        [1e200, 1e150, 1e-150, 0.0],
    ] {
        let found = by_rule(text, &[diagonal(&d)]);
        let product = |skip: usize| -> f64 {
            let mut rest: Vec<f64> = (0..4).filter(|i| *i != skip).map(|i| d[i]).collect();
            rest.sort_by(f64::total_cmp);
            // Multiplies the smallest and the largest first.
            if rest.len() == 4 { (rest[0] * rest[3]) * (rest[1] * rest[2]) } else { rest[0] * rest[2] * rest[1] }
        };
        assert!(close(found[0], product(4)), "{found:?}");
        for i in 0..4 {
            assert!(close(found[1 + i], product(i)), "{i}: {found:?}");
            assert!(close(found[5 + i], 3.0 * product(i)), "{i}: {found:?}");
        }
    }
    let equal: Value<f64> = vec![vec![1e200; 3]; 3].into();
    assert_eq!(by_rule(text, &[equal]), [0.0; 7]);
    assert_eq!(by_rule("let f = fun (a : [n][n]Double) -> det a", &[diagonal(&[1e200, 1e200])]), [f64::INFINITY]);
}

#[test]
fn third_derivatives_of_determinants() {
    // For a diagonal matrix: the products of all elements except three.
    let text = "
        let third = fun (a : [n][n]Double) (d : [n][n]Double) ->
          derivative (derivative (derivative (fun t -> det (matrixAdd a (matrixSMul d t))))) 0
        let f = fun (a : [n]Double) (d : [n]Double) -> third (diag a) (diag d)";
    for n in 1..=5 {
        let numbers = &mut Numbers(61);
        let (a, d) = (numbers.vector(n), numbers.vector(n));
        let mut expected = 0.0;
        for (i, j, k) in (0..n * n * n).map(|t| (t / n / n, t / n % n, t % n)) {
            if i < j && j < k {
                let others: f64 = (0..n).filter(|l| ![i, j, k].contains(l)).map(|l| a[l]).product();
                expected += 6.0 * d[i] * d[j] * d[k] * others;
            }
        }
        near(&by_rule(text, &[a.into(), d.clone().into()]), &[expected], "third");
        if n <= 4 {
            // At rank 0, only three elements of three rows remain.
            let product = if n == 3 { 6.0 * d[0] * d[1] * d[2] } else { 0.0 };
            near(&by_rule(text, &[vec![0.0; n].into(), d.into()]), &[product], "third at rank 0");
        }
    }
}

#[test]
fn shares_keep_the_digits_of_small_ones() {
    // The second derivative of log (exp 0 + exp x) at x = -100 is that of its logistic function.
    let small = (-100.0_f64).exp();
    let v: Value<f64> = vec![0.0, -100.0].into();
    let text = "let f = fun (v : [n]Double) -> hessian logSumExp v";
    near_each(&by_rule(text, &[v.clone()]), &[small, -small, -small, small]);
    let text = "let f = fun (v : [n]Double) -> jacobian softmax v";
    near_each(&by_rule(text, &[v.clone()]), &[small, -small, -small, small]);
    let text = "let f = fun (v : [n]Double) -> (vjp softmax v [1.0, 0.0], jvp softmax v [0.0, 1.0])";
    near_each(&by_rule(text, &[v]), &[small, -small, -small, small]);
}

/// Like `near`, relative to each number.
fn near_each(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= 1e-14 * y.abs()), "{found:?} {expected:?}");
}

#[test]
fn large_and_infinite_exponents() {
    let (inf, none) = (f64::INFINITY, f64::NEG_INFINITY);
    let at = |text: &str, v: &[f64]| vector(&value(text, &[v.to_vec().into()]));
    let lse = "let f = fun (v : [n]Double) -> logSumExp v";
    assert_eq!(at(lse, &[1000.0, 1000.0]), [1000.0 + 2f64.ln()]);
    assert_eq!(at(lse, &[none, 3.0]), [3.0]);
    assert_eq!(at(lse, &[none, none]), [none]);
    assert_eq!(at(lse, &[inf, 1.0]), [inf]);
    assert!(at(lse, &[f64::NAN, 1.0])[0].is_nan());
    let gradient = "let f = fun (v : [n]Double) -> gradient logSumExp v";
    assert_eq!(at(gradient, &[1000.0, 1000.0, none]), [0.5, 0.5, 0.0]);
    assert_eq!(at("let f = fun (v : [n]Double) -> softmax v", &[-1000.0, 1000.0]), [0.0, 1.0]);
    assert_eq!(at("let f = fun (v : [n]Double) -> logSoftmax v", &[-1000.0, 1000.0]), [-2000.0, 0.0]);
}

#[test]
fn places_parts_and_products() {
    let v: Value<f64> = vec![1.0, 3.0, -2.0, 3.0].into();
    let text = "let f = fun (v : [n]Double) -> (argmax v, argmin v, cumsum v, cumprod v)";
    let expected =
        vec![Value::Int(1), Value::Int(2), vec![1.0, 4.0, 2.0, 5.0].into(), vec![1.0, 3.0, -6.0, -18.0].into()];
    assert_eq!(parts(value(text, &[v.clone()])), expected);
    let text = "let f = fun (v : [n]Double) -> (vectorNorm1 v, vectorNormInf v, vectorNormP v 1, vectorVariance v)";
    assert_eq!(vector(&value(text, &[v.clone()])), [9.0, 3.0, 9.0, 4.1875]);
    let w: Value<f64> = vec![1.0, 10.0].into();
    let pair = [v.clone(), w];
    let text = |name: &str| format!("let f = fun (v : [n]Double) (w : [m]Double) -> {name} v w");
    assert_eq!(value(&text("convolve"), &pair), vec![1.0, 13.0, 28.0, -17.0, 30.0].into());
    assert_eq!(value(&text("convolveValid"), &pair), vec![13.0, 28.0, -17.0].into());
    assert_eq!(value(&text("correlate"), &pair), vec![31.0, -17.0, 28.0].into());
    let (a, b): (Matrix, Matrix) = (vec![vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]], vec![vec![1.0, 10.0]]);
    let pair = [a.clone().into(), b.into()];
    let text = |name: &str| format!("let f = fun (a : [r][c]Double) (b : [s][d]Double) -> {name} a b");
    assert_eq!(value(&text("matrixConvolve"), &pair), vec![vec![12.0, 23.0], vec![45.0, 56.0]].into());
    assert_eq!(value(&text("matrixCorrelate"), &pair), vec![vec![21.0, 32.0], vec![54.0, 65.0]].into());
    let product = vec![vec![1.0, 10.0, 2.0, 20.0, 3.0, 30.0], vec![4.0, 40.0, 5.0, 50.0, 6.0, 60.0]];
    assert_eq!(value(&text("kronecker"), &pair), product.into());
    let text = "let f = fun (a : [r][c]Double) -> (flatten a, reshape 3 2 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], matrixNorm1 a, matrixNormInf a)";
    let found = parts(value(text, &[a.clone().into()]));
    assert_eq!(found[0], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0].into());
    assert_eq!(found[1], vec![vec![1.0, 2.0], vec![3.0, 4.0], vec![5.0, 6.0]].into());
    assert_eq!(found[2..], [9.0.into(), 15.0.into()]);
    let text = "let f = fun (a : [r][c]Double) -> (matrixConcatRows a a, matrixConcatCols a a, lowerTriangle a, upperTriangle a)";
    let found = parts(value(text, &[a.clone().into()]));
    assert_eq!(matrix(&found[0]), [a.clone(), a.clone()].concat());
    assert_eq!(matrix(&found[1])[1], [4.0, 5.0, 6.0, 4.0, 5.0, 6.0]);
    assert_eq!(
        found[2..],
        [vec![vec![1.0, 0.0, 0.0], vec![4.0, 5.0, 0.0]].into(), vec![vec![1.0, 2.0, 3.0], vec![0.0, 5.0, 6.0]].into(),]
    );
    let text =
        "let f = fun (n : Card) -> (linspace 1.0 2.0 n, matrixPower [[1.0, 1.0], [0.0, 1.0]] n, clip 3.0 0.0 1.0)";
    let found = parts(value(text, &[Value::Int(3)]));
    assert_eq!(found[0], vec![1.0, 1.5, 2.0].into());
    assert_eq!(found[1], vec![vec![1.0, 3.0], vec![0.0, 1.0]].into());
    assert_eq!(found[2], 1.0.into());
}

#[test]
fn a_negative_power_of_a_matrix_is_refused() {
    // For k an argument, or computed at run time.
    let matrix: Value<f64> = vec![vec![1.0, 2.0], vec![0.0, 1.0]].into();
    for power in ["k", "(ifold (fun p i -> p - k) 0 1)"] {
        let text = format!("let f = fun (a : [n][n]Double) (k : Int) -> matrixPower a {power}");
        let sign = if power == "k" { 1 } else { -1 };
        for (k, corner) in [(0, 0.0), (1, 2.0), (2, 4.0)] {
            let expected: Value<f64> = vec![vec![1.0, corner], vec![0.0, 1.0]].into();
            assert_eq!(value(&text, &[matrix.clone(), Value::Int(sign * k)]), expected, "{text}");
        }
        let found = evaluate(&function(&text), &mut F64, &[matrix.clone(), Value::Int(-sign)]);
        assert!(found.is_err(), "{text}: {found:?}");
    }
}
