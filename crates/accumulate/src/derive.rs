//! Derivatives of the scalar graph: Jacobian, gradient, Hessian, any order, and products with vectors.
//!
//! In: a graph, roots, inputs, [`Options`]. Out: nodes of the same graph for the structurally nonzero derivatives, with
//! the pattern and a report.

use crate::passes::{ACCUMULATE, LINEARISE, REPLAY};
use crate::post_optimisation::check;
use crate::report::Steps;
use crate::strategy::{Report, Strategy};
use crate::{Budget, Column, Effort, LinearGraph, Optimise, Pattern, Program, Row};
use chainrule_base::{Diagnostic, timing};
use chainrule_graph::{Graph, NodeId, counts};
use rustc_hash::FxHashMap;

/// Options of differentiation.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Strategy of accumulation.
    pub strategy: &'static Strategy,
    /// Budget of the strategy.
    pub budget: Budget,
    /// Whether the function and its derivatives are optimised.
    pub optimise: Optimise,
    /// Whether the report has listings of the steps.
    pub lists_steps: bool,
}

impl Options {
    /// Returns options with this strategy and the default budget.
    #[must_use]
    pub fn new(strategy: &'static Strategy) -> Self {
        Self { strategy, ..Self::default() }
    }
}

/// The strategy `auto`.
impl Default for Options {
    fn default() -> Self {
        Self {
            strategy: &crate::STRATEGIES[0],
            budget: Budget::default(),
            optimise: Optimise::default(),
            lists_steps: false,
        }
    }
}

/// A matrix of derivatives.
#[derive(Clone, Debug)]
pub struct Derived {
    /// Structurally nonzero entries that are requested.
    pub pattern: Pattern,
    /// The derivatives, in the order of [`Pattern::coo`].
    pub nodes: Vec<NodeId>,
    /// Differentiated roots: the roots of the rows, or cheaper ones with the same values.
    pub roots: Vec<NodeId>,
    /// Report of the strategies tried.
    pub report: Report,
}

impl Derived {
    /// Returns the derivative at (row, column); `None` if it is zero or was not requested.
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> Option<NodeId> {
        self.pattern.place(row, column).map(|place| self.nodes[place])
    }

    /// Returns all rows in full, with the constant 0 for structural zeros.
    #[must_use]
    pub fn dense(&self, graph: &mut Graph) -> Vec<Vec<NodeId>> {
        let (n_rows, n_columns) = self.pattern.shape();
        let mut rows = vec![vec![graph.constant(0.0); n_columns]; n_rows];
        for ((row, column), node) in self.pattern.coo().iter().zip(&self.nodes) {
            rows[*row][*column] = *node;
        }
        rows
    }

    /// Returns row, column and node of each derivative.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, NodeId)> {
        self.pattern.coo().iter().zip(&self.nodes).map(|((row, column), node)| (*row, *column, *node))
    }
}

/// Returns the derivatives of any rows by any columns. `pairs` of (row, column) restricts them.
///
/// # Errors
/// As [`LinearGraph::build`], [`LinearGraph::ask_only`] and [`Strategy::run`].
pub fn derive(
    graph: &mut Graph,
    rows: &[Row],
    columns: &[Column],
    pairs: Option<&[(usize, usize)]>,
    options: &Options,
) -> Result<Derived, Diagnostic> {
    let Accumulated { program, report, roots, nodes } = accumulate(graph, rows, columns, pairs, options)?;
    // Entries that only the graph finds to be zero, such as sums that cancel, are dropped too.
    let kept = |node: &NodeId| graph.as_const(*node) != Some(0.0);
    let (n_rows, n_columns) = program.shape();
    let (places, nodes): (Vec<(usize, usize)>, Vec<NodeId>) = program
        .results()
        .iter()
        .zip(nodes)
        .filter(|(_, node)| kept(node))
        .map(|(entry, node)| ((entry.row, entry.column), node))
        .unzip();
    Ok(Derived { pattern: Pattern::new(n_rows, n_columns, places), nodes, roots, report })
}

/// A program, the roots that it differentiates, and the nodes of its results.
struct Accumulated {
    program: Program,
    report: Report,
    roots: Vec<NodeId>,
    nodes: Vec<NodeId>,
}

