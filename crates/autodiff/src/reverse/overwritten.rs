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
//! ifold (fun s j -> ... place i, j ...) s m                                                        place i
//! ```
//!
//! in sequences of them, and in branches. A place that does not change in a step is harmless: it is put back as it is.
//!
//! Work and memory of a step are those of the places, so that a gradient costs a constant times the function. The
//! states are the same bit for bit.

use super::Reverse;
use crate::emit::Emitter;
use chainrule_ir::{Block, Expr, Size, StateLoop, Stmt, Type, VarId, WhileLoop};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of places of a part of a state.
const MAX_PLACES: usize = 8;

/// Maximum length, where it is known, of an array that is kept whole: copies of it cost less than indices.
const MAX_SMALL: i64 = 64;

/// Indices of an element, or of a row, outermost first.
type Place = Vec<VarId>;

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

/// Returns the other operand of `index == ..`.
fn compared(defined: &Defined<'_>, condition: VarId, index: VarId) -> Option<VarId> {
    match &defined.get(&condition)?.expr {
        Expr::Op(Op::Eq, args) if args[0] == index => Some(args[1]),
        Expr::Op(Op::Eq, args) if args[1] == index => Some(args[0]),
        _ => None,
    }
}

/// Returns the array of which `row` is the row at `at`.
fn array_of(defined: &Defined<'_>, row: VarId, at: &[VarId]) -> Option<VarId> {
    match &defined.get(&row)?.expr {
        Expr::Get { array, index, .. } if at.contains(index) => Some(*array),
        _ => None,
    }
}

/// Returns the array that the build `expr` copies but for one place, and that place. Rows of arrays around the build
/// may be named in it.
// Recursive on the depth of a type.
fn written(defined: &Defined<'_>, expr: &Expr) -> Option<(VarId, Place)> {
    let Expr::Build { index, body, .. } = expr else { return None };
    let Expr::If { condition, then, otherwise } = &defined.get(&body.result)?.expr else { return None };
    let at = compared(defined, *condition, *index)?;
    let base = array_of(defined, otherwise.result, &[*index])?;
    let mut place = vec![at];
    if let Some(stmt) = defined.get(&then.result)
        && let Some((row, rest)) = written(defined, &stmt.expr)
        && array_of(defined, row, &[*index, at]) == Some(base)
    {
        place.extend(rest);
    }
    Some((base, place))
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
}

impl Search<'_> {
    /// Returns whether a variable is known before the step, from its number and from what is outside.
    fn is_known(&self, var: VarId, needed: &mut BTreeSet<VarId>) -> bool {
        let mut open = vec![var];
        while let Some(var) = open.pop() {
            if Some(var) == self.index || !self.bound.contains(&var) || needed.contains(&var) {
                continue;
            }
            let Some(stmt) = self.defined.get(&var).filter(|_| self.direct.contains(&var)) else { return false };
            if !matches!(stmt.expr, Expr::Size(_) | Expr::Op(..)) || needed.len() > 4 * MAX_PLACES {
                return false;
            }
            needed.insert(var);
            open.extend(stmt.expr.operands());
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
            if places.len() > MAX_PLACES {
                return Change::Whole;
            }
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
                    let Some((base, place)) = written(&self.defined, expr) else { return Change::Whole };
                    let Some(place) = self.known_part(place) else { return Change::Whole };
                    places.push(place);
                    at.state = base;
                }
                _ => return Change::Whole,
            }
        }
    }

    /// Returns the leading indices of a place that are known before the step, if there are any.
    fn known_part(&self, mut place: Place) -> Option<Place> {
        let n_known = place.iter().take_while(|k| self.is_known(**k, &mut self.needed.clone())).count();
        place.truncate(n_known);
        (n_known > 0).then_some(place)
    }

    fn of_loop(&self, inner: Part, next: VarId) -> Option<Vec<Place>> {
        match self.change(inner, next) {
            Change::Places(places) => places.into_iter().map(|place| self.known_part(place)).collect(),
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
        let mut search = Search { index, bound, direct, defined, needed: BTreeSet::new() };
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
                let known = places.iter().flatten().all(|k| search.is_known(*k, &mut needed));
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
                        let place: Place = place.iter().map(|at| self.copies.get(*at)).collect();
                        kept.push(self.element(part, &place));
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
                        let place: Place = place.iter().map(|at| self.copies.get(*at)).collect();
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

    /// Emits the element at a place, or a zero if there is none.
    // Recursive on the depth of a type.
    fn element(&mut self, array: VarId, place: &[VarId]) -> VarId {
        let [at, rest @ ..] = place else { return array };
        let Type::Array(size, row) = self.out.ty(array).clone() else { return array };
        let mut ty = &*row;
        for _ in rest {
            if let Type::Array(_, inner) = ty {
                ty = inner;
            }
        }
        let ty = ty.clone();
        let (zero, size) = (self.out.builder.int(0), self.out.builder.size(size));
        let lower = self.out.builder.op(Op::Le, &[zero, *at]);
        let upper = self.out.builder.op(Op::Lt, &[*at, size]);
        let condition = self.out.builder.op(Op::And, &[lower, upper]);
        self.out.open();
        let row = self.out.get(array, *at, true);
        let found = self.element(row, rest);
        let then = self.out.close(found);
        self.out.open();
        let nothing = nothing(self.out, &ty);
        let otherwise = self.out.close(nothing);
        self.out.builder.compute(Expr::If { condition, then, otherwise })
    }
}

/// Emits a value that is not used.
// Recursive on the depth of a type.
fn nothing(out: &mut Emitter, ty: &Type) -> VarId {
    match ty {
        Type::Double => out.real(0.0),
        Type::Int => out.builder.int(0),
        Type::Bool => out.builder.bool(false),
        Type::Array(size, element) => out.build(size.clone(), &mut |out, _| nothing(out, element)),
        Type::Tuple(fields, _) => {
            let parts = fields.iter().map(|field| nothing(out, field)).collect();
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
