//! Machine code against the interpreter: the same values, the same failures with the same messages; behaviour without
//! native code; batches. With the feature `cranelift`, its code too.

#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{
    Backend, BatchOptions, CompileOptions, Compiled, Error, Function, Level, Module, Slice, SliceMut, Strided,
    StridedMut, UserFunction, Value, vars,
};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

fn with(function: &Function, backend: Backend) -> Compiled {
    function.compile_with(&CompileOptions { backend, ..CompileOptions::default() }).unwrap()
}

/// Returns whether this machine supports native code; tests report if it does not.
fn has_native() -> bool {
    let x = vars("x", 1);
    let there = with(&Function::new("f", &x, &x[0]).unwrap(), Backend::Auto).backend() == Backend::Native;
    if !there {
        println!("skipped: this machine has no native code");
    }
    there
}

/// Returns the engines of machine code in this build.
fn machine_code() -> &'static [Backend] {
    if cfg!(feature = "cranelift") { &[Backend::Native, Backend::Cranelift] } else { &[Backend::Native] }
}

fn ints(values: &[i64]) -> Value<f64> {
    Value::Array(values.iter().map(|i| Value::Int(*i)).collect())
}

fn reals(values: &[f64]) -> Value<f64> {
    Value::Array(values.iter().map(|x| Value::Real(*x)).collect())
}

#[test]
fn programs_give_the_same_values_and_fail_in_the_same_words() {
    if !has_native() {
        return;
    }
    let text = "
let gather = fun (v : [n]Double) (at : [k]Int) -> build k (fun j -> v[at[j]])
let newton = fun (a : Double) ->
  while (fun s -> abs (s * s - a) > 1e-12 * a) (fun s -> 0.5 * (s + a / s)) a 50
let fibonacci = fun (n : Int) -> ifold (fun (a, b) _ -> (b, a + b)) (0, 1) n
let quotients = fun (a : [n]Int) (b : Int) -> build n (fun i -> div (a[i]) b + mod (a[i]) b)
let product = fun (a : [n]Int) -> ifold (fun s i -> s * a[i]) 1 n
let clipped = fun (x : [n]Double) -> build n (fun i -> if x[i] > 1 && not (x[i] > 2) then sin x[i] else -x[i])
let matmul = fun (a : [m][k]Double) (b : [k][n]Double) ->
  build m (fun i -> build n (fun j -> sum k (fun l -> a[i][l] * b[l][j])))
let bins = fun (x : [n]Double) (m : Int) ->
  ifold (fun s i -> build m (fun k -> if k == truncate x[i] then s[k] + 1 else s[k])) (build m (fun k -> 0)) n
let sampled = fun (t : [n]Double) (x : [m]Double) ->
  build m (fun i -> t[truncate x[i]] * (x[i] - real (truncate x[i])))
let whole = fun (x : [n]Double) -> build n (fun i -> truncate x[i])
let counted = fun (x : [n]Double) -> ifold (fun (s, c) i -> if x[i] < 0 then (s, c + 1) else (s + x[i], c)) (0.0, 0) n
";
    let module = Module::from_text("programs.ft", text).unwrap();
    let m = |rows: &[&[f64]]| Value::Array(rows.iter().map(|row| reals(row)).collect());
    let specials = [f64::NAN, f64::INFINITY, -0.0, 1.5, 2.5, f64::MIN_POSITIVE / 4.0];
    let cases: Vec<(&str, Vec<Value<f64>>, &str)> = vec![
        ("gather", vec![reals(&[5.0, 6.0]), ints(&[1, 0, 1])], ""),
        ("gather", vec![reals(&[5.0, 6.0]), ints(&[0, 2])], "the index is 2, the length 2"),
        ("gather", vec![reals(&[5.0, 6.0]), ints(&[-1])], "the index is -1, the length 2"),
        ("gather", vec![reals(&[]), ints(&[])], ""),
        ("newton", vec![Value::Real(2.0)], ""),
        ("newton", vec![Value::Real(1e300)], "the limit is 50"),
        ("newton", vec![Value::Real(f64::NAN)], ""),
        ("fibonacci", vec![Value::Int(90)], ""),
        ("fibonacci", vec![Value::Int(200)], ""),
        ("fibonacci", vec![Value::Int(0)], ""),
        ("quotients", vec![ints(&[7, -7, 0, i64::MAX]), Value::Int(-3)], ""),
        ("quotients", vec![ints(&[7]), Value::Int(0)], "division by zero"),
        ("quotients", vec![ints(&[i64::MIN]), Value::Int(-1)], "the arguments are"),
        ("product", vec![ints(&[3, -5, 7])], ""),
        ("product", vec![ints(&[i64::MAX, 2])], "does not fit into 64 bits"),
        ("clipped", vec![reals(&specials)], ""),
        ("matmul", vec![m(&[&[1.0, 2.0], &[3.0, 4.0]]), m(&[&[0.5, -1.0, 2.0], &[1.0, 0.25, 8.0]])], ""),
        ("bins", vec![reals(&[0.5, 2.9, 2.0, 7.0, -0.5, f64::NAN]), Value::Int(3)], ""),
        ("sampled", vec![reals(&[2.0, 4.0, 8.0]), reals(&[0.5, 2.75, -0.25, 1.0])], ""),
        ("sampled", vec![reals(&[2.0, 4.0]), reals(&[2.0])], "the index is 2, the length 2"),
        ("sampled", vec![reals(&[2.0, 4.0]), reals(&[f64::NAN])], "the index is -9223372036854775808"),
        ("whole", vec![reals(&specials)], ""),
        ("whole", vec![reals(&[9.3e18, -9.3e18, f64::NEG_INFINITY, 9.2e18, -9.2e18, 4.5e15 + 0.5])], ""),
        ("counted", vec![reals(&[1.0, -2.0, 3.0, -4.0])], ""),
        ("counted", vec![reals(&[])], ""),
    ];
    for (name, args, failure) in cases {
        let function = module.function(name).unwrap();
        let run = |backend| with(&function, backend).call(&args).map_err(|e| format!("{e} {e:?}"));
        let interpreted = run(Backend::Interpreter);
        for backend in machine_code() {
            assert_eq!(format!("{:?}", run(*backend)), format!("{interpreted:?}"), "{name} {backend:?}");
        }
        match interpreted {
            Ok(_) => assert_eq!(failure, "", "{name} does not fail"),
            Err(message) => assert!(!failure.is_empty() && message.contains(failure), "{name}: {message}"),
        }
    }
}

