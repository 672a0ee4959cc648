//! Correct use of each command, with the real binary: inputs, outputs, and exit codes.

#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::process::Stdio;
use support::{Content, Place};

const MODEL: &str = "// The squared length.\nlet norm2 = fun (x : [n]Double) -> sum n (fun i -> x[i] ** 2)\n";
const SCALED: &str = "let scaled = fun (x : [n]Double) (k : Int) -> build n (fun i -> x[i] * real k)\n";
const TRACE: &str = "let twice = fun (A : [m][n]Double) -> build m (fun i -> build n (fun j -> 2 * A[i][j]))\n";

fn place() -> Place {
    Place::with(&[
        ("model.ft", Content::Text(MODEL)),
        ("scaled.ft", Content::Text(SCALED)),
        ("twice.ft", Content::Text(TRACE)),
        ("messy.ft", Content::Text("let f=fun x->x*x // squared\n")),
        ("x.json", Content::Text("[1, 2, 3]\n")),
        ("x.txt", Content::Text("# three numbers\n1 2\n3\n")),
        ("x.csv", Content::Text("x\n1\n2\n3\n")),
        ("A.csv", Content::Text("a,b\n1, 2\n3, 4\n")),
        ("A.txt", Content::Text("1 2\n3 4\n")),
        ("all.json", Content::Text("{\"k\": 10, \"x\": [1, 2]}\n")),
        (
            "x.npy",
            Content::Npy(
                "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
                b"\0\0\0\0\0\0\xf0?\0\0\0\0\0\0\0@\0\0\0\0\0\0\x08@",
            ),
        ),
        (
            "x_i4_big.npy",
            Content::Npy(
                "{'descr': '>i4', 'fortran_order': False, 'shape': (3,), }",
                b"\0\0\0\x01\0\0\0\x02\0\0\0\x03",
            ),
        ),
    ])
}

/// Returns the output of a command that succeeds and prints nothing to standard error.
#[track_caller]
fn prints(place: &Place, args: &[&str]) -> String {
    let outcome = place.run(args);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
    outcome.stdout
}

#[test]
fn check_prints_the_types() {
    let place = place();
    assert_eq!(prints(&place, &["check", "model.ft"]), "norm2 : []Double => Double\n");
    assert_eq!(prints(&place, &["check", "--quiet", "model.ft", "scaled.ft"]), "");
}

#[test]
fn check_stops_after_many_errors() {
    // Calls nest too deep from some definition on, and each takes time to find out.
    let chain = |n: usize| {
        let step = |k: usize| format!("let f{k} = fun (x : Double) -> f{} x * 2\n", k - 1);
        "let f0 = fun (x : Double) -> x\n".to_owned() + &(1..n).map(step).collect::<String>()
    };
    let place = place();
    for (name, n) in [("few.ft", 20), ("many.ft", 600)] {
        std::fs::write(place.path().join(name), chain(n)).unwrap();
    }
    assert_eq!(prints(&place, &["check", "few.ft"]).lines().count(), 20);
    let outcome = place.run(&["check", "many.ft"]);
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(1), 600));
    assert_eq!(outcome.stderr.matches("nest too deep").count(), 10, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("definitions of many.ft were not checked after 10 errors"), "{}", outcome.stderr);
}

#[test]
fn fmt_checks_prints_and_writes() {
    let place = place();
    let formatted = "let f = fun x -> x * x // squared\n";
    assert_eq!(place.run(&["fmt", "--check", "messy.ft"]).code, Some(1));
    assert_eq!(prints(&place, &["fmt", "--stdout", "messy.ft"]), formatted);
    assert_ne!(place.read("messy.ft"), formatted.as_bytes(), "only fmt without options writes");
    assert_eq!(prints(&place, &["fmt", "messy.ft", "model.ft"]), "");
    assert_eq!(place.read("messy.ft"), formatted.as_bytes());
    assert_eq!(place.read("model.ft"), MODEL.as_bytes(), "what is formatted stays as it is");
    assert_eq!(prints(&place, &["fmt", "--check", "messy.ft"]), "");
}

