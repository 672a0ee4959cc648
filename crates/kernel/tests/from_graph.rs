//! Lowered scalar graphs against the reference evaluation of the graph, bit for bit.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::{Result, Unstructured};
use chainrule_backend_tests::generate::sprinkle_zeros;
use chainrule_base::Id;
use chainrule_graph::generate::{Numbers, Options, Recipe, chain, layered};
use chainrule_graph::{ExternalFunction, Graph, NodeId, Semantics};
use chainrule_kernel::{
    GraphPort, Instr, Kernel, Products, Stmt, Zeros, contract, counts, lower_graph, lower_graph_with, verify,
};
use chainrule_ops::Op;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::fmt::Write;
use support::{Array, Scalar, run};

fn inputs(graph: &Graph) -> Vec<GraphPort<'static>> {
    let nodes: Vec<NodeId> = graph.inputs().iter().map(|(_, node)| *node).collect();
    vec![GraphPort { name: "x".into(), shape: vec![nodes.len()].into(), nodes: nodes.into() }]
}

/// A listing with its registers numbered in the order in which they stand in it.
fn renumbered(kernel: &Kernel) -> String {
    let (mut text, mut numbers, mut n) = (String::new(), vec![None; kernel.regs.len()], 0);
    for token in kernel.to_string().split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let end = token.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(token.len());
        match token[..end].strip_prefix('r').and_then(|digits| digits.parse::<usize>().ok()) {
            Some(register) => {
                let number = *numbers[register].get_or_insert(n);
                n = n.max(number + 1);
                write!(text, "r{number}{}", &token[end..]).unwrap();
            }
            None => text.push_str(token),
        }
    }
    text
}

fn lower(graph: &Graph, roots: &[NodeId]) -> Kernel {
    // The same roots twice: once one by one, once as a matrix with one row.
    let row = GraphPort { name: "row".into(), shape: vec![1, roots.len()].into(), nodes: roots.into() };
    let mut outputs: Vec<GraphPort<'_>> = (0..)
        .zip(roots)
        .map(|(idx, root)| GraphPort {
            name: format!("y{idx}").into(),
            shape: vec![].into(),
            nodes: vec![*root].into(),
        })
        .collect();
    outputs.push(row);
    let kernel = lower_graph("f", graph, &inputs(graph), &outputs).unwrap();
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    let fused = lower_graph_with("f".into(), graph, &inputs(graph), &outputs, Products::Fused).unwrap();
    assert_eq!(verify(&fused), Ok(()), "{fused}");
    let mut contracted = kernel.clone();
    contract(&mut contracted);
    assert_eq!(renumbered(&fused), renumbered(&contracted), "products are fused as `contract` does");
    kernel
}

fn check(graph: &Graph, roots: &[NodeId], point: &[f64]) -> Kernel {
    let kernel = lower(graph, roots);
    let input = Array { shape: vec![point.len() as i64], data: point.iter().map(|x| Scalar::Real(*x)).collect() };
    let found = run(&kernel, &[input]).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    let expected: Vec<Scalar> = graph.f64_at(point, roots).unwrap().into_iter().map(Scalar::Real).collect();
    for (idx, value) in expected.iter().enumerate() {
        assert_eq!(found[idx].data, [*value], "result {idx} of\n{kernel}");
    }
    assert_eq!(found[expected.len()].data, expected);
    kernel
}

fn random(bytes: &[u8], numbers: Numbers, semantics: Semantics, raw: bool) -> Result<()> {
    let options = Options { numbers, in_domain: numbers == Numbers::Tame, ..Options::new(60) };
    let mut u = Unstructured::new(bytes);
    let recipe = Recipe::random(&mut u, &options)?;
    let (mut graph, mut roots) = if raw { recipe.raw(semantics) } else { recipe.simplified(semantics) };
    sprinkle_zeros(&mut u, &mut graph, &mut roots);
    let kernel = check(&graph, &roots, &recipe.point);
    assert_eq!(lower(&graph, &roots).to_string(), kernel.to_string(), "lowering is deterministic");
    let (asked, done) = (chainrule_graph::counts(&graph, &roots), counts(&kernel, &[]));
    let of = |counts: &chainrule_ops::Counts| [counts.arithmetic(), counts.call];
    if graph.has_steps() {
        // Composite operators share their steps.
        assert!(of(&done).iter().zip(of(&asked)).all(|(done, asked)| *done <= asked), "{kernel}");
    } else {
        // Conversions of truth values add comparisons; nothing else is done that the graph does not ask for.
        assert!(done.logic >= asked.logic);
        assert_eq!(of(&done), of(&asked));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: chainrule_cases::cases(400), rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn random_graphs_keep_their_values(
        bytes in prop::collection::vec(any::<u8>(), 0..800),
        special in any::<bool>(),
        semantics in any::<bool>().prop_map(|strict| if strict { Semantics::Strict } else { Semantics::Algebraic }),
        raw in any::<bool>(),
    ) {
        let numbers = if special { Numbers::Special } else { Numbers::Tame };
        random(&bytes, numbers, semantics, raw).unwrap();
    }
}

#[test]
fn users_functions_are_called_and_only_those_needed_are_listed() {
    let mut graph = Graph::new(Semantics::Algebraic);
    let (x, y) = (graph.input("x"), graph.input("y"));
    let unused = graph.register(ExternalFunction::new("unused", 1, |_| 0.0));
    let f = graph.register(ExternalFunction::new("area", 2, |a| a[0] * a[1]).with_c_name("my_area"));
    let g = graph.register(ExternalFunction::new("third", 1, |a| a[0] / 3.0));
    graph.external(unused, &[x]);
    let inner = graph.external(g, &[y]);
    let outer = graph.external(f, &[inner, x]);
    let again = graph.external(f, &[x, x]);
    let kernel = check(&graph, &[outer, again], &[0.5, -2.0]);
    let names: Vec<&str> = kernel.externals.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["third", "area"]);
    assert_eq!(kernel.externals[1].c_name.as_deref(), Some("my_area"));
    assert_eq!(counts(&kernel, &[]).call, 3);
}

