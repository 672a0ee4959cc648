//! Fusion: elements of builds that are computed at their uses, by cost (figure 7c only says that they may be).
//!
//! In: a function, and its dead statements. Out: the `get`s to be replaced by the element's computation. A build is
//! fused only if every use of it is a `get`, and then at all of them, so that it vanishes: if computing the element at
//! every `get`, as often as it runs, costs no more than computing, storing and loading the array. With one `get` in
//! each iteration of one loop over the array this always holds: vertical fusion. With a `get` in an inner loop,
//! elements would be recomputed: the array stays, unless they cost nearly nothing. For a matrix, rows or single
//! elements are fused, so a matrix that is only transposed vanishes, and elements at any depth of a larger array.
//! Values shared by the elements of a row are then computed for each row that is read, so a matrix with a costly row
//! prefix stays.
//!
//! A product of matrices that is read once stays an array, too, unless it is read for the elements of another matrix,
//! or only a few of its elements are read: its loops are tiled, and those of a larger nest are not, or less. Storing it
//! costs little beside the product, and is what the program says. So does one that is read at quotients or remainders
//! of indices, as where its shape changes. So does a matrix of elements that are read at such indices, or at checked
//! ones, or from one of two arrays, if each is read several times: the operand of a product, whose loops then read
//! neighbours.
//!
//! In a chain of builds, each cheap and used twice, the number of copies would grow exponentially: a large element,
//! including its own fused elements, is only copied while the function's budget lasts. Builds are decided in order, so
//! that the builds that an element reads are decided first.
//!
//! Two loops that are merged share an element that both read: an array read at the own index of loops that all end in
//! one loop is read once. So a chain whose links reverse mode reads again on its way back vanishes as a whole, and not
//! one link in each pass.
//!
//! An array built in branches may vanish in each of them if its user moves there: one loop or `get` in the same block
//! that reads its elements, and nothing else, so that each statement is duplicated at most once (`MAX_DOUBLED`).
//!
//! A build that reads the element of another vanishing build at its own index is not written before it is used
//! (`Plan::deferred`): a chain of builds is then written once, at its end, and not again for each of its links.

use crate::cost;
use crate::rebuild::Plan;
use crate::walk;
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Function, StateLoop, Stmt, Type, VarId};
use chainrule_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Maximum number of statements copied to more than one place.
const MAX_COPIED: usize = 32;
/// Total budget of copied statements for elements that exceed this with their fused elements.
const MAX_ALL_COPIED: usize = 32768;
/// Minimum number of arrays with several reads, ending in one loop, that vanish in one pass. Fewer vanish one in each
/// pass, and rules find more between those (measured: "Copies of chains" and below in `docs/notebook/compile-time.md`).
const MIN_LINKS: usize = 8;
/// Maximum number of statements of a fused element, which bounds the time for chains of builds.
const MAX_MOVED: usize = 512;
/// Minimum number of terms of an element of a product that is worth storing.
const MIN_TERMS: i64 = 8;
/// Number of elements of a matrix of which one is read, if few are.
const FEW: f64 = 4.0;
/// Minimum number of reads of each element of a gathered matrix that is worth storing.
const MIN_READS: f64 = 4.0;
/// Maximum number of indices of elements that are computed at their uses.
const MAX_DEPTH: usize = 6;
/// Maximum number of statements that are duplicated into the branches that build an array.
const MAX_DOUBLED: usize = 64;

#[derive(Clone, Default)]
struct Array<'a> {
    /// Number of loops around the build.
    loops: usize,
    /// Cost of an element, number of elements, number of statements of an element.
    built: Option<(f64, f64, usize)>,
    /// The `get`s: variable, number of loops between the build and it, executions for each build.
    gets: SmallVec<[Get; 2]>,
    /// Loops that directly read it at their own index; as many as `gets` if all are such reads.
    takers: SmallVec<[VarId; 2]>,
    /// Loop in which all reads end, and the single `get` left there, if that pays.
    root: Option<(VarId, Get)>,
    /// Whether it is used other than by a `get`.
    escapes: bool,
    /// For an array built in branches: `built` of each.
    branches: SmallVec<[(f64, f64, usize); 2]>,
    /// Number of blocks around it.
    depth: usize,
    /// The statement of its block in which it is used, if it is a single one.
    user: Option<User>,
    /// Facts of a build, or of a mask of builds.
    build: Build<'a>,
    /// For a part of an array: the array, and the number of indices.
    part_of: Option<(VarId, usize)>,
    /// Loop in which an element was read last.
    reader: Option<VarId>,
    /// Cost, for an element, of those of other arrays that are computed where it reads them.
    absorbed: f64,
    /// Decision.
    fate: Fate,
    /// Whether it must stay: it is inside a derivative, used by one, or read at an unproved index.
    kept: bool,
}

