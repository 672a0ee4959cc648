//! Printable form of foreign text: control characters escaped, long lines cut around the relevant part.
//!
//! In: text from programs, files and command lines. Out: text that does not move the cursor, change the colour or fill
//! the screen.

use std::ops::Range;

/// Maximum length of a source line that is shown whole, in characters.
const LONG_LINE: usize = 240;

/// Characters of a long line that are shown on both sides of the start and of the end of a location.
const CONTEXT: usize = 60;

/// Maximum length of a title, a label, a reason or a help, in characters.
const LONG_TEXT: usize = 4000;

/// Returns whether a terminal shows `c` literally: no control character, and none that changes the direction of the
/// following text.
fn is_shown(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = matches!(c, '\u{2028}' | '\u{2029}');
    !(c.is_control() || turns || breaks || c == '\u{feff}')
}

fn push(text: &mut String, c: char) {
    if is_shown(c) { text.push(c) } else { text.extend(c.escape_unicode()) }
}

/// Returns `text` with its control characters, except line feeds and tabs, as `\u{1b}`.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\n' | '\t') { shown.push(c) } else { push(&mut shown, c) }
    }
    shown
}

/// Returns [`printable`] text, without its middle if it is too long for a message.
pub(super) fn message(text: &str) -> String {
    let n = text.chars().count();
    if n <= LONG_TEXT {
        return printable(text);
    }
    let start: String = text.chars().take(LONG_TEXT / 2).collect();
    let end: String = text.chars().skip(n - LONG_TEXT / 2).collect();
    printable(&format!("{start} … {end}"))
}

/// Source text as shown for some locations in it. Lines keep their numbers.
pub(super) struct View {
    /// Lines of the locations; the others are empty.
    pub text: String,
    /// For each end of a location, ascending, its position in `text`.
    moved: Vec<(usize, usize)>,
}

impl View {
    /// Returns the view of `text` for `places`, ranges of its bytes. Linear in the text.
    pub fn new(text: &str, places: &[Range<usize>]) -> Self {
        let mut ends: Vec<usize> = places.iter().flat_map(|place| [place.start, place.end]).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut this = Self { text: String::new(), moved: Vec::new() };
        let (mut start, mut next) = (0, 0);
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            let is_last = end == text.len() && !line.ends_with('\n');
            let first = next;
            while next < ends.len() && (ends[next] < end || is_last) {
                next += 1;
            }
            let inside = places.iter().any(|place| place.start < end && place.end > start);
            if first < next || inside {
                let local: Vec<usize> = ends[first..next].iter().map(|at| at - start).collect();
                this.line(line, start, &local);
            }
            if line.ends_with('\n') {
                this.text.push('\n');
            }
            start = end;
        }
        // Locations in an empty text, or beyond its end.
        this.moved.extend(ends[next..].iter().map(|at| (*at, this.text.len())));
        this
    }

    /// Adds `line`, which starts at byte `start`, with `ends` of locations at these of its bytes.
    fn line(&mut self, line: &str, start: usize, ends: &[usize]) {
        let content = line.trim_end_matches(['\r', '\n']);
        let chars: Vec<(usize, char)> = content.char_indices().collect();
        let position = |at: usize| chars.partition_point(|(byte, _)| *byte < at);
        let near: Vec<usize> = ends.iter().map(|at| position(*at)).collect();
        let is_kept = |k: usize| {
            chars.len() <= LONG_LINE
                || near.iter().any(|at| k + CONTEXT >= *at && k < at + CONTEXT)
                || near.is_empty() && k < CONTEXT
        };
        let mut rest = ends.iter().peekable();
        let mut skipped = false;
        for (k, (byte, c)) in chars.iter().enumerate() {
            while let Some(at) = rest.next_if(|at| **at <= *byte) {
                self.moved.push((start + at, self.text.len()));
            }
            if !is_kept(k) {
                skipped = true;
                continue;
            }
            if std::mem::take(&mut skipped) {
                self.text.push_str(" … ");
            }
            if *c == '\t' { self.text.push('\t') } else { push(&mut self.text, *c) }
        }
        self.moved.extend(rest.map(|at| (start + at, self.text.len())));
        if skipped {
            self.text.push_str(" …");
        }
    }

    /// Returns the position at which the location `range` is shown.
    pub fn place(&self, range: Range<usize>) -> Range<usize> {
        let find = |at: usize| {
            let k = self.moved.partition_point(|(old, _)| *old < at);
            self.moved.get(k).map_or(self.text.len(), |(_, new)| *new)
        };
        find(range.start)..find(range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[31mb\r\u{7}\n\tλ\u{202e}"), "a\\u{1b}[31mb\\u{d}\\u{7}\n\tλ\\u{202e}");
    }

    #[test]
    fn short_lines_are_shown_as_they_are() {
        let text = "let a = 1\nlet b = λ + a\nlet c = 2";
        let at = text.find('λ').unwrap();
        let view = View::new(text, std::slice::from_ref(&(at..at + 2)));
        assert_eq!(view.text, "\nlet b = λ + a\n");
        assert_eq!(&view.text[view.place(at..at + 2)], "λ");
    }

    #[test]
    fn long_lines_are_cut_around_the_places() {
        let text = format!("{}HERE{}THERE{}\nnext", "x".repeat(100_000), "y".repeat(100_000), "z".repeat(100_000));
        let (a, b) = (text.find("HERE").unwrap(), text.find("THERE").unwrap());
        let view = View::new(&text, &[a..a + 4, b..b + 5]);
        assert!(view.text.chars().count() < 4 * 2 * CONTEXT, "{}", view.text);
        assert_eq!([&view.text[view.place(a..a + 4)], &view.text[view.place(b..b + 5)]], ["HERE", "THERE"]);
        // A location of a long line's whole length shows both of its ends.
        let all = 0..text.find('\n').unwrap();
        let view = View::new(&text, std::slice::from_ref(&all));
        let shown = &view.text[view.place(all)];
        assert!(
            shown.starts_with("xxx") && shown.contains(" … ") && shown.ends_with("zzz") && shown.len() < 200,
            "{shown}"
        );
    }

    #[test]
    fn places_at_the_end_stay_there() {
        for text in ["", "\n", "ab", "ab\n", "ab\r\n"] {
            let view = View::new(text, std::slice::from_ref(&(text.len()..text.len())));
            assert_eq!(view.place(text.len()..text.len()).end, view.text.len(), "{text:?}");
        }
        assert_eq!(message(&"n".repeat(1_000_000)).chars().count(), LONG_TEXT + 3);
    }
}
