//! Code without checks of indices: the same bits if none is out of range, memory safe unless that is promised.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{
    Backend, COptions, Checks, CompileOptions, Compiled, Function, InRange, Module, RustOptions, Value, emit_c_with,
    emit_rust,
};

fn function(text: &str) -> Function {
    Module::from_text("f.ft", text).unwrap().function("f").unwrap()
}

/// Returns the setting without any checks.
///
/// # Safety
/// As [`InRange::promised`].
#[allow(unsafe_code)]
unsafe fn promised() -> Checks {
    // SAFETY: the caller's promise.
    Checks::None(unsafe { InRange::promised() })
}

fn backends() -> Vec<Backend> {
    let mut all = vec![Backend::Interpreter];
    all.extend(cfg!(all(target_arch = "x86_64", unix)).then_some(Backend::Native));
    all.extend(cfg!(feature = "cranelift").then_some(Backend::Cranelift));
    all
}

fn compiled(function: &Function, checks: Checks, backend: Backend) -> Compiled {
    function.compile_with(&CompileOptions { checks, backend, ..CompileOptions::default() }).unwrap()
}

fn ints(values: &[i64]) -> Value<f64> {
    Value::Array(values.iter().copied().map(Value::Int).collect())
}

const GATHER: &str = "let f = fun (x : [n]Double) (at : [m]Index) -> sum m (fun k -> x[at[k]] * x[at[k]])";
const ROWS: &str = "let f = fun (a : [n][k]Double) (at : [m]Index) -> build m (fun i -> a[i][at[i]])";
const SCATTER: &str = "let f = fun (x : [n]Double) (at : [m]Index) (w : [m]Double) ->
  let y = build m (fun k -> w[k] * sin x[at[k]]) in
  ifold (fun s k -> s + (if at[k] == 0 then x[at[k]] else y[k] * x[at[k] - 1])) 0.0 m";

#[test]
#[allow(unsafe_code)]
fn bits_are_the_same_where_no_index_is_out_of_range() {
    let x: Vec<f64> = (0..40).map(|i| f64::from(i).sin()).collect();
    let at: Vec<i64> = (0..100).map(|k| (k * k + 3) % 40).collect();
    let w: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.01).collect();
    let rows = Value::Array((0..100).map(|i| x.iter().map(|x| x + f64::from(i)).collect::<Vec<_>>().into()).collect());
    let (x, at, w, one): (Value<f64>, _, Value<f64>, _) = (x.into(), ints(&at), w.into(), Value::Real(1.0));
    let [gather, scatter, pick] = [GATHER, SCATTER, ROWS].map(function);
    let cases = [
        (gather.clone(), vec![x.clone(), at.clone()]),
        (gather.jvp().function().unwrap(), vec![x.clone(), at.clone(), x.clone()]),
        (gather.vjp().function().unwrap(), vec![x.clone(), at.clone(), one.clone()]),
        (scatter.clone(), vec![x.clone(), at.clone(), w.clone()]),
        (scatter.jvp().function().unwrap(), vec![x.clone(), at.clone(), w.clone(), x.clone(), w.clone()]),
        (scatter.vjp().function().unwrap(), vec![x, at.clone(), w.clone(), one]),
        (pick.clone(), vec![rows.clone(), at.clone()]),
        (pick.vjp().function().unwrap(), vec![rows, at, w]),
    ];
    for (f, args) in cases {
        for threads in [None, Some(3)] {
            let compiled = |checks, backend| {
                f.compile_with(&CompileOptions { checks, backend, threads, ..CompileOptions::default() }).unwrap()
            };
            let expected = compiled(Checks::All, Backend::Interpreter).call(&args).unwrap();
            for backend in backends() {
                // SAFETY: all of `at` is in range.
                for checks in [Checks::All, Checks::Memory, unsafe { promised() }] {
                    let code = compiled(checks, backend);
                    assert_eq!(code.listing().contains("check "), checks == Checks::All, "{}", code.listing());
                    let found = code.call(&args).unwrap();
                    assert_eq!(found, expected, "{} on {backend:?} with {checks:?}", f.name());
                }
            }
        }
    }
}

#[test]
fn memory_is_safe_without_a_promise() {
    let f = function(GATHER);
    let a = function(ROWS);
    for backend in backends() {
        let code = compiled(&f, Checks::Memory, backend);
        for at in [3, -1, i64::MAX, i64::MIN, 1 << 61] {
            let error = code.call(&[vec![1.0, 2.0, 3.0].into(), ints(&[0, at])]).unwrap_err().to_string();
            let says =
                "an index lies outside of its array: which one is not known, for checks of indices were left out";
            assert_eq!(error, says, "{at} on {backend:?}");
        }
        // Another element of the same array, and one beyond its end.
        let code = compiled(&a, Checks::Memory, backend);
        let rows = || Value::Array(vec![vec![1.0, 2.0].into(), vec![3.0, 4.0].into()]);
        assert_eq!(code.call(&[rows(), ints(&[2, -1])]).unwrap(), [vec![3.0, 2.0].into()], "{backend:?}");
        assert!(code.call(&[rows(), ints(&[0, 2])]).is_err(), "{backend:?}");
    }
}

#[test]
#[allow(unsafe_code)]
fn machine_code_tests_no_address_that_it_need_not() {
    let f = function(GATHER);
    for backend in backends().into_iter().skip(1) {
        let len = |checks| compiled(&f, checks, backend).code().unwrap().len();
        // SAFETY: it is not run.
        let free = unsafe { promised() };
        assert!(len(free) < len(Checks::Memory), "{backend:?}: {} {}", len(free), len(Checks::Memory));
    }
}

#[test]
fn what_was_saved_without_checks_keeps_memory_safe() {
    let f = function(GATHER);
    let args = |at: i64| [vec![1.0, 2.0, 3.0].into(), ints(&[at])];
    let bytes = compiled(&f, Checks::Memory, Backend::Auto).to_bytes().unwrap();
    let loaded = Compiled::from_bytes(&bytes).unwrap();
    assert_eq!(loaded.call(&args(2)).unwrap(), [Value::Real(9.0)]);
    assert!(loaded.call(&args(3)).unwrap_err().to_string().starts_with("an index lies outside of its array"));
    assert_eq!(loaded.to_bytes().unwrap(), bytes);
    // Saved checks can be dropped later.
    let bytes = compiled(&f, Checks::All, Backend::Auto).to_bytes().unwrap();
    let options = CompileOptions { checks: Checks::Memory, ..CompileOptions::default() };
    let loaded = Compiled::from_bytes_with(&bytes, &[], &options).unwrap();
    assert!(loaded.call(&args(3)).unwrap_err().to_string().contains("which one is not known"));
}

#[test]
fn emitted_text_has_none_where_that_is_asked() {
    let f = function(GATHER);
    let c = |unchecked| emit_c_with("f", &[&f], &COptions { unchecked, ..COptions::default() }).unwrap();
    assert!(c(false).header.contains("lies outside") && !c(true).header.contains("lies outside"), "{}", c(true).header);
    assert!(c(true).source.len() < c(false).source.len());
    let rust = |unchecked| emit_rust("f", &[&f], &RustOptions { unchecked, ..RustOptions::default() }).unwrap().text;
    assert!(rust(false).contains("lies outside") && !rust(true).contains("lies outside"));
}
