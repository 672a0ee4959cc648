//! Builder of a kernel: registers, code, buffers with their live ranges.
//!
//! **Lives.** A frame is a block that is being lowered. A buffer belongs to the frame that is innermost
//! when it is made, and dies after the last statement of that block which can see a variable whose
//! value lies in it; at the latest with the frame. So a buffer that is made outside of a loop outlives
//! the loop, and one that is made inside lives in one iteration.

use super::layout::{Leaf, View, product};
use crate::kernel::{Buffer, BufferId, Class, Condition, Instr, NEGATIVE_SIZE, Place, Reg, Stmt};
use crate::memory::Planner;
use crate::registers::Registers;
use chainrule_base::{Arena, Diagnostic, Diagnostics, Poly, Span};
use chainrule_ir::bound::{bound, range_of, range_of_index};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of loop indices that a proof of non-negativity replaces.
const MAX_INDICES: usize = 4;

/// Maximum coefficient of an index in an address: times the length of a row it fits into 64 bits.
const MAX_STRIDE: u64 = 1 << 31;

/// Known range of an `Int` register.
pub(super) type Range = chainrule_ir::bound::Range<Reg>;

/// Block that is being lowered.
#[derive(Default)]
struct Frame {
    /// Index of the current statement.
    stmt: usize,
    /// Buffers by the statement after which they may be dead; see [`Builder::deaths`].
    ends: BTreeMap<usize, Vec<BufferId>>,
}

/// Code of a body that is being lowered.
#[derive(Default)]
struct Code {
    stmts: Vec<Stmt>,
    /// Polynomials that are not negative where this code runs.
    non_negative: Vec<Poly<Reg>>,
}

/// The kernel under construction.
#[derive(Default)]
pub(super) struct Builder {
    pub regs: Registers,
    pub buffers: Arena<BufferId, Buffer>,
    pub requires: Vec<Condition>,
    pub failures: Vec<(String, Option<Span>)>,
    pub errors: Diagnostics,
    /// Source span of the integers that are computed next.
    pub origin: Option<Span>,
    pub memory: Planner,
    /// Buffers that are zero throughout their life, so that adding them is a no-op.
    pub zeros: BTreeSet<BufferId>,
    /// Registers with a constant 0, or -0; likewise.
    pub zero_numbers: BTreeSet<Reg>,
    ranges: Arena<Reg, Range>,
    /// Indices of loops, with their trip counts.
    indices: BTreeMap<Reg, Poly<Reg>>,
    /// Sizes that are the larger of a polynomial and 0, in the order of their definition.
    pub naturals: Vec<(Reg, Poly<Reg>)>,
    /// Open code, innermost last: first the body of the kernel, then those of loops and branches.
    code: Vec<Code>,
    frames: Vec<Frame>,
    /// For each buffer of the workspace: its frame, and the statement there after which it is dead.
    deaths: Arena<BufferId, Option<(usize, usize)>>,
}

impl Builder {
    pub fn reg(&mut self, class: Class) -> Reg {
        self.push_reg(class, Range::default())
    }

    /// Returns a new `Int` register with a known range.
    pub fn ranged(&mut self, range: Range) -> Reg {
        self.push_reg(Class::Int, range)
    }

    fn push_reg(&mut self, class: Class, range: Range) -> Reg {
        self.ranges.push(range);
        self.regs.push(class)
    }

    pub fn range(&self, reg: Reg) -> Range {
        self.ranges[reg].clone()
    }

    pub fn set_non_negative(&mut self, reg: Reg) {
        self.ranges[reg].non_negative = true;
    }

    fn computed_here(&mut self, r: Reg) {
        if let Some(span) = self.origin {
            self.regs.computed_at(r, span);
        }
    }

    /// Returns the index register of a loop of `count` iterations.
    pub fn index(&mut self, count: &Poly<Reg>) -> Reg {
        let index = self.ranged(range_of_index(count, |reg| self.range(reg)));
        if count.as_constant().is_none() {
            self.computed_here(index);
        }
        self.indices.insert(index, count.clone());
        index
    }

