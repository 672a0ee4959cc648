//! Products of matrices whose operands are copied, packed and tiled, or not: numbers are small integers, so that every
//! order of additions has the same sum.

#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{CompileOptions, Module, Value};

const TEXT: &str = "
let rows = fun (a : [n][d]Double) (b : [p][d]Double) -> matrixMul a (matrixTranspose b)
let columns = fun (a : [d][n]Double) (b : [d][p]Double) -> matrixMul (matrixTranspose a) b
let both = fun (a : [n][d]Double) (b : [d][p]Double) (c : [n][d]Double) (e : [d][p]Double) ->
  (build n (fun i -> build p (fun j -> sum d (fun k -> a[i][k] * b[k][j] - c[i][k] * e[k][j]))),
   build n (fun i -> build p (fun j -> 2 * sum d (fun k -> a[i][k] * b[k][j]) + sum d (fun k -> c[i][k] * e[k][j]))))
let masked = fun (a : [n][d]Double) (b : [d][p]Double) ->
  build n (fun i -> build p (fun j -> sum d (fun k -> maskedMul a[i][k] b[k][j])))
let squares = fun (a : [d][n]Double) (b : [d][p]Double) (c : [n][p]Double) ->
  let y = matrixMul (matrixTranspose a) b
  sum n (fun i -> sum p (fun j -> (y[i][j] - c[i][j]) ** 2))
";

fn element(i: usize, j: usize) -> i64 {
    ((7 * i + 3 * j) % 11) as i64 - 5
}

fn matrix(rows: usize, columns: usize) -> Vec<Vec<i64>> {
    (0..rows).map(|i| (0..columns).map(|j| element(i, j)).collect()).collect()
}

fn transposed(a: &[Vec<i64>]) -> Vec<Vec<i64>> {
    (0..a[0].len()).map(|j| a.iter().map(|row| row[j]).collect()).collect()
}

fn value(a: &[Vec<i64>]) -> Value<f64> {
    let rows = a.iter().map(|row| row.iter().map(|x| *x as f64).collect::<Vec<f64>>());
    rows.collect::<Vec<_>>().into()
}

#[test]
fn products_of_all_sizes_are_exact() {
    let module = Module::from_text("products.ft", TEXT).unwrap();
    // The last one is large enough for a copy of the columns of `a`.
    for (n, d, p) in [(1, 3, 2), (5, 9, 7), (33, 17, 40), (40, 70, 257), (300, 1800, 260)] {
        let (a, b, c) = (matrix(n, d), matrix(p, d), matrix(n, p));
        let expected: Vec<Vec<i64>> =
            a.iter().map(|x| b.iter().map(|y| x.iter().zip(y).map(|(x, y)| x * y).sum()).collect()).collect();
        let (at, bt) = (transposed(&a), transposed(&b));
        for threads in [1, 2] {
            let options = CompileOptions { threads: Some(threads), ..CompileOptions::default() };
            let compiled = |name: &str| module.function(name).unwrap().compile_with(&options).unwrap();
            let found = compiled("rows").call(&[value(&a), value(&b)]).unwrap();
            assert_eq!(found, [value(&expected)], "rows {n} {d} {p}");
            let found = compiled("columns").call(&[value(&at), value(&bt)]).unwrap();
            assert_eq!(found, [value(&expected)], "columns {n} {d} {p}");
            let squares =
                expected.iter().flatten().zip(c.iter().flatten()).map(|(y, c)| (y - c) * (y - c)).sum::<i64>();
            let found = compiled("squares").call(&[value(&at), value(&bt), value(&c)]).unwrap();
            assert_eq!(found, [Value::Real(squares as f64)], "squares {n} {d} {p}");
        }
    }
}

#[test]
fn sums_of_several_products_are_exact() {
    let module = Module::from_text("products.ft", TEXT).unwrap();
    let both = module.function("both").unwrap().compile_with(&CompileOptions::default()).unwrap();
    for (n, d, p) in [(1, 3, 2), (5, 9, 23), (33, 17, 40), (70, 65, 24), (40, 70, 257)] {
        let (a, b, c, e) = (matrix(n, d), matrix(d, p), transposed(&matrix(d, n)), transposed(&matrix(p, d)));
        let product =
            |a: &[Vec<i64>], b: &[Vec<i64>], i: usize, j: usize| -> i64 { (0..d).map(|k| a[i][k] * b[k][j]).sum() };
        let each = |f: &dyn Fn(usize, usize) -> i64| -> Vec<Vec<i64>> {
            (0..n).map(|i| (0..p).map(|j| f(i, j)).collect()).collect()
        };
        let differences = each(&|i, j| product(&a, &b, i, j) - product(&c, &e, i, j));
        let sums = each(&|i, j| 2 * product(&a, &b, i, j) + product(&c, &e, i, j));
        let found = both.call(&[value(&a), value(&b), value(&c), value(&e)]).unwrap();
        assert_eq!(found, [Value::Tuple(vec![value(&differences), value(&sums)])], "{n} {d} {p}");
    }
}

