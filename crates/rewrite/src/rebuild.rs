//! The engine: rebuilds a function statement by statement, trying every rule at every statement.
//!
//! In: a function. Out: a function with the same parameters and value. Statements are visited in order, with their
//! operands replaced by the rebuilt ones, and [`Rebuild::emit`] writes each one:
//!
//! 1. if a rule of its construct applies, its replacement is written ([`crate::rules`]);
//! 2. otherwise, if an equal expression, up to names, is in scope, that variable is used (common subexpressions, across
//!    binders: [`crate::key`]);
//! 3. otherwise it is written into the outermost block in which all its operands are in scope (hoisting).
//!
//! So operands are in normal form before their users, and a rule that copies a block writes it through the same
//! function. Chains are walked as lists; only nesting is recursive, and rules within rules up to [`MAX_NESTED`]. Linear
//! for each level of nesting, except for copies by rules, which a budget bounds.
//!
//! Invariants:
//! - A statement that may fail is not moved out of a loop that may not run; only free statements are moved out of a
//!   branch. So no failure is added. A failure with an unused value may vanish.
//! - Bodies of derivatives ([`Expr::Jvp`]) are copied unchanged: their operators have derivatives too.

mod branches;
mod equal;
mod expand;
mod facts;
mod group;
mod marks;
mod open;
mod read;
mod slice;

use marks::Mark;
use open::{Kind, Open};
pub(crate) use slice::Slice;

use crate::conditions::Implied;
use crate::cost;
use crate::key::{Keys, hash_of};
use crate::merge::Shared;
use crate::ranges::Ranges;
use crate::rules::{self, Settings};
use crate::walk;
use chainrule_base::{Arena, Id, Span};
use chainrule_ir::{Block, Expr, Function, Size, StateLoop, Stmt, Type, Var, VarId, type_of};
use chainrule_ops as ops;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::rc::Rc;

/// Maximum nesting of rules inside rules.
pub const MAX_NESTED: u32 = 48;

/// Renaming of variables.
pub(crate) struct Env<'s> {
    /// By variable of the source function.
    all: Vec<VarId>,
    /// For a block of the new function that is copied: replaced variables.
    some: FxHashMap<VarId, VarId>,
    /// Variables of the source function; `None` if a block of the new function is copied.
    source: Option<&'s Arena<VarId, Var>>,
}

impl<'s> Env<'s> {
    /// Returns the renaming for blocks of the new function: other variables stay.
    pub(crate) fn copying(replaced: &[(VarId, VarId)]) -> Env<'static> {
        Env { all: Vec::new(), some: replaced.iter().copied().collect(), source: None }
    }

    /// Returns the renaming for the source function.
    fn reading(vars: &'s Arena<VarId, Var>) -> Self {
        Env { all: vars.ids().collect(), some: FxHashMap::default(), source: Some(vars) }
    }

    /// Replaces `old` by `new` from here on.
    pub(crate) fn insert(&mut self, old: VarId, new: VarId) {
        if self.source.is_some() {
            self.all[old.index()] = new;
        } else {
            self.some.insert(old, new);
        }
    }

    /// Returns the replacement of `var`: by default itself.
    pub(crate) fn get(&self, var: VarId) -> VarId {
        let found = if self.source.is_some() { self.all.get(var.index()) } else { self.some.get(&var) };
        found.copied().unwrap_or(var)
    }
}

#[derive(Clone, Debug, Default)]
struct Def {
    /// `None` for parameters, indices and states, and for statements of closed blocks, which have moved into the block
    /// ([`Rebuild::bound_in`]).
    expr: Option<Rc<Expr>>,
    /// Number of the open block that binds it.
    level: usize,
    /// Position in its block, once that is closed.
    at: u32,
    /// Cost of an element of a build; 0 for others.
    element_cost: f64,
    /// Open blocks whose index, and whose state, it depends on, by number; beyond [`MAX_LEVEL`] as one.
    indices: u64,
    states: u64,
    /// All variables in the expression.
    mentions: Mentions,
}

/// Maximum level that is distinguished from others.
const MAX_LEVEL: usize = 63;

