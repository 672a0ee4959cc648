//! The chain rule for one operator: the tangent of `op(args)` from the tangents of the arguments, and the
//! cotangents of the arguments from that of `op(args)`.
//!
//! The partials are the formulas of the operator table. A tangent is the sum of partial times
//! tangent, with one exception: where a partial is a `select`, the tangents go inside it. So the
//! tangent of `select(c, a, b)` is `select(c, a_tan, b_tan)` and that of `min(a, b)` is the tangent
//! of the smaller: an infinite or undefined tangent of what was not chosen never meets a zero.

use crate::emit::{Emitter, Scalar};
use chainrule_ir::VarId;
use chainrule_ops::{Algebra, Formula, Op};

/// Whether `op` can have a tangent when only argument `idx` has: whether that partial is not zero everywhere.
pub(crate) fn depends(op: Op, idx: usize) -> bool {
    op.partials().get(idx).is_some_and(|partial| *partial != Formula::ZERO)
}

/// The tangent of `value = op(args)`; `None` stands for a tangent that is zero by structure.
pub(crate) fn tangent(
    emitter: &mut Emitter,
    op: Op,
    args: &[VarId],
    value: VarId,
    tangents: &[Option<Scalar>],
) -> Scalar {
    let args = args.iter().map(|arg| emitter.scalar(*arg)).collect();
    let mut site = Site { emitter, args, value: Scalar::Var(value), known: Vec::new() };
    let terms: Vec<(Formula, Scalar)> =
        op.partials().iter().zip(tangents).filter_map(|(partial, tangent)| Some((*partial, (*tangent)?))).collect();
    site.sum(&terms)
}

/// The cotangents of the arguments of `value = op(args)` whose own is `cotangent`; `None` for an argument that
/// is not active, or on which `op` does not depend.
pub(crate) fn cotangents(
    emitter: &mut Emitter,
    op: Op,
    args: &[VarId],
    value: VarId,
    active: &[bool],
    cotangent: Scalar,
) -> Vec<Option<Scalar>> {
    let args = args.iter().map(|arg| emitter.scalar(*arg)).collect();
    let mut site = Site { emitter, args, value: Scalar::Var(value), known: Vec::new() };
    let part = |(partial, active): (&Formula, &bool)| {
        (*active && *partial != Formula::ZERO).then(|| site.sum(&[(*partial, cotangent)]))
    };
    op.partials().iter().zip(active).map(part).collect()
}

/// One application of an operator.
struct Site<'a> {
    emitter: &'a mut Emitter,
    args: Vec<Scalar>,
    value: Scalar,
    /// Formulas computed already: partials of one operator often share terms.
    known: Vec<(Formula, Scalar)>,
}

// Recursive on the depth of a formula of the table, never on a user's data.
impl Site<'_> {
    /// The sum of formula times tangent.
    fn sum(&mut self, terms: &[(Formula, Scalar)]) -> Scalar {
        if let Some((condition, chosen, otherwise)) = common_select(terms) {
            let condition = self.formula(condition);
            return match condition {
                Scalar::Const(c) => self.sum(if c == 0.0 { &otherwise } else { &chosen }),
                Scalar::Var(_) => {
                    let (chosen, otherwise) = (self.sum(&chosen), self.sum(&otherwise));
                    self.emitter.apply(Op::Select, &[condition, chosen, otherwise])
                }
            };
        }
        let mut sum = Scalar::Const(0.0);
        for (formula, tangent) in terms {
            let term = if let Formula::Apply(Op::Select, _) = formula {
                self.sum(&[(*formula, *tangent)])
            } else if *formula == Formula::ZERO || *tangent == Scalar::Const(0.0) {
                continue;
            } else {
                let partial = self.formula(*formula);
                self.emitter.apply(Op::Mul, &[partial, *tangent])
            };
            sum = self.emitter.apply(Op::Add, &[sum, term]);
        }
        sum
    }

    fn formula(&mut self, formula: Formula) -> Scalar {
        let (op, inner) = match formula {
            Formula::Arg(i) => return self.args[i],
            Formula::Value => return self.value,
            Formula::Const(c) => return Scalar::Const(c),
            Formula::Apply(op, inner) => (op, inner),
        };
        if let Some((_, scalar)) = self.known.iter().find(|(known, _)| *known == formula) {
            return *scalar;
        }
        let operands: Vec<Scalar> = if op == Op::Select {
            // A known condition decides before the other side is written.
            match (self.formula(inner[0]), inner) {
                (Scalar::Const(c), [_, chosen, otherwise]) => {
                    return self.formula(if c == 0.0 { *otherwise } else { *chosen });
                }
                (condition, _) => [condition].into_iter().chain(inner[1..].iter().map(|f| self.formula(*f))).collect(),
            }
        } else {
            inner.iter().map(|f| self.formula(*f)).collect()
        };
        let scalar = self.emitter.apply(op, &operands);
        self.known.push((formula, scalar));
        scalar
    }
}

type Terms = Vec<(Formula, Scalar)>;

/// The condition and both sides, when all formulas are selects by one condition.
fn common_select(terms: &[(Formula, Scalar)]) -> Option<(Formula, Terms, Terms)> {
    let mut common = None;
    let (mut chosen, mut otherwise) = (Vec::new(), Vec::new());
    for (formula, tangent) in terms {
        let Formula::Apply(Op::Select, [condition, a, b]) = formula else { return None };
        if *common.get_or_insert(*condition) != *condition {
            return None;
        }
        chosen.push((*a, *tangent));
        otherwise.push((*b, *tangent));
    }
    Some((common?, chosen, otherwise))
}
