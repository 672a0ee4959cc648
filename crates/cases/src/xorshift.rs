//! Pseudorandom numbers for tests that need neither shrinking nor distributions.

/// Generator xorshift64* (Vigna, *An experimental exploration of Marsaglia's xorshift generators, scrambled*, 2016).
#[derive(Clone, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// Returns the generator of a seed; equal seeds give equal numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // The state is never 0, which would stay 0.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `bound`, which is positive.
    pub const fn below(&mut self, bound: u64) -> u64 {
        (self.bits() >> 11) % bound
    }

    /// Returns a number of an interval, uniformly distributed.
    pub const fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Returns a finite double, with uniform exponents and signs.
    pub const fn finite(&mut self) -> f64 {
        loop {
            let x = f64::from_bits(self.bits());
            if x.is_finite() {
                return x;
            }
        }
    }

    /// Returns a number in \[0, 1), with all 53 bits random.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub const fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Generator xorshift64 (Marsaglia, *Xorshift RNGs*, 2003) with one seed, for benchmarks: their random graphs and data
/// stay those of recorded figures.
#[derive(Clone, Debug)]
pub struct Marsaglia(u64);

impl Default for Marsaglia {
    fn default() -> Self {
        Self(88_172_645_463_325_252)
    }
}

impl Marsaglia {
    /// Returns a number below `bound`, which is positive.
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below a `usize`")]
    pub const fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{Marsaglia, Xorshift};

    #[test]
    fn recorded_benchmarks_keep_their_numbers() {
        let mut random = Marsaglia::default();
        assert_eq!([0; 4].map(|_| random.below(1000)), [512, 515, 312, 853]);
    }

    #[test]
    fn seeds_differ_and_numbers_are_in_range() {
        let [mut a, mut b] = [1, 2].map(Xorshift::new);
        let mut seen = [false; 7];
        for _ in 0..200 {
            assert_ne!(a.bits(), b.bits());
            seen[usize::try_from(a.below(7)).unwrap_or(0)] = true;
            assert!((0.0..1.0).contains(&b.unit()));
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
