//! Items of a file: imports, types, definitions.

use super::{Parser, messages};
use crate::token::{Token, TokenKind};
use crate::tree::{Item, ItemKind, Module};

impl Parser<'_> {
    /// Parses the whole file.
    pub(super) fn module(&mut self) -> Module {
        let mut items = Vec::new();
        loop {
            (self.border, self.item_column, self.too_deep) = (0, 0, false);
            let token = self.raw();
            let start = self.idx;
            match token.kind {
                TokenKind::End => break,
                TokenKind::Let | TokenKind::Type | TokenKind::Import => {
                    (self.border, self.item_column) = (token.column, token.column);
                    let docs = self.docs(token.start);
                    // The keyword itself is at the border.
                    if let Some(kind) = self.item(token) {
                        items.push(Item { kind, span: self.span_from(token.start), docs });
                    }
                    self.end_of_item(token);
                }
                _ => self.stray_at_top(token),
            }
            if self.idx == start {
                self.bump();
            }
        }
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        Module { items, span: self.span(0, end) }
    }

    fn item(&mut self, keyword: Token) -> Option<ItemKind> {
        match keyword.kind {
            TokenKind::Let => Some(ItemKind::Let(self.binding().0)),
            TokenKind::Type => self.type_item(),
            _ => self.import(),
        }
    }

    fn type_item(&mut self) -> Option<ItemKind> {
        let keyword = self.bump();
        let token = self.raw();
        if self.kind() != TokenKind::Name {
            self.report(messages::type_without_name(self.token_span(token), self.token_text(token)));
            return None;
        }
        let name = self.ident();
        if !self.eat(TokenKind::Equals) {
            let token = self.raw();
            let found = self.token_text(token);
            self.report(messages::type_without_equals(self.token_span(keyword), self.token_span(token), found));
            if !matches!(self.kind(), TokenKind::Colon | TokenKind::ColonEquals | TokenKind::EqualsEquals) {
                return None;
            }
            self.bump();
        }
        let (ty, _) = self.type_expr();
        Some(ItemKind::TypeAlias { name, ty })
    }

    fn import(&mut self) -> Option<ItemKind> {
        self.bump();
        let token = self.raw();
        let (span, text) = (self.token_span(token), self.token_text(token));
        match self.kind() {
            TokenKind::Text => {
                self.bump();
                let path = text.trim_matches('"').to_owned();
                if path.is_empty() {
                    self.diagnostics.push(messages::import_without_path(span, text));
                }
                Some(ItemKind::Import { path, library: false, path_span: span })
            }
            TokenKind::Name => {
                self.bump();
                let next = self.raw();
                if matches!(self.kind(), TokenKind::Dot | TokenKind::Slash) {
                    self.report(messages::import_needs_quotes(span.to(self.token_span(next))));
                    self.skip_junk(0);
                }
                Some(ItemKind::Import { path: text.to_owned(), library: true, path_span: span })
            }
            _ => {
                self.report(messages::import_without_path(span, text));
                None
            }
        }
    }

    /// Checks that an item is followed by the next one or the end; reports anything else.
    fn end_of_item(&mut self, keyword: Token) {
        let token = self.raw();
        let (span, text) = (self.token_span(token), self.token_text(token));
        match self.kind() {
            TokenKind::End => return,
            TokenKind::Offside if token.kind == TokenKind::In => {
                self.report(messages::in_at_top(span, self.token_span(keyword)));
            }
            TokenKind::Offside => return,
            TokenKind::Semicolon => {
                self.report(messages::semicolon(span, "end the line; each definition starts on a line of its own"));
                self.bump();
                if self.raw().first || self.raw().kind == TokenKind::End {
                    return;
                }
            }
            TokenKind::Let | TokenKind::Type | TokenKind::Import => {
                self.report(messages::item_not_in_column(span, text, token.first, keyword.column));
                return;
            }
            TokenKind::In => self.report(messages::in_at_top(span, self.token_span(keyword))),
            kind if kind.is_closer() => self.report(messages::closes_nothing(span, text)),
            TokenKind::Then | TokenKind::Else => self.report(messages::stray_branch(span, text)),
            _ => self.report(messages::after_item(span, text)),
        }
        self.skip_to_item(keyword.column);
    }

    /// Skips to the first line that starts at `column` or left of it.
    fn skip_to_item(&mut self, column: u32) {
        loop {
            self.bump();
            let token = self.raw();
            if token.kind == TokenKind::End || token.first && token.column <= column {
                return;
            }
        }
    }

    /// Reports a token at top level other than `let`, `type` and `import`.
    fn stray_at_top(&mut self, token: Token) {
        let (span, text) = (self.token_span(token), self.token_text(token));
        self.report(match token.kind {
            TokenKind::In => messages::in_at_top(span, span),
            TokenKind::Semicolon => messages::semicolon(span, "remove it; a definition ends with its line"),
            kind if kind.is_closer() => messages::closes_nothing(span, text),
            _ => messages::expr_at_top(span, text),
        });
        loop {
            self.bump();
            let next = self.raw();
            let item = matches!(next.kind, TokenKind::Let | TokenKind::Type | TokenKind::Import);
            if next.kind == TokenKind::End || item && next.first && next.column <= token.column {
                return;
            }
        }
    }

    /// Checks that nothing follows a single expression.
    pub(super) fn end_of_lone_expr(&mut self) {
        let token = self.raw();
        if token.kind != TokenKind::End {
            let (span, text) = (self.token_span(token), self.token_text(token));
            self.report(match token.kind {
                kind if kind.is_closer() => messages::closes_nothing(span, text),
                TokenKind::Then | TokenKind::Else => messages::stray_branch(span, text),
                _ => messages::after_expr(span, text),
            });
        }
    }

    /// Returns the `//` lines right above `start`.
    fn docs(&self, start: u32) -> Vec<String> {
        let mut docs = Vec::new();
        let mut below = start;
        let above = self.comments.partition_point(|comment| comment.end <= start);
        for comment in self.comments[..above].iter().rev() {
            let gap = &self.text[comment.end as usize..below as usize];
            if !comment.first || comment.block || gap.matches('\n').count() != 1 || !gap.trim().is_empty() {
                break;
            }
            let text = self.text[comment.start as usize..comment.end as usize].trim_start_matches('/');
            docs.push(text.strip_prefix(' ').unwrap_or(text).to_owned());
            below = comment.start;
        }
        docs.reverse();
        docs
    }
}
