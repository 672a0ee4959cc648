//! The damped normal equations of bundle adjustment, solved by the Schur complement.
//!
//! In: the entries of the sparse Jacobian, by camera and by point, and the residuals. Out: the step.
//!
//! Let `U` be the blocks of one kind (block diagonal), `V` those of the other, and `W` those between:
//!
//! ```text
//! U  W   a     g          (V - WT inv(U) W) b = h - WT inv(U) g
//! WT V   b  =  h          U a = g - W b
//! ```
//!
//! The kind with more parameters is eliminated, block by block; `faer` solves the remaining system. (Triggs,
//! McLauchlan, Hartley and Fitzgibbon, *Bundle adjustment: a modern synthesis*, section 6.)

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};

/// One kind of parameters, in blocks of one width.
#[derive(Clone, Debug)]
struct Kind {
    width: usize,
    /// Diagonal blocks of the normal matrix, row-major.
    blocks: Vec<Vec<f64>>,
    /// Gradient.
    gradient: Vec<f64>,
}

impl Kind {
    fn new(width: usize, n: usize) -> Self {
        Self { width, blocks: vec![vec![0.0; width * width]; n], gradient: vec![0.0; width * n] }
    }

    /// Adds a row of the Jacobian.
    fn add(&mut self, block: usize, row: &[f64], residual: f64) {
        for (i, a) in row.iter().enumerate() {
            self.gradient[block * self.width + i] += a * residual;
            for (j, b) in row.iter().enumerate() {
                self.blocks[block][i * self.width + j] += a * b;
            }
        }
    }

    /// Returns a diagonal block with its diagonal enlarged, row-major.
    fn damped(&self, block: usize, damping: f64) -> Vec<f64> {
        let mut damped = self.blocks[block].clone();
        for i in 0..self.width {
            let diagonal = &mut damped[i * self.width + i];
            *diagonal += damping * diagonal.max(1e-9);
        }
        damped
    }
}

/// Normal equations.
#[derive(Clone, Debug)]
pub struct Normal {
    cameras: Kind,
    points: Kind,
    /// Camera and point of each observation, and the block between them: 6 by 3, row-major.
    between: Vec<(usize, usize, [f64; 18])>,
}

impl Normal {
    /// Returns the equations for the entries of the Jacobian, row by row, 6 by a camera and 3 by a point in each, two
    /// rows for each observation.
    #[must_use]
    pub fn new(
        n_cameras: usize,
        n_points: usize,
        observations: &[(usize, usize)],
        values: &[f64],
        residuals: &[f64],
    ) -> Self {
        let mut normal = Self { cameras: Kind::new(6, n_cameras), points: Kind::new(3, n_points), between: Vec::new() };
        for (k, (camera, point)) in observations.iter().enumerate() {
            let mut block = [0.0; 18];
            for (row, residual) in values[18 * k..18 * (k + 1)].chunks(9).zip(&residuals[2 * k..]) {
                let (by_camera, by_point) = row.split_at(6);
                normal.cameras.add(*camera, by_camera, *residual);
                normal.points.add(*point, by_point, *residual);
                for (i, a) in by_camera.iter().enumerate() {
                    for (j, b) in by_point.iter().enumerate() {
                        block[3 * i + j] += a * b;
                    }
                }
            }
            normal.between.push((*camera, *point, block));
        }
        normal
    }

    /// Returns the largest component of the gradient.
    #[must_use]
    pub fn gradient(&self) -> f64 {
        self.cameras.gradient.iter().chain(&self.points.gradient).fold(0.0, |norm, g| norm.max(g.abs()))
    }

    /// Returns the steps of all cameras and of all points, with each diagonal element enlarged by the fraction
    /// `damping`; `None` if the matrix is not positive definite in floating point.
    #[must_use]
    pub fn step(&self, damping: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        if self.cameras.gradient.len() >= self.points.gradient.len() {
            return solve(&self.cameras, &self.points, &self.between, damping);
        }
        let turned = |(camera, point, block): &(usize, usize, [f64; 18])| {
            (*point, *camera, std::array::from_fn(|k| block[k % 6 * 3 + k / 6]))
        };
        let between: Vec<(usize, usize, [f64; 18])> = self.between.iter().map(turned).collect();
        let (points, cameras) = solve(&self.points, &self.cameras, &between, damping)?;
        Some((cameras, points))
    }
}

