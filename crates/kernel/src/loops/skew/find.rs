//! Selection of loops to skew, with the rows that their stages read and write.

use super::{LARGE, Steps};
use crate::events::{Event, events};
use crate::kernel::{BufferId, Class, Instr, Kernel, Order, Place, Reg, Stmt};
use crate::lanes::independence::relative;
use crate::loops::alternate::{Pairs, is_small, pairs};
use crate::mentions::Mentions;
use crate::ranges::Ranges;
use crate::rebuild::each_loop;
use chainrule_base::Poly;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum distance of rows that are read.
const MAX_REACH: i64 = 8;

/// Minimum number of steps, where it is known.
const FEWEST_STEPS: i64 = 4;

/// Maximum number of stages of a step.
const MAX_STAGES: usize = 8;

/// An access to an array in a loop over rows.
struct Access {
    buffer: BufferId,
    /// Its row in the first iteration.
    first: Poly<Reg>,
    writes: bool,
}

/// A loop over rows.
struct Rows {
    /// Row that the first iteration writes.
    first: Poly<Reg>,
    read: BTreeSet<BufferId>,
    written: BTreeSet<BufferId>,
    /// Distance of the farthest row that is read, by array.
    reach: BTreeMap<BufferId, i64>,
}

impl Rows {
    /// Returns the loop with these accesses, if it writes one row in each iteration, and reads rows near it.
    fn of(accesses: &[Access]) -> Option<Self> {
        let first = accesses.iter().find(|access| access.writes).map(|access| access.first.clone())?;
        let mut this = Self { first, read: BTreeSet::new(), written: BTreeSet::new(), reach: BTreeMap::new() };
        for Access { buffer, first, writes } in accesses {
            let away = first.sub(&this.first).as_constant()?.saturating_abs();
            if away > if *writes { 0 } else { MAX_REACH } {
                return None;
            }
            if *writes {
                this.written.insert(*buffer)
            } else {
                this.read.insert(*buffer)
            };
            let reach = this.reach.entry(*buffer).or_default();
            *reach = away.max(*reach);
        }
        Some(this)
    }

    /// Returns whether the order of different rows of both loops matters.
    fn conflicts(&self, other: &Self) -> bool {
        let is_far = |rows: &Self, buffer| rows.reach.get(buffer).is_some_and(|reach| *reach > 0);
        let both = self.written.intersection(&other.read).chain(self.read.intersection(&other.written));
        both.into_iter().any(|buffer| is_far(self, buffer) || is_far(other, buffer))
    }
}

/// A loop over rows that is being read.
struct Open {
    index: Reg,
    /// Registers that an iteration defines.
    own: BTreeSet<Reg>,
}

/// A loop that may be one over steps.
struct Candidate {
    pairs: Pairs,
    /// Arrays that it writes.
    arrays: BTreeSet<BufferId>,
    /// Loops over rows: positions in the body by index.
    loops: BTreeMap<Reg, usize>,
    /// Accesses to the arrays in each of them, by its position.
    accesses: BTreeMap<usize, Vec<Access>>,
    /// Buffers that each row writes before it reads them.
    private: BTreeSet<BufferId>,
    /// Length of a row, once known.
    row: Option<Poly<Reg>>,
    /// Registers that differ between steps.
    by_step: BTreeSet<Reg>,
    is_legal: bool,
}

