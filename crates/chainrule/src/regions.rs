//! Scalar regions: what a loop does in each iteration with small arrays of known size becomes straight-line code.
//!
//! In: a function of the array IR whose derivatives are expanded. Out: the same function, in which the statements of a
//! loop's body that only know sizes at compile time are unrolled into one scalar graph, which is numbered (equal values are
//! computed once, factors are pulled out), and written back as scalar statements. So a Jacobian that forward mode makes
//! direction by direction shares its primal and loses its zeros, small arrays live in registers, and branches on data
//! become choices of values, after which iterations can run at once.
//!
//! | step | is |
//! | --- | --- |
//! | [`Regions::block`] | which statements of a block go together: a region |
//! | [`Regions::unroll`] | the region as a graph, its inputs the elements that it reads |
//! | [`Writer`] | the graph as statements |
//!
//! A region stays as it is where it holds no loop, where it would become too large, where the function has had its share,
//! or where something in it cannot be unrolled.
//!
//! Source: scalar graphs as in D* (Guenter 2007), inside of loops as in dF~ (Shaikhha et al. 2019).

use crate::unroll::{Tree, Truth, unroll};
use chainrule_base::{Arena, Name};
use chainrule_graph::{Graph, Node, NodeId, Numbering, Semantics, number};
use chainrule_ir::{Block, Expr, Function, Size, Stmt, Type, Var, VarId};
use chainrule_ops::{Op, Type as OpType};
use rustc_hash::{FxHashMap, FxHashSet};

/// A region whose graph would have more nodes stays a loop.
const MAX_NODES: usize = 6_000;

/// The same for all regions of a function together.
const MAX_ALL_NODES: usize = 60_000;

/// Values with more elements than this are not taken apart.
const MAX_LEAVES: i64 = 64;

/// Blocks that nest deeper are not looked at.
const MAX_DEPTH: usize = 24;

/// `function` with its scalar regions unrolled. Linear in the function but for the regions.
pub(crate) fn scalarise(mut function: Function) -> Function {
    let empty = Block { stmts: Vec::new(), result: function.body.result };
    let body = std::mem::replace(&mut function.body, empty);
    let mut regions =
        Regions { function, outer: FxHashSet::default(), constants: FxHashMap::default(), budget: MAX_ALL_NODES };
    let params = regions.function.params.clone();
    params.into_iter().for_each(|p| regions.see(p));
    let body = regions.block(body, false, 0);
    regions.function.body = body;
    regions.function
}

struct Regions {
    function: Function,
    /// Variables in scope whose value a region can read: small, of doubles.
    outer: FxHashSet<VarId>,
    /// Those in scope that are constants.
    constants: FxHashMap<VarId, Expr>,
    /// How many nodes are left.
    budget: usize,
}

/// How many doubles a type has, if it is of doubles alone, in arrays of known size.
fn leaves(ty: &Type) -> Option<i64> {
    match ty {
        Type::Double => Some(1),
        Type::Int | Type::Bool => None,
        Type::Array(size, element) => size.as_constant()?.checked_mul(leaves(element)?),
        Type::Tuple(fields, _) => fields.iter().try_fold(0i64, |sum, f| sum.checked_add(leaves(f)?)),
    }
}

/// Whether no array of it is empty, and all sizes are known.
fn is_filled(ty: &Type) -> bool {
    match ty {
        Type::Double | Type::Int | Type::Bool => true,
        Type::Array(size, element) => size.as_constant().is_some_and(|n| n > 0) && is_filled(element),
        Type::Tuple(fields, _) => fields.iter().all(is_filled),
    }
}

/// Other variables where `expr` and its blocks mention some.
fn rename(expr: &mut Expr, by: &FxHashMap<VarId, VarId>) {
    let new = |v: VarId| by.get(&v).copied().unwrap_or(v);
    expr.map_operands(&new, &Size::clone);
    for block in expr.blocks_mut() {
        block.stmts.iter_mut().for_each(|stmt| rename(&mut stmt.expr, by));
        block.result = new(block.result);
    }
}

/// Statements that go together.
#[derive(Default)]
struct Region {
    stmts: Vec<Stmt>,
    defined: FxHashSet<VarId>,
    has_loop: bool,
}

impl Regions {
    /// Notes that `var` is in scope from now on.
    fn see(&mut self, var: VarId) {
        if leaves(self.function.ty(var)).is_some_and(|n| n <= MAX_LEAVES) {
            self.outer.insert(var);
        }
    }