/// Facts of a build, or of a mask of builds; empty for other arrays.
#[derive(Clone, Default)]
struct Build<'a> {
    /// Its index and its body.
    body: Option<(VarId, &'a Block)>,
    /// For a build of builds: its rows.
    rows: Option<Rows>,
    /// Whether it is the element of another build.
    is_row: bool,
    /// Whether its elements, or those of its rows, are sums of products, or functions of these.
    is_product: bool,
    /// Arrays from outside whose elements its body reads at its own index.
    links: SmallVec<[VarId; 4]>,
    /// Reads of elements or rows of arrays from outside in its body.
    takes: SmallVec<[Taken; 4]>,
    /// Whether its body reads an array at an index that is checked, a quotient or a remainder, or one of two arrays.
    gathers: bool,
}

/// A read of an array in the body of a build.
#[derive(Clone, Copy)]
struct Taken {
    array: VarId,
    /// Number of indices: 1 for an element of it, 2 for an element of one of its rows.
    depth: usize,
    /// Executions for each element of the build.
    runs: f64,
}

/// Decision about an array.
#[derive(Clone, Copy, Default, PartialEq)]
enum Fate {
    #[default]
    Stays,
    /// Its elements are computed at their uses: number of statements, including their own fused elements.
    Elements(usize),
    /// The elements of its rows are, or those of their elements: also the number of indices.
    Parts(usize, usize),
}

/// User of an array: a statement, with its number of statements.
#[derive(Clone, Copy, PartialEq)]
enum User {
    One(VarId, usize),
    Several,
}

/// A nest of builds, by its elements.
struct Nest {
    /// For each build but the innermost one: cost of what its iterations share, and number of them.
    shared: SmallVec<[(f64, f64); 2]>,
    /// As [`Array::built`], for the innermost elements without what they share.
    elements: (f64, f64, usize),
}

/// A build of builds, by its elements.
#[derive(Clone, Copy)]
struct Rows {
    /// Cost of a row's shared part, and number of rows.
    shared: (f64, f64),
    /// As [`Array::built`], for the elements without their shared part.
    elements: (f64, f64, usize),
}

/// Facts about array variables.
struct Arrays<'a> {
    /// Index in `all` by variable; 0 if there are no facts.
    at: Vec<u32>,
    all: Vec<Array<'a>>,
}

impl<'a> Arrays<'a> {
    /// Iterates over the arrays with facts.
    fn iter(&self) -> impl Iterator<Item = (VarId, &Array<'a>)> {
        let known = self.at.iter().enumerate().filter(|(_, at)| **at > 0);
        known.map(|(var, at)| (VarId::new(var), &self.all[*at as usize]))
    }
}

impl<'a> std::ops::Index<VarId> for Arrays<'a> {
    type Output = Array<'a>;

    fn index(&self, var: VarId) -> &Array<'a> {
        &self.all[self.at[var.index()] as usize]
    }
}

impl<'a> std::ops::IndexMut<VarId> for Arrays<'a> {
    fn index_mut(&mut self, var: VarId) -> &mut Array<'a> {
        let at = &mut self.at[var.index()];
        if *at == 0 {
            *at = self.all.len() as u32;
            self.all.push(Array::default());
        }
        &mut self.all[*at as usize]
    }
}

