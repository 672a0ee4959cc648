//! What the caller sees: modules, names, failures, lengths; operators one by one; long code.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::rust::{self, has_clippy};
use chainrule_backend_tests::{Array, Case, Data, int, interpret, real, reals};
use chainrule_base::{Arena, Name, Poly};
use chainrule_graph::{Graph, NodeId, Semantics, generate};
use chainrule_ir::{Builder, Requirement, Size, Type};
use chainrule_kernel::{
    Buffer, Class, External, GraphPort, Instr, Kernel, Place, Port, Reg, Stmt, lower_function, lower_graph,
};
use chainrule_ops::{Op, ROWS};
use chainrule_rust::{Fma, Library, Module, Options, Precision, emit, emit_many};
use std::fmt::Write;
use support::{file, run_rust};

fn port(name: &str, shape: &[i64], nodes: &[NodeId]) -> GraphPort {
    GraphPort { name: name.into(), shape: shape.to_vec(), nodes: nodes.to_vec() }
}

/// A rotation of a point by an angle, and its derivative by the angle.
fn rotation() -> [Kernel; 2] {
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

/// Running sums of the rows of a matrix, picked by indices; with a condition and workspace.
fn picked_sums() -> Kernel {
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

/// Sizes and arguments by the names that emitted code could use itself.
fn awkward_names() -> Kernel {
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
    lower_function(&b.finish(p)).unwrap()
}

/// Halves until it is below 1, at most 5 times.
fn halving() -> Kernel {
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

/// Twice an integer.
fn doubled() -> Kernel {
    let mut b = Builder::new("doubled");
    let k = b.param("k", Type::Int);
    let y = b.op(Op::Add, &[k, k]);
    lower_function(&b.finish(y)).unwrap()
}

#[test]
fn a_function_and_its_derivative_share_a_module() {
    let [value, jacobian] = rotation();
    insta::assert_snapshot!(emit_many("rotation", &[&value, &jacobian], &Options::default()).unwrap().text);
}

#[test]
fn arrays_come_with_sizes_and_workspace() {
    let text = emit(&picked_sums(), &Options::default()).unwrap().text;
    // What is the same in every module is in the other snapshot.
    insta::assert_snapshot!(text.split_once("impl core::error::Error for Failure {}\n").unwrap().1);
}

#[test]
fn the_same_kernel_gives_the_same_bytes() {
    let (graph, roots) = generate::layered(Semantics::Strict, 3000, 5, 10, 3);
    let kernel = lower_all(&graph, &roots);
    let options = Options { chunk: 100, ..Options::default() };
    assert_eq!(emit(&kernel, &options), emit(&lower_all(&graph, &roots), &options));
}

fn lower_all(graph: &Graph, roots: &[NodeId]) -> Kernel {
    chainrule_backend_tests::generate::lower(graph, roots)
}

/// Each operator alone, at points in its domain and at special numbers, bit for bit.
#[test]
fn operators_have_the_values_of_their_rows() {
    const NUMBERS: [f64; 18] = [
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
    if !has_clippy() {
        return;
    }
    let mut cases = Vec::new();
    for row in ROWS {
        let mut points: Vec<Vec<f64>> = vec![vec![]];
        for _ in row.args {
            points = points.iter().flat_map(|p| NUMBERS.map(|x| [p.as_slice(), &[x]].concat())).collect();
        }
        if points.len() > 100 {
            points = points.into_iter().step_by(7).take(400).collect();
        }
        let mut g = Graph::new(Semantics::Strict);
        let (mut inputs, mut roots) = (Vec::new(), Vec::new());
        for _ in &points {
            let args: Vec<NodeId> = row.args.iter().map(|_| g.input("x")).collect();
            roots.push(g.raw(row.op, &args));
            inputs.extend(args);
        }
        let kernel = Kernel { name: row.name.into(), ..lower_all(&g, &roots) };
        cases.push(Case { kernel, inputs: vec![reals(&points.concat())] });
    }
    let found = run_rust(&cases, &Options { library: Library::Own(Fma::Standard), ..Options::default() });
    for (case, found) in cases.iter().zip(&found) {
        assert_eq!(found, &interpret(case).unwrap(), "{}", case.kernel.name);
    }
}

/// A kernel of one integer operator.
fn int_kernel(op: Op) -> Kernel {
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
        regs,
        sizes: vec![],
        inputs,
        outputs: vec![Port { name: "y".into(), shape: vec![], buffer }],
        buffers,
        requires: vec![],
        workspace_reals: Poly::zero(),
        workspace_ints: Poly::zero(),
        externals: vec![],
        failures: vec![("no integer".to_owned(), None)],
        body: vec![Stmt::Straight(code)],
    }
}

#[test]
fn integer_operators_fail_exactly_where_their_rows_do() {
    const NUMBERS: [i64; 17] = [
        i64::MIN,
        i64::MIN + 1,
        -(1 << 32),
        -3_037_000_500,
        -3,
        -2,
        -1,
        0,
        1,
        2,
        3,
        2_147_483_648,
        3_037_000_500,
        1 << 32,
        i64::MAX / 2,
        i64::MAX - 1,
        i64::MAX,
    ];
    if !has_clippy() {
        return;
    }
    let ops: Vec<Op> = Op::all().filter(|op| op.row().int.is_some()).collect();
    let kernels: Vec<Kernel> = ops.iter().map(|op| int_kernel(*op)).collect();
    let module = emit_many("ints", &kernels.iter().collect::<Vec<_>>(), &Options::default()).unwrap();
    let list = NUMBERS.map(|x| x.to_string()).join(", ");
    let mut main = format!("mod kernels;\n\nfn main() {{\n    let x: &[i64] = &[{list}];\n    let mut y = 0;\n");
    for (op, name) in ops.iter().zip(&module.functions) {
        let (second, call) = if op.arity() == 1 { (1, "x[i]") } else { (NUMBERS.len(), "x[i], x[j]") };
        let _ = writeln!(
            main,
            "    for i in 0..{} {{\n        for j in 0..{second} {{\n            let _ = j;\n            match kernels::{name}({call}, &mut y) {{\n                Ok(()) => println!(\"{{y}}\"),\n                Err(failure) => println!(\"{{failure}}\"),\n            }}\n        }}\n    }}",
            NUMBERS.len()
        );
    }
    main.push_str("}\n");
    let output = run_main(&module, &main);
    let mut lines = output.lines();
    for op in &ops {
        for a in NUMBERS {
            for b in if op.arity() == 1 { vec![0] } else { NUMBERS.to_vec() } {
                let value = op.row().int.unwrap()(&[a, b][..op.arity()]);
                let expected = value.map_or_else(|| "no integer".to_owned(), |v| v.to_string());
                assert_eq!(lines.next(), Some(expected.as_str()), "{} {a} {b}", op.name());
            }
        }
    }
    assert_eq!(lines.next(), None);
}

/// Compiles `main` with the module, runs it, gives what it prints.
fn run_main(module: &Module, main: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    rust::write(dir.path(), &file(module, &Options::default()), main);
    let output = rust::run_cargo(dir.path(), &["run", "--offline", "--quiet"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn failures_say_why() {
    if !has_clippy() {
        return;
    }
    let matrix = |n: usize, m: usize| Array { shape: vec![n, m], data: Data::Real(vec![1.5; n * m]) };
    let picks = |p: &[i64]| Array { shape: vec![p.len()], data: Data::Int(p.to_vec()) };
    let good = Case { kernel: picked_sums(), inputs: vec![matrix(2, 3), picks(&[1, 0])] };
    let bad = Case { inputs: vec![matrix(2, 3), picks(&[1, 2])], ..good.clone() };
    let negative = Case { inputs: vec![matrix(2, 3), picks(&[-1, 0])], ..good.clone() };
    let halving = Case { kernel: halving(), inputs: vec![real(8.0)] };
    let endless = Case { inputs: vec![real(1e9)], ..halving.clone() };
    let double = Case { kernel: doubled(), inputs: vec![int(21)] };
    let huge = Case { inputs: vec![int(i64::MAX / 2 + 1)], ..double.clone() };
    let awkward = Case { kernel: awkward_names(), inputs: vec![matrix(2, 3), reals(&[1.0, 2.0, 3.0]), real(0.0)] };
    let cases = [good, bad, negative, halving, endless, double, huge, awkward];
    let found = run_rust(&cases, &Options::default());
    for (case, found) in cases.iter().zip(&found) {
        assert_eq!(found, &interpret(case).unwrap(), "{}", case.kernel);
    }
    assert_eq!(
        found.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, false, false, true, false, true, false, true]
    );

    let module = emit(&picked_sums(), &Options::default()).unwrap();
    let main = r#"
mod kernels;
use kernels::picked_sums;

fn main() {
    let (a, picks, mut y, mut work) = ([1.0; 6], [0, 1], [0.0; 2], [0.0; 2]);
    let mut tell = |n, m, a: &[f64], picks: &[i64], y_len: usize, work_len: usize| {
        match picked_sums(n, m, a, picks, &mut y[..y_len], &mut work[..work_len]) {
            Ok(()) => println!("ok"),
            Err(failure) => println!("{failure:?}: {failure}"),
        }
    };
    tell(2, 3, &a, &picks, 2, 2);
    tell(2, 3, &a[..5], &picks, 2, 2);
    tell(2, 3, &a, &picks[..1], 2, 2);
    tell(2, 3, &a, &picks, 1, 2);
    tell(2, 3, &a, &picks, 2, 1);
    tell(0, 3, &[], &[], 0, 0);
    tell(1, 1 << 41, &a, &picks, 2, 2);
    tell(usize::MAX, 1, &a, &picks, 2, 2);
    tell(1 << 40, 1 << 40, &a, &picks, 2, 2);
    println!("{:?} {:?}", kernels::picked_sums_work_len(2, 3), kernels::picked_sums_work_len(1, 1 << 41));
}
"#;
    insta::assert_snapshot!(run_main(&module, main));
}

#[test]
fn names_that_mean_something_else_in_rust_are_changed() {
    let names = [
        "fn",
        "self",
        "x.y",
        "x_y",
        "x'",
        "λ",
        "2x",
        "work",
        "iwork",
        "r_3",
        "i_4",
        "cr_len",
        "f_part1",
        "None",
        "f_work_len",
        "f",
        "Ok",
        "_",
        "__x",
        "",
        "a b",
        "f64",
        "Failure",
        "core",
        "libm",
        "usize",
        "n",
        "match",
    ];
    let mut g = Graph::new(Semantics::Strict);
    let inputs: Vec<GraphPort> = names.iter().map(|name| port(name, &[], &[g.input(*name)])).collect();
    let mut sum = g.constant(1.0);
    for input in &inputs {
        let s = g.raw(Op::Sin, &[input.nodes[0]]);
        sum = g.raw(Op::Add, &[sum, s]);
    }
    let outputs: Vec<GraphPort> = names.iter().map(|name| port(name, &[], &[sum])).collect();
    let kernels: Vec<Kernel> = ["f", "F", "f", "fn", "f_work_len", "main", "Failure", "Ok"]
        .iter()
        .map(|name| lower_graph(*name, &g, &inputs, &outputs).unwrap())
        .collect();
    let options = Options { chunk: 8, library: Library::Libm, ..Options::default() };
    let module = emit_many("clash", &kernels.iter().collect::<Vec<_>>(), &options).unwrap();
    assert_eq!(module.functions, ["f", "F", "f_2", "fn_", "f_work_len_2", "main", "Failure", "Ok_"]);
    let first = module.text.lines().find(|line| line.starts_with("pub fn f(")).unwrap();
    insta::assert_snapshot!(first.replace(", ", ",\n"));
    if !has_clippy() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    rust::write(dir.path(), &file(&module, &options), "mod kernels;\n\nfn main() {}\n");
    rust::clippy(dir.path());
}

#[test]
fn users_functions_are_those_of_the_module_around() {
    let [mut kernel, _] = rotation();
    let twice = |name: &str, c_name: Option<&str>, arity| External {
        name: name.into(),
        arity,
        call: None,
        c_name: c_name.map(Name::new),
    };
    kernel.externals.push(twice("twice", Some("my_twice"), 1));
    let Some(Stmt::Straight(code)) = kernel.body.first_mut() else { panic!() };
    let (at, reg) = code
        .iter()
        .enumerate()
        .find_map(|(at, i)| match i {
            Instr::Op { dst, op: Op::Sin, .. } => Some((at, *dst)),
            _ => None,
        })
        .unwrap();
    let Instr::Op { args, .. } = code[at] else { panic!() };
    code[at] = Instr::External { dst: reg, function: 0, args: [args[0]].into() };
    let module = emit(&kernel, &Options::default()).unwrap();
    assert!(module.text.contains("//! - `fn my_twice(f64) -> f64`"), "{}", module.text);
    let main = r#"
mod kernels;

fn my_twice(x: f64) -> f64 {
    2.0 * x
}

fn main() {
    let (mut q, mut half) = ([0.0; 2], 0.0);
    kernels::rotation(3.0, &[0.0, 1.0], &mut q, &mut half).unwrap();
    println!("{}", q[0]);
}
"#;
    assert_eq!(run_main(&module, main), "-6\n");
    let mut errors = String::new();
    for external in [twice("a b", None, 1), twice("twice", Some("fn"), 1), twice("cr_len", None, 1)] {
        kernel.externals[0] = external;
        let _ = writeln!(errors, "{}", emit(&kernel, &Options::default()).unwrap_err());
    }
    kernel.externals = vec![twice("twice", None, 1), twice("twice", None, 2)];
    let _ = writeln!(errors, "{}", emit(&kernel, &Options::default()).unwrap_err());
    insta::assert_snapshot!(errors);
}

#[test]
fn malformed_kernels_are_bugs_not_panics() {
    let [good, _] = rotation();
    let broken: [fn(&mut Kernel); 4] = [
        |k| k.regs = Arena::new(),
        |k| k.buffers = Arena::new(),
        |k| k.outputs.clear(),
        |k| k.workspace_reals = Poly::var(chainrule_base::Id::new(77)),
    ];
    for (i, damage) in broken.iter().enumerate() {
        let mut kernel = good.clone();
        damage(&mut kernel);
        let errors = emit(&kernel, &Options::default()).unwrap_err();
        assert!(errors.to_string().contains("malformed"), "{i}: {errors}");
    }
}

#[test]
fn a_million_operations_are_cut_into_functions_of_two_thousand() {
    let (graph, roots) = generate::layered(Semantics::Strict, 1_000_000, 5, 10, 1);
    let text = emit(&lower_all(&graph, &roots), &Options::default()).unwrap().text;
    let mut longest = 0;
    let mut length = 0;
    for line in text.lines() {
        length = if line.starts_with("fn ") || line.starts_with("pub fn ") { 0 } else { length + 1 };
        longest = longest.max(length);
    }
    // Operations, and reads and writes of what crosses cuts.
    assert!(longest < 3 * Options::CHUNK, "{longest}");
}

/// Clippy, the compiler and the program together, with all checks of a debug build.
#[test]
fn long_code_computes_the_same_in_pieces() {
    if !has_clippy() {
        return;
    }
    let (graph, roots) = generate::layered(Semantics::Strict, 10_000, 5, 10, 1);
    let kernel = chainrule_backend_tests::exact(&lower_all(&graph, &roots));
    let case = Case { kernel, inputs: vec![reals(&[0.1, -0.2, 0.3, 0.4, 1.0])] };
    let found = run_rust(std::slice::from_ref(&case), &Options::default());
    assert_eq!(found, [interpret(&case).unwrap()]);
}

/// How long the compiler takes: run it by hand, `cargo test --release -p chainrule-rust -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute"]
fn compile_time_grows_linearly() {
    for n in [12_500, 25_000, 50_000, 100_000] {
        let (graph, roots) = generate::layered(Semantics::Strict, n, 5, 10, 1);
        let module = emit(&lower_all(&graph, &roots), &Options::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let main = format!(
            "mod kernels;\n\nfn main() {{\n    let mut y = vec![0.0; {}];\n    let mut work = vec![0.0; kernels::random_work_len()];\n    \
             kernels::random(&[0.1, -0.2, 0.3, 0.4, 1.0], &mut y, &mut work).unwrap();\n    println!(\"{{}}\", y[0]);\n}}\n",
            roots.len()
        );
        rust::write(dir.path(), &file(&module, &Options::default()), &main);
        for args in [["build", "--offline", "--quiet"].as_slice(), &["build", "--offline", "--quiet", "--release"]] {
            let start = std::time::Instant::now();
            assert!(rust::run_cargo(dir.path(), args).status.success());
            println!("{n} operations, {} bytes of Rust, {args:?}: {:.1?}", module.text.len(), start.elapsed());
        }
    }
}

#[test]
fn floats_are_floats_throughout() {
    let options = Options { precision: Precision::Single, ..Options::default() };
    for library in [Library::Std, Library::Libm, Library::Own(Fma::Exact)] {
        let options = Options { library, ..options.clone() };
        for kernel in rotation().into_iter().chain([picked_sums(), halving()]) {
            let text = emit(&kernel, &options).unwrap().text;
            assert!(text.contains("f32") && !text.contains("f64"), "{text}");
        }
    }
}
