//! A kernel compiled to machine code.

use crate::Level;
use crate::asm::Shape;
use crate::batch::{pack, unpack};
use crate::executable::{Executable, Policy};
use crate::lower::{self, Header, Words};
use crate::parallel::Team;
use crate::perf_map;
use crate::place::{Stretch, What};
use crate::support::Calls;
use crate::workspace::{LaneSpace, Lines, Workspace};
use chainrule_base::{Diagnostic, Id};
use chainrule_kernel::parts::in_parts;
use chainrule_kernel::{Buffer, BufferId, Class, Kernel, Place, Port, verify, with_choices};
use chainrule_runtime::{Backend, InRange, Layout, RunError, Share, Site, Sizes, Slice, SliceMut, Strided};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Options of compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Level of instructions; default: the best one of this machine.
    pub level: Option<Level>,
    /// Whether to write the names of functions for `perf` to `/tmp/perf-PID.map`. The addresses of named functions are
    /// not reused.
    pub perf_map: bool,
    /// For tests: behave as if the system denied executable memory.
    pub deny_executable: bool,
    /// Maximum number of threads that write the code; default: the number of processors. The code does not depend on
    /// it. Only long straight-line code has more than one writer: two, from 32,768 instructions on.
    pub writers: Option<usize>,
    /// For tests: maximum number of instructions in a chunk of straight-line code.
    pub piece_len: Option<usize>,
    /// Promise that addresses are in range; those that are not proved to be inside their buffers are then not checked
    /// at run time.
    pub in_range: Option<InRange>,
}

/// A kernel compiled to machine code. It is `Send` and `Sync`: threads share one, each with its own [`Workspace`]. The
/// memory of its code and constants is freed with it, or reused for other code.
///
/// ```
/// use chainrule_base::{Arena, Name, Poly};
/// use chainrule_kernel::{Buffer, Class, Instr, Kernel, Place, Port, Stmt};
/// use chainrule_native::{Options, Program, Workspace};
/// use chainrule_ops::Op;
/// use chainrule_runtime::{Backend, Slice, SliceMut};
/// use std::sync::Arc;
///
/// let (mut regs, mut buffers) = (Arena::new(), Arena::new());
/// let (x, y) = (regs.push(Class::Real), regs.push(Class::Real));
/// let one = Poly::constant(1);
/// let a = buffers.push(Buffer { class: Class::Real, len: one.clone(), place: Place::Input(0) });
/// let b = buffers.push(Buffer { class: Class::Real, len: one, place: Place::Output(0) });
/// let port = |name, buffer| Port { name: Name::new(name), shape: vec![], buffer };
/// let square = Kernel {
///     name: Name::new("square"), regs: regs.into(), sizes: vec![],
///     inputs: vec![port("x", a)], outputs: vec![port("y", b)],
///     buffers, requires: vec![], workspace_reals: Poly::zero(), workspace_ints: Poly::zero(),
///     externals: vec![], failures: vec![], zeros: vec![],
///     body: vec![Stmt::Straight(vec![
///         Instr::Load { dst: x, buffer: a, at: Poly::zero() },
///         Instr::Op { dst: y, op: Op::Mul, args: [x, x, x] },
///         Instr::Store { buffer: b, at: Poly::zero(), value: y },
///     ])],
/// };
/// let Ok(program) = Program::new(Arc::new(square), &Options::default()) else {
///     return; // This processor is too old, or the system denies executable memory.
/// };
/// let sizes = program.bind(&[&[]], &[]).unwrap();
/// let mut workspace = Workspace::new(&program, &sizes);
/// let mut y = [0.0];
/// program.run(&sizes, &[Slice::Real(&[3.0])], &mut [SliceMut::Real(&mut y)], &mut workspace).unwrap();
/// assert_eq!(y, [9.0]);
/// ```
#[derive(Debug)]
pub struct Program {
    pub(crate) layout: Arc<Layout>,
    level: Level,
    options: Options,
    pub(crate) one: Machine,
    /// Ports of a kernel with only doubles and without workspace, which [`Self::run_reals`] runs directly.
    plain: Option<Ports>,
    /// Code for several points in lanes, compiled on the first request.
    many: OnceLock<Option<Result<Machine, Diagnostic>>>,
    /// Code for several threads, compiled on the first request.
    team: OnceLock<Option<Result<Team, Diagnostic>>>,
}

