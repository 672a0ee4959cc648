//! Quotients and remainders of integers at all corner cases, by variables and by constants: the values or failures of
//! the operator table.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_ir::{Builder, Type};
use chainrule_kernel::lower_function;
use chainrule_native::{Level, Options, Program, Workspace};
use chainrule_ops::Op;
use chainrule_runtime::{Backend, Slice, SliceMut};
use std::sync::Arc;

const CORNERS: [i64; 17] =
    [i64::MIN, i64::MIN + 1, -1_000_003, -8, -7, -3, -2, -1, 0, 1, 2, 3, 7, 8, 4096, i64::MAX - 1, i64::MAX];

/// Returns `op(a, b)` of the parameter `a` and a parameter or the constant `b`.
fn program(op: Op, constant: Option<i64>) -> Program {
    let mut b = Builder::new("f");
    let x = b.param("a", Type::Int);
    let y = match constant {
        Some(c) => b.int(c),
        None => b.param("b", Type::Int),
    };
    let result = b.op(op, &[x, y]);
    let kernel = lower_function(&b.finish(result)).unwrap();
    let level = Level::ALL.into_iter().find(|level| level.missing().is_empty());
    Program::new(Arc::new(kernel), &Options { level, ..Options::default() }).unwrap()
}

fn run(program: &Program, args: &[i64]) -> Option<i64> {
    let values: Vec<[i64; 1]> = args.iter().map(|x| [*x]).collect();
    let slices: Vec<Slice<'_>> = values.iter().map(|x| Slice::Int(x)).collect();
    let shapes: Vec<&[usize]> = args.iter().map(|_| [].as_slice()).collect();
    let sizes = program.bind_inputs(&shapes, &slices).unwrap();
    let mut result = [0];
    let mut workspace = Workspace::new(program, &sizes);
    let done = program.run(&sizes, &slices, &mut [SliceMut::Int(&mut result)], &mut workspace);
    done.ok().map(|()| result[0])
}

#[test]
fn quotients_and_remainders_at_every_corner() {
    if Level::ALL.into_iter().all(|level| !level.missing().is_empty()) {
        println!("skipped: the machine has no level of native code");
        return;
    }
    for op in [Op::Quot, Op::Mod] {
        let value = op.row().int.unwrap();
        let by_data = program(op, None);
        for b in CORNERS {
            let by_constant = program(op, Some(b));
            for a in CORNERS {
                let expected = value(&[a, b]);
                assert_eq!(run(&by_data, &[a, b]), expected, "{op:?} of {a} and {b}");
                assert_eq!(run(&by_constant, &[a]), expected, "{op:?} of {a} and the constant {b}");
            }
        }
    }
}
