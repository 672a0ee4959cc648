//! Survey of uses and their weights.
//!
//! In: the events of a kernel. Out: [`Survey`], in one forward walk: values that outlive their block, their uses by
//! loop depth, and candidates for coalescing.

use crate::asm::Shape;
use crate::lower::copies;
use crate::lower::plan::{Kind, calls};
use chainrule_base::Id;
use chainrule_kernel::{Event, Instr, Kernel, Reg};
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
    1 << (3 * u32::from(depth.min(8)))
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
        // Registers in addresses of loads in this block: a load may be delayed to the end of the block.
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
                    // A truth value is tested at the end of its block.
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
