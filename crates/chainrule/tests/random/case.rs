//! Random program, parsed like users' programs.

use super::values::reread;
use chainrule::{Function, Module, Semantics, Unroll, Value};
use chainrule_ir as ir;
use chainrule_ir::generate::written::Written;
use std::fmt::Display;

/// Parsed program.
pub struct Case {
    pub text: String,
    /// The function with its loops.
    pub f: Function,
    /// The same under strict semantics.
    pub strict: Function,
    pub ir: ir::Function,
    pub args: Vec<Value<f64>>,
}

impl Case {
    /// Parses a generated function called `f`.
    pub fn new(Written { text, args }: Written) -> Result<Option<Self>, String> {
        Self::read("f", text, args)
    }

    /// Parses the function of this name in `text`. `None` if a part of it reads an element that an array cannot have,
    /// which is known without running it.
    pub fn read(name: &str, text: String, args: Vec<Value<f64>>) -> Result<Option<Self>, String> {
        let module = Module::from_text("<random>", &text).map_err(|e| format!("{e}\n{text}"))?;
        let f = match module.function(name) {
            Err(e) if e.to_string().starts_with("Error: index out of range\n") => return Ok(None),
            f => f.map_err(|e| format!("{e}\n{text}"))?.unroll(Unroll::Never),
        };
        let strict = module.with_semantics(Semantics::Strict).function(name).map_err(|e| format!("{e}\n{text}"))?;
        let ir = reread(&text, name)?;
        Ok(Some(Self { text, f, strict, ir, args }))
    }

    /// Returns a failure message with the program.
    pub fn fails(&self, what: impl Display) -> String {
        format!("{what}\n{}\nat {:?}", self.text, self.args)
    }
}