fn bit(level: usize) -> u64 {
    1 << level.min(MAX_LEVEL)
}

/// Live fields of a value that is a tuple.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) of_value: Vec<usize>,
    /// Those of the state of a general loop, if it is a tuple and some are not live.
    pub(crate) of_state: Option<Vec<usize>>,
}

/// Requests of the analyses of the source function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan<'a> {
    /// Variables bound to a `get` of a build whose element is to be computed in place, with the number of loops between
    /// the build and the `get`.
    pub(crate) fuse: FxHashMap<VarId, usize>,
    /// Builds that are fused at their only `get` and read elements of such builds at their own index: their indices and
    /// bodies, which are written there.
    pub(crate) deferred: FxHashMap<VarId, (VarId, &'a Block)>,
    /// Live fields of loops and branches whose value is a tuple.
    pub(crate) fields: FxHashMap<VarId, Fields>,
    /// Statements of loops whose values are stored in an array for other loops.
    pub(crate) share: FxHashMap<VarId, Shared>,
    /// Statements that are the only users of arrays built in branches, with these arrays: they move into the branches.
    pub(crate) branches: FxHashMap<VarId, Vec<VarId>>,
    /// Sums of products without other uses.
    pub(crate) factor: FxHashSet<VarId>,
    /// Dead statements.
    pub(crate) dead: FxHashSet<VarId>,
    /// Loops, or branches, to be merged, by the first of them; they are adjacent.
    pub(crate) merge: FxHashMap<VarId, Together<'a>>,
    /// Other members of merged groups.
    pub(crate) merged: FxHashSet<VarId>,
    /// Order in which the live statements of a block are written, if it changes.
    pub(crate) order: FxHashMap<*const Block, Vec<usize>>,
}

/// How loops or branches are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// Into the sum of the tuples of their terms.
    Sum,
    /// Into the fold over the tuple of their states.
    Fold,
    /// Into the build of the tuples of their elements.
    Elements,
    /// Into the branch of the tuple of their values.
    Branches,
    /// Into the general loop, whose array is that of the member of this number.
    Loop { array: Option<usize> },
}

/// Number of applications by counter and source span.
pub(crate) type Places = FxHashMap<(usize, Option<Span>), u64>;

/// Counters of all passes.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    /// Number of applications of each rule and step.
    pub(crate) applied: Vec<u64>,
    /// Remaining budget of applications and copied statements.
    pub(crate) left: u64,
    /// Number of written statements and visited uses of variables.
    pub(crate) work: u64,
    /// Applications by source span, if requested.
    pub(crate) places: Option<Places>,
}

/// Loops or branches to be merged.
#[derive(Clone, Debug)]
pub(crate) struct Together<'a> {
    pub(crate) how: How,
    /// Members in order.
    pub(crate) stmts: Vec<&'a Stmt>,
}

/// A function under construction.
pub(crate) struct Rebuild<'a> {
    pub(crate) vars: Arena<VarId, Var>,
    pub(crate) keys: Keys,
    /// Keys for comparison with those of `keys`.
    others: Keys,
    defs: Vec<Def>,
    open: Vec<Open>,
    pub(crate) ranges: Ranges,
    pub(crate) settings: &'a Settings,
    source: Source<'a>,
    current: Current,
    pub(crate) mode: Mode,
    pub(crate) counts: Counts<'a>,
    memory: Memory,
}

/// Requests of the analyses about the source function.
struct Source<'a> {
    plan: &'a Plan<'a>,
    /// Requests of `plan` about each variable of the source function.
    marks: Vec<Mark>,
    /// Element of each deferred build, and of each build merged with others, while they are written.
    elements: FxHashMap<VarId, VarId>,
    /// For builds merged with others: the merged build, and the component of its elements.
    parts: FxHashMap<VarId, (VarId, usize)>,
}

/// Requests about the current statement.
#[derive(Default)]
struct Current {
    /// For a `get`: number of loops between it and its build, if it is to be fused.
    fuse: Option<usize>,
    /// Whether it is a sum of products without other uses.
    factor: bool,
    /// Number of enclosing loops whose values of it are stored for other loops.
    share: Option<Shared>,
}

