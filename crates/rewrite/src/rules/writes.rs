//! Folds whose steps write separate elements of an array, or add to elements: builds and sums.
//!
//! In: a fold, and an array of its state. Out: the array after all steps, without a state. A program that fills an
//! array in place,
//!
//! ```text
//! ifold (fun s i -> build n (fun a -> if a == i then f s i else s[a])) z k
//! ```
//!
//! carries the whole array from step to step, and reverse mode carries its cotangent. If `f` reads no element that an
//! earlier step has written, element `a` is `f z a` for `a < k`, and `z[a]` otherwise.
//!
//! **Elements.** [`Walk`] follows the definition of the next array at arbitrary indices `c` (its canonical indices)
//! through builds, branches and earlier versions of the array in the same step. It ends at element `c` of the state,
//! which the step then keeps, or at another value, which it writes. A written element must have a condition that
//! determines the step: `c == e i`, where `e` is linear in `i` with slope 1 or -1.
//!
//! **Reads.** Element `r` of the state is still that of `z` in step `i` if no earlier step has written it: for every
//! write there is an index `r_d` that is not among the `e i'` with `i' < i`. All other reads must be at the indices of
//! the element that is written. Versions of the array in the same step are read under the same condition.
//!
//! **Pairs.** If the writes of a step determine two different steps, `s[i][j] = s[j][i] = f i j`, the element is that
//! of the later step if it writes there, else that of the earlier one. Both halves of the matrix are computed then.
//! This pays if they are products of matrices, which are tiled as a whole and not under conditions; other pairs stay
//! in a fold, and those whose steps read the state.

use super::fold::Parts;
use super::solve::in_range;
use crate::conditions::{Implied, implied_by, operator};
use crate::fusion;
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Expr, Size, StateLoop, Type, VarId};
use chainrule_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of definitions that a walk follows.
const MAX_WALKED: usize = 512;

/// Maximum nesting of branches and sums from the next array to the state.
const MAX_NESTED: usize = 16;

/// Element after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
    Kept,
    Written,
    /// Sum of the element and of terms.
    Added,
    /// Kept or written, by a condition.
    Choice,
}

/// Block of a step, and how it is entered.
struct Scope<'e> {
    parent: Option<usize>,
    entry: Entry<'e>,
}

enum Entry<'e> {
    Loop(&'e Size),
    Branch { condition: VarId, holds: bool },
    Other,
}

/// Array of a fold's state, and the array after a step.
#[derive(Clone, Copy)]
pub(super) struct Target<'e> {
    pub(super) fold: &'e Parts<'e>,
    /// Variables of the body that hold the array before the step.
    pub(super) own: &'e [VarId],
    pub(super) next: VarId,
}

/// Definitions of a step.
struct Step<'e> {
    target: Target<'e>,
    rank: usize,
    /// Expressions of the statements that `next` needs, those of nested blocks included, and their scopes.
    defs: FxHashMap<VarId, (&'e Expr, usize)>,
    /// The same in order.
    stmts: Vec<VarId>,
    /// Variables that the step binds.
    inside: FxHashSet<VarId>,
    scopes: Vec<Scope<'e>>,
}

impl<'e> Step<'e> {
    fn new(rb: &Rebuild<'_>, target: Target<'e>, rank: usize) -> Self {
        let body = target.fold.body;
        let scopes = vec![Scope { parent: None, entry: Entry::Loop(target.fold.count) }];
        let (defs, stmts, inside) = (FxHashMap::default(), Vec::new(), FxHashSet::default());
        let mut step = Self { target, rank, defs, stmts, inside, scopes };
        step.inside.insert(target.fold.index);
        step.inside.extend(body.stmts.iter().map(|stmt| stmt.var));
        let kept = rb.slice(body, &[target.next]);
        for stmt in kept.stmts(body) {
            step.add(stmt.var, &stmt.expr, 0);
        }
        step
    }

