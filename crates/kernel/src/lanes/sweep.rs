//! Sums over the rows of a large matrix, in one pass over memory.
//!
//! ```text
//! for i in 0..n                    for j in 0..m
//!   s = sum over j of a[i][j] ..     y[j] = 0
//!   t[i] = s                       for i in 0..n
//! for j in 0..m                      s = sum over j of a[i][j] ..
//!   s = sum over i of t[i] a[i][j]   t[i] = s
//!   y[j] = s                         for j in 0..m
//!                                      y[j] = y[j] + t[i] a[i][j]
//! ```
//!
//! A loop over columns, each of them a sum over rows, reads a few columns of every row: each row is another page, and
//! the whole matrix passes through the caches for each of a few columns. Row by row, memory is read in its order, and
//! the sums stay in the first cache. A loop over the same rows right before it or after it goes along, so that the
//! matrix is read once for both. Several rows are then done at once ([`super::tile`]).
//!
//! **Order.** Each element adds its terms in the order in which it did. The loop that goes along writes what only its
//! own row reads, or nothing that the sums read; and reads nothing that they write.
//!
//! Small matrices gain nothing, and short rows lose: the sizes at run time decide.

use super::rewrite::{Copier, Copies, Cutter};
use super::transpose::is_plain;
use crate::events::{Event, walk};
use crate::kernel::{BufferId, Carried, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::prune::prune;
use crate::rebuild::each_loop;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Number of elements of a matrix from which half of the second cache has no room for it.
const IN_CACHE: i64 = 1 << 16;

/// Minimum number of columns: with fewer, sums stay in registers.
const FEWEST_COLUMNS: i64 = 64;

/// Minimum number of rows.
const FEWEST_ROWS: i64 = 8;

/// Position of a loop over rows beside one over columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// A loop over columns, each of them a sum over rows.
struct Columns<'a> {
    column: Reg,
    n_columns: &'a Poly<Reg>,
    row: Reg,
    n_rows: &'a Poly<Reg>,
    sum: Carried,
    /// Code before the sum, in an iteration of the sum, and after it.
    before: Vec<&'a Instr>,
    terms: Vec<&'a Instr>,
    after: Vec<&'a Instr>,
    /// Element that an iteration writes.
    to: (BufferId, &'a Poly<Reg>),
    /// Matrices with the distance of their rows.
    matrices: BTreeMap<BufferId, Poly<Reg>>,
}

/// Work of a loop over columns on the sums.
#[derive(Clone, Copy)]
enum Part {
    Start,
    /// Adds the terms of a row.
    Add(Reg),
    End,
}

/// Makes the sums over rows of large matrices go through them row by row. Linear in the size of the kernel.
pub(crate) fn sweep(kernel: &mut Kernel) {
    let mut is_found = false;
    each_loop(&kernel.body, |stmt| {
        is_found |= Columns::of(kernel, stmt).is_some();
        is_found
    });
    if !is_found {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut cutter = Cutter::new(kernel);
    let mut made = BTreeSet::new();
    let mut open: Vec<(&mut Vec<Stmt>, bool)> = vec![(&mut body, false)];
    while let Some((block, is_in_loop)) = open.pop() {
        // The nest of a product of matrices is tiled.
        let is_nest = is_in_loop && block.iter().filter(|stmt| !matches!(stmt, Stmt::Straight(_))).count() == 1;
        if !is_nest {
            *block = cutter.swept(std::mem::take(block), &mut made);
        }
        for stmt in block.iter_mut() {
            match stmt {
                Stmt::If { condition, .. } if made.contains(condition) => {}
                Stmt::For { order: Order::Lanes, .. } | Stmt::Straight(_) | Stmt::Copy { .. } => {}
                Stmt::For { body, carried, .. } => open.push((body, carried.is_empty())),
                Stmt::While { condition, body, .. } => open.extend([(condition, false), (body, false)]),
                Stmt::If { then, otherwise, .. } => open.extend([(then, is_nest), (otherwise, is_nest)]),
            }
        }
    }
    prune(&mut body, kernel.regs.len(), &kernel.buffers);
    kernel.body = body;
}

/// Returns the code of a block without loops and branches.
fn straight(body: &[Stmt]) -> Option<Vec<&Instr>> {
    let code: Option<Vec<&Vec<Instr>>> =
        body.iter().map(|stmt| if let Stmt::Straight(code) = stmt { Some(code) } else { None }).collect();
    Some(code?.into_iter().flatten().collect())
}

/// Returns whether an instruction computes a number without a failure of its own.
pub(crate) fn is_pure(instr: &Instr) -> bool {
    matches!(
        instr,
        Instr::Const { .. } | Instr::Int { .. } | Instr::Op { .. } | Instr::ToReal { .. } | Instr::Load { .. }
    )
}

/// Returns the coefficient of `r` in an address, if it is linear in it.
fn slope(at: &Poly<Reg>, r: Reg) -> Option<Poly<Reg>> {
    Some(at.split_linear(r)?.0)
}

impl<'a> Columns<'a> {
    fn of(kernel: &Kernel, stmt: &'a Stmt) -> Option<Self> {
        let Stmt::For { index: column, count: n_columns, carried, order: Order::InOrder, body } = stmt else {
            return None;
        };
        let at = body.iter().position(|stmt| matches!(stmt, Stmt::For { .. }))?;
        let Stmt::For { index: row, count: n_rows, carried: sums, order: Order::InOrder, body: inner } = &body[at]
        else {
            return None;
        };
        let [sum] = sums.as_slice() else { return None };
        let (before, terms, after) = (straight(&body[..at])?, straight(inner)?, straight(&body[at + 1..])?);
        let mut stores = after.iter().filter_map(|instr| match instr {
            Instr::Store { buffer, at, .. } => Some((*buffer, at)),
            _ => None,
        });
        let (Some(to), None) = (stores.next(), stores.next()) else { return None };
        let this = Self {
            column: *column,
            n_columns,
            row: *row,
            n_rows,
            sum: *sum,
            matrices: matrices(&terms, *column, *row),
            before,
            terms,
            after,
            to,
        };
        (carried.is_empty() && this.is_large() && this.is_legal(kernel)).then_some(this)
    }

    /// Returns whether the sums can be kept in the elements that they are written to.
    fn is_legal(&self, kernel: &Kernel) -> bool {
        let mut own = BTreeSet::from([self.column, self.row, self.sum.var]);
        let all = || self.before.iter().chain(&self.terms).chain(&self.after).copied();
        own.extend(all().filter_map(Instr::dst));
        let is_over = |p: &Poly<Reg>, indices: &[Reg]| p.vars().iter().all(|r| indices.contains(r) || !own.contains(r));
        let is_store = |instr: &Instr| matches!(instr, Instr::Store { .. });
        // The sum is used by one addition.
        let n_uses = self.terms.iter().filter(|instr| super::reads_directly(instr, self.sum.var)).count();
        let adds = |instr: &&Instr| {
            matches!(instr, Instr::Op { dst, op: Op::Add, args: [a, b, _] }
                if *dst == self.sum.next && (*a == self.sum.var) != (*b == self.sum.var))
        };
        all().all(|instr| is_pure(instr) || is_store(instr))
            && !self.before.iter().chain(&self.terms).any(|instr| is_store(instr))
            && (n_uses == 1 && self.terms.iter().any(adds))
            && loads(&self.terms).all(|(_, at)| is_over(at, &[self.row, self.column]))
            && is_over(self.n_rows, &[])
            && is_over(self.to.1, &[self.column])
            && slope(self.to.1, self.column).and_then(|slope| slope.as_constant()) == Some(1)
            && self.loads().all(|(buffer, _)| kernel.buffers[buffer].place != kernel.buffers[self.to.0].place)
    }

    /// Returns whether the sizes may be large enough. They are at run time, unless they are known.
    fn is_large(&self) -> bool {
        self.asked().iter().all(|(n, least)| n.as_constant().is_none_or(|n| n >= *least)) && !self.matrices.is_empty()
    }

    /// Returns the numbers that must reach their least ones.
    fn asked(&self) -> [(Poly<Reg>, i64); 3] {
        let all = self.n_rows.mul(self.n_columns);
        [(self.n_columns.clone(), FEWEST_COLUMNS), (self.n_rows.clone(), FEWEST_ROWS), (all, IN_CACHE)]
    }

    /// Returns the elements that are read.
    fn loads(&self) -> impl Iterator<Item = (BufferId, &'a Poly<Reg>)> {
        [&self.before, &self.terms, &self.after].into_iter().flat_map(|code| loads(code))
    }

    /// Returns whether the code reads a register.
    fn reads(&self, r: Reg) -> bool {
        let mut reads = false;
        for instr in self.before.iter().chain(&self.terms).chain(&self.after) {
            instr.for_each_use(|used| reads |= used == r);
        }
        reads || self.sum.init == r
    }

    /// Returns whether a loop over rows can go along.
    fn takes(&self, kernel: &Kernel, stmt: &Stmt, side: Side) -> bool {
        let Stmt::For { index, count, carried, order: Order::InOrder, body } = stmt else { return false };
        let is_sum = |c: &Carried| kernel.regs[c.var] == Class::Real && !self.reads(c.var);
        if !carried.iter().all(is_sum) || count != self.n_rows {
            return false;
        }
        let place = |buffer: BufferId| &kernel.buffers[buffer].place;
        let mut own = BTreeSet::new();
        let mut written: BTreeMap<BufferId, Vec<Poly<Reg>>> = BTreeMap::new();
        let (mut is_legal, mut is_shared) = (true, false);
        for event in walk(body) {
            event.for_each_def(|r| own.extend([r]));
            match event {
                Event::Instr(Instr::Store { buffer, at, .. }) => {
                    written.entry(*buffer).or_default().push(at.clone());
                }
                Event::Instr(Instr::Load { buffer, at, .. }) => {
                    is_shared |= self.matrices.get(buffer).is_some_and(|row| slope(at, *index).as_ref() == Some(row));
                }
                Event::Copy { .. } | Event::While { .. } => is_legal = false,
                _ => {}
            }
            event.for_each_access(|buffer, _| is_legal &= place(buffer) != place(self.to.0));
        }
        // What it writes is read in its own row.
        let is_own = |at: &Poly<Reg>, stores: &[Poly<Reg>]| {
            let other = at.substitute(|r| Poly::var(if r == self.row { *index } else { r }));
            side == Side::Before
                && stores.iter().all(|store| *store == other)
                && slope(at, self.row).and_then(|slope| slope.as_constant()).is_some_and(|slope| slope != 0)
                && !other.vars().iter().any(|r| own.contains(r) || *r == self.column)
        };
        let is_apart = self.loads().all(|(buffer, at)| match written.get(&buffer) {
            Some(stores) => loads(&self.terms).any(|load| load == (buffer, at)) && is_own(at, stores),
            None => written.keys().all(|other| place(*other) != place(buffer)),
        });
        is_legal && is_shared && is_apart
    }
}

/// Returns the elements that `code` loads.
fn loads<'a>(code: &[&'a Instr]) -> impl Iterator<Item = (BufferId, &'a Poly<Reg>)> {
    let load = |instr: &'a Instr| if let Instr::Load { buffer, at, .. } = instr { Some((*buffer, at)) } else { None };
    code.iter().copied().filter_map(load)
}

