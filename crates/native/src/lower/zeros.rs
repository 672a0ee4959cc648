//! Results that are zero, in few stores.
//!
//! A Jacobian often has more zeros than entries. Of one point they go out four or eight in a store, which costs as much as
//! one: it is code that large functions are bound by. They come before anything else, so that a wide store may also cover
//! what lies between them: what it writes there is overwritten later.

use super::frame::lanes;
use super::{Result, Writer, bug};
use crate::asm::{Mem, Shape, Xmm};
use crate::level::Level;
use chainrule_base::Poly;
use chainrule_kernel::BufferId;

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
            let shape = self.widest(len);
            let width = lanes(shape) as i64;
            for element in zeros.elements() {
                if element < done {
                    continue;
                }
                // From where lines of the cache may begin: a store over two takes longer.
                let start =
                    if self.points == Shape::One { (element / width * width).min(len - width) } else { element };
                done = if self.points == Shape::One { start + width } else { element + 1 };
                self.store_zero(buffer, [start, done - 1], len, shape, x)?;
            }
        }
        self.registers.give_back(x);
        self.registers.unlock(x);
        Ok(())
    }

    /// What zeros of `len` elements are stored by.
    fn widest(&self, len: i64) -> Shape {
        match self.points {
            Shape::One if len >= 8 && self.level == Level::Avx512 => Shape::Eight,
            Shape::One if len >= 4 => Shape::Four,
            points => points,
        }
    }

    /// Stores zeros from element `first` to `last`, of a buffer with `len` elements.
    fn store_zero(&mut self, buffer: BufferId, [first, last]: [i64; 2], len: i64, shape: Shape, x: Xmm) -> Result<()> {
        if first < 0 || last >= len {
            return Err(bug("a zero is outside of its buffer"));
        }
        let disp = first.checked_mul(self.element_bytes()).and_then(|disp| i32::try_from(disp).ok());
        let mem = match self.pointers.of(buffer).zip(disp) {
            Some((base, disp)) => Mem::At { base, disp },
            None => self.address(buffer, &Poly::constant(first))?,
        };
        self.asm.store(shape, mem, x);
        Ok(())
    }
}
