//! Construction of the pattern program and the values program.
//!
//! In: a function without derivatives, and the differentiation parameters. Out: a [`Sparsity`].
//!
//! Each term becomes a loop nest whose body is the derivative of the term's block by its perturbations, at zero: a
//! Jacobian by forward or reverse mode, depending on the numbers of rows and columns, or a Hessian. Both programs first
//! compute the integers over which extents are expressed.

use super::budget::{Budget, MAX_GATHERS, REASON};
use super::degree;
use super::gather::{Extents, Gather, Gathering, Guard};
use super::indices::{Copies, Indices};
use super::terms::{Term, Terms};
use super::{BLOCK, Form, GatherShape, LeafShape, SizeTable, Sparsity, Step, TermShape, double_leaves, limited};
use crate::activity::{Activities, Activity};
use crate::asked::{self, Asked, By, Leaf, doubles};
use crate::{Mode, Part, custom, tidy};
use chainrule_base::{Diagnostics, Name};
use chainrule_ir::rows::Way;
use chainrule_ir::{Block, Builder, Expr, Function, Size, Type, VarId};
use chainrule_ops::Op;

/// Index of a gather that is not read.
pub(crate) const ABSENT: i64 = -(1 << 40);

/// Maximum number of doubles of a row of blocks that is emitted as one array.
const MAX_TOGETHER: i64 = 4 * BLOCK;

/// Term with its gathers.
struct Prepared {
    loops: Vec<(VarId, Size)>,
    fields: Vec<usize>,
    block: Block,
    gathers: Vec<Gather>,
    root: usize,
}

/// Returns the sparse derivative `part` of `function` by `by`.
pub(crate) fn sparsity(function: &Function, by: &[VarId], mode: Mode, part: Part) -> Result<Sparsity, Diagnostics> {
    let mut asked = Asked::new(function, mode);
    let (mut indices, mut extents) = (Indices::of(function), Extents::default());
    for size in &function.sizes {
        extents.known.insert(*size);
        extents.naturals.insert(*size);
    }
    for param in &function.params {
        if *function.ty(*param) == Type::Int {
            extents.known.insert(*param);
        }
    }
    let mut activities = Activities::default();
    activities.analyse(&function.vars, by, &function.body);
    let is_active = |var: VarId| *activities.get(var) != Activity::Inactive;
    let mut lost = Diagnostics::new();
    for (var, span) in custom::captured(&function.body, &is_active) {
        lost.push(custom::captures(&function.vars, var, span));
    }
    lost.into_result(())?;
    let out = &mut asked.out.builder;
    let terms = Terms::new(out, function);
    let (terms, roots) = if part == Part::Hessian { terms.of_scalar(&is_active, &extents) } else { terms.of_result() };
    let mut search = Search { out, indices: &mut indices, extents: &extents, by, part, spent: 0 };
    let mut prepared: Vec<Prepared> = Vec::with_capacity(terms.len());
    let mut is_whole = vec![false; roots.len()];
    for term in terms {
        let root = term.root;
        if is_whole[root] {
            continue;
        }
        match search.term(term) {
            Ok(term) => prepared.push(term),
            Err(Whole(why)) => {
                is_whole[root] = true;
                prepared.retain(|term| term.root != root);
                prepared.push(search.whole(roots[root].whole(search.out, root), why));
            }
        }
    }
    prepared.retain(|term| !term.gathers.is_empty());
    let shapes = Shapes::new(function, by, &extents);
    shapes.sparsity(asked, &indices, &prepared, part)
}

/// Signal that the root of a term is to be differentiated as a whole, with the reason unless the derivative is dense
/// anyway.
struct Whole(Option<&'static str>);

/// Search for the gathers of all terms.
struct Search<'a> {
    out: &'a mut Builder,
    indices: &'a mut Indices,
    extents: &'a Extents,
    by: &'a [VarId],
    part: Part,
    /// Budget that the terms so far have spent.
    spent: u64,
}