/// Returns the matrices that `terms` read along a row of consecutive elements, with the distance of their rows; none if
/// another one is read along its columns.
fn matrices(terms: &[&Instr], column: Reg, row: Reg) -> BTreeMap<BufferId, Poly<Reg>> {
    let mut found = BTreeMap::new();
    for (buffer, at) in loads(terms) {
        let across = slope(at, column).and_then(|slope| slope.as_constant());
        let down = slope(at, row);
        match (across, down) {
            (Some(1), Some(down)) if down.as_constant().is_none_or(|down| down >= FEWEST_COLUMNS) => {
                found.insert(buffer, down);
            }
            (Some(0), _) => {}
            (Some(1), Some(down)) if down.is_zero() => {}
            _ => return BTreeMap::new(),
        }
    }
    found
}

impl Cutter<'_> {
    /// Returns a block with its loops over columns written twice; the conditions of the new branches go to `made`.
    fn swept(&mut self, block: Vec<Stmt>, made: &mut BTreeSet<Reg>) -> Vec<Stmt> {
        let mut done: Vec<Stmt> = Vec::with_capacity(block.len());
        let mut rest = block.into_iter().peekable();
        while let Some(stmt) = rest.next() {
            let Some(columns) = Columns::of(self.kernel, &stmt) else {
                done.push(stmt);
                continue;
            };
            let before = done
                .iter()
                .rposition(|stmt| !is_plain(stmt))
                .filter(|at| columns.takes(self.kernel, &done[*at], Side::Before));
            let is_after =
                before.is_none() && rest.peek().is_some_and(|next| columns.takes(self.kernel, next, Side::After));
            let other = before.map(|at| done.remove(at)).or_else(|| if is_after { rest.next() } else { None });

            let mut code = Vec::new();
            let large = self.all_reach(&columns.asked(), &mut code);
            done.push(Stmt::Straight(code));
            let Some(condition) = large else {
                done.extend(self.by_rows(&columns, other.into_iter().collect()));
                continue;
            };
            made.insert(condition);
            let (then, otherwise, choices) = other.map_or_else(Default::default, |other| self.both_of(&other, &other));
            let then = self.by_rows(&columns, then);
            let otherwise = if is_after { [vec![stmt], otherwise] } else { [otherwise, vec![stmt]] }.concat();
            done.push(Stmt::If { condition, then, otherwise, choices });
        }
        done
    }

    /// Returns the sums row by row, with another loop over the rows.
    fn by_rows(&mut self, columns: &Columns<'_>, mut rows: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = self.over_columns(columns, Part::Start);
        if rows.is_empty() {
            let (count, order) = (columns.n_rows.clone(), Order::InOrder);
            rows.push(Stmt::For { index: self.int(), count, carried: Vec::new(), order, body: Vec::new() });
        }
        if let [Stmt::For { index, body, .. }] = &mut rows[..] {
            body.extend(self.over_columns(columns, Part::Add(*index)));
        }
        out.extend(rows);
        let is_only_store = columns.after.iter().all(|instr| match instr {
            Instr::Store { value, .. } => *value == columns.sum.var,
            _ => false,
        });
        if !is_only_store {
            out.extend(self.over_columns(columns, Part::End));
        }
        out
    }

    /// Returns a loop over all columns that does a part, behind what is the same in all columns.
    fn over_columns(&mut self, columns: &Columns<'_>, part: Part) -> Vec<Stmt> {
        let index = self.int();
        let (to, at) =
            (columns.to.0, columns.to.1.substitute(|r| Poly::var(if r == columns.column { index } else { r })));
        let mut map = BTreeMap::from([(columns.column, index)]);
        let mut code = Vec::new();
        self.copied(&columns.before, (columns.row, &Poly::zero()), &mut map, &mut code);
        let mut varying = BTreeSet::from([index]);
        if !matches!(part, Part::Start) {
            let sum = self.real();
            code.push(Instr::Load { dst: sum, buffer: to, at: at.clone() });
            map.insert(columns.sum.var, sum);
            varying.insert(sum);
        }
        let of = |map: &BTreeMap<Reg, Reg>, r: Reg| map.get(&r).copied().unwrap_or(r);
        match part {
            Part::Start => code.push(Instr::Store { buffer: to, at, value: of(&map, columns.sum.init) }),
            Part::End => self.copied(&columns.after, (columns.row, &Poly::zero()), &mut map, &mut code),
            Part::Add(row) => {
                map.insert(columns.row, row);
                self.copied(&columns.terms, (columns.row, &Poly::var(row)), &mut map, &mut code);
                code.push(Instr::Store { buffer: to, at, value: of(&map, columns.sum.next) });
            }
        }
        let (inside, outside) = code.into_iter().partition(|instr: &Instr| {
            let mut varies = !is_pure(instr);
            instr.for_each_use(|r| varies |= varying.contains(&r));
            varying.extend(instr.dst().filter(|_| varies));
            varies
        });
        let (count, body) = (columns.n_columns.clone(), vec![Stmt::Straight(inside)]);
        vec![Stmt::Straight(outside), Stmt::For { index, count, carried: Vec::new(), order: Order::InOrder, body }]
    }

    /// Emits copies of `instrs` with an index in place of another, and notes their registers in `map`.
    fn copied(
        &mut self,
        instrs: &[&Instr],
        (index, by): (Reg, &Poly<Reg>),
        map: &mut BTreeMap<Reg, Reg>,
        code: &mut Vec<Instr>,
    ) {
        let (regs, buffers) = (&mut self.kernel.regs, BTreeMap::new());
        let (old, by) = (std::mem::take(map), by.clone());
        let mut copier = Copier { regs, map: old, index, by, fresh: true, lane: None, buffers: &buffers };
        code.extend(instrs.iter().map(|instr| copier.instr(instr)));
        *map = copier.map;
    }
}
