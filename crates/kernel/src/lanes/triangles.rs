//! Products of matrices of which only a triangle is wanted, as products of rectangles.
//!
//! ```text
//! for i in 0..n                          for s in 0..(n + 63) / 64, of as many rows each: i = first + t
//!   for j in 0..i + 1                      for t in 0..rows
//!     for k in 0..d, z = 0                   for j in 0..first + rows
//!       z = z + a[i, k] * b[k, j]              for k in 0..d, z = 0
//!     y[i, j] = f(z)                             z = z + a[first + t, k] * b[k, j]
//!                                              kept[t, j] = z
//!                                          for t in 0..rows
//!                                            for j in 0..first + t + 1
//!                                              y[first + t, j] = f(kept[t, j])
//! ```
//!
//! Rows of different lengths share no elements of `b`: each is a product of its own. A rectangle around a stretch of
//! them is tiled and packed as a product of matrices, which gains more than the sums cost that nobody reads. Columns
//! may get more by one with each row, or fewer, and then be counted from the row on (`b[k, i + j]`). An operand that
//! lanes would read along its columns is copied once, transposed, for all stretches.
//!
//! **What a rectangle reads** is read by the nest: by one of its rows for each column, and by each row for its first
//! column. Rows without columns run by themselves. The loop does not write what the products read, and no check stands
//! in front of them.
//!
//! Few rows, which is tested at run time, stay as they are.
//!
//! Invariant: each sum is computed as before, so every number keeps its bits. `O(n)`.

use super::outside::straight;
use super::products::{Sources, accessed, reaches, terms, written};
use super::rewrite::{Copier, Cutter, Loop, reads, used, wanted_code};
use super::sweep::is_pure;
use super::transpose::Operand;
use crate::events::{Event, walk};
use crate::kernel::{BufferId, Carried, Class, Instr, Kernel, LANES, Order, Reg, Stmt};
use crate::prune::prune;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of rows of a stretch.
const STRETCH: i64 = 64;

/// Minimum number of rows.
const FEWEST: i64 = 24;

/// Computes products in triangles of `kernel` by rectangles.
pub(crate) fn triangles(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    // Loops that run unchanged if there are few rows are met again.
    let mut seen = BTreeSet::new();
    let mut changes = false;
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } if carried.is_empty() => {
            let the = Loop { index, count, carried, body };
            match triangle(kernel, &the).filter(|_| seen.insert(index)) {
                Some(found) => {
                    changes = true;
                    write(&mut Cutter::new(kernel), the, &found, done);
                }
                None => done.push(the.in_order()),
            }
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
    if changes {
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
    }
}

/// How the columns of a row lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Each row has one more than the one before.
    Growing,
    /// Each row has one less.
    Shrinking,
    /// The same, and the first one is that of the row's index.
    FromDiagonal,
}

/// A triangle of products.
struct Triangle {
    shape: Shape,
    /// Position of the loop over columns in that over rows, and of the product in it.
    at: (usize, usize),
    /// Rows without columns at the beginning, and at the end.
    outside: (i64, i64),
    /// Number of columns of the longest row.
    n_columns: Poly<Reg>,
    /// Index of a column, and the loop over the terms of the sums, with the code before it.
    column: Reg,
    before: Vec<Instr>,
    product: Stmt,
    /// Code of a row that these need.
    row: Vec<Instr>,
    /// Operands to transpose.
    operands: Vec<Operand>,
}

/// A loop over columns in one over rows, of which row `i` has `first + slope * i`.
struct Columns<'a> {
    /// Position in the body of the loop over rows.
    at: usize,
    index: Reg,
    body: &'a [Stmt],
    first: Poly<Reg>,
    slope: i64,
    /// Rows without columns at the beginning, and at the end.
    outside: (i64, i64),
}

impl<'a> Columns<'a> {
    /// Returns the loop `stmt` at position `at` of `the` loop over rows.
    fn of(kernel: &Kernel, the: &Loop, at: usize, stmt: &'a Stmt) -> Option<Self> {
        let Stmt::For { index, count, carried, order: Order::InOrder, body } = stmt else { return None };
        let (slope, first) = count.split_linear(the.index)?;
        let slope = slope.as_constant().filter(|slope| slope.abs() == 1 && carried.is_empty())?;
        let outside = outside(slope, &first, &the.count)?;
        is_size(kernel, &first).then_some(Self { at, index: *index, body, first, slope, outside })
    }
}

/// Returns the first triangle of products in `the` loop over rows.
fn triangle(kernel: &mut Kernel, the: &Loop) -> Option<Triangle> {
    if !reaches(&the.count, FEWEST) || !is_size(kernel, &the.count) {
        return None;
    }
    let mut known = Sources::of(the.index, &the.body);
    for (at, stmt) in the.body.iter().enumerate() {
        if let Some(columns) = Columns::of(kernel, the, at, stmt)
            && let Some(found) = of_columns(kernel, the, &columns, known.clone())
        {
            return Some(found);
        }
        let is_check = |event: Event<'_>| matches!(event, Event::Instr(Instr::CheckIndex { .. }));
        if walk(std::slice::from_ref(stmt)).any(is_check) {
            return None;
        }
        known.see_row(stmt);
    }
    None
}

