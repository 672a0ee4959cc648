//! Errors, in one enum with sources.

use crate::report;
use chainrule_base::{Diagnostic, Diagnostics, Kind, Sources};
use std::sync::Arc;

/// Error between a function and its executable code.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Error in the program, or limitation of Chainrule: messages with locations in the texts.
    #[error("{}", report::render(diagnostics, sources, report::Style::Plain))]
    Program {
        /// Diagnostics.
        diagnostics: Diagnostics,
        /// Texts to which they refer.
        sources: Arc<Sources>,
    },
    /// Request that does not match the function: a name that does not exist, a wrong shape.
    #[error("{message}\n  help: {help}")]
    Request {
        /// Message.
        message: String,
        /// Remedy.
        help: String,
    },
    /// Arguments that do not match, or a failure at run time (an index out of range, ...).
    #[error(transparent)]
    Run(#[from] chainrule_runtime::RunError),
    /// The observer of a batch ended it. The results of the finished points are available.
    #[error("the batch was ended after {done} of {points} points")]
    Interrupted {
        /// Number of finished points.
        done: usize,
        /// Total number of points.
        points: usize,
    },
    /// A file could not be read.
    #[error("cannot read {path}")]
    Io {
        /// Path of the file.
        path: String,
        /// Error of the system.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// Bug in Chainrule. Please report it with the program that shows it.
    #[error("a bug in Chainrule {version}: {0}\n  help: {report}", version = report::VERSION, report = report::REPORT)]
    Bug(String),
}

impl Error {
    pub(crate) fn request(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Request { message: message.into(), help: help.into() }
    }

    /// Returns an error without a source text.
    pub(crate) fn lone(diagnostic: Diagnostic) -> Self {
        Self::Program { diagnostics: diagnostic.into(), sources: Arc::default() }
    }

    /// Returns whether the error is only a limitation of Chainrule: a program too large for a budget, an unsupported
    /// construct.
    #[must_use]
    pub fn is_limitation(&self) -> bool {
        matches!(self, Self::Program { diagnostics, .. } if diagnostics.iter().all(|d| d.kind == Kind::Limitation))
    }

    /// Returns the whole message, with the source lines to which it refers.
    #[must_use]
    pub fn render(&self, style: report::Style) -> String {
        match self {
            Self::Program { diagnostics, sources } => report::render(diagnostics, sources, style),
            other => report::printable(&other.to_string()),
        }
    }

    pub(crate) fn program(diagnostics: impl Into<Diagnostics>, sources: &Arc<Sources>) -> Self {
        Self::Program { diagnostics: diagnostics.into(), sources: sources.clone() }
    }
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
