//! One layout and one set of names: a function and its derivatives have the arguments and results that they have where
//! loops are kept, also where loops are unrolled.

#![allow(clippy::unwrap_used, reason = "tests")]

use chainrule::{Derivation, Function, Module, Type, Value};

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

/// The number of elements of every open dimension.
const N: usize = 3;

/// A value of type `ty`, of ever other numbers.
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

/// Types without their sizes.
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
    // Emitted code calls them the same.
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
