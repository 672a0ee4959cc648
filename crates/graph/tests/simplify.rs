//! Simplified graphs against the unsimplified programs: bit for bit in strict semantics, within a bound in extended
//! precision in algebraic semantics.

use arbitrary::Unstructured;
use chainrule_cases::covers;
use chainrule_graph::generate::{Numbers, Options, Recipe};
use chainrule_graph::{Graph, NodeId, Semantics, evaluate};
use chainrule_ops::{Algebra, Big, F64, Op, Precise, partial};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::Cell;

fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig {
        cases: chainrule_cases::cases(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..600)
}

/// Builds both graphs. A branch of a selection that simplifies to 0 would be a mask, whose products are 0 by definition
/// and not by IEEE 754 (`masks.rs` tests those); an input replaces it.
fn without_masks(recipe: &Recipe) -> ((Graph, Vec<NodeId>), (Graph, Vec<NodeId>)) {
    let mut recipe = recipe.clone();
    let mut n_done = 0;
    loop {
        let mut zeros = None;
        let mut step = 0;
        let (graph, roots) = recipe.make(Semantics::Strict, |g, op, args| {
            let mask = op == Op::Select && args[1..].iter().any(|a| g.as_const(*a).is_some_and(|c| c.to_bits() == 0));
            if mask && zeros.is_none() {
                zeros = Some(step);
            }
            step += 1;
            g.apply(op, args)
        });
        let Some(nth) = zeros else { return (recipe.raw(Semantics::Strict), (graph, roots)) };
        let applications = recipe.steps.iter_mut().filter_map(|s| match s {
            chainrule_graph::generate::Step::Apply(op, args) => Some((op, args)),
            chainrule_graph::generate::Step::Const(_) => None,
        });
        let (_, args) = applications.into_iter().nth(nth).expect("the step that was found");
        (args[1], args[2]) = (0, 1);
        n_done += 1;
        assert!(n_done < 1000);
    }
}

fn same_bits(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

proptest! {
    #![proptest_config(config(4000, 1))]
    #[test]
    fn strict_is_exact_at_special_values(bytes in bytes()) {
        let mut u = Unstructured::new(&bytes);
        let options = Options { numbers: Numbers::Special, in_domain: false, ..Options::new(30) };
        let recipe = Recipe::random(&mut u, &options).unwrap();
        let ((raw, raw_roots), (simple, roots)) = without_masks(&recipe);
        let mut points = vec![recipe.point.clone()];
        for _ in 0..8 {
            points.push((0..recipe.point.len()).map(|_| Numbers::Special.pick(&mut u).unwrap()).collect());
        }
        for point in points {
            let expected = raw.f64_at(&point, &raw_roots).unwrap();
            let found = simple.f64_at(&point, &roots).unwrap();
            for (i, (e, f)) in expected.iter().zip(&found).enumerate() {
                prop_assert!(
                    same_bits(*e, *f),
                    "root {i} at {point:?}: {f:?} is not {e:?}\n{}\n{}", raw.listing(&raw_roots), simple.listing(&roots)
                );
            }
        }
    }

    #[test]
    fn strict_is_exact_at_tame_values(bytes in bytes()) {
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &Options::new(60)).unwrap();
        let ((raw, raw_roots), (simple, roots)) = without_masks(&recipe);
        let expected = raw.f64_at(&recipe.point, &raw_roots).unwrap();
        let found = simple.f64_at(&recipe.point, &roots).unwrap();
        for (e, f) in expected.iter().zip(&found) {
            prop_assert!(same_bits(*e, *f), "{}\n{}", raw.listing(&raw_roots), simple.listing(&roots));
        }
    }
}

/// Number in extended precision with a bound on its error, if each constant is known to a few units in the last place
/// of a double. Infinite if unknown: at and near discontinuities, outside of domains.
#[derive(Clone, Debug)]
struct Bounded {
    value: Big,
    error: f64,
}

#[derive(Default)]
struct Bounds {
    precise: Precise,
}

impl Bounds {
    const CONSTANT: f64 = 1e-14;
    const STEP: f64 = 1e-40;

    fn lift(&self, c: f64, relative: f64) -> Bounded {
        Bounded { value: self.precise.from_f64(c), error: c.abs() * relative }
    }
}

impl Algebra for Bounds {
    type Value = Bounded;

    fn constant(&mut self, c: f64) -> Bounded {
        self.lift(c, Self::CONSTANT)
    }

