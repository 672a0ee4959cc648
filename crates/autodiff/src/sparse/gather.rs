//! Gathers: the reads of blocks of the arguments in a term.
//!
//! In: the block of a term, whose variables are bound only once. Out: the same block in which a perturbation, a free
//! variable, is added to the value of each gather; and the gathers.
//!
//! | here | is |
//! | --- | --- |
//! | alias | a variable that is an argument, or an array or a tuple in it at known indices, larger than a block |
//! | gather | a read of a block of an argument: an alias with few doubles left, or one that is used as a whole |
//! | reading through | `y[e]` for a `y = build n (fun i -> body)` that depends on the variables: `body` at `e` |
//!
//! Holds: with all perturbations zero, the block computes the same value. Every dependence of the result on the
//! arguments goes through a gather. A gather's indices are computed from integers and from counters of loops whose
//! extents are known outside.

use super::budget::{Budget, MAX_LEVEL};
use super::indices::Indices;
use super::{Step, is_small};
use chainrule_base::Span;
use chainrule_ir::{Block, Builder, Expr, Renaming, Size, StateLoop, Stmt, Type, VarId, WhileLoop};
use chainrule_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};

/// Block of an argument.
#[derive(Clone, Debug)]
pub(crate) struct Gather {
    pub(crate) param: VarId,
    pub(crate) path: Vec<Step>,
    /// Source span of the read.
    pub(crate) span: Option<Span>,
    /// Inner loops on which the indices depend; outermost first.
    pub(crate) dims: Vec<Dim>,
    /// Conditions under which it is executed.
    pub(crate) guards: Vec<Guard>,
    /// Type of the block.
    pub(crate) ty: Type,
    /// Perturbation: an array over `dims` of the block's tangents.
    pub(crate) perturbation: VarId,
    /// Reason why it is larger than a small block, if it is.
    pub(crate) whole: Option<&'static str>,
}

/// Loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dim {
    pub(crate) counter: VarId,
    /// Extent with room for all iterations.
    pub(crate) extent: Size,
    /// Number of iterations, if it may be smaller than the extent.
    pub(crate) count: Option<Size>,
}

/// Condition for the execution of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Guard {
    /// The condition holds, or does not.
    If(VarId, bool),
    /// The loop with this counter has an iteration; a `while` has no counter.
    Loop(Option<VarId>),
}

#[derive(Clone)]
struct Alias {
    param: VarId,
    path: Vec<Step>,
    /// Source span of the last step.
    span: Option<Span>,
    /// Counters of the loops outside of which the indices in `path` might fail.
    needs: Vec<VarId>,
}

/// Build that is read through.
#[derive(Clone)]
struct Lazy {
    index: VarId,
    body: Block,
}

/// Variables over which extents of results may be expressed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    /// Size parameters, and integer arguments.
    pub(crate) known: FxHashSet<VarId>,
    /// Size parameters: never negative.
    pub(crate) naturals: FxHashSet<VarId>,
}

impl Extents {
    /// Returns the extent of an array over the iterations of a loop with `count` iterations, and whether it equals the
    /// number of iterations; `None` if it is unknown outside. A count may be negative, an extent may not, so subtracted
    /// terms are dropped.
    pub(crate) fn of(&self, count: &Size) -> Option<(Size, bool)> {
        if count.is_too_large() || !count.vars().iter().all(|var| self.naturals.contains(var)) {
            return None;
        }
        let positive: Vec<(Vec<VarId>, i64)> =
            count.terms().filter(|(_, c)| *c > 0).map(|(vars, c)| (vars.to_vec(), c)).collect();
        let is_exact = positive.len() == count.terms().len();
        Some((Size::from_terms(positive)?, is_exact))
    }
}

/// Search for the gathers of one term.
pub(crate) struct Gathering<'a> {
    pub(crate) out: &'a mut Builder,
    pub(crate) indices: &'a mut Indices,
    pub(crate) extents: &'a Extents,
    pub(crate) gathers: Vec<Gather>,
    aliases: FxHashMap<VarId, Alias>,
    lazies: FxHashMap<VarId, Lazy>,
    /// Unperturbed values of perturbed reads that contain integers.
    raws: FxHashMap<VarId, VarId>,
    /// Variables that are equal to others.
    same: FxHashMap<VarId, VarId>,
    active: FxHashSet<VarId>,
    whole: FxHashSet<VarId>,
    levels: FxHashMap<VarId, usize>,
    counters: Vec<Dim>,
    guards: Vec<Guard>,
    /// Reads that were inlined at an index, in each open block.
    read: Vec<FxHashMap<(VarId, VarId), VarId>>,
    budget: Budget,
}

