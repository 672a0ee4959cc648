//! Selection of sequences of loops over rows, with the iterations by which each follows the first.

use super::{SHORTEST_ROW, SMALLEST};
use crate::events::{Event, walk};
use crate::kernel::{BufferId, Instr, Kernel, Order, Place, Reg, Stmt};
use crate::lanes::is_pure;
use crate::mentions::Mentions;
use crate::ranges::Ranges;
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of rows by which a loop follows the first.
const MAX_SHIFT: i64 = 64;

/// Maximum number of loops of a sequence.
const MAX_LOOPS: usize = 32;

/// A sequence of loops over rows, siblings in a block.
pub(super) struct Sequence {
    /// Its loops, by index, with the number of rows by which each follows the first.
    pub loops: Vec<(Reg, i64)>,
    /// Arrays of which a window of rows is kept.
    pub windows: Vec<Window>,
    /// Buffers that each row of a loop writes before it reads them.
    pub private: BTreeSet<BufferId>,
    /// Arrays that they access by rows, with the number of elements of a row.
    pub arrays: BTreeMap<BufferId, Poly<Reg>>,
    /// Range of events.
    events: (usize, usize),
}

impl Sequence {
    /// Returns the number of rows by which the last loop follows the first.
    pub fn lag(&self) -> i64 {
        self.loops.iter().map(|(_, shift)| *shift).max().unwrap_or(0)
    }
}

/// Rows of an array that later iterations read.
pub(super) struct Window {
    pub buffer: BufferId,
    /// Number of elements of a row.
    pub row: Poly<Reg>,
    /// First row that is accessed, relative to the first row of a round.
    pub first: i64,
    /// Number of rows of a round that the next one reads.
    pub kept: i64,
}

/// An access to `len` elements, or one.
struct Access<'a> {
    buffer: BufferId,
    at: &'a Poly<Reg>,
    len: Option<&'a Poly<Reg>>,
    writes: bool,
}

/// Rows of a buffer that a loop accesses: numbers relative to its iteration.
#[derive(Clone, Copy)]
struct Span {
    least: i64,
    most: i64,
}

impl Span {
    fn with(of: Option<Self>, row: i64) -> Self {
        of.map_or(Self { least: row, most: row }, |span| Self { least: span.least.min(row), most: span.most.max(row) })
    }
}

/// Accesses of a loop to a buffer by rows.
#[derive(Clone)]
struct Rows {
    /// Number of elements of a row.
    row: Poly<Reg>,
    /// Row of the first iteration, less the numbers in `all` and `written`.
    from: Poly<Reg>,
    all: Span,
    written: Option<Span>,
}

impl Rows {
    /// Returns by how many iterations a loop with accesses `next` follows one with these, at least.
    fn shift(&self, next: &Self) -> Option<i64> {
        let before = self.written.map(|written| next.all.most.saturating_sub(written.least));
        let after = next.written.map(|written| written.most.saturating_sub(self.all.least));
        before.max(after)
    }

    /// Returns whether rows of both are the same parts of the buffer.
    fn is_like(&self, other: &Self) -> bool {
        self.row == other.row && self.from == other.from
    }
}

/// Accesses of a loop to a buffer.
enum Touch {
    /// Each iteration accesses rows that are known.
    Rows(Rows),
    /// Elements that are not known; whether it writes.
    Any(bool),
}

/// A loop that has been read.
struct Found {
    index: Reg,
    touched: BTreeMap<BufferId, Touch>,
    events: (usize, usize),
    /// Results.
    results: BTreeSet<Reg>,
    /// Registers from outside that it uses.
    used: BTreeSet<Reg>,
    private: BTreeSet<BufferId>,
}

/// A loop inside a loop over rows.
struct Inner {
    index: Reg,
    /// Whether it has loops.
    has_loops: bool,
    /// Whether each of its iterations accesses another element of a row.
    goes_along: bool,
}

