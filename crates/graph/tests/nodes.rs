//! Copies, substitution, derivatives inside of expressions, partials, users' functions.

use arbitrary::Unstructured;
use chainrule_base::Kind;
use chainrule_graph::generate::{Options, Recipe};
use chainrule_graph::{ExternalFunction, Graph, Node, NodeId, Semantics, partial};
use chainrule_ops::Op;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rustc_hash::FxHashMap;

fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig {
        cases: chainrule_cases::cases(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
}

proptest! {
    #![proptest_config(config(1000, 21))]
    #[test]
    fn copies_have_the_same_values(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &Options::new(50)).unwrap();
        let (graph, roots) = recipe.simplified(Semantics::Strict);
        let expected = graph.f64_at(&recipe.point, &roots).unwrap();

        let (extracted, extracted_roots) = graph.extract(&roots);
        prop_assert!(same(&extracted.f64_at(&recipe.point, &extracted_roots).unwrap(), &expected));
        let needed = graph.reachable(&roots).iter().filter(|id| !matches!(graph.node(*id), Node::Input(_))).count();
        prop_assert_eq!(extracted.len(), needed + graph.inputs().len());

        let mut other = Graph::new(Semantics::Strict);
        let _ = other.input("unused");
        let inputs: Vec<NodeId> = graph.inputs().iter().map(|(name, _)| other.input(name.clone())).collect();
        let imported = other.import(&graph, &roots, &inputs).unwrap();
        let point: Vec<f64> = [f64::NAN].into_iter().chain(recipe.point.iter().copied()).collect();
        prop_assert!(same(&other.f64_at(&point, &imported).unwrap(), &expected));

        // Every input is replaced by a constant: everything folds.
        let mut folded = graph.clone();
        let map: FxHashMap<NodeId, NodeId> =
            graph.inputs().iter().zip(&recipe.point).map(|((_, id), x)| (*id, folded.constant(*x))).collect();
        let constants = folded.substitute(&roots, &map).unwrap();
        let values: Vec<f64> = constants.iter().map(|c| folded.as_const(*c).unwrap()).collect();
        prop_assert!(same(&values, &expected));
    }

    #[test]
    fn extraction_depends_on_the_structure_only(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &Options::new(30)).unwrap();
        let (graph, roots) = recipe.simplified(Semantics::Strict);
        // The same program in a graph with other existing nodes.
        let mut busy = Graph::new(Semantics::Strict);
        let inputs: Vec<NodeId> = (0..recipe.point.len()).map(|i| busy.input(format!("x{i}"))).collect();
        for id in graph.ids().rev() {
            if let Some(c) = graph.as_const(id) {
                let c = busy.constant(c);
                busy.apply(Op::Atan2, &[c, inputs[0]]);
            }
        }
        let imported = busy.import(&graph, &roots, &inputs).unwrap();
        let ((a, a_roots), (b, b_roots)) = (graph.extract(&roots), busy.extract(&imported));
        prop_assert_eq!(a.listing(&a_roots), b.listing(&b_roots));
    }

    #[test]
    fn partials_agree_with_the_table(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &Options::new(20)).unwrap();
        let (mut graph, _) = recipe.raw(Semantics::Strict);
        for id in graph.ids() {
            let Node::Apply(op, _) = graph.node(id) else { continue };
            for idx in 0..op.arity() {
                let p = partial(&mut graph, id, idx).unwrap();
                let args = graph.args(id).to_vec();
                let values = graph.f64_at(&recipe.point, &args).unwrap();
                let value = op.value(&values);
                let expected = chainrule_ops::partial(&mut chainrule_ops::F64, op, idx, &values, &value);
                let found = graph.f64_at(&recipe.point, &[p]).unwrap()[0];
                // Masks in formulas are the only difference: 0 instead of the NaN of IEEE 754.
                prop_assert!(same(&[found], &[expected]) || found == expected || found == 0.0 && expected.is_nan(),
                    "{} by {idx}: {found} is not {expected}", graph.short(id));
            }
        }
    }
}

#[test]
fn derivatives_are_made_once_in_any_order() {
    let mut g = Graph::new(Semantics::Algebraic);
    let (a, b, c) = (g.input("a"), g.input("b"), g.input("c"));
    let ab = g.mul(a, b);
    let f = g.apply(Op::Sin, &[ab]);
    let dab = g.derivative(f, &[a, b]).unwrap();
    assert_eq!(g.derivative(f, &[b, a]).unwrap(), dab);
    let da = g.derivative(f, &[a]).unwrap();
    assert_eq!(g.derivative(da, &[b]).unwrap(), dab);
    assert_eq!(g.derivative_parts(dab), Some((f, [a, b].as_slice())));
    assert_ne!(g.derivative(f, &[a, a]).unwrap(), da);
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    assert_eq!(g.derivative(f, &[c]).unwrap(), zero);
    assert_eq!(g.derivative(f, &[a, c]).unwrap(), zero);
    assert_eq!(g.derivative(a, &[a]).unwrap(), one);
    assert_eq!(g.derivative(a, &[a, a]).unwrap(), zero);
    assert_eq!(g.derivative(a, &[b]).unwrap(), zero);
    assert_eq!(g.derivative(one, &[a]).unwrap(), zero);
    assert_eq!(g.derivative(f, &[]).unwrap(), f);
    assert_eq!(g.derivative(f, &[ab]).unwrap_err().kind, Kind::Error);

    // Rounds: the inner one first; then the one above it.
    let outer = g.mul(da, c);
    let outer = g.derivative(outer, &[b]).unwrap();
    let root = g.add(outer, dab);
    assert_eq!(g.leaf_derivatives(&[root]), [dab, da]);
    assert!(g.f64_at(&[1.0, 2.0, 3.0], &[root]).is_err());
    assert!(partial(&mut g, da, 0).is_err());
    let cos = g.apply(Op::Cos, &[ab]);
    let made = g.mul(cos, b);
    let next = g.substitute(&[root], &FxHashMap::from_iter([(da, made), (dab, c)])).unwrap()[0];
    let leaves = g.leaf_derivatives(&[next]);
    assert_eq!(leaves.len(), 1);
    let expected = g.mul(made, c);
    assert_eq!(g.derivative_parts(leaves[0]), Some((expected, [b].as_slice())));

    // A derivative refers to its variables before their replacement.
    assert_eq!(g.substitute(&[da], &FxHashMap::from_iter([(b, c)])).unwrap_err().kind, Kind::Limitation);
    let mut h = Graph::new(Semantics::Algebraic);
    let (x, y) = (h.input("x"), h.input("y"));
    let z = h.mul(x, y);
    assert!(h.import(&g, &[da], &[x, z]).is_err());
    assert!(h.import(&g, &[da], &[x, x]).is_err());
    assert!(h.import(&g, &[da], &[x]).is_err());
    let swapped = h.import(&g, &[dab], &[y, x]).unwrap()[0];
    assert_eq!(h.short(swapped), "d(sin(x * y), [x, y])");
    let (small, roots) = g.extract(&[dab]);
    assert_eq!(small.short(roots[0]), g.short(dab));
}

