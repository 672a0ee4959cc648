//! Checker of derivatives by dual numbers on the scalar graph.
//!
//! A dual number is (value, tangent). Each tangent has a magnitude: the sum of the absolute values of the products over
//! all paths, which the rounding error of a sum over paths scales with. A derivative agrees if its error is at most
//! [`BOUND_PRECISE`] times that magnitude in extended precision, 384 bits. Doubles come first, with [`BOUND_F64`]. A
//! difference in doubles that does not occur in extended precision is rounding, so extended precision decides.
//!
//! Evaluation is lazy like the graph's: a partial of 0 propagates no tangent, whatever the tangent is, and a point is
//! inside the domain if the taken branches are.

use super::{Mismatch, Random, Verdict};
use crate::{Column, Row};
use chainrule_base::{Diagnostic, Id};
use chainrule_graph::{Graph, Node, NodeId, evaluate, partial};
use chainrule_ops::{Algebra, F64, Op, Precise};

/// Maximum error in doubles relative to the magnitude: margin for 2^22 roundings.
pub const BOUND_F64: f64 = 1.0 / (1u64 << 30) as f64;

/// Maximum error in 384 bits relative to the magnitude: 2^-40. The graph folds constants in doubles (a third is not
/// exact), so this is a margin for 2^12 such roundings.
pub const BOUND_PRECISE: f64 = 1.0 / (1u64 << 40) as f64;

/// Absolute term of the bound in extended precision, relative to the largest number that occurs (1e30 at most): 2^-200.
/// If the products of the paths are 0 because factors cancel, a later cancelling sum leaves a rounding error.
pub const RESIDUE_PRECISE: f64 = 6.223_015_277_861_142e-61;

/// Maximum number of nodes of graphs that are always computed in extended precision; larger ones only if doubles
/// differ.
pub const PRECISE_NODES: usize = 5_000;

/// Maximum number of columns that are checked separately. More columns are checked together with random weights; if
/// only some pairs are requested, this many of them are checked.
const COLUMNS: usize = 16;

/// Checks whether `entries` of (row, column, node) are the derivatives of `rows` by `columns` at `points` (a value for
/// each input of the graph), and whether absent entries are zero there. `pairs` are the requested ones.
///
/// Points with infinite or NaN dual numbers are skipped; if they are finite, the entries must be finite. Points should
/// therefore lie inside the domain ([`in_domain`]). The graph grows only by partial derivatives of user functions.
/// Linear in the graph for each point and column.
///
/// # Errors
/// Fails if the graph cannot be evaluated.
pub fn derivative(
    graph: &mut Graph,
    (rows, columns): (&[Row], &[Column]),
    pairs: Option<&[(usize, usize)]>,
    entries: &[(usize, usize, NodeId)],
    points: &[Vec<f64>],
) -> Result<Verdict, Diagnostic> {
    let mut question = Question::new(graph, rows, columns, pairs, entries)?;
    let mut compared = 0;
    for (idx, point) in points.iter().enumerate() {
        question.weigh(idx as u64);
        let Some(mismatch) = question.compare(graph, &mut F64, point, (BOUND_F64, 0.0))? else { continue };
        compared += 1;
        let has_calls = question.nodes.iter().any(|id| matches!(graph.node(*id), Node::External(..)));
        let mismatch = match mismatch {
            // User functions are computed in doubles only.
            found if has_calls => found,
            None if question.nodes.len() > PRECISE_NODES => None,
            found => question.precise(graph, point)?.unwrap_or(found),
        };
        if let Some(mismatch) = mismatch {
            return Ok(Verdict::Differs(mismatch));
        }
    }
    if compared == 0 {
        return Ok(Verdict::Unknown { reason: "no point where everything is finite".to_owned() });
    }
    Ok(Verdict::Agrees { points: compared })
}

/// Tangent of a node, and the sum of the magnitudes of its terms.
type Dual<A> = (<A as Algebra>::Value, <A as Algebra>::Value);

