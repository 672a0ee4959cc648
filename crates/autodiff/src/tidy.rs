//! Cleanup of expanded code: forwards components of known tuples and removes dead statements.
//!
//! In: a function or a block. Out: an equivalent one. Holds: no statement is added and none moves; all remaining
//! statements are used. Linear. A statement that could only have failed (an index out of range, a `while` past its
//! limit) is removed with its unused result: there are no effects, only values. Indexing into a `build` and other
//! transformations with a cost trade-off belong to the rewriter.

use crate::canonical;
use crate::congruent::{Value, Values};
use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, Function, Size, Type, Var, VarId};
use rustc_hash::FxHashMap;

/// Cleans up the body of `function`.
pub fn function(function: &mut Function) {
    Tidier::default().block(&function.vars, &mut function.body);
}

/// Cleans up blocks of one function; the tables of facts are allocated once.
#[derive(Default)]
pub(crate) struct Tidier {
    facts: Vec<Fact>,
    live: Vec<bool>,
}

impl Tidier {
    /// Cleans up `block`, a block over `vars`. Linear in the block.
    // Facts of an earlier call are overwritten before they are read: both passes record a fact for every variable that
    // is bound in the block, and never for others.
    pub(crate) fn block(&mut self, vars: &Arena<VarId, Var>, block: &mut Block) {
        self.tidy(vars, block, None);
    }

    /// Tidies `block`, computes equal values once, and reads one of congruent leaves. A derivative of a derivative
    /// needs this: the chain rule writes the same products at each level, so that their number would double with it.
    pub(crate) fn shared(&mut self, vars: &mut Arena<VarId, Var>, block: &mut Block) {
        let values = Values::of(vars, block);
        canonical::reads(vars, &values, block);
        self.tidy(vars, block, Some(Known { values, by_value: FxHashMap::default(), added: Vec::new() }));
    }

    fn tidy(&mut self, vars: &Arena<VarId, Var>, block: &mut Block, known: Option<Known>) {
        self.facts.resize(vars.len(), Fact::Nothing);
        self.live.resize(vars.len(), false);
        Forwarding { vars, facts: &mut self.facts, live: &mut self.live, known }.block(block);
        Liveness { vars, live: &mut self.live }.block(block);
    }
}

/// Variables that are in scope, by their value.
struct Known {
    values: Values,
    by_value: FxHashMap<Value, VarId>,
    /// Keys of `by_value` in the order in which they were added; a block's end removes its own.
    added: Vec<Value>,
}

/// Known fact about a variable.
#[derive(Clone, Debug)]
enum Fact {
    Nothing,
    /// Equal to another variable.
    Is(VarId),
    /// Tuple of these variables.
    Tuple(Vec<VarId>),
    /// This component of that tuple.
    Component(VarId, usize),
}

struct Forwarding<'a> {
    vars: &'a Arena<VarId, Var>,
    facts: &'a mut Vec<Fact>,
    live: &'a mut Vec<bool>,
    /// Variables to share, if requested.
    known: Option<Known>,
}

impl Forwarding<'_> {
    fn block(&mut self, block: &mut Block) {
        let before = self.known.as_ref().map_or(0, |known| known.added.len());
        for stmt in &mut block.stmts {
            stmt.expr.map_operands(&|var| self.resolve(var), &Size::clone);
            // Variables that a function with a rule captures are unchanged.
            let is_opaque = matches!(stmt.expr, Expr::Custom(_) | Expr::Jvp { .. } | Expr::Vjp { .. });
            let outside = if is_opaque { self.known.take() } else { None };
            for inner in stmt.expr.blocks_mut() {
                self.block(inner);
            }
            self.known = self.known.take().or(outside);
            let fact = self.fact(stmt.var, &stmt.expr);
            let other = if let Fact::Is(other) = fact { other } else { stmt.var };
            let same = self.same_value(stmt.var, &stmt.expr, other);
            self.facts[stmt.var.index()] = if same == stmt.var { fact } else { Fact::Is(same) };
            self.live[stmt.var.index()] = false;
        }
        block.result = self.resolve(block.result);
        if let Some(known) = &mut self.known {
            for value in known.added.drain(before..) {
                known.by_value.remove(&value);
            }
        }
    }

    /// Returns a variable in scope that is always equal to `var`: `other`, if there is no earlier one. Sizes may refer
    /// to an integer, so it is not replaced, and neither are sparse arrays and tuples, which cost nothing.
    fn same_value(&mut self, var: VarId, expr: &Expr, other: VarId) -> VarId {
        let ty = &self.vars[var].ty;
        let is_free = matches!(expr, Expr::Zero | Expr::OneHot { .. } | Expr::Plus(..) | Expr::Tuple(_));
        let Some(known) = &mut self.known else { return other };
        let Some(value) = known.values.get(var).filter(|_| !is_free && *ty != Type::Int) else { return other };
        let same = *known.by_value.entry(value.clone()).or_insert_with(|| {
            known.added.push(value.clone());
            other
        });
        if self.vars[same].ty == *ty { same } else { other }
    }

    fn resolve(&self, var: VarId) -> VarId {
        // Facts are about resolved variables, so one step is enough.
        match self.facts[var.index()] {
            Fact::Is(other) => other,
            _ => var,
        }
    }

    fn fact(&self, var: VarId, expr: &Expr) -> Fact {
        match expr {
            Expr::Component(tuple, k) => match &self.facts[tuple.index()] {
                // Sizes may name an integer, so it is not replaced.
                Fact::Tuple(parts) if self.vars[var].ty != Type::Int => match parts.get(*k) {
                    Some(part) => Fact::Is(*part),
                    None => Fact::Nothing,
                },
                _ => Fact::Component(*tuple, *k),
            },
            Expr::Tuple(parts) => match self.same_tuple(var, parts) {
                Some(tuple) => Fact::Is(tuple),
                None => Fact::Tuple(parts.clone()),
            },
            _ => Fact::Nothing,
        }
    }

    /// Returns the tuple whose components are exactly `parts`, in order.
    fn same_tuple(&self, var: VarId, parts: &[VarId]) -> Option<VarId> {
        let Fact::Component(tuple, 0) = self.facts[parts.first()?.index()] else { return None };
        let in_place = |(k, part): (usize, &VarId)| match self.facts[part.index()] {
            Fact::Component(other, j) => other == tuple && j == k,
            _ => false,
        };
        (self.vars[tuple].ty == self.vars[var].ty && parts.iter().enumerate().all(in_place)).then_some(tuple)
    }
}

struct Liveness<'a> {
    vars: &'a Arena<VarId, Var>,
    live: &'a mut Vec<bool>,
}

impl Liveness<'_> {
    fn block(&mut self, block: &mut Block) {
        self.use_var(block.result);
        let mut kept = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts).into_iter().rev() {
            if !self.live[stmt.var.index()] {
                continue;
            }
            // A type refers to the integers of its sizes.
            self.use_type(stmt.var);
            for binder in stmt.expr.binders() {
                self.use_type(binder);
            }
            for inner in stmt.expr.blocks_mut() {
                self.block(inner);
            }
            for operand in stmt.expr.operands() {
                self.use_var(operand);
            }
            kept.push(stmt);
        }
        kept.reverse();
        block.stmts = kept;
    }

    fn use_var(&mut self, var: VarId) {
        self.live[var.index()] = true;
    }

    fn use_type(&mut self, var: VarId) {
        if !matches!(self.vars[var].ty, Type::Double | Type::Int | Type::Bool) {
            for size in self.vars[var].ty.sizes() {
                for var in size.vars() {
                    self.use_var(var);
                }
            }
        }
    }
}
