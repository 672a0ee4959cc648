//! Precedence and spelling of operators, shared by parser and formatter.

use crate::tree::Infix;

/// Precedence levels, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// `fun`, `let`, `if`: extend to the end of the enclosing construct.
    Open,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Negation,
    Power,
    Application,
    /// Expressions that can be arguments.
    Postfix,
}

impl Infix {
    /// Returns the precedence level.
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

    /// Returns its first spelling.
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
