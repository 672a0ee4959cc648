//! Selection of the way in which each class is computed: extraction of a cheapest graph.
//!
//! In: classes with the ways of their nodes. Out: one way for each.
//!
//! Finding the cheapest selection is NP-hard (it contains set cover); this is local improvement, known as
//! resubstitution in logic synthesis (Mishchenko, Chatterjee, Brayton 2006). It starts from the oldest way of each
//! class. The *cone* of a class is its maximum fanout-free cone: the classes that are dead without it. A sweep visits
//! the classes; if the class and its cone cost more than another way to compute it, it switches to that way: another of
//! its nodes, or a sum or product of two live values (`join.rs`). Sweeps alternate from the results down and from the
//! inputs up. After each, the code is regenerated, and kept only if it weighs less.
//!
//! | paper | here |
//! | --- | --- |
//! | maximum fanout-free cone | cone |
//! | divisors | candidates: older live classes; those of the cone add to the cost |
//!
//! Rounding is controlled by running error analysis (Higham 2002, section 3.3): a bound of the relative error of each
//! class, in units of roundoff, follows from those of its operands at the points of the real models. A class takes a
//! new way only if that bound stays below [`MAX_ERROR_GROWTH`] times its initial bound, plus an allowance. So unstable
//! recurrences, and differences that cancel, are rejected, unless the original program was as bad.
//!
//! Ways refer to older classes only, so no choice makes a cycle. Costs are those of the last code: an instruction that
//! multiplies by a constant for a single sum counts as part of the sum. The price of a new way includes the additional
//! multiples of its operands and of the class.

use super::class::{ClassId, Classes, Place, Way, one};
use super::code::{Code, Instr};
use super::join::Points;
use super::model::REAL_DRAWS;
use super::real::Double2;
use super::scale;
use crate::graph::{Graph, NodeId};
use chainrule_base::Arena;
use chainrule_ops::Op;
use smallvec::SmallVec;

/// Maximum number of sweeps.
const SWEEPS: usize = 4;
/// Maximum growth of the error bound of a class.
const MAX_ERROR_GROWTH: f64 = 2.0;
/// Additional allowance, in units of roundoff.
const ERROR_ALLOWANCE: f64 = 2.0;

/// Bounds of a relative error in units of roundoff, one per real model.
type Errors = [f64; REAL_DRAWS];

/// Returns the code for `roots` after choosing ways, with a search of at most `max_pairs` pairs of values; of no use if
/// it weighs more than `limit`.
pub(super) fn choose(graph: &Graph, classes: &Classes, roots: &[NodeId], max_pairs: usize, limit: u64) -> Code {
    let mut chosen: Arena<ClassId, Way> = classes.classes.as_slice().iter().map(|c| first(&c.ways)).collect();
    if max_pairs == 0 {
        return scale::code(graph, classes, &chosen, roots, limit);
    }
    let mut best = scale::code(graph, classes, &chosen, roots, u64::MAX);
    let mut weight = best.weight(graph);
    let points = Points::new(&classes.classes);
    let mut limits = errors(graph, classes, &chosen);
    for limit in limits.as_mut_slice().iter_mut().flatten() {
        *limit = MAX_ERROR_GROWTH * *limit + ERROR_ALLOWANCE;
    }
    let mut failures = 0;
    for sweep in 0..SWEEPS {
        let mut network = Network::new(graph, classes, &chosen, &limits, &best, roots);
        let n_changed = network.sweep(&points, sweep % 2 == 0, max_pairs / SWEEPS);
        let next = network.chosen;
        let code = if n_changed > 0 { scale::code(graph, classes, &next, roots, u64::MAX) } else { Code::default() };
        let next_weight = code.weight(graph);
        if n_changed == 0 || next_weight >= weight {
            failures += 1;
            if failures == 2 {
                break;
            }
            continue;
        }
        failures = 0;
        (chosen, best, weight) = (next, code, next_weight);
    }
    best
}

fn first(ways: &[Way]) -> Way {
    // The number 1 has no way, and none is needed.
    ways.first().copied().unwrap_or(Way::Sum(Double2::ONE, one(), Double2::ONE, one()))
}

/// Chosen ways, with use counts.
struct Network<'a> {
    graph: &'a Graph,
    classes: &'a Classes,
    chosen: Arena<ClassId, Way>,
    /// Error bounds of the chosen ways, and their limits.
    errors: Arena<ClassId, Errors>,
    limits: &'a Arena<ClassId, Errors>,
    /// Uses by live classes and by roots; a class without uses is dead.
    uses: Arena<ClassId, u32>,
    /// Weight of the class's instructions.
    costs: Arena<ClassId, u64>,
    /// Existing multiples.
    multiples: Arena<ClassId, SmallVec<[Double2; 2]>>,
}

