//! Array programs written in Rust: each construct against the same program in F~, values and derivatives, and errors.

use chainrule::array::{Part, Program, Term};
use chainrule::report::Style;
use chainrule::{Error, Function, Module, Value};

/// Checks that the function written in Rust and that of the text agree at these arguments: values, and gradients by
/// `by`.
fn agree(built: &Function, text: &str, args: &[Value<f64>], by: &[&str]) {
    let written = Module::from_text("f.ft", text).expect("the text is right").function("f").expect("it is a function");
    let call = |f: &Function| f.compile().expect("it compiles").call(args).expect("it runs");
    assert_eq!(call(built), call(&written), "values of {text}");
    if !by.is_empty() {
        let gradient = |f: &Function| f.gradient().by(by).function().expect("it has a gradient");
        assert_eq!(call(&gradient(built)), call(&gradient(&written)), "gradients of {text}");
        let hessian = |f: &Function| f.hessian().by(by).function().expect("it has a Hessian");
        assert_eq!(call(&hessian(built)), call(&hessian(&written)), "Hessians of {text}");
    }
}

fn ints(values: &[i64]) -> Value<f64> {
    Value::Array(values.iter().map(|value| Value::Int(*value)).collect())
}

fn function(p: &Program, result: &Term) -> Function {
    p.function(result).unwrap_or_else(|e| panic!("{}", e.render(Style::Plain)))
}

#[test]
fn sums_over_a_symbolic_size() {
    let p = Program::new("energy");
    let (x, k) = (p.argument("x", "[n]Double"), p.argument("k", "Double"));
    let stretch = p.sum(p.size("n") - 1, |i| (x.at(&i + 1) - x.at(&i)).pow(2));
    let f = function(&p, &(0.5 * k * stretch));
    assert_eq!(f.name().as_str(), "energy");
    let text = "let f = fun (x : [n]Double) (k : Double) ->
      0.5 * k * sum (n - 1) (fun i -> (x[i + 1] - x[i]) ** 2)";
    agree(&f, text, &[vec![0.0, 1.0, 3.0].into(), 2.0.into()], &["x", "k"]);
    agree(&f, text, &[vec![0.5].into(), 2.0.into()], &[]);
}

#[test]
fn sizes_are_at_least_what_is_required() {
    let p = Program::new("first");
    let x = p.argument("x", "[n][m]Double");
    p.require_at_least("m", 2);
    // Without the requirement, rows are read only where there are any, and each is checked.
    let total = p.sum(x.length(), |i| x.get(&[&i, &p.int(1)]));
    let f = function(&p, &total);
    let compiled = f.compile().expect("it compiles");
    let rows = |values: &[&[f64]]| Value::Array(values.iter().map(|row| row.to_vec().into()).collect());
    assert_eq!(compiled.call(&[rows(&[&[1.0, 2.0], &[3.0, 4.0]])]).expect("it runs"), [Value::Real(6.0)]);
    let error = compiled.call(&[rows(&[&[1.0]])]).expect_err("it is too short");
    assert!(error.to_string().contains("`m` is less than 2"), "{error}");
    p.require_at_least("k", 1);
    assert!(message(&p, &total).contains("no argument has the size `k`"));
}

#[test]
fn builds_nest_and_take_elements() {
    let p = Program::new("outer");
    let (a, b) = (p.argument("a", "[n]Double"), p.argument("b", "[m]Double"));
    let outer = p.build(a.length(), |i| p.build(p.size("m"), |j| a.at(&i) * b.at(j)));
    let total = p.sum(outer.length(), |i| p.sum(p.size("m"), |j| outer.get(&[&i, &j]).sin()));
    let text = "let f = fun (a : [n]Double) (b : [m]Double) ->
      let outer = build n (fun i -> build m (fun j -> a[i] * b[j]))
      sum n (fun i -> sum m (fun j -> sin outer[i][j]))";
    agree(&function(&p, &total), text, &[vec![1.0, 2.0].into(), vec![3.0, 4.0, 5.0].into()], &["a", "b"]);
}

#[test]
fn folds_carry_tuples() {
    let p = Program::new("fold");
    let x = p.argument("x", "[n]Double");
    let start = p.tuple(&[&p.constant(1.0), &p.constant(0.0)]);
    let end = p.fold(start, p.size("n"), |s, i| {
        p.tuple(&[&(s.component(0) * x.at(&i)), &(s.component(1) + s.component(0) * i.real())])
    });
    let text = "let f = fun (x : [n]Double) ->
      let (a, b) = ifold (fun (a, b) i -> (a * x[i], b + a * real i)) (1.0, 0.0) n
      a + b";
    agree(&function(&p, &(end.component(0) + end.component(1))), text, &[vec![1.5, 2.0, 0.5].into()], &["x"]);
}

