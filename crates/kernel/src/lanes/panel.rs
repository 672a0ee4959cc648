//! Packed panels for cache tiling: elements that a lane loop reads in every iteration of the tiled loop around it.
//!
//! In: a tiled loop ([`super::tile`]) directly around a lane loop. Out: the lane loop cut into stretches as wide as a
//! group of jammed blocks, the loop over stretches outside of the tiled loop, and before it a copy of the elements that
//! the stretch reads.
//!
//! ```text
//! for i in 0..n                            for p in 0..m/32
//!   for j in 0..m     (in lanes)             for l in 0..k
//!     for l in 0..k                            copy 32 to panel[32 l] from b[m l + 32 p]
//!       ... b[m l + j] ...                   for i in 0..n
//!                                              for v in 0..32     (in lanes)
//!                                                for l in 0..k
//!                                                  ... panel[32 l + v] ...
//!                                          for i in 0..n
//!                                            for j in 32 (m/32)..m     (in lanes)
//!                                              ..
//! ```
//!
//! Each iteration of `i` reads all of `b`, a few elements of each row at a time. If `b` is larger than the caches, it
//! is loaded from memory each time, in scattered lines. A panel is contiguous and stays in the cache.
//!
//! Panels are used if there are at least [`FEWEST`] iterations and [`LARGE`] elements, which is tested at run time;
//! otherwise the nest runs unchanged. All iterations are independent, so that their order does not matter, in strict
//! code either. The copied elements are those that the iterations read, with no check before them that could fail.

use super::Plan;
use super::rewrite::{Copier, Copies, Cutter, Loop, reads};
use super::tile::{Nested, Tiles};
use crate::events::Event;
use crate::kernel::{Buffer, BufferId, Class, Instr, Kernel, LANES, Order, Reg, Stmt};
use crate::rebuild::{each_access, each_statement, is_nothing};
use chainrule_base::Poly;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of iterations that read a panel.
const FEWEST: i64 = 32;

/// Minimum number of elements of a packed array: more than the first-level cache holds.
const LARGE: i64 = 1 << 13;

/// Maximum number of packed arrays in a nest.
const MAX_PANELS: usize = 2;

/// Elements of a buffer read from a panel; their addresses contain the lane loop's index with slope 1.
#[derive(Clone, Debug)]
struct Row {
    buffer: BufferId,
    at: Poly<Reg>,
}

/// Panels of a nest.
#[derive(Clone, Debug)]
pub(super) struct Panels {
    /// Index of the lane loop.
    cut: Reg,
    /// Index of the loop along the panels, and its trip count.
    along: Reg,
    count: Poly<Reg>,
    rows: Vec<Row>,
}

