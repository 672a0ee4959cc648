//! Kernels of every operator separately, and kernels with given names.

use crate::case::Case;
use crate::data::{int, reals};
use crate::generate::lower;
use chainrule_base::{Arena, Poly};
use chainrule_graph::{Graph, NodeId, Semantics};
use chainrule_kernel::{Buffer, Class, GraphPort, Instr, Kernel, Place, Port, Reg, Stmt, lower_graph};
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
