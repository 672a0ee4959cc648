//! Consistent layouts and names: arguments and results of a function and its derivatives do not depend on whether loops
//! are kept or unrolled.

#![allow(clippy::unwrap_used, reason = "tests")]

use chainrule::{Derivation, Function, Module, Semantics, Type, Unroll, Value, check};

const PROGRAM: &str = "
let rows = fun (v : [n]Double) -> build n (fun i -> (v[i], v[i] ** 2))
let fields = fun (p : { a : Double, b : [n]Double }) -> p.a * sum n (fun i -> p.b[i] ** 2)
let pairs = fun (ps : [n](Double, { x : Double, y : [2]Double })) -> sum n (fun i -> ps[i].0 ** 2 * ps[i].1.x * ps[i].1.y[1])
let both = fun (p : ([n]Double, Double)) (q : { u : { v : Double }, w : [n]Double }) ->
  build n (fun i -> { s = p.0[i] * q.u.v ** 2, t = (p.1 * q.w[i], build 2 (fun k -> q.w[i] ** 2 * p.1)) })
let scalar = fun (p : ([n]Double, Double)) (q : { u : { v : Double }, w : [n]Double }) ->
  sum n (fun i -> p.0[i] ** 2 * q.u.v ** 2 * p.1 * q.w[i])
let plain = fun (x : [n]Double) (y : [n][n]Double) -> sum n (fun i -> sum n (fun j -> x[i] * x[j] * y[i][j] ** 2))
";

/// Number of elements of every open dimension.
const N: usize = 3;

/// Returns a value of type `ty`, of distinct numbers.
fn value(ty: &Type, next: &mut f64) -> Value<f64> {
    match ty {
        Type::Double => {
            *next += 0.37;
            Value::Real(*next)
        }
        Type::Array(size, element) => {
            let n = size.as_constant().map_or(N, |n| n as usize);
            Value::Array((0..n).map(|_| value(element, next)).collect())
        }
        Type::Tuple(fields, _) => Value::Tuple(fields.iter().map(|field| value(field, next)).collect()),
        Type::Int | Type::Bool => panic!("no number"),
    }
}

fn numbers(value: &Value<f64>, into: &mut Vec<f64>) {
    match value {
        Value::Real(x) => into.push(*x),
        Value::Array(items) | Value::Tuple(items) => items.iter().for_each(|item| numbers(item, into)),
        other => panic!("{other:?}"),
    }
}

/// Returns a type without its sizes.
fn shape(ty: &Type) -> String {
    match ty {
        Type::Array(_, element) => format!("[]{}", shape(element)),
        Type::Tuple(fields, names) => {
            let names = names.iter().flat_map(|names| names.iter()).map(ToString::to_string).collect::<Vec<_>>();
            format!("({} {})", names.join(","), fields.iter().map(shape).collect::<Vec<_>>().join(", "))
        }
        scalar => format!("{scalar:?}"),
    }
}

fn functions(name: &str) -> [Function; 2] {
    let kept = Module::from_text("f.ft", PROGRAM).unwrap().function(name).unwrap();
    let unrolled = kept.unrolled(&[("n", N as i64)]).unwrap();
    assert!(kept.keeps_loops() && !unrolled.keeps_loops());
    [kept, unrolled]
}

#[track_caller]
fn agree(what: &str, kept: &Function, unrolled: &Function) {
    let shapes = |f: &Function| {
        let all = |ports: &[(chainrule::Name, Type)]| {
            ports.iter().map(|(name, ty)| format!("{name} : {}", shape(ty))).collect::<Vec<_>>()
        };
        (all(&f.signature().params), all(&f.signature().results))
    };
    assert_eq!(shapes(kept), shapes(unrolled), "{what}");
    let names = |shapes: &[chainrule::Shape]| shapes.iter().map(|s| s.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(kept.inputs()), names(unrolled.inputs()), "{what}");
    assert_eq!(names(kept.outputs()), names(unrolled.outputs()), "{what}");
    let mut next = 0.1;
    let args: Vec<Value<f64>> = kept.signature().params.iter().map(|(_, ty)| value(ty, &mut next)).collect();
    let saved = unrolled.compile().unwrap().to_bytes().unwrap();
    let loaded = chainrule::Compiled::from_bytes(&saved).unwrap();
    let expected = kept.compile().unwrap().call(&args).unwrap();
    for found in [unrolled.compile().unwrap().call(&args).unwrap(), loaded.call(&args).unwrap()] {
        let flat = |values: &[Value<f64>]| {
            let mut all = Vec::new();
            values.iter().for_each(|value| numbers(value, &mut all));
            all
        };
        let (expected, found) = (flat(&expected), flat(&found));
        assert_eq!(expected.len(), found.len(), "{what}");
        let is_near = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-12 * (1.0 + x.abs());
        assert!(expected.iter().zip(&found).all(is_near), "{what}: {found:?} is not {expected:?}");
    }
    // Emitted code uses the same names.
    for f in [kept, unrolled] {
        let header = f.emit_c().unwrap().header;
        for name in names(f.inputs()).iter().chain(&names(f.outputs())) {
            let name = name.replace('.', "_");
            assert!(header.contains(&format!("*{name}")) || header.contains(&format!(" {name}")), "{what}: {name}");
        }
    }
}

