//! Every request works on every function, with loops kept and unrolled: the same names, types and values, and the same
//! refusals.

#![allow(clippy::unwrap_used, reason = "tests")]

use chainrule::{Derivation, Error, Function, Module, Type, Unroll, Value};

/// One function of each kind: two scalars, a vector of fixed and of open extent, a record, an array of tuples, a
/// matrix, integers beside doubles, several results.
const PROGRAM: &str = "
let scalars = fun (x : Double) (y : Double) -> sin (x * y) * x + y ** 2
let fixed = fun (x : [4]Double) -> sin (x[0] * x[1]) * cos (x[2] * x[3]) + x[0] * x[1] * x[2] * x[3]
let open = fun (x : [n]Double) -> sum (n - 1) (fun i -> (1 - x[i]) ** 2 + 100 * (x[i + 1] - x[i] ** 2) ** 2)
let fields = fun (p : { a : Double, b : [3]Double, k : [2]Int }) -> p.a * sum 3 (fun i -> sin (p.b[i] * p.a)) * real p.k[1]
let records = fun (p : { a : Double, b : [3]Double }) -> p.a * sum 3 (fun i -> sin (p.b[i] * p.a))
let tuples = fun (ps : [3](Double, { x : Double, y : [2]Double })) ->
  sum 3 (fun i -> ps[i].0 ** 2 * ps[i].1.x * sin ps[i].1.y[1] * ps[i].1.y[0])
let matrix = fun (m : [3][3]Double) (v : [3]Double) -> build 3 (fun i -> sum 3 (fun j -> sin m[i][j] * v[j]))
let integers = fun (x : [n]Double) (k : Int) (at : [m]Index) -> sum m (fun j -> sin x[at[j]] * real k)
let several = fun (x : [3]Double) (y : Double) ->
  { s = vectorSum x * y, t = build 3 (fun i -> sin (x[i] * y)), u = { v = x[0] * y } }
";

