//! Accumulation programs, the result of every strategy.
//!
//! A program computes derivatives from the labels of a linearised graph in steps `new label = sum of signed products of
//! labels`. Its operations can be counted without building expressions (`count.rs`), it can be checked numerically
//! (`check.rs`), and it can be evaluated in any algebra. In the algebra of a scalar graph, evaluation yields the
//! expressions of the derivatives.
//!
//! Invariants, which [`Program::verify`] checks:
//! - Labels 0..`n_edges` are those of the edges, in order; each step makes the next label.
//! - A step only uses labels made before it, and has at least one product.
//! - Results are ascending by (row, column), each pair once. An absent pair is zero at every point (a structural zero)
//!   or was not requested.

use crate::{EdgeId, Label, LinearGraph, Pattern, VertexId, origin};
use chainrule_base::{Arena, Diagnostic, Id, define_id};
use chainrule_graph::{Graph, NodeId};
use chainrule_ops::{Algebra, Factor, Op, multiply};

define_id! {
    /// A label of a [`Program`]: an edge's, or one made by a step.
    pub struct LabelId = "l";
}

/// A derivative that a program computes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Entry {
    /// The row.
    pub row: usize,
    /// The column.
    pub column: usize,
    /// The label of the derivative.
    pub label: LabelId,
}

/// A product of labels; the empty product is 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product<'a> {
    /// Whether the product is subtracted.
    pub negative: bool,
    /// The factors.
    pub factors: &'a [LabelId],
}

/// An accumulation program. See the module's invariants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    n_edges: usize,
    n_rows: usize,
    n_columns: usize,
    /// Kind of each label.
    kinds: Arena<LabelId, Label>,
    /// The products of step s are `products[step_ends[s - 1]..step_ends[s]]`, from 0 for the first.
    step_ends: Vec<usize>,
    /// End of each product among the factors, and whether it is negative.
    products: Vec<(usize, bool)>,
    factors: Vec<LabelId>,
    results: Vec<Entry>,
}

