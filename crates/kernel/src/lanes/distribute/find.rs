//! Analysis for loop distribution: loops worth distributing, and their nests.
//!
//! An addition may leave its loop if the loop accesses its array in no other way, it is in no branch, and its summand
//! can be recomputed or saved from the loops around.

use crate::events::{Event, walk};
use crate::kernel::{BufferId, Class, Instr, Kernel, LANES, Place, Reg, Stmt};
use crate::lanes::cost::{instr_time, windows_of};
use crate::lanes::rewrite::Loop;
use crate::mentions::Mentions;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Iterations of a stretch.
const STRETCH: i64 = 32;

/// Iterations of a stretch if only a few numbers of each are saved.
const LONG_STRETCH: i64 = 256;

/// Maximum number of saved numbers of an iteration.
const MAX_KEPT: usize = 8;

/// Maximum number of additions of a loop.
const MAX_ADDITIONS: usize = 32;

/// Number of a distributed loop or one inside it; the loop itself is the first.
pub(super) type Inner = usize;

/// A loop inside the distributed loop.
pub(super) struct Around {
    pub index: Reg,
    pub count: Poly<Reg>,
    /// Enclosing loop; `None` for the first.
    parent: Option<Inner>,
}

/// Distribution of a loop.
pub(super) struct Distribution {
    pub loops: Vec<Around>,
    /// Additions that leave the loop, each for a nest of its own.
    pub additions: Vec<Addition>,
    /// Saved registers, with the loop in which each is computed.
    pub kept: BTreeMap<Reg, Inner>,
    /// Registers whose definitions leave the loop.
    pub gone: BTreeSet<Reg>,
    /// Private buffers of an iteration that the moved additions read.
    pub private: BTreeSet<BufferId>,
    /// Iterations of a stretch.
    pub stretch: i64,
}

/// An update of an element.
pub(super) struct Addition {
    pub buffer: BufferId,
    /// Address over loop indices and invariant registers.
    pub at: Poly<Reg>,
    /// Old value.
    pub before: Reg,
    /// Code that computes the new value.
    pub ops: Vec<Instr>,
    /// Loops around it in the order of the new nest: loops whose iterations have distinct elements come first.
    pub loops: Vec<Inner>,
    /// Number of loops with distinct elements.
    pub n_own: usize,
    /// Loops several of whose iterations add to one element, with the inner loop that becomes a sum. A loop over
    /// elements replaces the outer one.
    pub windows: BTreeMap<Inner, Window>,
    /// Whether a sum loop is moved around another one, so that it can run in lanes.
    is_turned: bool,
    /// Instructions to recompute, in order.
    pub again: Vec<Instr>,
    pub kept: BTreeSet<Reg>,
}

/// A loop through which several iterations of an outer loop add to one element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub inner: Inner,
    /// Whether the address depends on the difference of both indices rather than on their sum.
    pub is_backwards: bool,
}

impl Around {
    /// Returns the number of slots for all iterations; subtracted terms are dropped, since the count may be negative.
    pub fn places(&self) -> Poly<Reg> {
        let product = |(factors, c): (&[Reg], i64)| {
            factors.iter().fold(Poly::constant(c), |product, factor| product.mul(&Poly::var(*factor)))
        };
        let added = self.count.terms().filter(|(_, c)| *c > 0);
        added.map(product).fold(Poly::zero(), |sum, term| sum.add(&term))
    }
}

impl Addition {
    /// Returns whether iterations of a loop have distinct elements.
    fn is_own(&self, inner: Inner) -> bool {
        self.loops[..self.n_own].contains(&inner)
    }
}

impl Distribution {
    /// Returns the loops around `inner` and itself, outermost first.
    pub fn path(&self, inner: Inner) -> Vec<Inner> {
        path(&self.loops, inner)
    }
}

/// Returns whether the summand is zero if the saved values are zero.
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

