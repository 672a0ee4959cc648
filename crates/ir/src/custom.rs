//! Functions that state their own derivative.
//!
//! A factorisation differentiated step by step keeps every step; its derivative in terms of its result keeps nothing
//! (`docs/decisions/0017`). So a function may come with two rules, one for each mode, which see the point, the value,
//! and a direction or a cotangent. A rule may apply the function itself ([`crate::Expr::Again`]): there is no
//! recursion in it, because one rule is written out for each time that the function is differentiated.
//!
//! Differentiation alone looks at rules. Where all derivatives are worked out, the function is its body.

use crate::{Block, VarId};
use smallvec::SmallVec;

/// `fun param -> body` applied to `at`, with its derivative.
#[derive(Clone, PartialEq, Debug)]
pub struct Custom {
    /// The point; there is a `Double` in its type, and one in that of the value.
    pub at: VarId,
    /// Bound in `body`; of the type of `at`.
    pub param: VarId,
    /// The value. Variables of the blocks around it are constants in it: one that is differentiated by is an error.
    pub body: Block,
    /// The derivative; `None` where it is zero: `constant`.
    pub rule: Option<Rule>,
    /// Whether the rule is known to be the derivative of the body (or, without a rule, not to matter for what the
    /// function is part of), so that either may be used. The library promises that, and its tests check it.
    pub promised: bool,
}

/// The derivative of a function in both modes.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// What [`crate::Expr::Again`] calls the function in the rules; of the type of its value. It has no value itself.
    pub me: VarId,
    /// Of point, value and direction: the derivative along it, of the type of the value. Linear in the direction.
    pub forward: RuleBlock,
    /// Of point, value and cotangent: its product with the derivative, of the type of the point. Linear in the
    /// cotangent.
    pub reverse: RuleBlock,
}

/// One of the two rules. Directions and cotangents have the type of what they belong to; their `Int`s and `Bool`s are
/// those of the point or value, and those of the result are not looked at.
#[derive(Clone, PartialEq, Debug)]
pub struct RuleBlock {
    /// Point, value, and direction or cotangent; bound in `body`.
    pub params: [VarId; 3],
    /// What the rule says.
    pub body: Block,
}

impl Custom {
    /// Its blocks: the value's, then the rules'.
    pub(crate) fn blocks(&self) -> SmallVec<[&Block; 2]> {
        let rules = self.rule.iter().flat_map(|rule| [&rule.forward.body, &rule.reverse.body]);
        [&self.body].into_iter().chain(rules).collect()
    }

    /// As [`Self::blocks`], to be changed in place.
    pub(crate) fn blocks_mut(&mut self) -> SmallVec<[&mut Block; 2]> {
        let rules = self.rule.iter_mut().flat_map(|rule| [&mut rule.forward.body, &mut rule.reverse.body]);
        [&mut self.body].into_iter().chain(rules).collect()
    }

    /// The variables that it binds in its blocks.
    pub(crate) fn binders(&self) -> SmallVec<[VarId; 2]> {
        let rules = self.rule.iter().flat_map(|rule| {
            [rule.me].into_iter().chain(rule.forward.params).chain(rule.reverse.params).collect::<Vec<_>>()
        });
        [self.param].into_iter().chain(rules).collect()
    }
}
