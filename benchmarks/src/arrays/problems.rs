//! The problems: F~ programs, their arguments, the objective by hand.

use crate::random::Random;
use chainrule::{Derivation, Error, Function, Module, Value};
use chainrule_example_adbench::{ba, hand, lstm};
use chainrule_example_micro as micro;

/// Makes a function, and what computes its derivatives, with so many checkpoints for each loop where a number is given.
type Make = fn(Option<u32>) -> Result<(Function, Function), Error>;

/// A problem.
pub struct Problem {
    /// Its name.
    pub name: String,
    /// The function, and what computes its derivatives, from the text.
    pub make: Make,
    /// Where.
    pub args: Vec<Value<f64>>,
    /// C++ of the objective.
    pub by_hand: &'static str,
    /// Arrays for it.
    pub by_hand_arguments: Vec<Vec<f64>>,
    /// Integers for it.
    pub by_hand_integers: Vec<i64>,
    /// The best ratio of derivative to objective that is published for a problem of this kind.
    pub published: Option<f64>,
}

/// All problems, smallest first. The numbers are made up; the sizes are those of ADBench's files.
#[must_use]
pub fn all() -> Vec<Problem> {
    let gmms = [(2, 5), (10, 25), (20, 50), (64, 25)].map(|(d, k)| gmm(1000, d, k));
    let bundles = [(49, 7776, 31_843), (372, 47_423, 204_472)].map(|(n, m, p)| bundle(n, m, p));
    let networks = [(2, 1024), (4, 4096)].map(|(l, c)| network(l, c, 14));
    let hands = [(100, false), (800, false), (800, true)].map(|(n, complicated)| fitted(n, complicated));
    let small = [least_squares(16, 4096), exponentials(1000), exponentials(100_000), equations(100, 100), clusters()];
    let matrices = [10, 50, 100].into_iter().flat_map(|n| (0..4).map(move |which| algebra(n, which)));
    gmms.into_iter().chain(bundles).chain(networks).chain(hands).chain(small).chain(matrices).collect()
}

fn rows(random: &mut Random, n: usize, m: usize) -> Vec<Vec<f64>> {
    (0..n).map(|_| (0..m).map(|_| random.below(2000) as f64 / 1000.0 - 1.0).collect()).collect()
}

fn gmm(n: usize, d: usize, k: usize) -> Problem {
    let random = &mut Random::new();
    let alphas = rows(random, 1, k).remove(0);
    let means = rows(random, k, d);
    let icf = rows(random, k, d * (d + 1) / 2);
    let x = rows(random, n, d);
    let (gamma, m) = (1.0, 0);
    Problem {
        name: format!("gmm_d{d}_K{k}"),
        make: |_| {
            let f = Module::from_text("gmm.ft", chainrule_example_gmm::SOURCE)?.function("gmm")?;
            let derivative = f.gradient().by(&["alphas", "means", "icf"]).with_value().function()?;
            Ok((f, derivative))
        },
        by_hand: include_str!("gmm.cpp"),
        by_hand_arguments: vec![alphas.clone(), means.concat(), icf.concat(), x.concat(), vec![gamma]],
        by_hand_integers: vec![k as i64, d as i64, n as i64, m],
        args: vec![alphas.into(), means.into(), icf.into(), x.into(), gamma.into(), m.into()],
        published: Some(1.7),
    }
}

fn bundle(n: usize, m: usize, p: usize) -> Problem {
    let random = &mut Random::new();
    let mut points = rows(random, m, 3);
    points.iter_mut().for_each(|point| point[2] += 5.0);
    let problem = ba::Problem {
        cameras: rows(random, n, 11),
        points,
        weights: rows(random, 1, p).remove(0),
        seen: rows(random, p, 2),
        observations: (0..p).map(|i| (i % n, i % m)).collect(),
    };
    let index = |of: fn(&(usize, usize)) -> usize| problem.observations.iter().map(move |o| of(o) as i64);
    let sizes = [n as i64, m as i64, p as i64];
    Problem {
        name: format!("ba_p{p}"),
        make: |_| {
            let module = Module::from_text("ba.ft", ba::SOURCE)?;
            let f = module.function("ba")?;
            let derivative = f.sparse_jacobian(&["camera", "x", "w"])?.values_program();
            Ok((f, derivative))
        },
        by_hand: include_str!("ba.cpp"),
        by_hand_arguments: vec![
            problem.cameras.concat(),
            problem.points.concat(),
            problem.weights.clone(),
            problem.seen.concat(),
        ],
        by_hand_integers: sizes.into_iter().chain(index(|o| o.0)).chain(index(|o| o.1)).collect(),
        args: problem.args(),
        published: Some(6.6),
    }
}

