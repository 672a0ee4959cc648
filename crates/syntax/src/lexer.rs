//! Lexer: text to tokens and comments.
//!
//! In: any text. Out: [`Lexed`], which always ends in [`TokenKind::End`], and diagnostics. Characters that begin no
//! token are reported and skipped. A malformed number is reported and stays a number, so that the parser can continue.
//! One pass, linear.
//!
//! A point followed by digits is a tuple component (`p.0`, `p.0.1`) right after a name, a bracket or another component,
//! and a malformed number (`.5`) elsewhere.

use crate::token::{Comment, Lexed, Token, TokenKind};
use chainrule_base::{Diagnostic, FileId, Span};

/// Columns of a tab in the indentation, which is also reported.
const TAB_WIDTH: u32 = 4;

/// Returns the tokens and comments of `text`, with diagnostics.
#[must_use]
pub fn lex(text: &str, file: FileId) -> (Lexed, Vec<Diagnostic>) {
    let mut lexer = Lexer {
        text,
        file,
        pos: 0,
        column: 1,
        first: true,
        tab_reported: false,
        out: Lexed::default(),
        diagnostics: Vec::new(),
    };
    if u32::try_from(text.len()).is_err() {
        lexer.diagnostics.push(
            Diagnostic::limitation("this file is too long")
                .with_reason("a source text holds at most 4 GiB")
                .with_help("cut it into several files and `import` them"),
        );
        lexer.pos = text.len();
    }
    if text.starts_with('\u{feff}') {
        lexer.pos = '\u{feff}'.len_utf8();
    }
    while lexer.next() {}
    lexer.push_at(TokenKind::End, lexer.pos);
    (lexer.out, lexer.diagnostics)
}

