//! Products of matrices whose operands are copied, packed and tiled, or not: numbers are small integers, so that every
//! order of additions has the same sum.

#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{CompileOptions, Module, Value};

const TEXT: &str = "
let rows = fun (a : [n][d]Double) (b : [p][d]Double) -> matrixMul a (matrixTranspose b)
let columns = fun (a : [d][n]Double) (b : [d][p]Double) -> matrixMul (matrixTranspose a) b
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
