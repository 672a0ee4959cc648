//! Real robots: torques against Newton-Euler, the Jacobian against forward mode and differences in extended precision,
//! emitted C against the interpreter.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

use chainrule::check;
use chainrule_example_manipulator::{newton_euler, robot::Link, torque_function, urdf};
use std::path::{Path, PathBuf};
use std::process::Command;

const GRAVITY: [f64; 3] = [0.0, 0.0, -9.81];

fn robots() -> Vec<(&'static str, Vec<Link>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/robots");
    if !folder.exists() {
        println!("skipped: {} is not there", folder.display());
        return Vec::new();
    }
    [("panda.urdf", 7), ("ur5.urdf", 6)]
        .map(|(file, joints)| {
            let links = urdf::load(&folder.join(file)).unwrap();
            assert_eq!(links.len(), joints);
            (file, links)
        })
        .to_vec()
}

fn point(n: usize, k: f64) -> Vec<f64> {
    (0..n).map(|i| (k + 1.7 * i as f64).sin()).collect()
}

#[test]
fn torques_equal_newton_euler() {
    for (file, links) in robots() {
        let n = links.len();
        let f = torque_function(&links, GRAVITY).unwrap().compile().unwrap();
        for k in 0..20 {
            let k = f64::from(k);
            let (q, qd, qdd) = (point(n, k), point(n, k + 0.3), point(n, 2.0 * k));
            let tau = &f.eval(&[&q, &qd, &qdd]).unwrap()[0];
            let check = newton_euler::torques(&links, &q, &qd, &qdd, GRAVITY);
            let scale = check.iter().fold(0.0_f64, |m, t| m.max(t.abs()));
            for (a, b) in tau.iter().zip(&check) {
                assert!((a - b).abs() <= 1e-12 * scale, "{file}: {tau:?} is not {check:?}");
            }
        }
    }
}

#[test]
fn jacobians_agree_with_their_references() {
    for (file, links) in robots() {
        let f = torque_function(&links, GRAVITY).unwrap();
        let settings = check::Settings { points: 2, range: (-1.5, 1.5), seed: 1 };
        let agreement = check::compare(&f, &f.jacobian(), &settings).unwrap();
        assert_eq!(agreement.elements, links.len() * 3 * links.len());
        assert!(agreement.from_forward <= 1e-12, "{file}: {agreement}");
        assert!(agreement.from_differences <= 1e-30, "{file}: {agreement}");
    }
}

#[test]
fn emitted_c_equals_the_interpreter() {
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("skipped: there is no gcc");
        return;
    }
    for (file, links) in robots() {
        let n = links.len();
        let jacobian =
            torque_function(&links, GRAVITY).unwrap().jacobian().with_value().function().unwrap().named("robot");
        let point = (point(n, 0.4), point(n, 1.1), point(n, 2.3));
        let expected: Vec<f64> =
            jacobian.compile().unwrap().eval(&[&point.0, &point.1, &point.2]).unwrap().into_iter().flatten().collect();

        let folder = tempfile::tempdir().unwrap();
        let c = jacobian.emit_c().unwrap();
        std::fs::write(folder.path().join("robot.h"), &c.header).unwrap();
        std::fs::write(folder.path().join("robot.c"), &c.source).unwrap();
        std::fs::write(
            folder.path().join("main.c"),
            main_program(n, &point, jacobian.outputs().len(), c.header.contains("work")),
        )
        .unwrap();
        let program: PathBuf = folder.path().join("robot");
        let gcc = Command::new("gcc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
            .arg(&program)
            .args(["robot.c", "main.c", "-lm"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
        let output = Command::new(&program).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let values: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!(values.len(), expected.len());
        let scale = expected.iter().fold(0.0_f64, |m, t| m.max(t.abs()));
        // Sine and cosine differ by at most a unit in the last place; the rest is the same code.
        for (a, b) in values.iter().zip(&expected) {
            assert!((a - b).abs() <= 1e-14 * scale, "{file}: {a} is not {b}");
        }
    }
}

/// Returns a C program that calls the function at one point and prints its results.
fn main_program(n: usize, point: &(Vec<f64>, Vec<f64>, Vec<f64>), outputs: usize, work: bool) -> String {
    let list = |v: &[f64]| v.iter().map(|x| format!("{x:e}")).collect::<Vec<_>>().join(", ");
    let sizes: Vec<usize> = std::iter::once(n).chain(std::iter::repeat_n(n * n, outputs - 1)).collect();
    let declare: String = sizes.iter().enumerate().map(|(i, s)| format!("    static double y{i}[{s}];\n")).collect();
    let pass: String = (0..outputs).map(|i| format!(", y{i}")).collect();
    let print: String = sizes
        .iter()
        .enumerate()
        .map(|(i, s)| format!("    for (i = 0; i < {s}; i++) printf(\"%.17g\\n\", y{i}[i]);\n"))
        .collect();
    let (memory, extra) = if work { ("    static double work[ROBOT_WORK_SIZE];\n", ", work") } else { ("", "") };
    format!(
        "#include <stdio.h>\n#include \"robot.h\"\nint main(void) {{\n    static const double q[] = {{{}}};\n    \
         static const double qd[] = {{{}}};\n    static const double qdd[] = {{{}}};\n{declare}{memory}    int i;\n    \
         if (robot(q, qd, qdd{pass}{extra}) != 0) return 1;\n{print}    return 0;\n}}\n",
        list(&point.0),
        list(&point.1),
        list(&point.2)
    )
}
