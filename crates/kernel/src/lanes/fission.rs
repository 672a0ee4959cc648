//! Loop fission of products: nests that multiply by a matrix leave the start of an iteration.
//!
//! ```text
//! for i in 0..n                          for s in 0..(n + 31) / 32, i = 32 s + t
//!   for j in 0..m                          for t in 0..min(32, n - 32 s)
//!     for k in 0..d, z = 0                   for j in 0..m
//!       z = z + w[j, k] * x[i, k]              for k in 0..d, z = 0
//!     y[j] = f(z)                                z = z + w[j, k] * x[i, k]
//!   g(y)                                       kept[t, j] = f(z)
//!                                          for t in 0..min(32, n - 32 s)
//!                                            g(kept[t])
//! ```
//!
//! In a nest of their own, iterations share the elements of `w`, and the nest is tiled like a product of matrices. If
//! other loops come first, these leave: `exp (a[i, k])` in a product with a matrix, or the largest element of a row.
//! What is left is split again, within the stretch, so that each product of a chain, as of attention, stands alone.
//!
//! **Loops that leave** write private memory, and read memory that the loop does not write. They contain no checks, so
//! that the same check fails first. Private memory gets a copy for each iteration of a stretch, and so does a number
//! that they compute for the rest.
//!
//! **Straight-line code** between them is copied, if it cannot fail.
//!
//! **A product moves to the front** of its iteration first, before loops whose results it does not read, and before
//! checks, if what it loads is proved to be inside without any check.
//!
//! Invariant: iterations compute the same values in the same order of operations, so every number keeps its bits.

use super::Spans;
use super::products::{accessed, written};
use crate::events::{Event, events, walk};
use crate::kernel::{BufferId, Carried, Class, Instr, Kernel, LANES, Order, Reg, Stmt};
use crate::lanes::rewrite::{Copier, Copies, Cutter, Loop, Stretch, is_wanted, used, want, wanted_code};
use crate::mentions::Mentions;
use crate::prune::prune;
use crate::ranges::Ranges;
use crate::rebuild::{each_loop, each_statement};
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Iterations of a stretch.
const STRETCH: i64 = 32;

/// The same where the product stays, which packs its matrix for each stretch.
const STRETCH_OF_OPERANDS: i64 = 64;

/// Minimum trip count of the loops of a product.
const LEAST: i64 = 4;

/// Maximum number of products that leave a loop one after the other.
const MAX_PRODUCTS: usize = 4;

/// Splits loops of `kernel` whose iterations start with products, and what is left of them. `O(n d)` for loops that
/// nest `d` deep.
pub(crate) fn fission(kernel: &mut Kernel) {
    // Stretches of loops that were split, by their index.
    let mut stretches: BTreeMap<Reg, i64> = BTreeMap::new();
    for round in 0..MAX_PRODUCTS {
        let left = if round == 0 { None } else { Some(std::mem::take(&mut stretches)) };
        split(kernel, left.as_ref(), &mut stretches);
        if stretches.is_empty() {
            break;
        }
    }
}

/// Splits the loops of `kernel`, or the `left` ones with their stretches; adds what is left of them to `stretches`.
fn split(kernel: &mut Kernel, left: Option<&BTreeMap<Reg, i64>>, stretches: &mut BTreeMap<Reg, i64>) {
    let flat = events(&kernel.body);
    let index = |begin: usize| if let Event::For { index, .. } = &flat[begin] { Some(*index) } else { None };
    let loops: BTreeSet<Reg> = match left {
        Some(left) => left.keys().copied().collect(),
        None => Spans::of(&flat).loops().filter_map(|(begin, _)| index(begin)).collect(),
    };
    // The counts stay valid for private buffers: split loops access copies.
    let all = Mentions::of(&kernel.body);
    let inside = if has_checked_nests(&kernel.body) { inside(kernel, &flat) } else { BTreeSet::new() };
    let mut body = std::mem::take(&mut kernel.body);
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } if loops.contains(&index) => {
            let mut the = Loop { index, count, carried, body };
            match leading(kernel, &all, &inside, &mut the) {
                Some(found) => {
                    let stretch = left.and_then(|left| left.get(&index));
                    let found = Leading { stretch: stretch.copied().unwrap_or(found.stretch), ..found };
                    let rest = write(&mut Cutter::new(kernel), the, &found, stretch.is_some(), done);
                    stretches.insert(rest, found.stretch);
                }
                None => done.push(the.in_order()),
            }
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
    if !stretches.is_empty() {
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
    }
}

