//! Loop collapsing: nested loops that access memory like a single loop become one.
//!
//! ```text
//! for i in 0..5                          for k in 0..60
//!   for j in 0..12                         y[60 n + k] = - x[k + 7]
//!     y[60 n + 12 i + j] = - x[12 i + j + 7]
//! ```
//!
//! A loop of `a` iterations that contains only a loop of `b` iterations becomes one of `a b` if both indices occur in
//! addresses and other integers only as `c (b i + j)`. Iterations keep their order. Long loops fill the lanes of
//! vectors where short ones leave remainders. A loop of adjacent copies becomes one copy.

use crate::events::{Event, walk};
use crate::kernel::{Instr, Kernel, Order, Reg, Stmt};
use crate::lanes::rewrite::Copier;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use std::collections::BTreeMap;

/// Collapses nested loops of `kernel` where possible. `O(n d)` for loops nested `d` deep.
pub(crate) fn join(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    each_statement(&mut body, |mut stmt, done| {
        while let Some((constants, joined)) = joined(kernel, &stmt) {
            if !constants.is_empty() {
                done.push(Stmt::Straight(constants));
            }
            stmt = joined;
        }
        done.push(stmt);
    });
    kernel.body = body;
}

/// Returns one loop or copy for the two loops of `stmt`, after the constants between them.
pub(super) fn joined(kernel: &mut Kernel, stmt: &Stmt) -> Option<(Vec<Instr>, Stmt)> {
    let Stmt::For { index: i, count: a, carried, order: Order::InOrder, body } = stmt else { return None };
    let (constants, inside) = match body.as_slice() {
        [inside] => (&[][..], inside),
        [Stmt::Straight(code), inside] => (code.as_slice(), inside),
        _ => return None,
    };
    if !carried.is_empty() || !constants.iter().all(|instr| matches!(instr, Instr::Const { .. })) {
        return None;
    }
    match inside {
        Stmt::For { index: j, count: b, carried, order: Order::InOrder, body } if carried.is_empty() => {
            let nest = Nest { i: *i, j: *j, b };
            let count = nest.count(kernel, a, body)?;
            if !walk(body).all(|event| nest.allows(&event)) {
                return None;
            }
            let (map, buffers) = (BTreeMap::new(), BTreeMap::new());
            let by = Poly::zero();
            let mut copier =
                Copier { regs: &mut kernel.regs, map, buffers: &buffers, index: *i, by, lane: None, fresh: false };
            let body = copier.block(body);
            let joined = Stmt::For { index: *j, count, carried: Vec::new(), order: Order::InOrder, body };
            Some((constants.to_vec(), joined))
        }
        Stmt::Copy { to, from, len, is_move } if to.0 != from.0 && !len.vars().contains(i) => {
            let follow = |at: &Poly<Reg>| at.split_linear(*i).and_then(|(step, first)| (step == *len).then_some(first));
            let (first_to, first_from) = (follow(&to.1)?, follow(&from.1)?);
            let count = product(kernel, a, len, &kernel.buffers[to.0].len)?;
            let (to, from) = ((to.0, first_to), (from.0, first_from));
            Some((constants.to_vec(), Stmt::Copy { to, from, len: count, is_move: *is_move }))
        }
        _ => None,
    }
}

/// Two loops, `j` of `b` iterations in `i`.
struct Nest<'k> {
    i: Reg,
    j: Reg,
    b: &'k Poly<Reg>,
}

impl Nest<'_> {
    /// Returns the trip count of the collapsed loop, if it is known to fit, and to be zero if either count is not
    /// positive.
    fn count(&self, kernel: &Kernel, a: &Poly<Reg>, body: &[Stmt]) -> Option<Poly<Reg>> {
        if self.b.vars().contains(&self.i) {
            return None;
        }
        walk(body).find_map(|event| match event {
            Event::Instr(Instr::Load { buffer, .. } | Instr::Store { buffer, .. }) => {
                product(kernel, a, self.b, &kernel.buffers[*buffer].len)
            }
            _ => None,
        })
    }

    /// Returns whether the indices occur in an event only in the permitted form.
    fn allows(&self, event: &Event<'_>) -> bool {
        let free = |r: &Reg| *r != self.i && *r != self.j;
        match event {
            Event::Instr(Instr::Int { value: p, .. } | Instr::Load { at: p, .. }) => self.is_linear(p),
            Event::Instr(Instr::Store { at: p, value: r, .. } | Instr::CheckIndex { len: p, index: r, .. }) => {
                self.is_linear(p) && free(r)
            }
            Event::Copy { to, from, len, .. } => [&to.1, &from.1, *len].into_iter().all(|p| self.is_linear(p)),
            Event::For { count: p, carried, .. } | Event::While { limit: p, carried } => {
                self.is_linear(p) && carried.iter().all(|c| free(&c.init))
            }
            other => {
                let mut allowed = true;
                other.for_each_use(|r| allowed &= free(&r));
                allowed
            }
        }
    }

    /// Returns whether `p` is `c (b i + j)` plus terms without `i` and `j`.
    fn is_linear(&self, p: &Poly<Reg>) -> bool {
        if p.as_constant().is_some() {
            return true;
        }
        let split = p.split_linear(self.i).and_then(|(slope, rest)| Some((slope, rest.split_linear(self.j)?)));
        split.is_some_and(|(of_i, (of_j, _))| !of_i.vars().contains(&self.j) && of_i == of_j.mul(self.b))
    }
}

/// Returns `a b` if one of them is a positive number, or neither can be negative and a buffer of `len` has that many
/// elements, or a multiple of them.
fn product(kernel: &Kernel, a: &Poly<Reg>, b: &Poly<Reg>, len: &Poly<Reg>) -> Option<Poly<Reg>> {
    let product = a.mul(b);
    let is_number = |p: &Poly<Reg>| p.as_constant().is_some_and(|n| n > 0);
    if is_number(a) || is_number(b) {
        return Some(product);
    }
    let is_natural =
        |p: &Poly<Reg>| p.terms().all(|(factors, c)| c >= 0 && factors.iter().all(|size| kernel.is_extent(*size)));
    let (times, rest) = len.divide(&product)?;
    let is_some = times.split_constant().1 >= 1
        || matches!(&*times.terms().collect::<Vec<_>>(), [(sizes, 1..)] if sizes.iter().all(|r| is_positive(kernel, *r)));
    let fits = rest.is_zero() && is_some && [a, b, &times].into_iter().all(is_natural);
    fits.then_some(product)
}

/// Returns whether the size `size` is required to be at least 1.
fn is_positive(kernel: &Kernel, size: Reg) -> bool {
    kernel.requires.iter().any(|condition| {
        let least = Poly::var(size).sub(&condition.size);
        !condition.exactly_zero && least.as_constant().is_some_and(|least| least >= 1)
    })
}