/// Returns whether all accesses of the update are contiguous or uniform along a loop.
pub(super) fn is_along(index: Reg, at: &Poly<Reg>, again: &[Instr]) -> bool {
    let is_near = |at: &Poly<Reg>| matches!(at.split_linear(index), Some((slope, _)) if matches!(slope.as_constant(), Some(0 | 1)));
    is_near(at) && again.iter().all(|instr| !matches!(instr, Instr::Load { at, .. } if !is_near(at)))
}

fn path(loops: &[Around], inner: Inner) -> Vec<Inner> {
    let mut path: Vec<Inner> = std::iter::successors(Some(inner), |at| loops[*at].parent).collect();
    path.reverse();
    path
}

/// Returns the distribution of `the` loop, if it pays, in a kernel with these accesses. Linear in its size times the
/// shared parts of additions.
pub(super) fn distribution(kernel: &Kernel, all: &Mentions, the: &Loop) -> Option<Distribution> {
    let survey = Survey::of(kernel, all, the)?;
    let additions: Vec<Addition> = survey.additions.iter().filter_map(|found| survey.leaving(found)).collect();
    let kept: BTreeMap<Reg, Inner> = additions
        .iter()
        .flat_map(|addition| &addition.kept)
        .filter_map(|r| Some((*r, survey.result_of(*r)?)))
        .collect();
    let sums = |addition: &Addition| -> BTreeSet<Inner> { addition.loops[addition.n_own..].iter().copied().collect() };
    let first = additions.first()?;
    // The sum of products of rows: alone in a nest, it is a matrix product whose sums stay in registers.
    let is_product = |addition: &Addition| {
        let (own, sums) = addition.loops.split_at(addition.n_own);
        let is_long = |inner: &Inner| survey.loops[*inner].count.as_constant().is_none_or(|n| n >= LANES);
        own.len() >= 2 && own.iter().any(is_long) && sums == [0]
    };
    // Additions to triangles stay, and run in lanes with the loop as it is.
    let is_even = |found: &Found<'_>| path(&survey.loops, found.inside).iter().all(|inner| survey.is_even(*inner));
    let has_products = survey.additions.iter().all(is_even) && additions.iter().any(is_product);
    let is_better = |addition: &Addition| !addition.windows.is_empty() || addition.is_turned;
    let differ = has_products || additions.iter().any(|addition| is_better(addition) || sums(addition) != sums(first));
    // A loop whose iterations have distinct elements runs in lanes without distribution; but not well if it contains
    // only updates that are sums, or updates the rows of products.
    let all_are_sums = additions.iter().all(|addition| addition.n_own < addition.loops.len());
    let is_fine = |inner: Inner| {
        additions.iter().all(|addition| addition.is_own(inner) && !addition.windows.contains_key(&inner))
            && kept.values().all(|at| path(&survey.loops, *at).contains(&inner))
            && (!has_products || additions.iter().all(|a| is_along(survey.loops[inner].index, &a.at, &a.again)))
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
    let is_copied = |buffer: &BufferId| survey.written.contains_key(buffer) && !survey.is_by_rows(*buffer);
    let private: BTreeSet<BufferId> = loads.filter(is_copied).collect();
    let is_short = private.is_empty() && kept.values().all(|inside| *inside == 0);
    let stretch = if is_short { LONG_STRETCH } else { STRETCH };
    Some(Distribution { gone: gone.collect(), loops: survey.loops, additions, kept, private, stretch })
}

/// Definition of a register.
#[derive(Clone, Copy)]
enum What<'k> {
    Index,
    /// An instruction in a loop, with its position.
    Instr(usize, Position, &'k Instr),
    /// A value carried by this loop.
    Carried(Inner),
    /// A result of a branch or a conditional loop.
    Result,
}

/// A candidate update.
struct Found<'k> {
    inside: Inner,
    buffer: BufferId,
    at: &'k Poly<Reg>,
    before: Reg,
    ops: Vec<&'k Instr>,
}

