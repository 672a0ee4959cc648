//! Syntax tree to text: the formatter for files, and printers for trees without a text.
//!
//! What holds:
//!
//! - `parse(format(x))` is `parse(x)` up to places, and `format(format(x))` is `format(x)`.
//! - Every comment stays, in its order, before the token before which it stood (or a later one). At most one empty
//!   line in a row stays, between items, between `let`s and before comments.
//! - Lines are at most 100 wide where that can be; indentation is 2. Whoever ended a line after `->`, after `then`
//!   or after a binding keeps that line end, even where all would fit on one line.
//! - A `let` chain over several lines starts at a line's start and does without `in`: everything bound stands further
//!   right, the next `let` and the result at the column of the `let`, as the offside rule wants it.
//! - Operators get their first spelling (`*` for `×`, `==` for `=`), types theirs (`[]T` for `Array<T>`). Parentheses
//!   that are not needed stay around operands of operators, where people put them for the reader, and go elsewhere.

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

/// The text of `file`, laid out anew.
///
/// # Errors
/// What is wrong in the text; only what parses is formatted.
pub fn format(sources: &Sources, file: FileId) -> Result<String, Diagnostics> {
    let (module, diagnostics) = parse(sources, file);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    let mut printer = Printer { events: Vec::new(), text: Some(Text::new(&sources.file(file).text, file)) };
    printer.module(&module);
    Ok(printer.finish())
}

/// `module` as text that parses to it.
#[must_use]
pub fn print_module(module: &Module) -> String {
    let mut printer = Printer { events: Vec::new(), text: None };
    printer.module(module);
    printer.finish()
}

/// `expr` as text that parses to it, without a line end after it.
#[must_use]
pub fn print_expr(expr: &Expr) -> String {
    let mut printer = Printer { events: Vec::new(), text: None };
    printer.expr(expr, expressions::Slot::OPEN);
    printer.finish().trim_end().to_owned()
}

/// `ty` as text that parses to it, without a line end after it.
#[must_use]
pub fn print_type(ty: &Type) -> String {
    let mut printer = Printer { events: Vec::new(), text: None };
    printer.ty(ty);
    printer.finish().trim_end().to_owned()
}

/// Makes events from a tree, in the order of the text.
struct Printer<'t> {
    events: Vec<Event>,
    /// The text that the tree was parsed from, where there is one.
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

    /// What `content` prints, indented.
    fn indented(&mut self, content: impl FnOnce(&mut Self)) {
        self.event(Event::Indent);
        content(self);
        self.event(Event::Dedent);
    }

    /// What `content` prints, in a group.
    fn group(&mut self, content: impl FnOnce(&mut Self)) {
        self.event(Event::Open);
        content(self);
        self.event(Event::Close);
    }

    /// `open content close` in a group; `end` is where the comments before `close` end.
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
