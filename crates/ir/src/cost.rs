//! Operation counts of an evaluation, measured while it runs.

use crate::{Failure, Function, Value, evaluate};
use chainrule_ops::{Algebra, Counts, F64, Op};

/// An algebra that counts the operators applied to the numbers of another algebra. Integer arithmetic and decisions of
/// the evaluator (branches, indices) are not counted; the additions of a `sum` are.
#[derive(Clone, Debug, Default)]
pub struct Counting<A> {
    /// Underlying algebra.
    pub numbers: A,
    /// Counts so far.
    pub counts: Counts,
}

impl<A: Algebra> Algebra for Counting<A> {
    type Value = A::Value;

    fn constant(&mut self, c: f64) -> A::Value {
        self.numbers.constant(c)
    }

    fn apply(&mut self, op: Op, args: &[A::Value]) -> A::Value {
        self.counts.record(op);
        self.numbers.apply(op, args)
    }

    fn to_f64(&self, value: &A::Value) -> Option<f64> {
        self.numbers.to_f64(value)
    }
}

/// Returns the operations of one evaluation of `function` at `args`, in doubles.
///
/// # Errors
/// As [`evaluate`](fn@crate::evaluate).
pub fn count(function: &Function, args: &[Value<f64>]) -> Result<Counts, Failure> {
    let mut counting = Counting { numbers: F64, counts: Counts::default() };
    evaluate(function, &mut counting, args)?;
    Ok(counting.counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Type};

    #[test]
    fn a_dot_product_takes_one_multiplication_and_one_addition_an_element() {
        let mut b = Builder::new("norm2");
        let n = b.size_param("n");
        let n = b.size_of(n);
        let v = b.param("v", Type::array(n.clone(), Type::Double));
        let sum = b.sum(n, |b, i| {
            let x = b.get(v, i);
            b.op(Op::Mul, &[x, x])
        });
        let root = b.op(Op::Sqrt, &[sum]);
        let counts = count(&b.finish(root), &[vec![1.0; 5].into()]).unwrap();
        assert_eq!((counts.mul, counts.add, counts.call, counts.arithmetic()), (5, 5, 1, 10));
    }
}
