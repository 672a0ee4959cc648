//! Strict semantics: the bits of the reference evaluator, for all compile options.

use crate::samples::{Sample, examples, random};
use crate::support::same;
use chainrule::{Backend, CompileOptions, Function, Module, Semantics, Value};
use chainrule_backend_tests::Data;
use chainrule_cases::covers;

/// Returns options that may change how code runs but not its results.
fn ways() -> Vec<CompileOptions> {
    let plain = CompileOptions::default();
    vec![
        plain,
        CompileOptions { backend: Backend::Interpreter, ..plain },
        CompileOptions { sequential: true, ..plain },
        CompileOptions { threads: Some(2), ..plain },
    ]
}

/// Fewer elements than lanes, and some blocks of lanes with a rest.
const SIZES: [i64; 2] = [3, 18];

fn without_signs_of_zeros(data: Data) -> Data {
    match data {
        Data::Real(numbers) => Data::Real(numbers.into_iter().map(|x| if x == 0.0 { 0.0 } else { x }).collect()),
        data => data,
    }
}

/// Returns the number of unrolled functions, and of differing algebraic values.
fn check(strict: &[Sample], algebraic: &[Sample]) -> (usize, usize) {
    let mut n_straight = 0;
    for sample in strict {
        assert_eq!(sample.function.semantics(), Semantics::Strict);
        for options in ways() {
            let compiled = sample.function.compile_with(&options).unwrap_or_else(|e| panic!("{}: {e}", sample.name));
            let found = compiled.call(&sample.args).unwrap_or_else(|e| panic!("{}: {e}", sample.name));
            let is_same = found.len() == 1 && same(&found[0], &sample.value);
            assert!(
                is_same,
                "{found:?} is not {:?} with {options:?}\n{}\n{:?}",
                sample.value, sample.name, sample.args
            );
        }
        let Some((straight, inputs)) = sample.straight(5000) else { continue };
        assert_eq!(straight.semantics(), Semantics::Strict);
        let inputs: Vec<Vec<f64>> =
            inputs.iter().map(|array| array.data.bits().into_iter().map(f64::from_bits).collect()).collect();
        let inputs: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        let found: Vec<Data> = straight.compile().unwrap().eval(&inputs).unwrap().into_iter().map(Data::Real).collect();
        let expected = sample.outputs(&sample.value);
        // In straight-line code a derivative in a branch that is not taken is +0, whatever it is multiplied by.
        let [found, expected] = match sample.is_derived {
            true => [found, expected].map(|data| data.into_iter().map(without_signs_of_zeros).collect::<Vec<_>>()),
            false => [found, expected],
        };
        assert_eq!(found, expected, "unrolled: {}\n{:?}", sample.name, sample.args);
        n_straight += 1;
    }
    let differs = |sample: &&Sample| {
        let found = sample.function.compile().unwrap().call(&sample.args);
        found.is_ok_and(|found| !same(&found[0], &sample.value))
    };
    (n_straight, algebraic.iter().filter(differs).count())
}

#[test]
fn strict_examples_have_the_bits_of_the_evaluator() {
    let strict = examples(Semantics::Strict, &SIZES);
    let (straight, differ) = check(&strict, &examples(Semantics::Algebraic, &SIZES));
    covers!(
        strict.len() > 60 && straight > 40 && differ > 20,
        "{} samples, {straight} of them unrolled, {differ} differ where algebraic",
        strict.len()
    );
}

#[test]
fn strict_random_programs_have_the_bits_of_the_evaluator() {
    let strict = random(Semantics::Strict, 54, 1200);
    let (straight, differ) = check(&strict, &random(Semantics::Algebraic, 54, 1200));
    covers!(
        strict.len() > 600 && straight > 300 && differ > 100,
        "{} samples, {straight} of them unrolled, {differ} differ where algebraic",
        strict.len()
    );
}

/// A zero from a branch is an ordinary number: only straight-line code has masks.
#[test]
fn products_with_zero_are_those_of_doubles() {
    let text = "let f = fun (x : [n][2]Double) (y : Double) -> build n (fun i ->
      vectorSum (build 2 (fun j -> (if x[i][j] > 0 then x[i][j] else 0) * y)))";
    let module = Module::from_text("f.ft", text).unwrap();
    let args = [Value::from(vec![vec![1.0, -1.0], vec![2.0, 3.0]]), Value::Real(f64::INFINITY)];
    let run = |function: &Function| function.compile().unwrap().call(&args).unwrap().remove(0);
    let found = run(&module.clone().with_semantics(Semantics::Strict).function("f").unwrap());
    let infinite = Value::from(vec![f64::NAN, f64::INFINITY]);
    assert!(same(&found, &infinite), "{found:?}");
    assert!(!same(&run(&module.function("f").unwrap()), &infinite), "masks are seen");
}
