//! Integers that are the same in all iterations are computed before the loop, and those of branches before the branch, so
//! that they may go on; how often an inner loop runs, too. Only such as cannot fail, since a loop without iterations must not
//! fail, and are not dear: sums and products of what is known to be small enough.

use crate::kernel::{Carried, Class, Instr, Kernel, Order, Reg, SizeSource, Stmt};
use crate::rebuild::{Pass, Rounds, is_nothing, rebuild};
use chainrule_base::{Arena, Id, Poly};
use chainrule_ops::Op;

/// The least and the largest number that something can be.
type Range = (i128, i128);

/// Extents fit into 64 bits; nothing else is known of them.
const EXTENT: Range = (0, i64::MAX as i128);

/// Moves integers of `kernel` out of the counted loops in which they stay the same, where each is then computed once. Linear
/// in its size but for the depth of loops and branches.
pub fn hoist(kernel: &mut Kernel) {
    if !super::has_control(kernel) {
        return;
    }
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

/// What is known of a register.
#[derive(Clone, Copy, Default)]
struct Known {
    /// In how many loops and branches it is defined.
    of: u32,
    /// The same once all that may move has moved.
    least: u32,
    range: Option<Range>,
    constant: Option<i64>,
}

struct Hoist<'k> {
    regs: &'k mut Arena<Reg, Class>,
    /// How many loops and branches are open.
    depth: u32,
    known: Vec<Known>,
    /// How deep the loop is that runs in parts; 0 where none is open.
    in_parts: u32,
    /// How many loops and branches are open in each conditional loop that is, itself included. Nothing is taken out of one.
    conditional: Vec<u32>,
    /// How often loops run that are closed or open, to be computed in so many loops and branches.
    counts: Vec<(u32, Instr)>,
}

impl Hoist<'_> {
    /// Whether an instruction cannot fail, has no effect, and is worth a place of its own.
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

    /// What a polynomial can be, if it fits into 64 bits, and so does all that it is put together from, in any order.
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

    /// What an instruction makes.
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

    /// Moves what may move and is the same out of `body`, which closes.
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

    /// What is known of what is defined here and stays.
    fn here(&self) -> Known {
        Known { of: self.depth, least: self.depth, ..Known::default() }
    }

    fn define(&mut self, carried: &[Carried]) {
        carried.iter().for_each(|c| self.known[c.var.index()] = self.here());
    }

    /// The counts of loops that are computed right before what closes.
    fn take_counts(&mut self, before: &mut Vec<Instr>) {
        let of = self.depth - 1;
        before.extend(self.counts.extract_if(.., |(other, _)| *other == of).map(|(_, instr)| instr));
    }

    /// In how many loops and branches what is computed here stays, whatever it is: nothing is taken out of conditional loops,
    /// and what threads run has its integers for itself.
    fn fixed(&self) -> u32 {
        self.in_parts.max(self.conditional.last().copied().unwrap_or(0))
    }

    /// How often a loop runs as a register that is computed outside of the loops in which it stays the same.
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
        // What threads run has its integers for itself.
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

    fn close_while(&mut self, carried: &mut [Carried]) {
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
