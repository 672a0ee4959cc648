//! Loops whose iterations run at once, eight in the lanes of vectors.
//!
//! In: a kernel. Out: the same kernel with some loops cut into blocks of eight iterations, each block a loop marked
//! [`lanes`](crate::Stmt::For), and the rest, which is such a loop of fewer iterations. It is an ordinary kernel: what runs it one after the other computes the same
//! bits as what runs it at once, so every backend agrees.
//!
//! ```text
//! for i in 0..n, s = a then s + f(i)      partial[0..8] = -0.0
//!   f                                     for b in 0..n/8
//!                                           for l in 0..8 at once
//!                                             partial[l] = partial[l] + f(8 b + l)
//!                                         for l in 0..n - 8 (n/8) at once
//!                                           partial[l] = partial[l] + f(8 (n/8) + l)
//!                                         s = a + ((p0 + p4) + (p2 + p6)) + ((p1 + p5) + (p3 + p7))
//! ```
//!
//! **What may run at once** (`body`): control and addresses are the same in all lanes but that addresses are linear in the
//! index; so whole nests of loops run at once, not only the innermost ones, with other loops inside.
//!
//! **What is independent** (`independence`): memory that each iteration has for itself gets eight places instead of one;
//! memory to which iterations add gets eight partial sums, only where there is a whole block: then the last iterations run
//! one after the other, backwards; other memory is written where no other iteration looks.
//!
//! **Branches that go by data** become both sides and a choice in loops that are cut ([`choices`](crate::choices)), if they can.
//!
//! **Sums of little** run one after the other where there is not one whole block: to put eight parts together takes as long.
//!
//! **What iterations add to elements of each other** (`apart`) is added after what is computed at once: elements that differ from
//! lane to lane at once, too, others one by one. Blocks are taken apart for it, and loops in them in which iterations add.
//!
//! **Loops that add to several arrays** by different indices (`distribute`) become a nest for each first.
//!
//! **Several blocks at once** (`jam`), where the body has loops of its own that read what is the same for all, or what all
//! add to.
//!
//! **Several iterations at once** (`tile`) of another loop of the nest, where they read the same; of what is
//! large they read panels (`panel`).
//!
//! **Which loop** (`cost`): of a nest the one where the estimated time is least: an element next to the one before is
//! cheap, an element far away is dear, one that is the same for all is cheap.
//!
//! **What each iteration reads again and again** (`stage`) is copied where it has it for itself; what it writes again and again
//! (`keep`) is copied from there.
//!
//! **Sums** change their order, and with it their last digits: only who allows that (`algebraic`) gets them; the order is
//! fixed, whatever the machine.

mod apart;
pub mod body;
pub(crate) mod cost;
mod distribute;
pub(crate) mod independence;
mod jam;
mod keep;
mod panel;
pub(crate) mod rewrite;
mod stage;
mod tile;

use crate::choices::choosable;
use crate::events::{Event, events};
use crate::kernel::{Instr, Kernel, MAX_BRANCHES, Order, Reg};
use chainrule_base::Id;
use std::collections::{BTreeMap, BTreeSet};

/// Loops that nest deeper than this in each other are not looked at.
const MAX_HEIGHT: usize = 6;

/// Cuts loops of `kernel` for lanes; how many. `reorder`: whether sums may be added in another order. `O(n d)` for loops that
/// nest `d` deep.
pub fn vectorise(kernel: &mut Kernel, reorder: bool) -> usize {
    let has_loops = kernel.body.iter().any(|s| !matches!(s, crate::Stmt::Straight(_) | crate::Stmt::Copy { .. }));
    if !has_loops {
        return 0;
    }
    if reorder {
        distribute::distribute(kernel);
    }
    let (mut read, mut written) = (stage::rows(kernel), keep::rows(kernel));
    if !read.is_empty() || !written.is_empty() {
        let mut near = kernel.clone();
        keep::keep(&mut near, &written);
        stage::stage(&mut near, &read);
        let Plans { chosen, .. } = plans(&near, reorder);
        read.retain(|row| chosen.contains_key(&row.of));
        written.retain(|row| chosen.contains_key(&row.of));
        keep::keep(kernel, &written);
        stage::stage(kernel, &read);
    }
    let Plans { chosen, tiles, choosable } = plans(kernel, reorder);
    rewrite::rewrite(kernel, chosen, tiles, &choosable)
}

