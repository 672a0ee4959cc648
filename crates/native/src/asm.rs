//! The encoder: instructions of 64-bit x86 to bytes.
//!
//! In: calls, one for each instruction, on an [`Assembler`]. Out: [`Code`], bytes that run wherever they are
//! put on a multiple of 64, constants behind them.
//!
//! It is made for two numbers. *Time*: an instruction is put together in registers and written with one or
//! two stores, without a loop, a table or an allocation. *Length*: code that is long is bound by fetching it,
//! so each instruction takes its shortest form: the 2-byte VEX prefix where it can (also by exchanging
//! the arguments of what commutes), EVEX where it must or where its scaled displacement saves bytes,
//! displacements of one byte, immediates of one byte.
//!
//! | module | owns |
//! | --- | --- |
//! | `operand` | registers, memory, lanes |
//! | `address` | ModRM, SIB and displacements |
//! | `prefix` | the legacy, VEX and EVEX prefixes; which one an instruction takes |
//! | `arithmetic` | doubles: `+ - * /`, FMA, roots, rounding, bits, comparisons, choice |
//! | `moves` | vectors from and to memory, general registers and each other; lanes; conversions |
//! | `mask` | the mask registers of AVX-512 |
//! | `integer` | 64-bit integers in lanes |
//! | `general` | general registers |
//! | `scalar` | arithmetic and moves of scalars again, in fewer steps |
//! | `label` | jumps |
//! | `constant` | the pool of constants |
//!
//! What is wrong to ask for (a 17th register or eight lanes without AVX-512, `rsp` as an index, a label that
//! is never bound) is a bug of the caller: [`Assembler::finish`] tells the first one, and no code comes out.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapters 2 (prefixes,
//! ModRM, SIB; 2.7 for EVEX and its scaled displacement) and 3 to 5 (instructions). Names of instructions are
//! those of the manual without the leading `v` and the endings for the shape.

mod address;
mod arithmetic;
mod constant;
mod general;
mod integer;
mod label;
mod mask;
mod moves;
mod operand;
mod prefix;
mod scalar;
#[cfg(test)]
mod tests;

pub(crate) use arithmetic::{Arith, Fma, FmaOrder, Logic, Predicate, Rounding};
pub(crate) use general::{Alu, Shift};
pub(crate) use integer::{Integer, IntegerPredicate, LaneShift};
pub(crate) use label::{Condition, Label};
pub(crate) use mask::MaskLogic;
pub(crate) use operand::{Gpr, Mask, Mem, Shape, Source, Xmm};
pub(crate) use scalar::Scalar;

use crate::Level;
use crate::room::Room;
use chainrule_base::{Diagnostic, large};
use constant::{Constants, Reference};
use label::Jump;

/// Room that is made sure of before an instruction; the longest takes 15 bytes.
const WINDOW: usize = 32;

/// There is hardly a reference to a constant in less code.
const BYTES_OF_A_REFERENCE: usize = 16;

/// For so many references to constants room is made before they are there, at the most.
const MOST_AT_ONCE: usize = 1 << 22;

/// Machine code in the making.
pub(crate) struct Assembler {
    level: Level,
    /// Code up to `len`, room behind it.
    code: Room,
    len: usize,
    /// Where each label is, or [`label::UNBOUND`].
    labels: Vec<usize>,
    /// Jumps to patch at the end.
    jumps: Vec<Jump>,
    constants: Constants,
    /// Displacements of constants to patch at the end.
    references: Vec<Reference>,
    /// The first wrong thing that was asked for.
    fault: Option<&'static str>,
}

/// Finished code: instructions, then zeros up to a multiple of 64, then the constants. Runs on any multiple of 64.
#[derive(Debug)]
pub(crate) struct Code {
    /// Where it is, with more behind it.
    pub room: Room,
    /// How many bytes it takes.
    pub len: usize,
    /// How many of the bytes are instructions.
    pub instructions: usize,
}

impl Code {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.len.min(self.room.len())]
    }
}

impl Assembler {
    /// Nothing yet; room for a little.
    pub(crate) fn new(level: Level) -> Self {
        Self::with_room(level, 4096, 0)
    }

