//! Loops that change a few elements of an array in each step keep these elements instead of whole states: the reverse
//! sweep carries the array and puts back what each step has overwritten.
//!
//! Source: the store-all strategy of tools for imperative programs, where a tape has the values that assignments
//! overwrite: Hascoët and Pascual, *The Tapenade automatic differentiation tool* (2013), section 4.
//!
//! In: the body of a loop. Out: for each part of its state, the places that a step may change ([`Changes`]), as indices
//! that are known before the step. They are found in the forms that writes to elements have,
//!
//! ```text
//! build n (fun r -> if r == i then build m (fun c -> if c == j then e else s[r][c]) else s[r])     place i, j
//! build n (fun r -> if r == i then e else s[r])                                                    place i
//! build n (fun r -> if p r then build m (fun c -> if c == j then e else s[r][c]) else s[r])        place *, j
//! ifold (fun s j -> ... place i, j ...) s m                                                        place i
//! ```
//!
//! in sequences of them, and in branches: [`Expr::changed_array`] knows the same forms, but neither the places nor the
//! definitions around an expression. The place `*, j` is a column. A place that does not change in a step is
//! harmless: it is put back as it is.
//!
//! Work and memory of a step are those of the places, so that a gradient costs a constant times the function. The
//! states are the same bit for bit.

use super::Reverse;
use crate::emit::Emitter;
use chainrule_ir::{Block, ChangedElement, Expr, Size, StateLoop, Stmt, Type, VarId, WhileLoop};
use chainrule_ops::Op;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of places of a part of a state.
const MAX_PLACES: usize = 8;

/// Maximum length, where it is known, of an array that is kept whole: copies of it cost less than indices.
const MAX_SMALL: i64 = 64;

/// Maximum number of definitions that the search for the places of a loop follows.
const MAX_WORK: u32 = 10_000;

/// Indices of an element, or of a row, outermost first; `None` for all indices of a dimension, never as the last one.
type Place = Vec<Option<VarId>>;

/// Places that a step changes in a part of the state.
#[derive(Clone, PartialEq, Debug)]
enum Change {
    /// These places at most.
    Places(Vec<Place>),
    /// Everything.
    Whole,
}

/// Places that a step of a loop changes.
#[derive(Clone, Debug)]
pub(super) struct Changes {
    /// By component of the state if it is a tuple.
    parts: Vec<Change>,
    is_tuple: bool,
    /// Statements of the body that compute indices.
    indices: Vec<Stmt>,
}

/// Part of a state: the state, or a component of it.
#[derive(Clone, Copy)]
struct Part {
    state: VarId,
    component: Option<usize>,
}

/// Definitions in the body of a loop, those in nested blocks included.
type Defined<'b> = BTreeMap<VarId, &'b Stmt>;

/// Returns the definitions in `block`, and all variables that it binds.
fn definitions(block: &Block) -> (Defined<'_>, BTreeSet<VarId>) {
    let (mut defined, mut bound) = (Defined::new(), BTreeSet::new());
    let mut open = vec![block];
    while let Some(block) = open.pop() {
        for stmt in &block.stmts {
            defined.insert(stmt.var, stmt);
            bound.insert(stmt.var);
            match &stmt.expr {
                Expr::Build { index, .. } | Expr::Sum { index, .. } => {
                    bound.insert(*index);
                }
                Expr::Fold(StateLoop { index, state, .. }) | Expr::Loop(StateLoop { index, state, .. }) => {
                    bound.extend([*index, *state]);
                }
                Expr::While(WhileLoop { state, .. }) => {
                    bound.insert(*state);
                }
                _ => {}
            }
            open.extend(stmt.expr.blocks());
        }
    }
    (defined, bound)
}

/// Returns the array of which `row` is the row at `at`.
fn array_of(defined: &Defined<'_>, row: VarId, at: &[VarId]) -> Option<VarId> {
    match &defined.get(&row)?.expr {
        Expr::Get { array, index, .. } if at.contains(index) => Some(*array),
        _ => None,
    }
}

/// Search for the places of one loop.
struct Search<'b> {
    index: Option<VarId>,
    /// Variables that the body binds.
    bound: BTreeSet<VarId>,
    /// Variables that the body itself binds, not one of its blocks.
    direct: BTreeSet<VarId>,
    defined: Defined<'b>,
    /// Statements that compute indices.
    needed: BTreeSet<VarId>,
    /// Definitions that the search may still follow.
    work: Cell<u32>,
}

