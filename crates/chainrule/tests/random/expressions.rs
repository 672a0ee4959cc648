//! Functions built in Rust, with derivatives inside, conditions and users' functions: against repeated differences of
//! their steps in extended precision, and against the library's own check.

use crate::exact::{ROUNDINGS, RoundedConstants, Shaken, TOLERANCE, lost, within};
use crate::support::{limited, run};
use arbitrary::Unstructured;
use chainrule::check::{compare_at, results_in};
use chainrule::{Expr, Function, STRATEGIES, UserFunction, d, select, vars};
use chainrule_ops::{Algebra, Big, F64, Op, Precise, ROWS, Type};
use std::cell::{Cell, RefCell};

const INPUTS: usize = 3;

/// Places count inputs first, then steps.
#[derive(Clone, Debug)]
enum Step {
    Const(f64),
    Apply(Op, Vec<usize>),
    /// The first four: if a < b then c else d.
    Select([usize; 4]),
    /// x y + sin x, as a function of the user's.
    User([usize; 2]),
    /// The derivative of a place by inputs.
    Derivative(usize, Vec<usize>),
}

#[derive(Clone, Debug)]
struct Steps {
    point: Vec<f64>,
    steps: Vec<Step>,
}

/// Step widths: triple difference quotients keep 15 digits of 115.
const WIDTH: f64 = 1e-25;

/// Relative rounding error of a few operations without cancellation.
const FEW_ROUNDINGS: f64 = 1e-14;

/// Far below the error of doubles, far above that of 115 digits.
const NOTHING: f64 = 1e-30;

/// Values of places, computed by their steps alone.
struct Reference<'a> {
    steps: &'a [Step],
    ctx: &'a mut Precise,
    /// Whether an operator is not differentiable at its arguments, or a comparison is nearly a tie; or constants, which
    /// graphs fold in doubles, lose digits.
    /// digits, which graphs compute in doubles once and for all.
    rough: bool,
}

impl Reference<'_> {
    fn apply(&mut self, op: Op, args: &[Big]) -> Big {
        // A tiny number is a zero up to the error of 115 digits and differences.
        let exact = args.iter().map(|x| self.ctx.as_f64(x));
        let doubles: Vec<f64> = exact.map(|x| if x.abs() < NOTHING { 0.0 } else { x }).collect();
        self.rough |= !(op.row().domain.contains)(&doubles) || doubles.iter().any(|x| x.abs() > 1e3);
        self.rough |= match op {
            Op::Floor | Op::Ceil => self.is_nearly_an_integer(&args[0]),
            Op::Mod => {
                let quotient = self.ctx.div(&args[0], &args[1]);
                self.is_nearly_an_integer(&quotient)
            }
            _ => false,
        };
        self.ctx.apply(op, args)
    }

    /// Returns whether doubles may be on the other side of a discontinuity.
    fn is_nearly_an_integer(&self, x: &Big) -> bool {
        let x = self.ctx.as_f64(x);
        (x - x.round()).abs() < 1e-12
    }

    fn close(&mut self, a: &Big, b: &Big) -> bool {
        let difference = self.ctx.sub(a, b);
        self.ctx.as_f64(&difference).abs() < 1e-12
    }

    /// Returns the values of inputs and of the first `n` steps.
    fn values(&mut self, point: &[Big], n: usize) -> Vec<Big> {
        let mut values = point.to_vec();
        // Values that depend on no input, in doubles.
        let mut numbers: Vec<Option<f64>> = vec![None; point.len()];
        for step in &self.steps[..n] {
            let number = match step {
                Step::Const(c) => Some(*c),
                Step::Apply(op, args) => {
                    let args: Option<Vec<f64>> = args.iter().map(|a| numbers[*a]).collect();
                    args.map(|args| F64.apply(*op, &args))
                }
                Step::User([x, y]) => numbers[*x].zip(numbers[*y]).map(|(x, y)| x * y + x.sin()),
                Step::Select(_) | Step::Derivative(..) => None,
            };
            let value = match step {
                Step::Const(c) => self.ctx.from_f64(*c),
                Step::Apply(op, args) => {
                    let args: Vec<Big> = args.iter().map(|a| values[*a].clone()).collect();
                    if matches!(op, Op::Min | Op::Max) {
                        self.rough |= self.close(&args[0], &args[1]);
                    }
                    self.apply(*op, &args)
                }
                Step::Select([a, b, then, otherwise]) => {
                    let (a, b) = (values[*a].clone(), values[*b].clone());
                    self.rough |= self.close(&a, &b);
                    values[if self.ctx.less(&a, &b) { *then } else { *otherwise }].clone()
                }
                Step::User([x, y]) => {
                    let product = self.ctx.mul(&values[*x], &values[*y]);
                    let sine = self.apply(Op::Sin, &[values[*x].clone()]);
                    self.ctx.add(&product, &sine)
                }
                Step::Derivative(of, by) => self.derivative(point, *of, by),
            };
            if let Some(number) = number {
                let exact = self.ctx.as_f64(&value);
                self.rough |= !within(number - exact, FEW_ROUNDINGS * exact.abs());
            }
            numbers.push(number);
            values.push(value);
        }
        values
    }

    fn derivative(&mut self, point: &[Big], of: usize, by: &[usize]) -> Big {
        let Some((first, rest)) = by.split_first() else {
            return self.values(point, (of + 1).saturating_sub(INPUTS))[of].clone();
        };
        let width = self.ctx.from_f64(WIDTH);
        let mut moved = point.to_vec();
        moved[*first] = self.ctx.add(&point[*first], &width);
        let ahead = self.derivative(&moved, of, rest);
        moved[*first] = self.ctx.sub(&point[*first], &width);
        let behind = self.derivative(&moved, of, rest);
        let rise = self.ctx.sub(&ahead, &behind);
        let run = self.ctx.add(&width, &width);
        self.ctx.div(&rise, &run)
    }
}

