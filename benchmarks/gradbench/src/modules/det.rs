//! Determinants by expansion by minors. Up to [`UNROLLED`] rows the expansion is unrolled for the known size:
//! straight-line code that computes every minor once. Larger ones keep their loops over all sets of columns.

use super::{NO_SIZES, SCALAR, VECTOR, function};
use crate::input::Input;
use crate::task::{Failure, Task};
use chainrule::Value;
use chainrule_example_micro as micro;

/// Maximum number of rows to be unrolled: compilation takes at most a second.
const UNROLLED: i64 = 12;

/// Maximum number of rows: there are 2^24 minors, and a gradient stores the minors of all rows, 3 GiB.
const LARGEST: i64 = 24;

pub const PRIMAL: Task = Task {
    module: "det",
    name: "primal",
    function: || function(micro::DET, "det"),
    // Every minor is already computed once: factoring would find nothing.
    derive: |f| f.value().without_optimisation(),
    size: Some(|input| size(input).map(|ell| if ell <= UNROLLED { ell } else { 0 })),
    unrolled: |ell| if ell == 0 { NO_SIZES(0) } else { vec![("ell", ell), ("sets", 1 << ell)] },
    args,
    output: SCALAR,
};

pub const GRADIENT: Task = Task {
    name: "gradient",
    derive: |f| f.gradient().by(&["a"]).strategy("reverse").without_optimisation(),
    output: VECTOR,
    ..PRIMAL
};

fn size(input: &Input<'_>) -> Result<i64, Failure> {
    input.size("ell", 1, LARGEST)
}

/// Returns the rows, and the number of sets of columns.
fn args(input: &Input<'_>) -> Result<Vec<Value<f64>>, Failure> {
    let (ell, a) = (size(input)?, input.vector("A")?);
    let n = ell as usize;
    if a.len() != n * n {
        return Err(format!("`A` has {} elements, not {ell} times {ell}", a.len()).into());
    }
    let rows: Vec<Vec<f64>> = a.chunks(n).map(<[f64]>::to_vec).collect();
    Ok(vec![rows.into(), (1_i64 << ell).into()])
}
