//! Greedy extraction of divisors in order of their savings.
//!
//! In: a network. Out: a network with the same values, in which common parts are separate literals.
//!
//! Rajski and Vasudevamurthy, "The testability-preserving concurrent decomposition and factorization of Boolean
//! expressions" (IEEE TCAD 11(6), 1992), after the kernels of Brayton and McMullen: instead of all kernels only those
//! of two cubes, and all pairs of literals; larger ones result from repetition. With a base that is not 1, a divisor
//! that occurs once is a factorisation: `a*b + a*c -> a*(b + c)`.
//!
//! Savings are upper bounds in a priority queue, recomputed when they reach the front, so that each step costs in
//! proportion to its changes. A sum of n cubes has n*(n-1)/2 pairs; in wide sums only pairs with a common literal and
//! pairs of neighbours are considered, a bounded number for each cube.

mod local;
mod weight;

use super::cube::{Cube, Literal, Powers, degree, gained, multiply, raise};
use super::divisors::{Double, Factor, Kind, Sketch, Split, fingerprint, sketch, split};
use super::network::{Form, Network, Weights, is_tame, is_unit};
use chainrule_base::Id;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::collections::BinaryHeap;

/// Minimum number of cubes of a wide sum.
const WIDE: usize = 48;
/// Number of partners of a cube in a wide sum, for each of its literals and among its neighbours.
const PARTNERS: usize = 12;

/// Order among divisors with equal savings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Preference {
    /// Oldest divisor first.
    #[default]
    Oldest,
    /// Newest divisor first.
    Newest,
}

/// Partners of a cube in its sum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Partners {
    /// Those in later slots, for a scan of all cubes that sees each pair once.
    Later,
    All,
}

/// Cube in its slot, one cache line in size, for slots are visited in no order.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Slot {
    /// Sum that contains it.
    owner: Literal,
    cube: Cube,
    alive: bool,
}

/// Hot data of a divisor; the rest is stored separately, for there are many divisors.
struct Divisor {
    fingerprint: u64,
    /// Upper bound of its saving.
    upper: i64,
    /// Largest priority with which it is in the queue.
    queued: i64,
    /// Last of its places, or [`NOWHERE`],
    latest: Place,
    /// and the head of the list of the earlier ones.
    earlier: u32,
    /// Last trial that logged it.
    logged_in: u32,
}

/// Cold data of a divisor.
struct Nature {
    kind: Kind,
    /// Literal for it, once extracted.
    made: Option<Box<Made>>,
}

/// Saving of a divisor, which is positive, and its rank among equal savings, packed into one number; larger first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry(u128);

impl Entry {
    fn new(upper: i64, tie: u32) -> Self {
        // Preserves the order of signed numbers.
        Self(u128::from(upper.cast_unsigned() ^ 1 << 63) << 32 | u128::from(tie))
    }

    fn upper(self) -> i64 {
        ((self.0 >> 32) as u64 ^ 1 << 63).cast_signed()
    }

    fn tie(self) -> u32 {
        self.0 as u32
    }
}

/// Places of a double-cube divisor, as far as needed to compute its saving there.
#[derive(Default)]
struct Found {
    first: Option<Sketch>,
    coefs: SmallVec<[f64; 8]>,
    /// Cost of the cubes before minus the cost after, without multiplications by coefficients.
    saving: i64,
}

impl Found {
    fn add(&mut self, sketch: &Sketch, weights: &Weights) {
        self.first.get_or_insert(*sketch);
        self.coefs.push(sketch.coef);
        self.saving += cost_apart(sketch, weights) - weights.cube(1.0, sketch.degrees[0] + 1);
    }

    /// Returns the saving of all places if `scale` times the divisor exists.
    fn saving(&self, scale: f64, weights: &Weights) -> i64 {
        let n_scaled = self.coefs.iter().filter(|coef| !is_unit(**coef / scale)).count();
        self.saving - weights.mul * n_scaled as i64
    }
}

/// Returns the cost of two cubes without extraction.
fn cost_apart(sketch: &Sketch, weights: &Weights) -> i64 {
    let [base, u, v] = sketch.degrees;
    weights.cube(sketch.coef, base + u) + weights.cube(sketch.coef * sketch.ratio, base + v) + weights.add
}

/// Slots, or a pair of slots, where a divisor was found; they may have changed since.
type Place = (u32, u32);

