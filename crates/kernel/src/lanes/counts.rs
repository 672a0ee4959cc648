//! Counts and collected truth values, in lanes.
//!
//! In: nests of loops that carry the number of steps for which a condition holds, or whether it holds for any or for
//! all of them. Lanes carry no integers. Out: they are carried as doubles, where a loop then runs in lanes.
//!
//! ```text
//! for i in 0..n, k = 0 then k'     for i in 0..n, x = 0.0 then x'
//!   if c(i)                          t = select c(i), 1.0, 0.0
//!   t = 1 | 0                        x' = x + t
//!   k' = k + t                     k = int x
//! ```
//!
//! `k or c(i)` becomes `max x t`, and `k and c(i)` becomes `min x t`. A loop inside may go on with the count of a loop
//! around it. Doubles add such numbers exactly, in any order.

use super::independence::is_apart;
use super::winner::{inside_chosen, where_in_lanes};
use crate::events::{Event, events, walk};
use crate::kernel::{Carried, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::prune::prune;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::{Op, Semantics};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Bound on the magnitude of a first count.
const MAX_FIRST: i64 = 1 << 52;

/// How a step changes a carried integer.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    /// Another number enters it if a condition holds.
    Chosen { condition: Reg, then: f64, otherwise: f64 },
    /// A loop inside goes on with it.
    Inside,
}

/// A carried integer.
#[derive(Clone, Copy, Debug)]
struct Tally {
    of: Carried,
    /// Index of its loop.
    index: Reg,
    /// Operator by which doubles enter: a sum, a maximum or a minimum.
    op: Op,
    step: Step,
    /// Number of uses of its register in the loop.
    n_uses: usize,
}

/// Carries counts and collected truth values of `kernel` as doubles where loops then run in lanes.
pub(crate) fn count_in_lanes(kernel: &mut Kernel, semantics: Semantics) {
    let has_integers = |event: &Event<'_>| match event {
        Event::For { carried, .. } => carried.iter().any(|c| kernel.regs[c.var] == Class::Int),
        _ => false,
    };
    if semantics == Semantics::Algebraic && walk(&kernel.body).any(|event| has_integers(&event)) {
        where_in_lanes(kernel, semantics, write, inside_chosen);
    }
}

/// Reader of a kernel's events.
#[derive(Default)]
struct Finder<'k> {
    constants: FxHashMap<Reg, i64>,
    code: FxHashMap<Reg, &'k Instr>,
    /// Results of branches: condition, and both values.
    choices: FxHashMap<Reg, (Reg, [Reg; 2])>,
    /// Number of uses so far.
    uses: FxHashMap<Reg, usize>,
    /// Open loops: whether they run in order.
    loops: Vec<bool>,
    conditions: Vec<Reg>,
    /// By carried register.
    found: FxHashMap<Reg, Tally>,
    /// Registers of loops whose counts a loop around them begins.
    inner: FxHashSet<Reg>,
}

