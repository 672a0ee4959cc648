//! Kernels to bytes and back: nothing changes, nothing damaged comes through, nothing panics.
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::Unstructured;
use chainrule_backend_tests::generate::{lower, random, sprinkle_zeros};
use chainrule_base::{FileId, Id, Name, Poly, Span};
use chainrule_cases::covers;
use chainrule_graph::generate::{Numbers, Options as GraphOptions, Recipe, layered};
use chainrule_graph::{Graph, NodeId, Semantics};
use chainrule_ir::generate;
use chainrule_kernel::bytes::{self, Content, frame, from_bytes, to_bytes};
use chainrule_kernel::{Condition, External, ExternalFn, Instr, Kernel, Stmt, contract, lower_function, verify};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::cell::Cell;
use std::sync::Arc;

fn none(_: &str, _: usize) -> Option<ExternalFn> {
    None
}

fn random_graph(u: &mut Unstructured<'_>, numbers: Numbers) -> Option<Kernel> {
    let options = GraphOptions { numbers, in_domain: false, max_roots: 6, ..GraphOptions::new(80) };
    let (mut graph, mut roots) = Recipe::random(u, &options).ok()?.raw(Semantics::Strict);
    sprinkle_zeros(u, &mut graph, &mut roots);
    let mut kernel = lower(&graph, &roots);
    if u.arbitrary().ok()? {
        contract(&mut kernel);
    }
    Some(kernel)
}

fn random_function(u: &mut Unstructured<'_>) -> Option<Kernel> {
    let options = generate::Options { derivatives: false, transposed: false, ..Default::default() };
    lower_function(&generate::case(u, options).ok()?.function).ok()
}

/// Everything of a kernel, doubles bit for bit, but what computes users' functions.
fn whole(kernel: &Kernel) -> String {
    let mut text = format!("{kernel:?}\n");
    let mut open: Vec<&Stmt> = kernel.body.iter().collect();
    while let Some(stmt) = open.pop() {
        match stmt {
            Stmt::Straight(instrs) => {
                for instr in instrs {
                    if let Instr::Const { value, .. } = instr {
                        text.push_str(&format!("{:x} ", value.to_bits()));
                    }
                }
            }
            Stmt::For { body, .. } => open.extend(body),
            Stmt::While { condition, body, .. } => open.extend(condition.iter().chain(body)),
            Stmt::If { then, otherwise, .. } => open.extend(then.iter().chain(otherwise)),
            Stmt::Copy { .. } => {}
        }
    }
    text.extend(kernel.externals.iter().map(|e| format!("{:?} {}\n", e.c_name, e.call.is_some())));
    text
}

fn comes_back(kernel: &Kernel) -> Result<(), TestCaseError> {
    let saved = to_bytes(kernel).unwrap();
    let loaded = from_bytes(&saved, &none).map_err(|e| TestCaseError::fail(format!("{e}\n{kernel}")))?;
    prop_assert_eq!(whole(&loaded), whole(kernel));
    prop_assert_eq!(loaded.to_string(), kernel.to_string());
    prop_assert_eq!(to_bytes(&loaded).unwrap(), saved, "the same kernel, other bytes");
    Ok(())
}

#[test]
fn random_kernels_come_back_as_they_were() {
    let done = Cell::new(0);
    let check = |kernel: Option<Kernel>| {
        let Some(kernel) = kernel else { return Ok(()) };
        done.set(done.get() + 1);
        comes_back(&kernel)
    };
    random(300, 1, 3000, |u| check(random_graph(u, Numbers::Tame)));
    random(300, 2, 3000, |u| check(random_graph(u, Numbers::Special)));
    random(1500, 3, 3000, |u| check(random_function(u)));
    covers!(done.get() > 1500, "{}", done.get());
    let (graph, roots) = layered(Semantics::Strict, 1000, 5, 10, 1);
    let mut kernel = lower(&graph, &roots);
    assert!(contract(&mut kernel) > 10);
    comes_back(&kernel).unwrap();
}

#[test]
fn a_hundred_thousand_operations_take_few_bytes() {
    let (graph, roots) = layered(Semantics::Strict, 100_000, 30, 1000, 1);
    let kernel = lower(&graph, &roots);
    comes_back(&kernel).unwrap();
    let n = kernel.regs.len();
    let per_operation = to_bytes(&kernel).unwrap().len() as f64 / n as f64;
    assert!(n > 60_000 && per_operation < 4.0, "{n} operations, {per_operation} bytes each");
}

