//! Blocked search for the step that decides a maximum or a minimum.
//!
//! In: a loop that carries a number and the index of the step that replaced it last, which has an unpredictable
//! branch and cannot run in lanes. Out: the number alone for each block of [`BLOCK`] steps, a reduction that runs in
//! lanes, and the steps of one block, the last one that has a better number.
//!
//! ```text
//! for i in 0..n, m = a then m', k = -1 then k'    for b in 0..n/64, run = a, first = a, best = -1
//!   t(i)                                            for j in 0..64, r = -inf then max r t(64 b + j)
//!   if m < t                                        if run < r
//!   m' = t | m                                      run, first, best = r, run, b
//!   k' = i | k                                    if 0 <= best
//!                                                   the 64 steps of block best, from m = first, k = -1
//!                                                   if k < 0: all n/64 blocks, from m = a
//!                                                 the other steps
//! ```
//!
//! One step of the block runs instead of 64: the first whose term is the block's number, found in lanes. The other
//! steps, fewer than a block, are treated so too.
//!
//! ```text
//! for j in 0..64, l = inf then min l (if t(64 best + j) == run then j else inf)
//! if l < inf: step 64 best + l; otherwise all 64 steps
//! ```
//!
//! Blocks before the last better one are overtaken, and blocks after it change nothing, so the result has the same
//! bits: ties, zeros of both signs and NaN are decided by the steps in sequence. Only the choice of the block relies on
//! the terms of the reduction. If they are rounded differently, so that no step of the block is better, all steps run.
//!
//! **Terms that lanes round otherwise**, sums and elementary functions, are costly: the reduction keeps those of a
//! block, with which the steps of each better block run. Few steps run as they were.
//!
//! ```text
//! for b in 0..(n + 63) / 64, m = a then m', k = -1 then k'
//!   for j in 0..min(64, n - 64 b), r = -inf then max r t    t = t(64 b + j), kept[j] = t
//!   if m < r: the steps of block b, with kept[j] for t(64 b + j)
//! ```
//!
//! Applies where the reduction is chosen to run in lanes.

