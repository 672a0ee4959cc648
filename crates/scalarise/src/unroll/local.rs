//! Local derivatives: those that occur while a function is unrolled, accumulated together.
//!
//! In: for each derivative a point (the nodes at which it is taken), and nodes over inputs for the point. Out: nodes.
//! All requests on functions at one point, forward along directions and backward against cotangents, become one
//! linearised graph: unit vectors are its own columns and rows, other vectors are additional sources and sinks
//! ([`Column::Direction`], [`Row::Weighted`]). So the portfolio of accumulation methods decides all at once: the order
//! in which the Jacobian is computed, and whether it is computed at all or vectors are propagated through the graph
//! (the bracketing of local and outer products is the elimination order at the vectors' own edges). Its programs are
//! checked there before they are used.
//!
//! | before accumulation | stands for |
//! | --- | --- |
//! | an input of a [`Point`] | a double of the point |
//! | a hole, an input too | an element of a derivative |
//!
//! Holds: a request of level `l` depends on holes of lower levels only. Points are distinguished by the number of open
//! derivatives around them, so that a derivative's inputs are never confused with those of the enclosing one.
//!
//! Source of rows and columns with vectors: Griewank and Walther, *Evaluating Derivatives* (2008), chapter 10, where
//! seeds are ordinary vertices of the graph.

