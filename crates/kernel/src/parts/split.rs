//! Split of a kernel into a sequence of kernels with parallel loops on their own, for backends with threads.
//!
//! In: a kernel with loops marked [`Order::Parts`]. Out: [`Pieces`]. All pieces have the sizes, the ports and the
//! buffers of the kernel, under the same numbers, and three more buffers:
//!
//! - [`Pieces::part`], an input: the number of the chunk, which is the last size;
//! - [`Pieces::reals`] and [`Pieces::ints`]: cells for registers that one piece defines and another one uses. Registers
//!   computed from sizes and constants only are recomputed instead, so that bounds depending on them can be proved.
//!
//! **Branches** around a parallel loop are split too: each piece repeats the branches with the same conditions, and
//! lists the conditions in cells ([`Piece::when`]), so that a piece without effect need not be called. Results of a
//! branch go through a cell that both sides write.
//!
//! **Private buffers** of a thread are the workspace buffers that only one parallel piece mentions
//! ([`Piece::private`]). No iteration reads data of another one there (see [`Order::Parts`]). The memory plan may have
//! placed them where dead buffers were.

use crate::events::{Event, walk};
use crate::kernel::{
    Buffer, BufferId, Choice, Class, Instr, Kernel, MAX_BRANCHES, Order, PARTS, Place, Port, Reg, SizeParam,
    SizeSource, Stmt,
};
use crate::parts::{in_branches, in_parts};
use crate::rebuild::is_nothing;
use crate::zeros::with_stored_zeros;
use chainrule_base::{Id, Name, Poly};
use std::collections::{BTreeMap, BTreeSet};

/// A kernel split into pieces.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// Pieces in the order in which they run.
    pub pieces: Vec<Piece>,
    /// Number of the chunk, one integer.
    pub part: BufferId,
    /// Cells of doubles.
    pub reals: BufferId,
    /// Number of cells of doubles.
    pub n_reals: usize,
    /// Cells of integers.
    pub ints: BufferId,
    /// Number of cells of integers.
    pub n_ints: usize,
}

/// One piece.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Kernel of the piece; the value of its last size is the number of the chunk.
    pub kernel: Kernel,
    /// Whether it runs as [`PARTS`] chunks, in any order or concurrently; otherwise once.
    pub in_parts: bool,
    /// Buffers private to each thread, in ascending order.
    pub private: Vec<BufferId>,
    /// Buffers of the workspace that other pieces mention as well, in ascending order: their elements must be in memory
    /// when the piece ends.
    pub shared: Vec<BufferId>,
    /// Guards: the piece has an effect only if each of these cells of [`Pieces::ints`], in this order, is nonzero
    /// (`true`) or zero (`false`). Cells after one that decides otherwise may be undefined.
    pub when: Vec<(usize, bool)>,
}

/// Consecutive statements of the kernel that become a piece.
struct Segment<'k> {
    body: &'k [Stmt],
    in_parts: bool,
    /// Branches around it, outermost first: condition, and whether it is the taken side.
    branches: Vec<(Reg, bool)>,
    /// Results of the branch, if it is the end of a side.
    results: Vec<(Reg, Reg)>,
}

/// Collects the segments of `body`, inside `branches`, in order.
fn segments<'k>(body: &'k [Stmt], branches: &mut Vec<(Reg, bool)>, out: &mut Vec<Segment<'k>>) {
    let segment = |body: &'k [Stmt], in_parts: bool, branches: &[(Reg, bool)]| Segment {
        body,
        in_parts,
        branches: branches.to_vec(),
        results: Vec::new(),
    };
    let mut begin = 0;
    for (i, stmt) in body.iter().enumerate() {
        let alone = std::slice::from_ref(stmt);
        if !in_branches(alone, MAX_BRANCHES - branches.len()) {
            continue;
        }
        if begin < i {
            out.push(segment(&body[begin..i], false, branches));
        }
        begin = i + 1;
        let Stmt::If { condition, then, otherwise, choices } = stmt else {
            out.push(segment(alone, true, branches));
            continue;
        };
        for holds in [true, false] {
            branches.push((*condition, holds));
            segments(if holds { then } else { otherwise }, branches, out);
            if !choices.is_empty() {
                let result = |c: &Choice| (c.var, if holds { c.then } else { c.otherwise });
                let results = choices.iter().map(result).collect();
                out.push(Segment { results, ..segment(&[], false, branches) });
            }
            branches.pop();
        }
    }
    if begin < body.len() {
        out.push(segment(&body[begin..], false, branches));
    }
}

