//! Survey of uses and their weights.
//!
//! In: the events of a kernel. Out: [`Survey`], in one forward walk: values that outlive their block, their uses by
//! loop depth, and candidates for coalescing.

use crate::asm::Shape;
use crate::lower::copies;
use crate::lower::plan::{Kind, calls};
use chainrule_base::{Id, Poly};
use chainrule_kernel::{Carried, Event, Instr, Kernel, Reg};
use chainrule_ops::Op;
use std::collections::BTreeSet;
/// Results of one forward walk.
pub(in crate::lower) struct Survey {
    /// Whether each register is used outside the block that defines it.
    pub global: Vec<bool>,
    /// Weighted accesses of each register, larger in loops. Only used for globals.
    pub weight: Vec<u64>,
    /// Whether each register is used outside addresses.
    is_read: Vec<bool>,
    /// Loop depth of each event.
    pub depth: Vec<u8>,
    /// Weight of the calls before each event.
    pub calls: Vec<u64>,
    /// Number of uses of each register.
    uses: Vec<u32>,
    /// Whether each register is a truth value in each lane.
    is_truth: Vec<bool>,
    /// Pairs of `next` and `var` of a loop that may be coalesced.
    pub share: Vec<(Reg, Reg)>,
    /// Last use so far of each register, and the block that defines it.
    pub last_use: Vec<u32>,
    block_of: Vec<u32>,
}

pub(in crate::lower) fn weight(depth: u8) -> u64 {
    1 << (4 * u32::from(depth.min(8)))
}

impl Survey {
    /// Returns whether an integer is used outside addresses.
    pub(in crate::lower) fn is_read(&self, r: Reg) -> bool {
        self.is_read[r.index()]
    }

    /// Returns the number of uses of `r`.
    pub(in crate::lower) fn uses(&self, r: Reg) -> u32 {
        self.uses[r.index()]
    }

    /// Returns whether `r` is a truth value in each lane.
    pub(in crate::lower) fn is_truth(&self, r: Reg) -> bool {
        self.is_truth[r.index()]
    }

    pub(in crate::lower) fn new(kernel: &Kernel, events: &[Event<'_>], kinds: &[Kind]) -> Self {
        let mut walk = Walk::new(kernel.regs.len(), events.len(), kinds);
        for event in events {
            walk.event(event);
        }
        walk.finished()
    }
}

/// Walk over the events of a kernel that makes a survey.
struct Walk<'k> {
    survey: Survey,
    kinds: &'k [Kind],
    /// Number of the current event, from 1.
    at: u32,
    /// Number of the current block.
    block: u32,
    depth: u8,
    /// Weight of the calls so far.
    called: u64,
    /// Event that defines each register.
    defined: Vec<u32>,
    /// Events that opened the loops around.
    opened: Vec<u32>,
    /// Registers in addresses of loads in this block: a load may be delayed to the end of the block.
    waiting: Vec<Reg>,
}

impl<'k> Walk<'k> {
    fn new(n_regs: usize, n_events: usize, kinds: &'k [Kind]) -> Self {
        let (mut depth, mut calls) = (Vec::with_capacity(n_events + 1), Vec::with_capacity(n_events + 2));
        depth.push(0);
        calls.push(0);
        let survey = Survey {
            global: kinds.iter().map(|k| *k == Kind::Int).collect(),
            weight: vec![0; n_regs],
            is_read: vec![false; n_regs],
            depth,
            calls,
            uses: vec![0; n_regs],
            is_truth: kinds.iter().map(|k| *k == Kind::Truth).collect(),
            share: Vec::new(),
            last_use: vec![0; n_regs],
            block_of: vec![0; n_regs],
        };
        let (opened, waiting) = (Vec::new(), Vec::new());
        Self { survey, kinds, at: 0, block: 0, depth: 0, called: 0, defined: vec![0; n_regs], opened, waiting }
    }

    fn finished(mut self) -> Survey {
        self.waiting.drain(..).for_each(|r| self.survey.last_use[r.index()] = self.at);
        self.survey.calls.push(self.called);
        self.survey
    }

    /// Records a use outside straight-line code.
    fn used(&mut self, r: Reg) {
        self.used_in(r, None);
        self.survey.is_read[r.index()] = true;
    }

    /// Records a use in straight-line code of `block`, or elsewhere.
    fn used_in(&mut self, r: Reg, block: Option<u32>) {
        let survey = &mut self.survey;
        survey.last_use[r.index()] = self.at;
        survey.uses[r.index()] += 1;
        survey.weight[r.index()] += weight(self.depth);
        if block != Some(survey.block_of[r.index()]) {
            survey.global[r.index()] = true;
        }
    }

