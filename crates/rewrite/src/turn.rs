//! Direction sinking: a loop over directions moves inside the loops that it contains.
//!
//! In: a function with `x = build k (fun d -> ...)` that makes an array for each of `k` directions, of which only
//! columns are read: `build n (fun i -> build k (fun d -> x[d][i]))`, the Jacobian by `k` inputs in forward mode. Out:
//! an equal function in which the loops in `x` are outside, and contain loops over the directions:
//!
//! ```text
//! build k (fun d -> let a = build n (fun i -> f i d) in build m (fun j -> g (a[at[j]]) d))
//! ```
//!
//! becomes `build k (fun d -> build m (fun j -> y[j][d]))` of
//!
//! ```text
//! a = build n (fun i -> build k (fun d -> f i d))
//! y = build m (fun j -> build k (fun d -> g (a[at[j]][d]) d))
//! ```
//!
//! Fusion then replaces the columns by `y`. The numbers of all directions are adjacent in memory, so that vectors of
//! them are loaded even at indices that are data, and values that do not depend on the direction are computed once.
//!
//! Every number is computed as before. A statement runs if it ran before, for the same directions or for all of them;
//! there is at least one, so no failure is added. Builds and branches are interchanged, no other loops, which carry a
//! state for each direction ([`crate::rules`] has `fold-of-builds` for them).
//!
//! Linear in the body for each value that several directions need in an array, in bodies of at most [`MAX_STATEMENTS`].

use crate::dependence::{Dependence, Sources};
use crate::{cost, walk};
use chainrule_base::Name;
use chainrule_ir::{Block, Builder, Expr, Function, Renaming, Size, Stmt, Type, VarId, type_of};
use chainrule_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Minimum number of directions; loops over fewer fill no vector.
const MIN_DIRECTIONS: i64 = 8;

/// Maximum number of statements of a body.
const MAX_STATEMENTS: i64 = 4_000;

/// Maximum number of interchanged loops of a function.
const MAX_LOOPS: usize = 16;

/// Source of the direction.
const DIRECTION: u64 = 1;

/// Returns `function` with direction loops sunk whose results are only read by columns, and their number; `None` if
/// there are none.
pub(crate) fn turned(function: &Function) -> Option<(Function, usize)> {
    let (mut found, mut times) = (None, 0);
    while times < MAX_LOOPS {
        let now: &Function = found.as_ref().unwrap_or(function);
        let Some(next) = (0..now.body.stmts.len()).find_map(|at| turn(now, at)) else { break };
        (found, times) = (Some(next), times + 1);
    }
    found.map(|found| (found, times))
}

/// Returns `function` with the loop at statement `at` sunk.
fn turn(function: &Function, at: usize) -> Option<Function> {
    let stmt = &function.body.stmts[at];
    let Expr::Build { size, index, body } = &stmt.expr else { return None };
    let Type::Array(_, element) = function.ty(stmt.var) else { return None };
    let enough = size.as_constant().is_some_and(|k| k >= MIN_DIRECTIONS);
    let is_array = matches!(**element, Type::Array(..)) && element.is_linear();
    let rest = &function.body.stmts[at + 1..];
    if !enough || !is_array || function.body.result == stmt.var || !computes(body) {
        return None;
    }
    if walk::statements(body) > MAX_STATEMENTS
        || !rest.iter().all(|other| takes_columns(function, other, stmt.var, size))
    {
        return None;
    }
    let mut sources = Dependence::new(&function.vars);
    sources.insert(*index, Sources::All(DIRECTION));
    sources.block(body)?;
    let mut turn = Turn {
        function,
        out: Builder::rewriting(function),
        directions: size.clone(),
        direction: *index,
        degree: degree(&cost::size_of_words(element)),
        sources,
        pending: std::iter::once(*index).collect(),
        alike: Renaming::new(),
        each: FxHashMap::default(),
        changed: Vec::new(),
        late: Vec::new(),
    };
    function.body.stmts[..at].iter().for_each(|stmt| turn.out.push(stmt.clone()));
    turn.out.set_span(stmt.span);
    let result = turn.block(body, None)?;
    // If no loop was interchanged, nothing is gained.
    if !turn.has_turned(&body.stmts) {
        return None;
    }
    let (element, sources) = (element.clone(), turn.sources.get(body.result));
    let columns = turn.out.build(size.clone(), |out, d| of_direction(out, result, &element, &sources, d));
    let mut renaming = Renaming::from_iter([(stmt.var, columns)]);
    let rest = Block { stmts: rest.to_vec(), result: function.body.result };
    let Turn { mut out, .. } = turn;
    out.set_span(None);
    let result = out.inline(&rest, &mut renaming);
    Some(out.finish(result))
}

