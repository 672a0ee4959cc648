//! M~ against naive Rust, by the reference evaluator.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

mod frontend;
use chainrule_ir::Value;
use frontend::*;

/// Returns numbers without a pattern.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            #[allow(clippy::cast_precision_loss)]
            let x = (state >> 33) as f64 / f64::from(1u32 << 31);
            4.0 * x - 2.0
        })
        .collect()
}

fn rows(r: usize, c: usize, seed: u64) -> Vec<Vec<f64>> {
    numbers(r * c, seed).chunks(c).map(<[f64]>::to_vec).collect()
}

fn m(rows: &[Vec<f64>]) -> Value<f64> {
    Value::from(rows.to_vec())
}

fn v(xs: &[f64]) -> Value<f64> {
    vector(xs)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn transpose(a: &[Vec<f64>]) -> Vec<Vec<f64>> {
    (0..a[0].len()).map(|j| a.iter().map(|row| row[j]).collect()).collect()
}

fn mul(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let bt = transpose(b);
    a.iter().map(|row| bt.iter().map(|col| dot(row, col)).collect()).collect()
}

fn close(found: &Value<f64>, expected: &Value<f64>, what: &str) {
    match (found, expected) {
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{what}");
            a.iter().zip(b).for_each(|(a, b)| close(a, b, what));
        }
        (Value::Tuple(a), Value::Tuple(b)) => {
            assert_eq!(a.len(), b.len(), "{what}");
            a.iter().zip(b).for_each(|(a, b)| close(a, b, what));
        }
        (Value::Real(a), Value::Real(b)) => {
            assert!((a - b).abs() <= 1e-14 * (1.0 + b.abs()), "{what}: {a} instead of {b}");
        }
        _ => assert_eq!(found, expected, "{what}"),
    }
}

/// Checks the library's `name`, through a program that passes the arguments on.
fn check(name: &str, args: &[Value<f64>], expected: &Value<f64>) {
    close(&run("", name, args), expected, name);
}

#[test]
fn vectors() {
    let (a, b) = (numbers(5, 1), numbers(5, 2));
    let zip = |f: fn(f64, f64) -> f64| v(&a.iter().zip(&b).map(|(x, y)| f(*x, *y)).collect::<Vec<_>>());
    check("vectorRange", &[int(4)], &Value::Array((0..4).map(int).collect()));
    check("vectorFill", &[int(3), real(2.5)], &v(&[2.5; 3]));
    check("vectorZeros", &[int(3)], &v(&[0.0; 3]));
    check("vectorOnes", &[int(2)], &v(&[1.0; 2]));
    check("vectorHot", &[int(4), int(2)], &v(&[0.0, 0.0, 1.0, 0.0]));
    check("vectorAdd", &[v(&a), v(&b)], &zip(|x, y| x + y));
    check("vectorSub", &[v(&a), v(&b)], &zip(|x, y| x - y));
    check("vectorEMul", &[v(&a), v(&b)], &zip(|x, y| x * y));
    check("vectorDiv", &[v(&a), v(&b)], &zip(|x, y| x / y));
    let pairs = a.iter().zip(&b).map(|(x, y)| pair(real(*x), real(*y))).collect();
    check("vectorZip", &[v(&a), v(&b)], &Value::Array(pairs));
    check("vectorSMul", &[v(&a), real(3.0)], &v(&a.iter().map(|x| x * 3.0).collect::<Vec<_>>()));
    check("vectorNeg", &[v(&a)], &v(&a.iter().map(|x| -x).collect::<Vec<_>>()));
    check("vectorSum", &[v(&a)], &real(a.iter().sum()));
    check("vectorSum", &[v(&[])], &real(0.0));
    check("vectorDot", &[v(&a), v(&b)], &real(dot(&a, &b)));
    check("vectorNorm2", &[v(&a)], &real(dot(&a, &a)));
    check("vectorNorm", &[v(&a)], &real(dot(&a, &a).sqrt()));
    check("vectorMean", &[v(&a)], &real(a.iter().sum::<f64>() / 5.0));
    check("vectorMax", &[v(&a)], &real(a.iter().copied().fold(f64::NEG_INFINITY, f64::max)));
    check("vectorMin", &[v(&a)], &real(a.iter().copied().fold(f64::INFINITY, f64::min)));
    check("logSumExp", &[v(&a)], &real(a.iter().map(|x| x.exp()).sum::<f64>().ln()));
    check("logSumExp", &[v(&[1000.0, 1000.0])], &real(1000.0 + 2f64.ln()));
    check("vectorSlice", &[v(&a), int(1), int(3)], &v(&a[1..=3]));
    check("vectorConcat", &[v(&a), v(&b[..2])], &v(&[&a[..], &b[..2]].concat()));
    check("vectorReverse", &[v(&a)], &v(&a.iter().rev().copied().collect::<Vec<_>>()));
}

