//! Extended precision, for checkers: 384 bits, about 115 decimal digits.

use crate::{Algebra, Op};
use astro_float::{BigFloat, Consts, RoundingMode, Sign};
use std::rc::Rc;

/// Number in extended precision.
pub type Big = BigFloat;

// Results are not rounded correctly in the last place: astro-float repeats with more bits until it can, which never
// ends for results that are exact, such as 0.25 ** -0.5.
const ROUND: RoundingMode = RoundingMode::None;

/// Algebra of extended precision. It holds the cache of constants, so it is created once and passed on.
pub struct Precise {
    bits: usize,
    consts: Consts,
    /// Bernoulli numbers, computed at their first use (`special`).
    pub(crate) bernoulli: Rc<[Big]>,
}

impl Precise {
    /// Default precision.
    pub const BITS: usize = 384;

    /// Returns an algebra of [`Self::BITS`] bits.
    ///
    /// # Panics
    /// Panics if memory is exhausted.
    #[must_use]
    pub fn new() -> Self {
        Self { bits: Self::BITS, consts: Consts::new().expect("memory for a few constants"), bernoulli: Rc::new([]) }
    }

    /// Returns the number `c`, exactly.
    #[must_use]
    pub fn from_f64(&self, c: f64) -> Big {
        if c != 0.0 && c.abs() < f64::MIN_POSITIVE {
            // astro-float 0.9 reads subnormal doubles as half their value. Both factors are exact.
            let up = 18_014_398_509_481_984.0;
            return self.div(&Big::from_f64(c * up, self.bits), &Big::from_f64(up, self.bits));
        }
        Big::from_f64(c, self.bits)
    }

    /// Returns NaN.
    #[must_use]
    pub fn nan(&self) -> Big {
        Big::nan(None)
    }

    /// Returns the nearest double.
    #[must_use]
    pub fn as_f64(&self, x: &Big) -> f64 {
        if x.is_nan() {
            return f64::NAN;
        }
        if x.is_inf_pos() {
            return f64::INFINITY;
        }
        if x.is_inf_neg() {
            return f64::NEG_INFINITY;
        }
        let Some((words, _, sign, exponent, _)) = x.as_raw_parts() else { return f64::NAN };
        let Some((top, rest)) = words.split_last() else { return 0.0 };
        // x = 0.words * 2^exponent; the lowest bit is made sticky so that one rounding remains.
        let mut top = *top;
        if rest.iter().any(|w| *w != 0) {
            top |= 1;
        }
        let magnitude = libm::ldexp(top as f64, exponent - 64);
        if sign == Sign::Neg { -magnitude } else { magnitude }
    }

    pub(crate) fn truth(&self, b: bool) -> Big {
        self.from_f64(f64::from(u8::from(b)))
    }

    /// Returns `a < b`; false if either is NaN.
    #[must_use]
    pub fn less(&self, a: &Big, b: &Big) -> bool {
        a.cmp(b).is_some_and(|c| c < 0)
    }

    /// Returns `a == b`; false if either is NaN.
    #[must_use]
    pub fn equal(&self, a: &Big, b: &Big) -> bool {
        a.cmp(b) == Some(0)
    }

    /// Returns `-a`.
    #[must_use]
    pub fn neg(&self, a: &Big) -> Big {
        a.neg()
    }

    /// Returns `a` raised to a natural power.
    #[must_use]
    pub fn powi(&self, a: &Big, n: usize) -> Big {
        a.powi(n, self.bits, ROUND)
    }

    pub(crate) fn two_pi(&mut self) -> Big {
        let pi = self.consts.pi(self.bits, ROUND);
        pi.add(&pi, self.bits, ROUND)
    }

    pub(crate) fn pow(&mut self, a: &Big, b: &Big) -> Big {
        // The library's `pow` is NaN for negative bases; integer exponents are defined there.
        if b.is_zero() {
            return self.from_f64(1.0);
        }
        let exponent = self.as_f64(b);
        if b.is_int() && exponent.abs() <= 1e6 {
            let power = self.powi(a, exponent.abs() as usize);
            if exponent >= 0.0 {
                return power;
            }
            let one = self.from_f64(1.0);
            return self.div(&one, &power);
        }
        if a.is_zero() {
            return self.from_f64(if exponent > 0.0 { 0.0 } else { f64::INFINITY });
        }
        if a.is_negative() {
            return self.nan();
        }
        a.pow(b, self.bits, ROUND, &mut self.consts)
    }

