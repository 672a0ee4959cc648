//! Valid programs and their trees, printed with full brackets.

mod support;

use chainrule_syntax::tree::{
    Expr, ExprKind, ItemKind, MAX_DEPTH, Module, Param, Pattern, Size, SizeKind, Type, TypeKind,
};
use support::{messages, parse, parse_expr};

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn pattern(p: &Pattern) -> String {
    match p {
        Pattern::Name(ident) => ident.name.to_string(),
        Pattern::Wildcard(_) => "_".into(),
        Pattern::Tuple(parts, _) => format!("({})", list(parts, pattern)),
    }
}

fn annotated(p: &Pattern, t: Option<&Type>) -> String {
    t.map_or_else(|| pattern(p), |t| format!("{}:{}", pattern(p), ty(t)))
}

fn param(p: &Param) -> String {
    annotated(&p.pattern, p.ty.as_ref())
}

fn size(s: &Size) -> String {
    match &s.kind {
        SizeKind::Number(n) => n.to_string(),
        SizeKind::Name(name) => name.to_string(),
        SizeKind::Infix(op, a, b) => format!("({op:?} {} {})", size(a), size(b)),
    }
}

fn ty(t: &Type) -> String {
    match &t.kind {
        TypeKind::Name(name) => name.to_string(),
        TypeKind::Array { size: s, element } => {
            format!("[{}]{}", s.as_ref().map_or_else(String::new, size), ty(element))
        }
        TypeKind::Tuple(types) => format!("(Tuple {})", list(types, ty)),
        TypeKind::Record(fields) => format!("{{{}}}", list(fields, |(f, t)| format!("{}:{}", f.name, ty(t)))),
        TypeKind::Function(a, b) => format!("({} => {})", ty(a), ty(b)),
        TypeKind::Error => "ERROR".into(),
    }
}

fn show(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Integer(n) => n.to_string(),
        ExprKind::Real(x) => format!("{x:?}"),
        ExprKind::Bool(b) => b.to_string(),
        ExprKind::Name(name) => name.to_string(),
        ExprKind::Operator(op) => format!("{op:?}"),
        ExprKind::Apply { function, args } => format!("({} @ {})", show(function), list(args, show)),
        ExprKind::Fun { params, result, body } => format!(
            "(fun {}{} -> {})",
            list(params, param),
            result.as_ref().map_or_else(String::new, |t| format!(" :{}", ty(t))),
            show(body)
        ),
        ExprKind::Let { bindings, body } => format!(
            "(let {} in {})",
            list(bindings, |b| format!("{}={}", annotated(&b.pattern, b.ty.as_ref()), show(&b.value))),
            show(body)
        ),
        ExprKind::If { arms, otherwise } => {
            format!("(if {} else {})", list(arms, |(c, v)| format!("{} then {}", show(c), show(v))), show(otherwise))
        }
        ExprKind::Infix { first, rest } => {
            format!("({} {})", show(first), list(rest, |(op, _, e)| format!("{op:?} {}", show(e))))
        }
        ExprKind::Neg(e) => format!("(Neg {})", show(e)),
        ExprKind::Index { array, indices } => format!("{}{}", show(array), list(indices, |i| format!("[{}]", show(i)))),
        ExprKind::Tuple(parts) => format!("(Tuple {})", list(parts, show)),
        ExprKind::Component { tuple, index } => format!("{}.{index}", show(tuple)),
        ExprKind::Record(fields) => format!("{{{}}}", list(fields, |(f, e)| format!("{}={}", f.name, show(e)))),
        ExprKind::Field { record, field } => format!("{}.{}", show(record), field.name),
        ExprKind::Array(parts) => format!("(Array {})", list(parts, show)),
        ExprKind::Annotated { expr, ty: t } => format!("({} : {})", show(expr), ty(t)),
        ExprKind::Error => "ERROR".into(),
    }
}

