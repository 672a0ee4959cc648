//! `--stop-after` and `--time-passes`, of every command that compiles.

#[path = "support/mod.rs"]
mod support;

use support::{Content, Place};

const MODEL: &str = "let f = fun (x : [n]Double) -> sum (n - 1) (fun i -> (x[i + 1] - x[i]) ** 2)\n";

/// A function whose sizes select one of two programs.
const BRANCHES: &str = "let f = fun (x : [n]Double) -> if n > 4 then vectorSum x else sum n (fun i -> exp x[i])\n";

fn place() -> Place {
    Place::with(&[("model.ft", Content::Text(MODEL)), ("branches.ft", Content::Text(BRANCHES))])
}

#[track_caller]
fn prints(place: &Place, args: &[&str]) -> String {
    let outcome = place.run(args);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
    outcome.stdout
}

/// Names and rows of a table of passes.
fn rows(table: &str) -> Vec<(&str, Vec<&str>)> {
    let row = |line: &'_ str| line.to_owned();
    assert!(table.lines().next().map(row).unwrap_or_default().contains("share"), "{table}");
    let split = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    split.filter_map(|words| Some((*words.first()?, words[1..].to_vec()))).collect()
}

const GRADIENT: &[&str] = &["model.ft", "--what", "gradient"];

#[test]
fn every_pass_that_runs_can_end_the_pipeline() {
    let place = place();
    let unrolled = [GRADIENT, &["--size", "n=3", "--unroll", "always"]].concat();
    let strict = [GRADIENT, &["--strict"]].concat();
    for request in [GRADIENT, &unrolled, &strict, &["branches.ft"]] {
        let table = prints(&place, &[&["passes"], request].concat());
        let names: Vec<&str> = table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        assert!(names.len() > 10, "{table}");
        for pass in names {
            let after = |option: &str| prints(&place, &[&["passes"], request, &[option, pass]].concat());
            let derived = prints(&place, &[&["derive"], request, &["--stop-after", pass]].concat());
            assert_eq!(derived, after("--stop-after"), "{request:?}, {pass}");
            // A pass that runs once leaves the program that it leaves last.
            if table.lines().filter(|line| line.starts_with(&format!("{pass} "))).count() == 1 {
                assert_eq!(derived.trim_end(), after("--after").trim_end(), "{request:?}, {pass}");
            }
        }
    }
}

#[test]
fn the_first_run_of_a_repeated_pass_ends_the_pipeline() {
    let place = place();
    prints(&place, &[&["passes"], GRADIENT, &["--after", "all", "--out", "all"]].concat());
    let folder = std::fs::read_dir(place.path().join("all")).unwrap();
    let mut files: Vec<String> = folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    let repeated: Vec<&String> = files.iter().filter(|file| file.ends_with("-repeat.txt")).collect();
    assert!(repeated.len() > 1, "{files:?}");
    let read = |file: &str| std::fs::read_to_string(place.path().join("all").join(file)).unwrap();
    let stopped = prints(&place, &[&["derive"], GRADIENT, &["--stop-after", "repeat"]].concat());
    assert_eq!(stopped.trim_end(), read(repeated[0]).trim_end());
}

#[test]
fn programs_of_branches_are_stopped_too() {
    let place = place();
    for pass in ["simplify", "repeat", "turn", "merge", "factor"] {
        let listing = prints(&place, &["derive", "branches.ft", "--stop-after", pass]);
        assert!(listing.contains("then") && listing.contains("exp"), "{pass}\n{listing}");
    }
}

#[test]
fn all_commands_stop_and_write_nothing() {
    let place = place();
    let kernel = prints(&place, &[&["derive"], GRADIENT, &["--stop-after", "vectorise"]].concat());
    assert!(kernel.starts_with("kernel f_gradient\n") && kernel.contains("at once"), "{kernel}");
    let stop = ["--stop-after", "vectorise"];
    assert_eq!(prints(&place, &[&["run"], GRADIENT, &stop].concat()), kernel);
    assert_eq!(prints(&place, &[&["compile"], GRADIENT, &stop, &["--out", "f.chainrule"]].concat()), kernel);
    assert_eq!(prints(&place, &[&["compile"], GRADIENT, &stop].concat()), kernel);
    assert_eq!(prints(&place, &[&["emit", "c"], GRADIENT, &stop, &["--lanes", "--out", "f"]].concat()), kernel);
    assert_eq!(prints(&place, &[&["emit", "rust"], GRADIENT, &stop, &["--lanes"]].concat()), kernel);
    let mut files: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["branches.ft", "model.ft"]);
    // A sparse matrix is two programs.
    let sparse = ["derive", "model.ft", "--what", "hessian", "--sparse", "--stop-after", "lower"];
    let sparse = prints(&place, &sparse);
    assert!(sparse.starts_with("== f_pattern ==\n") && sparse.contains("== f_values ==\n"), "{sparse}");
    assert_eq!(sparse.lines().filter(|line| line.starts_with("kernel ")).count(), 2, "{sparse}");
}