/// Returns whether `block` contains operators or carried states: pure moves of numbers are already in the right order.
fn computes(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| {
        let itself = matches!(stmt.expr, Expr::Op(..) | Expr::Sum { .. } | Expr::Fold(_) | Expr::Loop(_));
        itself || stmt.expr.blocks().into_iter().any(computes)
    })
}

/// Returns whether `stmt` only reads single numbers of `array`, in innermost loops over the first index, which has
/// `count` values.
fn takes_columns(function: &Function, stmt: &Stmt, array: VarId, count: &Size) -> bool {
    // Checks `block`, the body of a build with this index if it makes numbers, inside `depth` loops.
    fn inside(function: &Function, block: &Block, of: Option<VarId>, depth: usize, wanted: (VarId, &Size)) -> bool {
        let (array, count) = wanted;
        let one = |stmt: &Stmt| {
            let column =
                matches!(stmt.expr, Expr::Get { array: whole, index, .. } if whole == array && of == Some(index));
            let mut uses = false;
            stmt.expr.for_each_operand(&mut |var| uses |= var == array);
            if uses && !(column && depth > 1) {
                return false;
            }
            match &stmt.expr {
                Expr::Build { size, index, body } => {
                    let innermost = size == count && *function.ty(body.result) == Type::Double;
                    inside(function, body, innermost.then_some(*index), depth + 1, wanted)
                }
                other => other.blocks().into_iter().all(|block| inside(function, block, None, depth + 1, wanted)),
            }
        };
        block.result != array && block.stmts.iter().all(one)
    }
    let alone = Block { stmts: vec![stmt.clone()], result: stmt.var };
    inside(function, &alone, None, 0, (array, count))
}

/// Returns the number of factors of a product of sizes, and the maximum for a sum.
fn degree(size: &Size) -> usize {
    size.terms().map(|(monomial, _)| monomial.len()).max().unwrap_or(0)
}

/// Writes the value for direction `d`, of type `ty`, of a value with all directions in place of each number that
/// depends on them.
fn of_direction(out: &mut Builder, each: VarId, ty: &Type, sources: &Sources, d: VarId) -> VarId {
    match ty {
        _ if sources.any() & DIRECTION == 0 => each,
        Type::Array(size, element) => out.build(size.clone(), |out, i| {
            let row = out.get_proved(each, i);
            of_direction(out, row, element, sources, d)
        }),
        Type::Tuple(fields, names) => {
            let parts: Vec<VarId> = (fields.iter().enumerate())
                .map(|(k, field)| {
                    let part = out.component(each, k);
                    of_direction(out, part, field, &sources.at(&[k]), d)
                })
                .collect();
            record(out, names.as_ref(), &parts)
        }
        Type::Double | Type::Int | Type::Bool => out.get_proved(each, d),
    }
}

/// Writer of the number at a path, for a direction, or for none.
type Number<'a> = &'a dyn Fn(&mut Builder, Option<VarId>, &[Step]) -> VarId;

/// Inverse of [`of_direction`]: writes the value of type `ty` with all directions in place of each number that depends
/// on them, each written by `number`; `path` is the current path.
fn of_all(
    out: &mut Builder,
    directions: &Size,
    (ty, sources): (&Type, &Sources),
    path: &mut Vec<Step>,
    number: Number<'_>,
) -> VarId {
    match ty {
        Type::Array(size, element) => out.build(size.clone(), |out, i| {
            path.push(Step::Element(i));
            let row = of_all(out, directions, (element, sources), path, number);
            path.pop();
            row
        }),
        Type::Tuple(fields, names) => {
            let mut parts = Vec::with_capacity(fields.len());
            for (k, field) in fields.iter().enumerate() {
                path.push(Step::Field(k));
                parts.push(of_all(out, directions, (field, &sources.at(&[k])), path, number));
                path.pop();
            }
            record(out, names.as_ref(), &parts)
        }
        _ if sources.any() & DIRECTION == 0 => number(out, None, path),
        Type::Double | Type::Int | Type::Bool => out.build(directions.clone(), |out, d| number(out, Some(d), path)),
    }
}