#[test]
fn users_functions() {
    let mut g = Graph::new(Semantics::Algebraic);
    let (x, y) = (g.input("x"), g.input("y"));
    let dx = g.register(ExternalFunction::new("spline_x", 2, |a| 2.0 * a[0] * a[1]));
    let dy = g.register(ExternalFunction::new("spline_y", 2, |a| a[0] * a[0]).with_c_name("spline_y_c"));
    let spline =
        g.register(ExternalFunction::new("spline", 2, |a| a[0] * a[0] * a[1]).with_partial_functions(vec![dx, dy]));
    let call = g.external(spline, &[x, y]);
    assert_eq!(g.external(spline, &[x, y]), call);
    let by_x = partial(&mut g, call, 0).unwrap();
    let by_y = partial(&mut g, call, 1).unwrap();
    assert_eq!(g.f64_at(&[3.0, 5.0], &[call, by_x, by_y]).unwrap(), [45.0, 30.0, 9.0]);
    assert_eq!(g.short(by_y), "spline_y(x, y)");
    assert_eq!(g.external_function(dy).unwrap().c_name().unwrap().as_str(), "spline_y_c");

    let square = g.register(ExternalFunction::new("square", 1, |a| a[0] * a[0]).with_partials(|g, a| {
        let two = g.constant(2.0);
        vec![g.mul(two, a[0])]
    }));
    let call = g.external(square, &[by_x]);
    let p = partial(&mut g, call, 0).unwrap();
    assert_eq!(g.f64_at(&[3.0, 5.0], &[call, p]).unwrap(), [900.0, 60.0]);

    // Errors are values.
    let error = partial(&mut g, by_x, 0).unwrap_err();
    assert_eq!((error.kind, error.title.as_str()), (Kind::Error, "`spline_x` has no derivative"));
    let odd = g.register(ExternalFunction::new("odd", 2, |a| a[0]).with_partials(|_, a| vec![a[0]]));
    let call = g.external(odd, &[x, y]);
    assert_eq!(partial(&mut g, call, 0).unwrap_err().title, "the derivative of `odd` gives 1 partials for 2 arguments");
    let wrong = g.register(ExternalFunction::new("wrong", 1, |a| a[0]).with_partial_functions(vec![spline]));
    let call = g.external(wrong, &[x]);
    assert_eq!(partial(&mut g, call, 0).unwrap_err().kind, Kind::Error);
    assert_eq!(partial(&mut g, call, 7).unwrap_err().kind, Kind::Bug);

    // Import registers a function with its partials once; a known function is reused.
    let mut h = Graph::new(Semantics::Algebraic);
    let (u, v) = (h.input("u"), h.input("v"));
    let other = h.register(ExternalFunction::new("other", 1, |a| a[0]));
    let both = g.external(spline, &[y, x]);
    let both = g.add(both, by_x);
    let imported = h.import(&g, &[both], &[u, v]).unwrap()[0];
    let again = h.import(&g, &[both], &[u, v]).unwrap()[0];
    assert_eq!(imported, again);
    assert_eq!(h.external_functions().len(), 4);
    assert!(h.external_function(other).is_some());
    assert_eq!(h.f64_at(&[3.0, 5.0], &[imported]).unwrap(), g.f64_at(&[3.0, 5.0], &[both]).unwrap());
    let call = h.reachable(&[imported]).iter().find(|id| h.short(*id) == "spline(v, u)").unwrap();
    let by_v = partial(&mut h, call, 0).unwrap();
    assert_eq!(h.f64_at(&[3.0, 5.0], &[by_v]).unwrap(), [30.0]);

    fn is_shared<T: Clone + Send + Sync + std::fmt::Debug>(_: &T) {}
    is_shared(&h);
}

#[test]
fn errors_of_evaluation_say_what_is_missing() {
    let mut g = Graph::new(Semantics::Algebraic);
    let (x, y) = (g.input("x"), g.input("speed"));
    let s = g.add(x, y);
    assert_eq!(g.f64_at(&[1.0], &[x]).unwrap(), [1.0]);
    let error = g.f64_at(&[1.0], &[s]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error: no value for the input `speed` (help: give one value for each of the 2 inputs, in their order)"
    );
}
