//! Messages about invalid programs: the programs with their snapshots, in one file.

mod support;

use std::fmt::Write;

/// Invalid files, by their faults.
const FILES: &[(&str, &str)] = &[
    ("fun with equals", "let f = fun x = x + 1"),
    ("fun with a fat arrow", "let f = fun x => x + 1"),
    ("fun without arrow", "let f = fun x x + 1"),
    ("fun without parameter", "let f = fun -> 1"),
    ("arrow without fun", "let f = x -> x + 1"),
    ("pair and arrow without fun", "let f = (x, y) => x + y"),
    ("let with an arrow", "let f x -> x + 1"),
    ("let with colon equals", "let x := 1"),
    ("let without equals", "let x 1"),
    ("let without name", "let = 1"),
    ("let of a number", "let 3 = x"),
    ("let without value", "let x =\nlet y = 1"),
    ("keyword as name", "let in = 3\nlet f = fun then -> 1"),
    ("let rec", "let rec f n = if n = 0 then 1 else n * f (n - 1)"),
    ("let mutable", "let f = fun x ->\n  let mutable y = 1\n  y"),
    ("parameters with commas", "let f = fun x, y -> x"),
    ("types in a pair of parameters", "let f(x : Double, y : Double) = x + y"),
    ("the type of the first of a pair", "let f = fun ((x : Double), y) -> x + y"),
    ("the type of the second of a pair", "let f = fun (x, (y : Double)) -> x + y"),
    ("no parameter", "let f() = 1"),
    ("pair without parentheses", "let f = fun p ->\n  let a, b = p\n  a"),
    ("if without else", "let f = fun x -> if x > 0 then x\nlet g = 1"),
    ("if without then", "let f = fun x -> if x > 0 : x else 0"),
    ("elif", "let f = fun x -> if x > 0 then 1 elif x < 0 then 2 else 0"),
    ("braces as blocks", "let f = fun x -> if (x > 0) { x } else { 0 }"),
    ("assignment", "let f = fun x ->\n  let y = 1\n  y := x"),
    ("plus equals", "let f = fun x -> x += 1"),
    ("lambda of Python", "let f = map (lambda x: x + 1)"),
    ("lambda of Haskell", "let f = map (\\x -> x + 1)"),
    ("fun as a bare argument", "let f = build n fun i -> i"),
    ("return", "let f = fun x ->\n  return x + 1"),
    ("missing in", "let f = fun x -> let y = x fun z -> z"),
    ("missing in before a let", "let f = fun x -> let y = x let z = y in z"),
    ("missing in before a name", "let f = fun x -> let y = 1 x"),
    ("let without result", "let f = fun x ->\n  let y = x\nlet g = 1"),
    ("semicolons", "let f = fun x ->\n  let y = x;\n  [y; 2];\nlet g = 1"),
    ("single and, or, not", "let f = fun a b -> a & b | !a"),
    ("chained comparison", "let f = fun a b c -> a < b < c"),
    ("number applied", "let f = fun x -> 2 (x + 1)"),
    ("number with letters", "let f = fun x -> 2x + 3e"),
    ("points of numbers", "let a = .5 + 1."),
    ("numbers too large", "let a = 99999999999999999999 + 1e999"),
    ("unclosed parenthesis", "let a = f (1 + 2\nlet b = [1, 2\nlet c = 3"),
    ("mismatched bracket", "let a = f (b[1) + 2]"),
    ("bracket that closes nothing", "let a = 1)\nlet b = 2"),
    ("unexpected in a bracket", "let a = f (x : Double y) + 1"),
    ("empty parentheses, array, record", "let a = f ()\nlet b = []\nlet c = {}"),
    ("section", "let a = vectorMap v (* 2)\nlet b = g (+ 1)"),
    ("comment of ML", "(* a comment *)\nlet a = 1"),
    ("missing operand", "let a = 1 + * 2"),
    ("operator at the end", "let a = 1 +\nlet b = 2 *"),
    ("operator in the column of the let", "let f = fun x ->\n  let y = x\n  + 1\n  y"),
    ("body in the column of the let", "let f = fun x ->\nx + 1\nlet g = 1"),
    ("index with a comma", "let a = m[1, 2]"),
    ("index with a point", "let a = m.[1]"),
    ("slice", "let a = v[1:3]"),
    ("empty index", "let a = v[]"),
    ("point without field", "let a = p. + 1"),
    ("record with colons", "let a = { x : 1, y : 2 }"),
    ("text and wildcard", "let a = \"text\"\nlet b = _ + 1"),
    ("in at the top", "let a = 1 in\na + 1"),
    ("two definitions on a line", "let a = 1 let b = 2"),
    ("indented definition", "let a = 1\n  let b = 2"),
    ("expression at the top", "f 1 2\nlet a = 1"),
    ("def at the top", "def f(x):\n  return x\nlet a = 1"),
    ("stray then and else", "let a = 1 else 2\nlet b = then"),
    ("import", "import\nimport a/b.ft\nimport \"\"\nimport 'x'"),
    ("type", "type = Double\ntype T : Double\ntype R = { x = Double }\ntype S = {}"),
    ("types after the C manner", "let f = fun (x : Double[3]) (y : [n, m]Double) (z : Array) -> x"),
    ("unclosed Array", "let a : Array<Double = b"),
    ("missing type and size", "let a : = 1\nlet b : [+]Double = 2"),
    ("tab", "let f = fun x ->\n\tx + 1\n\ty"),
    ("characters", "let a = “x” − 3 ÷ 2 % x²\nlet b’ = 1 # a comment"),
    ("unclosed comment", "let a = 1 /* never\nlet b = 2"),
    ("unclosed text", "import \"abc\nlet b = 2"),
    (
        "several at once",
        "let a = f (1, 2\nlet b = fun x = x\nlet c = if x then [1, 2\nlet d = 1 +\n  (2 * ) + (let y = 1, 2)\nlet e = 1",
    ),
];

/// Invalid single expressions.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("nothing", ""),
    ("more than one", "1.5, 2"),
    ("closing bracket", "[1, 2]]"),
    ("unclosed array", "[1, [2, 3]"),
    ("a definition", "let a = 1"),
    ("tuple of one", "(1,)"),
    ("component", "p.99999999999999999999999"),
];

fn all(programs: &[(&str, &str)], messages: fn(&str) -> String) -> String {
    let mut out = String::new();
    for (name, text) in programs {
        let said = messages(text);
        assert!(!said.is_empty(), "{name}: nothing is said about\n{text}");
        let _ = write!(
            out,
            "# {name}\n{}\n\n{said}\n\n",
            text.lines().map(|l| format!("| {l}\n")).collect::<String>().trim_end()
        );
    }
    out
}

#[test]
fn wrong_files() {
    insta::assert_snapshot!(all(FILES, support::messages));
}

#[test]
fn wrong_expressions() {
    insta::assert_snapshot!(all(EXPRESSIONS, support::expr_messages));
}

#[test]
fn every_message_helps() {
    for (name, text) in FILES {
        for diagnostic in &support::parse(text).1 {
            let help = diagnostic.help.is_some() || diagnostic.reason.is_some();
            assert!(help && !diagnostic.title.ends_with('.'), "{name}: {diagnostic}");
        }
    }
}

#[test]
fn garbage_prints_no_book() {
    let (_, diagnostics) = support::parse(&"let = @ ) ( \n".repeat(10_000));
    assert_eq!(diagnostics.len(), 101);
    let (_, diagnostics) = support::parse(&"let a = (\n".repeat(10));
    assert_eq!(diagnostics.len(), 10);
}
