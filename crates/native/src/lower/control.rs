//! Loops and branches.
//!
//! At control flow only globals are in registers: a block starts in the state defined by the plan. Loop-carried values
//! and results of branches change in parallel: moves that would overwrite a value that another move reads use a
//! temporary.

use super::integers::holds;
use super::plan::{Counted, Home, Kind, LoopPlan, Stretch};
use super::{Compared, OpenLoop, Overflow, Result, SCRATCH, Site, Writer, bug};
use crate::asm::{Alu, Condition};
use chainrule_base::{Id, Poly};
use chainrule_kernel::{Carried, Event, LANES, Move, Reg, moves};

impl<'k> Writer<'k> {
    /// Emits a control event; returns whether the following code is only reached from the preceding code.
    pub(super) fn control(&mut self, at: u32, event: &Event<'_>) -> Result<bool> {
        let mut goes_on = false;
        self.integers.computing = event.integer();
        match event {
            Event::Instr(_) => goes_on = true,
            Event::Copy { to, from, len, .. } => {
                self.copy(at, to, from, len)?;
                goes_on = true;
            }
            Event::For { index, count, carried, .. } => goes_on = self.open_loop(at, *index, count, carried)?,
            Event::EndFor { index, carried } => goes_on = self.close_loop(*index, carried)?,
            Event::While { carried, limit } => {
                self.take_pointers(at);
                self.moves(carried.iter().map(|c| (c.var, c.init)))?;
                let plan = self.loop_plan(at)?;
                let from = self.poly(limit, 1, Overflow::Fails)?;
                self.set_number(plan.count, from);
                let [rax, ..] = SCRATCH;
                self.asm.mov_ri(rax, 0);
                self.set_number(plan.counter, rax);
                self.set_kept(plan, None, 1)?;
                let (top, exit) = (self.asm.new_label(), self.asm.new_label());
                self.asm.bind(top);
                self.control.loops.push(opened(plan, top, exit));
            }
            Event::Test { holds, failure } => {
                let [rax, rcx, _] = SCRATCH;
                let Some(open) = self.control.loops.last() else { return Err(unbalanced()) };
                let (exit, counter, limit) = (open.exit, open.plan.counter, open.plan.count);
                let holds = self.number(holds.index(), rax);
                self.asm.test_rr(holds, holds);
                self.asm.jcc(Condition::Equal, exit);
                let count = self.number(counter, rax);
                let limit_in = self.number(limit, rcx);
                self.asm.alu_rr(Alu::Cmp, count, limit_in);
                let label = self.site(Site::Limit { failure: *failure }, &[limit]);
                self.asm.jcc(Condition::GreaterEqual, label);
                self.asm.alu_ri(Alu::Add, count, 1);
                self.set_number(counter, count);
                goes_on = true;
            }
            Event::EndWhile { carried } => {
                self.moves(carried.iter().map(|c| (c.var, c.next)))?;
                let open = self.control.loops.pop().ok_or_else(unbalanced)?;
                self.step_kept(open.plan, 1);
                self.asm.jmp(open.top);
                self.asm.bind(open.exit);
                self.leave_pointers();
            }
            Event::If { condition } => {
                let otherwise = self.asm.new_label();
                if let Some(Compared::EqualDoubles) = self.control.compared {
                    self.asm.jcc(Condition::Parity, otherwise);
                }
                let holds = self.flags(*condition);
                self.asm.jcc(holds.negated(), otherwise);
                self.control.branches.push(otherwise);
                goes_on = true;
            }
            Event::Else { choices } => {
                self.moves(choices.iter().map(|c| (c.var, c.then)))?;
                let end = self.asm.new_label();
                self.asm.jmp(end);
                let otherwise = self.control.branches.pop().ok_or_else(unbalanced)?;
                self.asm.bind(otherwise);
                self.control.branches.push(end);
            }
            Event::EndIf { choices } => {
                self.moves(choices.iter().map(|c| (c.var, c.otherwise)))?;
                let end = self.control.branches.pop().ok_or_else(unbalanced)?;
                self.asm.bind(end);
            }
        }
        Ok(goes_on)
    }

