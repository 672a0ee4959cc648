//! Local search: sums and products are collapsed into their users, and extracted again.
//!
//! In: a finished extraction. Out: an extraction with other divisors that weighs no more.
//!
//! A trial takes a literal, or a literal and a neighbour, multiplies it out into the cubes that use it (*collapse*, as
//! `eliminate` of MIS), and extracts the best divisors again, which may be others: the literal's own divisor is tabu
//! until no other reduces the weight. The trial is kept if the total weight does not increase, because moves of equal
//! weight lead on to better ones; otherwise it is undone by its log. It touches only the cubes of the literal and those
//! that use it, so its cost does not depend on the size of the network.
//!
//! `collect.rs` defines which sums may be multiplied out.

use super::{Divisor, Extraction, Place, Slot};
use crate::optimise::cube::{Cube, Literal, degree, multiply, raise, without};
use crate::optimise::divisors::{Kind, fingerprint};
use crate::optimise::network::{Form, is_tame, is_unit};
use chainrule_base::Id;
use smallvec::SmallVec;

/// Maximum number of cubes of a collapsed sum.
const MAX_CUBES: usize = 6;
/// Maximum number of new cubes of one collapse.
const MAX_NEW: usize = 24;
/// Maximum width of a sum after a collapse.
const MAX_WIDTH: usize = 40;
/// Maximum degree of a product after a collapse.
const MAX_DEGREE: u32 = 12;
/// Maximum number of divisors that a trial examines before it is abandoned.
pub(super) const MAX_STEPS: usize = 400;
/// Number of divisors whose recording costs as much as one node of the budget.
const SEEN_A_NODE: u64 = 2;

/// Log entry for undoing a trial in reverse order.
pub(super) enum Undo {
    /// A slot contained this cube.
    Cube(u32, Cube),
    /// A slot was live, and was at this place in its sum.
    Removed(u32, u32),
    /// The last slot is new, and is the last one of its sum.
    NewSlot,
    /// The last user of a literal is new.
    NewUser(Literal),
    /// The last divisor is new.
    NewDivisor,
    /// The divisor's places, its bound, and whether it had been extracted.
    Divisor(u32, (Place, u32), i64, bool),
}

/// State of local search; empty outside of it.
#[derive(Default)]
pub(super) struct Trials {
    /// Whether changes are logged.
    pub(super) active: bool,
    pub(super) log: Vec<Undo>,
    /// By literal: the number of cubes that have it as a factor, including roots and operations that use it; and the
    /// last trial, numbered from one, that touched it.
    uses: Vec<(u32, u32)>,
    trial: u32,
    /// Literals that this trial has touched.
    touched: Vec<Literal>,
    /// Cost of each literal's cubes before this trial; literals beyond had none.
    costs: Vec<i64>,
    /// Worklist of literals whose uses are checked; empty between trials.
    dead: Vec<Literal>,
    /// Whether this trial takes too long.
    pub(super) failed: bool,
    /// Number of places before it.
    n_places: usize,
    /// Divisor that is postponed.
    pub(super) tabu: Option<u32>,
    /// Number of recorded divisors.
    pub(super) n_seen: u64,
}

impl Trials {
    /// Records that this trial changes a literal, or its uses, which it returns.
    fn touch(&mut self, literal: Literal) -> &mut u32 {
        let idx = literal.index();
        if self.uses.len() <= idx {
            self.uses.resize(idx + 1, (0, 0));
        }
        let (n_uses, touched_in) = &mut self.uses[idx];
        if *touched_in != self.trial + 1 {
            *touched_in = self.trial + 1;
            self.touched.push(literal);
        }
        n_uses
    }
}

/// Pseudorandom generator: Steele, Lea, Flood 2014.
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

/// Change of a cube in its slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Appears,
    Disappears,
}

