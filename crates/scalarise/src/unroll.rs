//! Conversion of the array IR to the scalar graph: loops unrolled, arrays decomposed.
//!
//! In: a function without size parameters, and a graph node for every double of its arguments. Out: graph nodes for the
//! result. Sizes of arrays must be known; conditions on doubles become [`Op::Select`], with both sides computed, and
//! integers that they select are [`alternatives`]. Derivatives in the function are accumulated by [`local`], if the
//! caller has a [`Local`] for them; otherwise there must be none.
//!
//! Linear in the operations that the function would execute; limited by a budget of graph nodes.

mod alternatives;
pub(crate) mod local;
pub mod pays;

pub use alternatives::Alternatives;

use alternatives::refusal;
use chainrule_base::{Arena, Diagnostic, Span, count};
use chainrule_graph::{Graph, NodeId};
use chainrule_ir::{Block, Expr, Function, Size, StateLoop, Stmt, Type, VarId, WhileLoop};
use chainrule_ops::Op;
use local::{Local, Opened};
use std::rc::Rc;

/// Default maximum number of graph nodes that unrolling creates.
pub const UNROLL_BUDGET: usize = 4_000_000;

/// Maximum number of loop steps for each graph node of the budget: loops may create no nodes at all.
const STEPS_PER_NODE: usize = 4;

/// Value with known array structure and symbolic doubles.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A double.
    Real(NodeId),
    /// A known integer.
    Int(i64),
    /// Integer that is one of several, depending on data.
    Chosen(Alternatives),
    /// A truth value.
    Bool(Truth),
    /// Elements of an array, or fields of a tuple.
    Many(Rc<[Tree]>),
}

/// Truth value of a [`Tree`].
#[derive(Clone, Copy, Debug)]
pub enum Truth {
    /// It does not depend on data.
    Known(bool),
    /// Node that is 1 or 0.
    Open(NodeId),
}

/// Unrolls `function`, which has no size parameters, at `args` (one tree per parameter); returns the result, and for
/// each node of the graph its source location.
///
/// # Errors
/// Fails if an array has no known size, an index is out of range, a requirement does not hold, the function contains a
/// derivative, or there would be more than `budget` nodes.
pub fn unroll(
    function: &Function,
    args: Vec<Tree>,
    graph: &mut Graph,
    budget: usize,
) -> Result<(Tree, Vec<Option<Span>>), Diagnostic> {
    unroll_with(function, args, graph, budget, None)
}

/// Does the same; requests for derivatives are recorded in `local`, which must resolve the result.
pub(crate) fn unroll_with(
    function: &Function,
    args: Vec<Tree>,
    graph: &mut Graph,
    budget: usize,
    local: Option<&mut Local>,
) -> Result<(Tree, Vec<Option<Span>>), Diagnostic> {
    let origins = vec![None; graph.len()];
    let env = Arena::filled(function.vars.len(), None);
    let mut unroller = Unroller { function, graph, env, speculative: 0, budget, steps: 0, origins, local };
    for (var, arg) in function.params.iter().zip(args) {
        unroller.env[*var] = Some(arg);
    }
    for requirement in &function.requires {
        let size = unroller.size(&requirement.size)?;
        if size < 0 || (requirement.exactly_zero && size != 0) {
            let mut diagnostic =
                Diagnostic::error(requirement.message.clone()).with_help("give sizes for which the program is defined");
            if let Some(span) = requirement.span {
                diagnostic = diagnostic.with_label(span, "needed here");
            }
            return Err(diagnostic);
        }
    }
    let result = unroller.block(&function.body)?;
    Ok((result, unroller.origins))
}

struct Unroller<'a> {
    function: &'a Function,
    graph: &'a mut Graph,
    env: Arena<VarId, Option<Tree>>,
    /// Number of enclosing open conditions: under them an index out of range is not an error, because the branch may
    /// not be taken.
    speculative: usize,
    budget: usize,
    steps: usize,
    /// Source location of each node.
    origins: Vec<Option<Span>>,
    local: Option<&'a mut Local>,
}