#[test]
fn values_have_one_layout() {
    for name in ["rows", "fields", "pairs", "both", "scalar", "plain"] {
        let [kept, unrolled] = functions(name);
        agree(name, &kept, &unrolled);
    }
}

#[test]
fn derivatives_have_one_layout() {
    type Request = fn(&Function) -> Derivation;
    let any: [(&str, Request); 3] =
        [("jacobian", Function::jacobian), ("jvp with value", |f| f.jvp().with_value()), ("vjp", Function::vjp)];
    let scalar: [(&str, Request); 6] = [
        ("gradient", Function::gradient),
        ("gradient with value", |f| f.gradient().with_value()),
        ("hessian", Function::hessian),
        ("hessian diagonal", Function::hessian_diagonal),
        ("hvp", Function::hvp),
        ("gradient and hessian", |f| f.gradient().and(&f.hessian())),
    ];
    for name in ["rows", "fields", "pairs", "both", "scalar", "plain"] {
        let [kept, unrolled] = functions(name);
        let is_scalar = !matches!(name, "rows" | "both");
        let requests = any.iter().chain(scalar.iter().filter(|_| is_scalar));
        for (what, request) in requests {
            let derived = |f: &Function| request(f).function().unwrap();
            agree(&format!("{what} of {name}"), &derived(&kept), &derived(&unrolled));
        }
    }
}

#[test]
fn one_argument_that_is_a_record_is_differentiated_by() {
    for (name, by) in [("both", "q"), ("both", "p"), ("scalar", "q"), ("plain", "y")] {
        let [kept, unrolled] = functions(name);
        let derived = |f: &Function| f.jacobian().by(&[by]).function().unwrap();
        agree(&format!("{name} by {by}"), &derived(&kept), &derived(&unrolled));
        let derived = |f: &Function| f.jvp().by(&[by]).function().unwrap();
        agree(&format!("{name} along {by}"), &derived(&kept), &derived(&unrolled));
    }
}

#[test]
fn leaves_and_elements_can_still_be_chosen() {
    let [_, unrolled] = functions("fields");
    let by = |names: &[&str]| unrolled.gradient().by(names).compile().unwrap();
    let args = [Value::Tuple(vec![Value::Real(2.0), vec![1.0, 2.0, 3.0].into()])];
    assert_eq!(by(&["p.b"]).call(&args).unwrap(), [vec![4.0, 8.0, 12.0].into()]);
    assert_eq!(by(&["p.b[1]"]).call(&args).unwrap(), [Value::Real(8.0)]);
    let twice = unrolled.gradient().by(&["p", "p.a"]).function().unwrap_err().to_string();
    assert!(twice.contains("overlap"), "{twice}");
}

#[test]
fn an_argument_is_not_taken_for_a_direction() {
    let text = "let f = fun (x : [n]Double) (x_tan : [n]Double) -> sum n (fun i -> x[i] * x_tan[i])";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    for f in [f.unrolled(&[("n", 2)]).unwrap(), f] {
        let error = f.jvp().by(&["x"]).function().unwrap_err().to_string();
        assert!(error.contains("`x_tan` already"), "{error}");
    }
}

fn function(text: &str) -> Function {
    Module::from_text("f.ft", text).unwrap().function("f").unwrap()
}

