//! The kernel IR itself: structured SSA over scalar registers, and buffers.
//!
//! Invariants (the verifier checks them):
//! - a register is defined once, before its uses, in a scope around them; what a loop carries is
//!   defined by the loop ([`Carried`]), what a branch results in by the branch ([`Choice`]);
//! - a size or an address is a polynomial over `Int` registers in scope; the length and the offset of
//!   a buffer, and what is required at entry, over size registers only;
//! - inputs are never written; buffers that are live at one time do not overlap, and those that do begin at one place: their
//!   offsets are the same polynomial.
//!
//! Truth values live in `Int` registers, as 0 and 1.

use crate::zeros::Zeros;
use chainrule_base::{Arena, Name, Poly, Span, define_id};
use chainrule_ops::{Op, ROWS};
use std::sync::Arc;

define_id! {
    /// A scalar register: a double, or an integer.
    pub struct Reg = "r";
    /// A buffer.
    pub struct BufferId = "b";
}

/// What a register or the elements of a buffer are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Doubles.
    Real,
    /// 64-bit integers and truth values.
    Int,
}

/// A function that a backend can run.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name: a C identifier.
    pub name: Name,
    /// All registers with their class.
    pub regs: Arena<Reg, Class>,
    /// Sizes, known when the arguments are; their registers are defined before the body.
    pub sizes: Vec<SizeParam>,
    /// What is read.
    pub inputs: Vec<Port>,
    /// What is written. Outputs hold nothing defined before the body has written them, but for `zeros`.
    pub outputs: Vec<Port>,
    /// All buffers, those of the ports included.
    pub buffers: Arena<BufferId, Buffer>,
    /// What must hold at entry.
    pub requires: Vec<Condition>,
    /// How many doubles of workspace it needs; over size registers.
    pub workspace_reals: Poly<Reg>,
    /// How many integers of workspace it needs; over size registers.
    pub workspace_ints: Poly<Reg>,
    /// Users' functions that it calls.
    pub externals: Vec<External>,
    /// Messages of the checks that may fail while it runs, with the place in the program.
    pub failures: Vec<(String, Option<Span>)>,
    /// What of the outputs is zero when the body begins, in ascending order.
    pub zeros: Vec<Zeros>,
    /// What it does.
    pub body: Vec<Stmt>,
}

impl Kernel {
    /// A kernel of no arguments that does nothing: for those who put one together.
    #[must_use]
    pub fn empty(name: Name) -> Self {
        Self {
            name,
            regs: Arena::new(),
            sizes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            buffers: Arena::new(),
            requires: Vec::new(),
            workspace_reals: Poly::zero(),
            workspace_ints: Poly::zero(),
            externals: Vec::new(),
            failures: Vec::new(),
            zeros: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Whether `r` is an extent of an argument.
    pub(crate) fn is_extent(&self, r: Reg) -> bool {
        self.sizes.iter().any(|size| size.reg == r && matches!(size.source, SizeSource::Extent { .. }))
    }

    /// New memory in the workspace, in a place of its own, for `len` numbers.
    pub fn memory(&mut self, len: Poly<Reg>) -> BufferId {
        let at = self.workspace_reals.clone();
        self.workspace_reals = at.add(&len);
        self.buffers.push(Buffer { class: Class::Real, len, place: Place::Workspace(at) })
    }
}

/// A size: an integer that is known at entry.
#[derive(Clone, PartialEq, Debug)]
pub struct SizeParam {
    /// Its name in signatures: unique, a C identifier.
    pub name: Name,
    /// Its register, of class `Int`.
    pub reg: Reg,
    /// Where it comes from.
    pub source: SizeSource,
}

/// Where a size comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeSource {
    /// The extent of dimension `dim` of input `input`.
    Extent {
        /// Index into [`Kernel::inputs`].
        input: usize,
        /// From 0, outermost first.
        dim: usize,
    },
    /// The value of input `input`, an `Int` scalar.
    Value {
        /// Index into [`Kernel::inputs`].
        input: usize,
    },
}

/// An argument: an array of scalars in row-major order, or one scalar (no dimensions).
#[derive(Clone, PartialEq, Debug)]
pub struct Port {
    /// Its path in the program: `x`, `camera.rotation`, `result.0`.
    pub name: Name,
    /// Its extents, outermost first; over size registers. Where an argument comes with extents of its
    /// own, they are compared with these at entry.
    pub shape: Vec<Poly<Reg>>,
    /// Its buffer.
    pub buffer: BufferId,
}

/// Memory for scalars of one class.
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    /// What it holds.
    pub class: Class,
    /// How many; over size registers.
    pub len: Poly<Reg>,
    /// Where it is.
    pub place: Place,
}

