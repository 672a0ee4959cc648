//! Where values live that outlive their block: globals.
//!
//! In: what uses what, from where to where it lives. Out: a place for each, a register or a part of the frame, for its
//! whole life.
//!
//! Globals compete for registers by their weight, the number of accesses with each level of loops counted
//! eightfold, less what saving them around calls costs. What a loop carries shares its place with what it
//! becomes next, where the old value is not needed any more when the new one is made.

use super::frame::Words;
use super::lanes::LanePlan;
use super::plan::{Counted, Home, Kind, LoopPlan, Number, Step, calls, is_short_copy};
use crate::asm::{Gpr, Shape, Xmm};
use crate::level::Level;
use chainrule_base::{Id, Poly};
use chainrule_kernel::addresses::{at_first, split_constant};
use chainrule_kernel::{Event, Instr, Kernel, Liveness, Reg};
use chainrule_ops::Op;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// What one walk forwards finds.
pub(super) struct Survey {
    /// Whether it is used outside of the block that defines it.
    global: Vec<bool>,
    /// Accesses, those in loops counted more. For globals only it is looked at.
    weight: Vec<u64>,
    /// Whether it is used but in addresses.
    is_read: Vec<bool>,
    /// Loop depth of each event.
    pub depth: Vec<u8>,
    /// Weight of the calls before each event.
    calls: Vec<u64>,
    /// How often each is used.
    uses: Vec<u32>,
    /// What is a truth value in each lane.
    is_truth: Vec<bool>,
    /// Pairs of `next` and `var` of a loop that may share a place.
    share: Vec<(Reg, Reg)>,
    /// The last use so far of each register, and the block that defines it.
    last_use: Vec<u32>,
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
                    if !is_short_copy(len) {
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

/// One place that is wanted.
struct Wish {
    /// From the first definition to the last use.
    from: u32,
    to: u32,
    weight: u64,
    kind: Kind,
    /// A pointer can be had again after a call.
    pointer: Option<Pointer>,
}

/// That of a buffer in a loop.
#[derive(Clone, Copy)]
struct Pointer {
    /// The same in the loop around it.
    around: Option<Number>,
}

impl Wish {
    /// Registers go first to what gains most for each event for which it keeps one.
    fn urgency(&self) -> u64 {
        match self.kind {
            Kind::Int => (self.weight << 16) / u64::from(self.to - self.from + 1),
            _ => self.weight,
        }
    }
}

/// The places that are wanted, and by whom.
pub(super) struct Homes<'a> {
    n_events: usize,
    /// The number of the first wish.
    first: Number,
    wishes: Vec<Option<Wish>>,
    /// Union-find: what shares a place.
    leader: Vec<usize>,
    /// Weight of the calls before each event.
    calls: Cow<'a, [u64]>,
    /// How many addresses come before each event that want spare registers.
    computed_addresses: Vec<u32>,
}

/// The places, from the first wish on.
pub(super) struct Assigned {
    pub homes: Vec<Home>,
    pub n_slots: u32,
    pub pinned: u32,
    /// Where general registers are taken.
    pub generals: Vec<(Gpr, Taken)>,
}

pub(super) fn survives_calls(g: Gpr) -> bool {
    [Gpr::RBX, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15].contains(&g)
}

impl<'a> Homes<'a> {
    /// The wishes of registers.
    pub(super) fn new(n_regs: usize, n_events: usize, kinds: &[Kind], lives: &Liveness, survey: &'a Survey) -> Self {
        let mut wishes: Vec<Option<Wish>> = Vec::with_capacity(n_regs);
        for (i, kind) in kinds.iter().enumerate() {
            let global = survey.global[i];
            let to = lives.last[i].max(survey.last_use[i]);
            let wish = Wish { from: lives.def[i], to, weight: survey.weight[i], kind: *kind, pointer: None };
            wishes.push(global.then_some(wish));
        }
        let leader = (0..wishes.len()).collect();
        let (calls, computed_addresses) = (Cow::Borrowed(survey.calls.as_slice()), vec![0; survey.calls.len()]);
        let mut this = Self { n_events, first: 0, wishes, leader, calls, computed_addresses };
        for (a, b) in &survey.share {
            this.unite(a.index(), b.index());
        }
        this
    }

