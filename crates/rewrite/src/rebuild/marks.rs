//! Of which variables a [`Plan`] says anything: looked up once for each statement, where the plan's lists are many.

use super::Plan;
use chainrule_base::Id;
use chainrule_ir::VarId;

/// What a [`Plan`] has to say of a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Mark {
    Nothing,
    /// How its statement is written.
    How,
    /// Its statement is not written, or not where it stands.
    Elsewhere,
}

impl Plan<'_> {
    /// The marks of `n` variables.
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
