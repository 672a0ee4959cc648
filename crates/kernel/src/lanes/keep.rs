//! Packing of output rows: a row that an iteration writes repeatedly is accumulated in private memory and copied once.
//!
//! ```text
//! for i in 0..n                          for i in 0..n
//!   for c in 0..d                          for c in 0..d
//!     y[d i + c] = 0                         row[c] = 0
//!   for j in 0..k                          for j in 0..k
//!     for c in 0..d                          for c in 0..d
//!       y[d i + c] = y[d i + c] + ..           row[c] = row[c] + ..
//!                                          copy d to y[d i] from row[0]
//! ```
//!
//! As for input rows ([`stage`](super::stage)): in lanes, element `c` of eight rows is strided, whereas private memory
//! has the eight lanes adjacent.
//!
//! The row is first filled by a loop that always runs, and all accesses of the iteration to the buffer are in its row.
//! The copy at the end therefore writes exactly the elements that the iteration wrote.

use super::Spans;
use crate::events::{Event, events};
use crate::kernel::{BufferId, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::rebuild::{each_access, each_statement};
use chainrule_base::Poly;
use std::collections::BTreeMap;

/// Maximum number of packed rows.
const MAX_ROWS: usize = 16;

/// A row written in a loop.
pub(super) struct Row {
    /// Index of the loop whose iterations have a row each.
    pub of: Reg,
    buffer: BufferId,
    /// Offset of the row.
    from: Poly<Reg>,
    len: Poly<Reg>,
}

/// An access to a buffer.
struct Access<'k> {
    at: usize,
    address: &'k Poly<Reg>,
    /// Number of loops around it.
    depth: usize,
}

/// A counted loop: its events, trip count, and the number of loops around it.
struct Counted<'k> {
    begin: usize,
    end: usize,
    count: &'k Poly<Reg>,
    depth: usize,
}

/// Loops and accesses of a kernel.
struct Walk<'k> {
    loops: BTreeMap<Reg, Counted<'k>>,
    /// Loads and stores of each buffer.
    accesses: BTreeMap<BufferId, Vec<Access<'k>>>,
    /// Copies of buffers.
    copies: Vec<(usize, BufferId)>,
    /// Pairs of a loop and one directly inside it, in no branch.
    pairs: Vec<(Reg, Reg)>,
}

impl<'k> Walk<'k> {
    fn new(events: &[Event<'k>]) -> Self {
        let spans = Spans::of(events);
        let mut this =
            Self { loops: BTreeMap::new(), accesses: BTreeMap::new(), copies: Vec::new(), pairs: Vec::new() };
        // Index of each open loop; `None` for other open statements.
        let mut open: Vec<Option<Reg>> = Vec::new();
        let mut depth = 0;
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::For { index, count, order, .. } => {
                    if let (Some(Some(around)), Order::InOrder) = (open.last(), order) {
                        this.pairs.push((*around, *index));
                    }
                    if let (Some(end), Order::InOrder) = (spans.end(at), order) {
                        this.loops.insert(*index, Counted { begin: at, end, count, depth });
                    }
                    open.push((*order == Order::InOrder).then_some(*index));
                    depth += 1;
                }
                Event::While { .. } => {
                    open.push(None);
                    depth += 1;
                }
                Event::If { .. } => open.push(None),
                Event::EndFor { .. } | Event::EndWhile { .. } => {
                    open.pop();
                    depth -= 1;
                }
                Event::EndIf { .. } => drop(open.pop()),
                Event::Instr(Instr::Load { buffer, at: address, .. } | Instr::Store { buffer, at: address, .. }) => {
                    this.accesses.entry(*buffer).or_default().push(Access { at, address, depth });
                }
                Event::Copy { to, from, .. } => this.copies.extend([(at, to.0), (at, from.0)]),
                _ => {}
            }
        }
        this
    }

    /// Returns the row that the loop over `fill`, directly inside the loop over `of`, fills, if all conditions hold.
    fn row(&self, kernel: &Kernel, events: &[Event<'_>], of: Reg, fill: Reg) -> Option<Row> {
        let (around, filling) = (self.loops.get(&of)?, self.loops.get(&fill)?);
        let [first @ .., Event::Instr(Instr::Store { buffer, at, .. })] = &events[filling.begin + 1..filling.end]
        else {
            return None;
        };
        let is_alone = first.iter().all(|event| matches!(event, Event::Instr(_)));
        let from = at.sub(&Poly::var(fill));
        let (slope, _) = from.split_linear(of)?;
        let is_row = slope.as_constant().is_none() && filling.count.as_var().is_some_and(|len| kernel.is_extent(len));
        if !is_alone || !is_row || kernel.buffers[*buffer].class != Class::Real {
            return None;
        }
        let all = &self.accesses[buffer];
        let mine = &all[all.partition_point(|a| a.at < around.begin)..all.partition_point(|a| a.at < around.end)];
        let is_first = mine.first().is_some_and(|access| access.at + 1 == filling.end);
        let is_element = |access: &Access<'_>| {
            let along = access.address.sub(&from).as_var().and_then(|along| self.loops.get(&along));
            along.is_some_and(|along| along.count == filling.count && along.begin > around.begin)
        };
        let is_again = mine.iter().any(|access| access.depth > around.depth + 2);
        let is_copied =
            self.copies.iter().any(|(at, other)| other == buffer && (around.begin..around.end).contains(at));
        (is_first && is_again && !is_copied && mine.iter().all(is_element)).then(|| Row {
            of,
            buffer: *buffer,
            from,
            len: filling.count.clone(),
        })
    }
}

/// Returns the rows worth packing if their loops run in lanes. Linear in `kernel` for each row.
pub(super) fn rows(kernel: &Kernel) -> Vec<Row> {
    let events = events(&kernel.body);
    let walk = Walk::new(&events);
    let rows = walk.pairs.iter().filter_map(|(of, fill)| walk.row(kernel, &events, *of, *fill));
    rows.take(MAX_ROWS).collect()
}

/// Packs each of `rows` and copies it at the end of the iteration.
pub(super) fn keep(kernel: &mut Kernel, rows: &[Row]) {
    let mut body = std::mem::take(&mut kernel.body);
    let places: Vec<BufferId> = rows.iter().map(|row| kernel.memory(row.len.clone())).collect();
    each_statement(&mut body, |mut stmt, done| {
        if let Stmt::For { index, body, .. } = &mut stmt {
            for (row, place) in rows.iter().zip(&places).filter(|(row, _)| row.of == *index) {
                each_access(body, |buffer, at| {
                    if *buffer == row.buffer {
                        (*buffer, *at) = (*place, at.sub(&row.from));
                    }
                });
                let (to, from) = ((row.buffer, row.from.clone()), (*place, Poly::zero()));
                body.push(Stmt::Copy { to, from, len: row.len.clone(), is_move: false });
            }
        }
        done.push(stmt);
    });
    kernel.body = body;
}
