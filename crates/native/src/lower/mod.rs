//! Lowering of a kernel to machine code.
//!
//! In: a kernel, a level of instructions, the number of points in lanes. Out: [`Lowered`], code with the layout of its
//! frame.
//!
//! | module | owns |
//! | --- | --- |
//! | `plan` | decisions before emission: kinds of values, next uses |
//! | `straight` | the plan of straight-line code on numbers |
//! | `pieces` | chunks of long straight-line code, written by several threads |
//! | `survey` | uses of values, with weights |
//! | `homes` | value locations of globals |
//! | `assign` | register assignment of globals |
//! | `frame` | memory besides the arguments |
//! | `registers` | vector registers of a block: furthest next use is spilled |
//! | `pointers` | pointers of buffers in general registers |
//! | `state` | state of the emission |
//! | `spares` | cached addresses in spare general registers |
//! | `values` | values into registers, to memory and back |
//! | `inline` | operators that are instructions |
//! | `plain` | scalar straight-line emission |
//! | `masks` | truth values in mask registers |
//! | `integers` | integers and addresses |
//! | `lanes` | lane loops of one point |
//! | `strided` | strided elements, one by one |
//! | `rows` | strided records: adjacent elements of each lane |
//! | `varying` | integers that lanes load or compute one by one, and elements at them |
//! | `accumulators` | partial sums in vector registers |
//! | `control` | loops and branches |
//! | `copies` | copies of elements |
//! | `call` | calls |
//! | `zeros` | zero results, in wide stores |
//! | `pairs` | store pairs: two numbers in one store |
//!
//! There are two walks: one backwards for the next uses, one forwards that emits code. Time is linear in the kernel's
//! size, except for sorting the values that outlive their block. The same walk emits code for one point and for several
//! in lanes; only the width of vectors and the stride of elements differ.
//!
//! Every address is either proved to be inside its buffer or checked at run time, so no kernel that the verifier
//! accepts can access other memory, unless the caller has promised that indices are in range ([`InRange`]).

mod call;
mod control;
mod copies;
pub(crate) mod frame;
mod inline;
mod integers;
mod lanes;
mod masks;
mod pairs;
mod pieces;
mod plain;
mod plan;
mod pointers;
mod registers;
mod spares;
mod state;
mod straight;
mod values;
mod zeros;

use lanes::{accumulators, rows, spread, varying};
use plan::{assign, homes, spans, survey};

pub(crate) use frame::{FrameLayout, Header, Words, lanes as n_lanes};

use crate::asm::{Alu, Assembler, Code, Condition, Gpr, Label, Shape};
use crate::level::Level;
use crate::program::Options;
use chainrule_base::{Diagnostic, Id, Poly};
use chainrule_kernel::{BufferId, Class, Event, Instr, Kernel, Reg};
use chainrule_ops::Op;
use chainrule_runtime::{InRange, Overflow, Site};
use lanes::Across;
use plan::{Home, KeptAt, Kind, LoopPlan, Number, Plan, Stretch};
use pointers::Pointers;
use registers::{Copy, Registers};
use rows::Rows;
use spares::Spares;
use state::{Addresses, Calls, Control, Failures, Integers, Lanes, Mode, NextUses, Sources, Truths};
use std::collections::BTreeMap;
use std::ops::Range;

/// Boxed, so that results of operand look-ups are returned in registers.
type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// General registers without values.
const SCRATCH: [Gpr; 3] = [Gpr::RAX, Gpr::RCX, Gpr::RDX];

/// Callee-saved registers, in the order in which they are pushed, if they are used.
const SAVED: [Gpr; 6] = [Gpr::RBP, Gpr::RBX, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];

/// Estimated code bytes of an event. More than most take: an unused reserve costs little.
const CODE_BYTES: usize = 14;

/// Machine code and the layout of its frame.
pub(crate) struct Lowered {
    pub code: Code,
    pub words: Words,
    pub frame: FrameLayout,
    pub n_slots: u32,
    /// Failure of each site number, from 1.
    pub sites: Vec<Site>,
    /// Number of chunks.
    pub n_pieces: usize,
}

/// Initial capacity of lists of unknown length.
const FEW: usize = 64;

/// Returns whether a batch of `kernel` can run in lanes.
pub(crate) fn fits_lanes(kernel: &Kernel) -> bool {
    plan::fits_lanes(kernel)
}

