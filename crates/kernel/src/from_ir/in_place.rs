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
//! **Steps.** Where an array is made of the state, and the next state of that array, both may be made in the place of the
//! state, one after the other, if each may take the place of the one before by the rules above.
//!
//! **What stays.** Where a build leaves elements as they are whose index a condition names, as in
//! `build n (fun i -> if i < k then s[i] else ...)`, these may be read at any time: nobody writes them.
//!
//! **One element.** `build n (fun i -> if i == j then e else s[i])` changes element `j` alone. Such a build, and those that
//! are nested for matrices, becomes the statements of one iteration.
//!
//! | module | owns |
//! | --- | --- |
//! | `search` | what making one array in the place of another needs |
//! | `kept` | which elements a build leaves as they are |
//!
//! Source: reuse of dead arrays in functional languages is old (Hudak and Bloss, *The aggregate update problem in functional
//! programming systems*, 1985); the rules here are those of in-place updates in Futhark, found instead of written.

mod kept;
mod search;

use super::Lowering;
use super::layout::{self, Leaf, LeafType, View, leaves};
use super::live::Live;
use super::offers::{Offer, Offers, Target};
use crate::kernel::Reg;
use chainrule_base::Poly;
use chainrule_ir::{Block, Expr, Function, Size, VarId};
use search::{Search, argument_of};
use std::collections::BTreeMap;

/// Bodies with more statements, times the arrays of the state, are not looked at; for steps not with more than these.
const MAX_WORK: usize = 2_000_000;
const MAX_WORK_FOR_STEPS: usize = 100_000;

/// So many arrays are made in the place of one state at most, and of so many each is looked for.
const MAX_STEPS: usize = 8;
const MAX_SOURCES: usize = 4;

/// How an array of the state is updated in its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Update {
    /// What is saved.
    pub saves: Vec<Save>,
    /// What is made in that place, in turn; the last is what the next state is.
    pub steps: Vec<Step>,
}

/// An array that is made in the place of the state, or of the step before.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What it is bound to, and which of its leaves.
    pub made: (VarId, usize),
    /// Builds that change one element of what is in their place.
    pub narrow: Vec<Narrow>,
}

/// A step on its way: where it is to be, and the builds of the step after it, which are narrow if it is there.
#[derive(Clone, Debug)]
pub(super) struct Making {
    pub leaf: usize,
    pub place: View,
    pub narrow: Vec<Narrow>,
}

/// Part of the current state that is read after it could have been overwritten.
#[derive(Clone, Debug)]
pub(super) struct Save {
    /// Before the statement that binds this.
    pub before: VarId,
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
/// leaf of the body's result has a place for it. Linear in the body, for each array of the state and each step.
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

/// The way from one state to the next.
struct Steps<'f> {
    function: &'f Function,
    live: &'f Live,
    body: &'f Block,
    /// What is bound in the body, where in its block, and to what.
    defs: &'f BTreeMap<VarId, (usize, &'f Expr)>,
    /// What is bound in the body itself, and where.
    top: &'f BTreeMap<VarId, usize>,
    wanted: &'f [bool],
    /// The state, and which of its leaves, of this type.
    state: (VarId, usize),
    ty: &'f LeafType,
}

impl<'f> Steps<'f> {
    fn update(&self, most_steps: usize) -> Option<Update> {
        let next = (self.body.result, self.state.1);
        if self.from(self.state).is_all(next) {
            // It stays what it is.
            return Some(Update::default());
        }
        self.way(self.maker(next), most_steps, &mut BTreeMap::new())
    }

    fn from(&self, old: (VarId, usize)) -> Search<'f> {
        Search::new(self.function, self.live, self.defs, old)
    }

    /// How `new` comes to be in the place of the state, by as many steps as there can be.
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

    /// What an array of the body is bound to when it is made, and not another name of it.
    fn maker(&self, (mut var, mut leaf): (VarId, usize)) -> (VarId, usize) {
        while let Some((_, Expr::Tuple(_) | Expr::Component(..))) = self.defs.get(&var)
            && let Some(next) = argument_of(self.function, self.defs, var, leaf)
        {
            (var, leaf) = next;
        }
        (var, leaf)
    }

    /// Whether what makes an array writes all of it, and no other statement parts of it, which then lie in it.
    fn makes_whole(&self, var: VarId) -> bool {
        let expr = self.defs.get(&var).map(|(_, expr)| *expr);
        matches!(
            expr,
            Some(
                Expr::Build { .. }
                    | Expr::If { .. }
                    | Expr::Sum { .. }
                    | Expr::Fold { .. }
                    | Expr::Loop { .. }
                    | Expr::While { .. }
            )
        )
    }

    /// Arrays of the state's type that the body makes and that what makes `new` reads, last ones first.
    fn sources(&self, new: (VarId, usize)) -> Vec<(VarId, usize)> {
        let Some((_, expr)) = self.defs.get(&new.0) else { return Vec::new() };
        let mut found: Vec<(usize, (VarId, usize))> = Vec::new();
        let mut open = vec![*expr];
        while let Some(expr) = open.pop() {
            let mut read = |var: VarId| {
                for leaf in 0..layout::count(self.function.ty(var)) {
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
    /// Makes ready for an update of the state at `place`: offers that place to the steps on the way to the next one, and
    /// notes what is to be saved; what makes the next state was offered `offers`.
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
            let n_leaves = layout::count(self.function.ty(var));
            let offers = self.offers[var].get_or_insert_default();
            offers.resize(n_leaves.max(offers.len()), None);
            // Somebody else may have a place for it already.
            offers[leaf].get_or_insert_with(|| Offer::Write(place.clone()));
            self.steps.entry(var).or_default().push(Making { leaf, place: place.clone(), narrow: next.narrow.clone() });
        }
    }

    /// What is bound to `var` is made: the step after it knows where.
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

    /// Copies what the statement that binds `var` overwrites too early; everything that lies in it lies in the copy from then
    /// on.
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
                *view = View {
                    buffer: to.buffer,
                    offset: view.offset.sub(&from.offset).add(&to.offset),
                    dims: view.dims.clone(),
                };
            }
        }
    }
}