struct Uses<'a, 'p> {
    function: &'a Function,
    plan: &'p Plan<'a>,
    arrays: Arrays<'a>,
    /// Current statement of each open block, with its expression.
    open: Vec<(VarId, &'a Expr)>,
    /// Count of each open loop.
    loops: Vec<f64>,
    /// Open builds, each with the number of loops up to its own.
    builds: Vec<(VarId, usize)>,
    /// Builds, and masks of builds, each after all that it can read.
    order: Vec<VarId>,
    /// Remaining budget of [`MAX_ALL_COPIED`].
    left: usize,
    /// Loop of the current block, and its index.
    inside: Option<(VarId, VarId)>,
    /// Number of enclosing derivatives.
    opaque: u32,
    /// Integers that are computed from quotients or remainders.
    quotients: FxHashSet<VarId>,
    /// Arrays that are read at these.
    divided: FxHashSet<VarId>,
}

/// Puts into `plan` the `get`s to fuse, and the statements to move into `branches`.
pub(crate) fn analyse<'a>(function: &'a Function, plan: &mut Plan<'a>, branches: bool) {
    let arrays = Arrays { at: vec![0; function.vars.len()], all: vec![Array::default()] };
    let (open, loops, builds, order) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let left = MAX_ALL_COPIED;
    let (quotients, divided) = (FxHashSet::default(), FxHashSet::default());
    let mut uses = Uses {
        function,
        plan: &*plan,
        arrays,
        open,
        loops,
        builds,
        order,
        left,
        inside: None,
        opaque: 0,
        quotients,
        divided,
    };
    uses.block(&function.body);
    uses.unite();
    uses.decide();
    let mut fuse: Vec<(VarId, usize)> = Vec::new();
    let vanishes = |array: &Array<'_>| matches!(array.fate, Fate::Elements(_));
    let deferred: Vec<(VarId, (VarId, &Block))> = (uses.arrays.iter())
        .filter(|(_, array)| (array.gets.len() == 1 || array.root.is_some()) && !array.kept && vanishes(array))
        .filter(|(_, array)| array.build.links.iter().any(|link| vanishes(&uses.arrays[*link])))
        .filter_map(|(var, array)| Some((var, array.build.body?)))
        .collect();
    for (_, array) in uses.arrays.iter() {
        let of = |gets: &[Get]| gets.iter().map(|(var, loops, _)| (*var, *loops)).collect::<Vec<_>>();
        match array.fate {
            Fate::Stays => {}
            Fate::Elements(_) => fuse.extend(of(&array.gets)),
            Fate::Parts(_, depth) => {
                let reads = uses.reads(array, depth).and_then(|mut all| all.pop());
                fuse.extend(of(&reads.unwrap_or_default()));
            }
        }
    }
    let moved = uses.arrays.iter().filter_map(|(var, array)| Some((var, array.moved()?)));
    let moved: Vec<(VarId, VarId)> = if branches { moved.collect() } else { Vec::new() };
    plan.fuse.extend(fuse);
    plan.deferred.extend(deferred);
    for (array, user) in moved {
        plan.branches.entry(user).or_default().push(array);
    }
}

/// A `get`: its variable, the number of loops between the array and it, executions for each array.
type Get = (VarId, usize, f64);

/// Returns whether computing elements of this cost, number and size at `gets` pays.
fn pays(built: (f64, f64, usize), gets: &[Get]) -> bool {
    gain(built, gets).is_some_and(|gain| gain >= 0.0)
}

/// Returns the gain, if there are not too many statements.
fn gain((element, size, stmts): (f64, f64, usize), gets: &[Get]) -> Option<f64> {
    let limit = if gets.len() > 1 { MAX_COPIED } else { MAX_MOVED };
    if gets.is_empty() || stmts > limit {
        return None;
    }
    // Stored once, loaded at each `get`; and an iteration of the loop.
    Some(size * (element + 2.0) + runs(gets) - runs(gets) * element)
}

fn runs(gets: &[Get]) -> f64 {
    gets.iter().map(|(_, _, runs)| runs).sum()
}

impl Array<'_> {
    /// Returns the statement to be moved into the branches that build this array.
    fn moved(&self) -> Option<VarId> {
        let Some(User::One(user, statements)) = self.user else { return None };
        let vanishes = |built: &(f64, f64, usize)| pays(*built, &self.gets);
        let pays = !self.escapes && !self.kept && statements <= MAX_DOUBLED;
        (pays && !self.branches.is_empty() && self.branches.iter().all(vanishes)).then_some(user)
    }
}

impl Nest {
    /// Returns whether computing elements at these reads pays; for each number of indices those with so many.
    fn pays(&self, reads: &[Vec<Get>]) -> bool {
        let Some((gets, parts)) = reads.split_last() else { return false };
        let shared = self.shared.iter().zip(parts);
        let added: f64 = shared.map(|((cost, n), gets)| (runs(gets) - n) * cost).sum();
        gain(self.elements, gets).is_some_and(|gain| added <= gain)
    }
}