/// Returns code for `kernel` at a level, which is that of the options if they name one. `shape` is one point, or as
/// many points as a vector of this level has lanes. Other kernels access the buffers `shared`, too.
///
/// # Errors
/// A kernel that violates its invariants; one that is too large for 32-bit displacements.
pub(crate) fn lower(
    kernel: &Kernel,
    shared: &[BufferId],
    level: Level,
    shape: Shape,
    options: &Options,
) -> std::result::Result<Lowered, Diagnostic> {
    let plan = Plan::new(kernel, shared, level, shape, options.piece_len)?;
    let widest = if plan.has_lanes() { lanes::shape(level) } else { shape };
    let frame = FrameLayout::new(widest, &plan.words, plan.has_calls());
    let chunks = Chunks { kernel, plan: &plan, level, shape, frame, in_range: options.in_range };
    let write = |piece| chunks.write(piece).map_err(|why| *why);
    let Written { asm, n_slots, sites } = match plan.pieces.len() {
        0 => write(0)?,
        n => match Written::of_pieces(pieces::write_all(n, options.writers, write))? {
            Some(written) => written,
            None => return lower(kernel, shared, level, shape, &Options { piece_len: Some(usize::MAX), ..*options }),
        },
    };
    if frame.bytes(n_slots) > i32::MAX as usize / 2 {
        return Err(Diagnostic::limitation("the kernel keeps too many values at once for native code")
            .with_reason(format!("{n_slots} places for intermediate values do not fit into 1 GiB"))
            .with_help("take the interpreter, or cut the function into several"));
    }
    let n_pieces = plan.pieces.len().max(1);
    Ok(Lowered { code: asm.finish()?, words: plan.words, frame, n_slots, sites, n_pieces })
}

/// Code of a chunk.
struct Written {
    asm: Assembler,
    n_slots: u32,
    sites: Vec<Site>,
}

impl Written {
    /// Concatenates the code of all chunks; `None` if one of them may fail, because each numbers its sites separately.
    fn of_pieces(pieces: Vec<std::result::Result<Self, Diagnostic>>) -> std::result::Result<Option<Self>, Diagnostic> {
        let mut all: Option<Self> = None;
        for piece in pieces {
            let piece = piece?;
            if !piece.sites.is_empty() {
                return Ok(None);
            }
            match &mut all {
                None => all = Some(piece),
                Some(all) => {
                    all.asm.append(piece.asm);
                    all.n_slots = all.n_slots.max(piece.n_slots);
                }
            }
        }
        Ok(all)
    }
}

/// Chunks of a kernel to write.
struct Chunks<'k> {
    kernel: &'k Kernel,
    plan: &'k Plan<'k>,
    level: Level,
    /// Number of points.
    shape: Shape,
    frame: FrameLayout,
    in_range: Option<InRange>,
}

impl Chunks<'_> {
    /// Writes a chunk by its number; a single chunk is the whole kernel.
    fn write(&self, piece: usize) -> Result<Written> {
        let Self { kernel, plan, level, shape, frame, in_range } = *self;
        let n_registers = if level == Level::Avx512 { 32 } else { 16 };
        let registers = Registers::new(kernel.regs.len(), n_registers, plan.pinned(), plan.taken_slots());
        let saved = SAVED.into_iter().filter(|g| *g == frame.register() || plan.uses(*g)).collect();
        let of_piece = plan.pieces.get(piece);
        // Later chunks only have their own instructions.
        let n_events = of_piece.filter(|_| piece > 0).map_or(plan.n_events, |piece| piece.instrs.len());
        let n_constants = plan.facts.n_constants;
        let asm = Assembler::with_room(level, CODE_BYTES * n_events + 512, n_constants);
        let is_plain = shape == Shape::One && !plan.has_globals();
        let is_line = is_plain && plan.is_straight;
        let mut writer = Writer {
            kernel,
            plan,
            mode: Mode { level, points: shape, in_range, saved, is_plain, is_line },
            frame,
            asm,
            uses: NextUses { next: &plan.next, left: of_piece.map_or(plan.next.len(), |piece| piece.left) },
            registers,
            copies: Sources { literals: Vec::with_capacity(n_constants), origins: Vec::with_capacity(FEW) },
            addresses: Addresses {
                pointers: Pointers::new(kernel.buffers.len()),
                spares: Spares::default(),
                spares_since: None,
            },
            integers: Integers::new(kernel),
            truths: Truths::default(),
            lanes: Lanes { shape, plan: None, rows: Rows::default(), current: 0 },
            control: Control::default(),
            calls: Calls::default(),
            failures: Failures::default(),
        };
        if piece == 0 {
            writer.entry();
            writer.zeros()?;
        } else {
            writer.resume(piece)?;
        }
        match of_piece {
            Some(piece) => writer.block(piece.first, piece.instrs)?,
            None => writer.body()?,
        }
        if piece + 1 == plan.pieces.len().max(1) {
            writer.exit();
        }
        if let Some(fault) = writer.failures.fault {
            return Err(bug(fault));
        }
        Ok(Written { asm: writer.asm, n_slots: writer.registers.n_slots(), sites: writer.failures.sites })
    }
}

