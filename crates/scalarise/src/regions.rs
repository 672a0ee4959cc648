//! Scalar regions: operations of a loop body on small arrays of known size become straight-line code.
//!
//! In: a function of the array IR. Out: the same function, in which the statements of a loop's body whose sizes are
//! known at compile time are unrolled into one scalar graph, which is value-numbered and factored, and written back as
//! scalar statements.
//!
//! | stage | regions | purpose |
//! | --- | --- | --- |
//! | [`accumulate`], before derivatives are expanded | with a derivative | Jacobians or products by accumulation |
//! | [`scalarise`], after the optimiser | with a loop | small arrays in registers, branches as selections |
//!
//! The first stage selects from the portfolio of accumulation methods; after the second, iterations can run at once.
//! The first stage changes a region only if that takes fewer operations than the result of the second stage on its
//! derivatives expanded by forward or reverse mode.
//!
//! | step | purpose |
//! | --- | --- |
//! | `Regions::block` | selects the statements of a block that form a region |
//! | `Regions::unroll`, `Regions::accumulate` | the region as a graph, its inputs the elements that it reads |
//! | `Writer` | the graph as statements |
//!
//! A region is unchanged if there is no gain, if it would become too large, if the function's budget is spent, or if a
//! part of it cannot be unrolled.
//!
//! Source: scalar graphs as in D* (Guenter 2007), inside of loops as in dF~ (Shaikhha et al. 2019).

mod lift;
mod writer;

use crate::unroll::local::Local;
use crate::unroll::{Tree, Truth, numbers, unroll_with, with_numbers};
use chainrule_accumulate::strategy::{Report, Strategy};
use chainrule_base::{Arena, Name};
use chainrule_graph::optimise::{Optimise, optimise};
use chainrule_graph::{Graph, NodeId, Numbering, Semantics, number};
use chainrule_ir::{Block, Expr, Function, Size, StateLoop, Stmt, Type, Var, VarId};
use chainrule_kernel::LANES;
use chainrule_ops::{Counts, Op};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use writer::{Sources, Writer};

/// Maximum number of nodes in a region's graph; a larger region stays a loop.
const MAX_NODES: usize = 6_000;

/// Maximum number of nodes in all regions of a function together.
const MAX_ALL_NODES: usize = 60_000;

/// Maximum number of elements of a decomposed value.
const MAX_LEAVES: i64 = 64;

/// Minimum number of terms of a sum of products that stays a loop.
const LONG_DOT: i64 = 2 * LANES;

/// Maximum nesting depth of visited blocks.
const MAX_DEPTH: usize = 24;

/// Number of times that factoring visits each node of accumulated derivatives.
const FACTORING_LOOKS: u64 = 5;

/// Maximum number of accumulated regions of a function.
const MAX_ACCUMULATED: usize = 64;

/// Returns `function` with its scalar regions unrolled; its derivatives are expanded. Linear in the function except for
/// the regions.
pub fn scalarise(function: Function) -> Function {
    Regions::new(function, Stage::Expanded).run().0
}

/// Returns `function`, whose derivatives are not expanded, with those in scalar regions accumulated if that saves
/// operations; and a report of each.
pub fn accumulate(function: Function) -> (Function, Vec<Accumulated>) {
    if !differentiates(&function.body) {
        return (function, Vec::new());
    }
    Regions::new(function, Stage::Asked).run()
}

/// As [`accumulate`], by `strategy`, whatever that costs.
pub fn accumulate_by(function: Function, strategy: &'static Strategy) -> Function {
    if !differentiates(&function.body) {
        return function;
    }
    let regions = Regions::new(function, Stage::Asked);
    Regions { strategy: Some(strategy), is_forced: true, ..regions }.run().0
}

/// Scalar region of a loop whose derivatives came from the portfolio of accumulation methods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accumulated {
    /// Cost of one execution of the region with derivatives by forward or reverse mode, unrolled and numbered.
    pub before: Counts,
    /// Cost with accumulated derivatives.
    pub after: Counts,
    /// Method for the derivatives at each point of differentiation.
    pub methods: Vec<&'static str>,
    /// Methods whose programs the checker rejected: bugs of Chainrule, for which others were substituted.
    pub rejected: Vec<&'static str>,
}

impl Accumulated {
    fn new(before: &Counts, region: &Unrolled) -> Self {
        let methods = region.reports.iter().map(|report| report.chosen().name).collect();
        let rejected = region.reports.iter().flat_map(|report| report.rejected().map(|attempt| attempt.name)).collect();
        Self { before: *before, after: region.counts, methods, rejected }
    }
}

