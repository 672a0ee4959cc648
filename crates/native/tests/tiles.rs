//! Loop nests around sums, with one vectorised loop and another tiled one, with or without packed panels: they have the
//! results of sequential execution. If sums may be reordered, numbers are small integers, so that it changes no bit;
//! otherwise there are functions, too.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::{Result, Unstructured};
use chainrule_backend_tests::by_hand::{ByHand, each, small_integers};
use chainrule_backend_tests::generate::{on_two_threads, random};
use chainrule_backend_tests::native::{compare, reference};
use chainrule_base::Poly;
use chainrule_cases::covers;
use chainrule_interpret as interpret;
use chainrule_kernel::{BufferId, Carried, Class, Instr, Kernel, Order, Reg, Stmt, vectorise, verify};
use chainrule_ops::{Op, Semantics};
use proptest::prelude::*;
use std::cell::Cell;

/// Two of the three loops: the one whose index is the row of an array, and the one for the column.
const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]];

struct Generator {
    by_hand: ByHand,
    sizes: [Reg; 3],
    /// Indices of the loops around a sum, outermost first, and of the sum.
    indices: [Reg; 3],
    /// Arrays, with the loops that index their elements.
    arrays: Vec<(BufferId, [usize; 2])>,
    y: (BufferId, [usize; 2]),
    /// Array that iterations add to.
    z: (BufferId, [usize; 2]),
    /// Array with one more element than iterations of the outer loop, which all iterations of the inner loop add to.
    t: BufferId,
    /// Whether numbers may be other than integers.
    has_functions: bool,
}

impl Generator {
    fn element(&mut self, u: &mut Unstructured<'_>, [row, along]: [usize; 2]) -> Result<Poly<Reg>> {
        let index = |of: usize| Poly::var(self.indices[of]);
        let at = index(row).mul(&Poly::var(self.sizes[along])).add(&index(along));
        if u.ratio(7, 8)? {
            return Ok(at);
        }
        Ok(self.by_hand.in_register(at))
    }

    /// Loads an element of an array, which depends on the sum's index or not.
    fn load(&mut self, u: &mut Unstructured<'_>, in_sum: bool) -> Result<Reg> {
        let fitting: Vec<_> = self.arrays.iter().filter(|(_, pair)| in_sum || !pair.contains(&2)).copied().collect();
        let Some((buffer, pair)) = (!fitting.is_empty()).then(|| u.choose(&fitting)).transpose()?.copied() else {
            let dst = self.by_hand.real();
            self.by_hand.code.push(Instr::Const { dst, value: 3.0 });
            return Ok(dst);
        };
        let (at, dst) = (self.element(u, pair)?, self.by_hand.real());
        self.by_hand.code.push(Instr::Load { dst, buffer, at });
        Ok(dst)
    }

    /// Returns the inner loop, and its carried values.
    fn sum(&mut self, u: &mut Unstructured<'_>) -> Result<(Vec<Stmt>, Vec<Reg>)> {
        let mut carried = Vec::new();
        for _ in 0..u.int_in_range(1..=2)? {
            let init = self.by_hand.real();
            self.by_hand.code.push(Instr::Const { dst: init, value: if u.ratio(3, 4)? { 0.0 } else { 2.0 } });
            carried.push(Carried { var: self.by_hand.real(), init, next: init });
        }
        let before = self.by_hand.straight();
        for c in &mut carried {
            let (a, b) = (self.load(u, true)?, self.load(u, true)?);
            let mut value = self.by_hand.op(*u.choose(&[Op::Mul, Op::Mul, Op::Sub, Op::Max])?, a, b);
            if u.ratio(1, 4)? {
                let c = self.load(u, true)?;
                value = self.by_hand.op(Op::Add, value, c);
            }
            // Of zeros of different signs, the minimum is the first one.
            let last = if self.has_functions { Op::Min } else { Op::Add };
            let op = *u.choose(&[Op::Add, Op::Add, Op::Add, Op::Sub, last])?;
            c.next = self.by_hand.op(op, c.var, value);
        }
        let results = carried.iter().map(|c| c.var).collect();
        let (index, count) = (self.indices[2], Poly::var(self.sizes[2]));
        let body = vec![self.by_hand.straight()];
        Ok((vec![before, Stmt::For { index, count, carried, order: Order::InOrder, body }], results))
    }