impl Search<'_> {
    /// Returns the term with its gathers.
    fn term(&mut self, mut term: Term) -> Result<Prepared, Whole> {
        tidy::Tidier::default().block(&self.out.vars, &mut term.block);
        let mut loops = Vec::with_capacity(term.loops.len());
        let mut renaming = chainrule_ir::Renaming::new();
        for (counter, size) in term.loops.iter().rev() {
            let fresh = self.out.fresh(Type::Int);
            renaming.insert(*counter, fresh);
            let extent = match (self.part, self.extents.of(size)) {
                // The extent of a build is not negative.
                (Part::Jacobian, _) | (_, None) => size.clone(),
                (_, Some((extent, is_exact))) => {
                    if !is_exact {
                        guard(self.out, *counter, size, &mut term.block);
                    }
                    extent
                }
            };
            self.indices.counter(fresh, &extent);
            loops.insert(0, (fresh, extent));
        }
        let budget = Budget::new(loops.iter().map(|(_, size)| size), self.spent);
        let block = self.out.copy_block(&term.block, &mut renaming);
        let mut gathering = Gathering::new(self.out, self.indices, self.extents, self.by, budget);
        let block = gathering.term(block).ok_or(Whole(Some(REASON)))?;
        let (spent, gathers) = (gathering.spent(), gathering.gathers);
        if self.part == Part::Hessian {
            self.not_dense(&loops, &gathers)?;
        }
        self.spent = spent;
        Ok(self.prepared(loops, term.fields, block, gathers, term.root))
    }

    /// Rejects a term in these loops if its Hessians are together larger than the dense one, or if its code is too
    /// large.
    fn not_dense(&self, loops: &[(VarId, Size)], gathers: &[Gather]) -> Result<(), Whole> {
        if gathers.len() > MAX_GATHERS {
            return Err(Whole(Some(REASON)));
        }
        let blocks = degree::union(gathers.iter().map(|gather| doubles(self.out.ty(gather.perturbation))));
        let all = degree::union(self.by.iter().map(|param| doubles(self.out.ty(*param))));
        let extents = loops.iter().map(|(_, size)| degree::monomials(size));
        let sparse =
            extents.chain([blocks.clone(), blocks]).fold(degree::one(), |all, next| degree::product(&all, &next));
        if degree::is_below(&degree::product(&all, &all), &sparse) {
            return Err(Whole(gathers.iter().find_map(|gather| gather.whole)));
        }
        Ok(())
    }

    /// Returns the term with each argument as a whole gather.
    fn whole(&mut self, mut term: Term, why: Option<&'static str>) -> Prepared {
        tidy::Tidier::default().block(&self.out.vars, &mut term.block);
        let mut gathering = Gathering::new(self.out, self.indices, self.extents, self.by, Budget::default());
        let block = gathering.whole(&term.block, self.by, why);
        let gathers = gathering.gathers;
        self.prepared(Vec::new(), term.fields, block, gathers, term.root)
    }

    fn prepared(
        &self,
        loops: Vec<(VarId, Size)>,
        fields: Vec<usize>,
        block: Block,
        mut gathers: Vec<Gather>,
        root: usize,
    ) -> Prepared {
        gathers.sort_by_key(|gather| self.by.iter().position(|param| *param == gather.param));
        Prepared { loops, fields, block, gathers, root }
    }
}

/// Makes `block` conditional on `counter < count`, and zero elsewhere.
fn guard(out: &mut Builder, counter: VarId, count: &Size, block: &mut Block) {
    let zero = out.block(|out| out.real(0.0));
    let then = std::mem::replace(block, Block { stmts: Vec::new(), result: block.result });
    let whole = out.block(|out| {
        let count = out.size(count.clone());
        let condition = out.op(Op::Lt, &[counter, count]);
        out.compute(Expr::If { condition, then, otherwise: zero })
    });
    *block = whole;
}

/// Meaning of the programs' results, as it is determined.
struct Shapes<'f> {
    function: &'f Function,
    extents: &'f Extents,
    sizes: SizeTable,
    rows: Vec<(Vec<usize>, LeafShape)>,
    columns: Vec<(VarId, Vec<usize>, LeafShape)>,
    notes: Vec<String>,
}

