//! Local search: sums and products put back into their users, and extracted again.
//!
//! In: an extraction that has come to its end. Out: the same with other divisors that weigh no more.
//!
//! A trial takes a literal, or a literal and one beside it, multiplies it out into the cubes that use it
//! (*collapse*, as `eliminate` of MIS), and extracts what now saves, which may be something else: the divisor that
//! the literal was waits until nothing else saves. The trial is kept when the whole weighs no more than before,
//! for ways of equal weight lead on to better ones; else it is taken back by its log. All that it touches
//! are the cubes that the literal is of and used in, so it costs the same in a large network as in a small one.
//!
//! What may be multiplied out is said in `collect.rs`.

use super::{Divisor, Extraction, Slot, Slots};
use crate::optimise::cube::{Cube, Literal, degree, multiply, raise};
use crate::optimise::divisors::{Kind, fingerprint};
use crate::optimise::network::{Form, is_tame, is_unit};
use chainrule_base::Id;
use smallvec::SmallVec;

/// Sums of more cubes are not collapsed.
const MAX_CUBES: usize = 6;
/// No more cubes come about by one collapse.
const MAX_NEW: usize = 24;
/// Sums do not become wider.
const MAX_WIDTH: usize = 40;
/// Products do not become longer.
const MAX_DEGREE: u32 = 12;
/// Trials that look at more divisors are given up.
pub(super) const MAX_STEPS: usize = 400;
/// A trial looks at about as many nodes as it sees divisors, divided by this.
const SEEN_A_NODE: u64 = 2;

/// What is undone when a trial is taken back, last things first.
pub(super) enum Undo {
    Slot(u32, Slot),
    /// The last slot is new.
    NewSlot,
    /// The last user of a literal is new.
    NewUser(Literal),
    /// The last divisor is new.
    NewDivisor,
    Members(Literal, Slots),
    /// Its places, its bound, and whether it had been made.
    Divisor(u32, u32, i64, bool),
}

/// What local search knows besides; empty while there is none.
#[derive(Default)]
pub(super) struct Trials {
    /// Whether changes are logged.
    pub(super) active: bool,
    pub(super) log: Vec<Undo>,
    /// By literal: how many cubes have it as a factor, roots and operations that use it included.
    n_uses: Vec<u32>,
    /// By literal: the trial that touched it last.
    touched_in: Vec<u32>,
    trial: u32,
    /// The literals that this trial has touched, and what they cost before.
    touched: Vec<(Literal, i64)>,
    /// Whether this trial takes too long.
    pub(super) failed: bool,
    /// How many places there were before it.
    n_places: usize,
    /// A divisor that waits.
    pub(super) tabu: Option<u32>,
    /// How many divisors have been seen.
    pub(super) n_seen: u64,
}

/// Steele, Lea, Flood 2014.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
    }
}

impl Extraction {
    /// Trials with each sum in turn, until so many turns in a row saved nothing, or the budget, in nodes, is spent.
    pub(in crate::optimise) fn search(&mut self, seed: u64, patience: usize, budget: &mut u64) {
        if self.network.masked.iter().any(|masked| *masked) {
            return;
        }
        self.begin();
        let mut random = Random(seed);
        let mut since = 0;
        while since < patience {
            since += 1;
            let mut sums: Vec<Literal> = self.network.forms.ids().filter(|literal| self.is_sum(*literal)).collect();
            for place in (1..sums.len()).rev() {
                sums.swap(place, random.below(place + 1));
            }
            for literal in sums {
                if *budget == 0 {
                    since = patience;
                    break;
                }
                if !self.is_sum(literal) {
                    continue;
                }
                let before = self.trials.n_seen;
                if self.attempt(literal, &mut random) {
                    since = 0;
                }
                *budget = budget.saturating_sub(1 + (self.trials.n_seen - before) / SEEN_A_NODE);
            }
        }
        self.trials.active = false;
    }