/// A statement with blocks that is being read.
struct Open<'k> {
    /// Index and statement, for a loop that may be one of a sequence.
    rows: Option<(Reg, &'k Stmt)>,
    begin: usize,
    is_loop: bool,
    /// A counted loop.
    around: Option<&'k Stmt>,
    /// Last loops of the block, which may be a sequence.
    members: Vec<Found>,
    touched: BTreeMap<BufferId, Touch>,
    /// Loops inside that are open.
    inner: Vec<Inner>,
    used: BTreeSet<Reg>,
    is_fit: bool,
}

/// State of the search.
struct Finder<'k> {
    kernel: &'k Kernel,
    ranges: Ranges,
    /// Loops by index.
    loops: BTreeMap<Reg, &'k Stmt>,
    /// Those that may be members.
    candidates: BTreeSet<Reg>,
    /// Event that defines a register.
    defined: Vec<u32>,
    open: Vec<Open<'k>>,
    found: Vec<Sequence>,
    mentions: Mentions,
}

/// Returns the sequences, by the index of their first loop. `O(n d)` for loops nested `d` deep.
pub(super) fn find(kernel: &Kernel) -> BTreeMap<Reg, Sequence> {
    let (loops, candidates) = loops(kernel);
    if candidates.is_empty() {
        return BTreeMap::new();
    }
    let mut finder = Finder {
        kernel,
        ranges: Ranges::new(kernel),
        loops,
        candidates,
        defined: vec![0; kernel.regs.len()],
        open: vec![Open::new(None, 0)],
        found: Vec::new(),
        mentions: Mentions::of(&kernel.body),
    };
    for (now, event) in walk(&kernel.body).enumerate() {
        finder.event(now, &event);
    }
    finder.end();
    let mut found = finder.found;
    // Sequences inside of others are none.
    let outer: Vec<(usize, usize)> = found.iter().map(|sequence| sequence.events).collect();
    found.retain(|Sequence { events, .. }| !outer.iter().any(|other| other.0 < events.0 && events.1 < other.1));
    found.into_iter().map(|sequence| (sequence.loops[0].0, sequence)).collect()
}

/// Returns the loops by index, with those that have a sibling that reads what they write.
fn loops(kernel: &Kernel) -> (BTreeMap<Reg, &Stmt>, BTreeSet<Reg>) {
    let (mut all, mut candidates) = (BTreeMap::new(), BTreeSet::new());
    let mut open = vec![kernel.body.as_slice()];
    while let Some(block) = open.pop() {
        let is_member = |stmt: &&Stmt| matches!(stmt, Stmt::For { order: Order::InOrder, .. });
        let nests: Vec<(&Stmt, Mentions)> =
            block.iter().filter(is_member).map(|stmt| (stmt, Mentions::of(std::slice::from_ref(stmt)))).collect();
        let is_large =
            |buffer: &BufferId| kernel.buffers[*buffer].len.as_constant().is_none_or(|len| len >= SMALLEST / 4);
        let mut written = BTreeSet::new();
        let mut is_chain = false;
        for (_, nest) in &nests {
            is_chain |= nest.iter().any(|(buffer, _)| written.contains(&buffer));
            written.extend(nest.iter().filter(|(_, found)| found.writes).map(|(buffer, _)| buffer).filter(is_large));
        }
        for (stmt, _) in &nests {
            let Stmt::For { index, .. } = stmt else { continue };
            all.insert(*index, *stmt);
            candidates.extend(is_chain.then_some(*index));
        }
        for stmt in block {
            match stmt {
                Stmt::For { order: Order::InOrder, body, .. } => open.push(body),
                Stmt::While { condition, body, .. } => open.extend([condition.as_slice(), body]),
                Stmt::If { then, otherwise, .. } => open.extend([then.as_slice(), otherwise]),
                Stmt::For { .. } | Stmt::Straight(_) | Stmt::Copy { .. } => {}
            }
        }
    }
    (all, candidates)
}