struct Lexer<'t> {
    text: &'t str,
    file: FileId,
    /// Position of the next character.
    pos: usize,
    /// Column of the next character.
    column: u32,
    /// Whether no token was seen on this line.
    first: bool,
    tab_reported: bool,
    out: Lexed,
    diagnostics: Vec<Diagnostic>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Advances by one character and updates line and column.
    fn bump(&mut self) {
        let Some(c) = self.peek() else { return };
        self.pos += c.len_utf8();
        if c == '\n' {
            self.column = 1;
            self.first = true;
        } else if c == '\t' && self.first {
            self.column += TAB_WIDTH - (self.column - 1) % TAB_WIDTH;
        } else {
            self.column += 1;
        }
    }

    fn bump_while(&mut self, mut wanted: impl FnMut(char) -> bool) {
        while self.peek().is_some_and(&mut wanted) {
            self.bump();
        }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        // The text is at most 4 GiB long: `lex` skips longer ones.
        Span::new(self.file, offset(start), offset(end))
    }

    /// Adds a token from `start` to the current position; `column` is that of `start`.
    fn push(&mut self, kind: TokenKind, start: usize, column: u32) {
        let spaced = self.out.tokens.last().is_none_or(|t| t.end != offset(start));
        self.out.tokens.push(Token {
            kind,
            start: offset(start),
            end: offset(self.pos),
            column,
            first: self.first,
            spaced,
        });
        self.first = false;
    }

    fn push_at(&mut self, kind: TokenKind, start: usize) {
        self.push(kind, start, self.column);
    }

    /// Reads one token, comment or blank; `false` at the end.
    fn next(&mut self) -> bool {
        let Some(c) = self.peek() else { return false };
        let (start, column) = (self.pos, self.column);
        if c.is_whitespace() {
            if c == '\t' && self.first {
                self.tab(start);
            }
            self.bump();
        } else if self.rest().starts_with("//") {
            self.bump_while(|c| c != '\n');
            let end = start + self.text[start..self.pos].trim_end().len();
            self.comment(Comment { start: offset(start), end: offset(end), first: self.first, block: false });
        } else if self.rest().starts_with("/*") {
            self.block_comment();
        } else if is_name_start(c) {
            self.name();
        } else if c.is_ascii_digit() || self.at_bare_fraction() {
            self.number();
        } else if c == '"' {
            self.string();
        } else if let Some((kind, length)) = operator(self.rest()) {
            for _ in self.text[start..start + length].chars() {
                self.bump();
            }
            self.push(kind, start, column);
        } else {
            self.stray(c);
        }
        true
    }

    /// Returns whether a number without digits before its point starts here.
    fn at_bare_fraction(&self) -> bool {
        let fraction = self.rest().strip_prefix('.');
        fraction.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) && !self.after_operand()
    }

    /// Returns whether the current character directly follows a token that can have components.
    fn after_operand(&self) -> bool {
        use TokenKind::{Integer, Name, RightBrace, RightBracket, RightParen};
        self.out.tokens.last().is_some_and(|t| {
            t.end == offset(self.pos)
                && (matches!(t.kind, Name | RightParen | RightBracket | RightBrace)
                    || t.kind == Integer && self.is_component(self.out.tokens.len() - 1))
        })
    }

    /// Returns whether token `idx` directly follows a point.
    fn is_component(&self, idx: usize) -> bool {
        let tokens = &self.out.tokens;
        idx > 0 && tokens[idx - 1].kind == TokenKind::Dot && tokens[idx - 1].end == tokens[idx].start
    }

    fn comment(&mut self, comment: Comment) {
        self.out.comments.push(comment);
    }

    fn tab(&mut self, start: usize) {
        if !self.tab_reported {
            self.tab_reported = true;
            self.diagnostics.push(
                Diagnostic::error("a tab in the indentation")
                    .with_label(self.span(start, start + 1), "this is a tab")
                    .with_reason("columns decide where a `let` without `in` ends, and a tab has no width of its own")
                    .with_help("indent with spaces"),
            );
        }
    }

    fn block_comment(&mut self) {
        let (start, first) = (self.pos, self.first);
        let mut depth = 0usize;
        loop {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.bump();
            } else if self.rest().starts_with("*/") {
                depth -= 1;
                self.bump();
            } else if self.rest().is_empty() {
                let opener = self.span(start, start + 2);
                self.diagnostics.push(
                    Diagnostic::error("a comment is never closed")
                        .with_label(opener, "it starts here")
                        .with_reason("`/* ... */` comments nest: each `/*` needs a `*/` of its own")
                        .with_help("write `*/` where the comment ends"),
                );
                break;
            }
            self.bump();
            if depth == 0 {
                break;
            }
        }
        self.comment(Comment { start: offset(start), end: offset(self.pos), first, block: true });
    }

    fn name(&mut self) {
        let (start, column) = (self.pos, self.column);
        self.bump_while(is_name_continue);
        self.bump_while(|c| c == '\'');
        let kind = match &self.text[start..self.pos] {
            "_" => TokenKind::Underscore,
            text => TokenKind::keyword(text).unwrap_or(TokenKind::Name),
        };
        self.push(kind, start, column);
    }

    fn digits(&mut self) {
        self.bump_while(|c| c.is_ascii_digit() || c == '_');
    }

    fn number(&mut self) {
        let (start, column) = (self.pos, self.column);
        let mut kind = TokenKind::Integer;
        self.digits();
        let component = {
            let last = self.out.tokens.last();
            last.is_some_and(|t| t.kind == TokenKind::Dot && t.end == offset(start))
        };
        if component {
            self.suffix(start);
            self.push(kind, start, column);
            return;
        }
        if self.rest().starts_with('.') {
            kind = TokenKind::Real;
            self.bump();
            let fraction = self.pos;
            if self.peek().is_some_and(|c| c.is_ascii_digit()) {
                self.digits();
            }
            self.point(start, fraction);
        }
        if self.rest().starts_with(['e', 'E']) && self.exponent(start) {
            kind = TokenKind::Real;
        }
        self.suffix(start);
        self.push(kind, start, column);
        self.range(kind, start);
    }

    /// Reports a point without digits on both its sides.
    fn point(&mut self, start: usize, fraction: usize) {
        let (whole, decimals) = (&self.text[start..fraction - 1], &self.text[fraction..self.pos]);
        let (title, help) = match (whole.is_empty(), decimals.is_empty()) {
            (true, _) => ("a number starts with its point", format!("write `0.{decimals}`")),
            (false, true) => ("a number ends in its point", format!("write `{whole}.0`")),
            (false, false) => return,
        };
        self.diagnostics.push(
            Diagnostic::error(title)
                .with_label(self.span(start, self.pos), "here")
                .with_reason("digits stand on both sides of the point")
                .with_help(help),
        );
    }

    /// Reads an exponent if there is one. `2exp` has none.
    fn exponent(&mut self, start: usize) -> bool {
        let rest = self.rest();
        let after = rest[1..].trim_start_matches(['+', '-']);
        let sign = rest.len() - 1 - after.len();
        if sign > 1 || sign == 0 && after.starts_with(is_name_start) {
            return false;
        }
        for _ in 0..=sign {
            self.bump();
        }
        let digits = self.pos;
        self.digits();
        if digits == self.pos {
            self.diagnostics.push(
                Diagnostic::error("an exponent has no digits")
                    .with_label(self.span(start, self.pos), "the digits after the `e` are missing")
                    .with_help("write for example `1e-3`"),
            );
            self.bump_while(is_name_continue);
        }
        true
    }

    /// Reports letters directly after a number.
    fn suffix(&mut self, start: usize) {
        let end = self.pos;
        let underscore = self.text[start..end].ends_with('_');
        if !self.peek().is_some_and(is_name_start) && !underscore {
            return;
        }
        self.bump_while(|c| is_name_continue(c) || c == '\'');
        let (number, letters) = (self.text[start..end].trim_end_matches('_'), &self.text[end..self.pos]);
        let diagnostic = Diagnostic::error("a number is followed by letters")
            .with_label(self.span(start, self.pos), "neither a number nor a name")
            .with_reason("numbers are decimal and carry no letters; names start with a letter");
        let help = if letters.is_empty() {
            format!("write `{number}`")
        } else {
            format!("to multiply, write `{number} * {letters}`")
        };
        self.diagnostics.push(diagnostic.with_help(help));
    }

    /// Reports a number outside the range of its type.
    fn range(&mut self, kind: TokenKind, start: usize) {
        let digits: String = self.text[start..self.pos].chars().filter(|c| *c != '_').collect();
        let span = self.span(start, self.pos);
        if kind == TokenKind::Integer && digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<i64>().is_err() {
            self.diagnostics.push(
                Diagnostic::error("an integer is too large")
                    .with_label(span, format!("larger than {}", i64::MAX))
                    .with_reason("integers have 64 bits")
                    .with_help("for a real number write a point or an exponent, such as `1e20`"),
            );
        } else if kind == TokenKind::Real && digits.parse::<f64>().is_ok_and(f64::is_infinite) {
            self.diagnostics.push(
                Diagnostic::error("a number is too large")
                    .with_label(span, "larger than 1.7976931348623157e308")
                    .with_reason("real numbers are 64-bit floating-point numbers"),
            );
        }
    }

    fn string(&mut self) {
        let (start, column) = (self.pos, self.column);
        self.bump();
        self.bump_while(|c| c != '"' && c != '\n');
        if self.rest().starts_with('"') {
            self.bump();
        } else {
            self.diagnostics.push(
                Diagnostic::error("a text is never closed")
                    .with_label(self.span(start, start + 1), "it starts here")
                    .with_reason("a text ends on the line on which it starts")
                    .with_help("write `\"` where it ends"),
            );
        }
        self.push(TokenKind::Text, start, column);
    }

    /// Reports a character that begins no token; skips it and all equal ones after it.
    fn stray(&mut self, c: char) {
        let (start, column) = (self.pos, self.column);
        if c == '#' {
            let opener = self.span(start, start + 1);
            self.bump_while(|c| c != '\n');
            self.diagnostics.push(
                Diagnostic::error("`#` starts no comment")
                    .with_label(opener, "here")
                    .with_help("comments are written `// ...` or `/* ... */`"),
            );
            return;
        }
        self.bump_while(|d| d == c);
        let shown: String =
            if c.is_control() || !is_visible(c) { format!("U+{:04X}", u32::from(c)) } else { format!("`{c}`") };
        let (replacement, help) = replacement(c);
        let diagnostic = Diagnostic::error(format!("{shown} means nothing here"))
            .with_label(self.span(start, self.pos), "this character belongs to no F~ program");
        self.diagnostics.push(match help {
            "" => diagnostic.with_help("remove it"),
            help => diagnostic.with_help(help),
        });
        if let Some(kind) = replacement {
            self.push(kind, start, column);
        }
    }
}

