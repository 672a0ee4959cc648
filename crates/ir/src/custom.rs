//! Functions with their own derivative.
//!
//! A factorisation differentiated step by step stores every step; its derivative in terms of its result stores nothing
//! (`docs/decisions/0017`). So a function may have two rules, one for each mode, with access to the point, the value,
//! and a direction or a cotangent. A rule may apply the function itself ([`crate::Expr::Again`]). That is not
//! recursive, because the rule is expanded once for each time that the function is differentiated.
//!
//! Only differentiation uses rules. Once all derivatives are expanded, the function is its body.

use crate::{Block, VarId};
use smallvec::SmallVec;

/// `fun param -> body` applied to `at`, with its derivative.
#[derive(Clone, PartialEq, Debug)]
pub struct Custom {
    /// The point; its type and that of the value contain a `Double`.
    pub at: VarId,
    /// Bound in `body`; of the type of `at`.
    pub param: VarId,
    /// The value. Outer variables are constants in it: differentiating by one of them is an error.
    pub body: Block,
    /// The derivative; `None` if it is zero: `constant`.
    pub rule: Option<Rule>,
    /// Whether the rule is known to be the derivative of the body (or, without a rule, irrelevant for the surrounding
    /// function), so that either may be used. The library promises that, and its tests check it.
    pub promised: bool,
}

/// The derivative of a function in both modes.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// Name of the function in [`crate::Expr::Again`] in the rules; of the type of its value. It has no value itself.
    pub me: VarId,
    /// From point, value and direction: the derivative along it, of the type of the value. Linear in the direction.
    pub forward: RuleBlock,
    /// From point, value and cotangent: its product with the derivative, of the type of the point. Linear in the
    /// cotangent.
    pub reverse: RuleBlock,
}

/// One of the two rules. Directions and cotangents have the type of the point or value; their `Int`s and `Bool`s are
/// those of the point or value, and those of the result are ignored.
#[derive(Clone, PartialEq, Debug)]
pub struct RuleBlock {
    /// Point, value, and direction or cotangent; bound in `body`.
    pub params: [VarId; 3],
    /// Body of the rule.
    pub body: Block,
}

impl Custom {
    /// Returns its blocks: the value's, then the rules'.
    pub(crate) fn blocks(&self) -> SmallVec<[&Block; 2]> {
        let rules = self.rule.iter().flat_map(|rule| [&rule.forward.body, &rule.reverse.body]);
        [&self.body].into_iter().chain(rules).collect()
    }

    /// As [`Self::blocks`], for modification.
    pub(crate) fn blocks_mut(&mut self) -> SmallVec<[&mut Block; 2]> {
        let rules = self.rule.iter_mut().flat_map(|rule| [&mut rule.forward.body, &mut rule.reverse.body]);
        [&mut self.body].into_iter().chain(rules).collect()
    }

    /// Returns the variables that it binds in its blocks.
    pub(crate) fn binders(&self) -> SmallVec<[VarId; 2]> {
        let rules = self.rule.iter().flat_map(|rule| {
            [rule.me].into_iter().chain(rule.forward.params).chain(rule.reverse.params).collect::<Vec<_>>()
        });
        [self.param].into_iter().chain(rules).collect()
    }
}
