//! Helpers shared by the tests.
#![allow(dead_code)]

use chainrule_base::{Diagnostics, FileId, Sources};
use chainrule_syntax::tree::{Expr, Module};
use std::fmt::Write;

pub fn source(text: &str) -> (Sources, FileId) {
    let mut sources = Sources::new();
    let file = sources.add("test.ft", text);
    (sources, file)
}

pub fn parse(text: &str) -> (Module, Diagnostics) {
    let (sources, file) = source(text);
    chainrule_syntax::parse(&sources, file)
}

pub fn parse_expr(text: &str) -> (Expr, Diagnostics) {
    let (sources, file) = source(text);
    chainrule_syntax::parse_expr(&sources, file)
}

/// Returns the messages about `text` as a reader sees them: title, each span with its text, reason, help.
pub fn render(sources: &Sources, diagnostics: &Diagnostics) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let _ = writeln!(out, "{:?}: {}", diagnostic.kind, diagnostic.title);
        for label in &diagnostic.labels {
            let (line, column) = sources.line_column(label.span);
            let _ = writeln!(out, "  {line}:{column} `{}` {}", sources.snippet(label.span).escape_debug(), label.text);
        }
        if let Some(reason) = &diagnostic.reason {
            let _ = writeln!(out, "  reason: {reason}");
        }
        if let Some(help) = &diagnostic.help {
            let _ = writeln!(out, "  help: {help}");
        }
    }
    out
}

pub fn messages(text: &str) -> String {
    let (sources, file) = source(text);
    render(&sources, &chainrule_syntax::parse(&sources, file).1)
}

pub fn expr_messages(text: &str) -> String {
    let (sources, file) = source(text);
    render(&sources, &chainrule_syntax::parse_expr(&sources, file).1)
}
