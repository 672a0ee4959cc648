//! Memory made for another program is refused before anything is written, however large it is.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // a test

use chainrule_base::{Arena, Name, Poly};
use chainrule_kernel::{Buffer, Class, External, Instr, Kernel, Place, Port, Stmt};
use chainrule_native::{Level, Options, Program, Workspace};
use chainrule_runtime::{Backend, Layout, Slice, SliceMut, Strided, StridedMut};
use std::sync::Arc;

/// Returns `y = f(x, x, ...)`, where the user function `f` adds its arguments.
fn kernel(arity: usize) -> Kernel {
    let (mut regs, mut buffers) = (Arena::new(), Arena::new());
    let (x, y) = (regs.push(Class::Real), regs.push(Class::Real));
    let one = Poly::constant(1);
    let a = buffers.push(Buffer { class: Class::Real, len: one.clone(), place: Place::Input(0) });
    let b = buffers.push(Buffer { class: Class::Real, len: one, place: Place::Output(0) });
    let port = |name, buffer| Port { name: Name::new(name), shape: vec![], buffer };
    Kernel {
        name: Name::new("k"),
        regs: regs.into(),
        sizes: vec![],
        inputs: vec![port("x", a)],
        outputs: vec![port("y", b)],
        buffers,
        requires: vec![],
        workspace_reals: Poly::zero(),
        workspace_ints: Poly::zero(),
        externals: vec![External {
            name: Name::new("f"),
            arity,
            call: Some(Arc::new(|x: &[f64]| x.iter().sum())),
            c_name: None,
        }],
        failures: vec![],
        zeros: vec![],
        body: vec![Stmt::Straight(vec![
            Instr::Load { dst: x, buffer: a, at: Poly::zero() },
            Instr::External { dst: y, function: 0, args: vec![x; arity].into() },
            Instr::Store { buffer: b, at: Poly::zero(), value: y },
        ])],
    }
}

fn program(kernel: &Kernel) -> Option<Program> {
    let program = Program::new(Arc::new(kernel.clone()), &Options::default());
    if program.is_err() {
        println!("skipped: there is no native code here");
    }
    program.ok()
}

const MESSAGE: &str = "the workspace was made for another program; make it with `Workspace::new` of this one";

#[test]
fn memory_of_another_program_is_refused() {
    let (Some(small), Some(large)) = (program(&kernel(1)), program(&kernel(40))) else { return };
    let bound = |program: &Program| program.bind(&[&[]], &[]).unwrap();
    let (of_small, of_large) = (bound(&small), bound(&large));
    for (program, sizes, foreign_sizes, other, value) in
        [(&large, &of_large, &of_small, &small, 120.0), (&small, &of_small, &of_large, &large, 3.0)]
    {
        let mut foreign = Workspace::for_batch(other, foreign_sizes);
        let mut y = [7.0];
        let run = program.run(sizes, &[Slice::Real(&[3.0])], &mut [SliceMut::Real(&mut y)], &mut foreign);
        assert_eq!(run.unwrap_err().to_string(), MESSAGE);
        let run = program.run_reals(sizes, &[&[3.0]], &mut [&mut y], &mut foreign);
        assert_eq!(run.unwrap_err().to_string(), MESSAGE);
        let mut foreign = [foreign];
        let x = Strided { data: Slice::Real(&[3.0]), point: 1, element: 1 };
        let into = StridedMut { data: SliceMut::Real(&mut y), point: 1, element: 1 };
        let run = program.run_batch(sizes, 1, &[x], &mut [into], &mut foreign);
        assert_eq!(run.unwrap_err().to_string(), MESSAGE);
        assert_eq!(y, [7.0], "nothing is written");
        let mut own = Workspace::for_batch(program, sizes);
        assert!(
            program.run_reals(foreign_sizes, &[&[3.0]], &mut [&mut y], &mut own).is_err(),
            "sizes of another program"
        );
        program.run_reals(sizes, &[&[3.0]], &mut [&mut y], &mut own).unwrap();
        assert_eq!(y, [value]);
    }
}

#[test]
fn programs_that_share_a_layout_share_workspaces_that_are_large_enough() {
    let layout = Layout::new(Arc::new(kernel(3)));
    for level in Level::ALL.into_iter().filter(|level| level.missing().is_empty()) {
        let options = Options { level: Some(level), ..Options::default() };
        let make = || Program::with_layout(layout.clone(), &options);
        let (Ok(one), Ok(two)) = (make(), make()) else { return };
        let sizes = one.bind(&[&[]], &[]).unwrap();
        let mut workspace = Workspace::new(&one, &sizes);
        let mut y = [0.0];
        two.run_reals(&sizes, &[&[2.0]], &mut [&mut y], &mut workspace).unwrap();
        assert_eq!(y, [6.0]);
    }
}

#[test]
fn lengths_and_counts_that_do_not_fit_are_told() {
    let Some(program) = program(&kernel(2)) else { return };
    let sizes = program.bind(&[&[]], &[]).unwrap();
    let mut workspace = Workspace::new(&program, &sizes);
    let mut y = [7.0, 7.0];
    let mut message = |inputs: &[&[f64]], n: usize| {
        let run = program.run_reals(&sizes, inputs, &mut [&mut y[..n]], &mut workspace);
        run.unwrap_err().to_string()
    };
    assert_eq!(message(&[&[1.0, 2.0]], 1), "argument `x` has 2 elements, but 1 expected");
    assert_eq!(message(&[&[1.0]], 2), "result `y` has 2 elements, but 1 expected");
    assert_eq!(message(&[], 1), "0 inputs and 1 output given, but 1 and 1 expected");
    let many = [&[1.0][..]; 20];
    assert_eq!(message(&many, 1), "20 inputs and 1 output given, but 1 and 1 expected");
    assert_eq!(y, [7.0, 7.0], "nothing is written");
}

#[test]
fn a_point_in_memory_of_its_own_runs_again_and_again() {
    let (Some(program), Some(other)) = (program(&kernel(3)), program(&kernel(3))) else { return };
    let sizes = program.bind(&[&[]], &[]).unwrap();
    let bound = |program: &Program, of: &Program, inputs| {
        program.bound(sizes.clone(), inputs, Workspace::new(of, &sizes)).map(drop).map_err(|e| e.to_string())
    };
    assert!(bound(&other, &other, sizes.zero_inputs()).is_err(), "sizes of another program");
    assert!(bound(&program, &other, sizes.zero_inputs()).is_err(), "a workspace of another program");
    let short = bound(&program, &program, Vec::new());
    assert_eq!(short.unwrap_err(), "0 inputs and 1 output given, but 1 and 1 expected");
    let of_program = || program.bound(sizes.clone(), sizes.zero_inputs(), Workspace::new(&program, &sizes)).unwrap();
    let mut bound = of_program();
    let mut moved = Vec::new();
    for x in [1.0, 2.5, -4.0] {
        bound.input_mut(0)[0] = x;
        bound.run().unwrap();
        assert_eq!((bound.inputs()[0].reals(), bound.output(0).reals()), (&[x][..], &[3.0 * x][..]));
        // Moving it does not move its memory.
        moved.push(bound);
        bound = moved.pop().unwrap();
    }
    let mut two = of_program();
    two.input_mut(0)[0] = 1.0;
    two.run().unwrap();
    assert_eq!(
        (bound.output(0).reals(), two.output(0).reals()),
        (&[-12.0][..], &[3.0][..]),
        "each has memory of its own"
    );
}
