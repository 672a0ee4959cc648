//! Promotion of array elements to registers: elements at indices that do not vary in a loop, which it reads and writes,
//! become loop-carried values.
//!
//! ```text
//! for i in 0..n                  r1 = load b[0]
//!   r2 = load b[0]               for i in 0..n, r2 = r1 then r3
//!   r3 = mul r2, x                 r3 = mul r2, x
//!   store b[0] = r3              store b[0] = r2
//! ```
//!
//! Small states of loops are such arrays: elements at constant indices, which stay in registers at the end, when loops
//! have their lanes. A step then waits for arithmetic, not for memory that holds the last step. Sums that a nest adds
//! to one element in its inner loop are such elements as well, at an index of the outer loop. They become sums in
//! registers before lanes are chosen, which run along either loop.
//!
//! All accesses to the array in the loop have such indices, and one of them reads what an earlier iteration wrote: the
//! array is live in the whole loop, so that no other one is in its place before or after it. An index is inside its
//! array where the loop begins: the element can be read where the loop does not run.

use crate::events::{Event, events};
use crate::kernel::{BufferId, Carried, Choice, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::prune::prune;
use crate::ranges::Ranges;
use crate::rebuild::{Aliases, Pass, Rounds, each_statement, rebuild};
use crate::registers::Registers;
use chainrule_base::Poly;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of elements that a loop has in registers. A processor has 16 vector registers at least.
const MAX_ELEMENTS: usize = 12;

/// Element of a buffer.
type Element = (BufferId, Poly<Reg>);

/// Promotes elements at constant indices in the outermost loops where that is possible. Linear in the size of `kernel`
/// times the depth of its loops.
pub(crate) fn promote(kernel: &mut Kernel) {
    promote_where(kernel, |kernel, _, buffer, at| {
        let (at, len) = (at.as_constant(), kernel.buffers[buffer].len.as_constant());
        at.zip(len).is_some_and(|(at, len)| (0..len).contains(&at))
    });
}

/// Promotes the elements to which inner loops add, at indices that vary outside of them, in the outermost loops where
/// that is possible. As costly as [`promote`].
pub(crate) fn promote_sums(kernel: &mut Kernel) {
    let sums = sums(kernel);
    if !sums.is_empty() {
        promote_where(kernel, |_, index, buffer, at| {
            index.is_some_and(|index| sums.get(&index).is_some_and(|all| all.get(&buffer) == Some(at)))
        });
    }
}

/// Returns the element of each buffer which is the only one that a counted loop accesses, by the index of the loop: at
/// an index that varies outside of the loop, and is inside of the buffer where the loop begins.
fn sums(kernel: &Kernel) -> BTreeMap<Reg, BTreeMap<BufferId, Poly<Reg>>> {
    let all = events(&kernel.body);
    let mut found: BTreeMap<Reg, BTreeMap<BufferId, Option<Poly<Reg>>>> = BTreeMap::new();
    let mut open: Vec<Reg> = Vec::new();
    let mut see = |open: &[Reg], buffer: BufferId, at: Option<&Poly<Reg>>| {
        for index in open {
            let only = found.entry(*index).or_default().entry(buffer).or_insert_with(|| at.cloned());
            if only.as_ref() != at {
                *only = None;
            }
        }
    };
    for event in &all {
        match event {
            Event::For { index, .. } => open.push(*index),
            Event::EndFor { .. } => drop(open.pop()),
            Event::Instr(Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. }) => {
                see(&open, *buffer, at.as_constant().is_none().then_some(at));
            }
            event => event.for_each_access(|buffer, _| see(&open, buffer, None)),
        }
    }
    let mut ranges = Ranges::new(kernel);
    let mut defined: BTreeSet<Reg> = kernel.sizes.iter().map(|size| size.reg).collect();
    let mut sums = BTreeMap::new();
    for event in &all {
        if let Event::For { index, order: Order::InOrder, .. } = event
            && let Some(elements) = found.remove(index)
        {
            let is_sum = |(buffer, at): (BufferId, Option<Poly<Reg>>)| {
                let at = at.filter(|at| at.vars().iter().all(|r| defined.contains(r)))?;
                ranges.is_inside(&at, &kernel.buffers[buffer].len).then_some((buffer, at))
            };
            let elements: BTreeMap<_, _> = elements.into_iter().filter_map(is_sum).collect();
            if !elements.is_empty() {
                sums.insert(*index, elements);
            }
        }
        event.for_each_def(|r| defined.extend([r]));
        ranges.event(event);
    }
    sums
}