    // Recursive on nesting.
    fn add(&mut self, var: VarId, expr: &'e Expr, scope: usize) {
        self.defs.insert(var, (expr, scope));
        self.stmts.push(var);
        self.inside.insert(var);
        if expr.is_leaf() {
            return;
        }
        self.inside.extend(expr.binders());
        for (k, block) in expr.blocks().into_iter().enumerate() {
            let entry = match expr {
                Expr::Build { size: count, .. }
                | Expr::Sum { count, .. }
                | Expr::Fold(StateLoop { count, .. })
                | Expr::Loop(StateLoop { count, .. }) => Entry::Loop(count),
                Expr::If { condition, .. } => Entry::Branch { condition: *condition, holds: k == 0 },
                _ => Entry::Other,
            };
            self.scopes.push(Scope { parent: Some(scope), entry });
            let inner = self.scopes.len() - 1;
            for stmt in &block.stmts {
                self.add(stmt.var, &stmt.expr, inner);
            }
        }
    }

    fn def(&self, var: VarId) -> Option<&'e Expr> {
        self.defs.get(&var).map(|(expr, _)| *expr)
    }

    /// Returns the comparisons of integers that hold where `condition` is `holds`.
    fn comparisons(&self, rb: &Rebuild<'_>, condition: VarId, holds: bool) -> Vec<(Op, [VarId; 2], bool)> {
        let parts = implied_by(condition, holds, |var| operator(self.def(var)?));
        let of_integers = |part: Implied| match part.made {
            Some((op @ (Op::Eq | Op::Lt | Op::Le), args)) if *rb.ty(args[0]) == Type::Int => {
                Some((op, [args[0], args[1]], part.value))
            }
            _ => None,
        };
        parts.into_iter().filter_map(of_integers).collect()
    }
}

/// Form of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Elements are written, each in one step.
    Writes,
    /// Terms are added to elements.
    Terms,
}

/// Walk from an element of the next array to that of the state.
struct Walk<'s, 'e> {
    step: &'s Step<'e>,
    /// Canonical indices.
    canonical: Vec<Size>,
    form: Form,
    /// Indices of builds on the way, in terms of canonical ones.
    bound: FxHashMap<VarId, Size>,
    /// Variables on the way to a kept element, with the number of indices that are left.
    way: FxHashMap<VarId, usize>,
    /// Integers that are 0 in the branches on the way.
    zeros: Vec<Size>,
    /// For each write, or sum with a term, the integers that are 0 there.
    writes: Vec<Vec<Size>>,
    /// Terms that are added to the element.
    terms: Vec<VarId>,
    work: usize,
    depth: usize,
}

impl<'s, 'e> Walk<'s, 'e> {
    fn new(step: &'s Step<'e>, canonical: Vec<Size>, form: Form) -> Self {
        Self {
            step,
            canonical,
            form,
            bound: FxHashMap::default(),
            way: FxHashMap::default(),
            zeros: Vec::new(),
            writes: Vec::new(),
            terms: Vec::new(),
            work: MAX_WALKED,
            depth: 0,
        }
    }

    fn size(&self, rb: &Rebuild<'_>, var: VarId) -> Size {
        rb.size_of(var).substitute(|v| self.bound.get(&v).cloned().unwrap_or_else(|| Size::var(v)))
    }

    /// Returns whether `at` is the canonical position, where `zeros` are 0.
    fn is_canonical(&self, at: &[Size], zeros: &[Size]) -> bool {
        let is_same = |(a, b): (&Size, &Size)| {
            let difference = a.sub(b);
            difference.is_zero() || zeros.iter().any(|zero| difference == *zero || difference == zero.neg())
        };
        at.len() == self.canonical.len() && at.iter().zip(&self.canonical).all(is_same)
    }

