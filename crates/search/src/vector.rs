//! Vector graphs: vertices stand for vectors, and edges are labelled with matrices. Programs of blocks are factored on
//! them; scalar graphs are the case in which every size is 1.
//!
//! | Naumann 1999, section 2.5 | here |
//! | --- | --- |
//! | vector c-graph, d(j) | [`VectorGraph`], its sizes |
//! | local Jacobian C(j,i), d(j) by d(i) | the label of an edge |
//! | OPS_F{(j,k)} = d(k) d(j) (sum of d(i)), OPS_B{(i,j)} = d(i) d(j) (sum of d(k)) | [`EdgeElimination::cost`] |
//! | OPS{v(j)} = d(j) (sum of d(i)) (sum of d(k)) | [`Elimination::cost`] |
//!
//! In: a linearised graph with a size for each vertex. Out: elimination orders, histories and their programs, counted
//! by this module.
//!
//! Labels are matrices in these programs, and a product of labels is written along the path: the product of [a, b] is
//! the matrix b times a. A label of 1 or -1 is that multiple of the identity. These programs must not be cleaned up,
//! because [`Program::tidied`] treats products as commutative.

use crate::annealing;
use chainrule_accumulate::edge::{EdgeElimination, Step};
use chainrule_accumulate::is_unit;
use chainrule_accumulate::vertex::Elimination;
use chainrule_accumulate::{
    Budget, Counting, Edge, Label, LabelId, LinearGraph, Outcome, Program, StopReason, VertexId,
};
use chainrule_accumulate::{edge_greedy, greedy};
use chainrule_base::{Diagnostic, Id};
use chainrule_ops::{Counts, Op};

/// A linearised graph whose vertices have sizes.
#[derive(Clone, Debug)]
pub struct VectorGraph {
    linear: LinearGraph,
    /// Size of each vertex, at least 1; the sum is at most [`MAX_SIZE`].
    sizes: Vec<u64>,
}

/// Maximum sum of all sizes, so that no count overflows.
pub const MAX_SIZE: u64 = 1 << 20;

impl VectorGraph {
    /// Returns the graph whose vertices have these sizes, in order.
    ///
    /// # Errors
    /// Fails if the numbers of sizes and vertices differ, a size is 0, the sum exceeds [`MAX_SIZE`], or a label of 1 or
    /// -1 joins vertices of different sizes.
    ///
    /// ```
    /// use chainrule_search::vector::{self, VectorGraph};
    /// use chainrule_accumulate::{Budget, Counting, Label::Var, LinearGraph};
    /// // A 2 by 3 matrix times a 3 by 4 matrix.
    /// let chain = LinearGraph::from_edges(1, 1, 1, &[(0, 1, Var), (1, 2, Var)])?;
    /// let graph = VectorGraph::new(chain, &[4, 3, 2])?;
    /// let program = vector::run(&graph, &Budget::default(), &[]).program;
    /// assert_eq!(program.map(|p| graph.count(&p, Counting::Plain).mul), Some(2 * 3 * 4));
    /// # Ok::<(), chainrule_base::Diagnostic>(())
    /// ```
    pub fn new(linear: LinearGraph, sizes: &[u64]) -> Result<Self, Diagnostic> {
        let n = linear.n_vertices();
        if sizes.len() != n {
            return Err(Diagnostic::error(format!("{} sizes for {n} vertices", sizes.len()))
                .with_help("give one size for each vertex that lies on a path from a source to a sink, and each end"));
        }
        if let Some(v) = sizes.iter().position(|size| *size == 0) {
            return Err(Diagnostic::error(format!("vertex {v} has size 0")).with_help("leave out what is empty"));
        }
        let total = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
        if total.is_none_or(|total| total > MAX_SIZE) {
            return Err(Diagnostic::limitation("the vectors of this graph are too long")
                .with_reason(format!("all sizes together may be {MAX_SIZE}")));
        }
        let size = |v: VertexId| sizes[v.index()];
        let unit = |edge: &&Edge| matches!(edge.label, Label::One | Label::MinusOne);
        let unequal = |edge: &&Edge| size(edge.source) != size(edge.target);
        let ends = linear.edges().map(|(_, edge)| edge).filter(unit).find(unequal).map(|e| (e.source, e.target));
        if let Some((source, target)) = ends {
            return Err(Diagnostic::error(format!("the edge from {source} to {target} cannot be the identity"))
                .with_reason(format!("{source} has size {} and {target} has size {}", size(source), size(target)))
                .with_help("label it as a constant"));
        }
        Ok(Self { linear, sizes: sizes.to_vec() })
    }

    /// Returns the graph without sizes.
    #[must_use]
    pub fn linear(&self) -> &LinearGraph {
        &self.linear
    }

    /// Returns the size of each vertex.
    #[must_use]
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Returns the equivalent scalar graph: each vertex expanded into scalars, each matrix full, identities diagonal.
    /// Entry (r, c) of the matrix of an edge is the edge from element c of its source to element r of its target. Edges
    /// are ordered by the edge of this graph, then by r, then by c. All pairs are requested.
    ///
    /// # Errors
    /// Never fails for a graph that [`VectorGraph::new`] accepted.
    pub fn scalars(&self) -> Result<LinearGraph, Diagnostic> {
        let mut firsts = vec![0];
        for size in &self.sizes {
            firsts.push(firsts[firsts.len() - 1] + *size as usize);
        }
        let mut edges = Vec::new();
        for (_, edge) in self.linear.edges() {
            let (source, target) = (edge.source.index(), edge.target.index());
            for r in 0..self.sizes[target] as usize {
                for c in 0..self.sizes[source] as usize {
                    if r == c || !is_unit(edge.label) {
                        edges.push((firsts[source] + c, firsts[target] + r, edge.label));
                    }
                }
            }
        }
        let first_sink = self.linear.n_vertices() - self.linear.sinks().len();
        let [inputs, outputs] = [firsts[self.linear.sources().len()], firsts[first_sink]];
        LinearGraph::from_edges(inputs, outputs - inputs, firsts[self.sizes.len()] - outputs, &edges)
    }

