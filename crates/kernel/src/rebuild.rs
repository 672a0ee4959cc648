//! Framework for passes that rewrite the statements of a kernel. The stack does not grow with their depth.

use crate::kernel::{BufferId, Carried, Choice, Instr, Order, Reg, Stmt};
use chainrule_base::{Id, Poly};

/// Rewrites each block of `body`, outer blocks first, then the blocks of the result: `write` appends the replacement of
/// a statement to the new block.
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

/// Calls `see` for each counted loop of `body`, outer ones first, with the loops inside only of those for which it
/// returns false.
pub(crate) fn each_loop(body: &[Stmt], mut see: impl FnMut(&Stmt) -> bool) {
    let mut open = vec![body];
    while let Some(block) = open.pop() {
        for stmt in block {
            match stmt {
                Stmt::For { body, .. } => open.extend((!see(stmt)).then_some(body.as_slice())),
                Stmt::While { condition, body, .. } => open.extend([condition.as_slice(), body]),
                Stmt::If { then, otherwise, .. } => open.extend([then.as_slice(), otherwise]),
                Stmt::Straight(_) | Stmt::Copy { .. } => {}
            }
        }
    }
}

/// Calls `see` with the buffer and the address of each load and store in `body`, for modification.
pub(crate) fn each_access(body: &mut [Stmt], mut see: impl FnMut(&mut BufferId, &mut Poly<Reg>)) {
    each_block(body, |code| {
        for instr in code {
            if let Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. } = instr {
                see(buffer, at);
            }
        }
    });
}

/// Calls `see` for each block of instructions in `body`, for modification.
pub(crate) fn each_block(body: &mut [Stmt], mut see: impl FnMut(&mut Vec<Instr>)) {
    let mut open: Vec<&mut Stmt> = body.iter_mut().collect();
    while let Some(stmt) = open.pop() {
        match stmt {
            Stmt::Straight(code) => see(code),
            Stmt::For { body, .. } => open.extend(body),
            Stmt::While { condition, body, .. } => open.extend(condition.iter_mut().chain(body)),
            Stmt::If { then, otherwise, .. } => open.extend(then.iter_mut().chain(otherwise)),
            Stmt::Copy { .. } => {}
        }
    }
}

/// A loop or a branch that is being read, whose end is not reached.
pub(crate) enum Open {
    For { index: Reg, count: Poly<Reg>, carried: Vec<Carried>, order: Order },
    Condition { limit: Poly<Reg>, carried: Vec<Carried> },
    While { limit: Poly<Reg>, carried: Vec<Carried>, condition: Vec<Stmt>, holds: Reg, failure: usize },
    Then { condition: Reg },
    Else { condition: Reg, then: Vec<Stmt> },
}

/// Returns whether a statement is a block without instructions.
pub(crate) fn is_nothing(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Straight(code) if code.is_empty())
}

/// Treatment of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rounds {
    /// It stays a loop.
    Loop,
    /// Its body runs once and replaces the loop.
    Once,
    /// It is removed.
    Never,
}

/// Callbacks for each statement, in program order. All may modify their arguments.
pub(crate) trait Pass {
    /// Rewrites a block of instructions.
    fn code(&mut self, code: Vec<Instr>) -> Vec<Instr>;

    /// Rewrites a copy (destination, source, length); returns whether it stays.
    fn copy(
        &mut self,
        _to: &mut (BufferId, Poly<Reg>),
        _from: &mut (BufferId, Poly<Reg>),
        _len: &mut Poly<Reg>,
    ) -> bool {
        true
    }

    /// Enters a counted loop.
    fn open_for(&mut self, _index: Reg, _count: &mut Poly<Reg>, _carried: &mut [Carried], _order: Order) -> Rounds {
        Rounds::Loop
    }

    /// Leaves a counted loop; returns whether it stays. Instructions in `before` are inserted before it.
    fn close_for(
        &mut self,
        _index: Reg,
        _carried: &mut Vec<Carried>,
        _body: &mut Vec<Stmt>,
        _before: &mut Vec<Instr>,
    ) -> bool {
        true
    }

