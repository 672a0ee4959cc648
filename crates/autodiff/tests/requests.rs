//! Derivatives on request: shapes, values by hand, messages.

use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_base::Name;
use chainrule_ir::{Builder, Function, Size, Type, Value, describe, evaluate, verify};
use chainrule_ops::{F64, Op};

fn asked(function: &Function, parts: &[Part], by: &[&str]) -> Function {
    verify(function).expect("a right program");
    let request = Request {
        parts: parts.to_vec(),
        by: by.iter().map(|name| Name::new(name)).collect(),
        mode: Mode::Forward,
        checkpoints: None,
    };
    let derived = derive(function, &request).unwrap_or_else(|e| panic!("{e}"));
    verify(&derived).unwrap_or_else(|e| panic!("{e:?}"));
    derived
}

fn value(function: &Function, args: &[Value<f64>]) -> Value<f64> {
    evaluate(function, &mut F64, args).unwrap_or_else(|e| panic!("{e}"))
}

fn tuple(parts: Vec<Value<f64>>) -> Value<f64> {
    Value::Tuple(parts)
}

/// `fun (a : Double) (x : [n]Double) -> a * sum x[i]^3`
fn cubes() -> Function {
    let mut b = Builder::new("cubes");
    let n = b.size_param("n");
    let n = b.size_of(n);
    let a = b.param("a", Type::Double);
    let x = b.param("x", Type::array(n.clone(), Type::Double));
    let sum = b.sum(n, |b, i| {
        let (xi, three) = (b.get_proved(x, i), b.real(3.0));
        b.op(Op::Pow, &[xi, three])
    });
    let result = b.op(Op::Mul, &[a, sum]);
    b.finish(result)
}

/// `fun (m : [r][c]Double) (x : [c]Double) (k : Int) -> m x`
fn product() -> Function {
    let mut b = Builder::new("product");
    let (r, c) = (b.size_param("r"), b.size_param("c"));
    let (r, c) = (b.size_of(r), b.size_of(c));
    let row = Type::array(c.clone(), Type::Double);
    let m = b.param("m", Type::array(r.clone(), row.clone()));
    let x = b.param("x", row);
    b.param("k", Type::Int);
    let result = b.build(r, |b, i| {
        b.sum(c.clone(), |b, j| {
            let (mi, xj) = (b.get_proved(m, i), b.get_proved(x, j));
            let mij = b.get_proved(mi, j);
            b.op(Op::Mul, &[mij, xj])
        })
    });
    b.finish(result)
}

#[test]
fn one_part_stands_bare_and_several_make_a_record() {
    let f = cubes();
    let args = [2.0.into(), vec![1.0, 2.0].into()];
    let gradient = asked(&f, &[Part::Gradient], &["x"]);
    assert_eq!(value(&gradient, &args), vec![6.0, 24.0].into());
    assert_eq!(gradient.name.as_str(), "cubes_gradient");
    let both = asked(&f, &[Part::Value, Part::Gradient, Part::Value], &["x"]);
    let Type::Tuple(_, Some(names)) = both.result_type() else { panic!("a record") };
    assert_eq!(names.iter().map(Name::as_str).collect::<Vec<_>>(), ["value", "gradient"]);
    assert_eq!(value(&both, &args), tuple(vec![18.0.into(), vec![6.0, 24.0].into()]));
    assert_eq!(value(&asked(&f, &[Part::Value], &[]), &args), 18.0.into());
}

#[test]
fn several_parameters_have_a_field_each() {
    let f = cubes();
    let args = [2.0.into(), vec![1.0, 2.0].into()];
    let gradient = asked(&f, &[Part::Gradient], &[]);
    assert_eq!(describe(gradient.result_type()), "{ a : Double, x : [v0]Double }");
    assert_eq!(value(&gradient, &args), tuple(vec![9.0.into(), vec![6.0, 24.0].into()]));
    let swapped = asked(&f, &[Part::Gradient], &["x", "a"]);
    assert_eq!(value(&swapped, &args), tuple(vec![vec![6.0, 24.0].into(), 9.0.into()]));
    let hessian = asked(&f, &[Part::Hessian], &[]);
    // a a, a x; x a, x x
    let by_hand = tuple(vec![
        tuple(vec![0.0.into(), vec![3.0, 12.0].into()]),
        tuple(vec![vec![3.0, 12.0].into(), vec![vec![12.0, 0.0], vec![0.0, 24.0]].into()]),
    ]);
    assert_eq!(value(&hessian, &args), by_hand);
}

