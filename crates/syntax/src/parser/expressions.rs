//! Expressions other than infix operators.

use super::{Node, Parser, messages, operators::infix};
use crate::token::{Token, TokenKind};
use crate::tree::{Binding, Expr, ExprKind, Ident, Param};
use chainrule_base::{Diagnostic, Name};

/// Returns whether a token of this kind starts an expression that can be an argument.
pub(super) fn starts_argument(kind: TokenKind) -> bool {
    use TokenKind as K;
    kind.is_opener() || matches!(kind, K::Name | K::Underscore | K::Integer | K::Real | K::Text | K::True | K::False)
}

/// Whether a token of this kind starts an expression.
pub(super) fn starts_expr(kind: TokenKind) -> bool {
    use TokenKind as K;
    starts_argument(kind) || matches!(kind, K::Minus | K::Fun | K::Let | K::If | K::Bang | K::Backslash)
}

impl Parser<'_> {
    /// Parses an operand of infix operators.
    pub(super) fn operand(&mut self) -> Node {
        match self.kind() {
            TokenKind::Fun => self.fun(),
            TokenKind::Backslash => {
                self.report(messages::backslash(self.token_span(self.raw())));
                self.fun()
            }
            TokenKind::Let => self.let_chain(),
            TokenKind::If => self.conditional(),
            _ => self.application(),
        }
    }

    fn application(&mut self) -> Node {
        let function = self.postfix();
        if self.at_argument() { self.arguments(function) } else { function }
    }

    /// Returns whether an argument comes next, with or without the required parentheses.
    fn at_argument(&self) -> bool {
        match self.kind() {
            TokenKind::Bang => true,
            TokenKind::Fun | TokenKind::If | TokenKind::Backslash => !self.raw().first,
            kind => starts_argument(kind) && !self.at_elif(),
        }
    }

    fn arguments(&mut self, function: Node) -> Node {
        let mut args = Vec::new();
        let mut height = function.height;
        while self.at_argument() {
            let arg = self.argument();
            height = height.max(arg.height);
            args.push(arg.expr);
        }
        self.apply(function, args, height)
    }

    fn argument(&mut self) -> Node {
        if matches!(self.kind(), TokenKind::Fun | TokenKind::If | TokenKind::Backslash) {
            self.report(messages::bare_argument(self.token_span(self.raw()), self.token_text(self.raw())));
            return self.operand();
        }
        self.postfix()
    }

    fn apply(&mut self, function: Node, args: Vec<Expr>, height: usize) -> Node {
        let Some(last) = args.last() else { return function };
        if matches!(function.expr.kind, ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Bool(_)) {
            self.diagnostics.push(messages::number_applied(&function.expr, &args[0], self.text));
        }
        let span = function.expr.span.to(last.span);
        self.node(ExprKind::Apply { function: Box::new(function.expr), args }, span, height)
    }

    /// Parses `a[i][j]`, `p.0`, `r.name`.
    fn postfix(&mut self) -> Node {
        let node = self.primary();
        if matches!(self.kind(), TokenKind::LeftBracket | TokenKind::Dot) { self.postfix_of(node) } else { node }
    }

    /// Parses the postfix operators after `node`.
    fn postfix_of(&mut self, mut node: Node) -> Node {
        loop {
            match self.kind() {
                TokenKind::LeftBracket if !self.raw().spaced => node = self.index(node),
                TokenKind::Dot if self.second() == TokenKind::LeftBracket => {
                    self.report(messages::dotted_index(self.token_span(self.raw())));
                    self.bump();
                    node = self.index(node);
                }
                TokenKind::Dot => node = self.member(node),
                _ => return node,
            }
        }
    }

    fn index(&mut self, array: Node) -> Node {
        let (start, mut height) = (array.expr.span.start, array.height);
        let mut indices = Vec::new();
        while self.kind() == TokenKind::LeftBracket && (indices.is_empty() || !self.raw().spaced) {
            let opener = self.bump();
            let border = self.open(opener);
            loop {
                let index = self.expr();
                height = height.max(index.height);
                indices.push(index.expr);
                match self.kind() {
                    TokenKind::Comma => self.report(messages::comma_in_index(self.token_span(self.raw()))),
                    TokenKind::Colon => {
                        self.report(messages::slice(self.token_span(self.raw())));
                        break;
                    }
                    _ => break,
                }
                self.bump();
            }
            self.close(opener, border);
        }
        let span = self.span_from(start);
        self.node(ExprKind::Index { array: Box::new(array.expr), indices }, span, height)
    }

    fn member(&mut self, node: Node) -> Node {
        let start = node.expr.span.start;
        self.bump();
        let token = self.raw();
        let height = node.height;
        let of = Box::new(node.expr);
        match self.kind() {
            TokenKind::Name => {
                let field = self.ident();
                let span = self.span_from(start);
                self.node(ExprKind::Field { record: of, field }, span, height)
            }
            TokenKind::Integer => {
                self.bump();
                let span = self.span_from(start);
                let Ok(index) = self.token_text(token).replace('_', "").parse() else {
                    self.diagnostics.push(messages::component_too_large(self.token_span(token)));
                    return Self::error(span);
                };
                self.node(ExprKind::Component { tuple: of, index }, span, height)
            }
            _ => {
                self.report(messages::member_expected(self.token_span(self.raw())));
                Self::error(self.span_from(start))
            }
        }
    }

    /// Parses a name.
    pub(super) fn ident(&mut self) -> Ident {
        let token = self.bump();
        Ident { name: Name::new(self.token_text(token)), span: self.token_span(token) }
    }

    fn primary(&mut self) -> Node {
        match self.kind() {
            TokenKind::LeftParen => self.paren(),
            TokenKind::LeftBracket => self.array(),
            TokenKind::LeftBrace => self.record(),
            TokenKind::Bang => self.bang(),
            TokenKind::Name if self.at_return() => self.primary_after_return(),
            _ => self.leaf(),
        }
    }

    /// Returns whether `return` comes next, followed by an expression.
    fn at_return(&self) -> bool {
        self.kind() == TokenKind::Name && self.token_text(self.raw()) == "return" && starts_argument(self.second())
    }

    fn leaf(&mut self) -> Node {
        let token = self.raw();
        let text = self.token_text(token);
        let kind = match self.kind() {
            TokenKind::Name => ExprKind::Name(Name::new(text)),
            // The lexer reported an invalid number.
            TokenKind::Integer => text.replace('_', "").parse().map_or(ExprKind::Error, ExprKind::Integer),
            TokenKind::Real => match text.replace('_', "").parse::<f64>() {
                Ok(value) if value.is_finite() => ExprKind::Real(value),
                _ => ExprKind::Error,
            },
            TokenKind::True => ExprKind::Bool(true),
            TokenKind::False => ExprKind::Bool(false),
            TokenKind::Text => {
                self.report(messages::text_in_expression(self.token_span(token)));
                ExprKind::Error
            }
            TokenKind::Underscore => {
                self.report(messages::wildcard_in_expression(self.token_span(token)));
                ExprKind::Error
            }
            _ => {
                self.report_missing_expr();
                return self.error_here();
            }
        };
        self.bump();
        self.node(kind, self.token_span(token), 0)
    }

    /// Parses `return x` as `x`. A sequence of `return`s is skipped without recursion.
    fn primary_after_return(&mut self) -> Node {
        self.report(messages::no_return(self.token_span(self.raw())));
        while self.at_return() {
            self.bump();
        }
        self.primary()
    }

    /// Parses `!c`, reported, as `not c`.
    fn bang(&mut self) -> Node {
        let start = self.raw();
        self.report(messages::bang(self.token_span(start)));
        while self.kind() == TokenKind::Bang {
            self.bump();
        }
        if !starts_argument(self.kind()) {
            self.report_missing_expr();
            return self.error_here();
        }
        let arg = self.postfix();
        let function = Expr { kind: ExprKind::Name(Name::new("not")), span: self.token_span(start) };
        let span = function.span.to(arg.expr.span);
        self.node(ExprKind::Apply { function: Box::new(function), args: vec![arg.expr] }, span, arg.height)
    }

    fn paren(&mut self) -> Node {
        let opener = self.bump();
        let border = self.open(opener);
        let special = self.kind() == TokenKind::RightParen
            || infix(self.kind()).is_some()
                && (self.kind() != TokenKind::Minus || self.second() == TokenKind::RightParen);
        let mut node = if special { self.operator_in_parens(opener) } else { self.paren_content() };
        self.close(opener, border);
        node.expr.span = self.span_from(opener.start);
        node
    }

    /// Parses an operator as a function, or a mistake in its place.
    fn operator_in_parens(&mut self, opener: Token) -> Node {
        let token = self.raw();
        match infix(self.kind()) {
            None => {
                self.report(messages::empty_parens(self.token_span(opener).to(self.token_span(token))));
                self.error_here()
            }
            Some(operator) if self.second() == TokenKind::RightParen => {
                self.report_misspelt_operator();
                self.bump();
                let span = self.token_span(opener);
                self.node(ExprKind::Operator(operator), span, 0)
            }
            Some(_) => {
                self.report(messages::section(self.token_span(token), self.token_text(token)));
                self.bump();
                let node = self.expr();
                Self::error(node.expr.span)
            }
        }
    }

    /// Parses the content of parentheses: an expression, an annotated expression, or a tuple.
    fn paren_content(&mut self) -> Node {
        let first = self.expr();
        match self.kind() {
            TokenKind::Colon => self.annotation(first),
            TokenKind::Comma => self.tuple(first),
            _ => first,
        }
    }

    /// Parses `: T` after `first`.
    fn annotation(&mut self, first: Node) -> Node {
        let start = first.expr.span.start;
        if self.is_python_lambda(&first.expr) {
            self.report(messages::python_lambda(first.expr.span, self.token_span(self.raw())));
            self.bump();
            self.expr();
            return Self::error(self.span_from(start));
        }
        self.bump();
        let (ty, height) = self.type_expr();
        let span = self.span_from(start);
        let kind = ExprKind::Annotated { expr: Box::new(first.expr), ty };
        self.node(kind, span, first.height.max(height))
    }

    /// Parses the parts of a tuple after `first`.
    fn tuple(&mut self, first: Node) -> Node {
        let start = first.expr.span.start;
        let mut height = first.height;
        let mut elements = vec![first.expr];
        while self.eat(TokenKind::Comma) && self.kind() != TokenKind::RightParen {
            let element = self.expr();
            height = height.max(element.height);
            elements.push(element.expr);
        }
        let span = self.span_from(start);
        if elements.len() < 2 {
            self.report(messages::tuple_of_one(self.token_span(self.raw())));
            return Self::error(span);
        }
        self.node(ExprKind::Tuple(elements), span, height)
    }

    fn array(&mut self) -> Node {
        let opener = self.bump();
        let border = self.open(opener);
        let mut elements = Vec::new();
        let mut height = 0;
        while self.kind() != TokenKind::RightBracket {
            let element = self.expr();
            height = height.max(element.height);
            elements.push(element.expr);
            if !self.eat_separator("the elements of an array") {
                break;
            }
        }
        if elements.is_empty() {
            self.report(messages::empty_array(self.token_span(opener).to(self.token_span(self.raw()))));
        }
        self.close(opener, border);
        let span = self.span_from(opener.start);
        if elements.is_empty() { Self::error(span) } else { self.node(ExprKind::Array(elements), span, height) }
    }

    fn record(&mut self) -> Node {
        let opener = self.bump();
        let border = self.open(opener);
        let mut fields = Vec::new();
        let mut height = 0;
        while self.kind() == TokenKind::Name {
            let field = self.ident();
            match self.kind() {
                TokenKind::Equals => {
                    self.bump();
                }
                TokenKind::Colon | TokenKind::ColonEquals | TokenKind::Arrow | TokenKind::FatArrow => {
                    self.report(messages::field_equals(self.token_span(self.raw()), self.token_text(self.raw())));
                    self.bump();
                }
                _ => {
                    self.report(messages::not_a_record(self.token_span(opener), self.token_span(self.raw())));
                    break;
                }
            }
            let value = self.expr();
            height = height.max(value.height);
            fields.push((field, value.expr));
            if !self.eat_separator("the fields of a record") {
                break;
            }
        }
        if fields.is_empty() {
            let (opener, token) = (self.token_span(opener), self.raw());
            self.report(match token.kind {
                TokenKind::RightBrace => messages::empty_record(opener.to(self.token_span(token))),
                _ => messages::not_a_record(opener, self.token_span(token)),
            });
        }
        self.close(opener, border);
        let span = self.span_from(opener.start);
        if fields.is_empty() { Self::error(span) } else { self.node(ExprKind::Record(fields), span, height) }
    }

    fn fun(&mut self) -> Node {
        let keyword = self.bump();
        let (params, mut height) = self.params();
        if params.is_empty() {
            self.report(messages::no_parameters(self.token_span(keyword)));
        }
        let result = self.eat(TokenKind::Colon).then(|| {
            let (ty, type_height) = self.result_type();
            height = height.max(type_height);
            ty
        });
        if !self.eat(TokenKind::Arrow) {
            self.report_missing_arrow(keyword);
        }
        let body = self.expr();
        let span = self.span_from(keyword.start);
        if params.is_empty() {
            return Self::error(span);
        }
        self.node(ExprKind::Fun { params, result, body: Box::new(body.expr) }, span, height.max(body.height))
    }

    fn conditional(&mut self) -> Node {
        let start = self.raw();
        let mut arms = Vec::new();
        let mut height = 0;
        let otherwise = loop {
            let keyword = self.bump();
            let condition = self.expr();
            self.expect_then(keyword);
            let value = self.expr();
            height = height.max(condition.height).max(value.height);
            arms.push((condition.expr, value.expr));
            if self.at_elif() {
                self.report(messages::elif(self.token_span(self.raw()), self.token_text(self.raw())));
                continue;
            }
            if !self.expect_else(keyword) {
                break self.error_here();
            }
            if self.kind() != TokenKind::If {
                break self.expr();
            }
        };
        let span = self.span_from(start.start);
        let height = height.max(otherwise.height);
        self.node(ExprKind::If { arms, otherwise: Box::new(otherwise.expr) }, span, height)
    }

    /// Parses a chain of `let`s and their result into one node.
    fn let_chain(&mut self) -> Node {
        let start = self.raw().start;
        let mut bindings = Vec::new();
        let mut height = 0;
        let mut keyword;
        loop {
            keyword = self.raw();
            let (binding, binding_height) = self.binding();
            height = height.max(binding_height);
            bindings.push(binding);
            self.end_of_binding(keyword);
            if self.kind() != TokenKind::Let {
                break;
            }
        }
        let body = if self.at_end_of_expr() {
            self.report_missing_result(keyword);
            self.error_here()
        } else {
            self.expr()
        };
        let span = self.span_from(start);
        self.node(ExprKind::Let { bindings, body: Box::new(body.expr) }, span, height.max(body.height))
    }

    /// Parses `let pattern : type = value`, or the sugar `let f x (y : T) : result = value`, from the `let` on; the
    /// border is that of the `let`.
    pub(super) fn binding(&mut self) -> (Binding, usize) {
        let keyword = self.bump();
        let border = std::mem::replace(&mut self.border, keyword.column);
        self.report_let_modifier();
        let (pattern, mut ty, mut height) = self.let_pattern();
        let params_start = self.raw().start;
        let mut params: Vec<Param> = Vec::new();
        if matches!(pattern, crate::tree::Pattern::Name(_)) && ty.is_none() {
            let (found, params_height) = self.params();
            params = found;
            height = height.max(params_height);
        }
        if self.eat(TokenKind::Colon) {
            let (annotation, type_height) = self.type_expr();
            ty = Some(annotation);
            height = height.max(type_height);
        }
        if !self.eat(TokenKind::Equals) {
            self.report_missing_equals(keyword);
        }
        let mut value = self.expr();
        if !params.is_empty() {
            let span = self.span_from(params_start);
            let kind = ExprKind::Fun { params, result: ty.take(), body: Box::new(value.expr) };
            value = self.node(kind, span, height.max(value.height));
        }
        self.border = border;
        (Binding { pattern, ty, value: value.expr }, height.max(value.height))
    }

    /// Reports constructs of other languages after an expression.
    pub(super) fn after_expr(&mut self, node: Node) -> Node {
        let token = self.raw();
        let diagnostic: Diagnostic = match self.kind() {
            TokenKind::Arrow | TokenKind::FatArrow => messages::missing_fun(node.expr.span, self.token_span(token)),
            TokenKind::ColonEquals => messages::assignment(self.token_span(token)),
            _ => return node,
        };
        self.report(diagnostic);
        self.bump();
        let rest = self.expr();
        Self::error(node.expr.span.to(rest.expr.span))
    }

    /// Returns whether `lambda x` is followed by a token that starts no type.
    fn is_python_lambda(&self, expr: &Expr) -> bool {
        let ExprKind::Apply { function, .. } = &expr.kind else { return false };
        let lambda = matches!(&function.kind, ExprKind::Name(name) if name.as_str() == "lambda");
        let next = self.tokens.get(self.idx + 1);
        let named_type = next.is_some_and(|t| self.token_text(*t).starts_with(char::is_uppercase));
        lambda && !named_type && !self.second().is_opener()
    }

    /// Returns whether `elif` or a similar word comes next.
    fn at_elif(&self) -> bool {
        self.kind() == TokenKind::Name && matches!(self.token_text(self.raw()), "elif" | "elseif" | "elsif")
    }

    /// Records that `opener` was opened: brackets suspend the border. Returns the border to be restored by `close`.
    pub(super) fn open(&mut self, opener: Token) -> u32 {
        self.awaited.push(super::recovery::closer_of(opener.kind));
        std::mem::replace(&mut self.border, 0)
    }
}
