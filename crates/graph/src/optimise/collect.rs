//! N-ary view: a graph's sums and products collected across nodes, so that association is free.
//!
//! In: a graph, roots, a [`Policy`]. Out: a [`Network`] with the same values.
//!
//! A sum absorbs the sums and products that only it uses, a product the products that only it uses; depending on the
//! policy also shared ones, as copies, because the extraction of common cubes finds again those that are worth sharing.
//! Signs and constant factors become coefficients. Everything else is opaque.
//!
//! # Masks
//! A product with a masked factor (`simplify/mask.rs`) is opaque: it is 0 while the mask is off, which does not follow
//! from its factors. So a masked value is never a factor in a cube of two literals or more.
//!
//! # Distribution and rounding
//! A policy may distribute a factor over a sum. Let `S = t_1 + ... + t_n` where all terms but at most one are results
//! of rounded operations. Then the error of `S` already is of the order of `eps * sum_{i>1} |t_i|`, and since `|t_1| <=
//! |S| + sum_{i>1} |t_i|`, the error of `sum_i (a*t_i)`, which is of the order of `eps * |a| * sum_i |t_i|`, is at most
//! a small multiple of the error of `a*S`. A difference of two inputs or of an input and a number is exact up to one
//! rounding, and if it cancels, `a*x - a*y` has lost the digits that `a*(x - y)` keeps; so such sums are never
//! distributed.

use super::cube::{Cube, Literal, degree, multiply};
use super::network::{Form, Network, Term, is_tame, like_terms};
use crate::graph::{Graph, Node, NodeId};
use chainrule_base::Id;
use chainrule_ops::{CostClass, Op};
use smallvec::SmallVec;
use std::cell::Cell;

/// Nodes that are collected although several others use them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Policy {
    /// Whether products are copied into all their users.
    pub shared_products: bool,
    /// Sums that are distributed or copied into all their users.
    pub shared_sums: Option<Choice>,
}

/// Deterministic pseudorandom choice among the sums of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    /// Seed of the choice.
    pub seed: u64,
    /// Inverse of the fraction of sums that are chosen.
    pub one_in: u64,
    /// Maximum number of cubes.
    pub max_cubes: usize,
}

impl Choice {
    fn takes(self, id: NodeId, n_cubes: usize) -> bool {
        let mut z = (id.index() as u64 ^ self.seed.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n_cubes <= self.max_cubes && (z ^ (z >> 32)).is_multiple_of(self.one_in)
    }
}

/// Maximum degree of a collected product.
const MAX_DEGREE: u32 = 24;
/// Maximum width of a sum that others absorb.
const MAX_WIDTH: usize = 256;
/// Maximum number of cubes that distribution creates.
const MAX_PRODUCT: usize = 32;

/// Network of a graph under a policy.
pub(super) struct Collected {
    /// The network.
    pub network: Network,
    /// Whether [`Policy::shared_sums`] was consulted: if not, any other choice gives the same network.
    pub sums_matter: bool,
}

/// Returns the network of `roots`; `exact` is true for inputs that have not been rounded. Linear in the size of the
/// graph and of the network.
pub(super) fn collect(graph: &Graph, roots: &[NodeId], exact: &[bool], policy: Policy) -> Collected {
    let reachable = graph.reachable(roots);
    let mut collector = Collector {
        graph,
        exact,
        policy,
        network: Network::default(),
        sums_matter: Cell::new(false),
        cores: graph.ids().map(|id| (1.0, id)).collect(),
        n_uses: vec![0; graph.len()],
        sums: vec![None; graph.len()],
        settled: vec![false; graph.len()],
        terms: vec![None; graph.len()],
    };
    for id in reachable.iter() {
        collector.cores[id.index()] = collector.core(id);
    }
    for root in roots {
        collector.n_uses[root.index()] += 1;
    }
    for id in reachable.iter().rev() {
        // A sign or a factor is counted at its users, as often as these are used.
        let times = if collector.cores[id.index()].1 == id { 1 } else { collector.n_uses[id.index()] };
        for arg in graph.args(id) {
            collector.n_uses[arg.index()] += times;
        }
    }
    for id in reachable.iter() {
        if collector.cores[id.index()].1 == id {
            collector.visit(id);
        }
    }
    collector.network.roots = roots.iter().map(|r| collector.term(*r)).collect();
    Collected { network: collector.network, sums_matter: collector.sums_matter.get() }
}

struct Collector<'a> {
    graph: &'a Graph,
    /// Whether the value of each input has not been rounded.
    exact: &'a [bool],
    policy: Policy,
    network: Network,
    /// As [`Collected::sums_matter`].
    sums_matter: Cell<bool>,
    /// Each node as a tame number times a node that is no such product.
    cores: Vec<(f64, NodeId)>,
    n_uses: Vec<u32>,
    /// Cubes of each sum or product.
    sums: Vec<Option<Vec<Cube>>>,
    /// Whether like terms have been merged.
    settled: Vec<bool>,
    /// Term of each node that has one.
    terms: Vec<Option<Term>>,
}