    fn begin(&mut self) {
        let n = self.members.len();
        self.trials = Trials { active: true, touched_in: vec![0; n], n_uses: vec![0; n], ..Trials::default() };
        let slots = &self.slots;
        for slot in slots.iter().filter(|slot| slot.alive) {
            for (used, _) in &slot.cube.powers {
                self.trials.n_uses[used.index()] += 1;
            }
        }
        let mut wanted: Vec<Literal> = self.network.roots.iter().filter_map(|t| t.literal).collect();
        for (_, form) in self.network.forms.iter() {
            if let Form::Opaque(_, args) = form {
                wanted.extend(args.iter().filter_map(|t| t.literal));
            }
        }
        for literal in wanted {
            self.trials.n_uses[literal.index()] += 1;
        }
        // What nothing uses is of no account from the beginning.
        for literal in self.network.forms.ids().rev() {
            self.touch(literal);
        }
        self.bury();
        self.trials.log.clear();
    }

    fn is_sum(&self, literal: Literal) -> bool {
        !self.members[literal.index()].is_empty()
    }

    /// What the cubes of a literal cost.
    fn cost(&self, literal: Literal) -> i64 {
        let members = &self.members[literal.index()];
        let cube = |slot: &u32| {
            let cube = &self.slots[*slot as usize].cube;
            self.weights.cube(cube.coef, degree(&cube.powers))
        };
        members.iter().map(cube).sum::<i64>() + self.weights.add * (members.len().max(1) as i64 - 1)
    }

    /// Notes what a literal costs before this trial changes it.
    fn touch(&mut self, literal: Literal) {
        let idx = literal.index();
        if self.trials.touched_in.len() <= idx {
            self.trials.touched_in.resize(idx + 1, 0);
            self.trials.n_uses.resize(idx + 1, 0);
        }
        if self.trials.touched_in[idx] != self.trials.trial + 1 {
            self.trials.touched_in[idx] = self.trials.trial + 1;
            let cost = self.cost(literal);
            self.trials.touched.push((literal, cost));
        }
    }

    fn count(&mut self, slot: u32, more: bool) {
        for idx in 0..self.slots[slot as usize].cube.powers.len() {
            let used = self.slots[slot as usize].cube.powers[idx].0;
            self.touch(used);
            let n = &mut self.trials.n_uses[used.index()];
            *n = if more { *n + 1 } else { *n - 1 };
        }
    }

    /// Puts a cube in a slot and logs it; whoever calls says what `users` and divisors are new.
    pub(super) fn put(&mut self, slot: u32, cube: Cube) -> Cube {
        if !self.trials.active {
            return std::mem::replace(&mut self.slots[slot as usize].cube, cube);
        }
        self.touch(self.slots[slot as usize].owner);
        self.trials.log.push(Undo::Slot(slot, self.slots[slot as usize].clone()));
        self.count(slot, false);
        let old = std::mem::replace(&mut self.slots[slot as usize].cube, cube);
        self.count(slot, true);
        old
    }

    /// Takes a slot out of its sum.
    pub(super) fn remove(&mut self, slot: u32) {
        let owner = self.slots[slot as usize].owner;
        if self.trials.active {
            self.touch(owner);
            self.trials.log.push(Undo::Members(owner, self.members[owner.index()].clone()));
            self.trials.log.push(Undo::Slot(slot, self.slots[slot as usize].clone()));
            self.count(slot, false);
        }
        self.slots[slot as usize].alive = false;
        self.members[owner.index()].retain(|m| *m != slot);
    }

    /// Adds a cube to a sum, in a slot of its own.
    pub(super) fn add(&mut self, owner: Literal, cube: Cube) -> u32 {
        let slot = self.slots.len() as u32;
        for (factor, _) in &cube.powers {
            self.use_in(*factor, slot);
        }
        if self.trials.active {
            self.touch(owner);
            self.trials.log.push(Undo::Members(owner, self.members[owner.index()].clone()));
            self.trials.log.push(Undo::NewSlot);
        }
        self.members[owner.index()].push(slot);
        self.slots.push(Slot { owner, cube, alive: true });
        if self.trials.active {
            self.count(slot, true);
        }
        slot
    }

    /// Notes that a slot has a literal as a factor.
    pub(super) fn use_in(&mut self, literal: Literal, slot: u32) {
        self.users[literal.index()].push(slot);
        if self.trials.active {
            self.trials.log.push(Undo::NewUser(literal));
        }
    }

