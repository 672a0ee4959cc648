//! Policy of reverse mode for loop states: which loops keep all their states, and which recompute them from checkpoints
//! without a request.
//!
//! All states are kept if memory can be planned for the number of steps: a number that is known at entry, or has a
//! bound there ([`Bounds`]). The limit of a `while` is a bound; a literal limit is a weak estimate of the number of
//! steps, and is accepted only up to [`MAX_UNSURE`]. Every other loop has [`CHECKPOINTS`].

use super::Reverse;
use crate::asked::doubles;
use crate::bounds::Bounds;
use chainrule_base::Span;
use chainrule_ir::{Expr, Size, StateLoop, Stmt, VarId, WhileLoop};
use std::fmt;

/// Number of states of a loop in memory if the number of steps is unknown at entry: 561 steps are run at most twice
/// more, 6,545 three times, 58,905 four times.
pub const CHECKPOINTS: u32 = 32;

/// Maximum size, in numbers (8 MiB), of the states of a `while` that may never be reached: its limit, a literal, times
/// the minimum size of a state.
const MAX_UNSURE: i64 = 1 << 20;

/// Loop whose states are recomputed from [`CHECKPOINTS`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeAgain {
    /// Source location of the loop.
    pub span: Option<Span>,
    /// Reason why not all states are kept.
    pub reason: Reason,
}

/// Reason why not all states of a loop are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The number of steps is computed at run time.
    Computed,
    /// A `while` with this limit, whose states would be more than 2^20 numbers.
    Limit(i64),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Computed => f.write_str("how many steps it takes is computed while the function runs"),
            Self::Limit(limit) => write!(f, "it may take {limit} steps, and mostly takes fewer"),
        }
    }
}

/// Numbers of states that loops keep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keeping {
    /// Requested maximum for each loop.
    pub(crate) asked: Option<u32>,
    pub(crate) bounds: Bounds,
    /// Decisions made without a request; each loop once.
    pub(crate) made_again: Vec<MadeAgain>,
}

impl Reverse<'_> {
    /// Returns the number of checkpoints of the loop `stmt`; `None` if all its states are kept.
    pub(super) fn checkpoints(&mut self, stmt: &Stmt) -> Option<u32> {
        let (steps, state) = match &stmt.expr {
            Expr::Fold(StateLoop { count, state, .. }) | Expr::Loop(StateLoop { count, state, .. }) => (count, *state),
            Expr::While(WhileLoop { limit, state, .. }) => (limit, *state),
            _ => return None,
        };
        if let Some(asked) = self.out.keeping.asked {
            let asked = asked.max(1);
            return steps.as_constant().is_none_or(|n| n > i64::from(asked)).then_some(asked);
        }
        let is_while = matches!(stmt.expr, Expr::While(_));
        let reason = self.reason(steps, state, is_while)?;
        let made_again = MadeAgain { span: stmt.span, reason };
        if !self.out.keeping.made_again.contains(&made_again) {
            self.out.keeping.made_again.push(made_again);
        }
        Some(CHECKPOINTS)
    }

    /// Returns why not all states of a loop of so many `steps` are kept, if they are not.
    fn reason(&self, steps: &Size, state: VarId, is_while: bool) -> Option<Reason> {
        if !self.out.keeping.bounds.is_bounded(steps) {
            return Some(Reason::Computed);
        }
        let limit = steps.as_constant().filter(|_| is_while)?;
        let numbers = doubles(self.out.ty(state)).as_constant().unwrap_or(1).max(1);
        (limit > MAX_UNSURE / numbers).then_some(Reason::Limit(limit))
    }
}
