//! Subject of `cargo xtask memcheck` under valgrind: native code with AVX2 on hand-written and random kernels, as they
//! are, and with canonicalised, vectorised and parallel loops; straight-line code whole and in chunks; one point by
//! slices, in owned memory and on threads, and batches. Each result is compared with the interpreter's, except with
//! fused products.
//!
//! Arguments and results are allocations of exactly their size, so that valgrind detects accesses outside them. Reports
//! about the generators of random functions are suppressed in `memcheck.supp`.

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
    let mut of_all = native::Checked::default();
    native::hand_written(&mut of_all);
    native::straight_lines(&mut of_all);
    native::functions(&mut of_all);
    println!("{of_all:?}: as in the interpreter");
    of_all.assert_wide();
}

#[cfg(all(target_arch = "x86_64", unix))]
mod native {
    use chainrule_backend_tests::generate::{deep_function, graphs, inputs, inputs_up_to, lower, sources};
    use chainrule_backend_tests::kernels::{integer_case, integer_operators, integer_points, operators};
    use chainrule_backend_tests::native::{
        Compared, compare_in_pieces, compare_on_threads, compare_one, programs, run, run_batch, run_bound,
    };
    use chainrule_backend_tests::{Array, around, filetests, reals};
    use chainrule_graph::Semantics;
    use chainrule_graph::generate::{Numbers, Options, Recipe, chain, layered};
    use chainrule_ir::generate::{arrays, comparisons, records, steps};
    use chainrule_ir::{Function, Value};
    use chainrule_kernel::{Kernel, contract, hoist, lower_function, parallelise, streamline, vectorise};

    use arbitrary::Unstructured;

    /// Whole blocks of four, and a remainder.
    const POINTS: usize = 9;

    /// Counts of runs.
    #[derive(Default, Debug)]
    pub(super) struct Checked {
        kernels: usize,
        /// Runs that were repeated with fused products.
        fused: usize,
        /// Vectorised loops.
        loops_in_lanes: usize,
        /// Parallel loops.
        loops_in_parts: usize,
        /// Straight-line code in chunks.
        lines_in_pieces: usize,
        compared: Compared,
    }

    impl Checked {
        pub(super) fn assert_wide(&self) {
            let Compared { ran, in_lanes, on_threads, .. } = self.compared;
            assert!(ran > 10_000 && in_lanes > 2000 && on_threads > 300 && self.fused > 200, "{self:?}");
            assert!(self.loops_in_lanes > 300 && self.loops_in_parts > 200 && self.lines_in_pieces > 30, "{self:?}");
        }

        fn points(&mut self, kernel: &Kernel, inputs: &[Array]) {
            self.kernels += 1;
            let points = around(inputs, POINTS);
            self.compared += compare_one(kernel, &points).unwrap();
            self.lines_in_pieces += usize::from(compare_in_pieces(kernel, 16, &points).unwrap());
            // Fused products of zeros have the wrong sign under valgrind 3.19: these are run, not compared.
            let mut fused = kernel.clone();
            if contract(&mut fused) > 0 {
                self.fused += 1;
                for program in programs(&fused) {
                    let _ = (run(&fused, &program, inputs), run_bound(&fused, &program, inputs));
                    let _ = [false, true].map(|arrays| run_batch(&fused, &program, &points, arrays, 1));
                }
            }
        }

        /// Checks the kernel as it is, and as it is transformed before compilation.
        fn forms(&mut self, kernel: &Kernel, inputs: &[Array]) {
            self.points(kernel, inputs);
            let mut plain = kernel.clone();
            streamline(&mut plain);
            let mut at_once = plain.clone();
            self.loops_in_lanes += vectorise(&mut at_once, Semantics::Algebraic);
            hoist(&mut at_once);
            self.points(&at_once, inputs);
            let mut in_parts = plain;
            let loops = parallelise(&mut in_parts, Semantics::Algebraic);
            if loops > 0 {
                self.loops_in_parts += loops;
                vectorise(&mut in_parts, Semantics::Algebraic);
                hoist(&mut in_parts);
                self.compared += compare_on_threads(&in_parts, inputs, &[1, 2, 3]).unwrap();
            }
        }
    }

    pub(super) fn hand_written(all: &mut Checked) {
        let mut cases = filetests::cases(&filetests::shared());
        cases.extend(operators(50).into_iter().map(|operator| operator.case));
        for op in integer_operators() {
            cases.extend(integer_points(op).iter().step_by(29).map(|point| integer_case(op, point)));
        }
        cases.iter().for_each(|case| all.forms(&case.kernel, &case.inputs));
    }

    pub(super) fn straight_lines(all: &mut Checked) {
        for case in graphs(100, 1, Numbers::Special, 60, Kernel::clone) {
            all.points(&case.kernel, &case.inputs);
        }
        for (seed, steps) in (0..).zip([500; 20].into_iter().chain([5000])) {
            let recipe = Recipe::whole(&Options::new(steps), seed).unwrap();
            let (graph, roots) = recipe.raw(Semantics::Strict);
            all.points(&lower(&graph, &roots), &[reals(&recipe.point)]);
        }
        let x: Vec<f64> = (0..40).map(|i| 0.1 * f64::from(i) - 0.4).collect();
        let (graph, roots) = layered(Semantics::Strict, 2_000, 40, 100, 3);
        all.points(&lower(&graph, &roots), &[reals(&x)]);
        let (graph, top) = chain(Semantics::Strict, 2_000);
        all.points(&lower(&graph, &[top]), &[reals(&[0.7])]);
    }

    /// Checks random functions of the array IR: with all forms of loops, at sizes with whole blocks of lanes; with
    /// array moves; with index comparisons; with records; with loops that build matrices in steps.
    pub(super) fn functions(all: &mut Checked) {
        for bytes in sources(150, 3, 3000) {
            let mut u = Unstructured::new(&bytes);
            let Some(function) = deep_function(&mut u) else { continue };
            let Ok(kernel) = lower_function(&function) else { continue };
            for longest in [20, 9] {
                let Some(inputs) = inputs_up_to(&mut u, &function, longest) else { continue };
                all.forms(&kernel, &inputs);
            }
        }
        type Make = fn(&mut Unstructured<'_>) -> arbitrary::Result<(Function, Vec<Value<f64>>)>;
        let makes: [Make; 4] =
            [|u| arrays::case(u, 40), |u| comparisons::case(u, 24, 20), |u| records::case(u, 28), steps::case];
        for (seed, make) in (4..).zip(makes) {
            for bytes in sources(75, seed, 3000) {
                let Ok((function, args)) = make(&mut Unstructured::new(&bytes)) else { continue };
                let Ok(kernel) = lower_function(&function) else { continue };
                let Some(inputs) = inputs(&function, &args) else { continue };
                all.forms(&kernel, &inputs);
            }
        }
    }
}
