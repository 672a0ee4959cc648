//! Random kernels, straight-line code and loops, as lowered or as transformed before compilation: native code at all
//! levels against the interpreter, bit for bit, one point by slices, bound and on threads, and batches; straight-line
//! code also in chunks; and after saving and loading the kernel. If no transformation reorders sums, the results are
//! those before the transformations.

use arbitrary::Unstructured;
use chainrule_backend_tests::generate::{deep_function, inputs, inputs_up_to, lower};
use chainrule_backend_tests::native::{compare, compare_in_pieces, compare_on_threads, reference};
use chainrule_backend_tests::{Array, Data, around, reals};
use chainrule_graph::Semantics;
use chainrule_graph::generate::{Numbers, Options as GraphOptions, Recipe};
use chainrule_ir::generate::{Options, arrays, case, comparisons, records, steps};
use chainrule_kernel::bytes::{from_bytes, to_bytes};
use chainrule_kernel::{Kernel, contract, hoist, lower_function, parallelise, streamline, vectorise, verify};

/// Report of a run on a source of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ran {
    /// Number of compared kernels.
    pub kernels: usize,
    /// Number of vectorised loops.
    pub in_lanes: usize,
    /// Number of parallel loops.
    pub in_parts: usize,
    /// Whether it is straight-line code that was cut into chunks.
    pub in_pieces: bool,
}

/// Runs the comparisons of the module.
///
/// # Panics
/// Panics if they fail.
pub fn run(data: &[u8]) -> Ran {
    one(&mut Unstructured::new(data)).unwrap_or_default()
}

fn one(u: &mut Unstructured<'_>) -> arbitrary::Result<Ran> {
    let Some((plain, mut inputs)) = kernel(u)? else { return Ok(Ran::default()) };
    let mut ran = Ran { kernels: 1, ..Ran::default() };
    let mut kernel = plain.clone();
    let semantics = if u.arbitrary()? { Semantics::Algebraic } else { Semantics::Strict };
    if u.arbitrary()? {
        streamline(&mut kernel);
    }
    if u.arbitrary()? {
        ran.in_parts = parallelise(&mut kernel, semantics);
    }
    if u.arbitrary()? {
        ran.in_lanes = vectorise(&mut kernel, semantics);
    }
    if u.arbitrary()? {
        hoist(&mut kernel);
    }
    if u.arbitrary()? {
        special(u, &mut inputs)?;
    }
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    let saved = to_bytes(&kernel).expect("random kernels do not nest deep");
    let loaded = from_bytes(&saved, &|_, _| None).expect("what was saved loads");
    assert_eq!(loaded.to_string(), kernel.to_string());
    if semantics == Semantics::Strict {
        let results = |kernel| reference(kernel, &interpreter(kernel), &inputs);
        if let (Ok(before), Ok(after)) = (results(&plain), results(&loaded)) {
            assert_eq!(after, before, "{plain}\nbecame\n{loaded}");
        }
    }
    let n_points = u.int_in_range(1..=13)?;
    let points = around(&inputs, n_points);
    compare(&loaded, &points).unwrap_or_else(|why| panic!("{why}"));
    let piece_len = u.int_in_range(1..=60)?;
    ran.in_pieces = compare_in_pieces(&loaded, piece_len, &points).unwrap_or_else(|why| panic!("{why}"));
    if ran.in_parts > 0 {
        let mut fused = loaded.clone();
        contract(&mut fused);
        for kernel in [&loaded, &fused] {
            compare_on_threads(kernel, &inputs, &[1, 2, 3]).unwrap_or_else(|why| panic!("{why}"));
        }
    }
    Ok(ran)
}

fn interpreter(kernel: &Kernel) -> chainrule_interpret::Program {
    chainrule_interpret::Program::new(kernel).expect("a sound kernel")
}

/// Returns a kernel with arguments; `None` if a function has none, which is a limitation.
fn kernel(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<(Kernel, Vec<Array>)>> {
    let (function, args) = match u.int_in_range(0..=7)? {
        0 | 1 => return straight_line(u).map(Some),
        2 | 3 => {
            let Some(function) = deep_function(u) else { return Ok(None) };
            let longest = u.int_in_range(0..=40)?;
            let Some(inputs) = inputs_up_to(u, &function, longest) else { return Ok(None) };
            return Ok(lower_function(&function).ok().map(|kernel| (kernel, inputs)));
        }
        4 => {
            let options = Options { derivatives: false, transposed: false, ..Options::default() };
            let case = case(u, options)?;
            (case.function, case.args)
        }
        5 => arrays::case(u, 40)?,
        6 if u.arbitrary()? => steps::case(u)?,
        6 => comparisons::case(u, 24, 20)?,
        _ => records::case(u, 28)?,
    };
    let Ok(kernel) = lower_function(&function) else { return Ok(None) };
    Ok(inputs(&function, &args).map(|inputs| (kernel, inputs)))
}

fn straight_line(u: &mut Unstructured<'_>) -> arbitrary::Result<(Kernel, Vec<Array>)> {
    let numbers = if u.arbitrary()? { Numbers::Special } else { Numbers::Tame };
    let reach = if u.arbitrary()? { usize::MAX } else { 20 };
    let all = u.arbitrary()?;
    let mut options = GraphOptions { numbers, reach, in_domain: false, max_roots: 6, ..GraphOptions::new(200) };
    if u.arbitrary()? {
        // Only straight-line code of numbers is cut.
        options = options.of_numbers();
    }
    let mut recipe = Recipe::random(u, &options)?;
    if all {
        recipe.roots = recipe.unused();
    }
    let (graph, roots) = recipe.raw(Semantics::Strict);
    Ok((lower(&graph, &roots), vec![reals(&recipe.point)]))
}

/// Inserts NaN, infinities, zeros and the ends of the range among the doubles.
fn special(u: &mut Unstructured<'_>, inputs: &mut [Array]) -> arbitrary::Result<()> {
    for input in inputs {
        if let Data::Real(data) = &mut input.data {
            for x in data {
                *x = Numbers::Special.pick(u)?;
            }
        }
    }
    Ok(())
}