/// Returns a position as a `u32`; `lex` reads no text in which one does not fit.
fn offset(pos: usize) -> u32 {
    u32::try_from(pos).unwrap_or(u32::MAX)
}

fn is_name_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn is_name_continue(c: char) -> bool {
    is_name_start(c) || c.is_ascii_digit() || ('₀'..='₉').contains(&c)
}

/// Returns whether a message can show the character itself.
fn is_visible(c: char) -> bool {
    c.is_ascii() || c.is_alphanumeric() || !replacement(c).1.is_empty()
}

/// Returns the intended token for a stray character, and the suggested text.
fn replacement(c: char) -> (Option<TokenKind>, &'static str) {
    match c {
        '−' | '–' | '—' | '‐' | '‒' => (Some(TokenKind::Minus), "write the minus of the keyboard, `-`"),
        '∗' | '•' => (Some(TokenKind::Star), "write `*`"),
        '÷' => (Some(TokenKind::Slash), "write `/`"),
        '∧' => (Some(TokenKind::AndAnd), "write `&&`"),
        '∨' => (Some(TokenKind::OrOr), "write `||`"),
        '¬' => (None, "write `not` before the condition"),
        '“' | '”' | '„' | '«' | '»' => (None, "write straight quotes, `\"`"),
        '‘' | '’' | '′' => (None, "a prime at the end of a name is the straight quote, `'`"),
        '\'' => (None, "a prime stands at the end of a name; F~ has no characters and no texts"),
        '²' | '³' => (None, "write powers with `**`, such as `x ** 2`"),
        '√' => (None, "write `sqrt`"),
        '∞' => (None, "F~ has no infinity"),
        '%' => (Some(TokenKind::Star), "for the remainder write `mod a b`"),
        '@' => (Some(TokenKind::Star), "for a product of matrices write `matrixMult a b`"),
        '`' => (None, "functions stand before their arguments: `f a b`"),
        '$' => (None, "use parentheses: `f (g x)`"),
        '~' => (None, "for the opposite of a condition write `not c`"),
        '?' => (None, "a choice is written `if c then a else b`"),
        _ => (None, ""),
    }
}

