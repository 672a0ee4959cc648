//! Printing and formatting: printed text parses to the printed tree, comments are preserved, formatting is idempotent.

mod support;

use arbitrary::Unstructured;
use chainrule_base::FileId;
use chainrule_base::Id;
use chainrule_syntax::token::TokenKind;
use chainrule_syntax::tree::Module;
use chainrule_syntax::{generate, lexer, print_expr, print_module, print_type, spans};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use support::{parse, parse_expr, render, source};

fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() }
}

fn bytes(n: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..n)
}

#[track_caller]
fn stripped(text: &str) -> Module {
    let (sources, file) = source(text);
    let (mut module, diagnostics) = chainrule_syntax::parse(&sources, file);
    assert!(diagnostics.is_empty(), "{text}\n{}", render(&sources, &diagnostics));
    spans::strip_module(&mut module);
    module
}

#[track_caller]
fn format(text: &str) -> String {
    let (sources, file) = source(text);
    match chainrule_syntax::format(&sources, file) {
        Ok(formatted) => formatted,
        Err(diagnostics) => panic!("{text}\n{}", render(&sources, &diagnostics)),
    }
}

fn comments(text: &str) -> Vec<String> {
    let (lexed, _) = lexer::lex(text, FileId::new(0));
    lexed.comments.iter().map(|c| text[c.start as usize..c.end as usize].replace("\r\n", "\n")).collect()
}

/// Checks everything that `format` promises about one text.
#[track_caller]
fn check(text: &str) -> String {
    let once = format(text);
    assert_eq!(stripped(text), stripped(&once), "the tree changed\n{text}\n-----\n{once}");
    assert_eq!(comments(text), comments(&once), "comments changed\n{text}\n-----\n{once}");
    let twice = format(&once);
    assert!(once == twice, "formatting twice is not formatting once\n{text}\n----- once\n{once}----- twice\n{twice}");
    assert!(once.lines().all(|line| line.trim_end() == line || line.contains("*")), "blanks at a line's end\n{once}");
    assert!(!once.contains("\n\n\n") || text.contains("/*"), "two empty lines\n{once}");
    once
}

#[track_caller]
fn formats(text: &str, expected: &str) {
    assert_eq!(check(text), expected);
}

/// Returns `text` with comments inserted between its tokens, wherever a comment has no meaning.
fn with_comments(text: &str, u: &mut Unstructured) -> arbitrary::Result<String> {
    let (lexed, _) = lexer::lex(text, FileId::new(0));
    let mut out = String::new();
    let mut end = 0;
    let mut n = 0;
    for token in &lexed.tokens {
        let gap = &text[end..token.start as usize];
        // Adjacency is significant there.
        let free =
            token.spaced || !matches!(token.kind, TokenKind::LeftBracket | TokenKind::Dot) && !out.ends_with('.');
        // A comment before the first line would be its documentation.
        if free && end > 0 && u.ratio(1, 4)? {
            n += 1;
            let breaks = gap.contains('\n') || token.kind == TokenKind::End;
            // After a `let` in the middle of a line, a line end would separate its bound expression.
            let line = text[..token.start as usize].rsplit('\n').next().unwrap_or("").trim_start();
            let in_let = line.match_indices("let ").any(|(at, _)| at > 0);
            let kind = if in_let && !breaks { 3 } else { u.int_in_range(0..=3)? };
            match (breaks, kind) {
                (false, 0) => out += &format!(" // c{n}\n{}", " ".repeat(140)),
                (false, 1) => out += &format!("\n\n{0}// c{n}\n{0}", " ".repeat(140)),
                (false, 2) => out += &format!(" /*{n}\n*/\n{}", " ".repeat(140)),
                (false, _) => out += &format!(" /* c{n} */"),
                (true, 0) => out += &format!(" // c{n}"),
                (true, 1) => out += &format!(" /* c{n} */ // d{n}"),
                (true, 2) => out += &format!("\n\n  // c{n}\n"),
                (true, _) => out += &format!("\n/* c{n}\n  */"),
            }
        }
        out += gap;
        out += &text[token.start as usize..token.end as usize];
        end = token.end as usize;
    }
    Ok(out)
}

