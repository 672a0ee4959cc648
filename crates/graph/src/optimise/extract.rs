//! Greedy extraction of divisors, the one that saves most first.
//!
//! In: a network. Out: a network with the same values, where what is common is a literal of its own.
//!
//! Rajski and Vasudevamurthy, "The testability-preserving concurrent decomposition and factorization of
//! Boolean expressions" (IEEE TCAD 11(6), 1992), after the kernels of Brayton and McMullen: instead of all
//! kernels only those of two cubes, and all pairs of literals; larger ones come about by repetition.
//! With a base that is not 1, a divisor that occurs once is a factorisation: `a*b + a*c -> a*(b + c)`.
//!
//! Savings are upper bounds in a priority queue, computed again when they come to the front, so each step
//! costs what it changes. A sum of n cubes has n*(n-1)/2 pairs; in wide sums only pairs with a common
//! literal and pairs of neighbours are looked at, a bounded number for each cube.

use super::cube::{Cube, Literal, Powers, common, degree, multiply, raise};
use super::divisors::{Double, Factor, Kind, Sketch, Split, fingerprint, sketch, split};
use super::network::{Form, Network, Weights, is_tame, is_unit};
use chainrule_base::Arena;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BinaryHeap;

/// Sums with more cubes are wide.
const WIDE: usize = 48;
/// In a wide sum, how many partners a cube has for each of its literals, and among its neighbours.
const PARTNERS: usize = 12;

/// What is extracted first among divisors that save the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Preference {
    /// What was seen first.
    #[default]
    Oldest,
    /// What was seen last.
    Newest,
}

/// The network with divisors extracted while they save.
pub(super) fn extract(network: Network, preference: Preference) -> Network {
    let mut extraction = Extraction::new(network, preference);
    while let Some((upper, tie)) = extraction.queue.pop() {
        let divisor = extraction.divisor_of(tie);
        if upper != extraction.divisors[divisor as usize].queued {
            continue;
        }
        extraction.divisors[divisor as usize].queued = 0;
        let saving = extraction.saving(divisor);
        if saving < upper && extraction.queue.peek().is_some_and(|next| *next > (saving, tie)) {
            extraction.enqueue(divisor);
            continue;
        }
        if saving <= 0 {
            continue;
        }
        extraction.take(divisor);
        while let Some(literal) = extraction.changed.pop() {
            extraction.propagate(literal);
        }
    }
    extraction.finish()
}

/// A cube, where it stands.
#[derive(Clone, Debug)]
struct Slot {
    /// The sum that it is of.
    owner: Literal,
    cube: Cube,
    alive: bool,
}

struct Divisor {
    kind: Kind,
    fingerprint: u64,
    /// Slots, or pairs of slots, where it was seen; some of them have changed since.
    places: SmallVec<[(u32, u32); 1]>,
    /// No less than what it saves.
    upper: i64,
    /// The largest number with which it waits in the queue.
    queued: i64,
    /// What it became.
    made: Option<Box<Made>>,
}

#[derive(Clone, Debug)]
struct Made {
    /// The divisor times `scale`.
    literal: Literal,
    scale: f64,
    /// The divisor, when it is a double cube.
    double: Option<Double>,
}

struct Extraction {
    network: Network,
    weights: Weights,
    preference: Preference,
    slots: Vec<Slot>,
    /// By literal: the slots of its cubes.
    members: Arena<Literal, Vec<u32>>,
    /// By literal: slots that had it as a factor at some time.
    users: Arena<Literal, Vec<u32>>,
    divisors: Vec<Divisor>,
    by_fingerprint: FxHashMap<u64, u32>,
    queue: BinaryHeap<(i64, u32)>,
    /// Sums that may have become one literal.
    changed: Vec<Literal>,
    /// Whether all is being looked at for the first time; then the queue is filled afterwards.
    seeing: bool,
}

impl Extraction {
    fn new(mut network: Network, preference: Preference) -> Self {
        let n = network.forms.len();
        let (mut slots, mut members) = (Vec::new(), Arena::filled(n, Vec::new()));
        for literal in network.forms.ids() {
            if let Form::Sum(cubes) = &mut network.forms[literal] {
                for cube in std::mem::take(cubes) {
                    members[literal].push(slots.len() as u32);
                    slots.push(Slot { owner: literal, cube, alive: true });
                }
            }
        }
        let mut this = Self {
            network,
            weights: Weights::of_table(),
            preference,
            slots,
            members,
            users: Arena::filled(n, Vec::new()),
            divisors: Vec::new(),
            by_fingerprint: FxHashMap::default(),
            queue: BinaryHeap::new(),
            changed: Vec::new(),
            seeing: true,
        };
        for slot in 0..this.slots.len() as u32 {
            for (literal, _) in this.slots[slot as usize].cube.powers.clone() {
                this.users[literal].push(slot);
            }
        }
        for slot in 0..this.slots.len() as u32 {
            this.see_factors(slot, None);
            this.see_pairs(slot, true);
        }
        this.seeing = false;
        for divisor in 0..this.divisors.len() as u32 {
            this.enqueue(divisor);
        }
        this
    }

