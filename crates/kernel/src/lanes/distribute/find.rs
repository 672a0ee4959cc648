//! Which loops are worth distributing, and what becomes of them.
//!
//! An addition may leave the loop it is in where nothing else is done with its array in all of the loop, in no branch, and where
//! what is added can be computed again, or kept from loops around.

use crate::events::{Event, walk};
use crate::kernel::{BufferId, Class, Instr, Kernel, LANES, Place, Reg, Stmt};
use crate::lanes::cost::instr_time;
use crate::lanes::rewrite::Loop;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// So many iterations are computed before what they add is added.
const STRETCH: i64 = 32;

/// The same where one number or a few are all that is kept of an iteration.
const LONG_STRETCH: i64 = 256;

/// So many numbers are kept of an iteration at most.
const MAX_KEPT: usize = 8;

/// A loop has so many additions at most.
const MAX_ADDITIONS: usize = 32;

/// A loop that is distributed, or one in it, by a number: the loop itself is the first.
pub(super) type Inner = usize;

/// A loop in the one that is distributed.
pub(super) struct Around {
    pub index: Reg,
    pub count: Poly<Reg>,
    /// The loop it stands in; nothing for the first.
    parent: Option<Inner>,
}

/// What becomes of a loop.
pub(super) struct Distribution {
    pub loops: Vec<Around>,
    /// What leaves it, each to a nest of its own.
    pub additions: Vec<Addition>,
    /// What is kept for these, with the loop in which it is computed.
    pub kept: BTreeMap<Reg, Inner>,
    /// What instructions define that leave it.
    pub gone: BTreeSet<Reg>,
    /// Memory that each iteration has for itself, and that is read by what leaves.
    pub private: BTreeSet<BufferId>,
    /// How many iterations are computed before what they add is added.
    pub stretch: i64,
}

/// An element that is added to.
pub(super) struct Addition {
    pub buffer: BufferId,
    /// Over indices of loops, and what stays the same.
    pub at: Poly<Reg>,
    /// What it was.
    pub before: Reg,
    /// What is added.
    pub ops: Vec<Instr>,
    /// The loops around it, in the order in which they will stand: those whose iterations have elements of their own come first.
    pub loops: Vec<Inner>,
    /// How many these are.
    pub n_own: usize,
    /// Loops of which several iterations add to one element, with the loop in each by which they do, which is a sum then. In
    /// place of the one around there stands a loop over elements.
    pub windows: BTreeMap<Inner, Window>,
    /// Whether a sum stands around another one, so that it runs in lanes.
    is_turned: bool,
    /// What is computed again, in order, and what is kept.
    pub again: Vec<Instr>,
    pub kept: BTreeSet<Reg>,
}

/// A loop by which several iterations of one around it add to one element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub inner: Inner,
    /// Whether the place of an element goes by the difference of both indices, and not by their sum.
    pub is_backwards: bool,
}

/// How often each buffer is accessed in a kernel.
pub(super) type Accesses = BTreeMap<BufferId, usize>;

