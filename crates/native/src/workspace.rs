//! Memory of running code: frames, temporary buffers, the points of a block in lanes.

use crate::parallel::{LEAST_NS, TeamSpace};
use crate::program::{Machine, Program};
use crate::support::Calls;
use chainrule_kernel::{Class, Place};
use chainrule_runtime::lines::PAGE_BYTES;
use chainrule_runtime::{Doubles, Sizes};

/// A cache line; memory in whole lines, so that no vector crosses one.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Words whose first one starts a cache line.
#[derive(Debug)]
pub(crate) struct Lines {
    all: Vec<Line>,
    /// Number of words before the first one.
    start: usize,
}

impl Lines {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { all: vec![Line([0; 8]); bytes.div_ceil(64)], start: 0 }
    }

    /// Returns the same words with the first one at this offset in a page, a multiple of a line.
    pub(crate) fn at(&self, place: usize) -> Self {
        let mut moved = Self::new(self.bytes() + PAGE_BYTES);
        moved.start = place.wrapping_sub(moved.all.as_ptr().addr()) % PAGE_BYTES / 64;
        moved.all.truncate(moved.start + self.all.len() - self.start);
        moved.all[moved.start..].copy_from_slice(&self.all[self.start..]);
        moved
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        64 * (self.all.len() - self.start)
    }

    #[inline]
    pub(crate) fn pointer(&mut self) -> *mut u8 {
        // In bounds: `start` is one of them, or their end.
        self.all.as_mut_ptr().wrapping_add(self.start).cast()
    }

    /// Returns the address behind them.
    pub(crate) fn end(&self) -> usize {
        self.all.as_ptr_range().end.addr()
    }

    pub(crate) fn word(&self, word: usize) -> u64 {
        self.all[self.start + word / 8].0[word % 8]
    }

    #[inline]
    pub(crate) fn set_word(&mut self, word: usize, value: u64) {
        self.all[self.start + word / 8].0[word % 8] = value;
    }

    pub(crate) fn doubles(&self) -> &[f64] {
        let lines = &self.all[self.start..];
        // SAFETY: a line is eight words, `repr(C)`, and any word is a valid double.
        unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), 8 * lines.len()) }
    }

    pub(crate) fn doubles_mut(&mut self) -> &mut [f64] {
        let lines = &mut self.all[self.start..];
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), 8 * lines.len()) }
    }
}

/// Memory of one running program; it fits no other one. Make one for each thread, and reuse it.
pub struct Workspace {
    pub(crate) frame: Lines,
    pub(crate) reals: Doubles,
    pub(crate) ints: Vec<i64>,
    pub(crate) calls: Box<Calls>,
    pub(crate) lanes: Option<LaneSpace>,
    pub(crate) team: Option<TeamSpace>,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lengths = (self.frame.bytes(), self.reals.len(), self.ints.len());
        f.debug_struct("Workspace").field("frame, reals, ints", &lengths).finish_non_exhaustive()
    }
}

/// Memory of a block of points in lanes.
pub(crate) struct LaneSpace {
    pub frame: Lines,
    /// All real buffers, with the lanes of an element adjacent.
    pub tile: Lines,
    /// Start of each buffer in the tile, in doubles.
    pub offsets: Vec<usize>,
}

impl Workspace {
    /// Returns a workspace for single points of these sizes, and for batches one point at a time.
    #[must_use]
    pub fn new(program: &Program, sizes: &Sizes) -> Self {
        let (reals, ints) = sizes.workspace_len();
        Self {
            frame: frame(&program.one),
            reals: Doubles::zeros(reals),
            ints: vec![0; ints],
            calls: Box::new(Calls::new(&program.layout)),
            lanes: None,
            team: None,
        }
    }

    /// Returns a workspace for single points on `threads` threads, if the kernel has parallel loops (see
    /// [`chainrule_kernel::parts`](mod@chainrule_kernel::parts)) that take long enough; results are equal bit for bit
    /// for any number. Compiles the code for threads on the first call. It holds private memory of chunks once for each
    /// thread. Starting threads takes a little memory.
    #[must_use]
    pub fn for_threads(program: &Program, sizes: &Sizes, threads: usize) -> Self {
        Self::for_threads_from(program, sizes, threads, LEAST_NS)
    }

    /// As [`Self::for_threads`] with another minimum time of a loop, in nanoseconds, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn for_threads_from(program: &Program, sizes: &Sizes, threads: usize, least: f64) -> Self {
        let mut workspace = Self::new(program, sizes);
        if threads > 1 {
            let space = |team| TeamSpace::new(team, &program.layout, sizes, threads, least);
            workspace.team = program.team().and_then(space);
        }
        workspace
    }

    /// Returns the number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.team.as_ref().map_or(1, TeamSpace::threads)
    }

    /// Returns a workspace for batches as well, in lanes if the program permits it. Compiles the code for lanes on the
    /// first call.
    #[must_use]
    pub fn for_batch(program: &Program, sizes: &Sizes) -> Self {
        let mut workspace = Self::new(program, sizes);
        if let Some(machine) = program.lanes(sizes) {
            workspace.lanes = Some(LaneSpace::new(machine, program, sizes));
        }
        workspace
    }
}

fn frame(machine: &Machine) -> Lines {
    Lines::new(machine.frame_bytes)
}

impl LaneSpace {
    fn new(machine: &Machine, program: &Program, sizes: &Sizes) -> Self {
        let lanes = machine.lanes();
        let kernel = program.layout.kernel();
        let work = sizes.workspace_len().0;
        let mut next = work * lanes;
        let mut offsets = Vec::with_capacity(kernel.buffers.len());
        for (buffer, (offset, len)) in kernel.buffers.as_slice().iter().zip(sizes.buffers()) {
            offsets.push(match (buffer.class, &buffer.place) {
                (Class::Int, _) => 0,
                (Class::Real, Place::Workspace(_)) => offset * lanes,
                (Class::Real, _) => {
                    next += len * lanes;
                    next - len * lanes
                }
            });
        }
        Self { frame: frame(machine), tile: Lines::new(8 * next), offsets }
    }

    /// Returns whether it has space for these sizes; disjoint buffers of the sizes are also disjoint in it.
    pub(crate) fn fits(&self, machine: &Machine, program: &Program, sizes: &Sizes) -> bool {
        let lanes = machine.lanes();
        let buffers = program.layout.kernel().buffers.as_slice().iter().zip(sizes.buffers()).zip(&self.offsets);
        let mut end = sizes.workspace_len().0 * lanes;
        self.frame.bytes() >= machine.frame_bytes
            && self.offsets.len() == sizes.buffers().len()
            && buffers.filter(|((b, _), _)| b.class == Class::Real).all(|((buffer, (offset, len)), at)| {
                match buffer.place {
                    Place::Workspace(_) => *at == offset * lanes,
                    _ => *at >= std::mem::replace(&mut end, at + len * lanes),
                }
            })
            && 8 * end <= self.tile.bytes()
    }
}
