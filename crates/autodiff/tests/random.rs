//! Random programs: the expanded derivative against the evaluator's, against central differences, and
//! requests against one derivative at a time. The seeds are fixed, and failures shrink.

use arbitrary::Unstructured;
use chainrule_autodiff::{Mode, Part, Request, check, derive};
use chainrule_cases::covers;
use chainrule_ir::difference::with_direction;
use chainrule_ir::generate::{self, Case, Options};
use chainrule_ir::{Block, Expr, Function, Type, Value, evaluate};
use chainrule_ops::{Big, F64, Formula, Op, Precise};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::{Cell, RefCell};

/// Runs `test` on `cases` random programs; it returns whether the program was useful. At least `useful` must be.
fn run(seed: u64, cases: u32, useful: u32, options: Options, test: impl Fn(&Case) -> Result<bool, String>) {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    };
    let told = Cell::new(0);
    let bytes = proptest::collection::vec(any::<u8>(), 200..1200);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let Ok(case) = generate::case(&mut Unstructured::new(&bytes), options) else { return Ok(()) };
        match test(&case) {
            Ok(useful) => {
                told.set(told.get() + u32::from(useful));
                Ok(())
            }
            Err(what) => Err(TestCaseError::fail(format!("{what}\n{:#?}\n{:?}", case.function.body, case.args))),
        }
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    covers!(told.get() >= useful, "only {} of {cases} programs told anything", told.get());
}

/// Returns options for programs whose derivatives are computed in the evaluator's order.
fn exact() -> Options {
    Options { transposed: false, ..Options::default() }
}

/// Returns the arguments that have a direction.
fn real_args(function: &Function, args: &[Value<f64>]) -> Vec<Value<f64>> {
    let real = |(param, arg): (&_, &Value<f64>)| function.ty(*param).has_double().then(|| arg.clone());
    function.params.iter().zip(args).filter_map(real).collect()
}

/// Directions for `args`: doubles that depend on the place.
fn directions(function: &Function, args: &[Value<f64>]) -> Vec<Value<f64>> {
    let mut k = 0;
    let mut next = |_: &f64| {
        k += 1;
        f64::from(k * 7 % 11 - 5) / 4.0
    };
    real_args(function, args).iter().map(|arg| arg.map(&mut next)).collect()
}

/// Returns whether `value`, a dual number of type `ty.dual()`, has a tangent that is neither zero nor infinite.
fn has_tangent(ty: &Type, value: &Value<f64>) -> bool {
    let Some((_, tangent)) = value.unzip_dual(ty) else { return false };
    tangent.reals().iter().any(|x| **x != 0.0 && x.is_finite())
}

#[test]
fn derivatives_in_any_program_are_those_of_the_evaluator() {
    run(1, 3000, 2200, exact(), |case| {
        let checked = check::expansion(&case.function, &case.args)?;
        Ok(checked.is_some_and(|(expanded, _)| expanded != case.function))
    });
}

#[test]
fn the_derivative_of_any_program_is_that_of_the_evaluator() {
    let large = Options { depth: 5, fuel: 200, transposed: false, ..Options::smooth() };
    for (seed, options) in [(2, exact()), (3, large)] {
        run(seed, 1000, 400, options, |case| {
            let mut args = case.args.clone();
            args.extend(directions(&case.function, &case.args));
            let checked = check::expansion(&with_direction(&case.function), &args)?;
            Ok(checked.is_some_and(|(_, value)| has_tangent(case.function.result_type(), &value)))
        });
    }
}

#[test]
fn second_and_third_derivatives_are_those_of_the_evaluator() {
    run(4, 1200, 550, Options { transposed: false, ..Options::smooth() }, |case| {
        let mut args = case.args.clone();
        let mut function = case.function.clone();
        let mut told = false;
        for _ in 0..3 {
            args.extend(directions(&function, &args));
            let ty = function.result_type().clone();
            function = with_direction(&function);
            let checked = check::expansion(&function, &args)?;
            told = checked.is_some_and(|(_, value)| has_tangent(&ty, &value));
        }
        Ok(told)
    });
}