#[test]
fn without_executable_memory_the_interpreter_runs_and_says_why() {
    let x = vars("x", 2);
    let f = Function::new("f", &x, &(x[0].sin() * &x[1])).unwrap();
    let denied = CompileOptions { deny_executable: true, ..CompileOptions::default() };
    let auto = f.compile_with(&denied).unwrap();
    assert_eq!(auto.backend(), Backend::Interpreter);
    let why = auto.refusal().unwrap();
    assert_eq!(auto.eval(&[&[1.0, 2.0]]).unwrap(), f.compile().unwrap().eval(&[&[1.0, 2.0]]).unwrap());
    if has_native() {
        assert_eq!(why.title, "this system denies executable memory");
        for backend in machine_code() {
            assert!(f.compile_with(&CompileOptions { backend: *backend, ..denied }).is_err());
        }
        assert!(f.compile().unwrap().refusal().is_none());
    }
}

#[test]
fn names_for_perf_are_written_where_that_is_asked() {
    let x = vars("x", 2);
    let f = Function::new("profiled", &x, &(x[0].sin() * &x[1])).unwrap();
    let f = f.compile_with(&CompileOptions { perf_map: true, ..CompileOptions::default() }).unwrap();
    if f.backend() != Backend::Native {
        println!("skipped: this machine has no native code");
        return;
    }
    // The tests of this process write one file.
    let file = format!("/tmp/perf-{}.map", std::process::id());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let code = f.code().unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{:x} ", code.as_ptr().addr()))).unwrap();
    let (len, name) = line.split_once(' ').unwrap();
    assert_eq!(name, "profiled");
    // Constants come after the code.
    let len = usize::from_str_radix(len, 16).unwrap();
    assert!(0 < len && len < code.len(), "{len} of {}", code.len());
}

#[test]
fn panics_of_users_functions_go_on() {
    if !has_native() {
        return;
    }
    let wary = UserFunction::new("wary", 1, |x| if x[0] < 0.0 { panic!("negative") } else { x[0] + 1.0 });
    let x = vars("x", 1);
    for backend in machine_code() {
        let f = with(&Function::new("f", &x, &(wary.call(&[&x[0]]) * 2.0)).unwrap(), *backend);
        assert_eq!(f.eval(&[&[1.0]]).unwrap(), [[4.0]]);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f.eval(&[&[-1.0]]))).unwrap_err();
        assert_eq!(caught.downcast_ref::<&str>(), Some(&"negative"));
        assert_eq!(f.eval(&[&[2.0]]).unwrap(), [[6.0]], "it runs on");
    }
}

