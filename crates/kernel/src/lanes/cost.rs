//! Which loops of a nest run in lanes: an estimate of the time with each choice.
//!
//! Times are of one instruction that is not dear. A loop whose count is not known runs [`TRIPS`] times. In lanes an
//! iteration stands for eight, so a loop that runs at once costs an eighth of its body, but that what is not next to each
//! other is fetched one by one, or a row for each lane; each execution costs something to begin and to put the sums together.

use super::{Plan, Spans};
use crate::addresses::{slope, split_constant};
use crate::events::Event;
use crate::kernel::{BufferId, Class, Instr, LANES, Reg};
use chainrule_base::{Arena, Poly};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Of a loop whose count is not known.
pub(crate) const TRIPS: f64 = 16.0;

/// What cutting a loop costs at each execution.
const BEGIN: f64 = 6.0;

/// The same for each register that is carried, and for each buffer that is added to.
const CARRIED: f64 = 12.0;

/// What a block costs more for each buffer for which it is taken apart: loops to begin, places.
const APART: f64 = 16.0;

/// An element that is neither next to the one of the lane before nor the same.
const FAR: f64 = 1.5;

/// What is done for each lane, one after the other, with an integer from memory: it is read, it is compared.
const FETCH: f64 = 16.0;

/// An element whose address is made of such an integer.
const FETCH_ELEMENT: f64 = 24.0;

/// An element beside one that is apart from those of other lanes: they are read together, this many at most.
const BESIDE: f64 = 2.0;
const ROW: i32 = 4;

/// A function that is computed in lanes; of other functions each lane is called for.
const FUNCTION: f64 = 20.0;

/// How many blocks are computed at once, where that pays; more of them where they add to memory, which is read and written once
/// for all.
pub(super) const JAM: i64 = 4;
const JAM_INTO_MEMORY: i64 = 8;

/// Of so many groups of blocks at least there are that many blocks in a group.
const FEWEST: i64 = 2;

/// How many instructions may be written for each of several blocks.
const MAX_JAMMED: usize = 256;

/// Which part of the time at least several blocks at once have to save on: one of so many.
const JAMMED_ALONE: f64 = 6.0;

/// Of sums whose terms take no longer than this, fewer than a block are added one after the other.
const FEW_ALONE: f64 = 5.0;

/// How long a sum waits for itself.
const WAIT: f64 = 2.0;

/// The time of a stretch without lanes, and with the best choice, and that choice.
#[derive(Default)]
struct Estimate {
    plain: f64,
    best: f64,
    chosen: Vec<usize>,
}

/// The loops to cut, by their indices.
pub(super) fn choose(
    classes: &Arena<Reg, Class>,
    events: &[Event<'_>],
    spans: &Spans,
    legal: &BTreeMap<usize, Plan>,
) -> BTreeMap<Reg, Plan> {
    let mut open: Vec<(usize, Estimate)> = vec![(0, Estimate::default())];
    for (at, event) in events.iter().enumerate() {
        let Some((_, inside)) = open.last_mut() else { break };
        match event {
            Event::Instr(instr) => {
                let time = instr_time(instr, None);
                inside.plain += time;
                inside.best += time;
            }
            Event::For { .. } | Event::While { .. } | Event::If { .. } => open.push((at, Estimate::default())),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                let Some((begin, body)) = open.pop() else { break };
                let Some((_, around)) = open.last_mut() else { break };
                let trips = match &events[begin] {
                    Event::For { count, .. } => count.as_constant().map_or(TRIPS, |n| n.max(0) as f64),
                    Event::While { .. } => TRIPS,
                    _ => 1.0,
                };
                let at_once = legal.get(&begin).and_then(|plan| {
                    let Event::For { index, .. } = &events[begin] else { return None };
                    let end = spans.end.get(&begin)?;
                    let lanes = body_time(classes, &events[begin + 1..*end], *index);
                    let extra = BEGIN + CARRIED * (plan.sums.len() + plan.accumulators.len()) as f64;
                    let rounds = (trips / LANES as f64).ceil();
                    Some(rounds * (lanes + APART * plan.scattered.len() as f64) + extra)
                });
                around.plain += trips * body.plain;
                match at_once {
                    Some(time) if time < trips * body.best => {
                        around.best += time;
                        around.chosen.push(begin);
                    }
                    _ => {
                        around.best += trips * body.best;
                        around.chosen.extend(body.chosen);
                    }
                }
            }
            _ => {}
        }
    }
    let chosen: Vec<usize> = open.into_iter().flat_map(|(_, estimate)| estimate.chosen).collect();
    let mut plans = BTreeMap::new();
    for begin in chosen {
        let (Event::For { index, count, .. }, Some(end)) = (&events[begin], spans.end(begin)) else { continue };
        let Some(mut plan) = legal.get(&begin).cloned() else { continue };
        let body = &events[begin + 1..end];
        let most = if is_into_memory(body, &plan) { JAM_INTO_MEMORY } else { JAM };
        // Of few all are one group.
        let blocks = match count.as_constant().map(|n| n / LANES) {
            Some(all) if all < FEWEST * most => all.min(JAM_INTO_MEMORY),
            _ => most,
        };
        if blocks > 1 && plan.scattered.is_empty() && jam_pays(classes, body, *index, &plan) {
            plan.blocks = blocks;
        }
        plan.few_alone = !plan.sums.is_empty()
            && plan.accumulators.is_empty()
            && plan.private.is_empty()
            && count.as_constant().is_none()
            && body.iter().all(|event| matches!(event, Event::Instr(_)))
            && plain_time(classes, body) <= FEW_ALONE;
        plans.insert(*index, plan);
    }
    plans
}

