//! Buffers that share memory of the workspace: a loaded value stays the same, however late it is used, and whatever is
//! stored to the next buffer meanwhile.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::{Result, Unstructured};
use chainrule_backend_tests::generate::random;
use chainrule_backend_tests::native::compare;
use chainrule_backend_tests::{around, reals};
use chainrule_base::{Arena, Name, Poly};
use chainrule_cases::covers;
use chainrule_kernel::{
    Buffer, BufferId, Class, Instr, Kernel, Order, Place, Port, Reg, Registers, Stmt, check_layout, hoist, vectorise,
    verify,
};
use chainrule_ops::{Op, Semantics};
use proptest::prelude::*;
use std::cell::Cell;

/// Number of arguments and results.
const N: i64 = 6;
/// Number of shared regions, and of the numbers in each.
const PLACES: usize = 3;
const LEN: i64 = 3;

struct Generator {
    regs: Registers,
    buffers: Arena<BufferId, Buffer>,
    /// Live buffer of each region.
    living: [Option<BufferId>; PLACES],
    pool: Vec<Reg>,
    code: Vec<Instr>,
}

impl Generator {
    /// Returns one of the values so far, including old ones.
    fn value(&self, u: &mut Unstructured<'_>) -> Result<Reg> {
        u.choose(&self.pool).copied()
    }

    fn load(&mut self, buffer: BufferId, at: i64) {
        let dst = self.regs.push(Class::Real);
        self.code.push(Instr::Load { dst, buffer, at: Poly::constant(at) });
        self.pool.push(dst);
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let place = u.int_in_range(0..=PLACES - 1)?;
        match (u.int_in_range(0..=3)?, self.living[place]) {
            (0, _) | (_, None) => {
                // The next buffer of this region, or the first.
                let at = Place::Workspace(Poly::constant(place as i64 * LEN));
                let buffer = self.buffers.push(Buffer { class: Class::Real, len: Poly::constant(LEN), place: at });
                for at in 0..LEN {
                    let value = self.value(u)?;
                    self.code.push(Instr::Store { buffer, at: Poly::constant(at), value });
                }
                self.living[place] = Some(buffer);
            }
            (1 | 2, Some(buffer)) => self.load(buffer, u.int_in_range(0..=LEN - 1)?),
            _ => {
                let (a, b, dst) = (self.value(u)?, self.value(u)?, self.regs.push(Class::Real));
                let op = *u.choose(&[Op::Add, Op::Sub, Op::Mul])?;
                self.code.push(Instr::Op { dst, op, args: [a, b, a] });
                self.pool.push(dst);
            }
        }
        Ok(())
    }
}

/// Returns a random kernel of one block: straight-line code, or the body of a loop over its arguments, which is
/// sometimes vectorised.
fn kernel(u: &mut Unstructured<'_>) -> Result<Kernel> {
    let (regs, buffers) = (Registers::new(), Arena::new());
    let mut g = Generator { regs, buffers, living: [None; PLACES], pool: Vec::new(), code: Vec::new() };
    let mut buffer = |place| g.buffers.push(Buffer { class: Class::Real, len: Poly::constant(N), place });
    let (x, y) = (buffer(Place::Input(0)), buffer(Place::Output(0)));
    let index = if u.ratio(1, 2)? { Some(g.regs.push(Class::Int)) } else { None };
    (0..N - 1).for_each(|at| g.load(x, at));
    for _ in 0..u.int_in_range(3..=40)? {
        g.step(u)?;
    }
    let stores = if index.is_some() { 1 } else { N };
    for at in 0..stores {
        let at = index.map_or_else(|| Poly::constant(at), Poly::var);
        let value = g.value(u)?;
        g.code.push(Instr::Store { buffer: y, at, value });
    }
    let port = |name, buffer| Port { name: Name::new(name), shape: vec![Poly::constant(N)], buffer };
    let block = Stmt::Straight(g.code);
    let body = match index {
        Some(index) => {
            let count = Poly::constant(N);
            Stmt::For { index, count, carried: vec![], order: Order::InOrder, body: vec![block] }
        }
        None => block,
    };
    let mut kernel = Kernel {
        regs: g.regs,
        inputs: vec![port("x", x)],
        outputs: vec![port("y", y)],
        buffers: g.buffers,
        workspace_reals: Poly::constant(PLACES as i64 * LEN),
        body: vec![body],
        ..Kernel::empty(Name::new("turns"))
    };
    if u.ratio(1, 2)? {
        vectorise(&mut kernel, Semantics::Algebraic);
        hoist(&mut kernel);
    }
    Ok(kernel)
}

#[test]
fn what_was_read_stays_what_it_was() {
    let ran = Cell::new(0);
    random(1500, 61, 400, |u| {
        let Ok(kernel) = kernel(u) else { return Ok(()) };
        prop_assert_eq!(verify(&kernel), Ok(()));
        prop_assert_eq!(check_layout(&kernel, &[]), Ok(()));
        let x: Vec<f64> = (0..N).map(|i| 0.25 + (i as f64 * 1.7).sin()).collect();
        ran.set(ran.get() + usize::from(compare(&kernel, &around(&[reals(&x)], 9))?.ran > 0));
        Ok(())
    });
    covers!(ran.get() > 1000, "{} kernels", ran.get());
}