/// Returns whether a loop checks an index before a nest of loops.
fn has_checked_nests(body: &[Stmt]) -> bool {
    let mut found = false;
    each_loop(body, |stmt| {
        if let Stmt::For { body, .. } = stmt {
            let check = body.iter().position(has_check);
            found |= check.is_some_and(|at| body[at..].iter().any(is_nest));
        }
        found
    });
    found
}

fn is_check(event: &Event<'_>) -> bool {
    matches!(event, Event::Instr(Instr::CheckIndex { .. }))
}

fn has_check(stmt: &Stmt) -> bool {
    walk(std::slice::from_ref(stmt)).any(|event| is_check(&event))
}

/// Returns whether a statement is a loop that contains loops.
fn is_nest(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { body, .. } if body.iter().any(|s| matches!(s, Stmt::For { .. })))
}

/// A buffer and an address.
type Element = (BufferId, Poly<Reg>);

/// Returns the elements that are loaded and proved to be inside of their buffers without a check.
fn inside(kernel: &Kernel, events: &[Event<'_>]) -> BTreeSet<Element> {
    let mut ranges = Ranges::new(kernel);
    let mut found = BTreeSet::new();
    for event in events.iter().filter(|event| !is_check(event)) {
        if let Event::Instr(Instr::Load { buffer, at, .. }) = event
            && ranges.is_inside(at, &kernel.buffers[*buffer].len)
        {
            found.insert((*buffer, at.clone()));
        }
        ranges.event(event);
    }
    found
}

/// Statements that leave a loop.
struct Leading {
    /// Number of statements that leave.
    until: usize,
    /// Private buffers of an iteration that nests write.
    private: BTreeSet<BufferId>,
    /// Iterations of a stretch.
    stretch: i64,
    /// Numbers that loops among them compute for the rest.
    kept: Vec<Reg>,
}

/// Facts about a loop over `index`, whatever the order of its statements.
struct Survey<'k> {
    kernel: &'k Kernel,
    index: Reg,
    /// Accesses to each buffer, in the loop and in the kernel.
    part: Mentions,
    all: &'k Mentions,
    written: BTreeSet<BufferId>,
    /// Registers that the loop defines.
    defined: BTreeSet<Reg>,
}

/// Returns the statements that leave `the` loop, if there is a product among them, or the rest is one. The first
/// product moves to the front if it can leave then.
fn leading(kernel: &Kernel, all: &Mentions, inside: &BTreeSet<Element>, the: &mut Loop) -> Option<Leading> {
    let is_long = the.count.as_constant().is_none_or(|n| n >= LANES);
    if !is_long || !the.body.iter().any(is_nest) {
        return None;
    }
    let survey = Survey::of(kernel, all, the);
    if let Some(body) = survey.product_first(inside, &the.body) {
        let as_it_was = std::mem::replace(&mut the.body, body);
        if let Some(found) = survey.leading(the) {
            return Some(found);
        }
        the.body = as_it_was;
    }
    survey.leading(the)
}

