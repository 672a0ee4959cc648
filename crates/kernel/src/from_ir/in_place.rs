//! In-place updates of a loop's state: arrays of the state that the next state may overwrite.
//!
//! In: the body of a loop with a state. Out: for each array of the state, whether the next array may be written into
//! the memory of the current one, the parts of the current array to save before that, and the builds that change one
//! element only.
//!
//! **Conditions.** Let `m` be the first statement of the body that writes to the array. Then
//!
//! - no statement after `m` reads the current state, except its saved parts;
//! - statements before `m` may read anything: they are complete;
//! - the producer of the array writes each element `p` once (nested `build`s and branches), and everything that it
//!   reads of the current state in order to compute `p` lies at `p`. So it is read before it is overwritten, and in no
//!   other iteration;
//! - an element whose new value is the current one is not written.
//!
//! An array for which these rules cannot be shown is made in a second buffer, and copied.
//!
//! **Saved parts.** A row of the current state that is read too late is copied before `m`: directly to its destination,
//! if it is an element of the loop's result (a pivot row; in reverse mode a whole saved state), else to a buffer of its
//! own, if it is smaller than the array.
//!
//! **Steps.** If the next state is computed through intermediate arrays of the same type, each may be made in the
//! memory of the state in turn, provided that each may overwrite the previous one by the rules above.
//!
//! **Unchanged elements.** A build may leave elements unchanged whose index a condition names, as in
//! `build n (fun i -> if i < k then s[i] else ...)`. These may be read at any time, since nothing writes them.
//!
//! **One element.** `build n (fun i -> if i == j then e else s[i])` changes element `j` only. Such a build, also nested
//! for matrices, becomes the statements of one iteration. If the element is a number, the build may read the whole
//! array: everything is read before that number is written.
//!
//! | module | owns |
//! | --- | --- |
//! | `search` | requirements for making one array in the memory of another |
//! | `kept` | elements that a build leaves unchanged |
//!
//! Source: reuse of dead arrays in functional languages is old (Hudak and Bloss, *The aggregate update problem in
//! functional programming systems*, 1985). The rules are those of in-place updates in Futhark, here inferred.

mod kept;
mod search;

use super::Lowering;
use super::layout::{Leaf, LeafType, View, leaves};
use super::live::Live;
use super::offers::{Offer, Offers, Target};
use crate::kernel::Reg;
use chainrule_base::Poly;
use chainrule_ir::{Block, Expr, Function, Size, VarId};
use search::{Search, argument_of};
use std::collections::BTreeMap;

/// Maximum number of statements of a body times arrays of the state (or steps) for which the analysis runs.
const MAX_WORK: usize = 2_000_000;
const MAX_WORK_FOR_STEPS: usize = 100_000;

/// Maximum number of arrays made in the memory of one state, and of candidates for each.
const MAX_STEPS: usize = 8;
const MAX_SOURCES: usize = 4;

/// In-place update of an array of the state.
#[derive(Clone, Debug, Default)]
pub(super) struct Update {
    /// Parts of the current state to save.
    pub saves: Vec<Save>,
    /// Arrays made in that memory in turn; the last one is the next state.
    pub steps: Vec<Step>,
}

/// An array made in the memory of the state, or of the previous step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Variable that it is bound to, and the leaf.
    pub made: (VarId, usize),
    /// Builds that change one element of the array whose memory they take.
    pub narrow: Vec<Narrow>,
}

/// A pending step: its destination, and the one-element builds of the following step.
#[derive(Clone, Debug)]
pub(super) struct Making {
    pub leaf: usize,
    pub place: View,
    pub narrow: Vec<Narrow>,
}

/// Part of the current state that is read after its memory may have been overwritten.
#[derive(Clone, Debug)]
pub(super) struct Save {
    /// The copy is made before the statement that binds this variable.
    pub before: VarId,
    /// Variable and leaf.
    pub what: (VarId, usize),
    /// Leaf of the body's result that equals it.
    pub wanted: Option<usize>,
    /// Variables bound so far that lie inside of it, itself included.
    pub names: Vec<(VarId, usize)>,
}

/// A save with its destination, if there is one.
#[derive(Clone, Debug)]
pub(super) struct Saving {
    pub save: Save,
    pub to: Option<View>,
}

