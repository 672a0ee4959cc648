//! The registers of a kernel.
//!
//! Each has a class. An integer that is computed may also have a message for the case that it does not fit into 64
//! bits, with the source span of its computation. No code depends on these messages.

use crate::kernel::{Class, Reg};
use chainrule_base::{Arena, Span};
use std::collections::BTreeMap;
use std::ops::Deref;

/// Message for an integer that does not fit.
pub const OVERFLOW: &str = "an integer does not fit into 64 bits";

/// Classes of the registers, and messages about integers that do not fit.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    classes: Arena<Reg, Class>,
    /// Message of each integer that has one, as an index into `messages`.
    overflows: BTreeMap<Reg, usize>,
    messages: Vec<(String, Option<Span>)>,
}

impl Registers {
    /// Returns an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a register of this class.
    pub fn push(&mut self, class: Class) -> Reg {
        self.classes.push(class)
    }

    /// Adds a register of the class and with the message of `r`.
    pub fn copy(&mut self, r: Reg) -> Reg {
        let copy = self.push(self.classes[r]);
        self.computes(copy, r);
        copy
    }

    /// Gives `r` the message of `other`.
    pub(crate) fn computes(&mut self, r: Reg, other: Reg) {
        if let Some(message) = self.overflows.get(&other) {
            self.overflows.insert(r, *message);
        }
    }

    /// Sets the source span of the computation of `r`, or of the trip count of the loop that `r` counts.
    pub(crate) fn computed_at(&mut self, r: Reg, span: Span) {
        if self.messages.last().is_none_or(|(_, last)| *last != Some(span)) {
            self.messages.push((OVERFLOW.to_owned(), Some(span)));
        }
        self.overflows.insert(r, self.messages.len() - 1);
    }

    /// Returns the message about `r`, or about the trip count of the loop that `r` counts, with its source span.
    #[must_use]
    pub fn overflow(&self, r: Reg) -> Option<&(String, Option<Span>)> {
        self.messages.get(*self.overflows.get(&r)?)
    }

    /// Returns the messages.
    #[must_use]
    pub fn messages(&self) -> &[(String, Option<Span>)] {
        &self.messages
    }

    /// Returns the registers that have a message, ascending, with its index.
    pub(crate) fn overflows(&self) -> &BTreeMap<Reg, usize> {
        &self.overflows
    }

    /// Sets the messages, and the index of that of each register.
    pub(crate) fn set_messages(&mut self, messages: Vec<(String, Option<Span>)>, overflows: BTreeMap<Reg, usize>) {
        (self.messages, self.overflows) = (messages, overflows);
    }
}

impl Deref for Registers {
    type Target = Arena<Reg, Class>;

    fn deref(&self) -> &Self::Target {
        &self.classes
    }
}

impl From<Arena<Reg, Class>> for Registers {
    fn from(classes: Arena<Reg, Class>) -> Self {
        Self { classes, ..Self::default() }
    }
}
