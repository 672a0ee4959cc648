//! Steps of composite operators: in an order that loses no accuracy, without intermediate over- or underflow unless the
//! result over- or underflows.
//!
//! Two arguments are divided by the larger one first: then one of them is 1 or -1, and the sum of their squares lies
//! between 1 and 2.

use crate::algebra::{F64, evaluate};
use crate::formula::Formula::{self, Apply, Arg, Const};
use crate::table::Op::{Abs, Add, Div, Eq, Exp, Floor, Max, Min, Mul, Neg, Or, Select, Sqrt, Sub};

const A0: Formula = Arg(0);
const A1: Formula = Arg(1);
const ONE: Formula = Const(1.0);

/// Returns the value of `steps` at `args`.
pub(crate) fn value(steps: &Formula, args: &[f64]) -> f64 {
    evaluate(&mut F64, steps, args, &f64::NAN)
}

pub(crate) const RESCALE: Formula = Apply(Div, &[A0, A1]);

const PRODUCT: Formula = Apply(Mul, &[A0, A1]);
const FIRST_IS_ZERO: Formula = Apply(Eq, &[A0, Const(0.0)]);
const SECOND_IS_ZERO: Formula = Apply(Eq, &[A1, Const(0.0)]);

pub(crate) const MASKED_MUL: Formula = Apply(Select, &[FIRST_IS_ZERO, Const(0.0), PRODUCT]);

pub(crate) const STRONG_MUL: Formula =
    Apply(Select, &[Apply(Or, &[FIRST_IS_ZERO, SECOND_IS_ZERO]), Const(0.0), PRODUCT]);

pub(crate) const MASKED_RECIPROCAL: Formula = Apply(Select, &[FIRST_IS_ZERO, Const(0.0), Apply(Div, &[ONE, A0])]);

pub(crate) const MASKED_OVERFLOW: Formula = Apply(Select, &[Apply(Eq, &[A0, Const(f64::INFINITY)]), Const(0.0), A0]);

pub(crate) const ONE_MINUS_SQUARE: Formula = Apply(Mul, &[Apply(Sub, &[ONE, A0]), Apply(Add, &[ONE, A0])]);

/// exp(-2 |x|)
const SMALL_POWER: Formula = Apply(Exp, &[Apply(Mul, &[Const(-2.0), Apply(Abs, &[A0])])]);
const ONE_MORE: Formula = Apply(Add, &[ONE, SMALL_POWER]);

/// 4 t / (1 + t)^2 for t = exp(-2 |x|), which does not overflow.
pub(crate) const SECH_SQUARE: Formula =
    Apply(Div, &[Apply(Mul, &[Const(4.0), SMALL_POWER]), Apply(Mul, &[ONE_MORE, ONE_MORE])]);

/// |x|, but not more than 32, where exp(-x^2) is 0.
const SIZE: Formula = Apply(Min, &[Apply(Abs, &[A0]), Const(32.0)]);
/// The size rounded down to 20 binary digits after the point, so that its square is exact.
const HEAD: Formula = Apply(Mul, &[Apply(Floor, &[Apply(Mul, &[SIZE, Const(1_048_576.0)])]), Const(1.0 / 1_048_576.0)]);
/// The square of the size minus that of the head: at most 2^-14.
const REST: Formula = Apply(Mul, &[Apply(Sub, &[SIZE, HEAD]), Apply(Add, &[SIZE, HEAD])]);
const REST_HALF: Formula = Apply(Mul, &[Const(0.5), REST]);

/// exp(-head^2) (1 - r + r^2/2 - r^3/6): the fourth power of r is below 2^-56.
pub(crate) const GAUSSIAN: Formula = Apply(
    Mul,
    &[
        Apply(Exp, &[Apply(Neg, &[Apply(Mul, &[HEAD, HEAD])])]),
        Apply(
            Sub,
            &[
                ONE,
                Apply(
                    Mul,
                    &[
                        REST,
                        Apply(
                            Sub,
                            &[ONE, Apply(Mul, &[REST_HALF, Apply(Sub, &[ONE, Apply(Mul, &[REST, Const(1.0 / 3.0)])])])],
                        ),
                    ],
                ),
            ],
        ),
    ],
);

pub(crate) const LORENTZIAN: Formula = Apply(Div, &[ONE, Apply(Add, &[ONE, Apply(Mul, &[A0, A0])])]);

/// 1 / (x + 1/x): no square that overflows.
pub(crate) const LORENTZIAN_MOMENT: Formula = Apply(Div, &[ONE, Apply(Add, &[A0, Apply(Div, &[ONE, A0])])]);

const LARGER: Formula = Apply(Max, &[Apply(Abs, &[A0]), Apply(Abs, &[A1])]);
const FIRST: Formula = Apply(Div, &[A0, LARGER]);
const SECOND: Formula = Apply(Div, &[A1, LARGER]);
const SQUARES: Formula = Apply(Add, &[Apply(Mul, &[FIRST, FIRST]), Apply(Mul, &[SECOND, SECOND])]);

pub(crate) const ANGLE_RATE: Formula = Apply(Div, &[Apply(Div, &[SECOND, SQUARES]), LARGER]);

const FIRST_HALF: Formula = Apply(Mul, &[Const(0.5), A0]);
const SECOND_HALF: Formula = Apply(Mul, &[Const(0.5), A1]);

/// The arguments are subtracted before a division rounds them. Halves, so that the sum does not overflow.
pub(crate) const ANGLE_BEND: Formula = Apply(
    Div,
    &[
        Apply(
            Div,
            &[
                Apply(
                    Div,
                    &[
                        Apply(
                            Mul,
                            &[
                                Apply(
                                    Mul,
                                    &[Const(4.0), Apply(Div, &[Apply(Sub, &[FIRST_HALF, SECOND_HALF]), LARGER])],
                                ),
                                Apply(Div, &[Apply(Add, &[FIRST_HALF, SECOND_HALF]), LARGER]),
                            ],
                        ),
                        Apply(Mul, &[SQUARES, SQUARES]),
                    ],
                ),
                LARGER,
            ],
        ),
        LARGER,
    ],
);

const ROOT: Formula = Apply(Sqrt, &[SQUARES]);

/// Slopes of the norm are 0 where it is 0, as those of `sqrt (x * x + y * y)`. A sum, because a maximum may drop a NaN.
const IS_ZERO: Formula = Apply(Eq, &[Apply(Add, &[Apply(Abs, &[A0]), Apply(Abs, &[A1])]), Const(0.0)]);

pub(crate) const DIRECTION_COSINE: Formula = Apply(Select, &[IS_ZERO, Const(0.0), Apply(Div, &[FIRST, ROOT])]);

const CUBE: Formula = Apply(Mul, &[SQUARES, ROOT]);

/// One factor is divided by the larger argument before they are multiplied: their product may underflow although the
/// result does not.
pub(crate) const HYPOT_BEND: Formula =
    Apply(Select, &[IS_ZERO, Const(0.0), Apply(Mul, &[Apply(Div, &[SECOND, CUBE]), Apply(Div, &[SECOND, LARGER])])]);

pub(crate) const HYPOT_TWIST: Formula =
    Apply(Select, &[IS_ZERO, Const(0.0), Apply(Div, &[Apply(Div, &[Apply(Mul, &[FIRST, SECOND]), CUBE]), LARGER])]);
