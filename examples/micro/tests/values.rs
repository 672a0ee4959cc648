//! Values equal other implementations; derivatives equal hand-written formulas, in both modes, with loops and unrolled.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

use chainrule::{Derivation, Function, Module, Value};
use chainrule_example_micro as micro;

fn function(source: &str, name: &str) -> Function {
    Module::from_text(&format!("{name}.ft"), source).unwrap().function(name).unwrap()
}

fn reals(values: &[Value<f64>]) -> Vec<f64> {
    values.iter().flat_map(|value| value.reals().into_iter().copied()).collect()
}

fn value(source: &str, name: &str, args: &[Value<f64>]) -> Vec<f64> {
    reals(&function(source, name).compile().unwrap().call(args).unwrap())
}

fn derived(request: &Derivation, args: &[Value<f64>]) -> Vec<f64> {
    reals(&request.compile().unwrap().call(args).unwrap())
}

/// Compares to 1e-12, relative to the largest of the numbers.
fn same(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}: {found:?} is not {expected:?}");
    let scale = expected.iter().fold(1e-3, |m: f64, x| m.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-12 * scale, "{what}, {i}: {a} is not {b}");
    }
}

/// Returns numbers without a pattern, from -1 to 1.
fn some(n: usize, seed: usize) -> Vec<f64> {
    (0..n)
        .map(|i| (((i + 31 * seed) as f64 + 0.5) * 12.9898).sin() * 43_758.547)
        .map(|x| 2.0 * (x - x.floor()) - 1.0)
        .collect()
}

fn rows(n: usize, m: usize, seed: usize) -> Vec<Vec<f64>> {
    some(n * m, seed).chunks(m.max(1)).map(<[f64]>::to_vec).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn least_squares() {
    for (m, n) in [(1, 2), (3, 8), (7, 33)] {
        let x = some(m, 1);
        let args = [Value::from(x.clone()), Value::from(n)];
        let (mut total, mut gradient) = (0.0, vec![0.0; m]);
        for i in 0..n {
            let t: f64 = -1.0 + 2.0 * i as f64 / (n - 1) as f64;
            let left = if t == 0.0 { 0.0 } else { t.signum() } - (0..m).map(|j| x[j] * t.powi(j as i32)).sum::<f64>();
            total += left * left / 2.0;
            for (j, g) in gradient.iter_mut().enumerate() {
                *g -= left * t.powi(j as i32);
            }
        }
        same("llsq", &value(micro::LLSQ, "llsq", &args), &[total]);
        let f = function(micro::LLSQ, "llsq");
        same("reverse", &derived(&f.gradient().by(&["x"]), &args), &gradient);
        same("forward", &derived(&f.gradient().by(&["x"]).strategy("forward"), &args), &gradient);
    }
}

#[test]
fn log_sum_exp() {
    for x in [some(1, 2), some(10, 3), vec![1000.0, 999.0, -1000.0], vec![2.0, 2.0]] {
        let top = x.iter().copied().fold(f64::MIN, f64::max);
        let exps: Vec<f64> = x.iter().map(|x| (x - top).exp()).collect();
        let total: f64 = exps.iter().sum();
        let args = [Value::from(x)];
        same("lse", &value(micro::LSE, "lse", &args), &[top + total.ln()]);
        let softmax: Vec<f64> = exps.iter().map(|e| e / total).collect();
        let f = function(micro::LSE, "lse");
        same("reverse", &derived(&f.gradient(), &args), &softmax);
        same("forward", &derived(&f.gradient().strategy("forward"), &args), &softmax);
    }
}

/// Returns the last element at time 2 and its gradient: every step together with its derivatives by all x.
fn runge_kutta(x: &[f64], steps: usize) -> (Vec<f64>, Vec<f64>) {
    let n = x.len();
    let h = 2.0 / steps as f64;
    // A row for the value and one for each derivative.
    let slope = |y: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let row = |d: usize| -> Vec<f64> {
            let by = |i: usize| if d > 0 && d - 1 == i { 1.0 } else { 0.0 };
            let at = |i: usize| match (d, i) {
                (0, 0) => x[0],
                (_, 0) => by(0),
                (0, _) => x[i] * y[0][i - 1],
                _ => by(i) * y[0][i - 1] + x[i] * y[d][i - 1],
            };
            (0..n).map(at).collect()
        };
        (0..=n).map(row).collect()
    };
    let ahead = |y: &[Vec<f64>], k: &[Vec<f64>], by: f64| -> Vec<Vec<f64>> {
        y.iter().zip(k).map(|(y, k)| y.iter().zip(k).map(|(y, k)| y + by * k).collect()).collect()
    };
    let mut y = vec![vec![0.0; n]; n + 1];
    for _ in 0..steps {
        let k1 = slope(&y);
        let k2 = slope(&ahead(&y, &k1, h / 2.0));
        let k3 = slope(&ahead(&y, &k2, h / 2.0));
        let k4 = slope(&ahead(&y, &k3, h));
        for (k, weight) in [(k1, 1.0), (k2, 2.0), (k3, 2.0), (k4, 1.0)] {
            y = ahead(&y, &k, h / 6.0 * weight);
        }
    }
    let gradient = (1..=n).map(|d| y[d][n - 1]).collect();
    (y.swap_remove(0), gradient)
}

