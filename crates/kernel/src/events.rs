//! A kernel's statements as one flat list of events, in the order in which they are written.
//!
//! In: the nested statements of a body. Out: [`Event`]s. Backends walk them with a plain loop, so that
//! no backend recurses on a user's nesting. Every opening event has its closing one; between them lie
//! the events of what is inside.

use crate::kernel::{BufferId, Carried, Choice, Instr, Reg, Stmt};
use chainrule_base::Poly;

/// One step of a walk over statements.
#[derive(Clone, Copy, Debug)]
pub enum Event<'k> {
    /// An instruction.
    Instr(&'k Instr),
    /// A copy of `len` scalars.
    Copy {
        /// To, from this element on.
        to: &'k (BufferId, Poly<Reg>),
        /// From, from this element on.
        from: &'k (BufferId, Poly<Reg>),
        /// How many.
        len: &'k Poly<Reg>,
    },
    /// A counted loop opens.
    For {
        /// The index.
        index: Reg,
        /// How many iterations.
        count: &'k Poly<Reg>,
        /// What is carried.
        carried: &'k [Carried],
    },
    /// A counted loop closes.
    EndFor {
        /// The index.
        index: Reg,
        /// What is carried.
        carried: &'k [Carried],
    },
    /// A conditional loop opens; the events of its condition follow.
    While {
        /// What is carried.
        carried: &'k [Carried],
        /// The largest number of iterations.
        limit: &'k Poly<Reg>,
    },
    /// The condition of a loop is computed; the events of its body follow.
    Test {
        /// Whether to run the body.
        holds: Reg,
        /// Index into the kernel's failures.
        failure: usize,
    },
    /// A conditional loop closes.
    EndWhile {
        /// What is carried.
        carried: &'k [Carried],
    },
    /// A branch opens; the events where the condition holds follow.
    If {
        /// The condition.
        condition: Reg,
    },
    /// The events where the condition does not hold follow.
    Else {
        /// What the branches result in.
        choices: &'k [Choice],
    },
    /// A branch closes.
    EndIf {
        /// What the branches result in.
        choices: &'k [Choice],
    },
}

/// The events of `body`. Linear in its size; the stack does not grow with its depth.
#[must_use]
pub fn events(body: &[Stmt]) -> Vec<Event<'_>> {
    enum Task<'k> {
        Block(std::slice::Iter<'k, Stmt>),
        Event(Event<'k>),
    }
    let mut out = Vec::new();
    let mut tasks = vec![Task::Block(body.iter())];
    while let Some(task) = tasks.pop() {
        let mut block = match task {
            Task::Event(event) => {
                out.push(event);
                continue;
            }
            Task::Block(block) => block,
        };
        let Some(stmt) = block.next() else { continue };
        tasks.push(Task::Block(block));
        match stmt {
            Stmt::Straight(instrs) => out.extend(instrs.iter().map(Event::Instr)),
            Stmt::Copy { to, from, len } => out.push(Event::Copy { to, from, len }),
            Stmt::For { index, count, carried, body } => {
                out.push(Event::For { index: *index, count, carried });
                tasks.push(Task::Event(Event::EndFor { index: *index, carried }));
                tasks.push(Task::Block(body.iter()));
            }
            Stmt::While { limit, carried, condition, holds, body, failure } => {
                out.push(Event::While { carried, limit });
                tasks.push(Task::Event(Event::EndWhile { carried }));
                tasks.push(Task::Block(body.iter()));
                tasks.push(Task::Event(Event::Test { holds: *holds, failure: *failure }));
                tasks.push(Task::Block(condition.iter()));
            }
            Stmt::If { condition, then, otherwise, choices } => {
                out.push(Event::If { condition: *condition });
                tasks.push(Task::Event(Event::EndIf { choices }));
                tasks.push(Task::Block(otherwise.iter()));
                tasks.push(Task::Event(Event::Else { choices }));
                tasks.push(Task::Block(then.iter()));
            }
        }
    }
    out
}
