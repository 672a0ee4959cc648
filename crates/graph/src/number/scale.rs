//! Scale freedom: selection of the multiples of each class that are computed.
//!
//! In: classes, a way chosen for each, roots. Out: code.
//!
//! A class may be computed up to a constant factor. Only *demands* are exact: roots, arguments of calls, and multiples
//! of the plan. Classes are visited from the oldest to the youngest, each at a scale at which its terms or factors
//! already exist; `a*x + b*y` then needs one constant instead of two, and a linear recurrence is scaled such that its
//! first coefficient is 1.
//!
//! | class | scale |
//! | --- | --- |
//! | sum | the one with fewest multiplications, among its terms' multiples, its demands and its wishes |
//! | product, quotient | each demand that a pair of multiples meets; if there is none, the first pair |
//! | call | unscaled |
//!
//! An unmet demand costs a multiplication by a constant. If that is the only use of a product, the constant can be
//! moved to one of its factors; [`extend_plan`] moves it there if other products need the same multiple. The multiples
//! in which sums prefer their terms are *wishes*: each unmet one costs a multiplication as well. The code is generated
//! a few times, each time with the plan and the wishes of the previous time (coordinate descent over the scales), once
//! from no wishes and once from the original scales of the nodes; the best is kept.

use super::class::{ClassId, Classes, Place, Way, one};
use super::code::{Code, Instr, InstrId};
use super::real::Double2;
use crate::graph::{Graph, NodeId};
use chainrule_base::{Arena, Id};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Number of times that the code is regenerated from each start; once if there are many classes.
const ROUNDS: usize = 5;
/// If the weight exceeds the limit by more than this fraction in the second round, the descent is abandoned.
const HOPELESS: u64 = 32;
/// Minimum number of classes that counts as many.
const MANY: usize = 50_000;
/// Minimum number of classes for running both starts in parallel.
const MANY_FOR_THREADS: usize = 300;
/// Maximum number of wishes of a class.
const MAX_WISHES: usize = 6;

/// Multiples that are requested in addition to those that the code needs itself.
type Plan = Arena<ClassId, SmallVec<[Double2; 1]>>;

/// Returns the code for `roots`, each class computed in the way `chosen`; code that weighs much more than `limit` is
/// abandoned early. A few sweeps, linear except for the number of multiples of a class.
pub(super) fn code(
    graph: &Graph,
    classes: &Classes,
    chosen: &Arena<ClassId, Way>,
    roots: &[NodeId],
    limit: u64,
) -> Code {
    let needed = needed(graph, classes, chosen, roots);
    let made_enough = AtomicBool::new(false);
    let asked = Asked { graph, classes, chosen, needed: &needed, roots, limit };
    let nothing: Plan = Arena::filled(chosen.len(), SmallVec::new());
    let mut from_nothing = Descent::new(asked, nothing, &made_enough);
    let mut from_nature = Descent::new(asked, natural_wishes(chosen, &needed), &made_enough);
    let mut best: Option<(u64, Code)> = None;
    // Keeps the best code; returns whether another start may have a better one.
    let mut keep_best = |rounds: &mut dyn Iterator<Item = Round>| {
        for Round { code, weight, is_settled } in rounds {
            let is_known = best.as_ref().is_some_and(|(least, _)| weight == *least);
            // Without multiplications by constants no other scale is better.
            let is_bare = !code.instrs.iter().any(|(_, instr)| matches!(instr, Instr::Scaled(..)));
            if best.as_ref().is_none_or(|(least, _)| weight < *least) {
                best = Some((weight, code));
            }
            if is_bare {
                return false;
            }
            if is_known && is_settled {
                break;
            }
        }
        true
    };
    if chosen.len() < MANY_FOR_THREADS {
        if keep_best(&mut from_nothing) {
            keep_best(&mut from_nature);
        }
    } else {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| from_nature.collect::<Vec<Round>>());
            made_enough.store(!keep_best(&mut from_nothing), Relaxed);
            let rounds = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if !made_enough.load(Relaxed) {
                keep_best(&mut rounds.into_iter());
            }
        });
    }
    best.map(|(_, code)| code).unwrap_or_default()
}

