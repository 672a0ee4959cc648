//! Operation counts of a kernel, by reading it.
//!
//! Operations on doubles and calls of external functions count, a fused multiply-add as two. Integers, addresses, loads
//! and stores do not count. A call of an external function weighs as much as a sine, as in a scalar graph.

use crate::events::{Event, events};
use crate::kernel::{Instr, Kernel, Reg};
use chainrule_base::{Arena, Poly};
use chainrule_ops::{Counts, Op};

/// Returns the operations of `kernel` for these values of the sizes (in the order of [`Kernel::sizes`]).
///
/// Exact for a kernel without branches and loops that depend on data. Otherwise the heavier side of a branch counts,
/// and a `while` or a loop whose trip count depends on data counts as one iteration. Linear in the kernel, except for
/// loops whose index determines the trip count of an inner loop: their iterations are counted one by one.
///
/// # Panics
/// Panics if there are fewer values than sizes.
#[must_use]
pub fn counts(kernel: &Kernel, sizes: &[i64]) -> Counts {
    let events = events(&kernel.body);
    let walked = walked_loops(kernel, &events);
    // Values of registers that do not depend on data.
    let mut known: Arena<Reg, Option<i64>> = Arena::filled(kernel.regs.len(), None);
    for (idx, size) in kernel.sizes.iter().enumerate() {
        known[size.reg] = Some(sizes[idx]);
    }
    let mut open: Vec<Open> = vec![Open::new(Kind::Times(1))];
    let mut at = 0;
    while let Some(event) = events.get(at) {
        at += 1;
        let top = open.len() - 1;
        match event {
            Event::Instr(Instr::Op { op, .. }) => open[top].counts.record(*op),
            Event::Instr(Instr::MulAdd { .. }) => {
                open[top].counts.record(Op::Mul);
                open[top].counts.record(Op::Add);
            }
            Event::Instr(Instr::External { .. }) => open[top].counts.record(Op::Sin),
            Event::Instr(Instr::Int { dst, value }) => known[*dst] = eval(value, &known),
            Event::Instr(Instr::IntOp { dst, op, args, .. }) => {
                let args: Option<Vec<i64>> = args[..op.arity()].iter().map(|r| known[*r]).collect();
                known[*dst] = args.and_then(|args| op.row().int?(&args));
            }
            Event::For { index, count, .. } => open.push(Open::new(match eval(count, &known) {
                Some(n) if n > 0 && walked[*index] => {
                    known[*index] = Some(0);
                    Kind::Walk { index: *index, left: n - 1, start: at }
                }
                n => Kind::Times(n.unwrap_or(1)),
            })),
            Event::While { .. } => open.push(Open::new(Kind::Times(1))),
            Event::If { .. } => open.push(Open::new(Kind::Branch)),
            Event::Else { .. } => open.push(Open::new(Kind::Branch)),
            Event::EndFor { .. } | Event::EndWhile { .. } => {
                if let Kind::Walk { index, left, start } = &mut open[top].kind {
                    if *left > 0 {
                        *left -= 1;
                        known[*index] = known[*index].map(|i| i + 1);
                        at = *start;
                        continue;
                    }
                    known[*index] = None;
                }
                if let (Some(done), Some(around)) = (open.pop(), open.last_mut()) {
                    let n = if let Kind::Times(n) = done.kind { n } else { 1 };
                    around.counts += times(done.counts, n);
                }
            }
            Event::EndIf { .. } => {
                if let (Some(otherwise), Some(then), Some(around)) = (open.pop(), open.pop(), open.last_mut()) {
                    let then_weighs_more = then.counts.weight >= otherwise.counts.weight;
                    around.counts += if then_weighs_more { then.counts } else { otherwise.counts };
                }
            }
            Event::Instr(_) | Event::Copy { .. } | Event::Test { .. } => {}
        }
    }
    open.first().map(|whole| whole.counts).unwrap_or_default()
}

/// Open loop or branch.
struct Open {
    kind: Kind,
    counts: Counts,
}

enum Kind {
    /// Every iteration counts as much as the first.
    Times(i64),
    /// Iterations differ; events from `start` on are read again for each remaining one.
    Walk {
        index: Reg,
        left: i64,
        start: usize,
    },
    Branch,
}

impl Open {
    fn new(kind: Kind) -> Self {
        Self { kind, counts: Counts::default() }
    }
}

fn eval(poly: &Poly<Reg>, known: &Arena<Reg, Option<i64>>) -> Option<i64> {
    let all_known = poly.terms().all(|(monomial, _)| monomial.iter().all(|reg| known[*reg].is_some()));
    if all_known { poly.eval(|reg| known[reg].unwrap_or(0)) } else { None }
}

/// Returns, by index register, the loops that contain a loop whose trip count depends on that index.
fn walked_loops(kernel: &Kernel, events: &[Event<'_>]) -> Arena<Reg, bool> {
    let mut walked: Arena<Reg, bool> = Arena::filled(kernel.regs.len(), false);
    // Indices that each register depends on.
    let mut indices: Arena<Reg, Vec<Reg>> = Arena::filled(kernel.regs.len(), Vec::new());
    let of = |poly: &Poly<Reg>, indices: &Arena<Reg, Vec<Reg>>| {
        let mut found: Vec<Reg> = poly.vars().into_iter().flat_map(|reg| indices[reg].iter().copied()).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    for event in events {
        match event {
            Event::Instr(Instr::Int { dst, value }) => indices[*dst] = of(value, &indices),
            Event::For { index, count, .. } => {
                of(count, &indices).into_iter().for_each(|outer| walked[outer] = true);
                indices[*index] = vec![*index];
            }
            _ => {}
        }
    }
    walked
}

fn times(counts: Counts, n: i64) -> Counts {
    let n = u64::try_from(n).unwrap_or(0);
    let by = |count: u64| count.saturating_mul(n);
    Counts {
        add: by(counts.add),
        mul: by(counts.mul),
        div: by(counts.div),
        neg: by(counts.neg),
        call: by(counts.call),
        logic: by(counts.logic),
        weight: by(counts.weight),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower_function;
    use chainrule_ir::{Builder, Size, Type};

    #[test]
    fn loops_multiply_and_triangles_are_walked() {
        let mut b = Builder::new("f");
        let n = b.size_param("n");
        let x = b.param("x", Type::array(Size::var(n), Type::Double));
        let square = b.sum(Size::var(n), |b, i| {
            let xi = b.get_proved(x, i);
            b.sum(Size::var(n), |b, _| b.op(Op::Sin, &[xi]))
        });
        let triangle = b.sum(Size::var(n), |b, i| {
            b.sum(Size::var(i), |b, j| {
                let xj = b.get_proved(x, j);
                let positive = b.op(Op::Lt, &[square, xj]);
                b.if_(positive, |b| b.op(Op::Mul, &[xj, xj]), |_| xj)
            })
        });
        let kernel = lower_function(&b.finish(triangle)).unwrap();
        let at = |n: i64| counts(&kernel, &[n]);
        assert_eq!(at(0), Counts::default());
        for n in [1u64, 2, 5] {
            let (inner, found) = (n * (n - 1) / 2, at(n as i64));
            assert_eq!([found.call, found.mul, found.logic], [n * n, inner, inner], "{n}");
            assert_eq!(found.add, n * n + n + inner + n);
        }
    }
}
