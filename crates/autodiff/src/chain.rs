//! Chain rule for one operator: the tangent of `op(args)` from the tangents of the arguments, and the cotangents of the
//! arguments from that of `op(args)`.
//!
//! The partials are the formulas of the operator table. A tangent is the sum of partial times tangent, with one
//! exception: if a partial is a `select`, the products are formed inside of it. So the tangent of `select(c, a, b)` is
//! `select(c, a_tan, b_tan)` and that of `min(a, b)` is the tangent of the smaller operand: an infinite or undefined
//! tangent of the operand that is not selected is never multiplied by zero.
//!
//! A zero masks its cofactor if that may be infinite ([`chainrule_ops::multiply`]).

use crate::emit::{Emitter, Scalar};
use chainrule_ir::VarId;
use chainrule_ops::{Algebra, Factor, Formula, Op};

/// Statement `value = op(args)`.
#[derive(Clone, Copy)]
pub(crate) struct Application<'a> {
    pub op: Op,
    pub args: &'a [VarId],
    pub value: VarId,
}

/// Returns whether the partial of `op` by argument `idx` is not zero everywhere.
pub(crate) fn depends(op: Op, idx: usize) -> bool {
    op.partials().get(idx).is_some_and(|partial| *partial != Formula::ZERO)
}

/// Returns the tangent of the value of `application`; `None` in `tangents` stands for a structurally zero tangent.
/// `factors` states where the others are infinite or zero.
pub(crate) fn tangent(
    emitter: &mut Emitter,
    application: Application<'_>,
    tangents: &[Option<Scalar>],
    factors: &[Factor],
) -> Scalar {
    let mut site = Site::new(emitter, application);
    let known = tangents.iter().zip(factors).enumerate();
    let terms: Vec<Term> = known
        .filter_map(|(idx, (tangent, factor))| {
            let (partial, of_partial) = site.partial(idx);
            Some(Term { partial, of_partial, tangent: (*tangent)?, of_tangent: *factor })
        })
        .collect();
    site.sum(&terms)
}

/// Returns the cotangents of the arguments of `application`, whose value has the cotangent `cotangent` with its factor.
/// `None` stands for an argument that is inactive, or on which the operator does not depend. A repeated argument has
/// one cotangent: partial derivatives that cancel do so before they are multiplied.
pub(crate) fn cotangents(
    emitter: &mut Emitter,
    application: Application<'_>,
    active: &[bool],
    (cotangent, factor): (Scalar, Factor),
) -> Vec<Option<Scalar>> {
    let Application { op, args, .. } = application;
    let mut site = Site::new(emitter, application);
    let term = |site: &Site<'_>, idx| {
        let (partial, of_partial) = site.partial(idx);
        Term { partial, of_partial, tangent: cotangent, of_tangent: factor }
    };
    let is_choice = |partial: &Formula| matches!(partial, Formula::Apply(Op::Select, _));
    if let (&[a, b], [true, true], [first, second]) = (args, active, op.partials())
        && a == b
        && !is_choice(first)
        && !is_choice(second)
    {
        let parts = [site.formula(*first), site.formula(*second)];
        let partial = site.emitter.apply(Op::Add, &parts);
        let of_partial = site.partial(0).1.plus(site.partial(1).1);
        let sum = site.product((partial, of_partial), (cotangent, factor));
        return vec![Some(sum), None];
    }
    let part = |(idx, (partial, active)): (usize, (&Formula, &bool))| {
        (*active && *partial != Formula::ZERO).then(|| {
            let term = term(&site, idx);
            site.sum(&[term])
        })
    };
    op.partials().iter().zip(active).enumerate().map(part).collect()
}

/// A partial derivative times a tangent.
#[derive(Clone, Copy)]
struct Term {
    partial: Formula,
    of_partial: Factor,
    tangent: Scalar,
    of_tangent: Factor,
}

/// Application of an operator to scalars.
struct Site<'a> {
    emitter: &'a mut Emitter,
    op: Op,
    args: Vec<Scalar>,
    value: Scalar,
    /// Memoised formulas: the partials of one operator often share terms.
    known: Vec<(Formula, Scalar)>,
}

// Recursive on the depth of a formula of the table, which does not depend on the user's program.
impl<'a> Site<'a> {
    fn new(emitter: &'a mut Emitter, Application { op, args, value }: Application<'_>) -> Self {
        let args = args.iter().map(|arg| emitter.scalar(*arg)).collect();
        Self { emitter, op, args, value: Scalar::Var(value), known: Vec::new() }
    }

    /// Returns the partial derivative by argument `idx`, with where it is infinite and zero.
    fn partial(&self, idx: usize) -> (Formula, Factor) {
        let constant = |k: usize| if let Scalar::Const(c) = self.args[k] { Some(c) } else { None };
        (self.op.partials()[idx], Factor::partial(self.op, idx, constant))
    }

    fn product(&mut self, (partial, of_partial): (Scalar, Factor), (tangent, of_tangent): (Scalar, Factor)) -> Scalar {
        let factor = |scalar, otherwise| if let Scalar::Const(c) = scalar { Factor::constant(c) } else { otherwise };
        let of_partial = factor(partial, of_partial);
        let of_tangent = factor(tangent, of_tangent);
        chainrule_ops::multiply(self.emitter, (partial, of_partial), (tangent, of_tangent))
    }

    /// Returns the sum of the terms.
    fn sum(&mut self, terms: &[Term]) -> Scalar {
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
        for term in terms {
            let product = if let Formula::Apply(Op::Select, _) = term.partial {
                self.sum(&[*term])
            } else if term.partial == Formula::ZERO || term.tangent == Scalar::Const(0.0) {
                continue;
            } else {
                let partial = self.formula(term.partial);
                self.product((partial, term.of_partial), (term.tangent, term.of_tangent))
            };
            sum = self.emitter.apply(Op::Add, &[sum, product]);
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
            // A constant condition selects one side before the other is emitted.
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

/// Returns the condition and both sides, when all partial derivatives are selects by one condition.
fn common_select(terms: &[Term]) -> Option<(Formula, Vec<Term>, Vec<Term>)> {
    let mut common = None;
    let (mut chosen, mut otherwise) = (Vec::new(), Vec::new());
    for term in terms {
        let Formula::Apply(Op::Select, [condition, a, b]) = term.partial else { return None };
        if *common.get_or_insert(*condition) != *condition {
            return None;
        }
        chosen.push(Term { partial: *a, ..*term });
        otherwise.push(Term { partial: *b, ..*term });
    }
    Some((common?, chosen, otherwise))
}
