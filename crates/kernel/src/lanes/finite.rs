//! Products of matrices whose factors are finite: those that are 0 where one factor is 0, whatever the other one is,
//! become plain ones.
//!
//! ```text
//! for i                                            t = 0
//!   for j                                          for i
//!     for k, s = 0                                   for k
//!       if a[i, k] == 0 then 0 else                    t = t + 0 * b[i, k]
//!         a[i, k] * b[k, j]                        if t == 0    (no element of b is infinite or no number)
//!                                                    for i, for j, for k: a[i, k] * b[k, j]
//!                                                  else
//!                                                    the nest as it was
//! ```
//!
//! Second derivatives have such products, as the derivative of a factor may be infinite where its value does not
//! matter. To test each element once is little beside the products, which are then tiled like others.
//!
//! Zeros may change their signs: not under strict semantics. `O(n)`.

use super::products::{reaches, written};
use super::rewrite::{Cutter, Loop, defined_in};
use crate::events::{Event, walk};
use crate::kernel::{BufferId, Carried, Choice, Instr, Kernel, Order, Reg, Stmt};
use crate::prune::prune;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum trip count of the loops of a product.
const LEAST: i64 = 8;

/// An array of factors that are finite in most programs.
struct Factor {
    buffer: BufferId,
    at: Poly<Reg>,
    /// Loops over its elements, with their trip counts.
    loops: [(Reg, Poly<Reg>); 2],
    /// Trip counts of all loops of the product.
    counts: [Poly<Reg>; 3],
}

/// Removes from the products of `kernel` the tests for factors that are 0, where the other ones are finite.
pub(crate) fn test_factors(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    let is_zero = |event: Event<'_>| match event {
        Event::Instr(Instr::Const { dst, value: 0.0 }) => Some(*dst),
        _ => None,
    };
    let zeros: BTreeSet<Reg> = walk(&body).filter_map(is_zero).collect();
    // Nests that run unchanged are met again.
    let mut seen = BTreeSet::new();
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } if carried.is_empty() => {
            let the = Loop { index, count, carried, body };
            match plain(&the, &zeros).filter(|_| seen.insert(index)) {
                Some((near, factors)) => versioned(kernel, the, near, &factors, done),
                None => done.push(the.in_order()),
            }
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
    if !seen.is_empty() {
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
    }
}

/// Returns whether a nest of three loops has a selection in the innermost one.
fn may_be_masked(the: &Loop) -> bool {
    fn inside(stmt: &Stmt) -> &[Stmt] {
        if let Stmt::For { body, .. } = stmt { body } else { &[] }
    }
    let mut innermost = the.body.iter().flat_map(inside).flat_map(inside);
    innermost.any(|stmt| match stmt {
        Stmt::Straight(code) => code.iter().any(|instr| matches!(instr, Instr::Op { op: Op::Select, .. })),
        _ => false,
    })
}

/// Returns `the` loop with plain products, and the factors that have to be finite; `None` if it has none. `zeros` are
/// the constants that are 0.
fn plain(the: &Loop, zeros: &BTreeSet<Reg>) -> Option<(Loop, Vec<Factor>)> {
    if !may_be_masked(the) {
        return None;
    }
    let written = written(&the.body);
    let mut defined = defined_in(&the.body);
    defined.insert(the.index);
    let is_outside = |p: &Poly<Reg>| p.vars().iter().all(|r| !defined.contains(r));
    let mut body = the.body.clone();
    let mut factors: Vec<Factor> = Vec::new();
    for stmt in &mut body {
        let Stmt::For { index: j, count: m, body: inside, order: Order::InOrder, .. } = stmt else { continue };
        for stmt in inside.iter_mut().filter(|_| reaches(&the.count, LEAST) && reaches(m, LEAST)) {
            let Stmt::For { index: k, count: d, body: terms, order: Order::InOrder, carried } = stmt else { continue };
            let [Stmt::Straight(code)] = &mut terms[..] else { continue };
            if carried.is_empty() || !reaches(d, LEAST) || ![&*m, &*d].into_iter().all(is_outside) {
                continue;
            }
            let loops = [(the.index, &the.count), (*j, &*m), (*k, &*d)];
            let old = code.clone();
            let defs: BTreeMap<Reg, &Instr> = old.iter().filter_map(|instr| Some((instr.dst()?, instr))).collect();
            for instr in code.iter_mut() {
                let Some((product, value)) = masked(instr, &defs, zeros) else { continue };
                let Some(Instr::Load { buffer, at: place, .. }) = defs.get(&value) else { continue };
                let mut rest = place.clone();
                let mut along = Vec::new();
                for (index, count) in loops {
                    let Some((slope, left)) = rest.split_linear(index).filter(|(slope, _)| is_outside(slope)) else {
                        continue;
                    };
                    if !slope.is_zero() {
                        along.push((index, count.clone()));
                    }
                    rest = left;
                }
                let Ok(loops) = <[(Reg, Poly<Reg>); 2]>::try_from(along) else { continue };
                if written.contains(buffer) || !is_outside(&rest) {
                    continue;
                }
                if !factors.iter().any(|known| known.buffer == *buffer && known.at == *place) {
                    let counts = [&the.count, &*m, &*d].map(Clone::clone);
                    factors.push(Factor { buffer: *buffer, at: place.clone(), loops, counts });
                }
                *instr = product;
            }
        }
    }
    let Loop { index, count, carried, .. } = the;
    let near = Loop { index: *index, count: count.clone(), carried: carried.clone(), body };
    (!factors.is_empty()).then_some((near, factors))
}

