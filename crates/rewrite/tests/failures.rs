//! Failures: none is added, in loops that do not run, in branches that are not taken; those of used values stay.

use chainrule_base::Kind;
use chainrule_ir::{Builder, Function, Size, Type, Value, VarId, evaluate, print};
use chainrule_ops::{F64, Op};
use chainrule_rewrite::{Options, optimise};

struct Made {
    b: Builder,
    n: Size,
    v: VarId,
    i: VarId,
    c: VarId,
}

fn program(body: impl FnOnce(&mut Made) -> VarId) -> Function {
    let mut b = Builder::new("f");
    let n = b.size_param("n");
    let n = b.size_of(n);
    let v = b.param("v", Type::array(n.clone(), Type::Double));
    let (i, c) = (b.param("i", Type::Int), b.param("c", Type::Bool));
    let mut made = Made { b, n, v, i, c };
    let result = body(&mut made);
    made.b.finish(result)
}

/// Returns the results of `f` and of the optimised `f` for a vector of `n` elements, the index `i` and the condition
/// `c`: a value, or the kind of failure.
fn both(f: &Function, n: usize, i: i64, c: bool) -> [Result<Value<f64>, Kind>; 2] {
    let args = [vec![1.5; n].into(), Value::Int(i), Value::Bool(c)];
    [false, true].map(|optimised| {
        let g = if optimised { optimise(f, &Options::default()).0 } else { f.clone() };
        evaluate(&g, &mut F64, &args).map_err(|failure| failure.kind)
    })
}

fn agree(f: &Function, n: usize, i: i64, c: bool) -> Result<Value<f64>, Kind> {
    let [expected, found] = both(f, n, i, c);
    assert_eq!(expected, found, "{n} elements, index {i}, {c}\n{}", print(&optimise(f, &Options::default()).0));
    found
}

#[test]
fn an_index_that_is_checked_stays_in_a_loop_that_may_not_run() {
    let f = program(|p| {
        let (v, i) = (p.v, p.i);
        p.b.sum(p.n.clone(), |b, j| {
            let (x, y) = (b.get(v, i), b.get_proved(v, j));
            b.op(Op::Mul, &[x, y])
        })
    });
    assert_eq!(agree(&f, 0, 7, true), Ok(Value::Real(0.0)));
    assert_eq!(agree(&f, 2, 1, true), Ok(Value::Real(4.5)));
    assert_eq!(agree(&f, 2, 7, true), Err(Kind::Error));
}

#[test]
fn a_remainder_that_has_a_value_proves_no_index() {
    let f = program(|p| {
        let (v, n) = (p.v, p.n.clone());
        let last = |b: &mut Builder| b.size(n.sub(&Size::constant(1)));
        // In range because the loop runs.
        let array = p.b.build(n.clone(), |b, _| {
            let last = last(b);
            b.get_proved(v, last)
        });
        let three = p.b.build(Size::constant(3), |b, i| {
            let length = b.size(n.clone());
            let at = b.op(Op::Mod, &[i, length]);
            b.get(array, at)
        });
        p.b.build(n.clone(), |b, _| {
            let one = b.int(1);
            b.get_proved(three, one)
        })
    });
    // The remainder by 0, and no element that was proved by it.
    assert_eq!(agree(&f, 0, 0, true), Err(Kind::Error));
    assert_eq!(agree(&f, 2, 0, true), Ok(vec![1.5; 2].into()));
}

#[test]
fn an_index_that_a_loop_proves_stays_inside_it() {
    let f = program(|p| {
        let (v, n) = (p.v, p.n.clone());
        let first = |b: &mut Builder, j: VarId| {
            let zero = b.int(0);
            let (x, y) = (b.get_proved(v, zero), b.get_proved(v, j));
            b.op(Op::Sub, &[x, y])
        };
        let array = p.b.build(n.clone(), first);
        let sum = p.b.sum(n.clone(), first);
        let hot = p.b.sum(n.clone(), |b, j| {
            let zero = b.int(0);
            let x = b.get_proved(v, j);
            b.one_hot_proved(n, zero, x)
        });
        p.b.tuple(&[array, sum, hot])
    });
    assert!(agree(&f, 0, 0, true).is_ok());
    assert!(agree(&f, 1, 0, true).is_ok());
    assert!(agree(&f, 3, 0, true).is_ok());
}

#[test]
fn what_stands_in_a_branch_runs_only_there() {
    let f = program(|p| {
        let (v, i, c) = (p.v, p.i, p.c);
        p.b.build(p.n.clone(), |b, j| {
            b.if_(
                c,
                |b| {
                    let x = b.get(v, i);
                    b.op(Op::Sin, &[x])
                },
                |b| b.get_proved(v, j),
            )
        })
    });
    assert!(agree(&f, 2, 9, false).is_ok());
    assert_eq!(agree(&f, 2, 9, true), Err(Kind::Error));
    assert!(agree(&f, 0, 9, true).is_ok());
}

