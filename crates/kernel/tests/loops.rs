//! Loops made plain: the same values, bit for bit.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::Unstructured;
use chainrule_cases::covers;
use chainrule_ir::generate::{Options, arguments_up_to, arrays, comparisons, function};
use chainrule_ir::{Function, Value};
use chainrule_kernel::{Kernel, hoist, streamline, vectorise, verify};
use chainrule_ops::Semantics;
use std::cell::Cell;

use support::program;
use support::reference::{compare_within, lower, tolerance};

fn many(cases: u32, seed: u64, check: impl Fn(&mut Unstructured<'_>)) {
    support::random(cases, seed, 0..3000, |bytes| check(&mut Unstructured::new(bytes)));
}

fn plain(kernel: &mut Kernel) {
    streamline(kernel);
    assert_eq!(verify(kernel), Ok(()), "{kernel}");
}

#[test]
fn functions_keep_their_values() {
    let (compared, changed) = (Cell::new(0), Cell::new(0));
    for (seed, semantics) in [(41, Semantics::Strict), (42, Semantics::Algebraic)] {
        many(1200, seed, |u| {
            let linear = semantics == Semantics::Algebraic;
            let options = Options { depth: 4, fuel: 80, smooth: linear, linear, derivatives: false, transposed: false };
            let function = function(u, options).unwrap();
            let Ok(mut kernel) = lower(&function) else { return };
            let before = kernel.to_string();
            plain(&mut kernel);
            let after = kernel.to_string();
            changed.set(changed.get() + usize::from(after != before));
            let mut at_once = kernel.clone();
            vectorise(&mut at_once, semantics);
            for kernel in [&mut kernel, &mut at_once] {
                hoist(kernel);
                assert_eq!(verify(kernel), Ok(()), "{kernel}");
            }
            for longest in [3, 9, 20] {
                let args = arguments_up_to(u, &function, longest).unwrap();
                let close = tolerance(semantics);
                compare_within(&function, &at_once, &args, close);
                compared.set(compared.get() + usize::from(compare_within(&function, &kernel, &args, close)));
            }
        });
    }
    let (compared, changed) = (compared.get(), changed.get());
    covers!(compared > 3000 && changed > 1000, "{changed} functions changed, {compared} comparisons");
}

#[test]
fn functions_that_move_arrays_about_keep_their_values() {
    let changed = Cell::new(0);
    many(1500, 43, |u| {
        let Ok((function, args)): arbitrary::Result<(_, Vec<Value<f64>>)> = arrays::case(u, 60) else { return };
        let Ok(mut kernel) = lower(&function) else { return };
        let before = kernel.to_string();
        plain(&mut kernel);
        hoist(&mut kernel);
        changed.set(changed.get() + usize::from(kernel.to_string() != before));
        assert!(compare_within(&function, &kernel, &args, 0.0));
    });
    covers!(changed.get() > 500, "{} functions changed", changed.get());
}

#[test]
fn loops_that_compare_their_indices_keep_their_values() {
    let (pieces, branches) = (Cell::new(0), Cell::new(0));
    many(4000, 44, |u| {
        let Ok((function, args)) = comparisons::case(u, 24, 12) else { return };
        let mut kernel = lower(&function).unwrap();
        let before = kernel.to_string();
        plain(&mut kernel);
        let after = kernel.to_string();
        let count = |what: &str| after.matches(what).count() as i64 - before.matches(what).count() as i64;
        pieces.set(pieces.get() + usize::from(count("for ") > 0));
        branches.set(branches.get() + usize::from(count("if ") < 0));
        assert!(compare_within(&function, &kernel, &args, 0.0));
        let mut at_once = kernel.clone();
        vectorise(&mut at_once, Semantics::Strict);
        hoist(&mut at_once);
        assert_eq!(verify(&at_once), Ok(()), "{at_once}");
        assert!(compare_within(&function, &at_once, &args, 0.0));
    });
    let (pieces, branches) = (pieces.get(), branches.get());
    covers!(pieces > 500 && branches > 500, "{pieces} functions in pieces, {branches} with fewer branches");
}

#[test]
fn nests_that_go_through_memory_in_one_row_are_one_loop() {
    let cases = [
        ("let f = fun (x : [5][4]Double) -> build 5 (fun i -> build 4 (fun j -> -x[i][j]))", 1),
        (
            "let f = fun (x : [n][m]Double) (y : [n][m]Double) -> build n (fun i -> build m (fun j -> x[i][j] * y[i][j]))",
            1,
        ),
        ("let f = fun (x : [n][3]Double) (c : Double) -> build n (fun i -> build 3 (fun j -> c - x[i][j]))", 1),
        (
            "let f = fun (x : [2][n][3]Double) -> build 2 (fun i -> build n (fun j -> build 3 (fun k -> 2 * x[i][j][k])))",
            1,
        ),
        // All rows but the first.
        ("let f = fun (x : [n][m]Double) -> build (n - 1) (fun i -> build m (fun j -> -x[i + 1][j]))", 2),
        ("let f = fun (x : [7][m]Double) -> build 6 (fun i -> build m (fun j -> -x[i + 1][j]))", 1),
        // Columns, rows of another length, something that each row has for itself, and indices that are numbers.
        ("let f = fun (x : [4][5]Double) -> build 5 (fun i -> build 4 (fun j -> -x[j][i]))", 2),
        ("let f = fun (x : [5][6]Double) -> build 5 (fun i -> build 4 (fun j -> -x[i][j]))", 2),
        ("let f = fun (x : [5][4]Double) (c : [5]Double) -> build 5 (fun i -> build 4 (fun j -> c[i] * x[i][j]))", 2),
        ("let f = fun (x : [5][4]Double) -> build 5 (fun i -> build 4 (fun j -> real j * x[i][j]))", 2),
    ];
    let bytes: Vec<u8> = (0..4000u64).map(|i| (i.wrapping_mul(6_364_136_223) >> 7) as u8).collect();
    for (text, loops) in cases {
        let function = program(text).elaborate("f").unwrap();
        let mut kernel = lower(&function).unwrap();
        plain(&mut kernel);
        assert_eq!(kernel.to_string().matches("for ").count(), loops, "{text}\n{kernel}");
        let mut u = Unstructured::new(&bytes);
        let fitted = (0..20).filter(|_| {
            let args = arguments_up_to(&mut u, &function, 6).unwrap();
            compare_within(&function, &kernel, &args, 0.0)
        });
        assert!(fitted.count() > 2, "{text}");
    }
}

#[test]
fn comparisons_come_right_before_the_branches_that_go_by_them() {
    let text = "let f = fun (x : [n]Double) ->
        ifold (fun (best, at) i -> let next = abs x[i] in if best < next then (next, i) else (best, at)) (-1.0, 0) n";
    let mut kernel = lower(&program(text).elaborate("f").unwrap()).unwrap();
    plain(&mut kernel);
    let listing = kernel.to_string();
    let lines: Vec<&str> = listing.lines().map(str::trim).collect();
    let branches: Vec<[&str; 2]> =
        lines.windows(2).filter_map(|pair| Some([pair[0], pair[1].strip_prefix("if ")?])).collect();
    assert!(!branches.is_empty(), "{listing}");
    for [before, condition] in branches {
        assert!(before.starts_with(&format!("{condition} = lt ")), "{before}\n{listing}");
    }
}

#[test]
fn the_lesser_of_two_that_were_compared_is_a_minimum() {
    for (choice, name) in [("next < s then next else s", "min"), ("next < s then s else next", "max")] {
        let text = format!(
            "let f = fun (x : [n]Double) (y : Double) -> ifold (fun s i -> let next = x[i] in if {choice}) y n"
        );
        let function = program(&text).elaborate("f").unwrap();
        let mut kernel = lower(&function).unwrap();
        plain(&mut kernel);
        hoist(&mut kernel);
        assert!(kernel.to_string().contains(&format!("= {name} ")), "{kernel}");
        for first in [-0.0, 0.0, 1.0, f64::NAN] {
            for last in [0.0, -0.0, f64::NAN, 2.0] {
                let args = [Value::Array(vec![Value::Real(first), Value::Real(last)]), Value::Real(0.0)];
                assert!(compare_within(&function, &kernel, &args, 0.0), "{kernel}");
            }
        }
    }
}

#[test]
fn how_often_inner_loops_run_is_computed_before_the_outer_ones() {
    let function = program(
        "let f = fun (x : [n]Double) (s : Card) -> ifold (fun y k -> build n (fun i -> y[i] * x[i] + real k)) x s",
    )
    .elaborate("f")
    .unwrap();
    let mut kernel = lower(&function).unwrap();
    plain(&mut kernel);
    vectorise(&mut kernel, Semantics::Algebraic);
    let counts = |kernel: &Kernel| {
        let text = kernel.to_string();
        text.lines().filter(|line| line.starts_with(' ') && line.contains("for ") && line.contains(" - ")).count()
    };
    let before = counts(&kernel);
    hoist(&mut kernel);
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    assert!(before > 0 && counts(&kernel) == 0, "{kernel}");
    for n in 0..30 {
        let x = Value::Array((0..n).map(|i| Value::Real(f64::from(i))).collect());
        assert!(compare_within(&function, &kernel, &[x, Value::Int(3)], 0.0));
    }
}

#[test]
fn how_often_a_loop_runs_is_computed_inside_where_it_may_not_fit() {
    let text = "let f = fun (x : [n]Double) (s : Card) -> ifold (fun y k -> y + sum (3 * n) (fun i -> real i)) 0 s";
    let function = program(text).elaborate("f").unwrap();
    let mut kernel = lower(&function).unwrap();
    plain(&mut kernel);
    hoist(&mut kernel);
    assert!(kernel.to_string().contains(" in 0..3*r0"), "{kernel}");
}

#[test]
fn what_loops_carry_twice_is_carried_once() {
    // A step of three numbers, and how many of them are different.
    let steps = [
        ("(a, b, c)", 1),
        ("(a + x[i], b + x[i], c + x[i])", 1),
        ("(a + x[i], x[i] + b, c - x[i])", 2),
        ("(b + x[i], a + x[i], a * c)", 2),
        ("(b + x[i], c + x[i], a + x[i])", 1),
        ("(a + x[i], b + x[i], a + (b + c))", 2),
        ("(a + x[i], b + a, c + b)", 3),
        ("ifold (fun t j -> let (u, v, w) = t in (u + a * x[j], v + b * x[j], w + c)) (b, a, c) n", 2),
        ("ifold (fun t j -> let (u, v, w) = t in (u + a * x[j], w + b * x[j], v + c)) (b, a, c) n", 3),
    ];
    for (step, different) in steps {
        let text = format!(
            "let f = fun (x : [n]Double) (y : Double) ->
              let step = fun (s : (Double, Double, Double)) i -> let (a, b, c) = s in {step} in
              ifold step (y, y, y) n"
        );
        let function = program(&text).elaborate("f").unwrap();
        let mut kernel = lower(&function).unwrap();
        plain(&mut kernel);
        let text = kernel.to_string();
        let outer = text.lines().find(|line| line.starts_with("for ")).unwrap_or_default();
        assert_eq!(outer.matches(" then ").count(), different, "{step}\n{kernel}");
        for n in 0..5 {
            let x = Value::Array((0..n).map(|i| Value::Real(f64::from(i) - 1.5)).collect());
            assert!(compare_within(&function, &kernel, &[x, Value::Real(0.3)], 0.0), "{step}\n{kernel}");
        }
    }
}

#[test]
fn what_is_read_is_not_written_back() {
    let function = program(
        "let f = fun (x : [n]Double) (s : Card) ->
          ifold (fun y k -> build n (fun i -> if i < k then y[i] else y[i] + x[i])) x s",
    )
    .elaborate("f")
    .unwrap();
    let mut kernel = lower(&function).unwrap();
    plain(&mut kernel);
    // One copy before, and the second part of each step. Steps after the last element do nothing, and have no loop.
    assert_eq!(kernel.to_string().matches("copy ").count(), 1, "{kernel}");
    assert_eq!(kernel.to_string().matches("for ").count(), 2, "{kernel}");
    for n in 0..12 {
        let x = Value::Array((0..n).map(|i| Value::Real(f64::from(i))).collect());
        assert!(compare_within(&function, &kernel, &[x, Value::Int(5)], 0.0));
    }
}

#[test]
fn rows_are_told_apart_by_a_place_that_was_checked() {
    // The row before the one at a place that is read: those before it, it, and those after it. Where the place is read
    // only when it comes, it may be any number.
    let program = |first: &str, row: &str| {
        format!(
            "let f = fun (x : [n][m]Double) (at : [k]Int) -> build k (fun j -> let p = at[j] in {first}
              build (n - 1) (fun i -> build m (fun e -> if i + 1 == p then {row}[e] * 2 else x[i + 1][e])))"
        )
    };
    let cases = [(program("let y = x[p] in", "y"), true), (program("", "x[p]"), false)];
    for (text, is_cut) in cases {
        let function = support::program(&text).elaborate("f").unwrap();
        let mut kernel = lower(&function).unwrap();
        plain(&mut kernel);
        hoist(&mut kernel);
        let text = kernel.to_string();
        assert_eq!(!text.contains("select") && !text.contains("if "), is_cut, "{text}");
        rows_at_places(&function, &kernel);
    }
}

fn rows_at_places(function: &Function, kernel: &Kernel) {
    let matrix = |n: usize, m: usize| {
        let row = |i: usize| Value::Array((0..m).map(|j| Value::Real((i * m + j) as f64)).collect());
        Value::Array((0..n).map(row).collect())
    };
    for n in 1..6 {
        let inside = (0..n as i64).map(Value::Int).collect();
        assert!(compare_within(function, kernel, &[matrix(n, 3), Value::Array(inside)], 0.0));
        for at in [-1, n as i64, i64::MIN, i64::MAX] {
            assert!(compare_within(function, kernel, &[matrix(n, 3), Value::Array(vec![Value::Int(at)])], 0.0));
        }
    }
}