struct OpenLoop<'k> {
    plan: &'k LoopPlan,
    kept: BTreeMap<Poly<Reg>, KeptAt>,
    top: Label,
    exit: Label,
    /// Whether all iterations are one round of lanes, in which the index is 0.
    is_one_round: bool,
}

/// Source of a value that need not be in a register.
#[derive(Clone, Copy)]
enum Origin<'k> {
    /// An element at a constant offset in bytes in a buffer.
    Element(BufferId, i32),
    /// An element at a computed address.
    Load(BufferId, &'k Poly<Reg>),
    /// Elements in lanes, loaded with others of a strided record.
    Row(usize),
}

/// A constant of the kernel.
#[derive(Clone, Copy)]
struct Literal {
    bits: u64,
    /// Its offset in the constant pool, or [`NOWHERE`].
    offset: u32,
}

/// Offset of a constant that was not requested yet.
const NOWHERE: u32 = u32::MAX;

/// Cold code that reports a failure.
struct Stub<'k> {
    label: Label,
    site: usize,
    numbers: Vec<Number>,
    /// Numbers that are not in their locations.
    here: Vec<Here>,
    /// The plan of the lane loop at hand, and the lane, of whose integers they are.
    lane: (Option<&'k lanes::LanePlan>, u32),
}

/// Location of a number at a position in the code.
#[derive(Clone, Copy)]
enum Here {
    /// In a register.
    In(Gpr),
    /// A constant.
    Known(i32),
}

/// A comparison that is fused with the following branch.
#[derive(Clone, Copy)]
enum Compared {
    /// A comparison of integers, not emitted yet.
    Integers(Op, Reg, Reg),
    /// A comparison of doubles whose flags are set, with its condition code.
    Doubles(Condition),
    /// An equality of doubles: the flags are set.
    EqualDoubles,
}

/// Emission of a kernel, or of a chunk of it.
struct Writer<'k> {
    kernel: &'k Kernel,
    plan: &'k Plan<'k>,
    mode: Mode,
    frame: FrameLayout,
    asm: Assembler,
    uses: NextUses<'k>,
    registers: Registers,
    copies: Sources<'k>,
    addresses: Addresses,
    integers: Integers,
    truths: Truths,
    lanes: Lanes<'k>,
    control: Control<'k>,
    calls: Calls,
    failures: Failures<'k>,
}

impl<'k> Writer<'k> {
    /// Emits the prologue of `extern "sysv64" fn(frame: *mut u8) -> u32`, where `frame` is the base defined by
    /// [`FrameLayout`] and 0 is success.
    fn entry(&mut self) {
        for g in &self.mode.saved {
            self.asm.push(*g);
        }
        if self.is_stack_odd() {
            self.asm.alu_ri(Alu::Sub, Gpr::RSP, 8);
        }
        if self.frame.register() != Gpr::RDI {
            self.asm.mov_rr(self.frame.register(), Gpr::RDI);
        }
        for (i, size) in self.kernel.sizes.iter().enumerate() {
            let mem = self.frame.word(self.plan.words.size(i));
            self.asm.mov_rm(Gpr::RAX, mem);
            self.set_number(size.reg.index(), Gpr::RAX);
        }
        if self.plan.is_straight {
            self.take_all_pointers();
        }
        for i in self.plan.globals() {
            let r = Reg::new(i);
            match self.plan.home(i) {
                Home::Slot(slot) => self.registers.set_copy(r, Copy::Home(slot)),
                Home::Xmm(x) => self.registers.name(x, r, plan::NEVER),
                _ => {}
            }
        }
    }

    fn body(&mut self) -> Result<()> {
        let mut i = 0;
        while let Some(stretch) = self.plan.stretches.get(i).copied() {
            i += 1;
            match stretch {
                Stretch::Block(first, instrs) => self.block(first, instrs)?,
                Stretch::Control(at, event) => {
                    self.calls.in_memory = 0;
                    if let Event::If { condition } = event
                        && self.plan.kinds[condition.index()] == Kind::Truth
                    {
                        match self.control.compared {
                            // Its next use was recorded too.
                            Some(_) => drop(self.next_use()),
                            None => self.truth_number(condition)?,
                        }
                        self.registers.end();
                    }
                    if let Event::Copy { .. } = event {
                        self.find_spares(at, at);
                        self.addresses.spares.step();
                    }
                    self.registers.clear();
                    self.truths.masks.clear();
                    self.integers.varying_parts.clear();
                    if self.is_choice_of_integers(i) {
                        i += 2;
                        continue;
                    }
                    if !self.control(at, &event)? {
                        self.addresses.spares.clear();
                        self.addresses.spares_since = None;
                    }
                    self.registers.end();
                    self.integers.ranges.event(&event);
                }
            }
        }
        Ok(())
    }

