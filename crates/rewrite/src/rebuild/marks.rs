//! Marks of variables with requests in a [`Plan`]: one look-up for each statement instead of one for each list.

use super::Plan;
use chainrule_base::Id;
use chainrule_ir::VarId;

/// Request of a [`Plan`] about a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Mark {
    Nothing,
    /// Its statement is written in a special way.
    How,
    /// Its statement is not written, or not at its position.
    Elsewhere,
}

impl Plan<'_> {
    /// Returns the marks of `n` variables.
    pub(super) fn marks(&self, n: usize) -> Vec<Mark> {
        let mut marks = vec![Mark::Nothing; n];
        let mut mark = |var: &VarId, mark: Mark| marks[var.index()] = mark.max(marks[var.index()]);
        self.fuse.keys().for_each(|var| mark(var, Mark::How));
        self.fields.keys().for_each(|var| mark(var, Mark::How));
        self.share.keys().for_each(|var| mark(var, Mark::How));
        self.branches.keys().for_each(|var| mark(var, Mark::How));
        self.factor.iter().for_each(|var| mark(var, Mark::How));
        self.deferred.keys().for_each(|var| mark(var, Mark::Elsewhere));
        self.merge.keys().for_each(|var| mark(var, Mark::Elsewhere));
        self.merged.iter().for_each(|var| mark(var, Mark::Elsewhere));
        self.dead.iter().for_each(|var| mark(var, Mark::Elsewhere));
        marks
    }
}