/// Ports of a kernel whose buffers all hold doubles and are not in the workspace, for code that reads no lengths.
#[derive(Debug)]
struct Ports {
    inputs: Box<[PortPlace]>,
    outputs: Box<[PortPlace]>,
    /// Whether there are no sizes, so that all lengths are constant.
    is_fixed: bool,
}

#[derive(Debug)]
struct PortPlace {
    /// Index of its buffer.
    buffer: u32,
    /// Word of the frame for its pointer.
    word: u32,
    /// Number of elements, if it depends on no size.
    len: usize,
}

impl Ports {
    fn new(kernel: &Kernel, machine: &Machine) -> Option<Self> {
        let plain = |b: &Buffer| b.class == Class::Real && !matches!(b.place, Place::Workspace(_));
        // Parallel loops may run on threads, which requires checks of the workspace.
        let is_plain = kernel.buffers.as_slice().iter().all(plain)
            && !machine.sites.contains(&Site::Outside)
            && !in_parts(&kernel.body);
        let len = |p: &Port| kernel.buffers[p.buffer].len.as_constant().and_then(|len| usize::try_from(len).ok());
        let place = |p: &Port| PortPlace {
            buffer: p.buffer.index() as u32,
            word: machine.words.pointer(p.buffer),
            len: len(p).unwrap_or(0),
        };
        let is_fixed = kernel.sizes.is_empty() && kernel.inputs.iter().chain(&kernel.outputs).all(|p| len(p).is_some());
        is_plain.then(|| Self {
            inputs: kernel.inputs.iter().map(place).collect(),
            outputs: kernel.outputs.iter().map(place).collect(),
            is_fixed,
        })
    }
}

/// Result of code that did not run; code never returns it.
const NOT_RUN: u64 = u64::MAX;

/// Entry point of code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Returns the code, see `lower`; valid as long as its executable memory.
    run: unsafe extern "sysv64" fn(*mut u8) -> u64,
    /// Offset from the start of the frame to the base that the code expects.
    base: usize,
}

impl Entry {
    /// Runs the code; returns 0, or one more than the failed site.
    ///
    /// # Safety
    /// As [`Machine::enter`]; also, the machine is still alive.
    #[inline]
    pub(crate) unsafe fn enter(self, frame: &mut Lines) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.enter_at(self.place(frame)) }
    }

    /// Returns the base of a frame that the code expects.
    #[inline]
    pub(crate) fn place(self, frame: &mut Lines) -> *mut u8 {
        frame.pointer().wrapping_add(self.base)
    }

    /// As [`Self::enter`], with the [base](Self::place) of a frame.
    ///
    /// # Safety
    /// As [`Self::enter`]; the frame has not moved.
    #[inline]
    pub(crate) unsafe fn enter_at(self, frame: *mut u8) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { (self.run)(frame) }
    }
}

/// Code in memory, for one point or for several in lanes.
#[derive(Debug)]
pub(crate) struct Machine {
    executable: Executable,
    entry: Entry,
    shape: Shape,
    /// Size of the frame in bytes.
    pub frame_bytes: usize,
    words: Words,
    sites: Vec<Site>,
    code_bytes: usize,
    n_pieces: usize,
}