use super::rewrite::{Copier, Cutter, Loop, Stretch};
use super::{Plans, plans};
use crate::events::{Event, events};
use crate::kernel::{BufferId, Carried, Choice, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::{Op, Semantics};
use std::collections::{BTreeMap, BTreeSet};

/// Steps of a block: the reduction of its lanes should cost less than its loop, and its steps run in sequence.
const BLOCK: i64 = 64;

/// Minimum number of steps of a loop whose terms are kept.
const FEWEST: i64 = 32;

/// Minimum number of steps of a loop that is a part of a block, if it is known.
const PART: i64 = 16;

/// Loop that selects a number, with the last step that replaced it.
pub(super) struct Search {
    pub the: Loop,
    number: Carried,
    pub winner: Carried,
    condition: Reg,
    term: Reg,
    /// `Max` or `Min`.
    op: Op,
    /// Whether lanes round the term alike: it has no sum and no elementary function.
    is_exact: bool,
}

/// Blocks the loops of `kernel` whose reductions then run in lanes.
pub(crate) fn block_searches(kernel: &mut Kernel, semantics: Semantics) {
    if semantics == Semantics::Algebraic {
        where_in_lanes(kernel, semantics, write);
    }
}

/// Changes loops of `kernel` with searches where a new loop then runs in lanes; returns whether there are any. `write`
/// changes the loops whose indices it may, and returns the indices of the new loops by those.
pub(super) fn where_in_lanes(
    kernel: &mut Kernel,
    semantics: Semantics,
    write: impl Fn(&mut Kernel, &dyn Fn(Reg) -> bool) -> BTreeMap<Reg, Reg>,
) -> bool {
    let all = events(&kernel.body);
    let carries_both = |event: &Event<'_>| matches!(event, Event::For { carried, .. } if carried.len() == 2);
    if !all.iter().any(carries_both) {
        return false;
    }
    let mut tried = kernel.clone();
    let new = write(&mut tried, &|_| true);
    if new.is_empty() {
        return false;
    }
    let Plans { chosen, .. } = plans(&tried, semantics);
    let in_lanes: BTreeSet<Reg> = new.iter().filter(|(_, new)| chosen.contains_key(new)).map(|(old, _)| *old).collect();
    if in_lanes.len() == new.len() {
        *kernel = tried;
    } else if !in_lanes.is_empty() {
        write(kernel, &|index| in_lanes.contains(&index));
    }
    !in_lanes.is_empty()
}

impl Search {
    /// Returns whether the steps, if their number is known, are enough for blocks.
    fn fills_blocks(&self) -> bool {
        self.the.count.as_constant().is_none_or(|n| n >= if self.is_exact { PART } else { FEWEST })
    }
}

/// Blocks the searches with these indices; returns the indices of the reductions by those of the searches.
fn write(kernel: &mut Kernel, is_chosen: &dyn Fn(Reg) -> bool) -> BTreeMap<Reg, Reg> {
    let mut body = std::mem::take(&mut kernel.body);
    let mut reductions = BTreeMap::new();
    // The loops that are written have new indices, or the old one for the last steps.
    let mut seen = BTreeSet::new();
    let n_failures = kernel.failures.len();
    let mut cutter = Cutter::new(kernel);
    each_statement(&mut body, |stmt, done| {
        let found = search(cutter.kernel, &stmt).filter(Search::fills_blocks);
        let (Stmt::For { index, .. }, Some(search)) = (&stmt, found) else {
            done.push(stmt);
            return;
        };
        let index = *index;
        if !is_chosen(index) || !seen.insert(index) {
            done.push(stmt);
            return;
        }
        let Blocked { reduction, copies } = blocked(&mut cutter, &search, done);
        seen.extend(copies);
        reductions.insert(index, reduction);
    });
    if reductions.is_empty() {
        cutter.kernel.failures.truncate(n_failures);
    }
    kernel.body = body;
    reductions
}

/// Returns the search that a statement is, if it is one.
pub(super) fn search(kernel: &Kernel, stmt: &Stmt) -> Option<Search> {
    let Stmt::For { index, count, carried, order: Order::InOrder, body } = stmt else { return None };
    let [a, b] = carried.as_slice() else { return None };
    let (number, winner) = match [kernel.regs[a.var], kernel.regs[b.var]] {
        [Class::Real, Class::Int] => (*a, *b),
        [Class::Int, Class::Real] => (*b, *a),
        _ => return None,
    };
    let (Stmt::If { condition, then, otherwise, choices }, before) = body.split_last()? else { return None };
    let is_exact = before.iter().all(|stmt| matches!(stmt, Stmt::Straight(code) if code.iter().all(is_rounded_alike)));
    if !then.is_empty() || !otherwise.is_empty() || choices.len() != 2 {
        return None;
    }
    let chosen = |c: &Carried| choices.iter().find(|choice| choice.var == c.next && choice.otherwise == c.var);
    let (term, step) = (chosen(&number)?.then, chosen(&winner)?.then);
    let compared = before.iter().find_map(|stmt| match stmt {
        Stmt::Straight(code) => code.iter().find_map(|instr| match instr {
            Instr::Op { dst, op: Op::Lt, args } if dst == condition => Some([args[0], args[1]]),
            _ => None,
        }),
        _ => None,
    })?;
    let op = match compared {
        [m, t] if m == number.var && t == term => Op::Max,
        [t, m] if m == number.var && t == term => Op::Min,
        _ => return None,
    };
    // The term depends on nothing that is carried, and nothing is written.
    let mut is_free = step == *index && term != number.var;
    for event in events(before) {
        match &event {
            Event::Instr(Instr::Op { dst, .. }) if dst == condition => continue,
            Event::Instr(Instr::Store { .. }) | Event::Copy { .. } | Event::While { .. } => is_free = false,
            // One search in another would be copied for each copy.
            Event::For { carried, .. } => is_free &= carried.iter().all(|c| kernel.regs[c.var] == Class::Real),
            _ => {}
        }
        event.for_each_use(|r| is_free &= r != number.var && r != winner.var && r != *condition);
    }
    let the = Loop { index: *index, count: count.clone(), carried: carried.clone(), body: body.clone() };
    is_free.then_some(Search { the, number, winner, condition: *condition, term, op, is_exact })
}

/// Returns whether an instruction has the same bits in lanes and out of them.
fn is_rounded_alike(instr: &Instr) -> bool {
    match instr {
        Instr::Op { op, .. } => {
            op.gives_truth()
                || matches!(
                    op,
                    Op::Abs | Op::Add | Op::Div | Op::Max | Op::Min | Op::Mul | Op::Neg | Op::Sqrt | Op::Sub
                )
        }
        Instr::External { .. } => false,
        _ => true,
    }
}

/// Indices of written loops.
struct Blocked {
    /// Index of a reduction.
    reduction: Reg,
    /// Indices of the loops that are searches again.
    copies: Vec<Reg>,
}

/// Emits a search by blocks to `out`.
fn blocked(cutter: &mut Cutter<'_>, search: &Search, out: &mut Vec<Stmt>) -> Blocked {
    let Search { the, number, winner, .. } = search;
    if !search.is_exact {
        return staged(cutter, search, out);
    }
    let mut before = Vec::new();
    let (blocks, done) = cutter.blocks(&the.count, BLOCK, &mut before);
    out.push(Stmt::Straight(before));
    let (mut reduction, mut copies) = (None, Vec::new());
    let mut so_far = [number.init, winner.init];
    if done.as_constant() != Some(0) {
        let (of_blocks, after) = full_blocks(cutter, search, [blocks, done.clone()], &mut copies, out);
        (reduction, so_far) = (Some(of_blocks), after);
    }
    let rest = Part { from: done.clone(), count: the.count.sub(&done) };
    let of_rest = part_of_block(cutter, search, rest, [[number.var, winner.var], so_far], &mut copies, out);
    Blocked { reduction: reduction.unwrap_or(of_rest), copies }
}

/// Emits a search by blocks that keeps the terms of a block, because lanes may round them otherwise. Few steps run in
/// sequence.
fn staged(cutter: &mut Cutter<'_>, search: &Search, out: &mut Vec<Stmt>) -> Blocked {
    let Search { the, number, winner, .. } = search;
    let mut before = Vec::new();
    let is_long = cutter.all_reach(&[(the.count.clone(), FEWEST)], &mut before);
    let blocks = cutter.n_stretches(&the.count, BLOCK, &mut before);
    out.push(Stmt::Straight(before));
    let block = cutter.int();
    let ([next_m, few_m], [next_k, few_k]) = ([(); 2].map(|()| cutter.real()), [(); 2].map(|()| cutter.int()));
    let (m, k) = match is_long {
        Some(_) => (cutter.real(), cutter.int()),
        None => (number.var, winner.var),
    };
    let mut begin = Vec::new();
    let Stretch { first, count } = cutter.nth_stretch(block, &the.count, BLOCK, &mut begin);
    let part = Part { from: first, count };
    let mut body = vec![Stmt::Straight(begin)];
    let kept = cutter.kernel.memory(Poly::constant(BLOCK));
    let (reduction, run) = reduced(cutter, search, &part, Some(kept), &mut body);
    let is_better = cutter.int();
    body.push(Stmt::Straight(vec![search.better(is_better, m, run)]));
    let (steps, index, [of_m, of_k]) = steps_with_terms(cutter, search, part, kept, [m, k]);
    let choices =
        vec![Choice { var: next_m, then: of_m, otherwise: m }, Choice { var: next_k, then: of_k, otherwise: k }];
    body.push(Stmt::If { condition: is_better, then: vec![steps], otherwise: Vec::new(), choices });
    let carried =
        vec![Carried { var: m, init: number.init, next: next_m }, Carried { var: k, init: winner.init, next: next_k }];
    let then = Stmt::For { index: block, count: blocks, carried, order: Order::InOrder, body };
    let mut copies = vec![index];
    let Some(condition) = is_long else {
        out.push(then);
        return Blocked { reduction, copies };
    };
    let all = Part { from: Poly::zero(), count: the.count.clone() };
    let few = sequence(cutter, search, all, [few_m, few_k], [number.init, winner.init], &mut copies);
    let choices = vec![
        Choice { var: number.var, then: m, otherwise: few_m },
        Choice { var: winner.var, then: k, otherwise: few_k },
    ];
    out.push(Stmt::If { condition, then: vec![then], otherwise: vec![few], choices });
    Blocked { reduction, copies }
}

/// Returns the search in `part` of a block whose terms are `kept`, with its index, and the registers of its number and
/// winner, which are `inits` at first.
fn steps_with_terms(
    cutter: &mut Cutter<'_>,
    search: &Search,
    part: Part,
    kept: BufferId,
    inits: [Reg; 2],
) -> (Stmt, Reg, [Reg; 2]) {
    let [index, step, is_better] = [(); 3].map(|()| cutter.int());
    let [m, next_m, term] = [(); 3].map(|()| cutter.real());
    let [k, next_k] = [(); 2].map(|()| cutter.int());
    let body = vec![
        Stmt::Straight(vec![
            Instr::Int { dst: step, value: part.from.add(&Poly::var(index)) },
            Instr::Load { dst: term, buffer: kept, at: Poly::var(index) },
            search.better(is_better, m, term),
        ]),
        Stmt::If {
            condition: is_better,
            then: Vec::new(),
            otherwise: Vec::new(),
            choices: vec![
                Choice { var: next_m, then: term, otherwise: m },
                Choice { var: next_k, then: step, otherwise: k },
            ],
        },
    ];
    let carried =
        vec![Carried { var: m, init: inits[0], next: next_m }, Carried { var: k, init: inits[1], next: next_k }];
    (Stmt::For { index, count: part.count, carried, order: Order::InOrder, body }, index, [m, k])
}

/// Emits the search in so many full blocks with so many steps; returns the index of their reduction, and the number
/// and the winner after them.
fn full_blocks(
    cutter: &mut Cutter<'_>,
    search: &Search,
    [blocks, steps]: [Poly<Reg>; 2],
    copies: &mut Vec<Reg>,
    out: &mut Vec<Stmt>,
) -> (Reg, [Reg; 2]) {
    let Search { number, winner, .. } = search;
    let mut code = Vec::new();
    let none = cutter.int_of(&mut code, Poly::constant(-1));
    let zero = cutter.int_of(&mut code, Poly::zero());
    out.push(Stmt::Straight(code));
    let Best { reduction, first, run, best } = best_block(cutter, search, blocks, none, out);

    // The steps of the last better block.
    let mut code = Vec::new();
    let is_some = cutter.int_op(&mut code, Op::Le, zero, best);
    out.push(Stmt::Straight(code));
    let of_block = Part { from: Poly::var(best).scale(BLOCK), count: Poly::constant(BLOCK) };
    let mut then = Vec::new();
    let one = step_with(cutter, search, of_block, run, &mut then);
    let [m, all_m, found_m, so_far_m] = [(); 4].map(|()| cutter.real());
    let [k, all_k, found_k, so_far_k] = [(); 4].map(|()| cutter.int());
    then.push(sequence(cutter, search, one, [m, k], [first, none], copies));
    let mut code = Vec::new();
    let is_missing = cutter.int_op(&mut code, Op::Lt, k, zero);
    then.push(Stmt::Straight(code));
    let all = Part { from: Poly::zero(), count: steps };
    let steps = sequence(cutter, search, all, [all_m, all_k], [number.init, winner.init], copies);
    then.push(Stmt::If {
        condition: is_missing,
        then: vec![steps],
        otherwise: Vec::new(),
        choices: vec![
            Choice { var: found_m, then: all_m, otherwise: m },
            Choice { var: found_k, then: all_k, otherwise: k },
        ],
    });
    out.push(Stmt::If {
        condition: is_some,
        then,
        otherwise: Vec::new(),
        choices: vec![
            Choice { var: so_far_m, then: found_m, otherwise: number.init },
            Choice { var: so_far_k, then: found_k, otherwise: winner.init },
        ],
    });
    (reduction, [so_far_m, so_far_k])
}

/// Emits the search in a part of a block, from the number and the winner `inits` to `vars`; returns the index of the
/// reduction.
fn part_of_block(
    cutter: &mut Cutter<'_>,
    search: &Search,
    part: Part,
    [vars, inits]: [[Reg; 2]; 2],
    copies: &mut Vec<Reg>,
    out: &mut Vec<Stmt>,
) -> Reg {
    let (reduction, run) = reduced(cutter, search, &part, None, out);
    let is_better = cutter.int();
    out.push(Stmt::Straight(vec![search.better(is_better, inits[0], run)]));
    let mut then = Vec::new();
    let one = step_with(cutter, search, part, run, &mut then);
    let (m, k) = (cutter.real(), cutter.int());
    then.push(sequence(cutter, search, one, [m, k], inits, copies));
    let choices = vec![
        Choice { var: vars[0], then: m, otherwise: inits[0] },
        Choice { var: vars[1], then: k, otherwise: inits[1] },
    ];
    out.push(Stmt::If { condition: is_better, then, otherwise: Vec::new(), choices });
    reduction
}

/// Registers of the search for a block.
struct Best {
    /// Index of the reduction.
    reduction: Reg,
    /// Number before the block.
    first: Reg,
    /// Number of the block.
    run: Reg,
    /// The last block with a better number, or -1.
    best: Reg,
}

impl Search {
    /// Returns the number from which a reduction starts.
    fn neutral(&self) -> f64 {
        if self.op == Op::Max { f64::NEG_INFINITY } else { f64::INFINITY }
    }

    /// Writes whether `next` is a better number than `number`.
    fn better(&self, dst: Reg, number: Reg, next: Reg) -> Instr {
        let args = if self.op == Op::Max { [number, next, number] } else { [next, number, next] };
        Instr::Op { dst, op: Op::Lt, args }
    }
}

/// Emits the reductions of all blocks to `out`; `none` is -1.
fn best_block(cutter: &mut Cutter<'_>, search: &Search, blocks: Poly<Reg>, none: Reg, out: &mut Vec<Stmt>) -> Best {
    let init = search.number.init;
    let (block, best, next_best) = (cutter.int(), cutter.int(), cutter.int());
    let [first, run, next_first, next_run] = [(); 4].map(|()| cutter.real());
    let steps = Part { from: Poly::var(block).scale(BLOCK), count: Poly::constant(BLOCK) };
    let mut body = Vec::new();
    let (reduction, of_block) = reduced(cutter, search, &steps, None, &mut body);
    let is_better = cutter.int();
    body.push(Stmt::Straight(vec![search.better(is_better, run, of_block)]));
    body.push(Stmt::If {
        condition: is_better,
        then: Vec::new(),
        otherwise: Vec::new(),
        choices: vec![
            Choice { var: next_first, then: run, otherwise: first },
            Choice { var: next_run, then: of_block, otherwise: run },
            Choice { var: next_best, then: block, otherwise: best },
        ],
    });
    let carried = vec![
        Carried { var: first, init, next: next_first },
        Carried { var: run, init, next: next_run },
        Carried { var: best, init: none, next: next_best },
    ];
    out.push(Stmt::For { index: block, count: blocks, carried, order: Order::InOrder, body });
    Best { reduction, first, run, best }
}

/// Emits the maximum or minimum of the terms of `part` to `out`, which stores the terms in `kept`; returns the index of
/// its loop, and the number.
fn reduced(
    cutter: &mut Cutter<'_>,
    search: &Search,
    part: &Part,
    kept: Option<BufferId>,
    out: &mut Vec<Stmt>,
) -> (Reg, Reg) {
    let index = cutter.int();
    let [start, so_far, next] = [(); 3].map(|()| cutter.real());
    let (mut body, term) = terms(cutter, search, part, index);
    let store = kept.map(|buffer| Instr::Store { buffer, at: Poly::var(index), value: term });
    let least = Instr::Op { dst: next, op: search.op, args: [so_far, term, so_far] };
    body.push(Stmt::Straight(store.into_iter().chain([least]).collect()));
    out.push(Stmt::Straight(vec![Instr::Const { dst: start, value: search.neutral() }]));
    let carried = vec![Carried { var: so_far, init: start, next }];
    out.push(Stmt::For { index, count: part.count.clone(), carried, order: Order::InOrder, body });
    (index, so_far)
}

/// Emits the search for the first step of `part` whose term is `number` to `out`; returns that step, or all of `part`
/// if there is none.
fn step_with(cutter: &mut Cutter<'_>, search: &Search, part: Part, number: Reg, out: &mut Vec<Stmt>) -> Part {
    let index = cutter.int();
    let [none, least, at, chosen, next] = [(); 5].map(|()| cutter.real());
    let (mut body, term) = terms(cutter, search, &part, index);
    let (is_it, is_found) = (cutter.int(), cutter.int());
    body.push(Stmt::Straight(vec![
        Instr::Op { dst: is_it, op: Op::Eq, args: [term, number, term] },
        Instr::ToReal { dst: at, src: index },
    ]));
    body.push(Stmt::If {
        condition: is_it,
        then: Vec::new(),
        otherwise: Vec::new(),
        choices: vec![Choice { var: chosen, then: at, otherwise: none }],
    });
    body.push(Stmt::Straight(vec![Instr::Op { dst: next, op: Op::Min, args: [least, chosen, least] }]));
    let mut code = vec![Instr::Const { dst: none, value: f64::INFINITY }];
    let zero = cutter.int_of(&mut code, Poly::zero());
    let one = cutter.int_of(&mut code, Poly::constant(1));
    let all = cutter.int_of(&mut code, part.count.clone());
    out.push(Stmt::Straight(code));
    let carried = vec![Carried { var: least, init: none, next }];
    out.push(Stmt::For { index, count: part.count, carried, order: Order::InOrder, body });
    out.push(Stmt::Straight(vec![Instr::Op { dst: is_found, op: Op::Lt, args: [least, none, least] }]));
    let [found, skipped, count] = [(); 3].map(|()| cutter.int());
    out.push(Stmt::If {
        condition: is_found,
        then: vec![Stmt::Straight(vec![Instr::ToInt { dst: found, src: least }])],
        otherwise: Vec::new(),
        choices: vec![
            Choice { var: skipped, then: found, otherwise: zero },
            Choice { var: count, then: one, otherwise: all },
        ],
    });
    Part { from: part.from.add(&Poly::var(skipped)), count: Poly::var(count) }
}

/// Returns the code that computes the term of step `index` of `part`, without its comparison, and the term.
fn terms(cutter: &mut Cutter<'_>, search: &Search, part: &Part, index: Reg) -> (Vec<Stmt>, Reg) {
    let Search { the, condition, term, .. } = search;
    let mut body = the.body.clone();
    body.pop();
    each_statement(&mut body, |mut stmt, done| {
        if let Stmt::Straight(code) = &mut stmt {
            code.retain(|instr| instr.dst() != Some(*condition));
        }
        done.push(stmt);
    });
    let (body, map) = copied(cutter, the, &body, part.from.add(&Poly::var(index)), &[]);
    (body, map.get(term).copied().unwrap_or(*term))
}

/// Consecutive steps of a loop.
struct Part {
    from: Poly<Reg>,
    count: Poly<Reg>,
}

/// Returns a copy of the search for some of its steps, whose index joins `copies`. It carries `vars` from `inits` on.
fn sequence(
    cutter: &mut Cutter<'_>,
    search: &Search,
    Part { from, count }: Part,
    vars: [Reg; 2],
    inits: [Reg; 2],
    copies: &mut Vec<Reg>,
) -> Stmt {
    let Search { the, number, winner, .. } = search;
    let index = cutter.int();
    copies.push(index);
    let known = [(number.var, vars[0]), (winner.var, vars[1])];
    let (body, map) = copied(cutter, the, &the.body, from.add(&Poly::var(index)), &known);
    let carried = [number, winner].into_iter().zip(vars).zip(inits);
    let carried = carried
        .map(|((c, var), init)| Carried { var, init, next: map.get(&c.next).copied().unwrap_or(c.next) })
        .collect();
    Stmt::For { index, count, carried, order: Order::InOrder, body }
}

/// Returns a copy of `body`, part of the loop `the`, for step `at`, and the new registers.
fn copied(
    cutter: &mut Cutter<'_>,
    the: &Loop,
    body: &[Stmt],
    at: Poly<Reg>,
    known: &[(Reg, Reg)],
) -> (Vec<Stmt>, BTreeMap<Reg, Reg>) {
    let mut code = Vec::new();
    let mut map: BTreeMap<Reg, Reg> = known.iter().copied().collect();
    map.insert(the.index, cutter.int_of(&mut code, at.clone()));
    let no_buffers = BTreeMap::new();
    let regs = &mut cutter.kernel.regs;
    let mut copier = Copier { regs, map, index: the.index, by: at, fresh: true, lane: None, buffers: &no_buffers };
    let body = copier.block(body);
    let map = copier.map;
    let mut whole = vec![Stmt::Straight(code)];
    whole.extend(body);
    (whole, map)
}
