//! Every instruction, decoded by `iced-x86`.

use super::forms::ROWS;
use super::oracle::Case;
use crate::Level;
use iced_x86::EncodingKind;
use std::collections::{BTreeMap, BTreeSet};

/// Number of random calls of each method at each level.
const CALLS: u64 = 3000;

/// Returns the emitted mnemonics of the methods, each with its kinds of prefixes.
fn seen() -> BTreeMap<&'static str, BTreeMap<String, BTreeSet<&'static str>>> {
    let mut seen: BTreeMap<&'static str, BTreeMap<String, BTreeSet<&'static str>>> = BTreeMap::new();
    for (i, row) in ROWS.iter().enumerate() {
        for level in Level::ALL {
            if row.avx512 && level != Level::Avx512 {
                continue;
            }
            for call in 0..CALLS {
                let seed = (i as u64) << 32 | (level as u64) << 24 | call;
                let mut case = Case::new(level, seed);
                let start = case.asm.position();
                let expected = (row.call)(&mut case);
                let name = format!("{:?}", expected.mnemonic).to_lowercase();
                let kind = match case.check(start, &expected) {
                    EncodingKind::EVEX => "evex",
                    EncodingKind::VEX => "vex",
                    _ => "legacy",
                };
                seen.entry(row.method).or_default().entry(name).or_default().insert(kind);
            }
        }
    }
    seen
}

#[test]
fn instructions_decode_to_the_requested_ones() {
    let mut text = String::new();
    for (method, names) in seen() {
        let names: Vec<String> = names
            .iter()
            .map(|(name, kinds)| {
                let kinds: Vec<&str> = kinds.iter().copied().filter(|kind| *kind != "legacy").collect();
                if kinds.is_empty() { name.clone() } else { format!("{name} ({})", kinds.join(", ")) }
            })
            .collect();
        text += &format!("{method}: {}\n", names.join(", "));
    }
    insta::assert_snapshot!("forms", text);
}

/// Returns the names of the methods in a file of the encoder.
fn methods(source: &'static str) -> Vec<&'static str> {
    let starts = source.split("    pub(crate) fn ").skip(1);
    starts.map(|rest| rest.split(['(', '<']).next().unwrap()).collect()
}

#[test]
fn every_method_has_a_row() {
    let files = [
        include_str!("../arithmetic.rs"),
        include_str!("../moves.rs"),
        include_str!("../mask.rs"),
        include_str!("../integer.rs"),
        include_str!("../general.rs"),
    ];
    let there: BTreeSet<&str> = files.into_iter().flat_map(methods).collect();
    let tested: BTreeSet<&str> = ROWS.iter().map(|row| row.method).collect();
    assert_eq!(there, tested);
    assert_eq!(tested.len(), ROWS.len(), "a method has two rows");
}
