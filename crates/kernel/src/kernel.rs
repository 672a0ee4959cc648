//! The kernel IR: structured SSA over scalar registers, and buffers.
//!
//! Invariants (the verifier checks them):
//! - a register is defined once, before its uses, in a scope around them; a loop defines its carried values
//!   ([`Carried`]), a branch its results ([`Choice`]);
//! - a size or an address is a polynomial over `Int` registers in scope; lengths and offsets of buffers, and conditions
//!   at entry, are polynomials over size registers only;
//! - inputs are never written; buffers that are live at the same time do not overlap; buffers that overlap have the
//!   same polynomial as offset.
//!
//! Truth values live in `Int` registers, as 0 and 1.

use crate::from_ir::unique;
use crate::ranges::Ranges;
use crate::registers::Registers;
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

/// Type of a register, or of the elements of a buffer.
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
    /// Name, a C identifier.
    pub name: Name,
    /// Registers and their classes.
    pub regs: Registers,
    /// Sizes, known from the arguments; their registers are defined before the body.
    pub sizes: Vec<SizeParam>,
    /// Arguments.
    pub inputs: Vec<Port>,
    /// Results. Their elements are undefined before the body writes them, except those in `zeros`.
    pub outputs: Vec<Port>,
    /// Buffers, those of the ports included.
    pub buffers: Arena<BufferId, Buffer>,
    /// Conditions at entry.
    pub requires: Vec<Condition>,
    /// Doubles of workspace, over size registers.
    pub workspace_reals: Poly<Reg>,
    /// Integers of workspace, over size registers.
    pub workspace_ints: Poly<Reg>,
    /// External functions that it calls.
    pub externals: Vec<External>,
    /// Messages of the checks that may fail at run time, with their source spans.
    pub failures: Vec<(String, Option<Span>)>,
    /// Output elements that are zero when the body begins, in ascending order.
    pub zeros: Vec<Zeros>,
    /// Statements.
    pub body: Vec<Stmt>,
}

impl Kernel {
    /// Returns a kernel without arguments and statements.
    #[must_use]
    pub fn empty(name: Name) -> Self {
        Self {
            name,
            regs: Registers::new(),
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

    /// Returns whether `r` is an extent of an argument.
    pub(crate) fn is_extent(&self, r: Reg) -> bool {
        self.sizes.iter().any(|size| size.reg == r && matches!(size.source, SizeSource::Extent { .. }))
    }

    /// Adds a buffer of `len` doubles at the end of the workspace, of none where that is negative: a loop in a branch
    /// may have such a count.
    pub fn memory(&mut self, len: Poly<Reg>) -> BufferId {
        let len = self.natural(len);
        let at = self.workspace_reals.clone();
        self.workspace_reals = at.add(&len);
        self.buffers.push(Buffer { class: Class::Real, len, place: Place::Workspace(at) })
    }

    /// Returns the larger of `size` and 0, which is `size` where that is known at entry.
    fn natural(&mut self, size: Poly<Reg>) -> Poly<Reg> {
        let is_natural =
            |r: &Reg| self.sizes.iter().any(|size| size.reg == *r && !matches!(size.source, SizeSource::Value { .. }));
        let is_plain = size.terms().all(|(factors, c)| c >= 0 && factors.iter().all(is_natural));
        if is_plain || Ranges::new(self).is_at_least_zero(&size) {
            return size;
        }
        if let Some(known) = self.sizes.iter().find(|known| known.natural() == Some(&size)) {
            return Poly::var(known.reg);
        }
        let name = unique(&mut self.sizes.iter().map(|size| size.name.to_string()).collect(), "natural");
        let reg = self.regs.push(Class::Int);
        self.sizes.push(SizeParam { name, reg, source: SizeSource::Natural { of: size } });
        Poly::var(reg)
    }
}

/// A size: an integer known at entry.
#[derive(Clone, PartialEq, Debug)]
pub struct SizeParam {
    /// Name in signatures: unique, a C identifier.
    pub name: Name,
    /// Register, of class `Int`.
    pub reg: Reg,
    /// Origin of its value.
    pub source: SizeSource,
}

impl SizeParam {
    /// Returns the polynomial of a size that is the larger of one and 0.
    #[must_use]
    pub fn natural(&self) -> Option<&Poly<Reg>> {
        match &self.source {
            SizeSource::Natural { of } => Some(of),
            SizeSource::Extent { .. } | SizeSource::Value { .. } => None,
        }
    }
}

/// Origin of a size's value.
#[derive(Clone, PartialEq, Debug)]
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
    /// The larger of `of` and 0: the length of an array that is made only where `of` is not negative.
    Natural {
        /// Polynomial over earlier sizes.
        of: Poly<Reg>,
    },
}

/// An argument: an array of scalars in row-major order, or one scalar (no dimensions).
#[derive(Clone, PartialEq, Debug)]
pub struct Port {
    /// Path in the program: `x`, `camera.rotation`, `result.0`.
    pub name: Name,
    /// Extents, outermost first, over size registers. The extents of an argument are compared with these at entry.
    pub shape: Vec<Poly<Reg>>,
    /// Its buffer.
    pub buffer: BufferId,
}

/// Memory for scalars of one class.
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    /// Class of its elements.
    pub class: Class,
    /// Number of elements, over size registers.
    pub len: Poly<Reg>,
    /// Location.
    pub place: Place,
}

