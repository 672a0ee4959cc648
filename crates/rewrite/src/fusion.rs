//! Which elements of builds are computed where they are used, by cost (figure 7c says only that they may).
//!
//! In: a function, and what is dead in it. Out: the `get`s to be replaced by what they get. A build is taken
//! apart only if every use of it is a `get`, and then at all of them, so that it vanishes: if computing the
//! element at every `get`, as often as that runs, costs no more than computing the array, storing it and loading
//! from it. With one `get` a step of one loop over the array that is always so: vertical fusion. With a `get` in
//! a loop inside, elements would be computed again and again: the array stays, unless they cost nearly nothing.
//! Of a matrix, rows or else elements of rows: so a matrix that is only transposed vanishes. What the elements of a row share is
//! computed with each row that is taken then, so a matrix whose rows are dear to begin stays.
//!
//! Of a chain of builds, each of which is cheap by itself and wanted twice, ever more would be copied: what takes more statements,
//! with all that is computed in place in it, is copied only as long as a function has not had its share. Builds are decided in
//! their order, so that what one takes elements of is decided before it.
//!
//! Two loops that become one take an element together that both take: an array that is taken at the own index of loops that all end in
//! one loop is taken once. So a chain whose links reverse mode takes again on its way back vanishes as a whole, and not a
//! link with each pass.
//!
//! An array that branches make may vanish in each of them, where what uses it moves there: one loop or `get` beside it
//! that takes its elements, and nothing else, so that each statement is doubled at most once (`MAX_DOUBLED`).
//!
//! A build that takes the element of another at its own index, which vanishes too, is not written before it is wanted
//! (`Plan::deferred`): a chain of builds is then written once, where it ends, and not again for each of its links.

use crate::cost;
use crate::rebuild::Plan;
use crate::walk;
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Function, Stmt, Type, VarId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// How many statements may be copied to more than one place.
const MAX_COPIED: usize = 32;
/// How many statements are copied at most where there are more than that with those that are computed in place in them, in all.
const MAX_ALL_COPIED: usize = 32768;
/// How many arrays that are taken several times end in one loop at least to vanish at once. Fewer vanish one with each pass,
/// and rules find more between those.
const MIN_LINKS: usize = 8;
/// How many statements an element may have to be moved at all: what bounds the time that chains of builds take.
const MAX_MOVED: usize = 512;
/// How many statements what uses an array that branches make may have to stand in each of them.
const MAX_DOUBLED: usize = 64;

#[derive(Clone, Default)]
struct Array<'a> {
    /// The number of loops around the build.
    loops: usize,
    /// What the build takes for an element, how many there are, how many statements an element has.
    built: Option<(f64, f64, usize)>,
    /// Of a build of builds.
    rows: Option<Rows>,
    /// The `get`s: the variable, the loops between the build and it, how often it runs for each build.
    gets: SmallVec<[Get; 2]>,
    /// The loops right in whose bodies it is taken at their own index; as many as there are `gets` where all are such.
    takers: SmallVec<[VarId; 2]>,
    /// The loop where all that takes it ends, and the one `get` that is left there, if that is worth its while.
    root: Option<(VarId, Get)>,
    /// Whether it is used other than by a `get`.
    escapes: bool,
    /// Of an array that branches make: of those that build it, as `built`.
    branches: SmallVec<[(f64, f64, usize); 2]>,
    /// The number of blocks around it.
    depth: usize,
    /// The statement of its block in which it is used, if it is one.
    user: Option<User>,
    /// Of a build: its index and its body.
    body: Option<(VarId, &'a Block)>,
    /// Of a build: the arrays from outside whose elements at its own index its body takes.
    links: SmallVec<[VarId; 4]>,
    /// Of a build: the arrays from outside that its body takes elements or rows of.
    takes: SmallVec<[VarId; 4]>,
    /// Of a row: the array that it is a row of.
    row_of: Option<VarId>,
    /// Whether it vanishes.
    fate: Fate,
    /// Whether it stands in a derivative, or is looked at by one, or at an index that is not proved.
    kept: bool,
}

