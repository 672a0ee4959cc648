//! Random sums of arrays that are, or nearly are, linear in a number of each iteration: `sum-of-linear` preserves their
//! value.

use arbitrary::{Result, Unstructured};
use chainrule_cases::covers;
use chainrule_ir::{Builder, Function, Size, Sizes, Type, Value, VarId, print};
use chainrule_ops::Op;
use chainrule_rewrite::{Options, check};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::Cell;

/// A term under construction.
struct Make<'u, 'd> {
    b: Builder,
    u: &'u mut Unstructured<'d>,
    /// Dimension of all arrays, and number of iterations.
    m: Size,
    /// [m]Double, [m][m]Double, [n]Double.
    w: VarId,
    q: VarId,
    x: VarId,
    /// Whether there are as many iterations as elements.
    as_many: bool,
    /// Index of the iteration, and those of the loops of the term.
    step: VarId,
    indices: Vec<VarId>,
    /// The number, once there is one, and its number of loops.
    number: Option<(VarId, usize)>,
}

impl Make<'_, '_> {
    fn one_in(&mut self, n: u8) -> Result<bool> {
        Ok(self.u.int_in_range(0..=n - 1)? == 0)
    }

    fn index(&mut self) -> Result<VarId> {
        Ok(*self.u.choose(&self.indices)?)
    }

    /// Returns an invariant; sometimes it depends on the iteration.
    fn free(&mut self) -> Result<VarId> {
        let i = self.index()?;
        Ok(match self.u.int_in_range(0..=6)? {
            0 | 1 => self.b.get_proved(self.w, i),
            2 | 3 => {
                let j = self.index()?;
                let row = self.b.get_proved(self.q, i);
                self.b.get_proved(row, j)
            }
            4 => {
                let (a, b) = (self.b.get_proved(self.w, i), self.b.real(0.5));
                self.b.op(Op::Sub, &[a, b])
            }
            5 => self.b.real(-2.0),
            _ if self.one_in(3)? => self.b.get_proved(self.x, self.step),
            _ => self.b.get_proved(self.w, i),
        })
    }

    /// Returns a number that depends on the iteration: an existing one, or a new one.
    fn number(&mut self) -> Result<VarId> {
        if let Some((number, depth)) = self.number
            && depth <= self.indices.len()
            && !self.one_in(6)?
        {
            return Ok(number);
        }
        let x = self.b.get_proved(self.x, self.step);
        let Some(i) = self.indices.first().copied().filter(|_| self.indices.len() > 1) else { return Ok(x) };
        let y = self.b.get_proved(self.w, i);
        let product = self.b.op(Op::Mul, &[x, y]);
        let number = self.b.op(Op::Sin, &[product]);
        Ok(number)
    }

    fn scalar(&mut self, fuel: u32) -> Result<VarId> {
        Ok(match self.u.int_in_range(0..=if fuel == 0 { 2 } else { 6 })? {
            0 | 1 => {
                let (c, x) = (self.number()?, self.free()?);
                self.b.op(Op::Mul, &if self.u.arbitrary()? { [c, x] } else { [x, c] })
            }
            2 => self.number()?,
            3 => {
                let x = self.scalar(fuel - 1)?;
                self.b.op(Op::Neg, &[x])
            }
            4 => {
                let (x, y) = (self.scalar(fuel - 1)?, self.scalar(fuel - 1)?);
                self.b.op(if self.u.arbitrary()? { Op::Add } else { Op::Sub }, &[x, y])
            }
            5 => {
                let (x, y) = (self.scalar(fuel - 1)?, self.free()?);
                self.b.op(Op::Mul, &[x, y])
            }
            _ => {
                let (array, i) = (self.array(fuel - 1)?, self.index()?);
                self.b.get_proved(array, i)
            }
        })
    }

    /// Writes a loop over `count`, which is at most `m`.
    fn inside(&mut self, count: Size, sum: bool, body: impl FnOnce(&mut Self) -> Result<VarId>) -> Result<VarId> {
        let index = self.b.fresh(Type::Int);
        self.b.push_block();
        self.indices.push(index);
        let result = body(self);
        self.indices.pop();
        if self.number.is_some_and(|(_, depth)| depth > self.indices.len()) {
            self.number = None;
        }
        let block = self.b.pop_block(*result.as_ref().unwrap_or(&self.w));
        result?;
        Ok(self.b.compute(if sum {
            chainrule_ir::Expr::Sum { count, index, body: block }
        } else {
            chainrule_ir::Expr::Build { size: count, index, body: block }
        }))
    }

