//! The library from a user's perspective: every kind of derivative, derivatives inside expressions, users' own
//! functions, selection of arguments and results, messages for wrong requests.

// A failing test stops.
#![allow(clippy::unwrap_used)]

use chainrule::{
    Backend, CompileOptions, Error, Expr, Function, Matrix, Module, Scope, Semantics, Tensor, UserFunction, Value,
    Vector, check, d, matrix, select, time_derivative, var, vars,
};

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-13 * b.abs().max(1.0), "{a} is not {b}");
}

/// Returns f(x, y) = (x0 x1 + sin y0, exp(x0) y1): small, with zeros in its derivatives.
fn two_results() -> Function {
    let (x, y) = (vars("x", 2), vars("y", 2));
    let a = &x[0] * &x[1] + y[0].sin();
    let b = x[0].exp() * &y[1];
    Function::new("f", (&x, &y), &Vector::new(vec![a, b]).named("r")).unwrap()
}

const X: [f64; 2] = [0.3, -1.2];
const Y: [f64; 2] = [0.7, 2.0];

/// Checks that errors of a vanishing derivative are relative to values: cancellation leaves little of 115 digits.
#[test]
fn a_derivative_that_vanishes_is_compared_with_what_values_are() {
    let x = vars("x", 3);
    let quotient = (&x[0] / x[0].hypot(&x[0])).abs();
    let f = Function::new("f", &x, &quotient).unwrap();
    let agreement = check::compare(&f, &f.jacobian(), &check::Settings::default()).unwrap();
    assert!(agreement.worst() < 1e-15, "{agreement}");

    // Not every small number counts as zero.
    let (asked, wrong) = (f.jacobian(), Function::new("wrong", &x, &Vector::new(vec![&x[1] * 1e-9; 3])).unwrap());
    let points = [vec![vec![0.5, 1.0, 2.0]]];
    assert!(check::compare_at(&f, &asked, &wrong, &points).unwrap().worst() > 1e-9);
}

#[test]
fn jacobians_come_block_by_block() {
    for strategy in chainrule::STRATEGIES {
        let j = two_results().jacobian().strategy(strategy.name).function().unwrap();
        let names: Vec<String> = j.outputs().iter().map(|s| format!("{} {:?}", s.name, s.extents)).collect();
        assert_eq!(names, ["dr_dx [Some(2), Some(2)]", "dr_dy [Some(2), Some(2)]"]);
        let values = j.compile().unwrap().eval(&[&X, &Y]).unwrap();
        let e = X[0].exp();
        for (value, expected) in values.concat().iter().zip([X[1], X[0], e * Y[1], 0.0, Y[0].cos(), 0.0, 0.0, e]) {
            close(*value, expected);
        }
    }
}

#[test]
fn products_with_the_jacobian_agree_with_the_jacobian() {
    let f = two_results();
    let j = f.jacobian().compile().unwrap().eval(&[&X, &Y]).unwrap();
    let (dx, dy, u) = ([0.4, -0.9], [1.3, 0.2], [0.6, -1.7]);
    let jv = f.jvp().compile().unwrap().eval(&[&X, &Y, &dx, &dy]).unwrap();
    let uj = f.vjp().compile().unwrap().eval(&[&X, &Y, &u]).unwrap();
    for i in 0..2 {
        close(jv[0][i], (0..2).map(|c| j[0][2 * i + c] * dx[c] + j[1][2 * i + c] * dy[c]).sum());
        close(uj[0][i], (0..2).map(|r| u[r] * j[0][2 * r + i]).sum());
        close(uj[1][i], (0..2).map(|r| u[r] * j[1][2 * r + i]).sum());
    }
}

