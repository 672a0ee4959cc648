//! Report of the choices of the vectoriser, for people: the loops of a kernel with the estimated times of their forms.
//!
//! In: a kernel as the pass `vectorise` gets it. Out: one [`LoopAccount`] per loop. The choices are those of the pass,
//! because the same code makes them; times are estimated again if sizes are known.

use super::{Plans, Spans, cost, plans};
use crate::choices::choosable;
use crate::events::{Event, events};
use crate::kernel::{Instr, Kernel, Order, Reg};
use chainrule_base::Poly;
use chainrule_ops::Semantics;
use std::collections::BTreeMap;

/// Names of indices, by depth.
const INDICES: [&str; 8] = ["i", "j", "k", "l", "p", "q", "r", "s"];

/// A loop, with the estimated times of its forms in one evaluation of the kernel, in units of the cost model.
#[derive(Clone, Debug)]
pub struct LoopAccount {
    /// Number of loops around it.
    pub depth: usize,
    /// Trip count: in sizes, and in the indices `i`, `j`, ... of loops around it. `?` stands for other integers.
    pub count: String,
    /// Time in sequence, loops inside of it included.
    pub sequence: f64,
    /// Time in sequence with the best lane loops inside of it, if that is less.
    pub inside: Option<f64>,
    /// Time in lanes, if its iterations are independent.
    pub lanes: Option<f64>,
    /// Form that the vectoriser chose.
    pub form: LoopForm,
    /// Number of iterations in a register tile, and whether it packs what they share.
    pub tile: Option<(i64, bool)>,
}

/// Form of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopForm {
    /// In sequence.
    Sequence,
    /// In lanes, so many blocks jammed (1 for none).
    Lanes(i64),
    /// In the lanes of a loop around it.
    InLanes,
}

/// Returns the loops of `kernel` with the choices of the vectoriser. Times are those at `sizes`, in the order of
/// [`Kernel::sizes`], or at assumed sizes. Under algebraic semantics, sums may be added in another order.
#[must_use]
pub fn account(kernel: &Kernel, semantics: Semantics, sizes: Option<&[i64]>) -> Vec<LoopAccount> {
    let Plans { chosen, tiles, .. } = plans(kernel, semantics);
    let events = events(&kernel.body);
    let spans = Spans::of(&events);
    let branches = choosable(kernel, &events);
    let legal = super::independence::legal(kernel, &events, &spans, semantics, Order::Lanes, &branches);
    let assumed = cost::Trips::at_or_assumed(kernel, &events, sizes);
    let (_, times) = cost::estimate(&kernel.regs, &events, &spans, &legal, assumed);
    let mut names: BTreeMap<Reg, Poly<&str>> =
        kernel.sizes.iter().map(|size| (size.reg, Poly::var(size.name.as_str()))).collect();
    let mut loops = Vec::new();
    // Number of executions and index of each open loop; nothing for branches.
    let mut open: Vec<Option<(f64, Reg)>> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let around = || open.iter().rev().flatten();
        match event {
            Event::Instr(Instr::Int { dst, value }) => {
                let value = named(value, &names);
                names.insert(*dst, value);
            }
            Event::For { index, count, .. } => {
                let executions = around().next().map_or(1.0, |(n, _)| *n);
                let depth = around().count();
                let Some(times) = times.get(&at) else {
                    open.push(None);
                    continue;
                };
                let form = match chosen.get(index) {
                    Some(plan) => LoopForm::Lanes(plan.blocks),
                    None if around().any(|(_, index)| chosen.contains_key(index)) => LoopForm::InLanes,
                    None => LoopForm::Sequence,
                };
                loops.push(LoopAccount {
                    depth,
                    count: named(count, &names).to_string(),
                    sequence: executions * times.plain,
                    inside: (times.inside < times.plain).then_some(executions * times.inside),
                    lanes: times.lanes.map(|lanes| executions * lanes),
                    form,
                    tile: tiles.get(index).map(|tile| (tile.of, tile.panels.is_some())),
                });
                names.insert(*index, Poly::var(INDICES[depth % INDICES.len()]));
                open.push(Some((executions * times.trips, *index)));
            }
            Event::While { .. } | Event::If { .. } => open.push(None),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => drop(open.pop()),
            _ => {}
        }
    }
    loops
}

/// Returns a polynomial in names.
fn named<'n>(poly: &Poly<Reg>, names: &BTreeMap<Reg, Poly<&'n str>>) -> Poly<&'n str> {
    poly.substitute(|r| names.get(&r).cloned().unwrap_or_else(|| Poly::var("?")))
}
