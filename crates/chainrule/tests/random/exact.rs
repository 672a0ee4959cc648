//! Exact results of programs, and their sensitivity to rounding: no test compares digits that a program loses.

use crate::values::doubles;
use chainrule::Value;
use chainrule_ir::{self as ir, evaluate};
use chainrule_ops::{Algebra, Big, F64, Op, Precise, Type, partial};

/// Tolerance relative to the largest number: programs are tame.
pub const TOLERANCE: f64 = 1e-9;

/// Maximum ratio of a rounding error to that of the evaluator in doubles.
pub const ROUNDINGS: f64 = 100.0;

/// A few roundings.
const NUDGE: f64 = 4.0 * f64::EPSILON;

/// Returns whether a difference is within a bound; NaN is not.
pub fn within(off: f64, most: f64) -> bool {
    off.abs() <= most
}

/// Reference result of a program, in doubles; in extended precision on request.
pub struct Exact {
    function: ir::Function,
    args: Vec<Value<f64>>,
    pub value: Value<f64>,
    /// Whether all operators had finite derivatives at their arguments.
    pub smooth: bool,
}

impl Exact {
    /// Returns `None` if there is no value, or an intermediate number is not finite: then the program has no value on
    /// real numbers, in which `x / x` is 1.
    pub fn new(function: &ir::Function, args: &[Value<f64>]) -> Option<Self> {
        let (value, Watched { largest, smooth }) = seen(function, args)?;
        largest.is_finite().then(|| Self { function: function.clone(), args: args.to_vec(), value, smooth })
    }

    /// Checks that all numbers equal those of the program up to rounding. Numbers that are far off are compared with
    /// those in extended precision: if the evaluator in doubles loses many digits, a larger loss is accepted.
    pub fn near(&self, found: &[Value<f64>]) -> Result<(), String> {
        let (found, doubles) = (doubles(found), doubles(std::slice::from_ref(&self.value)));
        if found.len() != doubles.len() {
            return Err(format!("{} numbers, not {}", found.len(), doubles.len()));
        }
        let largest = doubles.iter().map(|x| x.abs()).fold(1.0, f64::max);
        let far = |exact: &[f64], most: f64| (0..found.len()).find(|i| !within(found[*i] - exact[*i], most));
        if far(&doubles, TOLERANCE * largest).is_none() {
            return Ok(());
        }
        let (exact, lost) = self.precisely()?;
        match far(&exact, TOLERANCE * largest + ROUNDINGS * lost) {
            Some(i) => Err(format!("number {i} is {}, not {}, {} in doubles", found[i], exact[i], doubles[i])),
            None => Ok(()),
        }
    }

    /// Returns the numbers in extended precision, and the maximum error of those in doubles, or their change if
    /// arguments and results of operations are perturbed by a few roundings: a chaotic loop may be accurate by chance.
    pub fn precisely(&self) -> Result<(Vec<f64>, f64), String> {
        let mut precise = Precise::new();
        let args: Vec<_> = self.args.iter().map(|arg| arg.map(&mut |x: &f64| precise.from_f64(*x))).collect();
        let exact = evaluate(&self.function, &mut precise, &args);
        let exact = exact.map_err(|e| format!("not in extended precision: {e}"))?;
        let exact: Vec<f64> = exact.reals().iter().map(|x| precise.as_f64(x)).collect();
        let values = doubles(std::slice::from_ref(&self.value));
        let lost = Shaken::most(|mut shaken| {
            let moved: Vec<Value<f64>> = self.args.iter().map(|arg| arg.map(&mut |x: &f64| shaken.moved(*x))).collect();
            let moved = evaluate(&self.function, &mut shaken, &moved).unwrap_or_else(|_| self.value.clone());
            Ok(lost(&values, &doubles(&[moved]), &exact))
        })?;
        Ok((exact, lost))
    }
}

