//! Dead code elimination: instructions, stores, copies, carried values, results of branches, branches and loops without
//! a use.
//!
//! Backward passes find needed values until nothing changes: carried values and stores of a loop may be needed by its
//! own body. Checks stay, and so do carried values of conditional loops. An operator that would fail is removed if its
//! result is not needed.

use crate::events::{Event, events};
use crate::kernel::{Buffer, BufferId, Carried, Choice, Instr, Place, Reg, Stmt};
use crate::rebuild::{Pass, rebuild};
use chainrule_base::{Arena, Poly};

/// Removes dead code from `body`, of a kernel with `n_regs` registers and these `buffers`. Linear in its size; the
/// stack does not grow with its depth.
pub(crate) fn prune(body: &mut Vec<Stmt>, n_regs: usize, buffers: &Arena<BufferId, Buffer>) {
    let mut pass = Prune { needed: Needed::new(body, n_regs, buffers) };
    *body = rebuild(std::mem::take(body), &mut pass);
}

/// Maximum number of passes, after which all carried values and stores of loops count as needed.
const MAX_PASSES: usize = 8;

/// Needed registers and buffers.
struct Needed {
    regs: Arena<Reg, bool>,
    /// Buffers that are read or are results.
    buffers: Arena<BufferId, bool>,
    /// Buffers with a store that counted as dead in the current pass.
    in_vain: Arena<BufferId, bool>,
    /// Whether a value that counted as dead in this pass is needed.
    again: bool,
}

impl Needed {
    fn new(body: &[Stmt], n_regs: usize, buffers: &Arena<BufferId, Buffer>) -> Self {
        let n_buffers = buffers.len();
        let mut this = Self {
            regs: Arena::filled(n_regs, false),
            buffers: Arena::filled(n_buffers, false),
            in_vain: Arena::filled(n_buffers, false),
            again: false,
        };
        for (id, buffer) in buffers.iter() {
            this.buffers[id] = !matches!(buffer.place, Place::Workspace(_));
        }
        let events = events(body);
        for passes in 1.. {
            for event in events.iter().rev() {
                this.see(event);
            }
            if !std::mem::take(&mut this.again) {
                break;
            }
            this.in_vain = Arena::filled(n_buffers, false);
            if passes == MAX_PASSES {
                this.take_all_for_needed(&events);
            }
        }
        this
    }

    /// Marks carried values and stores as needed; one more pass then finds the rest.
    fn take_all_for_needed(&mut self, events: &[Event<'_>]) {
        self.buffers = Arena::filled(self.buffers.len(), true);
        for event in events {
            if let Event::For { carried, .. } = event {
                carried.iter().for_each(|c| self.regs[c.var] = true);
            }
        }
    }

    fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::Instr(instr) => {
                if let Instr::Store { buffer, .. } = instr {
                    self.in_vain[*buffer] |= !self.buffers[*buffer];
                }
                if self.is_needed(instr) {
                    instr.for_each_use(|r| self.regs[r] = true);
                    if let Instr::Load { buffer, .. } = instr {
                        self.read(*buffer);
                    }
                }
            }
            Event::Copy { to, from, len, .. } => {
                self.in_vain[to.0] |= !self.buffers[to.0];
                if self.buffers[to.0] {
                    [&to.1, &from.1, *len].into_iter().for_each(|p| self.number(p));
                    self.read(from.0);
                }
            }
            Event::For { count, carried, .. } => {
                self.number(count);
                // The needs of the body are only known here.
                for c in *carried {
                    if self.regs[c.var] {
                        self.again |= !self.regs[c.next];
                        [c.init, c.next].into_iter().for_each(|r| self.regs[r] = true);
                    }
                }
            }
            Event::While { limit, .. } => self.number(limit),
            Event::EndFor { carried, .. } => {
                for c in *carried {
                    self.regs[c.next] |= self.regs[c.var];
                }
            }
            Event::EndWhile { carried } => {
                carried.iter().flat_map(|c| [c.next, c.init]).for_each(|r| self.regs[r] = true);
            }
            Event::Test { holds: r, .. } | Event::If { condition: r } => self.regs[*r] = true,
            Event::EndIf { choices } => {
                for c in *choices {
                    if self.regs[c.var] {
                        [c.then, c.otherwise].into_iter().for_each(|r| self.regs[r] = true);
                    }
                }
            }
            Event::Else { .. } => {}
        }
    }

    fn is_needed(&self, instr: &Instr) -> bool {
        match instr {
            Instr::Store { buffer, .. } => self.buffers[*buffer],
            _ => instr.dst().is_none_or(|dst| self.regs[dst]),
        }
    }

    fn read(&mut self, buffer: BufferId) {
        self.buffers[buffer] = true;
        self.again |= std::mem::take(&mut self.in_vain[buffer]);
    }

    fn number(&mut self, poly: &Poly<Reg>) {
        poly.terms().flat_map(|(monomial, _)| monomial).for_each(|r| self.regs[*r] = true);
    }
}

struct Prune {
    needed: Needed,
}

impl Pass for Prune {
    fn code(&mut self, mut code: Vec<Instr>) -> Vec<Instr> {
        code.retain(|instr| self.needed.is_needed(instr));
        code
    }

    fn copy(
        &mut self,
        to: &mut (BufferId, Poly<Reg>),
        _from: &mut (BufferId, Poly<Reg>),
        _len: &mut Poly<Reg>,
    ) -> bool {
        self.needed.buffers[to.0]
    }

    fn close_for(
        &mut self,
        _index: Reg,
        carried: &mut Vec<Carried>,
        body: &mut Vec<Stmt>,
        _before: &mut Vec<Instr>,
    ) -> bool {
        carried.retain(|c| self.needed.regs[c.var]);
        !(body.is_empty() && carried.is_empty())
    }

    fn close_if(
        &mut self,
        _condition: Reg,
        choices: &mut Vec<Choice>,
        arms: [&mut Vec<Stmt>; 2],
        _before: &mut Vec<Instr>,
    ) -> bool {
        choices.retain(|choice| self.needed.regs[choice.var]);
        !(arms.iter().all(|arm| arm.is_empty()) && choices.is_empty())
    }
}
