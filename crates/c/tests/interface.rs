//! The public interface: files, names, codes, sizes; and operators one by one.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::c::{self, FLAGS, compile, compiler};
use chainrule_backend_tests::generate::lower;
use chainrule_backend_tests::kernels::{
    INTEGERS, OperatorCase, integer_operator, integer_operators, integer_points, named, operators,
};
use chainrule_backend_tests::{Array, Case, Data, filetests, interpret, ints, is_inexact, reals};
use chainrule_base::{Arena, Name, Poly};
use chainrule_c::{Options, Source, emit, emit_many};
use chainrule_graph::{Semantics, generate};
use chainrule_kernel::{Buffer, Class, External, Instr, Kernel, Order, Place, Port, Registers, Stmt};
use chainrule_ops::Op;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use support::{files, run_c};

#[test]
fn the_same_kernel_gives_the_same_bytes() {
    let (graph, roots) = generate::layered(Semantics::Strict, 3000, 5, 10, 3);
    let kernel = lower(&graph, &roots);
    let options = Options { chunk: 100, ..Options::default() };
    assert_eq!(emit(&kernel, &options), emit(&lower(&graph, &roots), &options));
}

/// Returns the number of representable numbers between two, neither of which is NaN.
fn ulps(a: f64, b: f64) -> u64 {
    let place = |x: f64| {
        let bits = x.to_bits() as i64;
        i128::from(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits })
    };
    u64::try_from((place(a) - place(b)).unsigned_abs()).unwrap_or(u64::MAX)
}

/// Each operator separately, at points in its domain and at special numbers. Arithmetic is equal bit for bit. Functions
/// of `math.h` are within `ULPS` of the interpreter's; `lgamma`, which loses digits at its roots, and polygamma, a sum
/// of some 30 such functions, within `CLOSE` of the larger of 1 and the value.
#[test]
fn operators_have_the_values_of_their_rows() {
    const ULPS: u64 = 4;
    const CLOSE: f64 = 1e-12;
    let Some(cc) = compiler() else { return };
    let cases = operators(2000);
    let only: Vec<Case> = cases.iter().map(|c| c.case.clone()).collect();
    let found = run_c(cc, &FLAGS, &only, &Options::default());
    for (OperatorCase { op, points, case }, found) in cases.iter().zip(found) {
        let row = op.row();
        let (Ok(expected), Ok(found)) = (interpret(case).unwrap(), found) else { panic!("{}", row.name) };
        let ([Data::Real(expected)], [Data::Real(found)]) = (expected.as_slice(), found.as_slice()) else { panic!() };
        assert_eq!(found.len(), points.len());
        for ((point, a), b) in points.iter().zip(expected).zip(found) {
            let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            let gamma = matches!(row.op, Op::Lgamma | Op::Digamma | Op::Polygamma);
            // Outside their domains, these use infinity or NaN differently at poles.
            if gamma && !(row.domain.contains)(point) {
                continue;
            }
            let close = if gamma { (a - b).abs() <= CLOSE * a.abs().max(1.0) } else { ulps(*a, *b) <= ULPS };
            assert!(same || (is_inexact(row.op) && close), "{}{point:?}: {a:e} and {b:e}", row.name);
        }
    }
}

#[test]
fn integer_operators_fail_exactly_where_their_rows_do() {
    let Some(cc) = compiler() else { return };
    let ops = integer_operators();
    let kernels: Vec<Kernel> = ops.iter().map(|op| integer_operator(*op)).collect();
    let source = emit_many("ints", &kernels.iter().collect::<Vec<_>>(), &Options::default()).unwrap();
    let mut main =
        String::from("#include <inttypes.h>\n#include <stdio.h>\n#include \"ints.h\"\n\nint main(void)\n{\n");
    let list =
        INTEGERS.map(|x| if x == i64::MIN { "INT64_MIN".to_owned() } else { format!("INT64_C({x})") }).join(", ");
    let _ = writeln!(main, "    static const int64_t x[] = {{{list}}};\n    int64_t y;");
    for (op, name) in ops.iter().zip(&source.functions) {
        let (second, call) = if op.arity() == 1 { (1, "x[i]") } else { (INTEGERS.len(), "x[i], x[j]") };
        let _ = writeln!(
            main,
            "    for (int i = 0; i < {}; i++) for (int j = 0; j < {second}; j++) {{\n        if ({name}({call}, &y) == 0) printf(\"%\" PRId64 \"\\n\", y); else puts(\"fails\");\n    }}",
            INTEGERS.len()
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
            for point in integer_points(*op) {
                let value = op.row().int.unwrap()(&point);
                let expected = value.map_or_else(|| "fails".to_owned(), |v| v.to_string());
                assert_eq!(lines.next(), Some(expected.as_str()), "{} {point:?}", op.name());
            }
        }
        assert_eq!(lines.next(), None);
    }
}

