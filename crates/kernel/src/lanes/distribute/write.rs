//! Emission of a distributed loop: stretches that compute, followed by a nest for each update.

use super::find::{Addition, Distribution, Inner, Window, is_along};
use crate::kernel::{BufferId, Carried, Instr, Order, Reg, Stmt};
use crate::lanes::rewrite::{Copier, Copies, Cutter, Loop, Stretch};
use crate::rebuild::{each_statement, is_nothing};
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::BTreeMap;

/// Layout of saved numbers over the indices of the loops in which they are computed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layout {
    /// Inner index last.
    Rows,
    /// Stretch index last.
    Columns,
    /// Rows with margins of zeros, as wide as the windows of the update with this number.
    Margins(usize),
}

/// Buffers of saved numbers, and of private memory of all iterations of a stretch.
#[derive(Default)]
struct Places {
    kept: BTreeMap<(Reg, Layout), BufferId>,
    private: BTreeMap<BufferId, (BufferId, Poly<Reg>)>,
}

impl Places {
    /// Returns code that zeroes the margins. The last stretch may be shorter than the previous one.
    fn margins(&self, cutter: &mut Cutter<'_>) -> Vec<Stmt> {
        let wide = self.kept.iter().filter(|((_, layout), _)| matches!(layout, Layout::Margins(_)));
        wide.flat_map(|(_, buffer)| {
            let (index, zero) = (cutter.int(), cutter.real());
            let store = Instr::Store { buffer: *buffer, at: Poly::var(index), value: zero };
            let count = cutter.kernel.buffers[*buffer].len.clone();
            let (carried, body) = (Vec::new(), vec![Stmt::Straight(vec![store])]);
            [
                Stmt::Straight(vec![Instr::Const { dst: zero, value: 0.0 }]),
                Stmt::For { index, count, carried, order: Order::InOrder, body },
            ]
        })
        .collect()
    }

    /// Redirects an access to the copy of iteration `step` of a stretch.
    fn element(&self, buffer: &mut BufferId, at: &mut Poly<Reg>, step: Reg) {
        if let Some((place, len)) = self.private.get(buffer) {
            (*buffer, *at) = (*place, at.add(&len.mul(&Poly::var(step))));
        }
    }
}

/// Emits `the` loop to `out`, distributed as `found`.
pub(super) fn write(cutter: &mut Cutter<'_>, the: Loop, found: &Distribution, out: &mut Vec<Stmt>) {
    let layouts: Vec<Layout> = (0..found.additions.len()).map(|number| layout(found, number)).collect();
    let mut places = Places::default();
    for buffer in &found.private {
        let len = cutter.kernel.buffers[*buffer].len.clone();
        places.private.insert(*buffer, (cutter.kernel.memory(len.scale(found.stretch)), len));
    }
    for (addition, layout) in found.additions.iter().zip(&layouts) {
        for r in &addition.kept {
            let path = found.path(found.kept[r]);
            let len = path.iter().fold(Poly::constant(1), |len, inner| len.mul(&extent(found, *layout, *inner)));
            places.kept.entry((*r, *layout)).or_insert_with(|| cutter.kernel.memory(len));
        }
    }
    let (mut before, mut begin) = (Vec::new(), Vec::new());
    let n_stretches = cutter.n_stretches(&the.count, found.stretch, &mut before);
    let number = cutter.int();
    let stretch = cutter.nth_stretch(number, &the.count, found.stretch, &mut begin);
    let mut body = vec![Stmt::Straight(begin)];
    body.extend(places.margins(cutter));
    let carried = the.carried.clone();
    let (computed, next) = compute(cutter, the, found, &stretch, &places);
    body.push(computed);
    for (addition, layout) in found.additions.iter().zip(layouts) {
        let (nest, depth) = Nest::new(cutter, found, addition, &stretch).write(layout, &places);
        body.extend(where_it_adds(cutter, found, addition, nest, depth));
    }
    let carried = carried.iter().zip(next).map(|(c, next)| Carried { next, ..*c }).collect();
    out.extend((!before.is_empty()).then_some(Stmt::Straight(before)));
    out.push(Stmt::For { index: number, count: n_stretches, carried, order: Order::InOrder, body });
}