impl fmt::Display for Accumulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, after, methods, .. } = self;
        writeln!(f, "derivatives in a loop, accumulated by {}: {after}; expanded: {before}", methods.join(", "))?;
        if !self.rejected.is_empty() {
            writeln!(f, "  REJECTED by the checker: {}", self.rejected.join(", "))?;
        }
        Ok(())
    }
}

/// Number of runs of a block in one run of the function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Once,
    /// The block is in a loop.
    Repeatedly,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It contains unexpanded derivatives.
    Asked,
    /// It is ordinary code.
    Expanded,
}

/// Returns whether `block` contains an unexpanded derivative.
fn differentiates(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| asks(&stmt.expr))
}

fn asks(expr: &Expr) -> bool {
    matches!(expr, Expr::Jvp { .. } | Expr::Vjp { .. }) || expr.blocks().into_iter().any(differentiates)
}

/// Returns whether an expression is a sum of many products of elements: as a loop, it is part of a product of matrices.
fn is_long_dot(expr: &Expr) -> bool {
    let Expr::Sum { count, body, .. } = expr else { return false };
    let Some((product, elements)) = body.stmts.split_last() else { return false };
    count.as_constant().is_some_and(|n| n >= LONG_DOT)
        && product.var == body.result
        && matches!(product.expr, Expr::Op(Op::Mul, _))
        && elements.iter().all(|stmt| matches!(stmt.expr, Expr::Get { .. }))
}

struct Regions {
    function: Function,
    /// Variables in scope whose value a region can read: small, of doubles.
    outer: FxHashSet<VarId>,
    /// Variables in scope that are constants.
    constants: FxHashMap<VarId, Expr>,
    stage: Stage,
    /// Remaining number of nodes.
    budget: usize,
    accumulated: Vec<Accumulated>,
    /// Number of regions that were unrolled for accumulation.
    n_tried: usize,
    /// Requested strategy instead of the portfolio.
    strategy: Option<&'static Strategy>,
    /// Whether regions are accumulated even if they take more operations than before.
    is_forced: bool,
}

/// Returns the number of doubles in a type, if it consists of doubles alone, in arrays of known size.
fn leaves(ty: &Type) -> Option<i64> {
    match ty {
        Type::Double => Some(1),
        Type::Int | Type::Bool => None,
        Type::Array(size, element) => size.as_constant()?.checked_mul(leaves(element)?),
        Type::Tuple(fields, _) => fields.iter().try_fold(0i64, |sum, f| sum.checked_add(leaves(f)?)),
    }
}

/// Returns whether none of its arrays is empty, and all sizes are known.
fn is_filled(ty: &Type) -> bool {
    match ty {
        Type::Double | Type::Int | Type::Bool => true,
        Type::Array(size, element) => size.as_constant().is_some_and(|n| n > 0) && is_filled(element),
        Type::Tuple(fields, _) => fields.iter().all(is_filled),
    }
}

/// Passes to `see` every variable that a statement mentions: its uses, and those in the sizes of its types.
// Recursive on the nesting of blocks.
fn for_each_mention(vars: &Arena<VarId, Var>, stmt: &Stmt, see: &mut dyn FnMut(VarId)) {
    stmt.expr.for_each_operand(&mut |var| see(var));
    vars[stmt.var].ty.for_each_size(&mut |size| size.vars().into_iter().for_each(&mut *see));
    for binder in stmt.expr.binders() {
        vars[binder].ty.for_each_size(&mut |size| size.vars().into_iter().for_each(&mut *see));
    }
    for block in stmt.expr.blocks() {
        block.stmts.iter().for_each(|inner| for_each_mention(vars, inner, see));
        see(block.result);
    }
}

/// Renames the variables that `expr` and its blocks mention.
fn rename(expr: &mut Expr, by: &FxHashMap<VarId, VarId>) {
    let new = |v: VarId| by.get(&v).copied().unwrap_or(v);
    expr.map_operands(&new, &Size::clone);
    for block in expr.blocks_mut() {
        block.stmts.iter_mut().for_each(|stmt| rename(&mut stmt.expr, by));
        block.result = new(block.result);
    }
}