/// Returns whether a number is a sum of products of extents and a constant: but for the constant it is not negative.
fn is_size(kernel: &Kernel, p: &Poly<Reg>) -> bool {
    p.terms().all(|(vars, c)| vars.is_empty() || c > 0 && vars.iter().all(|r| kernel.is_extent(*r)))
}

/// Returns the numbers of rows without columns at the beginning and at the end of `n`, of which row `i` has `first +
/// slope * i`; `None` if that is not known.
fn outside(slope: i64, first: &Poly<Reg>, n: &Poly<Reg>) -> Option<(i64, i64)> {
    let fewest = if slope == 1 { first.clone() } else { first.sub(n).add(&Poly::constant(1)) };
    let lacks = match fewest.as_constant() {
        Some(fewest) => (1 - fewest).max(0),
        None => {
            let (rest, constant) = fewest.split_constant();
            (constant >= 1 && rest.terms().all(|(_, c)| c > 0)).then_some(0)?
        }
    };
    (lacks < LANES).then_some(if slope == 1 { (lacks, 0) } else { (0, lacks) })
}

/// Returns the triangle of a loop over columns, if it has a product.
fn of_columns(kernel: &mut Kernel, the: &Loop, columns: &Columns<'_>, mut known: Sources) -> Option<Triangle> {
    let &Columns { at, index, body, ref first, slope, outside } = columns;
    let n_columns = match slope {
        1 => first.add(&the.count).add(&Poly::constant(-1)),
        _ => first.clone(),
    };
    let written = written(&the.body);
    let mut shapes = vec![(if slope == 1 { Shape::Growing } else { Shape::Shrinking }, index, body.to_vec())];
    if slope == -1 && !reads(body, index) {
        let column = kernel.regs.push(Class::Int);
        let by = Poly::var(column).sub(&Poly::var(the.index));
        let (regs, map, buffers) = (&mut kernel.regs, BTreeMap::new(), BTreeMap::new());
        let mut copier = Copier { regs, map, index, by, fresh: false, lane: None, buffers: &buffers };
        let body = copier.block(body);
        shapes.push((Shape::FromDiagonal, column, body));
    }
    for (shape, column, body) in shapes {
        known.columns(column, &body);
        let Some(inside) = body.iter().position(|stmt| matches!(stmt, Stmt::For { .. })) else { continue };
        let before = &body[..inside];
        if !before.iter().all(|stmt| matches!(stmt, Stmt::Straight(code) if code.iter().all(is_pure))) {
            continue;
        }
        before.iter().flat_map(straight).for_each(|instr| known.instr(instr));
        if terms(&body[inside], &mut known).is_none() {
            continue;
        }
        let product = body[inside].clone();
        let mut wanted = used(&product);
        let before = wanted_code(before, &mut wanted)?;
        let row = wanted_code(&the.body[..at], &mut wanted)?;
        let moved = [Stmt::Straight(before.clone()), product.clone(), Stmt::Straight(row.clone())];
        if !accessed(&moved).is_disjoint(&written) {
            return None;
        }
        let operands = operands(kernel, the, (column, &n_columns), &product);
        return Some(Triangle { shape, at: (at, inside), outside, n_columns, column, before, product, row, operands });
    }
    None
}

/// Returns the operands of a product that lie in rows along its terms, while lanes go along its columns.
fn operands(kernel: &Kernel, the: &Loop, columns: (Reg, &Poly<Reg>), product: &Stmt) -> Vec<Operand> {
    let Stmt::For { index, count, body, .. } = product else { return Vec::new() };
    let is_outside = |p: &Poly<Reg>| p.vars().iter().all(|r| kernel.is_extent(*r));
    let mut found: Vec<Operand> = Vec::new();
    for event in walk(body) {
        if let Event::Instr(Instr::Load { buffer, at, .. }) = event
            && is_size(kernel, count)
            && count.split_constant().1 >= 0
            && !at.vars().contains(&the.index)
            && !found.iter().any(|other| other.is_at(*buffer, at))
        {
            found.extend(Operand::of(kernel, (*buffer, at), columns, (*index, count), &is_outside));
        }
    }
    found
}

/// Emits `the` loop to `out`, by stretches of rows where there are enough of them.
fn write(cutter: &mut Cutter<'_>, the: Loop, found: &Triangle, out: &mut Vec<Stmt>) {
    let (head, tail) = found.outside;
    let n_rows = the.count.sub(&Poly::constant(head + tail));
    let mut before = Vec::new();
    let condition = cutter.all_reach(&[(n_rows.clone(), FEWEST)], &mut before);
    let alone = |cutter: &mut Cutter<'_>, first: &Poly<Reg>, count: i64| {
        cutter.iterations((the.index, &the.body), (first, Poly::constant(count)), BTreeMap::new(), &BTreeMap::new())
    };
    let mut near = Vec::new();
    if head > 0 {
        near.push(alone(cutter, &Poly::zero(), head));
    }
    stretches(cutter, &the, found, &n_rows, &mut near);
    if tail > 0 {
        near.push(alone(cutter, &n_rows.add(&Poly::constant(head)), tail));
    }
    match condition {
        Some(condition) => {
            out.push(Stmt::Straight(before));
            out.push(cutter.either(condition, &near, vec![the.in_order()]));
        }
        None => out.extend(near),
    }
}

