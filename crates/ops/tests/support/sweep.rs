//! Arguments for operators: special doubles, neighbours of special points, all exponents; and errors in ulp against
//! extended precision.

use chainrule_cases::Xorshift;
use chainrule_ops::{Algebra, Big, Op, Precise, Type, partial};

fn sign(random: &mut Xorshift) -> f64 {
    if random.bits() >> 63 == 0 { 1.0 } else { -1.0 }
}

fn choose(random: &mut Xorshift, from: &[f64]) -> f64 {
    from[(random.bits() % from.len() as u64) as usize]
}

/// Returns points at which formulas change, overflow, underflow or cancel.
fn centres(op: Op) -> Vec<f64> {
    let mut all = vec![
        0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 10.0, 18.0, 19.0, 20.0, 26.0, 27.0, 36.0, 40.0, 50.0, 354.0, 700.0,
        708.0, 709.7, 710.4, 745.0, 1e3, 1e8, 1e15, 1e16, 1e76, 1e77, 1e100, 1e102, 1e103, 1e108, 1e150, 1e153, 1e154,
        1e160, 1e200, 1e300, 1.7e308, 1e-8, 1e-10, 1e-16, 1e-77, 1e-100, 1e-104, 1e-150, 1e-154, 1e-160, 1e-170,
        1e-200, 1e-300, 3e-308,
    ];
    match op {
        Op::Sin | Op::Cos | Op::Tan => all.extend((1..40).map(|n| f64::from(n) * std::f64::consts::FRAC_PI_4)),
        Op::Digamma | Op::Lgamma => all.extend([1.461_632_144_968_362_2, 9.999, 16.5, 2.999]),
        _ => {}
    }
    all
}

/// Returns the interval from which arguments are drawn uniformly.
fn interval(op: Op) -> (f64, f64) {
    match op {
        Op::Sin | Op::Cos | Op::Tan => (-100.0, 100.0),
        Op::Exp | Op::Expm1 | Op::Sinh | Op::Cosh | Op::Tanh | Op::SechSquare => (-712.0, 712.0),
        Op::Asin | Op::Acos | Op::Atanh | Op::OneMinusSquare => (-1.0, 1.0),
        Op::Erf | Op::Erfc | Op::Gaussian => (-27.0, 27.0),
        Op::Digamma | Op::Lgamma | Op::Polygamma => (-1.0, 30.0),
        _ => (-10.0, 10.0),
    }
}

/// Returns an argument of an operator of one number, or one of two.
fn number(op: Op, random: &mut Xorshift, centres: &[f64]) -> f64 {
    let (low, high) = interval(op);
    match random.bits() % 6 {
        0 => random.finite(),
        1 => random.between(low, high),
        2 => random.between(-40.0, 12.0).exp2() * sign(random),
        // Near a centre, at all distances.
        3 => (choose(random, centres) * (1.0 + sign(random) * random.between(-52.0, -3.0).exp2())) * sign(random),
        4 => {
            let centre = choose(random, centres);
            f64::from_bits(centre.to_bits().wrapping_add(random.bits() % 9).wrapping_sub(4)) * sign(random)
        }
        _ => random.between(low, high).clamp(-3.0, 3.0) + sign(random) * random.between(-52.0, 0.0).exp2(),
    }
}

/// Returns `many` points of an operator on numbers, inside its finite domain.
pub fn points(op: Op, many: usize) -> Vec<Vec<f64>> {
    let mut random = Xorshift::new(op as u64 + 1);
    let centres = centres(op);
    let mut all = Vec::with_capacity(many);
    while all.len() < many {
        let a = number(op, &mut random, &centres);
        let mut point = vec![a];
        if op.arity() >= 2 {
            let b = match random.bits() % 4 {
                // The same size, and nearly the same.
                0 => a * random.between(-6.0, 6.0).exp2() * sign(&mut random),
                1 => a * (1.0 + sign(&mut random) * random.between(-52.0, -1.0).exp2()) * sign(&mut random),
                _ => number(op, &mut random, &centres),
            };
            point.push(b);
        }
        match op {
            Op::Polygamma => {
                point[0] = (random.bits() % 6) as f64;
                // Half the arguments left of 0, near half integers too.
                if point[1] < 0.0 && random.bits().is_multiple_of(2) {
                    point[1] = -((random.bits() % 30) as f64) - 0.5 + random.between(-0.5, 0.5);
                }
            }
            Op::Pow => {
                // Results that are not doubles are of little use.
                if random.bits().is_multiple_of(2) {
                    point[0] = point[0].abs();
                    point[1] = random.between(-740.0, 740.0) / point[0].ln();
                } else if point[0] < 0.0 {
                    point[1] = point[1].round();
                }
            }
            _ => {}
        }
        if inside(op, &point) {
            all.push(point);
        }
    }
    all
}

