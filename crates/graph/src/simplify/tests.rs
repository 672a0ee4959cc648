//! An example of each rule, in both semantics.

// Expressions by value, so that a rule reads as written.
#![allow(clippy::needless_pass_by_value)]

use super::function::{Parity, parity};
use crate::{Graph, NodeId, Semantics};
use chainrule_ops::{Op, ROWS, Type};
use expression::{E, c, f, lit};

/// Notation for expressions, so that a rule reads as in the table.
mod expression {
    use super::*;

    #[derive(Clone, Debug)]
    pub enum E {
        Input(usize),
        Const(f64),
        Apply(Op, Vec<E>),
    }

    pub fn lit(c: f64) -> E {
        E::Const(c)
    }

    pub fn f<const N: usize>(op: Op, args: [E; N]) -> E {
        E::Apply(op, args.to_vec())
    }

    /// Returns a condition: an input in a comparison.
    pub fn c(i: usize) -> E {
        f(Op::Lt, [lit(0.0), E::Input(4 + i)])
    }

    macro_rules! operator {
        ($trait:ident $method:ident) => {
            impl std::ops::$trait for E {
                type Output = E;
                fn $method(self, other: E) -> E {
                    E::Apply(Op::$trait, vec![self, other])
                }
            }
        };
    }
    operator!(Add add);
    operator!(Sub sub);
    operator!(Mul mul);
    operator!(Div div);
    impl std::ops::Neg for E {
        type Output = E;
        fn neg(self) -> E {
            E::Apply(Op::Neg, vec![self])
        }
    }
}

fn build(g: &mut Graph, inputs: &[NodeId], e: &E) -> NodeId {
    match e {
        E::Input(i) => inputs[*i],
        E::Const(c) => g.constant(*c),
        E::Apply(op, args) => {
            let args: Vec<NodeId> = args.iter().map(|a| build(g, inputs, a)).collect();
            g.apply(*op, &args)
        }
    }
}

fn raw(g: &mut Graph, inputs: &[NodeId], e: &E) -> NodeId {
    match e {
        E::Input(i) => inputs[*i],
        E::Const(c) => g.constant(*c),
        E::Apply(op, args) => {
            let args: Vec<NodeId> = args.iter().map(|a| raw(g, inputs, a)).collect();
            g.raw(*op, &args)
        }
    }
}

/// Returns whether `from`, simplified, is `to` exactly as written. Each side is in an otherwise empty graph.
fn becomes(semantics: Semantics, from: &E, to: &E) -> Result<(), String> {
    let mut g = Graph::new(semantics);
    let inputs: Vec<NodeId> = (0..8).map(|i| g.input(["x", "y", "z", "w", "p", "q", "r", "s"][i])).collect();
    let from = build(&mut g, &inputs, from);
    let to = raw(&mut g, &inputs, to);
    if from == to { Ok(()) } else { Err(format!("{} is not {}", g.expression(from, 200), g.expression(to, 200))) }
}

#[track_caller]
fn both(from: E, to: E) {
    becomes(Semantics::Strict, &from, &to).unwrap();
    becomes(Semantics::Algebraic, &from, &to).unwrap();
}

/// Checks that a rule holds in algebraic semantics, and that strict leaves the expression unchanged.
#[track_caller]
fn algebraic(from: E, to: E) {
    becomes(Semantics::Strict, &from, &from).unwrap();
    becomes(Semantics::Algebraic, &from, &to).unwrap();
}

/// Checks that a rule holds in algebraic semantics; strict has another result.
#[track_caller]
fn algebraic_only(from: E, to: E) {
    assert!(becomes(Semantics::Strict, &from, &to).is_err());
    becomes(Semantics::Algebraic, &from, &to).unwrap();
}

const X: E = E::Input(0);
const Y: E = E::Input(1);
const Z: E = E::Input(2);

#[test]
fn constants_fold() {
    both(lit(2.0) + lit(3.0), lit(5.0));
    both(lit(1.0) / lit(0.0), lit(f64::INFINITY));
    both(f(Op::Sin, [lit(0.5)]), lit(Op::Sin.value(&[0.5])));
    both(f(Op::Exp, [lit(0.0)]), lit(1.0));
    both(f(Op::Select, [lit(1.0), lit(2.0), lit(3.0)]), lit(2.0));
}

