//! Every request works on every function on the command line, whether its loops are kept or unrolled; emitted models
//! link into one program.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use serde_json::Value;
use std::process::Command;
use support::{Content, Place};

/// A function of each kind: its name, text, sizes by which it can be unrolled, arguments, parts of arguments.
struct Model {
    text: &'static str,
    sizes: &'static [&'static str],
    args: &'static [&'static str],
    by: &'static [&'static str],
    is_scalar: bool,
}

const MODELS: &[Model] = &[
    Model {
        text: "let f = fun (x : Double) (y : Double) -> sin (x * y) * x + y ** 2\n",
        sizes: &[],
        args: &["x=0.5", "y=1.2"],
        by: &["x", "y,x"],
        is_scalar: true,
    },
    Model {
        text: "let f = fun (x : [4]Double) -> sin (x[0] * x[1]) * cos (x[2] * x[3]) + x[0] * x[1] * x[2] * x[3]\n",
        sizes: &[],
        args: &["x=[0.1, 0.2, 0.3, 0.4]"],
        by: &["x", "x[1]", "x[1..3],x[0]"],
        is_scalar: true,
    },
    Model {
        text: "let f = fun (x : [n]Double) -> sum (n - 1) (fun i -> (1 - x[i]) ** 2 + 9 * (x[i + 1] - x[i] ** 2) ** 2)\n",
        sizes: &["n=4"],
        args: &["x=[0.1, 0.2, 0.3, 0.4]"],
        by: &["x", "x[1]", "x[1..3],x[0]"],
        is_scalar: true,
    },
    Model {
        text: "let f = fun (p : { a : Double, b : [3]Double }) -> p.a * sum 3 (fun i -> sin (p.b[i] * p.a))\n",
        sizes: &[],
        args: &["p={\"a\": 0.5, \"b\": [1, 2, 3]}"],
        by: &["p", "p.a", "p.b[1],p.a"],
        is_scalar: true,
    },
    Model {
        text: "let f = fun (ps : [2](Double, { x : Double, y : [2]Double })) ->
  sum 2 (fun i -> ps[i].0 ** 2 * ps[i].1.x * sin ps[i].1.y[1] * ps[i].1.y[0])\n",
        sizes: &[],
        args: &["ps=[[0.5, {\"x\": 1, \"y\": [2, 3]}], [0.6, {\"x\": 1, \"y\": [1, 3]}]]"],
        by: &["ps", "ps[1]", "ps.1.y"],
        is_scalar: true,
    },
    Model {
        text: "let f = fun (m : [3][3]Double) (v : [3]Double) -> build 3 (fun i -> sum 3 (fun j -> sin m[i][j] * v[j]))\n",
        sizes: &[],
        args: &["m=[[1, 2, 3], [4, 5, 6], [7, 8, 9]]", "v=[1, 2, 3]"],
        by: &["m", "m[0][1]", "m[1],v[0..2]"],
        is_scalar: false,
    },
    Model {
        text: "let f = fun (x : [n]Double) (k : Int) (at : [m]Index) -> sum m (fun j -> sin x[at[j]] * real k)\n",
        sizes: &[],
        args: &["x=[0.1, 0.2, 0.3]", "k=2", "at=[0, 2]"],
        by: &["x", "x[0]", "x[0..2]"],
        is_scalar: true,
    },
    Model {
        text: "let f = fun (x : [3]Double) (y : Double) ->
  { s = vectorSum x * y, t = build 3 (fun i -> sin (x[i] * y)), u = { v = x[0] * y } }\n",
        sizes: &[],
        args: &["x=[0.1, 0.2, 0.3]", "y=2"],
        by: &["x", "x[0]", "x[1],y"],
        is_scalar: false,
    },
];

/// Numbers of a result, and the rest of it.
fn taken_apart(value: &Value, numbers: &mut Vec<f64>) -> Value {
    match value {
        Value::Number(x) => {
            numbers.push(x.as_f64().unwrap());
            Value::Null
        }
        Value::Array(items) => items.iter().map(|item| taken_apart(item, numbers)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, field)| (name.clone(), taken_apart(field, numbers))).collect())
        }
        other => other.clone(),
    }
}

/// Runs in all settings in which the function can run; returns the numbers of commands.
fn agree(place: &Place, model: &Model, command: &[String], is_run: bool) -> usize {
    let settings: &[&str] = if model.args.iter().any(|arg| arg.starts_with("at=")) {
        &["never", "auto"]
    } else {
        &["never", "auto", "always"]
    };
    let mut expected: Option<(Value, Vec<f64>)> = None;
    for setting in settings {
        let mut all: Vec<&str> = command.iter().map(String::as_str).collect();
        all.extend(["--unroll", setting]);
        if *setting == "always" {
            model.sizes.iter().for_each(|size| all.extend(["--size", size]));
        }
        let outcome = place.run(&all);
        assert_eq!(outcome.code, Some(0), "{all:?}\n{}", outcome.stderr);
        assert!(!outcome.stdout.is_empty(), "{all:?}");
        if !is_run {
            continue;
        }
        let mut numbers = Vec::new();
        let shape = taken_apart(&serde_json::from_str(&outcome.stdout).unwrap(), &mut numbers);
        let Some((first_shape, first)) = &expected else {
            expected = Some((shape, numbers));
            continue;
        };
        assert_eq!(&shape, first_shape, "{all:?}");
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-11 * (1.0 + b.abs());
        assert!(first.len() == numbers.len() && numbers.iter().zip(first).all(near), "{all:?}: {numbers:?} {first:?}");
    }
    settings.len()
}

