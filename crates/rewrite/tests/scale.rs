//! Long programs stay linear: no rule repeats the walk of another, and nothing is recursive on length.

use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_ir::{Builder, Function, Size, Type, VarId, verify};
use chainrule_ops::{Op, Semantics};
use chainrule_rewrite::{Options, StopReason, check, optimise};

fn statements(function: &Function) -> usize {
    fn of(block: &chainrule_ir::Block) -> usize {
        block.stmts.iter().map(|stmt| 1 + stmt.expr.blocks().into_iter().map(of).sum::<usize>()).sum()
    }
    of(&function.body)
}

fn optimised(function: &Function) -> Function {
    let (optimised, report) = optimise(function, &Options::default());
    assert_eq!(verify(&optimised), Ok(()));
    assert!(report.after <= report.before);
    optimised
}

fn on_a_vector(body: impl FnOnce(&mut Builder, &Size, VarId) -> VarId) -> Function {
    let mut b = Builder::new("f");
    let n = b.size_param("n");
    let n = b.size_of(n);
    let v = b.param("v", Type::array(n.clone(), Type::Double));
    let result = body(&mut b, &n, v);
    b.finish(result)
}

#[test]
fn a_chain_of_lets_used_twice_each_stays_a_chain() {
    let mut b = Builder::new("f");
    let mut x = b.param("x", Type::Double);
    for _ in 0..200 {
        let sine = b.op(Op::Sin, &[x]);
        x = b.op(Op::Mul, &[sine, x]);
    }
    let f = b.finish(x);
    assert_eq!(statements(&optimised(&f)), 400);
}

#[test]
fn a_chain_of_arrays_used_twice_each_does_not_grow() {
    let at_once = on_a_vector(|b, n, mut v| {
        for _ in 0..200 {
            v = b.build(n.clone(), |b, i| {
                let (x, y) = (b.get_proved(v, i), b.get_proved(v, i));
                b.op(Op::Mul, &[x, y])
            });
        }
        v
    });
    // One loop remains: each element is the square of the previous one.
    assert!(statements(&optimised(&at_once)) < 450);
    let backwards = on_a_vector(|b, n, mut v| {
        for _ in 0..200 {
            v = b.build(n.clone(), |b, i| {
                let (one, end) = (b.int(1), b.size(n.clone()));
                let last = b.op(Op::Sub, &[end, one]);
                let j = b.op(Op::Sub, &[last, i]);
                let (x, y) = (b.get_proved(v, i), b.get_proved(v, j));
                b.op(Op::Mul, &[x, y])
            });
        }
        v
    });
    let optimised = optimised(&backwards);
    assert!(statements(&optimised) <= 2 * statements(&backwards), "{}", statements(&optimised));
}

#[test]
fn programs_of_thousands_of_statements_are_optimised() {
    let long = on_a_vector(|b, n, v| {
        let mut sums = Vec::new();
        for k in 0..700 {
            let c = b.real(f64::from(k));
            sums.push(b.sum(n.clone(), |b, i| {
                let x = b.get_proved(v, i);
                let y = b.op(Op::Add, &[x, c]);
                b.op(Op::Sin, &[y])
            }));
        }
        b.array(&sums)
    });
    assert!(statements(&optimised(&long)) < 4 * statements(&long));
    let mut b = Builder::new("f");
    let mut x = b.param("x", Type::Double);
    let y = b.param("y", Type::Double);
    for k in 0..20_000 {
        x = b.op([Op::Add, Op::Mul, Op::Sub][k % 3], &[x, y]);
    }
    let f = b.finish(x);
    assert_eq!(statements(&optimised(&f)), 20_000);
}

/// Returns a program of `k` lines of each kind: elements, sums over them, and the vectors and numbers made of both.
/// Every vector is used twice, the first by all.
fn lines(k: usize) -> Function {
    on_a_vector(|b, n, v| {
        let (mut now, mut total) = (v, b.real(0.0));
        for j in 0..k {
            let c = b.real(0.5 + j as f64);
            let waves = b.build(n.clone(), |b, i| {
                let (x, w) = (b.get_proved(now, i), b.get_proved(v, i));
                let s = b.op(Op::Sin, &[x]);
                let y = b.op(Op::Mul, &[s, w]);
                b.op(Op::Add, &[y, c])
            });
            let sum = b.sum(n.clone(), |b, i| {
                let (x, w) = (b.get_proved(waves, i), b.get_proved(v, i));
                b.op(Op::Mul, &[x, w])
            });
            now = b.build(n.clone(), |b, i| {
                let x = b.get_proved(waves, i);
                b.op(Op::Mul, &[x, sum])
            });
            let e = b.op(Op::Exp, &[sum]);
            total = b.op(Op::Add, &[total, e]);
        }
        let last = b.sum(n.clone(), |b, i| b.get_proved(now, i));
        b.op(Op::Add, &[total, last])
    })
}

