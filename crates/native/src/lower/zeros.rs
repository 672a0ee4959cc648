//! Many zeros in few stores.
//!
//! A Jacobian often has more zeros than entries, and a schedule stores them one after the other. Of one point they go
//! out four or eight in a store, which costs as much as one: it is code that large functions are bound by.
//!
//! A wide store may also cover what lies between zeros, where nothing of the buffer has been written yet: what it
//! writes there is overwritten later, or was never to be defined. So it is done for the first stores to a buffer
//! outside of loops; elsewhere only zeros that lie beside each other go together.

use super::frame::lanes;
use super::plan::{Home, NEVER};
use super::registers::Copy;
use super::{Result, Writer};
use crate::asm::{Shape, Xmm};
use crate::level::Level;
use chainrule_base::{Id, Poly};
use chainrule_kernel::{BufferId, Instr, Reg};

/// Fewer stores are not worth looking at.
const FEW: usize = 4;

/// Room for so many elements is made at once.
const ROOM: usize = 64;

impl Writer<'_> {
    /// Writes the stores of zero to known elements of one buffer that `instrs` begin with, the first of which has number
    /// `at`; how many these are, or 0 where there is no such run.
    pub(super) fn zeros(&mut self, at: u32, instrs: &[Instr]) -> Result<usize> {
        if self.shape != Shape::One || self.points != Shape::One {
            return Ok(0);
        }
        let Some((value, buffer)) = instrs.first().and_then(|instr| self.zero_store(instr)) else { return Ok(0) };
        let element = |instr: &Instr| match instr {
            Instr::Store { buffer: b, at, value: v } if *b == buffer && *v == value => at.as_constant(),
            _ => None,
        };
        // Most runs are short: of these no list is made.
        if instrs.iter().map_while(element).take(FEW).count() < FEW {
            return Ok(0);
        }
        let mut elements: Vec<i64> = Vec::with_capacity(ROOM);
        elements.extend(instrs.iter().map_while(element));
        let done = elements.len();
        let mut next = NEVER;
        for _ in &elements {
            next = self.next_use();
        }
        elements.sort_unstable();
        elements.dedup();
        let x = self.in_register(value, next)?;
        let untouched = self.loops.is_empty() && self.plan.facts.of_buffers[buffer.index()].first_store == at;
        let len = self.kernel.buffers[buffer].len.as_constant().filter(|_| untouched);
        let wide = if self.level == Level::Avx512 { Shape::Eight } else { Shape::Four };
        let width = lanes(wide) as i64;
        let mut rest = elements.as_slice();
        while let Some(first) = rest.first() {
            // The register was made by `vxorps`, so its upper lanes are zero too.
            let beside = rest.iter().zip(*first..).take_while(|(element, expected)| *element == expected).count();
            let (start, shape) = match len {
                // From where lines of the cache may begin: a store over two takes longer.
                Some(len) if len >= width => ((*first / width * width).min(len - width), wide),
                _ if beside >= lanes(wide) => (*first, wide),
                _ => (*first, Shape::One),
            };
            let end = start + lanes(shape) as i64;
            self.store_zero(buffer, start, end, shape, x)?;
            rest = &rest[rest.partition_point(|element| *element < end)..];
        }
        self.release(value, next);
        Ok(done)
    }

    fn store_zero(&mut self, buffer: BufferId, start: i64, end: i64, shape: Shape, x: Xmm) -> Result<()> {
        // Both ends are looked at, so that what lies between is inside too.
        let _ = self.address(buffer, &Poly::constant(end - 1))?;
        let mem = self.address(buffer, &Poly::constant(start))?;
        self.asm.store(shape, mem, x);
        Ok(())
    }

    /// The value and the buffer, when this stores +0 to a known element.
    fn zero_store(&self, instr: &Instr) -> Option<(Reg, BufferId)> {
        let Instr::Store { buffer, at, value } = instr else { return None };
        let Copy::Constant(literal) = self.registers.copy(*value) else { return None };
        at.as_constant()?;
        let is_zero = self.literals[literal as usize].bits == 0 && self.plan.home(value.index()) == Home::Local;
        is_zero.then_some((*value, *buffer))
    }
}
