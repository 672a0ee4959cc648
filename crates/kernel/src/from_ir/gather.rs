//! Scattered values that are read from the state of a loop are gathered first, in an array of their own.
//!
//! In: a function. Out: the same function, with
//!
//! ```text
//! sum n (fun i -> oneHot (k i) (f s i))      as     w = build n (f s), sum n (fun i -> oneHot (k i) w[i])
//! build n (fun i -> oneHot (k i) (f s i))    as     w = build n (f s), build n (fun i -> oneHot (k i) w[i])
//! ```
//!
//! where `s` is the state of a loop around, and the array is a term of a sum of arrays; nested builds too. A loop that
//! also makes an array, whose elements are read one by one, gets one array for both:
//!
//! ```text
//! loop (fun () i -> ((), g s i, oneHot (k i) (f s i))) () n
//!     as     w = build n (fun i -> (f s i, g s i)), sum n (fun i -> oneHot (k i) w[i].0), and w[i].1 for elements
//! ```
//!
//! The scattered term then reads no state, so that it can be added to the memory of the state once everything is read
//! ([`terms`](super::terms)). A term of several sums is gathered once, and scattered for each of them. Reverse mode
//! writes such terms for loops that write to columns: they add elements of one column to another one.

use super::offers::{ELEMENTS, TERMS};
use super::terms::Facts;
use chainrule_base::Span;
use chainrule_ir::range::{self, Loop};
use chainrule_ir::{Block, Expr, Function, Operands, Size, StateLoop, Stmt, Type, Var, VarId, size_of};
use chainrule_ops::Op;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of scattered numbers of a term.
const MAX_NUMBERS: usize = 16;

/// Returns `function`, which has these facts, with scattered values gathered; `None` if there are none. Linear, but for
/// a logarithm, for each level of nesting. Recurses on the nesting of blocks.
pub(super) fn gathered(function: &Function, facts: &Facts) -> Option<Function> {
    let mut function = function.clone();
    let empty = Block { stmts: Vec::new(), result: function.body.result };
    let mut body = std::mem::replace(&mut function.body, empty);
    let natural = function.sizes.iter().copied().collect();
    let mut writer =
        Writer { function: &mut function, facts, natural, loops: Vec::new(), maxima: Vec::new(), is_changed: false };
    writer.block(&mut body);
    let is_changed = writer.is_changed;
    function.body = body;
    is_changed.then_some(function)
}

struct Writer<'f> {
    function: &'f mut Function,
    facts: &'f Facts,
    /// Sizes of the function.
    natural: FxHashSet<VarId>,
    /// Loops around the current block.
    loops: Vec<Loop>,
    /// Integers in scope that are the larger of a size and 0.
    maxima: Vec<(Size, VarId)>,
    is_changed: bool,
}

/// A one-hot array of a term: indices from outside, whether they were proved to be in range, and the number.
struct OneHot {
    at: Vec<(VarId, bool)>,
    number: VarId,
    /// The arrays from the outside: rows of the one before.
    arrays: Vec<VarId>,
}

/// A term that scatters numbers: a sum, or nested builds.
struct Term {
    is_sum: bool,
    /// The loops from the outside.
    loops: Vec<Level>,
    arrays: Vec<OneHot>,
    /// Statements that make the indices of `arrays`.
    integers: BTreeSet<VarId>,
    /// Element of the array that the loop also makes.
    element: Option<VarId>,
    span: Option<Span>,
}

/// A loop of a term.
struct Level {
    index: VarId,
    /// Its count, and the extent of an array of as many elements.
    count: Size,
    extent: Size,
    body: Block,
}

