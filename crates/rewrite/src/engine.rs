//! The strategy: passes in rounds, until a fixed point or a budget is reached.
//!
//! In: a function. Out: one of the same value and at most the same cost ([`crate::cost`]), and a [`Report`]. If loops
//! were split, the pipeline also runs without splitting, in parallel for long programs, and the cheaper program is
//! taken, where products of matrices count as tiled. The pipeline is lists: [`SHARED`], whose result both start from;
//! [`FIRST`], then [`ROUND`] repeatedly, [`KEEP`], [`ROUND`] again; [`LAST`] merges split loops, and [`FACTOR`] is
//! repeated. If a pass increases the cost, the program before it is kept, and restored unless the increase pays off in
//! the end. Debug builds verify the result of every pass, if the function itself is valid.
//!
//! Each pass rebuilds the function once (`rebuild`) after analyses of it ([`crate::live`], [`crate::fusion`]); every
//! enabled rule is tried at every statement. Rules have no manual order: each makes a program smaller or brings it
//! closer to a normal form in which other rules apply, and if a rule could make it larger, costs decide.

mod separate;

pub(crate) use self::separate::{Goal, separated};

use crate::rebuild::{Fields, Places, Plan, Spare, Tally, rebuild};
use crate::report::{Applied, Measure, PassReport, Report, StopReason};
use crate::rules::{self, Enabled, Settings};
use crate::{apart, cost, fusion, live, merge, products, turn, walk};
use chainrule_base::{Span, timing};
use chainrule_ir::{Block, Function, Size, VarId, alpha_equal, verify};
use chainrule_ops::Semantics;
use rustc_hash::{FxHashMap, FxHashSet};

/// Default budget of a function: rule applications and statements copied by them.
pub const DEFAULT_BUDGET: u64 = 400_000;
/// Additional budget for each statement.
pub const BUDGET_PER_STATEMENT: u64 = 32;
/// Maximum nesting of merged loops: inner loops are merged after outer ones.
pub const MAX_MERGES: usize = 8;
/// Maximum nesting of merged loops that compute shared values.
pub const MAX_MERGES_OF_SHARED: usize = 2;
/// Maximum number of rounds.
pub const MAX_ROUNDS: usize = 10;
/// Minimum relative saving of a productive round, and maximum relative cost of the result above that of the input.
/// Chains that shrink by one link in each round save less. A result that costs little more has the form that kernels
/// expect.
const LITTLE: f64 = 1e-3;
/// Maximum total work ([`Report::work`]) of unproductive rounds; short programs never reach it.
const MAX_FOR_LITTLE: u64 = 250_000;
/// Minimum number of statements of a function that is worth a thread.
const MIN_FOR_THREAD: i64 = 200;

/// Options of the optimiser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Allowed transformations.
    pub semantics: Semantics,
    /// Maximum number of rule applications and of statements copied by them; afterwards the remaining program is
    /// written unchanged. The same again for the run without loop splitting.
    pub budget: u64,
    /// Additional budget for each statement of the function.
    pub per_statement: u64,
    /// Names of disabled passes, rules and steps of the engine ([`names`]).
    pub disabled: Vec<String>,
    /// Name of a pass after whose first run the pipeline ends.
    pub until: Option<String>,
}

impl Options {
    /// Returns whether the pass, rule or step of this name is disabled.
    fn leaves_out(&self, name: &str) -> bool {
        self.disabled.iter().any(|disabled| disabled == name)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            semantics: Semantics::default(),
            budget: DEFAULT_BUDGET,
            per_statement: BUDGET_PER_STATEMENT,
            disabled: Vec::new(),
            until: None,
        }
    }
}

/// A pass.
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// Description in one line.
    pub does: &'static str,
    /// Runs the pass.
    run: fn(&Function, &mut Run),
}

/// Passes before loops are split or kept whole: both start from their result.
pub const SHARED: &[Pass] = &[Pass {
    name: "separate",
    does: "loops whose steps write separate elements of an array, or add to elements, become builds and sums",
    run: separate::separate,
}];

/// First passes: hoisting precedes fusion, which depends on execution counts.
pub const FIRST: &[Pass] = &[Pass {
    name: "simplify",
    does: "every rule at every statement, common subexpressions, hoisting; loops over tuples are split",
    run: simplify,
}];

