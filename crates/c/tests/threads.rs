//! Functions with parallel loops, emitted, compiled with OpenMP and without, and compared with the interpreter bit for
//! bit.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::c::{FLAGS, compiler, supports};
use chainrule_backend_tests::case::assert_same;
use chainrule_backend_tests::generate::{deep_function, inputs_up_to, random};
use chainrule_backend_tests::{Array, Case, Data, exact, interpret, reals};
use chainrule_c::{Options, emit};
use chainrule_cases::covers;
use chainrule_ir::{Builder, Size, Type};
use chainrule_kernel::{lower_function, parallelise};
use chainrule_ops::{Op, Semantics};
use std::cell::RefCell;
use support::run_c;

/// Returns random functions with parallel loops, at sizes with several chunks.
fn cases(n: u32, seed: u64) -> Vec<Case> {
    let found = RefCell::new(Vec::new());
    random(n, seed, 3000, |u| {
        let Some(function) = deep_function(u) else { return Ok(()) };
        let Ok(mut kernel) = lower_function(&function).map(|kernel| exact(&kernel)) else { return Ok(()) };
        if parallelise(&mut kernel, Semantics::Algebraic) == 0 {
            return Ok(());
        }
        for longest in [140, 12] {
            let Some(inputs) = inputs_up_to(u, &function, longest) else { continue };
            let elements: usize = inputs.iter().map(|input| input.data.len()).sum();
            let case = Case { kernel: kernel.clone(), inputs };
            if elements < 5000 && interpret(&case).is_ok() {
                found.borrow_mut().push(case);
            }
        }
        Ok(())
    });
    found.into_inner()
}

#[test]
fn chunks_agree_with_the_interpreter_with_and_without_threads() {
    let Some(cc) = compiler() else { return };
    let cases = cases(350, 61);
    println!("{} cases", cases.len());
    covers!(cases.len() > 60, "{}", cases.len());
    let options = Options { threads: true, ..Options::default() };
    // Compilers without OpenMP ignore its pragmas.
    assert_same(&cases, &run_c(cc, &[&FLAGS[..], &["-Wno-unknown-pragmas"]].concat(), &cases, &options));
    if !supports(cc, &["-fopenmp"]) {
        println!("skipped: the C compiler has no OpenMP");
        return;
    }
    assert_same(&cases, &run_c(cc, &[&FLAGS[..], &["-fopenmp"]].concat(), &cases, &options));
    let flags = ["-std=c99", "-O0", "-fopenmp", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"];
    if supports(cc, &flags) {
        // Slow to compile.
        let some = &cases[..cases.len() / 3];
        assert_same(some, &run_c(cc, &flags, some, &options));
    }
}

/// An index out of range in several chunks: the first one is reported; results that several chunks add to.
#[test]
fn the_first_failure_and_sums_of_arrays() {
    let Some(cc) = compiler() else { return };
    let mut b = Builder::new("gather");
    let (n, m) = (Size::var(b.size_param("n")), Size::var(b.size_param("m")));
    let picks = b.param("picks", Type::array(n.clone(), Type::Int));
    let x = b.param("x", Type::array(m.clone(), Type::Double));
    let limited = b.build(n.clone(), |b, i| {
        let pick = b.get_proved(picks, i);
        let element = b.get(x, pick);
        let two = b.real(2.0);
        let pair = b.op(Op::Mul, &[element, two]);
        let inverse = b.op(Op::Quot, &[pick, pick]);
        let inverse = b.to_real(inverse);
        b.op(Op::Add, &[pair, inverse])
    });
    let mut kernel = exact(&lower_function(&b.finish(limited)).unwrap());
    assert_eq!(parallelise(&mut kernel, Semantics::Algebraic), 1, "{kernel}");
    let text = emit(&kernel, &Options { threads: true, ..Options::default() }).unwrap().source;
    assert!(text.contains("#pragma omp parallel for schedule(static, 1)"), "{text}");
    // An index that is too large, and one that is a divisor of zero.
    let wrong: [&[(usize, i64)]; 4] = [&[], &[(40, 9), (70, 0)], &[(40, 0), (70, 9)], &[(99, -1)]];
    let cases: Vec<Case> = wrong
        .iter()
        .map(|wrong| {
            let mut picks: Vec<i64> = (0..100).map(|i| 1 + i % 2).collect();
            wrong.iter().for_each(|(at, pick)| picks[*at] = *pick);
            let picks = Array { shape: vec![100], data: Data::Int(picks) };
            Case { kernel: kernel.clone(), inputs: vec![picks, reals(&[1.5, 2.5, 3.5])] }
        })
        .collect();
    let messages: Vec<_> = cases.iter().map(|case| interpret(case).unwrap().err()).collect();
    assert!(messages[1] != messages[2] && messages[0].is_none(), "{messages:?}");
    let flags = if supports(cc, &["-fopenmp"]) { "-fopenmp" } else { "-Wno-unknown-pragmas" };
    let options = Options { threads: true, ..Options::default() };
    assert_same(&cases, &run_c(cc, &[&FLAGS[..], &[flags]].concat(), &cases, &options));
}

/// Values that a piece recomputes from sizes may fail if its branch is not taken: they are then not computed.
#[test]
fn what_a_branch_guards_is_guarded_in_each_piece() {
    let Some(cc) = compiler() else { return };
    let mut b = Builder::new("guarded");
    let n = Size::var(b.size_param("n"));
    let k = b.param("k", Type::Int);
    let x = b.param("x", Type::array(n.clone(), Type::Double));
    let zero = b.int(0);
    let positive = b.op(Op::Lt, &[zero, k]);
    let guarded = b.if_(
        positive,
        |b| {
            let most = b.int(300);
            let step = b.op(Op::Quot, &[most, k]);
            b.build(n, |b, i| {
                let element = b.get_proved(x, i);
                let at = b.op(Op::Mod, &[i, step]);
                let at = b.to_real(at);
                b.op(Op::Mul, &[element, at])
            })
        },
        |_| x,
    );
    let mut kernel = exact(&lower_function(&b.finish(guarded)).unwrap());
    assert_eq!(parallelise(&mut kernel, Semantics::Algebraic), 1, "{kernel}");
    let numbers: Vec<f64> = (0..200).map(f64::from).collect();
    let case = |k: i64| Case {
        kernel: kernel.clone(),
        inputs: vec![Array { shape: vec![], data: Data::Int(vec![k]) }, reals(&numbers)],
    };
    let cases = [case(0), case(7)];
    assert!(cases.iter().all(|case| interpret(case).unwrap().is_ok()));
    let options = Options { threads: true, ..Options::default() };
    assert_same(&cases, &run_c(cc, &[&FLAGS[..], &["-Wno-unknown-pragmas"]].concat(), &cases, &options));
}
