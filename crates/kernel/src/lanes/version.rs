//! Loop versioning: a nest over rows of unknown length is written twice, for short rows and for long ones.
//!
//! Lanes of a loop over rows read a row each; a loop along a row has lanes in the row, and puts eight partial sums
//! together for each row. The first is faster for short rows, the second for long ones. The [cost model](super::cost)
//! reads the assumed length from the branch.
//!
//! ```text
//! for i in 0..n                        if d < 32
//!   for k in 0..d, s = 0                 for i in 0..n          (in lanes)
//!     s = s + x[d i + k] * b[k]            for k in 0..d, s = 0
//!   y[i] = f(s)                              s = s + x[d i + k] * b[k]
//!                                          y[i] = f(s)
//!                                      else
//!                                        for i in 0..n
//!                                          for k in 0..d, s = 0 (in lanes)
//!                                            ..
//! ```

use super::rewrite::{Copier, Copies};
use super::unroll::{self, is_apart};
use super::{Spans, independence, plans, rows};
use crate::choices::choosable;
use crate::events::{Event, events, walk};
use crate::kernel::{Carried, Choice, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::mentions::Mentions;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::{Op, Semantics};
use std::collections::BTreeMap;

/// Length from which on rows are long: lanes in a row then save more than putting partial sums together costs.
const LONG: i64 = 64;

/// Maximum number of events of a nest that is written twice.
const MAX_NEST: usize = 80;

/// Versions nests over rows in `kernel` that run other loops in lanes if rows are short than if they are long. Linear
/// in its size for each level of loops.
pub(crate) fn version(kernel: &mut Kernel, semantics: Semantics) {
    let mut rows = nests_over_rows(kernel, semantics);
    if rows.is_empty() {
        return;
    }
    let mut near = kernel.clone();
    let loops = write(&mut near, &rows);
    let plans = plans(&near, semantics);
    let distributed = rows::worth(&near, &plans, semantics);
    for (index, [short, long]) in loops {
        let runs = |loops: &[Reg]| -> Vec<bool> { loops.iter().map(|r| plans.chosen.contains_key(r)).collect() };
        let is_distributed = long.first().is_some_and(|index| distributed.contains(index));
        if runs(&short) == runs(&long) && !is_distributed {
            rows.remove(&index);
        }
    }
    if !rows.is_empty() {
        write(kernel, &rows);
    }
}

/// Versions the given nests; returns the loops of both versions of each, in order.
fn write(kernel: &mut Kernel, rows: &BTreeMap<Reg, Reg>) -> Vec<(Reg, [Vec<Reg>; 2])> {
    let failure = kernel.failures.len();
    kernel.failures.push(("the length of a row has no comparison".to_owned(), None));
    let mut loops = Vec::new();
    let mut mentions = Mentions::of(&kernel.body);
    let mut body = std::mem::take(&mut kernel.body);
    each_statement(&mut body, |stmt, done| match &stmt {
        Stmt::For { index, carried, .. } if rows.contains_key(index) => {
            let [limit, condition] = [(); 2].map(|()| kernel.regs.push(Class::Int));
            done.push(Stmt::Straight(vec![
                Instr::Int { dst: limit, value: Poly::constant(LONG) },
                Instr::IntOp { dst: condition, op: Op::Lt, args: [rows[index], limit, limit], failure },
            ]));
            loops.push((*index, versions(kernel, &mut mentions, condition, (&stmt, carried), done)));
        }
        _ => done.push(stmt),
    });
    kernel.body = body;
    loops
}

/// Returns the outermost loops over rows, by index, with the extent that is the length of all their rows.
fn nests_over_rows(kernel: &Kernel, semantics: Semantics) -> BTreeMap<Reg, Reg> {
    let events = events(&kernel.body);
    let has_rows = |at: usize| unroll::instrs(&kernel.regs, &events[at..]).is_some();
    if !(0..events.len()).any(has_rows) {
        return BTreeMap::new();
    }
    let spans = Spans::of(&events);
    let choosable = choosable(kernel, &events);
    let legal = independence::legal(kernel, &events, &spans, semantics, Order::Lanes, &choosable);
    let mut found = BTreeMap::new();
    let mut past = 0;
    for begin in legal.keys().copied() {
        let (Event::For { index, .. }, Some(end)) = (&events[begin], spans.end(begin)) else { continue };
        if begin < past || end - begin > MAX_NEST {
            continue;
        }
        if let Some(length) = row_length(kernel, &events[begin + 1..end], *index) {
            found.insert(*index, length);
            past = end;
        }
    }
    found
}

/// Returns the extent that all loops along rows in `body`, the body of the loop over `index`, run to, if there are
/// any.
fn row_length(kernel: &Kernel, body: &[Event<'_>], index: Reg) -> Option<Reg> {
    let mut length = None;
    for (at, event) in body.iter().enumerate() {
        let Event::For { index: along, count, .. } = event else { continue };
        let Some(instrs) = unroll::instrs(&kernel.regs, &body[at..]) else { continue };
        if !instrs.iter().any(|instr| is_apart(kernel, instr, *along, index)) {
            continue;
        }
        let extent = count.as_var().filter(|r| kernel.is_extent(*r))?;
        if length.is_some_and(|length| length != extent) {
            return None;
        }
        length = Some(extent);
    }
    length
}

/// Emits both versions of a loop to `out`, the one for short rows where `condition` holds, and returns their loops.
fn versions(
    kernel: &mut Kernel,
    mentions: &mut Mentions,
    condition: Reg,
    (the, carried): (&Stmt, &[Carried]),
    out: &mut Vec<Stmt>,
) -> [Vec<Reg>; 2] {
    let the = std::slice::from_ref(the);
    let names = [BTreeMap::new(), mentions.own(&mut kernel.buffers, the)];
    let [(then, short, of_short), (otherwise, long, of_long)] = names.each_ref().map(|buffers| {
        let (index, by) = (condition, Poly::var(condition));
        let regs = &mut kernel.regs;
        let mut copier = Copier { regs, map: BTreeMap::new(), index, by, fresh: true, lane: None, buffers };
        let body = copier.block(the);
        let last: Vec<Reg> = carried.iter().map(|c| copier.of(c.var)).collect();
        let loops = walk(&body).filter_map(|event| match event {
            Event::For { index, .. } => Some(index),
            _ => None,
        });
        let loops = loops.collect();
        (body, last, loops)
    });
    let choices = carried.iter().zip(short.into_iter().zip(long));
    let choices = choices.map(|(c, (then, otherwise))| Choice { var: c.var, then, otherwise }).collect();
    out.push(Stmt::If { condition, then, otherwise, choices });
    [of_short, of_long]
}
