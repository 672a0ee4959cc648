//! Checks of the guide: its programs are correct and formatted, its calls have the shown results, its wrong programs
//! the shown messages. `guide/page.rs` defines the blocks.

// A failing test stops.
#![allow(clippy::unwrap_used)]

#[path = "guide/folder.rs"]
mod folder;
#[path = "guide/page.rs"]
mod page;
#[path = "guide/values.rs"]
mod values;

use chainrule::report::Style;
use chainrule::{Module, format_source};
use page::{Block, Page};
use std::path::Path;

/// Returns the messages for a program: errors of it or of one of its functions, else its warnings.
fn verdict(name: &str, text: &str, folder: &Path) -> (Option<Module>, Option<String>, String) {
    let here = format!("{}/", folder.display());
    let module = match Module::from_text(&folder.join(name).display().to_string(), text) {
        Ok(module) => module,
        Err(error) => return (None, Some(page::plain(&error.render(Style::Plain)).replace(&here, "")), String::new()),
    };
    let functions = module.definitions().into_iter().filter(|d| d.is_first_order);
    let errors: Vec<String> = functions
        .filter_map(|d| module.function(&d.name).and_then(|f| f.compile()).err())
        .map(|error| page::plain(&error.render(Style::Plain)).replace(&here, ""))
        .collect();
    let warnings = module.render_warnings().replace(&here, "");
    let error = (!errors.is_empty()).then(|| errors.join("\n"));
    (Some(module), error, warnings)
}

/// Runs one line of a `run` block; returns the expected text.
fn run(module: &Module, line: &str, place: &str) -> String {
    let open = line.find('(').unwrap_or_else(|| panic!("{place}: {line} is no call"));
    let close = line.find(") = ").or_else(|| line.find(") fails: ")).or_else(|| line.rfind(')'));
    let close = close.unwrap_or_else(|| panic!("{place}: {line} is no call"));
    let (call, name, args) = (&line[..=close], &line[..open], &line[open + 1..close]);
    let compiled = module.function(name).and_then(|f| f.compile()).unwrap_or_else(|e| panic!("{place}: {e}"));
    let params = &compiled.signature().params;
    let args = values::parse_list(args);
    assert_eq!(args.len(), params.len(), "{place}: {call}");
    let args: Vec<_> = params.iter().zip(&args).map(|((_, ty), arg)| values::typed(ty, arg)).collect();
    let ty = &compiled.signature().results[0].1;
    match compiled.call(&args) {
        Ok(results) => {
            let expected = line[close + 1..].strip_prefix(" = ").map(|text| values::parse_list(text).remove(0));
            if expected.is_some_and(|expected| values::close(&values::typed(ty, &expected), &results[0])) {
                return line.to_string();
            }
            format!("{call} = {}", values::show(ty, &results[0]))
        }
        Err(error) => {
            let text = error.to_string();
            let title = text.lines().next().unwrap_or_default();
            format!("{call} fails: {}", title.strip_prefix("Error: ").unwrap_or(title))
        }
    }
}