#[test]
fn arguments_that_do_not_fit_write_nothing() {
    let x = vars("x", 2);
    let f = Function::new("f", &x, &(&x * 2.0).named("y")).unwrap().compile().unwrap();
    let mut workspace = f.workspace(&[&[2]]).unwrap();
    let mut y = [7.0; 2];
    assert!(f.eval_into(&[&[1.0]], &mut [&mut y], &mut workspace).is_err());
    assert!(f.eval_into(&[&[1.0, 2.0]], &mut [&mut y[..1]], &mut workspace).is_err());
    assert!(f.eval_into(&[], &mut [&mut y], &mut workspace).is_err());
    assert_eq!(y, [7.0; 2]);
    let g = Function::new("g", &x, &x.norm()).unwrap().compile().unwrap();
    assert!(g.eval_into(&[&[1.0, 2.0]], &mut [&mut y[..1]], &mut workspace).is_err(), "another function's workspace");
    f.eval_into(&[&[f64::NAN, 2.0]], &mut [&mut y], &mut workspace).unwrap();
    assert!(y[0].is_nan() && y[1] == 4.0);
}

/// Returns the engines that run batches in this build, on this machine.
fn engines() -> Vec<Backend> {
    let machine_code = if has_native() { machine_code() } else { &[] };
    machine_code.iter().copied().chain([Backend::Interpreter]).collect()
}

#[test]
fn batches_in_any_layout_on_any_number_of_threads_are_the_single_points() {
    let x = vars("x", 3);
    let straight = Function::new("f", &x, &x.dot(&x).sin()).unwrap().gradient().with_value().function().unwrap();
    // Control flow differs per point, so points run one after the other.
    let text = "let f = fun (x : [3]Double) -> while (fun s -> s > 1) (fun s -> s * 0.5) (x[0] * x[0] + abs x[1]) 2000";
    let branches = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    for (function, n_results) in [(straight, 2), (branches, 1)] {
        for backend in engines() {
            let f = with(&function, backend);
            for n in [0, 1, 7, 8, 9, 100, 200] {
                let points: Vec<[f64; 3]> = (0..n).map(|p| [p as f64 * 0.1, 1.0 - p as f64, 0.5]).collect();
                let expected: Vec<Vec<Vec<f64>>> = points.iter().map(|p| f.eval(&[p]).unwrap()).collect();
                for (point, element) in [(3, 1), (1, n.max(1)), (5, 1), (1, n + 3), (7, 2)] {
                    let mut data = vec![0.0; 7 * n + 3 * (n + 4)];
                    for (p, x) in points.iter().enumerate() {
                        (0..3).for_each(|e| data[p * point + e * element] = x[e]);
                    }
                    for threads in [1, 2, 3, 0] {
                        let mut workspace = f.workspace(&[&[3]]).unwrap();
                        let mut results = vec![vec![f64::MAX; data.len()]; n_results];
                        let input = [Strided { data: Slice::Real(&data), point, element }];
                        let mut outputs: Vec<StridedMut<'_>> = results
                            .iter_mut()
                            .map(|y| StridedMut { data: SliceMut::Real(y), point, element })
                            .collect();
                        let options = BatchOptions { threads, ..BatchOptions::default() };
                        f.eval_batch_with(n, &input, &mut outputs, &mut workspace, &options).unwrap();
                        let mut n_written = vec![0; n_results];
                        for (p, expected) in expected.iter().enumerate() {
                            for (r, (found, expected)) in results.iter().zip(expected).enumerate() {
                                for (e, expected) in expected.iter().enumerate() {
                                    n_written[r] += 1;
                                    let found = found[p * point + e * element];
                                    assert_eq!(found.to_bits(), expected.to_bits(), "{backend:?} {threads} {p}");
                                }
                            }
                        }
                        for (result, n_written) in results.iter().zip(n_written) {
                            let n_left = result.iter().filter(|y| **y == f64::MAX).count();
                            assert_eq!(n_left, data.len() - n_written, "nothing else is written");
                        }
                    }
                }
            }
        }
    }
}

