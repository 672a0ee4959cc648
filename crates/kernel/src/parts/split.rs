//! A kernel as a list of kernels that run one after the other, those that run in parts on their own: for backends that run
//! parts on threads.
//!
//! In: a kernel with loops marked [`Order::Parts`]. Out: [`Pieces`]. All pieces have the sizes, the ports and the buffers of the
//! kernel, under the same numbers, and three buffers more:
//!
//! - [`Pieces::part`], an input: the number of the part, which is the last size;
//! - [`Pieces::reals`] and [`Pieces::ints`]: cells, where registers lie that one piece defines and another one uses. What is
//!   computed from sizes and constants alone is computed again instead, so that bounds are seen that depend on it.
//!
//! **What a thread needs for itself**: the buffers of the workspace that only one piece, which runs in parts, mentions
//! ([`Piece::private`]); no iteration reads there what another one wrote (see [`Order::Parts`]). The memory plan may have put
//! them where other buffers were that are dead by then.

use crate::events::{Event, events, walk};
use crate::kernel::{
    Buffer, BufferId, Class, Instr, Kernel, Order, PARTS, Place, Port, Reg, SizeParam, SizeSource, Stmt,
};
use crate::lanes::cost;
use chainrule_base::{Id, Name, Poly};
use std::collections::{BTreeMap, BTreeSet};

/// A kernel in pieces.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// In the order in which they run.
    pub pieces: Vec<Piece>,
    /// The number of the part, one integer.
    pub part: BufferId,
    /// Cells of doubles.
    pub reals: BufferId,
    /// How many.
    pub n_reals: usize,
    /// Cells of integers.
    pub ints: BufferId,
    /// How many.
    pub n_ints: usize,
}

/// One piece.
#[derive(Clone, Debug)]
pub struct Piece {
    /// What it does; the value of its last size is the number of the part.
    pub kernel: Kernel,
    /// Whether it runs in [`PARTS`] parts, in any order or at once; otherwise once.
    pub in_parts: bool,
    /// The buffers that each thread needs for itself, in ascending order.
    pub private: Vec<BufferId>,
}

