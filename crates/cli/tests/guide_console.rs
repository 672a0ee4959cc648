//! Commands of the guide and the README: each prints exactly the output on the page.

// A failing test stops.
#![allow(clippy::unwrap_used)]

#[path = "../../chainrule/tests/guide/folder.rs"]
mod folder;
#[path = "../../chainrule/tests/guide/page.rs"]
mod page;
#[path = "support/mod.rs"]
mod support;

use std::process::Command;

/// Splits a command line into words: separated by spaces, `'...'` kept together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, any) = (!quoted, true),
            ' ' if !quoted => {
                if any {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            c => {
                word.push(c);
                any = true;
            }
        }
    }
    if any {
        words.push(word);
    }
    words
}

/// Replacement for `chainrule` in the README.
const FROM_SOURCE: &str = "cargo run --release -p chainrule-cli -- ";

/// Commands of `sh` blocks that prepare the environment; a test cannot run them.
const SET_UP: [&str; 6] = [
    "alias chainrule='cargo run --quiet --release -p chainrule-cli --'",
    "cargo install --path crates/cli",
    "cargo test --workspace",
    "cargo xtask test",
    "pip install ./python",
    "python -m chainrule.demo",
];

/// Returns output and errors of `line`, with `[exit code n]` if it failed.
fn output(line: &str, folder: &std::path::Path) -> String {
    let line = line.strip_prefix(FROM_SOURCE).map_or(line.to_string(), |rest| format!("chainrule {rest}"));
    let words = words(&line);
    let output = match words[0].as_str() {
        "chainrule" => Command::new(env!("CARGO_BIN_EXE_chainrule")).args(&words[1..]).current_dir(folder).output(),
        "cat" => Command::new("cat").args(&words[1..]).current_dir(folder).output(),
        _ => panic!("the guide runs `chainrule`, `cat` and the examples, not `{line}`"),
    };
    let output = output.unwrap();
    // Pages are written on a machine with native code.
    let told = String::from_utf8(output.stderr).unwrap();
    let told: String = told.split_inclusive('\n').filter(|line| !line.starts_with(support::NOTE)).collect();
    let mut text = String::from_utf8(output.stdout).unwrap() + &told;
    if !output.status.success() {
        text.push_str(&format!("[exit code {}]\n", output.status.code().unwrap()));
    }
    page::plain(&text).lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn commands_of_the_guide_print_its_outputs() {
    let (mut wrong, mut commands) = (Vec::new(), 0);
    for page in page::pages() {
        let folder = folder::of(&page);
        let mut found = Vec::new();
        for (i, block) in page.blocks.iter().enumerate().filter(|(_, block)| block.tag == "console") {
            let lines = block.commands();
            assert!(block.text.starts_with("$ "), "{}: no command", page.place(block));
            if lines.len() == 1 && page::example_of(lines[0]).is_some() {
                continue; // The example's own test runs it.
            }
            commands += lines.len();
            let text: String = lines.iter().map(|line| format!("$ {line}\n{}", output(line, folder.path()))).collect();
            found.push((i, page::as_expected(&block.text, &text)));
        }
        wrong.extend(page::compare(&page, &found));
        for block in &page.blocks {
            let Some(file) = &block.within else { continue };
            let text = std::fs::read_to_string(folder.path().join(file)).unwrap_or_default();
            if !text.contains(&block.text) {
                wrong.push(format!("{}: {file} has no such lines:\n{text}", page.place(block)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(commands >= 30, "the pages are there and were understood: {commands} commands");
}

#[test]
fn commands_without_output_succeed() {
    let (mut run, mut known) = (0, 0);
    for page in page::pages() {
        let folder = folder::of(&page);
        for block in page.blocks.iter().filter(|block| block.tag == "sh") {
            for line in block.text.lines().map(|line| line.split("  #").next().unwrap_or_default().trim_end()) {
                if SET_UP.contains(&line) {
                    known += 1;
                    continue;
                }
                run += 1;
                let text = output(line, folder.path());
                assert!(!text.contains("[exit code"), "{}: {line}\n{text}", page.place(block));
            }
        }
    }
    assert!(run >= 1 && known >= 2, "{run} commands run, {known} known");
}
