//! Lowered functions against the reference evaluator of the array IR, bit for bit.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_ir::{Builder, Function, Size, Type, Value, VarId, bind_sizes, evaluate};
use chainrule_kernel::{Kernel, lower_function, verify};
use chainrule_ops::{F64, Op};
use support::{Array, Scalar, flatten, run};

fn lower(function: &Function) -> Kernel {
    chainrule_ir::verify(function).unwrap();
    let kernel = lower_function(function).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    let again = lower_function(function).unwrap();
    assert_eq!(kernel.to_string(), again.to_string(), "lowering is deterministic");
    kernel
}

/// The leaves of the arguments, and what the kernel makes of them.
fn run_at(function: &Function, kernel: &Kernel, args: &[Value<f64>]) -> Result<Vec<Array>, String> {
    let sizes = bind_sizes(function, args).unwrap();
    let size = |size: &Size| sizes.eval(size).unwrap();
    let inputs: Vec<Array> =
        function.params.iter().zip(args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size)).collect();
    run(kernel, &inputs)
}

/// Compares the kernel with the reference evaluator at `args`.
fn check(function: &Function, args: &[Value<f64>]) -> Kernel {
    let kernel = lower(function);
    check_at(function, &kernel, args);
    kernel
}

fn check_at(function: &Function, kernel: &Kernel, args: &[Value<f64>]) {
    let sizes = bind_sizes(function, args).unwrap();
    let size = |size: &Size| sizes.eval(size).unwrap();
    let expected = evaluate(function, &mut F64, args).unwrap();
    let expected = flatten(function.result_type(), &expected, &size);
    let found = run_at(function, kernel, args).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    assert_eq!(found, expected, "{kernel}");
}

fn vector(n: &Size) -> Type {
    Type::array(n.clone(), Type::Double)
}

fn numbers(n: usize, seed: f64) -> Vec<f64> {
    (0..n).map(|i| (seed + i as f64 * 0.37).sin()).collect()
}

fn rows(n: usize, m: usize, seed: f64) -> Value<f64> {
    (0..n).map(|i| numbers(m, seed + i as f64)).collect::<Vec<_>>().into()
}

/// A builder with size parameters `n` and `m`.
fn sized(name: &str) -> (Builder, Size, Size) {
    let mut b = Builder::new(name);
    let (n, m) = (b.size_param("n"), b.size_param("m"));
    (b, Size::var(n), Size::var(m))
}

