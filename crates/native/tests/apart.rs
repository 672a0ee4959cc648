//! Loops whose iterations update common elements: vectorised, with conflict splitting where it pays, they have the
//! results of sequential execution. Numbers are small integers, so that the order of additions changes no bit.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::{Result, Unstructured};
use chainrule_backend_tests::by_hand::{ByHand, each};
use chainrule_backend_tests::generate::{on_two_threads, random};
use chainrule_backend_tests::native::{compare, reference};
use chainrule_backend_tests::{Array, ints, reals};
use chainrule_base::Poly;
use chainrule_cases::covers;
use chainrule_interpret as interpret;
use chainrule_kernel::{BufferId, Carried, Class, Instr, Kernel, Order, Reg, Stmt, vectorise, verify};
use chainrule_ops::{Op, Semantics};
use proptest::prelude::*;
use std::cell::Cell;

/// Length of the window of the inner loop.
const WINDOW: i64 = 4;
/// Ratio of updated elements to iterations: enough for any index.
const LONG: i64 = 14;
/// Maximum magnitude of numbers, so that all sums are exact.
const LARGEST: f64 = 100.0;

struct Generator {
    by_hand: ByHand,
    n: Reg,
    x: BufferId,
    at: BufferId,
    y: BufferId,
    /// Indices of the enclosing loops, outermost first.
    indices: Vec<Reg>,
    /// Indices into `x`, loaded or computed.
    varying: Vec<Reg>,
    reals: Vec<Reg>,
    /// Carried value of the outer loop.
    sum: Reg,
}

impl Generator {
    fn constant(&mut self, value: f64) -> Reg {
        let dst = self.by_hand.real();
        self.by_hand.code.push(Instr::Const { dst, value });
        dst
    }

    fn number(&self, u: &mut Unstructured<'_>) -> Result<Reg> {
        u.choose(&self.reals).copied()
    }

    /// Returns an index into `y`, which is long enough for all of these.
    fn place(&self, u: &mut Unstructured<'_>) -> Result<Poly<Reg>> {
        let outer = Poly::var(self.indices[0]);
        let inner = self.indices.get(1).map(|k| Poly::var(*k));
        let c = Poly::constant(u.int_in_range(0..=3)?);
        let base = match u.int_in_range(0..=7)? {
            0 => outer.scale(2),
            1 => Poly::var(self.n).sub(&outer),
            2 | 3 if !self.varying.is_empty() => Poly::var(*u.choose(&self.varying)?),
            4 => Poly::zero(),
            _ => outer,
        };
        Ok(match inner {
            Some(k) if u.ratio(2, 3)? => base.add(&k).add(&c),
            _ => base.add(&c),
        })
    }

    /// Returns a new index into `x`, computed from others or truncated from a number.
    fn computed(&mut self, u: &mut Unstructured<'_>) -> Result<Reg> {
        let int_op = |by_hand: &mut ByHand, op, a, b| {
            let dst = by_hand.reg(Class::Int);
            by_hand.code.push(Instr::IntOp { dst, op, args: [a, b, a], failure: 0 });
            dst
        };
        let any = match u.int_in_range(0..=3)? {
            0 => {
                let (dst, src) = (self.by_hand.reg(Class::Int), self.number(u)?);
                self.by_hand.code.push(Instr::ToInt { dst, src });
                dst
            }
            _ if self.varying.is_empty() => return Ok(self.indices[0]),
            1 => {
                let [a, b] = [*u.choose(&self.varying)?, *u.choose(&self.varying)?];
                return Ok(int_op(&mut self.by_hand, *u.choose(&[Op::Min, Op::Max])?, a, b));
            }
            2 => {
                let (a, k) = (Poly::var(*u.choose(&self.varying)?), Poly::var(*u.choose(&self.indices)?));
                let dst = self.by_hand.reg(Class::Int);
                let value = a.scale(3).sub(&k.mul(&a)).add(&Poly::constant(5));
                self.by_hand.code.push(Instr::Int { dst, value });
                dst
            }
            _ => {
                let [a, b] = [*u.choose(&self.varying)?, *u.choose(&self.indices)?];
                int_op(&mut self.by_hand, *u.choose(&[Op::Add, Op::Sub, Op::Mul])?, a, b)
            }
        };
        Ok(int_op(&mut self.by_hand, Op::Mod, any, self.n))
    }

