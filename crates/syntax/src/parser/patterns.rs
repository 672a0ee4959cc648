//! Patterns bound by `fun` and `let`.

use super::{Parser, messages};
use crate::token::TokenKind;
use crate::tree::{MAX_DEPTH, Param, Pattern, Type};

impl Parser<'_> {
    /// Parses parameters as long as there are any; returns them with the height of the highest.
    pub(super) fn params(&mut self) -> (Vec<Param>, usize) {
        let mut params = Vec::new();
        let mut height = 0;
        loop {
            let (pattern, ty, param_height) = match self.kind() {
                TokenKind::Name | TokenKind::Underscore | TokenKind::LeftParen => self.param(),
                kind if kind.is_keyword() && self.before_end_of_params() => {
                    self.report(messages::keyword_as_name(self.token_span(self.raw()), self.token_text(self.raw())));
                    let token = self.bump();
                    let span = self.token_span(token);
                    (Pattern::Wildcard(span), None, 1)
                }
                TokenKind::Comma => {
                    self.report(messages::comma_between_params(self.token_span(self.raw())));
                    self.bump();
                    continue;
                }
                TokenKind::Integer | TokenKind::Real if self.before_end_of_params() => {
                    self.report(messages::number_as_param(self.token_span(self.raw())));
                    let token = self.bump();
                    let span = self.token_span(token);
                    (Pattern::Wildcard(span), None, 1)
                }
                _ => break,
            };
            height = height.max(param_height);
            params.push(Param { pattern, ty });
        }
        (params, height)
    }

    /// Returns whether the next token is in the position of a parameter, by the token after it.
    fn before_end_of_params(&self) -> bool {
        matches!(self.second(), TokenKind::Arrow | TokenKind::Equals | TokenKind::Comma)
    }

    /// Returns whether the next keyword is in the position of a name, by the token after it.
    fn keyword_as_name(&self) -> bool {
        use TokenKind as K;
        matches!(self.second(), K::Arrow | K::Equals | K::Name | K::LeftParen | K::Colon | K::Comma | K::RightParen)
            && !self.raw().first
    }

    /// Parses the pattern of a `let`, before its parameters.
    pub(super) fn let_pattern(&mut self) -> (Pattern, Option<Type>, usize) {
        let token = self.raw();
        let (span, text) = (self.token_span(token), self.token_text(token));
        let (pattern, ty, height) = match self.kind() {
            TokenKind::Name | TokenKind::Underscore | TokenKind::LeftParen => self.param(),
            kind if kind.is_keyword() && self.keyword_as_name() => {
                self.report(messages::keyword_as_name(span, text));
                self.bump();
                (Pattern::Wildcard(span), None, 1)
            }
            TokenKind::Integer | TokenKind::Real | TokenKind::Text => {
                self.report(messages::let_without_name(span, text));
                self.bump();
                (Pattern::Wildcard(span), None, 1)
            }
            _ => {
                self.report(messages::let_without_name(span, text));
                let end = self.last_end();
                (Pattern::Wildcard(self.span(end, end)), None, 1)
            }
        };
        if self.kind() != TokenKind::Comma {
            return (pattern, ty, height);
        }
        self.report(messages::tuple_needs_parens(self.token_span(self.raw())));
        let (mut patterns, mut height) = (vec![pattern], height);
        while self.eat(TokenKind::Comma) {
            if matches!(self.kind(), TokenKind::Name | TokenKind::Underscore | TokenKind::LeftParen) {
                let (pattern, _, h) = self.param();
                height = height.max(h);
                patterns.push(pattern);
            }
        }
        let span = self.span_from(span.start);
        (self.tuple_pattern(patterns, span, height), ty, height + 1)
    }

    /// Parses `x`, `_`, `(x : T)`, `(a, b)`, `((a, b) : T)`.
    fn param(&mut self) -> (Pattern, Option<Type>, usize) {
        let token = self.raw();
        match self.kind() {
            TokenKind::Name => (Pattern::Name(self.ident()), None, 1),
            TokenKind::Underscore => {
                self.bump();
                (Pattern::Wildcard(self.token_span(token)), None, 1)
            }
            _ => self.paren_pattern(),
        }
    }

    /// Parses a parameter in parentheses, from its `(` on.
    fn paren_pattern(&mut self) -> (Pattern, Option<Type>, usize) {
        let opener = self.raw();
        if !self.enter() {
            return (Pattern::Wildcard(self.token_span(opener)), None, 1);
        }
        self.bump();
        let border = self.open(opener);
        let (mut patterns, mut ty, mut height) = (Vec::new(), None, 1);
        let mut tuple = false;
        loop {
            let token = self.raw();
            let (span, text) = (self.token_span(token), self.token_text(token));
            match self.kind() {
                TokenKind::Name | TokenKind::Underscore | TokenKind::LeftParen => {
                    let (pattern, inner, h) = self.param();
                    if inner.is_some() && (tuple || self.kind() == TokenKind::Comma) {
                        self.report(messages::type_in_tuple_pattern(span));
                    }
                    ty = inner;
                    height = height.max(h);
                    patterns.push(pattern);
                }
                TokenKind::RightParen if patterns.is_empty() => {
                    self.report(messages::empty_pattern(self.token_span(opener).to(span)));
                }
                TokenKind::RightParen => break,
                kind if kind.is_keyword() => {
                    self.report(messages::keyword_as_name(span, text));
                    self.bump();
                    patterns.push(Pattern::Wildcard(span));
                }
                _ => {
                    self.report(messages::pattern_expected(span, text));
                    break;
                }
            }
            if self.kind() == TokenKind::Colon {
                let token = self.bump();
                let colon = self.token_span(token);
                let (annotation, type_height) = self.type_expr();
                height = height.max(type_height);
                ty = Some(annotation);
                if tuple || self.kind() == TokenKind::Comma {
                    self.report(messages::type_in_tuple_pattern(colon));
                }
            }
            if !self.eat(TokenKind::Comma) {
                break;
            }
            tuple = true;
        }
        self.close(opener, border);
        self.leave();
        let span = self.span_from(opener.start);
        if tuple && patterns.len() > 1 {
            return (self.tuple_pattern(patterns, span, height), None, height + 1);
        }
        (patterns.pop().unwrap_or(Pattern::Wildcard(span)), ty, height)
    }

    fn tuple_pattern(&mut self, patterns: Vec<Pattern>, span: chainrule_base::Span, height: usize) -> Pattern {
        if height >= MAX_DEPTH {
            self.report_too_deep(span);
            return Pattern::Wildcard(span);
        }
        Pattern::Tuple(patterns, span)
    }
}
