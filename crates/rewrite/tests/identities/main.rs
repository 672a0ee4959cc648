//! The paper's identities are found: derivatives of F~ programs, expanded, optimised, and compared with the expected
//! program up to names and the order of statements.

mod alike;

use alike::alike;
use chainrule_autodiff::{Mode, Part, Request, derive, expand};
use chainrule_base::Sources;
use chainrule_ir::{Block, Builder, Expr, Function, Program, Renaming, StateLoop, VarId, print, verify};
use chainrule_ops::Op;
use chainrule_rewrite::engine::measure;
use chainrule_rewrite::{Options, Report, optimise};

fn function(text: &str, name: &str) -> Function {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate(name)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn gradient(text: &str, by: &str) -> Function {
    let request = Request { parts: vec![Part::Gradient], by: vec![by.into()], mode: Mode::Forward, checkpoints: None };
    derive(&function(text, "f"), &request).unwrap_or_else(|e| panic!("{e}"))
}

/// The same by reverse mode.
fn reverse_gradient(text: &str, by: &str) -> Function {
    let f = function(text, "f");
    let mut b = Builder::rewriting(&f);
    let named = |param: &&VarId| f.vars[**param].name.as_ref().is_some_and(|name| name.as_str() == by);
    let param = *f.params.iter().find(named).expect("a parameter");
    let one = b.real(1.0);
    let both = b.vjp(&[param], one, |b, inner| {
        let mut renaming = Renaming::from_iter([(param, inner[0])]);
        b.inline(&f.body, &mut renaming)
    });
    let gradient = b.component(both, 1);
    let mut g = b.finish(gradient);
    g.name = "f_gradient".into();
    expand(&g).unwrap_or_else(|e| panic!("{e}"))
}

fn optimised(f: &Function) -> (Function, Report) {
    let (g, report) = optimise(f, &Options::default());
    verify(&g).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&g)));
    (g, report)
}

fn depth(block: &Block) -> usize {
    let of = |expr: &Expr| {
        let inner = expr.blocks().into_iter().map(depth).max().unwrap_or(0);
        inner + usize::from(!matches!(expr, Expr::If { .. }) && !expr.blocks().is_empty())
    };
    block.stmts.iter().map(|stmt| of(&stmt.expr)).max().unwrap_or(0)
}

/// Asserts that the gradient of `text` by `by` is `expected`, a program of the same name.
fn comes_out(text: &str, by: &str, expected: &str, loops: usize) {
    for derived in [gradient(text, by), reverse_gradient(text, by)] {
        optimises_to(&derived, expected, loops);
    }
}

fn optimises_to(derived: &Function, expected: &str, loops: usize) {
    let (found, report) = optimised(derived);
    let (expected, _) = optimised(&function(expected, "f"));
    assert!(
        alike(&found, &expected) && depth(&found.body) == loops,
        "of\n{}\ncomes\n{}\nwhere is expected\n{}\n{report}",
        print(derived),
        print(&found),
        print(&expected)
    );
}

#[test]
fn a_dot_product_by_its_first_vector_is_the_second() {
    comes_out(
        "let f = fun (u : [n]Double) (v : [n]Double) -> vectorDot u v",
        "u",
        "let f = fun (u : [n]Double) (v : [n]Double) -> v",
        0,
    );
}

#[test]
fn a_trace_by_its_matrix_is_the_identity() {
    comes_out(
        "let f = fun (m : [n][n]Double) -> matrixTrace m",
        "m",
        "let f = fun (m : [n][n]Double) -> build n (fun i -> build n (fun j -> if i == j then 1.0 else 0.0))",
        1,
    );
}

#[test]
fn u_m_v_by_m_is_the_outer_product() {
    let expected = "let f = fun (u : [r]Double) (m : [r][c]Double) (v : [c]Double) ->
        build r (fun i -> build c (fun j -> u[i] * v[j]))";
    let text = "let f = fun (u : [r]Double) (m : [r][c]Double) (v : [c]Double) -> vectorMatrixVector u m v";
    comes_out(text, "m", expected, 2);
    let text = "let f = fun (u : [r]Double) (m : [r][c]Double) (v : [c]Double) ->
        (matrixMult (vectorToMatrix u) (matrixMult m (matrixTranspose (vectorToMatrix v))))[0][0]";
    comes_out(text, "m", expected, 2);
}