impl<'k> Finder<'k> {
    /// Returns the tallies of the loops of `events`, and the numbers of those that begin with a constant.
    fn find(mut self, kernel: &Kernel, events: &[Event<'k>]) -> (FxHashMap<Reg, Tally>, BTreeMap<Reg, f64>) {
        for event in events {
            if let Event::EndFor { index, carried } = event
                && self.loops.pop() == Some(true)
            {
                for of in carried.iter().filter(|c| kernel.regs[c.var] == Class::Int) {
                    if is_apart(of, carried)
                        && let Some((op, step)) = self.step(*of)
                    {
                        let n_uses = self.n_uses(of.var);
                        self.found.insert(of.var, Tally { of: *of, index: *index, op, step, n_uses });
                    }
                }
            }
            event.for_each_use(|r| *self.uses.entry(r).or_default() += 1);
            match event {
                Event::Instr(instr) => {
                    if let Instr::Int { dst, value } = instr {
                        self.constants.extend(value.as_constant().map(|n| (*dst, n)));
                    }
                    self.code.extend(instr.dst().map(|dst| (dst, *instr)));
                }
                Event::For { order, .. } => self.loops.push(*order == Order::InOrder),
                Event::If { condition } => self.conditions.push(*condition),
                Event::EndIf { choices } => {
                    let Some(condition) = self.conditions.pop() else { continue };
                    self.choices.extend(choices.iter().map(|c| (c.var, (condition, [c.then, c.otherwise]))));
                }
                _ => {}
            }
        }
        let first = |tally: &Tally| {
            let range = if tally.op == Op::Add { -MAX_FIRST..=MAX_FIRST } else { 0..=1 };
            let number = self.constants.get(&tally.of.init).filter(|n| range.contains(n))?;
            Some((tally.of.var, *number as f64))
        };
        let outer = self.found.values().filter(|tally| !self.inner.contains(&tally.of.var)).filter_map(first).collect();
        (self.found, outer)
    }

    fn n_uses(&self, r: Reg) -> usize {
        self.uses.get(&r).copied().unwrap_or(0)
    }

    /// Returns how a step of the loop that ends here changes a carried integer, if nothing else reads it.
    fn step(&mut self, Carried { var, next, .. }: Carried) -> Option<(Op, Step)> {
        if let Some(inside) = self.found.get(&next) {
            // Uses: as the first value of that loop, and in a step of it.
            let is_alone = inside.of.init == var && self.n_uses(var) == 1 && self.n_uses(next) == inside.n_uses;
            let op = inside.op;
            return is_alone.then(|| {
                self.inner.insert(next);
                (op, Step::Inside)
            });
        }
        if self.n_uses(next) > 0 {
            return None;
        }
        if let Some((condition, sides)) = self.choices.get(&next) {
            return self.of_sides(var, *condition, *sides);
        }
        if self.n_uses(var) != 1 {
            return None;
        }
        match self.code.get(&next)? {
            Instr::Int { value, .. } => {
                let (condition, sides) = self.choices.get(&value.sub(&Poly::var(var)).as_var()?)?;
                let [then, otherwise] = sides.map(|r| self.small(r));
                Some((Op::Add, Step::Chosen { condition: *condition, then: then?, otherwise: otherwise? }))
            }
            Instr::Op { op, args: [a, b, _], .. } => {
                let op = match op {
                    Op::Or => Op::Max,
                    Op::And => Op::Min,
                    _ => return None,
                };
                let condition = [(*a, *b), (*b, *a)].into_iter().find_map(|(x, y)| (x == var).then_some(y))?;
                Some((op, Step::Chosen { condition, then: 1.0, otherwise: 0.0 }))
            }
            _ => None,
        }
    }

    /// Returns the step of a branch on one side of which `var` stays.
    fn of_sides(&self, var: Reg, condition: Reg, sides: [Reg; 2]) -> Option<(Op, Step)> {
        let stays = sides.iter().position(|r| *r == var)?;
        let other = sides[1 - stays];
        let by_side = |changed: f64, stayed: f64| match stays {
            0 => Step::Chosen { condition, then: stayed, otherwise: changed },
            _ => Step::Chosen { condition, then: changed, otherwise: stayed },
        };
        match (self.constants.get(&other), self.code.get(&other)) {
            (Some(1), _) if self.n_uses(var) == 1 => Some((Op::Max, by_side(1.0, 0.0))),
            (Some(0), _) if self.n_uses(var) == 1 => Some((Op::Min, by_side(0.0, 1.0))),
            (None, Some(Instr::Int { value, .. })) if self.n_uses(var) == 2 && self.n_uses(other) == 1 => {
                let more = value.sub(&Poly::var(var)).as_constant().filter(|n| (-1..=1).contains(n))?;
                Some((Op::Add, by_side(more as f64, 0.0)))
            }
            _ => None,
        }
    }

    /// Returns the number that a register is, if that is -1, 0 or 1.
    fn small(&self, r: Reg) -> Option<f64> {
        self.constants.get(&r).filter(|n| (-1..=1).contains(*n)).map(|n| *n as f64)
    }
}

/// Lets the tallies that begin in loops with these indices be doubles; returns the indices of their innermost loops by
/// those.
fn write(kernel: &mut Kernel, is_chosen: &dyn Fn(Reg) -> bool) -> BTreeMap<Reg, Reg> {
    let mut body = std::mem::take(&mut kernel.body);
    let (found, outer) = Finder::default().find(kernel, &events(&body));
    let mut changes = Changes::default();
    let mut written = BTreeMap::new();
    for (var, first) in outer {
        let root = &found[&var];
        if !is_chosen(root.index) {
            continue;
        }
        changes.first.insert(var, first);
        changes.reals.insert(var, kernel.regs.push(Class::Real));
        let mut tally = root;
        while tally.step == Step::Inside {
            tally = &found[&tally.of.next];
            changes.reals.insert(tally.of.var, kernel.regs.push(Class::Real));
        }
        changes.reals.insert(tally.of.next, kernel.regs.push(Class::Real));
        changes.steps.insert(tally.of.next, *tally);
        written.insert(root.index, tally.index);
    }
    if !written.is_empty() {
        changes.write(kernel, &mut body);
    }
    kernel.body = body;
    written
}

/// Registers of integers that become doubles.
#[derive(Default)]
struct Changes {
    reals: BTreeMap<Reg, Reg>,
    /// First numbers of those that begin with a constant.
    first: BTreeMap<Reg, f64>,
    /// Tallies by the next integers of their steps.
    steps: BTreeMap<Reg, Tally>,
}

impl Changes {
    fn write(&self, kernel: &mut Kernel, body: &mut Vec<Stmt>) {
        each_statement(body, |mut stmt, done| {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            match &mut stmt {
                Stmt::Straight(code) => {
                    for instr in std::mem::take(code) {
                        match instr.dst().and_then(|dst| self.steps.get(&dst)) {
                            Some(tally) => self.step(kernel, tally, code),
                            None => code.push(instr),
                        }
                    }
                }
                Stmt::If { choices, .. } => choices.retain(|choice| match self.steps.get(&choice.var) {
                    Some(tally) => {
                        self.step(kernel, tally, &mut after);
                        false
                    }
                    None => true,
                }),
                Stmt::For { carried, .. } => {
                    for c in carried {
                        let Some(var) = self.reals.get(&c.var).copied() else { continue };
                        let init = match self.first.get(&c.var) {
                            Some(value) => {
                                let dst = kernel.regs.push(Class::Real);
                                before.push(Instr::Const { dst, value: *value });
                                after.push(Instr::ToInt { dst: c.var, src: var });
                                dst
                            }
                            None => self.reals[&c.init],
                        };
                        *c = Carried { var, init, next: self.reals[&c.next] };
                    }
                }
                _ => {}
            }
            let code = |code: Vec<Instr>| (!code.is_empty()).then_some(Stmt::Straight(code));
            done.extend(code(before));
            done.push(stmt);
            done.extend(code(after));
        });
        prune(body, kernel.regs.len(), &kernel.buffers);
    }

    /// Writes the step of a tally.
    fn step(&self, kernel: &mut Kernel, Tally { of, op, step, .. }: &Tally, out: &mut Vec<Instr>) {
        let Step::Chosen { condition, then, otherwise } = step else { return };
        let [yes, no, term] = [(); 3].map(|()| kernel.regs.push(Class::Real));
        let (before, dst) = (self.reals[&of.var], self.reals[&of.next]);
        out.extend([
            Instr::Const { dst: yes, value: *then },
            Instr::Const { dst: no, value: *otherwise },
            Instr::Op { dst: term, op: Op::Select, args: [*condition, yes, no] },
            Instr::Op { dst, op: *op, args: [before, term, before] },
        ]);
    }
}