/// Returns the numbers that loops of `leaving` compute for the rest of `the` loop; `None` if they compute an integer
/// for it. Straight-line code of `leaving` that the rest needs is computed there too.
fn kept(kernel: &Kernel, leaving: &[Stmt], the: &Loop) -> Option<Vec<Reg>> {
    let mut wanted: BTreeSet<Reg> = the.carried.iter().map(|c| c.next).collect();
    walk(&the.body[leaving.len()..]).for_each(|event| event.for_each_use(|r| _ = wanted.insert(r)));
    let mut kept = Vec::new();
    for stmt in leaving.iter().rev() {
        match stmt {
            Stmt::Straight(code) => want(code, &mut wanted),
            Stmt::For { carried, .. } => kept.extend(carried.iter().map(|c| c.var).filter(|r| wanted.contains(r))),
            _ => {}
        }
    }
    kept.iter().all(|r| kernel.regs[*r] == Class::Real).then_some(kept)
}

impl<'k> Survey<'k> {
    fn of(kernel: &'k Kernel, all: &'k Mentions, the: &Loop) -> Self {
        let flat = events(&the.body);
        let (mut written, mut defined) = (BTreeSet::new(), the.carried.iter().map(|c| c.var).collect::<BTreeSet<_>>());
        for event in &flat {
            event.for_each_access(|buffer, writes| written.extend(writes.then_some(buffer)));
            event.for_each_def(|r| defined.extend([r]));
        }
        Self { kernel, index: the.index, part: Mentions::of(&the.body), all, written, defined }
    }

