//! Every name of F~ can be emitted; changed names are reported.

#![allow(clippy::unwrap_used)]

mod support;

use support::Place;

const NAMES: &[&str] = &[
    "integrate",
    "interpolate",
    "interval",
    "int",
    "uint",
    "uintx",
    "m",
    "M",
    "size",
    "sig",
    "fp",
    "math",
    "cr",
    "CR",
    "_x",
    "__x",
    "_X",
    "λ",
    "Δ",
    "é",
    "变",
    "ﬁ",
    "double",
    "main",
    "sin_",
    "printf",
    "NULL",
    "unix",
    "r_7",
    "fn",
    "self",
    "Self",
    "f'",
    "x''",
    "wait",
    "index",
    "f32",
    "std",
    "Failure",
    "gen",
];

#[test]
fn every_name_is_emitted_and_changed_names_are_reported() {
    for name in NAMES {
        let place = Place::with(&[]);
        let program = format!("let {name} = fun ({name} : [n]Double) -> sum n (fun i -> {name}[i])\n");
        std::fs::write(place.path().join("f.ft"), program).unwrap();
        for (language, start) in [("c", "int "), ("rust", "pub fn ")] {
            let outcome = place.run(&["emit", language, "f.ft"]);
            assert_eq!(outcome.code, Some(0), "{name}: {}", outcome.stderr);
            let declared = outcome.stdout.lines().find_map(|line| line.strip_prefix(start)?.split_once('(')).unwrap().0;
            let told = outcome.stderr.contains(&format!("`{name}` is called `{declared}` in "));
            assert_eq!(told, declared != *name, "{name}: {declared}\n{}", outcome.stderr);
        }
    }
}

#[test]
fn a_name_that_was_requested_is_taken_or_refused() {
    let place = Place::with(&[("f.ft", support::Content::Text("let integrate = fun (x : Double) -> x\n"))]);
    let outcome = place.run(&["emit", "c", "f.ft", "--name", "total"]);
    assert!(outcome.code == Some(0) && outcome.stderr.is_empty(), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("int total(double x, double *result)"), "{}", outcome.stdout);
    let outcome = place.run(&["emit", "c", "f.ft", "--name", "interval"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("error: `interval` cannot be the name of a C function"), "{}", outcome.stderr);
    // Functions that cannot have two names get one each.
    let outcome = place.run(&["emit", "c", "f.ft", "--what", "value", "--what", "gradient", "--apart"]);
    assert_eq!(outcome.stderr.matches("warning: ").count(), 2, "{}", outcome.stderr);
}
