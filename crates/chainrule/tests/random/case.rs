//! A random program, read as users' programs are.

use super::values::reread;
use chainrule::{Function, Module, Semantics, Unroll, Value};
use chainrule_ir as ir;
use chainrule_ir::generate::written::Written;
use std::fmt::Display;

/// A program that is read.
pub struct Case {
    pub text: String,
    /// With its loops.
    pub f: Function,
    /// Under strict semantics.
    pub strict: Function,
    pub ir: ir::Function,
    pub args: Vec<Value<f64>>,
}

impl Case {
    /// What was written as a function called `f`.
    pub fn new(Written { text, args }: Written) -> Result<Option<Self>, String> {
        Self::read("f", text, args)
    }

    /// The function of this name in `text`. `None` where a part of it takes an element that an array cannot have, which is told
    /// without running it.
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

    /// A failure with the program that shows it.
    pub fn fails(&self, what: impl Display) -> String {
        format!("{what}\n{}\nat {:?}", self.text, self.args)
    }
}
