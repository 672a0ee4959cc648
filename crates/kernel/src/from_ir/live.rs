//! Liveness of a function's variables: needed statements and last uses.
//!
//! Only statements that the result needs are lowered. The memory of an array is free after the last statement that can
//! access it.

use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, Function, VarId};
use std::collections::BTreeMap;

/// Liveness of every variable.
pub(super) struct Live {
    /// Whether the result of the function depends on the variable.
    pub needed: Arena<VarId, bool>,
    /// Last statement that uses the variable, directly or in its inner blocks: an index into the block that binds the
    /// variable, or `usize::MAX` if the variable is the result of that block.
    last_use: Arena<VarId, usize>,
    /// Number of blocks around the one that binds the variable.
    depth: Arena<VarId, usize>,
    /// Number of uses.
    uses: Arena<VarId, u32>,
    /// Number of uses by projections: components of the variable, or components of its elements.
    uses_of_parts: Arena<VarId, u32>,
    /// Number of uses and last use of each component of a variable or of its elements.
    parts: BTreeMap<(VarId, usize), (u32, usize)>,
}

impl Live {
    pub fn of(function: &Function) -> Self {
        let n = function.vars.len();
        let mut this = Self {
            needed: Arena::filled(n, false),
            last_use: Arena::filled(n, 0),
            depth: Arena::filled(n, 0),
            uses: Arena::filled(n, 0),
            uses_of_parts: Arena::filled(n, 0),
            parts: BTreeMap::new(),
        };
        this.depths(&function.body, 0);
        this.mark(function, &function.body, &mut Vec::new());
        this
    }

    /// Returns the last statement that uses component `k` of the variable, or of its elements if it is an array: an
    /// index as in [`Self::last_use`] of whole variables, `usize::MAX` for the block's result, `None` if nothing uses
    /// it.
    pub fn last_use(&self, var: VarId, k: usize) -> Option<usize> {
        if self.is_in_parts(var) { self.parts.get(&(var, k)).map(|(_, last)| *last) } else { Some(self.last_use[var]) }
    }

    /// Returns the last statement that uses the variable: an index as in [`Self::last_use`].
    pub fn end(&self, var: VarId) -> usize {
        self.last_use[var]
    }

    /// Returns whether all uses are projections of the variable or of its elements.
    fn is_in_parts(&self, var: VarId) -> bool {
        self.uses_of_parts[var] == self.uses[var]
    }

    /// Returns whether the variable has a single use.
    pub fn used_once(&self, var: VarId) -> bool {
        self.uses[var] == 1
    }

    /// Returns whether component `k` of `tuple` has a single use, and all uses of `tuple` are projections.
    pub fn only_component(&self, tuple: VarId, k: usize) -> bool {
        self.is_in_parts(tuple) && self.parts.get(&(tuple, k)).is_some_and(|(uses, _)| *uses == 1)
    }

    fn depths(&mut self, block: &Block, depth: usize) {
        for stmt in &block.stmts {
            self.bind(stmt.var, depth);
            for var in stmt.expr.binders() {
                self.bind(var, depth + 1);
            }
            for inner in stmt.expr.blocks() {
                self.depths(inner, depth + 1);
            }
        }
    }

    fn bind(&mut self, var: VarId, depth: usize) {
        if var.index() < self.depth.len() {
            self.depth[var] = depth;
        }
    }

    /// Records the uses in `block`; `at[d]` is the current statement of the block at depth `d`.
    fn mark(&mut self, function: &Function, block: &Block, at: &mut Vec<usize>) {
        at.push(usize::MAX);
        let here = at.len() - 1;
        self.use_var(block.result, at);
        for (idx, stmt) in block.stmts.iter().enumerate().rev() {
            if !self.needed[stmt.var] {
                continue;
            }
            at[here] = idx;
            let var = &function.vars[stmt.var];
            for size in var.ty.sizes().iter().chain(&var.value) {
                size.vars().into_iter().for_each(|var| self.use_var(var, at));
            }
            if var.value.is_some() {
                continue;
            }
            match &stmt.expr {
                Expr::Component(tuple, k) => self.use_parts(*tuple, &[*k], at),
                Expr::Get { array, .. } if self.is_in_parts(stmt.var) => {
                    let parts = self.parts.range((stmt.var, 0)..=(stmt.var, usize::MAX));
                    let parts: Vec<usize> = parts.map(|((_, k), _)| *k).collect();
                    self.use_parts(*array, &parts, at);
                }
                _ => {}
            }
            for operand in stmt.expr.operands() {
                self.use_var(operand, at);
            }
            for inner in stmt.expr.blocks() {
                self.mark(function, inner, at);
            }
        }
        at.pop();
    }

    fn use_parts(&mut self, var: VarId, parts: &[usize], at: &[usize]) {
        self.uses_of_parts[var] += 1;
        let now = self.seen_from(var, at);
        for part in parts {
            let (uses, last) = self.parts.entry((var, *part)).or_default();
            *uses += 1;
            *last = now.max(*last);
        }
    }

    /// Returns the current statement of the block that binds `var`.
    fn seen_from(&self, var: VarId, at: &[usize]) -> usize {
        at.get(self.depth[var]).copied().unwrap_or(usize::MAX)
    }

    fn use_var(&mut self, var: VarId, at: &[usize]) {
        let last = self.seen_from(var, at);
        self.needed[var] = true;
        self.uses[var] += 1;
        self.last_use[var] = self.last_use[var].max(last);
    }
}
