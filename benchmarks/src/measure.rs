//! Measuring by turns: what is compared runs in one process, round by round, so that what disturbs the machine
//! disturbs all sides.

use std::time::Instant;

/// Something that runs one point, or several.
pub struct Runner<'a> {
    run: Box<dyn FnMut() + 'a>,
    /// Calls a sample.
    calls: usize,
    /// Points a call.
    points: usize,
    /// ns a point, one a round.
    pub samples: Vec<f64>,
}

impl<'a> Runner<'a> {
    /// Runs it some times, to warm up and to see how often a sample of about a millisecond calls it: by the least of them, so
    /// that no sample is of one call because something came between here.
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

    /// ns a point, once more; after a call that is not measured, so that its own data and threads are awake.
    pub fn sample(&mut self) {
        (self.run)();
        let start = Instant::now();
        for _ in 0..self.calls {
            (self.run)();
        }
        self.samples.push(start.elapsed().as_secs_f64() * 1e9 / (self.calls * self.points) as f64);
    }

    /// The median of the samples.
    pub fn median(&self) -> f64 {
        median(&self.samples)
    }

    /// The median of the rounds' ratios to another's samples.
    pub fn ratio(&self, other: &Runner<'_>) -> f64 {
        let ratios: Vec<f64> = self.samples.iter().zip(&other.samples).map(|(own, other)| own / other).collect();
        median(&ratios)
    }
}

/// The median; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The geometric mean; 1 of nothing.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|r| r.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}
