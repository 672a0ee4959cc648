//! The reference evaluator on hand-written programs: every construct, with its expected values.

use chainrule_ir::{Builder, Expr, Function, Size, Type, Value, VarId, evaluate, verify};
use chainrule_ops::{F64, Op};

type V = Value<f64>;

fn run(function: &Function, args: &[V]) -> Result<V, String> {
    if let Err(found) = verify(function) {
        panic!("{found:#?}");
    }
    evaluate(function, &mut F64, args).map_err(|failure| failure.message)
}

fn value(function: &Function, args: &[V]) -> V {
    run(function, args).unwrap_or_else(|message| panic!("{message}"))
}

fn pair(a: f64, b: f64) -> V {
    Value::Tuple(vec![a.into(), b.into()])
}

// fun (x : Double) -> body
fn of_real(body: impl FnOnce(&mut Builder, VarId) -> VarId) -> Function {
    let mut b = Builder::new("f");
    let x = b.param("x", Type::Double);
    let result = body(&mut b, x);
    b.finish(result)
}

// fun (v : [n]Double) -> body
fn of_vector(body: impl FnOnce(&mut Builder, VarId) -> VarId) -> Function {
    let mut b = Builder::new("f");
    let n = b.size_param("n");
    let n = b.size_of(n);
    let v = b.param("v", Type::array(n, Type::Double));
    let result = body(&mut b, v);
    b.finish(result)
}

// fun (i : Int) -> body
fn of_int(body: impl FnOnce(&mut Builder, VarId) -> VarId) -> Function {
    let mut b = Builder::new("f");
    let i = b.param("i", Type::Int);
    let result = body(&mut b, i);
    b.finish(result)
}

fn truth(b: &mut Builder, condition: bool) -> VarId {
    b.bool(condition)
}

#[test]
fn scalars() {
    let f = of_real(|b, x| {
        let two = b.real(2.0);
        let p = b.op(Op::Mul, &[x, two]);
        b.op(Op::Sub, &[p, two])
    });
    assert_eq!(value(&f, &[5.0.into()]), 8.0.into());
    let f = of_int(|b, i| {
        let three = b.int(3);
        let (q, m) = (b.op(Op::Quot, &[i, three]), b.op(Op::Mod, &[i, three]));
        let less = b.op(Op::Lt, &[i, three]);
        let real = b.to_real(i);
        b.tuple(&[q, m, less, real])
    });
    assert_eq!(value(&f, &[(-7).into()]), Value::Tuple(vec![(-3).into(), 2.into(), true.into(), (-7.0).into()]));
}

#[test]
fn booleans_and_select() {
    let f = of_real(|b, x| {
        let zero = b.real(0.0);
        let positive = b.op(Op::Lt, &[zero, x]);
        let not = b.op(Op::Not, &[positive]);
        let t = truth(b, true);
        let both = b.op(Op::And, &[positive, t]);
        let either = b.op(Op::Or, &[not, both]);
        let chosen = b.op(Op::Select, &[positive, x, zero]);
        b.tuple(&[both, either, chosen])
    });
    let result = |a, b, c: f64| Value::Tuple(vec![Value::Bool(a), Value::Bool(b), c.into()]);
    assert_eq!(value(&f, &[3.0.into()]), result(true, true, 3.0));
    assert_eq!(value(&f, &[(-3.0).into()]), result(false, true, 0.0));
}

#[test]
fn builds_nest_and_may_be_empty() {
    // build n (fun i -> build n (fun j -> v[i] - v[j]))
    let f = of_vector(|b, v| {
        let n = b.length(v);
        b.build(n.clone(), |b, i| {
            b.build(n, |b, j| {
                let (vi, vj) = (b.get(v, i), b.get_proved(v, j));
                b.op(Op::Sub, &[vi, vj])
            })
        })
    });
    assert_eq!(value(&f, &[vec![5.0, 3.0].into()]), vec![vec![0.0, 2.0], vec![-2.0, 0.0]].into());
    assert_eq!(value(&f, &[vec![5.0].into()]), vec![vec![0.0]].into());
    assert_eq!(value(&f, &[Value::Array(vec![])]), Value::Array(vec![]));
}