#[test]
fn differential_equations() {
    for (n, steps) in [(1, 1), (3, 10), (6, 25)] {
        let x: Vec<f64> = some(n, 4).iter().map(|x| 1.0 + x / 4.0).collect();
        let (y, gradient) = runge_kutta(&x, steps);
        let args = [Value::from(x), Value::from(steps as i64)];
        same("ode", &value(micro::ODE, "ode", &args), &y);
        let f = function(micro::ODE, "odeLast");
        same("value", &derived(&f.value(), &args), &y[n - 1..]);
        same("reverse", &derived(&f.gradient().by(&["x"]), &args), &gradient);
        same("forward", &derived(&f.gradient().by(&["x"]).strategy("forward"), &args), &gradient);
        let sizes = [("n", n as i64), ("s", steps as i64)];
        same("unrolled", &derived(&f.unrolled(&sizes).unwrap().gradient().by(&["x"]), &args[..1]), &gradient);
    }
}

#[test]
fn a_number_of_steps_is_not_negative_where_they_are_kept() {
    let gradient = function(micro::ODE, "odeLast").gradient().by(&["x"]).compile().unwrap();
    let at = |steps: i64| gradient.call(&[Value::from(vec![1.0, 2.0]), Value::from(steps)]);
    assert_eq!(reals(&at(0).unwrap()), [0.0, 0.0]);
    let message = at(-1).unwrap_err().to_string();
    assert!(message.contains("an array would have a negative size"), "{message}");
}