/// The pieces of `kernel`; `None` where nothing runs in parts. `O(n log n)`, but for the tables of registers and buffers, which
/// each piece has.
#[must_use]
pub fn split(kernel: &Kernel) -> Option<Pieces> {
    let is_parts = |stmt: &Stmt| matches!(stmt, Stmt::For { order: Order::Parts, .. });
    if !kernel.body.iter().any(is_parts) {
        return None;
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (i, stmt) in kernel.body.iter().enumerate() {
        match ranges.last_mut() {
            Some((begin, end)) if !is_parts(stmt) && !is_parts(&kernel.body[*begin]) => *end = i + 1,
            _ => ranges.push((i, i + 1)),
        }
    }
    let crossing = Crossing::new(kernel, &ranges);
    let header = Header::new(kernel, &crossing);
    let mentions: Vec<BTreeSet<BufferId>> = ranges.iter().map(|r| mentioned(&kernel.body[r.0..r.1])).collect();
    let mut n_mentions: BTreeMap<BufferId, usize> = BTreeMap::new();
    for buffer in mentions.iter().flatten() {
        *n_mentions.entry(*buffer).or_default() += 1;
    }
    let is_work = |b: &BufferId| matches!(kernel.buffers[*b].place, Place::Workspace(_));
    let pieces = ranges.iter().enumerate().map(|(p, (begin, end))| {
        let body = &kernel.body[*begin..*end];
        let in_parts = is_parts(&body[0]);
        let own = mentions[p].iter().filter(|b| in_parts && is_work(b) && n_mentions[b] == 1);
        Piece { private: own.copied().collect(), kernel: header.piece(&crossing, p, body), in_parts }
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
    /// By piece: the registers of others that it uses, ascending by where they are defined.
    used: Vec<Vec<Reg>>,
    /// By register: what computes it anew, where that is sizes and constants alone.
    again: BTreeMap<Reg, &'k Instr>,
    /// The cells of the others, in the space of their class.
    cell: BTreeMap<Reg, usize>,
    n_cells: [usize; 2],
    /// By piece: what it has to put into cells.
    put: Vec<Vec<Reg>>,
}

impl<'k> Crossing<'k> {
    fn new(kernel: &'k Kernel, ranges: &[(usize, usize)]) -> Self {
        const NOWHERE: u32 = u32::MAX;
        // By register: the piece that defines it, and when.
        let mut defined = vec![(NOWHERE, 0u32); kernel.regs.len()];
        let mut again: BTreeMap<Reg, &Instr> = BTreeMap::new();
        let is_size: BTreeSet<Reg> = kernel.sizes.iter().map(|size| size.reg).collect();
        let mut now = 0;
        let mut used: Vec<BTreeSet<(u32, Reg)>> = Vec::new();
        for (p, (begin, end)) in (0u32..).zip(ranges) {
            let mut here = BTreeSet::new();
            for stmt in &kernel.body[*begin..*end] {
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
                    event.for_each_use(|r| {
                        let (piece, at) = defined[r.index()];
                        if piece != p && piece != NOWHERE {
                            here.insert((at, r));
                        }
                    });
                    event.for_each_def(|r| defined[r.index()] = (p, now));
                }
            }
            // What is computed anew is so from what it was made of.
            let mut open: Vec<Reg> = here.iter().map(|(_, r)| *r).collect();
            while let Some(r) = open.pop() {
                if let Some(instr) = again.get(&r) {
                    instr.for_each_use(|r| {
                        let (piece, at) = defined[r.index()];
                        if piece != NOWHERE && here.insert((at, r)) {
                            open.push(r);
                        }
                    });
                }
            }
            used.push(here);
        }
        let mut this = Self {
            used: Vec::new(),
            again,
            cell: BTreeMap::new(),
            n_cells: [0; 2],
            put: vec![Vec::new(); ranges.len()],
        };
        for here in used {
            for (_, r) in &here {
                if this.again.contains_key(r) || this.cell.contains_key(r) {
                    continue;
                }
                let n = &mut this.n_cells[space(kernel.regs[*r])];
                this.cell.insert(*r, *n);
                *n += 1;
                this.put[defined[r.index()].0 as usize].push(*r);
            }
            this.used.push(here.into_iter().map(|(_, r)| r).collect());
        }
        this
    }
}

/// What all pieces have.
struct Header {
    /// Without a body.
    kernel: Kernel,
    part_buffer: BufferId,
    cells: [BufferId; 2],
    /// The size that is the number of the part.
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

    fn piece(&self, crossing: &Crossing<'_>, p: usize, body: &[Stmt]) -> Kernel {
        let mut kernel = self.kernel.clone();
        let class = |r: Reg| self.kernel.regs[r];
        let at = |r: &Reg| crossing.cell.get(r).map(|cell| Poly::constant(*cell as i64));
        let mut first: Vec<Instr> = Vec::new();
        for r in &crossing.used[p] {
            if let Some(at) = at(r) {
                first.push(Instr::Load { dst: *r, buffer: self.cells[space(class(*r))], at });
            } else if let Some(instr) = crossing.again.get(r) {
                first.push((*instr).clone());
            }
        }
        let last: Vec<Instr> = crossing.put[p]
            .iter()
            .filter_map(|r| Some(Instr::Store { buffer: self.cells[space(class(*r))], at: at(r)?, value: *r }))
            .collect();
        let mut stmts = Vec::new();
        match body {
            [Stmt::For { index, order: Order::Parts, body, .. }] => {
                // That the number is in range is seen by the check.
                let failure = kernel.failures.len();
                kernel.failures.push(("a part that is not there".to_owned(), None));
                first.push(Instr::Int { dst: *index, value: Poly::var(self.part) });
                first.push(Instr::CheckIndex { index: *index, len: Poly::constant(PARTS), failure });
                stmts.push(Stmt::Straight(first));
                stmts.extend(body.iter().cloned());
            }
            body => {
                stmts.push(Stmt::Straight(first));
                stmts.extend(body.iter().cloned());
                stmts.push(Stmt::Straight(last));
            }
        }
        stmts.retain(|stmt| !matches!(stmt, Stmt::Straight(code) if code.is_empty()));
        kernel.body = stmts;
        kernel
    }
}

impl Piece {
    /// An estimate of the time that part number `part` takes where the kernel's sizes have these values, in instructions;
    /// loops whose counts depend on data count for a few iterations. Linear in the piece.
    #[must_use]
    pub fn work(&self, sizes: &[i64], part: i64) -> f64 {
        let mut known: BTreeMap<Reg, i64> = BTreeMap::new();
        for (size, value) in self.kernel.sizes.iter().zip(sizes.iter().chain([&part])) {
            known.insert(size.reg, *value);
        }
        let mut sums = vec![(1.0, 0.0)];
        for event in events(&self.kernel.body) {
            match event {
                Event::Instr(instr) => {
                    let value = match instr {
                        Instr::Int { value, .. } if value.vars().iter().all(|r| known.contains_key(r)) => {
                            value.eval(|r| known.get(&r).copied().unwrap_or(0))
                        }
                        Instr::IntOp { op, args: [a, b, c], .. } => {
                            let of = |r: &Reg| known.get(r).copied();
                            let values = of(a).zip(of(b)).zip(of(c));
                            values.and_then(|((a, b), c)| (op.row().int?)(&[a, b, c][..op.arity()]))
                        }
                        _ => None,
                    };
                    if let (Some(dst), Some(value)) = (instr.dst(), value) {
                        known.insert(dst, value);
                    }
                    if let Some((_, sum)) = sums.last_mut() {
                        *sum += cost::instr_time(instr, None);
                    }
                }
                Event::Copy { len, .. } => {
                    if let Some((_, sum)) = sums.last_mut() {
                        *sum += count(len, &known);
                    }
                }
                // All at once, in the time of one.
                Event::For { order: Order::Lanes, .. } => sums.push((1.0, 0.0)),
                Event::For { count: n, .. } => sums.push((count(n, &known), 0.0)),
                Event::While { .. } => sums.push((cost::TRIPS, 0.0)),
                Event::If { .. } => sums.push((1.0, 0.0)),
                Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                    if let (Some((times, inside)), Some((_, around))) = (sums.pop(), sums.last_mut()) {
                        *around += times * inside;
                    }
                }
                Event::Test { .. } | Event::Else { .. } => {}
            }
        }
        sums.pop().map_or(0.0, |(_, sum)| sum)
    }
}

/// How many iterations; a few where that is not known.
fn count(n: &Poly<Reg>, known: &BTreeMap<Reg, i64>) -> f64 {
    if !n.vars().iter().all(|r| known.contains_key(r)) {
        return cost::TRIPS;
    }
    n.eval(|r| known.get(&r).copied().unwrap_or(0)).map_or(0.0, |n| n.max(0) as f64)
}
