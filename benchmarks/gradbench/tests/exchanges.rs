//! Recorded exchanges: the binary gives the recorded answers, which are compared with a reference.
//!
//! In `exchanges/`, `>` marks a message, `<` its answer, `!` a line of standard error.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

mod reference;

use serde_json::Value as Json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Exchange {
    message: String,
    answer: Option<Json>,
    error: Option<String>,
}

fn exchanges() -> Vec<(PathBuf, Vec<Exchange>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 4, "{paths:?}");
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

fn read(path: &Path) -> Vec<Exchange> {
    let mut all: Vec<Exchange> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let (kind, rest) = line.split_once(' ').unwrap();
        match kind {
            ">" => all.push(Exchange { message: rest.to_owned(), answer: None, error: None }),
            "<" => all.last_mut().unwrap().answer = Some(serde_json::from_str(rest).unwrap()),
            _ => all.last_mut().unwrap().error = Some(rest.to_owned()),
        }
    }
    all
}

/// Runs the binary on `input`; returns standard output, standard error, and whether it succeeded.
fn said(input: &[u8]) -> (String, String, bool) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_chainrule-gradbench"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

/// Returns whether `found` is `expected`: numbers to 1e-10 relative, times of any length.
fn same(found: &Json, expected: &Json) -> bool {
    match (found, expected) {
        (Json::Number(a), Json::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-10 * b.abs().max(1e-3)
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            let field = |(name, b): (&String, &Json)| {
                a.get(name).is_some_and(|a| if name == "nanoseconds" { a.is_u64() } else { same(a, b) })
            };
            a.len() == b.len() && b.iter().all(field)
        }
        _ => found == expected,
    }
}

#[test]
fn recorded_exchanges_are_answered_as_they_were() {
    for (path, exchanges) in exchanges() {
        let path = path.display();
        let messages: Vec<&str> = exchanges.iter().map(|e| e.message.as_str()).collect();
        let (answers, errors, well) = said((messages.join("\n") + "\n").as_bytes());
        let answers: Vec<Json> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expected: Vec<&Json> = exchanges.iter().filter_map(|e| e.answer.as_ref()).collect();
        assert_eq!(answers.len(), expected.len(), "{path}: {errors}");
        for (found, expected) in answers.iter().zip(expected) {
            assert!(same(found, expected), "{path}: {found}\nis not\n{expected}");
        }
        let expected: Vec<&str> = exchanges.iter().filter_map(|e| e.error.as_deref()).collect();
        assert_eq!(errors.lines().collect::<Vec<_>>(), expected, "{path}");
        assert_eq!(well, expected.is_empty(), "{path}");
    }
}

#[test]
fn recorded_outputs_are_right() {
    let mut compared = 0;
    for (path, exchanges) in exchanges() {
        for exchange in exchanges {
            let Some(found) = exchange.answer.as_ref().and_then(|answer| answer.get("output")) else { continue };
            let message: Json = serde_json::from_str(&exchange.message).unwrap();
            let name = |field: &str| message[field].as_str().unwrap();
            let what = format!("{}: {}.{}", path.display(), name("module"), name("function"));
            // In the order of the protocol's table.
            let order = ["alpha", "mu", "q", "l", "reproj_error", "w_err", "elements", "element", "repeated"];
            let found = match found.get("rows") {
                Some(_) => reference::numbers(found, &["rows", "cols", "vals"]),
                None if found.is_object() => {
                    let present: Vec<&str> = order.into_iter().filter(|name| found.get(name).is_some()).collect();
                    let inner = |name: &&str| match &found[*name] {
                        part @ Json::Object(_) if part.get("elements").is_some() => {
                            reference::numbers(part, &["elements", "repeated"])
                        }
                        part @ Json::Object(_) => reference::numbers(part, &["element", "repeated"]),
                        part => reference::numbers(part, &[]),
                    };
                    present.iter().flat_map(inner).collect()
                }
                None => reference::numbers(found, &[]),
            };
            let (expected, tolerance) = reference::output(name("module"), name("function"), &message["input"]);
            assert_eq!(found.len(), expected.len(), "{what}");
            let largest = expected.iter().fold(1e-3, |m: f64, x| m.max(x.abs()));
            for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
                assert!((a - b).abs() <= tolerance * largest, "{what}, {i}: {a} is not {b}");
            }
            compared += 1;
        }
    }
    assert!(compared >= 35, "{compared}");
}

#[test]
fn functions_run_as_long_as_is_asked() {
    let define = r#"{"id": 0, "kind": "define", "module": "hello"}"#;
    let define = define.to_owned() + "\n" + r#"{"id": 1, "kind": "define", "module": "llsq"}"#;
    let evaluate = |runs: &str| {
        let message = format!(
            r#"{{"id": 2, "kind": "evaluate", "module": "llsq", "function": "primal", "input": {{"x": [1], "n": 3{runs}}}}}"#
        );
        let (answers, errors, well) = said(format!("{define}\n{message}").as_bytes());
        assert!(well, "{errors}");
        let answer: Json = serde_json::from_str(answers.lines().last().unwrap()).unwrap();
        let times = answer["timings"].as_array().unwrap();
        assert!(times.iter().all(|time| time["name"] == "evaluate"));
        let nanoseconds: u64 = times.iter().map(|time| time["nanoseconds"].as_u64().unwrap()).sum();
        (times.len(), nanoseconds)
    };
    assert_eq!(evaluate("").0, 1);
    assert_eq!(evaluate(r#", "min_runs": 0, "min_seconds": 0"#).0, 1);
    assert_eq!(evaluate(r#", "min_runs": 7, "min_seconds": 0"#).0, 7);
    let (runs, nanoseconds) = evaluate(r#", "min_runs": 2, "min_seconds": 0.01"#);
    assert!(runs > 2 && nanoseconds >= 10_000_000, "{runs} runs, {nanoseconds} ns");
}

#[test]
fn what_is_no_text_and_what_ends_too_early_is_told() {
    let (answers, errors, well) = said(b"\n  \n{\"id\": 1, \"kind\": \"\xff\"}\n{\"id\": 2, \"kind\": \"star");
    assert_eq!(answers, "");
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(lines[0].starts_with("error: line 3: this is not JSON: ") && lines[1].starts_with("error: line 4: "));
    assert!(!well);
    assert_eq!(said(b""), (String::new(), String::new(), true));
}

#[test]
fn help_has_an_example() {
    let output = Command::new(env!("CARGO_BIN_EXE_chainrule-gradbench")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(help.contains("\"kind\": \"evaluate\"") && help.contains("kmeans"), "{help}");
}