/// Returns the determinant, by elimination with pivoting.
fn eliminated(mut a: Vec<Vec<f64>>) -> f64 {
    let (n, mut det) = (a.len(), 1.0);
    for k in 0..n {
        let pivot = (k..n).max_by(|i, j| a[*i][k].abs().total_cmp(&a[*j][k].abs())).unwrap();
        if pivot != k {
            a.swap(pivot, k);
            det = -det;
        }
        det *= a[k][k];
        let row = a[k].clone();
        for below in &mut a[k + 1..] {
            let factor = below[k] / row[k];
            below.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    det
}

/// Returns the derivative of a determinant by each element: its cofactor.
fn cofactors(a: &[Vec<f64>]) -> Vec<f64> {
    let n = a.len();
    let minor = |i: usize, j: usize| -> f64 {
        let kept = (0..n).filter(|r| *r != i);
        let rows = kept.map(|r| (0..n).filter(|c| *c != j).map(|c| a[r][c]).collect()).collect();
        if (i + j).is_multiple_of(2) { eliminated(rows) } else { -eliminated(rows) }
    };
    (0..n * n).map(|k| minor(k / n, k % n)).collect()
}

#[test]
fn determinants() {
    for ell in [1, 2, 5, 8] {
        let a = rows(ell, ell, 5);
        let (det, cofactors) = (eliminated(a.clone()), cofactors(&a));
        let sets = 1_i64 << ell;
        let args = [Value::from(a), Value::from(sets)];
        same("det", &value(micro::DET, "det", &args), &[det]);
        let f = function(micro::DET, "det");
        same("reverse", &derived(&f.gradient().by(&["a"]), &args), &cofactors);
        same("forward", &derived(&f.gradient().by(&["a"]).strategy("forward"), &args), &cofactors);
        let unrolled = f.unrolled(&[("ell", ell as i64), ("sets", sets)]).unwrap();
        let request = unrolled.gradient().by(&["a"]).strategy("reverse").without_optimisation().with_value();
        let both = derived(&request, &args[..1]);
        same("unrolled", &both, &[vec![det], cofactors.clone()].concat());
        if ell == 5 {
            let f = function(micro::DET, "det5");
            same("det5", &derived(&f.value(), &args[..1]), &[det]);
            same("by minors", &derived(&f.gradient(), &args[..1]), &cofactors);
            same("by minors, forward", &derived(&f.gradient().strategy("forward"), &args[..1]), &cofactors);
        }
    }
}

#[test]
fn the_minors_of_five_rows_are_as_many_products_as_they_have_to_be() {
    // For each number k of rows from 2 on, k products for each of the sets of k columns.
    let unrolled = function(micro::DET, "det").unrolled(&[("ell", 5), ("sets", 32)]).unwrap();
    assert_eq!(unrolled.counts().unwrap().mul, 2 * 10 + 3 * 10 + 4 * 5 + 5);
}

#[test]
fn clusters() {
    for (n, k, d) in [(1, 1, 1), (9, 2, 3), (40, 5, 4)] {
        let (points, centroids) = (rows(n, d, 6), rows(k, d, 7));
        let (mut total, mut slope, mut curvature) = (0.0, vec![0.0; k * d], vec![0.0; k * d]);
        for p in &points {
            let distance = |c: &Vec<f64>| p.iter().zip(c).map(|(p, c)| (p - c) * (p - c)).sum::<f64>();
            let nearest = (0..k).min_by(|i, j| distance(&centroids[*i]).total_cmp(&distance(&centroids[*j]))).unwrap();
            total += distance(&centroids[nearest]);
            for c in 0..d {
                slope[nearest * d + c] += 2.0 * (centroids[nearest][c] - p[c]);
                curvature[nearest * d + c] += 2.0;
            }
        }
        let args = [Value::from(points), Value::from(centroids)];
        same("cost", &value(micro::KMEANS, "cost", &args), &[total]);
        let f = function(micro::KMEANS, "cost");
        same("reverse", &derived(&f.gradient().by(&["centroids"]), &args), &slope);
        same("forward", &derived(&f.gradient().by(&["centroids"]).strategy("forward"), &args), &slope);
        same("curvature", &value(micro::KMEANS, "curvature", &args), &curvature);
        // A centroid that is nearest to no point has no direction: 0 / 0.
        let expected: Vec<f64> = slope.iter().zip(&curvature).map(|(s, c)| s / c).collect();
        let found = value(micro::KMEANS, "direction", &args);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.is_nan(), expected.is_nan());
            assert!(expected.is_nan() || (found - expected).abs() <= 1e-12, "{found} is not {expected}");
        }
        // All off-diagonal elements of the Hessian are 0.
        let hessian = derived(&f.hessian().by(&["centroids"]), &args);
        for (i, x) in hessian.iter().enumerate() {
            let on_the_diagonal = i / (k * d) == i % (k * d);
            assert_eq!(*x, if on_the_diagonal { curvature[i % (k * d)] } else { 0.0 });
        }
    }
}

#[test]
fn the_paper_s_vector_expressions() {
    for n in [1, 2, 17] {
        let (u, v) = (some(n, 8), some(n, 9));
        let two = [Value::from(u.clone()), Value::from(v.clone())];
        same("dot", &value(micro::MICRO, "dot", &two), &[dot(&u, &v)]);
        same("by u", &value(micro::MICRO, "dotGradient", &two), &v);
        let greatest = (0..n).max_by(|i, j| v[*i].total_cmp(&v[*j])).unwrap();
        same("maximum", &value(micro::MICRO, "maximum", &two[1..]), &[v[greatest]]);
        let hot = |at: usize| -> Vec<f64> { (0..n).map(|i| f64::from(u8::from(i == at))).collect() };
        same("of the maximum", &value(micro::MICRO, "maximumGradient", &two[1..]), &hot(greatest));
        let sum: Vec<f64> = u.iter().zip(&v).map(|(u, v)| u + v).collect();
        same("add", &value(micro::MICRO, "add", &two), &sum);
        let identity: Vec<f64> = (0..n).flat_map(hot).collect();
        same("of a sum", &value(micro::MICRO, "addJacobian", &two), &identity);
        let by = [Value::from(v.clone()), Value::from(0.7)];
        let scaled: Vec<f64> = v.iter().map(|v| v * 0.7).collect();
        same("scale", &value(micro::MICRO, "scale", &by), &scaled);
        same("by the number", &value(micro::MICRO, "scaleDerivative", &by), &v);
    }
}

