//! Transposed copies of operands: products of matrices whose loop in lanes would go along columns.
//!
//! ```text
//! for i in 0..n                              for j in 0..m                (in lanes)
//!   for j in 0..m                              for k in 0..d
//!     for k in 0..d, s = 0                       t[m' k + j] = b[d j + k]
//!       s = s + a[d i + k] * b[d j + k]      for i in 0..n
//!     c[m i + j] = s                           for j in 0..m              (in lanes)
//!                                                for k in 0..d, s = 0
//!                                                  s = s + a[d i + k] * t[m' k + j]
//!                                                c[m i + j] = s
//! ```
//!
//! The product is then one of rows, whose lane loop loads and stores contiguous elements. Likewise an operand
//! `a[n k + i]`, of which an iteration of `i` reads a column: its elements lie in as many pages, so that large ones are
//! copied to `t[d i + k]`. Rows of copies lie m' = m + 8 elements apart.
//!
//! A copy pays if it is read often enough, which is tested at run time; otherwise the nest runs unchanged. In a loop
//! over blocks of rows or over chunks, the copy is made before that loop.
//!
//! Invariants: the nest reads each copied element, with no check before that could fail, and writes none. It computes
//! the same values in the same order, so every number keeps its bits.

use super::outside::move_copies;
use super::products::written;
use super::rewrite::{Cutter, Loop, defined_in};
use crate::kernel::{BufferId, Carried, Class, Instr, Kernel, LANES, Order, PARTS, Reg, Stmt};
use crate::rebuild::{each_access, each_statement};
use chainrule_base::Poly;
use chainrule_ops::Semantics;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Minimum number of times that a copied element is read by lanes.
const FEWEST: i64 = 32;

/// The same for elements of columns that are read one by one, and minimum number of elements of their array: more
/// pages than address translation has at hand.
const FEWEST_ONE_BY_ONE: i64 = 256;
const LARGE: i64 = 1 << 19;

/// Elements between rows of a copy. Rows of a power of two would lie in a few sets of the first-level cache.
const PADDING: i64 = 8;

/// Maximum number of operands that are copied.
const MAX_OPERANDS: usize = 2;

/// A buffer and an address.
type Element<'a> = (BufferId, &'a Poly<Reg>);

/// Index and trip count of a loop.
type Counted<'a> = (Reg, &'a Poly<Reg>);

/// An operand whose elements lie in rows along the wrong loop.
pub(super) struct Operand {
    buffer: BufferId,
    at: Poly<Reg>,
    /// Loop over rows, and its trip count.
    rows: (Reg, Poly<Reg>),
    /// Loop along a row, and its trip count.
    along: (Reg, Poly<Reg>),
    /// Trip counts and lengths, with the least ones for which the copy pays.
    asked: Vec<(Poly<Reg>, i64)>,
}

impl Operand {
    /// Returns the operand of a buffer and an address, if this has the slope 1 along `along` and a large one along
    /// `rows`. The rest `is_outside` of the nest.
    pub fn of(
        kernel: &Kernel,
        element: Element<'_>,
        rows: Counted<'_>,
        along: Counted<'_>,
        is_outside: &impl Fn(&Poly<Reg>) -> bool,
    ) -> Option<Self> {
        let (buffer, at) = element;
        let (near, rest) = at.split_linear(along.0)?;
        let (far, rest) = rest.split_linear(rows.0)?;
        let is_row = near.as_constant() == Some(1)
            && far.as_constant().is_none_or(|step| step >= LANES)
            && is_outside(&far)
            && is_outside(&rest)
            && kernel.buffers[buffer].class == Class::Real;
        let (rows, along) = ((rows.0, rows.1.clone()), (along.0, along.1.clone()));
        is_row.then(|| Self { buffer, at: at.clone(), rows, along, asked: Vec::new() })
    }

    /// Returns whether it is at this address.
    pub fn is_at(&self, buffer: BufferId, at: &Poly<Reg>) -> bool {
        self.buffer == buffer && self.at == *at
    }

