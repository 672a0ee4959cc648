//! `chainrule passes`: the effect of each pass, and the pass that breaks a program.

#[path = "support/mod.rs"]
mod support;

use support::{Content, Place};

const MODEL: &str = "let f = fun (x : [n]Double) -> sum (n - 1) (fun i -> (x[i + 1] - x[i]) ** 2)\n";

fn place() -> Place {
    Place::with(&[("model.ft", Content::Text(MODEL))])
}

#[track_caller]
fn prints(place: &Place, args: &[&str]) -> String {
    let outcome = place.run(args);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
    outcome.stdout
}

/// First word of each line.
fn names(table: &str) -> Vec<&str> {
    table.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

const GRADIENT: &[&str] = &["passes", "model.ft", "--what", "gradient", "--arg", "x=[1, 3, 2, 7]"];

#[test]
fn every_pass_that_runs_is_in_the_list_and_keeps_the_results() {
    let place = place();
    let list = prints(&place, &["passes", "--list"]);
    let table = prints(&place, GRADIENT);
    let known = names(&list);
    assert_eq!(names(&table).first(), Some(&"written"));
    for name in &names(&table)[1..] {
        assert!(known.contains(name), "{name}\n{list}");
    }
    for name in ["differentiate", "simplify", "lower", "split", "vectorise", "hoist-integers", "contract"] {
        assert!(names(&table).contains(&name), "{name}\n{table}");
    }
    assert!(table.lines().all(|line| line.contains("same results") || line.contains("results differ by")), "{table}");
    assert!(table.lines().any(|line| line.contains("changed")), "{table}");
}

#[test]
fn a_pass_that_is_left_out_does_not_run() {
    let place = place();
    for name in ["regions", "merge", "vectorise", "contract"] {
        let table = prints(&place, &[GRADIENT, &["--without", name]].concat());
        assert!(!names(&table).contains(&name), "{name}\n{table}");
    }
    let outcome = place.run(&[GRADIENT, &["--without", "vectorize"]].concat());
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("did you mean `vectorise`?"), "{}", outcome.stderr);
}

#[test]
fn the_program_after_a_pass_is_printed_or_written() {
    let place = place();
    let after = |pass: &str| prints(&place, &["passes", "model.ft", "--what", "gradient", "--after", pass]);
    assert!(after("written").contains("let f_gradient = fun (x : [n]Double) ->"), "{}", after("written"));
    assert!(!after("lower").contains("at once") && after("vectorise").contains("at once"), "{}", after("vectorise"));
    let all = prints(&place, &["passes", "model.ft", "--after", "all", "--out", "listings"]);
    assert_eq!(all, "");
    let first = std::fs::read_to_string(place.path().join("listings/00-written.txt")).unwrap_or_default();
    assert!(first.starts_with("let f = "), "{first}");
    for (wrong, help) in
        [("lanes", "the passes are unroll, linearise, accumulate"), ("parallelise", "see which do without --after")]
    {
        let outcome = place.run(&["passes", "model.ft", "--after", wrong]);
        assert_eq!(outcome.code, Some(1), "{wrong}");
        assert!(outcome.stderr.contains(help), "{}", outcome.stderr);
    }
}

#[test]
fn arguments_without_a_value_are_refused() {
    let place = Place::with(&[("model.ft", Content::Text("let f = fun (x : [n]Double) (i : Int) -> x[i]\n"))]);
    let outcome = place.run(&["passes", "model.ft", "--arg", "x=[1, 2]", "--arg", "i=5"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("the function has no value there"), "{}", outcome.stderr);
}

/// Fused products differ in the last digit, which no tolerance makes a fault.
#[test]
fn a_program_on_which_a_pass_is_wrong_is_shrunk() {
    let text = "let g = fun (x : Double) -> exp x\nlet f = fun (x : [n]Double) ->\n  \
                let a = sum n (fun i -> g x[i] + 1.0)\n  \
                let b = sum (n - 1) (fun i -> (1 - x[i]) ** 2 + 100 * (x[i + 1] - x[i] ** 2) ** 2)\n  a + b\n";
    let place = Place::with(&[("model.ft", Content::Text(text))]);
    let args = ["passes", "model.ft", "--what", "gradient", "--arg", "x=[1.2, 1.0, 0.9]", "--shrink", "found"];
    assert_eq!(prints(&place, &args), "no pass changes the results\n");
    let outcome = place.run(&[&args[..], &["--tolerance", "0"]].concat());
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stdout.starts_with("first wrong pass: contract (kernel)\n"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("the pass `contract` changes the results"), "{}", outcome.stderr);
    let read = |name: &str| std::fs::read_to_string(place.path().join("found").join(name)).unwrap();
    let program = read("program.ft");
    assert!(program.lines().count() == 1 && !program.contains("exp"), "{program}");
    let case = read("case.kernel");
    assert!(case.starts_with("; pass: contract\n") && case.ends_with("; expected\n"), "{case}");
    assert!(case.contains(read("before.txt").trim_end()) && read("after.txt").contains("mul_add"), "{case}");
    let without = place.run(&["passes", "model.ft", "--shrink", "found"]);
    assert!(without.stderr.contains("needs arguments"), "{}", without.stderr);
}
