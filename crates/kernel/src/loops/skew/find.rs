//! Selection of loops to skew, with the rows that their stages read and write.

use super::{LARGE, Steps};
use crate::events::{Event, events, walk};
use crate::kernel::{BufferId, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::lanes::independence::relative;
use crate::loops::alternate::{Pairs, is_small, pairs};
use crate::ranges::Ranges;
use chainrule_base::Poly;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum distance of rows that are read.
const MAX_REACH: i64 = 8;

/// Maximum number of stages of a step.
const MAX_STAGES: usize = 8;

/// Accesses to the arrays of a stencil in a loop over rows.
#[derive(Default)]
struct Rows {
    read: BTreeSet<BufferId>,
    written: BTreeSet<BufferId>,
    /// First rows of the accesses, with whether they write.
    first: Vec<(Poly<Reg>, bool)>,
}

/// A loop that may be one over steps.
struct Candidate {
    pairs: Pairs,
    /// Arrays that it writes.
    arrays: BTreeSet<BufferId>,
    /// Loops over rows: positions in the body by index.
    loops: BTreeMap<Reg, usize>,
    rows: BTreeMap<usize, Rows>,
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
    // The open candidate, and the open loop over rows with what an iteration defines.
    let mut step: Option<(Reg, &mut Candidate)> = None;
    let mut row: Option<(Reg, BTreeSet<Reg>)> = None;
    for event in events(&kernel.body) {
        ranges.event(&event);
        match &event {
            Event::For { index, .. } if step.is_none() => {
                // Loops inside of candidates are none.
                step = candidates.get_mut(index).map(|found| (*index, found));
                continue;
            }
            Event::EndFor { index, .. } if step.as_ref().is_some_and(|(open, _)| open == index) => step = None,
            Event::EndFor { index, .. } if row.as_ref().is_some_and(|(open, _)| open == index) => row = None,
            _ => {}
        }
        let Some((_, found)) = &mut step else { continue };
        match (&event, &mut row) {
            (Event::For { index, .. }, None) => row = Some((*index, BTreeSet::new())),
            (_, Some((_, own))) => event.for_each_def(|r| own.extend([r])),
            (_, None) => found.outside(&event),
        }
        if let Some((index, own)) = &row {
            found.access(&ranges, &event, *index, own);
        }
    }
    let found = candidates.into_iter();
    found.filter_map(|(index, candidate)| Some((index, candidate.steps(kernel)?))).collect()
}

/// Returns the loops of the form of a loop over steps, by their indices.
fn candidates(kernel: &Kernel) -> BTreeMap<Reg, Candidate> {
    let mut found = BTreeMap::new();
    let mut open: Vec<&[Stmt]> = vec![&kernel.body];
    while let Some(block) = open.pop() {
        for stmt in block {
            match stmt {
                Stmt::For { index, count, carried, order, body } => {
                    let is_plain = carried.is_empty() && *order == Order::InOrder;
                    let is_short = count.as_constant().is_some_and(|n| n < 4);
                    match candidate(kernel, *index, body).filter(|_| is_plain && !is_short) {
                        Some(candidate) => drop(found.insert(*index, candidate)),
                        None => open.push(body),
                    }
                }
                Stmt::While { condition, body, .. } => open.extend([condition.as_slice(), body]),
                Stmt::If { then, otherwise, .. } => open.extend([then.as_slice(), otherwise]),
                Stmt::Straight(_) | Stmt::Copy { .. } => {}
            }
        }
    }
    found
}

fn candidate(kernel: &Kernel, index: Reg, body: &[Stmt]) -> Option<Candidate> {
    let pairs = pairs(kernel, body);
    let body = &body[..body.len() - pairs.len()];
    let mut loops = BTreeMap::new();
    for (at, stmt) in body.iter().enumerate() {
        match stmt {
            Stmt::For { index, carried, order: Order::InOrder, .. } if carried.is_empty() => {
                loops.insert(*index, at);
            }
            Stmt::Straight(_) => {}
            _ => return None,
        }
    }
    if loops.is_empty() || !is_small(body) {
        return None;
    }
    let mut arrays = BTreeSet::new();
    for event in walk(body) {
        event.for_each_access(|buffer, writes| arrays.extend(writes.then_some(buffer)));
    }
    arrays.extend(pairs.iter().flat_map(|(a, b)| [*a, *b]));
    let len = &kernel.buffers[*arrays.first()?].len;
    let is_even = |id: &BufferId| kernel.buffers[*id].len == *len && kernel.buffers[*id].class == Class::Real;
    let is_small = len.as_constant().is_some_and(|n| n.saturating_mul(arrays.len() as i64) <= LARGE);
    // All arrays alternate, or none does.
    let all_alternate = pairs.is_empty() || 2 * pairs.len() == arrays.len();
    (arrays.iter().all(is_even) && !is_small && all_alternate).then(|| Candidate {
        pairs,
        arrays,
        loops,
        rows: BTreeMap::new(),
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

    /// Reads an event in the loop over rows with this index; `own` holds what an iteration of it defines.
    fn access(&mut self, ranges: &Ranges, event: &Event<'_>, index: Reg, own: &BTreeSet<Reg>) {
        let mut see = |buffer: BufferId, at: &Poly<Reg>, len: Option<&Poly<Reg>>, writes: bool| {
            if self.arrays.contains(&buffer) && self.is_legal {
                self.is_legal = self.add(ranges, (buffer, at, len), writes, (index, own)).is_some();
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
        (index, own): (Reg, &BTreeSet<Reg>),
    ) -> Option<()> {
        let found = relative(ranges, at, len, index, |r| own.contains(r))?;
        let first = quotient(&found.row?, &found.slope)?;
        let is_same = self.row.get_or_insert(found.slope.clone()) == &found.slope;
        let rows = self.rows.entry(*self.loops.get(&index)?).or_default();
        if writes {
            rows.written.insert(buffer)
        } else {
            rows.read.insert(buffer)
        };
        rows.first.push((first, writes));
        is_same.then_some(())
    }

    /// Returns the stages, if the loop can be skewed.
    fn steps(mut self, kernel: &Kernel) -> Option<Steps> {
        let row = self.row.take().filter(|_| self.is_legal)?;
        let len = &kernel.buffers[*self.arrays.first()?].len;
        let rows = quotient(len, &row)?;
        let mut first = BTreeMap::new();
        let mut reach = 0;
        for (at, rows) in &self.rows {
            let own = rows.first.iter().find(|(_, writes)| *writes).map(|(first, _)| first)?;
            for (other, writes) in &rows.first {
                let away = other.sub(own).as_constant()?;
                reach = reach.max(away.abs());
                if *writes && away != 0 {
                    return None;
                }
            }
            first.insert(*at, own.clone());
        }
        let differs = |p: &Poly<Reg>| p.vars().iter().any(|r| self.by_step.contains(r));
        if reach > MAX_REACH || self.rows.len() < self.loops.len() || first.values().chain([&row]).any(differs) {
            return None;
        }
        let stages = self.stages();
        let arrays = self.arrays.len() as i64;
        (stages.len() <= MAX_STAGES).then(|| Steps { stages, first, pairs: self.pairs, arrays, row, rows, reach })
    }

    /// Returns the loops over rows by stage: the next stage begins where a loop reads what one before it writes, or
    /// writes what that reads.
    fn stages(&self) -> Vec<Vec<usize>> {
        let mut stages: Vec<Vec<usize>> = Vec::new();
        for (at, rows) in &self.rows {
            let conflicts = |other: &usize| {
                let other = &self.rows[other];
                !other.written.is_disjoint(&rows.read) || !other.read.is_disjoint(&rows.written)
            };
            match stages.last_mut() {
                Some(stage) if !stage.iter().any(conflicts) => stage.push(*at),
                _ => stages.push(vec![*at]),
            }
        }
        stages
    }
}

/// Returns `p / by`, if `by` is a product that divides each term.
fn quotient(p: &Poly<Reg>, by: &Poly<Reg>) -> Option<Poly<Reg>> {
    let mut terms = by.terms();
    let (Some((product, c)), None) = (terms.next(), terms.next()) else { return None };
    let mut quotient = Poly::zero();
    for (monomial, d) in p.terms() {
        let mut left = monomial.to_vec();
        for r in product {
            left.remove(left.iter().position(|other| other == r)?);
        }
        if d % c != 0 {
            return None;
        }
        quotient = quotient.add(&left.iter().fold(Poly::constant(d / c), |p, r| p.mul(&Poly::var(*r))));
    }
    Some(quotient)
}
