//! The strategy: passes in rounds, until nothing changes or a budget is spent.
//!
//! In: a function. Out: one of the same value that costs no more ([`crate::cost`]), and a [`Report`]. Where loops
//! were taken apart, everything is done once more with loops kept whole, at the same time where the program is long,
//! and the cheaper program wins. The pipeline is lists: [`FIRST`], then [`ROUND`] again and again, [`KEEP`], [`ROUND`] again; [`LAST`] puts together
//! what was taken apart, and [`FACTOR`] comes again and again. What a pass makes dearer is remembered as it was before, and comes back unless it pays in the end.
//!
//! Each pass writes the function anew once (`rebuild`) after analyses of it ([`crate::live`],
//! [`crate::fusion`]); every rule is tried at every statement of every pass that allows it. Rules are not
//! ordered by hand: each makes a program smaller or brings it nearer to a normal form in which the others
//! find it, and where a rule could make it larger, costs decide.

use crate::rebuild::{Places, Plan, Spare, Tally, rebuild};
use crate::report::{Applied, Measure, PassReport, Report, StopReason};
use crate::rules::{self, Enabled, Settings};
use crate::{apart, cost, fusion, live, merge, products, turn, walk};
use chainrule_base::Span;
use chainrule_ir::{Block, Function, Size, VarId, alpha_equal};
use rustc_hash::{FxHashMap, FxHashSet};

/// How many applications of rules and statements that they copy one function is given by default.
pub const DEFAULT_BUDGET: u64 = 400_000;
/// How many more for each of its statements.
pub const BUDGET_PER_STATEMENT: u64 = 32;
/// How deep loops are put together at most: those inside a loop only after it.
pub const MAX_MERGES: usize = 8;
/// The same for loops that make what others share.
pub const MAX_MERGES_OF_SHARED: usize = 2;
/// How many rounds there are at most.
pub const MAX_ROUNDS: usize = 10;
/// A round that saves a smaller part of the cost saves little. What goes one link of a chain further with each round does.
const LITTLE: f64 = 1e-3;
/// How much work ([`Report::work`]) rounds that save little may take in all: as much as they like in short programs.
const MAX_FOR_LITTLE: u64 = 250_000;
/// Functions with fewer statements are not worth a thread.
const MIN_FOR_THREAD: i64 = 200;

/// What to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether only what is exact in IEEE 754 is done, NaN counted as one number. Otherwise doubles are
    /// taken for real numbers: `0 * x` is 0, sums are reordered.
    pub strict: bool,
    /// How many applications of rules are made and statements copied by them at most; then what is left is written
    /// as it stands. As many again where loops are kept whole.
    pub budget: u64,
    /// How many more for each statement of the function.
    pub per_statement: u64,
    /// The names of passes, rules and steps of the engine that are left out ([`names`]).
    pub disabled: Vec<String>,
}

impl Options {
    /// Whether the pass, rule or step of this name is left out.
    fn leaves_out(&self, name: &str) -> bool {
        self.disabled.iter().any(|disabled| disabled == name)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { strict: false, budget: DEFAULT_BUDGET, per_statement: BUDGET_PER_STATEMENT, disabled: Vec::new() }
    }
}

/// A pass.
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// What it does with a function.
    run: fn(&Function, &mut Run),
}

/// What comes first: so that what can be hoisted is, before fusion asks how often it runs.
pub const FIRST: &[Pass] = &[Pass {
    name: "simplify",
    does: "every rule at every statement, common subexpressions, hoisting; loops of tuples are taken apart",
    run: simplify,
}];

/// What is repeated until nothing changes.
pub const ROUND: &[Pass] = &[Pass {
    name: "repeat",
    does: "as simplify, with elements of arrays computed where they are used, where that is cheaper",
    run: fuse,
}];

/// What follows, and after it again [`ROUND`].
pub const KEEP: &[Pass] = &[
    Pass {
        name: "turn",
        does: "a loop over directions of which columns are taken goes inside of the loops in it",
        run: turn_loops,
    },
    Pass {
        name: "expand",
        does: "as simplify, and what an outer loop computes again and again is kept in an array",
        run: expand,
    },
];

/// What comes at the end.
pub const LAST: &[Pass] = &[
    Pass { name: "settle", does: "as repeat, but nothing is taken apart any more", run: settle },
    Pass { name: "merge", does: "loops of one count that share work become one; then those in them", run: merge },
    Pass { name: "share", does: "loops side by side that compute the same keep it in an array", run: share },
    Pass { name: "tidy", does: "as settle: what is left over goes", run: settle },
];

