//! The console blocks of the guide that run an example of the repository.

use crate::page::{Page, as_expected, compare, example_of, pages, root};
use std::process::Command;

/// Runs `program` as the guide runs `package`, and compares its output. Commands that need data from outside of the
/// repository are skipped if it is missing.
pub fn check(package: &str, program: &str) {
    let (mut wrong, mut commands) = (Vec::new(), 0);
    for page in pages() {
        let mut found = Vec::new();
        for (i, block) in page.blocks.iter().enumerate().filter(|(_, block)| block.tag == "console") {
            let [command] = block.commands()[..] else { continue };
            if example_of(command) != Some(package) {
                continue;
            }
            commands += 1;
            if command.contains("../shared") && !root().join("../shared/data").exists() {
                println!("skipped: {command}: ../shared/data is not there");
                continue;
            }
            found.push((i, as_expected(&block.text, &format!("$ {command}\n{}", output(&page, command, program)))));
        }
        wrong.extend(compare(&page, &found));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(commands > 0, "the guide does not run {package}");
}

fn output(page: &Page, command: &str, program: &str) -> String {
    let args = command.split_once(" -- ").map_or("", |(_, args)| args).split_whitespace();
    let output = Command::new(program).args(args).current_dir(root()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {command}: {errors}", page.path.display());
    String::from_utf8(output.stdout).unwrap()
}