/// Where a buffer is.
#[derive(Clone, PartialEq, Debug)]
pub enum Place {
    /// The input of this index.
    Input(usize),
    /// The output of this index.
    Output(usize),
    /// The workspace of its class, from this offset on; over size registers.
    Workspace(Poly<Reg>),
}

/// A condition at entry: `size == 0` or `size >= 0`.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// Over size registers.
    pub size: Poly<Reg>,
    /// Whether it must be exactly zero; otherwise it must not be negative.
    pub exactly_zero: bool,
    /// What is wrong when it does not hold.
    pub message: String,
    /// What in the program asks for it.
    pub span: Option<Span>,
}

/// How many iterations a loop has at most that runs in lanes; of four lanes, as some processors have, it takes two rounds.
pub const LANES: i64 = 8;

/// How many iterations a loop has that runs on threads: so many threads at most have something to do.
pub const PARTS: i64 = 16;

/// Around a loop that runs in parts are so many branches at most, one in the other.
pub const MAX_BRANCHES: usize = 4;

/// What computes a user's scalar function.
pub type ExternalFn = Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// A user's scalar function.
#[derive(Clone)]
pub struct External {
    /// Its name.
    pub name: Name,
    /// How many arguments it takes.
    pub arity: usize,
    /// What computes it, for backends that run inside the process.
    pub call: Option<ExternalFn>,
    /// The C function of `arity` doubles that computes it, which the user of emitted code provides.
    pub c_name: Option<Name>,
}

impl std::fmt::Debug for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External").field("name", &self.name).field("arity", &self.arity).finish_non_exhaustive()
    }
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// Instructions one after the other.
    Straight(Vec<Instr>),
    /// `for index in 0..count`, iterations in order; none when `count` is negative.
    For {
        /// Defined in `body`; class `Int`.
        index: Reg,
        /// How many iterations.
        count: Poly<Reg>,
        /// What is carried from one iteration to the next.
        carried: Vec<Carried>,
        /// Which iterations may run at once. Whoever runs them in order computes the same.
        order: Order,
        /// One iteration.
        body: Vec<Stmt>,
    },
    /// Runs `condition`; while `holds` is not 0, runs `body` and `condition` again. After `limit`
    /// iterations with `holds` still not 0, fails with failure `failure`. What `condition` defines can be
    /// used in `condition` only.
    While {
        /// The largest number of iterations.
        limit: Poly<Reg>,
        /// What is carried from one iteration to the next.
        carried: Vec<Carried>,
        /// Computes `holds`.
        condition: Vec<Stmt>,
        /// In scope at the end of `condition`: defined in it, or carried, or defined before the loop.
        holds: Reg,
        /// One iteration.
        body: Vec<Stmt>,
        /// Index into [`Kernel::failures`].
        failure: usize,
    },
    /// Runs one of the branches.
    If {
        /// Class `Int`.
        condition: Reg,
        /// Where it is not 0.
        then: Vec<Stmt>,
        /// Where it is 0.
        otherwise: Vec<Stmt>,
        /// What the branches result in.
        choices: Vec<Choice>,
    },
    /// Copies `len` scalars; the ranges do not overlap.
    Copy {
        /// To, from this element on.
        to: (BufferId, Poly<Reg>),
        /// From, from this element on.
        from: (BufferId, Poly<Reg>),
        /// How many.
        len: Poly<Reg>,
    },
}