    /// Nothing yet; room for so many bytes of instructions and so many constants.
    pub(crate) fn with_room(level: Level, bytes: usize, constants: usize) -> Self {
        Self {
            level,
            code: Room::new(bytes + WINDOW + 8 * constants),
            len: 0,
            labels: Vec::new(),
            jumps: Vec::new(),
            constants: Constants::with_capacity(constants),
            references: large::with_capacity((bytes / BYTES_OF_A_REFERENCE).min(MOST_AT_ONCE)),
            fault: None,
        }
    }

    /// The level that instructions are chosen for.
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// How many bytes of instructions there are: where the next one begins.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.len
    }

    /// The code, with all jumps and constants in their places. Time linear in jumps, constants and references.
    ///
    /// # Errors
    /// A limitation, when a jump or a constant is further away than 32 bits say. A bug, when something was
    /// asked for that there is not.
    pub(crate) fn finish(mut self) -> Result<Code, Diagnostic> {
        let (instructions, start) = (self.len, self.len.next_multiple_of(64));
        let len = if self.constants.is_empty() { instructions } else { start + self.constants.len() };
        if len > self.code.ready() {
            self.code.grow(instructions, len);
        }
        // Where the system gave no memory, who makes it executable is told.
        if self.code.is_there() {
            self.patch_jumps()?;
            self.patch_references(start)?;
            if len > instructions {
                self.code[instructions..start].fill(0);
                self.constants.write_to(&mut self.code[start..len]);
            }
        }
        if let Some(fault) = self.fault {
            return Err(
                Diagnostic::bug("the native backend asked for an instruction that there is not").with_reason(fault)
            );
        }
        Ok(Code { room: self.code, len, instructions })
    }

    /// Puts other code behind, with labels and constants of its own. Time linear in what it has.
    pub(crate) fn append(&mut self, other: Self) {
        let (begin, end) = (self.len, self.len + other.len);
        if !other.code.is_there() {
            // That is told at the end.
            self.code = other.code;
        } else if end <= self.code.ready() || self.code.grow(begin, end) {
            self.code[begin..end].copy_from_slice(&other.code[..other.len]);
        }
        self.len = if self.code.is_there() { end } else { 0 };
        let n_labels = self.labels.len() as u32;
        self.labels.extend(other.labels.into_iter().map(|place| label::moved(place, begin)));
        self.jumps.extend(other.jumps.into_iter().map(|jump| jump.moved(begin, n_labels)));
        self.append_constants(other.constants, other.references, begin);
        self.fault = self.fault.or(other.fault);
    }

    /// Remembers the first wrong thing.
    #[cold]
    fn wrong(&mut self, fault: &'static str) {
        self.fault.get_or_insert(fault);
    }

    /// The room for the next instruction, which is filled from the front and then [`advance`](Self::advance)d
    /// over; what is behind its end is written over by the next one.
    #[inline]
    fn window(&mut self) -> &mut [u8; WINDOW] {
        if self.code.ready() - self.len < WINDOW {
            self.grow();
        }
        // SAFETY: there are so many bytes now, if need be at the begin.
        unsafe { self.code.window(self.len) }
    }

    #[inline]
    fn advance(&mut self, bytes: usize) {
        self.len += bytes;
    }

    #[cold]
    fn grow(&mut self) {
        if !self.code.grow(self.len, self.len + WINDOW) {
            // What is written from now on is lost.
            self.len = 0;
        }
    }

    /// Writes `len` bytes of `bytes`, the lowest first; at most 8.
    #[inline]
    fn emit(&mut self, bytes: u64, len: usize) {
        let window = self.window();
        window[..8].copy_from_slice(&bytes.to_le_bytes());
        self.advance(len);
    }
}

/// How far `to` is from `from`, for a field of 32 bits.
///
/// # Errors
/// A limitation, when that does not fit.
fn displacement(from: usize, to: usize) -> Result<i32, Diagnostic> {
    // No memory is so large that this wraps.
    let distance = to.wrapping_sub(from) as i64;
    i32::try_from(distance).map_err(|_| {
        Diagnostic::limitation("the code is too long for this processor's jumps")
            .with_reason(format!(
                "something is {distance} bytes away, and 2147483647 is as far as an instruction reaches"
            ))
            .with_help("cut the function into several, or take the interpreter")
    })
}