    /// One trial; whether it saved anything.
    fn attempt(&mut self, literal: Literal, random: &mut Random) -> bool {
        self.trials.trial += 1;
        self.trials.touched.clear();
        self.trials.log.clear();
        self.trials.failed = false;
        self.trials.n_places = self.places.len();
        let tabu = if random.below(4) > 0 { self.divisor_that_is(literal) } else { None };
        if !self.collapse(literal) {
            return false;
        }
        if random.below(2) > 0 {
            let (near, _) = self.trials.touched[random.below(self.trials.touched.len())];
            if near != literal && self.is_sum(near) {
                self.collapse(near);
            }
        }
        self.trials.tabu = tabu;
        self.drain();
        if let Some(divisor) = self.trials.tabu.take() {
            self.enqueue(divisor);
            self.drain();
        }
        self.bury();
        let saved: i64 = self.trials.touched.iter().map(|(literal, cost)| cost - self.cost(*literal)).sum();
        let is_worse = saved < 0 || self.trials.failed;
        self.end(is_worse);
        saved > 0 && !is_worse
    }

    /// Ends the trial; takes it back, last things first.
    fn end(&mut self, undo: bool) {
        if undo {
            self.places.truncate(self.trials.n_places);
        } else {
            // What is kept has no need of the places that are gone.
            self.trials.active = false;
            let mut places = SmallVec::new();
            while let Some(entry) = self.trials.log.pop() {
                if let Undo::Divisor(divisor, ..) = entry {
                    self.places_of(divisor, &mut places);
                    self.saving(divisor, &mut places);
                    self.put_back(divisor, &places);
                }
            }
            self.trials.active = true;
        }
        while let Some(entry) = self.trials.log.pop() {
            match entry {
                Undo::Slot(slot, old) => {
                    if self.slots[slot as usize].alive {
                        self.count(slot, false);
                    }
                    self.slots[slot as usize] = old;
                    if self.slots[slot as usize].alive {
                        self.count(slot, true);
                    }
                }
                Undo::NewSlot => {
                    self.count(self.slots.len() as u32 - 1, false);
                    self.slots.pop();
                }
                Undo::NewUser(literal) => {
                    self.users[literal.index()].pop();
                }
                Undo::NewDivisor => {
                    let idx = self.divisors.len() as u32 - 1;
                    if let Some(Divisor { fingerprint, .. }) = self.divisors.pop()
                        && let Ok(entry) = self.by_fingerprint.find_entry(fingerprint, |other| *other == idx)
                    {
                        entry.remove();
                    }
                }
                Undo::Members(owner, members) => self.members[owner.index()] = members,
                Undo::Divisor(divisor, first, upper, was_made) => {
                    let divisor = &mut self.divisors[divisor as usize];
                    (divisor.first, divisor.upper) = (first, upper);
                    if !was_made {
                        divisor.made = None;
                    }
                }
            }
        }
    }

    /// Takes the cubes away of whatever nothing uses any more.
    fn bury(&mut self) {
        let mut dead: Vec<Literal> = self.trials.touched.iter().map(|t| t.0).collect();
        while let Some(literal) = dead.pop() {
            if self.trials.n_uses[literal.index()] > 0 {
                continue;
            }
            for slot in self.members[literal.index()].clone() {
                dead.extend(self.slots[slot as usize].cube.powers.iter().map(|p| p.0));
                self.remove(slot);
            }
        }
    }

    /// The divisor of two cubes, or of two factors, that a literal stands for.
    fn divisor_that_is(&self, literal: Literal) -> Option<u32> {
        let fingerprint = match *self.members[literal.index()].as_slice() {
            [slot] => {
                let cube = &self.slots[slot as usize].cube;
                match *cube.powers.as_slice() {
                    [(a, e), (b, f)] if is_unit(cube.coef) => fingerprint(Kind::Pair((a, e < 0), (b, f < 0))),
                    [(a, e)] if e > 1 => fingerprint(Kind::Pair((a, false), (a, false))),
                    _ => return None,
                }
            }
            [a, b] => self.sketch(a.min(b), a.max(b))?.fingerprint,
            _ => return None,
        };
        let same = |idx: &u32| self.divisors[*idx as usize].fingerprint == fingerprint;
        self.by_fingerprint.find(fingerprint, same).copied()
    }

