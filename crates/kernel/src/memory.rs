//! The memory plan: where workspace buffers lie.
//!
//! In: requests for buffers, whose lengths are over size registers, and their ends. Out: offsets over size registers only, and
//! the total: everything is known at entry.
//!
//! **Lengths.** A length over loop indices or computed integers is replaced by a bound over sizes
//! ([`chainrule_ir::bound`]) before it comes here.
//!
//! **Offsets.** A buffer gets the place of a dead one with the same length, or a new place after all
//! others. Places are handed out in the order of the kernel's text; since a buffer that is made in a loop
//! dies in the same iteration, its place is used again by the next one.

use crate::kernel::{Class, Reg};
use chainrule_base::Poly;
use std::collections::BTreeMap;

/// The workspace of one class.
#[derive(Clone, Default, Debug)]
struct Space {
    total: Option<Poly<Reg>>,
    /// Places of dead buffers by length; the last that died is the first used again.
    free: BTreeMap<Poly<Reg>, Vec<Poly<Reg>>>,
}

/// Hands out places in the workspace.
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

    /// The offset of a new buffer.
    pub fn place(&mut self, class: Class, len: &Poly<Reg>) -> Poly<Reg> {
        let space = self.space(class);
        if let Some(offset) = space.free.get_mut(len).and_then(Vec::pop) {
            return offset;
        }
        let offset = space.total.take().unwrap_or_else(Poly::zero);
        space.total = Some(offset.add(len));
        offset
    }

    /// Says that the buffer at `offset` is dead.
    pub fn release(&mut self, class: Class, len: &Poly<Reg>, offset: Poly<Reg>) {
        self.space(class).free.entry(len.clone()).or_default().push(offset);
    }

    /// How much workspace of the class is needed.
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
