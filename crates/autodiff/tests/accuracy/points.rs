//! Arguments: random, graded, nearly singular, rank-deficient and badly scaled.

use crate::functions::{Part, Row};
use chainrule_ir::Value;

pub type Matrix = Vec<Vec<f64>>;

/// Kinds of arguments.
pub const KINDS: [&str; 10] = [
    "random",
    "whole",
    "graded",
    "rows scaled",
    "columns scaled",
    "nearly equal",
    "nearly singular",
    "rank n - 1",
    "rank 1",
    "wide",
];

/// Pseudorandom numbers between -1 and 1.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        #[allow(clippy::cast_precision_loss)]
        let x = (self.0 >> 11) as f64 / f64::from(1u32 << 26) / f64::from(1u32 << 26);
        x - 1.0
    }

    fn vector(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.next()).collect()
    }

    fn matrix(&mut self, r: usize, c: usize) -> Matrix {
        (0..r).map(|_| self.vector(c)).collect()
    }

    /// Returns random doubles in the shape of a value.
    pub fn like(&mut self, value: &Value<f64>) -> Value<f64> {
        value.map(&mut |_| self.next())
    }
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let c = b.first().map_or(0, Vec::len);
    a.iter().map(|row| (0..c).map(|j| row.iter().zip(b).map(|(x, y)| x * y[j]).sum()).collect()).collect()
}

fn scaled(a: &mut Matrix, factor: impl Fn(usize, usize) -> f64) {
    for (i, row) in a.iter_mut().enumerate() {
        row.iter_mut().enumerate().for_each(|(j, x)| *x *= factor(i, j));
    }
}

/// Returns powers of ten in a scrambled order.
fn decades(i: usize, by: i32) -> f64 {
    10f64.powi([0, 1, -1, 2, -2, 1][i % 6] * by)
}

fn general(r: usize, c: usize, kind: &str, numbers: &mut Numbers) -> Option<Matrix> {
    let mut low_rank = |rank: usize| product(&numbers.matrix(r, rank), &numbers.matrix(rank, c));
    let thin = r.min(c);
    let mut a = match kind {
        "nearly singular" => {
            let mut a = low_rank(thin - 1);
            for row in &mut a {
                row.iter_mut().for_each(|x| *x += 1e-7 * numbers.next());
            }
            a
        }
        "rank n - 1" => low_rank(thin - 1),
        "rank 1" => low_rank(1),
        _ => numbers.matrix(r, c),
    };
    match kind {
        "random" | "nearly singular" | "rank n - 1" | "rank 1" => {}
        "whole" => a.iter_mut().flatten().for_each(|x| *x = (*x * 9.0).round()),
        "graded" => scaled(&mut a, |i, j| 10f64.powi(-2 * i32::try_from(i + j).unwrap())),
        "rows scaled" => scaled(&mut a, |i, _| decades(i, 5)),
        "columns scaled" => scaled(&mut a, |_, j| decades(j, 5)),
        "nearly equal" => a.iter_mut().flatten().for_each(|x| *x = 1.0 + 1e-4 * *x),
        "wide" => a.iter_mut().flatten().for_each(|x| *x *= 40.0),
        _ => return None,
    }
    Some(a)
}

fn vector(n: usize, kind: &str, numbers: &mut Numbers) -> Option<Vec<f64>> {
    let mut v = numbers.vector(n);
    match kind {
        "random" | "rank n - 1" | "nearly singular" | "rank 1" => {}
        "whole" => v.iter_mut().for_each(|x| *x = (*x * 9.0).round()),
        "graded" => (0..).zip(&mut v).for_each(|(i, x)| *x *= 10f64.powi(-3 * i)),
        "rows scaled" | "columns scaled" => (0..).zip(&mut v).for_each(|(i, x)| *x *= decades(i, 5)),
        "nearly equal" => v.iter_mut().for_each(|x| *x = 1.0 + 1e-7 * *x),
        "wide" => v.iter_mut().for_each(|x| *x *= 40.0),
        _ => return None,
    }
    Some(v)
}

/// Returns a positive definite matrix, always of full rank.
fn positive(n: usize, kind: &str, numbers: &mut Numbers) -> Option<Matrix> {
    let squared = |b: &Matrix| {
        let t: Matrix = (0..n).map(|j| b.iter().map(|row| row[j]).collect()).collect();
        product(b, &t)
    };
    let mut a = squared(&numbers.matrix(n, n));
    let power = |i: usize| 10f64.powi(-2 * i32::try_from(i).unwrap());
    match kind {
        "random" => {}
        "whole" => {
            let mut b = numbers.matrix(n, n);
            b.iter_mut().flatten().for_each(|x| *x = (*x * 4.0).round());
            a = squared(&b);
            (0..n).for_each(|i| a[i][i] += 1.0);
        }
        "graded" => scaled(&mut a, |i, j| power(i) * power(j)),
        "rows scaled" => scaled(&mut a, |i, j| decades(i, 5) * decades(j, 5)),
        "nearly singular" => {
            let mut b = numbers.matrix(n, n);
            scaled(&mut b, |_, j| if j == 0 { 1e-4 } else { 1.0 });
            a = squared(&b);
        }
        "nearly equal" => {
            let b = numbers.matrix(n, n);
            a = squared(&b);
            a.iter_mut().flatten().for_each(|x| *x = 1.0 + 1e-4 * *x);
            (0..n).for_each(|i| a[i][i] += 1e-4);
        }
        _ => return None,
    }
    Some(a)
}

/// Returns a matrix of which only a triangle is used.
fn triangle(n: usize, kind: &str, numbers: &mut Numbers) -> Option<Matrix> {
    let mut a = general(n, n, kind, numbers)?;
    for (i, row) in a.iter_mut().enumerate() {
        if row[i].abs() < 1e-3 {
            row[i] += 0.5;
        }
    }
    Some(a)
}

/// Returns the point of a function, of this kind; `None` if there is none.
pub fn argument(row: &Row, kind: &str, numbers: &mut Numbers) -> Option<Value<f64>> {
    let mut parts: Vec<Value<f64>> = Vec::new();
    for part in row.parts {
        parts.push(match *part {
            Part::Matrix(r, c) => general(r, c, kind, numbers)?.into(),
            Part::Positive(n) => positive(n, kind, numbers)?.into(),
            Part::Triangle(n) => triangle(n, kind, numbers)?.into(),
            Part::Vector(n) => vector(n, kind, numbers)?.into(),
            Part::Combination => {
                let Some(Value::Array(rows)) = parts.last() else { return None };
                let weights = numbers.vector(rows.first()?.reals().len());
                let sum = |row: &Value<f64>| row.reals().iter().zip(&weights).map(|(x, y)| *x * y).sum::<f64>();
                rows.iter().map(sum).collect::<Vec<f64>>().into()
            }
            Part::Number => vector(1, kind, numbers)?[0].into(),
        });
    }
    if let [_] = &*parts { parts.pop() } else { Some(Value::Tuple(parts)) }
}