impl<'a> Gathering<'a> {
    pub(crate) fn new(
        out: &'a mut Builder,
        indices: &'a mut Indices,
        extents: &'a Extents,
        by: &[VarId],
        budget: Budget,
    ) -> Self {
        let alias = |param: &VarId| (*param, Alias { param: *param, path: Vec::new(), span: None, needs: Vec::new() });
        Self {
            out,
            indices,
            extents,
            gathers: Vec::new(),
            aliases: by.iter().map(alias).collect(),
            lazies: FxHashMap::default(),
            raws: FxHashMap::default(),
            same: FxHashMap::default(),
            active: by.iter().copied().collect(),
            whole: FxHashSet::default(),
            levels: FxHashMap::default(),
            counters: Vec::new(),
            guards: Vec::new(),
            read: Vec::new(),
            budget,
        }
    }

    /// Returns the block with perturbations; `None` if it exceeds the budget.
    pub(crate) fn term(&mut self, block: Block) -> Option<Block> {
        self.scan_whole(&block);
        for stmt in &block.stmts {
            let is_lazy = matches!(stmt.expr, Expr::Build { .. }) && self.is_lazy(stmt.var);
            self.budget.expect(&stmt.expr, is_lazy);
        }
        let block = self.block(block);
        (!self.budget.is_exceeded(self.gathers.len())).then_some(block)
    }

    /// Returns the block in which each of `by` that it reads is perturbed as a whole, without reading through; `why` is
    /// the reason for a note.
    pub(crate) fn whole(&mut self, block: &Block, by: &[VarId], why: Option<&'static str>) -> Block {
        let mut used = vec![block.result];
        block.stmts.iter().for_each(|stmt| super::terms::uses(self.out, stmt, &mut used));
        let used = FxHashSet::from_iter(used);
        let (mut stmts, mut renaming) = (Vec::new(), Renaming::new());
        for param in by.iter().filter(|param| used.contains(param)) {
            let alias = Alias { param: *param, path: Vec::new(), span: None, needs: Vec::new() };
            let why = why.filter(|_| !is_small(self.out.ty(*param)));
            renaming.insert(*param, self.perturbed(*param, alias, why, &mut stmts));
        }
        let copy = self.out.copy_block(block, &mut renaming);
        stmts.extend(copy.stmts);
        Block { stmts, result: copy.result }
    }

    /// Returns the budget that the terms so far have spent.
    pub(crate) fn spent(&self) -> u64 {
        self.budget.spent(self.gathers.len())
    }

    /// As [`Self::scan`], for a block whose result is used as a whole.
    fn scan_whole(&mut self, block: &Block) -> (bool, usize) {
        self.whole.insert(block.result);
        self.scan(block)
    }

    /// Computes the active variables, those used as a whole, and the depth of builds that read builds. Returns whether
    /// `block` contains an active variable, and the deepest level that it reads.
    fn scan(&mut self, block: &Block) -> (bool, usize) {
        let (mut any, mut deepest) = (self.active.contains(&block.result), 0);
        for stmt in &block.stmts {
            let (mut active, mut level) = (false, 0);
            for inner in stmt.expr.blocks() {
                let (is_active, inner_level) = self.scan_whole(inner);
                active |= is_active;
                level = level.max(inner_level);
            }
            let read = match &stmt.expr {
                Expr::Get { array, .. } => Some(*array),
                Expr::Component(tuple, _) => Some(*tuple),
                _ => None,
            };
            for operand in stmt.expr.operands() {
                active |= self.active.contains(&operand);
                if read != Some(operand) {
                    self.whole.insert(operand);
                }
                level = level.max(self.levels.get(&operand).copied().unwrap_or(0));
            }
            if active && self.out.ty(stmt.var).has_double() {
                self.active.insert(stmt.var);
                any = true;
            }
            deepest = deepest.max(level);
            if matches!(stmt.expr, Expr::Build { .. }) {
                level += 1;
            }
            self.levels.insert(stmt.var, level);
        }
        (any, deepest)
    }

    fn block(&mut self, block: Block) -> Block {
        self.read.push(FxHashMap::default());
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for stmt in block.stmts {
            self.stmt(stmt, &mut stmts);
        }
        let result = self.used(block.result, &mut stmts);
        self.read.pop();
        Block { stmts, result }
    }

    fn renamed(&self, var: VarId) -> VarId {
        self.same.get(&var).copied().unwrap_or(var)
    }

