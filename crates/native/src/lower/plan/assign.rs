//! Assignment of registers and frame slots to values that outlive their block.
//!
//! In: the requests of [`Homes`], each with a live interval. Out: [`Assigned`], a location for each.
//!
//! Registers go to the values with the largest gain for each event of their live intervals: the address stepped in an
//! inner loop precedes a pointer that all loops use occasionally. A pointer is in the frame anyway, so each loop may
//! have it in a register of its own; if inner loops already have it in one register, the outer loop takes that.

use crate::asm::{Gpr, Xmm};
use crate::level::Level;
use crate::lower::frame::Words;
use crate::lower::homes::{Homes, Wish};
use crate::lower::plan::{Home, Kind};
use crate::lower::spans::Spans;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::successors;

/// General registers for globals in order of preference: in code with calls, the callee-saved ones and those with short
/// encodings.
const CALLING: [Gpr; 11] =
    [Gpr::RBX, Gpr::RSI, Gpr::RDI, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11, Gpr::R14, Gpr::R15, Gpr::R12, Gpr::R13];

/// In code without calls, where `rdi` is the frame's.
const LEAF: [Gpr; 11] =
    [Gpr::RSI, Gpr::RBX, Gpr::RBP, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11, Gpr::R14, Gpr::R15, Gpr::R12, Gpr::R13];

/// As above if saving a register costs more than a longer encoding: caller-saved registers first.
const SHORT_LEAF: [Gpr; 11] =
    [Gpr::RSI, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11, Gpr::RBX, Gpr::RBP, Gpr::R14, Gpr::R15, Gpr::R12, Gpr::R13];

/// Number of these registers.
const N_GENERALS: usize = CALLING.len();

/// General registers that stay free for computed addresses: a pointer, an offset, and another one.
const SPARES: u32 = 3;

/// Minimum number of events of code that is not short.
const SHORT: usize = 512;

/// Returns the general registers for globals.
fn general_pool(has_calls: bool, n_events: usize) -> &'static [Gpr; N_GENERALS] {
    match (has_calls, n_events < SHORT) {
        (true, _) => &CALLING,
        (false, true) => &SHORT_LEAF,
        (false, false) => &LEAF,
    }
}

/// Returns the vector registers for globals.
fn vector_pool(level: Level) -> impl Iterator<Item = Xmm> {
    let (from, to) = match level {
        Level::Avx2 => (8, 16),
        Level::Avx512 => (10, 26),
    };
    (from..to).map(Xmm)
}

pub(in crate::lower) fn survives_calls(g: Gpr) -> bool {
    [Gpr::RBX, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15].contains(&g)
}

/// Locations of all requests.
pub(in crate::lower) struct Assigned {
    /// By register, then of the numbers added by the plan, then of the pointers of buffers. The first ones are omitted
    /// if all are local.
    pub homes: Vec<Home>,
    /// Number of omitted entries.
    pub first_home: usize,
    /// Number of slots of globals.
    pub n_slots: u32,
    /// General registers for globals.
    pub generals: &'static [Gpr],
    /// Vector registers with their live intervals; only those in use.
    pub vectors: Vec<(Xmm, Taken)>,
    /// General registers in use, by events: the bit of a register is its number in `generals`.
    pub spans: Option<Spans>,
}

/// Live intervals assigned to a register, disjoint, by their start, with the request.
#[derive(Default)]
pub(in crate::lower) struct Taken(BTreeMap<u32, (u32, usize)>);

impl Taken {
    /// Returns whether a value is live across an event.
    pub(in crate::lower) fn is_over(&self, at: u32) -> bool {
        self.0.range(..at).next_back().is_some_and(|(_, (end, _))| *end > at)
    }

    /// Returns the requests assigned to the register in these events, the last one first.
    fn over(&self, from: u32, to: u32) -> impl Iterator<Item = usize> + '_ {
        self.0.range(..=to).rev().take_while(move |(_, (end, _))| *end >= from).map(|(_, (_, wish))| *wish)
    }
}

/// State of the assignment.
struct Assignment<'a> {
    homes: Homes<'a>,
    /// Location of each request.
    places: Vec<Home>,
    /// Whether an inner loop has, or had, the same pointer in a register, for each request.
    is_inside: Vec<bool>,
    pool: &'static [Gpr; N_GENERALS],
    /// Live intervals of each register of the pool.
    generals: [Taken; N_GENERALS],
    vectors: Vec<(Xmm, Taken)>,
    /// Registers in use, by events: the bit of a general register is its number, vector registers follow
    /// ([`N_GENERALS`]).
    spans: Spans,
}

/// Returns locations for the pointers of buffers if no loop and no other value requests any: the result of
/// [`Homes::assign`], in a fraction of its time for small code.
pub(in crate::lower) fn assign_pointers(accesses: &[u64], n_events: usize, calls: u64) -> Vec<Home> {
    let pool = general_pool(calls > 0, n_events);
    // From the start to the end.
    let wish = |weight| Wish { from: 0, to: n_events as u32 + 1, weight, kind: Kind::Int, pointer: None };
    let urgency = |(i, accesses): (usize, &u64)| Some((Reverse(wish(*accesses).urgency()?), i));
    let mut open: Vec<(Reverse<u64>, usize)> = accesses.iter().enumerate().filter_map(urgency).collect();
    open.sort_unstable();
    let mut homes = vec![Home::Local; accesses.len()];
    let mut is_free = [true; N_GENERALS];
    for (_, i) in open {
        let survives = |g: Gpr| calls == 0 || survives_calls(g) || accesses[i] > 2 * calls;
        if let Some(found) = (0..pool.len()).find(|at| is_free[*at] && survives(pool[*at])) {
            is_free[found] = false;
            homes[i] = Home::Gpr(pool[found]);
        }
    }
    homes
}