#[test]
fn passes_that_do_not_run_are_refused() {
    let place = place();
    let derive = [&["derive"], GRADIENT].concat();
    let emit = [&["emit", "c"], GRADIENT].concat();
    let unrolled = ["derive", "model.ft", "--size", "n=3", "--unroll", "always"];
    let none = "does not run on `f_gradient` with these options\n  help: `chainrule passes` lists";
    for (request, pass, why) in [
        (&derive[..], "vectorize", "there is no pass `vectorize`\n  help: did you mean `vectorise`?"),
        (&derive, "everything", "there is no pass `everything`\n  help: the passes are unroll, linearise"),
        (&derive, "unroll", none),
        (&derive, "accumulate", none),
        (&derive, "parallelise", none),
        (&[&derive[..], &["--strict"]].concat(), "contract", none),
        (&[&derive[..], &["--strict"]].concat(), "regions", none),
        (&[&derive[..], &["--sequential"]].concat(), "vectorise", none),
        (&emit, "vectorise", none),
        (&emit, "contract", none),
        (&unrolled, "simplify", "the pass `simplify` does not run on `f`"),
        (&unrolled, "linearise", "the pass `linearise` does not run on `f`"),
        (&["run", "missing.ft"], "turns", "there is no pass `turns`\n  help: did you mean `turn`?"),
    ] {
        let outcome = place.run(&[request, &["--stop-after", pass]].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{request:?} {pass}");
        assert!(outcome.stderr.contains(why), "{request:?} {pass}: {}", outcome.stderr);
    }
}

#[test]
fn passes_are_timed_by_every_command() {
    let place = place();
    let known = prints(&place, &["passes", "--list"]);
    let known: Vec<&str> = known.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let point = ["--arg", "x=[1, 3, 2, 7]"];
    let unrolled = [&["run"], GRADIENT, &point, &["--size", "n=4", "--unroll", "always"]].concat();
    for (request, expected) in [
        (
            [&["run"], GRADIENT, &point].concat(),
            &["check", "elaborate", "differentiate", "simplify", "lower", "vectorise", "contract", "backend", "run"][..],
        ),
        (unrolled, &["unroll", "linearise", "accumulate", "replay", "value-numbering", "factoring", "lower", "run"]),
        ([&["derive"], GRADIENT].concat(), &["check", "elaborate", "differentiate"]),
        ([&["compile"], GRADIENT, &["--out", "f.chainrule"]].concat(), &["differentiate", "tidy", "backend"]),
        ([&["emit", "c"], GRADIENT].concat(), &["simplify", "lower", "hoist-integers", "backend"]),
        ([&["emit", "rust"], GRADIENT, &["--lanes"]].concat(), &["simplify", "vectorise", "backend"]),
        ([&["run"], GRADIENT, &["--stop-after", "lower"]].concat(), &["tidy", "scalarise", "lower"]),
    ] {
        let plain = place.run(&request);
        let outcome = place.run(&[&request[..], &["--time-passes"]].concat());
        assert_eq!((outcome.code, &outcome.stdout), (Some(0), &plain.stdout), "{request:?}: {}", outcome.stderr);
        let table = outcome.stderr.strip_prefix(&plain.stderr).unwrap_or(&outcome.stderr);
        let rows = rows(table);
        let position = |name: &str| rows.iter().position(|(known, _)| *known == name);
        let places: Vec<Option<usize>> = expected.iter().map(|name| position(name)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{request:?}\n{table}");
        assert_eq!(rows.iter().rev().map(|(name, _)| *name).take(2).collect::<Vec<_>>(), ["total", "other"]);
        // Each row has a time, a unit, a share and a percent sign; passes a number of runs.
        let number = |words: &[&str], at: usize| words[at].parse::<f64>().unwrap();
        for (name, words) in &rows[..rows.len() - 2] {
            assert!(known.contains(name) || ["check", "elaborate", "backend", "run"].contains(name), "{name}\n{table}");
            assert!(words.len() == 5 && number(words, 4) >= 1.0, "{name}\n{table}");
        }
        let sum = |at: usize| rows[..rows.len() - 1].iter().map(|(_, words)| number(words, at)).sum::<f64>();
        assert!((sum(2) - 100.0).abs() < 0.06 * rows.len() as f64, "{table}");
        assert!((sum(0) - number(&rows[rows.len() - 1].1, 0)).abs() < 1e-3 * rows.len() as f64, "{table}");
        // The pipeline has ended before.
        if request.contains(&"--stop-after") {
            assert!(position("vectorise").is_none() && position("backend").is_none(), "{table}");
        }
    }
}

#[test]
fn compiled_programs_have_no_passes_left() {
    let place = place();
    compile_to_file(&place);
    for option in [&["--stop-after", "lower"][..], &["--time-passes"]] {
        let outcome = place.run(&[&["run", "f.chainrule", "--arg", "x=[1, 2]"], option].concat());
        assert_eq!(outcome.code, Some(1), "{option:?}");
        assert!(outcome.stderr.contains(&format!("{} comes too late", option[0])), "{}", outcome.stderr);
    }
}

fn compile_to_file(place: &Place) {
    let outcome = place.run(&[&["compile"], GRADIENT, &["--out", "f.chainrule"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // Without a pass to stop after, the output is needed.
    let outcome = place.run(&[&["compile"], GRADIENT].concat());
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
}