    fn emit(&mut self, var: VarId, expr: Expr, span: Option<Span>, stmts: &mut Vec<Stmt>) {
        let stmt = Stmt { var, expr, span };
        self.indices.see(self.out, &stmt);
        stmts.push(stmt);
    }

    // Recursive on the nesting of loops, and on builds read through, whose depth is bounded.
    fn stmt(&mut self, stmt: Stmt, stmts: &mut Vec<Stmt>) {
        let Stmt { var, mut expr, span } = stmt;
        self.budget.statement();
        let read = match &expr {
            Expr::Get { array, index, .. } => Some((self.renamed(*array), Step::Index(*index))),
            Expr::Component(tuple, k) => Some((self.renamed(*tuple), Step::Field(*k))),
            _ => None,
        };
        if let Some((from, step)) = read {
            // A perturbed value keeps the integers of the value that was read.
            let raw = if self.aliases.contains_key(&from) { Some(from) } else { self.raws.get(&from).copied() };
            if let Some(raw) = raw {
                let ty = self.out.ty(var).clone();
                let read = |expr: &mut Expr| match expr {
                    Expr::Get { array: from, .. } | Expr::Component(from, _) => *from = raw,
                    _ => {}
                };
                if !ty.has_double() {
                    read(&mut expr);
                    return self.emit(var, expr, span, stmts);
                }
                if !ty.is_linear() && raw != from {
                    let part = self.out.fresh(ty);
                    let mut of_raw = expr.clone();
                    read(&mut of_raw);
                    self.emit(part, of_raw, span, stmts);
                    self.raws.insert(var, part);
                }
            }
            if let Some(alias) = self.aliases.get(&from).filter(|_| !is_small(self.out.ty(from))) {
                let needs = match &step {
                    Step::Field(_) => Some(Vec::new()),
                    Step::Index(index) => self.needs(*index),
                };
                if let Some(more) = needs {
                    let path = alias.path.iter().cloned().chain([step]).collect();
                    let needs = alias.needs.iter().copied().chain(more).collect();
                    let alias = Alias { param: alias.param, path, span, needs };
                    expr.map_operands(&|v| self.renamed(v), &Size::clone);
                    return self.alias(var, alias, expr, stmts);
                }
            } else if let (Some(lazy), Step::Index(index)) = (self.lazies.get(&from), &step) {
                let (lazy, index) = (lazy.clone(), *index);
                let is_proved = matches!(expr, Expr::Get { proved: true, .. });
                return self.read_through(var, from, &lazy, (index, is_proved), stmts);
            }
        }
        if let Expr::Build { index, body, .. } = &expr
            && self.is_lazy(var)
        {
            self.lazies.insert(var, Lazy { index: *index, body: body.clone() });
            return;
        }
        let operands = expr.operands();
        let mut by = FxHashMap::default();
        // A value held constant needs no perturbation.
        let is_held = matches!(&expr, Expr::Custom(custom) if custom.rule.is_none());
        for operand in operands {
            let raw = self.renamed(operand);
            let used = if is_held && self.aliases.contains_key(&raw) { raw } else { self.used(operand, stmts) };
            by.insert(operand, used);
        }
        expr.map_operands(&|v| by.get(&v).copied().unwrap_or(v), &Size::clone);
        self.blocks(&mut expr);
        let stmt = Stmt { var, expr, span };
        self.indices.see(self.out, &stmt);
        stmts.push(stmt);
    }

    /// Returns the counters of the loops in which `index` can be computed in advance, in addition to those on which it
    /// depends; `None` if it is not computed from integers alone, or might fail under a condition that depends on other
    /// values.
    fn needs(&self, index: VarId) -> Option<Vec<VarId>> {
        self.indices.deps(index)?;
        if self.indices.is_total(self.out, index) {
            return Some(Vec::new());
        }
        let mut needs = Vec::new();
        for guard in &self.guards {
            match guard {
                Guard::If(condition, _) => needs.extend(self.indices.deps(*condition)?),
                Guard::Loop(counter) => needs.push((*counter)?),
            }
        }
        Some(needs)
    }

    fn is_lazy(&self, var: VarId) -> bool {
        let Type::Array(_, element) = self.out.ty(var) else { return false };
        self.active.contains(&var) && !self.whole.contains(&var) && element.is_linear() && !is_small(self.out.ty(var))
    }