/// Each point waits until points run on two threads, or a timeout.
#[test]
fn batches_run_on_as_many_threads_as_asked_for() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("skipped: this machine runs one thread at once");
        return;
    }
    for backend in engines() {
        let seen = Arc::new((Mutex::new(HashSet::new()), Condvar::new()));
        let ours = Arc::clone(&seen);
        let wait = UserFunction::new("wait", 1, move |x| {
            let (threads, more) = &*ours;
            let mut threads = threads.lock().unwrap();
            threads.insert(std::thread::current().id());
            more.notify_all();
            drop(more.wait_timeout_while(threads, Duration::from_secs(20), |threads| threads.len() < 2));
            x[0] + 1.0
        });
        let x = vars("x", 1);
        let f = with(&Function::new("f", &x, &wait.call(&[&x[0]])).unwrap(), backend);
        // Two blocks of the interpreter.
        let data = [0.5; 128];
        let mut y = [0.0; 128];
        let input = [Strided { data: Slice::Real(&data), point: 1, element: 1 }];
        let mut outputs = [StridedMut { data: SliceMut::Real(&mut y), point: 1, element: 1 }];
        let mut workspace = f.workspace(&[&[1]]).unwrap();
        let options = BatchOptions { threads: 2, ..BatchOptions::default() };
        f.eval_batch_with(128, &input, &mut outputs, &mut workspace, &options).unwrap();
        assert_eq!(y, [1.5; 128]);
        assert_eq!(seen.0.lock().unwrap().len(), 2, "{backend:?}");
    }
}

/// Arguments and results of integers, in memory of one point or in lanes.
#[test]
fn batches_of_integers_on_any_number_of_threads_are_the_single_points() {
    let text = "let f = fun (x : Double) (at : [2]Int) -> (build 2 (fun i -> at[i] * 3 + 1), x * real at[0])";
    let function = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    let n = 150_usize;
    let x: Vec<f64> = (0..n).map(|p| p as f64 * 0.25).collect();
    let at: Vec<i64> = (0..2 * n as i64).map(|i| i * 7 % 31).collect();
    for backend in engines() {
        let f = with(&function, backend);
        for threads in [1, 2, 5] {
            let (mut integers, mut reals) = (vec![0; 2 * n], vec![0.0; n]);
            let mut workspace = f.workspace(&[&[], &[2]]).unwrap();
            let inputs = [
                Strided { data: Slice::Real(&x), point: 1, element: 1 },
                Strided { data: Slice::Int(&at), point: 1, element: n },
            ];
            let mut outputs = [
                StridedMut { data: SliceMut::Int(&mut integers), point: 2, element: 1 },
                StridedMut { data: SliceMut::Real(&mut reals), point: 1, element: 1 },
            ];
            let options = BatchOptions { threads, ..BatchOptions::default() };
            f.eval_batch_with(n, &inputs, &mut outputs, &mut workspace, &options).unwrap();
            for p in 0..n {
                assert_eq!(integers[2 * p..2 * p + 2], [at[p] * 3 + 1, at[p + n] * 3 + 1], "{backend:?} {threads}");
                assert_eq!(reals[p], x[p] * at[p] as f64);
            }
        }
    }
}

/// Checks that the same point is reported for any number of threads, although later ones fail as well.
#[test]
fn the_first_point_of_a_batch_that_fails_is_told() {
    let text = "let f = fun (x : [4]Double) (at : [1]Int) -> x[at[0]]";
    let function = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    let at: Vec<i64> = (0..300).map(|p| if [131, 200, 299].contains(&p) { 4 } else { p % 4 }).collect();
    for backend in engines() {
        let f = with(&function, backend);
        for threads in [1, 2, 3, 8] {
            let mut y = vec![0.0; 300];
            let mut workspace = f.workspace(&[&[4], &[1]]).unwrap();
            let inputs = [
                Strided { data: Slice::Real(&[1.0, 2.0, 3.0, 4.0]), point: 0, element: 1 },
                Strided { data: Slice::Int(&at), point: 1, element: 1 },
            ];
            let mut outputs = [StridedMut { data: SliceMut::Real(&mut y), point: 1, element: 1 }];
            for observe in [None, Some::<chainrule::Observer<'_>>(&|_| ControlFlow::Continue(()))] {
                let options = BatchOptions { threads, observe, every: 100, ..BatchOptions::default() };
                let failed = f.eval_batch_with(300, &inputs, &mut outputs, &mut workspace, &options).unwrap_err();
                let told = "the index is 4, the length 4 (at point 131 of the batch)";
                assert!(failed.to_string().contains(told), "{backend:?} {threads}: {failed}");
            }
        }
    }
}