#[test]
fn fmt_takes_standard_input() {
    let place = place();
    for args in [&["fmt"][..], &["fmt", "-"], &["fmt", "--check", "-"]] {
        let mut child = place.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"let f=fun x->x*x // squared\n").unwrap();
        let outcome = child.wait_with_output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
        if args.contains(&"--check") {
            assert_eq!((outcome.status.code(), &*out), (Some(1), ""));
            assert_eq!(err, "error: <stdin> is not formatted\n  help: run chainrule fmt -\n");
        } else {
            assert_eq!((outcome.status.code(), &*out, &*err), (Some(0), "let f = fun x -> x * x // squared\n", ""));
        }
    }
}

#[test]
fn run_takes_the_same_numbers_in_every_form() {
    let place = place();
    for x in ["[1, 2, 3]", "@x.json", "@x.npy", "@x_i4_big.npy", "@x.txt", "@x.csv"] {
        assert_eq!(prints(&place, &["run", "model.ft", "--arg", &format!("x={x}")]), "14.0\n", "{x}");
    }
    for a in ["[[1, 2], [3, 4]]", "@A.csv", "@A.txt"] {
        let out = prints(&place, &["run", "twice.ft", "--arg", &format!("A={a}")]);
        assert_eq!(out, "[[2.0,4.0],[6.0,8.0]]\n", "{a}");
    }
    assert_eq!(prints(&place, &["run", "scaled.ft", "--args", "all.json"]), "[10.0,20.0]\n");
    let both = ["run", "scaled.ft", "--args", "all.json", "--arg", "k=2"];
    assert_eq!(prints(&place, &both), "[2.0,4.0]\n", "the command line goes before the file");
}

#[test]
fn run_gives_results_in_every_form() {
    let place = place();
    let derivatives = ["run", "model.ft", "--arg", "x=[1, 2, 3]", "--what", "value", "--what", "gradient"];
    let json = "{\"value\":14.0,\"gradient\":[2.0,4.0,6.0]}\n";
    assert_eq!(prints(&place, &derivatives), json);
    let straight = prints(&place, &[&derivatives[..], &["--size", "n=3"]].concat());
    assert_eq!(straight, json);
    let table = prints(&place, &[&derivatives[..], &["--format", "table"]].concat());
    for cell in ["14.000000000", "2.000000000", "4.000000000", "6.000000000"] {
        assert!(table.contains(cell), "{table}");
    }
    let gradient = ["run", "model.ft", "--arg", "x=@x.npy", "--what", "gradient", "--format", "npy", "--out", "g.npy"];
    assert_eq!(prints(&place, &gradient), "");
    let bytes = place.read("g.npy");
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    let numbers: Vec<f64> =
        bytes[bytes.len() - 24..].chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(numbers, [2.0, 4.0, 6.0]);
    // Written files can be read.
    assert_eq!(prints(&place, &["run", "model.ft", "--arg", "x=@g.npy"]), "56.0\n");
}

#[test]
fn an_account_tells_of_both_ways_of_a_jacobian() {
    let text = "let f = fun (x : [n]Double) (s : [m]Int) ->\n  \
                ifold (fun (y : [m]Double) k -> build m (fun o -> y[o] * vectorSum x * real s[o])) (vectorFill m 1.0) 3\n\
                let g = fun (x : [n]Double) -> vectorMap x sin\n";
    let place = Place::with(&[("w.ft", Content::Text(text))]);
    let told =
        |function: &str| prints(&place, &["derive", "w.ft", "--function", function, "--what", "jacobian", "--explain"]);
    let both = told("f");
    let first = "// loops are kept: `n` is not known\n// the Jacobian: by rows, in reverse mode, where 2*m < n; by columns, in forward mode, otherwise\n";
    assert!(both.starts_with(first), "{both}");
    for branch in ["holds", "does not hold"] {
        assert!(both.contains(&format!("// the optimiser on `f_jacobian` where its `if` {branch}: ")), "{both}");
    }
    let one = told("g");
    assert!(!one.contains("the Jacobian: by") && one.contains("\n// the optimiser on `g_jacobian`: "), "{one}");
}