type Unrolled<T> = Result<T, Diagnostic>;

impl Unroller<'_> {
    fn block(&mut self, block: &Block) -> Unrolled<Tree> {
        self.steps += 1;
        for stmt in &block.stmts {
            let value = self.stmt(stmt).map_err(|found| match found.span() {
                Some(_) => found,
                None => at(found, stmt.span, "here"),
            })?;
            // Nodes created by nested statements already have their location.
            self.origins.resize(self.graph.len(), stmt.span);
            self.env[stmt.var] = Some(value);
            if self.graph.len() > self.budget || self.steps / STEPS_PER_NODE > self.budget {
                let diagnostic = Diagnostic::limitation(format!(
                    "`{}` has more than {} operations when its loops are unrolled",
                    self.function.name, self.budget
                ))
                .with_help("keep its loops (derive it as an array program), or make the sizes smaller");
                return Err(at(diagnostic, stmt.span, "reached here"));
            }
        }
        self.var(block.result)
    }

    fn var(&self, var: VarId) -> Unrolled<Tree> {
        self.env[var].clone().ok_or_else(|| Diagnostic::bug(format!("{var} is used before it is bound")))
    }

    /// Returns `size`, which must not depend on data.
    fn size(&self, size: &Size) -> Unrolled<i64> {
        self.size_where(size, |_| None)
    }

    /// Returns `size` where the variables have the values of `known`, if it has one, or else their own.
    fn size_where(&self, size: &Size, known: impl Fn(VarId) -> Option<i64>) -> Unrolled<i64> {
        let mut missing = None;
        let value = size.eval(|v| match (known(v), &self.env[v]) {
            (Some(i), _) => i,
            (None, Some(Tree::Int(i))) => *i,
            _ => {
                missing = Some(v);
                0
            }
        });
        if let Some(v) = missing {
            return Err(match self.env[v] {
                Some(Tree::Chosen(_)) => refusal("the size of an array depends on data", None),
                _ => Diagnostic::bug(format!("the size {size} needs {v}, which is no known integer")),
            });
        }
        value.ok_or_else(|| {
            Diagnostic::error("a size is too large for a 64-bit integer")
                .with_reason(format!("it is {size}"))
                .with_help("make the sizes, or the integers that it is made of, smaller")
        })
    }

    /// Returns `size` as an integer, which may depend on data.
    fn integer(&mut self, size: &Size, span: Option<Span>) -> Unrolled<Tree> {
        let open: Vec<VarId> =
            size.vars().into_iter().filter(|v| matches!(self.env[*v], Some(Tree::Chosen(_)))).collect();
        if open.is_empty() {
            return self.size(size).map(Tree::Int);
        }
        let trees = self.vars(&open)?;
        let mut guarded = Vec::new();
        for (values, guard) in self.combinations(&trees, span)? {
            let known = |v: VarId| open.iter().position(|o| *o == v).map(|place| values[place]);
            guarded.push((self.size_where(size, known)?, guard));
        }
        self.chosen(guarded, span)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Unrolled<Tree> {
        Ok(match &stmt.expr {
            Expr::Real(c) => Tree::Real(self.graph.constant(*c)),
            Expr::Bool(b) => Tree::Bool(Truth::Known(*b)),
            Expr::Size(size) => self.integer(size, stmt.span)?,
            Expr::Op(op, args) => {
                let args = args.iter().map(|v| self.var(*v)).collect::<Unrolled<Vec<_>>>()?;
                self.op(*op, &args, stmt)?
            }
            Expr::ToReal(v) => match self.var(*v)? {
                Tree::Int(i) => Tree::Real(self.graph.constant(i as f64)),
                other => {
                    let guarded = self.alternatives(&other)?;
                    self.selected(&guarded, stmt.span, |this, i| Ok(Tree::Real(this.graph.constant(i as f64))))?
                }
            },
            Expr::ToInt(v) => {
                let Tree::Real(x) = self.var(*v)? else { return Err(Diagnostic::bug("a conversion needs a double")) };
                let Some(x) = self.graph.as_const(x) else {
                    let diagnostic = Diagnostic::limitation("this integer is not known in straight-line code")
                        .with_reason("it is made of numbers that are not known yet")
                        .with_help("keep its loops: derive it as an array program");
                    return Err(at(diagnostic, stmt.span, "made of a double"));
                };
                Tree::Int(chainrule_ops::truncate(x))
            }
            Expr::Build { size, index, body } => {
                let n = self.size(size)?;
                let mut elements = Vec::new();
                for i in 0..n {
                    self.env[*index] = Some(Tree::Int(i));
                    elements.push(self.block(body)?);
                }
                Tree::Many(elements.into())
            }
            Expr::Fold(StateLoop { count, index, state, init, body }) => {
                let steps = self.steps(count, stmt.span)?;
                let mut value = self.var(*init)?;
                for i in 0..steps.most() {
                    self.env[*index] = Some(Tree::Int(i));
                    self.env[*state] = Some(value.clone());
                    let next = self.step(body, steps.guard(i))?;
                    value = self.where_it_runs(steps.guard(i), next, &value, stmt.span)?;
                }
                value
            }
            Expr::Sum { count, index, body } => {
                let steps = self.steps(count, stmt.span)?;
                let zero = self.zero(&self.function.vars[body.result].ty)?;
                let mut total = zero.clone();
                for i in 0..steps.most() {
                    self.env[*index] = Some(Tree::Int(i));
                    let term = self.step(body, steps.guard(i))?;
                    let term = self.where_it_runs(steps.guard(i), term, &zero, stmt.span)?;
                    total = self.plus(&total, &term)?;
                }
                total
            }
            Expr::Loop(StateLoop { count, index, state, init, body }) => {
                let n = self.size(count)?;
                let mut value = self.var(*init)?;
                let term = match &self.function.vars[stmt.var].ty {
                    Type::Tuple(parts, _) if parts.len() == 3 => &parts[2],
                    _ => return Err(Diagnostic::bug("a loop has no three parts")),
                };
                let mut total = self.zero(term)?;
                let mut elements = Vec::new();
                for i in 0..n {
                    self.env[*index] = Some(Tree::Int(i));
                    self.env[*state] = Some(value);
                    let triple = self.block(body)?;
                    let Tree::Many(parts) = &triple else { return Err(mismatch(&triple, "a triple")) };
                    let [next, element, term] = parts.as_ref() else { return Err(mismatch(&triple, "a triple")) };
                    value = next.clone();
                    elements.push(element.clone());
                    total = self.plus(&total, term)?;
                }
                Tree::Many([value, Tree::Many(elements.into()), total].into())
            }
            Expr::Zero => self.zero(&self.function.vars[stmt.var].ty)?,
            Expr::OneHot { index, value, .. } => {
                let whole = self.zero(&self.function.vars[stmt.var].ty)?;
                let value = self.var(*value)?;
                let index = self.var(*index)?;
                if let Tree::Chosen(index) = &index {
                    return self.chosen_one_hot(&whole, index, &value, stmt.span);
                }
                let (Tree::Many(elements), Tree::Int(i)) = (whole, index) else {
                    return Err(Diagnostic::bug("a one-hot array needs an integer"));
                };
                let mut elements = elements.to_vec();
                let len = elements.len();
                match usize::try_from(i).ok().and_then(|i| elements.get_mut(i)) {
                    Some(element) => *element = value,
                    None if self.speculative > 0 => {}
                    None => return Err(out_of_range(i, len, stmt.span)),
                }
                Tree::Many(elements.into())
            }
            Expr::Plus(a, b) => {
                let (a, b) = (self.var(*a)?, self.var(*b)?);
                self.plus(&a, &b)?
            }
            Expr::While(WhileLoop { limit, state, init, condition, body }) => {
                let limit = self.size(limit)?;
                let mut value = self.var(*init)?;
                let mut steps = 0;
                loop {
                    self.env[*state] = Some(value.clone());
                    match self.block(condition)? {
                        Tree::Bool(Truth::Known(false)) => break value,
                        Tree::Bool(Truth::Known(true)) => {}
                        _ => {
                            let diagnostic = Diagnostic::limitation("this `while` cannot be unrolled")
                                .with_reason("how often it runs depends on numbers that are not known yet")
                                .with_help("keep its loops: derive it as an array program");
                            return Err(at(diagnostic, stmt.span, "the condition depends on data"));
                        }
                    }
                    if steps >= limit {
                        let diagnostic = Diagnostic::error(format!("this `while` goes on after {limit} steps"));
                        return Err(at(diagnostic, stmt.span, "this loop"));
                    }
                    steps += 1;
                    value = self.block(body)?;
                }
            }
            Expr::If { condition, then, otherwise } => match self.var(*condition)? {
                Tree::Bool(Truth::Known(true)) => self.block(then)?,
                Tree::Bool(Truth::Known(false)) => self.block(otherwise)?,
                Tree::Bool(Truth::Open(node)) => {
                    self.speculative += 1;
                    let (a, b) = (self.block(then)?, self.block(otherwise)?);
                    self.speculative -= 1;
                    self.select(node, &a, &b, stmt.span)?
                }
                other => return Err(mismatch(&other, "a truth value")),
            },
            Expr::Get { array, index, .. } => {
                let Tree::Many(elements) = self.var(*array)? else {
                    return Err(Diagnostic::bug("indexing needs an array"));
                };
                let ty = &self.function.vars[stmt.var].ty;
                let element = |i: i64| usize::try_from(i).ok().and_then(|i| elements.get(i)).cloned();
                match self.var(*index)? {
                    Tree::Int(i) => match element(i) {
                        Some(element) => element,
                        None if self.speculative > 0 => self.poison(ty)?,
                        None => return Err(out_of_range(i, elements.len(), stmt.span)),
                    },
                    Tree::Chosen(index) => self.selected(&index, stmt.span, |this, i| match element(i) {
                        Some(element) => Ok(element),
                        None => this.outside(stmt.span).and_then(|()| this.poison(ty)),
                    })?,
                    other => return Err(mismatch(&other, "an integer")),
                }
            }
            Expr::Array(vars) | Expr::Tuple(vars) => {
                Tree::Many(vars.iter().map(|v| self.var(*v)).collect::<Unrolled<Vec<_>>>()?.into())
            }
            Expr::Component(tuple, index) => match self.var(*tuple)? {
                Tree::Many(parts) if *index < parts.len() => parts[*index].clone(),
                other => return Err(mismatch(&other, "a tuple")),
            },
            Expr::Jvp { params, body, at, along } if self.local.is_some() => {
                let point = self.vars(at)?;
                let Differentiated { opened, result, value } = self.differentiated(params, body, &point)?;
                let directions = self.vars(along)?;
                let directions = reals_of(&directions);
                let tangents = match &mut self.local {
                    Some(local) => local.forward(self.graph, opened, &reals_of([&result]), &directions),
                    None => Vec::new(),
                };
                dual(&value, &mut tangents.into_iter())
            }
            Expr::Vjp { params, body, at, cotangent } if self.local.is_some() => {
                let point = self.vars(at)?;
                let Differentiated { opened, result, value } = self.differentiated(params, body, &point)?;
                let weights = reals_of([&self.var(*cotangent)?]);
                let cotangents = match &mut self.local {
                    Some(local) => local.backward(self.graph, opened, &reals_of([&result]), &weights),
                    None => Vec::new(),
                };
                let mut cotangents = cotangents.into_iter();
                let mut parts = vec![value];
                for (param, tree) in params.iter().zip(&point) {
                    let filled = with_reals(tree, &mut cotangents);
                    parts.push(tangents_of(&filled, &self.function.vars[*param].ty));
                }
                Tree::Many(parts.into())
            }
            // The library promises that the rule is the derivative of the body.
            Expr::Custom(custom) if self.local.is_some() && custom.promised => {
                self.env[custom.param] = Some(self.var(custom.at)?);
                self.block(&custom.body)?
            }
            Expr::Jvp { .. } | Expr::Vjp { .. } | Expr::Custom(_) | Expr::Again { .. } => {
                return Err(Diagnostic::bug("a derivative was not expanded before unrolling"));
            }
        })
    }

    fn vars(&self, vars: &[VarId]) -> Unrolled<Vec<Tree>> {
        vars.iter().map(|var| self.var(*var)).collect()
    }

    /// Unrolls `body` at inputs for the doubles of `point`, and at `point`.
    fn differentiated(&mut self, params: &[VarId], body: &Block, point: &[Tree]) -> Unrolled<Differentiated> {
        let at = reals_of(point);
        let Some(local) = &mut self.local else { return Err(Diagnostic::bug("nobody asks for derivatives")) };
        let (opened, inputs) = local.open(self.graph, &at);
        let mut inputs = inputs.into_iter();
        for (param, tree) in params.iter().zip(point) {
            self.env[*param] = Some(with_reals(tree, &mut inputs));
        }
        let result = self.block(body)?;
        let mut nodes = Vec::new();
        numbers(&result, &mut nodes);
        let Some(local) = &mut self.local else { return Err(Diagnostic::bug("nobody asks for derivatives")) };
        let (results, values) = local.close(self.graph, opened, &nodes)?;
        let result = with_numbers(&result, &mut results.into_iter());
        let value = with_numbers(&result, &mut values.into_iter());
        Ok(Differentiated { opened, result, value })
    }

    fn op(&mut self, op: Op, args: &[Tree], stmt: &Stmt) -> Unrolled<Tree> {
        let row = op.row();
        let is_bool = row.result == chainrule_ops::Type::Bool;
        if op == Op::Select
            && let Tree::Bool(Truth::Known(condition)) = args[0]
        {
            return Ok(if condition { args[1].clone() } else { args[2].clone() });
        }
        if op == Op::Select && matches!(args[1], Tree::Int(_) | Tree::Chosen(_)) {
            let condition = self.node(&args[0])?;
            return self.select(condition, &args[1], &args[2], stmt.span);
        }
        if args.iter().all(|arg| matches!(arg, Tree::Int(_) | Tree::Chosen(_))) {
            let mut guarded = Vec::new();
            for (ints, guard) in self.combinations(args, stmt.span)? {
                guarded.push((self.of_integers(op, &ints, stmt.span)?, guard));
            }
            if is_bool {
                let holds = guarded.into_iter().filter(|(value, _)| *value != 0).map(|(_, guard)| guard);
                let any = self.any(holds);
                return Ok(self.truth(any));
            }
            return self.chosen(guarded, stmt.span);
        }
        if args.iter().all(|arg| matches!(arg, Tree::Bool(Truth::Known(_)))) {
            let bits: Vec<f64> =
                args.iter().map(|arg| f64::from(u8::from(matches!(arg, Tree::Bool(Truth::Known(true)))))).collect();
            return Ok(Tree::Bool(Truth::Known(op.value(&bits) != 0.0)));
        }
        let nodes = args.iter().map(|arg| self.node(arg)).collect::<Unrolled<Vec<_>>>()?;
        let node = self.graph.apply(op, &nodes);
        Ok(if is_bool { self.truth(node) } else { Tree::Real(node) })
    }

    /// Returns `op` of integers; truth values are 1 and 0.
    fn of_integers(&self, op: Op, ints: &[i64], span: Option<Span>) -> Unrolled<i64> {
        let row = op.row();
        let Some(int) = row.int else { return Err(Diagnostic::bug(format!("{op:?} has no integer value"))) };
        match int(ints) {
            Some(value) => Ok(value),
            None if self.speculative > 0 => Ok(0),
            None => {
                let symbol = row.symbol.unwrap_or(row.name);
                let title = match (op, ints) {
                    (Op::Quot | Op::Mod, [a, 0]) => format!("`{symbol}` of {a} and 0 is a division by zero"),
                    _ => format!("the result of `{symbol}` of {ints:?} does not fit into 64 bits"),
                };
                Err(at(Diagnostic::error(title), span, "computed here"))
            }
        }
    }

    fn node(&mut self, tree: &Tree) -> Unrolled<NodeId> {
        match tree {
            Tree::Real(node) | Tree::Bool(Truth::Open(node)) => Ok(*node),
            Tree::Bool(Truth::Known(b)) => Ok(self.graph.constant(f64::from(u8::from(*b)))),
            other => Err(mismatch(other, "a double")),
        }
    }

    // Recursive on the nesting of types only.
    fn select(&mut self, condition: NodeId, a: &Tree, b: &Tree, span: Option<Span>) -> Unrolled<Tree> {
        Ok(match (a, b) {
            (Tree::Real(x), Tree::Real(y)) => Tree::Real(self.graph.apply(Op::Select, &[condition, *x, *y])),
            (Tree::Int(x), Tree::Int(y)) if x == y => Tree::Int(*x),
            (Tree::Int(_) | Tree::Chosen(_), Tree::Int(_) | Tree::Chosen(_)) => {
                self.select_integer(condition, a, b, span)?
            }
            (Tree::Bool(_), Tree::Bool(_)) => {
                let (x, y) = (self.node(a)?, self.node(b)?);
                Tree::Bool(Truth::Open(self.graph.apply(Op::Select, &[condition, x, y])))
            }
            (Tree::Many(xs), Tree::Many(ys)) if xs.len() == ys.len() => {
                let parts = xs.iter().zip(ys.iter()).map(|(x, y)| self.select(condition, x, y, span));
                Tree::Many(parts.collect::<Unrolled<Vec<_>>>()?.into())
            }
            _ => return Err(mismatch(b, "a value of the other branch's type")),
        })
    }

    /// Returns a value of type `ty` that must not be read.
    fn poison(&mut self, ty: &Type) -> Unrolled<Tree> {
        self.filled(ty, f64::NAN)
    }

    fn zero(&mut self, ty: &Type) -> Unrolled<Tree> {
        self.filled(ty, 0.0)
    }

    /// Returns the value of type `ty` whose doubles are `c`.
    fn filled(&mut self, ty: &Type, c: f64) -> Unrolled<Tree> {
        Ok(match ty {
            Type::Double => Tree::Real(self.graph.constant(c)),
            Type::Int => Tree::Int(0),
            Type::Bool => Tree::Bool(Truth::Known(false)),
            Type::Array(size, element) => {
                let n = self.size(size)?;
                Tree::Many((0..n).map(|_| self.filled(element, c)).collect::<Unrolled<Vec<_>>>()?.into())
            }
            Type::Tuple(fields, _) => {
                Tree::Many(fields.iter().map(|f| self.filled(f, c)).collect::<Unrolled<Vec<_>>>()?.into())
            }
        })
    }

    // Recursive on the nesting of types only.
    fn plus(&mut self, a: &Tree, b: &Tree) -> Unrolled<Tree> {
        Ok(match (a, b) {
            (Tree::Real(x), Tree::Real(y)) => Tree::Real(self.graph.apply(Op::Add, &[*x, *y])),
            (Tree::Many(xs), Tree::Many(ys)) if xs.len() == ys.len() => {
                let parts = xs.iter().zip(ys.iter()).map(|(x, y)| self.plus(x, y));
                Tree::Many(parts.collect::<Unrolled<Vec<_>>>()?.into())
            }
            _ => return Err(mismatch(b, "what can be added")),
        })
    }
}

