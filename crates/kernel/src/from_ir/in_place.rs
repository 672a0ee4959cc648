//! Which arrays of a loop's state are overwritten while the next state is made.
//!
//! In: the body of a loop with a state. Out: for each array of the state, whether what makes the next one may write into
//! the memory of the current one, what has to be saved before it does, and which builds touch one element only.
//!
//! **When it is right.** Let `m` be the first statement of the body that writes to the array. Then
//!
//! - no statement after `m` reads the current state, but what was saved of it;
//! - statements before `m` read what they like: they are done;
//! - what makes the array itself writes each place `p` once (`build`s and branches in each other), and whatever it reads of
//!   the current state on the way to `p` lies at `p`. So it is read before it is overwritten, and in no other iteration;
//! - where the new value of a place is the current one, nothing is written.
//!
//! What cannot be shown by these rules is made in a second place, and copied.
//!
//! **What is saved.** A row of the current state that is read too late is copied before `m`: to where it is wanted in the
//! end, if it is an element of the loop's result (a pivot row; in reverse mode all of a state that is kept), else to a place
//! of its own, if it is smaller than the array.
//!
//! **One element.** `build n (fun i -> if i == j then e else s[i])` changes element `j` alone. Such a build, and those that
//! are nested for matrices, becomes the statements of one iteration.
//!
//! Source: reuse of dead arrays in functional languages is old (Hudak and Bloss, *The aggregate update problem in functional
//! programming systems*, 1985); the rules here are those of in-place updates in Futhark, found instead of written.

use super::Lowering;
use super::layout::{self, Leaf, View, leaves};
use super::live::Live;
use super::offers::Target;
use crate::kernel::Reg;
use chainrule_base::Poly;
use chainrule_ir::{Block, Expr, Function, Size, Stmt, VarId};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Sums of sums nest as deep as a program is long; so deep is looked.
const MAX_DEPTH: u32 = 32;

/// So many rows are saved at most, each of which costs a copy.
const MAX_SAVES: usize = 4;

/// Bodies with more statements, times the arrays of the state, are not looked at.
const MAX_WORK: usize = 2_000_000;

/// How an array of the state is updated in its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Update {
    /// What is saved.
    pub saves: Vec<Save>,
    /// Builds that change one element of what is in their place.
    pub narrow: Vec<Narrow>,
}

/// Part of the current state that is read after it could have been overwritten.
#[derive(Clone, Debug)]
pub(super) struct Save {
    /// Before this statement of the body.
    pub before: usize,
    /// A variable, and which of its leaves.
    pub what: (VarId, usize),
    /// The leaf of the body's result which that is in the end.
    pub wanted: Option<usize>,
    /// Everything that is bound so far and lies inside of it, itself included.
    pub names: Vec<(VarId, usize)>,
}

/// A save with the place for it, where there is one.
#[derive(Clone, Debug)]
pub(super) struct Saving {
    pub save: Save,
    pub to: Option<View>,
}

/// A leaf of a build that is as it was where a condition does not hold, which says that the index is some number.
#[derive(Clone, Debug)]
pub(super) struct Narrow {
    /// What the build is bound to, and which of its leaves.
    pub leaf: (VarId, usize),
    /// Holds for one index alone.
    pub condition: VarId,
    /// That index.
    pub at: Size,
    /// Which part of the state it makes.
    pub path: Vec<Size>,
}

/// For each leaf of `state`, whether the body of its loop may update it in place; `wanted` tells whether the consumer of a
/// leaf of the body's result has a place for it. Linear in the body, for each array of the state.
pub(super) fn updates(
    function: &Function,
    live: &Live,
    state: VarId,
    body: &Block,
    wanted: &[bool],
) -> Vec<Option<Update>> {
    let types = leaves(function.ty(state));
    let mut defs = BTreeMap::new();
    define(body, &mut defs);
    let n_arrays = types.iter().filter(|ty| !ty.dims.is_empty()).count();
    if defs.len().saturating_mul(n_arrays) > MAX_WORK {
        return vec![None; types.len()];
    }
    let top: BTreeMap<VarId, usize> = body.stmts.iter().enumerate().map(|(idx, stmt)| (stmt.var, idx)).collect();
    let mut found = Vec::with_capacity(types.len());
    for (leaf, ty) in types.iter().enumerate() {
        if ty.dims.is_empty() {
            found.push(None);
            continue;
        }
        let (same, late, narrow) = (Vec::new(), BTreeSet::new(), Vec::new());
        let search = Search { function, live, defs: &defs, state, leaf, same, late, narrow };
        found.push(search.update(body, &top, wanted));
    }
    found
}

