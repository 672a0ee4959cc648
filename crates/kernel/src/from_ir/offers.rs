//! Destination passing: the consumer of a value offers the memory where it wants it.
//!
//! An offer to *write* names memory that the value may be written to directly. An offer to *add* names an accumulator
//! of a sum: the producer may add its terms there as they arise, and returns that they are delivered
//! ([`Leaf::Delivered`]). A sum of one-hot arrays thus touches one element a term, and a zero touches nothing. Nothing
//! reads an accumulator before its sum is complete. Since a delivered value cannot be read either, an offer to add is
//! made only to a variable without another use.
//!
//! Terms added as they arise are added in another order: `a + (b + c)` as `(a + b) + c`. Where that is not allowed, an
//! operand that is itself a sum is made in memory of its own ([`adds_several`]), unless its terms are added to distinct
//! elements (module `distinct`), and only sums of loops have accumulators: these are never -0.0, so that zeros need not
//! be added.

use super::Lowering;
use super::layout::{self, Leaf, View};
use crate::kernel::Reg;
use chainrule_base::{Poly, Span};
use chainrule_ir::{Block, Expr, Size, VarId};
use chainrule_ops::Semantics;
use std::collections::{BTreeMap, BTreeSet};

/// Destination of a leaf.
#[derive(Clone, Debug)]
pub(super) enum Offer {
    /// Write here.
    Write(View),
    /// Add here.
    Add(Accumulator),
}

/// Offers for the leaves of a value.
pub(super) type Offers = Vec<Option<Offer>>;

/// Memory of the leaves of a value; `None` for scalars.
pub(super) type Places = Vec<Option<View>>;

/// Part of an accumulator: a path of rows into a view.
#[derive(Clone, Debug)]
pub(super) struct Accumulator {
    view: View,
    rows: Vec<Row>,
    /// Statement of the block that writes it first; only later ones may add to it.
    since: Option<usize>,
}

/// An element of an array.
#[derive(Clone, Debug)]
enum Row {
    /// The row with this index.
    At(i64),
    /// The row of a one-hot array; its index may be computed later.
    Hot {
        index: VarId,
        /// Check of the index: length of the array, and source of the check.
        check: Option<(Size, Option<Span>)>,
    },
}

impl Offer {
    /// Returns the accumulator of the whole of `view`.
    pub fn add(view: View) -> Self {
        Self::Add(Accumulator { view, rows: Vec::new(), since: None })
    }

    /// Returns the accumulator of the whole of `view`, which statement `since` of the block writes.
    fn add_since(view: View, since: Option<usize>) -> Self {
        Self::Add(Accumulator { view, rows: Vec::new(), since })
    }

    /// Returns whether a statement of the block may take this offer.
    fn is_open_to(&self, idx: usize) -> bool {
        match self {
            Self::Write(_) => true,
            Self::Add(to) => to.since.is_none_or(|since| since < idx),
        }
    }

    /// Returns the accumulator of element `index`.
    fn at(&self, index: i64) -> Self {
        match self {
            Self::Write(view) => Self::Write(view.row(&Poly::constant(index))),
            Self::Add(to) => Self::Add(to.row(Row::At(index))),
        }
    }
}

impl Accumulator {
    fn row(&self, row: Row) -> Self {
        let mut this = self.clone();
        this.rows.push(row);
        this
    }
}

/// Returns whether an expression writes its value directly to an offered destination.
fn writes_at_once(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Build { .. }
            | Expr::Sum { .. }
            | Expr::If { .. }
            | Expr::Array(_)
            | Expr::Zero
            | Expr::OneHot { .. }
            | Expr::Plus(..)
    )
}

/// Returns whether an expression makes new arrays rather than aliases of its operands.
fn makes_anew(expr: &Expr) -> bool {
    writes_at_once(expr) || matches!(expr, Expr::Fold(_) | Expr::Loop(_) | Expr::While(_))
}

