//! The verifier finds each broken invariant, and nothing in a kernel that keeps them.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_base::{Arena, Id, Poly};
use chainrule_kernel::{
    Buffer, BufferId, Carried, Choice, Class, Condition, Instr, Kernel, Order, Place, Port, Reg, SizeParam, SizeSource,
    Stmt, Zeros, check_layout, verify,
};
use chainrule_ops::Op;

fn r(idx: usize) -> Reg {
    Reg::new(idx)
}

fn b(idx: usize) -> BufferId {
    BufferId::new(idx)
}

fn at(idx: usize) -> Poly<Reg> {
    Poly::var(r(idx))
}

const N: usize = 0;

/// `y[i] = t[i]` where `t = x`, with a sum that is carried, a while and a branch: everything once.
///
/// b0: the input x; b1: the output y; b2, b3: doubles in the workspace; b4: the input k, an integer.
fn sound() -> Kernel {
    use Class::{Int, Real};
    // 0 n, 1 zero, 2 sum, 3 i, 4 element, 5 next sum, 6 k's value, 7 carried, 8 holds, 9 next, 10 chosen, 11 other
    let classes = [Int, Real, Real, Int, Real, Real, Int, Real, Int, Real, Real, Real];
    let n = at(N);
    let workspace = |offset| Buffer { class: Real, len: at(N), place: Place::Workspace(offset) };
    let buffers: Arena<BufferId, Buffer> = [
        Buffer { class: Real, len: n.clone(), place: Place::Input(0) },
        Buffer { class: Real, len: n.clone(), place: Place::Output(0) },
        workspace(Poly::zero()),
        workspace(n.clone()),
        Buffer { class: Int, len: Poly::constant(1), place: Place::Input(1) },
    ]
    .into_iter()
    .collect();
    let straight = |instrs: Vec<Instr>| Stmt::Straight(instrs);
    let op = |dst, op, x, y| Instr::Op { dst: r(dst), op, args: [r(x), r(y), r(x)] };
    let copy =
        |to, from| Stmt::Copy { to: (b(to), Poly::zero()), from: (b(from), Poly::zero()), len: at(N), is_move: false };
    let body = vec![
        straight(vec![Instr::Const { dst: r(1), value: 0.0 }]),
        copy(2, 0),
        Stmt::For {
            index: r(3),
            count: n.clone(),
            carried: vec![Carried { var: r(2), init: r(1), next: r(5) }],
            order: Order::InOrder,
            body: vec![
                straight(vec![Instr::Load { dst: r(4), buffer: b(2), at: at(3) }, op(5, Op::Add, 2, 4)]),
                straight(vec![Instr::Store { buffer: b(3), at: at(3), value: r(5) }]),
            ],
        },
        copy(1, 3),
        straight(vec![Instr::CheckIndex { index: r(6), len: n.clone(), failure: 0 }]),
        Stmt::While {
            limit: at(6),
            carried: vec![Carried { var: r(7), init: r(2), next: r(9) }],
            condition: vec![straight(vec![op(8, Op::Lt, 1, 7)])],
            holds: r(8),
            body: vec![straight(vec![op(9, Op::Sub, 7, 2)])],
            failure: 0,
        },
        Stmt::If {
            condition: r(6),
            then: vec![straight(vec![op(11, Op::Mul, 7, 7)])],
            otherwise: vec![],
            choices: vec![Choice { var: r(10), then: r(11), otherwise: r(7) }],
        },
        straight(vec![Instr::Store { buffer: b(1), at: Poly::zero(), value: r(10) }]),
    ];
    Kernel {
        name: "sound".into(),
        regs: classes.into_iter().collect::<Arena<_, _>>().into(),
        sizes: vec![
            SizeParam { name: "n".into(), reg: r(N), source: SizeSource::Extent { input: 0, dim: 0 } },
            SizeParam { name: "k".into(), reg: r(6), source: SizeSource::Value { input: 1 } },
        ],
        inputs: vec![
            Port { name: "x".into(), shape: vec![n.clone()], buffer: b(0) },
            Port { name: "k".into(), shape: vec![], buffer: b(4) },
        ],
        outputs: vec![Port { name: "y".into(), shape: vec![n.clone()], buffer: b(1) }],
        buffers,
        requires: vec![Condition { size: n.clone(), exactly_zero: false, message: "n".to_owned(), span: None }],
        workspace_reals: n.scale(2),
        workspace_ints: Poly::zero(),
        externals: vec![],
        failures: vec![("out of range".to_owned(), None)],
        zeros: vec![],
        body,
    }
}