impl Stmt {
    /// The registers that a loop or a branch results in: those that what follows it can use.
    pub(crate) fn results(&self) -> Vec<Reg> {
        match self {
            Self::For { carried, .. } | Self::While { carried, .. } => carried.iter().map(|c| c.var).collect(),
            Self::If { choices, .. } => choices.iter().map(|c| c.var).collect(),
            Self::Straight(_) | Self::Copy { .. } => Vec::new(),
        }
    }
}

/// Which iterations of a loop may run at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// None: each looks at what those before have left.
    #[default]
    InOrder,
    /// All, in the lanes of vectors: there are [`LANES`] at most, fewer where it is not known how many; nothing is carried,
    /// and none touches what another one writes.
    Lanes,
    /// All, on threads: there are [`PARTS`], nothing is carried, and none touches what another one writes, but for buffers
    /// of the workspace that only this loop mentions: each thread has them for itself. In no other loop, and in few branches
    /// ([`MAX_BRANCHES`]).
    Parts,
}

/// The signs of a product and of what is added to it, of which one at most is turned. Numbers behind those of operators, so
/// that both are read alike ([`Instr::computes`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signs {
    /// `a * b + c`
    Plus = 64,
    /// `a * b - c`
    MinusSummand,
    /// `c - a * b`
    MinusProduct,
}

impl Signs {
    /// The value, rounded once.
    #[must_use]
    pub fn value(self, a: f64, b: f64, c: f64) -> f64 {
        match self {
            Self::Plus => a.mul_add(b, c),
            Self::MinusSummand => a.mul_add(b, -c),
            Self::MinusProduct => (-a).mul_add(b, c),
        }
    }

    /// Its name in listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plus => "mul_add",
            Self::MinusSummand => "mul_sub",
            Self::MinusProduct => "neg_mul_add",
        }
    }
}

/// A register that a loop carries: `var` is `init` before the first iteration, `next` after each; it
/// can be used in the loop and after it. All carried registers of a loop change at once: every `next`
/// is taken before any `var` changes, so that `next` may be another's `var` (a swap).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Defined by the loop.
    pub var: Reg,
    /// Defined before the loop.
    pub init: Reg,
    /// In scope at the end of the loop's body: defined in it, or carried, or defined before the loop.
    pub next: Reg,
}

/// A register that a branch defines: one of two, each in scope at the end of its branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Defined by the branch, for what comes after it.
    pub var: Reg,
    /// Its value where the condition holds.
    pub then: Reg,
    /// Its value where it does not.
    pub otherwise: Reg,
}

/// An instruction; defines `dst`.
#[derive(Clone, PartialEq, Debug)]
pub enum Instr {
    /// A double.
    Const {
        /// Class `Real`.
        dst: Reg,
        /// The number.
        value: f64,
    },
    /// An integer: a polynomial of `Int` registers. Where it does not fit into 64 bits, the program fails, whatever it is used
    /// for; lowering may put sums together so that one fits which the source would have overflowed in, never so that the
    /// number is another one.
    Int {
        /// Class `Int`.
        dst: Reg,
        /// The number.
        value: Poly<Reg>,
    },
    /// A scalar operator on doubles. Booleans among the arguments and the result are class `Int`.
    Op {
        /// Of the operator's result.
        dst: Reg,
        /// The operator.
        op: Op,
        /// The arguments; unused places repeat the first.
        args: [Reg; 3],
    },
    /// `a * b + c`, or with a sign turned, rounded once. [`contract`](crate::contract::contract) and
    /// [`lower_graph_fused`](crate::from_graph::lower_graph_fused) make them.
    MulAdd {
        /// Class `Real`.
        dst: Reg,
        /// Of the product and of what is added.
        signs: Signs,
        /// `a`, `b`, `c`; class `Real`.
        args: [Reg; 3],
    },
    /// A scalar operator in its integer form. Fails with failure `failure` on overflow or division by zero.
    IntOp {
        /// Class `Int`.
        dst: Reg,
        /// The operator; its row has an integer value.
        op: Op,
        /// The arguments; unused places repeat the first.
        args: [Reg; 3],
        /// Index into [`Kernel::failures`].
        failure: usize,
    },
    /// An integer as a double.
    ToReal {
        /// Class `Real`.
        dst: Reg,
        /// Class `Int`.
        src: Reg,
    },
    /// A call of a user's function.
    External {
        /// Class `Real`.
        dst: Reg,
        /// Index into [`Kernel::externals`].
        function: usize,
        /// Class `Real`.
        args: Box<[Reg]>,
    },
    /// Reads an element.
    Load {
        /// Of the buffer's class.
        dst: Reg,
        /// From.
        buffer: BufferId,
        /// Which element.
        at: Poly<Reg>,
    },
    /// Writes an element; defines nothing.
    Store {
        /// To; not an input.
        buffer: BufferId,
        /// Which element.
        at: Poly<Reg>,
        /// Of the buffer's class.
        value: Reg,
    },
    /// Fails with failure `failure` unless `0 <= index < len`; defines nothing.
    CheckIndex {
        /// Class `Int`.
        index: Reg,
        /// The extent.
        len: Poly<Reg>,
        /// Index into [`Kernel::failures`].
        failure: usize,
    },
}