/// State at the current position.
#[derive(Default)]
pub(crate) struct Mode {
    /// Nesting of rules inside rules.
    nested: u32,
    /// Nesting of bodies of derivatives, which are copied unchanged.
    opaque: u32,
    /// Truth values known here, innermost last.
    known: Vec<(VarId, bool)>,
    /// Whether the current build combines arrays that a rule has split.
    pub(crate) zipping: bool,
    /// Whether an array is made of values that a loop recomputes.
    expanding: bool,
    span: Option<Span>,
}

/// Applications, and the budgets that bound them.
pub(crate) struct Counts<'a> {
    /// Number of applications of each rule.
    applied: Vec<u64>,
    /// Applications by source span, if requested.
    places: Option<&'a mut Places>,
    /// Remaining budget of applications and copied statements.
    pub(crate) left: u64,
    /// Number of written statements and visited statements and variables.
    work: Cell<u64>,
}

/// Reusable memory.
struct Memory {
    spare: Spare,
    /// Closed blocks.
    closed: Vec<Open>,
}

/// Reusable memory for expressions, passed from one pass to the next.
pub(crate) type Spare = Vec<Rc<Expr>>;

/// Returns `function` rebuilt.
pub(crate) fn rebuild(
    function: &Function,
    settings: &Settings,
    plan: &Plan<'_>,
    tally: &mut Tally,
    spare: &mut Spare,
) -> Function {
    let mut rb = Rebuild {
        vars: Arena::with_capacity(function.vars.len()),
        keys: Keys::default(),
        others: Keys::default(),
        defs: Vec::with_capacity(function.vars.len()),
        open: vec![Open::new(Kind::Top)],
        ranges: Ranges::default(),
        settings,
        source: Source {
            plan,
            marks: plan.marks(function.vars.len()),
            elements: FxHashMap::default(),
            parts: FxHashMap::default(),
        },
        current: Current::default(),
        mode: Mode::default(),
        counts: Counts {
            applied: std::mem::take(&mut tally.applied),
            places: tally.places.as_mut(),
            left: tally.left,
            work: Cell::new(tally.work),
        },
        memory: Memory { spare: std::mem::take(spare), closed: Vec::new() },
    };
    let mut env = Env::reading(&function.vars);
    // Parameters come in any order: a size may be an Int parameter further right.
    for var in function.sizes.iter().chain(&function.params) {
        let new = rb.vars.push(function.vars[*var].clone());
        rb.defs.push(Def::default());
        env.insert(*var, new);
    }
    let of = |var: &VarId| env.get(*var);
    let sizes: Vec<VarId> = function.sizes.iter().map(of).collect();
    let params: Vec<VarId> = function.params.iter().map(of).collect();
    for size in &sizes {
        rb.ranges.natural(*size, None);
    }
    for param in &params {
        let ty = rb.rename_type(&rb.vars[*param].ty.clone(), &env);
        for dimension in ty.sizes() {
            if let Some(var) = dimension.as_var() {
                rb.ranges.natural(var, None);
            }
        }
        rb.vars[*param].ty = ty;
    }
    let equal = function.equal_sizes();
    rb.learn_equal(&equal, &env);
    let requires = (function.requires.iter())
        .map(|requirement| {
            let mut requirement = requirement.clone();
            requirement.size = rb.rename_size(&requirement.size, &env);
            rb.ranges.require(&requirement.size);
            if requirement.exactly_zero {
                rb.ranges.require(&requirement.size.neg());
            }
            requirement
        })
        .collect();
    rb.replace_equal(&equal, &mut env);
    let result = rb.stmts(&function.body, &mut env);
    let (applied, left, work) = (std::mem::take(&mut rb.counts.applied), rb.counts.left, rb.counts.work.get());
    let body = rb.leave(result);
    let vars = rb.vars;
    *spare = rb.memory.spare;
    (tally.applied, tally.left, tally.work) = (applied, left, work);
    Function { name: function.name.clone(), vars, sizes, params, requires, body }
}

