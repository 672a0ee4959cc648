//! Values that several loops of a block compute, though these cannot be merged: the first of them stores the values.

use super::Merge;
use crate::cost;
use crate::key::Numbers;
use crate::rebuild::Plan;
use crate::walk;
use chainrule_ir::{Block, Function, Size, Stmt, Type, VarId};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Minimum cost of a value that is stored for another loop rather than recomputed.
pub(super) const MIN_SHARED: f64 = 8.0;
/// Maximum nesting of directly nested loops whose values are stored for loops of the same counts.
const MAX_SHARED_DEPTH: usize = 2;

/// Counts of nested loops, outermost first.
type Counts<'e> = SmallVec<[&'e Size; MAX_SHARED_DEPTH]>;

/// A statement in loops: index of the outermost loop in the block, variable, count of the outermost loop.
type Inside<'e> = (usize, VarId, &'e Size);

/// Facts about the loops of a block.
#[derive(Default)]
struct Looked<'e> {
    numbers: Numbers,
    /// Counts, with a number for each.
    counts: BTreeMap<&'e Size, u64>,
    /// Numbers worth an array: counts of the enclosing loops, number of the work, variable.
    costly: Vec<(Counts<'e>, u64, VarId)>,
}

/// A statement whose value other loops also compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    /// Number of loops whose values form the array.
    pub(crate) depth: usize,
    /// Whether the first loops that compute it are nested in the opposite order; their order is that of the array.
    pub(crate) is_turned: bool,
}

/// Puts into `plan` the statements that loops of one block share though they cannot be merged, and that cost more than
/// an array: loops of one count, and nested loops of the same counts in any order.
pub(crate) fn shared<'p>(function: &'p Function, plan: &mut Plan<'p>) {
    let mut merge = Merge::new(function, plan);
    merge.shared(&function.body);
}

impl Merge<'_, '_> {
    fn shared(&mut self, block: &Block) {
        let mut looked = Looked::default();
        // Statements that compute each work, by counts in any order, and number.
        let mut found: BTreeMap<(Counts<'_>, u64), Vec<Inside<'_>>> = BTreeMap::new();
        for (at, stmt) in block.stmts.iter().enumerate() {
            if self.loop_of(stmt).is_none() || self.plan.dead.contains(&stmt.var) {
                continue;
            }
            self.costly(stmt, &mut SmallVec::new(), &mut looked);
            for (mut counts, number, var) in looked.costly.drain(..) {
                let outermost = counts[0];
                counts.sort_unstable();
                found.entry((counts, number)).or_default().push((at, var, outermost));
            }
        }
        for ((counts, _), all) in found {
            let (first, _, outermost) = all[0];
            if all.iter().any(|(at, ..)| *at != first) {
                let depth = counts.len();
                let of = |around: &Size| Shared { depth, is_turned: around != outermost };
                self.plan.share.extend(all.into_iter().map(|(_, var, around)| (var, of(around))));
            }
        }
        for stmt in &block.stmts {
            if !stmt.expr.is_leaf() && !walk::is_opaque(&stmt.expr) {
                stmt.expr.blocks().into_iter().for_each(|block| self.shared(block));
            }
        }
    }

    /// Adds to `looked` the numbers in the loop `stmt`, and in loops directly inside it, that are worth an array.
    /// `around` are the counts of the enclosing loops.
    // Recursion is bounded by MAX_SHARED_DEPTH.
    fn costly<'e>(&mut self, stmt: &'e Stmt, around: &mut Counts<'e>, looked: &mut Looked<'e>) {
        let Some((_, count, index, body)) = self.loop_of(stmt) else { return };
        let function = self.function;
        let ty = |v: VarId| function.ty(v);
        // An index is named by its count, so that its name does not depend on the loop order; equal counts are named by
        // nesting.
        let inside = around.iter().filter(|other| **other == count).count() as u64;
        let n_counts = looked.counts.len() as u64;
        let count_number = *looked.counts.entry(count).or_insert(n_counts);
        self.keys.know(index, u64::from(u32::MAX) - MAX_SHARED_DEPTH as u64 * count_number - inside);
        around.push(count);
        for inner in &body.stmts {
            let number = looked.numbers.number(self.keys.key(&function.vars, &inner.expr, ty(inner.var)));
            if cost::expr(&inner.expr, &ty) >= MIN_SHARED && *ty(inner.var) == Type::Double {
                looked.costly.push((around.clone(), number, inner.var));
            }
            if around.len() < MAX_SHARED_DEPTH {
                self.costly(inner, around, looked);
            }
            self.keys.know(inner.var, number);
        }
        around.pop();
        self.keys.forget(index);
        body.stmts.iter().for_each(|stmt| self.keys.forget(stmt.var));
    }
}
