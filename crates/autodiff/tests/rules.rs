//! Each rule of forward mode on a separate program, against the derivative by hand and the reference evaluator.

use chainrule_autodiff::check;
use chainrule_ir::{Builder, Expr, Function, Size, StateLoop, Type, Value, VarId, print};
use chainrule_ops::Op;

/// `fun x x_tan -> jvp of body at x along x_tan`, with a double `x`.
fn scalar(body: impl FnOnce(&mut Builder, VarId) -> VarId) -> Function {
    let mut b = Builder::new("f");
    let (x, along) = (b.param("x", Type::Double), b.param("along", Type::Double));
    let result = b.jvp(&[x], &[along], |b, params| body(b, params[0]));
    b.finish(result)
}

/// Does the same with an array of doubles.
fn vector(body: impl FnOnce(&mut Builder, VarId, &Size) -> VarId) -> Function {
    let mut b = Builder::new("f");
    let n = b.size_param("n");
    let n = b.size_of(n);
    let ty = Type::array(n.clone(), Type::Double);
    let (x, along) = (b.param("x", ty.clone()), b.param("along", ty));
    let result = b.jvp(&[x], &[along], |b, params| body(b, params[0], &n));
    b.finish(result)
}

fn expand(function: &Function, args: &[Value<f64>]) -> (Function, Value<f64>) {
    check::expansion(function, args).expect("right").expect("a value")
}

fn reals(value: &Value<f64>) -> Vec<f64> {
    value.reals().into_iter().copied().collect()
}

/// Value and tangent of a scalar function at `x` along 1.
fn at(function: &Function, x: f64) -> [f64; 2] {
    let (_, value) = expand(function, &[x.into(), 1.0.into()]);
    reals(&value).try_into().expect("a pair")
}

/// Returns the number of expressions of the expanded function that satisfy `pred`.
fn count(function: &Function, pred: &dyn Fn(&Expr) -> bool) -> usize {
    fn block(block: &chainrule_ir::Block, pred: &dyn Fn(&Expr) -> bool) -> usize {
        let of = |expr: &Expr| {
            usize::from(pred(expr)) + expr.blocks().into_iter().map(|inner| block_count(inner, pred)).sum::<usize>()
        };
        block.stmts.iter().map(|stmt| of(&stmt.expr)).sum()
    }
    fn block_count(b: &chainrule_ir::Block, pred: &dyn Fn(&Expr) -> bool) -> usize {
        block(b, pred)
    }
    block(&function.body, pred)
}

fn ops(function: &Function, op: Op) -> usize {
    count(function, &|expr| matches!(expr, Expr::Op(o, _) if *o == op))
}

#[test]
fn a_product_is_computed_once_and_its_tangent_is_leibniz() {
    let f = scalar(|b, x| {
        let sin = b.op(Op::Sin, &[x]);
        b.op(Op::Mul, &[x, sin])
    });
    assert_eq!(at(&f, 2.0), [2.0 * libm_sin(2.0), libm_sin(2.0) + 2.0 * Op::Cos.value(&[2.0])]);
    let (expanded, _) = expand(&f, &[2.0.into(), 1.0.into()]);
    assert_eq!(ops(&expanded, Op::Sin), 1, "the primal is shared");
    assert_eq!(ops(&expanded, Op::Mul), 4);
}

fn libm_sin(x: f64) -> f64 {
    Op::Sin.value(&[x])
}

#[test]
fn constants_are_not_dualised_and_exponents_never_meet_log() {
    let f = scalar(|b, x| {
        let three = b.real(3.0);
        let constant = b.op(Op::Exp, &[three]);
        let cube = b.op(Op::Pow, &[x, three]);
        b.op(Op::Mul, &[constant, cube])
    });
    for x in [-2.0, 0.0, 0.5] {
        let e3 = Op::Exp.value(&[3.0]);
        assert_eq!(at(&f, x)[1], e3 * (3.0 * (x * x)));
    }
    let (expanded, _) = expand(&f, &[1.0.into(), 1.0.into()]);
    assert_eq!((ops(&expanded, Op::Log), ops(&expanded, Op::Select), ops(&expanded, Op::Exp)), (0, 0, 1));
}

