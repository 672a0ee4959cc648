//! No user input makes the command panic, fill the screen or control the terminal.

#![allow(clippy::unwrap_used)]

mod support;

use support::{Content, Place};

#[test]
fn control_characters_are_shown_escaped() {
    const RED: &str = "\u{1b}[31m";
    let place = Place::with(&[("g.ft", Content::Text("let g = fun (p : {a : Double}) (x : Double) -> p.a * x\n"))]);
    let write = |name: &str, text: String| std::fs::write(place.path().join(name), text).unwrap();
    // A comment, a location after it, an invalid character, a file name, and bidirectional text.
    write("comment.ft", format!("let f = fun (x : Double) -> y /* {RED}\u{7}\u{9b}2J\u{202e} */\n"));
    write("character.ft", format!("let f = {RED} 1\n"));
    write("import.ft", format!("import \"{RED}.ft\"\n"));
    write("field.ft", format!("let f = fun (x : Double) -> x.{RED}\n"));
    write("unused.ft", format!("let f = fun (x : Double) -> let y = x in x // {RED}\r\n"));
    write("args.json", format!("{{\"\\u001b[31m\": 1, \"x\": 1, \"{}\": 2}}", "\\u202e"));
    write("inner.json", "{\"a\": 1, \"\\u001b[31m\": 2}".to_owned());
    write("twice.json", "{\"\\u001b[31m\": 1, \"\\u001b[31m\": 2}".to_owned());
    write("words.txt", format!("{RED}1"));
    write(
        "graph.json",
        "{\"name\": \"\\u001b[31m\", \"n_inputs\": 1, \"n_intermediates\": 0, \"n_outputs\": 1, \"edges\": [[0, 1]]}"
            .to_owned(),
    );
    let missing = format!("{RED}.ft");
    let cases: &[&[&str]] = &[
        &["check", "comment.ft"],
        &["check", "character.ft"],
        &["check", "import.ft"],
        &["check", "field.ft"],
        &["check", "unused.ft"],
        &["check", &missing],
        &["run", &missing],
        &["fmt", &missing],
        &["run", "g.ft", "--args", "args.json"],
        &["run", "g.ft", "--arg", "x=1", "--arg", "p=@inner.json"],
        &["run", "g.ft", "--arg", "x=1", "--arg", "p=@twice.json"],
        &["run", "g.ft", "--arg", "x=@words.txt"],
        &["run", "g.ft", "--arg", &format!("{RED}=1")],
        &["run", "g.ft", "--function", RED],
        &["run", "g.ft", "--what", "gradient", "--by", RED],
        &["run", "unused.ft", "--arg", "x=1"],
        &["derive", "unused.ft", "--size", &format!("{RED}=1")],
        &["derive", "unused.ft", "--what", "gradient", "--explain"],
        &["eliminate", "graph.json"],
        &["eliminate", &missing],
    ];
    for args in cases {
        let outcome = place.run(args);
        let text = format!("{}{}", outcome.stdout, outcome.stderr);
        let is_raw = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}');
        assert!(!text.contains(is_raw), "{args:?}: {text:?}");
        assert!(!text.is_empty(), "{args:?}");
    }
    let outcome = place.run(&["check", "comment.ft"]);
    assert!(outcome.stderr.contains("\\u{1b}[31m") && outcome.stderr.contains("comment.ft:1:29"), "{}", outcome.stderr);
}

#[test]
fn long_lines_are_cut_and_many_messages_counted() {
    let place = Place::with(&[]);
    let long = format!("let f = fun (x : Double) -> {}y + {}x\n", "x + ".repeat(50_000), "x + ".repeat(50_000));
    std::fs::write(place.path().join("long.ft"), &long).unwrap();
    let outcome = place.run(&["check", "long.ft"]);
    assert!(outcome.code == Some(1) && outcome.stderr.len() < 4_000, "{} bytes", outcome.stderr.len());
    assert!(outcome.stderr.contains("x + y + x") && outcome.stderr.contains(" … "), "{}", outcome.stderr);
    let column = long.find('y').unwrap() + 1;
    assert!(outcome.stderr.contains(&format!("long.ft:1:{column} ")), "{}", outcome.stderr);
    // Each message contains a long line.
    let names: String = (0..200).map(|k| format!("{}y{k} + ", "x + ".repeat(1_000))).collect();
    let line = format!("let f = fun (x : Double) -> {names}1\n");
    std::fs::write(place.path().join("many.ft"), line).unwrap();
    let outcome = place.run(&["check", "many.ft"]);
    assert!(outcome.stderr.len() < 40_000, "{} bytes", outcome.stderr.len());
    assert!(outcome.stderr.contains("more messages"), "{}", outcome.stderr);
    // A long name.
    let name = "n".repeat(100_000);
    std::fs::write(place.path().join("name.ft"), format!("let f = fun (x : Double) -> {name}\n")).unwrap();
    let outcome = place.run(&["check", "name.ft"]);
    assert!(outcome.code == Some(1) && outcome.stderr.len() < 20_000, "{} bytes", outcome.stderr.len());
}

