//! Levenberg-Marquardt with the scaling of Moré and the damping of Nielsen, on a QR factorisation of the
//! damped Jacobian.

use faer::Mat;
use faer::linalg::solvers::SolveLstsq;

/// Result of the solver.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The parameters.
    pub parameters: Vec<f64>,
    /// The residual sum of squares.
    pub sum_of_squares: f64,
    /// Number of evaluations of residuals and Jacobian.
    pub evaluations: usize,
    /// Whether it stopped because no improvement was possible, not because evaluations were used up.
    pub converged: bool,
}

/// Maximum number of evaluations.
const EVALUATIONS: usize = 5000;

fn squares(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum()
}

/// Minimises the sum of squares of the residuals that `evaluate` returns together with their Jacobian (row-major),
/// starting at `start`.
///
/// # Errors
/// Errors of `evaluate`.
pub fn minimise<E>(
    start: &[f64],
    mut evaluate: impl FnMut(&[f64]) -> Result<(Vec<f64>, Vec<f64>), E>,
) -> Result<Solution, E> {
    let n = start.len();
    let mut b = start.to_vec();
    let (mut r, mut j) = evaluate(&b)?;
    let (mut cost, mut evaluations) = (squares(&r), 1);
    let mut scale = vec![0.0_f64; n];
    let (mut damping, mut growth) = (1e-3, 2.0);
    let mut idle = 0;
    while evaluations < EVALUATIONS {
        let m = r.len();
        for (c, s) in scale.iter_mut().enumerate() {
            let norm = (0..m).map(|i| j[i * n + c] * j[i * n + c]).sum::<f64>().sqrt();
            *s = s.max(norm).max(1e-300);
        }
        // The least squares problem [J; sqrt(damping) D] step = [-r; 0], its columns scaled by D.
        let matrix = Mat::from_fn(m + n, n, |i, c| {
            if i < m {
                j[i * n + c] / scale[c]
            } else if i - m == c {
                f64::sqrt(damping)
            } else {
                0.0
            }
        });
        let right = Mat::from_fn(m + n, 1, |i, _| if i < m { -r[i] } else { 0.0 });
        let step = matrix.qr().solve_lstsq(&right);
        let next: Vec<f64> = (0..n).map(|c| b[c] + step[(c, 0)] / scale[c]).collect();
        let (next_r, next_j) = evaluate(&next)?;
        evaluations += 1;
        let next_cost = squares(&next_r);
        // Decrease predicted by the linear model.
        let predicted: f64 = cost
            - (0..m)
                .map(|i| (r[i] + (0..n).map(|c| j[i * n + c] * step[(c, 0)] / scale[c]).sum::<f64>()).powi(2))
                .sum::<f64>();
        let small = (0..n).all(|c| (next[c] - b[c]).abs() <= 1e-15 * b[c].abs().max(1e-30));
        if next_cost.is_finite() && next_cost < cost && predicted > 0.0 {
            let gain = (cost - next_cost) / predicted;
            idle = if (cost - next_cost) <= 1e-16 * cost { idle + 1 } else { 0 };
            (b, r, j, cost) = (next, next_r, next_j, next_cost);
            damping *= (1.0 - (2.0 * gain - 1.0).powi(3)).max(1.0 / 3.0);
            growth = 2.0;
        } else {
            idle += 1;
            damping *= growth;
            growth *= 2.0;
        }
        if small || idle >= 40 || damping > 1e100 || cost == 0.0 {
            return Ok(Solution { parameters: b, sum_of_squares: cost, evaluations, converged: true });
        }
    }
    Ok(Solution { parameters: b, sum_of_squares: cost, evaluations, converged: false })
}