impl Extraction {
    /// Runs trials with each sum in turn, until a number of consecutive turns reduce nothing, or the budget, in nodes,
    /// is spent; or until `goes_on`, which takes the remaining budget and the saving of the trials so far before each
    /// trial, returns false.
    pub(in crate::optimise) fn search(
        &mut self,
        seed: u64,
        patience: usize,
        budget: &mut u64,
        goes_on: impl Fn(u64, u64) -> bool,
    ) {
        if self.network.masked.iter().any(|masked| *masked) {
            return;
        }
        self.begin();
        let mut random = Random(seed);
        let (mut since, mut saved) = (0, 0);
        while since < patience {
            since += 1;
            let mut sums: Vec<Literal> = self.network.forms.ids().filter(|literal| self.is_sum(*literal)).collect();
            for place in (1..sums.len()).rev() {
                sums.swap(place, random.below(place + 1));
            }
            for literal in sums {
                if *budget == 0 || !goes_on(*budget, saved) {
                    since = patience;
                    break;
                }
                if !self.is_sum(literal) {
                    continue;
                }
                let before = self.trials.n_seen;
                let saving = self.attempt(literal, &mut random);
                if saving > 0 {
                    (since, saved) = (0, saved + saving);
                }
                *budget = budget.saturating_sub(1 + (self.trials.n_seen - before) / SEEN_A_NODE);
            }
        }
        self.trials.active = false;
    }

    fn begin(&mut self) {
        let n = self.members.len();
        self.trials = Trials { active: true, uses: vec![(0, 0); n], ..Trials::default() };
        let slots = &self.slots;
        for slot in slots.iter().filter(|slot| slot.alive) {
            for (used, _) in &slot.cube.powers {
                self.trials.uses[used.index()].0 += 1;
            }
        }
        let mut wanted: Vec<Literal> = self.network.roots.iter().filter_map(|t| t.literal).collect();
        for (_, form) in self.network.forms.iter() {
            if let Form::Opaque(_, args) = form {
                wanted.extend(args.iter().filter_map(|t| t.literal));
            }
        }
        for literal in wanted {
            self.trials.uses[literal.index()].0 += 1;
        }
        // Unused literals are ignored from the beginning.
        for literal in self.network.forms.ids().rev() {
            self.touch(literal);
        }
        self.bury();
        self.trials.log.clear();
        self.trials.costs = self.network.forms.ids().map(|literal| self.cost(literal)).collect();
    }

    fn is_sum(&self, literal: Literal) -> bool {
        !self.members[literal.index()].is_empty()
    }

    /// Returns the cost of a literal's cubes.
    fn cost(&self, literal: Literal) -> i64 {
        let members = &self.members[literal.index()];
        let cube = |slot: &u32| {
            let cube = &self.slots[*slot as usize].cube;
            self.weights.cube(cube.coef, degree(&cube.powers))
        };
        members.iter().map(cube).sum::<i64>() + self.weights.add * (members.len().max(1) as i64 - 1)
    }

    /// Records that this trial changes a literal, or its uses.
    fn touch(&mut self, literal: Literal) {
        self.trials.touch(literal);
    }

    /// Counts the uses of literals in a cube that appears or disappears.
    fn count(&mut self, slot: u32, change: Change) {
        for (used, _) in &self.slots[slot as usize].cube.powers {
            let n = self.trials.touch(*used);
            *n = if change == Change::Appears { *n + 1 } else { *n - 1 };
        }
    }

    /// Does the same for an undo, which touches nothing.
    fn count_back(&mut self, slot: u32, change: Change) {
        for (used, _) in &self.slots[slot as usize].cube.powers {
            let (n, _) = &mut self.trials.uses[used.index()];
            *n = if change == Change::Appears { *n + 1 } else { *n - 1 };
        }
    }

    /// Stores a cube in a slot and logs it; the caller updates `users` and divisors.
    pub(super) fn put(&mut self, slot: u32, cube: Cube) {
        if !self.trials.active {
            self.slots[slot as usize].cube = cube;
            return;
        }
        self.touch(self.slots[slot as usize].owner);
        self.count(slot, Change::Disappears);
        let old = std::mem::replace(&mut self.slots[slot as usize].cube, cube);
        self.trials.log.push(Undo::Cube(slot, old));
        self.count(slot, Change::Appears);
    }

