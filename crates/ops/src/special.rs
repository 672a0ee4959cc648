//! Functions that neither `libm` nor `astro-float` has: polygamma in doubles (`polygamma.rs`); erf, erfc,
//! lgamma and polygamma in extended precision.
//!
//! Polygamma and lgamma in extended precision: the recurrence shifts the argument past a threshold, then the asymptotic
//! series with Bernoulli numbers is summed (Abramowitz and Stegun, 6.1.41 and 6.4.11).

use crate::precise::{Big, Precise};
use std::rc::Rc;

/// Returns the largest power of two that is not above |x|, from 2^-1022 on; 1 if x is 0, infinite or NaN.
pub fn binade(x: f64) -> f64 {
    let size = x.abs();
    if size == 0.0 || !size.is_finite() {
        return 1.0;
    }
    // The exponent alone.
    f64::from_bits(size.max(f64::MIN_POSITIVE).to_bits() & 0x7ff0_0000_0000_0000)
}

// Emitted Rust has the same text.
include!("polygamma.rs");

/// Maximum order of polygamma; beyond it the value is NaN.
const MAX_ORDER: f64 = 60.0;

/// Returns the n-th derivative of digamma at `x`; NaN for an `order` that is not a natural number up to 60 and at the
/// poles `x = 0, -1, -2, ...`.
#[must_use]
pub fn polygamma(order: f64, x: f64) -> f64 {
    cr_polygamma(order, x)
}

/// Returns the Bernoulli numbers B(2), B(4), ..., B(2 [`PRECISE_TERMS`]), by the recurrence of A&S 23.1.1.
fn bernoulli(ctx: &mut Precise) -> Rc<[Big]> {
    if !ctx.bernoulli.is_empty() {
        return Rc::clone(&ctx.bernoulli);
    }
    let count = PRECISE_TERMS;
    let n = 2 * count;
    let mut b: Vec<Big> = vec![ctx.from_f64(1.0), ctx.from_f64(-0.5)];
    for m in 2..=n {
        if m % 2 == 1 {
            b.push(ctx.from_f64(0.0));
            continue;
        }
        // sum over k < m of C(m+1, k) B(k) = -(m+1) B(m)
        let mut sum = ctx.from_f64(0.0);
        let mut binomial = ctx.from_f64(1.0);
        for (k, bk) in b.iter().enumerate() {
            let term = ctx.mul(&binomial, bk);
            sum = ctx.add(&sum, &term);
            let (up, down) = (ctx.from_f64((m + 1 - k) as f64), ctx.from_f64((k + 1) as f64));
            binomial = ctx.mul(&binomial, &up);
            binomial = ctx.div(&binomial, &down);
        }
        let divisor = ctx.from_f64(-((m + 1) as f64));
        b.push(ctx.div(&sum, &divisor));
    }
    ctx.bernoulli = (1..=count).map(|k| b[2 * k].clone()).collect();
    Rc::clone(&ctx.bernoulli)
}

const PRECISE_TERMS: usize = 40;
/// With 40 terms the series' last term at 60 is below 2^-256.
const PRECISE_SHIFT: f64 = 60.0;

/// Returns log |gamma(x)| in extended precision, for `x > 0`; NaN otherwise.
pub fn lgamma_precise(ctx: &mut Precise, x: &Big) -> Big {
    let zero = ctx.from_f64(0.0);
    let one = ctx.from_f64(1.0);
    if !ctx.less(&zero, x) {
        return ctx.nan();
    }
    let limit = ctx.from_f64(PRECISE_SHIFT);
    let (mut z, mut product) = (x.clone(), one.clone());
    while ctx.less(&z, &limit) {
        product = ctx.mul(&product, &z);
        z = ctx.add(&z, &one);
    }
    let half = ctx.from_f64(0.5);
    let log_z = ctx.ln(&z);
    let a = ctx.sub(&z, &half);
    let mut sum = ctx.mul(&a, &log_z);
    sum = ctx.sub(&sum, &z);
    let two_pi = ctx.two_pi();
    let log_two_pi = ctx.ln(&two_pi);
    let c = ctx.mul(&half, &log_two_pi);
    sum = ctx.add(&sum, &c);
    let z2 = ctx.mul(&z, &z);
    let mut power = z.clone();
    for (i, b) in bernoulli(ctx).iter().enumerate() {
        let k = 2.0 * (i as f64 + 1.0);
        let d = ctx.from_f64(k * (k - 1.0));
        let d = ctx.mul(&d, &power);
        let term = ctx.div(b, &d);
        sum = ctx.add(&sum, &term);
        power = ctx.mul(&power, &z2);
    }
    let log_product = ctx.ln(&product);
    ctx.sub(&sum, &log_product)
}