    /// No wishes of registers.
    pub(super) fn of_pointers_only(n_regs: usize, n_events: usize, calls: u64) -> Self {
        Self {
            n_events,
            first: n_regs,
            wishes: Vec::new(),
            leader: Vec::new(),
            // Pointers live from the begin to the end.
            calls: Cow::Owned(vec![0, calls]),
            computed_addresses: vec![0, 0],
        }
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

    /// A place for an integer.
    pub(super) fn number(&mut self, from: u32, to: u32, weight: u64) -> Number {
        self.wish(Wish { from, to, weight, kind: Kind::Int, pointer: None })
    }

    /// Nobody asks for a place for `r`.
    pub(super) fn forget(&mut self, r: Reg) {
        self.wishes[r.index()] = None;
    }

    /// A place for a pointer; `around` is that in the loop around, if it has one.
    pub(super) fn pointer(&mut self, from: u32, to: u32, weight: u64, around: Option<Number>) -> Number {
        self.wish(Wish { from, to, weight, kind: Kind::Int, pointer: Some(Pointer { around }) })
    }

    /// A place for a vector.
    pub(super) fn vector(&mut self, from: u32, to: u32, weight: u64) -> Number {
        self.wish(Wish { from, to, weight, kind: Kind::Real, pointer: None })
    }

    /// A place in lanes for what `of` is outside of a loop, which then needs its own less.
    pub(super) fn copy_for(&mut self, of: Reg, from: u32, to: u32, weight: u64) -> Number {
        let leader = self.find(of.index());
        let Some(outer) = &mut self.wishes[leader] else { return self.number(from, to, 0) };
        outer.weight = outer.weight.saturating_sub(weight).max(1);
        let kind = outer.kind;
        self.wish(Wish { from, to, weight, kind, pointer: None })
    }

    fn wish(&mut self, wish: Wish) -> Number {
        self.wishes.push(Some(wish));
        self.leader.push(self.leader.len());
        self.first + self.wishes.len() - 1
    }

    /// The plans of all loops.
    pub(super) fn loops(
        &mut self,
        events: &[Event<'_>],
        lives: &Liveness,
        survey: &Survey,
        kept: &BTreeMap<u32, Vec<Poly<Reg>>>,
        lanes: Lanes<'_>,
    ) -> BTreeMap<u32, LoopPlan> {
        let mut plans = BTreeMap::new();
        let AddressUses { in_loop: uses, computed } = address_uses(events, lanes.once, kept);
        self.computed_addresses = computed;
        for (at, event) in (1u32..).zip(events) {
            let (index, count) = match event {
                Event::For { index, count, .. } => (Some(*index), count.as_constant()),
                Event::While { .. } => (None, None),
                _ => continue,
            };
            let end = lives.end_of_loop[at as usize];
            let inner = weight(survey.depth[at as usize]);
            let known_count = count.and_then(|n| i32::try_from(n).ok());
            let counting = index
                .filter(|i| !lanes.all.contains_key(&at) && !survey.is_read(*i))
                .and_then(|i| Counting::new(i, survey.uses(i), at, kept.get(&at)?, &uses, known_count));
            let needs_count = !matches!(known_count, Some(1..)) || counting.as_ref().is_some_and(|c| c.end.is_none());
            let count = self.number(at, end, if needs_count { inner } else { 0 });
            let mut plan = LoopPlan { count, known_count, ..LoopPlan::default() };
            plan.counter = self.number(at, end, if index.is_some() { 0 } else { 2 * inner });
            if counting.is_some() {
                index.into_iter().for_each(|i| self.forget(i));
            }
            for address in kept.get(&at).into_iter().flatten() {
                let slope = index.and_then(|i| address.split_linear(i)).map_or_else(Poly::zero, |(slope, _)| slope);
                let accesses = uses.get(&(at, address.clone())).copied().unwrap_or(0);
                let place = self.number(at, end, inner * (accesses + 2));
                let step = match slope.as_constant() {
                    Some(k) => Step::Constant(k),
                    None => Step::Number(self.number(at, end, inner), slope),
                };
                if let Some(counting) = counting.as_ref().filter(|c| c.address == *address) {
                    plan.counted = Some(Counted { place, step: counting.step, end: counting.end });
                }
                plan.kept.push((address.clone(), place, step));
            }
            plans.insert(at, plan);
        }
        plans
    }

    /// Hands out places, registers to what is most urgent: see [`Wish::urgency`].
    pub(super) fn assign(mut self, level: Level, has_calls: bool, words: &mut Words) -> Assigned {
        let n = self.wishes.len();
        let mut vectors: Vec<(Xmm, Taken)> = vector_pool(level).map(|x| (x, Taken::default())).collect();
        let pool: &[Gpr] = match (has_calls, self.n_events < SHORT) {
            (true, _) => &CALLING,
            (false, true) => &SHORT_LEAF,
            (false, false) => &LEAF,
        };
        let mut generals: Vec<(Gpr, Taken)> = pool.iter().map(|g| (*g, Taken::default())).collect();
        let mut homes = vec![Home::Local; n];
        let mut pinned = 0u32;
        let urgency = |(i, wish): (usize, &Option<Wish>)| {
            wish.as_ref().filter(|wish| wish.weight > 0).map(|wish| (wish.urgency(), Reverse(i)))
        };
        let mut open: BinaryHeap<_> = self.wishes.iter().enumerate().filter_map(urgency).collect();
        while let Some((urgency, Reverse(i))) = open.pop() {
            let Some(wish) = &self.wishes[i] else { continue };
            if urgency != wish.urgency() || homes[i] != Home::Local {
                // It has become more urgent, and had its turn.
                continue;
            }
            let (from, to) = (wish.from as usize, (wish.to as usize + 1).min(self.calls.len() - 1));
            let calls = self.calls[to] - self.calls[from];
            if wish.kind == Kind::Int {
                let around = |i: usize| Some(self.wishes[i].as_ref()?.pointer?.around? - self.first);
                let is_inside =
                    |who: usize, i: usize| std::iter::successors(around(who), |i| around(*i)).any(|outer| outer == i);
                let next = around(i);
                if std::iter::successors(next, |i| around(*i)).any(|outer| homes[outer] != Home::Local) {
                    // The loop around has it.
                    continue;
                }
                // Where loops inside have it already, it may stay between them.
                let may_have = |taken: &Taken| taken.over(wish.from, wish.to).all(|who| is_inside(who, i));
                let n_free = || generals.iter().filter(|(_, taken)| may_have(taken)).count();
                let is_spare = self.computed_addresses[to] > self.computed_addresses[from] && n_free() <= SPARES;
                let free = generals.iter_mut().filter(|_| !is_spare).find(|(g, taken)| {
                    (calls == 0 || survives_calls(*g) || (wish.pointer.is_some() && wish.weight > 2 * calls))
                        && may_have(taken)
                });
                match (free, next) {
                    (Some((g, taken)), _) => {
                        for inner in taken.over(wish.from, wish.to).collect::<Vec<_>>() {
                            self.wishes[inner].iter().for_each(|wish| taken.give_back(wish.from));
                            homes[inner] = Home::Local;
                        }
                        taken.take(wish.from, wish.to, i);
                        homes[i] = Home::Gpr(*g);
                    }
                    (None, Some(outer)) => {
                        // The loop around is asked for it more.
                        let more = wish.weight;
                        if let Some(wish) = &mut self.wishes[outer] {
                            wish.weight += more;
                            open.push((wish.urgency(), Reverse(outer)));
                        }
                    }
                    (None, None) => {}
                }
            } else if wish.kind == Kind::Real && wish.weight > 2 * calls {
                let free = vectors.iter_mut().find(|(_, taken)| taken.is_free(wish.from, wish.to));
                if let Some((x, taken)) = free {
                    taken.take(wish.from, wish.to, i);
                    pinned |= 1 << x.0;
                    homes[i] = Home::Xmm(*x);
                }
            }
        }
        let mut n_slots = 0;
        for (home, wish) in homes.iter_mut().zip(&self.wishes) {
            match wish {
                // A pointer is in the frame anyway.
                Some(wish) if *home == Home::Local && wish.pointer.is_none() => {
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
        Assigned { homes, n_slots, pinned, generals }
    }
}

/// The general registers that globals may have, the first preferred: in code with calls those that survive them, and
/// those with short names.
const CALLING: [Gpr; 11] =
    [Gpr::RBX, Gpr::RSI, Gpr::RDI, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11, Gpr::R14, Gpr::R15, Gpr::R12, Gpr::R13];

/// In code without calls, where `rdi` is the frame's.
const LEAF: [Gpr; 11] =
    [Gpr::RSI, Gpr::RBX, Gpr::RBP, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11, Gpr::R14, Gpr::R15, Gpr::R12, Gpr::R13];

/// The same where saving a register costs more than a longer name: those first that need not be saved.
const SHORT_LEAF: [Gpr; 11] =
    [Gpr::RSI, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11, Gpr::RBX, Gpr::RBP, Gpr::R14, Gpr::R15, Gpr::R12, Gpr::R13];

/// So many general registers stay free for computed addresses: for a pointer, an offset, and another.
const SPARES: usize = 3;

/// Code of fewer events is short.
const SHORT: usize = 512;

/// The vector registers that globals may have.
fn vector_pool(level: Level) -> impl Iterator<Item = Xmm> {
    let (from, to) = match level {
        Level::Avx2 => (8, 16),
        Level::Avx512 => (10, 26),
    };
    (from..to).map(Xmm)
}

/// Where a register is taken: spans of events that do not overlap, by their begin, with who has it.
#[derive(Default)]
pub(super) struct Taken(BTreeMap<u32, (u32, usize)>);

impl Taken {
    /// Whether it is free in all of these events.
    pub(super) fn is_free(&self, from: u32, to: u32) -> bool {
        self.over(from, to).next().is_none()
    }

    /// Who has it in these events, the last one first.
    fn over(&self, from: u32, to: u32) -> impl Iterator<Item = usize> + '_ {
        self.0.range(..=to).rev().take_while(move |(_, (end, _))| *end >= from).map(|(_, (_, who))| *who)
    }

    fn take(&mut self, from: u32, to: u32, who: usize) {
        self.0.insert(from, (to, who));
    }

    fn give_back(&mut self, from: u32) {
        self.0.remove(&from);
    }
}

/// The loops that run in lanes, by their opening events.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'a> {
    /// Those that run in one round, with their indices.
    pub once: &'a BTreeMap<u32, Reg>,
    /// All.
    pub all: &'a BTreeMap<u32, LanePlan>,
}

/// An address that a loop can go by in place of its index.
struct Counting {
    address: Poly<Reg>,
    step: i64,
    end: Option<i32>,
}

/// Constant terms and ends of addresses that are larger may not fit into an instruction, in bytes for all points.
const SMALL: i64 = 1 << 22;

impl Counting {
    /// The address that is accessed most of those that begin at 0, if this index, which is used so often, is used in addresses
    /// only that are kept and step by a number. Others would have to be added to where they end, for each loop.
    fn new(
        index: Reg,
        n_uses: u32,
        at: u32,
        kept: &[Poly<Reg>],
        accesses: &BTreeMap<(u32, Poly<Reg>), u64>,
        known_count: Option<i32>,
    ) -> Option<Self> {
        let mut n_found = 0;
        let mut best: Option<(u64, Self)> = None;
        for address in kept {
            let (slope, base) = address.split_linear(index)?;
            let step = slope.as_constant()?;
            if step == 0 {
                continue;
            }
            if !(-SMALL..SMALL).contains(&step) {
                return None;
            }
            let n = accesses.get(&(at, address.clone())).copied().unwrap_or(0);
            n_found += n;
            if base.is_zero() && best.as_ref().is_none_or(|(most, _)| *most < n) {
                let end = known_count.filter(|n| *n > 0).map(|n| i64::from(n).saturating_mul(step));
                let end = end.filter(|end| (-SMALL..SMALL).contains(end)).and_then(|end| i32::try_from(end).ok());
                best = Some((n, Self { address: address.clone(), step, end }));
            }
        }
        best.filter(|_| n_found == u64::from(n_uses)).map(|(_, counting)| counting)
    }
}

/// Where addresses occur.
struct AddressUses {
    /// How often each, without constant terms, directly in each loop.
    in_loop: BTreeMap<(u32, Poly<Reg>), u64>,
    /// How many come before each event that are neither kept nor one integer.
    computed: Vec<u32>,
}

/// The addresses in loops. Loops of `once` are none.
fn address_uses(events: &[Event<'_>], once: &BTreeMap<u32, Reg>, kept: &BTreeMap<u32, Vec<Poly<Reg>>>) -> AddressUses {
    let mut in_loop: BTreeMap<(u32, Poly<Reg>), u64> = BTreeMap::new();
    let mut computed = vec![0];
    let mut n_computed = 0;
    let mut open: Vec<u32> = Vec::new();
    let mut first: Option<Reg> = None;
    for (at, event) in (1u32..).zip(events) {
        computed.push(n_computed);
        match event {
            Event::For { index, .. } if once.contains_key(&at) => first = Some(*index),
            Event::EndFor { index, .. } if first == Some(*index) => first = None,
            Event::For { .. } | Event::While { .. } => open.push(at),
            Event::EndFor { .. } | Event::EndWhile { .. } => {
                open.pop();
            }
            Event::Instr(Instr::Load { at: address, .. } | Instr::Store { at: address, .. }) => {
                if let Some(begin) = open.last()
                    && address.as_constant().is_none()
                {
                    let (rest, offset) = match first {
                        Some(first) => split_constant(&at_first(address, first)),
                        None => split_constant(address),
                    };
                    let is_kept = kept.get(begin).is_some_and(|kept| kept.contains(&rest));
                    n_computed += u32::from(!is_kept && rest.as_var().is_none() && rest.as_constant().is_none());
                    // Others may be put together anew where they are tested.
                    let slope = first.and_then(|first| address.split_linear(first)).map(|(slope, _)| slope);
                    let is_plain = slope.is_none_or(|slope| slope.as_constant().is_some());
                    if is_plain && (-SMALL..SMALL).contains(&i64::from(offset)) {
                        *in_loop.entry((*begin, rest)).or_insert(0) += 1;
                    }
                }
            }
            _ => {}
        }
    }
    computed.push(n_computed);
    AddressUses { in_loop, computed }
}
