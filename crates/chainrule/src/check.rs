//! Derivatives compared with forward mode and central differences in extended precision.
//!
//! The references do not use accumulation: forward mode runs dual numbers over the function's own graph, differences
//! evaluate the function alone. For functions that keep their loops, the reference evaluator runs both. Both have 115
//! digits. The derived program is run as compiled, in doubles, and evaluated in 115 digits: a difference in digits is
//! an error, a difference only in doubles is rounding.

mod duals;
mod loops;

use crate::function::{Body, ScalarBody};
use crate::{Derivation, Error, Function, Result};
use chainrule_base::{Diagnostic, count};
use chainrule_graph::{Graph, NodeId, evaluate};
use duals::tangents;
use std::borrow::Cow;
use std::fmt;

pub use chainrule_ops::{Algebra, Big, Precise};

/// Points at which a derivative is compared.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of points.
    pub points: usize,
    /// Range of every coordinate.
    pub range: (f64, f64),
    /// Seed of the points.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { points: 5, range: (0.1, 1.5), seed: 0 }
    }
}

/// Agreement of a derivative with its references.
#[derive(Clone, PartialEq, Debug)]
pub struct Agreement {
    /// Number of points.
    pub points: usize,
    /// Number of elements of the derivative that were compared at each.
    pub elements: usize,
    /// Derived program in doubles against forward mode in extended precision: the largest difference relative to the
    /// largest element; if all of them are zero, to the largest value over the largest argument or 1.
    pub from_forward: f64,
    /// The same, with the derived program in extended precision as well: the part that rounding in doubles does not
    /// explain. Constants and users' functions are still doubles.
    pub precisely: f64,
    /// Forward mode against central differences, both in extended precision.
    pub from_differences: f64,
}

impl Agreement {
    /// Returns the largest of the errors.
    #[must_use]
    pub fn worst(&self) -> f64 {
        worse(worse(self.from_forward, self.precisely), self.from_differences)
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} at {}", count(self.elements, "element"), count(self.points, "point"))?;
        writeln!(f, "program in doubles against forward mode in 115 digits: {:.1e}", self.from_forward)?;
        writeln!(f, "program in 115 digits against forward mode: {:.1e}", self.precisely)?;
        writeln!(f, "forward mode against central differences, in 115 digits: {:.1e}", self.from_differences)
    }
}

/// Maximum of [`Settings::points`].
pub const MAX_POINTS: usize = 1_000_000;

/// Compares the Jacobian (or gradient) that `derivation` requests of `function` at random points. Sizes and integer
/// arguments of a function that keeps its loops are small numbers for which it has a value.
///
/// # Errors
/// Fails if the derivation fails, or requests anything but a dense Jacobian or gradient; for more than [`MAX_POINTS`]
/// points.
pub fn compare(function: &Function, derivation: &Derivation, settings: &Settings) -> Result<Agreement> {
    if settings.points > MAX_POINTS {
        let (n, help) = (settings.points, format!("take {MAX_POINTS} at most"));
        return Err(Error::request(format!("a comparison at {n} points does not end"), help));
    }
    if let Cow::Owned(selected) = derivation.with_selected_results()? {
        return compare(selected.differentiated(), &selected, settings);
    }
    let derived = derivation.function()?;
    if let Body::Array(body) = &function.body
        && (derived.keeps_loops() || matches!(function.to_differentiate()?.body, Body::Array(_)))
    {
        return loops::compare(function, body, derivation, settings);
    }
    let body = scalar(function)?;
    let lengths: Vec<usize> = body.inputs.iter().map(|port| port.nodes.len()).collect();
    let mut noise = Noise(settings.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    let (lo, hi) = settings.range;
    let points: Vec<Vec<Vec<f64>>> = (0..settings.points)
        .map(|_| lengths.iter().map(|n| (0..*n).map(|_| lo + (hi - lo) * noise.next()).collect()).collect())
        .collect();
    compare_at(function, derivation, &derived, &points)
}

/// Returns the results of a straight-line function in any algebra, one list per output: in doubles, in 115 digits. A
/// slow and simple reference for compiled code. `inputs` has one list per input. Linear in the function's operations.
///
/// Users' functions take doubles, in all algebras whose elements are numbers.
///
/// # Errors
/// Fails if the function keeps its loops, or the lengths of `inputs` are not those of its inputs.
///
/// ```
/// use chainrule::check::{self, Precise};
/// use chainrule::{Function, vars};
/// let x = vars("x", 1);
/// let f = Function::new("f", &x, &(&x[0] + 1.0 - &x[0]))?;
/// let mut digits = Precise::new();
/// let tiny = digits.from_f64(1e-30);
/// let found = check::results_in(&f, &mut digits, &[vec![tiny]])?;
/// assert_eq!(digits.as_f64(&found[0][0]), 1.0);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn results_in<A: Algebra>(
    function: &Function,
    algebra: &mut A,
    inputs: &[Vec<A::Value>],
) -> Result<Vec<Vec<A::Value>>> {
    let body = scalar(function)?;
    let lengths = || body.inputs.iter().map(|port| port.nodes.len());
    if !lengths().eq(inputs.iter().map(Vec::len)) {
        let found: Vec<usize> = inputs.iter().map(Vec::len).collect();
        return Err(Error::request(
            format!("the inputs have {found:?} numbers, and those of `{}` others", function.name()),
            format!("give {:?}", lengths().collect::<Vec<_>>()),
        ));
    }
    let mut values = evaluate(&body.graph, algebra, &inputs.concat(), &body.roots()).map_err(Error::lone)?.into_iter();
    Ok(body.outputs.iter().map(|port| values.by_ref().take(port.nodes.len()).collect()).collect())
}

