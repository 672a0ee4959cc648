//! Source texts and spans in them.

use crate::{Arena, define_id};

define_id! {
    /// A source text in [`Sources`].
    pub struct FileId = "file";
}

/// A span of a source text: bytes `start..end` of `file`.
///
/// Invariant: `start <= end`, and both are character boundaries of the source text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    /// Source text.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the span of bytes `start..end` of `file`.
    #[must_use]
    pub const fn new(file: FileId, start: u32, end: u32) -> Self {
        Self { file, start, end }
    }

    /// Returns the smallest span that contains both; `self` if they are in different files.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        if self.file != other.file {
            return self;
        }
        Self { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the empty span at the start of `self`.
    #[must_use]
    pub fn start_point(self) -> Self {
        Self { end: self.start, ..self }
    }

    /// Returns the empty span at the end of `self`.
    #[must_use]
    pub fn end_point(self) -> Self {
        Self { start: self.end, ..self }
    }

    /// Returns the bytes as a range of `usize`.
    #[must_use]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A source text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Name in messages: a path, or a word in angle brackets such as `<input>`.
    pub name: String,
    /// Whole text.
    pub text: String,
    /// Start of each line, in bytes.
    lines: Vec<usize>,
}

/// All source texts of one compilation.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Arena<FileId, SourceFile>,
}

impl Sources {
    /// Returns an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text; returns its id.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        self.files.push(SourceFile { name: name.into(), text, lines })
    }

    /// Returns the text of `file` with its name.
    #[must_use]
    pub fn file(&self, file: FileId) -> &SourceFile {
        &self.files[file]
    }

    /// Returns the text under `span`.
    #[must_use]
    pub fn snippet(&self, span: Span) -> &str {
        self.files[span.file].text.get(span.range()).unwrap_or("")
    }

    /// Returns line and column (both from 1, columns in characters) of the start of `span`. Linear in the line,
    /// logarithmic in the number of lines.
    #[must_use]
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let SourceFile { text, lines, .. } = &self.files[span.file];
        let before = text.get(..span.start as usize).unwrap_or(text);
        // The first line starts at 0.
        let line = lines.partition_point(|start| *start <= before.len());
        (line, before[lines[line - 1]..].chars().count() + 1)
    }

    /// Returns a line of a text, by its number from 1, without its end; empty if it does not exist.
    #[must_use]
    pub fn line(&self, file: FileId, number: usize) -> &str {
        let SourceFile { text, lines, .. } = &self.files[file];
        let start = |number: usize| lines.get(number).copied().unwrap_or(text.len());
        text[start(number - 1)..start(number)].trim_end_matches(['\r', '\n'])
    }

    /// Iterates over all texts with their ids, in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let mut sources = Sources::new();
        let file = sources.add("<test>", "ab\ncé d");
        assert_eq!(sources.line_column(Span::new(file, 0, 1)), (1, 1));
        assert_eq!(sources.line_column(Span::new(file, 2, 3)), (1, 3));
        assert_eq!(sources.line_column(Span::new(file, 3, 4)), (2, 1));
        assert_eq!(sources.line_column(Span::new(file, 7, 8)), (2, 4));
        assert_eq!(sources.line_column(Span::new(file, 8, 8)), (2, 5));
        assert_eq!(sources.snippet(Span::new(file, 4, 6)), "é");
        assert_eq!([1, 2, 3].map(|number| sources.line(file, number)), ["ab", "cé d", ""]);
    }
}
