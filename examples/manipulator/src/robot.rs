//! Robots: serial chains of revolute joints, from URDF files or from Denavit-Hartenberg numbers.

use crate::dynamics::{Body, Joint, constant_matrix};
use chainrule::{Expr, Matrix};

/// A 4x4 matrix of numbers, by rows.
pub type Transform = [[f64; 4]; 4];

/// A link of a chain: the origin of its joint on the previous link, the joint's axis, and its mass.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name of the joint in the file.
    pub name: String,
    /// Transform from the joint's frame at q = 0 to the frame of the previous link.
    pub origin: Transform,
    /// Axis of the joint in its own frame; of length 1.
    pub axis: [f64; 3],
    /// The mass distribution in the joint's frame.
    pub body: Body,
}

/// Returns the product of two transforms.
#[must_use]
pub fn product(a: &Transform, b: &Transform) -> Transform {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..4).map(|k| a[i][k] * b[k][j]).sum()))
}

fn transpose(a: &Transform) -> Transform {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i]))
}

/// Returns the rigid motion of a URDF `origin`: roll, pitch and yaw about fixed axes, then a translation.
#[must_use]
pub fn rigid(xyz: [f64; 3], rpy: [f64; 3]) -> Transform {
    // Files give angles as decimals of multiples of pi/2; their sines and cosines are meant to be 0 and 1.
    let clean = |v: f64| {
        if v.abs() < 1e-9 {
            0.0
        } else if (v.abs() - 1.0).abs() < 1e-9 {
            v.signum()
        } else {
            v
        }
    };
    let [(sr, cr), (sp, cp), (sy, cy)] = rpy.map(|a| (clean(a.sin()), clean(a.cos())));
    [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr, xyz[0]],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr, xyz[1]],
        [-sp, cp * sr, cp * cr, xyz[2]],
        [0.0, 0.0, 0.0, 1.0],
    ]
}

impl Body {
    /// Returns the body of this mass, centre and inertia about the centre (a symmetric 3x3 tensor), all in one frame.
    #[must_use]
    pub fn new(mass: f64, centre: [f64; 3], inertia: [[f64; 3]; 3]) -> Self {
        // The second moments are S = tr(I)/2 - I about the centre, plus m c cT.
        let half_trace = (inertia[0][0] + inertia[1][1] + inertia[2][2]) / 2.0;
        let mut j = [[0.0; 4]; 4];
        for a in 0..3 {
            for b in 0..3 {
                let diagonal = if a == b { half_trace } else { 0.0 };
                j[a][b] = diagonal - inertia[a][b] + mass * centre[a] * centre[b];
            }
            j[a][3] = mass * centre[a];
            j[3][a] = mass * centre[a];
        }
        j[3][3] = mass;
        Self { mass, centre, pseudo_inertia: j }
    }

    /// Returns a body without mass.
    #[must_use]
    pub fn nothing() -> Self {
        Self { mass: 0.0, centre: [0.0; 3], pseudo_inertia: [[0.0; 4]; 4] }
    }

    /// Returns the same body in another frame: `transform` maps its frame to the other.
    #[must_use]
    pub fn moved(&self, transform: &Transform) -> Self {
        Self::from_moments(product(&product(transform, &self.pseudo_inertia), &transpose(transform)))
    }

    /// Returns both bodies, given in one frame, as one.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let sum = |i: usize| std::array::from_fn(|j| self.pseudo_inertia[i][j] + other.pseudo_inertia[i][j]);
        Self::from_moments(std::array::from_fn(sum))
    }

    fn from_moments(moments: Transform) -> Self {
        // Symmetric to the last bit, whatever the rounding of the products.
        let pseudo_inertia: Transform =
            std::array::from_fn(|i| std::array::from_fn(|j| if i <= j { moments[i][j] } else { moments[j][i] }));
        let mass = pseudo_inertia[3][3];
        let centre = std::array::from_fn(|k| if mass == 0.0 { 0.0 } else { pseudo_inertia[k][3] / mass });
        Self { mass, centre, pseudo_inertia }
    }
}