/// Returns the operator or punctuation at the start of `text`, with its length in bytes.
fn operator(text: &str) -> Option<(TokenKind, usize)> {
    use TokenKind as K;
    // Longer spellings first.
    const SPELLINGS: &[(&str, TokenKind)] = &[
        ("->", K::Arrow),
        ("=>", K::FatArrow),
        ("==", K::EqualsEquals),
        ("<>", K::NotEquals),
        ("!=", K::NotEquals),
        ("<=", K::LessEquals),
        (">=", K::GreaterEquals),
        ("**", K::Power),
        ("&&", K::AndAnd),
        ("||", K::OrOr),
        (":=", K::ColonEquals),
        ("(", K::LeftParen),
        (")", K::RightParen),
        ("[", K::LeftBracket),
        ("]", K::RightBracket),
        ("{", K::LeftBrace),
        ("}", K::RightBrace),
        (",", K::Comma),
        (":", K::Colon),
        (".", K::Dot),
        ("=", K::Equals),
        ("<", K::Less),
        (">", K::Greater),
        ("+", K::Plus),
        ("-", K::Minus),
        ("*", K::Star),
        ("/", K::Slash),
        ("^", K::Power),
        (";", K::Semicolon),
        ("&", K::And),
        ("|", K::Bar),
        ("!", K::Bang),
        ("\\", K::Backslash),
        ("×", K::Star),
        ("·", K::Star),
        ("⋅", K::Star),
        ("→", K::Arrow),
        ("⇒", K::FatArrow),
        ("≠", K::NotEquals),
        ("≤", K::LessEquals),
        ("≥", K::GreaterEquals),
    ];
    SPELLINGS.iter().find(|(spelling, _)| text.starts_with(spelling)).map(|(spelling, kind)| (*kind, spelling.len()))
}
