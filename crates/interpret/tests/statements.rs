//! Each statement and instruction as a hand-written kernel; failures at run time; arguments that do not fit.

mod support;

use chainrule_backend_tests::{Array, filetests, int, ints, real, reals};
use chainrule_base::{FileId, Id, Name, Poly, Span};
use chainrule_interpret::{Program, RunError, Slice, SliceMut, Strided, StridedMut, Workspace};
use chainrule_kernel::{
    Buffer, BufferId, Class, Condition, Instr, Kernel, Place, Port, Reg, SizeParam, SizeSource, Stmt, verify,
};
use chainrule_ops::{Op, Type};
use chainrule_runtime::{Backend, Layout};
use std::sync::Arc;
use support::{Order, run, run_batch};

/// A kernel under construction.
struct Make(Kernel);

fn num(c: i64) -> Poly<Reg> {
    Poly::constant(c)
}

impl Make {
    fn new() -> Self {
        let failures = vec![("it failed".to_owned(), Some(Span::new(FileId::new(0), 3, 7)))];
        Self(Kernel { failures, ..Kernel::empty(Name::new("test")) })
    }

    fn real(&mut self) -> Reg {
        self.0.regs.push(Class::Real)
    }

    fn int(&mut self) -> Reg {
        self.0.regs.push(Class::Int)
    }

    fn len(shape: &[Poly<Reg>]) -> Poly<Reg> {
        shape.iter().fold(num(1), |p, e| p.mul(e))
    }

    fn input(&mut self, name: &str, class: Class, shape: Vec<Poly<Reg>>) -> BufferId {
        let place = Place::Input(self.0.inputs.len());
        let buffer = self.0.buffers.push(Buffer { class, len: Self::len(&shape), place });
        self.0.inputs.push(Port { name: Name::new(name), shape, buffer });
        buffer
    }

    fn output(&mut self, name: &str, class: Class, shape: Vec<Poly<Reg>>) -> BufferId {
        let place = Place::Output(self.0.outputs.len());
        let buffer = self.0.buffers.push(Buffer { class, len: Self::len(&shape), place });
        self.0.outputs.push(Port { name: Name::new(name), shape, buffer });
        buffer
    }

    fn size(&mut self, name: &str, source: SizeSource) -> Poly<Reg> {
        let reg = self.int();
        self.0.sizes.push(SizeParam { name: Name::new(name), reg, source });
        Poly::var(reg)
    }

    fn done(mut self, body: Vec<Stmt>) -> (Kernel, Program) {
        self.0.body = body;
        assert_eq!(verify(&self.0), Ok(()), "{}", self.0);
        let program = Program::new(&self.0).expect("a kernel that the verifier accepts compiles");
        (self.0, program)
    }
}

fn load(dst: Reg, buffer: BufferId, at: &Poly<Reg>) -> Instr {
    Instr::Load { dst, buffer, at: at.clone() }
}

fn store(buffer: BufferId, at: &Poly<Reg>, value: Reg) -> Instr {
    Instr::Store { buffer, at: at.clone(), value }
}

fn op(dst: Reg, op: Op, args: &[Reg]) -> Instr {
    let arg = |i: usize| args.get(i).copied().unwrap_or(args[0]);
    Instr::Op { dst, op, args: [arg(0), arg(1), arg(2)] }
}

fn int_op(dst: Reg, op: Op, args: &[Reg]) -> Instr {
    let arg = |i: usize| args.get(i).copied().unwrap_or(args[0]);
    Instr::IntOp { dst, op, args: [arg(0), arg(1), arg(2)], failure: 0 }
}

fn failure(reason: &str) -> RunError {
    RunError::Failure {
        message: "it failed".to_owned(),
        reason: Some(reason.to_owned()),
        span: Some(Span::new(FileId::new(0), 3, 7)),
        point: None,
    }
}