#[test]
fn sums() {
    both(X + lit(-0.0), X);
    algebraic(X + lit(0.0), X);
    both(X + -Y, X - Y);
    both(-X + Y, Y - X);
    both(X + X, lit(2.0) * X);
    algebraic_only(-X + -Y, -(X + Y));
    algebraic(lit(2.0) * X + lit(3.0) * X, lit(5.0) * X);
    algebraic(lit(2.0) * X + lit(-2.0) * X, lit(0.0));
    algebraic(lit(3.0) * X + lit(3.0) * Y, lit(3.0) * (X + Y));
    algebraic(lit(3.0) * X + lit(-3.0) * Y, lit(3.0) * (X - Y));
    algebraic(lit(-3.0) * X + Y, Y - lit(3.0) * X);
    algebraic((X - Y) + Y, X);
    algebraic(X + (Y - X), Y);
    algebraic((X + lit(2.0)) + lit(3.0), X + lit(5.0));
    algebraic((lit(2.0) - X) + lit(3.0), lit(5.0) - X);
    both(-X + lit(3.0), lit(3.0) - X);
}

#[test]
fn differences() {
    both(X - lit(0.0), X);
    algebraic_only(X - lit(-0.0), X);
    both(lit(-0.0) - X, -X);
    algebraic(lit(0.0) - X, -X);
    both(X - lit(2.0), X + lit(-2.0));
    both(X - -Y, X + Y);
    algebraic(X - X, lit(0.0));
    algebraic((X + Y) - Y, X);
    algebraic((X + Y) - X, Y);
    algebraic(X - (X + Y), -Y);
    algebraic(X - (X - Y), Y);
    algebraic((X - Y) - X, -Y);
    algebraic(lit(5.0) - (X + lit(2.0)), lit(3.0) - X);
    algebraic(lit(5.0) - (lit(2.0) - X), X + lit(3.0));
    algebraic_only(-X - Y, -(X + Y));
    both(-X - -Y, Y - X);
    both(lit(1.0) - -X, X + lit(1.0));
    both(lit(3.0) - (lit(3.0) + lit(0.0) * lit(1.0)), lit(0.0));
}

#[test]
fn a_difference_and_its_opposite_share_a_node() {
    let mut g = Graph::new(Semantics::Algebraic);
    let (x, y) = (g.input("x"), g.input("y"));
    let d = g.sub(x, y);
    let o = g.sub(y, x);
    assert_eq!(g.neg(o), d);
    assert_eq!(g.neg(d), o);
    let one = g.constant(1.0);
    let a = g.sub(one, x);
    let b = g.sub(x, one);
    assert_eq!(g.neg(b), a);
    let (s, t) = (g.mul(d, y), g.mul(o, y));
    assert_eq!(g.neg(s), t);
    let zero = g.constant(0.0);
    assert_eq!(g.add(s, t), zero);
}

#[test]
fn products() {
    both(X * lit(1.0), X);
    both(X * lit(-1.0), -X);
    algebraic(X * lit(0.0), lit(0.0));
    both(-X * Y, -(X * Y));
    both(X * -Y, -(X * Y));
    both(-X * -Y, X * Y);
    both(-X * lit(3.0), lit(-3.0) * X);
    both(-(lit(3.0) * X), lit(-3.0) * X);
    both(-(-X), X);
    algebraic(lit(2.0) * (lit(3.0) * X), lit(6.0) * X);
    algebraic((lit(2.0) * X) * (lit(3.0) * Y), lit(6.0) * (X * Y));
    algebraic((lit(2.0) * X) * Y, lit(2.0) * (X * Y));
    algebraic(f(Op::Sqrt, [X]) * f(Op::Sqrt, [X]), X);
    algebraic((X / f(Op::Sqrt, [Y])) * Y, X * f(Op::Sqrt, [Y]));
    algebraic((lit(1.0) / f(Op::Sqrt, [X])) * X, f(Op::Sqrt, [X]));
    algebraic((X / Y) * Y, X);
    both(X * lit(f64::NAN), X * lit(f64::NAN));
    // Combining would overflow.
    both(lit(1e200) * (lit(1e200) * X), lit(1e200) * (lit(1e200) * X));
}

