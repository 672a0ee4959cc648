//! Copies: of few elements as moves, of rows as a loop of moves, of all others as a call.

use super::frame::{Header, lanes};
use super::{Overflow, Result, SCRATCH, Site, Writer};
use crate::asm::{Alu, Condition, Gpr, Mem, Shape, Shift, Xmm};
use crate::level::Level;
use chainrule_base::Poly;
use chainrule_kernel::{BufferId, Class, Place as In, Reg};

/// A position of elements: the first one in a buffer.
type Place = (BufferId, Poly<Reg>);

/// Maximum number of elements that are copied by moves; others are calls.
const MAX_SHORT_COPY: i64 = 128;

/// Returns whether so many elements are copied by moves.
fn is_short(len: &Poly<Reg>) -> bool {
    len.as_constant().is_some_and(|n| (0..=MAX_SHORT_COPY).contains(&n))
}

/// Returns whether elements are copied by a call. A row, whose length is a single integer, is not: a loop takes less
/// time than the call. Within one buffer, source and destination may overlap.
/// places may overlap.
pub(super) fn is_call(to: &Place, from: &Place, len: &Poly<Reg>) -> bool {
    !is_short(len) && (to.0 == from.0 || len.as_var().is_none())
}

impl Writer<'_> {
    pub(super) fn copy(&mut self, at: u32, to: &Place, from: &Place, len: &Poly<Reg>) -> Result<()> {
        if let Some(n) = len.as_constant().filter(|_| is_short(len)) {
            return self.short_copy(to, from, n);
        }
        let numbers = [&to.1, &from.1, len];
        for (i, poly) in (0..).zip(numbers) {
            let value = self.poly(poly, 1, Overflow::Fails)?;
            let mem = self.frame.word(Header::NUMBERS + i);
            self.asm.mov_mr(mem, value);
        }
        if is_call(to, from, len) { self.call_copy(at, to.0, from.0) } else { self.row_copy(to, from, len) }
    }

    /// Copies `n` elements, by the widest vectors that they fill.
    fn short_copy(&mut self, to: &Place, from: &Place, n: i64) -> Result<()> {
        let step = lanes(self.mode.points) as i64;
        let widths = [(Shape::Eight, 8), (Shape::Four, 4), (Shape::One, 1)];
        // Integers of the workspace are stored one by one; a wider load of recent stores would stall.
        let source = &self.kernel.buffers[from.0];
        let is_just_stored = source.class == Class::Int && matches!(source.place, In::Workspace(_)) && step == 1;
        let usable = match self.mode.level {
            _ if is_just_stored => &widths[2..],
            Level::Avx512 => &widths[..],
            Level::Avx2 => &widths[1..],
        };
        let x = self.temporary()?;
        let mut done = 0;
        let place = |this: &mut Self, (buffer, first): &Place, done: i64, last: i64| {
            // Checks both ends.
            let _ = this.address(*buffer, &first.add(&Poly::constant(last)))?;
            this.address(*buffer, &first.add(&Poly::constant(done)))
        };
        // In doubles; an element has one for each point.
        while done < n * step {
            let rest = n * step - done;
            let (shape, width) = usable.iter().copied().find(|(_, width)| *width <= rest).unwrap_or((Shape::One, 1));
            let last = (done + width - 1) / step;
            let mem = place(self, from, done / step, last)?;
            self.asm.load(shape, x, mem);
            let mem = place(self, to, done / step, last)?;
            self.asm.store(shape, mem, x);
            done += width;
            self.addresses.spares.step();
        }
        self.registers.give_back(x);
        self.registers.unlock(x);
        Ok(())
    }

    /// Copies `len` elements by the widest vectors, the remainder by narrower ones. The frame holds destination, source
    /// and number.
    fn row_copy(&mut self, to: &Place, from: &Place, len: &Poly<Reg>) -> Result<()> {
        let [source, target, n] = SCRATCH;
        let x = self.temporary()?;
        let done = self.asm.new_label();
        self.asm.mov_rm(n, self.frame.word(Header::NUMBERS + 2));
        self.asm.test_rr(n, n);
        self.asm.jcc(Condition::LessEqual, done);
        let step = lanes(self.mode.points).trailing_zeros() as u8;
        let is_inside = [to, from].map(|place| self.is_row_inside(place, len));
        if is_inside.contains(&false) {
            // A buffer has at least as many words as elements: no product or sum below overflows.
            self.fail_above(n, to.0);
        }
        self.scale(n, step);
        for (at, (place, is_inside)) in (0..).zip([to, from].into_iter().zip(is_inside)) {
            let first = if at == 0 { target } else { source };
            self.asm.mov_rm(first, self.frame.word(Header::NUMBERS + at));
            if !is_inside {
                self.fail_above(first, place.0);
            }
            self.scale(first, step);
            if !is_inside {
                self.asm.alu_rr(Alu::Add, first, n);
                self.fail_above(first, place.0);
                self.asm.alu_rr(Alu::Sub, first, n);
            }
            self.asm.shift_ri(Shift::Left, first, 3);
            self.asm.alu_rm(Alu::Add, first, self.frame.word(self.plan.words.pointer(place.0)));
        }
        // Batches have no remainder.
        let widest = super::lanes::shape(self.mode.level);
        let width = lanes(widest) as i32;
        let (top, rest) = (self.asm.new_label(), self.asm.new_label());
        self.asm.alu_ri(Alu::Sub, n, width);
        self.asm.jcc(Condition::Less, rest);
        self.asm.bind(top);
        self.move_on(Some(widest), width, x);
        self.asm.alu_ri(Alu::Sub, n, width);
        self.asm.jcc(Condition::GreaterEqual, top);
        self.asm.bind(rest);
        if lanes(self.mode.points) < lanes(widest) {
            self.asm.alu_ri(Alu::Add, n, width);
            let narrower = [(Some(Shape::Four), 4), (None, 2), (Some(Shape::One), 1)];
            for (shape, narrow) in narrower.into_iter().filter(|(_, narrow)| *narrow < width) {
                let fewer = self.asm.new_label();
                self.asm.alu_ri(Alu::Cmp, n, narrow);
                self.asm.jcc(Condition::Less, fewer);
                self.move_on(shape, narrow, x);
                self.asm.alu_ri(Alu::Sub, n, narrow);
                self.asm.bind(fewer);
            }
        }
        self.asm.bind(done);
        self.registers.give_back(x);
        self.registers.unlock(x);
        Ok(())
    }

    /// Returns whether the elements of a copy are proved to be in their buffer.
    fn is_row_inside(&mut self, (buffer, first): &Place, len: &Poly<Reg>) -> bool {
        let after = self.kernel.buffers[*buffer].len.sub(first).sub(len);
        self.mode.in_range.is_some()
            || (self.integers.ranges.is_at_least_zero(first) && self.integers.ranges.is_at_least_zero(&after))
    }

    /// Converts elements to words; emits nothing for one point.
    fn scale(&mut self, g: Gpr, bits: u8) {
        if bits > 0 {
            self.asm.shift_ri(Shift::Left, g, bits);
        }
    }

    /// Fails if `place`, in words, is negative or past the end of `buffer`.
    fn fail_above(&mut self, place: Gpr, buffer: BufferId) {
        let label = self.site(Site::Outside, &[]);
        let len = self.frame.word(self.plan.words.length(buffer));
        self.asm.alu_rm(Alu::Cmp, place, len);
        self.asm.jcc(Condition::Above, label);
    }

    /// Copies as many words as `shape` has, or a pair, and advances past them.
    fn move_on(&mut self, shape: Option<Shape>, words: i32, x: Xmm) {
        let [source, target, _] = SCRATCH;
        let [from, to] = [source, target].map(|base| Mem::At { base, disp: 0 });
        if let Some(shape) = shape {
            self.asm.load(shape, x, from);
            self.asm.store(shape, to, x);
        } else {
            self.asm.load_pair(x, from);
            self.asm.store_pair(to, x);
        }
        self.asm.alu_ri(Alu::Add, source, 8 * words);
        self.asm.alu_ri(Alu::Add, target, 8 * words);
    }
}
