//! What programs compute, and how much of it rounding may change: no test is right about digits that a program loses.

use crate::values::doubles;
use chainrule::Value;
use chainrule_ir::{self as ir, evaluate};
use chainrule_ops::{Algebra, Big, F64, Op, Precise, Type, partial};

/// Relative to the largest number: programs are tame.
pub const TOLERANCE: f64 = 1e-9;

/// How much more than the evaluator in doubles anything may lose to rounding.
pub const ROUNDINGS: f64 = 100.0;

/// A few roundings.
const NUDGE: f64 = 4.0 * f64::EPSILON;

/// A NaN is not within anything.
pub fn within(off: f64, most: f64) -> bool {
    off.abs() <= most
}

/// What a program means, in doubles; in extended precision where that is asked.
pub struct Exact {
    function: ir::Function,
    args: Vec<Value<f64>>,
    pub value: Value<f64>,
    /// Whether all operators came where their derivatives are finite.
    pub smooth: bool,
}

impl Exact {
    /// `None` where there is no value, or some number on the way is not finite: then there is none as a program on real numbers,
    /// in which `x / x` is 1.
    pub fn new(function: &ir::Function, args: &[Value<f64>]) -> Option<Self> {
        let (value, Watched { largest, smooth }) = seen(function, args)?;
        largest.is_finite().then(|| Self { function: function.clone(), args: args.to_vec(), value, smooth })
    }

    /// Whether all numbers are those of the program, but for rounding. What is far from them is compared with those in extended
    /// precision: a program in which the evaluator in doubles loses many digits is let lose some more.
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

    /// The numbers in extended precision, and how far those in doubles are from them at most, or move where arguments and results
    /// of operations move by a few roundings: a loop that is chaotic may end where it should by chance.
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

/// How far `values` are from `exact` at most, or from what they are where every operation rounds otherwise.
pub fn lost(values: &[f64], moved: &[f64], exact: &[f64]) -> f64 {
    let off = values.iter().zip(moved).zip(exact).map(|((x, moved), exact)| (x - exact).abs().max((x - moved).abs()));
    off.fold(0.0, f64::max)
}

/// The value of a program in doubles, and what was seen on the way.
pub fn seen(function: &ir::Function, args: &[Value<f64>]) -> Option<(Value<f64>, Watched)> {
    let mut watched = Watched { largest: 0.0, smooth: true };
    let value = evaluate(function, &mut watched, args).ok()?;
    Some((value, watched))
}

/// Doubles, with an eye on what comes by.
pub struct Watched {
    /// The largest number; a NaN is infinite.
    pub largest: f64,
    /// Whether all operators came where their derivatives are finite.
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

/// Doubles in which whatever rounds is off by up to a few roundings more, up or down, by chance.
pub struct Shaken(u64);

impl Shaken {
    /// The most that is lost in several samples: one of them may happen to move next to nothing the one number that matters.
    pub fn most(mut lost: impl FnMut(Self) -> Result<f64, String>) -> Result<f64, String> {
        (0..4).try_fold(0.0, |most: f64, sample| Ok(most.max(lost(Self(sample))?)))
    }

    /// `x`, off by a few roundings.
    pub fn moved(&mut self, x: f64) -> f64 {
        // A linear congruential generator: Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x * (1.0 + NUDGE * ((self.0 >> 32) as f64 / 2f64.powi(31) - 1.0))
    }

    /// The same of a constant: what is no integer may be the result of operations on numbers alone, made when the graph was.
    fn moved_constant(&mut self, c: f64) -> f64 {
        if c.fract() == 0.0 { c } else { self.moved(c) }
    }
}

/// Extended precision in which constants that may have been rounded are off by a few roundings of doubles.
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

/// What gives one of its arguments, an integer or a truth value does not round.
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
