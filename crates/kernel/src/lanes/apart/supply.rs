//! Values that pieces of an iteration need from each other: recomputed, or saved for each lane.

use super::{Addition, Piece, defined, uses};
use crate::kernel::{BufferId, Instr, Reg, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// Values that pieces get from other pieces.
#[derive(Default)]
pub(super) struct Supply {
    /// Instructions to recompute, in program order.
    pub(super) again: Vec<Instr>,
    /// Index in `again` of the instruction that defines a register.
    made: BTreeMap<Reg, usize>,
    /// Slots of the registers that are saved.
    pub(super) places: BTreeMap<Reg, i64>,
    /// Piece that defines each number; `None` for values carried by loops around pieces.
    home: BTreeMap<Reg, Option<usize>>,
    /// Number of runs.
    runs: usize,
}

/// Values that a piece needs from other pieces.
#[derive(Default)]
pub(super) struct Needs {
    /// Instructions to recompute, by their indices in [`Supply::again`].
    pub(super) again: BTreeSet<usize>,
    /// Numbers to save.
    pub(super) kept: BTreeSet<Reg>,
}

impl Supply {
    /// Records the definitions of the pieces. `stays` returns whether a buffer is not written in the loop.
    pub(super) fn define(&mut self, pieces: &[Piece], real: &impl Fn(Reg) -> bool, stays: &impl Fn(BufferId) -> bool) {
        for piece in pieces {
            match piece {
                Piece::Run { body, .. } => {
                    let code = body.iter().filter_map(|stmt| match stmt {
                        Stmt::Straight(code) => Some(code),
                        _ => None,
                    });
                    for instr in code.flatten() {
                        let is_again = match instr {
                            Instr::Const { .. }
                            | Instr::Int { .. }
                            | Instr::IntOp { .. }
                            | Instr::ToReal { .. }
                            | Instr::ToInt { .. } => true,
                            Instr::Load { buffer, .. } => stays(*buffer),
                            Instr::Op { dst, .. } => !real(*dst),
                            _ => false,
                        };
                        if let Some(dst) = instr.dst().filter(|_| is_again) {
                            self.made.insert(dst, self.again.len());
                            self.again.push(instr.clone());
                        }
                    }
                    let run = self.runs;
                    self.home.extend(defined(body).map(|r| (r, Some(run))));
                    self.runs += 1;
                }
                Piece::Around { carried, body, .. } => {
                    self.home.extend(carried.iter().map(|c| (c.var, None)));
                    self.define(body, real, stays);
                }
                Piece::Sums | Piece::Total(_) => {}
            }
        }
    }

    /// Returns the needs of code that reads `wanted`. `has` returns whether a register is available.
    pub(super) fn needs(&self, wanted: Vec<Reg>, has: impl Fn(Reg) -> bool) -> Needs {
        let (mut needs, mut todo) = (Needs::default(), wanted);
        while let Some(r) = todo.pop() {
            if has(r) {
                continue;
            }
            match self.made.get(&r) {
                Some(at) => {
                    if needs.again.insert(*at) {
                        self.again[*at].for_each_use(|r| todo.push(r));
                    }
                }
                None => {
                    if self.home.contains_key(&r) {
                        needs.kept.insert(r);
                    }
                }
            }
        }
        needs
    }

    /// Returns whether a loop around pieces carries `r`.
    pub(super) fn is_carried(&self, r: Reg) -> bool {
        self.home.get(&r).is_some_and(Option::is_none)
    }

    /// Returns the needs of a run.
    pub(super) fn of_run(&self, run: usize, body: &[Stmt]) -> Needs {
        let mut wanted = Vec::new();
        uses(body, &mut |r| wanted.push(r));
        self.needs(wanted, |r| self.home.get(&r) == Some(&Some(run)))
    }

    /// Returns the needs of an update of a common element.
    pub(super) fn of_total(&self, addition: &Addition) -> Needs {
        let mut wanted = Vec::new();
        addition.code.iter().for_each(|instr| instr.for_each_use(|r| wanted.push(r)));
        self.needs(wanted, |_| false)
    }

    /// Assigns slots to the saved numbers.
    pub(super) fn place(&mut self, pieces: &[Piece], run: &mut usize) {
        let mut kept = BTreeSet::new();
        for piece in pieces {
            match piece {
                Piece::Run { body, .. } => {
                    kept.extend(self.of_run(*run, body).kept);
                    *run += 1;
                }
                Piece::Around { carried, body, .. } => {
                    let moved: Vec<Reg> = carried.iter().flat_map(|c| [c.init, c.next]).collect();
                    kept.extend(self.needs(moved, |_| false).kept);
                    kept.extend(carried.iter().map(|c| c.var));
                    self.place(body, run);
                }
                Piece::Sums => {}
                Piece::Total(addition) => kept.extend(self.of_total(addition).kept),
            }
        }
        for r in kept {
            let next = self.places.len() as i64;
            self.places.entry(r).or_insert(next);
        }
    }
}
