//! Live intervals of registers, for backends.
//!
//! In: the events of a kernel, numbered from 1. Out: for each register the events of its definition and of its last
//! use. A register defined outside a loop and used inside lives to the loop's end, because the next iteration uses it
//! again.

use crate::events::Event;
use crate::kernel::{Instr, Reg};
use chainrule_base::{Id, Poly};

/// Live interval of each register, by index; a position is the number of an event, 0 is before the first.
pub struct Liveness {
    /// Position of the definition.
    pub def: Vec<u32>,
    /// Position of the last use; not before `def`.
    pub last: Vec<u32>,
    /// Closing event of the opening event of a loop; 0 for other events.
    pub end_of_loop: Vec<u32>,
}

impl Liveness {
    /// Returns the live intervals of registers `0..n_regs` in `events`. Linear times the depth of loops.
    #[must_use]
    pub fn new(n_regs: usize, events: &[Event<'_>]) -> Self {
        let mut lives = Self { def: vec![0; n_regs], last: vec![0; n_regs], end_of_loop: vec![0; events.len() + 1] };
        let mut opened = Vec::new();
        for (at, event) in (1u32..).zip(events) {
            match event {
                Event::For { .. } | Event::While { .. } => opened.push(at),
                Event::EndFor { .. } | Event::EndWhile { .. } => {
                    if let Some(begin) = opened.pop() {
                        lives.end_of_loop[begin as usize] = at;
                    }
                }
                _ => {}
            }
        }
        let mut open: Vec<u32> = Vec::new();
        for (at, event) in (1u32..).zip(events) {
            match event {
                Event::Instr(instr) => {
                    instr.for_each_use(|r| lives.use_at(r, at, &open));
                    if let Some(dst) = instr.dst() {
                        lives.define(dst, at);
                    }
                }
                Event::Copy { to, from, len, .. } => {
                    for poly in [&to.1, &from.1, *len] {
                        lives.use_poly(poly, at, &open);
                    }
                }
                Event::For { index, count, carried, .. } => {
                    lives.use_poly(count, at, &open);
                    carried.iter().for_each(|c| lives.use_at(c.init, at, &open));
                    carried.iter().for_each(|c| lives.define(c.var, at));
                    lives.define(*index, at);
                    open.push(at);
                }
                Event::While { carried, limit } => {
                    lives.use_poly(limit, at, &open);
                    carried.iter().for_each(|c| lives.use_at(c.init, at, &open));
                    carried.iter().for_each(|c| lives.define(c.var, at));
                    open.push(at);
                }
                Event::EndFor { carried, .. } | Event::EndWhile { carried } => {
                    if let Event::EndFor { index, .. } = event {
                        lives.use_at(*index, at, &open);
                    }
                    for c in *carried {
                        lives.use_at(c.next, at, &open);
                        lives.use_at(c.var, at, &open);
                    }
                    open.pop();
                }
                Event::Test { holds, .. } => lives.use_at(*holds, at, &open),
                Event::If { condition } => lives.use_at(*condition, at, &open),
                // The slot of a branch's result is occupied from the end of the first side on, because both sides write
                // it.
                Event::Else { choices } => {
                    for c in *choices {
                        lives.use_at(c.then, at, &open);
                        lives.define(c.var, at);
                    }
                }
                Event::EndIf { choices } => {
                    for c in *choices {
                        lives.use_at(c.otherwise, at, &open);
                        lives.use_at(c.var, at, &open);
                    }
                }
            }
        }
        lives
    }

    fn define(&mut self, r: Reg, at: u32) {
        self.def[r.index()] = at;
        self.last[r.index()] = self.last[r.index()].max(at);
    }

    fn use_poly(&mut self, poly: &Poly<Reg>, at: u32, open: &[u32]) {
        poly.terms().flat_map(|(m, _)| m).for_each(|r| self.use_at(*r, at, open));
    }

    /// Records a use at `at` inside the loops that open at `open`, ascending.
    fn use_at(&mut self, r: Reg, at: u32, open: &[u32]) {
        let def = self.def[r.index()];
        let outermost = open.partition_point(|begin| *begin < def);
        let until = open.get(outermost).map_or(at, |begin| self.end_of_loop[*begin as usize]);
        self.last[r.index()] = self.last[r.index()].max(until);
    }
}

/// Returns the registers that may differ between the points of a batch, which share sizes; `None` if the analysis does
/// not converge in a few rounds.
///
/// Only integers matter, since reals always may differ. Loads, truth values of reals, and everything computed from
/// these may differ.
#[must_use]
pub fn varying(n_regs: usize, events: &[Event<'_>]) -> Option<Vec<bool>> {
    const ROUNDS: usize = 16;
    let mut varying = vec![false; n_regs];
    for _ in 0..ROUNDS {
        let mut changed = false;
        let mut set = |varying: &mut Vec<bool>, r: Reg, v: bool| {
            if v && !varying[r.index()] {
                varying[r.index()] = true;
                changed = true;
            }
        };
        for event in events {
            match event {
                Event::Instr(instr) => {
                    let Some(dst) = instr.dst() else { continue };
                    let v = match instr {
                        Instr::Int { .. } | Instr::IntOp { .. } => {
                            let mut any = false;
                            instr.for_each_use(|r| any |= varying[r.index()]);
                            any
                        }
                        _ => true,
                    };
                    set(&mut varying, dst, v);
                }
                Event::For { carried, .. } | Event::While { carried, .. } => {
                    carried.iter().for_each(|c| {
                        let v = varying[c.init.index()];
                        set(&mut varying, c.var, v);
                    });
                }
                Event::EndFor { carried, .. } | Event::EndWhile { carried } => {
                    carried.iter().for_each(|c| {
                        let v = varying[c.next.index()];
                        set(&mut varying, c.var, v);
                    });
                }
                Event::EndIf { choices } => choices.iter().for_each(|c| {
                    let v = varying[c.then.index()] || varying[c.otherwise.index()];
                    set(&mut varying, c.var, v);
                }),
                Event::Copy { .. } | Event::Test { .. } | Event::If { .. } | Event::Else { .. } => {}
            }
        }
        if !changed {
            return Some(varying);
        }
    }
    None
}
