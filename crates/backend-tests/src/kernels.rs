//! Hand-written kernels: readable ones for emitted text, and every operator separately.

use crate::case::Case;
use crate::data::{Array, Data, int, real, reals};
use crate::generate::lower;
use chainrule_base::{Arena, Poly};
use chainrule_graph::{Graph, NodeId, Semantics};
use chainrule_ir::{Builder, Requirement, Size, Type, VarId};
use chainrule_kernel::{Buffer, Class, GraphPort, Instr, Kernel, Place, Port, Reg, Stmt, lower_function, lower_graph};
use chainrule_ops::{Op, Row};

/// Numbers at which operators are tested.
pub const NUMBERS: [f64; 18] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.75,
    2.0,
    3.5,
    -2.5,
    10.25,
    1e-9,
    700.0,
    1e6,
    1e300,
    -1e300,
    5e-324,
    f64::INFINITY,
    f64::NAN,
];

/// Integers at which operators are tested, including those at which they overflow.
pub const INTEGERS: [i64; 19] = [
    i64::MIN,
    i64::MIN + 1,
    i64::MIN + 2,
    -(1 << 32),
    -3_037_000_500,
    -3,
    -2,
    -1,
    0,
    1,
    2,
    3,
    7,
    2_147_483_648,
    3_037_000_500,
    1 << 32,
    i64::MAX / 2,
    i64::MAX - 1,
    i64::MAX,
];

/// Returns a port of a graph.
#[must_use]
pub fn port(name: &str, shape: &[usize], nodes: &[NodeId]) -> GraphPort<'static> {
    GraphPort { name: name.into(), shape: shape.to_vec().into(), nodes: nodes.to_vec().into() }
}

/// Returns a kernel for each of `functions`, with that name: results have the names of its arguments, each one more
/// than the sum of their sines. For tests of how emitters treat names.
///
/// # Panics
/// Panics if lowering fails.
#[must_use]
pub fn named(functions: &[&str], names: &[&str]) -> Vec<Kernel> {
    let mut g = Graph::new(Semantics::Strict);
    let inputs: Vec<GraphPort<'_>> = names.iter().map(|name| port(name, &[], &[g.input(*name)])).collect();
    let mut sum = g.constant(1.0);
    for input in &inputs {
        let s = g.raw(Op::Sin, &[input.nodes[0]]);
        sum = g.raw(Op::Add, &[sum, s]);
    }
    let outputs: Vec<GraphPort<'_>> = names.iter().map(|name| port(name, &[], &[sum])).collect();
    functions.iter().map(|name| lower_graph(*name, &g, &inputs, &outputs).unwrap()).collect()
}

/// Returns a rotation of a point by an angle, and its derivative by the angle.
///
/// # Panics
/// Never.
#[must_use]
pub fn rotation() -> [Kernel; 2] {
    let mut g = Graph::new(Semantics::Strict);
    let (angle, x, y) = (g.input("angle"), g.input("x"), g.input("y"));
    let (s, c) = (g.raw(Op::Sin, &[angle]), g.raw(Op::Cos, &[angle]));
    let mut times = |a, b| g.raw(Op::Mul, &[a, b]);
    let (cx, sy, sx, cy) = (times(c, x), times(s, y), times(s, x), times(c, y));
    let half = g.constant(0.5);
    let (u, v, sum) = (g.raw(Op::Sub, &[cx, sy]), g.raw(Op::Add, &[sx, cy]), g.raw(Op::Mul, &[half, sx]));
    let du = g.raw(Op::Neg, &[v]);
    let inputs = [port("camera.angle", &[], &[angle]), port("p", &[2], &[x, y])];
    let value = lower_graph("rotation", &g, &inputs, &[port("q", &[2], &[u, v]), port("half", &[], &[sum])]).unwrap();
    let jacobian = lower_graph("rotation_jacobian", &g, &inputs, &[port("jac", &[2, 1], &[du, u])]).unwrap();
    [value, jacobian]
}

/// Returns sums of the rows of a matrix, selected by indices; with a condition and workspace.
///
/// # Panics
/// Never.
#[must_use]
pub fn picked_sums() -> Kernel {
    let mut b = Builder::new("picked_sums");
    let (n, m) = (Size::var(b.size_param("n")), Size::var(b.size_param("m")));
    let a = b.param("A", Type::array(n.clone(), Type::array(m.clone(), Type::Double)));
    let picks = b.param("picks", Type::array(n.clone(), Type::Int));
    let size = n.sub(&Size::constant(1));
    b.require(Requirement { size, exactly_zero: false, message: "`A` needs a row".to_owned(), span: None });
    let rows = b.build(n.clone(), |b, i| {
        b.sum(m.clone(), |b, j| {
            let row = b.get_proved(a, i);
            b.get_proved(row, j)
        })
    });
    let result = b.build(n, |b, i| {
        let pick = b.get_proved(picks, i);
        let (sum, root) = (b.get(rows, pick), b.get_proved(rows, i));
        b.op(Op::Mul, &[sum, root])
    });
    lower_function(&b.finish(result)).unwrap()
}

