//! Random kernels: emitted, compiled in one program, run, and compared with the interpreter.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;
// Functions that move arrays about: states of loops that are swapped, passed on, replaced by parts of one another.
#[path = "../../kernel/tests/support/arrays.rs"]
mod arrays;

use arbitrary::Unstructured;
use chainrule_base::Name;
use chainrule_c::Options;
use chainrule_graph::generate::{self, Numbers, Recipe};
use chainrule_graph::{Graph, NodeId, Semantics};
use chainrule_ir::{Function, Size, Value, bind_sizes};
use chainrule_kernel::{GraphPort, Kernel, lower_function, lower_graph};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use support::{Case, Data, FLAGS, Outcome, compiler, exact, flatten, interpret, reals, run_c, supports};

/// `n` random sources of at most `len` bytes.
fn sources(n: usize, seed: u64, len: usize) -> Vec<Vec<u8>> {
    let config =
        ProptestConfig { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    let bytes = proptest::collection::vec(any::<u8>(), len / 8..len);
    (0..n).map(|_| bytes.new_tree(&mut runner).unwrap().current()).collect()
}

fn lower(graph: &Graph, roots: &[NodeId]) -> Kernel {
    let inputs: Vec<NodeId> = graph.inputs().iter().map(|(_, id)| *id).collect();
    let port =
        |name: &str, nodes: Vec<NodeId>| GraphPort { name: Name::new(name), shape: vec![nodes.len() as i64], nodes };
    lower_graph("random", graph, &[port("x", inputs)], &[port("y", roots.to_vec())]).unwrap()
}

fn graphs(n: usize, seed: u64, numbers: Numbers, steps: usize) -> Vec<Case> {
    let options = generate::Options { numbers, in_domain: false, max_roots: 4, ..generate::Options::new(steps) };
    let recipe = |bytes: Vec<u8>| Recipe::random(&mut Unstructured::new(&bytes), &options).ok();
    let case = |recipe: Recipe| {
        let (graph, roots) = recipe.raw(Semantics::Strict);
        Case { kernel: exact(&lower(&graph, &roots)), inputs: vec![reals(&recipe.point)] }
    };
    sources(n, seed, 40 * steps).into_iter().filter_map(recipe).map(case).collect()
}

/// The case of a function, if it can be lowered and the interpreter takes the arguments.
fn lower_ir(function: &Function, args: &[Value<f64>], change: fn(&Kernel) -> Kernel) -> Option<Case> {
    // A size that depends on data is a limitation of the lowering.
    let kernel = change(&lower_function(function).ok()?);
    let sizes = bind_sizes(function, args).ok()?;
    let size = |s: &Size| usize::try_from(sizes.eval(s).unwrap()).unwrap();
    let inputs = function.params.iter().zip(args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size));
    let case = Case { kernel, inputs: inputs.collect() };
    interpret(&case).is_ok().then_some(case)
}

fn functions(n: usize, seed: u64, smooth: bool) -> Vec<Case> {
    let options = chainrule_ir::generate::Options { derivatives: false, smooth, ..Default::default() };
    let change: fn(&Kernel) -> Kernel = if smooth { Kernel::clone } else { exact };
    let case = |bytes: Vec<u8>| {
        let case = chainrule_ir::generate::case(&mut Unstructured::new(&bytes), options).ok()?;
        lower_ir(&case.function, &case.args, change)
    };
    sources(n, seed, 3000).into_iter().filter_map(case).collect()
}

fn array_functions(n: usize, seed: u64) -> Vec<Case> {
    let case = |bytes: Vec<u8>| {
        let (function, args) = arrays::case(&mut Unstructured::new(&bytes), 40).ok()?;
        lower_ir(&function, &args, exact)
    };
    sources(n, seed, 1500).into_iter().filter_map(case).collect()
}

fn assert_same(cases: &[Case], found: &[Outcome]) {
    for (case, found) in cases.iter().zip(found) {
        let expected = interpret(case).unwrap();
        assert_eq!(found, &expected, "{}\n{:?}", case.kernel, case.inputs);
    }
}

#[test]
fn graphs_compute_what_the_interpreter_computes_bit_for_bit() {
    let Some(cc) = compiler() else { return };
    let mut cases = graphs(150, 1, Numbers::Tame, 60);
    cases.extend(graphs(150, 2, Numbers::Special, 60));
    assert!(cases.len() > 200, "{}", cases.len());
    assert_same(&cases, &run_c(cc, &FLAGS, &cases, &Options::default()));
}

#[test]
fn functions_compute_what_the_interpreter_computes_bit_for_bit() {
    let Some(cc) = compiler() else { return };
    let mut cases = functions(400, 3, false);
    cases.extend(array_functions(200, 9));
    let with_workspace = cases.iter().filter(|case| support::uses_workspace(&case.kernel)).count();
    println!("{} functions, {with_workspace} with workspace", cases.len());
    assert!(cases.len() > 500 && with_workspace > 100, "{} {with_workspace}", cases.len());
    assert_same(&cases, &run_c(cc, &FLAGS, &cases, &Options::default()));
}

#[test]
fn cuts_change_nothing() {
    let Some(cc) = compiler() else { return };
    let mut cases = functions(150, 4, false);
    cases.extend(array_functions(100, 14));
    cases.extend(graphs(50, 5, Numbers::Tame, 60));
    for chunk in [1, 2, 7, 25] {
        assert_same(&cases, &run_c(cc, &FLAGS, &cases, &Options { chunk, ..Options::default() }));
    }
}

#[test]
fn nothing_undefined_happens() {
    let Some(cc) = compiler() else { return };
    let flags = ["-std=c99", "-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"];
    if !supports(cc, &flags) {
        println!("skipped: the C compiler has no sanitizers");
        return;
    }
    let mut cases = functions(150, 6, false);
    cases.extend(array_functions(100, 16));
    cases.extend(graphs(30, 7, Numbers::Special, 60));
    assert_same(&cases, &run_c(cc, &flags, &cases, &Options { chunk: 20, ..Options::default() }));
}

/// Functions of `math.h` may differ in their last places from those of the interpreter. In smooth functions, whose
/// values stay near 1, such differences grow little: they stay below `TOLERANCE`.
#[test]
fn smooth_functions_with_functions_of_math_h_agree_closely() {
    const TOLERANCE: f64 = 1e-9;
    let Some(cc) = compiler() else { return };
    let cases = functions(300, 8, true);
    let found = run_c(cc, &FLAGS, &cases, &Options::default());
    let mut compared = 0;
    for (case, found) in cases.iter().zip(found) {
        let (Ok(expected), Ok(found)) = (interpret(case).unwrap(), found) else { panic!("{}", case.kernel) };
        for (expected, found) in expected.iter().zip(&found) {
            let (Data::Real(expected), Data::Real(found)) = (expected, found) else {
                assert_eq!(expected, found);
                continue;
            };
            for (a, b) in expected.iter().zip(found) {
                let close = (a - b).abs() <= TOLERANCE * (1.0 + a.abs());
                assert!(close || a == b || (a.is_nan() && b.is_nan()), "{a} and {b}\n{}", case.kernel);
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
}
