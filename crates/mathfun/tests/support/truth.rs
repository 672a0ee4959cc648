//! True values in 384 bits (115 digits), and the error of a double in ulp.

use astro_float::{BigFloat, Consts, RoundingMode, Sign};

/// Binary digits of the true value.
const BITS: usize = 384;

/// Not rounded correctly in the 384th bit, but within a few units of it.
const ROUND: RoundingMode = RoundingMode::None;

/// Evaluator of true values, with a cache of constants.
pub struct Truth {
    consts: Consts,
}

impl Truth {
    /// Returns an evaluator with an empty cache.
    pub fn new() -> Self {
        Self { consts: Consts::new().unwrap() }
    }

    /// Returns the function of this name (C's spelling) at finite arguments inside its domain.
    pub fn value(&mut self, name: &str, args: &[f64]) -> BigFloat {
        let exponent = |x: f64| if x == 0.0 { 0 } else { (x.to_bits() >> 52 & 0x7ff) as i64 - 1023 };
        // Digits that cancel at worst: those before the point of a reduced argument, zeros behind the point of a small
        // one.
        let digits = args.iter().map(|x| exponent(*x).unsigned_abs() as usize).max().unwrap_or(0);
        let bits = BITS + if digits > 8 { digits + 64 } else { 0 };
        let big = |x: f64| big(x, bits);
        let one = big(1.0);
        let x = big(args[0]);
        let consts = &mut self.consts;
        match name {
            "sin" => x.sin(bits, ROUND, consts),
            "cos" => x.cos(bits, ROUND, consts),
            "exp" => x.exp(BITS, ROUND, consts),
            "expm1" => x.exp(bits, ROUND, consts).sub(&one, BITS, ROUND),
            "log" => x.ln(BITS, ROUND, consts),
            "log1p" => x.add(&one, bits + 64, ROUND).ln(BITS, ROUND, consts),
            // 1 to 500 digits; exp would overflow.
            "tanh" if args[0].abs() > 1000.0 => big(args[0].signum()),
            "tanh" => {
                // 1 - 2 / (exp(2x) + 1) as (exp(2x) - 1) / (exp(2x) + 1).
                let e = x.add(&x, bits, ROUND).exp(bits, ROUND, consts);
                e.sub(&one, bits, ROUND).div(&e.add(&one, bits, ROUND), BITS, ROUND)
            }
            "sinh" | "cosh" => {
                // Both overflow far below.
                let x = if args[0].abs() > 1000.0 { big(args[0].signum() * 1000.0) } else { x };
                let e = x.exp(bits, ROUND, consts);
                let less = one.div(&e, bits, ROUND);
                let both = if name == "sinh" { e.sub(&less, bits, ROUND) } else { e.add(&less, bits, ROUND) };
                both.div(&big(2.0), BITS, ROUND)
            }
            "erf" if args[0].abs() > 10.0 => big(args[0].signum()),
            "erf" => {
                // Abramowitz and Stegun, 7.1.6: all terms have the sign of x.
                let square = x.mul(&x, bits, ROUND);
                let twice = square.add(&square, bits, ROUND);
                let (mut term, mut sum) = (x.clone(), x);
                for k in 1..1200_u32 {
                    term = term.mul(&twice, bits, ROUND).div(&big(f64::from(2 * k + 1)), bits, ROUND);
                    sum = sum.add(&term, bits, ROUND);
                }
                let factor = big(2.0).div(&consts.pi(bits, ROUND).sqrt(bits, ROUND), bits, ROUND);
                sum.mul(&square.neg().exp(bits, ROUND, consts), bits, ROUND).mul(&factor, BITS, ROUND)
            }
            "asinh" => {
                let magnitude = x.abs();
                let root = x.mul(&x, bits, ROUND).add(&one, bits, ROUND).sqrt(bits, ROUND);
                let y = magnitude.add(&root, bits, ROUND).ln(bits, ROUND, consts);
                if args[0] < 0.0 { y.neg() } else { y }
            }
            "acosh" => {
                let root = x.mul(&x, bits, ROUND).sub(&one, bits, ROUND).sqrt(bits, ROUND);
                x.add(&root, bits, ROUND).ln(BITS, ROUND, consts)
            }
            "atanh" => {
                let ratio = one.add(&x, bits, ROUND).div(&one.sub(&x, bits, ROUND), bits, ROUND);
                ratio.ln(bits, ROUND, consts).div(&big(2.0), BITS, ROUND)
            }
            "cbrt" => {
                let root = x.abs().cbrt(BITS, ROUND);
                if args[0] < 0.0 { root.neg() } else { root }
            }
            "tan" => x.sin(bits, ROUND, consts).div(&x.cos(bits, ROUND, consts), BITS, ROUND),
            "atan" => x.atan(bits, ROUND, consts),
            "atan2" => {
                let (y, x) = (x, big(args[1]));
                let pi = consts.pi(bits, ROUND);
                if x.is_zero() {
                    let half = pi.div(&big(2.0), bits, ROUND);
                    return if args[0] < 0.0 { half.neg() } else { half };
                }
                let angle = y.div(&x, BITS, ROUND).atan(BITS, ROUND, consts);
                if args[1] > 0.0 {
                    angle
                } else if args[0] < 0.0 {
                    angle.sub(&pi, BITS, ROUND)
                } else {
                    angle.add(&pi, BITS, ROUND)
                }
            }
            "hypot" => {
                let y = big(args[1]);
                x.mul(&x, bits, ROUND).add(&y.mul(&y, bits, ROUND), bits, ROUND).sqrt(BITS, ROUND)
            }
            "pow" => {
                let log = x.abs().ln(BITS, ROUND, consts);
                let power = log.mul(&big(args[1]), BITS, ROUND).exp(BITS, ROUND, consts);
                if args[0] < 0.0 && args[1].rem_euclid(2.0) == 1.0 { power.neg() } else { power }
            }
            other => panic!("no function {other}"),
        }
    }
}