/// The instructions of the straight block `idx` of the body; those of the first loop for `idx` 2.
fn code(kernel: &mut Kernel, idx: usize) -> &mut Vec<Instr> {
    match &mut kernel.body[idx] {
        Stmt::Straight(instrs) => instrs,
        Stmt::For { body, .. } => match &mut body[0] {
            Stmt::Straight(instrs) => instrs,
            _ => panic!("no code"),
        },
        _ => panic!("no code"),
    }
}

#[test]
fn a_sound_kernel_passes() {
    assert_eq!(verify(&sound()), Ok(()));
    for n in [0, 1, 5] {
        assert_eq!(check_layout(&sound(), &[n, 0]), Ok(()));
    }
    insta::assert_snapshot!(sound(), @r"
    kernel sound
    size n r0 = extent 0 of x
    size k r6 = value of k
    input x: real[r0] in b0
    input k: int in b4
    output y: real[r0] in b1
    buffer b2: real[r0] at 0
    buffer b3: real[r0] at r0
    workspace: 2*r0 real, 0 int
    require r0 >= 0: n
    r1 = 0.0
    copy r0 to b2[0] from b0[0]
    for r3 in 0..r0, r2 = r1 then r5
      r4 = load b2[r3]
      r5 = add r2, r4
      store b3[r3] = r5
    copy r0 to b1[0] from b3[0]
    check r6 < r0 else 0
    while at most r6, r7 = r2 then r9
      r8 = lt r1, r7
    do if r8 else 0
      r9 = sub r7, r2
    if r6
      r11 = mul r7, r7
    r10 = r11 | r7
    store b1[0] = r10
    ");
}

type Break = fn(&mut Kernel);

#[test]
fn each_broken_invariant_is_found() {
    let breaks: &[(&str, Break)] = &[
        ("not a C identifier", |k| k.name = "a-b".into()),
        ("C identifier of its own", |k| k.sizes[1].name = "n".into()),
        ("not there", |k| k.sizes[0].source = SizeSource::Extent { input: 9, dim: 0 }),
        ("does not fit the input", |k| k.sizes[0].source = SizeSource::Extent { input: 0, dim: 1 }),
        ("does not fit the input", |k| k.sizes[1].source = SizeSource::Value { input: 0 }),
        ("two inputs are called", |k| k.inputs[1].name = "x".into()),
        ("is in another place", |k| k.outputs[0].buffer = b(2)),
        ("long instead of", |k| k.buffers[b(0)].len = Poly::constant(3)),
        ("is the buffer of no input", |k| k.buffers[b(3)].place = Place::Input(1)),
        ("the offset of b2 uses r3", |k| k.buffers[b(2)].place = Place::Workspace(at(3))),
        ("the length of b2 uses r2, which is not in scope", |k| k.buffers[b(2)].len = at(2)),
        ("the condition `n` uses", |k| k.requires[0].size = at(3)),
        ("the workspace of doubles uses", |k| k.workspace_reals = at(3)),
        ("r1 is defined twice", |k| code(k, 0).push(Instr::Const { dst: r(1), value: 1.0 })),
        ("r99 does not exist", |k| code(k, 0).push(Instr::Const { dst: r(99), value: 1.0 })),
        ("uses r10, which is not in scope", |k| {
            code(k, 4).push(Instr::Store { buffer: b(1), at: Poly::zero(), value: r(10) });
        }),
        // What a loop defines ends with it.
        ("uses r5, which is not in scope", |k| {
            code(k, 4).push(Instr::Store { buffer: b(1), at: Poly::zero(), value: r(5) });
        }),
        ("uses r3, which is not in scope", |k| {
            code(k, 4).push(Instr::Store { buffer: b(1), at: at(3), value: r(1) });
        }),
        ("uses r8, which is not in scope", |k| {
            let Stmt::While { body, .. } = &mut k.body[5] else { panic!() };
            body.push(Stmt::Straight(vec![Instr::CheckIndex { index: r(8), len: at(N), failure: 0 }]));
        }),
        ("a store uses r0, which is Int, as Real", |k| {
            code(k, 4).push(Instr::Store { buffer: b(1), at: Poly::zero(), value: r(N) });
        }),
        ("add uses r3, which is Int, as Real", |k| {
            code(k, 2)[1] = Instr::Op { dst: r(5), op: Op::Add, args: [r(2), r(3), r(2)] };
        }),
        ("r5 is Real where Int is defined", |k| {
            code(k, 2)[1] = Instr::Op { dst: r(5), op: Op::Lt, args: [r(2), r(4), r(2)] };
        }),
        ("sin has no integer form", |k| {
            code(k, 2)[1] = Instr::IntOp { dst: r(5), op: Op::Sin, args: [r(3); 3], failure: 0 };
        }),
        ("a load uses r2, which is Real, as Int", |k| {
            code(k, 2)[0] = Instr::Load { dst: r(4), buffer: b(2), at: at(2) };
        }),
        ("writes the input b0", |k| {
            code(k, 4).push(Instr::Store { buffer: b(0), at: Poly::zero(), value: r(1) });
        }),
        ("names b9, which does not exist", |k| code(k, 2)[0] = Instr::Load { dst: r(4), buffer: b(9), at: at(3) }),
        ("b9, in which there are zeros, does not exist", |k| k.zeros.push(Zeros { buffer: b(9), first: 0, which: 1 })),
        ("b0, in which there are zeros, is no output", |k| k.zeros.push(Zeros { buffer: b(0), first: 0, which: 1 })),
        ("b2, in which there are zeros, is no output", |k| k.zeros.push(Zeros { buffer: b(2), first: 0, which: 1 })),
        // Its length is not known.
        ("zeros of b1 from element 0 on are not inside", |k| k.zeros.push(Zeros { buffer: b(1), first: 0, which: 1 })),
        ("failure 7 has no message", |k| {
            code(k, 4)[0] = Instr::CheckIndex { index: r(6), len: at(N), failure: 7 };
        }),
        ("external 0 does not exist", |k| {
            code(k, 2)[1] = Instr::External { dst: r(5), function: 0, args: [r(4)].into() };
        }),
        ("onto itself", |k| {
            k.body[1] = Stmt::Copy { to: (b(2), Poly::zero()), from: (b(2), Poly::zero()), len: at(N), is_move: false };
        }),
        ("changes the class", |k| {
            k.body[1] = Stmt::Copy { to: (b(2), Poly::zero()), from: (b(4), Poly::zero()), len: at(N), is_move: false };
        }),
        ("a loop's initial state uses r4, which is not in scope", |k| {
            let Stmt::For { carried, .. } = &mut k.body[2] else { panic!() };
            carried[0].init = r(4);
        }),
        ("the end of a loop uses r9, which is not in scope", |k| {
            let Stmt::For { carried, .. } = &mut k.body[2] else { panic!() };
            carried[0].next = r(9);
        }),
        ("the end of a branch uses r11, which is not in scope", |k| {
            let Stmt::If { choices, .. } = &mut k.body[6] else { panic!() };
            choices[0].otherwise = r(11);
        }),
        ("a branch uses r1, which is Real, as Int", |k| {
            let Stmt::If { condition, .. } = &mut k.body[6] else { panic!() };
            *condition = r(1);
        }),
    ];
    for (expected, damage) in breaks {
        let mut kernel = sound();
        damage(&mut kernel);
        let errors = verify(&kernel).expect_err(expected);
        assert!(errors.iter().any(|error| error.to_string().contains(expected)), "{expected}: {errors:?}");
    }
}

#[test]
fn overlapping_and_outlying_buffers_are_found() {
    let fails = |kernel: &Kernel, n: i64, expected: &str| {
        let errors = check_layout(kernel, &[n, 0]).expect_err(expected);
        assert!(errors.iter().any(|error| error.to_string().contains(expected)), "{errors:?}");
    };
    let mut kernel = sound();
    kernel.buffers[b(3)].place = Place::Workspace(at(N).sub(&Poly::constant(1)));
    fails(&kernel, 3, "b2 at 0..3 and b3 at 2..5 are live at one time");
    fails(&kernel, 0, "does not lie inside");
    let mut kernel = sound();
    kernel.workspace_reals = at(N);
    fails(&kernel, 3, "b3 at 3, 3 long, does not lie inside the 3");
    // One after the other is fine; in two loops of one loop it is, too, but not across the loop's end.
    let mut kernel = sound();
    kernel.buffers[b(3)].place = Place::Workspace(Poly::zero());
    let copy =
        |to, from| Stmt::Copy { to: (b(to), Poly::zero()), from: (b(from), Poly::zero()), len: at(N), is_move: false };
    kernel.body = vec![copy(2, 0), copy(1, 2), copy(3, 0), copy(1, 3)];
    assert_eq!(check_layout(&kernel, &[3, 0]), Ok(()));
    let repeat = |body| Stmt::For { index: r(3), count: at(N), carried: vec![], order: Order::InOrder, body };
    kernel.body = vec![repeat(vec![copy(2, 0), copy(1, 2), copy(3, 0), copy(1, 3)])];
    assert_eq!(check_layout(&kernel, &[3, 0]), Ok(()));
    kernel.body = vec![copy(2, 0), repeat(vec![copy(1, 2), copy(3, 0), copy(1, 3)])];
    fails(&kernel, 3, "live at one time");
    kernel.body = vec![repeat(vec![copy(3, 0), copy(1, 3), copy(2, 0)]), copy(1, 2)];
    fails(&kernel, 3, "live at one time");
}

#[test]
fn zeros_lie_inside_of_their_output() {
    let of = |len: i64, first: i64, which: u64| {
        let mut kernel = Kernel::empty("f".into());
        let buffer =
            kernel.buffers.push(Buffer { class: Class::Real, len: Poly::constant(len), place: Place::Output(0) });
        kernel.outputs.push(Port { name: "y".into(), shape: vec![Poly::constant(len)], buffer });
        kernel.zeros.push(Zeros { buffer, first, which });
        verify(&kernel).map_err(|faults| faults[0].to_string())
    };
    let in_order = |all: &[(usize, i64, u64)]| {
        let mut kernel = Kernel::empty("f".into());
        for (idx, name) in ["y", "z"].into_iter().enumerate() {
            let (class, len) = (Class::Real, Poly::constant(200));
            let buffer = kernel.buffers.push(Buffer { class, len: len.clone(), place: Place::Output(idx) });
            kernel.outputs.push(Port { name: name.into(), shape: vec![len], buffer });
        }
        let zeros =
            |(buffer, first, which): &(usize, i64, u64)| Zeros { buffer: b(*buffer), first: *first, which: *which };
        kernel.zeros.extend(all.iter().map(zeros));
        verify(&kernel).map_err(|faults| faults[0].to_string())
    };
    assert_eq!(in_order(&[(0, 0, 0b101), (0, 3, 1), (0, 100, u64::MAX), (1, 0, 1)]), Ok(()));
    for wrong in [[(0, 5, 1), (0, 4, 1)], [(0, 4, 1), (0, 4, 1)], [(0, 4, 0b11), (0, 5, 1)], [(1, 4, 1), (0, 9, 1)]] {
        let fault = in_order(&wrong).unwrap_err();
        assert!(fault.contains("zeros are not in order"), "{wrong:?}: {fault}");
    }
    for (len, first, which) in [(1, 0, 1), (64, 0, u64::MAX), (70, 6, u64::MAX), (3, 2, 1), (4, 1, 0b101)] {
        assert_eq!(of(len, first, which), Ok(()));
    }
    for (len, first, which) in
        [(1, 0, 3), (63, 0, u64::MAX), (3, -1, 1), (3, 3, 1), (3, i64::MAX, 3), (3, 0, 0), (3, 0, 2)]
    {
        let fault = of(len, first, which).unwrap_err();
        assert!(fault.contains("are not inside"), "{len} {first} {which:b}: {fault}");
    }
}
