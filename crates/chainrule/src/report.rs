//! Draws diagnostics beside their source.

use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind, Source};
use chainrule_base::{Diagnostic, Diagnostics, Kind, Sources, Span};

pub use chainrule_base::count;

fn kind_and_color(kind: Kind) -> (ReportKind<'static>, Color) {
    match kind {
        Kind::Error => (ReportKind::Error, Color::Red),
        Kind::Limitation => (ReportKind::Custom("Limitation", Color::Yellow), Color::Yellow),
        Kind::Bug => (ReportKind::Custom("Bug in Chainrule", Color::Magenta), Color::Magenta),
        Kind::Warning => (ReportKind::Warning, Color::Yellow),
    }
}

/// How many messages are drawn; those after them are counted. Mistakes that follow from others come last.
pub const MESSAGES_SHOWN: usize = 20;

/// The first messages with the lines of source that they speak of, in the order in which they were found,
/// and how many there are besides. Linear in the texts and the messages shown.
#[must_use]
pub fn render(diagnostics: &Diagnostics, sources: &Sources, color: bool) -> String {
    let mut cache = Cache { sources, texts: sources.iter().map(|(_, file)| Source::from(file.text.clone())).collect() };
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(MESSAGES_SHOWN) {
        text.push_str(&render_one(diagnostic, &mut cache, color));
    }
    match diagnostics.iter().count().saturating_sub(MESSAGES_SHOWN) {
        0 => {}
        more => text.push_str(&format!("... and {}\n", count(more, "more message"))),
    }
    text.trim_end().to_string()
}

/// A message about no place in a text.
fn lone(diagnostic: &Diagnostic) -> String {
    let mut bare = diagnostic.clone();
    let help = bare.help.take().map_or_else(String::new, |help| format!("\n  help: {help}"));
    format!("{bare}{help}\n")
}

fn render_one(diagnostic: &Diagnostic, cache: &mut Cache<'_>, color: bool) -> String {
    let Some(main) = diagnostic.span() else { return lone(diagnostic) };
    let (kind, ink) = kind_and_color(diagnostic.kind);
    let place = |span: Span| (span.file, span.range());
    let config = Config::new().with_color(color).with_char_set(CharSet::Unicode).with_index_type(IndexType::Byte);
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
    let mut bytes = Vec::new();
    match report.finish().write(cache, &mut bytes) {
        Ok(()) => {
            let text = String::from_utf8_lossy(&bytes);
            // A kind of our own keeps its colour whatever the configuration says.
            let text = if color { text.into_owned() } else { without_escapes(&text) };
            text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
        }
        Err(_) => lone(diagnostic),
    }
}

/// `text` without sequences `ESC [ ... m`.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}

struct Cache<'a> {
    sources: &'a Sources,
    texts: Vec<Source<String>>,
}

impl ariadne::Cache<chainrule_base::FileId> for Cache<'_> {
    type Storage = String;
    fn fetch(&mut self, id: &chainrule_base::FileId) -> Result<&Source<String>, impl std::fmt::Debug> {
        self.texts.get(chainrule_base::Id::index(*id)).ok_or("no such text")
    }
    fn display<'a>(&self, id: &'a chainrule_base::FileId) -> Option<impl std::fmt::Display + 'a> {
        Some(self.sources.file(*id).name.clone())
    }
}