/// Returns the double, exactly. astro-float 0.9 halves subnormal doubles.
fn big(x: f64, bits: usize) -> BigFloat {
    if x.abs() >= f64::MIN_POSITIVE {
        return BigFloat::from_f64(x, bits);
    }
    let scale = 2f64.powi(200);
    BigFloat::from_f64(x * scale, bits).div(&BigFloat::from_f64(scale, bits), bits, ROUND)
}

/// Returns |got - truth| in units in the last place of the double nearest to the truth (2^-1074 for subnormal ones).
/// Infinity counts as 2^1024.
pub fn ulps(got: f64, truth: &BigFloat) -> f64 {
    if got.is_nan() || truth.is_nan() {
        return f64::INFINITY;
    }
    if truth.is_inf() {
        return if got == if truth.is_negative() { f64::NEG_INFINITY } else { f64::INFINITY } {
            0.0
        } else {
            f64::INFINITY
        };
    }
    if truth.is_zero() {
        return if got == 0.0 { 0.0 } else { f64::INFINITY };
    }
    // truth = 0.1... * 2^exponent.
    let exponent = truth.exponent().map_or(0, i64::from).clamp(-1021, 1025);
    let got = if got.is_infinite() {
        if exponent > 1024 && (got < 0.0) == truth.is_negative() {
            return 0.0;
        }
        BigFloat::from_f64(got.signum() * 2f64.powi(1023), BITS).mul(&BigFloat::from_f64(2.0, BITS), BITS, ROUND)
    } else {
        big(got, BITS)
    };
    let exponent = exponent.min(1024);
    let error = got.sub(truth, BITS, ROUND).abs();
    let scale = BigFloat::from_f64(2.0, BITS).powi((53 + 1100) as usize, BITS, ROUND);
    let down = BigFloat::from_f64(2.0, BITS).powi((exponent + 1100) as usize, BITS, ROUND);
    as_f64(&error.mul(&scale, BITS, ROUND).div(&down, BITS, ROUND))
}

/// Returns the double, to a few units in the last place: for errors.
fn as_f64(x: &BigFloat) -> f64 {
    let Some((words, _, sign, exponent, _)) = x.as_raw_parts() else { return f64::INFINITY };
    let Some(top) = words.last() else { return 0.0 };
    let magnitude = *top as f64 * 2f64.powi(exponent - 64);
    if sign == Sign::Neg { -magnitude } else { magnitude }
}