#[test]
fn the_trace_of_a_product_by_its_first_matrix_is_the_transpose_of_the_second() {
    comes_out(
        "let f = fun (m : [n][k]Double) (a : [k][n]Double) -> matrixTrace (matrixMul m a)",
        "m",
        "let f = fun (m : [n][k]Double) (a : [k][n]Double) -> build n (fun i -> build k (fun j -> a[j][i]))",
        2,
    );
}

#[test]
fn the_square_of_a_norm_is_twice_the_vector() {
    comes_out(
        "let f = fun (x : [n]Double) -> vectorNorm2 x",
        "x",
        "let f = fun (x : [n]Double) -> build n (fun i -> 2.0 * x[i])",
        1,
    );
}

#[test]
fn the_sum_of_a_matrix_times_a_vector_is_the_sums_of_columns() {
    comes_out(
        "let f = fun (a : [r][c]Double) (x : [c]Double) -> vectorSum (matrixVectorMul a x)",
        "x",
        "let f = fun (a : [r][c]Double) (x : [c]Double) -> build c (fun j -> sum r (fun i -> a[i][j]))",
        2,
    );
}

/// Returns the number of occurrences of `what` in the optimised derivative.
fn occurrences(f: &Function, what: &str) -> usize {
    print(f).matches(what).count()
}

/// Checks that no one-hot arrays and no comparisons of indices remain in the program of `expected`.
fn no_one_hot(expected: &str) {
    let (found, _) = optimised(&function(expected, "f"));
    for mark in ["oneHot", "==", "select"] {
        assert_eq!(occurrences(&found, mark), 0, "{expected}");
    }
}

#[test]
fn gradients_of_products_are_products_without_one_hot_arrays() {
    let bilinear = "fun (a : [r][c]Double) (x : [c]Double) (y : [r]Double) ->";
    let product = "fun (a : [r][k]Double) (x : [k][c]Double) ->";
    let square = "fun (x : [n]Double) (a : [n][n]Double) ->";
    let cases = [
        (bilinear, "vectorDot y (matrixVectorMul a x)", "a", "build r (fun i -> build c (fun j -> y[i] * x[j]))", 2),
        (bilinear, "vectorDot y (matrixVectorMul a x)", "x", "build c (fun j -> sum r (fun i -> a[i][j] * y[i]))", 2),
        (bilinear, "vectorDot y (matrixVectorMul a x)", "y", "build r (fun i -> sum c (fun j -> a[i][j] * x[j]))", 2),
        // Each sum of a row, of a column, is computed once.
        (
            product,
            "matrixSum (matrixMul a x)",
            "a",
            "let rows = build k (fun p -> sum c (fun j -> x[p][j])) in build r (fun i -> rows)",
            2,
        ),
        (
            product,
            "matrixSum (matrixMul a x)",
            "x",
            "build k (fun p -> let column = sum r (fun i -> a[i][p]) in build c (fun j -> column))",
            2,
        ),
        (square, "vectorDot x (matrixVectorMul a x)", "a", "build n (fun i -> build n (fun j -> x[i] * x[j]))", 2),
        (
            square,
            "vectorDot x (matrixVectorMul a x)",
            "x",
            "build n (fun i -> sum n (fun j -> a[i][j] * x[j]) + sum n (fun j -> a[j][i] * x[j]))",
            2,
        ),
    ];
    for (params, value, by, expected, loops) in cases {
        let (text, expected) = (format!("let f = {params} {value}"), format!("let f = {params} {expected}"));
        comes_out(&text, by, &expected, loops);
        no_one_hot(&expected);
    }
}

#[test]
fn gradients_of_the_square_of_the_norm_of_a_product_are_products_with_the_product() {
    // In reverse, each element of the product is doubled, until the factor leaves the sums.
    let params = "fun (a : [r][k]Double) (x : [k][c]Double) ->";
    let cases = [
        ("a", "build r (fun i -> build k (fun p -> 2.0 * sum c (fun j -> x[p][j] * y[i][j])))"),
        ("x", "build k (fun p -> build c (fun j -> 2.0 * sum r (fun i -> a[i][p] * y[i][j])))"),
    ];
    for (by, expected) in cases {
        let text = format!("let f = {params} matrixNorm2 (matrixMul a x)");
        let expected = format!("let f = {params} let y = matrixMul a x in {expected}");
        comes_out(&text, by, &expected, 3);
        no_one_hot(&expected);
    }
}

