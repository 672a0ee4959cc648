//! Packing of input rows: a row that an iteration reads repeatedly is copied to private memory once.
//!
//! ```text
//! for i in 0..n                          for i in 0..n
//!   for j in 0..k                          copy d to row[0] from x[d i]
//!     for c in 0..d                        for j in 0..k
//!       ... x[d i + c] ...                   for c in 0..d
//!                                              ... row[c] ...
//! ```
//!
//! In lanes, element `c` of eight rows is strided and gathered each time. Private memory has the eight lanes adjacent:
//! after the copy they are one vector. [`keep`](super::keep) packs output rows, under other conditions.
//!
//! The loop along the row may have been unrolled: a row is then at least [`FEWEST`] elements at constants.
//!
//! Only rows of inputs are packed, since nothing overwrites these. The copied row lies inside of the input whether the
//! inner loop runs or not. The copy is useless unless the loop runs in lanes, so the caller discards it otherwise.

use crate::events::{Event, events};
use crate::kernel::{BufferId, Class, Instr, Kernel, Order, Place, Reg, Stmt};
use crate::ranges::Ranges;
use crate::rebuild::{each_access, each_statement};
use chainrule_base::Poly;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of packed rows.
const MAX_ROWS: usize = 16;

/// Minimum number of elements of an unrolled row: fewer stay in registers, for several blocks of lanes.
const FEWEST: usize = 5;

/// Maximum length of an unrolled row.
const LONGEST: i64 = 64;

/// Statements around an event.
#[derive(Default)]
struct Open<'k> {
    /// Index and trip count of each loop; `None` for other statements.
    loops: Vec<Option<(Reg, &'k Poly<Reg>)>>,
    /// Number of statements around the definition of each register.
    levels: BTreeMap<Reg, usize>,
}

/// A row read in a loop.
pub(super) struct Row {
    /// Index of the loop whose iterations have a row each.
    pub of: Reg,
    /// Index of the inner loop that reads the row in each iteration.
    again: Reg,
    buffer: BufferId,
    /// Offset of the row.
    from: Poly<Reg>,
    len: Poly<Reg>,
    /// Addresses of its elements in the loop, with their places in the row.
    elements: BTreeMap<Poly<Reg>, Poly<Reg>>,
}

impl Row {
    /// Returns the index that runs along the row, if its loop was not unrolled.
    fn along(&self) -> Option<Reg> {
        self.elements.values().next().and_then(Poly::as_var)
    }

    /// Returns whether the loop along the row was unrolled. It is packed if its loop runs in lanes anyway.
    pub fn is_unrolled(&self) -> bool {
        self.along().is_none()
    }
}

/// Returns the rows worth packing if their loops run in lanes. Linear in `kernel`, except for the proofs of [`Ranges`].
pub(super) fn rows(kernel: &Kernel) -> Vec<Row> {
    let events = events(&kernel.body);
    let mut rows = found(kernel, &events);
    if rows.is_empty() {
        return rows;
    }
    // Facts before the loop that reads the row.
    let mut ranges = Ranges::new(kernel);
    let mut inside = BTreeSet::new();
    for event in &events {
        if let Event::For { index, .. } = event {
            for (i, row) in rows.iter().enumerate().filter(|(_, row)| row.again == *index) {
                let whole = &kernel.buffers[row.buffer].len;
                let Some(index) = row.along() else {
                    let last = row.from.add(&row.len).sub(&Poly::constant(1));
                    if ranges.is_inside(&row.from, whole) && ranges.is_inside(&last, whole) {
                        inside.insert(i);
                    }
                    continue;
                };
                ranges.event(&Event::For { index, count: &row.len, carried: &[], order: Order::InOrder });
                if ranges.is_inside(&row.from.add(&Poly::var(index)), whole) {
                    inside.insert(i);
                }
                ranges.event(&Event::EndFor { index, carried: &[] });
            }
        }
        ranges.event(event);
    }
    let mut i = 0..;
    rows.retain(|_| i.next().is_some_and(|i| inside.contains(&i)));
    rows.truncate(MAX_ROWS);
    rows
}