    /// Returns a nest that copies it, and the buffer of the copy, from which `nest` reads it then.
    pub fn copied(&self, cutter: &mut Cutter<'_>, nest: &mut [Stmt]) -> (Stmt, BufferId) {
        let Self { buffer, at, rows, along, .. } = self;
        let stride = rows.1.add(&Poly::constant(PADDING));
        let transposed = cutter.kernel.memory(stride.mul(&along.1));
        let place = |row: Poly<Reg>, element: Poly<Reg>| element.mul(&stride).add(&row);
        let own = place(Poly::var(rows.0), Poly::var(along.0));
        each_access(nest, |of, from| {
            if self.is_at(*of, from) {
                (*of, *from) = (transposed, own.clone());
            }
        });
        let (row, element, value) = (cutter.int(), cutter.int(), cutter.real());
        let from = at.substitute(|r| match r {
            r if r == rows.0 => Poly::var(row),
            r if r == along.0 => Poly::var(element),
            r => Poly::var(r),
        });
        let to = place(Poly::var(row), Poly::var(element));
        let copy = Stmt::Straight(vec![
            Instr::Load { dst: value, buffer: *buffer, at: from },
            Instr::Store { buffer: transposed, at: to, value },
        ]);
        let looped =
            |index, count: &Poly<Reg>, body| Loop { index, count: count.clone(), carried: Vec::new(), body }.in_order();
        (looped(row, &rows.1, vec![looped(element, &along.1, vec![copy])]), transposed)
    }
}

/// Copies operands of products in `kernel` to transposed ones; of products that are summed, if sums may run in lanes.
/// Linear in its size for each level of loops.
pub(crate) fn transpose(kernel: &mut Kernel, semantics: Semantics) {
    let mut body = std::mem::take(&mut kernel.body);
    // Loops that run unchanged are met again.
    let (mut seen, mut made) = (BTreeSet::new(), BTreeSet::new());
    let mut chunks: BTreeMap<Reg, Rc<Chunk>> = BTreeMap::new();
    each_statement(&mut body, |stmt, done| {
        if let Stmt::For { order: Order::Parts, body, .. } = &stmt {
            let chunk = Rc::new(Chunk::of(body));
            chunks.extend(body.iter().filter_map(|stmt| match stmt {
                Stmt::For { index, .. } => Some((*index, chunk.clone())),
                _ => None,
            }));
        }
        match stmt {
            Stmt::For { index, count, carried, order: Order::InOrder, body }
                if carried.is_empty() || semantics == Semantics::Algebraic && carries_numbers(kernel, &carried) =>
            {
                let the = Loop { index, count, carried, body };
                let chunk = chunks.get(&index).map(Rc::as_ref);
                match operands(kernel, &the, chunk).filter(|_| seen.insert(index)) {
                    Some(found) => made.extend(write(&mut Cutter::new(kernel), the, &found, (&mut seen, done))),
                    None => done.push(the.in_order()),
                }
            }
            stmt => done.push(stmt),
        }
    });
    if !made.is_empty() {
        move_copies(kernel, &mut body, &made);
    }
    kernel.body = body;
}

/// Returns whether a statement computes nothing but integers and constants.
pub(super) fn is_plain(stmt: &Stmt) -> bool {
    let is_plain = |instr: &Instr| matches!(instr, Instr::Const { .. } | Instr::Int { .. });
    matches!(stmt, Stmt::Straight(instrs) if instrs.iter().all(is_plain))
}

/// Returns the loop that a body consists of but for integers and constants, with its index, trip count and body.
fn only_loop<'a>(kernel: &Kernel, body: &'a [Stmt]) -> Option<(Reg, &'a Poly<Reg>, &'a [Stmt])> {
    let (last, before) = body.split_last()?;
    match last {
        Stmt::For { index, count, carried, order: Order::InOrder, body }
            if carries_numbers(kernel, carried) && before.iter().all(is_plain) =>
        {
            Some((*index, count, body))
        }
        _ => None,
    }
}

/// Returns whether all carried values are real.
fn carries_numbers(kernel: &Kernel, carried: &[Carried]) -> bool {
    carried.iter().all(|c| kernel.regs[c.var] == Class::Real)
}

/// The body of a parallel loop.
struct Chunk {
    written: BTreeSet<BufferId>,
    /// Registers that it defines.
    inside: BTreeSet<Reg>,
}

impl Chunk {
    fn of(body: &[Stmt]) -> Self {
        Self { written: written(body), inside: defined_in(body) }
    }

    /// Returns whether one copy of an operand serves all chunks.
    fn shares(&self, Operand { buffer, at, rows, along, .. }: &Operand) -> bool {
        let is_outside = |r: &Reg| *r == rows.0 || *r == along.0 || !self.inside.contains(r);
        !self.written.contains(buffer) && at.vars().iter().all(is_outside)
    }
}

