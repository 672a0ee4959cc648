//! Variables that are computed from integers alone, and code for them.
//!
//! In: the statements of a term, one after the other. Out: the variables that are computed from sizes, integer
//! arguments and counters of loops with known extents, with the counters on which each depends, and a value number; and
//! copies of the statements that compute them, in another function.
//!
//! Holds: no such variable depends on a double, in any branch. An element or a component is such a variable if its
//! array and its index are; it may be a double as long as no arithmetic uses it.

use chainrule_ir::range::{Facts, Loop};
use chainrule_ir::{Block, Builder, Expr, Function, Renaming, Size, Stmt, VarId};
use chainrule_ops::{self as ops, Op};
use rustc_hash::{FxHashMap, FxHashSet};

/// Expression of a variable over value numbers.
#[derive(PartialEq, Eq, Hash, Clone, Debug)]
enum Form {
    Size(Size),
    Get(VarId, VarId),
    Component(VarId, usize),
    Op(Op, Vec<VarId>),
}

/// Facts about the variables of terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Indices {
    /// Counters on which each integral variable depends, ascending.
    deps: FxHashMap<VarId, Vec<VarId>>,
    /// Statement that computes it, if it was not there before.
    defs: FxHashMap<VarId, Stmt>,
    /// First variable of each form, and first variable equal to each variable.
    first: FxHashMap<Form, VarId>,
    equal: FxHashMap<VarId, VarId>,
    /// Loops of counters, in the order of [`Self::counter`].
    loops: Vec<Loop>,
    /// Variables that are never negative: size parameters.
    natural: FxHashSet<VarId>,
    /// Polynomials over arguments that the function requires to be nonnegative.
    required: Vec<Size>,
}

impl Indices {
    /// Returns the facts that hold before all statements of `function`.
    pub(crate) fn of(function: &Function) -> Self {
        let mut indices = Self { natural: function.sizes.iter().copied().collect(), ..Self::default() };
        for requirement in &function.requires {
            indices.required.push(requirement.size.clone());
            if requirement.exactly_zero {
                indices.required.push(requirement.size.neg());
            }
        }
        function.sizes.iter().chain(&function.params).for_each(|var| indices.known(*var));
        indices
    }

    /// Records that `var` is bound before all statements: a size, an argument.
    fn known(&mut self, var: VarId) {
        self.deps.insert(var, Vec::new());
        self.defs.remove(&var);
    }

    /// Records that `var` counts the `count` iterations of a loop.
    pub(crate) fn counter(&mut self, var: VarId, count: &Size) {
        self.deps.insert(var, vec![var]);
        self.loops.push(Loop { index: var, count: count.clone() });
    }

    /// Returns the counters on which `var` depends; `None` if it is not computed from integers alone.
    pub(crate) fn deps(&self, var: VarId) -> Option<&[VarId]> {
        self.deps.get(&var).map(Vec::as_slice)
    }

    /// Records a statement; its operands have been recorded.
    pub(crate) fn see(&mut self, out: &Builder, stmt: &Stmt) {
        let mut deps = Vec::new();
        if !self.is_integral(out, stmt, &mut FxHashSet::default(), &mut deps) {
            return;
        }
        deps.sort_unstable();
        deps.dedup();
        if let Some(form) = self.form(&stmt.expr) {
            let first = match &form {
                Form::Size(size) => size.as_var(),
                _ => None,
            };
            let first = first.unwrap_or_else(|| *self.first.entry(form).or_insert(stmt.var));
            self.equal.insert(stmt.var, first);
        }
        self.deps.insert(stmt.var, deps);
        self.defs.insert(stmt.var, stmt.clone());
    }

    /// Returns whether `stmt` computes from integers alone; `local` are the variables bound in the blocks around it.
    fn is_integral(&self, out: &Builder, stmt: &Stmt, local: &mut FxHashSet<VarId>, deps: &mut Vec<VarId>) -> bool {
        let reads = matches!(stmt.expr, Expr::Get { .. } | Expr::Component(..));
        if !reads && (out.ty(stmt.var).has_double() || matches!(stmt.expr, Expr::Jvp { .. } | Expr::Vjp { .. })) {
            return false;
        }
        let sizes = out.ty(stmt.var).sizes().into_iter().flat_map(|size| size.vars());
        for operand in stmt.expr.operands().into_iter().chain(sizes) {
            if !reads && out.ty(operand).has_double() {
                return false;
            }
            if local.contains(&operand) {
                continue;
            }
            match self.deps.get(&operand) {
                Some(more) => deps.extend(more),
                None => return false,
            }
        }
        for binder in stmt.expr.binders() {
            if out.ty(binder).has_double() {
                return false;
            }
            local.insert(binder);
        }
        for block in stmt.expr.blocks() {
            for inner in &block.stmts {
                if !self.is_integral(out, inner, local, deps) {
                    return false;
                }
                local.insert(inner.var);
            }
            if !local.contains(&block.result) {
                match self.deps.get(&block.result) {
                    Some(more) => deps.extend(more),
                    None => return false,
                }
            }
        }
        true
    }