#[test]
fn inputs_constants_and_repeated_results_are_stored_directly() {
    let mut graph = Graph::new(Semantics::Algebraic);
    let (x, c) = (graph.input("x"), graph.constant(2.5));
    let sum = graph.add(x, c);
    check(&graph, &[x, c, x, c, sum, sum], &[0.25]);
    check(&graph, &[], &[0.25]);
}

#[test]
fn results_that_are_zero_are_no_instructions() {
    let mut graph = Graph::new(Semantics::Strict);
    let (x, zero, negative) = (graph.input("x"), graph.constant(0.0), graph.constant(-0.0));
    let root = graph.raw(Op::Sub, &[zero, x]);
    let mut roots = vec![zero; 100];
    (roots[1], roots[7], roots[70]) = (root, negative, x);
    let kernel = check(&graph, &roots, &[0.25]);
    let [Stmt::Straight(code)] = kernel.body.as_slice() else { panic!("one block: {kernel}") };
    let stores = code.iter().filter(|instr| matches!(instr, Instr::Store { .. })).count();
    assert_eq!(stores, 2 * 3, "of each of the others, alone and in the row: {kernel}");
    let (alone, in_row): (Vec<Zeros>, Vec<Zeros>) = kernel.zeros.iter().partition(|zeros| zeros.buffer.index() <= 100);
    assert!(alone.iter().all(|zeros| (zeros.first, zeros.which) == (0, 1)), "{kernel}");
    let elements: Vec<i64> = in_row.iter().flat_map(|zeros| zeros.elements()).collect();
    let expected: Vec<i64> = (0..100).filter(|i| ![1, 7, 70].contains(i)).collect();
    assert_eq!((alone.len(), in_row.len(), elements), (97, 2, expected));
}

#[test]
fn an_unresolved_derivative_is_a_bug_and_not_a_number() {
    let mut graph = Graph::new(Semantics::Algebraic);
    let x = graph.input("x");
    let sine = graph.apply(Op::Sin, &[x]);
    let derivative = graph.derivative(sine, &[x]).unwrap();
    let output = GraphPort { name: "y".into(), shape: vec![].into(), nodes: vec![derivative].into() };
    let errors = lower_graph("f", &graph, &inputs(&graph), &[output]).unwrap_err();
    insta::assert_snapshot!(errors, @r"bug in Chainrule: a scalar graph cannot be lowered: a derivative in it was not worked out");
}

/// Returns the register pressure: the maximum number of registers live at one time.
fn pressure(kernel: &Kernel) -> usize {
    let [Stmt::Straight(code)] = kernel.body.as_slice() else { return 0 };
    let mut last = vec![0; kernel.regs.len()];
    for (idx, instr) in code.iter().enumerate() {
        instr.for_each_use(|reg| last[chainrule_base::Id::index(reg)] = idx);
    }
    let mut dying = vec![0; code.len()];
    last.iter().for_each(|idx| dying[*idx] += 1);
    let (mut alive, mut most) = (0, 0);
    for (idx, instr) in code.iter().enumerate() {
        alive += usize::from(instr.dst().is_some());
        most = most.max(alive);
        alive -= if idx == 0 { 0 } else { dying[idx].min(alive) };
    }
    most
}

#[test]
fn a_balanced_tree_needs_few_registers() {
    let mut graph = Graph::new(Semantics::Strict);
    let mut level: Vec<NodeId> = (0..1024).map(|i| graph.input(format!("x{i}"))).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| graph.raw(Op::Mul, pair)).collect();
    }
    let kernel = lower(&graph, &level);
    assert!(pressure(&kernel) <= 12, "{}", pressure(&kernel));
    // A comb has its long side computed first, on whichever side it hangs.
    for left in [true, false] {
        let mut graph = Graph::new(Semantics::Strict);
        let mut top = graph.input("x0");
        for i in 1..1000 {
            let x = graph.input(format!("x{i}"));
            let tooth = graph.raw(Op::Exp, &[x]);
            top = graph.raw(Op::Sub, &if left { [top, tooth] } else { [tooth, top] });
        }
        let kernel = lower(&graph, &[top]);
        assert!(pressure(&kernel) <= 4, "{}", pressure(&kernel));
    }
}

#[test]
fn a_million_nodes_lower_in_a_chain_and_at_random() {
    let (graph, top) = chain(Semantics::Algebraic, 1_000_000);
    check(&graph, &[top], &[0.5]);
    let (graph, roots) = layered(Semantics::Algebraic, 1_000_000, 100, 50, 1);
    let point: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
    check(&graph, &roots, &point);
}
