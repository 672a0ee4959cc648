//! Integers that are bounded by quantities known at entry. Reverse mode can plan memory for all states of a loop with
//! so many steps.
//!
//! In: blocks, outer ones first. Out: whether a size has a bound over sizes and integer arguments according to
//! [`chainrule_ir::bound`], which the memory planner uses too.

use chainrule_base::Arena;
use chainrule_ir::bound::{Range, bound, range_of_index, range_of_op};
use chainrule_ir::{Block, Expr, Function, Size, StateLoop, Type, Var, VarId, size_of};
use std::collections::BTreeMap;

/// Known bounds of variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    /// Ranges of integers that are not polynomials of others.
    ranges: BTreeMap<VarId, Range<VarId>>,
    /// Integers that are components of tuples, with their values.
    parts: BTreeMap<VarId, Size>,
    tuples: BTreeMap<VarId, Tuple>,
}

/// Known facts about the integers in a tuple.
#[derive(Clone, Debug)]
enum Tuple {
    /// All are known at entry.
    Known,
    /// These variables.
    Of(Vec<VarId>),
}

impl Bounds {
    /// Collects the facts of all variables that `function` binds.
    pub(crate) fn of(function: &Function) -> Self {
        let mut bounds = Self::default();
        for size in &function.sizes {
            bounds.ranges.insert(*size, Range { is_size: true, non_negative: true, ..Range::default() });
        }
        for param in &function.params {
            match function.ty(*param) {
                Type::Int => bounds.known(*param),
                Type::Tuple(..) => {
                    bounds.tuples.insert(*param, Tuple::Known);
                }
                _ => {}
            }
        }
        for requirement in function.requires.iter().filter(|requirement| !requirement.exactly_zero) {
            for var in requirement.size.vars() {
                if requirement.size.sub(&Size::var(var)).as_constant().is_some_and(|c| c <= 0) {
                    bounds.ranges.entry(var).and_modify(|range| range.non_negative = true);
                }
            }
        }
        bounds.learn(&function.vars, &function.body);
        bounds
    }

    fn known(&mut self, var: VarId) {
        self.ranges.insert(var, Range { is_size: true, ..Range::default() });
    }

    /// Collects the facts of all variables that `block`, a block over `vars`, binds.
    pub(crate) fn learn(&mut self, vars: &Arena<VarId, Var>, block: &Block) {
        for stmt in &block.stmts {
            match &stmt.expr {
                Expr::Op(op, args) if vars[stmt.var].ty == Type::Int && vars[stmt.var].value.is_none() => {
                    if let [a, b] = args[..] {
                        let args = [a, b].map(|arg| self.resolved(&size_of(vars, arg)));
                        let range = range_of_op(*op, [&args[0], &args[1]], |var| self.range(var));
                        self.ranges.insert(stmt.var, range);
                    }
                }
                Expr::Tuple(parts) => {
                    self.tuples.insert(stmt.var, Tuple::Of(parts.clone()));
                }
                Expr::Component(tuple, k) => self.component(vars, stmt.var, *tuple, *k),
                Expr::Build { size: count, index, .. }
                | Expr::Sum { count, index, .. }
                | Expr::Fold(StateLoop { count, index, .. })
                | Expr::Loop(StateLoop { count, index, .. }) => {
                    let range = range_of_index(&self.resolved(count), |var| self.range(var));
                    self.ranges.insert(*index, range);
                }
                Expr::Jvp { params, at, .. } | Expr::Vjp { params, at, .. } => {
                    for (param, at) in params.iter().zip(at) {
                        self.same(*param, *at);
                    }
                }
                Expr::Custom(custom) => self.same(custom.param, custom.at),
                _ => {}
            }
            stmt.expr.blocks().into_iter().for_each(|block| self.learn(vars, block));
        }
    }

    fn same(&mut self, tuple: VarId, other: VarId) {
        if let Some(known) = self.tuples.get(&other).cloned() {
            self.tuples.insert(tuple, known);
        }
    }

    fn component(&mut self, vars: &Arena<VarId, Var>, var: VarId, tuple: VarId, k: usize) {
        let is_int = vars[var].ty == Type::Int;
        match self.tuples.get(&tuple) {
            Some(Tuple::Known) if is_int => self.known(var),
            Some(Tuple::Known) => {
                self.tuples.insert(var, Tuple::Known);
            }
            Some(Tuple::Of(parts)) => {
                let Some(part) = parts.get(k).copied() else { return };
                if is_int {
                    let part = self.resolved(&size_of(vars, part));
                    self.parts.insert(var, part);
                } else {
                    self.same(var, part);
                }
            }
            None => {}
        }
    }

    fn range(&self, var: VarId) -> Range<VarId> {
        self.ranges.get(&var).cloned().unwrap_or_default()
    }

    fn resolved(&self, size: &Size) -> Size {
        size.substitute(|var| self.parts.get(&var).cloned().unwrap_or_else(|| Size::var(var)))
    }

    /// Returns whether `size` has an upper bound that is known at entry.
    pub(crate) fn is_bounded(&self, size: &Size) -> bool {
        bound(&self.resolved(size), |var| self.range(var)).is_some()
    }
}
