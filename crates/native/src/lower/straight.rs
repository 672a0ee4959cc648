//! Straight lines of numbers, of which large functions are made: what a [`Plan`](super::plan::Plan) says of them.
//!
//! In: the only block of a kernel that has neither control nor integers. Out: [`Facts`], and the next uses as
//! [`Plan::next`](super::plan::Plan::next) has them; one walk backwards, for instructions are many and fetching each takes as
//! long as looking at it.

use super::inline::is_inline;
use super::plan::{Facts, NEVER, places};
use chainrule_base::{Id, large};
use chainrule_kernel::{Class, Computed, Instr, Kernel, Reg};

/// What the walk finds.
pub(super) struct Straight {
    pub facts: Facts,
    /// See [`Plan`](super::plan::Plan).
    pub next: Vec<u32>,
    pub lazy: Vec<bool>,
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

impl Straight {
    /// What there is of the block `instrs`, whose first event has number `first`, of a kernel that [has only numbers](has_only_numbers).
    #[inline(never)]
    pub(super) fn new(kernel: &Kernel, first: u32, instrs: &[Instr]) -> Self {
        let mut facts = Facts::new(kernel);
        // What is too much of it is never written, and costs nothing.
        let mut found: Vec<u32> = large::with_capacity(MOST * instrs.len());
        let mut n_found = 0;
        let mut lazy = Vec::new();
        let mut next = large::filled(kernel.regs.len(), NEVER);
        // Whether the place of a buffer is written further down.
        let mut places: Vec<(Option<usize>, bool)> = places(kernel).map(|place| (place, false)).collect();
        let mut at = first + instrs.len() as u32;
        for chunk in instrs.rchunks(CHUNK) {
            found.resize(n_found + MOST * chunk.len(), NEVER);
            for instr in chunk.iter().rev() {
                at -= 1;
                // Most instructions alike, whatever they do: which comes next is hard to predict.
                if let Some((dst, args, what)) = instr.computes() {
                    let (n, calls) = (N_ARGS[what.index()] & 3, N_ARGS[what.index()] >> 2);
                    let n = usize::from(n);
                    facts.calls += u64::from(calls);
                    let [x, y, z] = BACKWARDS[n].map(|i| args[i]);
                    if let Some(places) = found[n_found..].first_chunk_mut::<MOST>() {
                        places.iter_mut().zip([dst, x, y, z]).for_each(|(place, r)| *place = next[r.index()]);
                    }
                    n_found += n + 1;
                    // Unused places repeat the first argument.
                    args.iter().for_each(|r| next[r.index()] = at);
                    continue;
                }
                let before = n_found;
                let mut find = |r: Reg| {
                    if found.len() == n_found {
                        found.push(NEVER);
                    }
                    found[n_found] = next[r.index()];
                    n_found += 1;
                };
                match instr {
                    Instr::Const { dst, .. } => {
                        facts.n_constants += 1;
                        find(*dst);
                    }
                    Instr::Store { buffer, value, .. } => {
                        facts.accesses[buffer.index()] += 1;
                        if let Some(place) = places[buffer.index()].0 {
                            places[place].1 = true;
                        }
                        find(*value);
                        next[value.index()] = at;
                    }
                    Instr::Load { dst, buffer, .. } => {
                        facts.accesses[buffer.index()] += 1;
                        if let Some(place) = places[buffer.index()].0 {
                            if lazy.is_empty() {
                                lazy = vec![false; first as usize + instrs.len()];
                            }
                            // Nothing after it, up to the end, writes there.
                            lazy[at as usize] = !places[place].1;
                        }
                        find(*dst);
                    }
                    Instr::External { dst, args, .. } => {
                        facts.calls += 1;
                        find(*dst);
                        args.iter().rev().for_each(|r| find(*r));
                        args.iter().for_each(|r| next[r.index()] = at);
                        // It may have taken the room of those that come.
                        found.resize(found.len() + (n_found - before), NEVER);
                    }
                    // All others have to do with integers.
                    _ => {}
                }
            }
        }
        found.truncate(n_found);
        Self { facts, next: found, lazy }
    }
}