/// What is repeated after that until nothing changes: no one-hot array has still to vanish, and loops that share a sum as it
/// stands are one.
pub const FACTOR: &[Pass] =
    &[Pass { name: "factor", does: "common factors are taken out of sums, where there are any", run: factor }];

/// [`Plan::dead`] and [`Plan::fields`] of a function.
type Live = (FxHashSet<VarId>, FxHashMap<VarId, Vec<usize>>);

/// What passes have in common.
#[derive(Default)]
struct Run {
    options: Options,
    /// Whether loops stay whole: no rule takes them apart.
    whole: bool,
    /// Whether the first rounds have settled: then what uses what branches make moves into them, for all that is the same
    /// outside has been found.
    late: bool,
    tally: Tally,
    result: Option<Function>,
    /// What came before a pass that made it dearer, and what it costs: the cheapest.
    cheapest: Option<(f64, Function)>,
    /// What passes could do that found nothing to do since the function changed last: one that can do no more than one
    /// of them will not either.
    in_vain: Vec<Todo>,
    /// Of the function as it is now, if that is known: what nothing uses of it, and which fields are used.
    live: Option<Live>,
    /// The work of rounds that saved little.
    for_little: u64,
    spare: Spare,
}

impl Run {
    /// Whether a rule was applied that takes loops apart.
    fn has_split(&self) -> bool {
        rules::all().iter().enumerate().any(|(idx, rule)| rule.split && self.tally.applied[rules::counted(idx)] > 0)
    }

    /// How often was applied what not every pass may do.
    fn n_chosen(&self) -> u64 {
        let steps = [rules::TURN, rules::EXPAND, rules::MERGE, rules::SHARE, rules::BRANCHES]
            .into_iter()
            .map(|step| self.tally.applied[step]);
        steps.chain(self.tally.applied[rules::counted(0)..].iter().copied()).sum()
    }
}

/// The passes, in order; those of a round repeat.
pub fn passes() -> impl Iterator<Item = &'static Pass> {
    [FIRST, ROUND, KEEP, LAST, FACTOR].into_iter().flatten()
}

/// Everything that can be left out ([`Options::disabled`]) and that reports count, each with a line that says what it
/// is: passes, steps of the engine, rules.
#[must_use]
pub fn names() -> Vec<(&'static str, &'static str)> {
    let passes = passes().map(|pass| (pass.name, pass.does));
    let rules = rules::all().iter().map(|rule| (rule.name, rule.law));
    passes.chain(rules::ENGINE).chain(rules).collect()
}

/// Who is shown what comes out of every pass, with the name of the pass.
pub type Watch<'a> = &'a mut dyn FnMut(&str, &Function);

/// `function` optimised, with what was done.
///
/// Costs at most [`Options::budget`] applications and copies, and [`Options::per_statement`] for each statement; each of at most [`MAX_ROUNDS`] rounds is linear in
/// the function for each level of nesting. Deterministic.
#[must_use]
pub fn optimise(function: &Function, options: &Options) -> (Function, Report) {
    optimise_recorded(function, options, false, None)
}

/// The function where the condition holds, and where it does not, of one that is an `if` under a condition of sizes and
/// integer arguments: it is optimised as these two.
#[must_use]
pub fn branches(function: &Function) -> Option<[Function; 2]> {
    apart::split(function)
}

/// As [`optimise`], but always as one function; `watch` is shown what comes out of every pass, with the name of the pass.
pub fn optimise_watched(function: &Function, options: &Options, watch: Watch<'_>) -> (Function, Report) {
    optimise_recorded(function, options, false, Some(watch))
}

/// As [`optimise`]; the report tells besides what each pass saved ([`PassReport::measures`]) and for which places in the
/// text each rule was applied ([`Report::places`]).
#[must_use]
pub fn explain(function: &Function, options: &Options) -> (Function, Report) {
    optimise_recorded(function, options, true, None)
}

