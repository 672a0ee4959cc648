//! How tightly operators bind and how they are spelt: what parser and formatter must agree on.

use crate::tree::Infix;

/// How tightly something binds, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// `fun`, `let`, `if`: up to the end of whatever they stand in.
    Open,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Negation,
    Power,
    Application,
    /// What can be an argument.
    Postfix,
}

impl Infix {
    /// How tightly it binds.
    pub(crate) fn level(self) -> Level {
        match self {
            Self::Or => Level::Or,
            Self::And => Level::And,
            Self::Lt | Self::Le | Self::Gt | Self::Ge | Self::Eq | Self::Ne => Level::Comparison,
            Self::Add | Self::Sub => Level::Sum,
            Self::Mul | Self::Div => Level::Product,
            Self::Pow => Level::Power,
        }
    }

    /// Its first spelling.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Pow => "**",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Eq => "==",
            Self::Ne => "<>",
            Self::And => "&&",
            Self::Or => "||",
        }
    }
}