#[test]
fn folds_and_sums() {
    let f = of_vector(|b, v| {
        let n = b.length(v);
        let (zero, one) = (b.real(0.0), b.real(1.0));
        let init = b.tuple(&[zero, one]);
        let both = b.fold(n.clone(), init, |b, state, i| {
            let (sum, product) = (b.component(state, 0), b.component(state, 1));
            let x = b.get(v, i);
            let sum = b.op(Op::Add, &[sum, x]);
            let product = b.op(Op::Mul, &[product, x]);
            b.tuple(&[sum, product])
        });
        let sum = b.sum(n, |b, i| {
            let (x, i) = (b.get(v, i), b.to_real(i));
            b.op(Op::Mul, &[x, i])
        });
        b.tuple(&[both, sum])
    });
    let result = |a, b, c: f64| Value::Tuple(vec![pair(a, b), c.into()]);
    assert_eq!(value(&f, &[vec![2.0, 3.0, 4.0].into()]), result(9.0, 24.0, 11.0));
    assert_eq!(value(&f, &[vec![7.0].into()]), result(7.0, 7.0, 0.0));
    assert_eq!(value(&f, &[Value::Array(vec![])]), result(0.0, 1.0, 0.0));
    // A negative count means no step.
    let f = of_int(|b, i| {
        let count = b.size_of(i);
        let init = b.real(1.0);
        let folded = b.fold(count.clone(), init, |b, _, i| b.to_real(i));
        let summed = b.sum(count, Builder::to_real);
        b.op(Op::Sub, &[folded, summed])
    });
    assert_eq!(value(&f, &[(-4).into()]), 1.0.into());
    assert_eq!(value(&f, &[4.into()]), (-3.0).into());
}

// The square root of x by Heron's method, at most `limit` steps.
fn heron(limit: i64) -> Function {
    of_real(|b, x| {
        let one = b.real(1.0);
        b.while_(
            Size::constant(limit),
            one,
            |b, s| {
                let square = b.op(Op::Mul, &[s, s]);
                let error = b.op(Op::Sub, &[square, x]);
                let error = b.op(Op::Abs, &[error]);
                let tolerance = b.real(1e-12);
                b.op(Op::Lt, &[tolerance, error])
            },
            |b, s| {
                let half = b.real(0.5);
                let ratio = b.op(Op::Div, &[x, s]);
                let twice = b.op(Op::Add, &[s, ratio]);
                b.op(Op::Mul, &[half, twice])
            },
        )
    })
}

#[test]
fn while_stops_or_says_that_it_does_not() {
    let Value::Real(root) = value(&heron(50), &[2.0.into()]) else { panic!("a number") };
    assert!((root - 2.0_f64.sqrt()).abs() < 1e-12);
    assert_eq!(value(&heron(0), &[1.0.into()]), 1.0.into());
    assert_eq!(value(&heron(-3), &[1.0.into()]), 1.0.into());
    assert_eq!(run(&heron(2), &[2.0.into()]).unwrap_err(), "a `while` has not come to its end after 2 steps");
}

#[test]
fn the_branch_not_taken_is_not_computed() {
    // if i < 1 then v[0] else v[1], on a vector of one element
    let mut b = Builder::new("f");
    let v = b.param("v", Type::array(Size::constant(1), Type::Double));
    let i = b.param("i", Type::Int);
    let one = b.int(1);
    let condition = b.op(Op::Lt, &[i, one]);
    let result = b.if_(
        condition,
        |b| {
            let zero = b.int(0);
            b.get(v, zero)
        },
        |b| b.get(v, one),
    );
    let f = b.finish(result);
    assert_eq!(value(&f, &[vec![4.0].into(), 0.into()]), 4.0.into());
    assert_eq!(run(&f, &[vec![4.0].into(), 1.into()]).unwrap_err(), "index 1 is out of range for an array of 1");
}

#[test]
fn arrays_records_and_components() {
    let f = of_real(|b, x| {
        let y = b.op(Op::Neg, &[x]);
        let a = b.array(&[x, y]);
        let record = b.record(["list".into(), "first".into()].into(), &[a, x]);
        let list = b.component(record, 0);
        let one = b.int(1);
        let last = b.get(list, one);
        b.tuple(&[record, last])
    });
    let record = Value::Tuple(vec![vec![2.0, -2.0].into(), 2.0.into()]);
    assert_eq!(value(&f, &[2.0.into()]), Value::Tuple(vec![record, (-2.0).into()]));
}