#[test]
fn elements_are_set_in_a_state() {
    let p = Program::new("set");
    let x = p.argument("x", "[n]Double");
    let zeros = p.build(p.size("n"), |_| p.constant(0.0));
    let ends = p.fold(&zeros, p.size("n"), |y, i| {
        let value = x.at(&i).pow(2);
        p.build(y.length(), |k| p.branch(k.equals(&i), || value.clone(), || y.at(&k)))
    });
    let total = p.sum(ends.length(), |i| ends.at(i).exp());
    let text = "let f = fun (x : [n]Double) ->
      let y = ifold (fun y i -> build n (fun k -> if k == i then x[i] ** 2 else y[k])) (vectorZeros n) n
      sum n (fun i -> exp y[i])";
    agree(&function(&p, &total), text, &[vec![0.5, 1.0, -1.0].into()], &["x"]);
}

#[test]
fn scans_give_elements_and_the_last_state() {
    let p = Program::new("scan");
    let x = p.argument("x", "[n]Double");
    let (last, all) = p.scan(0.0, p.size("n"), |s, i| (&s + x.at(&i), &s * x.at(&i)));
    let result = last * p.sum(all.length(), |i| all.at(i));
    let text = "let f = fun (x : [n]Double) ->
      let (last, all) = scan (fun s i -> (s + x[i], s * x[i])) 0 n
      last * vectorSum all";
    agree(&function(&p, &result), text, &[vec![1.0, 2.0, 4.0].into()], &["x"]);
}

#[test]
fn loops_by_condition_and_lazy_branches() {
    let p = Program::new("newton");
    let a = p.argument("a", "Double");
    let root = p.repeat_while(&a, 50, |s| (&s * &s - &a).abs().greater(1e-12 * &a), |s| 0.5 * (&s + &a / &s));
    let safe = p.branch(a.greater(0.0), || root.ln(), || p.constant(0.0));
    let text = "let f = fun (a : Double) ->
      let root = while (fun s -> abs (s * s - a) > 1e-12 * a) (fun s -> 0.5 * (s + a / s)) a 50
      if a > 0 then log root else 0.0";
    agree(&function(&p, &safe), text, &[2.0.into()], &["a"]);
    agree(&function(&p, &safe), text, &[0.0.into()], &["a"]);
}

#[test]
fn both_sides_of_a_branch_are_written_before_they_are_closed() {
    let p = Program::new("sides");
    let x = p.argument("x", "Double");
    let _ = p.open(&[]);
    let root = x.sqrt();
    let first = p.suspend();
    let _ = p.open(&[]);
    let square = x.pow(2);
    let second = p.suspend();
    p.resume(first);
    let then = p.close(&root + 1.0);
    p.resume(second);
    let otherwise = p.close(&square);
    let result = p.choose(x.greater(1.0), then, otherwise);
    let text = "let f = fun (x : Double) -> if x > 1 then sqrt x + 1 else x ** 2";
    for x in [4.0, 0.5] {
        agree(&function(&p, &result), text, &[x.into()], &["x"]);
    }
}

#[test]
fn indices_are_data_and_integers_are_computed() {
    let p = Program::new("gather");
    let (x, at) = (p.argument("x", "[n]Double"), p.argument("at", "[m]Int"));
    let picked = p.sum(at.length(), |k| {
        let index = (at.at(&k) + 1).with("mod", p.size("n"));
        x.at(&index) * index.with("div", 2).real() * k.with("max", 1).real()
    });
    let text = "let f = fun (x : [n]Double) (at : [m]Int) ->
      sum m (fun k -> let i = mod (at[k] + 1) n in x[i] * real (div i 2) * real (max k 1))";
    agree(&function(&p, &picked), text, &[vec![1.0, 2.0, 3.0].into(), ints(&[0, 2, 5, 1])], &["x"]);
}

#[test]
fn records_arrays_and_truth_values() {
    let p = Program::new("record");
    let (c, x) = (p.argument("camera", "{ focal : Double, centre : [2]Double }"), p.argument("x", "Double"));
    let near = x.less(1.0).and(x.at_least(0.0)).or(x.equals(5.0)).or(x.differs(x.abs())).not();
    let scaled = p.record(&[("a", &(c.field("focal") * &x)), ("b", &c.field("centre").at(1))]);
    let both = p.array(&[&scaled.field("a"), &scaled.field("b")]);
    let value = p.apply("select", [near.into(), (both.at(0) * both.at(1)).into(), both.at(0).into()]);
    let text = "let f = fun (camera : { focal : Double, centre : [2]Double }) (x : Double) ->
      let both = [camera.focal * x, camera.centre[1]]
      select (not (x < 1 && x >= 0 || x == 5 || x <> abs x)) (both[0] * both[1]) both[0]";
    let f = function(&p, &value);
    for x in [0.5, 3.0, 5.0, -1.0] {
        let camera = Value::Tuple(vec![2.0.into(), vec![3.0, 4.0].into()]);
        agree(&f, text, &[camera, x.into()], &["x"]);
    }
}