impl<'f> Shapes<'f> {
    fn new(function: &'f Function, by: &[VarId], extents: &'f Extents) -> Self {
        let mut sizes = SizeTable::default();
        // Ensures that there is at least one size.
        sizes.number(&Size::constant(1));
        let mut leaves = |ty: &Type| -> Vec<(Vec<usize>, LeafShape)> {
            let shape =
                |(fields, extents): (Vec<usize>, Vec<Size>)| (fields, LeafShape { extents: sizes.numbers(&extents) });
            double_leaves(ty).into_iter().map(shape).collect()
        };
        let rows = leaves(function.result_type());
        let mut columns = Vec::new();
        for param in by {
            let all = leaves(function.ty(*param));
            columns.extend(all.into_iter().map(|(fields, leaf)| (*param, fields, leaf)));
        }
        Self { function, extents, sizes, rows, columns, notes: Vec::new() }
    }

    fn sparsity(
        mut self,
        mut asked: Asked,
        indices: &Indices,
        terms: &[Prepared],
        part: Part,
    ) -> Result<Sparsity, Diagnostics> {
        let mut shapes = Vec::with_capacity(terms.len());
        let mut results = Vec::with_capacity(terms.len());
        for term in terms {
            let (form, value) = emit(&mut asked, term, part);
            results.push(value);
            shapes.push(self.term(&asked.out.builder, term, form));
        }
        let result = match results.as_slice() {
            [] => asked.out.real(0.0),
            [one] => *one,
            all => asked.out.builder.tuple(all),
        };
        let mut values = asked.out.finish(result);
        values.name = Name::from(format!("{}_values", self.function.name));
        let mut pattern = Builder::rewriting(&values);
        let known = |size: &Size| size.vars().iter().all(|var| self.extents.known.contains(var));
        if !self.sizes.sizes.iter().all(known) {
            return Err(limited(self.function, "an extent of its result depends on doubles"));
        }
        let sizes: Vec<VarId> = self.sizes.sizes.iter().map(|size| pattern.size(size.clone())).collect();
        let mut outputs = vec![pattern.array(&sizes)];
        for (term, shape) in terms.iter().zip(&mut shapes) {
            for (gather, shape) in term.gathers.iter().zip(&mut shape.gathers) {
                if shape.n_indices > 0 {
                    let inside = self.inside(&mut pattern, indices, &term.loops, gather);
                    outputs.push(index_array(&mut pattern, indices, &term.loops, gather, &inside));
                    shape.output = Some(outputs.len() - 1);
                }
            }
        }
        let result = match outputs.as_slice() {
            [one] => *one,
            all => pattern.tuple(all),
        };
        let mut pattern = pattern.finish(result);
        pattern.name = Name::from(format!("{}_pattern", self.function.name));
        tidy::function(&mut pattern);
        let columns: Vec<LeafShape> = self.columns.into_iter().map(|(_, _, leaf)| leaf).collect();
        let rows = match part {
            Part::Hessian => columns.clone(),
            _ => self.rows.into_iter().map(|(_, leaf)| leaf).collect(),
        };
        let n_sizes = self.sizes.sizes.len();
        Ok(Sparsity { pattern, values, terms: shapes, rows, columns, n_sizes, notes: self.notes })
    }

    /// Returns the treatment of each index of `gather`. Emits the arrays of numbers that the checks read.
    fn inside(&self, out: &mut Builder, indices: &Indices, loops: &[(VarId, Size)], gather: &Gather) -> Vec<Inside> {
        let is_read = guards(out, indices, loops, gather).1;
        let mut ty = self.function.ty(gather.param).clone();
        let mut all = Vec::new();
        for (k, step) in gather.path.iter().enumerate() {
            ty = match (step, ty) {
                (Step::Field(field), Type::Tuple(fields, _)) if *field < fields.len() => fields[*field].clone(),
                (Step::Index(index), Type::Array(len, element)) => {
                    all.push(if indices.is_inside(out, *index, &len) {
                        Inside::Proved
                    } else if is_read {
                        let numbers = out.build(len, |_, index| index);
                        if k == 0 {
                            out.name(numbers, &crate::request::param_name(self.function, gather.param));
                        }
                        Inside::Checked(numbers)
                    } else {
                        Inside::Tested(len)
                    });
                    *element
                }
                (_, ty) => ty,
            };
        }
        all
    }

