//! Bisection finds planted faults, and shrinks the programs on which they show.
#![allow(clippy::unwrap_used)]

use chainrule::bisect::{Bisection, Wrong, difference};
use chainrule::{CompileOptions, Fault, Function, Module, PassLevel, Seed, Value};
use chainrule_ir as ir;
use chainrule_kernel::{Instr, Kernel, Stmt};
use chainrule_ops::Op;

const PROGRAM: &str = "
let scale = 3.0
let helper = fun (x : Double) -> exp (x / scale)
let unused = fun (x : Double) -> x - 1
let f = fun (x : [n]Double) ->
  let a = build n (fun i -> cos x[i] + helper x[i])
  let b = build n (fun i -> a[i] * x[i] - tanh a[i])
  let c = vectorSum b
  let d = sum n (fun i -> sin x[i] * a[i])
  let e = if c > 0 then c * c else d
  c + d * e
";

fn gradient(text: &str) -> Option<Function> {
    let f = Module::from_text("f.ft", text).ok()?.function("f").ok()?;
    f.gradient().function().ok()
}

fn args() -> Vec<Value<f64>> {
    vec![Value::Array([0.5, -1.0, 2.0, 0.25].map(Value::Real).to_vec())]
}

/// Returns the shrunk program, and what is wrong with it.
fn shrunk(seed: Seed) -> (String, Wrong) {
    let args = args();
    let options = CompileOptions::default();
    let bisection = Bisection { load: &gradient, args: &args, options, tolerance: 1e-9, seed: Some(seed) };
    let wrong = bisection.first_wrong(&gradient(PROGRAM).unwrap()).unwrap().unwrap();
    assert_eq!(wrong.pass, seed.after);
    assert_ne!(wrong.before, wrong.after);
    let (text, found) = bisection.shrink(PROGRAM, &wrong).unwrap();
    assert_eq!(found.pass, seed.after);
    assert!(difference(&found.expected, found.found.as_ref().unwrap()).unwrap() > 1e-9);
    // The program is right without the fault.
    let right = Bisection { seed: None, ..bisection };
    assert_eq!(right.first_wrong(&gradient(&text).unwrap()).unwrap(), None, "{text}");
    (text, found)
}

fn each_instr(stmts: &mut [Stmt], change: &mut dyn FnMut(&mut Instr)) {
    for stmt in stmts {
        match stmt {
            Stmt::Straight(instrs) => instrs.iter_mut().for_each(&mut *change),
            Stmt::For { body, .. } => each_instr(body, change),
            Stmt::While { condition, body, .. } => {
                each_instr(condition, change);
                each_instr(body, change);
            }
            Stmt::If { then, otherwise, .. } => {
                each_instr(then, change);
                each_instr(otherwise, change);
            }
            _ => {}
        }
    }
}

/// Replaces exponentials by sines.
fn other_function(kernel: &mut Kernel) {
    each_instr(&mut kernel.body, &mut |instr| {
        if let Instr::Op { op: op @ Op::Exp, .. } = instr {
            *op = Op::Sin;
        }
    });
}

/// Leaves out the last iteration of every outermost loop.
fn short_loops(kernel: &mut Kernel) {
    for stmt in &mut kernel.body {
        if let Stmt::For { count, .. } = stmt {
            *count = count.sub(&chainrule_base::Poly::constant(1));
        }
    }
}

/// Replaces sines by cosines.
fn cosines(function: &mut ir::Function) {
    fn block_of(block: &mut ir::Block) {
        for stmt in &mut block.stmts {
            if let ir::Expr::Op(op @ Op::Sin, _) = &mut stmt.expr {
                *op = Op::Cos;
            }
            stmt.expr.blocks_mut().into_iter().for_each(block_of);
        }
    }
    block_of(&mut function.body);
}

#[test]
fn a_wrong_function_in_a_kernel_is_found() {
    let (text, found) = shrunk(Seed { after: "vectorise", fault: Fault::Kernel(other_function) });
    assert_eq!(found.level, PassLevel::Kernel);
    assert!(found.before.contains("exp") && !found.after.contains("exp"), "{}", found.before);
    // Hyperbolic tangents are made of exponentials.
    assert!(text.contains("exp") || text.contains("tanh"), "{text}");
    assert!(!text.contains("cos") && !text.contains("if") && !text.contains("unused"), "{text}");
    assert!(text.matches("let").count() <= 2, "{text}");
}

#[test]
fn a_lost_iteration_is_found() {
    let (text, found) = shrunk(Seed { after: "lower", fault: Fault::Kernel(short_loops) });
    assert_eq!(found.level, PassLevel::Kernel);
    assert!(!text.contains("exp") && !text.contains("if"), "{text}");
    assert!(text.matches("let").count() <= 2, "{text}");
}

#[test]
fn a_wrong_rule_of_array_programs_is_found() {
    let (text, found) = shrunk(Seed { after: "simplify", fault: Fault::Array(cosines) });
    assert_eq!((found.level_before, found.level), (PassLevel::Array, PassLevel::Array));
    assert!(text.contains("sin") && !text.contains("tanh"), "{text}");
    assert!(text.matches("let").count() <= 2, "{text}");
}

#[test]
fn a_right_compiler_has_no_wrong_pass() {
    let args = args();
    let bisection =
        Bisection { load: &gradient, args: &args, options: CompileOptions::default(), tolerance: 1e-9, seed: None };
    let function = gradient(PROGRAM).unwrap();
    assert_eq!(bisection.first_wrong(&function).unwrap(), None);
    // A function without a value is not blamed on a pass.
    let text = "let f = fun (x : [n]Double) -> x[7] * x[0]";
    let error = bisection.first_wrong(&gradient(text).unwrap()).unwrap_err();
    assert!(error.to_string().contains("fewer than 8 elements"), "{error}");
}