/// Passes that are repeated until a fixed point.
pub const ROUND: &[Pass] = &[Pass {
    name: "repeat",
    does: "as simplify; elements of arrays are computed at their use, if that is cheaper",
    run: fuse,
}];

/// Passes after the first rounds, followed by [`ROUND`] again.
pub const KEEP: &[Pass] = &[
    Pass {
        name: "turn",
        does: "direction sinking: a loop over directions moves into the loops inside it",
        run: turn_loops,
    },
    Pass {
        name: "expand",
        does: "as simplify; values that an outer loop recomputes are stored in an array",
        run: expand,
    },
];

/// Final passes.
pub const LAST: &[Pass] = &[
    Pass { name: "settle", does: "as repeat, without splitting loops", run: settle },
    Pass { name: "merge", does: "loops of equal count that share work are fused, then the loops in them", run: merge },
    Pass { name: "share", does: "values that adjacent loops compute are stored by the first of them", run: share },
    Pass { name: "tidy", does: "as settle: clean-up", run: settle },
];

/// Passes that are repeated after the final ones until a fixed point: one-hot arrays have vanished by then, and loops
/// that share a sum are merged.
pub const FACTOR: &[Pass] = &[Pass { name: "factor", does: "common factors are taken out of sums", run: factor }];

/// Name of the step that takes the cheaper of the programs with loops split and with loops kept whole.
pub const CHOOSE: &str = "choose";

/// [`Plan::dead`] and [`Plan::fields`] of a function.
type Live = (FxHashSet<VarId>, FxHashMap<VarId, Fields>);

/// State shared by passes.
#[derive(Default)]
struct Run {
    options: Options,
    /// Whether loops are never split.
    whole: bool,
    /// Whether the first rounds have reached their fixed point: users of arrays built in branches then move into the
    /// branches, because everything equal outside has been found.
    late: bool,
    tally: Tally,
    result: Option<Function>,
    /// Cheapest program before a pass that increased the cost, and its cost.
    cheapest: Option<(f64, Function)>,
    /// Capabilities of passes that changed nothing since the last change: a pass with a subset of them would change
    /// nothing either.
    in_vain: Vec<Todo>,
    /// Dead statements and live fields of the current function, if known.
    live: Option<Live>,
    /// Work of unproductive rounds.
    for_little: u64,
    /// Whether the pipeline has ended ([`Options::until`]).
    is_ended: bool,
    /// Whether the result of every pass is verified.
    verifies: bool,
    spare: Spare,
}

impl Run {
    /// Returns whether a rule was applied that splits loops.
    fn has_split(&self) -> bool {
        rules::all().iter().enumerate().any(|(idx, rule)| rule.split && self.tally.applied[rules::counted(idx)] > 0)
    }

    /// Returns the number of applications of rules that not every pass has.
    fn n_chosen(&self) -> u64 {
        let steps = [rules::TURN, rules::EXPAND, rules::MERGE, rules::SHARE, rules::BRANCHES]
            .into_iter()
            .map(|step| self.tally.applied[step]);
        steps.chain(self.tally.applied[rules::counted(0)..].iter().copied()).sum()
    }
}

/// Returns the passes in order; those of a round repeat.
pub fn passes() -> impl Iterator<Item = &'static Pass> {
    [SHARED, FIRST, ROUND, KEEP, LAST, FACTOR].into_iter().flatten()
}

/// Returns everything that can be disabled ([`Options::disabled`]) and that reports count, each with a description:
/// passes, steps of the engine, rules.
#[must_use]
pub fn names() -> Vec<(&'static str, &'static str)> {
    let passes = passes().map(|pass| (pass.name, pass.does));
    let rules = rules::all().iter().map(|rule| (rule.name, rule.law));
    passes.chain(rules::ENGINE).chain(rules).collect()
}

/// Observer of the output of every pass, with the name of the pass.
pub type Watch<'a> = &'a mut dyn FnMut(&str, &Function);