fn define<'f>(block: &'f Block, defs: &mut BTreeMap<VarId, (usize, &'f Expr)>) {
    for (idx, stmt) in block.stmts.iter().enumerate() {
        defs.insert(stmt.var, (idx, &stmt.expr));
        stmt.expr.blocks().into_iter().for_each(|inner| define(inner, defs));
    }
}

/// One leaf of a state on the way through the body.
struct Search<'f> {
    function: &'f Function,
    live: &'f Live,
    /// What is bound in the body, where in its block, and to what.
    defs: &'f BTreeMap<VarId, (usize, &'f Expr)>,
    state: VarId,
    leaf: usize,
    /// Integers that are equal where the search is.
    same: Vec<(Size, Size)>,
    /// What of the current state is read too late or at another place: leaves of variables.
    late: BTreeSet<(VarId, usize)>,
    narrow: Vec<Narrow>,
}

/// Where in the state: the indices on the way.
type Path = Vec<Size>;

impl<'f> Search<'f> {
    fn update(mut self, body: &'f Block, top: &BTreeMap<VarId, usize>, wanted: &[bool]) -> Option<Update> {
        if self.old(body.result, self.leaf).is_some_and(|path| path.is_empty()) {
            // It stays what it is.
            return Some(Update::default());
        }
        let first = self.block(body, self.leaf, &[]);
        if first == usize::MAX {
            return None;
        }
        let is_early = |var: VarId| var == self.state || top.get(&var).is_some_and(|idx| *idx < first);
        // For each late read the smallest part of the state that has a name in time.
        let mut parts: BTreeMap<(usize, Path), (VarId, usize)> = BTreeMap::new();
        for (var, leaf) in &self.late {
            let what = self.chain(*var, *leaf).into_iter().find(|(var, _)| is_early(*var))?;
            let path = self.old(what.0, what.1)?;
            parts.entry((path.len(), path)).or_insert(what);
        }
        let results: Vec<(usize, Path)> = wanted
            .iter()
            .enumerate()
            .filter(|(idx, wanted)| **wanted && *idx != self.leaf)
            .filter_map(|(idx, _)| Some((idx, self.old(body.result, idx)?)))
            .collect();
        let destination = |path: &Path| results.iter().find(|(_, of)| of == path).map(|(idx, _)| *idx);
        if let Some(whole) = destination(&Path::new()).filter(|_| !parts.is_empty()) {
            parts = BTreeMap::from([((0, Path::new()), (self.state, self.leaf))]);
            debug_assert!(whole != self.leaf);
        }
        if parts.len() > MAX_SAVES {
            return None;
        }
        let names: Vec<(VarId, usize)> = std::iter::once(self.state)
            .chain(body.stmts.iter().take(first).map(|stmt| stmt.var))
            .flat_map(|var| (0..layout::count(self.function.ty(var))).map(move |leaf| (var, leaf)))
            .filter(|(var, leaf)| self.is_array(*var, *leaf) && self.old(*var, *leaf).is_some())
            .collect();
        let mut saves = Vec::new();
        for ((rank, path), what) in parts {
            let wanted = destination(&path);
            if rank == 0 && wanted.is_none() {
                return None;
            }
            let inside = |name: &&(VarId, usize)| self.old(name.0, name.1).is_some_and(|of| of.starts_with(&path));
            let names = names.iter().filter(inside).copied().collect();
            saves.push(Save { before: first, what, wanted, names });
        }
        Some(Update { saves, narrow: self.narrow })
    }

    /// The names of a leaf of a variable and of what it is part of, from the inside.
    fn chain(&self, var: VarId, leaf: usize) -> Vec<(VarId, usize)> {
        let mut names = vec![(var, leaf)];
        let (mut var, mut leaf) = (var, leaf);
        while let Some((next, of)) = self.inside(var, leaf) {
            names.push((next, of));
            (var, leaf) = (next, of);
        }
        names
    }

    /// What a leaf of a variable is another name of, or part of.
    fn inside(&self, var: VarId, leaf: usize) -> Option<(VarId, usize)> {
        match self.defs.get(&var)?.1 {
            Expr::Component(tuple, k) => {
                let chainrule_ir::Type::Tuple(fields, _) = self.function.ty(*tuple) else { return None };
                Some((*tuple, leaf + fields.iter().take(*k).map(layout::count).sum::<usize>()))
            }
            Expr::Tuple(args) => layout::argument(self.function, args, leaf),
            Expr::Get { array, .. } => Some((*array, leaf)),
            _ => None,
        }
    }