/// What is to be done with a kernel.
struct Plans {
    /// The loops to cut, by their indices.
    chosen: BTreeMap<Reg, Plan>,
    /// The loops beside them to tile.
    tiles: tile::Tiles,
    /// The branches in loops that are cut that become choices.
    choosable: BTreeSet<Reg>,
}

fn plans(kernel: &Kernel, reorder: bool) -> Plans {
    let events = events(&kernel.body);
    let spans = Spans::of(&events);
    let choosable = choosable(kernel, &events);
    let legal = independence::legal(kernel, &events, &spans, reorder, Order::Lanes, &choosable);
    let chosen = cost::choose(&kernel.regs, &events, &spans, &legal);
    let tiles = tile::choose(kernel, &events, &spans, &legal, &chosen);
    Plans { chosen, tiles, choosable }
}

/// Where loops begin and end.
#[derive(Default)]
pub(crate) struct Spans {
    /// The closing event of each opening one of a counted loop, by number from 0.
    end: BTreeMap<usize, usize>,
    /// How many loops nest in a loop, itself included.
    height: BTreeMap<usize, usize>,
    /// The loops that are in no other but one that runs in parts.
    outermost: BTreeSet<usize>,
    /// The loops that are in nothing but a few branches.
    top: BTreeSet<usize>,
}

impl Spans {
    pub(crate) fn of(events: &[Event<'_>]) -> Self {
        let mut this = Self::default();
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut loops = 0;
        // The depth of the one that runs in parts.
        let mut parts = None;
        for (at, event) in events.iter().enumerate() {
            if matches!(event, Event::For { .. }) && loops == 0 {
                this.outermost.insert(at);
                if parts.is_none() && open.len() <= MAX_BRANCHES {
                    this.top.insert(at);
                }
            }
            match event {
                Event::For { order: Order::Parts, .. } => parts = Some(open.len()),
                Event::EndFor { .. } if parts == Some(open.len() - 1) => parts = None,
                Event::For { .. } | Event::While { .. } => loops += 1,
                Event::EndFor { .. } | Event::EndWhile { .. } => loops -= 1,
                _ => {}
            }
            match event {
                Event::For { .. } | Event::While { .. } | Event::If { .. } => open.push((at, 0)),
                Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                    let Some((begin, inside)) = open.pop() else { continue };
                    if matches!(event, Event::EndFor { .. }) {
                        this.end.insert(begin, at);
                        this.height.insert(begin, inside + 1);
                    }
                    if let Some((_, height)) = open.last_mut() {
                        *height = (*height).max(inside + 1);
                    }
                }
                _ => {}
            }
        }
        this
    }

    /// The closing event of the loop that opens at `begin`.
    pub(crate) fn end(&self, begin: usize) -> Option<usize> {
        self.end.get(&begin).copied()
    }

    /// The loops that are looked at, outer ones first.
    fn loops(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.end.iter().filter(|(begin, _)| self.height[begin] <= MAX_HEIGHT).map(|(begin, end)| (*begin, *end))
    }
}

/// What is to be done with a loop.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// How its carried registers are put together, in their order.
    pub sums: Vec<independence::Group>,
    /// Buffers that each iteration has for itself.
    pub private: Vec<crate::BufferId>,
    /// Buffers to which the iterations add.
    pub accumulators: Vec<crate::BufferId>,
    /// Buffers to elements of which the iterations add, each to its own or to those of others.
    pub scattered: BTreeSet<crate::BufferId>,
    /// How many blocks are computed at once: 1, or more where that pays.
    pub blocks: i64,
    /// Whether fewer iterations than a block run one after the other.
    pub few_alone: bool,
}

impl Default for Plan {
    fn default() -> Self {
        let (sums, private, accumulators, scattered) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
        Self { sums, private, accumulators, scattered, blocks: 1, few_alone: false }
    }
}

/// Whether `instr` reads `r` as a register, not in a polynomial.
fn reads_directly(instr: &Instr, r: crate::Reg) -> bool {
    match instr {
        Instr::Op { op, args, .. } | Instr::IntOp { op, args, .. } => args[..op.arity()].contains(&r),
        Instr::ToReal { src, .. } => *src == r,
        Instr::CheckIndex { index, .. } => *index == r,
        Instr::Store { value, .. } => *value == r,
        _ => false,
    }
}

/// Stands for registers by their index.
type Stamps<T> = Vec<Option<T>>;

fn get<T: Copy>(stamps: &Stamps<T>, r: crate::Reg) -> Option<T> {
    stamps.get(r.index()).copied().flatten()
}