#[test]
fn results_have_one_form_with_loops_and_without() {
    let place = Place::with(&[
        ("two.ft", Content::Text("let f = fun (x : [n]Double) (y : Double) -> y * vectorDot x x\n")),
        ("pair.ft", Content::Text("let p = fun (x : [n]Double) -> { sum = vectorSum x, all = (x, x[0]) }\n")),
    ]);
    let two = ["run", "two.ft", "--arg", "x=[1, 2]", "--arg", "y=3"];
    let directions = ["--arg", "x_tan=[1, 0]", "--arg", "y_tan=1"];
    let pair = ["run", "pair.ft", "--arg", "x=[1, 2]"];
    let cases: &[(&[&str], &[&str])] = &[
        (&two, &[]),
        (&two, &["--what", "value"]),
        (&two, &["--what", "gradient"]),
        (&two, &["--what", "gradient", "--by", "x"]),
        (&two, &["--what", "value", "--what", "jacobian", "--by", "y"]),
        (&two, &["--what", "value", "--what", "gradient", "--what", "hessian"]),
        (&two, &["--what", "hessian", "--by", "x", "--format", "table"]),
        (&two, &["--what", "value", "--what", "hessian-diagonal"]),
        (&two, &[&["--what", "value", "--what", "jvp"][..], &directions].concat()),
        (&two, &[&["--what", "hvp"][..], &directions].concat()),
        (&pair, &[]),
        (&pair, &["--what", "value", "--what", "jacobian"]),
    ];
    for (call, more) in cases {
        let looped = [*call, *more].concat();
        let straight = [&looped[..], &["--size", "n=2"]].concat();
        assert_eq!(prints(&place, &looped), prints(&place, &straight), "{more:?}");
    }
    let gradient = prints(&place, &[&two[..], &["--what", "gradient", "--size", "n=2"]].concat());
    assert_eq!(gradient, "{\"x\":[6.0,12.0],\"y\":5.0}\n");
}

#[test]
fn numbers_that_json_does_not_have_go_in_and_out_as_text() {
    let place = place();
    assert_eq!(prints(&place, &["run", "model.ft", "--arg", "x=[\"NaN\", 1]"]), "\"NaN\"\n");
    assert_eq!(prints(&place, &["run", "model.ft", "--arg", "x=[\"-Infinity\"]"]), "\"inf\"\n");
}

#[test]
fn derive_counts_and_shows() {
    let place = place();
    let args = ["derive", "model.ft", "--what", "gradient", "--size", "n=3"];
    let program = prints(&place, &args);
    assert!(program.starts_with("// norm2: 2 add, 3 mul\n"), "{program}");
    assert!(program.contains("input x[0]") && program.contains("roots"), "{program}");
    let counts = prints(&place, &[&args[..], &["--show", "counts"]].concat());
    assert_eq!(counts.lines().count(), 2, "{counts}");
    assert!(program.starts_with(&counts));
    assert!(prints(&place, &[&args[..], &["--show", "dot"]].concat()).starts_with("digraph"));
    assert!(!prints(&place, &[&args[..], &["--show", "kernel"]].concat()).is_empty());
    for strategy in ["auto", "forward", "reverse", "markowitz"] {
        prints(&place, &[&args[..], &["--strategy", strategy, "--explain"]].concat());
    }
    let at = ["--arg", "x=[1, 2, 3]"];
    let first = prints(&place, &[&args[..], &["--show", "counts"], &at].concat());
    assert_eq!(first, counts + "[2.0,4.0,6.0]\n");
    let refused = place.run(&[&args[..], &["--show", "dot"], &at].concat());
    assert_eq!(refused.code, Some(1), "a graph ends with it");
    let wrong = place.run(&[&args[..], &["--arg", "x=[1, 2]"]].concat());
    assert!(wrong.stdout.is_empty() && wrong.stderr.contains("`x`"), "{}", wrong.stderr);
    // Without sizes, loops stay: the result is valid F~.
    let loops = prints(&place, &["derive", "model.ft", "--what", "gradient"]);
    assert!(loops.starts_with("let "), "{loops}");
    let place = Place::with(&[("model.ft", Content::Text(MODEL)), ("again.ft", Content::Text(""))]);
    std::fs::write(place.path().join("again.ft"), &loops).unwrap();
    assert_eq!(prints(&place, &["run", "again.ft", "--arg", "x=[1, 2, 3]"]), "[2.0,4.0,6.0]\n");
}