    fn finish(mut self) -> Network {
        for (literal, members) in self.members.iter() {
            if let Form::Sum(cubes) = &mut self.network.forms[literal] {
                *cubes = members.iter().map(|slot| self.slots[*slot as usize].cube.clone()).collect();
            }
        }
        self.network
    }

    /// Divisors as they stand in the queue: the larger number first among equal savings.
    fn tie(&self, divisor: u32) -> u32 {
        if self.preference == Preference::Newest { divisor } else { u32::MAX - divisor }
    }

    fn divisor_of(&self, tie: u32) -> u32 {
        if self.preference == Preference::Newest { tie } else { u32::MAX - tie }
    }

    /// Notes that a divisor may be extracted at a place, where it saves at most `saving`; it costs `cost`.
    fn see(&mut self, kind: Kind, fingerprint: u64, place: (u32, u32), saving: i64, cost: i64) {
        let new = self.divisors.len() as u32;
        let idx = *self.by_fingerprint.entry(fingerprint).or_insert(new);
        if idx == new {
            let places = SmallVec::from_buf([place]);
            self.divisors.push(Divisor { kind, fingerprint, places, upper: saving - cost, queued: 0, made: None });
        } else if self.divisors[idx as usize].kind == kind {
            let divisor = &mut self.divisors[idx as usize];
            divisor.places.push(place);
            divisor.upper += saving;
        }
        self.enqueue(idx);
    }

    fn enqueue(&mut self, idx: u32) {
        let divisor = &mut self.divisors[idx as usize];
        if self.seeing || divisor.upper <= divisor.queued {
            return;
        }
        divisor.queued = divisor.upper;
        let upper = divisor.upper;
        let tie = self.tie(idx);
        self.queue.push((upper, tie));
    }

    /// Notes the divisors of one cube; with `only`, those that have this literal.
    fn see_factors(&mut self, slot: u32, only: Option<Literal>) {
        let Cube { coef, powers } = self.slots[slot as usize].cube.clone();
        let product_alone = degree(&powers) == 1 && self.members[self.slots[slot as usize].owner].len() == 1;
        let mul = self.weights.mul;
        let mut see = |kind, times: i32| self.see(kind, fingerprint(kind), (slot, slot), mul * i64::from(times), mul);
        for (i, &(a, e)) in powers.iter().enumerate() {
            let first = (a, e < 0);
            if e.abs() > 1 && only.is_none_or(|o| o == a) {
                see(Kind::Pair(first, first), e.abs() / 2);
            }
            for &(b, f) in &powers[i + 1..] {
                if only.is_none_or(|o| o == a || o == b) {
                    see(Kind::Pair(first, (b, f < 0)), e.abs().min(f.abs()));
                }
            }
            if !is_unit(coef) && !product_alone {
                see(Kind::Scaled(coef.abs(), first), 1);
            }
        }
    }

    /// Notes the divisors of a cube with the others of its sum, with later ones only where so told.
    fn see_pairs(&mut self, slot: u32, later: bool) {
        let owner = self.slots[slot as usize].owner;
        let n = self.members[owner].len();
        let partners: SmallVec<[u32; 64]> = if n <= WIDE {
            self.members[owner].iter().copied().filter(|p| *p != slot && (!later || *p > slot)).collect()
        } else {
            self.partners(slot)
        };
        for partner in partners {
            let (first, second) = (slot.min(partner), slot.max(partner));
            if let Some(found) = self.sketch(first, second) {
                let (saving, cost) = (self.saving_of(&found, found.coef), self.cost_of(&found, 1.0));
                self.see(Kind::Double, found.fingerprint, (first, second), saving, cost);
            }
        }
    }

