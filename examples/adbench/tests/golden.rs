//! Values and derivatives equal ADBench's hand-written C++, if there are golden files, to 1e-10 relative; the Jacobian
//! of bundle adjustment equals central differences.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

mod support;

use chainrule::Value;
use chainrule_example_adbench::{ba, lstm};
use support::{data, numbers};

#[test]
fn loss_and_gradient_of_the_network_equal_the_golden_files() {
    let Some(data) = data() else { return };
    let problem = lstm::read(&data.join("lstm/lstm_l2_c1024.txt")).unwrap();
    let both = lstm::compile().unwrap().call(&problem.args()).unwrap();
    let found = both[0].reals();
    let expected: Vec<f64> =
        ["F", "J"].iter().flat_map(|k| numbers(&data.join(format!("golden/lstm_lstm_l2_c1024_{k}.txt")))).collect();
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.into_iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 1e-10 * expected.abs().max(1e-3), "{i}: {found} is not {expected}");
    }
}

/// Returns two cameras and three points with distinct numbers; one camera has no rotation.
fn small() -> ba::Problem {
    let number = |i: usize| 0.3 + 0.17 * (i as f64 * 1.7).sin();
    let mut cameras: Vec<Vec<f64>> = (0..2).map(|c| (0..11).map(|k| number(11 * c + k)).collect()).collect();
    cameras[1][..3].fill(0.0);
    let points = (0..3).map(|p| vec![number(50 + p), number(60 + p), 2.0 + number(70 + p)]).collect();
    let observations = vec![(0, 0), (1, 2), (0, 1), (1, 1), (0, 2)];
    ba::Problem {
        cameras,
        points,
        weights: (0..5).map(|i| number(80 + i)).collect(),
        seen: (0..5).map(|i| vec![number(90 + i), number(100 + i)]).collect(),
        observations,
    }
}

fn residuals(problem: &ba::Problem) -> Vec<f64> {
    ba::compile("ba").unwrap().call(&problem.args()).unwrap()[0].reals().into_iter().copied().collect()
}

#[test]
fn the_jacobian_of_bundle_adjustment_equals_central_differences() {
    let problem = small();
    let values = ba::compile("baJacobian").unwrap().call(&problem.args()).unwrap();
    let values: Vec<f64> = values[0].reals().into_iter().copied().collect();
    let (rows, columns) = problem.pattern();
    assert_eq!(values.len(), columns.len());
    let (n, m) = (problem.cameras.len(), problem.points.len());
    let at_zero = 3; // At a zero rotation the program branches: differences would use the other branch.
    for column in 0..11 * n + 3 * m + problem.weights.len() {
        if (11..11 + at_zero).contains(&column) {
            continue;
        }
        let step = 1e-5;
        let moved = |by: f64| {
            let mut moved = problem.clone();
            if column < 11 * n {
                moved.cameras[column / 11][column % 11] += by;
            } else if column < 11 * n + 3 * m {
                moved.points[(column - 11 * n) / 3][(column - 11 * n) % 3] += by;
            } else {
                moved.weights[column - 11 * n - 3 * m] += by;
            }
            residuals(&moved)
        };
        let (ahead, behind) = (moved(step), moved(-step));
        for row in 0..rows.len() - 1 {
            let difference = (ahead[row] - behind[row]) / (2.0 * step);
            let found: f64 = (rows[row]..rows[row + 1]).filter(|k| columns[*k] == column).map(|k| values[k]).sum();
            assert!((found - difference).abs() < 1e-8, "row {row}, column {column}: {found} is not {difference}");
        }
    }
}

fn compare_patterns(problem: &ba::Problem) {
    fn integers(value: &Value<f64>, out: &mut Vec<usize>) {
        match value {
            Value::Int(i) => out.push(usize::try_from(*i).unwrap()),
            Value::Array(all) => all.iter().for_each(|value| integers(value, out)),
            _ => panic!("neither integers nor arrays of them"),
        }
    }
    let found = ba::compile("baPattern").unwrap().call(&problem.args()).unwrap();
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    let [Value::Tuple(parts)] = found.as_slice() else { panic!("four arrays") };
    parts[..2].iter().for_each(|part| integers(part, &mut rows));
    parts[2..].iter().for_each(|part| integers(part, &mut columns));
    assert_eq!((rows, columns), problem.pattern());
}

#[test]
fn rows_and_columns_of_bundle_adjustment_are_where_its_values_stand() {
    compare_patterns(&small());
    let Some(data) = data() else { return };
    compare_patterns(&ba::read(&data.join("ba/test.txt")).unwrap());
}

/// The sparse Jacobian derived from the residuals has the pattern and the values of the hand-arranged one.
fn compare_with_the_one_by_hand(problem: &ba::Problem) {
    let by_hand = ba::compile("baJacobian").unwrap().call(&problem.args()).unwrap();
    let by_hand: Vec<f64> = by_hand[0].reals().into_iter().copied().collect();
    let sparse = ba::sparse_jacobian().unwrap();
    assert_eq!(sparse.notes(), [""; 0]);
    let mut sparse = sparse.prepare(&problem.args()).unwrap();
    sparse.run().unwrap();
    let csr = sparse.pattern().csr();
    assert_eq!((&csr.starts, &csr.indices), (&problem.pattern().0, &problem.pattern().1));
    assert!(sparse.is_in_order());
    for (found, expected) in sparse.values().iter().zip(&by_hand) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{found} is not {expected}");
    }
}

#[test]
fn the_sparse_jacobian_comes_out_of_the_residuals() {
    compare_with_the_one_by_hand(&small());
    let Some(data) = data() else { return };
    compare_with_the_one_by_hand(&ba::read(&data.join("ba/test.txt")).unwrap());
}
