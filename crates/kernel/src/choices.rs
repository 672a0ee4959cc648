//! If-conversion for lanes: a branch on data becomes the code of both sides and selects.
//!
//! A branch of few instructions is converted in any case ([`loops`](crate::loops)). Longer branches are converted only
//! for code that runs eight iterations or points in lanes: both sides then take less time than separate branches. Code
//! of either side must be safe to execute speculatively: arithmetic on doubles, and loads that are in range for any
//! data. Constant integers are selected as doubles.
//!
//! A side may also add to elements (`with_additions`): a number where it is taken, and -0 elsewhere, which changes
//! nothing.
//!
//! ```text
//! if c                     s = select c x -0
//!   a = load b[i]          a = load b[i]
//!   t = add a, x           t = add a, s
//!   store b[i] = t         store b[i] = t
//! ```

use crate::events::{Event, events};
use crate::kernel::{BufferId, Choice, Class, Instr, Kernel, Reg, Stmt};
use crate::ranges::Ranges;
use crate::rebuild::each_statement;
use crate::registers::Registers;
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of instructions of both sides, inner branches included.
const MAX_CODE: usize = 256;

/// Branch that is still open.
struct Open {
    condition: Reg,
    is_harmless: bool,
    /// Whether a side adds to elements.
    adds: bool,
    n_instrs: usize,
}

/// Elements that a side of a branch has loaded, and their sums with other numbers.
#[derive(Default)]
struct Additions<'k> {
    loaded: BTreeMap<Reg, (BufferId, &'k Poly<Reg>)>,
    sums: BTreeMap<Reg, [Reg; 2]>,
}

impl<'k> Additions<'k> {
    fn see(&mut self, instr: &'k Instr) {
        match instr {
            Instr::Load { dst, buffer, at } => {
                self.loaded.insert(*dst, (*buffer, at));
            }
            Instr::Op { dst, op: op @ (Op::Add | Op::Sub), args: [a, b, _] } => {
                // Of a difference, only the first is an element that is added to.
                self.sums.insert(*dst, [*a, if *op == Op::Add { *b } else { *a }]);
            }
            _ => {}
        }
    }

    /// Returns whether a store of `value` ends an addition to the element at `at`; a sum is stored once.
    fn end(&mut self, buffer: BufferId, at: &Poly<Reg>, value: Reg) -> bool {
        let is_element = |r: &Reg| self.loaded.get(r).is_some_and(|(of, from)| *of == buffer && *from == at);
        self.sums.remove(&value).is_some_and(|args| args.iter().any(is_element))
    }
}