#[test]
fn tests_of_numbers() {
    for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -0.0] {
        check("isNaN", &[real(x)], &Value::Bool(x.is_nan()));
        check("isFinite", &[real(x)], &Value::Bool(x.is_finite()));
    }
    let constants = f("let f = fun (x : Double) -> (inf - x, -inf < x, isNaN nan)", &[real(1.0)]);
    assert_eq!(constants, Value::Tuple(vec![real(f64::INFINITY), Value::Bool(true), Value::Bool(true)]));
}

#[test]
fn functions_of_functions() {
    let a = numbers(4, 3);
    let squares = v(&a.iter().map(|x| x * x).collect::<Vec<_>>());
    close(&f("let f = fun v -> vectorMap v (fun x -> x * x)", &[v(&a)]), &squares, "vectorMap");
    close(&f("let f = fun v -> vectorMap2 v v (*)", &[v(&a)]), &squares, "vectorMap2");
    let a = rows(2, 3, 4);
    let sums = v(&a.iter().map(|r| r.iter().sum()).collect::<Vec<_>>());
    close(&f("let f = fun m -> matrixMap m vectorSum", &[m(&a)]), &sums, "matrixMap");
    let dots = v(&a.iter().map(|r| dot(r, r)).collect::<Vec<_>>());
    close(&f("let f = fun m -> matrixMap2 m m vectorDot", &[m(&a)]), &dots, "matrixMap2");
}

#[test]
fn matrices() {
    let (a, b, c) = (rows(3, 2, 5), rows(3, 2, 6), rows(2, 4, 7));
    let zip = |f: fn(f64, f64) -> f64| {
        let row = |(r, s): (&Vec<f64>, &Vec<f64>)| r.iter().zip(s).map(|(x, y)| f(*x, *y)).collect();
        m(&a.iter().zip(&b).map(row).collect::<Vec<Vec<f64>>>())
    };
    check("vectorToMatrix", &[real(3.0)], &v(&[3.0]));
    assert_eq!(f("let f = fun (m : Matrix) -> matrixRows m", &[m(&a)]), int(3));
    check("matrixCols", &[m(&a)], &int(2));
    check("matrixFill", &[int(2), int(3), real(4.0)], &m(&[vec![4.0; 3], vec![4.0; 3]]));
    check("matrixZeros", &[int(1), int(2)], &m(&[vec![0.0; 2]]));
    check("matrixOnes", &[int(1), int(2)], &m(&[vec![1.0; 2]]));
    check("matrixEye", &[int(2)], &m(&[vec![1.0, 0.0], vec![0.0, 1.0]]));
    check("matrixHot", &[int(2), int(2), int(1), int(0)], &m(&[vec![0.0, 0.0], vec![1.0, 0.0]]));
    check("matrixAdd", &[m(&a), m(&b)], &zip(|x, y| x + y));
    check("matrixSub", &[m(&a), m(&b)], &zip(|x, y| x - y));
    check("matrixEMul", &[m(&a), m(&b)], &zip(|x, y| x * y));
    check("matrixTranspose", &[m(&a)], &m(&transpose(&a)));
    check("matrixMul", &[m(&a), m(&c)], &m(&mul(&a, &c)));
    check("matrixMult", &[m(&a), m(&c)], &m(&mul(&a, &c)));
    let scaled: Vec<Vec<f64>> = a.iter().map(|r| r.iter().map(|x| x * 2.0).collect()).collect();
    check("matrixSMul", &[m(&a), real(2.0)], &m(&scaled));
    let (x, y) = (numbers(2, 8), numbers(3, 9));
    check("matrixVectorMul", &[m(&a), v(&x)], &v(&a.iter().map(|r| dot(r, &x)).collect::<Vec<_>>()));
    check("vectorMatrixMul", &[v(&y), m(&a)], &v(&transpose(&a).iter().map(|r| dot(r, &y)).collect::<Vec<_>>()));
    let form = dot(&y, &a.iter().map(|r| dot(r, &x)).collect::<Vec<_>>());
    check("vectorMatrixVector", &[v(&y), m(&a), v(&x)], &real(form));
    let outer: Vec<Vec<f64>> = y.iter().map(|p| x.iter().map(|q| p * q).collect()).collect();
    check("vectorOutProd", &[v(&y), v(&x)], &m(&outer));
    check("matrixSum", &[m(&a)], &real(a.iter().flatten().sum()));
    check("matrixNorm2", &[m(&a)], &real(a.iter().flatten().map(|x| x * x).sum()));
    let s = rows(3, 3, 10);
    check("matrixTrace", &[m(&s)], &real(s[0][0] + s[1][1] + s[2][2]));
    check("matrixDiag", &[m(&s)], &v(&[s[0][0], s[1][1], s[2][2]]));
    check("diag", &[v(&x)], &m(&[vec![x[0], 0.0], vec![0.0, x[1]]]));
    let pick = "let f = fun (m : Matrix) -> (matrixRow m 1, matrixCol m 0)";
    let col: Vec<f64> = a.iter().map(|r| r[0]).collect();
    close(&f(pick, &[m(&a)]), &pair(v(&a[1]), v(&col)), "matrixRow and matrixCol");
    let zipped = Value::Array(vec![Value::Array(vec![pair(real(1.0), real(2.0))])]);
    check("matrixZip", &[m(&[vec![1.0]]), m(&[vec![2.0]])], &zipped);
}

