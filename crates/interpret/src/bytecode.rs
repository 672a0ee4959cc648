//! The bytecode: one flat list of operations with jumps.
//!
//! Invariants: real and integer slots are numbered separately; integer slot 0 always holds 0. Even integer slots are
//! equal for all points of a batch, odd ones may differ between points; addresses, counts, and conditions of programs
//! that run in lanes only use even ones.

use chainrule_kernel::Signs;
use chainrule_ops::Op;

/// Number of a slot of a register file.
pub(crate) type Slot = u32;

/// Integer slot that holds 0.
pub(crate) const ZERO: Slot = 0;

/// Returns whether an integer slot may differ between points.
pub(crate) fn varies(slot: Slot) -> bool {
    slot % 2 == 1
}

/// An operation. `d` is the destination; `a`, `b`, `c` are arguments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Code {
    /// Real `d` = constant `k`.
    Const {
        d: Slot,
        k: u32,
    },
    Move {
        d: Slot,
        a: Slot,
    },
    Add {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Sub {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Mul {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Div {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Neg {
        d: Slot,
        a: Slot,
    },
    /// Integer `d` from a comparison of two reals.
    Less {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    LessEqual {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Equal {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// Real `d` = `a` if integer `c` is not 0, else `b`.
    Select {
        d: Slot,
        c: Slot,
        a: Slot,
        b: Slot,
    },
    /// A fused multiply-add.
    MulAdd {
        d: Slot,
        signs: Signs,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// An operator from one real to a real, evaluated by its row.
    Call1 {
        d: Slot,
        op: Op,
        a: Slot,
    },
    /// An operator from two reals to a real, evaluated by its row.
    Call2 {
        d: Slot,
        op: Op,
        a: Slot,
        b: Slot,
    },
    /// Any operator, evaluated by its row; truth values are in integer slots.
    Call {
        d: Slot,
        op: Op,
        args: [Slot; 3],
    },
    /// Real `d` from an integer.
    ToReal {
        d: Slot,
        a: Slot,
    },
    /// Integer `d` from a real.
    ToInt {
        d: Slot,
        a: Slot,
    },
    /// A user function; its arguments are in the argument list from `args` on.
    External {
        d: Slot,
        function: u32,
        args: u32,
    },

    /// Integer `d` = integer constant `k`.
    IntConst {
        d: Slot,
        k: u32,
    },
    IntMove {
        d: Slot,
        a: Slot,
    },
    /// `checked`: overflow is a failure; otherwise it wraps (addresses, which are checked later).
    IntAdd {
        d: Slot,
        a: Slot,
        b: Slot,
        checked: bool,
    },
    IntMul {
        d: Slot,
        a: Slot,
        b: Slot,
        checked: bool,
    },
    IntAddConst {
        d: Slot,
        a: Slot,
        k: i32,
        checked: bool,
    },
    IntMulConst {
        d: Slot,
        a: Slot,
        k: i32,
        checked: bool,
    },
    /// An operator in its integer form, evaluated by its row.
    IntOp {
        d: Slot,
        op: Op,
        args: [Slot; 3],
        failure: u32,
    },

    /// Real `d` = element `integer base + offset`.
    Load {
        d: Slot,
        buffer: u32,
        base: Slot,
        offset: i32,
    },
    IntLoad {
        d: Slot,
        buffer: u32,
        base: Slot,
        offset: i32,
    },
    Store {
        a: Slot,
        buffer: u32,
        base: Slot,
        offset: i32,
    },
    IntStore {
        a: Slot,
        buffer: u32,
        base: Slot,
        offset: i32,
    },
    /// Copies `len` elements, an integer slot.
    Copy {
        to: u32,
        to_at: Slot,
        from: u32,
        from_at: Slot,
        len: Slot,
    },
    CheckIndex {
        index: Slot,
        len: Slot,
        failure: u32,
    },

    Jump {
        to: u32,
    },
    JumpIfZero {
        c: Slot,
        to: u32,
    },
    /// Sets `index` to 0; leaves the loop unless it is below `count`.
    ForBegin {
        index: Slot,
        count: Slot,
        exit: u32,
    },
    /// Increments `index`; jumps back while it is below `count`.
    ForNext {
        index: Slot,
        count: Slot,
        back: u32,
    },
    /// Counts an iteration, or fails.
    Limit {
        counter: Slot,
        limit: Slot,
        failure: u32,
    },
}