#[test]
fn quotients() {
    both(X / lit(1.0), X);
    both(X / lit(-1.0), -X);
    both(X / lit(4.0), lit(0.25) * X);
    algebraic(X / lit(3.0), lit(1.0 / 3.0) * X);
    algebraic((lit(6.0) * X) / lit(3.0), lit(2.0) * X);
    both(X / lit(0.0), X / lit(0.0));
    algebraic(lit(0.0) / X, lit(0.0));
    algebraic(X / X, lit(1.0));
    algebraic((lit(2.0) * X) / X, lit(2.0));
    both(-X / Y, -(X / Y));
    both(X / -Y, -(X / Y));
    both(-X / -Y, X / Y);
    algebraic(lit(3.0) / X, lit(3.0) * (lit(1.0) / X));
    algebraic_only(lit(1.0) / -X, -(lit(1.0) / X));
    becomes(Semantics::Strict, &(lit(1.0) / -X), &(lit(-1.0) / X)).unwrap();
    algebraic((lit(6.0) * X) / (lit(2.0) * Y), lit(3.0) * (X / Y));
    algebraic((X * Y) / Y, X);
    algebraic(X / (X * Y), lit(1.0) / Y);
    algebraic(X / f(Op::Sqrt, [X]), f(Op::Sqrt, [X]));
    algebraic(f(Op::Sqrt, [X]) / X, lit(1.0) / f(Op::Sqrt, [X]));
    algebraic(lit(1.0) / (X / Y), Y / X);
    algebraic(X / (lit(1.0) / Y), X * Y);
    algebraic(lit(1.0) / (lit(1.0) / X), X);
}

#[test]
fn powers() {
    let pow = |e: f64| f(Op::Pow, [X, lit(e)]);
    both(pow(0.0), lit(1.0));
    both(pow(1.0), X);
    both(f(Op::Pow, [lit(1.0), X]), lit(1.0));
    let (x2, x3) = (X * X, (X * X) * X);
    algebraic(pow(2.0), x2.clone());
    algebraic(pow(3.0), x3.clone());
    algebraic(pow(4.0), x2.clone() * x2.clone());
    algebraic(pow(6.0), x3.clone() * x3.clone());
    algebraic(pow(7.0), (x3.clone() * x3) * X);
    algebraic(pow(-1.0), lit(1.0) / X);
    algebraic(pow(-2.0), lit(1.0) / x2);
    algebraic(pow(0.5), f(Op::Sqrt, [X]));
    both(pow(1.5), pow(1.5)); // the product rule of x*sqrt(x) fails at 0
    algebraic(pow(-1.5), lit(1.0) / (X * f(Op::Sqrt, [X])));
    algebraic(pow(-0.5), lit(1.0) / f(Op::Sqrt, [X]));
    both(pow(9.0), pow(9.0));
    both(pow(0.3), pow(0.3));
    algebraic_only(f(Op::Pow, [lit(2.0) * X, lit(2.0)]), lit(4.0) * (X * X));
}

#[test]
fn functions() {
    for row in ROWS.iter().filter(|row| row.args.len() == 1 && row.op != Op::Neg && row.op != Op::Abs) {
        match parity(row.op) {
            Some(Parity::Odd) => algebraic(f(row.op, [-X]), -f(row.op, [X])),
            Some(Parity::Even) => algebraic(f(row.op, [-X]), f(row.op, [X])),
            None => both(f(row.op, [-X]), f(row.op, [-X])),
        }
    }
    algebraic(f(Op::Sin, [lit(-2.0) * X]), -f(Op::Sin, [lit(2.0) * X]));
    let abs = |e| f(Op::Abs, [e]);
    both(abs(-X), abs(X));
    both(abs(abs(X)), abs(X));
    algebraic(abs(lit(-2.0) * X), lit(2.0) * abs(X));
    algebraic(f(Op::Sign, [lit(-2.0) * X]), -f(Op::Sign, [X]));
    both(f(Op::Floor, [f(Op::Ceil, [X])]), f(Op::Ceil, [X]));
    both(f(Op::Sign, [f(Op::Sign, [X])]), f(Op::Sign, [X]));
    algebraic(f(Op::Sqrt, [X * X]), abs(X));
    algebraic(f(Op::Exp, [f(Op::Log, [X])]), X);
    algebraic(f(Op::Log, [f(Op::Exp, [X])]), X);
    both(f(Op::Hypot, [-X, Y]), f(Op::Hypot, [X, Y]));
    both(f(Op::Polygamma, [lit(0.0), X]), f(Op::Digamma, [X]));
}

#[test]
fn parities_are_those_of_the_rows() {
    for row in ROWS.iter().filter(|row| row.args == [Type::Num]) {
        let points: Vec<f64> = (1..40).map(|i| f64::from(i) * 0.0237).collect();
        let is_like = |sign: f64, x: f64| (row.value)(&[-x]) == sign * (row.value)(&[x]);
        let holds = |sign: f64| {
            let at_infinity = (row.value)(&[f64::INFINITY]).is_nan() || is_like(sign, f64::INFINITY);
            at_infinity && points.iter().all(|x| is_like(sign, *x))
        };
        let found = match (holds(1.0), holds(-1.0)) {
            (true, false) => Some(Parity::Even),
            (false, true) => Some(Parity::Odd),
            _ => None,
        };
        assert_eq!(parity(row.op), found, "{:?}", row.op);
    }
}

