//! Flat list of events of a kernel's statements, in program order.
//!
//! In: the nested statements of a body. Out: [`Event`]s. Backends walk them with a loop, so that no backend recurses on
//! a user's nesting. Every opening event has a closing event; between them are the events of the inner statements.

use crate::kernel::{BufferId, Carried, Choice, Instr, Order, Reg, Stmt};
use chainrule_base::{Id, Poly};

/// One step of a walk over statements.
#[derive(Clone, Copy, Debug)]
pub enum Event<'k> {
    /// An instruction.
    Instr(&'k Instr),
    /// A copy of `len` scalars.
    Copy {
        /// Destination, from this element on.
        to: &'k (BufferId, Poly<Reg>),
        /// Source, from this element on.
        from: &'k (BufferId, Poly<Reg>),
        /// Number of elements.
        len: &'k Poly<Reg>,
        /// Whether the source is dead afterwards.
        is_move: bool,
    },
    /// A counted loop opens.
    For {
        /// The index.
        index: Reg,
        /// Trip count.
        count: &'k Poly<Reg>,
        /// Loop-carried values.
        carried: &'k [Carried],
        /// Order in which iterations may run.
        order: Order,
    },
    /// A counted loop closes.
    EndFor {
        /// The index.
        index: Reg,
        /// Loop-carried values.
        carried: &'k [Carried],
    },
    /// A conditional loop opens; the events of its condition follow.
    While {
        /// Loop-carried values.
        carried: &'k [Carried],
        /// Maximum trip count.
        limit: &'k Poly<Reg>,
    },
    /// The condition of a loop is computed; the events of its body follow.
    Test {
        /// Whether to execute the body.
        holds: Reg,
        /// Index into the kernel's failures.
        failure: usize,
    },
    /// A conditional loop closes.
    EndWhile {
        /// Loop-carried values.
        carried: &'k [Carried],
    },
    /// A branch opens; the events where the condition holds follow.
    If {
        /// The condition.
        condition: Reg,
    },
    /// The events where the condition does not hold follow.
    Else {
        /// Results of the branches.
        choices: &'k [Choice],
    },
    /// A branch closes.
    EndIf {
        /// Results of the branches.
        choices: &'k [Choice],
    },
}

impl Event<'_> {
    /// Returns the integer that the event computes from a polynomial: a register, or the trip count of the loop that
    /// the register counts. [`Registers::overflow`](crate::Registers::overflow) has the message if it does not fit.
    #[must_use]
    pub fn integer(&self) -> Option<Reg> {
        match self {
            Self::Instr(Instr::Int { dst, .. }) => Some(*dst),
            Self::For { index, .. } => Some(*index),
            _ => None,
        }
    }

    /// Calls `visit` for each register that the event uses, registers in its polynomials included.
    pub fn for_each_use(&self, mut visit: impl FnMut(Reg)) {
        let poly = |p: &Poly<Reg>, visit: &mut dyn FnMut(Reg)| p.terms().flat_map(|(m, _)| m).for_each(|r| visit(*r));
        match self {
            Self::Instr(instr) => instr.for_each_use(visit),
            Self::Copy { to, from, len, .. } => [&to.1, &from.1, *len].into_iter().for_each(|p| poly(p, &mut visit)),
            Self::For { count: p, carried, .. } | Self::While { limit: p, carried } => {
                poly(p, &mut visit);
                carried.iter().for_each(|c| visit(c.init));
            }
            Self::EndFor { carried, .. } | Self::EndWhile { carried } => carried.iter().for_each(|c| visit(c.next)),
            Self::Test { holds, .. } => visit(*holds),
            Self::If { condition } => visit(*condition),
            Self::Else { choices } => choices.iter().for_each(|c| visit(c.then)),
            Self::EndIf { choices } => choices.iter().for_each(|c| visit(c.otherwise)),
        }
    }

    /// Calls `visit` for each buffer that the event accesses, with whether it writes. The source of a copy comes first.
    pub(crate) fn for_each_access(&self, mut visit: impl FnMut(BufferId, bool)) {
        match self {
            Self::Instr(Instr::Load { buffer, .. }) => visit(*buffer, false),
            Self::Instr(Instr::Store { buffer, .. }) => visit(*buffer, true),
            Self::Copy { to, from, .. } => {
                visit(from.0, false);
                visit(to.0, true);
            }
            _ => {}
        }
    }

    /// Calls `visit` for each register that the event defines.
    pub fn for_each_def(&self, mut visit: impl FnMut(Reg)) {
        match self {
            Self::Instr(instr) => instr.dst().into_iter().for_each(visit),
            Self::For { index, carried, .. } => {
                visit(*index);
                carried.iter().for_each(|c| visit(c.var));
            }
            Self::While { carried, .. } => carried.iter().for_each(|c| visit(c.var)),
            Self::EndIf { choices } => choices.iter().for_each(|c| visit(c.var)),
            Self::Copy { .. } | Self::EndFor { .. } | Self::EndWhile { .. } | Self::Test { .. } => {}
            Self::If { .. } | Self::Else { .. } => {}
        }
    }
}