    /// Returns a loop that adds multiples of `value` to elements.
    fn additions(&mut self, u: &mut Unstructured<'_>, value: Reg) -> Result<Stmt> {
        let index = self.by_hand.reg(Class::Int);
        let outside = std::mem::replace(&mut self.indices[2], index);
        let (buffer, pair) = self.z;
        let (by, at, so_far) = (self.load(u, true)?, self.element(u, pair)?, self.by_hand.real());
        let product = self.by_hand.op(Op::Mul, value, by);
        self.by_hand.code.push(Instr::Load { dst: so_far, buffer, at: at.clone() });
        let value = self.by_hand.op(*u.choose(&[Op::Add, Op::Sub])?, so_far, product);
        self.by_hand.code.push(Instr::Store { buffer, at, value });
        self.indices[2] = outside;
        let body = vec![self.by_hand.straight()];
        Ok(each(index, Poly::var(self.sizes[2]), body))
    }

    /// Adds `value` to elements that do not depend on the loop around the sum: each iteration updates elements written
    /// by previous ones.
    fn meetings(&mut self, u: &mut Unstructured<'_>, value: Reg) -> Result<()> {
        for _ in 0..u.int_in_range(1..=2)? {
            let row = Poly::var(self.indices[0]);
            let at = match u.int_in_range(0..=3)? {
                0 => Poly::zero(),
                1 => row.add(&Poly::constant(1)),
                2 => self.by_hand.in_register(row),
                _ => row,
            };
            let (by, so_far) = (self.load(u, false)?, self.by_hand.real());
            let product = self.by_hand.op(Op::Mul, value, by);
            self.by_hand.code.push(Instr::Load { dst: so_far, buffer: self.t, at: at.clone() });
            let value = self.by_hand.op(*u.choose(&[Op::Add, Op::Sub])?, so_far, product);
            self.by_hand.code.push(Instr::Store { buffer: self.t, at, value });
        }
        Ok(())
    }

    /// Returns the loop around the sum, which may add to arrays, and its carried value.
    fn middle(&mut self, u: &mut Unstructured<'_>, adds: bool) -> Result<(Vec<Stmt>, Option<Reg>)> {
        let carries = u.ratio(1, 3)?;
        let (init, var) = (self.by_hand.real(), self.by_hand.real());
        let before = Stmt::Straight(vec![Instr::Const { dst: init, value: 1.0 }]);
        let (mut body, sums) = self.sum(u)?;
        let mut value = sums[0];
        for sum in &sums[1..] {
            value = self.by_hand.op(Op::Sub, value, *sum);
        }
        if u.ratio(1, 2)? {
            let c = self.load(u, false)?;
            value = self.by_hand.op(*u.choose(&[Op::Add, Op::Max])?, value, c);
        }
        if self.has_functions {
            for _ in 0..u.int_in_range(0..=3)? {
                let op = *u.choose(&[Op::Tanh, Op::Atan, Op::Sin, Op::Cos])?;
                let of = self.by_hand.op(op, value, value);
                value = self.by_hand.op(Op::Add, value, of);
            }
        }
        if !carries || u.ratio(1, 2)? {
            let (buffer, pair) = self.y;
            let at = self.element(u, pair)?;
            if u.ratio(1, 3)? {
                let so_far = self.by_hand.real();
                self.by_hand.code.push(Instr::Load { dst: so_far, buffer, at: at.clone() });
                value = self.by_hand.op(Op::Add, so_far, value);
            }
            self.by_hand.code.push(Instr::Store { buffer, at, value });
        }
        if u.ratio(1, 4)? {
            self.meetings(u, value)?;
        }
        if adds {
            body.push(self.by_hand.straight());
            body.push(self.additions(u, value)?);
        }
        let mut carried = vec![];
        if carries {
            let next = self.by_hand.op(Op::Add, var, value);
            carried.push(Carried { var, init, next });
        }
        body.push(self.by_hand.straight());
        let (index, count) = (self.indices[1], Poly::var(self.sizes[1]));
        let the = Stmt::For { index, count, carried, order: Order::InOrder, body };
        Ok((vec![before, the], carries.then_some(var)))
    }

