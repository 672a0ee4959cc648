//! Local names of a definition: parameters and local `let`s.

use super::core::LocalRef;
use super::pending::Scheme;
use chainrule_base::{Name, Span};
use rustc_hash::FxHashMap;

/// A local variable while it is in scope.
pub(super) struct Local {
    pub(super) name: Name,
    pub(super) place: LocalRef,
    pub(super) scheme: Scheme,
    pub(super) span: Span,
    pub(super) used: bool,
    /// Locals that its value mentions, as a range of [`Locals::mentions`]; empty for parameters.
    pub(super) mentions: std::ops::Range<usize>,
    /// Whether its value is a function literal.
    pub(super) is_function: bool,
}

/// Local names of the current definition.
#[derive(Default)]
pub(super) struct Locals {
    pub(super) all: Vec<Local>,
    /// Indices in `all` of the visible locals of each name, innermost last.
    pub(super) scope: FxHashMap<Name, Vec<usize>>,
    /// Visible locals in the order of their definitions.
    pub(super) bound: Vec<(Name, usize)>,
    /// Number of slots of each enclosing function.
    pub(super) functions: Vec<u32>,
    /// Locals in the order of their mentions.
    pub(super) mentions: Vec<usize>,
}

impl Locals {
    /// Returns the index in `all` of the innermost visible local of this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.scope.get(name).and_then(|stack| stack.last()).copied()
    }

    /// Adds a local to the current function.
    pub(super) fn bind(&mut self, name: &Name, scheme: Scheme, span: Span) -> LocalRef {
        let level = u32::try_from(self.functions.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let slot = self.functions.last_mut().map_or(0, |n| {
            *n += 1;
            *n - 1
        });
        let place = LocalRef { level, slot };
        let id = self.all.len();
        let local = Local { name: name.clone(), place, scheme, span, used: false, mentions: 0..0, is_function: false };
        self.all.push(local);
        self.scope.entry(name.clone()).or_default().push(id);
        self.bound.push((name.clone(), id));
        place
    }

    /// Removes the locals bound since `bound` had `mark` elements; returns them, innermost first.
    pub(super) fn unbind(&mut self, mark: usize) -> Vec<(Name, usize)> {
        let mut removed = self.bound.split_off(mark);
        removed.reverse();
        for (name, _) in &removed {
            if let Some(stack) = self.scope.get_mut(name) {
                stack.pop();
            }
        }
        removed
    }
}
