//! Limits on inlining builds into their reads ("reading through").
//!
//! Reading through computes an element again at every index that reads it. A chain of arrays each of which reads the
//! previous one at several indices therefore grows exponentially with its length, in statements or, where loops read,
//! in trips. A [`Budget`] counts both while a term is rewritten. A term that exceeds its budget is discarded, and its
//! result is differentiated as a whole, densely: the cost of that is linear in the program, and compressed evaluation
//! needs no structure.
//!
//! In: the statements of a term before and during the rewrite. Out: whether the term is within its budget.
//!
//! Holds: the decision depends on the program alone, never on sizes that are known only at run time.

use chainrule_ir::{Expr, Size, StateLoop};

/// Assumed trip count of a loop whose count is unknown.
const ASSUMED_TRIPS: u64 = 16;
/// Maximum factor by which reading through may multiply the work of the program. A dense derivative along a dozen
/// directions has a similar cost.
const MAX_RATIO: u64 = 16;
/// Maximum product of repeated statements and gathers, summed over all terms, which is about the number of statements
/// of a Hessian.
const MAX_REPEATED: u64 = 1 << 13;
/// Maximum number of gathers in a term of a Hessian, whose code is quadratic in them.
pub(crate) const MAX_GATHERS: usize = 128;
/// Maximum number of builds that read each other. Each takes a few frames of the stack.
pub(crate) const MAX_LEVEL: usize = 64;

/// Reason why an argument of a discarded term is dense.
pub(crate) const REASON: &str = "is read through a chain of arrays that is longer than its indices can be followed";

/// Allowed and actual cost of rewriting a term.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    /// Product of the trips of the term's loops.
    loops: u64,
    /// Work of the program outside of builds that are read through, in each iteration of the term.
    own: u64,
    /// Work of the builds that are read through, each computed once.
    builds: u64,
    /// Statements of the term before it was rewritten.
    before: u64,
    /// Statements so far.
    stmts: u64,
    /// Work so far, in each iteration of the term.
    work: u64,
    /// Product of the trips of the open loops.
    trips: u64,
    /// Repeated statements times gathers of the terms before.
    spent: u64,
    is_exceeded: bool,
}

impl Budget {
    /// Returns the budget of a term in loops of these counts, when the terms before have spent `spent`.
    pub(crate) fn new<'s>(counts: impl Iterator<Item = &'s Size>, spent: u64) -> Self {
        let loops = counts.map(trips).fold(1, u64::saturating_mul);
        Self { loops, spent, trips: 1, ..Self::default() }
    }

    /// Counts a statement of the term before it is rewritten; `is_lazy` if it is a build that is read through.
    pub(crate) fn expect(&mut self, expr: &Expr, is_lazy: bool) {
        let (stmts, work) = cost(expr);
        self.before = self.before.saturating_add(stmts);
        let sum = if is_lazy { &mut self.builds } else { &mut self.own };
        *sum = sum.saturating_add(work);
    }

    /// Counts a statement of the rewritten term.
    pub(crate) fn statement(&mut self) {
        self.stmts = self.stmts.saturating_add(1);
        self.work = self.work.saturating_add(self.trips);
    }

    /// Opens a loop of `count`; returns the argument of [`Self::close`].
    pub(crate) fn open(&mut self, count: &Size) -> u64 {
        let outer = self.trips;
        self.trips = outer.saturating_mul(trips(count));
        outer
    }

    pub(crate) fn close(&mut self, outer: u64) {
        self.trips = outer;
    }

    pub(crate) fn exceed(&mut self) {
        self.is_exceeded = true;
    }

    /// Returns whether the term, with `n_gathers` gathers, has exceeded its budget.
    pub(crate) fn is_exceeded(&mut self, n_gathers: usize) -> bool {
        let allowed = self.loops.saturating_mul(self.own).saturating_add(self.builds).saturating_mul(MAX_RATIO);
        self.is_exceeded |= self.loops.saturating_mul(self.work) > allowed || self.spent(n_gathers) > MAX_REPEATED;
        self.is_exceeded
    }

    /// Returns the repeated statements times gathers, of this term and those before.
    pub(crate) fn spent(&self, n_gathers: usize) -> u64 {
        let repeated = self.stmts.saturating_sub(self.before);
        self.spent.saturating_add(repeated.saturating_mul(n_gathers as u64))
    }
}

fn trips(count: &Size) -> u64 {
    count.as_constant().map_or(ASSUMED_TRIPS, |n| u64::try_from(n).unwrap_or(0).max(1))
}

/// Returns the number of statements of `expr` and its work. Recursive on the nesting of loops only.
fn cost(expr: &Expr) -> (u64, u64) {
    let times = match expr {
        Expr::Build { size: count, .. }
        | Expr::Sum { count, .. }
        | Expr::Fold(StateLoop { count, .. })
        | Expr::Loop(StateLoop { count, .. }) => trips(count),
        Expr::While(_) => ASSUMED_TRIPS,
        _ => 1,
    };
    let (mut stmts, mut work) = (1_u64, 1_u64);
    for inner in expr.blocks().into_iter().flat_map(|block| &block.stmts) {
        let (more, inside) = cost(&inner.expr);
        stmts = stmts.saturating_add(more);
        work = work.saturating_add(inside.saturating_mul(times));
    }
    (stmts, work)
}