fn optimise_recorded(
    function: &Function,
    options: &Options,
    record: bool,
    watch: Option<Watch<'_>>,
) -> (Function, Report) {
    if watch.is_none()
        && let Some(branches) = apart::split(function)
    {
        let [(then, done), (otherwise, done_otherwise)] =
            branches.map(|branch| optimise_recorded(&branch, options, record, None));
        // What both have become may be one thing.
        let same = alpha_equal(&then, &otherwise);
        let best = if same { then } else { apart::joined(function, [&then, &otherwise]) };
        let symbolic = (in_words(function, &cost::symbolic(function)), in_words(&best, &cost::symbolic(&best)));
        return (best, Report { symbolic, ..apart::both([done, done_otherwise]) });
    }
    let more = options.per_statement.saturating_mul(walk::statements(&function.body).unsigned_abs());
    let left = options.budget.saturating_add(more);
    let tally = Tally { applied: counters(), left, places: record.then(Places::default), work: 0 };
    let start = Start { options: options.clone(), whole: false, tally };
    let before = cost::function(function);
    let Try { found: mut best, mut tally, mut report, .. } = cheaper(function, &start, before, watch);
    report.work = tally.work;
    let kept = report.after <= before;
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

/// What all passes have made of a function.
struct Try {
    found: Function,
    tally: Tally,
    /// Whether loops were taken apart.
    split: bool,
    report: Report,
}

/// What passes are given.
#[derive(Clone)]
struct Start {
    options: Options,
    /// As [`Run::whole`].
    whole: bool,
    tally: Tally,
}

impl Try {
    /// All passes on `function`, which costs `before`; `split` is told as soon as the first ones have taken loops apart.
    fn new(function: &Function, start: Start, before: f64, watch: Watch<'_>, split: &mut dyn FnMut()) -> Self {
        let Start { options, whole, tally } = start;
        let mut run = Run { options, whole, tally, ..Run::default() };
        let mut report = Report { before, after: before, ..Report::default() };
        let found = pipeline(function, &mut run, &mut report, watch, split);
        report.after = cost::function(&found);
        Self { found, split: run.has_split(), tally: run.tally, report }
    }
}

/// `function` with loops taken apart; where rules do that, or with loops kept whole if that is cheaper.
fn cheaper(function: &Function, start: &Start, before: f64, watch: Option<Watch<'_>>) -> Try {
    // Whoever is shown what passes make sees one after the other.
    let is_worth_a_thread = watch.is_none() && walk::statements(&function.body) >= MIN_FOR_THREAD;
    let mut unwatched = |_: &str, _: &Function| {};
    let watch: Watch<'_> = watch.unwrap_or(&mut unwatched);
    let whole = || Start { whole: true, ..start.clone() };
    std::thread::scope(|scope| {
        let mut other = None;
        let first = Try::new(function, start.clone(), before, watch, &mut || {
            if is_worth_a_thread {
                let start = whole();
                let task = move || Try::new(function, start, before, &mut |_, _| {}, &mut || {});
                other = std::thread::Builder::new().spawn_scoped(scope, task).ok();
            }
        });
        if !first.split {
            return first;
        }
        // Was it worth while to take loops apart?
        let second = match other.take() {
            Some(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Try::new(function, whole(), before, watch, &mut || {}),
        };
        let work = first.tally.work + second.tally.work;
        let mut best = if second.report.after < first.report.after { second } else { first };
        best.tally.work = work;
        best
    })
}

/// `function` written anew once with the rules `names` alone: to see and test what one rule does, whether it pays
/// or not.
#[must_use]
pub fn apply(function: &Function, names: &[&str], strict: bool) -> (Function, Report) {
    let disabled = rules::all().iter().map(|rule| rule.name).filter(|name| !names.contains(name)).map(str::to_owned);
    let options = Options { strict, disabled: disabled.collect(), ..Options::default() };
    let tally = Tally { applied: counters(), left: options.budget, ..Tally::default() };
    let mut run = Run { options, late: true, tally, ..Run::default() };
    let mut report = Report { before: cost::function(function), ..Report::default() };
    pass(function, &mut run, Todo { split: true, factor: true, ..Todo::default() });
    let found = run.result.take().unwrap_or_else(|| function.clone());
    report.after = cost::function(&found);
    report.applied = named(&run.tally.applied);
    (found, report)
}

/// What `function` takes, in words.
#[must_use]
pub fn measure(function: &Function) -> Measure {
    Measure {
        cost: in_words(function, &cost::symbolic(function)),
        operations: in_words(function, &cost::operations(function)),
        stored: in_words(function, &cost::stored(function)),
        loops: cost::loops(function),
    }
}

/// A polynomial with the names of the sizes of `function`.
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

// Of a rule or a step, by what it is counted under.
fn name(number: usize) -> &'static str {
    match rules::ENGINE.get(number) {
        Some((name, _)) => name,
        None => rules::all()[number - rules::ENGINE.len()].name,
    }
}

/// All passes in order.
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
    if !run.options.strict {
        rounds(FACTOR, &mut now, run, report, watch);
    }
    report.stop = stop;
    // What passes have left unused counts in neither.
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

/// What the function costs after the passes so far.
fn last_cost(report: &Report) -> f64 {
    report.passes.last().map_or(report.before, |pass| pass.after)
}

// Whether anything changed.
fn step(pass: &Pass, now: &mut Function, run: &mut Run, report: &mut Report, watch: Watch<'_>) -> bool {
    if run.options.leaves_out(pass.name) {
        return false;
    }
    let before = last_cost(report);
    let (applied, n_chosen): (u64, u64) = (run.tally.applied.iter().sum(), run.n_chosen());
    let measured = run.tally.places.is_some().then(|| {
        let last = report.passes.last().and_then(|pass| pass.measures.as_ref());
        last.map_or_else(|| measure(now), |(_, after)| after.clone())
    });
    (pass.run)(now, run);
    let (mut changed, mut after) = (false, before);
    if let Some(result) = run.result.take() {
        changed = !alpha_equal(now, &result);
        let last = std::mem::replace(now, result);
        if changed {
            after = cost::function(now);
        }
        // What was given is there in any case.
        let is_first = report.passes.is_empty();
        if after > before && !is_first && run.cheapest.as_ref().is_none_or(|(least, _)| before < *least) {
            run.cheapest = Some((before, last));
        }
    }
    let applied = run.tally.applied.iter().sum::<u64>() - applied;
    // What every pass does (sharing what is equal, moving it out of loops) was done in vain, too, if nothing has changed.
    if changed || run.n_chosen() > n_chosen {
        run.in_vain.clear();
    }
    // What the pass has left unused goes with the next one.
    let measures = measured.map(|before| (before, measure(&live::swept(now.clone()))));
    report.passes.push(PassReport { name: pass.name, applied, before, after, measures });
    watch(pass.name, now);
    changed
}

fn simplify(function: &Function, run: &mut Run) {
    once(function, run, true, false);
}

fn fuse(function: &Function, run: &mut Run) {
    once(function, run, true, true);
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
    // A loop that makes what others take at their own index can be one of them.
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
        // The next one does nothing where no loop can be put together: what is left over is for the passes that follow.
        if run.tally.applied[rules::MERGE] == before {
            break;
        }
    }
}