impl Writer<'_> {
    fn block(&mut self, block: &mut Block) {
        let (added, n_maxima) = (Uses::in_sums(block), self.maxima.len());
        // General loops whose terms are gathered, with the array of pairs; their arrays, with that array and the place
        // of the element in a pair.
        let mut loops: BTreeMap<VarId, (Term, VarId)> = BTreeMap::new();
        let mut elements: BTreeMap<VarId, (VarId, usize)> = BTreeMap::new();
        // Gathered terms of several sums, and whether the first one has been written.
        let mut shared: BTreeMap<VarId, (Term, VarId, bool)> = BTreeMap::new();
        let parts = Components::of(block);
        let mut done = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            self.see(&stmt);
            let n_loops = self.loops.len();
            self.enter(&stmt.expr);
            stmt.expr.blocks_mut().into_iter().for_each(|block| self.block(block));
            self.loops.truncate(n_loops);
            if let Expr::Component(of, part) = stmt.expr
                && let Some((term, array)) = loops.get(&of)
            {
                let (place, array) = (term.arrays.len(), *array);
                match part {
                    ELEMENTS => {
                        elements.insert(stmt.var, (array, place));
                        continue;
                    }
                    TERMS => stmt.expr = self.scattered(term, array, &self.function.ty(stmt.var).clone()),
                    _ => stmt.expr = Expr::Tuple(Vec::new()),
                }
            }
            if let Some(term) = self.general(&stmt, &parts, &added) {
                self.is_changed = true;
                let gathered = self.numbers(&term);
                loops.insert(stmt.var, (term, gathered.var));
                done.push(gathered);
                continue;
            }
            if let Some(n_sums) = added.sums.get(&stmt.var)
                && let Some(term) = self.term(&stmt, *n_sums, added.n_all(stmt.var))
            {
                self.is_changed = true;
                let gathered = self.numbers(&term);
                let array = gathered.var;
                stmt.expr = self.scattered(&term, array, &self.function.ty(stmt.var).clone());
                done.push(gathered);
                if *n_sums > 1 {
                    shared.insert(stmt.var, (term, array, false));
                }
            }
            if let Expr::Plus(a, b) = &mut stmt.expr {
                for operand in [a, b] {
                    let Some((term, array, is_used)) = shared.get_mut(operand) else { continue };
                    if std::mem::replace(is_used, true) {
                        let ty = self.function.ty(*operand).clone();
                        let expr = self.scattered(term, *array, &ty);
                        let copy = Stmt { var: self.function.fresh(ty), expr, span: term.span };
                        *operand = copy.var;
                        done.push(copy);
                    }
                }
            }
            done.push(stmt);
        }
        block.stmts = done;
        if !elements.is_empty() {
            self.read_parts(block, &elements);
        }
        self.maxima.truncate(n_maxima);
    }

    /// Reads elements of these arrays as parts of elements of others.
    fn read_parts(&mut self, block: &mut Block, of: &BTreeMap<VarId, (VarId, usize)>) {
        let mut done = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.expr.blocks_mut().into_iter().for_each(|block| self.read_parts(block, of));
            if let Expr::Get { array, index, proved } = stmt.expr
                && let Some((whole, place)) = of.get(&array)
                && let Type::Array(_, element) = self.function.ty(*whole).clone()
            {
                let row = self.function.fresh(*element);
                done.push(Stmt { var: row, expr: Expr::Get { array: *whole, index, proved }, span: stmt.span });
                stmt.expr = Expr::Component(row, *place);
            }
            done.push(stmt);
        }
        block.stmts = done;
    }

    /// Returns the term of a sum that `stmt`, a loop without a state, makes beside an array, if it scatters values of
    /// the state of another loop. Its parts are named in its block, and nothing else uses it.
    fn general(&self, stmt: &Stmt, parts: &Components, added: &Uses) -> Option<Term> {
        let Expr::Loop(StateLoop { count, index, state, init, body }) = &stmt.expr else { return None };
        let Some(Expr::Tuple(results)) = body.bound(body.result) else { return None };
        let &[_, element, term] = results.as_slice() else { return None };
        let named = parts.0.get(&stmt.var)?;
        let is_named = |part: usize| named.iter().filter(|(_, k)| *k == part).count() <= 1;
        let uses = |var: &VarId| self.facts.uses.get(var).copied().unwrap_or(0);
        let elements_are_read = |&(var, part): &(VarId, usize)| part != ELEMENTS || uses(&var) == self.facts.reads(var);
        let is_term = |&(var, part): &(VarId, usize)| part != TERMS || added.sums.get(&var) == Some(&uses(&var));
        if !matches!(self.function.ty(*init), Type::Tuple(fields, _) if fields.is_empty())
            || uses(&stmt.var) != named.len()
            || ![ELEMENTS, TERMS].into_iter().all(is_named)
            || !named.iter().all(|part| elements_are_read(part) && is_term(part))
            || !named.iter().any(|(_, part)| *part == TERMS)
            || self.facts.states_read(&stmt.expr).is_empty()
        {
            return None;
        }
        let stmts = body.stmts.iter().filter(|stmt| stmt.var != body.result).cloned().collect();
        let body = Block { stmts, result: term };
        let arrays = one_hots(self.function, &body)?;
        let loops = vec![Level { index: *index, count: count.clone(), extent: count.clone(), body: body.clone() }];
        let mut integers = BTreeSet::new();
        let is_simple = arrays.iter().flat_map(|array| &array.at).all(|(at, _)| is_simple(&loops, *at, &mut integers));
        let term = Term { is_sum: true, loops, arrays, integers, element: Some(element), span: stmt.span };
        // Nothing else uses what is left out.
        let mut left_out = term.scattered();
        left_out.extend([body.result, *state]);
        let mut uses_one = left_out.contains(&element);
        for stmt in body.stmts.iter().filter(|stmt| !left_out.contains(&stmt.var)) {
            stmt.expr.for_each_use(&mut |var| uses_one |= left_out.contains(&var));
        }
        (is_simple && !uses_one).then_some(term)
    }

    /// Finds [`Self::maxima`].
    fn see(&mut self, stmt: &Stmt) {
        if let Expr::Op(Op::Max, args) = &stmt.expr
            && self.function.vars[stmt.var].ty == Type::Int
        {
            let [a, b] = [args[0], args[1]].map(|arg| size_of(&self.function.vars, arg));
            if b.is_zero() {
                self.maxima.push((a, stmt.var));
            } else if a.is_zero() {
                self.maxima.push((b, stmt.var));
            }
        }
    }

    /// Adds the loop that `expr` is, if its count is known before it starts.
    fn enter(&mut self, expr: &Expr) {
        if let Expr::Sum { count, index, .. }
        | Expr::Build { size: count, index, .. }
        | Expr::Fold(StateLoop { count, index, .. })
        | Expr::Loop(StateLoop { count, index, .. }) = expr
        {
            self.loops.push(Loop { index: *index, count: self.expanded(count) });
        }
    }

    /// Returns `size` over sizes, arguments and indices.
    // Recursive on the definitions of integers, which are over such variables in most cases.
    fn expanded(&self, size: &Size) -> Size {
        let vars = &self.function.vars;
        size.substitute(|var| vars[var].value.as_ref().map_or_else(|| Size::var(var), |value| self.expanded(value)))
    }

    /// Returns the extent of an array of `count` elements, none if it is negative, if that is known at entry.
    fn extent(&self, count: &Size) -> Option<Size> {
        let facts = range::Facts { loops: &self.loops, natural: &self.natural, known: &[] };
        if facts.holds(&self.expanded(count)) {
            return Some(count.clone());
        }
        self.maxima.iter().find(|(of, _)| of == count).map(|(_, max)| Size::var(*max))
    }

    /// Returns the term of `n_sums` sums that `stmt` is, if it scatters values of a state, or is used only by several
    /// sums. It has `n_uses` uses by sums, and as the term of the loop around.
    fn term(&self, stmt: &Stmt, n_sums: usize, n_uses: usize) -> Option<Term> {
        let mut loops = Vec::new();
        let mut next = &stmt.expr;
        loop {
            let (index, count, extent, body) = match next {
                Expr::Sum { count, index, body } if loops.is_empty() => (index, count, self.extent(count)?, body),
                Expr::Build { size, index, body } => (index, size, size.clone(), body),
                _ => return None,
            };
            loops.push(Level { index: *index, count: count.clone(), extent, body: body.clone() });
            match body.bound(body.result)? {
                inner @ Expr::Build { .. } if matches!(next, Expr::Build { .. }) => next = inner,
                _ => break,
            }
        }
        let is_sum = matches!(stmt.expr, Expr::Sum { .. });
        let last = loops.last()?;
        let is_of_sums = self.facts.uses.get(&stmt.var) == Some(&n_uses);
        let reads_state = !self.facts.states_read(&stmt.expr).is_empty();
        // The fields of a tuple are terms of one sum each.
        let is_shared = n_sums > 1 && matches!(self.function.ty(stmt.var), Type::Array(..));
        if !is_of_sums || !(reads_state || is_shared) {
            return None;
        }
        let arrays = one_hots(self.function, &last.body).filter(|arrays| is_sum || arrays.len() == 1)?;
        let mut integers = BTreeSet::new();
        let is_simple = arrays.iter().flat_map(|array| &array.at).all(|(at, _)| is_simple(&loops, *at, &mut integers));
        is_simple.then_some(Term { is_sum, loops, arrays, integers, element: None, span: stmt.span })
    }

    /// Returns the type of several numbers of an iteration of a term, with its element.
    fn element(&self, term: &Term) -> Type {
        let mut fields = vec![Type::Double; term.arrays.len()];
        fields.extend(term.element.map(|element| self.function.ty(element).clone()));
        Type::tuple(fields)
    }

    /// Returns the statement that gathers the numbers of a term.
    fn numbers(&mut self, term: &Term) -> Stmt {
        let span = term.span;
        let numbers: Vec<VarId> = term.arrays.iter().map(|array| array.number).chain(term.element).collect();
        let element = self.element(term);
        let scattered = term.scattered();
        let mut made: Option<(Expr, Type)> = None;
        for Level { index, extent, body, .. } in term.loops.iter().rev() {
            let stays = |stmt: &&Stmt| stmt.var != body.result && !scattered.contains(&stmt.var);
            let mut stmts: Vec<Stmt> = body.stmts.iter().filter(stays).cloned().collect();
            let (result, ty) = match (made.take(), &numbers[..]) {
                (None, [number]) => (*number, Type::Double),
                (made, _) => {
                    let (expr, ty) = made.unwrap_or_else(|| (Expr::Tuple(numbers.clone()), element.clone()));
                    let result = self.function.fresh(ty.clone());
                    stmts.push(Stmt { var: result, expr, span });
                    (result, ty)
                }
            };
            let expr = Expr::Build { size: extent.clone(), index: *index, body: Block { stmts, result } };
            made = Some((expr, Type::array(extent.clone(), ty)));
        }
        let (expr, ty) = made.unwrap_or((Expr::Zero, Type::Double));
        Stmt { var: self.function.fresh(ty), expr, span }
    }

    /// Returns the term of type `ty` with the numbers in `gathered`, with new names.
    fn scattered(&mut self, term: &Term, gathered: VarId, ty: &Type) -> Expr {
        let span = term.span;
        let mut names: BTreeMap<VarId, VarId> = BTreeMap::new();
        let mut row = gathered;
        let mut blocks: Vec<(VarId, Vec<Stmt>)> = Vec::new();
        for Level { index, body, .. } in &term.loops {
            let own = self.function.fresh(Type::Int);
            names.insert(*index, own);
            let mut stmts = Vec::new();
            for integer in body.stmts.iter().filter(|stmt| term.integers.contains(&stmt.var)) {
                let of = |var: VarId| names.get(&var).copied().unwrap_or(var);
                let size = |size: &Size| size.substitute(|var| Size::var(of(var)));
                let mut expr = integer.expr.clone();
                expr.map_operands(&of, &size);
                let value = self.function.vars[integer.var].value.as_ref().map(size);
                let var = self.function.vars.push(Var { ty: Type::Int, name: None, span: None, value });
                names.insert(integer.var, var);
                stmts.push(Stmt { var, expr, span });
            }
            let Type::Array(_, element) = self.function.ty(row).clone() else { return Expr::Zero };
            let array = std::mem::replace(&mut row, self.function.fresh(*element));
            stmts.push(Stmt { var: row, expr: Expr::Get { array, index: own, proved: true }, span });
            blocks.push((own, stmts));
        }
        // What each iteration of the innermost loop makes.
        let mut made = vec![ty];
        for _ in &term.loops[usize::from(term.is_sum)..] {
            let Some(Type::Array(_, element)) = made.last() else { return Expr::Zero };
            made.push(element);
        }
        let mut loops = term.loops.iter().rev().zip(blocks.into_iter().rev());
        let Some((Level { count, .. }, (index, mut stmts))) = loops.next() else { return Expr::Zero };
        let inner = made.pop().unwrap_or(ty);
        let result = self.one_hots(term, (row, inner), &names, &mut stmts);
        let mut expr = term.looped(count, index, Block { stmts, result });
        for (Level { count, .. }, (index, mut stmts)) in loops {
            let result = self.function.fresh(made.pop().unwrap_or(ty).clone());
            stmts.push(Stmt { var: result, expr, span });
            expr = term.looped(count, index, Block { stmts, result });
        }
        expr
    }

    /// Appends to `stmts` the one-hot arrays of type `ty`, or the tuple of them, with the numbers `row`; returns it.
    fn one_hots(
        &mut self,
        term: &Term,
        (row, ty): (VarId, &Type),
        names: &BTreeMap<VarId, VarId>,
        stmts: &mut Vec<Stmt>,
    ) -> VarId {
        let mut push = |function: &mut Function, ty: Type, expr: Expr| {
            let var = function.fresh(ty);
            stmts.push(Stmt { var, expr, span: term.span });
            var
        };
        let types = match ty {
            Type::Tuple(fields, _) => fields.to_vec(),
            ty => vec![ty.clone()],
        };
        let mut results = Operands::new();
        for (k, (array, ty)) in term.arrays.iter().zip(types).enumerate() {
            let is_number = term.arrays.len() == 1 && term.element.is_none();
            let mut value = if is_number { row } else { push(self.function, Type::Double, Expr::Component(row, k)) };
            let mut types = vec![ty];
            while let Some(Type::Array(_, element)) = types.last() {
                types.push((**element).clone());
            }
            types.pop();
            for ((at, proved), ty) in array.at.iter().zip(types).rev() {
                let at = names.get(at).copied().unwrap_or(*at);
                value = push(self.function, ty, Expr::OneHot { index: at, value, proved: *proved });
            }
            results.push(value);
        }
        match (ty, &results[..]) {
            (Type::Tuple(..), _) => push(self.function, ty.clone(), Expr::Tuple(results.to_vec())),
            (_, [one]) => *one,
            _ => row,
        }
    }
}

