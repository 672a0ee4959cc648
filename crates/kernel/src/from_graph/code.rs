//! Code under construction: instructions, the registers they define, and pending stores.

use super::beside::put_beside;
use super::look::{NONE, State};
use crate::kernel::{BufferId, Class, Instr, Reg};
use chainrule_base::{Arena, Id, Poly, large};

/// Buffer and element of an input of the graph.
pub(super) type Load = (BufferId, i64);

/// Instructions so far, and the targets of pending stores.
pub(super) struct Code {
    instrs: Vec<Instr>,
    /// Number of registers, and those of class `Int`.
    n_regs: u32,
    ints: Vec<Reg>,
    /// Linked lists of store targets: buffer, element, and the index of the node's next target or [`NONE`].
    stores: Vec<(BufferId, i64, u32)>,
    /// Positions of stores of computed numbers, each with the number of products fused before it.
    stored: Vec<(usize, usize)>,
}

impl Code {
    /// Returns empty code with capacity for `n_nodes` nodes and `n_stores` stores.
    pub(super) fn with_room(n_nodes: usize, n_stores: usize) -> Self {
        Self {
            instrs: large::with_capacity(n_nodes + n_stores),
            n_regs: 0,
            ints: Vec::new(),
            stores: large::with_capacity(n_stores),
            stored: large::with_capacity(n_stores),
        }
    }

    /// Returns the classes of the registers and the instructions, with adjacent elements stored in pairs.
    pub(super) fn finish(mut self) -> (Arena<Reg, Class>, Vec<Instr>) {
        put_beside(&mut self.instrs, &self.stored);
        let mut regs = Arena::filled(self.n_regs as usize, Class::Real);
        self.ints.iter().for_each(|int| regs[*int] = Class::Int);
        (regs, self.instrs)
    }

    /// Appends an instruction, constructed in its final location. `Vec::push` would construct it on the stack, since it
    /// must be dropped if the vector cannot grow, and copy it; the copy waits for the parts just written.
    #[inline(always)]
    fn append(&mut self, make: impl FnOnce() -> Instr) {
        self.instrs.extend(std::iter::once_with(make));
    }

    /// Returns a new register.
    #[inline]
    pub(super) fn reg(&mut self, class: Class) -> Reg {
        let reg = Reg::new(self.n_regs as usize);
        self.n_regs += 1;
        if class == Class::Int {
            self.ints.push(reg);
        }
        reg
    }

    /// Appends the definition of a new number.
    #[inline(always)]
    pub(super) fn define(&mut self, make: impl FnOnce(Reg) -> Instr) -> Reg {
        let dst = self.reg(Class::Real);
        self.append(|| make(dst));
        dst
    }

    /// Appends the definition of a new truth value.
    pub(super) fn define_int(&mut self, make: impl FnOnce(Reg) -> Instr) -> Reg {
        let dst = self.reg(Class::Int);
        self.append(|| make(dst));
        dst
    }

    /// Loads the input of `state`, marks it as computed and returns its register; [`NONE`] if `state` is no input, or
    /// the input is in no argument.
    pub(super) fn load(&mut self, state: &mut State, loads: &[Option<Load>]) -> u32 {
        let Some((buffer, at)) = state.as_input().and_then(|input| *loads.get(input)?) else { return NONE };
        let dst = self.define(|dst| Instr::Load { dst, buffer, at: Poly::constant(at) });
        (state.real, state.flags) = (dst.index() as u32, state.flags | State::DONE);
        state.real
    }

    /// Adds a store target to the list that begins at `next`; returns the start of the new list.
    pub(super) fn note_store(&mut self, buffer: BufferId, at: i64, next: u32) -> u32 {
        self.stores.push((buffer, at, next));
        self.stores.len() as u32 - 1
    }

    /// Stores `value` to the targets of the list that begins at `first`. After `n_fused` fused products, if that is
    /// known, each store may be delayed to pair it with the store of an adjacent element.
    pub(super) fn store(&mut self, value: Reg, first: u32, n_fused: Option<usize>) {
        let mut store = first;
        while store != NONE {
            let (buffer, at, next) = self.stores[store as usize];
            if let Some(n_fused) = n_fused {
                self.stored.push((self.instrs.len(), n_fused));
            }
            self.append(|| Instr::Store { buffer, at: Poly::constant(at), value });
            store = next;
        }
    }
}
