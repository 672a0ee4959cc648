//! Parts of the text that the tree does not hold: comments, kept line ends, spellings of numbers, parentheses.

use super::Printer;
use super::layout::{Event, Place};
use crate::lexer::lex;
use crate::token::{Comment, Token, TokenKind};
use chainrule_base::{FileId, Span};

/// A text with its tokens and the comments not yet printed.
pub(super) struct Text<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
    /// The first comment that is not yet printed.
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

    /// The first token at `pos` or after it.
    fn token_at(&self, pos: u32) -> Token {
        let idx = self.tokens.partition_point(|t| t.start < pos);
        self.tokens[idx.min(self.tokens.len() - 1)]
    }

    /// The last token before `pos`.
    fn token_before(&self, pos: u32) -> Option<Token> {
        let idx = self.tokens.partition_point(|t| t.start < pos);
        idx.checked_sub(1).map(|idx| self.tokens[idx])
    }

    /// The first token at `pos` or after it that opens no parenthesis.
    fn token_in_parens(&self, pos: u32) -> Token {
        let idx = self.tokens.partition_point(|t| t.start < pos);
        let found = self.tokens[idx..].iter().find(|t| t.kind != TokenKind::LeftParen);
        found.copied().unwrap_or_else(|| self.token_at(pos))
    }

    /// Returns whether an empty line stands right before `pos`.
    fn blank_before(&self, pos: u32) -> bool {
        let before = self.text.get(..pos as usize).unwrap_or("");
        let blanks = &before[before.trim_end().len()..];
        blanks.matches('\n').count() > 1
    }

    /// Where `comment` stands in the text.
    fn place(&self, comment: Comment) -> Place {
        let next = self.token_at(comment.end);
        let before_code = next.kind != TokenKind::End && !self.slice(comment.start, next.start).contains('\n');
        if before_code { Place::Inline } else { Self::place_before_line_end(comment) }
    }

    /// Where `comment` stands when the line ends after it.
    fn place_before_line_end(comment: Comment) -> Place {
        if comment.first { Place::OwnLine } else { Place::Trailing }
    }
}

impl Printer<'_> {
    /// Prints the comments before `pos` that are not yet printed.
    pub(super) fn comments_before(&mut self, pos: u32) {
        self.comments_placed(pos, |place| place);
    }

    /// Prints of the comments before `pos` those up to the last that ends its line: what follows may be a line end.
    pub(super) fn line_comments_before(&mut self, pos: u32) {
        let Some(text) = &self.text else { return };
        let comments = text.comments[text.next..].iter().take_while(|comment| comment.start < pos);
        let last = comments.filter(|comment| text.place(**comment) != Place::Inline).last();
        if let Some(end) = last.map(|comment| comment.end) {
            self.comments_before(end);
        }
    }

    /// Prints the comments before `pos`, where what follows must start its line: a comment before it would move its
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

    /// The comments before `pos` up to the first that does not stand behind code.
    pub(super) fn comments_trailing(&mut self, pos: u32) {
        while let Some(comment) = self.text.as_ref().and_then(|text| text.comments.get(text.next).copied())
            && comment.start < pos
            && self.text.as_ref().is_some_and(|text| text.place(comment) == Place::Trailing)
        {
            self.comments_before(comment.end);
        }
    }

    /// All comments that are left.
    pub(super) fn comments_left(&mut self) {
        self.comments_above(u32::MAX);
    }

    /// Whether a comment stands between two places.
    pub(super) fn has_comment(&self, start: u32, end: u32) -> bool {
        self.text.as_ref().is_some_and(|text| {
            let first = text.comments.partition_point(|c| c.start < start);
            text.comments.get(first).is_some_and(|c| c.start < end)
        })
    }

    /// Leaves a line empty where the text does before `pos`.
    pub(super) fn blank_before(&mut self, pos: u32) {
        if self.text.as_ref().is_some_and(|text| text.blank_before(pos)) {
            self.event(Event::Blank);
        }
    }

    /// Whether the line ends between the token before `pos` and `pos`.
    pub(super) fn line_ends_before(&self, pos: u32) -> bool {
        self.text
            .as_ref()
            .is_some_and(|text| text.token_before(pos).is_some_and(|token| text.slice(token.end, pos).contains('\n')))
    }

    /// Whether the line ends between `pos` and the token after it.
    pub(super) fn line_ends_after(&self, pos: u32) -> bool {
        self.text.as_ref().is_some_and(|text| text.slice(pos, text.token_at(pos).start).contains('\n'))
    }

    /// Where the token before `pos` starts: the keyword before a pattern, the arrow before a body.
    pub(super) fn token_start_before(&self, pos: u32) -> u32 {
        self.text.as_ref().and_then(|text| text.token_before(pos)).map_or(pos, |token| token.start)
    }

    /// Returns the kind of the token before `pos`.
    pub(super) fn kind_before(&self, pos: u32) -> Option<TokenKind> {
        self.text.as_ref().and_then(|text| text.token_before(pos)).map(|token| token.kind)
    }

    /// Where the token before `pos` ends.
    pub(super) fn end_before(&self, pos: u32) -> Option<u32> {
        self.text.as_ref().and_then(|text| text.token_before(pos)).map(|token| token.end)
    }

    /// Whether the text at `pos` opens a parenthesis.
    pub(super) fn paren_at(&self, pos: u32) -> bool {
        self.text.as_ref().is_some_and(|text| text.token_at(pos).kind == TokenKind::LeftParen)
    }

    /// Where what stands in parentheses at `pos` starts.
    pub(super) fn inside_parens(&self, pos: u32) -> u32 {
        self.text.as_ref().map_or(pos, |text| text.token_in_parens(pos).start)
    }

    /// How the number at `span` is written.
    pub(super) fn number_at(&self, span: Span) -> Option<&str> {
        let text = self.text.as_ref()?;
        let token = text.token_in_parens(span.start);
        matches!(token.kind, TokenKind::Integer | TokenKind::Real).then(|| text.slice(token.start, token.end))
    }
}
