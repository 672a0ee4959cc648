//! Allocations of a call, as ARCHITECTURE.md and the guide state them: none for single points of native code, a few
//! lists otherwise.
#![allow(clippy::unwrap_used, unsafe_code, reason = "tests; an allocator that counts")]

use chainrule::{Backend, CompileOptions, Module, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all memory is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the allocations of the third call; the first ones may fill caches.
fn allocations(mut call: impl FnMut()) -> usize {
    call();
    call();
    let before = COUNT.get();
    call();
    COUNT.get() - before
}

const TEXT: &str = "let f = fun (x : [n]Double) (y : [n]Double) ->
  let a = build n (fun i -> x[i] * x[max 0 (i - 1)] + sin y[i])
  sum n (fun i -> a[i] * a[n - 1 - i])";

#[test]
fn single_points_of_native_code_allocate_nothing() {
    let (x, y) = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]);
    let f = Module::from_text("f.ft", TEXT).unwrap().function("f").unwrap();
    for backend in [Backend::Native, Backend::Interpreter] {
        let code = f
            .gradient()
            .function()
            .unwrap()
            .compile_with(&CompileOptions { backend, ..CompileOptions::default() })
            .unwrap();
        if code.backend() != backend {
            continue;
        }
        let limit = if backend == Backend::Native { 0 } else { 26 };
        let mut workspace = code.workspace(&[&[3], &[3]]).unwrap();
        let (mut by_x, mut by_y) = ([0.0; 3], [0.0; 3]);
        let into = allocations(|| {
            code.eval_into(&[&x, &y], &mut [&mut by_x, &mut by_y], &mut workspace).unwrap();
        });
        let mut bound = code.bound(&[&[3], &[3]]).unwrap();
        let in_bound = allocations(|| bound.eval().unwrap());
        let values = [x, y].map(|v| Value::from(v.to_vec()));
        let mut prepared = code.prepare(&values).unwrap();
        let in_prepared = allocations(|| prepared.run().unwrap());
        for (way, n) in [("eval_into", into), ("Bound", in_bound), ("Prepared", in_prepared)] {
            assert!(n <= limit, "{way} with {backend:?}: {n} allocations");
        }
    }
}

#[test]
fn batches_and_sparse_derivatives_allocate_a_few_lists() {
    let f = Module::from_text("f.ft", TEXT).unwrap().function("f").unwrap();
    let straight = f.unrolled(&[("n", 3)]).unwrap().gradient().compile().unwrap();
    let counts = [10, 1000].map(|n| {
        let (x, y) = (vec![1.0; 3 * n], vec![2.0; 3 * n]);
        let (mut by_x, mut by_y) = (vec![0.0; 3 * n], vec![0.0; 3 * n]);
        let mut workspace = straight.workspace(&[&[3], &[3]]).unwrap();
        allocations(|| {
            straight.eval_batch(n, &[&x, &y], &mut [&mut by_x, &mut by_y], &mut workspace).unwrap();
        })
    });
    assert!(counts[0] <= 26 && counts[1] == counts[0], "{counts:?}");
    let sparse = f.sparse_hessian(&["x"]).unwrap();
    let counts = [10, 1000].map(|n| {
        let values = [1.0, 2.0].map(|v| Value::from(vec![v; n]));
        let mut prepared = sparse.prepare(&values).unwrap();
        allocations(|| prepared.run().unwrap())
    });
    assert!(counts.iter().all(|n| *n <= 26), "{counts:?}");
}