fn scalar(function: &Function) -> Result<&ScalarBody> {
    match &function.to_differentiate()?.body {
        Body::Scalar(body) => Ok(body),
        Body::Array(_) => Err(Error::request(
            format!("`{}` keeps its loops", function.name()),
            "unroll it for given sizes to compare its derivatives",
        )),
    }
}

/// Compares `derived`, which is `derivation` of `function`, at `points`, each with one list per input.
///
/// # Errors
/// The errors of [`compare`].
pub fn compare_at(
    function: &Function,
    derivation: &Derivation,
    derived: &Function,
    points: &[Vec<Vec<f64>>],
) -> Result<Agreement> {
    let body = scalar(function)?;
    let request = derivation.elements(body)?;
    let compiled = derived.compile()?;
    let mut agreement = Agreement {
        points: points.len(),
        elements: request.order.len(),
        from_forward: 0.0,
        precisely: 0.0,
        from_differences: 0.0,
    };
    let mut ctx = Precise::new();
    for point in points {
        let slices: Vec<&[f64]> = point.iter().map(Vec::as_slice).collect();
        let values: Vec<f64> = compiled.eval(&slices)?.into_iter().flatten().collect();
        if request.order.len() != values.len() {
            return Err(Error::request(
                "only a dense Jacobian or gradient is compared",
                "ask for `jacobian` or `gradient` alone",
            ));
        }
        let lists: Vec<Vec<Big>> = point.iter().map(|xs| xs.iter().map(|x| ctx.from_f64(*x)).collect()).collect();
        let precise = results_in(derived, &mut ctx, &lists)?.concat();
        let exact = lists.concat();
        let (mut forward, mut differences) = (Vec::new(), Vec::new());
        for column in &request.columns {
            forward.push(tangents(&body.graph, &mut ctx, &exact, *column, &request.rows).map_err(Error::lone)?);
            differences.push(difference(&body.graph, &mut ctx, &exact, *column, &request.rows).map_err(Error::lone)?);
        }
        let results = evaluate(&body.graph, &mut ctx, &exact, &request.rows).map_err(Error::lone)?;
        let scale = scale(&ctx, &forward, &results, &exact);
        for (((row, column), value), precise) in request.order.iter().zip(&values).zip(&precise) {
            let reference = &forward[*column][*row];
            let note = |error: &mut f64, found: &Big| {
                *error = worse(*error, ctx.as_f64(&ctx.sub(found, reference)).abs() / scale);
            };
            note(&mut agreement.from_forward, &ctx.from_f64(*value));
            note(&mut agreement.precisely, precise);
            note(&mut agreement.from_differences, &differences[*column][*row]);
        }
    }
    Ok(agreement)
}

/// Elements that are smaller than this, relative to values over arguments, are zeros, which cancellation of large terms
/// in 115 digits does not leave exactly zero.
const VANISHES: f64 = 1e-60;

/// Returns the reference magnitude of errors of a Jacobian: its largest element, or, if it vanishes, that of `results`
/// over `point`.
fn scale(ctx: &Precise, columns: &[Vec<Big>], results: &[Big], point: &[Big]) -> f64 {
    let largest = |all: &[Big]| all.iter().map(|x| ctx.as_f64(x).abs()).fold(f64::MIN_POSITIVE, f64::max);
    let element = columns.iter().map(|column| largest(column)).fold(f64::MIN_POSITIVE, f64::max);
    let typical = largest(results) / largest(point).max(1.0);
    if typical.is_finite() && element < VANISHES * typical { typical } else { element }
}

/// Returns the larger error; a NaN is the largest of all.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Returns central differences with a step of 1e-35: the error is that of the step squared, times third derivatives.
fn difference(
    graph: &Graph,
    ctx: &mut Precise,
    point: &[Big],
    column: usize,
    rows: &[NodeId],
) -> std::result::Result<Vec<Big>, Diagnostic> {
    let tiny = ctx.from_f64(1e-35);
    let mut moved = point.to_vec();
    moved[column] = ctx.add(&point[column], &tiny);
    let above = evaluate(graph, ctx, &moved, rows)?;
    moved[column] = ctx.sub(&point[column], &tiny);
    let below = evaluate(graph, ctx, &moved, rows)?;
    let run = ctx.add(&tiny, &tiny);
    Ok(above.iter().zip(&below).map(|(a, b)| ctx.div(&ctx.sub(a, b), &run)).collect())
}

/// Pseudorandom numbers in (0, 1): splitmix64.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