#[test]
fn functions_of_the_library_and_derivatives_inside() {
    let p = Program::new("system");
    let (a, b) = (p.argument("a", "[n][n]Double"), p.argument("b", "[n]Double"));
    let solved = p.apply("solve", [(&a).into(), (&b).into()]);
    let product = p.apply("matrixMul", [(&a).into(), p.apply("matrixTranspose", [(&a).into()]).into()]);
    let w = p.open(&["w"]).remove(0);
    let square = p.close(p.apply("vectorDot", [(&w).into(), (&w).into()]));
    let slope = p.apply("gradient", [Part::Lambda(square), solved.into()]);
    let total = p.apply("vectorSum", [slope.into()]) + p.apply("matrixTrace", [product.into()]);
    let text = "let f = fun (a : [n][n]Double) (b : [n]Double) ->
      vectorSum (gradient (fun w -> vectorDot w w) (solve a b)) + matrixTrace (matrixMul a (matrixTranspose a))";
    let a: Value<f64> = Value::Array(vec![vec![2.0, 1.0].into(), vec![0.5, 3.0].into()]);
    agree(&function(&p, &total), text, &[a, vec![1.0, -1.0].into()], &["a", "b"]);
}

#[test]
fn every_function_of_a_number_is_that_of_the_same_name() {
    type Case = (&'static str, fn(&Term) -> Term);
    let cases: [Case; 26] = [
        ("sqrt", Term::sqrt),
        ("cbrt", Term::cbrt),
        ("exp", Term::exp),
        ("expm1", Term::exp_m1),
        ("log", Term::ln),
        ("log1p", Term::ln_1p),
        ("sin", Term::sin),
        ("cos", Term::cos),
        ("tan", Term::tan),
        ("asin", Term::asin),
        ("acos", Term::acos),
        ("atan", Term::atan),
        ("sinh", Term::sinh),
        ("cosh", Term::cosh),
        ("tanh", Term::tanh),
        ("asinh", Term::asinh),
        ("acosh", |x| (1.0 + x).acosh()),
        ("atanh", Term::atanh),
        ("abs", Term::abs),
        ("sign", Term::sign),
        ("floor", Term::floor),
        ("ceil", Term::ceil),
        ("erf", Term::erf),
        ("erfc", Term::erfc),
        ("lgamma", Term::ln_gamma),
        ("digamma", Term::digamma),
    ];
    for (name, method) in cases {
        let p = Program::new("f");
        let x = p.argument("x", "Double");
        let argument = if name == "acosh" { "(1.0 + x)" } else { "x" };
        let text = format!("let f = fun (x : Double) -> {name} {argument}");
        agree(&function(&p, &method(&x)), &text, &[0.3.into()], &["x"]);
    }
}

#[test]
fn literals_of_all_kinds() {
    let p = Program::new("literals");
    let x = p.argument("x", "Double");
    let parts = [-&x, &x - -2.5, &x * i64::MIN, 3 / &x, &x * f64::INFINITY, &x * f64::NAN, -1e-300 * &x];
    let f = function(&p, &p.array(&parts.iter().collect::<Vec<_>>()));
    let result = f.compile().expect("it compiles").eval(&[&[2.0]]).expect("it runs").remove(0);
    assert_eq!(result[..5], [-2.0, 4.5, 2.0 * i64::MIN as f64, 1.5, f64::INFINITY]);
    assert!(result[5].is_nan() && result[6] == -2e-300);
}

#[test]
fn integers_stay_integers() {
    let p = Program::new("counts");
    let x = p.argument("x", "[n]Double");
    let f = function(&p, &p.tuple(&[&p.int(3), &p.int(i64::MIN), &(x.length() + 1), &x.at(0).pow(p.int(2))]));
    let result = f.compile().expect("it compiles").call(&[vec![3.0, 4.0].into()]).expect("it runs");
    let wanted = Value::Tuple(vec![Value::Int(3), Value::Int(i64::MIN), Value::Int(3), 9.0.into()]);
    assert_eq!(result, [wanted]);
}

#[test]
fn results_of_a_computed_size_are_a_limitation() {
    let p = Program::new("half");
    let x = p.argument("x", "[n]Double");
    let half = (x.length() + 1).with("div", 2);
    let every_other = p.build(&half, |i| x.at(2 * i));
    let error = p.function(&every_other).expect_err("its size is no polynomial of sizes");
    assert!(error.is_limitation(), "{error}");
    assert!(error.to_string().contains("the size of the result is computed while the function runs"), "{error}");
    let total = p.sum(&half, |i| every_other.at(i));
    let text = "let f = fun (x : [n]Double) -> sum (div (n + 1) 2) (fun i -> x[2 * i])";
    agree(&function(&p, &total), text, &[vec![1.0, 2.0, 4.0].into()], &["x"]);
}

#[test]
fn names_never_hide_those_of_the_language() {
    let p = Program::new("f");
    let (sum, let_) = (p.argument("sum", "[n]Double"), p.argument("let", "Double"));
    assert_eq!(sum.name().map(chainrule::Name::as_str), Some("sum_1"));
    assert_eq!(let_.name().map(chainrule::Name::as_str), Some("let_1"));
    let total = p.sum(sum.length(), |i| sum.at(i) * &let_).named("n");
    let text = "let f = fun (x : [n]Double) (y : Double) -> sum n (fun i -> x[i] * y)";
    agree(&function(&p, &total), text, &[vec![1.0, 2.0].into(), 3.0.into()], &[]);
}

#[test]
fn the_text_is_a_program_of_its_own() {
    let p = Program::new("f");
    let x = p.argument("x", "[n]Double");
    let total = p.sum(x.length(), |i| p.branch(x.at(&i).greater(0.0), || x.at(&i).sqrt(), || p.constant(0.0)));
    let text = p.text(&total).expect("it is right").replace("let program", "let f");
    agree(&function(&p, &total), &text, &[vec![1.0, -4.0, 9.0].into()], &["x"]);
}

fn message(p: &Program, result: &Term) -> String {
    p.function(result).expect_err("it is wrong").render(Style::Plain)
}

#[test]
fn mistakes_of_programs_show_their_text() {
    let p = Program::new("f");
    let x = p.argument("x", "[n]Double");
    let shifted = p.build(x.length(), |i| x.at(i + 1));
    let text = message(&p, &shifted);
    assert!(text.contains("index out of range") && text.contains("x[t"), "{text}");
    assert!(text.contains("<f>:"), "{text}");
}

#[test]
fn mistakes_show_the_text_that_the_program_is_written_in() {
    let p = Program::new("f");
    let x = p.argument("x", "[n]Double");
    let file = p.source("model.py", "def f(x):\n    return x[1:] + x\n");
    p.locate(chainrule::array::Span::new(file, 21, 30));
    let shifted = p.build(x.length(), |i| x.at(i + 1));
    let error = p.function(&shifted).expect_err("it is wrong");
    let text = error.render(Style::Plain);
    assert!(text.contains("model.py:2:12") && text.contains("return x[1:] + x"), "{text}");
    assert!(matches!(error, Error::Program { .. }));
}

#[test]
fn mistakes_in_the_use_of_the_builder() {
    let p = Program::new("f");
    let x = p.argument("x", "[n]Double");
    let mut inner = None;
    let total = p.sum(x.length(), |i| {
        inner = Some(x.at(i));
        p.constant(1.0)
    });
    let leaked = total + inner.expect("the body was written");
    assert!(message(&p, &leaked).contains("is used outside of the loop or branch that makes it"));

    let (p, q) = (Program::new("f"), Program::new("g"));
    let mixed = p.argument("x", "Double") + q.argument("y", "Double");
    assert!(message(&p, &mixed).contains("values of two programs"));

    let p = Program::new("f");
    let x = p.argument("x", "[n Double");
    assert!(message(&p, &x).contains("`[n Double` is not a type of F~"));

    let p = Program::new("f");
    let x = p.argument("x", "Double");
    let _ = p.open(&["i"]);
    assert!(message(&p, &x).contains("a block is open where the function ends"));

    let p = Program::new("f");
    assert!(message(&p, &p.constant(1.0)).contains("`f` has no arguments"));

    let p = Program::new("f");
    let x = p.argument("x", "Double");
    assert!(message(&p, &p.infix("%", &x, 2.0)).contains("there is no operator `%`"));
}

#[test]
fn nesting_is_bounded() {
    fn nest(p: &Program, x: &Term, depth: usize) -> Term {
        if depth == 0 { x.clone() } else { p.sum(2, |_| nest(p, x, depth - 1)) }
    }
    let p = Program::new("deep");
    let x = p.argument("x", "Double");
    let fine = nest(&p, &x, 40);
    assert!(p.function(&fine).is_ok());
    let deep = nest(&p, &x, 200);
    assert!(message(&p, &deep).contains("nests more than 50 loops and branches"));
}

#[test]
fn long_rows_do_not_nest() {
    let p = Program::new("long");
    let x = p.argument("x", "Double");
    let mut y = x.clone();
    for k in 0..20_000 {
        y = y * 0.999 + f64::from(k % 3);
    }
    assert!(p.function(&y).is_ok());
}