/// No place.
const NOWHERE: Place = (u32::MAX, u32::MAX);

/// End of a list of places.
const END: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Made {
    /// Literal of the divisor times `scale`.
    literal: Literal,
    scale: f64,
    /// Divisor, if it is a double cube.
    double: Option<Double>,
}

/// Extraction of networks in sequence; allocations are reused for the next.
#[derive(Default)]
pub(super) struct Extraction {
    network: Network,
    weights: Weights,
    preference: Preference,
    slots: Vec<Slot>,
    /// Slots of the cubes of each literal.
    members: Vec<Slots>,
    /// Slots that have had each literal as a factor.
    users: Vec<Slots>,
    divisors: Vec<Divisor>,
    natures: Vec<Nature>,
    /// Places of divisors, each linked to the next one of the same divisor.
    places: Vec<(Place, u32)>,
    /// Divisors by their fingerprints.
    by_fingerprint: HashTable<u32>,
    queue: BinaryHeap<Entry>,
    /// Sums that may have become one literal.
    changed: Vec<Literal>,
    /// Whether this is the initial scan; then the queue is filled afterwards.
    seeing: bool,
    /// State of local search.
    trials: local::Trials,
    /// Lists of `weight`, reused.
    weighing: weight::Weighing,
}

type Slots = SmallVec<[u32; 4]>;

impl Extraction {
    /// Extracts divisors of the network while they reduce its weight.
    pub(super) fn run(&mut self, network: Network, preference: Preference) {
        self.start(network, preference);
        self.drain();
    }

    /// Extracts divisors of the queue while they reduce the weight.
    fn drain(&mut self) {
        let mut left = if self.trials.active { local::MAX_STEPS } else { usize::MAX };
        self.propagate_changed(&mut left);
        let mut places = SmallVec::new();
        while let Some(entry) = self.queue.pop() {
            let (upper, tie) = (entry.upper(), entry.tie());
            let divisor = self.divisor_of(tie);
            if upper != self.divisors[divisor as usize].queued {
                continue;
            }
            self.divisors[divisor as usize].queued = 0;
            if left == 0 || self.trials.tabu == Some(divisor) {
                continue;
            }
            left -= 1;
            self.log_divisor(divisor);
            self.places_of(divisor, &mut places);
            let saving = self.saving(divisor, &mut places);
            if saving < upper && self.queue.peek().is_some_and(|next| *next > Entry::new(saving, tie)) {
                self.put_back(divisor, &places);
                self.enqueue(divisor);
                continue;
            }
            if saving <= 0 {
                self.put_back(divisor, &places);
                continue;
            }
            self.take(divisor, &places);
            self.propagate_changed(&mut left);
        }
        self.trials.failed |= left == 0;
    }

    fn propagate_changed(&mut self, left: &mut usize) {
        while let Some(literal) = self.changed.pop() {
            if *left == 0 {
                self.changed.clear();
                return;
            }
            *left -= 1;
            self.propagate(literal);
        }
    }

    fn start(&mut self, network: Network, preference: Preference) {
        self.network = network;
        self.preference = preference;
        let n = self.network.forms.len();
        self.slots.clear();
        for lists in [&mut self.members, &mut self.users] {
            lists.clear();
            lists.resize_with(n, Slots::new);
        }
        self.divisors.clear();
        self.natures.clear();
        self.places.clear();
        self.by_fingerprint.clear();
        self.queue.clear();
        self.changed.clear();
        self.trials = local::Trials::default();
        for literal in self.network.forms.ids() {
            if let Form::Sum(cubes) = &mut self.network.forms[literal] {
                for cube in std::mem::take(cubes) {
                    self.members[literal.index()].push(self.slots.len() as u32);
                    self.slots.push(Slot { owner: literal, cube, alive: true });
                }
            }
        }
        for (slot, Slot { cube, .. }) in self.slots.iter().enumerate() {
            for (literal, _) in &cube.powers {
                self.users[literal.index()].push(slot as u32);
            }
        }
        self.seeing = true;
        for slot in 0..self.slots.len() as u32 {
            self.see_factors(slot, None);
            self.see_pairs(slot, Partners::Later);
        }
        self.seeing = false;
        for divisor in 0..self.divisors.len() as u32 {
            self.enqueue(divisor);
        }
    }

