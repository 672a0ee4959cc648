//! Laziness: a value under a mask that is off never reaches the result, for any multiplication, addition, scaling,
//! choice and nesting of masks.

use arbitrary::{Result, Unstructured};
use chainrule_cases::covers;
use chainrule_graph::optimise::{Optimise, optimise};
use chainrule_graph::{Graph, NodeId, Semantics};
use chainrule_ops::Op;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::Cell;

const N_CONDITIONS: usize = 3;

/// Number, or off.
type Lazy = Option<f64>;

/// Expression in a graph and its value by the definition in `simplify/mask.rs`.
struct Maker {
    graph: Graph,
    /// Conditions, with whether each holds at the point.
    conditions: Vec<(NodeId, bool)>,
    /// For each condition a factor that is infinite or NaN if it does not hold, and one for the opposite.
    poisons: Vec<[(NodeId, f64); 2]>,
    plain: Vec<(NodeId, f64)>,
    values: Vec<(NodeId, Lazy)>,
    point: Vec<f64>,
}

impl Maker {
    fn new(u: &mut Unstructured<'_>, semantics: Semantics) -> Result<Self> {
        let mut maker = Self {
            graph: Graph::new(semantics),
            conditions: vec![],
            poisons: vec![],
            plain: vec![],
            values: vec![],
            point: vec![],
        };
        let zero = maker.graph.constant(0.0);
        for i in 0..N_CONDITIONS {
            let holds = u.ratio(1, 2)?;
            let x = maker.input(if holds { 1.0 } else { -1.0 });
            maker.conditions.push((maker.graph.apply(Op::Lt, &[zero, x]), holds));
            let poison = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][i % 3];
            let (good, bad) = (0.5 + i as f64, poison);
            let pair = if holds { [good, bad] } else { [bad, good] };
            let pair = pair.map(|v| (maker.input(v), v));
            maker.poisons.push(pair);
        }
        for value in [1.25, -2.0, 3.5] {
            let node = maker.input(value);
            maker.plain.push((node, value));
        }
        for c in [2.0, -1.0, 1.0, 0.5] {
            let node = maker.graph.constant(c);
            maker.plain.push((node, c));
        }
        Ok(maker)
    }

    fn input(&mut self, value: f64) -> NodeId {
        self.point.push(value);
        self.graph.input(format!("x{}", self.point.len()))
    }

    fn value(&self, u: &mut Unstructured<'_>) -> Result<(NodeId, Lazy)> {
        if !self.values.is_empty() && u.ratio(5, 6)? {
            return u.choose(&self.values).copied();
        }
        u.choose(&self.plain).map(|(node, v)| (*node, Some(*v)))
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let (a, va) = self.value(u)?;
        let (b, vb) = self.value(u)?;
        let zero = self.graph.constant(0.0);
        let (c, holds) = *u.choose(&self.conditions)?;
        let made = match u.int_in_range(0..=9)? {
            0 | 1 => (self.graph.select(c, a, zero), va.filter(|_| holds)),
            2 => (self.graph.select(c, zero, a), va.filter(|_| !holds)),
            3 => (self.graph.select(c, a, b), if holds { va } else { vb }),
            4 => (self.graph.mul(a, b), va.and_then(|x| Some(x * vb?))),
            5 => (self.graph.add(a, b), (va.is_some() || vb.is_some()).then(|| va.unwrap_or(0.0) + vb.unwrap_or(0.0))),
            6 => (self.graph.sub(a, b), (va.is_some() || vb.is_some()).then(|| va.unwrap_or(0.0) - vb.unwrap_or(0.0))),
            7 => (self.graph.neg(a), va.map(|x| -x)),
            // A factor that is finite only if a condition holds.
            n => {
                let (poison, v) = u.choose(&self.poisons)?[usize::from(u.ratio(1, 2)?)];
                let node = if n == 8 { self.graph.mul(a, poison) } else { self.graph.div(a, poison) };
                (node, va.map(|x| if n == 8 { x * v } else { x / v }))
            }
        };
        // A value that is always off is the constant 0, and no longer a mask: strict 0 * NaN is NaN.
        self.values.push((made.0, self.graph.as_const(made.0).or(made.1)));
        Ok(())
    }
}