#[test]
fn the_gradient_of_log_sum_exp_is_softmax() {
    // The derivative by the largest element is 1 less the sum of softmax, which is 1.
    let sum = "let m = ifold (fun m i -> max m x[i]) x[0] n in
         let s = sum n (fun i -> exp (x[i] - m)) in";
    let text = format!("let f = fun (x : [n]Double) -> {sum} m + log s");
    let expected = format!("let f = fun (x : [n]Double) -> {sum} build n (fun i -> 1.0 / s * exp (x[i] - m))");
    optimises_to(&reverse_gradient(&text, "x"), &expected, 1);
}

#[test]
fn the_update_of_a_matrix_factorisation_is_the_product_with_the_ratios() {
    // W^T (1 / (W H) - A / (W H)^2), by H.
    let params = "fun (w : [n][k]Double) (h : [k][m]Double) (a : [n][m]Double) ->";
    let text = format!(
        "let f = {params}
        let wh = matrixMul w h
        sum n (fun i -> sum m (fun j -> a[i][j] / wh[i][j] + log (wh[i][j])))"
    );
    // In forward mode, quotients are computed at their uses.
    let expected = format!(
        "let f = {params}
        let wh = matrixMul w h
        build k (fun p -> build m (fun j -> sum n (fun i -> w[i][p] * ((1.0 - a[i][j] / wh[i][j]) / wh[i][j]))))"
    );
    optimises_to(&gradient(&text, "h"), &expected, 3);
    // In reverse mode, each is computed once.
    let expected = format!(
        "let f = {params}
        let ratios = build n (fun i -> build m (fun j ->
            let wh = sum k (fun p -> w[i][p] * h[p][j])
            (1.0 - a[i][j] / wh) / wh))
        build k (fun p -> build m (fun j -> sum n (fun i -> w[i][p] * ratios[i][j])))"
    );
    optimises_to(&reverse_gradient(&text, "h"), &expected, 3);
}

#[test]
fn sums_of_products_with_one_matrix_are_products_with_the_sum() {
    // -2 Q^T (Q (sum (x - m))), by m.
    let text = "let f = fun (q : [d][d]Double) (m : [d]Double) (x : [n][d]Double) ->
        sum n (fun p -> vectorNorm2 (matrixVectorMul q (vectorSub x[p] m)))";
    let (found, report) = optimised(&reverse_gradient(text, "m"));
    let what = format!("{}\n{report}", print(&found));
    // No product for each point.
    assert_eq!(measure(&found).operations, "2*d + 2*d*d + d*n", "{what}");
    assert_eq!(report.times("sum-of-linear"), 1, "{what}");
}

#[test]
fn the_gradient_of_log_sum_exp_is_the_softmax_with_each_exponential_taken_once() {
    let text = "let f = fun (x : [n]Double) ->
        let top = vectorMax x
        top + log (sum n (fun i -> exp (x[i] - top)))";
    let (found, report) = optimised(&reverse_gradient(text, "x"));
    let what = format!("{}\n{report}", print(&found));
    assert_eq!(occurrences(&found, "exp "), 1, "{what}");
    for none in ["oneHot", "==", "select"] {
        assert_eq!(occurrences(&found, none), 0, "{what}");
    }
    // The largest; the exponentials with their sum; the quotients.
    assert_eq!((depth(&found.body), measure(&found).loops), (1, 3), "{what}");
}

#[test]
fn the_jacobian_of_a_matrix_times_a_vector_is_the_matrix() {
    let f = function("let f = fun (a : [r][c]Double) (x : [c]Double) -> matrixVectorMul a x", "f");
    let request = Request { parts: vec![Part::Jacobian], by: vec!["x".into()], mode: Mode::Forward, checkpoints: None };
    let derived = derive(&f, &request).unwrap_or_else(|e| panic!("{e}"));
    let (found, _) = optimised(&derived);
    assert_eq!((found.body.stmts.len(), found.body.result), (0, found.params[0]));
}

#[test]
fn elements_of_an_array_of_any_dimension_are_computed_where_they_are_read() {
    // Along the last dimension first: each element is read once, in another order.
    let text = "let f = fun (x : [n][m][k]Double) (w : [n][m][k][l]Double) ->
        let p = build n (fun i -> build m (fun j -> build k (fun c -> build l (fun o -> x[i][j][c] * w[i][j][c][o]))))
        build l (fun o -> sum n (fun i -> sum m (fun j -> sum k (fun c -> p[i][j][c][o]))))";
    let (found, report) = optimised(&function(text, "f"));
    assert_eq!((depth(&found.body), measure(&found).loops), (4, 4), "{}\n{report}", print(&found));
}