#[test]
fn integers_fail_where_they_have_no_value() {
    let f = of_int(|b, i| {
        let zero = b.int(0);
        b.op(Op::Quot, &[zero, i])
    });
    assert_eq!(run(&f, &[0.into()]).unwrap_err(), "integer division by zero");
    let f = of_int(|b, i| b.compute(Expr::op(Op::Mul, &[i, i])));
    assert_eq!(run(&f, &[i64::MAX.into()]).unwrap_err(), "integer overflow");
    let f = of_int(|b, i| b.op(Op::Mul, &[i, i]));
    assert_eq!(run(&f, &[i64::MAX.into()]).unwrap_err(), "integer overflow");
    let f = of_int(|b, i| {
        let n = b.size_of(i);
        b.build(n, |b, _| b.real(0.0))
    });
    assert_eq!(run(&f, &[(-1).into()]).unwrap_err(), "an array of -1 elements is built");
    let f = of_vector(|b, v| {
        let minus = b.int(-1);
        b.get(v, minus)
    });
    assert_eq!(run(&f, &[vec![1.0].into()]).unwrap_err(), "index -1 is out of range for an array of 1");
}

#[test]
fn arguments_that_do_not_fit_are_failures() {
    let f = of_vector(|_, v| v);
    assert_eq!(run(&f, &[]).unwrap_err(), "`f` takes 1 argument and is given 0: its parameters are: v");
    assert_eq!(run(&f, &[1.0.into()]).unwrap_err(), "`v` is a number where [n]Double is needed");
}

// forward (fun x -> body) x 1
fn derivative(b: &mut Builder, x: VarId, body: impl FnOnce(&mut Builder, VarId) -> VarId) -> VarId {
    let one = b.real(1.0);
    let dual = b.jvp(&[x], &[one], |b, params| body(b, params[0]));
    b.component(dual, 1)
}

#[test]
fn a_derivative_of_every_construct() {
    // forward (fun v -> build n (fun i -> (sum over j of v[j]) * fold of products)) v w
    let mut b = Builder::new("f");
    let n = b.size_param("n");
    let n = b.size_of(n);
    let v = b.param("v", Type::array(n.clone(), Type::Double));
    let w = b.param("w", Type::array(n.clone(), Type::Double));
    let result = b.jvp(&[v], &[w], |b, params| {
        let v = params[0];
        let one = b.real(1.0);
        let product = b.fold(n.clone(), one, |b, s, i| {
            let x = b.get(v, i);
            b.op(Op::Mul, &[s, x])
        });
        let sum = b.sum(n.clone(), |b, i| b.get(v, i));
        let zero = b.real(0.0);
        let positive = b.op(Op::Lt, &[zero, sum]);
        let size = b.size(n.clone());
        let scaled = b.if_(
            positive,
            |b| {
                let n = b.to_real(size);
                b.op(Op::Mul, &[sum, n])
            },
            |b| b.op(Op::Log, &[sum]),
        );
        let list = b.array(&[product, scaled]);
        b.tuple(&[list, size, positive])
    });
    let f = b.finish(result);
    let at = |v: [f64; 2], w: [f64; 2]| value(&f, &[v.to_vec().into(), w.to_vec().into()]);
    let dual = |a: [f64; 2], b: [f64; 2]| {
        let list = Value::Array(vec![pair(a[0], a[1]), pair(b[0], b[1])]);
        Value::Tuple(vec![list, 2.into(), true.into()])
    };
    assert_eq!(at([3.0, 5.0], [1.0, 0.0]), dual([15.0, 5.0], [16.0, 2.0]));
    assert_eq!(at([3.0, 5.0], [2.0, -1.0]), dual([15.0, 7.0], [16.0, 2.0]));
}

#[test]
fn a_while_is_differentiated_step_by_step() {
    let mut b = Builder::new("f");
    let x = b.param("x", Type::Double);
    let body = heron(60);
    let result = derivative(&mut b, x, |b, x| {
        let mut renaming = [(body.params[0], x)].into_iter().collect();
        b.inline_from(&body.vars, &body.body, &mut renaming)
    });
    let f = b.finish(result);
    let Value::Real(slope) = value(&f, &[2.0.into()]) else { panic!("a number") };
    assert!((slope - 0.5 / 2.0_f64.sqrt()).abs() < 1e-6, "{slope}");
}

