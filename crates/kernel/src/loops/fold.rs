//! Constant folding and local value numbering of integers: constant integers, decided comparisons, also of constant
//! doubles, checks that hold, loops of at most one iteration; aliases and recomputed integers are removed.
//!
//! Addresses are expanded over indices and sizes where possible, so that later analyses see how they depend on each
//! index.

use super::MAX_WRAPS;
use super::choose::as_choice;
use crate::events::Event;
use crate::kernel::{BufferId, Carried, Choice, Instr, Kernel, Order, Reg, Stmt};
use crate::prune::prune;
use crate::ranges::{Ranges, is_small};
use crate::rebuild::{Aliases, Pass, Rounds, rebuild};
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;
use std::collections::BTreeMap;

/// Maximum number of terms of an expanded address.
const MAX_TERMS: usize = 6;

/// Folds `kernel`. Linear in its size, except for the proofs of [`Ranges`].
pub(crate) fn fold(kernel: &mut Kernel) {
    fold_by(kernel, Aliases::default(), Numbered::Integers);
}

/// Folds `kernel` with carried registers replaced by congruent ones, and code computed twice from these merged.
pub(super) fn fold_aliases(kernel: &mut Kernel, aliases: Aliases) {
    fold_by(kernel, aliases, Numbered::All);
}

/// Values that get value numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbered {
    Integers,
    All,
}

fn fold_by(kernel: &mut Kernel, aliases: Aliases, numbered: Numbered) {
    let body = std::mem::take(&mut kernel.body);
    let mut is_index = vec![false; kernel.regs.len()];
    kernel.sizes.iter().for_each(|size| is_index[size.reg.index()] = true);
    let (ranges, seen) = (Ranges::new(kernel), Seen::default());
    let mut pass = Fold {
        kernel,
        ranges,
        aliases,
        is_index,
        seen,
        numbered,
        reals: BTreeMap::new(),
        less: BTreeMap::new(),
        divided: BTreeMap::new(),
    };
    let mut body = rebuild(body, &mut pass);
    prune(&mut body, kernel.regs.len(), &kernel.buffers);
    kernel.body = body;
}

struct Fold<'k> {
    kernel: &'k Kernel,
    ranges: Ranges,
    aliases: Aliases,
    /// Indices of loops and sizes, by register.
    is_index: Vec<bool>,
    seen: Seen,
    numbered: Numbered,
    /// Constant doubles.
    reals: BTreeMap<Reg, f64>,
    /// Operands of `<` comparisons of doubles, by result.
    less: BTreeMap<Reg, [Reg; 2]>,
    /// Operators and operands of quotients and remainders, by result.
    divided: BTreeMap<Reg, (Op, [Reg; 2])>,
}

/// Maximum number of dimensions of an address in which quotients and remainders cancel.
const MAX_DIGITS: usize = 8;

/// Value number key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Computed {
    Value(Poly<Reg>),
    Op(Op, [Reg; 3]),
}

/// Returns whether `value` may replace integers: it is short, and its coefficients leave room for the factors of later
/// passes.
fn is_short(value: &Poly<Reg>) -> bool {
    value.as_constant().is_some() || (value.terms().len() <= MAX_TERMS && is_small(value))
}

/// Computed values in scope.
#[derive(Default)]
struct Seen {
    all: BTreeMap<Computed, Reg>,
    /// Values computed in each open loop and branch.
    inside: Vec<Vec<Computed>>,
}

impl Seen {
    /// Returns the register that already holds this value; otherwise records `dst` for it.
    fn same(&mut self, what: Computed, dst: Reg) -> Option<Reg> {
        if let Some(same) = self.all.get(&what) {
            return Some(*same);
        }
        if let Some(inside) = self.inside.last_mut() {
            inside.push(what.clone());
        }
        self.all.insert(what, dst);
        None
    }

    fn open(&mut self) {
        self.inside.push(Vec::new());
    }

    fn close(&mut self) {
        for what in self.inside.pop().unwrap_or_default() {
            self.all.remove(&what);
        }
    }
}