    /// Finds the spare registers of these events; their contents stay valid if nothing comes between.
    fn find_spares(&mut self, first: u32, last: u32) {
        self.addresses.spares.set(self.plan.spares(self.addresses.spares_since.unwrap_or(first), last));
        self.addresses.spares_since = Some(last);
    }

    fn block(&mut self, first: u32, instrs: &'k [Instr]) -> Result<()> {
        let last = first + instrs.len() as u32 - 1;
        self.find_spares(first, last);
        self.find_rows(first, instrs);
        self.calls.in_memory = 0;
        let mut done = 0;
        for crossing in self.plan.crossings_of(first, last) {
            if let Some(slot) = crossing.slot {
                let defined = (crossing.at - first) as usize + 1;
                self.instrs(first, instrs, done..defined)?;
                self.cross(crossing.value, slot)?;
                done = defined;
            }
        }
        self.instrs(first, instrs, done..instrs.len())
    }

    /// Emits these instructions of a block. Groups of instructions, such as adjacent stores, end at the last one.
    fn instrs(&mut self, first: u32, instrs: &'k [Instr], which: Range<usize>) -> Result<()> {
        let mut done = which.start;
        while done < which.end {
            let Some((instr, after)) = instrs[done..].split_first() else { break };
            let at = first + done as u32;
            done += 1;
            self.addresses.spares.step();
            match instr {
                Instr::Op { dst, op, args } if self.plain_op(*dst, *op, args)? => {
                    self.end();
                    continue;
                }
                Instr::MulAdd { dst, signs, args } => {
                    self.mul_add(*dst, *signs, args)?;
                    self.end();
                    continue;
                }
                Instr::Const { dst, value } => {
                    self.instr_const(*dst, *value)?;
                    self.end();
                    continue;
                }
                Instr::Load { dst, buffer, at: address } => {
                    if self.mode.is_line && self.plain_load(at, *dst, *buffer, address) {
                        self.end();
                        continue;
                    }
                    if self.kernel.regs[*dst] == Class::Int {
                        self.integers.ranges.event(&Event::Instr(instr));
                    }
                    if let Some(tree) = self.plan.accumulators.trees.get(&at) {
                        self.put_together(tree)?;
                        done += accumulators::TREE - 1;
                        self.end();
                        continue;
                    }
                }
                Instr::Store { .. } => {
                    let stored = match self.plain_stores(&instrs[done - 1..])? {
                        0 => self.several_stores(&instrs[done - 1..])?,
                        stored => stored,
                    };
                    if stored > 0 {
                        done += stored - 1;
                        self.end();
                        continue;
                    }
                }
                Instr::Int { .. } | Instr::IntOp { .. } | Instr::CheckIndex { .. } => {
                    match instr {
                        Instr::IntOp { op, args: [a, b, _], .. } if self.plan.fused.contains(&at) => {
                            self.control.compared = Some(Compared::Integers(*op, *a, *b));
                        }
                        _ => self.instr(at, instr, after)?,
                    }
                    self.end();
                    self.integers.ranges.event(&Event::Instr(instr));
                    continue;
                }
                Instr::Op { op: op @ (Op::Lt | Op::Le | Op::Eq), args: [a, b, _], .. }
                    if self.plan.fused.contains(&at) =>
                {
                    self.control.compared = Some(self.compare_doubles(*op, *a, *b)?);
                    self.end();
                    continue;
                }
                _ => {}
            }
            self.instr(at, instr, after)?;
            if let Instr::Op { op: Op::And | Op::Or | Op::Not, .. } = instr {
                self.integers.ranges.event(&Event::Instr(instr));
            }
            self.end();
        }
        Ok(())
    }

    /// Ends an instruction: what it holds may be spilled from now on.
    #[inline]
    fn end(&mut self) {
        self.registers.end();
        self.truths.masks.end();
    }

    /// Emits a group of stores at the start of `instrs`; returns their number, or 0.
    fn several_stores(&mut self, instrs: &[Instr]) -> Result<usize> {
        let row = self.store_row(instrs)?;
        if row > 0 { Ok(row) } else { self.pair(instrs) }
    }