    /// In a wide sum: some cubes with a common literal, and neighbours.
    fn partners(&self, slot: u32) -> SmallVec<[u32; 64]> {
        let owner = self.slots[slot as usize].owner;
        let mut partners: SmallVec<[u32; 64]> = SmallVec::new();
        for (literal, _) in &self.slots[slot as usize].cube.powers {
            let users = &self.users[*literal];
            let start = users.partition_point(|u| *u <= slot);
            let same = |u: &u32| self.slots[*u as usize].owner == owner && self.slots[*u as usize].alive;
            partners.extend(users[start..].iter().copied().take(8 * PARTNERS).filter(same).take(PARTNERS));
        }
        let members = &self.members[owner];
        let place = members.iter().position(|m| *m == slot).unwrap_or(0);
        partners.extend(members[place + 1..].iter().copied().take(PARTNERS));
        partners.sort_unstable();
        partners.dedup();
        partners.retain(|p| *p != slot);
        partners
    }

    fn sketch(&self, a: u32, b: u32) -> Option<Sketch> {
        let (a, b) = (&self.slots[a as usize], &self.slots[b as usize]);
        if !a.alive || !b.alive || a.owner != b.owner {
            return None;
        }
        sketch((a.cube.coef, &a.cube.powers), (b.cube.coef, &b.cube.powers))
    }

    fn split(&self, (a, b): (u32, u32)) -> Option<Split> {
        let sketch = self.sketch(a, b)?;
        Some(split(&sketch, &self.slots[a as usize].cube.powers, &self.slots[b as usize].cube.powers))
    }

    /// What a double-cube divisor times `scale` costs when it is made.
    fn cost_of(&self, sketch: &Sketch, scale: f64) -> i64 {
        let [_, u, v] = sketch.degrees;
        self.weights.cube(scale, u) + self.weights.cube(scale * sketch.ratio, v) + self.weights.add
    }

    /// What is saved where two cubes become one with this coefficient.
    fn saving_of(&self, sketch: &Sketch, coef: f64) -> i64 {
        let [base, u, v] = sketch.degrees;
        let before = self.weights.cube(sketch.coef, base + u)
            + self.weights.cube(sketch.coef * sketch.ratio, base + v)
            + self.weights.add;
        before - self.weights.cube(coef, base + 1)
    }

    /// How often a pair of factors divides a cube.
    fn multiplicity(&self, slot: u32, a: Factor, b: Factor) -> i32 {
        let slot = &self.slots[slot as usize];
        let times = |factor: Factor| {
            let e = slot.cube.power_of(factor.0);
            if (e < 0) == factor.1 { e.abs() } else { 0 }
        };
        match (slot.alive, a == b) {
            (false, _) => 0,
            (true, true) => times(a) / 2,
            (true, false) => times(a).min(times(b)),
        }
    }

    /// Whether a cube still has this coefficient and factor.
    fn has_scaled(&self, slot: u32, c: f64, factor: Factor) -> bool {
        let slot = &self.slots[slot as usize];
        let e = slot.cube.power_of(factor.0);
        let product_alone = degree(&slot.cube.powers) == 1 && self.members[slot.owner].len() == 1;
        slot.alive && slot.cube.coef.abs() == c && e != 0 && (e < 0) == factor.1 && !product_alone
    }

    /// What extracting a divisor saves. Places where it is no more are dropped.
    fn saving(&mut self, divisor: u32) -> i64 {
        let Divisor { kind, fingerprint, ref mut places, ref made, .. } = self.divisors[divisor as usize];
        let scale = made.as_ref().map(|m| m.scale);
        let mut places = std::mem::take(places);
        places.sort_unstable();
        places.dedup();
        let mul = self.weights.mul;
        let mut saving = 0;
        match kind {
            Kind::Pair(a, b) => places.retain(|place| {
                let times = self.multiplicity(place.0, a, b);
                saving += mul * i64::from(times);
                times > 0
            }),
            Kind::Scaled(c, factor) => places.retain(|place| {
                let there = self.has_scaled(place.0, c, factor);
                saving += if there { mul } else { 0 };
                there
            }),
            Kind::Double => {
                let mut sketches: SmallVec<[Sketch; 8]> = SmallVec::new();
                places.retain(|place| {
                    let sketch = self.sketch(place.0, place.1).filter(|s| s.fingerprint == fingerprint);
                    sketches.extend(sketch);
                    sketch.is_some()
                });
                saving = match scale {
                    Some(scale) => self.saving_at(&sketches, scale),
                    None => self.best_scale(&sketches).1,
                };
            }
        }
        if kind != Kind::Double && scale.is_none() {
            saving -= mul;
        }
        let divisor = &mut self.divisors[divisor as usize];
        divisor.places = places;
        divisor.upper = saving;
        saving
    }