/// A kernel with two users' functions, places, numbers of all kinds, and names beyond ASCII.
fn sampler() -> Kernel {
    let mut graph = Graph::new(Semantics::Strict);
    let x = graph.input("x");
    let numbers = [0.0, -0.0, 1.0, -1.0, 0.1, 9_007_199_254_740_991.0, 9_007_199_254_740_992.0, 1e300, f64::INFINITY];
    let mut roots: Vec<NodeId> = numbers.iter().map(|n| graph.constant(*n)).collect();
    roots.push(graph.constant(f64::from_bits(0x7ff8_0000_0000_1234)));
    let call: ExternalFn = Arc::new(|a| a[0] + 1.0);
    roots.push(x);
    let mut kernel = lower(&graph, &roots);
    kernel.outputs[0].name = Name::new("Δy");
    let external = |name: &str, call: Option<ExternalFn>, c_name: Option<&str>| External {
        name: Name::new(name),
        arity: 1,
        call,
        c_name: c_name.map(Name::new),
    };
    kernel.externals = vec![external("table", Some(call), Some("my_table")), external("other", None, Some("other"))];
    let place = Span::new(FileId::new(2), 70, 75);
    kernel.failures = vec![("an index is out of range".into(), Some(place)), ("no place".into(), None)];
    let size = Poly::constant(-3);
    kernel.requires = vec![Condition { size, exactly_zero: true, message: "too short".into(), span: Some(place) }];
    verify(&kernel).unwrap();
    kernel
}

fn table(name: &str, arity: usize) -> Option<ExternalFn> {
    ((name, arity) == ("table", 1)).then(|| Arc::new(|a: &[f64]| a[0] * 2.0) as ExternalFn)
}

#[test]
fn names_places_and_numbers_survive() {
    let kernel = sampler();
    let saved = to_bytes(&kernel).unwrap();
    let loaded = from_bytes(&saved, &table).unwrap();
    assert_eq!(whole(&loaded), whole(&kernel));
    assert_eq!(to_bytes(&loaded).unwrap(), saved);
    assert_eq!(loaded.externals[0].call.as_ref().unwrap()(&[4.0]), 8.0);
}

#[test]
fn a_users_function_that_is_not_given_is_named() {
    let saved = to_bytes(&sampler()).unwrap();
    insta::assert_snapshot!(from_bytes(&saved, &none).unwrap_err(), @"error: the file needs `table` of 1 argument: a file holds the names of its users' functions, not what computes them (help: give that function when you load it)");
    let mut twice = sampler();
    twice.externals[1].name = Name::new("table");
    insta::assert_snapshot!(to_bytes(&twice).unwrap_err(), @"error: `random` cannot be saved: it calls two users' functions that are both called `table` (help: give each a name of its own: they are told apart by it when the file is loaded)");
}

#[test]
fn an_operator_of_a_later_version_is_named() {
    let (graph, roots) = layered(Semantics::Strict, 50, 3, 2, 1);
    let saved = to_bytes(&lower(&graph, &roots)).unwrap();
    let mut payload = bytes::open(Content::Kernel, &saved).unwrap().to_vec();
    let at = payload.windows(4).position(|w| w == b"\x03mul").unwrap();
    payload[at + 1..at + 4].copy_from_slice(b"mux");
    insta::assert_snapshot!(from_bytes(&bytes::seal(Content::Kernel, &payload), &none).unwrap_err(), @"error: the file uses the operator `mux`, which is not known: a newer version of Chainrule may have made it (help: update Chainrule)");
}

fn samples() -> Vec<Vec<u8>> {
    let mut samples = vec![to_bytes(&sampler()).unwrap()];
    let more = Cell::new(Vec::new());
    random(60, 7, 1500, |u| {
        let kernel =
            if u.arbitrary().unwrap_or(false) { random_graph(u, Numbers::Special) } else { random_function(u) };
        let mut all = more.take();
        all.extend(kernel.map(|kernel| to_bytes(&kernel).unwrap()));
        more.set(all);
        Ok(())
    });
    samples.extend(more.take());
    samples
}

#[test]
fn every_truncation_and_every_changed_byte_is_refused() {
    let mut samples = samples();
    samples.sort_by_key(Vec::len);
    let longest = samples.pop().unwrap();
    for sample in samples.iter().step_by(8).chain([&longest]) {
        for len in 0..sample.len() {
            assert!(from_bytes(&sample[..len], &table).is_err(), "{len} of {} bytes", sample.len());
        }
        let mut changed = sample.clone();
        for at in 0..sample.len() {
            let flips = if sample.len() < 600 { 1..=255 } else { 1..=8 };
            for flip in flips {
                changed[at] = sample[at] ^ flip;
                assert!(from_bytes(&changed, &table).is_err(), "byte {at} of {}, changed by {flip}", sample.len());
            }
            changed[at] = sample[at];
        }
    }
}

