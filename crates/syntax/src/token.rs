//! Tokens of F~ and the comments between them.
//!
//! Tokens carry spans, not texts: a text is looked up in its source. Comments are stored separately, so that the parser
//! never sees them and the formatter finds them by position.

/// Kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// Letters, digits, `_`, primes at the end.
    Name,
    /// Digits.
    Integer,
    /// A number with point or exponent.
    Real,
    /// `"..."`, only used for an import's path
    Text,
    /// `_`
    Underscore,
    /// `fun`
    Fun,
    /// `let`
    Let,
    /// `in`
    In,
    /// `if`
    If,
    /// `then`
    Then,
    /// `else`
    Else,
    /// `import`
    Import,
    /// `type`
    Type,
    /// `true`
    True,
    /// `false`
    False,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `.`
    Dot,
    /// `->`, `→`
    Arrow,
    /// `=>`, `⇒`
    FatArrow,
    /// `=`
    Equals,
    /// `==`
    EqualsEquals,
    /// `<>`, `!=`, `≠`
    NotEquals,
    /// `<`
    Less,
    /// `<=`, `≤`
    LessEquals,
    /// `>`
    Greater,
    /// `>=`, `≥`
    GreaterEquals,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`, `×`, `·`
    Star,
    /// `/`
    Slash,
    /// `**`, `^`
    Power,
    /// `&&`
    AndAnd,
    /// `||`
    OrOr,
    /// `;`, never valid
    Semicolon,
    /// `:=`, never valid
    ColonEquals,
    /// `&`, never valid
    And,
    /// `|`, never valid
    Bar,
    /// `!`, never valid
    Bang,
    /// `\`, never valid
    Backslash,
    /// Replacement for a token hidden by the offside rule.
    Offside,
    /// End of the text.
    End,
}

impl TokenKind {
    /// Returns the keyword spelt `text`.
    #[must_use]
    pub fn keyword(text: &str) -> Option<Self> {
        Some(match text {
            "fun" => Self::Fun,
            "let" => Self::Let,
            "in" => Self::In,
            "if" => Self::If,
            "then" => Self::Then,
            "else" => Self::Else,
            "import" => Self::Import,
            "type" => Self::Type,
            "true" => Self::True,
            "false" => Self::False,
            _ => return None,
        })
    }

    /// Returns whether it is a word that cannot be a name.
    #[must_use]
    pub fn is_keyword(self) -> bool {
        matches!(
            self,
            Self::Fun
                | Self::Let
                | Self::In
                | Self::If
                | Self::Then
                | Self::Else
                | Self::Import
                | Self::Type
                | Self::True
                | Self::False
        )
    }

    /// Returns whether the token opens a bracket.
    #[must_use]
    pub fn is_opener(self) -> bool {
        matches!(self, Self::LeftParen | Self::LeftBracket | Self::LeftBrace)
    }

    /// Returns whether the token closes a bracket.
    #[must_use]
    pub fn is_closer(self) -> bool {
        matches!(self, Self::RightParen | Self::RightBracket | Self::RightBrace)
    }
}

/// A token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// Kind.
    pub kind: TokenKind,
    /// Its first byte.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
    /// Its column, in characters, from 1.
    pub column: u32,
    /// Whether it is the first token on its line.
    pub first: bool,
    /// Whether blanks or a comment are right before it.
    pub spaced: bool,
}

/// A comment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comment {
    /// First byte: that of `//` or `/*`.
    pub start: u32,
    /// One past its last byte, without the end of the line.
    pub end: u32,
    /// Whether no token precedes it on its line.
    pub first: bool,
    /// Whether it is written `/* ... */`.
    pub block: bool,
}

/// Tokens and comments of a text. All other characters except blanks were reported.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lexed {
    /// In the order of the text; only the last one is [`TokenKind::End`].
    pub tokens: Vec<Token>,
    /// In the order of the text.
    pub comments: Vec<Comment>,
}
