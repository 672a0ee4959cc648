//! Horizontal fusion: loops, and branches, that become one.
//!
//! In: a function, and its dead statements. Out: new orders of its blocks in which members of a group are adjacent, and
//! the groups. Loops of one block form a group if they have the same count, none depends on another, and their bodies
//! share a load or an operation, which is then computed once. A second array is written by adding to zero, so its loop
//! joins only if it shares more than that costs. A loop that only reads an array's element at its own index may also
//! join the loop that makes the array, which stays: it reads the element when it is made. Branches of one block are
//! grouped like loops, with their condition as count.
//!
//! Result of a group:
//!
//! | members | result |
//! | --- | --- |
//! | sums | the sum of the tuples of their terms |
//! | sums of numbers, folds | the fold over the tuple of their states |
//! | builds of which only elements are used | the build of the tuples of their elements |
//! | branches under one condition, whose values are numbers | the branch whose value is the tuple of theirs |
//! | builds, loops and any of these | the general loop: one array and sums of one-hot arrays |
//!
//! An array of a few numbers counts as numbers there.
//!
//! A sum of arrays that is added to the state of a loop, or to a version of it with elements changed, adds in the
//! memory of the state. So it depends on that version, and joins no loop that the version needs. If it reads the state,
//! its numbers are gathered before the state changes, and it joins no loop at all. Nor does a build that changes
//! elements of a state, which is made in that memory too. A build of one-hot arrays is such a sum. A product of
//! matrices stays alone, for it is tiled. A search, which carries an index or compares what it carries, joins no
//! loop that runs in lanes without it, unless both call the same functions.
//!
//! The elements of the general loop are the most expensive array to add; the other arrays are written in place.
//!
//! A block's statements are sorted again, each after its operands and each group as one, by a depth-first search with
//! an explicit stack that keeps the old order where possible. Linear, except for the search for shared work, which
//! compares each loop with each group of its block.

mod share;

pub(crate) use share::{Shared, shared};

use crate::cost;
use crate::fusion;
use crate::key::{Keys, Numbers};
use crate::rebuild::{How, Plan, Together};
use crate::walk;
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Function, Rows, Size, StateLoop, Stmt, Type, VarId};
use chainrule_ops::{Op, Semantics};
use rustc_hash::{FxHashMap, FxHashSet};
use share::MIN_SHARED;
use smallvec::{SmallVec, smallvec};

/// Maximum number of groups of a block.
const MAX_GROUPS: usize = 64;

/// Maximum number of loops in a group in which each reads the array of another one: more arrays do not fit into the
/// first-level cache.
const MAX_PARTS: usize = 8;

/// Maximum length of an array that is the value of a branch like as many numbers.
const MAX_LITERAL: i64 = 8;

/// Statements of a block that a statement of it depends on, ascending.
type Needs = SmallVec<[usize; 6]>;

/// Work of a loop or a branch: one of its blocks, and a number that is equal for equal work.
type Work = (usize, u64);

/// Groups: indices of the statements in their block, and how they are merged.
type Groups = Vec<(Vec<usize>, How)>;

/// Kind of a group member.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A sum of numbers.
    Sum,
    /// A sum of arrays.
    Terms,
    Fold,
    /// A build of which only elements are used.
    Elements,
    /// Any other build.
    Array,
    /// A general loop that makes no array.
    Running,
    /// Any other general loop.
    Loop,
    /// A branch whose value is numbers.
    Branch,
}

impl Kind {
    /// Kinds with a carried state, whose iterations run in order, as bits.
    const IN_ORDER: u8 = Self::Fold.bit() | Self::Running.bit() | Self::Loop.bit();

    /// Returns whether a negative count is an error.
    fn is_array(self) -> bool {
        !matches!(self, Self::Sum | Self::Terms | Self::Fold | Self::Branch)
    }

