//! Value locations of globals, which outlive their block.
//!
//! In: uses and live intervals. Out: requests for locations that [`assign`](crate::lower::assign) fulfils: a register
//! or a part of the frame for a whole live interval.
//!
//! Globals compete for registers by their weight, the number of accesses, times sixteen for each level of loops.
//! A loop-carried value is coalesced with its next value if it is dead when the next value is computed.

use crate::lower::lanes::LanePlan;
use crate::lower::plan::{Counted, Kept, KeptAt, Kind, LoopPlan, Number, Step};
use crate::lower::survey::{Survey, weight};
use chainrule_base::{Id, Poly};
use chainrule_kernel::addresses::{at_first, split_constant};
use chainrule_kernel::{BufferId, Event, Instr, Liveness, Reg};
use std::collections::BTreeMap;

/// A request for a location.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Wish {
    /// From the first definition to the last use.
    pub from: u32,
    pub to: u32,
    pub weight: u64,
    pub kind: Kind,
    /// A pointer can be reloaded after a call.
    pub pointer: Option<Pointer>,
}

/// The pointer of a buffer in a loop.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Pointer {
    /// The same pointer in the outer loop.
    pub around: Option<Number>,
}

impl Wish {
    /// Returns the gain of a register for each event of its live interval, for integers; `None` if there is no gain.
    pub(in crate::lower) fn urgency(&self) -> Option<u64> {
        let urgency = match self.kind {
            Kind::Int => (self.weight << 16) / u64::from(self.to - self.from + 1),
            _ => self.weight,
        };
        (self.weight > 0).then_some(urgency)
    }
}

/// Requests for locations, by value.
pub(in crate::lower) struct Homes<'a> {
    pub n_events: usize,
    pub wishes: Vec<Option<Wish>>,
    /// Union-find of coalesced requests.
    leader: Vec<usize>,
    /// Weight of the calls before each event.
    calls: &'a [u64],
    /// Number of addresses before each event that need spare registers.
    computed_addresses: Vec<u32>,
}

impl<'a> Homes<'a> {
    /// Returns the requests of registers.
    pub(in crate::lower) fn new(
        n_regs: usize,
        n_events: usize,
        kinds: &[Kind],
        lives: &Liveness,
        survey: &'a Survey,
    ) -> Self {
        let mut wishes: Vec<Option<Wish>> = Vec::with_capacity(n_regs);
        for (i, kind) in kinds.iter().enumerate() {
            let global = survey.global[i];
            let to = lives.last[i].max(survey.last_use[i]);
            let wish = Wish { from: lives.def[i], to, weight: survey.weight[i], kind: *kind, pointer: None };
            wishes.push(global.then_some(wish));
        }
        let leader = (0..wishes.len()).collect();
        let (calls, computed_addresses) = (survey.calls.as_slice(), vec![0; survey.calls.len()]);
        let mut this = Self { n_events, wishes, leader, calls, computed_addresses };
        for (a, b) in &survey.share {
            this.unite(a.index(), b.index());
        }
        this
    }

