//! A function of a module, from its text to its output.

use crate::input::Input;
use chainrule::{Compiled, Derivation, Error, Function, Prepared, Value};
use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// Why a message cannot be answered, for the answer's `error`.
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

/// A function that GradBench asks for.
pub struct Task {
    /// Of which module.
    pub module: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// The program's function, from its text.
    pub function: fn() -> Result<Function, Error>,
    /// What is derived of it.
    pub derive: fn(&Function) -> Derivation,
    /// The size it is compiled for, if it is compiled for one.
    pub size: Option<Asked<i64>>,
    /// The sizes that are told to the compiler for it; none where loops are kept all the same.
    pub unrolled: fn(i64) -> Vec<(&'static str, i64)>,
    /// The arguments. Those that are told to the compiler are last.
    pub args: Asked<Vec<Value<f64>>>,
    /// The output, from the results of a run.
    pub output: Output,
}

/// What the input says.
pub type Asked<T> = fn(&Input<'_>) -> Result<T, Failure>;

/// How the results of a run become the output.
pub type Output = fn(&Input<'_>, &Prepared<'_>) -> Result<Json, Failure>;

/// A task compiled.
pub struct Ready {
    compiled: Compiled,
    arguments: usize,
}

/// How long a function is to be run.
struct Least {
    runs: i64,
    seconds: f64,
}

impl Task {
    /// From the text to running code; for one size only, where there is one.
    ///
    /// # Errors
    /// When the program does not allow the size.
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
    /// The output and the times of all runs: at least `min_runs`, and until they take `min_seconds` together.
    ///
    /// # Errors
    /// When the arguments do not fit, or the program fails.
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