/// Location of a buffer.
#[derive(Clone, PartialEq, Debug)]
pub enum Place {
    /// The input of this index.
    Input(usize),
    /// The output of this index.
    Output(usize),
    /// The workspace of its class, from this offset on, over size registers.
    Workspace(Poly<Reg>),
}

/// A condition at entry: `size == 0` or `size >= 0`.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// Polynomial over size registers.
    pub size: Poly<Reg>,
    /// Whether `size` must be zero; otherwise it must not be negative.
    pub exactly_zero: bool,
    /// Message if the condition does not hold.
    pub message: String,
    /// Part of the program that requires it.
    pub span: Option<Span>,
}

/// Message of the condition, or of the check, that the size of an array is not negative.
pub const NEGATIVE_SIZE: &str = "an array would have a negative size";

/// Maximum trip count of a lane loop. A processor with four lanes runs it in two rounds.
pub const LANES: i64 = 8;

/// Trip count of a parallel loop: the maximum number of threads that share its work.
pub const PARTS: i64 = 16;

/// Maximum number of nested branches around a parallel loop.
pub const MAX_BRANCHES: usize = 4;

/// Code of an external scalar function.
pub type ExternalFn = Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// An external scalar function.
#[derive(Clone)]
pub struct External {
    /// Its name.
    pub name: Name,
    /// Number of arguments.
    pub arity: usize,
    /// Code for backends that run inside the process.
    pub call: Option<ExternalFn>,
    /// Name of the C function of `arity` doubles, which the user of emitted code provides.
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
    /// Straight-line code.
    Straight(Vec<Instr>),
    /// `for index in 0..count`, iterations in order; none when `count` is negative.
    For {
        /// Defined in `body`; class `Int`.
        index: Reg,
        /// Trip count.
        count: Poly<Reg>,
        /// Loop-carried values.
        carried: Vec<Carried>,
        /// Order in which iterations may run. Running them in sequence always gives the same result.
        order: Order,
        /// One iteration.
        body: Vec<Stmt>,
    },
    /// Runs `condition`; while `holds` is not 0, runs `body` and `condition` again. If `holds` is still not 0 after
    /// `limit` iterations, fails with failure `failure`. Registers defined in `condition` can be used in `condition`
    /// only.
    While {
        /// Maximum trip count.
        limit: Poly<Reg>,
        /// Loop-carried values.
        carried: Vec<Carried>,
        /// Computes `holds`.
        condition: Vec<Stmt>,
        /// Register in scope at the end of `condition`: defined in it, carried, or defined before the loop.
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
        /// Branch for a condition that is not 0.
        then: Vec<Stmt>,
        /// Branch for a condition that is 0.
        otherwise: Vec<Stmt>,
        /// Results of the branches.
        choices: Vec<Choice>,
    },
    /// Copies `len` scalars; the ranges do not overlap.
    Copy {
        /// Destination, from this element on.
        to: (BufferId, Poly<Reg>),
        /// Source, from this element on.
        from: (BufferId, Poly<Reg>),
        /// Number of elements.
        len: Poly<Reg>,
        /// Whether the source is dead afterwards: its elements are written before they are read again.
        is_move: bool,
    },
}

impl Stmt {
    /// Returns the registers that a loop or a branch defines for the code after it.
    pub(crate) fn results(&self) -> Vec<Reg> {
        match self {
            Self::For { carried, .. } | Self::While { carried, .. } => carried.iter().map(|c| c.var).collect(),
            Self::If { choices, .. } => choices.iter().map(|c| c.var).collect(),
            Self::Straight(_) | Self::Copy { .. } => Vec::new(),
        }
    }
}

/// Order in which the iterations of a loop may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// In sequence: each iteration may depend on earlier ones.
    #[default]
    InOrder,
    /// In lanes of vectors: at most [`LANES`] iterations, possibly fewer at run time. Nothing is carried, and no
    /// iteration accesses elements that another one writes, except to write equal numbers to them.
    Lanes,
    /// On threads: [`PARTS`] iterations. Nothing is carried, and no iteration accesses elements that another one
    /// writes, except in workspace buffers that only this loop mentions: each thread has a copy of these. Inside no
    /// other loop, and inside at most [`MAX_BRANCHES`] branches.
    Parts,
}