    fn term(&mut self, out: &Builder, term: &Prepared, form: Form) -> TermShape {
        let loops: Vec<Size> = term.loops.iter().map(|(_, size)| size.clone()).collect();
        let mut rows = Vec::new();
        if form != Form::Hessian {
            for (fields, extents) in double_leaves(out.ty(term.block.result)) {
                let path: Vec<usize> = term.fields.iter().chain(&fields).copied().collect();
                if let Some(leaf) = self.rows.iter().position(|(fields, _)| *fields == path) {
                    rows.push((leaf, self.sizes.numbers(&extents)));
                }
            }
        }
        let gathers = term.gathers.iter().map(|gather| self.gather(gather)).collect();
        TermShape { loops: self.sizes.numbers(&loops), rows, gathers, form }
    }

    fn gather(&mut self, gather: &Gather) -> GatherShape {
        if let Some(why) = gather.whole {
            let note = format!("`{}` {why}", crate::request::param_name(self.function, gather.param));
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        let field = |step: &Step| if let Step::Field(k) = step { Some(*k) } else { None };
        let prefix: Vec<usize> = gather.path.iter().filter_map(field).collect();
        let mut leaves = Vec::new();
        for (fields, extents) in double_leaves(&gather.ty) {
            let path: Vec<usize> = prefix.iter().chain(&fields).copied().collect();
            let same = |(param, fields, _): &(VarId, Vec<usize>, LeafShape)| *param == gather.param && *fields == path;
            if let Some(leaf) = self.columns.iter().position(same) {
                leaves.push((leaf, self.sizes.numbers(&extents)));
            }
        }
        let dims: Vec<Size> = gather.dims.iter().map(|dim| dim.extent.clone()).collect();
        GatherShape {
            dims: self.sizes.numbers(&dims),
            n_indices: gather.path.iter().filter(|step| matches!(step, Step::Index(_))).count(),
            output: None,
            leaves,
        }
    }
}

/// Returns the conditions under which the indices of `gather` are computed, in terms of its counters, and whether the
/// list is complete.
fn guards(out: &Builder, indices: &Indices, loops: &[(VarId, Size)], gather: &Gather) -> (Vec<(VarId, bool)>, bool) {
    let counters = || loops.iter().map(|(counter, _)| *counter).chain(gather.dims.iter().map(|dim| dim.counter));
    let is_counter = |var: &VarId| counters().any(|counter| counter == *var);
    let (mut kept, mut certain) = (Vec::new(), true);
    for guard in &gather.guards {
        match guard {
            Guard::If(condition, holds)
                if indices.deps(*condition).is_some_and(|deps| deps.iter().all(is_counter))
                    && (certain || indices.is_total(out, *condition)) =>
            {
                kept.push((*condition, *holds));
            }
            _ => certain = false,
        }
    }
    (kept, certain)
}

/// Treatment of an index that may be out of range.
enum Inside {
    /// It is in range.
    Proved,
    /// The pattern program fails, as the function does: it reads this array of the numbers in range.
    Checked(VarId),
    /// The function may not read there: the gather is absent unless the index is below this extent.
    Tested(Size),
}

/// Emits `[loops][inner loops]` the indices of `gather`.
fn index_array(
    out: &mut Builder,
    indices: &Indices,
    loops: &[(VarId, Size)],
    gather: &Gather,
    inside: &[Inside],
) -> VarId {
    let mut copies = Copies::default();
    let mut open = Vec::new();
    let dims = gather.dims.iter().map(|dim| (dim.counter, dim.extent.clone()));
    for (counter, size) in loops.iter().cloned().chain(dims) {
        let fresh = out.fresh(Type::Int);
        copies.renaming.insert(counter, fresh);
        out.push_block();
        open.push((fresh, size));
    }
    let mut conditions = Vec::new();
    for dim in &gather.dims {
        if let Some(count) = &dim.count {
            let (counter, count) = (copies.renaming.get(dim.counter), out.size(count.clone()));
            conditions.push((Condition::Ready(out.op(Op::Lt, &[counter, count])), true));
        }
    }
    conditions
        .extend(guards(out, indices, loops, gather).0.into_iter().map(|(var, holds)| (Condition::Copied(var), holds)));
    let mut result = cell(out, indices, &mut copies, &conditions, gather, inside);
    for (index, size) in open.into_iter().rev() {
        let body = out.pop_block(result);
        result = out.compute(Expr::Build { size, index, body });
    }
    result
}

#[derive(Clone, Copy)]
enum Condition {
    /// Computed in this program.
    Ready(VarId),
    /// To be copied from the term.
    Copied(VarId),
}

// Recursive on the nesting of branches only.
fn cell(
    out: &mut Builder,
    indices: &Indices,
    copies: &mut Copies,
    guards: &[(Condition, bool)],
    gather: &Gather,
    inside: &[Inside],
) -> VarId {
    let steps = gather.path.iter().filter_map(|step| if let Step::Index(index) = step { Some(*index) } else { None });
    let Some(((condition, holds), rest)) = guards.split_first() else {
        let mut all: Vec<VarId> = steps.map(|index| indices.copy(out, copies, index)).collect();
        let span = out.set_span(gather.span);
        let mut tests = Vec::new();
        for (index, inside) in all.iter_mut().zip(inside) {
            match inside {
                Inside::Proved => {}
                Inside::Checked(numbers) => *index = out.get(*numbers, *index),
                Inside::Tested(len) => {
                    let (zero, len) = (out.int(0), out.size(len.clone()));
                    tests.extend([out.op(Op::Le, &[zero, *index]), out.op(Op::Lt, &[*index, len])]);
                }
            }
        }
        out.set_span(span);
        let condition = tests.into_iter().reduce(|all, test| out.op(Op::And, &[all, test]));
        return match condition {
            Some(condition) => {
                out.push_block();
                let taken = out.array(&all);
                let taken = out.pop_block(taken);
                let otherwise = absent(out, all.len());
                out.compute(Expr::If { condition, then: taken, otherwise })
            }
            None => out.array(&all),
        };
    };
    let condition = match condition {
        Condition::Ready(var) => *var,
        Condition::Copied(var) => indices.copy(out, copies, *var),
    };
    out.push_block();
    let taken = cell(out, indices, &mut copies.clone(), rest, gather, inside);
    let taken = out.pop_block(taken);
    let absent = absent(out, inside.len());
    let (then, otherwise) = if *holds { (taken, absent) } else { (absent, taken) };
    out.compute(Expr::If { condition, then, otherwise })
}

/// Returns the `n` indices of a gather that is not read.
fn absent(out: &mut Builder, n: usize) -> Block {
    out.block(|out| {
        let indices: Vec<VarId> = (0..n).map(|_| out.int(ABSENT)).collect();
        out.array(&indices)
    })
}

/// Emits the derivative of a term, in loops over its counters.
fn emit(asked: &mut Asked, term: &Prepared, part: Part) -> (Form, VarId) {
    for _ in &term.loops {
        asked.out.open();
    }
    let params: Vec<VarId> = term.gathers.iter().map(|gather| gather.perturbation).collect();
    for param in &params {
        let zero = if *asked.out.ty(*param) == Type::Double { Expr::Real(0.0) } else { Expr::Zero };
        asked.out.bind_seed(*param, zero);
    }
    let (form, mut result) = match part {
        Part::Hessian => (Form::Hessian, hessian(asked, &term.block, &params)),
        _ if are_together(asked, &params) => (Form::Together, together(asked, &term.block, &params)),
        _ => (Form::Apart, apart(asked, &term.block, &params)),
    };
    for (index, size) in term.loops.iter().rev() {
        let body = asked.out.close(result);
        result = asked.out.builder.compute(Expr::Build { size: size.clone(), index: *index, body });
    }
    (form, result)
}

fn are_together(asked: &Asked, params: &[VarId]) -> bool {
    let is_plain =
        |param: &VarId| matches!(double_leaves(asked.out.ty(*param)).as_slice(), [(fields, _)] if fields.is_empty());
    let total = params.iter().fold(Size::zero(), |sum, param| sum.add(&doubles(asked.out.ty(*param))));
    params.iter().all(is_plain) && total.as_constant().is_some_and(|n| n <= MAX_TOGETHER)
}

fn leaf(asked: &Asked, param: VarId) -> By {
    By::Leaf(Leaf { param, path: Vec::new(), ty: asked.out.ty(param).clone() })
}

/// Emits, for each of `params`, the Jacobian by it of the gradient by all of them, which is emitted once for all.
fn hessian(asked: &mut Asked, block: &Block, params: &[VarId]) -> VarId {
    let by_rows = asked.way(params, &Type::Double) == Way::Rows;
    let gradient = asked.detached(|asked| {
        if !by_rows {
            let parts = jacobians(asked, block, &Type::Double, params);
            return tuple(asked, &parts);
        }
        let one = asked.out.real(1.0);
        let whole = asked.vjp(block, params, params, one);
        let parts: Vec<VarId> = (1..=params.len()).map(|k| asked.out.component(whole, k)).collect();
        tuple(asked, &parts)
    });
    let ty = asked.out.ty(gradient.result).clone();
    let parts = jacobians(asked, &gradient, &ty, params);
    tuple(asked, &parts)
}

/// Returns several variables as a tuple, one as it is.
fn tuple(asked: &mut Asked, parts: &[VarId]) -> VarId {
    match parts {
        [one] => *one,
        all => asked.out.builder.tuple(all),
    }
}

/// Emits, for each double of the block's result, the array of its derivatives by all doubles of `params`.
fn together(asked: &mut Asked, block: &Block, params: &[VarId]) -> VarId {
    let ty = asked.out.ty(block.result).clone();
    asked.by_the_cheaper(params, &ty, &mut |asked, by_rows| together_by(asked, block, params, by_rows))
}

fn together_by(asked: &mut Asked, block: &Block, params: &[VarId], by_rows: bool) -> VarId {
    let ty = asked.out.ty(block.result).clone();
    let outer = ty.tangent().unwrap_or(Type::Double);
    if by_rows {
        return asked.shaped(&outer, &mut Vec::new(), &mut |asked, steps| {
            let cotangent = asked.hot(&outer, steps);
            let whole = asked.vjp(block, params, params, cotangent);
            let mut row = Vec::new();
            for k in 1..=params.len() {
                let part = asked.out.component(whole, k);
                elements(asked, part, &mut row);
            }
            written_row(asked, &row)
        });
    }
    let parts = jacobians(asked, block, &ty, params);
    asked.shaped(&outer, &mut Vec::new(), &mut |asked, steps| {
        let mut row = Vec::new();
        for part in &parts {
            let part = asked.at(*part, steps);
            elements(asked, part, &mut row);
        }
        written_row(asked, &row)
    })
}

/// Emits the array of the doubles `row`, which may be empty if an extent is the literal 0.
fn written_row(asked: &mut Asked, row: &[VarId]) -> VarId {
    match row {
        [] => asked.zero(&Type::array(Size::zero(), Type::Double)),
        _ => asked.out.builder.array(row),
    }
}

/// Emits, for each of `params`, the Jacobian of the block by it.
fn apart(asked: &mut Asked, block: &Block, params: &[VarId]) -> VarId {
    let ty = asked.out.ty(block.result).clone();
    asked.by_the_cheaper(params, &ty, &mut |asked, by_rows| apart_by(asked, block, params, by_rows))
}

fn apart_by(asked: &mut Asked, block: &Block, params: &[VarId], by_rows: bool) -> VarId {
    let ty = asked.out.ty(block.result).clone();
    let outer = ty.tangent().unwrap_or(Type::Double);
    let parts: Vec<VarId> = if by_rows {
        let rows = asked.shaped(&outer, &mut Vec::new(), &mut |asked, steps| {
            let cotangent = asked.hot(&outer, steps);
            asked.vjp(block, params, params, cotangent)
        });
        let part = |asked: &mut Asked, k: usize| {
            asked.shaped(&outer, &mut Vec::new(), &mut |asked, steps| {
                let row = asked.at(rows, steps);
                asked.out.component(row, k)
            })
        };
        (1..=params.len()).map(|k| part(asked, k)).collect()
    } else {
        jacobians(asked, block, &ty, params)
    };
    tuple(asked, &parts)
}

fn jacobians(asked: &mut Asked, block: &Block, ty: &Type, params: &[VarId]) -> Vec<VarId> {
    let one = |param: &VarId| {
        let by = leaf(asked, *param);
        asked.jacobian(block, ty, &by)
    };
    params.iter().map(one).collect()
}

/// Collects the doubles of `value`, nested arrays of known extents, row-major.
fn elements(asked: &mut Asked, value: VarId, found: &mut Vec<VarId>) {
    let Type::Array(size, _) = asked.out.ty(value).clone() else { return found.push(value) };
    for k in 0..size.as_constant().unwrap_or(0) {
        let index = asked.out.builder.int(k);
        let part = asked.at(value, &[asked::Step::Index(index)]);
        elements(asked, part, found);
    }
}