/// Returns the loops over steps of stencils, by their indices.
pub(super) fn find(kernel: &Kernel) -> BTreeMap<Reg, Steps> {
    let mut candidates = candidates(kernel);
    if candidates.is_empty() {
        return BTreeMap::new();
    }
    let mut ranges = Ranges::new(kernel);
    let mut step: Option<(Reg, &mut Candidate)> = None;
    let mut row: Option<Open> = None;
    for event in events(&kernel.body) {
        ranges.event(&event);
        match &event {
            Event::For { index, .. } if step.is_none() => {
                // Loops inside of candidates are none.
                step = candidates.get_mut(index).map(|found| (*index, found));
                continue;
            }
            Event::EndFor { index, .. } if step.as_ref().is_some_and(|(open, _)| open == index) => step = None,
            Event::EndFor { index, .. } if row.as_ref().is_some_and(|row| row.index == *index) => row = None,
            _ => {}
        }
        let Some((_, found)) = &mut step else { continue };
        match (&event, &mut row) {
            (Event::For { index, .. }, None) => row = Some(Open { index: *index, own: BTreeSet::new() }),
            (_, Some(row)) => event.for_each_def(|r| row.own.extend([r])),
            (_, None) => found.outside(&event),
        }
        if let Some(row) = &row {
            found.access(&ranges, &event, row);
        }
    }
    let found = candidates.into_iter();
    found.filter_map(|(index, candidate)| Some((index, candidate.steps(kernel)?))).collect()
}

/// Returns the loops of the form of a loop over steps, by their indices.
fn candidates(kernel: &Kernel) -> BTreeMap<Reg, Candidate> {
    let mut found = BTreeMap::new();
    let mut mentions = None;
    each_loop(&kernel.body, |stmt| {
        let Stmt::For { index, count, carried, order: Order::InOrder, body } = stmt else { return false };
        if !carried.is_empty() || count.as_constant().is_some_and(|n| n < FEWEST_STEPS) {
            return false;
        }
        let candidate = candidate(kernel, &mut mentions, *index, body);
        let is_found = candidate.is_some();
        found.extend(candidate.map(|candidate| (*index, candidate)));
        is_found
    });
    found
}

/// Returns the loop as a candidate, if it has the form of one. `mentions` are those of the kernel, once needed.
fn candidate(kernel: &Kernel, mentions: &mut Option<Mentions>, index: Reg, body: &[Stmt]) -> Option<Candidate> {
    let pairs = pairs(kernel, body);
    let body = &body[..body.len() - pairs.len()];
    let mut loops = BTreeMap::new();
    let mut private = BTreeSet::new();
    let mut arrays: BTreeSet<BufferId> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    for (at, stmt) in body.iter().enumerate() {
        match stmt {
            Stmt::For { index, carried, order: Order::InOrder, body, .. } if carried.is_empty() => {
                loops.insert(*index, at);
                let mentions = mentions.get_or_insert_with(|| Mentions::of(&kernel.body));
                let part = Mentions::of(body);
                for (buffer, found) in part.iter() {
                    if mentions.is_private(&part, &kernel.buffers, buffer) {
                        private.insert(buffer);
                    } else if found.writes {
                        arrays.insert(buffer);
                    }
                }
            }
            Stmt::Straight(_) => {}
            _ => return None,
        }
    }
    if loops.is_empty() || !is_small(body) {
        return None;
    }
    let len = &kernel.buffers[*arrays.first()?].len;
    let is_even = |id: &BufferId| kernel.buffers[*id].len == *len && kernel.buffers[*id].class == Class::Real;
    let is_small = len.as_constant().is_some_and(|n| n.saturating_mul(arrays.len() as i64) <= LARGE);
    let mut places: Vec<&Place> = arrays.iter().map(|id| &kernel.buffers[*id].place).collect();
    places.extend(private.iter().map(|id| &kernel.buffers[*id].place));
    let of_arrays = &places[..arrays.len()];
    let is_alone = of_arrays.iter().all(|place| places.iter().filter(|other| *other == place).count() == 1);
    (arrays.iter().all(is_even) && !is_small && is_alone).then(|| Candidate {
        pairs,
        arrays,
        loops,
        accesses: BTreeMap::new(),
        private,
        row: None,
        by_step: BTreeSet::from([index]),
        is_legal: true,
    })
}

