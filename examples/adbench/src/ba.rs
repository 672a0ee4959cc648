//! Bundle adjustment: residuals and their sparse Jacobian.

use crate::{ReadError, Words, text};
use chainrule::{Compiled, Error, Module, Sparse, Value};
use std::path::Path;

/// The F~ program.
pub const SOURCE: &str = include_str!("../programs/ba.ft");

/// Cameras, points and observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// 11 numbers for each camera: rotation (3), centre (3), focal length, principal point (2), radial distortion (2).
    pub cameras: Vec<Vec<f64>>,
    /// 3 numbers for each point.
    pub points: Vec<Vec<f64>>,
    /// A weight for each observation.
    pub weights: Vec<f64>,
    /// Image coordinates of each observation: 2 numbers.
    pub seen: Vec<Vec<f64>>,
    /// Camera and point of each observation.
    pub observations: Vec<(usize, usize)>,
}

/// Returns the problem in the file `path`: one camera, point, weight and feature, repeated; observation `i` is of point
/// `i mod m` by camera `i mod n`.
///
/// # Errors
/// Fails if the file cannot be read, or is not an ADBench file.
pub fn read(path: &Path) -> Result<Problem, ReadError> {
    let text = text(path)?;
    let mut words = Words::new(path, &text);
    let (n, m, p) = (words.size()?, words.size()?, words.size()?);
    if n == 0 || m == 0 {
        return Err(format!("{} has no camera or no point", path.display()).into());
    }
    let (camera, point) = (words.numbers(11)?, words.numbers(3)?);
    let (weight, seen) = (words.numbers(1)?[0], words.numbers(2)?);
    Ok(Problem {
        cameras: vec![camera; n],
        points: vec![point; m],
        weights: vec![weight; p],
        seen: vec![seen; p],
        observations: (0..p).map(|i| (i % n, i % m)).collect(),
    })
}

impl Problem {
    /// Returns the arguments of the functions `ba`, `baJacobian` and `baPattern`.
    #[must_use]
    pub fn args(&self) -> Vec<Value<f64>> {
        let indices = |of: fn(&(usize, usize)) -> usize| -> Value<f64> {
            Value::Array(self.observations.iter().map(|o| Value::Int(of(o) as i64)).collect())
        };
        vec![
            self.cameras.clone().into(),
            self.points.clone().into(),
            self.weights.clone().into(),
            self.seen.clone().into(),
            indices(|o| o.0),
            indices(|o| o.1),
        ]
    }

    /// Returns rows and columns of the sparse Jacobian in compressed form, in the order of its values: two rows for
    /// each observation, by camera, point and weight, then a row for each weight. The columns are cameras, points,
    /// weights.
    #[must_use]
    pub fn pattern(&self) -> (Vec<usize>, Vec<usize>) {
        let (n, m) = (self.cameras.len(), self.points.len());
        let (mut rows, mut columns) = (vec![0], Vec::new());
        let weight = |i: usize| 11 * n + 3 * m + i;
        for (i, (camera, point)) in self.observations.iter().enumerate() {
            for _ in 0..2 {
                columns.extend(11 * camera..11 * camera + 11);
                columns.extend(11 * n + 3 * point..11 * n + 3 * point + 3);
                columns.push(weight(i));
                rows.push(columns.len());
            }
        }
        for i in 0..self.observations.len() {
            columns.push(weight(i));
            rows.push(columns.len());
        }
        (rows, columns)
    }
}

/// Compiles the function `name` of the program: `ba` (residuals), `baJacobian` (values of the sparse Jacobian, arranged
/// by hand) or `baPattern` (its pattern).
///
/// # Errors
/// Fails if there is no such function.
pub fn compile(name: &str) -> Result<Compiled, Error> {
    Module::from_text("ba.ft", SOURCE)?.function(name)?.compile()
}

/// Returns the sparse Jacobian of the residuals `ba` by cameras, points and weights, derived from `ba`.
///
/// # Errors
/// Fails if the program is wrong.
pub fn sparse_jacobian() -> Result<Sparse, Error> {
    Module::from_text("ba.ft", SOURCE)?.function("ba")?.sparse_jacobian(&["camera", "x", "w"])
}