/// Returns random steps, most of which are differentiable at the point.
fn steps(u: &mut Unstructured<'_>, derivatives: bool) -> arbitrary::Result<Steps> {
    // Values without a common divisor, so that no two are equal by coincidence.
    let mut point = Vec::new();
    for k in 0..INPUTS {
        point.push(f64::from(u.int_in_range(-2000i32..=2000)?) / 1024.0 + 1e-3 * (k as f64 + 0.618));
    }
    // Less accurate in extended precision than repeated difference quotients require; programs in F~ contain them.
    let inexact = [Op::Lgamma, Op::Digamma, Op::Erf, Op::Erfc];
    let rows: Vec<_> = ROWS
        .iter()
        .filter(|row| {
            row.result == Type::Num && !row.args.contains(&Type::Bool) && !(derivatives && inexact.contains(&row.op))
        })
        .collect();
    let mut all = Steps { point, steps: Vec::new() };
    let mut left = 2;
    for _ in 0..u.int_in_range(3..=18)? {
        let n = INPUTS + all.steps.len();
        let place = |u: &mut Unstructured<'_>| -> arbitrary::Result<usize> {
            Ok(n - 1 - u.int_in_range(0..=n - 1)?.min(u.int_in_range(0..=n - 1)?))
        };
        all.steps.push(match u.int_in_range(0..=20)? {
            0 | 1 => Step::Const(*u.choose(&[0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.25])?),
            2 => Step::Select([place(u)?, place(u)?, place(u)?, place(u)?]),
            3 => Step::User([place(u)?, place(u)?]),
            4 | 5 if left > 0 && derivatives => {
                left -= 1;
                let by =
                    (0..u.int_in_range(1..=2)?).map(|_| u.int_in_range(0..=INPUTS - 1)).collect::<Result<_, _>>()?;
                Step::Derivative(place(u)?, by)
            }
            6..=12 => {
                Step::Apply(*u.choose(&[Op::Add, Op::Mul, Op::Sub, Op::Mul, Op::Div])?, vec![place(u)?, place(u)?])
            }
            _ => {
                let row = u.choose(&rows)?;
                Step::Apply(row.op, row.args.iter().map(|_| place(u)).collect::<Result<_, _>>()?)
            }
        });
    }
    Ok(all)
}

