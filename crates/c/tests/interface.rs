//! What the caller sees: files, names, codes, sizes; and operators one by one.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::c::{self, FLAGS, compile, compiler};
use chainrule_backend_tests::{Array, Case, Data, int, interpret, is_inexact, real, reals};
use chainrule_base::{Arena, Name, Poly};
use chainrule_c::{Options, Source, emit, emit_many};
use chainrule_graph::{Graph, NodeId, Semantics, generate};
use chainrule_ir::{Builder, Requirement, Size, Type};
use chainrule_kernel::{
    Buffer, Class, External, GraphPort, Instr, Kernel, Place, Port, Reg, Stmt, lower_function, lower_graph,
};
use chainrule_ops::{Op, ROWS};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use support::{files, run_c};

fn port(name: &str, shape: &[i64], nodes: &[NodeId]) -> GraphPort {
    GraphPort { name: name.into(), shape: shape.to_vec(), nodes: nodes.to_vec() }
}

/// A rotation of a point by an angle, and its derivative by the angle.
fn rotation() -> [Kernel; 2] {
    let mut g = Graph::new(Semantics::Strict);
    let (angle, x, y) = (g.input("angle"), g.input("x"), g.input("y"));
    let (s, c) = (g.raw(Op::Sin, &[angle]), g.raw(Op::Cos, &[angle]));
    let mut times = |a, b| g.raw(Op::Mul, &[a, b]);
    let (cx, sy, sx, cy) = (times(c, x), times(s, y), times(s, x), times(c, y));
    let half = g.constant(0.5);
    let (u, v, sum) = (g.raw(Op::Sub, &[cx, sy]), g.raw(Op::Add, &[sx, cy]), g.raw(Op::Mul, &[half, sx]));
    let du = g.raw(Op::Neg, &[v]);
    let inputs = [port("camera.angle", &[], &[angle]), port("p", &[2], &[x, y])];
    let value = lower_graph("rotation", &g, &inputs, &[port("q", &[2], &[u, v]), port("half", &[], &[sum])]).unwrap();
    let jacobian = lower_graph("rotation_jacobian", &g, &inputs, &[port("jac", &[2, 1], &[du, u])]).unwrap();
    [value, jacobian]
}

/// Running sums of the rows of a matrix, picked by indices; with a condition and workspace.
fn picked_sums() -> Kernel {
    let mut b = Builder::new("picked_sums");
    let (n, m) = (Size::var(b.size_param("n")), Size::var(b.size_param("m")));
    let a = b.param("A", Type::array(n.clone(), Type::array(m.clone(), Type::Double)));
    let picks = b.param("picks", Type::array(n.clone(), Type::Int));
    let size = n.sub(&Size::constant(1));
    b.require(Requirement { size, exactly_zero: false, message: "`A` needs a row".to_owned(), span: None });
    let rows = b.build(n.clone(), |b, i| {
        b.sum(m.clone(), |b, j| {
            let row = b.get_proved(a, i);
            b.get_proved(row, j)
        })
    });
    let result = b.build(n, |b, i| {
        let pick = b.get_proved(picks, i);
        let (sum, root) = (b.get(rows, pick), b.get_proved(rows, i));
        b.op(Op::Mul, &[sum, root])
    });
    lower_function(&b.finish(result)).unwrap()
}

fn both(source: &Source) -> String {
    format!("/* {0}.h */\n{1}\n/* {0}.c */\n{2}", source.name, source.header, source.source)
}

#[test]
fn a_function_and_its_derivative_share_a_pair_of_files() {
    let [value, jacobian] = rotation();
    let source = emit_many("rotation", &[&value, &jacobian], &Options::default()).unwrap();
    insta::assert_snapshot!(both(&source));
}

#[test]
fn arrays_come_with_sizes_and_workspace() {
    let source = emit(&picked_sums(), &Options::default()).unwrap();
    insta::assert_snapshot!(both(&source));
}

#[test]
fn the_same_kernel_gives_the_same_bytes() {
    let (graph, roots) = generate::layered(Semantics::Strict, 3000, 5, 10, 3);
    let kernel = lower_all(&graph, &roots);
    let options = Options { chunk: 100, ..Options::default() };
    assert_eq!(emit(&kernel, &options), emit(&lower_all(&graph, &roots), &options));
}

