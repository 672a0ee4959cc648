//! Every row of the operator table is checked against itself: values against extended precision,
//! partials against central differences in extended precision, integers against doubles.

use chainrule_ops::{Algebra, Big, Counts, F64, Formula, Op, Precise, ROWS, Type, partial};

/// Returns points in the domain of the operator, from a fixed grid of awkward numbers.
fn points(op: Op) -> Vec<Vec<f64>> {
    let grid = [-7.25, -2.0, -1.5, -0.75, -0.3, -1e-3, 1e-3, 0.25, 0.5, 0.9, 1.0, 1.75, 2.0, 3.0, 8.5];
    let row = op.row();
    let mut points: Vec<Vec<f64>> = vec![vec![]];
    for ty in row.args {
        let choices: &[f64] = if *ty == Type::Bool { &[0.0, 1.0] } else { &grid };
        points = points
            .into_iter()
            .flat_map(|p| choices.iter().map(move |c| p.iter().copied().chain([*c]).collect()))
            .collect();
    }
    points.retain(|p| (row.domain.contains)(p));
    assert!(!points.is_empty(), "{op:?} has no test point");
    points
}

fn big(ctx: &Precise, point: &[f64]) -> Vec<Big> {
    point.iter().map(|x| ctx.from_f64(*x)).collect()
}

#[test]
fn rows_stand_in_order_and_have_a_partial_for_each_argument() {
    for (i, row) in ROWS.iter().enumerate() {
        assert_eq!(row.op as usize, i, "{:?}", row.op);
        assert_eq!(row.partials.len(), row.args.len(), "{:?}", row.op);
        assert_eq!(Op::by_name(row.name), Some(row.op), "{:?}'s name is taken", row.op);
        // Composite operators are written as their steps.
        let written = [row.c.template, row.rust.template].map(|template| !template.is_empty());
        assert_eq!(written, [row.steps.is_none(); 2], "{:?}", row.op);
        assert_eq!(row.op.has_steps(), row.steps.is_some(), "{:?}", row.op);
        assert_eq!(row.int.is_some(), row.c_int.is_some(), "{:?}", row.op);
        assert_eq!(row.int.is_some(), row.rust_int.is_some(), "{:?}", row.op);
        assert!(!row.commutative || row.args.len() == 2, "{:?}", row.op);
        assert!(row.weight > 0);
        let truths = row.args.iter().chain([&row.result]).filter(|ty| **ty == Type::Bool).count();
        assert_eq!((row.op.arity(), row.op.is_numeric()), (row.args.len(), truths == 0), "{:?}", row.op);
        assert_eq!(row.op.gives_truth(), row.result == Type::Bool, "{:?}", row.op);
    }
}

#[test]
fn steps_are_elementary_and_have_the_weight_of_their_row() {
    fn check(formula: &Formula) {
        match formula {
            Formula::Apply(op, inner) => {
                assert!(!op.has_steps() && inner.len() == op.arity(), "{formula:?}");
                inner.iter().for_each(check);
            }
            Formula::Value => panic!("steps compute the value"),
            Formula::Arg(_) | Formula::Const(_) => {}
        }
    }
    let mut n = 0;
    for row in ROWS {
        let Some(steps) = row.steps else { continue };
        check(&steps);
        let weight: u32 = steps.operators().iter().map(|op| op.row().weight).sum();
        assert_eq!(row.weight, weight, "{:?}", row.op);
        let mut counts = Counts::default();
        counts.record(row.op);
        assert_eq!(counts.weight, u64::from(weight), "{:?}", row.op);
        n += 1;
    }
    assert_eq!(n, 15);
}

#[test]
fn doubles_agree_with_extended_precision() {
    let mut ctx = Precise::new();
    for op in Op::all() {
        for point in points(op) {
            let value = op.value(&point);
            let args = big(&ctx, &point);
            let exact = ctx.apply(op, &args);
            let exact = ctx.as_f64(&exact);
            let tolerance = match op {
                Op::Polygamma | Op::Digamma => 1e-15,
                // lgamma has zeros at 1 and 2, where libm's error is absolute.
                Op::Lgamma => 4e-15,
                op if op.has_steps() => 1e-15,
                _ => 4e-16,
            };
            // The remainder of a rounding division is exact only relative to the size of the dividend.
            let size = if op == Op::Mod { point[0].abs() } else { exact.abs().max(1e-3) };
            let error = (value - exact).abs();
            assert!(error <= tolerance * size, "{op:?}{point:?}: {value} is not {exact}");
        }
    }
}

#[test]
fn doubles_survive_extended_precision() {
    let ctx = Precise::new();
    for x in [5e-324, -1e-310, f64::MIN_POSITIVE, 1.0, -0.1, f64::MAX, 2.225073858507201e-308] {
        let big = ctx.from_f64(x);
        assert_eq!(ctx.as_f64(&big), x);
        // Twice it, in extended precision and in doubles.
        let twice = ctx.add(&big, &big);
        assert_eq!(ctx.as_f64(&twice), 2.0 * x);
    }
    let (tiny, least) = (ctx.from_f64(5e-324), ctx.from_f64(f64::MIN_POSITIVE));
    assert_eq!(ctx.as_f64(&ctx.div(&least, &tiny)), 2f64.powi(52));
}

