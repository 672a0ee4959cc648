//! Random written programs are accepted, and have values.

mod frontend;

use arbitrary::Unstructured;
use chainrule_ir::evaluate;
use chainrule_ir::generate::written::{Options, Written, program};
use chainrule_ops::F64;

/// Returns bytes that differ between seeds.
fn bytes(seed: u64) -> Vec<u8> {
    let mut random = chainrule_cases::Xorshift::new(seed);
    let len = 50 + random.below(600);
    (0..len).map(|_| random.bits().to_le_bytes()[3]).collect()
}

#[test]
fn written_programs_are_accepted_and_have_a_value() {
    let cases = u64::from(chainrule_cases::cases(300));
    let (mut read_well, mut with_value, mut finite, mut length) = (0, 0, 0, 0);
    for seed in 1..=cases {
        let options = Options { scalar: seed % 3 == 0, smooth: seed % 2 == 0, longest: 6, ..Options::default() };
        let Ok(Written { text, args }) = program(&mut Unstructured::new(&bytes(seed)), options) else { continue };
        let function = frontend::function(&text, "f");
        read_well += 1;
        length += text.len();
        if seed < 5 {
            println!("{text}");
        }
        if let Ok(value) = evaluate(&function, &mut F64, &args) {
            with_value += 1;
            finite += u64::from(value.reals().iter().all(|x| x.is_finite()));
        }
    }
    println!(
        "{read_well} programs of {cases}, {with_value} with a value, {finite} finite, {} characters each",
        length as u64 / read_well
    );
    assert!(read_well > cases * 9 / 10 && finite > cases * 2 / 3);
}