/// Compiles `main` with the source, runs it, returns its output.
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
fn sizes_that_do_not_fit_have_codes_and_messages() {
    let Some(cc) = compiler() else { return };
    let kernel = filetests::kernel("picked-sums");
    // The interpreter gets sizes from shapes, C from parameters.
    let matrix = Array { shape: vec![0, 3], data: Data::Real(vec![]) };
    let empty = Case { kernel: kernel.clone(), inputs: vec![matrix, ints(&[])] };
    assert!(interpret(&empty).is_err());
    let message = run_c(cc, &FLAGS, &[empty], &Options::default()).remove(0).unwrap_err();
    assert_eq!(message, "`A` needs a row: n - 1 must not be negative");
    let source = emit(&kernel, &Options::default()).unwrap();
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

#[test]
fn no_function_takes_the_place_of_one_of_the_c_library() {
    let mut kernel = filetests::kernel("rotation");
    for (name, emitted) in [("system", "system_2"), ("index", "index_2"), ("systems", "systems")] {
        kernel.name = name.into();
        let source = emit(&kernel, &Options::default()).unwrap();
        assert_eq!(source.functions, [emitted]);
        assert!(source.header.contains(&format!("{emitted}(")), "{}", source.header);
    }
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
    let kernels = named(&["f", "F", "f", "double", "f_work_size", "main", "Sin", "sin"], &names);
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

/// Compiles a header as C++, if there is a compiler for it.
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
    let mut kernel = filetests::kernel("rotation");
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
    let good = filetests::kernel("rotation");
    let broken: [fn(&mut Kernel); 5] = [
        |k| k.regs = Registers::new(),
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
        let kernel = lower(&graph, &roots);
        let source = emit(&kernel, &Options::default()).unwrap();
        let mut longest = 0;
        let mut length = 0;
        for line in source.source.lines() {
            length = if line == "{" { 0 } else { length + 1 };
            longest = longest.max(length);
        }
        // Operations, and loads and stores of values that live across splits.
        assert!(longest < 3 * Options::CHUNK, "{longest}");
    }
}

#[test]
fn long_code_computes_the_same_in_pieces() {
    let Some(cc) = compiler() else { return };
    let (graph, roots) = generate::layered(Semantics::Strict, 10_000, 5, 10, 1);
    let case = Case {
        kernel: chainrule_backend_tests::exact(&lower(&graph, &roots)),
        inputs: vec![reals(&[0.1, -0.2, 0.3, 0.4, 1.0])],
    };
    let found = run_c(cc, &FLAGS, std::slice::from_ref(&case), &Options::default());
    assert_eq!(found, [interpret(&case).unwrap()]);
}

/// Measures compile time: run it manually, `cargo test --release -p chainrule-c -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute"]
fn compile_time_grows_linearly() {
    let Some(cc) = compiler() else { return };
    for n in [12_500, 25_000, 50_000, 100_000] {
        let (graph, roots) = generate::layered(Semantics::Strict, n, 5, 10, 1);
        let source = emit(&lower(&graph, &roots), &Options::default()).unwrap();
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
            Stmt::For { index: regs.push(Class::Int), count: one.clone(), carried: vec![], order: Order::InOrder, body }
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
        regs: regs.into(),
        sizes: vec![],
        inputs: vec![port("x", a)],
        outputs: vec![port("y", b)],
        buffers,
        requires: vec![],
        workspace_reals: Poly::zero(),
        workspace_ints: Poly::zero(),
        externals: vec![],
        failures: vec![],
        zeros: vec![],
        body,
    };
    let source = emit(&kernel, &Options::default());
    // Dropping the nest would be recursive.
    std::mem::forget(kernel);
    let source = source.unwrap();
    assert!(source.source.matches("for (").count() >= DEPTH / 2);
    assert!(source.source.len() < 400 * DEPTH, "{}", source.source.len());
}
