//! Sums of one-hot arrays that are added in order: each becomes a sum of arrays that differ from zero in distinct
//! elements.
//!
//! A term `oneHot i a + oneHot j b` of a sum may be added to the accumulator element by element only if `i` and `j`
//! differ: otherwise `a + b` is rounded first. The values of the arrays therefore depend on whether the indices are
//! equal: `oneHot i (if i == j then -0 else a) + oneHot j (if i == j then a + b else b)`. The bits of the sum stay the
//! same, because `-0 + x` is `x`.
//!
//! A guarded term `if c then oneHot i a else zero` is `oneHot (if c then i else j) (if c then a else -0)`, where `j` is
//! the index of a term without a guard.
//!
//! In: a function, one-hot arrays having one use each (module `hot`). Out: the function, and the sums in loops whose
//! operands may be added one after another.

use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Function, Stmt, Type, Var, VarId};
use chainrule_ops::Op;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of one-hot arrays of a sum. Every two of them are compared.
const MAX_LEAVES: usize = 8;

/// Returns `function` with such sums, and their variables.
pub(super) fn sums(function: &Function) -> (Cow<'_, Function>, BTreeSet<VarId>) {
    let mut uses = BTreeMap::new();
    function.body.for_each_use(&mut |var| *uses.entry(var).or_insert(0usize) += 1);
    let mut found = BTreeSet::new();
    let mut function = Cow::Borrowed(function);
    if has_sum(&function.body, Around::Nothing) {
        let Function { vars, body, .. } = function.to_mut();
        let mut zeros = BTreeSet::new();
        add_zeros(body, &mut zeros);
        Sums { vars, uses: &uses, zeros, found: &mut found }.block(body, Around::Nothing);
    }
    (function, found)
}

/// Loops around a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    Loop,
}

impl Around {
    /// Returns the loops around the blocks of `expr`.
    fn inside(self, expr: &Expr) -> Self {
        if matches!(expr, Expr::If { .. }) { self } else { Self::Loop }
    }
}

/// Returns whether an array is added to another one in a loop.
// Recursive on the nesting of blocks.
fn has_sum(block: &Block, around: Around) -> bool {
    block.stmts.iter().any(|stmt| {
        (around == Around::Loop && matches!(stmt.expr, Expr::Plus(..)))
            || stmt.expr.blocks().into_iter().any(|inner| has_sum(inner, around.inside(&stmt.expr)))
    })
}

/// Adds the variables that are zeros.
// Recursive on the nesting of blocks.
fn add_zeros(block: &Block, zeros: &mut BTreeSet<VarId>) {
    for stmt in &block.stmts {
        if matches!(stmt.expr, Expr::Zero) {
            zeros.insert(stmt.var);
        }
        stmt.expr.blocks().into_iter().for_each(|inner| add_zeros(inner, zeros));
    }
}

struct Sums<'a> {
    vars: &'a mut Arena<VarId, Var>,
    uses: &'a BTreeMap<VarId, usize>,
    zeros: BTreeSet<VarId>,
    found: &'a mut BTreeSet<VarId>,
}

/// Number, or tuple of numbers, in an array that is zero elsewhere.
#[derive(Clone)]
struct Leaf {
    /// Statements of the one-hot arrays, outermost first.
    arrays: Vec<Stmt>,
    value: VarId,
}

/// Returns whether a value is a number or a tuple of numbers.
// Recursive on the nesting of types.
fn is_numeric(ty: &Type) -> bool {
    match ty {
        Type::Double => true,
        Type::Tuple(parts, _) => !parts.is_empty() && parts.iter().all(is_numeric),
        _ => false,
    }
}

impl Leaf {
    fn indices(&self) -> impl Iterator<Item = VarId> + '_ {
        self.arrays
            .iter()
            .filter_map(|stmt| if let Expr::OneHot { index, .. } = stmt.expr { Some(index) } else { None })
    }
}

