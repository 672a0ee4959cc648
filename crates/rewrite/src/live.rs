//! Liveness, to the field of a tuple.
//!
//! In: a function. Out: dead statements, and the live fields of each loop, branch and tuple whose value is a tuple. A
//! field of a state is live if the loop's result needs it, or another live field does: a fold over a value and its
//! tangent of which only the tangent is used computes the value only if the tangent needs it.
//!
//! Each block is walked backwards, the body of a fold again as long as its state gains live fields. A statement whose
//! only effect could be a failure is removed with its unused result: there are no effects, only values.

use crate::rebuild::Plan;
use crate::walk;
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Function, StateLoop, Type, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::ptr::from_ref;

/// Live fields of a tuple.
type Fields = SmallVec<[bool; 16]>;

/// Live part of a variable.
#[derive(Clone, PartialEq, Debug)]
enum Need {
    Nothing,
    /// These fields of a tuple.
    Fields(Fields),
    Whole,
}

struct Live<'a> {
    function: &'a Function,
    needs: Vec<Need>,
    /// Last need with which each block was walked, by its address. Variables bound in a block are only used in it, so
    /// another walk with the same need would have the same result.
    walked: FxHashMap<*const Block, Need>,
    /// Number of enclosing derivatives, whose bodies stay unchanged.
    opaque: u32,
}

/// Puts into `plan` the dead statements of `function`, and the live fields.
pub(crate) fn analyse(function: &Function, plan: &mut Plan<'_>) {
    let mut live =
        Live { function, needs: vec![Need::Nothing; function.vars.len()], walked: FxHashMap::default(), opaque: 0 };
    live.block(&function.body, &Need::Whole);
    live.report(&function.body, plan, &mut FxHashSet::default());
}

/// Returns `function` without dead statements.
pub(crate) fn swept(mut function: Function) -> Function {
    let needs = vec![Need::Nothing; function.vars.len()];
    // As in a derivative, all values are live as a whole.
    let mut live = Live { function: &function, needs, walked: FxHashMap::default(), opaque: 1 };
    live.block(&function.body, &Need::Whole);
    let needs = std::mem::take(&mut live.needs);
    let mut body = std::mem::replace(&mut function.body, Block { stmts: Vec::new(), result: VarId::new(0) });
    Live { function: &function, needs, walked: FxHashMap::default(), opaque: 1 }.sweep(&mut body);
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

impl Live<'_> {
    fn whole(&mut self, var: VarId) {
        self.needs[var.index()] = Need::Whole;
    }

    fn need(&mut self, var: VarId, need: &Need) {
        if self.opaque > 0 && *need != Need::Nothing {
            return self.whole(var);
        }
        let new = match (&self.needs[var.index()], need) {
            (_, Need::Nothing) | (Need::Whole, _) => return,
            (_, Need::Whole) => Need::Whole,
            (Need::Nothing, need) => need.clone(),
            (Need::Fields(old), Need::Fields(new)) => {
                Need::Fields(old.iter().zip(new).map(|(a, b)| *a || *b).collect())
            }
        };
        self.needs[var.index()] = new;
    }

    fn component(&mut self, tuple: VarId, k: usize) {
        if self.opaque > 0 {
            return self.whole(tuple);
        }
        let Type::Tuple(fields, _) = self.function.ty(tuple) else { return };
        let need = &mut self.needs[tuple.index()];
        if *need == Need::Nothing {
            *need = Need::Fields(smallvec![false; fields.len()]);
        }
        if let Need::Fields(used) = need
            && let Some(field) = used.get_mut(k)
        {
            *field = true;
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
            let need = match &self.needs[stmt.var.index()] {
                Need::Nothing => continue,
                Need::Whole => Need::Whole,
                Need::Fields(fields) => Need::Fields(fields.clone()),
            };
            self.types(stmt.var);
            if !stmt.expr.is_leaf() {
                stmt.expr.binders().into_iter().for_each(|binder| self.types(binder));
            }
            self.expr(&stmt.expr, &need);
        }
    }

    fn expr(&mut self, expr: &Expr, need: &Need) {
        match (expr, need) {
            (Expr::Component(tuple, k), _) => self.component(*tuple, *k),
            (Expr::Tuple(fields), Need::Fields(used)) => {
                for (field, _) in fields.iter().zip(used).filter(|(_, used)| **used) {
                    self.whole(*field);
                }
            }
            (Expr::If { condition, then, otherwise }, _) => {
                self.whole(*condition);
                self.block(then, need);
                self.block(otherwise, need);
            }
            (Expr::Loop(StateLoop { count, state, init, body, .. }), Need::Fields(used)) if self.opaque == 0 => {
                count.vars().into_iter().for_each(|v| self.whole(v));
                let [last, element, term] = [0, 1, 2].map(|k| used.get(k) == Some(&true));
                if last || is_nothing(self.function.ty(*state)) {
                    self.whole(*state);
                }
                loop {
                    let before = self.needs[state.index()].clone();
                    let next = before != Need::Nothing;
                    self.block(body, &Need::Fields(smallvec![next, element, term]));
                    if self.needs[state.index()] == before || (next && before != Need::Nothing) {
                        break;
                    }
                    // The condition reads the state, so every iteration makes all of it.
                    self.whole(*state);
                }
                if self.needs[state.index()] != Need::Nothing {
                    self.whole(*state);
                    self.block(body, &Need::Fields(smallvec![true, element, term]));
                    self.whole(*init);
                }
            }
            (Expr::Fold(StateLoop { count, state, init, body, .. }), _) => {
                count.vars().into_iter().for_each(|v| self.whole(v));
                // The next iterations' need of the state is the need of its next value.
                self.need(*state, need);
                loop {
                    let before = self.needs[state.index()].clone();
                    self.block(body, &before);
                    if self.needs[state.index()] == before {
                        break;
                    }
                }
                let need = self.needs[state.index()].clone();
                self.need(*init, &need);
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
            if let (true, Need::Fields(used)) = (narrows, need)
                && used.contains(&false)
            {
                let mut used = used.clone();
                if let (Expr::Loop(StateLoop { state, .. }), Type::Tuple(parts, _)) =
                    (&stmt.expr, self.function.ty(stmt.var))
                {
                    used[0] = self.needs[state.index()] != Need::Nothing;
                    // Fields without content stay.
                    used.iter_mut().zip(parts).for_each(|(used, part)| *used |= is_nothing(part));
                }
                if let Expr::Tuple(parts) = &stmt.expr {
                    let unused = || used.iter().zip(parts).filter(|(used, _)| !**used).map(|(_, part)| part);
                    if unused().all(|part| any.contains(part)) {
                        // It is already narrow.
                        unused().for_each(|part| {
                            plan.dead.remove(part);
                        });
                        continue;
                    }
                }
                if used.contains(&false) {
                    let fields = (0..used.len()).filter(|k| used[*k]).collect();
                    plan.fields.insert(stmt.var, fields);
                }
            }
            if !stmt.expr.is_leaf() {
                stmt.expr.blocks().into_iter().for_each(|block| self.report(block, plan, any));
            }
        }
    }
}
