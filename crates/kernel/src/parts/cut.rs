//! Emission of parallel loops: chunks, and the reduction of their sums.

use crate::events::{Event, walk};
use crate::kernel::{BufferId, Carried, Choice, Instr, Kernel, LANES, MAX_BRANCHES, Order, PARTS, Reg, Stmt};
use crate::lanes::Plan;
use crate::lanes::independence::Group;
use crate::lanes::rewrite::{Copier, Copies, Cutter, Loop};
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::BTreeMap;

/// Minimum number of iterations of a chunk that adds to arrays, since these are cleared and reduced once a chunk.
const LEAST_ADDING: i64 = 256;

/// The same if each iteration adds to other elements, at addresses by its index.
const LEAST_SCATTERING: i64 = 64;

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
            Stmt::For { index, count, carried, order: Order::InOrder, body } => {
                let the = Loop { index, count, carried, body };
                match plans.remove(&index).filter(|plan| !plan.adds_rarely || n_branches > 0) {
                    Some(plan) => cut_one(cutter, &plan, the, &mut done),
                    None => done.push(the.in_order()),
                }
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

fn cut_one(cutter: &mut Cutter<'_>, plan: &Plan, the: Loop, out: &mut Vec<Stmt>) {
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

    let (mut before, mut then) = (Vec::new(), Vec::new());
    let zero = cutter.int_of(&mut before, Poly::zero());
    let is_scattered = |added: &Added| each_address_of(&the, added.to).any(|at| at.vars().contains(&the.index));
    let least = match added.is_empty() {
        true => 0,
        false if added.iter().all(is_scattered) => LEAST_SCATTERING,
        false => LEAST_ADDING,
    };
    let share = share(cutter, &the.count, least, zero, &mut before);
    let used = if added.is_empty() { None } else { Some(used(cutter, &the.count, &share, &mut before)) };
    let condition = plan.adds_rarely.then(|| are_many(cutter, &the.count, &added, &mut before));
    if !before.is_empty() {
        out.push(Stmt::Straight(before));
    }
    let part = cutter.int();
    let body = one_part(cutter, plan, &the, &Part { index: part, zero, share: &share }, &added, partial);
    let count = Poly::constant(PARTS);
    then.push(Stmt::For { index: part, count, carried: Vec::new(), order: Order::Parts, body });
    let sums: Vec<Reg> = match condition {
        Some(_) => the.carried.iter().map(|_| cutter.real()).collect(),
        None => the.carried.iter().map(|c| c.var).collect(),
    };
    if let Some(partial) = partial {
        let inits = the.carried.iter().map(|c| c.init);
        add_sums(cutter, plan, inits.zip(sums.iter().copied()), partial, &mut then);
    }
    if let Some(used) = used {
        added.iter().for_each(|added| add_array(cutter, added, used, &mut then));
    }
    match condition {
        Some(condition) => out.push(or_in_order(cutter, condition, then, &sums, (plan, the))),
        None => out.extend(then),
    }
}

/// Returns the condition that a chunk has more iterations than the arrays of a chunk have elements.
fn are_many(cutter: &mut Cutter<'_>, count: &Poly<Reg>, added: &[Added], before: &mut Vec<Instr>) -> Reg {
    let len = added.iter().fold(Poly::zero(), |sum, added| sum.add(&added.len));
    let (len, count) = (cutter.int_of(before, len.scale(PARTS)), cutter.int_of(before, count.clone()));
    cutter.int_op(before, Op::Lt, len, count)
}

/// Returns a branch to the chunks, with their `sums`, and to the loop as it is.
fn or_in_order(
    cutter: &mut Cutter<'_>,
    condition: Reg,
    then: Vec<Stmt>,
    sums: &[Reg],
    (plan, the): (&Plan, Loop),
) -> Stmt {
    let names = plan.private.iter().map(|buffer| {
        let own = cutter.kernel.buffers[*buffer].clone();
        (*buffer, cutter.kernel.buffers.push(own))
    });
    let buffers: BTreeMap<BufferId, BufferId> = names.collect();
    let (map, by) = (BTreeMap::new(), Poly::var(condition));
    let regs = &mut cutter.kernel.regs;
    let mut copier = Copier { regs, map, index: condition, by, fresh: true, lane: None, buffers: &buffers };
    let carried = the.carried.clone();
    let otherwise = copier.block(&[the.in_order()]);
    let choice = |(c, sum): (&Carried, &Reg)| Choice { var: c.var, then: *sum, otherwise: copier.of(c.var) };
    let choices = carried.iter().zip(sums).map(choice).collect();
    Stmt::If { condition, then, otherwise, choices }
}

/// Iterates over the addresses at which a loop stores to `buffer`.
fn each_address_of(the: &Loop, buffer: BufferId) -> impl Iterator<Item = &Poly<Reg>> {
    walk(&the.body).filter_map(move |event| match event {
        Event::Instr(Instr::Store { buffer: to, at, .. }) if *to == buffer => Some(at),
        _ => None,
    })
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

/// Returns the number of chunks with iterations.
fn used(cutter: &mut Cutter<'_>, count: &Poly<Reg>, share: &Poly<Reg>, before: &mut Vec<Instr>) -> Reg {
    let up = cutter.int_of(before, count.add(share).sub(&Poly::constant(1)));
    let share = cutter.int_of(before, share.clone());
    let n = cutter.int_op(before, Op::Quot, up, share);
    let all = cutter.int_of(before, Poly::constant(PARTS));
    cutter.int_op(before, Op::Min, n, all)
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
    let count = the.count.sub(&start).sub(&left);
    let has_any = (!added.is_empty()).then(|| {
        let count = cutter.int_of(&mut first, count.clone());
        cutter.int_op(&mut first, Op::Lt, zero, count)
    });
    let if_any = |then: Vec<Stmt>| {
        has_any.map(|condition| Stmt::If { condition, then, otherwise: Vec::new(), choices: Vec::new() })
    };
    let (mut body, mut cleared) = (vec![Stmt::Straight(first)], Vec::new());
    for Added { own, len, .. } in added {
        let (k, value) = (cutter.int(), cutter.real());
        let code = vec![
            Instr::Const { dst: value, value: Group::Sum.neutral() },
            Instr::Store { buffer: *own, at: Poly::var(k), value },
        ];
        let (carried, body_of) = (Vec::new(), vec![Stmt::Straight(code)]);
        cleared.push(Stmt::For { index: k, count: len.clone(), carried, order: Order::InOrder, body: body_of });
    }
    body.extend(if_any(cleared));
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
    let sums: Vec<Reg> = carried.iter().map(|c| c.var).collect();
    body.push(Stmt::For { index: j, count, carried, order: Order::InOrder, body: inside });
    if let Some(buffer) = partial {
        let store = |(k, value)| {
            let at = Poly::var(part).add(&Poly::constant(k * PARTS));
            Instr::Store { buffer, at, value }
        };
        body.push(Stmt::Straight((0..).zip(sums).map(store).collect()));
    }
    let saved = added.iter().map(|Added { own, all, len, .. }| {
        let to = (*all, len.mul(&Poly::var(part)));
        Stmt::Copy { to, from: (*own, Poly::zero()), len: len.clone(), is_move: false }
    });
    body.extend(if_any(saved.collect()));
    body
}

/// Reduces the sums of the chunks: to each initial value in `sums`, the register of the result.
fn add_sums(
    cutter: &mut Cutter<'_>,
    plan: &Plan,
    sums: impl Iterator<Item = (Reg, Reg)>,
    partial: BufferId,
    out: &mut Vec<Stmt>,
) {
    let mut code = Vec::new();
    for ((k, group), (init, dst)) in (0..).zip(&plan.sums).zip(sums) {
        let places = (0..PARTS).map(|p| Poly::constant(k * PARTS + p));
        let all = cutter.tree(*group, partial, places, &mut code);
        code.push(Instr::Op { dst, op: group.op(), args: [init, all, init] });
    }
    out.push(Stmt::Straight(code));
}

/// Adds the arrays of the first chunks, so many as are `used`, to an accumulator array.
fn add_array(cutter: &mut Cutter<'_>, Added { to, all, len, .. }: &Added, used: Reg, out: &mut Vec<Stmt>) {
    let (index, part) = (cutter.int(), cutter.int());
    let [so_far, sum, own, next] = std::array::from_fn(|_| cutter.real());
    let at = Poly::var(index);
    let inside = vec![
        Instr::Load { dst: own, buffer: *all, at: len.mul(&Poly::var(part)).add(&at) },
        Instr::Op { dst: next, op: Op::Add, args: [sum, own, sum] },
    ];
    let parts = Stmt::For {
        index: part,
        count: Poly::var(used),
        carried: vec![Carried { var: sum, init: so_far, next }],
        order: Order::InOrder,
        body: vec![Stmt::Straight(inside)],
    };
    let load = vec![Instr::Load { dst: so_far, buffer: *to, at: at.clone() }];
    let store = vec![Instr::Store { buffer: *to, at, value: sum }];
    let body = vec![Stmt::Straight(load), parts, Stmt::Straight(store)];
    out.push(Stmt::For { index, count: len.clone(), carried: Vec::new(), order: Order::InOrder, body });
}
