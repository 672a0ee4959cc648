//! Levenberg-Marquardt on the sparse Jacobian.
//!
//! Steps that decrease the sum of squares are accepted, and decrease the damping; other steps are repeated with a
//! damping that grows faster and faster.

use crate::normal::Normal;
use crate::problem::{Problem, jacobian, residuals};
use chainrule::Error;

/// An iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// Root mean square distance, in pixels.
    pub error: f64,
    /// Largest component of the gradient of half the sum of squares.
    pub gradient: f64,
    /// Damping.
    pub damping: f64,
}

/// Result of the refinement.
#[derive(Clone, Debug, PartialEq)]
pub struct Refined {
    /// Problem with better cameras and points.
    pub problem: Problem,
    /// The start, and each accepted step.
    pub iterations: Vec<Iteration>,
    /// Distance of each observation at the start, in pixels.
    pub before: Vec<f64>,
    /// Distance of each observation at the end.
    pub after: Vec<f64>,
}

/// Maximum number of steps.
pub const MAX_STEPS: usize = 60;

/// Minimum relative decrease of the sum of squares; the iteration ends below it.
const LEAST_GAIN: f64 = 1e-10;

/// Maximum damping; the iteration ends if no step succeeds with it.
const MOST_DAMPING: f64 = 1e3;

/// Returns `problem` with cameras and points of the least sum of squared distances near the given ones.
///
/// # Errors
/// Fails if the program fails.
pub fn refine(problem: &Problem) -> Result<Refined, Error> {
    let (compiled, sparse) = (residuals()?, jacobian()?);
    let args = problem.args();
    let (mut residuals, mut jacobian) = (compiled.prepare(&args)?, sparse.prepare(&args)?);
    let mut best = problem.clone();
    residuals.run()?;
    let mut r = residuals.result(0).to_vec();
    let before = distances(&r);
    let mut cost = squares(&r);
    let (mut damping, mut growth) = (1e-4, 2.0);
    let mut iterations: Vec<Iteration> = Vec::new();
    let n = problem.observations.len().max(1) as f64;
    let mut normal = None;
    for _ in 0..MAX_STEPS {
        if normal.is_none() {
            jacobian.argument_mut(0).copy_from_slice(&best.cameras);
            jacobian.argument_mut(1).copy_from_slice(&best.points);
            jacobian.run()?;
            let new = Normal::new(best.n_cameras(), best.n_points(), &best.observations, jacobian.values(), &r);
            iterations.push(Iteration { error: (cost / n).sqrt(), gradient: new.gradient(), damping });
            normal = Some(new);
        }
        let step = normal.as_ref().and_then(|normal| normal.step(damping));
        if let Some((cameras, points)) = step {
            let moved = |x: &[f64], by: &[f64]| -> Vec<f64> { x.iter().zip(by).map(|(x, by)| x + by).collect() };
            let (cameras, points) = (moved(&best.cameras, &cameras), moved(&best.points, &points));
            residuals.argument_mut(0).copy_from_slice(&cameras);
            residuals.argument_mut(1).copy_from_slice(&points);
            residuals.run()?;
            let new_cost = squares(residuals.result(0));
            if new_cost < cost {
                let gain = (cost - new_cost) / cost;
                (best.cameras, best.points, cost) = (cameras, points, new_cost);
                r.copy_from_slice(residuals.result(0));
                (damping, growth, normal) = (damping / 3.0, 2.0, None);
                if gain < LEAST_GAIN {
                    break;
                }
                continue;
            }
        }
        damping *= growth;
        growth *= 2.0;
        if damping > MOST_DAMPING {
            break;
        }
    }
    if normal.is_none() {
        jacobian.argument_mut(0).copy_from_slice(&best.cameras);
        jacobian.argument_mut(1).copy_from_slice(&best.points);
        jacobian.run()?;
        let last = Normal::new(best.n_cameras(), best.n_points(), &best.observations, jacobian.values(), &r);
        iterations.push(Iteration { error: (cost / n).sqrt(), gradient: last.gradient(), damping });
    }
    Ok(Refined { problem: best, iterations, before, after: distances(&r) })
}

fn squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|x| x * x).sum()
}

fn distances(residuals: &[f64]) -> Vec<f64> {
    residuals.chunks(2).map(|pair| squares(pair).sqrt()).collect()
}