impl<'a> Uses<'a, '_> {
    /// Finds the arrays that are read once after loops are merged; users are visited before arrays.
    fn unite(&mut self) {
        // By loop: number of arrays with several reads that end there.
        let mut links: FxHashMap<VarId, usize> = FxHashMap::default();
        for var in self.order.iter().rev() {
            let array = &self.arrays[*var];
            let (Some(built), Some(_)) = (array.built, array.build.body) else { continue };
            if array.escapes || array.kept || array.gets.len() != array.takers.len() {
                continue;
            }
            let end = |taker: &VarId| self.arrays[*taker].root.map_or(*taker, |(root, _)| root);
            let Some(root) = array.takers.first().map(end) else { continue };
            let most = array.gets.iter().copied().reduce(|a, b| if b.2 > a.2 { b } else { a });
            if let Some(get) = most
                && array.takers.iter().all(|taker| end(taker) == root)
                && pays(built, &[get])
            {
                *links.entry(root).or_default() += usize::from(array.gets.len() > 1);
                self.arrays[*var].root = Some((root, get));
            }
        }
        for var in &self.order {
            let root = &mut self.arrays[*var].root;
            *root = root.filter(|(root, _)| links.get(root).is_some_and(|n| *n >= MIN_LINKS));
        }
    }

    /// Decides about each array.
    fn decide(&mut self) {
        for var in std::mem::take(&mut self.order) {
            let vanishing = |taken: &Taken| {
                let Array { fate, build, .. } = &self.arrays[taken.array];
                *fate != Fate::Stays && build.is_product
            };
            let Build { body, takes, .. } = &self.arrays[var].build;
            let has_rows = body.is_some_and(|(_, body)| self.arrays[body.result].build.is_product);
            let is_product = has_rows || takes.iter().any(vanishing);
            self.arrays[var].build.is_product |= is_product;
            self.arrays[var].absorbed = self.absorbed(&self.arrays[var].build.takes);
            let (fate, copied) = self.fate(var);
            self.arrays[var].fate = fate;
            self.left -= copied;
        }
    }

    /// Returns the decision about an array, and the part of the copy budget that it uses.
    fn fate(&self, var: VarId) -> (Fate, usize) {
        let array = &self.arrays[var];
        let (Some(mut built), false) = (array.built, array.escapes) else { return (Fate::Stays, 0) };
        built.0 += array.absorbed;
        let in_place = |taken: &Taken| match self.arrays[taken.array].fate {
            Fate::Stays => 0,
            Fate::Elements(stmts) | Fate::Parts(stmts, _) => stmts,
        };
        let all = built.2.saturating_add(array.build.takes.iter().map(in_place).fold(0, usize::saturating_add));
        let copied = |gets: &[Get]| if all > MAX_COPIED { all.saturating_mul(gets.len().saturating_sub(1)) } else { 0 };
        if array.root.is_some() {
            return (Fate::Elements(all), 0);
        }
        if array.build.is_product
            && array.build.rows.is_some()
            && (self.is_divided(var) || self.is_read_once(array) && !self.is_part_of_matrix(array))
        {
            return (Fate::Stays, 0);
        }
        if self.is_gathered_operand(array) {
            return (Fate::Stays, 0);
        }
        let here = copied(&array.gets);
        if here <= self.left && pays(built, &array.gets) {
            return (Fate::Elements(all), here);
        }
        let parts = |depth: usize| {
            let (nest, reads) = (self.nest(array, depth)?, self.reads(array, depth)?);
            let here = copied(reads.last()?);
            Some((here <= self.left && nest.pays(&reads)).then_some((Fate::Parts(all, depth), here)))
        };
        (2..=MAX_DEPTH).map_while(parts).flatten().next().unwrap_or((Fate::Stays, 0))
    }

    /// Returns whether one expression reads elements of a matrix, and more than a few of them, such as its diagonal.
    fn is_read_once(&self, array: &Array<'_>) -> bool {
        let (Some(reads), Some(nest)) = (self.reads(array, 2), self.nest(array, 2)) else { return false };
        matches!(reads[1][..], [(_, _, runs)] if runs * FEW >= nest.elements.1)
    }

    /// Returns the cost of the elements that are computed at the reads `takes`.
    fn absorbed(&self, takes: &[Taken]) -> f64 {
        let cost = |taken: &Taken| {
            let array = &self.arrays[taken.array];
            let element = match array.fate {
                Fate::Elements(_) if taken.depth == 1 => array.built.map(|built| built.0 + array.absorbed),
                Fate::Parts(_, depth) => self.nest(array, depth).map(|nest| {
                    let shared = nest.shared.get(taken.depth - 1).map(|(cost, _)| *cost);
                    shared.unwrap_or(if taken.depth == depth { nest.elements.0 } else { 0.0 })
                }),
                _ => None,
            };
            taken.runs * element.unwrap_or(0.0)
        };
        takes.iter().map(cost).sum()
    }

    /// Returns so many nested builds by their elements, with what is computed where they read it.
    fn nest(&self, array: &Array<'_>, depth: usize) -> Option<Nest> {
        let Rows { mut elements, .. } = array.build.rows?;
        let (mut outer, mut n, mut shared) = (array, 1.0, SmallVec::new());
        for _ in 1..depth {
            let rows = outer.build.rows?;
            let inner = &self.arrays[outer.build.body?.1.result];
            let n_inner = rows.elements.1 / rows.shared.1;
            n *= rows.shared.1;
            shared.push((rows.shared.0 + outer.absorbed - inner.absorbed * n_inner, n));
            (elements.0, elements.1) = (rows.elements.0 + inner.absorbed, n * n_inner);
            outer = inner;
        }
        Some(Nest { shared, elements })
    }

    /// Returns the counts of the open loops inside the outermost `around`.
    fn loops_inside(&self, around: usize) -> &[f64] {
        self.loops.get(around..).unwrap_or(&[])
    }

    /// Returns whether the single read of an element of `array` is for an element of another matrix.
    fn is_part_of_matrix(&self, array: &Array) -> bool {
        let reader = array.gets.first().and_then(|(row, ..)| self.arrays[*row].reader);
        reader.is_some_and(|reader| self.arrays[reader].build.is_row)
    }

    /// Records for the open builds that their elements are gathered.
    fn gathers(&mut self) {
        self.builds.iter().for_each(|(build, _)| self.arrays[*build].build.gathers = true);
    }

    /// Returns whether each element of a matrix, which is gathered from another array, is read many times.
    fn is_gathered_operand(&self, array: &Array) -> bool {
        let Some(rows) = array.build.rows.filter(|_| array.build.gathers) else { return false };
        let reads = self.reads(array, 2);
        reads.is_some_and(|reads| runs(&reads[1]) >= MIN_READS * rows.elements.1)
    }

    /// Returns whether an array, or a row of it, is read at a quotient or a remainder.
    fn is_divided(&self, array: VarId) -> bool {
        let mut rows = self.arrays[array].gets.iter().map(|(row, ..)| row);
        self.divided.contains(&array) || rows.any(|row| self.divided.contains(row))
    }

    /// Records for the open builds that `var` is an element or a row of `array`.
    fn takes(&mut self, array: VarId, var: VarId) {
        let (from, depth) = self.arrays[array].part_of.unwrap_or((array, 0));
        let depth = depth + 1;
        let Array { built: Some(_), loops, .. } = self.arrays[from] else { return };
        if self.is_array(var) {
            self.arrays[var].part_of = Some((from, depth));
        }
        for (build, inside) in self.builds.iter().filter(|(_, inside)| loops < *inside) {
            let runs = self.loops_inside(*inside).iter().product();
            self.arrays[*build].build.takes.push(Taken { array: from, depth, runs });
        }
    }

    /// Returns the `get`s of elements of `array`, those of elements of these, and so on for so many indices, if parts
    /// have no other use.
    fn reads(&self, array: &Array, depth: usize) -> Option<Vec<Vec<Get>>> {
        let mut all = vec![array.gets.to_vec()];
        for _ in 1..depth {
            let mut gets = Vec::new();
            for (part, loops, runs) in all.last()? {
                let part = &self.arrays[*part];
                if part.escapes || part.kept {
                    return None;
                }
                gets.extend(part.gets.iter().map(|(var, more, often)| (*var, loops + more, runs * often)));
            }
            all.push(gets);
        }
        Some(all)
    }

    fn block(&mut self, block: &'a Block) {
        self.escapes(block.result);
        for stmt in block.stmts.iter().filter(|stmt| !self.plan.dead.contains(&stmt.var)) {
            self.open.push((stmt.var, &stmt.expr));
            self.stmt(stmt.var, &stmt.expr);
            self.open.pop();
        }
    }

    /// Records that `var` is used other than by a `get`.
    fn escapes(&mut self, var: VarId) {
        if self.is_array(var) {
            self.arrays[var].escapes = true;
        }
    }

    fn is_array(&self, var: VarId) -> bool {
        matches!(self.function.ty(var), Type::Array(..))
    }

    /// Records the statement in the block of `array` that reads an element of it.
    fn used(&mut self, array: VarId) {
        if self.arrays[array].branches.is_empty() {
            return;
        }
        let beside = self.arrays[array].depth.checked_sub(1).and_then(|depth| self.open.get(depth));
        let user = match (beside, self.arrays[array].user) {
            (Some((user, _)), Some(User::One(before, n))) if before == *user => User::One(*user, n),
            (Some((user, expr)), None) => movable(expr).map_or(User::Several, |n| User::One(*user, n)),
            _ => User::Several,
        };
        self.arrays[array].user = Some(user);
    }

    fn stmt(&mut self, var: VarId, expr: &'a Expr) {
        expr.for_each_operand(&mut |operand| match expr {
            Expr::Get { array, index, proved } if operand == *array && array != index => {
                if let Some((taker, own)) = self.inside
                    && own == *index
                {
                    // An array built in its body is written with it.
                    if self.arrays[*array].loops < self.loops.len() {
                        self.arrays[taker].build.links.push(*array);
                    }
                    self.arrays[*array].takers.push(taker);
                }
                self.takes(*array, var);
                self.arrays[*array].reader = self.inside.map(|(reader, _)| reader);
                self.arrays[*array].kept |= !proved || self.opaque > 0;
                let is_quotient = self.quotients.contains(index);
                if is_quotient {
                    self.divided.insert(*array);
                }
                if is_quotient || !proved {
                    self.gathers();
                }
                let around = self.arrays[*array].loops;
                let between = self.loops_inside(around);
                let (count, runs) = (between.len(), between.iter().product());
                self.arrays[*array].gets.push((var, count, runs));
                self.used(*array);
            }
            _ => self.escapes(operand),
        });
        if self.is_array(var) {
            let array = &mut self.arrays[var];
            array.loops = self.loops.len();
            array.depth = self.open.len();
            array.kept |= self.opaque > 0;
        }
        let mut is_quotient = matches!(expr, Expr::Op(Op::Quot | Op::Mod, _));
        if *self.function.ty(var) == Type::Int {
            expr.for_each_operand(&mut |operand| is_quotient |= self.quotients.contains(&operand));
        }
        if is_quotient {
            self.quotients.insert(var);
        }
        if expr.is_leaf() {
            return;
        }
        let runs = match expr {
            Expr::Build { size, body, .. } => {
                let ty = |v: VarId| self.function.ty(v);
                let element = cost::block(body, &ty);
                self.arrays[var].build.is_product = is_product(body);
                self.arrays[var].built = Some((element, cost::estimate(size), statements(body)));
                if let Some(row @ Expr::Build { size: inner, body: elements, .. }) = body.bound(body.result) {
                    self.arrays[body.result].build.is_row = true;
                    let n = cost::estimate(size);
                    self.arrays[var].build.rows = Some(Rows {
                        shared: (element - cost::expr(row, &ty), n),
                        elements: (cost::block(elements, &ty), n * cost::estimate(inner), statements(body)),
                    });
                }
                Some(cost::estimate(size))
            }
            Expr::Sum { count, .. } | Expr::Fold(StateLoop { count, .. }) | Expr::Loop(StateLoop { count, .. }) => {
                Some(cost::estimate(count))
            }
            // Derivatives keep their bodies unchanged; a `while` may have many iterations.
            Expr::While(_) | Expr::Jvp { .. } | Expr::Vjp { .. } | Expr::Custom(_) => Some(cost::LARGE),
            _ => None,
        };
        // Elements of one array or of another one.
        if let Expr::If { then, otherwise, .. } = expr
            && [then, otherwise].iter().all(|block| matches!(block.bound(block.result), Some(Expr::Get { .. })))
        {
            self.gathers();
        }
        // A build in a branch whose other side is zero: a mask, whose elements are masks.
        if let Expr::If { then, .. } = expr
            && let Some(build @ Expr::Build { size, body, .. }) = then.bound(then.result)
        {
            let ty = |v: VarId| self.function.ty(v);
            let around = cost::block(then, &ty) - cost::expr(build, &ty);
            let element = 1.0 + around + cost::block(body, &ty);
            self.arrays[var].built = Some((element, cost::estimate(size), statements(then)));
        }
        if let (Expr::If { then, otherwise, .. }, Type::Array(..)) = (expr, self.function.ty(var)) {
            let ty = |v: VarId| self.function.ty(v);
            let builds = [then, otherwise].into_iter().filter_map(|block| block.bound(block.result));
            let built = builds.filter_map(|expr| match expr {
                Expr::Build { size, body, .. } => {
                    Some((cost::block(body, &ty), cost::estimate(size), statements(body)))
                }
                _ => None,
            });
            self.arrays[var].branches = built.collect();
        }
        self.loops.extend(runs);
        let outer = self.inside.take();
        if let Expr::Build { index, .. }
        | Expr::Sum { index, .. }
        | Expr::Fold(StateLoop { index, .. })
        | Expr::Loop(StateLoop { index, .. }) = expr
        {
            self.inside = Some((var, *index));
        }
        if let Expr::Build { index, body, .. } = expr {
            self.arrays[var].build.body = Some((*index, body));
            self.builds.push((var, self.loops.len()));
        }
        let opaque = u32::from(walk::is_opaque(expr));
        self.opaque += opaque;
        for block in expr.blocks() {
            self.block(block);
        }
        self.opaque -= opaque;
        self.inside = outer;
        if let Expr::Build { .. } = expr {
            self.builds.pop();
        }
        if self.arrays[var].built.is_some() {
            if let Expr::If { then, .. } = expr {
                self.arrays[var].build.takes = self.arrays[then.result].build.takes.clone();
            }
            self.order.push(var);
        }
        if runs.is_some() {
            self.loops.pop();
        }
    }
}

