//! ADBench's problems in GradBench's form.

use super::{NO_SIZES, SCALAR, function};
use crate::input::Input;
use crate::output;
use crate::task::{Failure, Task};
use chainrule::{Function, Value};
use chainrule_example_adbench::{ba, lstm};
use serde_json::{Map, Value as Json, json};

pub const GMM: Task = Task {
    module: "gmm",
    name: "objective",
    function: || {
        let text = format!("{}\n{}", chainrule_example_gmm::SOURCE, include_str!("../../programs/gmm.ft"));
        function(&text, "gmmOfParts")
    },
    derive: Function::value,
    size: None,
    unrolled: NO_SIZES,
    args: |input| {
        // With one dimension the rows of `l` are empty.
        let rows = ["mu", "q", "l", "x"].map(|name| input.matrix(name));
        let [mu, q, l, x] = rows;
        let (gamma, m) = (input.real("gamma")?, input.size("m", 0, i64::MAX)?);
        Ok(vec![input.vector("alpha")?.into(), mu?.into(), q?.into(), l?.into(), x?.into(), gamma.into(), m.into()])
    },
    output: SCALAR,
};

pub const GMM_JACOBIAN: Task = Task {
    name: "jacobian",
    derive: |f| f.gradient().by(&["alpha", "mu", "q", "l"]),
    output: |input, prepared| {
        let k = input.vector("alpha")?.len();
        let mut parts = Map::new();
        for (i, name) in ["alpha", "mu", "q", "l"].into_iter().enumerate() {
            let numbers = prepared.result(i);
            let part = if i == 0 { output::row(numbers) } else { output::matrix(numbers, k, numbers.len() / k.max(1)) };
            parts.insert(name.to_owned(), part?);
        }
        Ok(Json::Object(parts))
    },
    ..GMM
};

pub const BA: Task = Task {
    module: "ba",
    name: "objective",
    function: || function(ba::SOURCE, "ba"),
    derive: Function::value,
    size: None,
    unrolled: NO_SIZES,
    args: |input| bundle(input).map(|problem| problem.args()),
    output: |_, prepared| {
        let (residuals, weights) = (prepared.result(0), prepared.result(1));
        let p = weights.len();
        let first = residuals.get(..2).unwrap_or_default();
        let weight = weights.first().map_or(Ok(Json::Null), |w| output::number(*w))?;
        Ok(json!({
            "reproj_error": {"elements": output::row(first)?, "repeated": p},
            "w_err": {"element": weight, "repeated": p},
        }))
    },
};

/// Sparse Jacobian in compressed rows; each run computes the values and the pattern.
pub const BA_JACOBIAN: Task = Task {
    name: "jacobian",
    function: || {
        let text = format!("{}\n{}", ba::SOURCE, include_str!("../../programs/ba.ft"));
        function(&text, "compressed")
    },
    output: |_, prepared| {
        let integers = |i: usize| shortened([prepared.integers(i), prepared.integers(i + 1)], |k| Ok(json!(k)));
        // The start of the first row is not part of the output.
        let ends: Vec<i64> = std::iter::once(&0).chain(prepared.integers(0)).copied().collect();
        let rows = shortened([&ends, prepared.integers(1)], |k| Ok(json!(k)))?;
        let values = shortened([prepared.result(4), prepared.result(5)], |x| output::number(*x))?;
        Ok(json!({"rows": rows, "cols": integers(2)?, "vals": values}))
    },
    ..BA
};

/// Returns the first 30 and the last of elements in two parts.
fn shortened<T>(parts: [&[T]; 2], json: impl Fn(&T) -> Result<Json, Failure>) -> Result<Vec<Json>, Failure> {
    let [first, second] = parts;
    let all = || first.iter().chain(second);
    all().take(30).chain(all().last()).map(json).collect()
}

/// Memory for a number of an argument, in bytes: the number, its value of 32 bytes in a list, and its entry among the
/// arguments.
const BYTES_PER_NUMBER: usize = 64;

/// Returns one camera, point, weight and feature, repeated.
fn bundle(input: &Input<'_>) -> Result<ba::Problem, Failure> {
    let count = |name| input.size(name, 1, 1 << 32).map(|n| n as usize);
    let (n, m, p) = (count("n")?, count("m")?, count("p")?);
    let (camera, point, weight, seen) =
        (input.vector("cam")?, input.vector("x")?, input.real("w")?, input.vector("feat")?);
    // An observation also has a weight, a camera and a point.
    let parts = [(n, camera.len()), (m, point.len()), (p, seen.len().saturating_add(3))];
    let numbers = parts.iter().fold(0, |sum: usize, (n, len)| sum.saturating_add(n.saturating_mul(len + 1)));
    // Missing memory is reported before anything is written.
    let room = Vec::<[u8; BYTES_PER_NUMBER]>::new().try_reserve_exact(numbers);
    room.map_err(|_| format!("there is not enough memory for {numbers} numbers; `n`, `m` and `p` are too large"))?;
    Ok(ba::Problem {
        cameras: vec![camera; n],
        points: vec![point; m],
        weights: vec![weight; p],
        seen: vec![seen; p],
        observations: (0..p).map(|i| (i % n, i % m)).collect(),
    })
}

pub const LSTM: Task = Task {
    module: "lstm",
    name: "objective",
    function: || function(lstm::SOURCE, "lstm"),
    derive: Function::value,
    size: None,
    unrolled: NO_SIZES,
    args: |input| {
        let names = ["main_params", "extra_params", "state", "sequence"];
        names.into_iter().map(|name| input.matrix(name).map(Value::from)).collect()
    },
    output: SCALAR,
};

pub const LSTM_JACOBIAN: Task = Task {
    name: "jacobian",
    derive: |f| f.gradient().by(&["main", "extra"]),
    output: |_, prepared| output::row(&[prepared.result(0), prepared.result(1)].concat()),
    ..LSTM
};