    /// Returns what the step makes of element `at` of `var`.
    // Recursive on branches and sums, up to `MAX_NESTED`.
    fn element(&mut self, rb: &Rebuild<'_>, mut var: VarId, mut at: Vec<Size>) -> Option<Element> {
        self.depth += 1;
        if self.depth > MAX_NESTED {
            return None;
        }
        let (mut trail, mut bound) = (Vec::new(), Vec::new());
        let n_writes = self.writes.len();
        let found = loop {
            self.work = self.work.checked_sub(1)?;
            if self.step.target.own.contains(&var) {
                break self.is_canonical(&at, &self.zeros).then_some(Element::Kept);
            }
            let Some(def) = self.step.def(var) else { break None };
            trail.push((var, at.len()));
            match def {
                Expr::Get { array, index, .. } => {
                    at.insert(0, self.size(rb, *index));
                    var = *array;
                }
                Expr::Build { index, body, .. } if !at.is_empty() => {
                    let here = at.remove(0);
                    match self.bound.get(index) {
                        Some(other) if *other != here => break None,
                        Some(_) => {}
                        None => {
                            self.bound.insert(*index, here);
                            bound.push(*index);
                        }
                    }
                    var = body.result;
                }
                Expr::Component(tuple, k) => match self.step.def(*tuple) {
                    Some(Expr::Tuple(fields)) => var = fields[*k],
                    _ => break None,
                },
                Expr::If { condition, then, otherwise } => {
                    break self.choice(rb, *condition, [then.result, otherwise.result], &at)?;
                }
                Expr::Op(Op::Select, args) if at.is_empty() => {
                    break self.choice(rb, args[0], [args[1], args[2]], &at)?;
                }
                Expr::Op(op @ (Op::Add | Op::Sub), args) if self.form == Form::Terms && at.is_empty() => {
                    break self.sum(rb, *op, args)?;
                }
                _ => break None,
            }
        };
        self.depth -= 1;
        if let Some(found) = found {
            self.way.extend(trail);
            return Some(found);
        }
        bound.iter().for_each(|index| {
            self.bound.remove(index);
        });
        self.writes.truncate(n_writes);
        self.writes.push(self.zeros.clone());
        Some(Element::Written)
    }

    /// Returns the choice between two elements, unless both are written.
    fn choice(
        &mut self,
        rb: &Rebuild<'_>,
        condition: VarId,
        sides: [VarId; 2],
        at: &[Size],
    ) -> Option<Option<Element>> {
        let n_zeros = self.zeros.len();
        let [then, otherwise] = [(sides[0], true), (sides[1], false)].map(|(side, holds)| {
            for (op, [x, y], holds) in self.step.comparisons(rb, condition, holds) {
                if op == Op::Eq && holds {
                    let zero = self.size(rb, x).sub(&self.size(rb, y));
                    self.zeros.push(zero);
                }
            }
            let found = self.element(rb, side, at.to_vec());
            self.zeros.truncate(n_zeros);
            found
        });
        Some(match (then?, otherwise?) {
            (Element::Written, Element::Written) => None,
            (Element::Written | Element::Choice, _) | (_, Element::Written | Element::Choice) => Some(Element::Choice),
            (Element::Kept, Element::Kept) => Some(Element::Kept),
            _ => Some(Element::Added),
        })
    }

    fn sum(&mut self, rb: &Rebuild<'_>, op: Op, args: &[VarId]) -> Option<Option<Element>> {
        let n_sides = if op == Op::Add { 2 } else { 1 };
        for (k, side) in args[..n_sides].iter().enumerate() {
            let before = (self.way.clone(), self.bound.clone(), self.terms.len());
            if matches!(self.element(rb, *side, Vec::new())?, Element::Kept | Element::Added) {
                self.terms.push(args[1 - k]);
                self.writes.push(self.zeros.clone());
                return Some(Some(Element::Added));
            }
            let n_terms;
            (self.way, self.bound, n_terms) = before;
            self.terms.truncate(n_terms);
        }
        Some(None)
    }
}

/// Index of written elements along a dimension, as a polynomial in the step's index.
struct Position {
    dimension: usize,
    index: Size,
}

/// Analysis of an array of a fold's state.
pub(super) struct Plan<'e> {
    target: Target<'e>,
    /// Canonical indices: variables of no statement.
    canonical: Vec<VarId>,
    /// The one or two steps that may write to the element at the canonical indices.
    steps: Vec<Size>,
}

/// Maximum number of steps that write to an element.
const MAX_STEPS: usize = 2;

/// Returns the extents of an array of doubles.
fn extents(ty: &Type) -> Option<Vec<Size>> {
    let (mut ty, mut found) = (ty, Vec::new());
    while let Type::Array(size, element) = ty {
        found.push(size.clone());
        ty = element;
    }
    (!found.is_empty() && *ty == Type::Double).then_some(found)
}

