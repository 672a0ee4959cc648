//! Random kernels with arguments, equal for equal seeds.

use crate::case::{Case, interpret};
use crate::data::{Array, flatten, reals};
use arbitrary::Unstructured;
use chainrule_base::Name;
use chainrule_graph::generate::{Numbers, Options, Recipe};
use chainrule_graph::{Graph, NodeId, Semantics};
use chainrule_ir::generate::arrays;
use chainrule_ir::{Function, Size, Value, bind_sizes};
use chainrule_kernel::{GraphPort, Kernel, lower_function, lower_graph};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};

/// A change of a kernel before it is used, such as [`exact`](crate::exact()).
pub type Change = fn(&Kernel) -> Kernel;

/// Returns `n` random sources of at most `len` bytes, or as many as `CHAINRULE_RANDOM_CASES` makes of `n`.
///
/// # Panics
/// Never.
#[must_use]
pub fn sources(n: usize, seed: u64, len: usize) -> Vec<Vec<u8>> {
    let config =
        ProptestConfig { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    let bytes = proptest::collection::vec(any::<u8>(), len / 8..len);
    let n = chainrule_cases::cases(u32::try_from(n).unwrap());
    (0..n).map(|_| bytes.new_tree(&mut runner).unwrap().current()).collect()
}

/// Runs `check` on `cases` random sources of at most `len` bytes; shrinks failing ones.
///
/// # Panics
/// Panics if a check fails, with the smallest failing source.
pub fn random(cases: u32, seed: u64, len: usize, check: impl Fn(&mut Unstructured<'_>) -> Result<(), TestCaseError>) {
    random_bytes(cases, seed, 0..len, |bytes| check(&mut Unstructured::new(bytes)));
}

/// Runs half of `cases` on each of two threads, from different seeds; returns the sums of what `many` counts.
///
/// # Panics
/// As [`random`].
pub fn on_two_threads<const N: usize>(
    cases: u32,
    seed: u64,
    many: impl Fn(u32, u64) -> [usize; N] + Sync,
) -> [usize; N] {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| many(cases / 2, seed + 1000));
        let mut all = many(cases - cases / 2, seed);
        let other = other.join().unwrap_or_else(|failure| std::panic::resume_unwind(failure));
        all.iter_mut().zip(other).for_each(|(count, more)| *count += more);
        all
    })
}

/// As [`random`], on byte strings of such lengths.
///
/// # Panics
/// As [`random`].
pub fn random_bytes(
    cases: u32,
    seed: u64,
    lengths: std::ops::Range<usize>,
    check: impl Fn(&[u8]) -> Result<(), TestCaseError>,
) {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&proptest::collection::vec(any::<u8>(), lengths), |bytes| check(&bytes))
        .unwrap_or_else(|e| panic!("{e}"));
}

/// Returns the kernel of a graph: one array `x` of its inputs, one `y` of `roots`.
///
/// # Panics
/// Panics if a root is not in the graph.
#[must_use]
pub fn lower(graph: &Graph, roots: &[NodeId]) -> Kernel {
    let inputs: Vec<NodeId> = graph.inputs().iter().map(|(_, id)| *id).collect();
    let port = |name: &str, nodes: Vec<NodeId>| GraphPort {
        name: Name::new(name),
        shape: vec![nodes.len()].into(),
        nodes: nodes.into(),
    };
    lower_graph("random", graph, &[port("x", inputs)], &[port("y", roots.to_vec())]).unwrap()
}

/// Returns straight-line kernels of at most `steps` operations.
#[must_use]
pub fn graphs(n: usize, seed: u64, numbers: Numbers, steps: usize, change: Change) -> Vec<Case> {
    let options = Options { numbers, in_domain: false, max_roots: 4, ..Options::new(steps) };
    let case = |bytes: Vec<u8>| graph(&mut Unstructured::new(&bytes), &options, change);
    sources(n, seed, 40 * steps).into_iter().filter_map(case).collect()
}

/// Returns one such kernel.
#[must_use]
pub fn graph(u: &mut Unstructured<'_>, options: &Options, change: Change) -> Option<Case> {
    let recipe = Recipe::random(u, options).ok()?;
    let (mut graph, mut roots) = recipe.raw(Semantics::Strict);
    sprinkle_zeros(u, &mut graph, &mut roots);
    Some(Case { kernel: change(&lower(&graph, &roots)), inputs: vec![reals(&recipe.point)] })
}

