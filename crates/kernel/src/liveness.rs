//! Lives of registers, for backends: from where to where a register's slot is its own.
//!
//! In: the events of a kernel, numbered from 1. Out: for each register the events of its definition
//! and of its last use. What is defined outside a loop and used inside lives to the loop's end,
//! because the next iteration uses it again.

use crate::events::Event;
use crate::kernel::{Instr, Reg};
use chainrule_base::{Id, Poly};

/// The life of each register, by index; a position is the number of an event, 0 is before the first.
pub struct Liveness {
    /// Where it is defined.
    pub def: Vec<u32>,
    /// Where it is used last; not before `def`.
    pub last: Vec<u32>,
    /// For the opening event of a loop, its closing event; 0 otherwise.
    pub end_of_loop: Vec<u32>,
}

impl Liveness {
    /// The lives of registers `0..n_regs` in `events`. Linear but for the depth of loops.
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
                Event::Copy { to, from, len } => {
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
                // The choice's slot is taken where the first branch ends, because both branches write it.
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

    /// A use at `at` inside the loops that open at `open`, ascending.
    fn use_at(&mut self, r: Reg, at: u32, open: &[u32]) {
        let def = self.def[r.index()];
        let outermost = open.partition_point(|begin| *begin < def);
        let until = open.get(outermost).map_or(at, |begin| self.end_of_loop[*begin as usize]);
        self.last[r.index()] = self.last[r.index()].max(until);
    }
}

/// Which registers may differ from point to point of a batch that shares sizes and integer scalars
/// that are sizes; `None` when that does not settle in a few rounds.
///
/// Only integers matter: reals always may. Loads and truth values of reals do; what is computed from
/// them does.
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
