//! Peaks of this machine, measured: fused operations, bandwidth of each cache level, elementary functions in lanes.

use crate::measure::Runner;
use chainrule::{Module, Value};

/// Measured elementary functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// `exp`.
    Exp,
    /// `log` and `log1p`.
    Log,
    /// `tanh`.
    Tanh,
    /// `sqrt`.
    Sqrt,
    /// `cos` and `sin`.
    Cos,
}

impl Call {
    const ALL: [(Self, &'static str); 5] =
        [(Self::Exp, "exp"), (Self::Log, "log1p"), (Self::Tanh, "tanh"), (Self::Sqrt, "sqrt"), (Self::Cos, "cos")];
}

/// Cache levels by the largest measured working set, in bytes.
const LEVELS: [(&str, usize); 4] = [("L1", 24 << 10), ("L2", 768 << 10), ("L3", 16 << 20), ("memory", 256 << 20)];

/// Rounds of each measurement; the best counts.
const ROUNDS: usize = 9;

/// Peaks of one core.
pub struct Peaks {
    /// Fused multiply-adds of doubles a second.
    pub operations: f64,
    /// By cache level: name, largest working set in bytes, bytes read a second.
    pub levels: Vec<(&'static str, usize, f64)>,
    /// Seconds of each elementary function for one number.
    pub calls: Vec<(Call, &'static str, f64)>,
}

impl Peaks {
    /// Measures them, in some seconds.
    ///
    /// # Errors
    /// Fails if a program does not compile.
    pub fn measure() -> Result<Self, Box<dyn std::error::Error>> {
        let operations = fused_operations();
        let levels = LEVELS.map(|(name, bytes)| (name, bytes, bandwidth(bytes))).to_vec();
        let copy = elementwise("1.5 * x[i]")?;
        let mut calls = Vec::new();
        for (call, name) in Call::ALL {
            calls.push((call, name, (elementwise(&format!("{name} x[i]"))? - copy).max(0.0)));
        }
        Ok(Self { operations, levels, calls })
    }

    /// Returns the bytes per second of the smallest level with room for `bytes`.
    pub fn bandwidth(&self, bytes: f64) -> f64 {
        let level = self.levels.iter().find(|(_, most, _)| bytes <= *most as f64).or(self.levels.last());
        level.map_or(f64::NAN, |(.., bandwidth)| *bandwidth)
    }

    /// Returns the seconds of a call for one number.
    pub fn call(&self, call: Call) -> f64 {
        self.calls.iter().find(|(other, ..)| *other == call).map_or(0.0, |(.., seconds)| *seconds)
    }
}

fn best(runner: &mut Runner<'_>) -> f64 {
    (0..ROUNDS).for_each(|_| runner.sample());
    runner.samples.iter().copied().fold(f64::INFINITY, f64::min) * 1e-9
}

/// Returns the seconds for one number of an array of 1000.
fn elementwise(term: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let text = format!("let f = fun (x : [n]Double) -> build n (fun i -> {term})");
    let compiled = Module::from_text("peaks.ft", &text)?.function("f")?.compile()?;
    let x: Vec<f64> = (0..1000).map(|i| 0.1 + f64::from(i) / 700.0).collect();
    let mut at = compiled.prepare(&[Value::from(x)])?;
    let mut runner = Runner::new(1000, || {
        let _ = at.run();
    });
    Ok(best(&mut runner))
}

/// Number of independent sums that a core computes at once: at least latency times throughput of a fused multiply-add.
const SUMS: usize = 16;

/// Multiply-adds of vectors in a call of [`multiply_adds`].
const STEPS: usize = 4096;

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::{
        _mm256_add_pd, _mm256_fmadd_pd, _mm256_loadu_pd, _mm256_set1_pd, _mm256_storeu_pd, _mm512_add_pd,
        _mm512_fmadd_pd, _mm512_loadu_pd, _mm512_reduce_add_pd, _mm512_set1_pd,
    };

    #[target_feature(enable = "avx512f")]
    pub fn multiply_adds_512() -> f64 {
        let (a, b) = (_mm512_set1_pd(0.999), _mm512_set1_pd(1e-3));
        // Unknown to the compiler, which otherwise computes the sums itself.
        let mut sums = std::hint::black_box([_mm512_set1_pd(1.0); super::SUMS]);
        for _ in 0..super::STEPS / super::SUMS {
            for sum in &mut sums {
                *sum = _mm512_fmadd_pd(*sum, a, b);
            }
        }
        sums.iter().map(|sum| _mm512_reduce_add_pd(*sum)).sum()
    }

    #[target_feature(enable = "avx2,fma")]
    #[allow(unsafe_code)]
    pub fn multiply_adds_256() -> f64 {
        let (a, b) = (_mm256_set1_pd(0.999), _mm256_set1_pd(1e-3));
        let mut sums = std::hint::black_box([_mm256_set1_pd(1.0); super::SUMS]);
        for _ in 0..super::STEPS / super::SUMS {
            for sum in &mut sums {
                *sum = _mm256_fmadd_pd(*sum, a, b);
            }
        }
        let mut out = [0.0; 4];
        let total = sums.into_iter().fold(_mm256_set1_pd(0.0), |total, sum| _mm256_add_pd(total, sum));
        // SAFETY: there is room for four doubles.
        unsafe { _mm256_storeu_pd(out.as_mut_ptr(), total) };
        out.iter().sum()
    }

    #[target_feature(enable = "avx512f")]
    #[allow(unsafe_code)]
    pub fn sum_512(x: &[f64]) -> f64 {
        let mut sums = [_mm512_set1_pd(0.0); 8];
        for part in x.chunks_exact(64) {
            for (k, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a part has 64 doubles.
                *sum = _mm512_add_pd(*sum, unsafe { _mm512_loadu_pd(part.as_ptr().add(8 * k)) });
            }
        }
        sums.iter().map(|sum| _mm512_reduce_add_pd(*sum)).sum()
    }

    #[target_feature(enable = "avx2,fma")]
    #[allow(unsafe_code)]
    pub fn sum_256(x: &[f64]) -> f64 {
        let mut sums = [_mm256_set1_pd(0.0); 8];
        for part in x.chunks_exact(32) {
            for (k, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a part has 32 doubles.
                *sum = _mm256_add_pd(*sum, unsafe { _mm256_loadu_pd(part.as_ptr().add(4 * k)) });
            }
        }
        let mut out = [0.0; 4];
        let total = sums.into_iter().fold(_mm256_set1_pd(0.0), |total, sum| _mm256_add_pd(total, sum));
        // SAFETY: there is room for four doubles.
        unsafe { _mm256_storeu_pd(out.as_mut_ptr(), total) };
        out.iter().sum()
    }
}

/// Returns the width of the widest vectors of this processor, in doubles; 1 if none are known.
fn width() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return 8;
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return 4;
        }
    }
    1
}

