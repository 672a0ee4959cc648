//! Memory planning: offsets of workspace buffers.
//!
//! In: requests for buffers, whose lengths are over size registers, and their ends. Out: offsets over size registers
//! only, and the total: everything is known at entry.
//!
//! **Lengths.** A length over loop indices or computed integers is replaced by a bound over sizes
//! ([`chainrule_ir::bound`]) before it comes here.
//!
//! **Offsets.** A buffer gets the offset of a dead one with the same length, or a new offset after all others, in
//! program order. A buffer made in a loop dies in the same iteration, so that the next iteration uses its memory again.

use crate::kernel::{Class, Reg};
use chainrule_base::Poly;
use std::collections::BTreeMap;

/// The workspace of one class.
#[derive(Clone, Default, Debug)]
struct Space {
    total: Option<Poly<Reg>>,
    /// Offsets of dead buffers by length; the last one freed is reused first.
    free: BTreeMap<Poly<Reg>, Vec<Poly<Reg>>>,
}

/// Planner of the workspace.
#[derive(Clone, Default, Debug)]
pub(crate) struct Planner {
    reals: Space,
    ints: Space,
}

impl Planner {
    fn space(&mut self, class: Class) -> &mut Space {
        match class {
            Class::Real => &mut self.reals,
            Class::Int => &mut self.ints,
        }
    }

    /// Returns the offset of a new buffer.
    pub fn place(&mut self, class: Class, len: &Poly<Reg>) -> Poly<Reg> {
        let space = self.space(class);
        if let Some(offset) = space.free.get_mut(len).and_then(Vec::pop) {
            return offset;
        }
        let offset = space.total.take().unwrap_or_else(Poly::zero);
        space.total = Some(offset.add(len));
        offset
    }

    /// Frees the buffer at `offset`.
    pub fn release(&mut self, class: Class, len: &Poly<Reg>, offset: Poly<Reg>) {
        self.space(class).free.entry(len.clone()).or_default().push(offset);
    }

    /// Returns the size of the workspace of a class.
    pub fn total(&self, class: Class) -> Poly<Reg> {
        let space = match class {
            Class::Real => &self.reals,
            Class::Int => &self.ints,
        };
        space.total.clone().unwrap_or_else(Poly::zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_base::Id;

    #[test]
    fn places_of_the_dead_are_used_again() {
        let mut planner = Planner::default();
        let (n, m) = (Poly::var(Reg::new(0)), Poly::var(Reg::new(1)));
        let a = planner.place(Class::Real, &n);
        let b = planner.place(Class::Real, &n);
        assert_eq!((a.to_string(), b.to_string()), ("0".to_owned(), "r0".to_owned()));
        planner.release(Class::Real, &n, a.clone());
        assert_eq!(planner.place(Class::Real, &m).to_string(), "2*r0");
        assert_eq!(planner.place(Class::Int, &n).to_string(), "0");
        assert_eq!(planner.place(Class::Real, &n), a);
        assert_eq!(planner.total(Class::Real).to_string(), "2*r0 + r1");
    }
}
