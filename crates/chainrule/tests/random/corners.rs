//! Corner cases that random points miss: zeros and signs under powers, ties, branches not taken. Derivatives by hand,
//! computed with loops, without them by every strategy, and as the derivative of a derivative.

use crate::support::doubles;
use chainrule::{Function, Module, STRATEGIES};

/// Number that is not compared: the derivative does not exist.
const ANY: f64 = f64::NAN;

struct Corner {
    body: &'static str,
    /// x and y.
    at: [f64; 2],
    gradient: [f64; 2],
    /// By x twice.
    second: f64,
}

const fn corner(body: &'static str, at: [f64; 2], gradient: [f64; 2], second: f64) -> Corner {
    Corner { body, at, gradient, second }
}

const CORNERS: &[Corner] = &[
    corner("x ** 0", [0.0, 0.0], [0.0, 0.0], 0.0),
    corner("x ** 0", [-2.0, 0.0], [0.0, 0.0], 0.0),
    corner("x ** 1", [0.0, 0.0], [1.0, 0.0], 0.0),
    corner("x ** 2", [0.0, 0.0], [0.0, 0.0], 2.0),
    corner("x ** 2", [-3.0, 0.0], [-6.0, 0.0], 2.0),
    corner("x ** 3", [0.0, 0.0], [0.0, 0.0], 0.0),
    corner("x ** 7", [-1.0, 0.0], [7.0, 0.0], -42.0),
    corner("x ** (-1)", [-2.0, 0.0], [-0.25, 0.0], -0.25),
    corner("x ** (-2)", [-2.0, 0.0], [0.25, 0.0], 0.375),
    corner("x ** 2.0", [-3.0, 0.0], [-6.0, 0.0], 2.0),
    corner("x ** 0.5", [4.0, 0.0], [0.25, 0.0], -1.0 / 32.0),
    corner("x ** 1.5", [0.0, 0.0], [0.0, 0.0], ANY),
    corner("x ** 2.5", [0.0, 0.0], [0.0, 0.0], 0.0),
    corner("let n = 1.0 + 1.0 in x ** n", [-3.0, 0.0], [-6.0, 0.0], 2.0),
    corner("x ** y", [2.0, 0.0], [0.0, std::f64::consts::LN_2], 0.0),
    corner("x ** y", [-2.0, 3.0], [12.0, ANY], -12.0),
    corner("x ** y", [0.0, 2.0], [0.0, 0.0], 2.0),
    corner("x ** y", [0.0, 3.0], [0.0, 0.0], 0.0),
    corner("x ** (y * 0.0 + 2.0)", [-3.0, 1.0], [-6.0, ANY], 2.0),
    corner("2.0 ** x", [0.0, 0.0], [std::f64::consts::LN_2, 0.0], std::f64::consts::LN_2 * std::f64::consts::LN_2),
    corner("0.0 ** (x * x)", [1.0, 0.0], [0.0, 0.0], 0.0),
    corner("if x > 0.0 then log x else 0.0", [-1.0, 0.0], [0.0, 0.0], 0.0),
    corner("if x > 0.0 then log x else 0.0", [0.0, 0.0], [0.0, 0.0], 0.0),
    corner("if x > 0.0 then sqrt x else x * x", [0.0, 0.0], [0.0, 0.0], 2.0),
    corner("if x == 0.0 then 1.0 else sin x / x", [0.0, 0.0], [0.0, 0.0], 0.0),
    corner("if x > 0.0 then 1.0 / x else x * y", [0.0, 3.0], [3.0, 0.0], 0.0),
    corner("(if x > 0.0 then log x else y) * y", [-1.0, 3.0], [0.0, 6.0], 0.0),
    corner("if x > 0.0 then (if y > 0.0 then log y else log x) else sqrt (y - y)", [1.0, 0.0], [1.0, 0.0], -1.0),
    corner("exp (if x > 0.0 then log x else x)", [-1.0, 0.0], [0.36787944117144233, 0.0], 0.36787944117144233),
    corner("abs x * x", [-2.0, 0.0], [4.0, 0.0], -2.0),
    corner("abs x", [-2.0, 0.0], [-1.0, 0.0], 0.0),
    corner("min x x", [1.0, 0.0], [1.0, 0.0], 0.0),
    corner("max x x + max y (y + 0.0)", [1.0, 0.0], [1.0, 1.0], 0.0),
    corner("max (x * x) y", [3.0, 1.0], [6.0, 0.0], 2.0),
    corner("max (x * x) y", [3.0, 10.0], [0.0, 1.0], 0.0),
    corner("floor x * x", [2.5, 0.0], [2.0, 0.0], 0.0),
    corner("sign x * x * x", [-2.5, 0.0], [5.0, 0.0], -2.0),
    corner("mod x y", [7.5, 2.0], [1.0, -3.0], 0.0),
    corner("mod x y", [-7.5, 2.0], [1.0, ANY], 0.0),
    corner("x * x", [0.0, 0.0], [0.0, 0.0], 2.0),
    corner("x / x", [2.0, 0.0], [0.0, 0.0], 0.0),
    corner("y / x", [-2.0, 0.0], [0.0, -0.5], 0.0),
    corner("(x - x) / y", [2.0, 3.0], [0.0, 0.0], 0.0),
    corner("x * y - y * x", [2.0, 3.0], [0.0, 0.0], 0.0),
    corner("atan2 y x", [-1.0, 0.0], [0.0, -1.0], 0.0),
    corner("atan2 x y", [0.0, -1.0], [-1.0, 0.0], 0.0),
    corner("hypot x y", [0.0, 2.0], [0.0, 1.0], 0.5),
    corner("hypot x y", [-3.0, 0.0], [-1.0, 0.0], 0.0),
    corner("cbrt x", [-8.0, 0.0], [1.0 / 12.0, 0.0], 1.0 / 144.0),
    corner("log1p x + expm1 x", [0.0, 0.0], [2.0, 0.0], 0.0),
    corner("ifold (fun s i -> s * x) 1.0 4", [0.0, 0.0], [0.0, 0.0], 0.0),
    corner("ifold (fun s i -> s * x) 1.0 2", [0.0, 0.0], [0.0, 0.0], 2.0),
    corner("ifold (fun s i -> s * x) y 0", [2.0, 3.0], [0.0, 1.0], 0.0),
    corner("fst (diff (fun t -> t * x) 1.0) * x", [3.0, 0.0], [6.0, 0.0], 2.0),
];