/// Guards a nest by the condition that it adds something: an element to which nothing is added may not exist, and
/// elements that are read around the loops beyond `depth` may exist only if these run.
fn where_it_adds(
    cutter: &mut Cutter<'_>,
    found: &Distribution,
    addition: &Addition,
    nest: Vec<Stmt>,
    depth: usize,
) -> Vec<Stmt> {
    let all = addition.loops[addition.n_own.min(depth)..].iter().chain(addition.windows.keys());
    // A stretch has iterations.
    let all = all.filter(|inner| **inner != 0);
    let counts = all.map(|inner| &found.loops[*inner].count).filter(|count| count.as_constant().is_none_or(|n| n < 1));
    let (mut before, mut least) = (Vec::new(), None);
    for count in counts {
        let count = cutter.int_of(&mut before, count.clone());
        least = Some(least.map_or(count, |least| cutter.int_op(&mut before, Op::Min, least, count)));
    }
    let Some(least) = least else { return nest };
    let condition = cutter.is_some(&Poly::var(least), &mut before);
    let branch = Stmt::If { condition, then: nest, otherwise: Vec::new(), choices: Vec::new() };
    vec![Stmt::Straight(before), branch]
}

/// Returns the layout of the values saved for the update with this number: along the stretch if no other loop is
/// contiguous in all other accesses; with margins if it has windows.
fn layout(found: &Distribution, number: usize) -> Layout {
    let addition = &found.additions[number];
    if !addition.windows.is_empty() {
        let same = found.additions.iter().position(|other| other.windows == addition.windows);
        return Layout::Margins(same.unwrap_or(number));
    }
    let (own, sums) = addition.loops.split_at(addition.n_own);
    let is_along = |inner: &Inner| is_along(found.loops[*inner].index, &addition.at, &addition.again);
    let is_kept_by = |inner: &Inner| addition.kept.iter().any(|r| found.path(found.kept[r]).contains(inner));
    let columns =
        own.contains(&0) && sums.iter().any(is_kept_by) && !own.iter().any(|inner| *inner != 0 && is_along(inner));
    if columns {
        return Layout::Columns;
    }
    // Elements within the margins need not exist without them.
    let wide =
        found.additions.iter().position(|other| !other.windows.is_empty() && addition.kept.is_subset(&other.kept));
    wide.map_or(Layout::Rows, Layout::Margins)
}

/// Returns the width of each margin along `inner`: one less than the window, but not below 0.
fn margin(found: &Distribution, layout: Layout, inner: Inner) -> Poly<Reg> {
    let Layout::Margins(number) = layout else { return Poly::zero() };
    let Some(window) = found.additions[number].windows.get(&inner) else { return Poly::zero() };
    let count = found.loops[window.inner].places();
    count.as_constant().map_or(count, |n| Poly::constant((n - 1).max(0)))
}

/// Returns the number of slots along `inner`.
fn extent(found: &Distribution, layout: Layout, inner: Inner) -> Poly<Reg> {
    let count = if inner == 0 { Poly::constant(found.stretch) } else { found.loops[inner].places() };
    count.add(&margin(found, layout, inner).scale(2))
}

/// Returns the slot of a number computed in the loops of `path`, for these indices.
fn element(found: &Distribution, path: &[Inner], layout: Layout, index: impl Fn(Inner) -> Poly<Reg>) -> Poly<Reg> {
    let add = |at: Poly<Reg>, inner: &Inner| {
        at.mul(&extent(found, layout, *inner)).add(&index(*inner)).add(&margin(found, layout, *inner))
    };
    match layout {
        Layout::Rows | Layout::Margins(_) => path.iter().fold(Poly::zero(), add),
        Layout::Columns => path[1..].iter().chain(&path[..1]).fold(Poly::zero(), add),
    }
}

