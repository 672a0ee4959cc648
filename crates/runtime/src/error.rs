//! Errors of running a compiled program.

use chainrule_base::Span;
use chainrule_base::diagnostic::{Diagnostic, Label};
use chainrule_ops::Op;
use std::fmt;

/// An error of running a compiled program.
#[derive(Clone, PartialEq, Debug)]
pub enum RunError {
    /// The arguments do not fit the program. Found before anything is written.
    Argument {
        /// Argument and the mismatch.
        message: String,
        /// Sizes that decide.
        reason: Option<String>,
        /// Part of the program that requires it.
        span: Option<Span>,
    },
    /// A check of the program failed while it ran: an index out of range, a loop without end, an
    /// integer too large. The outputs hold nothing defined.
    Failure {
        /// Check that failed.
        message: String,
        /// Numbers that made it fail.
        reason: Option<String>,
        /// Source position.
        span: Option<Span>,
        /// First point of a batch for which the check may have failed.
        point: Option<usize>,
    },
    /// The kernel breaks its own rules: an address outside its buffer.
    Bug(String),
}

/// Numbers that made a check fail.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason<'a> {
    /// An index that is negative or not below a length.
    Index {
        /// The index.
        index: i64,
        /// The length.
        len: i64,
    },
    /// A loop took more steps than this limit.
    Limit(i64),
    /// An integer operator has no result for these arguments.
    NoResult(Op, &'a [i64]),
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index { index, len } => write!(f, "the index is {index}, the length {len}"),
            Self::Limit(limit) => write!(f, "the limit is {limit}"),
            Self::NoResult(op, args) => {
                let shown: Vec<String> = args.iter().map(ToString::to_string).collect();
                let shown = shown.join(" and ");
                match op {
                    Op::Quot | Op::Mod if args.get(1) == Some(&0) => {
                        write!(f, "this is a division by zero, of {shown}")
                    }
                    _ => write!(f, "the arguments are {shown}"),
                }
            }
        }
    }
}

impl RunError {
    /// Returns the error for an argument that does not fit.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::Argument { message: message.into(), reason: None, span: None }
    }

    /// Returns the error with the point of a batch at which it occurred.
    #[must_use]
    pub fn at_point(self, index: usize) -> Self {
        match self {
            Self::Failure { message, reason, span, point: None } => {
                Self::Failure { message, reason, span, point: Some(index) }
            }
            other => other,
        }
    }

    fn point(&self) -> Option<usize> {
        if let Self::Failure { point, .. } = self { *point } else { None }
    }

    /// Returns the error as a diagnostic with its source position.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::Argument { message, reason, span } | Self::Failure { message, reason, span, .. } => {
                let labels = span.iter().map(|span| Label { span: *span, text: "here".to_owned() }).collect();
                let reason = match (self.point(), reason) {
                    (Some(point), Some(reason)) => Some(format!("{reason} (at point {point} of the batch)")),
                    (Some(point), None) => Some(format!("at point {point} of the batch")),
                    (None, reason) => reason.clone(),
                };
                Diagnostic { labels, reason, ..Diagnostic::error(message.clone()) }
            }
            Self::Bug(message) => Diagnostic::bug(message.clone()),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument { message, reason, .. } | Self::Failure { message, reason, .. } => {
                f.write_str(message)?;
                if let Some(reason) = reason {
                    write!(f, ": {reason}")?;
                }
                self.point().map_or(Ok(()), |point| write!(f, " (at point {point} of the batch)"))
            }
            Self::Bug(message) => write!(f, "bug in Chainrule: {message}"),
        }
    }
}

impl std::error::Error for RunError {}
