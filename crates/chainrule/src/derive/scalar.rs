//! Derivatives of straight-line code, by accumulation on the linearised graph.

use super::select::{Selected, choose, selected};
use super::whole::Whole;
use super::{Derivation, Derived, Lines, What, not_scalar};
use crate::function::{Port, ScalarBody};
use crate::interface::{Signature, array_of, entries};
use crate::{Error, Function, Result};
use chainrule_accumulate::derive::{Options, jacobian, jacobian_vector, vector_jacobian};
use chainrule_accumulate::strategy::Report;
use chainrule_accumulate::{Effort, Pattern};
use chainrule_autodiff::Part;
use chainrule_base::Name;
use chainrule_graph::{Graph, NodeId, derivatives_of_order};
use chainrule_ir::Type;
use chainrule_scalarise::leaves::leaves;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Maximum order for which derivatives by one variable are taken one by one. The code of each round is optimised, but
/// grows by a factor.
const MAX_REPEATED: usize = 9;

/// Derivation in progress.
struct Work<'a> {
    request: &'a Derivation,
    options: Options,
    graph: Graph,
    /// The function's own, then directions.
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// Path of each output in the request.
    paths: Vec<Vec<Name>>,
    /// Whole arguments and results, if the function is a program's and the request contains no parts of them.
    whole: Option<Whole>,
    /// Arguments of the program, then directions.
    params: Vec<(Name, Type)>,
    reports: Vec<Report>,
    of: Vec<Selected>,
    by: Vec<Selected>,
    /// Replacements of the function's nodes before differentiation: the same values from fewer operations.
    improved: FxHashMap<NodeId, NodeId>,
}

impl Derivation {
    /// Derives the request.
    pub(super) fn derive_scalar(&self, body: &ScalarBody, lines: Lines) -> Result<Derived> {
        let name = self.function.name();
        let (params, results) = (&self.function.signature().params, &self.function.signature().results);
        let of = choose(results, self.of.as_deref(), name, "result")?;
        let by = choose(params, self.by.as_deref(), name, "argument")?;
        let mut work = Work {
            request: self,
            options: Options {
                optimise: self.optimise,
                lists_steps: self.lists_steps,
                ..Options::new(chainrule_search::strategy(&self.strategy).map_err(Error::lone)?)
            },
            graph: body.graph.clone(),
            inputs: body.inputs.clone(),
            outputs: Vec::new(),
            paths: Vec::new(),
            whole: self.whole(body, &by),
            params: params.clone(),
            reports: Vec::new(),
            of: selected(&body.outputs, results, &of),
            by: selected(&body.inputs, params, &by),
            improved: FxHashMap::default(),
        };
        if lines == Lines::Unknown {
            work.graph.forget_origins();
        }
        for what in &self.what {
            work.place(*what);
            match what {
                What::Part(Part::Value) => work.value(),
                What::Part(Part::Jacobian) => work.jacobian()?,
                What::Part(Part::Gradient) => {
                    work.one_scalar(*what)?;
                    work.jacobian()?;
                }
                What::Part(Part::Hessian) => work.hessian()?,
                What::Part(Part::HessianDiagonal) => work.hessian_diagonal()?,
                What::Part(Part::Jvp) => work.jvp()?,
                What::Part(Part::Vjp) => work.vjp()?,
                What::Part(Part::Hvp) => work.hvp()?,
                What::Order(order) => work.order(*order)?,
            }
        }
        // The function and its derivative share nodes if both are computed from the same ones.
        let shared = |id: &NodeId| work.improved.get(id).copied().unwrap_or(*id);
        let roots: Vec<NodeId> = work.outputs.iter().flat_map(|port| port.nodes.iter().map(shared)).collect();
        let (roots, improvement) =
            self.optimise.improve_by(&mut work.graph, &roots, Effort::Thorough, self.graph_passes);
        work.graph.settle_origins(&roots);
        // Only requested results; inputs keep their positions.
        let (graph, roots) = work.graph.extract(&roots);
        let mut roots = roots.into_iter();
        for port in &mut work.outputs {
            port.nodes = roots.by_ref().take(port.nodes.len()).collect();
        }
        let kept = |id: &NodeId| graph.inputs().get(input_index(&work.graph, *id)).map_or(*id, |(_, id)| *id);
        for port in &mut work.inputs {
            port.nodes = port.nodes.iter().map(kept).collect();
        }
        let origins = body.origins.clone().filter(|_| lines == Lines::Tracked);
        let results = match &work.whole {
            Some(whole) => {
                work.paths.clear();
                whole.results(&self.what, &mut work.outputs)
            }
            None => entries(&work.outputs),
        };
        let program = body.program.is_some().then_some(Signature { params: work.params, results });
        let derivation = Some(Arc::new(self.clone()));
        let body = ScalarBody { graph, inputs: work.inputs, outputs: work.outputs, program, origins, derivation };
        let function = Function::from_scalar(&self.derived_name(), body)?;
        Ok(Derived {
            function,
            reports: work.reports,
            paths: work.paths,
            improvement: Some(improvement),
            by_rows_where: None,
            form: None,
        })
    }
}