/// Returns whether an operator occurs whose partials contain a rounded constant: they are exact only to a double.
fn rounded(block: &Block) -> bool {
    fn formula(f: &Formula) -> bool {
        match f {
            Formula::Const(c) => (c * 8.0).fract() != 0.0,
            Formula::Apply(_, inner) => inner.iter().any(formula),
            Formula::Arg(_) | Formula::Value => false,
        }
    }
    block.stmts.iter().any(|stmt| {
        let here = matches!(&stmt.expr, Expr::Op(op, _) if op.partials().iter().any(formula));
        here || stmt.expr.blocks().into_iter().any(rounded)
    })
}

#[test]
fn derivatives_of_smooth_programs_are_central_differences() {
    let precise = RefCell::new(Precise::new());
    run(5, 1200, 500, Options { transposed: false, ..Options::smooth() }, |case| {
        if rounded(&case.function.body) {
            return Ok(false);
        }
        let mut args = case.args.clone();
        args.extend(directions(&case.function, &case.args));
        let Some((expanded, _)) = check::expansion(&with_direction(&case.function), &args)? else {
            return Ok(false);
        };
        let precise = &mut *precise.borrow_mut();
        let big: Vec<Value<Big>> = args.iter().map(|x| x.map(&mut |x| precise.from_f64(*x))).collect();
        let found = evaluate(&expanded, precise, &big).map_err(|failure| failure.to_string())?;
        let (_, tangent) = found.unzip_dual(case.function.result_type()).ok_or("not a dual number")?;
        let tangents: Vec<Big> = tangent.reals().into_iter().cloned().collect();
        // An integer has no direction, and is its own placeholder.
        let (at, rest) = big.split_at(case.args.len());
        let mut rest = rest.iter();
        let along: Vec<Value<Big>> = (case.function.params.iter().zip(at))
            .map(|(param, arg)| match case.function.ty(*param).has_double() {
                true => rest.next().cloned().ok_or("a direction is missing"),
                false => Ok(arg.clone()),
            })
            .collect::<Result<_, _>>()?;
        let compared = check::central_differences(precise, &case.function, at, &along, &tangents)?;
        Ok(compared.is_some() && tangents.iter().any(|t| !t.is_zero()))
    });
}

/// Counts the doubles in each part of `value` for which a derivative has a field.
fn leaves(ty: &Type, value: &Value<f64>, counts: &mut Vec<usize>) {
    match (ty, value) {
        (Type::Tuple(types, _), Value::Tuple(parts)) => {
            types.iter().zip(parts).for_each(|(ty, part)| leaves(ty, part, counts));
        }
        _ if ty.has_double() => counts.push(value.reals().len()),
        _ => {}
    }
}

/// Returns the direction that is 1 for double `k` of `args`, which contain doubles, and 0 for the others.
fn one_hot(args: &[Value<f64>], k: usize) -> Vec<Value<f64>> {
    let mut place = 0;
    let mut next = |_: &f64| {
        place += 1;
        if place == k + 1 { 1.0 } else { 0.0 }
    };
    args.iter().map(|arg| arg.map(&mut next)).collect()
}

/// Returns the tangents of the result of `function`, not yet expanded, at `args` and further `along`.
fn tangents(function: &Function, ty: &Type, args: &[Value<f64>], along: &[Value<f64>]) -> Option<Vec<f64>> {
    let all: Vec<Value<f64>> = args.iter().chain(along).cloned().collect();
    let dual = evaluate(&with_direction(function), &mut F64, &all).ok()?;
    let (_, tangent) = dual.unzip_dual(ty)?;
    let tangents: Vec<f64> = tangent.reals().into_iter().copied().collect();
    tangents.iter().all(|x| x.is_finite()).then_some(tangents)
}