impl Term {
    /// Returns the one-hot arrays, with those of rows.
    fn scattered(&self) -> FxHashSet<VarId> {
        self.arrays.iter().flat_map(|array| array.arrays.iter().copied()).collect()
    }

    /// Returns a loop of the term's kind.
    fn looped(&self, count: &Size, index: VarId, body: Block) -> Expr {
        match self.is_sum {
            true => Expr::Sum { count: count.clone(), index, body },
            false => Expr::Build { size: count.clone(), index, body },
        }
    }
}

/// Statements of a block that name parts of a tuple: by tuple, their variables with the number of the part.
struct Components(BTreeMap<VarId, Vec<(VarId, usize)>>);

impl Components {
    fn of(block: &Block) -> Self {
        let mut named: BTreeMap<VarId, Vec<(VarId, usize)>> = BTreeMap::new();
        for stmt in &block.stmts {
            if let Expr::Component(tuple, part) = stmt.expr {
                named.entry(tuple).or_default().push((stmt.var, part));
            }
        }
        Self(named)
    }
}

/// Uses of the variables of a block, and of tuples by uses of their components.
#[derive(Default)]
struct Uses {
    /// By sums of arrays.
    sums: BTreeMap<VarId, usize>,
    /// By the result of the block and tuples in it: the term of a general loop is added in place, too.
    result: BTreeMap<VarId, usize>,
}

