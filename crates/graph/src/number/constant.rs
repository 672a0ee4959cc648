//! Exact number that a double in a program represents.
//!
//! In: the constants of a program. Out: an exact number for each, as an element of the field and as a
//! real number.
//!
//! | double | represents |
//! | --- | --- |
//! | rounds a fraction p/q with p*q at most 2^36, as `5.0/3.0` does | that fraction |
//! | is within 1.5 units in the last place of r*b, where r is a small fraction and b is 1 or another constant | r*b |
//! | any other | itself |
//!
//! The second row identifies constants that were multiplied out: beyond 2^53, `33 * 31!!` rounds twice and would not be
//! 33 times `31!!`; nor is `7 * (1/3)` the double next to 7/3, which occurs in a recurrence that divides by 3 instead
//! of multiplying by 7/3. If r*b is a double, only that double represents it, so that `1 + 2^-52` is never 1; and if
//! the double next to 7/3 is a constant as well, each of the two represents itself. No constant moves by more than 1.5
//! units in its last place: bases are never multiples of others.
//!
//! A double that rounds a fraction by chance, about one in 150,000, is no base: its multiples are not recognised.

use super::field::Fp;
use super::real::Double2;
use rustc_hash::FxHashMap;
use std::f64::consts::PI;

/// Maximum product of numerator and denominator of a fraction that a double represents.
const MAX_HEIGHT: u64 = 1 << 36;
/// Maximum numerator and denominator of the ratio between two constants.
const MAX_RATIO: u64 = 1 << 10;
/// Maximum number of constants that are compared with each other.
const MAX_BASES: usize = 1500;

/// Exact number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Exact {
    pub(super) field: Fp,
    pub(super) real: Double2,
}

impl Exact {
    fn fraction(negative: bool, p: u64, q: u64) -> Option<Self> {
        let field = Fp::new(p) * Fp::new(q).inverse()?;
        let real = Double2::from(p as f64) / (q as f64).into();
        Some(if negative { Self { field: -field, real: -real } } else { Self { field, real } })
    }

    /// Returns a finite double exactly.
    fn dyadic(c: f64) -> Self {
        let (mantissa, exponent) = decompose(c);
        let field = Fp::new(mantissa).times_power_of_two(exponent);
        Self { field: if c < 0.0 { -field } else { field }, real: c.into() }
    }

    fn times(self, other: Self) -> Self {
        Self { field: self.field * other.field, real: self.real * other.real }
    }
}

/// Returns the magnitude as an odd or zero integer times a power of two.
fn decompose(c: f64) -> (u64, i32) {
    let bits = c.to_bits();
    let biased = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    let zeros = if mantissa == 0 { 0 } else { mantissa.trailing_zeros() };
    (mantissa >> zeros, exponent + zeros as i32)
}

/// Returns the first convergent p/q of the continued fraction of `x > 0` that `accepts`, with p and q at most `limit`
/// and p*q at most `height`. Numerators and denominators never decrease from one convergent to the next, so the first
/// one that exceeds a limit ends the search.
#[inline]
fn convergent(x: f64, limit: u64, height: u64, accepts: impl Fn(u64, u64) -> bool) -> Option<(u64, u64)> {
    let (mut p, mut q, mut p_old, mut q_old) = (1u64, 0u64, 0u64, 1u64);
    let mut rest = x;
    for _ in 0..40 {
        if rest >= (limit + 1) as f64 {
            return None;
        }
        // Not negative, so truncation rounds down, without a function call.
        let a = rest as i64 as u64;
        let whole = a as i64 as f64;
        (p, p_old) = (a.checked_mul(p)?.checked_add(p_old)?, p);
        (q, q_old) = (a.checked_mul(q)?.checked_add(q_old)?, q);
        if p > limit || q > limit || p.saturating_mul(q) > height {
            return None;
        }
        if p > 0 && accepts(p, q) {
            return Some((p, q));
        }
        if rest == whole {
            return None;
        }
        rest = 1.0 / (rest - whole);
    }
    None
}

/// Returns whether p/q may be `x` up to rounding: a cheap filter without a division, which rejects nearly all
/// candidates by a margin far above its own rounding.
#[inline]
fn is_about(p: u64, q: u64, x: f64) -> bool {
    // Both are small, and come from bits of a positive integer.
    let (p, q) = (p as i64 as f64, q as i64 as f64);
    (p - x * q).abs() <= 16.0 * f64::EPSILON * p
}

/// Returns the fraction that `c` rounds, if it is a simple one.
fn simple_fraction(c: f64) -> Option<Exact> {
    let x = c.abs();
    let (p, q) = convergent(x, MAX_HEIGHT, MAX_HEIGHT, |p, q| is_about(p, q, x) && p as f64 / q as f64 == x)?;
    Exact::fraction(c < 0.0, p, q)
}

