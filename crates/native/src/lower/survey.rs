//! What uses what, and how much.
//!
//! In: the events of a kernel. Out: [`Survey`], in one walk forwards: what outlives its block, how often it is used where, what
//! may share a place.

use super::copies;
use super::plan::{Kind, calls};
use crate::asm::Shape;
use chainrule_base::Id;
use chainrule_kernel::{Event, Instr, Kernel, Reg};
use chainrule_ops::Op;
use std::collections::BTreeSet;
/// What one walk forwards finds.
pub(super) struct Survey {
    /// Whether it is used outside of the block that defines it.
    pub global: Vec<bool>,
    /// Accesses, those in loops counted more. For globals only it is looked at.
    pub weight: Vec<u64>,
    /// Whether it is used but in addresses.
    is_read: Vec<bool>,
    /// Loop depth of each event.
    pub depth: Vec<u8>,
    /// Weight of the calls before each event.
    pub calls: Vec<u64>,
    /// How often each is used.
    uses: Vec<u32>,
    /// What is a truth value in each lane.
    is_truth: Vec<bool>,
    /// Pairs of `next` and `var` of a loop that may share a place.
    pub share: Vec<(Reg, Reg)>,
    /// The last use so far of each register, and the block that defines it.
    pub last_use: Vec<u32>,
    block_of: Vec<u32>,
}

pub(super) fn weight(depth: u8) -> u64 {
    1 << (3 * u32::from(depth.min(8)))
}

impl Survey {
    /// Whether an integer is used but in addresses.
    pub(super) fn is_read(&self, r: Reg) -> bool {
        self.is_read[r.index()]
    }

    /// How often `r` is used.
    pub(super) fn uses(&self, r: Reg) -> u32 {
        self.uses[r.index()]
    }

    /// Whether `r` is a truth value in each lane.
    pub(super) fn is_truth(&self, r: Reg) -> bool {
        self.is_truth[r.index()]
    }

    pub(super) fn new(kernel: &Kernel, events: &[Event<'_>], kinds: &[Kind]) -> Self {
        let n = kernel.regs.len();
        let mut this = Self {
            global: kinds.iter().map(|k| *k == Kind::Int).collect(),
            weight: vec![0; n],
            is_read: vec![false; n],
            depth: Vec::with_capacity(events.len() + 1),
            calls: Vec::with_capacity(events.len() + 2),
            uses: vec![0; n],
            is_truth: kinds.iter().map(|k| *k == Kind::Truth).collect(),
            share: Vec::new(),
            last_use: vec![0; n],
            block_of: vec![0; n],
        };
        let (mut block, mut depth, mut called) = (0u32, 0u8, 0u64);
        let mut defined = vec![0u32; n];
        let mut opened: Vec<u32> = Vec::new();
        // What addresses of loads in this block are made of: a load may wait until the end of the block.
        let mut waiting: Vec<Reg> = Vec::new();
        this.depth.push(0);
        this.calls.push(0);
        for (at, event) in (1u32..).zip(events) {
            this.calls.push(called);
            if !matches!(event, Event::Instr(_)) {
                block += 1;
                waiting.drain(..).for_each(|r| this.last_use[r.index()] = this.last_use[r.index()].max(at - 1));
            }
            let heft = weight(depth);
            let in_address = matches!(event, Event::Instr(Instr::Load { .. } | Instr::Store { .. }));
            let used = |this: &mut Self, r: Reg, block: Option<u32>| {
                this.is_read[r.index()] |= !in_address;
                this.last_use[r.index()] = at;
                this.uses[r.index()] += 1;
                this.weight[r.index()] += heft;
                if block != Some(this.block_of[r.index()]) {
                    this.global[r.index()] = true;
                }
            };
            match event {
                Event::Instr(instr) => {
                    instr.for_each_use(|r| used(&mut this, r, Some(block)));
                    if let Some(dst) = instr.dst() {
                        this.block_of[dst.index()] = block;
                        defined[dst.index()] = at;
                        this.weight[dst.index()] += heft;
                    }
                    if let Instr::Load { dst, at: address, .. } = instr
                        && kinds[dst.index()] != Kind::Int
                    {
                        waiting.extend(address.terms().flat_map(|(m, _)| m));
                    }
                    if calls(instr) {
                        called += heft;
                    }
                }
                Event::Copy { to, from, len } => {
                    for poly in [&to.1, &from.1, *len] {
                        poly.terms().flat_map(|(m, _)| m).for_each(|r| used(&mut this, *r, None));
                    }
                    if copies::is_call(to, from, len) {
                        called += heft;
                    }
                }
                Event::For { count: poly, carried, .. } | Event::While { limit: poly, carried } => {
                    poly.terms().flat_map(|(m, _)| m).for_each(|r| used(&mut this, *r, None));
                    carried.iter().for_each(|c| used(&mut this, c.init, None));
                    carried.iter().for_each(|c| {
                        this.global[c.var.index()] = true;
                        defined[c.var.index()] = at;
                    });
                    if let Event::For { index, .. } = event {
                        this.global[index.index()] = true;
                        defined[index.index()] = at;
                    }
                    opened.push(at);
                    depth = depth.saturating_add(1);
                }
                Event::EndFor { carried, .. } | Event::EndWhile { carried } => {
                    let begin = opened.pop().unwrap_or(0);
                    let mut shared = BTreeSet::new();
                    for c in *carried {
                        let is_read = carried.iter().any(|other| other.next == c.var);
                        if !is_read
                            && defined[c.next.index()] > begin
                            && this.last_use[c.var.index()] <= defined[c.next.index()]
                            && kinds[c.var.index()] == kinds[c.next.index()]
                            && shared.insert(c.next)
                        {
                            this.share.push((c.next, c.var));
                        }
                    }
                    carried.iter().for_each(|c| used(&mut this, c.next, None));
                    depth = depth.saturating_sub(1);
                }
                Event::Test { holds, .. } => used(&mut this, *holds, None),
                Event::If { condition } => {
                    // A truth value is looked at at the end of its block.
                    let here = (kinds[condition.index()] == Kind::Truth).then(|| block - 1);
                    used(&mut this, *condition, here);
                }
                Event::Else { choices } => {
                    choices.iter().for_each(|c| used(&mut this, c.then, None));
                    choices.iter().for_each(|c| {
                        this.global[c.var.index()] = true;
                        defined[c.var.index()] = at;
                    });
                }
                Event::EndIf { choices } => choices.iter().for_each(|c| used(&mut this, c.otherwise, None)),
            }
            this.depth.push(depth);
        }
        waiting.drain(..).for_each(|r| this.last_use[r.index()] = events.len() as u32);
        this.calls.push(called);
        this
    }
}

impl Survey {
    /// The comparisons that nobody reads but a branch right after them, which goes by the flags: they need no places. Of
    /// doubles those of one point.
    pub(super) fn fuse(&mut self, events: &[Event<'_>], shape: Shape) -> BTreeSet<u32> {
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
