//! Which elements of builds are computed where they are used, by cost (figure 7c says only that they may).
//!
//! In: a function, and what is dead in it. Out: the `get`s to be replaced by what they get. A build is taken
//! apart only if every use of it is a `get`, and then at all of them, so that it vanishes: if computing the
//! element at every `get`, as often as that runs, costs no more than computing the array, storing it and loading
//! from it. With one `get` a step of one loop over the array that is always so: vertical fusion. With a `get` in
//! a loop inside, elements would be computed again and again: the array stays, unless they cost nearly nothing.

use crate::cost;
use crate::rebuild::Plan;
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Function, VarId};

/// How many statements may be copied to more than one place.
const MAX_COPIED: usize = 32;
/// How many statements an element may have to be moved at all: what bounds the time that chains of builds take.
const MAX_MOVED: usize = 512;

#[derive(Clone, Default)]
struct Array {
    /// The number of loops around the build.
    loops: usize,
    /// What the build takes for an element, how many there are, how many statements an element has.
    built: Option<(f64, f64, usize)>,
    /// The `get`s: the variable, the loops between the build and it, how often it runs for each build.
    gets: Vec<(VarId, usize, f64)>,
    /// Whether it is used other than by a `get`.
    escapes: bool,
}

struct Uses<'a> {
    function: &'a Function,
    plan: &'a Plan,
    arrays: Vec<Array>,
    /// How often each of the open loops runs.
    loops: Vec<f64>,
}

/// Puts into `plan` the `get`s to fuse.
pub(crate) fn analyse(function: &Function, plan: &mut Plan) {
    let mut uses = Uses { function, plan, arrays: vec![Array::default(); function.vars.len()], loops: Vec::new() };
    uses.block(&function.body);
    let fuse: Vec<(VarId, usize)> =
        uses.arrays.iter().filter(|a| pays(a)).flat_map(|a| gets(a).collect::<Vec<_>>()).collect();
    plan.fuse.extend(fuse);
}

fn gets(array: &Array) -> impl Iterator<Item = (VarId, usize)> + '_ {
    array.gets.iter().map(|(var, loops, _)| (*var, *loops))
}

fn pays(array: &Array) -> bool {
    let Some((element, size, stmts)) = array.built else { return false };
    let limit = if array.gets.len() > 1 { MAX_COPIED } else { MAX_MOVED };
    if array.escapes || array.gets.is_empty() || stmts > limit {
        return false;
    }
    let runs: f64 = array.gets.iter().map(|(_, _, runs)| runs).sum();
    // Stored once, loaded at each get; a step of the loop besides.
    runs * element <= size * (element + 2.0) + runs
}

impl Uses<'_> {
    fn block(&mut self, block: &Block) {
        self.arrays[block.result.index()].escapes = true;
        for stmt in block.stmts.iter().filter(|stmt| !self.plan.dead.contains(&stmt.var)) {
            self.stmt(stmt.var, &stmt.expr);
        }
    }

    fn stmt(&mut self, var: VarId, expr: &Expr) {
        for operand in expr.operands() {
            match expr {
                Expr::Get { array, index, .. } if operand == *array && array != index => {
                    let around = self.arrays[array.index()].loops;
                    let between = self.loops.get(around..).unwrap_or(&[]);
                    let (count, runs) = (between.len(), between.iter().product());
                    self.arrays[array.index()].gets.push((var, count, runs));
                }
                _ => self.arrays[operand.index()].escapes = true,
            }
        }
        self.arrays[var.index()].loops = self.loops.len();
        let runs = match expr {
            Expr::Build { size, body, .. } => {
                let ty = |v: VarId| self.function.ty(v);
                let element = cost::block(body, &ty);
                self.arrays[var.index()].built = Some((element, cost::estimate(size), statements(body)));
                Some(cost::estimate(size))
            }
            Expr::Sum { count, .. } | Expr::Fold { count, .. } | Expr::Loop { count, .. } => {
                Some(cost::estimate(count))
            }
            // What differentiates its body keeps it as it is; a `while` may run often.
            Expr::While { .. } | Expr::Jvp { .. } | Expr::Vjp { .. } => Some(cost::LARGE),
            _ => None,
        };
        self.loops.extend(runs);
        for block in expr.blocks() {
            self.block(block);
        }
        if runs.is_some() {
            self.loops.pop();
        }
    }
}

fn statements(block: &Block) -> usize {
    block.stmts.iter().map(|stmt| 1 + stmt.expr.blocks().into_iter().map(statements).sum::<usize>()).sum()
}
