//! Helpers of the tests: programs from a text.

use chainrule_base::Sources;
use chainrule_ir::{Function, Program};

/// Returns the function `f` of a valid program.
pub fn function(text: &str) -> Function {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}