/// Returns whether an expression may add to an array that an earlier statement has written.
fn adds_late(expr: &Expr) -> bool {
    matches!(expr, Expr::Build { .. } | Expr::Sum { .. } | Expr::If { .. } | Expr::OneHot { .. })
}

/// Removes the offers to add.
fn written_only(offers: &mut Offers) {
    offers.iter_mut().for_each(|offer| *offer = offer.take().filter(|offer| matches!(offer, Offer::Write(_))));
}

/// Returns whether an expression would add several terms to one element of an accumulator.
fn adds_several(expr: &Expr) -> bool {
    matches!(expr, Expr::Plus(..) | Expr::Sum { .. } | Expr::Loop(_))
}

/// Returns the first statement from `from` on that can add `term`, or a part of it, to an array.
fn first_to_add(block: &Block, position: &BTreeMap<VarId, usize>, mut term: VarId, from: usize) -> Option<usize> {
    let mut adds = *position.get(&term)?;
    while let Some(Expr::OneHot { value: next, .. } | Expr::Component(next, _)) =
        position.get(&term).map(|idx| &block.stmts[*idx].expr)
    {
        term = *next;
        if let Some(idx) = position.get(&term).filter(|idx| **idx >= from && makes_anew(&block.stmts[**idx].expr)) {
            adds = adds.min(*idx);
        }
    }
    Some(adds)
}

/// Maximum number of statements between an array and a sum for which other uses of the array are examined.
const MAX_BETWEEN: usize = 512;

/// Components of a general loop: the array of its elements, and the sum of its terms.
pub(super) const ELEMENTS: usize = 1;
pub(super) const TERMS: usize = 2;