/// Leaf of a build that changes only where a condition holds, which compares the index with a number.
#[derive(Clone, Debug)]
pub(super) struct Narrow {
    /// Variable that the build is bound to, and the leaf.
    pub leaf: (VarId, usize),
    /// Condition that holds for one index only.
    pub condition: VarId,
    /// The index.
    pub at: Size,
    /// Part of the state that it makes.
    pub path: Vec<Size>,
}

/// Returns, for each leaf of `state`, its in-place update if the loop's body allows one. `wanted` returns whether the
/// consumer of a leaf of the body's result has a destination for it. Linear in the body, for each array of the state
/// and each step.
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
    let work = defs.len().saturating_mul(n_arrays);
    if work > MAX_WORK {
        return vec![None; types.len()];
    }
    let most_steps = if work > MAX_WORK_FOR_STEPS { 1 } else { MAX_STEPS };
    let top: BTreeMap<VarId, usize> = body.stmts.iter().enumerate().map(|(idx, stmt)| (stmt.var, idx)).collect();
    let update = |(leaf, ty): (usize, &LeafType)| {
        if ty.dims.is_empty() {
            return None;
        }
        let steps = Steps { function, live, body, defs: &defs, top: &top, wanted, state: (state, leaf), ty };
        steps.update(most_steps)
    };
    types.iter().enumerate().map(update).collect()
}

fn define<'f>(block: &'f Block, defs: &mut BTreeMap<VarId, (usize, &'f Expr)>) {
    for (idx, stmt) in block.stmts.iter().enumerate() {
        defs.insert(stmt.var, (idx, &stmt.expr));
        stmt.expr.blocks().into_iter().for_each(|inner| define(inner, defs));
    }
}

/// Search for the steps from one state to the next.
struct Steps<'f> {
    function: &'f Function,
    live: &'f Live,
    body: &'f Block,
    /// Definitions in the body and its blocks: position in the block, and expression.
    defs: &'f BTreeMap<VarId, (usize, &'f Expr)>,
    /// Positions of the definitions in the body itself.
    top: &'f BTreeMap<VarId, usize>,
    wanted: &'f [bool],
    /// State variable and leaf.
    state: (VarId, usize),
    ty: &'f LeafType,
}

impl<'f> Steps<'f> {
    fn update(&self, most_steps: usize) -> Option<Update> {
        let next = (self.body.result, self.state.1);
        if self.from(self.state).is_all(next) {
            // The state is unchanged.
            return Some(Update::default());
        }
        self.way(self.maker(next), most_steps, &mut BTreeMap::new())
    }

    fn from(&self, old: (VarId, usize)) -> Search<'f> {
        Search::new(self.function, self.live, self.defs, old)
    }

    /// Finds the steps by which `new` is made in the memory of the state, as many as possible.
    fn way(
        &self,
        new: (VarId, usize),
        n_steps: usize,
        known: &mut BTreeMap<(VarId, usize), Option<Update>>,
    ) -> Option<Update> {
        if let Some(found) = known.get(&new) {
            return found.clone();
        }
        let step = |old| {
            let (saves, narrow) = self.from(old).replace(self.body, self.top, new, self.wanted)?;
            Some((saves, Step { made: new, narrow }))
        };
        let by_source = |old| {
            let (saves, step) = step(old)?;
            let mut way = self.way(old, n_steps - 1, known)?;
            way.saves.extend(saves);
            way.steps.push(step);
            Some(way)
        };
        let sources = if n_steps > 1 { self.sources(new) } else { Vec::new() };
        let mut found = sources.into_iter().find_map(by_source);
        if found.is_none() {
            found = step(self.state).map(|(saves, step)| Update { saves, steps: vec![step] });
        }
        known.insert(new, found.clone());
        found
    }

    /// Returns the variable that an array of the body is bound to when it is made, not an alias.
    fn maker(&self, (mut var, mut leaf): (VarId, usize)) -> (VarId, usize) {
        while let Some((_, Expr::Tuple(_) | Expr::Component(..))) = self.defs.get(&var)
            && let Some(next) = argument_of(self.function, self.defs, var, leaf)
        {
            (var, leaf) = next;
        }
        (var, leaf)
    }

    /// Returns whether one statement writes the whole array, with no part made by another statement.
    fn makes_whole(&self, var: VarId) -> bool {
        let expr = self.defs.get(&var).map(|(_, expr)| *expr);
        matches!(
            expr,
            Some(
                Expr::Build { .. }
                    | Expr::If { .. }
                    | Expr::Sum { .. }
                    | Expr::Fold(_)
                    | Expr::Loop(_)
                    | Expr::While(_)
                    | Expr::Plus(..)
            )
        )
    }

    /// Returns the arrays of the state's type that the body makes and the producer of `new` reads, last ones first.
    fn sources(&self, new: (VarId, usize)) -> Vec<(VarId, usize)> {
        // The term of a sum that is made first has the memory.
        let (mut var, mut expr) = (new.0, None);
        while let Some((_, made)) = self.defs.get(&var) {
            expr = Some(*made);
            let Expr::Plus(a, b) = made else { break };
            var = if self.top.get(a) <= self.top.get(b) { *a } else { *b };
        }
        let Some(expr) = expr else { return Vec::new() };
        let mut found: Vec<(usize, (VarId, usize))> = Vec::new();
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            let mut read = |var: VarId| {
                for leaf in 0..self.function.ty(var).n_leaves() {
                    let (maker, leaf) = self.maker((var, leaf));
                    let Some(idx) = self.top.get(&maker).filter(|_| maker != new.0 && self.makes_whole(maker)) else {
                        continue;
                    };
                    let is_same = || leaves(self.function.ty(maker)).get(leaf).is_some_and(|ty| ty.is_like(self.ty));
                    if !found.iter().any(|(_, of)| *of == (maker, leaf)) && is_same() {
                        found.push((*idx, (maker, leaf)));
                    }
                }
            };
            expr.for_each_operand(&mut read);
            for block in expr.blocks() {
                read(block.result);
                open.extend(block.stmts.iter().map(|stmt| &stmt.expr));
            }
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.truncate(MAX_SOURCES);
        found.into_iter().map(|(_, of)| of).collect()
    }
}