    /// Opens a counted loop; returns whether the body is only reached from the preceding code.
    fn open_loop(&mut self, at: u32, index: Reg, count: &Poly<Reg>, carried: &[Carried]) -> Result<bool> {
        self.take_pointers(at);
        self.moves(carried.iter().map(|c| (c.var, c.init)))?;
        let plan = self.loop_plan(at)?;
        let (top, exit) = (self.asm.new_label(), self.asm.new_label());
        let is_known = matches!(plan.known_count, Some(1..));
        if !is_known {
            let from = self.poly(count, 1, Overflow::Fails)?;
            self.set_number(plan.count, from);
            self.asm.test_rr(from, from);
            self.asm.jcc(Condition::LessEqual, exit);
            let more = Poly::constant(LANES - 1).sub(count);
            if plan.lanes.is_some() && !self.integers.ranges.is_at_least_zero(&more) {
                // More iterations do not fit the round.
                let label = self.site(Site::Outside, &[]);
                self.asm.alu_ri(Alu::Cmp, from, LANES as i32);
                self.asm.jcc(Condition::GreaterEqual, label);
            }
        }
        let [rax, ..] = SCRATCH;
        match self.plan.home(index.index()) {
            Home::Gpr(g) => self.asm.mov_ri(g, 0),
            Home::Local => {}
            _ => {
                self.asm.mov_ri(rax, 0);
                self.set_number(index.index(), rax);
            }
        }
        for (r, place) in &plan.spread {
            self.spread(*r, *place)?;
        }
        let by = self.enter_lanes(plan.lanes.as_ref())?;
        self.set_kept(plan, Some(index), by)?;
        self.set_end(plan);
        self.asm.bind(top);
        let is_one_round = by == LANES;
        self.control.loops.push(OpenLoop { is_one_round, ..opened(plan, top, exit) });
        Ok(is_one_round)
    }

    /// Closes a counted loop; returns whether the following code is only reached from the body.
    fn close_loop(&mut self, index: Reg, carried: &[Carried]) -> Result<bool> {
        self.moves(carried.iter().map(|c| (c.var, c.next)))?;
        let open = self.control.loops.pop().ok_or_else(unbalanced)?;
        let by = self.leave_lane_loop(index);
        if by == LANES {
            // It is the only round.
            self.asm.bind(open.exit);
            self.leave_pointers();
            return Ok(matches!(open.plan.known_count, Some(1..)));
        }
        self.step_kept(open.plan, by);
        let goes_on = self.count(index, by, open.plan);
        self.asm.jcc(goes_on, open.top);
        self.asm.bind(open.exit);
        self.leave_pointers();
        Ok(false)
    }

    /// Sets the flags by a condition; returns the condition code under which it holds.
    fn flags(&mut self, condition: Reg) -> Condition {
        let [rax, rcx, _] = SCRATCH;
        match self.control.compared.take() {
            Some(Compared::Integers(op, a, b)) => {
                let (a, b) = (self.number(a.index(), rax), self.number(b.index(), rcx));
                self.asm.alu_rr(Alu::Cmp, a, b);
                holds(op)
            }
            Some(Compared::Doubles(holds)) => holds,
            Some(Compared::EqualDoubles) => Condition::Equal,
            None => {
                // The location of a truth value of this block.
                let condition = match self.plan.kinds[condition.index()] {
                    Kind::Int => self.number(condition.index(), rax),
                    _ => rax,
                };
                self.asm.test_rr(condition, condition);
                Condition::NotEqual
            }
        }
    }

    /// Returns whether the control event before stretch `i` starts a branch that only selects integers, which becomes
    /// conditional moves.
    pub(super) fn is_choice_of_integers(&mut self, i: usize) -> bool {
        let control = |i: usize| match self.plan.stretches.get(i) {
            Some(Stretch::Control(_, event)) => Some(*event),
            _ => None,
        };
        let (Some(Event::If { condition }), Some(Event::Else { choices }), Some(Event::EndIf { .. })) =
            (control(i - 1), control(i), control(i + 1))
        else {
            return false;
        };
        let is_int = |r: Reg| self.plan.kinds[r.index()] == Kind::Int;
        let home = |r: Reg| self.plan.home(r.index());
        // No move overwrites a value that another one still reads.
        let is_apart = |i: usize| {
            let later = &choices[i + 1..];
            later.iter().all(|c| ![c.then, c.otherwise].map(home).contains(&home(choices[i].var)))
        };
        let takes_two_flags = matches!(self.control.compared, Some(Compared::EqualDoubles));
        if takes_two_flags
            || choices.is_empty()
            || !choices.iter().all(|c| is_int(c.var))
            || !(0..choices.len()).all(is_apart)
        {
            return false;
        }
        let [_, rcx, rdx] = SCRATCH;
        let holds = self.flags(condition);
        // Moves preserve flags.
        for c in choices {
            self.number_into(rdx, c.otherwise.index());
            let then = self.number(c.then.index(), rcx);
            self.asm.cmov_rr(holds, rdx, then);
            self.set_number(c.var.index(), rdx);
        }
        true
    }

    /// Sets the end of a loop that is controlled by an address, if it is unknown at compile time.
    fn set_end(&mut self, plan: &LoopPlan) {
        let Some(Counted { step, end: None, .. }) = plan.counted else { return };
        let [rax, ..] = SCRATCH;
        let by = step * (self.element_bytes() / 8);
        match plan.known_count {
            Some(count @ 1..) => self.asm.mov_ri(rax, i64::from(count).wrapping_mul(by)),
            _ => {
                self.number_into(rax, plan.count);
                self.asm.imul_rri(rax, rax, by as i32);
            }
        }
        self.set_number(plan.count, rax);
    }