/// Returns whether an expression builds a product of matrices.
pub(crate) fn is_matrix_product(expr: &Expr) -> bool {
    let Expr::Build { body, .. } = expr else { return false };
    body.bound(body.result).is_some_and(is_row_of_product)
}

/// Returns whether an expression builds a row of a product of matrices.
pub(crate) fn is_row_of_product(expr: &Expr) -> bool {
    matches!(expr, Expr::Build { body, .. } if is_product(body))
}

/// Returns whether a block computes a sum of products of elements of two arrays, several in one loop, or one that may
/// become that.
pub(crate) fn is_product(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| {
        let (count, adds) = match &stmt.expr {
            Expr::Sum { count, body, .. } => {
                let is_term = match body.bound(body.result) {
                    Some(Expr::Op(..)) => is_sum_of_products(body, body.result),
                    Some(Expr::Tuple(terms)) => terms.iter().all(|term| is_sum_of_products(body, *term)),
                    // Of an array of products, which vanishes later.
                    result => matches!(result, Some(Expr::Get { array, .. }) if block.bound(*array).is_some()),
                };
                (count, is_term)
            }
            // Still a fold.
            Expr::Fold(StateLoop { count, state, body, .. }) => {
                (count, matches!(body.bound(body.result), Some(Expr::Op(Op::Add, args)) if args.contains(state)))
            }
            _ => return false,
        };
        adds && count.as_constant().is_none_or(|n| n >= MIN_TERMS)
    })
}