/// Returns a vector to which `k` others are added in sequence, as reverse mode adds up the uses of a parameter.
fn added(k: usize) -> Function {
    on_a_vector(|b, n, v| {
        let mut now = v;
        for j in 0..k {
            let c = b.real(0.5 + j as f64);
            now = b.build(n.clone(), |b, i| {
                let (x, y) = (b.get_proved(now, i), b.get_proved(v, i));
                let scaled = b.op(Op::Mul, &[y, c]);
                let term = b.op(Op::Sin, &[scaled]);
                b.op(Op::Add, &[x, term])
            });
        }
        now
    })
}

/// Returns `k` vectors and sums over them: each vector is made from the previous one and the current sum, each of which
/// is used twice.
fn vectors_and_sums(k: usize) -> Function {
    on_a_vector(|b, n, v| {
        let (mut now, mut total) = (v, b.sum(n.clone(), |b, i| b.get_proved(v, i)));
        for _ in 0..k {
            now = b.build(n.clone(), |b, i| {
                let (x, w) = (b.get_proved(now, i), b.get_proved(v, i));
                let product = b.op(Op::Mul, &[x, w]);
                let scaled = b.op(Op::Mul, &[x, total]);
                let wave = b.op(Op::Sin, &[scaled]);
                b.op(Op::Add, &[product, wave])
            });
            let sum = b.sum(n.clone(), |b, i| b.get_proved(now, i));
            let square = b.op(Op::Mul, &[total, total]);
            total = b.op(Op::Add, &[sum, square]);
        }
        total
    })
}

/// Returns a chain of `k` vectors, each made from the elements of the previous one, and the sum of the last.
fn elementwise(k: usize) -> Function {
    on_a_vector(|b, n, v| {
        let mut now = v;
        for j in 0..k {
            let c = b.real(0.5 + (j % 9) as f64);
            now = b.build(n.clone(), |b, i| {
                let x = b.get_proved(now, i);
                let wave = b.op(Op::Sin, &[x]);
                let product = b.op(Op::Mul, &[wave, x]);
                b.op(Op::Add, &[product, c])
            });
        }
        b.sum(n.clone(), |b, i| b.get_proved(now, i))
    })
}

/// Returns a vector that is replaced `k` times: in a branch, by another one if it is not taken, and then by a loop;
/// `last` selects whether the other one is the previous vector, or always the first.
fn chosen(k: usize, last: bool) -> Function {
    on_a_vector(|b, n, v| {
        let mut now = v;
        for j in 0..k {
            let c = b.real(0.5 + j as f64);
            // Independent conditions.
            let limit = b.real(0.25 * j as f64);
            let size = b.size(n.clone());
            let size = b.to_real(size);
            let condition = b.op(Op::Lt, &[size, limit]);
            let before = now;
            let array = b.if_(
                condition,
                |b| {
                    b.build(n.clone(), |b, i| {
                        let x = b.get_proved(before, i);
                        let y = b.op(Op::Add, &[x, c]);
                        b.op(Op::Sin, &[y])
                    })
                },
                |_| if last { before } else { v },
            );
            now = b.build(n.clone(), |b, i| {
                let x = b.get_proved(array, i);
                let y = b.op(Op::Mul, &[x, x]);
                b.op(Op::Cos, &[y])
            });
        }
        now
    })
}

/// Returns the reverse-mode gradient of `f`, a function of one vector, with its value.
fn gradient(f: &Function) -> Function {
    derived(f, vec![Part::Value, Part::Gradient])
}

