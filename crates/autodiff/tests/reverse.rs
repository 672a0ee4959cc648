//! Reverse mode on random programs: against the evaluator, which differentiates in forward mode along each double, in
//! extended precision; nested in any order with forward mode. The seeds are fixed, and failures shrink.

use arbitrary::Unstructured;
use chainrule_autodiff::{Mode, Part, Request, check, derive};
use chainrule_cases::covers;
use chainrule_ir::difference::{with_cotangent, with_direction};
use chainrule_ir::generate::{self, Options, arrays};
use chainrule_ir::{Builder, Function, Type, Value};
use chainrule_ops::{F64, Op, Precise};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::{Cell, RefCell};

type Case = (Function, Vec<Value<f64>>);

/// Runs `test` on `cases` random programs; it returns whether the program was useful. At least `useful` must be.
fn run(
    seed: u64,
    cases: u32,
    useful: u32,
    make: impl Fn(&mut Unstructured<'_>) -> arbitrary::Result<Case>,
    test: impl Fn(&mut Precise, &Case) -> Result<bool, String>,
) {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 5_000,
        ..ProptestConfig::default()
    };
    let precise = RefCell::new(Precise::new());
    let told = Cell::new(0);
    let bytes = proptest::collection::vec(any::<u8>(), 200..1200);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let Ok(case) = make(&mut Unstructured::new(&bytes)) else { return Ok(()) };
        match test(&mut precise.borrow_mut(), &case) {
            Ok(useful) => {
                told.set(told.get() + u32::from(useful));
                Ok(())
            }
            Err(what) => Err(TestCaseError::fail(format!("{what}\n{}\n{:?}", chainrule_ir::print(&case.0), case.1))),
        }
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    covers!(told.get() >= useful, "only {} of {cases} programs told anything", told.get());
}

fn programs(options: Options) -> impl Fn(&mut Unstructured<'_>) -> arbitrary::Result<Case> {
    move |u| generate::case(u, options).map(|case| (case.function, case.args))
}

/// Returns a value of the tangent type of `ty`, in the shape of `value`: doubles that depend on the place.
fn cotangent(ty: &Type, value: &Value<f64>, k: &mut i32) -> Option<Value<f64>> {
    match (ty, value) {
        _ if !ty.has_double() => None,
        (Type::Array(_, element), Value::Array(items)) => {
            Some(Value::Array(items.iter().filter_map(|item| cotangent(element, item, k)).collect()))
        }
        (Type::Tuple(fields, _), Value::Tuple(items)) => {
            Some(Value::Tuple(fields.iter().zip(items).filter_map(|(ty, item)| cotangent(ty, item, k)).collect()))
        }
        _ => {
            *k += 1;
            Some(Value::Real(f64::from(*k * 7 % 11 - 5) / 4.0))
        }
    }
}

/// `function` with its cotangent, and arguments for it.
fn backwards((function, args): &Case) -> Option<Case> {
    let value = chainrule_ir::evaluate(function, &mut chainrule_ops::F64, args).ok()?;
    let cotangent = cotangent(function.result_type(), &value, &mut 0)?;
    let args = args.iter().cloned().chain([cotangent]).collect();
    Some((with_cotangent(function)?, args))
}

/// `function` with directions, and arguments for it.
fn forwards((function, args): &Case) -> Case {
    let mut k = 0;
    let mut next = |_: &f64| {
        k += 1;
        f64::from(k * 5 % 13 - 6) / 8.0
    };
    let real = function.params.iter().zip(args).filter(|(param, _)| function.ty(**param).has_double());
    let along: Vec<Value<f64>> = real.map(|(_, arg)| arg.map(&mut next)).collect();
    (with_direction(function), args.iter().cloned().chain(along).collect())
}

fn agree(precise: &mut Precise, (function, args): &Case) -> Result<bool, String> {
    Ok(check::reverse_expansion(precise, function, args)?.is_some_and(|expanded| expanded != *function))
}

#[test]
fn derivatives_in_any_program_are_those_of_the_evaluator() {
    let smooth = Options::smooth();
    run(1, 1500, 800, programs(smooth), agree);
}