/// Emits the `n_rows` rows that have columns.
fn stretches(cutter: &mut Cutter<'_>, the: &Loop, found: &Triangle, n_rows: &Poly<Reg>, out: &mut Vec<Stmt>) {
    let constant = Poly::constant;
    let mut product = vec![found.product.clone()];
    for operand in &found.operands {
        let (copy, _) = operand.copied(cutter, &mut product);
        out.push(copy);
    }
    // Stretches of equal numbers of rows.
    let mut before = Vec::new();
    let most = cutter.int_of(&mut before, constant(STRETCH));
    let one = cutter.int_of(&mut before, constant(1));
    let count = cutter.quotient(&n_rows.add(&constant(STRETCH - 1)), STRETCH, &mut before);
    let count = cutter.int_of(&mut before, count);
    let all = cutter.int_of(&mut before, n_rows.add(&Poly::var(count)).sub(&constant(1)));
    let of = cutter.int_op(&mut before, Op::Quot, all, count);
    let of = cutter.int_op(&mut before, Op::Max, of, one);
    let of = cutter.int_op(&mut before, Op::Min, of, most);
    out.push(Stmt::Straight(before));
    let (stretch, mut begin) = (cutter.int(), Vec::new());
    let done = Poly::var(of).mul(&Poly::var(stretch));
    let left = cutter.int_of(&mut begin, n_rows.sub(&done));
    let rows = Poly::var(cutter.int_op(&mut begin, Op::Min, of, left));
    let first = done.add(&constant(found.outside.0));
    // The columns of all rows of the stretch: in whole vectors, as far as there are so many.
    let n_columns = match found.shape {
        Shape::Growing => {
            let last = first.add(&Poly::var(of)).sub(&constant(1));
            let last = found.n_columns.sub(&the.count).add(&constant(1)).add(&last);
            let whole = cutter.quotient(&last.add(&constant(LANES - 1)), LANES, &mut begin);
            let whole = cutter.int_of(&mut begin, whole.scale(LANES));
            let bound = cutter.int_of(&mut begin, found.n_columns.clone());
            Poly::var(cutter.int_op(&mut begin, Op::Min, whole, bound))
        }
        Shape::Shrinking | Shape::FromDiagonal => found.n_columns.sub(&first),
    };
    let (_, constant_columns) = found.n_columns.split_constant();
    let stride = found.n_columns.sub(&constant(constant_columns.min(0)));
    let sums: &[Carried] = if let Stmt::For { carried, .. } = &found.product { carried } else { &[] };
    let kept: Vec<(Reg, BufferId)> =
        sums.iter().map(|c| (c.var, cutter.kernel.memory(stride.scale(STRETCH)))).collect();

    // The rectangle, whose elements the other parts of the rows read.
    let row = Poly::var(the.index).sub(&first);
    let from = if found.shape == Shape::FromDiagonal { first.clone() } else { Poly::zero() };
    let at = stride.mul(&row).add(&Poly::var(found.column)).sub(&from);
    let store = |(value, buffer): &(Reg, BufferId)| Instr::Store { buffer: *buffer, at: at.clone(), value: *value };
    let mut body = vec![Stmt::Straight(found.before.clone())];
    body.extend(product);
    body.push(Stmt::Straight(kept.iter().map(store).collect()));
    let (none, same) = (BTreeMap::new(), BTreeMap::new());
    let columns = cutter.iterations((found.column, &body), (&from, n_columns), none.clone(), &same);
    let body = [Stmt::Straight(found.row.clone()), columns];
    let rectangle = cutter.iterations((the.index, &body), (&first, rows.clone()), none.clone(), &same);
    let mut body = the.body.clone();
    if let Stmt::For { index, body, .. } = &mut body[found.at.0] {
        let from = if found.shape == Shape::FromDiagonal { row.clone() } else { Poly::zero() };
        let at = stride.mul(&row).add(&Poly::var(*index)).add(&from);
        let load = |(dst, buffer): &(Reg, BufferId)| Instr::Load { dst: *dst, buffer: *buffer, at: at.clone() };
        body[found.at.1] = Stmt::Straight(kept.iter().map(load).collect());
    }
    let rest = cutter.iterations((the.index, &body), (&first, rows), none, &same);
    let body = vec![Stmt::Straight(begin), rectangle, rest];
    out.push(Loop { index: stretch, count: Poly::var(count), carried: Vec::new(), body }.in_order());
}
