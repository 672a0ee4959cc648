//! Reverse mode within a bound of memory: the bound holds, recomputation is minimal, and bits are the same.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{CompileOptions, Compiled, Derivation, Function, Module, Value};

fn function(text: &str) -> Function {
    Module::from_text("f.ft", text).unwrap().function("f").unwrap()
}

fn numbers(code: &Compiled, args: &[Value<f64>]) -> usize {
    code.prepare(args).unwrap().workspace_len()
}

const GROWN: &str = "let f = fun (x : [n]Double) (s : Card) ->
  vectorSum (ifold (fun y _ -> build n (fun i -> y[i] + x[i] * (1 - y[i]) * 0.01)) x s)";

/// Loops in sequence, and nested.
const NESTED: &str = "let f = fun (x : [n]Double) (s : Card) (t : Card) ->
  let y = ifold (fun y k ->
    let z = ifold (fun z _ -> build n (fun i -> z[i] * x[i] + sin y[i])) y t
    build n (fun i -> y[i] + 0.01 * z[i] * real k)) x s
  let w = ifold (fun w _ -> w * y[0] + 0.5) 1.0 t
  w + vectorSum y";

const WHILE: &str = "let f = fun (x : Double) (s : Card) ->
  let (y, _) = while (fun (y, k) -> k < s) (fun (y, k) -> (y + sin (x * y) * 0.1, k + 1)) (x, 0) 5000
  y";

/// Checks the result for each bound: the same bits; memory within the bound, which counts only the memory for states;
/// and twice as many checkpoints would not have fitted. Returns the numbers of checkpoints.
fn check(derivation: &Derivation, args: &[Value<f64>], bounds: &[usize]) -> Vec<Option<u32>> {
    let with = |n| derivation.clone().checkpoints(n).compile().unwrap();
    let (few, more) = (numbers(&with(4), args), numbers(&with(8), args));
    let others = few - (more - few);
    let kept = derivation.compile().unwrap();
    let expected = kept.call(args).unwrap();
    let answer = |bytes: &usize| {
        let within = derivation.compile_within(*bytes, args, &CompileOptions::default()).unwrap();
        assert_eq!(within.compiled.call(args).unwrap(), expected, "{bytes} bytes");
        assert!(numbers(&within.compiled, args) <= others + bytes / 8, "{bytes} bytes: {:?}", within.checkpoints);
        let more = within.checkpoints.map_or(usize::MAX, |n| numbers(&with(2 * n + 2), args));
        assert!(more > others + bytes / 8, "{bytes} bytes: {:?}", within.checkpoints);
        if within.checkpoints.is_some() {
            assert!(numbers(&kept, args) > others + bytes / 8, "{bytes} bytes: all states fit");
        }
        within.checkpoints
    };
    bounds.iter().map(answer).collect()
}

#[test]
fn as_many_as_fit() {
    let args = [vec![0.5; 10].into(), Value::Int(1000)];
    let found = check(&function(GROWN).gradient(), &args, &[300, 4000, 40_000, 200_000]);
    assert!(found[0].is_some_and(|n| n < 4) && found[1].is_some_and(|n| n > 20), "{found:?}");
    assert_eq!(found[3], None);
}

#[test]
fn loops_in_loops_share() {
    let args = [vec![0.5; 5].into(), Value::Int(60), Value::Int(40)];
    let f = function(NESTED);
    let found = check(&f.gradient(), &args, &[1000, 3000, 100_000]);
    assert!(found[0] < found[1] && found[0].is_some(), "{found:?}");
    assert_eq!(found[2], None);
    let mut tangent = args.to_vec();
    tangent.push(vec![1.0; 5].into());
    check(&f.hvp().by(&["x"]), &tangent, &[3000, 100_000]);
}

#[test]
fn a_loop_with_a_condition_has_as_many_as_its_limit_says() {
    let args = [Value::Real(0.3), Value::Int(100)];
    let found = check(&function(WHILE).gradient().by(&["x"]).strategy("reverse"), &args, &[500, 5000, 1 << 20]);
    assert_eq!(found[2], None);
    assert!(found[0].is_some() && found[0] < found[1], "{found:?}");
}

#[test]
fn derivatives_in_the_text_too() {
    let text = "let f = fun (x : [n]Double) (s : Card) -> gradient (fun (x : [n]Double) ->
      vectorSum (ifold (fun y _ -> build n (fun i -> y[i] * x[i])) x s)) x";
    let f = function(text);
    let args = [vec![0.9; 4].into(), Value::Int(500)];
    let within = f.compile_within(2000, &args, &CompileOptions::default()).unwrap();
    assert!(within.checkpoints.is_some());
    assert_eq!(within.compiled.call(&args).unwrap(), f.compile().unwrap().call(&args).unwrap());
    // Emitted text, too: no array of s states.
    let (all, few) = (f.emit_c().unwrap(), f.with_checkpoints(3).unwrap().emit_c().unwrap());
    let size = |header: &str| header.lines().find(|line| line.contains("work: ")).unwrap().to_owned();
    assert!(size(&all.header).contains("n*s") && !size(&few.header).contains("n*s"), "{}", size(&few.header));
    assert!(f.with_checkpoints(3).unwrap().emit_rust().unwrap().text.len() > f.emit_rust().unwrap().text.len());
}

#[test]
fn nothing_to_keep_is_kept_in_any_bound() {
    let f = function("let f = fun (x : [n]Double) -> sum n (fun i -> sin x[i])");
    let within = f.gradient().compile_within(0, &[vec![1.0; 5].into()], &CompileOptions::default()).unwrap();
    assert_eq!(within.checkpoints, None);
}

#[test]
fn what_does_not_fit_is_said() {
    let args = [vec![0.5; 10].into(), Value::Int(1000)];
    let gradient = function(GROWN).gradient();
    let error =
        gradient.compile_within(10, &args, &CompileOptions::default()).map(|within| within.checkpoints).unwrap_err();
    insta::assert_snapshot!(error, @r"
    states of loops take 176 bytes at least, more than 10
      help: allow more memory for them, or make the arguments smaller
    ");
    let huge = [vec![0.5; 10].into(), Value::Int(1 << 50)];
    // With all states kept, more than any memory.
    assert!(gradient.compile().unwrap().prepare(&huge).is_err());
    let within = gradient.compile_within(1 << 20, &huge, &CompileOptions::default()).unwrap();
    assert!(within.checkpoints.is_some() && within.compiled.prepare(&huge).is_ok());
}