/// Runs `see` with the indices of loops over `extents`, which are not written.
// Recursive on the rank.
fn at_indices<T>(
    rb: &mut Rebuild<'_>,
    extents: &[Size],
    at: &mut Vec<VarId>,
    see: &mut dyn FnMut(&mut Rebuild<'_>, &[VarId]) -> T,
) -> Option<T> {
    let [extent, rest @ ..] = extents else { return Some(see(rb, at)) };
    let mut found = None;
    rb.loop_(extent, |rb, index| {
        at.push(index);
        found = at_indices(rb, rest, at, see);
        at.pop();
        index
    });
    found
}

/// Returns the plan of the array, if each step writes separate elements.
pub(super) fn separate<'e>(rb: &mut Rebuild<'_>, target: Target<'e>) -> Option<Plan<'e>> {
    let extents = extents(rb.ty(target.next))?;
    let step = Step::new(rb, target, extents.len());
    at_indices(rb, &extents, &mut Vec::new(), &mut |rb, canonical| plan(rb, &step, canonical))?
}

fn plan<'e>(rb: &mut Rebuild<'_>, step: &Step<'e>, canonical: &[VarId]) -> Option<Plan<'e>> {
    let sizes: Vec<Size> = canonical.iter().map(|var| Size::var(*var)).collect();
    let mut walk = Walk::new(step, sizes.clone(), Form::Writes);
    let element = walk.element(rb, step.target.next, sizes)?;
    // An array that a step makes as a whole, or keeps, is none of these.
    if element != Element::Choice {
        return None;
    }
    let index = step.target.fold.index;
    let writes: Vec<Vec<Position>> = walk.writes.iter().map(|zeros| positions(step, canonical, zeros)).collect();
    let steps = |positions: &Vec<Position>| -> Vec<Size> {
        let step = |position: &Position| {
            let (slope, rest) = position.index.split_linear(index)?;
            let difference = Size::var(canonical[position.dimension]).sub(&rest);
            match slope.as_constant()? {
                1 => Some(difference),
                -1 => Some(difference.neg()),
                _ => None,
            }
        };
        positions.iter().filter_map(step).collect()
    };
    let all: Vec<Vec<Size>> = writes.iter().map(steps).collect();
    let step_of_all = all.first()?.iter().find(|step| all.iter().all(|steps| steps.contains(step)));
    let steps = match step_of_all {
        Some(step) => vec![step.clone()],
        None => steps_of_products(step, &all)?,
    };
    let readable = if steps.len() == 1 { Readable::Start } else { Readable::Nothing };
    if !reads_only(rb, &walk, &writes, readable) {
        return None;
    }
    Some(Plan { target: step.target, canonical: canonical.to_vec(), steps })
}

/// Returns the steps that may write to an element, of those that each write determines, if there are no more than
/// [`MAX_STEPS`], and if the step multiplies matrices.
fn steps_of_products(step: &Step<'_>, all: &[Vec<Size>]) -> Option<Vec<Size>> {
    let mut found: Vec<Size> = Vec::new();
    for steps in all {
        if !steps.iter().any(|step| found.contains(step)) {
            found.push(steps.first()?.clone());
        }
    }
    let has_products = || step.stmts.iter().any(|var| step.def(*var).is_some_and(fusion::is_row_of_product));
    (found.len() <= MAX_STEPS && has_products()).then_some(found)
}

/// Returns the indices of a write by dimension, as far as they are known from the integers that are 0 there.
fn positions(step: &Step<'_>, canonical: &[VarId], zeros: &[Size]) -> Vec<Position> {
    let index = step.target.fold.index;
    let mut found = Vec::new();
    for zero in zeros {
        for (dimension, var) in canonical.iter().enumerate() {
            let Some((slope, rest)) = zero.split_linear(*var) else { continue };
            let position = match slope.as_constant() {
                Some(1) => rest.neg(),
                Some(-1) => rest,
                _ => continue,
            };
            let is_known = |v: &VarId| *v == index || !step.inside.contains(v) && *v != step.target.fold.state;
            if position.vars().iter().all(|v| is_known(v) && !canonical.contains(v)) {
                found.push(Position { dimension, index: position });
            }
        }
    }
    found
}

/// Elements of the state that a step may read, apart from those that it keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readable {
    /// Elements that are still those before the first step, or the one that is written.
    Start,
    Nothing,
}