/// Returns the operands to copy if `the` is a product of matrices, possibly the loop of a chunk.
fn operands(kernel: &Kernel, the: &Loop, chunk: Option<&Chunk>) -> Option<Vec<Operand>> {
    let (i, n) = (the.index, &the.count);
    let (j, m, inside) = only_loop(kernel, &the.body)?;
    let (mut sums, mut after) = (None, Vec::new());
    for stmt in inside {
        match stmt {
            Stmt::Straight(instrs) if sums.is_some() => after.extend(instrs),
            stmt if is_plain(stmt) => {}
            Stmt::For { index, count, carried, order: Order::InOrder, body }
                if sums.is_none() && carries_numbers(kernel, carried) =>
            {
                sums = Some((*index, count, body));
            }
            _ => return None,
        }
    }
    let (k, d, sum) = sums?;
    let [Stmt::Straight(terms)] = &sum[..] else { return None };
    let instrs: Vec<&Instr> = terms.iter().chain(after).collect();
    if instrs.iter().any(|instr| matches!(instr, Instr::CheckIndex { .. } | Instr::IntOp { .. })) {
        return None;
    }
    let mut inner = defined_in(&the.body);
    inner.insert(i);
    let is_outside = |p: &Poly<Reg>| p.vars().iter().all(|r| !inner.contains(r));
    let is_size = |p: &Poly<Reg>| p.terms().all(|(vars, c)| c >= 0 && vars.iter().all(|r| kernel.is_extent(*r)));
    if ![m, d].into_iter().all(is_size) || !is_outside(n) {
        return None;
    }
    // Results along rows, and nothing else written.
    let mut written = BTreeSet::new();
    for instr in instrs {
        if let Instr::Store { buffer, at, .. } = instr {
            written.insert(*buffer);
            if at.split_linear(j).and_then(|(slope, _)| slope.as_constant()) != Some(1) {
                return None;
            }
        }
    }
    let loads = terms.iter().filter_map(|instr| match instr {
        Instr::Load { buffer, at, .. } if !written.contains(buffer) => Some((*buffer, at)),
        _ => None,
    });
    let is_few = |p: &Poly<Reg>, least: i64| p.as_constant().is_some_and(|n| n < least);
    let operand =
        |buffer, at, rows, along| Operand::of(kernel, (buffer, at), rows, along, &|p: &Poly<Reg>| is_outside(p));
    let mut found: Vec<Operand> = Vec::new();
    let mut by_row = false;
    for (buffer, at) in loads {
        by_row |= at.vars().contains(&i);
        if found.iter().any(|other| other.is_at(buffer, at)) {
            continue;
        }
        let len = &kernel.buffers[buffer].len;
        if let Some(columns) = operand(buffer, at, (j, m), (k, d)) {
            let is_shared = chunk.is_some_and(|chunk| chunk.shares(&columns));
            let fewest = if is_shared { FEWEST / PARTS } else { FEWEST };
            found.push(Operand { asked: vec![(n.clone(), fewest)], ..columns });
        } else if is_size(n)
            && let Some(column) = operand(buffer, at, (k, d), (i, n))
        {
            found.push(Operand { asked: vec![(m.clone(), FEWEST_ONE_BY_ONE), (len.clone(), LARGE)], ..column });
        }
    }
    found.retain(|operand| !operand.asked.iter().any(|(n, least)| is_few(n, *least)));
    (by_row && (1..=MAX_OPERANDS).contains(&found.len())).then_some(found)
}

/// Emits the nest with transposed operands where that pays, and unchanged where not: the index of an unchanged copy is
/// `seen`. Returns the buffers of the copies.
fn write(
    cutter: &mut Cutter<'_>,
    the: Loop,
    operands: &[Operand],
    (seen, out): (&mut BTreeSet<Reg>, &mut Vec<Stmt>),
) -> Vec<BufferId> {
    let (mut before, mut made) = (Vec::new(), Vec::new());
    let asked: Vec<(Poly<Reg>, i64)> = operands.iter().flat_map(|operand| operand.asked.clone()).collect();
    let holds = cutter.all_reach(&asked, &mut before);
    let the = the.in_order();
    let mut near = vec![the.clone()];
    let mut then = Vec::new();
    for operand in operands {
        let (copy, transposed) = operand.copied(cutter, &mut near);
        then.push(copy);
        made.push(transposed);
    }
    let Some(condition) = holds else {
        out.extend(then);
        out.extend(near);
        return made;
    };
    let (nest, otherwise, choices) = cutter.both_of(&near[0], &the);
    seen.extend(otherwise.iter().filter_map(|stmt| match stmt {
        Stmt::For { index, .. } => Some(*index),
        _ => None,
    }));
    then.extend(nest);
    out.push(Stmt::Straight(before));
    out.push(Stmt::If { condition, then, otherwise, choices });
    made
}