    /// Multiplies a literal out into the cubes that use it, where it may be; whether there is any.
    fn collapse(&mut self, literal: Literal) -> bool {
        let members = self.members[literal.index()].clone();
        if members.len() > MAX_CUBES {
            return false;
        }
        let cubes: SmallVec<[Cube; 4]> = members.iter().map(|m| self.slots[*m as usize].cube.clone()).collect();
        if cubes.iter().any(|c| c.powers.iter().any(|p| p.1 < 0)) {
            return false;
        }
        let may_distribute = self.may_distribute(&cubes);
        let mut users: SmallVec<[u32; 16]> = self.users[literal.index()].iter().copied().collect();
        users.sort_unstable();
        users.dedup();
        if self.trials.log.is_empty() {
            // What is gone now is gone for good.
            users.retain(|slot| {
                let slot = &self.slots[*slot as usize];
                slot.alive && slot.cube.power_of(literal) != 0
            });
            self.users[literal.index()] = users.iter().copied().collect();
        }
        users.retain(|slot| {
            let Slot { ref cube, alive, owner } = self.slots[*slot as usize];
            let e = cube.power_of(literal);
            let alone = cube.powers.len() == 1 && is_unit(cube.coef);
            let fits = |c: &Cube| {
                let length = degree(&cube.powers) + degree(&c.powers) * e.unsigned_abs();
                length <= MAX_DEGREE && is_tame(c.coef.powi(e) * cube.coef)
            };
            let may = if cubes.len() == 1 {
                true
            } else {
                e == 1 && (alone || may_distribute) && self.members[owner.index()].len() + cubes.len() <= MAX_WIDTH
            };
            alive && e > 0 && may && cube.powers.iter().all(|p| p.1 > 0) && cubes.iter().all(fits)
        });
        if users.is_empty() || users.len() * (cubes.len() - 1) > MAX_NEW {
            return false;
        }
        for slot in users {
            let Slot { owner, ref cube, alive } = self.slots[slot as usize];
            let e = cube.power_of(literal);
            // Another one of this sum may have been put together with this one.
            if !alive || e <= 0 || cubes.len() > 1 && e > 1 {
                continue;
            }
            let rest = multiply(&cube.powers, &[(literal, -e)]);
            let coef = cube.coef;
            let product =
                |c: &Cube| Cube { coef: coef * c.coef.powi(e), powers: multiply(&rest, &raise(&c.powers, e)) };
            let (first, others) = (product(&cubes[0]), cubes[1..].iter().map(product).collect::<SmallVec<[Cube; 4]>>());
            self.replace(slot, first, None);
            for cube in others {
                let slot = self.add(owner, Cube::number(0.0));
                self.replace(slot, cube, None);
            }
        }
        true
    }

    /// As in `collect.rs`.
    fn may_distribute(&self, cubes: &[Cube]) -> bool {
        let exact = |cube: &&Cube| match cube.powers.as_slice() {
            [] => true,
            [(literal, 1)] => self.network.inexact.get(literal.index()).is_some_and(|inexact| !inexact),
            _ => false,
        };
        cubes.iter().filter(exact).count() <= 1
    }

    /// Logs that a divisor is about to come; when it was logged last.
    pub(super) fn log_new_divisor(&mut self) -> u32 {
        if self.trials.active {
            self.trials.log.push(Undo::NewDivisor);
        }
        self.trials.trial
    }

    /// Logs what a divisor was before this trial.
    pub(super) fn log_divisor(&mut self, divisor: u32) {
        let idx = divisor as usize;
        if self.trials.active && self.divisors[idx].logged_in != self.trials.trial {
            self.divisors[idx].logged_in = self.trials.trial;
            let Divisor { first, upper, ref made, .. } = self.divisors[idx];
            self.trials.log.push(Undo::Divisor(divisor, first, upper, made.is_some()));
        }
    }
}