/// Signs of a product and its summand, at most one of them negative. The discriminants follow those of operators, so
/// that both index one table ([`Instr::computes`]).
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
    /// Returns the value, rounded once.
    #[must_use]
    pub fn value(self, a: f64, b: f64, c: f64) -> f64 {
        match self {
            Self::Plus => a.mul_add(b, c),
            Self::MinusSummand => a.mul_add(b, -c),
            Self::MinusProduct => (-a).mul_add(b, c),
        }
    }

    /// Returns the name in listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plus => "mul_add",
            Self::MinusSummand => "mul_sub",
            Self::MinusProduct => "neg_mul_add",
        }
    }
}

/// A loop-carried register: `var` is `init` before the first iteration and `next` after each. It can be used in the
/// loop and after it. All carried registers of a loop change at once: every `next` is read before any `var` changes, so
/// that `next` may be the `var` of another one (a swap).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Defined by the loop.
    pub var: Reg,
    /// Defined before the loop.
    pub init: Reg,
    /// Register in scope at the end of the loop's body: defined in it, carried, or defined before the loop.
    pub next: Reg,
}

/// Result of a branch: one of two registers, each in scope at the end of its side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Defined by the branch, for the code after it.
    pub var: Reg,
    /// Value if the condition holds.
    pub then: Reg,
    /// Value if the condition does not hold.
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
    /// An integer: a polynomial over `Int` registers. The program fails if it does not fit into 64 bits, whatever its
    /// use. Lowering may combine sums so that a result fits although the source would overflow, but never changes the
    /// result.
    Int {
        /// Class `Int`.
        dst: Reg,
        /// The number.
        value: Poly<Reg>,
    },
    /// A scalar operator on doubles. Booleans among the arguments and the result are class `Int`.
    Op {
        /// Class of the operator's result.
        dst: Reg,
        /// The operator.
        op: Op,
        /// Arguments; unused entries repeat the first.
        args: [Reg; 3],
    },
    /// `a * b + c`, possibly with one sign inverted, rounded once. Made by [`contract`](crate::contract::contract) and
    /// [`lower_graph_with`](crate::from_graph::lower_graph_with).
    MulAdd {
        /// Class `Real`.
        dst: Reg,
        /// Signs of the product and the summand.
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
        /// Arguments; unused entries repeat the first.
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
    /// A double as an integer, rounded towards zero; the least integer for NaN and beyond 64 bits.
    ToInt {
        /// Class `Int`.
        dst: Reg,
        /// Class `Real`.
        src: Reg,
    },
    /// A call of an external function.
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
        /// Class of the buffer.
        dst: Reg,
        /// Source.
        buffer: BufferId,
        /// Index of the element.
        at: Poly<Reg>,
    },
    /// Writes an element; defines nothing.
    Store {
        /// Destination; not an input.
        buffer: BufferId,
        /// Index of the element.
        at: Poly<Reg>,
        /// Class of the buffer.
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

// Passes over large kernels are bound by memory.
const _: () = assert!(size_of::<Instr>() == 32);

/// Operation of an [`Instr::Op`] or [`Instr::MulAdd`] as one number, for tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Computed(u8);

impl Computed {
    /// Upper bound of all indices.
    pub const END: usize = 64 + 3;

    /// Returns the operation as an index.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the operator with this index, or `None` for a fused multiply-add.
    #[must_use]
    pub const fn of_index(index: usize) -> Option<Op> {
        if index < ROWS.len() { Some(ROWS[index].op) } else { None }
    }
}

const _: () = assert!(ROWS.len() <= 64);

impl Instr {
    /// Returns the result, the arguments (unused entries repeat the first) and the operation of an operator or a fused
    /// multiply-add. Most instructions are one of these, and which one is hard to predict, so that walks treat both
    /// alike.
    #[must_use]
    #[inline]
    pub fn computes(&self) -> Option<(Reg, &[Reg; 3], Computed)> {
        match self {
            Self::Op { dst, op, args } => Some((*dst, args, Computed(*op as u8))),
            Self::MulAdd { dst, signs, args } => Some((*dst, args, Computed(*signs as u8))),
            _ => None,
        }
    }

    /// Returns the register that the instruction defines.
    #[must_use]
    #[inline]
    pub fn dst(&self) -> Option<Reg> {
        match self {
            Self::Const { dst, .. }
            | Self::Int { dst, .. }
            | Self::Op { dst, .. }
            | Self::MulAdd { dst, .. }
            | Self::IntOp { dst, .. }
            | Self::ToInt { dst, .. }
            | Self::ToReal { dst, .. }
            | Self::External { dst, .. }
            | Self::Load { dst, .. } => Some(*dst),
            Self::Store { .. } | Self::CheckIndex { .. } => None,
        }
    }

    /// Calls `visit` for each register that the instruction uses, registers in its polynomials included.
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
            Self::ToReal { src, .. } | Self::ToInt { src, .. } => visit(*src),
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