impl Program {
    /// Returns the number of labels of edges.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.n_edges
    }

    /// Returns the number of labels of edges and steps.
    #[must_use]
    pub fn n_labels(&self) -> usize {
        self.kinds.len()
    }

    /// Returns the numbers of requested rows and columns.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.n_rows, self.n_columns)
    }

    /// Returns the kind of a label.
    #[must_use]
    pub fn kind(&self, label: LabelId) -> Label {
        self.kinds[label]
    }

    /// Returns the derivatives, ascending by row, then column.
    #[must_use]
    pub fn results(&self) -> &[Entry] {
        &self.results
    }

    /// Returns the derivative of this pair; `None` if it is zero at every point or was not requested.
    #[must_use]
    pub fn result(&self, row: usize, column: usize) -> Option<LabelId> {
        let idx = self.results.binary_search_by_key(&(row, column), |entry| (entry.row, entry.column)).ok()?;
        Some(self.results[idx].label)
    }

    /// Returns the sparsity pattern of the derivatives.
    #[must_use]
    pub fn pattern(&self) -> Pattern {
        let entries = self.results.iter().map(|entry| (entry.row, entry.column)).collect();
        Pattern::new(self.n_rows, self.n_columns, entries)
    }

    /// Returns the number of steps.
    #[must_use]
    pub fn n_steps(&self) -> usize {
        self.step_ends.len()
    }

    /// Returns the number of products in all steps.
    #[must_use]
    pub fn n_products(&self) -> u64 {
        self.products.len() as u64
    }

    /// Returns the label that step `idx` makes.
    #[must_use]
    pub fn step_label(&self, idx: usize) -> LabelId {
        LabelId::new(self.n_edges + idx)
    }

    /// Returns the products that step `idx` adds up.
    pub fn step(&self, idx: usize) -> impl ExactSizeIterator<Item = Product<'_>> {
        let first = if idx == 0 { 0 } else { self.step_ends[idx - 1] };
        (first..self.step_ends[idx]).map(|p| self.product(p))
    }

    fn product(&self, idx: usize) -> Product<'_> {
        let start = if idx == 0 { 0 } else { self.products[idx - 1].0 };
        let (end, negative) = self.products[idx];
        Product { negative, factors: &self.factors[start..end] }
    }

    /// Checks the invariants.
    ///
    /// # Errors
    /// A bug of Chainrule: the invariant that does not hold.
    pub fn verify(&self) -> Result<(), Diagnostic> {
        let bug = |what: String| Err(Diagnostic::bug(format!("a malformed accumulation program: {what}")));
        if self.kinds.len() != self.n_edges + self.n_steps() {
            return bug("labels and steps differ in number".to_owned());
        }
        for idx in 0..self.n_steps() {
            if self.step(idx).len() == 0 {
                return bug(format!("step {idx} adds nothing up"));
            }
            let made = self.step_label(idx);
            if let Some(late) = self.step(idx).flat_map(|p| p.factors).find(|factor| **factor >= made) {
                return bug(format!("step {idx} makes {made} and uses {late}"));
            }
        }
        for pair in self.results.windows(2) {
            if (pair[0].row, pair[0].column) >= (pair[1].row, pair[1].column) {
                return bug(format!("results {:?} and {:?} are out of order", pair[0], pair[1]));
            }
        }
        for entry in &self.results {
            if entry.row >= self.n_rows || entry.column >= self.n_columns || entry.label.index() >= self.kinds.len() {
                return bug(format!("there is no {entry:?}"));
            }
        }
        Ok(())
    }

    /// Returns the results in an algebra, in the order of [`Program::results`]; `labels` are those of the edges. Uses
    /// only the constants 0, 1 and -1, addition, subtraction, multiplication and negation. Linear in the program.
    ///
    /// In an algebra of numbers a label of 0 does not mask a NaN. For functions with branches, use [`Program::replay`]
    /// and evaluate the graph.
    ///
    /// # Panics
    /// Panics if there are fewer labels than edges.
    pub fn evaluate<A: Algebra>(&self, labels: &[A::Value], algebra: &mut A) -> Vec<A::Value> {
        self.evaluate_observed(labels, algebra, |_, _| ())
    }

    /// As [`Self::evaluate`]; notifies the algebra of each product before it is multiplied and added.
    pub(crate) fn evaluate_observed<A: Algebra>(
        &self,
        labels: &[A::Value],
        algebra: &mut A,
        tell: impl Fn(&mut A, &Product<'_>),
    ) -> Vec<A::Value> {
        let mut values: Vec<A::Value> = Vec::with_capacity(self.n_labels());
        values.extend_from_slice(&labels[..self.n_edges]);
        for idx in 0..self.n_steps() {
            let value = match self.kinds[self.step_label(idx)] {
                Label::One => algebra.constant(1.0),
                Label::MinusOne => algebra.constant(-1.0),
                Label::Const | Label::Var => self.sum(idx, &values, algebra, &tell),
            };
            values.push(value);
        }
        self.results.iter().map(|entry| values[entry.label.index()].clone()).collect()
    }

    /// Adds positive products first, so that a negation remains only if all are negative.
    fn sum<A: Algebra>(
        &self,
        idx: usize,
        values: &[A::Value],
        algebra: &mut A,
        tell: &impl Fn(&mut A, &Product<'_>),
    ) -> A::Value {
        let mut sum: Option<A::Value> = None;
        let n_positive = self.step(idx).filter(|p| !self.is_negative(p)).count();
        for product in self.step(idx).filter(|p| !self.is_negative(p)) {
            tell(algebra, &product);
            let term = self.term(&product, values, algebra);
            sum = Some(match sum {
                None => term,
                Some(sum) => algebra.apply(Op::Add, &[sum, term]),
            });
        }
        for product in self.step(idx).filter(|p| self.is_negative(p)) {
            tell(algebra, &product);
            let term = self.term(&product, values, algebra);
            sum = Some(match sum {
                None => term,
                Some(sum) => algebra.apply(if n_positive > 0 { Op::Sub } else { Op::Add }, &[sum, term]),
            });
        }
        match sum {
            None => algebra.constant(0.0),
            Some(sum) if n_positive == 0 => algebra.apply(Op::Neg, &[sum]),
            Some(sum) => sum,
        }
    }

    /// Returns the product of the factors that are neither 1 nor -1.
    fn term<A: Algebra>(&self, product: &Product<'_>, values: &[A::Value], algebra: &mut A) -> A::Value {
        let mut term: Option<A::Value> = None;
        for factor in product.factors.iter().filter(|f| !is_unit(self.kinds[**f])) {
            let value = values[factor.index()].clone();
            term = Some(match term {
                None => value,
                Some(term) => algebra.apply(Op::Mul, &[term, value]),
            });
        }
        term.unwrap_or_else(|| algebra.constant(1.0))
    }

    /// Returns whether a product is negative once factors of 1 and -1 are removed.
    pub(crate) fn is_negative(&self, product: &Product<'_>) -> bool {
        let minus_ones = product.factors.iter().filter(|f| self.kinds[**f] == Label::MinusOne).count();
        product.negative ^ (minus_ones % 2 == 1)
    }

    /// Returns the results as nodes of the graph that `linear` was made from, in the order of [`Program::results`]. If
    /// the graph tracks origins, each operation gets the origin of the operation that it differentiates.
    ///
    /// # Errors
    /// Fails if `linear` was made from edges without nodes.
    pub fn replay(&self, linear: &LinearGraph, graph: &mut Graph) -> Result<Vec<NodeId>, Diagnostic> {
        let labels: Option<Vec<(NodeId, Factor)>> =
            linear.edges().map(|(_, edge)| Some((edge.node?, edge.factor))).collect();
        let labels = labels.filter(|labels| labels.len() == self.n_edges).ok_or_else(|| {
            Diagnostic::error("this linearised graph has no scalar graph behind it")
                .with_help("make it with LinearGraph::new")
        })?;
        Ok(if graph.tracks_origins() {
            origin::replay(self, linear, graph, &labels)
        } else {
            self.evaluate(&labels, &mut Hiding(graph)).into_iter().map(|(node, _)| node).collect()
        })
    }
}

/// Nodes with where they are infinite and zero: products are those in which a zero hides an infinity.
pub(crate) struct Hiding<'a, A>(pub(crate) &'a mut A);

