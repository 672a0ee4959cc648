//! The rules, filed by the construct that they match, each under its equation.
//!
//! Laws for rules, and counterexamples, are in `rules/README.md`.

mod branch;
mod build;
mod digits;
mod factor;
mod fold;
mod gather;
mod general;
mod get;
mod integer;
mod interchange;
mod linear;
mod logic;
mod mask;
mod number;
mod one_hot;
mod op;
mod plus;
mod solve;
mod sum;
mod terms;
mod tuple;
mod twins;
mod writes;

use crate::rebuild::Rebuild;
use chainrule_ir::{Expr, Type, VarId};
use chainrule_ops::{Op, ROWS, Semantics};
use std::sync::LazyLock;

/// A rule: a name, an equation, its conditions, and the function that applies it.
pub struct Rule {
    /// Name in reports and options.
    pub name: &'static str,
    /// Equation from left to right.
    pub law: &'static str,
    /// Side conditions.
    pub when: &'static str,
    /// Strictest semantics under which it holds.
    pub holds_under: Semantics,
    /// Whether it splits loops, so that parts can be simplified; remaining parts are merged at the end.
    pub split: bool,
    pub(crate) on: On,
    pub(crate) apply: fn(&mut Rebuild<'_>, &Expr, &Type) -> Option<VarId>,
}

/// Construct that a rule matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum On {
    /// Any operator.
    AnyOp,
    /// One of these.
    Op(&'static [Op]),
    Get,
    Build,
    Sum,
    Fold,
    If,
    Tuple,
    Component,
    Zero,
    OneHot,
    Plus,
    Loop,
    ToReal,
    /// A literal.
    Array,
}

/// Number of kinds of statements that rules match: constructs other than operators, and the operators.
const KINDS: usize = 13;

/// Counters besides rules: common subexpressions ...
pub(crate) const COMMON: usize = 0;
/// ... statements moved out of loops ...
pub(crate) const HOIST: usize = 1;
/// ... loops and branches reduced to their live fields ...
pub(crate) const FIELDS: usize = 2;
/// ... dead statements ...
pub(crate) const DEAD: usize = 3;
/// ... array expansions of recomputed values ...
pub(crate) const EXPAND: usize = 4;
/// ... merged loops ...
pub(crate) const MERGE: usize = 5;
/// ... decided branches ...
pub(crate) const DECIDE: usize = 6;
/// ... values of one loop stored for another ...
pub(crate) const SHARE: usize = 7;
/// ... users moved into the branches that build their arrays ...
pub(crate) const BRANCHES: usize = 8;
/// ... direction sinkings ...
pub(crate) const TURN: usize = 9;
/// ... fields of states without which a loop goes on.
pub(crate) const SEPARATE: usize = 10;

/// Names of the counters besides rules, each with a description.
pub const ENGINE: [(&str, &str); 11] = [
    ("common", "one variable for expressions that are the same up to names"),
    ("hoist", "what does not depend on a loop is moved out of it"),
    ("fields", "fields of loops and branches that nothing uses are not computed"),
    ("dead", "statements that nothing uses are left out"),
    ("expand", "what an outer loop computes again and again is computed once, and kept in an array"),
    ("merge", "loops of one count that share work become one"),
    ("decide", "if true then x else y = x; in x, the condition is known to be true"),
    ("share", "what loops beside each other compute is computed by the first, and kept in an array"),
    ("branches", "f (if c then x else y) = if c then f x else f y, where f alone uses an array that a branch builds"),
    (
        "turn",
        "build k (fun d -> build n (fun i -> f i d)) = the columns of build n (fun i -> build k (fun d -> f i d))",
    ),
    ("separate", "arrays of a loop's state to whose elements steps write, or add, separately leave the state"),
];

static TABLE: LazyLock<Vec<&'static Rule>> = LazyLock::new(|| {
    [
        op::RULES,
        integer::RULES,
        logic::RULES,
        mask::RULES,
        get::RULES,
        tuple::RULES,
        branch::RULES,
        build::RULES,
        interchange::RULES,
        sum::RULES,
        factor::RULES,
        digits::RULES,
        terms::RULES,
        gather::RULES,
        linear::RULES,
        fold::RULES,
        one_hot::RULES,
        plus::RULES,
        general::RULES,
        twins::RULES,
    ]
    .into_iter()
    .flatten()
    .collect()
});

