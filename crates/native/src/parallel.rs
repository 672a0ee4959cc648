//! A kernel on several threads: its parallel loops run on as many threads as there are thread-local memories.
//!
//! In: a kernel with parallel loops ([`chainrule_kernel::parts`](mod@chainrule_kernel::parts)), as the pieces made by
//! `split`. Each piece is separate code; parallel ones are entered once for each chunk, with the number of the chunk as
//! a size. Out: the results of sequential execution, bit for bit, for any number of threads.
//!
//! **Memory.** Each thread has a frame for each piece, and a workspace for the buffers that only one piece uses. The
//! calling thread has these buffers in the workspace itself, as in sequential execution.
//!
//! **Failures.** Chunks are handed out in order, so all chunks before a failed one complete; the failure of the first
//! failed chunk is that of sequential execution.

use crate::program::{Machine, Program};
use crate::support::Calls;
use crate::workspace::Lines;
use chainrule_base::{Diagnostic, Id};
use chainrule_kernel::parts::{Piece, Pieces, split};
use chainrule_kernel::weights;
use chainrule_kernel::{BufferId, Class, Kernel, PARTS, predicted_time};
use chainrule_runtime::{Doubles, Layout, RunError, Sizes, in_lines, threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Minimum predicted time of a piece that wakes threads, in nanoseconds: what waking one takes.
pub(crate) const LEAST_NS: f64 = 40_000.0;

/// Maximum number of times that the calling thread looks whether others are done before it sleeps.
const SPINS: usize = 2048;

/// Pieces of a kernel as code.
#[derive(Debug)]
pub(crate) struct Team {
    pieces: Pieces,
    machines: Vec<Machine>,
}

/// Memory of a team for one set of sizes.
pub(crate) struct TeamSpace {
    /// Values of the sizes that it was made for.
    sizes: Vec<i64>,
    /// Whether each piece runs on threads.
    at_once: Vec<bool>,
    reals: Vec<f64>,
    ints: Vec<i64>,
    /// Address of each buffer of the pieces, for the current run.
    pointers: Vec<u64>,
    /// Thread-local memories, the calling thread's first.
    places: Vec<PlaceOfThread>,
}

/// Thread-local memory.
struct PlaceOfThread {
    /// Frame of each piece; empty if another thread runs it.
    frames: Vec<Lines>,
    calls: Box<Calls>,
    reals: Doubles,
    ints: Vec<i64>,
    /// Offsets of the private buffers of each piece in `reals` or `ints`. Empty for the calling thread, which uses the
    /// workspace.
    offsets: Vec<Vec<usize>>,
}

impl Team {
    /// Returns the team of `kernel`, if it has parallel loops.
    pub(crate) fn new(
        kernel: &Kernel,
        machine: impl Fn(&Piece) -> Result<Machine, Diagnostic>,
    ) -> Option<Result<Self, Diagnostic>> {
        let pieces = split(kernel)?;
        let machines = pieces.pieces.iter().map(machine).collect::<Result<_, _>>();
        Some(machines.map(|machines| Self { pieces, machines }))
    }
}

impl TeamSpace {
    /// Returns memory for `threads` threads; `None` if no piece is predicted to take at least
    /// `least` nanoseconds.
    pub(crate) fn new(team: &Team, layout: &Arc<Layout>, sizes: &Sizes, threads: usize, least: f64) -> Option<Self> {
        if threads < 2 {
            return None;
        }
        // Chunks have equal work except the last ones, which may be empty.
        let second = [sizes.values(), &[1]].concat();
        let time = |piece: &Piece| predicted_time(&piece.kernel, Some(&second), weights::of_machine()) * PARTS as f64;
        let is_worth = |piece: &Piece| piece.in_parts && time(piece) >= least;
        let at_once: Vec<bool> = team.pieces.pieces.iter().map(is_worth).collect();
        if !at_once.contains(&true) {
            return None;
        }
        let places = (0..threads.min(PARTS as usize)).map(|t| {
            let is_caller = t == 0;
            let (mut reals, mut ints) = (0, 0);
            let mut offsets = Vec::new();
            let mut frames = Vec::new();
            for ((piece, machine), at_once) in team.pieces.pieces.iter().zip(&team.machines).zip(&at_once) {
                let runs = is_caller || *at_once;
                frames.push(Lines::new(if runs { machine.frame_bytes } else { 0 }));
                let places = if runs && !is_caller { Compact::new(piece, layout, sizes) } else { Compact::default() };
                reals = reals.max(places.reals);
                ints = ints.max(places.ints);
                offsets.push(places.offsets);
            }
            let calls = Box::new(Calls::new(layout));
            PlaceOfThread { frames, calls, reals: Doubles::zeros(reals), ints: vec![0; ints], offsets }
        });
        Some(Self {
            sizes: sizes.values().to_vec(),
            reals: vec![0.0; team.pieces.n_reals],
            ints: vec![0; team.pieces.n_ints],
            pointers: Vec::with_capacity(sizes.buffers().len() + 3),
            places: places.collect(),
            at_once,
        })
    }

    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.places.len()
    }

    /// Returns whether the memory belongs to this team at these sizes.
    pub(crate) fn fits(&self, team: &Team, layout: &Arc<Layout>, sizes: &Sizes) -> bool {
        let own = |place: &PlaceOfThread| Arc::ptr_eq(&place.calls.layout, layout);
        let frames = || self.places.iter().flat_map(|place| place.frames.iter().zip(&team.machines));
        self.sizes == sizes.values()
            && self.at_once.len() == team.machines.len()
            && self.places.iter().all(own)
            && self.reals.len() == team.pieces.n_reals
            && self.ints.len() == team.pieces.n_ints
            && frames().all(|(frame, machine)| frame.bytes() == 0 || frame.bytes() >= machine.frame_bytes)
    }
}

