//! The portfolio: several methods on one graph, of which the cheapest program is taken.
//!
//! In: a linearised graph, a budget, the cost of a program. Out: the programs worth checking, cheapest first, and a
//! report of the attempts.
//!
//! Forward and reverse mode and the O(n log n) orders are always tried. Costlier methods have an effort estimated from
//! the graph; they are tried in the order of the table as long as [`Budget::effort`] lasts. No clock is read: the
//! methods tried depend only on the graph and the budget. Programs are counted; the best few are then compared by the
//! cost that the caller gives, which generates their code.

use crate::strategy::{Algorithm, Attempt, Method, Report, STRATEGIES};
use crate::{Budget, LinearGraph, Program, StopReason, dstar};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A method of the portfolio.
struct Member {
    name: &'static str,
    /// Estimated effort in microseconds; 0 for methods that are always tried.
    effort: fn(&LinearGraph) -> u64,
}

/// Methods in the order of trial, the largest saving for its effort first. Of forward and reverse, the one with fewer
/// sweeps comes first.
const MEMBERS: &[Member] = &[
    Member { name: "reverse", effort: |_| 0 },
    Member { name: "forward", effort: |_| 0 },
    Member { name: "markowitz", effort: |_| 0 },
    Member { name: "markowitz-highest", effort: |_| 0 },
    Member { name: "relative-markowitz", effort: |_| 0 },
    Member { name: "dstar", effort: dstar_effort },
    Member { name: "dstar-highest", effort: dstar_effort },
    Member { name: "fill-in", effort: |linear| 5 * edges(linear) },
    Member { name: "reduction", effort: |linear| 10 * edges(linear) },
    Member { name: "damage", effort: |linear| 10 * edges(linear) },
];

fn edges(linear: &LinearGraph) -> u64 {
    linear.n_edges() as u64
}

/// Returns the effort of D*: about half a microsecond for each edge of a derivative graph. The count stops at more
/// edges than the default budget pays for.
fn dstar_effort(linear: &LinearGraph) -> u64 {
    dstar::memberships(linear, 2 * Budget::EFFORT).map_or(u64::MAX, |n| n / 2)
}

/// Maximum number of programs compared as generated code.
const COMPARED: usize = 4;
/// Maximum excess over the cheapest program for the comparison, in percent.
const MARGIN: u64 = 6;
/// Maximum total number of products of compared programs.
const COMPARED_PRODUCTS: u64 = 4_000_000;

/// Tries the methods; returns programs as (index of the attempt, program), preferred ones first.
pub(crate) fn programs(
    linear: &LinearGraph,
    budget: &Budget,
    report: &mut Report,
    mut cost: impl FnMut(&Program) -> u64,
) -> Vec<(usize, Program)> {
    let (methods, effort) = methods(linear, budget);
    let tries = if effort >= MIN_EFFORT_FOR_THREADS && FOR_THREADS.contains(&linear.n_edges()) {
        tried_at_once(linear, budget, &methods)
    } else {
        Vec::new()
    };
    let mut tries = tries.into_iter();
    let mut programs: Vec<(usize, Program)> = Vec::new();
    for (name, run) in methods {
        let products = most_products(budget, programs.iter().map(|(_, p)| p));
        let tried = match tries.next().flatten() {
            Some(tried) if tried.is_as_within(products) => tried,
            _ => Try::new(linear, budget, name, run, products),
        };
        report.attempts.push(tried.attempt);
        programs.extend(tried.program.map(|p| (report.attempts.len() - 1, p)));
    }
    programs.sort_by_key(|(idx, _)| (report.attempts[*idx].folded.weight, *idx));
    let mut products = 0;
    let weight = |idx: usize| report.attempts[idx].folded.weight;
    let limit = programs.first().map_or(0, |(idx, _)| weight(*idx) + weight(*idx) * MARGIN / 100);
    let compared = programs.iter().take(COMPARED).take_while(|(idx, program)| {
        products += program.n_products();
        products <= COMPARED_PRODUCTS && weight(*idx) <= limit
    });
    let n_compared = compared.count();
    if n_compared > 1 {
        for (idx, program) in &programs[..n_compared] {
            report.attempts[*idx].cost = Some(cost(program));
        }
        programs[..n_compared].sort_by_key(|(idx, _)| (report.attempts[*idx].cost, *idx));
    }
    programs
}

/// Returns the maximum number of products of the next program: one with many times the products of the best is not
/// going to be cheaper.
fn most_products<'a>(budget: &Budget, programs: impl Iterator<Item = &'a Program>) -> u64 {
    programs.map(Program::n_products).min().map_or(budget.products, |n| budget.products.min(2 * n + 1000))
}

/// Numbers of vertices for which threads are used. Smaller graphs are done before a thread starts; larger programs must
/// not be in memory at the same time.
const FOR_THREADS: RangeInclusive<usize> = 400..=50_000;

