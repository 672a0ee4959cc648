//! Emitted C and Rust with Chainrule's own elementary functions, compiled and run: bitwise equal to compiled code with
//! equal options.

use crate::samples::{Sample, examples, random};
use chainrule::{
    COptions, CompileOptions, Function, RustFma, RustLibrary, RustOptions, Semantics, Shape, emit_c_with, emit_rust,
};
use chainrule_backend_tests::c::{FLAGS, Files, compiler};
use chainrule_backend_tests::exact::replace;
use chainrule_backend_tests::rust::{File, has_clippy};
use chainrule_backend_tests::{Case, Data, Outcome, c, is_inexact, rust};
use chainrule_base::{Arena, Poly};
use chainrule_cases::covers;
use chainrule_kernel::{Buffer, Class, Kernel, Place, Port, lower_function};
use std::cell::Cell;
use std::rc::Rc;

/// Maximum number of straight-line operations, for which compilers take long.
const MAX_STRAIGHT: u64 = 600;

/// Function for emission.
struct Text {
    sample: Rc<Sample>,
    function: Function,
    /// Its arguments, with a kernel that has its interface.
    case: Case,
}

/// Returns functions with loops, and without them if they can be unrolled.
fn texts(semantics: Semantics, seed: u64) -> Vec<Text> {
    let mut texts = Vec::new();
    for sample in examples(semantics, &[18]).into_iter().chain(random(semantics, seed, 20)).map(Rc::new) {
        if let Some((function, inputs)) = sample.straight(MAX_STRAIGHT) {
            let case = Case { kernel: signature(&function), inputs };
            texts.push(Text { sample: Rc::clone(&sample), function, case });
        }
        let case = Case { kernel: lower_function(&sample.ir).unwrap(), inputs: sample.inputs() };
        texts.push(Text { function: sample.function.clone(), sample, case });
    }
    texts
}

/// Returns an empty kernel with the interface of straight-line code.
fn signature(function: &Function) -> Kernel {
    let mut buffers = Arena::new();
    let mut ports = |shapes: &[Shape], place: fn(usize) -> Place| -> Vec<Port> {
        let port = |(i, shape): (usize, &Shape)| {
            let extents = shape.extents.iter().map(|n| Poly::constant(n.unwrap() as i64));
            let shape_of: Vec<Poly<_>> = extents.collect();
            let len = shape_of.iter().fold(Poly::constant(1), |len, n| len.mul(n));
            let buffer = buffers.push(Buffer { class: Class::Real, len, place: place(i) });
            Port { name: shape.name.clone(), shape: shape_of, buffer }
        };
        shapes.iter().enumerate().map(port).collect()
    };
    let inputs = ports(function.inputs(), Place::Input);
    let outputs = ports(function.outputs(), Place::Output);
    Kernel { inputs, outputs, buffers, ..Kernel::empty(function.name().clone()) }
}

impl Text {
    /// Returns the results of compiled code.
    fn compiled(&self, options: &CompileOptions) -> Vec<Data> {
        let compiled = self.function.compile_with(options).unwrap();
        if self.function.keeps_loops() {
            let results = compiled.call(&self.sample.args).unwrap();
            return self.sample.outputs(&results[0]);
        }
        let real = |data: &Data| match data {
            Data::Real(x) => x.clone(),
            Data::Int(_) => panic!("straight-line code takes no integers"),
        };
        let inputs: Vec<Vec<f64>> = self.case.inputs.iter().map(|array| real(&array.data)).collect();
        let inputs: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        compiled.eval(&inputs).unwrap().into_iter().map(Data::Real).collect()
    }

    /// Returns whether functions are called that the C library has and Chainrule does not.
    fn calls_math_h(&self) -> bool {
        let calls = Cell::new(false);
        let look = |op| {
            calls.set(calls.get() || (is_inexact(op) && op.row().elementary.is_none()));
            None
        };
        drop(replace(&lower_function(&self.sample.ir).unwrap(), look));
        calls.get()
    }
}

fn assert_same(texts: &[Text], found: &[Outcome], options: &CompileOptions) {
    assert_eq!(texts.len(), found.len());
    for (text, found) in texts.iter().zip(found) {
        let (name, args) = (&text.sample.name, &text.sample.args);
        let loops = text.function.keeps_loops();
        assert_eq!(found, &Ok(text.compiled(options)), "with loops: {loops}, {options:?}, {name}\n{args:?}");
    }
}

