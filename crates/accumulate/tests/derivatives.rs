//! Derivatives of scalar graphs by every strategy, against dual numbers.
#![allow(clippy::unwrap_used)]

mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::check::{self, Verdict};
use chainrule_accumulate::derive::{self, Options, gradient, hessian, hessian_vector, higher, jacobian, resolve};
use chainrule_accumulate::{Column, Row};
use chainrule_graph::generate::{Options as Programs, Recipe};
use chainrule_graph::{Graph, NodeId, Semantics};
use chainrule_ops::Op;
use chainrule_search::{STRATEGIES, strategy};
use proptest::prelude::*;

fn all_options() -> impl Iterator<Item = Options> {
    STRATEGIES.iter().map(Options::new)
}

fn rows(roots: &[NodeId]) -> Vec<Row> {
    roots.iter().map(|r| Row::Root(*r)).collect()
}

fn columns(inputs: &[NodeId]) -> Vec<Column> {
    inputs.iter().map(|x| Column::Input(*x)).collect()
}

/// Accepts agreement; a point at a kink or an overflow proves nothing.
fn accepted(verdict: &Verdict) -> bool {
    !matches!(verdict, Verdict::Differs(_))
}

proptest! {
    #![proptest_config(support::config(400, 2))]

    #[test]
    fn jacobians_are_those_of_dual_numbers(
        bytes in proptest::collection::vec(any::<u8>(), 20..400),
        semantics in any::<bool>().prop_map(|strict| if strict { Semantics::Strict } else { Semantics::Algebraic }),
    ) {
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &Programs::new(25)).unwrap();
        let (mut g, roots) = recipe.simplified(semantics);
        let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
        let inside = check::in_domain(&g, &roots, &recipe.point).unwrap();
        for options in all_options() {
            let derived = jacobian(&mut g, &roots, &inputs, None, &options).unwrap();
            prop_assert_eq!(derived.report.rejected().count(), 0);
            if inside {
                let entries: Vec<_> = derived.entries().collect();
                let asked = (rows(&roots), columns(&inputs));
                let verdict =
                    check::derivative(&mut g, (&asked.0, &asked.1), None, &entries, std::slice::from_ref(&recipe.point));
                let verdict = verdict.unwrap();
                prop_assert!(accepted(&verdict), "{}: {verdict:?}\n{}", options.strategy.name, g.listing(&roots));
            }
        }
    }

    #[test]
    fn branches_not_taken_do_not_poison(bytes in proptest::collection::vec(any::<u8>(), 60..400)) {
        // Some operators are outside their domains, and choices are frequent.
        let mut programs = Programs::new(30);
        programs.in_domain = false;
        for (op, weight) in &mut programs.operators {
            *weight *= match op {
                Op::Select => 20,
                Op::Lt | Op::Le => 6,
                Op::Sqrt | Op::Log | Op::Asin => 8,
                _ => 1,
            };
        }
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &programs).unwrap();
        let (mut g, roots) = recipe.simplified(Semantics::Algebraic);
        let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
        let (asked_rows, asked_columns) = (rows(&roots), columns(&inputs));
        for (idx, root) in roots.iter().enumerate() {
            // A root inside its domain is compared; all roots are differentiated together.
            if !check::in_domain(&g, &[*root], &recipe.point).unwrap() {
                continue;
            }
            for options in all_options() {
                let derived = jacobian(&mut g, &roots, &inputs, None, &options).unwrap();
                let entries: Vec<_> =
                    derived.entries().filter(|e| e.0 == idx).map(|(_, column, node)| (0, column, node)).collect();
                let points = std::slice::from_ref(&recipe.point);
                let asked = (&asked_rows[idx..=idx], asked_columns.as_slice());
                let verdict = check::derivative(&mut g, asked, None, &entries, points).unwrap();
                prop_assert!(accepted(&verdict), "{}: {verdict:?}\n{}", options.strategy.name, g.listing(&[*root]));
            }
        }
    }

    #[test]
    fn hessians_are_those_of_dual_numbers_on_the_gradient(bytes in proptest::collection::vec(any::<u8>(), 20..200)) {
        // The gradient comes from reverse mode and was checked above; its derivative comes from duals.
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &Programs::new(12)).unwrap();
        let (mut g, roots) = recipe.simplified(Semantics::Algebraic);
        let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
        let first = gradient(&mut g, roots[0], &inputs, &Options::new(strategy("reverse").unwrap())).unwrap();
        let first = first.dense(&mut g).swap_remove(0);
        let needed: Vec<NodeId> = first.iter().copied().chain([roots[0]]).collect();
        prop_assume!(check::in_domain(&g, &needed, &recipe.point).unwrap());
        let one = g.constant(0.75);
        let direction: Vec<(NodeId, NodeId)> = inputs.iter().map(|x| (*x, one)).collect();
        for options in all_options() {
            let second = hessian(&mut g, roots[0], &inputs, &options).unwrap();
            for (r, c, node) in second.entries() {
                prop_assert_eq!(second.get(c, r), Some(node));
            }
            // The computed triangle: the other one may be zero in the graph where this one cancels.
            let entries: Vec<_> = second.entries().filter(|e| e.1 <= e.0).collect();
            let lower: Vec<(usize, usize)> =
                (0..inputs.len()).flat_map(|r| (0..=r).map(move |c| (r, c))).collect();
            let points = std::slice::from_ref(&recipe.point);
            let asked = (rows(&first), columns(&inputs));
            let verdict =
                check::derivative(&mut g, (&asked.0, &asked.1), Some(&lower), &entries, points).unwrap();
            prop_assert!(accepted(&verdict), "{}: {verdict:?}\n{}", options.strategy.name, g.listing(&roots[..1]));
            let product = hessian_vector(&mut g, roots[0], &inputs, &direction, &options).unwrap();
            let entries: Vec<_> = product.entries().collect();
            let along = [Column::Direction(direction.clone())];
            let verdict = check::derivative(&mut g, (&asked.0, &along), None, &entries, points).unwrap();
            prop_assert!(accepted(&verdict), "{}: {verdict:?}", options.strategy.name);
        }
    }

    #[test]
    fn products_with_vectors_and_pairs(bytes in proptest::collection::vec(any::<u8>(), 20..300), ask in any::<u16>()) {
        let recipe = Recipe::random(&mut Unstructured::new(&bytes), &Programs::new(20)).unwrap();
        let (mut g, mut roots) = recipe.simplified(Semantics::Algebraic);
        let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
        // An input, a constant and a repeated root among the roots; weights that are nodes themselves.
        roots.extend([inputs[1], g.constant(3.0), roots[0]]);
        prop_assume!(check::in_domain(&g, &roots, &recipe.point).unwrap());
        let half = g.constant(0.5);
        let asked_rows: Vec<Row> = rows(&roots).into_iter().chain([
            Row::Weighted(roots.iter().map(|r| (*r, inputs[0])).collect()),
            Row::Weighted(vec![(roots[0], half)]),
        ]).collect();
        let asked_columns: Vec<Column> = columns(&inputs).into_iter().chain([
            Column::Input(inputs[2]),
            Column::Direction(vec![(inputs[0], roots[0]), (inputs[2], half), (inputs[0], half)]),
        ]).collect();
        let pairs: Vec<(usize, usize)> = (0..asked_rows.len() * asked_columns.len())
            .filter(|i| ask >> (i % 13) & 1 == 1)
            .map(|i| (i / asked_columns.len(), i % asked_columns.len()))
            .collect();
        for options in all_options() {
            for pairs in [None, Some(pairs.as_slice())] {
                let derived = derive::derive(&mut g, &asked_rows, &asked_columns, pairs, &options).unwrap();
                let entries: Vec<_> = derived.entries().collect();
                prop_assert!(pairs.is_none_or(|p| entries.iter().all(|e| p.contains(&(e.0, e.1)))));
                let points = std::slice::from_ref(&recipe.point);
                let verdict =
                    check::derivative(&mut g, (&asked_rows, &asked_columns), pairs, &entries, points).unwrap();
                prop_assert!(accepted(&verdict), "{}: {verdict:?}\n{}", options.strategy.name, g.listing(&roots));
            }
        }
    }
}

