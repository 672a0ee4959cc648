//! In-place updates of loop states: the copies and the memory in the kernels of real programs, and the same bits from
//! the interpreter and native code.

#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{Backend, CompileOptions, Function, Module, Unroll, Value};

const UPDATES: &str = "
let solveByHand = fun (l : [n][n]Double) (b : [n]Double) ->
  ifold
    (fun x i ->
      let rest = b[i] - sum i (fun j -> l[i][j] * x[j])
      build n (fun j -> if j == i then rest / l[i][i] else x[j])
    )
    (vectorZeros n)
    n

let histogram = fun (at : [n]Index) (w : [n]Double) (m : Card) ->
  ifold (fun h i -> build m (fun j -> if j == at[i] then h[j] + w[i] else h[j])) (vectorZeros m) n

let growth = fun (x : [n]Double) (s : Card) ->
  ifold (fun y _ -> build n (fun i -> y[i] + x[i] * (1 - y[i]) * 0.1)) x s

let oneOfMatrix = fun (a : [n][m]Double) (s : Card) ->
  ifold (fun b k ->
    build n (fun i -> build m (fun j -> if i == mod k 3 && j == mod k 2 then b[i][j] * 2 + 1 else b[i][j]))
  ) a s

let eliminated = fun (a : [n][n]Double) ->
  ifold (fun m k ->
    let row = m[k]
    build n (fun i ->
      if i > k then
        let f = m[i][k] / row[k]
        build n (fun j -> m[i][j] - f * row[j])
      else
        m[i]
    )
  ) a n

let exchanged = fun (a : [n][n]Double) (p : [n]Index) ->
  ifold (fun m k ->
    let m =
      if p[k] == k then
        m
      else
        let (row, other) = (m[p[k]], m[k])
        build n (fun i -> if i == k then row else (if i == p[k] then other else m[i]))
    build n (fun i ->
      if i <= k then
        m[i]
      else
        let f = m[i][k] / m[k][k]
        build n (fun j -> m[i][j] - f * m[k][j])
    )
  ) a n

let differences = fun (x : [n]Double) -> build n (fun i -> if i == 0 then x[0] else x[i] - x[i - 1])

let shifted = fun (a : [n][n]Double) (s : Card) ->
  ifold (fun a _ -> snd (scan (fun (row : [n]Double) i -> (vectorSMul a[i] 0.5, row)) (vectorZeros n) n)) a s

let shiftedPairs = fun (a : [n][n]Double) (s : Card) ->
  ifold (fun a _ ->
    snd (scan (fun (pair : [2][n]Double) i -> ([vectorSMul a[i] 0.5, pair[0]], pair[1])) (matrixZeros 2 n) n)
  ) a s

let wave = fun (x : [n]Double) (s : Card) ->
  ifold (fun y _ -> build n (fun i -> if i == 0 then y[0] else y[i] - 0.5 * y[i - 1])) x s
";

fn kernel(function: &Function) -> String {
    function.compile().unwrap().listing()
}

fn of(text: &str, name: &str) -> Function {
    Module::from_text("f.ft", text).unwrap().function(name).unwrap()
}

/// Counts the copies in loops.
fn copies_in_loops(kernel: &str) -> usize {
    kernel.lines().filter(|line| line.starts_with("  ") && line.trim_start().starts_with("copy")).count()
}

#[test]
fn loops_copy_no_states() {
    for name in ["solveByHand", "histogram", "growth", "oneOfMatrix"] {
        let kernel = kernel(&of(UPDATES, name));
        assert_eq!(copies_in_loops(&kernel), 0, "{name}\n{kernel}");
    }
    // The row that updates all rows below is not written.
    let eliminated = kernel(&of(UPDATES, "eliminated"));
    assert_eq!(copies_in_loops(&eliminated), 0, "{eliminated}");
    // The exchanged rows are saved, and copied to their new positions, of which one is above or below; nothing else, in
    // any step.
    let exchanged = kernel(&of(UPDATES, "exchanged"));
    assert_eq!(copies_in_loops(&exchanged), 5, "{exchanged}");
    // Each element needs the old value of its neighbour: a second array, which alternates with the first; only the
    // result of an odd number of steps is moved.
    let wave = kernel(&of(UPDATES, "wave"));
    assert_eq!(copies_in_loops(&wave), 0, "{wave}");
    assert_eq!(wave.matches("else\n    move r").count(), 1, "{wave}");
    assert_eq!(wave.matches("move r").count(), 1, "{wave}");
}