impl Search<'_> {
    /// Returns the array that the build `expr` copies but for some places, and these. Rows of arrays around the build
    /// may be named in it.
    // Recursive on nesting, as `row_changes`.
    fn written(&self, expr: &Expr) -> Option<(VarId, Vec<Place>)> {
        let Expr::Build { index, body, .. } = expr else { return None };
        let after = |at: Option<VarId>, rest: Place| [at].into_iter().chain(rest).collect::<Place>();
        let Some(ChangedElement { array: base, at, value, .. }) = expr.changed_element() else {
            let (base, places) = self.row_changes(body.result, &[*index])?;
            return Some((base, places.into_iter().map(|rest| after(None, rest)).collect()));
        };
        let places = match self.row_changes(value, &[*index, at]) {
            Some((of, places)) if of == base => places,
            _ => vec![Place::new()],
        };
        Some((base, places.into_iter().map(|rest| after(Some(at), rest)).collect()))
    }

    /// Returns the array of which `row` is the row at one of `at` but for some places, and these.
    // Recursive on nesting; what branches share is limited by `work`.
    fn row_changes(&self, mut row: VarId, at: &[VarId]) -> Option<(VarId, Vec<Place>)> {
        let mut places = Vec::new();
        loop {
            self.work.set(self.work.get().checked_sub(1)?);
            if let Some(base) = array_of(&self.defined, row, at) {
                return Some((base, places));
            }
            if let Some([then, otherwise]) = self.branches(row) {
                let (base, found) = self.row_changes(then, at)?;
                let (other, more) = self.row_changes(otherwise, at)?;
                places.extend(found.into_iter().chain(more));
                return (base == other && places.len() <= MAX_PLACES).then_some((base, places));
            }
            let (base, found) = self.written(&self.defined.get(&row)?.expr)?;
            places.extend(found);
            row = base;
        }
    }

    /// Returns the results of the branches of `var`.
    fn branches(&self, var: VarId) -> Option<[VarId; 2]> {
        match &self.defined.get(&var)?.expr {
            Expr::If { then, otherwise, .. } => Some([then.result, otherwise.result]),
            Expr::Op(Op::Select, args) => Some([args[1], args[2]]),
            _ => None,
        }
    }

    /// Returns whether a variable is known before the step, from its number and from what is outside.
    fn is_known(&self, var: VarId, needed: &mut BTreeSet<VarId>) -> bool {
        let mut open = vec![var];
        while let Some(var) = open.pop() {
            if Some(var) == self.index || !self.bound.contains(&var) || needed.contains(&var) {
                continue;
            }
            let Some(stmt) = self.defined.get(&var).filter(|_| self.direct.contains(&var)) else { return false };
            let is_number = |expr: &Expr| matches!(expr, Expr::Size(_) | Expr::Op(..) | Expr::Get { .. });
            match &stmt.expr {
                expr if is_number(expr) => open.extend(expr.operands()),
                // An array of numbers, as those that indices are checked with.
                Expr::Build { index, body, .. } if body.stmts.iter().all(|stmt| is_number(&stmt.expr)) => {
                    stmt.expr.for_each_operand(&mut |var| open.push(var));
                    let is_inside = |var: VarId| var == *index || body.bound(var).is_some();
                    body.for_each_use(&mut |var| open.extend((!is_inside(var)).then_some(var)));
                }
                _ => return false,
            }
            if needed.len() > 4 * MAX_PLACES {
                return false;
            }
            needed.insert(var);
        }
        true
    }

    /// Returns what the step to `var` changes in a part.
    // Recursive on nesting.
    fn change(&self, part: Part, var: VarId) -> Change {
        let mut places: Vec<Place> = Vec::new();
        let mut at = Part { state: var, component: None };
        // Each round goes on to an earlier definition.
        loop {
            let Some(work) = self.work.get().checked_sub(1).filter(|_| places.len() <= MAX_PLACES) else {
                return Change::Whole;
            };
            self.work.set(work);
            if at.state == part.state && at.component == part.component {
                places.sort_unstable();
                places.dedup();
                return Change::Places(places);
            }
            let Some(stmt) = self.defined.get(&at.state) else { return Change::Whole };
            match (&stmt.expr, at.component) {
                (Expr::Component(tuple, k), None) => at = Part { state: *tuple, component: Some(*k) },
                (Expr::Tuple(fields), Some(k)) => at = Part { state: fields[k], component: None },
                (Expr::Fold(StateLoop { state, init, body, .. }), component) => {
                    let inner = Part { state: *state, component };
                    let Some(found) = self.of_loop(inner, body.result) else { return Change::Whole };
                    places.extend(found);
                    at.state = *init;
                }
                // The state of a general loop is the first component of its value; a component of it has a name.
                (Expr::Loop(_), Some(0)) => {
                    let Some((base, found)) = self.of_general(at.state, None) else { return Change::Whole };
                    places.extend(found);
                    at = base;
                }
                (Expr::Component(tuple, 0), Some(k)) => {
                    let Some((base, found)) = self.of_general(*tuple, Some(k)) else { return Change::Whole };
                    places.extend(found);
                    at = base;
                }
                (Expr::If { then, otherwise, .. }, None) => {
                    for block in [then, otherwise] {
                        match self.change(part, block.result) {
                            Change::Places(found) => places.extend(found),
                            Change::Whole => return Change::Whole,
                        }
                    }
                    at = part;
                }
                (expr @ Expr::Build { .. }, None) => {
                    let Some((base, found)) = self.written(expr) else { return Change::Whole };
                    let Some(found) = self.known_parts(found) else { return Change::Whole };
                    places.extend(found);
                    at.state = base;
                }
                _ => return Change::Whole,
            }
        }
    }

    /// Returns the leading indices of places that are known before the step, if each has some.
    fn known_parts(&self, places: Vec<Place>) -> Option<Vec<Place>> {
        let known = |mut place: Place| {
            let is_known = |at: &Option<VarId>| at.is_none_or(|at| self.is_known(at, &mut self.needed.clone()));
            place.truncate(place.iter().take_while(|at| is_known(at)).count());
            place.truncate(place.iter().rposition(Option::is_some)? + 1);
            Some(place)
        };
        places.into_iter().map(known).collect()
    }

    fn of_loop(&self, inner: Part, next: VarId) -> Option<Vec<Place>> {
        match self.change(inner, next) {
            Change::Places(places) => self.known_parts(places),
            Change::Whole => None,
        }
    }

    fn of_general(&self, whole: VarId, component: Option<usize>) -> Option<(Part, Vec<Place>)> {
        let Expr::Loop(StateLoop { state, init, body, .. }) = &self.defined.get(&whole)?.expr else { return None };
        let Expr::Tuple(triple) = &self.defined.get(&body.result)?.expr else { return None };
        let next = match (component, self.defined.get(&triple[0]).map(|stmt| &stmt.expr)) {
            (None, _) => triple[0],
            (Some(k), Some(Expr::Tuple(fields))) => fields[k],
            _ => return None,
        };
        let found = self.of_loop(Part { state: *state, component }, next)?;
        Some((Part { state: *init, component }, found))
    }
}

