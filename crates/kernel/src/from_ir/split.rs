//! Builds in pieces: `build n (fun i -> if i == j then e else f)` as two loops without a branch, and `e` between them.
//!
//! What asks whether its index is some number, which is known before the loop, is false but once. In the pieces before and
//! after, and in the one iteration between, the condition is known: no branch is left, indices like `i - 1` are inside
//! without a check, and iterations can run at once.
//!
//! Where a build writes into the state of a loop in place, and leaves all as it is but for one index, that one is all that
//! is left of it ([`in_place`](super::in_place)).

use super::Lowering;
use super::in_place;
use super::layout::View;
use super::offers::Target;
use crate::kernel::Reg;
use chainrule_base::{Poly, Span};
use chainrule_ir::{Block, Expr, VarId};
use chainrule_ops::Op;

/// Bodies with more statements are not written several times.
const MAX_STATEMENTS: usize = 60;

/// Builds in pieces nest so deep at most.
const MAX_COPIES: u32 = 1;

/// Loops that are known to be shorter stay whole.
const MIN_LENGTH: i64 = 8;

/// Some iterations of a build.
pub(super) struct Piece {
    pub indices: Indices,
    /// A condition, and whether it holds in all of them.
    pub known: Option<(VarId, bool)>,
}

/// Which iterations.
pub(super) enum Indices {
    /// So many, from one on.
    Range { from: Poly<Reg>, count: Poly<Reg> },
    /// One, if it is inside, which is to be asked where there is an index into the kernel's failures.
    One { at: Poly<Reg>, inside: Option<usize> },
}

impl Lowering<'_> {
    /// The iterations of a build of `count` elements that goes to `targets`, in order.
    pub(super) fn pieces(
        &mut self,
        var: VarId,
        count: &Poly<Reg>,
        index: VarId,
        body: &Block,
        targets: &[Target],
        span: Option<Span>,
    ) -> Vec<Piece> {
        if let Some((condition, at)) = self.only_element(var, targets) {
            let known = Some((condition, true));
            return vec![Piece { indices: self.one(at, count, span), known }];
        }
        let whole =
            || vec![Piece { indices: Indices::Range { from: Poly::zero(), count: count.clone() }, known: None }];
        if self.copies > MAX_COPIES
            || count.as_constant().is_some_and(|n| n < MIN_LENGTH)
            || n_statements(body) > MAX_STATEMENTS
        {
            return whole();
        }
        for (condition, at) in in_place::equalities(self.function, index, body) {
            let is_asked = body.stmts.iter().any(|stmt| match &stmt.expr {
                Expr::If { condition: c, .. } => *c == condition,
                Expr::Op(Op::Select, args) => args.first() == Some(&condition),
                _ => false,
            });
            if !is_asked || self.known.contains_key(&condition) {
                continue;
            }
            let at = self.size(&at);
            let one = Poly::constant(1);
            let mut pieces = Vec::new();
            let is_inside = self.b.is_surely_inside(&at, count);
            let (is_first, is_last) = (at.as_constant() == Some(0), at == count.sub(&one));
            if !is_inside && !is_first && !is_last {
                continue;
            }
            let mut range = |from: Poly<Reg>, count: Poly<Reg>| {
                if count.as_constant() != Some(0) {
                    pieces.push(Piece { indices: Indices::Range { from, count }, known: Some((condition, false)) });
                }
            };
            range(Poly::zero(), at.clone());
            range(at.add(&one), count.sub(&at).sub(&one));
            let middle = Piece { indices: self.one(at, count, span), known: Some((condition, true)) };
            pieces.insert(usize::from(!is_first).min(pieces.len()), middle);
            return pieces;
        }
        whole()
    }

    /// One iteration; asked for at run time unless it is there.
    fn one(&mut self, at: Poly<Reg>, count: &Poly<Reg>, span: Option<Span>) -> Indices {
        let inside = (!self.b.is_surely_inside(&at, count))
            .then(|| self.b.failure("an index lies outside of an array".to_owned(), span));
        Indices::One { at, inside }
    }

    /// The condition that holds for the only element that a build changes of what is in its place, and where that is.
    fn only_element(&mut self, var: VarId, targets: &[Target]) -> Option<(VarId, Poly<Reg>)> {
        let mut found = None;
        for (leaf, target) in targets.iter().enumerate() {
            let (narrow, state) = self.narrow.get(&(var, leaf)).cloned()?;
            let Target::Write(view) = target else { return None };
            let place: View = narrow.path.iter().fold(state, |view, index| view.row(&self.size(index)));
            if place != *view || found.as_ref().is_some_and(|(condition, _)| *condition != narrow.condition) {
                return None;
            }
            found = Some((narrow.condition, narrow.at));
        }
        let (condition, at) = found?;
        Some((condition, self.size(&at)))
    }
}

fn n_statements(block: &Block) -> usize {
    let mut n = 0;
    let mut open = vec![block];
    while let Some(block) = open.pop() {
        n += block.stmts.len();
        open.extend(block.stmts.iter().flat_map(|stmt| stmt.expr.blocks()));
    }
    n
}