#[test]
fn a_matrix_vector_product_reads_and_writes_in_place() {
    let (mut b, n, m) = sized("matvec");
    let a = b.param("A", Type::array(n.clone(), vector(&m)));
    let x = b.param("x", vector(&m));
    let y = b.build(n, |b, i| {
        b.sum(m, |b, j| {
            let row = b.get_proved(a, i);
            let (aij, xj) = (b.get_proved(row, j), b.get_proved(x, j));
            b.op(Op::Mul, &[aij, xj])
        })
    });
    let f = b.finish(y);
    let kernel = lower(&f);
    insta::assert_snapshot!(kernel, @r"
    kernel matvec
    size n r0 = extent 0 of A
    size m r1 = extent 1 of A
    input A: real[r0][r1] in b0
    input x: real[r1] in b1
    output result: real[r0] in b2
    for r2 in 0..r0
      r3 = 0.0
      for r5 in 0..r1, r4 = r3 then r9
        r6 = load b0[r1*r2 + r5]
        r7 = load b1[r5]
        r8 = mul r6, r7
        r9 = add r4, r8
      store b2[r2] = r4
    ");
    for (n, m) in [(3, 4), (0, 2), (2, 0)] {
        if n > 0 {
            check_at(&f, &kernel, &[rows(n, m, 1.0), numbers(m, 2.0).into()]);
        }
    }
    check_at(&f, &kernel, &[Value::Array(vec![]), numbers(2, 2.0).into()]);
}

#[test]
fn a_function_may_return_its_argument_or_parts_of_it() {
    let (mut b, n, m) = sized("parts");
    let a = b.param("A", Type::array(n.clone(), vector(&m)));
    let zero = b.int(0);
    let row = b.get(a, zero);
    let result = b.tuple(&[a, row, a]);
    let f = b.finish(result);
    let kernel = check(&f, &[rows(2, 3, 0.0)]);
    assert!(kernel.workspace_reals.is_zero());
    let empty = run_at(&f, &kernel, &[Value::Array(vec![])]);
    insta::assert_snapshot!(empty.unwrap_err(), @r"an index lies outside of the array `A`");
}

#[test]
fn swapped_states_are_swapped() {
    let (mut b, n, _) = sized("swap");
    let (x, y) = (b.param("x", vector(&n)), b.param("y", vector(&n)));
    let (p, q) = (b.param("p", Type::Double), b.param("q", Type::Double));
    let k = b.param("k", Type::Int);
    let init = b.tuple(&[x, y, p, q]);
    let result = b.fold(Size::var(k), init, |b, state, _| {
        let parts: Vec<VarId> = (0..4).map(|i| b.component(state, i)).collect();
        b.tuple(&[parts[1], parts[0], parts[3], parts[2]])
    });
    // m is bound by an argument that is not used otherwise.
    let f = with_unused_m(b, result);
    for k in [-1, 0, 1, 2, 3] {
        for n in [0, 1, 3] {
            let args = [
                numbers(n, 0.0).into(),
                numbers(n, 5.0).into(),
                1.0.into(),
                2.0.into(),
                Value::Int(k),
                numbers(1, 0.0).into(),
            ];
            check(&f, &args);
        }
    }
}

#[test]
fn zeros_from_around_a_branch_are_not_added() {
    // A sum of x[i] at the places i below k: what is made for the others is bound outside of the loop.
    let (mut b, n, _) = sized("some");
    let (x, k) = (b.param("x", vector(&n)), b.param("k", Type::Int));
    let zeros = b.zero(vector(&n));
    let total = b.sum(n.clone(), |b, i| {
        let few = b.op(Op::Lt, &[i, k]);
        b.if_(
            few,
            |b| {
                let x = b.get_proved(x, i);
                b.one_hot_proved(n.clone(), i, x)
            },
            |_| zeros,
        )
    });
    let f = with_unused_m(b, total);
    let kernel = lower(&f);
    for k in 0..4 {
        check_at(&f, &kernel, &[numbers(3, 0.5).into(), Value::Int(k), numbers(1, 0.0).into()]);
    }
    let nested = kernel.to_string().lines().filter(|line| line.starts_with("  ") && line.contains("for ")).count();
    assert_eq!(nested, 0, "{kernel}");
}

#[test]
fn zero_numbers_of_a_branch_are_not_added() {
    // Pairs of elements that count below k: nothing is added for the others.
    let (mut b, n, _) = sized("pairs");
    let (x, k) = (b.param("x", vector(&n)), b.param("k", Type::Int));
    let zero = b.real(0.0);
    let total = b.sum(n.clone(), |b, i| {
        let few = b.op(Op::Lt, &[i, k]);
        let both = b.if_(
            few,
            |b| {
                let x = b.get_proved(x, i);
                let less = b.op(Op::Neg, &[x]);
                b.tuple(&[x, less])
            },
            |b| b.tuple(&[zero, zero]),
        );
        let [x, less] = [0, 1].map(|part| b.component(both, part));
        let last = b.size(n.sub(&Size::var(i)).sub(&Size::constant(1)));
        let (here, there) = (b.one_hot_proved(n.clone(), i, x), b.one_hot_proved(n.clone(), last, less));
        b.plus(here, there)
    });
    let f = with_unused_m(b, total);
    let kernel = lower(&f);
    for k in 0..4 {
        check_at(&f, &kernel, &[numbers(3, 0.5).into(), Value::Int(k), numbers(1, 0.0).into()]);
    }
    assert!(!kernel.to_string().contains("else\n"), "{kernel}");
}

/// Gives the size `m` an argument, and ends the function.
fn with_unused_m(mut b: Builder, result: VarId) -> Function {
    let m = b.vars.ids().nth(1).unwrap();
    b.param("unused", Type::array(Size::var(m), Type::Double));
    b.finish(result)
}

#[test]
fn a_state_is_read_at_other_places_than_it_is_written() {
    let (mut b, n, _) = sized("rotate");
    let x = b.param("x", vector(&n));
    let n_var = n.clone();
    let result = b.fold(Size::constant(3), x, |b, state, k| {
        b.build(n_var.clone(), |b, i| {
            let last = b.size(n_var.sub(&Size::constant(1)));
            let mirrored = b.op(Op::Sub, &[last, i]);
            let (a, c) = (b.get_proved(state, mirrored), b.get_proved(state, i));
            let k = b.to_real(k);
            let sum = b.op(Op::Add, &[a, k]);
            b.op(Op::Mul, &[sum, c])
        })
    });
    let f = with_unused_m(b, result);
    let kernel = lower(&f);
    for n in [0, 1, 4, 5] {
        check_at(&f, &kernel, &[numbers(n, 0.3).into(), numbers(2, 0.0).into()]);
    }
    insta::assert_snapshot!(kernel, @r"
    kernel rotate
    size n r0 = extent 0 of x
    size m r1 = extent 0 of unused
    input x: real[r0] in b0
    input unused: real[r1] in b1
    output result: real[r0] in b2
    buffer b3: real[r0] at 0
    workspace: r0 real, 0 int
    copy r0 to b2[0] from b0[0]
    for r2 in 0..3
      for r3 in 0..r0
        r4 = load b2[r0 - r3 - 1]
        r5 = load b2[r3]
        r6 = real r2
        r7 = add r4, r6
        r8 = mul r7, r5
        store b3[r3] = r8
      move r0 to b2[0] from b3[0]
    ");
}

#[test]
fn a_state_is_not_overwritten_by_the_first_term_of_a_long_sum() {
    // The sum is made in the memory of its first term, which is made before the state is read.
    for n_terms in [0, 1, 2, 20, 29, 30, 31, 32, 33, 34, 40, 1000] {
        let (mut b, n, _) = sized("sum");
        let x = b.param("x", vector(&n));
        let zero = b.int(0);
        let result = b.fold(Size::constant(3), x, |b, state, k| {
            let first = b.build(n.clone(), |b, _| b.to_real(k));
            let reversed = b.build(n.clone(), |b, i| {
                let last = b.size(n.sub(&Size::constant(1)));
                let mirrored = b.op(Op::Sub, &[last, i]);
                b.get_proved(state, mirrored)
            });
            let mut sum = b.plus(first, reversed);
            for term in 0..n_terms {
                let value = b.real(f64::from(term));
                let hot = b.one_hot_proved(n.clone(), zero, value);
                sum = if term % 2 == 0 { b.plus(sum, hot) } else { b.plus(hot, sum) };
            }
            sum
        });
        check(&with_unused_m(b, result), &[vec![1.0, 2.0, 4.0, 8.0].into(), numbers(2, 0.0).into()]);
    }
}

#[test]
fn a_row_that_is_read_late_is_saved_early() {
    let (mut b, n, m) = sized("late");
    let s = b.param("s", Type::array(n.clone(), vector(&m)));
    let zeros = b.build(m.clone(), |b, _| b.real(0.0));
    let init = b.tuple(&[s, zeros]);
    let result = b.fold(n.clone(), init, |b, state, k| {
        let (s, t) = (b.component(state, 0), b.component(state, 1));
        // The row is named after the array in which it is cleared.
        let next = b.build(n.clone(), |b, i| {
            let is_row = b.op(Op::Eq, &[i, k]);
            b.if_(is_row, |_| zeros, |b| b.get_proved(s, i))
        });
        let row = b.get_proved(s, k);
        let sum = b.build(m.clone(), |b, j| {
            let (x, y) = (b.get_proved(t, j), b.get_proved(row, j));
            b.op(Op::Add, &[x, y])
        });
        b.tuple(&[next, sum])
    });
    let f = b.finish(result);
    let kernel = lower(&f);
    for (n, m) in [(0, 2), (1, 3), (4, 3)] {
        check_at(&f, &kernel, &[rows(n, m, 1.0)]);
    }
    // The matrix and the sum are results; the zeros and the row are not.
    assert_eq!(kernel.workspace_reals.to_string(), "2*r1");
}

#[test]
fn states_that_stay_or_become_rows_of_others() {
    let (mut b, n, m) = sized("stay");
    let a = b.param("A", Type::array(n.clone(), vector(&m)));
    let x = b.param("x", vector(&m));
    let y = b.param("y", vector(&m));
    let init = b.tuple(&[x, y, a]);
    // Whatever the step: the first becomes a row of the third, the second the old first, the third stays.
    let result = b.fold(n, init, |b, state, i| {
        let (first, third) = (b.component(state, 0), b.component(state, 2));
        let row = b.get_proved(third, i);
        b.tuple(&[row, first, third])
    });
    let f = b.finish(result);
    check(&f, &[rows(3, 2, 0.0), numbers(2, 9.0).into(), numbers(2, 7.0).into()]);
    let (mut b, n, m) = sized("unchanged");
    let a = b.param("A", Type::array(n.clone(), vector(&m)));
    let result = b.fold(n, a, |_, state, _| state);
    check(&b.finish(result), &[rows(3, 2, 0.0)]);
}

#[test]
fn branches_are_lazy_and_write_where_they_are_wanted() {
    let (mut b, n, m) = sized("branches");
    let a = b.param("A", Type::array(n.clone(), vector(&m)));
    let k = b.param("k", Type::Int);
    let zero = b.int(0);
    let result = b.build(n.clone(), |b, i| {
        let (i_real, k_real) = (b.to_real(i), b.to_real(k));
        let small = b.op(Op::Lt, &[i_real, k_real]);
        b.if_(
            small,
            |b| b.get_proved(a, i),
            |b| {
                let other = b.get(a, k);
                b.build(m.clone(), |b, j| {
                    let x = b.get_proved(other, j);
                    let least = b.op(Op::Lt, &[j, k]);
                    b.if_(least, |b| b.op(Op::Neg, &[x]), |b| b.get(other, zero))
                })
            },
        )
    });
    let f = b.finish(result);
    let kernel = lower(&f);
    for k in 0..4 {
        check_at(&f, &kernel, &[rows(3, 2, 0.5), Value::Int(k)]);
    }
    // The index is looked at only where the branch is taken.
    let error = run_at(&f, &kernel, &[rows(3, 2, 0.5), Value::Int(-1)]).unwrap_err();
    insta::assert_snapshot!(error, @r"the index `k` lies outside of the array `A`");
}

#[test]
fn records_of_arrays_and_arrays_of_records() {
    let (mut b, n, m) = sized("records");
    let names: std::sync::Arc<[chainrule_base::Name]> = ["rotation".into(), "focal".into(), "good".into()].into();
    let camera = Type::Tuple(vec![vector(&m), Type::Double, Type::Bool], Some(names.clone()));
    let cameras = b.param("cameras", Type::array(n.clone(), camera));
    let result = b.build(n, |b, i| {
        let camera = b.get_proved(cameras, i);
        let (rotation, focal, good) = (b.component(camera, 0), b.component(camera, 1), b.component(camera, 2));
        let turned = b.build(m.clone(), |b, j| {
            let x = b.get_proved(rotation, j);
            b.op(Op::Mul, &[x, focal])
        });
        let bad = b.op(Op::Not, &[good]);
        let index = b.size(m.clone());
        let pair = b.tuple(&[bad, index]);
        b.record(names.clone(), &[turned, focal, pair])
    });
    let f = b.finish(result);
    let camera = |i: usize| Value::Tuple(vec![numbers(2, i as f64).into(), 0.5.into(), Value::Bool(i != 1)]);
    let kernel = check(&f, &[Value::Array((0..3).map(camera).collect())]);
    let names = |ports: &[chainrule_kernel::Port]| ports.iter().map(|p| p.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&kernel.inputs), ["cameras.rotation", "cameras.focal", "cameras.good"]);
    assert_eq!(names(&kernel.outputs), ["result.rotation", "result.focal", "result.good.0", "result.good.1"]);
    assert!(kernel.workspace_reals.is_zero(), "rows are built where they are wanted");
}

#[test]
fn arrays_written_out_and_nested() {
    let (mut b, n, _) = sized("written_out");
    let x = b.param("x", vector(&n));
    let half = b.real(0.5);
    let built = b.build(n.clone(), |b, i| {
        let x = b.get_proved(x, i);
        b.op(Op::Mul, &[x, half])
    });
    let matrix = b.array(&[x, built, x, built]);
    let index = b.int(1);
    let row = b.get_proved(matrix, index);
    let total = b.sum(n, |b, i| b.get_proved(row, i));
    let scalars = b.array(&[half, total]);
    let result = b.tuple(&[matrix, scalars, row]);
    let f = with_unused_m(b, result);
    for n in [0, 3] {
        check(&f, &[numbers(n, 1.0).into(), numbers(1, 1.0).into()]);
    }
}

#[test]
fn arrays_under_addition_are_not_seen_by_others() {
    // Under its own name, in a tuple, as the state of a loop; what sees it stands behind the addition.
    for way in 0..3 {
        let (mut b, n, _) = sized("kept");
        let v = b.param("v", vector(&n));
        let doubled = |b: &mut Builder, v: VarId| {
            b.build(n.clone(), |b, i| {
                let x = b.get_proved(v, i);
                b.op(Op::Add, &[x, x])
            })
        };
        let y = if way == 2 { b.fold(Size::constant(2), v, |b, v, _| doubled(b, v)) } else { doubled(&mut b, v) };
        let tuple = b.tuple(&[y, v]);
        let first = if way == 1 { b.component(tuple, 0) } else { y };
        let (zero, one) = (b.int(0), b.real(1.0));
        let hot = b.one_hot_proved(n.clone(), zero, one);
        let more = b.plus(first, hot);
        let seen = b.build(n.clone(), |b, i| {
            let (x, y) = (b.get_proved(y, i), b.get_proved(v, i));
            b.op(Op::Mul, &[x, y])
        });
        let result = b.tuple(&[more, seen]);
        check(&with_unused_m(b, result), &[numbers(3, 0.2).into(), numbers(1, 0.0).into()]);
    }
}

#[test]
fn scalars_of_a_sum_of_tuples_stay_in_registers() {
    // Elements of a loop are made by additions of tuples: a zero and a branch, or a sum and a branch.
    for first_is_zero in [true, false] {
        let (mut b, n, _) = sized("pairs");
        let (v, k) = (b.param("v", vector(&n)), b.param("k", Type::Int));
        let state = b.real(0.25);
        let triple = |b: &mut Builder, x: VarId| b.tuple(&[x, x, x]);
        let index = b.fresh(Type::Int);
        let inner = b.fresh(Type::Double);
        let ty = Type::tuple(vec![Type::Double; 3]);
        b.push_block();
        let first = if first_is_zero {
            b.zero(ty.clone())
        } else {
            b.sum(n.clone(), |b, i| {
                let x = b.get_proved(v, i);
                triple(b, x)
            })
        };
        let few = b.op(Op::Lt, &[index, k]);
        let second = b.if_(
            few,
            |b| {
                let x = b.get_proved(v, index);
                let y = b.op(Op::Sub, &[x, inner]);
                triple(b, y)
            },
            |b| b.zero(ty),
        );
        let next = b.plus(first, second);
        let body = b.pop_block(next);
        let steps = chainrule_ir::StateLoop { count: n.clone(), index, state: inner, init: state, body };
        let result = b.compute(chainrule_ir::Expr::Loop(steps));
        let f = with_unused_m(b, result);
        let kernel = lower(&f);
        for k in 0..4 {
            check_at(&f, &kernel, &[numbers(3, 0.5).into(), Value::Int(k), numbers(1, 0.0).into()]);
        }
    }
}

#[test]
fn while_carries_scalars_and_arrays() {
    let (mut b, n, _) = sized("newton");
    let x = b.param("x", vector(&n));
    let limit = b.param("limit", Type::Int);
    let (zero, bound) = (b.int(0), b.real(100.0));
    let init = b.tuple(&[x, bound, zero]);
    let result = b.while_(
        Size::var(limit),
        init,
        |b, state| {
            let (x, least) = (b.component(state, 0), b.real(1e-3));
            let norm = b.sum(n.clone(), |b, i| {
                let x = b.get_proved(x, i);
                b.op(Op::Mul, &[x, x])
            });
            b.op(Op::Lt, &[least, norm])
        },
        |b, state| {
            let (x, last, steps) = (b.component(state, 0), b.component(state, 1), b.component(state, 2));
            let (one, half) = (b.int(1), b.real(0.5));
            let steps = b.op(Op::Add, &[steps, one]);
            let smaller = b.build(n.clone(), |b, i| {
                let x = b.get_proved(x, i);
                b.op(Op::Mul, &[x, half])
            });
            let last = b.op(Op::Mul, &[last, half]);
            b.tuple(&[smaller, last, steps])
        },
    );
    let f = with_unused_m(b, result);
    let kernel = lower(&f);
    let args = |limit: i64| [numbers(3, 1.0).into(), Value::Int(limit), numbers(1, 1.0).into()];
    check_at(&f, &kernel, &args(50));
    check_at(&f, &kernel, &[vec![0.0].into(), Value::Int(0), numbers(1, 1.0).into()]);
    insta::assert_snapshot!(run_at(&f, &kernel, &args(2)).unwrap_err(), @r"a `while` does not end within its limit of steps");
}

#[test]
fn triangular_arrays_are_bounded_and_memory_is_used_again() {
    let (mut b, n, _) = sized("triangular");
    let x = b.param("x", vector(&n));
    let mut last = x;
    // A chain of arrays of one length needs two of them, however long it is.
    for _ in 0..6 {
        let from = last;
        last = b.build(n.clone(), |b, i| {
            let one = Size::constant(1);
            let i_size = b.size_of(i);
            let part = b.build(i_size.add(&one), |b, j| {
                let x = b.get_proved(from, j);
                b.op(Op::Sin, &[x])
            });
            b.sum(i_size.add(&one), |b, j| b.get_proved(part, j))
        });
    }
    let result = b.sum(n, |b, i| b.get_proved(last, i));
    let f = with_unused_m(b, result);
    let kernel = lower(&f);
    for n in [0, 1, 5] {
        check_at(&f, &kernel, &[numbers(n, 1.0).into(), numbers(1, 1.0).into()]);
    }
    assert_eq!(kernel.workspace_reals.to_string(), "3*r0");
}

#[test]
fn integer_arrays_index_and_sizes_are_computed() {
    let (mut b, n, m) = sized("gather");
    let x = b.param("x", vector(&n));
    let at = b.param("at", Type::array(m.clone(), Type::Int));
    let result = b.build(m, |b, j| {
        let (i, two) = (b.get_proved(at, j), b.int(2));
        let half = b.op(Op::Quot, &[i, two]);
        let len = Size::var(half);
        let part = b.build(len.clone(), |b, k| b.get(x, k));
        let sum = b.sum(len, |b, k| b.get_proved(part, k));
        let xi = b.get(x, i);
        b.op(Op::Add, &[xi, sum])
    });
    let f = b.finish(result);
    chainrule_ir::verify(&f).unwrap();
    // The length of `part` is data.
    insta::assert_snapshot!(lower_function(&f).unwrap_err(), @r"limitation: the size of an array is computed while the function runs: all memory is planned before the function runs, from the sizes of its arguments (help: make the array as long as it can become, a size known from the arguments, and use a part)");

    let (mut b, n, m) = sized("halves");
    let x = b.param("x", vector(&n));
    let at = b.param("at", Type::array(m.clone(), Type::Int));
    let (two, length) = (b.int(2), b.size(n));
    let half = b.op(Op::Quot, &[length, two]);
    let part = b.build(Size::var(half), |b, k| b.get(x, k));
    let result = b.build(m, |b, j| {
        let i = b.get_proved(at, j);
        b.get(part, i)
    });
    let f = b.finish(result);
    let kernel = check(&f, &[numbers(5, 0.0).into(), vec![0i64, 1, 1].into()]);
    assert_eq!(kernel.workspace_reals.to_string(), "r0");
    let found = run_at(&f, &kernel, &[numbers(5, 0.0).into(), vec![0i64, 2].into()]);
    insta::assert_snapshot!(found.unwrap_err(), @r"an index lies outside of an array");
}

#[test]
fn integers_overflow_with_a_message() {
    let mut b = Builder::new("overflow");
    let (i, j) = (b.param("i", Type::Int), b.param("j", Type::Int));
    let result = b.op(Op::Quot, &[i, j]);
    let f = b.finish(result);
    let kernel = check(&f, &[Value::Int(-7), Value::Int(2)]);
    insta::assert_snapshot!(run_at(&f, &kernel, &[Value::Int(1), Value::Int(0)]).unwrap_err(), @r"`div` by zero, or its result does not fit into 64 bits");
    assert_eq!(run_at(&f, &kernel, &[Value::Int(7), Value::Int(2)]).unwrap()[0].data, [Scalar::Int(3)]);
}

#[test]
fn rows_of_a_result_have_a_negative_extent_where_there_are_none() {
    let (mut b, n, m) = sized("differences");
    let (x, y) = (b.param("x", vector(&n)), b.param("y", vector(&m)));
    let before = n.sub(&Size::constant(1));
    let result = b.build(m, |b, i| {
        b.build(before.clone(), |b, j| {
            let (x, y) = (b.get_proved(x, j), b.get_proved(y, i));
            b.op(Op::Mul, &[x, y])
        })
    });
    let f = b.finish(result);
    let args = |n: usize, m: usize| [numbers(n, 0.0).into(), numbers(m, 1.0).into()];
    let kernel = check(&f, &args(3, 2));
    check_at(&f, &kernel, &args(1, 2));
    check_at(&f, &kernel, &args(0, 0));
    assert!(evaluate(&f, &mut F64, &args(0, 2)).is_err());
    insta::assert_snapshot!(run_at(&f, &kernel, &args(0, 2)).unwrap_err(), @"an array would have a negative size");
}

#[test]
fn integers_in_records_count_loops_and_size_arrays_inside() {
    let (mut b, n, _) = sized("counted");
    let x = b.param("x", vector(&n));
    let names: std::sync::Arc<[chainrule_base::Name]> = ["rows".into(), "value".into()].into();
    let shape = b.param("shape", Type::Tuple(vec![Type::Int, Type::Double], Some(names)));
    let (rows, value) = (b.component(shape, 0), b.component(shape, 1));
    let part = b.build(Size::var(rows), |b, i| {
        let x = b.get(x, i);
        b.op(Op::Mul, &[x, value])
    });
    let result = b.sum(Size::var(rows), |b, i| b.get_proved(part, i));
    let f = with_unused_m(b, result);
    let args =
        |rows: i64| [numbers(3, 0.0).into(), Value::Tuple(vec![Value::Int(rows), 0.5.into()]), numbers(1, 0.0).into()];
    let kernel = check(&f, &args(2));
    check_at(&f, &kernel, &args(0));
    assert_eq!(kernel.sizes[2].name.as_str(), "shape_rows");
    insta::assert_snapshot!(run_at(&f, &kernel, &args(4)).unwrap_err(), @r"an index lies outside of the array `x`");
    insta::assert_snapshot!(run_at(&f, &kernel, &args(-1)).unwrap_err(), @r"an array would have a negative size");
}

#[test]
fn a_long_chain_of_lets_lowers() {
    let mut b = Builder::new("chain");
    let x = b.param("x", Type::Double);
    let mut last = x;
    for _ in 0..100_000 {
        last = b.op(Op::Sin, &[last]);
        last = b.op(Op::Add, &[last, x]);
    }
    let f = b.finish(last);
    check(&f, &[0.5.into()]);
}

#[test]
fn branches_and_loops_that_nest_deep_lower() {
    const DEPTH: usize = 3000;
    let mut b = Builder::new("deep");
    let n = b.size_param("n");
    let v = b.param("v", vector(&Size::var(n)));
    let (zero, one) = (b.real(0.0), b.real(1.0));
    // Blocks are opened one in another and closed from the inside: no closure nests here.
    let mut around = Vec::new();
    for level in 0..DEPTH {
        let condition = b.op(Op::Lt, &[zero, one]);
        around.push((level, condition));
        b.push_block();
    }
    let mut result = b.build(Size::var(n), |b, i| {
        let x = b.get_proved(v, i);
        b.op(Op::Sin, &[x])
    });
    for (level, condition) in around.into_iter().rev() {
        let inner = b.pop_block(result);
        let other = b.block(|_| v);
        result = if level % 2 == 0 {
            b.compute(chainrule_ir::Expr::If { condition, then: inner, otherwise: other })
        } else {
            let (state, index) = (b.fresh(b.ty(v).clone()), b.fresh(Type::Int));
            b.compute(chainrule_ir::Expr::Fold(chainrule_ir::StateLoop {
                count: Size::constant(1),
                index,
                state,
                init: v,
                body: inner,
            }))
        };
    }
    let f = b.finish(result);
    let kernel = lower_function(&f).unwrap();
    assert_eq!(verify(&kernel), Ok(()));
    assert_eq!(chainrule_kernel::check_layout(&kernel, &[3]), Ok(()));
    assert_eq!(chainrule_kernel::counts(&kernel, &[3]).call, 3);
    assert!(kernel.to_string().contains("sin"));
}
