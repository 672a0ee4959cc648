//! Syntax tree to text: the formatter for files, and printers for trees without a text.
//!
//! Invariants:
//!
//! - `parse(format(x))` is `parse(x)` up to spans, and `format(format(x))` is `format(x)`.
//! - Comments keep their order, and stay before the same token or a later one. At most one consecutive empty line is
//!   kept, between items, between `let`s and before comments.
//! - Lines are at most 100 wide where possible; indentation is 2. A line end after `->`, after `then` or after a
//!   binding is kept, even if everything fits on one line.
//! - A `let` chain over several lines starts at the start of a line and omits `in`: bound text is indented further, the
//!   next `let` and the result are at the column of the `let`, by the offside rule.
//! - Operators get their first spelling (`*` for `×`, `==` for `=`), as do types (`[]T` for `Array<T>`). Redundant
//!   parentheses are kept around operands of operators and removed elsewhere.

mod comments;
mod expressions;
mod items;
mod layout;
mod types;

use crate::parser::parse;
use crate::tree::{Expr, Module, Type};
use chainrule_base::{Diagnostics, FileId, Sources};
use comments::Text;
use layout::{Event, layout};

/// Returns the formatted text of `file`.
///
/// # Errors
/// Syntax errors; only text that parses is formatted.
pub fn format(sources: &Sources, file: FileId) -> Result<String, Diagnostics> {
    let (module, diagnostics) = parse(sources, file);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    let mut printer = Printer { events: Vec::new(), text: Some(Text::new(&sources.file(file).text, file)) };
    printer.module(&module);
    Ok(printer.finish())
}

/// Returns text that parses to `module`.
#[must_use]
pub fn print_module(module: &Module) -> String {
    let mut printer = Printer { events: Vec::new(), text: None };
    printer.module(module);
    printer.finish()
}

/// Returns text that parses to `expr`, without a final line end.
#[must_use]
pub fn print_expr(expr: &Expr) -> String {
    let mut printer = Printer { events: Vec::new(), text: None };
    printer.expr(expr, expressions::Slot::OPEN);
    printer.finish().trim_end().to_owned()
}

/// Returns text that parses to `ty`, without a final line end.
#[must_use]
pub fn print_type(ty: &Type) -> String {
    let mut printer = Printer { events: Vec::new(), text: None };
    printer.ty(ty);
    printer.finish().trim_end().to_owned()
}

/// Writer of layout events from a tree, in the order of the text.
struct Printer<'t> {
    events: Vec<Event>,
    /// Text that the tree was parsed from, if any.
    text: Option<Text<'t>>,
}

impl Printer<'_> {
    fn finish(self) -> String {
        if self.events.is_empty() { String::new() } else { layout(&self.events) }
    }

    fn push(&mut self, text: impl Into<String>) {
        self.events.push(Event::Text(text.into()));
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Prints `content` indented.
    fn indented(&mut self, content: impl FnOnce(&mut Self)) {
        self.event(Event::Indent);
        content(self);
        self.event(Event::Dedent);
    }

    /// Prints `content` in a group.
    fn group(&mut self, content: impl FnOnce(&mut Self)) {
        self.event(Event::Open);
        content(self);
        self.event(Event::Close);
    }

    /// Prints `open content close` in a group; `end` is the end of the comments before `close`.
    fn bracketed(&mut self, open: &str, close: &str, line: &Event, end: u32, content: impl FnOnce(&mut Self)) {
        self.group(|p| {
            p.push(open);
            p.indented(|p| {
                p.event(line.clone());
                content(p);
                p.line_comments_before(end);
            });
            p.event(line.clone());
            p.comments_before(end);
            p.push(close);
        });
    }
}