    /// What all places of a double-cube divisor save where `scale` times it is there.
    fn saving_at(&self, sketches: &[Sketch], scale: f64) -> i64 {
        sketches.iter().map(|s| self.saving_of(s, s.coef / scale)).sum()
    }

    /// The multiple of a double-cube divisor that is best made, and what it saves less what it costs.
    fn best_scale(&self, sketches: &[Sketch]) -> (f64, i64) {
        let Some(any) = sketches.first() else { return (1.0, 0) };
        let value = |scale: f64| self.saving_at(sketches, scale) - self.cost_of(any, scale);
        let mut best = (1.0, value(1.0));
        let mut tried: SmallVec<[f64; 8]> = SmallVec::from_slice(&[1.0]);
        for scale in sketches.iter().take(4).map(|s| s.coef.abs()).chain([any.ratio.abs().recip()]) {
            if tried.contains(&scale) || !is_tame(scale) {
                continue;
            }
            tried.push(scale);
            let saving = value(scale);
            if saving > best.1 {
                best = (scale, saving);
            }
        }
        best
    }

    fn take(&mut self, divisor: u32) {
        let places = std::mem::take(&mut self.divisors[divisor as usize].places);
        self.divisors[divisor as usize].upper = 0;
        match self.divisors[divisor as usize].kind {
            Kind::Pair(a, b) => self.take_pair(divisor, a, b, &places),
            Kind::Scaled(c, factor) => self.take_scaled(divisor, c, factor, &places),
            Kind::Double => self.take_double(divisor, &places),
        }
    }

    /// A new literal for a sum of cubes.
    fn make(&mut self, cubes: Vec<Cube>) -> Literal {
        let literal = self.network.forms.push(Form::Sum(Vec::new()));
        self.members.push(Vec::new());
        self.users.push(Vec::new());
        for cube in cubes {
            let slot = self.slots.len() as u32;
            for (factor, _) in &cube.powers {
                self.users[*factor].push(slot);
            }
            self.members[literal].push(slot);
            self.slots.push(Slot { owner: literal, cube, alive: true });
        }
        literal
    }

    fn take_pair(&mut self, divisor: u32, a: Factor, b: Factor, places: &[(u32, u32)]) {
        let sign = |factor: Factor| if factor.1 { -1 } else { 1 };
        let first: Powers = SmallVec::from_slice(&[(a.0, sign(a))]);
        let powers = multiply(&first, &[(b.0, sign(b))]);
        let literal = match &self.divisors[divisor as usize].made {
            Some(made) => made.literal,
            None => {
                // A product that is there already serves.
                let there = places.iter().map(|p| &self.slots[p.0 as usize]).find(|slot| {
                    slot.cube.coef == 1.0 && slot.cube.powers == powers && self.members[slot.owner].len() == 1
                });
                match there.map(|slot| slot.owner) {
                    Some(owner) => owner,
                    None => self.make(vec![Cube { coef: 1.0, powers: powers.clone() }]),
                }
            }
        };
        self.divisors[divisor as usize].made = Some(Box::new(Made { literal, scale: 1.0, double: None }));
        for &(slot, _) in places {
            let times = self.multiplicity(slot, a, b);
            if times == 0 || self.slots[slot as usize].owner == literal {
                continue;
            }
            let Cube { coef, powers: old } = self.slots[slot as usize].cube.clone();
            let rest = multiply(&old, &raise(&powers, -times));
            let new = multiply(&rest, &[(literal, times)]);
            self.replace(slot, Cube { coef, powers: new }, Some(literal));
        }
    }

    fn take_scaled(&mut self, divisor: u32, c: f64, factor: Factor, places: &[(u32, u32)]) {
        let powers: Powers = SmallVec::from_slice(&[(factor.0, if factor.1 { -1 } else { 1 })]);
        let literal = match &self.divisors[divisor as usize].made {
            Some(made) => made.literal,
            None => self.make(vec![Cube { coef: c, powers: powers.clone() }]),
        };
        self.divisors[divisor as usize].made = Some(Box::new(Made { literal, scale: 1.0, double: None }));
        for &(slot, _) in places {
            if !self.has_scaled(slot, c, factor) || self.slots[slot as usize].owner == literal {
                continue;
            }
            let Cube { coef, powers: old } = self.slots[slot as usize].cube.clone();
            let rest = multiply(&old, &raise(&powers, -1));
            let new = multiply(&rest, &[(literal, 1)]);
            self.replace(slot, Cube { coef: coef.signum(), powers: new }, Some(literal));
        }
    }

