//! Order of the terms of sums of arrays: those that are made as a whole first, then sparse ones, each made right
//! before it is added.
//!
//! In: a function. Out: the same function, with `oneHot i x + a` and `(oneHot i x + oneHot j y) + a` written as
//! `(a + oneHot i x) + oneHot j y`. The sparse terms then find the memory of `a` ([`offers`](super::offers)) and add to
//! a few elements of it; in another order, each would be made as an array of zeros and one number. If `a` is the state
//! of a loop with an element changed, it is made in the memory of the state ([`in_place`](super::in_place)), so that a
//! step does not take time for the whole array. Terms that read the state are gathered first ([`gather`]). Reverse mode
//! writes such sums for loops that write to elements.
//!
//! Sums are added in another order, so strict code does not use this.

use super::gather;
use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Function, Rows, Stmt, Type, Var, VarId};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Returns `function` with the terms of its sums in order. Linear, but for a logarithm, in the size of the function and
/// the terms times the variables that they read. Recurses on the nesting of blocks.
pub(super) fn in_order(function: &Function) -> Cow<'_, Function> {
    let facts = Facts::of(function);
    if facts.sparse.is_empty() {
        return Cow::Borrowed(function);
    }
    let (mut function, facts) = match gather::gathered(function, &facts) {
        Some(gathered) => {
            let facts = Facts::of(&gathered);
            (gathered, facts)
        }
        None => (function.clone(), facts),
    };
    let Function { body, vars, .. } = &mut function;
    facts.write(body, vars);
    Cow::Owned(function)
}

/// A variable, or a component of it.
pub(super) type Part = (VarId, Vec<usize>);

/// Facts about the variables of a function.
#[derive(Default)]
pub(super) struct Facts {
    pub uses: BTreeMap<VarId, usize>,
    /// Reads of elements of arrays.
    reads: BTreeMap<VarId, usize>,
    /// Variables of loops that hold their state.
    states: BTreeSet<VarId>,
    /// Variables that name a part of another one, or of its elements; the component of tuples.
    names: BTreeMap<VarId, (VarId, Option<usize>)>,
    /// Arrays of which a few elements are not zero.
    sparse: BTreeSet<VarId>,
    /// Arrays of zeros.
    zeros: BTreeSet<VarId>,
    /// Sums of tuples that read no state of a loop, with sparse arrays among their fields: which ones.
    sums: BTreeMap<VarId, Vec<bool>>,
}

impl Facts {
    fn of(function: &Function) -> Self {
        let mut facts = Self::default();
        function.body.for_each_use(&mut |var| *facts.uses.entry(var).or_default() += 1);
        facts.see(&function.body, &function.vars);
        facts
    }

    fn see(&mut self, block: &Block, vars: &Arena<VarId, Var>) {
        for stmt in &block.stmts {
            if let Expr::Get { array, .. } = stmt.expr {
                *self.reads.entry(array).or_default() += 1;
            }
            // Numbers are read where they are named.
            let is_scalar = matches!(vars[stmt.var].ty, Type::Double | Type::Int | Type::Bool);
            match &stmt.expr {
                Expr::Fold(looped) | Expr::Loop(looped) => {
                    self.states.insert(looped.state);
                }
                Expr::While(looped) => {
                    self.states.insert(looped.state);
                }
                Expr::Component(tuple, k) if !is_scalar => {
                    self.names.insert(stmt.var, (*tuple, Some(*k)));
                }
                Expr::Get { array, .. } if !is_scalar => {
                    self.names.insert(stmt.var, (*array, None));
                }
                Expr::Zero => {
                    self.zeros.insert(stmt.var);
                }
                _ => {}
            }
            stmt.expr.blocks().into_iter().for_each(|block| self.see(block, vars));
            if self.is_sparse(&stmt.expr) {
                self.sparse.insert(stmt.var);
            }
            if let Expr::Sum { body, .. } = &stmt.expr
                && let Some(Expr::Tuple(fields)) = body.bound(body.result)
                && self.states_read(&stmt.expr).is_empty()
            {
                self.sums.insert(stmt.var, fields.iter().map(|field| self.sparse.contains(field)).collect());
            }
        }
    }