    /// Returns `body` with its first product in front of what it does not need, if that is anything but straight-line
    /// code without checks. It moves in front of checks if all that it loads is `inside` without them.
    fn product_first(&self, inside: &BTreeSet<Element>, body: &[Stmt]) -> Option<Vec<Stmt>> {
        let at = body.iter().position(|stmt| is_nest(stmt) && self.is_product(stmt))?;
        let (before, product) = (&body[..at], &body[at]);
        let is_checked = before.iter().any(has_check);
        if !is_checked && before.iter().all(|stmt| matches!(stmt, Stmt::Straight(_))) {
            return None;
        }
        let mut wanted = used(product);
        let moved = [Stmt::Straight(wanted_code(before, &mut wanted)?), product.clone()];
        let is_inside = |event: Event<'_>| match event {
            Event::Instr(Instr::Load { buffer, at, .. }) => inside.contains(&(*buffer, at.clone())),
            _ => true,
        };
        let is_free = accessed(&moved).is_disjoint(&written(before)) && written(&moved).is_disjoint(&accessed(before));
        if !is_free || (is_checked && !walk(&moved).all(is_inside)) {
            return None;
        }
        let mut stay = before.to_vec();
        for stmt in &mut stay {
            if let Stmt::Straight(code) = stmt {
                code.retain(|instr| !is_wanted(instr, &wanted));
            }
        }
        Some(moved.into_iter().chain(stay).chain(body[at + 1..].iter().cloned()).collect())
    }

    /// Returns the statements that leave `the` loop as it is.
    fn leading(&self, the: &Loop) -> Option<Leading> {
        // A product at the start, or what stands before the first one.
        let is_loop = |stmt: &Stmt| matches!(stmt, Stmt::For { .. });
        let is_product = |stmt: &Stmt| is_loop(stmt) && self.is_product(stmt);
        let (first, product) = (the.body.iter().position(is_loop)?, the.body.iter().position(is_product)?);
        let until = if first == product { first + 1 } else { product };
        let (leaving, rest) = the.body.split_at(until);
        let (mut copied, mut private) = (BTreeSet::new(), BTreeSet::new());
        if !rest.iter().any(is_loop) || !leaving.iter().all(|stmt| self.may_leave(stmt, &mut copied, &mut private)) {
            return None;
        }
        let is_operand = matches!(rest, [stmt] if is_product(stmt));
        let stretch = if is_operand { STRETCH_OF_OPERANDS } else { STRETCH };
        Some(Leading { until, private, stretch, kept: kept(self.kernel, leaving, the)? })
    }

    /// Returns whether a statement can run before the rest of all iterations of a stretch, after those with the
    /// definitions `copied`, which write the buffers `private`; adds its own to both.
    fn may_leave(&self, stmt: &Stmt, copied: &mut BTreeSet<Reg>, private: &mut BTreeSet<BufferId>) -> bool {
        match stmt {
            Stmt::For { .. } | Stmt::Straight(_) => {}
            _ => return false,
        }
        let is_nest = matches!(stmt, Stmt::For { .. });
        let body = std::slice::from_ref(stmt);
        walk(body).for_each(|event| event.for_each_def(|r| copied.extend([r])));
        walk(body).all(|event| {
            let mut is_known = true;
            event.for_each_use(|r| is_known &= r == self.index || copied.contains(&r) || !self.defined.contains(&r));
            is_known
                && match &event {
                    Event::Instr(Instr::Load { buffer, .. }) => {
                        !self.written.contains(buffer) || private.contains(buffer)
                    }
                    Event::Instr(Instr::Store { buffer, .. }) => {
                        let is_private = is_nest && self.is_private(*buffer);
                        private.extend(is_private.then_some(*buffer));
                        is_private
                    }
                    Event::Instr(Instr::CheckIndex { .. } | Instr::IntOp { .. } | Instr::External { .. }) => false,
                    Event::Instr(_) | Event::EndFor { .. } => true,
                    Event::For { order, .. } => *order == Order::InOrder,
                    _ => false,
                }
        })
    }

    /// Returns whether only this loop accesses `buffer`.
    fn is_private(&self, buffer: BufferId) -> bool {
        let buffers = &self.kernel.buffers;
        buffers[buffer].class == Class::Real && self.all.is_memory_of(&self.part, buffers, buffer)
    }

    /// Returns whether a nest contains a sum of products with elements of a rectangle that differ in it, and are the
    /// same in all iterations of the loop.
    fn is_product(&self, stmt: &Stmt) -> bool {
        let mut open: Vec<(Reg, bool)> = Vec::new();
        let mut shared: BTreeSet<Reg> = BTreeSet::new();
        walk(std::slice::from_ref(stmt)).any(|event| {
            match event {
                Event::For { index, count, carried, .. } => {
                    let is_long = count.as_constant().is_none_or(|n| n >= LEAST);
                    // A triangle has no tiles: its iterations run in lanes, each with its own sum.
                    let is_rectangle = !count.vars().iter().any(|r| self.defined.contains(r));
                    open.push((index, is_long && is_rectangle && (open.is_empty() || !carried.is_empty())));
                }
                Event::EndFor { .. } => drop(open.pop()),
                Event::Instr(Instr::Load { dst, buffer, at }) if !self.written.contains(buffer) => {
                    let vars = at.vars();
                    if let [first, .., last] = open.as_slice()
                        && [first, last].iter().all(|(index, is_long)| *is_long && vars.contains(index))
                        && !vars.contains(&self.index)
                    {
                        shared.insert(*dst);
                    }
                }
                Event::Instr(Instr::Op { op: Op::Mul, args: [a, b, _], .. }) => {
                    return shared.contains(a) || shared.contains(b);
                }
                _ => {}
            }
            false
        })
    }
}