#[test]
fn a_jacobian_is_output_by_input() {
    let f = product();
    let m = vec![vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]];
    let args = [m.clone().into(), vec![7.0, 8.0, 9.0].into(), 0i64.into()];
    let by_x = asked(&f, &[Part::Jacobian], &["x"]);
    assert_eq!(value(&by_x, &args), m.into());
    // d(m x)[i] / dm[r][c] = x[c] where i = r
    let by_m = asked(&f, &[Part::Jacobian], &["m"]);
    assert_eq!(describe(by_m.result_type()), "[v0][v0][v1]Double");
    let (x, o) = (vec![7.0, 8.0, 9.0], vec![0.0; 3]);
    assert_eq!(value(&by_m, &args), vec![vec![x.clone(), o.clone()], vec![o, x]].into());
    let both = asked(&f, &[Part::Jacobian, Part::Value], &[]);
    assert_eq!(
        describe(both.result_type()),
        "{ jacobian : { m : [v0][v0][v1]Double, x : [v0][v1]Double }, value : [v0]Double }"
    );
    // Without rows, without columns.
    for (r, c) in [(0, 0), (0, 2), (2, 0), (1, 1)] {
        let args = [vec![vec![1.5; c]; r].into(), vec![2.0; c].into(), 0i64.into()];
        if r == 0 && c > 0 {
            // The columns of a matrix without rows are those of x.
            assert_eq!(value(&by_x, &args), Value::Array(vec![]));
        } else {
            assert_eq!(value(&by_x, &args), vec![vec![1.5; c]; r].into());
        }
    }
}

#[test]
fn products_take_directions_as_further_parameters() {
    let f = cubes();
    let both = asked(&f, &[Part::Value, Part::Jvp, Part::Hvp], &[]);
    let names: Vec<&str> = both.params.iter().filter_map(|p| both.vars[*p].name.as_deref()).collect();
    assert_eq!(names, ["a", "x", "a_tan", "x_tan"]);
    let args = [2.0.into(), vec![1.0, 2.0].into(), 10.0.into(), vec![1.0, -1.0].into()];
    // value 18; jvp 9 * 10 + 6 - 24; hvp a: 3 - 12, x: 3 * 10 + 12, 12 * 10 - 24
    let by_hand = tuple(vec![18.0.into(), 72.0.into(), tuple(vec![(-9.0).into(), vec![42.0, 96.0].into()])]);
    assert_eq!(value(&both, &args), by_hand);
    let jvp = asked(&product(), &[Part::Jvp], &["x"]);
    let args = [vec![vec![1.0, 2.0]].into(), vec![7.0, 8.0].into(), 0i64.into(), vec![1.0, 0.5].into()];
    assert_eq!(value(&jvp, &args), vec![2.0].into());
}

#[test]
fn the_value_comes_with_the_derivative_along_a_direction() {
    let both = asked(&cubes(), &[Part::Value, Part::Jvp], &[]);
    let loops = both.body.stmts.iter().filter(|stmt| !stmt.expr.blocks().is_empty()).count();
    assert_eq!(loops, 1);
    let slope = asked(&cubes(), &[Part::Gradient, Part::Value], &["a"]);
    let loops = slope.body.stmts.iter().filter(|stmt| !stmt.expr.blocks().is_empty()).count();
    assert_eq!(loops, 1);
    assert_eq!(value(&slope, &[2.0.into(), vec![1.0, 2.0].into()]), tuple(vec![9.0.into(), 18.0.into()]));
}

/// `fun (p : {k: Int, at: [2]Double, rest: (Double, [2](Int, Double))}) ->
/// {sum, pair: (k * at[0] * rest.0, sum of rest.1[i].1 squared)}`
fn records() -> Function {
    let two = Size::constant(2);
    let inner = Type::tuple(vec![Type::Int, Type::Double]);
    let rest = Type::tuple(vec![Type::Double, Type::array(two.clone(), inner)]);
    let vector = Type::array(two.clone(), Type::Double);
    let names = ["k", "at", "rest"].map(Name::new).into();
    let mut b = Builder::new("records");
    let p = b.param("p", Type::Tuple(vec![Type::Int, vector, rest], Some(names)));
    let (k, at, rest) = (b.component(p, 0), b.component(p, 1), b.component(p, 2));
    let (scale, pairs) = (b.component(rest, 0), b.component(rest, 1));
    let zero = b.int(0);
    let (k, first) = (b.to_real(k), b.get(at, zero));
    let product = b.op(Op::Mul, &[k, first]);
    let product = b.op(Op::Mul, &[product, scale]);
    let sum = b.sum(two, |b, i| {
        let pair = b.get(pairs, i);
        let x = b.component(pair, 1);
        b.op(Op::Mul, &[x, x])
    });
    let result = b.tuple(&[product, sum]);
    b.finish(result)
}

