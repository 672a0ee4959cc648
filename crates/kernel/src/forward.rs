//! Store-to-load forwarding, and removal of stores that are overwritten.
//!
//! ```text
//! store b[i] = x
//! y = load b[i]
//! z = add y, w         z = add x, w
//! store b[i] = z       store b[i] = z
//! ```
//!
//! In: a kernel. Out: the same values with fewer accesses, within each block of instructions. Buffers that nothing
//! reads any more are not written either. Results keep their bits; checks stay, in their order.
//!
//! Two addresses in a buffer are equal if their polynomials are, and different if these differ by a constant. Any other
//! two may be equal.

use crate::kernel::{BufferId, Carried, Choice, Instr, Kernel, Order, Reg, Stmt};
use crate::prune::prune;
use crate::rebuild::{Aliases, Pass, Rounds, rebuild};
use chainrule_base::Poly;
use rustc_hash::FxHashMap;

/// Forwards stored values to loads. Linear in the size of `kernel`.
pub(crate) fn forward(kernel: &mut Kernel) {
    let mut pass = Forward::default();
    kernel.body = rebuild(std::mem::take(&mut kernel.body), &mut pass);
    if pass.changed {
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
    }
}

#[derive(Default)]
struct Forward {
    /// Registers of removed loads, with the values that they would load.
    aliases: Aliases,
    changed: bool,
}

/// Elements of one buffer at constant distances from an address, each with what is known about it.
struct Row<T> {
    base: Poly<Reg>,
    elements: FxHashMap<i64, T>,
}

/// Elements of each buffer that are known to differ from one another.
struct Rows<T>(FxHashMap<BufferId, Row<T>>);

impl<T> Rows<T> {
    /// Records a fact about an element. Facts about elements that may be the same one end.
    fn insert(&mut self, buffer: BufferId, at: &Poly<Reg>, fact: T) {
        let (base, offset) = at.split_constant();
        let row = self.0.entry(buffer).or_insert_with(|| Row { base: base.clone(), elements: FxHashMap::default() });
        if row.base != base {
            *row = Row { base, elements: FxHashMap::default() };
        }
        row.elements.insert(offset, fact);
    }

    fn get(&self, buffer: BufferId, at: &Poly<Reg>) -> Option<&T> {
        let row = self.0.get(&buffer)?;
        let (base, offset) = at.split_constant();
        (row.base == base).then(|| row.elements.get(&offset)).flatten()
    }

    /// Ends the facts about the element, and about those that may be the same one.
    fn remove(&mut self, buffer: BufferId, at: &Poly<Reg>) {
        let Some(row) = self.0.get_mut(&buffer) else { return };
        let (base, offset) = at.split_constant();
        if row.base == base {
            row.elements.remove(&offset);
        } else {
            self.0.remove(&buffer);
        }
    }
}

impl Forward {
    /// Removes the loads of `code` whose values are stored before.
    fn loads(&mut self, code: &mut Vec<Instr>) {
        let mut stored = Rows(FxHashMap::default());
        code.retain_mut(|instr| {
            self.aliases.operands(instr);
            match instr {
                Instr::Store { buffer, at, value } => stored.insert(*buffer, at, *value),
                Instr::Load { dst, buffer, at } => {
                    if let Some(value) = stored.get(*buffer, at) {
                        self.aliases.set(*dst, *value);
                        self.changed = true;
                        return false;
                    }
                }
                _ => {}
            }
            true
        });
    }

    /// Removes the stores of `code` that later ones overwrite.
    fn stores(&mut self, code: &mut Vec<Instr>) {
        let mut overwritten = Rows(FxHashMap::default());
        let mut kept = Vec::with_capacity(code.len());
        for instr in std::mem::take(code).into_iter().rev() {
            match &instr {
                Instr::Store { buffer, at, .. } => {
                    if overwritten.get(*buffer, at).is_some() {
                        self.changed = true;
                        continue;
                    }
                    overwritten.insert(*buffer, at, ());
                }
                Instr::Load { buffer, at, .. } => overwritten.remove(*buffer, at),
                _ => {}
            }
            kept.push(instr);
        }
        kept.reverse();
        *code = kept;
    }
}

impl Pass for Forward {
    fn code(&mut self, mut code: Vec<Instr>) -> Vec<Instr> {
        self.loads(&mut code);
        if code.iter().filter(|instr| matches!(instr, Instr::Store { .. })).nth(1).is_some() {
            self.stores(&mut code);
        }
        code
    }

    fn copy(&mut self, to: &mut (BufferId, Poly<Reg>), from: &mut (BufferId, Poly<Reg>), len: &mut Poly<Reg>) -> bool {
        [&mut to.1, &mut from.1, len].into_iter().for_each(|poly| self.aliases.poly(poly));
        true
    }

    fn open_for(&mut self, _: Reg, count: &mut Poly<Reg>, carried: &mut [Carried], _: Order) -> Rounds {
        self.aliases.poly(count);
        carried.iter_mut().for_each(|c| self.aliases.reg(&mut c.init));
        Rounds::Loop
    }

    fn close_for(&mut self, _: Reg, carried: &mut Vec<Carried>, _: &mut Vec<Stmt>, _: &mut Vec<Instr>) -> bool {
        carried.iter_mut().for_each(|c| self.aliases.reg(&mut c.next));
        true
    }

    fn open_while(&mut self, limit: &mut Poly<Reg>, carried: &mut [Carried]) {
        self.aliases.poly(limit);
        carried.iter_mut().for_each(|c| self.aliases.reg(&mut c.init));
    }

    fn test(&mut self, holds: &mut Reg, _: usize) {
        self.aliases.reg(holds);
    }

    fn close_while(&mut self, carried: &mut Vec<Carried>) {
        carried.iter_mut().for_each(|c| self.aliases.reg(&mut c.next));
    }

    fn open_if(&mut self, condition: &mut Reg) -> Option<bool> {
        self.aliases.reg(condition);
        None
    }

    fn middle(&mut self, choices: &mut [Choice]) {
        choices.iter_mut().for_each(|c| self.aliases.reg(&mut c.then));
    }

    fn close_if(&mut self, _: Reg, choices: &mut Vec<Choice>, _: [&mut Vec<Stmt>; 2], _: &mut Vec<Instr>) -> bool {
        choices.iter_mut().for_each(|c| self.aliases.reg(&mut c.otherwise));
        true
    }
}