impl<'k> Open<'k> {
    fn new(rows: Option<(Reg, &'k Stmt)>, begin: usize) -> Self {
        Self {
            rows,
            begin,
            is_loop: false,
            around: None,
            members: Vec::new(),
            touched: BTreeMap::new(),
            inner: Vec::new(),
            used: BTreeSet::new(),
            is_fit: true,
        }
    }

    /// Returns whether the row is accessed at an address with all indices of the loops inside.
    fn goes_along(&self, at: &Poly<Reg>) -> bool {
        let vars = at.vars();
        self.rows.is_some_and(|(index, _)| vars.contains(&index))
            && self.inner.iter().all(|inner| vars.contains(&inner.index))
    }
}

impl<'k> Finder<'k> {
    fn event(&mut self, now: usize, event: &Event<'_>) {
        self.ranges.event(event);
        match event {
            Event::EndFor { index, .. } => {
                self.uses(event);
                self.close_loop(now, *index);
            }
            Event::EndWhile { .. } | Event::EndIf { .. } | Event::Else { .. } | Event::Test { .. } => {
                self.end();
                self.open.pop();
                self.end();
            }
            _ => {}
        }
        self.uses(event);
        event.for_each_def(|r| self.defined[r.index()] = now as u32 + 1);
        match event {
            Event::Instr(instr) => self.instr(instr),
            Event::Copy { to, from, len, .. } => {
                self.access(&Access { buffer: from.0, at: &from.1, len: Some(len), writes: false });
                self.access(&Access { buffer: to.0, at: &to.1, len: Some(len), writes: true });
                self.end();
            }
            Event::For { index, order, .. } => {
                let around = self.loops.get(index).copied();
                let rows = around.filter(|_| self.candidates.contains(index)).map(|stmt| (*index, stmt));
                for open in &mut self.open {
                    open.inner.iter_mut().for_each(|inner| inner.has_loops = true);
                    open.inner.push(Inner { index: *index, has_loops: false, goes_along: false });
                    open.is_fit &= *order == Order::InOrder;
                }
                if rows.is_none() {
                    self.end();
                }
                let mut open = Open { is_loop: true, around, ..Open::new(rows, now) };
                event.for_each_use(|r| _ = open.used.insert(r));
                self.open.push(open);
            }
            Event::While { .. } | Event::Test { .. } => {
                self.open.iter_mut().for_each(|open| open.is_fit = false);
                self.end();
                self.open.push(Open { is_loop: true, ..Open::new(None, now) });
            }
            Event::If { .. } | Event::Else { .. } => {
                self.end();
                self.open.push(Open::new(None, now));
            }
            _ => {}
        }
    }

    /// Ends the sequence of the innermost block.
    fn end(&mut self) {
        let members = self.open.last_mut().map(|open| std::mem::take(&mut open.members));
        self.sequence(members.unwrap_or_default());
    }

    /// Notes the registers from outside that the open loops use.
    fn uses(&mut self, event: &Event<'_>) {
        let Self { open, defined, .. } = self;
        event.for_each_use(|r| {
            for open in open.iter_mut().filter(|open| open.rows.is_some()) {
                if (defined[r.index()] as usize) <= open.begin {
                    open.used.insert(r);
                }
            }
        });
    }

    fn instr(&mut self, instr: &Instr) {
        let is_total = |op: Op| matches!(op, Op::Max | Op::Min | Op::Lt | Op::Le | Op::Eq);
        let is_fit = match instr {
            Instr::Store { .. } => true,
            Instr::IntOp { op, .. } => is_total(*op),
            instr => is_pure(instr),
        };
        if !is_fit {
            self.open.iter_mut().for_each(|open| open.is_fit = false);
        }
        // What is between loops moves before them.
        let is_apart = |member: &Found| {
            let mut is_apart = true;
            instr.for_each_use(|r| is_apart &= !member.results.contains(&r));
            if let Instr::Load { buffer, .. } = instr {
                is_apart &= !member.writes(*buffer);
            }
            is_apart && is_fit && !matches!(instr, Instr::Store { .. })
        };
        if self.open.last().is_some_and(|open| !open.members.iter().all(is_apart)) {
            self.end();
        }
        match instr {
            Instr::Load { buffer, at, .. } => self.access(&Access { buffer: *buffer, at, len: None, writes: false }),
            Instr::Store { buffer, at, .. } => self.access(&Access { buffer: *buffer, at, len: None, writes: true }),
            _ => {}
        }
    }

