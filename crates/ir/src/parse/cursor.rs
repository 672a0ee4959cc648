//! A position in the tokens of a listing.

use super::Result;
use chainrule_base::{FileId, Id};
use chainrule_syntax::lexer::lex;
use chainrule_syntax::token::{Token, TokenKind};

/// The tokens that are not parsed yet.
pub(super) struct Cursor<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
}

impl<'t> Cursor<'t> {
    /// # Errors
    /// If a character begins no token.
    pub fn new(text: &'t str) -> Result<Self> {
        let (lexed, faults) = lex(text, FileId::new(0));
        match faults.first() {
            Some(fault) => Err(fault.title.clone()),
            None => Ok(Self { text, tokens: lexed.tokens, at: 0 }),
        }
    }

    /// Returns the line of the next token, from 1.
    pub fn line(&self) -> usize {
        let start = self.tokens.get(self.at).map_or(self.text.len(), |token| token.start as usize);
        1 + self.text.get(..start).unwrap_or_default().matches('\n').count()
    }

    fn token(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    pub fn peek(&self) -> TokenKind {
        self.token(0).map_or(TokenKind::End, |token| token.kind)
    }

    pub fn peek_second(&self) -> TokenKind {
        self.token(1).map_or(TokenKind::End, |token| token.kind)
    }

    /// Returns the text of the next token.
    pub fn word(&self) -> &'t str {
        self.token(0).and_then(|token| self.text.get(token.start as usize..token.end as usize)).unwrap_or_default()
    }

    /// Returns the kinds and texts of the tokens before the first one of kind `end`, which it does not skip.
    pub fn until(&self, end: TokenKind) -> Vec<(TokenKind, &'t str)> {
        let tokens = self.tokens.iter().skip(self.at).take_while(|token| token.kind != end);
        tokens
            .map(|token| (token.kind, self.text.get(token.start as usize..token.end as usize).unwrap_or_default()))
            .collect()
    }

    /// Skips a token; returns its kind.
    pub fn next(&mut self) -> TokenKind {
        let kind = self.peek();
        self.at = (self.at + 1).min(self.tokens.len());
        kind
    }

    /// Skips a token of this kind if it comes next; returns whether it does.
    pub fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.next();
        }
        found
    }

    pub fn expect(&mut self, kind: TokenKind) -> Result<()> {
        if self.eat(kind) { Ok(()) } else { Err(format!("expected {kind:?} at `{}`", self.word())) }
    }

    pub fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.word() != word {
            return Err(format!("expected `{word}` at `{}`", self.word()));
        }
        self.next();
        Ok(())
    }

    pub fn name(&mut self) -> Result<&'t str> {
        let word = self.word();
        self.expect(TokenKind::Name)?;
        Ok(word)
    }

    pub fn integer(&mut self) -> Result<i64> {
        let word = self.word();
        self.expect(TokenKind::Integer)?;
        word.parse().map_err(|_| format!("`{word}` does not fit into 64 bits"))
    }

    pub fn real(&mut self) -> Result<f64> {
        let word = self.word();
        self.expect(TokenKind::Real)?;
        word.parse().map_err(|_| format!("`{word}` is no number"))
    }
}
