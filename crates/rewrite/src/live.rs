//! Liveness, to the field of a tuple.
//!
//! In: a function. Out: dead statements, and the live fields of each loop, branch and tuple whose value is a tuple. A
//! field of a state is live if the loop's result needs it, or another live field does: a fold over a value and its
//! tangent of which only the tangent is used computes the value only if the tangent needs it.
//!
//! Each block is walked backwards, the body of a fold again as long as its state gains live fields. A statement whose
//! only effect could be a failure is removed with its unused result: there are no effects, only values.

use crate::rebuild::{Fields, Plan};
use crate::walk;
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Function, StateLoop, Stmt, Type, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ptr::from_ref;

/// Live part of a variable.
#[derive(Clone, PartialEq, Debug)]
enum Need {
    Nothing,
    /// These parts of the fields of a tuple.
    Fields(Vec<Need>),
    Whole,
}

impl Need {
    /// Returns what this and `other` need.
    // Recursive on nesting of tuples.
    fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Nothing, need) | (need, Self::Nothing) => need.clone(),
            (Self::Whole, _) | (_, Self::Whole) => Self::Whole,
            (Self::Fields(a), Self::Fields(b)) => Self::Fields(a.iter().zip(b).map(|(a, b)| a.and(b)).collect()),
        }
    }

    /// Returns the positions of the live fields of a tuple, if some are not.
    fn live_fields(&self) -> Option<Vec<usize>> {
        let Self::Fields(fields) = self else { return None };
        let live = |k: &usize| fields[*k] != Self::Nothing;
        fields.contains(&Self::Nothing).then(|| (0..fields.len()).filter(live).collect())
    }
}

struct Live<'a> {
    function: &'a Function,
    needs: Vec<Need>,
    /// Last need with which each block was walked, by its address. Variables bound in a block are only used in it, so
    /// another walk with the same need would have the same result.
    walked: FxHashMap<*const Block, Need>,
    /// Number of enclosing derivatives, whose bodies stay unchanged.
    opaque: u32,
    /// Results of general loops and of their bodies: the state, the element, the term. Only there, the fields of a
    /// field are distinguished: tuples in tuples have rules of their own.
    triples: FxHashSet<VarId>,
}

/// Finds [`Live::triples`].
fn triples(block: &Block, found: &mut FxHashSet<VarId>) {
    for stmt in block.stmts.iter().filter(|stmt| !stmt.expr.is_leaf()) {
        if let Expr::Loop(StateLoop { body, .. }) = &stmt.expr {
            found.extend([stmt.var, body.result]);
        }
        stmt.expr.blocks().into_iter().for_each(|block| triples(block, found));
    }
}

/// Puts into `plan` the dead statements of `function`, and the live fields.
pub(crate) fn analyse(function: &Function, plan: &mut Plan<'_>) {
    let mut live = Live::new(function, 0);
    triples(&function.body, &mut live.triples);
    live.block(&function.body, &Need::Whole);
    live.report(&function.body, plan, &mut FxHashSet::default());
}

/// Returns `function` without dead statements.
pub(crate) fn swept(mut function: Function) -> Function {
    // As in a derivative, all values are live as a whole.
    let mut live = Live::new(&function, 1);
    live.block(&function.body, &Need::Whole);
    let needs = std::mem::take(&mut live.needs);
    let mut body = std::mem::replace(&mut function.body, Block { stmts: Vec::new(), result: VarId::new(0) });
    Live { needs, ..Live::new(&function, 1) }.sweep(&mut body);
    Function { body, ..function }
}

// Whether a value of this type has no content.
fn is_nothing(ty: &Type) -> bool {
    match ty {
        Type::Array(_, element) => is_nothing(element),
        Type::Tuple(fields, _) => fields.iter().all(is_nothing),
        _ => false,
    }
}