    /// Notes an access in the open loops.
    fn access(&mut self, &Access { buffer, at, len, writes }: &Access<'_>) {
        let Self { open, ranges, defined, .. } = self;
        for open in open {
            let Some((index, _)) = open.rows else { continue };
            if open.goes_along(at) {
                open.inner.iter_mut().for_each(|inner| inner.goes_along = true);
            }
            let begin = open.begin;
            let found = by_rows(ranges, (at, len), index, |r| defined[r.index()] as usize > begin);
            let touch = match (found, open.touched.remove(&buffer)) {
                (Some((row, from, at)), None) => {
                    let written = writes.then(|| Span::with(None, at));
                    Touch::Rows(Rows { row, from, all: Span::with(None, at), written })
                }
                (Some((row, from, at)), Some(Touch::Rows(rows))) if rows.row == row && rows.from == from => {
                    let written = if writes { Some(Span::with(rows.written, at)) } else { rows.written };
                    Touch::Rows(Rows { all: Span::with(Some(rows.all), at), written, ..rows })
                }
                (_, Some(Touch::Rows(rows))) => Touch::Any(writes || rows.written.is_some()),
                (_, Some(Touch::Any(others))) => Touch::Any(writes || others),
                (None, None) => Touch::Any(writes),
            };
            open.touched.insert(buffer, touch);
        }
    }

    fn close_loop(&mut self, now: usize, index: Reg) {
        self.end();
        let closed = self.open.pop();
        for open in &mut self.open {
            // Products of matrices, for example: their loops are tiled.
            let ended = open.inner.pop();
            open.is_fit &= ended.is_none_or(|inner| inner.has_loops || inner.goes_along || open.rows.is_none());
        }
        let Some(Open { rows: Some((_, stmt)), begin, touched, used, is_fit: true, .. }) = closed else {
            self.end();
            return;
        };
        let part = Mentions::of(std::slice::from_ref(stmt));
        let is_own = |(buffer, touch): &(&BufferId, &Touch)| {
            !matches!(touch, Touch::Rows(_)) && self.mentions.is_private(&part, &self.kernel.buffers, **buffer)
        };
        let private = touched.iter().filter(is_own).map(|(id, _)| *id).collect();
        let results = stmt.results().into_iter().collect();
        let found = Found { index, touched, events: (begin, now), results, used, private };
        if self.open.last().is_some_and(|open| !may_follow(&open.members, &found)) {
            self.end();
        }
        if let Some(open) = self.open.last_mut() {
            open.members.push(found);
        }
    }

    /// Takes a sequence, if the order of rows may pay.
    fn sequence(&mut self, mut members: Vec<Found>) {
        trim(&mut members);
        let (Some(first), Some(last)) = (members.first(), members.last()) else { return };
        let events = (first.events.0, last.events.1);
        let shifts = shifts(&members);
        if shifts.iter().any(|shift| *shift > MAX_SHIFT) || !self.has_own_memory(&members) || self.is_scratch(&members)
        {
            return;
        }
        let rows = all_rows(&members, &shifts);
        let row = rows.values().fold(Poly::zero(), |sum, (rows, _)| sum.add(&rows.row));
        let all = rows.keys().fold(Poly::zero(), |sum, buffer| sum.add(&self.kernel.buffers[*buffer].len));
        let is_less = |n: &Poly<Reg>, least: i64| n.as_constant().is_some_and(|n| n < least);
        if is_less(&row, SHORTEST_ROW * rows.len() as i64) || is_less(&all, SMALLEST) {
            return;
        }
        // In a loop, rows may be left from an earlier iteration.
        let is_repeated = self.open.iter().any(|open| open.is_loop);
        let is_window = |buffer: &BufferId| {
            !is_repeated && members.iter().any(|member| member.writes(*buffer)) && self.is_only_in(*buffer, &members)
        };
        let window = |(buffer, (rows, span)): (&BufferId, &(&Rows, Span))| Window {
            buffer: *buffer,
            row: rows.row.clone(),
            first: span.least,
            kept: span.most.saturating_sub(span.least),
        };
        let windows = rows.iter().filter(|(buffer, (rows, _))| rows.from.is_zero() && is_window(buffer));
        let windows = windows.map(window).collect();
        let private = members.iter().flat_map(|member| member.private.iter().copied()).collect();
        let loops = members.iter().zip(shifts).map(|(member, shift)| (member.index, shift)).collect();
        let arrays = rows.iter().map(|(buffer, (rows, _))| (*buffer, rows.row.clone())).collect();
        self.found.push(Sequence { loops, windows, private, arrays, events });
    }