/// Returns `function` optimised, and a report.
///
/// Makes at most [`Options::budget`] applications and copies, plus [`Options::per_statement`] for each statement. Each
/// of at most [`MAX_ROUNDS`] rounds is linear in the function for each level of nesting. Deterministic.
#[must_use]
pub fn optimise(function: &Function, options: &Options) -> (Function, Report) {
    optimise_recorded(function, options, Record::Nothing, None)
}

/// Returns the two functions as which a function is optimised that is an `if` with a condition on sizes and integer
/// arguments: for a true and for a false condition.
#[must_use]
pub fn branches(function: &Function) -> Option<[Function; 2]> {
    apart::split(function)
}

/// As [`optimise`], but always as a single function; `watch` observes the output of every pass.
pub fn optimise_watched(function: &Function, options: &Options, watch: Watch<'_>) -> (Function, Report) {
    optimise_recorded(function, options, Record::Nothing, Some(watch))
}

/// As [`optimise`]; the report also has the savings of each pass ([`PassReport::measures`]), and the source spans of
/// each rule's applications ([`Report::places`]).
#[must_use]
pub fn explain(function: &Function, options: &Options) -> (Function, Report) {
    optimise_recorded(function, options, Record::Places, None)
}

/// Facts that the optimiser records besides its report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Record {
    Nothing,
    /// Source lines at which rules applied.
    Places,
}

fn optimise_recorded(
    function: &Function,
    options: &Options,
    record: Record,
    watch: Option<Watch<'_>>,
) -> (Function, Report) {
    if watch.is_none()
        && let Some(branches) = apart::split(function)
    {
        let [(then, done), (otherwise, done_otherwise)] =
            branches.map(|branch| optimise_recorded(&branch, options, record, None));
        // Both branches may have become equal.
        let same = alpha_equal(&then, &otherwise);
        let best = if same { then } else { apart::joined(function, [&then, &otherwise]) };
        check("join", &best, is_valid_in_debug_builds(function));
        let symbolic = (in_words(function, &cost::symbolic(function)), in_words(&best, &cost::symbolic(&best)));
        return (best, Report { symbolic, ..apart::both([done, done_otherwise]) });
    }
    let more = options.per_statement.saturating_mul(walk::statements(&function.body).unsigned_abs());
    let left = options.budget.saturating_add(more);
    let tally = Tally { applied: counters(), left, places: (record == Record::Places).then(Places::default), work: 0 };
    let before = cost::function(function);
    let is_watched = watch.is_some();
    let mut unwatched = |_: &str, _: &Function| {};
    let watch: Watch<'_> = watch.unwrap_or(&mut unwatched);
    let verifies = is_valid_in_debug_builds(function);
    let mut run = Run { options: options.clone(), tally, verifies, ..Run::default() };
    let (mut now, mut report) = (function.clone(), Report { before, after: before, ..Report::default() });
    for pass in SHARED {
        step(pass, &mut now, &mut run, &mut report, watch);
    }
    let Run { options, tally, is_ended, .. } = run;
    let start = Start { options, whole: false, tally, report, is_ended, verifies };
    let Try { found: mut best, mut tally, mut report, is_ended, .. } = cheaper(&now, &start, is_watched, watch);
    report.work = tally.work;
    // What rules remove from `function` may count half there, as products of matrices ([`cost::tiled`]).
    let is_cheap = |cost: fn(&Function) -> f64| cost(&best) <= cost(function) * (1.0 + LITTLE);
    let kept = is_ended || is_cheap(cost::tiled) || is_cheap(cost::function);
    if !kept {
        report.after = before;
        report.stop = StopReason::NotCheaper;
        best = function.clone();
    }
    report.symbolic = (in_words(function, &cost::symbolic(function)), in_words(&best, &cost::symbolic(&best)));
    if kept {
        report.applied = named(&tally.applied);
        report.places = placed(tally.places.take().unwrap_or_default());
    }
    (best, report)
}

/// Result of all passes.
struct Try {
    found: Function,
    tally: Tally,
    /// Whether loops were split.
    split: bool,
    /// As [`Run::is_ended`].
    is_ended: bool,
    report: Report,
}

/// Input of the passes.
#[derive(Clone)]
struct Start {
    options: Options,
    /// As [`Run::whole`].
    whole: bool,
    tally: Tally,
    /// Report of the passes before.
    report: Report,
    /// As [`Run::is_ended`].
    is_ended: bool,
    /// As [`Run::verifies`].
    verifies: bool,
}