    /// Returns whether an expression adds to a few elements if it is offered an array.
    fn is_sparse(&self, expr: &Expr) -> bool {
        let ends = |block: &Block| self.sparse.contains(&block.result) || self.zeros.contains(&block.result);
        match expr {
            Expr::OneHot { .. } => true,
            Expr::Sum { body, .. } | Expr::Build { body, .. } => ends(body),
            Expr::If { then, otherwise, .. } => ends(then) && ends(otherwise),
            Expr::Component(tuple, k) => self.sums.get(tuple).is_some_and(|fields| fields[*k]),
            _ => false,
        }
    }

    /// Returns the number of reads of elements of an array.
    pub fn reads(&self, array: VarId) -> usize {
        self.reads.get(&array).copied().unwrap_or(0)
    }

    fn is_used_once(&self, var: VarId) -> bool {
        self.uses.get(&var) == Some(&1)
    }

    /// Returns the parts of states of loops that an expression reads.
    pub fn states_read(&self, expr: &Expr) -> BTreeSet<Part> {
        let mut found = BTreeSet::new();
        let mut see = |mut var: VarId| {
            let mut path = Vec::new();
            while let Some((whole, component)) = self.names.get(&var) {
                path.extend(*component);
                var = *whole;
            }
            if self.states.contains(&var) {
                path.reverse();
                found.insert((var, path));
            }
        };
        expr.for_each_operand(&mut see);
        expr.blocks().into_iter().for_each(|block| block.for_each_use(&mut see));
        found
    }

    fn write(&self, block: &mut Block, vars: &Arena<VarId, Var>) {
        for stmt in &mut block.stmts {
            stmt.expr.blocks_mut().into_iter().for_each(|block| self.write(block, vars));
        }
        let stmts = self.with_sums_in_order(std::mem::take(&mut block.stmts), vars);
        block.stmts = self.late(stmts, block.result);
    }

    /// Rewrites the sums of arrays: each starts with the terms that are made as a whole, and stands where it was
    /// completed.
    fn with_sums_in_order(&self, stmts: Vec<Stmt>, vars: &Arena<VarId, Var>) -> Vec<Stmt> {
        let code = Code { places: (0..).zip(&stmts).map(|(at, stmt)| (stmt.var, at)).collect(), stmts };
        let mut sums: BTreeMap<usize, Vec<Stmt>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for end in (0..code.stmts.len()).rev() {
            if let Some(tree) = self.tree(&code, vars, end, &mut seen)
                && tree.terms.iter().any(|term| self.is_sparse_term(&code, *term))
            {
                let Tree { sums: places, .. } = &tree;
                sums.extend(places.iter().map(|at| (*at, Vec::new())));
                sums.insert(end, self.written(&code, tree));
            }
        }
        let mut done = Vec::with_capacity(code.stmts.len());
        for (at, stmt) in code.stmts.into_iter().enumerate() {
            match sums.remove(&at) {
                Some(sum) => done.extend(sum),
                None => done.push(stmt),
            }
        }
        done
    }

    /// Returns the sum of arrays that statement `end` completes, unless it is part of one in `seen`.
    fn tree(&self, code: &Code, vars: &Arena<VarId, Var>, end: usize, seen: &mut BTreeSet<usize>) -> Option<Tree> {
        let root = &code.stmts[end];
        if !matches!((&root.expr, &vars[root.var].ty), (Expr::Plus(..), Type::Array(..))) || seen.contains(&end) {
            return None;
        }
        let (mut sums, mut terms, mut open) = (Vec::new(), Vec::new(), vec![root.var]);
        while let Some(var) = open.pop() {
            match code.sum(var) {
                Some((at, a, b)) if at == end || self.is_used_once(var) => {
                    seen.insert(at);
                    sums.push(at);
                    open.extend([b, a]);
                }
                _ => terms.push(var),
            }
        }
        Some(Tree { sums, terms })
    }

    /// Returns whether a term of a sum is sparse and moves there.
    fn is_sparse_term(&self, code: &Code, term: VarId) -> bool {
        self.sparse.contains(&term)
            && self.is_used_once(term)
            && code.places.get(&term).is_some_and(|at| self.is_free(&code.stmts[*at]))
    }

    /// Returns the statements of a sum in order, with the sparse terms last.
    fn written(&self, code: &Code, Tree { mut sums, mut terms }: Tree) -> Vec<Stmt> {
        terms.sort_by_key(|term| (self.is_sparse_term(code, *term), code.places.get(term).copied()));
        sums.sort_unstable();
        let mut terms = terms.into_iter();
        let mut whole = terms.next();
        let mut done = Vec::with_capacity(sums.len());
        for (at, term) in sums.into_iter().zip(terms) {
            let sum = &code.stmts[at];
            let expr = Expr::Plus(whole.unwrap_or(term), term);
            whole = Some(sum.var);
            done.push(Stmt { expr, ..sum.clone() });
        }
        done
    }

