//! Drawing of diagnostics beside their source.

mod shown;

use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind, Source};
use chainrule_base::source::FileId;
use chainrule_base::{Diagnostic, Diagnostics, Kind, Sources, Span};
use shown::View;
use std::collections::BTreeMap;

pub use chainrule_base::count;
pub use shown::printable;

/// Version of Chainrule, for messages about its bugs.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Remedy for a bug of Chainrule.
pub(crate) const REPORT: &str =
    "please report it, with this message, the program, the command or the calls, and the sizes or arguments";

fn kind_and_color(kind: Kind) -> (ReportKind<'static>, Color) {
    match kind {
        Kind::Error => (ReportKind::Error, Color::Red),
        Kind::Limitation => (ReportKind::Custom("Limitation", Color::Yellow), Color::Yellow),
        Kind::Bug => (ReportKind::Custom("Bug in Chainrule", Color::Magenta), Color::Magenta),
        Kind::Warning => (ReportKind::Warning, Color::Yellow),
    }
}

/// Maximum number of messages that are drawn; further ones are counted. Errors that follow from others come last.
pub const MESSAGES_SHOWN: usize = 20;

/// Style of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Text alone.
    Plain,
    /// With colours, as escape sequences of terminals.
    Colored,
}

/// Draws the first messages with the source lines to which they refer, in the order in which they were found, and
/// prints the number of the others. Control characters are escaped, and long lines cut. Linear in the texts and the
/// messages shown.
#[must_use]
pub fn render(diagnostics: &Diagnostics, sources: &Sources, style: Style) -> String {
    render_some(diagnostics.iter(), sources, style)
}

/// [`render`] for some messages.
pub(crate) fn render_some<'a>(
    diagnostics: impl Iterator<Item = &'a Diagnostic>,
    sources: &Sources,
    style: Style,
) -> String {
    let mut text = String::new();
    let mut more = 0;
    for (k, diagnostic) in diagnostics.enumerate() {
        if k < MESSAGES_SHOWN {
            text.push_str(&render_one(&showable(diagnostic), sources, style));
        } else {
            more += 1;
        }
    }
    if more > 0 {
        text.push_str(&format!("... and {}\n", count(more, "more message")));
    }
    text.trim_end().to_string()
}

/// Returns `diagnostic` with printable texts; a bug with its remedy.
fn showable(diagnostic: &Diagnostic) -> Diagnostic {
    let mut shown = diagnostic.clone();
    shown.title = shown::message(&shown.title);
    shown.labels.iter_mut().for_each(|label| label.text = shown::message(&label.text));
    shown.reason = shown.reason.map(|reason| shown::message(&reason));
    shown.help = shown.help.map(|help| shown::message(&help));
    if shown.kind == Kind::Bug && shown.help.is_none() {
        shown.help = Some(format!("{REPORT}; this is version {VERSION}"));
    }
    shown
}

/// Returns a message without a source location.
fn lone(diagnostic: &Diagnostic) -> String {
    let mut bare = diagnostic.clone();
    let help = bare.help.take().map_or_else(String::new, |help| format!("\n  help: {help}"));
    format!("{bare}{help}\n")
}

fn render_one(diagnostic: &Diagnostic, sources: &Sources, style: Style) -> String {
    let Some(main) = diagnostic.span() else { return lone(diagnostic) };
    let (kind, ink) = kind_and_color(diagnostic.kind);
    let mut cache = Cache::new(diagnostic, sources);
    let place = |span: Span| (span.file, cache.views[&span.file].1.place(span.range()));
    let config = Config::new()
        .with_color(style == Style::Colored)
        .with_char_set(CharSet::Unicode)
        .with_index_type(IndexType::Byte);
    let mut report = Report::build(kind, place(main)).with_config(config).with_message(&diagnostic.title);
    for label in &diagnostic.labels {
        report = report.with_label(Label::new(place(label.span)).with_message(&label.text).with_color(ink));
    }
    if let Some(reason) = &diagnostic.reason {
        report = report.with_note(reason);
    }
    if let Some(help) = &diagnostic.help {
        report = report.with_help(help);
    }
    let columns = columns(diagnostic, sources, &cache);
    let mut bytes = Vec::new();
    match report.finish().write(&mut cache, &mut bytes) {
        Ok(()) => {
            let text = String::from_utf8_lossy(&bytes);
            // A custom kind keeps its colour for any configuration.
            let text = match style {
                Style::Colored => text.into_owned(),
                Style::Plain => without_escapes(&text),
            };
            let text = columns.iter().fold(text, |text, (shown, true_one)| text.replacen(shown, true_one, 1));
            text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
        }
        Err(_) => lone(diagnostic),
    }
}

/// Returns the locations of `diagnostic` in the drawn text, and the actual ones, for lines that were cut or escaped.
fn columns(diagnostic: &Diagnostic, sources: &Sources, cache: &Cache<'_>) -> Vec<(String, String)> {
    let column = |label: &chainrule_base::diagnostic::Label| {
        let span = label.span;
        let (line, column) = sources.line_column(span);
        let (_, view) = &cache.views[&span.file];
        let before = &view.text[..view.place(span.range()).start];
        let shown = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        let name = printable(&sources.file(span.file).name);
        let written = |column: usize| format!("{name}:{line}:{column} ");
        (shown != column).then(|| (written(shown), written(column)))
    };
    diagnostic.labels.iter().filter_map(column).collect()
}

/// Returns `text` without sequences `ESC [ ... m`.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// Texts of one message, as drawn.
struct Cache<'a> {
    sources: &'a Sources,
    views: BTreeMap<FileId, (Source<String>, View)>,
}

impl<'a> Cache<'a> {
    fn new(diagnostic: &Diagnostic, sources: &'a Sources) -> Self {
        let mut places: BTreeMap<FileId, Vec<std::ops::Range<usize>>> = BTreeMap::new();
        for label in &diagnostic.labels {
            places.entry(label.span.file).or_default().push(label.span.range());
        }
        let view = |(file, places): (FileId, Vec<_>)| {
            let view = View::new(&sources.file(file).text, &places);
            (file, (Source::from(view.text.clone()), view))
        };
        Self { sources, views: places.into_iter().map(view).collect() }
    }
}

impl ariadne::Cache<FileId> for Cache<'_> {
    type Storage = String;
    fn fetch(&mut self, id: &FileId) -> Result<&Source<String>, impl std::fmt::Debug> {
        self.views.get(id).map(|(source, _)| source).ok_or("no such text")
    }
    fn display<'a>(&self, id: &'a FileId) -> Option<impl std::fmt::Display + 'a> {
        Some(printable(&self.sources.file(*id).name))
    }
}