/// Returns `if x > 0 then a else b`.
fn if_positive(g: &mut Graph, x: NodeId, a: NodeId, b: NodeId) -> NodeId {
    let zero = g.constant(0.0);
    let positive = g.apply(Op::Lt, &[zero, x]);
    g.select(positive, a, b)
}

#[test]
fn a_branch_not_taken_does_not_poison() {
    let mut g = Graph::new(Semantics::Algebraic);
    let (x, y) = (g.input("x"), g.input("y"));
    let zero = g.constant(0.0);
    let root = g.apply(Op::Sqrt, &[x]);
    let log = g.apply(Op::Log, &[root]);
    let guarded = if_positive(&mut g, x, log, zero);
    // Nested: the inner condition is only evaluated if the outer one holds.
    let inverse = g.apply(Op::Div, &[y, root]);
    let inner = if_positive(&mut g, y, inverse, log);
    let nested = if_positive(&mut g, x, inner, y);
    // A node used by both branches of another condition, behind a product.
    let a = g.mul(root, y);
    let b = g.add(log, y);
    let both = if_positive(&mut g, y, a, b);
    let times = g.mul(both, log);
    let squared = g.mul(times, times);
    let deep = if_positive(&mut g, x, squared, y);
    // Two branches of different conditions share `root`, which is NaN if neither is taken.
    let xy = g.mul(x, y);
    let left = if_positive(&mut g, x, log, y);
    let right = if_positive(&mut g, x, root, xy);
    let shared = g.mul(left, right);
    // `root` is also a root of its own: only that root is NaN.
    let roots = [guarded, nested, deep, shared, root];
    let at = |g: &Graph, nodes: &[NodeId], point: &[f64; 2]| g.f64_at(point, nodes).unwrap();
    for options in all_options() {
        let j = jacobian(&mut g, &roots, &[x, y], None, &options).unwrap().dense(&mut g);
        let name = options.strategy.name;
        for (px, py) in [(-1.0, 2.0), (0.0, 2.0), (-1.0, -2.0), (0.0, -0.5)] {
            let p = [px, py];
            assert_eq!(at(&g, &j[0], &p), [0.0, 0.0], "{name}, guarded at {p:?}");
            assert_eq!(at(&g, &j[1], &p), [0.0, 1.0], "{name}, nested at {p:?}");
            assert_eq!(at(&g, &j[2], &p), [0.0, 1.0], "{name}, deep at {p:?}");
            assert_eq!(at(&g, &j[3], &p), [py * py, 2.0 * px * py], "{name}, shared at {p:?}");
        }
        // d log(sqrt x) = 1/(2x).
        let value = at(&g, &j[0][..1], &[4.0, 1.0])[0];
        assert!((value - 0.125).abs() < 1e-15, "{name}: {value}");
        let h = hessian(&mut g, deep, &[x, y], &options).unwrap().dense(&mut g);
        for row in &h {
            assert_eq!(at(&g, row, &[-1.0, -2.0]), [0.0, 0.0], "{name}, second derivative");
        }
        for root in [guarded, nested, deep, shared] {
            let entries: Vec<_> = jacobian(&mut g, &[root], &[x, y], None, &options).unwrap().entries().collect();
            let points = check::points(&g, &[root], 5, 8).unwrap();
            let asked = (rows(&[root]), columns(&[x, y]));
            let verdict = check::derivative(&mut g, (&asked.0, &asked.1), None, &entries, &points).unwrap();
            assert!(verdict.agrees(), "{name}: {verdict:?}");
        }
    }
}

