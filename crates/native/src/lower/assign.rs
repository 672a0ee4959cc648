//! Hands out registers, and places in the frame, to what outlives its block.
//!
//! In: the wishes of [`Homes`], each for a stretch of events. Out: [`Assigned`], a place for each.
//!
//! Registers go to what gains most for each event in which it keeps one: an address that an inner loop steps before a pointer
//! that all loops use now and then. A pointer is in the frame anyway, so each loop may have it in a register of its own; where
//! the loops inside have it in one register already, the loop around takes that.

use super::frame::Words;
use super::homes::{Homes, Wish};
use super::plan::{Home, Kind};
use super::spans::Spans;
use crate::asm::{Gpr, Xmm};
use crate::level::Level;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::successors;

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

/// How many these are.
const N_GENERALS: usize = CALLING.len();

/// So many general registers stay free for computed addresses: for a pointer, an offset, and another.
const SPARES: u32 = 3;

/// Code of fewer events is short.
const SHORT: usize = 512;

/// The general registers that globals may have.
fn general_pool(has_calls: bool, n_events: usize) -> &'static [Gpr; N_GENERALS] {
    match (has_calls, n_events < SHORT) {
        (true, _) => &CALLING,
        (false, true) => &SHORT_LEAF,
        (false, false) => &LEAF,
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

pub(super) fn survives_calls(g: Gpr) -> bool {
    [Gpr::RBX, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15].contains(&g)
}

/// The places, from the first wish on.
pub(super) struct Assigned {
    pub homes: Vec<Home>,
    pub n_slots: u32,
    /// The general registers that were to be had.
    pub generals: &'static [Gpr],
    /// Where vector registers are taken; those that are.
    pub vectors: Vec<(Xmm, Taken)>,
    /// Where registers are taken, by events: the bit of a general register is its number in `generals`.
    pub spans: Option<Spans>,
}

/// Where a register is taken: spans of events that do not overlap, by their begin, with the wish that has it.
#[derive(Default)]
pub(super) struct Taken(BTreeMap<u32, (u32, usize)>);

impl Taken {
    /// Whether what it holds before an event is needed after it.
    pub(super) fn is_over(&self, at: u32) -> bool {
        self.0.range(..at).next_back().is_some_and(|(_, (end, _))| *end > at)
    }

    /// The wishes that have it in these events, the last one first.
    fn over(&self, from: u32, to: u32) -> impl Iterator<Item = usize> + '_ {
        self.0.range(..=to).rev().take_while(move |(_, (end, _))| *end >= from).map(|(_, (_, wish))| *wish)
    }
}

/// What is handed out so far.
struct Assignment<'a> {
    homes: Homes<'a>,
    /// By wish.
    places: Vec<Home>,
    /// By wish: whether a loop inside has, or had, the same pointer in a register.
    is_inside: Vec<bool>,
    pool: &'static [Gpr; N_GENERALS],
    /// Where those of the pool are taken.
    generals: [Taken; N_GENERALS],
    vectors: Vec<(Xmm, Taken)>,
    /// Both by events: the bit of a general register is its number, vector registers follow ([`N_GENERALS`]).
    spans: Spans,
}

/// Places for the pointers of buffers, where no loop asks for one and nothing else for any: what
/// [`Homes::assign`] hands out, for small code in a fraction of the time.
pub(super) fn assign_pointers(accesses: &[u64], n_events: usize, calls: u64) -> Vec<Home> {
    let pool = general_pool(calls > 0, n_events);
    // From the begin to the end.
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
    /// Hands out places. `O(n log n)` for `n` wishes, but for how deep loops nest.
    pub(super) fn assign(self, level: Level, has_calls: bool, words: &mut Words) -> Assigned {
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
    /// Hands out registers, what is most urgent first.
    fn registers(&mut self) {
        let urgency = |(i, wish): (usize, &Option<Wish>)| Some((wish.as_ref()?.urgency()?, Reverse(i)));
        let mut open: BinaryHeap<(u64, Reverse<usize>)> =
            self.homes.wishes.iter().enumerate().filter_map(urgency).collect();
        while let Some((urgency, Reverse(i))) = open.pop() {
            let Some(wish) = self.homes.wishes[i] else { continue };
            // What has become more urgent has had its turn.
            if wish.urgency() != Some(urgency) || self.places[i] != Home::Local {
                continue;
            }
            match wish.kind {
                Kind::Int => {
                    let is_there = self.around(i).any(|outer| self.places[outer] != Home::Local);
                    if is_there || self.general(i, wish) {
                        continue;
                    }
                    // The loop around is asked for it all the more.
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

    /// The wishes for the same pointer in the loops around, the innermost first.
    fn around(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let around = |i: usize| self.homes.wishes[i]?.pointer?.around;
        successors(around(i), move |i| around(*i))
    }

    /// A general register, if there is one; where loops inside have a pointer already it stays between them.
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

    /// A vector register, if there is one and it pays.
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

    /// Places in the frame for the others; those that share one get it.
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
        Assigned { homes: self.places, n_slots, generals: self.pool, vectors: self.vectors, spans }
    }
}
