//! Requirements for making an array in the memory of another.
//!
//! In: the body of a loop, an old array (the state, or an array made from it), and an array that is made later. Out:
//! the parts of the old array to save, and the builds that change one element only; or nothing, if the new array cannot
//! be made in the memory of the old one.

use super::super::layout;
use super::super::live::Live;
use super::kept::{self, Kept};
use super::{Narrow, Save};
use chainrule_ir::{Block, Expr, Function, Size, StateLoop, Stmt, Type, VarId, WhileLoop};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum depth of nested array literals that the search follows.
const MAX_DEPTH: u32 = 32;

/// Maximum number of saved rows, each of which costs a copy.
const MAX_SAVES: usize = 4;

/// Search through the body for one array.
pub(super) struct Search<'f> {
    pub function: &'f Function,
    live: &'f Live,
    /// Definitions in the body: position in the block, and expression.
    pub defs: &'f BTreeMap<VarId, (usize, &'f Expr)>,
    /// Array whose memory is taken: variable and leaf.
    old: (VarId, usize),
    /// Pairs of integers that are equal at the current position.
    pub same: Vec<(Size, Size)>,
    /// Elements that nothing writes at the current position.
    kept: Vec<Kept>,
    /// Whether elements of the innermost build that this branch does not write keep their old value.
    others_stay: bool,
    /// Builds around the current position, by their indices.
    builds: Vec<(VarId, &'f Block)>,
    /// Parts of the old array that are read too late or at another element: leaves of variables.
    late: BTreeSet<(VarId, usize)>,
    /// Saves inside branches.
    saves: Vec<Save>,
    narrow: Vec<Narrow>,
}

/// Path into the old array: its indices.
pub(super) type Path = Vec<Size>;

/// Parts of the old array, the largest first, each with a variable and leaf that denote it.
type Parts = BTreeMap<(usize, Path), (VarId, usize)>;