    /// Removes a slot from its sum.
    pub(super) fn remove(&mut self, slot: u32) {
        let owner = self.slots[slot as usize].owner;
        let members = &mut self.members[owner.index()];
        // Every live slot is in its sum.
        let Some(place) = members.iter().position(|m| *m == slot) else { return };
        members.remove(place);
        if self.trials.active {
            self.touch(owner);
            self.trials.log.push(Undo::Removed(slot, place as u32));
            self.count(slot, Change::Disappears);
        }
        self.slots[slot as usize].alive = false;
    }

    /// Adds a cube to a sum, in a new slot.
    pub(super) fn add(&mut self, owner: Literal, cube: Cube) -> u32 {
        let slot = self.slots.len() as u32;
        for (factor, _) in &cube.powers {
            self.use_in(*factor, slot);
        }
        if self.trials.active {
            self.touch(owner);
            self.trials.log.push(Undo::NewSlot);
        }
        self.members[owner.index()].push(slot);
        self.slots.push(Slot { owner, cube, alive: true });
        if self.trials.active {
            self.count(slot, Change::Appears);
        }
        slot
    }

    /// Records that a slot has a literal as a factor.
    pub(super) fn use_in(&mut self, literal: Literal, slot: u32) {
        self.users[literal.index()].push(slot);
        if self.trials.active {
            self.trials.log.push(Undo::NewUser(literal));
        }
    }

