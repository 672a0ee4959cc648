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
use super::divisors::{Factor, Kind, Split, split};
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
        let saving = extraction.saving(divisor);
        if saving <= 0 {
            continue;
        }
        if saving < upper && extraction.queue.peek().is_some_and(|next| *next > (saving, tie)) {
            extraction.queue.push((saving, tie));
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
    /// Slots, or pairs of slots, where it was seen; some of them have changed since.
    places: Vec<(u32, u32)>,
    /// No less than what it saves.
    upper: i64,
    /// The literal that it became, which is the divisor times the number.
    made: Option<(f64, Literal)>,
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

    /// Notes that `kind` may be extracted at a place, where it saves at most `saving`.
    fn see(&mut self, kind: Kind, place: (u32, u32), saving: i64) {
        let new = self.divisors.len() as u32;
        let idx = *self.by_fingerprint.entry(kind.fingerprint()).or_insert(new);
        if idx == new {
            let cost = self.cost_of(&kind, 1.0);
            self.divisors.push(Divisor { kind, places: Vec::new(), upper: -cost, made: None });
        } else if self.divisors[idx as usize].kind != kind {
            // Another divisor with the same fingerprint came first; this one is passed over.
            return;
        }
        let divisor = &mut self.divisors[idx as usize];
        divisor.places.push(place);
        divisor.upper += saving;
        if divisor.upper > 0 {
            let upper = divisor.upper;
            let tie = self.tie(idx);
            self.queue.push((upper, tie));
        }
    }

    /// What the divisor times `scale` costs when it is made.
    fn cost_of(&self, kind: &Kind, scale: f64) -> i64 {
        match kind {
            Kind::Pair(..) | Kind::Scaled(..) => self.weights.mul,
            Kind::Double { u, v, ratio } => {
                self.weights.cube(scale, u) + self.weights.cube(scale * ratio, v) + self.weights.add
            }
        }
    }

    /// Notes the divisors of one cube; with `only`, those that have this literal.
    fn see_factors(&mut self, slot: u32, only: Option<Literal>) {
        let Cube { coef, powers } = self.slots[slot as usize].cube.clone();
        let lone = degree(&powers) == 1;
        let mul = self.weights.mul;
        for (i, &(a, e)) in powers.iter().enumerate() {
            let first = (a, e < 0);
            if e.abs() > 1 && only.is_none_or(|o| o == a) {
                self.see(Kind::Pair(first, first), (slot, slot), mul * i64::from(e.abs() / 2));
            }
            for &(b, f) in &powers[i + 1..] {
                if only.is_none_or(|o| o == a || o == b) {
                    self.see(Kind::Pair(first, (b, f < 0)), (slot, slot), mul * i64::from(e.abs().min(f.abs())));
                }
            }
            let product_alone = lone && self.members[self.slots[slot as usize].owner].len() == 1;
            if !is_unit(coef) && !product_alone {
                self.see(Kind::Scaled(coef.abs(), first), (slot, slot), mul);
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
            if let Some(found) = self.split(first, second) {
                let saving = self.saving_of(&found, found.coef);
                self.see(found.kind, (first, second), saving);
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

    fn split(&self, a: u32, b: u32) -> Option<Split> {
        let (a, b) = (&self.slots[a as usize], &self.slots[b as usize]);
        if !a.alive || !b.alive || a.owner != b.owner {
            return None;
        }
        split((a.cube.coef, &a.cube.powers), (b.cube.coef, &b.cube.powers))
    }

    /// What is saved where `split` becomes one cube with this coefficient.
    fn saving_of(&self, split: &Split, coef: f64) -> i64 {
        let Kind::Double { u, v, ratio } = &split.kind else { return 0 };
        let (first, second) = (multiply(&split.base, u), multiply(&split.base, v));
        let before =
            self.weights.cube(split.coef, &first) + self.weights.cube(split.coef * ratio, &second) + self.weights.add;
        let factor = if is_unit(coef) { 0 } else { self.weights.mul };
        before - self.weights.mul * i64::from(degree(&split.base)) - factor
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
        let mut places = std::mem::take(&mut self.divisors[divisor as usize].places);
        places.sort_unstable();
        places.dedup();
        let made = self.divisors[divisor as usize].made;
        let kind = self.divisors[divisor as usize].kind.clone();
        let mul = self.weights.mul;
        let mut saving = 0;
        match &kind {
            Kind::Pair(a, b) => places.retain(|place| {
                let times = self.multiplicity(place.0, *a, *b);
                saving += mul * i64::from(times);
                times > 0
            }),
            Kind::Scaled(c, factor) => places.retain(|place| {
                let there = self.has_scaled(place.0, *c, *factor);
                saving += if there { mul } else { 0 };
                there
            }),
            Kind::Double { .. } => {
                places.retain(|place| self.split(place.0, place.1).is_some_and(|s| s.kind == kind));
                let scale = match made {
                    Some((scale, _)) => scale,
                    None => self.best_scale(&kind, &places).0,
                };
                saving += self.saving_at(&places, scale);
            }
        }
        if made.is_none() {
            let scale = if matches!(kind, Kind::Double { .. }) { self.best_scale(&kind, &places).0 } else { 1.0 };
            saving -= self.cost_of(&kind, scale);
        }
        let divisor = &mut self.divisors[divisor as usize];
        divisor.places = places;
        divisor.upper = saving;
        saving
    }

    /// What all places of a double-cube divisor save where `scale` times it is made.
    fn saving_at(&self, places: &[(u32, u32)], scale: f64) -> i64 {
        let splits = places.iter().filter_map(|p| self.split(p.0, p.1));
        splits.map(|s| self.saving_of(&s, s.coef / scale)).sum()
    }

    /// The multiple of a double-cube divisor that is best made, and what it saves.
    fn best_scale(&self, kind: &Kind, places: &[(u32, u32)]) -> (f64, i64) {
        let Kind::Double { ratio, .. } = kind else { return (1.0, 0) };
        let mut scales: SmallVec<[f64; 8]> = SmallVec::from_slice(&[1.0]);
        let coefs = places.iter().take(4).filter_map(|p| self.split(p.0, p.1)).map(|s| s.coef.abs());
        for scale in coefs.chain([ratio.abs().recip()]) {
            if !scales.contains(&scale) && is_tame(scale) {
                scales.push(scale);
            }
        }
        let value = |scale: f64| self.saving_at(places, scale) - self.cost_of(kind, scale);
        let mut best = (1.0, value(1.0));
        for scale in &scales[1..] {
            let saving = value(*scale);
            if saving > best.1 {
                best = (*scale, saving);
            }
        }
        best
    }

    fn take(&mut self, divisor: u32) {
        let kind = self.divisors[divisor as usize].kind.clone();
        let places = std::mem::take(&mut self.divisors[divisor as usize].places);
        match &kind {
            Kind::Pair(a, b) => self.take_pair(divisor, *a, *b, &places),
            Kind::Scaled(c, factor) => self.take_scaled(divisor, *c, *factor, &places),
            Kind::Double { u, v, ratio } => self.take_double(divisor, &kind, (u, v, *ratio), &places),
        }
        self.divisors[divisor as usize].upper = 0;
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
        let literal = match self.divisors[divisor as usize].made {
            Some((_, literal)) => literal,
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
        self.divisors[divisor as usize].made = Some((1.0, literal));
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
        let literal = match self.divisors[divisor as usize].made {
            Some((_, literal)) => literal,
            None => self.make(vec![Cube { coef: c, powers: powers.clone() }]),
        };
        self.divisors[divisor as usize].made = Some((1.0, literal));
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

    fn take_double(
        &mut self,
        divisor: u32,
        kind: &Kind,
        (u, v, ratio): (&Powers, &Powers, f64),
        places: &[(u32, u32)],
    ) {
        let (scale, literal) = match self.divisors[divisor as usize].made {
            Some(made) => made,
            None => {
                // A sum that is there already serves.
                let there = places.iter().find_map(|p| {
                    let owner = self.slots[p.0 as usize].owner;
                    let found = self.split(p.0, p.1).filter(|s| s.base.is_empty() && self.members[owner].len() == 2)?;
                    Some((found.coef, owner))
                });
                match there {
                    Some(made) => made,
                    None => {
                        let scale = self.best_scale(kind, places).0;
                        let cubes = vec![
                            Cube { coef: scale, powers: u.clone() },
                            Cube { coef: scale * ratio, powers: v.clone() },
                        ];
                        let literal = self.make(cubes);
                        let slots = self.members[literal].clone();
                        for slot in slots {
                            self.see_factors(slot, None);
                        }
                        (scale, literal)
                    }
                }
            }
        };
        self.divisors[divisor as usize].made = Some((scale, literal));
        for &(first, second) in places {
            let Some(found) = self.split(first, second).filter(|s| s.kind == *kind) else { continue };
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