    /// Returns whether iterations make an array, one element each.
    fn makes_array(self) -> bool {
        self.is_array() && self != Self::Running
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Common property of members of a group.
#[derive(Clone, Copy, PartialEq)]
enum Over<'a> {
    Count(&'a Size),
    Condition(VarId),
}

/// A possible member of a group.
struct Member<'a> {
    kind: Kind,
    over: Over<'a>,
    /// Index of a loop.
    index: Option<VarId>,
    /// Body of a loop, sides of a branch.
    blocks: SmallVec<[&'a Block; 2]>,
}

struct Group<'a> {
    over: Over<'a>,
    members: Vec<usize>,
    /// Kinds of the members, as bits.
    kinds: u8,
    /// Member whose array is that of the loop, and the cost of an iteration if another one is in its place.
    array: Option<(usize, f64)>,
    /// Cost of an iteration for writing the arrays of the other members, in a group that is a general loop.
    others: f64,
    /// Groups that this one depends on, as bits.
    after: u64,
    /// Whether the members are searches, which do not run in lanes.
    searches: bool,
}

impl Group<'_> {
    fn has_array(&self) -> bool {
        self.kinds & !(Kind::Sum.bit() | Kind::Terms.bit() | Kind::Fold.bit() | Kind::Branch.bit()) != 0
    }

    /// Returns the cost of an iteration if a loop of this kind joins, which pays `adding` if its array is not that of
    /// the loop; infinite if it cannot join.
    fn price(&self, kind: Kind, adding: f64) -> f64 {
        let has = |kind: Kind| self.kinds & kind.bit() != 0;
        let arrays = kind.is_array() || self.has_array();
        let may_join = match kind {
            Kind::Terms => arrays || !has(Kind::Fold),
            Kind::Fold => arrays || !has(Kind::Terms),
            _ => true,
        };
        let is_elements = self.kinds == Kind::Elements.bit();
        // Builds of elements become a build of tuples at no cost, but a general loop has only one array.
        let others = if is_elements { self.others } else { 0.0 };
        match self.array {
            _ if !may_join => f64::INFINITY,
            _ if kind == Kind::Elements && is_elements => 0.0,
            Some((_, instead)) if kind.makes_array() => others + adding.min(instead),
            _ => others,
        }
    }

    /// Records the kind of the next member, and its array unless that is only passed on to other members.
    fn join(&mut self, kind: Kind, adding: f64, is_passing: bool) {
        if kind.makes_array() && !is_passing {
            match self.array {
                Some((_, instead)) if instead >= adding => self.others += adding,
                before => {
                    self.others += before.map_or(0.0, |(_, instead)| instead);
                    self.array = Some((self.members.len(), adding));
                }
            }
        }
        self.kinds |= kind.bit();
    }
}

struct Merge<'a, 'p> {
    function: &'p Function,
    plan: &'a mut Plan<'p>,
    /// Whether each array is used other than by a `get`.
    escapes: Vec<bool>,
    /// Variables of loops that hold their state.
    states: FxHashSet<VarId>,
    /// Position of each variable in the current block; or [`ELSEWHERE`].
    at: Vec<usize>,
    /// Allowed rewrites: under strict ones, which preserve negative zeros, no array is written by adding to zero.
    semantics: Semantics,
    keys: Keys,
    /// Number of loops around the current block.
    depth: u32,
}

/// Position of a variable outside this block.
const ELSEWHERE: usize = usize::MAX;

/// Puts into `plan` the groups of loops to be merged, and the orders of blocks in which they are adjacent.
pub(crate) fn analyse<'p>(function: &'p Function, plan: &mut Plan<'p>, semantics: Semantics) {
    let mut merge = Merge { semantics, ..Merge::new(function, plan) };
    merge.escaping(&function.body);
    merge.block(&function.body);
}

impl<'a, 'p> Merge<'a, 'p> {
    fn new(function: &'p Function, plan: &'a mut Plan<'p>) -> Self {
        let n = function.vars.len();
        Self {
            function,
            plan,
            escapes: vec![false; n],
            states: FxHashSet::default(),
            at: vec![ELSEWHERE; n],
            semantics: Semantics::default(),
            keys: Keys::default(),
            depth: 0,
        }
    }

