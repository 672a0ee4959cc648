//! Alternative ways to compute a value from two existing values.
//!
//! In: a class and candidates. Out: ways `x*a + y*b` and `factor * a * b` that compute it.
//!
//! The draws of a class, up to a factor, are a point of the projective plane over the field. A class is a combination
//! `x*a + y*b`, for any x and y, exactly if the three points are collinear. So the lines from the class's point to all
//! others are sorted by their slopes: two candidates with the same slope are a way. Products are simpler: the ratios of
//! the third are quotients of ratios. Both take time linear in the number of candidates, and find identities at any
//! depth: three independent values are collinear by chance with a probability of 2^-61. Coefficients come from two real
//! models, and the third one confirms them.
//!
//! Two rules limit rounding. Divisions are never introduced. A sum whose terms are more than [`MAX_CANCELLATION`] times
//! as large as the sum in one of the real models is rejected: identities that cancel inherently also cancel at random
//! points.

use super::class::{Class, ClassId, Way, factor, ratios};
use super::field::Fp;
use super::hazard::Hazards;
use super::real::{Double2, Real};
use chainrule_base::Arena;
use rustc_hash::FxHashMap;

/// Maximum ratio of the terms of a sum to the sum.
const MAX_CANCELLATION: f64 = 16.0;
/// Maximum number of candidates with one slope that are paired.
const MAX_PER_LINE: usize = 4;
/// Maximum number of ways that are tried for a class.
const MAX_WAYS: usize = 24;

/// Points of the classes in the projective plane.
pub(super) struct Points {
    /// The two ratios; `None` if they are unknown.
    at: Arena<ClassId, Option<[Fp; 2]>>,
    inverse: Arena<ClassId, [Fp; 2]>,
    by_place: FxHashMap<[Fp; 2], Vec<ClassId>>,
}

impl Points {
    pub(super) fn new(classes: &Arena<ClassId, Class>) -> Self {
        let mut this = Self { at: Arena::new(), inverse: Arena::new(), by_place: FxHashMap::default() };
        for (id, class) in classes.iter() {
            let point = if class.unit.is_known() { ratios(&class.unit) } else { None };
            this.at.push(point);
            if let Some(place) = point {
                this.by_place.entry(place).or_default().push(id);
            }
        }
        let coordinates: Vec<Fp> = this.at.iter().flat_map(|(_, p)| p.unwrap_or([Fp::ZERO; 2])).collect();
        this.inverse = Fp::invert_all(&coordinates).chunks(2).map(|c| [c[0], c[1]]).collect();
        this
    }

    /// Returns products of two candidates that equal the class.
    pub(super) fn products(
        &self,
        classes: &Arena<ClassId, Class>,
        target: ClassId,
        candidates: &[ClassId],
        is_candidate: impl Fn(ClassId) -> bool,
    ) -> Vec<Way> {
        let mut ways = Vec::new();
        let Some(goal) = self.at[target] else { return ways };
        for a in candidates {
            let inverse = self.inverse[*a];
            let place = [goal[0] * inverse[0], goal[1] * inverse[1]];
            let Some(found) = self.by_place.get(&place) else { continue };
            for b in found.iter().filter(|b| **b >= *a && is_candidate(**b)) {
                if fits(classes, target, *a, *b)
                    && let Some(f) = factor(&classes[target].unit, &classes[*a].unit.times(classes[*b].unit))
                {
                    ways.push(Way::Product(f, *a, *b));
                }
            }
            if ways.len() >= MAX_WAYS {
                break;
            }
        }
        ways
    }

    /// Returns sums of multiples of two candidates that equal the class.
    pub(super) fn sums(&self, classes: &Arena<ClassId, Class>, target: ClassId, candidates: &[ClassId]) -> Vec<Way> {
        let mut ways = Vec::new();
        let Some(goal) = self.at[target] else { return ways };
        // The number 1 always exists.
        let one = [super::class::one()];
        let points: Vec<(ClassId, [Fp; 2])> = candidates
            .iter()
            .chain(&one)
            .filter_map(|c| self.at[*c].map(|p| (*c, [p[0] - goal[0], p[1] - goal[1]])))
            .collect();
        let runs: Vec<Fp> = points.iter().map(|(_, p)| p[0]).collect();
        let mut lines: Vec<(Fp, ClassId)> = Vec::with_capacity(points.len());
        for ((class, [run, rise]), inverse) in points.iter().zip(Fp::invert_all(&runs)) {
            // The same point is another class with the same values; a vertical line is very unlikely.
            if !run.is_zero() {
                lines.push((*rise * inverse, *class));
            }
        }
        lines.sort_unstable();
        for line in lines.chunk_by(|a, b| a.0 == b.0) {
            let line = &line[..line.len().min(MAX_PER_LINE)];
            for (i, (_, a)) in line.iter().enumerate() {
                for (_, b) in &line[i + 1..] {
                    if fits(classes, target, *a, *b) {
                        ways.extend(combination(classes, target, *a, *b));
                    }
                }
            }
            if ways.len() >= MAX_WAYS {
                break;
            }
        }
        ways
    }
}

/// Returns whether the target is undefined wherever one of the two is.
fn fits(classes: &Arena<ClassId, Class>, target: ClassId, a: ClassId, b: ClassId) -> bool {
    let among = |c: ClassId| classes[c].hazards.are_among(classes[target].hazards);
    classes[target].hazards != Hazards::Many && among(a) && among(b)
}

/// Returns the target as a sum of multiples of `a` and `b`, which are collinear with it.
fn combination(classes: &Arena<ClassId, Class>, target: ClassId, a: ClassId, b: ClassId) -> Option<Way> {
    let [t, u, v] = [target, a, b].map(|c| classes[c].unit.real);
    let determinant = u[0] * v[1] - u[1] * v[0];
    let x = (t[0] * v[1] - t[1] * v[0]) / determinant;
    let y = (u[0] * t[1] - u[1] * t[0]) / determinant;
    let certain = |r: Real| r.uncertainty() <= 1e-19 && (1e-6..1e6).contains(&r.magnitude());
    if !certain(x) || !certain(y) {
        return None;
    }
    let rest = x * u[2] + y * v[2] - t[2];
    if !rest.is_zero_beside(t[2].magnitude()) {
        return None;
    }
    let cancels = |d: usize| (x * u[d]).magnitude() + (y * v[d]).magnitude() > MAX_CANCELLATION * t[d].magnitude();
    if (0..t.len()).any(cancels) {
        return None;
    }
    Some(Way::Sum(simple(x), a, simple(y), b))
}

/// Rounds to the intended simple fraction, if there is one.
fn simple(x: Real) -> Double2 {
    for q in 1..=12 {
        let scaled = x.value * f64::from(q).into();
        let whole = Double2::from(scaled.high.round());
        if whole.high != 0.0 && (scaled - whole).high.abs() <= 1e-19 * whole.high.abs() {
            return whole / f64::from(q).into();
        }
    }
    x.value
}