impl<'a> Network<'a> {
    fn new(
        graph: &'a Graph,
        classes: &'a Classes,
        chosen: &Arena<ClassId, Way>,
        limits: &'a Arena<ClassId, Errors>,
        code: &Code,
        roots: &[NodeId],
    ) -> Self {
        let n = chosen.len();
        let mut this = Self {
            graph,
            classes,
            chosen: chosen.clone(),
            errors: errors(graph, classes, chosen),
            limits,
            uses: Arena::filled(n, 0),
            costs: Arena::filled(n, 0),
            multiples: Arena::filled(n, SmallVec::new()),
        };
        for root in roots {
            if let Place::Times(_, class) = classes.places[chainrule_base::Id::index(*root)] {
                this.revive(class);
            }
        }
        this.measure(code);
        this
    }

    fn measure(&mut self, code: &Code) {
        let uses = code.uses();
        let mut only_user: Arena<super::code::InstrId, Option<ClassId>> = Arena::filled(uses.len(), None);
        for (id, instr) in code.instrs.iter().filter(|(id, _)| uses[*id] > 0) {
            for arg in instr.args() {
                let user = code.computes[id].class;
                only_user[arg] = (uses[arg] == 1 && matches!(instr, Instr::Arithmetic(..))).then_some(user);
            }
        }
        for (id, instr) in code.instrs.iter().filter(|(id, _)| uses[*id] > 0) {
            let class = code.computes[id].class;
            let (payer, weight) = match instr {
                Instr::Const(_) => continue,
                Instr::Scaled(..) => (only_user[id].unwrap_or(class), u64::from(Op::Mul.row().weight)),
                Instr::Arithmetic(op, ..) => (class, u64::from(op.row().weight)),
                Instr::Call(..) => (class, 0),
            };
            self.costs[payer] += weight;
            if !matches!(instr, Instr::Scaled(..)) || payer == class {
                self.multiples[class].push(code.computes[id].scale);
            }
        }
        for class in self.chosen.ids() {
            // Rough costs of classes that are not computed now.
            if self.multiples[class].is_empty() {
                self.multiples[class].push(Double2::ONE);
                self.costs[class] = 1;
            }
        }
    }

    /// Returns the classes that the chosen way of `class` uses.
    fn args(&self, class: ClassId) -> SmallVec<[ClassId; 3]> {
        self.args_of(&self.chosen[class])
    }

    fn args_of(&self, way: &Way) -> SmallVec<[ClassId; 3]> {
        match way {
            Way::Call(node, _) => {
                let places = self.graph.args(*node).iter().map(|a| self.classes.places[chainrule_base::Id::index(*a)]);
                places.filter_map(|p| if let Place::Times(_, c) = p { Some(c) } else { None }).collect()
            }
            _ => way.args().into_iter().collect(),
        }
    }

    /// Adds a use of `class`; returns the cost of the classes that become live.
    fn revive(&mut self, class: ClassId) -> u64 {
        let mut cost = 0;
        let mut stack = vec![class];
        while let Some(c) = stack.pop() {
            self.uses[c] += 1;
            if self.uses[c] == 1 && c != one() {
                cost += self.costs[c];
                stack.extend(self.args(c));
            }
        }
        cost
    }

    /// Removes a use of `class`; returns the cost of the classes that become dead.
    fn release(&mut self, class: ClassId) -> u64 {
        let mut gain = 0;
        let mut stack = vec![class];
        while let Some(c) = stack.pop() {
            self.uses[c] -= 1;
            if self.uses[c] == 0 && c != one() {
                gain += self.costs[c];
                stack.extend(self.args(c));
            }
        }
        gain
    }

    /// Searches a cheaper way for every class, once. Returns the number of classes that found one.
    fn sweep(&mut self, points: &Points, down: bool, max_pairs: usize) -> usize {
        let living: Vec<ClassId> = self.chosen.ids().skip(1).filter(|c| self.uses[*c] > 0).collect();
        let window = (2 * max_pairs / living.len().max(1)).max(50);
        let mut order: Vec<usize> = (0..living.len()).collect();
        if down {
            order.reverse();
        }
        let mut n_changed = 0;
        for place in order {
            let class = living[place];
            let is_arithmetic = !matches!(self.chosen[class], Way::Call(..));
            if self.uses[class] > 0 && is_arithmetic && self.improve(points, class, &living[..place], window) {
                n_changed += 1;
            }
        }
        n_changed
    }

    fn improve(&mut self, points: &Points, class: ClassId, older: &[ClassId], window: usize) -> bool {
        let old = self.args(class);
        let mut gain = self.costs[class];
        for arg in &old {
            gain += self.release(*arg);
        }
        let found = if gain > 1 { self.cheapest(points, class, older, window, gain) } else { None };
        if let Some((way, cost)) = found {
            self.chosen[class] = way;
            self.costs[class] = cost;
            self.errors[class] = error(self.classes, class, &way, &self.errors);
        }
        for arg in self.args(class) {
            self.revive(arg);
        }
        found.is_some()
    }

