//! Loop delinearisation: a loop over rows and columns by one index becomes a nest.
//!
//! ```text
//! for k in 0..n m                        for i in 0..n
//!   i = k div m                            for j in 0..m
//!   j = k mod m                              z[m i + j] = x[i] * y[j]
//!   z[k] = x[i] * y[j]
//! ```
//!
//! Applies to a loop whose trip count is a multiple of the divisor, which is a number or an extent. A count that is
//! required to be equal to a product of extents is that product. A nest whose two indices are one, `m i + j`, is a loop
//! ([`super::join`]). Iterations keep their order. The loops of the nest have no division, so that the inner one can
//! run in lanes.

use super::fold::fold;
use super::join::joined;
use crate::events::{Event, walk};
use crate::kernel::{Carried, Instr, Kernel, Order, Reg, Stmt};
use crate::lanes::rewrite::{Copier, Copies};
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of columns, if it is known: of fewer, the inner loop has no lanes, and a body that tells even from
/// odd steps would be written for each. Any number is enough where the steps only know their row: the outer loop has
/// lanes.
const COLUMNS: i64 = 8;

/// Minimum number of divisions in a loop that copies for which any number of columns is enough: they take longer.
const DIVISIONS: usize = 4;

/// Delinearises the loops of `kernel` where possible. `O(n d)` for loops nested `d` deep.
pub(crate) fn delinearise(kernel: &mut Kernel) {
    let numbers: BTreeMap<Reg, i64> = walk(&kernel.body).filter_map(|event| number(&event)).collect();
    let mut body = std::mem::take(&mut kernel.body);
    let mut is_changed = false;
    each_statement(&mut body, |mut stmt, done| {
        if let Some(nest) = by_one_index(kernel, &stmt).and_then(|joined| nested(kernel, &numbers, &joined)) {
            stmt = nest;
            is_changed = true;
        }
        while let Some(nest) = nested(kernel, &numbers, &stmt) {
            stmt = nest;
            is_changed = true;
        }
        done.push(stmt);
    });
    kernel.body = body;
    if is_changed {
        fold(kernel);
    }
}

fn number(event: &Event<'_>) -> Option<(Reg, i64)> {
    match event {
        Event::Instr(Instr::Int { dst, value }) => value.as_constant().map(|n| (*dst, n)),
        _ => None,
    }
}

/// Returns the loop by one index that the nest `stmt` is, if it has divisions.
fn by_one_index(kernel: &mut Kernel, stmt: &Stmt) -> Option<Stmt> {
    let Stmt::For { body, .. } = stmt else { return None };
    if !walk(body).any(|event| divides(&event)) {
        return None;
    }
    let mut found = None;
    while let Some((constants, joined)) = joined(kernel, found.as_ref().unwrap_or(stmt))
        && constants.is_empty()
    {
        found = Some(joined);
    }
    found
}