/// Loads in a block that are still valid.
#[derive(Default)]
struct There {
    /// Source of each load, and the number of writes to the buffer before it.
    read: BTreeMap<Reg, (BufferId, Poly<Reg>, usize)>,
    /// Number of writes to each buffer.
    n_written: BTreeMap<BufferId, usize>,
}

impl There {
    /// Returns whether an instruction has an effect; a store of the value just loaded from the same element has none.
    fn changes(&mut self, instr: &Instr) -> bool {
        match instr {
            Instr::Load { dst, buffer, at } => {
                let n = self.n_written.get(buffer).copied().unwrap_or(0);
                self.read.insert(*dst, (*buffer, at.clone(), n));
            }
            Instr::Store { buffer, at, value } => {
                let n = self.n_written.entry(*buffer).or_insert(0);
                let is_there =
                    |(from, place, then): &(BufferId, Poly<Reg>, usize)| from == buffer && place == at && then == n;
                if self.read.get(value).is_some_and(is_there) {
                    return false;
                }
                *n += 1;
            }
            _ => {}
        }
        true
    }
}

impl Fold<'_> {
    fn of(&self, r: Reg) -> Reg {
        self.aliases.of(r)
    }

    fn constant(&self, r: Reg) -> Option<i64> {
        self.ranges.value(&Poly::var(r)).as_constant()
    }

    /// Returns the polynomial over remaining registers, expanded over indices and sizes if possible.
    fn poly(&self, poly: &Poly<Reg>) -> Poly<Reg> {
        if poly.as_constant().is_some() {
            return poly.clone();
        }
        let poly = self.undivided(poly.substitute(|r| Poly::var(self.of(r))));
        let is_of_indices =
            |value: &Poly<Reg>| value.terms().flat_map(|(monomial, _)| monomial).all(|r| self.is_index[r.index()]);
        let value = self.ranges.value(&poly);
        if is_short(&value) && is_of_indices(&value) {
            return value;
        }
        // Expand as much as possible, so that different addresses can be distinguished.
        let part =
            |r: Reg| Some(self.ranges.value(&Poly::var(r))).filter(is_of_indices).unwrap_or_else(|| Poly::var(r));
        let value = poly.substitute(part);
        if is_short(&value) {
            return value;
        }
        let value = poly.substitute(|r| self.constant(r).map_or_else(|| Poly::var(r), Poly::constant));
        if value.is_too_large() { poly } else { value }
    }

    /// Returns `poly` with `d * div x d + mod x d` as `x`: an element of an array at a flat index into another shape.
    fn undivided(&self, mut poly: Poly<Reg>) -> Poly<Reg> {
        if self.divided.is_empty() {
            return poly;
        }
        for _ in 0..MAX_DIGITS {
            let Some(next) = poly.vars().into_iter().find_map(|r| self.without_remainder(&poly, r)) else { break };
            poly = next;
        }
        poly
    }

    fn without_remainder(&self, poly: &Poly<Reg>, remainder: Reg) -> Option<Poly<Reg>> {
        let Some((Op::Mod, [x, d])) = self.divided.get(&remainder) else { return None };
        let (times, rest) = poly.split_linear(remainder)?;
        let is_quotient = |r: &Reg| self.divided.get(r) == Some(&(Op::Quot, [*x, *d]));
        let (quotients, rest) = rest.split_linear(rest.vars().into_iter().find(is_quotient)?)?;
        let is_whole = self.ranges.value(&quotients) == self.ranges.value(&times.mul(&Poly::var(*d)));
        is_whole.then(|| times.mul(&Poly::var(*x)).add(&rest))
    }

    /// Returns an address expanded like [`Self::poly`]. An address outside its buffer stays unchanged, after the check
    /// that fails before it.
    fn address(&self, buffer: BufferId, at: &Poly<Reg>) -> Poly<Reg> {
        let value = self.poly(at);
        let len = &self.kernel.buffers[buffer].len;
        let is_outside = value.as_constant().is_some_and(|at| at < 0 || len.as_constant().is_some_and(|len| at >= len));
        if is_outside { at.substitute(|r| Poly::var(self.of(r))) } else { value }
    }

    fn carried(&self, carried: &mut [Carried], of: impl Fn(&mut Carried) -> &mut Reg) {
        for c in carried {
            let r = of(c);
            *r = self.of(*r);
        }
    }

    /// Returns the remaining instruction, if any.
    fn instr(&mut self, instr: Instr) -> Option<Instr> {
        let instr = self.known(instr)?;
        let computed = match &instr {
            Instr::Int { dst, value } => Some((*dst, Computed::Value(value.clone()))),
            Instr::IntOp { dst, op, args, .. } => Some((*dst, Computed::Op(*op, *args))),
            Instr::Op { dst, op, args } if self.numbered == Numbered::All => Some((*dst, Computed::Op(*op, *args))),
            _ => None,
        };
        if let Some((dst, computed)) = computed
            && let Some(same) = self.seen.same(computed, dst)
        {
            return self.is(dst, same);
        }
        if let Instr::IntOp { dst, op: op @ (Op::Quot | Op::Mod), args: [x, d, _], .. } = instr {
            self.divided.insert(dst, (op, [x, d]));
        }
        self.ranges.event(&Event::Instr(&instr));
        Some(instr)
    }

    /// Returns the folded instruction; `None` if its register becomes an alias.
    fn known(&mut self, instr: Instr) -> Option<Instr> {
        Some(match instr {
            Instr::Const { dst, value } => {
                self.reals.insert(dst, value);
                instr
            }
            Instr::Int { dst, value } => {
                let value = self.poly(&value);
                if let Some(same) = value.as_var() {
                    self.aliases.set(dst, same);
                    return None;
                }
                Instr::Int { dst, value }
            }
            Instr::Op { dst, op, args } => self.op(dst, op, args.map(|r| self.of(r)))?,
            Instr::MulAdd { dst, signs, args } => Instr::MulAdd { dst, signs, args: args.map(|r| self.of(r)) },
            Instr::IntOp { dst, op, args, failure } => self.int_op(dst, op, args.map(|r| self.of(r)), failure)?,
            Instr::ToReal { dst, src } => {
                let src = self.of(src);
                match self.constant(src) {
                    Some(value) => Instr::Const { dst, value: value as f64 },
                    None => Instr::ToReal { dst, src },
                }
            }
            Instr::ToInt { dst, src } => Instr::ToInt { dst, src: self.of(src) },
            Instr::External { dst, function, args } => {
                Instr::External { dst, function, args: args.iter().map(|r| self.of(*r)).collect() }
            }
            Instr::Load { dst, buffer, at } => Instr::Load { dst, buffer, at: self.address(buffer, &at) },
            Instr::Store { buffer, at, value } => {
                Instr::Store { buffer, at: self.address(buffer, &at), value: self.of(value) }
            }
            Instr::CheckIndex { index, len, failure } => {
                let (index, len) = (self.of(index), self.poly(&len));
                if self.ranges.is_inside(&Poly::var(index), &len) {
                    return None;
                }
                Instr::CheckIndex { index, len, failure }
            }
        })
    }

    /// Makes `dst` an alias of `same`.
    fn is(&mut self, dst: Reg, same: Reg) -> Option<Instr> {
        self.aliases.set(dst, same);
        None
    }

    fn op(&mut self, dst: Reg, op: Op, args: [Reg; 3]) -> Option<Instr> {
        let [a, b, c] = args;
        let truth = |r: Reg| self.constant(r).map(|value| value != 0);
        match op {
            Op::And | Op::Or => {
                // One truth value decides the result, the other has no effect.
                let decides = op == Op::Or;
                match (truth(a), truth(b)) {
                    (Some(x), _) | (_, Some(x)) if x == decides => {
                        return Some(Instr::Int { dst, value: Poly::constant(i64::from(decides)) });
                    }
                    (Some(_), _) => return self.is(dst, b),
                    (_, Some(_)) => return self.is(dst, a),
                    _ => {}
                }
            }
            Op::Not => {
                if let Some(x) = truth(a) {
                    return Some(Instr::Int { dst, value: Poly::constant(i64::from(!x)) });
                }
            }
            Op::Select => {
                if let Some(x) = truth(a) {
                    return self.is(dst, if x { b } else { c });
                }
                return Some(self.select(dst, args));
            }
            Op::Lt | Op::Le | Op::Eq => {
                if let (Some(x), Some(y)) = (self.reals.get(&a), self.reals.get(&b)) {
                    let holds = (op.row().value)(&[*x, *y]) != 0.0;
                    return Some(Instr::Int { dst, value: Poly::constant(i64::from(holds)) });
                }
                if op == Op::Lt {
                    self.less.insert(dst, [a, b]);
                }
            }
            _ => {}
        }
        Some(Instr::Op { dst, op, args })
    }

    /// Returns a select of doubles, as minimum or maximum if it selects between the compared operands, with the same
    /// bits also for NaN.
    fn select(&self, dst: Reg, args: [Reg; 3]) -> Instr {
        let [condition, then, otherwise] = args;
        let op = match self.less.get(&condition) {
            Some([x, y]) if [then, otherwise] == [*x, *y] => Op::Min,
            Some([x, y]) if [then, otherwise] == [*y, *x] => Op::Max,
            _ => return Instr::Op { dst, op: Op::Select, args },
        };
        Instr::Op { dst, op, args: [otherwise, then, otherwise] }
    }

    fn int_op(&mut self, dst: Reg, op: Op, args: [Reg; 3], failure: usize) -> Option<Instr> {
        let known: Option<Vec<i64>> = args[..op.arity()].iter().map(|r| self.constant(*r)).collect();
        if let Some(value) = known.and_then(|known| op.row().int.and_then(|value| value(&known))) {
            return Some(Instr::Int { dst, value: Poly::constant(value) });
        }
        let [a, b, _] = args;
        let int = |value: bool| Some(Instr::Int { dst, value: Poly::constant(i64::from(value)) });
        match op {
            Op::Lt | Op::Le | Op::Eq => {
                if let Some(holds) = self.ranges.compare(op, a, b) {
                    return int(holds);
                }
            }
            Op::Min | Op::Max => {
                let is_at_most = |a: Reg, b: Reg| self.ranges.compare(Op::Le, a, b) == Some(true);
                if is_at_most(a, b) {
                    return self.is(dst, if op == Op::Min { a } else { b });
                }
                if is_at_most(b, a) {
                    return self.is(dst, if op == Op::Min { b } else { a });
                }
            }
            Op::Quot | Op::Mod if self.ranges.is_inside(&Poly::var(a), &Poly::var(b)) => {
                return if op == Op::Mod { self.is(dst, a) } else { int(false) };
            }
            Op::Mod => {
                if let Some(value) = self.remainder(a, b) {
                    return Some(Instr::Int { dst, value: self.poly(&value) });
                }
            }
            Op::Abs => {
                let value = self.ranges.value(&Poly::var(a));
                if self.ranges.is_at_least_zero(&value) {
                    return self.is(dst, a);
                }
                if self.ranges.is_at_least_zero(&value.neg()) {
                    return Some(Instr::Int { dst, value: self.poly(&Poly::var(a).neg()) });
                }
            }
            _ => {}
        }
        Some(Instr::IntOp { dst, op, args, failure })
    }
}