    /// Where in the current state a leaf of a variable lies, if it does.
    fn old(&self, mut var: VarId, mut leaf: usize) -> Option<Path> {
        let mut path = Path::new();
        while var != self.state {
            if let Some((_, Expr::Get { index, .. })) = self.defs.get(&var) {
                path.push(self.integer(*index));
            }
            (var, leaf) = self.inside(var, leaf)?;
        }
        path.reverse();
        (leaf == self.leaf).then_some(path)
    }

    fn integer(&self, var: VarId) -> Size {
        self.function.vars[var].value.clone().unwrap_or_else(|| Size::var(var))
    }

    fn is_array(&self, var: VarId, leaf: usize) -> bool {
        layout::is_array(self.function.ty(var), leaf)
    }

    /// Looks at a block whose result's leaf `leaf` goes to the place `at`. Returns the first statement that writes there.
    fn block(&mut self, block: &'f Block, leaf: usize, at: &[Size]) -> usize {
        let mut makers = BTreeSet::new();
        let mut first = usize::MAX;
        if self.is_array(block.result, leaf) {
            first = self.value(block, (block.result, leaf), at, &mut makers, 0);
        }
        for (idx, stmt) in block.stmts.iter().enumerate().filter(|(idx, _)| !makers.contains(idx)) {
            self.reads(stmt, (idx < first).then_some(at));
        }
        // The rest of the result is looked at when this may be there.
        for other in (0..layout::count(self.function.ty(block.result))).filter(|other| *other != leaf) {
            self.read((block.result, other), None);
        }
        first
    }

    /// Looks at what makes an array for the place `at`, in `block`, and notes the statements that it has looked at.
    fn value(
        &mut self,
        block: &'f Block,
        (mut var, mut leaf): (VarId, usize),
        at: &[Size],
        makers: &mut BTreeSet<usize>,
        depth: u32,
    ) -> usize {
        loop {
            if let Some(path) = self.old(var, leaf) {
                if path != at {
                    self.late.insert((var, leaf));
                }
                return usize::MAX;
            }
            let Some((idx, expr)) = self.defs.get(&var).copied() else { return usize::MAX };
            if block.stmts.get(idx).is_none_or(|stmt| stmt.var != var) {
                return usize::MAX;
            }
            if !matches!(expr, Expr::Tuple(_) | Expr::Component(..)) {
                makers.insert(idx);
                let stmt = &block.stmts[idx];
                return self.maker(block, (idx, stmt), leaf, at, makers, depth);
            }
            let Some(next) = self.inside(var, leaf) else { return usize::MAX };
            (var, leaf) = next;
        }
    }