impl Homes<'_> {
    /// Assigns locations. `O(n log n)` for `n` requests, times the depth of loops.
    pub(in crate::lower) fn assign(self, level: Level, has_calls: bool, words: &mut Words) -> Assigned {
        let mut this = Assignment {
            places: vec![Home::Local; self.wishes.len()],
            is_inside: vec![false; self.wishes.len()],
            pool: general_pool(has_calls, self.n_events),
            generals: Default::default(),
            vectors: vector_pool(level).map(|x| (x, Taken::default())).collect(),
            spans: Spans::new(self.n_events + 1),
            homes: self,
        };
        this.registers();
        this.frame(words)
    }
}

impl Assignment<'_> {
    /// Assigns registers, the most urgent request first.
    fn registers(&mut self) {
        let urgency = |(i, wish): (usize, &Option<Wish>)| Some((wish.as_ref()?.urgency()?, Reverse(i)));
        let mut open: BinaryHeap<(u64, Reverse<usize>)> =
            self.homes.wishes.iter().enumerate().filter_map(urgency).collect();
        while let Some((urgency, Reverse(i))) = open.pop() {
            let Some(wish) = self.homes.wishes[i] else { continue };
            // A request whose urgency has risen was handled then.
            if wish.urgency() != Some(urgency) || self.places[i] != Home::Local {
                continue;
            }
            match wish.kind {
                Kind::Int => {
                    let is_there = self.around(i).any(|outer| self.places[outer] != Home::Local);
                    if is_there || self.general(i, wish) {
                        continue;
                    }
                    // The request of the outer loop becomes more urgent.
                    let outer = self.around(i).next();
                    if let Some(outer) = outer
                        && let Some(of_outer) = &mut self.homes.wishes[outer]
                    {
                        of_outer.weight += wish.weight;
                        open.extend(of_outer.urgency().map(|urgency| (urgency, Reverse(outer))));
                    }
                }
                Kind::Real => self.vector(i, wish),
                Kind::Truth => {}
            }
        }
    }

    /// Returns the requests for the same pointer in the outer loops, the innermost first.
    fn around(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let around = |i: usize| self.homes.wishes[i]?.pointer?.around;
        successors(around(i), move |i| around(*i))
    }

    /// Assigns a general register, if there is one; a pointer of inner loops stays in its register between them.
    fn general(&mut self, i: usize, wish: Wish) -> bool {
        let (from, to) = (wish.from, wish.to);
        let taken = self.spans.taken(from, to);
        let is_of_inner = |who| self.around(who).any(|outer| outer == i);
        let may_have =
            |g: usize| taken >> g & 1 == 0 || (self.is_inside[i] && self.generals[g].over(from, to).all(is_of_inner));
        let usable = (0..N_GENERALS).filter(|g| may_have(*g)).fold(0_u32, |all, g| all | 1 << g);
        if self.homes.computes_addresses(&wish) && usable.count_ones() <= SPARES {
            return false;
        }
        let calls = self.homes.calls(&wish);
        let survives = |g: Gpr| calls == 0 || survives_calls(g) || (wish.pointer.is_some() && wish.weight > 2 * calls);
        let mut usable = (0..N_GENERALS).filter(|g| usable >> g & 1 == 1);
        let Some(found) = usable.find(|g| survives(self.pool[*g])) else { return false };
        let spans = &mut self.generals[found];
        if taken >> found & 1 == 1 {
            for inside in spans.over(from, to).collect::<Vec<_>>() {
                self.places[inside] = Home::Local;
                if let Some(inside) = self.homes.wishes[inside] {
                    spans.0.remove(&inside.from);
                }
            }
        }
        spans.0.insert(from, (to, i));
        self.spans.take(from, to, 1 << found);
        self.places[i] = Home::Gpr(self.pool[found]);
        let around: Vec<usize> = self.around(i).collect();
        around.into_iter().for_each(|outer| self.is_inside[outer] = true);
        true
    }

    /// Assigns a vector register, if there is one and it pays.
    fn vector(&mut self, i: usize, wish: Wish) {
        let taken = self.spans.taken(wish.from, wish.to) >> N_GENERALS;
        let free = (0..self.vectors.len()).find(|x| taken >> x & 1 == 0);
        if let Some(found) = free.filter(|_| wish.weight > 2 * self.homes.calls(&wish)) {
            let (register, taken) = &mut self.vectors[found];
            taken.0.insert(wish.from, (wish.to, i));
            self.spans.take(wish.from, wish.to, 1 << (N_GENERALS + found));
            self.places[i] = Home::Xmm(*register);
        }
    }

    /// Assigns frame slots to the other requests; requests that share a location get the same one.
    fn frame(mut self, words: &mut Words) -> Assigned {
        let mut n_slots = 0;
        for (place, wish) in self.places.iter_mut().zip(&self.homes.wishes) {
            match wish {
                // A pointer is in the frame anyway.
                Some(Wish { pointer: None, kind, .. }) if *place == Home::Local => {
                    *place = if *kind == Kind::Int {
                        Home::Word(words.take())
                    } else {
                        n_slots += 1;
                        Home::Slot(n_slots - 1)
                    };
                }
                _ => {}
            }
        }
        for i in 0..self.places.len() {
            let leader = self.homes.find(i);
            self.places[i] = self.places[leader];
        }
        self.vectors.retain(|(_, taken)| !taken.0.is_empty());
        let spans = Some(self.spans);
        Assigned { homes: self.places, first_home: 0, n_slots, generals: self.pool, vectors: self.vectors, spans }
    }
}
