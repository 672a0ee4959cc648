//! Allowed rewrites, under one name for every representation.

/// Allowed rewrites, from the construction of a program to its kernel. The stricter is the greater: a rule that holds
/// under strict semantics holds under algebraic ones as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Semantics {
    /// Real arithmetic: `x*0` is 0, sums may be regrouped, as in D*.
    #[default]
    Algebraic,
    /// Only rewrites that are exact in IEEE 754, with all NaN equal.
    Strict,
}