/// Returns the program chosen by the strategy, with its results as optimised nodes. The optimised function is
/// differentiated if it is much lighter than the given one. Otherwise the given one is differentiated, and if the
/// search is thorough, the optimised one too: the lighter result is taken.
fn accumulate(
    graph: &mut Graph,
    rows: &[Row],
    columns: &[Column],
    pairs: Option<&[(usize, usize)]>,
    options: &Options,
) -> Result<Accumulated, Diagnostic> {
    let roots: Vec<NodeId> = rows.iter().flat_map(Row::roots).collect();
    let is_thorough = options.optimise == Optimise::Thorough;
    let (better, improvement) = options.optimise.improve(graph, &roots, Effort::Thorough);
    if improvement.after.weight < improvement.before.weight / 10 * MUCH_SMALLER
        && let Ok(improved) = accumulate_from(graph, &replaced(rows, &better), columns, pairs, options)
    {
        return Ok(improved);
    }
    let plain = accumulate_from(graph, rows, columns, pairs, options)?;
    if !is_thorough || better == roots || graph.reachable(&plain.nodes).len() > MAX_TRIED_TWICE {
        return Ok(plain);
    }
    let Ok(improved) = accumulate_from(graph, &replaced(rows, &better), columns, pairs, options) else {
        return Ok(plain);
    };
    // The caller may also need the function, so both count.
    let mut weight = |roots: &[NodeId], nodes: &[NodeId]| {
        options.optimise.quickly(graph, &[roots, nodes].concat()).1 + counts(graph, nodes).weight
    };
    let is_better = weight(&better, &improved.nodes) < weight(&roots, &plain.nodes);
    Ok(if is_better { improved } else { plain })
}

/// Threshold of "much lighter", in tenths of the original weight.
const MUCH_SMALLER: u64 = 8;
/// Maximum number of derivative nodes for which the optimised function is differentiated too.
const MAX_TRIED_TWICE: usize = 20_000;

/// Returns the rows with other roots.
fn replaced(rows: &[Row], roots: &[NodeId]) -> Vec<Row> {
    let mut roots = roots.iter().copied();
    let mut next = |old: NodeId| roots.next().unwrap_or(old);
    rows.iter()
        .map(|row| match row {
            Row::Root(root) => Row::Root(next(*root)),
            Row::Weighted(pairs) => Row::Weighted(pairs.iter().map(|(root, weight)| (next(*root), *weight)).collect()),
        })
        .collect()
}

fn accumulate_from(
    graph: &mut Graph,
    rows: &[Row],
    columns: &[Column],
    pairs: Option<&[(usize, usize)]>,
    options: &Options,
) -> Result<Accumulated, Diagnostic> {
    let mut linear = timing::time(LINEARISE, || LinearGraph::build(graph, rows, columns))?;
    if let Some(pairs) = pairs {
        linear = linear.ask_only(pairs)?;
    }
    // Programs are compared by their generated code together with the function: subexpressions shared with the function
    // are free.
    let roots: Vec<NodeId> = rows.iter().flat_map(Row::roots).collect();
    let mut least = u64::MAX;
    // Program results, optimised nodes, and their weight. Different programs may yield the same nodes.
    let mut known: Vec<(Vec<NodeId>, Vec<NodeId>, u64)> = Vec::new();
    let cost = |program: &Program| {
        let Ok(nodes) = program.replay(&linear, graph) else { return u64::MAX };
        if let Some((_, _, weight)) = known.iter().find(|(plain, ..)| *plain == nodes) {
            return *weight;
        }
        let all = [&roots[..], &nodes].concat();
        let plain = counts(graph, &all).weight;
        // Optimisation is expensive and does not make up for a large difference.
        if plain / 3 > least / 2 {
            return plain;
        }
        let (better, weight) = options.optimise.quickly(graph, &all);
        least = least.min(weight);
        known.push((nodes, better[roots.len()..].to_vec(), weight));
        weight
    };
    let effort = options.budget.effort.min(options.optimise.effort(linear.n_edges()));
    let budget = Budget { effort, ..options.budget };
    let (program, mut report) = timing::time(ACCUMULATE, || options.strategy.run_by(&linear, &budget, cost))?;
    if options.lists_steps {
        report.steps = Some(Steps { linearised: linear.listing(graph), program: program.to_string() });
    }
    let nodes = timing::time(REPLAY, || program.replay(&linear, graph))?;
    check(REPLAY, graph, &nodes);
    let nodes = match known.into_iter().find(|(plain, ..)| *plain == nodes) {
        Some((_, better, _)) if counts(graph, &better).weight < counts(graph, &nodes).weight => better,
        Some(_) => nodes,
        None => options.optimise.improve(graph, &nodes, Effort::Quick).0,
    };
    Ok(Accumulated { program, report, roots, nodes })
}