    fn maker(
        &mut self,
        block: &'f Block,
        (idx, stmt): (usize, &'f Stmt),
        leaf: usize,
        at: &[Size],
        makers: &mut BTreeSet<usize>,
        depth: u32,
    ) -> usize {
        let row = |index: Size| at.iter().cloned().chain([index]).collect::<Path>();
        match &stmt.expr {
            Expr::Build { index, body, .. } => {
                let inner = row(Size::var(*index));
                self.block(body, leaf, &inner);
                self.narrow(stmt.var, *index, body, leaf, at);
            }
            Expr::If { condition, then, otherwise } => {
                let n = self.same.len();
                self.assume(*condition);
                self.block(then, leaf, at);
                self.same.truncate(n);
                self.block(otherwise, leaf, at);
            }
            Expr::Loop { index, state, init, body, .. } if leaf >= layout::count(self.function.ty(*state)) => {
                let chainrule_ir::Type::Tuple(parts, _) = self.function.ty(stmt.var) else { return 0 };
                let n_terms = parts.get(2).map_or(0, layout::count);
                if leaf + n_terms < layout::count(self.function.ty(stmt.var)) {
                    self.all_reads(*init, Some(at));
                    self.block(body, leaf, &row(Size::var(*index)));
                } else {
                    self.reads(stmt, None);
                }
            }
            Expr::Fold { state, init, .. } | Expr::Loop { state, init, .. } | Expr::While { state, init, .. } => {
                // What the loop begins with is the current state as it is, or something else, which is copied.
                if self.old(*init, leaf).is_none_or(|path| path != at) {
                    self.read((*init, leaf), None);
                }
                for other in (0..layout::count(self.function.ty(*state))).filter(|other| *other != leaf) {
                    self.read((*init, other), None);
                }
                stmt.expr.blocks().into_iter().for_each(|block| self.block_reads(block, None));
            }
            Expr::Array(args) => {
                let mut first = idx;
                for (k, arg) in (0..).zip(args) {
                    if !self.is_array(*arg, leaf) {
                        continue;
                    }
                    if depth == MAX_DEPTH {
                        self.late.insert((self.state, self.leaf));
                        return 0;
                    }
                    first = first.min(self.value(block, (*arg, leaf), &row(Size::constant(k)), makers, depth + 1));
                }
                return first;
            }
            Expr::Plus(a, b) if depth < MAX_DEPTH => {
                let [of_a, of_b] = [a, b].map(|var| self.old(*var, leaf).is_some_and(|path| path == at));
                let place = |this: &Self, var: VarId| this.defs.get(&var).map_or(0, |(idx, _)| *idx);
                let (first, second) = match (of_a, of_b) {
                    (true, _) => (*a, *b),
                    (_, true) => (*b, *a),
                    _ if place(self, *a) <= place(self, *b) => (*a, *b),
                    _ => (*b, *a),
                };
                let began = self.value(block, (first, leaf), at, makers, depth + 1);
                let mut second_at = idx;
                match self.defs.get(&second).copied() {
                    Some((at, _)) if block.stmts.get(at).is_some_and(|stmt| stmt.var == second) => {
                        makers.insert(at);
                        self.reads(&block.stmts[at], None);
                        second_at = at;
                    }
                    _ => {}
                }
                self.read((second, leaf), None);
                return idx.min(began).min(second_at);
            }
            // It lies somewhere else, and is copied in the end.
            Expr::Get { .. } => return usize::MAX,
            _ => self.reads(stmt, None),
        }
        idx
    }

    /// Notes what `stmt` reads of the current state, in its blocks as well, unless it lies inside of `at`.
    fn reads(&mut self, stmt: &'f Stmt, at: Option<&[Size]>) {
        if !self.live.needed[stmt.var] {
            return;
        }
        match &stmt.expr {
            Expr::Tuple(_) | Expr::Component(..) => return,
            Expr::Get { array, index, .. } => {
                // Of an array that is another name; of a number it is read now.
                for leaf in 0..layout::count(self.function.ty(stmt.var)) {
                    if !self.is_array(stmt.var, leaf)
                        && let Some(mut path) = self.old(*array, leaf)
                    {
                        path.push(self.integer(*index));
                        if !at.is_some_and(|at| self.starts_with(&path, at)) {
                            self.late.insert((*array, leaf));
                        }
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
        if var == self.state || self.defs.get(&var).is_some_and(|(_, expr)| is_name(expr)) {
            (0..layout::count(self.function.ty(var))).for_each(|leaf| self.read((var, leaf), at));
        }
    }

    /// All of an array is read.
    fn read(&mut self, (var, leaf): (VarId, usize), at: Option<&[Size]>) {
        if self.is_array(var, leaf)
            && let Some(path) = self.old(var, leaf)
            && !at.is_some_and(|at| self.starts_with(&path, at))
        {
            self.late.insert((var, leaf));
        }
    }

    fn starts_with(&self, path: &[Size], at: &[Size]) -> bool {
        let same =
            |a: &Size, b: &Size| a == b || self.same.iter().any(|(x, y)| (x == a && y == b) || (x == b && y == a));
        path.len() >= at.len() && path.iter().zip(at).all(|(a, b)| same(a, b))
    }

    /// Learns what is equal where `condition` holds.
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

    /// Notes whether a build for the place `at` leaves all as it is but for one index.
    fn narrow(&mut self, var: VarId, index: VarId, body: &'f Block, leaf: usize, at: &[Size]) {
        let inner: Path = at.iter().cloned().chain([Size::var(index)]).collect();
        for (condition, one) in equalities(self.function, index, body) {
            if self.stays(body, (body.result, leaf), &inner, condition) {
                self.narrow.push(Narrow { leaf: (var, leaf), condition, at: one, path: at.to_vec() });
                return;
            }
        }
    }

    /// Whether a leaf of a variable of `block` is what is at `at` where `condition` does not hold.
    fn stays(&self, block: &'f Block, (var, leaf): (VarId, usize), at: &[Size], condition: VarId) -> bool {
        let (mut var, mut leaf) = (var, leaf);
        loop {
            if let Some(path) = self.old(var, leaf) {
                return path == at;
            }
            let Some((idx, expr)) = self.defs.get(&var).copied() else { return false };
            if block.stmts.get(idx).is_none_or(|stmt| stmt.var != var) {
                return false;
            }
            match expr {
                Expr::Tuple(_) | Expr::Component(..) => match self.inside(var, leaf) {
                    Some(next) => (var, leaf) = next,
                    None => return false,
                },
                Expr::Build { index, body, .. } => {
                    let inner: Path = at.iter().cloned().chain([Size::var(*index)]).collect();
                    return self.stays(body, (body.result, leaf), &inner, condition);
                }
                Expr::If { condition: c, then, otherwise } => {
                    let stays = |branch: &'f Block| self.stays(branch, (branch.result, leaf), at, condition);
                    return stays(otherwise) && (self.is_part(condition, *c) || stays(then));
                }
                Expr::Op(Op::Select, args) => match args.as_slice() {
                    [c, _, otherwise] if self.is_part(condition, *c) => var = *otherwise,
                    _ => return false,
                },
                _ => return false,
            }
        }
    }

    /// Whether `whole` holds only where `part` does.
    fn is_part(&self, part: VarId, whole: VarId) -> bool {
        let mut open = vec![whole];
        while let Some(var) = open.pop() {
            if var == part {
                return true;
            }
            if let Some((_, Expr::Op(Op::And, args))) = self.defs.get(&var) {
                open.extend(args);
            }
        }
        false
    }
}

/// Whether what an expression makes is another name of its operands, or of parts of them.
fn is_name(expr: &Expr) -> bool {
    matches!(expr, Expr::Tuple(_) | Expr::Component(..) | Expr::Get { .. })
}

/// The conditions in the body of a loop that hold for one index alone, which is known before the loop.
fn equalities(function: &Function, index: VarId, body: &Block) -> Vec<(VarId, Size)> {
    let mut inner = BTreeSet::from([index]);
    bound_in(body, &mut inner);
    let integer = |var: VarId| function.vars[var].value.clone().unwrap_or_else(|| Size::var(var));
    let mut found = Vec::new();
    let mut open = vec![body];
    while let Some(block) = open.pop() {
        for stmt in &block.stmts {
            if let (Expr::Op(Op::Eq, args), None) = (&stmt.expr, &function.vars[stmt.var].value)
                && let [a, b] = args.as_slice()
                && *function.ty(*a) == chainrule_ir::Type::Int
            {
                let (a, b) = (integer(*a), integer(*b));
                for (one, other) in [(&a, &b), (&b, &a)] {
                    // index = other, or index + rest = other.
                    if let Some((slope, rest)) = one.split_linear(index)
                        && slope.as_constant() == Some(1)
                    {
                        let at = other.sub(&rest);
                        if !at.vars().iter().any(|var| inner.contains(var)) {
                            found.push((stmt.var, at));
                            break;
                        }
                    }
                }
            }
            open.extend(stmt.expr.blocks());
        }
    }
    found
}

fn bound_in(block: &Block, found: &mut BTreeSet<VarId>) {
    for stmt in &block.stmts {
        found.insert(stmt.var);
        found.extend(stmt.expr.binders());
        stmt.expr.blocks().into_iter().for_each(|inner| bound_in(inner, found));
    }
}

impl Lowering<'_> {
    /// The condition that holds for the only element that a build changes of what is in its place, and where that is.
    pub(super) fn only_element(&mut self, var: VarId, targets: &[Target]) -> Option<(VarId, Poly<Reg>)> {
        let mut found = None;
        for (leaf, target) in targets.iter().enumerate() {
            let (narrow, state) = self.narrow.get(&(var, leaf)).cloned()?;
            let Target::Write(view) = target else { return None };
            let place: View = narrow.path.iter().fold(state, |view, index| view.row(&self.size(index)));
            if place != *view || found.as_ref().is_some_and(|(condition, _)| *condition != narrow.condition) {
                return None;
            }
            found = Some((narrow.condition, narrow.at));
        }
        let (condition, at) = found?;
        Some((condition, self.size(&at)))
    }

    /// Copies what is overwritten too early; everything that lies in it lies in the copy from then on.
    pub(super) fn save(&mut self, saving: &Saving) {
        let (var, leaf) = saving.save.what;
        let Some(Leaf::Array(from)) = self.values[var].as_ref().and_then(|value| value.get(leaf)).cloned() else {
            self.b.bug("what is saved of a state is no array");
            return;
        };
        let to = match &saving.to {
            Some(place) => place.clone(),
            None => {
                let class = self.b.buffers[from.buffer].class;
                let place = self.b.array(class, from.dims.clone(), self.span(var, None));
                self.b.keep(place.buffer, usize::MAX);
                place
            }
        };
        self.b.settle(&Leaf::Array(from.clone()), &to);
        for (name, leaf) in &saving.save.names {
            if let Some(Leaf::Array(view)) = self.values[*name].as_mut().and_then(|value| value.get_mut(*leaf)) {
                *view = View {
                    buffer: to.buffer,
                    offset: view.offset.sub(&from.offset).add(&to.offset),
                    dims: view.dims.clone(),
                };
            }
        }
    }
}