#[test]
fn a_known_direction_leaves_no_multiplication_by_it() {
    let mut b = Builder::new("f");
    let x = b.param("x", Type::Double);
    let one = b.real(1.0);
    let d = b.jvp(&[x], &[one], |b, p| b.op(Op::Mul, &[p[0], p[0]]));
    let result = b.component(d, 1);
    let f = b.finish(result);
    let (expanded, value) = expand(&f, &[3.0.into()]);
    assert_eq!(value, 6.0.into());
    // x + x, and the value is dead.
    assert_eq!((ops(&expanded, Op::Mul), ops(&expanded, Op::Add)), (0, 1));
    assert_eq!(expanded.body.stmts.len(), 1);
}

#[test]
fn branches_are_lazy() {
    let f = scalar(|b, x| {
        let zero = b.real(0.0);
        let positive = b.op(Op::Lt, &[zero, x]);
        b.if_(positive, |b| b.op(Op::Log, &[x]), |b| b.real(0.0))
    });
    assert_eq!(at(&f, -1.0), [0.0, 0.0]);
    assert_eq!(at(&f, 4.0)[1], 0.25);
}

#[test]
fn a_selection_passes_the_tangent_that_is_chosen() {
    // select(0 < x, log x, x): at -1 the derivative of the logarithm is not finite, and must not be multiplied by 0.
    let f = scalar(|b, x| {
        let zero = b.real(0.0);
        let positive = b.op(Op::Lt, &[zero, x]);
        let root = b.op(Op::Sqrt, &[x]);
        b.op(Op::Select, &[positive, root, x])
    });
    assert_eq!(at(&f, 0.0), [0.0, 1.0]);
    assert_eq!(at(&f, -1.0), [-1.0, 1.0]);
    assert_eq!(at(&f, 4.0), [2.0, 0.25]);
    // max(sqrt x, x - 1) at 0: the infinite slope is not selected if the other operand is larger.
    let g = scalar(|b, x| {
        let (root, one) = (b.op(Op::Sqrt, &[x]), b.real(1.0));
        let more = b.op(Op::Add, &[x, one]);
        b.op(Op::Max, &[root, more])
    });
    assert_eq!(at(&g, 0.0), [1.0, 1.0]);
}

#[test]
fn a_branch_without_tangent_is_paired_with_zero() {
    let f = scalar(|b, x| {
        let one = b.real(1.0);
        let small = b.op(Op::Lt, &[x, one]);
        let pair = b.if_(
            small,
            |b| {
                let two = b.real(2.0);
                b.tuple(&[two, x])
            },
            |b| {
                let square = b.op(Op::Mul, &[x, x]);
                let five = b.real(5.0);
                b.tuple(&[square, five])
            },
        );
        let (p, q) = (b.component(pair, 0), b.component(pair, 1));
        b.op(Op::Sub, &[p, q])
    });
    assert_eq!(at(&f, 0.5), [1.5, -1.0]);
    assert_eq!(at(&f, 3.0), [4.0, 6.0]);
}