/// Returns the Jacobian of `roots` by `inputs`.
///
/// # Errors
/// As [`derive()`].
///
/// ```
/// use chainrule_accumulate::derive::{Options, jacobian};
/// use chainrule_graph::{Graph, Semantics};
/// let mut g = Graph::new(Semantics::Algebraic);
/// let (x, y) = (g.input("x"), g.input("y"));
/// let xy = g.mul(x, y);
/// let j = jacobian(&mut g, &[xy, x], &[x, y], None, &Options::default())?;
/// let one = g.constant(1.0);
/// assert_eq!(j.entries().collect::<Vec<_>>(), [(0, 0, y), (0, 1, x), (1, 0, one)]);
/// # Ok::<(), chainrule_base::Diagnostic>(())
/// ```
pub fn jacobian(
    graph: &mut Graph,
    roots: &[NodeId],
    inputs: &[NodeId],
    pairs: Option<&[(usize, usize)]>,
    options: &Options,
) -> Result<Derived, Diagnostic> {
    derive(graph, &roots_as_rows(roots), &inputs_as_columns(inputs), pairs, options)
}

/// Returns the gradient of `root` by `inputs`: a matrix of one row.
///
/// # Errors
/// As [`derive()`].
pub fn gradient(graph: &mut Graph, root: NodeId, inputs: &[NodeId], options: &Options) -> Result<Derived, Diagnostic> {
    jacobian(graph, &[root], inputs, None, options)
}

/// Returns the Jacobian times a vector, given as (input, component): a matrix of one column.
///
/// # Errors
/// As [`derive()`].
pub fn jacobian_vector(
    graph: &mut Graph,
    roots: &[NodeId],
    direction: &[(NodeId, NodeId)],
    options: &Options,
) -> Result<Derived, Diagnostic> {
    derive(graph, &roots_as_rows(roots), &[Column::Direction(direction.to_vec())], None, options)
}

/// Returns a vector, given as (root, component), times the Jacobian: a matrix of one row.
///
/// # Errors
/// As [`derive()`].
pub fn vector_jacobian(
    graph: &mut Graph,
    weights: &[(NodeId, NodeId)],
    inputs: &[NodeId],
    options: &Options,
) -> Result<Derived, Diagnostic> {
    derive(graph, &[Row::Weighted(weights.to_vec())], &inputs_as_columns(inputs), None, options)
}

/// Returns the Hessian of `root` by `inputs`: the lower triangle of the Jacobian of the gradient, mirrored.
///
/// # Errors
/// As [`derive()`].
pub fn hessian(graph: &mut Graph, root: NodeId, inputs: &[NodeId], options: &Options) -> Result<Derived, Diagnostic> {
    let gradient = gradient(graph, root, inputs, options)?.dense(graph).swap_remove(0);
    let (rows, columns) = (roots_as_rows(&gradient), inputs_as_columns(inputs));
    // Only connected pairs are requested, so that a large sparse Hessian has no dense list.
    let lower: Vec<(usize, usize)> = (0..inputs.len())
        .zip(graph.depends_on(&gradient, inputs))
        .flat_map(|(row, depends)| depends.into_iter().filter(move |c| *c <= row).map(move |c| (row, c)))
        .collect();
    let Accumulated { program, report, roots, nodes } = accumulate(graph, &rows, &columns, Some(&lower), options)?;
    let mut entries: Vec<(usize, usize, NodeId)> = Vec::with_capacity(2 * nodes.len());
    for (entry, node) in program.results().iter().zip(nodes) {
        if graph.as_const(node) == Some(0.0) {
            continue;
        }
        entries.push((entry.row, entry.column, node));
        if entry.row != entry.column {
            entries.push((entry.column, entry.row, node));
        }
    }
    entries.sort_unstable();
    let pattern = Pattern::new(inputs.len(), inputs.len(), entries.iter().map(|e| (e.0, e.1)).collect());
    Ok(Derived { pattern, nodes: entries.into_iter().map(|e| e.2).collect(), roots, report })
}

/// Returns the Hessian of `root` by `inputs` times a vector, given as (input, component): a matrix of one column, with
/// a row for each of `inputs`.
///
/// # Errors
/// As [`derive()`].
pub fn hessian_vector(
    graph: &mut Graph,
    root: NodeId,
    inputs: &[NodeId],
    direction: &[(NodeId, NodeId)],
    options: &Options,
) -> Result<Derived, Diagnostic> {
    let gradient = gradient(graph, root, inputs, options)?.dense(graph).swap_remove(0);
    jacobian_vector(graph, &gradient, direction, options)
}