/// Whether more blocks at once are worth their registers: what is added to in memory is much, by loops in each other.
fn is_into_memory(body: &[Event<'_>], plan: &Plan) -> bool {
    let mut depth = 0;
    body.iter().any(|event| {
        match event {
            Event::For { .. } => depth += 1,
            Event::EndFor { .. } => depth -= 1,
            Event::Instr(Instr::Store { buffer, .. }) => return depth > 1 && plan.accumulators.contains(buffer),
            _ => {}
        }
        false
    })
}

/// Whether several blocks at once save a part of the time: what is the same for all is read once then, what is added to is
/// read and written once, and sums wait less for themselves.
fn jam_pays(classes: &Arena<Reg, Class>, body: &[Event<'_>], index: Reg, plan: &Plan) -> bool {
    let mut varying = BTreeSet::from([index]);
    let (mut saved, mut all, mut n_instrs, mut has_loops) = (0.0, 0.0, 0, false);
    let mut trips = vec![1.0];
    for event in body {
        let often = trips.last().copied().unwrap_or(1.0);
        match event {
            Event::Instr(instr) => {
                n_instrs += 1;
                let time = often * instr_time(instr, Some(index));
                all += time;
                let is_added = |b: &BufferId| plan.accumulators.contains(b);
                let differs = match instr {
                    Instr::Load { buffer, at, .. } => {
                        plan.private.contains(buffer)
                            || is_added(buffer)
                            || at.vars().into_iter().any(|r| varying.contains(&r))
                    }
                    Instr::Store { .. } => true,
                    _ => {
                        let mut any = false;
                        instr.for_each_use(|r| any |= varying.contains(&r));
                        any
                    }
                };
                if differs {
                    // What is fetched for each lane is dear enough.
                    if matches!(instr, Instr::Load { dst, .. } if classes[*dst] == Class::Int) {
                        return false;
                    }
                    varying.extend(instr.dst());
                }
                let is_once = match instr {
                    Instr::Load { buffer, .. } => !differs || is_added(buffer),
                    Instr::Store { buffer, .. } => is_added(buffer),
                    _ => false,
                };
                if is_once {
                    saved += time;
                }
            }
            Event::For { count, carried, .. } => {
                has_loops = true;
                varying.extend(carried.iter().map(|c| c.var));
                trips.push(often * count.as_constant().map_or(TRIPS, |n| n.max(0) as f64));
                if !carried.is_empty() {
                    saved += trips.last().copied().unwrap_or(1.0) * WAIT;
                    all += trips.last().copied().unwrap_or(1.0) * WAIT;
                }
            }
            Event::If { .. } => trips.push(often),
            Event::EndFor { .. } | Event::EndIf { .. } => {
                trips.pop();
                if let Event::EndIf { choices } = event {
                    varying.extend(choices.iter().map(|c| c.var));
                }
            }
            _ => {}
        }
    }
    has_loops && n_instrs <= MAX_JAMMED && saved * JAMMED_ALONE >= all
}

/// The time of one iteration without lanes.
pub(crate) fn plain_time(classes: &Arena<Reg, Class>, body: &[Event<'_>]) -> f64 {
    time_of(classes, body, None)
}

/// The time of one block of iterations in lanes.
fn body_time(classes: &Arena<Reg, Class>, body: &[Event<'_>], index: Reg) -> f64 {
    time_of(classes, body, Some(index))
}

fn time_of(classes: &Arena<Reg, Class>, body: &[Event<'_>], index: Option<Reg>) -> f64 {
    let mut sums = vec![(1.0, 0.0)];
    let mut lanes = index.map(LaneTime::new);
    for event in body {
        match event {
            Event::Instr(instr) => {
                if let Some((_, sum)) = sums.last_mut() {
                    *sum += lanes.as_mut().map_or_else(|| instr_time(instr, None), |lanes| lanes.time(classes, instr));
                }
            }
            Event::For { count, .. } => sums.push((count.as_constant().map_or(TRIPS, |n| n.max(0) as f64), 0.0)),
            Event::While { .. } => sums.push((TRIPS, 0.0)),
            Event::If { .. } => sums.push((1.0, 0.0)),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                if let (Some((trips, inside)), Some((_, around))) = (sums.pop(), sums.last_mut()) {
                    *around += trips * inside;
                }
            }
            _ => {}
        }
    }
    sums.pop().map_or(0.0, |(_, sum)| sum)
}

/// The time of what runs in the lanes of a loop, one instruction after the other.
struct LaneTime {
    index: Reg,
    /// How far integers are from those of the next lane.
    steps: BTreeMap<Reg, i64>,
    /// Integers that are fetched for each lane.
    fetched: BTreeSet<Reg>,
    /// Elements that are apart, by buffer and address without its constant: of each row the first.
    rows: BTreeMap<(BufferId, Poly<Reg>), Vec<i32>>,
}

impl LaneTime {
    /// In the lanes of the loop over `index`.
    fn new(index: Reg) -> Self {
        Self { index, steps: BTreeMap::from([(index, 1)]), fetched: BTreeSet::new(), rows: BTreeMap::new() }
    }

    fn slope(&self, poly: &Poly<Reg>) -> Option<i64> {
        slope(poly, |r| self.steps.get(&r).copied())?.as_constant()
    }

    fn time(&mut self, classes: &Arena<Reg, Class>, instr: &Instr) -> f64 {
        match instr {
            Instr::Load { dst, at, .. } if classes[*dst] == Class::Int => {
                let time = match at.vars() {
                    vars if vars.iter().any(|r| self.fetched.contains(r)) => FETCH_ELEMENT,
                    vars if vars.contains(&self.index) => FETCH,
                    _ => return 1.0,
                };
                self.fetched.insert(*dst);
                time
            }
            Instr::CheckIndex { index, .. } if self.fetched.contains(index) => FETCH,
            Instr::Int { dst, value } => {
                if let Some(step) = self.slope(value).filter(|step| *step != 0) {
                    self.steps.insert(*dst, step);
                }
                1.0
            }
            Instr::Load { buffer, at, .. } => {
                let is_fetched = at.vars().iter().any(|r| self.fetched.contains(r));
                let alone = if is_fetched { FETCH_ELEMENT } else { access_time(self.slope(at)) };
                if alone <= 1.0 {
                    return alone;
                }
                let (part, offset) = split_constant(at);
                let rows = self.rows.entry((*buffer, part)).or_default();
                if rows.iter().any(|first| (0..ROW).contains(&offset.saturating_sub(*first))) {
                    BESIDE
                } else {
                    rows.push(offset);
                    alone
                }
            }
            _ => instr_time(instr, Some(self.index)),
        }
    }
}

/// The time of an access in lanes whose elements are so far from each other, where that is known.
fn access_time(slope: Option<i64>) -> f64 {
    match slope {
        Some(0 | 1) => 1.0,
        _ => FAR * LANES as f64,
    }
}

/// The time of one instruction; in the lanes of a loop over `index`, of all of them.
pub(crate) fn instr_time(instr: &Instr, index: Option<Reg>) -> f64 {
    let lanes = LANES as f64;
    let access = |at: &Poly<Reg>| {
        let slope = |index: Reg| at.split_linear(index).and_then(|(slope, _)| slope.as_constant());
        index.map_or(1.0, |index| access_time(slope(index)))
    };
    match instr {
        Instr::Const { .. } | Instr::Int { .. } | Instr::ToReal { .. } | Instr::MulAdd { .. } => 1.0,
        Instr::IntOp { .. } | Instr::CheckIndex { .. } => 1.0,
        Instr::Load { at, .. } | Instr::Store { at, .. } => access(at),
        Instr::Op { op, .. } => match op {
            Op::Div | Op::Sqrt => 8.0,
            _ if op.row().elementary.is_some() => FUNCTION,
            _ if op.is_numeric() && op.arity() == 1 && !matches!(op, Op::Neg | Op::Abs | Op::Floor | Op::Ceil) => {
                FUNCTION * index.map_or(1.0, |_| lanes)
            }
            _ => 1.0,
        },
        Instr::External { .. } => FUNCTION * index.map_or(1.0, |_| lanes),
    }
}