    fn escaping(&mut self, block: &Block) {
        self.escapes[block.result.index()] = true;
        for stmt in &block.stmts {
            if self.plan.dead.contains(&stmt.var) {
                continue;
            }
            stmt.expr.for_each_operand(&mut |operand| {
                let gets = matches!(&stmt.expr, Expr::Get { array, .. } if *array == operand);
                if !gets {
                    self.escapes[operand.index()] = true;
                }
            });
            if let Expr::Fold(StateLoop { state, .. }) | Expr::Loop(StateLoop { state, .. }) = &stmt.expr {
                self.states.insert(*state);
            }
            if !stmt.expr.is_leaf() {
                stmt.expr.blocks().into_iter().for_each(|block| self.escaping(block));
            }
        }
    }

    /// Makes the loops of each group adjacent, in `block` and inside it, except inside the groups: there, work that
    /// several members do is found to be the same before loops inside them are merged with others.
    fn block(&mut self, block: &'p Block) {
        let mut grouped: FxHashSet<VarId> = FxHashSet::default();
        if self.may_group(block)
            && let Some((order, groups)) = self.order(block)
        {
            self.plan.order.insert(block, order);
            for (members, how) in groups {
                let stmts: Vec<&Stmt> = members.iter().map(|at| &block.stmts[*at]).collect();
                grouped.extend(stmts.iter().map(|stmt| stmt.var));
                self.plan.merged.extend(stmts.iter().skip(1).map(|stmt| stmt.var));
                let first = stmts.first().map(|stmt| stmt.var);
                self.plan.merge.extend(first.map(|first| (first, Together { how, stmts })));
            }
        }
        for stmt in &block.stmts {
            // Bodies of derivatives stay unchanged.
            if !stmt.expr.is_leaf() && !walk::is_opaque(&stmt.expr) && !grouped.contains(&stmt.var) {
                let loops = u32::from(self.loop_of(stmt).is_some());
                self.depth += loops;
                stmt.expr.blocks().into_iter().for_each(|block| self.block(block));
                self.depth -= loops;
            }
        }
    }