    /// Returns the cheapest way that costs less than `limit`, and its own cost.
    fn cheapest(
        &mut self,
        points: &Points,
        class: ClassId,
        older: &[ClassId],
        window: usize,
        limit: u64,
    ) -> Option<(Way, u64)> {
        let mut best: Option<(u64, Way, u64)> = None;
        let mut offer = |total: u64, way: Way, own: u64| {
            if total < limit && best.as_ref().is_none_or(|(least, ..)| total < *least) {
                best = Some((total, way, own));
            }
        };
        let older = &older[older.len().saturating_sub(window)..];
        let mut ways = self.classes.classes[class].ways.to_vec();
        ways.retain(|way| !matches!(way, Way::Call(..)) && *way != self.chosen[class]);
        let is_candidate = |c: ClassId| c < class && older.binary_search(&c).is_ok();
        ways.extend(points.products(&self.classes.classes, class, older, is_candidate));
        ways.extend(points.sums(&self.classes.classes, class, older));
        for way in ways {
            let own = self.price(class, &way);
            if own >= limit || !self.is_accurate(class, &way) {
                continue;
            }
            // Operands that would die with the class must stay live.
            let args = self.args_of(&way);
            let mut revived = 0;
            for arg in &args {
                revived += self.revive(*arg);
            }
            for arg in args {
                self.release(arg);
            }
            offer(own + revived, way, own);
        }
        best.map(|(_, way, own)| (way, own))
    }

    fn is_accurate(&self, class: ClassId, way: &Way) -> bool {
        let errors = error(self.classes, class, way, &self.errors);
        errors.iter().zip(&self.limits[class]).all(|(error, limit)| error <= limit)
    }

    /// Returns the cost of the instructions of `class` if it is computed in this way from the existing values.
    fn price(&self, class: ClassId, way: &Way) -> u64 {
        let is = |a: Double2, b: Double2| a.abs().is_near(b.abs());
        let unmet = |scale: Double2| self.multiples[class].iter().filter(|m| !is(**m, scale)).count();
        let least = |scales: &mut dyn Iterator<Item = (Double2, usize)>| {
            scales.map(|(scale, extra)| extra + unmet(scale)).min().unwrap_or(2) as u64
        };
        let all =
            |c: ClassId| if c == one() { SmallVec::from_slice(&[Double2::ONE]) } else { self.multiples[c].clone() };
        match *way {
            Way::Call(..) => u64::MAX / 4,
            Way::Product(f, a, b) => {
                let (of_a, of_b) = (all(a), all(b));
                let mut pairs = of_a.iter().flat_map(|x| of_b.iter().map(move |y| (*x * *y / f, 0)));
                u64::from(Op::Mul.row().weight) + least(&mut pairs)
            }
            Way::Quotient(f, a, b) => {
                let (of_a, of_b) = (all(a), all(b));
                let mut pairs = of_a.iter().flat_map(|x| of_b.iter().map(move |y| (*x / (*y * f), 0)));
                u64::from(Op::Div.row().weight) + if a == one() { 0 } else { least(&mut pairs) }
            }
            Way::Sum(x, a, y, b) => {
                let (of_a, of_b) = (all(a), all(b));
                let missing = |c: ClassId, of: &[Double2], scale: Double2| {
                    usize::from(c != one() && !of.iter().any(|m| is(*m, scale)))
                };
                let from_a = of_a.iter().filter(|_| a != one()).map(|m| *m / x);
                let from_b = of_b.iter().filter(|_| b != one()).map(|m| *m / y);
                let mut scales = from_a.chain(from_b).map(|s| (s, missing(a, &of_a, s * x) + missing(b, &of_b, s * y)));
                u64::from(Op::Add.row().weight) + least(&mut scales)
            }
        }
    }
}

/// Returns the error bounds of all classes, each computed in its chosen way.
fn errors(graph: &Graph, classes: &Classes, chosen: &Arena<ClassId, Way>) -> Arena<ClassId, Errors> {
    let mut errors: Arena<ClassId, Errors> = Arena::filled(chosen.len(), [0.0; REAL_DRAWS]);
    for (class, way) in chosen.iter().skip(1) {
        errors[class] = match way {
            // Functions are assumed to be as accurate as their arguments; an input is exact.
            Way::Call(node, _) => {
                let mut worst = [0.0; REAL_DRAWS];
                for arg in graph.args(*node) {
                    if let Place::Times(_, class) = classes.places[chainrule_base::Id::index(*arg)] {
                        worst = std::array::from_fn(|d| f64::max(worst[d], errors[class][d]) + 1.0);
                    }
                }
                worst
            }
            _ => error(classes, class, way, &errors),
        };
    }
    errors
}

/// Returns the error bounds of `class` computed in this way.
fn error(classes: &Classes, class: ClassId, way: &Way, errors: &Arena<ClassId, Errors>) -> Errors {
    let size = |c: ClassId, d: usize| classes.classes[c].unit.real[d].magnitude();
    std::array::from_fn(|d| match *way {
        Way::Call(..) => f64::INFINITY,
        Way::Product(_, a, b) | Way::Quotient(_, a, b) => errors[a][d] + errors[b][d] + 1.0,
        Way::Sum(x, a, y, b) => {
            let (p, q) = (x.high.abs() * size(a, d), y.high.abs() * size(b, d));
            (p * errors[a][d] + q * errors[b][d]) / size(class, d) + 1.0
        }
    })
}