impl Try {
    /// Runs all passes after [`SHARED`] on `function`; calls `split` as soon as the first ones have split loops.
    fn new(function: &Function, start: Start, watch: Watch<'_>, split: &mut dyn FnMut()) -> Self {
        let Start { options, whole, tally, mut report, is_ended, verifies } = start;
        let mut run = Run { options, whole, tally, is_ended, verifies, ..Run::default() };
        let found = pipeline(function, &mut run, &mut report, watch, split);
        report.after = cost::function(&found);
        Self { found, split: run.has_split(), is_ended: run.is_ended, tally: run.tally, report }
    }
}

/// Returns the cheaper of `function` with split loops, if rules split any, and without splitting.
fn cheaper(function: &Function, start: &Start, is_watched: bool, watch: Watch<'_>) -> Try {
    // An observer sees the passes in sequence.
    let is_alone = is_watched || start.options.until.is_some();
    let is_worth_a_thread = !is_alone && walk::statements(&function.body) >= MIN_FOR_THREAD;
    let whole = || Start { whole: true, ..start.clone() };
    std::thread::scope(|scope| {
        let mut other = None;
        let first = Try::new(function, start.clone(), watch, &mut || {
            if is_worth_a_thread {
                let (start, recording) = (whole(), timing::current());
                let task = move || timing::join(recording, || Try::new(function, start, &mut |_, _| {}, &mut || {}));
                other = std::thread::Builder::new().spawn_scoped(scope, task).ok();
            }
        });
        if !first.split || first.is_ended {
            return first;
        }
        // Checks whether splitting pays.
        let second = match other.take() {
            Some(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Try::new(function, whole(), watch, &mut || {}),
        };
        let work = first.tally.work + second.tally.work;
        let is_second =
            timing::time(CHOOSE, || cost::tiled(&second.found) < (1.0 - LITTLE) * cost::tiled(&first.found));
        let mut best = if is_second { second } else { first };
        best.tally.work = work;
        best
    })
}

/// Returns a run with the rules `names` and no others, and with `options` for the rest.
fn with_rules(names: &[&str], mut options: Options) -> Run {
    let others = rules::all().iter().map(|rule| rule.name).filter(|name| !names.contains(name));
    options.disabled.extend(others.map(str::to_owned));
    let tally = Tally { applied: counters(), left: options.budget, ..Tally::default() };
    Run { options, tally, ..Run::default() }
}

/// Rebuilds `function` once with only the rules `names`: to test the effect of a rule, whether it pays or not.
#[must_use]
pub fn apply(function: &Function, names: &[&str], semantics: Semantics) -> (Function, Report) {
    let mut run = Run { late: true, ..with_rules(names, Options { semantics, ..Options::default() }) };
    let mut report = Report { before: cost::function(function), ..Report::default() };
    pass(function, &mut run, Todo { split: true, factor: true, separate: true, ..Todo::default() });
    let found = run.result.take().unwrap_or_else(|| function.clone());
    report.after = cost::function(&found);
    report.applied = named(&run.tally.applied);
    (found, report)
}

/// Rebuilds `function` once with only the rules `names`, hoisting, and arrays for values that an outer loop computes
/// again and again; returns `None` if nothing changed.
pub(crate) fn hoist_once(function: &Function, names: &[&str]) -> Option<Function> {
    let mut run = with_rules(names, Options::default());
    pass(function, &mut run, Todo { split: true, expand: true, ..Todo::default() });
    run.result.map(live::swept).filter(|found| !alpha_equal(function, found))
}

/// Returns the costs of `function`, as text.
#[must_use]
pub fn measure(function: &Function) -> Measure {
    Measure {
        cost: in_words(function, &cost::symbolic(function)),
        operations: in_words(function, &cost::operations(function)),
        stored: in_words(function, &cost::stored(function)),
        loops: cost::loops(function),
    }
}

/// Returns a polynomial with the names of the sizes of `function`.
fn in_words(function: &Function, polynomial: &Size) -> String {
    let text = |var: VarId| match &function.vars[var].name {
        Some(name) => name.to_string(),
        None => var.to_string(),
    };
    let mut out = String::new();
    for (monomial, c) in polynomial.terms() {
        let factors: Vec<String> = (c != 1 || monomial.is_empty())
            .then(|| c.to_string())
            .into_iter()
            .chain(monomial.iter().map(|var| text(*var)))
            .collect();
        let plus = if out.is_empty() { "" } else { " + " };
        out = format!("{out}{plus}{}", factors.join("*"));
    }
    if out.is_empty() { "0".to_owned() } else { out }
}

fn counters() -> Vec<u64> {
    vec![0; rules::counted(rules::all().len())]
}

fn named(applied: &[u64]) -> Vec<(&'static str, u64)> {
    let names = rules::ENGINE.iter().map(|(name, _)| *name).chain(rules::all().iter().map(|rule| rule.name));
    names.zip(applied.iter().copied()).filter(|(_, times)| *times > 0).collect()
}

/// In the order of the table, then of the text.
fn placed(places: Places) -> Vec<Applied> {
    let mut all: Vec<(usize, Applied)> = places
        .into_iter()
        .map(|((number, span), times)| (number, Applied { name: name(number), span, times }))
        .collect();
    all.sort_by_key(|(number, at)| (*number, at.span.map(|span| (span.file, span.start, span.end))));
    all.into_iter().map(|(_, at)| at).collect()
}

// Name of a rule or a step by its counter.
fn name(number: usize) -> &'static str {
    match rules::ENGINE.get(number) {
        Some((name, _)) => name,
        None => rules::all()[number - rules::ENGINE.len()].name,
    }
}