    /// Returns the loop around both.
    fn outer(&mut self, u: &mut Unstructured<'_>, s: BufferId) -> Result<Vec<Stmt>> {
        let (init, var) = (self.by_hand.real(), self.by_hand.real());
        let before = Stmt::Straight(vec![Instr::Const { dst: init, value: 1.0 }]);
        let adds = u.ratio(1, 3)?;
        let (mut body, result) = self.middle(u, adds)?;
        let (mut carried, mut after) = (vec![], vec![]);
        if let Some(result) = result {
            let next = self.by_hand.op(Op::Add, var, result);
            carried.push(Carried { var, init, next });
            body.push(self.by_hand.straight());
            after.push(Instr::Store { buffer: s, at: Poly::zero(), value: var });
        } else {
            after.push(Instr::Store { buffer: s, at: Poly::zero(), value: init });
        }
        if adds && self.z.1 == [0, 2] {
            // Each iteration has a private row, which it fills first.
            let (row, len) = (Poly::var(self.indices[0]), Poly::var(self.sizes[2]));
            let filled = fill(&mut self.by_hand, self.z.0, &row.mul(&len), &len);
            body.insert(0, filled);
        }
        let (index, count) = (self.indices[0], Poly::var(self.sizes[0]));
        Ok(vec![before, Stmt::For { index, count, carried, order: Order::InOrder, body }, Stmt::Straight(after)])
    }
}

/// Returns a loop that fills `len` elements from `first` on.
fn fill(by_hand: &mut ByHand, buffer: BufferId, first: &Poly<Reg>, len: &Poly<Reg>) -> Stmt {
    let (index, zero) = (by_hand.reg(Class::Int), by_hand.reg(Class::Real));
    let store = Instr::Store { buffer, at: first.add(&Poly::var(index)), value: zero };
    each(index, len.clone(), vec![Stmt::Straight(vec![Instr::Const { dst: zero, value: 0.0 }, store])])
}

/// Returns a nest over arrays of two dimensions.
fn kernel(u: &mut Unstructured<'_>, has_functions: bool) -> Result<Kernel> {
    let mut by_hand = ByHand::new("tiles");
    let sizes = [0; 3].map(|_| by_hand.size(Class::Real).0);
    let indices = [0; 3].map(|_| by_hand.reg(Class::Int));
    let len = |[a, b]: [usize; 2]| Poly::var(sizes[a]).mul(&Poly::var(sizes[b]));
    let mut arrays = Vec::new();
    for _ in 0..u.int_in_range(2..=3)? {
        let pair = *u.choose(&PAIRS)?;
        arrays.push((by_hand.input(Class::Real, &len(pair)), pair));
    }
    let of_y = if u.ratio(1, 2)? { [0, 1] } else { [1, 0] };
    let (y, s) = (by_hand.output(&len(of_y)), by_hand.output(&Poly::constant(1)));
    let of_z = if u.ratio(1, 2)? { [0, 2] } else { *u.choose(&PAIRS)? };
    let z = by_hand.output(&len(of_z));
    let of_t = Poly::var(sizes[0]).add(&Poly::constant(1));
    let t = by_hand.output(&of_t);
    let filled = [(y, len(of_y)), (z, len(of_z)), (t, of_t)];
    let mut body: Vec<Stmt> =
        filled.into_iter().map(|(buffer, len)| fill(&mut by_hand, buffer, &Poly::zero(), &len)).collect();
    let mut g = Generator { by_hand, sizes, indices, arrays, y: (y, of_y), z: (z, of_z), t, has_functions };
    body.extend(g.outer(u, s)?);
    Ok(g.by_hand.with_body(body))
}

