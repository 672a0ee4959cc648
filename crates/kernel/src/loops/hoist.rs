//! Invariant hoisting of integers: invariant integers move before the loop, and out of branches so that they can move
//! further; trip counts of inner loops too. Only cheap integers that cannot fail move, since a loop without iterations
//! must not fail: sums and products of operands known to be small enough.

use crate::kernel::{Carried, Class, Instr, Kernel, Order, Reg, SizeSource, Stmt};
use crate::rebuild::{Pass, Rounds, is_nothing, rebuild};
use crate::registers::Registers;
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;

/// Minimum and maximum.
type Range = (i128, i128);

/// Range of an extent.
const EXTENT: Range = (0, i64::MAX as i128);

/// Moves integers of `kernel` out of the counted loops in which they are invariant, and computes each once. Linear in
/// its size times the depth of loops and branches.
pub(crate) fn hoist_integers(kernel: &mut Kernel) {
    let n = kernel.regs.len();
    let mut known = vec![Known::default(); n];
    for size in kernel.sizes.iter().filter(|s| matches!(s.source, SizeSource::Extent { .. })) {
        known[size.reg.index()].range = Some(EXTENT);
    }
    let regs = &mut kernel.regs;
    let mut pass = Hoist { regs, depth: 0, known, in_parts: 0, conditional: Vec::new(), counts: Vec::new() };
    kernel.body = rebuild(std::mem::take(&mut kernel.body), &mut pass);
    super::fold::fold(kernel);
}

/// Facts about a register.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Number of loops and branches around its definition.
    of: u32,
    /// Number of loops and branches around its definition after all motion.
    least: u32,
    range: Option<Range>,
    constant: Option<i64>,
}

struct Hoist<'k> {
    regs: &'k mut Registers,
    /// Number of open loops and branches.
    depth: u32,
    known: Vec<Known>,
    /// Depth of the open parallel loop; 0 if there is none.
    in_parts: u32,
    /// Depth of each open conditional loop. Nothing moves out of one.
    conditional: Vec<u32>,
    /// Trip counts to compute, with the depth at which to compute them.
    counts: Vec<(u32, Instr)>,
}