/// Runs all passes in order.
fn pipeline(
    function: &Function,
    run: &mut Run,
    report: &mut Report,
    watch: Watch<'_>,
    split: &mut dyn FnMut(),
) -> Function {
    let mut now = function.clone();
    for pass in FIRST {
        step(pass, &mut now, run, report, watch);
    }
    if run.has_split() {
        split();
    }
    let mut stop = rounds(ROUND, &mut now, run, report, watch);
    run.late = true;
    let mut changed = false;
    for pass in KEEP {
        changed |= step(pass, &mut now, run, report, watch);
    }
    if changed {
        stop = rounds(ROUND, &mut now, run, report, watch);
    }
    for pass in LAST {
        step(pass, &mut now, run, report, watch);
    }
    if run.options.semantics == Semantics::Algebraic {
        rounds(FACTOR, &mut now, run, report, watch);
    }
    report.stop = stop;
    if run.is_ended {
        return now;
    }
    // Statements that passes have left dead count in neither.
    let now = live::swept(now);
    match run.cheapest.take().map(|(_, found)| live::swept(found)) {
        Some(found) if cost::function(&found) < cost::function(&now) => found,
        _ => now,
    }
}

fn rounds(passes: &[Pass], now: &mut Function, run: &mut Run, report: &mut Report, watch: Watch<'_>) -> StopReason {
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        let (before, work) = (last_cost(report), run.tally.work);
        for pass in passes {
            changed |= step(pass, now, run, report, watch);
        }
        if run.tally.left == 0 {
            return StopReason::Budget;
        }
        if !changed {
            return StopReason::Settled;
        }
        if before - last_cost(report) < LITTLE * before {
            run.for_little += run.tally.work - work;
            if run.for_little > MAX_FOR_LITTLE {
                return StopReason::Little;
            }
        }
    }
    StopReason::Rounds
}

/// Returns the cost of the function after the last pass.
fn last_cost(report: &Report) -> f64 {
    report.passes.last().map_or(report.before, |pass| pass.after)
}

/// Returns whether `function` is valid in a debug build.
fn is_valid_in_debug_builds(function: &Function) -> bool {
    cfg!(debug_assertions) && verify(function).is_ok()
}

/// Verifies the result of the pass `name`, if `verifies`.
///
/// # Panics
///
/// If the result is invalid, which is a fault of the pass.
fn check(name: &str, result: &Function, verifies: bool) {
    if verifies && let Err(faults) = verify(result) {
        panic!("invalid program after `{name}`: {faults:?}");
    }
}