/// Writing.
impl Rebuild<'_> {
    /// Writes `expr` of type `ty`, or its replacement by a rule.
    pub(crate) fn emit(&mut self, expr: Expr, ty: Type) -> VarId {
        if self.mode.opaque > 0 {
            let uses = self.uses(&expr);
            return self.push(expr, ty, self.open.len().saturating_sub(1), &uses);
        }
        let share = std::mem::take(&mut self.current.share);
        if self.mode.nested < MAX_NESTED {
            let settings = self.settings;
            for (number, rule) in settings.rules.of(&expr) {
                if self.counts.left == 0 {
                    break;
                }
                self.mode.nested += 1;
                let found = (rule.apply)(self, &expr, &ty);
                self.mode.nested -= 1;
                if let Some(var) = found
                    && *self.ty(var) == ty
                {
                    self.count(number);
                    self.counts.left = self.counts.left.saturating_sub(1);
                    return var;
                }
            }
        }
        self.current.fuse = None;
        self.place(expr, ty, share)
    }

    /// As [`Self::emit`], with the type returned by [`type_of`].
    pub(crate) fn compute(&mut self, expr: Expr) -> VarId {
        let ty = type_of(&expr, &self.vars).unwrap_or(Type::Double);
        self.emit(expr, ty)
    }

    pub(crate) fn real(&mut self, value: f64) -> VarId {
        self.emit(Expr::Real(value), Type::Double)
    }

    pub(crate) fn bool(&mut self, value: bool) -> VarId {
        self.emit(Expr::Bool(value), Type::Bool)
    }

    pub(crate) fn int(&mut self, size: Size) -> VarId {
        self.emit(Expr::Size(size), Type::Int)
    }

    pub(crate) fn op(&mut self, op: ops::Op, args: &[VarId]) -> VarId {
        self.compute(Expr::op(op, args))
    }

    pub(crate) fn tuple(&mut self, fields: Vec<VarId>, ty: &Type) -> VarId {
        self.emit(Expr::Tuple(fields), ty.clone())
    }

    fn place(&mut self, mut expr: Expr, ty: Type, share: Option<Shared>) -> VarId {
        // Operands of commutative operators are sorted by their definition.
        if let Expr::Op(op, args) = &mut expr
            && op.is_commutative()
        {
            args.sort_unstable();
        }
        if let Expr::Size(size) = &expr
            && let Some(var) = size.as_var()
        {
            return var;
        }
        let key = self.keys.key(&self.vars, &expr, &ty);
        let hash = hash_of(key);
        if self.settings.common
            && let Some((_, var)) = self.open.iter().rev().find_map(|open| {
                open.table.find(hash, |(other, var)| {
                    let def = || self.defs[var.index()].expr.as_ref();
                    *other == hash
                        && def().is_some_and(|def| *self.others.key(&self.vars, def, &self.vars[*var].ty) == *key)
                })
            })
        {
            let var = *var;
            if !expr.blocks().is_empty() || matches!(expr, Expr::Op(..) | Expr::Get { .. }) {
                self.count(rules::COMMON);
            }
            return var;
        }
        if self.settings.expand
            && !self.mode.expanding
            && let Some(var) = self.expand(&expr, &ty)
        {
            self.count(rules::EXPAND);
            return var;
        }
        if let Some(shared) = share
            && !self.mode.expanding
            && let Some(var) = self.share(&expr, &ty, shared)
        {
            self.count(rules::SHARE);
            return var;
        }
        let uses = self.uses(&expr);
        let level = self.target(&expr, &ty, &uses);
        if level + 1 < self.open.len() && !is_free(&expr) {
            self.count(rules::HOIST);
        }
        let var = self.push(expr, ty, level, &uses);
        self.open[level].table.insert_unique(hash, (hash, var), |(hash, _)| *hash);
        var
    }

    fn push(&mut self, expr: Expr, ty: Type, level: usize, uses: &Uses) -> VarId {
        self.worked(1);
        let value = if let Expr::Size(size) = &expr { Some(size.clone()) } else { None };
        if let (None, Type::Int, Expr::Op(op, args)) = (&value, &ty, &expr) {
            self.integer(self.vars.next_id(), *op, args, level);
        }
        if let (Type::Int, Expr::Get { array, index, .. }) = (&ty, &expr)
            && let Some(c) = self.same_in_all_elements(*array)
            && !self.cannot_be_read(*array, *index)
        {
            self.ranges.know(self.vars.next_id(), c);
        }
        let element_cost = match &expr {
            Expr::Build { body, .. } => {
                let ty = |var: VarId| &self.vars[var].ty;
                cost::block(body, &ty)
            }
            _ => 0.0,
        };
        let var = self.vars.push(Var { ty, name: None, span: self.mode.span, value });
        let expr = Some(self.kept(expr));
        let Uses { indices, states, mentions, .. } = *uses;
        self.defs.push(Def { expr, level, at: 0, element_cost, indices, states, mentions });
        self.open[level].stmts.push((var, self.mode.span));
        var
    }

    /// Stores `expr` in reusable memory.
    fn kept(&mut self, expr: Expr) -> Rc<Expr> {
        if let Some(mut spare) = self.memory.spare.pop()
            && let Some(room) = Rc::get_mut(&mut spare)
        {
            *room = expr;
            return spare;
        }
        Rc::new(expr)
    }

    /// Counts an application.
    pub(crate) fn count(&mut self, number: usize) {
        self.counts.applied[number] += 1;
        if let Some(places) = &mut self.counts.places {
            *places.entry((number, self.mode.span)).or_insert(0) += 1;
        }
    }

    fn worked(&self, more: u64) {
        self.counts.work.set(self.counts.work.get() + more);
    }

    /// Returns the uses of open blocks in `expr`, whose own blocks are closed.
    fn uses(&self, expr: &Expr) -> Uses {
        let mut mentions = Mentions::default();
        self.mentions(expr, &mut mentions);
        let n_open = self.open.len();
        // Variables bound inside are bound in closed blocks.
        let open = if n_open > MAX_LEVEL { u64::MAX } else { bit(n_open) - 1 };
        let level = if n_open > MAX_LEVEL {
            let mut level = 0;
            walk::mentioned(expr, &mut |v| {
                let at = self.defs.get(v.index()).map_or(0, |def| def.level);
                level = if at < n_open { at.max(level) } else { level };
            });
            level
        } else {
            (mentions.levels & open).checked_ilog2().unwrap_or(0) as usize
        };
        Uses { indices: mentions.indices & open, states: mentions.states & open, level, mentions }
    }

    /// Adds the variables in `expr` to `all`. Those of its closed blocks are stored with the statements.
    fn mentions(&self, expr: &Expr, all: &mut Mentions) {
        let see = |var: VarId, all: &mut Mentions| {
            self.worked(1);
            if let Some(def) = self.defs.get(var.index()) {
                all.indices |= def.indices;
                all.states |= def.states;
                all.levels |= bit(def.level);
            }
        };
        expr.for_each_operand(&mut |var| see(var, all));
        if expr.is_leaf() {
            return;
        }
        expr.binders().into_iter().for_each(|var| see(var, all));
        for block in expr.blocks() {
            for stmt in &block.stmts {
                self.worked(1);
                if let Some(def) = self.defs.get(stmt.var.index()) {
                    all.indices |= def.mentions.indices;
                    all.states |= def.mentions.states;
                    all.levels |= def.mentions.levels;
                }
            }
            see(block.result, all);
        }
    }

    /// Returns the block for a statement: the outermost one in which all its operands are in scope and to which it may
    /// be moved.
    fn target(&self, expr: &Expr, ty: &Type, uses: &Uses) -> usize {
        let top = self.open.len().saturating_sub(1);
        let mut needed = uses.level;
        ty.for_each_size(&mut |size| {
            for v in size.terms().flat_map(|(monomial, _)| monomial) {
                needed = needed.max(self.defs.get(v.index()).map_or(0, |def| def.level));
            }
        });
        let free = is_free(expr);
        let mut level = top;
        while level > needed {
            let may_leave = match self.open[level].kind {
                Kind::Top | Kind::Opaque => false,
                Kind::Loop { runs } => {
                    let loops = || self.open[..level].iter().filter(|open| open.is_loop()).count();
                    free || (self.settings.hoist && (runs || !self.may_fail(expr, ty, loops(), &mut Vec::new())))
                }
                Kind::Lazy => free,
            };
            if !may_leave {
                break;
            }
            level -= 1;
        }
        level
    }

    /// Binds a variable of a loop, a branch or a derivative.
    fn bind(&mut self, ty: Type) -> VarId {
        let var = self.vars.push(Var { ty, name: None, span: self.mode.span, value: None });
        let level = self.open.len().saturating_sub(1);
        self.defs.push(Def { level, states: bit(level), ..Def::default() });
        var
    }

    /// Writes a loop over `count`; returns its index, and the block that `body` writes.
    pub(crate) fn loop_(&mut self, count: &Size, body: impl FnOnce(&mut Self, VarId) -> VarId) -> (VarId, Block) {
        let runs = self.ranges.not_negative(&count.sub(&Size::constant(1)));
        self.enter(Kind::Loop { runs });
        let index = self.bind(Type::Int);
        let level = self.open.len() - 1;
        self.defs[index.index()] = Def { level, indices: bit(level), ..Def::default() };
        self.open[level].counted = Some((index, count.clone()));
        self.ranges.natural(index, Some(count.clone()));
        self.ranges.enter(count, self.clamped(count));
        let result = body(self, index);
        self.ranges.leave();
        (index, self.leave(result))
    }

    /// Writes `build size (fun index -> body)`.
    pub(crate) fn build(&mut self, size: Size, body: impl FnOnce(&mut Self, VarId) -> VarId) -> VarId {
        let (index, body) = self.loop_(&size, body);
        self.compute(Expr::Build { size, index, body })
    }

    /// Writes `sum count (fun index -> body)`.
    pub(crate) fn sum(&mut self, count: Size, body: impl FnOnce(&mut Self, VarId) -> VarId) -> VarId {
        let (index, body) = self.loop_(&count, body);
        self.compute(Expr::Sum { count, index, body })
    }

    /// Writes `ifold (fun state index -> body) init count`.
    pub(crate) fn fold(
        &mut self,
        count: Size,
        init: VarId,
        body: impl FnOnce(&mut Self, VarId, VarId) -> VarId,
    ) -> VarId {
        let ty = self.ty(init).clone();
        let steps = self.state_loop(count, init, body);
        self.emit(Expr::Fold(steps), ty)
    }

    /// Writes the body of a loop from `init`, but not the loop.
    fn state_loop(
        &mut self,
        count: Size,
        init: VarId,
        body: impl FnOnce(&mut Self, VarId, VarId) -> VarId,
    ) -> StateLoop {
        let ty = self.ty(init).clone();
        let mut bound = None;
        let (index, body) = self.loop_(&count, |rb, index| {
            let state = rb.bind(ty);
            bound = Some(state);
            body(rb, state, index)
        });
        StateLoop { count, index, state: bound.unwrap_or(index), init, body }
    }

    /// Returns the result of `body` in an iteration of a loop over `count` with a state of type `ty`; the loop is not
    /// written.
    pub(crate) fn trial(
        &mut self,
        count: &Size,
        ty: &Type,
        body: impl FnOnce(&mut Self, VarId, VarId) -> Vec<VarId>,
    ) -> Vec<VarId> {
        let mut made = Vec::new();
        self.loop_(count, |rb, index| {
            let state = rb.bind(ty.clone());
            made = body(rb, state, index);
            index
        });
        made
    }

    /// Writes the general loop from `init`.
    pub(crate) fn general(
        &mut self,
        count: Size,
        init: VarId,
        body: impl FnOnce(&mut Self, VarId, VarId) -> VarId,
    ) -> VarId {
        let steps = self.state_loop(count, init, body);
        self.compute(Expr::Loop(steps))
    }

    /// Writes a block that may not run, in which `condition` is known to be `value`.
    pub(crate) fn branch(&mut self, condition: VarId, value: bool, body: impl FnOnce(&mut Self) -> VarId) -> Block {
        let (n_known, n_assumed) = (self.mode.known.len(), self.ranges.assumptions());
        self.assume(condition, value);
        self.enter(Kind::Lazy);
        let result = body(self);
        self.mode.known.truncate(n_known);
        self.ranges.drop_assumptions(n_assumed);
        self.leave(result)
    }

    /// Writes `if condition then ... else ...` with branches of type `ty`.
    pub(crate) fn if_(
        &mut self,
        condition: VarId,
        ty: &Type,
        then: impl FnOnce(&mut Self) -> VarId,
        otherwise: impl FnOnce(&mut Self) -> VarId,
    ) -> VarId {
        match self.truth(condition) {
            Some(true) => then(self),
            Some(false) => otherwise(self),
            None => {
                let then = self.branch(condition, true, then);
                let otherwise = self.branch(condition, false, otherwise);
                self.emit(Expr::If { condition, then, otherwise }, ty.clone())
            }
        }
    }

    /// Records the consequences of `condition` being `value`.
    fn assume(&mut self, condition: VarId, value: bool) {
        for Implied { var, value, made } in self.implied(None, condition, value) {
            self.mode.known.push((var, value));
            if let Some((op, args)) = made {
                self.learned(op, &args, value).iter().for_each(|size| self.ranges.assume(size));
            }
        }
    }

    /// Writes the zero of the linear type `ty`.
    pub(crate) fn zero(&mut self, ty: &Type) -> VarId {
        self.any_value(ty)
    }

    /// Writes the sum of two values of one linear type.
    pub(crate) fn plus(&mut self, a: VarId, b: VarId) -> VarId {
        match self.ty(a) {
            Type::Double => self.op(ops::Op::Add, &[a, b]),
            _ => self.compute(Expr::Plus(a, b)),
        }
    }

    /// Writes `array[index]` for an index that is known to be in range.
    pub(crate) fn get(&mut self, array: VarId, index: VarId) -> VarId {
        self.compute(Expr::Get { array, index, proved: true })
    }

    /// Writes an arbitrary value of type `ty`; zero if the type has a zero.
    pub(crate) fn any_value(&mut self, ty: &Type) -> VarId {
        match ty {
            Type::Double => self.real(0.0),
            Type::Int => self.int(Size::zero()),
            Type::Bool => self.bool(false),
            Type::Array(..) if ty.is_linear() => self.emit(Expr::Zero, ty.clone()),
            Type::Array(size, element) => self.build(size.clone(), |rb, _| rb.any_value(element)),
            Type::Tuple(fields, _) => {
                let parts = fields.iter().map(|field| self.any_value(field)).collect();
                self.tuple(parts, ty)
            }
        }
    }
}

impl ops::Algebra for Rebuild<'_> {
    type Value = VarId;

    fn constant(&mut self, c: f64) -> VarId {
        self.real(c)
    }

    fn apply(&mut self, op: ops::Op, args: &[VarId]) -> VarId {
        self.op(op, args)
    }
}

/// Dependences of the variables in an expression, including its blocks, by the numbers of blocks; beyond [`MAX_LEVEL`]
/// as one.
#[derive(Clone, Copy, Debug, Default)]
struct Mentions {
    indices: u64,
    states: u64,
    /// Blocks that bind them.
    levels: u64,
}

/// Uses of open blocks in an expression.
struct Uses {
    /// Blocks whose index it depends on, as [`Def::indices`].
    indices: u64,
    /// Blocks whose state it depends on.
    states: u64,
    /// Innermost block that binds a variable of it.
    level: usize,
    mentions: Mentions,
}

// Whether it costs nothing in any block.
fn is_free(expr: &Expr) -> bool {
    matches!(expr, Expr::Real(_) | Expr::Bool(_) | Expr::Size(_) | Expr::Tuple(_) | Expr::Component(..) | Expr::Zero)
}