/// Statements of a region.
#[derive(Default)]
struct Region {
    stmts: Vec<Stmt>,
    defined: FxHashSet<VarId>,
    /// Whether there is a gain: a block, or in the stage of derivatives, a derivative.
    is_worth_it: bool,
}

/// Region as a graph.
struct Unrolled {
    graph: Graph,
    sources: Sources,
    /// Values of its result variables.
    trees: Vec<Tree>,
    /// Nodes of `trees`, numbered.
    new: FxHashMap<NodeId, NodeId>,
    roots: Vec<NodeId>,
    counts: Counts,
    reports: Vec<Report>,
    /// For accumulated derivatives, the cost without accumulation.
    expanded: Option<Counts>,
}

impl Unrolled {
    /// Factors the graph, within a time limit.
    fn factored(mut self) -> Self {
        let n_nodes = self.graph.reachable(&self.roots).len() as u64;
        let options = Optimise { budget: FACTORING_LOOKS * n_nodes, ..Optimise::default() };
        let factored = optimise(&mut self.graph, &self.roots, &options);
        let by: FxHashMap<NodeId, NodeId> = self.roots.iter().copied().zip(factored.roots.iter().copied()).collect();
        self.new.values_mut().for_each(|node| *node = by.get(node).copied().unwrap_or(*node));
        self.roots = factored.roots;
        self.counts = factored.report.after;
        self
    }
}

impl Regions {
    fn new(function: Function, stage: Stage) -> Self {
        let (outer, constants) = (FxHashSet::default(), FxHashMap::default());
        let (budget, accumulated, n_tried, is_forced) = (MAX_ALL_NODES, Vec::new(), 0, false);
        let strategy = None;
        Self { function, outer, constants, stage, budget, accumulated, n_tried, strategy, is_forced }
    }

    /// Returns the function with its regions unrolled.
    fn run(self) -> (Function, Vec<Accumulated>) {
        self.process(Runs::Once)
    }

    /// As [`Self::run`], for a function that runs so often.
    fn process(mut self, runs: Runs) -> (Function, Vec<Accumulated>) {
        let empty = Block { stmts: Vec::new(), result: self.function.body.result };
        let body = std::mem::replace(&mut self.function.body, empty);
        for param in self.function.params.clone() {
            self.see(param);
        }
        self.function.body = self.block(body, runs, 0);
        (self.function, self.accumulated)
    }

    /// Records that `var` is in scope from now on.
    fn see(&mut self, var: VarId) {
        if leaves(self.function.ty(var)).is_some_and(|n| n <= MAX_LEAVES) {
            self.outer.insert(var);
        }
    }