// Runs a pass; returns whether anything changed.
fn step(pass: &Pass, now: &mut Function, run: &mut Run, report: &mut Report, watch: Watch<'_>) -> bool {
    if run.is_ended || run.options.leaves_out(pass.name) {
        return false;
    }
    let before = last_cost(report);
    let (applied, n_chosen): (u64, u64) = (run.tally.applied.iter().sum(), run.n_chosen());
    let measured = run.tally.places.is_some().then(|| {
        let last = report.passes.last().and_then(|pass| pass.measures.as_ref());
        last.map_or_else(|| measure(now), |(_, after)| after.clone())
    });
    timing::time(pass.name, || (pass.run)(now, run));
    let (mut changed, mut after) = (false, before);
    if let Some(result) = run.result.take() {
        check(pass.name, &result, run.verifies);
        changed = !alpha_equal(now, &result);
        let last = std::mem::replace(now, result);
        if changed {
            after = cost::function(now);
        }
        // The input is kept in any case.
        let is_input = report.passes.iter().all(|pass| pass.applied == 0);
        if after > before && !is_input && run.cheapest.as_ref().is_none_or(|(least, _)| before < *least) {
            run.cheapest = Some((before, last));
        }
    }
    let applied = run.tally.applied.iter().sum::<u64>() - applied;
    // Without a change, the common part of all passes (common subexpressions, hoisting) found nothing either.
    if changed || run.n_chosen() > n_chosen {
        run.in_vain.clear();
    }
    // Dead statements left by the pass are removed by the next one.
    let measures = measured.map(|before| (before, measure(&live::swept(now.clone()))));
    report.passes.push(PassReport { name: pass.name, applied, before, after, measures });
    run.is_ended = run.options.until.as_deref() == Some(pass.name);
    watch(pass.name, now);
    changed
}

fn simplify(function: &Function, run: &mut Run) {
    pass(function, run, Todo { split: true, ..Todo::default() });
}

fn fuse(function: &Function, run: &mut Run) {
    pass(function, run, Todo { split: true, fuse: true, ..Todo::default() });
}

fn turn_loops(function: &Function, run: &mut Run) {
    if let Some((turned, times)) = turn::turned(function) {
        run.tally.applied[rules::TURN] += times as u64;
        run.live = None;
        run.result = Some(turned);
    }
}

fn expand(function: &Function, run: &mut Run) {
    if !run.options.leaves_out("hoist") {
        pass(function, run, Todo { split: true, expand: true, ..Todo::default() });
    }
}

fn settle(function: &Function, run: &mut Run) {
    pass(function, run, Todo { fuse: true, ..Todo::default() });
}

fn factor(function: &Function, run: &mut Run) {
    pass(function, run, Todo { factor: true, ..Todo::default() });
}

fn share(function: &Function, run: &mut Run) {
    let before = run.tally.applied[rules::SHARE];
    pass(function, run, Todo { share: true, ..Todo::default() });
    // A loop whose elements others use at their own index can be merged with them.
    if run.tally.applied[rules::SHARE] > before && !run.options.leaves_out("merge") {
        merge_loops(function, run, MAX_MERGES_OF_SHARED);
    }
}

fn merge(function: &Function, run: &mut Run) {
    merge_loops(function, run, MAX_MERGES);
}

fn merge_loops(function: &Function, run: &mut Run, depth: usize) {
    let merge = Todo { merge: true, ..Todo::default() };
    for _ in 0..depth {
        let before = run.tally.applied[rules::MERGE];
        let now = run.result.take();
        pass(now.as_ref().unwrap_or(function), run, merge);
        run.result = run.result.take().or(now);
        // Without a merge, the next pass does nothing; the following passes handle the rest.
        if run.tally.applied[rules::MERGE] == before {
            break;
        }
    }
}

/// Capabilities of a pass.
#[derive(Clone, Copy, Default)]
struct Todo {
    split: bool,
    fuse: bool,
    expand: bool,
    merge: bool,
    share: bool,
    late: bool,
    factor: bool,
    separate: bool,
}

impl Todo {
    /// Returns whether these capabilities are a subset of `other`.
    fn within(self, other: Self) -> bool {
        self.split <= other.split
            && self.fuse <= other.fuse
            && self.expand <= other.expand
            && self.merge <= other.merge
            && self.share <= other.share
            && self.late <= other.late
            && self.factor <= other.factor
            && self.separate <= other.separate
    }
}

