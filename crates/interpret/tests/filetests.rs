//! Kernels as text with their outcomes, one point at a time and in batches. `UPDATE_FILETESTS=1` writes outcomes anew.

mod support;

use chainrule_backend_tests::filetests::{Found, check, shared};
use chainrule_backend_tests::{Array, Case, Data, around};
use chainrule_interpret::{LANES, Program};
use support::{Order, run, run_batch};

fn data(results: Vec<Array>) -> Vec<Data> {
    results.into_iter().map(|array| array.data).collect()
}

/// Returns the outcome of a case, which points of a batch have too.
fn outcome(case: &Case) -> Found {
    let program = Program::new(&case.kernel).map_err(|error| error.to_string())?;
    let points = around(&case.inputs, LANES + 1);
    let one_by_one: Vec<_> = points.iter().map(|point| run(&case.kernel, &program, point).map(data)).collect();
    for order in [Order::Structures, Order::Arrays] {
        let batch = match run_batch(&case.kernel, &program, &points, order, true) {
            Ok((results, _)) => results.into_iter().map(|point| Ok(data(point))).collect(),
            // The first point that fails ends the batch.
            Err(error) => vec![Err(error)],
        };
        let failure = one_by_one.iter().enumerate().find_map(|(p, one)| Some((p, one.as_ref().err()?)));
        let expected = match failure {
            Some((p, error)) => vec![Err(error.clone().at_point(p))],
            None => one_by_one.clone(),
        };
        if batch != expected {
            return Err(format!("as a batch of {order:?}, {batch:?}, but one by one {expected:?}"));
        }
    }
    Ok(one_by_one.into_iter().next().expect("a batch has points"))
}

#[test]
fn kernels_have_their_outcomes() {
    check(&shared(), outcome);
}