#[test]
fn warnings_about_imported_files_are_shown_where_those_are_checked() {
    let place = Place::with(&[
        ("library.ft", Content::Text("let twice = fun (x : Double) -> let unused = x in 2 * x\n")),
        ("main.ft", Content::Text("import \"library.ft\"\nlet f = fun (x : Double) -> let own = x in twice x\n")),
    ]);
    let outcome = place.run(&["run", "main.ft", "--arg", "x=1"]);
    assert_eq!(outcome.stdout, "2.0\n", "{}", outcome.stderr);
    assert!(outcome.stderr.contains("own") && !outcome.stderr.contains("library.ft"), "{}", outcome.stderr);
    assert!(place.run(&["check", "library.ft"]).stderr.contains("unused"));
}

#[test]
fn requests_beyond_memory_are_refused() {
    let place = Place::with(&[
        ("many.ft", Content::Text("let many = fun (n : Card) -> build n (fun i -> 0.5)\n")),
        ("rows.ft", Content::Text("let rows = fun (n : Card) -> build n (fun i -> build 1 (fun j -> (i, 0.5)))\n")),
        ("sq.ft", Content::Text("let sq = fun (x : Double) -> x * x\n")),
    ]);
    for n in ["1000000000000", "4611686018427387904", "9223372036854775807"] {
        for file in ["many.ft", "rows.ft"] {
            let outcome = place.run(&["run", file, "--arg", &format!("n={n}")]);
            assert_eq!(outcome.code, Some(1), "{file} {n}: {}", outcome.stderr);
            assert!(outcome.stdout.is_empty() && outcome.stderr.starts_with("error: "), "{}", outcome.stderr);
        }
    }
    for points in ["18446744073709551615", "18446744073709551614", "9223372036854775808", "1000001", "0"] {
        let outcome = place.run(&["test", "sq.ft", "--points", points]);
        assert!(outcome.code == Some(2) && outcome.stderr.contains("from 1 to 1000000"), "{}", outcome.stderr);
    }
    let outcome = place.run(&["run", "sq.ft", "--arg", "x=3", "--threads", "18446744073709551615"]);
    assert_eq!(outcome.stdout, "9.0\n", "{}", outcome.stderr);
}

#[cfg(unix)]
#[test]
fn closed_streams_and_small_stacks_are_no_trouble() {
    let place = Place::with(&[("bad.ft", Content::Text("let f = fun (x : Double) -> y\n"))]);
    let deep = [
        format!("let f = fun (x : Double) -> {}x{}\n", "(".repeat(250), ")".repeat(250)),
        format!("let f = fun (x : Double) -> {}x{}\n", "sin (".repeat(125), ")".repeat(125)),
        format!("let f = fun (x : Double) -> {}x{}\n", "if x > 0 then (".repeat(80), ") else 1".repeat(80)),
    ];
    for (k, program) in deep.iter().enumerate() {
        std::fs::write(place.path().join(format!("deep{k}.ft")), program).unwrap();
    }
    let shell = |command: &str| {
        let command = command.replace("chainrule", env!("CARGO_BIN_EXE_chainrule"));
        let output =
            std::process::Command::new("sh").args(["-c", &command]).current_dir(place.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(shell("chainrule check bad.ft 2>&-").0, Some(1));
    assert_eq!(shell("chainrule run bad.ft 2>&- >&-").0, Some(1));
    assert_eq!(shell("chainrule nothing 2>&-").0, Some(2));
    for k in 0..deep.len() {
        for command in [
            format!("chainrule check deep{k}.ft"),
            format!("chainrule fmt --check deep{k}.ft"),
            format!("chainrule run deep{k}.ft --arg x=1 --what value --what hessian"),
            format!("chainrule derive deep{k}.ft --what gradient --show kernel"),
        ] {
            let (code, stderr) = shell(&format!("ulimit -s 256; {command}"));
            assert!(matches!(code, Some(0 | 1)) && !stderr.contains("overflow"), "{command}: {code:?} {stderr}");
        }
    }
}
