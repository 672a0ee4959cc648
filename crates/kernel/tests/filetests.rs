//! Passes tested as text: one file a case in `filetests/`.
//!
//! ```text
//! ; pass: split
//! ; Why the case exists.
//! kernel f
//! ...
//! ; expected
//! kernel f
//! ...
//! ```
//!
//! The first line names the passes to run, in order. `; algebraic` allows sums in another order. A case holds if the
//! passes turn the first listing into the second, both are valid, and both compute the same from random arguments,
//! bit for bit unless sums are reordered or fused. `UPDATE_FILETESTS=1` writes the second listing anew.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_cases::files;
use chainrule_kernel::passes::{PASSES, Pass};
use chainrule_kernel::{Class, Kernel, Port, SizeSource, parse, verify};
use chainrule_ops::Semantics;
use support::{Array, Scalar, run};

const EXPECTED: &str = "; expected\n";

/// A case.
struct Case {
    /// The lines that begin with a semicolon.
    comments: String,
    passes: Vec<&'static Pass>,
    semantics: Semantics,
    before: Kernel,
}

fn read(text: &str) -> Result<Case, String> {
    let (input, _) = text.split_once(EXPECTED).unwrap_or((text, ""));
    let (comments, listing): (Vec<&str>, Vec<&str>) = input.lines().partition(|line| line.starts_with(';'));
    let names = comments.iter().find_map(|line| line.strip_prefix("; pass: ")).ok_or("there is no line `; pass: `")?;
    let pass = |name: &str| Pass::by_name(name.trim()).ok_or_else(|| format!("there is no pass `{name}`"));
    Ok(Case {
        passes: names.split(',').map(pass).collect::<Result<_, _>>()?,
        semantics: if comments.contains(&"; algebraic") { Semantics::Algebraic } else { Semantics::Strict },
        before: parse(&listing.join("\n")).map_err(|error| format!("in the listing, {error}"))?,
        comments: comments.join("\n"),
    })
}

/// Random arguments whose extents are at most `longest`.
fn arguments(kernel: &Kernel, longest: u64, seed: u64) -> Vec<Array> {
    let mut state = seed;
    let mut random = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut sizes: Vec<i64> = Vec::new();
    let value = |sizes: &[i64], reg| sizes[kernel.sizes.iter().position(|size| size.reg == reg).unwrap()];
    for size in &kernel.sizes {
        sizes.push(match size.natural() {
            Some(of) => of.eval(|reg| value(&sizes, reg)).unwrap().max(0),
            None => random(longest + 1) as i64,
        });
    }
    let value = |reg| value(&sizes, reg);
    let given = |input: usize| {
        kernel.sizes.iter().position(|size| size.source == SizeSource::Value { input }).map(|at| sizes[at])
    };
    let mut array = |(input, port): (usize, &Port)| {
        let shape: Vec<i64> = port.shape.iter().map(|extent| extent.eval(value).unwrap()).collect();
        let n: i64 = shape.iter().map(|extent| (*extent).max(0)).product();
        let mut scalar = || match kernel.buffers[port.buffer].class {
            Class::Real => Scalar::Real(random(2000) as f64 / 256.0 - 4.0),
            Class::Int => Scalar::Int(given(input).unwrap_or_else(|| random(longest + 2) as i64 - 1)),
        };
        Array { shape, data: (0..n).map(|_| scalar()).collect() }
    };
    kernel.inputs.iter().enumerate().map(&mut array).collect()
}

fn close(a: &Scalar, b: &Scalar, exact: bool) -> bool {
    match (a, b) {
        (Scalar::Real(x), Scalar::Real(y)) if !exact => a == b || (x - y).abs() <= 1e-11 * (1.0 + x.abs()),
        _ => a == b,
    }
}

/// Compares both kernels on random arguments; returns how many arguments both accept.
fn compare(before: &Kernel, after: &Kernel, exact: bool) -> Result<usize, String> {
    let mut n_accepted = 0;
    for seed in 0..60 {
        let args = arguments(before, [3, 9, 20, 40][seed as usize % 4], seed);
        match (run(before, &args), run(after, &args)) {
            (Ok(expected), Ok(found)) => {
                let data = |arrays: &[Array]| arrays.iter().flat_map(|a| a.data.clone()).collect::<Vec<_>>();
                let (expected, found) = (data(&expected), data(&found));
                let same = expected.iter().zip(&found).all(|(a, b)| close(a, b, exact));
                if !same || expected.len() != found.len() {
                    return Err(format!("results differ at {args:?}: {expected:?} and {found:?}"));
                }
                n_accepted += 1;
            }
            (Err(expected), Err(found)) if expected == found && !expected.starts_with("bug") => {}
            (expected, found) => return Err(format!("at {args:?}: {expected:?}, then {found:?}")),
        }
    }
    Ok(n_accepted)
}

/// Constants of passes for large arrays, with smaller ones: as if small arrays were large, and with caches for few rows
/// and for many.
const SMALL: &[(&str, &[(i64, i64)])] = &[
    ("skew", &[(1_048_576, 0)]),
    ("skew", &[(1_048_576, 0), (65_536, 300)]),
    ("skew", &[(1_048_576, 0), (65_536, 1)]),
    ("slide", &[(65_536, 1), (65_535, 0), (31, 0), (47, 0), (63, 0), (4_096, 1)]),
    ("slide", &[(65_536, 1), (65_535, 0), (31, 0), (47, 0), (63, 0), (4_096, 500)]),
    ("sweep", &[(65_535, 0), (63, 0), (7, 0)]),
];

/// Checks a case. Returns its text with the listing that was found.
fn check(Case { comments, passes, semantics, before }: &Case) -> Result<String, String> {
    let valid = |kernel: &Kernel| verify(kernel).map_err(|errors| format!("{}\n{kernel}", errors[0]));
    valid(before)?;
    let mut after = before.clone();
    for pass in passes {
        pass.apply(&mut after, *semantics);
        valid(&after)?;
    }
    for (_, small) in SMALL.iter().filter(|(name, _)| passes.iter().any(|pass| pass.name == *name)) {
        let small = small.iter().fold(after.to_string(), |text, (large, small)| {
            text.replace(&format!("int {large}\n"), &format!("int {small}\n"))
        });
        compare(before, &parse(&small).map_err(|error| error.to_string())?, true)?;
    }
    let exact = *semantics == Semantics::Strict && passes.iter().all(|pass| pass.name != "contract");
    if compare(before, &after, exact)? == 0 {
        return Err("no random arguments are accepted".to_owned());
    }
    Ok(format!("{comments}\n{before}{EXPECTED}{after}"))
}

#[test]
fn passes_turn_listings_into_listings() {
    let mut covered = Vec::new();
    files::check(concat!(env!("CARGO_MANIFEST_DIR"), "/filetests"), |text| {
        let case = read(text)?;
        covered.extend(case.passes.iter().map(|pass| pass.name));
        check(&case)
    });
    let missing: Vec<&str> = PASSES.iter().map(|pass| pass.name).filter(|name| !covered.contains(name)).collect();
    assert!(missing.is_empty(), "no case for the passes {missing:?}");
}
