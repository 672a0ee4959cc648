//! Zeros multiplied by infinite partial derivatives: a zero contributes zero, in every mode, by every strategy, strict
//! or not, with loops and without.
#![allow(clippy::unwrap_used, reason = "tests")]

use chainrule::{Backend, CompileOptions, Function, Module, STRATEGIES, Semantics, Sparse, Unroll};

const INF: f64 = f64::INFINITY;

/// Function of x and y, with its derivatives at a point.
struct Row {
    body: &'static str,
    at: [f64; 2],
    gradient: [f64; 2],
    /// By x twice, by x and y, by y twice; `None` if an infinite one meets another one.
    hessian: Option<[f64; 3]>,
}

const fn row(body: &'static str, at: [f64; 2], gradient: [f64; 2], hessian: [f64; 3]) -> Row {
    Row { body, at, gradient, hessian: Some(hessian) }
}

const fn first(body: &'static str, at: [f64; 2], gradient: [f64; 2]) -> Row {
    Row { body, at, gradient, hessian: None }
}

const ROWS: &[Row] = &[
    first("sqrt x + y", [0.0, 1.0], [INF, 1.0]),
    row("x * (1 - x ** 1.1) + 0 * y", [0.0, 0.0], [1.0, 0.0], [0.0, 0.0, 0.0]),
    first("acos (x / x) + x + y * y", [2.0, 3.0], [1.0, 6.0]),
    row("sqrt ((x - x) ** 2) + x", [2.0, 0.0], [1.0, 0.0], [0.0, 0.0, 0.0]),
    row("1 / (1 + exp (-x)) + y", [-800.0, 0.0], [0.0, 1.0], [0.0, 0.0, 0.0]),
    row("1 / (1 + exp x) + y ** 2", [800.0, 1.0], [0.0, 2.0], [0.0, 0.0, 2.0]),
    row("(1 + exp (-x)) ** (-1) + y", [-800.0, 0.0], [0.0, 1.0], [0.0, 0.0, 0.0]),
    first("y / (1 + exp (-x))", [-800.0, 2.0], [0.0, 0.0]),
    first("tanh (exp x) + y", [800.0, 0.0], [0.0, 1.0]),
    first("atan (sinh x) * y", [800.0, 2.0], [0.0, std::f64::consts::FRAC_PI_2]),
    first("exp (-(exp x)) + y", [800.0, 0.0], [0.0, 1.0]),
    first("x * sqrt x + y", [0.0, 1.0], [0.0, 1.0]),
    first("x * sqrt y", [0.0, 0.0], [0.0, 0.0]),
    first("x ** 2 * sqrt x - y", [0.0, 0.0], [0.0, -1.0]),
    first("sqrt (x * x) + y", [0.0, 0.0], [0.0, 1.0]),
    first("sqrt (x * x + y * y)", [0.0, 0.0], [0.0, 0.0]),
    first("sqrt (x * x + y * y) + y", [0.0, 0.0], [0.0, 1.0]),
    row("hypot x y", [0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0]),
    row("hypot (2 * x) (sin y) + y", [0.0, 0.0], [0.0, 1.0], [0.0, 0.0, 0.0]),
    row("hypot x 0 + x * y", [0.0, 3.0], [3.0, 0.0], [0.0, 1.0, 0.0]),
    row("y * hypot x x", [0.0, 3.0], [0.0, 0.0], [0.0, 0.0, 0.0]),
    first("(x * x + y * y) ** 0.5 * 3 + x", [0.0, 0.0], [1.0, 0.0]),
    first("(x * x) ** 0.3 + y", [0.0, 0.0], [0.0, 1.0]),
    first("asin (1 - x * x) + y", [0.0, 2.0], [0.0, 1.0]),
    first("acos (cos x) + y", [0.0, 2.0], [0.0, 1.0]),
    first("acosh (cosh x) + y", [0.0, 2.0], [0.0, 1.0]),
    first("cbrt (x * x) * y + y", [0.0, 2.0], [0.0, 1.0]),
    first("hypot (x * x) (y * y) + x", [0.0, 0.0], [1.0, 0.0]),
    first("atan2 (x * x) (y * y) + x", [0.0, 0.0], [1.0, 0.0]),
    first("log (x * x + 1) + sqrt (y * y)", [0.0, 0.0], [0.0, 0.0]),
    first("(if x > 0 then 1 else x) * sqrt y", [0.0, 0.0], [0.0, 0.0]),
    first("sin x * sqrt y + cos x * y", [0.0, 0.0], [0.0, 1.0]),
    first("exp x * sqrt y", [0.0, 0.0], [0.0, INF]),
    first("sqrt (sqrt (x * x)) + y", [0.0, 0.0], [0.0, 1.0]),
    row("x ** 2.5 + x * y", [0.0, 3.0], [3.0, 0.0], [0.0, 1.0, 0.0]),
    row("(x * y) ** 1.5", [0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0]),
    row("ifold (fun s i -> s * x) 1.0 3 * y", [0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0]),
    row("sum 3 (fun i -> 1 / (1 + exp (-(x * real (i + 1))))) + y", [-800.0, 0.0], [0.0, 1.0], [0.0, 0.0, 0.0]),
    first("sum 3 (fun i -> sqrt (x * x * real i)) + y", [0.0, 1.0], [0.0, 1.0]),
    first("(build 3 (fun i -> sqrt (x * real i) + y))[0]", [0.0, 1.0], [0.0, 1.0]),
    first("ifold (fun s i -> sqrt (s * s)) x 3 + y", [0.0, 1.0], [0.0, 1.0]),
    first("logSumExp [-inf, -inf + x] + y", [2.0, 1.0], [0.0, 1.0]),
    first("logSumExp [x - inf, y]", [2.0, 1.0], [0.0, 1.0]),
    first("vectorNorm [x, y] ** 2", [0.0, 0.0], [0.0, 0.0]),
    first("vectorNorm [x, y] ** 2 + x", [0.0, 0.0], [1.0, 0.0]),
    first("vectorNorm [x * x, y * y] + y", [0.0, 0.0], [0.0, 1.0]),
    first("sqrt (vectorNorm2 [x, y]) + y", [0.0, 0.0], [0.0, 1.0]),
    first("1 / (1 + exp (-(x * y)))", [-800.0, 1.0], [0.0, 0.0]),
    first("y * (1 / (1 + exp (-x))) ** 2", [-800.0, 2.0], [0.0, 0.0]),
    first("exp x / (exp x + exp y)", [0.0, 800.0], [0.0, 0.0]),
    first("1 / cosh x + y", [800.0, 0.0], [0.0, 1.0]),
    first("erf (expm1 x) + y", [800.0, 0.0], [0.0, 1.0]),
    first("erfc (expm1 x) + y", [800.0, 0.0], [0.0, 1.0]),
    first("x * sqrt x * y", [0.0, 3.0], [0.0, 0.0]),
    first("sin x * sqrt x + y", [0.0, 1.0], [0.0, 1.0]),
    first("(x + x * x) * sqrt x * y", [0.0, 2.0], [0.0, 0.0]),
    first("sqrt (x * y) + y", [0.0, 2.0], [INF, 1.0]),
    first("sqrt (x / y)", [0.0, 2.0], [INF, 0.0]),
    first("(x ** 4 + y ** 2) ** 0.5 + x", [0.0, 0.0], [1.0, 0.0]),
    first("sqrt (abs x + y * y) + y", [0.0, 0.0], [0.0, 1.0]),
    first("exp (-(sqrt (x * x + y * y)))", [0.0, 0.0], [0.0, 0.0]),
    first("sqrt (2 * x * x + 3 * y ** 2) * y + x", [0.0, 0.0], [1.0, 0.0]),
    first("cbrt x * x + y", [0.0, 1.0], [0.0, 1.0]),
    first("x ** 0.3 * x + y", [0.0, 1.0], [0.0, 1.0]),
    row("sqrt (1 - x * x) * (1 - x) + y", [1.0, 0.0], [0.0, 1.0], [INF, 0.0, 0.0]),
    first("sqrt (1 - x * x) * (1 - x * y)", [1.0, 1.0], [0.0, 0.0]),
    first("sqrt (1 - x - y) * (1 - x) ** 2", [1.0, 0.0], [0.0, 0.0]),
    first("sqrt (4 - x ** 2) * max 0 (2 - x) + y", [2.0, 1.0], [0.0, 1.0]),
    first("sqrt (1 - x * x) + y", [1.0, 0.0], [-INF, 1.0]),
    first("sqrt (1 - x * x - y * y)", [0.0, 1.0], [0.0, -INF]),
    row("x * sqrt x + y", [0.0, 1.0], [0.0, 1.0], [INF, 0.0, 0.0]),
    row("y * (x * sqrt x)", [0.0, 2.0], [0.0, 0.0], [INF, 0.0, 0.0]),
    row("(1 - x) * sqrt (1 - x) + y", [1.0, 1.0], [0.0, 1.0], [INF, 0.0, 0.0]),
    row("x ** 1.5 + y", [0.0, 1.0], [0.0, 1.0], [INF, 0.0, 0.0]),
    row("x * x ** 0.25 + y", [0.0, 1.0], [0.0, 1.0], [INF, 0.0, 0.0]),
    first("(abs x) ** 2 * (1 - x) * ((max y 0) ** 2 * (max x y) ** 0.5)", [-1.0, 0.0], [0.0, 0.0]),
    first("abs x * sqrt y + min x y", [0.0, 0.0], [1.0, 0.0]),
    first("x * y * sqrt (x - y)", [1.0, 1.0], [INF, -INF]),
    first("(x - 1) * y * sqrt (1 - y)", [1.0, 1.0], [0.0, 0.0]),
    first("asin (cos x) * y", [0.0, 2.0], [0.0, std::f64::consts::FRAC_PI_2]),
];

