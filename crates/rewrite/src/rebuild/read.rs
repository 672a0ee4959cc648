//! Reading: blocks of the source function, or of the new one, are written into the open block.

use super::{Env, Fields, Kind, Mark, Rebuild, Shared, Slice};
use crate::rules;
use chainrule_base::Id;
use chainrule_ir::{Block, Custom, Expr, Rule, RuleBlock, Size, StateLoop, Stmt, Type, VarId, WhileLoop, size_of};
use chainrule_ops::Op;
use rustc_hash::FxHashSet;
use std::ptr::from_ref;

impl Rebuild<'_> {
    pub(crate) fn rename_size(&self, size: &Size, env: &Env<'_>) -> Size {
        size.substitute(|v| size_of(&self.vars, env.get(v)))
    }

    pub(crate) fn rename_type(&self, ty: &Type, env: &Env<'_>) -> Type {
        ty.map_sizes(&mut |size| self.rename_size(size, env))
    }

    /// Computes `size` with its variables replaced, term by term, by operations that fail at run time if a number does
    /// not fit.
    fn by_operations(&mut self, size: &Size, env: &Env<'_>) -> VarId {
        let mut sum = None;
        for (monomial, c) in size.terms() {
            let mut product = self.int(Size::constant(c));
            for var in monomial {
                product = self.op(Op::Mul, &[product, env.get(*var)]);
            }
            sum = Some(sum.map_or(product, |sum| self.op(Op::Add, &[sum, product])));
        }
        sum.unwrap_or_else(|| self.int(Size::zero()))
    }

    /// Writes the value of `wanted` in `block`, a block of the new function, with variables replaced by `env`.
    pub(crate) fn inline(&mut self, block: &Block, wanted: VarId, env: &mut Env<'static>) -> VarId {
        let kept = self.slice(block, &[wanted]);
        self.inline_kept(block, &kept, env);
        env.get(wanted)
    }

    /// As [`Self::inline`], for the statements `kept`.
    pub(crate) fn inline_kept(&mut self, block: &Block, kept: &Slice, env: &mut Env<'static>) {
        self.listed(kept.stmts(block), env);
    }

    pub(super) fn stmts(&mut self, block: &Block, env: &mut Env<'_>) -> VarId {
        let plan = self.source.plan;
        match env.source.and_then(|_| plan.order.get(&from_ref(block))) {
            Some(order) => self.listed(order.iter().map(|at| &block.stmts[*at]), env),
            None => self.listed(block.stmts.iter(), env),
        }
        env.get(block.result)
    }

    fn listed<'b>(&mut self, stmts: impl Iterator<Item = &'b Stmt>, env: &mut Env<'_>) {
        let outer = self.mode.span;
        for stmt in stmts {
            if env.source.is_some() {
                let is_elsewhere = self.source.marks[stmt.var.index()] == Mark::Elsewhere;
                if is_elsewhere
                    && (self.source.plan.dead.contains(&stmt.var) || self.source.plan.merged.contains(&stmt.var))
                {
                    continue;
                }
                if is_elsewhere && let Some(group) = self.source.plan.merge.get(&stmt.var) {
                    self.merge(group, env);
                    continue;
                }
                if is_elsewhere && self.source.plan.deferred.contains_key(&stmt.var) {
                    continue;
                }
                if let Expr::Get { array, index, proved } = &stmt.expr
                    && self.source.marks[array.index()] == Mark::Elsewhere
                    && let Some(element) = self.element(*array, env.get(*index), *proved, env)
                {
                    env.insert(stmt.var, element);
                    continue;
                }
            }
            if env.source.is_none() {
                // Copies are the cost of rules.
                self.counts.left = self.counts.left.saturating_sub(1);
            }
            self.mode.span = stmt.span.or(outer);
            let new = self.stmt(stmt, env);
            if let Some(source) = env.source
                && let Some(name) = &source[stmt.var].name
                && self.defs[new.index()].expr.is_some()
            {
                self.vars[new].name.get_or_insert_with(|| name.clone());
            }
            env.insert(stmt.var, new);
        }
        self.mode.span = outer;
    }

    /// Returns the element at `index` of a build that is not written as it is: of one merged with others; or the
    /// element at its own index of one that is being written with the loop that reads it, or was deferred. A deferred
    /// build is then written with those whose elements it reads, each once. Not recursive: elements are written before
    /// their users.
    fn element(&mut self, array: VarId, index: VarId, proved: bool, env: &mut Env<'_>) -> Option<VarId> {
        if let Some(&(together, part)) = self.source.parts.get(&array) {
            let element = self.compute(Expr::Get { array: together, index, proved });
            return Some(self.compute(Expr::Component(element, part)));
        }
        let plan = self.source.plan;
        if self.source.elements.contains_key(&array) || !plan.deferred.contains_key(&array) {
            return self.source.elements.get(&array).copied();
        }
        // Elements that it reads are written first.
        let (mut todo, mut entered) = (vec![array], FxHashSet::default());
        while let Some((next, (own, body))) = todo.last().and_then(|next| Some((*next, *plan.deferred.get(next)?))) {
            if self.source.elements.contains_key(&next) {
                todo.pop();
            } else if entered.insert(next) {
                // Excludes arrays made in its body, which may need preceding statements there, and dead ones, whose
                // other readers would get this element.
                let makes = |array: &VarId| body.bound(*array).is_some();
                let alive = body.stmts.iter().rev().filter(|stmt| !plan.dead.contains(&stmt.var));
                todo.extend(alive.filter_map(|stmt| match &stmt.expr {
                    Expr::Get { array, index, .. }
                        if *index == own && plan.deferred.contains_key(array) && !makes(array) =>
                    {
                        Some(*array)
                    }
                    _ => None,
                }));
            } else {
                todo.pop();
                env.insert(own, index);
                let element = self.stmts(body, env);
                self.source.elements.insert(next, element);
                self.count(rules::counted(rules::fuse()));
            }
        }
        self.source.elements.get(&array).copied()
    }

    pub(super) fn source_type(&self, var: VarId, env: &Env<'_>) -> Type {
        let ty = match env.source {
            Some(vars) => &vars[var].ty,
            None => &self.vars[var].ty,
        };
        match ty {
            Type::Double | Type::Int | Type::Bool => ty.clone(),
            _ => self.rename_type(ty, env),
        }
    }

    pub(super) fn bind_as(&mut self, var: VarId, env: &mut Env<'_>) -> VarId {
        let ty = self.source_type(var, env);
        let new = self.bind(ty);
        self.name_as(new, var, env);
        env.insert(var, new);
        new
    }

    pub(super) fn name_as(&mut self, new: VarId, var: VarId, env: &Env<'_>) {
        let name = match env.source {
            Some(vars) => vars[var].name.clone(),
            None => self.vars[var].name.clone(),
        };
        self.vars[new].name = name;
    }

    pub(super) fn index_as(&mut self, index: VarId, new: VarId, env: &mut Env<'_>) {
        self.name_as(new, index, env);
        env.insert(index, new);
    }

    /// Writes a loop over `count` whose body has `index` and `state`; returns their new variables, and the body.
    fn stateful(
        &mut self,
        count: &Size,
        index: VarId,
        state: VarId,
        body: &Block,
        env: &mut Env<'_>,
    ) -> (VarId, VarId, Block) {
        let mut bound = state;
        let (index, body) = self.loop_(count, |rb, new| {
            rb.index_as(index, new, env);
            bound = rb.bind_as(state, env);
            rb.stmts(body, env)
        });
        (index, bound, body)
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt, env: &mut Env<'_>) -> VarId {
        let ty = self.source_type(stmt.var, env);
        self.current.factor = false;
        if env.source.is_none() || self.source.marks[stmt.var.index()] == Mark::Nothing {
            return self.write(&stmt.expr, ty, (None, None), env);
        }
        if self.mode.opaque == 0
            && let Some(fields) = self.source.plan.fields.get(&stmt.var)
            && let Some(var) = self.narrow(stmt, &ty, fields, env)
        {
            return var;
        }
        let fuse = self.source.plan.fuse.get(&stmt.var).copied();
        let share = self.source.plan.share.get(&stmt.var).copied();
        self.current.factor = self.source.plan.factor.contains(&stmt.var);
        let var = self.write(&stmt.expr, ty, (fuse, share), env);
        if let Some(arrays) = self.source.plan.branches.get(&stmt.var) {
            let arrays: Vec<VarId> = arrays.iter().map(|array| env.get(*array)).collect();
            if let Some(moved) = self.in_branches(var, &arrays) {
                self.count(rules::BRANCHES);
                return moved;
            }
        }
        var
    }

    /// Writes `expr` of type `ty` with its variables replaced. `fuse`: number of loops between a `get` to be fused and
    /// its build. `share`: whether an array is made of it.
    pub(super) fn write(
        &mut self,
        expr: &Expr,
        ty: Type,
        (fuse, share): (Option<usize>, Option<Shared>),
        env: &mut Env<'_>,
    ) -> VarId {
        let expr = match expr {
            Expr::Build { size, index, body } => {
                let size = self.rename_size(size, env);
                let (index, body) = self.loop_(&size, |rb, new| {
                    rb.index_as(*index, new, env);
                    rb.stmts(body, env)
                });
                Expr::Build { size, index, body }
            }
            Expr::Sum { count, index, body } => {
                let count = self.rename_size(count, env);
                let (index, body) = self.loop_(&count, |rb, new| {
                    rb.index_as(*index, new, env);
                    rb.stmts(body, env)
                });
                Expr::Sum { count, index, body }
            }
            Expr::Fold(StateLoop { count, index, state, init, body }) => {
                let (count, init) = (self.rename_size(count, env), env.get(*init));
                let (index, state, body) = self.stateful(&count, *index, *state, body, env);
                Expr::Fold(StateLoop { count, index, state, init, body })
            }
            Expr::Loop(StateLoop { count, index, state, init, body }) => {
                let (count, init) = (self.rename_size(count, env), env.get(*init));
                let (index, state, body) = self.stateful(&count, *index, *state, body, env);
                Expr::Loop(StateLoop { count, index, state, init, body })
            }
            Expr::While(WhileLoop { limit, state, init, condition, body }) => {
                let (limit, init) = (self.rename_size(limit, env), env.get(*init));
                self.enter(Kind::Lazy);
                let new = self.bind_as(*state, env);
                let result = self.stmts(condition, env);
                let condition = self.leave(result);
                self.enter(Kind::Lazy);
                let result = self.stmts(body, env);
                let body = self.leave(result);
                Expr::While(WhileLoop { limit, state: new, init, condition, body })
            }
            Expr::If { condition, then, otherwise } => {
                let condition = env.get(*condition);
                if self.mode.opaque == 0
                    && let Some(holds) = self.truth(condition)
                {
                    self.count(rules::DECIDE);
                    return self.stmts(if holds { then } else { otherwise }, env);
                }
                let then = self.branch(condition, true, |rb| rb.stmts(then, env));
                let otherwise = self.branch(condition, false, |rb| rb.stmts(otherwise, env));
                Expr::If { condition, then, otherwise }
            }
            Expr::Jvp { params, body, at, along } => {
                let all = |vars: &[VarId]| vars.iter().map(|v| env.get(*v)).collect::<Vec<_>>();
                let (at, along) = (all(at), all(along));
                self.enter(Kind::Opaque);
                self.mode.opaque += 1;
                let params = params.iter().map(|param| self.bind_as(*param, env)).collect();
                let result = self.stmts(body, env);
                self.mode.opaque -= 1;
                let body = self.leave(result);
                Expr::Jvp { params, body, at, along }
            }
            Expr::Vjp { params, body, at, cotangent } => {
                let (at, cotangent) = (at.iter().map(|v| env.get(*v)).collect(), env.get(*cotangent));
                self.enter(Kind::Opaque);
                self.mode.opaque += 1;
                let params = params.iter().map(|param| self.bind_as(*param, env)).collect();
                let result = self.stmts(body, env);
                self.mode.opaque -= 1;
                let body = self.leave(result);
                Expr::Vjp { params, body, at, cotangent }
            }
            Expr::Custom(custom) => {
                let at = env.get(custom.at);
                let mut opaque = |rb: &mut Self, binders: &[VarId], block: &Block| {
                    rb.enter(Kind::Opaque);
                    rb.mode.opaque += 1;
                    let binders: Vec<VarId> = binders.iter().map(|binder| rb.bind_as(*binder, env)).collect();
                    let result = rb.stmts(block, env);
                    rb.mode.opaque -= 1;
                    (binders, rb.leave(result))
                };
                let (param, body) = opaque(self, &[custom.param], &custom.body);
                let rule = custom.rule.as_ref().map(|rule| {
                    // The arguments of the rule's function are bound for both.
                    let [x, y, moved] = rule.forward.params;
                    let (forward, forward_body) = opaque(self, &[rule.me, x, y, moved], &rule.forward.body);
                    let (reverse, reverse_body) = opaque(self, &rule.reverse.params, &rule.reverse.body);
                    Rule {
                        me: forward[0],
                        forward: RuleBlock { params: [forward[1], forward[2], forward[3]], body: forward_body },
                        reverse: RuleBlock { params: [reverse[0], reverse[1], reverse[2]], body: reverse_body },
                    }
                });
                Expr::Custom(Box::new(Custom { at, param: param[0], body, rule, promised: custom.promised }))
            }
            Expr::Again { me, at } => Expr::Again { me: env.get(*me), at: env.get(*at) },
            Expr::Size(size) => {
                let new = self.rename_size(size, env);
                if new.is_too_large() {
                    return self.by_operations(size, env);
                }
                match new.as_var() {
                    Some(var) => return var,
                    None => Expr::Size(new),
                }
            }
            leaf => {
                let mut expr = leaf.clone();
                expr.map_operands(&|v| env.get(v), &|size| self.rename_size(size, env));
                expr
            }
        };
        self.current.fuse = fuse;
        self.current.share = share;
        self.emit(expr, ty)
    }

    /// Returns a loop or branch whose value is a tuple with only the `live` fields; the others get any value of their
    /// type. `None` if that is not possible.
    pub(super) fn narrow(&mut self, stmt: &Stmt, ty: &Type, live: &Fields, env: &mut Env<'_>) -> Option<VarId> {
        let Type::Tuple(all, _) = ty else { return None };
        let fields = live.of_value.as_slice();
        if let Expr::Tuple(parts) = &stmt.expr {
            let part = |rb: &mut Self, k: usize| {
                if fields.contains(&k) { env.get(parts[k]) } else { rb.any_value(&all[k]) }
            };
            let parts = (0..parts.len()).map(|k| part(self, k)).collect();
            return Some(self.tuple(parts, ty));
        }
        let kept: Vec<Type> = fields.iter().map(|k| all[*k].clone()).collect();
        // A single field is no tuple.
        let narrow_type = |kept: &[Type]| if let [one] = kept { one.clone() } else { Type::tuple(kept.to_vec()) };
        let pick = |rb: &mut Self, whole: VarId| {
            let parts: Vec<VarId> = fields.iter().map(|k| rb.compute(Expr::Component(whole, *k))).collect();
            if let [one] = parts[..] { one } else { rb.compute(Expr::Tuple(parts)) }
        };
        let part = |rb: &mut Self, narrow: VarId, at: usize| {
            if fields.len() == 1 { narrow } else { rb.compute(Expr::Component(narrow, at)) }
        };
        let narrowed = match &stmt.expr {
            Expr::Fold(StateLoop { count, index, state, init, body }) => {
                let (count, init) = (self.rename_size(count, env), env.get(*init));
                let narrow_init = pick(self, init);
                let rest: Vec<VarId> = (0..all.len()).map(|k| self.compute(Expr::Component(init, k))).collect();
                let whole = |rb: &mut Self, narrow: VarId| {
                    let mut parts = rest.clone();
                    for (at, k) in fields.iter().enumerate() {
                        parts[*k] = part(rb, narrow, at);
                    }
                    rb.tuple(parts, ty)
                };
                let narrow = self.fold(count, narrow_init, |rb, narrow_state, new| {
                    rb.index_as(*index, new, env);
                    let full = whole(rb, narrow_state);
                    env.insert(*state, full);
                    let result = rb.stmts(body, env);
                    pick(rb, result)
                });
                whole(self, narrow)
            }
            Expr::Loop(StateLoop { count, index, state, init, body }) => {
                let (count, init) = (self.rename_size(count, env), env.get(*init));
                let nothing = |rb: &mut Self| rb.tuple(Vec::new(), &Type::tuple(Vec::new()));
                let of_state = live.of_state.as_deref();
                let picked = |rb: &mut Self, whole: VarId| match of_state {
                    Some(fields) => {
                        let parts = fields.iter().map(|k| rb.compute(Expr::Component(whole, *k))).collect();
                        rb.compute(Expr::Tuple(parts))
                    }
                    None => whole,
                };
                // Fields of a state that no iteration reads may be anything.
                let whole = |rb: &mut Self, narrow: VarId| match (of_state, &all[0]) {
                    (Some(fields), Type::Tuple(types, _)) => {
                        let mut parts: Vec<VarId> = types.iter().map(|field| rb.any_value(field)).collect();
                        for (at, k) in fields.iter().enumerate() {
                            parts[*k] = rb.compute(Expr::Component(narrow, at));
                        }
                        rb.tuple(parts, &all[0])
                    }
                    _ => narrow,
                };
                let start = if fields.contains(&0) { picked(self, init) } else { nothing(self) };
                let narrow = self.general(count, start, |rb, now, new| {
                    rb.index_as(*index, new, env);
                    let before = if fields.contains(&0) { whole(rb, now) } else { rb.any_value(&all[0]) };
                    env.insert(*state, before);
                    let triple = rb.stmts(body, env);
                    let parts = (0..3)
                        .map(|k| match fields.contains(&k) {
                            true => {
                                let part = rb.compute(Expr::Component(triple, k));
                                if k == 0 { picked(rb, part) } else { part }
                            }
                            false => nothing(rb),
                        })
                        .collect();
                    rb.compute(Expr::Tuple(parts))
                });
                let parts = (0..3)
                    .map(|k| match fields.contains(&k) {
                        true => {
                            let part = self.compute(Expr::Component(narrow, k));
                            if k == 0 { whole(self, part) } else { part }
                        }
                        false => self.any_value(&all[k]),
                    })
                    .collect();
                self.tuple(parts, ty)
            }
            Expr::If { condition, then, otherwise } => {
                let condition = env.get(*condition);
                let narrow_ty = narrow_type(&kept);
                let narrow = {
                    let env = std::cell::RefCell::new(&mut *env);
                    let side = |rb: &mut Self, block: &Block| {
                        let result = rb.stmts(block, &mut env.borrow_mut());
                        pick(rb, result)
                    };
                    self.if_(condition, &narrow_ty, |rb| side(rb, then), |rb| side(rb, otherwise))
                };
                let mut parts: Vec<VarId> = all.iter().map(|field| self.any_value(field)).collect();
                for (at, k) in fields.iter().enumerate() {
                    parts[*k] = part(self, narrow, at);
                }
                self.tuple(parts, ty)
            }
            _ => return None,
        };
        Some(narrowed)
    }
}
