//! What is printed can be read.

use arbitrary::Unstructured;
use chainrule_base::Sources;
use chainrule_ir::generate::{Options, case};
use chainrule_ir::{Builder, Function, Type, print, verify};
use chainrule_ops::Op;
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

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_functions_print_as_text_that_parses(bytes in bytes()) {
        let case = case(&mut Unstructured::new(&bytes), Options::default()).expect("a case of any bytes");
        parses(&print(&case.function));
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
    let mut b = Builder::new("let");
    let n = b.size_param("n");
    let size = b.size_of(n);
    let same = b.param("n", Type::array(size, Type::Double));
    let keyword = b.param("fun", Type::Double);
    let odd = b.param("µ x", Type::Double);
    let operator = b.op(Op::Add, &[keyword, odd]);
    b.name(operator, &"exp".into());
    let result = b.tuple(&[operator, same]);
    let f: Function = b.finish(result);
    assert_eq!(verify(&f), Ok(()));
    parses(&print(&f));
}