/// Returns whether the step reads no more of the state than is `readable`.
fn reads_only(rb: &mut Rebuild<'_>, walk: &Walk<'_, '_>, writes: &[Vec<Position>], readable: Readable) -> bool {
    let (step, reads_start) = (walk.step, readable == Readable::Start);
    // Arrays that hold elements of the state: the state, its versions in the step, rows of these.
    let mut open: Vec<(VarId, Vec<Size>)> = Vec::new();
    let mut rows: FxHashMap<VarId, Vec<Size>> = FxHashMap::default();
    rows.extend(step.target.own.iter().map(|own| (*own, Vec::new())));
    rows.extend(walk.way.iter().map(|(var, left)| {
        let taken = step.rank.saturating_sub(*left);
        (*var, walk.canonical[..taken].to_vec())
    }));
    open.extend(rows.iter().map(|(var, at)| (*var, at.clone())));
    while let Some((var, taken)) = open.pop() {
        for user in &step.stmts {
            let (expr, scope) = step.defs[user];
            if walk.way.contains_key(user) {
                continue;
            }
            let mut is_used = false;
            expr.for_each_operand(&mut |operand| is_used |= operand == var);
            let is_result = !expr.is_leaf() && expr.blocks().into_iter().any(|block| block.result == var);
            if !is_used && !is_result {
                continue;
            }
            if taken.len() == step.rank {
                // The element itself.
                if !reads_start {
                    return false;
                }
                continue;
            }
            let &Expr::Get { index, .. } = expr else { return false };
            let mut at = taken.clone();
            at.push(walk.size(rb, index));
            let is_free = in_scope(rb, walk, scope, |rb, zeros| {
                reads_start
                    && (walk.is_canonical(&at, zeros) || writes.iter().all(|write| is_unwritten(rb, step, write, &at)))
            });
            if is_free {
                continue;
            }
            // Perhaps for each element of the row.
            if at.len() == step.rank || rows.insert(*user, at.clone()).is_some() {
                return false;
            }
            open.push((*user, at));
        }
    }
    true
}

/// Returns whether no step before the current one writes at `at`, the leading indices of an element.
fn is_unwritten(rb: &Rebuild<'_>, step: &Step<'_>, write: &[Position], at: &[Size]) -> bool {
    let is_natural = |size: &Size| rb.ranges.not_negative(size);
    let one = Size::constant(1);
    write.iter().any(|position| {
        let Some(read) = at.get(position.dimension) else { return false };
        let Some((slope, first)) = position.index.split_linear(step.target.fold.index) else { return false };
        let (ahead, after_first) = (read.sub(&position.index), read.sub(&first));
        match slope.as_constant() {
            Some(0) => is_natural(&ahead.sub(&one)) || is_natural(&ahead.neg().sub(&one)),
            Some(1..) => is_natural(&ahead) || is_natural(&after_first.neg().sub(&one)),
            Some(_) => is_natural(&ahead.neg()) || is_natural(&after_first.sub(&one)),
            None => false,
        }
    })
}

