//! The space-time gradient against forward mode and differences in extended precision, and both forms of the torque
//! function against each other.

use chainrule::{Function, Vector, check, vars};
use chainrule_example_manipulator::robot::{Twist, benchmark_links};
use chainrule_example_manipulator::{Body, torques_by_time_derivatives};
use chainrule_example_spacetime::{GRAVITY, chain_torques, objective};

#[test]
fn gradients_agree_with_their_references() {
    for twist in [Twist::Parallel, Twist::Perpendicular, Twist::Generic] {
        let f = objective(3, twist).unwrap();
        let settings = check::Settings { points: 2, range: (-1.0, 1.0), seed: 5 };
        let agreement = check::compare(&f, &f.gradient().by(&["a"]), &settings).unwrap();
        assert_eq!(agreement.elements, 12);
        assert!(agreement.from_forward <= 1e-12 && agreement.from_differences <= 1e-30, "{twist:?}: {agreement}");
    }
}

#[test]
fn time_derivatives_of_expressions_equal_the_product_rule_by_hand() {
    for twist in [Twist::Parallel, Twist::Perpendicular, Twist::Generic] {
        let n = 4;
        let (q, qd, qdd) = (vars("q", n), vars("qd", n), vars("qdd", n));
        let by_hand: Vector = chain_torques(n, twist, &q, &qd, &qdd).named("tau");
        let links = benchmark_links(n, twist);
        let transforms: Vec<_> = links.iter().zip(&q).map(|(link, q)| link.joint(q).transform).collect();
        let bodies: Vec<Body> = links.into_iter().map(|link| link.body).collect();
        let derived = torques_by_time_derivatives(&transforms, &bodies, &q, &qd, &qdd, GRAVITY).named("tau");
        let [a, b] = [by_hand, derived].map(|tau| {
            let f = Function::new("torques", (&q, &qd, &qdd), &tau).unwrap().compile().unwrap();
            f.eval(&[&[0.3, -0.7, 1.1, 0.2], &[0.5, 0.4, -0.3, 0.9], &[-0.2, 0.8, 0.1, -0.6]]).unwrap().remove(0)
        });
        for (x, y) in a.iter().zip(&b) {
            assert!((x - y).abs() <= 1e-12 * x.abs().max(1.0), "{twist:?}: {a:?} is not {b:?}");
        }
    }
}