/// Compares derivatives by Taylor arithmetic, which are those above order 9, with derivatives of lower ones.
#[test]
fn derivatives_of_high_order_are_derivatives_of_lower_ones() {
    let bodies = [
        "sin (x * x)",
        "1 / (1 + x * x)",
        "x * log (x + 3) - x / (x - 4)",
        "exp (sin x)",
        "sqrt (x + 2) * tanh x",
        "x ** 2.5 + cbrt (x + 5)",
        "atan x * cosh x",
        "if x > 0.5 then exp (x * x) else sin x",
        "atan2 x 2 - hypot x 1",
        "erf x + erfc x * x + lgamma (x + 2)",
        "x ** x",
        "x ** 4",
        "3.5",
        "max x 0.1 * x",
        "sinh x * [x, x * x][1]",
    ];
    for (k, body) in bodies.into_iter().enumerate() {
        let text = format!("let f = fun (x : Double) -> {body}\nlet g = fun (x : Double) -> [{body}, x * ({body})]");
        let module = Module::from_text("f.ft", &text).unwrap();
        let f = module.function(if k % 2 == 0 { "f" } else { "g" }).unwrap().unrolled(&[]).unwrap();
        let of = |function: &Function, x: f64| function.compile().unwrap().eval(&[&[x]]).unwrap().concat();
        // Repeated differentiation is slow: three times for short functions only.
        let (below, above) = if k < 3 { (7, 3) } else { (10, 1) };
        let high = f.derivatives(below + above).function().unwrap();
        let low = f.derivatives(below).function().unwrap().derivatives(above).function().unwrap();
        for x in [0.3, 0.9] {
            for (high, low) in of(&high, x).into_iter().zip(of(&low, x)) {
                assert!((high - low).abs() <= 1e-7 * (1.0 + low.abs()), "{body} at {x}: {high} and {low}");
            }
        }
    }
    let module = Module::from_text("f.ft", "let f = fun (x : Double) -> exp (2 * x) + sin x").unwrap();
    let all = module.function("f").unwrap().derivatives(30).compile().unwrap().eval(&[&[0.5]]).unwrap().concat();
    let exact = 2f64.powi(30) * 1f64.exp() - 0.5f64.sin();
    assert!((all[0] / exact - 1.0).abs() < 1e-13, "{all:?}");
}

#[test]
fn hessians_are_symmetric_and_agree_with_products_and_third_derivatives() {
    let x = vars("x", 3);
    let f = Function::new("f", &x, &((&x[0] * &x[1]).sin() * x[2].exp() + x[1].pow(3.0))).unwrap();
    let p = [0.4, 0.9, -0.5];
    let h = &f.hessian().compile().unwrap().eval(&[&p]).unwrap()[0];
    let v = [0.3, -0.2, 1.1];
    let hv = &f.hvp().compile().unwrap().eval(&[&p, &v]).unwrap()[0];
    for i in 0..3 {
        for j in 0..3 {
            assert_eq!(h[3 * i + j], h[3 * j + i]);
        }
        close(hv[i], (0..3).map(|j| h[3 * i + j] * v[j]).sum());
    }
    // The gradient is a function: its Jacobian is the Hessian, and so on.
    let by_steps = f.gradient().function().unwrap().jacobian().compile().unwrap().eval(&[&p]).unwrap();
    for (a, b) in by_steps[0].iter().zip(h) {
        close(*a, *b);
    }
    let third = f.derivatives(3).compile().unwrap().eval(&[&p]).unwrap();
    let by_steps = f.hessian().function().unwrap().jacobian().compile().unwrap().eval(&[&p]).unwrap();
    assert_eq!(third[0].len(), 27);
    for (a, b) in third[0].iter().zip(&by_steps[0]) {
        close(*a, *b);
    }
}

#[test]
fn subsets_of_arguments_and_results_cost_only_themselves() {
    let f = two_results();
    let all = f.jacobian().function().unwrap().counts().unwrap();
    let part = f.jacobian().of(&["r[0]"]).by(&["x[1]"]).function().unwrap();
    assert_eq!(part.compile().unwrap().eval(&[&X, &Y]).unwrap(), [[X[0]]]);
    assert_eq!(part.counts().unwrap().arithmetic(), 0);
    assert!(all.arithmetic() > 0);
}

#[test]
fn sparse_results_have_their_pattern() {
    let x = vars("x", 4);
    let f: Expr = (0..3).map(|i| (&x[i + 1] - &x[i]).pow(2.0) * (&x[i] + 1.0)).sum();
    let f = Function::new("f", &x, &f).unwrap();
    let sparse = f.hessian().sparse().function().unwrap();
    let pattern = sparse.pattern("d2result_dx_dx").unwrap();
    assert_eq!(pattern.shape(), (4, 4));
    // Tridiagonal.
    let all = (0..4_usize).flat_map(|i| (0..4_usize).map(move |j| (i, j)));
    assert_eq!(pattern.coo(), all.filter(|(i, j)| i.abs_diff(*j) <= 1).collect::<Vec<_>>());
    let p = [0.1, 0.5, -0.3, 0.8];
    let dense = &f.hessian().compile().unwrap().eval(&[&p]).unwrap()[0];
    let values = &sparse.compile().unwrap().eval(&[&p]).unwrap()[0];
    for ((row, column), value) in pattern.coo().iter().zip(values) {
        assert_eq!(dense[4 * row + column], *value);
    }
}

