//! The certified parameters are reached to at least six digits from both starting points.

use chainrule_example_nist::{MODELS, compile, dataset, evaluate, levenberg_marquardt::minimise};
use std::path::Path;

#[test]
fn certified_parameters_are_reached_from_both_starts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/nist");
    if !folder.exists() {
        println!("skipped: {} is not there", folder.display());
        return;
    }
    for (name, source) in MODELS {
        let data = dataset::read(&folder.join(format!("{name}.dat"))).unwrap();
        let compiled = compile(name, source).unwrap();
        for start in &data.starts {
            let solution = minimise(start, |b| evaluate(&compiled, &data, b)).unwrap();
            for (found, certified) in solution.parameters.iter().zip(&data.certified) {
                let error = ((found - certified) / certified).abs();
                assert!(error <= 1e-6, "{name} from {start:?}: {found} is not {certified} ({solution:?})");
            }
        }
    }
}