impl Uses {
    fn in_sums(block: &Block) -> Self {
        let mut uses = Self::default();
        uses.result.insert(block.result, 1);
        for stmt in block.stmts.iter().rev() {
            match &stmt.expr {
                Expr::Tuple(fields) if uses.result.contains_key(&stmt.var) => {
                    fields.iter().for_each(|field| *uses.result.entry(*field).or_default() += 1);
                }
                Expr::Plus(a, b) => [*a, *b].into_iter().for_each(|var| *uses.sums.entry(var).or_default() += 1),
                Expr::Component(tuple, _) => {
                    for by in [&mut uses.sums, &mut uses.result] {
                        if by.contains_key(&stmt.var) {
                            *by.entry(*tuple).or_default() += 1;
                        }
                    }
                }
                _ => {}
            }
        }
        uses
    }

    fn n_all(&self, var: VarId) -> usize {
        [&self.sums, &self.result].into_iter().filter_map(|by| by.get(&var)).sum()
    }
}

/// Returns the one-hot arrays that are the result of `body`, each with one number.
fn one_hots(function: &Function, body: &Block) -> Option<Vec<OneHot>> {
    let fields = match body.bound(body.result)? {
        Expr::Tuple(fields) => fields.clone(),
        Expr::OneHot { .. } => vec![body.result],
        _ => return None,
    };
    let one = |field: &VarId| {
        let (mut at, mut number, mut arrays) = (Vec::new(), *field, Vec::new());
        while let Some(&Expr::OneHot { index, value, proved }) = body.bound(number) {
            at.push((index, proved));
            arrays.push(number);
            number = value;
        }
        let is_number = *function.ty(number) == Type::Double && !at.is_empty();
        is_number.then_some(OneHot { at, number, arrays })
    };
    if fields.is_empty() || fields.len() > MAX_NUMBERS {
        return None;
    }
    fields.iter().map(one).collect()
}

/// Returns whether `var` is computed from indices by operators on integers; `needed` gets the statements that do it.
fn is_simple(loops: &[Level], var: VarId, needed: &mut BTreeSet<VarId>) -> bool {
    let mut open = vec![var];
    while let Some(var) = open.pop() {
        let bound = loops.iter().find_map(|level| level.body.bound(var));
        let Some(expr) = bound.filter(|_| !needed.contains(&var)) else { continue };
        if !matches!(expr, Expr::Size(_) | Expr::Op(..)) || needed.len() >= 2 * MAX_NUMBERS {
            return false;
        }
        needed.insert(var);
        open.extend(expr.operands());
    }
    true
}
