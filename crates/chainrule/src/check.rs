//! Derivatives compared with forward mode and central differences in extended precision.
//!
//! The references do not use accumulation: forward mode runs dual numbers over the function's own graph,
//! differences evaluate the function alone. Both have 115 digits, so what is seen is the error of the
//! derived program in doubles.

mod duals;

use crate::function::{Body, ScalarBody};
use crate::{Derivation, Error, Function, Result};
use chainrule_base::{Diagnostic, count};
use chainrule_graph::{Graph, NodeId, evaluate};
use chainrule_ops::{Big, Precise};
use duals::tangents;
use std::fmt;

/// Where a derivative is compared.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many points.
    pub points: usize,
    /// Where they lie, in every coordinate.
    pub range: (f64, f64),
    /// Which points.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { points: 5, range: (0.1, 1.5), seed: 0 }
    }
}

/// How far a derivative agrees with its references.
#[derive(Clone, PartialEq, Debug)]
pub struct Agreement {
    /// How many points were looked at.
    pub points: usize,
    /// How many elements of the derivative were compared at each.
    pub elements: usize,
    /// Derived program in doubles against forward mode in extended precision: the largest difference
    /// relative to the largest element; where all of them are zero, to the largest value over the largest argument or 1.
    pub from_forward: f64,
    /// Forward mode against central differences, both in extended precision.
    pub from_differences: f64,
}

impl Agreement {
    /// The larger of both errors.
    #[must_use]
    pub fn worst(&self) -> f64 {
        self.from_forward.max(self.from_differences)
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} at {}", count(self.elements, "element"), count(self.points, "point"))?;
        writeln!(f, "program in doubles against forward mode in 115 digits: {:.1e}", self.from_forward)?;
        writeln!(f, "forward mode against central differences, in 115 digits: {:.1e}", self.from_differences)
    }
}

/// Compares the Jacobian (or gradient) that `derivation` asks for of `function` at random points.
///
/// # Errors
/// When the derivation fails, asks for anything but a dense Jacobian or gradient, or keeps loops.
pub fn compare(function: &Function, derivation: &Derivation, settings: &Settings) -> Result<Agreement> {
    let derived = derivation.function()?;
    let body = scalar(function)?;
    let lengths: Vec<usize> = body.inputs.iter().map(|port| port.nodes.len()).collect();
    let mut noise = Noise(settings.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    let (lo, hi) = settings.range;
    let points: Vec<Vec<Vec<f64>>> = (0..settings.points)
        .map(|_| lengths.iter().map(|n| (0..*n).map(|_| lo + (hi - lo) * noise.next()).collect()).collect())
        .collect();
    compare_at(function, derivation, &derived, &points)
}

/// The largest error of `derived`, which is `derivation` of `function`, at `points`: relative to the
/// largest element (see [`Agreement`]), against forward mode in extended precision, itself compared with differences.
///
/// # Errors
/// As [`compare`].
pub fn derivative_error(
    function: &Function,
    derivation: &Derivation,
    derived: &Function,
    points: &[Vec<Vec<f64>>],
) -> Result<f64> {
    compare_at(function, derivation, derived, points).map(|agreement| agreement.worst())
}

fn scalar(function: &Function) -> Result<&ScalarBody> {
    match &function.body {
        Body::Scalar(body) => Ok(body),
        Body::Array(_) => Err(Error::request(
            format!("`{}` keeps its loops", function.name()),
            "unroll it for given sizes to compare its derivatives",
        )),
    }
}

fn compare_at(
    function: &Function,
    derivation: &Derivation,
    derived: &Function,
    points: &[Vec<Vec<f64>>],
) -> Result<Agreement> {
    let body = scalar(function)?;
    let request = derivation.elements(body)?;
    let compiled = derived.compile()?;
    let mut agreement =
        Agreement { points: points.len(), elements: request.order.len(), from_forward: 0.0, from_differences: 0.0 };
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
        let exact: Vec<Big> = point.iter().flatten().map(|x| ctx.from_f64(*x)).collect();
        let (mut forward, mut differences) = (Vec::new(), Vec::new());
        for column in &request.columns {
            forward.push(tangents(&body.graph, &mut ctx, &exact, *column, &request.rows).map_err(Error::lone)?);
            differences.push(difference(&body.graph, &mut ctx, &exact, *column, &request.rows).map_err(Error::lone)?);
        }
        let results = evaluate(&body.graph, &mut ctx, &exact, &request.rows).map_err(Error::lone)?;
        let scale = scale(&ctx, &forward, &results, &exact);
        for ((row, column), value) in request.order.iter().zip(&values) {
            let reference = &forward[*column][*row];
            let from_forward = ctx.sub(&ctx.from_f64(*value), reference);
            let from_differences = ctx.sub(&differences[*column][*row], reference);
            agreement.from_forward = worse(agreement.from_forward, ctx.as_f64(&from_forward).abs() / scale);
            agreement.from_differences = worse(agreement.from_differences, ctx.as_f64(&from_differences).abs() / scale);
        }
    }
    Ok(agreement)
}

/// Elements that are smaller than this, next to values over arguments, are zeros, of which 115 digits leave something where large
/// terms cancel.
const VANISHES: f64 = 1e-60;

/// What errors of a Jacobian are relative to: its largest element, or, where it vanishes, what `results` are over `point`.
fn scale(ctx: &Precise, columns: &[Vec<Big>], results: &[Big], point: &[Big]) -> f64 {
    let largest = |all: &[Big]| all.iter().map(|x| ctx.as_f64(x).abs()).fold(f64::MIN_POSITIVE, f64::max);
    let element = columns.iter().map(|column| largest(column)).fold(f64::MIN_POSITIVE, f64::max);
    let typical = largest(results) / largest(point).max(1.0);
    if typical.is_finite() && element < VANISHES * typical { typical } else { element }
}

/// The larger error; a NaN is the worst of all, and stays.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Central differences with a step of 1e-35: the error is that of the step squared, times third derivatives.
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

/// Numbers in (0, 1) that look random: splitmix64.
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