    /// Returns the request that this one is coalesced with.
    pub(in crate::lower) fn find(&mut self, mut i: usize) -> usize {
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

    /// Requests a location for an integer.
    pub(in crate::lower) fn number(&mut self, from: u32, to: u32, weight: u64) -> Number {
        self.wish(Wish { from, to, weight, kind: Kind::Int, pointer: None })
    }

    /// Removes the request for `r`.
    pub(in crate::lower) fn forget(&mut self, r: Reg) {
        self.wishes[r.index()] = None;
    }

    /// Requests a location for a pointer; `around` is that in the outer loop, if any.
    pub(in crate::lower) fn pointer(&mut self, from: u32, to: u32, weight: u64, around: Option<Number>) -> Number {
        self.wish(Wish { from, to, weight, kind: Kind::Int, pointer: Some(Pointer { around }) })
    }

    /// Requests a location for a vector.
    pub(in crate::lower) fn vector(&mut self, from: u32, to: u32, weight: u64) -> Number {
        self.wish(Wish { from, to, weight, kind: Kind::Real, pointer: None })
    }

    /// Requests a location for the broadcast of `of` in a lane loop, which reduces the weight of the scalar.
    pub(in crate::lower) fn copy_for(&mut self, of: Reg, from: u32, to: u32, weight: u64) -> Number {
        let leader = self.find(of.index());
        let Some(outer) = &mut self.wishes[leader] else { return self.number(from, to, 0) };
        outer.weight = outer.weight.saturating_sub(weight).max(1);
        let kind = outer.kind;
        self.wish(Wish { from, to, weight, kind, pointer: None })
    }

    /// Extends the live interval of a vector to these events, and coalesces it with another one.
    pub(in crate::lower) fn keep_over(&mut self, place: Number, other: Number, from: u32, to: u32) {
        self.unite(other, place);
        let leader = self.find(place);
        if let Some(wish) = &mut self.wishes[leader] {
            (wish.from, wish.to) = (wish.from.min(from), wish.to.max(to));
        }
    }

    /// Returns whether these events have calls only in the given stretch.
    pub(in crate::lower) fn call_nowhere_but(&self, from: u32, to: u32, begin: u32, end: u32) -> bool {
        let before = |event: u32| self.calls[(event as usize + 1).min(self.calls.len() - 1)];
        before(to) - before(from) == before(end) - before(begin)
    }

    /// Returns the weight of the calls during its live interval.
    pub(in crate::lower) fn calls(&self, wish: &Wish) -> u64 {
        let to = (wish.to as usize + 1).min(self.calls.len() - 1);
        self.calls[to] - self.calls[wish.from as usize]
    }

    /// Returns whether addresses are computed during its live interval.
    pub(in crate::lower) fn computes_addresses(&self, wish: &Wish) -> bool {
        let to = (wish.to as usize + 1).min(self.computed_addresses.len() - 1);
        self.computed_addresses[to] > self.computed_addresses[wish.from as usize]
    }

    fn wish(&mut self, wish: Wish) -> Number {
        self.wishes.push(Some(wish));
        self.leader.push(self.leader.len());
        self.wishes.len() - 1
    }

    /// Returns the plans of all loops; addresses of a single buffer are pointers in them.
    pub(in crate::lower) fn loops(
        &mut self,
        events: &[Event<'_>],
        lives: &Liveness,
        survey: &Survey,
        kept: &BTreeMap<u32, Vec<Poly<Reg>>>,
        lanes: Lanes<'_>,
    ) -> BTreeMap<u32, LoopPlan> {
        let mut plans = BTreeMap::new();
        let AddressUses { in_loop: uses, computed } = address_uses(events, lanes, kept);
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
            let added = counting.as_ref().map(|c| &c.address).filter(|address| !kept[&at].contains(address));
            for address in kept.get(&at).into_iter().flatten().chain(added) {
                let slope = index.and_then(|i| address.split_linear(i)).map_or_else(Poly::zero, |(slope, _)| slope);
                let Uses { accesses, buffer } = uses.get(&(at, address.clone())).copied().unwrap_or_default();
                let place = self.number(at, end, inner * (accesses + 2));
                let step = match slope.as_constant() {
                    Some(k) => Step::Constant(k),
                    None => Step::Number(self.number(at, end, inner), slope),
                };
                let counts = counting.as_ref().filter(|c| c.address == *address);
                if let Some(counting) = counts {
                    plan.counted = Some(Counted { place, step: counting.step, end: counting.end });
                }
                let within = buffer.filter(|_| counts.is_none());
                let at = KeptAt { place, within, after: None };
                plan.kept.push(Kept { address: address.clone(), at, step, accesses });
            }
            if known_count.is_none_or(|n| n >= FEWEST_FOLLOWED) {
                self.follow(&mut plan, inner);
            }
            plans.insert(at, plan);
        }
        plans
    }

    /// Makes pointers that step as the address that controls a loop follow that address, so that they need no steps.
    fn follow(&mut self, plan: &mut LoopPlan, inner: u64) {
        let Some(Counted { place: counter, step, .. }) = plan.counted else { return };
        for Kept { at, step: own, accesses, .. } in &mut plan.kept {
            if at.within.is_some() && matches!(own, Step::Constant(k) if *k == step) {
                (at.after, *own) = (Some(counter), Step::Constant(0));
                let leader = self.find(counter);
                if let Some(wish) = &mut self.wishes[leader] {
                    wish.weight += inner * *accesses;
                }
            }
        }
    }
}

/// Lane loops, by their opening events.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Lanes<'a> {
    /// Loops of one round, with their indices.
    pub once: &'a BTreeMap<u32, Reg>,
    /// All lane loops.
    pub all: &'a BTreeMap<u32, LanePlan>,
}

