//! Tables of weights: complete, plausible, and with a record of their measurement.

use chainrule_kernel::weights::{CLASSES, is_costly};
use chainrule_ops::{Op, ROWS};
use std::path::Path;

#[test]
fn tables_have_each_costly_operator_and_a_record() {
    let costly: Vec<Op> = ROWS.iter().map(|row| row.op).filter(|op| is_costly(*op)).collect();
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/records");
    for weights in CLASSES {
        let class = weights.class;
        let listed: Vec<Op> = ROWS.iter().map(|row| row.op).filter(|op| weights.operators.of(*op).is_some()).collect();
        assert_eq!(listed, costly, "{class}: `cargo xtask calibrate {class}` writes the table");
        assert!(weights.unit_ns > 0.01 && weights.unit_ns < 10.0, "{class}");
        let memory =
            [weights.strided, weights.strided_far, weights.beside, weights.index, weights.check, weights.indexed];
        let operators =
            listed.iter().filter_map(|op| weights.operators.of(*op)).flat_map(|weight| [weight.plain, weight.lanes]);
        for weight in memory.into_iter().chain(operators) {
            assert!(weight.is_finite() && weight >= weights.cheap.plain, "{class}: {weight}");
        }
        assert!(records.join(class).join("weights").is_dir(), "{class} has a record");
    }
}
