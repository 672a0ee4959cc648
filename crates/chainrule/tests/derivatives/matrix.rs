//! Sparse matrices of any function: with loops the pattern of straight-line code, the same values as the dense
//! derivative, in the way that is chosen.

#![allow(clippy::unwrap_used, reason = "tests")]

use chainrule::{Derivation, Function, Module, SparseForm, SparseWay, Unroll, Value};

/// Cart-pole dynamics, collocated by the trapezoidal rule, and the Lagrangian of the constraints.
const CART_POLE: &str = "
let dynamics = fun (s : [4]Double) (u : Double) ->
  let c = cos s[1]
  let si = sin s[1]
  let d = 1 + 0.3 * si * si
  let a = (u + 0.3 * si * (0.5 * s[3] ** 2 + 9.81 * c)) / d
  let b = -(u * c + 0.15 * s[3] ** 2 * c * si + 1.3 * 9.81 * si) / (0.5 * d)
  [s[2], s[3], a, b]
let defects = fun (x : [n][4]Double) (u : [n]Double) ->
  build (n - 1) (fun k ->
    let f = dynamics x[k] u[k]
    let g = dynamics x[k + 1] u[k + 1]
    build 4 (fun i -> x[k + 1][i] - x[k][i] - 0.02 * (f[i] + g[i])))
let lagrangian = fun (x : [n][4]Double) (u : [n]Double) (l : [m][4]Double) ->
  sum (n - 1) (fun k ->
    let f = dynamics x[k] u[k]
    let g = dynamics x[k + 1] u[k + 1]
    u[k] ** 2 * 0.02 + sum 4 (fun i -> l[k][i] * (x[k + 1][i] - x[k][i] - 0.02 * (f[i] + g[i]))))
";

fn function(text: &str, name: &str) -> Function {
    Module::from_text("f.ft", text).unwrap().function(name).unwrap()
}

fn numbers(rows: usize, columns: usize, seed: f64) -> Value<f64> {
    let x = |i: usize, j: usize| ((i * 7 + j * 3) as f64 * 0.37 + seed).sin();
    if columns == 1 {
        return (0..rows).map(|i| x(i, 0)).collect::<Vec<_>>().into();
    }
    (0..rows).map(|i| (0..columns).map(|j| x(i, j)).collect::<Vec<_>>()).collect::<Vec<_>>().into()
}

type Entries = Vec<((usize, usize), f64)>;

fn entries(request: &Derivation, args: &[Value<f64>]) -> (Entries, SparseWay) {
    let matrix = request.matrix().unwrap();
    let mut prepared = matrix.prepare(args).unwrap();
    let values = prepared.run().unwrap().to_vec();
    (prepared.pattern().coo().iter().copied().zip(values).collect(), prepared.way())
}

#[track_caller]
fn agree(f: &Function, sizes: &[(&str, i64)], request: impl Fn(&Function) -> Derivation, args: &[Value<f64>]) -> usize {
    let straight = f.unrolled(sizes).unwrap();
    let (expected, way) = entries(&request(&straight), args);
    assert_eq!(way, SparseWay::StraightLine);
    let (found, way) = entries(&request(&f.clone().unroll(Unroll::Never)), args);
    assert_ne!(way, SparseWay::StraightLine);
    let positions = |all: &Entries| all.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    assert_eq!(positions(&found), positions(&expected), "{way}");
    for ((at, a), (_, b)) in found.iter().zip(&expected) {
        assert!((a - b).abs() <= 1e-11 * (1.0 + b.abs()), "{at:?}: {a} is not {b}; {way}");
    }
    found.len()
}

#[test]
fn loops_have_the_pattern_of_straight_line_code() {
    let (n, m) = (51, 50);
    let sizes = [("n", n as i64), ("m", m as i64)];
    let args = [numbers(n, 4, 0.1), numbers(n, 1, 0.4), numbers(m, 4, 0.7)];
    let defects = function(CART_POLE, "defects");
    let by = |derivation: Derivation| derivation.by(&["x", "u"]);
    // Blocks of 4 by 10 in 50 steps.
    let n_entries = agree(&defects, &sizes[..1], |f| by(f.jacobian()), &args[..2]);
    assert!(n_entries <= 1100, "{n_entries}");
    let lagrangian = function(CART_POLE, "lagrangian");
    let few = [("n", 9), ("m", 8)];
    let args = [numbers(9, 4, 0.1), numbers(9, 1, 0.4), numbers(8, 4, 0.7)];
    let n_entries = agree(&lagrangian, &few, |f| by(f.hessian()), &args);
    let n_lower = agree(&lagrangian, &few, |f| by(f.hessian().lower()), &args);
    let n_upper = agree(&lagrangian, &few, |f| by(f.hessian().upper()), &args);
    assert!(n_lower == n_upper && n_lower < n_entries && n_entries < 80, "{n_entries} {n_lower}");
}

#[test]
fn zeros_in_blocks_are_no_entries() {
    for (text, n_entries) in [
        ("let f = fun (x : [n][3]Double) -> build n (fun i -> [x[i][0] * x[i][1], sin x[i][2], 2.0])", 3),
        (
            "let f = fun (x : [n][3]Double) -> build n (fun i -> (x[i][0] ** 2, { a = x[i][1], b = x[i][2] * x[i][1] }))",
            4,
        ),
        ("let f = fun (x : [n][3]Double) -> sum n (fun i -> x[i][0] * x[i][1] + x[i][2])", 2),
    ] {
        let f = function(text, "f");
        let is_scalar = text.contains("sum n");
        let request = |f: &Function| if is_scalar { f.hessian() } else { f.jacobian() };
        assert_eq!(agree(&f, &[("n", 5)], request, &[numbers(5, 3, 0.2)]), n_entries * 5, "{text}");
    }
}