impl Hoist<'_> {
    /// Returns whether an instruction cannot fail, has no effect, and is worth a register.
    fn may_move(&self, instr: &Instr) -> bool {
        match instr {
            Instr::Int { value, .. } => {
                value.as_constant().is_some() || value.as_var().is_some() || self.range(value).is_some()
            }
            Instr::IntOp { op: Op::Min | Op::Max | Op::Lt | Op::Le | Op::Eq, .. } => true,
            Instr::IntOp { op: Op::Quot | Op::Mod, args, .. } => {
                self.known[args[1].index()].constant.is_some_and(|by| by > 0 && by.count_ones() == 1)
            }
            _ => false,
        }
    }

    /// Returns the range of a polynomial, if it and all its partial sums, in any order, fit into 64 bits.
    fn range(&self, value: &Poly<Reg>) -> Option<Range> {
        let fits = |(low, high): Range| low >= i128::from(i64::MIN) && high <= i128::from(i64::MAX);
        let ((mut low, mut high), mut parts) = ((0, 0), (0, 0));
        for (monomial, c) in value.terms() {
            let mut term = (i128::from(c), i128::from(c));
            for r in monomial {
                let (least, most) = self.known[r.index()].range?;
                // Both fit into 64 bits.
                let ends = [term.0 * least, term.0 * most, term.1 * least, term.1 * most];
                term = ends.into_iter().fold((ends[0], ends[0]), |(low, high), end| (low.min(end), high.max(end)));
                if !fits(term) {
                    return None;
                }
            }
            (low, high) = (low + term.0, high + term.1);
            parts = (parts.0 + term.0.min(0), parts.1 + term.1.max(0));
        }
        fits(parts).then_some((low, high))
    }

    /// Returns the facts about an instruction's result.
    fn made(&self, instr: &Instr) -> Known {
        let mut least = self.depth;
        if self.may_move(instr) {
            least = self.fixed();
            instr.for_each_use(|r| least = least.max(self.known[r.index()].least));
        }
        let mut known = Known { of: self.depth, least, ..Known::default() };
        match instr {
            Instr::Int { value, .. } => {
                known.constant = value.as_constant();
                known.range = self.range(value);
            }
            Instr::IntOp { op, args: [a, b, _], .. } => {
                let [a, b] = [a, b].map(|r| self.known[r.index()]);
                known.range = match (op, a.range, b.range) {
                    (Op::Min, Some(a), Some(b)) => Some((a.0.min(b.0), a.1.min(b.1))),
                    (Op::Max, Some(a), Some(b)) => Some((a.0.max(b.0), a.1.max(b.1))),
                    (Op::Quot, Some((low, high)), _) => {
                        let by = b.constant.filter(|by| *by > 0).map(i128::from);
                        by.map(|by| (low.div_euclid(by), high.div_euclid(by)))
                    }
                    _ => None,
                };
            }
            _ => {}
        }
        known
    }

    /// Moves invariant instructions out of `body`, which closes.
    fn take(&mut self, body: &mut Vec<Stmt>, before: &mut Vec<Instr>) {
        for stmt in body.iter_mut() {
            let Stmt::Straight(code) = stmt else { continue };
            code.retain(|instr| {
                let moves = self.may_move(instr) && self.is_same(instr);
                if moves {
                    if let Some(dst) = instr.dst() {
                        self.known[dst.index()].of = self.depth - 1;
                    }
                    before.push(instr.clone());
                }
                !moves
            });
        }
        body.retain(|stmt| !is_nothing(stmt));
    }

    fn is_same(&self, instr: &Instr) -> bool {
        let mut same = true;
        instr.for_each_use(|r| same &= self.known[r.index()].of < self.depth);
        same
    }

    /// Returns the facts about a register that is defined here and does not move.
    fn here(&self) -> Known {
        Known { of: self.depth, least: self.depth, ..Known::default() }
    }

    fn define(&mut self, carried: &[Carried]) {
        carried.iter().for_each(|c| self.known[c.var.index()] = self.here());
    }

    /// Takes the trip counts to compute right before the closing statement.
    fn take_counts(&mut self, before: &mut Vec<Instr>) {
        let of = self.depth - 1;
        before.extend(self.counts.extract_if(.., |(other, _)| *other == of).map(|(_, instr)| instr));
    }

    /// Returns the minimum depth of code from here: nothing moves out of conditional loops, and parallel loops keep
    /// their own integers.
    fn fixed(&self) -> u32 {
        self.in_parts.max(self.conditional.last().copied().unwrap_or(0))
    }

    /// Replaces a trip count by a register computed outside of the loops in which it is invariant.
    fn count(&mut self, count: &mut Poly<Reg>) {
        if count.as_constant().is_some() || count.as_var().is_some() {
            return;
        }
        let of = count.vars().iter().map(|r| self.known[r.index()].least).max().unwrap_or(0).max(self.fixed());
        let Some(range) = self.range(count).filter(|_| of < self.depth) else { return };
        let same = self.counts.iter().find_map(|(other, instr)| match instr {
            Instr::Int { dst, value } if *other == of && value == count => Some(*dst),
            _ => None,
        });
        let dst = same.unwrap_or_else(|| {
            let dst = self.regs.push(Class::Int);
            self.known.push(Known { of, least: of, range: Some(range), constant: None });
            self.counts.push((of, Instr::Int { dst, value: count.clone() }));
            dst
        });
        *count = Poly::var(dst);
    }
}

impl Pass for Hoist<'_> {
    fn code(&mut self, code: Vec<Instr>) -> Vec<Instr> {
        for instr in &code {
            let Some(dst) = instr.dst() else { continue };
            self.known[dst.index()] = self.made(instr);
        }
        code
    }

    fn open_for(&mut self, index: Reg, count: &mut Poly<Reg>, carried: &mut [Carried], order: Order) -> Rounds {
        self.count(count);
        let range = self.range(count).map(|(_, most)| (0, (most - 1).max(0)));
        self.depth += 1;
        if order == Order::Parts {
            self.in_parts = self.depth;
        }
        self.define(carried);
        self.known[index.index()] = Known { range, ..self.here() };
        Rounds::Loop
    }

    fn close_for(
        &mut self,
        _index: Reg,
        carried: &mut Vec<Carried>,
        body: &mut Vec<Stmt>,
        before: &mut Vec<Instr>,
    ) -> bool {
        // Parallel loops keep their own integers.
        if self.in_parts == self.depth {
            self.in_parts = 0;
        } else {
            self.take(body, before);
        }
        self.take_counts(before);
        self.depth -= 1;
        self.define(carried);
        true
    }

    fn open_while(&mut self, _limit: &mut Poly<Reg>, carried: &mut [Carried]) {
        self.depth += 1;
        self.conditional.push(self.depth);
        self.define(carried);
    }

    fn close_while(&mut self, carried: &mut Vec<Carried>) {
        self.conditional.pop();
        self.depth -= 1;
        self.define(carried);
    }

    fn open_if(&mut self, _condition: &mut Reg) -> Option<bool> {
        self.depth += 1;
        None
    }

    fn close_if(
        &mut self,
        _condition: Reg,
        choices: &mut Vec<crate::Choice>,
        arms: [&mut Vec<Stmt>; 2],
        before: &mut Vec<Instr>,
    ) -> bool {
        arms.into_iter().for_each(|arm| self.take(arm, before));
        self.take_counts(before);
        self.depth -= 1;
        choices.iter().for_each(|c| self.known[c.var.index()] = self.here());
        true
    }
}