    /// Counts iterations of a loop whose cached addresses have been stepped, and sets the flags; returns the condition
    /// for another iteration.
    fn count(&mut self, index: Reg, by: i64, plan: &LoopPlan) -> Condition {
        let [rax, rcx, _] = SCRATCH;
        if let Some(Counted { place, end, .. }) = plan.counted {
            let now = self.number(place, rax);
            match end {
                Some(end) => {
                    let end = i64::from(end) * (self.element_bytes() / 8);
                    self.asm.alu_ri(Alu::Cmp, now, end as i32);
                }
                None => {
                    let end = self.number(plan.count, rcx);
                    self.asm.alu_rr(Alu::Cmp, now, end);
                }
            }
            return Condition::NotEqual;
        }
        let i = self.number(index.index(), rax);
        self.asm.alu_ri(Alu::Add, i, by as i32);
        self.set_number(index.index(), i);
        match plan.known_count {
            Some(count @ 1..) => self.asm.alu_ri(Alu::Cmp, i, count),
            _ => {
                let count = self.number(plan.count, rcx);
                self.asm.alu_rr(Alu::Cmp, i, count);
            }
        }
        Condition::Less
    }

    fn loop_plan(&self, at: u32) -> Result<&'k LoopPlan> {
        self.plan.loops.get(&at).ok_or_else(|| bug("a loop has no plan"))
    }

    /// Performs parallel moves between locations.
    fn moves(&mut self, pairs: impl Iterator<Item = (Reg, Reg)>) -> Result<()> {
        let home = |r: Reg| self.home_now(r);
        let pairs = pairs.map(|(to, from)| (home(to), home(from)));
        let steps = moves(pairs.filter(|(to, _)| *to != Home::Local));
        let mut saved = Home::Gpr(SCRATCH[2]);
        for step in steps {
            match step {
                Move::Direct { to, from } => self.move_home(to, from)?,
                Move::Save(from) => {
                    saved = match from {
                        Home::Gpr(_) | Home::Word(_) => Home::Gpr(SCRATCH[2]),
                        _ => Home::Xmm(self.temporary()?),
                    };
                    self.move_home(saved, from)?;
                }
                Move::Restore(to) => {
                    self.move_home(to, saved)?;
                    if let Home::Xmm(x) = saved {
                        self.registers.give_back(x);
                        self.registers.unlock(x);
                    }
                }
            }
        }
        self.registers.end();
        Ok(())
    }

    fn move_home(&mut self, to: Home, from: Home) -> Result<()> {
        let [rax, ..] = SCRATCH;
        match (to, from) {
            (Home::Xmm(to), Home::Xmm(from)) => self.asm.mov(self.lanes.shape, to, from),
            (Home::Xmm(to), Home::Slot(from)) => {
                let mem = self.frame.slot(from);
                self.asm.load(self.lanes.shape, to, mem);
            }
            (Home::Slot(to), Home::Xmm(from)) => {
                let mem = self.frame.slot(to);
                self.asm.store(self.lanes.shape, mem, from);
            }
            (Home::Slot(_), Home::Slot(_)) => {
                let x = self.temporary()?;
                self.move_home(Home::Xmm(x), from)?;
                self.move_home(to, Home::Xmm(x))?;
                self.registers.give_back(x);
                self.registers.unlock(x);
            }
            (Home::Gpr(to), Home::Gpr(from)) => self.asm.mov_rr(to, from),
            (Home::Gpr(to), Home::Word(from)) => {
                let mem = self.frame.word(from);
                self.asm.mov_rm(to, mem);
            }
            (Home::Word(to), Home::Gpr(from)) => {
                let mem = self.frame.word(to);
                self.asm.mov_mr(mem, from);
            }
            (Home::Word(_), Home::Word(_)) => {
                self.move_home(Home::Gpr(rax), from)?;
                self.move_home(to, Home::Gpr(rax))?;
            }
            _ => return Err(bug("a value moves to a place of another kind")),
        }
        Ok(())
    }
}

fn unbalanced() -> Box<chainrule_base::Diagnostic> {
    bug("the events of a kernel do not close what they open")
}

/// Returns a loop of several rounds at its top.
fn opened(plan: &LoopPlan, top: crate::asm::Label, exit: crate::asm::Label) -> OpenLoop<'_> {
    let kept = plan.kept.iter().map(|kept| (kept.address.clone(), kept.at)).collect();
    OpenLoop { plan, kept, top, exit, is_one_round: false }
}