impl Machine {
    /// Compiles `kernel`. Other kernels access the buffers `shared`, too.
    fn new(
        kernel: &Kernel,
        shared: &[BufferId],
        level: Level,
        shape: Shape,
        options: &Options,
    ) -> Result<Self, Diagnostic> {
        let lowered = lower::lower(kernel, shared, level, shape, options)?;
        let policy = if options.deny_executable { Policy::Deny } else { Policy::Ask };
        let code_bytes = lowered.code.instructions;
        let mut executable = Executable::of(lowered.code, policy).map_err(|refusal| refusal.diagnostic())?;
        if options.perf_map {
            let name = format!("{}{}", kernel.name, if shape == Shape::One { "" } else { " in lanes" });
            perf_map::record(&perf_map::path(), &name, &mut executable, 0, code_bytes).map_err(|e| {
                Diagnostic::error("the names of functions cannot be written for `perf`")
                    .with_reason(format!("{}: {e}", perf_map::path().display()))
                    .with_help("compile without that option, or make the folder writable")
            })?;
        }
        let lower::Lowered { words, frame, n_slots, sites, n_pieces, .. } = lowered;
        let Some(entry) = executable.entry(0) else {
            return Err(Diagnostic::bug(format!("kernel `{}` has no code", kernel.name)));
        };
        // SAFETY: the code begins with a function of this type, see `lower`. It is only called while `executable` is
        // alive.
        let run = unsafe { std::mem::transmute::<*const u8, unsafe extern "sysv64" fn(*mut u8) -> u64>(entry) };
        let (entry, frame_bytes) = (Entry { run, base: frame.base() }, frame.bytes(n_slots));
        Ok(Self { executable, entry, shape, frame_bytes, words, sites, code_bytes, n_pieces })
    }

    /// Returns the word of the frame for a size, by its index.
    pub(crate) fn size_word(&self, index: usize) -> usize {
        self.words.size(index) as usize
    }

    /// Writes the address and length of a buffer into the frame.
    pub(crate) fn tell_buffer(&self, frame: &mut Lines, buffer: BufferId, pointer: u64, len: usize) {
        frame.set_word(self.words.pointer(buffer) as usize, pointer);
        frame.set_word(self.words.length(buffer) as usize, len as u64);
    }

    /// Returns the stretches of its frame: the words that code reads first, and those that it writes.
    pub(crate) fn stretches(&self) -> [Stretch; 2] {
        let words = self.words.bytes();
        let stretch = |bytes, what| Stretch { bytes, what };
        [stretch(words, What::First), stretch(self.frame_bytes - words, What::Stored)]
    }

    /// Returns the addresses of its constants, possibly empty.
    pub(crate) fn constants(&self) -> Range<usize> {
        let all = self.executable.bytes().as_ptr_range();
        all.start.addr() + self.code_bytes..all.end.addr()
    }

    /// Returns the number of points in lanes.
    pub(crate) fn lanes(&self) -> usize {
        lower::n_lanes(self.shape)
    }

    /// Runs the code; returns 0, or one more than the failed site.
    ///
    /// # Safety
    /// `frame` fits the machine, its words for pointers and lengths describe memory that the code may use, and
    /// [`Program::prepare`] has written the sizes and the context of calls, which was made for the program's layout and
    /// is not shared.
    #[inline]
    pub(crate) unsafe fn enter(&self, frame: &mut Lines) -> u64 {
        // SAFETY: the code lives as long as `self`; the rest is the caller's promise.
        unsafe { self.entry.enter(frame) }
    }

    /// Returns its entry point, for callers that cache it.
    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }
}

/// Returns the address of a buffer of the workspace, by its offset and length, which `check` and the layout's
/// plan have checked.
fn in_workspace(buffer: &Buffer, (offset, len): (usize, usize), reals: &mut [f64], ints: &mut [i64]) -> u64 {
    match buffer.class {
        _ if len == 0 => std::ptr::NonNull::<u64>::dangling().as_ptr() as u64,
        Class::Real => reals[offset..].as_mut_ptr() as u64,
        Class::Int => ints[offset..].as_mut_ptr() as u64,
    }
}

impl Program {
    /// Compiles `kernel`, in time linear in its size except for sorting the values that outlive their block.
    ///
    /// # Errors
    /// A level that this machine lacks, or a machine without any level; executable memory that the system denies; a
    /// user function that cannot be called inside the process; a kernel that violates its invariants.
    pub fn new(kernel: Arc<Kernel>, options: &Options) -> Result<Self, Diagnostic> {
        Self::with_layout(Layout::new(kernel), options)
    }

