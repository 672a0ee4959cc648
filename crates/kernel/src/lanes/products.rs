//! Separation of products of matrices: each gets a nest of its own.
//!
//! ```text
//! for i                                              for i
//!   for j                                              for j
//!     for k, s = 0                                       for k, s = 0
//!       s = s + a[i, k] * b[k, j] + c[i, k] * d[k, j]      s = s + a[i, k] * b[k, j]
//!     y[i, j] = f(s)                                     kept[j] = s
//!                                                      for j
//!                                                        for k, s = kept[j]
//!                                                          s = s + c[i, k] * d[k, j]
//!                                                        y[i, j] = f(s)
//! ```
//!
//! A nest with one product is tiled and packed like a product of matrices; with two, elements of four arrays compete
//! for registers, and twice as many panels for the caches. Sums of one loop are separated too, as those of a value and
//! of its derivative. Numbers that a loop over `j` needs from the one before are kept for a row; straight-line code is
//! copied.
//!
//! Few columns, which is tested at run time, stay in one nest.
//!
//! Nothing else moves: in front of the last product are only loops and code without checks, which read memory that the
//! loop does not write. Sums are added in another order: not under strict semantics. `O(n)`.

use super::rewrite::{Copier, Copies, Cutter, Loop, is_wanted, used, want};
use super::sweep::is_pure;
use crate::events::walk;
use crate::kernel::{BufferId, Carried, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::prune::prune;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum trip count of the loops of a product.
const LEAST: i64 = 4;

/// Minimum number of columns: with up to two vectors of them, one nest has registers enough for two products.
const WIDE: i64 = 24;

/// Maximum number of products of a loop.
const MOST: usize = 8;

/// Separates the products of `kernel`.
pub(crate) fn separate_products(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    // Loops that run unchanged if there are few columns: they are met again.
    let mut seen = BTreeSet::new();
    let mut changes = false;
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } if reaches(&count, LEAST) => {
            let the = Loop { index, count, carried, body };
            if seen.contains(&index) {
                done.push(the.in_order());
                return;
            }
            let (separated, columns) = rows(kernel, &the);
            if columns.is_empty() {
                done.push(the.in_order());
                return;
            }
            changes = true;
            let near = Loop { index, count: the.count.clone(), carried: the.carried.clone(), body: separated };
            let mut before = Vec::new();
            let asked: Vec<(Poly<Reg>, i64)> = columns.into_iter().map(|count| (count, WIDE)).collect();
            let mut cutter = Cutter::new(kernel);
            match cutter.all_reach(&asked, &mut before).filter(|_| the.carried.is_empty()) {
                Some(condition) => {
                    seen.insert(index);
                    done.push(Stmt::Straight(before));
                    done.push(cutter.either(condition, &[near.in_order()], vec![the.in_order()]));
                }
                None => done.push(near.in_order()),
            }
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
    if changes {
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
    }
}

/// Returns the body of `the` loop with the products of the loops in it separated, and the trip counts of these.
fn rows(kernel: &mut Kernel, the: &Loop) -> (Vec<Stmt>, Vec<Poly<Reg>>) {
    let mut known = Sources::of(the.index, &the.body);
    let (mut body, mut found) = (Vec::with_capacity(the.body.len()), Vec::new());
    for stmt in &the.body {
        match stmt {
            Stmt::For { index, count, carried, order: Order::InOrder, body: inside } if reaches(count, WIDE) => {
                let (carried, inside) = (carried.clone(), inside.clone());
                let the = Loop { index: *index, count: count.clone(), carried, body: inside };
                if columns(kernel, &mut known, the, &mut body) {
                    found.push(count.clone());
                }
            }
            stmt => body.push(stmt.clone()),
        }
        known.see_row(stmt);
    }
    (body, found)
}

/// Returns whether a trip count may be `least`.
pub(super) fn reaches(count: &Poly<Reg>, least: i64) -> bool {
    count.as_constant().is_none_or(|n| n >= least)
}

/// A loop of a nest that a value may depend on.
type Source = u8;

const ROW: Source = 1;
const COLUMN: Source = 2;
const TERM: Source = 4;

/// The loops that values depend on, in the body of one over rows.
#[derive(Clone, Default)]
pub(super) struct Sources {
    of: BTreeMap<Reg, Source>,
    /// Buffers that the loop over rows writes, and those that the current one over columns does.
    written: [BTreeSet<BufferId>; 2],
}

impl Sources {
    /// Returns what is known at the start of a loop over rows.
    pub fn of(row: Reg, body: &[Stmt]) -> Self {
        Self { of: BTreeMap::from([(row, ROW)]), written: [written(body), BTreeSet::new()] }
    }

    /// Starts a loop over columns.
    pub fn columns(&mut self, column: Reg, body: &[Stmt]) {
        self.of.insert(column, COLUMN);
        self.written[1] = written(body);
    }

    /// Adds what a statement of a row computes.
    pub fn see_row(&mut self, stmt: &Stmt) {
        self.see(stmt, ROW);
    }

    /// Adds what a statement computes, in a loop nested in those of `inside`.
    fn see(&mut self, stmt: &Stmt, inside: Source) {
        match stmt {
            Stmt::Straight(code) => code.iter().for_each(|instr| self.instr(instr)),
            stmt => walk(std::slice::from_ref(stmt)).for_each(|event| {
                event.for_each_def(|r| _ = self.of.insert(r, inside));
            }),
        }
    }

    pub fn instr(&mut self, instr: &Instr) {
        let Some(dst) = instr.dst() else { return };
        let mut sources = 0;
        if let Instr::Load { buffer, .. } = instr {
            for (all, source) in self.written.iter().zip([ROW, COLUMN]) {
                sources |= if all.contains(buffer) { source } else { 0 };
            }
        }
        instr.for_each_use(|r| sources |= self.get(r));
        self.of.insert(dst, sources);
    }

    fn get(&self, r: Reg) -> Source {
        self.of.get(&r).copied().unwrap_or(0)
    }
}

/// Returns the buffers that a body writes.
pub(super) fn written(body: &[Stmt]) -> BTreeSet<BufferId> {
    let mut found = BTreeSet::new();
    walk(body).for_each(|event| event.for_each_access(|buffer, writes| found.extend(writes.then_some(buffer))));
    found
}

/// Returns the buffers that a body accesses.
pub(super) fn accessed(body: &[Stmt]) -> BTreeSet<BufferId> {
    let mut found = BTreeSet::new();
    walk(body).for_each(|event| event.for_each_access(|buffer, _| _ = found.insert(buffer)));
    found
}

/// A term that a loop adds to one of its sums.
pub(super) struct Term {
    /// Number of the sum.
    sum: usize,
    value: Reg,
    is_subtracted: bool,
}

/// Returns the terms of the sums that a loop in one over columns computes, if all are products of an element of a row
/// with one of a column.
pub(super) fn terms(stmt: &Stmt, known: &mut Sources) -> Option<Vec<Term>> {
    let Stmt::For { index, count, carried, order: Order::InOrder, body } = stmt else { return None };
    let [Stmt::Straight(code)] = &body[..] else { return None };
    if !reaches(count, LEAST) || count.vars().iter().any(|r| known.get(*r) != 0) || !code.iter().all(is_pure) {
        return None;
    }
    known.of.insert(*index, TERM);
    carried.iter().for_each(|c| _ = known.of.insert(c.var, ROW | COLUMN | TERM));
    code.iter().for_each(|instr| known.instr(instr));
    let defs: BTreeMap<Reg, &Instr> = code.iter().filter_map(|instr| Some((instr.dst()?, instr))).collect();
    let mut found = Vec::new();
    for (sum, c) in carried.iter().enumerate() {
        let mut open = vec![(c.next, false)];
        let mut is_sum = false;
        while let Some((value, is_subtracted)) = open.pop() {
            match defs.get(&value) {
                None if value == c.var && !is_subtracted && !is_sum => is_sum = true,
                Some(Instr::Op { op: Op::Add, args: [a, b, _], .. }) => {
                    open.extend([(*b, is_subtracted), (*a, is_subtracted)]);
                }
                Some(Instr::Op { op: Op::Sub, args: [a, b, _], .. }) => {
                    open.extend([(*b, !is_subtracted), (*a, is_subtracted)]);
                }
                Some(Instr::Op { op: Op::Neg, args: [a, ..], .. }) => open.push((*a, !is_subtracted)),
                Some(instr) if is_product(instr, &defs, known) => found.push(Term { sum, value, is_subtracted }),
                _ => return None,
            }
            if found.len() > MOST {
                return None;
            }
        }
        if !is_sum {
            return None;
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Returns whether `instr` multiplies an element of a row with one of a column, perhaps with 0 where a factor is 0.
fn is_product(instr: &Instr, defs: &BTreeMap<Reg, &Instr>, known: &Sources) -> bool {
    match instr {
        Instr::Op { op: Op::Mul, args: [a, b, _], .. } => {
            let [a, b] = [a, b].map(|r| known.get(*r));
            a | b == ROW | COLUMN | TERM && [a, b].contains(&(ROW | TERM)) && [a, b].contains(&(COLUMN | TERM))
        }
        Instr::Op { op: Op::Select, args: [_, _, product], .. } => match defs.get(product) {
            Some(instr @ Instr::Op { op: Op::Mul, .. }) => is_product(instr, defs, known),
            _ => false,
        },
        _ => false,
    }
}

/// Emits to `out` a loop for each of the terms of the loop `stmt`.
fn split(kernel: &mut Kernel, stmt: &Stmt, terms: &[Term], out: &mut Vec<Stmt>) {
    let Stmt::For { index, count, carried, body, .. } = stmt else { return };
    let [Stmt::Straight(code)] = &body[..] else { return };
    let mut so_far: Vec<Reg> = carried.iter().map(|c| c.init).collect();
    for (at, term) in terms.iter().enumerate() {
        let is_last = !terms[at + 1..].iter().any(|other| other.sum == term.sum);
        let var = if is_last { carried[term.sum].var } else { kernel.regs.push(Class::Real) };
        let step = kernel.regs.push(Class::Int);
        let mut wanted = BTreeSet::from([term.value]);
        want(code, &mut wanted);
        let (regs, buffers) = (&mut kernel.regs, BTreeMap::new());
        let (map, by) = (BTreeMap::from([(*index, step)]), Poly::var(step));
        let mut copier = Copier { regs, map, index: *index, by, fresh: true, lane: None, buffers: &buffers };
        let code = code.iter().filter(|instr| is_wanted(instr, &wanted));
        let mut code: Vec<Instr> = code.map(|instr| copier.instr(instr)).collect();
        let value = copier.of(term.value);
        let next = kernel.regs.push(Class::Real);
        let op = if term.is_subtracted { Op::Sub } else { Op::Add };
        code.push(Instr::Op { dst: next, op, args: [var, value, var] });
        let carried = vec![Carried { var, init: so_far[term.sum], next }];
        so_far[term.sum] = var;
        let body = vec![Stmt::Straight(code)];
        out.push(Stmt::For { index: step, count: count.clone(), carried, order: Order::InOrder, body });
    }
}

/// Emits `the` loop to `out`, which computes elements of rows, with its products separated; returns whether there are
/// several. `known` holds what is computed outside.
fn columns(kernel: &mut Kernel, known: &mut Sources, the: Loop, out: &mut Vec<Stmt>) -> bool {
    known.columns(the.index, &the.body);
    the.carried.iter().for_each(|c| _ = known.of.insert(c.var, ROW | COLUMN));
    let mut found: Vec<(usize, Vec<Term>)> = Vec::new();
    for (at, stmt) in the.body.iter().enumerate() {
        found.extend(terms(stmt, known).map(|terms| (at, terms)));
        known.see(stmt, ROW | COLUMN);
    }
    let n_products: usize = found.iter().map(|(_, terms)| terms.len()).sum();
    let positions: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
    if !(2..=MOST).contains(&n_products) || !may_move(kernel, &the, &positions) {
        out.push(the.in_order());
        return false;
    }
    let Loop { index, count, carried, body } = the;
    let mut parts: Vec<Stmt> = Vec::with_capacity(body.len() + n_products);
    let mut products = Vec::new();
    let mut found = found.into_iter().peekable();
    for (at, stmt) in body.into_iter().enumerate() {
        match found.next_if(|(product, _)| *product == at) {
            Some((_, terms)) => {
                products.extend(parts.len()..parts.len() + terms.len());
                split(kernel, &stmt, &terms, &mut parts);
            }
            None => parts.push(stmt),
        }
    }
    products.pop();
    let mut kept: BTreeMap<Reg, BufferId> = BTreeMap::new();
    for at in products {
        let part = leaving(kernel, (index, &count), (&parts, at), &mut kept);
        out.push(part);
        parts[at] = Stmt::Straight(Vec::new());
    }
    let load = |(dst, buffer): (Reg, BufferId)| Instr::Load { dst, buffer, at: Poly::var(index) };
    parts.insert(0, Stmt::Straight(kept.into_iter().map(load).collect()));
    out.push(Stmt::For { index, count, carried, order: Order::InOrder, body: parts });
    true
}

/// Returns whether the products at `positions` of `the` loop can be computed in front of it, with the code before them,
/// and memory for a number of each iteration can be had.
fn may_move(kernel: &Kernel, the: &Loop, positions: &[usize]) -> bool {
    let Some(last) = positions.last() else { return false };
    let leaving = &the.body[..=*last];
    let are_alone = leaving.iter().enumerate().all(|(at, stmt)| match stmt {
        Stmt::Straight(code) => code.iter().all(is_pure),
        _ => positions.contains(&at),
    });
    let is_carried = |r: &Reg| the.carried.iter().any(|c| c.var == *r);
    are_alone
        && accessed(leaving).is_disjoint(&written(&the.body))
        && !leaving.iter().any(|stmt| used(stmt).iter().any(is_carried))
        && the.count.terms().all(|(monomial, n)| n > 0 && monomial.iter().all(|r| kernel.is_extent(*r)))
}

/// Returns the loop over columns, with this index and count, of the product at position `at` of `parts` alone, which
/// keeps the sum for those that follow.
fn leaving(
    kernel: &mut Kernel,
    (index, count): (Reg, &Poly<Reg>),
    (parts, at): (&[Stmt], usize),
    kept: &mut BTreeMap<Reg, BufferId>,
) -> Stmt {
    let product = &parts[at];
    let mut wanted = used(product);
    for stmt in parts[..at].iter().rev() {
        if let Stmt::Straight(code) = stmt {
            want(code, &mut wanted);
        }
    }
    let load = |(dst, buffer): (&Reg, &BufferId)| Instr::Load { dst: *dst, buffer: *buffer, at: Poly::var(index) };
    let mut code: Vec<Instr> = kept.iter().filter(|(r, _)| wanted.contains(r)).map(load).collect();
    for stmt in &parts[..at] {
        if let Stmt::Straight(all) = stmt {
            code.extend(all.iter().filter(|instr| is_wanted(instr, &wanted)).cloned());
        }
    }
    let mut body = vec![Stmt::Straight(code), product.clone()];
    if let Stmt::For { carried, .. } = product {
        let mut keep = |c: &Carried| {
            let buffer = kernel.memory(count.clone());
            kept.insert(c.var, buffer);
            Instr::Store { buffer, at: Poly::var(index), value: c.var }
        };
        body.push(Stmt::Straight(carried.iter().map(&mut keep).collect()));
    }
    let step = kernel.regs.push(Class::Int);
    let (map, by) = (BTreeMap::from([(index, step)]), Poly::var(step));
    let (regs, buffers) = (&mut kernel.regs, BTreeMap::new());
    let mut copier = Copier { regs, map, index, by, fresh: true, lane: None, buffers: &buffers };
    let body = copier.block(&body);
    Stmt::For { index: step, count: count.clone(), carried: Vec::new(), order: Order::InOrder, body }
}