#[test]
fn cotangents_of_any_program_are_those_of_the_evaluator() {
    let options = Options { derivatives: false, transposed: false, ..Options::smooth() };
    let large = Options { depth: 5, fuel: 150, ..options };
    for (seed, options) in [(2, options), (3, large)] {
        run(seed, 1000, 350, programs(options), |precise, case| match backwards(case) {
            Some(case) => agree(precise, &case),
            None => Ok(false),
        });
    }
}

#[test]
fn cotangents_through_states_made_of_arrays() {
    run(
        4,
        1000,
        500,
        |u| arrays::case(u, 30),
        |precise, case| match backwards(case) {
            Some(case) => agree(precise, &case),
            None => Ok(false),
        },
    );
}

#[test]
fn modes_nest_in_any_order() {
    let options = Options { depth: 2, fuel: 25, derivatives: false, transposed: false, ..Options::smooth() };
    for (seed, outer_forward) in [(5, true), (6, false)] {
        run(seed, 500, 150, programs(options), |precise, case| {
            let nested =
                if outer_forward { backwards(case).map(|case| forwards(&case)) } else { backwards(&forwards(case)) };
            nested.map_or(Ok(false), |case| agree(precise, &case))
        });
    }
    run(7, 300, 80, programs(options), |precise, case| {
        backwards(case).and_then(|case| backwards(&case)).map_or(Ok(false), |case| agree(precise, &case))
    });
}

/// Checks that both modes compute the same derivatives of the same function.
#[test]
fn requests_are_answered_alike_by_both_modes() {
    let options = Options { depth: 2, fuel: 25, derivatives: false, transposed: false, ..Options::smooth() };
    run(8, 500, 150, programs(options), |precise, (function, args)| {
        let scalar = *function.result_type() == Type::Double;
        let parts: &[Part] = if scalar { &[Part::Gradient, Part::Hessian, Part::Hvp] } else { &[Part::Jacobian] };
        let mut told = false;
        for part in parts {
            let ask = |mode| {
                derive(function, &Request { parts: vec![Part::Value, *part], by: vec![], mode, checkpoints: None })
            };
            let (Ok(forward), Ok(reverse)) = (ask(Mode::Forward), ask(Mode::Reverse)) else { return Ok(false) };
            for derived in [&forward, &reverse] {
                chainrule_ir::verify(derived).map_err(|found| format!("{found:?}"))?;
            }
            let (_, mut all) = forwards(&(function.clone(), args.clone()));
            all.truncate(forward.params.len());
            let all: Vec<_> = all.iter().map(|arg| arg.map(&mut |x| precise.from_f64(*x))).collect();
            let evaluated = [&forward, &reverse].map(|derived| chainrule_ir::evaluate(derived, precise, &all));
            let [Ok(expected), Ok(found)] = evaluated else { return Ok(false) };
            check::agree(precise, &expected, &found)
                .map_err(|what| format!("{part:?} forwards and backwards: {what}"))?;
            told |= expected.reals().into_iter().skip(1).any(|x| precise.as_f64(x) != 0.0);
        }
        Ok(told)
    });
}

/// min(a, sqrt b) at a = -1, b = 0: the operand that is not selected has an infinite slope, which must not contribute.
#[test]
fn what_was_not_chosen_says_nothing_in_either_mode() {
    let mut b = Builder::new("f");
    let (x, y) = (b.param("a", Type::Double), b.param("b", Type::Double));
    let root = b.op(Op::Sqrt, &[y]);
    let three = b.real(3.0);
    let scaled = b.op(Op::Mul, &[three, root]);
    let least = b.op(Op::Min, &[x, scaled]);
    let two = b.real(2.0);
    let result = b.op(Op::Mul, &[two, least]);
    let function = b.finish(result);
    for mode in [Mode::Forward, Mode::Reverse] {
        let request = Request { parts: vec![Part::Gradient], by: vec![], mode, checkpoints: None };
        let gradient = derive(&function, &request).unwrap();
        let value = chainrule_ir::evaluate(&gradient, &mut F64, &[Value::Real(-1.0), Value::Real(0.0)]).unwrap();
        assert_eq!(value.reals(), [&2.0, &0.0], "{mode:?}: {}", chainrule_ir::print(&gradient));
        let value = chainrule_ir::evaluate(&gradient, &mut F64, &[Value::Real(9.0), Value::Real(4.0)]).unwrap();
        assert_eq!(value.reals(), [&0.0, &1.5], "{mode:?}");
    }
}