/// Layout of the private buffers of a piece, without the gaps of the workspace. Buffers that share memory still do.
#[derive(Default)]
struct Compact {
    offsets: Vec<usize>,
    reals: usize,
    ints: usize,
}

impl Compact {
    fn new(piece: &Piece, layout: &Layout, sizes: &Sizes) -> Self {
        let mut this = Self { offsets: vec![0; piece.private.len()], ..Self::default() };
        for class in [Class::Real, Class::Int] {
            let own = |b: &BufferId| piece.kernel.buffers[*b].class == class;
            let of_class: Vec<usize> = (0..piece.private.len()).filter(|i| own(&piece.private[*i])).collect();
            let range = |i: &usize| sizes.buffers()[piece.private[*i].index()];
            let ranges: Vec<(usize, usize)> = of_class.iter().map(range).collect();
            let (offsets, n) = in_lines(&ranges, |i| layout.first_in_line(piece.private[of_class[i]]));
            of_class.into_iter().zip(offsets).for_each(|(i, offset)| this.offsets[i] = offset);
            match class {
                Class::Real => this.reals = n,
                Class::Int => this.ints = n,
            }
        }
        this
    }
}

/// Failure of a chunk: its number, and the code's result.
type Failed = Option<(usize, u64)>;

impl Program {
    /// Runs all pieces. `pointer` returns the address of a buffer by its index, or `None` if it is in the workspace,
    /// whose parts start at `reals` and `ints`.
    ///
    /// # Safety
    /// The pointers are of memory as the sizes require, not accessed by others. The sizes are of this program, and the
    /// memory fits the team.
    pub(crate) unsafe fn run_team(
        &self,
        team: &Team,
        space: &mut TeamSpace,
        sizes: &Sizes,
        mut pointer: impl FnMut(usize) -> u64,
    ) -> Result<(), RunError> {
        let TeamSpace { at_once, reals, ints, pointers, places, .. } = space;
        let n = sizes.buffers().len();
        pointers.clear();
        pointers.extend((0..n).map(&mut pointer));
        // The buffer for the number of the chunk is never accessed: the number is a size.
        pointers.resize(n + 3, std::ptr::NonNull::<u64>::dangling().as_ptr() as u64);
        pointers[team.pieces.reals.index()] = reals.as_mut_ptr() as u64;
        let cells = ints.as_mut_ptr();
        pointers[team.pieces.ints.index()] = cells as u64;
        for (p, (piece, machine)) in team.pieces.pieces.iter().zip(&team.machines).enumerate() {
            // SAFETY: these cells are in `ints`, which only pieces write, and none is running now.
            let is_on = |(cell, holds): &(usize, bool)| unsafe { *cells.add(*cell) != 0 } == *holds;
            if !piece.when.iter().all(is_on) {
                continue;
            }
            let n_running = if at_once[p] && threads::are_available() { places.len() } else { 1 };
            let places = &mut places[..n_running];
            for (t, place) in places.iter_mut().enumerate() {
                self.tell(team, p, sizes, pointers, place, t == 0);
            }
            let next = AtomicUsize::new(0);
            let first_failed = AtomicUsize::new(usize::MAX);
            let n_parts = if piece.in_parts { PARTS as usize } else { 1 };
            // SAFETY: the frame describes memory that the code may use (see `tell`). Chunks that run at the same time
            // write different elements, and none reads an element that another one writes, except in private buffers:
            // `Order::Parts` means this. (A saved kernel may claim it falsely; then elements have arbitrary values, but
            // all addresses, which come from checked registers, are inside their buffers.)
            let work = |place: &mut PlaceOfThread| unsafe {
                let mut failed: Failed = None;
                loop {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part >= n_parts || part > first_failed.load(Ordering::Relaxed) {
                        return failed;
                    }
                    let frame = &mut place.frames[p];
                    frame.set_word(machine.size_word(sizes.values().len()), part as u64);
                    let code = machine.enter(frame);
                    if code != 0 {
                        failed = Some((part, code));
                        first_failed.fetch_min(part, Ordering::Relaxed);
                        return failed;
                    }
                }
            };
            let found = match &mut *places {
                [only] => work(only).map(|failed| (0, failed)),
                all => on_threads(all, work),
            };
            if let Some((t, (_, code))) = found {
                let PlaceOfThread { frames, calls, .. } = &mut places[t];
                return Err(self.failed(machine, code, &frames[p], calls));
            }
        }
        Ok(())
    }