#[test]
fn remainders_by_zero_and_steps_without_end_stay_where_they_were() {
    let f = program(|p| {
        let (v, i) = (p.v, p.i);
        p.b.sum(p.n.clone(), |b, j| {
            let rest = b.op(Op::Mod, &[j, i]);
            let (x, rest) = (b.get_proved(v, j), b.to_real(rest));
            b.op(Op::Mul, &[x, rest])
        })
    });
    assert_eq!(agree(&f, 0, 0, true), Ok(Value::Real(0.0)));
    assert_eq!(agree(&f, 2, 0, true), Err(Kind::Error));
    let endless = program(|p| {
        let (x, c) = (p.b.real(1.0), p.c);
        p.b.sum(p.n.clone(), |b, _| b.while_(Size::constant(3), x, |_, _| c, |b, s| b.op(Op::Sin, &[s])))
    });
    assert_eq!(agree(&endless, 0, 0, true), Ok(Value::Real(0.0)));
    assert_eq!(agree(&endless, 2, 0, true), Err(Kind::Error));
    assert_eq!(agree(&endless, 2, 0, false), Ok(Value::Real(2.0)));
}

#[test]
fn a_number_that_an_outer_loop_computes_again_is_not_kept_before_its_index_is_known_to_be_good() {
    // sum n (fun j -> sum k (fun l -> exp v[l] * v[j])), with l checked: k may be more than n.
    let f = program(|p| {
        let (v, count) = (p.v, Size::var(p.i));
        p.b.sum(p.n.clone(), |b, j| {
            let y = b.get_proved(v, j);
            b.sum(count, |b, l| {
                let x = b.get(v, l);
                let e = b.op(Op::Exp, &[x]);
                b.op(Op::Mul, &[e, y])
            })
        })
    });
    assert_eq!(agree(&f, 0, 5, true), Ok(Value::Real(0.0)));
    assert_eq!(agree(&f, 2, 5, true), Err(Kind::Error));
    assert_eq!(agree(&f, 2, -1, true), Ok(Value::Real(0.0)));
    let [Ok(Value::Real(a)), Ok(Value::Real(b))] = both(&f, 2, 2, true) else { panic!("values") };
    assert!((a - b).abs() < 1e-12);
}

#[test]
fn integers_that_are_natural_only_where_a_loop_runs_are_not_outside_of_it() {
    // An array of this length: it only needs n >= 1 from the enclosing loop.
    for op in [Op::Quot, Op::Max, Op::Min] {
        let f = program(|p| {
            let (v, i, n) = (p.v, p.i, p.n.clone());
            p.b.sum(n.clone(), |b, j| {
                let (last, one) = (b.size(n.sub(&Size::constant(1))), b.int(1));
                let less = b.op(Op::Sub, &[last, one]);
                let many = match op {
                    Op::Quot => b.op(op, &[last, one]),
                    Op::Max => b.op(op, &[last, i]),
                    _ => {
                        let next = b.op(Op::Add, &[last, one]);
                        let least = b.op(Op::Max, &[less, last]);
                        b.op(op, &[least, next])
                    }
                };
                let y = b.get_proved(v, j);
                let array = b.build(Size::var(many), |b, k| {
                    let k = b.to_real(k);
                    b.op(Op::Exp, &[k])
                });
                let total = b.sum(Size::var(many), |b, k| b.get_proved(array, k));
                b.op(Op::Mul, &[total, y])
            })
        });
        assert_eq!(agree(&f, 0, -3, true), Ok(Value::Real(0.0)), "{op:?}");
        assert_eq!(agree(&f, 1, -3, true), Ok(Value::Real(0.0)), "{op:?}");
        assert!(agree(&f, 3, -3, true).is_ok(), "{op:?}");
    }
}

#[test]
fn an_element_that_is_written_outside_fails() {
    for outside in [-1, 3] {
        // The state is written at `outside + 0`, where the 0 is read at `outside`.
        let f = program(|p| {
            let v = p.v;
            let zeros = p.b.build(p.n.clone(), |b, _| b.int(0));
            let outside = p.b.int(outside);
            let zero = p.b.get(zeros, outside);
            let at = p.b.op(Op::Add, &[outside, zero]);
            p.b.build(p.n.clone(), |b, k| {
                let is_it = b.op(Op::Eq, &[k, at]);
                b.if_(is_it, |b| b.real(5.0), |b| b.get_proved(v, k))
            })
        });
        assert_eq!(agree(&f, 3, 0, true), Err(Kind::Error));
    }
}
