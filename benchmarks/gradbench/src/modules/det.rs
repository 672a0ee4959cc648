//! Determinants by expansion by minors. Up to [`UNROLLED`] rows the expansion is unrolled when its size is known: straight
//! code, in which every minor is made once. Larger ones keep their loops, over all sets of columns.

use super::{NO_SIZES, SCALAR, VECTOR, function};
use crate::input::Input;
use crate::task::{Failure, Task};
use chainrule::Value;
use chainrule_example_micro as micro;

/// As far as compiling takes a second at most.
const UNROLLED: i64 = 12;

/// There are 2^24 minors then; for a gradient the minors of all rows are kept, 3 GiB.
const LARGEST: i64 = 24;

pub const PRIMAL: Task = Task {
    module: "det",
    name: "primal",
    function: || function(micro::DET, "det"),
    // Every minor is made once already: factoring would look for what is not there.
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

/// The rows, and how many sets of columns there are.
fn args(input: &Input<'_>) -> Result<Vec<Value<f64>>, Failure> {
    let (ell, a) = (size(input)?, input.vector("A")?);
    let n = ell as usize;
    if a.len() != n * n {
        return Err(format!("`A` has {} elements, not {ell} times {ell}", a.len()).into());
    }
    let rows: Vec<Vec<f64>> = a.chunks(n).map(<[f64]>::to_vec).collect();
    Ok(vec![rows.into(), (1_i64 << ell).into()])
}