/// An address that replaces the index of a loop (linear function test replacement).
struct Counting {
    address: Poly<Reg>,
    step: i64,
    end: Option<i32>,
}

/// Minimum number of iterations, where it is known, for pointers that follow an address: in fewer, steps cost less than
/// the start of a pointer that an outer loop holds in another form.
const FEWEST_FOLLOWED: i32 = 16;

/// Maximum constant term and end of addresses that fit into an instruction, in bytes for all points.
const SMALL: i64 = 1 << 22;

impl Counting {
    /// Returns the most frequently accessed address that starts at 0, or a new one with the most frequent step, if this
    /// index, with this number of uses, only occurs in cached addresses with constant steps. Other addresses would have
    /// to be added to their end for each loop.
    fn new(
        index: Reg,
        n_uses: u32,
        at: u32,
        kept: &[Poly<Reg>],
        uses: &BTreeMap<(u32, Poly<Reg>), Uses>,
        known_count: Option<i32>,
    ) -> Option<Self> {
        let mut n_found = 0;
        let mut best: Option<((bool, u64), Self)> = None;
        let mut n_of_step: BTreeMap<i64, u64> = BTreeMap::new();
        for address in kept {
            let (slope, base) = address.split_linear(index)?;
            let step = slope.as_constant()?;
            if step == 0 {
                continue;
            }
            if !(-SMALL..SMALL).contains(&step) {
                return None;
            }
            let n = uses.get(&(at, address.clone())).map_or(0, |uses| uses.accesses);
            n_found += n;
            let of_step = n_of_step.entry(step).or_default();
            *of_step += n;
            let rank = if base.is_zero() { (true, n) } else { (false, *of_step) };
            if best.as_ref().is_none_or(|(most, _)| *most < rank) {
                let end = known_count.filter(|n| *n > 0).map(|n| i64::from(n).saturating_mul(step));
                let end = end.filter(|end| (-SMALL..SMALL).contains(end)).and_then(|end| i32::try_from(end).ok());
                best = Some((rank, Self { address: Poly::var(index).scale(step), step, end }));
            }
        }
        best.filter(|_| n_found == u64::from(n_uses)).map(|(_, counting)| counting)
    }
}

/// Occurrences of addresses.
struct AddressUses {
    /// Uses of each address, without constant terms, directly in each loop.
    in_loop: BTreeMap<(u32, Poly<Reg>), Uses>,
    /// Number of addresses before each event that are neither cached nor a single integer.
    computed: Vec<u32>,
}

/// Uses of an address in a loop.
#[derive(Clone, Copy, Default)]
struct Uses {
    /// Number of accesses.
    accesses: u64,
    /// The buffer, if there is only one.
    buffer: Option<BufferId>,
}