/// Returns the kernel of a shared file with its program.
fn shared(name: &str) -> (Kernel, Program) {
    let kernel = filetests::kernel(name);
    let program = Program::new(&kernel).expect("a kernel that the verifier accepts compiles");
    (kernel, program)
}

fn matrix(n: usize, w: usize) -> Array {
    let mut x = reals(&(0..n * w).map(|i| i as f64 + 0.5).collect::<Vec<_>>());
    x.shape = vec![n, w];
    x
}

#[test]
fn batches_with_indices_from_data_run_point_by_point() {
    let (kernel, program) = shared("gather-rows");
    let good = vec![matrix(3, 2), ints(&[1])];
    let bad = vec![matrix(3, 2), ints(&[3])];
    let points = [good.clone(), good, bad];
    let error = run_batch(&kernel, &program, &points, Order::Arrays, true).unwrap_err();
    insta::assert_snapshot!(error, @"failure 0: the index is 3, the length 3 (at point 2 of the batch)");
    let sizes = support::bind(&program, &points[0]).unwrap();
    assert!(!program.runs_in_lanes(&sizes));
}

#[test]
fn sizes_are_made_for_one_value() {
    let (_, program) = shared("carried-rotation");
    let shapes: [&[usize]; 1] = [&[]];
    insta::assert_snapshot!(program.bind(&shapes, &[]).unwrap_err(), @"the value of argument `n` is needed: sizes depend on it");
    let sizes = program.bind(&shapes, &[(0, 2)]).unwrap();
    let mut workspace = Workspace::new(&program, &sizes);
    let (mut y, mut z) = ([0.0; 3], [0; 2]);
    let outputs = &mut [SliceMut::Real(&mut y), SliceMut::Int(&mut z)];
    let error = program.run(&sizes, &[Slice::Int(&[3])], outputs, &mut workspace).unwrap_err();
    insta::assert_snapshot!(error, @"argument `n` is 3, but the sizes were made for another value of it");
}

#[test]
fn every_operator_computes_what_its_row_says() {
    let grid = [f64::NAN, f64::NEG_INFINITY, -2.5, -1.0, -0.0, 0.0, 0.3, 1.0, 3.0, f64::INFINITY];
    // Operators with steps are expanded in kernels.
    for row in chainrule_ops::ROWS.iter().filter(|row| row.steps.is_none()) {
        let mut m = Make::new();
        let (mut code, mut args) = (vec![], vec![]);
        for (i, ty) in row.args.iter().enumerate() {
            let class = if *ty == Type::Bool { Class::Int } else { Class::Real };
            let buffer = m.input(["a", "b", "c"][i], class, vec![]);
            let reg = if class == Class::Int { m.int() } else { m.real() };
            code.push(load(reg, buffer, &num(0)));
            args.push(reg);
        }
        let is_truth = row.result == Type::Bool;
        let (class, dst) = if is_truth { (Class::Int, m.int()) } else { (Class::Real, m.real()) };
        let y = m.output("y", class, vec![]);
        code.extend([op(dst, row.op, &args), store(y, &num(0), dst)]);
        let (kernel, program) = m.done(vec![Stmt::Straight(code)]);
        let mut points: Vec<Vec<f64>> = vec![vec![]];
        for ty in row.args {
            let choices: &[f64] = if *ty == Type::Bool { &[0.0, 1.0] } else { &grid };
            points = points.iter().flat_map(|p| choices.iter().map(|c| [p.as_slice(), &[*c]].concat())).collect();
        }
        let given = |p: &Vec<f64>| -> Vec<Array> {
            p.iter().zip(row.args).map(|(x, ty)| if *ty == Type::Bool { int(*x as i64) } else { real(*x) }).collect()
        };
        let expected = |p: &Vec<f64>| {
            let value = (row.value)(p);
            vec![if is_truth { int(value as i64) } else { real(value) }]
        };
        for p in &points {
            assert_eq!(run(&kernel, &program, &given(p)).unwrap(), expected(p), "{:?} {p:?}", row.op);
        }
        let batch: Vec<Vec<Array>> = points.iter().map(given).collect();
        let (found, lanes) = run_batch(&kernel, &program, &batch, Order::Arrays, true).unwrap();
        assert!(lanes);
        assert_eq!(found, points.iter().map(expected).collect::<Vec<_>>(), "{:?}", row.op);
    }
}