    /// Returns the network after [`Self::run`].
    pub(super) fn finish(&mut self) -> Network {
        let mut network = std::mem::take(&mut self.network);
        let mut forms = network.forms.ids();
        for members in &self.members {
            let Some(literal) = forms.next() else { break };
            if let Form::Sum(cubes) = &mut network.forms[literal] {
                let take = |slot: &u32| {
                    let cube = &mut self.slots[*slot as usize].cube;
                    Cube { coef: cube.coef, powers: std::mem::take(&mut cube.powers) }
                };
                *cubes = members.iter().map(take).collect();
            }
        }
        network
    }

    /// Returns the rank of a divisor in the queue: larger first among equal savings.
    fn tie(&self, divisor: u32) -> u32 {
        if self.preference == Preference::Newest { divisor } else { u32::MAX - divisor }
    }

    fn divisor_of(&self, tie: u32) -> u32 {
        if self.preference == Preference::Newest { tie } else { u32::MAX - tie }
    }

    /// Records that a divisor may be extracted at a place, with a saving of at most `saving`; it costs `cost`.
    fn see(&mut self, kind: Kind, fingerprint: u64, place: Place, saving: i64, cost: i64) {
        self.trials.n_seen += 1;
        let new = self.divisors.len() as u32;
        let divisors = &self.divisors;
        let found = self.by_fingerprint.entry(
            fingerprint,
            |idx| divisors[*idx as usize].fingerprint == fingerprint,
            |idx| divisors[*idx as usize].fingerprint,
        );
        let idx = *found.or_insert(new).get();
        if idx == new {
            let logged_in = self.log_new_divisor();
            let (upper, queued, latest, earlier) = (-cost, 0, NOWHERE, END);
            self.divisors.push(Divisor { fingerprint, upper, queued, latest, earlier, logged_in });
            self.natures.push(Nature { kind, made: None });
        }
        self.log_divisor(idx);
        // If the fingerprints of two divisors collide, the places of the other are dropped when they are examined.
        let divisor = &mut self.divisors[idx as usize];
        if divisor.latest != NOWHERE {
            let next = self.places.len() as u32;
            self.places.push((divisor.latest, divisor.earlier));
            divisor.earlier = next;
        }
        divisor.latest = place;
        divisor.upper += saving;
        if !self.seeing {
            self.enqueue(idx);
        }
    }

    fn enqueue(&mut self, idx: u32) {
        let divisor = &mut self.divisors[idx as usize];
        if divisor.upper <= divisor.queued {
            return;
        }
        divisor.queued = divisor.upper;
        let upper = divisor.upper;
        let tie = self.tie(idx);
        self.queue.push(Entry::new(upper, tie));
    }

    /// Collects the places of a divisor into `places`, in order without duplicates.
    fn places_of(&self, divisor: u32, places: &mut SmallVec<[Place; 16]>) {
        places.clear();
        let Divisor { latest, earlier, .. } = self.divisors[divisor as usize];
        if latest == NOWHERE {
            return;
        }
        places.push(latest);
        let mut next = earlier;
        while next != END {
            let (place, after) = self.places[next as usize];
            places.push(place);
            next = after;
        }
        if places.len() > 1 {
            // The last recorded place comes first.
            places.reverse();
            places.sort_unstable();
            places.dedup();
        }
    }

    /// Keeps only these places, a subset of the earlier ones. A trial keeps all of them: it may be undone.
    fn put_back(&mut self, divisor: u32, places: &[Place]) {
        if self.trials.active {
            return;
        }
        let divisor = &mut self.divisors[divisor as usize];
        let mut places = places.iter();
        divisor.latest = *places.next().unwrap_or(&NOWHERE);
        let (mut next, mut last) = (divisor.earlier, None);
        for place in places {
            self.places[next as usize].0 = *place;
            last = Some(next);
            next = self.places[next as usize].1;
        }
        match last {
            Some(last) => self.places[last as usize].1 = END,
            None => divisor.earlier = END,
        }
    }

    /// Records the divisors of one cube; with `only`, those that contain this literal.
    fn see_factors(&mut self, slot: u32, only: Option<Literal>) {
        let Slot { owner, cube: Cube { coef, ref mut powers }, .. } = self.slots[slot as usize];
        // They are not read in the meantime.
        let powers = std::mem::take(powers);
        let product_alone = degree(&powers) == 1 && self.members[owner.index()].len() == 1;
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
        self.slots[slot as usize].cube.powers = powers;
    }