#[test]
fn choices_and_logic() {
    let (lt, le, eq) = (|a, b| f(Op::Lt, [a, b]), |a, b| f(Op::Le, [a, b]), |a, b| f(Op::Eq, [a, b]));
    both(lt(X, X), lit(0.0));
    // Tests for NaN stay; truth values are never NaN.
    both(le(X, X), le(X, X));
    both(eq(X, X), eq(X, X));
    both(eq(lt(X, Y), lt(X, Y)), lit(1.0));
    both(lt(-X, -Y), lt(Y, X));
    both(lt(-X, lit(2.0)), lt(lit(-2.0), X));
    both(lt(lit(0.0), -X), lt(X, lit(-0.0)));
    let not = |e| f(Op::Not, [e]);
    both(not(not(c(0))), c(0));
    both(not(not(X)), not(not(X)));
    both(f(Op::And, [c(0), lit(1.0)]), c(0));
    both(f(Op::And, [c(0), lit(0.0)]), lit(0.0));
    both(f(Op::Or, [c(0), lit(1.0)]), lit(1.0));
    both(f(Op::Or, [c(0), c(0)]), c(0));
    both(f(Op::Or, [not(c(0)), c(0)]), lit(1.0));
    both(f(Op::And, [c(0), not(c(0))]), lit(0.0));
    both(f(Op::Min, [X, X]), X);
    algebraic(f(Op::Min, [-X, -Y]), -f(Op::Max, [X, Y]));
    let select = |c, p, q| f(Op::Select, [c, p, q]);
    both(select(c(0), X, X), X);
    both(select(not(c(0)), X, Y), select(c(0), Y, X));
    both(select(c(0), select(c(0), X, Y), Z), select(c(0), X, Z));
    both(select(c(0), X, select(c(0), Y, Z)), select(c(0), X, Z));
    algebraic(select(c(0), -X, -Y), -select(c(0), X, Y));
    algebraic(select(c(0), lit(2.0) * X, lit(2.0) * Y), lit(2.0) * select(c(0), X, Y));
}

#[test]
fn masks() {
    let select = |c, p, q| f(Op::Select, [c, p, q]);
    let (on, off) = (|i, p| select(c(i), p, lit(0.0)), |i, p| select(c(i), lit(0.0), p));
    let not = |e| f(Op::Not, [e]);
    both(on(0, lit(1.0)) * X, on(0, X));
    both(X * off(0, Y), off(0, X * Y));
    both(on(0, X) / Y, on(0, X / Y));
    both(-on(0, X), on(0, -X));
    both(lit(2.0) * on(0, X), on(0, lit(2.0) * X));
    both(on(0, on(1, X)), select(f(Op::And, [c(0), c(1)]), X, lit(0.0)));
    both(off(0, off(1, X)), select(f(Op::Or, [c(0), c(1)]), lit(0.0), X));
    both(on(0, off(1, X)), select(f(Op::And, [c(0), not(c(1))]), X, lit(0.0)));
    both(on(0, X) * on(1, Y), select(f(Op::And, [c(0), c(1)]), X * Y, lit(0.0)));
    both(on(0, X) + on(0, Y), on(0, X + Y));
    both(on(0, X) - on(0, Y), on(0, X - Y));
    algebraic(on(0, X) + off(0, Y), select(c(0), X, Y));
    algebraic_only(off(0, X) - on(0, Y), select(c(0), -Y, X));
    // A sum stays unchanged until it is multiplied.
    both(on(0, X) + on(1, Y), on(0, X) + on(1, Y));
    let sum = on(0, X) + on(1, Y);
    both(sum.clone() * Z, select(f(Op::Or, [c(0), c(1)]), sum.clone() * Z, lit(0.0)));
    both(sum.clone() / Z, select(f(Op::Or, [c(0), c(1)]), sum.clone() / Z, lit(0.0)));
    let either = f(Op::Or, [f(Op::Or, [c(0), c(1)]), c(2)]);
    both((sum.clone() + on(2, Z)) * Y, select(either, (sum + on(2, Z)) * Y, lit(0.0)));
    // A choice of which one branch may be off.
    let choice = select(c(0), on(1, X), Y);
    let chosen = f(Op::Or, [not(c(0)), c(1)]);
    both(choice.clone() * Z, select(chosen, choice * Z, lit(0.0)));
}
