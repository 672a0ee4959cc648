//! The problems: F~ programs, their arguments, the objective by hand.

use crate::random::Random;
use chainrule::{Error, Function, Module, Value};

/// A problem.
pub struct Problem {
    /// Its name.
    pub name: String,
    /// The function.
    pub objective: Function,
    /// What is asked of it, with its value.
    pub derive: fn(&Function) -> Result<Function, Error>,
    /// Where.
    pub args: Vec<Value<f64>>,
    /// C++ of the objective.
    pub by_hand: &'static str,
    /// Arrays for it.
    pub by_hand_arguments: Vec<Vec<f64>>,
    /// Integers for it.
    pub by_hand_integers: Vec<i64>,
}

/// All problems, smallest first.
///
/// # Errors
/// Never: the programs are right.
pub fn all() -> Result<Vec<Problem>, Error> {
    let mut all = Vec::new();
    for (d, k) in [(2, 5), (10, 25), (20, 50), (64, 25)] {
        all.push(gmm(1000, d, k)?);
    }
    Ok(all)
}

fn rows(random: &mut Random, n: usize, m: usize) -> Vec<Vec<f64>> {
    (0..n).map(|_| (0..m).map(|_| random.below(2000) as f64 / 1000.0 - 1.0).collect()).collect()
}

fn gmm(n: usize, d: usize, k: usize) -> Result<Problem, Error> {
    let random = &mut Random::new();
    let alphas = rows(random, 1, k).remove(0);
    let means = rows(random, k, d);
    let icf = rows(random, k, d * (d + 1) / 2);
    let x = rows(random, n, d);
    let (gamma, m) = (1.0, 0);
    Ok(Problem {
        name: format!("gmm_d{d}_K{k}"),
        objective: Module::from_text("gmm.ft", chainrule_example_gmm::SOURCE)?.function("gmm")?,
        derive: |f| f.gradient().by(&["alphas", "means", "icf"]).with_value().function(),
        by_hand: include_str!("gmm.cpp"),
        by_hand_arguments: vec![alphas.clone(), means.concat(), icf.concat(), x.concat(), vec![gamma]],
        by_hand_integers: vec![k as i64, d as i64, n as i64, m],
        args: vec![alphas.into(), means.into(), icf.into(), x.into(), gamma.into(), m.into()],
    })
}