fn network(l: usize, c: usize, b: usize) -> Problem {
    let random = &mut Random::new();
    let problem = lstm::Problem {
        main: rows(random, 2 * l, 4 * b),
        extra: rows(random, 3, b),
        state: rows(random, 2 * l, b),
        text: rows(random, c, b),
    };
    Problem {
        name: format!("lstm_l{l}_c{c}"),
        make: |checkpoints| {
            let f = Module::from_text("lstm.ft", lstm::SOURCE)?.function("lstm")?;
            let derivative = with(f.gradient().by(&["main", "extra"]).with_value(), checkpoints).function()?;
            Ok((f, derivative))
        },
        by_hand: include_str!("lstm.cpp"),
        by_hand_arguments: [&problem.main, &problem.extra, &problem.state, &problem.text]
            .map(|rows| rows.concat())
            .to_vec(),
        by_hand_integers: vec![l as i64, b as i64, c as i64],
        args: problem.args(),
        published: Some(4.5),
    }
}

/// Indices below `below`.
fn indices(random: &mut Random, n: usize, m: usize, below: usize) -> Vec<Vec<i64>> {
    (0..n).map(|_| (0..m).map(|_| random.below(below) as i64).collect()).collect()
}

/// A hand of ADBench's size.
fn fitted(n: usize, complicated: bool) -> Problem {
    let random = &mut Random::new();
    let (v, t) = (544, 1084);
    let transforms = |random: &mut Random| (0..22).map(|_| rows(random, 3, 4)).collect::<Vec<_>>();
    // Half of the vertices are drawn by one bone, as in ADBench's model, the others by another one of the same finger, too.
    let bones = |random: &mut Random| {
        let (finger, bone) = (random.below(5), random.below(4));
        [bone, (bone + 1) % 4].map(|i| (1 + 4 * finger + i) as i64).into_iter().chain([0, 0]).collect::<Vec<i64>>()
    };
    let weights = |random: &mut Random| {
        let weight = if random.below(2) == 0 { 1.0 } else { random.below(1000) as f64 / 1000.0 };
        vec![weight, 1.0 - weight, 0.0, 0.0]
    };
    let model = hand::Model {
        relative: transforms(random),
        rest: transforms(random),
        vertices: rows(random, v, 3),
        bones: (0..v).map(|_| bones(random)).collect(),
        weights: (0..v).map(|_| weights(random)).collect(),
        triangles: indices(random, t, 3, v),
    };
    let problem = hand::Problem {
        theta: rows(random, 1, 26).remove(0),
        seen: rows(random, n, 3),
        at: indices(random, 1, n, if complicated { t } else { v }).remove(0),
        coordinates: complicated.then(|| rows(random, n, 2)),
        model,
    };
    let model = &problem.model;
    let mut integers = vec![v as i64, n as i64, if complicated { t as i64 } else { 0 }];
    integers.extend(model.bones.concat().iter().chain(&problem.at));
    integers.extend(model.triangles.concat());
    Problem {
        name: if complicated { format!("hand_on_t_c{n}") } else { format!("hand_c{n}") },
        make: if complicated { |_| hand::functions(true) } else { |_| hand::functions(false) },
        by_hand: include_str!("hand.cpp"),
        by_hand_arguments: vec![
            problem.theta.clone(),
            model.relative.concat().concat(),
            model.rest.concat().concat(),
            model.vertices.concat(),
            model.weights.concat(),
            problem.seen.concat(),
            problem.coordinates.clone().unwrap_or_default().concat(),
        ],
        by_hand_integers: integers,
        args: problem.args(),
        published: Some(6.0),
    }
}