/// Writes the tuple of `parts`, or the record if its fields have names.
fn record(out: &mut Builder, names: Option<&Arc<[Name]>>, parts: &[VarId]) -> VarId {
    match names {
        Some(names) => out.record(names.clone(), parts),
        None => out.tuple(parts),
    }
}

/// Writes the part of `value` at `path`.
fn follow(out: &mut Builder, value: VarId, path: &[Step]) -> VarId {
    path.iter().fold(value, |value, step| match *step {
        Step::Element(i) => out.get_proved(value, i),
        Step::Field(k) => out.component(value, k),
    })
}

/// Returns whether the same numbers of a value of type `ty` depend on the direction in both.
fn is_same(ty: &Type, one: &Sources, other: &Sources) -> bool {
    match ty {
        Type::Array(_, element) => is_same(element, one, other),
        Type::Tuple(fields, _) => {
            (fields.iter().enumerate()).all(|(k, field)| is_same(field, &one.at(&[k]), &other.at(&[k])))
        }
        Type::Double | Type::Int | Type::Bool => one.any() & DIRECTION == other.any() & DIRECTION,
    }
}

/// Adds to `whole` the variables used in `stmts` other than by reading an element or a field, and those of which such a
/// variable is an element or a field.
// Uses come after definitions, so they are visited first.
fn used_whole(function: &Function, stmts: &[Stmt], whole: &mut FxHashSet<VarId>) {
    for stmt in stmts.iter().rev() {
        for block in stmt.expr.blocks() {
            whole.insert(block.result);
            used_whole(function, &block.stmts, whole);
        }
        match &stmt.expr {
            Expr::Get { array: from, .. } | Expr::Component(from, _) => {
                if whole.contains(&stmt.var) && *function.ty(stmt.var) != Type::Double {
                    whole.insert(*from);
                }
            }
            other => other.for_each_operand(&mut |var| {
                whole.insert(var);
            }),
        }
    }
}

/// A step of a path to a number in a value.
#[derive(Clone, Copy)]
enum Step {
    Element(VarId),
    Field(usize),
}

/// A loop being sunk.
struct Turn<'f> {
    function: &'f Function,
    out: Builder,
    directions: Size,
    direction: VarId,
    /// [`degree`] of a direction's result: no value of higher degree is stored for all directions.
    degree: usize,
    /// Numbers in variables of the old body that depend on the direction.
    sources: Dependence<'f>,
    /// The direction, deferred variables, and variables in `each`.
    pending: FxHashSet<VarId>,
    /// New names of the others.
    alike: Renaming,
    /// Values with all directions in place of each number that depends on them, in scope.
    each: FxHashMap<VarId, VarId>,
    /// Entries to be removed at the end of the block.
    changed: Vec<VarId>,
    /// Deferred statements of enclosing blocks, in order, which are written at their uses.
    late: Vec<&'f Stmt>,
}

impl<'f> Turn<'f> {
    fn depends(&self, var: VarId) -> bool {
        self.sources.get(var).any() & DIRECTION != 0
    }

    fn is_sized(&self, ty: &Type) -> bool {
        ty.sizes().iter().any(|size| self.is_pending(size))
    }

    fn is_pending(&self, size: &Size) -> bool {
        size.vars().iter().any(|var| self.pending.contains(var))
    }

    /// Checks that only numbers are stored for all directions, no more than those of the result.
    fn fits(&self, ty: &Type) -> Option<()> {
        (ty.is_linear() && degree(&cost::size_of_words(ty)) <= self.degree).then_some(())
    }

    fn has_turned(&self, stmts: &[Stmt]) -> bool {
        let turned = |stmt: &Stmt| matches!(stmt.expr, Expr::Build { .. }) && self.each.contains_key(&stmt.var);
        stmts.iter().any(turned)
    }