impl On {
    /// Returns whether the rule matches statements of this kind.
    fn is_kind(self, kind: usize) -> bool {
        let constructs = [
            Self::Get,
            Self::Build,
            Self::Sum,
            Self::Fold,
            Self::If,
            Self::Tuple,
            Self::Component,
            Self::Zero,
            Self::OneHot,
            Self::Plus,
            Self::Loop,
            Self::ToReal,
            Self::Array,
        ];
        match self {
            Self::AnyOp => kind >= KINDS,
            Self::Op(ops) => ops.iter().any(|op| kind == KINDS + *op as usize),
            construct => constructs.get(kind) == Some(&construct),
        }
    }
}

/// Returns the number of the kind of `expr`; `None` if no rule matches it.
#[inline]
fn kind_of(expr: &Expr) -> Option<usize> {
    Some(match expr {
        Expr::Op(op, _) => KINDS + *op as usize,
        Expr::Get { .. } => 0,
        Expr::Build { .. } => 1,
        Expr::Sum { .. } => 2,
        Expr::Fold(_) => 3,
        Expr::If { .. } => 4,
        Expr::Tuple(_) => 5,
        Expr::Component(..) => 6,
        Expr::Zero => 7,
        Expr::OneHot { .. } => 8,
        Expr::Plus(..) => 9,
        Expr::Loop(_) => 10,
        Expr::ToReal(_) => 11,
        Expr::Array(_) => 12,
        _ => return None,
    })
}

/// Returns the number of the rule `fuse`.
pub(crate) fn fuse() -> usize {
    static FUSE: LazyLock<usize> =
        LazyLock::new(|| TABLE.iter().position(|rule| rule.name == "fuse").unwrap_or_default());
    *FUSE
}

/// Returns all rules, in the order in which those of one construct are tried.
#[must_use]
pub fn all() -> &'static [&'static Rule] {
    &TABLE
}

/// Rules by kind of statement, each by its place in [`TABLE`], in the order in which they are tried.
static BY_KIND: LazyLock<Vec<Vec<usize>>> = LazyLock::new(|| {
    let of = |kind: usize| (0..TABLE.len()).filter(|idx| TABLE[*idx].on.is_kind(kind)).collect();
    (0..KINDS + ROWS.len()).map(of).collect()
});

/// The rules that a pass tries.
pub(crate) struct Enabled {
    /// Whether each rule of [`TABLE`] is tried.
    is_enabled: Vec<bool>,
}

impl Enabled {
    /// Returns the rules that `is_enabled`.
    pub(crate) fn new(is_enabled: impl Fn(&Rule) -> bool) -> Self {
        Self { is_enabled: TABLE.iter().map(|rule| is_enabled(rule)).collect() }
    }

    /// Returns the rules for `expr`, each with its counter, in the order in which they are tried.
    #[inline]
    pub(crate) fn of(&self, expr: &Expr) -> impl Iterator<Item = (usize, &'static Rule)> {
        let rules: &'static [usize] = kind_of(expr).map_or(&[], |kind| &BY_KIND[kind]);
        rules.iter().filter(|idx| self.is_enabled[**idx]).map(|idx| (counted(*idx), TABLE[*idx]))
    }
}

/// Returns whether `var` is zero if a condition does not hold.
pub(crate) fn is_mask(rb: &Rebuild<'_>, var: VarId) -> bool {
    mask::as_mask(rb, var).is_some()
}

/// Returns the counter of rule `idx`.
pub(crate) fn counted(idx: usize) -> usize {
    ENGINE.len() + idx
}

/// Capabilities of a pass.
pub(crate) struct Settings {
    /// Rules.
    pub(crate) rules: Enabled,
    /// Whether common subexpressions are shared.
    pub(crate) common: bool,
    /// Whether statements are moved out of loops.
    pub(crate) hoist: bool,
    /// Whether arrays are made of values that a loop recomputes.
    pub(crate) expand: bool,
    /// Allowed rewrites: under strict ones, `+ 0.0` stays if it changes the sign of a zero.
    pub(crate) semantics: Semantics,
    /// Whether folds whose steps write separate elements become builds, and those that add to elements sums.
    pub(crate) separate: bool,
}