    /// Returns whether these loops share nothing but memory that each iteration of a loop around them writes first:
    /// such iterations may run at once.
    fn is_scratch(&self, members: &[Found]) -> bool {
        self.open.iter().filter_map(|open| open.around).any(|around| {
            let part = Mentions::of(std::slice::from_ref(around));
            let is_own = |buffer: BufferId| self.mentions.is_private(&part, &self.kernel.buffers, buffer);
            let is_shared = |buffer: &BufferId| {
                let users = members.iter().filter(|member| member.touched.contains_key(buffer));
                users.count() > 1 && members.iter().any(|member| member.writes(*buffer)) && !is_own(*buffer)
            };
            !members.iter().any(|member| member.touched.keys().any(is_shared))
        })
    }

    /// Returns whether the memory of what these loops write is no other buffer's that they access.
    fn has_own_memory(&self, members: &[Found]) -> bool {
        let buffers = &self.kernel.buffers;
        let touched: BTreeSet<BufferId> = members.iter().flat_map(|member| member.touched.keys().copied()).collect();
        let is_alone = |buffer: &BufferId| {
            let is_there = |other: &&BufferId| {
                buffers[**other].place == buffers[*buffer].place && buffers[**other].class == buffers[*buffer].class
            };
            touched.iter().filter(is_there).count() == 1
        };
        touched.iter().filter(|buffer| members.iter().any(|member| member.writes(**buffer))).all(is_alone)
    }

