//! Derivatives with checkpoints: bitwise equal to those with all states kept, with the minimum number of recomputed
//! steps.

use arbitrary::Unstructured;
use chainrule_autodiff::{Mode, Part, Request, derive, expand, expand_with};
use chainrule_cases::covers;
use chainrule_ir::difference::with_cotangent;
use chainrule_ir::generate::{Case, Options, arrays, case};
use chainrule_ir::{Builder, Function, Size, Type, Value, evaluate, verify};
use chainrule_ops::{Algebra, F64, Op};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::Cell;

/// Algebra of doubles that counts sines.
struct Counting(usize);

impl Algebra for Counting {
    type Value = f64;

    fn constant(&mut self, c: f64) -> f64 {
        c
    }

    fn apply(&mut self, op: Op, args: &[f64]) -> f64 {
        self.0 += usize::from(op == Op::Sin);
        op.value(args)
    }

    fn to_f64(&self, value: &f64) -> Option<f64> {
        Some(*value)
    }
}

/// Returns n iterations of x = sin x * p.
fn chain() -> Function {
    let mut b = Builder::new("chain");
    let (x, p, n) = (b.param("x", Type::Double), b.param("p", Type::Double), b.param("n", Type::Int));
    let result = b.fold(Size::var(n), x, |b, x, _| {
        let s = b.op(Op::Sin, &[x]);
        b.op(Op::Mul, &[s, p])
    });
    b.finish(result)
}

/// Returns the minimum number of recomputed steps of a reverse sweep through `length` steps with `n` snapshots, the
/// first state's included.
fn fewest(length: usize, n: usize) -> usize {
    let mut best = vec![vec![0; n + 1]; length + 1];
    for l in 2..=length {
        best[l][1] = l * (l - 1) / 2;
        for s in 2..=n {
            best[l][s] = (1..l).map(|m| m + best[l - m][s - 1] + best[m][s]).min().unwrap_or(0);
        }
    }
    best[length][n]
}

fn bits(value: &Value<f64>) -> String {
    match value {
        Value::Real(x) if x.is_nan() => "NaN".to_owned(),
        Value::Real(x) => format!("{:x}", x.to_bits()),
        Value::Int(i) => i.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Array(items) | Value::Tuple(items) => items.iter().map(|item| bits(item) + ",").collect(),
    }
}

#[test]
fn the_schedule_is_the_best_there_is() {
    let request = |checkpoints| Request {
        parts: vec![Part::Gradient],
        by: vec!["x".into(), "p".into()],
        mode: Mode::Reverse,
        checkpoints,
    };
    let kept = derive(&chain(), &request(None)).expect("a gradient");
    for n_checkpoints in [1, 2, 3, 5, 12] {
        let again = derive(&chain(), &request(Some(n_checkpoints))).expect("a gradient");
        verify(&again).expect("a function");
        for n in [0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 30, 77] {
            let args = [Value::Real(0.7), Value::Real(1.3), Value::Int(n)];
            let expected = evaluate(&kept, &mut F64, &args).expect("a value");
            let mut counting = Counting(0);
            let found = evaluate(&again, &mut counting, &args).expect("a value");
            assert_eq!(bits(&found), bits(&expected), "{n} steps, {n_checkpoints} checkpoints");
            // Each step is computed once more in the reverse sweep.
            let more = counting.0 - n as usize;
            assert_eq!(more, fewest(n as usize, n_checkpoints as usize), "{n} steps, {n_checkpoints} checkpoints");
        }
    }
}

/// Compares derivatives with and without checkpoints; returns whether there were values to compare.
fn compare(function: &Function, args: &[Value<f64>], checkpoints: u32) -> bool {
    let kept = expand(function).expect("ordinary code");
    let again = expand_with(function, Some(checkpoints)).expect("ordinary code");
    verify(&again).unwrap_or_else(|error| panic!("{error:?}\n{}", chainrule_ir::print(&again)));
    match (evaluate(&kept, &mut F64, args), evaluate(&again, &mut F64, args)) {
        (Ok(expected), Ok(found)) => {
            assert_eq!(bits(&found), bits(&expected), "{}", chainrule_ir::print(function));
            true
        }
        (Ok(_), Err(error)) => panic!("{error:?}\n{}", chainrule_ir::print(function)),
        (Err(_), _) => false,
    }
}

/// Returns a cotangent of ones in the shape of the value.
fn ones(ty: &Type, value: &Value<f64>) -> Option<Value<f64>> {
    match (ty, value) {
        _ if !ty.has_double() => None,
        (Type::Array(_, element), Value::Array(items)) => {
            Some(Value::Array(items.iter().filter_map(|item| ones(element, item)).collect()))
        }
        (Type::Tuple(fields, _), Value::Tuple(items)) => {
            Some(Value::Tuple(fields.iter().zip(items).filter_map(|(ty, item)| ones(ty, item)).collect()))
        }
        _ => Some(Value::Real(1.0)),
    }
}

fn reverse(function: &Function, args: &[Value<f64>], checkpoints: u32) -> bool {
    let Some(whole) = with_cotangent(function) else { return false };
    let Ok(value) = evaluate(function, &mut F64, args) else { return false };
    let Some(cotangent) = ones(function.result_type(), &value) else { return false };
    let args: Vec<Value<f64>> = args.iter().cloned().chain([cotangent]).collect();
    compare(&whole, &args, checkpoints)
}

#[test]
fn random_derivatives_are_the_same_bits() {
    let compared = Cell::new(0);
    let config = ProptestConfig {
        cases: chainrule_cases::cases(700),
        rng_seed: RngSeed::Fixed(31),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&(prop::collection::vec(any::<u8>(), 100..1500), 1_u32..4), |(bytes, checkpoints)| {
            if let Ok((function, args)) = arrays::updates(&mut Unstructured::new(&bytes), 40) {
                compared.set(compared.get() + usize::from(reverse(&function, &args, checkpoints)));
            }
            // Includes derivatives of either mode.
            if let Ok(Case { function, args }) = case(&mut Unstructured::new(&bytes), Options::smooth()) {
                compared.set(compared.get() + usize::from(compare(&function, &args, checkpoints)));
                compared.set(compared.get() + usize::from(reverse(&function, &args, checkpoints)));
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    covers!(compared.get() > 1000, "only {} derivatives could be compared", compared.get());
}

#[test]
fn second_derivatives_are_the_same_bits() {
    for part in [Part::Hessian, Part::Hvp] {
        for mode in [Mode::Reverse, Mode::Auto] {
            let request = |checkpoints| Request { parts: vec![part], by: vec!["x".into()], mode, checkpoints };
            let kept = derive(&chain(), &request(None)).expect("a derivative");
            for checkpoints in 1..4 {
                let again = derive(&chain(), &request(Some(checkpoints))).expect("a derivative");
                for n in [0, 1, 2, 5, 11] {
                    let mut args = vec![Value::Real(0.7), Value::Real(1.3), Value::Int(n)];
                    if part == Part::Hvp {
                        args.push(Value::Real(0.4));
                    }
                    let [expected, found] = [&kept, &again].map(|f| evaluate(f, &mut F64, &args).expect("a value"));
                    assert_eq!(bits(&found), bits(&expected), "{part:?} {mode:?} {n} {checkpoints}");
                }
            }
        }
    }
}