#[test]
fn what_is_unrolled_has_the_interface_of_loops() {
    for name in ["rows", "fields", "pairs", "both", "scalar", "plain"] {
        let kept = Module::from_text("f.ft", PROGRAM).unwrap().function(name).unwrap();
        let auto = kept.at_sizes(&[("n", N as i64)]).unwrap();
        assert!(kept.keeps_loops() && !auto.keeps_loops(), "{name}: {:?}", auto.unrolling());
        let never = auto.clone().unroll(Unroll::Never);
        agree(name, &never, &auto);
        let requests: &[fn(&Function) -> Derivation] = match name {
            "rows" | "both" => &[Function::jacobian, |f| f.vjp().with_value()],
            _ => &[Function::gradient, Function::hessian, |f| f.hvp().with_value(), Function::hessian_diagonal],
        };
        for request in requests {
            let derived = |f: &Function| request(f).function().unwrap();
            assert!(!derived(&auto).keeps_loops(), "{name}");
            agree(name, &derived(&never), &derived(&auto));
        }
    }
}

#[test]
fn dense_hessians_are_loops_by_arrays_and_straight_line_code_by_fields() {
    let n = 80;
    let fields: Vec<String> = (0..n).map(|i| format!("x{i} : Double")).collect();
    let terms: Vec<String> = (0..n).map(|i| format!("p.x{i} * p.x{}", (i + 1) % n)).collect();
    let fields = function(&format!("let f = fun (p : {{ {} }}) -> ({}) ** 2", fields.join(", "), terms.join(" + ")));
    assert!(!fields.hessian().function().unwrap().keeps_loops());
    let array =
        function(&format!("let f = fun (x : [{n}]Double) -> sum {n} (fun i -> x[i] * x[mod (i + 1) {n}]) ** 2"));
    assert!(array.hessian().function().unwrap().keeps_loops());
}

#[test]
fn numbers_and_integers_are_arguments_either_way() {
    let text = "let f = fun (x : Double) (p : (Double, [2]Double)) (k : Int) (r : { a : Double }) -> x * p.0 * p.1[1] * real k + r.a ** 2";
    let f = function(text);
    // An integer argument is no size: it may be another at each call.
    assert!(f.keeps_loops());
    let auto = f.at_sizes(&[("k", 3)]).unwrap();
    assert!(!auto.keeps_loops());
    let never = auto.clone().unroll(Unroll::Never);
    agree("value", &never, &auto);
    agree("gradient", &never.gradient().function().unwrap(), &auto.gradient().function().unwrap());
    let args = [
        Value::Real(2.0),
        Value::Tuple(vec![Value::Real(3.0), vec![1.0, 5.0].into()]),
        Value::Tuple(vec![Value::Real(7.0)]),
    ];
    assert_eq!(auto.compile().unwrap().call(&args).unwrap(), [Value::Real(139.0)]);
}

#[test]
fn loops_are_kept_where_they_cost_less_or_are_needed() {
    let long = function("let f = fun (x : [1000]Double) -> sum 1000 (fun i -> sin x[i])");
    assert!(
        long.keeps_loops() && long.unrolling().unwrap().contains("their cost is estimated"),
        "{:?}",
        long.unrolling()
    );
    assert!(!long.clone().unroll(Unroll::Always).keeps_loops());
    let large =
        function("let f = fun (x : [60]Double) -> ifold (fun s i -> ifold (fun s j -> s * x[i] + x[j]) s 60) 0.0 60");
    assert!(large.keeps_loops() && large.unrolling().unwrap().contains("more than"), "{:?}", large.unrolling());
    let data = function("let f = fun (x : Double) -> while (fun s -> s > 1) (fun s -> s / 2) x 50");
    assert!(data.keeps_loops());
    assert!(data.gradient().unroll(Unroll::Always).function().unwrap_err().is_limitation());
    let text = "let f = fun (x : [3]Double) -> vectorNorm x";
    let strict = Module::from_text("f.ft", text).unwrap().with_semantics(Semantics::Strict).function("f").unwrap();
    assert!(strict.keeps_loops());
    let few =
        function("let f = fun (x : [4]Double) -> vectorSum (ifold (fun s i -> build 4 (fun k -> s[k] * x[k])) x 9)");
    assert!(!few.gradient().function().unwrap().keeps_loops());
    let checkpointed = few.gradient().checkpoints(2).function().unwrap();
    assert!(checkpointed.keeps_loops());
    assert_eq!(
        checkpointed.compile().unwrap().eval(&[&[1.0, 0.5, 2.0, 1.5]]).unwrap()[0].len(),
        few.gradient().compile().unwrap().eval(&[&[1.0, 0.5, 2.0, 1.5]]).unwrap()[0].len()
    );
    // A Hessian of 4,900 numbers, most of them zeros, is written by loops.
    let wide = function("let f = fun (x : [70]Double) -> ifold (fun s i -> 0.5 * s + x[i] ** 3) 0.0 70");
    assert!(!wide.gradient().function().unwrap().keeps_loops(), "{:?}", wide.unrolling());
    assert!(wide.hessian().function().unwrap().keeps_loops());
    assert!(!wide.hessian().sparse().function().unwrap().keeps_loops());
}