#[test]
fn vectors_are_sorted() {
    for n in (0..20).chain([63, 64, 65, 200]) {
        // With equal numbers, infinities and NaN.
        let mut x: Vec<f64> = numbers(n, 7 + n as u64).iter().map(|x| (4.0 * x).round()).collect();
        for (k, special) in [f64::NAN, f64::INFINITY, f64::NAN, f64::NEG_INFINITY].into_iter().enumerate() {
            if n > 5 {
                x[3 * k % n] = special;
            }
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| x[*a].partial_cmp(&x[*b]).unwrap_or_else(|| x[*a].is_nan().cmp(&x[*b].is_nan())));
        let found = f("let f = fun (x : [n]Double) -> argsort x", &[v(&x)]);
        assert_eq!(found, Value::Array(order.iter().map(|k| Value::Int(*k as i64)).collect()), "{x:?}");
        let ints: Vec<Value<f64>> = x.iter().map(|x| Value::Int(*x as i64)).collect();
        let found = f("let f = fun (x : [n]Int) -> sort x", &[Value::Array(ints.clone())]);
        let mut expected: Vec<i64> = x.iter().map(|x| *x as i64).collect();
        expected.sort_unstable();
        assert_eq!(found, Value::Array(expected.into_iter().map(Value::Int).collect()), "{x:?}");
    }
    let found = f("let f = fun (x : [n]Double) -> sort x", &[v(&[2.0, -1.0, 0.5, 2.0])]);
    assert_eq!(found, v(&[-1.0, 0.5, 2.0, 2.0]));
}

#[test]
fn every_function_of_the_library_is_documented() {
    let program = load("// matrixMul, cholesky, argsort").unwrap_or_else(|(_, d)| panic!("{d}"));
    for def in program.library().filter(|def| !def.name.starts_with('_')) {
        assert!(!def.docs.is_empty(), "{} has no comment", def.name);
    }
}

/// Returns the message of `function` about `args`.
fn refused(function: &chainrule_ir::Function, args: &[Value<f64>]) -> String {
    chainrule_ir::evaluate(function, &mut chainrule_ops::F64, args).unwrap_err().message
}

#[test]
fn shapes_that_do_not_fit_are_told_at_entry() {
    let why = refused(&function("", "matrixMul"), &[m(&rows(2, 3, 1)), m(&rows(2, 3, 2))]);
    assert!(why.contains("argument `m2` has 2 elements in dimension 1 where 3 are needed"), "{why}");
    for name in ["vectorAdd", "vectorSub", "vectorEMul", "vectorDiv", "vectorDot", "vectorZip"] {
        // Without annotations in the program, and whichever is longer.
        let user = format!("let f = fun a b -> {name} a b");
        for (a, b) in [(2, 3), (3, 2)] {
            let why = refused(&function(&user, "f"), &[v(&numbers(a, 1)), v(&numbers(b, 2))]);
            assert!(why.contains("`b` has another number of elements than `a`"), "{name} of {a} and {b}: {why}");
        }
    }
    for name in ["matrixAdd", "matrixSub", "matrixEMul", "matrixZip"] {
        let user = format!("let f = fun a b -> {name} a b");
        for (shape, what) in [((2, 4), "columns"), ((3, 3), "rows"), ((2, 2), "columns"), ((1, 3), "rows")] {
            let why = refused(&function(&user, "f"), &[m(&rows(2, 3, 1)), m(&rows(shape.0, shape.1, 2))]);
            assert!(why.contains(&format!("`b` has another number of {what} than `a`")), "{name}: {why}");
        }
    }
    let products: [(&str, [Value<f64>; 2]); 4] = [
        ("matrixMul", [m(&rows(2, 3, 1)), m(&rows(4, 2, 2))]),
        ("matrixVectorMul", [m(&rows(2, 3, 1)), v(&numbers(4, 2))]),
        ("vectorMatrixMul", [v(&numbers(2, 1)), m(&rows(3, 3, 2))]),
        ("vectorMap2", [v(&numbers(2, 1)), v(&numbers(3, 2))]),
    ];
    for (name, args) in products {
        let more = if name == "vectorMap2" { "(*)" } else { "" };
        let why = refused(&function(&format!("let f = fun a b -> {name} a b {more}"), "f"), &args);
        assert!(why.contains("another number of"), "{name}: {why}");
    }
    for name in ["matrixTrace", "matrixDiag"] {
        let why = refused(&function(&format!("let f = fun a -> {name} a"), "f"), &[m(&rows(2, 3, 1))]);
        assert!(why.contains("another number of"), "{name}: {why}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_told_before_anything_runs() {
    for body in ["vectorDot [1.0, 2.0] [1.0, 2.0, 3.0]", "vectorAdd [1.0, 2.0, 3.0] [1.0, 2.0]"] {
        let program = load(&format!("let f = {body}")).unwrap_or_else(|(_, d)| panic!("{d}"));
        let why = program.elaborate("f").unwrap_err().to_string();
        assert!(why.contains("sizes do not agree"), "{body}: {why}");
    }
}