/// The comparison: rows, columns, entries and their supporting nodes.
struct Question<'a> {
    rows: &'a [Row],
    columns: &'a [Column],
    pairs: Option<&'a [(usize, usize)]>,
    entries: &'a [(usize, usize, NodeId)],
    /// All nodes below rows, weights and entries, ascending.
    nodes: Vec<NodeId>,
    /// Partials of user functions by node and argument, ascending.
    calls: Vec<((NodeId, usize), NodeId)>,
    /// Groups of columns that are checked together, with weights.
    groups: Vec<Vec<(usize, f64)>>,
}

impl<'a> Question<'a> {
    fn new(
        graph: &mut Graph,
        rows: &'a [Row],
        columns: &'a [Column],
        pairs: Option<&'a [(usize, usize)]>,
        entries: &'a [(usize, usize, NodeId)],
    ) -> Result<Self, Diagnostic> {
        let mut roots: Vec<NodeId> = entries.iter().map(|e| e.2).collect();
        for row in rows {
            match row {
                Row::Root(root) => roots.push(*root),
                Row::Weighted(terms) => roots.extend(terms.iter().flat_map(|(a, b)| [*a, *b])),
            }
        }
        for column in columns {
            if let Column::Direction(terms) = column {
                roots.extend(terms.iter().flat_map(|(a, b)| [*a, *b]));
            }
        }
        let mut calls = Vec::new();
        for id in graph.reachable(&roots).iter() {
            if matches!(graph.node(id), Node::External(..)) {
                for idx in 0..graph.args(id).len() {
                    // A call without a derivative may occur where nothing is differentiated.
                    if let Ok(node) = partial(graph, id, idx) {
                        calls.push(((id, idx), node));
                    }
                }
            }
        }
        roots.extend(calls.iter().map(|(_, node)| *node));
        let nodes = graph.reachable(&roots).iter().collect();
        Ok(Self { rows, columns, pairs, entries, nodes, calls, groups: Vec::new() })
    }

    /// Chooses the columns to be checked.
    fn weigh(&mut self, seed: u64) {
        let n = self.columns.len();
        self.groups = if n <= COLUMNS {
            (0..n).map(|c| vec![(c, 1.0)]).collect()
        } else if self.pairs.is_none() {
            let mut random = Random::new(seed);
            vec![(0..n).map(|c| (c, random.between(0.5, 1.5))).collect()]
        } else {
            (0..COLUMNS).map(|i| vec![((i * n + (seed as usize * n) / 7) / COLUMNS % n, 1.0)]).collect()
        };
    }

    fn precise(&self, graph: &Graph, point: &[f64]) -> Result<Option<Option<Mismatch>>, Diagnostic> {
        let mut algebra = Precise::new();
        let point: Vec<_> = point.iter().map(|x| algebra.from_f64(*x)).collect();
        self.compare(graph, &mut algebra, &point, (BOUND_PRECISE, RESIDUE_PRECISE))
    }

