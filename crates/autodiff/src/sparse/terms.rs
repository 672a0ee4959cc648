//! Terms: the parts of a result that are differentiated separately.
//!
//! In: a function without derivatives. Out: its terms. The result of a Jacobian is split along tuples and builds, until
//! an element is a small block of doubles; the scalar of a Hessian is split along sums, differences, and products and
//! quotients with factors that do not depend on the variables, which have the same second derivatives.
//!
//! Holds: in the order of the terms, each double of the result belongs to one term; the scalar is the sum of its terms,
//! up to summands that do not depend on the variables. A term contains only the statements that its result needs.

use super::gather::Extents;
use super::{BLOCK, is_small};
use chainrule_base::Id;
use chainrule_ir::{Block, Builder, Expr, Function, Size, Stmt, Type, VarId};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;

/// Part of a result.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// Counters of its loops and their extents, outermost first.
    pub(crate) loops: Vec<(VarId, Size)>,
    /// Path of fields to it in the result.
    pub(crate) fields: Vec<usize>,
    /// Statements that compute it, in the scope of its counters and of the statements before the terms.
    pub(crate) block: Block,
    /// Number of the root to which it belongs.
    pub(crate) root: usize,
}

/// Part of the result outside of loops, which consists of one or several terms.
pub(crate) struct Root<'f> {
    var: VarId,
    place: Place<'f>,
}

impl Root<'_> {
    /// Returns all of it as one term.
    pub(crate) fn whole(&self, out: &Builder, root: usize) -> Term {
        self.place.term(out, self.var, root)
    }
}

/// Maximum number of terms into which a scalar is split; the last then holds the rest.
const MAX_TERMS: usize = BLOCK as usize;

/// Splitting of results.
pub(crate) struct Terms<'o, 'f> {
    pub(crate) out: &'o mut Builder,
    pub(crate) function: &'f Function,
    /// Statement of each variable.
    pub(crate) stmts: FxHashMap<VarId, &'f Stmt>,
    pub(crate) terms: Vec<Term>,
    roots: Vec<Root<'f>>,
}

/// Position of a term: the statements around it.
#[derive(Clone)]
struct Place<'f> {
    loops: Vec<(VarId, Size)>,
    fields: Vec<usize>,
    scopes: Vec<&'f [Stmt]>,
    /// Emitted statements, after those.
    more: Vec<Stmt>,
    /// Linear operators that are applied to each summand, outermost first; the missing operand is the summand.
    wraps: Vec<(Op, Vec<Option<VarId>>)>,
}

impl Place<'_> {
    fn wrapped(&self, op: Op, operands: Vec<Option<VarId>>) -> Self {
        let mut place = self.clone();
        place.wraps.push((op, operands));
        place
    }

    /// Returns the term of rows `var`, a part of `root`.
    fn term(&self, out: &Builder, var: VarId, root: usize) -> Term {
        let all: Vec<&Stmt> = self.scopes.iter().flat_map(|scope| scope.iter()).chain(&self.more).collect();
        let mut used = vec![false; out.vars.len()];
        used[var.index()] = true;
        let mut stmts = Vec::new();
        for stmt in all.into_iter().rev() {
            if used[stmt.var.index()] {
                let mut operands = Vec::new();
                uses(out, stmt, &mut operands);
                operands.into_iter().for_each(|operand| used[operand.index()] = true);
                stmts.push(stmt.clone());
            }
        }
        stmts.reverse();
        let block = Block { stmts, result: var };
        Term { loops: self.loops.clone(), fields: self.fields.clone(), block, root }
    }
}