    /// Writes the addresses of buffers into the frame of a piece. Private buffers are thread-local, and as long as the
    /// sizes require, as computed by [`Compact`]; the addresses of others are in `pointers`.
    fn tell(&self, team: &Team, p: usize, sizes: &Sizes, pointers: &[u64], place: &mut PlaceOfThread, is_caller: bool) {
        let (piece, machine) = (&team.pieces.pieces[p], &team.machines[p]);
        let PlaceOfThread { frames, calls, reals, ints, offsets } = place;
        let frame = &mut frames[p];
        let lens = sizes.buffers().iter().map(|(_, len)| *len).chain([1, team.pieces.n_reals, team.pieces.n_ints]);
        for (i, (pointer, len)) in pointers.iter().zip(lens).enumerate() {
            machine.tell_buffer(frame, Id::new(i), *pointer, len);
        }
        if !is_caller {
            for (buffer, offset) in piece.private.iter().zip(&offsets[p]) {
                let (_, len) = sizes.buffers()[buffer.index()];
                let range = *offset..*offset + len;
                let pointer = match piece.kernel.buffers[*buffer].class {
                    Class::Real => reals[range].as_mut_ptr() as u64,
                    Class::Int => ints[range].as_mut_ptr() as u64,
                };
                machine.tell_buffer(frame, *buffer, pointer, len);
            }
        }
        let calls = std::ptr::from_mut(&mut **calls);
        self.prepare(machine, sizes, frame, calls);
    }
}

/// Calls `work` for each of the places at the same time, the first one on the calling thread; returns the first failed
/// chunk, with the number of its place.
fn on_threads(
    places: &mut [PlaceOfThread],
    work: impl Fn(&mut PlaceOfThread) -> Failed + Sync,
) -> Option<(usize, (usize, u64))> {
    let mut results: [Failed; PARTS as usize] = [None; PARTS as usize];
    let n_working = AtomicUsize::new(places.len() - 1);
    // In place: the caller starts at once, instead of waking one more thread and waiting for it.
    rayon::in_place_scope(|scope| {
        let mut pairs = places.iter_mut().zip(&mut results);
        let own = pairs.next();
        for (place, result) in pairs {
            let (work, n_working) = (&work, &n_working);
            scope.spawn(move |_| {
                *result = work(place);
                n_working.fetch_sub(1, Ordering::Release);
            });
        }
        if let Some((place, result)) = own {
            *result = work(place);
        }
        // The scope waits asleep, and waking takes longer than the last chunks of most loops.
        for _ in 0..SPINS {
            if n_working.load(Ordering::Acquire) == 0 {
                break;
            }
            std::hint::spin_loop();
        }
    });
    let found = results.iter().enumerate().filter_map(|(t, failed)| Some((t, (*failed)?)));
    found.min_by_key(|(_, (part, _))| *part)
}

#[cfg(test)]
mod tests {
    use crate::{Options, Program, Workspace};
    use chainrule_runtime::Backend;

    #[test]
    fn a_program_without_parts_has_no_team() {
        let kernel = chainrule_backend_tests::filetests::kernel("doubled");
        let Ok(program) = Program::new(kernel.into(), &Options::default()) else { return };
        let sizes = program.bind(&[&[]], &[(0, 1)]).unwrap();
        assert_eq!(Workspace::for_threads(&program, &sizes, 4).threads(), 1);
    }
}