/// Counts loads, stores and copies.
pub(super) fn accesses(events: &[Event<'_>]) -> Accesses {
    let mut accesses = Accesses::new();
    for event in events {
        event.for_each_access(|buffer, _| *accesses.entry(buffer).or_default() += 1);
    }
    accesses
}

impl Around {
    /// Places for all iterations, of which there may be a negative number: what is taken away is left out.
    pub fn places(&self) -> Poly<Reg> {
        let product = |(factors, c): (&[Reg], i64)| {
            factors.iter().fold(Poly::constant(c), |product, factor| product.mul(&Poly::var(*factor)))
        };
        let added = self.count.terms().filter(|(_, c)| *c > 0);
        added.map(product).fold(Poly::zero(), |sum, term| sum.add(&term))
    }
}

impl Addition {
    /// Whether iterations of a loop have elements of their own.
    fn is_own(&self, inner: Inner) -> bool {
        self.loops[..self.n_own].contains(&inner)
    }
}

impl Distribution {
    /// The loops around `inner`, and it; the outermost first.
    pub fn path(&self, inner: Inner) -> Vec<Inner> {
        path(&self.loops, inner)
    }
}

/// Whether nothing is added where what is kept is zero.
fn are_multiples(found: &Found<'_>, again: &[Instr], kept: &BTreeSet<Reg>) -> bool {
    let mut zero = kept.clone();
    for instr in again {
        if let Instr::Op { dst, op, args: [a, b, _] } = instr {
            let is_zero = match op {
                Op::Mul => zero.contains(a) || zero.contains(b),
                Op::Add | Op::Sub => zero.contains(a) && zero.contains(b),
                Op::Neg => zero.contains(a),
                _ => false,
            };
            zero.extend(is_zero.then_some(*dst));
        }
    }
    let mut so_far = found.before;
    found.ops.iter().all(|op| {
        let Instr::Op { dst, args: [a, b, _], .. } = op else { return false };
        let added = if *a == so_far { b } else { a };
        so_far = *dst;
        zero.contains(added)
    })
}

/// Whether iterations of a loop go from an element to the next one, or stay, in what is added to and in what is read.
pub(super) fn is_along(index: Reg, at: &Poly<Reg>, again: &[Instr]) -> bool {
    let is_near = |at: &Poly<Reg>| matches!(at.split_linear(index), Some((slope, _)) if matches!(slope.as_constant(), Some(0 | 1)));
    is_near(at) && again.iter().all(|instr| !matches!(instr, Instr::Load { at, .. } if !is_near(at)))
}

fn path(loops: &[Around], inner: Inner) -> Vec<Inner> {
    let mut path: Vec<Inner> = std::iter::successors(Some(inner), |at| loops[*at].parent).collect();
    path.reverse();
    path
}

/// What becomes of `the` loop, if it is worth it, in a kernel with so many accesses. Linear in its size, but for what additions
/// have in common.
pub(super) fn distribution(kernel: &Kernel, all: &Accesses, the: &Loop) -> Option<Distribution> {
    let survey = Survey::of(kernel, all, the)?;
    let additions: Vec<Addition> = survey.additions.iter().filter_map(|found| survey.leaving(found)).collect();
    let kept: BTreeMap<Reg, Inner> = additions
        .iter()
        .flat_map(|addition| &addition.kept)
        .filter_map(|r| Some((*r, survey.result_of(*r)?)))
        .collect();
    let sums = |addition: &Addition| -> BTreeSet<Inner> { addition.loops[addition.n_own..].iter().copied().collect() };
    let first = additions.first()?;
    let is_better = |addition: &Addition| !addition.windows.is_empty() || addition.is_turned;
    let differ = additions.iter().any(|addition| is_better(addition) || sums(addition) != sums(first));
    // A loop in which all is computed, and whose iterations have elements of their own, runs in lanes as it is; not well, if
    // there is nothing in it but additions that are sums.
    let all_are_sums = additions.iter().all(|addition| addition.n_own < addition.loops.len());
    let is_fine = |inner: Inner| {
        additions.iter().all(|addition| addition.is_own(inner) && !addition.windows.contains_key(&inner))
            && kept.values().all(|at| path(&survey.loops, *at).contains(&inner))
            && !(all_are_sums && additions.iter().any(|addition| addition.loops.iter().max() == Some(&inner)))
    };
    if !differ || kept.len() > MAX_KEPT || (0..survey.loops.len()).any(is_fine) {
        return None;
    }
    let gone =
        additions.iter().flat_map(|addition| addition.ops.iter().filter_map(Instr::dst).chain([addition.before]));
    let loads = additions.iter().flat_map(|addition| &addition.again).filter_map(|instr| match instr {
        Instr::Load { buffer, .. } => Some(*buffer),
        _ => None,
    });
    let private: BTreeSet<BufferId> = loads.filter(|buffer| survey.written.contains_key(buffer)).collect();
    let is_short = private.is_empty() && kept.values().all(|inside| *inside == 0);
    let stretch = if is_short { LONG_STRETCH } else { STRETCH };
    Some(Distribution { gone: gone.collect(), loops: survey.loops, additions, kept, private, stretch })
}

/// What defines a register.
#[derive(Clone, Copy)]
enum What<'k> {
    Index,
    /// The number of an instruction.
    Instr(usize, Position, &'k Instr),
    /// A loop carries it: in that loop it is another number each time.
    Carried(Inner),
    /// A branch or a conditional loop results in it.
    Result,
}

/// An addition as it stands.
struct Found<'k> {
    inside: Inner,
    buffer: BufferId,
    at: &'k Poly<Reg>,
    before: Reg,
    ops: Vec<&'k Instr>,
}