/// Inputs of code generation.
#[derive(Clone, Copy)]
struct Asked<'a> {
    graph: &'a Graph,
    classes: &'a Classes,
    chosen: &'a Arena<ClassId, Way>,
    needed: &'a Arena<ClassId, Need>,
    roots: &'a [NodeId],
    limit: u64,
}

/// One generation of the code.
struct Round {
    code: Code,
    weight: u64,
    /// Whether its wishes are those from which it was generated.
    is_settled: bool,
}

/// Repeated generation of the code from one start, while it becomes cheaper. The result does not depend on other
/// starts, so that two may run in parallel.
struct Descent<'a> {
    asked: Asked<'a>,
    plan: Plan,
    /// Wishes for the next round, if there is one.
    wishes: Option<Plan>,
    last: u64,
    n_rounds: usize,
    /// Whether no more rounds are needed.
    made_enough: &'a AtomicBool,
}

impl<'a> Descent<'a> {
    fn new(asked: Asked<'a>, wishes: Plan, made_enough: &'a AtomicBool) -> Self {
        let plan = Arena::filled(wishes.len(), SmallVec::new());
        Self { asked, plan, wishes: Some(wishes), last: u64::MAX, n_rounds: 0, made_enough }
    }
}

impl Iterator for Descent<'_> {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        let Asked { graph, chosen, limit, .. } = self.asked;
        let most = if chosen.len() > MANY { 1 } else { ROUNDS };
        if self.n_rounds == most || self.made_enough.load(Relaxed) {
            return None;
        }
        let wishes = self.wishes.take()?;
        let code = Maker::new(self.asked, &self.plan, &wishes).code();
        let weight = code.weight(graph);
        extend_plan(chosen, &code, &mut self.plan);
        let next = wishes_of(chosen, &code);
        let is_settled = next == wishes;
        let is_hopeless = self.n_rounds > 0 && weight - weight / HOPELESS > limit;
        if weight < self.last && !is_hopeless {
            self.wishes = Some(next);
        }
        self.last = weight;
        self.n_rounds += 1;
        Some(Round { code, weight, is_settled })
    }
}

/// Returns the multiples for which every sum has the unit of its class as its scale.
fn natural_wishes(chosen: &Arena<ClassId, Way>, needed: &Arena<ClassId, Need>) -> Plan {
    let mut wishes: Plan = Arena::filled(chosen.len(), SmallVec::new());
    for (class, way) in chosen.iter().skip(1).filter(|(class, _)| needed[*class].is_needed) {
        wish(&mut wishes, way, Double2::ONE);
        if wishes[class].len() < MAX_WISHES {
            wishes[class].push(Double2::ONE);
        }
    }
    wishes
}

/// Returns the multiples in which the sums of `code` use their terms.
fn wishes_of(chosen: &Arena<ClassId, Way>, code: &Code) -> Plan {
    let mut wishes: Plan = Arena::filled(chosen.len(), SmallVec::new());
    for (id, instr) in code.instrs.iter() {
        if matches!(instr, Instr::Arithmetic(..)) {
            let computed = code.computes[id];
            wish(&mut wishes, &chosen[computed.class], computed.scale);
        }
    }
    wishes
}

fn wish(wishes: &mut Plan, way: &Way, scale: Double2) {
    if let Way::Sum(x, a, y, b) = way {
        for (class, scale) in [(*a, *x * scale), (*b, *y * scale)] {
            let list = &mut wishes[class];
            if class != one() && list.len() < MAX_WISHES && !list.iter().any(|s| s.abs().is_near(scale.abs())) {
                list.push(scale);
            }
        }
    }
}

/// Required multiples of a class.
#[derive(Clone, Debug, Default)]
pub(super) struct Need {
    pub(super) is_needed: bool,
    /// Exact multiples.
    pub(super) demands: SmallVec<[Double2; 1]>,
}

