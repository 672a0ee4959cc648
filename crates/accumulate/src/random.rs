//! Random numbers for checkers and searches: seeded, and equal on every machine.

/// Splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in this interval.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an index below `n`, which is not 0; the bias is n / 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Returns a draw with a mean of about 1, close to the exponential distribution. It is computed without a
    /// logarithm, so that it is equal on every machine: the logarithm to base 2 is linear between powers of two.
    pub fn exponential(&mut self) -> f64 {
        let bits = self.bits();
        let n_zeros = bits.leading_zeros().min(62);
        let fraction = ((bits << (n_zeros + 1)) >> 11) as f64 / (1u64 << 53) as f64;
        std::f64::consts::LN_2 * (f64::from(n_zeros) + 1.0 - fraction)
    }

    /// Shuffles; all orders are equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
