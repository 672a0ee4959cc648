//! Derivatives: the forms of the paper and the plain ones, against derivatives by hand.

mod frontend;
use chainrule_ir::Value;
use frontend::*;

const X: [f64; 3] = [0.5, -1.5, 2.0];

fn duals(value: f64, tangents: &[f64]) -> Value<f64> {
    Value::Array(tangents.iter().map(|t| pair(real(value), real(*t))).collect())
}

#[test]
fn by_a_scalar() {
    assert_eq!(f("let f = fun x -> diff (fun y -> y * y * y) x", &[real(2.0)]), pair(real(8.0), real(12.0)));
    assert_eq!(f("let f = fun x -> derivative (fun y -> y * y * y) x", &[real(2.0)]), real(12.0));
    let text = "let f = fun x -> vdiff (fun y -> [y, y * y]) x";
    assert_eq!(f(text, &[real(3.0)]), Value::Array(vec![pair(real(3.0), real(1.0)), pair(real(9.0), real(6.0))]));
    let text = "let f = fun x -> mdiff (fun y -> [[y * y]]) x";
    assert_eq!(f(text, &[real(3.0)]), Value::Array(vec![Value::Array(vec![pair(real(9.0), real(6.0))])]));
    let text = "let f = fun x -> derivative (fun y -> (y * y, [1.0, y])) x";
    assert_eq!(f(text, &[real(3.0)]), pair(real(6.0), vector(&[0.0, 1.0])));
}

#[test]
fn by_a_vector() {
    let square = "let s = fun v -> vectorDot v v\n";
    let n2 = X.iter().map(|x| x * x).sum();
    assert_eq!(f(&format!("{square}let f = fun v -> grad s v"), &[vector(&X)]), duals(n2, &X.map(|x| 2.0 * x)));
    assert_eq!(f(&format!("{square}let f = fun v -> gradient s v"), &[vector(&X)]), vector(&X.map(|x| 2.0 * x)));
    assert_eq!(f(&format!("{square}let f = gradient s"), &[vector(&X)]), vector(&X.map(|x| 2.0 * x)));
    let hessian = matrix(&[&[2.0, 0.0, 0.0], &[0.0, 2.0, 0.0], &[0.0, 0.0, 2.0]]);
    assert_eq!(f(&format!("{square}let f = fun v -> hessian s v"), &[vector(&X)]), hessian);
    let d = [1.0, 0.0, -2.0];
    assert_eq!(f(&format!("{square}let f = hvp s"), &[vector(&X), vector(&d)]), vector(&d.map(|x| 2.0 * x)));
    assert_eq!(f(&format!("{square}let f = jvp s"), &[vector(&X), vector(&d)]), real(2.0 * (0.5 - 4.0)));
}

#[test]
fn jacobians_have_their_orientation() {
    let g = "let g = fun v -> [v[0] * v[1], v[1] * v[2]]\n";
    let three = "let h = fun (v : [3]Double) -> jacobian g v\nlet f = fun (v : [3]Double) -> h v";
    let j = matrix(&[&[-1.5, 0.5, 0.0], &[0.0, 2.0, -1.5]]);
    assert_eq!(f(&format!("{g}{three}"), &[vector(&X)]), j);
    // Figure 5: the row belongs to the input.
    let rows = [[-1.5, 0.0], [0.5, 2.0], [0.0, -1.5]];
    let values = [-0.75, -3.0];
    let row = |r: &[f64; 2]| Value::Array(r.iter().zip(values).map(|(t, v)| pair(real(v), real(*t))).collect());
    let expected = Value::Array(rows.iter().map(row).collect());
    assert_eq!(f(&format!("{g}let f = fun (v : [3]Double) -> jacob g v"), &[vector(&X)]), expected);
}

#[test]
fn by_a_matrix_and_by_records() {
    let a = matrix(&[&[1.0, 2.0], &[3.0, 4.0]]);
    let zero_one = |x: f64| pair(real(5.0), real(x));
    let expected = Value::Array(vec![
        Value::Array(vec![zero_one(1.0), zero_one(0.0)]),
        Value::Array(vec![zero_one(0.0), zero_one(1.0)]),
    ]);
    assert_eq!(f("let f = fun m -> mgrad matrixTrace m", std::slice::from_ref(&a)), expected);
    assert_eq!(f("let f = fun (m : Matrix) -> deriv (matrixTrace m) m", &[a]), expected);
    let text = "let f = fun (p : { a : Double, w : []Double }) -> gradient (fun q -> q.a * vectorSum q.w) p";
    let arg = Value::Tuple(vec![real(3.0), vector(&[1.0, 2.0])]);
    assert_eq!(f(text, &[arg]), Value::Tuple(vec![real(3.0), vector(&[3.0, 3.0])]));
}

