//! The statements of a kernel taken apart and put together again, as a pass wants them. The stack does not grow with their
//! depth.

use crate::kernel::{BufferId, Carried, Choice, Instr, Order, Reg, Stmt};
use chainrule_base::{Id, Poly};

/// Writes each block of `body` anew, outer ones first, then what is inside of what was written: `write` puts what becomes of a
/// statement at the end of the new block.
pub(crate) fn each_statement(body: &mut Vec<Stmt>, mut write: impl FnMut(Stmt, &mut Vec<Stmt>)) {
    let mut open: Vec<&mut Vec<Stmt>> = vec![body];
    while let Some(block) = open.pop() {
        let mut done = Vec::with_capacity(block.len());
        std::mem::take(block).into_iter().for_each(|stmt| write(stmt, &mut done));
        *block = done;
        for stmt in block.iter_mut() {
            match stmt {
                Stmt::For { body, .. } => open.push(body),
                Stmt::While { condition, body, .. } => open.extend([condition, body]),
                Stmt::If { then, otherwise, .. } => open.extend([then, otherwise]),
                Stmt::Straight(_) | Stmt::Copy { .. } => {}
            }
        }
    }
}

/// Shows `see` the buffer and the address of each load and store in `body`, to be changed.
pub(crate) fn each_access(body: &mut Vec<Stmt>, mut see: impl FnMut(&mut BufferId, &mut Poly<Reg>)) {
    each_statement(body, |mut stmt, done| {
        if let Stmt::Straight(code) = &mut stmt {
            for instr in code {
                if let Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. } = instr {
                    see(buffer, at);
                }
            }
        }
        done.push(stmt);
    });
}

/// Whether it is a block without instructions.
pub(crate) fn is_nothing(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Straight(code) if code.is_empty())
}

/// How often the body of a loop is to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rounds {
    /// It stays a loop.
    Loop,
    /// Its body runs once, and takes the place of the loop.
    Once,
    /// It goes.
    Never,
}

/// What is done with each statement, in the order of the program. All may change what they are given.
pub(crate) trait Pass {
    /// A block of instructions.
    fn code(&mut self, code: Vec<Instr>) -> Vec<Instr>;

    /// A copy: to, from, how many; whether it stays.
    fn copy(
        &mut self,
        _to: &mut (BufferId, Poly<Reg>),
        _from: &mut (BufferId, Poly<Reg>),
        _len: &mut Poly<Reg>,
    ) -> bool {
        true
    }

    /// A counted loop begins.
    fn open_for(&mut self, _index: Reg, _count: &mut Poly<Reg>, _carried: &mut [Carried], _order: Order) -> Rounds {
        Rounds::Loop
    }

    /// A counted loop ends; whether it stays. What is put into `before` comes before it.
    fn close_for(
        &mut self,
        _index: Reg,
        _carried: &mut Vec<Carried>,
        _body: &mut Vec<Stmt>,
        _before: &mut Vec<Instr>,
    ) -> bool {
        true
    }

    /// What was the body of a loop, and is no loop any more, begins.
    fn open_once(&mut self, _index: Reg, _carried: &[Carried]) -> Vec<Instr> {
        Vec::new()
    }

    /// It ends.
    fn close_once(&mut self, _carried: &[Carried]) {}

    /// A conditional loop begins.
    fn open_while(&mut self, _limit: &mut Poly<Reg>, _carried: &mut [Carried]) {}

    /// Its condition is computed.
    fn test(&mut self, _holds: &mut Reg, _failure: usize) {}

    /// A conditional loop ends.
    fn close_while(&mut self, _carried: &mut [Carried]) {}

    /// A branch begins; whether it is known how the condition ends.
    fn open_if(&mut self, _condition: &mut Reg) -> Option<bool> {
        None
    }

    /// The statements where the condition holds are over.
    fn middle(&mut self, _choices: &mut [Choice]) {}

    /// A branch ends, with what is left of its statements; whether it stays. What is put into `before` comes before it.
    fn close_if(
        &mut self,
        _condition: Reg,
        _choices: &mut Vec<Choice>,
        _arms: [&mut Vec<Stmt>; 2],
        _before: &mut Vec<Instr>,
    ) -> bool {
        true
    }

    /// The statements are over that are left of a branch.
    fn close_taken(&mut self, _choices: &[Choice], _holds: bool) {}
}

enum Task {
    Block(std::vec::IntoIter<Stmt>),
    EndFor { index: Reg, count: Poly<Reg>, carried: Vec<Carried>, order: Order },
    EndOnce { carried: Vec<Carried> },
    Test { limit: Poly<Reg>, carried: Vec<Carried>, holds: Reg, body: Vec<Stmt>, failure: usize },
    EndWhile { limit: Poly<Reg>, carried: Vec<Carried>, condition: Vec<Stmt>, holds: Reg, failure: usize },
    Else { condition: Reg, otherwise: Vec<Stmt>, choices: Vec<Choice> },
    EndIf { condition: Reg, then: Vec<Stmt>, choices: Vec<Choice> },
    EndTaken { choices: Vec<Choice>, holds: bool },
}

