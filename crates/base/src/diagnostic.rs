//! Messages to people about a program: title, spans, reason and remedy.
//!
//! The kinds of failure are never mixed: the user's error, a limitation of Chainrule, a bug of Chainrule. Stages
//! collect diagnostics in [`Diagnostics`] and continue as far as they can, so that several errors are reported at once.
//! User interfaces render them beside their source.

use crate::Span;
use std::fmt;

/// Kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The program or the data is wrong.
    Error,
    /// The program is correct, but Chainrule does not support it.
    Limitation,
    /// Chainrule is wrong.
    Bug,
    /// Probably a mistake, but not an error.
    Warning,
}

/// A span with a short text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Span.
    pub span: Span,
    /// Text for the span, in a few words.
    pub text: String,
}

/// A message. Build it with [`Diagnostic::error`] and the `with_` methods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Kind.
    pub kind: Kind,
    /// The fault, in one line, without a full stop.
    pub title: String,
    /// Spans; the first is the main one. Empty for a message without a span.
    pub labels: Vec<Label>,
    /// Reason, if the title does not give it.
    pub reason: Option<String>,
    /// Remedy.
    pub help: Option<String>,
}

impl Diagnostic {
    fn new(kind: Kind, title: impl Into<String>) -> Self {
        Self { kind, title: title.into(), labels: Vec::new(), reason: None, help: None }
    }

    /// Returns a user's error.
    #[must_use]
    pub fn error(title: impl Into<String>) -> Self {
        Self::new(Kind::Error, title)
    }

    /// Returns a limitation of Chainrule.
    #[must_use]
    pub fn limitation(title: impl Into<String>) -> Self {
        Self::new(Kind::Limitation, title)
    }

    /// Returns a bug of Chainrule that was detected without a panic.
    #[must_use]
    pub fn bug(title: impl Into<String>) -> Self {
        Self::new(Kind::Bug, title)
    }

    /// Returns a warning.
    #[must_use]
    pub fn warning(title: impl Into<String>) -> Self {
        Self::new(Kind::Warning, title)
    }

    /// Adds a span.
    #[must_use]
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds the reason.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Adds the remedy.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns the main span.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }
}

/// Prints one line: kind and title, then reason and help.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Error => "error",
            Kind::Limitation => "limitation",
            Kind::Bug => "bug in Chainrule",
            Kind::Warning => "warning",
        };
        write!(f, "{kind}: {}", self.title)?;
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        if let Some(help) = &self.help {
            write!(f, " (help: {help})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

/// Returns a count in words: `1 element`, `2 elements`.
#[must_use]
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Messages in the order of discovery.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Returns an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.items.push(diagnostic);
    }

    /// Adds all of `others`.
    pub fn extend(&mut self, others: impl IntoIterator<Item = Diagnostic>) {
        self.items.extend(others);
    }

    /// Returns whether any message is not a warning.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|d| d.kind != Kind::Warning)
    }

    /// Returns whether there is no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Iterates over all messages.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// Returns `value` if all messages are warnings.
    ///
    /// # Errors
    /// All messages, if one of them is not a warning.
    pub fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.has_errors() { Err(self) } else { Ok(value) }
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { items: vec![diagnostic] }
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.items.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
