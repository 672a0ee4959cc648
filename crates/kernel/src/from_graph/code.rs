//! The code that a graph is lowered to, in the making: instructions, the registers they define, and where numbers go.

use super::beside::put_beside;
use super::look::{NONE, State};
use crate::kernel::{BufferId, Class, Instr, Reg};
use chainrule_base::{Arena, Id, Poly, large};

/// Where an input of the graph is: its buffer and element.
pub(super) type Load = (BufferId, i64);

/// Instructions so far, and where stores go that are still to come.
pub(super) struct Code {
    instrs: Vec<Instr>,
    /// How many registers there are, and which of them are of class `Int`.
    n_regs: u32,
    ints: Vec<Reg>,
    /// Where to store a node, and the next such place of the same node or [`NONE`].
    stores: Vec<(BufferId, i64, u32)>,
    /// Where in the code numbers are stored that are computed, and how many products were fused before.
    stored: Vec<(usize, usize)>,
}

impl Code {
    /// None yet, for so many nodes and so many places of outputs.
    pub(super) fn with_room(n_nodes: usize, n_stores: usize) -> Self {
        Self {
            instrs: large::with_capacity(n_nodes + n_stores),
            n_regs: 0,
            ints: Vec::new(),
            stores: large::with_capacity(n_stores),
            stored: large::with_capacity(n_stores),
        }
    }

    /// The classes of the registers, and the instructions, with stores beside each other where that is soon.
    pub(super) fn finish(mut self) -> (Arena<Reg, Class>, Vec<Instr>) {
        put_beside(&mut self.instrs, &self.stored);
        let mut regs = Arena::filled(self.n_regs as usize, Class::Real);
        self.ints.iter().for_each(|int| regs[*int] = Class::Int);
        (regs, self.instrs)
    }

    /// Writes an instruction where it stays. To `push` one means to put it together elsewhere, since it must be dropped if the
    /// code cannot grow, and to move it as a whole then; what was just written in parts processors wait for.
    #[inline(always)]
    fn append(&mut self, make: impl FnOnce() -> Instr) {
        self.instrs.extend(std::iter::once_with(make));
    }

    /// A new register.
    #[inline]
    pub(super) fn reg(&mut self, class: Class) -> Reg {
        let reg = Reg::new(self.n_regs as usize);
        self.n_regs += 1;
        if class == Class::Int {
            self.ints.push(reg);
        }
        reg
    }

    /// Writes what defines a new number.
    #[inline(always)]
    pub(super) fn define(&mut self, make: impl FnOnce(Reg) -> Instr) -> Reg {
        let dst = self.reg(Class::Real);
        self.append(|| make(dst));
        dst
    }

    /// The same for a new truth value.
    pub(super) fn define_int(&mut self, make: impl FnOnce(Reg) -> Instr) -> Reg {
        let dst = self.reg(Class::Int);
        self.append(|| make(dst));
        dst
    }

    /// Loads the input of the graph that `state` is of, which is done then: its register; [`NONE`] where it is no input, or no
    /// argument holds it.
    pub(super) fn load(&mut self, state: &mut State, loads: &[Option<Load>]) -> u32 {
        let Some((buffer, at)) = state.as_input().and_then(|input| *loads.get(input)?) else { return NONE };
        let dst = self.define(|dst| Instr::Load { dst, buffer, at: Poly::constant(at) });
        (state.real, state.flags) = (dst.index() as u32, state.flags | State::DONE);
        state.real
    }

    /// Notes where a node goes whose list of places begins with `next` so far; the list with this one.
    pub(super) fn note_store(&mut self, buffer: BufferId, at: i64, next: u32) -> u32 {
        self.stores.push((buffer, at, next));
        self.stores.len() as u32 - 1
    }

    /// Writes `value` to the places of a list that begins with `first`, after so many products were fused; where it `moves`, each
    /// may wait for what is stored beside it.
    pub(super) fn store(&mut self, value: Reg, first: u32, moves: bool, n_fused: usize) {
        let mut store = first;
        while store != NONE {
            let (buffer, at, next) = self.stores[store as usize];
            if moves {
                self.stored.push((self.instrs.len(), n_fused));
            }
            self.append(|| Instr::Store { buffer, at: Poly::constant(at), value });
            store = next;
        }
    }
}