#[test]
fn a_batch_is_observed_and_ends_when_the_observer_says_so() {
    let x = vars("x", 1);
    let f = Function::new("f", &x, &(&x[0] + 1.0)).unwrap().compile().unwrap();
    let data: Vec<f64> = (0..100).map(f64::from).collect();
    let mut y = vec![-1.0; 100];
    let mut workspace = f.workspace(&[&[1]]).unwrap();
    let input = [Strided { data: Slice::Real(&data), point: 1, element: 1 }];
    let seen = std::cell::RefCell::new(Vec::new());
    let observe = |done: usize| {
        seen.borrow_mut().push(done);
        if done >= 50 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = BatchOptions { threads: 2, observe: Some(&observe), every: 20, ..BatchOptions::default() };
    let mut outputs = [StridedMut { data: SliceMut::Real(&mut y), point: 1, element: 1 }];
    let ended = f.eval_batch_with(100, &input, &mut outputs, &mut workspace, &options);
    assert!(matches!(ended, Err(Error::Interrupted { done: 60, points: 100 })), "{ended:?}");
    assert_eq!(*seen.borrow(), [20, 40, 60]);
    assert!(y[..60].iter().zip(&data).all(|(y, x)| *y == x + 1.0) && y[60..].iter().all(|y| *y == -1.0));

    // With an interval of zero, each call is after one more point; with a long one, after eight times as many as
    // before.
    let one_by_one: Vec<usize> = (1..=100).collect();
    for (interval, wanted) in [(Duration::ZERO, one_by_one), (Duration::from_secs(3600), vec![1, 9, 73, 100])] {
        let seen = std::cell::RefCell::new(Vec::new());
        let observe = |done: usize| {
            seen.borrow_mut().push(done);
            ControlFlow::Continue(())
        };
        let options =
            BatchOptions { observe: Some(&observe), every: 1, interval: Some(interval), ..BatchOptions::default() };
        let mut y = vec![-1.0; 100];
        let mut outputs = [StridedMut { data: SliceMut::Real(&mut y), point: 1, element: 1 }];
        f.eval_batch_with(100, &input, &mut outputs, &mut workspace, &options).unwrap();
        assert_eq!(*seen.borrow(), wanted);
        assert!(y.iter().zip(&data).all(|(y, x)| *y == x + 1.0));
    }
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    let x = vars("x", 2);
    let f = Function::new("f", &x, &(&x * 2.0).named("y")).unwrap().compile().unwrap();
    let mut workspace = f.workspace(&[&[2]]).unwrap();
    let data = [1.0; 10];
    let mut run = |n, input: (usize, usize), output: (usize, usize)| {
        let mut y = [0.0; 10];
        let x = [Strided { data: Slice::Real(&data), point: input.0, element: input.1 }];
        let mut y = [StridedMut { data: SliceMut::Real(&mut y), point: output.0, element: output.1 }];
        f.eval_batch_with(n, &x, &mut y, &mut workspace, &BatchOptions::default()).map_err(|e| e.to_string())
    };
    assert!(run(5, (2, 1), (2, 1)).is_ok());
    assert!(run(5, (0, 1), (2, 1)).is_ok(), "all points share the argument");
    assert!(run(6, (2, 1), (2, 1)).unwrap_err().contains("too few"));
    assert!(run(5, (2, 1), (1, 1)).unwrap_err().contains("two of its elements at one place"));
    assert!(run(5, (usize::MAX, 1), (2, 1)).unwrap_err().contains("too few"));
}

/// Checks that all points are validated before the first is computed, for any number between two calls of the observer.
#[test]
fn observed_batches_that_do_not_fit_write_nothing() {
    let x = vars("x", 2);
    let f = Function::new("f", &x, &(&x * 2.0).named("y")).unwrap();
    let data = [1.0; 200];
    let never = |_| panic!("nothing is done");
    for backend in engines() {
        let f = with(&f, backend);
        let mut workspace = f.workspace(&[&[2]]).unwrap();
        let mut refused = |n_inputs: usize, input: (usize, usize), output: (usize, usize), len: usize| {
            let mut y = [7.0; 200];
            let x = vec![Strided { data: Slice::Real(&data), point: input.0, element: input.1 }; n_inputs];
            let mut outputs = [StridedMut { data: SliceMut::Real(&mut y[..len]), point: output.0, element: output.1 }];
            let options = BatchOptions { threads: 2, observe: Some(&never), every: 20, ..BatchOptions::default() };
            let error = f.eval_batch_with(100, &x, &mut outputs, &mut workspace, &options).unwrap_err().to_string();
            assert_eq!(y, [7.0; 200], "{backend:?}: {error}");
            error
        };
        let errors = [
            // Within twenty points no two results share a position.
            refused(1, (2, 1), (1, 30), 200),
            refused(1, (2, 1), (2, 1), 199),
            refused(1, (2, 2), (2, 1), 200),
            refused(1, (2, 1), (usize::MAX, 1), 200),
            refused(2, (2, 1), (2, 1), 200),
        ];
        insta::allow_duplicates! {
            insta::assert_snapshot!(errors.join("\n"), @r"
            the strides of result `y` put two of its elements at one place
            result `y` has 199 elements, too few for 100 points of 2 elements at strides 2 and 1
            argument `x` has 200 elements, too few for 100 points of 2 elements at strides 2 and 2
            result `y` has 200 elements, too few for 100 points of 2 elements at strides 18446744073709551615 and 1
            2 inputs and 1 output given, but 1 and 1 expected
            ");
        }
    }
}

#[test]
fn arrays_of_other_lengths_than_their_points_are_refused() {
    let x = vars("x", 2);
    let f = Function::new("f", &x, (&(&x * 2.0).named("y"), &(&x[0] + &x[1]))).unwrap();
    for backend in engines() {
        let f = with(&f, backend);
        let mut workspace = f.workspace(&[&[2]]).unwrap();
        let data: Vec<f64> = (0..12).map(f64::from).collect();
        let (mut y, mut s) = ([7.0; 6], [7.0; 3]);
        f.eval_batch(3, &[&data[..6]], &mut [&mut y, &mut s], &mut workspace).unwrap();
        assert_eq!((y, s), ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [1.0, 5.0, 9.0]));
        f.eval_batch(0, &[&[]], &mut [&mut [], &mut []], &mut workspace).unwrap();
        let mut refused = |n: usize, x: &[&[f64]], n_y: usize, n_s: usize, n_outputs: usize| {
            let (mut y, mut s, mut more) = ([7.0; 12], [7.0; 12], [7.0; 12]);
            let mut outputs = [&mut y[..n_y], &mut s[..n_s], &mut more];
            let error = f.eval_batch(n, x, &mut outputs[..n_outputs], &mut workspace).unwrap_err().to_string();
            assert_eq!([y, s, more], [[7.0; 12]; 3]);
            error
        };
        let errors = [
            refused(3, &[&data], 6, 3, 2),
            refused(3, &[&data[..7]], 6, 3, 2),
            refused(3, &[&data[..6]], 12, 3, 2),
            refused(3, &[&data[..6]], 6, 0, 2),
            refused(0, &[&data[..6]], 0, 0, 2),
            refused(1, &[&[]], 2, 1, 2),
            refused(3, &[&data[..6], &data[..6]], 6, 3, 2),
            refused(3, &[], 6, 3, 2),
            refused(3, &[&data[..6]], 6, 3, 3),
            refused(3, &[&data[..6]], 6, 3, 1),
        ];
        insta::allow_duplicates! {
            insta::assert_snapshot!(errors.join("\n"), @r"
            the argument `x` has 12 elements, but 6 expected: 3 points of 2 elements
              help: pass the elements of all points, one point after the other
            the argument `x` has 7 elements, but 6 expected: 3 points of 2 elements
              help: pass the elements of all points, one point after the other
            the result `y` has 12 elements, but 6 expected: 3 points of 2 elements
              help: pass the elements of all points, one point after the other
            the result `result1` has 0 elements, but 3 expected: 3 points of 1 element
              help: pass the elements of all points, one point after the other
            the argument `x` has 6 elements, but 0 expected: 0 points of 2 elements
              help: pass the elements of all points, one point after the other
            the argument `x` has 0 elements, but 2 expected: 1 point of 2 elements
              help: pass the elements of all points, one point after the other
            `f` takes 1 argument, not 2
              help: it is x
            `f` takes 1 argument, not 0
              help: it is x
            `f` has 2 results, not 3
              help: they are y, result1
            `f` has 2 results, not 1
              help: they are y, result1
            ");
        }
    }
}

#[test]
fn a_batch_does_not_take_the_workspace_of_another_function() {
    let x = vars("x", 2);
    let f = Function::new("f", &x, &x.dot(&x)).unwrap();
    let g = Function::new("g", &x, &x.norm()).unwrap();
    for backend in engines() {
        let (f, g) = (with(&f, backend), with(&g, backend));
        let mut workspace = g.workspace(&[&[2]]).unwrap();
        let mut y = [7.0];
        let error = f.eval_batch(1, &[&[3.0, 4.0]], &mut [&mut y], &mut workspace).unwrap_err();
        assert!(error.to_string().contains("the sizes were made by another program"), "{error}");
        assert_eq!(y, [7.0]);
    }
}

#[test]
fn cranelift_is_there_where_it_was_built_in() {
    let x = vars("x", 2);
    let f = Function::new("f", &x, &(x[0].sin() * &x[1])).unwrap();
    let asked = f.compile_with(&CompileOptions { backend: Backend::Cranelift, ..CompileOptions::default() });
    if !cfg!(feature = "cranelift") {
        assert!(asked.unwrap_err().to_string().contains("this build of Chainrule has no Cranelift"));
        return;
    }
    let cranelift = asked.unwrap();
    assert_eq!(cranelift.backend(), Backend::Cranelift);
    assert!(cranelift.refusal().is_none() && cranelift.code().is_some_and(|code| !code.is_empty()));
    let point = [0.3, 7.0];
    let expected = with(&f, Backend::Interpreter).eval(&[&point]).unwrap();
    assert_eq!(cranelift.eval(&[&point]).unwrap(), expected);
    let mut bound = cranelift.bound(&[&[2]]).unwrap();
    bound.input_mut(0).copy_from_slice(&point);
    bound.eval().unwrap();
    assert_eq!(bound.output(0), expected[0]);
    let mut y = [0.0; 2];
    let mut workspace = cranelift.workspace(&[&[2]]).unwrap();
    cranelift.eval_batch(2, &[&[0.3, 7.0, 0.3, 7.0]], &mut [&mut y], &mut workspace).unwrap();
    assert_eq!(y, [expected[0][0]; 2]);
}

/// Checks that values broadcast into lanes before the outer loop survive a call between the loops.
#[test]
fn calls_between_loops_preserve_lanes() {
    if !has_native() {
        return;
    }
    let text = "let f = fun (a : Double) (x : [n]Double) ->
  ifold (fun (s : [8]Double) i ->
    let t = asin (0.1 * s[0] + x[i])
    build 8 (fun j -> a * (s[j] + a * (s[j] - a * (s[j] + a * (s[j] - a * t)))))
  ) (vectorFill 8 0.25) n";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    let args = [Value::Real(0.7), reals(&[0.1, -0.4, 0.9, 0.3, -0.8])];
    let expected = with(&f, Backend::Interpreter).call(&args).unwrap();
    for level in [None, Some(Level::Avx2)] {
        let options = CompileOptions { backend: Backend::Native, level, ..CompileOptions::default() };
        assert_eq!(f.compile_with(&options).unwrap().call(&args).unwrap(), expected, "{level:?}");
    }
}

/// Checks all numbers of rows from none to more than two groups, and the transitions: of the blocks that groups of
/// eight leave over, four form a group, and the others run one by one.
#[test]
fn groups_of_blocks_and_the_remainder_cover_all_rows() {
    if !has_native() {
        return;
    }
    // Products with triangles stay in the loop.
    let text = "let f = fun (w : [k][d][d]Double) (x : [d][n]Double) -> sum n (fun p -> log (sum k (fun m ->
  exp (-0.1 * sum d (fun i -> sum (i + 1) (fun j -> w[m][i][j] * x[j][p]) ** 2)))))";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap().gradient().by(&["w"]).with_value();
    let f = f.function().unwrap();
    let interpreted = with(&f, Backend::Interpreter);
    let listing = interpreted.listing();
    assert!(listing.contains("64*r") && listing.contains("32*r"), "groups of eight blocks and of four: {listing}");
    let in_order = CompileOptions { backend: Backend::Interpreter, sequential: true, ..CompileOptions::default() };
    let in_order = f.compile_with(&in_order).unwrap();
    let row = |p: usize| (0..3).map(|j| (1.0 + (3 * p + j) as f64).sin()).collect::<Vec<f64>>();
    let w: Vec<Vec<Vec<f64>>> = (2..4).map(|k| (3 * k..3 * k + 3).map(row).collect()).collect();
    for n in [0, 1, 8, 63, 64, 72, 95, 96, 97, 104, 127, 128, 168, 199] {
        let rows: Vec<Vec<f64>> = (0..n).map(row).collect();
        let columns: Vec<Vec<f64>> = (0..3).map(|j| rows.iter().map(|row| row[j]).collect()).collect();
        let args: [Value<f64>; 2] = [w.clone().into(), columns.into()];
        let expected = interpreted.call(&args).unwrap();
        for level in [None, Some(Level::Avx2)] {
            let options = CompileOptions { backend: Backend::Native, level, ..CompileOptions::default() };
            assert_eq!(f.compile_with(&options).unwrap().call(&args).unwrap(), expected, "{n} {level:?}");
        }
        let sequential = in_order.call(&args).unwrap();
        for (a, b) in expected.iter().flat_map(Value::reals).zip(sequential.iter().flat_map(Value::reals)) {
            assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{n}: {a}, in order {b}");
        }
    }
}

