//! Tagged dual numbers, for derivatives inside the reference evaluator.
//!
//! Each derivative has a tag, larger than those of the enclosing derivatives. A number that does not depend on the
//! point of a derivative has no part with its tag: its tangent is structurally zero, and contributes nothing. That
//! separates nested derivatives (section 3.3 of the dF~ paper), and avoids `log x` in `x ** 2`.
//!
//! Invariant: the tags inside the parts of a dual number are smaller than its own.

use chainrule_ops::{Algebra, Formula, Op, Type, partial};
use std::rc::Rc;

/// A number `S`, or a dual number over such numbers.
#[derive(Clone, Debug)]
pub(crate) enum Num<S> {
    /// A number without derivatives.
    Base(S),
    /// Primal and tangent of the derivative with this tag.
    Dual { tag: u32, parts: Rc<(Self, Self)> },
}

impl<S> Num<S> {
    /// Returns the number without any derivative.
    pub(crate) fn base(&self) -> &S {
        let mut num = self;
        loop {
            match num {
                Self::Base(x) => return x,
                Self::Dual { parts, .. } => num = &parts.0,
            }
        }
    }

    /// Returns the largest tag inside; 0 is none.
    pub(crate) fn tag(&self) -> u32 {
        match self {
            Self::Base(_) => 0,
            Self::Dual { tag, .. } => *tag,
        }
    }
}

/// Returns `x` without the derivative of `tag`, and its tangent; `None` is zero. `tag` is the largest in `x`.
pub(crate) fn primal_and_tangent<S: Clone>(x: &Num<S>, tag: u32) -> (Num<S>, Option<Num<S>>) {
    match x {
        Num::Dual { tag: own, parts } if *own == tag => (parts.0.clone(), Some(parts.1.clone())),
        _ => (x.clone(), None),
    }
}

/// The algebra of dual numbers over `A`.
pub(crate) struct Duals<'a, A> {
    base: &'a mut A,
    last_tag: u32,
}

impl<'a, A: Algebra> Duals<'a, A> {
    pub(crate) fn new(base: &'a mut A) -> Self {
        Self { base, last_tag: 0 }
    }

    /// Returns the product of a partial derivative and a tangent: a zero of one masks the other.
    // Recursive on the nesting of derivatives.
    fn strong_product(&mut self, a: &Num<A::Value>, b: &Num<A::Value>) -> Num<A::Value> {
        let tag = a.tag().max(b.tag());
        if tag == 0 {
            let product = self.apply(Op::Mul, &[a.clone(), b.clone()]);
            let number = |x: &Num<A::Value>| self.base.to_f64(x.base());
            let is_hidden = number(&product).is_some_and(f64::is_nan) && [a, b].iter().any(|x| number(x) == Some(0.0));
            return if is_hidden { self.constant(0.0) } else { product };
        }
        let ((a, a_tan), (b, b_tan)) = (primal_and_tangent(a, tag), primal_and_tangent(b, tag));
        let primal = self.strong_product(&a, &b);
        let first = a_tan.map(|a_tan| self.strong_product(&a_tan, &b));
        let second = b_tan.map(|b_tan| self.strong_product(&a, &b_tan));
        let tangent = match (first, second) {
            (Some(first), Some(second)) => self.apply(Op::Add, &[first, second]),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return primal,
        };
        Num::Dual { tag, parts: Rc::new((primal, tangent)) }
    }

    /// Returns a tag larger than all previous ones.
    pub(crate) fn fresh_tag(&mut self) -> u32 {
        self.last_tag += 1;
        self.last_tag
    }
}

impl<A: Algebra> Algebra for Duals<'_, A> {
    type Value = Num<A::Value>;

    fn constant(&mut self, c: f64) -> Self::Value {
        Num::Base(self.base.constant(c))
    }

    // Recursive on the nesting of derivatives.
    fn apply(&mut self, op: Op, args: &[Self::Value]) -> Self::Value {
        let tag = args.iter().map(Num::tag).max().unwrap_or(0);
        if tag == 0 || op.row().result == Type::Bool {
            let bases: Vec<A::Value> = args.iter().map(|x| x.base().clone()).collect();
            return Num::Base(self.base.apply(op, &bases));
        }
        // The operand that is not selected is ignored, and so is its tangent.
        if op == Op::Select
            && let Some(truth) = self.base.to_f64(args[0].base())
        {
            return args[if truth == 0.0 { 2 } else { 1 }].clone();
        }
        let (primals, tangents): (Vec<_>, Vec<_>) = args.iter().map(|x| primal_and_tangent(x, tag)).unzip();
        let primal = self.apply(op, &primals);
        let mut sum: Option<Self::Value> = None;
        for (idx, tangent) in tangents.into_iter().enumerate() {
            let Some(tangent) = tangent else { continue };
            let term = match op.partials()[idx] {
                Formula::Const(0.0) => continue,
                Formula::Const(1.0) => tangent,
                _ => {
                    let by_arg = partial(self, op, idx, &primals, &primal);
                    self.strong_product(&by_arg, &tangent)
                }
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => self.apply(Op::Add, &[sum, term]),
            });
        }
        match sum {
            None => primal,
            Some(tangent) => Num::Dual { tag, parts: Rc::new((primal, tangent)) },
        }
    }

    fn to_f64(&self, value: &Self::Value) -> Option<f64> {
        self.base.to_f64(value.base())
    }
}
