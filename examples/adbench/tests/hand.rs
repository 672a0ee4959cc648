//! The hand model: residuals and Jacobian equal ADBench's hand-written C++ on its test file, to 1e-10 relative. On all
//! files, for both problems, they equal another implementation, and the Jacobian equals forward mode on the whole
//! program, and differences.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

mod support;

use chainrule::Value;
use chainrule_example_adbench::hand::{self, Model, Problem};
use support::{data, numbers};

fn reals(values: &[Value<f64>]) -> Vec<f64> {
    values.iter().flat_map(|value| value.reals().into_iter().copied()).collect()
}

fn same(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= tolerance * expected.abs().max(1e-2);
        assert!(close, "{what}, {i}: {found} is not {expected}");
    }
}

#[test]
fn residuals_and_jacobian_of_the_test_file_equal_the_golden_files() {
    let Some(data) = data() else { return };
    let problem = hand::read(&data.join("hand/test.txt")).unwrap();
    let (value, jacobian) = hand::compile(false).unwrap();
    let residuals = reals(&value.call(&problem.args()).unwrap());
    same("residuals", &residuals, &numbers(&data.join("golden/hand_test_F.txt")), 1e-10);
    let jacobian = reals(&jacobian.call(&problem.args()).unwrap());
    let expected = numbers(&data.join("golden/hand_test_J.txt"));
    same("Jacobian", &problem.columns(&jacobian).concat(), &expected, 1e-10);
}

#[test]
fn forward_mode_of_the_whole_program_gives_the_golden_jacobian_too() {
    let Some(data) = data() else { return };
    let problem = hand::read(&data.join("hand/test.txt")).unwrap();
    let (value, _) = hand::functions(false).unwrap();
    let jacobian = value.jacobian().by(&["theta"]).strategy("forward").compile().unwrap();
    // Three rows of 26 numbers for each point.
    let rows = reals(&jacobian.call(&problem.args()).unwrap());
    let n = problem.seen.len();
    let by_columns: Vec<f64> = (0..26).flat_map(|k| (0..3 * n).map(move |row| 26 * row + k)).map(|i| rows[i]).collect();
    same("Jacobian", &by_columns, &numbers(&data.join("golden/hand_test_J.txt")), 1e-10);
}

type Matrix = [[f64; 4]; 4];

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|r| std::array::from_fn(|c| (0..4).map(|k| a[r][k] * b[k][c]).sum()))
}

fn homogeneous(rows: &[Vec<f64>]) -> Matrix {
    std::array::from_fn(|r| std::array::from_fn(|c| if r < 3 { rows[r][c] } else { f64::from(u8::from(c == 3)) }))
}

fn turned_about(axis: usize, angle: f64) -> Matrix {
    let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut m: Matrix = std::array::from_fn(|r| std::array::from_fn(|c| f64::from(u8::from(r == c))));
    (m[a][a], m[a][b], m[b][a], m[b][b]) = (angle.cos(), -angle.sin(), angle.sin(), angle.cos());
    m
}

/// Returns the positions of the vertices, by a loop over bones and all vertices.
fn positions(model: &Model, theta: &[f64]) -> Vec<[f64; 3]> {
    let mut absolute: Vec<Matrix> = Vec::new();
    for bone in 0..22 {
        let relative = homogeneous(&model.relative[bone]);
        let (finger, joint) = (bone.saturating_sub(1) / 4, (bone + 3) % 4);
        let here = if bone == 0 || bone == 21 {
            relative
        } else {
            let angles = &theta[6 + 4 * finger..10 + 4 * finger];
            let (x, z) = [(0.0, 0.0), (angles[0], angles[1]), (angles[2], 0.0), (angles[3], 0.0)][joint];
            product(&relative, &product(&turned_about(2, z), &turned_about(0, x)))
        };
        let parent = if bone == 0 { None } else { Some(if bone == 21 || joint == 0 { 0 } else { bone - 1 }) };
        absolute.push(parent.map_or(here, |parent| product(&absolute[parent], &here)));
    }
    let moves: Vec<Matrix> = absolute.iter().zip(&model.rest).map(|(a, b)| product(a, &homogeneous(b))).collect();
    // The rotation by Rodrigues' formula on the vector, not as a matrix.
    let (axis, shift) = (&theta[..3], &theta[3..6]);
    let angle = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
    let unit: Vec<f64> = axis.iter().map(|x| x / angle).collect();
    let place = |p: [f64; 3]| -> [f64; 3] {
        let along: f64 = (0..3).map(|k| unit[k] * p[k]).sum::<f64>() * (1.0 - angle.cos());
        std::array::from_fn(|r| {
            let (a, b) = ((r + 1) % 3, (r + 2) % 3);
            p[r] * angle.cos() + (unit[a] * p[b] - unit[b] * p[a]) * angle.sin() + unit[r] * along + shift[r]
        })
    };
    let skin = |v: usize| {
        let p = &model.vertices[v];
        let mut at = [0.0; 3];
        for (bone, m) in moves.iter().enumerate() {
            let weight: f64 = (0..4).filter(|j| model.bones[v][*j] == bone as i64).map(|j| model.weights[v][j]).sum();
            for r in 0..3 {
                at[r] += weight * (m[r][0] * p[0] + m[r][1] * p[1] + m[r][2] * p[2] + m[r][3]);
            }
        }
        place(at)
    };
    (0..model.vertices.len()).map(skin).collect()
}