    fn block(&mut self, block: Block, is_repeated: bool, depth: usize) -> Block {
        if depth > MAX_DEPTH {
            return block;
        }
        let Block { stmts, result } = block;
        let mut out: Vec<Stmt> = Vec::new();
        let mut region = Region::default();
        let mut renamed: FxHashMap<VarId, VarId> = FxHashMap::default();
        // By the number of a statement, from 0; what the block results in is used after all.
        let mut last_use: FxHashMap<VarId, usize> = FxHashMap::default();
        if is_repeated {
            for (at, stmt) in stmts.iter().enumerate() {
                stmt.expr.for_each_use(&mut |v| {
                    last_use.insert(v, at);
                });
            }
        }
        last_use.insert(result, usize::MAX);
        for (at, mut stmt) in stmts.into_iter().enumerate() {
            if !renamed.is_empty() {
                rename(&mut stmt.expr, &renamed);
            }
            let mut local = FxHashSet::default();
            let is_constant = matches!(stmt.expr, Expr::Real(_) | Expr::Bool(_) | Expr::Size(_));
            if is_repeated && !is_constant && self.is_scalar(&stmt, &region.defined, &mut local, 0) {
                region.defined.insert(stmt.var);
                region.has_loop |= !stmt.expr.blocks().is_empty();
                region.stmts.push(stmt);
                continue;
            }
            let mut depends = false;
            stmt.expr.for_each_use(&mut |v| depends |= region.defined.contains(&v));
            if depends {
                let is_wanted = |v: &VarId| last_use.get(v).is_some_and(|last| *last >= at);
                self.close(std::mem::take(&mut region), &is_wanted, &mut out, &mut renamed);
                rename(&mut stmt.expr, &renamed);
            }
            let stmt = self.inside(stmt, is_repeated, depth);
            match &stmt.expr {
                Expr::Real(_) | Expr::Bool(_) => {
                    self.constants.insert(stmt.var, stmt.expr.clone());
                }
                Expr::Size(size) if size.as_constant().is_some() => {
                    self.constants.insert(stmt.var, stmt.expr.clone());
                }
                _ => self.see(stmt.var),
            }
            out.push(stmt);
        }
        self.close(region, &|v| *v == result, &mut out, &mut renamed);
        Block { stmts: out, result: renamed.get(&result).copied().unwrap_or(result) }
    }

    /// The blocks of a statement that is in no region.
    fn inside(&mut self, mut stmt: Stmt, is_repeated: bool, depth: usize) -> Stmt {
        let count = match &stmt.expr {
            Expr::Build { size, .. } => Some(size),
            Expr::Sum { count, .. } | Expr::Fold { count, .. } | Expr::Loop { count, .. } => Some(count),
            _ => None,
        };
        let repeats = matches!(stmt.expr, Expr::While { .. })
            || count.is_some_and(|n| n.as_constant().is_none_or(|n| n > MAX_LEAVES));
        for binder in stmt.expr.binders() {
            self.see(binder);
        }
        for block in stmt.expr.blocks_mut() {
            let empty = Block { stmts: Vec::new(), result: block.result };
            *block = self.block(std::mem::replace(block, empty), is_repeated || repeats, depth + 1);
        }
        stmt
    }

    /// Whether a statement can be unrolled: all that it reads is in the region, in the statement (`local`), or a small value
    /// of doubles from outside.
    fn is_scalar(&self, stmt: &Stmt, region: &FxHashSet<VarId>, local: &mut FxHashSet<VarId>, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let known = |v: &VarId, local: &FxHashSet<VarId>| {
            region.contains(v) || local.contains(v) || self.outer.contains(v) || self.constants.contains_key(v)
        };
        let is_small = |ty: &Type| match ty {
            Type::Int | Type::Bool => true,
            ty => is_filled(ty),
        };
        if matches!(stmt.expr, Expr::While { .. } | Expr::Jvp { .. } | Expr::Vjp { .. })
            || !stmt.expr.operands().iter().all(|v| known(v, local))
            || !is_small(self.function.ty(stmt.var))
        {
            return false;
        }
        local.extend(stmt.expr.binders());
        for block in stmt.expr.blocks() {
            for inner in &block.stmts {
                if !self.is_scalar(inner, region, local, depth + 1) {
                    return false;
                }
                local.insert(inner.var);
            }
            if !known(&block.result, local) {
                return false;
            }
        }
        true
    }

    /// Writes a region to `out`, unrolled if that goes; then what `is_wanted` after it has new names.
    fn close(
        &mut self,
        region: Region,
        is_wanted: &dyn Fn(&VarId) -> bool,
        out: &mut Vec<Stmt>,
        renamed: &mut FxHashMap<VarId, VarId>,
    ) {
        let wanted: Vec<VarId> = region.stmts.iter().map(|s| s.var).filter(is_wanted).collect();
        let written = if region.has_loop { self.unroll(&region, &wanted) } else { None };
        match written {
            Some((stmts, values)) => {
                out.extend(stmts);
                renamed.extend(wanted.iter().copied().zip(values));
            }
            None => out.extend(region.stmts),
        }
        wanted.into_iter().for_each(|v| self.see(renamed.get(&v).copied().unwrap_or(v)));
    }