    /// Returns the first difference; `None` if a dual number is not finite.
    fn compare<A: Algebra>(
        &self,
        graph: &Graph,
        algebra: &mut A,
        point: &[A::Value],
        (bound, residue): (f64, f64),
    ) -> Result<Option<Option<Mismatch>>, Diagnostic> {
        let computed = evaluate(graph, algebra, point, &self.nodes)?;
        let mut values: Vec<Option<A::Value>> = vec![None; graph.len()];
        let mut largest = 0.0f64;
        for (id, value) in self.nodes.iter().zip(computed) {
            let number = algebra.to_f64(&value).map_or(0.0, f64::abs);
            // Untaken branches may have any value; the cap keeps the residue below 1e-30.
            largest = if number.is_finite() { largest.max(number.min(1e30)) } else { largest };
            values[id.index()] = Some(value);
        }
        let value_of =
            |id: NodeId| values[id.index()].clone().ok_or_else(|| Diagnostic::bug(format!("{id} has no value")));
        let arcs = self.arcs(graph, algebra, &value_of)?;
        for group in &self.groups {
            let mut duals = vec![None; graph.len()];
            self.seed(algebra, group, &mut duals, &value_of)?;
            for (arg, id, label) in &arcs {
                if let Some(dual) = duals[arg.index()].clone() {
                    add_term(algebra, &mut duals[id.index()], label, Some(&dual));
                }
            }
            let found = self.found(algebra, group, &value_of)?;
            for (row, found) in found.into_iter().enumerate() {
                let single = (group.len() == 1).then(|| group[0].0);
                if let (Some(pairs), Some(column)) = (self.pairs, single)
                    && !pairs.contains(&(row, column))
                {
                    continue;
                }
                let mut expected: Option<Dual<A>> = None;
                match &self.rows[row] {
                    Row::Root(root) => expected.clone_from(&duals[root.index()]),
                    Row::Weighted(terms) => {
                        for (root, u) in terms {
                            if let Some(dual) = &duals[root.index()] {
                                add_term(algebra, &mut expected, &value_of(*u)?, Some(dual));
                            }
                        }
                    }
                }
                let zero = algebra.constant(0.0);
                let (expected, magnitude) = expected.unwrap_or_else(|| (zero.clone(), zero.clone()));
                let found = found.unwrap_or(zero);
                let difference = algebra.apply(Op::Sub, &[found.clone(), expected.clone()]);
                let number = |x: &A::Value| algebra.to_f64(x).unwrap_or(f64::NAN);
                let (difference, magnitude) = (number(&difference).abs(), number(&magnitude));
                let (expected, found) = (number(&expected), number(&found));
                if !magnitude.is_finite() || !expected.is_finite() {
                    return Ok(None);
                }
                let bound = bound * magnitude + residue * largest + f64::MIN_POSITIVE;
                // NaN is a difference too: an operand that is not needed poisons the result.
                if difference.is_nan() || difference > bound {
                    return Ok(Some(Some(Mismatch { row, column: single, expected, found, bound })));
                }
            }
        }
        Ok(Some(None))
    }