/// Returns polygamma in extended precision; NaN if [`polygamma`] is.
pub fn polygamma_precise(ctx: &mut Precise, order: &Big, x: &Big) -> Big {
    let (n, x64) = (ctx.as_f64(order), ctx.as_f64(x));
    if !(0.0..=MAX_ORDER).contains(&n) || n.fract() != 0.0 || x64.is_nan() || x64 < -1e6 || (x64 <= 0.0 && x.is_int()) {
        return ctx.nan();
    }
    let n = n as usize;
    let one = ctx.from_f64(1.0);
    let mut factorial = one.clone();
    for i in 2..=n {
        let i = ctx.from_f64(i as f64);
        factorial = ctx.mul(&factorial, &i);
    }
    let limit = ctx.from_f64(PRECISE_SHIFT + n as f64);
    let mut z = x.clone();
    let mut correction = ctx.from_f64(0.0);
    while ctx.less(&z, &limit) {
        let power = ctx.powi(&z, n + 1);
        let term = ctx.div(&factorial, &power);
        correction = ctx.add(&correction, &term);
        z = ctx.add(&z, &one);
    }
    let two = ctx.from_f64(2.0);
    let numbers = bernoulli(ctx);
    if n == 0 {
        let mut sum = ctx.ln(&z);
        let two_z = ctx.mul(&two, &z);
        let t = ctx.div(&one, &two_z);
        sum = ctx.sub(&sum, &t);
        for (i, b) in numbers.iter().enumerate() {
            let k = 2 * (i + 1);
            let power = ctx.powi(&z, k);
            let k = ctx.from_f64(k as f64);
            let d = ctx.mul(&k, &power);
            let term = ctx.div(b, &d);
            sum = ctx.sub(&sum, &term);
        }
        return ctx.sub(&sum, &correction);
    }
    let n_big = ctx.from_f64(n as f64);
    let power = ctx.powi(&z, n);
    let d = ctx.mul(&n_big, &power);
    let mut sum = ctx.div(&factorial, &d);
    let power = ctx.powi(&z, n + 1);
    let d = ctx.mul(&two, &power);
    let t = ctx.div(&factorial, &d);
    sum = ctx.add(&sum, &t);
    for (i, b) in numbers.iter().enumerate() {
        let k = 2 * (i + 1);
        let mut ratio = one.clone();
        for j in k + 1..k + n {
            let j = ctx.from_f64(j as f64);
            ratio = ctx.mul(&ratio, &j);
        }
        let power = ctx.powi(&z, k + n);
        let t = ctx.mul(b, &ratio);
        let t = ctx.div(&t, &power);
        sum = ctx.add(&sum, &t);
    }
    sum = ctx.add(&sum, &correction);
    if n.is_multiple_of(2) { ctx.neg(&sum) } else { sum }
}

/// Returns erf in extended precision: the series 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (1 3 5 ... (2n+1)) (A&S
/// 7.1.6), all terms of one sign. erf is 1 to working precision beyond |x| = 14.
pub fn erf_precise(ctx: &mut Precise, x: &Big) -> Big {
    let x64 = ctx.as_f64(x);
    if x64.is_nan() {
        return ctx.nan();
    }
    if x64.abs() > 14.0 {
        return ctx.from_f64(x64.signum());
    }
    let x2 = ctx.mul(x, x);
    let two = ctx.from_f64(2.0);
    let two_x2 = ctx.mul(&two, &x2);
    let (mut term, mut sum) = (x.clone(), x.clone());
    for n in 1..3000 {
        term = ctx.mul(&term, &two_x2);
        let d = ctx.from_f64(2.0 * f64::from(n) + 1.0);
        term = ctx.div(&term, &d);
        let next = ctx.add(&sum, &term);
        if ctx.equal(&next, &sum) {
            break;
        }
        sum = next;
    }
    let c = gaussian_by_root_pi(ctx, &x2);
    let c = ctx.mul(&two, &c);
    ctx.mul(&c, &sum)
}

/// Returns exp(-x^2) / sqrt(pi) for a square.
fn gaussian_by_root_pi(ctx: &mut Precise, square: &Big) -> Big {
    let minus = ctx.neg(square);
    let e = ctx.exp(&minus);
    let two_pi = ctx.two_pi();
    let two = ctx.from_f64(2.0);
    let pi = ctx.div(&two_pi, &two);
    let root = ctx.sqrt(&pi);
    ctx.div(&e, &root)
}

/// Returns 1 - erf in extended precision: beyond 2 the continued fraction exp(-x^2) / sqrt(pi) / (x + (1/2) / (x +
/// (2/2) / (x + ...))) (A&S 7.1.14), from its 1500th term, which is enough for 80 digits.
pub fn erfc_precise(ctx: &mut Precise, x: &Big) -> Big {
    const TERMS: u32 = 1500;
    let x64 = ctx.as_f64(x);
    if !(2.0..=1e6).contains(&x64) {
        let (one, erf) = (ctx.from_f64(1.0), erf_precise(ctx, x));
        return ctx.sub(&one, &erf);
    }
    let mut rest = x.clone();
    for k in (1..=TERMS).rev() {
        let half = ctx.from_f64(f64::from(k) / 2.0);
        let quotient = ctx.div(&half, &rest);
        rest = ctx.add(x, &quotient);
    }
    let square = ctx.mul(x, x);
    let factor = gaussian_by_root_pi(ctx, &square);
    ctx.div(&factor, &rest)
}