    /// Returns whether a statement may move behind others: not if it reads the state of a loop, which they may
    /// overwrite. No statement relies on the check of an index in another one.
    fn is_free(&self, stmt: &Stmt) -> bool {
        self.states_read(&stmt.expr).is_empty()
    }

    /// Moves sums of arrays and of tuples, their sparse terms, and arrays with one element changed, to their first use:
    /// until then, old memory may be read. The arrays to which the fields of a sum of tuples are added come before it.
    fn late(&self, stmts: Vec<Stmt>, result: VarId) -> Vec<Stmt> {
        let places: BTreeMap<VarId, usize> = (0..).zip(&stmts).map(|(at, stmt)| (stmt.var, at)).collect();
        // The statements that move to each one, in the order of its operands.
        let mut before: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut moved = BTreeSet::new();
        for (user, stmt) in stmts.iter().enumerate() {
            stmt.expr.for_each_use(&mut |var| {
                if let Some(at) = places.get(&var).filter(|at| self.moves(&stmts[**at], stmt)) {
                    before.entry(user).or_default().push(*at);
                    moved.insert(*at);
                }
            });
            let Expr::Plus(a, b) = stmt.expr else { continue };
            for (field, whole) in [(a, b), (b, a)] {
                let Some(Expr::Component(sum, _)) = places.get(&field).map(|at| &stmts[*at].expr) else { continue };
                if let (true, Some(sum), Some(whole)) =
                    (self.sums.contains_key(sum), places.get(sum), places.get(&whole))
                    && whole < sum
                    && self.moves(&stmts[*whole], stmt)
                {
                    before.entry(*sum).or_default().push(*whole);
                }
            }
        }
        let first = (0..stmts.len()).filter(|at| !moved.contains(at)).chain(places.get(&result).copied());
        let mut from: Vec<Option<Stmt>> = stmts.into_iter().map(Some).collect();
        let mut done = Vec::with_capacity(from.len());
        for at in first {
            let mut open = vec![at];
            while let Some(next) = open.last().copied() {
                match before.remove(&next) {
                    Some(first) => open.extend(first.into_iter().rev()),
                    None => {
                        done.extend(from[next].take());
                        open.pop();
                    }
                }
            }
        }
        done
    }

    /// Returns whether `stmt` moves to `user`, which uses it.
    fn moves(&self, stmt: &Stmt, user: &Stmt) -> bool {
        if matches!(stmt.expr, Expr::Plus(..))
            || stmt.expr.changed_array(Rows::Read, &|var| self.sparse.contains(&var)).is_some()
        {
            // An array that is made from the state of one loop is not moved behind changes of another one's.
            return self.states_read(&stmt.expr).len() <= 1;
        }
        // A sum of tuples stands where it, or the first of its fields, is used.
        let is_field = matches!(stmt.expr, Expr::Component(tuple, _) if self.sums.contains_key(&tuple));
        if is_field || self.sums.contains_key(&stmt.var) {
            return true;
        }
        let is_term = match user.expr {
            Expr::Plus(..) => self.sparse.contains(&stmt.var),
            // A term of the loop behind the sums that make its next state.
            Expr::Tuple(_) => matches!(stmt.expr, Expr::OneHot { .. }),
            Expr::OneHot { .. } => {
                matches!(stmt.expr, Expr::Build { .. } | Expr::Sum { .. } | Expr::If { .. } | Expr::OneHot { .. })
            }
            _ => false,
        };
        is_term && self.is_used_once(stmt.var) && self.is_free(stmt)
    }
}

/// Statements of a block.
struct Code {
    stmts: Vec<Stmt>,
    places: BTreeMap<VarId, usize>,
}

impl Code {
    /// Returns the position and the operands of `var` if it is the sum of two.
    fn sum(&self, var: VarId) -> Option<(usize, VarId, VarId)> {
        let at = *self.places.get(&var)?;
        match self.stmts[at].expr {
            Expr::Plus(a, b) => Some((at, a, b)),
            _ => None,
        }
    }
}

/// A sum of arrays: positions of its statements, and its terms.
struct Tree {
    sums: Vec<usize>,
    terms: Vec<VarId>,
}
