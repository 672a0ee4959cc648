//! Listings are read back as the same function.

use arbitrary::Unstructured;
use chainrule_ir::generate::{Options, case};
use chainrule_ir::{Function, alpha_equal, listing, parse, verify};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn check(function: &Function) {
    let text = listing(function);
    let again = parse(&text).unwrap_or_else(|reason| panic!("{reason}\n{text}"));
    assert_eq!(verify(&again), Ok(()), "{text}");
    assert!(alpha_equal(function, &again), "{text}\nbecame\n{}", listing(&again));
    // Terms of polynomials are in the order in which variables are bound.
    let text = listing(&again);
    assert_eq!(parse(&text).map(|function| listing(&function)), Ok(text));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: chainrule_cases::cases(1000),
        rng_seed: RngSeed::Fixed(11),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_functions_come_back(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
        let case = case(&mut Unstructured::new(&bytes), Options::default()).expect("a case of any bytes");
        check(&case.function);
    }
}

/// Every construct, with checked indices, records, requirements and functions with their own derivative.
const ALL: &str = "\
// requires n - 2 >= 0: the array is too short
let f = fun (a : [k]{ re : Double, im : Double }) (k : Int) (v : [n]Double) (w : [2 * n + 1](Bool, [3]Int)) (x : Double) ->
  let t1 : Int = n - 1
  let t2 : Int = mul k t1
  let t3 = v[check t1]
  let t4 = zero : [n]Double
  let t5 = oneHot n (check t1) t3
  let t6 = oneHot n t1 x
  let t7 = t5 + t6
  let t8 = (-1.0 / 0.0)
  let t9 = -0.0
  let t10 = ()
  let t11 = loop (fun (s : Double) i ->
    let t12 = v[i]
    let t13 = s * t12
    let t14 = { re = t13, im = s }
    let t15 = (t13, t14, t10)
    t15) x n
  let t16 = t11.1
  let t17 : Int = 0
  let t18 = t16[check t17]
  let t19 = t18.im
  let t20 = while (fun (t : Double) ->
    let t21 = t < t19
    t21) (fun (t : Double) ->
    let t22 = t + t19
    t22) t3 (k * n + 7)
  let t23 = promisedDerivative (fun (p : Double) ->
    let t24 = sin p
    t24) (fun g (q : Double) (r : Double) (d : Double) ->
    let t25 = g q
    let t26 = t25 * d
    t26) (fun g (q_1 : Double) (r_1 : Double) (d_1 : Double) ->
    let t27 = cos q_1
    let t28 = t27 * d_1
    t28) t20
  let t29 = constant (fun (c : Double) -> c) x
  let t30 = forward (fun (y : Double) (z : [n]Double) ->
    let t31 = y * x
    t31) (x, t29) (v, t4)
  let t32 = backward (fun (u : Double) ->
    let t33 = u ** t29
    t33) x t23
  let t34 = t32.0
  let t35 = -t34
  let t36 = sum k (fun j ->
    let t37 = real j
    t37)
  let t38 = [t36, t35, t9]
  let t39 = true
  let t40 = if t39 then t38 else (
    let t41 = build 3 (fun l ->
      let t42 = real l
      t42)
    t41)
  let t43 = (t40, t7, t30, t2)
  t43
";

#[test]
fn a_listing_with_every_construct_comes_back() {
    let function = parse(ALL).unwrap_or_else(|reason| panic!("{reason}"));
    assert_eq!(verify(&function), Ok(()));
    assert_eq!(listing(&function), ALL);
}

#[test]
fn faults_are_reported_with_their_lines() {
    let fault = |text: &str| parse(text).err();
    let in_line = |line: usize, reason: &str| Some(format!("line {line}: {reason}"));
    assert_eq!(fault("let f = fun (x : Double) ->\n  let y = x * z\n  y\n"), in_line(3, "`z` is not bound"));
    assert_eq!(fault("let f = fun (x : Double) ->\n  let x = 1.0\n  x\n"), in_line(3, "`x` is bound twice"));
    assert_eq!(fault("let f = fun (x : Real) ->\n  x\n"), in_line(1, "`Real` is no type"));
    assert_eq!(fault("let f = fun (x : Double) ->\n  x\n  x\n"), in_line(3, "expected End at `x`"));
}