fn compare(way: &str, corner: &Corner, found: &[f64], expected: &[f64]) -> Option<String> {
    let close = |(a, b): (&f64, &f64)| b.is_nan() || (a - b).abs() <= 1e-14 * (1.0 + b.abs());
    let same = found.len() == expected.len() && found.iter().zip(expected).all(close);
    (!same).then(|| format!("{way}: `{}` at {:?}: {found:?} is not {expected:?}", corner.body, corner.at))
}

#[test]
fn corners_have_the_derivatives_that_they_have_by_hand() {
    let mut wrong = Vec::new();
    for corner in CORNERS {
        let text = format!("let f = fun (x : Double) (y : Double) -> {}", corner.body);
        let loops = match Module::from_text("<corner>", &text).and_then(|module| module.function("f")) {
            Ok(function) => function,
            Err(e) => {
                wrong.push(e.to_string());
                continue;
            }
        };
        let straight = loops.unrolled(&[]).unwrap();
        let at: [&[f64]; 2] = [&corner.at[..1], &corner.at[1..]];
        let eval = |f: &Function| f.compile().unwrap().eval(&at).unwrap().concat();
        let mut ways = vec![("auto", &loops, "with loops".to_owned())];
        ways.extend(STRATEGIES.iter().map(|s| (s.name, &straight, s.name.to_owned())));
        for (strategy, function, way) in ways {
            let gradient = function.gradient().strategy(strategy).function().unwrap();
            wrong.extend(compare(&way, corner, &eval(&gradient), &corner.gradient));
            let hessian = function.hessian().by(&["x"]).strategy(strategy).function().unwrap();
            wrong.extend(compare(&format!("Hessian, {way}"), corner, &eval(&hessian), &[corner.second]));
            let again = function.gradient().by(&["x"]).strategy(strategy).function().unwrap();
            let again = again.jacobian().by(&["x"]).strategy(strategy).function().unwrap();
            wrong.extend(compare(&format!("twice, {way}"), corner, &eval(&again), &[corner.second]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_second_derivative_of_a_sum_of_loops_is_that_by_hand() {
    // Reverse mode keeps pairs of numbers of each step, which are combined in arrays that replace their sources.
    let text =
        "let f = fun (x : [n]Double) (m : Card) -> sum m (fun j -> ifold (fun c q -> 0.5 * c + tanh x[0]) 1.0 3)";
    let f = Module::from_text("<corner>", text).and_then(|module| module.function("f")).unwrap();
    let x = [0.1_f64, 0.7];
    let t = x[0].tanh();
    let expected = 2.0 * 1.75 * (-2.0 * t * (1.0 - t * t));
    for strategy in ["auto", "forward", "reverse"] {
        let hessian = f.hessian().by(&["x"]).strategy(strategy).function().unwrap();
        let found = hessian.compile().unwrap().call(&[x.to_vec().into(), chainrule::Value::Int(2)]).unwrap();
        let found = doubles(&found);
        assert!((found[0] - expected).abs() < 1e-14, "{strategy}: {found:?}, {expected} by hand");
        assert_eq!(found[1..], [0.0; 3], "{strategy}");
    }
}
