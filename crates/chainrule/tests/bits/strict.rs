//! Strict semantics: the bits of the reference evaluator, however code is compiled.

use crate::samples::{Sample, examples, random};
use crate::support::same;
use chainrule::{Backend, CompileOptions, Semantics};

/// Everything that may change how code runs but not what it computes.
fn ways() -> Vec<CompileOptions> {
    let plain = CompileOptions::default();
    vec![
        plain,
        CompileOptions { backend: Backend::Interpreter, ..plain },
        CompileOptions { sequential: true, ..plain },
        CompileOptions { threads: Some(2), ..plain },
    ]
}

/// How many algebraic values differ.
fn check(strict: &[Sample], algebraic: &[Sample]) -> usize {
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
    }
    let differs = |sample: &&Sample| {
        let found = sample.function.compile().unwrap().call(&sample.args);
        found.is_ok_and(|found| !same(&found[0], &sample.value))
    };
    algebraic.iter().filter(differs).count()
}

#[test]
fn strict_examples_have_the_bits_of_the_evaluator() {
    let strict = examples(Semantics::Strict);
    let differ = check(&strict, &examples(Semantics::Algebraic));
    println!("{} samples, {differ} differ where algebraic", strict.len());
    assert!(strict.len() > 60 && differ > 20, "{} samples, {differ} differ where algebraic", strict.len());
}

#[test]
fn strict_random_programs_have_the_bits_of_the_evaluator() {
    let strict = random(Semantics::Strict, 54, 1000);
    let differ = check(&strict, &random(Semantics::Algebraic, 54, 1000));
    println!("{} samples, {differ} differ where algebraic", strict.len());
    assert!(strict.len() > 600 && differ > 100, "{} samples, {differ} differ where algebraic", strict.len());
}