impl Uses {
    fn add(&mut self, buffer: BufferId) {
        self.buffer = Some(buffer).filter(|buffer| self.accesses == 0 || self.buffer == Some(*buffer));
        self.accesses += 1;
    }
}

/// Collects the addresses in loops; lane loops of one round do not count as loops.
fn address_uses(events: &[Event<'_>], lanes: Lanes<'_>, kept: &BTreeMap<u32, Vec<Poly<Reg>>>) -> AddressUses {
    let mut in_loop: BTreeMap<(u32, Poly<Reg>), Uses> = BTreeMap::new();
    let mut computed = vec![0];
    let mut n_computed = 0;
    let mut open: Vec<u32> = Vec::new();
    // Index of the enclosing lane loop, also if it is a single round.
    let mut lane: Option<Reg> = None;
    let mut first: Option<Reg> = None;
    for (at, event) in (1u32..).zip(events) {
        computed.push(n_computed);
        match event {
            Event::For { index, .. } if lanes.all.contains_key(&at) => {
                lane = Some(*index);
                first = lane.filter(|_| lanes.once.contains_key(&at));
                open.extend(first.is_none().then_some(at));
            }
            Event::For { .. } | Event::While { .. } => open.push(at),
            Event::EndFor { index, .. } if lane == Some(*index) => {
                lane = None;
                if first.take().is_none() {
                    open.pop();
                }
            }
            Event::EndFor { .. } | Event::EndWhile { .. } => {
                open.pop();
            }
            Event::Instr(Instr::Load { buffer, at: address, .. } | Instr::Store { buffer, at: address, .. }) => {
                if let Some(begin) = open.last()
                    && address.as_constant().is_none()
                {
                    let (rest, offset) = match first {
                        Some(first) => split_constant(&at_first(address, first)),
                        None => split_constant(address),
                    };
                    let is_kept = kept.get(begin).is_some_and(|kept| kept.contains(&rest));
                    n_computed += u32::from(!is_kept && rest.as_var().is_none() && rest.as_constant().is_none());
                    // Others may be recomputed for their checks.
                    let slope = lane.and_then(|lane| address.split_linear(lane)).map(|(slope, _)| slope);
                    let is_plain = slope.is_none_or(|slope| slope.as_constant().is_some());
                    if is_plain && (-SMALL..SMALL).contains(&i64::from(offset)) {
                        in_loop.entry((*begin, rest)).or_default().add(*buffer);
                    }
                }
            }
            _ => {}
        }
    }
    computed.push(n_computed);
    AddressUses { in_loop, computed }
}

#[cfg(test)]
mod tests {
    use super::Homes;
    use crate::level::Level;
    use crate::lower::assign::assign_pointers;
    use crate::lower::frame::Words;
    use chainrule_backend_tests::by_hand::ByHand;

    fn no_words() -> Words {
        Words::new(&ByHand::new("f").with_body(vec![]))
    }

    #[test]
    fn pointers_of_straight_lines_get_the_registers_of_the_general_method() {
        for n_events in [5u32, 600] {
            for calls in [0, 1, 3] {
                for n in 0..20 {
                    // Some values are never accessed, some equally often.
                    let accesses: Vec<u64> = (0..n).map(|i| (i * i * 7 + i) % 11).collect();
                    let (calls_before, computed_addresses) = ([0, calls], vec![0, 0]);
                    let (wishes, leader) = (vec![], vec![]);
                    let calls_before = calls_before.as_slice();
                    let n_events = n_events as usize;
                    let mut homes = Homes { n_events, wishes, leader, calls: calls_before, computed_addresses };
                    for weight in &accesses {
                        homes.pointer(0, n_events as u32 + 1, *weight, None);
                    }
                    let general = homes.assign(Level::Avx2, calls > 0, &mut no_words());
                    assert_eq!(assign_pointers(&accesses, n_events, calls), general.homes);
                    assert_eq!(general.n_slots, 0);
                }
            }
        }
    }
}