    /// The region as straight-line code, and the variables that are `wanted` there.
    fn unroll(&mut self, region: &Region, wanted: &[VarId]) -> Option<(Vec<Stmt>, Vec<VarId>)> {
        // Integers stand in sizes, too.
        if wanted.iter().any(|v| *self.function.ty(*v) == Type::Int) {
            return None;
        }
        let mut inputs: Vec<VarId> = Vec::new();
        let mut seen = FxHashSet::default();
        for stmt in &region.stmts {
            stmt.expr.for_each_use(&mut |v| {
                let is_outer = self.outer.contains(&v) || self.constants.contains_key(&v);
                if is_outer && !region.defined.contains(&v) && seen.insert(v) {
                    inputs.push(v);
                }
            });
        }
        let mut graph = Graph::new(Semantics::Algebraic);
        let mut sources: FxHashMap<NodeId, (VarId, Vec<usize>)> = FxHashMap::default();
        let mut args = Vec::new();
        for v in &inputs {
            args.push(match self.constants.get(v) {
                Some(Expr::Real(c)) => Tree::Real(graph.constant(*c)),
                Some(Expr::Bool(b)) => Tree::Bool(Truth::Known(*b)),
                Some(Expr::Size(size)) => Tree::Int(size.as_constant()?),
                _ => input(&mut graph, self.function.ty(*v), *v, &mut Vec::new(), &mut sources)?,
            });
        }
        let all = self.function.fresh(Type::Tuple(wanted.iter().map(|v| self.function.ty(*v).clone()).collect(), None));
        let mut stmts = region.stmts.clone();
        stmts.push(Stmt { var: all, expr: Expr::Tuple(wanted.to_vec()), span: None });
        let part = Function {
            name: Name::new("region"),
            vars: std::mem::take(&mut self.function.vars),
            sizes: Vec::new(),
            params: inputs,
            requires: Vec::new(),
            body: Block { stmts, result: all },
        };
        let unrolled = unroll(&part, &[], args, &mut graph, MAX_NODES.min(self.budget));
        self.function.vars = part.vars;
        self.budget = self.budget.saturating_sub(graph.len());
        let (Tree::Many(trees), _) = unrolled.ok()? else { return None };
        let mut roots = Vec::new();
        trees.iter().for_each(|tree| nodes(tree, &mut roots));
        let numbered = number(&mut graph, &roots, &Numbering { max_pairs: 0, ..Numbering::default() });
        let new: FxHashMap<NodeId, NodeId> = roots.into_iter().zip(numbered.roots.iter().copied()).collect();
        let mut writer = Writer {
            vars: &mut self.function.vars,
            graph: &graph,
            sources: &sources,
            out: Vec::new(),
            of: FxHashMap::default(),
            parts: FxHashMap::default(),
            zero: None,
        };
        writer.graph(&numbered.roots)?;
        let mut values = Vec::new();
        for (v, tree) in wanted.iter().zip(trees.iter()) {
            let ty = writer.vars[*v].ty.clone();
            values.push(writer.value(tree, &ty, &new)?);
        }
        Some((writer.out, values))
    }
}

/// The inputs of the graph that stand for the elements of a variable.
fn input(
    graph: &mut Graph,
    ty: &Type,
    var: VarId,
    path: &mut Vec<usize>,
    sources: &mut FxHashMap<NodeId, (VarId, Vec<usize>)>,
) -> Option<Tree> {
    let mut parts = |graph: &mut Graph, types: Vec<&Type>| {
        let mut trees = Vec::new();
        for (i, ty) in types.into_iter().enumerate() {
            path.push(i);
            trees.push(input(graph, ty, var, path, sources)?);
            path.pop();
        }
        Some(Tree::Many(trees.into()))
    };
    match ty {
        Type::Double => {
            let node = graph.input(format!("x{}", sources.len()));
            sources.insert(node, (var, path.clone()));
            Some(Tree::Real(node))
        }
        Type::Int | Type::Bool => None,
        Type::Array(size, element) => {
            let n = usize::try_from(size.as_constant()?).ok()?;
            parts(graph, vec![element; n])
        }
        Type::Tuple(fields, _) => parts(graph, fields.iter().collect()),
    }
}

fn nodes(tree: &Tree, into: &mut Vec<NodeId>) {
    match tree {
        Tree::Real(node) | Tree::Bool(Truth::Open(node)) => into.push(*node),
        Tree::Int(_) | Tree::Bool(Truth::Known(_)) => {}
        Tree::Many(parts) => parts.iter().for_each(|part| nodes(part, into)),
    }
}