/// Checks that the elementary function of a row, used by backends in lanes, equals the row's value.
#[test]
fn values_are_the_bits_of_the_elementary_functions() {
    let mut n_elementary = 0;
    for row in ROWS {
        let Some(function) = row.elementary else { continue };
        n_elementary += 1;
        assert_eq!(function.arity(), row.args.len(), "{:?}", row.op);
        for point in points(row.op) {
            let mut value = [0.0];
            match point.as_slice() {
                [x] => chainrule_mathfun::apply1(function, &[*x], &mut value),
                [a, b] => chainrule_mathfun::apply2(function, &[*a], &[*b], &mut value),
                _ => panic!("{:?} has {} arguments", row.op, point.len()),
            }
            assert_eq!(value[0].to_bits(), row.op.value(&point).to_bits(), "{:?}{point:?}", row.op);
        }
    }
    assert_eq!(n_elementary, 19);
}

#[test]
fn partials_agree_with_central_differences_in_extended_precision() {
    let mut ctx = Precise::new();
    let step = {
        let mut h = ctx.from_f64(1.0);
        for _ in 0..8 {
            let tiny = ctx.from_f64(1e-5);
            h = ctx.mul(&h, &tiny);
        }
        h
    };
    for op in Op::all() {
        let row = op.row();
        for point in points(op) {
            for idx in 0..row.args.len() {
                // Booleans and the order of polygamma are not continuous arguments.
                if row.args[idx] == Type::Bool || (op == Op::Polygamma && idx == 0) {
                    continue;
                }
                let args = big(&ctx, &point);
                let value = ctx.apply(op, &args);
                let symbolic = partial(&mut ctx, op, idx, &args, &value);
                let (mut above, mut below) = (args.clone(), args.clone());
                above[idx] = ctx.add(&args[idx], &step);
                below[idx] = ctx.sub(&args[idx], &step);
                let (fa, fb) = (ctx.apply(op, &above), ctx.apply(op, &below));
                let rise = ctx.sub(&fa, &fb);
                let run = ctx.add(&step, &step);
                let numeric = ctx.div(&rise, &run);
                let (s, n) = (ctx.as_f64(&symbolic), ctx.as_f64(&numeric));
                // 1e-30 except for formulas with constants that are doubles (erf's 2/sqrt(pi)).
                assert!((s - n).abs() <= 1e-15 * n.abs().max(1e-10), "d{op:?}/d{idx} at {point:?}: {s} is not {n}");
            }
        }
    }
}

#[test]
fn partials_in_doubles_agree_with_partials_in_extended_precision() {
    let mut ctx = Precise::new();
    for op in Op::all() {
        for point in points(op) {
            for idx in 0..op.arity() {
                let args = big(&ctx, &point);
                let value = ctx.apply(op, &args);
                let exact = partial(&mut ctx, op, idx, &args, &value);
                let exact = ctx.as_f64(&exact);
                let double = partial(&mut F64, op, idx, &point, &op.value(&point));
                assert!(
                    (double - exact).abs() <= 2e-12 * exact.abs().max(1e-3),
                    "d{op:?}/d{idx} at {point:?}: {double} is not {exact}"
                );
            }
        }
    }
}

#[test]
fn integers_agree_with_doubles() {
    for row in ROWS {
        let Some(int) = row.int else { continue };
        for a in -5i64..=5 {
            for b in -5i64..=5 {
                let (ints, doubles) = ([a, b], [a as f64, b as f64]);
                let n = row.args.len();
                match int(&ints[..n]) {
                    Some(value) => assert_eq!(value as f64, (row.value)(&doubles[..n]), "{:?} {ints:?}", row.op),
                    None => assert!(b == 0, "{:?} {ints:?}", row.op),
                }
            }
        }
    }
}

#[test]
fn integers_at_the_end_of_their_range_fail_only_where_the_result_does_not_fit() {
    let int = |op: Op, a, b| (op.row().int.unwrap())(&[a, b]);
    assert_eq!(int(Op::Mod, i64::MIN, 3), Some(1));
    assert_eq!(int(Op::Quot, i64::MIN, 3), Some(-3_074_457_345_618_258_603));
    assert_eq!(int(Op::Quot, i64::MIN, -1), None);
    assert_eq!(int(Op::Mul, i64::MAX, 2), None);
    assert_eq!(int(Op::Quot, 1, 0), None);
}

#[test]
fn powers_are_right_at_awkward_bases() {
    let d = |x: f64, y: f64, idx| partial(&mut F64, Op::Pow, idx, &[x, y], &Op::Pow.value(&[x, y]));
    assert_eq!(d(-2.0, 3.0, 0), 12.0);
    assert_eq!(d(0.0, 2.0, 0), 0.0);
    assert_eq!(d(0.0, 1.0, 0), 1.0);
    assert_eq!(d(0.0, 0.0, 0), 0.0);
    assert_eq!(d(-2.0, 3.0, 1), 0.0);
    assert_eq!(d(0.0, 2.0, 1), 0.0);
}

#[test]
fn a_branch_not_taken_never_shows() {
    assert_eq!(Op::Select.value(&[1.0, 2.0, f64::NAN]), 2.0);
    assert_eq!(Op::Select.value(&[0.0, f64::NAN, 3.0]), 3.0);
}

#[test]
fn extended_precision_rounds_back_to_the_same_double() {
    let ctx = Precise::new();
    for x in [0.0, 1.0, -1.5, 1e300, -1e-300, f64::MIN_POSITIVE, std::f64::consts::PI, f64::INFINITY] {
        assert_eq!(ctx.as_f64(&ctx.from_f64(x)), x);
    }
    assert!(ctx.as_f64(&ctx.nan()).is_nan());
}