use chainrule_accumulate::strategy::{Report, Strategy};
use chainrule_accumulate::{Budget, Column, LinearGraph, Optimise, Program, Row, STRATEGIES};
use chainrule_base::Diagnostic;
use chainrule_graph::optimise::{Optimise as Factoring, optimise};
use chainrule_graph::{Graph, Node, NodeId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Budget of the search for the derivatives at one point: methods that are not always tried, in about microseconds;
/// products.
const BUDGET: Budget = Budget { paths: 0, products: 100_000, scores: 100_000, evaluations: 0, effort: 2_000, work: 0 };

/// Number of times that factoring may visit each node of a small graph,
const FACTORING_LOOKS: u64 = 50;

/// and maximum number of visited nodes in a large one.
const FACTORING: u64 = 20_000;

/// Pending requests, and a report of accumulated ones.
#[derive(Default)]
pub(crate) struct Local {
    points: Vec<Point>,
    /// Points by the number of enclosing derivatives and by their nodes.
    known: FxHashMap<(usize, Vec<NodeId>), usize>,
    requests: Vec<Request>,
    /// Levels of holes, and of the inputs of points.
    levels: FxHashMap<NodeId, usize>,
    /// Number of open derivatives.
    depth: usize,
    /// Requested strategy instead of the portfolio.
    strategy: Option<&'static Strategy>,
    /// Report of the accumulation at each point.
    pub(crate) reports: Vec<Report>,
}

struct Point {
    at: Vec<NodeId>,
    /// One for each of `at`.
    inputs: Vec<NodeId>,
}

/// Element of a derivative.
struct Request {
    hole: NodeId,
    point: usize,
    level: usize,
    row: Row,
    column: Column,
}

/// Open derivative.
#[derive(Clone, Copy)]
pub(crate) struct Opened {
    point: usize,
    /// Number of earlier requests.
    first: usize,
}

impl Local {
    /// Accumulates by `strategy`; without one, by the portfolio.
    pub(crate) fn by(strategy: Option<&'static Strategy>) -> Self {
        Self { strategy, ..Self::default() }
    }

    /// Opens a derivative at the nodes `at`: from here on, until it is closed, requests are inside of it. Returns the
    /// inputs for `at`.
    pub(crate) fn open(&mut self, graph: &mut Graph, at: &[NodeId]) -> (Opened, Vec<NodeId>) {
        let key = (self.depth, at.to_vec());
        let point = match self.known.get(&key) {
            Some(point) => *point,
            None => {
                let level = self.level(graph, at);
                let first = graph.inputs().len();
                let inputs: Vec<NodeId> = (0..at.len()).map(|k| graph.input(format!("p{}", first + k))).collect();
                self.levels.extend(inputs.iter().map(|input| (*input, level)));
                self.points.push(Point { at: at.to_vec(), inputs });
                self.known.insert(key, self.points.len() - 1);
                self.points.len() - 1
            }
        };
        self.depth += 1;
        (Opened { point, first: self.requests.len() }, self.points[point].inputs.clone())
    }

    /// Closes a derivative: returns `results`, with the inner derivatives accumulated, and the same at the point
    /// instead of its inputs.
    ///
    /// # Errors
    /// The errors of [`Self::resolve`].
    pub(crate) fn close(
        &mut self,
        graph: &mut Graph,
        opened: Opened,
        results: &[NodeId],
    ) -> Result<(Vec<NodeId>, Vec<NodeId>), Diagnostic> {
        let results = self.resolve_from(graph, opened.first, results)?;
        self.depth -= 1;
        let Point { at, inputs } = &self.points[opened.point];
        let map = inputs.iter().copied().zip(at.iter().copied()).collect();
        let values = graph.substitute(&results, &map)?;
        Ok((results, values))
    }

    /// Returns the derivatives of `results` of a closed derivative, along the direction whose component by each input
    /// of the point is given, as a placeholder node for each.
    pub(crate) fn forward(
        &mut self,
        graph: &mut Graph,
        opened: Opened,
        results: &[NodeId],
        along: &[NodeId],
    ) -> Vec<NodeId> {
        let inputs = self.points[opened.point].inputs.clone();
        let level = 1 + self.level(graph, &[results, along].concat());
        let terms = terms(graph, &inputs, along);
        let column = match terms.as_slice() {
            [] => return vec![graph.constant(0.0); results.len()],
            [(x, weight)] if graph.as_const(*weight) == Some(1.0) => Column::Input(*x),
            _ => Column::Direction(terms),
        };
        results.iter().map(|root| self.ask(graph, opened.point, level, Row::Root(*root), column.clone())).collect()
    }

    /// Returns the derivatives by the inputs of the point of the weighted sum of `results`.
    pub(crate) fn backward(
        &mut self,
        graph: &mut Graph,
        opened: Opened,
        results: &[NodeId],
        weights: &[NodeId],
    ) -> Vec<NodeId> {
        let inputs = self.points[opened.point].inputs.clone();
        let level = 1 + self.level(graph, &[results, weights].concat());
        let terms = terms(graph, results, weights);
        let row = match terms.as_slice() {
            [] => return vec![graph.constant(0.0); inputs.len()],
            [(root, weight)] if graph.as_const(*weight) == Some(1.0) => Row::Root(*root),
            _ => Row::Weighted(terms),
        };
        inputs.iter().map(|x| self.ask(graph, opened.point, level, row.clone(), Column::Input(*x))).collect()
    }

    fn ask(&mut self, graph: &mut Graph, point: usize, level: usize, row: Row, column: Column) -> NodeId {
        let hole = graph.input(format!("h{}", graph.inputs().len()));
        self.levels.insert(hole, level);
        self.requests.push(Request { hole, point, level, row, column });
        hole
    }

    /// Returns the highest level on which `nodes` depend, 0 if they depend on no derivative.
    fn level(&self, graph: &Graph, nodes: &[NodeId]) -> usize {
        if self.levels.is_empty() {
            return 0;
        }
        let inputs = graph.reachable(nodes);
        let inputs = inputs.iter().filter(|id| matches!(graph.node(*id), Node::Input(_)));
        inputs.filter_map(|input| self.levels.get(&input)).copied().max().unwrap_or(0)
    }

    /// Returns `roots` with all derivatives accumulated.
    ///
    /// # Errors
    /// Fails if a request is too large, which is a limitation; or if the checker accepts no program, which is a bug.
    pub(crate) fn resolve(&mut self, graph: &mut Graph, roots: &[NodeId]) -> Result<Vec<NodeId>, Diagnostic> {
        self.resolve_from(graph, 0, roots)
    }

    fn resolve_from(&mut self, graph: &mut Graph, first: usize, roots: &[NodeId]) -> Result<Vec<NodeId>, Diagnostic> {
        let mut requests = self.requests.split_off(first);
        if requests.is_empty() {
            return Ok(roots.to_vec());
        }
        requests.sort_by_key(|request| (request.level, request.point));
        let mut known: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for batch in requests.chunk_by(|a, b| (a.level, a.point) == (b.level, b.point)) {
            let nodes = self.accumulate(graph, batch)?;
            let point = &self.points[batch[0].point];
            let at = graph.substitute(&point.at, &known)?;
            known.extend(point.inputs.iter().copied().zip(at));
            let nodes = graph.substitute(&nodes, &known)?;
            known.extend(batch.iter().map(|request| request.hole).zip(nodes));
        }
        graph.substitute(roots, &known)
    }

    /// Accumulates the requests at one point, over its inputs: for the function as it is, and for the factored
    /// function; returns the cheaper result, together with the function.
    fn accumulate(&mut self, graph: &mut Graph, requests: &[Request]) -> Result<Vec<NodeId>, Diagnostic> {
        let mut asked = Asked::default();
        let places: Vec<(usize, usize)> = requests.iter().map(|request| asked.place(request)).collect();
        let function = asked.roots();
        let plain = accumulated(graph, &asked, self.strategy)?;
        let factored = optimise(graph, &function, &factoring(graph, &function)).roots;
        let mut best = plain;
        if factored != function
            && let Ok(other) = accumulated(graph, &asked.of(&factored), self.strategy)
            && other.weight < best.weight
        {
            best = other;
        }
        self.reports.push(best.report);
        let zero = graph.constant(0.0);
        Ok(places.iter().map(|at| best.entries.get(at).copied().unwrap_or(zero)).collect())
    }
}

/// Rows and columns without duplicates, and the requested pairs.
#[derive(Default)]
struct Asked {
    rows: Vec<Row>,
    columns: Vec<Column>,
    /// Row and column.
    pairs: BTreeSet<(usize, usize)>,
}

impl Asked {
    fn place(&mut self, request: &Request) -> (usize, usize) {
        let at = (place(&mut self.rows, &request.row), place(&mut self.columns, &request.column));
        self.pairs.insert(at);
        at
    }

    /// Returns the roots of all rows, in order.
    fn roots(&self) -> Vec<NodeId> {
        let mut roots = Vec::new();
        for row in &self.rows {
            match row {
                Row::Root(root) => roots.push(*root),
                Row::Weighted(terms) => roots.extend(terms.iter().map(|(root, _)| *root)),
            }
        }
        roots
    }

    /// Returns the same for other roots, in order.
    fn of(&self, roots: &[NodeId]) -> Self {
        let mut roots = roots.iter().copied();
        let mut next = |old: NodeId| roots.next().unwrap_or(old);
        let row = |row: &Row| match row {
            Row::Root(root) => Row::Root(next(*root)),
            Row::Weighted(terms) => Row::Weighted(terms.iter().map(|(root, weight)| (next(*root), *weight)).collect()),
        };
        Self { rows: self.rows.iter().map(row).collect(), columns: self.columns.clone(), pairs: self.pairs.clone() }
    }
}

/// Derivatives as nodes.
struct Accumulated {
    entries: FxHashMap<(usize, usize), NodeId>,
    /// Weight of the function and its derivatives, numbered.
    weight: u64,
    report: Report,
}

/// Returns the program of `strategy`, by default of the portfolio, with the least weight together with the function,
/// numbered, as nodes.
fn accumulated(
    graph: &mut Graph,
    asked: &Asked,
    strategy: Option<&'static Strategy>,
) -> Result<Accumulated, Diagnostic> {
    let mut linear = LinearGraph::build(graph, &asked.rows, &asked.columns)?;
    if asked.pairs.len() < asked.rows.len() * asked.columns.len() {
        let pairs: Vec<(usize, usize)> = asked.pairs.iter().copied().collect();
        linear = linear.ask_only(&pairs)?;
    }
    let function = asked.roots();
    let weigh = |graph: &mut Graph, program: &Program| {
        let nodes = program.replay(&linear, graph)?;
        Ok::<u64, Diagnostic>(Optimise::Quick.quickly(graph, &[&function[..], &nodes].concat()).1)
    };
    let cost = |program: &Program| weigh(graph, program).unwrap_or(u64::MAX);
    let (strategy, budget) = strategy.map_or((&STRATEGIES[0], BUDGET), |strategy| (strategy, Budget::default()));
    let (program, report) = strategy.run_by(&linear, &budget, cost)?;
    let weight = weigh(graph, &program)?;
    let nodes = program.replay(&linear, graph)?;
    let entries = program.results().iter().map(|entry| (entry.row, entry.column)).zip(nodes).collect();
    Ok(Accumulated { entries, weight, report })
}

/// Returns the time limit of factoring below `roots`.
pub(crate) fn factoring(graph: &Graph, roots: &[NodeId]) -> Factoring {
    let n_nodes = graph.reachable(roots).len() as u64;
    Factoring { budget: FACTORING.min(FACTORING_LOOKS * n_nodes), ..Factoring::default() }
}

/// Returns each of `nodes` with its weight, without those whose weight is 0.
fn terms(graph: &Graph, nodes: &[NodeId], weights: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    let all = nodes.iter().copied().zip(weights.iter().copied());
    all.filter(|(_, weight)| graph.as_const(*weight) != Some(0.0)).collect()
}

/// Returns the position of `item` in `all`, to which it is added if missing.
fn place<T: PartialEq + Clone>(all: &mut Vec<T>, item: &T) -> usize {
    all.iter().position(|known| known == item).unwrap_or_else(|| {
        all.push(item.clone());
        all.len() - 1
    })
}