    /// Emits a check of `0 <= at < len` and returns the index for later use. An index that is linear in loop indices
    /// stays a polynomial, so that addresses can be strength-reduced. Any other index is computed here, once, with a
    /// known range.
    pub fn checked(&mut self, at: Poly<Reg>, len: Poly<Reg>, failure: usize) -> Poly<Reg> {
        let index = self.int(&at);
        self.instr(Instr::CheckIndex { index, len, failure });
        let is_even = at.terms().all(|(monomial, c)| {
            if c.unsigned_abs() > MAX_STRIDE {
                return false;
            }
            let mut others = monomial.iter().filter(|r| !self.ranges[**r].is_size);
            others.next().is_none_or(|r| self.indices.contains_key(r)) && others.next().is_none()
        });
        if is_even { at } else { Poly::var(index) }
    }

    /// Returns whether `0 <= at < len` holds for all sizes, in every iteration of the loops around.
    pub fn is_surely_inside(&self, at: &Poly<Reg>, len: &Poly<Reg>) -> bool {
        self.is_never_negative(at) && self.is_never_negative(&len.sub(at).sub(&Poly::constant(1)))
    }

    /// Returns whether `number` is provably not negative. A subtracted index is at most the trip count of its loop less
    /// one.
    fn is_never_negative(&self, number: &Poly<Reg>) -> bool {
        let mut least = number.clone();
        for _ in 0..MAX_INDICES {
            let subtracted = least.terms().find_map(|(monomial, c)| match monomial {
                [reg] if c < 0 => self.indices.get(reg).map(|count| (*reg, c, count)),
                _ => None,
            });
            let Some((reg, c, count)) = subtracted else { break };
            let largest = count.sub(&Poly::constant(1));
            least = least.add(&largest.sub(&Poly::var(reg)).scale(c));
        }
        least.terms().all(|(monomial, c)| c > 0 && monomial.iter().all(|reg| self.ranges[*reg].non_negative))
    }

    /// Returns a register with the truth value of `0 <= at < len`; `failure` is for operators, which here never fail.
    pub fn is_inside(&mut self, at: &Poly<Reg>, len: &Poly<Reg>, failure: usize) -> Reg {
        let (at_reg, len) = (self.int(at), self.int(len));
        let is_below = self.reg(Class::Int);
        self.instr(Instr::IntOp { dst: is_below, op: Op::Lt, args: [at_reg, len, at_reg], failure });
        if self.is_never_negative(at) {
            return is_below;
        }
        let (zero, is_above, both) = (self.int(&Poly::zero()), self.reg(Class::Int), self.reg(Class::Int));
        self.instr(Instr::IntOp { dst: is_above, op: Op::Le, args: [zero, at_reg, zero], failure });
        self.instr(Instr::Op { dst: both, op: Op::And, args: [is_below, is_above, is_below] });
        both
    }

    pub fn instr(&mut self, instr: Instr) {
        if let Some(Stmt::Straight(instrs)) = self.code.last_mut().and_then(|code| code.stmts.last_mut()) {
            instrs.push(instr);
        } else {
            self.stmt(Stmt::Straight(vec![instr]));
        }
    }

    pub fn stmt(&mut self, stmt: Stmt) {
        if let Some(code) = self.code.last_mut() {
            code.stmts.push(stmt);
        }
    }

    pub fn open_code(&mut self) {
        self.code.push(Code::default());
    }

    /// Opens the code of the loop with this index, which runs only if its trip count is at least 1.
    pub fn open_loop(&mut self, index: Reg) {
        let runs = self.indices.get(&index).map(|count| count.sub(&Poly::constant(1)));
        self.code.push(Code { stmts: Vec::new(), non_negative: runs.into_iter().collect() });
    }

    pub fn close_code(&mut self) -> Vec<Stmt> {
        self.code.pop().unwrap_or_default().stmts
    }

    pub fn failure(&mut self, message: String, span: Option<Span>) -> usize {
        self.failures.push((message, span));
        self.failures.len() - 1
    }

    /// Returns a register that holds the integer `value`.
    pub fn int(&mut self, value: &Poly<Reg>) -> Reg {
        if let Some(reg) = value.as_var() {
            return reg;
        }
        let dst = self.reg(Class::Int);
        if value.as_constant().is_none() {
            self.computed_here(dst);
        }
        self.instr(Instr::Int { dst, value: value.clone() });
        dst
    }

