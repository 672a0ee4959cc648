//! Accesses to buffers: which memory only a nest of loops uses.
//!
//! A pass that writes a nest twice gives the copy memory of its own ([`Mentions::own`]): a buffer that only one loop
//! accesses can be private to its iterations.

use crate::events::walk;
use crate::kernel::{Buffer, BufferId, Place, Stmt};
use chainrule_base::Arena;
use std::collections::BTreeMap;

/// Accesses to a buffer.
#[derive(Clone, Default)]
pub(crate) struct Mention {
    /// Number of loads, stores and sides of copies.
    pub n: usize,
    pub writes: bool,
    is_written_first: bool,
}

/// Accesses to the buffers of a block.
#[derive(Default)]
pub(crate) struct Mentions(BTreeMap<BufferId, Mention>);

impl Mentions {
    /// Counts the accesses in `body`. Linear.
    pub fn of(body: &[Stmt]) -> Self {
        let mut all: BTreeMap<BufferId, Mention> = BTreeMap::new();
        for event in walk(body) {
            event.for_each_access(|buffer, writes| {
                let found = all.entry(buffer).or_default();
                found.is_written_first |= writes && found.n == 0;
                found.writes |= writes;
                found.n += 1;
            });
        }
        Self(all)
    }

    /// Iterates over the buffers.
    pub fn iter(&self) -> impl Iterator<Item = (BufferId, &Mention)> {
        self.0.iter().map(|(buffer, found)| (*buffer, found))
    }

    /// Returns the accesses to `buffer`, if there are any.
    pub fn get(&self, buffer: BufferId) -> Option<&Mention> {
        self.0.get(&buffer)
    }

    /// Returns whether `buffer` is memory that only a part of the block uses, which has the accesses `part`.
    pub fn is_memory_of(&self, part: &Self, buffers: &Arena<BufferId, Buffer>, buffer: BufferId) -> bool {
        let n = |of: &Self| of.get(buffer).map(|found| found.n);
        matches!(buffers[buffer].place, Place::Workspace(_)) && n(self) == n(part)
    }

    /// As [`Self::is_memory_of`], for memory that the part writes first.
    pub fn is_private(&self, part: &Self, buffers: &Arena<BufferId, Buffer>, buffer: BufferId) -> bool {
        part.get(buffer).is_some_and(|found| found.is_written_first) && self.is_memory_of(part, buffers, buffer)
    }

    /// Counts another copy of `nest`, a part of the block. Returns new names, for this copy, of the buffers that are
    /// private to the nest; their memory stays. Linear in the nest.
    pub fn own(&mut self, buffers: &mut Arena<BufferId, Buffer>, nest: &[Stmt]) -> BTreeMap<BufferId, BufferId> {
        let mut names = BTreeMap::new();
        let part = Self::of(nest);
        for (buffer, found) in part.iter() {
            if self.is_private(&part, buffers, buffer) {
                let own = buffers.push(buffers[buffer].clone());
                names.insert(buffer, own);
                self.0.insert(own, found.clone());
            } else if let Some(all) = self.0.get_mut(&buffer) {
                all.n += found.n;
            }
        }
        names
    }
}
