//! Loop nests that update several arrays with different indices: distributed, they have the results of sequential
//! execution. Numbers are small integers, so that the order of additions changes no bit.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::{Result, Unstructured};
use chainrule_backend_tests::by_hand::{ByHand, each, small_integers};
use chainrule_backend_tests::generate::{on_two_threads, random};
use chainrule_backend_tests::native::{compare, reference};
use chainrule_base::Poly;
use chainrule_cases::covers;
use chainrule_interpret as interpret;
use chainrule_kernel::{BufferId, Carried, Choice, Class, Instr, Kernel, Order, Reg, Stmt, vectorise, verify};
use chainrule_ops::{Op, Semantics};
use proptest::prelude::*;
use std::cell::Cell;

/// Index of an array element, in terms of the indices of the three loops.
#[derive(Clone, Copy)]
enum Shape {
    /// A matrix: one index for the row, one for the column.
    Matrix([usize; 2]),
    /// One index.
    Vector(usize),
    /// The sum of two indices: several iterations of both share an element.
    Diagonal([usize; 2]),
    /// The difference of two indices, from the first possible one.
    Back([usize; 2]),
    /// Rows by the third index, columns by the sum of the other two.
    Rows([usize; 3]),
    /// Rows by the first index, columns by the sum of the other two.
    Columns([usize; 3]),
}

const SHAPES: [Shape; 17] = [
    Shape::Matrix([0, 1]),
    Shape::Matrix([0, 2]),
    Shape::Matrix([1, 0]),
    Shape::Matrix([1, 2]),
    Shape::Matrix([2, 0]),
    Shape::Matrix([2, 1]),
    Shape::Matrix([2, 1]),
    Shape::Vector(1),
    Shape::Vector(2),
    Shape::Diagonal([0, 2]),
    Shape::Diagonal([1, 2]),
    Shape::Back([0, 2]),
    Shape::Back([1, 2]),
    Shape::Rows([0, 2, 1]),
    Shape::Rows([1, 2, 0]),
    Shape::Columns([0, 1, 2]),
    Shape::Columns([1, 0, 2]),
];

struct Generator {
    by_hand: ByHand,
    sizes: [Reg; 3],
    /// Open loops by number, with their indices.
    open: Vec<(usize, Reg)>,
    read: Vec<(BufferId, Shape)>,
    added: Vec<(BufferId, Shape)>,
    /// Numbers of all open loops.
    reals: Vec<Reg>,
}

impl Generator {
    fn size(&self, of: usize) -> Poly<Reg> {
        Poly::var(self.sizes[of])
    }

    fn len(&self, shape: Shape) -> Poly<Reg> {
        match shape {
            Shape::Matrix([a, b]) => self.size(a).mul(&self.size(b)),
            Shape::Vector(a) => self.size(a),
            Shape::Diagonal([a, b]) | Shape::Back([a, b]) => self.size(a).add(&self.size(b)),
            Shape::Rows([a, b, c]) => self.size(a).add(&self.size(b)).mul(&self.size(c)),
            Shape::Columns([a, b, c]) => self.size(a).mul(&self.size(b).add(&self.size(c))),
        }
    }

    /// Returns the index of the element, if all its loops are open.
    fn at(&self, shape: Shape) -> Option<Poly<Reg>> {
        let index = |of: usize| Some(Poly::var(self.open.iter().rev().find(|(other, _)| *other == of)?.1));
        Some(match shape {
            Shape::Matrix([a, b]) => index(a)?.mul(&self.size(b)).add(&index(b)?),
            Shape::Vector(a) => index(a)?,
            Shape::Diagonal([a, b]) => index(a)?.add(&index(b)?),
            Shape::Back([a, b]) => index(a)?.add(&self.size(b)).sub(&index(b)?).sub(&Poly::constant(1)),
            Shape::Rows([a, b, c]) => index(a)?.add(&index(b)?).mul(&self.size(c)).add(&index(c)?),
            Shape::Columns([a, b, c]) => {
                index(a)?.mul(&self.size(b).add(&self.size(c))).add(&index(b)?).add(&index(c)?)
            }
        })
    }

