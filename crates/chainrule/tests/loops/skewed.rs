//! Steps of stencils on arrays that are large enough to be skewed in time, beside plain loops.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{Module, Value};

const ROWS: usize = 1100;
const COLUMNS: usize = 521;

const JACOBI: &str = "
let jacobi = fun (u : [n][m]Double) (w : [n][m]Double) (steps : Card) ->
  let last = ifold (fun v _ -> build n (fun i -> build m (fun j ->
    if i == 0 || i == n - 1 || j == 0 || j == m - 1 then v[i][j]
    else 0.125 * v[i][j] + 0.25 * (v[i - 1][j] - v[i + 1][j]) + 0.5 * v[i][j - 1] + v[i][j + 1] * 0.0625))) u steps
  sum n (fun i -> sum m (fun j -> w[i][j] * last[i][j]))
";

/// Weight of the neighbour at a distance of rows and columns.
const WEIGHTS: [(isize, isize, f64); 5] = [(0, 0, 0.125), (-1, 0, 0.25), (1, 0, -0.25), (0, -1, 0.5), (0, 1, 0.0625)];

fn matrix(seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    (0..ROWS * COLUMNS).map(|_| number()).collect()
}

fn value(matrix: &[f64]) -> Value<f64> {
    Value::Array(matrix.chunks(COLUMNS).map(|row| Value::from(row.to_vec())).collect())
}

/// One step of the stencil, or of its transpose.
fn step(v: &[f64], is_transposed: bool) -> Vec<f64> {
    let mut next = vec![0.0; v.len()];
    for i in 0..ROWS {
        for j in 0..COLUMNS {
            let at = i * COLUMNS + j;
            if i == 0 || i == ROWS - 1 || j == 0 || j == COLUMNS - 1 {
                next[at] += v[at];
                continue;
            }
            for (down, right, weight) in WEIGHTS {
                let other = at.wrapping_add_signed(down * COLUMNS as isize + right);
                let (from, to) = if is_transposed { (at, other) } else { (other, at) };
                next[to] += weight * v[from];
            }
        }
    }
    next
}

#[test]
fn steps_on_large_arrays_have_the_values_and_gradients_of_plain_loops() {
    let jacobi = Module::from_text("f.ft", JACOBI).unwrap().function("jacobi").unwrap();
    let [value_code, gradient_code] = [jacobi.compile().unwrap(), jacobi.gradient().by(&["u"]).compile().unwrap()];
    let listing = gradient_code.listing();
    assert!(listing.contains("int 1048576"), "no loop is skewed\n{listing}");
    let (u, w) = (matrix(1), matrix(2));
    for steps in [3, 4, 23] {
        let args = [value(&u), value(&w), Value::Int(steps)];
        let (mut v, mut adjoint) = (u.clone(), w.clone());
        for _ in 0..steps {
            v = step(&v, false);
            adjoint = step(&adjoint, true);
        }
        let expected: f64 = v.iter().zip(&w).map(|(v, w)| v * w).sum();
        let found = value_code.call(&args).unwrap();
        let found = *found[0].reals()[0];
        assert!((found - expected).abs() <= 1e-10 * expected.abs(), "{steps} steps: {found}, not {expected}");
        let found = gradient_code.call(&args).unwrap();
        let found = found[0].reals();
        assert_eq!(found.len(), adjoint.len());
        for (at, (found, expected)) in found.into_iter().zip(&adjoint).enumerate() {
            assert!((found - expected).abs() <= 1e-13, "{steps} steps, element {at}: {found}, not {expected}");
        }
    }
}