/// Requested elements of a Jacobian.
pub(crate) struct Elements {
    /// Differentiated nodes.
    pub(crate) rows: Vec<NodeId>,
    /// Inputs of the function to differentiate by, counted over all its arguments.
    pub(crate) columns: Vec<usize>,
    /// Row and column of each element, in the order of the derived function's results.
    pub(crate) order: Vec<(usize, usize)>,
}

impl Derivation {
    /// Returns the requested elements of the Jacobian, in the order of its results.
    pub(crate) fn elements(&self, body: &ScalarBody) -> Result<Elements> {
        let name = self.function.name();
        let (params, results) = (&self.function.signature().params, &self.function.signature().results);
        let of = choose(results, self.of.as_deref(), name, "result")?;
        let chosen = choose(params, self.by.as_deref(), name, "argument")?;
        let of = selected(&body.outputs, results, &of);
        let by = selected(&body.inputs, params, &chosen);
        let blocks = match self.whole(body, &chosen) {
            Some(whole) => whole.jacobian().1,
            None => (0..of.len()).flat_map(|f| (0..by.len()).map(move |x| (f, x))).collect(),
        };
        let (rows, columns) = (ranges(&of), ranges(&by));
        let mut order = Vec::new();
        for (f, x) in blocks {
            order.extend(rows[f].clone().flat_map(|row| columns[x].clone().map(move |column| (row, column))));
        }
        let columns = nodes(&by).into_iter().map(|node| input_index(&body.graph, node)).collect();
        Ok(Elements { rows: nodes(&of), columns, order })
    }
}

fn input_index(graph: &Graph, id: NodeId) -> usize {
    match graph.node(id) {
        chainrule_graph::Node::Input(input) => chainrule_base::Id::index(input),
        _ => usize::MAX,
    }
}

/// Returns the positions of the nodes of each among those of all.
fn ranges(selected: &[Selected]) -> Vec<Range<usize>> {
    let place = |first: &mut usize, s: &Selected| {
        let start = std::mem::replace(first, *first + s.nodes.len());
        Some(start..*first)
    };
    selected.iter().scan(0, place).collect()
}

fn nodes(selected: &[Selected]) -> Vec<NodeId> {
    selected.iter().flat_map(|s| s.nodes.iter().copied()).collect()
}

/// Returns the path of a leaf in a result: `a`, `b` for `result.a.b`.
pub(crate) fn result_path(name: &str) -> Vec<Name> {
    let inner = name.strip_prefix("result.").unwrap_or(name);
    inner.split('.').map(Name::new).collect()
}

fn joined(a: &[usize], b: &[usize]) -> Vec<usize> {
    a.iter().chain(b).copied().collect()
}