    /// Rewrites the blocks of `expr`, under their guards.
    fn blocks(&mut self, expr: &mut Expr) {
        match expr {
            Expr::If { condition, then, otherwise } => {
                for (block, holds) in [(then, true), (otherwise, false)] {
                    self.guards.push(Guard::If(*condition, holds));
                    self.inner(block);
                    self.guards.pop();
                }
            }
            Expr::Build { size, index, body }
            | Expr::Sum { count: size, index, body }
            | Expr::Fold(StateLoop { count: size, index, body, .. })
            | Expr::Loop(StateLoop { count: size, index, body, .. }) => {
                let extent = self.extents.of(size);
                let runs = size.as_constant().is_some_and(|n| n > 0);
                if let Some((extent, is_exact)) = extent.clone() {
                    self.indices.counter(*index, size);
                    let count = if is_exact { None } else { Some(size.clone()) };
                    self.counters.push(Dim { counter: *index, extent, count });
                }
                let outer = self.budget.open(size);
                self.guards.extend((!runs).then_some(Guard::Loop(extent.is_some().then_some(*index))));
                self.inner(body);
                self.budget.close(outer);
                if !runs {
                    self.guards.pop();
                }
                if extent.is_some() {
                    self.counters.pop();
                }
            }
            Expr::While(WhileLoop { condition, body, .. }) => {
                self.inner(condition);
                self.guards.push(Guard::Loop(None));
                self.inner(body);
                self.guards.pop();
            }
            _ => {}
        }
    }

    fn inner(&mut self, block: &mut Block) {
        let taken = std::mem::replace(block, Block { stmts: Vec::new(), result: block.result });
        *block = self.block(taken);
    }

    /// Records that `expr` binds `var` to a part of an argument.
    fn alias(&mut self, var: VarId, alias: Alias, expr: Expr, stmts: &mut Vec<Stmt>) {
        let (ty, span) = (self.out.ty(var).clone(), alias.span);
        if !ty.has_double() {
            return self.emit(var, expr, span, stmts);
        }
        if !is_small(&ty) {
            self.emit(var, expr, span, stmts);
            self.aliases.insert(var, alias);
            return;
        }
        let raw = self.out.fresh(ty);
        self.emit(raw, expr, span, stmts);
        let perturbed = self.perturbed(raw, alias, None, stmts);
        self.same.insert(var, perturbed);
    }

    /// Returns the replacement of `var` for uses other than reads of its parts.
    fn used(&mut self, var: VarId, stmts: &mut Vec<Stmt>) -> VarId {
        let var = self.renamed(var);
        if let Some(known) = self.read.iter().rev().find_map(|read| read.get(&(var, var))) {
            return *known;
        }
        if let Some(alias) = self.aliases.get(&var).cloned() {
            let why = if is_small(self.out.ty(var)) {
                None
            } else {
                Some("is used as a whole, or at indices that are not known before")
            };
            let perturbed = self.perturbed(var, alias, why, stmts);
            if let Some(read) = self.read.last_mut() {
                read.insert((var, var), perturbed);
            }
            return perturbed;
        }
        if let Some(lazy) = self.lazies.get(&var).cloned() {
            if self.is_over(var) {
                return var;
            }
            // The scan did not find this use: the array is built here.
            let Type::Array(size, _) = self.out.ty(var).clone() else { return var };
            let ty = self.out.ty(var).clone();
            let (copy, index) = (self.out.fresh(ty), self.out.fresh(Type::Int));
            let mut renaming = Renaming::from_iter([(lazy.index, index)]);
            let body = self.out.copy_block(&lazy.body, &mut renaming);
            self.scan_whole(&body);
            let mut expr = Expr::Build { size, index, body };
            self.blocks(&mut expr);
            stmts.push(Stmt { var: copy, expr, span: None });
            return copy;
        }
        var
    }

    /// Returns whether the budget does not allow for another copy of the build `lazy`. The rewritten term is then
    /// discarded.
    fn is_over(&mut self, lazy: VarId) -> bool {
        if self.levels.get(&lazy).is_some_and(|level| *level > MAX_LEVEL) {
            self.budget.exceed();
        }
        self.budget.is_exceeded(self.gathers.len())
    }