/// `payload` with a few random changes.
fn changed(u: &mut Unstructured<'_>, mut payload: Vec<u8>) -> arbitrary::Result<Vec<u8>> {
    for _ in 0..u.int_in_range(1..=4)? {
        let at = u.choose_index(payload.len().max(1))?;
        let to = at + u.int_in_range(0..=16.min(payload.len() - at.min(payload.len())))?;
        match u.int_in_range(0..=6)? {
            0 | 1 if at < payload.len() => payload[at] = u.arbitrary()?,
            2 if at < payload.len() => payload[at] = payload[at].wrapping_add(u.int_in_range(0..=4)?).wrapping_sub(2),
            3 => drop(payload.drain(at..to)),
            4 => payload.insert(at, u.arbitrary()?),
            5 => {
                let part = payload[at..to].to_vec();
                let into = u.choose_index(payload.len() + 1)?;
                payload.splice(into..into, part);
            }
            _ => payload.truncate(at),
        }
    }
    Ok(payload)
}

/// Checks that [`from_bytes`] returns an error with a message, or a valid kernel with the same bytes.
fn is_refused_or_sound(payload: &[u8]) -> Result<bool, TestCaseError> {
    let sealed = bytes::seal(Content::Kernel, payload);
    match from_bytes(&sealed, &table) {
        Err(error) => {
            prop_assert!(error.reason.is_some() && error.help.is_some(), "{}", error);
            prop_assert!(error.to_string().len() < 10 * payload.len() + 1000, "{}", error);
            Ok(false)
        }
        Ok(kernel) => {
            prop_assert!(verify(&kernel).is_ok());
            let _ = kernel.to_string();
            prop_assert_eq!(to_bytes(&kernel).unwrap(), sealed, "two forms of one kernel: {}", kernel);
            Ok(true)
        }
    }
}

#[test]
fn content_that_nobody_wrote_is_refused_or_a_sound_kernel() {
    let samples = samples();
    let payloads: Vec<&[u8]> = samples.iter().map(|bytes| &bytes[frame::HEADER..]).collect();
    let sound = Cell::new(0);
    random(40_000, 11, 64, |u| {
        let Ok(Ok(payload)) = u.choose(&payloads).map(|payload| changed(u, payload.to_vec())) else { return Ok(()) };
        sound.set(sound.get() + u32::from(is_refused_or_sound(&payload)?));
        Ok(())
    });
    random(20_000, 12, 200, |u| is_refused_or_sound(u.bytes(u.len()).unwrap_or_default()).map(|_| ()));
    println!("{} of 40000 changed kernels are kernels", sound.get());
    covers!(sound.get() > 500, "{}", sound.get());
}

#[test]
fn what_nests_too_deep_is_neither_saved_nor_loaded() {
    let (graph, roots) = layered(Semantics::Strict, 20, 3, 2, 1);
    let nested = move |depth: usize| {
        let mut kernel = lower(&graph, &roots);
        let condition = kernel.regs.push(chainrule_kernel::Class::Int);
        let mut inner = vec![];
        for _ in 0..depth {
            inner = vec![Stmt::If { condition, then: inner, otherwise: vec![], choices: vec![] }];
        }
        let zero = Stmt::Straight(vec![Instr::Int { dst: condition, value: Poly::zero() }]);
        kernel.body.push(zero);
        kernel.body.extend(inner);
        kernel
    };
    // On a stack smaller than that of any thread.
    let deep = move || {
        let kernel = nested(bytes::MAX_NESTING);
        let saved = to_bytes(&kernel).unwrap();
        let loaded = from_bytes(&saved, &none).unwrap();
        assert_eq!(to_bytes(&loaded.clone()).unwrap(), saved);
        let deeper = nested(bytes::MAX_NESTING + 1);
        insta::assert_snapshot!(to_bytes(&deeper).unwrap_err(), @"limitation: `random` cannot be saved: its loops and branches nest more than 2000 deep (help: nest branches and loops less deep)");
        let mut payload = saved[frame::HEADER..].to_vec();
        // The innermost branch: its code, its condition; then the ends of its blocks.
        let at = payload.len() - 1 - 3 * bytes::MAX_NESTING;
        assert_eq!(payload[at - 2..=at], [4, 0, 0]);
        payload.splice(at..at, [4, 0, 0, 0, 0]);
        let refused = from_bytes(&bytes::seal(Content::Kernel, &payload), &none).unwrap_err();
        assert_eq!(refused.reason.as_deref(), Some("its loops and branches nest too deep"));
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(deep).unwrap().join().unwrap();
}

#[test]
fn shapes_out_of_proportion_are_refused_at_once() {
    let (graph, roots) = layered(Semantics::Strict, 20, 3, 2, 1);
    let mut kernel = lower(&graph, &roots);
    let sizes: Vec<_> = (0..20).map(|_| kernel.regs.push(chainrule_kernel::Class::Int)).collect();
    let sum = sizes.iter().fold(Poly::zero(), |sum, reg| sum.add(&Poly::var(*reg)));
    kernel.inputs[0].shape = vec![sum; 12];
    let refused = from_bytes(&to_bytes(&kernel).unwrap(), &none).unwrap_err();
    assert_eq!(refused.reason.as_deref(), Some("the shape of an argument in it is out of proportion"));
}
