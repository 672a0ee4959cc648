//! Parser: recursive descent, with an operator-precedence loop for infix operators.
//!
//! In: a text. Out: a [`Module`] (or a single [`Expr`]) and diagnostics, for any text. At an error the tree has
//! [`ExprKind::Error`] and the parser continues at the next closing bracket, `in`, `then`, `else`, line of a `let`
//! chain, or item, so that several errors are reported at once; each position is reported once.
//!
//! # Precedence, loosest first
//!
//! | operators | |
//! | --- | --- |
//! | `fun`, `let`, `if` | extend as far right as possible |
//! | `\|\|` | left |
//! | `&&` | left |
//! | `==` `=` `<>` `!=` `<` `<=` `>` `>=` | do not chain |
//! | `+` `-` | left |
//! | `*` `×` `·` `/` | left |
//! | unary `-` | |
//! | `**` `^` | right; its right side may start with `-` |
//! | `f x y` | arguments are postfix expressions: `f v[i]` is `f (v[i])` |
//! | `a[i]` `p.0` `r.name` | `[` touches what it indexes; `f [a]` is applied to an array written out |
//!
//! # The offside rule
//!
//! An `in` may be omitted at the end of a line. For that, each `let` and each item sets a border at the column of its
//! first keyword: **inside the bound expression of a `let` or an item, a token that is the first on its line and is at
//! the border or left of it ends the expression.** Brackets suspend the border up to their closing. So
//!
//! ```text
//! let f = fun u M v ->             item, border 1
//!   let um = vectorToMatrix u      border 3, ended by the `let` below
//!   let m = matrixMult
//!             um (                 right of 3: still the arguments of matrixMult
//!     M )                          in brackets no border counts
//!   m[0][0]                        column 3: ends the binding of m; right of 1: still inside f
//! let g = 1                        column 1: ends f
//! ```
//!
//! 1. After a binding inside an expression comes `in`, or a `let` or the result that is the first on its line. A `let`
//!    that is the first on its line ends the previous binding in any column.
//! 2. `then`, `else` and closing brackets ignore borders: they can only belong to what they complete.
//! 3. `let`, `type` and `import` as the first on a line at or left of an item's column end that item even inside
//!    brackets: a missing bracket does not absorb the rest of the file.
//!
//! # Depth
//!
//! A tree of this parser is at most [`MAX_DEPTH`] deep, types included; deeper ones are reported as a limitation. The
//! parser itself only recurses on brackets, `fun`, `let`, `if` and types, slightly deeper at most.

mod expressions;
mod items;
mod messages;
mod operators;
mod patterns;
mod recovery;
mod types;

use crate::lexer::lex;
use crate::token::{Comment, Token, TokenKind};
use crate::tree::{Expr, ExprKind, MAX_DEPTH, Module};
use chainrule_base::{Diagnostic, Diagnostics, FileId, Sources, Span};

/// Maximum recursion of the parser. Slightly above [`MAX_DEPTH`], because parentheses nest here and not in the tree. A
/// level takes up to 6 KiB of stack in a build without optimisation, and a thread may have only 2 MiB.
const MAX_NESTING: usize = MAX_DEPTH + 64;

/// Maximum number of messages for one file.
const MAX_MESSAGES: usize = 100;

/// Returns the tree of `file`, with all errors in the order of the text.
#[must_use]
pub fn parse(sources: &Sources, file: FileId) -> (Module, Diagnostics) {
    let mut parser = Parser::new(&sources.file(file).text, file);
    let module = parser.module();
    (module, parser.finish())
}

/// Returns the single expression in the text of `file`, such as an argument on the command line.
#[must_use]
pub fn parse_expr(sources: &Sources, file: FileId) -> (Expr, Diagnostics) {
    let mut parser = Parser::new(&sources.file(file).text, file);
    let node = parser.expr();
    parser.end_of_lone_expr();
    (node.expr, parser.finish())
}

/// An expression with its height: 1 for a leaf, at most [`MAX_DEPTH`].
struct Node {
    expr: Expr,
    height: usize,
}