/// Emits the loop without the moved updates, over one stretch; returns its carried values at the end.
fn compute(
    cutter: &mut Cutter<'_>,
    the: Loop,
    found: &Distribution,
    stretch: &Stretch,
    places: &Places,
) -> (Stmt, Vec<Reg>) {
    let step = cutter.int();
    let by = stretch.first.add(&Poly::var(step));
    let index = |inner: Inner| Poly::var(if inner == 0 { step } else { found.loops[inner].index });
    let stores = |r: Reg| -> Vec<Instr> {
        let of = places.kept.range((r, Layout::Rows)..=(r, Layout::Margins(usize::MAX)));
        of.map(|((_, layout), buffer)| {
            let at = element(found, &found.path(found.kept[&r]), *layout, index);
            Instr::Store { buffer: *buffer, at, value: r }
        })
        .collect()
    };
    let mut body = the.body;
    each_statement(&mut body, |stmt, done| {
        let results = stmt.results();
        match stmt {
            Stmt::Straight(code) => {
                let mut kept = Vec::with_capacity(code.len());
                for instr in code {
                    let (dst, is_gone) = match &instr {
                        Instr::Store { value, .. } => (None, found.gone.contains(value)),
                        instr => (instr.dst(), instr.dst().is_some_and(|dst| found.gone.contains(&dst))),
                    };
                    kept.extend((!is_gone).then_some(instr));
                    kept.extend(dst.into_iter().flat_map(stores));
                }
                for instr in &mut kept {
                    if let Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. } = instr {
                        places.element(buffer, at, step);
                    }
                }
                done.push(Stmt::Straight(kept));
            }
            Stmt::Copy { mut to, mut from, len, is_move } => {
                places.element(&mut to.0, &mut to.1, step);
                places.element(&mut from.0, &mut from.1, step);
                done.push(Stmt::Copy { to, from, len, is_move });
            }
            stmt => done.push(stmt),
        }
        let kept: Vec<Instr> = results.into_iter().flat_map(stores).collect();
        done.extend((!kept.is_empty()).then_some(Stmt::Straight(kept)));
    });
    // For direct uses of the index register.
    let code = vec![Instr::Int { dst: the.index, value: by.clone() }];
    let classes = the.carried.iter().map(|c| cutter.kernel.regs[c.var]).collect::<Vec<_>>();
    let vars: Vec<Reg> = classes.into_iter().map(|class| cutter.kernel.regs.push(class)).collect();
    let map = the.carried.iter().zip(&vars).map(|(c, var)| (c.var, *var)).collect();
    let (regs, buffers) = (&mut cutter.kernel.regs, BTreeMap::new());
    let mut copier = Copier { regs, map, index: the.index, by, fresh: false, lane: None, buffers: &buffers };
    let mut inside = vec![Stmt::Straight(code)];
    inside.extend(copier.block(&body));
    let carried = the.carried.iter().zip(&vars);
    let carried = carried.map(|(c, var)| Carried { var: *var, init: c.var, next: copier.of(c.next) }).collect();
    let count = stretch.count.clone();
    (Stmt::For { index: step, count, carried, order: Order::InOrder, body: inside }, vars)
}

/// Nest of one update.
struct Nest<'n, 'k> {
    cutter: &'n mut Cutter<'k>,
    found: &'n Distribution,
    addition: &'n Addition,
    /// New index of each loop.
    indices: BTreeMap<Inner, Reg>,
    first: Poly<Reg>,
    count: Poly<Reg>,
}

impl<'n, 'k> Nest<'n, 'k> {
    fn new(cutter: &'n mut Cutter<'k>, found: &'n Distribution, addition: &'n Addition, stretch: &Stretch) -> Self {
        let indices = addition.loops.iter().map(|inner| (*inner, cutter.int())).collect();
        let Stretch { first, count } = stretch;
        Self { cutter, found, addition, indices, first: first.clone(), count: count.clone() }
    }

    /// Returns the iteration of a loop whose saved numbers are read; for the first loop, within the stretch.
    fn step(&self, inner: Inner) -> Poly<Reg> {
        let index = Poly::var(self.indices[&inner]);
        // A loop over elements replaces a loop with a window.
        let Some(Window { inner: window, is_backwards }) = self.addition.windows.get(&inner) else { return index };
        let in_window = Poly::var(self.indices[window]);
        match is_backwards {
            false => index.sub(&in_window),
            true => index.add(&in_window).sub(&self.found.loops[*window].count).add(&Poly::constant(1)),
        }
    }

    /// Returns the iteration of a loop; for the first loop, counted from the start.
    fn iteration(&self, inner: Inner) -> Poly<Reg> {
        if inner == 0 { self.first.add(&self.step(0)) } else { self.step(inner) }
    }

