//! Cleanup: removed statements, kept statements, and run time.

use chainrule_autodiff::{expand, tidy};
use chainrule_ir::{Builder, Expr, Function, Type, Value, evaluate, verify};
use chainrule_ops::{F64, Op};

fn tidied(mut function: Function, args: &[Value<f64>]) -> Function {
    verify(&function).expect("a right program");
    let before = evaluate(&function, &mut F64, args).expect("a value");
    tidy::function(&mut function);
    verify(&function).expect("still right");
    assert_eq!(evaluate(&function, &mut F64, args).expect("a value"), before);
    function
}

#[test]
fn components_of_known_tuples_are_forwarded_into_blocks() {
    let mut b = Builder::new("f");
    let x = b.param("x", Type::Double);
    let square = b.op(Op::Mul, &[x, x]);
    let pair = b.tuple(&[x, square]);
    let result = b.sum(3.into(), |b, _| {
        let again = b.tuple(&[pair, x]);
        let inner = b.component(again, 0);
        b.component(inner, 1)
    });
    let f = tidied(b.finish(result), &[3.0.into()]);
    assert_eq!(f.body.stmts.len(), 2);
    let Expr::Sum { body, .. } = &f.body.stmts[1].expr else { panic!("a sum") };
    assert_eq!((body.stmts.len(), body.result), (0, square));
}

#[test]
fn a_tuple_put_together_from_its_own_components_is_itself() {
    let mut b = Builder::new("f");
    let ty = Type::tuple(vec![Type::Double, Type::Int]);
    let t = b.param("t", ty);
    let parts = [b.component(t, 0), b.component(t, 1)];
    let result = b.tuple(&parts);
    let f = tidied(b.finish(result), &[Value::Tuple(vec![1.5.into(), 2i64.into()])]);
    assert_eq!((f.body.stmts.len(), f.body.result), (0, t));
    // Not in another order, and not of two tuples.
    let mut b = Builder::new("f");
    let ty = Type::tuple(vec![Type::Double, Type::Double]);
    let (t, u) = (b.param("t", ty.clone()), b.param("u", ty));
    let (p, q, r) = (b.component(t, 0), b.component(t, 1), b.component(u, 1));
    let (swapped, mixed) = (b.tuple(&[q, p]), b.tuple(&[p, r]));
    let result = b.tuple(&[swapped, mixed]);
    let arg = |x: f64, y: f64| Value::Tuple(vec![x.into(), y.into()]);
    let f = tidied(b.finish(result), &[arg(1.0, 2.0), arg(3.0, 4.0)]);
    assert_eq!(f.body.stmts.len(), 6);
}

#[test]
fn integers_that_only_a_type_names_stay() {
    let mut b = Builder::new("f");
    let n = b.size_param("n");
    let n = b.size_of(n);
    let sizes = b.param("sizes", Type::array(n, Type::Int));
    let zero = b.int(0);
    let k = b.get(sizes, zero);
    let unused = b.real(1.0);
    b.op(Op::Exp, &[unused]);
    let size = b.size_of(k);
    let array = b.build(size.clone(), Builder::to_real);
    let result = b.sum(size, |b, i| b.get(array, i));
    let f = tidied(b.finish(result), &[vec![4i64].into()]);
    assert_eq!(f.body.stmts.len(), 4);
}

#[test]
fn many_derivatives_one_after_the_other_take_linear_time() {
    // 100,000 lines x <- d/dy (y * 0.5 * x) at x; quadratic work would take minutes.
    let mut b = Builder::new("f");
    let mut x = b.param("x", Type::Double);
    let (one, half) = (b.real(1.0), b.real(0.5));
    for _ in 0..100_000 {
        let dual = b.jvp(&[x], &[one], |b, y| {
            let y = b.op(Op::Mul, &[y[0], half]);
            b.op(Op::Add, &[y, x])
        });
        let (value, slope) = (b.component(dual, 0), b.component(dual, 1));
        x = b.op(Op::Sub, &[value, slope]);
    }
    let f = b.finish(x);
    let expanded = expand(&f).expect("ordinary code");
    verify(&expanded).expect("right");
    assert!(expanded.body.stmts.len() <= 400_002);
}
