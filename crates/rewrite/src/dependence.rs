//! Dependence analysis, to the scalars in tuples and arrays.
//!
//! In: blocks in execution order, with facts about variables from outside. Out: for every scalar in the type of every
//! variable, a bit set of sources. All elements of an array are one scalar. The state of a loop depends on its value
//! after any number of iterations, so bodies of loops are analysed until a fixed point.
//!
//! Invariant: a source outside the set has no influence on the value, nor on whether it can be computed, except as
//! returned by [`Dependence::decides_failure`].

use crate::cost;
use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Size, StateLoop, Stmt, Type, Var, VarId, WhileLoop};
use rustc_hash::FxHashMap;

/// Sources of a value: of all of it, or of each field of its tuple, inside arrays or not.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Sources {
    All(u64),
    Fields(Vec<Self>),
}

impl Sources {
    /// Returns the sources of a value of type `ty` whose scalars are separate sources, from bit `next` on.
    pub(crate) fn each(ty: &Type, next: &mut u32) -> Self {
        match ty {
            Type::Double | Type::Int | Type::Bool => {
                *next += 1;
                Self::All(1 << (*next - 1))
            }
            Type::Array(_, element) => Self::each(element, next),
            Type::Tuple(fields, _) => Self::Fields(fields.iter().map(|field| Self::each(field, next)).collect()),
        }
    }

    /// Returns the union of the sources.
    pub(crate) fn any(&self) -> u64 {
        match self {
            Self::All(bits) => *bits,
            Self::Fields(fields) => fields.iter().fold(0, |bits, field| bits | field.any()),
        }
    }

    /// Returns whether every scalar has one of the sources `bits`.
    pub(crate) fn all_have(&self, bits: u64) -> bool {
        match self {
            Self::All(own) => own & bits != 0,
            Self::Fields(fields) => fields.iter().all(|field| field.all_have(bits)),
        }
    }

    /// Returns the sources of the nested field at `path`.
    pub(crate) fn at(&self, path: &[usize]) -> Self {
        path.iter().fold(self.clone(), |sources, k| match sources {
            Self::All(bits) => Self::All(bits),
            Self::Fields(mut fields) => fields.swap_remove(*k),
        })
    }

    fn with(self, more: u64) -> Self {
        match self {
            Self::All(bits) => Self::All(bits | more),
            Self::Fields(fields) => Self::Fields(fields.into_iter().map(|field| field.with(more)).collect()),
        }
    }

    fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fields(a), Self::Fields(b)) if a.len() == b.len() => {
                Self::Fields(a.into_iter().zip(b).map(|(a, b)| a.union(b)).collect())
            }
            (Self::All(bits), other) | (other, Self::All(bits)) => other.with(bits),
            (a, b) => Self::All(a.any() | b.any()),
        }
    }
}

/// Sources of variables.
pub(crate) struct Dependence<'a> {
    vars: &'a Arena<VarId, Var>,
    of: FxHashMap<VarId, Sources>,
}

impl<'a> Dependence<'a> {
    pub(crate) fn new(vars: &'a Arena<VarId, Var>) -> Self {
        Self { vars, of: FxHashMap::default() }
    }

    pub(crate) fn insert(&mut self, var: VarId, sources: Sources) {
        self.of.insert(var, sources);
    }

    /// Returns the sources of `var`; none for variables bound outside.
    pub(crate) fn get(&self, var: VarId) -> Sources {
        match &self.vars[var].value {
            Some(size) => Sources::All(self.size(size)),
            None => self.of.get(&var).cloned().unwrap_or(Sources::All(0)),
        }
    }

    fn any(&self, var: VarId) -> u64 {
        match &self.vars[var].value {
            Some(size) => self.size(size),
            None => self.of.get(&var).map_or(0, Sources::any),
        }
    }

    fn size(&self, size: &Size) -> u64 {
        size.vars().into_iter().fold(0, |bits, var| bits | self.of.get(&var).map_or(0, Sources::any))
    }

    /// Analyses the statements of `block`. `None` if it contains a derivative.
    pub(crate) fn block(&mut self, block: &Block) -> Option<Sources> {
        for stmt in &block.stmts {
            self.stmt(stmt)?;
        }
        Some(self.get(block.result))
    }