/// Returns the function in either semantics, with loops and, if it can be unrolled, without.
fn functions(text: &str) -> Vec<(String, Function)> {
    let mut all = Vec::new();
    for semantics in [Semantics::Algebraic, Semantics::Strict] {
        let module = Module::from_text("f.ft", text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let function = module.with_semantics(semantics).function("f").unwrap();
        if let Ok(straight) = function.unrolled(&[]) {
            all.push((format!("{semantics:?}, unrolled"), straight));
        }
        all.push((format!("{semantics:?}"), function.unroll(Unroll::Never)));
    }
    all
}

fn same(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a == b || (a - b).abs() <= 1e-14)
}

#[test]
fn a_zero_hides_an_infinity_in_every_mode() {
    let mut wrong = Vec::new();
    let mut n = 0;
    for Row { body, at, gradient, hessian } in ROWS {
        let mut expect = |way: String, found: Vec<f64>, expected: &[f64]| {
            n += 1;
            if !same(&found, expected) {
                wrong.push(format!("{body}, {way}: {found:?}, not {expected:?}"));
            }
        };
        let (x, y) = ([at[0]], [at[1]]);
        let [along_x, along_y] = [[1.0, 0.0], [0.0, 1.0]];
        for (how, function) in functions(&format!("let f = fun (x : Double) (y : Double) -> {body}")) {
            let straight = !function.keeps_loops();
            let strategies: Vec<&str> =
                if straight { STRATEGIES.iter().map(|s| s.name).collect() } else { vec!["auto", "forward", "reverse"] };
            for strategy in strategies {
                let way = |what: &str| format!("{what}, {how}, {strategy}");
                let derived = function.gradient().strategy(strategy).function().unwrap();
                for backend in [Backend::Auto, Backend::Interpreter] {
                    let options = CompileOptions { backend, ..CompileOptions::default() };
                    let run = derived.compile_with(&options).unwrap();
                    expect(way("gradient"), run.eval(&[&x, &y]).unwrap().concat(), gradient);
                }
                let Some([xx, xy, yy]) = hessian else { continue };
                let run = function.hessian().strategy(strategy).compile().unwrap();
                expect(way("Hessian"), run.eval(&[&x, &y]).unwrap().concat(), &[*xx, *xy, *xy, *yy]);
                let run = function.hvp().compile().unwrap();
                for (along, found) in [(along_x, [*xx, *xy]), (along_y, [*xy, *yy]), ([0.0; 2], [0.0; 2])] {
                    let [u, v] = along.map(|t| [t]);
                    expect(way("Hessian times direction"), run.eval(&[&x, &y, &u, &v]).unwrap().concat(), &found);
                }
            }
            let jvp = function.jvp().compile().unwrap();
            for (along, slope) in [(along_x, gradient[0]), (along_y, gradient[1]), ([0.0; 2], 0.0)] {
                let [u, v] = along.map(|t| [t]);
                expect(format!("along {along:?}, {how}"), jvp.eval(&[&x, &y, &u, &v]).unwrap().concat(), &[slope]);
            }
            let vjp = function.vjp().compile().unwrap();
            for weight in [1.0, 0.0] {
                let expected = gradient.map(|slope| if weight == 0.0 { 0.0 } else { slope });
                expect(format!("{weight} times, {how}"), vjp.eval(&[&x, &y, &[weight]]).unwrap().concat(), &expected);
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {n} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(n > 3000, "{n} comparisons");
}

/// Tests a direction and a cotangent in memory that are zero at the singular points of an array's elements.
#[test]
fn zeros_in_memory_hide_infinities() {
    let text = "let roots = fun (x : [n]Double) -> build n (fun i -> sqrt x[i])\n\
        let powers = fun (x : [n]Double) -> build n (fun i -> x[i] ** 0.25)\n\
        let norms = fun (x : [n]Double) -> build n (fun i -> vectorNorm [x[i], 0] + sqrt x[i])\n\
        let carried = fun (x : [n]Double) -> fst (scan (fun s i -> (s + sqrt x[i], s)) 0 n) * x[0]";
    let x = [4.0, 0.0, 1.0];
    for semantics in [Semantics::Algebraic, Semantics::Strict] {
        let module = Module::from_text("f.ft", text).unwrap().with_semantics(semantics);
        for (name, slope) in [("roots", 0.25), ("powers", 0.25 / 8f64.sqrt()), ("norms", 1.25)] {
            let function = module.function(name).unwrap();
            for function in [function.clone(), function.unrolled(&[("n", 3)]).unwrap()] {
                let along = function.jvp().compile().unwrap().eval(&[&x, &[1.0, 0.0, 0.0]]).unwrap().concat();
                assert!(same(&along, &[slope, 0.0, 0.0]), "{name} along: {along:?}");
                let back = function.vjp().compile().unwrap().eval(&[&x, &[1.0, 0.0, 0.0]]).unwrap().concat();
                assert!(same(&back, &[slope, 0.0, 0.0]), "{name} back: {back:?}");
            }
        }
        let carried = module.function("carried").unwrap();
        let along = carried.jvp().compile().unwrap().eval(&[&x, &[1.0, 0.0, 0.0]]).unwrap().concat();
        assert!(same(&along, &[0.25 * 4.0 + 3.0]), "{along:?}");
    }
}

/// Functions of `#` whose roots vanish at 0, with their first and second derivative there.
const ROOTS: &[(&str, f64, f64)] = &[
    ("(# ** 0.5) ** 2 * (# + 1)", 1.0, 2.0),
    ("sqrt # * sqrt #", 1.0, 0.0),
    ("# ** 0.5 * 3 * sqrt # - #", 2.0, 0.0),
    ("sqrt # * sqrt # * sqrt #", 0.0, INF),
    ("(sqrt #) ** 3", 0.0, INF),
    ("(2 * sqrt #) ** 4", 0.0, 32.0),
    ("# * sqrt # * sqrt #", 0.0, 2.0),
    ("(cbrt #) ** 3 * (# + 1)", 1.0, 2.0),
    ("(cbrt #) ** 4", 0.0, INF),
    ("cbrt # * # ** 1.5", 0.0, INF),
    ("sqrt # * cbrt #", INF, -INF),
    ("(# ** 0.3) ** 2", INF, -INF),
    ("# ** 0.7 * (# + 1) * # ** 0.8 * (# + 1)", 0.0, INF),
    ("# ** 1.25 * cos # * # ** 0.75", 0.0, 2.0),
    ("(# ** (1/3)) ** 3 + #", 2.0, 0.0),
    ("# / sqrt #", INF, -INF),
    ("# / sqrt (4 * #)", INF, -INF),
    // Multiples of one number, of both signs.
    ("sqrt # * sqrt (2 * #)", std::f64::consts::SQRT_2, 0.0),
    ("sqrt (# / 2) * sqrt #", std::f64::consts::FRAC_1_SQRT_2, 0.0),
    ("sqrt (2 * #) * sqrt (8 * #) + sqrt (3 * #) ** 2", 7.0, 0.0),
    ("sqrt (-#) * sqrt (# * (-3))", -1.732_050_807_568_877_2, 0.0),
    ("sqrt (-#) ** 3 * sqrt (-#)", 0.0, 2.0),
    ("# * sqrt (-#) * sqrt (-#)", 0.0, -2.0),
    ("cbrt (8 * #) * cbrt # * cbrt (-#)", -2.0, 0.0),
    ("sqrt (2 * #) * cbrt # * cbrt # * # ** (1/3)", 0.0, INF),
    // Roots of powers and of roots.
    ("sqrt (# ** 3)", 0.0, INF),
    ("sqrt (# * 4 * # * #) + #", 1.0, INF),
    ("(# ** 5) ** 0.3", 0.0, INF),
    ("(# ** 3) ** 0.3", INF, -INF),
    ("sqrt (# ** 4) * 3", 0.0, 6.0),
    ("(# * # * # * #) ** 0.5", 0.0, 2.0),
    ("sqrt (9 * # * #) + #", 1.0, 0.0),
    ("(# ** 2) ** 1.5", 0.0, 0.0),
    ("cbrt (# ** 3) * 2", 2.0, 0.0),
    ("cbrt (8 * # ** 6)", 0.0, 4.0),
    ("sqrt (sqrt #) ** 4", 1.0, 0.0),
    ("sqrt (sqrt #) * sqrt (sqrt (16 * #))", INF, -INF),
    ("sqrt (# ** 1.5)", INF, -INF),
    ("(# ** 1.5) ** (2/3) * cos #", 1.0, 0.0),
    // Absolute values and norms.
    ("sqrt # * abs #", 0.0, INF),
    ("sqrt (2 * #) * sqrt (# * #)", 0.0, INF),
    ("sqrt (-#) * abs # * sqrt (-#)", 0.0, 2.0),
    ("sqrt # * hypot # #", 0.0, INF),
    ("hypot # 0 * sqrt #", 0.0, INF),
    ("hypot # (2 * #) + #", 1.0, 0.0),
    ("hypot # # * hypot # #", 0.0, 4.0),
    ("abs # ** 2 + abs (sin #) * abs (sin #)", 0.0, 4.0),
    ("abs # ** 3", 0.0, 0.0),
    ("hypot (sin #) # ** 2", 0.0, 4.0),
    ("hypot (sin #) # * cos # * hypot (sin #) #", 0.0, 4.0),
];

/// A product of roots of one number is a power, and has its derivatives, with loops and without.
#[test]
fn products_of_roots_have_the_derivatives_of_their_power() {
    for (body, slope, curvature) in ROOTS {
        let scalar = format!("let f = fun (x : Double) -> {}", body.replace('#', "x"));
        let read = body.replace('#', "x[i]");
        let array = format!("let f = fun (x : [n]Double) -> sum n (fun i -> {read})");
        for (text, n) in [(scalar, None), (array, Some(1))] {
            let function = Module::from_text("f.ft", &text).unwrap().function("f").unwrap();
            let sizes: Vec<(&str, i64)> = n.into_iter().map(|n| ("n", n)).collect();
            for function in [function.clone().unroll(Unroll::Never), function.unrolled(&sizes).unwrap()] {
                let first = function.gradient().compile().unwrap().eval(&[&[0.0]]).unwrap().concat();
                assert!(same(&first, &[*slope]), "{text}: {first:?}");
                let second = function.hessian().compile().unwrap().eval(&[&[0.0]]).unwrap().concat();
                assert!(same(&second, &[*curvature]), "{text}: {second:?}");
            }
        }
    }
}

#[test]
fn sparse_derivatives_keep_zeros_and_infinities_apart() {
    let text = "let f = fun (x : [n]Double) -> build n (fun i -> sqrt x[i] + x[max 0 (i - 1)])";
    let module = Module::from_text("f.ft", text).unwrap();
    let values = |sparse: &Sparse, x: &[f64]| {
        let mut at = sparse.prepare(&[x.to_vec().into()]).unwrap();
        at.run().unwrap();
        at.values().to_vec()
    };
    let found = values(&module.function("f").unwrap().sparse_jacobian(&[]).unwrap(), &[4.0, 0.0, 1.0]);
    assert!(same(&found, &[1.25, 1.0, INF, 1.0, 0.5]), "{found:?}");
}

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

/// Returns the product in which a zero masks an infinity.
fn strong(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// Operator as text, its value, its partial derivatives.
type Operator = (&'static str, fn(f64, f64) -> f64, fn(f64, f64) -> [f64; 2]);

const OPERATORS: &[Operator] = &[
    ("A + B", |a, b| a + b, |_, _| [1.0, 1.0]),
    ("A - B", |a, b| a - b, |_, _| [1.0, -1.0]),
    ("A * B", |a, b| a * b, |a, b| [b, a]),
    ("A * B", |a, b| a * b, |a, b| [b, a]),
    ("2 * A", |a, _| 2.0 * a, |_, _| [2.0, 0.0]),
    ("sin A", |a, _| a.sin(), |a, _| [a.cos(), 0.0]),
    ("cos A", |a, _| a.cos(), |a, _| [-a.sin(), 0.0]),
    ("sqrt A", |a, _| a.sqrt(), |a, _| [0.5 / a.sqrt(), 0.0]),
    ("sqrt A", |a, _| a.sqrt(), |a, _| [0.5 / a.sqrt(), 0.0]),
    ("A ** 0.25", |a, _| a.powf(0.25), |a, _| [0.25 * a.powf(-0.75), 0.0]),
    ("A ** 1.5", |a, _| a.powf(1.5), |a, _| [1.5 * a.powf(0.5), 0.0]),
    ("asin A", |a, _| a.asin(), |a, _| [1.0 / ((1.0 - a) * (1.0 + a)).sqrt(), 0.0]),
    ("acos A", |a, _| a.acos(), |a, _| [-1.0 / ((1.0 - a) * (1.0 + a)).sqrt(), 0.0]),
    ("hypot A B", f64::hypot, |a, b| [a / a.hypot(b), b / a.hypot(b)]),
];

/// Program: for each line its operator and its arguments.
type Lines = Vec<(usize, [usize; 2])>;

/// Returns its gradient by the chain rule in forward and in reverse mode, with strong products; `None` if a value is
/// not finite.
fn gradients(lines: &Lines, at: [f64; 2]) -> Option<[[f64; 2]; 2]> {
    let mut values = at.to_vec();
    for (op, [a, b]) in lines {
        values.push(OPERATORS[*op].1(values[*a], values[*b]));
    }
    if values.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let partials = |(op, [a, b]): &(usize, [usize; 2])| OPERATORS[*op].2(values[*a], values[*b]);
    let forward = [[1.0, 0.0], [0.0, 1.0]].map(|seed| {
        let mut tangents = seed.to_vec();
        for line in lines {
            let [p, q] = partials(line);
            tangents.push(strong(p, tangents[line.1[0]]) + strong(q, tangents[line.1[1]]));
        }
        tangents[tangents.len() - 1]
    });
    let mut cotangents = vec![0.0; values.len()];
    cotangents[values.len() - 1] = 1.0;
    for (k, line) in lines.iter().enumerate().rev() {
        let cotangent = cotangents[k + 2];
        for (arg, partial) in line.1.iter().zip(partials(line)) {
            cotangents[*arg] += strong(partial, cotangent);
        }
    }
    Some([forward, [cotangents[0], cotangents[1]]])
}

#[test]
fn random_programs_hide_infinities_as_strong_products_do() {
    let mut random = Random(46);
    let (mut compared, mut singular, mut wrong) = (0, 0, Vec::new());
    while compared < 400 {
        let n = 3 + random.below(6);
        let lines: Lines = (0..n)
            .map(|k| (random.below(OPERATORS.len()), [0, 1].map(|_| (k + 1).saturating_sub(random.below(3)))))
            .collect();
        let at = [0, 1].map(|_| [0.0, 0.0, 1.0, -1.0, 0.5][random.below(5)]);
        let Some([expected, reverse]) = gradients(&lines, at) else { continue };
        // Near a border, rounding decides.
        if expected.iter().any(|slope| slope.is_finite() && slope.abs() > 1e6) {
            continue;
        }
        // Paths that cancel: NaN, or different values in the modes.
        if expected.iter().zip(reverse).any(|(a, b)| a.is_nan() || !(*a == b || (a - b).abs() <= 1e-12 * a.abs())) {
            continue;
        }
        compared += 1;
        let mut text = "let f = fun (x : Double) (y : Double) ->\n  let v0 = x\n  let v1 = y\n".to_owned();
        for (k, (op, [a, b])) in lines.iter().enumerate() {
            let line = OPERATORS[*op].0.replace('A', &format!("v{a}")).replace('B', &format!("v{b}"));
            text += &format!("  let v{} = {line}\n", k + 2);
        }
        text += &format!("  v{}", lines.len() + 1);
        let module = Module::from_text("f.ft", &text).unwrap().with_semantics(Semantics::Strict);
        let function = module.function("f").unwrap();
        let at = [[at[0]], [at[1]]];
        let close = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-12 * (1.0 + b.abs());
        let mut expect = |way: &str, found: &[f64], expected: &[f64]| {
            if !found.iter().zip(expected).all(|(a, b)| close(*a, *b)) {
                wrong.push(format!("{way} at {at:?}: {found:?}, not {expected:?}\n{text}"));
            }
        };
        for strategy in ["forward", "reverse"] {
            let found = function.gradient().strategy(strategy).compile().unwrap().eval(&[&at[0], &at[1]]).unwrap();
            expect(strategy, &found.concat(), &expected);
        }
        let jvp = function.jvp().compile().unwrap();
        for (along, slope) in [([1.0, 0.0], expected[0]), ([0.0, 1.0], expected[1]), ([0.0, 0.0], 0.0)] {
            let found = jvp.eval(&[&at[0], &at[1], &along[..1], &along[1..]]).unwrap().concat();
            expect("along", &found, &[slope]);
        }
        let vjp = function.vjp().compile().unwrap();
        expect("no weight", &vjp.eval(&[&at[0], &at[1], &[0.0]]).unwrap().concat(), &[0.0, 0.0]);
        singular += usize::from(lines.iter().any(|(op, _)| *op >= 7) && at.concat().contains(&0.0));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(singular > 100, "{singular} of {compared} are singular");
}

/// Checks that the root cancels, so that the second derivative is correct, too.
#[test]
fn the_square_of_a_norm_has_its_hessian_where_the_root_cancels() {
    let text = "let square = fun (x : [n]Double) -> vectorNorm x ** 2\n\
        let product = fun (x : [n]Double) -> let r = vectorNorm x in r * r\n\
        let scaled = fun (x : [n]Double) -> (2 * sqrt (vectorNorm2 x)) ** 2 / 4";
    let module = Module::from_text("f.ft", text).unwrap();
    for name in ["square", "product", "scaled"] {
        let loops = module.function(name).unwrap();
        let straight = loops.unrolled(&[("n", 2)]).unwrap();
        let expect = |way: &str, found: Vec<Vec<f64>>, expected: &[f64]| {
            assert_eq!(found.concat(), expected, "{name}, {way}");
        };
        for strategy in STRATEGIES {
            let run = straight.hessian().strategy(strategy.name).compile().unwrap();
            expect(strategy.name, run.eval(&[&[0.0, 0.0]]).unwrap(), &[2.0, 0.0, 0.0, 2.0]);
        }
        for function in [straight, loops.unroll(Unroll::Never)] {
            let hessian = function.hessian().compile().unwrap();
            expect("Hessian", hessian.eval(&[&[0.0, 0.0]]).unwrap(), &[2.0, 0.0, 0.0, 2.0]);
            expect("Hessian", hessian.eval(&[&[3.0, 4.0]]).unwrap(), &[2.0, 0.0, 0.0, 2.0]);
            let hvp = function.hvp().compile().unwrap();
            expect("along", hvp.eval(&[&[0.0, 0.0], &[1.0, 3.0]]).unwrap(), &[2.0, 6.0]);
            let gradient = function.gradient().compile().unwrap();
            expect("gradient", gradient.eval(&[&[3.0, 4.0]]).unwrap(), &[6.0, 8.0]);
        }
    }
}

/// Checks that a masked slope costs a comparison and a selection for all components, and nothing where a zero cannot
/// meet it.
#[test]
fn a_mask_is_made_once_and_only_where_it_matters() {
    let text = "let norm = fun (x : [5]Double) -> sqrt (sum 5 (fun i -> x[i] ** 2))\n\
        let logistic = fun (x : Double) (y : Double) -> y / (1 + exp (-x))\n\
        let potential = fun (x : [3]Double) -> 1 / sqrt (sum 3 (fun i -> x[i] ** 2))\n\
        let root = fun (x : Double) (y : Double) -> y * sqrt x\n\
        let shares = fun (x : [3]Double) -> sum 3 (fun i -> real (i + 1) * exp x[i]) / sum 3 (fun i -> exp x[i])\n\
        let entropy = fun (x : [3]Double) -> log (sum 3 (fun i -> exp x[i]))\n\
        let smooth = fun (x : Double) -> sqrt (x * x + 0.01)\n\
        let softplus = fun (x : Double) -> log (1 + exp x)\n\
        let power = fun (x : Double) -> x ** (-1.5)";
    let module = Module::from_text("f.ft", text).unwrap();
    let rows = [
        ("norm", 2),
        ("logistic", 2),
        ("potential", 0),
        ("root", 2),
        ("shares", 0),
        ("entropy", 0),
        ("smooth", 0),
        ("softplus", 0),
        ("power", 0),
    ];
    for (name, logic) in rows {
        let function = module.function(name).unwrap().unrolled(&[]).unwrap();
        for derivation in [function.gradient(), function.hessian()] {
            assert_eq!(derivation.function().unwrap().counts().unwrap().logic, logic, "{name}");
        }
    }
}

/// Checks derivatives where squares of the slopes' factors over- or underflow.
#[test]
fn masks_keep_the_digits_of_ordinary_numbers() {
    let text = "let logistic = fun (x : Double) -> 1 / (1 + exp (-x))\n\
        let norm = fun (x : Double) (y : Double) -> sqrt (x * x + y * y)";
    let module = Module::from_text("f.ft", text).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-13 * b.abs();
    let logistic = module.function("logistic").unwrap().gradient().compile().unwrap();
    for x in [-30.0, -300.0, -400.0, -700.0, 30.0, 300.0f64] {
        let found = logistic.eval(&[&[x]]).unwrap()[0][0];
        assert!(close(found, (-x.abs()).exp() / (1.0 + (-x.abs()).exp()).powi(2)), "{x}: {found}");
    }
    let norm = module.function("norm").unwrap();
    let (gradient, hessian) = (norm.gradient().compile().unwrap(), norm.hessian().compile().unwrap());
    for scale in [1e-100, 1e-50, 1.0, 1e50, 1e100f64] {
        let at: [&[f64]; 2] = [&[3.0 * scale], &[4.0 * scale]];
        let found = gradient.eval(&at).unwrap().concat();
        assert!(close(found[0], 0.6) && close(found[1], 0.8), "{scale}: {found:?}");
        let found = hessian.eval(&at).unwrap().concat();
        let expected = [0.128 / scale, -0.096 / scale, -0.096 / scale, 0.072 / scale];
        assert!(found.iter().zip(expected).all(|(a, b)| close(*a, b)), "{scale}: {found:?}");
    }
}

#[test]
fn even_powers_of_roots_have_their_hessians_at_zero() {
    let text = "let fourth = fun (x : [n]Double) -> vectorNorm x ** 4\n\
        let weighted = fun (x : [n]Double) -> (2 * vectorNorm x) ** 4 / 16";
    let module = Module::from_text("f.ft", text).unwrap();
    for name in ["fourth", "weighted"] {
        let loops = module.function(name).unwrap();
        for function in [loops.unrolled(&[("n", 2)]).unwrap(), loops.unroll(Unroll::Never)] {
            let hessian = function.hessian().compile().unwrap();
            assert_eq!(hessian.eval(&[&[0.0, 0.0]]).unwrap().concat(), [0.0; 4], "{name}");
            let found = hessian.eval(&[&[3.0, 4.0]]).unwrap().concat();
            for (found, expected) in found.iter().zip([172.0, 96.0, 96.0, 228.0]) {
                assert!((found - expected).abs() <= 1e-12 * expected, "{name}: {found} is not {expected}");
            }
        }
    }
}
