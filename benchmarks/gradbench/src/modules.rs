//! The functions of all modules, with their programs.

mod adbench;
mod det;

use crate::output;
use crate::task::{Failure, Output, Task};
use chainrule::{Error, Function, Module};
use chainrule_example_micro as micro;

/// All tasks, grouped by module.
pub const TASKS: &[Task] = &[
    SQUARE,
    DOUBLE,
    Task { name: "primal", derive: Function::value, output: SCALAR, ..LLSQ },
    LLSQ,
    Task { name: "primal", derive: Function::value, output: SCALAR, ..LSE },
    LSE,
    ODE,
    ODE_GRADIENT,
    det::PRIMAL,
    det::GRADIENT,
    COST,
    DIRECTION,
    adbench::GMM,
    adbench::GMM_JACOBIAN,
    adbench::BA,
    adbench::BA_JACOBIAN,
    adbench::LSTM,
    adbench::LSTM_JACOBIAN,
];

/// Returns the function `name` of a program.
fn function(source: &str, name: &str) -> Result<Function, Error> {
    Module::from_text("program.ft", source)?.function(name)
}

/// Compiled once for all sizes.
const NO_SIZES: fn(i64) -> Vec<(&'static str, i64)> = |_| Vec::new();

/// Outputs of a result that is a number, and of one that is a vector.
const SCALAR: Output = |_, prepared| output::scalar(prepared);
const VECTOR: Output = |_, prepared| output::vector(prepared);

const SQUARE: Task = Task {
    module: "hello",
    name: "square",
    function: || function(include_str!("../programs/hello.ft"), "square"),
    derive: Function::value,
    size: None,
    unrolled: NO_SIZES,
    args: |input| Ok(vec![input.itself()?.into()]),
    output: SCALAR,
};

/// Derivative of the square.
const DOUBLE: Task = Task { name: "double", derive: |f| f.gradient().by(&["x"]), ..SQUARE };

const LLSQ: Task = Task {
    module: "llsq",
    name: "gradient",
    function: || function(micro::LLSQ, "llsq"),
    derive: |f| f.gradient().by(&["x"]),
    size: None,
    unrolled: NO_SIZES,
    args: |input| Ok(vec![input.vector("x")?.into(), input.size("n", 2, i64::MAX)?.into()]),
    output: VECTOR,
};

const LSE: Task = Task {
    module: "lse",
    name: "gradient",
    function: || function(micro::LSE, "lse"),
    derive: |f| f.gradient().by(&["x"]),
    size: None,
    unrolled: NO_SIZES,
    args: |input| Ok(vec![not_empty("x", input.vector("x")?)?.into()]),
    output: VECTOR,
};

const ODE: Task = Task {
    module: "ode",
    name: "primal",
    function: || function(micro::ODE, "ode"),
    derive: Function::value,
    size: None,
    unrolled: NO_SIZES,
    args: |input| Ok(vec![not_empty("x", input.vector("x")?)?.into(), input.size("s", 1, i64::MAX)?.into()]),
    output: VECTOR,
};

const ODE_GRADIENT: Task =
    Task { name: "gradient", function: || function(micro::ODE, "odeLast"), derive: |f| f.gradient().by(&["x"]), ..ODE };

const COST: Task = Task {
    module: "kmeans",
    name: "cost",
    function: || function(micro::KMEANS, "cost"),
    derive: Function::value,
    size: None,
    unrolled: NO_SIZES,
    args: |input| {
        let centroids = not_empty("centroids", input.matrix("centroids")?)?;
        Ok(vec![input.matrix("points")?.into(), centroids.into()])
    },
    output: SCALAR,
};

const DIRECTION: Task = Task {
    name: "dir",
    function: || function(micro::KMEANS, "direction"),
    output: |input, prepared| {
        let centroids = input.matrix("centroids")?;
        output::matrix(prepared.result(0), centroids.len(), centroids.first().map_or(0, Vec::len))
    },
    ..COST
};

fn not_empty<T>(name: &str, items: Vec<T>) -> Result<Vec<T>, Failure> {
    if items.is_empty() { Err(format!("`{name}` is empty").into()) } else { Ok(items) }
}
