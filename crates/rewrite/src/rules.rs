//! The rules, filed by the construct that they start from, each under its equation.
//!
//! Laws for rules and the counterexamples that taught them are in `rules/README.md`.

mod branch;
mod build;
mod fold;
mod general;
mod get;
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

use crate::rebuild::Rebuild;
use chainrule_ir::{Expr, Type, VarId};
use std::sync::LazyLock;

/// A rule: a name, an equation, when it holds, and the function that applies it.
pub struct Rule {
    /// Its name: what reports say and options switch off.
    pub name: &'static str,
    /// From what to what.
    pub law: &'static str,
    /// Side conditions.
    pub when: &'static str,
    /// Whether it holds for real numbers only, not for every IEEE 754 double bit for bit.
    pub algebraic: bool,
    /// Whether it takes loops apart, so that parts can be simplified; what is left is put together at the end.
    pub split: bool,
    pub(crate) on: On,
    pub(crate) apply: fn(&mut Rebuild<'_>, &Expr, &Type) -> Option<VarId>,
}

/// The construct a rule starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum On {
    Op,
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
}

const CONSTRUCTS: usize = 12;

/// What is counted besides rules: common subexpressions ...
pub(crate) const COMMON: usize = 0;
/// ... statements moved out of loops ...
pub(crate) const HOIST: usize = 1;
/// ... loops and branches of which fewer fields are computed ...
pub(crate) const FIELDS: usize = 2;
/// ... statements that nothing uses ...
pub(crate) const DEAD: usize = 3;
/// ... numbers kept in arrays that a loop would compute again and again ...
pub(crate) const EXPAND: usize = 4;
/// ... loops put together ...
pub(crate) const MERGE: usize = 5;
/// ... branches taken ...
pub(crate) const DECIDE: usize = 6;
/// ... numbers kept in arrays that loops beside each other would compute ...
pub(crate) const SHARE: usize = 7;
/// ... statements moved into the branches that make the arrays that they use.
pub(crate) const BRANCHES: usize = 8;

/// The names of what is counted besides rules, each with a line that says what it is.
pub const ENGINE: [(&str, &str); 9] = [
    ("common", "one variable for expressions that are the same up to names"),
    ("hoist", "what does not depend on a loop is moved out of it"),
    ("fields", "fields of loops and branches that nothing uses are not computed"),
    ("dead", "statements that nothing uses are left out"),
    ("expand", "what an outer loop computes again and again is computed once, and kept in an array"),
    ("merge", "loops of one count that share work become one"),
    ("decide", "if true then x else y = x; in x, the condition is known to be true"),
    ("share", "what loops beside each other compute is computed by the first, and kept in an array"),
    ("branches", "f (if c then x else y) = if c then f x else f y, where f alone uses an array that a branch builds"),
];

static TABLE: LazyLock<Vec<&'static Rule>> = LazyLock::new(|| {
    [
        op::RULES,
        logic::RULES,
        mask::RULES,
        get::RULES,
        tuple::RULES,
        branch::RULES,
        build::RULES,
        interchange::RULES,
        sum::RULES,
        terms::RULES,
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

static BY_CONSTRUCT: LazyLock<[Vec<usize>; CONSTRUCTS]> = LazyLock::new(|| {
    let mut by: [Vec<usize>; CONSTRUCTS] = Default::default();
    for (idx, rule) in TABLE.iter().enumerate() {
        by[rule.on as usize].push(idx);
    }
    by
});

/// The number of the rule `fuse`.
pub(crate) fn fuse() -> usize {
    static FUSE: LazyLock<usize> =
        LazyLock::new(|| TABLE.iter().position(|rule| rule.name == "fuse").unwrap_or_default());
    *FUSE
}

/// All rules, in the order in which those of one construct are tried.
#[must_use]
pub fn all() -> &'static [&'static Rule] {
    &TABLE
}

/// The numbers of the rules for `expr`.
pub(crate) fn of(expr: &Expr) -> &'static [usize] {
    let on = match expr {
        Expr::Op(..) => On::Op,
        Expr::Get { .. } => On::Get,
        Expr::Build { .. } => On::Build,
        Expr::Sum { .. } => On::Sum,
        Expr::Fold { .. } => On::Fold,
        Expr::If { .. } => On::If,
        Expr::Tuple(_) => On::Tuple,
        Expr::Component(..) => On::Component,
        Expr::Zero => On::Zero,
        Expr::OneHot { .. } => On::OneHot,
        Expr::Plus(..) => On::Plus,
        Expr::Loop { .. } => On::Loop,
        _ => return &[],
    };
    &BY_CONSTRUCT[on as usize]
}

/// Whether `var` is zero where a condition does not hold.
pub(crate) fn is_mask(rb: &Rebuild<'_>, var: VarId) -> bool {
    mask::as_mask(rb, var).is_some()
}

/// The number that applications of rule `idx` are counted under.
pub(crate) fn counted(idx: usize) -> usize {
    ENGINE.len() + idx
}

/// What a pass may do.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// By rule.
    pub(crate) enabled: Vec<bool>,
    /// Whether common subexpressions are shared.
    pub(crate) common: bool,
    /// Whether statements are moved out of loops.
    pub(crate) hoist: bool,
    /// Whether arrays are made of what a loop computes again and again.
    pub(crate) expand: bool,
    /// Whether `+ 0.0` must stay where it changes the sign of a zero.
    pub(crate) strict: bool,
}
