//! Derivatives at kinks, by the conventions of the guide: in forward and in reverse mode, with loops and in
//! straight-line code, by several strategies.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{Function, Module, Value};

/// A body in `x`, an array of two; the point, and the gradient.
const KINKS: &[(&str, [f64; 2], [f64; 2])] = &[
    ("abs x[0]", [0.0, 1.0], [0.0, 0.0]),
    ("abs (x[0] - x[1])", [3.0, 3.0], [0.0, 0.0]),
    ("sign x[0] + floor x[1]", [0.0, 2.0], [0.0, 0.0]),
    ("ceil x[0] * x[1]", [1.0, 4.0], [0.0, 1.0]),
    // The first of two equal ones.
    ("max x[0] x[1]", [3.0, 3.0], [1.0, 0.0]),
    ("min x[0] x[1]", [3.0, 3.0], [1.0, 0.0]),
    ("max 0 x[0]", [0.0, 1.0], [0.0, 0.0]),
    ("max x[0] 0", [0.0, 1.0], [1.0, 0.0]),
    ("max (2 * x[0]) (5 * x[0])", [0.0, 1.0], [2.0, 0.0]),
    ("min (x[1] * x[0]) (7 * x[0])", [0.0, 2.0], [2.0, 0.0]),
    // The taken branch, the taken steps.
    ("if x[0] > 0 then 2 * x[0] else 5 * x[0]", [0.0, 1.0], [5.0, 0.0]),
    ("if x[0] == x[1] then x[0] else 9 * x[1]", [2.0, 2.0], [1.0, 0.0]),
    ("while (fun y -> y < 4) (fun y -> 2 * y) x[0] 10", [1.0, 1.0], [4.0, 0.0]),
    ("while (fun y -> y < 4) (fun y -> 2 * y) x[0] 10", [4.0, 1.0], [1.0, 0.0]),
    // Powers: the exponent is treated as constant if the base is not positive.
    ("x[0] ** x[1]", [0.0, 2.0], [0.0, 0.0]),
    ("x[0] ** x[1]", [-3.0, 2.0], [-6.0, 0.0]),
    ("x[0] ** 0", [0.0, 1.0], [0.0, 0.0]),
    // Infinite, without further effects.
    ("sqrt x[0] + x[1]", [0.0, 1.0], [f64::INFINITY, 1.0]),
    // The first of the largest elements.
    ("vectorMax x", [3.0, 3.0], [1.0, 0.0]),
    ("ifold (fun m i -> max m x[i]) x[0] 2", [3.0, 3.0], [1.0, 0.0]),
];

fn gradients(body: &str) -> Vec<(&'static str, Function)> {
    let f = |text: String| Module::from_text("f.ft", &text).unwrap().function("f").unwrap();
    let open = f(format!("let f = fun (x : [n]Double) -> {body}"));
    let fixed = f(format!("let f = fun (x : [2]Double) -> {body}"));
    let mut all = Vec::new();
    for (what, function, strategies) in
        [("loops", &open, &["forward", "reverse"][..]), ("straight", &fixed, &["forward", "reverse", "auto"])]
    {
        for strategy in strategies {
            let function = match what {
                // Its number of iterations depends on data.
                "straight" if body.starts_with("while") => continue,
                "straight" => function.unrolled(&[]).unwrap(),
                _ => function.clone(),
            };
            all.push((what, function.gradient().strategy(strategy).function().unwrap()));
        }
    }
    all
}

#[test]
fn one_of_the_slopes_is_chosen_and_it_is_the_same_everywhere() {
    let mut wrong = Vec::new();
    for (body, at, expected) in KINKS {
        for (what, gradient) in gradients(body) {
            let compiled = gradient.compile().unwrap();
            let Value::Array(found) = &compiled.call(&[at.to_vec().into()]).unwrap()[0] else { panic!("an array") };
            let expected: Vec<Value<f64>> = expected.iter().map(|x| Value::Real(*x)).collect();
            if *found != expected {
                wrong.push(format!("{body} at {at:?}, {what}: {found:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks that a derivative that is 0 under conditions can be differentiated again in a program with other variables.
#[test]
fn derivatives_that_are_zero_by_conditions_are_differentiated_again() {
    const TEXT: &str = "let f = fun (x : [n]Double) ->
      let sine = withDerivative (fun t -> sin t) (fun _ t _ t_tan -> cos t * t_tan) (fun _ t _ t_adj -> cos t * t_adj)
      let all = vdiff (fun (t : Double) -> build n (fun i -> sine (clip (if mod i 2 == 0 then t else t) (-0.5) 0.5))) x[0]
      build n (fun i -> snd all[i])";
    let f = Module::from_text("f.ft", TEXT).unwrap().function("f").unwrap();
    for strategy in ["forward", "reverse"] {
        let jacobian = f.jacobian().strategy(strategy).function().unwrap().compile().unwrap();
        for (x, expected) in [(0.3f64, -0.3f64.sin()), (0.7, 0.0), (-0.7, 0.0)] {
            let args = [Value::from(vec![x, 1.0, 2.0])];
            let found = jacobian.call(&args).unwrap();
            let found: Vec<f64> = found.iter().flat_map(Value::reals).copied().collect();
            for (k, element) in found.iter().enumerate() {
                let expected = if k % 3 == 0 { expected } else { 0.0 };
                assert!((element - expected).abs() < 1e-15, "{strategy} at {x}: {found:?}");
            }
            assert_eq!(found.len(), 9, "{strategy}: {found:?}");
        }
    }
}