impl<A: Algebra<Value = NodeId>> Algebra for Hiding<'_, A> {
    type Value = (NodeId, Factor);

    fn constant(&mut self, c: f64) -> Self::Value {
        (self.0.constant(c), Factor::constant(c))
    }

    fn apply(&mut self, op: Op, args: &[Self::Value]) -> Self::Value {
        match *args {
            [a, b] if op == Op::Mul => (multiply(self.0, a, b), a.1.times(b.1)),
            [a, b] => (self.0.apply(op, &[a.0, b.0]), a.1.plus(b.1)),
            [a] => (self.0.apply(op, &[a.0]), a.1),
            // A program adds, subtracts, multiplies and negates.
            _ => self.constant(f64::NAN),
        }
    }
}

/// Returns whether a label is 1 or -1.
#[must_use]
pub fn is_unit(kind: Label) -> bool {
    matches!(kind, Label::One | Label::MinusOne)
}

/// Builder of a program: products are added to the open step until [`Builder::close`] ends it.
#[derive(Clone, Debug)]
pub struct Builder {
    program: Program,
    open: usize,
}

impl Builder {
    /// Returns a builder of an empty program for `linear`.
    #[must_use]
    pub fn new(linear: &LinearGraph) -> Self {
        let (n_rows, n_columns) = (linear.rows().len(), linear.columns().len());
        Self::with_kinds(n_rows, n_columns, linear.edges().map(|(_, edge)| edge.label).collect())
    }