/// A function, arguments to differentiate by, and results.
struct Case {
    name: &'static str,
    by: &'static [&'static [&'static str]],
    of: &'static [&'static [&'static str]],
}

const CASES: &[Case] = &[
    Case { name: "scalars", by: &[&["x"], &["y", "x"]], of: &[&["result"]] },
    Case { name: "fixed", by: &[&["x"], &["x[1]"], &["x[1..3]"], &["x[3]", "x[0..2]"]], of: &[&["result"]] },
    Case { name: "open", by: &[&["x"], &["x[1]"], &["x[1..4]"], &["x[3]", "x[0..2]"]], of: &[&["result"]] },
    Case { name: "fields", by: &[&["p.a"], &["p.b"], &["p.b[1]", "p.a"], &["p.b[0..2]"]], of: &[&["result"]] },
    Case { name: "records", by: &[&["p"], &["p.a"], &["p.b[1]", "p.a"], &["p.b[1..3]"]], of: &[&["result"]] },
    Case {
        name: "tuples",
        by: &[&["ps[1]"], &["ps.0"], &["ps[0].1.x", "ps[2].1.y"], &["ps[0..2].1.y[1]"]],
        of: &[&["result"]],
    },
    Case {
        name: "matrix",
        by: &[&["m"], &["m[0][1]"], &["m[1]", "v"], &["m[0..2][1..3]", "v[2]"]],
        of: &[&["result"], &["result[0]"], &["[1..3]"], &["result[2]", "result[0]"]],
    },
    Case { name: "integers", by: &[&["x"], &["x[0]"], &["x[0..2]"]], of: &[&["result"]] },
    Case {
        name: "several",
        by: &[&["x"], &["y", "x[1]"], &["x[0..2]"]],
        of: &[&["s"], &["result.t[1]"], &["u"], &["u.v", "t[0..2]"], &["result"]],
    },
];

type Request = (&'static str, fn(&Function) -> Derivation);

const ANY: &[Request] = &[
    ("value", Function::value),
    ("jacobian", Function::jacobian),
    ("jacobian with value", |f| f.jacobian().with_value()),
    ("jvp", Function::jvp),
    ("vjp", Function::vjp),
    ("jvp and vjp", |f| f.jvp().and(&f.vjp())),
    ("order 1", |f| f.derivatives(1)),
    ("order 2", |f| f.derivatives(2)),
    ("order 2 with others", |f| f.derivatives(2).with_value().and(&f.jvp())),
    ("forward", |f| f.jacobian().strategy("forward")),
    ("reverse", |f| f.jacobian().strategy("reverse")),
];

const SCALAR: &[Request] = &[
    ("gradient", Function::gradient),
    ("gradient with value", |f| f.gradient().with_value()),
    ("hessian", Function::hessian),
    ("hessian diagonal", Function::hessian_diagonal),
    ("hvp", Function::hvp),
    ("third order", |f| f.derivatives(3)),
];

/// Values of the sizes and integer arguments.
const SIZES: &[(&str, i64)] = &[("n", 4), ("m", 2), ("k", 3)];

fn value(ty: &Type, next: &mut f64) -> Value<f64> {
    match ty {
        Type::Double => {
            *next += 0.37;
            Value::Real(*next)
        }
        Type::Int => Value::Int(1),
        Type::Bool => Value::Bool(true),
        Type::Array(size, element) => {
            Value::Array((0..size.as_constant().unwrap()).map(|_| value(element, next)).collect())
        }
        Type::Tuple(fields, _) => Value::Tuple(fields.iter().map(|field| value(field, next)).collect()),
    }
}

fn function(name: &str) -> Function {
    let f = Module::from_text("f.ft", PROGRAM).unwrap().function(name).unwrap();
    SIZES.iter().fold(f, |f, size| f.at_sizes(&[*size]).unwrap_or(f))
}

fn evaluated(derived: &Function) -> Result<Vec<Value<f64>>, Error> {
    let mut next = 0.1;
    let args: Vec<Value<f64>> = derived.signature().params.iter().map(|(_, ty)| value(ty, &mut next)).collect();
    derived.compile()?.call(&args)
}

fn numbers(values: &[Value<f64>]) -> Vec<f64> {
    values.iter().flat_map(Value::reals).copied().collect()
}

#[track_caller]
fn agree(what: &str, request: impl Fn(&Function) -> Derivation, f: &Function) -> bool {
    let never = request(&f.clone().unroll(Unroll::Never)).function().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(never.keeps_loops(), "{what}");
    let expected = evaluated(&never).unwrap_or_else(|e| panic!("{what}: {e}"));
    let can_be_unrolled = f.clone().unroll(Unroll::Always).compile().is_ok();
    let settings: &[Unroll] = if can_be_unrolled { &[Unroll::Auto, Unroll::Always] } else { &[Unroll::Auto] };
    for setting in settings {
        let found = request(&f.clone().unroll(*setting)).function().unwrap_or_else(|e| panic!("{what}: {e}"));
        let interface = |f: &Function| format!("{:?} {:?} {:?}", f.signature(), f.inputs(), f.outputs());
        assert_eq!(interface(&found), interface(&never), "{what}, {setting:?}");
        let (found, expected) = (numbers(&evaluated(&found).unwrap()), numbers(&expected));
        let scale = expected.iter().fold(1.0, |scale: f64, x| scale.max(x.abs()));
        assert!(
            found.len() == expected.len() && found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-12 * scale),
            "{what}, {setting:?}: {found:?}, with loops {expected:?}"
        );
    }
    can_be_unrolled
}

#[test]
fn every_request_works_on_every_function() {
    let mut n_unrolled = 0;
    for case in CASES {
        let f = function(case.name);
        for of in case.of {
            let is_scalar = f.value().of(of).function().unwrap().signature().results[0].1 == Type::Double;
            let scalar = SCALAR.iter().filter(|_| is_scalar);
            for (what, request) in ANY.iter().chain(scalar) {
                let what = format!("{what} of {of:?} of {}", case.name);
                n_unrolled += u32::from(agree(&what, |f| request(f).of(of), &f));
                for by in case.by {
                    n_unrolled += u32::from(agree(&format!("{what} by {by:?}"), |f| request(f).of(of).by(by), &f));
                }
            }
        }
    }
    assert!(n_unrolled > 500, "{n_unrolled}");
}

#[test]
fn orders_are_limited() {
    let text = "let f = fun (x : [n]Double) -> sum n (fun i -> exp x[i])\nlet g = fun (x : Double) -> sin x";
    let module = Module::from_text("f.ft", text).unwrap();
    for (name, order) in [("f", 24), ("f", usize::MAX), ("g", usize::MAX)] {
        let error = module.function(name).unwrap().derivatives(order).function().unwrap_err();
        assert!(error.is_limitation() && error.to_string().contains("too long"), "{error}");
    }
}

#[test]
fn parts_of_open_extent_are_checked_at_entry() {
    let f = Module::from_text("f.ft", PROGRAM).unwrap().function("open").unwrap();
    let slope = f.gradient().by(&["x[3]"]).compile().unwrap();
    assert_eq!(slope.call(&[vec![0.5; 4].into()]).unwrap(), [Value::Real(50.0)]);
    let error = slope.call(&[vec![0.5; 3].into()]).unwrap_err().to_string();
    assert!(error.contains("there is no `x[3]`"), "{error}");
}

#[test]
fn refusals_of_parts_do_not_depend_on_the_form() {
    for (name, by, of, wanted) in [
        ("fixed", "x[4]", "result", "no argument `x[4]`"),
        ("fixed", "x[2..5]", "result", "no argument `x[2..5]`"),
        ("fixed", "x[3..2]", "result", "no argument `x[3..2]`"),
        ("fixed", "x[0][0]", "result", "no argument `x[0][0]`"),
        ("fixed", "x[", "result", "no argument `x[`"),
        ("fixed", "x[-1]", "result", "no argument `x[-1]`"),
        ("fixed", "x.a", "result", "no argument `x.a`"),
        ("open", "x[-1]", "result", "no argument `x[-1]`"),
        ("fields", "p.c", "result", "no argument `p.c`"),
        ("fields", "p.k[0]", "result", "cannot be differentiated by `p.k[0]`"),
        ("tuples", "ps[3].0", "result", "no argument `ps[3].0`"),
        ("several", "x", "w", "no result `w`"),
        ("several", "x", "t[3]", "no result `t[3]`"),
    ] {
        let f = function(name);
        let refused = |unroll| {
            let f = f.clone().unroll(unroll);
            f.jacobian().by(&[by]).of(&[of]).function().unwrap_err().to_string()
        };
        let never = refused(Unroll::Never);
        assert!(never.contains(wanted), "{never}");
        assert_eq!(refused(Unroll::Auto), never);
        assert_eq!(refused(Unroll::Always), never);
    }
    for by in [["x[1]", "x[0..2]"], ["x", "x[1]"], ["x[1]", "x[1]"]] {
        for unroll in [Unroll::Auto, Unroll::Never] {
            let error = function("fixed").unroll(unroll).gradient().by(&by).function().unwrap_err().to_string();
            assert!(error.contains("overlap"), "{error}");
        }
    }
}

#[test]
fn an_element_costs_less_than_the_whole() {
    let text = "let rows = fun (x : [n]Double) -> build n (fun i -> sum n (fun j -> sin (x[i] * x[j])))
let total = fun (x : [n]Double) -> sum n (fun i -> sin x[i])";
    let module = Module::from_text("f.ft", text).unwrap();
    let counts =
        |derivation: Derivation| derivation.function().unwrap().loop_counts().unwrap().unwrap().at(&[("n", 100)]);
    let (rows, total) = (module.function("rows").unwrap(), module.function("total").unwrap());
    assert_eq!(counts(total.gradient().by(&["x[1]"])).call, 1);
    assert_eq!(counts(total.gradient().by(&["x[1]"])).add, 0);
    assert!(counts(total.gradient().by(&["x[2..5]"])).call <= 3);
    assert_eq!(counts(rows.value().of(&["result[2]"])).call, 100);
    let of_one = counts(rows.jacobian().of(&["result[2]"]));
    assert!(of_one.call == 100 && of_one.mul <= 400, "{of_one}");
    assert!(counts(rows.jacobian().of(&["result[2]"]).by(&["x[1]"])).call <= 1);
}