    fn apply(&mut self, op: Op, args: &[Bounded]) -> Bounded {
        let bigs: Vec<Big> = args.iter().map(|a| a.value.clone()).collect();
        let value = self.precise.apply(op, &bigs);
        let size = self.precise.as_f64(&value);
        let unknown = Bounded { value: value.clone(), error: f64::INFINITY };
        if op == Op::Select {
            let chosen = &args[if bigs[0].is_zero() { 2 } else { 1 }];
            return if args[0].error.is_finite() { chosen.clone() } else { unknown };
        }
        let doubles: Vec<f64> = bigs.iter().map(|b| self.precise.as_f64(b)).collect();
        if !size.is_finite() || args.iter().any(|a| !a.error.is_finite()) {
            return unknown;
        }
        let mut error = size.abs() * Self::STEP;
        for (i, arg) in args.iter().enumerate().filter(|(_, a)| a.error > 0.0) {
            let slope = partial(&mut F64, op, i, &doubles, &size);
            let linear = slope.abs() * arg.error;
            // A step of the size of the error detects discontinuities and kinks.
            for sign in [1.0, -1.0] {
                let mut moved = bigs.clone();
                let step = self.precise.from_f64(sign * arg.error);
                moved[i] = self.precise.add(&moved[i], &step);
                let there = self.precise.apply(op, &moved);
                let change = self.precise.sub(&there, &value);
                let change = self.precise.as_f64(&change).abs();
                if change.is_nan() || change > 2.0 * linear + size.abs() * Self::STEP {
                    return unknown;
                }
            }
            error += 2.0 * linear;
        }
        if !error.is_finite() { unknown } else { Bounded { value, error } }
    }

    fn to_f64(&self, value: &Bounded) -> Option<f64> {
        Some(self.precise.as_f64(&value.value))
    }
}

#[test]
fn algebraic_is_equal_within_the_error_of_its_constants() {
    let (compared, skipped) = (Cell::new(0u32), Cell::new(0u32));
    let mut runner = proptest::test_runner::TestRunner::new(config(1500, 2));
    let result = runner.run(&bytes(), |bytes| {
        let options = Options::new(25).without(&[Op::Polygamma, Op::Digamma, Op::Lgamma, Op::Erf]);
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &options).unwrap();
        let (raw, raw_roots) = recipe.raw(Semantics::Algebraic);
        let (simple, roots) = recipe.simplified(Semantics::Algebraic);
        let mut bounds = Bounds::default();
        let point: Vec<Bounded> = recipe.point.iter().map(|x| bounds.lift(*x, 0.0)).collect();
        let expected = evaluate(&raw, &mut bounds, &point, &raw_roots).unwrap();
        let found = evaluate(&simple, &mut bounds, &point, &roots).unwrap();
        for (e, f) in expected.iter().zip(&found) {
            let bound = e.error + f.error;
            // Rules may define values where the raw program is undefined.
            if !bound.is_finite() || bound > 1e-6 {
                skipped.set(skipped.get() + 1);
                continue;
            }
            let difference = bounds.precise.sub(&e.value, &f.value);
            let difference = bounds.precise.as_f64(&difference).abs();
            compared.set(compared.get() + 1);
            prop_assert!(
                difference <= bound,
                "off by {difference:e}, bound {bound:e} at {:?}\n{}\n{}",
                recipe.point,
                raw.listing(&raw_roots),
                simple.listing(&roots)
            );
        }
        Ok(())
    });
    result.unwrap();
    let (compared, skipped) = (compared.get(), skipped.get());
    covers!(compared > 5 * skipped, "{compared} compared, {skipped} skipped");
}

proptest! {
    #![proptest_config(config(4000, 5))]
    #[test]
    fn algebraic_ends_on_special_constants(bytes in bytes()) {
        let options = Options { numbers: Numbers::Special, in_domain: false, ..Options::new(60) };
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &options).unwrap();
        let (graph, roots) = recipe.simplified(Semantics::Algebraic);
        prop_assert_eq!(graph.f64_at(&recipe.point, &roots).unwrap().len(), roots.len());
        prop_assert!(graph.ids().all(|id| graph.args(id).iter().all(|a| *a < id)));
    }
}

/// Checks that simplification saves operations in total. A single program may cost more in its normal form (a sign
/// moved out of a product whose factor is also used with its sign); many together must cost less.
#[test]
fn simplification_saves_operations_on_the_whole() {
    // No rule applies to the operators of slopes and scales.
    let left = Op::all().filter(|op| op.has_steps() || *op == Op::Binade).collect::<Vec<_>>();
    for semantics in [Semantics::Strict, Semantics::Algebraic] {
        let (before, after) = (Cell::new(0), Cell::new(0));
        let mut runner = proptest::test_runner::TestRunner::new(config(1000, 3));
        let result = runner.run(&bytes(), |bytes| {
            let recipe = Recipe::random(&mut Unstructured::new(&bytes), &Options::new(40).without(&left)).unwrap();
            let (raw, raw_roots) = recipe.raw(semantics);
            let (simple, roots) = recipe.simplified(semantics);
            before.set(before.get() + chainrule_graph::counts(&raw, &raw_roots).weight);
            after.set(after.get() + chainrule_graph::counts(&simple, &roots).weight);
            Ok(())
        });
        result.unwrap();
        let saved = 1.0 - after.get() as f64 / before.get() as f64;
        let least = if semantics == Semantics::Strict { 0.03 } else { 0.15 };
        assert!(saved > least, "{semantics:?} saves {saved}");
    }
}