#[test]
fn every_request_works_on_every_function() {
    let mut n = 0;
    for model in MODELS {
        let place = Place::with(&[("f.ft", Content::Text(model.text))]);
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let with_args = |text: &str| {
            let mut all = words(text);
            model.args.iter().for_each(|arg| all.extend(["--arg".to_owned(), (*arg).to_owned()]));
            all
        };
        let whats: &[&str] = if model.is_scalar {
            &["gradient", "hessian", "hessian-diagonal", "jacobian", "derivatives --order 3"]
        } else {
            &["value", "jacobian", "derivatives"]
        };
        let first = if model.is_scalar { "gradient" } else { "jacobian" };
        for what in whats {
            n += agree(&place, model, &with_args(&format!("run f.ft --what {what}")), true);
        }
        for by in model.by {
            n += agree(&place, model, &with_args(&format!("run f.ft --what {first} --by {by}")), true);
            n += agree(&place, model, &words(&format!("test f.ft --what {first} --by {by}")), false);
        }
        for by in model.by {
            n += agree(&place, model, &with_args(&format!("run f.ft --what jacobian --sparse --by {by}")), true);
        }
        for strategy in ["forward", "reverse", "markowitz", "dstar"] {
            n += agree(&place, model, &with_args(&format!("run f.ft --what {first} --strategy {strategy}")), true);
        }
        for form in ["coo", "csr", "csc"] {
            let sparse = format!("run f.ft --what value --what jacobian --sparse --form {form}");
            n += agree(&place, model, &with_args(&sparse), true);
        }
        if model.is_scalar {
            n += agree(&place, model, &with_args("run f.ft --what hessian --sparse --triangle lower"), true);
        }
        for show in ["counts", "program", "kernel", "dot"] {
            n += agree(&place, model, &words(&format!("derive f.ft --what {first} --show {show}")), false);
        }
        for language in ["c", "rust"] {
            n += agree(&place, model, &words(&format!("emit {language} f.ft --what {first}")), false);
            n += agree(&place, model, &words(&format!("emit {language} f.ft --what jacobian --sparse")), false);
        }
    }
    assert!(n > 500, "{n}");
}

#[test]
fn parts_of_results_are_requested_by_name() {
    let model = MODELS.last().unwrap();
    let place = Place::with(&[("f.ft", Content::Text(model.text))]);
    for (of, expected) in [
        ("s", "{\"x\":[2.0,2.0,2.0],\"y\":0.6000000000000001}"),
        ("result.u.v", "{\"x\":[2.0,0.0,0.0],\"y\":0.1}"),
        ("u", "{\"x\":{\"v\":[2.0,0.0,0.0]},\"y\":{\"v\":0.1}}"),
    ] {
        for unroll in ["always", "never"] {
            let args = ["--arg", model.args[0], "--arg", model.args[1], "--unroll", unroll];
            let outcome = place.run(&[&["run", "f.ft", "--what", "jacobian", "--of", of][..], &args].concat());
            assert_eq!(outcome.stdout.trim(), expected, "{of} {unroll} {}", outcome.stderr);
        }
    }
}

#[test]
fn two_emitted_models_link_into_one_program() {
    let text = "let f = fun (x : [4]Double) -> build 3 (fun i -> (x[i + 1] - x[i]) ** 2)
let g = fun (x : [n]Double) (at : [m]Index) -> build m (fun i -> exp x[at[i]])
let h = fun (x : [n]Double) -> sum n (fun i -> lgamma x[i] + erf x[i] + sin x[i])
";
    let place = Place::with(&[("f.ft", Content::Text(text))]);
    for name in ["one", "two"] {
        let (f, g, h) = (format!("{name}_f"), format!("{name}_g"), format!("{name}_h"));
        for command in [
            vec!["emit", "c", "f.ft", "--function", "f", "--what", "jacobian", "--sparse", "--name", &f, "--out", &f],
            vec!["emit", "c", "f.ft", "--function", "g", "--what", "jacobian", "--sparse", "--name", &g, "--out", &g],
            vec![
                "emit",
                "c",
                "f.ft",
                "--function",
                "h",
                "--what",
                "value",
                "--what",
                "gradient",
                "--apart",
                "--name",
                &h,
                "--inline-math",
                "--out",
                &h,
            ],
        ] {
            let outcome = place.run(&command);
            assert_eq!(outcome.code, Some(0), "{command:?} {}", outcome.stderr);
        }
    }
    let main = "#include <stdio.h>
#include \"one_f.h\"
#include \"two_f.h\"
#include \"one_g.h\"
#include \"two_g.h\"
#include \"one_h.h\"
#include \"two_h.h\"
int main(void) {
  double x[4] = {1.0, 2.0, 4.0, 7.0}, one[ONE_F_NNZ], two[TWO_F_NNZ];
  if (one_f(x, one) || two_f(x, two)) return 1;
  for (int k = 0; k < ONE_F_NNZ; k++) {
    if (one[k] != two[k] || one_f_rows[k] != two_f_rows[k]) return 2;
    printf(\"%d %d %g\\n\", (int)one_f_rows[k], (int)one_f_columns[k], one[k]);
  }
  return 0;
}
";
    std::fs::write(place.path().join("main.c"), main).unwrap();
    let Some(cc) = ["gcc", "cc"].into_iter().find(|cc| Command::new(cc).arg("--version").output().is_ok()) else {
        return;
    };
    let sources = ["main", "one_f", "two_f", "one_g", "two_g", "one_h", "two_h"].map(|name| format!("{name}.c"));
    let built = Command::new(cc)
        .args(["-std=c99", "-Wall", "-Werror", "-O1", "-o", "main"])
        .args(sources)
        .arg("-lm")
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(place.path().join("main")).output().unwrap();
    assert!(ran.status.success(), "{:?}", ran.status);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "0 0 -2\n0 1 2\n1 1 -4\n1 2 4\n2 2 -6\n2 3 6\n");
}