/// Splits `kernel` into pieces; returns `None` if it has no parallel loop. `O(n log n)`, plus the tables of registers
/// and buffers of each piece.
#[must_use]
pub fn split(kernel: &Kernel) -> Option<Pieces> {
    if !in_parts(&kernel.body) {
        return None;
    }
    let kernel = &*with_stored_zeros(kernel);
    let mut segments = Vec::new();
    self::segments(&kernel.body, &mut Vec::new(), &mut segments);
    let crossing = Crossing::new(kernel, &segments);
    let header = Header::new(kernel, &crossing);
    let mentions: Vec<BTreeSet<BufferId>> = segments.iter().map(|segment| mentioned(segment.body)).collect();
    let mut n_mentions: BTreeMap<BufferId, usize> = BTreeMap::new();
    for buffer in mentions.iter().flatten() {
        *n_mentions.entry(*buffer).or_default() += 1;
    }
    let is_work = |b: &BufferId| matches!(kernel.buffers[*b].place, Place::Workspace(_));
    let pieces = segments.iter().enumerate().map(|(p, segment)| {
        let in_parts = segment.in_parts;
        let (own, shared): (Vec<_>, Vec<_>) =
            mentions[p].iter().filter(|b| is_work(b)).partition(|b| n_mentions[b] == 1);
        let cell = |(condition, holds): &(Reg, bool)| Some((*crossing.cell.get(condition)?, *holds));
        Piece {
            private: if in_parts { own } else { Vec::new() },
            shared,
            kernel: header.piece(&crossing, p, segment),
            in_parts,
            when: segment.branches.iter().filter_map(cell).collect(),
        }
    });
    let (n_reals, n_ints) = (crossing.n_cells[0], crossing.n_cells[1]);
    Some(Pieces {
        pieces: pieces.collect(),
        part: header.part_buffer,
        reals: header.cells[0],
        n_reals,
        ints: header.cells[1],
        n_ints,
    })
}

fn mentioned(body: &[Stmt]) -> BTreeSet<BufferId> {
    let mut found = BTreeSet::new();
    for event in walk(body) {
        match event {
            Event::Instr(Instr::Load { buffer, .. } | Instr::Store { buffer, .. }) => drop(found.insert(*buffer)),
            Event::Copy { to, from, .. } => found.extend([to.0, from.0]),
            _ => {}
        }
    }
    found
}

fn space(class: Class) -> usize {
    usize::from(class == Class::Int)
}

/// Registers that one piece defines and another one uses.
struct Crossing<'k> {
    /// Registers of other pieces that each piece uses, ascending by their definitions.
    used: Vec<Vec<Reg>>,
    /// Instruction that recomputes a register from sizes and constants.
    again: BTreeMap<Reg, &'k Instr>,
    /// Cells of all other registers, numbered by class.
    cell: BTreeMap<Reg, usize>,
    n_cells: [usize; 2],
    /// Registers that each piece stores to cells.
    put: Vec<Vec<Reg>>,
}

