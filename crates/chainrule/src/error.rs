//! What can go wrong, in one enum with sources.

use crate::report;
use chainrule_base::{Diagnostic, Diagnostics, Kind, Sources};
use std::sync::Arc;

/// What can go wrong between a function and its running code.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is wrong, or Chainrule cannot do it: messages with places in the texts.
    #[error("{}", report::render(diagnostics, sources, false))]
    Program {
        /// What is wrong.
        diagnostics: Diagnostics,
        /// The texts that it speaks of.
        sources: Arc<Sources>,
    },
    /// A request that does not fit the function: a name that is not there, a shape that is wrong.
    #[error("{message}\n  help: {help}")]
    Request {
        /// What is wrong.
        message: String,
        /// What to do.
        help: String,
    },
    /// Arguments that do not fit, or a failure while running (an index out of range, ...).
    #[error(transparent)]
    Run(#[from] chainrule_runtime::RunError),
    /// The observer of a batch ended it. The results of the points that are done are there.
    #[error("the batch was ended after {done} of {points} points")]
    Interrupted {
        /// How many points are done.
        done: usize,
        /// How many there were to do.
        points: usize,
    },
    /// A file could not be read.
    #[error("cannot read {path}")]
    Io {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// Chainrule is wrong. Please report it with the program that shows it.
    #[error("a bug in Chainrule {version}: {0}\n  help: {report}", version = report::VERSION, report = report::REPORT)]
    Bug(String),
}

impl Error {
    pub(crate) fn request(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Request { message: message.into(), help: help.into() }
    }

    /// A message about no text.
    pub(crate) fn lone(diagnostic: Diagnostic) -> Self {
        Self::Program { diagnostics: diagnostic.into(), sources: Arc::default() }
    }

    /// Whether nothing is wrong but that Chainrule cannot do it: too large for a budget, not supported yet.
    #[must_use]
    pub fn is_limitation(&self) -> bool {
        matches!(self, Self::Program { diagnostics, .. } if diagnostics.iter().all(|d| d.kind == Kind::Limitation))
    }

    /// The whole message, with the lines of source that it speaks of, in colours if so wished.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        match self {
            Self::Program { diagnostics, sources } => report::render(diagnostics, sources, color),
            other => report::printable(&other.to_string()),
        }
    }

    pub(crate) fn program(diagnostics: impl Into<Diagnostics>, sources: &Arc<Sources>) -> Self {
        Self::Program { diagnostics: diagnostics.into(), sources: sources.clone() }
    }
}

/// A result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