    /// As [`new`](Self::new), for the kernel of a layout, so that sizes fit all programs that share it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_layout(layout: Arc<Layout>, options: &Options) -> Result<Self, Diagnostic> {
        layout.check_externals()?;
        let kernel = layout.kernel();
        // The proofs that addresses are inside their buffers rely on the verifier.
        verify(kernel).map_err(|faults| {
            let reason = faults.first().map_or_else(String::new, ToString::to_string);
            Diagnostic::bug(format!("kernel `{}` breaks its rules", kernel.name)).with_reason(reason)
        })?;
        let level = options.level.map_or_else(Level::best, Level::require)?;
        let one = Machine::new(kernel, &[], level, Shape::One, options)?;
        let plain = Ports::new(kernel, &one);
        Ok(Self { layout, level, options: *options, one, plain, many: OnceLock::new(), team: OnceLock::new() })
    }

    fn kernel(&self) -> &Kernel {
        self.layout.kernel()
    }

    /// Returns the level of its instructions.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the size of the code for one point, without constants.
    #[must_use]
    pub fn code_bytes(&self) -> usize {
        self.one.code_bytes
    }

    /// Returns the number of chunks of the code for one point, which threads may have written in parallel; 1 except for
    /// long straight-line code. It only depends on the kernel.
    #[must_use]
    pub fn n_pieces(&self) -> usize {
        self.one.n_pieces
    }

    /// Returns the machine code for one point.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        self.one.executable.bytes()
    }

    /// Returns the code for several points in lanes, if a batch of these sizes may use it. Compiles it on the first
    /// call.
    pub(crate) fn lanes(&self, sizes: &Sizes) -> Option<&Machine> {
        if !sizes.allow_lanes() {
            return None;
        }
        let make = || {
            let shape = if self.level == Level::Avx512 { Shape::Eight } else { Shape::Four };
            let chosen = with_choices(self.kernel()).filter(|kernel| verify(kernel).is_ok());
            let kernel = chosen.map_or(Cow::Borrowed(self.kernel()), Cow::Owned);
            lower::fits_lanes(&kernel).then(|| Machine::new(&kernel, &[], self.level, shape, &self.options))
        };
        self.many.get_or_init(make).as_ref().and_then(|made| made.as_ref().ok())
    }

    /// Returns the code for several threads. Compiles it on the first call.
    pub(crate) fn team(&self) -> Option<&Team> {
        let make = || {
            Team::new(self.kernel(), |piece| {
                let kernel = &piece.kernel;
                verify(kernel)
                    .map_err(|_| Diagnostic::bug(format!("a piece of `{}` breaks its rules", kernel.name)))?;
                Machine::new(kernel, &piece.shared, self.level, Shape::One, &self.options)
            })
        };
        self.team.get_or_init(make).as_ref().and_then(|made| made.as_ref().ok())
    }

    /// Returns the reason why nothing runs on threads in spite of parallel loops; `None` before the first workspace for
    /// threads is requested.
    #[must_use]
    pub fn threads_refused(&self) -> Option<&Diagnostic> {
        self.team.get().and_then(Option::as_ref).and_then(|made| made.as_ref().err())
    }

    /// Returns the reason why a batch runs point by point although its control would permit lanes; `None` before the
    /// code for lanes is first requested.
    #[must_use]
    pub fn lanes_refused(&self) -> Option<&Diagnostic> {
        self.many.get().and_then(Option::as_ref).and_then(|made| made.as_ref().err())
    }

    /// Writes the addresses of buffers into the frame of `workspace`, which belongs to this program and is large
    /// enough: `pointer` returns the address of a buffer by its index, or `None` for one in the workspace.
    pub(crate) fn point_at(
        &self,
        sizes: &Sizes,
        workspace: &mut Workspace,
        mut pointer: impl FnMut(usize) -> Option<u64>,
    ) {
        let Workspace { frame, reals, ints, calls, .. } = workspace;
        let buffers = self.kernel().buffers.as_slice();
        for (i, (buffer, (offset, len))) in buffers.iter().zip(sizes.buffers()).enumerate() {
            let pointer = pointer(i).unwrap_or_else(|| in_workspace(buffer, (*offset, *len), reals, ints));
            self.one.tell_buffer(frame, Id::new(i), pointer, *len);
        }
        let calls = std::ptr::from_mut(&mut **calls);
        self.prepare(&self.one, sizes, frame, calls);
    }

    /// Runs one point with real arguments and results of the lengths that `len` returns. Returns the result of the
    /// code, or [`NOT_RUN`] if something does not fit.
    ///
    /// # Safety
    /// `len` is correct for `sizes` if these are the program's, and the frame contains the sizes, if any.
    #[inline]
    unsafe fn run_plain(
        &self,
        ports: &Ports,
        sizes: &Sizes,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        workspace: &mut Workspace,
        len: impl Fn(&PortPlace) -> usize,
    ) -> u64 {
        if !self.layout.made(sizes)
            || !self.is_own(workspace)
            || ports.inputs.len() != inputs.len()
            || ports.outputs.len() != outputs.len()
        {
            return NOT_RUN;
        }
        let frame = workspace.frame.pointer().cast::<u64>();
        for (port, x) in ports.inputs.iter().zip(inputs) {
            if x.len() != len(port) {
                return NOT_RUN;
            }
            // SAFETY: the frame is as large as the code requires, and includes this word.
            unsafe { frame.add(port.word as usize).write(x.as_ptr() as u64) };
        }
        for (port, y) in ports.outputs.iter().zip(outputs) {
            if y.len() != len(port) {
                return NOT_RUN;
            }
            // SAFETY: as above.
            unsafe { frame.add(port.word as usize).write(y.as_mut_ptr() as u64) };
        }
        let calls = std::ptr::from_mut(&mut *workspace.calls);
        // SAFETY: as above.
        unsafe { frame.add(Header::CALLS as usize).write(calls as u64) };
        // SAFETY: the frame is as large as the code requires, each buffer is an argument or a result of the length that
        // the sizes require, borrowed during the call, the code reads no lengths, and `calls` is of this layout.
        unsafe { self.one.enter(&mut workspace.frame) }
    }

    /// Finds the reason why [`run_plain`](Self::run_plain) failed, or runs the slower path that reports it.
    #[cold]
    #[inline(never)]
    fn run_reals_failed(
        &self,
        failed: u64,
        sizes: &Sizes,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        workspace: &mut Workspace,
    ) -> Result<(), RunError> {
        if failed == NOT_RUN {
            return self.run_reals_checked(sizes, inputs, outputs, workspace);
        }
        Err(self.failed(&self.one, failed, &workspace.frame, &mut workspace.calls))
    }

    /// As [`run_reals`](Self::run_reals), with lengths that depend on sizes.
    #[inline(never)]
    fn run_reals_of_sizes(
        &self,
        sizes: &Sizes,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        workspace: &mut Workspace,
    ) -> Result<(), RunError> {
        if let Some(ports) = &self.plain
            && self.layout.made(sizes)
            && self.is_own(workspace)
        {
            let calls = std::ptr::from_mut(&mut *workspace.calls);
            self.prepare(&self.one, sizes, &mut workspace.frame, calls);
            let len = |port: &PortPlace| sizes.buffers()[port.buffer as usize].1;
            // SAFETY: the lengths are those of the sizes, which are in the frame.
            let failed = unsafe { self.run_plain(ports, sizes, inputs, outputs, workspace, len) };
            if failed == 0 {
                return Ok(());
            }
            return self.run_reals_failed(failed, sizes, inputs, outputs, workspace);
        }
        self.run_reals_checked(sizes, inputs, outputs, workspace)
    }

    /// As [`run_reals`](Self::run_reals), with all checks, for arguments that need them or do not fit.
    #[cold]
    fn run_reals_checked(
        &self,
        sizes: &Sizes,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        workspace: &mut Workspace,
    ) -> Result<(), RunError> {
        /// Maximum number of arguments and results that need no heap memory.
        const FEW: usize = 16;
        if inputs.len() <= FEW && outputs.len() <= FEW {
            let mut ins = [Slice::Real(&[]); FEW];
            let mut outs: [SliceMut<'_>; FEW] = std::array::from_fn(|_| SliceMut::Real(&mut []));
            ins.iter_mut().zip(inputs).for_each(|(to, x)| *to = Slice::Real(x));
            let (n_inputs, n_outputs) = (inputs.len(), outputs.len());
            outs.iter_mut().zip(outputs).for_each(|(to, y)| *to = SliceMut::Real(y));
            return self.run(sizes, &ins[..n_inputs], &mut outs[..n_outputs], workspace);
        }
        let inputs: Vec<Slice<'_>> = inputs.iter().map(|x| Slice::Real(x)).collect();
        let mut outputs: Vec<SliceMut<'_>> = outputs.iter_mut().map(|y| SliceMut::Real(y)).collect();
        self.run(sizes, &inputs, &mut outputs, workspace)
    }

    fn pack(
        &self,
        machine: &Machine,
        sizes: &Sizes,
        inputs: &[Strided<'_>],
        space: &mut LaneSpace,
        first: usize,
        n: usize,
    ) {
        for (i, (port, input)) in self.kernel().inputs.iter().zip(inputs).enumerate() {
            let Slice::Real(data) = input.data else { continue };
            let start = space.offsets[port.buffer.index()];
            let len = sizes.input_len(i);
            let tile = &mut space.tile.doubles_mut()[start..start + len * machine.lanes()];
            let shape = (first, n, input.point, input.element);
            match machine.shape {
                Shape::Eight => pack::<8>(tile, data, shape),
                Shape::Four | Shape::One => pack::<4>(tile, data, shape),
            }
        }
    }

    fn point_at_tile(&self, machine: &Machine, sizes: &Sizes, space: &mut LaneSpace) {
        let base = space.tile.pointer() as u64;
        for (i, (_, len)) in sizes.buffers().iter().enumerate() {
            let b = Id::new(i);
            space.frame.set_word(machine.words.pointer(b) as usize, base + 8 * space.offsets[i] as u64);
            space.frame.set_word(machine.words.length(b) as usize, (len * machine.lanes()) as u64);
        }
    }

    /// Writes the sizes and the context of calls into a frame.
    #[inline]
    pub(crate) fn prepare(&self, machine: &Machine, sizes: &Sizes, frame: &mut Lines, calls: *mut Calls) {
        for (i, value) in sizes.values().iter().enumerate() {
            frame.set_word(machine.words.size(i) as usize, *value as u64);
        }
        frame.set_word(Header::CALLS as usize, calls as u64);
    }

    #[cold]
    pub(crate) fn failed(&self, machine: &Machine, failed: u64, frame: &Lines, calls: &mut Calls) -> RunError {
        let site = usize::try_from(failed).ok().and_then(|f| machine.sites.get(f.wrapping_sub(1)));
        let numbers = [0, 1, 2].map(|i| frame.word((Header::NUMBERS + i) as usize) as i64);
        self.layout.failed_at(site, numbers, &mut calls.panic)
    }
}

/// Single points allocate nothing, unless they fail.
impl Backend for Program {
    type Workspace = Workspace;

    /// Whole blocks of lanes.
    const BLOCK: usize = 8;

    #[inline]
    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    fn workspace(&self, sizes: &Sizes, threads: usize) -> Workspace {
        Workspace::for_threads(self, sizes, threads)
    }

    fn batch_workspace(&self, sizes: &Sizes) -> Workspace {
        Workspace::for_batch(self, sizes)
    }

    /// Two programs of one layout may differ in their levels, and so in their frames.
    #[inline]
    fn is_own(&self, workspace: &Workspace) -> bool {
        Arc::ptr_eq(&workspace.calls.layout, &self.layout) && workspace.frame.bytes() >= self.one.frame_bytes
    }

    fn is_large_enough(&self, workspace: &Workspace, sizes: &Sizes) -> bool {
        let (reals, ints) = sizes.workspace_len();
        workspace.reals.len() >= reals
            && workspace.ints.len() >= ints
            && workspace
                .lanes
                .as_ref()
                .is_none_or(|space| self.lanes(sizes).is_none_or(|machine| space.fits(machine, self, sizes)))
    }

    fn run(
        &self,
        sizes: &Sizes,
        inputs: &[Slice<'_>],
        outputs: &mut [SliceMut<'_>],
        workspace: &mut Workspace,
    ) -> Result<(), RunError> {
        self.check(sizes, workspace)?;
        self.layout.check_point(sizes, inputs, outputs)?;
        let buffers = self.kernel().buffers.as_slice();
        let mut pointer = |b: usize| match &buffers[b].place {
            Place::Input(i) => Some(match inputs[*i] {
                Slice::Real(data) => data.as_ptr() as u64,
                Slice::Int(data) => data.as_ptr() as u64,
            }),
            Place::Output(i) => Some(match &mut outputs[*i] {
                SliceMut::Real(data) => data.as_mut_ptr() as u64,
                SliceMut::Int(data) => data.as_mut_ptr() as u64,
            }),
            Place::Workspace(_) => None,
        };
        if let Workspace { team: Some(space), reals, ints, .. } = workspace
            && let Some(team) = self.team().filter(|team| space.fits(team, &self.layout, sizes))
        {
            let pointer = |b| pointer(b).unwrap_or_else(|| in_workspace(&buffers[b], sizes.buffers()[b], reals, ints));
            // SAFETY: `pointer` returns the addresses of all buffers, valid as long as the borrows of the arguments and
            // the workspace; sizes and memory fit, as checked.
            return unsafe { self.run_team(team, space, sizes, pointer) };
        }
        self.point_at(sizes, workspace, pointer);
        // SAFETY: the frame is as large as the code requires, and all buffers are at the addresses in it as long as the
        // borrows of the arguments and the workspace last; `calls` is of this layout.
        let failed = unsafe { self.one.enter(&mut workspace.frame) };
        if failed == 0 { Ok(()) } else { Err(self.failed(&self.one, failed, &workspace.frame, &mut workspace.calls)) }
    }

    /// With less overhead, for functions that take no longer than the checks of their arguments.
    #[inline]
    fn run_reals(
        &self,
        sizes: &Sizes,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        workspace: &mut Workspace,
    ) -> Result<(), RunError> {
        if let Some(ports) = &self.plain
            && ports.is_fixed
        {
            // SAFETY: the lengths are those that the code was compiled for, and there are no sizes.
            let failed = unsafe { self.run_plain(ports, sizes, inputs, outputs, workspace, |port| port.len) };
            if failed == 0 {
                return Ok(());
            }
            return self.run_reals_failed(failed, sizes, inputs, outputs, workspace);
        }
        self.run_reals_of_sizes(sizes, inputs, outputs, workspace)
    }

    fn run_share(&self, share: &mut Share<'_>, workspace: &mut Workspace) -> Result<(), RunError> {
        self.check(share.sizes, workspace)?;
        let sizes = share.sizes;
        let lanes = workspace.lanes.take();
        let (Some(machine), Some(mut space)) = (self.lanes(sizes), lanes) else {
            return share.one_by_one(|inputs, outputs| self.run(sizes, inputs, outputs, workspace));
        };
        let mut result = Ok(());
        // Only the points change between blocks.
        self.point_at_tile(machine, sizes, &mut space);
        let calls = std::ptr::from_mut(&mut *workspace.calls);
        self.prepare(machine, sizes, &mut space.frame, calls);
        for first in share.points.clone().step_by(machine.lanes()) {
            let n = machine.lanes().min(share.points.end - first);
            self.pack(machine, sizes, share.inputs, &mut space, first, n);
            // SAFETY: the frame is as large as the code requires, and all real buffers are in the tile; code for lanes
            // does not access integer buffers; `calls` is of this layout.
            let failed = unsafe { machine.enter(&mut space.frame) };
            if failed != 0 {
                let error = self.failed(machine, failed, &space.frame, &mut workspace.calls);
                result = Err(error.at_point(first));
                break;
            }
            for (i, (port, output)) in self.kernel().outputs.iter().zip(&mut share.outputs).enumerate() {
                let start = space.offsets[port.buffer.index()];
                let tile = &space.tile.doubles()[start..start + sizes.output_len(i) * machine.lanes()];
                match machine.shape {
                    Shape::Eight => unpack::<8>(output, tile, first, n),
                    Shape::Four | Shape::One => unpack::<4>(output, tile, first, n),
                }
            }
        }
        workspace.lanes = Some(space);
        result
    }

    /// Compiles the code for lanes on the first call.
    fn lanes_for(&self, sizes: &Sizes) -> usize {
        self.lanes(sizes).map_or(1, Machine::lanes)
    }

    fn machine_code(&self) -> Option<&[u8]> {
        Some(self.code())
    }
}