    /// Returns whether only these loops access `buffer`, which is workspace.
    fn is_only_in(&self, buffer: BufferId, members: &[Found]) -> bool {
        let n = |member: &Found| {
            let stmt = self.loops.get(&member.index)?;
            Some(Mentions::of(std::slice::from_ref(*stmt)).get(buffer)?.n)
        };
        matches!(self.kernel.buffers[buffer].place, Place::Workspace(_))
            && self.mentions.get(buffer).map(|found| found.n) == Some(members.iter().filter_map(n).sum())
    }
}

impl Found {
    fn writes(&self, buffer: BufferId) -> bool {
        self.touched.get(&buffer).is_some_and(Touch::writes)
    }
}

impl Touch {
    fn writes(&self) -> bool {
        match self {
            Self::Rows(rows) => rows.written.is_some(),
            Self::Any(writes) => *writes,
        }
    }
}

/// Returns whether a loop can be the next of a sequence.
fn may_follow(members: &[Found], next: &Found) -> bool {
    let fits = |member: &Found, (buffer, touch): (&BufferId, &Touch)| match (touch, member.touched.get(buffer)) {
        (_, None) => true,
        (Touch::Rows(here), Some(Touch::Rows(there))) => {
            here.is_like(there) || (here.written.is_none() && there.written.is_none())
        }
        (touch, Some(other)) => !touch.writes() && !other.writes(),
    };
    members.len() < MAX_LOOPS
        && members.iter().all(|member| {
            member.results.is_disjoint(&next.used) && next.touched.iter().all(|touched| fits(member, touched))
        })
}

/// Removes loops at the ends that share no rows with others, and a loop that is left alone.
fn trim(members: &mut Vec<Found>) {
    let is_linked = |members: &[Found], at: usize| {
        let others = members.iter().enumerate().filter(|(k, _)| *k != at);
        others.into_iter().any(|(_, other)| links(&members[at], other))
    };
    while !members.is_empty() && !is_linked(members, members.len() - 1) {
        members.pop();
    }
    while !members.is_empty() && !is_linked(members, 0) {
        members.remove(0);
    }
}

/// Returns by how many iterations each loop follows the first, at least.
fn shifts(members: &[Found]) -> Vec<i64> {
    let mut shifts: Vec<i64> = Vec::new();
    for next in members {
        let follows = |(member, shift): (&Found, &i64)| {
            let both = next.touched.iter().filter_map(|(buffer, touch)| Some((member.touched.get(buffer)?, touch)));
            let shifts = both.filter_map(|touches| match touches {
                (Touch::Rows(before), Touch::Rows(after)) => before.shift(after),
                _ => None,
            });
            Some(shift.saturating_add(shifts.max()?))
        };
        shifts.push(members.iter().zip(&shifts).filter_map(follows).max().unwrap_or(0).max(0));
    }
    shifts
}

/// Returns the rows of all arrays, with the range of those that a round accesses for each of its first rows.
fn all_rows<'m>(members: &'m [Found], shifts: &[i64]) -> BTreeMap<BufferId, (&'m Rows, Span)> {
    let mut all: BTreeMap<BufferId, (&Rows, Span)> = BTreeMap::new();
    for (member, shift) in members.iter().zip(shifts) {
        for (buffer, touch) in &member.touched {
            let Touch::Rows(rows) = touch else { continue };
            let [least, most] = [rows.all.least, rows.all.most].map(|row| row.saturating_sub(*shift));
            let span = all.get(buffer).map(|(_, span)| *span);
            all.insert(*buffer, (rows, Span::with(Some(Span::with(span, least)), most)));
        }
    }
    all
}

/// Returns whether one of two loops reads or writes rows that the other one writes.
fn links(a: &Found, b: &Found) -> bool {
    a.touched.iter().any(|(buffer, touch)| match (touch, b.touched.get(buffer)) {
        (Touch::Rows(here), Some(Touch::Rows(there))) => here.shift(there).is_some(),
        _ => false,
    })
}

/// Returns the row of `len` elements, or one: its length, and its number in the first iteration without and with the
/// constant. `is_own` tells whether a register is defined in an iteration.
fn by_rows(
    ranges: &Ranges,
    (at, len): (&Poly<Reg>, Option<&Poly<Reg>>),
    index: Reg,
    is_own: impl Fn(&Reg) -> bool,
) -> Option<(Poly<Reg>, Poly<Reg>, i64)> {
    let (row, rest) = at.split_linear(index)?;
    if row.is_zero() || row.vars().iter().any(&is_own) {
        return None;
    }
    let (mut common, mut own) = (Poly::zero(), Poly::zero());
    for (monomial, c) in rest.terms() {
        let term = monomial.iter().fold(Poly::constant(c), |p, r| p.mul(&Poly::var(*r)));
        let part = if monomial.iter().any(&is_own) { &mut own } else { &mut common };
        *part = part.add(&term);
    }
    let (number, rest) = common.divide(&row)?;
    let is_inside = |first: &Poly<Reg>| match len {
        None => ranges.is_inside(first, &row),
        Some(len) if first.is_zero() && *len == row => true,
        Some(len) => ranges.is_at_least_zero(first) && ranges.is_at_least_zero(&row.sub(len).sub(first)),
    };
    // The last element of a row may be written as the one before the next row.
    let by = [0, -1, 1].into_iter().find(|by| is_inside(&own.add(&rest).sub(&row.scale(*by))))?;
    let (from, constant) = number.split_constant();
    Some((row, from, constant.checked_add(by)?))
}
