//! Random programs, compiled and differentiated in every mode, as in the library's random tests.

use crate::case::Case;
use crate::compare::{batches, failures, first_derivatives, products, second_derivatives, sparse_derivatives, values};
use arbitrary::Unstructured;
use chainrule_ir::generate::written::{Options, program};

/// Checks a program described by the bytes; the first byte selects the check. Returns whether the check applied.
///
/// # Panics
/// Panics if it fails.
pub fn run(data: &[u8]) -> bool {
    let Some((how, rest)) = data.split_first() else { return false };
    let small = Options { longest: 6, fuel: 40, orders: 1, ..Options::default() };
    let how = how % 7;
    let options = match how {
        0 => Options::default(),
        1 => Options { longest: 11, fuel: 60, ..small },
        2 => Options { scalar: true, smooth: true, ..small },
        3 => small,
        4 => Options { longest: 90, fuel: 60, work: 4, ..small },
        5 => Options { empty: true, ..small },
        _ => Options { longest: 19, indices: false, ..small },
    };
    let Ok(written) = program(&mut Unstructured::new(rest), options) else { return false };
    let what = match how {
        0 => values,
        1 => first_derivatives,
        2 => second_derivatives,
        3 => sparse_derivatives,
        4 => products,
        5 => failures,
        _ => batches,
    };
    let told = Case::new(written).and_then(|case| case.as_ref().map_or(Ok(false), what));
    told.unwrap_or_else(|what| panic!("{what}"))
}
