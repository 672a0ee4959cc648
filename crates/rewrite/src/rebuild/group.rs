//! Merging of loops and branches ([`crate::merge`]).

use super::{Env, Expr, How, Rebuild, StateLoop, Stmt, Together, Type, VarId};
use chainrule_ops::Op;

impl Rebuild<'_> {
    /// Writes the loops or branches of `together` as one, and puts their results into `env`.
    pub(super) fn merge(&mut self, together: &Together<'_>, env: &mut Env<'_>) {
        let group = &together.stmts;
        match together.how {
            How::Sum => self.merge_sums(group, env),
            How::Fold => self.merge_running(group, env),
            How::Elements => self.merge_builds(group, env),
            How::Branches => self.merge_branches(group, env),
            How::Loop { array } => self.merge_any(group, array, env),
        }
        // Outside, the results are arrays.
        for stmt in group {
            self.source.elements.remove(&stmt.var);
        }
    }

    /// Merges any loops into the general loop.
    fn merge_any(&mut self, group: &[&Stmt], array: Option<usize>, env: &mut Env<'_>) {
        let Some(first) = group.first() else { return };
        let (Expr::Build { size: count, .. }
        | Expr::Sum { count, .. }
        | Expr::Fold(StateLoop { count, .. })
        | Expr::Loop(StateLoop { count, .. })) = &first.expr
        else {
            return;
        };
        let count = self.rename_size(count, env);
        let inits: Vec<VarId> = (group.iter())
            .filter_map(|stmt| match &stmt.expr {
                Expr::Fold(StateLoop { init, .. }) | Expr::Loop(StateLoop { init, .. }) => Some(env.get(*init)),
                _ => None,
            })
            .collect();
        let init = self.compute(Expr::Tuple(inits));
        let types: Vec<Type> = group.iter().map(|stmt| self.source_type(stmt.var, env)).collect();
        let together = self.general(count, init, |rb, state, i| {
            let (mut next, mut terms, mut element) = (Vec::new(), Vec::new(), None);
            for (at, stmt) in group.iter().enumerate() {
                let before = (matches!(stmt.expr, Expr::Fold(_) | Expr::Loop(_)))
                    .then(|| rb.compute(Expr::Component(state, next.len())));
                match &stmt.expr {
                    Expr::Sum { index, body, .. } => {
                        env.insert(*index, i);
                        terms.push(rb.stmts(body, env));
                    }
                    Expr::Fold(StateLoop { index, state, body, .. }) => {
                        env.insert(*index, i);
                        env.insert(*state, before.unwrap_or(i));
                        next.push(rb.stmts(body, env));
                    }
                    Expr::Build { index, body, .. } => {
                        env.insert(*index, i);
                        let value = rb.stmts(body, env);
                        rb.source.elements.insert(stmt.var, value);
                        if array == Some(at) {
                            element = Some(value);
                        } else {
                            terms.push(rb.emit(Expr::OneHot { index: i, value, proved: true }, types[at].clone()));
                        }
                    }
                    Expr::Loop(StateLoop { index, state, body, .. }) => {
                        env.insert(*index, i);
                        env.insert(*state, before.unwrap_or(i));
                        let triple = rb.stmts(body, env);
                        next.push(rb.compute(Expr::Component(triple, 0)));
                        if array == Some(at) {
                            element = Some(rb.compute(Expr::Component(triple, 1)));
                        }
                        terms.push(rb.compute(Expr::Component(triple, 2)));
                    }
                    _ => {}
                }
            }
            let next = rb.compute(Expr::Tuple(next));
            let element = element.unwrap_or_else(|| rb.tuple(Vec::new(), &Type::tuple(Vec::new())));
            let terms = rb.compute(Expr::Tuple(terms));
            rb.compute(Expr::Tuple(vec![next, element, terms]))
        });
        let last = self.compute(Expr::Component(together, 0));
        let made = self.compute(Expr::Component(together, 1));
        let sums = self.compute(Expr::Component(together, 2));
        let (mut states, mut terms) = (0.., 0..);
        for (at, stmt) in group.iter().enumerate() {
            let take = |rb: &mut Self, from: VarId, which: &mut std::ops::RangeFrom<usize>| {
                rb.compute(Expr::Component(from, which.next().unwrap_or(0)))
            };
            let var = match &stmt.expr {
                Expr::Fold(_) => take(self, last, &mut states),
                Expr::Build { .. } if array == Some(at) => made,
                Expr::Loop(_) => {
                    let state = take(self, last, &mut states);
                    let term = take(self, sums, &mut terms);
                    let made = match &types[at] {
                        Type::Tuple(parts, _) if array != Some(at) => self.any_value(&parts[1]),
                        _ => made,
                    };
                    self.tuple(vec![state, made, term], &types[at])
                }
                _ => take(self, sums, &mut terms),
            };
            env.insert(stmt.var, var);
        }
    }

    /// Merges sums into the sum of the tuples of their terms.
    fn merge_sums(&mut self, group: &[&Stmt], env: &mut Env<'_>) {
        let Some(Expr::Sum { count, .. }) = group.first().map(|stmt| &stmt.expr) else { return };
        let count = self.rename_size(count, env);
        let together = self.sum(count, |rb, i| {
            let mut terms: Vec<VarId> = Vec::new();
            for stmt in group {
                if let Expr::Sum { index, body, .. } = &stmt.expr {
                    env.insert(*index, i);
                    terms.push(rb.stmts(body, env));
                }
            }
            rb.compute(Expr::Tuple(terms))
        });
        for (k, stmt) in group.iter().enumerate() {
            let part = self.compute(Expr::Component(together, k));
            env.insert(stmt.var, part);
        }
    }

    /// Merges sums of numbers and folds into a fold over the tuple of their states.
    fn merge_running(&mut self, group: &[&Stmt], env: &mut Env<'_>) {
        let mut count = None;
        let mut inits = Vec::new();
        for stmt in group {
            match &stmt.expr {
                Expr::Sum { count: n, .. } => {
                    count = Some(n);
                    inits.push(self.real(0.0));
                }
                Expr::Fold(StateLoop { count: n, init, .. }) => {
                    count = Some(n);
                    inits.push(env.get(*init));
                }
                _ => return,
            }
        }
        let Some(count) = count else { return };
        let count = self.rename_size(count, env);
        let types: Vec<Type> = inits.iter().map(|init| self.ty(*init).clone()).collect();
        let init = self.tuple(inits, &Type::tuple(types.clone()));
        let fold = self.fold(count, init, |rb, state, i| {
            let mut next = Vec::new();
            for (k, stmt) in group.iter().enumerate() {
                let before = rb.compute(Expr::Component(state, k));
                match &stmt.expr {
                    Expr::Sum { index, body, .. } => {
                        env.insert(*index, i);
                        let term = rb.stmts(body, env);
                        next.push(rb.op(Op::Add, &[before, term]));
                    }
                    Expr::Fold(StateLoop { index, state, body, .. }) => {
                        env.insert(*index, i);
                        env.insert(*state, before);
                        next.push(rb.stmts(body, env));
                    }
                    _ => {}
                }
            }
            rb.tuple(next, &Type::tuple(types))
        });
        for (k, stmt) in group.iter().enumerate() {
            let part = self.compute(Expr::Component(fold, k));
            env.insert(stmt.var, part);
        }
    }

    /// Merges builds into the build of the tuples of their elements.
    fn merge_builds(&mut self, group: &[&Stmt], env: &mut Env<'_>) {
        let Some(Expr::Build { size, .. }) = group.first().map(|stmt| &stmt.expr) else { return };
        let size = self.rename_size(size, env);
        let together = self.build(size, |rb, i| {
            let mut elements: Vec<VarId> = Vec::new();
            for stmt in group {
                if let Expr::Build { index, body, .. } = &stmt.expr {
                    env.insert(*index, i);
                    let element = rb.stmts(body, env);
                    rb.source.elements.insert(stmt.var, element);
                    elements.push(element);
                }
            }
            rb.compute(Expr::Tuple(elements))
        });
        // They are only read by `get`s.
        self.source.parts.extend(group.iter().enumerate().map(|(k, stmt)| (stmt.var, (together, k))));
    }

    /// Merges branches into the branch of the tuple of their values.
    fn merge_branches(&mut self, group: &[&Stmt], env: &mut Env<'_>) {
        let Some(Expr::If { condition, .. }) = group.first().map(|stmt| &stmt.expr) else { return };
        let condition = env.get(*condition);
        let mut side = |rb: &mut Self, holds: bool| {
            let mut values: Vec<VarId> = Vec::new();
            for stmt in group {
                if let Expr::If { then, otherwise, .. } = &stmt.expr {
                    values.push(rb.stmts(if holds { then } else { otherwise }, env));
                }
            }
            rb.compute(Expr::Tuple(values))
        };
        let together = match self.truth(condition) {
            Some(holds) => side(self, holds),
            None => {
                let then = self.branch(condition, true, |rb| side(rb, true));
                let otherwise = self.branch(condition, false, |rb| side(rb, false));
                self.compute(Expr::If { condition, then, otherwise })
            }
        };
        for (k, stmt) in group.iter().enumerate() {
            let part = self.compute(Expr::Component(together, k));
            env.insert(stmt.var, part);
        }
    }
}
