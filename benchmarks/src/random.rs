//! Reproducible pseudo-random numbers for random graphs: xorshift (Marsaglia, 2003).

/// Generator.
pub struct Random(u64);

impl Random {
    /// Returns the generator used for every random graph.
    pub fn new() -> Self {
        Self(88_172_645_463_325_252)
    }

    /// Returns a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
