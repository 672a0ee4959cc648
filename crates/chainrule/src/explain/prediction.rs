//! Predicted time of compiled code, and the choices for its loops, printed by `chainrule derive --explain`.
//!
//! The time of the function counts what a processor does at the same time, and cache lines. The times of loops are sums
//! of weights, by which the compiler chooses between their forms.

use crate::guard::guard;
use crate::passes::{Passes, Program, Watch};
use crate::{CompileOptions, Function, Result};
use chainrule_ir::Value;
use chainrule_kernel::weights::{self, WEIGHTS};
use chainrule_kernel::{LoopAccount, LoopForm, account, predicted_time};
use std::fmt;

/// Predicted time of a function, and of each of its loops in each form. Printed, it is a table of loops.
///
/// ```
/// use chainrule::{CompileOptions, Module};
/// let text = "let f = fun (x : [n]Double) -> sum n (fun i -> exp x[i])";
/// let f = Module::from_text("f.ft", text)?.function("f")?;
/// let x = vec![1.0; 1000].into();
/// let prediction = f.prediction(&CompileOptions::default(), Some(&[x]))?;
/// let exponentials = &prediction.loops[0];
/// assert!(exponentials.lanes_ns < Some(exponentials.sequence_ns));
/// assert!(prediction.ns > 100.0 && prediction.is_at_sizes);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Prediction {
    /// Name of the function.
    pub function: String,
    /// Predicted time of one call, in nanoseconds.
    pub ns: f64,
    /// Whether sizes are those of arguments; otherwise loops of unknown length are assumed to have 16 iterations.
    pub is_at_sizes: bool,
    /// Loops in the order of the code, outer ones first.
    pub loops: Vec<PredictedLoop>,
}

/// Loop with its predicted times in one call.
#[derive(Clone, PartialEq, Debug)]
pub struct PredictedLoop {
    /// Number of loops around it.
    pub depth: usize,
    /// Number of iterations, in sizes and in the indices `i`, `j`, ... of loops around it; `?` stands for other
    /// integers.
    pub count: String,
    /// Time in sequence, in nanoseconds.
    pub sequence_ns: f64,
    /// Time in sequence with the loops inside of it in lanes, if that is less.
    pub inside_ns: Option<f64>,
    /// Time in lanes, if its iterations are independent.
    pub lanes_ns: Option<f64>,
    /// Form that was chosen: `in lanes`, `in sequence, tiles of 4`.
    pub form: String,
}

impl Function {
    /// Returns the predicted time of the code compiled with `options`, with the choices for its loops: at the sizes of
    /// `args`, or at assumed sizes. Takes the time of compiling.
    ///
    /// # Errors
    /// Fails if the function cannot be compiled, or the arguments do not match.
    pub fn prediction(&self, options: &CompileOptions, args: Option<&[Value<f64>]>) -> Result<Prediction> {
        let sizes = match args {
            Some(args) => Some(self.compile_with(options)?.prepare(args)?.sizes().values().to_vec()),
            None => None,
        };
        let (mut loops, mut ns) = (Vec::new(), 0.0);
        let mut see = |pass: &str, program: Program<'_>| {
            let Program::Kernel(kernel) = program else { return };
            if pass == BEFORE_LANES {
                loops = account(kernel, self.semantics(), sizes.as_deref());
            }
            ns = predicted_time(kernel, sizes.as_deref(), weights::of_machine());
        };
        guard(|| Passes::from(options).watched(self, &mut Watch { callback: Some(&mut see), ..Watch::default() }))?;
        Ok(Prediction {
            function: self.name().to_string(),
            ns,
            is_at_sizes: sizes.is_some(),
            loops: loops.into_iter().map(PredictedLoop::from).collect(),
        })
    }
}

/// Pass before the vectoriser.
const BEFORE_LANES: &str = "pack";

impl From<LoopAccount> for PredictedLoop {
    fn from(it: LoopAccount) -> Self {
        let ns = |units: f64| units * WEIGHTS.unit_ns;
        let mut form = match it.form {
            LoopForm::Sequence => "in sequence".to_owned(),
            LoopForm::Lanes(1) => "in lanes".to_owned(),
            LoopForm::Lanes(blocks) => format!("in lanes, {blocks} blocks at once"),
            LoopForm::InLanes => "in the lanes of a loop around it".to_owned(),
        };
        if let Some((of, is_packed)) = it.tile {
            form.push_str(&format!(", tiles of {of}{}", if is_packed { ", packed" } else { "" }));
        }
        Self {
            depth: it.depth,
            count: it.count,
            sequence_ns: ns(it.sequence),
            inside_ns: it.inside.map(ns),
            lanes_ns: it.lanes.map(ns),
            form,
        }
    }
}

/// Returns a time in nanoseconds with its unit, in three digits.
#[must_use]
pub fn shown_time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = if self.is_at_sizes || self.loops.is_empty() { "" } else { ", where unknown sizes are 16" };
        writeln!(f, "predicted time of `{}`{sizes}: {}", self.function, shown_time(self.ns))?;
        if self.loops.is_empty() {
            return Ok(());
        }
        let time = |ns: Option<f64>| ns.map_or_else(String::new, shown_time);
        let head = ["loop of", "in sequence", "loops inside in lanes", "in lanes", "chosen"].map(str::to_owned);
        let rows = self.loops.iter().map(|it| {
            let times = [Some(it.sequence_ns), it.inside_ns, it.lanes_ns].map(time);
            let [sequence, inside, lanes] = times;
            [format!("{:1$}{2}", "", 2 * it.depth, it.count), sequence, inside, lanes, it.form.clone()]
        });
        let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
        let widths: [usize; 5] = std::array::from_fn(|k| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or(0));
        for [name, sequence, inside, lanes, form] in &rows {
            let [a, b, c, d, _] = widths;
            writeln!(f, "  {name:<a$}  {sequence:>b$}  {inside:>c$}  {lanes:>d$}  {form}")?;
        }
        Ok(())
    }
}
