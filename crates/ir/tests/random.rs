//! Random functions: well-typed, with values, with derivatives confirmed by differences.

use arbitrary::Unstructured;
use chainrule_ir::difference::{self, directions, with_direction};
use chainrule_ir::express::{express, is_needed};
use chainrule_ir::generate::{Options, arguments, case};
use chainrule_ir::{Block, Expr, Failure, Function, Value, alpha_equal, evaluate, verify};
use chainrule_ops::{F64, Op, Precise};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;

fn config(cases: u32, seed: u64) -> ProptestConfig {
    let cases = chainrule_cases::cases(cases);
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..1500)
}

// `n` cases from a byte generator with a fixed seed.
fn for_each_case(n: usize, options: Options, mut check: impl FnMut(&Function, &[Value<f64>], &[Value<f64>])) {
    let mut random = chainrule_cases::Xorshift::new(1);
    for _ in 0..n {
        let bytes: Vec<u8> = (0..1500).map(|_| (random.bits() >> 32) as u8).collect();
        let mut u = Unstructured::new(&bytes);
        let case = case(&mut u, options).expect("a case of any bytes");
        let along = case.args.iter().map(|arg| arg.map(&mut |x| (x * 7.3).sin())).collect::<Vec<_>>();
        check(&case.function, &case.args, &along);
    }
}

/// Returns whether `result` is a value, or an overflow of integer arithmetic on large numbers.
fn is_defined<T>(result: &Result<T, Failure>) -> bool {
    result.as_ref().err().is_none_or(|failure| failure.message == "integer overflow")
}

fn walk(block: &Block, visit: &mut impl FnMut(&Expr)) {
    for stmt in &block.stmts {
        visit(&stmt.expr);
        stmt.expr.blocks().into_iter().for_each(|block| walk(block, visit));
    }
}

proptest! {
    #![proptest_config(config(3000, 1))]

    #[test]
    fn random_functions_are_well_typed_and_have_values_unless_integers_overflow(bytes in bytes(), smooth: bool) {
        let options = Options { smooth, ..Options::default() };
        let mut u = Unstructured::new(&bytes);
        let case = case(&mut u, options).expect("a case of any bytes");
        prop_assert_eq!(verify(&case.function), Ok(()));
        let result = evaluate(&case.function, &mut F64, &case.args);
        prop_assert!(is_defined(&result), "{:?}", result);
        let others = arguments(&mut u, &case.function).expect("arguments of any bytes");
        prop_assert!(is_defined(&evaluate(&case.function, &mut F64, &others)));
    }
}

#[test]
fn every_construct_and_every_operator_occurs() {
    let (mut constructs, mut operators) = (BTreeSet::new(), BTreeSet::new());
    let mut visit = |expr: &Expr| {
        let construct = match expr {
            Expr::Op(op, _) => {
                operators.insert(*op);
                "op"
            }
            Expr::Real(_) => "real",
            Expr::Bool(_) => "bool",
            Expr::Size(_) => "size",
            Expr::ToReal(_) => "to real",
            Expr::ToInt(_) => "to int",
            Expr::Build { .. } => "build",
            Expr::Fold(_) => "fold",
            Expr::Sum { .. } => "sum",
            Expr::While(_) => "while",
            Expr::If { .. } => "if",
            Expr::Get { proved: true, .. } => "get proved",
            Expr::Get { .. } => "get",
            Expr::Array(_) => "array",
            Expr::Tuple(_) => "tuple",
            Expr::Component(..) => "component",
            Expr::Jvp { .. } => "jvp",
            Expr::Vjp { .. } => "vjp",
            Expr::Custom(_) => "custom",
            Expr::Again { .. } => "again",
            Expr::Loop(_) => "loop",
            Expr::Zero => "zero",
            Expr::OneHot { proved: true, .. } => "one-hot proved",
            Expr::OneHot { .. } => "one-hot",
            Expr::Plus(..) => "plus",
        };
        constructs.insert(construct);
    };
    for_each_case(1000, Options::default(), |function, _, _| walk(&function.body, &mut visit));
    let missing: Vec<Op> = Op::all().filter(|op| !operators.contains(op)).collect();
    assert_eq!(missing, []);
    // All but the conversion to an integer, which has tests of its own.
    assert_eq!(constructs.len(), 22);
}

#[test]
fn derivatives_of_smooth_functions_are_their_difference_quotients() {
    let mut precise = Precise::new();
    let (mut checked, mut skipped, mut not_zero) = (0, 0, 0);
    let options = Options { fuel: 30, ..Options::smooth() };
    for_each_case(400, options, |function, args, along| {
        let dual = with_direction(function);
        assert_eq!(verify(&dual), Ok(()));
        let dual_args: Vec<Value<f64>> = args.iter().cloned().chain(directions(function, along)).collect();
        let dual_args: Vec<_> = dual_args.iter().map(|v| v.map(&mut |x| precise.from_f64(*x))).collect();
        let result = evaluate(&dual, &mut precise, &dual_args);
        assert!(is_defined(&result), "{result:?}");
        let Ok(result) = result else { return };
        let (primal, tangent) = result.unzip_dual(function.result_type()).expect("a dual number");
        let plain_args: Vec<_> = args.iter().map(|v| v.map(&mut |x| precise.from_f64(*x))).collect();
        assert_eq!(evaluate(function, &mut precise, &plain_args), Ok(primal));
        let quotients = difference::along(function, &mut precise, args, along).expect("values beside it");
        let (tangents, quotients) = (tangent.reals(), quotients.reals());
        assert_eq!(tangents.len(), quotients.len());
        for (tangent, quotient) in tangents.into_iter().zip(quotients) {
            let tangent = precise.as_f64(tangent);
            // An unreliable quotient proves nothing; there must be few.
            if quotient.error.is_nan() || quotient.error > 1e-12 * (1.0 + quotient.value.abs()) {
                skipped += 1;
                continue;
            }
            checked += 1;
            not_zero += usize::from(tangent != 0.0);
            let error = (tangent - quotient.value).abs();
            assert!(
                error <= 1e-12 * (1.0 + tangent.abs()),
                "{tangent} is not {} (+- {}) at {args:?} along {along:?}\n{function:#?}",
                quotient.value,
                quotient.error
            );
        }
    });
    println!("{checked} derivatives checked, {not_zero} of them not zero, {skipped} skipped");
    assert!(checked > 300 && not_zero > 200 && skipped * 20 < checked, "{checked} {not_zero} {skipped}");
}

proptest! {
    #![proptest_config(config(1500, 2))]

    #[test]
    fn what_is_put_into_words_has_the_same_value(bytes in bytes()) {
        let options = Options { derivatives: false, transposed: false, ..Options::default() };
        let case = case(&mut Unstructured::new(&bytes), options).expect("a case of any bytes");
        let expressed = express(&case.function);
        prop_assert_eq!(verify(&expressed), Ok(()));
        prop_assert!(only_words(&expressed.body));
        prop_assert!(is_needed(&case.function) || alpha_equal(&expressed, &case.function));
        let [value, again] = [&case.function, &expressed].map(|f| evaluate(f, &mut F64, &case.args));
        // NaN is not equal to itself; its text is.
        prop_assert_eq!(format!("{:?}", value.ok()), format!("{:?}", again.ok()));
    }
}

/// Returns whether no one-hot array and no sum of two arrays is left.
fn only_words(block: &Block) -> bool {
    let mut words = true;
    walk(block, &mut |expr| words &= !matches!(expr, Expr::OneHot { .. } | Expr::Plus(..)));
    words
}