#[test]
fn the_place_of_a_minimum_has_no_tangent() {
    let least = "ifold (fun (best, at) i -> if x[i] < best then (x[i], i) else (best, at)) (x[0], 0) n";
    let f = function(&format!("let f = fun (x : [n]Double) -> x[snd ({least})]"), "f");
    let request = Request { parts: vec![Part::Jvp], by: vec!["x".into()], mode: Mode::Forward, checkpoints: None };
    let derived = derive(&f, &request).unwrap_or_else(|e| panic!("{e}"));
    let expected = format!("let f = fun (x : [n]Double) (x_tan : [n]Double) -> x_tan[snd ({least})]");
    optimises_to(&derived, &expected, 1);
}

#[test]
fn arrays_become_one_loop_where_they_share_more_than_writing_them_costs() {
    // With an index, each array has a loop of its own; with two sines for each number, one loop adds one of them to
    // zeros.
    let rows = "let f = fun (x : [m][8]Double) (at : [n]Index) ->
        (build n (fun i -> vectorNeg x[at[i]]), build n (fun i -> vectorSMul x[at[i]] 3.0))";
    let (found, _) = optimised(&function(rows, "f"));
    assert!(!print(&found).contains("oneHot"), "{}", print(&found));
    let numbers = "let f = fun (x : [n]Double) ->
        let y = fun i -> sin (x[i] * sin x[i])
        (build n (fun i -> 2.0 * y i), build n (fun i -> y i + 1.0))";
    let (found, _) = optimised(&function(numbers, "f"));
    assert!(print(&found).contains("oneHot"), "{}", print(&found));
}

/// Returns `build k (fun q -> <mode> f x d[q])` expanded and optimised, for a fold with these `steps` that reads
/// `beside`.
fn of_several(mode: &str, steps: &str, beside: &str) -> Function {
    let text = format!(
        "let f = fun (x : [n]Double) (s : Card) (d : [k][n]Double) ->
          build k (fun q -> {mode} (fun x -> ifold (fun y i -> build n (fun j -> sin y[j] + y[{beside}])) x {steps}) x d[q])"
    );
    optimised(&expand(&function(&text, "f")).unwrap_or_else(|e| panic!("{e}"))).0
}

#[test]
fn several_cotangents_share_the_states_of_a_loop_however_its_steps_are_counted() {
    for (steps, beside) in
        [("10", "n - 1 - j"), ("s", "n - 1 - j"), ("(s + 2)", "j"), ("(div s 2)", "n - 1 - j"), ("s", "mod (j + 1) n")]
    {
        let found = of_several("vjp", steps, beside);
        // Outside the loop over cotangents one loop computes sines, and one cosines; inside there is neither.
        let mut inside = found.clone();
        inside.body.stmts.retain(|stmt| stmt.var == found.body.result);
        let counts = |f: &Function| (occurrences(f, "sin "), occurrences(f, "cos "));
        assert_eq!((counts(&found), counts(&inside)), ((1, 1), (0, 0)), "{}", print(&found));
    }
}

/// Collects the counts of the loops around each `sine` and each `cosine` in `block`.
fn around(f: &Function, block: &Block, loops: &mut Vec<String>, found: &mut Vec<String>) {
    for stmt in &block.stmts {
        if let Expr::Op(Op::Sin | Op::Cos, _) = stmt.expr {
            found.push(loops.join(" "));
        }
        let count = match &stmt.expr {
            Expr::Build { size: count, .. }
            | Expr::Fold(StateLoop { count, .. })
            | Expr::Loop(StateLoop { count, .. }) => {
                let name = |var: VarId| f.vars[var].name.as_ref().map_or("?", |name| name.as_str());
                count.as_var().map_or_else(|| count.to_string(), |var| name(var).to_owned())
            }
            _ => "?".to_owned(),
        };
        loops.push(count);
        stmt.expr.blocks().into_iter().for_each(|block| around(f, block, loops, found));
        loops.pop();
    }
}

#[test]
fn several_directions_share_the_primal_of_a_loop() {
    for (steps, beside) in [("10", "n - 1 - j"), ("s", "n - 1 - j"), ("s", "mod (j + 1) n")] {
        let found = of_several("jvp", steps, beside);
        let mut places = Vec::new();
        around(&found, &found.body, &mut Vec::new(), &mut places);
        assert_eq!(places, [format!("{steps} n"), format!("{steps} n")], "{}", print(&found));
    }
}