/// Returns whether the operator is swept at a point.
pub fn inside(op: Op, point: &[f64]) -> bool {
    let x = point[0];
    point.iter().all(|x| x.is_finite())
        && match op {
            // Extended precision has too few digits for larger arguments.
            Op::Sin | Op::Cos | Op::Tan => x.abs() < 1e15,
            Op::Digamma => x > -60.0 && !(x <= 0.0 && x.fract() == 0.0),
            Op::Polygamma => point[1] > -60.0 && !(point[1] <= 0.0 && point[1].fract() == 0.0),
            Op::Pow => x > 0.0 || (x < 0.0 && point[1].fract() == 0.0 && point[1].abs() <= 1e6),
            Op::Sinh | Op::Cosh | Op::Exp | Op::Expm1 | Op::Tanh | Op::SechSquare | Op::Gaussian => x.abs() < 1e5,
            _ => (op.row().domain.contains)(point),
        }
}

/// Returns the swept operators: those of numbers with a number as a result and a nonzero derivative somewhere.
pub fn swept() -> Vec<Op> {
    Op::all()
        .filter(|op| op.row().args.iter().all(|ty| *ty == Type::Num) && op.row().result == Type::Num)
        .filter(|op| !matches!(op, Op::Quot | Op::Mod | Op::Floor | Op::Ceil | Op::Binade))
        .collect()
}

/// Result of an operator: its value, or a partial derivative by these arguments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Of {
    /// Value.
    Value,
    /// First partial derivative.
    First(usize),
    /// Second partial derivative: by the first index, then by the second.
    Second(usize, usize),
}

/// Returns the order of derivative that an operator represents of others: operators introduced as derivatives of
/// another one have fewer orders of their own.
fn order(op: Op) -> usize {
    match op {
        Op::OneMinusSquare | Op::SechSquare | Op::Gaussian | Op::Lorentzian | Op::AngleRate | Op::DirectionCosine => 1,
        Op::MaskedReciprocal => 1,
        Op::LorentzianMoment | Op::AngleBend | Op::HypotBend | Op::HypotTwist => 2,
        _ => 0,
    }
}

/// Returns the results of an operator up to second derivatives, without those by an order, which is not a continuous
/// argument.
pub fn results(op: Op) -> Vec<Of> {
    let args: Vec<usize> = (0..op.arity()).filter(|i| !(op == Op::Polygamma && *i == 0)).collect();
    let mut all = vec![Of::Value];
    if order(op) < 2 {
        all.extend(args.iter().map(|i| Of::First(*i)));
    }
    if order(op) < 1 {
        all.extend(args.iter().flat_map(|i| args.iter().filter(move |j| i <= j).map(|j| Of::Second(*i, *j))));
    }
    all
}

/// Returns the largest allowed error, in ulp.
pub fn bar(op: Op, of: Of) -> f64 {
    let more = match of {
        Of::Value => 0,
        Of::First(_) => 1,
        Of::Second(..) => 2,
    };
    if order(op) + more < 2 { 4.0 } else { 8.0 }
}

/// Returns whether a point is an exception to the bound, which the guide lists in limits.md.
pub fn is_beyond(op: Op, of: Of, point: &[f64]) -> bool {
    let value = op.value(point);
    let lost = |x: f64| !x.is_normal();
    match op {
        // The quotient is divided once more, also if factoring shares the square of the reciprocal.
        Op::Div | Op::Rescale => {
            let square = (1.0 / point[1]) / point[1];
            of != Of::Value && (lost(value) || (matches!(of, Of::Second(..)) && lost(square)))
        }
        // The loss of a / m, where m is the larger argument: below 2^-1022.
        Op::Atan2 | Op::AngleRate => {
            let larger = point[0].abs().max(point[1].abs());
            of != Of::Value && point.iter().any(|x| lost(x / larger))
        }
        // Powers of which the derivatives are multiples. For a negative base the exponent is a constant.
        Op::Pow if point[0] < 0.0 && !matches!(of, Of::Value | Of::First(0) | Of::Second(0, 0)) => true,
        Op::Pow => of != Of::Value && (0..3).any(|k| lost(Op::Pow.value(&[point[0], point[1] - f64::from(k)]))),
        _ => false,
    }
}