/// Returns the steps of the eliminated and of the kept parameters. The blocks between them have a row for each
/// eliminated parameter.
fn solve(
    eliminated: &Kind,
    kept: &Kind,
    between: &[(usize, usize, [f64; 18])],
    damping: f64,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let (n, rows, width) = (kept.gradient.len(), eliminated.width, kept.width);
    let mut schur = Mat::<f64>::zeros(n, n);
    let mut right = Mat::from_fn(n, 1, |i, _| -kept.gradient[i]);
    for block in 0..kept.blocks.len() {
        for (k, x) in kept.damped(block, damping).into_iter().enumerate() {
            schur[(block * width + k / width, block * width + k % width)] = x;
        }
    }
    let mut of: Vec<Vec<usize>> = vec![Vec::new(); eliminated.blocks.len()];
    for (k, (e, ..)) in between.iter().enumerate() {
        of[*e].push(k);
    }
    let mut factors = Vec::with_capacity(of.len());
    for (e, observations) in of.iter().enumerate() {
        let mut factor = eliminated.damped(e, damping);
        cholesky(&mut factor, rows)?;
        let gradient: Vec<f64> = eliminated.gradient[e * rows..(e + 1) * rows].iter().map(|g| -g).collect();
        let mut inverse_gradient = gradient.clone();
        substitute(&factor, &mut inverse_gradient, 1);
        for k in observations {
            let (_, i, w) = &between[*k];
            for a in 0..width {
                let product: f64 = (0..rows).map(|r| w[r * width + a] * inverse_gradient[r]).sum();
                right[(i * width + a, 0)] -= product;
            }
            let mut inverse = *w;
            substitute(&factor, &mut inverse, width);
            for l in observations {
                // The lower triangle suffices.
                let (_, j, other) = &between[*l];
                if j < i {
                    continue;
                }
                for a in 0..width {
                    for b in 0..width {
                        let product: f64 = (0..rows).map(|r| other[r * width + a] * inverse[r * width + b]).sum();
                        schur[(j * width + a, i * width + b)] -= product;
                    }
                }
            }
        }
        factors.push((factor, gradient));
    }
    let kept_step = schur.llt(Side::Lower).ok()?.solve(&right);
    let kept_step: Vec<f64> = (0..n).map(|i| kept_step[(i, 0)]).collect();
    let mut eliminated_step = Vec::with_capacity(eliminated.gradient.len());
    for ((factor, mut gradient), observations) in factors.into_iter().zip(&of) {
        for k in observations {
            let (_, i, w) = &between[*k];
            for (r, g) in gradient.iter_mut().enumerate() {
                *g -= (0..width).map(|a| w[r * width + a] * kept_step[i * width + a]).sum::<f64>();
            }
        }
        substitute(&factor, &mut gradient, 1);
        eliminated_step.extend(gradient);
    }
    Some((eliminated_step, kept_step))
}

/// Replaces the lower triangle of a small positive definite matrix by its Cholesky factor.
fn cholesky(matrix: &mut [f64], n: usize) -> Option<()> {
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| matrix[i * n + k] * matrix[j * n + k]).sum();
            let rest = matrix[i * n + j] - sum;
            matrix[i * n + j] = if i > j {
                rest / matrix[j * n + j]
            } else if rest > 0.0 {
                rest.sqrt()
            } else {
                return None;
            };
        }
    }
    Some(())
}

/// Replaces each of the `columns` columns of `right` by the solution of the matrix with this factor.
fn substitute(factor: &[f64], right: &mut [f64], columns: usize) {
    let n = right.len() / columns;
    for c in 0..columns {
        for i in 0..n {
            let sum: f64 = (0..i).map(|k| factor[i * n + k] * right[k * columns + c]).sum();
            right[i * columns + c] = (right[i * columns + c] - sum) / factor[i * n + i];
        }
        for i in (0..n).rev() {
            let sum: f64 = (i + 1..n).map(|k| factor[k * n + i] * right[k * columns + c]).sum();
            right[i * columns + c] = (right[i * columns + c] - sum) / factor[i * n + i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schur_complement_solves_the_damped_equations_whichever_kind_is_eliminated() {
        for (n_cameras, n_points) in [(4, 3), (2, 7)] {
            let wave = |k: usize| (k as f64 * 1.7 + 0.3).sin();
            let observations: Vec<(usize, usize)> =
                (0..n_cameras * n_points).map(|k| (k % n_cameras, k % n_points)).chain([(0, 0)]).collect();
            let values: Vec<f64> = (0..18 * observations.len()).map(wave).collect();
            let residuals: Vec<f64> = (0..2 * observations.len()).map(|k| wave(5 * k)).collect();
            let damping = 0.1;
            let (cameras, points) =
                Normal::new(n_cameras, n_points, &observations, &values, &residuals).step(damping).unwrap();
            // Dense Jacobian.
            let n = 6 * n_cameras + 3 * n_points;
            let mut jacobian = Mat::<f64>::zeros(residuals.len(), n);
            for (row, numbers) in values.chunks(9).enumerate() {
                let (camera, point) = observations[row / 2];
                for (k, x) in numbers.iter().enumerate() {
                    jacobian[(row, if k < 6 { 6 * camera + k } else { 6 * n_cameras + 3 * point + k - 6 })] = *x;
                }
            }
            let mut matrix = jacobian.transpose() * &jacobian;
            for i in 0..n {
                matrix[(i, i)] += damping * matrix[(i, i)];
            }
            let right = jacobian.transpose() * Mat::from_fn(residuals.len(), 1, |i, _| -residuals[i]);
            let expected = matrix.llt(Side::Lower).unwrap().solve(&right);
            for (i, x) in cameras.iter().chain(&points).enumerate() {
                assert!(
                    (x - expected[(i, 0)]).abs() < 1e-9 * expected.norm_max(),
                    "{i}: {x} is not {}",
                    expected[(i, 0)]
                );
            }
        }
    }
}
