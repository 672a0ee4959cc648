//! Straight lines of numbers, of which large functions are made: what a [`Plan`](super::plan::Plan) says of them.
//!
//! In: the only block of a kernel that has neither control nor integers. Out: [`Facts`], and the next uses as
//! [`Plan::next`](super::plan::Plan::next) has them; one walk backwards, for instructions are many and fetching each takes as
//! long as looking at it.

use super::inline::is_inline;
use super::pieces::{Crossing, FIRST_SLOT, Piece, n_pieces};
use super::plan::{Facts, NEVER, places};
use chainrule_base::{Id, large};
use chainrule_kernel::{Class, Computed, Instr, Kernel, Reg};

/// What the walk finds.
#[derive(Default)]
pub(super) struct Straight<'k> {
    pub facts: Facts,
    /// See [`Plan`](super::plan::Plan).
    pub next: Vec<u32>,
    pub lazy: Vec<bool>,
    pub pieces: Vec<Piece<'k>>,
    pub crossings: Vec<Crossing>,
    /// How many of the crossing values have slots.
    pub n_slots: u32,
}

/// Whether all registers of a kernel hold numbers.
pub(super) fn has_only_numbers(kernel: &Kernel) -> bool {
    // Without a way out in the middle, which compilers make lanes of.
    kernel.regs.as_slice().iter().fold(true, |all, class| all & (*class == Class::Real))
}

/// Which arguments of an instruction that has so many are asked for, the last one first; unused places repeat the first.
const BACKWARDS: [[usize; 3]; 4] = [[0, 0, 0], [0, 0, 0], [1, 0, 0], [2, 1, 0]];

/// How many arguments a computation has, and above the two lowest bits whether it is a call.
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

/// An instruction asks for so many next uses at most, but for calls of users' functions.
const MOST: usize = 4;

/// Room is made for so many instructions at a time.
const CHUNK: usize = 256;

impl<'k> Straight<'k> {
    /// What there is of the block `instrs`, whose first event has number `first`, of a kernel that [has only numbers](has_only_numbers).
    /// It is cut into pieces; of at most so many instructions, where that is said.
    pub(super) fn new(kernel: &Kernel, first: u32, instrs: &'k [Instr], piece_len: Option<usize>) -> Self {
        // Constants mostly stand before everything else, and are no code.
        let front = instrs.partition_point(|instr| matches!(instr, Instr::Const { .. }));
        let n_others = instrs.len() - front;
        // What may fail jumps to where the last piece ends.
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

/// The walk backwards, where it is.
struct Walk {
    facts: Facts,
    /// The next uses so far; what is behind so many is of no account.
    found: Vec<u32>,
    n_found: usize,
    lazy: Vec<bool>,
    n_events: usize,
    /// The next use of each register.
    next: Vec<u32>,
    /// For each buffer its [place](places), and whether that is written further down.
    places: Vec<(Option<usize>, bool)>,
    /// The event.
    at: u32,
    /// By register: whether it is read in a later piece; empty in the last one.
    is_read_later: Vec<bool>,
    crossings: Vec<Crossing>,
    /// How many of them have slots.
    n_slots: u32,
}

impl Walk {
    fn new(kernel: &Kernel, first: u32, n_instrs: usize) -> Self {
        Self {
            facts: Facts::new(kernel),
            // What is too much of it is never written, and costs nothing.
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

    /// Begins another piece, which comes before.
    fn begin_piece(&mut self) {
        // That those which are defined later are noted too does no harm.
        self.is_read_later.resize(self.next.len(), false);
        self.is_read_later.iter_mut().zip(&self.next).for_each(|(is_read, next)| *is_read |= *next != NEVER);
    }

    /// Notes `dst`, which the event defines, if it is read in a later piece; whether it `waits` there and needs no slot.
    #[inline]
    fn cross(&mut self, dst: Reg, waits: bool) {
        if self.is_read_later.get(dst.index()).is_some_and(|is_read| *is_read) {
            let slot = (!waits).then(|| FIRST_SLOT + self.n_slots);
            self.n_slots += u32::from(!waits);
            self.crossings.push(Crossing { at: self.at, value: dst, slot });
        }
    }

    /// Lays down a next use.
    fn find(&mut self, r: Reg) {
        if self.found.len() == self.n_found {
            self.found.push(NEVER);
        }
        self.found[self.n_found] = self.next[r.index()];
        self.n_found += 1;
    }

    /// Walks over a piece.
    #[inline(never)]
    fn piece(&mut self, instrs: &[Instr]) {
        for chunk in instrs.rchunks(CHUNK) {
            self.found.resize(self.n_found + MOST * chunk.len(), NEVER);
            for instr in chunk.iter().rev() {
                self.at -= 1;
                // Most instructions alike, whatever they do: which comes next is hard to predict.
                if let Some((dst, args, what)) = instr.computes() {
                    let (n, calls) = (N_ARGS[what.index()] & 3, N_ARGS[what.index()] >> 2);
                    let n = usize::from(n);
                    self.facts.calls += u64::from(calls);
                    let [x, y, z] = BACKWARDS[n].map(|i| args[i]);
                    if let Some(places) = self.found[self.n_found..].first_chunk_mut::<MOST>() {
                        places.iter_mut().zip([dst, x, y, z]).for_each(|(place, r)| *place = self.next[r.index()]);
                    }
                    self.n_found += n + 1;
                    self.cross(dst, false);
                    // Unused places repeat the first argument.
                    args.iter().for_each(|r| self.next[r.index()] = self.at);
                    continue;
                }
                self.other(instr);
            }
        }
    }

    /// An instruction that is none of two or three numbers.
    fn other(&mut self, instr: &Instr) {
        match instr {
            Instr::Const { dst, .. } => {
                self.facts.n_constants += 1;
                self.find(*dst);
                self.cross(*dst, true);
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
                self.cross(*dst, waits);
            }
            Instr::External { dst, args, .. } => {
                let before = self.n_found;
                self.facts.calls += 1;
                self.find(*dst);
                args.iter().rev().for_each(|r| self.find(*r));
                args.iter().for_each(|r| self.next[r.index()] = self.at);
                // It may have taken the room of those that come.
                self.found.resize(self.found.len() + (self.n_found - before), NEVER);
            }
            // All others have to do with integers.
            _ => {}
        }
    }
}