    /// As [`Self::place`], sometimes in a register.
    fn place_in_register(&mut self, u: &mut Unstructured<'_>) -> Result<Poly<Reg>> {
        let value = self.place(u)?;
        if u.ratio(2, 3)? {
            return Ok(value);
        }
        Ok(self.by_hand.in_register(value))
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        match u.int_in_range(0..=9)? {
            8 => {
                let r = self.computed(u)?;
                self.varying.push(r);
            }
            9 if !self.varying.is_empty() => {
                let (dst, at) = (self.by_hand.real(), *u.choose(&self.varying)?);
                self.by_hand.code.push(Instr::Load { dst, buffer: self.x, at: Poly::var(at) });
                self.reals.push(dst);
            }
            0 => {
                let (dst, at) = (self.by_hand.real(), self.indices[u.int_in_range(0..=self.indices.len() - 1)?]);
                self.by_hand.code.push(Instr::Load { dst, buffer: self.x, at: Poly::var(at) });
                self.reals.push(dst);
            }
            1 => {
                let dst = self.by_hand.reg(Class::Int);
                self.by_hand.code.push(Instr::Load { dst, buffer: self.at, at: Poly::var(self.indices[0]) });
                self.varying.push(dst);
                let real = self.by_hand.real();
                self.by_hand.code.push(Instr::ToReal { dst: real, src: dst });
                self.reals.push(real);
            }
            2 | 3 => {
                let (at, so_far, by) = (self.place_in_register(u)?, self.by_hand.real(), self.number(u)?);
                self.by_hand.code.push(Instr::Load { dst: so_far, buffer: self.y, at: at.clone() });
                let op = *u.choose(&[Op::Add, Op::Sub])?;
                let mut value = self.by_hand.op(op, so_far, by);
                if u.ratio(1, 4)? {
                    let by = self.number(u)?;
                    value = self.by_hand.op(Op::Add, by, value);
                }
                self.by_hand.code.push(Instr::Store { buffer: self.y, at, value });
            }
            4 => {
                // Costly operations make lanes worthwhile.
                let x = self.number(u)?;
                let square = self.by_hand.op(Op::Mul, x, x);
                let root = self.by_hand.op(Op::Sqrt, square, square);
                self.reals.push(root);
            }
            5 => {
                let (a, b, c, d, holds) =
                    (self.number(u)?, self.number(u)?, self.number(u)?, self.number(u)?, self.by_hand.reg(Class::Int));
                self.by_hand.code.push(Instr::Op { dst: holds, op: Op::Lt, args: [a, b, a] });
                let dst = self.by_hand.real();
                self.by_hand.code.push(Instr::Op { dst, op: Op::Select, args: [holds, c, d] });
                self.reals.push(dst);
            }
            _ => {
                let (a, b) = (self.number(u)?, self.number(u)?);
                let op = *u.choose(&[Op::Add, Op::Sub, Op::Mul, Op::Min])?;
                let (value, most) = (self.by_hand.op(op, a, b), self.constant(LARGEST));
                let (value, least) = (self.by_hand.op(Op::Min, value, most), self.constant(-LARGEST));
                let value = self.by_hand.op(Op::Max, value, least);
                self.reals.push(value);
            }
        }
        Ok(())
    }

    /// Returns statements, and the carried value of a loop in them.
    fn block(&mut self, u: &mut Unstructured<'_>) -> Result<Vec<Stmt>> {
        let (reals, varying) = (self.reals.len(), self.varying.len());
        let mut body = Vec::new();
        for _ in 0..u.int_in_range(1..=3)? {
            for _ in 0..u.int_in_range(1..=8)? {
                self.step(u)?;
            }
            let adds = u.ratio(1, 4)?;
            if adds && self.indices.len() == 1 {
                let by = self.number(u)?;
                self.sum = self.by_hand.op(Op::Add, self.sum, by);
            }
            body.push(self.by_hand.straight());
            if self.indices.len() == 1 && u.ratio(2, 3)? {
                let (index, var, init) = (self.by_hand.reg(Class::Int), self.by_hand.real(), self.number(u)?);
                self.indices.push(index);
                let inside = self.reals.len();
                self.reals.push(var);
                let mut inner = self.block(u)?;
                // Sums are exact for any length.
                let by = self.number(u)?;
                let next = match u.ratio(1, 2)? {
                    true => self.by_hand.op(Op::Min, var, by),
                    false => by,
                };
                inner.push(self.by_hand.straight());
                self.indices.pop();
                self.reals.truncate(inside);
                self.reals.push(var);
                let count = Poly::constant(WINDOW);
                let mut carried = if u.ratio(1, 2)? { vec![Carried { var, init, next }] } else { vec![] };
                if u.ratio(1, 3)? {
                    // The sum of the outer loop continues in it.
                    let (var, init) = (self.by_hand.real(), self.sum);
                    let next = self.by_hand.op(Op::Add, var, by);
                    inner.push(self.by_hand.straight());
                    carried.push(Carried { var, init, next });
                    self.sum = var;
                }
                if !carried.iter().any(|c| c.var == var) {
                    // It is a separate number then.
                    self.reals.pop();
                    inner.insert(0, Stmt::Straight(vec![Instr::Const { dst: var, value: 3.0 }]));
                }
                body.push(Stmt::For { index, count, carried, order: Order::InOrder, body: inner });
            }
        }
        if self.indices.len() > 1 {
            self.reals.truncate(reals);
            self.varying.truncate(varying);
        }
        Ok(body)
    }
}