impl Lowering<'_> {
    /// Prepares an update of the state at `place`: offers that memory to the steps, and records the parts to save. The
    /// producer of the next state was offered `offers`.
    pub(super) fn plan_update(&mut self, update: &Update, place: &View, offers: &Offers) {
        for save in &update.saves {
            let to = match save.wanted.and_then(|leaf| offers.get(leaf)) {
                Some(Some(Offer::Write(view))) => Some(view.clone()),
                _ => None,
            };
            self.savings.entry(save.before).or_default().push(Saving { save: save.clone(), to });
        }
        let steps = &update.steps;
        if let Some(first) = steps.first() {
            self.learn_narrow(&first.narrow, place);
        }
        for (step, next) in steps.iter().zip(steps.iter().skip(1)) {
            let (var, leaf) = step.made;
            let n_leaves = self.function.ty(var).n_leaves();
            let offers = self.offers[var].get_or_insert_default();
            offers.resize(n_leaves.max(offers.len()), None);
            // Another consumer may have offered a destination already.
            offers[leaf].get_or_insert_with(|| Offer::Write(place.clone()));
            self.steps.entry(var).or_default().push(Making { leaf, place: place.clone(), narrow: next.narrow.clone() });
        }
    }

    /// Records that `var` is made, so that the following step knows its memory.
    pub(super) fn made(&mut self, var: VarId) {
        for making in self.steps.remove(&var).unwrap_or_default() {
            let value = self.values[var].as_ref().and_then(|value| value.get(making.leaf));
            if matches!(value, Some(Leaf::Array(view)) if *view == making.place) {
                self.learn_narrow(&making.narrow, &making.place);
            }
        }
    }

    fn learn_narrow(&mut self, narrow: &[Narrow], place: &View) {
        for narrow in narrow {
            self.narrow.insert(narrow.leaf, (narrow.clone(), place.clone()));
        }
    }

    /// Returns the condition and the index of the only element that a build changes.
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

    /// Copies the parts that the statement binding `var` overwrites too early. Variables inside them refer to the copy
    /// from here on.
    pub(super) fn save_before(&mut self, var: VarId) {
        self.savings.remove(&var).unwrap_or_default().iter().for_each(|saving| self.save(saving));
    }

    fn save(&mut self, saving: &Saving) {
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
                // Another name of the saved part may have been read at another register with the same index.
                let is_whole = view.dims.len() == from.dims.len();
                let offset = if is_whole { to.offset.clone() } else { view.offset.sub(&from.offset).add(&to.offset) };
                *view = View { buffer: to.buffer, offset, dims: view.dims.clone() };
            }
        }
    }
}