/// Returns the nest that the loop `stmt` is.
fn nested(kernel: &mut Kernel, numbers: &BTreeMap<Reg, i64>, stmt: &Stmt) -> Option<Stmt> {
    let Stmt::For { index, count, carried, order: Order::InOrder, body } = stmt else { return None };
    // The index, under all its names.
    let same: BTreeSet<Reg> = walk(body)
        .filter_map(|event| match event {
            Event::Instr(Instr::Int { dst, value }) => value.as_var().filter(|r| r == index).map(|_| *dst),
            _ => None,
        })
        .chain([*index])
        .collect();
    let is_any = copies_by_divisions(body) || knows_rows_only(body, &same);
    let least = if is_any { 2 } else { COLUMNS };
    let divisor = |by: Reg| match numbers.get(&by) {
        Some(n) if *n >= least => Some(Poly::constant(*n)),
        None if kernel.is_extent(by) => Some(Poly::var(by)),
        _ => None,
    };
    let divisions: Vec<(Reg, Op, Poly<Reg>)> = walk(body)
        .filter_map(|event| {
            let (dst, op, by) = division(&event, &same)?;
            Some((dst, op, divisor(by)?))
        })
        .collect();
    let (columns, rows) = counts(kernel, count).find_map(|count| {
        divisions.iter().find_map(|(_, _, by)| {
            let (rows, rest) = count.divide(by)?;
            let is_nest = rest == Poly::zero() && ![&rows, by].iter().any(|n| n.as_constant() == Some(1));
            is_nest.then(|| (by.clone(), rows))
        })
    })?;
    let [row, column, at] = [(); 3].map(|()| kernel.regs.copy(*index));
    let parts = divisions.iter().filter(|(_, _, by)| *by == columns);
    let parts: BTreeMap<Reg, Reg> =
        parts.map(|(dst, op, _)| (*dst, if *op == Op::Quot { row } else { column })).collect();
    let vars: Vec<Reg> = carried.iter().map(|c| kernel.regs.copy(c.var)).collect();
    let renamed = carried.iter().zip(&vars).map(|(c, var)| (c.var, *var));
    let map = parts.clone().into_iter().chain(renamed).chain([(*index, at)]).collect();
    let by = columns.mul(&Poly::var(row)).add(&Poly::var(column));
    let buffers = BTreeMap::new();
    let regs = &mut kernel.regs;
    let mut copier = Copier { regs, map, buffers: &buffers, index: *index, by: by.clone(), lane: None, fresh: false };
    let mut steps = vec![Stmt::Straight(vec![Instr::Int { dst: at, value: by }])];
    steps.extend(copier.block(body));
    each_statement(&mut steps, |mut stmt, done| {
        if let Stmt::Straight(code) = &mut stmt {
            code.retain(|instr| !instr.dst().is_some_and(|dst| parts.contains_key(&dst)));
        }
        done.push(stmt);
    });
    let inner = carried.iter().zip(&vars).map(|(c, var)| Carried { var: *var, init: c.var, next: copier.of(c.next) });
    let inner =
        Stmt::For { index: column, count: columns, carried: inner.collect(), order: Order::InOrder, body: steps };
    let outer = carried.iter().zip(&vars).map(|(c, var)| Carried { next: *var, ..*c }).collect();
    Some(Stmt::For { index: row, count: rows, carried: outer, order: Order::InOrder, body: vec![inner] })
}

/// Returns the products of extents that the number `count` is required to be equal to, and `count`.
fn counts<'a>(kernel: &'a Kernel, count: &'a Poly<Reg>) -> impl Iterator<Item = Poly<Reg>> + 'a {
    let required = kernel.requires.iter().filter(|condition| condition.exactly_zero && count.as_constant().is_some());
    required
        .flat_map(|condition| [count.sub(&condition.size), count.add(&condition.size)])
        .filter(|product| product.as_constant().is_none() && product.terms().count() == 1)
        .chain([count.clone()])
}

fn divides(event: &Event<'_>) -> bool {
    matches!(event, Event::Instr(Instr::IntOp { op: Op::Quot | Op::Mod, .. }))
}

/// Returns whether the body of a loop only copies, at indices that take many divisions.
fn copies_by_divisions(body: &[Stmt]) -> bool {
    let copies = |event: Event<'_>| {
        use Instr::{Int, IntOp, Load, Store};
        matches!(
            event,
            Event::For { .. }
                | Event::EndFor { .. }
                | Event::Instr(Int { .. } | IntOp { .. } | Load { .. } | Store { .. })
        )
    };
    walk(body).all(copies) && walk(body).filter(divides).count() >= DIVISIONS
}

/// Returns whether the steps of a loop only use its index, one of `same`, for quotients.
fn knows_rows_only(body: &[Stmt], same: &BTreeSet<Reg>) -> bool {
    walk(body).all(|event| {
        let is_quotient = match event {
            Event::Instr(Instr::IntOp { op: Op::Quot, args: [a, b, _], .. }) => same.contains(a) && !same.contains(b),
            Event::Instr(Instr::Int { dst, .. }) => same.contains(dst),
            _ => false,
        };
        let mut is_used = false;
        event.for_each_use(|r| is_used |= same.contains(&r));
        is_quotient || !is_used
    })
}

/// Returns the result, the operator and the divisor of a quotient or a remainder of one of `numbers`.
fn division(event: &Event<'_>, numbers: &BTreeSet<Reg>) -> Option<(Reg, Op, Reg)> {
    match event {
        Event::Instr(Instr::IntOp { dst, op: op @ (Op::Quot | Op::Mod), args, .. }) if numbers.contains(&args[0]) => {
            Some((*dst, *op, args[1]))
        }
        _ => None,
    }
}
