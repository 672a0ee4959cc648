//! Listings of kernels are parsed back.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use arbitrary::Unstructured;
use chainrule_backend_tests::generate::{lower, sprinkle_zeros};
use chainrule_cases::covers;
use chainrule_graph::Semantics;
use chainrule_graph::generate::{Numbers, Options as GraphOptions, Recipe};
use chainrule_ir::generate::{Case, Options, case};
use chainrule_kernel::passes::{self, Plan, Stage};
use chainrule_kernel::{Kernel, parse, verify};
use std::cell::Cell;
use std::ops::ControlFlow;

use support::reference::{compare, compare_within, lower_with};

const STAGES: &[Stage] = &[Stage::Loops, Stage::Threads, Stage::Lanes, Stage::Hoisting, Stage::Fusion];

/// The stages that keep the bits of results.
const EXACT: &[Stage] = &[Stage::Loops, Stage::Threads, Stage::Lanes, Stage::Hoisting];

/// Parses the listing of `kernel`: the result is valid and has the same listing.
fn round_trip(kernel: &Kernel) -> Kernel {
    let listing = kernel.to_string();
    let parsed = parse(&listing).unwrap_or_else(|error| panic!("{error}\n{listing}"));
    assert_eq!(parsed.to_string(), listing);
    assert_eq!(verify(&parsed), Ok(()), "{listing}");
    parsed
}

#[test]
fn listings_after_every_pass_are_parsed_back() {
    let (compared, parsed) = (Cell::new(0), Cell::new(0));
    support::random(800, 71, 0..3000, |bytes| {
        let options = Options { depth: 4, fuel: 80, derivatives: false, transposed: false, ..Options::default() };
        let Ok(Case { function, args }) = case(&mut Unstructured::new(bytes), options) else { return };
        let Ok(mut kernel) = lower_with(&function, Semantics::Algebraic) else { return };
        round_trip(&kernel);
        let mut run = |stages| {
            passes::run(
                &mut kernel,
                &Plan { stages, semantics: Semantics::Strict, disabled: &[] },
                &mut |_, kernel| {
                    round_trip(kernel);
                    parsed.set(parsed.get() + 1);
                    ControlFlow::Continue(())
                },
            );
            round_trip(&kernel)
        };
        let fitted = compare(&function, &run(EXACT), &args);
        compared.set(compared.get() + usize::from(fitted));
        run(&[Stage::Fusion]);
    });
    let (compared, parsed) = (compared.get(), parsed.get());
    covers!(compared > 500 && parsed > 5000, "{compared} functions compared, {parsed} listings parsed");
}

#[test]
fn listings_of_straight_line_code_are_parsed_back() {
    let with_zeros = Cell::new(0);
    support::random(300, 72, 0..3000, |bytes| {
        let mut u = Unstructured::new(bytes);
        let options =
            GraphOptions { numbers: Numbers::Special, in_domain: false, max_roots: 6, ..GraphOptions::new(80) };
        let Ok(recipe) = Recipe::random(&mut u, &options) else { return };
        let (mut graph, mut roots) = recipe.raw(Semantics::Strict);
        sprinkle_zeros(&mut u, &mut graph, &mut roots);
        let mut kernel = lower(&graph, &roots);
        round_trip(&kernel);
        with_zeros.set(with_zeros.get() + usize::from(!kernel.zeros.is_empty()));
        passes::run(
            &mut kernel,
            &Plan { stages: STAGES, semantics: Semantics::Algebraic, disabled: &[] },
            &mut |_, kernel| {
                round_trip(kernel);
                ControlFlow::Continue(())
            },
        );
    });
    covers!(with_zeros.get() > 20, "{} kernels have zeros", with_zeros.get());
}

#[test]
fn passes_can_be_left_out() {
    let names: Vec<String> = passes::PASSES.iter().map(|pass| pass.name.to_owned()).collect();
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "names are unique");
    let compared = Cell::new(0);
    support::random(300, 73, 0..3000, |bytes| {
        let mut u = Unstructured::new(bytes);
        let options = Options { depth: 4, fuel: 80, derivatives: false, transposed: false, ..Options::default() };
        let Ok(Case { function, args }) = case(&mut u, options) else { return };
        let Ok(mut kernel) = lower_with(&function, Semantics::Strict) else { return };
        let disabled: Vec<String> = names.iter().filter(|_| u.arbitrary().unwrap_or(true)).cloned().collect();
        passes::run(
            &mut kernel,
            &Plan { stages: STAGES, semantics: Semantics::Strict, disabled: &disabled },
            &mut |pass, _| {
                assert!(!disabled.iter().any(|name| name == pass.name));
                ControlFlow::Continue(())
            },
        );
        compared.set(compared.get() + usize::from(compare_within(&function, &kernel, &args, 1e-9)));
    });
    covers!(compared.get() > 150, "{} functions compared", compared.get());
}