impl Lowering<'_> {
    /// Propagates the offers for the block's result to the statements that make it.
    pub(super) fn spread(&mut self, block: &Block, offers: Offers) {
        if offers.iter().all(Option::is_none) {
            return;
        }
        self.offer(block.result, offers);
        let mut position: BTreeMap<VarId, usize> = BTreeMap::new();
        if block.stmts.iter().any(|stmt| matches!(stmt.expr, Expr::Plus(..))) {
            position = block.stmts.iter().enumerate().map(|(idx, stmt)| (stmt.var, idx)).collect();
        }
        for (idx, stmt) in block.stmts.iter().enumerate().rev() {
            let Some(mut offers) = self.offers[stmt.var].clone() else { continue };
            if !offers.iter().flatten().all(|offer| offer.is_open_to(idx)) {
                offers.iter_mut().for_each(|offer| *offer = offer.take().filter(|offer| offer.is_open_to(idx)));
                self.offers[stmt.var] = Some(offers.clone());
            }
            if self.semantics == Semantics::Strict && adds_several(&stmt.expr) && !self.distinct.contains(&stmt.var) {
                written_only(&mut offers);
                self.offers[stmt.var] = Some(offers.clone());
            }
            match &stmt.expr {
                Expr::Tuple(args) => {
                    let mut rest = offers.as_slice();
                    for arg in args {
                        let (own, others) = rest.split_at(self.function.ty(*arg).n_leaves().min(rest.len()));
                        rest = others;
                        self.offer(*arg, own.to_vec());
                    }
                }
                Expr::Array(args) => {
                    for (idx, arg) in (0..).zip(args) {
                        let row = |offer: &Option<Offer>| offer.as_ref().map(|offer| offer.at(idx));
                        self.offer(*arg, offers.iter().map(row).collect());
                    }
                }
                Expr::Component(tuple, k) => {
                    let leaves = self.component_leaves(*tuple, *k);
                    let mut whole: Offers = vec![None; self.function.ty(*tuple).n_leaves()];
                    if leaves.len() == offers.len() && leaves.end <= whole.len() {
                        whole[leaves].clone_from_slice(&offers);
                        self.offer_through(*tuple, whole, self.live.only_component(*tuple, *k));
                    }
                }
                Expr::OneHot { index, value, proved } => {
                    let check = match self.function.ty(stmt.var) {
                        chainrule_ir::Type::Array(size, _) if !proved => Some((size.clone(), stmt.span)),
                        _ => None,
                    };
                    let row = |offer: &Option<Offer>| match offer {
                        Some(Offer::Add(to)) => {
                            Some(Offer::Add(to.row(Row::Hot { index: *index, check: check.clone() })))
                        }
                        _ => None,
                    };
                    self.offer(*value, offers.iter().map(row).collect());
                }
                Expr::Plus(a, b) if a != b => {
                    let (first, second) = if position.get(a) <= position.get(b) { (*a, *b) } else { (*b, *a) };
                    let maker = |var| position.get(&var).and_then(|idx| block.stmts.get(*idx)).map(|stmt| &stmt.expr);
                    // An accumulator changes, so no other use may read it later, under any alias.
                    let (mut made, mut depth, mut part) = (first, 0, 0);
                    let mut alone = self.live.used_once(first);
                    while alone && let Some(Expr::Component(tuple, k)) = maker(made) {
                        alone = self.live.only_component(*tuple, *k);
                        (made, depth, part) = (*tuple, depth + 1, *k);
                    }
                    // In nested tuples only a sum, or the terms of a loop, whose arrays would otherwise be cleared and
                    // added as a whole; newly assembled states are equally fast.
                    let is_made = maker(made).is_some_and(|expr| match depth {
                        0 | 1 => makes_anew(expr),
                        _ => matches!(expr, Expr::Sum { .. }) || (matches!(expr, Expr::Loop(_)) && part == TERMS),
                    });
                    let read_before = !alone && is_made && self.is_read_before(block, &position, first, second, idx);
                    if alone && is_made {
                        self.offer(first, offers.clone());
                    } else if read_before {
                        let mut offers = offers.clone();
                        written_only(&mut offers);
                        self.offer(first, offers);
                    }
                    // A written array may be added to once it exists.
                    let is_late = match maker(second) {
                        Some(Expr::Component(tuple, k)) => {
                            matches!(maker(*tuple), Some(Expr::Sum { .. })) && self.live.only_component(*tuple, *k)
                        }
                        made => made.is_some_and(adds_late),
                    };
                    let is_written = match maker(made) {
                        Some(Expr::Loop(_)) => depth > 0 && (part == ELEMENTS || part == TERMS),
                        expr => depth == 0 && expr.is_some_and(writes_at_once),
                    };
                    let onto =
                        self.semantics == Semantics::Algebraic && (alone || read_before) && is_written && is_late;
                    if !is_made
                        && self.semantics == Semantics::Algebraic
                        && maker(second).is_some_and(adds_late)
                        && let [Some(Offer::Write(view))] = &offers[..]
                        && self.is_read_before_state(block, &position, [first, second], view, idx)
                    {
                        self.offer(second, vec![Some(Offer::add(view.clone()))]);
                        continue;
                    }
                    let taken = self.offers[first].clone().unwrap_or_default();
                    let added = |(offer, taken): (Option<Offer>, Option<Offer>)| match (offer, taken) {
                        // A scalar stays in a register.
                        (Some(Offer::Write(view)), Some(Offer::Write(other)))
                            if onto && view == other && !view.dims.is_empty() =>
                        {
                            Some(Offer::add_since(view, position.get(&made).copied()))
                        }
                        (offer @ Some(Offer::Add(_)), _) => offer,
                        _ => None,
                    };
                    let taken = taken.into_iter().chain(std::iter::repeat(None));
                    self.offer(second, offers.into_iter().zip(taken).map(added).collect());
                }
                _ => {}
            }
        }
    }

    /// Returns whether statement `sum`, which adds `second` to `first`, is the last to access `first`, under any alias,
    /// and everything else has read it before a statement that makes `second` can add to it.
    fn is_read_before(
        &self,
        block: &Block,
        position: &BTreeMap<VarId, usize>,
        first: VarId,
        second: VarId,
        sum: usize,
    ) -> bool {
        let Some(from) = position.get(&first) else { return false };
        // A value that was made before `first` is not added by itself.
        let Some(adds) = first_to_add(block, position, second, from + 1) else { return false };
        if sum.saturating_sub(*from) > MAX_BETWEEN {
            return false;
        }
        let mut names = BTreeSet::from([first]);
        for (idx, stmt) in block.stmts.iter().enumerate().take(sum).skip(from + 1) {
            let mut is_read = false;
            stmt.expr.for_each_use(&mut |var| is_read |= names.contains(&var));
            if is_read && idx >= adds {
                return false;
            }
            if is_read && matches!(stmt.expr, Expr::Get { .. } | Expr::Component(..) | Expr::Tuple(_)) {
                names.insert(stmt.var);
            }
        }
        names.into_iter().all(|var| self.is_scalar(var) || self.live.end(var) <= sum)
    }

    /// Returns whether a variable has no array.
    fn is_scalar(&self, var: VarId) -> bool {
        layout::leaves(self.function.ty(var)).iter().all(|leaf| leaf.dims.is_empty())
    }

    /// Returns whether statement `sum` adds `second` to `first`, the state of a loop whose memory `view` it takes, and
    /// everything else in the block has read `first`, under any name, before a statement that makes `second` can add to
    /// it.
    fn is_read_before_state(
        &mut self,
        block: &Block,
        position: &BTreeMap<VarId, usize>,
        [first, second]: [VarId; 2],
        view: &View,
        sum: usize,
    ) -> bool {
        // The variable from outside the block, and the leaf of it that `first` is.
        let (mut state, mut leaf) = (first, 0);
        while let Some(at) = position.get(&state) {
            let Expr::Component(tuple, k) = block.stmts[*at].expr else { return false };
            leaf += self.component_leaves(tuple, k).start;
            state = tuple;
        }
        let is_at = |leaf: &Leaf| matches!(leaf, Leaf::Array(at) if at == view);
        if !self.values[state].as_ref().and_then(|value| value.get(leaf)).is_some_and(is_at) {
            return false;
        }
        let Some(adds) = first_to_add(block, position, second, 0) else { return false };
        // What has the array, as which leaf.
        let mut names = BTreeMap::from([(state, leaf)]);
        for (idx, stmt) in block.stmts.iter().enumerate() {
            let name = match &stmt.expr {
                Expr::Component(tuple, k) => {
                    let own = self.component_leaves(*tuple, *k);
                    let name = names.get(tuple).filter(|leaf| own.contains(leaf)).map(|leaf| leaf - own.start);
                    names.extend(name.map(|leaf| (stmt.var, leaf)));
                    continue;
                }
                Expr::Get { array, .. } => names.get(array).copied().filter(|_| !self.is_scalar(stmt.var)),
                _ => None,
            };
            let mut is_read = false;
            stmt.expr.for_each_use(&mut |var| is_read |= names.contains_key(&var));
            let is_alias = matches!(stmt.expr, Expr::Tuple(_));
            if is_read && (is_alias || idx >= adds && idx != sum) {
                return false;
            }
            names.extend(name.map(|leaf| (stmt.var, leaf)));
        }
        !names.contains_key(&block.result)
    }

    /// Offers destinations for the leaves of `var`.
    fn offer(&mut self, var: VarId, offers: Offers) {
        self.offer_through(var, offers, self.live.used_once(var));
    }

    /// Offers destinations for the leaves of `var`; `alone` states that no other use can read them.
    fn offer_through(&mut self, var: VarId, mut offers: Offers, alone: bool) {
        // A variable with a value is bound outside the block, and stays in its memory.
        if self.values[var].is_some() {
            return;
        }
        for offer in &mut offers {
            if matches!(offer, Some(Offer::Add(_))) && !alone {
                *offer = None;
            }
        }
        match &mut self.offers[var] {
            Some(before) => before.iter_mut().zip(offers).for_each(|(before, offer)| {
                if before.is_none() {
                    *before = offer;
                }
            }),
            none => *none = Some(offers),
        }
    }

    /// Takes the offers for `var`, one for each leaf.
    pub(super) fn take_offers(&mut self, var: VarId) -> Offers {
        let n = self.function.ty(var).n_leaves();
        let mut offers = self.offers[var].take().unwrap_or_default();
        offers.resize(n, None);
        offers
    }

    /// Returns the accumulator as a view, if the indices on its path are known here; they are checked.
    pub(super) fn resolve(&mut self, to: &Accumulator) -> Option<View> {
        let mut view = to.view.clone();
        for row in &to.rows {
            view = match row {
                Row::At(index) => view.row(&Poly::constant(*index)),
                Row::Hot { index, check } => {
                    self.values[*index].as_ref()?;
                    let at = self.index_value(*index, check.as_ref().map(|(size, span)| (size, *span)));
                    view.row(&at)
                }
            };
        }
        Some(view)
    }

    /// Returns the targets of the leaves of `var`: memory to write, or an accumulator to add to. An array without an
    /// offer gets new memory; a scalar has a target only if it is added.
    pub(super) fn targets(&mut self, var: VarId, span: Option<Span>) -> Vec<Target> {
        let offers = self.take_offers(var);
        let types = layout::leaves(self.function.ty(var));
        let mut targets = Vec::with_capacity(types.len());
        for (ty, offer) in types.iter().zip(offers) {
            let view = match offer {
                Some(Offer::Add(to)) => {
                    if let Some(view) = self.resolve(&to) {
                        targets.push(Target::Add(view));
                        continue;
                    }
                    None
                }
                Some(Offer::Write(view)) => Some(view),
                None => None,
            };
            targets.push(if ty.dims.is_empty() {
                Target::Scalar
            } else if let Some(view) = view {
                Target::Write(view)
            } else {
                let dims = ty.dims.iter().map(|size| self.size(size)).collect();
                Target::Write(self.b.array(ty.scalar.class(), dims, self.span(var, span)))
            });
        }
        targets
    }

    /// Returns the memory for each array among the leaves of `var`: the offered one, or new memory in the workspace.
    pub(super) fn places(&mut self, var: VarId, span: Option<Span>) -> Places {
        // A value that cannot be added as it arises is made in memory of its own, and added by its consumer.
        if let Some(offers) = &mut self.offers[var] {
            written_only(offers);
        }
        let view = |target| match target {
            Target::Write(view) => Some(view),
            Target::Add(_) | Target::Scalar => None,
        };
        self.targets(var, span).into_iter().map(view).collect()
    }
}

/// Target of a leaf.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// Write the array here.
    Write(View),
    /// Add here.
    Add(View),
    /// A register.
    Scalar,
}

impl Target {
    /// Returns the offer to the producer of the leaf.
    pub fn offer(&self) -> Option<Offer> {
        match self {
            Self::Write(view) => Some(Offer::Write(view.clone())),
            Self::Add(view) => Some(Offer::add(view.clone())),
            Self::Scalar => None,
        }
    }

    /// Returns the target of element `index`.
    pub fn row(&self, index: &Poly<Reg>) -> Self {
        match self {
            Self::Write(view) => Self::Write(view.row(index)),
            Self::Add(view) => Self::Add(view.row(index)),
            Self::Scalar => Self::Scalar,
        }
    }

    /// Returns the leaf at this target; `None` for a scalar.
    pub fn leaf(&self) -> Option<Leaf> {
        match self {
            Self::Write(view) => Some(Leaf::Array(view.clone())),
            Self::Add(_) => Some(Leaf::Delivered),
            Self::Scalar => None,
        }
    }
}