#[test]
fn derivatives_stand_inside_expressions_and_are_differentiated_again() {
    let (x, y) = (var("x"), var("y"));
    let f = (&x * &y).sin() * &x;
    // g = df/dx * y; dg/dy needs the mixed second derivative.
    let g = d(&f, [&x]) * &y;
    let derived = Function::new("g", (&x, &y), &d(&g, [&y])).unwrap().compile().unwrap();
    let (a, b): (f64, f64) = (0.6, 1.4);
    let (s, c) = ((a * b).sin(), (a * b).cos());
    let (fx, fxy) = (a * b * c + s, 2.0 * a * c - a * a * b * s);
    close(derived.eval(&[&[a], &[b]]).unwrap()[0][0], fx + b * fxy);
    // Computed once, for any order.
    assert_eq!(d(&f, [&x, &y, &x]), d(&f, [&y, &x, &x]));
    assert_eq!(d(&d(&f, [&x]), [&y]), d(&f, [&x, &y]));
    assert_eq!(d(&x, [&y]).as_constant(), Some(0.0));
}

#[test]
fn derivatives_along_time_follow_the_rates() {
    let (q, qd, qdd) = (vars("q", 1), vars("qd", 1), vars("qdd", 1));
    let rates: [(&dyn Tensor, &dyn Tensor); 2] = [(&q, &qd), (&qd, &qdd)];
    let acceleration = time_derivative(&time_derivative(&q[0].sin(), &rates), &rates);
    let f = Function::new("a", (&q, &qd, &qdd), &acceleration).unwrap().compile().unwrap();
    let (q, v, a): (f64, f64, f64) = (0.4, 1.3, -0.7);
    close(f.eval(&[&[q], &[v], &[a]]).unwrap()[0][0], q.cos() * a - q.sin() * v * v);
}

#[test]
fn a_branch_not_taken_never_reaches_a_derivative() {
    let x = var("x");
    let f = select(&x.greater(0.0), x.sqrt().log(), 0.0) + select(&x.at_most(0.0), &x * 2.0, x.log());
    let in_rust = Function::new("f", &x, &f).unwrap();
    let text = "let f = fun (x : Double) -> (if x > 0 then log (sqrt x) else 0) + (if x <= 0 then 2 * x else log x)";
    let in_text = Module::from_text("<test>", text).unwrap().function("f").unwrap();
    let mut gradients = vec![in_text.gradient().compile().unwrap()];
    for f in [in_rust, in_text.unrolled(&[]).unwrap()] {
        gradients.extend(chainrule::STRATEGIES.iter().map(|s| f.gradient().strategy(s.name).compile().unwrap()));
    }
    for gradient in gradients {
        for (x, expected) in [(-1.0, 2.0), (0.0, 2.0), (2.0, 0.75)] {
            assert_eq!(gradient.eval(&[&[x]]).unwrap(), [[expected]]);
        }
    }
}

#[test]
fn users_functions_are_differentiated_as_they_say() {
    let cube = UserFunction::new("cube", 1, |x| x[0].powi(3)).with_partials(|x| vec![3.0 * &x[0] * &x[0]]);
    let slope = UserFunction::new("square", 1, |x| 3.0 * x[0] * x[0]);
    let by_callback = UserFunction::new("cube", 1, |x| x[0].powi(3)).with_partial_functions(vec![slope]);
    let x = var("x");
    for cube in [cube, by_callback] {
        let f = Function::new("f", &x, &(cube.call(&[&(&x * 2.0)]) + &x)).unwrap();
        assert_eq!(f.compile().unwrap().eval(&[&[1.0]]).unwrap(), [[9.0]]);
        assert_eq!(f.gradient().compile().unwrap().eval(&[&[1.0]]).unwrap(), [[25.0]]);
    }
    let opaque = UserFunction::new("opaque", 1, |x| x[0]);
    let f = Function::new("f", &x, &opaque.call(&[&x])).unwrap();
    let error = f.gradient().function().unwrap_err().to_string();
    assert!(error.contains("opaque"), "{error}");
    // Emitted C would have no function to call.
    assert!(f.emit_c().is_err());
}

