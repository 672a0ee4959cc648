//! Emitted elementary functions, bit for bit those of the interpreter, in scalars and in vectors.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::c::{FLAGS, compiler, supports};
use chainrule_backend_tests::case::assert_same;
use chainrule_backend_tests::exact::replace;
use chainrule_backend_tests::generate::{functions, graphs};
use chainrule_backend_tests::{Case, Data, Outcome, interpret, is_inexact, reals};
use chainrule_c::{Options, Precision, emit};
use chainrule_cases::{Xorshift, covers};
use chainrule_graph::generate::Numbers;
use chainrule_ir::{Builder, Size, Type};
use chainrule_kernel::{Kernel, lower_function};
use chainrule_ops::{Op, ROWS};
use std::process::Command;
use support::run_c;

fn own() -> Options {
    Options { inline_math: true, ..Options::default() }
}

/// Returns the available C compilers.
fn compilers() -> Vec<&'static str> {
    ["gcc", "clang"].into_iter().filter(|cc| Command::new(cc).arg("--version").output().is_ok()).collect()
}

/// Returns `kernel` with our own elementary functions in place of all functions of `math.h`.
fn elementary(kernel: &Kernel) -> Kernel {
    replace(kernel, |op| {
        let theirs = is_inexact(op) && op.row().elementary.is_none();
        theirs.then(|| match op.arity() {
            1 => [Op::Sin, Op::Cos, Op::Exp, Op::Log, Op::Tanh, Op::Expm1, Op::Log1p, Op::Atan][op as usize % 8],
            _ => [Op::Pow, Op::Atan2][op as usize % 2],
        })
    })
}

/// Returns the kernel y\[i\] = op(x\[i\], ...).
fn pointwise(op: Op) -> Kernel {
    let mut b = Builder::new(op.name());
    let n = Size::var(b.size_param("n"));
    let args: Vec<_> = (0..op.arity()).map(|k| b.param(["x", "z"][k], Type::array(n.clone(), Type::Double))).collect();
    let y = b.build(n, |b, i| {
        let args: Vec<_> = args.iter().map(|x| b.get_proved(*x, i)).collect();
        b.op(op, &args)
    });
    lower_function(&b.finish(y)).unwrap()
}

/// Returns doubles of all kinds: special ones with neighbours, random bits, the usual range, huge ones.
fn numbers(seed: u64, n: usize) -> Vec<f64> {
    let mut random = Xorshift::new(seed);
    let centres = [
        0.0,
        1.0,
        5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        0.5,
        2.0,
        708.0,
        710.0,
        746.0,
        20.0,
        40.0,
        1e-300,
        1e300,
        1_073_741_824.0,
        2.907354897182427e135,
        9_007_199_254_740_992.0,
        2_251_799_813_685_248.0,
        f64::INFINITY,
        f64::NAN,
        3.0,
        1e22,
        std::f64::consts::FRAC_PI_2,
        std::f64::consts::PI,
        7.450580596923828e-9,
        3.7e-9,
    ];
    let mut all: Vec<f64> = Vec::new();
    for centre in centres {
        for step in -2..=2i64 {
            let x = f64::from_bits(centre.to_bits().saturating_add_signed(step));
            all.extend([x, -x]);
        }
    }
    while all.len() < n {
        all.push(f64::from_bits(random.bits()));
        all.push((random.unit() - 0.5) * 1500.0);
        all.push((random.unit() - 0.5) * 8.0);
        // Between 2^30 and 2^1000, the range of the Payne-Hanek reduction.
        all.push(random.unit() * f64::from_bits((1053 + random.bits() % 970) << 52));
    }
    all.truncate(n);
    all
}

/// Compares value by value, because the lists are long.
fn assert_same_values(ops: &[Op], cases: &[Case], found: &[Outcome]) {
    for ((op, case), found) in ops.iter().zip(cases).zip(found) {
        let expected = interpret(case).unwrap();
        let (Ok([Data::Real(found)]), Ok([Data::Real(expected)])) = (found.as_deref(), expected.as_deref()) else {
            panic!("{} has one result", op.name())
        };
        assert_eq!(found.len(), expected.len());
        let arguments = |i: usize| case.inputs.iter().map(move |x| x.data.part(i, 1)).collect::<Vec<_>>();
        for (i, (a, b)) in expected.iter().zip(found).enumerate() {
            let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            assert!(same, "{}{:?}: {a:e} and {b:e}", op.name(), arguments(i));
        }
    }
}

