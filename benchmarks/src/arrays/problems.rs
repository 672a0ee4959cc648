//! The problems: F~ programs, their arguments, the objective by hand.

use chainrule::{Derivation, Error, Function, Module, Value};
use chainrule_cases::Marsaglia as Random;
use chainrule_example_adbench::{ba, hand, lstm};
use chainrule_example_micro as micro;

/// Makes a function and its derivatives, with the given number of checkpoints for each loop, if any.
type Make = fn(Option<u32>) -> Result<(Function, Function), Error>;

/// A problem.
pub struct Problem {
    /// Its name.
    pub name: String,
    /// Makes the function and its derivatives from the text.
    pub make: Make,
    /// Function to be computed together with the derivatives, at the same arguments.
    pub beside: Option<fn() -> Result<Function, Error>>,
    /// Arguments.
    pub args: Vec<Value<f64>>,
    /// C++ source of the objective.
    pub by_hand: &'static str,
    /// Array arguments of the C++ objective.
    pub by_hand_arguments: Vec<Vec<f64>>,
    /// Integer arguments of the C++ objective.
    pub by_hand_integers: Vec<i64>,
    /// Best published ratio of derivative to objective for a problem of this kind.
    pub published: Option<f64>,
}

/// Returns all problems, smallest first. The numbers are synthetic; the sizes are those of ADBench's files.
#[must_use]
pub fn all() -> Vec<Problem> {
    let gmms = [(2, 5), (10, 25), (20, 50), (64, 25)].map(|(d, k)| gmm(1000, d, k));
    let bundles = [(49, 7776, 31_843), (372, 47_423, 204_472)].map(|(n, m, p)| bundle(n, m, p));
    let networks = [(2, 1024), (4, 4096)].map(|(l, c)| network(l, c, 14));
    let hands = [(100, false), (800, false), (800, true)].map(|(n, complicated)| fitted(n, complicated));
    let hands = hands.into_iter().chain([100, 800].map(derived));
    let small = [
        least_squares(16, 1024),
        least_squares(128, 4096),
        exponentials(1000),
        exponentials(100_000),
        equations(10, 100),
        equations(100, 100),
        equations(1000, 100),
        clusters(1000, 10),
        clusters(10_000, 10),
        clusters(10_000, 100),
    ];
    let micro = [100, 10_000].into_iter().flat_map(|n| [scalar(0, n), scalar(1, n), scalar(3, n)]);
    let micro = micro.chain([100, 1000].map(|n| scalar(2, n)));
    let micro = micro.chain([(20, 5, 30), (200, 10, 300)].map(|(n, k, m)| factorisation(n, k, m)));
    let micro = micro.chain([projection()]).chain([5, 10].map(determinant));
    let matrices = [10, 50, 100].into_iter().flat_map(|n| (0..4).map(move |which| algebra(n, which)));
    let pairs = [100, 1000].into_iter().flat_map(|n| (0..2).map(move |which| pairs(n, which)));
    let products = [50, 200, 800].map(product);
    let first = gmms.into_iter().chain(bundles).chain(networks).chain(hands);
    let networks = [(100, 50, 30), (256, 256, 256)].map(|(n, h, k)| layer(n, h, k));
    let networks = networks.into_iter().chain([(64, 16), (512, 64)].map(|(n, d)| attention(n, d)));
    let networks = networks.chain([20, 200].map(convolution));
    first.chain(small).chain(micro).chain(matrices).chain(pairs).chain(products).chain(networks).collect()
}

fn rows(random: &mut Random, n: usize, m: usize) -> Vec<Vec<f64>> {
    (0..n).map(|_| (0..m).map(|_| random.below(2000) as f64 / 1000.0 - 1.0).collect()).collect()
}

fn gmm(n: usize, d: usize, k: usize) -> Problem {
    let random = &mut Random::default();
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
        beside: None,
        by_hand: include_str!("by_hand/gmm.cpp"),
        by_hand_arguments: vec![alphas.clone(), means.concat(), icf.concat(), x.concat(), vec![gamma]],
        by_hand_integers: vec![k as i64, d as i64, n as i64, m],
        args: vec![alphas.into(), means.into(), icf.into(), x.into(), gamma.into(), m.into()],
        published: Some(1.7),
    }
}