/// Returns the needs of the roots, by class.
pub(super) fn needed(
    graph: &Graph,
    classes: &Classes,
    chosen: &Arena<ClassId, Way>,
    roots: &[NodeId],
) -> Arena<ClassId, Need> {
    let mut needs: Arena<ClassId, Need> = Arena::filled(chosen.len(), Need::default());
    let demand = |needs: &mut Arena<ClassId, Need>, id: NodeId| {
        if let Place::Times(scale, class) = classes.places[id.index()] {
            let need = &mut needs[class];
            need.is_needed = true;
            if !need.demands.iter().any(|d| d.is_near(scale)) {
                need.demands.push(scale);
            }
        }
    };
    for root in roots {
        demand(&mut needs, *root);
    }
    for (class, way) in chosen.iter().skip(1).rev() {
        if !needs[class].is_needed {
            continue;
        }
        if let Way::Call(node, _) = way {
            for arg in graph.args(*node) {
                demand(&mut needs, *arg);
            }
        }
        for arg in way.args() {
            needs[arg].is_needed = true;
        }
    }
    needs
}

struct Maker<'a> {
    asked: Asked<'a>,
    plan: &'a Plan,
    wishes: &'a Plan,
    code: Code,
    /// Existing multiples, by class.
    made: Arena<ClassId, SmallVec<[(Double2, InstrId); 2]>>,
}

impl<'a> Maker<'a> {
    fn new(asked: Asked<'a>, plan: &'a Plan, wishes: &'a Plan) -> Self {
        let made = Arena::filled(asked.chosen.len(), SmallVec::new());
        Self { asked, plan, wishes, code: Code::default(), made }
    }

    fn code(mut self) -> Code {
        let Asked { chosen, needed, roots, .. } = self.asked;
        for (class, way) in chosen.iter().skip(1) {
            if !needed[class].is_needed {
                continue;
            }
            let mut demands: SmallVec<[Double2; 4]> = needed[class].demands.iter().copied().collect();
            demands.extend(self.plan[class].iter().copied());
            match *way {
                Way::Call(node, factor) => self.call(class, node, factor),
                Way::Product(factor, a, b) => self.pairs(Op::Mul, class, factor, (a, b), &demands),
                Way::Quotient(factor, a, b) => self.pairs(Op::Div, class, factor, (a, b), &demands),
                Way::Sum(x, a, y, b) => self.sum(class, (x, a), (y, b), &demands),
            }
            for demand in demands {
                self.multiple(class, demand);
            }
        }
        for root in roots {
            let id = self.place(*root);
            self.code.roots.push(id);
        }
        self.code
    }

    fn place(&mut self, id: NodeId) -> InstrId {
        match self.asked.classes.places[id.index()] {
            Place::Zero => self.code.push(Instr::Const(Double2::default()), one(), Double2::default()),
            Place::Times(scale, class) => self.multiple(class, scale),
        }
    }

    fn record(&mut self, instr: Instr, class: ClassId, scale: Double2) -> InstrId {
        let id = self.code.push(instr, class, scale);
        self.made[class].push((scale, id));
        id
    }

    /// Returns the instruction for `scale` times the unit of `class`; emits it if necessary.
    fn multiple(&mut self, class: ClassId, scale: Double2) -> InstrId {
        if let Some((_, id)) = self.made[class].iter().find(|(s, _)| s.is_near(scale)) {
            return *id;
        }
        if class == one() {
            return self.record(Instr::Const(scale), class, scale);
        }
        let opposite = self.made[class].iter().find(|(s, _)| s.is_near(-scale));
        let (from, id) = *opposite.unwrap_or(&self.made[class][0]);
        self.record(Instr::Scaled(scale / from, id), class, scale)
    }

    fn call(&mut self, class: ClassId, node: NodeId, factor: Double2) {
        let args: SmallVec<[NodeId; 4]> = self.asked.graph.args(node).into();
        let args = args.iter().map(|a| self.place(*a)).collect();
        self.record(Instr::Call(node, args), class, Double2::ONE / factor);
    }