struct Parser<'t> {
    text: &'t str,
    file: FileId,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
    /// Next token.
    idx: usize,
    /// Border of the innermost `let` or item; 0 if no border applies.
    border: u32,
    /// Column of the item; 0 outside.
    item_column: u32,
    /// Expected closing brackets, outermost first.
    awaited: Vec<TokenKind>,
    /// Current recursion depth.
    nesting: usize,
    /// Whether this item was reported as too deep.
    too_deep: bool,
    /// Token of the last report: one position is reported once.
    reported: Option<usize>,
    diagnostics: Vec<Diagnostic>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, file: FileId) -> Self {
        let (lexed, diagnostics) = lex(text, file);
        Self {
            text,
            file,
            tokens: lexed.tokens,
            comments: lexed.comments,
            idx: 0,
            border: 0,
            item_column: 0,
            awaited: Vec::new(),
            nesting: 0,
            too_deep: false,
            reported: None,
            diagnostics,
        }
    }

    fn finish(mut self) -> Diagnostics {
        self.diagnostics.sort_by_key(|d| d.span().map(|span| span.start));
        let n_more = self.diagnostics.len().saturating_sub(MAX_MESSAGES);
        self.diagnostics.truncate(MAX_MESSAGES);
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(self.diagnostics);
        if n_more > 0 {
            diagnostics.push(
                Diagnostic::error(format!("{n_more} more errors in this file are not shown"))
                    .with_help("correct those above first"),
            );
        }
        diagnostics
    }

    /// Returns the next token, even if the offside rule hides it.
    fn raw(&self) -> Token {
        self.tokens[self.idx]
    }

    /// Returns the kind of the next token, under the offside rule.
    fn kind(&self) -> TokenKind {
        let token = self.raw();
        if token.first && token.kind != TokenKind::End && (token.column <= self.border || self.starts_item(token)) {
            return TokenKind::Offside;
        }
        token.kind
    }

    /// Returns whether `token` starts a further item, whatever brackets are open (rule 3).
    fn starts_item(&self, token: Token) -> bool {
        token.first
            && token.column <= self.item_column
            && matches!(token.kind, TokenKind::Let | TokenKind::Type | TokenKind::Import)
    }

    /// Returns the kind of the token after the next one.
    fn second(&self) -> TokenKind {
        self.tokens.get(self.idx + 1).map_or(TokenKind::End, |t| t.kind)
    }

    /// Advances past the next token, never past the end.
    fn bump(&mut self) -> Token {
        let token = self.raw();
        if token.kind != TokenKind::End {
            self.idx += 1;
        }
        token
    }

    /// Advances past the next token if it is a `kind`.
    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.bump();
        }
        found
    }

    fn token_text(&self, token: Token) -> &'t str {
        &self.text[token.start as usize..token.end as usize]
    }

    fn span(&self, start: u32, end: u32) -> Span {
        Span::new(self.file, start, end)
    }

    fn token_span(&self, token: Token) -> Span {
        self.span(token.start, token.end)
    }

    /// Returns the end of the last token.
    fn last_end(&self) -> u32 {
        self.idx.checked_sub(1).map_or(0, |idx| self.tokens[idx].end)
    }

    /// Returns the span from `start` to the end of the last token.
    fn span_from(&self, start: u32) -> Span {
        self.span(start, self.last_end().max(start))
    }

    /// Reports a diagnostic about the next token, unless one was reported there.
    fn report(&mut self, diagnostic: Diagnostic) {
        if self.reported != Some(self.idx) {
            self.reported = Some(self.idx);
            self.diagnostics.push(diagnostic);
        }
    }

    /// Returns a node whose highest child has `height`.
    fn node(&mut self, kind: ExprKind, span: Span, height: usize) -> Node {
        if height >= MAX_DEPTH {
            self.report_too_deep(span);
            return Self::error(span);
        }
        Node { expr: Expr { kind, span }, height: height + 1 }
    }

    fn error(span: Span) -> Node {
        Node { expr: Expr { kind: ExprKind::Error, span }, height: 1 }
    }

    /// Returns an empty error after the last token.
    fn error_here(&self) -> Node {
        let end = self.last_end();
        Self::error(self.span(end, end))
    }

    /// Returns whether the parser may go one level deeper; if not, reports it and skips the whole item.
    fn enter(&mut self) -> bool {
        if self.nesting < MAX_NESTING {
            self.nesting += 1;
            return true;
        }
        self.report_too_deep(self.token_span(self.raw()));
        while self.raw().kind != TokenKind::End && !self.starts_item(self.raw()) {
            self.bump();
        }
        self.reported = Some(self.idx);
        false
    }

    fn leave(&mut self) {
        self.nesting -= 1;
    }
}