/// Returns a loop over the elements of `x`, possibly with carried sums.
fn kernel(u: &mut Unstructured<'_>) -> Result<Kernel> {
    let mut by_hand = ByHand::new("apart");
    let (n, x) = by_hand.size(Class::Real);
    let (size, long) = (Poly::var(n), Poly::var(n).scale(LONG));
    let at = by_hand.input(Class::Int, &size);
    let (y, s) = (by_hand.output(&long), by_hand.output(&Poly::constant(1)));
    let (index, var) = (by_hand.reg(Class::Int), by_hand.reg(Class::Real));
    let (zeros, zero, start) = (by_hand.reg(Class::Int), by_hand.reg(Class::Real), by_hand.reg(Class::Real));
    let first = by_hand.reg(Class::Real);
    let (indices, varying, reals) = (vec![index], vec![], vec![first]);
    let mut g = Generator { by_hand, n, x, at, y, indices, varying, reals, sum: var };
    let mut body = vec![Stmt::Straight(vec![Instr::Load { dst: first, buffer: x, at: Poly::var(index) }])];
    body.extend(g.block(u)?);
    let by = g.number(u)?;
    let next = g.by_hand.op(Op::Add, g.sum, by);
    body.push(g.by_hand.straight());
    let order = Order::InOrder;
    let clear = Stmt::Straight(vec![Instr::Store { buffer: y, at: Poly::var(zeros), value: zero }]);
    // Separately, or inside another loop: then no loop updates buffers that are private to lanes.
    let (again, whole) = (g.by_hand.reg(Class::Int), g.by_hand.reg(Class::Real));
    let is_alone = u.ratio(1, 3)?;
    let sum = Carried { var, init: if is_alone { start } else { whole }, next };
    let the = Stmt::For { index, count: size.clone(), carried: vec![sum], order, body };
    let (the, last) = match is_alone {
        true => (the, var),
        false => {
            let carried = vec![Carried { var: whole, init: start, next: var }];
            (Stmt::For { index: again, count: Poly::constant(2), carried, order, body: vec![the] }, whole)
        }
    };
    let body = vec![
        Stmt::Straight(vec![Instr::Const { dst: zero, value: 0.0 }, Instr::Const { dst: start, value: 1.0 }]),
        each(zeros, long, vec![clear]),
        the,
        Stmt::Straight(vec![Instr::Store { buffer: s, at: Poly::zero(), value: last }]),
    ];
    Ok(Kernel { failures: vec![("an integer has no value".to_owned(), None)], ..g.by_hand.with_body(body) })
}

fn inputs(n: i64, seed: i64) -> Vec<Array> {
    let x: Vec<f64> = (0..n).map(|i| ((i * 37 + seed * 11) % 17 - 8) as f64).collect();
    let at: Vec<i64> = (0..n).map(|i| (i * (seed % 7)) % n).collect();
    vec![reals(&x), ints(&at)]
}

/// Compares `cases` kernels with sequential execution; returns the numbers of vectorised ones, and of those with
/// places.
fn many(cases: u32, seed: u64) -> [usize; 2] {
    let (cut, apart) = (Cell::new(0), Cell::new(0));
    random(cases, seed, 500, |u| {
        let Ok(plain) = kernel(u) else { return Ok(()) };
        prop_assert_eq!(verify(&plain), Ok(()));
        let mut kernel = plain.clone();
        if vectorise(&mut kernel, Semantics::Algebraic) == 0 {
            return Ok(());
        }
        cut.set(cut.get() + 1);
        let places = kernel.workspace_reals.as_constant().is_some_and(|n| n > 8);
        apart.set(apart.get() + usize::from(places));
        prop_assert_eq!(verify(&kernel), Ok(()), "{}", kernel);
        let programs = [&plain, &kernel].map(|kernel| interpret::Program::new(kernel).unwrap());
        for n in [0, WINDOW, 7, 8, 20, 131, 300] {
            let point = inputs(n, n % 5 + 1);
            let in_order = reference(&plain, &programs[0], &point).unwrap();
            let found = reference(&kernel, &programs[1], &point).unwrap();
            prop_assert_eq!(&found, &in_order, "n = {}\n{}\nwas\n{}", n, kernel, plain);
            compare(&kernel, &[point])?;
        }
        Ok(())
    });
    println!("{} kernels cut, {} with places", cut.get(), apart.get());
    [cut.get(), apart.get()]
}

#[test]
fn what_iterations_add_to_each_others_elements_is_what_they_add_in_order() {
    let [cut, apart] = on_two_threads(600, 67, many);
    covers!(apart > 100, "{apart} kernels taken apart of {cut}");
}