#[test]
fn build_get_sum_fold_on_arrays_of_any_length() {
    // dot(x, x) by sum, and the product by a fold.
    let dot = vector(|b, x, n| {
        b.sum(n.clone(), |b, i| {
            let xi = b.get_proved(x, i);
            b.op(Op::Mul, &[xi, xi])
        })
    });
    let product = vector(|b, x, n| {
        let one = b.real(1.0);
        b.fold(n.clone(), one, |b, s, i| {
            let xi = b.get_proved(x, i);
            b.op(Op::Mul, &[s, xi])
        })
    });
    let squares = vector(|b, x, n| {
        b.build(n.clone(), |b, i| {
            let xi = b.get_proved(x, i);
            b.op(Op::Mul, &[xi, xi])
        })
    });
    for n in 0..4 {
        let x: Vec<f64> = (0..n).map(|i| 1.5 + f64::from(i)).collect();
        let along: Vec<f64> = (0..n).map(|i| 2.0 - f64::from(i)).collect();
        let args = [x.clone().into(), along.clone().into()];
        let by_hand: f64 = x.iter().zip(&along).map(|(x, t)| 2.0 * x * t).sum();
        let (expanded, value) = expand(&dot, &args);
        assert_eq!(reals(&value)[1], by_hand);
        let loops = |f: &Function| count(f, &|e| matches!(e, Expr::Fold(_) | Expr::Sum { .. } | Expr::Build { .. }));
        assert_eq!(loops(&expanded), 1, "one loop, and no array of pairs");
        let (expanded, value) = expand(&product, &args);
        let total: f64 = x.iter().product();
        let slope: f64 = x.iter().zip(&along).map(|(x, t)| total / x * t).sum();
        assert!((reals(&value)[1] - slope).abs() < 1e-12, "{value:?}");
        assert_eq!(loops(&expanded), 1);
        let (expanded, value) = expand(&squares, &args);
        let flat: Vec<f64> = x.iter().zip(&along).flat_map(|(x, t)| [x * x, 2.0 * x * t]).collect();
        assert_eq!(reals(&value), flat);
        assert_eq!(loops(&expanded), 1);
    }
}

#[test]
fn only_the_active_part_of_a_state_carries_a_tangent() {
    // state (counter, weight, sum): the weight halves and never depends on x.
    let f = scalar(|b, x| {
        let (zero, one, half) = (b.real(0.0), b.real(1.0), b.real(0.5));
        let count = b.int(0);
        let init = b.tuple(&[count, one, zero]);
        let last = b.fold(Size::constant(3), init, |b, s, _| {
            let (k, w, sum) = (b.component(s, 0), b.component(s, 1), b.component(s, 2));
            let term = b.op(Op::Mul, &[w, x]);
            let sum = b.op(Op::Add, &[sum, term]);
            let w = b.op(Op::Mul, &[w, half]);
            let one = b.int(1);
            let k = b.op(Op::Add, &[k, one]);
            b.tuple(&[k, w, sum])
        });
        b.component(last, 2)
    });
    assert_eq!(at(&f, 2.0), [3.5, 1.75]);
    let (expanded, _) = expand(&f, &[2.0.into(), 1.0.into()]);
    let pairs = expanded.body.stmts.iter().find_map(|stmt| match &stmt.expr {
        Expr::Fold(StateLoop { state, .. }) => Some(expanded.ty(*state).clone()),
        _ => None,
    });
    let pair = Type::Double.dual();
    assert_eq!(pairs, Some(Type::tuple(vec![Type::Int, Type::Double, pair])));
}

#[test]
fn activity_grows_through_a_loop_until_nothing_changes() {
    // (a, b, c) -> (b, c, x): a is active only after three steps.
    let f = scalar(|b, x| {
        let zero = b.real(0.0);
        let init = b.tuple(&[zero, zero, zero]);
        let last = b.fold(Size::constant(3), init, |b, s, _| {
            let (q, r) = (b.component(s, 1), b.component(s, 2));
            b.tuple(&[q, r, x])
        });
        b.component(last, 0)
    });
    assert_eq!(at(&f, 7.0), [7.0, 1.0]);
}