#[test]
fn figures_of_the_papers() {
    let mut g = Graph::new(Semantics::Algebraic);
    let x = g.input("x");
    // D*, figure 2: f = sin(cos x) * cos(cos x).
    let c = g.apply(Op::Cos, &[x]);
    let (s, cc) = (g.apply(Op::Sin, &[c]), g.apply(Op::Cos, &[c]));
    let f = g.mul(s, cc);
    let expected = |x: f64| -(2.0 * x.cos()).cos() * x.sin();
    for options in all_options() {
        let d = gradient(&mut g, f, &[x], &options).unwrap();
        let value = g.f64_at(&[0.7], &d.nodes).unwrap()[0];
        assert!((value - expected(0.7)).abs() < 1e-15, "{}", options.strategy.name);
    }
}

#[test]
fn structural_zeros_and_cut_sums() {
    let mut g = Graph::new(Semantics::Algebraic);
    let (x, y, z) = (g.input("x"), g.input("y"), g.input("z"));
    let floor = g.apply(Op::Floor, &[y]);
    let product = g.mul(x, floor);
    let three = g.constant(3.0);
    let j = jacobian(&mut g, &[product, three, z], &[x, y, z], None, &Options::default()).unwrap();
    assert_eq!(j.pattern.coo(), [(0, 0), (2, 2)]);
    assert_eq!(j.get(0, 0), Some(floor));
    assert!(jacobian(&mut g, &[product], &[floor], None, &Options::default()).is_err());
    let empty = jacobian(&mut g, &[], &[], None, &Options::default()).unwrap();
    assert_eq!(empty.pattern.shape(), (0, 0));
}

#[test]
fn higher_orders_once_for_all_orders_of_variables() {
    let mut g = Graph::new(Semantics::Algebraic);
    let (x, y) = (g.input("x"), g.input("y"));
    // f = x^3 y^2: f_xxy = 12 x y, f_xyy = 6 x^2, f_xxx = 6 y^2.
    let (x2, y2) = (g.mul(x, x), g.mul(y, y));
    let x3 = g.mul(x2, x);
    let f = g.mul(x3, y2);
    let tensor = higher(&mut g, f, &[x, y], 3, &Options::default()).unwrap();
    let at = |g: &Graph, node: Option<NodeId>| g.f64_at(&[2.0, 3.0], &[node.unwrap()]).unwrap()[0];
    assert_eq!(at(&g, tensor.get(&[0, 1, 0])), 72.0);
    assert_eq!(tensor.get(&[0, 1, 0]), tensor.get(&[1, 0, 0]));
    assert_eq!(at(&g, tensor.get(&[1, 1, 0])), 24.0);
    assert_eq!(at(&g, tensor.get(&[0, 0, 0])), 54.0);
    assert_eq!(tensor.get(&[1, 1, 1]), None);
    // The same inside an expression: d(d(f, x) + y, [x, y]) = f_xxy.
    let fx = g.derivative(f, &[x]).unwrap();
    let sum = g.add(fx, y);
    let outer = g.derivative(sum, &[x, y]).unwrap();
    let resolved = resolve(&mut g, &[outer, fx, x], &Options::default()).unwrap();
    assert_eq!(g.f64_at(&[2.0, 3.0], &resolved).unwrap(), [72.0, 108.0, 2.0]);
}