    /// Returns `at`, sometimes in a register.
    fn element(&mut self, u: &mut Unstructured<'_>, at: Poly<Reg>) -> Result<Poly<Reg>> {
        if u.ratio(7, 8)? {
            return Ok(at);
        }
        Ok(self.by_hand.in_register(at))
    }

    /// Returns a small number: loaded, an earlier one, or an index.
    fn small(&mut self, u: &mut Unstructured<'_>) -> Result<Reg> {
        let fitting: Vec<_> = self.read.iter().filter_map(|(b, shape)| Some((*b, self.at(*shape)?))).collect();
        match u.int_in_range(0..=7)? {
            0 if !self.reals.is_empty() => u.choose(&self.reals).copied(),
            1 => {
                let (dst, (_, src)) = (self.by_hand.real(), *u.choose(&self.open)?);
                self.by_hand.code.push(Instr::ToReal { dst, src });
                Ok(dst)
            }
            _ if !fitting.is_empty() => {
                let (buffer, at) = u.choose(&fitting)?.clone();
                let (at, dst) = (self.element(u, at)?, self.by_hand.real());
                self.by_hand.code.push(Instr::Load { dst, buffer, at });
                Ok(dst)
            }
            _ => {
                let dst = self.by_hand.real();
                self.by_hand.code.push(Instr::Const { dst, value: 3.0 });
                Ok(dst)
            }
        }
    }

    /// Adds a number, or a multiple of one, to an element of an array whose loops are open.
    fn addition(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let fitting: Vec<_> = self.added.iter().filter_map(|(b, shape)| Some((*b, self.at(*shape)?))).collect();
        if fitting.is_empty() {
            return Ok(());
        }
        let (buffer, at) = u.choose(&fitting)?.clone();
        let (at, so_far) = (self.element(u, at)?, self.by_hand.real());
        let mut by = if self.reals.is_empty() { self.small(u)? } else { *u.choose(&self.reals)? };
        if u.ratio(3, 4)? {
            let other = self.small(u)?;
            by = self.by_hand.op(Op::Mul, by, other);
        }
        self.by_hand.code.push(Instr::Load { dst: so_far, buffer, at: at.clone() });
        let mut value = self.by_hand.op(*u.choose(&[Op::Add, Op::Sub])?, so_far, by);
        if u.ratio(1, 8)? {
            let other = self.small(u)?;
            value = self.by_hand.op(Op::Add, other, value);
        }
        self.by_hand.code.push(Instr::Store { buffer, at, value });
        Ok(())
    }

    /// Returns a loop that adds, and may carry a sum.
    fn additions(&mut self, u: &mut Unstructured<'_>, of: usize) -> Result<Vec<Stmt>> {
        let (index, init, var) = (self.by_hand.reg(Class::Int), self.by_hand.real(), self.by_hand.real());
        let before = Stmt::Straight(vec![Instr::Const { dst: init, value: 0.0 }]);
        self.open.push((of, index));
        for _ in 0..u.int_in_range(1..=3)? {
            self.addition(u)?;
        }
        let mut carried = vec![];
        if u.ratio(1, 4)? {
            let by = self.small(u)?;
            carried.push(Carried { var, init, next: self.by_hand.op(Op::Add, var, by) });
        }
        self.open.pop();
        let body = vec![self.by_hand.straight()];
        self.reals.extend(carried.iter().map(|c| c.var));
        Ok(vec![before, Stmt::For { index, count: self.size(of), carried, order: Order::InOrder, body }])
    }

    /// Returns a number of an iteration of the inner loop: loaded, a sum, or the result of a branch.
    fn number(&mut self, u: &mut Unstructured<'_>, body: &mut Vec<Stmt>) -> Result<()> {
        let (a, b) = (self.small(u)?, self.small(u)?);
        let mut value = self.by_hand.op(*u.choose(&[Op::Mul, Op::Sub, Op::Max])?, a, b);
        match u.int_in_range(0..=3)? {
            0 => {
                let (index, var) = (self.by_hand.reg(Class::Int), self.by_hand.real());
                let init = value;
                body.push(self.by_hand.straight());
                self.open.push((2, index));
                let by = self.small(u)?;
                let next = self.by_hand.op(Op::Add, var, by);
                self.open.pop();
                let (inside, carried) = (vec![self.by_hand.straight()], vec![Carried { var, init, next }]);
                body.push(Stmt::For { index, count: self.size(2), carried, order: Order::InOrder, body: inside });
                value = var;
            }
            1 => {
                let (condition, var, double) = (self.by_hand.reg(Class::Int), self.by_hand.real(), self.by_hand.real());
                self.by_hand.code.push(Instr::Op { dst: condition, op: Op::Lt, args: [a, b, a] });
                body.push(self.by_hand.straight());
                let then = vec![Stmt::Straight(vec![Instr::Op { dst: double, op: Op::Add, args: [value; 3] }])];
                let choices = vec![Choice { var, then: double, otherwise: value }];
                body.push(Stmt::If { condition, then, otherwise: vec![], choices });
                value = var;
            }
            _ => {}
        }
        self.reals.push(value);
        Ok(())
    }