    fn used_by(&mut self, poly: &Poly<Reg>) {
        poly.terms().flat_map(|(m, _)| m).for_each(|r| self.used(*r));
    }

    /// Records the definition of a register that lives across blocks.
    fn bound(&mut self, r: Reg) {
        self.survey.global[r.index()] = true;
        self.defined[r.index()] = self.at;
    }

    fn event(&mut self, event: &Event<'_>) {
        self.at += 1;
        self.survey.calls.push(self.called);
        if !matches!(event, Event::Instr(_)) {
            self.block += 1;
            let (last_use, before) = (&mut self.survey.last_use, self.at - 1);
            self.waiting.drain(..).for_each(|r| last_use[r.index()] = last_use[r.index()].max(before));
        }
        match event {
            Event::Instr(instr) => self.instr(instr),
            Event::Copy { to, from, len, .. } => {
                [&to.1, &from.1, *len].into_iter().for_each(|poly| self.used_by(poly));
                if copies::is_call(to, from, len) {
                    self.called += weight(self.depth);
                }
            }
            Event::For { count: poly, carried, .. } | Event::While { limit: poly, carried } => {
                self.used_by(poly);
                carried.iter().for_each(|c| self.used(c.init));
                carried.iter().for_each(|c| self.bound(c.var));
                if let Event::For { index, .. } = event {
                    self.bound(*index);
                }
                self.opened.push(self.at);
                self.depth = self.depth.saturating_add(1);
            }
            Event::EndFor { carried, .. } | Event::EndWhile { carried } => {
                self.share(carried);
                carried.iter().for_each(|c| self.used(c.next));
                self.depth = self.depth.saturating_sub(1);
            }
            Event::Test { holds, .. } => self.used(*holds),
            Event::If { condition } => {
                // A truth value is tested at the end of its block.
                let here = (self.kinds[condition.index()] == Kind::Truth).then(|| self.block - 1);
                self.used_in(*condition, here);
                self.survey.is_read[condition.index()] = true;
            }
            Event::Else { choices } => {
                choices.iter().for_each(|c| self.used(c.then));
                choices.iter().for_each(|c| self.bound(c.var));
            }
            Event::EndIf { choices } => choices.iter().for_each(|c| self.used(c.otherwise)),
        }
        self.survey.depth.push(self.depth);
    }

    fn instr(&mut self, instr: &Instr) {
        let (block, in_address) = (self.block, matches!(instr, Instr::Load { .. } | Instr::Store { .. }));
        instr.for_each_use(|r| {
            self.used_in(r, Some(block));
            self.survey.is_read[r.index()] |= !in_address;
        });
        if let Some(dst) = instr.dst() {
            self.survey.block_of[dst.index()] = block;
            self.defined[dst.index()] = self.at;
            self.survey.weight[dst.index()] += weight(self.depth);
        }
        if let Instr::Load { dst, at: address, .. } = instr
            && self.kinds[dst.index()] != Kind::Int
        {
            self.waiting.extend(address.terms().flat_map(|(m, _)| m));
        }
        if calls(instr) {
            self.called += weight(self.depth);
        }
    }

    /// Records the next values of a loop that ends here which may share the location of the current ones: these have no
    /// use after the next ones are defined.
    fn share(&mut self, carried: &[Carried]) {
        let begin = self.opened.pop().unwrap_or(0);
        let mut shared = BTreeSet::new();
        for c in carried {
            let is_read = carried.iter().any(|other| other.next == c.var);
            if !is_read
                && self.defined[c.next.index()] > begin
                && self.survey.last_use[c.var.index()] <= self.defined[c.next.index()]
                && self.kinds[c.var.index()] == self.kinds[c.next.index()]
                && shared.insert(c.next)
            {
                self.survey.share.push((c.next, c.var));
            }
        }
    }
}

impl Survey {
    /// Returns the comparisons that only a directly following branch reads, which uses the flags: they need no
    /// locations. Comparisons of doubles only for one point.
    pub(in crate::lower) fn fuse(&mut self, events: &[Event<'_>], shape: Shape) -> BTreeSet<u32> {
        let mut fused = BTreeSet::new();
        for (at, pair) in (1u32..).zip(events.windows(2)) {
            if let [Event::Instr(comparison), Event::If { condition }] = pair
                && let Instr::IntOp { dst, op: Op::Lt | Op::Le | Op::Eq, .. }
                | Instr::Op { dst, op: Op::Lt | Op::Le | Op::Eq, .. } = comparison
                && (matches!(comparison, Instr::IntOp { .. }) || shape == Shape::One && self.is_truth(*dst))
                && dst == condition
                && self.uses[dst.index()] == 1
            {
                self.global[dst.index()] = false;
                fused.insert(at);
            }
        }
        fused
    }
}