fn bundle(n: usize, m: usize, p: usize) -> Problem {
    let random = &mut Random::default();
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
        // Rows and columns are written with the values, as the compared tools do.
        beside: Some(|| Module::from_text("ba.ft", ba::SOURCE)?.function("baPattern")),
        by_hand: include_str!("by_hand/ba.cpp"),
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
    let random = &mut Random::default();
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
        beside: None,
        by_hand: include_str!("by_hand/lstm.cpp"),
        by_hand_arguments: [&problem.main, &problem.extra, &problem.state, &problem.text]
            .map(|rows| rows.concat())
            .to_vec(),
        by_hand_integers: vec![l as i64, b as i64, c as i64],
        args: problem.args(),
        published: Some(4.5),
    }
}

/// Returns indices below `below`.
fn indices(random: &mut Random, n: usize, m: usize, below: usize) -> Vec<Vec<i64>> {
    (0..n).map(|_| (0..m).map(|_| random.below(below) as i64).collect()).collect()
}

/// Returns a hand of ADBench's size.
fn fitted(n: usize, complicated: bool) -> Problem {
    let random = &mut Random::default();
    let (v, t) = (544, 1084);
    let transforms = |random: &mut Random| (0..22).map(|_| rows(random, 3, 4)).collect::<Vec<_>>();
    // Half of the vertices belong to one bone, as in ADBench's model, the others also to another one of the same
    // finger.
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
        beside: None,
        by_hand: include_str!("by_hand/hand.cpp"),
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

/// As [`fitted`], with the whole Jacobian derived from the objective instead of assembled from parts by hand.
fn derived(n: usize) -> Problem {
    let make: Make = |_| {
        let (f, _) = hand::functions(false)?;
        let jacobian = f.jacobian().by(&["theta"]).function()?;
        Ok((f, jacobian))
    };
    Problem { name: format!("hand_derived_c{n}"), make, ..fitted(n, false) }
}

fn least_squares(m: usize, n: usize) -> Problem {
    let x = rows(&mut Random::default(), 1, m).remove(0);
    Problem {
        name: format!("llsq_m{m}_n{n}"),
        make: |checkpoints| with_gradient(micro::LLSQ, "llsq", &["x"], checkpoints),
        beside: None,
        by_hand: include_str!("by_hand/llsq.cpp"),
        by_hand_arguments: vec![x.clone()],
        by_hand_integers: vec![m as i64, n as i64],
        args: vec![x.into(), (n as i64).into()],
        published: None,
    }
}

fn exponentials(n: usize) -> Problem {
    let x = rows(&mut Random::default(), 1, n).remove(0);
    Problem {
        name: format!("lse_n{n}"),
        make: |checkpoints| with_gradient(micro::LSE, "lse", &["x"], checkpoints),
        beside: None,
        by_hand: include_str!("by_hand/lse.cpp"),
        by_hand_arguments: vec![x.clone()],
        by_hand_integers: vec![n as i64],
        args: vec![x.into()],
        published: None,
    }
}

fn equations(n: usize, s: usize) -> Problem {
    // Near 1: smaller values make the last element vanish.
    let x: Vec<f64> = rows(&mut Random::default(), 1, n).remove(0).iter().map(|x| 1.0 + x / 8.0).collect();
    Problem {
        name: format!("ode_n{n}_s{s}"),
        make: |checkpoints| with_gradient(micro::ODE, "odeLast", &["x"], checkpoints),
        beside: None,
        by_hand: include_str!("by_hand/ode.cpp"),
        by_hand_arguments: vec![x.clone()],
        by_hand_integers: vec![n as i64, s as i64],
        args: vec![x.into(), (s as i64).into()],
        published: None,
    }
}

fn clusters(n: usize, k: usize) -> Problem {
    let random = &mut Random::default();
    let d = 8;
    let (points, centroids) = (rows(random, n, d), rows(random, k, d));
    Problem {
        name: format!("kmeans_n{n}_k{k}"),
        make: |_| {
            let module = Module::from_text("kmeans.ft", micro::KMEANS)?;
            Ok((module.function("cost")?, module.function("direction")?))
        },
        beside: None,
        by_hand: include_str!("by_hand/kmeans.cpp"),
        by_hand_arguments: vec![points.concat(), centroids.concat()],
        by_hand_integers: vec![n as i64, k as i64, d as i64],
        args: vec![points.into(), centroids.into()],
        published: None,
    }
}

/// Returns one of the paper's functions on vectors: the product of two, the largest element, the sum of two, a
/// multiple.
fn scalar(which: usize, n: usize) -> Problem {
    let random = &mut Random::default();
    let (u, v, s) = (rows(random, 1, n).remove(0), rows(random, 1, n).remove(0), 0.3);
    let (arguments, args): (Vec<Vec<f64>>, Vec<Value<f64>>) = match which {
        1 => (vec![v.clone()], vec![v.into()]),
        3 => (vec![v.clone(), vec![s]], vec![v.into(), s.into()]),
        _ => (vec![u.clone(), v.clone()], vec![u.into(), v.into()]),
    };
    let make: [Make; 4] = [
        |_| both("dot", "dotGradient"),
        |_| both("maximum", "maximumGradient"),
        |_| both("add", "addJacobian"),
        |_| both("scale", "scaleDerivative"),
    ];
    micro_problem(["dot", "max", "add", "scale"][which], which, make[which], (n, 0, 0), arguments, args)
}

fn factorisation(n: usize, k: usize, m: usize) -> Problem {
    let random = &mut Random::default();
    // Positive, because logarithms are taken of the product.
    let mut above = |n, m| -> Vec<Vec<f64>> {
        rows(random, n, m).iter().map(|row| row.iter().map(|x| 2.0 + x).collect()).collect()
    };
    let (w, h, a) = (above(n, k), above(k, m), above(n, m));
    let arguments = vec![w.concat(), h.concat(), a.concat()];
    let args = vec![w.into(), h.into(), a.into()];
    micro_problem("factorise", 4, |_| both("misfit", "misfitGradient"), (n, k, m), arguments, args)
}

fn projection() -> Problem {
    let mut camera = rows(&mut Random::default(), 1, 14).remove(0);
    camera[13] += 5.0;
    let args = vec![camera.clone().into()];
    micro_problem("project", 5, |_| both("projectAll", "projectJacobian"), (1, 0, 0), vec![camera], args)
}

fn determinant(n: usize) -> Problem {
    let a = rows(&mut Random::default(), n, n);
    let arguments = vec![a.concat()];
    let args = vec![a.into(), (1_i64 << n).into()];
    micro_problem(
        "det",
        6,
        |checkpoints| with_gradient(micro::DET, "det", &["a"], checkpoints),
        (n, 0, 0),
        arguments,
        args,
    )
}

fn micro_problem(
    name: &str,
    which: usize,
    make: Make,
    (n, k, m): (usize, usize, usize),
    by_hand_arguments: Vec<Vec<f64>>,
    args: Vec<Value<f64>>,
) -> Problem {
    Problem {
        name: format!("{name}_n{n}"),
        make,
        beside: None,
        by_hand: include_str!("by_hand/micro.cpp"),
        by_hand_arguments,
        by_hand_integers: [which, n, k, m].map(|i| i as i64).to_vec(),
        args,
        published: None,
    }
}

/// Returns a function of the paper's, and its derivative's function.
fn both(name: &str, derivative: &str) -> Result<(Function, Function), Error> {
    let module = Module::from_text("micro.ft", micro::MICRO)?;
    Ok((module.function(name)?, module.function(derivative)?))
}

/// Returns a library function of linear algebra, of a positive definite matrix.
fn algebra(n: usize, which: usize) -> Problem {
    let random = &mut Random::default();
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
        |n| with_gradient(include_str!("matrices.ft"), "gaussian", &["a"], n),
        |n| with_gradient(include_str!("matrices.ft"), "volume", &["a"], n),
        |n| with_gradient(include_str!("matrices.ft"), "system", &["a"], n),
        |n| with_gradient(include_str!("matrices.ft"), "factor", &["a"], n),
    ];
    Problem {
        name: format!("{}_n{n}", ["gaussian", "logdet", "solve", "cholesky"][which]),
        make: make[which],
        beside: None,
        by_hand: include_str!("by_hand/matrices.cpp"),
        by_hand_arguments: vec![a.concat(), x],
        by_hand_integers: vec![n as i64, which as i64],
        args,
        published: None,
    }
}