fn lower_all(graph: &Graph, roots: &[NodeId]) -> Kernel {
    let inputs: Vec<NodeId> = graph.inputs().iter().map(|(_, id)| *id).collect();
    let ports = |name, nodes: &[NodeId]| port(name, &[nodes.len() as i64], nodes);
    lower_graph("f", graph, &[ports("x", &inputs)], &[ports("y", roots)]).unwrap()
}

/// How many representable numbers lie between two, neither of which is NaN.
fn ulps(a: f64, b: f64) -> u64 {
    let place = |x: f64| {
        let bits = x.to_bits() as i64;
        i128::from(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits })
    };
    u64::try_from((place(a) - place(b)).unsigned_abs()).unwrap_or(u64::MAX)
}

/// Each operator alone, at points in its domain and at special numbers. Arithmetic is the same bit for bit;
/// functions of `math.h` lie within `ULPS` of the interpreter's, `lgamma`, which loses digits at its roots,
/// and polygamma, a sum of some 30 such functions, within `CLOSE` of the larger of 1 and the value.
#[test]
fn operators_have_the_values_of_their_rows() {
    const ULPS: u64 = 4;
    const CLOSE: f64 = 1e-12;
    const NUMBERS: [f64; 18] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.75,
        2.0,
        3.5,
        -2.5,
        10.25,
        1e-9,
        700.0,
        1e6,
        1e300,
        -1e300,
        5e-324,
        f64::INFINITY,
        f64::NAN,
    ];
    let Some(cc) = compiler() else { return };
    let mut cases = Vec::new();
    for row in ROWS {
        let mut points: Vec<Vec<f64>> = vec![vec![]];
        for _ in row.args {
            points = points.iter().flat_map(|p| NUMBERS.map(|x| [p.as_slice(), &[x]].concat())).collect();
        }
        if points.len() > 2000 {
            points = points.into_iter().step_by(7).collect();
        }
        let mut g = Graph::new(Semantics::Strict);
        let (mut inputs, mut roots) = (Vec::new(), Vec::new());
        for _ in &points {
            let args: Vec<NodeId> = row.args.iter().map(|_| g.input("x")).collect();
            roots.push(g.raw(row.op, &args));
            inputs.extend(args);
        }
        let kernel = lower_all(&g, &roots);
        cases.push((row, points.clone(), Case { kernel, inputs: vec![reals(&points.concat())] }));
    }
    let only: Vec<Case> = cases.iter().map(|c| c.2.clone()).collect();
    let found = run_c(cc, &FLAGS, &only, &Options::default());
    for ((row, points, case), found) in cases.iter().zip(found) {
        let (Ok(expected), Ok(found)) = (interpret(case).unwrap(), found) else { panic!("{}", row.name) };
        let ([Data::Real(expected)], [Data::Real(found)]) = (expected.as_slice(), found.as_slice()) else { panic!() };
        assert_eq!(found.len(), points.len());
        for ((point, a), b) in points.iter().zip(expected).zip(found) {
            let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            let gamma = matches!(row.op, Op::Lgamma | Op::Digamma | Op::Polygamma);
            // Outside of their domains these differ in what infinity or NaN stands for a pole.
            if gamma && !(row.domain.contains)(point) {
                continue;
            }
            let close = if gamma { (a - b).abs() <= CLOSE * a.abs().max(1.0) } else { ulps(*a, *b) <= ULPS };
            assert!(same || (is_inexact(row.op) && close), "{}{point:?}: {a:e} and {b:e}", row.name);
        }
    }
}

