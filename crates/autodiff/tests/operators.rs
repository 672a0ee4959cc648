//! Every operator of the table by every argument, with the other arguments active or inactive.

use chainrule_autodiff::check;
use chainrule_ir::{Builder, Function, Type, Value, VarId};
use chainrule_ops::{Big, Formula, Op, Precise, ROWS, Row};

/// Returns the derivative of `op` by the arguments in `by`, at its arguments, along as many further parameters; and the
/// operator itself as a function of its arguments.
fn functions(row: &Row, by: u32) -> (Function, Function) {
    let params = |b: &mut Builder| -> Vec<VarId> {
        (0..row.args.len()).map(|k| b.param(&format!("a{k}"), Type::Double)).collect()
    };
    // Truth values are computed from numbers, which keeps all parameters doubles.
    let apply = |b: &mut Builder, args: &[VarId]| -> VarId {
        let args: Vec<VarId> = (args.iter().zip(row.args))
            .map(|(arg, ty)| match ty {
                chainrule_ops::Type::Num => *arg,
                chainrule_ops::Type::Bool => {
                    let zero = b.real(0.0);
                    b.op(Op::Lt, &[zero, *arg])
                }
            })
            .collect();
        let value = b.op(row.op, &args);
        match row.result {
            chainrule_ops::Type::Num => value,
            chainrule_ops::Type::Bool => {
                let (one, zero) = (b.real(1.0), b.real(0.0));
                b.op(Op::Select, &[value, one, zero])
            }
        }
    };
    let mut b = Builder::new("derivative");
    let args = params(&mut b);
    let active: Vec<usize> = (0..args.len()).filter(|k| by >> k & 1 == 1).collect();
    let along: Vec<VarId> = active.iter().map(|k| b.param(&format!("t{k}"), Type::Double)).collect();
    let at: Vec<VarId> = active.iter().map(|k| args[*k]).collect();
    let result = b.jvp(&at, &along, |b, inner| {
        let mut args = args.clone();
        for (k, var) in active.iter().zip(inner) {
            args[*k] = *var;
        }
        apply(b, &args)
    });
    let derivative = b.finish(result);
    let mut b = Builder::new("value");
    let args = params(&mut b);
    let result = apply(&mut b, &args);
    (derivative, b.finish(result))
}

const POINTS: [[f64; 3]; 7] = [
    [0.375, 0.75, 2.5],
    [1.625, 0.3125, -1.5],
    [2.25, 3.5, 0.125],
    [-0.4375, 2.0, 3.0],
    [-1.75, -0.5625, 0.5],
    [0.5, -2.0, 1.25],
    [3.0, 1.5, -0.75],
];

/// Returns whether the partials contain an irrational constant, rounded to a double.
fn rounded(formula: &Formula) -> bool {
    match formula {
        Formula::Const(c) => (c * 8.0).fract() != 0.0,
        Formula::Apply(_, inner) => inner.iter().any(rounded),
        Formula::Arg(_) | Formula::Value => false,
    }
}

#[test]
fn every_operator_by_every_argument_is_right() {
    let mut precise = Precise::new();
    let (mut n_checked, mut n_compared) = (0, 0);
    for row in ROWS {
        for by in 1..1u32 << row.args.len() {
            let (derivative, value) = functions(row, by);
            for point in POINTS {
                let at = &point[..row.args.len()];
                if !(row.domain.contains)(at) {
                    continue;
                }
                let along = [1.5, -0.625, 2.0];
                let name = format!("{} by {by:b} at {at:?}", row.name);
                let args: Vec<Value<f64>> =
                    at.iter().chain(&along[..by.count_ones() as usize]).map(|x| (*x).into()).collect();
                let checked = check::expansion(&derivative, &args).unwrap_or_else(|e| panic!("{name}: {e}"));
                let Some((expanded, _)) = checked else { panic!("{name}: no value") };
                n_checked += 1;
                if row.partials.iter().any(rounded) {
                    continue;
                }
                // The expanded function in extended precision, against differences of the operator itself.
                let big: Vec<Value<Big>> = args.iter().map(|x| x.map(&mut |x| precise.from_f64(*x))).collect();
                let found = chainrule_ir::evaluate(&expanded, &mut precise, &big).expect("a value");
                let tangent = found.reals()[1].clone();
                let mut directions = along.iter();
                let direction: Vec<Value<Big>> = (0..at.len())
                    .map(|k| if by >> k & 1 == 1 { *directions.next().expect("one each") } else { 0.0 })
                    .map(|t| Value::Real(precise.from_f64(t)))
                    .collect();
                let compared =
                    check::central_differences(&mut precise, &value, &big[..at.len()], &direction, &[tangent]);
                if compared.unwrap_or_else(|e| panic!("{name}: {e}")).is_some() {
                    n_compared += 1;
                }
            }
        }
    }
    assert!(n_checked > 200 && n_compared > 180, "{n_checked} {n_compared}");
}
