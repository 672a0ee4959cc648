//! A function of a module, from its text to its output.

use crate::input::Input;
use chainrule::{Compiled, Derivation, Error, Function, Prepared, Value};
use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// Reason why a message cannot be answered, for the answer's `error`.
#[derive(Debug)]
pub struct Failure(pub String);

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// A function that GradBench requests.
pub struct Task {
    /// Module of the function.
    pub module: &'static str,
    /// Name in the module.
    pub name: &'static str,
    /// Returns the program's function, from its text.
    pub function: fn() -> Result<Function, Error>,
    /// Requests its derivative.
    pub derive: fn(&Function) -> Derivation,
    /// Size that it is compiled for, if any.
    pub size: Option<Asked<i64>>,
    /// Sizes known to the compiler; empty if loops are kept nevertheless.
    pub unrolled: fn(i64) -> Vec<(&'static str, i64)>,
    /// Arguments. Those known to the compiler are last.
    pub args: Asked<Vec<Value<f64>>>,
    /// Converts the results of a run to the output.
    pub output: Output,
}

/// A value from the input.
pub type Asked<T> = fn(&Input<'_>) -> Result<T, Failure>;

/// Conversion of the results of a run to the output.
pub type Output = fn(&Input<'_>, &Prepared<'_>) -> Result<Json, Failure>;

/// A compiled task.
pub struct Ready {
    compiled: Compiled,
    arguments: usize,
}

/// Minimum number and duration of runs.
struct Least {
    runs: i64,
    seconds: f64,
}

impl Task {
    /// Compiles from the text to running code, for one size if given.
    ///
    /// # Errors
    /// Fails if the program does not permit the size.
    pub fn compile(&self, size: Option<i64>) -> Result<Ready, Failure> {
        let mut function = (self.function)()?;
        let sizes = size.map(self.unrolled).unwrap_or_default();
        if !sizes.is_empty() {
            function = function.unrolled(&sizes)?;
        }
        let compiled = (self.derive)(&function).compile()?;
        Ok(Ready { compiled, arguments: function.inputs().len() })
    }
}

impl Ready {
    /// Returns the output and the times of all runs: at least `min_runs`, until they take `min_seconds` in total.
    ///
    /// # Errors
    /// Fails if the arguments do not fit, or the program fails.
    pub fn run(
        &self,
        task: &Task,
        input: &Input<'_>,
        mut args: Vec<Value<f64>>,
    ) -> Result<(Json, Vec<Duration>), Failure> {
        let least = Least { runs: input.at_least("min_runs")?, seconds: input.seconds("min_seconds")? };
        args.truncate(self.arguments);
        let mut prepared = self.compiled.prepare(&args)?;
        let (mut times, mut total) = (Vec::new(), 0.0);
        while times.is_empty() || (times.len() as i64) < least.runs || total < least.seconds {
            let start = Instant::now();
            prepared.run()?;
            let time = start.elapsed();
            total += time.as_secs_f64();
            times.push(time);
        }
        Ok(((task.output)(input, &prepared)?, times))
    }
}