    /// Emits the nest. Instructions that do not depend on a loop are placed outside it. Returns also the least number
    /// of loops around any instruction that reads memory or may fail.
    fn write(self, layout: Layout, places: &Places) -> (Vec<Stmt>, usize) {
        let Addition { buffer, at, before, ops, loops, n_own, windows, again, kept, .. } = self.addition;
        let at = at.substitute(|r| {
            let by = loops.iter().find(|inner| self.found.loops[**inner].index == r);
            by.map_or_else(|| Poly::var(r), |inner| self.iteration(*inner))
        });
        let mut blocks: Vec<Vec<Instr>> = vec![Vec::new(); loops.len() + 1];
        // Depth at which each register is defined.
        let mut depths: BTreeMap<Reg, usize> = BTreeMap::new();
        for (depth, inner) in (1..).zip(loops) {
            depths.insert(self.found.loops[*inner].index, depth);
        }
        let mut map: BTreeMap<Reg, Reg> = self
            .indices
            .iter()
            .filter(|(inner, _)| **inner != 0 && !windows.contains_key(inner))
            .map(|(inner, new)| (self.found.loops[*inner].index, *new))
            .collect();
        let strip = self.found.loops[0].index;
        let by = self.iteration(0);
        if !windows.contains_key(&0) {
            map.insert(strip, self.cutter.int_of(&mut blocks[depths[&strip]], by.clone()));
        }
        for r in kept {
            let path = self.found.path(self.found.kept[r]);
            let all = path.iter().chain(path.iter().filter_map(|inner| windows.get(inner).map(|window| &window.inner)));
            let depth = all.map(|inner| depths[&self.found.loops[*inner].index]).max().unwrap_or(0);
            let at = element(self.found, &path, layout, |inner| self.step(inner));
            let dst = self.cutter.real();
            blocks[depth].push(Instr::Load { dst, buffer: places.kept[&(*r, layout)], at });
            depths.insert(*r, depth);
            map.insert(*r, dst);
        }
        let n = loops.len();
        let buffers = BTreeMap::new();
        let sums: Vec<Reg> = (*n_own..n).map(|_| self.cutter.real()).collect();
        let regs = &mut self.cutter.kernel.regs;
        let mut copier = Copier { regs, map, index: strip, by, fresh: true, lane: None, buffers: &buffers };
        let mut least = n;
        for instr in again {
            let mut depth = 0;
            instr.for_each_use(|r| depth = depth.max(depths.get(&r).copied().unwrap_or(0)));
            if matches!(instr, Instr::Load { buffer, .. } if places.private.contains_key(buffer)) {
                depth = depth.max(depths[&strip]);
            }
            if let Some(dst) = instr.dst() {
                depths.insert(dst, depth);
            }
            if matches!(instr, Instr::Load { .. } | Instr::IntOp { .. }) {
                least = least.min(depth);
            }
            let mut instr = copier.instr(instr);
            if let (Instr::Load { buffer, at, .. }, Some(step)) = (&mut instr, self.indices.get(&0)) {
                places.element(buffer, at, *step);
            }
            blocks[depth].push(instr);
        }
        let first = copier.define(*before);
        blocks[*n_own].push(Instr::Load { dst: first, buffer: *buffer, at: at.clone() });
        if let Some(last) = sums.last() {
            copier.map.insert(*before, *last);
        }
        blocks[n].extend(ops.iter().map(|op| copier.instr(op)));
        let after = copier.of(ops.last().and_then(Instr::dst).unwrap_or(*before));
        let mut value = after;
        // From the inside out.
        let mut inside: Vec<Stmt> = Vec::new();
        for depth in (0..=n).rev() {
            let mut body = vec![Stmt::Straight(std::mem::take(&mut blocks[depth]))];
            body.append(&mut inside);
            if depth == *n_own {
                body.push(Stmt::Straight(vec![Instr::Store { buffer: *buffer, at: at.clone(), value }]));
            }
            body.retain(|stmt| !is_nothing(stmt));
            let Some(inner) = depth.checked_sub(1).map(|at| loops[at]) else { return (body, least) };
            let mut carried = Vec::new();
            if depth > *n_own {
                let var = sums[depth - 1 - n_own];
                let init = if depth - 1 == *n_own { first } else { sums[depth - 2 - n_own] };
                carried.push(Carried { var, init, next: value });
                value = var;
            }
            let mut count = if inner == 0 { self.count.clone() } else { self.found.loops[inner].count.clone() };
            if let Some(window) = windows.get(&inner) {
                count = count.add(&self.found.loops[window.inner].count).sub(&Poly::constant(1));
            }
            let index = self.indices[&inner];
            inside.push(Stmt::For { index, count, carried, order: Order::InOrder, body });
        }
        (inside, least)
    }
}