#[test]
fn nested_derivatives_are_not_confused() {
    // d/dx (x * d/dy (x + y)) = 1
    let f = of_real(|b, x| {
        derivative(b, x, |b, x| {
            let inner = derivative(b, x, |b, y| b.op(Op::Add, &[x, y]));
            b.op(Op::Mul, &[x, inner])
        })
    });
    assert_eq!(value(&f, &[3.0.into()]), 1.0.into());
    // d/dx (x * d/dy (x * y)) = 2x
    let f = of_real(|b, x| {
        derivative(b, x, |b, x| {
            let inner = derivative(b, x, |b, y| b.op(Op::Mul, &[x, y]));
            b.op(Op::Mul, &[x, inner])
        })
    });
    assert_eq!(value(&f, &[3.0.into()]), 6.0.into());
    // d/dx of d/dy of (x * y) at y = x * x, along y' = x: the direction depends on x too.
    let f = of_real(|b, x| {
        derivative(b, x, |b, x| {
            let y = b.op(Op::Mul, &[x, x]);
            let dual = b.jvp(&[y], &[x], |b, params| {
                let square = b.op(Op::Mul, &[params[0], params[0]]);
                b.op(Op::Mul, &[square, x])
            });
            b.component(dual, 1)
        })
    });
    // 2 y y' x = 2 x^4, so 8 x^3.
    assert_eq!(value(&f, &[3.0.into()]), 216.0.into());
}

#[test]
fn third_derivative() {
    let f = of_real(|b, x| {
        derivative(b, x, |b, x| {
            derivative(b, x, |b, x| {
                derivative(b, x, |b, x| {
                    let four = b.real(4.0);
                    b.op(Op::Pow, &[x, four])
                })
            })
        })
    });
    assert_eq!(value(&f, &[2.0.into()]), 48.0.into());
    assert_eq!(value(&f, &[(-2.0).into()]), (-48.0).into());
    assert_eq!(value(&f, &[0.0.into()]), 0.0.into());
}

#[test]
fn constants_contribute_nothing() {
    // x ** 2 at a negative x and at 0, log x not met.
    let f = of_real(|b, x| {
        derivative(b, x, |b, x| {
            let two = b.real(2.0);
            b.op(Op::Pow, &[x, two])
        })
    });
    assert_eq!(value(&f, &[(-3.0).into()]), (-6.0).into());
    assert_eq!(value(&f, &[0.0.into()]), 0.0.into());
    // if x > 0 then log x else 0 at -1: neither the value nor the derivative is NaN.
    let f = of_real(|b, x| {
        derivative(b, x, |b, x| {
            let zero = b.real(0.0);
            let positive = b.op(Op::Lt, &[zero, x]);
            b.if_(positive, |b| b.op(Op::Log, &[x]), |_| zero)
        })
    });
    assert_eq!(value(&f, &[(-1.0).into()]), 0.0.into());
    assert_eq!(value(&f, &[4.0.into()]), 0.25.into());
    // Select is eager, but only reads one side.
    let f = of_real(|b, x| {
        derivative(b, x, |b, x| {
            let zero = b.real(0.0);
            let positive = b.op(Op::Lt, &[zero, x]);
            let log = b.op(Op::Log, &[x]);
            b.op(Op::Select, &[positive, log, zero])
        })
    });
    assert_eq!(value(&f, &[(-1.0).into()]), 0.0.into());
    assert_eq!(value(&f, &[0.0.into()]), 0.0.into());
}

#[test]
fn long_blocks_do_not_recurse() {
    let f = of_real(|b, x| {
        let mut y = x;
        let step = b.real(0.5);
        for _ in 0..100_000 {
            y = b.op(Op::Add, &[y, step]);
        }
        derivative(b, y, |b, y| {
            let mut z = y;
            for _ in 0..100_000 {
                z = b.op(Op::Add, &[z, y]);
            }
            z
        })
    });
    assert_eq!(value(&f, &[1.0.into()]), 100_001.0.into());
}

#[test]
fn broken_functions_are_failures_and_no_panics() {
    let mut f = of_vector(|b, v| {
        let i = b.int(0);
        b.get_proved(v, i)
    });
    let failure = evaluate(&f, &mut F64, &[Value::Array(vec![])]).unwrap_err();
    assert_eq!(failure.kind, chainrule_base::Kind::Bug);
    f.body.stmts.clear();
    assert!(evaluate(&f, &mut F64, &[vec![1.0].into()]).is_err());
}
