//! A million nodes, or fewer if fewer random cases run: no stack overflow, no quadratic time.

use chainrule_graph::generate::{chain, layered};
use chainrule_graph::{Graph, NodeId, Semantics, counts};
use chainrule_ops::Op;

/// Returns the number of nodes.
fn size() -> usize {
    chainrule_cases::cases(1_000_000).min(1_000_000) as usize
}

fn walk(graph: &Graph, roots: &[NodeId], inputs: &[f64]) {
    let values = graph.f64_at(inputs, roots).expect("a value for each input");
    let (small, small_roots) = graph.extract(roots);
    assert_eq!(
        small.len(),
        graph
            .reachable(roots)
            .iter()
            .chain(graph.inputs().iter().map(|i| i.1))
            .collect::<chainrule_graph::NodeSet>()
            .len()
    );
    assert_eq!(small.f64_at(inputs, &small_roots).expect("the same inputs"), values);
    assert!(values.iter().all(|v| v.is_finite()));
    assert_eq!(counts(&small, &small_roots), counts(graph, roots));
    assert_eq!(small.depth(&small_roots), graph.depth(roots));
    let (again, again_roots) = small.extract(&small_roots);
    assert!(again_roots == small_roots && again.ids().all(|id| again.node(id) == small.node(id)));
}

#[test]
fn a_chain() {
    for semantics in [Semantics::Strict, Semantics::Algebraic] {
        let n = size();
        let (mut graph, top) = chain(semantics, n);
        assert!(graph.len() >= n && graph.depth(&[top]) as usize >= n - 2);
        walk(&graph, &[top], &[0.3]);
        let x = graph.inputs()[0].1;
        let d = graph.derivative(top, &[x]).unwrap();
        assert_eq!(graph.leaf_derivatives(&[d]), [d]);
        assert!(graph.short(top).len() < 200);
        let mut other = Graph::new(semantics);
        let y = other.input("y");
        let imported = other.import(&graph, &[top], &[y]).unwrap();
        assert_eq!(other.f64_at(&[0.3], &imported).unwrap(), graph.f64_at(&[0.3], &[top]).unwrap());
    }
}

#[test]
fn a_random_graph() {
    let n = size();
    let (graph, roots) = layered(Semantics::Algebraic, n, 10, 5, 7);
    assert!(graph.len() >= n);
    walk(&graph, &roots, &[0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, 1.0]);
    let (same, same_roots) = layered(Semantics::Algebraic, n, 10, 5, 7);
    assert!(same_roots == roots && same.ids().all(|id| same.node(id) == graph.node(id)));
}

#[test]
fn deep_conditionals_and_sums_of_masks() {
    let mut g = Graph::new(Semantics::Algebraic);
    let (x, zero) = (g.input("x"), g.constant(0.0));
    let (mut nested, mut sum) = (x, zero);
    for i in 0..100_000 {
        let bound = g.constant(f64::from(i) - 50_000.5);
        let condition = g.apply(Op::Lt, &[x, bound]);
        nested = g.select(condition, nested, zero);
        let mask = g.select(condition, x, zero);
        sum = g.add(sum, mask);
    }
    let product = g.mul(nested, sum);
    let product = g.mul(product, x);
    let sum = g.mul(sum, x);
    // x is below the bound for i >= 50_002, so 49_998 of the masks are on, and the nest is off.
    assert_eq!(g.f64_at(&[0.75], &[product, sum]).unwrap(), [0.0, 49_998.0 * 0.75 * 0.75]);
}