impl Candidate {
    /// Reads an event between the loops over rows: it may compute anything but from the arrays. The only copies are the
    /// moves at the end.
    fn outside(&mut self, event: &Event<'_>) {
        if matches!(event, Event::Copy { .. }) {
            return;
        }
        let mut differs = false;
        event.for_each_use(|r| differs |= self.by_step.contains(&r));
        if differs {
            event.for_each_def(|r| self.by_step.extend([r]));
        }
        event.for_each_access(|buffer, _| self.is_legal &= !self.arrays.contains(&buffer));
    }

    /// Reads an event in a loop over rows.
    fn access(&mut self, ranges: &Ranges, event: &Event<'_>, row: &Open) {
        let mut see = |buffer: BufferId, at: &Poly<Reg>, len: Option<&Poly<Reg>>, writes: bool| {
            if self.private.contains(&buffer) {
                self.is_legal &= !at.vars().contains(&row.index);
            } else if self.arrays.contains(&buffer) && self.is_legal {
                self.is_legal = self.add(ranges, (buffer, at, len), writes, row).is_some();
            }
        };
        match event {
            Event::Instr(Instr::Load { buffer, at, .. }) => see(*buffer, at, None, false),
            Event::Instr(Instr::Store { buffer, at, .. }) => see(*buffer, at, None, true),
            Event::Copy { to, from, len, .. } => {
                see(from.0, &from.1, Some(len), false);
                see(to.0, &to.1, Some(len), true);
            }
            _ => {}
        }
    }

    /// Adds an access: buffer, address and number of elements.
    fn add(
        &mut self,
        ranges: &Ranges,
        (buffer, at, len): (BufferId, &Poly<Reg>, Option<&Poly<Reg>>),
        writes: bool,
        row: &Open,
    ) -> Option<()> {
        let found = relative(ranges, at, len, row.index, |r| row.own.contains(r))?;
        let first = quotient(&found.row?, &found.slope)?;
        let is_same = self.row.get_or_insert(found.slope.clone()) == &found.slope;
        let accesses = self.accesses.entry(*self.loops.get(&row.index)?).or_default();
        accesses.push(Access { buffer, first, writes });
        is_same.then_some(())
    }

    /// Returns the stages, if the loop can be skewed.
    fn steps(mut self, kernel: &Kernel) -> Option<Steps> {
        let row = self.row.take().filter(|_| self.is_legal)?;
        let rows_of_arrays = quotient(&kernel.buffers[*self.arrays.first()?].len, &row)?;
        let mut rows = BTreeMap::new();
        for at in self.loops.values() {
            rows.insert(*at, Rows::of(self.accesses.get(at)?)?);
        }
        let differs = |p: &Poly<Reg>| p.vars().iter().any(|r| self.by_step.contains(r));
        if rows.values().map(|rows| &rows.first).chain([&row]).any(differs) {
            return None;
        }
        let stages = stages(&rows);
        // Without a reach it is no stencil: sums of rows, for example.
        let reach = rows.values().flat_map(|rows| rows.reach.values()).copied().max().filter(|reach| *reach > 0)?;
        (stages.len() <= MAX_STAGES).then(|| Steps {
            stages,
            reach,
            first: rows.into_iter().map(|(at, rows)| (at, rows.first)).collect(),
            pairs: self.pairs,
            arrays: self.arrays.len() as i64,
            private: self.private.into_iter().collect(),
            row,
            rows: rows_of_arrays,
        })
    }
}

/// Returns the loops over rows by stage: a stage ends before a loop that conflicts with one of it.
fn stages(rows: &BTreeMap<usize, Rows>) -> Vec<Vec<usize>> {
    let mut stages: Vec<Vec<usize>> = Vec::new();
    for (at, next) in rows {
        match stages.last_mut() {
            Some(stage) if !stage.iter().any(|other| rows[other].conflicts(next)) => stage.push(*at),
            _ => stages.push(vec![*at]),
        }
    }
    stages
}

/// Returns `p / by`, if nothing remains.
fn quotient(p: &Poly<Reg>, by: &Poly<Reg>) -> Option<Poly<Reg>> {
    p.divide(by).filter(|(_, rest)| rest.is_zero()).map(|(quotient, _)| quotient)
}