/// Returns the reference magnitude of an error, as a multiple of the result: 1, and more if the result is the
/// difference of larger numbers, near its zeros.
pub fn conditioning(op: Op, of: Of, point: &[f64], exact: f64) -> f64 {
    let right = |order: f64, x: f64| chainrule_ops::polygamma(order, 1.0 - x);
    let terms = match (op, of) {
        (Op::Digamma, _) if point[0] < 0.0 => right(
            if let Of::First(_) = of {
                1.0
            } else if of == Of::Value {
                0.0
            } else {
                2.0
            },
            point[0],
        ),
        (Op::Polygamma, _) if point[1] < 0.0 => right(
            point[0]
                + if let Of::First(_) = of {
                    1.0
                } else if of == Of::Value {
                    0.0
                } else {
                    2.0
                },
            point[1],
        ),
        // a^(b - 1) (1 + b log a)
        (Op::Pow, Of::Second(0, 1)) => Op::Pow.value(&[point[0], point[1] - 1.0]),
        _ => 0.0,
    };
    (terms / exact).abs().max(1.0)
}

/// Computes one of the results in an algebra, by the table's formulas.
pub fn result<A: Algebra>(algebra: &mut A, op: Op, of: Of, args: &[A::Value], zero: fn(&A::Value) -> bool) -> A::Value {
    let value = algebra.apply(op, args);
    match of {
        Of::Value => value,
        Of::First(i) => partial(algebra, op, i, args, &value),
        Of::Second(i, j) => {
            let slope = partial(algebra, op, j, args, &value);
            let mut dual = Dual { algebra, zero };
            let none = dual.algebra.constant(0.0);
            let one = dual.algebra.constant(1.0);
            let seeded: Vec<(A::Value, A::Value)> = args
                .iter()
                .enumerate()
                .map(|(k, x)| (x.clone(), if k == j { one.clone() } else { none.clone() }))
                .collect();
            partial(&mut dual, op, i, &seeded, &(value, slope)).1
        }
    }
}

/// Algebra of numbers with a tangent.
struct Dual<'a, A: Algebra> {
    algebra: &'a mut A,
    zero: fn(&A::Value) -> bool,
}

impl<A: Algebra> Algebra for Dual<'_, A> {
    type Value = (A::Value, A::Value);

    fn constant(&mut self, c: f64) -> Self::Value {
        (self.algebra.constant(c), self.algebra.constant(0.0))
    }

    fn apply(&mut self, op: Op, args: &[Self::Value]) -> Self::Value {
        let values: Vec<A::Value> = args.iter().map(|a| a.0.clone()).collect();
        let value = self.algebra.apply(op, &values);
        let mut tangent: Option<A::Value> = None;
        for (i, arg) in args.iter().enumerate() {
            if (self.zero)(&arg.1) || op.row().args[i] == Type::Bool {
                continue;
            }
            let slope = partial(self.algebra, op, i, &values, &value);
            if (self.zero)(&slope) {
                continue;
            }
            let term = self.algebra.apply(Op::Mul, &[slope, arg.1.clone()]);
            tangent = Some(match tangent {
                Some(sum) => self.algebra.apply(Op::Add, &[sum, term]),
                None => term,
            });
        }
        let tangent = tangent.unwrap_or_else(|| self.algebra.constant(0.0));
        (value, tangent)
    }
}

/// Returns the exact result at a point, if it is a normal double.
pub fn exact(precise: &mut Precise, op: Op, of: Of, point: &[f64]) -> Option<Big> {
    let args: Vec<Big> = point.iter().map(|x| precise.from_f64(*x)).collect();
    let exact = result(precise, op, of, &args, Big::is_zero);
    // Zeros that extended precision has up to its digits.
    let is_zero = op == Op::Lgamma && of == Of::Value && (point[0] == 1.0 || point[0] == 2.0);
    (precise.as_f64(&exact).is_normal() && !is_zero).then_some(exact)
}

/// Returns the distance of a double from the exact result, in units in the last place of the latter.
pub fn ulps(precise: &Precise, found: f64, exact: &Big) -> f64 {
    if !found.is_finite() {
        return f64::INFINITY;
    }
    let size = precise.as_f64(exact).abs();
    let unit = f64::from_bits(size.to_bits() & 0x7ff0_0000_0000_0000) * f64::EPSILON;
    // A unit may be subnormal; both are scaled by the same power of two.
    let up = 2f64.powi(if size < 1e-200 {
        600
    } else if size > 1e200 {
        -100
    } else {
        0
    });
    let error = precise.sub(&precise.from_f64(found), exact);
    let error = precise.mul(&error, &precise.from_f64(up));
    let unit = if unit == 0.0 || size < 1e-200 {
        f64::from_bits((size * up).to_bits() & 0x7ff0_0000_0000_0000) * f64::EPSILON
    } else {
        unit * up
    };
    precise.as_f64(&error).abs() / unit
}