/// What becomes of an array.
#[derive(Clone, Copy, Default, PartialEq)]
enum Fate {
    #[default]
    Stays,
    /// Its elements are computed where they are taken: so many statements, with those that are computed in place in them.
    Elements(usize),
    /// The elements of its rows are.
    Rows(usize),
}

/// What uses an array: a statement, with how many there are in it.
#[derive(Clone, Copy, PartialEq)]
enum User {
    One(VarId, usize),
    Several,
}

/// A build of builds, by its elements.
#[derive(Clone, Copy)]
struct Rows {
    /// What is computed once a row, and how many rows there are.
    shared: (f64, f64),
    /// As [`Array::built`] of the elements, but for what they share.
    elements: (f64, f64, usize),
}

/// What is known of the variables that are arrays.
struct Arrays<'a> {
    /// By variable, where it stands in `all`; 0 for what nothing is known of.
    at: Vec<u32>,
    all: Vec<Array<'a>>,
}

impl<'a> Arrays<'a> {
    /// Those that something is known of.
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
    /// The statement at hand of each block that is open, with what it is bound to.
    open: Vec<(VarId, &'a Expr)>,
    /// How often each of the open loops runs.
    loops: Vec<f64>,
    /// The open builds, each with the number of loops up to its own.
    builds: Vec<(VarId, usize)>,
    /// Builds, and masks of builds, each after all that it can take elements of.
    order: Vec<VarId>,
    /// How many statements of [`MAX_ALL_COPIED`] are left.
    left: usize,
    /// The loop whose body is the block at hand, and its index.
    inside: Option<(VarId, VarId)>,
    /// Inside how many derivatives this is.
    opaque: u32,
}

/// Puts into `plan` the `get`s to fuse, and what is to move into `branches`, if anything is.
pub(crate) fn analyse<'a>(function: &'a Function, plan: &mut Plan<'a>, branches: bool) {
    let arrays = Arrays { at: vec![0; function.vars.len()], all: vec![Array::default()] };
    let (open, loops, builds, order) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let left = MAX_ALL_COPIED;
    let mut uses = Uses { function, plan: &*plan, arrays, open, loops, builds, order, left, inside: None, opaque: 0 };
    uses.block(&function.body);
    uses.unite();
    uses.decide();
    let mut fuse: Vec<(VarId, usize)> = Vec::new();
    let vanishes = |array: &Array<'_>| matches!(array.fate, Fate::Elements(_));
    let deferred: Vec<(VarId, (VarId, &Block))> = (uses.arrays.iter())
        .filter(|(_, array)| (array.gets.len() == 1 || array.root.is_some()) && !array.kept && vanishes(array))
        .filter(|(_, array)| array.links.iter().any(|link| vanishes(&uses.arrays[*link])))
        .filter_map(|(var, array)| Some((var, array.body?)))
        .collect();
    for (_, array) in uses.arrays.iter() {
        let of = |gets: &[Get]| gets.iter().map(|(var, loops, _)| (*var, *loops)).collect::<Vec<_>>();
        match array.fate {
            Fate::Stays => {}
            Fate::Elements(_) => fuse.extend(of(&array.gets)),
            Fate::Rows(_) => fuse.extend(of(&uses.elements(array).unwrap_or_default())),
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

/// A `get`: its variable, the loops between the array and it, how often it runs for each time the array is made.
type Get = (VarId, usize, f64);

/// Whether `gets` of elements that take so much, are so many, and have so many statements, are worth computing
/// them in place.
fn pays(built: (f64, f64, usize), gets: &[Get]) -> bool {
    gain(built, gets).is_some_and(|gain| gain >= 0.0)
}

/// What is gained by it, if there are not too many statements.
fn gain((element, size, stmts): (f64, f64, usize), gets: &[Get]) -> Option<f64> {
    let limit = if gets.len() > 1 { MAX_COPIED } else { MAX_MOVED };
    if gets.is_empty() || stmts > limit {
        return None;
    }
    // Stored once, loaded at each get; a step of the loop besides.
    Some(size * (element + 2.0) + runs(gets) - runs(gets) * element)
}

fn runs(gets: &[Get]) -> f64 {
    gets.iter().map(|(_, _, runs)| runs).sum()
}

impl Array<'_> {
    /// The statement that is to move into the branches that make this array.
    fn moved(&self) -> Option<VarId> {
        let Some(User::One(user, statements)) = self.user else { return None };
        let vanishes = |built: &(f64, f64, usize)| pays(*built, &self.gets);
        let pays = !self.escapes && !self.kept && statements <= MAX_DOUBLED;
        (pays && !self.branches.is_empty() && self.branches.iter().all(vanishes)).then_some(user)
    }
}

impl Rows {
    /// Whether `gets` of elements of the rows that `rows` take are worth computing them in place.
    fn pay(self, rows: &[Get], gets: &[Get]) -> bool {
        let (shared, n) = self.shared;
        gain(self.elements, gets).is_some_and(|gain| runs(rows) * shared <= n * shared + gain)
    }
}

impl<'a> Uses<'a, '_> {
    /// Finds the arrays that are taken once when loops have become one; what takes an array is looked at before it.
    fn unite(&mut self) {
        // By loop: how many arrays that are taken several times end there.
        let mut links: FxHashMap<VarId, usize> = FxHashMap::default();
        for var in self.order.iter().rev() {
            let array = &self.arrays[*var];
            let (Some(built), Some(_)) = (array.built, array.body) else { continue };
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

    /// What becomes of each array.
    fn decide(&mut self) {
        for var in std::mem::take(&mut self.order) {
            let (fate, copied) = self.fate(&self.arrays[var]);
            self.arrays[var].fate = fate;
            self.left -= copied;
        }
    }

    /// What becomes of `array`, and how many of the statements that are left are copied for it.
    fn fate(&self, array: &Array<'_>) -> (Fate, usize) {
        let (Some(built), false) = (array.built, array.escapes) else { return (Fate::Stays, 0) };
        let in_place = |taken: &VarId| match self.arrays[*taken].fate {
            Fate::Stays => 0,
            Fate::Elements(stmts) | Fate::Rows(stmts) => stmts,
        };
        let all = built.2.saturating_add(array.takes.iter().map(in_place).fold(0, usize::saturating_add));
        let copied = |gets: &[Get]| if all > MAX_COPIED { all.saturating_mul(gets.len().saturating_sub(1)) } else { 0 };
        if array.root.is_some() {
            return (Fate::Elements(all), 0);
        }
        let here = copied(&array.gets);
        if here <= self.left && pays(built, &array.gets) {
            return (Fate::Elements(all), here);
        }
        let Some(rows) = array.rows else { return (Fate::Stays, 0) };
        let Some(gets) = self.elements(array) else { return (Fate::Stays, 0) };
        let here = copied(&gets);
        if here <= self.left && rows.pay(&array.gets, &gets) { (Fate::Rows(all), here) } else { (Fate::Stays, 0) }
    }

    /// Notes for the open builds that `var` is an element of `array`, or a row.
    fn takes(&mut self, array: VarId, var: VarId) {
        let from = self.arrays[array].row_of.unwrap_or(array);
        let Array { built: Some(_), loops, .. } = self.arrays[from] else { return };
        if self.is_array(var) {
            self.arrays[var].row_of = Some(from);
        }
        for (build, _) in self.builds.iter().filter(|(_, inside)| loops < *inside) {
            self.arrays[*build].takes.push(from);
        }
    }

    /// The `get`s of elements of the rows of `array`, if nothing else is done with a row.
    fn elements(&self, array: &Array) -> Option<Vec<Get>> {
        let mut all = Vec::new();
        for (row, loops, runs) in &array.gets {
            let row = &self.arrays[*row];
            if row.escapes {
                return None;
            }
            all.extend(row.gets.iter().map(|(var, more, often)| (*var, loops + more, runs * often)));
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

    /// Notes that `var` is used other than by a `get`.
    fn escapes(&mut self, var: VarId) {
        if self.is_array(var) {
            self.arrays[var].escapes = true;
        }
    }

    fn is_array(&self, var: VarId) -> bool {
        matches!(self.function.ty(var), Type::Array(..))
    }

    /// Notes which statement beside `array` takes an element of it.
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
                    // What is made in its body is written with it.
                    if self.arrays[*array].loops < self.loops.len() {
                        self.arrays[taker].links.push(*array);
                    }
                    self.arrays[*array].takers.push(taker);
                }
                self.takes(*array, var);
                self.arrays[*array].kept |= !proved || self.opaque > 0;
                let around = self.arrays[*array].loops;
                let between = self.loops.get(around..).unwrap_or(&[]);
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
        if expr.is_leaf() {
            return;
        }
        let runs = match expr {
            Expr::Build { size, body, .. } => {
                let ty = |v: VarId| self.function.ty(v);
                let element = cost::block(body, &ty);
                self.arrays[var].built = Some((element, cost::estimate(size), statements(body)));
                if let Some(row @ Expr::Build { size: inner, body: elements, .. }) = walk::bound_in(body, body.result) {
                    let n = cost::estimate(size);
                    self.arrays[var].rows = Some(Rows {
                        shared: (element - cost::expr(row, &ty), n),
                        elements: (cost::block(elements, &ty), n * cost::estimate(inner), statements(body)),
                    });
                }
                Some(cost::estimate(size))
            }
            Expr::Sum { count, .. } | Expr::Fold { count, .. } | Expr::Loop { count, .. } => {
                Some(cost::estimate(count))
            }
            // What differentiates its body keeps it as it is; a `while` may run often.
            Expr::While { .. } | Expr::Jvp { .. } | Expr::Vjp { .. } | Expr::Custom(_) => Some(cost::LARGE),
            _ => None,
        };
        // A build in a branch, where the other side is zero: a mask, whose elements are masks.
        if let Expr::If { then, .. } = expr
            && let Some(build @ Expr::Build { size, body, .. }) = walk::bound_in(then, then.result)
        {
            let ty = |v: VarId| self.function.ty(v);
            let around = cost::block(then, &ty) - cost::expr(build, &ty);
            let element = 1.0 + around + cost::block(body, &ty);
            self.arrays[var].built = Some((element, cost::estimate(size), statements(then)));
        }
        if let (Expr::If { then, otherwise, .. }, Type::Array(..)) = (expr, self.function.ty(var)) {
            let ty = |v: VarId| self.function.ty(v);
            let builds = [then, otherwise].into_iter().filter_map(|block| walk::bound_in(block, block.result));
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
        | Expr::Fold { index, .. }
        | Expr::Loop { index, .. } = expr
        {
            self.inside = Some((var, *index));
        }
        if let Expr::Build { index, body, .. } = expr {
            self.arrays[var].body = Some((*index, body));
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
                self.arrays[var].takes = self.arrays[then.result].takes.clone();
            }
            self.order.push(var);
        }
        if runs.is_some() {
            self.loops.pop();
        }
    }
}

/// How many statements a loop or a `get` that may move into branches has; nothing of others.
fn movable(expr: &Expr) -> Option<usize> {
    let moves = matches!(
        expr,
        Expr::Get { .. } | Expr::Build { .. } | Expr::Sum { .. } | Expr::Fold { .. } | Expr::Loop { .. }
    );
    moves.then(|| 1 + expr.blocks().into_iter().map(statements).sum::<usize>())
}

fn statements(block: &Block) -> usize {
    let one = |stmt: &Stmt| match stmt.expr.is_leaf() {
        true => 1,
        false => 1 + stmt.expr.blocks().into_iter().map(statements).sum::<usize>(),
    };
    block.stmts.iter().map(one).sum()
}