    pub(crate) fn floor(&self, a: &Big) -> Big {
        a.floor()
    }

    pub(crate) fn atan2(&mut self, y: &Big, x: &Big) -> Big {
        if x.is_nan() || y.is_nan() {
            return self.nan();
        }
        let two_pi = self.two_pi();
        let two = self.from_f64(2.0);
        let pi = self.div(&two_pi, &two);
        if x.is_zero() {
            if y.is_zero() {
                return y.clone();
            }
            let half = self.div(&pi, &two);
            return if y.is_negative() { half.neg() } else { half };
        }
        let ratio = self.div(y, x);
        let angle = self.atan(&ratio);
        match (x.is_negative(), y.is_negative()) {
            (false, _) => angle,
            (true, false) => self.add(&angle, &pi),
            (true, true) => self.sub(&angle, &pi),
        }
    }

    pub(crate) fn sum_of_squares(&self, a: &Big, b: &Big) -> Big {
        self.add(&self.mul(a, a), &self.mul(b, b))
    }

    pub(crate) fn hypot(&mut self, a: &Big, b: &Big) -> Big {
        let sum = self.sum_of_squares(a, b);
        self.sqrt(&sum)
    }

    pub(crate) fn cube_of_hypot(&mut self, a: &Big, b: &Big) -> Big {
        let sum = self.sum_of_squares(a, b);
        let root = self.sqrt(&sum);
        self.mul(&sum, &root)
    }

    // exp(x) - 1 and log(1 + x) lose at most the digits that x has in front of 1; the argument is at
    // least 2^-1074 in magnitude only in theory, so the working precision is raised by its exponent.
    pub(crate) fn expm1(&mut self, a: &Big) -> Big {
        let bits = self.bits + a.exponent().map_or(0, |e| usize::try_from(-i64::from(e)).unwrap_or(0)).min(2048);
        let e = a.exp(bits, ROUND, &mut self.consts);
        e.sub(&Big::from_f64(1.0, bits), self.bits, ROUND)
    }

    pub(crate) fn log1p(&mut self, a: &Big) -> Big {
        let bits = self.bits + a.exponent().map_or(0, |e| usize::try_from(-i64::from(e)).unwrap_or(0)).min(2048);
        let one_more = a.add(&Big::from_f64(1.0, bits), bits, ROUND);
        one_more.ln(self.bits, ROUND, &mut self.consts)
    }
}

macro_rules! binary {
    ($($name:ident)*) => {$(
        impl Precise {
            #[doc = concat!("`", stringify!($name), "` of two numbers.")]
            #[must_use]
            pub fn $name(&self, a: &Big, b: &Big) -> Big {
                a.$name(b, self.bits, ROUND)
            }
        }
    )*};
}
binary!(add sub mul div);

macro_rules! unary {
    ($($name:ident)*) => {$(
        impl Precise {
            pub(crate) fn $name(&mut self, a: &Big) -> Big {
                a.$name(self.bits, ROUND, &mut self.consts)
            }
        }
    )*};
}
unary!(exp ln sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh);

impl Precise {
    pub(crate) fn sqrt(&mut self, a: &Big) -> Big {
        a.sqrt(self.bits, ROUND)
    }
    pub(crate) fn cbrt(&mut self, a: &Big) -> Big {
        a.cbrt(self.bits, ROUND)
    }
}

impl Default for Precise {
    fn default() -> Self {
        Self::new()
    }
}

impl Algebra for Precise {
    type Value = Big;
    fn constant(&mut self, c: f64) -> Big {
        self.from_f64(c)
    }
    fn apply(&mut self, op: Op, args: &[Big]) -> Big {
        (op.row().precise)(self, args)
    }
    fn to_f64(&self, value: &Big) -> Option<f64> {
        Some(self.as_f64(value))
    }
}