    /// Returns the loop inside the outermost one.
    fn middle(&mut self, u: &mut Unstructured<'_>) -> Result<Vec<Stmt>> {
        let (index, init, var) = (self.by_hand.reg(Class::Int), self.by_hand.real(), self.by_hand.real());
        let before = Stmt::Straight(vec![Instr::Const { dst: init, value: 1.0 }]);
        let outside = self.reals.len();
        self.open.push((1, index));
        let mut body = Vec::new();
        for _ in 0..u.int_in_range(1..=2)? {
            self.number(u, &mut body)?;
        }
        body.push(self.by_hand.straight());
        for _ in 0..u.int_in_range(1..=2)? {
            body.extend(self.additions(u, 2)?);
        }
        if u.ratio(1, 6)? {
            self.addition(u)?;
        }
        let mut carried = vec![];
        if u.ratio(1, 3)? {
            let by = *self.reals.last().unwrap();
            carried.push(Carried { var, init, next: self.by_hand.op(Op::Add, var, by) });
        }
        body.push(self.by_hand.straight());
        self.open.pop();
        self.reals.truncate(outside);
        self.reals.extend(carried.iter().map(|c| c.var));
        // Sometimes a partial range, and not the size of any array.
        let count = if u.ratio(1, 4)? { self.size(1).sub(&Poly::constant(3)) } else { self.size(1) };
        Ok(vec![before, Stmt::For { index, count, carried, order: Order::InOrder, body }])
    }

    /// Returns a private row that each iteration of the outermost loop writes.
    fn row(&mut self, u: &mut Unstructured<'_>) -> Result<Stmt> {
        let (of, index) = (*u.choose(&[1, 2])?, self.by_hand.reg(Class::Int));
        let row = self.by_hand.memory(&self.size(of));
        self.open.push((of, index));
        let value = self.small(u)?;
        self.by_hand.code.push(Instr::Store { buffer: row, at: Poly::var(index), value });
        self.open.pop();
        self.read.push((row, Shape::Vector(of)));
        let body = vec![self.by_hand.straight()];
        Ok(each(index, self.size(of), body))
    }
}

