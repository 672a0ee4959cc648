//! What `cargo xtask memcheck` runs under valgrind: native code with AVX2 on hand-written and random kernels, one
//! point and batches, each result compared with the interpreter's.
//!
//! Arguments and results are allocations of exactly their size, so that valgrind sees what is read or written beside
//! them. Random kernels come from graphs; those of the array IR are left out, because valgrind takes the padding of
//! their generator's enums for something that is read before it is written.

#![allow(clippy::unwrap_used)] // a check, not for users

#[cfg(not(all(target_arch = "x86_64", unix)))]
fn main() {
    println!("skipped: there is no native code for this machine");
}

#[cfg(all(target_arch = "x86_64", unix))]
fn main() {
    if !chainrule_native::Level::Avx2.missing().is_empty() {
        println!("skipped: this machine, or valgrind, has no AVX2");
        return;
    }
    let cases = native::cases();
    let in_lanes = cases.iter().filter(|case| native::check(case)).count();
    println!("{} kernels, {in_lanes} of them in lanes: as in the interpreter", cases.len());
}

#[cfg(all(target_arch = "x86_64", unix))]
mod native {
    use chainrule_backend_tests::case::results;
    use chainrule_backend_tests::generate::{graphs, lower};
    use chainrule_backend_tests::kernels::{
        awkward_names, doubled, halving, integer_case, integer_operators, integer_points, operators, picked_sums,
        rotation,
    };
    use chainrule_backend_tests::{Array, Case, Data, fused, int, ints, real, reals};
    use chainrule_graph::Semantics;
    use chainrule_graph::generate::{Numbers, chain, layered};
    use chainrule_kernel::Kernel;
    use chainrule_native::{Level, Options, Program, Workspace};
    use chainrule_runtime::{RunError, SliceMut, Strided, StridedMut};
    use std::sync::Arc;

    /// A tail beside whole blocks of four.
    const POINTS: usize = 11;

    pub(super) fn cases() -> Vec<Case> {
        let matrix = Array { shape: vec![3, 2], data: Data::Real(vec![0.5, 1.0, 2.0, 4.0, 8.0, 16.0]) };
        let sums = |picks: &[i64]| Case { kernel: picked_sums(), inputs: vec![matrix.clone(), ints(picks)] };
        let mut cases = vec![awkward_names(), sums(&[2, 0, 1]), sums(&[0, 3, 1]), sums(&[-1, 0, 0])];
        for kernel in rotation() {
            cases.push(Case { kernel, inputs: vec![real(0.3), reals(&[1.0, -2.0])] });
        }
        cases.extend([7.0, 1e9].map(|x| Case { kernel: halving(), inputs: vec![real(x)] }));
        cases.extend([-5, i64::MAX].map(|k| Case { kernel: doubled(), inputs: vec![int(k)] }));
        cases.extend(operators(50).into_iter().map(|operator| operator.case));
        for op in integer_operators() {
            cases.extend(integer_points(op).iter().step_by(29).map(|point| integer_case(op, point)));
        }
        cases.extend(graphs(60, 1, Numbers::Special, 60, Kernel::clone));
        cases.extend(graphs(60, 2, Numbers::Tame, 60, fused));
        let x: Vec<f64> = (0..40).map(|i| 0.1 * f64::from(i) - 0.4).collect();
        let (graph, roots) = layered(Semantics::Strict, 2_000, 40, 100, 3);
        cases.push(Case { kernel: lower(&graph, &roots), inputs: vec![reals(&x)] });
        let (graph, top) = chain(Semantics::Strict, 2_000);
        cases.push(Case { kernel: lower(&graph, &[top]), inputs: vec![reals(&[0.7])] });
        cases
    }

    /// Compares one point and a batch; whether the batch ran in lanes.
    pub(super) fn check(case: &Case) -> bool {
        let options = Options { level: Some(Level::Avx2), ..Options::default() };
        let program = Program::new(Arc::new(case.kernel.clone()), &options).unwrap();
        let points: Vec<Case> = (0..POINTS).map(|p| case.moved(p)).collect();
        let expected: Vec<Result<Vec<Data>, RunError>> = points.iter().map(results).collect();
        for (point, expected) in points.iter().zip(&expected) {
            assert_eq!(&run(&program, point), expected, "{}", case.kernel);
        }
        let (found, lanes) = run_batch(&program, &points);
        match found {
            Ok(found) => assert_eq!(found.into_iter().map(Ok).collect::<Vec<_>>(), expected, "{}", case.kernel),
            Err(_) => assert!(expected.iter().any(Result::is_err), "{}", case.kernel),
        }
        lanes > 1
    }

    fn run(program: &Program, case: &Case) -> Result<Vec<Data>, RunError> {
        let slices = case.slices();
        let sizes = program.bind_inputs(&case.shapes(), &slices)?;
        let outputs = case.kernel.outputs.iter().enumerate();
        let mut found: Vec<Data> = outputs.map(|(i, port)| Data::new(case.class(port), sizes.output_len(i))).collect();
        let mut into: Vec<SliceMut<'_>> = found.iter_mut().map(Data::slice_mut).collect();
        program.run(&sizes, &slices, &mut into, &mut Workspace::new(program, &sizes))?;
        Ok(found)
    }

    /// All points as a batch of structures: the results of each, and how many ran at once.
    fn run_batch(program: &Program, points: &[Case]) -> (Result<Vec<Vec<Data>>, RunError>, usize) {
        let sizes = program.bind_inputs(&points[0].shapes(), &points[0].slices()).unwrap();
        let mut joined: Vec<Data> = points[0].inputs.iter().map(|a| a.data.clone()).collect();
        for point in &points[1..] {
            joined.iter_mut().zip(&point.inputs).for_each(|(all, one)| all.append(&one.data));
        }
        let inputs: Vec<Strided<'_>> = (joined.iter().zip(&points[0].inputs))
            .map(|(data, one)| Strided { data: data.slice(), point: one.data.len(), element: 1 })
            .collect();
        let outputs = points[0].kernel.outputs.iter().enumerate();
        let mut found: Vec<Data> =
            outputs.map(|(i, port)| Data::new(points[0].class(port), points.len() * sizes.output_len(i))).collect();
        let mut into: Vec<StridedMut<'_>> = (found.iter_mut().enumerate())
            .map(|(i, data)| StridedMut { data: data.slice_mut(), point: sizes.output_len(i), element: 1 })
            .collect();
        let lanes = program.lanes_for(&sizes);
        let mut workspaces = [Workspace::for_batch(program, &sizes)];
        let run = program.run_batch(&sizes, points.len(), &inputs, &mut into, &mut workspaces);
        let split = |p: usize| {
            let part = |(i, data): (usize, &Data)| data.part(p * sizes.output_len(i), sizes.output_len(i));
            found.iter().enumerate().map(part).collect()
        };
        (run.map(|()| (0..points.len()).map(split).collect()), lanes)
    }
}
