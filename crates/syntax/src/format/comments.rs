//! Parts of the text that are not in the tree: comments, kept line ends, spellings of numbers, parentheses.

use super::Printer;
use super::layout::{Event, Place};
use crate::lexer::lex;
use crate::token::{Comment, Token, TokenKind};
use chainrule_base::{FileId, Span};

/// A text with its tokens, and the comments that are still to be printed.
pub(super) struct Text<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
    /// First comment that is still to be printed.
    next: usize,
}

impl<'t> Text<'t> {
    pub(super) fn new(text: &'t str, file: FileId) -> Self {
        let (lexed, _) = lex(text, file);
        Self { text, tokens: lexed.tokens, comments: lexed.comments, next: 0 }
    }

    fn slice(&self, start: u32, end: u32) -> &'t str {
        self.text.get(start as usize..end as usize).unwrap_or("")
    }

    /// Returns the first token at `pos` or after it.
    fn token_at(&self, pos: u32) -> Token {
        let idx = self.tokens.partition_point(|t| t.start < pos);
        self.tokens[idx.min(self.tokens.len() - 1)]
    }

    /// Returns the last token before `pos`.
    fn token_before(&self, pos: u32) -> Option<Token> {
        let idx = self.tokens.partition_point(|t| t.start < pos);
        idx.checked_sub(1).map(|idx| self.tokens[idx])
    }

    /// Returns the first token at `pos` or after it, skipping opening parentheses.
    fn token_in_parens(&self, pos: u32) -> Token {
        let idx = self.tokens.partition_point(|t| t.start < pos);
        let found = self.tokens[idx..].iter().find(|t| t.kind != TokenKind::LeftParen);
        found.copied().unwrap_or_else(|| self.token_at(pos))
    }

    /// Returns whether an empty line is right before `pos`.
    fn blank_before(&self, pos: u32) -> bool {
        let before = self.text.get(..pos as usize).unwrap_or("");
        let blanks = &before[before.trim_end().len()..];
        blanks.matches('\n').count() > 1
    }

    /// Returns the position of `comment` relative to code.
    fn place(&self, comment: Comment) -> Place {
        let next = self.token_at(comment.end);
        let before_code = next.kind != TokenKind::End && !self.slice(comment.start, next.start).contains('\n');
        if before_code { Place::Inline } else { Self::place_before_line_end(comment) }
    }

    /// Returns the position of `comment` if the line ends after it.
    fn place_before_line_end(comment: Comment) -> Place {
        if comment.first { Place::OwnLine } else { Place::Trailing }
    }
}

