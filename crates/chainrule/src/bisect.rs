//! The first pass that changes the results of a function, and a small program on which it does.
//!
//! In: an F~ program, the function to compile ([`Bisection::load`]), arguments. Out: the pass, the program before and
//! after it ([`Wrong`]), and a program that cannot be made smaller by removing a statement or a subexpression.

use crate::passes::{PassLevel, Seed};
use crate::{CompileOptions, Error, Function, Result, Snapshot};
use chainrule_base::Sources;
use chainrule_ir::Value;
use chainrule_syntax::{parse, print_module, reduce};

/// Maximum number of programs that [`Bisection::shrink`] tries.
const TRIES: usize = 3000;

/// A function whose passes are compared with the reference evaluator.
pub struct Bisection<'a> {
    /// Returns the function to compile of an F~ text, at its sizes, with its derivatives; `None` if there is none.
    pub load: &'a dyn Fn(&str) -> Option<Function>,
    /// Arguments of that function.
    pub args: &'a [Value<f64>],
    /// Options of its compilation.
    pub options: CompileOptions,
    /// Largest difference that is rounding, relative to the largest result.
    pub tolerance: f64,
    /// For tests: a fault planted after a pass.
    #[doc(hidden)]
    pub seed: Option<Seed>,
}

/// A pass that changes the results.
#[derive(Clone, PartialEq, Debug)]
pub struct Wrong {
    /// Name of the pass.
    pub pass: String,
    /// Form of the program after the pass.
    pub level: PassLevel,
    /// Form of the program before the pass.
    pub level_before: PassLevel,
    /// Listing before the pass.
    pub before: String,
    /// Listing after the pass.
    pub after: String,
    /// Results of the reference evaluator.
    pub expected: Vec<f64>,
    /// Results after the pass, or the reason why there are none.
    pub found: std::result::Result<Vec<f64>, String>,
}

/// Returns the largest difference of results, relative to the largest of them; `None` if their numbers differ.
#[must_use]
pub fn difference(expected: &[f64], found: &[f64]) -> Option<f64> {
    let scale = expected.iter().filter(|x| x.is_finite()).fold(1.0_f64, |scale, x| scale.max(x.abs()));
    let one = |(a, b): (&f64, &f64)| match a == b || (a.is_nan() && b.is_nan()) {
        true => 0.0,
        false if a.is_finite() && b.is_finite() => (a - b).abs() / scale,
        false => f64::INFINITY,
    };
    (expected.len() == found.len()).then(|| expected.iter().zip(found).map(one).fold(0.0, f64::max))
}

/// Returns the numbers of values, in order; truth values are 0 and 1.
#[must_use]
pub fn flatten(values: &[Value<f64>]) -> Vec<f64> {
    let mut numbers = Vec::new();
    let mut pending: Vec<&Value<f64>> = values.iter().rev().collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::Real(x) => numbers.push(*x),
            Value::Int(i) => numbers.push(*i as f64),
            Value::Bool(b) => numbers.push(f64::from(u8::from(*b))),
            Value::Array(items) | Value::Tuple(items) => pending.extend(items.iter().rev()),
        }
    }
    numbers
}

impl Bisection<'_> {
    /// Returns the first pass after which `function` has other results than the reference evaluator finds before all
    /// passes; `None` if there is none.
    ///
    /// # Errors
    /// Fails if the function cannot be compiled, or has no value for the arguments.
    pub fn first_wrong(&self, function: &Function) -> Result<Option<Wrong>> {
        let mut expected: Option<Result<Vec<f64>>> = None;
        let mut wrong: Option<Wrong> = None;
        let mut before = (String::new(), PassLevel::Array);
        let watch = &mut |snapshot: &Snapshot<'_>| {
            if wrong.is_some() || !snapshot.has_results() {
                return;
            }
            let found = snapshot.call(self.args).map(|values| flatten(&values));
            let listing = (snapshot.listing(), snapshot.level());
            match &expected {
                None => expected = Some(found),
                Some(Err(_)) => {}
                Some(Ok(expected)) => {
                    let found = found.map_err(|error| error.to_string());
                    let is_same = |found: &Vec<f64>| difference(expected, found).is_some_and(|d| d <= self.tolerance);
                    if !found.as_ref().is_ok_and(is_same) {
                        wrong = Some(Wrong {
                            pass: snapshot.pass.to_owned(),
                            level: listing.1,
                            level_before: before.1,
                            before: before.0.clone(),
                            after: listing.0.clone(),
                            expected: expected.clone(),
                            found,
                        });
                    }
                }
            }
            before = listing;
        };
        function.trace_seeded(&self.options, self.seed, watch)?;
        match expected {
            Some(Err(error)) => Err(error),
            _ => Ok(wrong),
        }
    }

    /// Returns a small program on which the same pass is still the first wrong one, and what is wrong there.
    ///
    /// # Errors
    /// Fails if the program does not parse, or no pass is wrong on it.
    pub fn shrink(&self, text: &str, wrong: &Wrong) -> Result<(String, Wrong)> {
        let reproduced = |text: &str| {
            let function = (self.load)(text)?;
            self.first_wrong(&function).ok().flatten().filter(|found| found.pass == wrong.pass)
        };
        let mut sources = Sources::new();
        let file = sources.add("program", text);
        let (module, diagnostics) = parse(&sources, file);
        if diagnostics.has_errors() {
            return Err(Error::program(diagnostics, &std::sync::Arc::new(sources)));
        }
        let small = print_module(&reduce::reduce(&module, TRIES, &mut |text| reproduced(text).is_some()));
        let text = if reproduced(&small).is_some() { small } else { text.to_owned() };
        match reproduced(&text) {
            Some(found) => Ok((text, found)),
            None => Err(Error::request(
                format!("the pass `{}` is right on this program", wrong.pass),
                "give the program on which it is wrong",
            )),
        }
    }
}
