//! Zero results, in wide stores.
//!
//! A Jacobian often has more zeros than entries. For one point, four or eight of them are stored at once at the cost of
//! one, and stores bound the code of large functions. They precede all other code, so that a wide store may also cover
//! nonzero results between them, which are overwritten later.

use super::frame::lanes;
use super::{Result, Writer, bug};
use crate::asm::Shape;
use crate::level::Level;
use chainrule_base::Poly;

impl Writer<'_> {
    /// Emits the stores of all zeros of the kernel.
    pub(super) fn zeros(&mut self) -> Result<()> {
        let kernel = self.kernel;
        let Some(first) = kernel.zeros.first() else { return Ok(()) };
        let x = self.temporary()?;
        // All lanes, for any width of stores.
        self.asm.zero(x);
        // All elements of this buffer before `done` are stored.
        let (mut buffer, mut done) = (first.buffer, 0);
        for zeros in &kernel.zeros {
            if zeros.buffer != buffer {
                (buffer, done) = (zeros.buffer, 0);
            }
            let len = kernel.buffers[buffer].len.as_constant().unwrap_or(0);
            let (shape, width) = self.widest(len);
            for element in zeros.elements() {
                if element < done {
                    continue;
                }
                // Aligned to cache lines: a store that crosses one takes longer. The width is a power of two.
                let start = (element & -width).min(len - width);
                done = start + width;
                if start < 0 || element >= done {
                    return Err(bug("a zero is outside of its buffer"));
                }
                let mem = match self.place_of(buffer, start) {
                    Some(mem) => mem,
                    None => self.address(buffer, &Poly::constant(start))?,
                };
                self.asm.store(shape, mem, x);
            }
        }
        self.registers.give_back(x);
        self.registers.unlock(x);
        Ok(())
    }

    /// Returns the widest store for zeros among `len` elements, and the number of elements that it covers; for several
    /// points one element of each.
    fn widest(&self, len: i64) -> (Shape, i64) {
        let shape = match self.mode.points {
            Shape::One if len >= 8 && self.mode.level == Level::Avx512 => Shape::Eight,
            Shape::One if len >= 4 => Shape::Four,
            points => points,
        };
        (shape, if self.mode.points == Shape::One { lanes(shape) as i64 } else { 1 })
    }
}