// Large kernels take as long as fetching them does.
const _: () = assert!(size_of::<Instr>() == 32);

/// What an instruction of [`Instr::Op`] or [`Instr::MulAdd`] computes, in one number: for tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Computed(u8);

impl Computed {
    /// All are below.
    pub const END: usize = 64 + 3;

    /// As an index.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// What this is an index of: an operator, or a fused product.
    #[must_use]
    pub const fn of_index(index: usize) -> Option<Op> {
        if index < ROWS.len() { Some(ROWS[index].op) } else { None }
    }
}

const _: () = assert!(ROWS.len() <= 64);

impl Instr {
    /// What it defines and reads, unused places repeating the first, where it is an operator or a fused product. Most
    /// instructions are; which of the two comes next is hard to predict, so walks over many look at both alike.
    #[must_use]
    #[inline]
    pub fn computes(&self) -> Option<(Reg, &[Reg; 3], Computed)> {
        match self {
            Self::Op { dst, op, args } => Some((*dst, args, Computed(*op as u8))),
            Self::MulAdd { dst, signs, args } => Some((*dst, args, Computed(*signs as u8))),
            _ => None,
        }
    }

    /// The register that it defines.
    #[must_use]
    #[inline]
    pub fn dst(&self) -> Option<Reg> {
        match self {
            Self::Const { dst, .. }
            | Self::Int { dst, .. }
            | Self::Op { dst, .. }
            | Self::MulAdd { dst, .. }
            | Self::IntOp { dst, .. }
            | Self::ToReal { dst, .. }
            | Self::External { dst, .. }
            | Self::Load { dst, .. } => Some(*dst),
            Self::Store { .. } | Self::CheckIndex { .. } => None,
        }
    }

    /// Calls `visit` for each register that it uses, those in its polynomials included.
    #[inline]
    pub fn for_each_use(&self, mut visit: impl FnMut(Reg)) {
        let poly = |p: &Poly<Reg>, visit: &mut dyn FnMut(Reg)| {
            if p.as_constant().is_none() {
                p.terms().flat_map(|(m, _)| m).for_each(|r| visit(*r));
            }
        };
        match self {
            Self::Const { .. } => {}
            Self::Int { value, .. } => poly(value, &mut visit),
            Self::Op { op, args, .. } | Self::IntOp { op, args, .. } => {
                args[..op.arity()].iter().for_each(|r| visit(*r));
            }
            Self::MulAdd { args, .. } => args.iter().for_each(|r| visit(*r)),
            Self::ToReal { src, .. } => visit(*src),
            Self::External { args, .. } => args.iter().for_each(|r| visit(*r)),
            Self::Load { at, .. } => poly(at, &mut visit),
            Self::Store { at, value, .. } => {
                poly(at, &mut visit);
                visit(*value);
            }
            Self::CheckIndex { index, len, .. } => {
                poly(len, &mut visit);
                visit(*index);
            }
        }
    }
}
