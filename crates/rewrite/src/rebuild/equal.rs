//! Sizes that are required to be equal, or to equal numbers.

use super::{Env, Rebuild};
use chainrule_ir::{EqualSizes, Size};

impl Rebuild<'_> {
    /// Records sizes that are required to be equal.
    pub(super) fn learn_equal(&mut self, equal: &EqualSizes, env: &Env<'_>) {
        for (var, number) in equal.numbers() {
            self.ranges.know(env.get(*var), *number);
        }
        for (replaced, kept) in equal.pairs() {
            self.ranges.equate(env.get(*replaced), env.get(*kept));
        }
    }

    /// Lets the body use one of equal sizes, or the number that they equal, so that its loops and arrays agree.
    pub(super) fn replace_equal(&mut self, equal: &EqualSizes, env: &mut Env<'_>) {
        for (var, number) in equal.numbers() {
            let number = self.int(Size::constant(*number));
            env.insert(*var, number);
        }
        for (replaced, kept) in equal.pairs() {
            env.insert(*replaced, env.get(*kept));
        }
    }
}
