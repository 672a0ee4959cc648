//! The lexer, the parser and the formatter panic on no text, and their spans are inside the text.

mod support;

use arbitrary::Unstructured;
use chainrule_syntax::{generate, print_module};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use support::source;

fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() }
}

/// Parses, formats and checks that every span is in the text.
fn survive(text: &str) {
    let (sources, file) = source(text);
    let (module, diagnostics) = chainrule_syntax::parse(&sources, file);
    for diagnostic in &diagnostics {
        assert!(!diagnostic.title.is_empty() && !diagnostic.labels.is_empty() || text.is_empty(), "{diagnostic}");
        for label in &diagnostic.labels {
            assert!(
                label.span.start <= label.span.end && text.get(label.span.range()).is_some(),
                "{diagnostic}\n{text}"
            );
        }
    }
    for item in &module.items {
        assert!(text.get(item.span.range()).is_some());
    }
    let formatted = chainrule_syntax::format(&sources, file);
    assert_eq!(formatted.is_err(), diagnostics.has_errors());
    if let Ok(once) = formatted {
        let (sources, file) = source(&once);
        assert_eq!(chainrule_syntax::format(&sources, file).as_ref(), Ok(&once), "{text}");
    }
    let (expr, _) = chainrule_syntax::parse_expr(&sources, file);
    assert!(text.get(expr.span.range()).is_some());
}

const PIECES: &[&str] = &[
    "let",
    "in",
    "if",
    "then",
    "else",
    "fun",
    "import",
    "type",
    "true",
    "x",
    "f'",
    "_",
    "1",
    "2.5",
    ".5",
    "1.",
    "1e",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "->",
    "=>",
    "=",
    "==",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "**",
    "&&",
    "||",
    ";",
    ":=",
    "&",
    "|",
    "!",
    "\\",
    "\"a\"",
    "\"",
    "//c\n",
    "/*",
    "*/",
    "\n",
    "\n  ",
    "\n    ",
    " ",
    "\t",
    "Array<",
    "elif",
    "return",
    "lambda",
    "rec",
    "×",
    "’",
    "é",
    "\u{0}",
    "#",
    "%",
    "Double",
    "let x = ",
    "in x",
    "\nlet y = ",
];

proptest! {
    #![proptest_config(config(3000, 2))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_characters(text in ".{0,80}") {
        survive(&text);
    }

    #[test]
    fn any_tokens(picks in proptest::collection::vec((0..PIECES.len(), any::<bool>()), 0..80)) {
        let text: String = picks.iter().map(|(i, blank)| PIECES[*i].to_owned() + if *blank { " " } else { "" }).collect();
        survive(&text);
    }

    #[test]
    fn right_programs_made_wrong(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..PIECES.len(), 0..3), 1..4),
    ) {
        let text = print_module(&generate::module(&mut Unstructured::new(&bytes)).unwrap());
        let mut chars: Vec<char> = text.chars().collect();
        for (at, piece, kind) in edits {
            if chars.is_empty() {
                break;
            }
            let at = at.index(chars.len());
            match kind {
                0 => { chars.remove(at); }
                1 => { chars.splice(at..at, PIECES[piece].chars()); }
                _ => chars.truncate(at),
            }
        }
        survive(&chars.into_iter().collect::<String>());
    }
}