#[test]
fn expressions_of_different_threads_combine() {
    let (x, f) = std::thread::spawn(|| {
        let x = var("x");
        let f = x.sin();
        (x, f)
    })
    .join()
    .unwrap();
    let y = var("y");
    let g = Function::new("g", (&x, &y), &(&y * &f + &x)).unwrap().compile().unwrap();
    close(g.eval(&[&[0.5], &[2.0]]).unwrap()[0][0], 2.0 * 0.5_f64.sin() + 0.5);
}

#[test]
fn strict_semantics_keep_what_ieee_says() {
    let at_infinity = |x: Expr| {
        let f = Function::new("f", &x, &(&x * 0.0)).unwrap().compile().unwrap();
        f.eval(&[&[f64::INFINITY]]).unwrap()[0][0]
    };
    assert!(at_infinity(Scope::new(Semantics::Strict).var("x")).is_nan());
    assert_eq!(at_infinity(var("x")), 0.0);
}

#[test]
fn the_same_function_gives_the_same_bytes() {
    let listing = || {
        let h = two_results().hessian().of(&["r[1]"]).with_value().function().unwrap();
        format!("{}\n{}", h.listing(), h.compile().unwrap().listing())
    };
    assert_eq!(listing(), listing());
}

#[test]
fn array_programs_keep_their_loops_and_agree_with_straight_line_code() {
    let text = "
        let softmaxLoss = fun (w : [n][m]Double) (x : [m]Double) (label : Index) ->
          let scores = build n (fun i -> vectorDot w[i] x)
          logSumExp scores - scores[label]";
    let f = Module::from_text("<test>", text).unwrap().function("softmaxLoss").unwrap();
    assert!(f.keeps_loops());
    let (w, x) = (vec![vec![0.1, -0.4], vec![0.7, 0.2], vec![-0.3, 0.5]], vec![1.5, -0.8]);
    let args = [Value::from(w.clone()), Value::from(x.clone()), Value::from(1_i64)];
    let loops = f.gradient().by(&["w"]).with_value().compile().unwrap().call(&args).unwrap();
    let straight = f.unrolled(&[("n", 3), ("m", 2), ("label", 1)]).unwrap();
    let flat = straight.gradient().by(&["w"]).with_value().compile().unwrap().eval(&[&w.concat(), &x]).unwrap();
    for (a, b) in loops[0].reals().into_iter().zip(flat.concat()) {
        close(*a, b);
    }
    let args: Vec<Value<f64>> = args.into_iter().chain([Value::from(2.0)]).collect();
    let pulled = f.vjp().by(&["w"]).compile().unwrap().call(&args).unwrap();
    for (a, b) in pulled[0].reals().into_iter().zip(&loops[0].reals()[1..]) {
        close(*a, 2.0 * **b);
    }
    // A sparse derivative with loops is two programs.
    let error = f.jacobian().sparse().function().unwrap_err().to_string();
    assert!(error.contains("is no single function") && error.contains("`matrix`"), "{error}");
    assert!(straight.jacobian().sparse().function().is_ok() && f.jacobian().matrix().is_ok());
    let agreement = check::compare(&straight, &straight.gradient(), &check::Settings::default()).unwrap();
    assert!(agreement.worst() < 1e-13, "{agreement}");
}

#[test]
fn batches_equal_single_points_bit_for_bit() {
    let a = matrix("a", 2, 2);
    let f = Function::new("f", &a, &((&a * &a).trace().sin() / &a[(0, 1)])).unwrap().gradient().compile().unwrap();
    let points = 131;
    let inputs: Vec<f64> = (0..4 * points).map(|i| (f64::from(i) * 0.37).sin() + 1.5).collect();
    let mut batch = vec![0.0; inputs.len()];
    let mut workspace = f.workspace(&[&[2, 2]]).unwrap();
    f.eval_batch(inputs.len() / 4, &[&inputs], &mut [&mut batch], &mut workspace).unwrap();
    for (point, values) in inputs.chunks(4).zip(batch.chunks(4)) {
        assert_eq!(f.eval(&[point]).unwrap()[0], values);
    }
}