    /// [m]Double.
    fn array(&mut self, fuel: u32) -> Result<VarId> {
        let m = self.m.clone();
        // Sometimes the number is one of this block.
        if self.number.is_none() && self.one_in(2)? {
            let depth = self.indices.len();
            self.number = Some((self.number()?, depth));
        }
        Ok(match self.u.int_in_range(0..=if fuel == 0 { 1 } else { 5 })? {
            0 => self.inside(m, false, |make| make.scalar(fuel.saturating_sub(1)))?,
            1 | 2 => {
                // A triangle, inside another loop.
                let count = match self.indices.last().copied() {
                    Some(i) if self.one_in(2)? => Size::var(i).add(&Size::constant(1)),
                    _ if self.as_many && self.one_in(6)? => Size::var(self.step),
                    _ => m.clone(),
                };
                self.inside(count, true, |make| {
                    let value = make.scalar(fuel.saturating_sub(1))?;
                    let i = make.index()?;
                    let at =
                        if make.one_in(4)? { make.b.size(m.sub(&Size::var(i)).sub(&Size::constant(1))) } else { i };
                    Ok(make.b.one_hot_proved(m, at, value))
                })?
            }
            3 => self.inside(m, true, |make| make.array(fuel - 1))?,
            4 => {
                let (x, y) = (self.array(fuel - 1)?, self.array(fuel - 1)?);
                self.b.plus(x, y)
            }
            _ => {
                let array = self.array(fuel - 1)?;
                self.inside(m, false, |make| {
                    let i = make.index()?;
                    let x = make.b.get_proved(array, i);
                    Ok(make.b.op(Op::Neg, &[x]))
                })?
            }
        })
    }
}

fn function(u: &mut Unstructured<'_>) -> Result<Function> {
    let mut b = Builder::new("f");
    let as_many = u.arbitrary()?;
    let m = b.size_param("m");
    let n = if as_many { m } else { b.size_param("n") };
    let (n, m) = (b.size_of(n), b.size_of(m));
    let vector = |len: &Size| Type::array(len.clone(), Type::Double);
    let (x, w) = (b.param("x", vector(&n)), b.param("w", vector(&m)));
    let q = b.param("q", Type::array(m.clone(), vector(&m)));
    let step = b.fresh(Type::Int);
    b.push_block();
    let in_tuple = u.arbitrary()?;
    let mut make = Make { b, u, m, w, q, x, as_many, step, indices: Vec::new(), number: None };
    let array = make.array(3)?;
    let mut b = make.b;
    let value = b.get_proved(x, step);
    let result = if in_tuple { b.tuple(&[value, array]) } else { array };
    let body = b.pop_block(result);
    let sum = b.compute(chainrule_ir::Expr::Sum { count: n, index: step, body });
    Ok(b.finish(sum))
}

fn arguments(u: &mut Unstructured<'_>, f: &Function) -> Result<Vec<Value<f64>>> {
    let mut sizes = Sizes::default();
    for size in &f.sizes {
        sizes.insert(*size, u.int_in_range(0..=4)?);
    }
    // No zero is -0.0 and none is infinite: other tests of these rules cover those.
    let mut number = || -> Result<f64> { Ok(f64::from(u.int_in_range(-16..=16)?) / 8.0) };
    fn value(ty: &Type, sizes: &Sizes, number: &mut dyn FnMut() -> Result<f64>) -> Result<Value<f64>> {
        Ok(match ty {
            Type::Array(size, element) => {
                let len = sizes.eval(size).unwrap_or(0);
                Value::Array((0..len).map(|_| value(element, sizes, number)).collect::<Result<_>>()?)
            }
            _ => Value::Real(number()?),
        })
    }
    f.params.iter().map(|param| value(f.ty(*param), &sizes, &mut number)).collect()
}

#[test]
fn random_sums_of_nearly_linear_terms_keep_their_value() {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(4000),
        rng_seed: RngSeed::Fixed(71),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (told, applied) = (Cell::new(0), Cell::new(0));
    let bytes = proptest::collection::vec(any::<u8>(), 100..600);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let mut u = Unstructured::new(&bytes);
        let Ok(f) = function(&mut u) else { return Ok(()) };
        let Ok(args) = arguments(&mut u, &f) else { return Ok(()) };
        let (_, report, compared) = check::optimised(&f, &args, &Options::default())
            .map_err(|what| TestCaseError::fail(format!("{what}\n{}\n{args:?}", print(&f))))?;
        told.set(told.get() + u32::from(compared));
        applied.set(applied.get() + u32::from(compared && report.times("sum-of-linear") > 0));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{}", failure.to_string().split("minimal failing").next().unwrap_or_default());
    }
    covers!(told.get() > 1000 && applied.get() > 300, "{} compared, {} with the rule", told.get(), applied.get());
}