#[test]
fn a_while_loop_looks_at_values() {
    // Newton's root: s <- (s + x/s) / 2 while |s*s - x| > 1e-12.
    let f = scalar(|b, x| {
        b.while_(
            Size::constant(60),
            x,
            |b, s| {
                let square = b.op(Op::Mul, &[s, s]);
                let off = b.op(Op::Sub, &[square, x]);
                let (off, eps) = (b.op(Op::Abs, &[off]), b.real(1e-12));
                b.op(Op::Lt, &[eps, off])
            },
            |b, s| {
                let ratio = b.op(Op::Div, &[x, s]);
                let (sum, half) = (b.op(Op::Add, &[s, ratio]), b.real(0.5));
                b.op(Op::Mul, &[sum, half])
            },
        )
    });
    let [root, slope] = at(&f, 9.0);
    assert!((root - 3.0).abs() < 1e-12 && (slope - 1.0 / 6.0).abs() < 1e-6, "{root} {slope}");
}

#[test]
fn whole_arrays_flow_through_states_branches_and_literals() {
    // fold over (x, 0): the state holds x itself; an element of a literal array of arrays.
    let f = vector(|b, x, n| {
        let zero = b.real(0.0);
        let zeros = b.build(n.clone(), |b, _| b.real(0.0));
        let state = b.tuple(&[x, zero]);
        let last = b.fold(n.clone(), state, |b, s, i| {
            let (array, sum) = (b.component(s, 0), b.component(s, 1));
            let xi = b.get_proved(array, i);
            let term = b.op(Op::Exp, &[xi]);
            let sum = b.op(Op::Add, &[sum, term]);
            b.tuple(&[array, sum])
        });
        let (array, sum) = (b.component(last, 0), b.component(last, 1));
        let both = b.array(&[array, zeros]);
        let one = b.real(1.0);
        let small = b.op(Op::Lt, &[sum, one]);
        let k = b.int(0);
        let first = b.get(both, k);
        let chosen = b.if_(small, |_| zeros, |_| first);
        b.tuple(&[chosen, sum])
    });
    for x in [vec![], vec![0.5], vec![0.25, -1.0, 2.0]] {
        let along: Vec<f64> = x.iter().map(|x| x * 2.0 + 1.0).collect();
        let n = x.len();
        let (_, value) = expand(&f, &[x.clone().into(), along.clone().into()]);
        let found = reals(&value);
        let slope = x.iter().zip(&along).fold(0.0, |sum, (x, t)| sum + Op::Exp.value(&[*x]) * t);
        assert_eq!(found[2 * n + 1], slope);
        let tangents: Vec<f64> = found[..2 * n].chunks(2).map(|pair| pair[1]).collect();
        assert_eq!(tangents, along);
    }
}

#[test]
fn integers_that_are_differentiated_by_stay_themselves() {
    // jvp (fun (k, x) -> build k (fun i -> x * i)) at a point whose k is computed.
    let mut b = Builder::new("f");
    let n = b.param("n", Type::Int);
    let x = b.param("x", Type::Double);
    let (one, three) = (b.int(1), b.real(3.0));
    let k = b.op(Op::Add, &[n, one]);
    let result = b.jvp(&[k, x], &[one, three], |b, p| {
        let size = b.size_of(p[0]);
        let array = b.build(size.clone(), |b, i| {
            let i = b.to_real(i);
            b.op(Op::Mul, &[p[1], i])
        });
        b.sum(size, |b, i| b.get(array, i))
    });
    let f = b.finish(result);
    let (_, value) = expand(&f, &[2i64.into(), 5.0.into()]);
    assert_eq!(reals(&value), [15.0, 9.0]);
}

#[test]
fn an_integer_in_a_record_can_be_a_size() {
    let mut b = Builder::new("f");
    let pair = Type::tuple(vec![Type::Int, Type::Double]);
    let (p, along) = (b.param("p", pair.clone()), b.param("along", pair));
    let result = b.jvp(&[p], &[along], |b, q| {
        let (k, x) = (b.component(q[0], 0), b.component(q[0], 1));
        let size = b.size_of(k);
        let array = b.build(size.clone(), |b, _| b.op(Op::Mul, &[x, x]));
        b.sum(size, |b, i| b.get(array, i))
    });
    let f = b.finish(result);
    let arg = |k: i64, x: f64| Value::Tuple(vec![k.into(), x.into()]);
    let (_, value) = expand(&f, &[arg(4, 3.0), arg(0, 1.0)]);
    assert_eq!(reals(&value), [36.0, 24.0]);
}

