//! Searches for the step that decides a maximum or a minimum, in lanes.
//!
//! In: a loop that selects a number, with the index of the step that replaced it last. Lanes carry no integers. Out:
//! the step is carried as a double, where the loop or one around it then runs in lanes.
//!
//! ```text
//! for i in 0..n, m = a then m', k = -1 then k'    for i in 0..n, m = a then m', k = -1.0 then k'
//!   t(i)                                            t(i)
//!   if m < t                                        if m < t
//!   m' = t | m                                      m' = t | m
//!   k' = i | k                                      k' = real i | k
//! ```
//!
//! Each lane keeps the number and the place of its own steps ([`Group::Place`](super::independence::Group)). The number
//! of all is a reduction, and the place is the least one among lanes with that number: the first step that has it, as
//! in sequence. Lanes skip NaN, because no comparison with it holds.

use super::independence::{Group, is_apart};
use super::rewrite::Loop;
use super::{Plan, plans};
use crate::events::{Event, events, walk};
use crate::kernel::{Carried, Choice, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_ops::{Op, Semantics};
use std::collections::{BTreeMap, BTreeSet};

/// A number that steps of a loop replace by larger or by smaller ones, and the place of the last step that did, among
/// its carried registers.
#[derive(Clone, Copy)]
pub(super) struct Selection {
    pub number: usize,
    pub place: usize,
    /// Reduction of the number.
    pub extreme: Group,
}

/// Returns the selections of the loop over `index`: nothing else reads their numbers and places. The place is an
/// integer, or a double. Linear in the body for each carried register.
pub(super) fn selections(kernel: &Kernel, index: Reg, carried: &[Carried], body: &[Event<'_>]) -> Vec<Selection> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    for (at, event) in body.iter().enumerate() {
        match event {
            Event::If { condition } if depth == 0 => {
                if let [Event::Else { choices }, Event::EndIf { .. }, ..] = &body[at + 1..]
                    && let Some(selection) = selection((kernel, index), carried, body, (*condition, choices))
                    && is_alone(body, selection, (*condition, carried))
                {
                    found.push(selection);
                }
                depth += 1;
            }
            Event::For { .. } | Event::While { .. } | Event::If { .. } => depth += 1,
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

/// Returns the selection that a branch without code makes. The number may also be a maximum or a minimum beside it.
fn selection(
    (kernel, index): (&Kernel, Reg),
    carried: &[Carried],
    body: &[Event<'_>],
    (condition, choices): (Reg, &[Choice]),
) -> Option<Selection> {
    let definition = |wanted: Reg| {
        body.iter().find_map(|event| match event {
            Event::Instr(instr) if instr.dst() == Some(wanted) => Some(*instr),
            _ => None,
        })
    };
    let choice_of = |c: &Carried| choices.iter().find(|choice| [choice.var, choice.otherwise] == [c.next, c.var]);
    if !carried.iter().any(|c| choice_of(c).is_some()) {
        return None;
    }
    let Instr::Op { op: Op::Lt, args: [less, more, _], .. } = definition(condition)? else { return None };
    [(*less, *more, Group::Greatest), (*more, *less, Group::Least)].into_iter().find_map(|(number, term, extreme)| {
        let is_next = |c: &Carried| match choice_of(c) {
            Some(choice) => choice.then == term,
            None => match definition(c.next) {
                Some(Instr::Op { op: own, args: [a, b, _], .. }) => (*own, *a, *b) == (extreme.op(), number, term),
                _ => false,
            },
        };
        let is_place = |c: &Carried| {
            choice_of(c).is_some_and(|choice| match kernel.regs[choice.var] {
                Class::Int => choice.then == index,
                Class::Real => matches!(definition(choice.then), Some(Instr::ToReal { src, .. }) if *src == index),
            })
        };
        let number = carried.iter().position(|c| c.var == number && kernel.regs[c.var] == Class::Real && is_next(c))?;
        let place = carried.iter().enumerate().position(|(k, c)| k != number && is_place(c))?;
        [number, place].iter().all(|k| is_apart(&carried[*k], carried)).then_some(Selection { number, place, extreme })
    })
}

/// Returns whether nothing but the selection reads what it carries and its condition.
fn is_alone(
    body: &[Event<'_>],
    Selection { number, place, .. }: Selection,
    (condition, of): (Reg, &[Carried]),
) -> bool {
    let allowed = [(of[number].var, 2), (of[place].var, 1), (condition, 1), (of[number].next, 0), (of[place].next, 0)];
    let mut uses = [0; 5];
    for event in body {
        event.for_each_use(|r| {
            allowed.iter().zip(&mut uses).filter(|((of, _), _)| *of == r).for_each(|(_, n)| *n += 1);
        });
    }
    allowed.iter().zip(uses).all(|((_, allowed), n)| n == *allowed)
}

/// Loop that only selects a number, with the last step that replaced it, an integer.
pub(super) struct Search {
    pub the: Loop,
    pub winner: Reg,
}

/// Returns the search that a statement is, if it is one.
pub(super) fn search(kernel: &Kernel, stmt: &Stmt, exact: &Exact) -> Option<Search> {
    let Stmt::For { index, count, carried, order: Order::InOrder, body } = stmt else { return None };
    let [winner] = integer_places(kernel, (*index, carried, body), exact)[..] else { return None };
    let the = Loop { index: *index, count: count.clone(), carried: carried.clone(), body: body.clone() };
    (carried.len() == 2).then_some(Search { the, winner })
}

/// Registers that are integers known to be doubles.
pub(super) type Exact = BTreeSet<Reg>;

/// Returns the constants in `body` that doubles are.
pub(super) fn exact(body: &[Stmt]) -> Exact {
    let is_double = |n: i64| n.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS;
    let constant = |event: Event<'_>| match event {
        Event::Instr(Instr::Int { dst, value }) if value.as_constant().is_some_and(is_double) => Some(*dst),
        _ => None,
    };
    walk(body).filter_map(constant).collect()
}

/// Returns the integers among the places of the selections of a loop, which doubles are from the beginning.
fn integer_places(kernel: &Kernel, (index, carried, body): (Reg, &[Carried], &[Stmt]), exact: &Exact) -> Vec<Reg> {
    let is_fit = |c: &Carried| kernel.regs[c.var] == Class::Int && exact.contains(&c.init);
    if !carried.iter().any(is_fit) {
        return Vec::new();
    }
    let found = selections(kernel, index, carried, &events(body));
    found.into_iter().map(|selection| carried[selection.place]).filter(is_fit).map(|c| c.var).collect()
}

/// Carries the steps of searches as doubles where their loops then run in lanes.
pub(crate) fn search_rows(kernel: &mut Kernel, semantics: Semantics) {
    if semantics == Semantics::Algebraic && carries_pairs(kernel) {
        where_in_lanes(kernel, semantics, write, inside_chosen);
    }
}

/// Returns whether a loop carries a number and a place, perhaps.
pub(super) fn carries_pairs(kernel: &Kernel) -> bool {
    walk(&kernel.body).any(|event| matches!(event, Event::For { carried, .. } if carried.len() >= 2))
}

/// Changes loops of `kernel` where a new loop then runs in lanes; returns whether there are any. `write`
/// changes the loops whose indices it may, and returns the indices of the new loops by those. `running` returns the
/// indices of the loops that run in lanes, of a kernel with these plans.
pub(super) fn where_in_lanes(
    kernel: &mut Kernel,
    semantics: Semantics,
    write: impl Fn(&mut Kernel, &dyn Fn(Reg) -> bool) -> BTreeMap<Reg, Reg>,
    running: impl Fn(&Kernel, &BTreeMap<Reg, Plan>) -> BTreeSet<Reg>,
) -> bool {
    let mut tried = kernel.clone();
    let new = write(&mut tried, &|_| true);
    if new.is_empty() {
        return false;
    }
    let running = running(&tried, &plans(&tried, semantics).chosen);
    let in_lanes: BTreeSet<Reg> = new.iter().filter(|(_, new)| running.contains(new)).map(|(old, _)| *old).collect();
    if in_lanes.len() == new.len() {
        *kernel = tried;
    } else if !in_lanes.is_empty() {
        write(kernel, &|index| in_lanes.contains(&index));
    }
    !in_lanes.is_empty()
}

/// Returns the indices of the loops with these plans, and of the loops inside them.
pub(super) fn inside_chosen(kernel: &Kernel, chosen: &BTreeMap<Reg, Plan>) -> BTreeSet<Reg> {
    let (mut found, mut depth) = (BTreeSet::new(), 0usize);
    for event in events(&kernel.body) {
        match event {
            Event::For { index, .. } if depth > 0 || chosen.contains_key(&index) => {
                depth += 1;
                found.insert(index);
            }
            Event::EndFor { index, .. } if found.contains(&index) => depth -= 1,
            _ => {}
        }
    }
    found
}

/// Lets the searches with these indices carry doubles; returns their indices by those.
fn write(kernel: &mut Kernel, is_chosen: &dyn Fn(Reg) -> bool) -> BTreeMap<Reg, Reg> {
    let mut body = std::mem::take(&mut kernel.body);
    let exact = exact(&body);
    let mut written = BTreeMap::new();
    each_statement(&mut body, |stmt, done| {
        let winners = match &stmt {
            Stmt::For { index, carried, order: Order::InOrder, body, .. } if is_chosen(*index) => {
                integer_places(kernel, (*index, carried, body), &exact)
            }
            _ => Vec::new(),
        };
        written.extend(match &stmt {
            Stmt::For { index, .. } if !winners.is_empty() => Some((*index, *index)),
            _ => None,
        });
        done.push(stmt);
        let integers = winners.into_iter().map(|dst| Instr::ToInt { dst, src: with_real_winner(kernel, dst, done) });
        let integers: Vec<Instr> = integers.collect();
        done.extend((!integers.is_empty()).then_some(Stmt::Straight(integers)));
    });
    kernel.body = body;
    written
}

/// Lets the search that ends `body` carry its winner, the integer `winner`, as a double; returns that.
pub(super) fn with_real_winner(kernel: &mut Kernel, winner: Reg, body: &mut Vec<Stmt>) -> Reg {
    let [init, var, next, step] = [(); 4].map(|()| kernel.regs.push(Class::Real));
    let Some(Stmt::For { index, carried, body: steps, .. }) = body.last_mut() else { return var };
    let Some(place) = carried.iter_mut().find(|c| c.var == winner) else { return var };
    let integer = std::mem::replace(place, Carried { var, init, next });
    for stmt in steps.iter_mut() {
        if let Stmt::If { choices, .. } = stmt {
            let choice = choices.iter_mut().filter(|choice| choice.var == integer.next);
            choice.for_each(|choice| *choice = Choice { var: next, then: step, otherwise: var });
        }
    }
    let as_real = Stmt::Straight(vec![Instr::ToReal { dst: step, src: *index }]);
    steps.insert(0, as_real);
    let at = body.len() - 1;
    body.insert(at, Stmt::Straight(vec![Instr::ToReal { dst: init, src: integer.init }]));
    var
}