// Whether this is the placeholder of dead values, or equivalent to it.
fn is_any(expr: &Expr) -> bool {
    match expr {
        Expr::Real(_) | Expr::Bool(_) | Expr::Zero => true,
        Expr::Size(size) => size.as_constant().is_some(),
        _ => false,
    }
}

impl<'a> Live<'a> {
    fn new(function: &'a Function, opaque: u32) -> Self {
        let needs = vec![Need::Nothing; function.vars.len()];
        Self { function, needs, walked: FxHashMap::default(), opaque, triples: FxHashSet::default() }
    }

    fn whole(&mut self, var: VarId) {
        self.needs[var.index()] = Need::Whole;
    }

    fn need(&mut self, var: VarId, need: &Need) {
        if self.opaque > 0 && *need != Need::Nothing {
            return self.whole(var);
        }
        let new = match (&self.needs[var.index()], need) {
            (_, Need::Nothing) | (Need::Whole, _) => return,
            (old, need) => old.and(need),
        };
        self.needs[var.index()] = new;
    }

    fn component(&mut self, tuple: VarId, k: usize, need: &Need) {
        if self.opaque > 0 {
            return self.whole(tuple);
        }
        let Type::Tuple(fields, _) = self.function.ty(tuple) else { return };
        let of_tuple = &mut self.needs[tuple.index()];
        if *of_tuple == Need::Nothing {
            *of_tuple = Need::Fields(vec![Need::Nothing; fields.len()]);
        }
        if let Need::Fields(used) = of_tuple
            && let Some(field) = used.get_mut(k)
        {
            *field = field.and(need);
        }
    }

    fn types(&mut self, var: VarId) {
        let function = self.function;
        function.ty(var).for_each_size(&mut |size| {
            for v in size.terms().flat_map(|(monomial, _)| monomial) {
                self.whole(*v);
            }
        });
    }

    fn block(&mut self, block: &Block, need: &Need) {
        if self.walked.get(&from_ref(block)) == Some(need) {
            return;
        }
        self.walked.insert(from_ref(block), need.clone());
        self.need(block.result, need);
        for stmt in block.stmts.iter().rev() {
            let need = self.needs[stmt.var.index()].clone();
            if need == Need::Nothing {
                continue;
            }
            self.types(stmt.var);
            if !stmt.expr.is_leaf() {
                stmt.expr.binders().into_iter().for_each(|binder| self.types(binder));
            }
            self.expr(stmt, &need);
        }
    }