/// Returns sizes and arguments with names that emitted code could use itself.
///
/// # Panics
/// Never.
#[must_use]
pub fn awkward_names() -> Case {
    let mut b = Builder::new("awkward");
    let (n, m) = (Size::var(b.size_param("total")), Size::var(b.size_param("len")));
    let a = b.param("a", Type::array(n.clone(), Type::array(m.clone(), Type::Double)));
    let code = b.param("code", Type::array(m.clone(), Type::Double));
    b.param("term", Type::Double);
    let columns = b.build(m.clone(), |b, j| {
        b.sum(n.clone(), |b, i| {
            let row = b.get_proved(a, i);
            b.get_proved(row, j)
        })
    });
    let p = b.build(m, |b, j| {
        let (sum, root) = (b.get_proved(columns, j), b.get_proved(code, j));
        b.op(Op::Mul, &[sum, root])
    });
    let matrix = Array { shape: vec![2, 3], data: Data::Real(vec![1.5; 6]) };
    let kernel = lower_function(&b.finish(p)).unwrap();
    Case { kernel, inputs: vec![matrix, reals(&[1.0, 2.0, 3.0]), real(0.5)] }
}

/// Returns a kernel that halves until the value is below 1, at most 5 times.
///
/// # Panics
/// Never.
#[must_use]
pub fn halving() -> Kernel {
    let mut b = Builder::new("halving");
    let x = b.param("x", Type::Double);
    let y = b.while_(
        Size::constant(5),
        x,
        |b, x| {
            let one = b.real(1.0);
            b.op(Op::Le, &[one, x])
        },
        |b, x| {
            let half = b.real(0.5);
            b.op(Op::Mul, &[x, half])
        },
    );
    lower_function(&b.finish(y)).unwrap()
}

/// Returns a kernel that doubles an integer.
///
/// # Panics
/// Never.
#[must_use]
pub fn doubled() -> Kernel {
    let mut b = Builder::new("doubled");
    let k = b.param("k", Type::Int);
    let y = b.op(Op::Add, &[k, k]);
    lower_function(&b.finish(y)).unwrap()
}

/// Returns a kernel with arrays in branches and loops that do not run if their sizes, `s` and `k - 3`, would be
/// negative, and with another array.
///
/// # Panics
/// Never.
#[must_use]
pub fn guarded_arrays() -> Kernel {
    let mut b = Builder::new("guarded");
    let n = Size::var(b.size_param("n"));
    let x = b.param("x", Type::array(n.clone(), Type::Double));
    let (s, k) = (b.param("s", Type::Int), b.param("k", Type::Int));
    let (s_size, k_size) = (Size::var(s), Size::var(k).sub(&Size::constant(3)));
    // The sum of `a[i] * a[i]` where `a[i]` is the sine of `i + more`.
    let squares = |b: &mut Builder, size: &Size, more: VarId| {
        let sines = b.build(size.clone(), |b, i| {
            let i = b.to_real(i);
            let angle = b.op(Op::Add, &[i, more]);
            b.op(Op::Sin, &[angle])
        });
        b.sum(size.clone(), |b, i| {
            let last = b.size(size.sub(&Size::constant(1)).sub(&Size::var(i)));
            let (first, last) = (b.get_proved(sines, i), b.get_proved(sines, last));
            b.op(Op::Mul, &[first, last])
        })
    };
    let doubles = b.build(n.clone(), |b, i| {
        let x = b.get_proved(x, i);
        b.op(Op::Add, &[x, x])
    });
    let (zero, real_zero) = (b.int(0), b.real(0.0));
    let is_positive = b.op(Op::Lt, &[zero, s]);
    let guarded = b.if_(is_positive, |b| squares(b, &s_size, real_zero), |_| real_zero);
    let looped = b.sum(n.clone(), |b, i| {
        let x = b.get_proved(doubles, i);
        squares(b, &k_size, x)
    });
    let all = b.sum(n, |b, i| b.get_proved(doubles, i));
    let sum = b.op(Op::Add, &[guarded, looped]);
    let sum = b.op(Op::Add, &[sum, all]);
    lower_function(&b.finish(sum)).unwrap()
}

