//! Products of matrices with more columns than a block of lanes, and fewer than two.
//!
//! In: a tiled loop ([`super::tile`]) directly around a lane loop. Out: the nest twice, for so few columns and others.
//! Two overlapping blocks share what they read; a block and a remainder would read all of it twice.
//!
//! ```text
//! for i in 0..n                            if 8 < m < 16 and 32 <= d
//!   for j in 0..m     (in lanes)             for i in 0..n
//!     for k in 0..d, s = 0                     for j in 0..8     (in lanes)
//!       s = s + a[i, k] * b[k, j]                for k in 0..d, s = 0, t = 0
//!     c[i, j] = s                                  s = s + a[i, k] * b[k, j]
//!                                                  t = t + a[i, k] * b[k, m - 8 + j]
//!                                                c[i, j] = s
//!                                                c[i, m - 8 + j] = t
//!                                          else
//!                                            ..
//! ```
//!
//! Columns in both blocks are computed twice, with equal bits. Nothing that the loop writes is read or added to.

use super::Plan;
use super::products::written;
use super::rewrite::{Copier, Copies, Cutter, Loop};
use super::tile::{Tile, Tiles};
use crate::events::walk;
use crate::kernel::{Instr, LANES, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum trip count of the loops inside. (A vector that two overlapping stores wrote cannot be read before both are
/// in the cache, for which small matrices would wait.)
const LONG: i64 = 32;

impl Cutter<'_> {
    /// Writes tiled nests that may have so few columns twice, and adds their copies to `plans` and `tiles`.
    pub(super) fn narrow(&mut self, body: &mut Vec<Stmt>, tiles: &mut Tiles, plans: &mut BTreeMap<Reg, Plan>) {
        let mut seen = BTreeSet::new();
        each_statement(body, |stmt, done| match stmt {
            Stmt::For { index, count, carried, order: Order::InOrder, body }
                if tiles.contains_key(&index) && carried.is_empty() && seen.insert(index) =>
            {
                let the = Loop { index, count, carried, body };
                match self.columns(&the, plans) {
                    Some(columns) => self.narrowed(the, &columns, (&mut *tiles, &mut *plans), done),
                    None => done.push(the.in_order()),
                }
            }
            stmt => done.push(stmt),
        });
    }

    /// Returns the columns of a nest that may be so few.
    fn columns(&self, the: &Loop, plans: &BTreeMap<Reg, Plan>) -> Option<Columns> {
        let is_extent = |count: &Poly<Reg>| count.vars().iter().all(|r| self.kernel.is_extent(*r));
        let Some(Stmt::For { index, count, carried, order: Order::InOrder, body }) = the.body.last() else {
            return None;
        };
        let plan = plans.get(index).filter(|plan| plan.blocks > 1 && !plan.overlaps && carried.is_empty())?;
        let Plan { sums, private, accumulators, scattered, .. } = plan;
        let is_plain = sums.is_empty() && private.is_empty() && accumulators.is_empty() && scattered.is_empty();
        let written = written(body);
        let mut reads_own = false;
        for event in walk(body) {
            event.for_each_access(|buffer, writes| reads_own |= !writes && written.contains(&buffer));
        }
        let mut lengths = body.iter().filter_map(|stmt| match stmt {
            Stmt::For { count, .. } => Some(count.clone()),
            _ => None,
        });
        let length = lengths.next()?;
        let is_long = is_extent(&length) && length.as_constant().is_none_or(|n| n >= LONG);
        let is_open = count.as_var().is_some() && is_extent(count);
        let is_found = is_plain && is_long && is_open && lengths.next().is_none() && !reads_own;
        is_found.then(|| Columns { index: *index, count: count.clone(), length })
    }

    fn narrowed(
        &mut self,
        the: Loop,
        columns: &Columns,
        (tiles, plans): (&mut Tiles, &mut BTreeMap<Reg, Plan>),
        out: &mut Vec<Stmt>,
    ) {
        let mut before = Vec::new();
        let asked = [(columns.count.clone(), LANES + 1), (columns.length.clone(), LONG)];
        let Some(enough) = self.all_reach(&asked, &mut before) else {
            out.push(the.in_order());
            return;
        };
        let (count, most) = (self.int_of(&mut before, columns.count.clone()), Poly::constant(2 * LANES));
        let most = self.int_of(&mut before, most);
        let few = self.int_op(&mut before, Op::Lt, count, most);
        let condition = self.int();
        before.push(Instr::Op { dst: condition, op: Op::And, args: [enough, few, enough] });
        let (regs, by, buffers) = (&mut self.kernel.regs, Poly::var(condition), BTreeMap::new());
        let map = BTreeMap::new();
        let mut copier = Copier { regs, map, index: condition, by, fresh: true, lane: None, buffers: &buffers };
        let tile = tiles.get(&the.index).map(|tile| Tile { panels: None, ..tile.clone() });
        let index = the.index;
        let otherwise = vec![the.in_order()];
        let then = copier.block(&otherwise);
        tiles.extend(tile.map(|tile| (copier.of(index), tile)));
        let plan = plans.get(&columns.index).map(|plan| Plan { blocks: 2, overlaps: true, ..plan.clone() });
        plans.extend(plan.map(|plan| (copier.of(columns.index), plan)));
        out.push(Stmt::Straight(before));
        out.push(Stmt::If { condition, then, otherwise, choices: Vec::new() });
    }
}

/// Columns of a product.
struct Columns {
    /// Index of the lane loop over them.
    index: Reg,
    count: Poly<Reg>,
    /// Trip count of the loop inside.
    length: Poly<Reg>,
}