/// Returns whether `var` is a product of elements, or sum or difference of such.
fn is_sum_of_products(body: &Block, var: VarId) -> bool {
    match body.bound(var) {
        Some(Expr::Op(Op::Mul | Op::MaskedMul | Op::StrongMul, args)) => {
            args.iter().all(|arg| matches!(body.bound(*arg), Some(Expr::Get { .. })))
        }
        Some(Expr::Op(Op::Add | Op::Sub, args)) => args.iter().all(|arg| is_sum_of_products(body, *arg)),
        Some(Expr::Op(Op::Neg, args)) => args.iter().all(|arg| is_sum_of_products(body, *arg)),
        _ => false,
    }
}

/// Returns the number of statements of a loop or a `get` that may move into branches; `None` for others.
fn movable(expr: &Expr) -> Option<usize> {
    let moves =
        matches!(expr, Expr::Get { .. } | Expr::Build { .. } | Expr::Sum { .. } | Expr::Fold(_) | Expr::Loop(_));
    moves.then(|| 1 + expr.blocks().into_iter().map(statements).sum::<usize>())
}

fn statements(block: &Block) -> usize {
    let one = |stmt: &Stmt| match stmt.expr.is_leaf() {
        true => 1,
        false => 1 + stmt.expr.blocks().into_iter().map(statements).sum::<usize>(),
    };
    block.stmts.iter().map(one).sum()
}
