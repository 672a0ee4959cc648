//! Scale freedom: which multiples of each class are computed.
//!
//! In: classes, a way chosen for each, roots. Out: code.
//!
//! A class may be computed up to a constant factor. Only *demands* are exact: roots, arguments of
//! calls, and what the plan asks for. Classes are taken from the oldest to the youngest, each at the
//! scale at which its terms or factors are there already; `a*x + b*y` needs one constant then instead
//! of two, and a linear recurrence takes the scale in which its first coefficient is 1.
//!
//! | class | scale |
//! | --- | --- |
//! | sum | of its terms' multiples, its demands and its wishes the one with fewest multiplications |
//! | product, quotient | each demand that a pair of multiples meets; if there is none, the first pair |
//! | call | as it is |
//!
//! A demand that is not met is a multiplication by a constant. When that is the only use of a product,
//! the constant may as well go to one of its factors; [`extend_plan`] lets it go there where other
//! products want the same multiple. What sums would like to take their terms in are *wishes*: each that
//! is missed costs a multiplication as well. The code is made a few times, each time with the plan and
//! the wishes of the time before (coordinate descent over the scales), once from no wishes and once
//! from the scales that the nodes have by themselves; the best is kept.

use super::class::{ClassId, Classes, Place, Way, one};
use super::code::{Code, Instr, InstrId};
use super::real::Double2;
use crate::graph::{Graph, NodeId};
use chainrule_base::{Arena, Id};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How often the code is made again from each start; once only where there are many classes.
const ROUNDS: usize = 5;
/// What weighs more than the limit by this part of it in the second round is not going to come below it.
const HOPELESS: u64 = 32;
/// How many classes are many.
const MANY: usize = 50_000;
/// From how many classes on both starts are gone on from at once.
const MANY_FOR_THREADS: usize = 300;
/// How many wishes of a class are heard at most.
const MAX_WISHES: usize = 6;

/// Multiples that are asked for besides those that the code needs by itself.
type Plan = Arena<ClassId, SmallVec<[Double2; 1]>>;

/// The code for `roots`, each class computed in the way `chosen`; what weighs much more than `limit` is not
/// looked at for long. A few sweeps, linear but for the number of multiples of a class.
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
    // Keeps the best code; says whether another start may have a better one.
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

/// What code is made of.
#[derive(Clone, Copy)]
struct Asked<'a> {
    graph: &'a Graph,
    classes: &'a Classes,
    chosen: &'a Arena<ClassId, Way>,
    needed: &'a Arena<ClassId, Need>,
    roots: &'a [NodeId],
    limit: u64,
}

/// One time that the code was made.
struct Round {
    code: Code,
    weight: u64,
    /// Whether it wishes for what it was made from.
    is_settled: bool,
}

/// The code made again and again from one start, while that makes it cheaper. What comes out does not depend on another
/// start, so that two may go on at once.
struct Descent<'a> {
    asked: Asked<'a>,
    plan: Plan,
    /// Those of the round to come, if there is one.
    wishes: Option<Plan>,
    last: u64,
    n_rounds: usize,
    /// Whether nobody asks for more.
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

/// The multiples for which every sum has the unit of its class as its scale.
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

/// The multiples that the sums of `code` take their terms in.
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

/// What has to be computed of a class.
#[derive(Clone, Debug, Default)]
pub(super) struct Need {
    pub(super) is_needed: bool,
    /// Exact multiples.
    pub(super) demands: SmallVec<[Double2; 1]>,
}

/// What the roots need, by class.
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
    /// The multiples that are there, by class.
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

    /// The instruction for `scale` times the unit of `class`, made if need be.
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

    /// The multiples of `class` that are there; of the number 1, 1.
    fn there(&self, class: ClassId) -> SmallVec<[(Double2, Option<InstrId>); 4]> {
        if class == one() {
            return SmallVec::from_slice(&[(Double2::ONE, None)]);
        }
        self.made[class].iter().map(|(s, id)| (*s, Some(*id))).collect()
    }

    /// Products or quotients.
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

    /// `x*a + y*b`, at the cheapest scale.
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
        // The first of the cheapest; nothing is cheaper than nothing.
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

    /// `scale` or `-scale` times the unit of `class`, whichever is there; and which it is.
    fn up_to_sign(&mut self, class: ClassId, scale: Double2) -> (InstrId, Double2) {
        if class != one()
            && let Some((s, id)) = self.made[class].iter().find(|(s, _)| s.abs().is_near(scale.abs()))
        {
            return (*id, *s);
        }
        (self.multiple(class, scale), scale)
    }
}

/// Adds to the plan the multiples of factors that let several constants be multiplied in at once.
fn extend_plan(chosen: &Arena<ClassId, Way>, code: &Code, plan: &mut Plan) {
    let uses = code.uses();
    // Products that are used by constants only, and how often so.
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

/// Equal for scales that differ in sign and rounding only, but for bad luck.
fn key(scale: Double2) -> u64 {
    scale.high.abs().to_bits()
}
