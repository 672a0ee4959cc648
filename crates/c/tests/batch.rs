//! Functions over many points against the function for one point, bit for bit: random kernels, both layouts,
//! remainders, threads, failures.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::c::{self, FLAGS, MEMORY, compiler};
use chainrule_backend_tests::case::named;
use chainrule_backend_tests::filetests;
use chainrule_backend_tests::generate::{array_functions, functions, graphs};
use chainrule_backend_tests::{Array, Case, Data, exact, fused, interpret, real, reals};
use chainrule_c::{Batch, Options, Precision, emit, emit_many};
use chainrule_cases::covers;
use chainrule_graph::generate::Numbers;
use chainrule_kernel::{Class, Kernel, SizeSource};
use std::fmt::Write;
use std::process::Command;
use support::files;

/// Memory layout of the points of a batch.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Order {
    Structures,
    Arrays,
}

/// Returns whether an input is an integer that sizes depend on.
fn is_size(kernel: &Kernel, input: usize) -> bool {
    kernel.sizes.iter().any(|size| size.source == SizeSource::Value { input })
}

/// Emits, compiles and runs all cases over `n_points` points each. Returns the program's report of differences from the
/// function for one point, and the number of points compared.
fn run(cc: &str, flags: &[&str], cases: &[Case], options: &Options, n_points: usize, order: Order) -> String {
    let source = emit_many("kernels", &named(cases).iter().collect::<Vec<_>>(), options).unwrap();
    let real = if options.precision == Precision::Single { "float" } else { "double" };
    let threads = options.batch.as_ref().is_some_and(|batch| batch.threads);
    let mut main = format!("{HEAD}{MEMORY}{}", SAME.replace("NUMBER", real));
    for (i, (case, name)) in cases.iter().zip(&source.functions).enumerate() {
        main_of(&mut main, i, case, name, real, n_points, order, threads, &source.header);
    }
    main.push_str("int main(void)\n{\n");
    for i in 0..cases.len() {
        let _ = writeln!(main, "    run{i}();");
    }
    main.push_str("    printf(\"%ld points agree\\n\", compared);\n    return 0;\n}\n");
    let dir = tempfile::tempdir().unwrap();
    c::write(dir.path(), &files(&source));
    std::fs::write(dir.path().join("main.c"), main).unwrap();
    c::compile(cc, flags, dir.path(), &["-c", "kernels.c"], "kernels.o");
    let quiet: Vec<&str> = flags.iter().copied().filter(|f| !f.starts_with("-W") && *f != "-pedantic").collect();
    c::compile(cc, &quiet, dir.path(), &["main.c", "kernels.o"], "main");
    let output = Command::new(dir.path().join("main")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[allow(clippy::too_many_arguments)] // one program text, made of all of them
fn main_of(
    main: &mut String,
    i: usize,
    case: &Case,
    name: &str,
    real: &str,
    n_points: usize,
    order: Order,
    threads: bool,
    header: &str,
) {
    let kernel = &case.kernel;
    let points: Vec<Case> = (0..n_points).map(|p| case.moved(p)).collect();
    let strides = |len: usize| if order == Order::Arrays { (1, n_points) } else { (len, 1) };
    let sizes: Vec<String> = case.distinct_sizes().iter().map(|(_, value)| value.to_string()).collect();
    let extents = kernel.sizes.iter().zip(case.sizes());
    let extents = extents.filter(|(s, _)| matches!(s.source, SizeSource::Extent { .. })).map(|(_, v)| v.to_string());
    let (mut one, mut many): (Vec<String>, Vec<String>) = (extents.collect(), vec![n_points.to_string()]);
    many.extend(sizes.clone());
    let _ = writeln!(main, "static void run{i}(void)\n{{");
    let mut gathers = String::new();
    for (j, port) in kernel.inputs.iter().enumerate() {
        let len = case.inputs[j].data.len();
        let (point, element) = strides(len);
        let is_real = case.class(port) == Class::Real;
        let (ty, read) = if is_real { (real, "number") } else { ("int64_t", "(int64_t)") };
        let words: Vec<String> =
            points.iter().flat_map(|p| p.inputs[j].data.bits()).map(|bits| format!("UINT64_C(0x{bits:x})")).collect();
        let n = words.len();
        let words = if n == 0 { "0".to_owned() } else { words.join(", ") };
        let _ = writeln!(
            main,
            "    static const uint64_t bits{j}[{0}] = {{{words}}};\n    static {ty} in{j}[{0}], one{j}[{1}];\n    \
             for (int p = 0; p < {n_points}; p++) for (int k = 0; k < {len}; k++) in{j}[p*{point} + k*{element}] = ({ty}){read}(bits{j}[p*{len} + k]);",
            n.max(1),
            len.max(1)
        );
        let _ =
            writeln!(gathers, "        for (int k = 0; k < {len}; k++) one{j}[k] = in{j}[p*{point} + k*{element}];");
        one.push(if port.shape.is_empty() { format!("one{j}[0]") } else { format!("one{j}") });
        if !is_size(kernel, j) {
            many.push(format!("in{j}, {point}"));
            if !port.shape.is_empty() {
                many.push(element.to_string());
            }
        }
    }
    let mut compares = String::new();
    for (j, port) in kernel.outputs.iter().enumerate() {
        let len = case.output_len(j);
        let (point, element) = strides(len);
        let (ty, same) = if case.class(port) == Class::Real { (real, "same") } else { ("int64_t", "same_ints") };
        let n = (len * n_points).max(1);
        let _ = writeln!(main, "    static {ty} out{j}[{n}], res{j}[{}];", len.max(1));
        let _ = writeln!(
            compares,
            "            for (int k = 0; k < {len}; k++) if (!{same}(out{j}[p*{point} + k*{element}], res{j}[k])) die({i}, \"differs\");"
        );
        one.push(format!("res{j}"));
        many.push(format!("out{j}, {point}"));
        if !port.shape.is_empty() {
            many.push(element.to_string());
        }
    }
    let list = sizes.join(", ");
    for (ty, var, what) in [(real, "work", "work_size"), ("int64_t", "iwork", "iwork_size")] {
        let times = if threads { 3 } else { 1 };
        let _ = writeln!(main, "    {ty} *{var} = fresh({times} * {name}_batch_{what}({list}), sizeof({ty}));");
        many.push(var.to_owned());
        if header.contains(&format!("size_t {name}_{what}(")) {
            let _ = writeln!(main, "    {ty} *own_{var} = fresh({name}_{what}({list}), sizeof({ty}));");
            one.push(format!("own_{var}"));
        }
    }
    if threads {
        many.push("3".to_owned());
    }
    let _ = writeln!(
        main,
        "    int64_t failed = -1;\n    int code = {name}_batch({}, &failed);\n    for (int p = 0; p < {n_points}; p++) {{\n{gathers}        \
         int expected = {name}({});\n        if (code == 0 && expected != 0) die({i}, \"should have failed\");\n        \
         if (code != 0 && p == failed && expected != code) die({i}, \"failed in another way\");\n        \
         if (code != 0 && p < failed && expected != 0) die({i}, \"failed before\");\n        if (code == 0) {{\n{compares}            compared++;\n        }}\n    }}\n    release({i});\n}}\n",
        many.join(", "),
        one.join(", ")
    );
}

const HEAD: &str = r#"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"

static long compared;
"#;

const SAME: &str = r#"
static int same(NUMBER a, NUMBER b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

static int same_ints(int64_t a, int64_t b)
{
    return a == b;
}

"#;

fn options(lanes: usize, threads: bool) -> Options {
    Options { batch: Some(Batch { lanes, threads }), ..Options::default() }
}

/// Returns the number of kernels that run in lanes.
fn n_in_lanes(cases: &[Case], options: &Options) -> usize {
    cases.iter().filter(|case| emit(&case.kernel, options).unwrap().source.contains("_batch_block(")).count()
}

/// Returns the available C compilers.
fn compilers() -> Vec<&'static str> {
    let found: Vec<&str> =
        ["gcc", "clang"].into_iter().filter(|cc| Command::new(cc).arg("--version").output().is_ok()).collect();
    println!("with {found:?}");
    found
}

/// Includes functions of `math.h`, which are the same functions lane by lane.
#[test]
fn many_points_have_the_bits_of_one() {
    let mut cases = graphs(30, 1, Numbers::Special, 40, Kernel::clone);
    cases.extend(functions(60, 3, false, Kernel::clone));
    cases.extend(array_functions(25, 9, Kernel::clone));
    cases.extend(graphs(10, 18, Numbers::Tame, 40, fused));
    let in_lanes = n_in_lanes(&cases, &options(4, false));
    println!("{} kernels, {in_lanes} in lanes", cases.len());
    covers!(in_lanes > 40 && in_lanes < cases.len(), "{in_lanes} of {}", cases.len());
    for cc in compilers() {
        for (lanes, order) in [(4, Order::Structures), (8, Order::Arrays)] {
            println!("{}", run(cc, &FLAGS, &cases, &options(lanes, false), 2 * lanes + 3, order));
        }
    }
}

#[test]
fn functions_that_come_along_have_the_bits_of_one_point() {
    let mut cases = graphs(25, 21, Numbers::Special, 40, Kernel::clone);
    cases.extend(functions(20, 22, false, Kernel::clone));
    for cc in compilers() {
        let options = Options { inline_math: true, ..options(8, false) };
        run(cc, &FLAGS, &cases, &options, 19, Order::Structures);
    }
}

#[test]
fn cuts_change_nothing() {
    let mut cases = graphs(15, 5, Numbers::Tame, 60, Kernel::clone);
    cases.extend(functions(30, 4, false, Kernel::clone));
    for cc in compilers() {
        let options = Options { chunk: 7, ..options(2, false) };
        run(cc, &FLAGS, &cases, &options, 5, Order::Structures);
    }
}

#[test]
fn floats_have_the_bits_of_one_float() {
    let mut cases = graphs(20, 11, Numbers::Special, 40, Kernel::clone);
    cases.extend(functions(30, 12, false, Kernel::clone));
    for cc in compilers() {
        let options = Options { precision: Precision::Single, ..options(8, false) };
        run(cc, &FLAGS, &cases, &options, 19, Order::Arrays);
    }
}

#[test]
fn threads_change_nothing() {
    let mut flags = FLAGS.to_vec();
    flags.push("-fopenmp");
    let mut cases = graphs(20, 7, Numbers::Tame, 60, exact);
    cases.extend(functions(40, 8, false, exact));
    // A compiler may accept the flag and lack the library.
    let probe = [flags.as_slice(), &["-include", "omp.h"]].concat();
    for cc in compilers().into_iter().filter(|cc| c::supports(cc, &probe)) {
        run(cc, &flags, &cases, &options(4, true), 43, Order::Structures);
    }
    // Without OpenMP the same text has one thread.
    for cc in compilers() {
        run(cc, &FLAGS, &cases, &options(4, true), 9, Order::Structures);
    }
}

#[test]
fn nothing_undefined_happens() {
    let Some(cc) = compiler() else { return };
    let flags = ["-std=c99", "-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"];
    if !c::supports(cc, &flags) {
        println!("skipped: the C compiler has no sanitizers");
        return;
    }
    let mut cases = functions(50, 6, false, exact);
    cases.extend(array_functions(40, 16, exact));
    run(cc, &flags, &cases, &options(4, false), 7, Order::Arrays);
}

#[test]
fn lanes_that_no_vector_has_are_refused() {
    let case = &graphs(1, 1, Numbers::Tame, 10, exact)[0];
    assert!(interpret(case).is_ok());
    insta::assert_snapshot!(emit(&case.kernel, &options(3, false)).unwrap_err(), @"error: 3 points cannot run together: vectors of C have 2, 4, 8 or 16 lanes (help: 4 fits AVX2, 8 fits AVX-512)");
}

#[test]
fn names_that_the_code_uses_itself_can_be_names() {
    let kernel = filetests::kernel("awkward-names");
    let matrix = Array { shape: vec![2, 3], data: Data::Real(vec![1.5; 6]) };
    let awkward = [Case { kernel, inputs: vec![matrix, reals(&[1.0, 2.0, 3.0]), real(0.5)] }];
    for cc in compilers() {
        for threads in [false, true] {
            let text = run(cc, &FLAGS, &awkward, &options(4, threads), 7, Order::Structures);
            assert_eq!(text, "7 points agree\n");
        }
    }
}