/// If `instr` is 0 where a factor is 0, and a product elsewhere, returns the product in its place, and the other
/// factor.
fn masked(instr: &Instr, defs: &BTreeMap<Reg, &Instr>, zeros: &BTreeSet<Reg>) -> Option<(Instr, Reg)> {
    let Instr::Op { dst, op: Op::Select, args: [condition, zero, product] } = instr else { return None };
    let Some(Instr::Op { op: Op::Mul, args: [a, b, _], .. }) = defs.get(product) else { return None };
    let Some(Instr::Op { op: Op::Eq, args: [tested, against, _], .. }) = defs.get(condition) else { return None };
    let other = if tested == a { b } else { a };
    let is_masked = zeros.contains(zero) && zeros.contains(against) && (tested == a || tested == b) && a != b;
    is_masked.then(|| (Instr::Op { dst: *dst, op: Op::Mul, args: [*a, *b, *a] }, *other))
}

/// Emits the test of `factors` to `out`, and `near` and `the` nest for its outcomes. If a loop does not run, elements
/// may not be there: they are not tested.
fn versioned(kernel: &mut Kernel, the: Loop, near: Loop, factors: &[Factor], out: &mut Vec<Stmt>) {
    let mut cutter = Cutter::new(kernel);
    let [zero, unknown, sum] = [cutter.real(), cutter.real(), cutter.real()];
    let mut before = vec![Instr::Const { dst: zero, value: 0.0 }, Instr::Const { dst: unknown, value: f64::NAN }];
    let counts: BTreeSet<&Poly<Reg>> = factors.iter().flat_map(|factor| &factor.counts).collect();
    let asked: Vec<(Poly<Reg>, i64)> = counts.into_iter().map(|count| (count.clone(), LEAST)).collect();
    let runs = cutter.all_reach(&asked, &mut before);
    out.push(Stmt::Straight(before));
    let (mut test, mut so_far) = (Vec::new(), zero);
    for Factor { buffer, at, loops, .. } in factors {
        let [value, term, outer, inner, next] = [(); 5].map(|()| cutter.real());
        let indices = [cutter.int(), cutter.int()];
        let place = at.substitute(|r| {
            let new = loops.iter().zip(indices).find(|((old, _), _)| *old == r);
            Poly::var(new.map_or(r, |(_, new)| new))
        });
        let code = vec![
            Instr::Load { dst: value, buffer: *buffer, at: place },
            Instr::Op { dst: term, op: Op::Mul, args: [value, zero, value] },
            Instr::Op { dst: next, op: Op::Add, args: [inner, term, inner] },
        ];
        let looped = |index, count: &Poly<Reg>, carried, body| {
            let (count, carried) = (count.clone(), vec![carried]);
            Stmt::For { index, count, carried, order: Order::InOrder, body }
        };
        let along = Carried { var: inner, init: outer, next };
        let along = looped(indices[1], &loops[1].1, along, vec![Stmt::Straight(code)]);
        let over = Carried { var: outer, init: so_far, next: inner };
        test.push(looped(indices[0], &loops[0].1, over, vec![along]));
        so_far = outer;
    }
    let sum = match runs {
        Some(condition) => {
            let choices = vec![Choice { var: sum, then: so_far, otherwise: unknown }];
            out.push(Stmt::If { condition, then: test, otherwise: Vec::new(), choices });
            sum
        }
        None => {
            out.extend(test);
            so_far
        }
    };
    let condition = cutter.int();
    out.push(Stmt::Straight(vec![Instr::Op { dst: condition, op: Op::Eq, args: [sum, zero, sum] }]));
    out.push(cutter.either(condition, &[near.in_order()], vec![the.in_order()]));
}
