//! Programs as people write them, compiled and differentiated in every way there is to it, as the library's random tests do.

use crate::compare::{Case, batches, first_derivatives, second_derivatives, values};
use arbitrary::Unstructured;
use chainrule_ir::generate::written::{Options, program};

/// What is asked of a program that the bytes describe, the first of which says what. Whether the program told anything.
///
/// # Panics
/// Where something is wrong.
pub fn run(data: &[u8]) -> bool {
    let Some((how, rest)) = data.split_first() else { return false };
    let small = Options { longest: 6, fuel: 40, orders: 1, ..Options::default() };
    let (options, ask): (_, fn(&Case) -> Result<bool, String>) = match how % 4 {
        0 => (Options::default(), values),
        1 => (Options { longest: 11, fuel: 60, ..small }, first_derivatives),
        2 => (Options { scalar: true, smooth: true, ..small }, second_derivatives),
        _ => (Options { longest: 19, indices: false, ..small }, batches),
    };
    let Ok(written) = program(&mut Unstructured::new(rest), options) else { return false };
    Case::new(written).and_then(|case| ask(&case)).unwrap_or_else(|what| panic!("{what}"))
}