/// Returns nested loops that add.
fn kernel(u: &mut Unstructured<'_>) -> Result<Kernel> {
    let mut by_hand = ByHand::new("distribute");
    let sizes = [0; 3].map(|_| by_hand.size(Class::Real).0);
    let (reals, read, added) = (vec![], vec![], vec![]);
    let mut g = Generator { by_hand, sizes, open: vec![], read, added, reals };
    for _ in 0..u.int_in_range(2..=4)? {
        let shape = *u.choose(&SHAPES)?;
        let buffer = g.by_hand.input(Class::Real, &g.len(shape));
        g.read.push((buffer, shape));
    }
    let mut all = Vec::new();
    for _ in 0..u.int_in_range(2..=3)? {
        let shape = *u.choose(&SHAPES)?;
        let buffer = g.by_hand.output(&g.len(shape));
        g.added.push((buffer, shape));
        let (index, zero) = (g.by_hand.reg(Class::Int), g.by_hand.real());
        let clear =
            vec![Instr::Const { dst: zero, value: 0.0 }, Instr::Store { buffer, at: Poly::var(index), value: zero }];
        all.push(each(index, g.len(shape), vec![Stmt::Straight(clear)]));
    }
    let sum = g.by_hand.output(&Poly::constant(1));
    let (index, init, var) = (g.by_hand.reg(Class::Int), g.by_hand.real(), g.by_hand.real());
    all.push(Stmt::Straight(vec![Instr::Const { dst: init, value: 2.0 }]));
    g.open.push((0, index));
    // A carried integer, which is also a number.
    let counts = u.ratio(1, 4)?;
    let (first, counter, next_counter) =
        (g.by_hand.reg(Class::Int), g.by_hand.reg(Class::Int), g.by_hand.reg(Class::Int));
    all.push(Stmt::Straight(vec![Instr::Int { dst: first, value: Poly::constant(3) }]));
    let mut body = Vec::new();
    if counts {
        let real = g.by_hand.real();
        let value = Poly::constant(5).sub(&Poly::var(counter));
        g.by_hand.code.extend([Instr::ToReal { dst: real, src: counter }, Instr::Int { dst: next_counter, value }]);
        g.reals.push(real);
        body.push(g.by_hand.straight());
    }
    if u.ratio(1, 3)? {
        body.push(g.row(u)?);
    }
    body.extend(g.middle(u)?);
    if u.ratio(1, 3)? {
        body.extend(g.additions(u, 1)?);
    }
    let by = g.small(u)?;
    let next = g.by_hand.op(Op::Add, var, by);
    body.push(g.by_hand.straight());
    let the = |count, carried| Stmt::For { index, count, carried, order: Order::InOrder, body };
    let carried = |init| {
        let counter = Carried { var: counter, init: first, next: next_counter };
        [Carried { var, init, next }].into_iter().chain(counts.then_some(counter)).collect()
    };
    // Separately, or inside another loop.
    let last = if u.ratio(1, 2)? {
        all.push(the(g.size(0), carried(init)));
        var
    } else {
        let (again, whole) = (g.by_hand.reg(Class::Int), g.by_hand.real());
        let inside = vec![the(g.size(0), carried(whole))];
        let carried = vec![Carried { var: whole, init, next: var }];
        all.push(Stmt::For { index: again, count: Poly::constant(2), carried, order: Order::InOrder, body: inside });
        whole
    };
    all.push(Stmt::Straight(vec![Instr::Store { buffer: sum, at: Poly::zero(), value: last }]));
    Ok(g.by_hand.with_body(all))
}

/// Compares `cases` nests with sequential execution; returns the numbers of vectorised and distributed ones.
fn many(cases: u32, seed: u64) -> [usize; 2] {
    let (cut, distributed) = (Cell::new(0), Cell::new(0));
    random(cases, seed, 500, |u| {
        let Ok(plain) = kernel(u) else { return Ok(()) };
        prop_assert_eq!(verify(&plain), Ok(()), "{}", plain);
        let mut kernel = plain.clone();
        if vectorise(&mut kernel, Semantics::Algebraic) == 0 {
            return Ok(());
        }
        cut.set(cut.get() + 1);
        // Strip length.
        let is_distributed = ["= int 32\n", "= int 256\n"].iter().any(|stretch| kernel.to_string().contains(stretch));
        distributed.set(distributed.get() + usize::from(is_distributed));
        prop_assert_eq!(verify(&kernel), Ok(()), "{}", kernel);
        let programs = [&plain, &kernel].map(|kernel| interpret::Program::new(kernel).unwrap());
        for sizes in [[0, 5, 9], [5, 0, 3], [9, 37, 0], [1, 1, 1], [32, 8, 2], [33, 11, 6], [70, 13, 9], [7, 41, 35]] {
            let point = small_integers(&plain, &sizes);
            let in_order = reference(&plain, &programs[0], &point).unwrap();
            let found = reference(&kernel, &programs[1], &point).unwrap();
            prop_assert_eq!(&found, &in_order, "{:?}\n{}\nwas\n{}", sizes, kernel, plain);
            if is_distributed {
                compare(&kernel, &[point])?;
            }
        }
        Ok(())
    });
    let all = [cut.get(), distributed.get()];
    println!("{} kernels cut, {} distributed", all[0], all[1]);
    all
}

#[test]
fn distributed_nests_have_the_results_of_sequential_ones() {
    let [_, distributed] = on_two_threads(200, 81, many);
    covers!(distributed > 60, "{distributed} distributed");
}

#[test]
#[ignore = "minutes"]
fn thousands_of_nests() {
    many(5_000, 82);
}