/// `body` as `pass` wants it. Linear in its size.
pub(crate) fn rebuild(body: Vec<Stmt>, pass: &mut impl Pass) -> Vec<Stmt> {
    let mut tasks = vec![Task::Block(body.into_iter())];
    // The blocks that are being written, the innermost last.
    let mut open: Vec<Vec<Stmt>> = vec![Vec::new()];
    while let Some(task) = tasks.pop() {
        match task {
            Task::Block(mut stmts) => {
                let Some(stmt) = stmts.next() else { continue };
                tasks.push(Task::Block(stmts));
                begin(stmt, pass, &mut tasks, &mut open);
            }
            Task::EndFor { index, count, mut carried, order } => {
                let (mut body, mut before) = (close(&mut open), Vec::new());
                let stays = pass.close_for(index, &mut carried, &mut body, &mut before);
                push_code(&mut open, before);
                if stays {
                    push(&mut open, Stmt::For { index, count, carried, order, body });
                }
            }
            Task::EndOnce { carried } => pass.close_once(&carried),
            Task::Test { limit, carried, mut holds, body, failure } => {
                let condition = close(&mut open);
                pass.test(&mut holds, failure);
                tasks.push(Task::EndWhile { limit, carried, condition, holds, failure });
                tasks.push(Task::Block(body.into_iter()));
                open.push(Vec::new());
            }
            Task::EndWhile { limit, mut carried, condition, holds, failure } => {
                let body = close(&mut open);
                pass.close_while(&mut carried);
                push(&mut open, Stmt::While { limit, carried, condition, holds, body, failure });
            }
            Task::Else { condition, otherwise, mut choices } => {
                let then = close(&mut open);
                pass.middle(&mut choices);
                tasks.push(Task::EndIf { condition, then, choices });
                tasks.push(Task::Block(otherwise.into_iter()));
                open.push(Vec::new());
            }
            Task::EndIf { condition, mut then, mut choices } => {
                let (mut otherwise, mut before) = (close(&mut open), Vec::new());
                let stays = pass.close_if(condition, &mut choices, [&mut then, &mut otherwise], &mut before);
                push_code(&mut open, before);
                if stays {
                    push(&mut open, Stmt::If { condition, then, otherwise, choices });
                }
            }
            Task::EndTaken { choices, holds } => pass.close_taken(&choices, holds),
        }
    }
    close(&mut open)
}

fn begin(stmt: Stmt, pass: &mut impl Pass, tasks: &mut Vec<Task>, open: &mut Vec<Vec<Stmt>>) {
    match stmt {
        Stmt::Straight(code) => push_code(open, pass.code(code)),
        Stmt::Copy { mut to, mut from, mut len } => {
            if pass.copy(&mut to, &mut from, &mut len) {
                push(open, Stmt::Copy { to, from, len });
            }
        }
        Stmt::For { index, mut count, mut carried, order, body } => {
            match pass.open_for(index, &mut count, &mut carried, order) {
                Rounds::Loop => {
                    tasks.push(Task::EndFor { index, count, carried, order });
                    tasks.push(Task::Block(body.into_iter()));
                    open.push(Vec::new());
                }
                Rounds::Once => {
                    push_code(open, pass.open_once(index, &carried));
                    tasks.push(Task::EndOnce { carried });
                    tasks.push(Task::Block(body.into_iter()));
                }
                Rounds::Never => {}
            }
        }
        Stmt::While { mut limit, mut carried, condition, holds, body, failure } => {
            pass.open_while(&mut limit, &mut carried);
            tasks.push(Task::Test { limit, carried, holds, body, failure });
            tasks.push(Task::Block(condition.into_iter()));
            open.push(Vec::new());
        }
        Stmt::If { mut condition, then, otherwise, choices } => match pass.open_if(&mut condition) {
            None => {
                tasks.push(Task::Else { condition, otherwise, choices });
                tasks.push(Task::Block(then.into_iter()));
                open.push(Vec::new());
            }
            Some(holds) => {
                tasks.push(Task::EndTaken { choices, holds });
                tasks.push(Task::Block(if holds { then } else { otherwise }.into_iter()));
            }
        },
    }
}

fn close(open: &mut Vec<Vec<Stmt>>) -> Vec<Stmt> {
    open.pop().unwrap_or_default()
}

fn push(open: &mut [Vec<Stmt>], stmt: Stmt) {
    if let Some(block) = open.last_mut() {
        block.push(stmt);
    }
}

/// Instructions that follow one another are one block.
fn push_code(open: &mut [Vec<Stmt>], code: Vec<Instr>) {
    let Some(block) = open.last_mut() else { return };
    match block.last_mut() {
        _ if code.is_empty() => {}
        Some(Stmt::Straight(before)) => before.extend(code),
        _ => block.push(Stmt::Straight(code)),
    }
}

/// Registers that stand for others.
#[derive(Default)]
pub(crate) struct Aliases(Vec<Option<Reg>>);

impl Aliases {
    /// What `r` is.
    pub(crate) fn of(&self, r: Reg) -> Reg {
        self.0.get(r.index()).copied().flatten().unwrap_or(r)
    }

    /// `r` is `other`, which stands for itself.
    pub(crate) fn set(&mut self, r: Reg, other: Reg) {
        if self.0.len() <= r.index() {
            self.0.resize(r.index() + 1, None);
        }
        self.0[r.index()] = Some(other);
    }
}
