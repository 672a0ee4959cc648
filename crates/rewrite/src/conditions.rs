//! Consequences of conditions: the parts that `not`, `and` and `or` combine, each with the value that follows for it.

use crate::rebuild::Rebuild;
use chainrule_ir::{Block, Expr, VarId};
use chainrule_ops::Op;
use smallvec::{SmallVec, smallvec};

/// Maximum number of visited parts of a condition, connectives included.
const MAX_PARTS: usize = 32;

/// Operator and operands.
pub(crate) type Made = (Op, SmallVec<[VarId; 3]>);

/// Truth value that follows from a condition.
pub(crate) struct Implied {
    pub(crate) var: VarId,
    pub(crate) value: bool,
    /// Operator that computes `var`, if one does.
    pub(crate) made: Option<Made>,
}

/// Returns the operator and the operands of `expr`, if it is one.
pub(crate) fn operator(expr: &Expr) -> Option<Made> {
    match expr {
        Expr::Op(op, args) => Some((*op, SmallVec::from_slice(args))),
        _ => None,
    }
}

impl Rebuild<'_> {
    /// Returns the operator that computes `var`, which is in scope or bound in the closed block `block`.
    fn made(&self, block: Option<&Block>, var: VarId) -> Option<Made> {
        match self.def(var) {
            Some(def) => operator(&def),
            None => operator(self.bound_in(block?, var)?),
        }
    }

    /// Returns the values that follow if `condition` is `value`, itself included; of each connective, those of the last
    /// operand first. Definitions are in scope or in the closed block `block`.
    pub(crate) fn implied(&self, block: Option<&Block>, condition: VarId, value: bool) -> SmallVec<[Implied; 4]> {
        implied_by(condition, value, |var| self.made(block, var))
    }
}

/// As [`Rebuild::implied`]; `made` returns the operator that computes a variable.
pub(crate) fn implied_by(
    condition: VarId,
    value: bool,
    made: impl Fn(VarId) -> Option<Made>,
) -> SmallVec<[Implied; 4]> {
    let mut found = SmallVec::new();
    let mut open: SmallVec<[(VarId, bool); 4]> = smallvec![(condition, value)];
    while let Some((var, value)) = open.pop().filter(|_| found.len() < MAX_PARTS) {
        let made = made(var);
        match (&made, value) {
            (Some((Op::Not, args)), _) => open.push((args[0], !value)),
            (Some((Op::And, args)), true) | (Some((Op::Or, args)), false) => {
                open.extend(args.iter().map(|arg| (*arg, value)));
            }
            _ => {}
        }
        found.push(Implied { var, value, made });
    }
    found
}
