//! Shared support: running tests on random bytes, programs printed and parsed.

#[path = "case.rs"]
pub mod case;
#[path = "values.rs"]
pub mod values;

pub use case::Case;
pub use values::*;

use arbitrary::Unstructured;
use chainrule::{Type, Value};
use chainrule_cases::covers;
use chainrule_ir::generate::{self, Options, expressible_case};
use chainrule_ir::{self as ir, print};
use chainrule_ops::{Algebra, Big, Precise};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::Cell;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs `test` on `cases` random byte strings; it returns whether its program was useful. At least `useful` must be.
pub fn run(seed: u64, cases: u32, useful: u32, len: usize, test: impl Fn(&[u8]) -> Result<bool, String>) {
    let n_cases = chainrule_cases::cases(cases);
    let config = ProptestConfig {
        cases: n_cases,
        rng_seed: RngSeed::Fixed(seed.wrapping_add(setting("CHAINRULE_RANDOM_SEED", 0).wrapping_mul(1000))),
        failure_persistence: None,
        max_shrink_iters: u32::try_from(setting("CHAINRULE_RANDOM_SHRINKS", 5_000)).unwrap(),
        ..ProptestConfig::default()
    };
    let told = Cell::new(0);
    let bytes = proptest::collection::vec(any::<u8>(), len / 8..len);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| match test(&bytes) {
        Ok(useful) => {
            told.set(told.get() + u32::from(useful));
            Ok(())
        }
        Err(what) => Err(TestCaseError::fail(what)),
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    println!("{} of {n_cases} programs told something", told.get());
    covers!(told.get() >= useful, "only {} of {n_cases} programs told anything", told.get());
}

/// Returns the program that `bytes` describe, printed and parsed.
pub fn program(bytes: &[u8], options: Options) -> Result<Option<Case>, String> {
    match expressible_case(&mut Unstructured::new(bytes), options) {
        Ok(generate::Case { function, args }) => Case::read(&function.name, print(&function), args),
        Err(_) => Ok(None),
    }
}

impl Case {
    /// Returns the numbers of its sizes and `Int` arguments, by name.
    pub fn sizes(&self) -> Option<Vec<(&str, i64)>> {
        let bound = ir::bind_sizes(&self.ir, &self.args).ok()?;
        let ints = self.ir.params.iter().filter(|p| *self.ir.ty(**p) == Type::Int);
        let size = |v: &ir::VarId| Some((self.ir.vars[*v].name.as_deref()?, bound.get(*v)?));
        self.ir.sizes.iter().chain(ints).map(size).collect()
    }

    /// Moves the arguments slightly, so that no comparison is a tie by chance.
    pub fn move_aside(&mut self) {
        let mut k = 0.0;
        let mut aside = |x: &f64| {
            k += 1.0;
            x + (k * std::f64::consts::SQRT_2).fract() / 1024.0
        };
        self.args = self.args.iter().map(|arg| arg.map(&mut aside)).collect();
    }
}

/// Slope of a function along a direction, in extended precision.
pub struct Slope {
    /// Central difference quotient.
    pub value: f64,
    /// Whether the one-sided quotients agree: if not, the function has a kink or a discontinuity.
    pub smooth: bool,
}

/// Returns the slopes of the doubles of the result of `function` at `args`, one row per double among the arguments.
/// `None` if the function has no value there or nearby.
pub fn slopes(function: &ir::Function, args: &[Value<f64>], precise: &mut Precise) -> Option<Vec<Vec<Slope>>> {
    let at: Vec<Big> = doubles(args).iter().map(|x| precise.from_f64(*x)).collect();
    let step = precise.from_f64(2f64.powi(-100));
    let run = |precise: &mut Precise, at: &[Big]| -> Option<Vec<Big>> {
        let value = ir::evaluate(function, precise, &with_doubles(args, at)).ok()?;
        Some(doubles(&[value]))
    };
    let here = run(precise, &at)?;
    let mut rows = Vec::new();
    for k in 0..at.len() {
        let mut moved = at.clone();
        moved[k] = precise.add(&at[k], &step);
        let ahead = run(precise, &moved)?;
        moved[k] = precise.sub(&at[k], &step);
        let behind = run(precise, &moved)?;
        let slope = |((ahead, here), behind): ((&Big, &Big), &Big)| {
            let quotient = |a: &Big, b: &Big| precise.as_f64(&precise.div(&precise.sub(a, b), &step));
            let (up, down) = (quotient(ahead, here), quotient(here, behind));
            let smooth = (up - down).abs() <= 1e-12 * (1e-3 + up.abs());
            Slope { value: up / 2.0 + down / 2.0, smooth: smooth && precise.to_f64(here).is_some() }
        };
        rows.push(ahead.iter().zip(&here).zip(&behind).map(slope).collect());
    }
    Some(rows)
}