    fn block(&mut self, block: Block, runs: Runs, depth: usize) -> Block {
        if depth > MAX_DEPTH {
            return block;
        }
        let Block { stmts, result } = match self.stage {
            Stage::Asked if runs == Runs::Repeatedly => lift::lift(&self.function.vars, block),
            _ => block,
        };
        let mut out: Vec<Stmt> = Vec::new();
        let mut region = Region::default();
        let mut renamed: FxHashMap<VarId, VarId> = FxHashMap::default();
        // By the number of a statement, from 0; the result of the block is used after all.
        let mut last_use: FxHashMap<VarId, usize> = FxHashMap::default();
        if runs == Runs::Repeatedly {
            for (at, stmt) in stmts.iter().enumerate() {
                for_each_mention(&self.function.vars, stmt, &mut |v| {
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
            if runs == Runs::Repeatedly && !is_constant && self.is_scalar(&stmt, &region.defined, &mut local, 0) {
                region.defined.insert(stmt.var);
                region.is_worth_it |= match self.stage {
                    Stage::Asked => asks(&stmt.expr),
                    Stage::Expanded => {
                        !stmt.expr.blocks().is_empty() && !self.is_plain(&stmt) && !is_long_dot(&stmt.expr)
                    }
                };
                region.stmts.push(stmt);
                continue;
            }
            let mut depends = false;
            for_each_mention(&self.function.vars, &stmt, &mut |v| depends |= region.defined.contains(&v));
            if depends {
                let is_wanted = |v: &VarId| last_use.get(v).is_some_and(|last| *last >= at);
                self.close(std::mem::take(&mut region), &is_wanted, &mut out, &mut renamed);
                rename(&mut stmt.expr, &renamed);
            }
            let stmt = self.inside(stmt, runs, depth);
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

    /// Processes the blocks of a statement outside of regions.
    fn inside(&mut self, mut stmt: Stmt, runs: Runs, depth: usize) -> Stmt {
        // A function that is differentiated as a whole is processed after its expansion.
        if matches!(stmt.expr, Expr::Jvp { .. } | Expr::Vjp { .. } | Expr::Custom(_)) {
            return stmt;
        }
        let count = match &stmt.expr {
            Expr::Build { size, .. } => Some(size),
            Expr::Sum { count, .. } | Expr::Fold(StateLoop { count, .. }) | Expr::Loop(StateLoop { count, .. }) => {
                Some(count)
            }
            _ => None,
        };
        let repeats = matches!(stmt.expr, Expr::While(_))
            || count.is_some_and(|n| n.as_constant().is_none_or(|n| n > MAX_LEAVES));
        for binder in stmt.expr.binders() {
            self.see(binder);
        }
        for block in stmt.expr.blocks_mut() {
            let empty = Block { stmts: Vec::new(), result: block.result };
            *block =
                self.block(std::mem::replace(block, empty), if repeats { Runs::Repeatedly } else { runs }, depth + 1);
        }
        stmt
    }

    /// Returns whether a statement can be unrolled: all values that it reads are in the region, in the statement
    /// (`local`), or small values of doubles from outside.
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
        if matches!(stmt.expr, Expr::While(_))
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

    /// Returns whether a statement builds a long array elementwise from others: its loops fill vector lanes as they
    /// are, and there is no saving.
    fn is_plain(&self, stmt: &Stmt) -> bool {
        let is_long = leaves(self.function.ty(stmt.var)).is_some_and(|n| n >= LANES);
        let mut next = &stmt.expr;
        while let Expr::Build { index: place, body, .. } = next {
            let Some((last, before)) = body.stmts.split_last() else { return false };
            let is_in_place = |stmt: &Stmt| match &stmt.expr {
                Expr::Get { index, .. } => *self.function.ty(stmt.var) != Type::Double || index == place,
                other => matches!(other, Expr::Op { .. } | Expr::Real(_)),
            };
            if last.var != body.result || !before.iter().all(is_in_place) {
                return false;
            }
            next = &last.expr;
        }
        is_long && matches!(next, Expr::Op { .. })
    }

    /// Writes a region to `out`, unrolled if possible; the variables of `is_wanted` then have new names.
    fn close(
        &mut self,
        region: Region,
        is_wanted: &dyn Fn(&VarId) -> bool,
        out: &mut Vec<Stmt>,
        renamed: &mut FxHashMap<VarId, VarId>,
    ) {
        let wanted: Vec<VarId> = region.stmts.iter().map(|s| s.var).filter(is_wanted).collect();
        let unrolled = match self.stage {
            _ if !region.is_worth_it => None,
            Stage::Asked => self.accumulate(&region, &wanted),
            Stage::Expanded => self.unroll(&region, &wanted),
        };
        match unrolled.and_then(|unrolled| self.written(&unrolled, &wanted)) {
            Some((stmts, values)) => {
                out.extend(stmts);
                renamed.extend(wanted.iter().copied().zip(values));
            }
            None => out.extend(region.stmts),
        }
        wanted.into_iter().for_each(|v| self.see(renamed.get(&v).copied().unwrap_or(v)));
    }

    /// Returns the region as a graph.
    fn unroll(&mut self, region: &Region, wanted: &[VarId]) -> Option<Unrolled> {
        let part = self.part(region, wanted)?;
        let unrolled = self.graph(&part, None);
        self.function.vars = part.vars;
        let unrolled = unrolled?;
        self.budget = self.budget.saturating_sub(unrolled.graph.len());
        Some(unrolled)
    }

    /// Returns the region as a graph with accumulated derivatives, if that takes fewer operations.
    fn accumulate(&mut self, region: &Region, wanted: &[VarId]) -> Option<Unrolled> {
        if self.n_tried == MAX_ACCUMULATED {
            return None;
        }
        self.n_tried += 1;
        let part = self.part(region, wanted)?;
        let accumulated = self.graph(&part, Some(Local::by(self.strategy)));
        // The input of the next stage.
        let expanded = chainrule_autodiff::expand(&part).ok().and_then(|expanded| self.graph(&expanded, None));
        self.function.vars = part.vars;
        let (accumulated, expanded) = (accumulated?, expanded?);
        self.budget = self.budget.saturating_sub(expanded.graph.len());
        if accumulated.counts.weight >= expanded.counts.weight && !self.is_forced {
            return None;
        }
        Some(Unrolled { expanded: Some(expanded.counts), ..accumulated.factored() })
    }

    /// Returns the region as a function of its inputs, whose result is the tuple of the `wanted` variables. It borrows
    /// the variables of this function, which must be returned.
    fn part(&mut self, region: &Region, wanted: &[VarId]) -> Option<Function> {
        // Integers occur in sizes, too.
        if wanted.iter().any(|v| *self.function.ty(*v) == Type::Int) {
            return None;
        }
        let mut params: Vec<VarId> = Vec::new();
        let mut seen = FxHashSet::default();
        for stmt in &region.stmts {
            stmt.expr.for_each_use(&mut |v| {
                let is_outer = self.outer.contains(&v) || self.constants.contains_key(&v);
                if is_outer && !region.defined.contains(&v) && seen.insert(v) {
                    params.push(v);
                }
            });
        }
        let all = self.function.fresh(Type::Tuple(wanted.iter().map(|v| self.function.ty(*v).clone()).collect(), None));
        let mut stmts = region.stmts.clone();
        stmts.push(Stmt { var: all, expr: Expr::Tuple(wanted.to_vec()), span: None });
        Some(Function {
            name: Name::new("region"),
            vars: std::mem::take(&mut self.function.vars),
            sizes: Vec::new(),
            params,
            requires: Vec::new(),
            body: Block { stmts, result: all },
        })
    }

    /// Returns a region in the form of a function as a graph, with derivatives accumulated by `local`.
    fn graph(&self, part: &Function, mut local: Option<Local>) -> Option<Unrolled> {
        let mut graph = Graph::new(Semantics::Algebraic);
        let mut sources = Sources::default();
        let mut args = Vec::new();
        for v in &part.params {
            args.push(match self.constants.get(v) {
                Some(Expr::Real(c)) => Tree::Real(graph.constant(*c)),
                Some(Expr::Bool(b)) => Tree::Bool(Truth::Known(*b)),
                Some(Expr::Size(size)) => Tree::Int(size.as_constant()?),
                _ => input(&mut graph, part.ty(*v), *v, &mut Vec::new(), &mut sources)?,
            });
        }
        let budget = MAX_NODES.min(self.budget);
        let unrolled = unroll_with(part, args, &mut graph, budget, local.as_mut());
        let (Tree::Many(trees), _) = unrolled.ok()? else { return None };
        let mut roots = Vec::new();
        trees.iter().for_each(|tree| numbers(tree, &mut roots));
        let mut trees = trees.to_vec();
        let mut reports = Vec::new();
        if let Some(mut local) = local {
            roots = local.resolve(&mut graph, &roots).ok()?;
            let mut resolved = roots.iter().copied();
            trees = trees.iter().map(|tree| with_numbers(tree, &mut resolved)).collect();
            reports = local.reports;
        }
        let numbered = number(&mut graph, &roots, &Numbering { max_pairs: 0, ..Numbering::default() });
        let new = roots.into_iter().zip(numbered.roots.iter().copied()).collect();
        let (roots, counts) = (numbered.roots, numbered.report.after);
        Some(Unrolled { graph, sources, trees, new, roots, counts, reports, expanded: None })
    }

    /// Returns the graph as straight-line code, and the variables for `wanted`.
    fn written(&mut self, unrolled: &Unrolled, wanted: &[VarId]) -> Option<(Vec<Stmt>, Vec<VarId>)> {
        let mut writer = Writer::new(&mut self.function.vars, &unrolled.graph, &unrolled.sources);
        writer.graph(&unrolled.roots)?;
        let mut values = Vec::new();
        for (v, tree) in wanted.iter().zip(&unrolled.trees) {
            let ty = writer.vars[*v].ty.clone();
            values.push(writer.value(tree, &ty, &unrolled.new)?);
        }
        let stmts = writer.out;
        self.accumulated.extend(unrolled.expanded.map(|before| Accumulated::new(&before, unrolled)));
        Some((stmts, values))
    }
}

/// Adds inputs of the graph for the elements of a variable.
fn input(graph: &mut Graph, ty: &Type, var: VarId, path: &mut Vec<usize>, sources: &mut Sources) -> Option<Tree> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use arbitrary::Unstructured;
    use chainrule_base::Sources;
    use chainrule_ir::generate::{Case, Options, case};
    use chainrule_ir::{Program, Value, evaluate, print, verify};
    use chainrule_ops::Precise;
    use proptest::prelude::*;
    use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
    use std::cell::{Cell, RefCell};

    /// Returns the doubles of the value of `function`, in extended precision.
    fn value(function: &Function, args: &[Value<f64>], precise: &mut Precise) -> Option<Vec<f64>> {
        let args: Vec<_> = args.iter().map(|arg| arg.map(&mut |x| precise.from_f64(*x))).collect();
        let value = evaluate(function, precise, &args).ok()?;
        Some(value.reals().into_iter().map(|x| precise.as_f64(x)).collect())
    }

    /// Treats `function` as the body of a loop, and accumulates its derivatives regardless of the cost.
    fn forced(function: &Function) -> (Function, Vec<Accumulated>) {
        let mut regions = Regions::new(function.clone(), Stage::Asked);
        regions.is_forced = true;
        regions.process(Runs::Repeatedly)
    }

    #[test]
    fn derivatives_may_depend_on_derivatives_at_the_same_point_and_at_others() {
        for result in [
            "jvp g p (gradient g p)",
            "vjp g p (jvp g p p)",
            "gradient g (vectorAdd p (vectorSMul (gradient g p) w[i]))",
            "vjp (fun (v : [3]Double) -> gradient g v) p (gradient g p)",
            "jvp g (hessian g p)[0] (vectorSMul (gradient g (gradient g p)) w[i])",
        ] {
            let text = format!(
                "let g = fun (v : [3]Double) -> exp (v[0] * v[1]) * sin v[2] + v[0] ** 2\n\
                 let f = fun (x : [n][3]Double) (w : [n]Double) -> build n (fun i ->\n  \
                   let p = x[i]\n  {result})"
            );
            let mut sources = Sources::new();
            let root = sources.add("f.ft", &text);
            let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
            let function = program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let mut regions = Regions::new(function.clone(), Stage::Asked);
            regions.is_forced = true;
            let (accumulated, regions) = regions.run();
            assert_eq!(regions.len(), 1, "{result}");
            let point = |k: f64| Value::Array([0.5, -k, 0.25 * k].map(Value::Real).to_vec());
            let args = [Value::Array(vec![point(1.0), point(2.0)]), vec![0.5, -1.5].into()];
            let precise = &mut Precise::new();
            let expected = value(&function, &args, precise).unwrap();
            for (found, expected) in value(&accumulated, &args, precise).unwrap().iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= 1e-12 * (1.0 + expected.abs()),
                    "{result}: {found} is not {expected}"
                );
            }
        }
    }

    #[test]
    fn accumulated_derivatives_are_those_of_the_evaluator() {
        let precise = RefCell::new(Precise::new());
        let (told, n_regions) = (Cell::new(0), Cell::new(0));
        let config = ProptestConfig {
            cases: chainrule_cases::cases(1500),
            rng_seed: RngSeed::Fixed(41),
            failure_persistence: None,
            max_shrink_iters: 3_000,
            ..ProptestConfig::default()
        };
        let bytes = proptest::collection::vec(any::<u8>(), 100..1200);
        let outcome = TestRunner::new(config).run(&bytes, |bytes| {
            let Ok(Case { function, args }) = case(&mut Unstructured::new(&bytes), Options::smooth()) else {
                return Ok(());
            };
            let (accumulated, regions) = forced(&function);
            let text = || format!("{}\n{}\n{args:?}", print(&function), print(&accumulated));
            if let Err(e) = verify(&accumulated) {
                return Err(TestCaseError::fail(format!("{e:?}\n{}", text())));
            }
            let precise = &mut precise.borrow_mut();
            let Some(expected) = value(&function, &args, precise) else { return Ok(()) };
            let found = value(&accumulated, &args, precise);
            let found = found.ok_or_else(|| TestCaseError::fail(format!("it has no value\n{}", text())))?;
            for (found, expected) in found.iter().zip(&expected) {
                let close = (found - expected).abs() <= 1e-11 * (1.0 + expected.abs());
                if expected.is_finite() && !close {
                    return Err(TestCaseError::fail(format!("{found:e} is not {expected:e}\n{}", text())));
                }
            }
            told.set(told.get() + usize::from(!regions.is_empty()));
            n_regions.set(n_regions.get() + regions.len());
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{failure}");
        }
        println!("{} regions in {} programs", n_regions.get(), told.get());
        chainrule_cases::covers!(told.get() > 100, "{}", told.get());
    }
}