    fn form(&self, expr: &Expr) -> Option<Form> {
        Some(match expr {
            Expr::Size(size) => Form::Size(self.canonical(size)),
            Expr::Get { array, index, .. } => Form::Get(self.equal(*array), self.equal(*index)),
            Expr::Component(tuple, k) => Form::Component(self.equal(*tuple), *k),
            Expr::Op(op, args) => Form::Op(*op, args.iter().map(|arg| self.equal(*arg)).collect()),
            _ => return None,
        })
    }

    /// Returns `size` over value numbers.
    pub(crate) fn canonical(&self, size: &Size) -> Size {
        size.substitute(|var| Size::var(self.equal(var)))
    }

    /// Returns the representative of the variables that are equal to `var` by their form.
    pub(crate) fn equal(&self, var: VarId) -> VarId {
        self.equal.get(&var).copied().unwrap_or(var)
    }

    /// Returns the loops that count the variables on which `var` depends.
    fn loops_of(&self, var: VarId) -> Vec<Loop> {
        let deps = self.deps(var).unwrap_or(&[]);
        self.loops.iter().filter(|l| deps.contains(&l.index)).cloned().collect()
    }

    /// Returns whether `0 <= index < len` in all iterations of these loops.
    fn in_range(&self, out: &Builder, loops: &[Loop], index: VarId, len: &Size) -> bool {
        let facts = Facts { loops, natural: &self.natural, known: &self.required };
        let at = out.size_of(index);
        facts.holds(&at) && facts.holds(&len.sub(&at).sub(&Size::constant(1)))
    }

    /// Returns whether `0 <= index < len` inside of the loops that count the variables on which `index` depends.
    pub(crate) fn is_inside(&self, out: &Builder, index: VarId, len: &Size) -> bool {
        self.in_range(out, &self.loops_of(index), index, len)
    }

    /// Returns whether computing `var` cannot fail inside of the loops that count the variables on which it depends. No
    /// other loop is assumed to run: an index whose proof uses one is not proved here.
    pub(crate) fn is_total(&self, out: &Builder, var: VarId) -> bool {
        let loops = self.loops_of(var);
        let (mut open, mut seen) = (vec![var], FxHashSet::default());
        while let Some(var) = open.pop() {
            let Some(stmt) = self.defs.get(&var) else { continue };
            if !seen.insert(var) {
                continue;
            }
            let total = match &stmt.expr {
                Expr::Size(_) | Expr::Bool(_) | Expr::Component(..) | Expr::Tuple(_) | Expr::Array(_) => true,
                Expr::Get { array, index, .. } => self.in_range(out, &loops, *index, &out.length(*array)),
                Expr::Op(op, _) => op.row().result == ops::Type::Bool || matches!(op, Op::Min | Op::Max | Op::Select),
                _ => false,
            };
            if !total {
                return false;
            }
            open.extend(stmt.expr.operands());
        }
        true
    }

    /// Copies the statements that compute `var` to the open block of `out`, unless `copies` contains it already.
    /// Returns the copy.
    pub(crate) fn copy(&self, out: &mut Builder, copies: &mut Copies, var: VarId) -> VarId {
        // Orders dependences with an explicit stack, for chains may be long.
        let mut open = vec![(var, false)];
        while let Some((var, ready)) = open.pop() {
            let Some(stmt) = self.defs.get(&var).filter(|_| !copies.done.contains(&var)) else { continue };
            if ready {
                let block = Block { stmts: vec![stmt.clone()], result: var };
                out.inline(&block, &mut copies.renaming);
                copies.done.insert(var);
                continue;
            }
            open.push((var, true));
            let mut used = Vec::new();
            super::terms::uses(out, stmt, &mut used);
            used.retain(|var| self.defs.contains_key(var) && !copies.done.contains(var));
            open.extend(used.into_iter().map(|var| (var, false)));
        }
        copies.renaming.get(var)
    }
}

/// Variables that were copied already, in the open blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    pub(crate) renaming: Renaming,
    done: FxHashSet<VarId>,
}
