//! Rows that each iteration reads again and again, read once.
//!
//! ```text
//! for i in 0..n                          for i in 0..n
//!   for j in 0..k                          copy d to row[0] from x[d i]
//!     for c in 0..d                        for j in 0..k
//!       ... x[d i + c] ...                   for c in 0..d
//!                                              ... row[c] ...
//! ```
//!
//! In lanes, element `c` of eight rows is eight elements far from each other, fetched one by one each time. What an
//! iteration has for itself has its eight places side by side: after the copy they are one vector.
//!
//! Of inputs only, which nothing overwrites; what is copied lies inside of the input whether the loop inside runs or not. It is
//! a copy in vain where the loop does not run in lanes, so who calls this keeps it only where it does.

use crate::events::{Event, events};
use crate::kernel::{BufferId, Class, Instr, Kernel, Order, Place, Reg, Stmt};
use crate::ranges::Ranges;
use crate::rebuild::{each_access, each_statement};
use chainrule_base::Poly;
use std::collections::{BTreeMap, BTreeSet};

/// So many rows are copied at most.
const MAX_ROWS: usize = 16;

/// The index of a loop, and how often it runs.
type Counted<'k> = (Reg, &'k Poly<Reg>);

/// A row that is read in a loop.
pub(super) struct Row {
    /// The index of the loop whose iterations have a row each.
    pub of: Reg,
    /// The index of the loop in it that reads the row in each iteration.
    again: Reg,
    buffer: BufferId,
    /// Where it begins.
    from: Poly<Reg>,
    len: Poly<Reg>,
    /// The addresses of its elements in the loop, with the index that they go by.
    elements: BTreeMap<Poly<Reg>, Reg>,
}

/// The rows that are worth a copy where the loops that have them run in lanes. Linear in `kernel`, but for what [`Ranges`] has
/// to prove.
pub(super) fn rows(kernel: &Kernel) -> Vec<Row> {
    let events = events(&kernel.body);
    let mut rows = found(kernel, &events);
    if rows.is_empty() {
        return rows;
    }
    // What is known before the loop that reads it.
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
    // The index and count of each open loop; nothing for what else is open.
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

/// Of the loops that are open where `at` is read: the one that has a row there in each iteration, the one in it that reads it
/// in each of its own, and the one that goes along it with how often.
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
        // The same in all iterations of the loop inside.
        let outer: Vec<Reg> = open[..=depth].iter().flatten().map(|(index, _)| *index).collect();
        let is_same = |r: &Reg| *r == along.0 || kernel.is_extent(*r) || outer.contains(r);
        vars.iter().all(is_same).then_some((of, again, along))
    })
}

/// Copies each of `rows` before the loop that reads it.
pub(super) fn stage(kernel: &mut Kernel, rows: &[Row]) {
    let mut body = std::mem::take(&mut kernel.body);
    let places: Vec<BufferId> = rows.iter().map(|row| kernel.memory(row.len.clone())).collect();
    each_statement(&mut body, |mut stmt, done| {
        if let Stmt::For { index, body, .. } = &mut stmt {
            for (row, place) in rows.iter().zip(&places).filter(|(row, _)| row.again == *index) {
                let (to, from) = ((*place, Poly::zero()), (row.buffer, row.from.clone()));
                done.push(Stmt::Copy { to, from, len: row.len.clone() });
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