/// Checks that every error is explained.
#[test]
fn wrong_requests_are_explained() {
    let (x, y) = (vars("x", 2), var("y"));
    let f = two_results();
    let cases: Vec<(Result<(), Error>, &str)> = vec![
        (Function::new("g", &x, &(&x[0] * &y)).map(drop), "depends on y, which is not among its inputs"),
        (Function::new("g", (&x, &x), &x[0]).map(drop), "given twice"),
        (Function::new("g", &Vector::new(vec![&x[0] + 1.0]), &x[0]).map(drop), "not a variable"),
        (Function::new("g", (&x, &Vector::new(vec![y.clone()]).named("x")), &y).map(drop), "are called `x`"),
        (f.gradient().function().map(drop), "needs one scalar result"),
        (f.jacobian().by(&["z"]).function().map(drop), "no argument `z`"),
        (f.jacobian().by(&["x[7]"]).function().map(drop), "no argument `x[7]`"),
        (f.jacobian().by(&["x", "x[0]"]).function().map(drop), "overlap"),
        (f.jacobian().of(&["s"]).function().map(drop), "no result `s`"),
        (f.jacobian().strategy("best").function().map(drop), "no strategy `best`"),
        (f.compile().unwrap().eval(&[&X]).map(drop), "takes 2 arguments, not 1"),
        (f.compile().unwrap().eval(&[&X, &[1.0]]).map(drop), "has 1 element, not 2"),
        (Module::load("/no/such/file.ft").map(drop), "cannot read"),
        (Module::from_text("<t>", "let f = fun (x : Double) -> x + ").map(drop), "Error"),
    ];
    for (result, expected) in cases {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}

#[test]
fn files_import_files_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("parts")).unwrap();
    write("main.ft", "import \"parts/shapes.ft\"\nlet f = fun (r : Double) -> area r + unit");
    write("parts/shapes.ft", "import \"constants.ft\"\nlet area = fun r -> pi * r ** 2");
    write("parts/constants.ft", "let unit = 1.0");
    // Imports of an imported file are not visible.
    let error = Module::load(folder.path().join("main.ft")).unwrap_err().to_string();
    assert!(error.contains("`unit`"), "{error}");
    write(
        "main.ft",
        "import \"parts/shapes.ft\"\nimport \"parts/constants.ft\"\nlet f = fun (r : Double) -> area r + unit",
    );
    let f = Module::load(folder.path().join("main.ft")).unwrap().function("f").unwrap();
    close(f.compile().unwrap().eval(&[&[2.0]]).unwrap()[0][0], 4.0 * std::f64::consts::PI + 1.0);
    write("main.ft", "import \"parts/missing.ft\"");
    let error = Module::load(folder.path().join("main.ft")).unwrap_err().to_string();
    assert!(error.contains("cannot import") && error.contains("missing.ft"), "{error}");
}

#[test]
fn everything_can_be_sent_and_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Expr>();
    shared::<Function>();
    shared::<chainrule::Derivation>();
    shared::<chainrule::Compiled>();
    shared::<Module>();
    shared::<UserFunction>();
    shared::<Error>();
    // One compiled function, many threads, with one workspace each.
    let x = vars("x", 3);
    let f = Function::new("f", &x, &x.norm()).unwrap().gradient().compile().unwrap();
    let expected = f.eval(&[&[1.0, 2.0, 2.0]]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut workspace = f.workspace(&[&[3]]).unwrap();
                let mut y = [0.0; 3];
                for _ in 0..100 {
                    f.eval_into(&[&[1.0, 2.0, 2.0]], &mut [&mut y], &mut workspace).unwrap();
                    assert_eq!(y, expected[0][..]);
                }
            });
        }
    });
}

#[test]
fn no_rows_have_as_many_elements_as_the_other_arguments_say() {
    let module = Module::from_text("<text>", "let f = fun (v : [n]Double) (y : [m][n + 1]Double) -> length y").unwrap();
    let f = module.function("f").unwrap().compile().unwrap();
    assert_eq!(f.call(&[vec![1.0, 2.0].into(), Value::Array(vec![])]).unwrap(), [Value::Int(0)]);
}