#[test]
fn functions_have_the_bits_of_ours() {
    const N: usize = 6000;
    let elementary: Vec<Op> = ROWS.iter().filter(|row| row.elementary.is_some()).map(|row| row.op).collect();
    assert_eq!(elementary.len(), 19);
    let case = |op: &Op| {
        let inputs =
            (0..op.arity()).map(|k| reals(&numbers(*op as u64 * 7 + k as u64 * 13 + 1, N))).collect::<Vec<_>>();
        // Pairs of special numbers: one list rotated against the other.
        let turned = |(k, mut x): (usize, chainrule_backend_tests::Array)| {
            if let (1, Data::Real(x)) = (k, &mut x.data) {
                x[..260].rotate_left(17);
            }
            x
        };
        Case { kernel: pointwise(*op), inputs: inputs.into_iter().enumerate().map(turned).collect() }
    };
    let cases: Vec<Case> = elementary.iter().map(case).collect();
    for cc in compilers() {
        assert_same_values(&elementary, &cases, &run_c(cc, &FLAGS, &cases, &own()));
        // With FMA instructions for fused products.
        let native = ["-std=c99", "-O2", "-march=native", "-ffp-contract=off"];
        if supports(cc, &native) {
            assert_same_values(&elementary, &cases, &run_c(cc, &native, &cases, &own()));
        }
    }
}

#[test]
fn kernels_compute_what_the_interpreter_computes_bit_for_bit() {
    let Some(cc) = compiler() else { return };
    let mut cases = graphs(80, 41, Numbers::Special, 60, elementary);
    cases.extend(graphs(40, 42, Numbers::Tame, 60, elementary));
    cases.extend(functions(120, 43, false, elementary));
    let calls = |case: &&Case| emit(&case.kernel, &own()).unwrap().source.contains("cr_bits(");
    let n = cases.iter().filter(calls).count();
    covers!(n > 100, "{n} of {} call functions", cases.len());
    assert_same(&cases, &run_c(cc, &FLAGS, &cases, &own()));
}

#[test]
fn nothing_undefined_happens() {
    let Some(cc) = compiler() else { return };
    let flags = ["-std=c99", "-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"];
    if !supports(cc, &flags) {
        println!("skipped: the C compiler has no sanitizers");
        return;
    }
    let cases: Vec<Case> = (ROWS.iter().filter(|row| row.elementary.is_some()))
        .map(|row| {
            let inputs = (0..row.args.len()).map(|k| reals(&numbers(k as u64 + 99, 1500))).collect();
            Case { kernel: pointwise(row.op), inputs }
        })
        .collect();
    let ops: Vec<Op> = ROWS.iter().filter(|row| row.elementary.is_some()).map(|row| row.op).collect();
    assert_same_values(&ops, &cases, &run_c(cc, &flags, &cases, &own()));
}

#[test]
fn the_text_says_whose_functions_are_called() {
    let case = &graphs(1, 1, Numbers::Tame, 10, elementary)[0];
    assert!(interpret(case).is_ok());
    let kernel = pointwise(Op::Sin);
    let theirs = emit(&kernel, &Options::default()).unwrap();
    assert!(
        theirs.source.contains(" sin(") && theirs.source.contains("up to the last places of the functions of math.h")
    );
    let ours = emit(&kernel, &own()).unwrap();
    assert!(ours.source.contains("static inline double cr_sin(double x) {") && !ours.source.contains(" sin("));
    assert!(ours.header.contains("bit for bit: sin, cos, tan,") && ours.source.contains("bit for bit: sin, cos, tan,"));
    assert!(!ours.source.contains("cr_exp"), "only what is called comes along");
    let floats = Options { precision: Precision::Single, ..own() };
    insta::assert_snapshot!(emit(&kernel, &floats).unwrap_err(), @"error: functions of floats cannot come along: Chainrule's own elementary functions are for doubles (help: leave them to math.h, or take doubles)");
}
