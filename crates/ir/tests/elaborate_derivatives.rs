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