impl Panels {
    /// Returns the panels that pay if `the` is tiled, `cut` runs in lanes, and `sum` is inside of both.
    pub fn of(
        kernel: &Kernel,
        events: &[Event<'_>],
        the: &Nested,
        (cut, plan): (&Nested, &Plan),
        sum: &Nested,
    ) -> Option<Self> {
        let is_plain = plan.private.is_empty() && plan.accumulators.is_empty() && plan.sums.is_empty();
        let (before, after) = (&events[the.begin + 1..cut.begin.max(the.begin + 1)], &events[cut.end + 1..]);
        let is_around = the.begin < cut.begin
            && before.iter().all(|event| matches!(event, Event::Instr(Instr::Const { .. } | Instr::Int { .. })))
            && matches!(after.first(), Some(Event::EndFor { index, .. }) if *index == the.index);
        let Event::For { carried, count: n, .. } = &events[the.begin] else { return None };
        let Event::For { count: m, .. } = &events[cut.begin] else { return None };
        let Event::For { count, .. } = &events[sum.begin] else { return None };
        let may_fail =
            |event: &Event<'_>| matches!(event, Event::Instr(Instr::CheckIndex { .. } | Instr::IntOp { .. }));
        let body = &events[the.begin..the.end];
        if !is_plain || !is_around || !carried.is_empty() || cut.begin == sum.begin || body.iter().any(may_fail) {
            return None;
        }
        let mut inside = BTreeSet::new();
        for event in body {
            event.for_each_def(|r| {
                inside.insert(r);
            });
        }
        let is_outside = |p: &Poly<Reg>| p.vars().iter().all(|r| !inside.contains(r));
        let is_few = |p: &Poly<Reg>, n: i64| p.as_constant().is_some_and(|all| all < n);
        let is_size = |p: &Poly<Reg>| match p.as_constant() {
            Some(n) => n > 0,
            None => p.as_var().is_some_and(|r| kernel.is_extent(r)),
        };
        if !is_size(count) || !is_outside(m) || is_few(n, FEWEST) || is_few(m, 2 * width(plan)) {
            return None;
        }
        let mut rows: Vec<Row> = Vec::new();
        for event in &events[sum.begin..sum.end] {
            let Event::Instr(Instr::Load { buffer, at, .. }) = event else { continue };
            let is_row = || {
                let (slope, rest) = at.split_linear(cut.index)?;
                let (along, rest) = rest.split_linear(sum.index)?;
                let is_far = along.as_constant().is_none_or(|step| step >= width(plan));
                Some(slope.as_constant() == Some(1) && is_far && is_outside(&along) && is_outside(&rest))
            };
            let is_known = rows.iter().any(|row| row.buffer == *buffer && row.at == *at);
            let Buffer { class, len, .. } = &kernel.buffers[*buffer];
            if *class == Class::Real && !is_known && !is_few(len, LARGE) && is_row() == Some(true) {
                rows.push(Row { buffer: *buffer, at: (*at).clone() });
            }
        }
        let writes = |row: &Row| {
            body.iter().any(|event| match event {
                Event::Instr(Instr::Store { buffer, .. }) => *buffer == row.buffer,
                Event::Copy { to, .. } => to.0 == row.buffer,
                _ => false,
            })
        };
        rows.retain(|row| !writes(row));
        let (cut, along, count) = (cut.index, sum.index, (*count).clone());
        (1..=MAX_PANELS).contains(&rows.len()).then_some(Self { cut, along, count, rows })
    }
}

/// Returns the number of iterations of the lane loop in a group of jammed blocks.
fn width(plan: &Plan) -> i64 {
    LANES * plan.blocks
}

impl Cutter<'_> {
    /// Inserts panels around their loops, and adds plans for the copies to `plans` and `tiles`.
    pub(super) fn panels(&mut self, body: &mut Vec<Stmt>, tiles: &mut Tiles, plans: &mut BTreeMap<Reg, Plan>) {
        each_statement(body, |stmt, done| match stmt {
            Stmt::For { index, count, carried, order: Order::InOrder, body } => {
                let panels = tiles.get_mut(&index).and_then(|tile| tile.panels.take());
                let the = Loop { index, count, carried, body };
                match panels {
                    Some(panels) => self.with_panels(&panels, the, tiles, plans, done),
                    None => done.push(the.in_order()),
                }
            }
            stmt => done.push(stmt),
        });
    }