/// Minimum estimated effort of optional methods for which threads are used, in microseconds: starting a thread takes
/// some 50.
const MIN_EFFORT_FOR_THREADS: u64 = 1_000;

/// Result of a method.
struct Try {
    /// Maximum number of products allowed.
    products: u64,
    /// Number of products; `None` if some were removed afterwards.
    n_products: Option<u64>,
    attempt: Attempt,
    /// Cleaned-up program.
    program: Option<Program>,
}

impl Try {
    fn new(linear: &LinearGraph, budget: &Budget, name: &'static str, run: Algorithm, products: u64) -> Self {
        let outcome = run(linear, &Budget { products, ..*budget });
        let is_whole = outcome.stop == StopReason::Done && linear.pairs().is_none();
        let n_products = outcome.program.as_ref().filter(|_| is_whole).map(Program::n_products);
        let (attempt, program) = Attempt::new(name, outcome);
        Self { products, n_products, attempt, program }
    }

    /// Returns whether the result would be the same with a limit of `products`. The number of products only grows while
    /// a program is built, and the limit affects nothing else.
    fn is_as_within(&self, products: u64) -> bool {
        let has_too_many = self.attempt.stop == StopReason::ProductBudget && products <= self.products;
        products == self.products || has_too_many || self.n_products.is_some_and(|n| n <= products)
    }
}

/// Runs the methods on two threads. The limit of each is at least the limit of the sequential run: finished earlier
/// methods lower it.
fn tried_at_once(linear: &LinearGraph, budget: &Budget, methods: &[(&'static str, Algorithm)]) -> Vec<Option<Try>> {
    let tries: Vec<Mutex<Option<Try>>> = methods.iter().map(|_| Mutex::new(None)).collect();
    let get = |i: usize| tries[i].lock().unwrap_or_else(PoisonError::into_inner);
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let idx = next.fetch_add(1, Relaxed);
            let Some((name, run)) = methods.get(idx) else { return };
            let allowed = |i: usize| most_products(budget, get(i).iter().filter_map(|tried| tried.program.as_ref()));
            let products = (0..idx).map(allowed).min().unwrap_or(budget.products);
            let tried = Try::new(linear, budget, name, *run, products);
            *get(idx) = Some(tried);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    tries.into_iter().map(|tried| tried.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Returns the methods to try on this graph within this budget, and their effort.
fn methods(linear: &LinearGraph, budget: &Budget) -> (Vec<(&'static str, Algorithm)>, u64) {
    let mut members: Vec<(u64, &str)> = MEMBERS.iter().map(|m| ((m.effort)(linear), m.name)).collect();
    if linear.columns().len() < linear.rows().len() {
        members.swap(0, 1);
    }
    let mut left = budget.effort;
    members.retain(|(effort, _)| {
        let fits = *effort <= left;
        left -= if fits { *effort } else { 0 };
        fits
    });
    let methods = members
        .into_iter()
        .filter_map(|(_, name)| match STRATEGIES.iter().find(|s| s.name == name)?.method {
            Method::One(run) => Some((name, run)),
            Method::Portfolio => None,
        })
        .collect();
    (methods, budget.effort - left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Label;

    fn path(n: usize) -> LinearGraph {
        let edges: Vec<(usize, usize, Label)> = (0..n).map(|v| (v, v + 1, Label::Var)).collect();
        LinearGraph::from_edges(1, n - 1, 1, &edges).unwrap()
    }

    fn names(linear: &LinearGraph, effort: u64) -> Vec<&'static str> {
        methods(linear, &Budget { effort, ..Budget::default() }).0.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn every_member_is_a_strategy() {
        assert_eq!(names(&path(3), u64::MAX).len(), MEMBERS.len());
    }

    #[test]
    fn the_budget_decides_what_is_tried() {
        let cheap = ["reverse", "forward", "markowitz", "markowitz-highest", "relative-markowitz"];
        assert_eq!(names(&path(100), 0), cheap);
        // On a path D* has as many edges as the graph: 50 microseconds each direction.
        assert_eq!(names(&path(100), 100), [&cheap[..], &["dstar", "dstar-highest"]].concat());
        // Methods that do not fit are skipped.
        assert_eq!(names(&path(100), 99), [&cheap[..], &["dstar"]].concat());
        assert_eq!(names(&path(100), 1200), [&cheap[..], &["dstar", "dstar-highest", "fill-in"]].concat());
    }

    #[test]
    fn the_mode_with_fewer_sweeps_is_first() {
        let fan: Vec<(usize, usize, Label)> =
            (2..9).map(|row| (1, row, Label::Var)).chain([(0, 1, Label::Var)]).collect();
        let linear = LinearGraph::from_edges(1, 1, 7, &fan).unwrap();
        assert_eq!(names(&linear, 0)[..2], ["forward", "reverse"]);
    }
}
