//! Forward mode by dual numbers over a scalar graph, in extended precision.

use chainrule_base::Diagnostic;
use chainrule_graph::{Graph, NodeId, evaluate};
use chainrule_ops::{Algebra, Big, Op, Precise, partial};

/// Algebra of dual numbers: a value, and a tangent unless it is structurally zero.
struct Duals<'a> {
    ctx: &'a mut Precise,
}

#[derive(Clone)]
struct Dual {
    value: Big,
    tangent: Option<Big>,
}

impl Algebra for Duals<'_> {
    type Value = Dual;

    fn constant(&mut self, c: f64) -> Dual {
        Dual { value: self.ctx.from_f64(c), tangent: None }
    }

    fn apply(&mut self, op: Op, args: &[Dual]) -> Dual {
        // The side that is not selected is not read.
        if op == Op::Select {
            return if args[0].value.is_zero() { args[2].clone() } else { args[1].clone() };
        }
        let values: Vec<Big> = args.iter().map(|arg| arg.value.clone()).collect();
        let value = self.ctx.apply(op, &values);
        let mut tangent: Option<Big> = None;
        for (i, arg) in args.iter().enumerate() {
            let Some(arg_tangent) = &arg.tangent else { continue };
            let slope = partial(self.ctx, op, i, &values, &value);
            let term = self.ctx.mul(&slope, arg_tangent);
            tangent = Some(match tangent {
                None => term,
                Some(sum) => self.ctx.add(&sum, &term),
            });
        }
        Dual { value, tangent }
    }

    fn to_f64(&self, value: &Dual) -> Option<f64> {
        self.ctx.to_f64(&value.value)
    }
}

/// Returns the derivative of each of `rows` (graph nodes) by input `column`, at `point`.
pub(super) fn tangents(
    graph: &Graph,
    ctx: &mut Precise,
    point: &[Big],
    column: usize,
    rows: &[NodeId],
) -> Result<Vec<Big>, Diagnostic> {
    let one = ctx.from_f64(1.0);
    let input = |(i, x): (usize, &Big)| Dual { value: x.clone(), tangent: (i == column).then(|| one.clone()) };
    let inputs: Vec<Dual> = point.iter().enumerate().map(input).collect();
    let zero = ctx.from_f64(0.0);
    let duals = evaluate(graph, &mut Duals { ctx }, &inputs, rows)?;
    Ok(duals.into_iter().map(|dual| dual.tangent.unwrap_or_else(|| zero.clone())).collect())
}