#[test]
fn where_a_branch_depends_on_doubles_entries_are_those_of_both_sides() {
    let text = "let f = fun (x : [n][2]Double) -> build n (fun i -> [if x[i][0] > 0 then x[i][1] else 0, x[i][0]])";
    let matrix = function(text, "f").jacobian().matrix().unwrap();
    for args in [vec![vec![1.0, 2.0]; 3], vec![vec![-1.0, 2.0]; 3]] {
        let prepared = matrix.prepare(&[args.into()]).unwrap();
        assert_eq!(prepared.way(), SparseWay::Indices);
        assert!(prepared.pattern().coo().contains(&(0, 1)));
    }
}

#[test]
fn the_way_is_chosen_by_structure() {
    let chain = "let f = fun (x : [n]Double) -> build (n - 1) (fun i -> (x[i + 1] - x[i]) ** 2)";
    let steps = "let f = fun (u : [n]Double) (s : Card) -> ifold (fun u k -> build n (fun i ->
      u[i] + 0.1 * (u[max 0 (i - 1)] - 2 * u[i] + u[min (n - 1) (i + 1)]))) u s";
    let x = Value::from(vec![1.0; 200]);
    let way = |text: &str, args: &[Value<f64>]| entries(&function(text, "f").jacobian(), args).1;
    assert_eq!(way(chain, std::slice::from_ref(&x)), SparseWay::Indices);
    assert_eq!(way(steps, &[x, Value::Int(2)]), SparseWay::Directions(5));
    let fixed = function(chain, "f").at_sizes(&[("n", 4)]).unwrap();
    assert_eq!(entries(&fixed.jacobian(), &[vec![1.0; 4].into()]).1, SparseWay::StraightLine);
    // Loops with a small argument that is read whole: the blocks would be dense.
    let wide = "let f = fun (x : [60]Double) (k : Card) -> build 59 (fun i -> x[i] * x[i + 1] * real k)";
    let (found, way) = entries(&function(wide, "f").jacobian(), &[vec![1.0; 60].into(), Value::Int(1)]);
    assert_eq!((found.len(), way), (118, SparseWay::Directions(2)));
}

#[test]
fn forms_and_parts_of_results_are_the_same_in_all_ways() {
    let text = "let f = fun (x : [n]Double) -> { a = build (n - 1) (fun i -> x[i] * x[i + 1]), b = x[0] ** 2 }";
    let f = function(text, "f");
    let args = [Value::from(vec![1.0, 2.0, 3.0])];
    for f in [f.clone().unroll(Unroll::Never), f.unrolled(&[("n", 3)]).unwrap()] {
        let matrix = f.jacobian().of(&["a"]).matrix().unwrap();
        let mut prepared = matrix.prepare(&args).unwrap();
        prepared.run().unwrap();
        assert_eq!(prepared.pattern().coo(), [(0, 0), (0, 1), (1, 1), (1, 2)]);
        let csc = prepared.results(SparseForm::Csc);
        assert_eq!(csc.last().unwrap().2, vec![2.0, 1.0, 3.0, 2.0].into());
        prepared.argument_mut(0)[0] = 5.0;
        assert_eq!(prepared.run().unwrap()[1], 5.0);
        assert!(f.jvp().matrix().unwrap_err().to_string().contains("a sparse matrix is"));
    }
}

#[test]
fn columns_are_those_of_the_requested_parts() {
    let text = "let f = fun (ps : [n]{ a : Double, b : [2]Double }) (y : [n]Double) ->
      build (n - 1) (fun i -> ps[i].a * ps[i + 1].b[1] * y[i] + sin ps[i].b[0])
let g = fun (x : [n]Double) (y : [n]Double) -> sum (n - 1) (fun i -> x[i] * x[i + 1] ** 2 * y[i])";
    let row = |a: f64| Value::Tuple(vec![a.into(), vec![a + 0.3, a * a].into()]);
    let args = [Value::Array(vec![row(0.4), row(1.2), row(2.0), row(0.7)]), vec![0.3, 0.8, 0.2, 1.9].into()];
    let f = function(text, "f");
    for by in [&["ps.a"][..], &["y[1]", "ps[2].b"], &["ps[1..3].b[1]", "y"], &["ps[0]", "y[0..2]"]] {
        agree(&f, &[("n", 4)], |f| f.jacobian().by(by), &args);
    }
    let args = [Value::from(vec![0.3, 0.8, 0.2]), vec![1.0, 2.0, 3.0].into()];
    for by in [&["x[0..2]"][..], &["y[1]", "x"], &["x[2]", "x[0]"]] {
        agree(&function(text, "g"), &[("n", 3)], |f| f.hessian().by(by), &args);
        agree(&function(text, "g"), &[("n", 3)], |f| f.hessian().by(by).upper(), &args);
    }
    let outside = function(text, "g").hessian().by(&["x[3]"]).matrix().unwrap();
    assert!(outside.prepare(&args).unwrap_err().to_string().contains("there is no `x[3]`"));
}