impl Fold<'_> {
    /// Returns the remainder of `a` by `b` if it is known how often `b` is subtracted.
    fn remainder(&self, a: Reg, b: Reg) -> Option<Poly<Reg>> {
        let b = self.ranges.value(&Poly::var(b));
        let wrapped = |k: i64| self.ranges.value(&Poly::var(a)).sub(&b.scale(k));
        (-MAX_WRAPS..=MAX_WRAPS).map(wrapped).find(|value| self.ranges.is_inside(value, &b))
    }
}

impl Pass for Fold<'_> {
    fn code(&mut self, code: Vec<Instr>) -> Vec<Instr> {
        let mut there = There::default();
        code.into_iter().filter_map(|instr| self.instr(instr)).filter(|instr| there.changes(instr)).collect()
    }

    fn copy(&mut self, to: &mut (BufferId, Poly<Reg>), from: &mut (BufferId, Poly<Reg>), len: &mut Poly<Reg>) -> bool {
        for poly in [&mut to.1, &mut from.1, &mut *len] {
            *poly = self.poly(poly);
        }
        len.as_constant().is_none_or(|len| len > 0)
    }

    fn open_for(&mut self, index: Reg, count: &mut Poly<Reg>, carried: &mut [Carried], order: Order) -> Rounds {
        *count = self.poly(count);
        self.carried(carried, |c| &mut c.init);
        let is_empty = || self.ranges.is_at_least_zero(&count.neg());
        let steps = count.as_constant().or_else(|| is_empty().then_some(0));
        match steps {
            Some(..=0) => {
                carried.iter().for_each(|c| self.aliases.set(c.var, c.init));
                Rounds::Never
            }
            Some(1) if order == Order::InOrder => Rounds::Once,
            _ => {
                self.is_index[index.index()] = true;
                self.seen.open();
                self.ranges.event(&Event::For { index, count, carried, order });
                Rounds::Loop
            }
        }
    }

    fn close_for(
        &mut self,
        index: Reg,
        carried: &mut Vec<Carried>,
        _body: &mut Vec<Stmt>,
        _before: &mut Vec<Instr>,
    ) -> bool {
        self.carried(carried, |c| &mut c.next);
        carried.retain(|c| self.of(c.var) == c.var);
        self.seen.close();
        self.ranges.event(&Event::EndFor { index, carried });
        true
    }

    fn open_once(&mut self, index: Reg, carried: &[Carried]) -> Vec<Instr> {
        carried.iter().for_each(|c| self.aliases.set(c.var, c.init));
        let code = vec![Instr::Int { dst: index, value: Poly::zero() }];
        self.ranges.event(&Event::Instr(&code[0]));
        code
    }

    fn close_once(&mut self, carried: &[Carried]) {
        let last: Vec<Reg> = carried.iter().map(|c| self.of(c.next)).collect();
        carried.iter().zip(last).for_each(|(c, last)| self.aliases.set(c.var, last));
    }

    fn open_while(&mut self, limit: &mut Poly<Reg>, carried: &mut [Carried]) {
        // A message may name the source of a limit in a register.
        *limit = match (self.poly(limit), limit.as_var()) {
            (value, Some(r)) if value.as_constant().is_none() => Poly::var(self.of(r)),
            (value, _) => value,
        };
        self.carried(carried, |c| &mut c.init);
        self.seen.open();
        self.ranges.event(&Event::While { carried, limit });
    }

    fn test(&mut self, holds: &mut Reg, failure: usize) {
        *holds = self.of(*holds);
        // Values computed in the condition are in scope there only.
        self.seen.close();
        self.seen.open();
        self.ranges.event(&Event::Test { holds: *holds, failure });
    }

    fn close_while(&mut self, carried: &mut Vec<Carried>) {
        self.carried(carried, |c| &mut c.next);
        self.seen.close();
        self.ranges.event(&Event::EndWhile { carried });
    }

    fn open_if(&mut self, condition: &mut Reg) -> Option<bool> {
        *condition = self.of(*condition);
        let known = self.constant(*condition).map(|value| value != 0);
        if known.is_none() {
            self.seen.open();
            self.ranges.event(&Event::If { condition: *condition });
        }
        known
    }

    fn middle(&mut self, choices: &mut [Choice]) {
        choices.iter_mut().for_each(|c| c.then = self.of(c.then));
        self.seen.close();
        self.seen.open();
        self.ranges.event(&Event::Else { choices });
    }

    fn close_if(
        &mut self,
        condition: Reg,
        choices: &mut Vec<Choice>,
        arms: [&mut Vec<Stmt>; 2],
        before: &mut Vec<Instr>,
    ) -> bool {
        choices.iter_mut().for_each(|c| c.otherwise = self.of(c.otherwise));
        self.seen.close();
        self.ranges.event(&Event::EndIf { choices });
        choices.retain(|c| {
            if c.then == c.otherwise {
                self.aliases.set(c.var, c.then);
            }
            c.then != c.otherwise
        });
        let is_left = as_choice(self.kernel, &self.ranges, condition, choices, arms, before);
        for instr in before {
            if let Instr::Op { dst, op: Op::Select, args } = instr {
                *instr = self.select(*dst, *args);
            }
        }
        is_left
    }

    fn close_taken(&mut self, choices: &[Choice], holds: bool) {
        choices.iter().for_each(|c| self.aliases.set(c.var, self.of(if holds { c.then } else { c.otherwise })));
    }
}