#[test]
fn records_are_differentiated_by_their_doubles() {
    let f = records();
    let jacobian = asked(&f, &[Part::Jacobian], &["p"]);
    let pairs = Value::Array(vec![tuple(vec![1i64.into(), 5.0.into()]), tuple(vec![2i64.into(), 6.0.into()])]);
    let args = [tuple(vec![3i64.into(), vec![2.0, 7.0].into(), tuple(vec![4.0.into(), pairs])])];
    assert_eq!(
        describe(jacobian.result_type()),
        "{ at : ([2]Double, [2]Double), rest : ((Double, Double), ([2](Double), [2](Double))) }"
    );
    // product = 3 at[0] rest.0, sum = 25 + 36
    let one = |x: f64| tuple(vec![x.into()]);
    let by_hand = tuple(vec![
        tuple(vec![vec![12.0, 0.0].into(), vec![0.0, 0.0].into()]),
        tuple(vec![
            tuple(vec![6.0.into(), 0.0.into()]),
            tuple(vec![Value::Array(vec![one(0.0), one(0.0)]), Value::Array(vec![one(10.0), one(12.0)])]),
        ]),
    ]);
    assert_eq!(value(&jacobian, &args), by_hand);
}

#[test]
fn derivatives_in_the_function_itself_are_expanded_too() {
    // f x = d/dy (y^3) at x; its gradient is 6 x, its Hessian 6.
    let mut b = Builder::new("f");
    let (x, one) = (b.param("x", Type::Double), b.real(1.0));
    let dual = b.jvp(&[x], &[one], |b, y| {
        let three = b.real(3.0);
        b.op(Op::Pow, &[y[0], three])
    });
    let result = b.component(dual, 1);
    let f = b.finish(result);
    let derived = asked(&f, &[Part::Value, Part::Gradient, Part::Hessian], &[]);
    assert_eq!(value(&derived, &[2.0.into()]), tuple(vec![12.0.into(), 12.0.into(), 6.0.into()]));
}

#[test]
fn what_cannot_be_is_said_all_at_once() {
    let refused = |function: &Function, parts: &[Part], by: &[&str]| -> String {
        let request = Request {
            parts: parts.to_vec(),
            by: by.iter().map(|name| Name::new(name)).collect(),
            mode: Mode::Forward,
            checkpoints: None,
        };
        derive(function, &request).expect_err("refused").to_string()
    };
    insta::assert_snapshot!(refused(&product(), &[Part::Gradient, Part::Hvp], &["y", "k", "x", "x"]), @"
    error: `product` has no parameter `y` (help: its parameters are `m`, `x`, `k`)
    error: `product` cannot be differentiated by `k`: it is of type Int, in which no Double occurs (help: parameters to differentiate by are `m`, `x`)
    error: the parameter `x` is named twice
    error: `product` has no gradient: that is for a result of type Double, and this one is of type [r]Double (help: ask for the jacobian, or make the result a scalar)
    error: `product` has no hvp: that is for a result of type Double, and this one is of type [r]Double (help: differentiate one component of the result, or make the result a scalar)
    ");
    insta::assert_snapshot!(refused(&product(), &[], &[]), @"error: nothing is asked for of `product` (help: ask for value, gradient, jacobian, jvp, vjp, hessian, hessian_diagonal or hvp)");
    let mut b = Builder::new("count");
    let k = b.param("k", Type::Int);
    let count = b.finish(k);
    insta::assert_snapshot!(refused(&count, &[Part::Jacobian], &[]), @"
    error: `count` has nothing to differentiate by: no Double occurs in its parameters
    error: the result of `count` cannot be differentiated: it is of type Int, in which no Double occurs
    ");
    let mut b = Builder::new("taken");
    let x = b.param("x", Type::Double);
    b.param("x_tan", Type::Double);
    let taken = b.finish(x);
    insta::assert_snapshot!(refused(&taken, &[Part::Jvp], &["x"]), @"error: `taken` has a parameter `x_tan` already: that is the name of the direction by `x` (help: give the parameter `x_tan` another name)");
}