impl Link {
    /// Returns the joint at coordinate `q`: A = origin * rotation about the axis. Its derivatives by q are A K and A K
    /// K, where K is the axis as a cross product.
    #[must_use]
    pub fn joint(&self, q: &Expr) -> Joint {
        let [x, y, z] = self.axis;
        let cross = [[0.0, -z, y, 0.0], [z, 0.0, -x, 0.0], [-y, x, 0.0, 0.0], [0.0; 4]];
        let square = product(&cross, &cross);
        let (s, c) = (q.sin(), q.cos());
        // Rodrigues: R = I + sin q K + (1 - cos q) K^2, with the constant parts added up first.
        let rotation = Matrix::from_fn(4, 4, |i, j| {
            let unit = if i == j { 1.0 } else { 0.0 };
            (unit + square[i][j]) + cross[i][j] * &s - square[i][j] * &c
        });
        let transform = constant_matrix(q, &self.origin) * rotation;
        let first = &transform * constant_matrix(q, &cross);
        let second = &first * constant_matrix(q, &cross);
        Joint { transform, first, second }
    }
}

/// Returns the chain of `n` links with the constants of the benchmark problems, by Denavit-Hartenberg parameters:
/// length, offset, cosine and sine of the twist, and the mass distribution of each link.
#[must_use]
pub fn benchmark_links(n: usize, twist: Twist) -> Vec<BenchmarkLink> {
    (0..n).map(|i| benchmark_link(i, twist)).collect()
}

/// Directions of the axes of neighbouring joints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Twist {
    /// All parallel.
    Parallel,
    /// Each perpendicular to the previous one.
    Perpendicular,
    /// At different angles.
    Generic,
}

/// A link by its Denavit-Hartenberg parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkLink {
    length: f64,
    offset: f64,
    cos_twist: f64,
    sin_twist: f64,
    /// The mass distribution.
    pub body: Body,
}

fn benchmark_link(i: usize, twist: Twist) -> BenchmarkLink {
    let step = |factor: usize, modulus: usize| ((factor * i) % modulus) as f64;
    let length = 0.30 + 0.05 * step(7, 5);
    let (cos_twist, sin_twist) = match twist {
        Twist::Parallel => (1.0, 0.0),
        Twist::Perpendicular => (0.0, 1.0),
        Twist::Generic => {
            let angle: f64 = 0.35 + 0.21 * step(5, 7);
            (angle.cos(), angle.sin())
        }
    };
    let mass = 1.0 + 0.25 * step(11, 6);
    let centre = [-0.45 * length + 0.011 * i as f64, 0.02 + 0.003 * step(2, 5), 0.03 + 0.004 * step(3, 7)];
    let s = mass * 0.01;
    let spread = [
        [s * (1.0 + 0.1 * step(1, 3)), s * 0.11, s * 0.07],
        [s * 0.11, s * (0.6 + 0.05 * step(1, 4)), s * 0.05],
        [s * 0.07, s * 0.05, s * (0.5 + 0.07 * step(1, 5))],
    ];
    let mut moments = [[0.0; 4]; 4];
    for a in 0..3 {
        for b in 0..3 {
            moments[a][b] = spread[a][b] + mass * centre[a] * centre[b];
        }
        moments[a][3] = mass * centre[a];
        moments[3][a] = mass * centre[a];
    }
    moments[3][3] = mass;
    let mut body = Body::from_moments(moments);
    body.centre = centre;
    BenchmarkLink { length, offset: 0.10 + 0.03 * step(3, 4), cos_twist, sin_twist, body }
}

impl BenchmarkLink {
    /// Returns the joint at coordinate `q`. Its axis is the z axis of the previous frame, so the derivatives are the
    /// first two rows rotated by a right angle.
    #[must_use]
    pub fn joint(&self, q: &Expr) -> Joint {
        let (c, s) = (q.cos(), q.sin());
        let (a, d, ca, sa) = (self.length, self.offset, self.cos_twist, self.sin_twist);
        let number = |v: f64| q.constant_like(v);
        let rows = vec![
            vec![c.clone(), -ca * &s, sa * &s, a * &c],
            vec![s.clone(), ca * &c, -sa * &c, a * &s],
            vec![number(0.0), number(sa), number(ca), number(d)],
            vec![number(0.0), number(0.0), number(0.0), number(1.0)],
        ];
        let zeros = || vec![number(0.0), number(0.0), number(0.0), number(0.0)];
        let negated = |row: &[Expr]| row.iter().map(|e| -e).collect::<Vec<_>>();
        let first = Matrix::new(vec![negated(&rows[1]), rows[0].clone(), zeros(), zeros()]);
        let second = Matrix::new(vec![negated(&rows[0]), negated(&rows[1]), zeros(), zeros()]);
        Joint { transform: Matrix::new(rows), first, second }
    }
}