#[test]
fn integers_are_exact_or_fail() {
    let grid = [i64::MIN, i64::MIN + 1, -7, -1, 0, 1, 2, 7, i64::MAX - 1, i64::MAX];
    for row in chainrule_ops::ROWS {
        let Some(value) = row.int else { continue };
        let mut m = Make::new();
        let (a, b) = (m.input("a", Class::Int, vec![]), m.input("b", Class::Int, vec![]));
        let y = m.output("y", Class::Int, vec![]);
        let (ra, rb, d) = (m.int(), m.int(), m.int());
        let args = [ra, rb];
        let (kernel, program) = m.done(vec![Stmt::Straight(vec![
            load(ra, a, &num(0)),
            load(rb, b, &num(0)),
            int_op(d, row.op, &args[..row.args.len()]),
            store(y, &num(0), d),
        ])]);
        for (p, q) in grid.iter().flat_map(|p| grid.map(|q| (*p, q))) {
            let args = &[p, q][..row.args.len()];
            let zero = matches!(row.op, Op::Quot | Op::Mod) && q == 0;
            let why = match args {
                [p, q] if zero => format!("this is a division by zero, of {p} and {q}"),
                [p, q] => format!("the arguments are {p} and {q}"),
                _ => format!("the arguments are {p}"),
            };
            let expected = value(args).map(|v| vec![int(v)]).ok_or_else(|| failure(&why));
            assert_eq!(run(&kernel, &program, &[int(p), int(q)]), expected, "{:?} {p} {q}", row.op);
        }
    }
}