impl Reverse<'_> {
    /// Returns what a step of a loop with this body changes; `None` if the states are better kept whole. `next` is the
    /// state after the step.
    pub(super) fn changes(&self, index: Option<VarId>, state: VarId, body: &Block, next: VarId) -> Option<Changes> {
        let (defined, bound) = definitions(body);
        let direct = body.stmts.iter().map(|stmt| stmt.var).collect();
        let mut search = Search { index, bound, direct, defined, needed: BTreeSet::new(), work: Cell::new(MAX_WORK) };
        search.bound.insert(state);
        let ty = self.out.ty(state);
        let (types, is_tuple) = match ty {
            Type::Tuple(fields, _) => (fields.to_vec(), true),
            ty => (vec![ty.clone()], false),
        };
        let mut parts = Vec::with_capacity(types.len());
        for (k, ty) in types.iter().enumerate() {
            let component = is_tuple.then_some(k);
            let next = match (component, search.defined.get(&next).map(|stmt| &stmt.expr)) {
                (None, _) => next,
                (Some(k), Some(Expr::Tuple(fields))) => fields[k],
                _ => return None,
            };
            let is_large = match ty {
                Type::Array(..) => elements(ty).as_constant().is_none_or(|n| n > MAX_SMALL),
                _ => false,
            };
            let change = if is_large { search.change(Part { state, component }, next) } else { Change::Whole };
            if let Change::Places(places) = &change {
                let mut needed = std::mem::take(&mut search.needed);
                let known = places.iter().flatten().flatten().all(|k| search.is_known(*k, &mut needed));
                search.needed = needed;
                debug_assert!(known, "an index is known before the step");
            }
            parts.push(change);
        }
        let is_useful = parts.iter().any(|change| *change != Change::Whole);
        let indices = body.stmts.iter().filter(|stmt| search.needed.contains(&stmt.var)).cloned().collect();
        is_useful.then_some(Changes { parts, is_tuple, indices })
    }

    /// As [`Self::changes`], for a general loop.
    pub(super) fn changes_of_general(&self, index: VarId, state: VarId, body: &Block) -> Option<Changes> {
        let triple = body.stmts.iter().find(|stmt| stmt.var == body.result)?;
        let Expr::Tuple(triple) = &triple.expr else { return None };
        self.changes(Some(index), state, body, triple[0])
    }

    /// Emits the values that the step will overwrite, as one variable. `state` is the copy of the state before it.
    pub(super) fn overwritten(&mut self, changes: &Changes, state: VarId) -> VarId {
        for stmt in &changes.indices {
            self.alone(stmt);
        }
        let mut kept = Vec::new();
        for (k, change) in changes.parts.iter().enumerate() {
            let part = if changes.is_tuple { self.out.component(state, k) } else { state };
            match change {
                Change::Whole => kept.push(part),
                Change::Places(places) => {
                    for place in places {
                        let place = self.copied(place);
                        kept.push(element(self.out, part, &place));
                    }
                }
            }
        }
        self.out.builder.tuple(&kept)
    }

    /// Emits the state before a step from that after it and from what the step has overwritten.
    pub(super) fn put_back(&mut self, changes: &Changes, after: VarId, overwritten: VarId) -> VarId {
        for stmt in &changes.indices {
            self.alone(stmt);
        }
        let mut n_kept = 0;
        let mut parts = Vec::new();
        for (k, change) in changes.parts.iter().enumerate() {
            match change {
                Change::Whole => {
                    parts.push(self.out.component(overwritten, n_kept));
                    n_kept += 1;
                }
                Change::Places(places) => {
                    let mut part = if changes.is_tuple { self.out.component(after, k) } else { after };
                    for place in places {
                        let place = self.copied(place);
                        let value = self.out.component(overwritten, n_kept);
                        n_kept += 1;
                        part = self.out.with_element(part, &place, value);
                    }
                    parts.push(part);
                }
            }
        }
        if !changes.is_tuple {
            return parts[0];
        }
        let ty = self.out.ty(after).clone();
        self.out.tuple(parts, ty)
    }

    fn copied(&self, place: &Place) -> Place {
        place.iter().map(|at| at.map(|at| self.copies.get(at))).collect()
    }
}

