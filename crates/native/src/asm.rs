//! The encoder of instructions of 64-bit x86.
//!
//! In: calls, one for each instruction, on an [`Assembler`]. Out: [`Code`], position-independent bytes for any address
//! that is a multiple of 64, with constants behind the instructions.
//!
//! It is designed for two quantities. *Time*: an instruction is assembled in registers and written with one or two
//! stores, without a loop, a table or an allocation. *Length*: long code is bound by instruction fetch, so each
//! instruction takes its shortest form: the 2-byte VEX prefix if possible (also by exchanging operands of commutative
//! instructions), EVEX if necessary or if its scaled displacement saves bytes, displacements of one byte, immediates of
//! one byte.
//!
//! | module | owns |
//! | --- | --- |
//! | `operand` | registers, memory, lanes |
//! | `address` | ModRM, SIB and displacements |
//! | `prefix` | the legacy, VEX and EVEX prefixes, and their selection |
//! | `arithmetic` | doubles: `+ - * /`, FMA, roots, rounding, bits, comparisons, selection |
//! | `moves` | vectors from and to memory, general registers and each other; lanes; conversions |
//! | `mask` | the mask registers of AVX-512 |
//! | `integer` | 64-bit integers in lanes |
//! | `general` | general registers |
//! | `scalar` | arithmetic and moves of scalars again, in fewer steps |
//! | `label` | jumps |
//! | `constant` | the constant pool |
//!
//! Invalid requests (a 17th register or eight lanes without AVX-512, `rsp` as an index, a label that is never bound)
//! are bugs of the caller: [`Assembler::finish`] reports the first one instead of returning code.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapters 2 (prefixes, ModRM, SIB;
//! 2.7 for EVEX and its scaled displacement) and 3 to 5 (instructions). Names of instructions are those of the manual
//! without the leading `v` and the suffixes for the shape.

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
pub(crate) use moves::Half;
pub(crate) use operand::{Gpr, Mask, Mem, Shape, Source, Xmm};
pub(crate) use scalar::Scalar;

use crate::Level;
use crate::room::Room;
use chainrule_base::{Diagnostic, large};
use constant::{Constants, Reference};
use label::Jump;

/// Number of bytes made available before an instruction; the longest takes 15 bytes.
const WINDOW: usize = 32;

/// Minimum number of code bytes for each reference to a constant, for estimates.
const BYTES_OF_A_REFERENCE: usize = 16;

/// Maximum number of references to constants for which memory is reserved in advance.
const MOST_AT_ONCE: usize = 1 << 22;

/// Machine code under construction.
pub(crate) struct Assembler {
    level: Level,
    /// Code up to `len`, with space behind it.
    code: Room,
    len: usize,
    /// Position of each label, or [`label::UNBOUND`].
    labels: Vec<usize>,
    /// Jumps to patch at the end.
    jumps: Vec<Jump>,
    constants: Constants,
    /// Displacements of constants to patch at the end.
    references: Vec<Reference>,
    /// First invalid request.
    fault: Option<&'static str>,
}

/// Finished code: instructions, then zeros up to a multiple of 64, then the constants. Runs at any multiple of 64.
#[derive(Debug)]
pub(crate) struct Code {
    /// Memory of the code, with space behind it.
    pub room: Room,
    /// Size in bytes.
    pub len: usize,
    /// Number of bytes of instructions.
    pub instructions: usize,
}

impl Code {
    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.len.min(self.room.len())]
    }
}

impl Assembler {
    /// Returns an empty assembler with a little space.
    pub(crate) fn new(level: Level) -> Self {
        Self::with_room(level, 4096, 0)
    }

    /// Returns an empty assembler with space for so many bytes of instructions and so many constants.
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

    /// Returns the level of its instructions.
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Returns the number of bytes of instructions, which is the position of the next one.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.len
    }

    /// Returns the code, with all jumps and constants patched. Linear in jumps, constants and references.
    ///
    /// # Errors
    /// A limitation, if a jump or a constant is too far for 32 bits. A bug, after an invalid request.
    pub(crate) fn finish(mut self) -> Result<Code, Diagnostic> {
        let (instructions, start) = (self.len, self.len.next_multiple_of(64));
        let len = if self.constants.is_empty() { instructions } else { start + self.constants.len() };
        if len > self.code.ready() {
            self.code.grow(instructions, len);
        }
        // Without memory from the system, the next stage reports it.
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

    /// Appends other code, with labels and constants of its own. Linear in its size.
    pub(crate) fn append(&mut self, other: Self) {
        let (begin, end) = (self.len, self.len + other.len);
        if !other.code.is_there() {
            // The failure is reported at the end.
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

    /// Records the first invalid request.
    #[cold]
    fn wrong(&mut self, fault: &'static str) {
        self.fault.get_or_insert(fault);
    }

    /// Returns the memory for the next instruction, which is filled from the front and then [`advance`](Self::advance)d
    /// over; bytes behind its end are overwritten by the next one.
    #[inline]
    fn window(&mut self) -> &mut [u8; WINDOW] {
        if self.code.ready() - self.len < WINDOW {
            self.grow();
        }
        // SAFETY: that many bytes are ready, if necessary from the start again.
        unsafe { self.code.window(self.len) }
    }

    #[inline]
    fn advance(&mut self, bytes: usize) {
        self.len += bytes;
    }

    #[cold]
    fn grow(&mut self) {
        if !self.code.grow(self.len, self.len + WINDOW) {
            // The following writes are lost.
            self.len = 0;
        }
    }

    /// Writes the lowest `len` bytes of `bytes`, little-endian; at most 8.
    #[inline]
    fn emit(&mut self, bytes: u64, len: usize) {
        let window = self.window();
        window[..8].copy_from_slice(&bytes.to_le_bytes());
        self.advance(len);
    }
}

/// Returns the distance from `from` to `to`, for a field of 32 bits.
///
/// # Errors
/// A limitation, if it does not fit.
fn displacement(from: usize, to: usize) -> Result<i32, Diagnostic> {
    // No memory is large enough for wrapping.
    let distance = to.wrapping_sub(from) as i64;
    i32::try_from(distance).map_err(|_| {
        Diagnostic::limitation("the code is too long for this processor's jumps")
            .with_reason(format!(
                "something is {distance} bytes away, and 2147483647 is as far as an instruction reaches"
            ))
            .with_help("cut the function into several, or take the interpreter")
    })
}