impl<'o, 'f> Terms<'o, 'f> {
    pub(crate) fn new(out: &'o mut Builder, function: &'f Function) -> Self {
        fn collect<'f>(block: &'f Block, stmts: &mut FxHashMap<VarId, &'f Stmt>) {
            for stmt in &block.stmts {
                stmts.insert(stmt.var, stmt);
                stmt.expr.blocks().into_iter().for_each(|inner| collect(inner, stmts));
            }
        }
        let mut stmts = FxHashMap::default();
        collect(&function.body, &mut stmts);
        Self { out, function, stmts, terms: Vec::new(), roots: Vec::new() }
    }

    fn place(&self) -> Place<'f> {
        let scopes = vec![self.function.body.stmts.as_slice()];
        Place { loops: Vec::new(), fields: Vec::new(), scopes, more: Vec::new(), wraps: Vec::new() }
    }

    /// Returns the terms of a Jacobian's result, and their roots.
    pub(crate) fn of_result(mut self) -> (Vec<Term>, Vec<Root<'f>>) {
        let place = self.place();
        self.rows(self.function.body.result, place);
        (self.terms, self.roots)
    }

    /// Returns the terms of a scalar that may depend nonlinearly on the variables, and the scalar as their only root.
    pub(crate) fn of_scalar(
        mut self,
        is_active: &dyn Fn(VarId) -> bool,
        extents: &Extents,
    ) -> (Vec<Term>, Vec<Root<'f>>) {
        let (var, place) = (self.function.body.result, self.place());
        self.roots.push(Root { var, place: place.clone() });
        self.summands(var, place, is_active, extents);
        (self.terms, self.roots)
    }

    fn expr(&self, var: VarId) -> Option<&'f Expr> {
        self.stmts.get(&var).map(|stmt| &stmt.expr)
    }

    /// Returns the definition of `var`, with components of known tuples resolved.
    fn resolved(&self, mut var: VarId) -> VarId {
        while let Some(Expr::Component(tuple, k)) = self.expr(var) {
            let Some(Expr::Tuple(fields)) = self.expr(*tuple) else { break };
            let Some(field) = fields.get(*k) else { break };
            var = *field;
        }
        var
    }

    // Recursive on the nesting of types and of loops only.
    fn rows(&mut self, var: VarId, place: Place<'f>) {
        let var = self.resolved(var);
        let ty = self.out.ty(var).clone();
        if !ty.has_double() {
            return;
        }
        if place.loops.is_empty() {
            self.roots.push(Root { var, place: place.clone() });
        }
        if is_small(&ty) {
            return self.term(var, &place);
        }
        match (self.expr(var), ty) {
            (Some(Expr::Tuple(fields)), _) => {
                for (k, field) in fields.iter().enumerate() {
                    let mut place = place.clone();
                    place.fields.push(k);
                    self.rows(*field, place);
                }
            }
            (Some(Expr::Build { size, index, body }), _) => {
                let mut place = place;
                place.loops.push((*index, size.clone()));
                place.scopes.push(&body.stmts);
                self.rows(body.result, place);
            }
            // An argument, or an array in it: split by element.
            (None | Some(Expr::Get { .. } | Expr::Component(..)), Type::Array(size, element)) => {
                let mut place = place;
                let (index, var) = self.element(var, &element, &mut place);
                place.loops.push((index, size));
                self.rows(var, place);
            }
            (None | Some(Expr::Get { .. } | Expr::Component(..)), Type::Tuple(parts, _)) => {
                for (k, part) in parts.into_iter().enumerate() {
                    let mut place = place.clone();
                    place.fields.push(k);
                    let field = self.out.fresh(part);
                    place.more.push(Stmt { var: field, expr: Expr::Component(var, k), span: None });
                    self.rows(field, place);
                }
            }
            _ => self.term(var, &place),
        }
    }

    fn element(&mut self, array: VarId, ty: &Type, place: &mut Place<'f>) -> (VarId, VarId) {
        let index = self.out.fresh(Type::Int);
        let var = self.out.fresh(ty.clone());
        place.more.push(Stmt { var, expr: Expr::Get { array, index, proved: true }, span: None });
        (index, var)
    }

    // A worklist: chains of additions are long.
    fn summands(&mut self, var: VarId, place: Place<'f>, is_active: &dyn Fn(VarId) -> bool, extents: &Extents) {
        let mut open = vec![(var, place)];
        while let Some((var, place)) = open.pop() {
            let var = self.resolved(var);
            if !is_active(var) {
                continue;
            }
            let full = self.terms.len() + open.len() >= MAX_TERMS;
            match self.expr(var) {
                Some(Expr::Sum { count, index, body }) if extents.of(count).is_some() => {
                    let mut place = place;
                    place.loops.push((*index, count.clone()));
                    place.scopes.push(&body.stmts);
                    open.push((body.result, place));
                }
                Some(Expr::Op(Op::Add, args)) if !full => {
                    open.extend(args.iter().rev().map(|arg| (*arg, place.clone())));
                }
                Some(Expr::Op(Op::Sub, args)) if !full => {
                    open.push((args[1], place.wrapped(Op::Neg, vec![None])));
                    open.push((args[0], place));
                }
                Some(Expr::Op(Op::Neg, args)) => open.push((args[0], place.wrapped(Op::Neg, vec![None]))),
                Some(Expr::Op(Op::Mul, args)) if is_active(args[0]) != is_active(args[1]) => {
                    let (hole, factor) = if is_active(args[0]) { (args[0], args[1]) } else { (args[1], args[0]) };
                    open.push((hole, place.wrapped(Op::Mul, vec![None, Some(factor)])));
                }
                Some(Expr::Op(Op::Div, args)) if !is_active(args[1]) => {
                    open.push((args[0], place.wrapped(Op::Div, vec![None, Some(args[1])])));
                }
                _ => {
                    let mut place = place;
                    let mut result = var;
                    for (op, operands) in std::mem::take(&mut place.wraps).into_iter().rev() {
                        let wrapped = self.out.fresh(Type::Double);
                        let operands = operands.into_iter().map(|operand| operand.unwrap_or(result)).collect();
                        place.more.push(Stmt { var: wrapped, expr: Expr::Op(op, operands), span: None });
                        result = wrapped;
                    }
                    self.term(result, &place);
                }
            }
        }
    }

    fn term(&mut self, var: VarId, place: &Place<'f>) {
        let root = self.roots.len().saturating_sub(1);
        self.terms.push(place.term(self.out, var, root));
    }
}

/// Collects all variables that `stmt` uses, in its blocks and in the types of its variables.
pub(crate) fn uses(out: &Builder, stmt: &Stmt, used: &mut Vec<VarId>) {
    used.extend(stmt.expr.operands());
    for bound in [stmt.var].into_iter().chain(stmt.expr.binders()) {
        used.extend(out.ty(bound).sizes().into_iter().flat_map(|size| size.vars()));
    }
    for block in stmt.expr.blocks() {
        used.push(block.result);
        block.stmts.iter().for_each(|inner| uses(out, inner, used));
    }
}
