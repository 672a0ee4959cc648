//! Strided elements, which lanes load and store one by one.

use crate::asm::{Alu, Condition, Gpr, Half, Label, Mem, Shape, Xmm};
use crate::lower::lanes::Across;
use crate::lower::lanes::reversed::is_reversed;
use crate::lower::plan::Number;
use crate::lower::{Result, SCRATCH, Writer};
use chainrule_base::Poly;
use chainrule_kernel::{LANES, Reg};

impl Writer<'_> {
    /// Loads strided elements, the first of them at `mem`, into `d`.
    pub(in crate::lower) fn gather(&mut self, mem: Mem, slope: &Poly<Reg>, d: Xmm) -> Result<()> {
        if is_reversed(slope) {
            return self.load_reversed(mem, d);
        }
        let mut places = self.places(mem, slope)?;
        let mut left = self.n_active();
        self.collect(d, &mut |this, x| {
            if left > 0 {
                left -= 1;
                let mem = places.next(this);
                this.asm.load(Shape::One, x, mem);
            }
        })
    }

    /// Stores the lanes of `x` to strided elements, the first of them at `mem`.
    pub(in crate::lower) fn scatter(&mut self, mem: Mem, across: &Across, x: Xmm) -> Result<()> {
        let Across::Far(slope) = across else { return Err(crate::lower::bug("all lanes write one element")) };
        if is_reversed(slope) && !self.has_mask() {
            return self.store_reversed(mem, x);
        }
        let mut places = self.places(mem, slope)?;
        let (t, u, v) = (self.temporary()?, self.temporary()?, self.temporary()?);
        let (mut from, mut pair) = (x, x);
        let done = self.asm.new_label();
        for lane in 0..self.n_active() {
            if lane % 4 == 0 {
                if self.lanes.shape == Shape::Eight {
                    let half = if lane == 4 { Half::Upper } else { Half::Lower };
                    self.asm.half(Shape::Eight, v, x, half);
                    from = v;
                }
                pair = from;
            } else if lane % 4 == 2 {
                self.asm.half(Shape::Four, t, from, Half::Upper);
                pair = t;
            }
            let mem = places.next_active(self, done);
            if lane % 2 == 0 {
                self.asm.store(Shape::One, mem, pair);
            } else {
                self.asm.permute_pairs(Shape::One, u, pair, 1);
                self.asm.store(Shape::One, mem, u);
            }
        }
        self.asm.bind(done);
        for x in [t, u, v] {
            self.registers.give_back(x);
            self.registers.unlock(x);
        }
        Ok(())
    }

    /// Builds a vector from the results of `element`, which writes the first lane of a register, lane by lane.
    pub(in crate::lower) fn collect(&mut self, d: Xmm, element: &mut dyn FnMut(&mut Self, Xmm)) -> Result<()> {
        let (t, u, v) = (self.temporary()?, self.temporary()?, self.temporary()?);
        let mut four = |this: &mut Self, d: Xmm| {
            element(this, d);
            element(this, t);
            this.asm.unpack_low(Shape::One, d, d, t);
            element(this, t);
            element(this, u);
            this.asm.unpack_low(Shape::One, t, t, u);
            this.asm.insert_half(Shape::Four, d, d, t, Half::Upper);
        };
        four(self, d);
        if self.lanes.shape == Shape::Eight {
            four(self, v);
            self.asm.insert_half(Shape::Eight, d, d, v, Half::Upper);
        }
        for x in [t, u, v] {
            self.registers.give_back(x);
            self.registers.unlock(x);
        }
        Ok(())
    }

    /// Returns the locations of strided elements, the first at `mem`. Uses the first and the third scratch register.
    pub(in crate::lower) fn places(&mut self, mem: Mem, slope: &Poly<Reg>) -> Result<Places> {
        let [rax, _, rdx] = SCRATCH;
        let counted = self.counted();
        if let Some(step) = slope.as_constant().filter(|_| counted.is_none()) {
            let ends =
                |disp: i32| i64::from(disp).checked_add(8 * step * LANES).is_some_and(|d| i32::try_from(d).is_ok());
            if let Mem::At { disp, .. } | Mem::Indexed { disp, .. } = mem
                && ends(disp)
            {
                return Ok(Places { mem, step: 8 * step as i32, by: None, counted, lane: 0 });
            }
        }
        self.asm.lea(rax, mem);
        match slope.as_constant() {
            Some(step) => self.asm.mov_ri(rdx, 8 * step),
            None => {
                let apart = self.apart(slope)?;
                self.number_into(rdx, apart);
            }
        }
        Ok(Places { mem: Mem::At { base: rax, disp: 0 }, step: 0, by: Some(rdx), counted, lane: 0 })
    }
}

/// Locations of strided elements.
pub(in crate::lower) struct Places {
    mem: Mem,
    step: i32,
    /// Register to add to the base instead.
    by: Option<Gpr>,
    /// The number of active lanes, if only known at run time.
    counted: Option<Number>,
    /// Next lane.
    lane: i32,
}

impl Places {
    /// Returns whether the third scratch register is used during the iteration; otherwise the second one may be.
    pub(in crate::lower) fn is_stepped(&self) -> bool {
        self.by.is_some()
    }

    /// Returns the location for the next lane, for loading: for an inactive lane, that of the last active one. If their
    /// number is only known at run time, the second scratch register is used.
    pub(in crate::lower) fn next(&mut self, writer: &mut Writer<'_>) -> Mem {
        let [_, rcx, _] = SCRATCH;
        let lane = self.lane;
        self.lane += 1;
        if lane > 0 {
            match (&mut self.mem, self.by, self.counted) {
                (Mem::At { base, .. }, Some(by), Some(count)) => {
                    writer.asm.lea(rcx, Mem::Indexed { base: *base, index: by, scale: 1, disp: 0 });
                    writer.compare_count(count, lane);
                    writer.asm.cmov_rr(Condition::Greater, *base, rcx);
                }
                (Mem::At { base, .. }, Some(by), None) => writer.asm.alu_rr(Alu::Add, *base, by),
                (Mem::At { disp, .. } | Mem::Indexed { disp, .. }, ..) => *disp += self.step,
                (Mem::Constant(_), ..) => {}
            }
        }
        self.mem
    }

    /// Returns the location for the next lane, for storing; jumps to `done` if the lane is inactive.
    pub(in crate::lower) fn next_active(&mut self, writer: &mut Writer<'_>, done: Label) -> Mem {
        if let Some(count) = self.counted.filter(|_| self.lane > 0) {
            writer.compare_count(count, self.lane);
            writer.asm.jcc(Condition::LessEqual, done);
        }
        let counted = self.counted.take();
        let mem = self.next(writer);
        self.counted = counted;
        mem
    }
}