/// Unrolled function for differentiation.
struct Differentiated {
    opened: Opened,
    /// Result at inputs for the point.
    result: Tree,
    /// Result at the point.
    value: Tree,
}

/// Returns the doubles of `trees`, in order.
fn reals_of<'t>(trees: impl IntoIterator<Item = &'t Tree>) -> Vec<NodeId> {
    fn add(tree: &Tree, into: &mut Vec<NodeId>) {
        match tree {
            Tree::Real(node) => into.push(*node),
            Tree::Int(_) | Tree::Chosen(_) | Tree::Bool(_) => {}
            Tree::Many(parts) => parts.iter().for_each(|part| add(part, into)),
        }
    }
    let mut into = Vec::new();
    trees.into_iter().for_each(|tree| add(tree, &mut into));
    into
}

/// Returns `tree` with other doubles, in order.
fn with_reals(tree: &Tree, nodes: &mut impl Iterator<Item = NodeId>) -> Tree {
    match tree {
        Tree::Real(node) => Tree::Real(nodes.next().unwrap_or(*node)),
        Tree::Many(parts) => Tree::Many(parts.iter().map(|part| with_reals(part, nodes)).collect()),
        known => known.clone(),
    }
}

/// Collects the nodes of a tree: doubles, unknown truth values, and conditions of integers.
pub(crate) fn numbers(tree: &Tree, into: &mut Vec<NodeId>) {
    match tree {
        Tree::Real(node) | Tree::Bool(Truth::Open(node)) => into.push(*node),
        Tree::Int(_) | Tree::Bool(Truth::Known(_)) => {}
        Tree::Chosen(alternatives) => into.extend(alternatives.iter().map(|(_, guard)| guard)),
        Tree::Many(parts) => parts.iter().for_each(|part| numbers(part, into)),
    }
}

