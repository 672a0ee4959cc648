//! Emitted C and Rust with Chainrule's own elementary functions, compiled and run: bit for bit what compiled code with equal
//! options gives.

use crate::samples::{Sample, examples, random};
use chainrule::{
    COptions, CompileOptions, Function, RustFma, RustLibrary, RustOptions, Semantics, Value, emit_c_with, emit_rust,
};
use chainrule_backend_tests::c::{FLAGS, Files, compiler};
use chainrule_backend_tests::exact::replace;
use chainrule_backend_tests::rust::{File, has_clippy};
use chainrule_backend_tests::{Case, Data, Outcome, c, flatten, is_inexact, rust};
use chainrule_ir::bind_sizes;
use chainrule_kernel::lower_function;
use std::cell::Cell;

/// Of random programs in each test.
const N_RANDOM: usize = 60;

fn samples(semantics: Semantics, seed: u64) -> Vec<Sample> {
    let mut samples = examples(semantics);
    samples.extend(random(semantics, seed, N_RANDOM));
    samples
}

/// The arguments, beside a kernel that takes them and has the results.
fn case(sample: &Sample) -> Case {
    let kernel = lower_function(&sample.ir).unwrap();
    let inputs = sample.ir.params.iter().zip(&sample.args);
    let inputs = inputs.flat_map(|(p, arg)| flatten(sample.ir.ty(*p), arg, &|size| extent(sample, size)));
    Case { kernel, inputs: inputs.collect() }
}

fn extent(sample: &Sample, size: &chainrule_ir::Size) -> usize {
    let sizes = bind_sizes(&sample.ir, &sample.args).unwrap();
    usize::try_from(sizes.eval(size).unwrap()).unwrap()
}

/// What compiled code gives.
fn compiled(sample: &Sample, options: &CompileOptions) -> Vec<Data> {
    let results: Vec<Value<f64>> = sample.function.compile_with(options).unwrap().call(&sample.args).unwrap();
    let [result] = results.as_slice() else { panic!("{} has one result", sample.name) };
    let arrays = flatten(sample.ir.result_type(), result, &|size| extent(sample, size));
    arrays.into_iter().map(|array| array.data).collect()
}

/// Whether functions are called that the C library has and Chainrule has not.
fn calls_math_h(case: &Case) -> bool {
    let calls = Cell::new(false);
    let look = |op| {
        calls.set(calls.get() || (is_inexact(op) && op.row().elementary.is_none()));
        None
    };
    drop(replace(&case.kernel, look));
    calls.get()
}

fn assert_same(samples: &[Sample], found: &[Outcome], options: &CompileOptions) {
    assert_eq!(samples.len(), found.len());
    for (sample, found) in samples.iter().zip(found) {
        assert_eq!(found, &Ok(compiled(sample, options)), "{}\n{:?}", sample.name, sample.args);
    }
}

fn named(samples: &[Sample]) -> Vec<Function> {
    samples.iter().enumerate().map(|(i, sample)| sample.function.clone().named(&format!("k{i}"))).collect()
}

fn assert_c(samples: &[Sample], options: &COptions, equal: &CompileOptions) {
    let Some(cc) = compiler() else { return };
    let cases: Vec<Case> = samples.iter().map(case).collect();
    let functions = named(samples);
    let emitted = emit_c_with("kernels", &functions.iter().collect::<Vec<_>>(), options).unwrap();
    let (functions, header, source) = (&emitted.functions, &emitted.header, &emitted.source);
    let flags = [&FLAGS[..], &["-Wno-unknown-pragmas"]].concat();
    let found = c::run(cc, &flags, &cases, &Files { name: "kernels", functions, header, source, number: "double" });
    assert_same(samples, &found, equal);
}

fn assert_rust(samples: &[Sample], options: &RustOptions, equal: &CompileOptions) {
    if !has_clippy() {
        return;
    }
    let cases: Vec<Case> = samples.iter().map(case).collect();
    let functions = named(samples);
    let emitted = emit_rust("kernels", &functions.iter().collect::<Vec<_>>(), options).unwrap();
    let (functions, text) = (&emitted.functions, &emitted.text);
    let file = File { functions, text, needs_libm: emitted.needs_libm, number: "f64" };
    assert_same(samples, &rust::run(&cases, &file), equal);
}

/// How many of `samples` have another value with other options: otherwise equal bits say nothing.
fn n_differ(samples: &[Sample], one: &CompileOptions, other: &CompileOptions) -> usize {
    samples.iter().filter(|sample| compiled(sample, one) != compiled(sample, other)).count()
}

#[test]
fn c_has_the_bits_of_compiled_code_with_equal_options() {
    let mut samples = samples(Semantics::Algebraic, 51);
    samples.retain(|sample| !calls_math_h(&case(sample)));
    assert!(samples.len() > 100, "{}", samples.len());
    let plain = CompileOptions { fuse: Some(false), sequential: true, ..CompileOptions::default() };
    for fuse in [false, true] {
        for sequential in [false, true] {
            let equal = CompileOptions { fuse: Some(fuse), sequential, ..CompileOptions::default() };
            let differ = n_differ(&samples, &equal, &plain);
            assert!(differ > 10 || equal == plain, "{differ} differ with {equal:?}");
            assert_c(&samples, &COptions { fuse, sequential, inline_math: true, ..COptions::default() }, &equal);
        }
    }
    let equal = CompileOptions { threads: Some(1), ..plain };
    let differ = n_differ(&samples, &equal, &plain);
    assert!(differ > 3, "{differ} differ in parts");
    assert_c(&samples, &COptions { threads: true, inline_math: true, ..COptions::default() }, &equal);
}

#[test]
fn rust_has_the_bits_of_compiled_code_with_equal_options() {
    let samples = samples(Semantics::Algebraic, 52);
    assert!(samples.len() > 100, "{}", samples.len());
    for (fuse, sequential, fma) in [
        (false, true, RustFma::Standard),
        (true, true, RustFma::Exact),
        (false, false, RustFma::Exact),
        (true, false, RustFma::Standard),
    ] {
        let equal = CompileOptions { fuse: Some(fuse), sequential, ..CompileOptions::default() };
        let options = RustOptions { fuse, sequential, library: RustLibrary::Own(fma), ..RustOptions::default() };
        assert_rust(&samples, &options, &equal);
    }
}

#[test]
fn strict_text_has_the_bits_of_strict_code() {
    let mut samples = samples(Semantics::Strict, 53);
    let equal = CompileOptions::default();
    let options = RustOptions { library: RustLibrary::Own(RustFma::Standard), ..RustOptions::default() };
    assert_rust(&samples, &options, &equal);
    samples.retain(|sample| !calls_math_h(&case(sample)));
    assert!(samples.len() > 100, "{}", samples.len());
    for sequential in [false, true] {
        assert_c(&samples, &COptions { sequential, inline_math: true, ..COptions::default() }, &equal);
    }
}