fn derived(f: &Function, parts: Vec<Part>) -> Function {
    let request = Request { parts, by: vec![], mode: Mode::Reverse, checkpoints: None };
    derive(f, &request).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_work_of_ten_times_the_program_is_ten_times_the_work() {
    type Family = (&'static str, fn(usize) -> Function);
    let long = &[20, 200, 2000];
    let families: [(Family, &[usize]); 9] = [
        (("lines", lines), long),
        (("gradients of lines", |k| gradient(&lines(k))), long),
        (("vectors added up", added), long),
        (("vectors made in branches", |k| chosen(k, false)), long),
        (("vectors made in branches, or the one before", |k| chosen(k, true)), long),
        (("gradients of vectors and sums", |k| gradient(&vectors_and_sums(k))), &[20, 200]),
        (("gradients of chains", |k| derived(&elementwise(k), vec![Part::Gradient])), &[60, 600]),
        (("Hessians of chains", |k| derived(&elementwise(k), vec![Part::Hessian])), &[60, 600]),
        (("Hessians of lines times a direction", |k| derived(&lines(k), vec![Part::Hvp])), &[60, 600]),
    ];
    for ((name, family), sizes) in families {
        let work: Vec<(f64, usize)> = (sizes.iter())
            .map(|k| {
                let (found, report) = optimise(&family(*k), &Options::default());
                assert!(report.after <= report.before, "{name}");
                assert_ne!(report.stop, StopReason::Budget, "{name} of {k}\n{report}");
                (report.work as f64, statements(&found))
            })
            .collect();
        for pair in work.windows(2) {
            let exponent = (pair[1].0 / pair[0].0).log10();
            assert!(exponent < 1.05, "{name}: the work grows with exponent {exponent}: {work:?}");
            assert!(pair[1].1 < 11 * pair[0].1, "{name}: {work:?}");
        }
    }
}

#[test]
fn what_uses_arrays_made_in_branches_moves_into_them_and_doubles_once() {
    for last in [true, false] {
        let f = chosen(200, last);
        let (found, report) = optimise(&f, &Options::default());
        assert_eq!(verify(&found), Ok(()));
        // If the previous vector is only used in one branch, it is made there.
        assert_eq!(report.times("branches"), if last { 200 } else { 1 }, "{report}");
        assert!(statements(&found) <= 3 * statements(&f), "{} of {}", statements(&found), statements(&f));
        for semantics in [Semantics::Algebraic, Semantics::Strict] {
            let options = Options { semantics, ..Options::default() };
            let args = [vec![0.5, -1.0, 0.25, 3.0].into()];
            assert_eq!(check::optimised(&chosen(12, last), &args, &options).map(|found| found.2), Ok(true));
        }
    }
}

#[test]
fn a_chain_of_builds_that_vanish_is_one_loop_however_long_it_is() {
    let (found, report) = optimise(&added(3000), &Options::default());
    assert_eq!(verify(&found), Ok(()));
    let loops = found.body.stmts.iter().filter(|stmt| !stmt.expr.blocks().is_empty()).count();
    assert_eq!((loops, report.times("fuse")), (1, 2999));
    let f = added(40);
    let args = [vec![0.5, -1.0, f64::INFINITY, f64::NAN].into()];
    let strict = Options { semantics: Semantics::Strict, ..Options::default() };
    assert_eq!(check::optimised(&f, &args, &strict).map(|found| found.2), Ok(true));
}

#[test]
fn a_chain_that_reverse_mode_takes_again_vanishes_as_a_whole() {
    for k in [40, 400] {
        let (found, report) = optimise(&derived(&elementwise(k), vec![Part::Gradient]), &Options::default());
        assert_eq!(verify(&found), Ok(()));
        let loops = found.body.stmts.iter().filter(|stmt| !stmt.expr.blocks().is_empty()).count();
        assert_eq!(loops, 1, "{report}");
    }
    let args = [vec![0.5, -1.0, 0.25, 3.0].into()];
    for semantics in [Semantics::Algebraic, Semantics::Strict] {
        let options = Options { semantics, ..Options::default() };
        assert_eq!(
            check::optimised(&derived(&elementwise(30), vec![Part::Gradient]), &args, &options).map(|found| found.2),
            Ok(true)
        );
    }
}

/// Beyond the limit of masks, the index at which an element does not vanish is still found.
#[test]
fn the_hessian_of_a_chain_is_its_diagonal_however_long_it_is() {
    for k in [5, 50, 500] {
        let (found, report) = optimise(&derived(&elementwise(k), vec![Part::Hessian]), &Options::default());
        assert_eq!(verify(&found), Ok(()));
        // Each element is made once, and the only work for each of its row is to write it.
        assert!(report.symbolic.1.ends_with("4*n*n"), "{k}: {}", report.symbolic.1);
        assert!(report.times("build-one-hot") > 0, "{k}: {report}");
    }
    let f = derived(&elementwise(20), vec![Part::Hessian]);
    let args = [vec![0.5, -1.0, 0.25, 3.0].into()];
    assert_eq!(check::optimised(&f, &args, &Options::default()).map(|found| found.2), Ok(true));
}

#[test]
fn a_program_in_which_nothing_is_found_is_written_twice() {
    let mut b = Builder::new("f");
    let (mut x, y) = (b.param("x", Type::Double), b.param("y", Type::Double));
    for _ in 0..1000 {
        let s = b.op(Op::Sin, &[x]);
        x = b.op(Op::Mul, &[s, y]);
    }
    let f = b.finish(x);
    let (_, report) = optimise(&f, &Options::default());
    // The statements, and their operands.
    let once = 1000 * (2 + 3) as u64;
    assert!(report.work <= 2 * once, "{} of {once}", report.work);
}

#[test]
fn the_same_function_gives_the_same_program_and_names_are_unique() {
    let f = on_a_vector(|b, n, v| {
        let scaled = b.build(n.clone(), |b, i| {
            let x = b.get_proved(v, i);
            let y = b.op(Op::Exp, &[x]);
            b.tuple(&[x, y])
        });
        let sums = [0, 1].map(|k| {
            b.sum(n.clone(), |b, i| {
                let pair = b.get_proved(scaled, i);
                b.component(pair, k)
            })
        });
        b.tuple(&sums)
    });
    let (first, report) = optimise(&f, &Options::default());
    let (again, same_report) = optimise(&f, &Options::default());
    assert_eq!((&first, &report), (&again, &same_report));
    let mut names: Vec<&str> = chainrule_rewrite::engine::names().into_iter().map(|(name, _)| name).collect();
    for (name, _) in &report.applied {
        assert!(names.contains(name), "{name}");
    }
    let n_names = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(n_names - names.len(), 5, "only steps that are passes too share names");
}
