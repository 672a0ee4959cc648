//! Recursive Newton-Euler on numbers: an independent computation of the torques, as a check.

use crate::robot::{Link, Transform};

type V = [f64; 3];

fn add(a: V, b: V) -> V {
    std::array::from_fn(|i| a[i] + b[i])
}

fn scale(k: f64, a: V) -> V {
    a.map(|x| k * x)
}

fn cross(a: V, b: V) -> V {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: V, b: V) -> f64 {
    (0..3).map(|i| a[i] * b[i]).sum()
}

/// Applies the inverse rotation of a transform: from the previous frame to the link's frame.
fn into_link(t: &Transform, v: V) -> V {
    std::array::from_fn(|j| (0..3).map(|i| t[i][j] * v[i]).sum())
}

fn out_of_link(t: &Transform, v: V) -> V {
    std::array::from_fn(|i| (0..3).map(|j| t[i][j] * v[j]).sum())
}

/// Returns the transform of a link's frame to the previous frame at coordinate `q`.
fn transform(link: &Link, q: f64) -> Transform {
    let [x, y, z] = link.axis;
    let (s, c) = q.sin_cos();
    let v = 1.0 - c;
    let rotation = [
        [c + x * x * v, x * y * v - z * s, x * z * v + y * s, 0.0],
        [y * x * v + z * s, c + y * y * v, y * z * v - x * s, 0.0],
        [z * x * v - y * s, z * y * v + x * s, c + z * z * v, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ];
    crate::robot::product(&link.origin, &rotation)
}

/// Returns the torques of a chain at joint positions `q`, velocities `qd` and accelerations `qdd`.
#[must_use]
pub fn torques(links: &[Link], q: &[f64], qd: &[f64], qdd: &[f64], gravity: V) -> Vec<f64> {
    let n = links.len();
    let transforms: Vec<Transform> = links.iter().zip(q).map(|(link, q)| transform(link, *q)).collect();
    // Angular velocity, angular and linear acceleration in each link's own frame. Gravity is an acceleration of the
    // base.
    let (mut w, mut wd, mut a) = ([0.0; 3], [0.0; 3], scale(-1.0, gravity));
    let (mut forces, mut moments) = (Vec::new(), Vec::new());
    for i in 0..n {
        let t = &transforms[i];
        let p = [t[0][3], t[1][3], t[2][3]];
        a = into_link(t, add(a, add(cross(wd, p), cross(w, cross(w, p)))));
        let axis = links[i].axis;
        let (w_before, wd_before) = (into_link(t, w), into_link(t, wd));
        w = add(w_before, scale(qd[i], axis));
        wd = add(add(wd_before, scale(qdd[i], axis)), cross(w_before, scale(qd[i], axis)));
        let body = &links[i].body;
        let c = body.centre;
        let at_centre = add(a, add(cross(wd, c), cross(w, cross(w, c))));
        let force = scale(body.mass, at_centre);
        // The inertia about the centre, from the second moments about the origin.
        let s = |i: usize, j: usize| body.pseudo_inertia[i][j] - body.mass * c[i] * c[j];
        let trace = s(0, 0) + s(1, 1) + s(2, 2);
        let inertia =
            |v: V| -> V { std::array::from_fn(|i| trace * v[i] - (0..3).map(|j| s(i, j) * v[j]).sum::<f64>()) };
        let moment = add(add(inertia(wd), cross(w, inertia(w))), cross(c, force));
        forces.push(force);
        moments.push(moment);
    }
    let mut tau = vec![0.0; n];
    let (mut force, mut moment) = ([0.0; 3], [0.0; 3]);
    for i in (0..n).rev() {
        if i + 1 < n {
            let t = &transforms[i + 1];
            let carried = out_of_link(t, force);
            moment = add(out_of_link(t, moment), cross([t[0][3], t[1][3], t[2][3]], carried));
            force = carried;
        }
        force = add(force, forces[i]);
        moment = add(moment, moments[i]);
        tau[i] = dot(links[i].axis, moment);
    }
    tau
}