/// Returns the maximum difference of `values` from `exact`, or from `moved`, in which every operation rounds otherwise.
pub fn lost(values: &[f64], moved: &[f64], exact: &[f64]) -> f64 {
    let off = values.iter().zip(moved).zip(exact).map(|((x, moved), exact)| (x - exact).abs().max((x - moved).abs()));
    off.fold(0.0, f64::max)
}

/// Returns the value of a program in doubles, with observations.
pub fn seen(function: &ir::Function, args: &[Value<f64>]) -> Option<(Value<f64>, Watched)> {
    let mut watched = Watched { largest: 0.0, smooth: true };
    let value = evaluate(function, &mut watched, args).ok()?;
    Some((value, watched))
}

/// Algebra of doubles with observations.
pub struct Watched {
    /// Largest number; infinite for NaN.
    pub largest: f64,
    /// Whether all operators had finite derivatives at their arguments.
    pub smooth: bool,
}

impl Watched {
    fn see(&mut self, x: f64) -> f64 {
        self.largest = if x.is_nan() { f64::INFINITY } else { self.largest.max(x.abs()) };
        x
    }
}

impl Algebra for Watched {
    type Value = f64;

    fn constant(&mut self, c: f64) -> f64 {
        self.see(c)
    }

    fn apply(&mut self, op: Op, args: &[f64]) -> f64 {
        let value = F64.apply(op, args);
        self.smooth &= (0..op.partials().len()).all(|i| partial(&mut F64, op, i, args, &value).is_finite());
        self.see(value)
    }

    fn to_f64(&self, value: &f64) -> Option<f64> {
        Some(*value)
    }
}

/// Algebra of doubles in which rounding operations have a random additional error of a few roundings.
pub struct Shaken(u64);

impl Shaken {
    /// Returns the maximum loss in several samples: a single one may leave the relevant number almost unchanged.
    pub fn most(mut lost: impl FnMut(Self) -> Result<f64, String>) -> Result<f64, String> {
        (0..4).try_fold(0.0, |most: f64, sample| Ok(most.max(lost(Self(sample))?)))
    }

    /// Returns `x`, perturbed by a few roundings.
    pub fn moved(&mut self, x: f64) -> f64 {
        // A linear congruential generator: Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x * (1.0 + NUDGE * ((self.0 >> 32) as f64 / 2f64.powi(31) - 1.0))
    }

    /// Does the same for a constant: if it is not an integer, it may be the result of constant folding.
    fn moved_constant(&mut self, c: f64) -> f64 {
        if c.fract() == 0.0 { c } else { self.moved(c) }
    }
}

/// Extended precision in which constants that may have been rounded are perturbed by a few roundings of doubles.
pub struct RoundedConstants<'a>(pub &'a mut Precise, pub Shaken);

impl Algebra for RoundedConstants<'_> {
    type Value = Big;

    fn constant(&mut self, c: f64) -> Big {
        self.0.from_f64(self.1.moved_constant(c))
    }

    fn apply(&mut self, op: Op, args: &[Big]) -> Big {
        self.0.apply(op, args)
    }

    fn to_f64(&self, value: &Big) -> Option<f64> {
        self.0.to_f64(value)
    }
}

/// Returns whether an operator rounds: not if it returns an argument, an integer or a truth value.
fn rounds(op: Op) -> bool {
    use Op::{Abs, Ceil, Floor, Max, Min, Neg, Quot, Select, Sign};
    op.row().result == Type::Num && !matches!(op, Abs | Ceil | Floor | Max | Min | Neg | Quot | Select | Sign)
}

impl Algebra for Shaken {
    type Value = f64;

    fn constant(&mut self, c: f64) -> f64 {
        self.moved_constant(c)
    }

    fn apply(&mut self, op: Op, args: &[f64]) -> f64 {
        let value = F64.apply(op, args);
        if rounds(op) { self.moved(value) } else { value }
    }

    fn to_f64(&self, value: &f64) -> Option<f64> {
        Some(*value)
    }
}