/// Returns `tree` with other nodes, in the order of [`numbers`].
pub(crate) fn with_numbers(tree: &Tree, nodes: &mut impl Iterator<Item = NodeId>) -> Tree {
    match tree {
        Tree::Real(node) => Tree::Real(nodes.next().unwrap_or(*node)),
        Tree::Bool(Truth::Open(node)) => Tree::Bool(Truth::Open(nodes.next().unwrap_or(*node))),
        Tree::Chosen(alternatives) => {
            let moved = alternatives.iter().map(|(value, guard)| (*value, nodes.next().unwrap_or(*guard)));
            Tree::Chosen(moved.collect())
        }
        Tree::Many(parts) => Tree::Many(parts.iter().map(|part| with_numbers(part, nodes)).collect()),
        known => known.clone(),
    }
}

/// Returns the dual number of a value and its tangents.
fn dual(value: &Tree, tangents: &mut impl Iterator<Item = NodeId>) -> Tree {
    match value {
        Tree::Real(node) => Tree::Many([value.clone(), Tree::Real(tangents.next().unwrap_or(*node))].into()),
        Tree::Many(parts) => Tree::Many(parts.iter().map(|part| dual(part, tangents)).collect()),
        known => known.clone(),
    }
}

/// Returns a value of type `ty` without its integers and truth values, which tangents do not have.
fn tangents_of(tree: &Tree, ty: &Type) -> Tree {
    match (tree, ty) {
        (Tree::Many(parts), Type::Array(_, element)) => {
            Tree::Many(parts.iter().map(|part| tangents_of(part, element)).collect())
        }
        (Tree::Many(parts), Type::Tuple(fields, _)) => {
            let kept = parts.iter().zip(fields).filter(|(_, field)| field.has_double());
            Tree::Many(kept.map(|(part, field)| tangents_of(part, field)).collect())
        }
        _ => tree.clone(),
    }
}

fn out_of_range(index: i64, len: usize, span: Option<Span>) -> Diagnostic {
    let diagnostic =
        Diagnostic::error(format!("index {index} is out of range for an array of {}", count(len, "element")));
    at(diagnostic, span, "indexed here")
}

fn mismatch(tree: &Tree, wanted: &str) -> Diagnostic {
    Diagnostic::bug(format!("{tree:?} stands where {wanted} is wanted"))
}

fn at(diagnostic: Diagnostic, span: Option<Span>, text: &str) -> Diagnostic {
    match span {
        Some(span) => diagnostic.with_label(span, text),
        None => diagnostic,
    }
}
