//! What is said to a person about a program: a title, the places, the reason and the remedy.
//!
//! Three kinds of failure are never mixed: the user's error, a limitation of Chainrule, a bug of
//! Chainrule. Stages collect diagnostics in [`Diagnostics`] and go on as far as they can, so that
//! several errors are told in one go. Drawing them beside their source is the faces' job.

use crate::Span;
use std::fmt;

/// Whose failure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The program or the data is wrong.
    Error,
    /// The program is right, and Chainrule cannot do it (yet).
    Limitation,
    /// Chainrule is wrong.
    Bug,
    /// Nothing is wrong, but something is probably not what was meant.
    Warning,
}

/// A place and what is to be seen there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is there, in a few words.
    pub text: String,
}

/// One message. Build it with [`Diagnostic::error`] and the `with_` methods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Whose failure it is.
    pub kind: Kind,
    /// What is wrong, in one line, without a full stop.
    pub title: String,
    /// The places; the first is the main one. Empty for a message about no place.
    pub labels: Vec<Label>,
    /// Why it is wrong, when the title does not say.
    pub reason: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    fn new(kind: Kind, title: impl Into<String>) -> Self {
        Self { kind, title: title.into(), labels: Vec::new(), reason: None, help: None }
    }

    /// A user's error.
    #[must_use]
    pub fn error(title: impl Into<String>) -> Self {
        Self::new(Kind::Error, title)
    }

    /// A limitation of Chainrule.
    #[must_use]
    pub fn limitation(title: impl Into<String>) -> Self {
        Self::new(Kind::Limitation, title)
    }

    /// A bug of Chainrule, met without a panic.
    #[must_use]
    pub fn bug(title: impl Into<String>) -> Self {
        Self::new(Kind::Bug, title)
    }

    /// A warning.
    #[must_use]
    pub fn warning(title: impl Into<String>) -> Self {
        Self::new(Kind::Warning, title)
    }

    /// Adds a place.
    #[must_use]
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Says why.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The main place.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }
}

/// One line: kind and title, then reason and help.
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

/// How many in words: `1 element`, `2 elements`.
#[must_use]
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Messages in the order in which they were found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.items.push(diagnostic);
    }

    /// Adds all of `others`.
    pub fn extend(&mut self, others: impl IntoIterator<Item = Diagnostic>) {
        self.items.extend(others);
    }

    /// Whether anything but warnings was said.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|d| d.kind != Kind::Warning)
    }

    /// Whether nothing was said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// `value`, unless anything but warnings was said.
    ///
    /// # Errors
    /// All messages, when one of them is not a warning.
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
