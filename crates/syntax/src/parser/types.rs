//! Types and the sizes in them.

use super::{Parser, messages};
use crate::token::{Token, TokenKind};
use crate::tree::{Infix, MAX_DEPTH, Size, SizeKind, Type, TypeKind};
use chainrule_base::{Name, Span};

/// A type or a size, with its height.
type Tall<T> = (T, usize);

impl Parser<'_> {
    /// Parses a type.
    pub(super) fn type_expr(&mut self) -> Tall<Type> {
        self.function_type(&[TokenKind::FatArrow, TokenKind::Arrow])
    }

    /// Parses the type between the parameters and the `->` of a `fun`: `->` ends it, `=>` does not.
    pub(super) fn result_type(&mut self) -> Tall<Type> {
        self.function_type(&[TokenKind::FatArrow])
    }

    /// Parses a type in which `arrows` make functions.
    fn function_type(&mut self, arrows: &[TokenKind]) -> Tall<Type> {
        if !self.enter() {
            return self.type_error();
        }
        let (from, height) = self.product_type();
        let arrow = arrows.contains(&self.kind());
        let ty = if arrow {
            self.bump();
            let (to, to_height) = self.function_type(arrows);
            let span = from.span.to(to.span);
            self.type_node(TypeKind::Function(Box::new(from), Box::new(to)), span, height.max(to_height))
        } else {
            (from, height)
        };
        self.leave();
        ty
    }

    fn product_type(&mut self) -> Tall<Type> {
        let (first, mut height) = self.prefix_type();
        if self.kind() != TokenKind::Star {
            return (first, height);
        }
        let start = first.span.start;
        let mut factors = vec![first];
        while self.eat(TokenKind::Star) {
            let (factor, factor_height) = self.prefix_type();
            height = height.max(factor_height);
            factors.push(factor);
        }
        let span = self.span_from(start);
        self.type_node(TypeKind::Tuple(factors), span, height)
    }

    /// Parses `[n]T`, or a type without size brackets.
    fn prefix_type(&mut self) -> Tall<Type> {
        let mut prefixes = Vec::new();
        while self.kind() == TokenKind::LeftBracket {
            let start = self.raw().start;
            for (size, height) in self.size_brackets() {
                prefixes.push((start, size, height));
            }
        }
        let (mut ty, mut height) = self.postfix_type();
        for (start, size, size_height) in prefixes.into_iter().rev() {
            let span = self.span(start, ty.span.end.max(start));
            (ty, height) =
                self.type_node(TypeKind::Array { size, element: Box::new(ty) }, span, height.max(size_height));
        }
        (ty, height)
    }

    /// Parses `[n]` or `[]`; `[n, m]` is reported and parsed as `[n][m]`.
    fn size_brackets(&mut self) -> Vec<(Option<Size>, usize)> {
        let opener = self.bump();
        let border = self.open(opener);
        let mut sizes = Vec::new();
        if self.kind() == TokenKind::RightBracket {
            sizes.push((None, 0));
        } else {
            loop {
                let (size, height) = self.size();
                sizes.push((Some(size), height));
                if self.kind() != TokenKind::Comma {
                    break;
                }
                self.report(messages::comma_in_size(self.token_span(self.raw())));
                self.bump();
            }
        }
        self.close(opener, border);
        sizes
    }

    /// Parses a type without leading `[n]`; `T[n]` is reported and parsed as `[n]T`.
    fn postfix_type(&mut self) -> Tall<Type> {
        let (mut ty, mut height) = self.atomic_type();
        while self.kind() == TokenKind::LeftBracket {
            let bracket = self.raw();
            let start = ty.span.start;
            self.report(messages::size_after_type(self.token_span(bracket), self.snippet(ty.span)));
            for (size, size_height) in self.size_brackets() {
                let span = self.span_from(start);
                (ty, height) =
                    self.type_node(TypeKind::Array { size, element: Box::new(ty) }, span, height.max(size_height));
            }
        }
        (ty, height)
    }

    fn atomic_type(&mut self) -> Tall<Type> {
        let token = self.raw();
        let (span, text) = (self.token_span(token), self.token_text(token));
        match self.kind() {
            TokenKind::Name => {
                self.bump();
                if text == "Array" {
                    return self.array_type(token);
                }
                self.type_node(TypeKind::Name(Name::new(text)), span, 0)
            }
            TokenKind::Underscore => {
                self.bump();
                self.type_node(TypeKind::Name(Name::new("_")), span, 0)
            }
            TokenKind::LeftParen => self.paren_type(),
            TokenKind::LeftBrace => self.record_type(),
            kind => {
                let line_end = matches!(kind, TokenKind::Offside | TokenKind::End);
                self.report(messages::type_expected(span, if line_end { "" } else { text }));
                self.type_error()
            }
        }
    }

    /// Parses `Array<T>`, after `Array`.
    fn array_type(&mut self, name: Token) -> Tall<Type> {
        let span = self.token_span(name);
        if !self.eat(TokenKind::Less) {
            self.report(messages::array_without_element(span));
            return (Type { kind: TypeKind::Error, span }, 1);
        }
        let (element, height) = self.type_expr();
        self.split_greater();
        if !self.eat(TokenKind::Greater) {
            let token = self.raw();
            let found = self.token_text(token);
            self.report(messages::unclosed_angle(span, self.token_span(token), found));
        }
        let span = self.span_from(name.start);
        self.type_node(TypeKind::Array { size: None, element: Box::new(element) }, span, height)
    }

    /// Splits the `>=` that the lexer reads in `Array<T>= e` and `Array<T>=> U` into `>` and the rest.
    fn split_greater(&mut self) {
        let token = self.raw();
        if self.kind() != TokenKind::GreaterEquals || self.token_text(token) != ">=" {
            return;
        }
        // The previous token is consumed; its slot is reused for the `>`, so that nothing moves.
        let equals = Token { kind: TokenKind::Equals, start: token.start + 1, spaced: false, first: false, ..token };
        let greater = Token { kind: TokenKind::Greater, end: token.start + 1, ..token };
        let next = self.tokens[self.idx + 1];
        if next.kind == TokenKind::Greater && !next.spaced {
            self.tokens[self.idx] = greater;
            self.tokens[self.idx + 1] = Token { kind: TokenKind::FatArrow, end: next.end, ..equals };
        } else {
            self.tokens[self.idx] = equals;
            self.idx -= 1;
            self.tokens[self.idx] = greater;
        }
    }

    fn paren_type(&mut self) -> Tall<Type> {
        let opener = self.bump();
        let border = self.open(opener);
        let (first, mut height) = self.type_expr();
        let mut types = vec![first];
        while self.eat_separator("the parts of a tuple") && self.kind() != TokenKind::RightParen {
            let (ty, type_height) = self.type_expr();
            height = height.max(type_height);
            types.push(ty);
        }
        self.close(opener, border);
        let span = self.span_from(opener.start);
        match types.pop() {
            Some(ty) if types.is_empty() => (Type { span, ..ty }, height),
            last => {
                types.extend(last);
                self.type_node(TypeKind::Tuple(types), span, height)
            }
        }
    }

    fn record_type(&mut self) -> Tall<Type> {
        let opener = self.bump();
        let border = self.open(opener);
        let mut fields = Vec::new();
        let mut height = 0;
        while self.kind() == TokenKind::Name {
            let field = self.ident();
            if !self.eat(TokenKind::Colon) {
                let token = self.raw();
                self.report(messages::field_type(self.token_span(token), self.token_text(token)));
                if !self.eat(TokenKind::Equals) {
                    break;
                }
            }
            let (ty, type_height) = self.type_expr();
            height = height.max(type_height);
            fields.push((field, ty));
            if !self.eat_separator("the fields of a record") {
                break;
            }
        }
        if fields.is_empty() {
            self.report(messages::record_type_without_fields(self.token_span(opener)));
        }
        self.close(opener, border);
        let span = self.span_from(opener.start);
        if fields.is_empty() {
            return (Type { kind: TypeKind::Error, span }, 1);
        }
        self.type_node(TypeKind::Record(fields), span, height)
    }

    fn size(&mut self) -> Tall<Size> {
        if !self.enter() {
            return self.size_error();
        }
        let mut sum = self.size_product();
        loop {
            let op = match self.kind() {
                TokenKind::Plus => Infix::Add,
                TokenKind::Minus => Infix::Sub,
                _ => break,
            };
            self.bump();
            let right = self.size_product();
            sum = self.size_node(op, sum, right);
        }
        self.leave();
        sum
    }

    fn size_product(&mut self) -> Tall<Size> {
        let mut product = self.size_atom();
        while self.eat(TokenKind::Star) {
            let right = self.size_atom();
            product = self.size_node(Infix::Mul, product, right);
        }
        product
    }

    fn size_atom(&mut self) -> Tall<Size> {
        let token = self.raw();
        let (span, text) = (self.token_span(token), self.token_text(token));
        let kind = match self.kind() {
            TokenKind::Integer => SizeKind::Number(text.replace('_', "").parse().unwrap_or(0)),
            TokenKind::Name => SizeKind::Name(Name::new(text)),
            TokenKind::LeftParen => {
                let opener = self.bump();
                let border = self.open(opener);
                let (size, height) = self.size();
                self.close(opener, border);
                return (Size { span: self.span_from(opener.start), ..size }, height);
            }
            _ => {
                self.report(messages::size_expected(span, text));
                return self.size_error();
            }
        };
        self.bump();
        (Size { kind, span }, 1)
    }

    fn size_node(&mut self, op: Infix, left: Tall<Size>, right: Tall<Size>) -> Tall<Size> {
        let span = left.0.span.to(right.0.span);
        let height = left.1.max(right.1);
        if height >= MAX_DEPTH {
            self.report_too_deep(span);
            return (Size { kind: SizeKind::Number(0), span }, 1);
        }
        (Size { kind: SizeKind::Infix(op, Box::new(left.0), Box::new(right.0)), span }, height + 1)
    }

    fn type_node(&mut self, kind: TypeKind, span: Span, height: usize) -> Tall<Type> {
        if height >= MAX_DEPTH {
            self.report_too_deep(span);
            return (Type { kind: TypeKind::Error, span }, 1);
        }
        (Type { kind, span }, height + 1)
    }

    fn type_error(&self) -> Tall<Type> {
        let end = self.last_end();
        (Type { kind: TypeKind::Error, span: self.span(end, end) }, 1)
    }

    fn size_error(&self) -> Tall<Size> {
        let end = self.last_end();
        (Size { kind: SizeKind::Number(0), span: self.span(end, end) }, 1)
    }

    fn snippet(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }
}