impl<'k> Crossing<'k> {
    fn new(kernel: &'k Kernel, segments: &[Segment<'k>]) -> Self {
        const NOWHERE: u32 = u32::MAX;
        // Piece and position of each definition.
        let mut defined = vec![(NOWHERE, 0u32); kernel.regs.len()];
        let mut again: BTreeMap<Reg, &Instr> = BTreeMap::new();
        let is_size: BTreeSet<Reg> = kernel.sizes.iter().map(|size| size.reg).collect();
        let mut now = 0;
        let mut used: Vec<BTreeSet<(u32, Reg)>> = Vec::new();
        for (p, segment) in (0u32..).zip(segments) {
            let mut here = BTreeSet::new();
            let of_another = |defined: &[(u32, u32)], r: Reg| {
                let (piece, at) = defined[r.index()];
                (piece != p && piece != NOWHERE).then_some((at, r))
            };
            for stmt in segment.body {
                if let Stmt::Straight(code) = stmt {
                    for instr in code {
                        let pure = matches!(
                            instr,
                            Instr::Const { .. } | Instr::Int { .. } | Instr::IntOp { .. } | Instr::ToReal { .. }
                        );
                        let mut known = pure;
                        instr.for_each_use(|r| known &= is_size.contains(&r) || again.contains_key(&r));
                        if let Some(dst) = instr.dst().filter(|_| known) {
                            again.insert(dst, instr);
                        }
                    }
                }
                for event in walk(std::slice::from_ref(stmt)) {
                    now += 1;
                    event.for_each_use(|r| here.extend(of_another(&defined, r)));
                    event.for_each_def(|r| defined[r.index()] = (p, now));
                }
            }
            // The branches themselves are in no segment.
            let conditions = segment.branches.iter().map(|(condition, _)| *condition);
            let values = segment.results.iter().map(|(_, value)| *value);
            here.extend(conditions.chain(values).filter_map(|r| of_another(&defined, r)));
            now += 1;
            segment.results.iter().for_each(|(result, _)| defined[result.index()] = (p, now));
            // A recomputed register needs its operands.
            let made = here.iter().map(|(_, r)| *r).collect();
            made_of(&again, made, |r| {
                let (piece, at) = defined[r.index()];
                piece != NOWHERE && here.insert((at, r))
            });
            used.push(here);
        }
        let mut this = Self {
            used: Vec::new(),
            again,
            cell: BTreeMap::new(),
            n_cells: [0; 2],
            put: vec![Vec::new(); segments.len()],
        };
        let conditions: BTreeSet<Reg> = segments.iter().flat_map(|s| &s.branches).map(|(r, _)| *r).collect();
        let results: BTreeSet<Reg> = segments.iter().flat_map(|s| &s.results).map(|(r, _)| *r).collect();
        for here in used {
            for (_, r) in &here {
                // The caller of the pieces reads conditions from cells.
                let is_made_again = this.again.contains_key(r) && !conditions.contains(r);
                if is_made_again || this.cell.contains_key(r) {
                    continue;
                }
                let n = &mut this.n_cells[space(kernel.regs[*r])];
                this.cell.insert(*r, *n);
                *n += 1;
                if !results.contains(r) {
                    this.put[defined[r.index()].0 as usize].push(*r);
                }
            }
            this.used.push(here.into_iter().map(|(_, r)| r).collect());
        }
        this
    }
}

impl Crossing<'_> {
    /// Returns `r`, and its operands if it is recomputed.
    fn needs(&self, r: Reg) -> BTreeSet<Reg> {
        let mut needed = BTreeSet::from([r]);
        made_of(&self.again, vec![r], |r| needed.insert(r));
        needed
    }
}

/// Visits the operands of recomputed registers transitively, as long as a register `is_new`.
fn made_of(again: &BTreeMap<Reg, &Instr>, mut open: Vec<Reg>, mut is_new: impl FnMut(Reg) -> bool) {
    while let Some(r) = open.pop() {
        let Some(instr) = again.get(&r) else { continue };
        instr.for_each_use(|r| {
            if is_new(r) {
                open.push(r);
            }
        });
    }
}

/// Common header of all pieces.
struct Header {
    /// Kernel without a body.
    kernel: Kernel,
    part_buffer: BufferId,
    cells: [BufferId; 2],
    /// Size that is the number of the chunk.
    part: Reg,
}