/// Writes a graph as statements.
struct Writer<'a> {
    vars: &'a mut Arena<VarId, Var>,
    graph: &'a Graph,
    /// Which element of which variable an input is.
    sources: &'a FxHashMap<NodeId, (VarId, Vec<usize>)>,
    out: Vec<Stmt>,
    of: FxHashMap<NodeId, VarId>,
    /// Parts of variables that were taken.
    parts: FxHashMap<(VarId, usize), VarId>,
    zero: Option<VarId>,
}

impl Writer<'_> {
    fn push(&mut self, ty: Type, expr: Expr) -> VarId {
        let value = match &expr {
            Expr::Size(size) => Some(size.clone()),
            _ => None,
        };
        let var = self.vars.push(Var { ty, name: None, span: None, value });
        self.out.push(Stmt { var, expr, span: None });
        var
    }

    fn int(&mut self, value: i64) -> VarId {
        self.push(Type::Int, Expr::Size(Size::constant(value)))
    }

    /// All nodes below the roots, arguments first.
    fn graph(&mut self, roots: &[NodeId]) -> Option<()> {
        let reachable = self.graph.reachable(roots);
        for id in reachable.iter() {
            let var = match self.graph.node(id) {
                Node::Const(c) => self.push(Type::Double, Expr::Real(c)),
                Node::Input(_) => self.element(id)?,
                Node::Apply(op, args) => {
                    let row = op.row();
                    let mut vars = Vec::new();
                    for (arg, ty) in args.iter().zip(row.args).take(op.arity()) {
                        vars.push(self.argument(*arg, *ty)?);
                    }
                    let ty = if op.gives_truth() { Type::Bool } else { Type::Double };
                    self.push(ty, Expr::Op(op, vars))
                }
                Node::External(..) | Node::Derivative(_) => return None,
            };
            self.of.insert(id, var);
        }
        Some(())
    }

    /// The variable of a node as a number or as a truth value.
    fn argument(&mut self, node: NodeId, wanted: OpType) -> Option<VarId> {
        let var = *self.of.get(&node)?;
        let is_truth = self.vars[var].ty == Type::Bool;
        Some(match (is_truth, wanted) {
            (true, OpType::Num) => {
                let (one, zero) = (self.push(Type::Double, Expr::Real(1.0)), self.zero());
                self.push(Type::Double, Expr::Op(Op::Select, vec![var, one, zero]))
            }
            (false, OpType::Bool) => {
                let zero = self.zero();
                let is_zero = self.push(Type::Bool, Expr::Op(Op::Eq, vec![var, zero]));
                self.push(Type::Bool, Expr::Op(Op::Not, vec![is_zero]))
            }
            _ => var,
        })
    }

    fn zero(&mut self) -> VarId {
        match self.zero {
            Some(zero) => zero,
            None => {
                let zero = self.push(Type::Double, Expr::Real(0.0));
                self.zero = Some(zero);
                zero
            }
        }
    }

    /// The element of a variable that an input is.
    fn element(&mut self, node: NodeId) -> Option<VarId> {
        let (var, path) = self.sources.get(&node)?;
        let mut at = *var;
        for i in path {
            at = match self.parts.get(&(at, *i)) {
                Some(part) => *part,
                None => {
                    let part = match self.vars[at].ty.clone() {
                        Type::Array(_, element) => {
                            let index = self.int(*i as i64);
                            self.push(*element, Expr::Get { array: at, index, proved: true })
                        }
                        Type::Tuple(fields, _) => self.push(fields.get(*i)?.clone(), Expr::Component(at, *i)),
                        _ => return None,
                    };
                    self.parts.insert((at, *i), part);
                    part
                }
            };
        }
        Some(at)
    }

    /// The value that is put together as `tree` says, of the type `ty`.
    fn value(&mut self, tree: &Tree, ty: &Type, new: &FxHashMap<NodeId, NodeId>) -> Option<VarId> {
        Some(match (tree, ty) {
            (Tree::Real(node), Type::Double) => self.argument(*new.get(node)?, OpType::Num)?,
            (Tree::Bool(Truth::Open(node)), Type::Bool) => self.argument(*new.get(node)?, OpType::Bool)?,
            (Tree::Bool(Truth::Known(b)), Type::Bool) => self.push(Type::Bool, Expr::Bool(*b)),
            (Tree::Int(i), Type::Int) => self.int(*i),
            (Tree::Many(parts), Type::Array(_, element)) => {
                let vars = parts.iter().map(|p| self.value(p, element, new)).collect::<Option<Vec<_>>>()?;
                self.push(ty.clone(), Expr::Array(vars))
            }
            (Tree::Many(parts), Type::Tuple(fields, _)) => {
                let vars = parts.iter().zip(fields).map(|(p, f)| self.value(p, f, new)).collect::<Option<Vec<_>>>()?;
                self.push(ty.clone(), Expr::Tuple(vars))
            }
            _ => return None,
        })
    }
}