    pub(crate) fn with_kinds(n_rows: usize, n_columns: usize, kinds: Arena<LabelId, Label>) -> Self {
        let program = Program {
            n_edges: kinds.len(),
            n_rows,
            n_columns,
            kinds,
            step_ends: Vec::new(),
            products: Vec::new(),
            factors: Vec::new(),
            results: Vec::new(),
        };
        Self { program, open: 0 }
    }

    /// Returns the label of an edge.
    #[must_use]
    pub fn edge(&self, e: EdgeId) -> LabelId {
        LabelId::new(e.index())
    }

    /// Returns the kind of a label.
    #[must_use]
    pub fn kind(&self, label: LabelId) -> Label {
        self.program.kind(label)
    }

    /// Returns the number of products so far, in all steps.
    #[must_use]
    pub fn n_products(&self) -> u64 {
        self.program.products.len() as u64
    }

    /// Adds a product to the open step.
    pub fn add(&mut self, factors: &[LabelId]) {
        self.add_product(Product { negative: false, factors });
    }

    /// Adds or subtracts a product.
    pub fn add_product(&mut self, Product { negative, factors }: Product<'_>) {
        self.program.factors.extend_from_slice(factors);
        self.program.products.push((self.program.factors.len(), negative));
        self.open += 1;
    }

    /// Ends the open step and returns its label. No step is made for a mere copy of a label.
    pub fn close(&mut self) -> LabelId {
        let program = &mut self.program;
        let n_products = program.products.len();
        if self.open == 1 {
            let start = if n_products == 1 { 0 } else { program.products[n_products - 2].0 };
            let (end, negative) = program.products[n_products - 1];
            if end - start == 1 && !negative {
                self.open = 0;
                program.products.pop();
                return program.factors.remove(start);
            }
        }
        let mut kind = None;
        for idx in n_products - self.open..n_products {
            let product = program.product(idx);
            let product_kind = product_kind(program, &product);
            kind = Some(match kind {
                None => product_kind,
                Some(Label::Var) => Label::Var,
                Some(_) if product_kind == Label::Var => Label::Var,
                Some(_) => Label::Const,
            });
        }
        self.open = 0;
        program.step_ends.push(n_products);
        program.kinds.push(kind.unwrap_or(Label::Const))
    }

    /// Returns the finished program. `ends` are the derivatives between sinks and sources, each pair at most once.
    /// Pairs that are not requested are dropped, with the steps that only they need.
    #[must_use]
    pub fn finish(mut self, linear: &LinearGraph, ends: &[(VertexId, VertexId, LabelId)]) -> Program {
        let mut rows_of: Vec<Vec<usize>> = vec![Vec::new(); linear.sinks().len()];
        let first_sink = linear.n_vertices() - linear.sinks().len();
        for (row, sink) in linear.rows().iter().enumerate() {
            rows_of[sink.index() - first_sink].push(row);
        }
        let mut columns_of: Vec<Vec<usize>> = vec![Vec::new(); linear.sources().len()];
        for (column, source) in linear.columns().iter().enumerate() {
            columns_of[source.index()].push(column);
        }
        let mut results = Vec::with_capacity(ends.len());
        for &(sink, source, label) in ends {
            for &row in &rows_of[sink.index() - first_sink] {
                for &column in &columns_of[source.index()] {
                    if linear.pairs().is_none_or(|pairs| pairs.binary_search(&(row, column)).is_ok()) {
                        results.push(Entry { row, column, label });
                    }
                }
            }
        }
        results.sort_unstable();
        self.program.results = results;
        if linear.pairs().is_some() { self.program.pruned() } else { self.program }
    }

    pub(crate) fn finish_with(mut self, mut results: Vec<Entry>) -> Program {
        results.sort_unstable();
        self.program.results = results;
        self.program
    }
}

fn product_kind(program: &Program, product: &Product<'_>) -> Label {
    let unit = if program.is_negative(product) { Label::MinusOne } else { Label::One };
    product.factors.iter().fold(unit, |kind, factor| match program.kind(*factor) {
        Label::One | Label::MinusOne => kind,
        Label::Const if kind != Label::Var => Label::Const,
        Label::Const | Label::Var => Label::Var,
    })
}