fn found(kernel: &Kernel, events: &[Event<'_>]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut open = Open::default();
    for event in events {
        match event {
            Event::For { index, count, order, .. } => {
                open.loops.push((*order == Order::InOrder).then_some((*index, *count)));
            }
            Event::While { .. } | Event::If { .. } => open.loops.push(None),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                open.loops.pop();
            }
            Event::Instr(Instr::Load { buffer, at, .. })
                if matches!(kernel.buffers[*buffer].place, Place::Input(_))
                    && kernel.buffers[*buffer].class == Class::Real =>
            {
                let row = row_of(kernel, &open, at).or_else(|| unrolled_row_of(&open, at));
                if let Some(Element { of, again, place, len }) = row {
                    let from = at.sub(&place);
                    let is_same = |row: &&mut Row| {
                        row.again == again && row.buffer == *buffer && row.from == from && row.len == len
                    };
                    match rows.iter_mut().find(is_same) {
                        Some(row) => {
                            row.elements.insert(at.clone(), place);
                        }
                        None => {
                            let elements = BTreeMap::from([(at.clone(), place)]);
                            rows.push(Row { of, again, buffer: *buffer, from, len, elements });
                        }
                    }
                }
            }
            _ => {}
        }
        event.for_each_def(|r| {
            open.levels.insert(r, open.loops.len());
        });
    }
    rows.retain(|row| !row.is_unrolled() || row.elements.len() >= FEWEST);
    rows
}

/// An element of a row that a loop reads again.
struct Element {
    /// Loop whose iterations have a row each.
    of: Reg,
    /// Inner loop that rereads the row.
    again: Reg,
    /// Place in the row.
    place: Poly<Reg>,
    /// Length of the row.
    len: Poly<Reg>,
}

/// Returns what a load at `at` inside the `open` loops reads if it is an element of a row along one of them.
fn row_of(kernel: &Kernel, open: &Open<'_>, at: &Poly<Reg>) -> Option<Element> {
    let slope = |index: Reg| at.split_linear(index).map(|(slope, _)| slope);
    let (along, len) = *open.loops.iter().flatten().rev().find(|(index, count)| {
        slope(*index).and_then(|slope| slope.as_constant()) == Some(1)
            && count.as_var().is_some_and(|len| kernel.is_extent(len))
    })?;
    let is_row = |of: Reg, again: Reg| {
        again != along && of != along && slope(of).is_some_and(|slope| slope.as_constant().is_none())
    };
    let (of, again) = reread(open, at, (Some(along), &is_row))?;
    Some(Element { of, again, place: Poly::var(along), len: len.clone() })
}

/// As [`row_of`], for a row of known length whose elements are read at constants.
fn unrolled_row_of(open: &Open<'_>, at: &Poly<Reg>) -> Option<Element> {
    let (_, place) = at.split_constant();
    let length = |of: Reg| at.split_linear(of).and_then(|(slope, _)| slope.as_constant());
    let is_row = |of: Reg, _| length(of).is_some_and(|length| length <= LONGEST && (0..length).contains(&place));
    let (of, again) = reread(open, at, (None, &is_row))?;
    Some(Element { of, again, place: Poly::constant(place), len: Poly::constant(length(of)?) })
}

/// Returns, for a load at `at` inside the `open` loops, a loop and the loop in it that has the same address in all its
/// iterations but for the index `along` of a row, if they satisfy a condition.
fn reread(
    open: &Open<'_>,
    at: &Poly<Reg>,
    (along, is_row): (Option<Reg>, &dyn Fn(Reg, Reg) -> bool),
) -> Option<(Reg, Reg)> {
    let vars = at.vars();
    let pairs = open.loops.iter().zip(open.loops.iter().skip(1)).enumerate();
    pairs.into_iter().find_map(|(depth, (around, inner))| {
        let ((of, _), (again, _)) = ((*around)?, (*inner)?);
        let is_invariant = |r: &Reg| open.levels.get(r).is_none_or(|level| *level <= depth + 1);
        let is_same = |r: &Reg| Some(*r) == along || is_invariant(r);
        (is_row(of, again) && vars.iter().all(is_same)).then_some((of, again))
    })
}

/// Packs each of `rows` before the loop that reads it.
pub(super) fn stage(kernel: &mut Kernel, rows: &[Row]) {
    let mut body = std::mem::take(&mut kernel.body);
    let places: Vec<BufferId> = rows.iter().map(|row| kernel.memory(row.len.clone())).collect();
    each_statement(&mut body, |mut stmt, done| {
        if let Stmt::For { index, body, .. } = &mut stmt {
            for (row, place) in rows.iter().zip(&places).filter(|(row, _)| row.again == *index) {
                let (to, from) = ((*place, Poly::zero()), (row.buffer, row.from.clone()));
                done.push(Stmt::Copy { to, from, len: row.len.clone(), is_move: false });
                each_access(body, |buffer, at| {
                    if *buffer == row.buffer
                        && let Some(element) = row.elements.get(at)
                    {
                        (*buffer, *at) = (*place, element.clone());
                    }
                });
            }
        }
        done.push(stmt);
    });
    kernel.body = body;
}
