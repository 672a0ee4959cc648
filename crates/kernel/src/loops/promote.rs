//! Promotion of array elements to registers: elements at constant indices that a loop reads and writes become
//! loop-carried values.
//!
//! ```text
//! for i in 0..n                  r1 = load b[0]
//!   r2 = load b[0]               for i in 0..n, r2 = r1 then r3
//!   r3 = mul r2, x                 r3 = mul r2, x
//!   store b[0] = r3              store b[0] = r2
//! ```
//!
//! Small states of loops are such arrays. A step then waits for arithmetic, not for memory that holds the last step.
//!
//! All accesses to the array in the loop have constant indices, and one of them reads what an earlier iteration wrote:
//! the array is live in the whole loop, so that no other one is in its place before or after it.

use crate::events::{Event, events};
use crate::kernel::{BufferId, Carried, Choice, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::prune::prune;
use crate::rebuild::{Aliases, Pass, Rounds, each_statement, rebuild};
use crate::registers::Registers;
use chainrule_base::Poly;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of elements that a loop has in registers. A processor has 16 vector registers at least.
const MAX_ELEMENTS: usize = 12;

/// Element of a buffer.
type Element = (BufferId, i64);

/// Promotes elements in the outermost loops where that is possible. Linear in the size of `kernel` times the depth of
/// its loops.
pub(crate) fn promote(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    let mut any = false;
    each_statement(&mut body, |stmt, done| match Elements::of(kernel, &stmt) {
        Some(elements) => {
            promote_in(kernel, stmt, elements, done);
            any = true;
        }
        None => done.push(stmt),
    });
    if any {
        prune(&mut body, kernel.regs.len(), &kernel.buffers);
    }
    kernel.body = body;
}

/// Elements to promote in a loop.
struct Elements {
    all: BTreeSet<Element>,
    /// Those stored to in each loop, the loop itself first, then those in it as they open.
    stored: Vec<BTreeSet<Element>>,
}

/// Accesses to a buffer in a loop.
#[derive(Default)]
struct Accesses {
    elements: BTreeSet<i64>,
    stored: BTreeSet<i64>,
    /// Whether an element is read that no earlier statement of the loop stores to.
    reads_before: bool,
    /// Whether an index varies, a copy accesses several elements, or a condition stores.
    varies: bool,
}

impl Elements {
    fn of(kernel: &Kernel, stmt: &Stmt) -> Option<Self> {
        if !matches!(stmt, Stmt::For { order: Order::InOrder, .. } | Stmt::While { .. }) {
            return None;
        }
        let mut accesses: BTreeMap<BufferId, Accesses> = BTreeMap::new();
        let mut stored: Vec<BTreeSet<Element>> = Vec::new();
        // Open loops, by number.
        let mut open: Vec<usize> = Vec::new();
        // Open conditions: what they compute is not in scope in the body.
        let mut conditions = 0;
        for event in events(std::slice::from_ref(stmt)) {
            match event {
                Event::For { order: Order::Parts, .. } => return None,
                Event::For { .. } | Event::While { .. } => {
                    conditions += usize::from(matches!(event, Event::While { .. }));
                    open.push(stored.len());
                    stored.push(BTreeSet::new());
                }
                Event::Test { .. } => conditions -= 1,
                Event::EndFor { .. } | Event::EndWhile { .. } => {
                    open.pop();
                }
                Event::Copy { to, from, .. } => {
                    accesses.entry(to.0).or_default().varies = true;
                    accesses.entry(from.0).or_default().varies = true;
                }
                Event::Instr(Instr::Load { buffer, at, .. }) => {
                    let uses = accesses.entry(*buffer).or_default();
                    match constant(kernel, *buffer, at) {
                        Some(at) => {
                            uses.elements.insert(at);
                            uses.reads_before |= !uses.stored.contains(&at);
                        }
                        None => uses.varies = true,
                    }
                }
                Event::Instr(Instr::Store { buffer, at, .. }) => {
                    let uses = accesses.entry(*buffer).or_default();
                    match constant(kernel, *buffer, at) {
                        Some(at) if conditions == 0 => {
                            uses.elements.insert(at);
                            uses.stored.insert(at);
                            for number in &open {
                                stored[*number].insert((*buffer, at));
                            }
                        }
                        _ => uses.varies = true,
                    }
                }
                _ => {}
            }
        }
        let mut all = BTreeSet::new();
        for (buffer, uses) in &accesses {
            let is_state = !uses.varies && uses.reads_before && !uses.stored.is_empty();
            if is_state && kernel.buffers[*buffer].class == Class::Real {
                all.extend(uses.elements.iter().map(|at| (*buffer, *at)));
            }
        }
        if all.is_empty() || all.len() > MAX_ELEMENTS {
            return None;
        }
        stored.iter_mut().for_each(|elements| elements.retain(|element| all.contains(element)));
        Some(Self { all, stored })
    }
}

/// Returns an index that is a constant inside its buffer: the element can be read where the loop does not run.
fn constant(kernel: &Kernel, buffer: BufferId, at: &Poly<Reg>) -> Option<i64> {
    let (at, len) = (at.as_constant()?, kernel.buffers[buffer].len.as_constant()?);
    (0..len).contains(&at).then_some(at)
}

/// Appends the loop `stmt`, with loads before and stores after it.
fn promote_in(kernel: &mut Kernel, stmt: Stmt, elements: Elements, done: &mut Vec<Stmt>) {
    let Elements { all, stored } = elements;
    let mut current = BTreeMap::new();
    let mut loads = Vec::new();
    for (buffer, at) in &all {
        let dst = kernel.regs.push(Class::Real);
        loads.push(Instr::Load { dst, buffer: *buffer, at: Poly::constant(*at) });
        current.insert((*buffer, *at), dst);
    }
    let written = stored[0].clone();
    let mut pass = Promote {
        regs: &mut kernel.regs,
        current,
        aliases: Aliases::default(),
        stored: stored.into_iter(),
        loops: Vec::new(),
        branches: Vec::new(),
    };
    let body = rebuild(vec![stmt], &mut pass);
    let store = |element: &Element| Instr::Store {
        buffer: element.0,
        at: Poly::constant(element.1),
        value: pass.current[element],
    };
    let stores = written.iter().map(store).collect();
    done.push(Stmt::Straight(loads));
    done.extend(body);
    done.push(Stmt::Straight(stores));
}

/// A promotion in progress.
struct Promote<'k> {
    regs: &'k mut Registers,
    /// Register of each element.
    current: BTreeMap<Element, Reg>,
    /// Replacements of loaded registers.
    aliases: Aliases,
    /// Elements stored to in each loop that is not open yet.
    stored: std::vec::IntoIter<BTreeSet<Element>>,
    /// Elements carried by each open loop, with their carried registers; `next` is not known yet.
    loops: Vec<Vec<(Element, Carried)>>,
    /// Registers of elements before each open branch, and after its first side.
    branches: Vec<BTreeMap<Element, Reg>>,
}