/// Returns [`guarded_arrays`] at positive sizes, at negative ones without an array, and at negative ones with an array;
/// with whether there is a result.
///
/// # Panics
/// Never.
#[must_use]
pub fn guarded_cases() -> Vec<(Case, bool)> {
    let kernel = guarded_arrays();
    let case = |x: &[f64], s: i64, k: i64| Case { kernel: kernel.clone(), inputs: vec![reals(x), int(s), int(k)] };
    vec![
        (case(&[0.5, -1.0, 2.0], 4, 8), true),
        (case(&[0.5, -1.0, 2.0], -4, 8), true),
        (case(&[0.5, -1.0, 2.0], 0, 3), true),
        (case(&[], 4, -8), true),
        (case(&[], -4, -8), true),
        (case(&[0.5], 4, 2), false),
        (case(&[0.5], -4, -8), false),
    ]
}

/// An operator at many points in one kernel.
#[derive(Clone, Debug)]
pub struct OperatorCase {
    /// The operator.
    pub op: Op,
    /// Arguments; one result for each point.
    pub points: Vec<Vec<f64>>,
    /// Kernel with all arguments.
    pub case: Case,
}

/// Returns each operator separately, at up to `most` points of [`NUMBERS`].
#[must_use]
pub fn operators(most: usize) -> Vec<OperatorCase> {
    let case = |row: &Row| {
        let mut points: Vec<Vec<f64>> = vec![vec![]];
        for _ in row.args {
            points = points.iter().flat_map(|p| NUMBERS.map(|x| [p.as_slice(), &[x]].concat())).collect();
        }
        if points.len() > most {
            points = points.into_iter().step_by(7).take(most).collect();
        }
        let mut g = Graph::new(Semantics::Strict);
        let (mut inputs, mut roots) = (Vec::new(), Vec::new());
        for _ in &points {
            let args: Vec<NodeId> = row.args.iter().map(|_| g.input("x")).collect();
            roots.push(g.raw(row.op, &args));
            inputs.extend(args);
        }
        let kernel = Kernel { name: row.name.into(), ..lower(&g, &roots) };
        OperatorCase { op: row.op, case: Case { kernel, inputs: vec![reals(&points.concat())] }, points }
    };
    chainrule_ops::ROWS.iter().map(case).collect()
}

/// Returns the operators that have values in integers.
#[must_use]
pub fn integer_operators() -> Vec<Op> {
    Op::all().filter(|op| op.row().int.is_some()).collect()
}

/// Returns the arguments of an integer operator: all of [`INTEGERS`], in two loops for two arguments.
#[must_use]
pub fn integer_points(op: Op) -> Vec<Vec<i64>> {
    match op.arity() {
        1 => INTEGERS.map(|a| vec![a]).to_vec(),
        _ => INTEGERS.iter().flat_map(|a| INTEGERS.map(|b| vec![*a, b])).collect(),
    }
}

/// Returns a kernel of one integer operator, with arguments.
#[must_use]
pub fn integer_case(op: Op, point: &[i64]) -> Case {
    Case { kernel: integer_operator(op), inputs: point.iter().map(|x| int(*x)).collect() }
}

/// Returns a kernel of one integer operator.
#[must_use]
pub fn integer_operator(op: Op) -> Kernel {
    let (mut regs, mut buffers) = (Arena::new(), Arena::new());
    let one = Poly::constant(1);
    let mut inputs = Vec::new();
    let mut code = Vec::new();
    let mut args: Vec<Reg> = Vec::new();
    for k in 0..op.arity() {
        let buffer = buffers.push(Buffer { class: Class::Int, len: one.clone(), place: Place::Input(k) });
        inputs.push(Port { name: format!("a{k}").into(), shape: vec![], buffer });
        let dst = regs.push(Class::Int);
        code.push(Instr::Load { dst, buffer, at: Poly::zero() });
        args.push(dst);
    }
    let buffer = buffers.push(Buffer { class: Class::Int, len: one, place: Place::Output(0) });
    let dst = regs.push(Class::Int);
    let all = [args[0], *args.get(1).unwrap_or(&args[0]), *args.get(2).unwrap_or(&args[0])];
    code.push(Instr::IntOp { dst, op, args: all, failure: 0 });
    code.push(Instr::Store { buffer, at: Poly::zero(), value: dst });
    Kernel {
        name: format!("op_{}", op.name()).into(),
        regs: regs.into(),
        sizes: vec![],
        inputs,
        outputs: vec![Port { name: "y".into(), shape: vec![], buffer }],
        buffers,
        requires: vec![],
        workspace_reals: Poly::zero(),
        workspace_ints: Poly::zero(),
        externals: vec![],
        failures: vec![("no integer".to_owned(), None)],
        zeros: vec![],
        body: vec![Stmt::Straight(code)],
    }
}