/// Checks that every operator of vectors and matrices compiles in all combinations of values and references.
#[test]
fn operators_take_values_and_references() {
    let (v, w, s) = (chainrule::vars("v", 2), chainrule::vars("w", 2), chainrule::var("s"));
    let a = Matrix::from_fn(2, 2, |i, j| &v[i] * &w[j]);
    macro_rules! same {
        ($left:ident $op:tt $right:ident) => {{
            let expected = &$left $op &$right;
            assert_eq!($left.clone() $op $right.clone(), expected);
            assert_eq!($left.clone() $op &$right, expected);
            assert_eq!(&$left $op $right.clone(), expected);
            expected
        }};
    }
    let elements = |t: &dyn Tensor| t.elements().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(elements(&same!(v + w)), ["v[0] + w[0]", "v[1] + w[1]"]);
    assert_eq!(elements(&same!(v - w)), ["v[0] - w[0]", "v[1] - w[1]"]);
    assert_eq!(elements(&same!(v / s)), ["v[0] / s", "v[1] / s"]);
    assert_eq!(same!(s * v), same!(v * s));
    assert_eq!(same!(s * a), same!(a * s));
    assert_eq!(same!(a + a), 2.0 * &a);
    assert_eq!(same!(a - a), 0.0 * &a);
    assert_eq!(same!(a * a).row(0).elements()[1], &a[(0, 0)] * &a[(0, 1)] + &a[(0, 1)] * &a[(1, 1)]);
    assert_eq!(same!(a * v)[0], &a[(0, 0)] * &v[0] + &a[(0, 1)] * &v[1]);
    assert_eq!(same!(a / s)[(1, 0)], &a[(1, 0)] / &s);
    for scaled in [2.0 * &v, 2.0 * v.clone(), &v * 2.0, v.clone() * 2.0, &v / 0.5, v.clone() / 0.5] {
        assert_eq!(scaled, &v + &v);
    }
    for scaled in [2.0 * &a, 2.0 * a.clone(), &a * 2.0, a.clone() * 2.0, &a / 0.5, a.clone() / 0.5] {
        assert_eq!(scaled, &a + &a);
    }
    assert_eq!((-&v, -&a), (-v.clone(), -a.clone()));
    assert_eq!((-&v)[1], -&v[1]);
    assert_eq!((-&a)[(0, 1)], -&a[(0, 1)]);
}

#[test]
fn operations_are_reported_by_result_and_by_line() {
    let text = "let f = fun (x : [n]Double) ->\n  let s = sum n (fun i -> x[i] * x[i])\n  in (s, sqrt s + x[0])\n";
    let f = chainrule::Module::from_text("f.ft", text).unwrap().function("f").unwrap().unrolled(&[("n", 3)]).unwrap();
    let results = f.operations_by_result();
    let told: Vec<(u64, u64, u64)> =
        results.iter().map(|r| (r.all.mul, r.all.add, r.alone.add + r.alone.call)).collect();
    // s is part of both; only the second needs the root and the last addition.
    assert_eq!(told, [(3, 2, 0), (3, 3, 2)]);
    let lines = f.operations_by_line().unwrap().lines;
    let told: Vec<(usize, u64, u64)> = lines.iter().map(|l| (l.line, l.counts.mul, l.counts.add)).collect();
    assert_eq!(told, [(2, 3, 2), (3, 0, 1)]);
    assert_eq!(lines[0].text, "let s = sum n (fun i -> x[i] * x[i])");
}

#[test]
fn cotangents_of_arrays_without_rows_may_have_rows_of_any_length() {
    let text = "let f = fun (x : [n]Double) -> build n (fun i -> build (n - 1) (fun j -> x[i] * x[j]))";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    let vjp = f.vjp().function().unwrap();
    let none = || Value::Array(vec![]);
    for backend in [Backend::Auto, Backend::Interpreter] {
        let vjp = vjp.compile_with(&CompileOptions { backend, ..CompileOptions::default() }).unwrap();
        assert_eq!(vjp.call(&[none(), none()]).unwrap(), [none()]);
        // With one row there are none; otherwise as many as rows.
        let one = vjp.call(&[vec![2.0].into(), Value::Array(vec![none()])]).unwrap();
        assert_eq!(one, [vec![0.0].into()]);
        let rows = Value::Array(vec![vec![1.0].into(), vec![10.0].into()]);
        assert_eq!(vjp.call(&[vec![2.0, 3.0].into(), rows]).unwrap(), [vec![34.0, 20.0].into()]);
        let wide = Value::Array(vec![vec![1.0, 1.0].into()]);
        let refused = vjp.call(&[vec![2.0].into(), wide]).unwrap_err().to_string();
        assert!(refused.contains("has extent 2 in dimension 2, but n - 1 = 0 is expected"), "{refused}");
    }
}
