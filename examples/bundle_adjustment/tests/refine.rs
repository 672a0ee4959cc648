//! Refinement: the sparse Jacobian equals the dense one, and the errors decrease as expected.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

use chainrule_example_bundle_adjustment::{Problem, libmv, picture, problem, refine};
use std::path::Path;

#[test]
fn the_sparse_jacobian_stands_by_camera_and_by_point() {
    let problem = Problem::synthetic().unwrap();
    let sparse = problem::jacobian().unwrap();
    assert_eq!(sparse.notes(), [""; 0]);
    let mut at = sparse.prepare(&problem.args()).unwrap();
    at.run().unwrap();
    assert!(at.is_in_order());
    let csr = at.pattern().csr();
    for (k, (camera, point)) in problem.observations.iter().enumerate() {
        let start = 6 * problem.n_cameras() + 3 * point;
        let columns: Vec<usize> = (6 * camera..6 * camera + 6).chain(start..start + 3).collect();
        assert_eq!(csr.indices[csr.starts[2 * k]..csr.starts[2 * k + 1]], columns);
        assert_eq!(csr.indices[csr.starts[2 * k + 1]..csr.starts[2 * k + 2]], columns);
    }
    // Against central differences, column by column.
    let compiled = problem::residuals().unwrap();
    let mut residuals = compiled.prepare(&problem.args()).unwrap();
    let (step, n_camera) = (1e-6, problem.cameras.len());
    for column in 0..n_camera + problem.points.len() {
        let mut moved = |by: f64| {
            let (mut cameras, mut points) = (problem.cameras.clone(), problem.points.clone());
            *(if column < n_camera { &mut cameras[column] } else { &mut points[column - n_camera] }) += by;
            residuals.argument_mut(0).copy_from_slice(&cameras);
            residuals.argument_mut(1).copy_from_slice(&points);
            residuals.run().unwrap();
            residuals.result(0).to_vec()
        };
        let (ahead, behind) = (moved(step), moved(-step));
        for row in 0..csr.starts.len() - 1 {
            let difference = (ahead[row] - behind[row]) / (2.0 * step);
            let found = at.pattern().place(row, column).map_or(0.0, |place| at.values()[place]);
            assert!((found - difference).abs() < 1e-4, "row {row}, column {column}: {found} is not {difference}");
        }
    }
}

#[test]
fn a_synthetic_problem_is_solved_to_the_last_digits() {
    let refined = refine(&Problem::synthetic().unwrap()).unwrap();
    let (first, last) = (refined.iterations.first().unwrap(), refined.iterations.last().unwrap());
    assert!(first.error > 1.0 && last.error < 1e-9, "{first:?} {last:?}");
    assert!(last.gradient < 1e-9 * first.gradient, "{first:?} {last:?}");
    let svg = picture::draw(&refined.before, &refined.after);
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
}

#[test]
fn the_film_is_refined() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/ba/libmv_problem_02.bin");
    let Ok(bytes) = std::fs::read(&path) else {
        println!("skipped: {} is not there", path.display());
        return;
    };
    let problem = libmv::parse(&bytes).unwrap();
    assert_eq!((problem.n_cameras(), problem.n_points(), problem.observations.len()), (440, 71, 16718));
    // The file contains a solution that is nearly optimal.
    let refined = refine(&problem).unwrap();
    let (first, best) = (refined.iterations.first().unwrap(), refined.iterations.last().unwrap());
    assert!((first.error - 0.790_211).abs() < 1e-6, "{first:?}");
    assert!((best.error - 0.790_155).abs() < 1e-6, "{best:?}");
    // It is found again from further away.
    let refined = refine(&problem.shaken(0.01, 0.1)).unwrap();
    let (first, last) = (refined.iterations.first().unwrap(), refined.iterations.last().unwrap());
    assert!(first.error > 20.0, "{first:?}");
    assert!((last.error - best.error).abs() < 1e-6, "{last:?} {best:?}");
    assert!(last.gradient < 1e-6 * first.gradient, "{first:?} {last:?}");
    for pair in refined.iterations.windows(2) {
        assert!(pair[1].error <= pair[0].error, "{pair:?}");
    }
}