/// Facts about a loop.
struct Survey<'k> {
    kernel: &'k Kernel,
    loops: Vec<Around>,
    /// Definition of each register, with its innermost loop.
    definitions: BTreeMap<Reg, (Inner, What<'k>)>,
    /// Last position of a write to each buffer.
    written: BTreeMap<BufferId, Position>,
    /// Addresses of the accesses to each buffer; `None` for several elements.
    addresses: BTreeMap<BufferId, Vec<Option<&'k Poly<Reg>>>>,
    /// Accesses to each buffer, in this loop and in the kernel.
    part: Mentions,
    all: &'k Mentions,
    additions: Vec<Found<'k>>,
}

/// Position in an iteration: the first event of a top-level statement.
type Position = usize;

impl<'k> Survey<'k> {
    /// Returns the facts, or `None` if there is nothing to distribute.
    fn of(kernel: &'k Kernel, all: &'k Mentions, the: &'k Loop) -> Option<Self> {
        let first = Around { index: the.index, count: the.count.clone(), parent: None };
        let mut this = Self {
            kernel,
            loops: vec![first],
            definitions: BTreeMap::from([(the.index, (0, What::Index))]),
            written: BTreeMap::new(),
            addresses: BTreeMap::new(),
            part: Mentions::default(),
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
        this.part = Mentions::of(&the.body);
        this.walk(&the.body, &uses);
        (1..=MAX_ADDITIONS).contains(&this.additions.len()).then_some(this)
    }

    fn walk(&mut self, body: &'k [Stmt], uses: &BTreeMap<Reg, usize>) {
        let mut inside: Inner = 0;
        // Number of open branches and conditional loops.
        let mut branches = 0;
        // Incomplete updates by their current value; the last one of each buffer.
        let mut open: BTreeMap<Reg, Found<'k>> = BTreeMap::new();
        let mut last: BTreeMap<BufferId, Reg> = BTreeMap::new();
        // Number of open statements, and the position of the outermost.
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
            let element = match event {
                Event::Instr(Instr::Load { at, .. } | Instr::Store { at, .. }) => Some(at),
                _ => None,
            };
            event.for_each_access(|buffer, writes| {
                self.addresses.entry(buffer).or_default().push(element);
                if writes {
                    self.written.insert(buffer, position);
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

    /// Returns the loop in which a number is computed, if it can be saved there.
    fn result_of(&self, r: Reg) -> Option<Inner> {
        self.definitions.get(&r).map(|(inside, _)| *inside)
    }

    /// Returns the update as it leaves the loop, if it may.
    fn leaving(&self, found: &Found<'_>) -> Option<Addition> {
        let n_additions = self.additions.iter().filter(|other| other.buffer == found.buffer).count();
        if self.part.get(found.buffer).is_none_or(|all| all.n != 2 * n_additions) {
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
        // In memory order, so that the independence of iterations can be proved.
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

    /// Moves a sum loop that can run in lanes around the others, if no loop with distinct elements can. Returns whether
    /// there is one.
    fn for_lanes(
        &self,
        own: &[Inner],
        sums: &mut [Inner],
        at: &Poly<Reg>,
        again: &[Instr],
        kept: &BTreeSet<Reg>,
    ) -> bool {
        let is_contiguous = |inner: &Inner| is_along(self.loops[*inner].index, at, again);
        let count = |inner: &Inner| self.loops[*inner].count.as_constant();
        let can = |inner: &Inner| count(inner).is_none_or(|n| n >= LANES) && is_contiguous(inner);
        // Not along a window of unknown length, which is mostly short.
        let is_better = |inner: &Inner| can(inner) && (count(inner).is_some() || !self.is_window(*inner));
        let is_last = |r: &Reg, inner: Inner| {
            let path = self.result_of(*r).map(|inside| path(&self.loops, inside)).unwrap_or_default();
            path.last() == Some(&inner) || !path.contains(&inner)
        };
        if sums.len() < 2 || own.iter().any(is_better) {
            return false;
        }
        let found = sums.iter().position(|inner| can(inner) && kept.iter().all(|r| is_last(r, *inner)));
        found.map(|found| sums[..=found].rotate_right(1)).is_some()
    }

    /// Returns whether a loop runs along a window: to an extent that the count of another loop subtracts from one.
    fn is_window(&self, inner: Inner) -> bool {
        let Some(extent) = self.loops[inner].count.as_var() else { return false };
        self.loops.iter().any(|around| windows_of(&around.count, |_| true).contains(&extent))
    }

    /// Returns the loops several of whose iterations add to one element, each with the inner loop of the window: the
    /// address depends on the sum or the difference of both indices, and otherwise only saved values depend on the
    /// first.
    fn windows(&self, at: &Poly<Reg>, own: &[Inner], again: &[Instr], kept: &BTreeSet<Reg>) -> BTreeMap<Inner, Window> {
        let slope = |inner: Inner| at.split_linear(self.loops[inner].index).map(|(slope, _)| slope);
        let paths = || kept.iter().filter_map(|r| self.result_of(*r)).map(|inside| path(&self.loops, inside));
        let is_by = |inner: Inner| {
            let index = self.loops[inner].index;
            again.iter().any(|instr| {
                // Private memory has a copy for each iteration of a stretch.
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

    /// Returns whether the trip count of a loop is the same in all iterations of the first.
    fn is_even(&self, inner: Inner) -> bool {
        inner == 0 || self.loops[inner].count.vars().iter().all(|r| !self.definitions.contains_key(r))
    }

    /// Returns whether values computed in these loops can be saved: their trip counts are known at entry.
    fn has_places(&self, around: &[Inner]) -> bool {
        around[1..].iter().all(|inner| {
            let is_extent = |r: &Reg| self.kernel.is_extent(*r);
            self.loops[*inner].count.terms().all(|(factors, _)| factors.iter().all(is_extent))
        })
    }

    /// Returns whether a load from `buffer` at `position` gives the same value after the loop: nothing writes the
    /// buffer, or nothing does after `position` and each iteration has a row of it, or it is private.
    fn stays(&self, buffer: BufferId, position: Position) -> bool {
        let Some(last) = self.written.get(&buffer) else { return true };
        *last < position && (self.is_by_rows(buffer) || self.is_private(buffer))
    }

    /// Returns whether each iteration accesses a row of `buffer` of its own: elements from a start that is the same for
    /// all iterations, as in a chunk of a parallel loop.
    fn is_by_rows(&self, buffer: BufferId) -> bool {
        let mut rows = None;
        self.addresses.get(&buffer).is_some_and(|addresses| {
            addresses.iter().all(|at| {
                let row = at.and_then(|at| self.row(at));
                row.is_some() && *rows.get_or_insert_with(|| row.clone()) == row
            })
        })
    }

    /// Returns the length of the rows that an address goes along, one for each iteration, and the first row's start.
    fn row(&self, at: &Poly<Reg>) -> Option<(Poly<Reg>, Poly<Reg>)> {
        let (length, rest) = at.split_linear(self.loops[0].index)?;
        let start_along = |inner: Inner| {
            let start = rest.sub(&Poly::var(self.loops[inner].index));
            let is_fixed = start.vars().iter().all(|r| !self.definitions.contains_key(r));
            (is_fixed && self.loops[inner].count == length && self.is_even(inner)).then_some(start)
        };
        let start = (1..self.loops.len()).find_map(start_along)?;
        Some((length, start))
    }

    /// Returns whether `buffer` is memory of an iteration.
    fn is_private(&self, buffer: BufferId) -> bool {
        self.kernel.buffers[buffer].class == Class::Real
            && self.all.is_private(&self.part, &self.kernel.buffers, buffer)
    }

    /// Returns an address over loop indices and registers invariant in the first loop, if it has this form.
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

    /// Returns the instructions that an update recomputes, in order, and the registers that it needs saved.
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