fn least_squares(m: usize, n: usize) -> Problem {
    let x = rows(&mut Random::new(), 1, m).remove(0);
    Problem {
        name: format!("llsq_m{m}_n{n}"),
        make: |checkpoints| with_gradient(micro::LLSQ, "llsq", "x", checkpoints),
        by_hand: include_str!("llsq.cpp"),
        by_hand_arguments: vec![x.clone()],
        by_hand_integers: vec![m as i64, n as i64],
        args: vec![x.into(), (n as i64).into()],
        published: None,
    }
}

fn exponentials(n: usize) -> Problem {
    let x = rows(&mut Random::new(), 1, n).remove(0);
    Problem {
        name: format!("lse_n{n}"),
        make: |checkpoints| with_gradient(micro::LSE, "lse", "x", checkpoints),
        by_hand: include_str!("lse.cpp"),
        by_hand_arguments: vec![x.clone()],
        by_hand_integers: vec![n as i64],
        args: vec![x.into()],
        published: None,
    }
}

fn equations(n: usize, s: usize) -> Problem {
    // Near 1: smaller ones make the last element vanish.
    let x: Vec<f64> = rows(&mut Random::new(), 1, n).remove(0).iter().map(|x| 1.0 + x / 8.0).collect();
    Problem {
        name: format!("ode_n{n}_s{s}"),
        make: |checkpoints| with_gradient(micro::ODE, "odeLast", "x", checkpoints),
        by_hand: include_str!("ode.cpp"),
        by_hand_arguments: vec![x.clone()],
        by_hand_integers: vec![n as i64, s as i64],
        args: vec![x.into(), (s as i64).into()],
        published: None,
    }
}

fn clusters() -> Problem {
    let random = &mut Random::new();
    let (n, k, d) = (10_000, 10, 8);
    let (points, centroids) = (rows(random, n, d), rows(random, k, d));
    Problem {
        name: format!("kmeans_n{n}"),
        make: |_| {
            let module = Module::from_text("kmeans.ft", micro::KMEANS)?;
            Ok((module.function("cost")?, module.function("direction")?))
        },
        by_hand: include_str!("kmeans.cpp"),
        by_hand_arguments: vec![points.concat(), centroids.concat()],
        by_hand_integers: vec![n as i64, k as i64, d as i64],
        args: vec![points.into(), centroids.into()],
        published: None,
    }
}

/// Linear algebra of the library, of a positive definite matrix.
fn algebra(n: usize, which: usize) -> Problem {
    let random = &mut Random::new();
    let b = rows(random, n, n);
    let product = |i: usize, j: usize| b[i].iter().zip(&b[j]).map(|(x, y)| x * y).sum::<f64>();
    let entry = |i: usize, j: usize| product(i, j) + if i == j { 1.0 } else { 0.0 };
    let a: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
    let x = rows(random, 1, n).remove(0);
    let args: Vec<Value<f64>> = match which {
        0 | 2 => vec![a.clone().into(), x.clone().into()],
        _ => vec![a.clone().into()],
    };
    let make: [Make; 4] = [
        |n| with_gradient(include_str!("matrices.ft"), "gaussian", "a", n),
        |n| with_gradient(include_str!("matrices.ft"), "volume", "a", n),
        |n| with_gradient(include_str!("matrices.ft"), "system", "a", n),
        |n| with_gradient(include_str!("matrices.ft"), "factor", "a", n),
    ];
    Problem {
        name: format!("{}_n{n}", ["gaussian", "logdet", "solve", "cholesky"][which]),
        make: make[which],
        by_hand: include_str!("matrices.cpp"),
        by_hand_arguments: vec![a.concat(), x],
        by_hand_integers: vec![n as i64, which as i64],
        args,
        published: None,
    }
}

/// A function of a program, and its gradient with its value.
fn with_gradient(source: &str, name: &str, by: &str, checkpoints: Option<u32>) -> Result<(Function, Function), Error> {
    let f = Module::from_text(&format!("{name}.ft"), source)?.function(name)?;
    let derivative = with(f.gradient().by(&[by]).with_value(), checkpoints).function()?;
    Ok((f, derivative))
}

fn with(derivation: Derivation, checkpoints: Option<u32>) -> Derivation {
    match checkpoints {
        Some(n) => derivation.checkpoints(n),
        None => derivation,
    }
}