    /// Returns the register of a scalar leaf.
    pub fn scalar(&mut self, leaf: &Leaf) -> Reg {
        match leaf {
            Leaf::Reg(reg) => *reg,
            Leaf::Int(value) => self.int(value),
            Leaf::Array(view) => {
                self.bug("an array stands where a number belongs");
                self.load(&view.row(&Poly::zero()))
            }
            Leaf::Delivered => {
                self.bug("what was added elsewhere is used");
                self.reg(Class::Real)
            }
        }
    }

    /// Loads the first element of `view`.
    pub fn load(&mut self, view: &View) -> Reg {
        let dst = self.reg(self.buffers[view.buffer].class);
        self.instr(Instr::Load { dst, buffer: view.buffer, at: view.offset.clone() });
        dst
    }

    /// Copies `leaf` to `to`, unless it is there already.
    pub fn settle(&mut self, leaf: &Leaf, to: &View) {
        match leaf {
            Leaf::Array(from) if from == to => {}
            Leaf::Delivered => self.bug("what was added elsewhere is wanted"),
            Leaf::Array(from) => self.stmt(copy(from, to)),
            Leaf::Reg(_) | Leaf::Int(_) => {
                let value = self.scalar(leaf);
                self.instr(Instr::Store { buffer: to.buffer, at: to.offset.clone(), value });
            }
        }
    }

    /// Copies `from`, which is written anew before it is read again, to `to`.
    pub fn shift(&mut self, from: &View, to: &View) {
        let mut stmt = copy(from, to);
        if let Stmt::Copy { is_move, .. } = &mut stmt {
            *is_move = true;
        }
        self.stmt(stmt);
    }

    pub fn bug(&mut self, what: &str) {
        self.errors.push(Diagnostic::bug("a function cannot be lowered").with_reason(what));
    }

    pub fn open_frame(&mut self) {
        self.frames.push(Frame::default());
    }

    /// Ends the live ranges of all buffers of the innermost frame.
    pub fn close_frame(&mut self) {
        self.end_of_stmt(usize::MAX);
        self.frames.pop();
    }