    fn with_panels(
        &mut self,
        panels: &Panels,
        the: Loop,
        tiles: &mut Tiles,
        plans: &mut BTreeMap<Reg, Plan>,
        out: &mut Vec<Stmt>,
    ) {
        let (tile, plan) = (tiles.get(&the.index).cloned(), plans.get(&panels.cut).cloned());
        let (Some(tile), Some(plan), Some(Stmt::For { count: all, .. })) = (tile, plan, the.body.last()) else {
            out.push(the.in_order());
            return;
        };
        let width = width(&plan);
        let mut before = Vec::new();
        let holds = self.pays(panels, &the, &mut before);
        let (stretches, done) = self.blocks(all, width, &mut before);
        let mut code = Vec::new();
        let (panel, along) = (self.int(), self.int());
        let first = Poly::var(panel).scale(width);
        // Redirect loads to panels, then cut.
        let mut near = the.body.clone();
        for row in &panels.rows {
            let place = self.kernel.memory(panels.count.scale(width));
            let own = Poly::var(panels.along).scale(width).add(&Poly::var(panels.cut)).sub(&first);
            let at = |r: Reg| match r {
                r if r == panels.cut => first.clone(),
                r if r == panels.along => Poly::var(along),
                r => Poly::var(r),
            };
            let from = (row.buffer, row.at.substitute(at));
            code.push(Stmt::Copy {
                to: (place, Poly::var(along).scale(width)),
                from,
                len: Poly::constant(width),
                is_move: false,
            });
            each_access(&mut near, |buffer, at| {
                if *buffer == row.buffer && *at == row.at {
                    (*buffer, *at) = (place, own.clone());
                }
            });
        }
        let (count, carried, order) = (panels.count.clone(), Vec::new(), Order::InOrder);
        let copies = Stmt::For { index: along, count, carried, order, body: code };
        let near = Loop { body: near, carried: Vec::new(), count: the.count.clone(), index: the.index };
        let mut stretch = |this: &mut Self, the: &Loop, (first, count): (Poly<Reg>, Poly<Reg>), plan: Plan| {
            let (index, cut) = (this.int(), this.int());
            tiles.insert(index, tile.clone());
            plans.insert(cut, plan);
            this.stretch(the, (index, cut), &first, count)
        };
        let inside = stretch(self, &near, (first, Poly::constant(width)), plan.clone());
        let (carried, order) = (Vec::new(), Order::InOrder);
        let mut then = vec![Stmt::For { index: panel, count: stretches, carried, order, body: vec![copies, inside] }];
        let left = all.sub(&done);
        if left.as_constant() != Some(0) {
            // Fewer blocks than a group.
            let plan = Plan { blocks: (plan.blocks / 2).max(1), ..plan };
            then.push(stretch(self, &the, (done, left), plan));
        }
        if let Some(condition) = holds {
            out.push(Stmt::Straight(before));
            let otherwise = vec![the.in_order()];
            out.push(Stmt::If { condition, then, otherwise, choices: Vec::new() });
        } else {
            out.extend((!before.is_empty()).then_some(Stmt::Straight(before)));
            out.extend(then);
        }
    }

    /// Returns the condition that there are enough iterations and elements; `None` if that is known.
    fn pays(&mut self, panels: &Panels, the: &Loop, before: &mut Vec<Instr>) -> Option<Reg> {
        let mut asked = vec![(the.count.clone(), FEWEST)];
        asked.extend(panels.rows.iter().map(|row| (self.kernel.buffers[row.buffer].len.clone(), LARGE)));
        self.all_reach(&asked, before)
    }

    /// Returns `count` iterations of the lane loop from `first` on, for all iterations of the loop around.
    fn stretch(&mut self, the: &Loop, (index, cut): (Reg, Reg), first: &Poly<Reg>, count: Poly<Reg>) -> Stmt {
        let Some((Stmt::For { index: old, body: inside, .. }, before)) = the.body.split_last() else {
            return Stmt::Straight(Vec::new());
        };
        let by = first.add(&Poly::var(cut));
        let mut map = BTreeMap::from([(the.index, index)]);
        let mut code = Vec::new();
        if reads(inside, *old) {
            map.insert(*old, self.int_of(&mut code, by.clone()));
        }
        let (regs, buffers) = (&mut self.kernel.regs, BTreeMap::new());
        let mut copier = Copier { regs, map, index: *old, by, fresh: true, lane: None, buffers: &buffers };
        let mut body = copier.block(before);
        let mut inner = vec![Stmt::Straight(code)];
        inner.extend(copier.block(inside));
        inner.retain(|stmt| !is_nothing(stmt));
        let n = copier.poly(&the.count);
        body.push(Stmt::For { index: cut, count, carried: Vec::new(), order: Order::InOrder, body: inner });
        Stmt::For { index, count: n, carried: Vec::new(), order: Order::InOrder, body }
    }
}
