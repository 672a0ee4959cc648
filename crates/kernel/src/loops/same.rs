//! Congruent loop-carried values.
//!
//! ```text
//! for i in 0..n, s = a then s2, t = b then t2      for i in 0..n, s = a then s2
//!   s2 = s + x                                       s2 = s + x
//!   t2 = t + x
//! ```
//!
//! if `a` and `b` are the same. Fused loops have such sums.
//!
//! The analysis is optimistic: values with equal initial values are assumed congruent, and assumptions are withdrawn
//! until none is contradicted. This finds congruent sums of congruent sums.

use crate::events::{Event, events};
use crate::kernel::{BufferId, Class, Instr, Kernel, Place, Reg};
use crate::rebuild::Aliases;
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;
use std::collections::BTreeMap;

/// Maximum number of rounds; without convergence nothing is congruent.
const ROUNDS: usize = 8;

/// An operator and the representatives of its arguments.
type Computed = (Op, [Reg; 3]);

/// Returns the carried values that are congruent to an earlier one. Linear in `kernel` for each round.
pub(super) fn same(kernel: &Kernel) -> Option<Aliases> {
    let events = events(&kernel.body);
    let mut same = Same { kernel, of: kernel.regs.iter().map(|(r, _)| r).collect(), apart: BTreeMap::new() };
    for _ in 0..ROUNDS {
        if same.round(&events) {
            return same.aliases(&events);
        }
    }
    None
}

struct Same<'k> {
    kernel: &'k Kernel,
    /// Representative of each register, the first of its class.
    of: Vec<Reg>,
    /// New values of carried registers that were seen to differ.
    apart: BTreeMap<Reg, Vec<Reg>>,
}

impl Same<'_> {
    /// Runs one round; returns whether no assumption was withdrawn.
    fn round(&mut self, events: &[Event<'_>]) -> bool {
        let mut constants: BTreeMap<u64, Reg> = BTreeMap::new();
        let mut computed: BTreeMap<Computed, Reg> = BTreeMap::new();
        let mut read: BTreeMap<(BufferId, Poly<Reg>), Reg> = BTreeMap::new();
        let mut holds = true;
        for event in events {
            match event {
                Event::Instr(Instr::Const { dst, value }) => {
                    self.of[dst.index()] = *constants.entry(value.to_bits()).or_insert(*dst);
                }
                Event::Instr(Instr::Op { dst, op, args }) => {
                    let mut args = args.map(|r| self.of[r.index()]);
                    if matches!(op, Op::Add | Op::Mul) {
                        args[..2].sort_unstable();
                        args[2] = args[0];
                    }
                    self.of[dst.index()] = *computed.entry((*op, args)).or_insert(*dst);
                }
                // Inputs are never written.
                Event::Instr(Instr::Load { dst, buffer, at })
                    if matches!(self.kernel.buffers[*buffer].place, Place::Input(_)) =>
                {
                    let at = at.substitute(|r| Poly::var(self.of[r.index()]));
                    self.of[dst.index()] = *read.entry((*buffer, at)).or_insert(*dst);
                }
                Event::For { carried, .. } => {
                    let mut firsts: BTreeMap<(Reg, &[Reg]), Reg> = BTreeMap::new();
                    for c in carried.iter().filter(|c| self.kernel.regs[c.var] == Class::Real) {
                        let apart = self.apart.get(&c.var).map_or(&[][..], Vec::as_slice);
                        self.of[c.var.index()] = *firsts.entry((self.of[c.init.index()], apart)).or_insert(c.var);
                    }
                }
                Event::EndFor { carried, .. } => {
                    let mut nexts: BTreeMap<Reg, Reg> = BTreeMap::new();
                    for c in *carried {
                        let next = self.of[c.next.index()];
                        let first = *nexts.entry(self.of[c.var.index()]).or_insert(next);
                        if first != next {
                            self.apart.entry(c.var).or_default().push(next);
                            holds = false;
                        }
                    }
                }
                _ => {}
            }
        }
        holds
    }

    /// Returns the registers that are congruent to another.
    fn aliases(&self, events: &[Event<'_>]) -> Option<Aliases> {
        let mut aliases = Aliases::default();
        let mut any = false;
        for event in events {
            let Event::For { carried, .. } = event else { continue };
            for c in carried.iter().filter(|c| self.of[c.var.index()] != c.var) {
                aliases.set(c.var, self.of[c.var.index()]);
                any = true;
            }
        }
        any.then_some(aliases)
    }
}
