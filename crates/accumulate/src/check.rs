//! Checkers, independent of every strategy.
//!
//! [`program`] checks whether a program computes the sums over all paths. Labels are drawn at random from the field of
//! integers modulo the prime 2^61 - 1, with equal labels for equal nodes, and the program is compared with one sweep
//! over the edges. Both sides are polynomials in the labels, of a degree d of at most the longest path. If they differ,
//! a draw shows it with probability at least 1 - d/2^61 (Schwartz and Zippel); there is no rounding. All pairs are
//! checked together: the columns get random weights too (Freivalds).
//!
//! [`derivative`](fn@derivative) checks whether nodes of a scalar graph are the derivatives of others, by dual numbers
//! on the graph itself at points inside every domain (`check/duals.rs`).

mod duals;

pub use duals::{BOUND_F64, BOUND_PRECISE, PRECISE_NODES, RESIDUE_PRECISE, derivative, in_domain, points};

use crate::random::Random;
use crate::{Entry, Label, LinearGraph, Program, VertexId};
use chainrule_base::Id;
use chainrule_ops::{Algebra, Op};

/// Verdict of a checker.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// No difference at random points.
    Agrees {
        /// Number of points.
        points: usize,
    },
    /// A difference: the derivative is wrong.
    Differs(Mismatch),
    /// No comparison was possible.
    Unknown {
        /// Reason.
        reason: String,
    },
}

/// A difference.
#[derive(Clone, PartialEq, Debug)]
pub struct Mismatch {
    /// The row.
    pub row: usize,
    /// The column; `None` for a row multiplied by random weights of all columns.
    pub column: Option<usize>,
    /// Expected value.
    pub expected: f64,
    /// Value found.
    pub found: f64,
    /// Allowed difference.
    pub bound: f64,
}

impl Verdict {
    /// Returns whether the verdict is [`Verdict::Agrees`].
    #[must_use]
    pub fn agrees(&self) -> bool {
        matches!(self, Self::Agrees { .. })
    }
}

/// Number of draws of [`program`].
pub const DRAWS: usize = 2;

/// Checks a program against the sum over all paths, in a prime field. Each draw is linear in graph and program, times
/// the number of columns if only some pairs are requested.
#[must_use]
pub fn program(linear: &LinearGraph, program: &Program, seed: u64) -> Verdict {
    if let Err(bug) = program.verify() {
        return Verdict::Unknown { reason: bug.to_string() };
    }
    if program.n_edges() != linear.n_edges() || program.shape() != (linear.rows().len(), linear.columns().len()) {
        return Verdict::Unknown { reason: "the program is of another graph".to_owned() };
    }
    for draw in 0..DRAWS as u64 {
        let mut random = Random::new(seed.wrapping_add(draw.wrapping_mul(0x9e37_79b9)));
        let salt = random.element();
        let labels: Vec<u64> = linear
            .edges()
            .map(|(e, edge)| match (edge.label, edge.node) {
                (Label::One, _) => 1,
                (Label::MinusOne, _) => PRIME - 1,
                (_, Some(node)) => Random::new(salt ^ (2 * node.index() as u64)).element(),
                (_, None) => Random::new(salt ^ (2 * e.index() as u64 + 1)).element(),
            })
            .collect();
        let values = program.evaluate(&labels, &mut Field);
        let mismatch = match linear.pairs() {
            None => all_at_once(linear, program.results(), &labels, &values, &mut random),
            Some(pairs) => one_by_one(linear, pairs, program, &labels, &values),
        };
        if let Some(mismatch) = mismatch {
            return Verdict::Differs(mismatch);
        }
    }
    Verdict::Agrees { points: DRAWS }
}

/// Checks the Jacobian times a random vector.
fn all_at_once(
    linear: &LinearGraph,
    results: &[Entry],
    labels: &[u64],
    values: &[u64],
    random: &mut Random,
) -> Option<Mismatch> {
    let weights: Vec<u64> = linear.columns().iter().map(|_| random.element()).collect();
    let mut seeds = vec![0; linear.n_vertices()];
    for (source, weight) in linear.columns().iter().zip(&weights) {
        seeds[source.index()] = add(seeds[source.index()], *weight);
    }
    let tangents = sweep(linear, labels, seeds);
    let mut found = vec![0; linear.rows().len()];
    for (entry, value) in results.iter().zip(values) {
        found[entry.row] = add(found[entry.row], mul(*value, weights[entry.column]));
    }
    (0..found.len()).find_map(|row| mismatch(row, None, tangents[linear.rows()[row].index()], found[row]))
}

/// Checks each pair, with one sweep for each source.
fn one_by_one(
    linear: &LinearGraph,
    pairs: &[(usize, usize)],
    program: &Program,
    labels: &[u64],
    values: &[u64],
) -> Option<Mismatch> {
    let results = program.results();
    if let Some(entry) = results.iter().find(|e| pairs.binary_search(&(e.row, e.column)).is_err()) {
        return mismatch(entry.row, Some(entry.column), 0, 1);
    }
    let mut by_source: Vec<(VertexId, usize, usize)> =
        pairs.iter().map(|&(row, column)| (linear.columns()[column], row, column)).collect();
    by_source.sort_unstable();
    by_source.chunk_by(|a, b| a.0 == b.0).find_map(|group| {
        let mut seeds = vec![0; linear.n_vertices()];
        seeds[group[0].0.index()] = 1;
        let tangents = sweep(linear, labels, seeds);
        group.iter().find_map(|&(_, row, column)| {
            let idx = results.binary_search_by_key(&(row, column), |e| (e.row, e.column));
            let found = idx.map_or(0, |idx| values[idx]);
            mismatch(row, Some(column), tangents[linear.rows()[row].index()], found)
        })
    })
}

fn mismatch(row: usize, column: Option<usize>, expected: u64, found: u64) -> Option<Mismatch> {
    (expected != found).then_some(Mismatch { row, column, expected: expected as f64, found: found as f64, bound: 0.0 })
}

/// Propagates tangents from seeds. Edges ascend by target, so a tangent is complete before its use.
fn sweep(linear: &LinearGraph, labels: &[u64], mut tangents: Vec<u64>) -> Vec<u64> {
    for (e, edge) in linear.edges() {
        let term = mul(labels[e.index()], tangents[edge.source.index()]);
        tangents[edge.target.index()] = add(tangents[edge.target.index()], term);
    }
    tangents
}

const PRIME: u64 = (1 << 61) - 1;

fn add(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

fn mul(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

/// The prime field, with the operations of programs.
struct Field;

impl Algebra for Field {
    type Value = u64;
    fn constant(&mut self, c: f64) -> u64 {
        if c < 0.0 { PRIME - (-c as u64) % PRIME } else { c as u64 % PRIME }
    }
    fn apply(&mut self, op: Op, args: &[u64]) -> u64 {
        match (op, args) {
            (Op::Add, [a, b]) => add(*a, *b),
            (Op::Sub, [a, b]) => add(*a, PRIME - b),
            (Op::Mul, [a, b]) => mul(*a, *b),
            (Op::Neg, [a]) => (PRIME - a) % PRIME,
            _ => unreachable!("programs add and multiply only"),
        }
    }
}

impl Random {
    /// Returns a nonzero element of the field.
    fn element(&mut self) -> u64 {
        1 + self.bits() % (PRIME - 1)
    }
}