impl Header {
    fn new(kernel: &Kernel, crossing: &Crossing<'_>) -> Self {
        let mut kernel = Kernel { body: Vec::new(), ..kernel.clone() };
        let part = kernel.regs.push(Class::Int);
        let input = kernel.inputs.len();
        let one = Poly::constant(1);
        let buffer = Buffer { class: Class::Int, len: one, place: Place::Input(input) };
        let part_buffer = kernel.buffers.push(buffer);
        let mut name = String::from("part");
        while kernel.inputs.iter().any(|p| p.name.as_str() == name)
            || kernel.sizes.iter().any(|s| s.name.as_str() == name)
        {
            name.push('_');
        }
        let name = Name::new(&name);
        kernel.inputs.push(Port { name: name.clone(), shape: Vec::new(), buffer: part_buffer });
        kernel.sizes.push(SizeParam { name, reg: part, source: SizeSource::Value { input } });
        let cells = [Class::Real, Class::Int].map(|class| {
            let total = match class {
                Class::Real => &mut kernel.workspace_reals,
                Class::Int => &mut kernel.workspace_ints,
            };
            let (at, len) = (total.clone(), Poly::constant(crossing.n_cells[space(class)] as i64));
            *total = total.add(&len);
            kernel.buffers.push(Buffer { class, len, place: Place::Workspace(at) })
        });
        Self { kernel, part_buffer, cells, part }
    }

    fn piece(&self, crossing: &Crossing<'_>, p: usize, segment: &Segment<'_>) -> Kernel {
        let mut kernel = self.kernel.clone();
        let cell = |r: Reg| {
            let at = Poly::constant(*crossing.cell.get(&r)? as i64);
            Some((self.cells[space(self.kernel.regs[r])], at))
        };
        // The operands of each condition come right before its branch, all other code inside all branches, since code
        // of a branch that is not taken may fail.
        let mut made = BTreeSet::new();
        let mut blocks: Vec<Vec<Instr>> = Vec::new();
        let needs = segment.branches.iter().map(|(condition, _)| crossing.needs(*condition));
        for needed in needs.map(Some).chain([None]) {
            let is_due = |r: &Reg| needed.as_ref().is_none_or(|needed| needed.contains(r));
            let mut block = Vec::new();
            for r in crossing.used[p].iter().filter(|r| is_due(r) && made.insert(**r)) {
                if let Some(instr) = crossing.again.get(r) {
                    block.push((*instr).clone());
                } else if let Some((buffer, at)) = cell(*r) {
                    block.push(Instr::Load { dst: *r, buffer, at });
                }
            }
            blocks.push(block);
        }
        let mut body: Vec<Stmt> = match segment.body {
            [Stmt::For { index, order: Order::Parts, body, .. }] => {
                // The check states the range of the number.
                let failure = kernel.failures.len();
                kernel.failures.push(("a part that is not there".to_owned(), None));
                let number = Instr::Int { dst: *index, value: Poly::var(self.part) };
                let check = Instr::CheckIndex { index: *index, len: Poly::constant(PARTS), failure };
                blocks[0].splice(0..0, [number, check]);
                body.clone()
            }
            body => {
                let put = crossing.put[p].iter().map(|r| (*r, *r)).chain(segment.results.iter().copied());
                let store = |(to, value)| cell(to).map(|(buffer, at)| Instr::Store { buffer, at, value });
                let last = Stmt::Straight(put.filter_map(store).collect());
                body.iter().cloned().chain([last]).collect()
            }
        };
        for (k, block) in blocks.into_iter().enumerate().rev() {
            body.insert(0, Stmt::Straight(block));
            body.retain(|stmt| !is_nothing(stmt));
            if k > 0 {
                let (condition, holds) = segment.branches[k - 1];
                let (then, otherwise) = if holds { (body, Vec::new()) } else { (Vec::new(), body) };
                body = vec![Stmt::If { condition, then, otherwise, choices: Vec::new() }];
            }
        }
        kernel.body = body;
        kernel
    }
}