#[test]
fn masked_values_never_show() {
    let compared = Cell::new(0);
    let config = ProptestConfig {
        cases: chainrule_cases::cases(10_000),
        rng_seed: RngSeed::Fixed(4),
        failure_persistence: None,
        ..Default::default()
    };
    let semantics = any::<bool>().prop_map(|strict| if strict { Semantics::Strict } else { Semantics::Algebraic });
    let programs = (prop::collection::vec(any::<u8>(), 0..200), semantics);
    let result = TestRunner::new(config).run(&programs, |(bytes, semantics)| {
        let mut u = Unstructured::new(&bytes);
        let mut maker = Maker::new(&mut u, semantics).unwrap();
        while !u.is_empty() && maker.values.len() < 25 {
            maker.step(&mut u).unwrap();
        }
        for (node, value) in &maker.values {
            let expected = value.unwrap_or(0.0);
            // A poisoned value that is on is out of scope, and so are its users.
            if !expected.is_finite() || expected.abs() > 1e9 {
                break;
            }
            let found = maker.graph.f64_at(&maker.point, &[*node]).unwrap()[0];
            compared.set(compared.get() + 1);
            prop_assert!(
                (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
                "{found} is not {expected} at {:?}\n{}",
                maker.point,
                maker.graph.listing(&[*node])
            );
        }
        Ok(())
    });
    result.unwrap();
    covers!(compared.get() > 50_000, "{}", compared.get());
}

#[test]
fn masked_values_never_show_after_optimisation() {
    let compared = Cell::new(0);
    let config = ProptestConfig {
        cases: chainrule_cases::cases(4000),
        rng_seed: RngSeed::Fixed(5),
        failure_persistence: None,
        ..Default::default()
    };
    let programs = (prop::collection::vec(any::<u8>(), 0..200), prop::sample::select(vec![8, 400]));
    let result = TestRunner::new(config).run(&programs, |(bytes, window)| {
        let mut u = Unstructured::new(&bytes);
        let mut maker = Maker::new(&mut u, Semantics::Algebraic).unwrap();
        while !u.is_empty() && maker.values.len() < 25 {
            maker.step(&mut u).unwrap();
        }
        let sound = |(_, value): &&(NodeId, Lazy)| value.is_none_or(|v| v.is_finite() && v.abs() < 1e9);
        let (roots, values): (Vec<NodeId>, Vec<Lazy>) = maker.values.iter().take_while(sound).copied().unzip();
        let found = optimise(&mut maker.graph, &roots, &Optimise { budget: 5000, window, seed: 0 });
        let results = maker.graph.f64_at(&maker.point, &found.roots).unwrap();
        for (value, result) in values.iter().zip(results) {
            let expected = value.unwrap_or(0.0);
            compared.set(compared.get() + usize::from(found.roots != roots));
            prop_assert!(
                (result - expected).abs() <= 1e-6 * expected.abs().max(1.0),
                "{result} is not {expected} at {:?}\n{}\n{}",
                maker.point,
                maker.graph.listing(&roots),
                maker.graph.listing(&found.roots)
            );
        }
        Ok(())
    });
    result.unwrap();
    covers!(compared.get() > 2000, "{}", compared.get());
}

#[test]
fn the_derivative_of_a_branch_not_taken_is_zero() {
    // if 0 < x then log x else 0, at x = -1 and x = 0
    for semantics in [Semantics::Strict, Semantics::Algebraic] {
        let mut g = Graph::new(semantics);
        let x = g.input("x");
        let zero = g.constant(0.0);
        let positive = g.apply(Op::Lt, &[zero, x]);
        let log = g.apply(Op::Log, &[x]);
        let f = g.select(positive, log, zero);
        let df = chainrule_graph::partial(&mut g, f, 1).unwrap();
        let dlog = chainrule_graph::partial(&mut g, log, 0).unwrap();
        for derivative in [g.mul(df, dlog), g.mul(dlog, df)] {
            assert_eq!(g.f64_at(&[-1.0], &[f, derivative]).unwrap(), [0.0, 0.0]);
            assert_eq!(g.f64_at(&[0.0], &[f, derivative]).unwrap(), [0.0, 0.0]);
            assert_eq!(g.f64_at(&[4.0], &[derivative]).unwrap(), [0.25]);
        }
    }
}

/// Checks that a mask around a sum of masks is off if the sum's own masks are all off.
#[test]
fn a_mask_of_a_sum_of_masks_is_off_where_the_sum_is() {
    let mut g = Graph::new(Semantics::Algebraic);
    let inputs: Vec<_> = ["a", "b", "d", "e", "p", "q", "r"].map(|name| g.input(name)).to_vec();
    let zero = g.constant(0.0);
    let [ca, cb, cd, ce] = [0, 1, 2, 3].map(|i| g.apply(Op::Lt, &[zero, inputs[i]]));
    let (p, q, r) = (inputs[4], inputs[5], inputs[6]);
    let (s, t) = (g.select(ca, p, zero), g.select(cb, q, zero));
    let sum = g.add(s, t);
    let inner = g.select(cd, sum, zero);
    let other = g.select(ce, p, zero);
    let total = g.add(inner, other);
    let root = g.apply(Op::Sqrt, &[r]);
    let product = g.mul(total, root);
    assert_eq!(g.f64_at(&[-1.0, -1.0, 1.0, -1.0, 2.0, 3.0, -1.0], &[product]).unwrap(), [0.0]);
    assert_eq!(g.f64_at(&[1.0, -1.0, 1.0, -1.0, 2.0, 3.0, 4.0], &[product]).unwrap(), [4.0]);
}
