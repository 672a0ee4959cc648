//! Numbers that loops carry twice.
//!
//! ```text
//! for i in 0..n, s = a then s2, t = b then t2      for i in 0..n, s = a then s2
//!   s2 = s + x                                       s2 = s + x
//!   t2 = t + x
//! ```
//!
//! where `a` and `b` are the same. Loops that became one have such sums.
//!
//! Which are the same is first assumed, of all that begin with the same, and taken back as long as something shows that they
//! are not: what is assumed of a sum is then known of the sums of sums around it.

use crate::events::{Event, events};
use crate::kernel::{BufferId, Class, Instr, Kernel, Place, Reg};
use crate::rebuild::Aliases;
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;
use std::collections::BTreeMap;

/// Assumptions are taken back so often at most; then nothing is said to be the same.
const ROUNDS: usize = 8;

/// What is computed: an operator, and of its arguments which they are the same as.
type Computed = (Op, [Reg; 3]);

/// What loops carry that is the same as what they carry before it. Linear in `kernel` for each round.
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
    /// What each register is the same as, the first of those that are.
    of: Vec<Reg>,
    /// What carried registers become, as far as that was seen to differ from what others become.
    apart: BTreeMap<Reg, Vec<Reg>>,
}

impl Same<'_> {
    /// Looks at all once; whether nothing had to be taken back.
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
                // Nothing writes to inputs.
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

    /// Those that are the same as another.
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
