//! What is decided before the first instruction is written: where each value lives, and when it is used next.
//!
//! In: a kernel. Out: a [`Plan`].
//!
//! **Blocks.** A block is a run of instructions without control between them. A value that is defined and
//! used in one block is *local*: block by block, [`registers`](super::registers) hands out what is free to
//! what is used soonest. All others are *global*: each has one place for its whole life, a register
//! or a place in the frame.
//!
//! **Globals** compete for registers by their weight, the number of accesses with each level of loops counted
//! eightfold, less what saving them around calls costs. What a loop carries shares its place with what it
//! becomes next, where the old value is not needed any more when the new one is made.
//!
//! **Next uses** are found in one walk backwards, and laid down in the order in which the walk forwards asks.

use super::frame::Words;
use crate::asm::{Gpr, Xmm};
use crate::level::Level;
use chainrule_base::{Diagnostic, Id, Poly};
use chainrule_kernel::addresses::{kept_addresses, split_constant};
use chainrule_kernel::{BufferId, Class, Event, Instr, Kernel, Liveness, Place, Reg, events};
use chainrule_ops::Type;
use std::collections::{BTreeMap, BTreeSet};

/// No use any more.
pub(super) const NEVER: u32 = u32::MAX;

/// What a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A double in each lane.
    Real,
    /// A truth value in each lane: all bits or none.
    Truth,
    /// One integer.
    Int,
}

/// Where a value lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Home {
    /// In its block only.
    Local,
    /// In a vector register.
    Xmm(Xmm),
    /// In a place of the frame for reals.
    Slot(u32),
    /// In a general register.
    Gpr(Gpr),
    /// In a word of the frame.
    Word(u32),
}

/// An integer that the plan adds to those of the kernel; an index into [`Plan::homes`] too.
pub(super) type Number = usize;

/// What a loop keeps.
#[derive(Default, Debug)]
pub(super) struct LoopPlan {
    /// The number of iterations, or their limit.
    pub count: Number,
    /// Counts the iterations of a conditional loop.
    pub counter: Number,
    /// Addresses without constant terms; where they are, and how far they step.
    pub kept: Vec<(Poly<Reg>, Number, Step)>,
}

/// How far a kept address goes in one iteration.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// By so many elements.
    Constant(i64),
    /// By a number that is computed before the loop.
    Number(Number, Poly<Reg>),
}

/// The plan.
pub(super) struct Plan<'k> {
    pub events: Vec<Event<'k>>,
    pub kinds: Vec<Kind>,
    /// By register; then the numbers that the plan adds; then the pointers of buffers.
    pub homes: Vec<Home>,
    /// For each instruction: the next use in the block of each operand, in the order of [`operands`], and of
    /// what it defines.
    pub next: Vec<u32>,
    /// Loads that may wait until their first use, by number of event.
    pub lazy: Vec<bool>,
    /// The first event that writes each buffer.
    pub first_store: Vec<u32>,
    /// By number of the opening event.
    pub loops: BTreeMap<u32, LoopPlan>,
    /// The pointer of the first buffer.
    pub first_pointer: Number,
    /// How many places for globals the frame has.
    pub n_slots: u32,
    pub words: Words,
    /// Vector registers that hold globals.
    pub pinned: u32,
    /// Pointers in registers that calls destroy.
    pub fragile_pointers: Vec<BufferId>,
}

/// What an instruction takes from vector registers, and what it puts there.
pub(super) fn operands(instr: &Instr, kinds: &[Kind], mut visit: impl FnMut(Reg)) {
    match instr {
        Instr::Op { op, args, .. } => {
            args[..op.arity()].iter().filter(|r| kinds[r.index()] != Kind::Int).for_each(|r| visit(*r));
        }
        Instr::MulAdd { args, .. } => args.iter().for_each(|r| visit(*r)),
        Instr::External { args, .. } => args.iter().for_each(|r| visit(*r)),
        Instr::ToReal { src, .. } if kinds[src.index()] == Kind::Truth => visit(*src),
        Instr::Store { value, .. } if kinds[value.index()] != Kind::Int => visit(*value),
        _ => {}
    }
}