impl Printer<'_> {
    /// Prints the remaining comments before `pos`.
    pub(super) fn comments_before(&mut self, pos: u32) {
        self.comments_placed(pos, |place| place);
    }

    /// Prints the remaining comments before `pos` up to the last one that ends its line; a line end may follow.
    pub(super) fn line_comments_before(&mut self, pos: u32) {
        let Some(text) = &self.text else { return };
        let comments = text.comments[text.next..].iter().take_while(|comment| comment.start < pos);
        let last = comments.filter(|comment| text.place(**comment) != Place::Inline).last();
        if let Some(end) = last.map(|comment| comment.end) {
            self.comments_before(end);
        }
    }

    /// Prints the comments before `pos`, where the next token must start its line: a comment before it would change its
    /// column.
    pub(super) fn comments_above(&mut self, pos: u32) {
        self.comments_placed(pos, |place| if place == Place::Inline { Place::OwnLine } else { place });
    }

    fn comments_placed(&mut self, pos: u32, placed: impl Fn(Place) -> Place) {
        let Some(text) = &mut self.text else { return };
        let first = text.next;
        while text.comments.get(text.next).is_some_and(|comment| comment.start < pos) {
            text.next += 1;
        }
        let batch = &text.comments[first..text.next];
        let places: Vec<Place> = batch.iter().map(|comment| placed(text.place(*comment))).collect();
        // Comments before code that now precede a line end.
        let code_after = places.iter().rposition(|place| *place != Place::Inline).map_or(0, |last| last + 1);
        for (i, (comment, place)) in batch.iter().zip(places).enumerate() {
            let place = match place {
                Place::Inline if i < code_after => Text::place_before_line_end(*comment),
                place => place,
            };
            let blank = place == Place::OwnLine && text.blank_before(comment.start);
            let text = text.slice(comment.start, comment.end).replace("\r\n", "\n");
            self.events.push(Event::Comment { text, place, blank });
        }
    }

    /// Prints the comments before `pos` up to the first one that is not behind code.
    pub(super) fn comments_trailing(&mut self, pos: u32) {
        while let Some(comment) = self.text.as_ref().and_then(|text| text.comments.get(text.next).copied())
            && comment.start < pos
            && self.text.as_ref().is_some_and(|text| text.place(comment) == Place::Trailing)
        {
            self.comments_before(comment.end);
        }
    }

    /// Prints all remaining comments.
    pub(super) fn comments_left(&mut self) {
        self.comments_above(u32::MAX);
    }

    /// Returns whether there is a comment between two positions.
    pub(super) fn has_comment(&self, start: u32, end: u32) -> bool {
        self.text.as_ref().is_some_and(|text| {
            let first = text.comments.partition_point(|c| c.start < start);
            text.comments.get(first).is_some_and(|c| c.start < end)
        })
    }

    /// Keeps an empty line if the text has one before `pos`.
    pub(super) fn blank_before(&mut self, pos: u32) {
        if self.text.as_ref().is_some_and(|text| text.blank_before(pos)) {
            self.event(Event::Blank);
        }
    }

    /// Returns whether the line ends between the previous token and `pos`.
    pub(super) fn line_ends_before(&self, pos: u32) -> bool {
        self.text
            .as_ref()
            .is_some_and(|text| text.token_before(pos).is_some_and(|token| text.slice(token.end, pos).contains('\n')))
    }

    /// Returns whether the line ends between `pos` and the next token.
    pub(super) fn line_ends_after(&self, pos: u32) -> bool {
        self.text.as_ref().is_some_and(|text| text.slice(pos, text.token_at(pos).start).contains('\n'))
    }

    /// Returns the start of the token before `pos`: the keyword before a pattern, the arrow before a body.
    pub(super) fn token_start_before(&self, pos: u32) -> u32 {
        self.text.as_ref().and_then(|text| text.token_before(pos)).map_or(pos, |token| token.start)
    }

    /// Returns the kind of the token before `pos`.
    pub(super) fn kind_before(&self, pos: u32) -> Option<TokenKind> {
        self.text.as_ref().and_then(|text| text.token_before(pos)).map(|token| token.kind)
    }

    /// Returns the end of the token before `pos`.
    pub(super) fn end_before(&self, pos: u32) -> Option<u32> {
        self.text.as_ref().and_then(|text| text.token_before(pos)).map(|token| token.end)
    }

    /// Returns whether the text at `pos` opens a parenthesis.
    pub(super) fn paren_at(&self, pos: u32) -> bool {
        self.text.as_ref().is_some_and(|text| text.token_at(pos).kind == TokenKind::LeftParen)
    }

    /// Returns the start of the content of the parentheses at `pos`.
    pub(super) fn inside_parens(&self, pos: u32) -> u32 {
        self.text.as_ref().map_or(pos, |text| text.token_in_parens(pos).start)
    }

    /// Returns the spelling of the number at `span`.
    pub(super) fn number_at(&self, span: Span) -> Option<&str> {
        let text = self.text.as_ref()?;
        let token = text.token_in_parens(span.start);
        matches!(token.kind, TokenKind::Integer | TokenKind::Real).then(|| text.slice(token.start, token.end))
    }
}
