//! Messages about invalid programs: one table of programs, one snapshot.

mod frontend;
use chainrule_base::{Diagnostics, Kind, Sources};
use chainrule_ir::Program;
use frontend::*;
use std::fmt::Write;

/// Fault and program. `f` is elaborated if the program can be loaded.
const WRONG: &[(&str, &str)] = &[
    // Names.
    ("unknown name", "let f = fun v -> vectorSun v"),
    ("unknown name without a neighbour", "let f = fun v -> zzyzx v"),
    ("recursion", "let fact = fun n -> if n == 0 then 1 else n * fact (n - 1)"),
    ("used before defined", "let f = fun x -> square x\nlet square = fun x -> x * x"),
    ("unknown type", "let f = fun (x : Duble) -> x"),
    ("unknown field", "let f = fun (p : { pos : Double, vel : Double }) -> p.position"),
    ("near field", "let f = fun (p : { pos : Double, vel : Double }) -> p.poss"),
    ("field of no record", "let f = fun (x : Double) -> x.pos"),
    ("component out of range", "let f = fun (p : (Double, Double)) -> p.2"),
    ("field twice", "let f = { a = 1, a = 2 }"),
    ("unknown library", "import linalgebra\nlet f = 1"),
    ("missing import", "import \"gone.ft\"\nlet f = 1"),
    ("unused", "let f = fun x -> let y = x * x in x"),
    // Types.
    ("several errors", "let f = fun x -> foo x\nlet g = 1 + true\nlet h = fun x -> f x"),
    ("Bool as a number", "let f = fun x -> x + true"),
    ("number as a condition", "let f = fun (x : Double) -> if x then 1 else 2"),
    ("branches differ", "let f = fun x -> if x > 0 then x else true"),
    ("array elements differ", "let f = [1, true]"),
    ("Int where a Double is needed", "let half = fun (x : Double) -> x / 2\nlet f = fun (n : Int) -> half n"),
    ("Double as an index", "let f = fun (v : []Double) -> v[1.5]"),
    ("Double as a size", "let f = fun (x : Double) -> build x (fun i -> i)"),
    ("index of a number", "let f = fun (x : Double) -> x[0]"),
    ("too many arguments", "let add2 = fun x y -> x + y\nlet f = fun x -> add2 x 1 2"),
    ("too few arguments", "let add2 = fun x y -> x + y\nlet f = fun x -> sqrt (add2 x)"),
    ("not a function", "let f = fun x -> let y = x * 2.0 in y 3"),
    ("wrong argument of the language", "let f = fun v -> length v v"),
    ("data instead of a function", "let f = fun (v : []Double) -> vectorMap v 2"),
    ("a function of too few parameters", "let f = fun v -> ifold (fun s -> s) 0 (length v)"),
    ("state of another type", "let f = fun v -> ifold (fun s i -> s > v[i]) 0 (length v)"),
    ("occurs", "let f = fun x -> x x"),
    ("function in an array", "let f = [sin, cos]"),
    ("function out of an if", "let f = fun (b : Bool) x -> (if b then sin else cos) x"),
    ("function in a tuple", "let f = fun x -> fst (sin, x)"),
    ("annotation", "let f = fun (x : Bool) -> (x : Double)"),
    ("annotation of a result", "let f = fun (x : Double) : Bool -> x"),
    ("tuple pattern", "let f = fun (p : (Double, Double)) -> let (a, b, c) = p in a + b + c"),
    ("order of fields", "let g = fun (p : { a : Double, b : Double }) -> p.a\nlet f = g { b = 1.0, a = 2.0 }"),
    ("type of a field is open", "let f = fun p -> p.x"),
    ("entry with a function", "let f = fun g x -> g x"),
    // Derivatives.
    ("by no variable", "let f = fun x -> deriv (x * x) 3.0"),
    ("by an Int", "let f = fun (n : Int) x -> deriv (x * n) n"),
    ("of an Int", "let f = fun (x : Double) -> deriv (length [x]) x"),
    ("of a function with an Int", "let f = fun x -> diff (fun y -> length [y]) x"),
    ("empty arrays", "let f = fun v -> vectorMax v"),
    // Matrices, and functions that state their derivative.
    ("solve of another length", "let f = solve [[1.0, 0.0], [0.0, 1.0]] [1.0, 2.0, 3.0]"),
    ("determinant of what is not square", "let f = det [[1.0, 2.0]]"),
    ("convolution with something longer", "let f = convolveValid [1.0] [1.0, 2.0, 3.0]"),
    ("another number of elements", "let f = reshape 2 2 [1.0, 2.0, 3.0]"),
    ("more columns than rows", "let f = qr [[1.0, 2.0]]"),
    (
        "rule of another type",
        "let f = fun (x : Double) -> withDerivative (fun x -> x) (fun _ _ _ t -> [t]) (fun _ _ _ w -> w) x",
    ),
    (
        "rule of another size",
        "let f = fun (v : [n]Double) ->\n  withDerivative (fun v -> v) (fun _ _ _ t -> vectorConcat t t) (fun _ _ _ w -> w) v",
    ),
    (
        "function in its rule at another size",
        "let f = fun (v : [n]Double) ->\n  withDerivative (fun v -> v) (fun _ _ _ t -> t) (fun self _ _ w -> self (vectorConcat w w)) v",
    ),
    (
        "rule of what has no derivative",
        "let f = fun (x : Double) -> withDerivative (fun x -> x > 0) (fun _ _ y _ -> y) (fun _ x _ _ -> x) x",
    ),
    ("near a name of a module that is not read", "let f = fun a -> choleski a"),
    ("deriv alone", "let f = fun x -> let d = deriv in x"),
    ("deriv with one argument", "let f = fun x -> deriv x"),
    ("vjp of what is no number", "let f = fun (n : Int) -> vjp (fun (x : Double) -> n) 1.0 1.0"),
    ("gradient of a vector", "let f = fun v -> gradient (fun w -> vectorSMul w 2.0) v"),
    ("gradient by an Int", "let f = fun (n : Int) -> gradient (fun k -> sin k) n"),
    ("constant in deriv", "let f = fun x -> let y = x * x in deriv (x * y) x"),
    ("a number has no tangent with a wrong type", "let f = fun x -> forward (fun a -> a * a) (x, true)"),
    // Sizes.
    ("index out of range", "let f = let v = [1.0, 2.0, 3.0] in v[3]"),
    ("negative index", "let f = fun (v : [n]Double) -> v[0 - 1]"),
    ("one past the end", "let f = fun v -> build (length v) (fun i -> v[i + 1] - v[i])"),
    (
        "size mismatch",
        "let dot = fun (a : [n]Double) (b : [n]Double) -> vectorDot a b\nlet f = dot [1.0, 2.0] [1.0, 2.0, 3.0]",
    ),
    ("in the library", "let f = vectorDot [1.0, 2.0, 3.0] [1.0, 2.0]"),
    ("branches of different sizes", "let f = fun (b : Bool) -> if b then [1.0] else [1.0, 2.0]"),
    ("growing state", "let f = fun v -> ifold (fun s i -> vectorConcat s v) [0.0] 3"),
    ("sizes not known to agree", "let f = fun (b : Bool) (v : []Double) (w : Vector) -> if b then v else w"),
    ("sizes nobody knows", "let f = fun (k : []Int) (w : Vector) -> if k[0] > 1 then build k[0] (fun i -> 1.0) else w"),
    ("ragged", "let f = fun (n : Card) -> build n (fun i -> build i (fun j -> 1.0))"),
    ("size from data", "let f = fun (k : []Int) -> build 3 (fun i -> build k[i] (fun j -> 1.0))"),
    ("size variable nowhere whole", "let f = fun (v : [2*n]Double) -> v[0]"),
    ("unknown size", "let f = fun v -> let w : [n]Double = v in w"),
    ("annotated number", "let f = let g = fun (v : [3]Double) -> v[0] in g [1.0]"),
    ("no such size", "let f = fun (x : Double) (v : [x]Double) -> v"),
    ("negative build", "let f = build (2 - 3) (fun i -> 1.0)"),
    ("result annotation", "let f = fun (v : [n]Double) : [n + 1]Double -> v"),
    ("alias with a size variable", "type Points = [n]Double\nlet f = 1"),
];