    /// Replaces `var`, the element of `from` at `index`, by the code for that element. `is_proved`: whether the index
    /// is known to be in range.
    fn read_through(
        &mut self,
        var: VarId,
        from: VarId,
        lazy: &Lazy,
        (index, is_proved): (VarId, bool),
        stmts: &mut Vec<Stmt>,
    ) {
        let at = (from, self.indices.equal(index));
        if let Some(known) = self.read.iter().rev().find_map(|read| read.get(&at)) {
            let known = *known;
            self.same.insert(var, known);
            return;
        }
        if self.is_over(from) {
            return;
        }
        let mut renaming = Renaming::from_iter([(lazy.index, index)]);
        let mut body = self.out.copy_block(&lazy.body, &mut renaming);
        if !is_proved {
            // Their proofs assume that the index of the build is in range.
            body.forget_proofs();
        }
        if self.whole.contains(&var) {
            self.whole.insert(body.result);
        }
        self.scan(&body);
        for stmt in body.stmts {
            self.stmt(stmt, stmts);
        }
        let result = self.renamed(body.result);
        self.same.insert(var, result);
        if let Some(read) = self.read.last_mut() {
            read.insert(at, result);
        }
    }

    /// Returns `raw`, the value of `alias`, with its perturbation added.
    fn perturbed(&mut self, raw: VarId, alias: Alias, whole: Option<&'static str>, stmts: &mut Vec<Stmt>) -> VarId {
        let ty = self.out.ty(raw).clone();
        let gather = self.gather(alias, &ty, whole);
        let Gather { mut perturbation, dims, .. } = self.gathers[gather].clone();
        self.out.push_block();
        for dim in &dims {
            perturbation = self.out.get_proved(perturbation, dim.counter);
        }
        let sum = self.sum(raw, &ty, perturbation);
        if !ty.is_linear() {
            self.raws.insert(sum, raw);
        }
        let added = self.out.pop_block(sum);
        stmts.extend(added.stmts);
        sum
    }

    /// Emits `value`, of type `ty`, plus `tangent`, in the open block. Recursive on the type only.
    fn sum(&mut self, value: VarId, ty: &Type, tangent: VarId) -> VarId {
        match ty {
            Type::Double => self.out.op(Op::Add, &[value, tangent]),
            _ if ty.is_linear() => self.out.plus(value, tangent),
            Type::Tuple(fields, _) => {
                let (mut parts, mut k) = (Vec::with_capacity(fields.len()), 0);
                for (field_idx, field) in fields.iter().enumerate() {
                    let mut part = self.out.component(value, field_idx);
                    if field.has_double() {
                        let tangent = self.out.component(tangent, k);
                        part = self.sum(part, field, tangent);
                        k += 1;
                    }
                    parts.push(part);
                }
                self.out.emit(Expr::Tuple(parts), ty.clone())
            }
            Type::Array(size, element) if ty.has_double() => {
                let index = self.out.fresh(Type::Int);
                self.out.push_block();
                let (part, along) = (self.out.get_proved(value, index), self.out.get_proved(tangent, index));
                let part = self.sum(part, element, along);
                let body = self.out.pop_block(part);
                self.out.compute(Expr::Build { size: size.clone(), index, body })
            }
            _ => value,
        }
    }

    /// Returns the gather of `alias`; creates it unless it exists.
    fn gather(&mut self, alias: Alias, ty: &Type, whole: Option<&'static str>) -> usize {
        let Alias { param, path, span, needs } = alias;
        let depends = |counter: VarId| {
            needs.contains(&counter) || path.iter().any(|step| matches!(step, Step::Index(i) if self.indices.deps(*i).is_some_and(|deps| deps.contains(&counter))))
        };
        let dims: Vec<Dim> = self.counters.iter().filter(|dim| depends(dim.counter)).cloned().collect();
        let is_dim = |counter: &VarId| dims.iter().any(|dim| dim.counter == *counter);
        let guards: Vec<Guard> =
            self.guards.iter().copied().filter(|guard| !matches!(guard, Guard::Loop(Some(c)) if is_dim(c))).collect();
        let equal = |step: &Step| match step {
            Step::Index(index) => Step::Index(self.indices.equal(*index)),
            Step::Field(k) => Step::Field(*k),
        };
        let same = |known: &Gather| {
            known.param == param
                && known.path.len() == path.len()
                && known.path.iter().map(equal).eq(path.iter().map(equal))
                && known.dims == dims
                && (known.guards.starts_with(&guards) || guards.starts_with(&known.guards))
        };
        if let Some(known) = self.gathers.iter().position(same) {
            if guards.len() < self.gathers[known].guards.len() {
                self.gathers[known].guards = guards;
            }
            return known;
        }
        let tangent = ty.tangent().unwrap_or(Type::Double);
        let ty_of_all = dims.iter().rev().fold(tangent, |ty, dim| Type::array(dim.extent.clone(), ty));
        let perturbation = self.out.fresh(ty_of_all);
        self.gathers.push(Gather { param, path, span, dims, guards, ty: ty.clone(), perturbation, whole });
        self.gathers.len() - 1
    }
}