#[test]
fn functions_without_code_are_refused() {
    let mut kernel = filetests::kernel("external-sum");
    kernel.externals[0].call = None;
    insta::assert_snapshot!(Program::new(&kernel).unwrap_err(), @"error: the function `f` cannot be called here: it has a C name, but nothing that computes it inside the process (help: give it a Rust function as well, or emit C and link it there)");
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let mut m = Make::new();
    let n = m.size("n", SizeSource::Extent { input: 0, dim: 0 });
    let w = m.size("w", SizeSource::Extent { input: 0, dim: 1 });
    m.input("A", Class::Real, vec![n.clone(), w.clone()]);
    m.input("idx", Class::Int, vec![n.scale(2).add(&num(1))]);
    m.output("y", Class::Real, vec![w.clone()]);
    m.0.requires.push(Condition {
        size: w.sub(&num(2)),
        exactly_zero: false,
        message: "rows are too short".to_owned(),
        span: Some(Span::new(FileId::new(0), 1, 2)),
    });
    m.0.requires.push(Condition {
        size: n.sub(&num(3)),
        exactly_zero: true,
        message: "the points have three coordinates".to_owned(),
        span: None,
    });
    let (_, program) = m.done(vec![]);
    let cases: [&[&[usize]]; 7] = [
        &[&[3, 2]],
        &[&[3], &[7]],
        &[&[3, 2], &[6]],
        &[&[3, 1], &[7]],
        &[&[4, 2], &[9]],
        &[&[usize::MAX, 2], &[7]],
        &[&[i64::MAX as usize, 2], &[7]],
    ];
    let messages: Vec<String> = cases.iter().map(|c| program.bind(c, &[]).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    1 argument given, but 2 expected: `A`, `idx`
    argument `A` has 1 dimension, but 2 expected: [n][w]
    argument `idx` has extent 6 in dimension 1, but 2*n + 1 = 7 is expected (n = 3, the extent of dimension 1 of `A`)
    rows are too short: w - 2 must not be negative, but it is -1: w = 1, the extent of dimension 2 of `A`
    the points have three coordinates: n - 3 must be 0, but it is 1: n = 4, the extent of dimension 1 of `A`
    an extent of 18446744073709551615 is too large
    the arguments are too large: 2*n + 1 does not fit into 64 bits (n = 9223372036854775807, the extent of dimension 1 of `A`)
    ");

    let sizes = program.bind(&[&[3, 2], &[7]], &[]).unwrap();
    assert_eq!((sizes.output_shape(0), sizes.output_len(0), sizes.values()), (&[2usize][..], 2, &[3i64, 2][..]));
    let (a, idx) = (Slice::Real(&[0.0; 6]), Slice::Int(&[0; 7]));
    let mut workspace = Workspace::new(&program, &sizes);
    let mut y = [5.0; 2];
    let mut messages = Vec::new();
    let attempts: [&[Slice<'_>]; 4] =
        [&[a], &[a, Slice::Int(&[0; 6])], &[Slice::Int(&[0; 6]), idx], &[Slice::Real(&[0.0; 7]), idx]];
    for inputs in attempts {
        let outputs = &mut [SliceMut::Real(&mut y)];
        messages.push(program.run(&sizes, inputs, outputs, &mut workspace).unwrap_err().to_string());
    }
    let outputs = &mut [SliceMut::Real(&mut y[..1])];
    messages.push(program.run(&sizes, &[a, idx], outputs, &mut workspace).unwrap_err().to_string());
    let (_, other) = shared("gather-rows");
    let outputs = &mut [SliceMut::Real(&mut y)];
    messages.push(other.run(&sizes, &[a, idx], outputs, &mut workspace).unwrap_err().to_string());
    let small = other.bind(&[&[3, 2], &[1]], &[]).unwrap();
    let large = other.bind(&[&[3, 9], &[1]], &[]).unwrap();
    let mut workspace = Workspace::new(&other, &small);
    let (a, idx) = (Slice::Real(&[0.0; 27]), Slice::Int(&[0]));
    let outputs = &mut [SliceMut::Real(&mut y[..1])];
    messages.push(other.run(&large, &[a, idx], outputs, &mut workspace).unwrap_err().to_string());
    insta::assert_snapshot!(messages.join("\n"), @r"
    1 input and 1 output given, but 2 and 1 expected
    argument `idx` has 6 elements, but 7 expected
    argument `A` holds integers, but doubles are expected
    argument `A` has 7 elements, but 6 expected
    result `y` has 1 element, but 2 expected
    the sizes were made by another program; make them with this one's `bind`
    the workspace is too small for these sizes (9 doubles and 0 integers); make it with `Workspace::new`
    ");
    assert_eq!(y, [5.0; 2], "nothing was written");
}

#[test]
fn strides_that_do_not_fit_are_refused() {
    let mut m = Make::new();
    let x = m.input("x", Class::Real, vec![num(2)]);
    let y = m.output("y", Class::Real, vec![num(2)]);
    let (a, b) = (m.real(), m.real());
    let code = vec![load(a, x, &num(0)), load(b, x, &num(1)), store(y, &num(1), a), store(y, &num(0), b)];
    let (_, program) = m.done(vec![Stmt::Straight(code)]);
    let sizes = program.bind(&[&[2]], &[]).unwrap();
    let mut workspace = Workspace::for_batch(&program, &sizes);
    let mut attempt = |n: usize, from: (usize, usize), to: (usize, usize)| {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut y = [0.0; 6];
        let inputs = [Strided { data: Slice::Real(&x), point: from.0, element: from.1 }];
        let mut outputs = [StridedMut { data: SliceMut::Real(&mut y), point: to.0, element: to.1 }];
        program
            .run_batch(&sizes, n, &inputs, &mut outputs, std::slice::from_mut(&mut workspace))
            .map(|()| y)
            .map_err(|e| e.to_string())
    };
    assert_eq!(attempt(3, (2, 1), (1, 3)), Ok([2.0, 4.0, 6.0, 1.0, 3.0, 5.0]));
    // Shared by all points.
    assert_eq!(attempt(2, (0, 1), (3, 2)), Ok([2.0, 0.0, 1.0, 2.0, 0.0, 1.0]));
    assert_eq!(attempt(0, (2, 1), (2, 1)), Ok([0.0; 6]));
    let refused = [
        attempt(4, (2, 1), (1, 0)),
        attempt(3, (2, 1), (1, 1)),
        attempt(3, (2, 1), (0, 1)),
        attempt(1, (2, 1), (2, 0)),
        attempt(3, (usize::MAX, 1), (2, 1)),
    ];
    insta::assert_snapshot!(refused.map(Result::unwrap_err).join("\n"), @r"
    argument `x` has 6 elements, too few for 4 points of 2 elements at strides 2 and 1
    the strides of result `y` put two of its elements at one place
    the strides of result `y` put two of its elements at one place
    the strides of result `y` put two of its elements at one place
    argument `x` has 6 elements, too few for 3 points of 2 elements at strides 18446744073709551615 and 1
    ");
}

#[test]
fn an_address_outside_a_buffer_is_a_bug_and_touches_nothing() {
    let mut m = Make::new();
    let x = m.input("x", Class::Int, vec![]);
    let y = m.output("y", Class::Real, vec![num(2)]);
    let (at, value) = (m.int(), m.real());
    let (kernel, program) = m.done(vec![Stmt::Straight(vec![
        load(at, x, &num(0)),
        Instr::Const { dst: value, value: 1.0 },
        store(y, &Poly::var(at).add(&num(1)), value),
    ])]);
    let sizes = support::bind(&program, &[int(0)]).unwrap();
    for bad in [-2, 1, i64::MAX, i64::MIN] {
        let mut y = [5.0; 2];
        let outputs = &mut [SliceMut::Real(&mut y)];
        let result = program.run(&sizes, &[Slice::Int(&[bad])], outputs, &mut Workspace::new(&program, &sizes));
        assert!(matches!(result, Err(RunError::Bug(_))), "{bad}");
        assert_eq!(y, [5.0; 2]);
    }
    assert!(run(&kernel, &program, &[int(0)]).is_ok());
}

/// Deep nesting is not recursive: the kernel is compiled on a small stack. (Dropping it is recursive, so it is leaked.)
#[test]
fn nesting_does_not_use_the_stack() {
    let mut m = Make::new();
    let y = m.output("y", Class::Int, vec![]);
    let (one, d) = (m.int(), m.int());
    let start = Stmt::Straight(vec![Instr::Int { dst: one, value: num(1) }]);
    let mut inner =
        vec![Stmt::Straight(vec![Instr::Int { dst: d, value: Poly::var(one).scale(3) }, store(y, &num(0), d)])];
    for _ in 0..100_000 {
        inner = vec![Stmt::If { condition: one, then: inner, otherwise: vec![], choices: vec![] }];
    }
    inner.insert(0, start);
    m.0.body = inner;
    let kernel = Arc::new(m.0);
    std::mem::forget(kernel.clone());
    let layout = Layout::new(kernel.clone());
    let compile = move || Program::with_layout(layout).unwrap();
    let program = std::thread::Builder::new().stack_size(128 * 1024).spawn(compile).unwrap().join().unwrap();
    assert_eq!(run(&kernel, &program, &[]).unwrap(), [int(3)]);
}

#[test]
fn threads_share_a_program() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let (_, program) = shared("gather-rows");
    is_shared(&program);
    is_shared(&program.bind(&[&[1, 1], &[1]], &[]).unwrap());
}
