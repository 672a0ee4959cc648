//! Cameras, points and observations.

use chainrule::{Compiled, Error, Module, Sparse, Value};

/// The F~ program.
pub const SOURCE: &str = include_str!("../programs/bundle.ft");

/// A bundle adjustment problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// A rotation (axis times angle) and a translation for each camera: 6 numbers.
    pub cameras: Vec<f64>,
    /// 3 numbers for each point.
    pub points: Vec<f64>,
    /// Focal length, principal point (2), radial distortion (3), tangential distortion (2).
    pub lens: [f64; 8],
    /// Image coordinates of each observation: 2 numbers.
    pub seen: Vec<f64>,
    /// Camera and point of each observation.
    pub observations: Vec<(usize, usize)>,
}

impl Problem {
    /// Returns the number of cameras.
    #[must_use]
    pub fn n_cameras(&self) -> usize {
        self.cameras.len() / 6
    }

    /// Returns the number of points.
    #[must_use]
    pub fn n_points(&self) -> usize {
        self.points.len() / 3
    }

    /// Returns the arguments of `residuals`.
    #[must_use]
    pub fn args(&self) -> Vec<Value<f64>> {
        let rows = |numbers: &[f64], n: usize| -> Value<f64> {
            numbers.chunks(n).map(<[f64]>::to_vec).collect::<Vec<Vec<f64>>>().into()
        };
        let indices = |of: fn(&(usize, usize)) -> usize| -> Value<f64> {
            Value::Array(self.observations.iter().map(|o| Value::Int(of(o) as i64)).collect())
        };
        vec![
            rows(&self.cameras, 6),
            rows(&self.points, 3),
            self.lens.to_vec().into(),
            rows(&self.seen, 2),
            indices(|o| o.0),
            indices(|o| o.1),
        ]
    }

    /// Returns the problem with every camera rotated and moved, and every point moved, by waves of these amplitudes: a
    /// worse start.
    #[must_use]
    pub fn shaken(&self, turn: f64, shift: f64) -> Self {
        let mut shaken = self.clone();
        for (k, x) in shaken.cameras.iter_mut().enumerate() {
            *x += wave(7 * k + 3) * if k % 6 < 3 { turn } else { shift };
        }
        for (k, x) in shaken.points.iter_mut().enumerate() {
            *x += wave(5 * k + 1) * shift;
        }
        shaken
    }

    /// Returns six cameras on an arc before a cloud of twenty points, all visible in all pictures. The start is near
    /// the solution, at which all residuals are 0.
    ///
    /// # Errors
    /// Fails if the program is wrong.
    pub fn synthetic() -> Result<Self, Error> {
        let (n, m) = (6, 20);
        let camera = |c: usize| {
            let turn = 0.12 * (c as f64 - 2.5);
            [0.02 * wave(c), turn, 0.01 * wave(c + 9), -5.0 * turn, 0.1 * wave(c + 5), 5.0]
        };
        let mut problem = Self {
            cameras: (0..n).flat_map(camera).collect(),
            points: (0..3 * m).map(|k| 1.2 * wave(3 * k + 1)).collect(),
            lens: [800.0, 320.0, 240.0, -0.05, 0.01, 0.0, 0.001, -0.002],
            seen: vec![0.0; 2 * n * m],
            observations: (0..n * m).map(|k| (k / m, k % m)).collect(),
        };
        problem.seen = residuals()?.call(&problem.args())?[0].reals().into_iter().copied().collect();
        Ok(problem.shaken(0.02, 0.02))
    }
}

/// Returns numbers between -1 and 1.
fn wave(k: usize) -> f64 {
    (k as f64 * 2.39996).sin()
}

/// Compiles the residuals.
///
/// # Errors
/// Fails if the program is wrong.
pub fn residuals() -> Result<Compiled, Error> {
    Module::from_text("bundle.ft", SOURCE)?.function("residuals")?.compile()
}

/// Compiles their sparse Jacobian by cameras and points.
///
/// # Errors
/// Fails if the program is wrong.
pub fn jacobian() -> Result<Sparse, Error> {
    Module::from_text("bundle.ft", SOURCE)?.function("residuals")?.sparse_jacobian(&["camera", "x"])
}
