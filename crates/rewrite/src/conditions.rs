//! Consequences of conditions: the parts that `not`, `and` and `or` combine, each with the value that follows for it.

use crate::rebuild::Rebuild;
use chainrule_ir::{Block, Expr, VarId};
use chainrule_ops::Op;
use smallvec::{SmallVec, smallvec};

/// Maximum number of visited parts of a condition, connectives included.
const MAX_PARTS: usize = 32;

/// Operator and operands.
type Made = (Op, SmallVec<[VarId; 3]>);

/// Truth value that follows from a condition.
pub(crate) struct Implied {
    pub(crate) var: VarId,
    pub(crate) value: bool,
    /// Operator that computes `var`, if one does.
    pub(crate) made: Option<Made>,
}

impl Rebuild<'_> {
    /// Returns the operator that computes `var`, which is in scope or bound in the closed block `block`.
    fn made(&self, block: Option<&Block>, var: VarId) -> Option<Made> {
        let copied = |expr: &Expr| match expr {
            Expr::Op(op, args) => Some((*op, SmallVec::from_slice(args))),
            _ => None,
        };
        match self.def(var) {
            Some(def) => copied(&def),
            None => copied(self.bound_in(block?, var)?),
        }
    }

    /// Returns the values that follow if `condition` is `value`, itself included; of each connective, those of the last
    /// operand first. Definitions are in scope or in the closed block `block`.
    pub(crate) fn implied(&self, block: Option<&Block>, condition: VarId, value: bool) -> SmallVec<[Implied; 4]> {
        let mut found = SmallVec::new();
        let mut open: SmallVec<[(VarId, bool); 4]> = smallvec![(condition, value)];
        while let Some((var, value)) = open.pop().filter(|_| found.len() < MAX_PARTS) {
            let made = self.made(block, var);
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
}