/// Truth values that only scalar operators read stay in vectors; those that are looked at as a number are one.
fn kinds(kernel: &Kernel, events: &[Event<'_>]) -> Vec<Kind> {
    let class = |class: &Class| if *class == Class::Real { Kind::Real } else { Kind::Int };
    let mut kinds: Vec<Kind> = kernel.regs.as_slice().iter().map(class).collect();
    for event in events {
        if let Event::Instr(Instr::Op { dst, op, .. }) = event
            && op.row().result == Type::Bool
        {
            kinds[dst.index()] = Kind::Truth;
        }
    }
    let mut number = |r: Reg| {
        if kinds[r.index()] == Kind::Truth {
            kinds[r.index()] = Kind::Int;
        }
    };
    for event in events {
        match event {
            Event::Instr(Instr::Op { .. } | Instr::MulAdd { .. } | Instr::ToReal { .. }) => {}
            Event::Instr(instr) => instr.for_each_use(&mut number),
            Event::Copy { to, from, len } => {
                [&to.1, &from.1, *len].into_iter().flat_map(Poly::vars).for_each(&mut number);
            }
            Event::For { count: poly, carried, .. } | Event::While { limit: poly, carried } => {
                poly.vars().into_iter().for_each(&mut number);
                carried.iter().for_each(|c| number(c.init));
            }
            Event::EndFor { carried, .. } | Event::EndWhile { carried } => carried.iter().for_each(|c| number(c.next)),
            Event::Test { holds, .. } => number(*holds),
            Event::If { condition } => number(*condition),
            Event::Else { choices } => choices.iter().for_each(|c| number(c.then)),
            Event::EndIf { choices } => choices.iter().for_each(|c| number(c.otherwise)),
        }
    }
    kinds
}

impl<'k> Plan<'k> {
    pub(super) fn new(kernel: &'k Kernel, level: Level) -> Result<Self, Diagnostic> {
        let events = events(&kernel.body);
        if events.len() >= NEVER as usize {
            return Err(Diagnostic::limitation("the kernel has more than 4294967294 statements"));
        }
        let kinds = kinds(kernel, &events);
        let lives = Liveness::new(kernel.regs.len(), &events);
        let survey = Survey::new(kernel, &events, &kinds);
        let (next, lazy) = next_uses(kernel, &events, &kinds);
        let first_store = first_stores(kernel, &events);
        let mut homes = Homes::new(kernel, &events, &kinds, &lives, &survey);
        let loops = homes.loops(&kept_addresses(&events, &lives));
        let first_pointer = homes.pointers(kernel);
        let mut words = Words::new(kernel);
        let assigned = homes.assign(level, &mut words);
        let fragile_pointers = kernel
            .buffers
            .ids()
            .filter(|b| matches!(assigned.homes[first_pointer + b.index()], Home::Gpr(g) if !survives_calls(g)))
            .collect();
        Ok(Self {
            events,
            kinds,
            homes: assigned.homes,
            next,
            lazy,
            first_store,
            loops,
            first_pointer,
            n_slots: assigned.n_slots,
            words,
            pinned: assigned.pinned,
            fragile_pointers,
        })
    }
}

/// What one walk forwards finds.
struct Survey {
    /// Whether it is used outside of the block that defines it.
    global: Vec<bool>,
    /// Accesses, those in loops counted more. For globals only it is looked at.
    weight: Vec<u64>,
    /// Weight of the accesses to each buffer.
    buffer_weight: Vec<u64>,
    /// Loop depth of each event.
    depth: Vec<u8>,
    /// Weight of the calls before each event.
    calls: Vec<u64>,
    /// Pairs of `next` and `var` of a loop that may share a place.
    share: Vec<(Reg, Reg)>,
    /// The last use so far of each register, and the block that defines it.
    last_use: Vec<u32>,
    block_of: Vec<u32>,
}

fn weight(depth: u8) -> u64 {
    1 << (3 * u32::from(depth.min(8)))
}

/// Whether an instruction calls a function, which destroys most registers.
pub(super) fn calls(instr: &Instr) -> bool {
    match instr {
        Instr::Op { op, .. } => !super::inline::is_inline(*op),
        Instr::IntOp { op, .. } => !super::integers::is_inline(*op),
        Instr::External { .. } => true,
        _ => false,
    }
}

impl Survey {
    fn new(kernel: &Kernel, events: &[Event<'_>], kinds: &[Kind]) -> Self {
        let n = kernel.regs.len();
        let mut this = Self {
            global: kinds.iter().map(|k| *k == Kind::Int).collect(),
            weight: vec![0; n],
            buffer_weight: vec![0; kernel.buffers.len()],
            depth: Vec::with_capacity(events.len() + 1),
            calls: Vec::with_capacity(events.len() + 2),
            share: Vec::new(),
            last_use: vec![0; n],
            block_of: vec![0; n],
        };
        let (mut block, mut depth, mut called) = (0u32, 0u8, 0u64);
        let mut defined = vec![0u32; n];
        let mut opened: Vec<u32> = Vec::new();
        this.depth.push(0);
        this.calls.push(0);
        for (at, event) in (1u32..).zip(events) {
            this.calls.push(called);
            if !matches!(event, Event::Instr(_)) {
                block += 1;
            }
            let heft = weight(depth);
            let used = |this: &mut Self, r: Reg, block: Option<u32>| {
                this.last_use[r.index()] = at;
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
                    if let Instr::Load { buffer, .. } | Instr::Store { buffer, .. } = instr {
                        this.buffer_weight[buffer.index()] += heft;
                    }
                    if calls(instr) {
                        called += heft;
                    }
                }
                Event::Copy { to, from, len } => {
                    for poly in [&to.1, &from.1, *len] {
                        poly.terms().flat_map(|(m, _)| m).for_each(|r| used(&mut this, *r, None));
                    }
                    called += heft;
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
                Event::If { condition } => used(&mut this, *condition, None),
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
        this.calls.push(called);
        this
    }
}

fn first_stores(kernel: &Kernel, events: &[Event<'_>]) -> Vec<u32> {
    let mut first = vec![NEVER; kernel.buffers.len()];
    for (at, event) in (1u32..).zip(events) {
        let (Event::Instr(Instr::Store { buffer, .. }) | Event::Copy { to: (buffer, _), .. }) = event else { continue };
        first[buffer.index()] = first[buffer.index()].min(at);
    }
    first
}

/// See [`Plan::next`] and [`Plan::lazy`]. One walk backwards.
fn next_uses(kernel: &Kernel, events: &[Event<'_>], kinds: &[Kind]) -> (Vec<u32>, Vec<bool>) {
    let mut reversed: Vec<u32> = Vec::with_capacity(3 * events.len());
    let mut lazy = vec![false; events.len() + 1];
    let mut next = vec![NEVER; kernel.regs.len()];
    // The end of the block, beyond which a use does not count.
    let mut end = NEVER;
    // Where the buffer is written next.
    let mut written = vec![NEVER; kernel.buffers.len()];
    let mut seen: Vec<Reg> = Vec::new();
    for (i, event) in events.iter().enumerate().rev() {
        let at = i as u32 + 1;
        let Event::Instr(instr) = event else {
            end = at;
            continue;
        };
        let inside = |use_at: u32| if use_at < end { use_at } else { NEVER };
        if let Some(dst) = instr.dst()
            && kinds[dst.index()] != Kind::Int
        {
            reversed.push(inside(next[dst.index()]));
        }
        seen.clear();
        operands(instr, kinds, |r| seen.push(r));
        for r in seen.iter().rev() {
            reversed.push(inside(next[r.index()]));
        }
        for r in &seen {
            next[r.index()] = at;
        }
        match instr {
            Instr::Store { buffer, .. } => written[buffer.index()] = at,
            Instr::Load { buffer, .. } => {
                let input = matches!(kernel.buffers[*buffer].place, Place::Input(_));
                lazy[at as usize] = input || inside(written[buffer.index()]) == NEVER;
            }
            _ => {}
        }
    }
    reversed.reverse();
    (reversed, lazy)
}

/// One place that is wanted.
struct Wish {
    /// From the first definition to the last use.
    from: u32,
    to: u32,
    weight: u64,
    kind: Kind,
}

struct Homes<'a> {
    events: &'a [Event<'a>],
    survey: &'a Survey,
    lives: &'a Liveness,
    wishes: Vec<Option<Wish>>,
    /// Union-find: what shares a place.
    leader: Vec<usize>,
    buffer_weight: &'a [u64],
}

struct Assigned {
    homes: Vec<Home>,
    n_slots: u32,
    pinned: u32,
}

pub(super) fn survives_calls(g: Gpr) -> bool {
    [Gpr::RBX, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15].contains(&g)
}

impl<'a> Homes<'a> {
    fn new(kernel: &Kernel, events: &'a [Event<'a>], kinds: &[Kind], lives: &'a Liveness, survey: &'a Survey) -> Self {
        let mut wishes: Vec<Option<Wish>> = Vec::with_capacity(kernel.regs.len());
        for (i, kind) in kinds.iter().enumerate() {
            let global = survey.global[i];
            let wish = Wish { from: lives.def[i], to: lives.last[i], weight: survey.weight[i], kind: *kind };
            wishes.push(global.then_some(wish));
        }
        let leader = (0..wishes.len()).collect();
        let mut this = Self { events, survey, lives, wishes, leader, buffer_weight: &survey.buffer_weight };
        for (a, b) in &survey.share {
            this.unite(a.index(), b.index());
        }
        this
    }

    fn find(&mut self, mut i: usize) -> usize {
        while self.leader[i] != i {
            self.leader[i] = self.leader[self.leader[i]];
            i = self.leader[i];
        }
        i
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        let Some(from) = self.wishes[a].take() else { return };
        if let Some(into) = &mut self.wishes[b] {
            into.from = into.from.min(from.from);
            into.to = into.to.max(from.to);
            into.weight += from.weight;
        }
        self.leader[a] = b;
    }

    fn number(&mut self, from: u32, to: u32, weight: u64) -> Number {
        self.wishes.push(Some(Wish { from, to, weight, kind: Kind::Int }));
        self.leader.push(self.leader.len());
        self.wishes.len() - 1
    }

    /// The plans of all loops.
    fn loops(&mut self, kept: &BTreeMap<u32, Vec<Poly<Reg>>>) -> BTreeMap<u32, LoopPlan> {
        let mut plans = BTreeMap::new();
        let uses = self.address_uses();
        for (at, event) in (1u32..).zip(self.events) {
            let index = match event {
                Event::For { index, .. } => Some(*index),
                Event::While { .. } => None,
                _ => continue,
            };
            let end = self.lives.end_of_loop[at as usize];
            let inner = weight(self.survey.depth[at as usize]);
            let mut plan = LoopPlan { count: self.number(at, end, inner), ..LoopPlan::default() };
            plan.counter = self.number(at, end, if index.is_some() { 0 } else { 2 * inner });
            for address in kept.get(&at).into_iter().flatten() {
                let slope = index.and_then(|i| address.split_linear(i)).map_or_else(Poly::zero, |(slope, _)| slope);
                let accesses = uses.get(&(at, address)).copied().unwrap_or(0);
                let place = self.number(at, end, inner * (accesses + 2));
                let step = match slope.as_constant() {
                    Some(k) => Step::Constant(k),
                    None => Step::Number(self.number(at, end, inner), slope),
                };
                plan.kept.push((address.clone(), place, step));
            }
            plans.insert(at, plan);
        }
        plans
    }

    /// How often each address occurs directly in each loop.
    fn address_uses(&self) -> BTreeMap<(u32, &'a Poly<Reg>), u64> {
        let mut whole: BTreeMap<(u32, &'a Poly<Reg>), u64> = BTreeMap::new();
        let mut open: Vec<u32> = Vec::new();
        for (at, event) in (1u32..).zip(self.events) {
            match event {
                Event::For { .. } | Event::While { .. } => open.push(at),
                Event::EndFor { .. } | Event::EndWhile { .. } => {
                    open.pop();
                }
                Event::Instr(Instr::Load { at: address, .. } | Instr::Store { at: address, .. }) => {
                    if let Some(begin) = open.last()
                        && split_constant(address).1 == 0
                    {
                        *whole.entry((*begin, address)).or_insert(0) += 1;
                    }
                }
                _ => {}
            }
        }
        whole
    }

    /// A number for the pointer of each buffer; returns the first.
    fn pointers(&mut self, kernel: &Kernel) -> Number {
        let first = self.wishes.len();
        let end = self.events.len() as u32 + 1;
        for b in kernel.buffers.ids() {
            self.number(0, end, self.buffer_weight[b.index()]);
        }
        first
    }

    fn assign(mut self, level: Level, words: &mut Words) -> Assigned {
        let n = self.wishes.len();
        let mut order: Vec<usize> = (0..n).filter(|i| self.wishes[*i].as_ref().is_some_and(|w| w.weight > 0)).collect();
        let heft = |w: &Option<Wish>| w.as_ref().map_or(0, |w| w.weight);
        order.sort_by(|a, b| heft(&self.wishes[*b]).cmp(&heft(&self.wishes[*a])).then(a.cmp(b)));
        let mut vectors: Vec<(Xmm, Taken)> = vector_pool(level).map(|x| (x, Taken::default())).collect();
        let pool = [
            Gpr::RBX,
            Gpr::RSI,
            Gpr::RDI,
            Gpr::R8,
            Gpr::R9,
            Gpr::R10,
            Gpr::R11,
            Gpr::R14,
            Gpr::R15,
            Gpr::R12,
            Gpr::R13,
        ];
        let mut generals: Vec<(Gpr, Taken)> = pool.into_iter().map(|g| (g, Taken::default())).collect();
        let mut homes = vec![Home::Local; n];
        let mut pinned = 0u32;
        for i in order {
            let Some(wish) = &self.wishes[i] else { continue };
            let calls = self.survey.calls[(wish.to as usize + 1).min(self.survey.calls.len() - 1)]
                - self.survey.calls[wish.from as usize];
            if wish.kind == Kind::Int {
                let is_pointer = wish.from == 0 && wish.to as usize == self.events.len() + 1;
                let free = generals.iter_mut().find(|(g, taken)| {
                    (calls == 0 || survives_calls(*g) || (is_pointer && wish.weight > 2 * calls))
                        && taken.is_free(wish.from, wish.to)
                });
                if let Some((g, taken)) = free {
                    taken.take(wish.from, wish.to);
                    homes[i] = Home::Gpr(*g);
                }
            } else if wish.kind == Kind::Real && wish.weight > 2 * calls {
                let free = vectors.iter_mut().find(|(_, taken)| taken.is_free(wish.from, wish.to));
                if let Some((x, taken)) = free {
                    taken.take(wish.from, wish.to);
                    pinned |= 1 << x.0;
                    homes[i] = Home::Xmm(*x);
                }
            }
        }
        let mut n_slots = 0;
        for (home, wish) in homes.iter_mut().zip(&self.wishes) {
            match wish {
                Some(wish) if *home == Home::Local => {
                    *home = if wish.kind == Kind::Int {
                        Home::Word(words.take())
                    } else {
                        n_slots += 1;
                        Home::Slot(n_slots - 1)
                    };
                }
                _ => {}
            }
        }
        for i in 0..n {
            let leader = self.find(i);
            homes[i] = homes[leader];
        }
        Assigned { homes, n_slots, pinned }
    }
}

/// The vector registers that globals may have.
fn vector_pool(level: Level) -> impl Iterator<Item = Xmm> {
    let (from, to) = match level {
        Level::Avx2 => (8, 16),
        Level::Avx512 => (10, 26),
    };
    (from..to).map(Xmm)
}

/// Where a register is taken: spans of events that do not overlap, by their begin.
#[derive(Default)]
struct Taken(BTreeMap<u32, u32>);

impl Taken {
    fn is_free(&self, from: u32, to: u32) -> bool {
        self.0.range(..=to).next_back().is_none_or(|(_, end)| *end < from)
    }

    fn take(&mut self, from: u32, to: u32) {
        self.0.insert(from, to);
    }
}

/// Whether a batch can run in lanes: all integers are the same for all points, and none is in memory; truth
/// values need not be.
pub(super) fn fits_lanes(kernel: &Kernel) -> bool {
    let events = events(&kernel.body);
    let kinds = kinds(kernel, &events);
    let Some(varying) = chainrule_kernel::liveness::varying(kernel.regs.len(), &events) else { return false };
    let real = |b: BufferId| kernel.buffers[b].class == Class::Real;
    // What control, addresses and integer operators read are integers, so nothing else has to be asked of it.
    (0..kinds.len()).all(|i| kinds[i] != Kind::Int || !varying[i])
        && events.iter().all(|event| match event {
            Event::Instr(Instr::Load { buffer, .. } | Instr::Store { buffer, .. }) => real(*buffer),
            Event::Copy { to, .. } => real(to.0),
            _ => true,
        })
}