/// Checks the copies in loops of each program and its gradient, all of them of rows.
#[test]
fn sums_in_sums_add_to_what_is_there_with_the_value_or_without() {
    let mixed = of(
        "let mixed = fun (q : [n][m]Double) (v : [m][d]Double) ->
          let s = build n (fun i -> build m (fun j -> exp q[i][j]))
          sum n (fun i ->
            let z = sum m (fun j -> s[i][j])
            sum d (fun l ->
              let o = sum m (fun j -> s[i][j] * v[j][l]) / z
              o * o))",
        "mixed",
    );
    let matrices = |kernel: &str| {
        let is_matrix = |line: &&str| line.starts_with("buffer ") && line.contains("real[r0*r1]");
        kernel.lines().filter(is_matrix).count()
    };
    let alone = kernel(&mixed.gradient().function().unwrap());
    let with_value = kernel(&mixed.gradient().with_value().function().unwrap());
    // With the value, exponentials are stored twice: once for its loop, and once for the last one.
    assert_eq!((matrices(&alone), matrices(&with_value)), (2, 3), "{alone}\n{with_value}");
}

#[test]
fn rows_of_zeros_and_one_number_are_made_for_no_sum() {
    // Three rows add one number each to a component, two of them to the same.
    let text = "
let bending = fun (v : [n][3]Double) -> sum (n - 2) (fun i ->
  sqrt (1.0 + sum 3 (fun a -> let e = v[i][a] - 2.0 * v[i + 1][a] + v[i + 2][a] in e * e)))
";
    let sequential = CompileOptions { sequential: true, ..CompileOptions::default() };
    let gradient = of(text, "bending").gradient().function().unwrap();
    let kernel = gradient.compile_with(&sequential).unwrap().listing();
    // One loop clears the result, and one adds to it.
    assert_eq!(kernel.matches("for r").count(), 2, "{kernel}");
    assert!(!kernel.contains("workspace"), "{kernel}");
    assert_eq!(kernel.matches("store").count(), 1 + 9, "{kernel}");
}

#[test]
fn programs_of_the_examples_copy_little() {
    let ode = include_str!("../../../../examples/micro/programs/ode.ft");
    // The last stage is part of the sum, which reads the element before the one that it writes: two arrays alternate.
    assert_eq!(copies_in_loops(&kernel(&of(ode, "ode"))), 0);
    let gradient = kernel(&of(ode, "odeLast").gradient().function().unwrap());
    // The saved states.
    assert_eq!(copies_in_loops(&gradient), 1, "{gradient}");
    let matrices = include_str!("../../../../benchmarks/src/arrays/matrices.ft");
    // The rows of a panel to their own memory, where they begin a loop; each row when it is factored; and all back.
    assert_eq!(copies_in_loops(&kernel(&of(matrices, "factor"))), 4);
    let lu = |name: &str, n: i64| {
        let f = of(matrices, name).at_sizes(&[("n", n)]).unwrap().unroll(Unroll::Never);
        copies_in_loops(&kernel(&f))
    };
    // The pivot row and the row that it replaces, and both to their positions, of which one is above or below.
    assert_eq!(lu("volume", 60), 5);
    // With panels the same; a panel and its pivots to their own memory, where they begin a loop, and each column when
    // it is factored; the rows of the panel to theirs, and once more where they begin a loop.
    assert_eq!(lu("volume", 300), 5 + 3 + 2);
    // Of the right side its exchanged elements, and for each factor: the rows of a panel to their own memory, and once
    // more where they begin a loop; each row when it is solved; and all back.
    assert_eq!(lu("system", 60), 5 + 1 + 2 * 4);
    assert_eq!(lu("system", 300), 5 + 3 + 2 + 1 + 2 * 4);
}

#[test]
fn every_engine_computes_the_same() {
    let numbers = |n: i64, seed: f64| -> Vec<f64> { (0..n).map(|i| (seed + i as f64 * 0.37).sin() + 1.5).collect() };
    let matrix =
        |n: i64, m: i64| -> Value<f64> { Value::Array((0..n).map(|i| numbers(m, i as f64 * 1.3).into()).collect()) };
    for n in [0, 1, 2, 7, 9, 40] {
        let places = |m: i64| Value::Array((0..n).map(|i| Value::Int((i * 7 + 3) % m - 1)).collect());
        let cases: [(&str, Vec<Value<f64>>); 9] = [
            ("solveByHand", vec![matrix(n, n), numbers(n, 0.2).into()]),
            ("histogram", vec![places(5), numbers(n, 0.2).into(), Value::Int(3)]),
            ("growth", vec![numbers(n, 0.1).into(), Value::Int(3)]),
            ("oneOfMatrix", vec![matrix(n, 2), Value::Int(5)]),
            ("eliminated", vec![matrix(n, n)]),
            ("differences", vec![numbers(n, 0.4).into()]),
            ("shifted", vec![matrix(n, n), Value::Int(3)]),
            ("shiftedPairs", vec![matrix(n, n), Value::Int(2)]),
            ("wave", vec![numbers(n, 0.4).into(), Value::Int(4)]),
        ];
        for (name, args) in cases {
            let function = of(UPDATES, name);
            let slow = CompileOptions { backend: Backend::Interpreter, ..CompileOptions::default() };
            let bits = |options: &CompileOptions| {
                let found = function.compile_with(options).unwrap().call(&args).unwrap();
                format!("{found:?}")
            };
            assert_eq!(bits(&CompileOptions::default()), bits(&slow), "{name} {n}");
        }
    }
    // By hand.
    let f = of(UPDATES, "histogram").compile().unwrap();
    let at = Value::Array([2, -1, 0, 2, 3].map(Value::Int).to_vec());
    let found = f.call(&[at, vec![1.0, 2.0, 4.0, 8.0, 16.0].into(), Value::Int(3)]).unwrap();
    assert_eq!(found, [Value::from(vec![4.0, 0.0, 9.0])]);
}