fn check(page: &Page, wrong: &mut Vec<String>, counts: &mut [usize; 3]) {
    let folder = folder::of(page);
    let mut found: Vec<(usize, String)> = Vec::new();
    for (i, block) in page.blocks.iter().enumerate().filter(|(_, block)| block.tag == "ft") {
        let place = page.place(block);
        let followers: Vec<(usize, &Block)> = page.blocks.iter().enumerate().skip(i + 1).collect();
        let followers: Vec<_> =
            followers.into_iter().take_while(|(_, b)| ["run", "error", "warning"].contains(&b.tag.as_str())).collect();
        let follower = |tag: &str| followers.iter().find(|(_, b)| b.tag == tag);
        let name = block.file.as_deref().unwrap_or("model.ft");
        let (module, error, warnings) = verdict(name, &block.text, folder.path());
        match (follower("error"), error) {
            (Some((at, _)), Some(error)) => {
                counts[1] += 1;
                found.push((*at, error));
                continue;
            }
            (Some(_), None) => wrong.push(format!("{place}: nothing is wrong with this program")),
            (None, Some(error)) => wrong.push(format!("{place}: {error}")),
            (None, None) => {}
        }
        let Some(module) = module else { continue };
        counts[0] += 1;
        match follower("warning") {
            Some((at, _)) => found.push((*at, warnings)),
            None if warnings.is_empty() => {}
            None => wrong.push(format!("{place}: {warnings}")),
        }
        match format_source(name, &block.text) {
            Ok(text) => found.push((i, text)),
            Err(error) => wrong.push(format!("{place}: {error}")),
        }
        if let Some((at, calls)) = follower("run") {
            let lines: Vec<String> = calls.text.lines().map(|line| run(&module, line, &page.place(calls))).collect();
            counts[2] += lines.len();
            found.push((*at, lines.join("\n")));
        }
    }
    wrong.extend(page::compare(page, &found));
}

#[test]
fn the_guide_is_true() {
    let (mut wrong, mut counts) = (Vec::new(), [0; 3]);
    for page in page::pages() {
        check(&page, &mut wrong, &mut counts);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let [programs, errors, calls] = counts;
    println!("{programs} programs, {errors} wrong ones, {calls} calls");
    // The pages exist and were parsed.
    assert!(programs >= 25 && errors >= 14 && calls >= 50, "{programs} programs, {errors} wrong ones, {calls} calls");
}

/// Checks that every block that looks like an example is one.
#[test]
fn every_block_is_checked_by_something() {
    let library = std::fs::read_to_string(page::root().join("crates/chainrule/src/lib.rs")).unwrap();
    let mut blocks = 0;
    for page in page::pages() {
        let path = page.path.strip_prefix(page::root()).unwrap().display().to_string();
        let mut after_program: Vec<&str> = Vec::new();
        for block in &page.blocks {
            blocks += 1;
            let place = page.place(block);
            match block.tag.as_str() {
                "ft" => after_program = vec!["run", "error", "warning"],
                tag @ ("run" | "error" | "warning") => {
                    assert!(after_program.contains(&tag), "{place}: `{tag}` does not follow a program");
                    after_program.retain(|other| *other != tag);
                    assert!(!block.text.trim().is_empty(), "{place}: nothing is said");
                    continue;
                }
                "rust" | "rust,should_panic" => {
                    assert!(library.contains(&path), "{place}: {path} is not among the doc tests of lib.rs");
                }
                "json" | "csv" => assert!(block.file.is_some(), "{place}: a file without a name"),
                // The tests of the Python package run them.
                "python" => assert!(path.contains("python") || path == "README.md", "{place}: Python elsewhere"),
                "console" | "sh" | "text" => {}
                "c" => assert!(block.within.is_some(), "{place}: a part of no file"),
                tag => panic!("{place}: nothing checks blocks `{tag}`"),
            }
            if block.tag != "ft" {
                after_program.clear();
            }
        }
    }
    assert!(blocks >= 120, "{blocks} blocks");
}

#[test]
fn links_of_the_guide_lead_somewhere() {
    for page in page::pages() {
        let text = page.lines.join("\n");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || file.starts_with("http") {
                continue;
            }
            let path = page.path.parent().unwrap().join(file);
            assert!(path.exists(), "{}: {link} leads nowhere", page.path.display());
        }
    }
}

#[test]
fn messages_have_no_colours_unless_they_are_wanted() {
    let unknown = Module::from_text("f.ft", "let f = x").unwrap_err();
    let mistyped = Module::from_text("f.ft", "let f = fun (x : Double) -> x[0]").unwrap_err();
    for message in [unknown, mistyped] {
        assert!(message.render(Style::Colored).contains('\u{1b}'));
        let text = message.render(Style::Plain);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert_eq!(text, page::plain(&text));
    }
}
