//! Writing loops that become one ([`crate::merge`]).

use super::{Env, Expr, Rebuild, Stmt, Type, VarId};
use chainrule_ops::Op;

impl Rebuild<'_> {
    /// The loops of `group` as one; what became of each goes into `env`.
    pub(super) fn merge(&mut self, group: &[Stmt], env: &mut Env<'_>) {
        match group.first().map(|stmt| &stmt.expr) {
            Some(Expr::Build { .. }) => self.merge_builds(group, env),
            _ if group.iter().all(|stmt| matches!(stmt.expr, Expr::Sum { .. })) => self.merge_sums(group, env),
            _ => self.merge_running(group, env),
        }
    }

    /// Sums as the sum of the tuples of their terms.
    fn merge_sums(&mut self, group: &[Stmt], env: &mut Env<'_>) {
        let Some(Expr::Sum { count, .. }) = group.first().map(|stmt| &stmt.expr) else { return };
        let count = self.rename_size(count, env);
        let together = self.sum(count, |rb, i| {
            let mut terms: Vec<VarId> = Vec::new();
            for stmt in group {
                if let Expr::Sum { index, body, .. } = &stmt.expr {
                    env.insert(*index, i);
                    terms.push(rb.stmts(body, None, env));
                }
            }
            rb.compute(Expr::Tuple(terms))
        });
        for (k, stmt) in group.iter().enumerate() {
            let part = self.compute(Expr::Component(together, k));
            env.insert(stmt.var, part);
        }
    }

    /// Sums of numbers and folds as a fold over the tuple of their states.
    fn merge_running(&mut self, group: &[Stmt], env: &mut Env<'_>) {
        let mut count = None;
        let mut inits = Vec::new();
        for stmt in group {
            match &stmt.expr {
                Expr::Sum { count: n, .. } => {
                    count = Some(n);
                    inits.push(self.real(0.0));
                }
                Expr::Fold { count: n, init, .. } => {
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
                        let term = rb.stmts(body, None, env);
                        next.push(rb.op(Op::Add, &[before, term]));
                    }
                    Expr::Fold { index, state, body, .. } => {
                        env.insert(*index, i);
                        env.insert(*state, before);
                        next.push(rb.stmts(body, None, env));
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

    /// Builds as the build of the tuples of their elements.
    fn merge_builds(&mut self, group: &[Stmt], env: &mut Env<'_>) {
        let Some(Expr::Build { size, .. }) = group.first().map(|stmt| &stmt.expr) else { return };
        let size = self.rename_size(size, env);
        let together = self.build(size.clone(), |rb, i| {
            let mut elements: Vec<VarId> = Vec::new();
            for stmt in group {
                if let Expr::Build { index, body, .. } = &stmt.expr {
                    env.insert(*index, i);
                    elements.push(rb.stmts(body, None, env));
                }
            }
            rb.compute(Expr::Tuple(elements))
        });
        for (k, stmt) in group.iter().enumerate() {
            // It is only looked into by `get`s, which take the component of the element.
            let part = self.build(size.clone(), |rb, i| {
                let element = rb.compute(Expr::Get { array: together, index: i, proved: true });
                rb.compute(Expr::Component(element, k))
            });
            env.insert(stmt.var, part);
        }
    }
}