impl Work<'_> {
    /// Records the paths of the outputs that `what` will add: under its name unless it is the only part, then under
    /// those of results and arguments unless there is only one.
    fn place(&mut self, what: What) {
        let part = if self.request.what.len() == 1 { Vec::new() } else { vec![Name::from(what.suffix())] };
        let several = |selected: &[Selected]| -> Vec<Vec<Name>> {
            let path = |s: &Selected| if selected.len() == 1 { Vec::new() } else { result_path(&s.name) };
            selected.iter().map(path).collect()
        };
        let (of, by) = (several(&self.of), several(&self.by));
        let dimensions: &[&[Vec<Name>]] = match what {
            What::Part(Part::Value | Part::Jvp) | What::Order(_) => &[&of],
            What::Part(Part::Jacobian | Part::Gradient) => &[&of, &by],
            What::Part(Part::Hessian) => &[&by, &by],
            What::Part(Part::Vjp | Part::Hvp | Part::HessianDiagonal) => &[&by],
        };
        let places = dimensions.iter().fold(vec![part], |paths, dimension| {
            let longer =
                |path: &Vec<Name>| dimension.iter().map(|more| [&**path, &**more].concat()).collect::<Vec<_>>();
            paths.iter().flat_map(longer).collect()
        });
        self.paths.extend(places);
    }

    fn value(&mut self) {
        for s in &self.of {
            let port = Port { name: s.name.clone(), shape: s.shape.clone(), nodes: s.nodes.clone(), pattern: None };
            self.outputs.push(port);
        }
    }

    fn one_scalar(&self, what: What) -> Result<NodeId> {
        match nodes(&self.of).as_slice() {
            [one] => Ok(*one),
            many => Err(not_scalar(self.request.function.name(), what, many.len())),
        }
    }

    /// Returns the derivatives of `rows` by `columns`, those of `pairs` only; as (row, column, node) ascending.
    fn accumulate(
        &mut self,
        rows: &[NodeId],
        columns: &[NodeId],
        pairs: Option<&[(usize, usize)]>,
    ) -> Result<Vec<(usize, usize, NodeId)>> {
        let derived = jacobian(&mut self.graph, rows, columns, pairs, &self.options).map_err(Error::lone)?;
        let entries = derived.entries().collect();
        self.improved.extend(rows.iter().copied().zip(derived.roots));
        self.reports.push(derived.report);
        Ok(entries)
    }

    /// Returns whether a matrix is one result, not one for each result and argument: a sparse one of a program.
    fn is_one_matrix(&self) -> bool {
        self.request.sparse && self.whole.is_some()
    }

    fn jacobian(&mut self) -> Result<()> {
        let (rows, columns) = (nodes(&self.of), nodes(&self.by));
        let entries = self.accumulate(&rows, &columns, None)?;
        if self.is_one_matrix() {
            self.block(String::new(), Vec::new(), 0..rows.len(), 0..columns.len(), &entries);
            return Ok(());
        }
        let (of, by) = (self.of.clone(), self.by.clone());
        let mut first_row = 0;
        for f in &of {
            let mut first_column = 0;
            for x in &by {
                let name = format!("d{}_d{}", f.name, x.name);
                let (rows, columns) =
                    (first_row..first_row + f.nodes.len(), first_column..first_column + x.nodes.len());
                first_column = columns.end;
                self.block(name, joined(&f.shape, &x.shape), rows, columns, &entries);
            }
            first_row += f.nodes.len();
        }
        Ok(())
    }

    /// Adds the result for the block of `entries` in these rows and columns.
    fn block(
        &mut self,
        name: String,
        shape: Vec<usize>,
        rows: Range<usize>,
        columns: Range<usize>,
        entries: &[(usize, usize, NodeId)],
    ) {
        let triangle = self.request.triangle.filter(|_| self.request.sparse);
        let inside: Vec<(usize, usize, NodeId)> = entries
            .iter()
            .filter(|(r, c, _)| triangle.is_none_or(|triangle| triangle.has(*r, *c)))
            .filter(|(r, c, _)| rows.contains(r) && columns.contains(c))
            .map(|(r, c, node)| (r - rows.start, c - columns.start, *node))
            .collect();
        let port = if self.request.sparse {
            let places = inside.iter().map(|(r, c, _)| (*r, *c)).collect();
            Port {
                name: Name::from(name),
                shape: vec![inside.len()],
                nodes: inside.iter().map(|(_, _, node)| *node).collect(),
                pattern: Some(Arc::new(Pattern::new(rows.len(), columns.len(), places))),
            }
        } else {
            let mut nodes = vec![self.graph.constant(0.0); rows.len() * columns.len()];
            for (r, c, node) in inside {
                nodes[r * columns.len() + c] = node;
            }
            Port { name: Name::from(name), shape, nodes, pattern: None }
        };
        self.outputs.push(port);
    }

    /// Computes the gradient, then its Jacobian: the lower triangle is accumulated, the upper one is its mirror image.
    fn hessian(&mut self) -> Result<()> {
        let f = self.one_scalar(What::Part(Part::Hessian))?;
        let columns = nodes(&self.by);
        let gradient = self.accumulate(&[f], &columns, None)?;
        let rows: Vec<NodeId> = gradient.iter().map(|(_, _, node)| *node).collect();
        let places: Vec<usize> = gradient.iter().map(|(_, column, _)| *column).collect();
        // Only connected pairs are requested, so that a large sparse Hessian has no dense list.
        let lower: Vec<(usize, usize)> = self
            .graph
            .depends_on(&rows, &columns)
            .into_iter()
            .enumerate()
            .flat_map(|(row, depends)| depends.into_iter().map(move |column| (row, column)))
            .filter(|(row, column)| *column <= places[*row])
            .collect();
        let entries = self.accumulate(&rows, &columns, Some(&lower))?;
        let mut full: Vec<(usize, usize, NodeId)> = Vec::new();
        for (row, column, node) in entries {
            full.push((places[row], column, node));
            if places[row] != column {
                full.push((column, places[row], node));
            }
        }
        full.sort_unstable();
        if self.is_one_matrix() {
            self.block(String::new(), Vec::new(), 0..columns.len(), 0..columns.len(), &full);
            return Ok(());
        }
        let (name, by) = (self.of[0].name.clone(), self.by.clone());
        let mut first_row = 0;
        for x in &by {
            let mut first_column = 0;
            for y in &by {
                let name = format!("d2{name}_d{}_d{}", x.name, y.name);
                let (rows, columns) =
                    (first_row..first_row + x.nodes.len(), first_column..first_column + y.nodes.len());
                first_column = columns.end;
                self.block(name, joined(&x.shape, &y.shape), rows, columns, &full);
            }
            first_row += x.nodes.len();
        }
        Ok(())
    }

    /// Computes the gradient, then the derivative of each element by the same variable.
    fn hessian_diagonal(&mut self) -> Result<()> {
        let f = self.one_scalar(What::Part(Part::HessianDiagonal))?;
        let columns = nodes(&self.by);
        let gradient = self.accumulate(&[f], &columns, None)?;
        let rows: Vec<NodeId> = gradient.iter().map(|(_, _, node)| *node).collect();
        let pairs: Vec<(usize, usize)> =
            gradient.iter().enumerate().map(|(row, (_, column, _))| (row, *column)).collect();
        let mut diagonal = vec![self.graph.constant(0.0); columns.len()];
        for (_, column, node) in self.accumulate(&rows, &columns, Some(&pairs))? {
            diagonal[column] = node;
        }
        let (name, by) = (self.of[0].name.clone(), self.by.clone());
        self.add_like(&by, |s| format!("d2{name}_d{}2", s.name), diagonal);
        Ok(())
    }

    /// Adds arguments `name` + `suffix`, with the shape of `like`: the leaves of `whole`, if given.
    fn direction(&mut self, like: &[Selected], whole: Option<Vec<(Name, Type)>>, suffix: &str) -> Result<Vec<NodeId>> {
        let renamed = |name: &Name| Name::from(format!("{name}{suffix}"));
        let params: Vec<(Name, Type)> = match whole {
            Some(whole) => whole.into_iter().map(|(name, ty)| (renamed(&name), ty)).collect(),
            None => like.iter().map(|s| (renamed(&s.name), array_of(&s.shape))).collect(),
        };
        let leaves = params.iter().flat_map(|(name, ty)| leaves(ty, name));
        let mut all = Vec::new();
        for (s, leaf) in like.iter().zip(leaves) {
            let name = leaf.name;
            if self.request.function.inputs().iter().any(|own| own.name == name) {
                return Err(Error::request(
                    format!("`{}` has an argument `{name}` already", self.request.function.name()),
                    "that is the name of a direction: give the argument another name",
                ));
            }
            // Two requests in one share a direction.
            let port = match self.inputs.iter().find(|port| port.name == name) {
                Some(port) => port.clone(),
                None => {
                    let graph = &mut self.graph;
                    let nodes = crate::function::indices(&s.shape).map(|i| graph.input(format!("{name}{i}"))).collect();
                    let port = Port { name, shape: s.shape.clone(), nodes, pattern: None };
                    self.inputs.push(port.clone());
                    port
                }
            };
            all.extend(port.nodes);
        }
        for param in params {
            if !self.params.contains(&param) {
                self.params.push(param);
            }
        }
        Ok(all)
    }

    fn tangents(&mut self, rows: &[NodeId]) -> Result<Vec<NodeId>> {
        let by = self.by.clone();
        let whole = self.whole.as_ref().map(|whole| whole.by.clone());
        let direction = self.direction(&by, whole, "_tan")?;
        let seeds: Vec<(NodeId, NodeId)> = nodes(&by).into_iter().zip(direction).collect();
        let derived = jacobian_vector(&mut self.graph, rows, &seeds, &self.options).map_err(Error::lone)?;
        let mut tangents = vec![self.graph.constant(0.0); rows.len()];
        for (row, _, node) in derived.entries() {
            tangents[row] = node;
        }
        self.improved.extend(rows.iter().copied().zip(derived.roots));
        self.reports.push(derived.report);
        Ok(tangents)
    }

    fn add_like(&mut self, like: &[Selected], name: impl Fn(&Selected) -> String, nodes: Vec<NodeId>) {
        let mut nodes = nodes.into_iter();
        for s in like {
            let elements = nodes.by_ref().take(s.nodes.len()).collect();
            let port = Port { name: Name::from(name(s)), shape: s.shape.clone(), nodes: elements, pattern: None };
            self.outputs.push(port);
        }
    }

    fn jvp(&mut self) -> Result<()> {
        let of = self.of.clone();
        let tangents = self.tangents(&nodes(&of))?;
        self.add_like(&of, |s| format!("{}_tan", s.name), tangents);
        Ok(())
    }

    fn vjp(&mut self) -> Result<()> {
        let (of, by) = (self.of.clone(), self.by.clone());
        let whole = self.whole.as_ref().map(|whole| whole.of.clone());
        let cotangents = self.direction(&of, whole, "_adj")?;
        let columns = nodes(&by);
        let seeds: Vec<(NodeId, NodeId)> = nodes(&of).into_iter().zip(cotangents).collect();
        let derived = vector_jacobian(&mut self.graph, &seeds, &columns, &self.options).map_err(Error::lone)?;
        let mut adjoints = vec![self.graph.constant(0.0); columns.len()];
        for (_, column, node) in derived.entries() {
            adjoints[column] = node;
        }
        self.improved.extend(seeds.iter().map(|(root, _)| *root).zip(derived.roots));
        self.reports.push(derived.report);
        self.add_like(&by, |s| format!("{}_adj", s.name), adjoints);
        Ok(())
    }

    fn hvp(&mut self) -> Result<()> {
        let f = self.one_scalar(What::Part(Part::Hvp))?;
        let by = self.by.clone();
        let columns = nodes(&by);
        let mut gradient = vec![self.graph.constant(0.0); columns.len()];
        for (_, column, node) in self.accumulate(&[f], &columns, None)? {
            gradient[column] = node;
        }
        let products = self.tangents(&gradient)?;
        self.add_like(&by, |s| format!("{}_hvp", s.name), products);
        Ok(())
    }

    /// Computes derivatives of an order.
    fn order(&mut self, order: usize) -> Result<()> {
        let (of, n) = (self.of.clone(), nodes(&self.by).len());
        let all = of.iter().map(|f| self.elements_of_order(f, order)).collect::<Result<Vec<_>>>()?;
        let Some(whole) = &self.whole else {
            let by_shape: Vec<usize> = if self.by.len() == 1 { self.by[0].shape.clone() } else { vec![n] };
            for (f, nodes) in of.iter().zip(all) {
                let shape = (0..order).fold(f.shape.clone(), |shape, _| joined(&shape, &by_shape));
                let name = Name::from(format!("d{order}{}", f.name));
                self.outputs.push(Port { name, shape, nodes, pattern: None });
            }
            return Ok(());
        };
        let columns = ranges(&self.by);
        let paths = whole.order(order).1;
        for path in paths {
            let Some((row, by)) = path.split_first() else { continue };
            let mut places: Vec<usize> = (0..of[*row].nodes.len()).collect();
            let mut shape = of[*row].shape.clone();
            for leaf in by {
                let next = |place: usize| columns[*leaf].clone().map(move |column| place * n + column);
                places = places.into_iter().flat_map(next).collect();
                shape.extend(&self.by[*leaf].shape);
            }
            let nodes = places.into_iter().map(|place| all[*row][place]).collect();
            self.outputs.push(Port { name: Name::from(format!("d{order}")), shape, nodes, pattern: None });
        }
        Ok(())
    }

    /// Returns the derivatives of an order of the elements of `f`, row-major. Each round differentiates by variables up
    /// to the last one only; the others are permutations. High orders by one variable are computed by Taylor
    /// arithmetic.
    fn elements_of_order(&mut self, f: &Selected, order: usize) -> Result<Vec<NodeId>> {
        let columns = nodes(&self.by);
        let n = columns.len();
        let size = n.checked_pow(u32::try_from(order).unwrap_or(u32::MAX)).and_then(|s| s.checked_mul(f.nodes.len()));
        let Some(size) = size.filter(|s| *s <= 1 << 24) else {
            return Err(Error::request(
                format!("derivatives of order {order} by {n} variables are too many to write out"),
                "choose fewer variables with `by`, or a lower order",
            ));
        };
        if let ([by], true) = (&columns[..], order > MAX_REPEATED) {
            return derivatives_of_order(&mut self.graph, &f.nodes, *by, order).map_err(Error::lone);
        }
        let mut known: Vec<(Vec<usize>, NodeId)> =
            f.nodes.iter().enumerate().map(|(i, node)| (vec![i], *node)).collect();
        for _ in 0..order {
            let rows: Vec<NodeId> = known.iter().map(|(_, node)| *node).collect();
            let pairs: Vec<(usize, usize)> = known
                .iter()
                .enumerate()
                .flat_map(|(row, (path, _))| {
                    let last = if path.len() > 1 { path[path.len() - 1] + 1 } else { n };
                    (0..last).map(move |column| (row, column))
                })
                .collect();
            let entries = self.accumulate(&rows, &columns, Some(&pairs))?;
            let extend = |(row, column, node): (usize, usize, NodeId)| {
                let mut path = known[row].0.clone();
                path.push(column);
                (path, node)
            };
            known = entries.into_iter().map(extend).collect();
        }
        let mut all = vec![self.graph.constant(0.0); size];
        for (path, node) in known {
            for permuted in permutations(&path[1..]) {
                let place = permuted.iter().fold(path[0], |place, column| place * n + column);
                all[place] = node;
            }
        }
        Ok(all)
    }
}

/// Returns all distinct orders of `items`, by ascending insertion; `items` is short.
fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for item in items {
        let mut next: Vec<Vec<usize>> = Vec::new();
        for prefix in &all {
            for place in 0..=prefix.len() {
                let mut longer = prefix.clone();
                longer.insert(place, *item);
                next.push(longer);
            }
        }
        next.sort_unstable();
        next.dedup();
        all = next;
    }
    all
}
