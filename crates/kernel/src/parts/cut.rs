//! Emission of parallel loops: chunks, and the reduction of their sums.

use crate::events::walk;
use crate::kernel::{BufferId, Carried, Instr, Kernel, LANES, MAX_BRANCHES, Order, PARTS, Reg, Stmt};
use crate::lanes::Plan;
use crate::lanes::independence::Group;
use crate::lanes::rewrite::{Copier, Cutter, Loop};
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::BTreeMap;

/// Minimum number of iterations of a chunk that adds to arrays, since these are cleared and reduced once a chunk.
const LEAST_ADDING: i64 = 256;

/// Cuts the loops over the given indices, which are in the outermost block or in branches there; returns their number.
pub(super) fn cut(kernel: &mut Kernel, mut plans: BTreeMap<Reg, Plan>) -> usize {
    let n = plans.len();
    if n == 0 {
        return 0;
    }
    let body = std::mem::take(&mut kernel.body);
    kernel.body = cut_block(&mut Cutter::new(kernel), &mut plans, body, MAX_BRANCHES);
    n
}

/// Cuts the loops of a block and of its branches, down to a bounded nesting.
fn cut_block(
    cutter: &mut Cutter<'_>,
    plans: &mut BTreeMap<Reg, Plan>,
    body: Vec<Stmt>,
    n_branches: usize,
) -> Vec<Stmt> {
    let mut done = Vec::with_capacity(body.len());
    for stmt in body {
        match stmt {
            Stmt::For { index, count, carried, order: Order::InOrder, body } if plans.contains_key(&index) => {
                let plan = plans.remove(&index).unwrap_or_default();
                cut_one(cutter, &plan, &Loop { index, count, carried, body }, &mut done);
            }
            Stmt::If { condition, then, otherwise, choices } if n_branches > 0 => {
                let [then, otherwise] = [then, otherwise].map(|arm| cut_block(cutter, plans, arm, n_branches - 1));
                done.push(Stmt::If { condition, then, otherwise, choices });
            }
            stmt => done.push(stmt),
        }
    }
    done
}

/// An accumulator array.
struct Added {
    to: BufferId,
    /// Buffer of one chunk.
    own: BufferId,
    /// Buffers of all chunks, one after the other.
    all: BufferId,
    len: Poly<Reg>,
}

fn cut_one(cutter: &mut Cutter<'_>, plan: &Plan, the: &Loop, out: &mut Vec<Stmt>) {
    let mut taken = Vec::new();
    let added: Vec<Added> = plan
        .accumulators
        .iter()
        .map(|to| {
            let len = cutter.kernel.buffers[*to].len.clone();
            let own = cutter.buffer(len.clone(), &mut taken);
            let all = cutter.buffer(len.scale(PARTS), &mut taken);
            Added { to: *to, own, all, len }
        })
        .collect();
    let partial =
        (!plan.sums.is_empty()).then(|| cutter.buffer(Poly::constant(PARTS * plan.sums.len() as i64), &mut taken));

    let mut before = Vec::new();
    let zero = cutter.int_of(&mut before, Poly::zero());
    let least = if added.is_empty() { 0 } else { LEAST_ADDING };
    let share = share(cutter, &the.count, least, zero, &mut before);
    if !before.is_empty() {
        out.push(Stmt::Straight(before));
    }
    let part = cutter.int();
    let body = one_part(cutter, plan, the, &Part { index: part, zero, share: &share }, &added, partial);
    let count = Poly::constant(PARTS);
    out.push(Stmt::For { index: part, count, carried: Vec::new(), order: Order::Parts, body });
    together(cutter, plan, &the.carried, &added, partial, out);
}

/// Returns the number of iterations of a chunk: whole blocks of lanes, at least `least`.
fn share(cutter: &mut Cutter<'_>, count: &Poly<Reg>, least: i64, zero: Reg, before: &mut Vec<Instr>) -> Poly<Reg> {
    let blocks = LANES * PARTS;
    if let Some(n) = count.as_constant() {
        let share = n.max(0).div_euclid(blocks) * LANES + if n % blocks > 0 { LANES } else { 0 };
        return Poly::constant(share.max(least));
    }
    let n = match count.as_var() {
        Some(n) => n,
        None => cutter.int_of(before, count.clone()),
    };
    let n = cutter.int_op(before, Op::Max, n, zero);
    let up = cutter.int_of(before, Poly::var(n).add(&Poly::constant(blocks - 1)));
    let divisor = cutter.int_of(before, Poly::constant(blocks));
    let mut share = cutter.int_op(before, Op::Quot, up, divisor);
    if least > 0 {
        let least = cutter.int_of(before, Poly::constant(least / LANES));
        share = cutter.int_op(before, Op::Max, share, least);
    }
    Poly::var(share).scale(LANES)
}