impl Collector<'_> {
    fn core(&self, id: NodeId) -> (f64, NodeId) {
        let number = |x: NodeId| self.graph.as_const(x).filter(|c| is_tame(*c));
        let (factor, x) = match self.graph.node(id) {
            Node::Apply(Op::Neg, [x, ..]) => (-1.0, x),
            Node::Apply(Op::Mul, [a, b, _]) => match (number(a), number(b)) {
                (Some(c), None) => (c, b),
                (None, Some(c)) => (c, a),
                _ => return (1.0, id),
            },
            Node::Apply(Op::Div, [a, b, _]) => match number(b) {
                Some(c) => (c.recip(), a),
                None => return (1.0, id),
            },
            _ => return (1.0, id),
        };
        let (coef, core) = self.cores[x.index()];
        if is_tame(coef * factor) && self.graph.as_const(x).is_none() { (coef * factor, core) } else { (1.0, id) }
    }

    fn visit(&mut self, id: NodeId) {
        let free = |x: NodeId| !self.graph.is_masked(x);
        let cubes = match self.graph.node(id) {
            Node::Const(c) if is_tame(c) => {
                self.terms[id.index()] = Some(Term { coef: c, literal: None });
                return;
            }
            Node::Apply(Op::Add, [a, b, _]) => Some(self.sum(a, 1.0, b)),
            Node::Apply(Op::Sub, [a, b, _]) => Some(self.sum(a, -1.0, b)),
            Node::Apply(Op::Mul, [a, b, _]) if free(a) && free(b) => self.product(a, b),
            Node::Apply(Op::Div, [a, b, _]) if free(a) && free(b) => self.quotient(a, b),
            _ => None,
        };
        if cubes.is_some() {
            self.sums[id.index()] = cubes;
            return;
        }
        let form = match self.graph.node(id) {
            Node::Const(_) | Node::Input(_) | Node::Derivative(_) => Form::Leaf(id),
            Node::Apply(..) | Node::External(..) => {
                let args: SmallVec<[NodeId; 4]> = self.graph.args(id).into();
                Form::Opaque(id, args.iter().map(|a| self.term(*a)).collect())
            }
        };
        let literal = self.push(form, id);
        self.terms[id.index()] = Some(Term { coef: 1.0, literal: Some(literal) });
    }

    fn push(&mut self, form: Form, id: NodeId) -> Literal {
        self.network.inexact.push(match (&form, self.graph.node(id)) {
            (Form::Leaf(_), Node::Input(input)) => !self.exact[input.index()],
            (Form::Leaf(_), _) => false,
            (Form::Opaque(..), Node::Apply(op, _)) => op.row().cost != CostClass::Logic,
            _ => true,
        });
        self.network.masked.push(self.graph.is_masked(id));
        self.network.forms.push(form)
    }

    /// Returns the node as a coefficient times a literal.
    fn term(&mut self, id: NodeId) -> Term {
        let (coef, core) = self.cores[id.index()];
        let term = self.core_term(core);
        Term { coef: coef * term.coef, literal: term.literal }
    }

    fn core_term(&mut self, id: NodeId) -> Term {
        if let Some(term) = self.terms[id.index()] {
            return term;
        }
        self.settle(id);
        // Every core that is no literal yet has cubes.
        let mut cubes = self.sums[id.index()].clone().unwrap_or_default();
        let term = match cubes.as_slice() {
            [] => Term { coef: 0.0, literal: None },
            [cube] if is_tame(cube.coef) => match cube.powers.as_slice() {
                [] => Term { coef: cube.coef, literal: None },
                &[(literal, 1)] => Term { coef: cube.coef, literal: Some(literal) },
                _ => {
                    let coef = std::mem::replace(&mut cubes[0].coef, 1.0);
                    Term { coef, literal: Some(self.push(Form::Sum(cubes), id)) }
                }
            },
            _ => Term { coef: 1.0, literal: Some(self.push(Form::Sum(cubes), id)) },
        };
        self.terms[id.index()] = Some(term);
        term
    }

    /// Returns the node times `factor` for a user: its own cubes if they are absorbed, else one literal.
    fn cubes(&mut self, id: NodeId, factor: f64, taken: bool) -> Vec<Cube> {
        let (coef, core) = self.cores[id.index()];
        let coef = coef * factor;
        let own = &mut self.sums[core.index()];
        if taken && own.as_deref().is_some_and(|cubes| may_scale(cubes, coef)) {
            let cubes = if self.n_uses[core.index()] == 1 { own.take() } else { own.clone() };
            return scaled(cubes.unwrap_or_default(), coef);
        }
        self.literal(core, coef)
    }

    /// Returns one literal for `core` times `coef`, or a number.
    fn literal(&mut self, core: NodeId, coef: f64) -> Vec<Cube> {
        match self.core_term(core) {
            Term { coef: 0.0, .. } => Vec::new(),
            Term { coef: c, literal: Some(literal) } => vec![Cube::literal(c * coef, literal)],
            Term { coef: c, literal: None } => vec![Cube::number(c * coef)],
        }
    }

    fn sum(&mut self, a: NodeId, sign: f64, b: NodeId) -> Vec<Cube> {
        let [mut p, mut q] = [(a, 1.0), (b, sign)].map(|(id, sign)| {
            let core = self.cores[id.index()].1;
            let taken = match (self.n_uses[core.index()], self.sums[core.index()].as_deref()) {
                (_, Some(cubes)) if cubes.len() > MAX_WIDTH => false,
                (1, _) => true,
                (_, Some([_])) => self.policy.shared_products,
                (_, Some(cubes)) => self.is_chosen(core, cubes.len()),
                (_, None) => false,
            };
            self.cubes(id, sign, taken)
        });
        if p.len() < q.len() {
            std::mem::swap(&mut p, &mut q);
        }
        p.append(&mut q);
        p
    }

    /// Merges like terms of a complete sum.
    fn settle(&mut self, id: NodeId) {
        let core = self.cores[id.index()].1.index();
        if !std::mem::replace(&mut self.settled[core], true)
            && let Some(cubes) = self.sums[core].take()
        {
            self.sums[core] = Some(like_terms(cubes));
        }
    }

    /// Returns whether a product absorbs the product `id`.
    fn takes_product(&self, id: NodeId) -> bool {
        let core = self.cores[id.index()].1.index();
        let small = matches!(self.sums[core].as_deref(), Some([cube]) if degree(&cube.powers) <= MAX_DEGREE / 2);
        small && (self.n_uses[core] == 1 || self.policy.shared_products)
    }

    /// Returns the number of cubes of a product after distribution over the sum `id`; `None` if that is not allowed.
    fn takes_sum(&self, id: NodeId) -> Option<usize> {
        let core = self.cores[id.index()].1;
        let cubes = self.sums[core.index()].as_deref().filter(|cubes| cubes.len() > 1)?;
        (self.may_distribute(cubes) && self.is_chosen(core, cubes.len())).then_some(cubes.len())
    }

    /// Returns whether the policy chooses a sum of so many cubes.
    fn is_chosen(&self, id: NodeId, n_cubes: usize) -> bool {
        self.sums_matter.set(true);
        self.policy.shared_sums.is_some_and(|choice| choice.takes(id, n_cubes))
    }

    fn product(&mut self, a: NodeId, b: NodeId) -> Option<Vec<Cube>> {
        self.settle(a);
        self.settle(b);
        let sizes = (self.takes_sum(a), self.takes_sum(b));
        let both = sizes.0.unwrap_or(1) * sizes.1.unwrap_or(1) <= MAX_PRODUCT;
        let out = (sizes.0.is_some() && both, sizes.1.is_some() && both);
        let p = self.copied(a, out.0 || self.takes_product(a));
        let q = self.copied(b, out.1 || self.takes_product(b));
        multiplied(&p, &q)
    }

    fn quotient(&mut self, a: NodeId, b: NodeId) -> Option<Vec<Cube>> {
        self.settle(a);
        self.settle(b);
        let p = self.copied(a, self.takes_product(a));
        let mut q = self.copied(b, self.takes_product(b));
        let [divisor] = q.as_mut_slice() else { return None };
        divisor.coef = divisor.coef.recip();
        for (_, e) in &mut divisor.powers {
            *e = -*e;
        }
        multiplied(&p, &q)
    }

    /// Returns the cubes of a factor as a copy, for the product may be abandoned: its own if `taken`, else one literal.
    fn copied(&mut self, id: NodeId, taken: bool) -> Vec<Cube> {
        let (coef, core) = self.cores[id.index()];
        match &self.sums[core.index()] {
            Some(cubes) if taken && may_scale(cubes, coef) => scaled(cubes.clone(), coef),
            _ => self.literal(core, coef),
        }
    }

    /// Returns whether a factor may be distributed over these terms: see the module's documentation.
    fn may_distribute(&self, cubes: &[Cube]) -> bool {
        let exact = |cube: &&Cube| match cube.powers.as_slice() {
            [] => true,
            [(literal, 1)] => !self.network.inexact[literal.index()],
            _ => false,
        };
        let masked = |cube: &Cube| cube.powers.iter().any(|(literal, _)| self.network.masked[literal.index()]);
        cubes.iter().filter(exact).count() <= 1 && !cubes.iter().any(masked)
    }
}

/// Returns whether all coefficients stay tame.
fn may_scale(cubes: &[Cube], coef: f64) -> bool {
    coef == 1.0 || cubes.iter().all(|c| is_tame(c.coef * coef))
}

fn scaled(mut cubes: Vec<Cube>, coef: f64) -> Vec<Cube> {
    if coef != 1.0 {
        cubes.iter_mut().for_each(|cube| cube.coef *= coef);
    }
    cubes
}

/// Returns the product of two sums; `None` if coefficients or degrees exceed the limits.
fn multiplied(p: &[Cube], q: &[Cube]) -> Option<Vec<Cube>> {
    let mut product = Vec::with_capacity(p.len() * q.len());
    for x in p {
        for y in q {
            let cube = Cube { coef: x.coef * y.coef, powers: multiply(&x.powers, &y.powers) };
            if !is_tame(cube.coef) || degree(&cube.powers) > MAX_DEGREE {
                return None;
            }
            product.push(cube);
        }
    }
    Some(like_terms(product))
}
