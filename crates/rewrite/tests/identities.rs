//! The paper's identities come out by themselves: derivatives of F~ programs, expanded, optimised, and compared
//! with the expected program up to names.

use chainrule_autodiff::{Part, Request, derive, expand};
use chainrule_base::Sources;
use chainrule_ir::{Block, Builder, Expr, Function, Program, Renaming, VarId, alpha_equal, print, verify};
use chainrule_rewrite::{Options, Report, optimise};

fn function(text: &str, name: &str) -> Function {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate(name)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn gradient(text: &str, by: &str) -> Function {
    let request = Request { parts: vec![Part::Gradient], by: vec![by.into()] };
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
    let mut expected = function(expected, "f");
    expected.name = found.name.clone();
    let (expected, _) = optimised(&expected);
    assert!(
        alpha_equal(&found, &expected) && depth(&found.body) == loops,
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