    /// Records the divisors of a cube with other cubes of its sum.
    fn see_pairs(&mut self, slot: u32, partners: Partners) {
        let owner = self.slots[slot as usize].owner;
        if self.members[owner.index()].len() > WIDE {
            for partner in self.partners(slot) {
                self.see_pair(slot, partner);
            }
            return;
        }
        for idx in 0..self.members[owner.index()].len() {
            let partner = self.members[owner.index()][idx];
            let is_wanted = partners == Partners::All && partner != slot;
            if partner > slot || is_wanted {
                self.see_pair(slot, partner);
            }
        }
    }

    fn see_pair(&mut self, slot: u32, partner: u32) {
        let (first, second) = (slot.min(partner), slot.max(partner));
        if let Some(found) = self.sketch(first, second) {
            let (saving, cost) = (self.saving_of(&found), self.cost_of(&found, 1.0));
            self.see(Kind::Double, found.fingerprint, (first, second), saving, cost);
        }
    }

    /// In a wide sum: returns some cubes with a common literal, and neighbours.
    fn partners(&self, slot: u32) -> SmallVec<[u32; 64]> {
        let owner = self.slots[slot as usize].owner;
        let mut partners: SmallVec<[u32; 64]> = SmallVec::new();
        for (literal, _) in &self.slots[slot as usize].cube.powers {
            let users = &self.users[(*literal).index()];
            let start = users.partition_point(|u| *u <= slot);
            let same = |u: &u32| self.slots[*u as usize].owner == owner && self.slots[*u as usize].alive;
            partners.extend(users[start..].iter().copied().take(8 * PARTNERS).filter(same).take(PARTNERS));
        }
        let members = &self.members[owner.index()];
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

    /// Returns the cost of computing a double-cube divisor times `scale`.
    fn cost_of(&self, sketch: &Sketch, scale: f64) -> i64 {
        let [_, u, v] = sketch.degrees;
        self.weights.cube(scale, u) + self.weights.cube(scale * sketch.ratio, v) + self.weights.add
    }

    /// Returns the saving of merging two cubes into one with their common coefficient.
    fn saving_of(&self, sketch: &Sketch) -> i64 {
        cost_apart(sketch, &self.weights) - self.weights.cube(sketch.coef, sketch.degrees[0] + 1)
    }

    /// Returns the multiplicity of a pair of factors in a cube.
    fn multiplicity(&self, slot: u32, a: Factor, b: Factor) -> i32 {
        let Slot { cube: Cube { powers, .. }, alive, .. } = &self.slots[slot as usize];
        if !alive {
            return 0;
        }
        // Cubes are short, so one linear pass suffices.
        let (mut of_a, mut of_b) = (0, 0);
        for (literal, e) in powers {
            of_a += if *literal == a.0 { *e } else { 0 };
            of_b += if *literal == b.0 { *e } else { 0 };
        }
        let times = |e: i32, factor: Factor| if (e < 0) == factor.1 { e.abs() } else { 0 };
        if a == b { times(of_a, a) / 2 } else { times(of_a, a).min(times(of_b, b)) }
    }

    /// Returns whether a cube still has this coefficient and factor.
    fn has_scaled(&self, slot: u32, c: f64, factor: Factor) -> bool {
        let slot = &self.slots[slot as usize];
        let e = slot.cube.power_of(factor.0);
        let product_alone = degree(&slot.cube.powers) == 1 && self.members[slot.owner.index()].len() == 1;
        slot.alive && slot.cube.coef.abs() == c && e != 0 && (e < 0) == factor.1 && !product_alone
    }

    /// Returns the saving of a divisor. Places where it no longer exists are dropped.
    fn saving(&mut self, divisor: u32, places: &mut SmallVec<[Place; 16]>) -> i64 {
        // An extracted literal may have been removed again, or be an alias of another literal, which may come to depend
        // on it.
        let gone = self.natures[divisor as usize].made.as_ref().is_some_and(|made| self.is_void(made.literal));
        if gone && self.trials.active {
            self.natures[divisor as usize].made = None;
        }
        let fingerprint = self.divisors[divisor as usize].fingerprint;
        let Nature { kind, ref made } = self.natures[divisor as usize];
        let scale = made.as_ref().map(|m| m.scale);
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
                let mut found = Found::default();
                places.retain(|place| {
                    let sketch = self.sketch(place.0, place.1).filter(|s| s.fingerprint == fingerprint);
                    sketch.iter().for_each(|sketch| found.add(sketch, &self.weights));
                    sketch.is_some()
                });
                saving = match scale {
                    Some(scale) => found.saving(scale, &self.weights),
                    None => self.best_scale(&found).1,
                };
            }
        }
        if kind != Kind::Double && scale.is_none() {
            saving -= mul;
        }
        self.divisors[divisor as usize].upper = saving;
        saving
    }

    /// Returns whether a sum has no cubes, or is a multiple of another literal.
    fn is_void(&self, literal: Literal) -> bool {
        match *self.members[literal.index()].as_slice() {
            [] => true,
            [slot] => degree(&self.slots[slot as usize].cube.powers) <= 1,
            _ => false,
        }
    }

    /// Returns the best multiple of a double-cube divisor, and its saving minus its cost.
    fn best_scale(&self, found: &Found) -> (f64, i64) {
        let Some(any) = &found.first else { return (1.0, 0) };
        let value = |scale: f64| found.saving(scale, &self.weights) - self.cost_of(any, scale);
        let mut best = (1.0, value(1.0));
        let mut tried: SmallVec<[f64; 8]> = SmallVec::from_slice(&[1.0]);
        for scale in found.coefs.iter().take(4).map(|coef| coef.abs()).chain([any.ratio.abs().recip()]) {
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

    fn take(&mut self, divisor: u32, places: &[Place]) {
        let taken = &mut self.divisors[divisor as usize];
        (taken.latest, taken.earlier, taken.upper) = (NOWHERE, END, 0);
        match self.natures[divisor as usize].kind {
            Kind::Pair(a, b) => self.take_pair(divisor, a, b, places),
            Kind::Scaled(c, factor) => self.take_scaled(divisor, c, factor, places),
            Kind::Double => self.take_double(divisor, places),
        }
    }

    /// Adds a new literal for a sum of cubes.
    fn make(&mut self, cubes: impl IntoIterator<Item = Cube>) -> Literal {
        let literal = self.network.forms.push(Form::Sum(Vec::new()));
        self.members.push(Slots::new());
        self.users.push(Slots::new());
        for cube in cubes {
            self.add(literal, cube);
        }
        literal
    }

    fn take_pair(&mut self, divisor: u32, a: Factor, b: Factor, places: &[Place]) {
        let sign = |factor: Factor| if factor.1 { -1 } else { 1 };
        let first: Powers = SmallVec::from_slice(&[(a.0, sign(a))]);
        let powers = multiply(&first, &[(b.0, sign(b))]);
        let known = self.natures[divisor as usize].made.as_ref().map(|made| made.literal);
        let literal = match known {
            Some(literal) => literal,
            None => {
                // An existing product is reused.
                let there = places.iter().map(|p| &self.slots[p.0 as usize]).find(|slot| {
                    slot.cube.coef == 1.0 && slot.cube.powers == powers && self.members[slot.owner.index()].len() == 1
                });
                match there.map(|slot| slot.owner) {
                    Some(owner) => owner,
                    None => self.make([Cube { coef: 1.0, powers: powers.clone() }]),
                }
            }
        };
        if known.is_none() {
            self.natures[divisor as usize].made = Some(Box::new(Made { literal, scale: 1.0, double: None }));
        }
        for &(slot, _) in places {
            let times = self.multiplicity(slot, a, b);
            if times == 0 || self.slots[slot as usize].owner == literal {
                continue;
            }
            let Cube { coef, powers: ref old } = self.slots[slot as usize].cube;
            let rest = multiply(old, &raise(&powers, -times));
            let new = multiply(&rest, &[(literal, times)]);
            self.replace(slot, Cube { coef, powers: new }, Some(literal));
        }
    }

    fn take_scaled(&mut self, divisor: u32, c: f64, factor: Factor, places: &[Place]) {
        let powers: Powers = SmallVec::from_slice(&[(factor.0, if factor.1 { -1 } else { 1 })]);
        let known = self.natures[divisor as usize].made.as_ref().map(|made| made.literal);
        let literal = known.unwrap_or_else(|| self.make([Cube { coef: c, powers: powers.clone() }]));
        if known.is_none() {
            self.natures[divisor as usize].made = Some(Box::new(Made { literal, scale: 1.0, double: None }));
        }
        for &(slot, _) in places {
            if !self.has_scaled(slot, c, factor) || self.slots[slot as usize].owner == literal {
                continue;
            }
            let Cube { coef, powers: ref old } = self.slots[slot as usize].cube;
            let rest = multiply(old, &raise(&powers, -1));
            let new = multiply(&rest, &[(literal, 1)]);
            self.replace(slot, Cube { coef: coef.signum(), powers: new }, Some(literal));
        }
    }

    fn take_double(&mut self, divisor: u32, places: &[Place]) {
        if self.natures[divisor as usize].made.is_none() {
            let Some(made) = self.make_double(places) else { return };
            self.natures[divisor as usize].made = Some(Box::new(made));
        }
        // It is not read while it is taken.
        let Some(made) = self.natures[divisor as usize].made.take() else { return };
        let Made { literal, scale, ref double } = *made;
        for &(first, second) in places {
            // Fingerprints may collide; here both cubes are compared.
            let Some(found) = self.split((first, second)).filter(|s| Some(&s.divisor) == double.as_ref()) else {
                continue;
            };
            let owner = self.slots[first as usize].owner;
            let coef = found.coef / scale;
            if owner == literal || !is_tame(coef) {
                continue;
            }
            self.remove(second);
            let powers = multiply(&found.base, &[(literal, 1)]);
            self.replace(first, Cube { coef, powers }, None);
        }
        self.natures[divisor as usize].made = Some(made);
    }

    /// Returns the literal for the divisor at these places: an existing sum, or a new one.
    fn make_double(&mut self, places: &[Place]) -> Option<Made> {
        let double = self.split(*places.first()?)?.divisor;
        let there = places.iter().find_map(|place| {
            let owner = self.slots[place.0 as usize].owner;
            let alone = self.members[owner.index()].len() == 2;
            let found = self.split(*place).filter(|s| alone && s.base.is_empty() && s.divisor == double)?;
            Some((found.coef, owner))
        });
        let (scale, literal) = there.unwrap_or_else(|| {
            let mut found = Found::default();
            let sketches = places.iter().filter_map(|p| self.sketch(p.0, p.1));
            sketches.for_each(|sketch| found.add(&sketch, &self.weights));
            let scale = self.best_scale(&found).0;
            let Double { u, v, ratio } = double.clone();
            let literal = self.make([Cube { coef: scale, powers: u }, Cube { coef: scale * ratio, powers: v }]);
            for idx in 0..self.members[literal.index()].len() {
                self.see_factors(self.members[literal.index()][idx], None);
            }
            (scale, literal)
        });
        Some(Made { literal, scale, double: Some(double) })
    }

    /// Replaces the cube in a slot; with `only`, records only new factors together with `only`.
    fn replace(&mut self, slot: u32, cube: Cube, only: Option<Literal>) {
        let owner = self.slots[slot as usize].owner;
        let like = self.members[owner.index()].iter().copied().find(|m| {
            *m != slot && self.slots[*m as usize].cube.powers == cube.powers && {
                let sum = self.slots[*m as usize].cube.coef + cube.coef;
                sum == 0.0 || is_tame(sum)
            }
        });
        if let Some(like) = like {
            self.remove(slot);
            let mut sum = self.slots[like as usize].cube.clone();
            sum.coef += cube.coef;
            if sum.coef == 0.0 {
                self.remove(like);
            } else {
                self.replace(like, sum, None);
            }
            return;
        }
        let new: SmallVec<[Literal; 8]> = gained(&self.slots[slot as usize].cube.powers, &cube.powers).collect();
        self.put(slot, cube);
        for literal in new {
            self.use_in(literal, slot);
        }
        self.see_factors(slot, only);
        self.see_pairs(slot, Partners::All);
        if self.members[owner.index()].len() == 1 {
            self.changed.push(owner);
        }
    }

    /// Replaces a sum that has become one literal by that literal in other cubes.
    fn propagate(&mut self, literal: Literal) {
        let &[member] = self.members[literal.index()].as_slice() else { return };
        let Some((coef, target)) = self.slots[member as usize].cube.as_literal() else { return };
        if !is_unit(coef) || target == literal {
            return;
        }
        let users = self.users[literal.index()].clone();
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