/// Returns energies of pairs of points, some of which a condition excludes.
fn pairs(n: usize, which: usize) -> Problem {
    let random = &mut Random::default();
    let x = rows(random, n, 3);
    let other: Vec<f64> = match which {
        0 => rows(random, 1, n).remove(0),
        _ => vec![1.0],
    };
    let make: [Make; 2] = [
        |n| with_gradient(include_str!("pairs.ft"), "attraction", &["x"], n),
        |n| with_gradient(include_str!("pairs.ft"), "cutoff", &["x"], n),
    ];
    let second: Value<f64> = if which == 0 { other.clone().into() } else { other[0].into() };
    Problem {
        name: format!("{}_n{n}", ["attraction", "cutoff"][which]),
        make: make[which],
        beside: None,
        by_hand: include_str!("by_hand/pairs.cpp"),
        by_hand_arguments: vec![x.concat(), other],
        by_hand_integers: vec![n as i64, which as i64],
        args: vec![x.into(), second],
        published: None,
    }
}

/// Returns a product of two matrices that fit into the first, the second and the third cache.
fn product(n: usize) -> Problem {
    let random = &mut Random::default();
    let (a, b) = (rows(random, n, n), rows(random, n, n));
    Problem {
        name: format!("product_n{n}"),
        make: |checkpoints| with_gradient(include_str!("products.ft"), "product", &["a"], checkpoints),
        beside: None,
        by_hand: include_str!("by_hand/products.cpp"),
        by_hand_arguments: vec![a.concat(), b.concat()],
        by_hand_integers: vec![n as i64],
        args: vec![a.into(), b.into()],
        published: None,
    }
}