    /// Enters the body of a loop that runs once.
    fn open_once(&mut self, _index: Reg, _carried: &[Carried]) -> Vec<Instr> {
        Vec::new()
    }

    /// Leaves the body of a loop that runs once.
    fn close_once(&mut self, _carried: &[Carried]) {}

    /// Enters a conditional loop.
    fn open_while(&mut self, _limit: &mut Poly<Reg>, _carried: &mut [Carried]) {}

    /// Reaches the test of a conditional loop.
    fn test(&mut self, _holds: &mut Reg, _failure: usize) {}

    /// Leaves a conditional loop.
    fn close_while(&mut self, _carried: &mut Vec<Carried>) {}

    /// Enters a branch; returns the value of the condition, if it is known.
    fn open_if(&mut self, _condition: &mut Reg) -> Option<bool> {
        None
    }

    /// Reaches the end of the first side of a branch.
    fn middle(&mut self, _choices: &mut [Choice]) {}

    /// Leaves a branch, with its remaining statements; returns whether it stays. Instructions in `before` are inserted
    /// before it.
    fn close_if(
        &mut self,
        _condition: Reg,
        _choices: &mut Vec<Choice>,
        _arms: [&mut Vec<Stmt>; 2],
        _before: &mut Vec<Instr>,
    ) -> bool {
        true
    }

    /// Leaves the taken side of a branch with a known condition.
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

/// Rewrites `body` by `pass`. Linear in its size.
pub(crate) fn rebuild(body: Vec<Stmt>, pass: &mut impl Pass) -> Vec<Stmt> {
    let mut tasks = vec![Task::Block(body.into_iter())];
    // Blocks under construction, the innermost last.
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
        Stmt::Copy { mut to, mut from, mut len, is_move } => {
            if pass.copy(&mut to, &mut from, &mut len) {
                push(open, Stmt::Copy { to, from, len, is_move });
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

/// Appends instructions, merged with a preceding block.
fn push_code(open: &mut [Vec<Stmt>], code: Vec<Instr>) {
    let Some(block) = open.last_mut() else { return };
    match block.last_mut() {
        _ if code.is_empty() => {}
        Some(Stmt::Straight(before)) => before.extend(code),
        _ => block.push(Stmt::Straight(code)),
    }
}

/// Registers replaced by others.
#[derive(Default)]
pub(crate) struct Aliases(Vec<Option<Reg>>);

impl Aliases {
    /// Returns the register that replaces `r`, or `r`.
    pub(crate) fn of(&self, r: Reg) -> Reg {
        self.0.get(r.index()).copied().flatten().unwrap_or(r)
    }

    /// Replaces `r`.
    pub(crate) fn reg(&self, r: &mut Reg) {
        *r = self.of(*r);
    }

    /// Replaces the registers in `poly`.
    pub(crate) fn poly(&self, poly: &mut Poly<Reg>) {
        if poly.terms().flat_map(|(monomial, _)| monomial).any(|r| self.of(*r) != *r) {
            *poly = poly.substitute(|r| Poly::var(self.of(r)));
        }
    }

    /// Replaces the operands of `instr`.
    pub(crate) fn operands(&self, instr: &mut Instr) {
        match instr {
            Instr::Const { .. } => {}
            Instr::Int { value: poly, .. } | Instr::Load { at: poly, .. } => self.poly(poly),
            Instr::Op { args, .. } | Instr::IntOp { args, .. } | Instr::MulAdd { args, .. } => {
                args.iter_mut().for_each(|r| self.reg(r));
            }
            Instr::ToReal { src: r, .. } | Instr::ToInt { src: r, .. } => self.reg(r),
            Instr::External { args, .. } => args.iter_mut().for_each(|r| self.reg(r)),
            Instr::Store { at: poly, value: r, .. } | Instr::CheckIndex { len: poly, index: r, .. } => {
                self.poly(poly);
                self.reg(r);
            }
        }
    }

    /// Replaces `r` by `other`, which is not replaced itself.
    pub(crate) fn set(&mut self, r: Reg, other: Reg) {
        if self.0.len() <= r.index() {
            self.0.resize(r.index() + 1, None);
        }
        self.0[r.index()] = Some(other);
    }
}