/// Programs in which an integer does not fit, with arguments, and the line that computes it.
fn overflows() -> Vec<(&'static str, Vec<Value<f64>>, usize)> {
    let large = Value::Int(4_000_000_000);
    let many = || reals(&[0.5; 67]);
    vec![
        (
            "let f = fun (i : Int) (x : Double) ->\n  let k = i * i * i in\n  x * real k",
            vec![large.clone(), Value::Real(1.0)],
            2,
        ),
        (
            "let f = fun (k : Int) (x : [n]Double) ->\n  build n (fun i ->\n    x[mod (i * k * k) n])",
            vec![large.clone(), many()],
            3,
        ),
        (
            "let f = fun (k : Int) (x : [n]Double) ->\n  sum n (fun i -> x[i] *\n    real (i * k * k))",
            vec![large.clone(), many()],
            3,
        ),
        (
            "let f = fun (k : Int) (x : [n]Double) ->\n  x[0] +\n    sum (k * k * k) (fun i -> x[mod i n])",
            vec![large.clone(), many()],
            3,
        ),
        (
            "let f = fun (k : Int) (x : Double) ->\n  x + while (fun s -> s > 1)\n    (fun s -> s / 2) x (k * k)",
            vec![large.clone(), Value::Real(2.0)],
            2,
        ),
        ("let f = fun (k : [n]Int) ->\n  build n (fun i ->\n    k[i] * k[i] + 3)", vec![ints(&[1, 4_000_000_000])], 3),
        (
            "let f = fun (k : [n]Int) (x : Double) ->\n  ifold (fun (s : (Int, Double)) i ->\n    (s.0 * k[i], s.1 + x)) (1, x) n",
            vec![ints(&[4_000_000_000; 3]), Value::Real(1.0)],
            3,
        ),
        (
            "let cube = fun (i : Int) -> i * i * i\nlet f = fun (k : Int) (x : [n]Double) ->\n  if x[0] > 1 then sum n (fun i -> x[i]) else x[mod (cube k) n]",
            vec![large, many()],
            1,
        ),
    ]
}

#[test]
fn an_integer_that_does_not_fit_names_its_line_on_every_backend_and_after_saving() {
    for (text, args, line) in overflows() {
        let module = Module::from_text("f.ft", text).unwrap();
        let function = module.function("f").unwrap();
        let place = format!("f.ft:{line}:");
        let is_explained = |message: &str| {
            message.contains("an integer does not fit into 64 bits")
                && message.contains(&place)
                && message.contains("`f`")
        };
        let interpreted = with(&function, Backend::Interpreter).call(&args).unwrap_err().to_string();
        assert!(is_explained(&interpreted), "{interpreted}");
        for backend in machine_code() {
            let compiled = with(&function, *backend);
            assert_eq!(compiled.call(&args).unwrap_err().to_string(), interpreted, "{backend:?}");
            for bytes in [compiled.to_bytes().unwrap(), compiled.to_bytes_with_sources().unwrap()] {
                let loaded = Compiled::from_bytes(&bytes).unwrap();
                let message = loaded.call(&args).unwrap_err().to_string();
                assert!(is_explained(&message), "{message}");
            }
        }
    }
}
