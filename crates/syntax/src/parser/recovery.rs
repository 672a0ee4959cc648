//! Error recovery: reports, and the position where the parser continues.

use super::expressions::starts_expr;
use super::operators::infix;
use super::{Parser, messages};
use crate::token::{Token, TokenKind};
use chainrule_base::Span;

/// Returns the bracket that closes `opener`.
pub(super) fn closer_of(opener: TokenKind) -> TokenKind {
    match opener {
        TokenKind::LeftParen => TokenKind::RightParen,
        TokenKind::LeftBracket => TokenKind::RightBracket,
        _ => TokenKind::RightBrace,
    }
}

impl Parser<'_> {
    /// Expects the bracket that closes `opener`, and restores the border. At another token, skips to the closing
    /// bracket if there is one before the item ends.
    pub(super) fn close(&mut self, opener: Token, border: u32) {
        let closer = self.awaited.pop().unwrap_or(TokenKind::RightParen);
        if !self.eat(closer) {
            self.find_closer(opener, closer);
        }
        self.border = border;
    }

    fn find_closer(&mut self, opener: Token, closer: TokenKind) {
        let (token, kind) = (self.raw(), self.kind());
        let (opener_span, span) = (self.token_span(opener), self.token_span(token));
        let (opener_text, text) = (self.token_text(opener), self.token_text(token));
        if kind.is_closer() {
            self.report(messages::mismatched_bracket(opener_span, opener_text, span, text));
            self.take_foreign_closer();
            return;
        }
        if matches!(kind, TokenKind::Offside | TokenKind::End | TokenKind::In | TokenKind::Then | TokenKind::Else) {
            self.report(messages::unclosed_bracket(opener_span, opener_text, span, text));
            self.reported = Some(self.idx);
            return;
        }
        self.report(messages::unexpected_in_bracket(span, text, opener_span, opener_text));
        loop {
            self.skip_junk(0);
            if self.kind() != TokenKind::Comma {
                break;
            }
            self.bump();
        }
        if !self.eat(closer) {
            self.reported = Some(self.idx);
            self.take_foreign_closer();
        }
    }

    /// Skips a closing bracket without an opening one.
    fn take_foreign_closer(&mut self) {
        let kind = self.kind();
        if kind.is_closer() && !self.awaited.contains(&kind) {
            self.bump();
        }
    }

    /// Skips tokens, whole brackets and whole `let .. in` and `if .. then .. else`, up to the first token that ends an
    /// expression, or starts a line at `column` or left of it.
    pub(super) fn skip_junk(&mut self, column: u32) {
        let (mut brackets, mut lets, mut ifs) = (0usize, 0usize, 0usize);
        loop {
            let token = self.raw();
            let inside = brackets + lets + ifs > 0;
            match self.kind() {
                TokenKind::End | TokenKind::Offside => return,
                _ if token.first && token.column <= column && brackets == 0 => return,
                TokenKind::Comma if !inside => return,
                kind if kind.is_opener() => brackets += 1,
                kind if kind.is_closer() => match brackets.checked_sub(1) {
                    Some(fewer) => brackets = fewer,
                    None => return,
                },
                _ if brackets > 0 => {}
                TokenKind::Let => lets += 1,
                TokenKind::In => match lets.checked_sub(1) {
                    Some(fewer) => lets = fewer,
                    None => return,
                },
                TokenKind::If => ifs += 1,
                TokenKind::Then if ifs == 0 => return,
                TokenKind::Else => match ifs.checked_sub(1) {
                    Some(fewer) => ifs = fewer,
                    None => return,
                },
                _ => {}
            }
            self.bump();
        }
    }

    /// Returns whether the next token can only follow an expression, not start one.
    pub(super) fn at_end_of_expr(&self) -> bool {
        use TokenKind as K;
        let kind = self.kind();
        kind.is_closer() || matches!(kind, K::Offside | K::End | K::Comma | K::Semicolon | K::In | K::Then | K::Else)
    }

    /// Advances past the `,` before a further element; `;` is reported and treated like it.
    pub(super) fn eat_separator(&mut self, between: &str) -> bool {
        if self.kind() == TokenKind::Semicolon {
            self.report(messages::semicolon(self.token_span(self.raw()), &format!("write `,` between {between}")));
            self.bump();
            return true;
        }
        self.eat(TokenKind::Comma)
    }

    /// Expects the end of a binding inside an expression.
    pub(super) fn end_of_binding(&mut self, keyword: Token) {
        let token = self.raw();
        match self.kind() {
            TokenKind::In => {
                self.bump();
            }
            TokenKind::Semicolon => {
                let help = "write `in`, or go on in a new line at the column of the `let`";
                self.report(messages::semicolon(self.token_span(token), help));
                self.bump();
                self.eat(TokenKind::In);
            }
            TokenKind::Let if token.first => {}
            TokenKind::Let => {
                self.report(messages::missing_in(self.token_span(keyword), self.token_span(token), "`let`"));
            }
            kind if token.first && starts_expr(kind) => {}
            _ if self.at_end_of_expr() => {}
            _ if token.first && infix(token.kind).is_some() => {}
            _ => {
                let found = messages::quoted(self.token_text(token));
                self.report(messages::missing_in(self.token_span(keyword), self.token_span(token), &found));
                self.skip_junk(keyword.column);
                self.eat(TokenKind::In);
            }
        }
    }

    /// Expects `then` in any position.
    pub(super) fn expect_then(&mut self, keyword: Token) {
        if self.raw().kind != TokenKind::Then {
            let token = self.raw();
            let found = messages::quoted(self.token_text(token));
            self.report(messages::missing_then(self.token_span(keyword), self.token_span(token), &found));
            self.skip_junk(0);
        }
        if self.raw().kind == TokenKind::Then {
            self.bump();
        } else {
            self.reported = Some(self.idx);
        }
    }

    /// Expects `else` in any position; returns `false` if there is none.
    pub(super) fn expect_else(&mut self, keyword: Token) -> bool {
        if self.raw().kind != TokenKind::Else {
            let token = self.raw();
            self.report(messages::missing_else(self.token_span(keyword), self.token_span(token)));
            if !(token.first && token.kind == TokenKind::Let) {
                self.skip_junk(keyword.column);
            }
        }
        let found = self.raw().kind == TokenKind::Else;
        if found {
            self.bump();
        } else {
            self.reported = Some(self.idx);
        }
        found
    }

    /// Reports a missing result after the `let` at `keyword`.
    pub(super) fn report_missing_result(&mut self, keyword: Token) {
        let after = self.span(self.last_end(), self.last_end());
        self.report(messages::missing_result(self.token_span(keyword), after));
    }

    /// Reports a missing expression at the current position.
    pub(super) fn report_missing_expr(&mut self) {
        let token = self.raw();
        let before = self.idx.checked_sub(1).map(|idx| self.tokens[idx]);
        let after = before.map(|t| (self.token_span(t), self.token_text(t)));
        let found = self.token_text(token);
        let span = self.token_span(token);
        let diagnostic = match self.kind() {
            TokenKind::Offside if !self.starts_item(token) => messages::offside_expr(span, after, token.column),
            TokenKind::Offside | TokenKind::End => messages::expr_at_end(span, after),
            TokenKind::Arrow | TokenKind::FatArrow => messages::stray_arrow(span, found),
            kind if infix(kind).is_some() => messages::missing_operand(span, found, token.first),
            _ => messages::missing_expr(span, found, after.map(|a| a.1)),
        };
        self.report(diagnostic);
    }

    /// Reports `=>` or `=` in place of `->`, and skips it.
    pub(super) fn report_missing_arrow(&mut self, keyword: Token) {
        let token = self.raw();
        let (span, found) = (self.token_span(token), self.token_text(token));
        self.report(messages::missing_arrow(self.token_span(keyword), span, found));
        if matches!(self.kind(), TokenKind::Equals | TokenKind::FatArrow | TokenKind::ColonEquals | TokenKind::Dot) {
            self.bump();
        } else if !self.at_end_of_expr() && !starts_expr(self.kind()) {
            self.skip_junk(keyword.column);
            self.reported = Some(self.idx);
        }
    }

    /// Reports `->` or `:=` in place of `=`, and skips it.
    pub(super) fn report_missing_equals(&mut self, keyword: Token) {
        use TokenKind as K;
        let token = self.raw();
        let (span, found) = (self.token_span(token), self.token_text(token));
        self.report(messages::missing_equals(self.token_span(keyword), span, found));
        if matches!(self.kind(), K::Arrow | K::FatArrow | K::ColonEquals | K::EqualsEquals | K::LessEquals) {
            self.bump();
        } else if !self.at_end_of_expr() && !starts_expr(self.kind()) {
            self.skip_junk(keyword.column);
            self.reported = Some(self.idx);
        }
    }

    /// Reports `let rec f` and `let mutable x`, which F~ does not have.
    pub(super) fn report_let_modifier(&mut self) {
        let token = self.raw();
        let text = self.token_text(token);
        let modifier = matches!(text, "rec" | "mutable" | "mut" | "ref" | "const");
        if self.kind() == TokenKind::Name && modifier && self.second() == TokenKind::Name {
            self.report(messages::let_modifier(self.token_span(token), text));
            self.bump();
        }
    }

    /// Reports `&` for `&&`, `|` for `||`.
    pub(super) fn report_misspelt_operator(&mut self) {
        let span = self.token_span(self.raw());
        match self.kind() {
            TokenKind::And => self.report(messages::single_and_or(span, "&", "&&")),
            TokenKind::Bar => self.report(messages::single_and_or(span, "|", "||")),
            _ => {}
        }
    }

    /// Reports, once for each item, that it nests too deeply.
    pub(super) fn report_too_deep(&mut self, span: Span) {
        if !self.too_deep {
            self.too_deep = true;
            // Only its first line: the whole would fill the screen.
            let line = self.text.get(span.range()).and_then(|text| text.find('\n'));
            let line_end = line.and_then(|at| u32::try_from(at).ok()).map_or(span.end, |at| span.start + at);
            self.diagnostics.push(messages::too_deep(self.span(span.start, line_end)));
        }
        self.reported = Some(self.idx);
    }
}
