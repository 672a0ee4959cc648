//! Plan of straight-line code on numbers, of which large functions consist: fast version of
//! [`Plan`](super::plan::Plan).
//!
//! In: the only block of a kernel with neither control flow nor integers. Out: [`Facts`], and the next uses as in
//! [`Plan::next`](super::plan::Plan::next). It is a single backward walk, because fetching each of many instructions
//! takes as long as processing it.

use super::inline::is_inline;
use super::pieces::{Crossing, FIRST_SLOT, Piece, n_pieces};
use super::plan::{Facts, NEVER, places};
use chainrule_base::{Id, large};
use chainrule_kernel::{Class, Computed, Instr, Kernel, Reg};

/// Results of the walk.
#[derive(Default)]
pub(super) struct Straight<'k> {
    pub facts: Facts,
    /// See [`Plan`](super::plan::Plan).
    pub next: Vec<u32>,
    pub lazy: Vec<bool>,
    pub pieces: Vec<Piece<'k>>,
    pub crossings: Vec<Crossing>,
    /// Number of crossing values with slots.
    pub n_slots: u32,
}

/// Returns whether all registers of a kernel hold numbers.
pub(super) fn has_only_numbers(kernel: &Kernel) -> bool {
    // Without early exit, so that compilers vectorise it.
    kernel.regs.as_slice().iter().fold(true, |all, class| all & (*class == Class::Real))
}

/// Arguments of an instruction by their number, the last one first; unused entries repeat the first.
const BACKWARDS: [[usize; 3]; 4] = [[0, 0, 0], [0, 0, 0], [1, 0, 0], [2, 1, 0]];

/// Number of arguments of a computation, and above the two lowest bits whether it is a call.
static N_ARGS: [u8; Computed::END] = {
    let mut table = [3; Computed::END];
    let mut i = 0;
    while i < 64 {
        if let Some(op) = Computed::of_index(i) {
            assert!(op.arity() > 0, "unused places repeat the first argument");
            table[i] = op.arity() as u8 | (!is_inline(op) as u8) << 2;
        }
        i += 1;
    }
    table
};

/// Maximum number of next uses of an instruction, except calls of user functions.
const MOST: usize = 4;

/// Number of instructions for which space is reserved at a time.
const CHUNK: usize = 256;

impl<'k> Straight<'k> {
    /// Plans the block `instrs`, whose first event has number `first`, of a kernel that [has only
    /// numbers](has_only_numbers). It is cut into chunks, of at most `piece_len` instructions if given.
    pub(super) fn new(kernel: &Kernel, first: u32, instrs: &'k [Instr], piece_len: Option<usize>) -> Self {
        // Constants mostly come first, and have no code.
        let front = instrs.partition_point(|instr| matches!(instr, Instr::Const { .. }));
        let n_others = instrs.len() - front;
        // Failures jump to the end of the last chunk.
        let n_pieces = if kernel.externals.is_empty() { n_pieces(n_others, piece_len) } else { 1 };
        let mut walk = Walk::new(kernel, first, instrs.len());
        let mut pieces = Vec::new();
        if n_pieces == 1 {
            walk.piece(instrs);
        } else {
            for i in (0..n_pieces).rev() {
                let [from, to] = [i, i + 1].map(|i| if i == 0 { 0 } else { front + i * n_others / n_pieces });
                if to < instrs.len() {
                    walk.begin_piece();
                }
                let (first, instrs) = (first + from as u32, &instrs[from..to]);
                walk.piece(instrs);
                pieces.push(Piece { first, instrs, left: walk.n_found });
            }
            pieces.reverse();
        }
        walk.crossings.reverse();
        walk.found.truncate(walk.n_found);
        let Walk { facts, found: next, lazy, crossings, n_slots, .. } = walk;
        Self { facts, next, lazy, pieces, crossings, n_slots }
    }
}

/// Passage of a value to later chunks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passage {
    /// Through a slot of the stack frame.
    Slot,
    /// The value is in memory anyway.
    Memory,
}

/// State of the backward walk.
struct Walk {
    facts: Facts,
    /// Next uses; only the first `n_found` are valid.
    found: Vec<u32>,
    n_found: usize,
    lazy: Vec<bool>,
    n_events: usize,
    /// Next use of each register.
    next: Vec<u32>,
    /// [Address](places) of each buffer, and whether it is written later.
    places: Vec<(Option<usize>, bool)>,
    /// Current event.
    at: u32,
    /// Whether each register is read in a later chunk; empty in the last one.
    is_read_later: Vec<bool>,
    crossings: Vec<Crossing>,
    /// Number of crossing values with slots.
    n_slots: u32,
}