    /// Returns the operation counts of a program made by this module for this graph: a p by q matrix times a q by r
    /// matrix is p q r multiplications and p (q - 1) r additions; a sum of p by r matrices is p r additions.
    #[must_use]
    pub fn count(&self, program: &Program, counting: Counting) -> Counts {
        let mut counts = Counts::default();
        let size = |v: VertexId| self.sizes[v.index()];
        // Sizes of source and target of each label.
        let mut shapes: Vec<(u64, u64)> =
            self.linear.edges().map(|(_, edge)| (size(edge.source), size(edge.target))).collect();
        for idx in 0..program.n_steps() {
            let mut shape = (1, 1);
            let mut n_products = 0;
            let mut has_constant = false;
            let folds = counting == Counting::Folded && program.kind(program.step_label(idx)) != Label::Var;
            for product in program.step(idx) {
                let (of_product, constant) =
                    self.chain(program, product.factors, &shapes, counting, &mut counts, folds);
                shape = of_product;
                n_products += u64::from(!(constant && has_constant));
                has_constant |= constant;
            }
            if !folds {
                counts.record_many(Op::Add, (n_products - 1) * shape.0 * shape.1);
            }
            shapes.push(shape);
        }
        counts
    }

    /// Counts the multiplication of the labels along a path, and its additions. Returns the shape of the result, and
    /// whether it is a constant that folds with others.
    fn chain(
        &self,
        program: &Program,
        factors: &[LabelId],
        shapes: &[(u64, u64)],
        counting: Counting,
        counts: &mut Counts,
        folds: bool,
    ) -> ((u64, u64), bool) {
        let free = |kind: Label| counting != Counting::Plain && is_unit(kind);
        let mut shape: Option<(u64, u64)> = None;
        let mut kind = Label::One;
        for factor in factors {
            let (from, to) = shapes[factor.index()];
            let factor_kind = program.kind(*factor);
            if let Some((source, _)) = shape {
                let constants = kind != Label::Var && factor_kind != Label::Var;
                let folded = folds || (counting == Counting::Folded && constants);
                if !folded && !free(kind) && !free(factor_kind) {
                    counts.record_many(Op::Mul, source * from * to);
                    counts.record_many(Op::Add, source * (from - 1) * to);
                }
                shape = Some((source, to));
            } else {
                shape = Some((from, to));
            }
            kind = chainrule_accumulate::vertex::product_label(kind, factor_kind);
        }
        (shape.unwrap_or((1, 1)), counting == Counting::Folded && kind != Label::Var)
    }
}

/// Eliminates vertices in the given order; remaining intermediates follow in ascending order.
#[must_use]
pub fn run(graph: &VectorGraph, budget: &Budget, order: &[VertexId]) -> Outcome {
    let mut elimination = Elimination::with_sizes(&graph.linear, &graph.sizes);
    for v in order.iter().copied().chain(graph.linear.intermediates()) {
        elimination.eliminate(v);
        if elimination.n_products() > budget.products {
            return Outcome::stopped(StopReason::ProductBudget);
        }
    }
    Outcome::done(elimination.finish())
}

/// Returns a greedy vertex order.
///
/// # Errors
/// The exhausted budget.
pub fn order(graph: &VectorGraph, budget: &Budget, options: &greedy::Options) -> Result<Vec<VertexId>, StopReason> {
    let elimination = Elimination::with_sizes(&graph.linear, &graph.sizes);
    greedy::eliminate(elimination, budget, options).map(|(_, order)| order)
}

/// Returns the best vertex order found by simulated annealing.
#[must_use]
pub fn anneal(graph: &VectorGraph, budget: &Budget, options: &annealing::Options) -> annealing::Search {
    annealing::search(&graph.linear, Some(&graph.sizes), budget, options)
}

/// Eliminates edges along a history. Impossible steps are skipped, and remaining intermediates follow in ascending
/// order.
#[must_use]
pub fn run_edges(graph: &VectorGraph, budget: &Budget, history: &[Step]) -> Outcome {
    let mut elimination = EdgeElimination::with_sizes(&graph.linear, &graph.sizes);
    for step in history.iter().copied().chain(graph.linear.intermediates().map(Step::Vertex)) {
        elimination.step(step);
        if elimination.n_products() > budget.products {
            return Outcome::stopped(StopReason::ProductBudget);
        }
    }
    Outcome::done(elimination.finish())
}

/// Returns a greedy edge history.
///
/// # Errors
/// The exhausted budget.
pub fn history(graph: &VectorGraph, budget: &Budget, options: &edge_greedy::Options) -> Result<Vec<Step>, StopReason> {
    let elimination = EdgeElimination::with_sizes(&graph.linear, &graph.sizes);
    edge_greedy::eliminate(elimination, budget, options).map(|(_, history)| history)
}