fn residuals(problem: &Problem, theta: &[f64], coordinates: &[Vec<f64>]) -> Vec<f64> {
    let positions = positions(&problem.model, theta);
    let mut all = Vec::new();
    for (i, seen) in problem.seen.iter().enumerate() {
        let at = problem.at[i] as usize;
        for r in 0..3 {
            let point = if problem.coordinates.is_some() {
                let corner: Vec<f64> = problem.model.triangles[at].iter().map(|v| positions[*v as usize][r]).collect();
                let (u, v) = (coordinates[i][0], coordinates[i][1]);
                u * corner[0] + v * corner[1] + (1.0 - u - v) * corner[2]
            } else {
                positions[at][r]
            };
            all.push(seen[r] - point);
        }
    }
    all
}

/// Returns the derivative of `f` at 0, by central differences extrapolated to sixth order.
fn slope(f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let step = 1e-2;
    let at: Vec<(Vec<f64>, Vec<f64>)> = (1..=3).map(|k| k as f64 * step).map(|h| (f(h), f(-h))).collect();
    let difference = |k: usize, i: usize| (at[k].0[i] - at[k].1[i]) / (2.0 * (k + 1) as f64 * step);
    (0..at[0].0.len()).map(|i| 1.5 * difference(0, i) - 0.6 * difference(1, i) + 0.1 * difference(2, i)).collect()
}

#[test]
fn residuals_equal_another_implementation_and_jacobians_equal_differences() {
    let Some(data) = data() else { return };
    for file in ["simple_hand1_t26_c100.txt", "complicated_hand1_t26_c100.txt"] {
        let problem = hand::read(&data.join("hand").join(file)).unwrap();
        let complicated = problem.coordinates.is_some();
        assert_eq!(complicated, file.starts_with("complicated"));
        let own = if complicated { 2 } else { 0 };
        let (value, jacobian) = hand::compile(complicated).unwrap();
        let none = Vec::new();
        let coordinates = problem.coordinates.as_ref().unwrap_or(&none);
        let expected = residuals(&problem, &problem.theta, coordinates);
        same(file, &reals(&value.call(&problem.args()).unwrap()), &expected, 1e-12);
        let found = problem.columns(&reals(&jacobian.call(&problem.args()).unwrap()));
        assert_eq!(found.len(), own + 26);
        for (k, column) in found.iter().enumerate() {
            let slopes = slope(|by| {
                let (mut theta, mut coordinates) = (problem.theta.clone(), coordinates.clone());
                if k < own {
                    coordinates.iter_mut().for_each(|u| u[k] += by);
                } else {
                    theta[k - own] += by;
                }
                residuals(&problem, &theta, &coordinates)
            });
            same(&format!("{file}, parameter {k}"), column, &slopes, 1e-9);
        }
    }
}

#[test]
fn forward_mode_of_the_whole_complicated_program_gives_the_same_jacobian() {
    let Some(data) = data() else { return };
    let mut problem = hand::read(&data.join("hand/complicated_hand1_t26_c100.txt")).unwrap();
    problem.seen.truncate(7);
    problem.at.truncate(7);
    problem.coordinates.as_mut().unwrap().truncate(7);
    let (value, jacobian) = hand::functions(true).unwrap();
    let found = problem.columns(&reals(&jacobian.compile().unwrap().call(&problem.args()).unwrap()));
    let whole = value.jacobian().by(&["u", "theta"]).compile().unwrap().call(&problem.args()).unwrap();
    // By u: for each residual all coordinates of all points, most of them 0. By theta: 26 numbers.
    let all = reals(&whole);
    let (by_u, by_theta) = all.split_at(7 * 3 * 7 * 2);
    for i in 0..7 {
        for r in 0..3 {
            for (j, of) in by_u[(3 * i + r) * 14..][..14].iter().enumerate() {
                let expected = if j / 2 == i { found[j % 2][3 * i + r] } else { 0.0 };
                assert!((of - expected).abs() <= 1e-13, "{i}, {r}, {j}: {of} is not {expected}");
            }
            let expected: Vec<f64> = found[2..].iter().map(|column| column[3 * i + r]).collect();
            same("by theta", &by_theta[(3 * i + r) * 26..][..26], &expected, 1e-12);
        }
    }
}

#[test]
fn a_hand_that_is_hardly_turned_is_not_turned_at_all() {
    let Some(data) = data() else { return };
    let mut problem = hand::read(&data.join("hand/test.txt")).unwrap();
    let (value, jacobian) = hand::compile(false).unwrap();
    problem.theta[..3].fill(0.0);
    let still = value.call(&problem.args()).unwrap();
    problem.theta[..3].fill(1e-5);
    assert_eq!(value.call(&problem.args()).unwrap(), still);
    let jacobian = reals(&jacobian.call(&problem.args()).unwrap());
    assert!(jacobian.iter().all(|x| x.is_finite()));
    // The rotation has no effect.
    assert!(problem.columns(&jacobian)[..3].concat().iter().all(|x| *x == 0.0));
}
