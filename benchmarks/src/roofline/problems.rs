//! Problems of `roofline`, with their minimum work.

use super::further;
use super::peaks::Call;
use chainrule::Value;
use chainrule_cases::Marsaglia as Random;

/// Minimum work of an evaluation: fused operations, bytes of arguments and results, and elementary functions.
#[derive(Clone, Copy)]
pub struct Work {
    /// Bytes that are read or written at least once, in all passes.
    pub bytes: f64,
    /// Multiplications, additions, or both fused.
    pub operations: f64,
    /// Elementary functions.
    pub calls: [(Call, f64); 2],
}

/// Problem.
pub struct Problem {
    /// Name of its row.
    pub name: String,
    /// Function in `problems.ft`.
    pub function: String,
    /// Differentiated arguments.
    pub by: &'static [&'static str],
    /// Arguments.
    pub args: Vec<Value<f64>>,
    /// Number of doubles in use at once, which determines the cache level.
    pub working_set: f64,
    /// Work of the value.
    pub value: Work,
    /// Work of the gradient.
    pub gradient: Work,
}

/// Random arguments.
pub(super) struct Numbers(Random);

impl Numbers {
    /// Returns a number in (-1, 1).
    fn number(&mut self) -> f64 {
        self.0.below(1 << 40) as f64 / (1u64 << 39) as f64 - 1.0
    }

    pub(super) fn array(&mut self, extents: &[usize], scale: f64) -> Value<f64> {
        match extents {
            [] => Value::Real(scale * self.number()),
            [n, rest @ ..] => Value::Array((0..*n).map(|_| self.array(rest, scale)).collect()),
        }
    }

    pub(super) fn indices(&mut self, n: usize, below: usize) -> Value<f64> {
        Value::Array((0..n).map(|_| Value::Int(self.0.below(below) as i64)).collect())
    }

    /// Returns `n` numbers around `center`.
    pub(super) fn shifted(&mut self, n: usize, scale: f64, center: f64) -> Value<f64> {
        Value::Array((0..n).map(|_| Value::Real(center + scale * self.number())).collect())
    }

    /// Returns a matrix with a dominant diagonal.
    pub(super) fn dominant(&mut self, n: usize) -> Value<f64> {
        let row =
            |r: &mut Self, i: usize| (0..n).map(|j| r.number() + if i == j { 2.0 * n as f64 } else { 0.0 }).collect();
        Value::Array((0..n).map(|i| Value::Array(Vec::into_iter(row(self, i)).map(Value::Real).collect())).collect())
    }
}

/// No elementary function.
pub(super) const NONE: (Call, f64) = (Call::Exp, 0.0);

pub(super) fn work(doubles: f64, operations: f64, calls: [(Call, f64); 2]) -> Work {
    Work { bytes: 8.0 * doubles, operations, calls }
}