/// What is known of a loop.
struct Survey<'k> {
    kernel: &'k Kernel,
    loops: Vec<Around>,
    /// Where each register is defined, by the innermost loop.
    definitions: BTreeMap<Reg, (Inner, What<'k>)>,
    /// What is written, and where last.
    written: BTreeMap<BufferId, Position>,
    /// What is read before it is written.
    read_first: BTreeSet<BufferId>,
    /// Loads, stores and copies of each buffer, here and in all.
    accesses: Accesses,
    all: &'k Accesses,
    additions: Vec<Found<'k>>,
}

/// Where something is done in an iteration: the event by which the statement begins, of those that are in no other.
type Position = usize;

impl<'k> Survey<'k> {
    /// Nothing where it is seen that there is nothing to distribute.
    fn of(kernel: &'k Kernel, all: &'k Accesses, the: &'k Loop) -> Option<Self> {
        let first = Around { index: the.index, count: the.count.clone(), parent: None };
        let mut this = Self {
            kernel,
            loops: vec![first],
            definitions: BTreeMap::from([(the.index, (0, What::Index))]),
            written: BTreeMap::new(),
            read_first: BTreeSet::new(),
            accesses: Accesses::new(),
            all,
            additions: Vec::new(),
        };
        this.definitions.extend(the.carried.iter().map(|c| (c.var, (0, What::Carried(0)))));
        let mut uses: BTreeMap<Reg, usize> = BTreeMap::new();
        let mut stores = 0;
        for event in walk(&the.body) {
            event.for_each_use(|r| *uses.entry(r).or_default() += 1);
            stores += usize::from(matches!(event, Event::Instr(Instr::Store { .. })));
        }
        if stores == 0 {
            return None;
        }
        the.carried.iter().for_each(|c| *uses.entry(c.next).or_default() += 1);
        this.walk(&the.body, &uses);
        (1..=MAX_ADDITIONS).contains(&this.additions.len()).then_some(this)
    }

