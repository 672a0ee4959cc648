//! Random kernels, straight lines and loops: native code against the interpreter, bit for bit; and both
//! after they were saved and loaded.
#![no_main]

use arbitrary::Unstructured;
use chainrule_base::Name;
use chainrule_graph::generate::{Numbers, Options as GraphOptions, Recipe};
use chainrule_graph::{NodeId, Semantics};
use chainrule_ir::generate;
use chainrule_kernel::bytes::{from_bytes, to_bytes};
use chainrule_kernel::{Class, GraphPort, Kernel, contract, lower_function, lower_graph};
use chainrule_runtime::{Layout, Slice, SliceMut};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fuzz_target!(|data: &[u8]| {
    let _ = case(&mut Unstructured::new(data));
});

fn case(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut kernel = if u.arbitrary()? {
        let numbers = if u.arbitrary()? { Numbers::Special } else { Numbers::Tame };
        let options = GraphOptions { numbers, in_domain: false, max_roots: 6, ..GraphOptions::new(200) };
        let (graph, roots) = Recipe::random(u, &options)?.raw(Semantics::Strict);
        let inputs: Vec<NodeId> = graph.inputs().iter().map(|(_, id)| *id).collect();
        let port = |name: &str, nodes: Vec<NodeId>| GraphPort {
            name: Name::new(name),
            shape: vec![nodes.len() as i64],
            nodes,
        };
        lower_graph("random", &graph, &[port("x", inputs)], &[port("y", roots)]).expect("ports that fit the graph")
    } else {
        let options = generate::Options { derivatives: false, transposed: false, ..Default::default() };
        let Ok(kernel) = lower_function(&generate::case(u, options)?.function) else { return Ok(()) };
        kernel
    };
    if u.arbitrary()? {
        contract(&mut kernel);
    }
    let saved = to_bytes(&kernel).expect("random kernels do not nest deep");
    let loaded = from_bytes(&saved, &|_, _| None).expect("what was saved loads");
    assert_eq!(loaded.to_string(), kernel.to_string());
    compare(&Arc::new(loaded), u)
}

/// All extents are of one length, drawn at random, where nothing else is asked for.
fn compare(kernel: &Arc<Kernel>, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let extent = u.int_in_range(0..=4)?;
    let shapes: Vec<Vec<usize>> = kernel
        .inputs
        .iter()
        .map(|port| {
            let known = |e: &chainrule_base::Poly<_>| e.as_constant().and_then(|n| usize::try_from(n).ok());
            port.shape.iter().map(|e| known(e).unwrap_or(extent)).collect()
        })
        .collect();
    let is_real = |buffer| kernel.buffers[buffer].class == Class::Real;
    let mut reals = Vec::new();
    let mut ints = Vec::new();
    for (port, shape) in kernel.inputs.iter().zip(&shapes) {
        let len = shape.iter().product();
        let (mut real, mut int) = (Vec::new(), Vec::new());
        for _ in 0..if is_real(port.buffer) { len } else { 0 } {
            real.push(Numbers::Special.pick(u)?);
        }
        for _ in 0..if is_real(port.buffer) { 0 } else { len } {
            int.push(u.int_in_range(0..=4)?);
        }
        reals.push(real);
        ints.push(int);
    }
    let inputs: Vec<Slice<'_>> = kernel
        .inputs
        .iter()
        .zip(reals.iter().zip(&ints))
        .map(|(port, (real, int))| if is_real(port.buffer) { Slice::Real(real) } else { Slice::Int(int) })
        .collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();

    let interpreter = chainrule_interpret::Program::new(kernel).expect("a sound kernel");
    let Ok(sizes) = interpreter.bind_inputs(&shapes, &inputs) else { return Ok(()) };
    let results = |run: &mut dyn FnMut(&mut [SliceMut<'_>]) -> Result<(), String>| {
        let lens: Vec<usize> = (0..kernel.outputs.len()).map(|i| sizes.output_len(i)).collect();
        let mut reals: Vec<Vec<f64>> = lens.iter().map(|n| vec![0.0; *n]).collect();
        let mut ints: Vec<Vec<i64>> = lens.iter().map(|n| vec![0; *n]).collect();
        let mut slices: Vec<SliceMut<'_>> = kernel
            .outputs
            .iter()
            .zip(reals.iter_mut().zip(&mut ints))
            .map(|(port, (real, int))| if is_real(port.buffer) { SliceMut::Real(real) } else { SliceMut::Int(int) })
            .collect();
        run(&mut slices)?;
        // Every NaN is as good as another.
        let bits = |x: &f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
        let reals: Vec<Vec<u64>> = reals.iter().map(|all| all.iter().map(bits).collect()).collect();
        Ok::<_, String>((reals, ints))
    };
    let expected = results(&mut |out| {
        let mut memory = chainrule_interpret::Workspace::new(&interpreter, &sizes);
        interpreter.run(&sizes, &inputs, out, &mut memory).map_err(|e| e.to_string())
    });
    let options = chainrule_native::Options::default();
    let Ok(native) = chainrule_native::Program::with_layout(kernel.clone(), Layout::new(kernel), &options) else {
        return Ok(());
    };
    let sizes = native.bind_inputs(&shapes, &inputs).expect("the same layout");
    let found = results(&mut |out| {
        let mut memory = chainrule_native::Workspace::new(&native, &sizes);
        native.run(&sizes, &inputs, out, &mut memory).map_err(|e| e.to_string())
    });
    assert_eq!(found, expected, "{kernel}");
    Ok(())
}