impl Walk {
    fn new(kernel: &Kernel, first: u32, n_instrs: usize) -> Self {
        Self {
            facts: Facts::new(kernel),
            // Excess capacity is never written, and costs nothing.
            found: large::with_capacity(MOST * n_instrs),
            n_found: 0,
            lazy: Vec::new(),
            n_events: first as usize + n_instrs,
            next: large::filled(kernel.regs.len(), NEVER),
            places: places(kernel).map(|place| (place, false)).collect(),
            at: first + n_instrs as u32,
            is_read_later: Vec::new(),
            crossings: Vec::new(),
            n_slots: 0,
        }
    }

    /// Begins the preceding chunk.
    fn begin_piece(&mut self) {
        // Marking values that are defined later is harmless.
        self.is_read_later.resize(self.next.len(), false);
        self.is_read_later.iter_mut().zip(&self.next).for_each(|(is_read, next)| *is_read |= *next != NEVER);
    }

    /// Records `dst`, which the event defines, if it is read in a later chunk.
    #[inline]
    fn cross(&mut self, dst: Reg, passage: Passage) {
        if self.is_read_later.get(dst.index()).is_some_and(|is_read| *is_read) {
            let slot = (passage == Passage::Slot).then(|| FIRST_SLOT + self.n_slots);
            self.n_slots += u32::from(slot.is_some());
            self.crossings.push(Crossing { at: self.at, value: dst, slot });
        }
    }

    /// Records a next use.
    fn find(&mut self, r: Reg) {
        if self.found.len() == self.n_found {
            self.found.push(NEVER);
        }
        self.found[self.n_found] = self.next[r.index()];
        self.n_found += 1;
    }

    /// Walks over a chunk.
    #[inline(never)]
    fn piece(&mut self, instrs: &[Instr]) {
        for chunk in instrs.rchunks(CHUNK) {
            self.found.resize(self.n_found + MOST * chunk.len(), NEVER);
            for instr in chunk.iter().rev() {
                self.at -= 1;
                // Uniform code for most instructions: the kind of the next one is hard to predict.
                if let Some((dst, args, what)) = instr.computes() {
                    let (n, calls) = (N_ARGS[what.index()] & 3, N_ARGS[what.index()] >> 2);
                    let n = usize::from(n);
                    self.facts.calls += u64::from(calls);
                    let [x, y, z] = BACKWARDS[n].map(|i| args[i]);
                    if let Some(places) = self.found[self.n_found..].first_chunk_mut::<MOST>() {
                        places.iter_mut().zip([dst, x, y, z]).for_each(|(place, r)| *place = self.next[r.index()]);
                    }
                    self.n_found += n + 1;
                    self.cross(dst, Passage::Slot);
                    // Unused operands repeat the first argument.
                    args.iter().for_each(|r| self.next[r.index()] = self.at);
                    continue;
                }
                self.other(instr);
            }
        }
    }

    /// Handles an instruction that is not a computation on two or three numbers.
    fn other(&mut self, instr: &Instr) {
        match instr {
            Instr::Const { dst, .. } => {
                self.facts.n_constants += 1;
                self.find(*dst);
                self.cross(*dst, Passage::Memory);
            }
            Instr::Store { buffer, value, .. } => {
                self.facts.accesses[buffer.index()] += 1;
                if let Some(place) = self.places[buffer.index()].0 {
                    self.places[place].1 = true;
                }
                self.find(*value);
                self.next[value.index()] = self.at;
            }
            Instr::Load { dst, buffer, .. } => {
                self.facts.accesses[buffer.index()] += 1;
                let mut waits = true;
                if let Some(place) = self.places[buffer.index()].0 {
                    if self.lazy.is_empty() {
                        self.lazy = vec![false; self.n_events];
                    }
                    // Nothing after it, up to the end, writes there.
                    waits = !self.places[place].1;
                    self.lazy[self.at as usize] = waits;
                }
                self.find(*dst);
                self.cross(*dst, if waits { Passage::Memory } else { Passage::Slot });
            }
            Instr::External { dst, args, .. } => {
                let before = self.n_found;
                self.facts.calls += 1;
                self.find(*dst);
                args.iter().rev().for_each(|r| self.find(*r));
                args.iter().for_each(|r| self.next[r.index()] = self.at);
                // It may have used the space reserved for the following instructions.
                self.found.resize(self.found.len() + (self.n_found - before), NEVER);
            }
            // All others use integers.
            _ => {}
        }
    }
}