    /// Runs one trial; returns its saving.
    fn attempt(&mut self, literal: Literal, random: &mut Random) -> u64 {
        self.trials.trial += 1;
        self.trials.touched.clear();
        self.trials.log.clear();
        self.trials.failed = false;
        self.trials.n_places = self.places.len();
        let tabu = if random.below(4) > 0 { self.divisor_that_is(literal) } else { None };
        if !self.collapse(literal) {
            return 0;
        }
        if random.below(2) > 0 {
            let near = self.trials.touched[random.below(self.trials.touched.len())];
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
        let before = |literal: &Literal| self.trials.costs.get(literal.index()).copied().unwrap_or(0);
        let saved: i64 = self.trials.touched.iter().map(|literal| before(literal) - self.cost(*literal)).sum();
        let is_worse = saved < 0 || self.trials.failed;
        self.end(is_worse);
        if is_worse { 0 } else { saved.unsigned_abs() }
    }

    /// Ends the trial; with `undo`, reverts it, last entries first.
    fn end(&mut self, undo: bool) {
        if undo {
            self.places.truncate(self.trials.n_places);
        } else {
            // A kept trial does not need the removed places.
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
            self.trials.costs.resize(self.members.len(), 0);
            for idx in 0..self.trials.touched.len() {
                let literal = self.trials.touched[idx];
                self.trials.costs[literal.index()] = self.cost(literal);
            }
        }
        while let Some(entry) = self.trials.log.pop() {
            match entry {
                Undo::Cube(slot, old) => {
                    self.count_back(slot, Change::Disappears);
                    self.slots[slot as usize].cube = old;
                    self.count_back(slot, Change::Appears);
                }
                Undo::Removed(slot, place) => {
                    let Slot { owner, ref mut alive, .. } = self.slots[slot as usize];
                    *alive = true;
                    self.members[owner.index()].insert(place as usize, slot);
                    self.count_back(slot, Change::Appears);
                }
                Undo::NewSlot => {
                    self.count_back(self.slots.len() as u32 - 1, Change::Disappears);
                    if let Some(Slot { owner, .. }) = self.slots.pop() {
                        self.members[owner.index()].pop();
                    }
                }
                Undo::NewUser(literal) => {
                    self.users[literal.index()].pop();
                }
                Undo::NewDivisor => {
                    let idx = self.divisors.len() as u32 - 1;
                    self.natures.pop();
                    if let Some(Divisor { fingerprint, .. }) = self.divisors.pop()
                        && let Ok(entry) = self.by_fingerprint.find_entry(fingerprint, |other| *other == idx)
                    {
                        entry.remove();
                    }
                }
                Undo::Divisor(idx, places, upper, was_made) => {
                    let divisor = &mut self.divisors[idx as usize];
                    ((divisor.latest, divisor.earlier), divisor.upper) = (places, upper);
                    if !was_made {
                        self.natures[idx as usize].made = None;
                    }
                }
            }
        }
    }

    /// Removes the cubes of unused literals.
    fn bury(&mut self) {
        let mut dead = std::mem::take(&mut self.trials.dead);
        dead.extend_from_slice(&self.trials.touched);
        while let Some(literal) = dead.pop() {
            if self.trials.uses[literal.index()].0 > 0 {
                continue;
            }
            for slot in self.members[literal.index()].clone() {
                dead.extend(self.slots[slot as usize].cube.powers.iter().map(|p| p.0));
                self.remove(slot);
            }
        }
        self.trials.dead = dead;
    }

    /// Returns the divisor of two cubes, or of two factors, that a literal represents.
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

    /// Multiplies a literal out into the cubes that use it, if allowed; returns whether there is any.
    fn collapse(&mut self, literal: Literal) -> bool {
        let members = self.members[literal.index()].clone();
        if members.len() > MAX_CUBES {
            return false;
        }
        let n_cubes = members.len();
        let cubes = || members.iter().map(|m| &self.slots[*m as usize].cube);
        if cubes().any(|c| c.powers.iter().any(|p| p.1 < 0)) {
            return false;
        }
        let may_distribute = self.may_distribute(cubes());
        let mut users: SmallVec<[u32; 16]> = self.users[literal.index()].iter().copied().collect();
        users.sort_unstable();
        users.dedup();
        if self.trials.log.is_empty() {
            // Slots that are dead now are never revived.
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
            let may = if n_cubes == 1 {
                true
            } else {
                e == 1 && (alone || may_distribute) && self.members[owner.index()].len() + n_cubes <= MAX_WIDTH
            };
            let mut members = members.iter().map(|m| &self.slots[*m as usize].cube);
            alive && e > 0 && may && cube.powers.iter().all(|p| p.1 > 0) && members.all(fits)
        });
        if users.is_empty() || users.len() * (n_cubes - 1) > MAX_NEW {
            return false;
        }
        for slot in users {
            let Slot { owner, ref cube, alive } = self.slots[slot as usize];
            let e = cube.power_of(literal);
            // Another cube of this sum may have been merged with this one.
            if !alive || e <= 0 || n_cubes > 1 && e > 1 {
                continue;
            }
            let rest = without(&cube.powers, literal);
            let coef = cube.coef;
            // The literal's own cubes stay unchanged: none of its operands uses it.
            for (i, member) in members.iter().enumerate() {
                let Cube { coef: factor, ref powers } = self.slots[*member as usize].cube;
                let powers = if e == 1 { multiply(&rest, powers) } else { multiply(&rest, &raise(powers, e)) };
                let product = Cube { coef: coef * factor.powi(e), powers };
                let slot = if i == 0 { slot } else { self.add(owner, Cube::number(0.0)) };
                self.replace(slot, product, None);
            }
        }
        true
    }

    /// As in `collect.rs`.
    fn may_distribute<'a>(&self, cubes: impl Iterator<Item = &'a Cube>) -> bool {
        let exact = |cube: &&Cube| match cube.powers.as_slice() {
            [] => true,
            [(literal, 1)] => self.network.inexact.get(literal.index()).is_some_and(|inexact| !inexact),
            _ => false,
        };
        cubes.filter(exact).count() <= 1
    }

    /// Logs the creation of a divisor; returns the last trial that logged it.
    pub(super) fn log_new_divisor(&mut self) -> u32 {
        if self.trials.active {
            self.trials.log.push(Undo::NewDivisor);
        }
        self.trials.trial
    }

    /// Logs the state of a divisor before this trial.
    pub(super) fn log_divisor(&mut self, divisor: u32) {
        let idx = divisor as usize;
        if self.trials.active && self.divisors[idx].logged_in != self.trials.trial {
            self.divisors[idx].logged_in = self.trials.trial;
            let Divisor { latest, earlier, upper, .. } = self.divisors[idx];
            let was_made = self.natures[idx].made.is_some();
            self.trials.log.push(Undo::Divisor(divisor, (latest, earlier), upper, was_made));
        }
    }
}