#[test]
fn jacobians_and_hessians_are_made_of_derivatives_by_one_double() {
    let options = Options { fuel: 30, transposed: false, ..Options::smooth() };
    run(6, 1000, 400, options, |case| {
        let (function, args) = (&case.function, &case.args);
        let ty = function.result_type();
        let by = function.params.iter().filter(|p| function.ty(**p).has_double()).count();
        if !ty.has_double() || by == 0 {
            return Ok(false);
        }
        let mut counts = Vec::new();
        for (param, arg) in function.params.iter().zip(args) {
            leaves(function.ty(*param), arg, &mut counts);
        }
        let n: usize = counts.iter().sum();
        let ask = |part| {
            derive(
                function,
                &Request { parts: vec![Part::Value, part], by: vec![], mode: Mode::Forward, checkpoints: None },
            )
        };
        let run = |derived: &Function| -> Result<Option<Vec<f64>>, String> {
            chainrule_ir::verify(derived).map_err(|found| format!("{found:?}"))?;
            match evaluate(derived, &mut F64, args) {
                Ok(Value::Tuple(parts)) => Ok(Some(parts[1].reals().into_iter().copied().collect())),
                Ok(_) => Err("not a record".to_owned()),
                Err(_) => Ok(None),
            }
        };
        let real = real_args(function, args);
        let columns: Option<Vec<Vec<f64>>> = (0..n).map(|k| tangents(function, ty, args, &one_hot(&real, k))).collect();
        let Some(columns) = columns else { return Ok(false) };
        let Some(found) = run(&ask(Part::Jacobian).map_err(|e| e.to_string())?)? else { return Ok(false) };
        let mut expected = Vec::new();
        let mut first = 0;
        for count in &counts {
            let of_leaf = &columns[first..first + count];
            let outputs = of_leaf.first().map_or(0, Vec::len);
            expected.extend((0..outputs).flat_map(|o| of_leaf.iter().map(move |column| column[o])));
            first += count;
        }
        if found != expected {
            return Err(format!("the Jacobian is {found:?}, by single derivatives {expected:?}"));
        }
        let told = expected.iter().any(|x| *x != 0.0);
        if *ty != Type::Double || n > 6 {
            return Ok(told);
        }
        if run(&ask(Part::Gradient).map_err(|e| e.to_string())?)? != Some(expected) {
            return Err("the gradient is not the Jacobian".to_owned());
        }
        // Second derivatives: along one-hot j of the derivative along one-hot i.
        let first = with_direction(function);
        let second = |i: usize, j: usize| -> Option<f64> {
            let at: Vec<Value<f64>> = args.iter().cloned().chain(one_hot(&real, i)).collect();
            let still: Vec<Value<f64>> = real.iter().map(|arg| arg.map(&mut |_| 0.0)).collect();
            let along: Vec<Value<f64>> = one_hot(&real, j).into_iter().chain(still).collect();
            // The result is a pair; its second half's tangent is the second derivative.
            tangents(&first, &Type::Double.dual(), &at, &along).map(|t| t[1])
        };
        let Some(found) = run(&ask(Part::Hessian).map_err(|e| e.to_string())?)? else { return Ok(false) };
        let mut starts: Vec<(usize, usize)> = Vec::new();
        for count in &counts {
            let start = starts.last().map_or(0, |(_, end)| *end);
            starts.push((start, start + count));
        }
        let mut k = 0;
        for rows in &starts {
            for columns in &starts {
                for i in rows.0..rows.1 {
                    for j in columns.0..columns.1 {
                        let Some(expected) = second(i, j) else { return Ok(false) };
                        if found.get(k) != Some(&expected) {
                            return Err(format!("hessian[{i}][{j}] is {:?}, not {expected}", found.get(k)));
                        }
                        k += 1;
                    }
                }
            }
        }
        Ok(told)
    });
}

#[test]
fn no_operator_is_left_out() {
    // The smooth programs of these tests contain all operators except those that are never smooth.
    let mut seen = std::collections::BTreeSet::new();
    let cell = RefCell::new(&mut seen);
    run(7, 600, 0, exact(), |case| {
        fn visit(block: &Block, seen: &mut std::collections::BTreeSet<Op>) {
            for stmt in &block.stmts {
                if let Expr::Op(op, _) = &stmt.expr {
                    seen.insert(*op);
                }
                stmt.expr.blocks().into_iter().for_each(|inner| visit(inner, seen));
            }
        }
        visit(&case.function.body, &mut cell.borrow_mut());
        Ok(true)
    });
    let missing: Vec<Op> = Op::all().filter(|op| !seen.contains(op)).collect();
    covers!(missing.is_empty(), "{missing:?}");
}
