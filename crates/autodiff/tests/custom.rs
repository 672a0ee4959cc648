//! `withDerivative` and `constant`: rules define derivatives, in both modes, nested, with the evaluator as reference;
//! unsupported uses are errors.

use chainrule_autodiff::{check, expand, own_derivative};
use chainrule_base::Sources;
use chainrule_ir::difference::{with_cotangent, with_direction};
use chainrule_ir::{Function, Program, Value, evaluate, verify};
use chainrule_ops::{F64, Precise};

fn function(text: &str) -> Function {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Returns the doubles of `f`, from the evaluator and as expanded.
fn reals(text: &str, args: &[Value<f64>]) -> Vec<f64> {
    let function = function(text);
    verify(&function).unwrap_or_else(|found| panic!("{found:?}"));
    let expected = evaluate(&function, &mut F64, args).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let expanded = expand(&function).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&expanded).unwrap_or_else(|found| panic!("{found:?}"));
    assert!(own_derivative(&expanded).is_none());
    let found = evaluate(&expanded, &mut F64, args).unwrap_or_else(|why| panic!("{why}\n{text}"));
    assert_eq!(found, expected, "{text}");
    found.reals().into_iter().copied().collect()
}

/// Function whose rules are seven times too large: the result shows that they were used.
const SEVEN: &str = "
let seven = fun (x : Double) ->
  withDerivative (fun x -> x * x) (fun self x y t -> 14 * x * t) (fun self x y w -> 14 * x * w) x
";

#[test]
fn a_rule_is_the_derivative() {
    let f = |body: &str, x: f64| reals(&format!("{SEVEN}\nlet f = fun (x : Double) -> {body}"), &[x.into()]);
    assert_eq!(f("derivative seven x", 3.0), [42.0]);
    assert_eq!(f("vjp seven x 2.0", 3.0), [84.0]);
    assert_eq!(f("gradient (fun v -> seven v[0] * v[1]) [x, 5.0]", 3.0), [210.0, 9.0]);
    // The rule is differentiated as written; `x * x` is not.
    assert_eq!(f("derivative (derivative seven) x", 3.0), [14.0]);
    assert_eq!(f("hvp (fun v -> seven v[0]) [x] [1.0]", 3.0), [14.0]);
    // Through loops, branches and states.
    assert_eq!(f("derivative (fun x -> sum 3 (fun i -> seven (x * real i))) x", 1.0), [70.0]);
    assert_eq!(
        f("gradient (fun v -> sum 2 (fun i -> if v[i] > 0 then seven v[i] else v[i])) [x, -x]", 1.0),
        [14.0, 1.0]
    );
    assert_eq!(f("gradient (fun v -> ifold (fun s i -> seven s + v[i]) 1.0 2) [x, x]", 1.0), [28.0, 1.0]);
    assert_eq!(f("derivative (fun x -> ifold (fun s i -> seven s) x 2) x", 1.0), [196.0]);
    // Each derivative is by its own variable.
    assert_eq!(f("derivative (fun a -> a * derivative (fun b -> seven (a + b)) 1.0) x", 1.0), [42.0]);
}

#[test]
fn a_constant_has_no_derivative() {
    let f = |body: &str, x: f64| reals(&format!("let f = fun (x : Double) -> {body}"), &[x.into()]);
    assert_eq!(f("derivative (fun x -> x * constant x) x", 3.0), [3.0]);
    assert_eq!(f("gradient (fun v -> vectorDot v (constant v)) [x, 2 * x]", 3.0), [3.0, 6.0]);
    assert_eq!(f("derivative (fun a -> derivative (fun b -> b * constant (a * b)) x) x", 3.0), [0.0]);
    assert_eq!(f("derivative (fun a -> a * derivative (fun b -> a * constant b) x) x", 3.0), [0.0]);
    let pairs = "gradient (fun v -> sum 2 (fun i -> let c = constant (vectorMap v (fun a -> (a, i))) in v[i] * fst c[i])) [x, x]";
    assert_eq!(f(pairs, 3.0), [3.0, 3.0]);
    assert_eq!(f("real (constant 3) + x", 1.0), [4.0]);
}

/// The quotient by an equation that is linear in it; with a truth value and an integer that are no variables of it.
const QUOTIENT: &str = "
let quotient = fun (a : Double) (b : Double) ->
  withDerivative
    (fun (a, b, flip, _) -> if flip then b / a else a / b)
    (fun self (a, b, flip, k) y (a_tan, b_tan, _, _) ->
      if flip then self (a, b_tan - y * a_tan, true, k) else self (a_tan - y * b_tan, b, false, k))
    (fun self (a, b, flip, k) y w ->
      if flip then (let u = self (a, w, true, k) in (-u * y, u, flip, k))
      else (let u = self (w, b, false, k) in (u, -u * y, flip, k)))
    (a, b, false, 7)