/// Returns `r` times the base if `c` is that up to rounding.
fn multiple(c: f64, base: f64, exact_base: Exact) -> Option<Exact> {
    let (x, b) = (c.abs(), base.abs());
    let ratio = x / b;
    if !(1.0 / MAX_RATIO as f64..=MAX_RATIO as f64).contains(&ratio) {
        return None;
    }
    let unit = f64::from_bits(x.to_bits() + 1) - x;
    let (p, q) = convergent(ratio, MAX_RATIO, u64::MAX, |p, q| {
        if !is_about(p, q, ratio) {
            return false;
        }
        let exact = Double2::from(b) * (p as f64).into() / (q as f64).into();
        let rounds = exact.low != 0.0;
        if rounds { (exact - x.into()).high.abs() <= 1.5 * unit } else { exact.high == x }
    })?;
    Some(Exact::fraction((c < 0.0) != (base < 0.0), p, q)?.times(exact_base))
}

/// Number of ratios that are processed side by side: one by one, each step would wait for the previous division.
const LANES: usize = 8;

/// Returns which of these ratios, all at least 1, may be ratios up to [`MAX_RATIO`] within rounding; with few false
/// positives.
///
/// If p/q is as near to `x` as [`is_about`] requires, the next partial quotient is at least 1 / (q * |p - x*q|) - 1,
/// which is above 2^27; the rounding error of the remainder at that point, about q^2 * 2^-52, leaves it above 2^26.
/// Other ratios have such a partial quotient only by chance.
#[inline]
fn may_be_ratios(x: [f64; LANES]) -> [bool; LANES] {
    const HUGE: f64 = (1u64 << 20) as f64;
    const MANTISSA: f64 = (1u64 << 52) as f64;
    let (mut p, mut p_old, mut rest) = ([1.0; LANES], [0.0; LANES], x);
    let mut may = [false; LANES];
    loop {
        let mut goes_on = false;
        for lane in 0..LANES {
            // Rounded down without a function call.
            let nearest = (rest[lane] + MANTISSA) - MANTISSA;
            let whole = if nearest > rest[lane] { nearest - 1.0 } else { nearest };
            // The ratio is at least 1, so no denominator exceeds its numerator.
            (p[lane], p_old[lane]) = (whole * p[lane] + p_old[lane], p[lane]);
            rest[lane] = 1.0 / (rest[lane] - whole);
            let is_small = p[lane] <= MAX_RATIO as f64;
            may[lane] |= is_small & (rest[lane] >= HUGE);
            goes_on |= is_small;
        }
        if !goes_on {
            return may;
        }
    }
}