    /// Writes `block`; returns its result for all directions, with the varying numbers of `wanted`, if given.
    fn block(&mut self, block: &'f Block, wanted: Option<&Sources>) -> Option<VarId> {
        for stmt in &block.stmts {
            self.stmt(stmt)?;
        }
        let (result, own) = (self.all_of(block.result)?, self.sources.get(block.result));
        let ty = self.out.rename_type(self.function.ty(block.result), &self.alike);
        let Some(wanted) = wanted.filter(|wanted| !is_same(&ty, wanted, &own)) else { return Some(result) };
        let directions = self.directions.clone();
        Some(of_all(&mut self.out, &directions, (&ty, wanted), &mut Vec::new(), &|out, d, path| {
            let found = follow(out, result, path);
            let fields = path.iter().filter_map(|step| if let Step::Field(k) = step { Some(*k) } else { None });
            let depends = own.at(&fields.collect::<Vec<_>>()).any() & DIRECTION != 0;
            d.filter(|_| depends).map_or(found, |d| out.get_proved(found, d))
        }))
    }

    /// As [`Self::block`], into a nested block.
    fn nested(&mut self, block: &'f Block, wanted: &Sources) -> Option<Block> {
        let (n_late, n_changed) = (self.late.len(), self.changed.len());
        self.out.push_block();
        let result = self.block(block, Some(wanted))?;
        self.late.truncate(n_late);
        for var in self.changed.drain(n_changed..) {
            self.each.remove(&var);
        }
        Some(self.out.pop_block(result))
    }

    fn stmt(&mut self, stmt: &'f Stmt) -> Option<()> {
        let ty = self.function.ty(stmt.var);
        let mut is_ready = !self.is_sized(ty);
        walk::mentioned(&stmt.expr, &mut |var| is_ready &= !self.pending.contains(&var));
        if is_ready {
            let alone = Block { stmts: vec![stmt.clone()], result: stmt.var };
            self.out.inline(&alone, &mut self.alike);
            return Some(());
        }
        self.pending.insert(stmt.var);
        if self.is_sized(ty) {
            return None;
        }
        let sources = self.sources.get(stmt.var);
        let has_all = |this: &Self, var: &VarId| this.each.contains_key(var);
        let made = match &stmt.expr {
            Expr::Build { size, index, body } if !self.is_pending(size) => {
                self.fits(ty)?;
                self.settle(&stmt.expr)?;
                let size = self.out.rename_size(size, &self.alike);
                let new = self.out.fresh(Type::Int);
                self.alike.insert(*index, new);
                let body = self.nested(body, &sources)?;
                self.out.compute(Expr::Build { size, index: new, body })
            }
            Expr::If { condition, then, otherwise }
                if !self.pending.contains(condition) && matches!(ty, Type::Array(..)) =>
            {
                self.settle(&stmt.expr)?;
                let condition = self.alike.get(*condition);
                let (then, otherwise) = (self.nested(then, &sources)?, self.nested(otherwise, &sources)?);
                self.out.compute(Expr::If { condition, then, otherwise })
            }
            Expr::Get { array, index, proved } if has_all(self, array) && !self.pending.contains(index) => {
                let (array, index) = (self.each[array], self.alike.get(*index));
                self.out.compute(Expr::Get { array, index, proved: *proved })
            }
            Expr::Component(tuple, k) if has_all(self, tuple) => self.out.component(self.each[tuple], *k),
            Expr::Tuple(fields) if fields.iter().any(|field| has_all(self, field)) => {
                let fields = fields.iter().map(|field| self.all_of(*field)).collect::<Option<Vec<_>>>()?;
                let Type::Tuple(_, names) = ty else { return None };
                record(&mut self.out, names.as_ref(), &fields)
            }
            _ => {
                self.late.push(stmt);
                return Some(());
            }
        };
        self.put(stmt.var, made);
        Some(())
    }

    fn put(&mut self, var: VarId, all: VarId) {
        self.each.insert(var, all);
        self.changed.push(var);
    }