    fn take_double(&mut self, divisor: u32, places: &[(u32, u32)]) {
        if self.divisors[divisor as usize].made.is_none() {
            let Some(made) = self.make_double(places) else { return };
            self.divisors[divisor as usize].made = Some(Box::new(made));
        }
        let Some(Made { literal, scale, double }) = self.divisors[divisor as usize].made.as_deref().cloned() else {
            return;
        };
        for &(first, second) in places {
            // Fingerprints only suggest; here both cubes are compared.
            let Some(found) = self.split((first, second)).filter(|s| Some(&s.divisor) == double.as_ref()) else {
                continue;
            };
            let owner = self.slots[first as usize].owner;
            let coef = found.coef / scale;
            if owner == literal || !is_tame(coef) {
                continue;
            }
            self.slots[second as usize].alive = false;
            self.members[owner].retain(|m| *m != second);
            let powers = multiply(&found.base, &[(literal, 1)]);
            self.replace(first, Cube { coef, powers }, None);
        }
    }

    /// The divisor at these places as a literal: a sum that is there already, or a new one.
    fn make_double(&mut self, places: &[(u32, u32)]) -> Option<Made> {
        let double = self.split(*places.first()?)?.divisor;
        let there = places.iter().find_map(|place| {
            let owner = self.slots[place.0 as usize].owner;
            let alone = self.members[owner].len() == 2;
            let found = self.split(*place).filter(|s| alone && s.base.is_empty() && s.divisor == double)?;
            Some((found.coef, owner))
        });
        let (scale, literal) = there.unwrap_or_else(|| {
            let sketches: SmallVec<[Sketch; 8]> = places.iter().filter_map(|p| self.sketch(p.0, p.1)).collect();
            let scale = self.best_scale(&sketches).0;
            let Double { u, v, ratio } = double.clone();
            let literal = self.make(vec![Cube { coef: scale, powers: u }, Cube { coef: scale * ratio, powers: v }]);
            for slot in self.members[literal].clone() {
                self.see_factors(slot, None);
            }
            (scale, literal)
        });
        Some(Made { literal, scale, double: Some(double) })
    }

    /// Puts another cube in a slot; where only factors that stand with `only` are new, says so.
    fn replace(&mut self, slot: u32, cube: Cube, only: Option<Literal>) {
        let owner = self.slots[slot as usize].owner;
        let like = self.members[owner].iter().copied().find(|m| {
            *m != slot && self.slots[*m as usize].cube.powers == cube.powers && {
                let sum = self.slots[*m as usize].cube.coef + cube.coef;
                sum == 0.0 || is_tame(sum)
            }
        });
        if let Some(like) = like {
            self.slots[slot as usize].alive = false;
            self.members[owner].retain(|m| *m != slot);
            let mut sum = self.slots[like as usize].cube.clone();
            sum.coef += cube.coef;
            if sum.coef == 0.0 {
                self.slots[like as usize].alive = false;
                self.members[owner].retain(|m| *m != like);
            } else {
                self.replace(like, sum, None);
            }
            return;
        }
        let old = std::mem::replace(&mut self.slots[slot as usize].cube, cube);
        let (_, new, _) = common(&self.slots[slot as usize].cube.powers.clone(), &old.powers);
        for (literal, _) in new {
            self.users[literal].push(slot);
        }
        self.see_factors(slot, only);
        self.see_pairs(slot, false);
        if self.members[owner].len() == 1 {
            self.changed.push(owner);
        }
    }

    /// Where a sum has become one literal, that literal stands for it in other cubes.
    fn propagate(&mut self, literal: Literal) {
        let &[member] = self.members[literal].as_slice() else { return };
        let Some((coef, target)) = self.slots[member as usize].cube.as_literal() else { return };
        if !is_unit(coef) {
            return;
        }
        let users = self.users[literal].clone();
        for slot in users {
            let Cube { coef: old_coef, powers } = self.slots[slot as usize].cube.clone();
            let e = powers.iter().find(|p| p.0 == literal).map_or(0, |p| p.1);
            if e == 0 || !self.slots[slot as usize].alive {
                continue;
            }
            let rest = multiply(&powers, &[(literal, -e)]);
            let new = multiply(&rest, &[(target, e)]);
            let sign = if e % 2 == 0 { 1.0 } else { coef };
            self.replace(slot, Cube { coef: old_coef * sign, powers: new }, None);
        }
    }
}