proptest! {
    #![proptest_config(config(1500, 1))]

    #[test]
    fn printed_expressions_parse_to_themselves(bytes in bytes(400)) {
        let mut expr = generate::expression(&mut Unstructured::new(&bytes)).unwrap();
        let text = print_expr(&expr);
        let (mut parsed, diagnostics) = parse_expr(&text);
        prop_assert!(diagnostics.is_empty(), "{text}\n{}", support::expr_messages(&text));
        spans::strip_expr(&mut parsed);
        spans::strip_expr(&mut expr);
        prop_assert_eq!(&parsed, &expr, "{}", text);
        prop_assert_eq!(print_expr(&parsed), text);
    }

    #[test]
    fn printed_types_parse_to_themselves(bytes in bytes(200)) {
        let ty = generate::ty(&mut Unstructured::new(&bytes), 8).unwrap();
        let text = format!("type T = {}", print_type(&ty).replace('\n', "\n  "));
        let module = stripped(&text);
        let chainrule_syntax::tree::ItemKind::TypeAlias { ty: parsed, .. } = &module.items[0].kind else { panic!() };
        prop_assert_eq!(parsed, &ty, "{}", text);
    }

    #[test]
    fn printed_modules_parse_to_themselves_and_format(bytes in bytes(600)) {
        let mut module = generate::module(&mut Unstructured::new(&bytes)).unwrap();
        let text = print_module(&module);
        let mut parsed = stripped(&text);
        parsed.span = module.span;
        spans::strip_module(&mut module);
        prop_assert_eq!(&parsed, &module, "{}", text);
        check(&text);
    }

    #[test]
    fn comments_stay_wherever_they_stand(bytes in bytes(400)) {
        let mut u = Unstructured::new(&bytes);
        let text = print_module(&generate::module(&mut u).unwrap());
        let rest = bytes.iter().rev().copied().collect::<Vec<u8>>();
        let commented = with_comments(&text, &mut Unstructured::new(&rest)).unwrap();
        // Comments above an item are its documentation; the rest of the tree is unchanged.
        let undocumented = |text: &str| {
            let mut module = stripped(text);
            module.items.iter_mut().for_each(|item| item.docs.clear());
            module
        };
        prop_assert_eq!(undocumented(&text), undocumented(&commented), "{}", commented);
        check(&commented);
    }
}

#[test]
fn figure_4_stays_readable() {
    let text = include_str!("figure4.ft");
    insta::assert_snapshot!(check(text));
}

#[test]
fn long_texts_format_in_linear_time() {
    let n = 100_000;
    let lets: String = (0..n).map(|i| format!("  let x{i} = {i} // c\n")).collect();
    let text = format!("let f = fun y ->\n{lets}  y\n");
    assert_eq!(format(&text), text);
    let sum = format!("let s =\n  x{}\n", "\n  + x".repeat(n));
    assert_eq!(format(&sum), sum);
    let array = format!("let a = [{}]", vec!["1.5"; n].join(","));
    assert!(format(&array).lines().all(|line| line.len() <= 100));
    let deep = format!("let a = {}x{}", "f (1 + ".repeat(120), ")".repeat(120));
    check(&deep);
}

#[test]
fn what_does_not_parse_is_not_formatted() {
    let (sources, file) = source("let a = (1\nlet b = 2");
    assert!(chainrule_syntax::format(&sources, file).is_err());
    assert_eq!(parse("let a = (1\nlet b = 2").0.items.len(), 2);
}

#[test]
fn lets() {
    formats("let f = fun x -> let a = 1 in let b = 2 in a+b", "let f = fun x -> let a = 1 in let b = 2 in a + b\n");
    formats(
        "let f = fun x -> let a = 1 in\n let b = 2 in a+b",
        "let f = fun x ->\n  let a = 1\n  let b = 2\n  a + b\n",
    );
    formats("let f   (x : Double)  y = x\n\n\n\nlet g : T=1", "let f (x : Double) y = x\n\nlet g : T = 1\n");
    formats("let y = f (let a = 1\n           a)", "let y =\n  f\n    (\n      let a = 1\n      a\n    )\n");
}

#[test]
fn comments_in_places() {
    let text = "\
// The file.

// What a is.
let a = // why
  // how
  1 // one

/* two
   lines */
let b = fun x /* the x */ ->
  // first
  let y = x // y

  // second
  let z = y
  z // result
// end
";
    formats(text, text);
}

#[test]
fn parentheses_for_the_reader_stay() {
    formats("let a = (b * c) + ((d))", "let a = (b * c) + d\n");
    formats("let a = -(x ** 2)", "let a = -(x ** 2)\n");
    formats("let a = if (b && c) then (d) else (e + f)", "let a = if b && c then d else e + f\n");
    formats("let a = f (g x) (m[i]) (pair)", "let a = f (g x) m[i] pair\n");
}

#[test]
fn spellings() {
    formats("let a=1_000.5e-3×b^2 ≤ c", "let a = 1_000.5e-3 * b ** 2 <= c\n");
    formats("let a : Array<A×B>->C = b", "let a : [](A, B) => C = b\n");
}