fn pass(function: &Function, run: &mut Run, todo: Todo) {
    // Only fusion depends on `late`.
    let todo = Todo { late: run.late && todo.fuse, ..todo };
    let mut plan = Plan::default();
    if planned(function, run, todo, &mut plan) {
        carry_out(function, run, todo, &plan);
    }
}

/// Puts into `plan` the requests of the analyses; returns whether there are any, since the pass would change nothing
/// otherwise.
fn planned<'a>(function: &'a Function, run: &mut Run, todo: Todo, plan: &mut Plan<'a>) -> bool {
    let off = |name: &str| run.options.leaves_out(name);
    let Todo { split, fuse, expand, merge, share, late, factor, separate: _ } = todo;
    // Only nested loops recompute values.
    let expands = expand && walk::has_nested_loops(&function.body);
    let is_in_vain = |todo: Todo| {
        let without = Todo { expand: expands, merge: false, share: false, ..todo };
        run.in_vain.iter().any(|other| without.within(*other))
    };
    let settled = is_in_vain(todo);
    if settled && !merge && !share {
        return false;
    }
    match &run.live {
        Some((dead, fields)) => (plan.dead, plan.fields) = (dead.clone(), fields.clone()),
        None if off("fields") => {}
        None => {
            live::analyse(function, plan);
            run.live = Some((plan.dead.clone(), plan.fields.clone()));
        }
    }
    if share && !off("share") {
        merge::shared(function, plan);
    }
    if merge && !off("merge") {
        merge::analyse(function, plan, run.options.semantics);
    }
    if settled && plan.merged.is_empty() && plan.share.is_empty() {
        return false;
    }
    if factor && run.options.semantics == Semantics::Algebraic && !off("common-factor") {
        products::analyse(function, plan);
    }
    // All else has been done.
    if factor && !split && plan.factor.is_empty() {
        return false;
    }
    if fuse && !off("fuse") {
        fusion::analyse(function, plan, late && !off("branches"));
    }
    // The other capabilities of a late pass were already tried by an early one.
    if late && plan.branches.is_empty() && is_in_vain(Todo { late: false, ..todo }) {
        run.in_vain.push(todo);
        return false;
    }
    true
}

/// Rebuilds `function`.
fn carry_out(function: &Function, run: &mut Run, todo: Todo, plan: &Plan<'_>) {
    let Todo { split, expand, .. } = todo;
    let off = |name: &str| run.options.leaves_out(name);
    let settings = Settings {
        rules: Enabled::new(|rule| {
            let holds = rule.holds_under >= run.options.semantics;
            holds && !(rule.split && (!split || run.whole)) && !off(rule.name)
        }),
        common: !off("common"),
        hoist: !off("hoist"),
        expand,
        semantics: run.options.semantics,
        separate: todo.separate,
    };
    run.tally.applied[rules::DEAD] += plan.dead.len() as u64;
    run.tally.applied[rules::FIELDS] += plan.fields.len() as u64;
    run.tally.applied[rules::MERGE] += plan.merged.len() as u64;
    if let Some(places) = &mut run.tally.places {
        place_steps(&function.body, None, plan, places);
    }
    run.result = Some(rebuild(function, &settings, plan, &mut run.tally, &mut run.spare));
    run.live = None;
    run.in_vain.push(todo);
}

// Finds the spans of the engine's steps requested by analyses.
fn place_steps(block: &Block, around: Option<Span>, plan: &Plan<'_>, places: &mut Places) {
    for stmt in &block.stmts {
        let span = stmt.span.or(around);
        let steps = [
            (rules::DEAD, plan.dead.contains(&stmt.var)),
            (rules::FIELDS, plan.fields.contains_key(&stmt.var)),
            (rules::MERGE, plan.merged.contains(&stmt.var)),
        ];
        for (step, _) in steps.into_iter().filter(|(_, made)| *made) {
            *places.entry((step, span)).or_insert(0) += 1;
        }
        stmt.expr.blocks().into_iter().for_each(|block| place_steps(block, span, plan, places));
    }
}