#[test]
fn refusals_do_not_depend_on_the_form() {
    let f = function("let f = fun (x : [3]Double) (k : Int) -> build 2 (fun i -> x[i] * x[i + 1] * real k)")
        .at_sizes(&[("k", 2)])
        .unwrap();
    let requests: [fn(&Function) -> Derivation; 5] = [
        Function::gradient,
        Function::hessian,
        |f| f.jacobian().by(&["y"]),
        |f| f.jacobian().by(&["x", "x"]),
        |f| f.jacobian().by(&["k"]),
    ];
    for request in requests {
        let refused = |unroll| request(&f.clone().unroll(unroll)).function().unwrap_err().to_string();
        assert_eq!(refused(Unroll::Auto), refused(Unroll::Never));
        assert_eq!(refused(Unroll::Always), refused(Unroll::Never));
    }
    assert!(f.at_sizes(&[("n", 3)]).unwrap_err().to_string().contains("has no size `n`"));
    let short = function("let f = fun (x : [n]Double) (k : Card) -> sum (n - k) (fun i -> x[i + k])");
    let why = |unroll| short.clone().unroll(unroll).at_sizes(&[("n", 2), ("k", 5)]).map(|f| f.compile().map(|_| ()));
    assert_eq!(format!("{:?}", why(Unroll::Auto).is_err()), format!("{:?}", why(Unroll::Never).is_err()));
}

#[test]
fn operations_of_loops_are_polynomials() {
    let f = function(
        "let f = fun (x : [n]Double) (y : [n][m]Double) ->
      sum n (fun i -> sum i (fun j -> x[i] * x[j])) + sum n (fun i -> sum m (fun j -> exp y[i][j] * x[i]))",
    );
    for f in [f.clone(), f.gradient().function().unwrap()] {
        let counts = f.loop_counts().unwrap().unwrap();
        for sizes in [[("n", 7), ("m", 3)], [("n", 20), ("m", 11)]] {
            let (found, expected) = (counts.at(&sizes), f.counts_at(&sizes, chainrule::Rewrite::All).unwrap());
            assert_eq!((found.call, found.mul, found.div), (expected.call, expected.mul, expected.div), "{counts}");
        }
    }
    assert_eq!(
        function("let f = fun (x : [n]Double) -> sum n (fun i -> sin x[i])")
            .loop_counts()
            .unwrap()
            .unwrap()
            .to_string(),
        "n add, n call"
    );
    assert!(function("let f = fun (x : [2]Double) -> x[0] * x[1]").loop_counts().unwrap().is_none());
}

#[test]
fn functions_of_any_form_are_compared_and_drawn() {
    let text = "let f = fun (x : [n]Double) (at : [m]Index) (k : Card) (p : { a : Double, b : [2]Double }) ->
      build m (fun j -> sin x[at[j]] * real k + p.a * p.b[1] ** 2)";
    let f = function(text);
    let settings = check::Settings::default();
    let agreement = check::compare(&f, &f.jacobian(), &settings).unwrap();
    assert!(agreement.worst() < 1e-12 && agreement.elements > 3, "{agreement}");
    let agreement = check::compare(&f, &f.jacobian().by(&["p"]).strategy("forward"), &settings).unwrap();
    assert!(agreement.worst() < 1e-12, "{agreement}");
    assert!(check::compare(&f, &f.hessian(), &settings).is_err());
    let dot = f.dot();
    assert!(dot.contains("subgraph cluster_0") && dot.contains("label=\"build m\""), "{dot}");
    assert!(!function("let f = fun (x : [2]Double) -> x[0] * x[1]").dot().contains("cluster"));
}