#[test]
fn explanations_end_with_predicted_and_measured_times() {
    let place = place();
    let args = ["derive", "model.ft", "--what", "gradient", "--show", "counts", "--explain"];
    // Loops of known size have the times of both forms; numbers for a measurement are made up.
    let sizes = ["--unroll", "never", "--size", "n=1000", "--measure"];
    let text = prints(&place, &[&args[..], &sizes].concat());
    assert!(text.contains("// predicted time of `norm2_gradient`: ") && text.contains("// measured: "), "{text}");
    let row = text.lines().find(|line| line.starts_with("//   1000 ")).unwrap();
    assert!(row.ends_with("in lanes") && row.matches(" ns").count() == 2, "{row}");
    let text = prints(&place, &[&args[..], &["--arg", "x=@x.json", "--measure"]].concat());
    assert!(text.contains("// measured: ") && !text.contains("unknown sizes"), "{text}");
    let outcome = place.run(&[&args[..], &["--measure"]].concat());
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("--measure needs arguments") && outcome.stdout.is_empty(), "{}", outcome.stderr);
}

#[test]
fn emit_c_prints_or_writes_a_header_and_a_source() {
    let place = place();
    let text = prints(&place, &["emit", "c", "model.ft", "--what", "gradient", "--name", "slope"]);
    assert!(text.contains("int slope(") && text.contains("#include \"slope.h\""), "{text}");
    let outcome = place.run(&["emit", "c", "model.ft", "--what", "value", "--what", "gradient", "--out", "out"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
    assert_eq!(outcome.stderr, "wrote out.h\nwrote out.c\n");
    let (header, source) = (place.read("out.h"), place.read("out.c"));
    assert!(header.starts_with(b"/*") && source.starts_with(b"/*"));
    place.run(&["emit", "c", "model.ft", "--what", "value", "--what", "gradient", "--out", "out"]);
    assert_eq!((header, source), (place.read("out.h"), place.read("out.c")), "the same bytes again");
}

#[test]
fn emit_rust_prints_or_writes_a_module() {
    let place = place();
    let text = prints(&place, &["emit", "rust", "model.ft", "--what", "gradient", "--name", "slope", "--f32"]);
    assert!(text.contains("pub fn slope(") && text.contains("&[f32]") && !text.contains("f64"), "{text}");
    let outcome = place.run(&["emit", "rust", "model.ft", "--what", "value", "--what", "gradient", "--out", "out"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
    assert_eq!(outcome.stderr, "wrote out.rs\n");
    assert!(place.read("out.rs").starts_with(b"//!"));
}

#[test]
fn emit_c_writes_functions_over_many_points() {
    let place = place();
    let text = prints(&place, &["emit", "c", "model.ft", "--name", "f", "--batch", "--threads", "--size", "n=3"]);
    assert!(text.contains("#define CR_LANES 4") && text.contains("#pragma omp parallel for"), "{text}");
    let wrong = place.run(&["emit", "c", "model.ft", "--batch", "5"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("5 points cannot run together"), "{}", wrong.stderr);
}

#[test]
fn emit_c_brings_functions_along_where_asked() {
    let place = place();
    std::fs::write(place.path().join("wave.ft"), "let wave = fun (x : Double) -> sin x * exp x\n").unwrap();
    let theirs = prints(&place, &["emit", "c", "wave.ft"]);
    assert!(theirs.contains("sin(") && !theirs.contains("cr_sin"), "{theirs}");
    let ours = prints(&place, &["emit", "c", "wave.ft", "--inline-math"]);
    assert!(ours.contains("static inline double cr_sin(double x)") && ours.contains("bit for bit"), "{ours}");
    assert_eq!(place.run(&["emit", "c", "wave.ft", "--inline-math", "--f32"]).code, Some(2));
}

#[test]
fn arithmetic_is_what_is_asked_for() {
    let sum = "let rest = fun (x : [n]Double) -> sum n (fun i -> x[i] * x[i] - 1.1)\n";
    let place = Place::with(&[("rest.ft", Content::Text(sum))]);
    let x = "x=[0.0, -0.318, 0.626, -0.911, 1.163, -1.375, 1.538, -1.646, 1.697, -1.687, 1.617, -1.491, 1.311, -1.085, \
             0.821, -0.527, 0.215, 0.104, -0.42]";
    let run = |file: &str, options: &[&str]| prints(&place, &[&["run", file, "--arg", x], options].concat());
    let strict = run("rest.ft", &["--strict"]);
    let plain = run("rest.ft", &["--no-fuse", "--sequential"]);
    assert_eq!(plain, strict, "there is nothing to rewrite");
    let all = [run("rest.ft", &[]), run("rest.ft", &["--no-fuse"]), run("rest.ft", &["--sequential"]), strict];
    for (i, one) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|other| other != one), "{all:?}");
    }
    for (options, expected) in [(&["--no-fuse"][..], &all[1]), (&["--strict"], &all[3])] {
        place.run(&[&["compile", "rest.ft", "--out", "r.chainrule"], options].concat());
        assert_eq!(run("r.chainrule", &[]), *expected, "{options:?}");
        let late = place.run(&[&["run", "r.chainrule", "--arg", x], options].concat());
        assert!(late.stderr.contains(&format!("{} comes too late", options[0])), "{}", late.stderr);
    }
    let kernel = |options: &[&str]| prints(&place, &[&["derive", "rest.ft", "--show", "kernel"], options].concat());
    assert!(kernel(&[]).contains("mul_sub") && kernel(&[]).contains("at once"), "{}", kernel(&[]));
    let strict = kernel(&["--strict"]);
    assert!(!strict.contains("mul_sub") && !strict.contains("at once"), "{strict}");
    for (options, command) in [
        (&[][..], "`chainrule run --no-fuse --sequential`"),
        (&["--fuse"], "`chainrule run --sequential`"),
        (&["--lanes"], "`chainrule run --no-fuse`"),
        (&["--fuse", "--lanes"], "`chainrule run`"),
    ] {
        let c = prints(&place, &[&["emit", "c", "rest.ft", "--inline-math"], options].concat());
        let rust = prints(&place, &[&["emit", "rust", "rest.ft", "--library", "own"], options].concat());
        assert!(c.contains(command) && rust.contains(command), "{c}\n{rust}");
        assert_eq!(
            (c.contains("fma("), rust.contains(".mul_add(")),
            (options.contains(&"--fuse"), options.contains(&"--fuse"))
        );
    }
    let threads = prints(&place, &["emit", "c", "rest.ft", "--threads"]);
    assert!(threads.contains("`chainrule run --no-fuse --sequential --threads 1`"), "{threads}");
    assert_eq!(place.run(&["emit", "c", "rest.ft", "--strict", "--fuse"]).code, Some(2));
}

#[test]
fn what_compile_saves_runs_as_it_did() {
    let place = place();
    for (derivative, args) in [
        (&[][..], &["--arg", "x=[1, 2, 3]"][..]),
        (&["--what", "value", "--what", "gradient"], &["--arg", "x=@x.npy", "--format", "table"]),
        (&["--what", "gradient", "--size", "n=3"], &["--arg", "x=@x.csv"]),
    ] {
        let saved = place.run(&[&["compile", "model.ft", "--out", "m.chainrule"], derivative].concat());
        assert_eq!((saved.code, saved.stderr.as_str()), (Some(0), "wrote m.chainrule\n"));
        let expected = prints(&place, &[&["run", "model.ft"], derivative, args].concat());
        assert_eq!(prints(&place, &[&["run", "m.chainrule"], args].concat()), expected, "{derivative:?}");
        let before = place.read("m.chainrule");
        place.run(&[&["compile", "model.ft", "--out", "m.chainrule"], derivative].concat());
        assert_eq!(place.read("m.chainrule"), before, "the same bytes again");
    }
}

#[test]
fn index_checks_are_omitted_on_request() {
    let gather = "let gather = fun (x : [n]Double) (at : [m]Index) -> build m (fun k -> x[at[k]])\n";
    let place = Place::with(&[("gather.ft", Content::Text(gather))]);
    let inside = ["--arg", "x=[1, 2]", "--arg", "at=[1, 0]"];
    let checked = prints(&place, &[&["run", "gather.ft"][..], &inside].concat());
    assert_eq!(prints(&place, &[&["run", "gather.ft", "--no-checks"][..], &inside].concat()), checked);
    // A loaded function accesses no other memory, unless that is promised.
    assert_eq!(place.run(&["compile", "gather.ft", "--no-checks", "--out", "g.chainrule"]).code, Some(0));
    assert_eq!(prints(&place, &[&["run", "g.chainrule"][..], &inside].concat()), checked);
    for promise in ["--no-checks", "--promise-in-range"] {
        assert_eq!(prints(&place, &[&["run", "gather.ft", promise][..], &inside].concat()), checked);
        assert_eq!(prints(&place, &[&["run", "g.chainrule", promise][..], &inside].concat()), checked);
    }
    for args in
        [&["run", "g.chainrule"][..], &["run", "gather.ft", "--no-checks"], &["run", "g.chainrule", "--no-checks"]]
    {
        let outside = place.run(&[args, &["--arg", "x=[1, 2]", "--arg", "at=[1, 7]"]].concat());
        let says = "an index lies outside of its array";
        assert!(outside.code == Some(1) && outside.stderr.contains(says), "{args:?}: {}", outside.stderr);
    }
    for language in ["c", "rust"] {
        let text = |options: &[&str]| prints(&place, &[&["emit", language, "gather.ft"][..], options].concat());
        assert!(
            text(&[]).contains("lies outside") && !text(&["--promise-in-range"]).contains("lies outside"),
            "{language}"
        );
    }
}

#[test]
fn test_tells_how_far_derivatives_agree() {
    let place = place();
    let report = prints(&place, &["test", "model.ft", "--size", "n=3", "--points", "3"]);
    assert!(report.starts_with("3 elements at 3 points\n"), "{report}");
    let strict = place.run(&["test", "scaled.ft", "--size", "n=2", "--size", "k=3", "--range", "0.1..0.9"]);
    assert_eq!(strict.code, Some(0), "{}", strict.stderr);
}

#[test]
fn exit_codes_are_as_documented() {
    let place = place();
    assert_eq!(place.run(&["check", "model.ft"]).code, Some(0));
    assert_eq!(place.run(&["run", "model.ft"]).code, Some(1), "an argument is missing");
    assert_eq!(place.run(&["check", "--frobnicate"]).code, Some(2));
    assert_eq!(place.run(&["--help"]).code, Some(0));
    assert_eq!(place.run(&["--version"]).code, Some(0));
}

#[test]
fn every_help_has_an_example() {
    let place = place();
    for command in [
        &[][..],
        &["check"],
        &["fmt"],
        &["run"],
        &["derive"],
        &["emit"],
        &["emit", "c"],
        &["emit", "rust"],
        &["compile"],
        &["test"],
    ] {
        let help = prints(&place, &[command, &["--help"]].concat());
        let example = format!("\n  chainrule {}", command.join(" "));
        let (_, examples) = help.split_once("Examples:").unwrap_or_else(|| panic!("{command:?} has no examples"));
        assert!(examples.contains(example.trim_end()), "{examples}");
        assert!(help.contains("Usage: chainrule"), "{help}");
    }
}

#[test]
fn readers_may_go_away() {
    let place = place();
    // More than a pipe holds, so that writing fails.
    let long = ["derive", "model.ft", "--what", "gradient", "--size", "n=20000", "--unroll", "always"];
    let mut child = place.command(&long).spawn().unwrap();
    let mut first = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"// norm2");
    let outcome = child.wait_with_output().unwrap();
    assert_eq!((outcome.status.code(), String::from_utf8_lossy(&outcome.stderr).as_ref()), (Some(0), ""));
    // The same for messages: with standard error closed, nothing panics.
    let mut child = place.command(&["check", "gone.ft"]).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let mut child = place.command(&["run", "--help"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_ne!(child.wait().unwrap().code(), Some(101));
}

#[test]
fn nothing_but_results_where_nobody_looks() {
    let place = place();
    // Long enough to show progress on a terminal.
    let outcome = place.run(&["test", "model.ft", "--size", "n=60", "--points", "3"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let wrong = place.run(&["run", "model.ft", "--arg", "x=[1]", "--function", "gone"]);
    assert!(!wrong.stderr.contains('\u{1b}') && wrong.stdout.is_empty(), "{}", wrong.stderr);
}

#[test]
fn the_same_command_prints_the_same_bytes() {
    let place = place();
    for args in [
        &["derive", "model.ft", "--what", "hessian", "--size", "n=6", "--strategy", "markowitz", "--explain"][..],
        &["emit", "c", "model.ft", "--what", "jacobian"],
        &["emit", "c", "model.ft", "--what", "jacobian", "--batch", "8", "--f32"],
        &["emit", "rust", "model.ft", "--what", "jacobian"],
        &["test", "model.ft", "--size", "n=4"],
    ] {
        assert_eq!(prints(&place, args), prints(&place, args), "{args:?}");
    }
}

#[test]
fn standard_input_can_be_a_file() {
    let place = place();
    let mut command = place.command(&["run", "model.ft", "--arg", "x=@/dev/stdin"]);
    if !std::path::Path::new("/dev/stdin").exists() {
        println!("skipped: there is no /dev/stdin here");
        return;
    }
    let x = std::fs::File::open(place.path().join("x.txt")).unwrap();
    let outcome = command.stdin(Stdio::from(x)).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&outcome.stdout), "14.0\n");
}

#[test]
fn a_sparse_jacobian_comes_with_its_pattern_by_blocks_or_by_directions() {
    let place = Place::with(&[(
        "s.ft",
        Content::Text(
            "let near = fun (x : [n]Double) -> build (n - 1) (fun i -> x[i] * x[i + 1])\n\
             let steps = fun (x : [n]Double) ->\n  \
               ifold (fun x k -> build n (fun i -> x[i] + 2 * x[max 0 (i - 1)])) x 1\n\
             let straight = fun (x : Double) -> [x * x, 1.0, x]\n\
             let squares = fun (x : [n]Double) -> sum n (fun i -> x[i] ** 3)\n\
             let whole = fun (x : [n]Double) ->\n  \
               ifold (fun y k -> if y[0] > 0 then build n (fun i -> y[i] * x[0]) else y) x 1\n",
        ),
    )]);
    let run = |function, what| {
        let args = ["run", "s.ft", "--function", function, "--what", what, "--sparse", "--arg", "x=[1, 2, 4]"];
        let plain = prints(&place, &args);
        for more in [&["--threads", "2"][..], &["--no-checks"]] {
            assert_eq!(prints(&place, &[&args, more].concat()), plain, "{more:?}");
        }
        plain
    };
    assert_eq!(
        run("near", "jacobian"),
        "{\"shape\":[2,3],\"rows\":[0,0,1,1],\"columns\":[0,1,1,2],\"values\":[2.0,1.0,4.0,2.0]}\n"
    );
    // Unrolled, and of code without loops: the same.
    let near = ["run", "s.ft", "--function", "near", "--what", "jacobian", "--sparse", "--arg", "x=[1, 2, 4]"];
    let sized = |more: &[&str]| prints(&place, &[&near, more].concat());
    assert_eq!(sized(&["--size", "n=3"]), run("near", "jacobian"));
    for form in ["coo", "csr", "csc"] {
        assert_eq!(sized(&["--size", "n=3", "--form", form]), sized(&["--form", form]), "{form}");
    }
    assert_eq!(
        sized(&["--form", "csc"]),
        "{\"shape\":[2,3],\"starts\":[0,1,3,4],\"rows\":[0,0,1,1],\"values\":[2.0,1.0,4.0,2.0]}\n"
    );
    let squares = ["run", "s.ft", "--function", "squares", "--what", "hessian", "--sparse"];
    let args = ["--arg", "x=[1, 2, 4]", "--form", "blocks"];
    assert_eq!(
        prints(&place, &[&squares[..], &args].concat()),
        "{\"shape\":[3,3],\"rows\":[0,1,2],\"columns\":[0,1,2],\"n_rows\":[1,1,1],\"n_columns\":[1,1,1],\
         \"values\":[6.0,12.0,24.0]}\n"
    );
    let args = ["run", "s.ft", "--function", "straight", "--what", "jacobian", "--sparse", "--arg", "x=2"];
    assert_eq!(prints(&place, &args), "{\"shape\":[3,1],\"rows\":[0,2],\"columns\":[0,0],\"values\":[4.0,1.0]}\n");
    let both = prints(&place, &[&args[..], &["--what", "value", "--form", "csr"]].concat());
    assert_eq!(
        both,
        "{\"jacobian\":{\"shape\":[3,1],\"starts\":[0,1,1,2],\"columns\":[0,0],\"values\":[4.0,1.0]},\
         \"value\":[4.0,1.0,2.0]}\n"
    );
    // The state of a loop: by directions.
    assert_eq!(
        run("steps", "jacobian"),
        "{\"shape\":[3,3],\"rows\":[0,1,1,2,2],\"columns\":[0,0,1,1,2],\"values\":[3.0,2.0,1.0,2.0,1.0]}\n"
    );
    // Control flow depends on doubles: dense, with a note.
    let args = ["run", "s.ft", "--function", "whole", "--what", "jacobian", "--sparse", "--arg", "x=[1, 2]"];
    let outcome = place.run(&args);
    assert!(outcome.stderr.contains("note: dense columns: `x`"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("\"values\":[2.0,0.0,2.0,1.0]"), "{}", outcome.stdout);
}
