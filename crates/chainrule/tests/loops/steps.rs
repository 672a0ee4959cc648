//! Loops whose number of steps is not a literal, compiled in reverse mode: planned memory, and messages.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{CompileOptions, Derivation, Module, Value};

const STEP: &str = "let step = fun (s : [n]Double) -> build n (fun i -> sqrt (s[i] * s[mod (i + 1) n]) * 0.97)\n";

fn gradient(text: &str) -> Derivation {
    let module = Module::from_text("f.ft", &format!("{STEP}let f = fun (x : [n]Double) {text}")).unwrap();
    module.function("f").unwrap().gradient().by(&["x"])
}

fn integers(numbers: &[i64]) -> Value<f64> {
    Value::Array(numbers.iter().map(|number| Value::Int(*number)).collect())
}

/// Checks that the gradient by reverse mode agrees with that by forward mode; returns the number of numbers in the
/// workspace.
fn compared(text: &str, more: &[Value<f64>]) -> usize {
    let mut args = vec![Value::from(vec![2.0, 3.0, 4.5])];
    args.extend_from_slice(more);
    let (derivation, expected) = (gradient(text), gradient(text).strategy("forward").compile().unwrap());
    let compiled = derivation.compile().unwrap();
    let [found, expected] = [&compiled, &expected].map(|code| {
        let results = code.call(&args).unwrap();
        results
            .iter()
            .flat_map(|result| result.reals().into_iter().copied().collect::<Vec<f64>>())
            .collect::<Vec<f64>>()
    });
    assert_eq!((found.len(), expected.len()), (3, 3));
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{text}: {found} and {expected}");
    }
    compiled.prepare(&args).unwrap().workspace_len()
}

#[test]
fn as_many_states_are_planned_for_as_a_limit_that_is_an_argument_says() {
    for (text, more) in [
        ("(m : Int) -> vectorSum (while (fun s -> s[0] > 1.1) step x m)", 0),
        ("(m : Card) -> vectorSum (while (fun s -> s[0] > 1.1) step x (m + 1000))", 1000),
        ("(m : Int) -> vectorSum (ifold (fun s j -> while (fun s -> s[0] > 1.1) step s (m + j)) x 3)", 2),
        ("(m : Int) -> sum 2 (fun k -> vectorSum (while (fun s -> s[0] > 1.1 + real k) step x m))", 0),
    ] {
        let [few, many] = [100, 200].map(|m| compared(text, &[Value::Int(m)]));
        let arrays = (many - few) / 300;
        assert!((1..=4).contains(&arrays) && (many - few) % 300 == 0, "{text}: {few} and {many} numbers");
        assert!(few >= 3 * (100 + more) * arrays, "{text}: {few} numbers");
    }
}

#[test]
fn where_the_number_of_steps_is_computed_memory_does_not_grow() {
    for text in [
        "(a : [k]Int) -> vectorSum (ifold (fun s _ -> step s) x a[0])",
        "(a : [k]Int) -> vectorSum (while (fun s -> s[0] > 1.1) step x (a[0] + 100))",
        "(a : [k]Int) -> sum k (fun j -> vectorSum (ifold (fun s _ -> step s) x a[j]))",
        "(a : [k]Int) -> vectorSum (ifold (fun s j -> ifold (fun s _ -> step s) s a[j]) x k)",
        "(a : [k]Int) -> vectorSum (ifold (fun s _ -> step s) x (max a[0] 1))",
    ] {
        let numbers = [[0, 1], [1, 0], [30, 5], [1000, 700]].map(|a| compared(text, &[integers(&a)]));
        assert!(numbers.iter().all(|n| *n == numbers[0] && *n < 600), "{text}: {numbers:?}");
    }
    // A disproportionate limit.
    let numbers = compared("-> vectorSum (while (fun s -> s[0] > 1.1) step x 10000000000)", &[]);
    // 32 states of 3 numbers, and blocks of lanes.
    assert!(numbers < 600, "{numbers} numbers");
}

#[test]
fn a_bound_of_memory_holds_there_too() {
    let args = [vec![2.0, 3.0, 4.5].into(), Value::Int(300), integers(&[40])];
    let text =
        "(m : Int) (a : [k]Int) -> vectorSum (ifold (fun s _ -> step s) (while (fun s -> s[0] > 1.1) step x m) a[0])";
    let expected = gradient(text).compile().unwrap().call(&args).unwrap();
    for (bytes, checkpoints) in [(200, true), (1 << 20, false)] {
        let within = gradient(text).compile_within(bytes, &args, &CompileOptions::default()).unwrap();
        assert_eq!(within.checkpoints.is_some(), checkpoints, "{bytes}");
        assert_eq!(within.compiled.call(&args).unwrap(), expected);
    }
}

#[test]
fn the_account_names_loops_that_have_checkpoints() {
    let account = |text: &str| {
        let account = gradient(text).function().unwrap().optimisation().unwrap().unwrap();
        let text = account.to_string();
        let begin = text.find("loops that").unwrap_or(text.len());
        (account.checkpointed.len(), text[begin..].split("rules that").next().unwrap_or_default().to_owned())
    };
    let (n, text) = account(
        "(a : [k]Int) ->\n  let y = ifold (fun s _ -> step s) x a[0]\n  vectorSum (while (fun s -> s[0] > 1.1) step y 10000000000)",
    );
    assert_eq!(n, 2);
    insta::assert_snapshot!(text, @r"
    loops that reverse mode gave 32 checkpoints, for not all their states can be kept:
      how many steps it takes is computed while the function runs
      | f.ft:3 let y = ifold (fun s _ -> step s) x a[0]
      it may take 10000000000 steps, and mostly takes fewer
      | f.ft:4 vectorSum (while (fun s -> s[0] > 1.1) step y 10000000000)
    ");
    assert_eq!(account("(m : Int) -> vectorSum (while (fun s -> s[0] > 1.1) step x m)"), (0, String::new()));
    // A derivative in the text, too.
    let text = format!(
        "{STEP}let f = fun (x : [n]Double) (a : [k]Int) ->
          gradient (fun (y : [n]Double) -> vectorSum (ifold (fun s _ -> step s) y a[0])) x"
    );
    let f = Module::from_text("f.ft", &text).unwrap().function("f").unwrap();
    assert_eq!(f.optimisation().unwrap().unwrap().checkpointed.len(), 1);
}

#[test]
fn memory_that_is_not_there_speaks_of_checkpoints() {
    let compiled = gradient("(m : Int) -> vectorSum (while (fun s -> s[0] > 1.1) step x m)").compile().unwrap();
    let error = compiled.prepare(&[vec![2.0, 3.0, 4.5].into(), Value::Int(1 << 50)]).map(|_| ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("memory") && text.contains("--checkpoints 32"), "{text}");
    // A number of steps that may be negative in a value fails in a gradient, which keeps the states.
    let error = compiled.call(&[vec![0.5, 0.5, 0.5].into(), Value::Int(-1)]).unwrap_err();
    assert!(error.to_string().contains("negative size"), "{error}");
}