/// Returns all problems.
#[must_use]
pub fn all() -> Vec<Problem> {
    let mut all = Vec::new();
    let mut r = Numbers(Random::default());
    // Regressions: a row is read once, for the dot product and for the gradient.
    let (n, d) = (5000.0, 12.0);
    for (name, calls) in
        [("linear", [NONE, NONE]), ("logistic", [(Call::Exp, n), (Call::Log, n)]), ("poisson", [(Call::Exp, n), NONE])]
    {
        let args = vec![r.array(&[12], 0.3), r.array(&[5000, 12], 0.3), r.array(&[5000], 1.0)];
        let rows = n * (d + 1.0);
        let (value, gradient) = (work(rows, n * (d + 2.0), calls), work(rows, n * (2.0 * d + 2.0), [calls[0], NONE]));
        all.push(Problem {
            name: name.to_owned(),
            function: name.to_owned(),
            by: &["b"],
            args,
            working_set: rows,
            value,
            gradient,
        });
    }
    let (n, d, h, c) = (256.0, 30.0, 64.0, 10.0);
    let args = vec![
        r.array(&[64, 30], 0.3),
        r.array(&[64], 0.1),
        r.array(&[10, 64], 0.3),
        r.array(&[10], 0.1),
        r.array(&[256, 30], 1.0),
        r.indices(256, 10),
    ];
    let (products, calls) = (n * h * (d + c), [(Call::Tanh, n * h), (Call::Exp, n * c)]);
    all.push(Problem {
        name: "network".to_owned(),
        function: "network".to_owned(),
        by: &["w1", "b1", "w2", "b2"],
        args,
        working_set: n * (d + h) + h * (d + c),
        value: work(n * d + h * (d + c), products, calls),
        gradient: work(n * (d + 2.0 * h) + 2.0 * h * (d + c), 2.0 * products + n * h * c, calls),
    });
    for name in ["heat_ring", "heat_clamped", "heat_guarded"] {
        let (n, steps) = (1000.0, 500.0);
        let step = work(2.0 * n * steps, 4.0 * n * steps, [NONE, NONE]);
        let args = vec![r.array(&[1000], 1.0), Value::Int(500)];
        // A linear function: its derivative needs no state except the last one.
        let gradient = work(4.0 * n * steps, 8.0 * n * steps, [NONE, NONE]);
        all.push(Problem {
            name: name.to_owned(),
            function: name.to_owned(),
            by: &["u"],
            args,
            working_set: 2.0 * n,
            value: step,
            gradient,
        });
    }
    let (n, steps) = (128.0 * 128.0, 50.0);
    let args = vec![r.array(&[128, 128], 1.0), Value::Int(50)];
    all.push(Problem {
        name: "heat_torus".to_owned(),
        function: "heat_torus".to_owned(),
        by: &["u"],
        args,
        working_set: 2.0 * n,
        value: work(2.0 * n * steps, 5.0 * n * steps, [NONE, NONE]),
        gradient: work(4.0 * n * steps, 10.0 * n * steps, [NONE, NONE]),
    });
    let n = 200.0f64;
    let args = vec![Value::Real(0.1), Value::Real(-1.0), r.array(&[200], 2.0), r.array(&[200], 1.0)];
    all.push(Problem {
        name: "gaussian_process".to_owned(),
        function: "gaussian_process".to_owned(),
        by: &["logls", "logs"],
        args,
        working_set: 2.0 * n * n,
        value: work(2.0 * n * n, n * n * n / 6.0, [(Call::Exp, n * n / 2.0), (Call::Log, n)]),
        gradient: work(4.0 * n * n, n * n * n / 2.0, [(Call::Exp, n * n / 2.0), NONE]),
    });
    let (n, k) = (124.0 * 124.0, 25.0);
    let args = vec![r.array(&[5, 5], 0.2), r.array(&[128, 128], 1.0)];
    all.push(Problem {
        name: "convolution".to_owned(),
        function: "convolution".to_owned(),
        by: &["w"],
        args,
        working_set: n,
        value: work(n, n * k, [(Call::Tanh, n), NONE]),
        gradient: work(n, 2.0 * n * k, [(Call::Tanh, n), NONE]),
    });
    for n in [64usize, 256] {
        let (size, cube) = ((n * n) as f64, (n * n * n) as f64);
        let args = vec![r.array(&[n, n], 1.0), r.array(&[n, n], 1.0)];
        let (value, gradient) = (work(3.0 * size, cube, [NONE, NONE]), work(5.0 * size, 3.0 * cube, [NONE, NONE]));
        all.push(Problem {
            name: format!("product_{n}"),
            function: "product".to_owned(),
            by: &["a", "b"],
            args,
            working_set: 3.0 * size,
            value,
            gradient,
        });
    }
    let (s, cube) = (200.0, 512.0);
    let args = vec![r.array(&[200, 8, 8], 1.0), r.array(&[200, 8, 8], 1.0)];
    all.push(Problem {
        name: "batch".to_owned(),
        function: "batch".to_owned(),
        by: &["a", "b"],
        args,
        working_set: s * 128.0,
        value: work(s * 128.0, s * cube, [NONE, NONE]),
        gradient: work(s * 256.0, 3.0 * s * cube, [NONE, NONE]),
    });
    let n = 1000.0 * 50.0;
    let args = vec![r.array(&[1000, 50], 1.0), r.indices(1000, 50)];
    all.push(Problem {
        name: "softmax".to_owned(),
        function: "softmax".to_owned(),
        by: &["x"],
        args,
        working_set: 2.0 * n,
        value: work(n, 3.0 * n, [(Call::Exp, n), (Call::Log, 1000.0)]),
        gradient: work(2.0 * n, 4.0 * n, [(Call::Exp, n), NONE]),
    });
    let n = 500.0 * 500.0;
    all.push(Problem {
        name: "pairs".to_owned(),
        function: "pairs".to_owned(),
        by: &["x"],
        args: vec![r.array(&[500], 1.0)],
        working_set: 500.0,
        value: work(500.0, 3.0 * n, [(Call::Exp, n), NONE]),
        gradient: work(1000.0, 5.0 * n, [(Call::Exp, n), NONE]),
    });
    for name in ["recurrence", "columns"] {
        let n = 1000.0 * 64.0;
        all.push(Problem {
            name: name.to_owned(),
            function: name.to_owned(),
            by: &["x"],
            args: vec![r.array(&[1000, 64], 1.0)],
            working_set: 2.0 * n,
            value: work(n, n, [NONE, NONE]),
            gradient: work(2.0 * n, 2.0 * n, [NONE, NONE]),
        });
    }
    let (n, m) = (1000.0, 20_000.0);
    all.push(Problem {
        name: "gathered".to_owned(),
        function: "gathered".to_owned(),
        by: &["x"],
        args: vec![r.array(&[1000], 1.0), r.indices(20_000, 1000)],
        working_set: n + m,
        value: work(2.0 * m, m, [NONE, NONE]),
        gradient: work(4.0 * m, m, [NONE, NONE]),
    });
    let n = 20_000.0;
    all.push(Problem {
        name: "chain".to_owned(),
        function: "chain".to_owned(),
        by: &["x"],
        args: vec![r.array(&[20_000], 1.0)],
        working_set: 2.0 * n,
        value: work(n, 5.0 * n, [(Call::Exp, n), (Call::Sqrt, n)]),
        gradient: work(2.0 * n, 10.0 * n, [(Call::Exp, n), (Call::Sqrt, n)]),
    });
    let (n, size) = (64.0f64 * 64.0 * 64.0, 64.0 * 64.0);
    all.push(Problem {
        name: "contraction".to_owned(),
        function: "contraction".to_owned(),
        by: &["a", "b", "c"],
        args: vec![r.array(&[64, 64], 1.0), r.array(&[64, 64], 1.0), r.array(&[64, 64], 1.0)],
        working_set: 3.0 * size,
        value: work(3.0 * size, n, [NONE, NONE]),
        gradient: work(6.0 * size, 3.0 * n, [NONE, NONE]),
    });
    all.extend(further::all(&mut r));
    all
}