impl<'f> Search<'f> {
    pub fn new(
        function: &'f Function,
        live: &'f Live,
        defs: &'f BTreeMap<VarId, (usize, &'f Expr)>,
        old: (VarId, usize),
    ) -> Self {
        let (same, kept, builds) = Default::default();
        let (late, saves, narrow) = Default::default();
        Self { function, live, defs, old, same, kept, others_stay: true, builds, late, saves, narrow }
    }

    /// Returns whether this is the old array or an alias of it.
    pub fn is_all(&self, (var, leaf): (VarId, usize)) -> bool {
        self.old(var, leaf).is_some_and(|path| path.is_empty())
    }

    /// Returns the requirements for making `new`, which `body` binds, in the memory of the old array.
    pub fn replace(
        mut self,
        body: &'f Block,
        top: &BTreeMap<VarId, usize>,
        new: (VarId, usize),
        wanted: &[bool],
    ) -> Option<(Vec<Save>, Vec<Narrow>)> {
        let first = self.made(body, new, &[]);
        let before = body.stmts.get(first)?.var;
        let is_early = |var: VarId| var == self.old.0 || top.get(&var).is_some_and(|idx| *idx < first);
        // For each late read, the smallest part of the old array that is bound early enough.
        let mut parts = Parts::new();
        for (var, leaf) in &self.late {
            let what = self.chain(*var, *leaf).into_iter().find(|(var, _)| is_early(*var))?;
            let path = self.old(what.0, what.1)?;
            parts.entry((path.len(), path)).or_insert(what);
        }
        let results: Vec<(usize, Path)> = wanted
            .iter()
            .enumerate()
            .filter(|(idx, wanted)| **wanted && (body.result, *idx) != new)
            .filter_map(|(idx, _)| Some((idx, self.old(body.result, idx)?)))
            .collect();
        let destination = |path: &Path| results.iter().find(|(_, of)| of == path).map(|(idx, _)| *idx);
        if destination(&Path::new()).is_some() && !parts.is_empty() {
            parts = Parts::from([((0, Path::new()), self.old)]);
        }
        if parts.len() > MAX_SAVES || parts.keys().any(|(rank, path)| *rank == 0 && destination(path).is_none()) {
            return None;
        }
        let bound = body.stmts.iter().take(first).map(|stmt| stmt.var).filter(|var| *var != self.old.0);
        let names = self.names(std::iter::once(self.old.0).chain(bound));
        let saves =
            parts.into_iter().map(|((_, path), what)| self.save_of(before, &path, what, destination(&path), &names));
        let saves = saves.chain(self.saves.iter().cloned()).collect();
        Some((saves, self.narrow))
    }

    /// Analyses a branch that makes the element at `at`. If that is the whole array, parts of the old array that are
    /// bound early enough in the branch are saved there.
    fn part(&mut self, block: &'f Block, leaf: usize, at: &[Size]) {
        if !at.is_empty() {
            self.block(block, leaf, at);
            return;
        }
        let before = std::mem::take(&mut self.late);
        let first = self.block(block, leaf, &[]);
        let late = std::mem::replace(&mut self.late, before);
        let Some(maker) = block.stmts.get(first).map(|stmt| stmt.var) else {
            self.late.extend(late);
            return;
        };
        let bound: BTreeSet<VarId> = block.stmts[..first].iter().map(|stmt| stmt.var).collect();
        let mut parts = Parts::new();
        for (var, leaf) in late {
            let name = self.chain(var, leaf).into_iter().find(|(var, _)| bound.contains(var));
            match name.and_then(|what| Some((what, self.old(what.0, what.1)?))) {
                Some((what, path)) if !path.is_empty() && parts.len() < MAX_SAVES => {
                    parts.entry((path.len(), path)).or_insert(what);
                }
                _ => {
                    self.late.insert((var, leaf));
                }
            }
        }
        let names = self.names(bound.into_iter());
        for ((_, path), what) in parts {
            self.saves.push(self.save_of(maker, &path, what, None, &names));
        }
    }

    /// Returns the arrays among these variables that lie in the old array.
    fn names(&self, vars: impl Iterator<Item = VarId>) -> Vec<(VarId, usize)> {
        vars.flat_map(|var| (0..self.function.ty(var).n_leaves()).map(move |leaf| (var, leaf)))
            .filter(|(var, leaf)| self.is_array(*var, *leaf) && self.old(*var, *leaf).is_some())
            .collect()
    }

    fn save_of(
        &self,
        before: VarId,
        path: &[Size],
        what: (VarId, usize),
        wanted: Option<usize>,
        names: &[(VarId, usize)],
    ) -> Save {
        let inside = |name: &&(VarId, usize)| self.old(name.0, name.1).is_some_and(|of| of.starts_with(path));
        Save { before, what, wanted, names: names.iter().filter(inside).copied().collect() }
    }

    /// Returns the aliases of a leaf and of the arrays that contain it, from the inside out.
    fn chain(&self, var: VarId, leaf: usize) -> Vec<(VarId, usize)> {
        let mut names = vec![(var, leaf)];
        let (mut var, mut leaf) = (var, leaf);
        while let Some((next, of)) = self.inside(var, leaf) {
            names.push((next, of));
            (var, leaf) = (next, of);
        }
        names
    }

    /// Returns the variable and leaf that a leaf is an alias or a part of.
    pub fn inside(&self, var: VarId, leaf: usize) -> Option<(VarId, usize)> {
        argument_of(self.function, self.defs, var, leaf)
    }

    /// Returns the path of a leaf in the old array, if it lies there.
    pub fn old(&self, mut var: VarId, mut leaf: usize) -> Option<Path> {
        let mut path = Path::new();
        while var != self.old.0 {
            if let Some((_, Expr::Get { index, .. })) = self.defs.get(&var) {
                path.push(self.integer(*index));
            }
            (var, leaf) = self.inside(var, leaf)?;
        }
        path.reverse();
        (leaf == self.old.1).then_some(path)
    }

    pub fn integer(&self, var: VarId) -> Size {
        self.function.vars[var].value.clone().unwrap_or_else(|| Size::var(var))
    }

    fn is_array(&self, var: VarId, leaf: usize) -> bool {
        layout::is_array(self.function.ty(var), leaf)
    }

    /// Returns whether a variable is bound before the build with this index, which is around the current position.
    pub fn is_bound_before(&self, var: VarId, index: VarId) -> bool {
        let mut inner = BTreeSet::from([index]);
        let body = self.builds.iter().find(|(of, _)| *of == index).map(|(_, body)| *body);
        body.is_some_and(|body| {
            kept::bound_in(body, &mut inner);
            !inner.contains(&var)
        })
    }

    /// Analyses a block whose result's leaf `leaf` goes to `at`. Returns the first statement that writes there.
    fn block(&mut self, block: &'f Block, leaf: usize, at: &[Size]) -> usize {
        self.made(block, (block.result, leaf), at)
    }

    /// Analyses an array that is made in a block and is only part of its result. Returns the first statement that
    /// writes it.
    fn made(&mut self, block: &'f Block, new: (VarId, usize), at: &[Size]) -> usize {
        let mut makers = BTreeSet::new();
        let mut first = usize::MAX;
        if self.is_array(new.0, new.1) {
            first = self.value(block, new, at, &mut makers, 0);
        }
        for (idx, stmt) in block.stmts.iter().enumerate().filter(|(idx, _)| !makers.contains(idx)) {
            self.reads(stmt, (idx < first).then_some(at));
        }
        // The rest of the result is read when the array may be written already.
        self.leaves_but(block.result, new);
        first
    }

    /// Analyses the producer of an array for `at`, in `block`, and records the statements that it analysed.
    fn value(
        &mut self,
        block: &'f Block,
        (mut var, mut leaf): (VarId, usize),
        at: &[Size],
        makers: &mut BTreeSet<usize>,
        depth: u32,
    ) -> usize {
        // Sums of sums nest as deep as a program is long, and the innermost may be the first to write.
        let mut first = usize::MAX;
        loop {
            if let Some(path) = self.old(var, leaf) {
                if path != at {
                    self.read_at((var, leaf), &path, None);
                }
                return first;
            }
            let Some((idx, expr)) = self.defs.get(&var).copied() else { return first };
            if block.stmts.get(idx).is_none_or(|stmt| stmt.var != var) {
                return first;
            }
            match expr {
                Expr::Tuple(_) | Expr::Component(..) => {
                    let Some(next) = self.inside(var, leaf) else { return first };
                    (var, leaf) = next;
                }
                Expr::Plus(a, b) => {
                    makers.insert(idx);
                    let (operand, second_at) = self.plus(block, (*a, *b), leaf, at, makers);
                    first = first.min(idx).min(second_at);
                    var = operand;
                }
                _ => {
                    makers.insert(idx);
                    return first.min(self.maker(block, idx, leaf, at, makers, depth));
                }
            }
        }
    }

    /// Analyses the operand of a sum that is added to the other one. Returns the other one, which may be made at `at`,
    /// and the statement that adds the first if the block makes it.
    fn plus(
        &mut self,
        block: &'f Block,
        (a, b): (VarId, VarId),
        leaf: usize,
        at: &[Size],
        makers: &mut BTreeSet<usize>,
    ) -> (VarId, usize) {
        let bound = |this: &Self, var: VarId| {
            let (idx, _) = this.defs.get(&var).copied()?;
            block.stmts.get(idx).is_some_and(|stmt| stmt.var == var).then_some(idx)
        };
        let is_there =
            |this: &Self, var: VarId| bound(this, var).is_none() && this.old(var, leaf).is_some_and(|path| path == at);
        // If the block makes both, the first may be made there.
        let (first, second) = match (is_there(self, a), is_there(self, b)) {
            (true, _) => (a, b),
            (_, true) => (b, a),
            _ if bound(self, a) <= bound(self, b) => (a, b),
            _ => (b, a),
        };
        let second_at = bound(self, second);
        if let Some(idx) = second_at {
            makers.insert(idx);
            self.reads(&block.stmts[idx], None);
        }
        self.read((second, leaf), None);
        [first, second].into_iter().for_each(|var| self.leaves_but(var, (var, leaf)));
        (first, second_at.unwrap_or(usize::MAX))
    }

    fn maker(
        &mut self,
        block: &'f Block,
        idx: usize,
        leaf: usize,
        at: &[Size],
        makers: &mut BTreeSet<usize>,
        depth: u32,
    ) -> usize {
        let stmt = &block.stmts[idx];
        let row = |index: Size| at.iter().cloned().chain([index]).collect::<Path>();
        match &stmt.expr {
            Expr::Build { index, body, .. } => {
                let inner = row(Size::var(*index));
                let before = (self.late.clone(), self.saves.len());
                let others_stay = std::mem::replace(&mut self.others_stay, true);
                self.builds.push((*index, body));
                self.block(body, leaf, &inner);
                self.builds.pop();
                self.others_stay = others_stay;
                self.narrow.extend(kept::only_one(self, (stmt.var, leaf), *index, body, at));
                // One number is written, after everything that it is computed from was read. If it is part of a row,
                // other rows may be written by then.
                if self.writes_one_number(stmt) {
                    let inside = |name: &(VarId, usize)| {
                        self.old(name.0, name.1).is_some_and(|path| self.starts_with(&path, at))
                    };
                    let late: BTreeSet<_> =
                        self.late.iter().filter(|name| before.0.contains(name) || !inside(name)).copied().collect();
                    self.late = late;
                    if at.is_empty() {
                        self.saves.truncate(before.1);
                    }
                }
            }
            Expr::If { condition, then, otherwise } => {
                let (n, n_kept, others_stay) = (self.same.len(), self.kept.len(), self.others_stay);
                let stays = |this: &Self, branch: &Block| this.old(branch.result, leaf).is_some_and(|path| path == at);
                self.assume(*condition);
                self.others_stay = others_stay && stays(self, otherwise);
                if self.others_stay {
                    self.kept.extend(kept::where_it_is(self, *condition, false, at));
                }
                self.part(then, leaf, at);
                self.same.truncate(n);
                self.kept.truncate(n_kept);
                self.others_stay = others_stay && stays(self, then);
                if self.others_stay {
                    self.kept.extend(kept::where_it_is(self, *condition, true, at));
                }
                self.part(otherwise, leaf, at);
                self.kept.truncate(n_kept);
                self.others_stay = others_stay;
            }
            Expr::Loop(StateLoop { index, state, init, body, .. }) if leaf >= self.function.ty(*state).n_leaves() => {
                let chainrule_ir::Type::Tuple(parts, _) = self.function.ty(stmt.var) else { return 0 };
                let n_terms = parts.get(2).map_or(0, Type::n_leaves);
                if leaf + n_terms < self.function.ty(stmt.var).n_leaves() {
                    self.all_reads(*init, Some(at));
                    let (element, inner) = ((body.result, leaf), row(Size::var(*index)));
                    // An element that is the state, or part of it, is saved right there, since the state may be
                    // overwritten later.
                    if self.chain(body.result, leaf).last().is_some_and(|(root, _)| root == state) {
                        body.stmts.iter().for_each(|stmt| self.reads(stmt, None));
                        self.leaves_but(body.result, element);
                    } else {
                        self.block(body, leaf, &inner);
                    }
                } else {
                    self.reads(stmt, None);
                }
            }
            Expr::Fold(StateLoop { init, .. })
            | Expr::Loop(StateLoop { init, .. })
            | Expr::While(WhileLoop { init, .. }) => {
                // The initial value of the loop is the current state itself, or another array, which is copied.
                if self.old(*init, leaf).is_none_or(|path| path != at) {
                    self.read((*init, leaf), None);
                }
                self.leaves_but(*init, (*init, leaf));
                stmt.expr.blocks().into_iter().for_each(|block| self.block_reads(block, None));
            }
            Expr::Array(args) => {
                let mut first = idx;
                for (k, arg) in (0..).zip(args) {
                    self.leaves_but(*arg, (*arg, leaf));
                    if !self.is_array(*arg, leaf) {
                        continue;
                    }
                    if depth == MAX_DEPTH {
                        self.late.insert(self.old);
                        return 0;
                    }
                    first = first.min(self.value(block, (*arg, leaf), &row(Size::constant(k)), makers, depth + 1));
                }
                return first;
            }
            // It lies in other memory, and is copied in the end.
            Expr::Get { .. } => return usize::MAX,
            _ => self.reads(stmt, None),
        }
        idx
    }

    /// Returns whether a build changes one number of an array, and makes no other array.
    fn writes_one_number(&self, mut stmt: &'f Stmt) -> bool {
        loop {
            let Expr::Build { body, .. } = &stmt.expr else { return false };
            let of = self.function.ty(stmt.var);
            let Some(narrow) = self.narrow.iter().find(|narrow| narrow.leaf == (stmt.var, 0)) else { return false };
            if of.n_leaves() != 1 {
                return false;
            }
            if !self.is_array(body.result, 0) {
                return true;
            }
            // The rows of a matrix: the row that changes is such a build.
            let choice = body.bound(body.result);
            let Some(Expr::If { condition, then, .. }) = choice else { return false };
            let Some(row) = then.stmts.iter().find(|stmt| stmt.var == then.result) else { return false };
            if *condition != narrow.condition {
                return false;
            }
            stmt = row;
        }
    }

    /// Records the reads of the current state by `stmt` and its blocks, except those inside of `at`.
    fn reads(&mut self, stmt: &'f Stmt, at: Option<&[Size]>) {
        if !self.live.needed[stmt.var] {
            return;
        }
        match &stmt.expr {
            Expr::Tuple(_) | Expr::Component(..) => return,
            Expr::Get { array, index, .. } => {
                // For an array this is an alias; a number is read now.
                for leaf in 0..self.function.ty(stmt.var).n_leaves() {
                    if !self.is_array(stmt.var, leaf)
                        && let Some(mut path) = self.old(*array, leaf)
                    {
                        path.push(self.integer(*index));
                        self.read_at((*array, leaf), &path, at);
                    }
                }
                return;
            }
            _ => {}
        }
        let mut operands = Vec::new();
        stmt.expr.for_each_operand(&mut |var| operands.push(var));
        operands.into_iter().for_each(|var| self.all_reads(var, at));
        let n = self.same.len();
        if let Expr::If { condition, then, otherwise } = &stmt.expr {
            self.assume(*condition);
            self.block_reads(then, at);
            self.same.truncate(n);
            self.block_reads(otherwise, at);
        } else {
            stmt.expr.blocks().into_iter().for_each(|block| self.block_reads(block, at));
        }
    }

    fn block_reads(&mut self, block: &'f Block, at: Option<&[Size]>) {
        block.stmts.iter().for_each(|stmt| self.reads(stmt, at));
        self.all_reads(block.result, at);
    }

    fn all_reads(&mut self, var: VarId, at: Option<&[Size]>) {
        if var == self.old.0 || self.defs.get(&var).is_some_and(|(_, expr)| is_name(expr)) {
            (0..self.function.ty(var).n_leaves()).for_each(|leaf| self.read((var, leaf), at));
        }
    }

    /// Records a read of a whole array.
    fn read(&mut self, (var, leaf): (VarId, usize), at: Option<&[Size]>) {
        if self.is_array(var, leaf)
            && let Some(path) = self.old(var, leaf)
        {
            self.read_at((var, leaf), &path, at);
        }
    }

    /// Records reads of the other leaves of a variable, which happen when `this` may be written already.
    fn leaves_but(&mut self, var: VarId, this: (VarId, usize)) {
        let leaves = (0..self.function.ty(var).n_leaves()).map(|leaf| (var, leaf));
        leaves.filter(|leaf| *leaf != this).for_each(|leaf| self.read(leaf, None));
    }

    /// Records a read of the part at `path`.
    fn read_at(&mut self, what: (VarId, usize), path: &[Size], at: Option<&[Size]>) {
        if !at.is_some_and(|at| self.starts_with(path, at))
            && !self.kept.iter().any(|kept| kept.holds(path, &self.same))
        {
            self.late.insert(what);
        }
    }

    fn starts_with(&self, path: &[Size], at: &[Size]) -> bool {
        let same =
            |a: &Size, b: &Size| a == b || self.same.iter().any(|(x, y)| (x == a && y == b) || (x == b && y == a));
        path.len() >= at.len() && path.iter().zip(at).all(|(a, b)| same(a, b))
    }

    /// Adds the equalities that `condition` implies.
    fn assume(&mut self, condition: VarId) {
        let mut open = vec![condition];
        while let Some((_, Expr::Op(op, args))) = open.pop().and_then(|var| self.defs.get(&var)) {
            match (op, args.as_slice()) {
                (Op::And, parts) => open.extend(parts),
                (Op::Eq, [a, b]) if *self.function.ty(*a) == chainrule_ir::Type::Int => {
                    self.same.push((self.integer(*a), self.integer(*b)));
                }
                _ => {}
            }
        }
    }
}

/// Returns whether the value of an expression is an alias of its operands, or of parts of them.
fn is_name(expr: &Expr) -> bool {
    matches!(expr, Expr::Tuple(_) | Expr::Component(..) | Expr::Get { .. })
}

/// Returns the variable and leaf that leaf `leaf` of `var` is an alias or a part of, by its definition.
pub(super) fn argument_of(
    function: &Function,
    defs: &BTreeMap<VarId, (usize, &Expr)>,
    var: VarId,
    leaf: usize,
) -> Option<(VarId, usize)> {
    match defs.get(&var)?.1 {
        Expr::Component(tuple, k) => {
            let chainrule_ir::Type::Tuple(fields, _) = function.ty(*tuple) else { return None };
            Some((*tuple, leaf + fields.iter().take(*k).map(Type::n_leaves).sum::<usize>()))
        }
        Expr::Tuple(args) => layout::argument(function, args, leaf),
        Expr::Get { array, .. } => Some((*array, leaf)),
        _ => None,
    }
}