    /// Adds the dual numbers of the columns in `group`.
    fn seed<A: Algebra>(
        &self,
        algebra: &mut A,
        group: &[(usize, f64)],
        duals: &mut [Option<Dual<A>>],
        value_of: &impl Fn(NodeId) -> Result<A::Value, Diagnostic>,
    ) -> Result<(), Diagnostic> {
        for &(column, weight) in group {
            let weight = algebra.constant(weight);
            match &self.columns[column] {
                Column::Input(x) => add_term(algebra, &mut duals[x.index()], &weight, None),
                Column::Direction(terms) => {
                    for (x, v) in terms {
                        let seed = algebra.apply(Op::Mul, &[weight.clone(), value_of(*v)?]);
                        add_term(algebra, &mut duals[x.index()], &seed, None);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the weighted sums of the entries in the columns of `group`, by row; `None` where there is no entry.
    fn found<A: Algebra>(
        &self,
        algebra: &mut A,
        group: &[(usize, f64)],
        value_of: &impl Fn(NodeId) -> Result<A::Value, Diagnostic>,
    ) -> Result<Vec<Option<A::Value>>, Diagnostic> {
        let mut found: Vec<Option<A::Value>> = vec![None; self.rows.len()];
        for (row, column, node) in self.entries {
            if let Some((_, weight)) = group.iter().find(|(c, _)| c == column) {
                let weight = algebra.constant(*weight);
                let term = algebra.apply(Op::Mul, &[weight, value_of(*node)?]);
                found[*row] = Some(match found[*row].take() {
                    None => term,
                    Some(sum) => algebra.apply(Op::Add, &[sum, term]),
                });
            }
        }
        Ok(found)
    }

    /// Returns argument, node and partial of each nonzero partial, ascending by node.
    fn arcs<A: Algebra>(
        &self,
        graph: &Graph,
        algebra: &mut A,
        value_of: &impl Fn(NodeId) -> Result<A::Value, Diagnostic>,
    ) -> Result<Vec<(NodeId, NodeId, A::Value)>, Diagnostic> {
        let below_rows = graph.reachable(&self.rows.iter().flat_map(Row::roots).collect::<Vec<_>>());
        let mut arcs = Vec::new();
        for id in below_rows.iter() {
            let args = graph.args(id);
            for (idx, arg) in args.iter().enumerate() {
                let label = match graph.node(id) {
                    Node::Apply(op, _) => {
                        let values = args.iter().map(|a| value_of(*a)).collect::<Result<Vec<_>, _>>()?;
                        chainrule_ops::partial(algebra, op, idx, &values, &value_of(id)?)
                    }
                    Node::External(..) => match self.calls.binary_search_by_key(&(id, idx), |c| c.0) {
                        Ok(place) => value_of(self.calls[place].1)?,
                        Err(_) => continue,
                    },
                    Node::Const(_) | Node::Input(_) | Node::Derivative(_) => continue,
                };
                if algebra.to_f64(&label) != Some(0.0) {
                    arcs.push((*arg, id, label));
                }
            }
        }
        Ok(arcs)
    }
}

/// Adds `label * dual` to a tangent and its magnitude; the label itself if there is no dual.
fn add_term<A: Algebra>(algebra: &mut A, sum: &mut Option<Dual<A>>, label: &A::Value, dual: Option<&Dual<A>>) {
    let mut term = (label.clone(), algebra.apply(Op::Abs, std::slice::from_ref(label)));
    if let Some((tangent, magnitude)) = dual {
        term.0 = algebra.apply(Op::Mul, &[term.0, tangent.clone()]);
        term.1 = algebra.apply(Op::Mul, &[term.1, magnitude.clone()]);
    }
    *sum = Some(match sum.take() {
        None => term,
        Some(old) => (algebra.apply(Op::Add, &[old.0, term.0]), algebra.apply(Op::Add, &[old.1, term.1])),
    });
}

/// Returns whether every operator that `roots` need at this point, without untaken branches, is inside its domain, and
/// every value is finite.
///
/// # Errors
/// Fails if the graph cannot be evaluated.
pub fn in_domain(graph: &Graph, roots: &[NodeId], point: &[f64]) -> Result<bool, Diagnostic> {
    let nodes: Vec<NodeId> = graph.reachable(roots).iter().collect();
    let mut values = vec![f64::NAN; graph.len()];
    for (id, value) in nodes.iter().zip(graph.f64_at(point, &nodes)?) {
        values[id.index()] = value;
    }
    let mut needed = vec![false; graph.len()];
    for root in roots {
        needed[root.index()] = true;
    }
    for id in nodes.into_iter().rev().filter(|id| !matches!(graph.node(*id), Node::Const(_))) {
        if !needed[id.index()] {
            continue;
        }
        let args = graph.args(id);
        let mut inside = values[id.index()].is_finite();
        if let Node::Apply(op, _) = graph.node(id) {
            if op == Op::Select {
                let taken = if values[args[0].index()] == 0.0 { args[2] } else { args[1] };
                needed[args[0].index()] = true;
                needed[taken.index()] = true;
                if !inside {
                    return Ok(false);
                }
                continue;
            }
            let numbers: Vec<f64> = args.iter().map(|a| values[a.index()]).collect();
            inside &= (op.row().domain.contains)(&numbers);
        }
        if !inside {
            return Ok(false);
        }
        for arg in args {
            needed[arg.index()] = true;
        }
    }
    Ok(true)
}

/// Returns up to `n` random points inside the domain of `roots`: a value for each input of the graph. Fewer points are
/// returned if they are hard to find.
///
/// # Errors
/// Fails if the graph cannot be evaluated.
pub fn points(graph: &Graph, roots: &[NodeId], seed: u64, n: usize) -> Result<Vec<Vec<f64>>, Diagnostic> {
    const BOXES: [(f64, f64); 6] = [(-1.0, 1.0), (0.1, 0.9), (1.0, 3.0), (-4.0, 4.0), (0.01, 10.0), (-0.1, 0.1)];
    const TRIES: usize = 20;
    let mut random = Random::new(seed);
    let mut found = Vec::new();
    for attempt in 0..TRIES * n {
        if found.len() == n {
            break;
        }
        let (low, high) = BOXES[attempt % BOXES.len()];
        let point: Vec<f64> = graph.inputs().iter().map(|_| random.between(low, high)).collect();
        if in_domain(graph, roots, &point)? {
            found.push(point);
        }
    }
    Ok(found)
}