#[test]
fn deriv_is_by_one_variable_only() {
    let text = "let f = fun (v : Vector) (c : Double) -> deriv (c * vectorSum v) c";
    assert_eq!(f(text, &[vector(&X), real(7.0)]), pair(real(7.0), real(1.0)));
    // A local variable, and one that a pattern binds.
    let text = "let f = fun (p : (Double, Double)) -> let (a, b) = p in let c = a * b in snd (deriv (c * c + a) c)";
    assert_eq!(f(text, &[pair(real(2.0), real(3.0))]), real(12.0));
    // A function is part of the expression.
    let text = "let f = fun x -> let g = fun y -> x * y in snd (deriv (g 5.0) x)";
    assert_eq!(f(text, &[real(2.0)]), real(5.0));
}

#[test]
fn nested_derivatives_stay_apart() {
    let text = "let f = fun x -> derivative (fun a -> a * derivative (fun b -> a + b) 1.0) x";
    assert_eq!(f(text, &[real(5.0)]), real(1.0));
    let third = "let d = fun g x -> derivative g x\nlet f = d (d (d (fun x -> x * x * x * x)))";
    assert_eq!(f(third, &[real(2.0)]), real(48.0));
}

#[test]
fn forward_is_the_primitive() {
    let text = "let f = fun a b -> forward (fun x y -> x * y) (a, 1.0) (b, 2.0)";
    assert_eq!(f(text, &[real(3.0), real(5.0)]), pair(real(15.0), real(11.0)));
    let text = "let f = fun (v : [n]Double) (t : [n]Double) -> forward (fun w -> vectorSum w) (v, t)";
    assert_eq!(f(text, &[vector(&X), vector(&[1.0, 2.0, 3.0])]), pair(real(1.0), real(6.0)));
}

#[test]
fn conditionals_are_lazy() {
    let text = "let f = fun x -> derivative (fun y -> if y > 0 then log y else 0) x";
    assert_eq!(f(text, &[real(-1.0)]), real(0.0));
    let text = "let f = fun v i -> if i < length v && v[i] > 0.0 then v[i] else -1.0";
    assert_eq!(f(text, &[vector(&X), int(3)]), real(-1.0));
    assert_eq!(f(text, &[vector(&X), int(2)]), real(2.0));
    let text = "let f = fun v i -> if i >= length v || v[i] < 0.0 then 1.0 else 0.0";
    assert_eq!(f(text, &[vector(&X), int(3)]), real(1.0));
}

#[test]
fn a_mixture_against_central_differences() {
    let text = r"
let gmm = fun (alphas : [k]Double) (means : [k][d]Double) (icf : [k][t]Double) (x : [n][d]Double) (gamma : Double) (m : Int) ->
  let q_times = fun (q : Index) (v : [d]Double) ->
    build d (fun i -> exp (icf[q][i]) * v[i] + sum i (fun j -> icf[q][d + div (i * (i - 1)) 2 + j] * v[j]))
  let slse = sum n (fun i ->
    logSumExp (build k (fun q ->
      let qx = q_times q (vectorSub x[i] means[q])
      alphas[q] + vectorSum (vectorSlice icf[q] 0 (d - 1)) - 0.5 * vectorNorm2 qx)))
  let wishart = sum k (fun q ->
    let s = sum d (fun j -> exp (2 * icf[q][j]))
    in 0.5 * gamma * gamma * s - m * vectorSum (vectorSlice icf[q] 0 (d - 1)))
  slse - n * logSumExp alphas + wishart
let f = gmm
let g = fun a (b : [k][d]Double) c x y m -> gradient (fun (a, b, c) -> gmm a b c x y m) (a, b, c)";
    let (value, gradient) = (function(text, "f"), function(text, "g"));
    let wave = |n: usize, phase: f64| -> Vec<f64> {
        #[allow(clippy::cast_precision_loss)]
        (0..n).map(|i| (i as f64 * 0.7 + phase).sin()).collect()
    };
    let rows = |r: usize, c: usize, phase: f64| {
        Value::from(wave(r * c, phase).chunks(c).map(<[f64]>::to_vec).collect::<Vec<_>>())
    };
    let args = [Value::from(wave(2, 0.1)), rows(2, 3, 0.2), rows(2, 6, 0.3), rows(4, 3, 0.4), real(0.8), int(2)];
    let run = |f, args: &[Value<f64>]| chainrule_ir::evaluate(f, &mut chainrule_ops::F64, args).unwrap();
    let found: Vec<f64> = run(&gradient, &args).reals().into_iter().copied().collect();
    assert_eq!(found.len(), 2 + 6 + 12);
    let at = |change: usize, by: f64| {
        let mut k = 0;
        let mut moved = args.clone();
        for arg in &mut moved[..3] {
            *arg = arg.map(&mut |x| {
                k += 1;
                if k == change + 1 { x + by } else { *x }
            });
        }
        *run(&value, &moved).reals()[0]
    };
    for (k, derivative) in found.iter().enumerate() {
        let h = 1e-3;
        // Fourth order: the error is about h^4.
        let expected = (8.0 * (at(k, h) - at(k, -h)) - (at(k, 2.0 * h) - at(k, -2.0 * h))) / (12.0 * h);
        assert!((derivative - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{k}: {derivative} and {expected}");
    }
}
