//! Which loops keep all their states for reverse mode, and which make them again from checkpoints though nobody asks for that.
//!
//! All states are kept where so many steps can be planned for: a number that is known at entry, or has a bound there
//! ([`Bounds`]). The limit of a `while` is a bound; one that is a literal says little of how many steps there are, and counts
//! up to [`MAX_UNSURE`]. Every other loop has [`CHECKPOINTS`].

use super::Reverse;
use crate::asked::doubles;
use crate::bounds::Bounds;
use chainrule_base::Span;
use chainrule_ir::{Expr, Size, Stmt, VarId};
use std::fmt;

/// So many states of a loop are in memory where it is not known at entry how many there are: 561 steps are run twice more at
/// most, 6,545 three times, 58,905 four times.
pub const CHECKPOINTS: u32 = 32;

/// A `while` keeps at most so many numbers (8 MiB) of states that it may never have: its limit, a literal, times what a state
/// has at least.
const MAX_UNSURE: i64 = 1 << 20;

/// A loop whose states are made again from [`CHECKPOINTS`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeAgain {
    /// Where it stands in the program.
    pub span: Option<Span>,
    /// Why not all are kept.
    pub reason: Reason,
}

/// Why not all states of a loop are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// How many steps it takes is computed while the function runs.
    Computed,
    /// It is a `while` with this limit, whose states would be more than 2^20 numbers.
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

/// How many states loops keep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keeping {
    /// At most so many of each loop, if that is asked for.
    pub(crate) asked: Option<u32>,
    pub(crate) bounds: Bounds,
    /// What was decided where nothing was asked for; each loop once.
    pub(crate) made_again: Vec<MadeAgain>,
}

impl Reverse<'_> {
    /// How many checkpoints the loop `stmt` has; nothing where all its states are kept.
    pub(super) fn checkpoints(&mut self, stmt: &Stmt) -> Option<u32> {
        let (steps, state) = match &stmt.expr {
            Expr::Fold { count, state, .. } | Expr::Loop { count, state, .. } => (count, *state),
            Expr::While { limit, state, .. } => (limit, *state),
            _ => return None,
        };
        if let Some(asked) = self.out.keeping.asked {
            let asked = asked.max(1);
            return steps.as_constant().is_none_or(|n| n > i64::from(asked)).then_some(asked);
        }
        let is_while = matches!(stmt.expr, Expr::While { .. });
        let reason = self.reason(steps, state, is_while)?;
        let made_again = MadeAgain { span: stmt.span, reason };
        if !self.out.keeping.made_again.contains(&made_again) {
            self.out.keeping.made_again.push(made_again);
        }
        Some(CHECKPOINTS)
    }

    /// Why not all states of a loop of so many `steps` are kept, if they are not.
    fn reason(&self, steps: &Size, state: VarId, is_while: bool) -> Option<Reason> {
        if !self.out.keeping.bounds.is_bounded(steps) {
            return Some(Reason::Computed);
        }
        let limit = steps.as_constant().filter(|_| is_while)?;
        let numbers = doubles(self.out.ty(state)).as_constant().unwrap_or(1).max(1);
        (limit > MAX_UNSURE / numbers).then_some(Reason::Limit(limit))
    }
}