    /// Returns whether two loops of `block` have one count, or two branches one condition; others cannot be grouped.
    fn may_group(&self, block: &Block) -> bool {
        let mut all: SmallVec<[Over<'_>; 8]> = SmallVec::new();
        for stmt in &block.stmts {
            if let Some(Member { over, .. }) = self.member(stmt)
                && !self.plan.dead.contains(&stmt.var)
            {
                if all.contains(&over) || all.len() == MAX_GROUPS {
                    return true;
                }
                all.push(over);
            }
        }
        false
    }

    fn member<'e>(&self, stmt: &'e Stmt) -> Option<Member<'e>> {
        if let Expr::If { condition, then, otherwise } = &stmt.expr {
            let is_numbers = match self.function.ty(stmt.var) {
                Type::Tuple(fields, _) => fields.iter().all(is_few_numbers),
                ty => is_few_numbers(ty),
            };
            let over = Over::Condition(*condition);
            let blocks = smallvec![then, otherwise];
            return is_numbers.then_some(Member { kind: Kind::Branch, over, index: None, blocks });
        }
        let (kind, count, index, body) = self.loop_of(stmt)?;
        Some(Member { kind, over: Over::Count(count), index: Some(index), blocks: smallvec![body] })
    }

    fn loop_of<'e>(&self, stmt: &'e Stmt) -> Option<(Kind, &'e Size, VarId, &'e Block)> {
        let nothing = |ty: &Type| matches!(ty, Type::Tuple(fields, _) if fields.is_empty());
        let ty = self.function.ty(stmt.var);
        let (kind, count, index, body) = match &stmt.expr {
            Expr::Sum { count, index, body } => {
                (if *ty == Type::Double { Kind::Sum } else { Kind::Terms }, count, index, body)
            }
            Expr::Fold(StateLoop { count, index, body, .. }) => (Kind::Fold, count, index, body),
            Expr::Build { size, index, body } => {
                let escapes = self.escapes[stmt.var.index()];
                (if escapes { Kind::Array } else { Kind::Elements }, size, index, body)
            }
            Expr::Loop(StateLoop { count, index, body, .. }) => {
                let Type::Tuple(parts, _) = ty else { return None };
                let empty = matches!(parts.get(1), Some(Type::Array(_, element)) if nothing(element));
                (if empty { Kind::Running } else { Kind::Loop }, count, index, body)
            }
            _ => return None,
        };
        Some((kind, count, *index, body))
    }

    /// Returns the live statements of `block` in their new order, and the groups among them; `None` if there are none,
    /// since the order then does not change.
    fn order(&mut self, block: &Block) -> Option<(Vec<usize>, Groups)> {
        let stmts = &block.stmts;
        let (needs, alone) = self.needs(block);
        let groups = self.groups(block, &needs, &alone);
        if groups.iter().all(|group| group.members.len() == 1) {
            return None;
        }
        let mut group_of: Vec<Option<usize>> = vec![None; stmts.len()];
        for (number, group) in groups.iter().enumerate().filter(|(_, group)| group.members.len() > 1) {
            for member in &group.members {
                group_of[*member] = Some(number);
            }
        }
        // Every statement after its operands; the members of a group together.
        let mut state = vec![0_u8; stmts.len()];
        let mut order: Vec<usize> = Vec::with_capacity(stmts.len());
        for first in 0..stmts.len() {
            let mut stack = vec![first];
            while let Some(&next) = stack.last() {
                let members: &[usize] = match group_of[next] {
                    Some(number) => &groups[number].members,
                    None => std::slice::from_ref(&next),
                };
                let leader = members[0];
                match state[leader] {
                    0 => {
                        state[leader] = 1;
                        for member in members.iter().rev() {
                            let open = needs[*member].iter().rev().filter(|need| {
                                let leader = group_of[**need].map_or(**need, |number| groups[number].members[0]);
                                state[leader] == 0
                            });
                            stack.extend(open);
                        }
                    }
                    1 => {
                        state[leader] = 2;
                        order.extend(members);
                        stack.pop();
                    }
                    _ => {
                        stack.pop();
                    }
                }
            }
        }
        order.retain(|at| !self.plan.dead.contains(&stmts[*at].var));
        let together = |group: Group<'_>| {
            let how = if group.kinds == Kind::Branch.bit() {
                How::Branches
            } else if group.kinds == Kind::Elements.bit() {
                How::Elements
            } else if group.has_array() {
                How::Loop { array: group.array.map(|(member, _)| member) }
            } else if group.kinds & Kind::Fold.bit() != 0 {
                How::Fold
            } else {
                How::Sum
            };
            (group.members, how)
        };
        Some((order, groups.into_iter().filter(|group| group.members.len() > 1).map(together).collect()))
    }

    /// Returns the statements of `block` that each of its statements depends on, and those that join no loop.
    fn needs(&mut self, block: &Block) -> (Vec<Needs>, SmallVec<[usize; 4]>) {
        let Self { function, at, .. } = self;
        block.stmts.iter().enumerate().for_each(|(here, stmt)| at[stmt.var.index()] = here);
        let of = |stmt: &Stmt| {
            let mut needs = Needs::new();
            let mut see = |var: VarId| {
                let here = at[var.index()];
                // Most are mentioned several times in sequence.
                if here != ELSEWHERE && needs.last() != Some(&here) {
                    needs.push(here);
                }
            };
            walk::mentioned(&stmt.expr, &mut see);
            function.ty(stmt.var).for_each_size(&mut |size| {
                size.terms().flat_map(|(monomial, _)| monomial).for_each(|var| see(*var));
            });
            needs.sort_unstable();
            needs.dedup();
            needs
        };
        let mut needs: Vec<Needs> = block.stmts.iter().map(of).collect();
        let alone = self.alone(block, &mut needs);
        block.stmts.iter().for_each(|stmt| self.at[stmt.var.index()] = ELSEWHERE);
        (needs, alone)
    }

    /// Returns the statements that join no loop. Adds to `needs` of each sum of arrays, and of each build of one-hot
    /// ones, the version of a loop's state to which it is added. It is used for nothing else, so that the version does
    /// not need it in turn. Linear in the block and its chains of sums.
    fn alone(&self, block: &Block, needs: &mut [Needs]) -> SmallVec<[usize; 4]> {
        let mut alone = SmallVec::new();
        let mut n_users = vec![0_usize; block.stmts.len()];
        let mut last_user = vec![0_usize; block.stmts.len()];
        for (user, needs) in needs.iter().enumerate() {
            for need in needs {
                n_users[*need] += 1;
                last_user[*need] = user;
            }
        }
        let only_user = |at: usize| (n_users[at] == 1 && block.stmts[at].var != block.result).then(|| last_user[at]);
        for (at, stmt) in block.stmts.iter().enumerate() {
            let changes_state = || {
                let array = stmt.expr.changed_array(Rows::Named, &|_| false);
                array.is_some_and(|array| self.is_version(block, array))
            };
            let is_tiled =
                || fusion::is_matrix_product(&stmt.expr) || self.depth > 0 && fusion::is_row_of_product(&stmt.expr);
            if matches!(stmt.expr, Expr::Build { .. }) && (is_tiled() || changes_state()) {
                alone.push(at);
            }
            let Expr::Plus(a, b) = stmt.expr else { continue };
            for term in [a, b] {
                if let Some(sum) = self.scattered(block, term, only_user)
                    && let Some(version) = self.added_to(block, term, only_user)
                {
                    needs[sum].push(version);
                    needs[sum].sort_unstable();
                    if self.reads_state(block, sum) {
                        alone.push(sum);
                    }
                }
            }
        }
        alone
    }

    /// Returns whether a statement reads the state of a loop, or parts of it.
    fn reads_state(&self, block: &Block, at: usize) -> bool {
        let mut found = false;
        walk::mentioned(&block.stmts[at].expr, &mut |mut var| {
            while let Some(stmt) = block.stmts.get(self.at[var.index()])
                && let Expr::Component(whole, _) | Expr::Get { array: whole, .. } = &stmt.expr
            {
                var = *whole;
            }
            found |= self.states.contains(&var);
        });
        found
    }

    /// Returns the sum of arrays, or the build of one-hot arrays, that `term` is or places in an array of zeros, if it
    /// is used for nothing else.
    fn scattered(&self, block: &Block, mut term: VarId, only_user: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        loop {
            let at = Some(self.at[term.index()]).filter(|at| *at != ELSEWHERE && only_user(*at).is_some())?;
            match &block.stmts[at].expr {
                Expr::OneHot { value, .. } => term = *value,
                Expr::Sum { .. } => return matches!(self.function.ty(term), Type::Array(..)).then_some(at),
                Expr::Build { body, .. } => return ends_one_hot(body).then_some(at),
                _ => return None,
            }
        }
    }

    /// Returns the version of a loop's state to which `term` is added, by itself or after other terms, if it is made in
    /// this block.
    fn added_to(&self, block: &Block, mut term: VarId, only_user: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        for _ in 0..walk::MAX_VERSIONS {
            let user = &block.stmts[only_user(self.at[term.index()])?];
            let Expr::Plus(a, b) = user.expr else { return None };
            let other = if a == term { b } else { a };
            if self.is_version(block, other) {
                return self.version(block, other);
            }
            term = user.var;
        }
        None
    }

    /// Returns the first version of a loop's state in the sum `whole`, if it is made in this block.
    fn version(&self, block: &Block, mut whole: VarId) -> Option<usize> {
        for _ in 0..walk::MAX_VERSIONS {
            let at = Some(self.at[whole.index()]).filter(|at| *at != ELSEWHERE)?;
            match block.stmts[at].expr {
                Expr::Plus(a, b) => whole = if self.is_version(block, a) { a } else { b },
                _ => return self.is_version(block, whole).then_some(at),
            }
        }
        None
    }

    /// Returns whether an array is the state of a loop, possibly with elements changed and arrays added.
    fn is_version(&self, block: &Block, array: VarId) -> bool {
        let sources = |var: VarId, open: &mut Vec<VarId>| {
            if let Some(stmt) = block.stmts.get(self.at[var.index()]) {
                walk::sources_of(&stmt.expr, &|_| false, open);
            }
        };
        walk::is_version(array, |var| self.states.contains(&var), sources)
    }

    fn groups<'s>(&mut self, block: &'s Block, needs: &[Needs], alone: &[usize]) -> Vec<Group<'s>> {
        // Number of users in the block of each statement.
        let mut users = vec![0_usize; block.stmts.len()];
        needs.iter().flatten().for_each(|need| users[*need] += 1);
        let mut passing = self.passing(block, needs, alone, &users);
        loop {
            let groups = self.grouped(block, needs, alone, &users, &passing);
            // An array is made after all where one that reads it is in no group with it.
            let n_passing = passing.len();
            passing.retain(|at| {
                let of = groups.iter().find(|group| group.members.contains(at));
                let is_in = |user: usize| of.is_some_and(|group| group.members.contains(&user));
                (0..needs.len()).all(|user| !needs[user].contains(at) || is_in(user))
            });
            if passing.len() == n_passing {
                return groups;
            }
        }
    }

    /// Returns the groups if the arrays of `passing` cost nothing.
    fn grouped<'s>(
        &mut self,
        block: &'s Block,
        needs: &[Needs],
        alone: &[usize],
        users: &[usize],
        passing: &[usize],
    ) -> Vec<Group<'s>> {
        let stmts = &block.stmts;
        // An array used by a single loop is not made, if that pays. In blocks with many loops, few would be in a group
        // at all.
        let n_loops = stmts.iter().filter(|stmt| self.loop_of(stmt).is_some()).count();
        let stays = |at: usize| n_loops <= MAX_GROUPS && (users[at] > 1 || stmts[at].var == block.result);
        let mut groups: Vec<Group<'s>> = Vec::new();
        // Groups that each statement depends on, and its own group.
        let mut after: Vec<u64> = vec![0; stmts.len()];
        let mut numbers = Numbers::default();
        // Groups that compute each work, as bits.
        let mut computed: FxHashMap<Work, u64> = FxHashMap::default();
        let mut group_of: Vec<Option<usize>> = vec![None; stmts.len()];
        for (at, stmt) in stmts.iter().enumerate() {
            let grouped = || needs[at].iter().filter_map(|need| Some((*need, group_of[*need]?)));
            let direct = grouped().fold(0, |all, (_, number)| all | 1 << number);
            let indirect = needs[at].iter().fold(0, |all, need| all | after[*need]);
            // Dependences of groups may have grown since.
            let closure = |depends: u64| {
                let (mut all, mut rest) = (depends, depends);
                while rest != 0 {
                    all |= groups[rest.trailing_zeros() as usize].after;
                    rest &= rest - 1;
                }
                all
            };
            let depends = closure(direct | indirect);
            after[at] = depends;
            let Some(member) = self.member(stmt) else { continue };
            if self.plan.dead.contains(&stmt.var) || alone.contains(&at) {
                continue;
            }
            let (kind, over) = (member.kind, member.over);
            let adding = self.adding(stmt.var, kind);
            let is_passing = adding.is_finite() && passing.contains(&at);
            let adding = if is_passing { 0.0 } else { adding };
            let work = self.work(&member, &mut numbers);
            let shared: SmallVec<[(u64, f64); 16]> = (work.iter())
                .filter_map(|(number, cost)| computed.get(number).map(|groups| (*groups, *cost)))
                .collect();
            let searches = self.is_search(stmt);
            let shares = |group: usize| -> f64 {
                shared.iter().filter(|(groups, _)| groups >> group & 1 == 1).map(|(_, cost)| cost).sum()
            };
            // Cost of reading the arrays made by loops of a group, if it only reads elements at its own index.
            let taken = |wanted: usize| -> Option<f64> {
                let mut made = grouped().filter(|(_, number)| *number == wanted);
                made.try_fold(0.0, |all, (need, _)| {
                    let taken = if stays(need) { self.taken(&stmts[need], &member) } else { None };
                    Some(all + taken?)
                })
            };
            let fits = |(number, group): &(usize, &Group<'_>)| {
                // A search does not run in lanes.
                let keeps_lanes = searches == group.searches;
                if group.over != over || !(keeps_lanes || shares(*number) >= MIN_SHARED) {
                    return false;
                }
                let bit = 1 << number;
                if direct & bit == 0 {
                    return depends & bit == 0 && shares(*number) > group.price(kind, adding);
                }
                // It may depend on the group only for elements.
                let may_take = (kind.bit() | group.kinds) & Kind::IN_ORDER == 0
                    && group.members.len() < MAX_PARTS
                    && closure(direct & !bit | indirect) & bit == 0;
                may_take && taken(*number).is_some_and(|takes| shares(*number) + takes > group.price(kind, adding))
            };
            let found = groups.iter().enumerate().find(fits).map(|(number, _)| number);
            let number = match found {
                Some(number) => number,
                None if groups.len() < MAX_GROUPS => {
                    groups.push(Group {
                        over,
                        members: Vec::new(),
                        kinds: 0,
                        array: None,
                        others: 0.0,
                        after: 0,
                        searches: false,
                    });
                    groups.len() - 1
                }
                None => continue,
            };
            let group = &mut groups[number];
            group.join(kind, adding, is_passing);
            group.members.push(at);
            group.searches |= searches;
            for (part, _) in &work {
                *computed.entry(*part).or_default() |= 1 << number;
            }
            // Of its own group, a member needs only elements.
            after[at] &= !(1 << number);
            group.after |= after[at];
            let grown = group.after;
            for group in groups.iter_mut().filter(|group| group.after >> number & 1 == 1) {
                group.after |= grown;
            }
            group_of[at] = Some(number);
        }
        groups
    }

    /// Returns the builds whose elements each of several loops of the same count reads at its own index, and nothing
    /// else does: once all are one loop, their arrays are not made. None of those loops needs the result of another.
    /// None in blocks of more than [`MAX_GROUPS`] loops. Linear in the block and its dependences.
    fn passing(&self, block: &Block, needs: &[Needs], alone: &[usize], users: &[usize]) -> Vec<usize> {
        let stmts = &block.stmts;
        if stmts.iter().filter(|stmt| self.loop_of(stmt).is_some()).count() > MAX_GROUPS {
            return Vec::new();
        }
        let mut takers: FxHashMap<usize, u64> = FxHashMap::default();
        let mut bits: Vec<u64> = vec![0; stmts.len()];
        // Loops that each statement needs other than for elements at its own index.
        let mut after: Vec<u64> = vec![0; stmts.len()];
        let mut n_loops = 0;
        for (at, stmt) in stmts.iter().enumerate() {
            let member = self.member(stmt).filter(|member| member.index.is_some());
            if member.is_some() {
                bits[at] = 1 << n_loops;
                n_loops += 1;
            }
            let may_join = !alone.contains(&at) && !self.plan.dead.contains(&stmt.var);
            let member = member.filter(|member| may_join && member.kind.bit() & Kind::IN_ORDER == 0);
            for need in &needs[at] {
                let from = &stmts[*need];
                let is_taken = member.as_ref().is_some_and(|member| {
                    let made = self.member(from).filter(|from| from.kind == Kind::Elements && from.over == member.over);
                    made.is_some() && !alone.contains(need) && self.taken(from, member).is_some()
                });
                if is_taken {
                    *takers.entry(*need).or_default() |= bits[at];
                }
                after[at] |= after[*need] | if is_taken { 0 } else { bits[*need] };
            }
        }
        let is_passing = |from: usize, all: u64| {
            let is_apart = |at: usize| bits[at] & all == 0 || after[at] & all == 0;
            all.count_ones() > 1 && all.count_ones() as usize == users[from] && (0..stmts.len()).all(is_apart)
        };
        takers.into_iter().filter(|(from, all)| is_passing(*from, *all)).map(|(from, _)| from).collect()
    }

    /// Returns whether a statement is a loop that carries an integer, or compares what it carries: the search for the
    /// largest element, for example, or for its derivative.
    fn is_search(&self, stmt: &Stmt) -> bool {
        let Expr::Fold(StateLoop { state, body, .. }) = &stmt.expr else { return false };
        let carried = |var: VarId| match body.bound(var) {
            Some(Expr::Component(of, _)) => of == state,
            _ => var == *state,
        };
        let compares = |stmt: &Stmt| match &stmt.expr {
            Expr::Op(Op::Lt | Op::Le | Op::Eq, args) => args.iter().any(|arg| carried(*arg)),
            _ => false,
        };
        let carries_integer = match self.function.ty(*state) {
            Type::Tuple(parts, _) => parts.contains(&Type::Int),
            state => *state == Type::Int,
        };
        carries_integer || body.stmts.iter().any(compares)
    }

    /// Returns the cost of the elements that a loop reads of the array made by `from`, if it reads nothing else of it
    /// than the element at its own index.
    fn taken(&self, from: &Stmt, member: &Member<'_>) -> Option<f64> {
        let (index, body) = (member.index?, *member.blocks.first()?);
        let Type::Array(_, element) = self.function.ty(from.var) else { return None };
        let is_long = matches!(&**element, Type::Tuple(parts, _) if parts.len() >= MAX_PARTS);
        let is_build = matches!(from.expr, Expr::Build { .. });
        (is_build && !is_long && !takes_more(body, from.var, index)).then(|| cost::words_of(element))
    }

    /// Returns the cost of an iteration if the array that this loop makes is written by adding to zero instead of
    /// storing: a zero, a load and an addition for each number. Infinite if that changes the value.
    fn adding(&self, var: VarId, kind: Kind) -> f64 {
        let ty = self.function.ty(var);
        match ty {
            Type::Array(_, element)
                if kind != Kind::Loop && ty.is_linear() && self.semantics == Semantics::Algebraic =>
            {
                3.0 * cost::words_of(element)
            }
            _ => f64::INFINITY,
        }
    }

    /// Returns the work of the blocks of a loop or a branch with its cost, ascending.
    fn work(&mut self, member: &Member<'_>, numbers: &mut Numbers) -> Vec<(Work, f64)> {
        let function = self.function;
        let ty = |v: VarId| function.ty(v);
        let mut work = Vec::with_capacity(member.blocks.iter().map(|body| body.stmts.len()).sum());
        if let Some(index) = member.index {
            self.keys.know(index, u64::from(u32::MAX));
        }
        for (side, body) in member.blocks.iter().enumerate() {
            for stmt in &body.stmts {
                let number = numbers.number(self.keys.key(&function.vars, &stmt.expr, ty(stmt.var)));
                self.keys.know(stmt.var, number);
                work.push(((side, number), cost::expr(&stmt.expr, &ty)));
            }
        }
        member.index.into_iter().for_each(|index| self.keys.forget(index));
        member.blocks.iter().flat_map(|body| &body.stmts).for_each(|stmt| self.keys.forget(stmt.var));
        work.sort_by_key(|(part, _)| *part);
        work.dedup_by_key(|(part, _)| *part);
        work
    }
}