    /// Returns what is needed of a field of `tuple` of which this part is used.
    fn of_field<'n>(&self, tuple: VarId, need: &'n Need) -> &'n Need {
        if *need == Need::Nothing || self.triples.contains(&tuple) { need } else { &Need::Whole }
    }

    fn expr(&mut self, stmt: &Stmt, need: &Need) {
        let expr = &stmt.expr;
        match (expr, need) {
            (Expr::Component(tuple, k), _) => self.component(*tuple, *k, self.of_field(*tuple, need)),
            (Expr::Tuple(fields), Need::Fields(used)) => {
                for (field, need) in fields.iter().zip(used) {
                    self.need(*field, self.of_field(stmt.var, need));
                }
            }
            (Expr::If { condition, then, otherwise }, _) => {
                self.whole(*condition);
                self.block(then, need);
                self.block(otherwise, need);
            }
            (Expr::Loop(StateLoop { count, state, init, body, .. }), Need::Fields(used)) if self.opaque == 0 => {
                count.vars().into_iter().for_each(|v| self.whole(v));
                let [last, element, term] = [0, 1, 2].map(|k| used[k].clone());
                if is_nothing(self.function.ty(*state)) {
                    self.whole(*state);
                }
                self.state(*state, *init, &last, |live, next| {
                    live.block(body, &Need::Fields(vec![next, element.clone(), term.clone()]));
                });
            }
            (Expr::Fold(StateLoop { count, state, init, body, .. }), _) => {
                count.vars().into_iter().for_each(|v| self.whole(v));
                self.state(*state, *init, need, |live, next| live.block(body, &next));
            }
            (leaf, _) if leaf.is_leaf() => leaf.for_each_operand(&mut |v| self.whole(v)),
            _ => {
                let opaque = u32::from(walk::is_opaque(expr));
                expr.for_each_operand(&mut |v| self.whole(v));
                self.opaque += opaque;
                for block in expr.blocks() {
                    self.block(block, &Need::Whole);
                }
                self.opaque -= opaque;
            }
        }
    }

    /// Finds the live part of the state of a loop, of which `last` is needed in the end; `body` walks an iteration, of
    /// which a part of the next state is needed.
    fn state(&mut self, state: VarId, init: VarId, last: &Need, body: impl Fn(&mut Self, Need)) {
        self.need(state, last);
        loop {
            // The next iterations' need of the state is the need of its next value.
            let before = self.needs[state.index()].clone();
            body(self, before.clone());
            if self.needs[state.index()] == before {
                return self.need(init, &before);
            }
        }
    }

    // Only removes dead statements; fields stay.
    fn sweep(&self, block: &mut Block) {
        block.stmts.retain(|stmt| self.needs[stmt.var.index()] != Need::Nothing);
        for stmt in block.stmts.iter_mut().filter(|stmt| !stmt.expr.is_leaf()) {
            stmt.expr.blocks_mut().into_iter().for_each(|block| self.sweep(block));
        }
    }

    // `any`: variables that are placeholders of dead values.
    fn report(&self, block: &Block, plan: &mut Plan<'_>, any: &mut FxHashSet<VarId>) {
        for stmt in &block.stmts {
            if is_any(&stmt.expr) {
                any.insert(stmt.var);
            }
            let mut need = &self.needs[stmt.var.index()];
            if *need == Need::Nothing {
                plan.dead.insert(stmt.var);
                continue;
            }
            if let Expr::Fold(StateLoop { state, .. }) = &stmt.expr {
                need = &self.needs[state.index()];
            }
            let narrows = matches!(stmt.expr, Expr::Fold(_) | Expr::If { .. } | Expr::Tuple(_) | Expr::Loop(_));
            let fields = need.live_fields().filter(|_| narrows);
            match (&stmt.expr, fields) {
                (Expr::Tuple(parts), Some(fields)) => {
                    let unused = || (0..parts.len()).filter(|k| !fields.contains(k)).map(|k| parts[k]);
                    if unused().all(|part| any.contains(&part)) {
                        // It is already narrow.
                        unused().for_each(|part| {
                            plan.dead.remove(&part);
                        });
                        continue;
                    }
                    plan.fields.insert(stmt.var, Fields { of_value: fields, of_state: None });
                }
                (Expr::Loop(StateLoop { state, .. }), fields) if !matches!(need, Need::Whole) => {
                    let of_state = &self.needs[state.index()];
                    // Fields without content stay.
                    let is_empty = |k: usize| match self.function.ty(stmt.var) {
                        Type::Tuple(parts, _) => is_nothing(&parts[k]),
                        _ => true,
                    };
                    let is_live = |k: &usize| match &fields {
                        Some(live) => live.contains(k) || is_empty(*k) || (*k == 0 && *of_state != Need::Nothing),
                        None => true,
                    };
                    let live = Fields { of_value: (0..3).filter(is_live).collect(), of_state: of_state.live_fields() };
                    if live.of_value.len() < 3 || live.of_state.is_some() {
                        plan.fields.insert(stmt.var, live);
                    }
                }
                (_, Some(fields)) => {
                    plan.fields.insert(stmt.var, Fields { of_value: fields, of_state: None });
                }
                _ => {}
            }
            if !stmt.expr.is_leaf() {
                stmt.expr.blocks().into_iter().for_each(|block| self.report(block, plan, any));
            }
        }
    }
}