#[allow(unsafe_code)]
fn multiply_adds(width: usize) -> f64 {
    match width {
        // SAFETY: `width` has found the processor to have these instructions.
        #[cfg(target_arch = "x86_64")]
        8 => unsafe { vectors::multiply_adds_512() },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        4 => unsafe { vectors::multiply_adds_256() },
        _ => (0..STEPS)
            .fold(std::hint::black_box([1.0; SUMS]), |sums: [f64; SUMS], _| sums.map(|sum| sum * 0.999 + 1e-3))
            .iter()
            .sum(),
    }
}

#[allow(unsafe_code)]
fn sum(width: usize, x: &[f64]) -> f64 {
    match width {
        // SAFETY: `width` has found the processor to have these instructions.
        #[cfg(target_arch = "x86_64")]
        8 => unsafe { vectors::sum_512(x) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        4 => unsafe { vectors::sum_256(x) },
        _ => x.chunks_exact(8).fold([0.0; 8], |sums, part| std::array::from_fn(|k| sums[k] + part[k])).iter().sum(),
    }
}

fn fused_operations() -> f64 {
    let width = width();
    let steps = if width == 1 { STEPS * SUMS } else { STEPS * width };
    let mut runner = Runner::new(1, || {
        std::hint::black_box(multiply_adds(width));
    });
    steps as f64 / best(&mut runner)
}

fn bandwidth(bytes: usize) -> f64 {
    let (x, width) = (vec![1.0f64; bytes / 8], width());
    let mut runner = Runner::new(1, || {
        std::hint::black_box(sum(width, std::hint::black_box(&x)));
    });
    bytes as f64 / best(&mut runner)
}