#[test]
fn the_code_is_as_a_person_would_write_it() {
    // The tangent of a dot product by a fold: one loop, elements read in place, three multiplications.
    let dot = vector(|b, x, n| {
        let zero = b.real(0.0);
        b.fold(n.clone(), zero, |b, s, i| {
            let xi = b.get_proved(x, i);
            let square = b.op(Op::Mul, &[xi, xi]);
            b.op(Op::Add, &[s, square])
        })
    });
    insta::assert_snapshot!(print(&chainrule_autodiff::expand(&dot).expect("code")), @"
    let f = fun (x : [n]Double) (along : [n]Double) ->
      let v4 = 0.0
      let v12 = (v4, v4)
      let v23 = ifold (fun (v13 : (Double, Double)) v6 ->
        let v14 = v13.0
        let v15 = v13.1
        let v16 = x[v6]
        let v17 = along[v6]
        let v8 = v16 * v16
        let v18 = v16 * v17
        let v19 = v16 * v17
        let v20 = v18 + v19
        let v9 = v14 + v8
        let v21 = v15 + v20
        let v22 = (v9, v21)
        v22) v12 n
      v23
    ");
    // D-If with the logarithm in its branch only.
    let lazy = scalar(|b, x| {
        let zero = b.real(0.0);
        let positive = b.op(Op::Lt, &[zero, x]);
        b.if_(positive, |b| b.op(Op::Log, &[x]), |b| b.real(0.0))
    });
    insta::assert_snapshot!(print(&chainrule_autodiff::expand(&lazy).expect("code")), @"
    let f = fun (x : Double) (along : Double) ->
      let v3 = 0.0
      let v4 = v3 < x
      let v14 = if v4 then (
        let v5 = log x
        let v9 = 1.0
        let v10 = v9 / x
        let v11 = v10 * along
        let v12 = (v5, v11)
        v12) else (
        let v6 = 0.0
        let v13 = (v6, v6)
        v13)
      v14
    ");
    // D-Build of a constant times an element; the constant is computed once and not dualised.
    let scaled = vector(|b, x, n| {
        let two = b.real(2.0);
        let root = b.op(Op::Sqrt, &[two]);
        b.build(n.clone(), |b, i| {
            let xi = b.get_proved(x, i);
            b.op(Op::Mul, &[root, xi])
        })
    });
    insta::assert_snapshot!(print(&chainrule_autodiff::expand(&scaled).expect("code")), @"
    let f = fun (x : [n]Double) (along : [n]Double) ->
      let v4 = 2.0
      let v5 = sqrt v4
      let v15 = build n (fun v6 ->
        let v11 = x[v6]
        let v12 = along[v6]
        let v8 = v5 * v11
        let v13 = v5 * v12
        let v14 = (v8, v13)
        v14)
      v15
    ");
}

#[test]
fn rounding_and_comparison_end_a_tangent() {
    let f = scalar(|b, x| {
        let floor = b.op(Op::Floor, &[x]);
        let sign = b.op(Op::Sign, &[x]);
        b.op(Op::Pow, &[floor, sign])
    });
    assert_eq!(at(&f, 2.5), [2.0, 0.0]);
    let (expanded, _) = expand(&f, &[2.5.into(), 1.0.into()]);
    assert_eq!(ops(&expanded, Op::Log) + ops(&expanded, Op::Select), 0);
}

#[test]
fn a_chain_of_200_000_operations_does_not_overflow() {
    let f = scalar(|b, mut x| {
        let half = b.real(0.5);
        for _ in 0..100_000 {
            x = b.op(Op::Mul, &[x, half]);
            x = b.op(Op::Add, &[x, half]);
        }
        x
    });
    assert_eq!(at(&f, 1.0)[0], 1.0);
}
