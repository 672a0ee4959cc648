//! Line breaking. In: a flat list of events with groups. Out: text.
//!
//! A group is printed on one line if it fits, otherwise all its own lines break. Prefix sums of widths decide whether
//! it fits, so layout is linear in the number of events, however deep groups nest.
//!
//! Line ends are written late: not when a line breaks but before the next text. So a comment at the end of a line finds
//! its line still open, and no line has trailing blanks.

/// Maximum width of a line, in characters.
pub(super) const WIDTH: usize = 100;

/// Indentation of a level.
const INDENT: usize = 2;

/// Position of a comment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Before code on its line.
    Inline,
    /// After code, at the end of a line.
    Trailing,
    /// Alone on its lines.
    OwnLine,
}

/// A piece of layout.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Event {
    /// Text without line ends.
    Text(String),
    /// Text only if its group is on one line.
    IfFlat(&'static str),
    /// A blank if its group is on one line, otherwise a line end.
    Line,
    /// Nothing if its group is on one line, otherwise a line end.
    SoftLine,
    /// A line end; its groups break.
    HardLine,
    /// A blank if the text up to the next possible line end fits; otherwise a line end.
    Fill,
    /// Keeps a line empty at the previous line end.
    Blank,
    /// Starts a group.
    Open,
    /// Ends the group.
    Close,
    /// Indents the following line starts.
    Indent,
    /// Ends an `Indent`.
    Dedent,
    /// A comment. `blank`: an empty line precedes it.
    Comment { text: String, place: Place, blank: bool },
}

/// Returns the text of `events`, with a line end after the last line.
pub(super) fn layout(events: &[Event]) -> String {
    let widths = Widths::new(events);
    let mut writer = Writer::default();
    // Whether each open group is on one line.
    let mut flat: Vec<bool> = Vec::new();
    for (i, event) in events.iter().enumerate() {
        let is_flat = flat.last().copied().unwrap_or(false);
        match event {
            Event::Text(text) => writer.text(text),
            Event::IfFlat(text) if is_flat => writer.text(text),
            Event::Line if is_flat => writer.blank(),
            Event::Fill if is_flat || writer.column() + 1 + widths.tail[i + 1] <= WIDTH => writer.blank(),
            Event::Line | Event::Fill | Event::HardLine => writer.line_end(1),
            Event::SoftLine if !is_flat => writer.line_end(1),
            Event::IfFlat(_) | Event::SoftLine => {}
            Event::Blank => writer.line_end(2),
            Event::Open => flat.push(is_flat || widths.fits(i, writer.column())),
            Event::Close => {
                flat.pop();
            }
            Event::Indent => writer.indent += INDENT,
            Event::Dedent => writer.indent = writer.indent.saturating_sub(INDENT),
            Event::Comment { text, place, blank } => writer.comment(text, *place, *blank),
        }
    }
    writer.out.push('\n');
    writer.out
}

/// Widths, computed before layout.
struct Widths {
    /// Total width of all preceding events on one line.
    before: Vec<usize>,
    /// Number of earlier events that force a line end.
    hard_before: Vec<usize>,
    /// The matching `Close` of an `Open`.
    close: Vec<usize>,
    /// Width of the text up to the next possible line end.
    tail: Vec<usize>,
}

