//! Interleaved measurement: all alternatives run in one process, round by round, so that disturbances affect all of
//! them.

use std::time::Instant;

/// Alternative that runs one point, or several.
pub struct Runner<'a> {
    run: Box<dyn FnMut() + 'a>,
    /// Calls of a sample.
    calls: usize,
    /// Points of a call.
    points: usize,
    /// Nanoseconds for a point, one sample for each round.
    pub samples: Vec<f64>,
}

impl<'a> Runner<'a> {
    /// Runs it several times, to warm up and to choose the number of calls for a sample of about a millisecond. The
    /// minimum time decides, so that an interruption does not lead to samples of one call.
    pub fn new(points: usize, mut run: impl FnMut() + 'a) -> Self {
        run();
        let once = |run: &mut dyn FnMut()| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        };
        let once = (0..5).map(|_| once(&mut run)).fold(f64::INFINITY, f64::min).max(1e-8);
        let calls = ((1e-3 / once) as usize).clamp(1, 100_000);
        Self { run: Box::new(run), calls, points, samples: Vec::new() }
    }

    /// Takes a sample of ns a point, after an unmeasured call that warms its data and threads.
    pub fn sample(&mut self) {
        (self.run)();
        let start = Instant::now();
        for _ in 0..self.calls {
            (self.run)();
        }
        self.samples.push(start.elapsed().as_secs_f64() * 1e9 / (self.calls * self.points) as f64);
    }

    /// Returns the median of the samples.
    pub fn median(&self) -> f64 {
        median(&self.samples)
    }

    /// Returns the least of the samples.
    pub fn best(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the median of the rounds' ratios to another's samples.
    pub fn ratio(&self, other: &Runner<'_>) -> f64 {
        let ratios: Vec<f64> = self.samples.iter().zip(&other.samples).map(|(own, other)| own / other).collect();
        median(&ratios)
    }
}

/// Returns the median; NaN for an empty list.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the geometric mean; 1 for an empty list.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|r| r.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}