#[test]
fn a_matrix_factorisation() {
    for (n, k, m) in [(1, 1, 1), (4, 1, 5), (5, 2, 3)] {
        let positive = |n: usize, m: usize, seed: usize| -> Vec<Vec<f64>> {
            rows(n, m, seed).into_iter().map(|row| row.into_iter().map(|x| 1.5 + x).collect()).collect()
        };
        let (w, h, a) = (positive(n, k, 10), positive(k, m, 11), positive(n, m, 12));
        let product = |i: usize, j: usize| (0..k).map(|l| w[i][l] * h[l][j]).sum::<f64>();
        let (mut total, mut gradient) = (0.0, vec![0.0; k * m]);
        for i in 0..n {
            for j in 0..m {
                let p = product(i, j);
                total += a[i][j] / p + p.ln();
                for l in 0..k {
                    gradient[l * m + j] += w[i][l] * (1.0 / p - a[i][j] / (p * p));
                }
            }
        }
        let args = [Value::from(w.clone()), Value::from(h.clone()), Value::from(a.clone())];
        same("misfit", &value(micro::MICRO, "misfit", &args), &[total]);
        same("by h", &value(micro::MICRO, "misfitGradient", &args), &gradient);
        let f = function(micro::MICRO, "misfit");
        same("forward", &derived(&f.gradient().by(&["h"]).strategy("forward"), &args), &gradient);
    }
}

/// Projects a point into a camera, with the rotation as a matrix.
fn project(p: &[f64]) -> [f64; 2] {
    let angle = dot(&p[..3], &p[..3]).sqrt();
    let v: Vec<f64> = p[..3].iter().map(|r| r / angle).collect();
    let (s, c) = angle.sin_cos();
    let x: Vec<f64> = (0..3).map(|k| p[11 + k] - p[3 + k]).collect();
    let across = [[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]];
    let element = |r: usize, k: usize| f64::from(u8::from(r == k)) * c + (1.0 - c) * v[r] * v[k] + s * across[r][k];
    let at: Vec<f64> = (0..3).map(|r| (0..3).map(|k| element(r, k) * x[k]).sum()).collect();
    let (a, b) = (at[0] / at[2], at[1] / at[2]);
    let square = a * a + b * b;
    let factor = (1.0 + p[9] * square + p[10] * square * square) * p[6];
    [a * factor + p[7], b * factor + p[8]]
}

#[test]
fn project_and_its_jacobian() {
    let mut p = some(14, 13);
    p[13] += 4.0;
    let args = [Value::from(p.clone())];
    same("project", &value(micro::MICRO, "projectAll", &args), &project(&p));
    let jacobian = value(micro::MICRO, "projectJacobian", &args);
    // Central differences, extrapolated to sixth order.
    let step = 1e-2;
    for k in 0..14 {
        let moved = |by: f64| {
            let mut p = p.clone();
            p[k] += by;
            project(&p)
        };
        for r in 0..2 {
            let difference = |h: f64| (moved(h)[r] - moved(-h)[r]) / (2.0 * h);
            let slope = 1.5 * difference(step) - 0.6 * difference(2.0 * step) + 0.1 * difference(3.0 * step);
            let found = jacobian[14 * r + k];
            assert!((found - slope).abs() <= 1e-9, "row {r}, column {k}: {found} is not {slope}");
        }
    }
    let f = function(micro::MICRO, "projectAll");
    for strategy in ["forward", "reverse"] {
        same(strategy, &derived(&f.jacobian().strategy(strategy), &args), &jacobian);
    }
}
