//! Printed programs can be read, and have the same meaning.

use arbitrary::Unstructured;
use chainrule_base::Sources;
use chainrule_ir::dce::remove_unused;
use chainrule_ir::generate::{Options, expressible_case};
use chainrule_ir::{Builder, Function, Program, Type, Value, alpha_equal, evaluate, print, verify};
use chainrule_ops::{F64, Op};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..1500)
}

fn parses(text: &str) {
    let mut sources = Sources::new();
    let file = sources.add("<printed>", text);
    let (module, diagnostics) = chainrule_syntax::parse(&sources, file);
    assert!(diagnostics.is_empty(), "{diagnostics}\n{text}");
    assert_eq!(module.items.len(), 1);
}

// Returns the function of the text of `function`, without unused statements.
fn again(function: &Function) -> Function {
    let text = print(function);
    let mut sources = Sources::new();
    let file = sources.add("<printed>", text.clone());
    let program = Program::load(&mut sources, file, |path: &str, _| Err(format!("there is no file {path}")));
    let program = program.unwrap_or_else(|d| panic!("{d}\n{text}"));
    let mut again = program.elaborate(&function.name).unwrap_or_else(|d| panic!("{d}\n{text}"));
    assert_eq!(verify(&again), Ok(()), "{text}");
    remove_unused(&mut again);
    assert_eq!(verify(&again), Ok(()), "{text}");
    again
}

// Bit by bit, except for NaNs.
fn same(a: &Value<f64>, b: &Value<f64>) -> bool {
    let bits = |v: &Value<f64>| v.map(&mut |x| if x.is_nan() { 0 } else { x.to_bits() });
    let nans = |v: &Value<f64>| v.reals().iter().map(|x| x.is_nan()).collect::<Vec<_>>();
    bits(a) == bits(b) && nans(a) == nans(b)
}

fn check(function: &Function, args: &[Value<f64>]) {
    let first = again(function);
    // Unused statements are not elaborated, and do not fail.
    let mut needed = function.clone();
    remove_unused(&mut needed);
    let (wanted, found) = (evaluate(&needed, &mut F64, args), evaluate(&first, &mut F64, args));
    match (&wanted, &found) {
        (Ok(wanted), Ok(found)) if same(wanted, found) => {}
        (Err(wanted), Err(found)) if wanted.message == found.message => {}
        _ => panic!("{wanted:?} became {found:?} at {args:?}\n{}\n{}", print(function), print(&first)),
    }
    // An elaborated function is read back unchanged.
    let second = again(&first);
    assert!(alpha_equal(&first, &second), "{}\nbecame\n{}", print(&first), print(&second));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: chainrule_cases::cases(1000),
        rng_seed: RngSeed::Fixed(2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_functions_come_back(bytes in bytes()) {
        let case = expressible_case(&mut Unstructured::new(&bytes), Options::default()).expect("a case of any bytes");
        check(&case.function, &case.args);
    }
}

#[test]
fn long_functions_print() {
    let mut b = Builder::new("long");
    let x = b.param("x", Type::Double);
    let mut y = x;
    for _ in 0..100_000 {
        y = b.op(Op::Add, &[y, x]);
    }
    let text = print(&b.finish(y));
    assert_eq!(text.lines().count(), 100_002);
    parses(&text);
}

#[test]
fn names_are_made_different_and_readable() {
    let mut b = Builder::new("f");
    let n = b.size_param("n");
    let size = b.size_of(n);
    let same = b.param("n", Type::array(size, Type::Double));
    let keyword = b.param("fun", Type::Double);
    let odd = b.param("µ x", Type::Double);
    let operator = b.op(Op::Add, &[keyword, odd]);
    b.name(operator, &"exp".into());
    let result = b.tuple(&[operator, same]);
    let f: Function = b.finish(result);
    check(&f, &[vec![1.0, 2.0].into(), 3.0.into(), 4.0.into()]);
    let mut b = Builder::new("let");
    let x = b.param("x", Type::Double);
    parses(&print(&b.finish(x)));
}

#[test]
fn numbers_come_back() {
    let mut b = Builder::new("f");
    let k = b.param("k", Type::Int);
    let reals = [0.1, -0.0, 1e300, 5e-324, -2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE, 1e22];
    let mut vars: Vec<_> = reals.iter().map(|x| b.real(*x)).collect();
    let big = b.int(i64::MIN);
    let sum = b.op(Op::Max, &[big, k]);
    let negative = b.size(b.size_of(k).scale(-3).sub(&chainrule_ir::Size::constant(7)));
    vars.extend([b.to_real(sum), b.to_real(negative)]);
    let array = b.array(&vars);
    check(&b.finish(array), &[4.into()]);
}