    fn walk(&mut self, body: &'k [Stmt], uses: &BTreeMap<Reg, usize>) {
        let mut inside: Inner = 0;
        // In how many branches and conditional loops.
        let mut branches = 0;
        // Those that are not at their end, by what they are so far; the last one of each buffer.
        let mut open: BTreeMap<Reg, Found<'k>> = BTreeMap::new();
        let mut last: BTreeMap<BufferId, Reg> = BTreeMap::new();
        // How many statements are open, and the position of the outermost.
        let (mut depth, mut position) = (0, 0);
        let is_used_once = |r: Reg| uses.get(&r) == Some(&1);
        for (at, event) in walk(body).enumerate() {
            if !matches!(event, Event::Instr(_)) {
                open.clear();
                last.clear();
            }
            if depth == 0 {
                position = at;
            }
            match event {
                Event::For { .. } | Event::While { .. } | Event::If { .. } => depth += 1,
                Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => depth -= 1,
                _ => {}
            }
            event.for_each_access(|buffer, writes| {
                *self.accesses.entry(buffer).or_default() += 1;
                if writes {
                    self.written.insert(buffer, position);
                } else if !self.written.contains_key(&buffer) {
                    self.read_first.insert(buffer);
                }
            });
            match event {
                Event::For { index, count, carried, .. } if branches == 0 => {
                    let inner = self.loops.len();
                    self.definitions.extend(carried.iter().map(|c| (c.var, (inside, What::Carried(inner)))));
                    self.definitions.insert(index, (inner, What::Index));
                    self.loops.push(Around { index, count: count.clone(), parent: Some(inside) });
                    inside = inner;
                }
                Event::EndFor { .. } if branches == 0 => inside = self.loops[inside].parent.unwrap_or(0),
                Event::For { .. } | Event::While { .. } | Event::If { .. } => branches += 1,
                Event::EndFor { .. } => branches -= 1,
                Event::EndWhile { .. } | Event::EndIf { .. } => {
                    branches -= 1;
                    if branches == 0 {
                        let results: Vec<Reg> = match event {
                            Event::EndWhile { carried } => carried.iter().map(|c| c.var).collect(),
                            Event::EndIf { choices } => choices.iter().map(|c| c.var).collect(),
                            _ => Vec::new(),
                        };
                        self.definitions.extend(results.into_iter().map(|r| (r, (inside, What::Result))));
                    }
                }
                Event::Instr(instr) => {
                    if let (0, Some(dst)) = (branches, instr.dst()) {
                        self.definitions.insert(dst, (inside, What::Instr(at, position, instr)));
                    }
                    match instr {
                        Instr::Load { dst, buffer, at } => {
                            last.remove(buffer).and_then(|so_far| open.remove(&so_far));
                            let is_input = matches!(self.kernel.buffers[*buffer].place, Place::Input(_));
                            if branches == 0 && !is_input && self.kernel.regs[*dst] == Class::Real {
                                last.insert(*buffer, *dst);
                                open.insert(*dst, Found { inside, buffer: *buffer, at, before: *dst, ops: Vec::new() });
                            }
                        }
                        Instr::Store { buffer, at, value } => {
                            let Some(so_far) = last.remove(buffer) else { continue };
                            let found = open.remove(&so_far).filter(|found| !found.ops.is_empty() && found.at == at);
                            self.additions.extend(found.filter(|_| so_far == *value && is_used_once(*value)));
                        }
                        Instr::Op { dst, op: op @ (Op::Add | Op::Sub), args: [a, b, _] } if a != b => {
                            let goes_on = |so_far: &Reg| is_used_once(*so_far) && open.contains_key(so_far);
                            let so_far = [*a, *b].into_iter().take(if *op == Op::Add { 2 } else { 1 }).find(goes_on);
                            if let Some(mut found) = so_far.and_then(|so_far| open.remove(&so_far)) {
                                found.ops.push(instr);
                                last.insert(found.buffer, *dst);
                                open.insert(*dst, found);
                            }
                        }
                        _ => {}
                    }
                }
                Event::Copy { .. } | Event::Test { .. } | Event::Else { .. } => {}
            }
        }
    }

    /// The loop in which a number is computed that can be kept there.
    fn result_of(&self, r: Reg) -> Option<Inner> {
        self.definitions.get(&r).map(|(inside, _)| *inside)
    }