/// Inserts zeros between the roots of a graph, as in sparse Jacobians: for half of the graphs, up to a hundred before
/// each root.
pub fn sprinkle_zeros(u: &mut Unstructured<'_>, graph: &mut Graph, roots: &mut Vec<NodeId>) {
    if !u.ratio(1, 2).unwrap_or(false) {
        return;
    }
    let zero = graph.constant(0.0);
    for root in std::mem::take(roots) {
        let n = u.int_in_range(0..=100).unwrap_or(0);
        roots.extend(std::iter::repeat_n(zero, n));
        roots.push(root);
    }
}

/// Returns the case of a function, if it can be lowered and the interpreter accepts the arguments.
fn lower_ir(function: &Function, args: &[Value<f64>], change: Change) -> Option<Case> {
    // A size that depends on data is a limitation of the lowering.
    let kernel = change(&lower_function(function).ok()?);
    let case = Case { kernel, inputs: inputs(function, args)? };
    interpret(&case).is_ok().then_some(case)
}

/// Returns arguments of `function` as its kernel takes them; `None` if its sizes do not fit.
///
/// # Panics
/// Panics if a size is negative.
#[must_use]
pub fn inputs(function: &Function, args: &[Value<f64>]) -> Option<Vec<Array>> {
    let sizes = bind_sizes(function, args).ok()?;
    let size = |s: &Size| usize::try_from(sizes.eval(s).unwrap()).unwrap();
    Some(function.params.iter().zip(args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size)).collect())
}

/// Returns a function with more loops than those of [`function`], smooth or not: for sizes with many iterations.
#[must_use]
pub fn deep_function(u: &mut Unstructured<'_>) -> Option<Function> {
    let options = chainrule_ir::generate::Options {
        depth: 4,
        fuel: 80,
        smooth: u.ratio(1, 2).unwrap_or(true),
        derivatives: false,
        transposed: false,
        ..Default::default()
    };
    chainrule_ir::generate::function(u, options).ok()
}

/// Returns kernels of such functions, at sizes with whole blocks of lanes and remainders.
#[must_use]
pub fn deep_functions(n: usize, seed: u64, change: Change) -> Vec<Case> {
    let case = |bytes: Vec<u8>| deep_case(&mut Unstructured::new(&bytes), change);
    sources(n, seed, 3000).into_iter().filter_map(case).collect()
}

/// Returns one such kernel.
#[must_use]
pub fn deep_case(u: &mut Unstructured<'_>, change: Change) -> Option<Case> {
    const LONGEST: i64 = 20;
    let function = deep_function(u)?;
    let kernel = change(&lower_function(&function).ok()?);
    let case = Case { kernel, inputs: inputs_up_to(u, &function, LONGEST)? };
    interpret(&case).is_ok().then_some(case)
}

/// Returns arguments for a function as its kernel takes them, of sizes up to `longest`.
#[must_use]
pub fn inputs_up_to(u: &mut Unstructured<'_>, function: &Function, longest: i64) -> Option<Vec<Array>> {
    inputs(function, &chainrule_ir::generate::arguments_up_to(u, function, longest).ok()?)
}

/// Returns kernels of functions of the array IR, with all its forms of loops; `smooth` ones have values near 1.
#[must_use]
pub fn functions(n: usize, seed: u64, smooth: bool, change: Change) -> Vec<Case> {
    let case = |bytes: Vec<u8>| function(&mut Unstructured::new(&bytes), smooth, change);
    sources(n, seed, 3000).into_iter().filter_map(case).collect()
}

/// Returns one such kernel.
#[must_use]
pub fn function(u: &mut Unstructured<'_>, smooth: bool, change: Change) -> Option<Case> {
    let options =
        chainrule_ir::generate::Options { derivatives: false, transposed: false, smooth, ..Default::default() };
    let case = chainrule_ir::generate::case(u, options).ok()?;
    lower_ir(&case.function, &case.args, change)
}

/// Returns kernels of functions that move arrays: loop states that are swapped, passed on, or replaced by parts of one
/// another.
#[must_use]
pub fn array_functions(n: usize, seed: u64, change: Change) -> Vec<Case> {
    let case = |bytes: Vec<u8>| array_function(&mut Unstructured::new(&bytes), change);
    sources(n, seed, 1500).into_iter().filter_map(case).collect()
}

/// Returns one such kernel.
#[must_use]
pub fn array_function(u: &mut Unstructured<'_>, change: Change) -> Option<Case> {
    let (function, args) = arrays::case(u, 40).ok()?;
    lower_ir(&function, &args, change)
}
