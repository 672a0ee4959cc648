//! Random kernels against the reference evaluators, bit for bit; batches against single points.

mod support;

use chainrule_backend_tests::generate::{lower, random};
use chainrule_backend_tests::{Array, Data, flatten, reals};
use chainrule_cases::{cases, covers};
use chainrule_graph::Semantics;
use chainrule_graph::generate::{Numbers, Options, Recipe, chain, layered};
use chainrule_interpret::{LANES, Program};
use chainrule_ir::{Value, bind_sizes, evaluate};
use chainrule_kernel::lower_function;
use chainrule_ops::F64;
use proptest::prelude::*;
use std::cell::Cell;
use support::{Order, run, run_batch};

/// Returns points near `point`, enough for whole blocks of lanes and a remainder.
fn around(point: &[f64]) -> Vec<Vec<Array>> {
    let shifted = |p: usize| point.iter().map(|x| x + p as f64 / 64.0).collect::<Vec<f64>>();
    (0..LANES + 5).map(|p| vec![reals(&shifted(p))]).collect()
}

#[test]
fn graphs_have_the_value_that_graphs_have() {
    const KERNELS: u32 = 200;
    let in_lanes = Cell::new(0);
    for (seed, numbers, in_domain) in [(1, Numbers::Tame, true), (2, Numbers::Special, false)] {
        random(KERNELS, seed, 2000, |u| {
            let options = Options { numbers, in_domain, max_roots: 4, ..Options::new(60) };
            let Ok(recipe) = Recipe::random(u, &options) else { return Ok(()) };
            let (graph, roots) = recipe.raw(Semantics::Strict);
            let kernel = lower(&graph, &roots);
            let program = Program::new(&kernel).unwrap();
            let points = around(&recipe.point);
            let mut expected = Vec::new();
            for point in &points {
                let Data::Real(x) = &point[0].data else { unreachable!() };
                let result = vec![reals(&graph.f64_at(x, &roots).unwrap())];
                prop_assert_eq!(&run(&kernel, &program, point).unwrap(), &result, "{}", kernel);
                expected.push(result);
            }
            for order in [Order::Structures, Order::Arrays] {
                for lanes in [true, false] {
                    let (found, ran) = run_batch(&kernel, &program, &points, order, lanes).unwrap();
                    prop_assert_eq!(&found, &expected, "{:?} {} {}", order, lanes, kernel);
                    in_lanes.set(in_lanes.get() + u32::from(ran));
                }
            }
            Ok(())
        });
    }
    // Both layouts of each kernel of both seeds: straight-line code always runs in lanes.
    assert_eq!(in_lanes.get(), 4 * cases(KERNELS));
}

#[test]
fn functions_have_the_value_that_the_array_ir_gives_them() {
    let (ran, failed, in_lanes) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let options = chainrule_ir::generate::Options { derivatives: false, transposed: false, ..Default::default() };
    random(1500, 3, 3000, |u| {
        let Ok(case) = chainrule_ir::generate::case(u, options) else { return Ok(()) };
        let function = &case.function;
        // A size that depends on data is a limitation of the lowering.
        let Ok(kernel) = lower_function(function) else { return Ok(()) };
        let program = Program::new(&kernel).unwrap();
        let Ok(sizes) = bind_sizes(function, &case.args) else { return Ok(()) };
        let size = |s: &chainrule_ir::Size| usize::try_from(sizes.eval(s).unwrap()).unwrap();
        let leaves = |args: &[Value<f64>]| -> Vec<Array> {
            function.params.iter().zip(args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size)).collect()
        };
        let inputs = leaves(&case.args);
        let expected = match evaluate(function, &mut F64, &case.args) {
            Ok(expected) => expected,
            Err(failure) => {
                // Integers that no result needs are not computed, and do not overflow.
                let may_run = failure.message == "integer overflow";
                let fails = run(&kernel, &program, &inputs).is_err();
                prop_assert!(fails || may_run, "the meaning is a failure\n{}", kernel);
                failed.set(failed.get() + 1);
                return Ok(());
            }
        };
        let expected = flatten(function.result_type(), &expected, &size);
        let found = run(&kernel, &program, &inputs);
        prop_assert_eq!(found.as_ref(), Ok(&expected), "{}", kernel);
        ran.set(ran.get() + 1);

        // Other points: the same integers and sizes, other reals.
        let points: Vec<Vec<Array>> = (0..LANES + 3)
            .map(|p| {
                let moved = |arg: &Value<f64>| arg.map(&mut |x| x + p as f64 / 128.0);
                leaves(&case.args.iter().map(moved).collect::<Vec<_>>())
            })
            .collect();
        let single: Result<Vec<_>, _> = points.iter().map(|point| run(&kernel, &program, point)).collect();
        let Ok(single) = single else { return Ok(()) };
        for order in [Order::Structures, Order::Arrays] {
            let (found, lanes) = run_batch(&kernel, &program, &points, order, true).unwrap();
            prop_assert_eq!(&found, &single, "{:?} {}", order, kernel);
            in_lanes.set(in_lanes.get() + usize::from(lanes));
        }
        Ok(())
    });
    println!("{} ran, {} failed as they mean to, {} batches in lanes", ran.get(), failed.get(), in_lanes.get());
    covers!(ran.get() > 500, "{} ran", ran.get());
    covers!(in_lanes.get() > 100, "{} in lanes", in_lanes.get());
}

#[test]
fn a_million_nodes_compile_to_few_slots_and_run() {
    let (graph, top) = chain(Semantics::Strict, 1_000_000);
    let kernel = lower(&graph, &[top]);
    let program = Program::new(&kernel).unwrap();
    assert!(program.n_slots().0 <= 4, "{:?}", program.n_slots());
    let result = run(&kernel, &program, &[reals(&[0.7])]).unwrap();
    assert_eq!(result, [reals(&graph.f64_at(&[0.7], &[top]).unwrap())]);

    let (graph, roots) = layered(Semantics::Strict, 1_000_000, 5, 10, 1);
    let kernel = lower(&graph, &roots);
    let program = Program::new(&kernel).unwrap();
    assert!(program.n_slots().0 < 100_000, "{:?}", program.n_slots());
    let x = [0.1, -0.2, 0.3, 0.4, 1.0];
    assert_eq!(run(&kernel, &program, &[reals(&x)]).unwrap(), [reals(&graph.f64_at(&x, &roots).unwrap())]);
}