/// Layers of networks.
const NETWORKS: &str = include_str!("networks.ft");

/// Returns a layer of a network: `n` points through `h` units of `k` numbers.
fn layer(n: usize, h: usize, k: usize) -> Problem {
    let random = &mut Random::default();
    let (w, b, x) = (rows(random, h, k), rows(random, 1, h).remove(0), rows(random, n, k));
    Problem {
        name: format!("layer_n{n}_h{h}_k{k}"),
        make: |checkpoints| with_gradient(NETWORKS, "layer", &["w", "b", "x"], checkpoints),
        beside: None,
        by_hand: include_str!("by_hand/networks.cpp"),
        by_hand_arguments: vec![w.concat(), b.clone(), x.concat()],
        by_hand_integers: vec![0, n as i64, k as i64, h as i64],
        args: vec![w.into(), b.into(), x.into()],
        published: None,
    }
}

/// Returns attention of `n` queries to `n` keys of `d` numbers.
fn attention(n: usize, d: usize) -> Problem {
    let random = &mut Random::default();
    let [q, k, v] = [(); 3].map(|()| rows(random, n, d));
    Problem {
        name: format!("attention_n{n}_d{d}"),
        make: |checkpoints| with_gradient(NETWORKS, "attention", &["q", "k", "v"], checkpoints),
        beside: None,
        by_hand: include_str!("by_hand/networks.cpp"),
        by_hand_arguments: vec![q.concat(), k.concat(), v.concat()],
        by_hand_integers: vec![1, n as i64, d as i64, 0],
        args: vec![q.into(), k.into(), v.into()],
        published: None,
    }
}

/// Returns a convolution of an image of `n` by `n` pixels with a window of 5 by 5 weights.
fn convolution(n: usize) -> Problem {
    let random = &mut Random::default();
    let (x, w, y) = (rows(random, n + 4, n + 4), rows(random, 5, 5), rows(random, n, n));
    Problem {
        name: format!("convolution_n{n}"),
        make: |checkpoints| with_gradient(NETWORKS, "convolution", &["x", "w"], checkpoints),
        beside: None,
        by_hand: include_str!("by_hand/networks.cpp"),
        by_hand_arguments: vec![x.concat(), w.concat(), y.concat()],
        by_hand_integers: vec![2, n as i64, n as i64, 0],
        args: vec![x.into(), w.into(), y.into()],
        published: None,
    }
}

/// Returns a function of a program, and its gradient with its value.
fn with_gradient(
    source: &str,
    name: &str,
    by: &[&str],
    checkpoints: Option<u32>,
) -> Result<(Function, Function), Error> {
    let f = Module::from_text(&format!("{name}.ft"), source)?.function(name)?;
    let derivative = with(f.gradient().by(by).with_value(), checkpoints).function()?;
    Ok((f, derivative))
}

fn with(derivation: Derivation, checkpoints: Option<u32>) -> Derivation {
    match checkpoints {
        Some(n) => derivation.checkpoints(n),
        None => derivation,
    }
}