    /// How it leaves the loop, if it may.
    fn leaving(&self, found: &Found<'_>) -> Option<Addition> {
        let n_additions = self.additions.iter().filter(|other| other.buffer == found.buffer).count();
        if self.accesses.get(&found.buffer) != Some(&(2 * n_additions)) {
            return None;
        }
        let around = path(&self.loops, found.inside);
        if around.len() < 2 || !around.iter().all(|inner| self.is_even(*inner)) {
            return None;
        }
        let at = self.over_indices(found.at)?;
        let (mut own, mut sums) = (Vec::new(), Vec::new());
        for inner in &around {
            let (slope, _) = at.split_linear(self.loops[*inner].index)?;
            match slope.as_constant() {
                Some(0) => sums.push(*inner),
                constant => own.push((slope.terms().map(|(factors, _)| factors.len()).max(), constant, *inner)),
            }
        }
        // In the order of memory: it is seen then that iterations do not meet.
        own.sort_by_key(|(n_factors, constant, _)| Reverse((*n_factors, constant.map(i64::abs))));
        let mut own: Vec<Inner> = own.into_iter().map(|(.., inner)| inner).collect();
        let (again, kept) = self.needed(found, &around)?;
        let windows = match are_multiples(found, &again, &kept) {
            true => self.windows(&at, &own, &again, &kept),
            false => BTreeMap::new(),
        };
        own.retain(|inner| !windows.values().any(|window| window.inner == *inner));
        sums.extend(windows.values().map(|window| window.inner));
        let is_turned = self.for_lanes(&own, &mut sums, &at, &again, &kept);
        let n_own = own.len();
        let loops = own.into_iter().chain(sums).collect();
        let ops = found.ops.iter().map(|op| (*op).clone()).collect();
        let before = found.before;
        Some(Addition { buffer: found.buffer, at, before, ops, loops, n_own, windows, is_turned, again, kept })
    }

    /// Puts a sum that can run in lanes around the others, where no loop whose iterations have elements of their own can:
    /// whether there is one.
    fn for_lanes(
        &self,
        own: &[Inner],
        sums: &mut [Inner],
        at: &Poly<Reg>,
        again: &[Instr],
        kept: &BTreeSet<Reg>,
    ) -> bool {
        let can = |inner: &Inner| {
            let Around { index, count, .. } = &self.loops[*inner];
            count.as_constant().is_none_or(|n| n >= LANES) && is_along(*index, at, again)
        };
        let is_last = |r: &Reg, inner: Inner| {
            let path = self.result_of(*r).map(|inside| path(&self.loops, inside)).unwrap_or_default();
            path.last() == Some(&inner) || !path.contains(&inner)
        };
        if sums.len() < 2 || own.iter().any(can) {
            return false;
        }
        let found = sums.iter().position(|inner| can(inner) && kept.iter().all(|r| is_last(r, *inner)));
        found.map(|found| sums[..=found].rotate_right(1)).is_some()
    }

    /// The loops of which several iterations add to one element, each with the loop in it by which they do: an address goes by
    /// the sum of both indices, or by their difference, and but for it only what is kept goes by the first.
    fn windows(&self, at: &Poly<Reg>, own: &[Inner], again: &[Instr], kept: &BTreeSet<Reg>) -> BTreeMap<Inner, Window> {
        let slope = |inner: Inner| at.split_linear(self.loops[inner].index).map(|(slope, _)| slope);
        let paths = || kept.iter().filter_map(|r| self.result_of(*r)).map(|inside| path(&self.loops, inside));
        let is_by = |inner: Inner| {
            let index = self.loops[inner].index;
            again.iter().any(|instr| {
                // Memory that an iteration has for itself is one of those of a stretch.
                let mut any = matches!(instr, Instr::Load { buffer, .. } if self.written.contains_key(buffer));
                instr.for_each_use(|r| any |= r == index);
                any
            })
        };
        let mut windows: BTreeMap<Inner, Window> = BTreeMap::new();
        for around in own.iter().copied().filter(|inner| !kept.is_empty() && !is_by(*inner)) {
            let is_window = |inner: &Inner| {
                *inner > around
                    && !windows.values().any(|taken| taken.inner == *inner)
                    && paths().all(|path| path.contains(&around) && !path.contains(inner))
                    && self.has_places(&[0, *inner])
            };
            let back = slope(around).map(|slope| slope.scale(-1));
            let window = own.iter().copied().filter(is_window).find_map(|inner| match slope(inner) {
                by if by == slope(around) => Some(Window { inner, is_backwards: false }),
                by if by == back => Some(Window { inner, is_backwards: true }),
                _ => None,
            });
            windows.extend(window.map(|window| (around, window)));
        }
        windows
    }