impl Promote<'_> {
    fn of(&self, r: Reg) -> Reg {
        self.aliases.of(r)
    }

    fn open(&mut self, carried: &mut [Carried]) {
        carried.iter_mut().for_each(|c| c.init = self.of(c.init));
        let mut added = Vec::new();
        for element in self.stored.next().unwrap_or_default() {
            let (var, init) = (self.regs.push(Class::Real), self.current[&element]);
            added.push((element, Carried { var, init, next: init }));
            self.current.insert(element, var);
        }
        self.loops.push(added);
    }

    fn close(&mut self, carried: &mut Vec<Carried>) {
        carried.iter_mut().for_each(|c| c.next = self.of(c.next));
        for (element, c) in self.loops.pop().unwrap_or_default() {
            let next = self.current.insert(element, c.var).unwrap_or(c.init);
            carried.push(Carried { next, ..c });
        }
    }

    fn instr(&mut self, mut instr: Instr) -> Option<Instr> {
        self.aliases.operands(&mut instr);
        match &instr {
            Instr::Load { dst, buffer, at } => {
                if let Some(same) = at.as_constant().and_then(|at| self.current.get(&(*buffer, at))) {
                    self.aliases.set(*dst, *same);
                    return None;
                }
            }
            Instr::Store { buffer, at, value } => {
                if let Some(at) = at.as_constant()
                    && let Some(current) = self.current.get_mut(&(*buffer, at))
                {
                    *current = *value;
                    return None;
                }
            }
            _ => {}
        }
        Some(instr)
    }
}

impl Pass for Promote<'_> {
    fn code(&mut self, code: Vec<Instr>) -> Vec<Instr> {
        code.into_iter().filter_map(|instr| self.instr(instr)).collect()
    }

    fn open_for(&mut self, _index: Reg, _count: &mut Poly<Reg>, carried: &mut [Carried], _order: Order) -> Rounds {
        self.open(carried);
        Rounds::Loop
    }

    fn close_for(
        &mut self,
        _index: Reg,
        carried: &mut Vec<Carried>,
        _body: &mut Vec<Stmt>,
        _before: &mut Vec<Instr>,
    ) -> bool {
        self.close(carried);
        true
    }

    fn open_while(&mut self, _limit: &mut Poly<Reg>, carried: &mut [Carried]) {
        self.open(carried);
    }

    fn close_while(&mut self, carried: &mut Vec<Carried>) {
        self.close(carried);
    }

    fn open_if(&mut self, _condition: &mut Reg) -> Option<bool> {
        self.branches.push(self.current.clone());
        None
    }

    fn middle(&mut self, choices: &mut [Choice]) {
        choices.iter_mut().for_each(|c| c.then = self.of(c.then));
        if let Some(before) = self.branches.last_mut() {
            std::mem::swap(before, &mut self.current);
        }
    }

    fn close_if(
        &mut self,
        _condition: Reg,
        choices: &mut Vec<Choice>,
        _arms: [&mut Vec<Stmt>; 2],
        _before: &mut Vec<Instr>,
    ) -> bool {
        choices.iter_mut().for_each(|c| c.otherwise = self.of(c.otherwise));
        for (element, then) in self.branches.pop().unwrap_or_default() {
            let otherwise = self.current[&element];
            if then != otherwise {
                let var = self.regs.push(Class::Real);
                choices.push(Choice { var, then, otherwise });
                self.current.insert(element, var);
            }
        }
        true
    }
}