    /// Returns the existing multiples of `class`; of the number 1, 1.
    fn there(&self, class: ClassId) -> SmallVec<[(Double2, Option<InstrId>); 4]> {
        if class == one() {
            return SmallVec::from_slice(&[(Double2::ONE, None)]);
        }
        self.made[class].iter().map(|(s, id)| (*s, Some(*id))).collect()
    }

    /// Emits products or quotients.
    fn pairs(&mut self, op: Op, class: ClassId, factor: Double2, (a, b): (ClassId, ClassId), demands: &[Double2]) {
        let (of_a, of_b) = (self.there(a), self.there(b));
        let scale = |x: Double2, y: Double2| if op == Op::Mul { x * y / factor } else { x / (y * factor) };
        for demand in demands {
            if self.made[class].iter().any(|(s, _)| s.abs().is_near(demand.abs())) {
                continue;
            }
            for (x, i) in &of_a {
                let found = of_b.iter().find(|(y, _)| a == one() || scale(*x, *y).abs().is_near(demand.abs()));
                let Some((y, j)) = found else { continue };
                // A constant numerator meets every demand.
                let x = if a == one() { *demand * *y * factor } else { *x };
                let (i, j) = (self.operand(a, x, *i), self.operand(b, *y, *j));
                self.record(Instr::Arithmetic(op, i, j), class, scale(x, *y));
                break;
            }
        }
        if self.made[class].is_empty() {
            let wished = |x: Double2, y: Double2| {
                let scale = scale(x, y).abs();
                self.wishes[class].iter().any(|w| w.abs().is_near(scale))
            };
            let all = of_a.iter().flat_map(|x| of_b.iter().map(move |y| (*x, *y)));
            let found = all.into_iter().find(|((x, _), (y, _))| wished(*x, *y));
            let ((x, i), (y, j)) = found.unwrap_or((of_a[0], of_b[0]));
            let (i, j) = (self.operand(a, x, i), self.operand(b, y, j));
            self.record(Instr::Arithmetic(op, i, j), class, scale(x, y));
        }
    }

    fn operand(&mut self, class: ClassId, scale: Double2, there: Option<InstrId>) -> InstrId {
        there.unwrap_or_else(|| self.multiple(class, scale))
    }