#[test]
fn emitted_sparse_results_have_their_pattern_beside_them() {
    let f = function("let f = fun (x : [4]Double) -> build 3 (fun i -> (x[i + 1] - x[i]) ** 2)");
    let jacobian = f.jacobian().sparse().function().unwrap().named("f_jac");
    let c = chainrule::emit_c("both", &[&jacobian, &f.jacobian().sparse().function().unwrap().named("g_jac")]).unwrap();
    for name in ["f_jac", "g_jac"] {
        for line in
            [format!("extern const int64_t {name}_rows[6];"), format!("extern const int64_t {name}_columns[6];")]
        {
            assert!(c.header.contains(&line), "{}", c.header);
        }
        assert!(
            c.source.contains(&format!("const int64_t {name}_columns[6] = {{\n    0, 1, 1, 2, 2, 3,\n}};")),
            "{}",
            c.source
        );
    }
    assert!(c.header.contains("#define F_JAC_NNZ 6") && c.header.contains("#include <stdint.h>"));
    let rust = jacobian.emit_rust().unwrap().text;
    assert!(rust.contains("pub const F_JAC_NNZ: usize = 6;"), "{rust}");
    assert!(rust.contains("pub static F_JAC_ROWS: [usize; 6] = [\n    0, 0, 1, 1, 2, 2,\n];"), "{rust}");
}

/// Number of loops in a listing of a kernel.
fn n_loops(f: &Function) -> usize {
    f.compile().unwrap().listing().lines().filter(|line| line.trim_start().starts_with("for ")).count()
}

#[test]
fn the_form_is_chosen_for_each_request() {
    // The sines and cosines of the Jacobian run in lanes, those of the function do not.
    let arm = "let f = fun (q : [6]Double) ->
      let (x, y, _) = ifold (fun (x, y, a) i -> (x + cos (a + q[i]), y + sin (a + q[i]), a + q[i])) (0, 0, 0) 6
      [x, y]";
    let arm = function(arm);
    assert!(!arm.keeps_loops() && n_loops(&arm) == 0, "{:?}", arm.unrolling());
    let jacobian = arm.jacobian().explain().unwrap();
    assert!(jacobian.function.keeps_loops() && n_loops(&jacobian.function) > 0);
    assert!(jacobian.form.unwrap().contains("their predicted time is"));
    // A sum over neighbours runs in lanes, and so does its gradient, which reads neighbours, too; its Hessian is
    // straight-line code.
    let chain = function("let f = fun (x : [24]Double) -> sum 23 (fun i -> (x[i + 1] - x[i]) ** 4)");
    assert!(chain.keeps_loops() && n_loops(&chain) > 0, "{:?}", chain.unrolling());
    let gradient = chain.gradient().explain().unwrap();
    assert!(gradient.function.keeps_loops() && n_loops(&gradient.function) > 0);
    assert!(gradient.form.unwrap().contains("their predicted time is"));
    assert!(!chain.hessian().function().unwrap().keeps_loops());
    assert!(chain.value().function().unwrap().keeps_loops());
    // Of a part of the numbers: the gradient would add to one element after the other.
    let part = function("let f = fun (x : [48]Double) -> sum 23 (fun i -> (x[i + 1] - x[i]) ** 4)");
    assert!(part.keeps_loops() && !part.gradient().function().unwrap().keeps_loops());
    // First derivatives of costly independent terms keep loops, without a comparison; a Hessian does not.
    let waves = function("let f = fun (x : [64]Double) -> sum 64 (fun i -> sin x[i] * x[i])");
    assert!(waves.keeps_loops() && waves.gradient().function().unwrap().keeps_loops());
    assert!(!waves.hessian().function().unwrap().keeps_loops());
    // Short loops are not compared.
    let short = function("let f = fun (x : [3]Double) -> sum 3 (fun i -> sin x[i])");
    assert!(!short.keeps_loops() && !short.gradient().function().unwrap().keeps_loops());
}

#[test]
fn derivatives_of_either_form_agree() {
    for text in [
        "let f = fun (q : [6]Double) -> fst (ifold (fun (s, a) i -> (s + cos (a + q[i]), a + q[i])) (0, 0) 6)",
        "let f = fun (x : [24]Double) -> sum 23 (fun i -> (x[i + 1] - x[i]) ** 4)",
        "let f = fun (x : [20]Double) -> sum 20 (fun i -> exp (-x[i]) * x[19 - i])",
    ] {
        let auto = function(text);
        let never = auto.clone().unroll(Unroll::Never);
        let requests: [fn(&Function) -> Derivation; 7] = [
            Function::value,
            Function::gradient,
            |f| f.gradient().with_value(),
            Function::hessian,
            Function::jvp,
            Function::hvp,
            |f| f.gradient().function().unwrap().jacobian(),
        ];
        for request in requests {
            agree(text, &request(&never).function().unwrap(), &request(&auto).function().unwrap());
        }
    }
}