fn write_all(out: &mut String, sources: &Sources, diagnostics: &Diagnostics) {
    for d in diagnostics {
        let kind = match d.kind {
            Kind::Error => "error",
            Kind::Limitation => "limitation",
            Kind::Bug => "BUG",
            Kind::Warning => "warning",
        };
        let _ = writeln!(out, "{kind}: {}", d.title);
        for label in &d.labels {
            let (line, column) = sources.line_column(label.span);
            let file = &sources.file(label.span.file).name;
            let text: String = sources.snippet(label.span).split_whitespace().collect::<Vec<_>>().join(" ");
            let text: String = text.chars().take(40).collect();
            let _ = writeln!(out, "  {file}:{line}:{column} `{text}`: {}", label.text);
        }
        if let Some(reason) = &d.reason {
            let _ = writeln!(out, "  = {reason}");
        }
        if let Some(help) = &d.help {
            let _ = writeln!(out, "  help: {help}");
        }
    }
}

#[test]
fn wrong_programs_say_what_is_wrong() {
    let mut out = String::new();
    for (title, text) in WRONG {
        let _ = writeln!(out, "#### {title}\n{text}\n");
        let mut sources = Sources::new();
        let root = sources.add("main.ft", *text);
        let none = |path: &str, _: &str| Err(format!("there is no file {path}"));
        match Program::load(&mut sources, root, none) {
            Err(diagnostics) => write_all(&mut out, &sources, &diagnostics),
            Ok(program) => {
                write_all(&mut out, &sources, program.warnings());
                match program.elaborate("f") {
                    Err(diagnostics) => write_all(&mut out, &sources, &diagnostics),
                    Ok(function) => {
                        let mut said = !program.warnings().is_empty();
                        for r in &function.requires {
                            let _ = writeln!(out, "at entry: {}", r.message);
                            said = true;
                        }
                        if !said {
                            out.push_str("NOTHING WRONG\n");
                        }
                    }
                }
            }
        }
        out.push('\n');
    }
    insta::assert_snapshot!(out);
    assert!(!out.contains("BUG") && !out.contains("NOTHING WRONG"), "{out}");
}

#[test]
fn a_definition_that_is_not_there_is_told_with_its_neighbour() {
    let program = load("let gradientOf = fun x -> x").unwrap_or_else(|(_, d)| panic!("{d}"));
    insta::assert_snapshot!(program.elaborate("gradientof").unwrap_err().to_string());
}

#[test]
fn files_that_import_each_other_are_told() {
    let mut sources = Sources::new();
    let root = sources.add("a.ft", "import \"b.ft\"\nlet f = 1");
    let loader = |path: &str, _: &str| match path {
        "b.ft" => Ok(("b.ft".to_owned(), "import \"a.ft\"\nlet g = 2".to_owned())),
        _ => Ok(("a.ft".to_owned(), "import \"b.ft\"\nlet f = 1".to_owned())),
    };
    let mut out = String::new();
    match Program::load(&mut sources, root, loader) {
        Err(diagnostics) => write_all(&mut out, &sources, &diagnostics),
        Ok(_) => panic!("a circle"),
    }
    insta::assert_snapshot!(out);
}
