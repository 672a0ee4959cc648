//! The torque function: equations (14) to (16).

use chainrule::{Expr, Matrix, Tensor, Vector, d, time_derivative};

/// The mass distribution of a link, in the link's own frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// In kilograms.
    pub mass: f64,
    /// The centre of mass, in metres.
    pub centre: [f64; 3],
    /// The integral of x xT over the mass, with x in homogeneous coordinates: symmetric; the last row and column are
    /// mass times centre, and mass.
    pub pseudo_inertia: [[f64; 4]; 4],
}

/// A joint at its coordinate: the transform of its link's frame to the previous one, and its derivatives by the joint's
/// coordinate. These are simple, and given rather than derived.
#[derive(Clone, Debug)]
pub struct Joint {
    /// A(q).
    pub transform: Matrix,
    /// dA/dq.
    pub first: Matrix,
    /// d2A/dq2.
    pub second: Matrix,
}

/// Returns numbers as expressions in the graph of `like`.
pub(crate) fn constant_matrix(like: &Expr, rows: &[[f64; 4]; 4]) -> Matrix {
    Matrix::from_fn(4, 4, |i, j| like.constant_like(rows[i][j]))
}

/// Returns the torques for joint velocities `qd` and accelerations `qdd`, by equation (16). W and its second time
/// derivative use the product rule, link by link.
///
/// # Panics
/// Panics if the lengths of the arguments differ, or there is no joint.
#[must_use]
pub fn torques(joints: &[Joint], bodies: &[Body], qd: &Vector, qdd: &Vector, gravity: [f64; 3]) -> Vector {
    let (mut world, mut world_d, mut world_dd): (Vec<Matrix>, Vec<Matrix>, Vec<Matrix>) = Default::default();
    for (i, joint) in joints.iter().enumerate() {
        let a = &joint.transform;
        let a_d = &joint.first * &qd[i];
        let a_dd = &joint.second * (&qd[i] * &qd[i]) + &joint.first * &qdd[i];
        if i == 0 {
            world.push(a.clone());
            world_d.push(a_d);
            world_dd.push(a_dd);
            continue;
        }
        let (w, w_d, w_dd) = (&world[i - 1], &world_d[i - 1], &world_dd[i - 1]);
        let next_dd = w_dd * a + (w_d * &a_d).map(|e| 2.0 * e) + w * &a_dd;
        let next_d = w_d * a + w * &a_d;
        let next = w * a;
        world.push(next);
        world_d.push(next_d);
        world_dd.push(next_dd);
    }
    torques_from(joints, bodies, &world, &world_dd, gravity)
}

/// As [`torques`], with dA/dq and the second time derivative of W requested as derivatives of expressions along q -> qd
/// -> qdd, as in a D* program.
///
/// # Panics
/// As [`torques`].
#[must_use]
pub fn torques_by_time_derivatives(
    transforms: &[Matrix],
    bodies: &[Body],
    q: &Vector,
    qd: &Vector,
    qdd: &Vector,
    gravity: [f64; 3],
) -> Vector {
    let joints: Vec<Joint> = transforms
        .iter()
        .enumerate()
        .map(|(i, transform)| Joint {
            transform: transform.clone(),
            first: transform.map(|e| d(e, [&q[i]])),
            second: transform.map(|e| d(e, [&q[i], &q[i]])),
        })
        .collect();
    let mut world: Vec<Matrix> = Vec::new();
    for transform in transforms {
        world.push(world.last().map_or_else(|| transform.clone(), |before| before * transform));
    }
    let rates: [(&dyn Tensor, &dyn Tensor); 2] = [(q, qd), (qd, qdd)];
    let twice = |e: &Expr| time_derivative(&time_derivative(e, &rates), &rates);
    let world_dd: Vec<Matrix> = world.iter().map(|w| w.map(twice)).collect();
    torques_from(&joints, bodies, &world, &world_dd, gravity)
}

fn torques_from(joints: &[Joint], bodies: &[Body], world: &[Matrix], world_dd: &[Matrix], gravity: [f64; 3]) -> Vector {
    let n = joints.len();
    let like = &world[0][(0, 0)];
    // The sums of equation (16) from the inside out: S_i = J_i Wdd_iT + A_{i+1} S_{i+1}, and for gravity R_i = m_i r_i
    // + A_{i+1} R_{i+1}.
    let mut sums: Vec<(Matrix, Matrix)> = Vec::new();
    for i in (0..n).rev() {
        let inertial = constant_matrix(like, &bodies[i].pseudo_inertia) * world_dd[i].transpose();
        let moment = [bodies[i].centre[0], bodies[i].centre[1], bodies[i].centre[2], 1.0];
        let weight = Matrix::from_fn(4, 1, |k, _| like.constant_like(bodies[i].mass * moment[k]));
        sums.push(match sums.last() {
            None => (inertial, weight),
            Some((s, r)) => (inertial + &joints[i + 1].transform * s, weight + &joints[i + 1].transform * r),
        });
    }
    sums.reverse();
    (0..n)
        .map(|i| {
            let turn = if i == 0 { joints[i].first.clone() } else { &world[i - 1] * &joints[i].first };
            let (s, r) = &sums[i];
            let trace: Expr =
                (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).map(|(a, b)| &turn[(a, b)] * &s[(b, a)]).sum();
            let pull = &turn * r;
            let weight: Expr = (0..3).map(|k| gravity[k] * &pull[(k, 0)]).sum();
            trace - weight
        })
        .collect()
}
