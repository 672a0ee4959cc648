//! Space-time optimisation of a manipulator's motion, as in section 5.4 of the D* paper: the sum of squared torques at
//! a time, by the coefficients of cubic joint trajectories.

use chainrule::{Error, Expr, Function, Vector, var, vars};
use chainrule_example_manipulator::robot::{BenchmarkLink, Twist, benchmark_links};
use chainrule_example_manipulator::{Body, Joint, torques};

/// Gravity of the benchmark problems.
pub const GRAVITY: [f64; 3] = [0.0, -9.81, 0.0];

/// Returns the torques of the benchmark chain for joint expressions.
#[must_use]
pub fn chain_torques(n: usize, twist: Twist, q: &Vector, qd: &Vector, qdd: &Vector) -> Vector {
    let links: Vec<BenchmarkLink> = benchmark_links(n, twist);
    let joints: Vec<Joint> = links.iter().zip(q).map(|(link, q)| link.joint(q)).collect();
    let bodies: Vec<Body> = links.into_iter().map(|link| link.body).collect();
    torques(&joints, &bodies, qd, qdd, GRAVITY)
}

/// Returns the objective of `n` joints. Its arguments are the 4n coefficients `a` (a cubic for each joint, highest
/// power first) and the time `t`.
///
/// # Errors
/// Never, for at least one joint.
pub fn objective(n: usize, twist: Twist) -> Result<Function, Error> {
    let (a, t) = (vars("a", 4 * n), var("t"));
    let cubic = |i: usize| -> [&Expr; 4] { std::array::from_fn(|k| &a[4 * i + k]) };
    let q: Vector = (0..n).map(cubic).map(|[a0, a1, a2, a3]| ((a0 * &t + a1) * &t + a2) * &t + a3).collect();
    let qd: Vector = (0..n).map(cubic).map(|[a0, a1, a2, _]| (3.0 * a0 * &t + 2.0 * a1) * &t + a2).collect();
    let qdd: Vector = (0..n).map(cubic).map(|[a0, a1, _, _]| 6.0 * a0 * &t + 2.0 * a1).collect();
    let f: Expr = chain_torques(n, twist, &q, &qd, &qdd).iter().map(|tau| tau * tau).sum();
    Function::new("spacetime", (&a, &t), &f)
}