    fn instr(&mut self, at: u32, instr: &'k Instr, after: &[Instr]) -> Result<()> {
        match instr {
            Instr::Op { dst, op, args } => self.op(at, *dst, *op, args, after),
            Instr::Load { dst, buffer, at: address } if self.kernel.regs[*dst] == Class::Real => {
                if let Some(home) = self.accumulator(*buffer, address) {
                    return self.load_accumulator(*dst, home);
                }
                self.instr_load(at, *dst, *buffer, address)
            }
            Instr::Store { buffer, at: address, value } if self.kernel.regs[*value] == Class::Real => {
                if !self.plan.has_globals()
                    && let Some(mem) = self.known_element(*buffer, address)
                {
                    let next = self.next_use();
                    let x = self.in_register(*value, next)?;
                    self.asm.store(self.lanes.shape, mem, x);
                    self.release(*value, next);
                    return Ok(());
                }
                if let Some(home) = self.accumulator(*buffer, address) {
                    return self.store_accumulator(*value, home);
                }
                let next = self.next_use();
                let x = self.in_register(*value, next)?;
                let mem = self.address(*buffer, address)?;
                match self.across(address) {
                    Across::Next => self.store_lanes(mem, x)?,
                    across => self.scatter(mem, &across, x)?,
                }
                self.release(*value, next);
                Ok(())
            }
            Instr::ToReal { dst, src } => self.int_to_real(*dst, *src),
            Instr::ToInt { dst, src } if self.is_varying(*dst) => self.truncate_varying(*dst, *src),
            Instr::ToInt { dst, src } => {
                let next = self.next_use();
                let x = self.in_register(*src, next)?;
                let to = self.target(*dst, &[]);
                self.asm.cvttsd2si(to, x);
                self.release(*src, next);
                self.set_number(dst.index(), to);
                Ok(())
            }
            Instr::External { dst, function, args } => self.call_external(at, *dst, *function, args),
            _ => self.integer_instr(at, instr),
        }
    }

    fn exit(&mut self) {
        self.asm.mov_ri(Gpr::RAX, 0);
        let end = self.asm.new_label();
        self.asm.bind(end);
        if self.lanes.shape != Shape::One || self.plan.is_wide() {
            self.asm.vzeroupper();
        }
        if self.is_stack_odd() {
            self.asm.alu_ri(Alu::Add, Gpr::RSP, 8);
        }
        for g in self.mode.saved.iter().rev() {
            self.asm.pop(*g);
        }
        self.asm.ret();
        for stub in std::mem::take(&mut self.failures.stubs) {
            self.asm.bind(stub.label);
            for (i, number) in (0..).zip(&stub.here) {
                let mem = self.frame.word(Header::NUMBERS + i);
                match number {
                    Here::In(g) => self.asm.mov_mr(mem, *g),
                    Here::Known(value) => self.asm.mov_mi(mem, *value),
                }
            }
            (self.lanes.plan, self.lanes.current) = stub.lane;
            self.report(&stub.numbers);
            self.asm.mov_ri(Gpr::RAX, stub.site as i64 + 1);
            self.asm.jmp(end);
        }
    }

    /// Returns whether the stack is misaligned by a word, if the code calls functions.
    fn is_stack_odd(&self) -> bool {
        // Including the return address.
        self.plan.has_calls() && (self.mode.saved.len() + 1) % 2 == 1
    }

    /// Returns the label of a failure with these numbers.
    fn site(&mut self, site: Site, numbers: &[Number]) -> Label {
        if !numbers.is_empty() {
            return self.stub(site, numbers.to_vec(), Vec::new());
        }
        if let Some(label) = self.failures.shared.get(&site) {
            return *label;
        }
        let label = self.stub(site, Vec::new(), Vec::new());
        self.failures.shared.insert(site, label);
        label
    }

    /// As [`Self::site`], with the locations of the numbers at the jump.
    fn site_with(&mut self, site: Site, here: Vec<Here>) -> Label {
        self.stub(site, Vec::new(), here)
    }

    fn stub(&mut self, site: Site, numbers: Vec<Number>, here: Vec<Here>) -> Label {
        let label = self.asm.new_label();
        let lane = (self.lanes.plan, self.lanes.current);
        self.failures.stubs.push(Stub { label, site: self.failures.sites.len(), numbers, here, lane });
        self.failures.sites.push(site);
        label
    }
}

#[cold]
fn bug(what: &str) -> Box<Diagnostic> {
    Diagnostic::bug("a kernel cannot be made into native code").with_reason(what).into()
}

#[cold]
fn no_register() -> Box<Diagnostic> {
    bug("an instruction needs more registers than there are")
}