    /// As [`Self::block`], for a statement.
    pub(crate) fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        let sources = match &stmt.expr {
            Expr::Real(_) | Expr::Bool(_) | Expr::Zero => Sources::All(0),
            Expr::Size(size) => Sources::All(self.size(size)),
            Expr::Op(_, args) => Sources::All(args.iter().fold(0, |bits, arg| bits | self.any(*arg))),
            Expr::ToReal(arg) | Expr::ToInt(arg) => self.get(*arg),
            Expr::Array(elements) => elements.iter().map(|e| self.get(*e)).reduce(Sources::union)?,
            Expr::Tuple(fields) => Sources::Fields(fields.iter().map(|field| self.get(*field)).collect()),
            Expr::Component(tuple, k) => self.get(*tuple).at(&[*k]),
            Expr::Get { array, index, .. } => self.get(*array).with(self.any(*index)),
            Expr::OneHot { index, value, .. } => self.get(*value).with(self.any(*index)),
            Expr::Plus(a, b) => self.get(*a).union(self.get(*b)),
            Expr::Build { size: count, body, .. } | Expr::Sum { count, body, .. } => {
                self.block(body)?.with(self.size(count))
            }
            Expr::If { condition, then, otherwise } => {
                let (then, otherwise) = (self.block(then)?, self.block(otherwise)?);
                then.union(otherwise).with(self.any(*condition))
            }
            Expr::Fold(StateLoop { count, state, init, body, .. }) => {
                let steps = self.size(count);
                self.settled(*state, *init, |this| Some(this.block(body)?.with(steps)))?
            }
            Expr::While(WhileLoop { limit, state, init, condition, body }) => {
                let steps = self.size(limit);
                self.settled(*state, *init, |this| {
                    let steps = steps | this.block(condition)?.any();
                    Some(this.block(body)?.with(steps))
                })?
            }
            Expr::Loop(StateLoop { count, state, init, body, .. }) => {
                let (steps, mut made) = (self.size(count), Sources::All(0));
                let last = self.settled(*state, *init, |this| {
                    made = this.block(body)?.with(steps);
                    Some(made.at(&[0]))
                })?;
                Sources::Fields(vec![last, made.at(&[1]), made.at(&[2])])
            }
            Expr::Jvp { .. } | Expr::Vjp { .. } | Expr::Custom(_) | Expr::Again { .. } => return None,
        };
        self.of.insert(stmt.var, sources);
        Some(())
    }

    /// Returns the sources of a state after any number of iterations; `step` returns those of the next state.
    fn settled(
        &mut self,
        state: VarId,
        init: VarId,
        mut step: impl FnMut(&mut Self) -> Option<Sources>,
    ) -> Option<Sources> {
        let mut now = self.get(init);
        // Sets only grow, and are finite.
        loop {
            self.of.insert(state, now.clone());
            let next = now.clone().union(step(self)?);
            if next == now {
                return Some(now);
            }
            now = next;
        }
    }

    /// Returns whether `sources` may decide if `stmt` fails: an index, a size, a computed integer, the end of a
    /// `while`.
    pub(crate) fn decides_failure(&self, stmt: &Stmt, sources: u64) -> bool {
        let depends = |var: &VarId| self.any(*var) & sources != 0;
        let sized = |size: &Size| self.size(size) & sources != 0;
        let here = match &stmt.expr {
            Expr::Get { index, .. } | Expr::OneHot { index, .. } => depends(index),
            Expr::Op(_, args) => self.vars[stmt.var].ty == Type::Int && args.iter().any(depends),
            Expr::Build { size: count, .. }
            | Expr::Sum { count, .. }
            | Expr::Fold(StateLoop { count, .. })
            | Expr::Loop(StateLoop { count, .. }) => sized(count),
            Expr::While(WhileLoop { limit, condition, .. }) => sized(limit) || depends(&condition.result),
            _ => false,
        };
        let mut inside = stmt.expr.blocks().into_iter().flat_map(|block| &block.stmts);
        here || inside.any(|stmt| self.decides_failure(stmt, sources))
    }

    /// Returns the cost of the operators in `block` that depend on none of `sources`.
    pub(crate) fn cost_without(&self, block: &Block, sources: u64) -> f64 {
        let one = |stmt: &Stmt| match &stmt.expr {
            Expr::Op(op, _) if self.any(stmt.var) & sources == 0 => f64::from(op.row().weight),
            expr => {
                let times = match expr {
                    Expr::Build { size: count, .. }
                    | Expr::Sum { count, .. }
                    | Expr::Fold(StateLoop { count, .. })
                    | Expr::Loop(StateLoop { count, .. }) => cost::estimate(count),
                    _ => 1.0,
                };
                times * expr.blocks().into_iter().map(|block| self.cost_without(block, sources)).sum::<f64>()
            }
        };
        block.stmts.iter().map(one).sum()
    }
}