/// Returns the conditions all of whose branches can be converted. Linear times the depth of branches.
pub(crate) fn choosable(kernel: &Kernel, events: &[Event<'_>]) -> BTreeSet<Reg> {
    let [without_additions, _] = convertible(kernel, events);
    without_additions
}

/// Returns the conditions all of whose branches can be converted, some of which add to elements. Linear times the depth
/// of branches.
pub(crate) fn with_additions(kernel: &Kernel, events: &[Event<'_>]) -> BTreeSet<Reg> {
    let [_, with_additions] = convertible(kernel, events);
    with_additions
}

/// Returns the conditions all of whose branches can be converted: those without additions, and the others.
fn convertible(kernel: &Kernel, events: &[Event<'_>]) -> [BTreeSet<Reg>; 2] {
    if !events.iter().any(|event| matches!(event, Event::If { .. })) {
        return [BTreeSet::new(), BTreeSet::new()];
    }
    let mut ranges = Ranges::new(kernel);
    // Truth values computed from doubles only: they imply nothing about integers.
    let mut of_data = vec![false; kernel.regs.len()];
    let mut open: Vec<Open> = Vec::new();
    let (mut found, mut adding, mut refused) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut constants = BTreeSet::new();
    let mut additions = Additions::default();
    for event in events {
        ranges.event(event);
        if !matches!(event, Event::Instr(_)) {
            additions = Additions::default();
        }
        match event {
            Event::Instr(instr) => {
                match instr {
                    Instr::Op { dst, op, args } => {
                        of_data[dst.index()] = match op {
                            Op::Lt | Op::Le | Op::Eq => args[..2].iter().all(|r| kernel.regs[*r] == Class::Real),
                            Op::And | Op::Or | Op::Not => args[..op.arity()].iter().all(|r| of_data[r.index()]),
                            _ => false,
                        };
                    }
                    Instr::Int { dst, value } if value.as_constant().is_some_and(is_double) => {
                        constants.insert(*dst);
                    }
                    _ => {}
                }
                let is_outermost = open.len() == 1;
                if let Some(innermost) = open.last_mut() {
                    additions.see(instr);
                    let adds = match instr {
                        Instr::Store { buffer, at, value } => additions.end(*buffer, at, *value),
                        _ => false,
                    };
                    innermost.n_instrs += 1;
                    innermost.is_harmless &= is_harmless(kernel, &ranges, instr) || (is_outermost && adds);
                    innermost.adds |= adds;
                }
            }
            Event::If { condition } => {
                let is_harmless = of_data[condition.index()];
                open.push(Open { condition: *condition, is_harmless, adds: false, n_instrs: 1 });
            }
            Event::Else { .. } => {}
            Event::EndIf { choices } => {
                let Some(Open { condition, is_harmless, adds, n_instrs }) = open.pop() else { continue };
                let is_convertible = |c: &Choice| {
                    kernel.regs[c.var] == Class::Real || [c.then, c.otherwise].iter().all(|r| constants.contains(r))
                };
                let is_choice = is_harmless && n_instrs <= MAX_CODE && choices.iter().all(is_convertible);
                match (is_choice, adds) {
                    (false, _) => refused.insert(condition),
                    (true, true) => adding.insert(condition),
                    (true, false) => found.insert(condition),
                };
                if let Some(around) = open.last_mut() {
                    around.is_harmless &= is_choice;
                    around.n_instrs += n_instrs;
                }
            }
            // Loops cannot be speculated.
            _ => open.iter_mut().for_each(|open| open.is_harmless = false),
        }
    }
    adding.retain(|condition| !refused.contains(condition));
    found.retain(|condition| !refused.contains(condition) && !adding.contains(condition));
    [found, adding]
}

/// Returns whether no rounding changes an integer that becomes a double.
fn is_double(n: i64) -> bool {
    n.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS
}

/// Returns whether an instruction may be executed speculatively.
pub(crate) fn is_harmless(kernel: &Kernel, ranges: &Ranges, instr: &Instr) -> bool {
    match instr {
        Instr::Const { .. } | Instr::MulAdd { .. } | Instr::Op { .. } => true,
        Instr::Int { value, .. } => value.as_constant().is_some(),
        Instr::Load { dst, buffer, at } => {
            kernel.regs[*dst] == Class::Real && ranges.is_inside(at, &kernel.buffers[*buffer].len)
        }
        _ => false,
    }
}

/// Returns the select of a result that both sides compute.
pub(crate) fn select(condition: Reg, choice: &Choice) -> Instr {
    Instr::Op { dst: choice.var, op: Op::Select, args: [condition, choice.then, choice.otherwise] }
}

/// Converts the branches in `body` with these conditions into selects.
pub(crate) fn choose(regs: &mut Registers, body: &mut Vec<Stmt>, conditions: &BTreeSet<Reg>) {
    each_statement(body, |stmt, done| {
        let stmt = match stmt {
            Stmt::If { condition, .. } if conditions.contains(&condition) => {
                let mut code = Vec::new();
                flatten(regs, stmt, &mut code);
                Stmt::Straight(code)
            }
            stmt => stmt,
        };
        match (done.last_mut(), stmt) {
            (Some(Stmt::Straight(before)), Stmt::Straight(code)) => before.extend(code),
            (_, stmt) => done.push(stmt),
        }
    });
}

/// Flattens a branch; recursive on nested branches, which have at most [`MAX_CODE`] instructions.
fn flatten(regs: &mut Registers, stmt: Stmt, code: &mut Vec<Instr>) {
    match stmt {
        Stmt::Straight(instrs) => code.extend(instrs),
        Stmt::If { condition, choices, then, otherwise } => {
            for (side, holds) in [(then, true), (otherwise, false)] {
                let begin = code.len();
                side.into_iter().for_each(|stmt| flatten(regs, stmt, code));
                guard_additions(regs, (condition, holds), begin, code);
            }
            for choice in &choices {
                if regs[choice.var] == Class::Real {
                    code.push(select(condition, choice));
                    continue;
                }
                let [then, otherwise] = [choice.then, choice.otherwise].map(|src| {
                    let dst = regs.push(Class::Real);
                    code.push(Instr::ToReal { dst, src });
                    dst
                });
                let chosen = Choice { var: regs.push(Class::Real), then, otherwise };
                code.extend([select(condition, &chosen), Instr::ToInt { dst: choice.var, src: chosen.var }]);
            }
        }
        // `choosable` excludes other statements.
        _ => {}
    }
}

/// Lets the additions in `code` from `begin` on add -0 unless a condition is as given: the other numbers stay.
fn guard_additions(regs: &mut Registers, (condition, holds): (Reg, bool), begin: usize, code: &mut Vec<Instr>) {
    let stores: BTreeMap<Reg, (BufferId, Poly<Reg>)> = code[begin..]
        .iter()
        .filter_map(|instr| match instr {
            Instr::Store { buffer, at, value } => Some((*value, (*buffer, at.clone()))),
            _ => None,
        })
        .collect();
    if stores.is_empty() {
        return;
    }
    let mut loaded: BTreeMap<Reg, (BufferId, Poly<Reg>)> = BTreeMap::new();
    for instr in code.split_off(begin) {
        match instr {
            Instr::Op { dst, op, args: [a, b, _] } if stores.contains_key(&dst) => {
                let [before, term] = if loaded.get(&a) == stores.get(&dst) { [a, b] } else { [b, a] };
                let (nothing, chosen) = (regs.push(Class::Real), regs.push(Class::Real));
                let [then, otherwise] = if holds { [term, nothing] } else { [nothing, term] };
                // x + (-0) = x - 0 = x.
                code.push(Instr::Const { dst: nothing, value: if op == Op::Add { -0.0 } else { 0.0 } });
                code.push(Instr::Op { dst: chosen, op: Op::Select, args: [condition, then, otherwise] });
                code.push(Instr::Op { dst, op, args: [before, chosen, before] });
            }
            instr => {
                if let Instr::Load { dst, buffer, at } = &instr {
                    loaded.insert(*dst, (*buffer, at.clone()));
                }
                code.push(instr);
            }
        }
    }
}

/// Returns the kernel with its convertible branches converted, for batches in lanes; `None` if there are none. Linear
/// times the depth of branches.
#[must_use]
pub fn with_choices(kernel: &Kernel) -> Option<Kernel> {
    let conditions = choosable(kernel, &events(&kernel.body));
    if conditions.is_empty() {
        return None;
    }
    let mut kernel = kernel.clone();
    let Kernel { regs, body, .. } = &mut kernel;
    choose(regs, body, &conditions);
    Some(kernel)
}