";

#[test]
fn a_rule_applies_its_own_function() {
    let f = |body: &str, x: f64| reals(&format!("{QUOTIENT}\nlet f = fun (x : Double) -> {body}"), &[x.into()]);
    assert_eq!(f("quotient x 2.0", 3.0), [1.5]);
    assert_eq!(f("derivative (fun b -> quotient 6.0 b) x", 2.0), [-1.5]);
    assert_eq!(f("gradient (fun v -> quotient v[0] v[1]) [6.0, x]", 2.0), [0.5, -1.5]);
    // d^n/db^n of 6 / b at 1.
    let third = "derivative (derivative (derivative (fun b -> quotient 6.0 b))) x";
    assert_eq!(f(third, 1.0), [-36.0]);
    assert_eq!(f("hessian (fun v -> quotient v[0] v[1]) [6.0, x]", 1.0), [0.0, -1.0, -1.0, 12.0]);
    let text = format!("{QUOTIENT}\nlet f = fun (v : [2]Double) -> quotient v[0] v[1]");
    let (f, precise) = (function(&text), &mut Precise::new());
    let point: Value<f64> = vec![3.0, 2.0].into();
    // In any order, three deep; the evaluator uses the forward rule alone.
    let forward = with_direction(&f);
    let args = vec![point, vec![1.0, 0.5].into()];
    let pair: Value<f64> = Value::Tuple(vec![0.25.into(), 1.5.into()]);
    let args = [args, vec![pair]].concat();
    let reverse = with_cotangent(&forward).expect("doubles");
    let told = check::reverse_expansion(precise, &reverse, &args).unwrap_or_else(|e| panic!("{e}"));
    assert!(told.is_some());
    let along: Vec<Value<f64>> = args.iter().map(|arg| arg.map(&mut |x| 0.5 - x)).collect();
    let told = check::reverse_expansion(precise, &with_direction(&reverse), &[args, along].concat());
    assert!(told.unwrap_or_else(|e| panic!("{e}")).is_some());
}

#[test]
fn the_point_of_a_rule_is_a_value_also_where_a_rule_has_made_it() {
    let f = |rule: &str| {
        let product = "vectorEMul v t";
        let stated = |name: &str, rule: &str| {
            let rule = format!("(fun _ v _ t -> {rule})");
            format!("let {name} = fun (v : [n]Double) -> withDerivative (fun v -> v) {rule} {rule} v\n")
        };
        let text = stated("first", product)
            + &stated("second", rule)
            + "let f = fun (x : Double) ->
  let g = fun v -> second (first v)
  let again = fun v -> let u = first v in vectorEMul u (second u)
  (jvp g [x, 2 * x] [1.0, 0.5], vjp g [x, 2 * x] [1.0, 0.5], jvp again [x, 2 * x] [1.0, 0.5])";
        reals(&text, &[3.0.into()])
    };
    // Of u times u, with both active: the contribution of the first rule, and of both.
    let expected = [9.0, 18.0, 9.0, 18.0, 9.0 + 27.0, 18.0 + 108.0];
    for rule in [
        "vectorEMul [v][0] t",
        "vectorEMul (if t[0] > 100 then t else v) t",
        "vectorEMul (ifold (fun u i -> u) v 2) t",
        "vectorEMul (fst (v, t)) t",
    ] {
        assert_eq!(f(rule), expected, "{rule}");
    }
}

#[test]
fn what_a_rule_cannot_say_is_an_error() {
    let text = "
let scaled = fun (k : Double) (x : Double) ->
  withDerivative (fun x -> k * x) (fun _ _ _ t -> k * t) (fun _ _ _ w -> k * w) x
let f = fun (k : Double) -> (derivative (fun x -> scaled k x) k, derivative (fun k -> scaled k 2.0) k)";
    let errors = expand(&function(text)).expect_err("k is lost");
    let titles: Vec<&str> = errors.iter().map(|d| d.title.as_str()).collect();
    assert_eq!(titles, ["a derivative would be lost"]);
    // Held constant, or in another derivative than the current one.
    let ok = text.replace("scaled k 2.0", "scaled (constant k) 2.0");
    assert!(expand(&function(&ok)).is_ok());
    // A captured variable may be active if the value is not used: the rule suffices.
    let nested = "
let f = fun (k : Double) -> derivative (fun k -> derivative (fun x ->
  withDerivative (fun x -> k * x) (fun _ _ _ t -> k * t) (fun _ _ _ w -> k * w) x) 1.0) k";
    assert_eq!(reals(nested, &[2.0.into()]), [1.0]);
}