/// Returns the number that each of these finite doubles represents, in their order. n log n for n constants, except for
/// those that are not simple fractions, of which the first [`MAX_BASES`] are compared with each other.
pub(super) fn interpret(constants: &[f64]) -> Vec<Exact> {
    // The magnitudes of fractions as doubles, with their constants: no two constants are one fraction.
    let bits = |c: f64| c.abs().to_bits();
    let mut owners: FxHashMap<u64, u64> = constants.iter().map(|c| (bits(*c), bits(*c))).collect();
    let mut alone = |c: f64| {
        let is_mine = |e: &Exact| *owners.entry(bits(e.real.high)).or_insert(bits(c)) == bits(c);
        simple_fraction(c).or_else(|| multiple(c, 1.0, Exact::dyadic(1.0)).filter(is_mine))
    };
    let mut exact: Vec<Option<Exact>> =
        constants.iter().map(|c| if *c == 0.0 { Some(Exact::dyadic(0.0)) } else { alone(*c) }).collect();
    let mut hard: Vec<usize> = (0..constants.len()).filter(|i| exact[*i].is_none()).collect();
    // Small ones first: a multiple that was rounded has a base that was not.
    hard.sort_by(|a, b| constants[*a].abs().total_cmp(&constants[*b].abs()).then(a.cmp(b)));
    let mut bases: Vec<(f64, Exact)> = Vec::new();
    for i in hard {
        let c = constants[i];
        let near = bases.partition_point(|(b, _)| b.abs() * (MAX_RATIO as f64) < c.abs());
        let found = bases[near..].chunks(LANES).find_map(|bases| {
            let mut ratios = [PI; LANES];
            for (ratio, (b, _)) in ratios.iter_mut().zip(bases) {
                *ratio = (c / b).abs();
            }
            let may = may_be_ratios(ratios);
            bases.iter().zip(may).filter(|(_, may)| *may).find_map(|((b, e), _)| multiple(c, *b, *e))
        });
        if found.is_none() && bases.len() < MAX_BASES {
            bases.push((c, Exact::dyadic(c)));
        }
        exact[i] = found;
    }
    exact.into_iter().zip(constants).map(|(e, c)| e.unwrap_or_else(|| Exact::dyadic(*c))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_cases::Xorshift;

    fn one(c: f64) -> Exact {
        interpret(&[c])[0]
    }

    #[test]
    fn fractions_are_found() {
        for (p, q) in [(5, 3), (1, 10), (981, 100), (1, 49), (39, 20), (1, 1), (7, 1), (12_345, 1001)] {
            let c = p as f64 / q as f64;
            assert_eq!(one(c).field, Fp::new(p) * Fp::new(q).inverse().unwrap());
            assert_eq!(one(-c).field, -one(c).field);
        }
    }

    #[test]
    fn what_rounds_twice_is_the_fraction_and_what_is_exact_or_dear_has_neighbours() {
        // Divided by the denominator and multiplied after that.
        let mut rounded = 0;
        for (p, q) in [(7, 3), (5, 7), (37, 19), (39, 20), (41, 11), (981, 100), (1000, 1001)] {
            let (once, twice): (f64, f64) = (p as f64 / q as f64, p as f64 * (1.0 / q as f64));
            rounded += usize::from(once != twice);
            assert_eq!(one(twice).field, one(once).field, "{p}/{q}");
            assert_eq!(one(twice).real.high, once);
            // Two units away is another number, and so is a neighbour of a product that rounds once.
            let [next, far] = [1, 2].map(|units| f64::from_bits(once.to_bits() + units));
            assert_ne!(one(far).field, one(once).field);
            let both = interpret(&[next, -next, once]);
            assert_eq!(both[0].field, -both[1].field);
            assert_ne!(both[0].field, both[2].field);
        }
        assert!(rounded > 1);
        for c in [1.0_f64, 7.0, 0.375, 12_345.0 / 1001.0] {
            let neighbour = f64::from_bits(c.to_bits() + 1);
            assert_ne!(one(neighbour).field, one(c).field);
            assert_eq!(one(neighbour).real.high, neighbour);
        }
    }

    #[test]
    fn dyadic_numbers_are_exact() {
        assert_eq!(one(0.0).field, Fp::ZERO);
        assert_eq!(one(1e-30).real, Double2::from(1e-30));
        assert_eq!(one(f64::MAX).field + one(f64::MIN).field, Fp::ZERO);
        let tiny = 5e-324;
        assert_eq!(one(tiny).field.times_power_of_two(1074), Fp::ONE);
    }

    #[test]
    fn no_fraction_and_no_multiple_is_overlooked() {
        let mut random = Xorshift::new(1);
        let mut number = || random.bits();
        let is_a_base = |c: f64| one(c) == Exact::dyadic(c);
        let mut n_bases = 0;
        for _ in 0..5000 {
            let [p, q] = [number() % MAX_RATIO + 1, number() % MAX_RATIO + 1];
            let simple = p as f64 / q as f64;
            assert_eq!(one(simple).field * Fp::new(q), Fp::new(p), "{p}/{q}");
            let base = f64::from_bits(number() >> 12 | 1 << 62) * 0.7;
            let [times, over] = [base * p as f64, base / q as f64];
            if ![base, times, over].into_iter().all(is_a_base) {
                continue;
            }
            let [e, f] = [times, over].map(|c| interpret(&[base, c]));
            assert_eq!(e[1].field, e[0].field * Fp::new(p), "{base} * {p}");
            assert_eq!(f[1].field * Fp::new(q), f[0].field, "{base} / {q}");
            n_bases += 1;
        }
        assert!(n_bases > 4990, "{n_bases} of 5000 random numbers are no fractions");
    }

    #[test]
    fn what_looks_at_ratios_side_by_side_overlooks_none() {
        let mut random = Xorshift::new(2);
        let mut number = || random.bits();
        let (mut n_multiples, mut n_more) = (0, 0);
        for _ in 0..20_000 {
            let b = f64::from_bits(number() >> 12 | 1023 << 52);
            let [p, q] = [number() % MAX_RATIO + 1, number() % MAX_RATIO + 1];
            let c = b * (p.max(q) as f64) / (p.min(q) as f64);
            let near = f64::from_bits(c.to_bits() + number() % 9 - 4);
            let mut ratios = [0.0; LANES].map(|_| 1.0 + (number() % (1 << 52)) as f64 / (1u64 << 43) as f64);
            ratios[3] = near / b;
            let may = may_be_ratios(ratios);
            let is_multiple = near >= b && multiple(near, b, Exact::dyadic(b)).is_some();
            n_multiples += usize::from(is_multiple);
            n_more += may.iter().filter(|may| **may).count() - usize::from(may[3]);
            assert!(may[3] || !is_multiple, "{near} / {b}");
        }
        assert!(n_multiples > 5000 && n_more < 10, "{n_multiples} multiples, {n_more} others");
    }

    #[test]
    fn rounded_multiples_belong_to_their_base() {
        let base = (1..=15).map(|k| f64::from(2 * k - 1)).product::<f64>();
        let (second, third) = (base * 31.0, base * 31.0 * 33.0);
        let e = interpret(&[third, base, second]);
        assert_eq!(e[2].field, e[1].field * Fp::new(31));
        assert_eq!(e[0].field, e[1].field * Fp::new(31 * 33));
        // A neighbour of an exact multiple is another number.
        let pi = std::f64::consts::PI;
        let e = interpret(&[pi, f64::from_bits((2.0 * pi).to_bits() + 1), 4.0 * pi]);
        assert_ne!(e[1].field, e[0].field + e[0].field);
        assert_eq!(e[2].field, e[0].field * Fp::new(4));
    }
}
