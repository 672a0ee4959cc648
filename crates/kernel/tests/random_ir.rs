//! Random functions of the array IR, lowered, against the reference evaluator, bit for bit; and their
//! memory plans at random sizes.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::{Result, Unstructured};
use chainrule_base::Kind;
use chainrule_cases::covers;
use chainrule_graph::Semantics;
use chainrule_ir::difference::{directions, with_cotangent, with_direction};
use chainrule_ir::generate::{Case, Options, arguments, arrays, case, steps};
use chainrule_ir::{Function, Type, Value, evaluate};
use chainrule_kernel::{Buffer, Place, counts};
use chainrule_ops::F64;
use std::cell::Cell;

use support::reference::{compare, compare_within, lower, lower_with};

fn random(bytes: &[u8], options: Options, compared: &Cell<usize>) -> Result<()> {
    let mut u = Unstructured::new(bytes);
    let Case { function, args } = case(&mut u, options)?;
    let kernel = match lower(&function) {
        Ok(kernel) => kernel,
        Err(errors) => {
            assert!(
                errors.iter().all(|error| error.kind == Kind::Limitation),
                "{errors}\n{}",
                chainrule_ir::print(&function)
            );
            return Ok(());
        }
    };
    // What is added in place is added in another order.
    let close = if options.linear { 1e-9 } else { 0.0 };
    compared.set(compared.get() + usize::from(compare_within(&function, &kernel, &args, close)));
    let in_order = lower_with(&function, Semantics::Strict).unwrap();
    compare(&function, &in_order, &args);
    for _ in 0..2 {
        let args = arguments(&mut u, &function)?;
        compare_within(&function, &kernel, &args, close);
        compare(&function, &in_order, &args);
    }
    let zeros = vec![0; kernel.sizes.len()];
    assert!(counts(&kernel, &zeros).weight <= counts(&kernel, &vec![2; kernel.sizes.len()]).weight);
    Ok(())
}

fn many(cases: u32, seed: u64, bytes: usize, options: Options) -> usize {
    let compared = Cell::new(0);
    support::random(cases, seed, 0..bytes, |bytes| {
        random(bytes, options, &compared).unwrap();
    });
    compared.get()
}

fn options(depth: u32, fuel: u32) -> Options {
    Options { depth, fuel, derivatives: false, transposed: false, linear: false, ..Options::default() }
}

#[test]
fn random_functions_keep_their_values() {
    let compared = many(600, 11, 3000, options(3, 60));
    covers!(compared > 500, "only {compared} of 600 functions could be compared");
}

#[test]
fn sums_of_arrays_keep_their_values_but_for_their_order() {
    for (cases, seed, depth, fuel) in [(800, 14, 3, 60), (300, 15, 5, 200)] {
        let smooth = Options { smooth: true, linear: true, ..options(depth, fuel) };
        let compared = many(cases, seed, 3000, smooth);
        covers!(compared * 10 > cases as usize * 8, "only {compared} of {cases} functions could be compared");
    }
}

#[test]
fn deep_functions_keep_their_values() {
    let compared = many(150, 12, 12_000, options(6, 250));
    covers!(compared > 100, "only {compared} of 150 functions could be compared");
}

#[test]
fn functions_that_move_arrays_about_keep_their_values() {
    let buffers = Cell::new(0);
    support::random(1500, 13, 0..2000, |bytes| {
        let (function, args) = arrays::case(&mut Unstructured::new(bytes), 60).unwrap();
        chainrule_ir::verify(&function).unwrap();
        let kernel = lower(&function).unwrap_or_else(|errors| panic!("{errors}\n{function:?}"));
        assert!(compare(&function, &kernel, &args));
        buffers.set(buffers.get() + kernel.buffers.len() - kernel.inputs.len() - kernel.outputs.len());
    });
    covers!(buffers.get() > 5000, "only {} buffers in the workspace", buffers.get());
}

#[test]
fn states_that_are_updated_keep_their_values() {
    let compared = Cell::new(0);
    support::random(4000, 17, 0..1500, |bytes| {
        let (function, args) = arrays::updates(&mut Unstructured::new(bytes), 50).unwrap();
        chainrule_ir::verify(&function).unwrap();
        let kernel = lower(&function).unwrap_or_else(|errors| panic!("{errors}\n{function:?}"));
        compared.set(compared.get() + usize::from(compare(&function, &kernel, &args)));
    });
    covers!(compared.get() > 3500, "only {} of 4000 functions could be compared", compared.get());
}