#[test]
fn zeros_hide_infinite_factors() {
    let module = Module::from_text("products.ft", TEXT).unwrap();
    let masked = module.function("masked").unwrap().compile_with(&CompileOptions::default()).unwrap();
    for (n, d, p) in [(3, 4, 5), (20, 30, 40)] {
        let a: Vec<Vec<f64>> =
            (0..n).map(|i| (0..d).map(|k| if k == 2 { 0.0 } else { (i + k) as f64 }).collect()).collect();
        for large in [7.0, f64::INFINITY, f64::NAN] {
            let b: Vec<Vec<f64>> = (0..d).map(|k| vec![if k == 2 { large } else { k as f64 }; p]).collect();
            let sum = |i: usize| (0..d).filter(|k| *k != 2).map(|k| ((i + k) * k) as f64).sum::<f64>();
            let expected: Vec<Vec<f64>> = (0..n).map(|i| vec![sum(i); p]).collect();
            let found = masked.call(&[a.clone().into(), b.into()]).unwrap();
            assert_eq!(found, [expected.into()], "{n} {d} {p} {large}");
        }
    }
}

/// A triangle by its name: where an element is wanted, in F~ and here.
type Wanted = (&'static str, fn(i64, i64, i64) -> bool);

const TRIANGLES: [Wanted; 7] = [
    ("j <= i", |i, j, _| j <= i),
    ("j < i", |i, j, _| j < i),
    ("j < i - 2", |i, j, _| j < i - 2),
    ("j >= i", |i, j, _| j >= i),
    ("j > i", |i, j, _| j > i),
    ("i + j < n", |i, j, n| i + j < n),
    ("i + j < n - 3", |i, j, n| i + j < n - 3),
];

#[test]
fn triangles_of_products_are_exact() {
    for (condition, is_wanted) in TRIANGLES {
        let text = format!(
            "
let rows = fun (a : [n][d]Double) (b : [n][d]Double) ->
  build n (fun i -> build n (fun j -> if {condition} then 3 - sum d (fun k -> a[i][k] * b[j][k]) else 7))
let columns = fun (a : [d][n]Double) (b : [d][n]Double) ->
  build n (fun i -> build n (fun j -> if {condition} then 3 - sum d (fun k -> a[k][i] * b[k][j]) else 7))
let total = fun (a : [n][d]Double) (b : [n][d]Double) ->
  sum n (fun i -> sum n (fun j -> if {condition} then i + sum d (fun k -> a[i][k] * b[j][k]) else 0))
"
        );
        let module = Module::from_text("triangles.ft", &text).unwrap();
        let [rows, columns, total] = ["rows", "columns", "total"]
            .map(|name| module.function(name).unwrap().compile_with(&CompileOptions::default()).unwrap());
        for (n, d) in [(1, 1), (5, 9), (24, 4), (27, 3), (63, 17), (64, 16), (65, 2), (130, 70), (200, 50)] {
            let (a, b) = (matrix(n, d), transposed(&matrix(d, n)));
            let all = |i: usize, j: usize| a[i].iter().zip(&b[j]).map(|(x, y)| x * y).sum::<i64>();
            let holds = |i: usize, j: usize| is_wanted(i as i64, j as i64, n as i64);
            let of = |i: usize, j: usize| if holds(i, j) { 3 - all(i, j) } else { 7 };
            let expected = value(&(0..n).map(|i| (0..n).map(|j| of(i, j)).collect()).collect::<Vec<_>>());
            let found = rows.call(&[value(&a), value(&b)]).unwrap();
            assert_eq!(found.as_slice(), std::slice::from_ref(&expected), "rows of {condition} {n} {d}");
            let found = columns.call(&[value(&transposed(&a)), value(&transposed(&b))]).unwrap();
            assert_eq!(found, [expected], "columns of {condition} {n} {d}");
            let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
            let sum: i64 = pairs.filter(|(i, j)| holds(*i, *j)).map(|(i, j)| i as i64 + all(i, j)).sum();
            let found = total.call(&[value(&a), value(&b)]).unwrap();
            assert_eq!(found, [Value::Real(sum as f64)], "total of {condition} {n} {d}");
        }
    }
}