/// Returns the function whose results are the last steps.
fn function(steps: &Steps) -> Result<Function, String> {
    let x = vars("x", INPUTS);
    let plain = UserFunction::new("mine", 2, |x| x[0] * x[1] + x[0].sin());
    let user = plain.with_partials(|x| vec![&x[1] + x[0].cos(), x[0].clone()]);
    let mut places: Vec<Expr> = (0..INPUTS).map(|i| x[i].clone()).collect();
    for step in &steps.steps {
        places.push(match step {
            Step::Const(c) => x[0].constant_like(*c),
            Step::Apply(op, args) => Expr::apply(*op, &args.iter().map(|a| &places[*a]).collect::<Vec<_>>()),
            Step::Select([a, b, then, otherwise]) => {
                select(&places[*a].less(&places[*b]), &places[*then], &places[*otherwise])
            }
            Step::User([x, y]) => user.call(&[&places[*x], &places[*y]]),
            Step::Derivative(of, by) => d(&places[*of], by.iter().map(|i| &x[*i])),
        });
    }
    let last = chainrule::Vector::new(places[places.len() - 2..].to_vec()).named("y");
    Function::new("random", &x, &last).map_err(|e| e.to_string())
}

/// Returns the rounding error of `f` itself, independent of its expected values.
fn may_lose(f: &Function, point: &[f64]) -> Result<f64, String> {
    let inputs = [point.to_vec()];
    let values = results_in(f, &mut F64, &inputs).map_err(|e| e.to_string())?.concat();
    let most = Shaken::most(|mut shaken| {
        let moved = results_in(f, &mut shaken, &inputs).map_err(|e| e.to_string())?.concat();
        Ok(lost(&values, &moved, &values))
    })?;
    Ok(ROUNDINGS * most)
}

/// Checks that `f` computes `expected`, in doubles, and in extended precision, in which rounding is no excuse, unless
/// it calls users' functions. The allowed error in doubles is their change if every operation rounds otherwise.
fn computes(way: &str, f: &Function, steps: &Steps, expected: &[f64], ctx: &mut Precise) -> Result<(), String> {
    let point = steps.point.as_slice();
    let exactly = !steps.steps.iter().any(|step| matches!(step, Step::User(_)));
    let far = |found: &[f64], most: f64| {
        found.len() != expected.len() || !found.iter().zip(expected).all(|(a, b)| within(a - b, most))
    };
    let scale = expected.iter().fold(1.0, |scale: f64, x| scale.max(x.abs()));
    let differs = |how: &str, found: &[f64]| Err(format!("{way}, {how}: {found:?} is not {expected:?}"));
    let found = f.compile().and_then(|f| f.eval(&[point])).map_err(|e| e.to_string())?.concat();
    if far(&found, TOLERANCE * scale) && far(&found, TOLERANCE * scale + may_lose(f, point)?) {
        return differs("in doubles", &found);
    }
    let at = [point.iter().map(|x| ctx.from_f64(*x)).collect::<Vec<Big>>()];
    let in_doubles =
        |found: Vec<Vec<Big>>, ctx: &Precise| found.iter().flatten().map(|x| ctx.as_f64(x)).collect::<Vec<_>>();
    let found = results_in(f, ctx, &at).map_err(|e| e.to_string())?;
    let found = in_doubles(found, ctx);
    if exactly && far(&found, 1e-11 * scale) {
        let most = Shaken::most(|shaken| {
            let moved = results_in(f, &mut RoundedConstants(ctx, shaken), &at).map_err(|e| e.to_string())?;
            Ok(lost(&found, &in_doubles(moved, ctx), &found))
        })?;
        if far(&found, 1e-11 * scale + ROUNDINGS * most) {
            return differs("in 115 digits", &found);
        }
    }
    Ok(())
}