/// Returns whether a value is a number, or an array of a few.
fn is_few_numbers(ty: &Type) -> bool {
    match ty {
        Type::Array(size, element) => {
            **element == Type::Double && size.as_constant().is_some_and(|length| length <= MAX_LITERAL)
        }
        ty => *ty == Type::Double,
    }
}

/// Returns whether the result of `block` is one-hot, or nested builds of one-hot arrays.
// Recursive on nesting.
fn ends_one_hot(block: &Block) -> bool {
    match block.bound(block.result) {
        Some(Expr::OneHot { .. }) => true,
        Some(Expr::Build { body, .. }) => ends_one_hot(body),
        _ => false,
    }
}

/// Returns whether `block` uses `array` other than by its element at `index`.
// Recursive on the nesting of loops.
fn takes_more(block: &Block, array: VarId, index: VarId) -> bool {
    let more = |stmt: &Stmt| match &stmt.expr {
        Expr::Get { array: of, index: at, .. } => *of == array && *at != index,
        expr if walk::is_opaque(expr) => {
            let mut any = false;
            walk::mentioned(expr, &mut |var| any |= var == array);
            any
        }
        expr => {
            let takes_more = |block| takes_more(block, array, index);
            expr.operands().contains(&array) || expr.blocks().into_iter().any(takes_more)
        }
    };
    block.result == array || block.stmts.iter().any(more)
}