/// Emits the elements at a place, or zeros if there are none.
// Recursive on the depth of a type.
fn element(out: &mut Emitter, array: VarId, place: &[Option<VarId>]) -> VarId {
    let [at, rest @ ..] = place else { return array };
    let Type::Array(size, row) = out.ty(array).clone() else { return array };
    let Some(at) = *at else {
        return out.build(size, &mut |out, k| {
            let row = out.element(array, k);
            element(out, row, rest)
        });
    };
    let (zero, size) = (out.builder.int(0), out.builder.size(size));
    let lower = out.builder.op(Op::Le, &[zero, at]);
    let upper = out.builder.op(Op::Lt, &[at, size]);
    let condition = out.builder.op(Op::And, &[lower, upper]);
    out.open();
    let row_at = out.element(array, at);
    let found = element(out, row_at, rest);
    let then = out.close(found);
    out.open();
    let nothing = nothing(out, &row, rest);
    let otherwise = out.close(nothing);
    out.builder.compute(Expr::If { condition, then, otherwise })
}

/// Emits zeros for the elements at a place in a value of type `ty`, which are not used.
// Recursive on the depth of a type.
fn nothing(out: &mut Emitter, ty: &Type, place: &[Option<VarId>]) -> VarId {
    match (ty, place) {
        (Type::Array(_, row), [Some(_), rest @ ..]) => nothing(out, row, rest),
        (Type::Array(size, row), _) => {
            let rest = place.get(1..).unwrap_or_default();
            out.build(size.clone(), &mut |out, _| nothing(out, row, rest))
        }
        (Type::Double, _) => out.real(0.0),
        (Type::Int, _) => out.builder.int(0),
        (Type::Bool, _) => out.builder.bool(false),
        (Type::Tuple(fields, _), _) => {
            let parts = fields.iter().map(|field| nothing(out, field, &[])).collect();
            out.tuple(parts, ty.clone())
        }
    }
}

/// Returns the number of scalars in a value of type `ty`.
fn elements(ty: &Type) -> Size {
    match ty {
        Type::Array(size, element) => size.mul(&elements(element)),
        Type::Tuple(fields, _) => fields.iter().fold(Size::zero(), |sum, field| sum.add(&elements(field))),
        _ => Size::constant(1),
    }
}