fn once(function: &Function, run: &mut Run, split: bool, fuse: bool) {
    pass(function, run, Todo { split, fuse, ..Todo::default() });
}

/// What a pass may do.
#[derive(Clone, Copy, Default)]
struct Todo {
    split: bool,
    fuse: bool,
    expand: bool,
    merge: bool,
    share: bool,
    late: bool,
    factor: bool,
}

impl Todo {
    /// Whether a pass that may do this may do no more than one that may do `other`.
    fn within(self, other: Self) -> bool {
        self.split <= other.split
            && self.fuse <= other.fuse
            && self.expand <= other.expand
            && self.merge <= other.merge
            && self.share <= other.share
            && self.late <= other.late
            && self.factor <= other.factor
    }
}

fn pass(function: &Function, run: &mut Run, todo: Todo) {
    // Only fusion asks whether it is late.
    let todo = Todo { late: run.late && todo.fuse, ..todo };
    let mut plan = Plan::default();
    if planned(function, run, todo, &mut plan) {
        carry_out(function, run, todo, &plan);
    }
}

/// Puts into `plan` what there is to do; whether there is anything, for the pass would be in vain otherwise.
fn planned<'a>(function: &'a Function, run: &mut Run, todo: Todo, plan: &mut Plan<'a>) -> bool {
    let off = |name: &str| run.options.leaves_out(name);
    let Todo { split, fuse, expand, merge, share, late, factor } = todo;
    // Only a loop in a loop computes something again and again.
    let expands = expand && walk::has_nested_loops(&function.body, false);
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
        merge::analyse(function, plan, run.options.strict);
    }
    if settled && plan.merged.is_empty() && plan.share.is_empty() {
        return false;
    }
    if factor && !run.options.strict && !off("common-factor") {
        products::analyse(function, plan);
    }
    // All else has been done.
    if factor && !split && plan.factor.is_empty() {
        return false;
    }
    if fuse && !off("fuse") {
        fusion::analyse(function, plan, late && !off("branches"));
    }
    // What else a late pass could do an early one did in vain.
    if late && plan.branches.is_empty() && is_in_vain(Todo { late: false, ..todo }) {
        run.in_vain.push(todo);
        return false;
    }
    true
}

/// Writes `function` anew.
fn carry_out(function: &Function, run: &mut Run, todo: Todo, plan: &Plan<'_>) {
    let Todo { split, expand, .. } = todo;
    let off = |name: &str| run.options.leaves_out(name);
    let settings = Settings {
        rules: Enabled::new(|rule| {
            let left_out =
                (rule.split && (!split || run.whole)) || (rule.algebraic && run.options.strict) || off(rule.name);
            !left_out
        }),
        common: !off("common"),
        hoist: !off("hoist"),
        expand,
        strict: run.options.strict,
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

// Where the steps of the engine that analyses ask for are made.
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