fn named(texts: &[Text]) -> Vec<Function> {
    texts.iter().enumerate().map(|(i, text)| text.function.clone().named(&format!("k{i}"))).collect()
}

fn cases(texts: &[Text]) -> Vec<Case> {
    texts.iter().map(|text| text.case.clone()).collect()
}

fn assert_c(texts: &[Text], options: &COptions, equal: &CompileOptions) {
    let Some(cc) = compiler() else { return };
    let functions = named(texts);
    let emitted = emit_c_with("kernels", &functions.iter().collect::<Vec<_>>(), options).unwrap();
    let (functions, header, source) = (&emitted.functions, &emitted.header, &emitted.source);
    // Loops in parts contain OpenMP pragmas.
    let flags = [&FLAGS[..], &["-Wno-unknown-pragmas"]].concat();
    let files = Files { name: "kernels", functions, header, source, number: "double" };
    assert_same(texts, &c::run(cc, &flags, &cases(texts), &files), equal);
}

fn assert_rust(texts: &[Text], options: &RustOptions, equal: &CompileOptions) {
    if !has_clippy() {
        return;
    }
    let functions = named(texts);
    let emitted = emit_rust("kernels", &functions.iter().collect::<Vec<_>>(), options).unwrap();
    let (functions, text) = (&emitted.functions, &emitted.text);
    let file = File { functions, text, needs_std: emitted.needs_std, needs_libm: emitted.needs_libm, number: "f64" };
    assert_same(texts, &rust::run(&cases(texts), &file), equal);
}

/// Counts the texts whose value differs with other options: without any, equal bits would prove nothing.
fn n_differ(texts: &[Text], one: &CompileOptions, other: &CompileOptions) -> usize {
    texts.iter().filter(|text| text.compiled(one) != text.compiled(other)).count()
}

fn plain() -> CompileOptions {
    CompileOptions { fuse: Some(false), sequential: true, ..CompileOptions::default() }
}

/// Returns every third text: Rust takes longer than C.
fn some(texts: Vec<Text>) -> Vec<Text> {
    let some: Vec<Text> = texts.into_iter().step_by(3).collect();
    covers!(some.len() > 35, "{}", some.len());
    some
}

#[test]
fn c_has_the_bits_of_compiled_code_with_equal_options() {
    let mut texts = texts(Semantics::Algebraic, 51);
    texts.retain(|text| !text.calls_math_h());
    covers!(texts.len() > 100, "{}", texts.len());
    for fuse in [false, true] {
        for sequential in [false, true] {
            let equal = CompileOptions { fuse: Some(fuse), sequential, ..CompileOptions::default() };
            let differ = n_differ(&texts, &equal, &plain());
            covers!(differ > 10 || equal == plain(), "{differ} differ with {equal:?}");
            assert_c(&texts, &COptions { fuse, sequential, inline_math: true, ..COptions::default() }, &equal);
        }
    }
    let equal = CompileOptions { threads: Some(1), ..plain() };
    let differ = n_differ(&texts, &equal, &plain());
    covers!(differ > 3, "{differ} differ in parts");
    assert_c(&texts, &COptions { threads: true, inline_math: true, ..COptions::default() }, &equal);
}

#[test]
fn rust_has_the_bits_of_compiled_code_with_equal_options() {
    let texts = some(texts(Semantics::Algebraic, 52));
    let with = |fuse, sequential, fma| {
        let equal = CompileOptions { fuse: Some(fuse), sequential, ..CompileOptions::default() };
        let options = RustOptions { fuse, sequential, library: RustLibrary::Own(fma), ..RustOptions::default() };
        assert_rust(&texts, &options, &equal);
    };
    with(false, true, RustFma::Standard);
    with(true, false, RustFma::Exact);
}

#[test]
fn strict_text_has_the_bits_of_strict_code() {
    let mut texts = texts(Semantics::Strict, 53);
    texts.retain(|text| !text.calls_math_h());
    covers!(texts.len() > 100, "{}", texts.len());
    for sequential in [false, true] {
        let options = COptions { sequential, inline_math: true, ..COptions::default() };
        assert_c(&texts, &options, &CompileOptions::default());
    }
    let options = RustOptions { library: RustLibrary::Own(RustFma::Standard), ..RustOptions::default() };
    assert_rust(&some(texts), &options, &CompileOptions::default());
}