    /// Emits `x*a + y*b`, at the cheapest scale.
    fn sum(&mut self, class: ClassId, (x, a): (Double2, ClassId), (y, b): (Double2, ClassId), demands: &[Double2]) {
        let n_of = |class: ClassId| if class == one() { 0 } else { self.made[class].len() };
        let (n_a, n_b) = (n_of(a), n_of(b));
        let wishes = &self.wishes[class];
        let of_a = self.made[a][..n_a].iter().map(|(s, _)| *s / x);
        let of_b = self.made[b][..n_b].iter().map(|(s, _)| *s / y);
        let candidates = of_a.chain(of_b).chain(demands.iter().copied()).chain(wishes.iter().copied());
        let price = |scale: &Double2| {
            let differs = |d: &&Double2| !d.abs().is_near(scale.abs());
            let is_demanded = |w: &Double2| demands.iter().any(|d| d.abs().is_near(w.abs()));
            let unmet = demands.iter().filter(differs).count();
            let missed = wishes.iter().filter(differs).filter(|w| !is_demanded(w)).count();
            unmet + missed + usize::from(!self.is_there(a, *scale * x)) + usize::from(!self.is_there(b, *scale * y))
        };
        // The first of the cheapest; the search stops at cost 0.
        let mut best: Option<(usize, Double2)> = None;
        let mut seen: SmallVec<[Double2; 8]> = SmallVec::new();
        for scale in candidates {
            let is_new = !seen.contains(&scale);
            seen.push(scale);
            if !is_new {
                continue;
            }
            let cost = price(&scale);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, scale));
            }
            if cost == 0 {
                break;
            }
        }
        let Some((_, scale)) = best else { return };
        let (i, x_made) = self.up_to_sign(a, scale * x);
        let (j, y_made) = self.up_to_sign(b, scale * y);
        // Most were divided already.
        let over = |class: ClassId, made: Double2, by: Double2, first: usize, n: usize| {
            let known = self.made[class].iter().take(n).position(|(s, _)| *s == made);
            known.and_then(|i| seen.get(first + i)).map_or_else(|| made / by, |quotient| *quotient)
        };
        let (r, other) = (over(a, x_made, x, 0, n_a), over(b, y_made, y, n_a, n_b));
        let negative = demands.iter().filter(|d| d.abs().is_near(r.abs()) && d.is_near(-r)).count();
        let positive = demands.iter().filter(|d| d.is_near(r)).count();
        let (op, i, j, r) = if r.is_near(other) {
            (Op::Add, i, j, r)
        } else if negative > positive {
            (Op::Sub, j, i, -r)
        } else {
            (Op::Sub, i, j, r)
        };
        self.record(Instr::Arithmetic(op, i, j), class, r);
    }

    fn is_there(&self, class: ClassId, scale: Double2) -> bool {
        class == one() || self.made[class].iter().any(|(s, _)| s.abs().is_near(scale.abs()))
    }

    /// Returns `scale` or `-scale` times the unit of `class`, whichever exists; and its scale.
    fn up_to_sign(&mut self, class: ClassId, scale: Double2) -> (InstrId, Double2) {
        if class != one()
            && let Some((s, id)) = self.made[class].iter().find(|(s, _)| s.abs().is_near(scale.abs()))
        {
            return (*id, *s);
        }
        (self.multiple(class, scale), scale)
    }
}

/// Adds to the plan the multiples of factors that combine several constants into one multiplication.
fn extend_plan(chosen: &Arena<ClassId, Way>, code: &Code, plan: &mut Plan) {
    let uses = code.uses();
    // Products that are used by constants only, with the number of these uses.
    let mut scaled_uses: Arena<InstrId, u32> = Arena::filled(code.instrs.len(), 0);
    let mut copies: Vec<(InstrId, InstrId)> = Vec::new();
    for (id, instr) in code.instrs.iter() {
        if uses[id] > 0
            && let Instr::Scaled(factor, from) = instr
            && factor.high != -1.0
        {
            scaled_uses[*from] += 1;
            copies.push((id, *from));
        }
    }
    let mut wishes: Vec<(InstrId, [(ClassId, Double2); 2])> = Vec::new();
    let mut counts: FxHashMap<(ClassId, u64), u32> = FxHashMap::default();
    for (copy, from) in copies {
        let computed = code.computes[copy];
        let (Way::Product(factor, a, b), Instr::Arithmetic(Op::Mul, i, j)) =
            (chosen[computed.class], &code.instrs[from])
        else {
            continue;
        };
        if uses[from] != scaled_uses[from] {
            continue;
        }
        let (x, y) = (code.computes[*i].scale, code.computes[*j].scale);
        let wanted = computed.scale * factor;
        let wish = [(a, wanted / y), (b, wanted / x)];
        for (class, scale) in &wish {
            *counts.entry((*class, key(*scale))).or_default() += 1;
        }
        wishes.push((copy, wish));
    }
    for (_, wish) in wishes {
        let count = |(class, scale): &(ClassId, Double2)| counts.get(&(*class, key(*scale))).copied().unwrap_or(0);
        let (class, scale) = if count(&wish[1]) > count(&wish[0]) { wish[1] } else { wish[0] };
        if count(&(class, scale)) >= 2 && !plan[class].iter().any(|s| s.abs().is_near(scale.abs())) {
            plan[class].push(scale);
        }
    }
}

/// Returns a key that is equal for scales that differ in sign and rounding only, except in rare cases.
fn key(scale: Double2) -> u64 {
    scale.high.abs().to_bits()
}