/// All derivatives of one order.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Structurally nonzero derivatives: descending positions of inputs, and the node. Ascending by positions.
    pub entries: Vec<(Vec<usize>, NodeId)>,
    /// Report of each order, from the first.
    pub reports: Vec<Report>,
}

impl Tensor {
    /// Returns the derivative by the inputs at these positions, in any order; `None` if it is zero.
    #[must_use]
    pub fn get(&self, positions: &[usize]) -> Option<NodeId> {
        let mut sorted = positions.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let idx = self.entries.binary_search_by(|(p, _)| p.cmp(&sorted)).ok()?;
        Some(self.entries[idx].1)
    }
}

/// Returns the derivatives of `root` of this order, one for each set of variables.
///
/// # Errors
/// As [`derive()`].
pub fn higher(
    graph: &mut Graph,
    root: NodeId,
    inputs: &[NodeId],
    order: usize,
    options: &Options,
) -> Result<Tensor, Diagnostic> {
    let mut tensor = Tensor { entries: vec![(Vec::new(), root)], reports: Vec::new() };
    for _ in 0..order {
        let roots: Vec<NodeId> = tensor.entries.iter().map(|(_, node)| *node).collect();
        let depends = graph.depends_on(&roots, inputs);
        let mut pairs = Vec::new();
        for (row, ((positions, _), columns)) in tensor.entries.iter().zip(&depends).enumerate() {
            let last = positions.last().copied().unwrap_or(usize::MAX);
            pairs.extend(columns.iter().filter(|c| **c <= last).map(|c| (row, *c)));
        }
        let derived = jacobian(graph, &roots, inputs, Some(&pairs), options)?;
        let mut entries: Vec<(Vec<usize>, NodeId)> = derived
            .entries()
            .map(|(row, column, node)| ([tensor.entries[row].0.as_slice(), &[column]].concat(), node))
            .collect();
        entries.sort_unstable();
        tensor.entries = entries;
        tensor.reports.push(derived.report);
    }
    Ok(tensor)
}

/// Returns the roots with every derivative node in them replaced by its expression (D*, section 2), from the leaves up.
/// Derivatives by common variables share work.
///
/// # Errors
/// As [`derive()`].
pub fn resolve(graph: &mut Graph, roots: &[NodeId], options: &Options) -> Result<Vec<NodeId>, Diagnostic> {
    let mut roots = roots.to_vec();
    loop {
        let leaves = graph.leaf_derivatives(&roots);
        if leaves.is_empty() {
            return Ok(roots);
        }
        let made = make_leaves(graph, &leaves, options)?;
        roots = graph.substitute(&roots, &made)?;
    }
}

/// Returns the expression of each of these derivative nodes.
fn make_leaves(
    graph: &mut Graph,
    leaves: &[NodeId],
    options: &Options,
) -> Result<FxHashMap<NodeId, NodeId>, Diagnostic> {
    let mut current: Vec<(NodeId, Vec<NodeId>)> = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        let (of, by) =
            graph.derivative_parts(*leaf).ok_or_else(|| Diagnostic::bug(format!("{leaf} is no derivative")))?;
        current.push((of, by.iter().rev().copied().collect()));
    }
    while current.iter().any(|(_, by)| !by.is_empty()) {
        let (mut roots, mut inputs): (Vec<NodeId>, Vec<NodeId>) =
            current.iter().filter_map(|(of, by)| Some((*of, *by.last()?))).unzip();
        for nodes in [&mut roots, &mut inputs] {
            nodes.sort_unstable();
            nodes.dedup();
        }
        let place = |nodes: &[NodeId], node: NodeId| nodes.partition_point(|n| *n < node);
        let pairs: Vec<(usize, usize)> =
            current.iter().filter_map(|(of, by)| Some((place(&roots, *of), place(&inputs, *by.last()?)))).collect();
        let derived = jacobian(graph, &roots, &inputs, Some(&pairs), options)?;
        let zero = graph.constant(0.0);
        for (of, by) in &mut current {
            if let Some(x) = by.pop() {
                *of = derived.get(place(&roots, *of), place(&inputs, x)).unwrap_or(zero);
            }
        }
    }
    Ok(leaves.iter().copied().zip(current.into_iter().map(|(of, _)| of)).collect())
}

fn roots_as_rows(roots: &[NodeId]) -> Vec<Row> {
    roots.iter().map(|r| Row::Root(*r)).collect()
}

fn inputs_as_columns(inputs: &[NodeId]) -> Vec<Column> {
    inputs.iter().map(|x| Column::Input(*x)).collect()
}
