//! Results that are zero, in few stores.
//!
//! A Jacobian often has more zeros than entries. Of one point they go out four or eight in a store, which costs as much as
//! one: it is code that large functions are bound by. They come before anything else, so that a wide store may also cover
//! what lies between them: what it writes there is overwritten later.

use super::frame::lanes;
use super::{Result, Writer, bug};
use crate::asm::Shape;
use crate::level::Level;
use chainrule_base::Poly;

impl Writer<'_> {
    /// Writes the stores of all zeros of the kernel.
    pub(super) fn zeros(&mut self) -> Result<()> {
        let kernel = self.kernel;
        let Some(first) = kernel.zeros.first() else { return Ok(()) };
        let x = self.temporary()?;
        // All lanes, whatever is stored.
        self.asm.zero(x);
        // The elements of this buffer up to here are done.
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
                // From where lines of the cache may begin: a store over two takes longer.
                // The width is a power of two.
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

    /// What zeros among `len` elements are stored by, and how many elements that covers: of several points one, of each.
    fn widest(&self, len: i64) -> (Shape, i64) {
        let shape = match self.points {
            Shape::One if len >= 8 && self.level == Level::Avx512 => Shape::Eight,
            Shape::One if len >= 4 => Shape::Four,
            points => points,
        };
        (shape, if self.points == Shape::One { lanes(shape) as i64 } else { 1 })
    }
}