    /// Writes, for all directions, the deferred statements that `expr` needs. Integers and truth values are written at
    /// their uses.
    fn settle(&mut self, expr: &Expr) -> Option<()> {
        let mut wanted = Vec::new();
        walk::mentioned(expr, &mut |var| wanted.push(var));
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|var| {
            let is_open = !self.each.contains_key(var) && self.function.ty(*var).has_double();
            is_open && self.late.iter().any(|stmt| stmt.var == *var)
        });
        let (numbers, arrays): (Vec<VarId>, Vec<VarId>) =
            wanted.into_iter().partition(|var| *self.function.ty(*var) == Type::Double);
        // Together, because they may share work.
        let (own, alike): (Vec<VarId>, Vec<VarId>) = numbers.into_iter().partition(|var| self.depends(*var));
        if !alike.is_empty() {
            let all = self.for_none(&alike);
            alike.iter().zip(all).for_each(|(var, all)| self.put(*var, all));
        }
        if let [_, _, ..] = own[..] {
            let together = self.for_each(&own);
            let directions = self.directions.clone();
            for (k, var) in own.iter().enumerate() {
                let all = self.out.build(directions.clone(), |out, d| {
                    let values = out.get_proved(together, d);
                    out.component(values, k)
                });
                self.put(*var, all);
            }
        }
        own.iter().chain(&arrays).try_for_each(|var| self.all_of(*var).map(|_| ()))
    }

    /// Writes `vars`, which are equal for all directions, for the first one.
    fn for_none(&mut self, vars: &[VarId]) -> Vec<VarId> {
        let first = self.out.int(0);
        let stmts = self.late_for(vars);
        self.write(stmts, vars, first, Renaming::new())
    }

    /// Writes an array of the values of `vars` for each direction; of tuples, if there are several. If the values only
    /// depend on whether the direction is one of a few numbers, the common value of all others is written once.
    fn for_each(&mut self, vars: &[VarId]) -> VarId {
        let stmts = self.late_for(vars);
        let masks = self.masks(&stmts);
        let others = (!masks.is_empty()).then(|| {
            let (no, first) = (self.out.bool(false), self.out.int(0));
            let rest = stmts.iter().filter(|stmt| !masks.contains_key(&stmt.var)).cloned().collect();
            let values = self.write(rest, vars, first, masks.keys().map(|mask| (*mask, no)).collect());
            self.together(&values)
        });
        let d = self.out.fresh(Type::Int);
        self.out.push_block();
        let value = match others {
            None => {
                let values = self.write(stmts, vars, d, Renaming::new());
                self.together(&values)
            }
            Some(others) => {
                let hit: Vec<VarId> = masks.values().map(|number| self.out.op(Op::Eq, &[d, *number])).collect();
                let any = hit.into_iter().reduce(|a, b| self.out.op(Op::Or, &[a, b])).unwrap_or(d);
                self.out.push_block();
                let values = self.write(stmts, vars, d, Renaming::new());
                let value = self.together(&values);
                let then = self.out.pop_block(value);
                let otherwise = Block { stmts: Vec::new(), result: others };
                self.out.compute(Expr::If { condition: any, then, otherwise })
            }
        };
        let body = self.out.pop_block(value);
        self.out.compute(Expr::Build { size: self.directions.clone(), index: d, body })
    }

    fn together(&mut self, values: &[VarId]) -> VarId {
        if let [one] = values { *one } else { self.out.tuple(values) }
    }

    /// Returns the comparisons of the direction with a number, and that number, if `stmts` otherwise do not depend on
    /// the direction or carry states, and the numbers are fewer than half of the directions.
    fn masks(&self, stmts: &[Stmt]) -> BTreeMap<VarId, VarId> {
        let mut masks = BTreeMap::new();
        for stmt in stmts {
            if let Expr::Op(Op::Eq, args) = &stmt.expr
                && let [a, b] = args[..]
            {
                let number = if a == self.direction { b } else { a };
                if (a == self.direction || b == self.direction) && !self.pending.contains(&number) {
                    masks.insert(stmt.var, self.alike.get(number));
                }
            }
        }
        let rest = || stmts.iter().filter(|stmt| !masks.contains_key(&stmt.var));
        let mut by_nothing_else = true;
        for stmt in rest() {
            walk::mentioned(&stmt.expr, &mut |var| {
                by_nothing_else &= var != self.direction && !(self.each.contains_key(&var) && self.depends(var));
            });
        }
        let few = self.directions.as_constant().is_some_and(|k| 2 * masks.len() as i64 + 2 <= k);
        let steps = rest().any(|stmt| matches!(stmt.expr, Expr::Fold(_) | Expr::Loop(_) | Expr::While(_)));
        if few && steps && by_nothing_else { masks } else { BTreeMap::new() }
    }

    /// Writes `var` with all directions in place of each number that depends on them.
    fn all_of(&mut self, var: VarId) -> Option<VarId> {
        if let Some(all) = self.each.get(&var) {
            return Some(*all);
        }
        if !self.pending.contains(&var) {
            return Some(self.alike.get(var));
        }
        let ty = self.out.rename_type(self.function.ty(var), &self.alike);
        self.fits(&ty)?;
        let (sources, directions) = (self.sources.get(var), self.directions.clone());
        let all = if sources.any() & DIRECTION == 0 {
            self.for_none(&[var])[0]
        } else {
            let all = self.for_each(&[var]);
            match ty {
                Type::Double => all,
                _ => of_all(&mut self.out, &directions, (&ty, &sources), &mut Vec::new(), &|out, d, path| {
                    let d = d.unwrap_or_else(|| out.int(0));
                    let one = out.get_proved(all, d);
                    follow(out, one, path)
                }),
            }
        };
        self.put(var, all);
        Some(all)
    }

    /// Returns the deferred statements that `vars` need, in order.
    fn late_for(&self, vars: &[VarId]) -> Vec<Stmt> {
        let mut wanted: FxHashSet<VarId> = vars.iter().copied().collect();
        let mut stmts: Vec<Stmt> = Vec::new();
        for stmt in self.late.iter().rev() {
            if wanted.contains(&stmt.var) && !self.each.contains_key(&stmt.var) {
                walk::mentioned(&stmt.expr, &mut |var| {
                    wanted.insert(var);
                });
                self.function.ty(stmt.var).for_each_size(&mut |size| wanted.extend(size.vars()));
                stmts.push((*stmt).clone());
            }
        }
        stmts.reverse();
        stmts
    }

    /// Writes `stmts`, the deferred statements that `vars` need, for direction `d`, with variables replaced by
    /// `renaming`; returns the new `vars`.
    fn write(&mut self, mut stmts: Vec<Stmt>, vars: &[VarId], d: VarId, mut renaming: Renaming) -> Vec<VarId> {
        let mut whole: FxHashSet<VarId> = vars.iter().copied().collect();
        used_whole(self.function, &stmts, &mut whole);
        self.take_directly(&mut stmts, &mut self.each.clone(), &whole, d);
        // Variables that are still needed as a whole, for one direction.
        let block = Block { stmts, result: d };
        let mut wanted: Vec<VarId> = vars.to_vec();
        walk::mentioned_in(&block, &mut |var| wanted.push(var));
        wanted.sort_unstable();
        wanted.dedup();
        renaming.insert(self.direction, d);
        for var in wanted {
            if let Some(all) = self.each.get(&var).copied() {
                let ty = self.out.rename_type(self.function.ty(var), &self.alike);
                let one = of_direction(&mut self.out, all, &ty, &self.sources.get(var), d);
                renaming.insert(var, one);
            } else if !self.pending.contains(&var) {
                renaming.insert(var, self.alike.get(var));
            }
        }
        self.out.inline(&block, &mut renaming);
        vars.iter().map(|var| renaming.get(*var)).collect()
    }

    /// Makes `stmts` read elements for direction `d` from the value with all directions, `each`, instead of from a copy
    /// for that direction; except for variables used as a `whole`.
    fn take_directly(
        &mut self,
        stmts: &mut Vec<Stmt>,
        each: &mut FxHashMap<VarId, VarId>,
        whole: &FxHashSet<VarId>,
        d: VarId,
    ) {
        let mut made = Vec::with_capacity(stmts.len());
        for mut stmt in stmts.drain(..) {
            let taken = match &stmt.expr {
                Expr::Get { array, index, proved } => {
                    each.get(array).map(|all| Expr::Get { array: *all, index: *index, proved: *proved })
                }
                Expr::Component(tuple, k) => each.get(tuple).map(|all| Expr::Component(*all, *k)),
                _ => None,
            };
            let is_number = *self.function.ty(stmt.var) == Type::Double;
            if let Some(expr) = taken.filter(|_| is_number || !whole.contains(&stmt.var)) {
                let ty = type_of(&expr, &self.out.vars).unwrap_or(Type::Double);
                if ty == Type::Double {
                    stmt.expr = expr;
                } else {
                    let all = self.out.fresh(ty);
                    made.push(Stmt { var: all, expr, span: stmt.span });
                    if !is_number {
                        each.insert(stmt.var, all);
                        continue;
                    }
                    stmt.expr = Expr::Get { array: all, index: d, proved: true };
                }
            }
            for block in stmt.expr.blocks_mut() {
                self.take_directly(&mut block.stmts, each, whole, d);
            }
            made.push(stmt);
        }
        *stmts = made;
    }
}
