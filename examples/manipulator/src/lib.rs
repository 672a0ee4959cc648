//! Inverse dynamics of a serial manipulator with 4x4 transforms, as in section 5.3 of the D* paper.
//!
//! | paper | here |
//! | --- | --- |
//! | A_i | [`Joint::transform`], from frame i to frame i-1 |
//! | W_i = A_1 ... A_i | `world` |
//! | J_i, m_i, r_i | [`Body::pseudo_inertia`], [`Body::mass`], [`Body::centre`] |
//! | tau_i, equation (16) | [`torques`] |

mod dynamics;
pub mod newton_euler;
pub mod robot;
pub mod urdf;

pub use dynamics::{Body, Joint, torques, torques_by_time_derivatives};

use chainrule::{Error, Function, Vector, vars};
use robot::Link;

/// Returns the torque function of a chain: arguments q, qd and qdd, result tau. Chainrule differentiates transforms
/// along q -> qd -> qdd.
///
/// # Errors
/// Never, for a chain with at least one link.
pub fn torque_function(links: &[Link], gravity: [f64; 3]) -> Result<Function, Error> {
    let n = links.len();
    let (q, qd, qdd) = (vars("q", n), vars("qd", n), vars("qdd", n));
    let transforms: Vec<_> = links.iter().zip(&q).map(|(link, q)| link.joint(q).transform).collect();
    let bodies: Vec<Body> = links.iter().map(|link| link.body.clone()).collect();
    let tau: Vector = torques_by_time_derivatives(&transforms, &bodies, &q, &qd, &qdd, gravity);
    Function::new("torques", (&q, &qd, &qdd), &tau.named("tau"))
}