    pub fn start_of_stmt(&mut self, idx: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.stmt = idx;
        }
    }

    /// Ends the live ranges of the buffers that nothing after statement `idx` can access.
    pub fn end_of_stmt(&mut self, idx: usize) {
        loop {
            let Some(entry) = self.frames.last_mut().and_then(|frame| frame.ends.first_entry()) else { return };
            if *entry.key() > idx {
                return;
            }
            let (end, ids) = entry.remove_entry();
            for id in ids {
                if self.deaths[id].is_none_or(|(_, death)| death != end) {
                    continue;
                }
                self.deaths[id] = None;
                if let Buffer { class, len, place: Place::Workspace(offset) } = &self.buffers[id] {
                    self.memory.release(*class, len, offset.clone());
                }
            }
        }
    }

    /// Keeps a buffer of the innermost frame alive until after statement `idx`.
    pub fn keep(&mut self, id: BufferId, idx: usize) {
        let innermost = self.frames.len();
        if let (Some((frame, death)), Some(top)) = (&mut self.deaths[id], self.frames.last_mut())
            && *frame == innermost
            && *death < idx
        {
            *death = idx;
            top.ends.entry(idx).or_default().push(id);
        }
    }

    /// Returns the buffer of an argument or a result.
    pub fn port_buffer(&mut self, class: Class, shape: &[Poly<Reg>], place: Place) -> BufferId {
        self.deaths.push(None);
        self.buffers.push(Buffer { class, len: product(shape), place })
    }

    /// Returns a new array in the workspace, live until the end of the current statement.
    pub fn array(&mut self, class: Class, dims: Vec<Poly<Reg>>, span: Option<Span>) -> View {
        let size = product(&dims);
        let len = match bound(&size, |reg| self.range(reg)) {
            Some(b) => {
                for natural in &b.assuming {
                    if !self.requires_here(natural, span) {
                        self.check_non_negative(natural, span);
                    }
                }
                if b.non_negative || self.requires_here(&b.len, span) {
                    b.len
                } else {
                    self.check_non_negative(&size, span);
                    self.natural(&b.len)
                }
            }
            None => {
                let mut diagnostic = Diagnostic::limitation("the size of an array is computed while the function runs")
                    .with_reason("all memory is planned before the function runs, from the sizes of its arguments")
                    .with_help(
                        "make the array as long as it can become, a size known from the arguments, and use a part",
                    );
                if let Some(span) = span {
                    diagnostic = diagnostic.with_label(span, "how long this array is cannot be known at entry");
                }
                self.errors.push(diagnostic);
                Poly::zero()
            }
        };
        let offset = self.memory.place(class, &len);
        let buffer = self.buffers.push(Buffer { class, len, place: Place::Workspace(offset) });
        let depth = self.frames.len();
        let frame = self.frames.last_mut();
        let stmt = frame.as_ref().map_or(0, |frame| frame.stmt);
        self.deaths.push(Some((depth, stmt)));
        if let Some(frame) = frame {
            frame.ends.entry(stmt).or_default().push(buffer);
        }
        View { buffer, offset: Poly::zero(), dims }
    }

    /// Returns whether `view` is a whole array of the workspace, made in the innermost block.
    pub fn is_own(&self, view: &View) -> bool {
        let Buffer { len, place: Place::Workspace(_), .. } = &self.buffers[view.buffer] else { return false };
        let innermost = self.frames.len();
        let (made, viewed) = (self.naturals.iter().find(|(reg, _)| Some(*reg) == len.as_var()), view.len());
        view.offset.is_zero()
            && (viewed == *len || made.is_some_and(|(_, of)| viewed == *of))
            && self.deaths[view.buffer].is_some_and(|(frame, _)| frame == innermost)
    }

    /// Requires that there can be an array of these extents: none is negative, unless one outside of it is 0.
    pub fn require_extents(&mut self, shape: &[Poly<Reg>], span: Option<Span>) {
        for (n, extent) in (1..).zip(shape) {
            let is_required = self.requires.iter().any(|c| !c.exactly_zero && c.size == *extent);
            if !is_required && !range_of(extent, |reg| self.range(reg)).non_negative {
                self.require_non_negative(&product(&shape[..n]), span);
            }
        }
    }

    fn is_required(&self, size: &Poly<Reg>) -> bool {
        self.requires.iter().any(|c| !c.exactly_zero && c.size == *size)
    }

    fn require_non_negative(&mut self, size: &Poly<Reg>, span: Option<Span>) {
        if !self.is_required(size) {
            let message = NEGATIVE_SIZE.to_owned();
            self.requires.push(Condition { size: size.clone(), exactly_zero: false, message, span });
        }
    }

    /// Returns whether `size` is required not to be negative at entry. If the code that follows always runs, requires
    /// it.
    fn requires_here(&mut self, size: &Poly<Reg>, span: Option<Span>) -> bool {
        if self.code.len() <= 1 {
            self.require_non_negative(size, span);
        }
        self.is_required(size)
    }

    /// Emits a check that `size` is not negative, unless that is known where the code that follows runs.
    fn check_non_negative(&mut self, size: &Poly<Reg>, span: Option<Span>) {
        let known = self.code.iter().flat_map(|code| &code.non_negative);
        if known.into_iter().any(|known| self.is_never_negative(&size.sub(known))) {
            return;
        }
        let failure = self.failure(NEGATIVE_SIZE.to_owned(), span);
        let index = self.int(size);
        self.instr(Instr::CheckIndex { index, len: size.add(&Poly::constant(1)), failure });
        if let Some(code) = self.code.last_mut() {
            code.non_negative.push(size.clone());
        }
    }

    /// Returns a size that is the larger of `size` and 0, so that arrays that are never made take no memory of others.
    fn natural(&mut self, size: &Poly<Reg>) -> Poly<Reg> {
        let found = self.naturals.iter().find(|(_, of)| of == size);
        let reg = match found {
            Some((reg, _)) => *reg,
            None => {
                let reg = self.ranged(Range { is_size: true, non_negative: true, ..Range::default() });
                self.naturals.push((reg, size.clone()));
                reg
            }
        };
        Poly::var(reg)
    }
}

/// Returns the copy of `from` to `to`.
fn copy(from: &View, to: &View) -> Stmt {
    let element = |view: &View| (view.buffer, view.offset.clone());
    Stmt::Copy { to: element(to), from: element(from), len: to.len(), is_move: false }
}