    /// Whether a loop runs equally often in all iterations of the first.
    fn is_even(&self, inner: Inner) -> bool {
        inner == 0 || self.loops[inner].count.vars().iter().all(|r| !self.definitions.contains_key(r))
    }

    /// Whether what loops in the first one compute can be kept: how often they run is known at entry.
    fn has_places(&self, around: &[Inner]) -> bool {
        around[1..].iter().all(|inner| {
            let is_extent = |r: &Reg| self.kernel.is_extent(*r);
            self.loops[*inner].count.terms().all(|(factors, _)| factors.iter().all(is_extent))
        })
    }

    /// Whether what is read of `buffer` at `position` is still there in the end: nothing writes it, or the iteration has it for
    /// itself and does not write it any more.
    fn stays(&self, buffer: BufferId, position: Position) -> bool {
        let Some(last) = self.written.get(&buffer) else { return true };
        *last < position
            && self.kernel.buffers[buffer].class == Class::Real
            && matches!(self.kernel.buffers[buffer].place, Place::Workspace(_))
            && !self.read_first.contains(&buffer)
            && self.all.get(&buffer) == self.accesses.get(&buffer)
    }

    /// An address over indices of loops and what stays the same in the first, if it is made of these.
    fn over_indices(&self, at: &Poly<Reg>) -> Option<Poly<Reg>> {
        let mut at = at.clone();
        loop {
            let defined = |r: &Reg| match self.definitions.get(r) {
                Some((_, What::Index)) | None => None,
                Some((_, what)) => Some(*what),
            };
            let Some(what) = at.vars().iter().find_map(defined) else { return Some(at) };
            let What::Instr(_, _, Instr::Int { dst, value }) = what else { return None };
            at = at.substitute(|r| if r == *dst { value.clone() } else { Poly::var(r) });
        }
    }

    /// What an addition needs: what is computed again, in order, and what is kept.
    fn needed(&self, found: &Found<'_>, around: &[Inner]) -> Option<(Vec<Instr>, BTreeSet<Reg>)> {
        let (mut again, mut kept) = (BTreeMap::new(), BTreeSet::new());
        let chain: BTreeSet<Reg> = found.ops.iter().filter_map(|op| op.dst()).chain([found.before]).collect();
        let mut open: Vec<Reg> = Vec::new();
        found.ops.iter().for_each(|op| op.for_each_use(|r| open.extend((!chain.contains(&r)).then_some(r))));
        while let Some(r) = open.pop() {
            let Some((inside, what)) = self.definitions.get(&r) else { continue };
            let is_again = match what {
                What::Index => continue,
                What::Instr(_, position, instr) => match instr {
                    Instr::Load { buffer, .. } => self.stays(*buffer, *position),
                    Instr::Const { .. } | Instr::Int { .. } | Instr::IntOp { .. } | Instr::ToReal { .. } => true,
                    instr => *inside == found.inside && instr_time(instr, None) <= 1.0,
                },
                What::Carried(of) if around.contains(of) => return None,
                What::Carried(_) | What::Result => false,
            };
            match what {
                What::Instr(at, _, instr) if is_again => {
                    if again.insert(*at, (*instr).clone()).is_none() {
                        instr.for_each_use(|r| open.push(r));
                    }
                }
                _ => {
                    let is_number = self.kernel.regs[r] == Class::Real;
                    if !is_number || *inside == found.inside || !self.has_places(&path(&self.loops, *inside)) {
                        return None;
                    }
                    kept.insert(r);
                }
            }
        }
        Some((again.into_values().collect(), kept))
    }
}