/// So many functions whose states are made in steps.
fn in_steps(cases: u32, seed: u64) {
    let (compared, copied) = (Cell::new(0), Cell::new(0));
    support::random(cases, seed, 40..400, |bytes| {
        let (function, args) = steps::case(&mut Unstructured::new(bytes)).unwrap();
        chainrule_ir::verify(&function).unwrap();
        let kernel = lower(&function).unwrap_or_else(|errors| panic!("{errors}\n{function:?}"));
        compared.set(compared.get() + usize::from(compare(&function, &kernel, &args)));
        // Another matrix than the state.
        let matrix = &kernel.buffers[kernel.inputs[1].buffer].len;
        let is_other = |b: &Buffer| matches!(b.place, Place::Workspace(_)) && b.len == *matrix;
        copied.set(copied.get() + u32::from(kernel.buffers.as_slice().iter().any(is_other)));
    });
    covers!(compared.get() == cases as usize);
    let copied = copied.get();
    covers!(copied > cases / 4 && copied < cases * 4 / 5, "{copied} of {cases} functions take another matrix");
}

#[test]
fn states_that_are_long_sums_keep_their_values() {
    let compared = Cell::new(0);
    support::random(1000, 22, 40..400, |bytes| {
        let (function, args) = steps::long_sums(&mut Unstructured::new(bytes)).unwrap();
        chainrule_ir::verify(&function).unwrap();
        let kernel = lower(&function).unwrap_or_else(|errors| panic!("{errors}\n{function:?}"));
        compared.set(compared.get() + usize::from(compare(&function, &kernel, &args)));
    });
    covers!(compared.get() == 1000);
}

#[test]
fn states_that_are_made_in_steps_keep_their_values() {
    in_steps(4000, 19);
}

#[test]
#[ignore = "takes minutes"]
fn tens_of_thousands_of_states_that_are_made_in_steps() {
    in_steps(60_000, 20);
    let compared = Cell::new(0);
    support::random(20_000, 21, 40..400, |bytes| {
        let (function, args) = steps::case(&mut Unstructured::new(bytes)).unwrap();
        reverse(&function, &args, &compared);
    });
    covers!(compared.get() > 30_000, "only {} of 40000 derivatives could be compared", compared.get());
}

/// The cotangents of `function` and their tangents, expanded, at `args` and a cotangent of ones.
fn reverse(function: &Function, args: &[Value<f64>], compared: &Cell<usize>) {
    fn ones(ty: &Type, value: &Value<f64>) -> Option<Value<f64>> {
        match (ty, value) {
            _ if !ty.has_double() => None,
            (Type::Array(_, element), Value::Array(items)) => {
                Some(Value::Array(items.iter().filter_map(|item| ones(element, item)).collect()))
            }
            (Type::Tuple(fields, _), Value::Tuple(items)) => {
                Some(Value::Tuple(fields.iter().zip(items).filter_map(|(ty, item)| ones(ty, item)).collect()))
            }
            _ => Some(Value::Real(1.0)),
        }
    }
    let Some(whole) = with_cotangent(function) else { return };
    let Ok(value) = evaluate(function, &mut F64, args) else { return };
    let Some(cotangent) = ones(function.result_type(), &value) else { return };
    let args: Vec<Value<f64>> = args.iter().cloned().chain([cotangent]).collect();
    // The cotangents, and their tangents in the direction of the arguments themselves.
    let along = args.iter().cloned().chain(directions(&whole, &args)).collect();
    for (whole, args) in [(with_direction(&whole), along), (whole, args)] {
        let expanded = chainrule_autodiff::expand(&whole).unwrap();
        match lower(&expanded) {
            Ok(kernel) => {
                compared.set(compared.get() + usize::from(compare_within(&expanded, &kernel, &args, 1e-9)));
                compare(&expanded, &lower_with(&expanded, Semantics::Strict).unwrap(), &args);
            }
            Err(errors) => assert!(errors.iter().all(|error| error.kind == Kind::Limitation), "{errors}"),
        }
    }
}

#[test]
fn cotangents_of_random_functions_keep_their_values() {
    let compared = Cell::new(0);
    let smooth = Options { smooth: true, linear: true, ..options(3, 40) };
    support::random(500, 16, 200..2000, |bytes| {
        if let Ok((function, args)) = arrays::case(&mut Unstructured::new(bytes), 30) {
            reverse(&function, &args, &compared);
        }
        if let Ok(Case { function, args }) = case(&mut Unstructured::new(bytes), smooth) {
            reverse(&function, &args, &compared);
        }
        if let Ok((function, args)) = steps::case(&mut Unstructured::new(bytes)) {
            reverse(&function, &args, &compared);
        }
    });
    covers!(compared.get() > 2000, "only {} of 3000 derivatives could be compared", compared.get());
}