/// A kernel of one integer operator.
fn int_kernel(op: Op) -> Kernel {
    let (mut regs, mut buffers) = (Arena::new(), Arena::new());
    let one = Poly::constant(1);
    let mut inputs = Vec::new();
    let mut code = Vec::new();
    let mut args: Vec<Reg> = Vec::new();
    for k in 0..op.arity() {
        let buffer = buffers.push(Buffer { class: Class::Int, len: one.clone(), place: Place::Input(k) });
        inputs.push(Port { name: format!("a{k}").into(), shape: vec![], buffer });
        let dst = regs.push(Class::Int);
        code.push(Instr::Load { dst, buffer, at: Poly::zero() });
        args.push(dst);
    }
    let buffer = buffers.push(Buffer { class: Class::Int, len: one, place: Place::Output(0) });
    let dst = regs.push(Class::Int);
    let all = [args[0], *args.get(1).unwrap_or(&args[0]), *args.get(2).unwrap_or(&args[0])];
    code.push(Instr::IntOp { dst, op, args: all, failure: 0 });
    code.push(Instr::Store { buffer, at: Poly::zero(), value: dst });
    Kernel {
        name: format!("op_{}", op.name()).into(),
        regs,
        sizes: vec![],
        inputs,
        outputs: vec![Port { name: "y".into(), shape: vec![], buffer }],
        buffers,
        requires: vec![],
        workspace_reals: Poly::zero(),
        workspace_ints: Poly::zero(),
        externals: vec![],
        failures: vec![("no integer".to_owned(), None)],
        body: vec![Stmt::Straight(code)],
    }
}

#[test]
fn integer_operators_fail_exactly_where_their_rows_do() {
    const NUMBERS: [i64; 19] = [
        i64::MIN,
        i64::MIN + 1,
        i64::MIN + 2,
        -(1 << 32),
        -3_037_000_500,
        -3,
        -2,
        -1,
        0,
        1,
        2,
        3,
        7,
        2_147_483_648,
        3_037_000_500,
        1 << 32,
        i64::MAX / 2,
        i64::MAX - 1,
        i64::MAX,
    ];
    let Some(cc) = compiler() else { return };
    let ops: Vec<Op> = Op::all().filter(|op| op.row().int.is_some()).collect();
    let kernels: Vec<Kernel> = ops.iter().map(|op| int_kernel(*op)).collect();
    let source = emit_many("ints", &kernels.iter().collect::<Vec<_>>(), &Options::default()).unwrap();
    let mut main =
        String::from("#include <inttypes.h>\n#include <stdio.h>\n#include \"ints.h\"\n\nint main(void)\n{\n");
    let list = NUMBERS.map(|x| if x == i64::MIN { "INT64_MIN".to_owned() } else { format!("INT64_C({x})") }).join(", ");
    let _ = writeln!(main, "    static const int64_t x[] = {{{list}}};\n    int64_t y;");
    for (op, name) in ops.iter().zip(&source.functions) {
        let (second, call) = if op.arity() == 1 { (1, "x[i]") } else { (NUMBERS.len(), "x[i], x[j]") };
        let _ = writeln!(
            main,
            "    for (int i = 0; i < {}; i++) for (int j = 0; j < {second}; j++) {{\n        if ({name}({call}, &y) == 0) printf(\"%\" PRId64 \"\\n\", y); else puts(\"fails\");\n    }}",
            NUMBERS.len()
        );
    }
    main.push_str("    return 0;\n}\n");
    let sanitized = ["-std=c99", "-fsanitize=undefined", "-fno-sanitize-recover=all"];
    for flags in [FLAGS.as_slice(), &sanitized] {
        if !c::supports(cc, flags) {
            continue;
        }
        let output = run_main(cc, flags, &source, &main, &[]);
        let mut lines = output.lines();
        for op in &ops {
            for a in NUMBERS {
                for b in if op.arity() == 1 { vec![0] } else { NUMBERS.to_vec() } {
                    let value = op.row().int.unwrap()(&[a, b][..op.arity()]);
                    let expected = value.map_or_else(|| "fails".to_owned(), |v| v.to_string());
                    assert_eq!(lines.next(), Some(expected.as_str()), "{} {a} {b}", op.name());
                }
            }
        }
        assert_eq!(lines.next(), None);
    }
}