/// Returns the events of `body`. Linear in its size; the stack does not grow with its depth.
#[must_use]
pub fn events(body: &[Stmt]) -> Vec<Event<'_>> {
    walk(body).collect()
}

/// Iterates over the events of `body`.
#[must_use]
pub fn walk(body: &[Stmt]) -> Walk<'_> {
    Walk { instrs: [].iter(), parts: parts(body) }
}

/// Iterates over the events of `body`, with the instructions of a block as one part.
#[must_use]
pub fn parts(body: &[Stmt]) -> Parts<'_> {
    Parts { body: body.iter(), tasks: Vec::new() }
}

/// Returns the events of `body`, with each constant moved down to its first use in its block, or to the block's end.
///
/// For backends in which a constant occupies a register as long as it lives. `n_regs` is the number of registers of the
/// kernel. Linear in both.
#[must_use]
pub fn with_late_constants(body: &[Stmt], n_regs: usize) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    let mut waiting: Vec<Option<&Instr>> = vec![None; n_regs];
    // Registers of the constants delayed in this block, in order.
    let mut constants: Vec<Reg> = Vec::new();
    for event in walk(body) {
        let take = |r: Reg| events.extend(waiting.get_mut(r.index()).and_then(Option::take).map(Event::Instr));
        match event {
            Event::Instr(instr @ Instr::Const { dst, .. }) => {
                if let Some(place) = waiting.get_mut(dst.index()) {
                    *place = Some(instr);
                    constants.push(*dst);
                    continue;
                }
            }
            Event::Instr(instr) => instr.for_each_use(take),
            _ => constants.drain(..).for_each(take),
        }
        events.push(event);
    }
    events.extend(constants.into_iter().filter_map(|r| waiting[r.index()].take()).map(Event::Instr));
    events
}

/// Straight-line instructions, or another event.
#[derive(Clone, Copy, Debug)]
pub enum Part<'k> {
    /// Instructions, at least one.
    Block(&'k [Instr]),
    /// Any event but an instruction.
    Event(Event<'k>),
}

/// Iterator over events. Made by [`walk`].
#[derive(Clone, Debug)]
pub struct Walk<'k> {
    /// Remaining instructions of the current block.
    instrs: std::slice::Iter<'k, Instr>,
    parts: Parts<'k>,
}

/// Iterator over parts. Made by [`parts`].
#[derive(Clone, Debug)]
pub struct Parts<'k> {
    body: std::slice::Iter<'k, Stmt>,
    /// Open statements and pending work.
    tasks: Vec<Task<'k>>,
}

#[derive(Clone, Debug)]
enum Task<'k> {
    Block(std::slice::Iter<'k, Stmt>),
    Event(Event<'k>),
}

impl<'k> Iterator for Walk<'k> {
    type Item = Event<'k>;

    #[inline]
    fn next(&mut self) -> Option<Event<'k>> {
        match self.instrs.next() {
            Some(instr) => Some(Event::Instr(instr)),
            None => self.part(),
        }
    }
}