impl Widths {
    fn new(events: &[Event]) -> Self {
        let n = events.len();
        let mut widths =
            Self { before: vec![0; n + 1], hard_before: vec![0; n + 1], close: vec![n; n], tail: vec![0; n + 1] };
        let mut open = Vec::new();
        for (i, event) in events.iter().enumerate() {
            let (width, hard) = match event {
                Event::Text(text) => (text.chars().count(), false),
                Event::IfFlat(text) => (text.len(), false),
                Event::Line | Event::Fill => (1, false),
                Event::Comment { text, place: Place::Inline, .. } => (text.chars().count() + 1, false),
                Event::HardLine | Event::Blank | Event::Comment { .. } => (0, true),
                Event::SoftLine | Event::Indent | Event::Dedent => (0, false),
                Event::Open => {
                    open.push(i);
                    (0, false)
                }
                Event::Close => {
                    if let Some(start) = open.pop() {
                        widths.close[start] = i;
                    }
                    (0, false)
                }
            };
            widths.before[i + 1] = widths.before[i] + width;
            widths.hard_before[i + 1] = widths.hard_before[i] + usize::from(hard);
        }
        for (i, event) in events.iter().enumerate().rev() {
            widths.tail[i] = match event {
                Event::Line | Event::SoftLine | Event::HardLine | Event::Fill | Event::Blank => 0,
                Event::Comment { place, .. } if *place != Place::Inline => 0,
                _ => widths.tail[i + 1] + widths.before[i + 1] - widths.before[i],
            };
        }
        widths
    }

    /// Returns whether the group that starts at `open`, with the text after it, fits on the line from `column` on.
    fn fits(&self, open: usize, column: usize) -> bool {
        let close = self.close[open];
        self.hard_before[close] == self.hard_before[open]
            && column + self.before[close] - self.before[open] + self.tail[close] <= WIDTH
    }
}

#[derive(Default)]
struct Writer {
    out: String,
    indent: usize,
    /// Width of the last line of `out`.
    width: usize,
    /// Number of line ends to be written before the next text.
    line_ends: usize,
    /// Whether the last line has code and no comment up to its end.
    after_code: bool,
    /// Whether the last text is a comment before code.
    after_inline_comment: bool,
}

impl Writer {
    /// Returns the column of the next text.
    fn column(&self) -> usize {
        if self.line_ends > 0 { self.indent } else { self.width }
    }

    fn line_end(&mut self, n: usize) {
        self.line_ends = self.line_ends.max(n);
    }

    fn blank(&mut self) {
        if self.line_ends == 0 && !self.after_inline_comment {
            self.push(" ");
        }
    }

    fn push(&mut self, text: &str) {
        self.width += text.chars().count();
        self.out.push_str(text);
    }

    /// Removes the blanks at the end of a line.
    fn drop_blanks(&mut self) {
        let length = self.out.trim_end_matches(' ').len();
        self.width = self.width.saturating_sub(self.out.len() - length);
        self.out.truncate(length);
    }

    /// Writes pending line ends, if any.
    fn start_line(&mut self) -> bool {
        let starts = self.line_ends > 0 || self.out.is_empty();
        if self.line_ends > 0 && !self.out.is_empty() {
            self.drop_blanks();
            self.out.extend(std::iter::repeat_n('\n', self.line_ends));
            self.width = 0;
            self.push(&" ".repeat(self.indent));
        }
        if starts {
            (self.line_ends, self.after_code, self.after_inline_comment) = (0, false, false);
        }
        starts
    }

    fn text(&mut self, text: &str) {
        let starts = self.start_line();
        if self.after_inline_comment && !text.starts_with([' ', ')', ']', '}', ',']) {
            self.push(" ");
        }
        self.after_inline_comment = false;
        self.after_code = true;
        self.push(if starts { text.trim_start() } else { text });
    }

    fn comment(&mut self, text: &str, place: Place, blank: bool) {
        let open_line = !text.starts_with("//") && !text.contains('\n');
        match place {
            Place::Inline => {
                let tight = self.start_line() || self.out.ends_with([' ', '(', '[']);
                if !tight {
                    self.push(" ");
                }
                self.push(text);
                self.after_inline_comment = true;
            }
            // Two comments that ended different lines must not be joined.
            Place::Trailing if self.after_code => {
                self.drop_blanks();
                self.push(" ");
                self.push(text);
                self.after_inline_comment = false;
                self.line_end(1);
                self.after_code = open_line;
            }
            Place::Trailing | Place::OwnLine => {
                self.line_end(if blank { 2 } else { 1 });
                self.start_line();
                self.push(text);
                self.line_end(1);
            }
        }
    }
}
