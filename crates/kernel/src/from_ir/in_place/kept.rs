//! Elements that a build leaves unchanged.
//!
//! In: a build in the memory of the array that it changes, and a condition in it. Out: the only element that it changes
//! ([`only_one`]), or the elements that it does not change ([`where_it_is`]).

use super::Narrow;
use super::search::{Path, Search};
use chainrule_base::Poly;
use chainrule_ir::{Block, Expr, Function, Size, VarId};
use chainrule_ops::Op;
use std::collections::BTreeSet;

/// Elements of an array, or of its rows, that are not written.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Row of the elements.
    row: Path,
    /// Variable for the index in [`Self::number`].
    index: VarId,
    /// Elements where this is not 0, or not negative.
    number: Size,
    is_other_than_zero: bool,
}

impl Kept {
    /// Returns whether the element at `path` is provably one of them, given pairs of equal integers.
    pub fn holds(&self, path: &[Size], same: &[(Size, Size)]) -> bool {
        let n = self.row.len();
        let Some(at) = path.get(n).filter(|_| path[..n] == self.row) else { return false };
        let number = self.number.substitute(|var| if var == self.index { at.clone() } else { Poly::var(var) });
        let known = |var: VarId| {
            let value = |(a, b): &(Size, Size)| match (a.as_var(), b.as_var()) {
                (Some(a), _) if a == var => b.as_constant(),
                (_, Some(b)) if b == var => a.as_constant(),
                _ => None,
            };
            same.iter().find_map(value).map_or_else(|| Poly::var(var), Poly::constant)
        };
        let number = number.substitute(known).as_constant();
        number.is_some_and(|number| if self.is_other_than_zero { number != 0 } else { number >= 0 })
    }
}

/// Returns the elements for which `condition` does or does not hold: a comparison of the last index of `at`, which is
/// the index of a build, with a number that is the same for all its elements.
pub(super) fn where_it_is(search: &Search<'_>, condition: VarId, holds: bool, at: &[Size]) -> Option<Kept> {
    let (index, row) = at.split_last()?;
    let index = index.as_var()?;
    let Some((_, Expr::Op(op, args))) = search.defs.get(&condition) else { return None };
    let [a, b] = args.as_slice() else { return None };
    if *search.function.ty(*a) != chainrule_ir::Type::Int {
        return None;
    }
    let (a, b) = (search.integer(*a), search.integer(*b));
    let one = Size::constant(1);
    let number = match (op, holds) {
        (Op::Lt, true) => b.sub(&a).sub(&one),
        (Op::Le, true) => b.sub(&a),
        (Op::Lt, false) => a.sub(&b),
        (Op::Le, false) => a.sub(&b).sub(&one),
        (Op::Eq, false) => a.sub(&b),
        _ => return None,
    };
    let is_fixed = |var: &VarId| *var == index || search.is_bound_before(*var, index);
    number.vars().iter().all(is_fixed).then(|| Kept {
        row: row.to_vec(),
        index,
        number,
        is_other_than_zero: *op == Op::Eq,
    })
}

/// Returns the only element that a build changes, if there is one.
pub(super) fn only_one(
    search: &Search<'_>,
    (var, leaf): (VarId, usize),
    index: VarId,
    body: &Block,
    at: &[Size],
) -> Option<Narrow> {
    let inner: Path = at.iter().cloned().chain([Size::var(index)]).collect();
    let (condition, one) = equalities(search.function, index, body)
        .into_iter()
        .find(|(condition, _)| search.stays(body, (body.result, leaf), &inner, *condition))?;
    Some(Narrow { leaf: (var, leaf), condition, at: one, path: at.to_vec() })
}

impl Search<'_> {
    /// Returns whether a leaf of a variable of `block` equals the element at `at` where `condition` does not hold.
    fn stays(&self, block: &Block, (var, leaf): (VarId, usize), at: &[Size], condition: VarId) -> bool {
        let (mut var, mut leaf) = (var, leaf);
        loop {
            if let Some(path) = self.old(var, leaf) {
                return path == at;
            }
            let Some((idx, expr)) = self.defs.get(&var).copied() else { return false };
            if block.stmts.get(idx).is_none_or(|stmt| stmt.var != var) {
                return false;
            }
            match expr {
                Expr::Tuple(_) | Expr::Component(..) => match self.inside(var, leaf) {
                    Some(next) => (var, leaf) = next,
                    None => return false,
                },
                Expr::Build { index, body, .. } => {
                    let inner: Path = at.iter().cloned().chain([Size::var(*index)]).collect();
                    return self.stays(body, (body.result, leaf), &inner, condition);
                }
                Expr::If { condition: c, then, otherwise } => {
                    let stays = |branch: &Block| self.stays(branch, (branch.result, leaf), at, condition);
                    return stays(otherwise) && (self.is_part(condition, *c) || stays(then));
                }
                Expr::Op(Op::Select, args) => match args.as_slice() {
                    [c, _, otherwise] if self.is_part(condition, *c) => var = *otherwise,
                    _ => return false,
                },
                _ => return false,
            }
        }
    }

    /// Returns whether `whole` implies `part`.
    fn is_part(&self, part: VarId, whole: VarId) -> bool {
        let mut open = vec![whole];
        while let Some(var) = open.pop() {
            if var == part {
                return true;
            }
            if let Some((_, Expr::Op(Op::And, args))) = self.defs.get(&var) {
                open.extend(args);
            }
        }
        false
    }
}

/// Returns the conditions in the body of a loop that hold for a single index known before the loop.
fn equalities(function: &Function, index: VarId, body: &Block) -> Vec<(VarId, Size)> {
    let mut inner = BTreeSet::from([index]);
    bound_in(body, &mut inner);
    let integer = |var: VarId| function.vars[var].value.clone().unwrap_or_else(|| Size::var(var));
    let mut found = Vec::new();
    let mut open = vec![body];
    while let Some(block) = open.pop() {
        for stmt in &block.stmts {
            if let (Expr::Op(Op::Eq, args), None) = (&stmt.expr, &function.vars[stmt.var].value)
                && let [a, b] = args.as_slice()
                && *function.ty(*a) == chainrule_ir::Type::Int
            {
                let (a, b) = (integer(*a), integer(*b));
                for (one, other) in [(&a, &b), (&b, &a)] {
                    // index = other, or index + rest = other.
                    if let Some((slope, rest)) = one.split_linear(index)
                        && slope.as_constant() == Some(1)
                    {
                        let at = other.sub(&rest);
                        if !at.vars().iter().any(|var| inner.contains(var)) {
                            found.push((stmt.var, at));
                            break;
                        }
                    }
                }
            }
            open.extend(stmt.expr.blocks());
        }
    }
    found
}

/// Adds all variables bound in `block` and its inner blocks.
pub(super) fn bound_in(block: &Block, found: &mut BTreeSet<VarId>) {
    for stmt in &block.stmts {
        found.insert(stmt.var);
        found.extend(stmt.expr.binders());
        stmt.expr.blocks().into_iter().for_each(|inner| bound_in(inner, found));
    }
}