impl<'k> Walk<'k> {
    fn part(&mut self) -> Option<Event<'k>> {
        match self.parts.next()? {
            Part::Block(instrs) => {
                self.instrs = instrs.iter();
                self.instrs.next().map(Event::Instr)
            }
            Part::Event(event) => Some(event),
        }
    }
}

impl<'k> Iterator for Parts<'k> {
    type Item = Part<'k>;

    fn next(&mut self) -> Option<Part<'k>> {
        loop {
            let block = match self.tasks.last_mut() {
                None => &mut self.body,
                Some(Task::Block(block)) => block,
                Some(Task::Event(event)) => {
                    let event = *event;
                    self.tasks.pop();
                    return Some(Part::Event(event));
                }
            };
            let Some(stmt) = block.next() else {
                self.tasks.pop()?;
                continue;
            };
            let opens = match stmt {
                Stmt::Straight(instrs) if instrs.is_empty() => continue,
                Stmt::Straight(instrs) => return Some(Part::Block(instrs)),
                Stmt::Copy { to, from, len, is_move } => Event::Copy { to, from, len, is_move: *is_move },
                Stmt::For { index, count, carried, order, body } => {
                    self.tasks.push(Task::Event(Event::EndFor { index: *index, carried }));
                    self.tasks.push(Task::Block(body.iter()));
                    Event::For { index: *index, count, carried, order: *order }
                }
                Stmt::While { limit, carried, condition, holds, body, failure } => {
                    self.tasks.push(Task::Event(Event::EndWhile { carried }));
                    self.tasks.push(Task::Block(body.iter()));
                    self.tasks.push(Task::Event(Event::Test { holds: *holds, failure: *failure }));
                    self.tasks.push(Task::Block(condition.iter()));
                    Event::While { carried, limit }
                }
                Stmt::If { condition, then, otherwise, choices } => {
                    self.tasks.push(Task::Event(Event::EndIf { choices }));
                    self.tasks.push(Task::Block(otherwise.iter()));
                    self.tasks.push(Task::Event(Event::Else { choices }));
                    self.tasks.push(Task::Block(then.iter()));
                    Event::If { condition: *condition }
                }
            };
            return Some(Part::Event(opens));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, events, with_late_constants};
    use crate::kernel::{Instr, Reg, Stmt};
    use chainrule_base::Id;
    use chainrule_ops::Op;

    #[test]
    fn constants_stand_before_what_reads_them_in_their_block() {
        let [a, b, c, d, sum, twice, product] = std::array::from_fn(Reg::new);
        let constant = |dst| Instr::Const { dst, value: 1.5 };
        let apply = |dst, op, x, y| Instr::Op { dst, op, args: [x, y, x] };
        let inner = Stmt::Straight(vec![constant(d), apply(product, Op::Mul, sum, c)]);
        let branch = Stmt::If { condition: sum, then: vec![inner], otherwise: vec![], choices: vec![] };
        let first =
            vec![constant(a), constant(b), constant(c), apply(sum, Op::Add, b, b), apply(twice, Op::Add, sum, a)];
        let body = [Stmt::Straight(first), branch];
        let defined = |events: &[Event<'_>]| {
            let dst = |event: &Event<'_>| if let Event::Instr(instr) = event { instr.dst() } else { None };
            events.iter().map(dst).collect::<Vec<_>>()
        };
        let late = with_late_constants(&body, 7);
        // `c` is read in another block only, `d` nowhere.
        let expected = [b, sum, a, twice, c].map(Some).into_iter().chain([None]);
        let expected: Vec<_> = expected.chain([product, d].map(Some)).chain([None, None]).collect();
        assert_eq!(defined(&late), expected);
        assert_eq!(late.len(), events(&body).len());
        // An invalid kernel keeps all its events.
        assert_eq!(with_late_constants(&body, 0).len(), late.len());
    }
}