impl Sums<'_> {
    // Recursive on the nesting of blocks.
    fn block(&mut self, block: &mut Block, around: Around) {
        for stmt in &mut block.stmts {
            let inside = around.inside(&stmt.expr);
            stmt.expr.blocks_mut().into_iter().for_each(|inner| self.block(inner, inside));
        }
        if around == Around::Nothing || !block.stmts.iter().any(|stmt| matches!(stmt.expr, Expr::Plus(..))) {
            return;
        }
        let defs: BTreeMap<VarId, Stmt> = (block.stmts.iter())
            .filter(|stmt| match stmt.expr {
                Expr::Plus(..) | Expr::OneHot { .. } => true,
                Expr::If { .. } => matches!(self.vars[stmt.var].ty, Type::Array(..)),
                _ => false,
            })
            .map(|stmt| (stmt.var, stmt.clone()))
            .collect();
        // The last sum of a tree comes first.
        let mut trees: BTreeMap<VarId, Vec<VarId>> = BTreeMap::new();
        let mut gone = BTreeSet::new();
        for stmt in block.stmts.iter().rev() {
            if matches!(stmt.expr, Expr::Plus(..)) && !gone.contains(&stmt.var) {
                let mut parts = Vec::new();
                if self.is_tree(&defs, stmt.var, &mut parts) {
                    gone.extend(parts.iter().copied());
                    trees.insert(stmt.var, parts);
                }
            }
        }
        if trees.is_empty() {
            return;
        }
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for stmt in std::mem::take(&mut block.stmts) {
            if trees.contains_key(&stmt.var) {
                let leaves = self.leaves(&defs, stmt.var, &mut stmts);
                self.write(&stmt, leaves, &mut stmts);
            } else if !gone.contains(&stmt.var) {
                stmts.push(stmt);
            }
        }
        block.stmts = stmts;
    }

    /// Returns whether `root` is a sum of one-hot arrays of numbers, or of tuples of them, that have no other use;
    /// lists the statements of the arrays and of the other sums.
    fn is_tree(&self, defs: &BTreeMap<VarId, Stmt>, root: VarId, parts: &mut Vec<VarId>) -> bool {
        let mut open = vec![root];
        let mut n_leaves = 0;
        let mut guarded = Vec::new();
        while let Some(var) = open.pop() {
            if var != root {
                if self.uses.get(&var) != Some(&1) {
                    return false;
                }
                parts.push(var);
            }
            match defs.get(&var).map(|stmt| &stmt.expr) {
                Some(Expr::Plus(a, b)) => open.extend([*a, *b]),
                Some(Expr::OneHot { value, .. }) if is_numeric(&self.vars[*value].ty) => n_leaves += 1,
                Some(Expr::OneHot { value, .. }) => open.push(*value),
                // The arrays of a guarded term are in its branches.
                Some(Expr::If { then, otherwise, .. }) if var != root && !is_row(defs, parts, var) => {
                    let (Some(then), Some(otherwise)) = (self.arrays(then), self.arrays(otherwise)) else {
                        return false;
                    };
                    n_leaves += 1;
                    guarded.push((then.len(), otherwise.len()));
                }
                _ => return false,
            }
            // A one-hot array of a sum has several paths.
            let is_mixed = |value: &VarId| matches!(defs.get(value).map(|stmt| &stmt.expr), Some(Expr::Plus(..)));
            if n_leaves > MAX_LEAVES
                || matches!(defs.get(&var).map(|stmt| &stmt.expr), Some(Expr::OneHot { value, .. }) if is_mixed(value))
            {
                return false;
            }
        }
        guarded.into_iter().all(|(then, otherwise)| {
            let depth = then.max(otherwise);
            depth > 0 && (then == otherwise || unguarded(defs, root, depth).is_some())
        })
    }

    /// Returns the one-hot arrays that a branch makes, outermost first; none if it is zero; `None` for another array.
    fn arrays(&self, branch: &Block) -> Option<Vec<Stmt>> {
        let (mut arrays, mut at) = (Vec::new(), branch.result);
        if self.zeros.contains(&at) {
            return Some(arrays);
        }
        while !is_numeric(&self.vars[at].ty) {
            let stmt = branch.stmts.iter().find(|stmt| stmt.var == at && self.uses.get(&at) == Some(&1))?;
            let Expr::OneHot { value, .. } = stmt.expr else { return None };
            arrays.push(stmt.clone());
            at = value;
        }
        Some(arrays)
    }

    /// Returns the leaf of a guarded term of the tree `root`; writes the statements of its indices and its number.
    fn guarded(
        &mut self,
        defs: &BTreeMap<VarId, Stmt>,
        root: VarId,
        stmt: &Stmt,
        stmts: &mut Vec<Stmt>,
    ) -> Option<Leaf> {
        let Expr::If { condition, then, otherwise } = &stmt.expr else { return None };
        let branches = [then, otherwise].map(|branch| self.arrays(branch));
        let [Some(first), Some(second)] = branches else { return None };
        let mut arrays = if first.is_empty() { second.clone() } else { first.clone() };
        let Some(Expr::OneHot { value, .. }) = arrays.last().map(|stmt| &stmt.expr) else { return None };
        let number = self.vars[*value].ty.clone();
        let mut types = vec![Type::Int; arrays.len()];
        types.push(number.clone());
        let ty = Type::tuple(types);
        let [then, otherwise] = [(then, first), (otherwise, second)].map(|(branch, made)| {
            let mut branch = branch.clone();
            let mut parts = Vec::new();
            if made.is_empty() {
                parts.extend(unguarded(defs, root, arrays.len()).unwrap_or_default());
                parts.push(self.negative_zero(&number, &mut branch.stmts));
            }
            branch.stmts.retain(|stmt| made.iter().all(|array| array.var != stmt.var));
            for array in &made {
                if let Expr::OneHot { index, value, .. } = array.expr {
                    parts.push(index);
                    parts.extend((self.vars[value].ty == number).then_some(value));
                }
            }
            branch.result = self.push(Expr::Tuple(parts), ty.clone(), &mut branch.stmts);
            branch
        });
        let parts = self.push(Expr::If { condition: *condition, then, otherwise }, ty, stmts);
        let n = arrays.len();
        for (k, array) in arrays.iter_mut().enumerate() {
            let at = self.push(Expr::Component(parts, k), Type::Int, stmts);
            array.var = if k == 0 { stmt.var } else { self.vars.push(self.vars[array.var].clone()) };
            if let Expr::OneHot { index, proved, .. } = &mut array.expr {
                (*index, *proved) = (at, false);
            }
        }
        let value = self.push(Expr::Component(parts, n), number, stmts);
        Some(Leaf { arrays, value })
    }

    /// Returns the leaves of the tree `root`, with values for distinct elements; writes statements of values.
    fn leaves(&mut self, defs: &BTreeMap<VarId, Stmt>, root: VarId, stmts: &mut Vec<Stmt>) -> Vec<Leaf> {
        // Post order, on a stack: the leaves of subtrees that are complete.
        let mut done: Vec<Vec<Leaf>> = Vec::new();
        let mut open = vec![(root, false)];
        while let Some((var, is_visited)) = open.pop() {
            let Some(stmt) = defs.get(&var) else { continue };
            match stmt.expr {
                Expr::Plus(a, b) if !is_visited => open.extend([(var, true), (b, false), (a, false)]),
                Expr::Plus(..) => {
                    let (right, left) = (done.pop().unwrap_or_default(), done.pop().unwrap_or_default());
                    let leaves = self.added(left, right, stmts);
                    done.push(leaves);
                }
                Expr::If { .. } => done.push(self.guarded(defs, root, stmt, stmts).into_iter().collect()),
                _ => {
                    let (mut arrays, mut at) = (Vec::new(), var);
                    while let Some(stmt @ Stmt { expr: Expr::OneHot { value, .. }, .. }) = defs.get(&at) {
                        arrays.push(stmt.clone());
                        at = *value;
                    }
                    done.push(vec![Leaf { arrays, value: at }]);
                }
            }
        }
        done.pop().unwrap_or_default()
    }

    /// Returns the leaves of the sum of two arrays with these leaves. Of leaves in one element the last one has the
    /// sum, and the others have -0.
    fn added(&mut self, mut left: Vec<Leaf>, mut right: Vec<Leaf>, stmts: &mut Vec<Stmt>) -> Vec<Leaf> {
        // The last leaf in an element takes the number of the left array, of which nothing is left for the others.
        for r in right.iter_mut().rev() {
            for l in &mut left {
                let mut same = None;
                for (i, j) in l.indices().zip(r.indices()) {
                    let equal = self.op(Op::Eq, &[i, j], Type::Bool, stmts);
                    same = Some(match same {
                        None => equal,
                        Some(before) => self.op(Op::And, &[before, equal], Type::Bool, stmts),
                    });
                }
                let Some(same) = same else { continue };
                let ty = self.vars[r.value].ty.clone();
                (l.value, r.value) = self.merged(same, (l.value, r.value), &ty, stmts);
            }
        }
        left.extend(right);
        left
    }

    /// Returns -0 and the sum of two numbers, or of tuples of numbers, if `same`; otherwise the two.
    // Recursive on the nesting of types.
    fn merged(
        &mut self,
        same: VarId,
        (left, right): (VarId, VarId),
        ty: &Type,
        stmts: &mut Vec<Stmt>,
    ) -> (VarId, VarId) {
        if let Type::Tuple(parts, _) = ty {
            let (lefts, rights) = (parts.iter().enumerate())
                .map(|(k, part)| {
                    let [l, r] = [left, right].map(|of| self.push(Expr::Component(of, k), part.clone(), stmts));
                    self.merged(same, (l, r), part, stmts)
                })
                .unzip();
            return (
                self.push(Expr::Tuple(lefts), ty.clone(), stmts),
                self.push(Expr::Tuple(rights), ty.clone(), stmts),
            );
        }
        let sum = self.op(Op::Add, &[left, right], Type::Double, stmts);
        let zero = self.negative_zero(ty, stmts);
        let right = self.op(Op::Select, &[same, sum, right], Type::Double, stmts);
        (self.op(Op::Select, &[same, zero, left], Type::Double, stmts), right)
    }

    /// Returns -0, or a tuple of such numbers.
    // Recursive on the nesting of types.
    fn negative_zero(&mut self, ty: &Type, stmts: &mut Vec<Stmt>) -> VarId {
        let Type::Tuple(parts, _) = ty else { return self.push(Expr::Real(-0.0), ty.clone(), stmts) };
        let parts = parts.iter().map(|part| self.negative_zero(part, stmts)).collect();
        self.push(Expr::Tuple(parts), ty.clone(), stmts)
    }

    /// Writes `root`, the sum of the arrays with these leaves.
    fn write(&mut self, root: &Stmt, leaves: Vec<Leaf>, stmts: &mut Vec<Stmt>) {
        let n = leaves.len();
        let mut sum = None;
        for (k, leaf) in leaves.into_iter().enumerate() {
            let mut value = leaf.value;
            for mut stmt in leaf.arrays.into_iter().rev() {
                if let Expr::OneHot { value: of, .. } = &mut stmt.expr {
                    *of = value;
                }
                value = stmt.var;
                stmts.push(stmt);
            }
            let Some(before) = sum else {
                sum = Some(value);
                continue;
            };
            let expr = Expr::Plus(before, value);
            let var = if k + 1 == n { root.var } else { self.vars.push(self.vars[root.var].clone()) };
            stmts.push(Stmt { var, expr, span: root.span });
            self.found.insert(var);
            sum = Some(var);
        }
    }

    fn op(&mut self, op: Op, args: &[VarId], ty: Type, stmts: &mut Vec<Stmt>) -> VarId {
        self.push(Expr::op(op, args), ty, stmts)
    }

    fn push(&mut self, expr: Expr, ty: Type, stmts: &mut Vec<Stmt>) -> VarId {
        let var = self.vars.push(Var { ty, name: None, span: None, value: None });
        stmts.push(Stmt { var, expr, span: None });
        var
    }
}

/// Returns whether `var` is the number of a one-hot array among `parts`.
fn is_row(defs: &BTreeMap<VarId, Stmt>, parts: &[VarId], var: VarId) -> bool {
    parts
        .iter()
        .any(|part| matches!(defs.get(part).map(|stmt| &stmt.expr), Some(Expr::OneHot { value, .. }) if *value == var))
}

/// Returns the indices of a term of the tree `root` without a guard that has `depth` of them.
fn unguarded(defs: &BTreeMap<VarId, Stmt>, root: VarId, depth: usize) -> Option<Vec<VarId>> {
    let mut open = vec![root];
    while let Some(var) = open.pop() {
        let (mut indices, mut at) = (Vec::new(), var);
        while let Some(Expr::OneHot { index, value, .. }) = defs.get(&at).map(|stmt| &stmt.expr) {
            indices.push(*index);
            at = *value;
        }
        match defs.get(&var).map(|stmt| &stmt.expr) {
            Some(Expr::Plus(a, b)) => open.extend([*b, *a]),
            _ if indices.len() == depth => return Some(indices),
            _ => {}
        }
    }
    None
}