/// Emits `the` loop to `out`, in two loops for each stretch, or in two if it `is_stretch` itself. Returns the index of
/// the second one.
fn write(cutter: &mut Cutter<'_>, the: Loop, found: &Leading, is_stretch: bool, out: &mut Vec<Stmt>) -> Reg {
    let mut private: BTreeMap<BufferId, (BufferId, Poly<Reg>)> = BTreeMap::new();
    for buffer in &found.private {
        let len = cutter.kernel.buffers[*buffer].len.clone();
        private.insert(*buffer, (cutter.kernel.memory(len.scale(found.stretch)), len));
    }
    let numbers: Vec<(Reg, BufferId)> =
        found.kept.iter().map(|r| (*r, cutter.kernel.memory(Poly::constant(found.stretch)))).collect();
    let (mut before, mut begin) = (Vec::new(), Vec::new());
    let number = cutter.int();
    let mut stretches = None;
    let Stretch { first, count } = if is_stretch {
        Stretch { first: Poly::zero(), count: the.count.clone() }
    } else {
        stretches = Some(cutter.n_stretches(&the.count, found.stretch, &mut before));
        cutter.nth_stretch(number, &the.count, found.stretch, &mut begin)
    };
    let Loop { index, carried, body, .. } = the;
    let leaving: Vec<Stmt> = body[..found.until].to_vec();
    let is_left = |(at, stmt): &(usize, Stmt)| *at >= found.until || matches!(stmt, Stmt::Straight(_));
    let rest: Vec<Stmt> = body.into_iter().enumerate().filter(is_left).map(|(_, stmt)| stmt).collect();
    let mut part = |mut body: Vec<Stmt>, carried: &[Carried], is_rest: bool| {
        let step = cutter.int();
        redirect(&mut body, &private, step);
        let place = Poly::var(step);
        if is_rest {
            let load = |(r, buffer): &(Reg, BufferId)| Instr::Load { dst: *r, buffer: *buffer, at: place.clone() };
            body.insert(0, Stmt::Straight(numbers.iter().map(load).collect()));
        } else {
            let store = |(r, buffer): &(Reg, BufferId)| Instr::Store { buffer: *buffer, at: place.clone(), value: *r };
            body.push(Stmt::Straight(numbers.iter().map(store).collect()));
        }
        let by = first.add(&place);
        let index_of = if is_rest { index } else { cutter.int() };
        let new = |c: &Carried| if is_stretch { c.var } else { cutter.kernel.regs.push(cutter.kernel.regs[c.var]) };
        let vars: Vec<Reg> = carried.iter().map(new).collect();
        let map = carried.iter().map(|c| c.var).zip(vars.iter().copied()).chain([(index, index_of)]).collect();
        let code = vec![Instr::Int { dst: index_of, value: by.clone() }];
        let (regs, buffers) = (&mut cutter.kernel.regs, BTreeMap::new());
        let mut copier = Copier { regs, map, index, by, fresh: !is_rest, lane: None, buffers: &buffers };
        let mut inside = vec![Stmt::Straight(code)];
        inside.extend(copier.block(&body));
        let carried = carried.iter().zip(&vars);
        let init = |c: &Carried| if is_stretch { c.init } else { c.var };
        let carried = carried.map(|(c, var)| Carried { var: *var, init: init(c), next: copier.of(c.next) }).collect();
        (step, Stmt::For { index: step, count: count.clone(), carried, order: Order::InOrder, body: inside }, vars)
    };
    let (_, products, _) = part(leaving, &[], false);
    let (step, rest, next) = part(rest, &carried, true);
    let body = vec![Stmt::Straight(begin), products, rest];
    out.extend((!before.is_empty()).then_some(Stmt::Straight(before)));
    match stretches {
        Some(count) => {
            let carried = carried.iter().zip(next).map(|(c, next)| Carried { next, ..*c }).collect();
            out.push(Stmt::For { index: number, count, carried, order: Order::InOrder, body });
        }
        None => out.extend(body),
    }
    step
}

/// Redirects accesses to private memory in `body` to the copy of iteration `step`.
fn redirect(body: &mut Vec<Stmt>, private: &BTreeMap<BufferId, (BufferId, Poly<Reg>)>, step: Reg) {
    let element = |buffer: &mut BufferId, at: &mut Poly<Reg>| {
        if let Some((wide, len)) = private.get(buffer) {
            (*buffer, *at) = (*wide, at.add(&len.mul(&Poly::var(step))));
        }
    };
    each_statement(body, |mut stmt, done| {
        match &mut stmt {
            Stmt::Straight(code) => {
                for instr in code {
                    if let Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. } = instr {
                        element(buffer, at);
                    }
                }
            }
            Stmt::Copy { to, from, .. } => {
                element(&mut to.0, &mut to.1);
                element(&mut from.0, &mut from.1);
            }
            _ => {}
        }
        done.push(stmt);
    });
}
