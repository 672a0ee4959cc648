//! The benchmark problems: spherical harmonics (`sh5`), inverse dynamics (`idf6_par`) and its Jacobian
//! (`idj6_par`), space-time gradients (`st6_par`), the bundle adjustment residual (`ba`).

use chainrule::{Derivation, Error, Expr, Function, Vector, vars};
use chainrule_example_manipulator::robot::Twist;
use chainrule_example_spacetime::{chain_torques, objective};
use chainrule_example_spherical_harmonics::spherical_harmonics;

/// All problems of the table, cheapest first within a family.
pub const ALL: &[&str] = &[
    "sh5",
    "sh10",
    "sh15",
    "sh20",
    "idf2_par",
    "idf3_par",
    "idf4_par",
    "idf5_par",
    "idf6_par",
    "idf6_perp",
    "idf6_gen",
    "idj6_par",
    "idj6_perp",
    "idj6_gen",
    "st2_par",
    "st3_par",
    "st4_par",
    "st6_par",
    "st40_par",
    "st6_gen",
    "st12_gen",
    "st18_gen",
    "st40_gen",
    "ba",
];

/// A problem: a function and a request.
pub struct Problem {
    /// Function to be differentiated.
    pub function: Function,
    /// Derivative; `None` if the function itself is the problem.
    pub derivation: Option<Derivation>,
    /// Points at which it is checked, one list for each argument.
    pub points: Vec<Vec<Vec<f64>>>,
}

/// Number of points at which a derivative is checked: rounding errors at one point are accidental.
const POINTS: usize = 8;

/// Returns a reproducible pseudo-random number in (-1, 1): splitmix64.
fn noise(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Returns the problem of this name.
///
/// # Errors
/// Fails if there is no such problem.
pub fn problem(name: &str) -> Result<Problem, Box<dyn std::error::Error>> {
    let unknown = || format!("there is no problem `{name}`; the problems are {}", ALL.join(", "));
    if name == "ba" {
        return Ok(bundle_adjustment()?);
    }
    if let Some(order) = name.strip_prefix("sh") {
        return Ok(harmonics(order.parse().map_err(|_| unknown())?)?);
    }
    let (kind, config) = name.split_once('_').ok_or_else(unknown)?;
    let twist = match config {
        "par" => Twist::Parallel,
        "perp" => Twist::Perpendicular,
        "gen" => Twist::Generic,
        _ => return Err(unknown().into()),
    };
    let family = kind.trim_end_matches(|c: char| c.is_ascii_digit());
    let n: usize = kind[family.len()..].parse().map_err(|_| unknown())?;
    if n == 0 {
        return Err(unknown().into());
    }
    match family {
        "idf" | "idj" => Ok(dynamics(n, twist, family == "idj")?),
        "st" => {
            let function = objective(n, twist)?;
            let derivation = Some(function.gradient().by(&["a"]));
            let mut seed = n as u64;
            let point = |seed: &mut u64| {
                let a = (0..4 * n).map(|_| noise(seed)).collect();
                vec![a, vec![0.55 + 0.35 * noise(seed)]]
            };
            Ok(Problem { function, derivation, points: (0..POINTS).map(|_| point(&mut seed)).collect() })
        }
        _ => Err(unknown().into()),
    }
}

fn harmonics(order: usize) -> Result<Problem, Error> {
    let v = vars("v", 3);
    let y = Vector::new(spherical_harmonics(order, &v[0], &v[1], &v[2])).named("Y");
    let function = Function::new(&format!("sh{order}"), &v, &y)?;
    let mut seed = order as u64;
    let point = |seed: &mut u64| {
        let p: Vec<f64> = (0..3).map(|_| noise(seed)).collect();
        let length = p.iter().map(|x| x * x).sum::<f64>().sqrt();
        vec![p.iter().map(|x| x / length).collect()]
    };
    let points = (0..POINTS).map(|_| point(&mut seed)).collect();
    Ok(Problem { derivation: Some(function.jacobian()), function, points })
}

fn dynamics(n: usize, twist: Twist, jacobian: bool) -> Result<Problem, Error> {
    let (q, qd, qdd) = (vars("q", n), vars("qd", n), vars("qdd", n));
    let tau = chain_torques(n, twist, &q, &qd, &qdd).named("tau");
    let function = Function::new("inverse_dynamics", (&q, &qd, &qdd), &tau)?;
    let mut seed = n as u64;
    let points =
        (0..POINTS).map(|_| (0..3).map(|_| (0..n).map(|_| 1.5 * noise(&mut seed)).collect()).collect()).collect();
    Ok(Problem { derivation: jacobian.then(|| function.jacobian()), function, points })
}

/// Returns the reprojection error of ADBench's bundle adjustment, not at a zero rotation.
fn bundle_adjustment() -> Result<Problem, Error> {
    let (cam, x, w, feat) = (vars("cam", 11), vars("X", 3), vars("w", 1), vars("feat", 2));
    let (rot, centre): (Vec<&Expr>, Vec<&Expr>) =
        ((0..3).map(|i| &cam[i]).collect(), (3..6).map(|i| &cam[i]).collect());
    let (f, x0, rad) = (&cam[6], [&cam[7], &cam[8]], [&cam[9], &cam[10]]);
    let xo: Vector = (0..3).map(|i| &x[i] - centre[i]).collect();
    let sq = rot[0] * rot[0] + rot[1] * rot[1] + rot[2] * rot[2];
    let theta = sq.sqrt();
    let (c, s, inverse) = (theta.cos(), theta.sin(), 1.0 / &theta);
    let u: Vector = rot.iter().map(|r| *r * &inverse).collect();
    let turned = u.cross(&xo);
    let along = u.dot(&xo) * (1.0 - &c);
    let p: Vector = (0..3).map(|i| &xo[i] * &c + &turned[i] * &s + &u[i] * &along).collect();
    let (px, py) = (&p[0] / &p[2], &p[1] / &p[2]);
    let rsq = &px * &px + &py * &py;
    let distortion = 1.0 + rad[0] * &rsq + rad[1] * &rsq * &rsq;
    let error = |p: &Expr, x0: &Expr, feat: &Expr| &w[0] * (p * &distortion * f + x0 - feat);
    let residual = Vector::new(vec![error(&px, x0[0], &feat[0]), error(&py, x0[1], &feat[1])]).named("e");
    let function = Function::new("ba", (&cam, &x, &w, &feat), &residual)?;
    let mut seed = 7;
    let point = |seed: &mut u64| {
        let mut r = |lo: f64, hi: f64| lo + (hi - lo) * (noise(seed) + 1.0) / 2.0;
        let mut cam: Vec<f64> = (0..3).map(|_| r(-0.8, 0.8)).collect();
        cam.extend((0..3).map(|_| r(-1.0, 1.0)));
        cam.push(r(0.8, 1.2));
        cam.extend((0..4).map(|_| r(-0.1, 0.1)));
        let x = vec![r(-1.0, 1.0), r(-1.0, 1.0), r(4.0, 6.0)];
        vec![cam, x, vec![r(0.5, 1.5)], vec![r(-1.0, 1.0), r(-1.0, 1.0)]]
    };
    let points = (0..POINTS).map(|_| point(&mut seed)).collect();
    Ok(Problem { derivation: Some(function.jacobian().by(&["cam", "X", "w"])), function, points })
}