/// Compiles `main` with the source, runs it, gives what it prints.
fn run_main(cc: &str, flags: &[&str], source: &Source, main: &str, more: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    c::write(dir.path(), &files(source));
    std::fs::write(dir.path().join("main.c"), main).unwrap();
    let c = format!("{}.c", source.name);
    let mut files = vec!["main.c", c.as_str()];
    for (name, text) in more {
        std::fs::write(dir.path().join(name), text).unwrap();
        files.push(name);
    }
    compile(cc, flags, dir.path(), &files, "main");
    let output = Command::new(dir.path().join("main")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn failures_have_codes_and_messages() {
    let Some(cc) = compiler() else { return };
    let matrix = |n: usize, m: usize| Array { shape: vec![n, m], data: Data::Real(vec![1.5; n * m]) };
    let picks = |p: &[i64]| Array { shape: vec![p.len()], data: Data::Int(p.to_vec()) };
    let good = Case { kernel: picked_sums(), inputs: vec![matrix(2, 3), picks(&[1, 0])] };
    let bad = Case { inputs: vec![matrix(2, 3), picks(&[1, 2])], ..good.clone() };
    let negative = Case { inputs: vec![matrix(2, 3), picks(&[-1, 0])], ..good.clone() };
    let halving = Case { kernel: halving(), inputs: vec![real(8.0)] };
    let endless = Case { inputs: vec![real(1e9)], ..halving.clone() };
    let double = Case { kernel: doubled(), inputs: vec![int(21)] };
    let huge = Case { inputs: vec![int(i64::MAX / 2 + 1)], ..double.clone() };
    let cases = [good, bad, negative, halving, endless, double, huge];
    let found = run_c(cc, &FLAGS, &cases, &Options::default());
    for (case, found) in cases.iter().zip(&found) {
        assert_eq!(found, &interpret(case).unwrap(), "{}", case.kernel);
    }
    assert_eq!(found.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false, true, false, true, false]);

    // What the interpreter tells from shapes, C tells from sizes.
    let empty = Case { kernel: picked_sums(), inputs: vec![matrix(0, 3), picks(&[])] };
    assert!(interpret(&empty).is_err());
    let message = run_c(cc, &FLAGS, &[empty], &Options::default()).remove(0).unwrap_err();
    assert_eq!(message, "`A` needs a row: n - 1 must not be negative");
    let source = emit(&picked_sums(), &Options::default()).unwrap();
    let main = r#"#include <stdio.h>
#include "picked_sums.h"
int main(void)
{
    double y[1];
    printf("%d\n", picked_sums(-1, 3, 0, 0, y, 0) == PICKED_SUMS_E_SIZE);
    printf("%d\n", picked_sums(1, INT64_C(1) << 41, 0, 0, y, 0) == PICKED_SUMS_E_SIZE);
    printf("%d\n", picked_sums(0, 3, 0, 0, y, 0) == PICKED_SUMS_E_REQUIRE_1);
    printf("%d\n", picked_sums(INT64_C(1) << 40, INT64_C(1) << 40, 0, 0, y, 0) == PICKED_SUMS_E_SIZE);
    printf("%d\n", picked_sums_work_size(-1, 3) == SIZE_MAX);
    puts(picked_sums_error(PICKED_SUMS_E_SIZE));
    puts(picked_sums_error(0));
    puts(picked_sums_error(-7));
    return 0;
}
"#;
    insta::assert_snapshot!(run_main(cc, &FLAGS, &source, main, &[]), @r"
    1
    1
    1
    1
    1
    a size is negative or above 1099511627776, or the arguments are too large
    no error
    unknown error code
    ");
}

/// Halves until it is below 1, at most 5 times.
fn halving() -> Kernel {
    let mut b = Builder::new("halving");
    let x = b.param("x", Type::Double);
    let y = b.while_(
        Size::constant(5),
        x,
        |b, x| {
            let one = b.real(1.0);
            b.op(Op::Le, &[one, x])
        },
        |b, x| {
            let half = b.real(0.5);
            b.op(Op::Mul, &[x, half])
        },
    );
    lower_function(&b.finish(y)).unwrap()
}

/// Twice an integer.
fn doubled() -> Kernel {
    let mut b = Builder::new("doubled");
    let k = b.param("k", Type::Int);
    let y = b.op(Op::Add, &[k, k]);
    lower_function(&b.finish(y)).unwrap()
}

#[test]
fn names_that_mean_something_else_in_c_are_changed() {
    let names = [
        "double",
        "sin",
        "x.y",
        "x_y",
        "x'",
        "λ",
        "2x",
        "work",
        "iwork",
        "r_3",
        "i_4",
        "cr_sign",
        "f_part1",
        "F_E_SIZE",
        "f_error",
        "f",
        "INT64_MAX",
        "NAN",
        "_X",
        "__x",
        "",
        "a b",
        "unix",
        "F_WORK_SIZE",
        "int64_t",
    ];
    let mut g = Graph::new(Semantics::Strict);
    let inputs: Vec<GraphPort> = names.iter().map(|name| port(name, &[], &[g.input(*name)])).collect();
    let mut sum = g.constant(1.0);
    for input in &inputs {
        let s = g.raw(Op::Sin, &[input.nodes[0]]);
        sum = g.raw(Op::Add, &[sum, s]);
    }
    let outputs: Vec<GraphPort> = names.iter().map(|name| port(name, &[], &[sum])).collect();
    let kernels: Vec<Kernel> = ["f", "F", "f", "double", "f_work_size", "main", "Sin", "sin"]
        .iter()
        .map(|name| lower_graph(*name, &g, &inputs, &outputs).unwrap())
        .collect();
    let source =
        emit_many("clash", &kernels.iter().collect::<Vec<_>>(), &Options { chunk: 8, ..Options::default() }).unwrap();
    assert_eq!(source.functions, ["f", "F_2", "f_3", "double_", "f_work_size_2", "main_", "Sin", "sin_"]);
    let first = source.header.lines().find(|line| line.starts_with("int f(")).unwrap();
    insta::assert_snapshot!(first.replace(", ", ",\n"));
    let Some(cc) = compiler() else { return };
    let dir = tempfile::tempdir().unwrap();
    c::write(dir.path(), &files(&source));
    compile(cc, &FLAGS, dir.path(), &["-c", "clash.c"], "clash.o");
    header_is_cpp(dir.path(), "clash.h");
}

/// Compiles a header as C++, where there is a compiler for that.
fn header_is_cpp(dir: &Path, header: &str) {
    if Command::new("g++").arg("--version").output().is_err() {
        println!("skipped: there is no C++ compiler");
        return;
    }
    std::fs::write(dir.join("main.cpp"), format!("#include \"{header}\"\n")).unwrap();
    compile("g++", &["-Wall", "-Wextra", "-pedantic", "-Werror"], dir, &["-c", "main.cpp"], "main_cpp.o");
}

#[test]
fn users_functions_are_called_by_their_c_names() {
    let [mut kernel, _] = rotation();
    let twice = |c_name: Option<&str>, arity| External {
        name: "twice".into(),
        arity,
        call: None,
        c_name: c_name.map(Name::new),
    };
    kernel.externals.push(twice(Some("my_twice"), 1));
    let Some(Stmt::Straight(code)) = kernel.body.first_mut() else { panic!() };
    let (at, reg) = code
        .iter()
        .enumerate()
        .find_map(|(at, i)| match i {
            Instr::Op { dst, op: Op::Sin, .. } => Some((at, *dst)),
            _ => None,
        })
        .unwrap();
    let Instr::Op { args, .. } = code[at] else { panic!() };
    code[at] = Instr::External { dst: reg, function: 0, args: [args[0]].into() };
    let source = emit(&kernel, &Options::default()).unwrap();
    if let Some(cc) = compiler() {
        let main = r#"#include <stdio.h>
#include "rotation.h"
int main(void)
{
    double p[2] = {0.0, 1.0}, q[2], half;
    rotation(3.0, p, q, &half);
    printf("%g\n", q[0]);
    return 0;
}
"#;
        let own = ("own.c", "double my_twice(double x);\ndouble my_twice(double x) { return 2.0 * x; }\n");
        assert_eq!(run_main(cc, &FLAGS, &source, main, &[own]), "-6\n");
    }
    let mut errors = String::new();
    for external in [twice(None, 1), twice(Some("a b"), 1), twice(Some("sin"), 1), twice(Some("double"), 1)] {
        kernel.externals[0] = external;
        let _ = writeln!(errors, "{}", emit(&kernel, &Options::default()).unwrap_err());
    }
    kernel.externals = vec![twice(Some("my_twice"), 1), twice(Some("my_twice"), 2)];
    let _ = writeln!(errors, "{}", emit(&kernel, &Options::default()).unwrap_err());
    insta::assert_snapshot!(errors);
}

#[test]
fn malformed_kernels_are_bugs_not_panics() {
    let [good, _] = rotation();
    let broken: [fn(&mut Kernel); 5] = [
        |k| k.regs = Arena::new(),
        |k| k.buffers = Arena::new(),
        |k| k.outputs.clear(),
        |k| {
            k.body = vec![Stmt::Straight(vec![Instr::CheckIndex {
                index: chainrule_base::Id::new(0),
                len: Poly::zero(),
                failure: 3,
            }])];
        },
        |k| k.workspace_reals = Poly::var(chainrule_base::Id::new(77)),
    ];
    for (i, damage) in broken.iter().enumerate() {
        let mut kernel = good.clone();
        damage(&mut kernel);
        let errors = emit(&kernel, &Options::default()).unwrap_err();
        assert!(errors.to_string().contains("malformed"), "{i}: {errors}");
    }
}

#[test]
fn a_million_operations_are_cut_into_functions_of_two_thousand() {
    let (graph, top) = generate::chain(Semantics::Strict, 1_000_000);
    let (layered, roots) = generate::layered(Semantics::Strict, 1_000_000, 5, 10, 1);
    for (graph, roots) in [(graph, vec![top]), (layered, roots)] {
        let kernel = lower_all(&graph, &roots);
        let source = emit(&kernel, &Options::default()).unwrap();
        let mut longest = 0;
        let mut length = 0;
        for line in source.source.lines() {
            length = if line == "{" { 0 } else { length + 1 };
            longest = longest.max(length);
        }
        // Operations, and reads and writes of what crosses cuts.
        assert!(longest < 3 * Options::CHUNK, "{longest}");
    }
}

#[test]
fn long_code_computes_the_same_in_pieces() {
    let Some(cc) = compiler() else { return };
    let (graph, roots) = generate::layered(Semantics::Strict, 10_000, 5, 10, 1);
    let case = Case {
        kernel: chainrule_backend_tests::exact(&lower_all(&graph, &roots)),
        inputs: vec![reals(&[0.1, -0.2, 0.3, 0.4, 1.0])],
    };
    let found = run_c(cc, &FLAGS, std::slice::from_ref(&case), &Options::default());
    assert_eq!(found, [interpret(&case).unwrap()]);
}

/// How long a C compiler takes: run it by hand, `cargo test --release -p chainrule-c -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute"]
fn compile_time_grows_linearly() {
    let Some(cc) = compiler() else { return };
    for n in [12_500, 25_000, 50_000, 100_000] {
        let (graph, roots) = generate::layered(Semantics::Strict, n, 5, 10, 1);
        let source = emit(&lower_all(&graph, &roots), &Options::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        c::write(dir.path(), &files(&source));
        let start = std::time::Instant::now();
        compile(cc, &FLAGS, dir.path(), &["-c", "f.c"], "f.o");
        println!("{n} operations, {} bytes of C: {:.1?}", source.source.len(), start.elapsed());
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    const DEPTH: usize = 50_000;
    let (mut regs, mut buffers) = (Arena::new(), Arena::new());
    let (x, holds) = (regs.push(Class::Real), regs.push(Class::Int));
    let one = Poly::constant(1);
    let a = buffers.push(Buffer { class: Class::Real, len: one.clone(), place: Place::Input(0) });
    let b = buffers.push(Buffer { class: Class::Real, len: one.clone(), place: Place::Output(0) });
    let port = |name: &str, buffer| Port { name: name.into(), shape: vec![], buffer };
    let mut body = vec![Stmt::Straight(vec![Instr::Store { buffer: b, at: Poly::zero(), value: x }])];
    for k in 0..DEPTH {
        body = vec![if k % 2 == 0 {
            Stmt::For { index: regs.push(Class::Int), count: one.clone(), carried: vec![], body }
        } else {
            Stmt::If { condition: holds, then: body, otherwise: vec![], choices: vec![] }
        }];
    }
    body.insert(
        0,
        Stmt::Straight(vec![
            Instr::Load { dst: x, buffer: a, at: Poly::zero() },
            Instr::Int { dst: holds, value: one },
        ]),
    );
    let kernel = Kernel {
        name: "deep".into(),
        regs,
        sizes: vec![],
        inputs: vec![port("x", a)],
        outputs: vec![port("y", b)],
        buffers,
        requires: vec![],
        workspace_reals: Poly::zero(),
        workspace_ints: Poly::zero(),
        externals: vec![],
        failures: vec![],
        body,
    };
    let source = emit(&kernel, &Options::default());
    // Dropping the nest would recurse.
    std::mem::forget(kernel);
    let source = source.unwrap();
    assert!(source.source.matches("for (").count() >= DEPTH / 2);
    assert!(source.source.len() < 400 * DEPTH, "{}", source.source.len());
}