/// Checks that `kernel` has the results of `plain` at `sizes`.
fn check(plain: &Kernel, kernel: &Kernel, sizes: [usize; 3]) -> std::result::Result<(), TestCaseError> {
    let point = small_integers(plain, &sizes);
    let programs = [plain, kernel].map(|kernel| interpret::Program::new(kernel).unwrap());
    let in_order = reference(plain, &programs[0], &point).unwrap();
    let found = reference(kernel, &programs[1], &point).unwrap();
    prop_assert_eq!(&found, &in_order, "{:?}\n{}\nwas\n{}", sizes, kernel, plain);
    compare(kernel, &[point]).map(|_| ())
}

/// Compares `cases` nests with sequential execution; returns the numbers of vectorised and tiled ones, and of those
/// with panels, with packed rows, and tiled in spite of common elements.
fn many(cases: u32, seed: u64) -> [usize; 5] {
    let (cut, tiled, with_panels, kept) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let meeting = Cell::new(0);
    random(cases, seed, 400, |u| {
        let semantics = if u.ratio(2, 3)? { Semantics::Algebraic } else { Semantics::Strict };
        let Ok(plain) = kernel(u, semantics == Semantics::Strict) else { return Ok(()) };
        prop_assert_eq!(verify(&plain), Ok(()), "{}", plain);
        let mut kernel = plain.clone();
        if vectorise(&mut kernel, semantics) == 0 {
            return Ok(());
        }
        cut.set(cut.get() + 1);
        let text = kernel.to_string();
        // Quotients of iterations by the tile size.
        let is_tiled = text.contains("int 4\n");
        tiled.set(tiled.get() + usize::from(is_tiled));
        let t = format!("load {}[", plain.outputs[3].buffer);
        meeting.set(meeting.get() + usize::from(is_tiled && text.contains(&t)));
        let z = format!("load {}[", plain.outputs[2].buffer);
        kept.set(kept.get() + usize::from(plain.to_string().contains(&z) && !text.contains(&z)));
        let has_panels = text.contains("copy 32 ") || text.contains("copy 16 ") || text.contains("copy 8 ");
        prop_assert_eq!(verify(&kernel), Ok(()), "{}", kernel);
        for sizes in [[0, 5, 9], [5, 0, 3], [9, 37, 0], [1, 1, 1], [4, 8, 2], [7, 41, 5], [38, 11, 6], [10, 70, 9]] {
            check(&plain, &kernel, sizes)?;
        }
        if has_panels {
            with_panels.set(with_panels.get() + 1);
            if with_panels.get() % 4 == 1 {
                check(&plain, &kernel, [35, 190, 181])?;
                check(&plain, &kernel, [190, 35, 181])?;
            }
        }
        Ok(())
    });
    let all = [cut.get(), tiled.get(), with_panels.get(), kept.get(), meeting.get()];
    println!(
        "{} kernels cut, {} tiled, {} with panels, {} with rows kept, {} where iterations meet",
        all[0], all[1], all[2], all[3], all[4]
    );
    all
}

#[test]
fn nests_that_are_tiled_compute_what_they_compute_in_order() {
    let [_, tiled, with_panels, kept, meeting] = on_two_threads(800, 71, many);
    covers!(tiled > 100 && with_panels > 5 && kept > 10, "{tiled} tiled, {with_panels} with panels, {kept} keep rows");
    covers!(meeting > 10, "{meeting} are tiled and add to one element");
}

#[test]
#[ignore = "minutes"]
fn tens_of_thousands_of_nests() {
    many(20_000, 72);
}
