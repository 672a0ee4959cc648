//! Vectorisation: loops whose iterations run in the lanes of vectors.
//!
//! In: a kernel. Out: the kernel with some loops cut into blocks of eight iterations, each a loop marked
//! [`lanes`](crate::Stmt::For), and a remainder, which is such a loop of fewer iterations. The result is an ordinary
//! kernel: sequential and vector execution compute the same bits, so that every backend agrees.
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
//! **Uniform control** (`body`): control flow is the same in all lanes, and addresses are linear in the index. Whole
//! nests of loops can therefore run in lanes, not only innermost loops.
//!
//! **Independence** (`independence`): private memory of an iteration gets eight copies. Accumulators in memory get
//! eight partial sums, if there is a whole block; the last iterations then run in sequence, backwards. Other memory is
//! written where no other iteration accesses it.
//!
//! **Loaded truth values** (`loaded`) become comparisons of doubles.
//!
//! **If-conversion** ([`choices`](crate::choices)) of branches on data, in loops that are cut.
//!
//! **Cheap sums** run in sequence if there is no whole block, since the reduction of eight lanes takes as long.
//!
//! **Conflict splitting** (`apart`) of updates to common elements: values are computed in lanes, distinct elements are
//! updated in lanes, all others in sequence.
//!
//! **Tests of factors** (`finite`) of products that are 0 where one factor is 0.
//!
//! **Separation** (`products`) of the products of matrices of one nest.
//!
//! **Loop fission** (`fission`) of products at the start of iterations.
//!
//! **Transposed copies** (`transpose`) of operands of products.
//!
//! **Loop distribution** (`distribute`) of loops that add to several arrays with different indices.
//!
//! **Unroll-and-jam** (`jam`) of blocks whose inner loops read uniform values or add to accumulators.
//!
//! **Register tiling** (`tile`) of another loop of the nest whose iterations read the same elements, with packed panels
//! (`panel`) of large arrays, and few columns in two overlapping blocks (`narrow`).
//!
//! **Unrolling** of loops along rows in lanes (`unroll`), whose elements are then loaded in rows and transposed.
//!
//! **Loop versioning** (`version`) of nests over rows, whose best lane loop depends on the length of the rows.
//!
//! **Additions under a condition** (`additions`) add -0 elsewhere, where their loops then run in lanes.
//!
//! **Loop distribution of recurrences** (`recurrences`), whose costly work without carried values then runs in lanes,
//! and **of rows** (`rows`), whose costly work between loops along them does.
//!
//! **Searches** for the step that decides a maximum, in the lanes of their own loop (`winner`) or one in each lane
//! (`columns`).
//!
//! **Counts** of steps for which a condition holds, and truth values of all steps (`counts`), are carried as
//! doubles.
//!
//! **Loop selection** (`cost`): the loop of a nest with the least estimated cost. Contiguous and uniform elements are
//! cheap, strided elements are costly.
//!
//! **Packing** of rows that an iteration reads (`stage`) or writes (`keep`) repeatedly.
//!
//! **Sums** change their order, and thereby their last digits, so strict semantics do not allow it. The order is
//! fixed and independent of the machine.

mod account;
mod additions;
mod apart;
pub mod body;
mod columns;
pub(crate) mod cost;
mod counts;
mod distribute;
mod finite;
mod fission;
pub(crate) mod independence;
mod jam;
mod keep;
mod loaded;
mod narrow;
mod outside;
mod panel;
mod partial;
mod predict;
mod products;
mod recurrences;
pub(crate) mod rewrite;
mod rows;
mod stage;
mod sweep;
mod tile;
mod time;
mod transpose;
mod triangles;
mod unroll;
mod version;
mod winner;

use crate::choices::choosable;
use crate::events::{Event, events};
use crate::kernel::{Instr, Kernel, MAX_BRANCHES, Order, Reg};
use crate::passes::{Stage, run_stage};
use chainrule_base::Id;
use chainrule_ops::Semantics;
use std::collections::{BTreeMap, BTreeSet};

pub use account::{LoopAccount, LoopForm, account};
pub(crate) use additions::convert_additions;
pub(crate) use columns::search_columns;
pub(crate) use counts::count_in_lanes;
pub(crate) use distribute::distribute;
pub(crate) use finite::test_factors;
pub(crate) use fission::fission;
pub(crate) use loaded::{compare_loaded, selections};
pub use predict::predicted_time;
pub(crate) use products::separate_products;
pub(crate) use recurrences::distribute_recurrences;
pub(crate) use rows::distribute_rows;
pub(crate) use sweep::{is_pure, sweep};
pub use time::time;
pub(crate) use transpose::transpose;
pub(crate) use triangles::triangles;
pub(crate) use unroll::unroll;
pub(crate) use version::version;
pub(crate) use winner::search_rows;

/// Maximum nesting of loops that are analysed.
const MAX_HEIGHT: usize = 6;

/// Vectorises loops of `kernel` and returns the number of lane loops made. Algebraic semantics allow sums in another
/// order. `O(n d)` for loops nested `d` deep.
pub fn vectorise(kernel: &mut Kernel, semantics: Semantics) -> usize {
    let before = n_lane_loops(kernel);
    run_stage(kernel, Stage::Lanes, semantics);
    n_lane_loops(kernel).saturating_sub(before)
}

fn n_lane_loops(kernel: &Kernel) -> usize {
    events(&kernel.body).iter().filter(|event| matches!(event, Event::For { order: Order::Lanes, .. })).count()
}