/// A state that is an element of a loop's result is saved to its position before the next state takes it; that position
/// may contain data that the step still reads.
#[test]
fn a_row_that_is_kept_early_does_not_overwrite_what_is_read_later() {
    let rows = |rows: [[f64; 3]; 3]| Value::Array(rows.map(|row| row.to_vec().into()).to_vec());
    let a = rows([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]);
    let cases = [
        ("shifted", 1, rows([[0.0; 3], [0.5, 1.0, 1.5], [2.0, 2.5, 3.0]])),
        ("shifted", 2, rows([[0.0; 3], [0.0; 3], [0.25, 0.5, 0.75]])),
        ("shiftedPairs", 1, rows([[0.0; 3], [0.0; 3], [0.5, 1.0, 1.5]])),
    ];
    for (name, steps, expected) in cases {
        let f = of(UPDATES, name).compile().unwrap();
        assert_eq!(f.call(&[a.clone(), Value::Int(steps)]).unwrap(), [expected], "{name} {steps}\n{}", f.listing());
    }
}

/// Memory is that of the checkpoints, for any number of steps: a few arrays of one state in addition.
#[test]
fn the_workspace_holds_as_many_states_as_there_are_checkpoints() {
    let ode = of(include_str!("../../../../examples/micro/programs/ode.ft"), "odeLast");
    let n = 7;
    let len = |checkpoints: Option<u32>, steps: i64| {
        let gradient = ode.gradient();
        let gradient = checkpoints.map_or(gradient.clone(), |c| gradient.checkpoints(c)).compile().unwrap();
        let args = [vec![0.3; n].into(), Value::Int(steps)];
        let mut prepared = gradient.prepare(&args).unwrap();
        prepared.run().unwrap();
        (prepared.workspace_len(), prepared.result(0).to_vec())
    };
    for steps in [10, 100, 1000] {
        let (kept, expected) = len(None, steps);
        assert!((0..20).contains(&(kept as i64 / n as i64 - steps)), "{kept} numbers for {steps} steps");
        for checkpoints in [1, 2, 5, 20] {
            let (again, found) = len(Some(checkpoints), steps);
            if steps > i64::from(checkpoints) {
                let c = checkpoints as usize;
                // The checkpoints, their positions, and the memory of one step.
                assert!(again <= c * (n + 1) + 20 * n, "{again} numbers for {checkpoints} checkpoints");
            }
            let largest = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            for (a, b) in found.iter().zip(&expected) {
                assert!((a - b).abs() <= 1e-13 * largest, "{a} is not {b}");
            }
        }
    }
}

/// The gradient of a fold from an element: the cotangents of the steps are the terms of a loop, to which that of the
/// first element is added.
#[test]
fn an_element_is_added_to_the_terms_of_a_loop_in_place() {
    for body in ["vectorMax v", "vectorMin v", "ifold (fun s i -> s * v[i] + cos s) v[1] n"] {
        let f = of(&format!("let f = fun (v : [n]Double) -> {body}"), "f");
        let gradient = f.gradient().compile().unwrap();
        let listing = gradient.listing();
        // The states of the steps, or what the steps compute.
        let n_buffers = listing.lines().filter(|line| line.starts_with("buffer ") && line.contains("[r0]")).count();
        assert!(n_buffers <= 2 - usize::from(body.starts_with("vector")), "{listing}");
        for args in [vec![0.5, 2.0, -1.0, 2.0, -1.0], vec![3.0, 3.0], vec![0.1, 0.7, 0.7]] {
            let known = f.at_sizes(&[("n", args.len() as i64)]).unwrap();
            let expected = known.gradient().unroll(chainrule::Unroll::Always).compile().unwrap();
            let found = gradient.eval(&[&args]).unwrap().concat();
            for (found, expected) in found.iter().zip(expected.eval(&[&args]).unwrap().concat()) {
                assert!(
                    (found - expected).abs() <= 1e-14 * (1.0 + expected.abs()),
                    "{found} is not {expected}: {body}"
                );
            }
        }
    }
}
