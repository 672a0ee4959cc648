//! Asking for less is never slower: the value alone, or the gradient alone, is not predicted to take longer than both
//! together.
//!
//! Predictions are what the compiler chooses loops by. They are within a factor of 2 of measured times and repeatable,
//! which times are not. The law does not hold without exception: of 476 parts of other random programs, two took
//! longer, 1.05 and 2.2 times, because the optimiser had simplified less.

use crate::case::Case;
use crate::support::run;
use arbitrary::Unstructured;
use chainrule::{CompileOptions, Function};
use chainrule_ir::generate::written;

/// How much longer a part may take than both.
const RATIO: f64 = 1.05;
/// Least size of programs that are compared.
const LEAST: i64 = 12;
/// Time that does not count, in nanoseconds: a few instructions.
const LITTLE: f64 = 3.0;

/// Compares; returns whether there was a gradient with loops.
fn compare(case: &Case) -> Result<bool, String> {
    let both = case.f.gradient().with_value().function();
    let (Ok(both), Ok(value), Ok(gradient)) = (both, case.f.value().function(), case.f.gradient().function()) else {
        return Ok(false);
    };
    // In code for a few elements, constant parts of the time decide.
    if case.sizes().is_none_or(|sizes| sizes.iter().any(|(_, size)| *size < LEAST)) {
        return Ok(false);
    }
    let predicted = |f: &Function| f.prediction(&CompileOptions::default(), Some(&case.args));
    let (Ok(both), Ok(value), Ok(gradient)) = (predicted(&both), predicted(&value), predicted(&gradient)) else {
        return Ok(false);
    };
    for (part, alone) in [("value", &value), ("gradient", &gradient)] {
        if alone.ns > RATIO * both.ns + LITTLE {
            return Err(format!("the {part} alone:\n{alone}\nboth together:\n{both}"));
        }
    }
    Ok(!both.loops.is_empty())
}

#[test]
fn a_part_takes_no_longer_than_both_parts() {
    run(83, 300, 30, 900, |bytes| {
        let options =
            written::Options { scalar: true, orders: 0, smooth: true, longest: 40, ..written::Options::default() };
        let written = written::program(&mut Unstructured::new(bytes), options);
        let Some(case) = written.map_or(Ok(None), Case::new)? else { return Ok(false) };
        compare(&case).map_err(|e| case.fails(e))
    });
}
