//! The public interface: modules, names, failures, lengths; operators one by one; long code.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::generate::lower;
use chainrule_backend_tests::kernels::{
    INTEGERS, integer_operator, integer_operators, integer_points, named, operators,
};
use chainrule_backend_tests::rust::{self, has_clippy};
use chainrule_backend_tests::{Case, Data, filetests, interpret, is_inexact, reals};
use chainrule_base::{Arena, Name, Poly};
use chainrule_graph::{Semantics, generate};
use chainrule_kernel::{External, Instr, Kernel, Registers, Stmt};
use chainrule_ops::Op;
use chainrule_rust::{Fma, Library, Module, Options, Precision, emit, emit_many};
use std::fmt::Write;
use support::{file, module, run_rust};

#[test]
fn the_same_kernel_gives_the_same_bytes() {
    let (graph, roots) = generate::layered(Semantics::Strict, 3000, 5, 10, 3);
    let kernel = lower(&graph, &roots);
    let options = Options { chunk: 100, ..Options::default() };
    assert_eq!(emit(&kernel, &options), emit(&lower(&graph, &roots), &options));
}

/// Each operator separately, at points in its domain and at special numbers, bit for bit.
#[test]
fn operators_have_the_values_of_their_rows() {
    if !has_clippy() {
        return;
    }
    let cases: Vec<Case> = operators(400).into_iter().map(|operator| operator.case).collect();
    let found = run_rust(&cases, &Options { library: Library::Own(Fma::Standard), ..Options::default() });
    for (case, found) in cases.iter().zip(&found) {
        assert_eq!(found, &interpret(case).unwrap(), "{}", case.kernel.name);
    }
}

#[test]
fn integer_operators_fail_exactly_where_their_rows_do() {
    if !has_clippy() {
        return;
    }
    let ops = integer_operators();
    let kernels: Vec<Kernel> = ops.iter().map(|op| integer_operator(*op)).collect();
    let module = emit_many("ints", &kernels.iter().collect::<Vec<_>>(), &Options::default()).unwrap();
    let list = INTEGERS.map(|x| x.to_string()).join(", ");
    let mut main = format!("mod kernels;\n\nfn main() {{\n    let x: &[i64] = &[{list}];\n    let mut y = 0;\n");
    for (op, name) in ops.iter().zip(&module.functions) {
        let (second, call) = if op.arity() == 1 { (1, "x[i]") } else { (INTEGERS.len(), "x[i], x[j]") };
        let _ = writeln!(
            main,
            "    for i in 0..{} {{\n        for j in 0..{second} {{\n            let _ = j;\n            match kernels::{name}({call}, &mut y) {{\n                Ok(()) => println!(\"{{y}}\"),\n                Err(failure) => println!(\"{{failure}}\"),\n            }}\n        }}\n    }}",
            INTEGERS.len()
        );
    }
    main.push_str("}\n");
    let output = run_main(&module, &main);
    let mut lines = output.lines();
    for op in &ops {
        for point in integer_points(*op) {
            let value = op.row().int.unwrap()(&point);
            let expected = value.map_or_else(|| "no integer".to_owned(), |v| v.to_string());
            assert_eq!(lines.next(), Some(expected.as_str()), "{} {point:?}", op.name());
        }
    }
    assert_eq!(lines.next(), None);
}

