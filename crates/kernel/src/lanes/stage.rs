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

/// Index of a loop, and its trip count.
type Counted<'k> = (Reg, &'k Poly<Reg>);

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
    /// Addresses of its elements in the loop, with the index that runs along the row.
    elements: BTreeMap<Poly<Reg>, Reg>,
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
                let Some(element) = row.elements.values().next() else { continue };
                ranges.event(&Event::For { index: *element, count: &row.len, carried: &[], order: Order::InOrder });
                if ranges.is_inside(&row.from.add(&Poly::var(*element)), &kernel.buffers[row.buffer].len) {
                    inside.insert(i);
                }
                ranges.event(&Event::EndFor { index: *element, carried: &[] });
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
    // Index and count of each open loop; `None` for other open statements.
    let mut open: Vec<Option<Counted<'_>>> = Vec::new();
    for event in events {
        match event {
            Event::For { index, count, order, .. } => {
                open.push((*order == Order::InOrder).then_some((*index, *count)));
            }
            Event::While { .. } | Event::If { .. } => open.push(None),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                open.pop();
            }
            Event::Instr(Instr::Load { buffer, at, .. })
                if matches!(kernel.buffers[*buffer].place, Place::Input(_))
                    && kernel.buffers[*buffer].class == Class::Real =>
            {
                if let Some((of, again, element)) = row_of(kernel, &open, at) {
                    let (index, count) = element;
                    let from = at.sub(&Poly::var(index));
                    let is_same = |row: &&mut Row| {
                        row.again == again && row.buffer == *buffer && row.from == from && row.len == *count
                    };
                    match rows.iter_mut().find(is_same) {
                        Some(row) => {
                            row.elements.insert(at.clone(), index);
                        }
                        None => rows.push(Row {
                            of,
                            again,
                            buffer: *buffer,
                            from,
                            len: count.clone(),
                            elements: BTreeMap::from([(at.clone(), index)]),
                        }),
                    }
                }
            }
            _ => {}
        }
    }
    rows
}

/// Returns, for a load at `at` inside the `open` loops: the loop whose iterations have a row each, the inner loop that
/// rereads the row, and the loop along the row with its trip count.
fn row_of<'k>(kernel: &Kernel, open: &[Option<Counted<'k>>], at: &Poly<Reg>) -> Option<(Reg, Reg, Counted<'k>)> {
    let vars = at.vars();
    let slope = |index: Reg| at.split_linear(index).map(|(slope, _)| slope);
    let along = open.iter().flatten().rev().find(|(index, count)| {
        slope(*index).and_then(|slope| slope.as_constant()) == Some(1)
            && count.as_var().is_some_and(|len| kernel.is_extent(len))
    });
    let along = *along?;
    let pairs = open.iter().zip(open.iter().skip(1)).enumerate();
    pairs.into_iter().find_map(|(depth, (around, inner))| {
        let ((of, _), (again, _)) = ((*around)?, (*inner)?);
        if again == along.0 || of == along.0 || slope(of)?.as_constant().is_some() {
            return None;
        }
        // Invariant in the inner loop.
        let outer: Vec<Reg> = open[..=depth].iter().flatten().map(|(index, _)| *index).collect();
        let is_same = |r: &Reg| *r == along.0 || kernel.is_extent(*r) || outer.contains(r);
        vars.iter().all(is_same).then_some((of, again, along))
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
                        && let Some(index) = row.elements.get(at)
                    {
                        (*buffer, *at) = (*place, Poly::var(*index));
                    }
                });
            }
        }
        done.push(stmt);
    });
    kernel.body = body;
}
