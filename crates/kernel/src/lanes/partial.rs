//! Partial results of lanes: their initial values, and their reduction after the loop.

use super::Plan;
use super::independence::Group;
use super::jam::partial_at;
use super::rewrite::{Cutter, LaneBuffers, Loop, at_once};
use crate::kernel::{BufferId, Carried, Instr, LANES, Order, Reg, Stmt};
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::BTreeMap;

impl Cutter<'_> {
    /// Initialises all partial results with the neutral element.
    pub(super) fn neutral(&mut self, plan: &Plan, wide: LaneBuffers<'_>) -> Vec<Stmt> {
        let mut out = Vec::new();
        if let Some(buffer) = wide.partial {
            let lane = self.int();
            let mut code = Vec::new();
            for (k, group) in (0..).zip(&plan.sums) {
                let value = self.real();
                code.push(Instr::Const { dst: value, value: group.neutral() });
                let places = (0..plan.blocks).map(|t| partial_at(k, t, plan.blocks, lane));
                code.extend(places.map(|at| Instr::Store { buffer, at, value }));
            }
            out.push(at_once(lane, code));
        }
        for buffer in &plan.accumulators {
            let (j, lane, value) = (self.int(), self.int(), self.real());
            let at = Poly::var(j).scale(LANES).add(&Poly::var(lane));
            let code = vec![
                Instr::Const { dst: value, value: Group::Sum.neutral() },
                Instr::Store { buffer: wide.spread[buffer], at, value },
            ];
            let count = self.kernel.buffers[*buffer].len.clone();
            let body = vec![at_once(lane, code)];
            out.push(Stmt::For { index: j, count, carried: Vec::new(), order: Order::InOrder, body });
        }
        out
    }

    /// Reduces the partial results after all lane iterations; carried values go to `sums`.
    pub(super) fn together(
        &mut self,
        plan: &Plan,
        the: &Loop,
        wide: LaneBuffers<'_>,
        sums: &[Reg],
        out: &mut Vec<Stmt>,
    ) {
        if let Some(buffer) = wide.partial.filter(|_| plan.blocks > 1) {
            let lane = self.int();
            let mut code = Vec::new();
            let places_of = |k: i64| (0..plan.blocks).map(move |t| partial_at(k, t, plan.blocks, lane));
            let mut values = BTreeMap::new();
            for (k, group) in (0..).zip(&plan.sums).filter(|(_, group)| !group.is_place()) {
                values.insert(k, self.tree(*group, buffer, places_of(k), &mut code));
            }
            for (k, group) in (0..).zip(&plan.sums) {
                let Group::Place(of) = *group else { continue };
                let number = values[&(of as i64)];
                let places = places_of(of as i64).zip(places_of(k));
                let parts = places.map(|at| self.place_with(number, buffer, at, &mut code)).collect();
                values.insert(k, self.halves(*group, parts, &mut code));
            }
            let at = |k: i64| partial_at(k, 0, plan.blocks, lane);
            code.extend(values.into_iter().map(|(k, value)| Instr::Store { buffer, at: at(k), value }));
            out.push(at_once(lane, code));
        }
        if let Some(buffer) = wide.partial {
            self.lanes_together(plan, &the.carried, buffer, sums, out);
        }
        for buffer in &plan.accumulators {
            let j = self.int();
            let at = Poly::var(j);
            let mut code = Vec::new();
            let places = (0..LANES).map(|l| at.scale(LANES).add(&Poly::constant(l)));
            let all = self.tree(Group::Sum, wide.spread[buffer], places, &mut code);
            let so_far = self.real();
            code.push(Instr::Load { dst: so_far, buffer: *buffer, at: at.clone() });
            let value = self.op(Op::Add, so_far, all, &mut code);
            code.push(Instr::Store { buffer: *buffer, at, value });
            let count = self.kernel.buffers[*buffer].len.clone();
            let body = vec![Stmt::Straight(code)];
            out.push(Stmt::For { index: j, count, carried: Vec::new(), order: Order::InOrder, body });
        }
    }

    /// Reduces the partial results of eight lanes.
    fn lanes_together(
        &mut self,
        plan: &Plan,
        carried: &[Carried],
        buffer: BufferId,
        sums: &[Reg],
        out: &mut Vec<Stmt>,
    ) {
        let first = |k: usize| Poly::constant(k as i64 * plan.blocks * LANES);
        let lanes = |k: usize| (0..LANES).map(move |l| first(k).add(&Poly::constant(l)));
        let mut code = Vec::new();
        let mut all = vec![None; sums.len()];
        for (k, group) in plan.sums.iter().enumerate().filter(|(_, group)| !group.is_place()) {
            let of_lanes = self.tree(*group, buffer, lanes(k), &mut code);
            code.push(Instr::Op { dst: sums[k], op: group.op(), args: [carried[k].init, of_lanes, carried[k].init] });
            all[k] = Some(of_lanes);
        }
        for (k, group) in plan.sums.iter().enumerate() {
            let Group::Place(of) = *group else { continue };
            let Some(number) = all[of] else { continue };
            let lane = self.int();
            let at = |k: usize| first(k).add(&Poly::var(lane));
            let mut in_lanes = Vec::new();
            let value = self.place_with(number, buffer, (at(of), at(k)), &mut in_lanes);
            in_lanes.push(Instr::Store { buffer, at: at(k), value });
            out.push(Stmt::Straight(std::mem::take(&mut code)));
            out.push(at_once(lane, in_lanes));
            let place = self.tree(*group, buffer, lanes(k), &mut code);
            let (is_better, init) = (self.int(), carried[of].init);
            let args = if plan.sums[of] == Group::Greatest { [init, number, init] } else { [number, init, number] };
            code.push(Instr::Op { dst: is_better, op: Op::Lt, args });
            code.push(Instr::Op { dst: sums[k], op: Op::Select, args: [is_better, place, carried[k].init] });
        }
        out.push(Stmt::Straight(code));
    }

    /// Emits the place of a partial result whose number is `number`, and infinity for another one, from the elements of
    /// the number and of the place.
    fn place_with(
        &mut self,
        number: Reg,
        buffer: BufferId,
        (of_number, of_place): (Poly<Reg>, Poly<Reg>),
        code: &mut Vec<Instr>,
    ) -> Reg {
        let [own, place, none, value] = [(); 4].map(|()| self.real());
        let is_it = self.int();
        code.extend([
            Instr::Load { dst: own, buffer, at: of_number },
            Instr::Load { dst: place, buffer, at: of_place },
            Instr::Const { dst: none, value: f64::INFINITY },
            Instr::Op { dst: is_it, op: Op::Eq, args: [own, number, own] },
            Instr::Op { dst: value, op: Op::Select, args: [is_it, place, none] },
        ]);
        value
    }

    /// Reduces elements by halves ([`Self::halves`]).
    pub fn tree(
        &mut self,
        group: Group,
        buffer: BufferId,
        places: impl Iterator<Item = Poly<Reg>>,
        code: &mut Vec<Instr>,
    ) -> Reg {
        let mut parts = Vec::new();
        for at in places {
            let dst = self.real();
            code.push(Instr::Load { dst, buffer, at });
            parts.push(dst);
        }
        self.halves(group, parts, code)
    }

    /// Reduces values by halves: `((p0 + p4) + (p2 + p6)) + ((p1 + p5) + (p3 + p7))`. Of an odd number, the last of the
    /// first half waits: `(p0 + p2) + p1`.
    fn halves(&mut self, group: Group, mut parts: Vec<Reg>, code: &mut Vec<Instr>) -> Reg {
        while parts.len() > 1 {
            let (first, second) = parts.split_at(parts.len().div_ceil(2));
            let pair = |(i, a): (usize, &Reg)| second.get(i).map_or(*a, |b| self.op(group.op(), *a, *b, code));
            parts = first.iter().enumerate().map(pair).collect();
        }
        parts[0]
    }
}