/// Current part of a loop.
struct Part<'a> {
    /// Number of the part.
    index: Reg,
    /// Register that is 0.
    zero: Reg,
    /// Number of iterations of each part.
    share: &'a Poly<Reg>,
}

/// Emits the iterations `start..count - left`. Both numbers are maxima with 0, so that [`ranges`](crate::ranges) can
/// prove these in range.
fn one_part(
    cutter: &mut Cutter<'_>,
    plan: &Plan,
    the: &Loop,
    &Part { index: part, zero, share }: &Part<'_>,
    added: &[Added],
    partial: Option<BufferId>,
) -> Vec<Stmt> {
    let mut first = Vec::new();
    let begin = cutter.int_of(&mut first, share.mul(&Poly::var(part)));
    let start = Poly::var(cutter.int_op(&mut first, Op::Max, begin, zero));
    let behind = cutter.int_of(&mut first, the.count.sub(&start).sub(share));
    let left = Poly::var(cutter.int_op(&mut first, Op::Max, behind, zero));
    let mut map = BTreeMap::new();
    let mut carried = Vec::new();
    for (group, c) in plan.sums.iter().zip(&the.carried) {
        let (init, var) = (cutter.real(), cutter.real());
        first.push(Instr::Const { dst: init, value: group.neutral() });
        map.insert(c.var, var);
        carried.push(Carried { var, init, next: c.next });
    }
    let mut body = vec![Stmt::Straight(first)];
    for Added { own, len, .. } in added {
        let (k, value) = (cutter.int(), cutter.real());
        let code = vec![
            Instr::Const { dst: value, value: Group::Sum.neutral() },
            Instr::Store { buffer: *own, at: Poly::var(k), value },
        ];
        let (carried, body_of) = (Vec::new(), vec![Stmt::Straight(code)]);
        body.push(Stmt::For { index: k, count: len.clone(), carried, order: Order::InOrder, body: body_of });
    }
    let j = cutter.int();
    let at = start.add(&Poly::var(j));
    let buffers = added.iter().map(|a| (a.to, a.own)).collect();
    let by = at.clone();
    let regs = &mut cutter.kernel.regs;
    let mut inside =
        Copier { regs, map, index: the.index, by, fresh: false, lane: None, buffers: &buffers }.block(&the.body);
    // Polynomials are substituted; direct uses of the register remain.
    let mut is_read = false;
    walk(&inside).for_each(|event| event.for_each_use(|r| is_read |= r == the.index));
    if is_read {
        inside.insert(0, Stmt::Straight(vec![Instr::Int { dst: the.index, value: at }]));
    }
    let count = the.count.sub(&start).sub(&left);
    let sums: Vec<Reg> = carried.iter().map(|c| c.var).collect();
    body.push(Stmt::For { index: j, count, carried, order: Order::InOrder, body: inside });
    if let Some(buffer) = partial {
        let store = |(k, value)| {
            let at = Poly::var(part).add(&Poly::constant(k * PARTS));
            Instr::Store { buffer, at, value }
        };
        body.push(Stmt::Straight((0..).zip(sums).map(store).collect()));
    }
    for Added { own, all, len, .. } in added {
        let to = (*all, len.mul(&Poly::var(part)));
        body.push(Stmt::Copy { to, from: (*own, Poly::zero()), len: len.clone(), is_move: false });
    }
    body
}

/// Reduces the results of the chunks.
fn together(
    cutter: &mut Cutter<'_>,
    plan: &Plan,
    carried: &[Carried],
    added: &[Added],
    partial: Option<BufferId>,
    out: &mut Vec<Stmt>,
) {
    if let Some(buffer) = partial {
        let mut code = Vec::new();
        for ((k, group), c) in (0..).zip(&plan.sums).zip(carried) {
            let places = (0..PARTS).map(|p| Poly::constant(k * PARTS + p));
            let all = cutter.tree(*group, buffer, places, &mut code);
            code.push(Instr::Op { dst: c.var, op: group.op(), args: [c.init, all, c.init] });
        }
        out.push(Stmt::Straight(code));
    }
    for Added { to, all, len, .. } in added {
        let index = cutter.int();
        let at = Poly::var(index);
        let mut code = Vec::new();
        let places = (0..PARTS).map(|p| len.scale(p).add(&at));
        let sum = cutter.tree(Group::Sum, *all, places, &mut code);
        let so_far = cutter.real();
        code.push(Instr::Load { dst: so_far, buffer: *to, at: at.clone() });
        let value = cutter.op(Op::Add, so_far, sum, &mut code);
        code.push(Instr::Store { buffer: *to, at, value });
        let body = vec![Stmt::Straight(code)];
        out.push(Stmt::For { index, count: len.clone(), carried: Vec::new(), order: Order::InOrder, body });
    }
}