/// Runs `see` where the loops around a block are known to run, and the conditions of its branches to hold; with the
/// integers that are 0 there.
fn in_scope(
    rb: &mut Rebuild<'_>,
    walk: &Walk<'_, '_>,
    scope: usize,
    see: impl FnOnce(&Rebuild<'_>, &[Size]) -> bool,
) -> bool {
    let (step, n_assumed) = (walk.step, rb.ranges.assumptions());
    let mut around = Vec::new();
    let mut next = Some(scope);
    while let Some(scope) = next {
        around.push(scope);
        next = step.scopes[scope].parent;
    }
    let (mut zeros, mut n_loops) = (Vec::new(), 0);
    for scope in around.into_iter().rev() {
        match step.scopes[scope].entry {
            Entry::Loop(count) => {
                let equal = rb.clamped(count);
                rb.ranges.enter(count, equal);
                n_loops += 1;
            }
            Entry::Branch { condition, holds } => {
                for (op, [x, y], holds) in step.comparisons(rb, condition, holds) {
                    let (x, y) = (walk.size(rb, x), walk.size(rb, y));
                    if op == Op::Eq && holds {
                        zeros.push(x.sub(&y));
                    }
                    let learned = rb.ranges.learned(op, [x, y], holds);
                    learned.iter().for_each(|size| rb.ranges.assume(size));
                }
            }
            Entry::Other => {}
        }
    }
    let found = see(rb, &zeros);
    (0..n_loops).for_each(|_| rb.ranges.leave());
    rb.ranges.drop_assumptions(n_assumed);
    found
}

/// Writes the whole state with an array in it.
type Whole<'w> = &'w dyn Fn(&mut Rebuild<'_>, VarId) -> VarId;

impl Plan<'_> {
    /// Writes the array after all steps, from `init`; `whole` writes the state with an array in it.
    pub(super) fn write(&self, rb: &mut Rebuild<'_>, init: VarId, whole: Whole<'_>) -> VarId {
        self.rows(rb, init, whole, &self.steps)
    }

    /// Writes the array after `steps`, which may write to the element at the canonical indices.
    fn rows(&self, rb: &mut Rebuild<'_>, init: VarId, whole: Whole<'_>, steps: &[Size]) -> VarId {
        let ty = rb.ty(init).clone();
        nest(rb, &ty, &mut Vec::new(), &mut |rb, at| self.number(rb, init, whole, steps, at))
    }

    /// Writes the element at `at` after `steps`.
    fn number(&self, rb: &mut Rebuild<'_>, init: VarId, whole: Whole<'_>, steps: &[Size], at: &[VarId]) -> VarId {
        let fold = self.target.fold;
        let element = |rb: &mut Rebuild<'_>, array: VarId| at.iter().fold(array, |row, index| rb.get(row, *index));
        let step_at = |rb: &Rebuild<'_>, step: &Size| {
            step.substitute(|v| match self.canonical.iter().position(|var| *var == v) {
                Some(k) => rb.size_of(at[k]),
                None => Size::var(v),
            })
        };
        match steps {
            [] => element(rb, init),
            [step] => {
                let step = step_at(rb, step);
                let inside = in_range(rb, &step, fold.count);
                let written = |rb: &mut Rebuild<'_>| {
                    let (state, step) = (whole(rb, init), rb.int(step.clone()));
                    let mut env = Env::copying(&[(fold.state, state), (fold.index, step)]);
                    let next = rb.inline(fold.body, self.target.next, &mut env);
                    element(rb, next)
                };
                rb.if_(inside, &Type::Double, written, |rb| element(rb, init))
            }
            [a, b, ..] => {
                let [first, second] = [a, b].map(|step| step_at(rb, step)).map(|step| rb.int(step));
                let is_first_earlier = rb.op(Op::Lt, &[first, second]);
                let after = |rb: &mut Rebuild<'_>, earlier: &Size, later: &Size| {
                    let before = self.rows(rb, init, whole, std::slice::from_ref(earlier));
                    self.number(rb, before, whole, std::slice::from_ref(later), at)
                };
                rb.if_(is_first_earlier, &Type::Double, |rb| after(rb, a, b), |rb| after(rb, b, a))
            }
        }
    }
}

/// Writes an array of numbers of type `ty`, each by `number` at its indices.
// Recursive on the rank.
fn nest(
    rb: &mut Rebuild<'_>,
    ty: &Type,
    at: &mut Vec<VarId>,
    number: &mut dyn FnMut(&mut Rebuild<'_>, &[VarId]) -> VarId,
) -> VarId {
    let Type::Array(size, element) = ty else { return number(rb, at) };
    rb.build(size.clone(), |rb, index| {
        at.push(index);
        let row = nest(rb, element, at, number);
        at.pop();
        row
    })
}

/// Returns whether a step adds to elements of the array what does not depend on it.
pub(super) fn adds(rb: &mut Rebuild<'_>, target: Target<'_>) -> bool {
    let ty = rb.ty(target.next);
    let Some(extents) = extents(ty).filter(|_| ty.is_linear()) else { return false };
    let step = Step::new(rb, target, extents.len());
    let found = at_indices(rb, &extents, &mut Vec::new(), &mut |rb, canonical| {
        let sizes: Vec<Size> = canonical.iter().map(|var| Size::var(*var)).collect();
        let mut walk = Walk::new(&step, sizes.clone(), Form::Terms);
        let element = walk.element(rb, target.next, sizes)?;
        let is_term = |term: &VarId| !walk.way.contains_key(term) && !target.own.contains(term);
        // Elements that data select are added to in place.
        let is_known = |zero: &Size| {
            !zero.vars().iter().any(|v| canonical.contains(v))
                || !positions(&step, canonical, std::slice::from_ref(zero)).is_empty()
        };
        let are_known = walk.writes.iter().flatten().all(is_known);
        let is_sum = element == Element::Added && are_known && walk.terms.iter().all(is_term);
        (is_sum && reads_only(rb, &walk, &[], Readable::Nothing)).then_some(())
    });
    found.flatten().is_some()
}
