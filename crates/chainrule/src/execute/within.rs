//! Reverse mode within a bound of memory: all states of loops are kept if they fit, else the maximum number of
//! checkpoints.
//!
//! In: a request, arguments of the intended sizes, a bound in bytes. Out: executable code, and the number of
//! checkpoints of each loop in it.
//!
//! Memory is planned before execution, so the planner determines the number: the function is generated with all states
//! kept, and with four and with eight checkpoints. The memory of four additional ones, with every loop's stack counted
//! at any nesting, determines how many fit; that number is generated and measured again. (One checkpoint may take as
//! much as two: a stack of one cannot be updated in place.)

use crate::{CompileOptions, Compiled, Derivation, Error, Function, Result};
use chainrule_ir::Value;

/// The memory per checkpoint is computed from this number, and from twice as many.
const SAMPLE: u32 = 4;

/// Maximum number of checkpoints.
const MAX_CHECKPOINTS: usize = 1 << 24;

/// Executable code within a bound of memory; created by [`Derivation::compile_within`] and
/// [`Function::compile_within`].
#[derive(Debug)]
pub struct Within {
    /// Code. It runs at any sizes; the bound applies to those for which it was generated.
    pub compiled: Compiled,
    /// Maximum number of states of each loop in memory; `None` for all, except of loops that have [checkpoints by
    /// default](Derivation::checkpoints).
    pub checkpoints: Option<u32>,
}

impl Derivation {
    /// Compiles the derived function such that the states of loops that reverse mode keeps take at most `bytes` at the
    /// sizes of `args`, the arguments of the derived function: all states if they fit, otherwise as many
    /// [`checkpoints`](Self::checkpoints) as do, the same number for each loop. Other memory does not count. On several
    /// threads, each has its own states for loops in its part; they are counted once.
    ///
    /// ```
    /// use chainrule::{CompileOptions, Module, Value};
    /// let text = "let f = fun (x : [n]Double) (s : Card) ->
    ///   vectorSum (ifold (fun y _ -> build n (fun i -> y[i] + x[i] * (1 - y[i]) * 0.01)) x s)";
    /// let gradient = Module::from_text("f.ft", text)?.function("f")?.gradient();
    /// let steps = |s: i64| [vec![0.5; 10].into(), Value::Int(s)];
    /// // 10,000 states of 10 numbers would take 800,000 bytes.
    /// let within = gradient.compile_within(4096, &steps(10_000), &CompileOptions::default())?;
    /// assert!(within.checkpoints.is_some_and(|c| c > 20));
    /// assert_eq!(within.compiled.call(&steps(10_000))?, gradient.compile()?.call(&steps(10_000))?);
    /// // 40 do not.
    /// assert_eq!(gradient.compile_within(4096, &steps(40), &CompileOptions::default())?.checkpoints, None);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`function`](Self::function) and [`Compiled::prepare`]; a bound into which one state of each loop
    /// does not fit.
    pub fn compile_within(&self, bytes: usize, args: &[Value<f64>], options: &CompileOptions) -> Result<Within> {
        within(bytes, args, |checkpoints| {
            let mut derivation = self.clone();
            derivation.checkpoints = checkpoints;
            derivation.function()?.compile_with(&CompileOptions { checkpoints, ..*options })
        })
    }
}

impl Function {
    /// Does the same for derivatives in the text of the program.
    ///
    /// # Errors
    /// The errors of [`Derivation::compile_within`].
    pub fn compile_within(&self, bytes: usize, args: &[Value<f64>], options: &CompileOptions) -> Result<Within> {
        within(bytes, args, |checkpoints| self.compile_with(&CompileOptions { checkpoints, ..*options }))
    }
}

fn within(bytes: usize, args: &[Value<f64>], make: impl Fn(Option<u32>) -> Result<Compiled>) -> Result<Within> {
    let room = bytes / size_of::<f64>();
    let compiled = make(None)?;
    let all = compiled.n_numbers(args);
    let [few, more] = [SAMPLE, 2 * SAMPLE].map(|n| make(Some(n)).and_then(|code| code.n_numbers(args)));
    let (few, more) = (few?, more?);
    let sample = more.saturating_sub(few);
    let others = few.saturating_sub(sample);
    let limit = others.saturating_add(room);
    if sample == 0 || all.is_ok_and(|all| all <= limit) {
        return Ok(Within { compiled, checkpoints: None });
    }
    let mut n = (room / sample.div_ceil(SAMPLE as usize)).clamp(1, MAX_CHECKPOINTS);
    // For derivatives of derivatives, the states contain the checkpoints of inner ones: doubling the number more than
    // doubles the memory.
    loop {
        let checkpoints = u32::try_from(n).ok();
        let compiled = make(checkpoints)?;
        let numbers = compiled.n_numbers(args)?;
        if numbers <= limit {
            return Ok(Within { compiled, checkpoints });
        }
        if n == 1 {
            let least = numbers.saturating_sub(others).saturating_mul(size_of::<f64>());
            return Err(Error::request(
                format!("states of loops take {least} bytes at least, more than {bytes}"),
                "allow more memory for them, or make the arguments smaller",
            ));
        }
        n /= 2;
    }
}