/// Compares value and Jacobian with differences of the steps.
fn compare(steps: &Steps, ctx: &mut Precise) -> Result<bool, String> {
    let n = steps.steps.len();
    let point: Vec<Big> = steps.point.iter().map(|x| ctx.from_f64(*x)).collect();
    let mut reference = Reference { steps: &steps.steps, ctx, rough: false };
    let values = reference.values(&point, n);
    if reference.rough {
        return Ok(false);
    }
    let last = INPUTS + n - 2;
    let mut jacobian = Vec::new();
    for row in last..last + 2 {
        for column in 0..INPUTS {
            jacobian.push(reference.derivative(&point, row, &[column]));
        }
    }
    if reference.rough {
        return Ok(false);
    }
    let [values, jacobian] = [&values[last..], &jacobian].map(|x| x.iter().map(|x| ctx.as_f64(x)).collect::<Vec<_>>());
    if values.iter().chain(&jacobian).any(|x| x.is_nan() || x.abs() >= 1e6) {
        return Ok(false);
    }
    let f = function(steps)?;
    computes("the value", &f, steps, &values, ctx)?;
    for strategy in STRATEGIES {
        let derived = match f.jacobian().strategy(strategy.name).function() {
            Err(e) if strategy.name == "oracle" && limited(&e) => continue,
            derived => derived.map_err(|e| format!("{}: {e}", strategy.name))?,
        };
        computes(strategy.name, &derived, steps, &jacobian, ctx)?;
    }
    Ok(jacobian.iter().any(|x| *x != 0.0))
}

fn test(seed: u64, cases: u32, useful: u32, derivatives: bool) {
    let precise = RefCell::new(Precise::new());
    run(seed, cases, useful, 400, |bytes| {
        let Ok(steps) = steps(&mut Unstructured::new(bytes), derivatives) else { return Ok(false) };
        compare(&steps, &mut precise.borrow_mut()).map_err(|e| format!("{e}\n{steps:#?}"))
    });
}

#[test]
fn functions_are_differentiated_as_their_steps_say() {
    test(21, 1000, 200, false);
}

#[test]
fn derivatives_inside_functions_are_differentiated_again() {
    test(22, 600, 110, true);
}

/// Checks that the library's own check agrees, at the point.
#[test]
fn the_check_of_the_library_finds_no_fault() {
    let worst = Cell::new(0.0f64);
    run(23, 300, 60, 400, |bytes| {
        let Ok(mut steps) = steps(&mut Unstructured::new(bytes), true) else { return Ok(false) };
        // Callbacks support only doubles.
        steps.steps.iter_mut().for_each(|step| {
            if let Step::User([x, y]) = *step {
                *step = Step::Apply(Op::Hypot, vec![x, y]);
            }
        });
        let mut ctx = Precise::new();
        let point: Vec<Big> = steps.point.iter().map(|x| ctx.from_f64(*x)).collect();
        let mut reference = Reference { steps: &steps.steps, ctx: &mut ctx, rough: false };
        let values = reference.values(&point, steps.steps.len());
        let vanishes = |value: &Big| reference.ctx.as_f64(value).abs() < NOTHING;
        // Errors are relative to derivatives and values, if they are nonzero.
        if reference.rough || values[values.len() - 2..].iter().all(vanishes) {
            return Ok(false);
        }
        let f = function(&steps)?;
        let asked = f.jacobian();
        let derived = asked.function().map_err(|e| e.to_string())?;
        let inputs = vec![steps.point.clone()];
        let fails = |e: chainrule::Error| e.to_string();
        let found = compare_at(&f, &asked, &derived, std::slice::from_ref(&inputs)).map_err(fails)?;
        let values = results_in(&derived, &mut F64, &inputs).map_err(fails)?.concat();
        let largest = values.iter().fold(f64::MIN_POSITIVE, |largest: f64, x| largest.max(x.abs()));
        let exactly = found.precisely.max(found.from_differences);
        if exactly > 1e-11 || found.from_forward > TOLERANCE + may_lose(&derived, &steps.point)? / largest {
            return Err(format!("{found}\n{steps:#?}"));
        }
        worst.set(worst.get().max(exactly));
        Ok(found.worst().is_finite())
    });
    println!("worst: {:.1e}", worst.get());
}