/// Packs rows that loops to be vectorised access repeatedly.
pub(crate) fn pack(kernel: &mut Kernel, semantics: Semantics) {
    let (mut read, mut written) = (stage::rows(kernel), keep::rows(kernel));
    if read.iter().any(stage::Row::is_unrolled) {
        let Plans { chosen, .. } = plans(kernel, semantics);
        read.retain(|row| !row.is_unrolled() || chosen.contains_key(&row.of));
    }
    if read.is_empty() && written.is_empty() {
        return;
    }
    let mut near = kernel.clone();
    keep::keep(&mut near, &written);
    stage::stage(&mut near, &read);
    let Plans { chosen, .. } = plans(&near, semantics);
    read.retain(|row| chosen.contains_key(&row.of));
    written.retain(|row| chosen.contains_key(&row.of));
    keep::keep(kernel, &written);
    stage::stage(kernel, &read);
}

/// Cuts loops for lanes.
pub(crate) fn cut(kernel: &mut Kernel, semantics: Semantics) {
    let Plans { chosen, tiles, choosable, .. } = plans(kernel, semantics);
    rewrite::rewrite(kernel, chosen, tiles, &choosable);
}

/// Vectorisation plan of a kernel.
struct Plans {
    /// Loops that can be cut, by their indices.
    legal: BTreeMap<Reg, Plan>,
    /// Loops to cut, by their indices.
    chosen: BTreeMap<Reg, Plan>,
    /// Estimated time of an iteration of each loop, by their indices.
    times: BTreeMap<Reg, f64>,
    /// Loops to tile.
    tiles: tile::Tiles,
    /// Conditions of the branches to if-convert.
    choosable: BTreeSet<Reg>,
}

fn plans(kernel: &Kernel, semantics: Semantics) -> Plans {
    let events = events(&kernel.body);
    let spans = Spans::of(&events);
    let choosable = choosable(kernel, &events);
    let legal = independence::legal(kernel, &events, &spans, semantics, Order::Lanes, &choosable);
    let assumed = cost::Trips::new(kernel, &events);
    let nests = cost::Nests { kernel, events: &events, spans: &spans, legal: &legal };
    let (chosen, times) = cost::choose(&nests, &assumed);
    let tiles = tile::choose(&nests, &assumed, &chosen);
    let index = |(begin, plan)| match events[begin] {
        Event::For { index, .. } => Some((index, plan)),
        _ => None,
    };
    let legal = legal.into_iter().filter_map(index).collect();
    Plans { legal, chosen, times, tiles, choosable }
}

/// Extents of loops in the list of events.
#[derive(Default)]
pub(crate) struct Spans {
    /// Closing event of each opening event of a counted loop, by number from 0.
    end: BTreeMap<usize, usize>,
    /// Nesting of loops inside a loop, itself included.
    height: BTreeMap<usize, usize>,
    /// Loops inside no other loop but a parallel one.
    outermost: BTreeSet<usize>,
    /// Loops inside nothing but a few branches.
    top: BTreeSet<usize>,
}

impl Spans {
    pub(crate) fn of(events: &[Event<'_>]) -> Self {
        let mut this = Self::default();
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut loops = 0;
        // Depth of the parallel loop.
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

    /// Returns the closing event of the loop that opens at `begin`.
    pub(crate) fn end(&self, begin: usize) -> Option<usize> {
        self.end.get(&begin).copied()
    }

    /// Iterates over the analysed loops, outer ones first.
    fn loops(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.end.iter().filter(|(begin, _)| self.height[begin] <= MAX_HEIGHT).map(|(begin, end)| (*begin, *end))
    }
}

/// Vectorisation plan of a loop.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Reductions of its carried registers, in order.
    pub sums: Vec<independence::Group>,
    /// Private buffers of an iteration.
    pub private: Vec<crate::BufferId>,
    /// Accumulator buffers.
    pub accumulators: Vec<crate::BufferId>,
    /// Buffers whose elements iterations update, with possible conflicts.
    pub scattered: BTreeSet<crate::BufferId>,
    /// Whether an iteration may add to far fewer elements than there are: arrays for chunks pay only if these have as
    /// many iterations as elements.
    pub adds_rarely: bool,
    /// Number of jammed blocks; 1 for none.
    pub blocks: i64,
    /// Whether fewer iterations than a block run in sequence.
    pub few_alone: bool,
    /// Whether all iterations, more than a block and fewer than two, run in two overlapping blocks.
    pub overlaps: bool,
}

impl Default for Plan {
    fn default() -> Self {
        let (sums, private, accumulators, scattered) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
        let (adds_rarely, few_alone, overlaps) = (false, false, false);
        Self { sums, private, accumulators, scattered, adds_rarely, blocks: 1, few_alone, overlaps }
    }
}

/// Returns whether `instr` reads `r` as a register, not in a polynomial.
fn reads_directly(instr: &Instr, r: crate::Reg) -> bool {
    match instr {
        Instr::Op { op, args, .. } | Instr::IntOp { op, args, .. } => args[..op.arity()].contains(&r),
        Instr::ToReal { src, .. } | Instr::ToInt { src, .. } => *src == r,
        Instr::CheckIndex { index, .. } => *index == r,
        Instr::Store { value, .. } => *value == r,
        _ => false,
    }
}

/// Table by register index.
type Stamps<T> = Vec<Option<T>>;

fn get<T: Copy>(stamps: &Stamps<T>, r: crate::Reg) -> Option<T> {
    stamps.get(r.index()).copied().flatten()
}