fn show_module(module: &Module) -> String {
    let items = module.items.iter().map(|item| match &item.kind {
        ItemKind::Import { path, library, .. } => format!("import {path} {library}"),
        ItemKind::TypeAlias { name, ty: t } => format!("type {} = {}", name.name, ty(t)),
        ItemKind::Let(b) => format!("{} = {}", annotated(&b.pattern, b.ty.as_ref()), show(&b.value)),
    });
    items.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn expr(text: &str, expected: &str) {
    let (tree, diagnostics) = parse_expr(text);
    assert_eq!(support::expr_messages(text), "", "{text}");
    assert!(diagnostics.is_empty());
    assert_eq!(show(&tree), expected, "{text}");
}

#[track_caller]
fn module(text: &str, expected: &str) {
    assert_eq!(messages(text), "", "{text}");
    assert_eq!(show_module(&parse(text).0), expected, "{text}");
}

#[test]
fn precedence() {
    expr("a || b && c", "(a Or (b And c))");
    expr("a && b || c && d", "((a And b) Or (c And d))");
    expr("a = b && c <> d", "((a Eq b) And (c Ne d))");
    expr("a + b < c * d", "((a Add b) Lt (c Mul d))");
    expr("a - b + c - d", "(a Sub b Add c Sub d)");
    expr("a * b / c × d · e", "(a Mul b Div c Mul d Mul e)");
    expr("(a + b) + c", "((a Add b) Add c)");
    expr("a + (b + c)", "(a Add (b Add c))");
    expr("a ** b ** c", "(a Pow (b Pow c))");
    expr("(a ^ b) ^ c", "((a Pow b) Pow c)");
    expr("-x**2", "(Neg (x Pow 2))");
    expr("(-x)**2", "((Neg x) Pow 2)");
    expr("2 ** -1", "(2 Pow (Neg 1))");
    expr("2 ** -x ** 3 * y", "((2 Pow (Neg (x Pow 3))) Mul y)");
    expr("-a * b", "((Neg a) Mul b)");
    expr("-f x", "(Neg (f @ x))");
    expr("a * -b + -c", "((a Mul (Neg b)) Add (Neg c))");
    expr("- - x", "(Neg (Neg x))");
    expr("a - -b", "(a Sub (Neg b))");
    expr("f x ** 2", "((f @ x) Pow 2)");
    expr("f -1", "(f Sub 1)");
    expr("f (-1)", "(f @ (Neg 1))");
    expr("a + if c then 1 else 2 + 3", "(a Add (if c then 1 else (2 Add 3)))");
    expr("a < fun x -> x < y", "(a Lt (fun x -> (x Lt y)))");
    expr("a ≤ b || c ≥ d || e ≠ f", "((a Le b) Or (c Ge d) Or (e Ne f))");
}

#[test]
fn application_and_postfix() {
    expr("f x y", "(f @ x y)");
    expr("(f x) y", "((f @ x) @ y)");
    expr("f v[i]", "(f @ v[i])");
    expr("f v [i]", "(f @ v (Array i))");
    expr("f v1[i] v2[i][j]", "(f @ v1[i] v2[i] [j])");
    expr("length(m[0])", "(length @ m[0])");
    expr("f(x)[0]", "(f @ x[0])");
    expr("(m1[i]) (m2T[j])", "(m1[i] @ m2T[j])");
    expr("(m[i])[j]", "m[i][j]");
    expr("p.0.1", "p.0.1");
    expr("p.0.1[i].x", "p.0.1[i].x");
    expr("f p.0 r.name", "(f @ p.0 r.name)");
    expr("(a, b).1", "(Tuple a b).1");
    expr("vectorMap2 v1 v2 (×)", "(vectorMap2 @ v1 v2 Mul)");
    expr("f (*) (+) (-) (<=) (pair) (**)", "(f @ Mul Add Sub Le pair Pow)");
    expr("f { a = 1, b = x y } [1, 2.5]", "(f @ {a=1 b=(x @ y)} (Array 1 2.5))");
    expr("(e : T)", "(e : T)");
    expr("f true x'", "(f @ true x')");
}

#[test]
fn numbers() {
    expr("[1, 1_000, 1.5, 1e-3, 2E6, 1_0.5_0e+1]", "(Array 1 1000 1.5 0.001 2000000.0 105.0)");
    expr("9223372036854775807", "9223372036854775807");
}

#[test]
fn functions_lets_and_conditionals() {
    expr("fun x y -> x + y", "(fun x y -> (x Add y))");
    expr("fun (x : [n]Double) (a, (b, _)) _ -> e", "(fun x:[n]Double (a (b _)) _ -> e)");
    expr("fun ((a, b) : (A, B)) -> a", "(fun (a b):(Tuple A B) -> a)");
    expr("fun x : Double => Double -> e", "(fun x :(Double => Double) -> e)");
    expr("fun x -> fun y -> x", "(fun x -> (fun y -> x))");
    expr("let x = 1 in let y = 2 in x + y", "(let x=1 y=2 in (x Add y))");
    expr("let x = 1 in (let y = 2 in x + y)", "(let x=1 in (let y=2 in (x Add y)))");
    expr("let a = let b = 1 in b in a", "(let a=(let b=1 in b) in a)");
    expr("let (a, b) = p in let _ = c in a", "(let (a b)=p _=c in a)");
    expr("let f x (y : T) : R = x in f", "(let f=(fun x y:T :R -> x) in f)");
    expr("let x : T = 1 in x", "(let x:T=1 in x)");
    expr("let b = i = j in b", "(let b=(i Eq j) in b)");
    expr("if a then b else if c then d else e", "(if a then b c then d else e)");
    expr("if a then b else (if c then d else e)", "(if a then b else (if c then d else e))");
    expr("if a then if b then c else d else e", "(if a then (if b then c else d) else e)");
    expr("(let a = 1 in a, if c then 1 else 2)", "(Tuple (let a=1 in a) (if c then 1 else 2))");
}

#[test]
fn types() {
    let in_type = |t: &str, expected: &str| expr(&format!("(x : {t})"), &format!("(x : {expected})"));
    in_type("Array<Array<Double>>", "[][]Double");
    in_type("[m][2*n + 1]Double", "[m][(Add (Mul 2 n) 1)]Double");
    in_type("[n - (k - 1)]T", "[(Sub n (Sub k 1))]T");
    in_type("A => B -> C", "(A => (B => C))");
    in_type("(A => B) ⇒ C", "((A => B) => C)");
    in_type("A * B × C", "(Tuple A B C)");
    in_type("(A, B) => [n](A * B)", "((Tuple A B) => [n](Tuple A B))");
    in_type("{ a : A, b : []B }", "{a:A b:[]B}");
    in_type("Array<M>=>Index=>M", "([]M => (Index => M))");
    module("let x : Array<M>= e", "x:[]M = e");
    module("let x : Array<Array<M>>= e", "x:[][]M = e");
}

#[test]
fn items() {
    module("import \"a/b.ft\"\nimport linalg\n", "import a/b.ft false\nimport linalg true");
    module(
        "type Camera = { rotation : [3]Double,\n  focal : Double }",
        "type Camera = {rotation:[3]Double focal:Double}",
    );
    module("let f (x : Double) y = x\nlet pi = 3.14", "f = (fun x:Double y -> x)\npi = 3.14");
    module("\u{feff}let a = 1 // one\r\nlet b = 2\r\n", "a = 1\nb = 2");
    module("", "");
    module("  let a = f\n    x\n  let b = 1", "a = (f @ x)\nb = 1");
}

#[test]
fn docs_are_the_comment_lines_right_above() {
    let text = "// not\n\n// One.\n//Two.\n/// Three.\nlet a = 1 // no\nlet b = 2\n/* no */\nlet c = 3\n  // Four\n  let d = 4";
    let docs: Vec<Vec<String>> = parse(text).0.items.into_iter().map(|item| item.docs).collect();
    assert_eq!(docs[0], ["One.", "Two.", "Three."]);
    assert!(docs[1].is_empty() && docs[2].is_empty());
}

#[test]
fn the_offside_rule() {
    // Example 1 of the paper.
    module(
        "let f = fun u M v ->\n  let um = vectorToMatrix u\n  let vt = matrixTranspose (vectorToMatrix v)\n  \
         let m = matrixMult um (matrixMult M vt)\n  m[0][0]\n",
        "f = (fun u M v -> (let um=(vectorToMatrix @ u) vt=(matrixTranspose @ (vectorToMatrix @ v)) \
         m=(matrixMult @ um (matrixMult @ M vt)) in m[0] [0]))",
    );
    // Deeper lines continue, whatever their first token is.
    expr("let a = f\n  x\n  + y\n  [1]\na", "(let a=((f @ x) Add (y @ (Array 1))) in a)");
    // A line at the border does not.
    expr("let a = f x\n- b", "(let a=(f @ x) in (Neg b))");
    expr("let a = f x\n[b]", "(let a=(f @ x) in (Array b))");
    expr("let a = f x\n(b)", "(let a=(f @ x) in b)");
    // Brackets suspend the border.
    expr("let a = f (\nx\n)\n(b)", "(let a=(f @ x) in b)");
    expr("let a = { x =\n1,\ny = 2 }\na", "(let a={x=1 y=2} in a)");
    // A `let` inside brackets sets its own border.
    expr("f (let a = 1\n   let b = 2\n   a) c", "(f @ (let a=1 b=2 in a) c)");
    expr("[ let a = 1\n  a\n, 2]", "(Array (let a=1 in a) 2)");
    // A `let` at a line's start ends the previous binding in any column.
    expr("let a = 1\n    let b = 2\na", "(let a=1 b=2 in a)");
    // So does an `if` or a `fun`.
    expr("let a = f x\n  if c then a else b", "(let a=(f @ x) in (if c then a else b))");
    // `in` is still valid, at the border or right of it.
    expr("let a = 1\nin let b = 2\n  in a", "(let a=1 b=2 in a)");
    // An outer `in` does not end an inner `let`.
    expr("let a =\n  let b = 1\n  b\nin a", "(let a=(let b=1 in b) in a)");
    // `then` and `else` ignore borders.
    expr("let a = if c\nthen 1\nelse 2\na", "(let a=(if c then 1 else 2) in a)");
    expr("if c then\n  let a = 1\n  a\nelse\n  b", "(if c then (let a=1 in a) else b)");
    // Functions inside bindings.
    module(
        "let f = fun x ->\n  let g = fun y ->\n    let z = y\n    z * x\n  let h = g\n    1\n  h\nlet k = 1",
        "f = (fun x -> (let g=(fun y -> (let z=y in (z Mul x))) h=(g @ 1) in h))\nk = 1",
    );
    // Items end at their column only.
    module("let a = f\n x\n /* c */ y\nlet b = 2", "a = (f @ x y)\nb = 2");
    module("let a = (\n1\n)\nlet b = 2", "a = 1\nb = 2");
    // A multi-line comment does not hide that a token is the first of its line.
    expr("let a = f /*\n*/ x\na", "(let a=(f @ x) in a)");
    expr("let a = f /*\n*/\na", "(let a=f in a)");
}

#[test]
fn figure_4_parses_as_it_stands() {
    let text = include_str!("figure4.ft");
    assert_eq!(messages(text), "");
    let (module, _) = parse(text);
    assert_eq!(module.items.len(), 27);
    let shown = show_module(&module);
    assert!(shown.contains("vectorHot = (fun n i -> (build @ n (fun j -> (if (i Eq j) then 1 else 0))))"));
    assert!(shown.contains(
        "matrixMul = (fun m1 m2 -> (let m2T=(matrixTranspose @ m2) in (build @ (matrixRows @ m1) (fun i -> \
         (build @ (matrixCols @ m2) (fun j -> (vectorDot @ m1[i] m2T[j])))))))"
    ));
    assert!(shown.contains("matrixTrace = (fun m -> (ifold @ (fun s i -> (s Add m[i] [i])) 0 (length @ m)))"));
}

#[test]
fn figure_3_parses() {
    module("let f = fun x -> e e", "f = (fun x -> (e @ e))");
    expr("let x = e in e", "(let x=e in e)");
    expr("if e then e else e", "(if e then e else e)");
    expr("(build : Card ⇒ (Index ⇒ M) ⇒ Array<M>)", "(build : (Card => ((Index => M) => []M)))");
    expr("(get : Array<M>⇒Index ⇒ M)", "(get : ([]M => (Index => M)))");
    expr("(ifold : (M ⇒ Index ⇒ M) ⇒ M ⇒ Card ⇒ M)", "(ifold : ((M => (Index => M)) => (M => (Card => M))))");
    expr("(pair : M1 ⇒ M2 ⇒ M1 × M2)", "(pair : (M1 => (M2 => (Tuple M1 M2))))");
    expr("(e0, e1)", "(Tuple e0 e1)");
    expr("f (+) (-) (*) (/) (**) (>) (<) (==) (<>) (&&) (||)", "(f @ Add Sub Mul Div Pow Gt Lt Eq Ne And Or)");
    module("type MatrixD = Array<Array<Double × Double>>", "type MatrixD = [][](Tuple Double Double)");
}

#[test]
fn what_is_long_is_no_deeper() {
    let n = 100_000;
    let lets: String = (0..n).map(|i| format!("  let x{i} = {i}\n")).collect();
    let text = format!("let f = fun y ->\n{lets}  y");
    assert_eq!(messages(&text), "");
    let items: String = (0..n).map(|i| format!("let x{i} = {i}\n")).collect();
    assert_eq!(parse(&items).0.items.len(), n);
    let sum = vec!["x"; n].join(" + ");
    let (tree, diagnostics) = parse_expr(&sum);
    assert!(diagnostics.is_empty());
    assert!(matches!(tree.kind, ExprKind::Infix { rest, .. } if rest.len() == n - 1));
    let choice = "if c then 1 else ".repeat(n) + "2";
    assert!(parse_expr(&choice).1.is_empty());
    let (index, args) = ("m".to_owned() + &"[i]".repeat(n), "f ".repeat(n));
    assert!(parse_expr(&index).1.is_empty() && parse_expr(&args).1.is_empty());
}

/// Returns each form of nesting, `n` deep.
fn nests(n: usize) -> Vec<String> {
    let wrap = |open: &str, inner: &str, close: &str| open.repeat(n) + inner + &close.repeat(n);
    vec![
        wrap("(", "x", ")"),
        wrap("[", "x", "]"),
        wrap("f (1 + ", "x", ")"),
        wrap("a || b && c < d + e * -f ** g[", "x", "]"),
        wrap("{ a = ", "x", "}"),
        wrap("fun x -> ", "x", ""),
        wrap("let a = ", "x", " in a"),
        wrap("if ", "x", " then 1 else 2"),
        wrap("if c then ", "x", " else 2"),
        wrap("-", "x", ""),
        wrap("x ** ", "x", ""),
        wrap("a -> ", "x", ""),
        wrap("return ", "x", ""),
        wrap("!", "x", ""),
        wrap("", "x", ".a"),
        wrap("", "x", ".[i]"),
        wrap("f \\x -> ", "x", ""),
        format!("(x : {})", wrap("(", "T", ")")),
        format!("(x : {})", wrap("[]", "T", "")),
        format!("(x : {})", wrap("Array<", "T", ">")),
        format!("(x : {})", wrap("T => ", "T", "")),
        format!("(x : {})", wrap("T[1", "", "]")),
        format!("(x : [{}]T)", wrap("(", "n", ")")),
        format!("(x : [{}]T)", wrap("n + ", "n", "")),
        format!("(x : [{}]T)", wrap("", "1", "*n")),
        format!("fun {} -> 1", wrap("(", "x", ", y)")),
    ]
}

/// Runs on the stack of the test harness's threads, 2 MiB.
#[test]
fn deep_programs_are_a_limitation_and_no_overflow() {
    for text in nests(100_000) {
        let (tree, diagnostics) = parse_expr(&text);
        assert!(!diagnostics.is_empty() || text.starts_with("return"), "{}", &text[..20]);
        assert!(diagnostics.len() <= 101, "{}", &text[..20]);
        drop(tree);
        let module = format!("let a = {text}\nlet b = 1 +\nlet c = 3");
        let (tree, diagnostics) = parse(&module);
        assert!(diagnostics.has_errors());
        assert!(tree.items.len() >= 3, "{}", &text[..20]);
    }
}

#[test]
fn programs_of_the_maximum_depth_parse() {
    for depth in [MAX_DEPTH - 2, MAX_DEPTH + 2] {
        let text = "f (".repeat(depth) + "x" + &")".repeat(depth);
        assert_eq!(parse_expr(&text).1.is_empty(), depth < MAX_DEPTH);
    }
    let parens = "(".repeat(MAX_DEPTH + 60) + "x" + &")".repeat(MAX_DEPTH + 60);
    assert!(parse_expr(&parens).1.is_empty());
}
