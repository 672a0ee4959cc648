//! Cleanup of expanded code: forwards components of known tuples and removes dead statements.
//!
//! In: a function or a block. Out: an equivalent one. Holds: no statement is added and none moves; all remaining
//! statements are used. Linear. A statement that could only have failed (an index out of range, a `while` past its
//! limit) is removed with its unused result: there are no effects, only values. Indexing into a `build` and other
//! transformations with a cost trade-off belong to the rewriter.

use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, Function, Operands, Size, Type, Var, VarId};
use chainrule_ops::Op;
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

    /// Tidies `block`, and computes equal scalars once. A derivative of a derivative needs this: the chain rule writes
    /// the same products at each level, so that their number would double with it.
    pub(crate) fn shared(&mut self, vars: &Arena<VarId, Var>, block: &mut Block) {
        self.tidy(vars, block, Some(Scalars::default()));
    }

    fn tidy(&mut self, vars: &Arena<VarId, Var>, block: &mut Block, scalars: Option<Scalars>) {
        self.facts.resize(vars.len(), Fact::Nothing);
        self.live.resize(vars.len(), false);
        Forwarding { vars, facts: &mut self.facts, live: &mut self.live, scalars }.block(block);
        Liveness { vars, live: &mut self.live }.block(block);
    }
}

/// Computation of a scalar from variables that are forwarded already.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Scalar {
    Real(u64),
    Op(Op, Operands),
    ToReal(VarId),
    Get(VarId, VarId, bool),
    Component(VarId, usize),
}

impl Scalar {
    /// Returns the computation of `expr`, if it is a scalar.
    fn of(expr: &Expr) -> Option<Self> {
        Some(match expr {
            Expr::Real(value) => Self::Real(value.to_bits()),
            Expr::Op(op, args) => {
                let mut args = args.clone();
                if op.is_commutative() {
                    args.sort_unstable();
                }
                Self::Op(*op, args)
            }
            Expr::ToReal(arg) => Self::ToReal(*arg),
            Expr::Get { array, index, proved } => Self::Get(*array, *index, *proved),
            Expr::Component(tuple, k) => Self::Component(*tuple, *k),
            _ => return None,
        })
    }
}

/// Scalars that are in scope, by their computation.
#[derive(Default)]
struct Scalars {
    known: FxHashMap<Scalar, VarId>,
    /// Keys of `known` in the order in which they were added; a block's end removes its own.
    added: Vec<Scalar>,
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
    /// Scalars to share, if requested.
    scalars: Option<Scalars>,
}

impl Forwarding<'_> {
    fn block(&mut self, block: &mut Block) {
        let before = self.scalars.as_ref().map_or(0, |scalars| scalars.added.len());
        for stmt in &mut block.stmts {
            stmt.expr.map_operands(&|var| self.resolve(var), &Size::clone);
            // Variables that a function with a rule captures are unchanged.
            let is_opaque = matches!(stmt.expr, Expr::Custom(_) | Expr::Jvp { .. } | Expr::Vjp { .. });
            let outside = if is_opaque { self.scalars.take() } else { None };
            for inner in stmt.expr.blocks_mut() {
                self.block(inner);
            }
            self.scalars = self.scalars.take().or(outside);
            self.facts[stmt.var.index()] = match self.same_scalar(stmt.var, &stmt.expr) {
                Some(same) => Fact::Is(same),
                None => self.fact(stmt.var, &stmt.expr),
            };
            self.live[stmt.var.index()] = false;
        }
        block.result = self.resolve(block.result);
        if let Some(scalars) = &mut self.scalars {
            for scalar in scalars.added.drain(before..) {
                scalars.known.remove(&scalar);
            }
        }
    }

    /// Returns the variable in scope with the value of `expr`, which is that of `var`. Sizes may refer to an integer,
    /// so it is not replaced.
    fn same_scalar(&mut self, var: VarId, expr: &Expr) -> Option<VarId> {
        let scalars = self.scalars.as_mut()?;
        if !matches!(self.vars[var].ty, Type::Double | Type::Bool) {
            return None;
        }
        let scalar = Scalar::of(expr)?;
        let same = scalars.known.get(&scalar).copied();
        if same.is_none() {
            scalars.known.insert(scalar.clone(), var);
            scalars.added.push(scalar);
        }
        same
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