/// Promotes elements in the outermost loops where that is possible: `may` is told the kernel, the index of a counted
/// loop, and an element.
fn promote_where(kernel: &mut Kernel, may: impl Fn(&Kernel, Option<Reg>, BufferId, &Poly<Reg>) -> bool) {
    let mut body = std::mem::take(&mut kernel.body);
    let mut any = false;
    each_statement(&mut body, |stmt, done| match Elements::of(kernel, &stmt, &may) {
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
    elements: BTreeSet<Poly<Reg>>,
    stored: BTreeSet<Poly<Reg>>,
    /// Whether an element is read that no earlier statement of the loop stores to.
    reads_before: bool,
    /// Whether an index varies, a copy accesses several elements, or a condition stores.
    varies: bool,
}

impl Elements {
    fn of(
        kernel: &Kernel,
        stmt: &Stmt,
        may: impl Fn(&Kernel, Option<Reg>, BufferId, &Poly<Reg>) -> bool,
    ) -> Option<Self> {
        let own = match stmt {
            Stmt::For { order: Order::InOrder, index, .. } => Some(*index),
            Stmt::While { .. } => None,
            _ => return None,
        };
        let may = |buffer: BufferId, at: &Poly<Reg>| may(kernel, own, buffer, at);
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
                    if may(*buffer, at) {
                        uses.elements.insert(at.clone());
                        uses.reads_before |= !uses.stored.contains(at);
                    } else {
                        uses.varies = true;
                    }
                }
                Event::Instr(Instr::Store { buffer, at, .. }) => {
                    let uses = accesses.entry(*buffer).or_default();
                    if conditions == 0 && may(*buffer, at) {
                        uses.elements.insert(at.clone());
                        uses.stored.insert(at.clone());
                        for number in &open {
                            stored[*number].insert((*buffer, at.clone()));
                        }
                    } else {
                        uses.varies = true;
                    }
                }
                _ => {}
            }
        }
        let mut all = BTreeSet::new();
        for (buffer, uses) in &accesses {
            let is_state = !uses.varies && uses.reads_before && !uses.stored.is_empty();
            if is_state && kernel.buffers[*buffer].class == Class::Real {
                all.extend(uses.elements.iter().map(|at| (*buffer, at.clone())));
            }
        }
        if all.is_empty() || all.len() > MAX_ELEMENTS {
            return None;
        }
        stored.iter_mut().for_each(|elements| elements.retain(|element| all.contains(element)));
        Some(Self { all, stored })
    }
}

/// Appends the loop `stmt`, with loads before and stores after it.
fn promote_in(kernel: &mut Kernel, stmt: Stmt, elements: Elements, done: &mut Vec<Stmt>) {
    let Elements { all, stored } = elements;
    let mut current = BTreeMap::new();
    let mut loads = Vec::new();
    for (buffer, at) in &all {
        let dst = kernel.regs.push(Class::Real);
        loads.push(Instr::Load { dst, buffer: *buffer, at: at.clone() });
        current.insert((*buffer, at.clone()), dst);
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
    let store =
        |element: &Element| Instr::Store { buffer: element.0, at: element.1.clone(), value: pass.current[element] };
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
            self.current.insert(element.clone(), var);
            added.push((element, Carried { var, init, next: init }));
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
                if let Some(same) = self.current.get(&(*buffer, at.clone())) {
                    self.aliases.set(*dst, *same);
                    return None;
                }
            }
            Instr::Store { buffer, at, value } => {
                if let Some(current) = self.current.get_mut(&(*buffer, at.clone())) {
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