/// Compiles `main` with the module, runs it, returns its output.
fn run_main(module: &Module, main: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    rust::write(dir.path(), &file(module, &Options::default()), main);
    let output = rust::run_cargo(dir.path(), &["run", "--offline", "--quiet"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn failures_say_why() {
    if !has_clippy() {
        return;
    }
    let module = emit(&filetests::kernel("picked-sums"), &Options::default()).unwrap();
    let main = r#"
mod kernels;
use kernels::picked_sums;

fn main() {
    let (a, picks, mut y, mut work) = ([1.0; 6], [0, 1], [0.0; 2], [0.0; 2]);
    let mut tell = |n, m, a: &[f64], picks: &[i64], y_len: usize, work_len: usize| {
        match picked_sums(n, m, a, picks, &mut y[..y_len], &mut work[..work_len]) {
            Ok(()) => println!("ok"),
            Err(failure) => println!("{failure:?}: {failure}"),
        }
    };
    tell(2, 3, &a, &picks, 2, 2);
    tell(2, 3, &a[..5], &picks, 2, 2);
    tell(2, 3, &a, &picks[..1], 2, 2);
    tell(2, 3, &a, &picks, 1, 2);
    tell(2, 3, &a, &picks, 2, 1);
    tell(0, 3, &[], &[], 0, 0);
    tell(1, 1 << 41, &a, &picks, 2, 2);
    tell(usize::MAX, 1, &a, &picks, 2, 2);
    tell(1 << 40, 1 << 40, &a, &picks, 2, 2);
    println!("{:?} {:?}", kernels::picked_sums_work_len(2, 3), kernels::picked_sums_work_len(1, 1 << 41));
}
"#;
    insta::assert_snapshot!(run_main(&module, main));
}

#[test]
fn names_that_mean_something_else_in_rust_are_changed() {
    let names = [
        "fn",
        "self",
        "x.y",
        "x_y",
        "x'",
        "λ",
        "2x",
        "work",
        "iwork",
        "r_3",
        "i_4",
        "cr_len",
        "f_part1",
        "None",
        "f_work_len",
        "f",
        "Ok",
        "_",
        "__x",
        "",
        "a b",
        "f64",
        "Failure",
        "core",
        "libm",
        "usize",
        "n",
        "match",
    ];
    let kernels = named(&["f", "F", "f", "fn", "f_work_len", "main", "Failure", "Ok"], &names);
    let options = Options { chunk: 8, library: Library::Libm, ..Options::default() };
    let module = emit_many("clash", &kernels.iter().collect::<Vec<_>>(), &options).unwrap();
    assert_eq!(module.functions, ["f", "F", "f_2", "fn_", "f_work_len_2", "main", "Failure", "Ok_"]);
    let first = module.text.lines().find(|line| line.starts_with("pub fn f(")).unwrap();
    insta::assert_snapshot!(first.replace(", ", ",\n"));
    if !has_clippy() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    rust::write(dir.path(), &file(&module, &options), "mod kernels;\n\nfn main() {}\n");
    rust::clippy(dir.path());
}

#[test]
fn users_functions_are_those_of_the_module_around() {
    let mut kernel = filetests::kernel("rotation");
    let twice = |name: &str, c_name: Option<&str>, arity| External {
        name: name.into(),
        arity,
        call: None,
        c_name: c_name.map(Name::new),
    };
    kernel.externals.push(twice("twice", Some("my_twice"), 1));
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
    let module = emit(&kernel, &Options::default()).unwrap();
    assert!(module.text.contains("//! - `fn my_twice(f64) -> f64`"), "{}", module.text);
    let main = r#"
mod kernels;

fn my_twice(x: f64) -> f64 {
    2.0 * x
}

fn main() {
    let (mut q, mut half) = ([0.0; 2], 0.0);
    kernels::rotation(3.0, &[0.0, 1.0], &mut q, &mut half).unwrap();
    println!("{}", q[0]);
}
"#;
    assert_eq!(run_main(&module, main), "-6\n");
    let mut errors = String::new();
    for external in [twice("a b", None, 1), twice("twice", Some("fn"), 1), twice("cr_len", None, 1)] {
        kernel.externals[0] = external;
        let _ = writeln!(errors, "{}", emit(&kernel, &Options::default()).unwrap_err());
    }
    kernel.externals = vec![twice("twice", None, 1), twice("twice", None, 2)];
    let _ = writeln!(errors, "{}", emit(&kernel, &Options::default()).unwrap_err());
    insta::assert_snapshot!(errors);
}

#[test]
fn malformed_kernels_are_bugs_not_panics() {
    let good = filetests::kernel("rotation");
    let broken: [fn(&mut Kernel); 4] = [
        |k| k.regs = Registers::new(),
        |k| k.buffers = Arena::new(),
        |k| k.outputs.clear(),
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
    let (graph, roots) = generate::layered(Semantics::Strict, 1_000_000, 5, 10, 1);
    let text = emit(&lower(&graph, &roots), &Options::default()).unwrap().text;
    let mut longest = 0;
    let mut length = 0;
    for line in text.lines() {
        length = if line.starts_with("fn ") || line.starts_with("pub fn ") { 0 } else { length + 1 };
        longest = longest.max(length);
    }
    // Operations, and loads and stores of values that live across splits.
    assert!(longest < 3 * Options::CHUNK, "{longest}");
}

/// Clippy, the compiler and the program together, with all checks of a debug build.
#[test]
fn long_code_computes_the_same_in_pieces() {
    if !has_clippy() {
        return;
    }
    let (graph, roots) = generate::layered(Semantics::Strict, 10_000, 5, 10, 1);
    let kernel = chainrule_backend_tests::exact(&lower(&graph, &roots));
    let case = Case { kernel, inputs: vec![reals(&[0.1, -0.2, 0.3, 0.4, 1.0])] };
    let found = run_rust(std::slice::from_ref(&case), &Options::default());
    assert_eq!(found, [interpret(&case).unwrap()]);
}

/// Measures compile time: run it manually, `cargo test --release -p chainrule-rust -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute"]
fn compile_time_grows_linearly() {
    for n in [12_500, 25_000, 50_000, 100_000] {
        let (graph, roots) = generate::layered(Semantics::Strict, n, 5, 10, 1);
        let module = emit(&lower(&graph, &roots), &Options::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let main = format!(
            "mod kernels;\n\nfn main() {{\n    let mut y = vec![0.0; {}];\n    let mut work = vec![0.0; kernels::random_work_len()];\n    \
             kernels::random(&[0.1, -0.2, 0.3, 0.4, 1.0], &mut y, &mut work).unwrap();\n    println!(\"{{}}\", y[0]);\n}}\n",
            roots.len()
        );
        rust::write(dir.path(), &file(&module, &Options::default()), &main);
        for args in [["build", "--offline", "--quiet"].as_slice(), &["build", "--offline", "--quiet", "--release"]] {
            let start = std::time::Instant::now();
            assert!(rust::run_cargo(dir.path(), args).status.success());
            println!("{n} operations, {} bytes of Rust, {args:?}: {:.1?}", module.text.len(), start.elapsed());
        }
    }
}

#[test]
fn floats_are_floats_throughout() {
    let options = Options { precision: Precision::Single, ..Options::default() };
    for library in [Library::Std, Library::Libm] {
        let options = Options { library, ..options.clone() };
        for kernel in ["rotation", "picked-sums", "halving"].into_iter().flat_map(filetests::kernels) {
            let text = emit(&kernel, &options).unwrap().text;
            assert!(text.contains("f32") && !text.contains("f64"), "{text}");
        }
    }
}

#[test]
fn our_own_functions_are_not_for_floats() {
    for fma in [Fma::Standard, Fma::Exact] {
        let own = Options { precision: Precision::Single, library: Library::Own(fma), ..Options::default() };
        let error = emit(&filetests::kernel("halving"), &own).unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"error: functions of floats cannot come along: Chainrule's own elementary functions are for doubles (help: take those of the standard library or of the crate libm, or take doubles)");
        }
    }
}

/// Each operator separately, in a library without `std`: our own functions return the interpreter's values, those of
/// `libm` nearby values, and equal ones if nothing is rounded.
#[test]
fn modules_for_no_std_are_compiled_without_it() {
    if !has_clippy() {
        return;
    }
    let operators = operators(60);
    let cases: Vec<Case> = operators.iter().map(|operator| operator.case.clone()).collect();
    for library in [Library::Libm, Library::Own(Fma::Exact)] {
        let options = Options { library, ..Options::default() };
        let module = module(&cases, &options);
        assert!(!module.needs_std && module.needs_libm, "{library:?}");
        for function in ["lgamma", "acos", "asin", "erfc"] {
            assert!(module.text.contains(&format!("libm::{function}(")), "{function} {library:?}");
        }
        let found = run_rust(&cases, &options);
        for (operator, found) in operators.iter().zip(&found) {
            let (case, expected) = (&operator.case, interpret(&operator.case).unwrap());
            if library != Library::Libm || !is_inexact(operator.op) {
                assert_eq!(found, &expected, "{}", case.kernel.name);
                continue;
            }
            let (Ok([Data::Real(found)]), Ok([Data::Real(expected)])) = (found.as_deref(), expected.as_deref()) else {
                panic!("{}: {found:?}", case.kernel.name)
            };
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                let same = found == expected || (found.is_nan() && expected.is_nan());
                assert!(
                    same || (found - expected).abs() <= 1e-14 * expected.abs(),
                    "{}: {found} {expected}",
                    case.kernel.name
                );
            }
        }
    }
    // A library that needs `std` does not compile without it.
    let module = module(&cases, &Options::default());
    assert!(module.needs_std);
    let dir = tempfile::tempdir().unwrap();
    rust::write(dir.path(), &file(&module, &Options::default()), "fn main() {}\n");
    rust::write_library(dir.path(), false);
    let output = rust::run_cargo(dir.path(), &["check", "--lib", "--offline", "--quiet"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("no method named `sinh` found for type `f64`"), "{told}");
}
